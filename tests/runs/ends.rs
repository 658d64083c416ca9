//! How runs end: by signals, stops, limits, failures, and by the death of their processes.

use super::*;

#[test]
fn a_stop_ends_a_child_that_ignores_sigterm_with_everything_below_it() {
    let world = World::new();
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & echo up; while :; do sleep 60; done";
    let run = world.detach(&["--", "sh", "-c", script]);
    run.wait_output(0, "up");
    let begin = Instant::now();
    let done = world.output(&["stop", run.id(), "--wait", "--timeout", "6s"]);
    assert_eq!(done.code, 0, "gone within the six seconds that --timeout gave: {done:?} {:?}", begin.elapsed());
    let status = run.status();
    assert_eq!(status["state"], "stopped");
    assert_eq!(status["error"], "Subagent stopped by user.");
    assert_eq!(status["steps"][0]["status"], "stopped");
    let signals: Vec<_> = run.events_of("subdeck.signal.sent").iter().map(|e| e["signal"].clone()).collect();
    assert_eq!(signals, ["SIGTERM", "SIGKILL"]);
    world.wait_until_empty();
    assert_eq!(world.output(&["wait", run.id()]).code, 3);
}

#[test]
fn ctrl_c_interrupts_then_stops_then_kills() {
    for (presses, want, state) in [(1, 4, "paused"), (2, 3, "stopped"), (3, 3, "stopped")] {
        let world = World::new();
        let script = match presses {
            1 => "echo up; sleep 60",
            _ => "trap '' INT TERM; echo up; while :; do sleep 60; done",
        };
        let mut child = world
            .subdeck(&["run", "--no-tui", "--", "sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let run = world.only_run();
        run.wait_output(0, "up");
        for press in 1..=presses {
            signal(child.id(), "-INT");
            let kind = ["subagent.run.paused", "subagent.run.stopped", "subdeck.step.ending"][press - 1];
            wait_for(kind, || (!run.events_of(kind).is_empty()).then_some(()));
        }
        let status = wait_child(&mut child);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(code(status), want, "after {presses}: {stderr}");
        assert_eq!(run.status()["state"], state);
        if presses == 3 {
            // The kill did not wait for what the stop would have done by itself after its grace.
            let last = run.events_of("subdeck.signal.sent").pop().unwrap();
            assert_eq!((&last["signal"], &last["cause"]), (&"SIGKILL".into(), &"kill".into()));
        }
        world.wait_until_empty();
    }
}

#[test]
fn sigterm_and_sighup_stop_a_run_in_the_foreground() {
    for name in ["-TERM", "-HUP"] {
        let world = World::new();
        let mut child = world
            .subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo up; sleep 60"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        world.only_run().wait_output(0, "up");
        signal(child.id(), name);
        assert_eq!(code(wait_child(&mut child)), 3, "{name}");
        world.wait_until_empty();
    }
}

#[test]
fn a_killed_command_in_front_takes_its_run_with_it() {
    let world = World::new();
    let mut child = world
        .subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo up; sleep 60"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(run.wait_end()["state"], "stopped");
    world.wait_until_empty();
}

#[test]
fn a_killed_runner_leaves_nothing_alive_and_its_run_is_lost() {
    let world = World::new();
    let script = "setsid sh -c 'sleep 60 & sleep 60' & echo up; sleep 60";
    let run = world.detach(&["--", "sh", "-c", script]);
    run.wait_output(0, "up");
    signal(run.runner_pid(), "-KILL");
    // Whoever waits may start the run again: the loss is told only when nothing of it is left.
    assert_eq!(world.output(&["wait", run.id()]).code, 7);
    let left: Vec<_> = world.processes();
    let keeper: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.dir.join("subdeck/runner.json")).unwrap()).unwrap();
    assert!(left.iter().all(|pid| keeper["keeperPid"] == *pid), "{left:?}");
    let status = run.wait_end();
    world.wait_until_empty();
    assert_eq!(status["state"], "failed");
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("was killed by signal SIGKILL"), "{error}");
    assert_eq!(run.events_of("subagent.run.repaired_stale").len(), 1);
    assert_eq!(world.output(&["wait", run.id()]).code, 7);
    let listed = world.output(&["ls"]);
    assert!(listed.stdout.contains("lost"), "{listed:?}");
}

#[test]
fn the_result_of_a_lost_run_says_so_whatever_was_asked_before() {
    for asked in [None, Some("interrupt"), Some("stop")] {
        let world = World::new();
        let script = "trap '' INT TERM; echo up; while :; do sleep 0.1; done";
        let run = world.detach(&["--", "sh", "-c", script]);
        run.wait_output(0, "up");
        if let Some(asked) = asked {
            assert_eq!(world.output(&[asked, run.id()]).code, 0, "{asked}");
            wait_for("the first signal", || (!run.events_of("subdeck.signal.sent").is_empty()).then_some(()));
        }
        signal(run.runner_pid(), "-KILL");
        run.wait("its loss", |status| status["endedAt"].is_number());
        world.wait_until_empty();
        let path = world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
        let result: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let summary = result["summary"].as_str().unwrap();
        assert!(summary.contains("was killed by signal SIGKILL"), "{asked:?}: {summary}");
    }
}

#[test]
fn one_step_of_a_group_can_be_stopped_while_its_siblings_go_on() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        parallel = [
          { id = "a", runner = { type = "external-cli", command = "sh", args = ["-c", "echo up; sleep 60"] } },
          { id = "b", runner = { type = "external-cli", command = "sh", args = ["-c", "echo up; while [ ! -e go ]; do sleep 0.02; done"] } },
        ]
        "#,
    );
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait_output(0, "up");
    run.wait_output(1, "up");
    let done = world.output(&["stop", &format!("{}:a", run.id()), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(run.status()["steps"][1]["status"], "running");
    world.file("go", "");
    let status = run.wait_end();
    assert_eq!(status["steps"][0]["status"], "stopped");
    assert_eq!(status["steps"][1]["status"], "complete");
    assert_eq!(status["state"], "stopped", "somebody wanted it so, and nothing failed");
}

#[test]
fn fail_fast_skips_what_has_not_started_and_the_chain_stops() {
    let world = World::new();
    let step = |script: &str| {
        format!(r#"{{ runner = {{ type = "external-cli", command = "sh", args = ["-c", "{script}"] }} }}"#)
    };
    let plan = world.file(
        "plan.toml",
        &format!(
            "[[step]]\nconcurrency = 1\nfail_fast = true\nparallel = [{}, {}]\n[[step]]\nid = \"after\"\nrunner = {{ type = \"external-cli\", command = \"true\" }}\n",
            step("exit 4"),
            step("echo never")
        ),
    );
    let done = world.output(&["run", plan.to_str().unwrap(), "--no-tui"]);
    assert_eq!(done.code, 1, "{done:?}");
    let status = world.only_run().status();
    assert_eq!(status["steps"][0]["exitCode"], 4);
    assert_eq!(status["steps"][1]["exitCode"], -1);
    assert_eq!(status["steps"][1]["error"], "Skipped due to fail-fast");
    assert_eq!(status["steps"][2]["status"], "pending");
}

#[test]
fn a_time_limit_ends_a_step_or_the_run_with_code_5() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--time", "300ms", "--", "sh", "-c", "sleep 60"]);
    assert_eq!(done.code, 5, "{done:?}");
    let status = world.only_run().status();
    assert_eq!((&status["state"], &status["timedOut"]), (&"failed".into(), &true.into()));
    assert_eq!(status["error"], "Subagent timed out after 300ms.");
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        "[[step]]\nrunner = { type = \"external-cli\", command = \"sleep\", args = [\"60\"] }\nbudget = { time = \"200ms\" }\n",
    );
    let done = world.output(&["run", plan.to_str().unwrap(), "--no-tui"]);
    assert_eq!(done.code, 5, "{done:?}");
    let status = world.only_run().status();
    assert_eq!(status["timedOut"], serde_json::Value::Null, "only the step's time was over");
    assert_eq!(status["steps"][0]["timedOut"], true);
    world.wait_until_empty();
}

#[test]
fn wait_gives_up_with_8_and_an_interrupt_is_resumed_on_the_same_session() {
    let world = World::new();
    let agent = "[scene.slow]\n[[scene.slow.turn]]\nsay = \"I take my time.\"\ntool = [{ name = \"bash\", args = { command = \"sleep\" }, time_ms = 60000 }]\n[[scene.slow.turn]]\nsay = \"Done at last.\"\n";
    let script = world.file("slow.toml", agent);
    let plan = world.file(
        "plan.toml",
        &format!(
            "[[step]]\nid = \"slow\"\ntask = \"Go.\"\nrunner = {{ type = \"demo\", script = \"{}#slow\" }}\n[[step]]\nid = \"after\"\nrunner = {{ type = \"external-cli\", command = \"cat\" }}\ntask = \"{{previous}}\"\n",
            script.display()
        ),
    );
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait("the tool", |s| s["currentTool"] == "bash");
    assert_eq!(world.output(&["wait", run.id(), "--timeout", "50ms"]).code, 8);
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"paused".into(), &"paused".into()));
    assert_eq!(status["steps"][1]["status"], "pending");
    assert_eq!(world.output(&["wait", run.id()]).code, 4);
    let session = status["steps"][0]["sessionFile"].as_str().unwrap().to_owned();
    // The agent plays its scene again from its session; this time nobody wants to wait for the tool.
    let mut again = world.subdeck(&["resume", run.id(), "--no-tui"]);
    let resumed = Done::of(again.env("SUBDECK_DEMO_SPEED", "1000").output().unwrap());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let runs: Vec<_> = std::fs::read_dir(world.root().join("async-subagent-runs"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .filter(|n| !n.starts_with('.') && n != run.id())
        .collect();
    let second = world.run(&runs[0]).status();
    assert_eq!(second["steps"][0]["sessionFile"], session);
    assert_eq!(second["subdeck"]["resumedFrom"], run.id());
    assert_eq!(second["state"], "complete");
}
