//! Runs whose agents play scripts: `tests/bin/scripted.sh` in the place of pi, one script a step, and the runner configs
//! and plans that start it.

#[path = "replays.rs"]
pub mod replays;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Done, Run, World, wait_for};

/// The id of the run that a config of [`Scene::config`] starts.
const ID: &str = "3f0e4b1e-0000-4000-8000-00000000c0de";

/// A world with a folder of scripts.
pub struct Scene {
    pub world: World,
}

impl Scene {
    /// One script a step, in flat order.
    pub fn new(scripts: &[&str]) -> Self {
        let scene = Self { world: World::new() };
        std::fs::create_dir(scene.scripts()).unwrap();
        for (index, text) in scripts.iter().enumerate() {
            scene.script(&index.to_string(), text);
        }
        scene
    }

    /// Where the scripts are.
    pub fn scripts(&self) -> PathBuf {
        self.world.project().join("scripts")
    }

    /// A script by its name: a step, `0`, or one start of it, `0.2`.
    pub fn script(&self, name: &str, text: &str) {
        std::fs::write(self.scripts().join(name), format!("{}\n", text.trim())).unwrap();
    }

    /// Lets a script go on that waits for this file.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.scripts().join(name), "").unwrap();
    }

    /// The arguments of the start of a step; `None` when it was not started so often. Starts count from 1.
    pub fn arguments(&self, step: usize, start: usize) -> Option<String> {
        std::fs::read_to_string(self.scripts().join(format!("started.{step}.{start}"))).ok()
    }

    /// How often a step was started.
    pub fn starts(&self, step: usize) -> usize {
        (1..).take_while(|n| self.arguments(step, *n).is_some()).count()
    }

    /// The binary with the scripted agent in the place of pi.
    pub fn subdeck(&self, args: &[&str]) -> Command {
        let mut command = self.world.subdeck(args);
        command
            .env("PI_SUBAGENT_PI_BINARY", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/scripted.sh"))
            .env("AGENT_SCRIPTS", self.scripts());
        command
    }

    /// A runner config of pi-subagents with these steps and these other fields; returns its path.
    pub fn config(&self, steps: &[Value], more: Value) -> String {
        let root = self.world.root();
        let mut config = json!({
            "id": ID,
            "steps": steps,
            "cwd": self.world.project(),
            "placeholder": "{previous}",
            "sessionId": "a-session",
            "asyncDir": root.join("async-subagent-runs").join(ID),
            "resultPath": root.join("async-subagent-results").join(format!("{ID}.json")),
        });
        let fields = config.as_object_mut().unwrap();
        for (key, value) in more.as_object().unwrap() {
            fields.insert(key.clone(), value.clone());
        }
        self.world.file("config.json", &config.to_string()).to_str().unwrap().to_owned()
    }

    /// Runs a plan or a config to its end, in the foreground.
    pub fn run(&self, plan: &str) -> (Run, Done) {
        let done = Done::of(self.subdeck(&["run", "--no-tui", plan]).output().unwrap());
        assert!(self.world.root().exists(), "{done:?}");
        let run = self.world.only_run();
        replays::assert_told_by_the_log(&run.dir);
        (run, done)
    }

    /// Starts a plan or a config in the background.
    pub fn detach(&self, plan: &str) -> Run {
        let done = Done::of(self.subdeck(&["run", "--detach", plan]).output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        self.world.run(done.stdout.trim())
    }

    /// A plan in TOML; returns its path.
    pub fn plan(&self, text: &str) -> String {
        self.world.file("plan.toml", text).to_str().unwrap().to_owned()
    }

    /// A route for runs within runs, below the root; as a config names it.
    pub fn route(&self, top: &str) -> Value {
        let base = self.world.root().join("nested-subagent-events").join(format!("{top}-token"));
        for folder in ["events", "controls"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        let file = json!({ "rootRunId": top, "capabilityToken": "token", "createdAt": 1 });
        std::fs::write(base.join("route.json"), file.to_string()).unwrap();
        json!({ "rootRunId": top, "capabilityToken": "token", "eventSink": base.join("events"),
            "controlInbox": base.join("controls") })
    }

    /// The result of a run.
    pub fn result(&self, run: &Run) -> Value {
        let path = self.world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
        wait_for("a result", || serde_json::from_slice(&std::fs::read(&path).ok()?).ok())
    }
}

/// A step of a runner config with the fields that it must have, and others.
pub fn step(more: Value) -> Value {
    let mut step = json!({
        "agent": "worker",
        "task": "Do it.",
        "inheritProjectContext": false,
        "inheritSkills": false,
        "completionGuard": false,
    });
    let fields = step.as_object_mut().unwrap();
    for (key, value) in more.as_object().unwrap() {
        fields.insert(key.clone(), value.clone());
    }
    step
}
