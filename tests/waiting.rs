//! `subdeck wait`, as scripts use it.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Done, World, wait_for};

/// A run that another program supervises, as far as its status says; that program is this test.
fn foreign(world: &World, steps: &Value) -> PathBuf {
    let dir = world.project().join("runs/5a1c0f3e-0000-4000-8000-000000000001");
    std::fs::create_dir_all(&dir).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let status = json!({
        "runId": "5a1c0f3e-0000-4000-8000-000000000001", "mode": "parallel", "state": "running",
        "pid": std::process::id(), "startedAt": now as u64, "lastUpdate": now as u64, "cwd": world.project(), "steps": steps,
    });
    let temp = dir.join(".status.tmp");
    std::fs::write(&temp, status.to_string()).unwrap();
    std::fs::rename(&temp, dir.join("status.json")).unwrap();
    dir
}

#[test]
fn who_needs_a_person_is_waited_for_and_told() {
    let world = World::new();
    let calm = json!([{ "agent": "scout", "status": "running" }, { "agent": "worker", "status": "running" }]);
    let dir = foreign(&world, &calm);
    let path = dir.to_str().unwrap();
    let done = world.output(&["wait", path, "--for", "attention", "--timeout", "50ms"]);
    assert_eq!((done.code, done.stdout.as_str()), (8, ""), "{done:?}");

    let child = world.subdeck(&["wait", path, "--for", "attention"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut raised = calm.clone();
    raised[1]["activityState"] = "needs_attention".into();
    foreign(&world, &raised);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.starts_with("2 worker: "), "{done:?}");
    assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    let listed = world.output(&["status", path]);
    assert!(listed.stdout.contains("needs a person: 2 worker: "), "{listed:?}");

    // What a file says of a step that does not run any more is left over.
    raised[1]["status"] = "complete".into();
    foreign(&world, &raised);
    let done = world.output(&["wait", path, "--for", "attention", "--timeout", "50ms"]);
    assert_eq!((done.code, done.stdout.as_str()), (8, ""), "{done:?}");
}

#[test]
fn a_silent_step_is_told_by_everything_that_tells_of_a_run() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        "attention = { idle = \"1ms\" }\n[[step]]\nid = \"mute\"\nrunner = { command = \"sleep\", args = [\"60\"] }\n",
    );
    let run = world.detach(&[plan.to_str().unwrap()]);
    let done = world.output(&["wait", run.id(), "--for", "attention"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert!(done.stdout.starts_with("1 mute: idle: no observed activity for "), "{done:?}");
    let listed = world.output(&["ls"]).stdout;
    assert!(listed.contains("  mute: idle  "), "{listed}");
    let text = world.output(&["status", run.id()]).stdout;
    assert!(text.contains("needs a person: 1 mute: idle: no observed activity for "), "{text}");
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    let (need, notice) = (&status["needs"][0], &status["steps"][0]["notices"][0]);
    assert_eq!((&need["step"], &need["id"], &need["reason"]), (&json!(1), &json!("mute"), &json!("idle")));
    assert_eq!((&need["attention"], &need["since"]), (&notice["attention"], &notice["since"]));
    assert_eq!((&notice["level"], &notice["times"]), (&json!("needs"), &json!(1)));
    // An ended step needs nobody.
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    assert_eq!(status["needs"], json!([]));
    let told = world.output(&["attach", "--no-tui", run.id()]).stdout;
    assert!(told.contains("▲ idle: no observed activity for "), "{told}");
}

#[test]
fn a_run_that_ends_without_it_says_so_and_has_its_own_code() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "exit 3"]);
    for goal in ["attention", "paused"] {
        let done = world.output(&["wait", run.id(), "--for", goal]);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
        assert!(done.stderr.contains("the run is failed; what --for names was not reached"), "{done:?}");
    }
    let done = world.output(&["wait", run.id(), "--for", "idle"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    let done = world.output(&["wait", run.id(), "--for", "nothing"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("complete, attention, idle"), "{done:?}");
}

#[test]
fn a_state_is_waited_for() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    assert_eq!(world.output(&["wait", run.id(), "--for", "running"]).code, 0);
    let child = world.subdeck(&["wait", run.id(), "--for", "stopped"]).stdout(Stdio::piped()).spawn().unwrap();
    run.wait_output(0, "up");
    assert_eq!(world.output(&["stop", run.id()]).code, 0);
    assert_eq!(Done::of(child.wait_with_output().unwrap()).code, 0);
    wait_for("the end", || (world.output(&["wait", run.id()]).code == 3).then_some(()));
}
