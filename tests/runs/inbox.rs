//! Requests: those that are odd, too many, late, or of no run.

use super::*;

#[test]
fn odd_things_in_the_inbox_do_not_delay_a_stop_and_a_bad_request_is_set_aside() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    let steers = run.dir.join("control/steer-requests");
    let fifo = steers.join("0000000000001-Zmlmbw.json");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", steers.join("0000000000002-bGluaw.json")).unwrap();
    let huge = std::fs::File::create(steers.join("0000000000003-aHVnZQ.json")).unwrap();
    huge.set_len(1 << 30).unwrap();
    run.control("steer-requests/0000000000004-YmFk.json", "{ not json");
    wait_for("the refusals", || (run.events_of("subdeck.control.rejected").len() >= 4).then_some(()));
    // An empty file stops a run: these act on existence.
    run.control("stop.json", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "stopped");
    let by = &status["subdeck"]["endedBy"];
    let user = by["user"].as_str().unwrap();
    assert_eq!(by["via"], format!("unknown (an empty file owned by {user})"));
    let told = run.events_of("subdeck.control.unannounced");
    assert_eq!((told.len(), &told[0]["what"], &told[0]["source"]), (1, &"stop".into(), by));
    let shown = world.output(&["attach", "--no-tui", run.id()]).stdout;
    assert!(shown.contains("no deck or command announced this stop: it came from unknown (an empty"), "{shown}");
    let rejected = run.dir.join("control/rejected");
    assert!(rejected.join("0000000000004-YmFk.json").exists());
    let reasons = files_below(&rejected).iter().filter(|p| p.extension().is_some_and(|e| e == "reason")).count();
    assert_eq!(reasons, 4);
    world.wait_until_empty();
}

#[test]
fn a_flood_of_requests_does_not_delay_a_stop() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    // While the runner is frozen, all can be put there: it meets them at one look.
    signal(run.runner_pid(), "-STOP");
    for n in 0..2000 {
        std::fs::write(run.dir.join(format!("control/steer-requests/{n:013}-eA.json")), "{").unwrap();
    }
    run.control("stop.json", "");
    signal(run.runner_pid(), "-CONT");
    assert_eq!(run.wait_end()["state"], "stopped");
    let kinds: Vec<_> = run.events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    let signalled = kinds.iter().position(|k| k == "subdeck.signal.sent").unwrap();
    let before = kinds[..signalled].iter().filter(|k| *k == "subdeck.control.rejected").count();
    assert!(before < 2000, "the child got its signal before the runner had looked at every request: {before}");
    world.wait_until_empty();
}

#[test]
fn a_folder_that_holds_no_run_gets_no_request() {
    let world = World::new();
    for command in ["stop", "interrupt", "status"] {
        let done = world.output(&[command, "."]);
        assert_eq!(done.code, 2, "{command}: {done:?}");
        assert!(done.stderr.contains("is no run directory"), "{command}: {done:?}");
    }
    assert!(!world.project().join("control").exists());
}

#[test]
fn a_request_that_is_written_slowly_is_taken_when_it_is_whole() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 300"]);
    run.wait_output(0, "up");
    let path = run.dir.join("control/stop-requests/slow.json");
    wait_for("the inbox", || path.parent().unwrap().is_dir().then_some(()));
    std::fs::write(&path, "{\"type\":\"stop\",").unwrap();
    // Something else in the inbox makes the runner look meanwhile.
    run.control("subdeck-requests/1-odd.json", "{}");
    run.wait("the other one", |s| s["subdeck"]["rejected"].as_array().is_some_and(|r| !r.is_empty()));
    assert!(path.exists(), "it is left alone");
    std::fs::write(&path, "{\"type\":\"stop\",\"targetIndex\":0}").unwrap();
    assert_eq!(run.wait_end()["steps"][0]["status"], "stopped");
    world.wait_until_empty();
}
