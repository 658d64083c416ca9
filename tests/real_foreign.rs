//! Runs that the real pi-subagents makes, while it makes them: followed in the deck, and controlled from the deck and
//! from the command line. What they need is in tests/real-agents/README.md; without it they say so and are skipped.

#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Home, PROGRAM};

/// As long as the real thing may take to start on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// A parent, its scripted model, and the root that its runs are in.
struct Parent {
    child: Child,
    folder: tempfile::TempDir,
}

impl Parent {
    /// Starts one whose subagent runs four commands of so many seconds; `None`, with a word about it, where the
    /// packages are missing.
    fn start(seconds: u32, kind: &str) -> Option<Self> {
        let node = std::env::var_os("SUBDECK_REAL_NODE").unwrap_or_else(|| "node".into());
        for name in ["SUBDECK_REAL_PI_CLI", "SUBDECK_REAL_PI_SUBAGENTS"] {
            if std::env::var_os(name).is_none() {
                println!("skipped: {name} is not set; see tests/real-agents/README.md");
                return None;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real-agents/parent.mjs");
        let mut command = Command::new(node);
        command.arg(script).arg(folder.path()).arg(seconds.to_string()).arg(kind);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).expect("the parent started");
        assert!(told["pid"].is_u64());
        Some(Self { child, folder })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn subdeck(&self, args: &[&str]) -> (i32, String, String) {
        let output = Command::new(PROGRAM)
            .args(args)
            .env("HOME", self.folder.path())
            .env("SUBDECK_ROOT", self.folder.path().join("own"))
            .env("PI_SUBAGENTS_TEMP_ROOT", self.root())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// Waits until the run of this mode has a tool open; its directory.
    fn at_work(&self, mode: &str) -> PathBuf {
        self.wait("a tool of the run", || {
            let runs = std::fs::read_dir(self.root().join("async-subagent-runs")).ok()?;
            runs.flatten().map(|entry| entry.path()).find(|dir| {
                let status = status(dir);
                status["mode"] == mode && status["steps"][0]["currentTool"] == "bash"
            })
        })
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(since.elapsed() < LONG, "{what}: nothing after {LONG:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the model has been told a text.
    fn wait_heard(&self, text: &str) {
        let log = self.folder.path().join("model.log");
        self.wait(text, || std::fs::read_to_string(&log).ok().filter(|log| log.contains(text)));
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        // It ends what it started when nobody holds its input any more.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn status(dir: &Path) -> Value {
    let bytes = std::fs::read(dir.join("status.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

#[test]
fn a_live_run_is_followed_steered_and_interrupted_from_the_deck() {
    let Some(parent) = Parent::start(6, "") else { return };
    let dir = parent.at_work("single");
    let home = Home::new();
    let mut deck = home.deck(&["attach", dir.to_str().unwrap()], 120, 36);
    deck.wait_text("sleep 6; echo step");
    // The next tool is seen when the file says so.
    let first = status(&dir)["steps"][0]["currentToolStartedAt"].clone();
    parent.wait("the next tool", || {
        let now = status(&dir)["steps"][0]["currentToolStartedAt"].clone();
        (now.is_number() && now != first).then_some(())
    });
    let changed = Instant::now();
    let second = format!("echo step {}", status(&dir)["steps"][0]["toolCount"]);
    deck.wait_text(&second);
    println!("the deck showed the next tool {:?} after its file did", changed.elapsed());
    deck.keys("s");
    deck.wait_text("accepts steering");
    deck.keys("use the blue one");
    deck.wait_text("use the blue one");
    deck.keys("\x13");
    deck.wait_text("control: steer #");
    parent.wait_heard("use the blue one");
    deck.wait_text("delivered");
    deck.keys("i");
    deck.wait_text("again to interrupt");
    deck.keys("i");
    deck.wait_text("paused");
    parent.wait("the pause", || (status(&dir)["state"] == "paused").then_some(()));
    deck.keys("q");
    deck.wait_exit();
    assert!(deck.is_sane());
}

#[test]
fn a_live_run_is_listed_steered_and_stopped_from_the_command_line() {
    let Some(parent) = Parent::start(4, "") else { return };
    let dir = parent.at_work("single");
    let id = dir.file_name().unwrap().to_str().unwrap();
    let (_, listed, _) = parent.subdeck(&["ls"]);
    assert!(listed.contains(&id[..8]) && listed.contains("scout"), "{listed}");
    let (code, _, told) = parent.subdeck(&["steer", id, "use the red one", "--wait", "--timeout", "60s"]);
    assert_eq!((code, told.contains("delivered")), (0, true), "{told}");
    parent.wait_heard("use the red one");
    let (code, _, told) = parent.subdeck(&["stop", id, "--wait", "--timeout", "60s"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(status(&dir)["state"], "stopped");
}

#[test]
fn a_step_of_a_live_run_is_stopped_by_itself() {
    let Some(parent) = Parent::start(4, "") else { return };
    let dir = parent.at_work("single");
    let (code, _, told) = parent.subdeck(&["stop", &format!("{}:1", dir.display()), "--wait", "--timeout", "60s"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(status(&dir)["steps"][0]["status"], "stopped");
}

#[test]
fn a_child_of_a_workflow_is_steered_and_what_its_parent_does_not_take_is_refused() {
    let Some(parent) = Parent::start(4, "workflow") else { return };
    let dir = parent.at_work("workflow");
    let id = dir.file_name().unwrap().to_str().unwrap();
    for word in ["stop", "interrupt"] {
        let (code, _, told) = parent.subdeck(&[word, id]);
        assert!(code == 2 && told.contains("the parent that runs this workflow takes no such request"), "{told}");
        assert!(!dir.join(format!("control/{word}.json")).exists());
    }
    let (code, _, told) = parent.subdeck(&["steer", id, "use the green one", "--wait", "--timeout", "60s"]);
    assert_eq!(code, 0, "{told}");
    parent.wait_heard("use the green one");
}
