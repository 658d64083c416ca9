//! Results, their indexes and marks, sessions and owners (numbers 1 to 3 and 7 to 10).

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::{Done, Run, World, files_below, signal, wait_child, wait_for};
use crate::{configured, held_back, marker, pending, public, read, results, run_log};

#[test]
fn check_01_a_result_goes_from_pending_by_its_index_to_public() {
    let world = World::new();
    let run = configured(&world, json!({ "sessionId": "/home/demo/sessions/parent.jsonl" }));
    run.wait_end();
    let result = read(public(&world, &run)).unwrap();
    assert_eq!(
        (&result["state"], &result["sessionId"]),
        (&"complete".into(), &"/home/demo/sessions/parent.jsonl".into())
    );
    assert!(files_below(&results(&world).join("result-pending")).is_empty());
    // The session is a path and so its folder is a hash (run-directory 1.3, the value of the table there).
    let bucket = "~sha256-3f867d9c13e7737350e9baa82739f884eb0b4611d0238e3783fec9cb710b42b2";
    let name = format!("{}.json", run.id());
    for folder in [format!("sessions/{bucket}"), "runs".to_owned()] {
        let entry = read(results(&world).join("result-index").join(&folder).join(&name)).expect(&folder);
        assert_eq!((&entry["file"], &entry["runId"]), (&name.as_str().into(), &run.id().into()), "{folder}");
    }
}

/// What keeps the last of the three steps from being made shows the two before it.
#[test]
fn check_01_a_result_that_cannot_become_public_stays_pending_and_is_found_by_its_index() {
    let world = World::new();
    let run = configured(&world, held_back());
    let obstacle = public(&world, &run);
    fs::create_dir_all(obstacle.join("in the way")).unwrap();
    world.file("go", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "it has a result: {status}");
    let entry =
        read(results(&world).join("result-index/sessions/a-session").join(format!("{}.json", run.id()))).unwrap();
    assert_eq!((&entry["runId"], &entry["sessionId"]), (&run.id().into(), &"a-session".into()));
    assert_eq!(entry["file"], obstacle.file_name().unwrap().to_str().unwrap());
    let left = results(&world).join("result-pending/a-session").join(format!("{}.json", run.id()));
    let result = read(left).unwrap();
    assert_eq!((&result["state"], &result["success"]), (&"complete".into(), &true.into()));
    assert!(obstacle.is_dir());
}

/// The reference fails such a run, because a result needs a session. Ours gives it a session of its own
/// (runner-behaviour 14.27), so that nothing is lost; it is found by it like any other. What becomes of a run that has none
/// all the same, and that its error names the result, is tried where one can be made: `engine::recorder::tests`.
#[test]
fn check_02_a_run_without_a_session_gets_one_of_its_own() {
    let world = World::new();
    let run = configured(&world, json!({}));
    let status = run.wait_end();
    let session = format!("subdeck-{}", run.id());
    assert_eq!((&status["state"], &status["sessionId"]), (&"complete".into(), &session.as_str().into()));
    let result = read(public(&world, &run)).unwrap();
    assert_eq!((&result["state"], &result["sessionId"]), (&"complete".into(), &session.as_str().into()));
    let entry = results(&world).join("result-index/sessions").join(&session).join(format!("{}.json", run.id()));
    assert_eq!(read(entry).unwrap()["runId"], run.id());
    assert_eq!(world.output(&["wait", run.id()]).code, 0);
}

#[test]
fn check_03_the_owner_of_the_completion_stands_in_status_and_result() {
    let world = World::new();
    let owner = "7d9c6a52-2f63-4d0e-8f0e-0e3d5b1d4c11";
    let run = configured(&world, json!({ "sessionId": "s", "completionOwnerId": owner }));
    let status = run.wait_end();
    assert_eq!(status["completionOwnerId"], owner);
    assert_eq!(read(public(&world, &run)).unwrap()["completionOwnerId"], owner);
}

#[test]
fn check_07_the_marker_of_a_live_run_follows_its_status() {
    let world = World::new();
    let mut seen = 0;
    for _ in 0..5 {
        let runs = world.root().join("async-subagent-runs");
        let known: Vec<_> = fs::read_dir(&runs).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
        let mut child =
            world.subdeck(&["run", "--detach", "--", "sleep", "0.1"]).stdout(Stdio::piped()).spawn().unwrap();
        // From before there is a directory until the end: a marker is never seen without a status.
        let dir = wait_for("a run directory", || {
            let dirs = fs::read_dir(&runs).ok()?.flatten().map(|e| e.file_name());
            dirs.filter(|n| !n.to_string_lossy().starts_with('.')).find(|n| !known.contains(n))
        });
        let run = world.run(dir.to_str().unwrap());
        wait_for("the end of the run", || {
            if marker(&world, &run).exists() {
                seen += 1;
                assert!(run.dir.join("status.json").exists(), "a marker without a status");
            }
            run_log(&run).exists().then_some(())
        });
        assert!(!marker(&world, &run).exists(), "the marker of a run that has ended");
        assert!(wait_child(&mut child).success());
    }
    assert!(seen > 0, "a marker was there while a run lived");
}

/// With the keeper alive the loss would be recorded, with a result that says so; so it is killed too.
#[test]
fn check_08_a_paused_run_whose_runner_is_killed_has_a_recoverable_result() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "trap '' INT TERM; echo up; while :; do sleep 0.05; done"]);
    run.wait_output(0, "up");
    let identity = read(run.dir.join("subdeck/runner.json")).unwrap();
    let keeper = u32::try_from(identity["keeperPid"].as_u64().unwrap()).unwrap();
    let runner = run.runner_pid();
    run.control("interrupt.json", "{}");
    // The child ignores what it is asked, so there are seconds between the pause and the end of the run.
    let status = run.wait("the pause", |s| s["state"] == "paused");
    signal(keeper, "-STOP");
    signal(runner, "-KILL");
    signal(keeper, "-KILL");
    assert!(status["endedAt"].is_null(), "it was still pausing: {status}");
    let result = pending(&world).expect("a pending result");
    assert_eq!(
        (&result["state"], &result["success"], &result["exitCode"]),
        (&"paused".into(), &false.into(), &0.into())
    );
    assert_eq!(result["results"].as_array().unwrap().len(), 1, "with what became of each step");
    let session = run.status()["sessionId"].as_str().unwrap().to_owned();
    let entry = results(&world).join("result-index/sessions").join(session).join(format!("{}.json", run.id()));
    assert_eq!(read(entry).unwrap()["runId"], run.id());
    assert!(!public(&world, &run).exists());
    // So it is a paused run and not a lost one; what it left can be found and ended like that of a lost one.
    assert_eq!(world.output(&["wait", run.id()]).code, 4);
    let shown = world.output(&["status", run.id()]);
    assert!(shown.stdout.contains(": paused  (") && shown.stdout.contains("still alive"), "{shown:?}");
    let refused = world.output(&["retry", run.id()]);
    assert!(refused.code == 2 && refused.stderr.contains("live on"), "{refused:?}");
    assert_eq!(world.output(&["stop", run.id()]).code, 0);
    world.wait_until_empty();
}

#[test]
fn check_09_a_terminal_status_is_never_seen_without_a_result() {
    let world = World::new();
    for script in ["true", "exit 3", "true", "sleep 0.05"] {
        let run = world.detach(&["--", "sh", "-c", script]);
        wait_for("a terminal status", || {
            let status = run.status();
            let over = status["state"] != "running";
            // The pending result becomes the public one, so whoever misses both looks at the public one again.
            let result =
                || read(public(&world, &run)).or_else(|| pending(&world)).or_else(|| read(public(&world, &run)));
            assert!(!over || result().is_some(), "{script}: {status} and no result");
            over.then_some(())
        });
        run.wait_end();
        // Seen or not: what is public was written, and named, before the last status was.
        let written = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        let status = written(run.dir.join("status.json"));
        let session = run.status()["sessionId"].as_str().unwrap().to_owned();
        let entry = results(&world).join("result-index/sessions").join(session).join(format!("{}.json", run.id()));
        assert!(written(public(&world, &run)) <= status && written(entry) <= status, "{script}");
    }
}

/// A run in front whose child goes on until there is a file `go`.
fn in_front(world: &World) -> (Child, Run) {
    let script = "echo up; while [ ! -e go ]; do sleep 0.02; done";
    let mut command = world.subdeck(&["run", "--no-tui", "--", "sh", "-c", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    (child, run)
}

#[test]
fn check_10_a_result_that_cannot_be_written_makes_the_run_failed() {
    let world = World::new();
    let (child, run) = in_front(&world);
    // A file where a folder must be; modes would not keep a superuser out.
    let obstacle = results(&world).join("result-pending");
    fs::create_dir_all(results(&world)).unwrap();
    fs::write(&obstacle, "").unwrap();
    world.file("go", "");
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 1, "the run is recorded, as failed: {done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"failed".into(), &"complete".into()));
    let error = status["error"].as_str().unwrap();
    assert!(error.contains(obstacle.to_str().unwrap()) && error.contains("Not a directory"), "{error}");
    let told = run.events_of("subagent.run.completed");
    assert_eq!((told.len(), &told[0]["status"]), (1, &"failed".into()));
    assert!(!public(&world, &run).exists());
}

/// Beside the table: when not even the status can be written, the run is not recorded, and whoever waits learns that.
#[test]
fn check_10_an_end_that_cannot_be_recorded_exits_with_7() {
    let world = World::new();
    let (child, run) = in_front(&world);
    let status = run.dir.join("status.json");
    wait_for("a status that is a folder", || {
        let _ = fs::remove_file(&status);
        fs::create_dir_all(status.join("in the way")).ok()
    });
    world.file("go", "");
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 7, "{done:?}");
    assert!(done.stderr.contains("the end of the run could not be recorded"), "{done:?}");
    let says = fs::read_to_string(run.dir.join("runner.stderr.log")).unwrap();
    assert!(says.contains("status.json"), "{says}");
    world.wait_until_empty();
}
