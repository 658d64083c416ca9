//! Every recorded run of other programs, running and finished: what `status --json` says of it, line by line as
//! `tests/fixtures/foreign/expected.txt` has it, and that no look changes anything.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One recorded run.
struct Case {
    name: String,
    id: String,
    copy: String,
    /// What is expected of it, the run first.
    lines: Vec<String>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/foreign")
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(fixtures().join("expected.txt")).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if let Some(step) = line.strip_prefix("  ") {
            cases.last_mut().unwrap().lines.push(step.to_owned());
            continue;
        }
        let (head, rest) = line.split_once(": ").unwrap();
        let [name, id, copy] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
        let (name, id, copy) = (name.to_owned(), id.to_owned(), copy.to_owned());
        cases.push(Case { name, id, copy, lines: vec![rest.to_owned()] });
    }
    cases
}

impl Case {
    /// Lays the run out below a root, as it was at that moment; with another runner if one is named.
    fn lay_out(&self, root: &Path, runner: Option<u32>) -> PathBuf {
        let from = fixtures().join(&self.name).join(&self.id);
        let status: Value =
            serde_json::from_slice(&fs::read(from.join(format!("{}.json", self.copy))).unwrap()).unwrap();
        let dir = root.join("async-subagent-runs").join(status["runId"].as_str().unwrap());
        fs::create_dir_all(&dir).unwrap();
        let mut status = status;
        if let Some(pid) = runner {
            status["pid"] = pid.into();
        }
        fs::write(dir.join("status.json"), serde_json::to_vec_pretty(&status).unwrap()).unwrap();
        let mut events = fs::read(from.join("events.jsonl")).unwrap();
        if let (Ok(bytes), "running") = (fs::read_to_string(from.join("running.bytes")), self.copy.as_str()) {
            events.truncate(bytes.trim().parse().unwrap());
        }
        fs::write(dir.join("events.jsonl"), events).unwrap();
        dir
    }

    fn goes_on(&self) -> bool {
        self.lines[0].contains(" running ")
    }

    /// What is true once the runner is gone without an end.
    fn lost(&self) -> Vec<String> {
        let never = |line: &String| line.replacen(" running ", " lost ", 1).replacen(" pending ", " skipped ", 1);
        let mut lines: Vec<String> = self.lines.iter().skip(1).map(never).collect();
        lines.insert(0, self.lines[0].replacen(" running exit -", " lost exit 7", 1));
        lines
    }
}

fn subdeck(root: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_subdeck"));
    command.args(args).current_dir(root).env_clear();
    command
        .env("HOME", root)
        .env("SUBDECK_ROOT", root.join("own"))
        .env("PI_SUBAGENTS_TEMP_ROOT", root)
        .env("TMPDIR", root);
    command.output().unwrap()
}

/// The status of a run in the words of the table.
fn described(root: &Path, dir: &Path) -> Vec<String> {
    let output = subdeck(root, &["status", "--json", dir.to_str().unwrap()]);
    let status: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().unwrap_or("-").chars().take(48).collect::<String>();
    let number = |value: &Value| value.as_i64().map_or_else(|| "-".to_owned(), |n| n.to_string());
    let cost = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |usd| format!("${usd:.5}"));
    let tokens = |value: &Value| match value["input"].as_u64() {
        Some(input) => format!("{input}+{}", value["output"]),
        None => "-".to_owned(),
    };
    let list = |words: Vec<String>, by: &str| if words.is_empty() { "-".to_owned() } else { words.join(by) };
    let mut lines = vec![format!(
        "{} {} exit {} | {} {} | {}",
        text(&status["mode"]),
        text(&status["state"]),
        number(&status["exit_code"]),
        tokens(&status["tokens"]),
        cost(&status["cost_usd"]),
        text(&status["error"])
    )];
    for step in status["steps"].as_array().unwrap() {
        let call = |c: &Value| [Some(text(&c["tool"])), c["outcome"].as_str().map(str::to_owned)];
        let calls = step["recent_tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| call(c).into_iter().flatten().collect::<Vec<_>>().join(" "));
        let open = step["open_tools"].as_array().unwrap().iter().map(|c| text(&c["tool"]));
        let steered = step["steering"].as_array().unwrap().iter().map(|r| {
            let states: Vec<String> = r["targets"].as_array().unwrap().iter().map(|t| text(&t["state"])).collect();
            format!("{}={}", r["preview"].as_str().unwrap().chars().take(12).collect::<String>(), states.join("/"))
        });
        lines.push(format!(
            "{} {} exit {} | {} turns {} calls {} {} | {} | open {} | steered {} | {}",
            text(&step["agent"]),
            text(&step["state"]),
            number(&step["exit_code"]),
            step["turns"],
            step["tool_calls"],
            tokens(&step["tokens"]),
            cost(&step["cost_usd"]),
            list(calls.collect(), ", "),
            list(open.collect(), ", "),
            list(steered.collect(), "; "),
            text(&step["error"]),
        ));
    }
    lines
}

/// Everything below a folder: what it holds, and when it was changed.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64, u32)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            let bytes = if meta.is_dir() { Vec::new() } else { fs::read(entry.path()).unwrap() };
            if meta.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path(), (bytes, meta.mtime_nsec() + meta.mtime() * 1_000_000_000, meta.mode()));
        }
    }
    found
}

#[test]
fn every_recorded_run_is_told_as_its_files_have_it() {
    let temp = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        // A runner that lives (this process stands for it), and one that is gone: no process has the highest id.
        let table = [(Some(std::process::id()), case.lines.clone()), (Some(0x3fff_fff0), case.lost())];
        for (runner, want) in if case.goes_on() { &table[..] } else { &table[..1] } {
            let root = temp.path().join(format!("{number}-{}", runner.unwrap()));
            fs::create_dir_all(&root).unwrap();
            let dir = case.lay_out(&root, *runner);
            let before = contents(&root);
            let told = described(&root, &dir);
            if told != *want {
                wrong.push(format!("{} {} {}\n want {want:#?}\n told {told:#?}", case.name, case.id, case.copy));
            }
            assert_eq!(contents(&root), before, "{} {}: looking changed something", case.name, case.copy);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_command_that_looks_changes_anything() {
    let temp = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = cases().iter().map(|case| case.lay_out(temp.path(), Some(0x3fff_fff0))).collect();
    let before = contents(temp.path());
    assert!(subdeck(temp.path(), &["ls", "--all"]).status.success());
    for dir in dirs {
        let dir = dir.to_str().unwrap();
        for args in
            [&["status", dir][..], &["events", dir], &["logs", dir], &["attach", "--no-tui", dir], &["budget", dir]]
        {
            subdeck(temp.path(), args);
        }
    }
    let after = contents(temp.path());
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(before == after);
}
