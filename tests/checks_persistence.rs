//! The persistence checks of the behaviour specification (runner-behaviour 13, numbers 1 to 13), by the binary and a
//! scripted child. Where Subdeck differs by design the check says so.

#[path = "support/full_disk.rs"]
#[allow(dead_code)]
mod full_disk;
#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use full_disk::{SmallDisk, on_a_small_disk};
use serde_json::{Value, json};
use support::{Done, Run, World, files_below, signal, wait_child, wait_for};

fn read(path: PathBuf) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn results(world: &World) -> PathBuf {
    world.root().join("async-subagent-results")
}

fn public(world: &World, run: &Run) -> PathBuf {
    results(world).join(format!("{}.json", run.id()))
}

fn marker(world: &World, run: &Run) -> PathBuf {
    world.root().join("async-subagent-runs/.active-runs").join(run.id())
}

fn closed(run: &Run) -> PathBuf {
    run.dir.join("control/steer-inbox-closed.json")
}

fn run_log(run: &Run) -> PathBuf {
    run.dir.join(format!("subagent-log-{}.md", run.id()))
}

/// The pending result of a run, found as a reader finds it: by the entry of its session.
fn pending(world: &World) -> Option<Value> {
    files_below(&results(world).join("result-pending")).into_iter().find_map(read)
}

/// Starts a run from a runner config of pi-subagents with one child.
fn configured(world: &World, more: Value) -> Run {
    let id = "0b8f2c1e-6d1f-4e57-9d0a-2f6f3f3f9a10";
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let mut config = json!({
        "id": id,
        "cwd": world.project(),
        "placeholder": "{previous}",
        "asyncDir": world.root().join("async-subagent-runs").join(id),
        "resultPath": results(world).join(format!("{id}.json")),
        "steps": [{
            "agent": "worker", "task": "Go.", "inheritProjectContext": false, "inheritSkills": false,
            "runner": { "type": "external-cli", "command": "sh", "args": [agent, "ok"] },
        }],
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = world.file("config.json", &config.to_string());
    world.detach(&[path.to_str().unwrap()])
}

/// The fields of a config whose only child goes on until there is a file `go`.
fn held_back() -> Value {
    let script = "while [ ! -e go ]; do sleep 0.02; done; echo done";
    json!({ "sessionId": "a-session", "steps": [{
        "agent": "worker", "task": "Go.", "inheritProjectContext": false, "inheritSkills": false,
        "runner": { "type": "external-cli", "command": "sh", "args": ["-c", script] },
    }] })
}

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

/// A run in the foreground whose child waits, with a word on the disk, until the file `go` is there.
fn held(disk: &SmallDisk) -> (Child, Run) {
    let script = "echo before; while [ ! -e go ]; do sleep 0.02; done; seq 1500 >&2";
    let child = disk
        .world
        .subdeck(&["run", "--no-tui", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = disk.world.only_run();
    run.wait_output(0, "before");
    run.wait("the child in the status", |s| s["steps"][0]["externalProcess"]["pid"].is_number());
    (child, run)
}

fn child_pid(run: &Run) -> u32 {
    u32::try_from(run.status()["steps"][0]["externalProcess"]["pid"].as_u64().unwrap()).unwrap()
}

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Fills the disk while the child runs and lets the child end.
fn end_on_a_full_disk(disk: &SmallDisk) -> (Child, Run) {
    let (child, run) = held(disk);
    let pid = child_pid(&run);
    disk.fill();
    disk.world.file("go", "");
    wait_for("the end of the child", || (!lives(pid)).then_some(()));
    (child, run)
}

#[test]
fn check_04_a_full_disk_delays_the_end_and_loses_nothing() {
    on_a_small_disk("check_04_a_full_disk_delays_the_end_and_loses_nothing", |disk| {
        let (mut command, run) = end_on_a_full_disk(disk);
        let runner = run.runner_pid();
        // For five seconds, so several tries: the runner lives and tells nothing of an end.
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            assert!(lives(runner) && command.try_wait().unwrap().is_none());
            assert_eq!(run.status()["state"], "running");
            let told = fs::read_to_string(run.dir.join("events.jsonl")).unwrap();
            assert!(!public(&disk.world, &run).exists() && !told.contains("subagent.run.completed"));
            std::thread::sleep(Duration::from_millis(100));
        }
        disk.free();
        let status = wait_child(&mut command);
        let done = Done::of(command.wait_with_output().unwrap());
        assert_eq!(support::code(status), 0, "the exit code is that of the child's success: {done:?}");
        assert!(done.stdout.contains(": complete  (1 of 1 steps"), "{done:?}");
        assert_eq!(run.status()["state"], "complete");
        assert_eq!(read(public(&disk.world, &run)).unwrap()["success"], true);
        assert!(run_log(&run).exists() && !marker(&disk.world, &run).exists());
        let printed = fs::read_to_string(run.dir.join("external-0.stderr.log")).unwrap();
        assert!(printed.lines().count() == 1500 && printed.ends_with("\n1500\n"), "{printed}");
        assert!(run.events_of("subdeck.log.failed").is_empty());
        // Each line is whole, also the one that was being written when the room ended.
        assert_eq!(run.events_of("subagent.run.completed").len(), 1);
        disk.world.wait_until_empty();
    });
}

/// The launcher makes the directory and so can only say that there is no room, leaving nothing half-made; a runner whose
/// first documents lack room waits for it like for all others.
#[test]
fn check_05_without_room_at_the_start_nothing_is_half_made() {
    on_a_small_disk("check_05_without_room_at_the_start_nothing_is_half_made", |disk| {
        disk.fill();
        for more in ["--no-tui", "--detach"] {
            let done = disk.world.output(&["run", more, "--", "true"]);
            assert_eq!(done.code, 7, "{done:?}");
            assert!(done.stderr.contains("No space left") && done.stderr.contains("async-subagent-runs"), "{done:?}");
            let made = fs::read_dir(disk.world.root().join("async-subagent-runs")).unwrap();
            assert_eq!(made.count(), 0, "no directory of a run that never began");
        }
        disk.free();
        let done = disk.world.output(&["run", "--no-tui", "--", "true"]);
        assert_eq!(done.code, 0, "{done:?}");
    });
}

/// Whatever room there is at the start: a run is refused and leaves nothing half-made, or it waits for room, also with its
/// very first status, and is whole afterwards.
#[test]
fn check_05_a_run_that_lacks_room_for_its_first_documents_waits_for_it() {
    on_a_small_disk("check_05_a_run_that_lacks_room_for_its_first_documents_waits_for_it", |disk| {
        let runs = disk.world.root().join("async-subagent-runs");
        let dirs = || {
            let dirs = fs::read_dir(&runs).into_iter().flatten().flatten().map(|e| e.path());
            dirs.filter(|p| p.is_dir() && !p.file_name().unwrap().to_string_lossy().starts_with('.'))
                .collect::<Vec<_>>()
        };
        let (mut refused, mut without_status) = (0, 0);
        for pages in 0..14 {
            disk.fill();
            disk.give(pages);
            let mut command = disk.world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo said"]);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let began = wait_for("a refusal or a runner", || match child.try_wait().unwrap() {
                Some(_) => Some(None),
                None => dirs().into_iter().find(|dir| dir.join("runner.stdout.log").exists()).map(Some),
            });
            // It has tried to write its first status by now; what is left of a try gives no room to the next one.
            if began.is_some() {
                disk.fill();
            }
            let first = began.filter(|_| child.try_wait().unwrap().is_none());
            let waits = first.as_ref().is_some_and(|dir| !dir.join("status.json").exists());
            disk.free();
            let done = Done::of(child.wait_with_output().unwrap());
            match first {
                None if done.code == 7 => {
                    refused += 1;
                    assert!(done.stderr.contains("No space left"), "{pages}: {done:?}");
                    assert!(dirs().is_empty(), "{pages}: no directory of a run that never began");
                }
                _ => {
                    without_status += u32::from(waits);
                    assert_eq!(done.code, 0, "{pages}: {done:?}");
                    let run = disk.world.run(dirs()[0].file_name().unwrap().to_str().unwrap());
                    let status = run.wait_end();
                    assert_eq!((&status["state"], &status["steps"][0]["exitCode"]), (&"complete".into(), &0.into()));
                    assert_eq!(read(public(&disk.world, &run)).unwrap()["success"], true, "{pages}");
                    assert_eq!(run.events_of("subagent.run.started").len(), 1, "{pages}");
                    assert_eq!(run.events_of("subagent.run.completed").len(), 1, "{pages}");
                    assert!(read(run.dir.join("subdeck/runner.json")).unwrap()["pid"].is_number(), "{pages}");
                    assert_eq!(fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap(), "said\n", "{pages}");
                }
            }
            disk.world.wait_until_empty();
            disk.empty();
        }
        assert!(
            refused > 0 && without_status > 0,
            "{refused} were refused, {without_status} waited with their first status"
        );
    });
}

/// That of the states in between none is written, not even for a moment, is tried where every write can be seen:
/// `engine::recorder::tests`.
#[test]
fn check_06_only_the_newest_state_is_written_when_there_is_room_again() {
    on_a_small_disk("check_06_only_the_newest_state_is_written_when_there_is_room_again", |disk| {
        let step = |n: usize| {
            let script = format!("touch at{n}; while [ ! -e go{n} ]; do sleep 0.02; done");
            format!(
                "[[step]]\nid = \"s{n}\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }}\n"
            )
        };
        let plan: String = (1..=7).map(step).collect();
        let plan = disk.world.file("plan.toml", &plan);
        let run = disk.world.detach(&[plan.to_str().unwrap()]);
        let at = |n: usize| {
            let mark = disk.world.project().join(format!("at{n}"));
            wait_for("the child of the next step", || mark.exists().then_some(()));
        };
        at(1);
        // The quickest of several, because the machine may be busy with something else.
        let mut quickest = Duration::MAX;
        for first in [1, 3, 5] {
            run.wait("the child in the status", |s| s["steps"][first - 1]["externalProcess"]["pid"].is_number());
            disk.fill();
            let before = run.status();
            for n in [first, first + 1] {
                disk.world.file(&format!("go{n}"), "");
                at(n + 1);
            }
            assert_eq!(run.status(), before, "there is no room for another status");
            disk.free();
            let freed = Instant::now();
            // Two steps have ended since; of all the states in between none is written any more.
            let after = run.wait("another status", |s| *s != before);
            quickest = quickest.min(freed.elapsed());
            let words: Vec<_> =
                after["steps"].as_array().unwrap().iter().map(|s| s["status"].as_str().unwrap()).collect();
            let want = |n: usize| {
                if n < first + 1 {
                    "complete"
                } else if n == first + 1 {
                    "running"
                } else {
                    "pending"
                }
            };
            assert_eq!(words, (0..7).map(want).collect::<Vec<_>>());
        }
        assert!(quickest < Duration::from_millis(1500), "tried again each second: {quickest:?}");
        // What is written at the end needs more room than there is.
        disk.grow();
        disk.world.file("go7", "");
        assert_eq!(run.wait_end()["state"], "complete");
    });
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

#[test]
fn check_11_the_log_of_the_run_comes_when_there_is_room() {
    on_a_small_disk("check_11_the_log_of_the_run_comes_when_there_is_room", |disk| {
        let (mut command, run) = end_on_a_full_disk(disk);
        assert!(!run_log(&run).exists());
        disk.free();
        assert!(wait_child(&mut command).success());
        let log = fs::read_to_string(run_log(&run)).unwrap();
        assert!(log.contains("## Steps") && log.contains("| complete"), "{log}");
    });
}

#[test]
fn check_12_the_closed_inbox_is_marked_also_after_a_full_disk() {
    on_a_small_disk("check_12_the_closed_inbox_is_marked_also_after_a_full_disk", |disk| {
        let (mut command, run) = end_on_a_full_disk(disk);
        assert!(!closed(&run).exists());
        disk.free();
        assert!(wait_child(&mut command).success());
        assert_eq!(read(closed(&run)).unwrap()["state"], "complete");
        let world = World::new();
        let run = world.detach(&["--", "true"]);
        run.wait_end();
        assert_eq!(read(closed(&run)).unwrap()["state"], "complete", "and on a disk with room");
    });
}

#[test]
fn check_13_a_runner_with_nothing_left_to_write_goes_at_once() {
    let world = World::new();
    // The quickest of several, because the machine may be busy with something else.
    let quickest = (0..5).map(|_| {
        let run = world.detach(&["--", "true"]);
        let runner = run.runner_pid();
        wait_for("the end of the runner", || (!lives(runner)).then_some(()));
        let written = fs::metadata(run_log(&run)).unwrap().modified().unwrap();
        SystemTime::now().duration_since(written).unwrap_or_default()
    });
    let quickest = quickest.min().unwrap();
    assert!(quickest < Duration::from_secs(1), "{quickest:?} after the log");
}

/// The same after a time without room: with the last thing written the runner goes.
#[test]
fn check_13_a_runner_that_waited_for_room_goes_as_soon_as_all_is_written() {
    on_a_small_disk("check_13_a_runner_that_waited_for_room_goes_as_soon_as_all_is_written", |disk| {
        let quickest = (0..3).map(|_| {
            let (mut command, run) = end_on_a_full_disk(disk);
            let runner = run.runner_pid();
            disk.free();
            wait_for("the end of the runner", || (!lives(runner)).then_some(()));
            let written = fs::metadata(run_log(&run)).unwrap().modified().unwrap();
            let late = SystemTime::now().duration_since(written).unwrap_or_default();
            assert!(wait_child(&mut command).success());
            fs::remove_file(disk.world.project().join("go")).unwrap();
            disk.empty();
            late
        });
        let quickest = quickest.min().unwrap();
        assert!(quickest < Duration::from_secs(1), "{quickest:?} after the log");
    });
}

/// Beside the table: what a child prints while there is no room waits and is complete afterwards; of more than can wait the
/// rest is missing, which is noted, and neither fails the child.
#[test]
fn output_on_a_full_disk_waits_and_never_fails_the_child() {
    on_a_small_disk("output_on_a_full_disk_waits_and_never_fails_the_child", |disk| {
        for (lines, noted) in [(5000, false), (400_000, true)] {
            let go = format!("go{lines}");
            let printed = format!("printed{lines}");
            let script = format!(
                "echo before; while [ ! -e {go} ]; do sleep 0.02; done; seq {lines}; touch {printed}; while [ ! -e {go}2 ]; do sleep 0.02; done; echo last"
            );
            let run = disk.world.detach(&["--", "sh", "-c", &script]);
            run.wait_output(0, "before");
            disk.fill();
            disk.world.file(&go, "");
            let printed = disk.world.project().join(printed);
            wait_for("a child that printed all", || printed.exists().then_some(()));
            // Room for all of it, so that what can wait can be written.
            disk.grow();
            disk.free();
            disk.world.file(&format!("{go}2"), "");
            let status = run.wait_end();
            assert_eq!((&status["state"], &status["steps"][0]["exitCode"]), (&"complete".into(), &0.into()));
            let log = fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap();
            assert!(log.starts_with("before\n1\n2\n") && log.ends_with("last\n"), "{} bytes", log.len());
            assert_eq!(log.lines().count() < lines + 2, noted, "{} lines of {lines}", log.lines().count());
            assert_eq!(!run.events_of("subdeck.log.failed").is_empty(), noted);
            disk.world.wait_until_empty();
        }
    });
}

/// Beside the table: a stop is a file, and for a file there is no room; the runner itself takes a signal.
#[test]
fn a_run_can_be_stopped_on_a_full_disk() {
    on_a_small_disk("a_run_can_be_stopped_on_a_full_disk", |disk| {
        let run = disk.world.detach(&["--", "sh", "-c", "echo up; sleep 300"]);
        run.wait_output(0, "up");
        run.wait("the child in the status", |s| s["steps"][0]["externalProcess"]["pid"].is_number());
        let child = child_pid(&run);
        disk.fill();
        let done = disk.world.output(&["stop", run.id()]);
        assert_eq!(done.code, 0, "{done:?}");
        wait_for("the end of the child", || (!lives(child)).then_some(()));
        assert_eq!(run.status()["state"], "running", "there is no room to say so");
        let runner = run.runner_pid();
        assert!(lives(runner), "it stays until it can");
        disk.free();
        let status = run.wait_end();
        assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"stopped".into(), &"stopped".into()));
        assert_eq!(status["subdeck"]["endedBy"]["key"], "SIGTERM");
        assert_eq!(disk.world.output(&["wait", run.id()]).code, 3);
        disk.world.wait_until_empty();
    });
}

#[test]
fn a_disk_that_is_nearly_full_is_told_while_there_is_room_to_say_so() {
    on_a_small_disk("a_disk_that_is_nearly_full_is_told_while_there_is_room_to_say_so", |disk| {
        // It is looked at only while something happens, so the child keeps saying something.
        let script = "while [ ! -e go ]; do echo x; sleep 0.1; done";
        let run = disk.world.detach(&["--", "sh", "-c", script]);
        run.wait("the notice", |s| {
            let told = s["steps"][0]["subdeck"]["attention"].as_array();
            told.is_some_and(|told| told.iter().any(|n| n["reason"] == "disk_low"))
        });
        assert!(run.events().iter().any(|e| e["type"] == "subdeck.disk.space" && e["low"] == true));
        disk.world.file("go", "");
        assert_eq!(run.wait_end()["state"], "complete");
        disk.world.wait_until_empty();
    });
}
