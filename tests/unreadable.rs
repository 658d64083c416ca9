//! Runs and roots that cannot be read: every command says so, none waits for them and none makes something up.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use support::{Done, World, wait_for};

/// A run directory of the root with this status.json, written by nobody who lives.
fn put(world: &World, id: &str, status: &str) -> PathBuf {
    let runs = world.root().join("async-subagent-runs");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&runs).unwrap();
    let dir = runs.join(id);
    std::fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
    std::fs::write(dir.join("status.json"), status).unwrap();
    dir
}

fn ended(id: &str, at: u64) -> String {
    format!(
        r#"{{"runId":"{id}","mode":"single","state":"complete","startedAt":{at},"endedAt":{at},"cwd":"/","steps":[]}}"#
    )
}

#[test]
fn an_unreadable_status_is_said_by_every_command_and_nobody_waits_for_it() {
    let world = World::new();
    put(&world, "aaaa-1", "{bad");
    for args in [
        &["status", "aaaa-1"][..],
        &["attach", "--no-tui", "aaaa-1"],
        &["attach", "--no-tui", "--output", "jsonl", "aaaa-1"],
        &["wait", "aaaa-1"],
        &["wait", "aaaa-1", "--for", "attention"],
        &["stop", "aaaa-1"],
        &["stop", "aaaa-1", "--wait"],
        &["interrupt", "aaaa-1"],
    ] {
        let done = world.output(args);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{args:?}: {done:?}");
        assert!(done.stderr.contains("the status of run aaaa-1 is unreadable: "), "{args:?}: {done:?}");
    }
    let done = world.output(&["status", "--json", "aaaa-1"]);
    assert_eq!(done.code, 1, "{done:?}");
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(document["unreadable"].is_string() && document["run"] == "aaaa-1", "{document}");
}

/// A foreign log names no steps, so of those that something happened to only their numbers are known.
#[test]
fn a_run_without_a_status_is_what_its_events_tell_wherever_it_is_looked_at() {
    let world = World::new();
    let dir = put(&world, "aaaa-1", "");
    std::fs::remove_file(dir.join("status.json")).unwrap();
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/foreign/det-steer/8afccf72/events.jsonl");
    std::fs::copy(recorded, dir.join("events.jsonl")).unwrap();
    let state = |args: &[&str]| -> Value {
        let done = world.output(args);
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_str(&done.stdout).unwrap()
    };
    let status = state(&["status", "--json", "aaaa-1"]);
    assert_eq!((&status["state"], status["steps"].as_array().unwrap().len()), (&"complete".into(), 1), "{status}");
    assert_eq!(
        (&status["steps"][0]["state"], &status["steps"][0]["tool_calls"]),
        (&"complete".into(), &4.into()),
        "{status}"
    );
    let listed = state(&["ls", "--json"]);
    assert_eq!(listed["runs"][0]["state"], "complete", "{listed}");
    assert_eq!(world.output(&["ls"]).stdout.lines().filter(|l| l.contains("complete")).count(), 1);
    let printed = world.output(&["attach", "--no-tui", "aaaa-1"]);
    assert_eq!(printed.code, 0, "{printed:?}");
}

#[test]
fn what_is_no_file_is_not_read_and_said_to_be() {
    let world = World::new();
    let dir = put(&world, "aaaa-1", &ended("aaaa-1", 1).replace("[]", r#"[{"agent":"a","status":"complete"}]"#));
    std::os::unix::fs::symlink("/etc/passwd", dir.join("output-0.log")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(dir.join("events.jsonl")).status().unwrap().success());
    for (args, file) in [(["logs", "aaaa-1"], "output-0.log"), (["events", "aaaa-1"], "events.jsonl")] {
        let done = world.output(&args);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{args:?}: {done:?}");
        assert!(done.stderr.contains(file) && done.stderr.contains("is no regular file"), "{args:?}: {done:?}");
    }
}

#[test]
fn options_of_a_command_may_stand_before_it() {
    let world = World::new();
    put(&world, "aaaa-1", &ended("aaaa-1", 1));
    let root = world.root().display().to_string();
    let other = world.file("other", "").parent().unwrap().join("none").display().to_string();
    for (args, code) in [
        (&["--root", &root, "status", "aaaa-1"][..], 0),
        (&[&format!("--root={root}"), "--read-only", "ls"], 0),
        (&["--root", &other, "status", "aaaa-1"], 2),
        (&["--read-only", "stop", "aaaa-1"], 2),
    ] {
        let done = world.output(args);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
        assert!(!done.stderr.contains("cannot be used"), "{args:?}: {done:?}");
    }
}

#[test]
fn a_list_keeps_its_columns_whatever_a_run_is_called_and_however_long_a_cause_is() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    put(&world, "aaaa-1", &ended("aaaa-1", 1));
    put(&world, "not-to-be-read", "{bad");
    let random = "0ac4627f-1c06-46ca-9833-26ae42664043";
    put(&world, random, &ended(random, 3));
    let odd = world.root().join("async-subagent-runs").join(std::ffi::OsStr::from_bytes(b"\xff\xfebad\x1b[31m"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("status.json"), ended("odd", 2)).unwrap();
    let done = world.output(&["ls", "--all"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let at = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
    let line = |word: &str| *lines.iter().find(|l| l.contains(word)).unwrap_or_else(|| panic!("{done:?}"));
    assert!(at(lines[0], "STEPS").unwrap() < 40, "{done:?}");
    assert!(line("not-to-be-read").contains("unreadable"), "{done:?}");
    assert!(line("0ac4627f").starts_with("0ac4627f  "), "{done:?}");
    assert_eq!(at(line("not-to-be-read"), "it is not valid JSON"), at(lines[0], "NOW"), "{done:?}");
    assert!(line("bad").starts_with('\u{fffd}') && !done.stdout.contains('\x1b'), "{done:?}");
}

#[test]
fn a_living_run_with_an_unreadable_status_is_followed_to_its_end() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]);
    run.wait("a child", |s| s["steps"][0]["status"] == "running");
    std::fs::write(run.dir.join("status.json"), "{half").unwrap();
    let done = world.output(&["status", run.id()]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("is unreadable"), "{done:?}");
    let spawn = |args: &[&str]| world.subdeck(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (wait, attach) = (spawn(&["wait", run.id()]), spawn(&["attach", "--no-tui", run.id()]));
    world.file("go", "");
    let done = [wait, attach].map(|child| Done::of(child.wait_with_output().unwrap()));
    assert!(done.iter().all(|d| d.code == 0), "{done:?}");
    wait_for("a whole status", || (world.output(&["status", run.id()]).code == 0).then_some(()));
}

/// What is missing of a foreign run is named, and what its children say of themselves is heard.
#[test]
fn what_a_foreign_run_lacks_is_named_and_a_deaf_child_gets_no_message() {
    let world = World::new();
    let me = std::process::id();
    let text = format!(
        r#"{{"runId":"ffff-1","mode":"single","state":"running","startedAt":1,"lastUpdate":1,"pid":{me},"cwd":"/",
        "steps":[{{"agent":"a","status":"running","startedAt":1}}]}}"#
    );
    let dir = put(&world, "ffff-1", &text);
    let logs = world.output(&["logs", "ffff-1:1"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, ""), "{logs:?}");
    assert!(logs.stderr.contains("step 1: its log (output-0.log) is not here"), "{logs:?}");
    let events = world.output(&["events", "ffff-1"]);
    assert!(events.code == 0 && events.stderr.contains("this run has no events.jsonl"), "{events:?}");
    let folder = dir.join("control/steer-capabilities");
    std::fs::create_dir_all(&folder).unwrap();
    let say = |supported: bool| {
        let text = format!(
            r#"{{"type":"steer-capability","protocolVersion":1,"index":0,"pid":{me},"readyAt":1,"supported":{supported}}}"#
        );
        std::fs::write(folder.join("0.json"), text).unwrap();
    };
    say(false);
    let deaf = world.output(&["steer", "ffff-1:1", "hello"]);
    assert!(deaf.code == 2 && deaf.stderr.contains("does not support steering"), "{deaf:?}");
    assert!(!dir.join("control/steer-requests").exists(), "nothing is written");
    say(true);
    let heard = world.output(&["steer", "ffff-1:1", "hello"]);
    assert_eq!(heard.code, 0, "{heard:?}");
}

/// The runner goes on and its events have the end; that its status is lost is what is told, and the run keeps its name.
#[test]
fn a_folder_in_the_place_of_the_status_is_told_as_what_it_is() {
    let world = World::new();
    assert_eq!(world.output(&["run", "--no-tui", "--name", "before", "--", "true"]).code, 0);
    let before = world.only_run();
    // The runner may put it back in between.
    let attack = "cd \"$SUBDECK_ROOT/async-subagent-runs/$SUBDECK_RUN\" && until mkdir status.json; do rm -f status.json; done; echo last";
    let plan = format!(
        "[[step]]\nid = \"a\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", {attack:?}] }}\n\
         [[step]]\nid = \"b\"\nrunner = {{ type = \"external-cli\", command = \"echo\", args = [\"bee\"] }}\n"
    );
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 7, "{done:?}");
    assert!(done.stdout.contains("complete  (2 of 2 steps") && done.stdout.contains("bee"), "{done:?}");
    assert!(done.stderr.contains("status.json could not be written; events.jsonl has its end"), "{done:?}");
    assert!(!done.stderr.contains("died") && !done.stderr.contains("lost"), "{done:?}");
    let runs = std::fs::read_dir(world.root().join("async-subagent-runs")).unwrap();
    let mut names = runs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Names of indexes begin with a dot.
    let other = names.find(|name| name != before.id() && !name.starts_with('.')).expect("another run");
    let run = world.run(&other);
    assert_eq!(run.events_of("subagent.run.completed").len(), 1, "the end is told once");
    for (args, code) in [(["status", "@last"], 1), (["wait", "@last"], 7)] {
        let done = world.output(&args);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
        assert!(done.stderr.contains(&format!("the status of run {} is unreadable", run.id())), "{args:?}: {done:?}");
    }
}

#[test]
fn ls_never_hides_what_it_cannot_read_and_says_what_it_hides() {
    let world = World::new();
    for n in 0..25u64 {
        let id = format!("{n:02}done-1");
        put(&world, &id, &ended(&id, 1_000 + n));
    }
    let old = put(&world, "zzzz-1", "{bad");
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::open(old).unwrap().set_modified(long_ago).unwrap();
    put(&world, "yyyy-1", "{bad");
    let done = world.output(&["ls"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.matches("  complete  ").count(), 20, "{done:?}");
    assert!(done.stdout.contains("zzzz-1  ") && done.stdout.contains("24done-1"), "{done:?}");
    assert!(!done.stdout.contains("00done-1"), "{done:?}");
    // By the time of its directory it is the newest.
    assert!(done.stdout.lines().nth(1).unwrap().starts_with("yyyy-1"), "{done:?}");
    assert!(done.stderr.contains("5 more, --all shows them"), "{done:?}");
    let all = world.output(&["ls", "--all"]);
    assert_eq!((all.stdout.lines().count(), all.stderr.contains("more")), (28, false), "{all:?}");
}

#[test]
fn ls_says_what_is_wrong_with_a_root() {
    let world = World::new();
    std::fs::write(world.root(), "").unwrap();
    let done = world.output(&["ls"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("it is not a folder") && !done.stderr.contains("no runs yet"), "{done:?}");
    std::fs::remove_file(world.root()).unwrap();
    put(&world, "aaaa-1", &ended("aaaa-1", 1));
    std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let done = world.output(&["ls"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("aaaa-1") && done.stderr.contains("others may write into it"), "{done:?}");
}

#[test]
fn looking_needs_no_current_folder_and_starting_does() {
    let world = World::new();
    put(&world, "aaaa-1", &ended("aaaa-1", 1));
    let from_nowhere = |args: &[&str]| {
        let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
        let subdeck = world.subdeck(args);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(subdeck.get_program()).args(subdeck.get_args());
        shell
            .current_dir(world.project())
            .env_remove("CI")
            .env("HOME", world.project())
            .env("SUBDECK_ROOT", world.root());
        Done::of(shell.output().unwrap())
    };
    for args in [&["ls"][..], &["status", "aaaa-1"]] {
        let done = from_nowhere(args);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.contains("aaaa-1"), "{done:?}");
    }
    let done = from_nowhere(&["run", "--detach", "--", "true"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("the current folder cannot be used"), "{done:?}");
}

/// The folder of another user is closed in the same way; a tester who is root would be let in there.
#[test]
fn a_root_that_cannot_be_listed_is_not_an_empty_one() {
    let world = World::new();
    std::fs::DirBuilder::new().mode(0o700).create(world.root()).unwrap();
    let runs = world.root().join("async-subagent-runs");
    std::fs::write(&runs, "").unwrap();
    for args in [&["ls"][..], &["ls", "--all", "--json"]] {
        let done = world.output(args);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stderr.contains("cannot be listed: ") && !done.stderr.contains("no runs yet"), "{done:?}");
    }
    // One that is not there has none yet, and one that is closed beside it hides nothing.
    std::fs::remove_file(&runs).unwrap();
    let done = world.output(&["ls"]);
    assert!(done.code == 0 && done.stderr.contains("no runs yet"), "{done:?}");
}
