//! Looking writes nothing: not into a run that is over, not into a root that is not ours, and with `--read-only` nowhere.
//! Every key of the deck and every command that could are tried; the directory is compared with what it was, byte by byte
//! and with the times of its files.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use subdeck::deck::actions::{Action, TABLE};
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, PROGRAM, bytes};

/// Everything below a folder: what it is, when it was changed, and what is in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().flatten().map(|e| e.path()));
        }
        let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, (meta.mode(), meta.mtime() * 1_000_000_000 + meta.mtime_nsec(), bytes));
    }
    found
}

/// What is another in two looks at a folder.
fn changes(before: &BTreeMap<PathBuf, (u32, i64, Vec<u8>)>, folder: &Path) -> Vec<String> {
    let now = contents(folder);
    let all: std::collections::BTreeSet<_> = before.keys().chain(now.keys()).collect();
    all.into_iter().filter(|path| before.get(*path) != now.get(*path)).map(|p| p.display().to_string()).collect()
}

/// Opens the help, which says that all keys before were taken. Those that came while another program had the terminal are
/// lost, so that they are pressed again.
fn settled(pty: &Pty) {
    let begun = Instant::now();
    let mut next = begun;
    while !pty.text().contains("╭─ keys ") {
        let now = Instant::now();
        assert!(now < begun + PATIENCE, "never saw the keys; the screen is\n{}", pty.text());
        if now >= next {
            pty.keys("\x1b[27u\x1b[27u?");
            next = now + std::time::Duration::from_secs(2);
        }
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ keys ");
}

/// A deck on this run, on which every key of the table is pressed, with what would make a dialog do it. Leaving the deck
/// and suspending it write nothing, and what is in `not` is meant to do something else.
fn press_all(home: &Home, arguments: &[&str], not: &[Action]) -> Pty {
    let variables = [("PAGER", "true"), ("EDITOR", "true"), ("VISUAL", "true"), ("SHELL", "/bin/true")];
    let pty = home.deck_with(arguments, &variables, 120, 36);
    pty.wait_text("jk select");
    let leaves = |action| matches!(action, Action::Quit | Action::Suspend);
    for row in TABLE.iter().filter(|row| !leaves(row.action) && !not.contains(&row.action)) {
        let key = bytes(row.keys[0]);
        // Twice for what asks; a text and every way to send it for what takes one.
        for then in [&key, "text\x13", "y", "1h\r", "\r"] {
            pty.keys(&key);
            pty.keys(then);
            pty.keys("\x1b[27u\x1b[27u\x1b[27u");
        }
        settled(&pty);
    }
    pty
}

struct Said {
    code: i32,
    stderr: String,
}

fn command(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("SUBDECK_ROOT", home.path().join("root"))
        .env("TMPDIR", home.path())
        .env_remove("SUBDECK_READ_ONLY")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    Said { code: output.status.code().unwrap(), stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// Every command that would write into a run.
fn controls(run: &str) -> Vec<Vec<String>> {
    let step = format!("{run}:1");
    let table: &[&[&str]] = &[
        &["steer", run, "a message"],
        &["steer", &step, "a message", "--wait", "--timeout", "1s"],
        &["interrupt", run],
        &["stop", run],
        &["stop", &step],
        &["budget", run, "time=2h"],
        &["budget", &step, "turns=60", "--wait", "--timeout", "1s"],
        &["answer", run, "allow"],
        &["answer", run, "--dismiss"],
        &["resume", run, "--detach"],
        &["retry", run, "--detach"],
    ];
    table.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// Every command that only looks; who follows a living run to its end is not waited for.
fn looks(home: &Home, run: &str, over: bool) {
    let out = home.path().join("taken.json").display().to_string();
    let table: &[&[&str]] = &[
        &["attach", run, "--no-tui"],
        &["status", run],
        &["status", run, "--json"],
        &["events", run],
        &["events", run, "--json"],
        &["events", run, "--raw"],
        &["logs", run],
        &["budget", run],
        &["answer", run],
        &["wait", run, "--timeout", "50ms"],
        &["export", run, "--format", "json", "--out", &out, "--force"],
        &["prune", "--older-than", "0s", "--foreign", "--broken"],
        &["ls", "--all"],
        &["ls", "--json"],
    ];
    for words in table.iter().filter(|words| over || words[0] != "attach") {
        let said = command(home, words, &[]);
        assert!(!said.stderr.contains("panicked"), "{words:?}: {}", said.stderr);
    }
}

/// A command is refused with a sentence.
fn refused(home: &Home, words: &[String], more: &[&str], variables: &[(&str, &str)], part: &str) {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let said = command(home, &words, variables);
    assert!(said.code != 0 && said.stderr.contains(part), "{words:?}: {} {}", said.code, said.stderr);
}

/// The only run of a home.
fn only_run(home: &Home) -> PathBuf {
    let runs = home.path().join("root/async-subagent-runs");
    let named = |path: &PathBuf| !path.file_name().unwrap().as_encoded_bytes().starts_with(b".");
    fs::read_dir(runs).unwrap().flatten().map(|e| e.path()).find(named).unwrap()
}

/// Waits until nobody has written into a folder for a while.
fn rested(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = contents(folder);
    loop {
        std::thread::park_timeout(std::time::Duration::from_millis(300));
        let now = contents(folder);
        if now == before {
            return now;
        }
        assert!(Instant::now() < deadline, "it is written all the time");
        before = now;
    }
}

#[test]
fn a_finished_run_of_ours_stays_as_it_is() {
    let home = Home::new();
    let plan =
        "[[step]]\nagent = \"scout\"\nrunner = { type = \"demo\", script = \"default\" }\ntask = \"Look around\"\n";
    fs::write(home.path().join("plan.toml"), plan).unwrap();
    let said = command(&home, &["run", "plan.toml", "--no-tui"], &[("SUBDECK_DEMO_SPEED", "50")]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let dir = only_run(&home);
    let run = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let before = rested(&dir);
    looks(&home, &run, true);
    for words in controls(&run).iter().filter(|words| words[0] != "resume") {
        refused(&home, words, &[], &[], "subdeck: ");
    }
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
    // A message to a step of a run that is over begins another run.
    let mut pty = press_all(&home, &["attach", &run], &[Action::Steer]);
    for key in ["i", "x", "X", "+"] {
        pty.keys(key);
        pty.wait_text("the run is over (complete)");
        pty.keys(ESCAPE);
    }
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
    pty.keys("q");
    pty.wait_exit();
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
}

/// A run that another program made, in a root with this mode; its runner is this process, so that it lives.
fn foreign(home: &Home, fixture: &str, mode: u32) -> PathBuf {
    let root = home.path().join("elsewhere");
    let dir = root.join("async-subagent-runs").join("5b0c1d2e-foreign");
    fs::create_dir_all(&dir).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(fixture);
    for entry in fs::read_dir(from).unwrap().flatten() {
        let bytes = fs::read(entry.path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.replace("\"pid\": 4194303", &format!("\"pid\": {}", std::process::id()));
        fs::write(dir.join(entry.file_name()), text).unwrap();
    }
    for folder in [&dir, dir.parent().unwrap()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::set_permissions(root, fs::Permissions::from_mode(mode)).unwrap();
    dir
}

#[test]
fn a_finished_run_of_others_stays_as_it_is() {
    let home = Home::new();
    let dir = foreign(&home, "finished-single", 0o700);
    let run = dir.display().to_string();
    // With more events than a first look reads; what they say is known all the same.
    let said = r#"{"type":"message_end","message":{"role":"assistant","content":[],"usage":{"input":3,"output":0}},"subagentSource":"child","subagentStepIndex":0,"observedAt":1764000630000}"#;
    let events = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let end = events.find(r#"{"type":"subagent.step.completed""#).unwrap();
    let events = [&events[..end], &format!("{said}\n").repeat(5_000), &events[end..]].concat();
    assert!(events.len() > 600_000);
    fs::write(dir.join("events.jsonl"), events).unwrap();
    let told: serde_json::Value = serde_json::from_str(&home.subdeck(&["status", "--json", &run])).unwrap();
    assert!(told["tokens"]["input"].as_u64().unwrap() >= 15_000, "{told:#}");
    let before = rested(&dir);
    looks(&home, &run, true);
    for words in controls(&run) {
        refused(&home, &words, &[], &[], "subdeck: ");
    }
    let mut pty = press_all(&home, &["attach", &run], &[]);
    pty.keys("x");
    pty.wait_text("the run is over (complete)");
    pty.keys("q");
    pty.wait_exit();
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
    assert!(!home.path().join("root").exists(), "nothing was started");
}

#[test]
fn a_living_run_in_a_root_that_others_may_write_stays_as_it_is() {
    let home = Home::new();
    let dir = foreign(&home, "running-parallel", 0o777);
    let run = dir.display().to_string();
    let before = rested(&dir);
    looks(&home, &run, false);
    for words in controls(&run).iter().filter(|words| !matches!(words[0].as_str(), "resume" | "retry")) {
        refused(&home, words, &[], &[], "is not trusted and only read: others may write into it (mode 777)");
    }
    for words in controls(&run) {
        refused(&home, &words, &[], &[], "subdeck: ");
    }
    let mut pty = press_all(&home, &["attach", &run], &[]);
    for key in ["s", "S", "i", "x", "X"] {
        pty.keys(key);
        pty.wait_text("read-only: ");
        pty.keys(ESCAPE);
    }
    pty.keys("q");
    pty.wait_exit();
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
}

#[test]
fn with_the_flag_a_living_run_of_ours_is_asked_for_nothing() {
    let home = Home::new();
    let script = "echo hello from the child; exec sleep 1000";
    // A runner that tells of silence would write by itself.
    let quiet = [("SUBDECK_ATTENTION", "false")];
    let said = command(&home, &["run", "--detach", "--name", "nap", "--", "sh", "-c", script], &quiet);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let dir = only_run(&home);
    home.wait_state("running");
    let run = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let before = rested(&dir);
    let started = ["run", "demo"].map(|word| vec![word.to_owned()]);
    let pruned = vec!["prune".to_owned(), "--yes".to_owned(), "--older-than".to_owned(), "0s".to_owned()];
    for mut words in controls(&run).into_iter().chain(started).chain([pruned]) {
        if words[0] == "run" {
            words.extend(["--agent", "x", "task"].map(str::to_owned));
        }
        refused(&home, &words, &["--read-only"], &[], "read-only: --read-only was given; ");
        let why = "read-only: SUBDECK_READ_ONLY is set; ";
        refused(&home, &words, &[], &[("SUBDECK_READ_ONLY", "true")], why);
    }
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
    let mut pty = press_all(&home, &["attach", &run, "--read-only"], &[]);
    for key in ["s", "i", "x", "X", "+", "R"] {
        pty.keys(key);
        pty.wait_text("read-only: --read-only was given");
        pty.keys(ESCAPE);
    }
    // It leaves without a question, because the run is not its.
    pty.keys("q");
    pty.wait_exit();
    // From the fleet too, where no run can be started.
    let mut pty = home.deck(&["--read-only"], 120, 36);
    pty.wait_text("nap");
    pty.keys("\r");
    pty.wait_text("hello from the child");
    pty.keys("x");
    pty.wait_text("read-only: --read-only was given");
    pty.keys("\x1b[27u\x1b[27u");
    pty.wait_text(" fleet ");
    pty.keys("q");
    pty.wait_exit();
    assert_eq!(changes(&before, &dir), Vec::<String>::new());
    let runs = fs::read_dir(dir.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(runs.filter(|name| !name.as_encoded_bytes().starts_with(b".")).count(), 1, "nothing was started");
}
