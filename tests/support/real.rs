//! The real agents, for the tests that need them. `SUBDECK_REAL_AGENTS` names a folder with programs called pi, claude,
//! codex, opencode, gemini, qwen and copilot that need no arguments to find their model and their key; whichever is
//! missing is skipped, with a word about it.
//!
//! The model behind them is scripted: the last `[[scenario:NAME key=value]]` in what the user said decides what it does.
//! `text` answers at once; `bash secs=S` runs one shell command of S seconds, then answers; `multi secs=S n=N` runs N of
//! them, one a turn, then answers; `parallel` runs two at once, `fail` one that fails, `write` writes a file; `err500`
//! fails itself. Each counts the turns since the marker, so a conversation that is gone on with answers instead of
//! beginning again.

// Each test uses a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Done, Run, World};

/// As long as a real agent may take on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);
/// What the model says first in `text`, and last in `bash`.
pub const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";
pub const ALL_DONE: &str = "Final answer for scenario bash: all done.";

/// A real agent.
pub struct Agent {
    pub word: &'static str,
    pub program: PathBuf,
}

/// Those of these agents that are there.
pub fn agents(words: &[&'static str]) -> Vec<Agent> {
    let Some(folder) = std::env::var_os("SUBDECK_REAL_AGENTS").map(PathBuf::from) else {
        println!("skipped: SUBDECK_REAL_AGENTS names no folder with agents");
        return Vec::new();
    };
    let there = |word: &&'static str| {
        let program = folder.join(word);
        if !program.exists() {
            println!("skipped: there is no {}", program.display());
            return None;
        }
        Some(Agent { word, program })
    };
    words.iter().filter_map(there).collect()
}

/// One of them.
pub fn agent(word: &'static str) -> Option<Agent> {
    agents(&[word]).pop()
}

impl Agent {
    /// Its runner in a plan; `more` is more of the table.
    pub fn runner(&self, more: &str) -> String {
        // Qwen is told where its key is from by an argument.
        let args = if self.word == "qwen" { ", args = [\"--auth-type\", \"openai\"]" } else { "" };
        format!("{{ type = \"{}\", command = {:?}{args}{more} }}", self.word, self.program)
    }

    /// A step of a plan; `more` is more of its runner, `step` more of itself.
    pub fn step(&self, task: &str, more: &str, step: &str) -> String {
        let runner = self.runner(more);
        format!("[[step]]\nid = \"{}\"\ntask = {task:?}\nrunner = {runner}\n{step}\n", self.word)
    }

    /// Starts a run of it alone.
    pub fn detach(&self, world: &World, task: &str, more: &str) -> Run {
        detach(world, &self.step(task, more, ""))
    }
}

/// The binary; Gemini is told to log in with a key where it is set.
pub fn subdeck(world: &World, args: &[&str]) -> Command {
    let mut command = world.subdeck(args);
    command.env("GEMINI_API_KEY", "dummy");
    command
}

/// Starts a run of this plan.
pub fn detach(world: &World, plan: &str) -> Run {
    let plan = world.file("plan.toml", plan);
    let done = Done::of(subdeck(world, &["run", "--detach", plan.to_str().unwrap()]).output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.run(done.stdout.trim())
}

/// Waits until `look` finds something.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a run is over; returns its status.
pub fn end(run: &Run) -> Value {
    wait("the end of the run", || Some(run.status()).filter(|status| status["endedAt"].is_number()));
    run.wait_end()
}

/// Waits until the step asks something; returns the question.
pub fn asked(run: &Run) -> Value {
    wait("the question", || {
        let status = run.status();
        let open = status["steps"][0]["subdeck"]["questions"].as_array()?.first().cloned();
        assert!(open.is_some() || !status["endedAt"].is_number(), "it ended without a question: {status:#}");
        open
    })
}
