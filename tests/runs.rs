//! Runs of plain commands and demo agents, from the command line to the files and the exit code.

#[path = "support/runs.rs"]
mod support;

use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use support::{Done, World, code, files_below, signal, wait_child, wait_for};

#[test]
fn a_command_runs_prints_and_ends_with_its_cause() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", "echo hello; echo trouble >&2"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("│ hello"), "{done:?}");
    assert!(done.stdout.contains("err│ trouble"), "{done:?}");
    assert!(done.stdout.contains(": complete  (1 of 1 steps"), "{done:?}");
    let status = world.only_run().status();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"complete".into(), &"complete".into()));
    let failed = world.output(&["run", "--no-tui", "--", "sh", "-c", "echo why >&2; exit 3"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("why"), "{failed:?}");
    world.wait_until_empty();
}

#[test]
fn logs_of_a_run_are_those_of_every_step_in_order_and_of_a_step_its_own() {
    let world = World::new();
    let step = |id: &str, script: &str| {
        format!(
            "[[step]]\nid = \"{id}\"\nlabel = \"the {id}\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }}\n"
        )
    };
    let plan =
        [step("one", "echo a1; echo a2"), step("mute", "true"), step("two", "echo b1 >&2; echo b2 >&2")].concat();
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let logs = |args: &[&str]| world.output(&[&["logs"], args].concat()).stdout;
    assert_eq!(logs(&[]), "==> 1 the one <==\na1\na2\n\n==> 3 the two <==\nb1\nb2\n");
    assert_eq!(logs(&["-f"]), logs(&[]));
    assert_eq!(logs(&["-n", "1"]), "==> 1 the one <==\na2\n\n==> 3 the two <==\nb2\n");
    assert_eq!(logs(&["--stderr"]), "==> 3 the two <==\nb1\nb2\n");
    assert_eq!(logs(&["--raw"]), "a1\na2\nb1\nb2\n");
    assert_eq!(logs(&["@last:2"]), "");
    assert_eq!(logs(&["@last:two"]), "b1\nb2\n");
}

#[test]
fn a_line_without_end_is_bounded_for_people_and_whole_for_programs() {
    let world = World::new();
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after";
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", script]);
    assert_eq!(done.code, 0, "{done:?}");
    for shown in [&done.stdout, &world.output(&["attach", "--no-tui"]).stdout] {
        assert!(shown.len() < 140_000, "{}", shown.len());
        assert!(shown.contains("more of this line") && shown.contains("after"));
    }
    let logs = world.output(&["logs"]);
    let (long, after) = logs.stdout.split_once('\n').unwrap();
    assert!(long.len() >= 65_536 && long.len() < 140_000 && long.bytes().all(|b| b == b'x'), "{}", long.len());
    assert_eq!(after, "after\n");
    let told = format!("… {} more of this line", subdeck::text::bytes(3_000_001 - long.len() as u64));
    assert!(logs.stderr.contains(&told), "{told}: {}", logs.stderr);
    let errors = world.output(&["logs", "--stderr"]);
    assert_eq!((errors.stdout.as_str(), errors.stderr.as_str()), ("", ""));
    assert_eq!(world.output(&["logs", "-n", "1"]).stdout, "after\n");
    assert_eq!(world.output(&["logs", "--raw"]).stdout.len(), 3_000_007);
}

#[test]
fn what_cannot_be_started_says_so() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "no-such-program-here"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("`no-such-program-here` of step `no-such-program-here` was not found"), "{done:?}");
    assert!(!world.root().exists());
    // One that a step before could have made is tried.
    let done = world.output(&["run", "--no-tui", "--", "./no-such-program-here"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("no such program; check the name and PATH"), "{done:?}");
    let none = world.output(&["run", "--no-tui"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.stderr.contains("name a plan file"), "{none:?}");
}

#[test]
fn the_demo_completes_headless_with_a_summary() {
    let world = World::new();
    let done = world.output(&["demo", "--no-tui", "--speed", "20"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("complete  (7 of 7 steps"), "{done:?}");
    assert!(!done.stdout.contains('\u{1b}'), "no escape sequence reaches a pipe");
    world.wait_until_empty();
}

#[test]
fn jsonl_and_json_are_data_alone_on_stdout() {
    let world = World::new();
    let done = world.output(&["demo", "--no-tui", "--speed", "20", "--output", "jsonl"]);
    assert_eq!(done.code, 0, "{done:?}");
    let mut kinds = std::collections::BTreeSet::new();
    for line in done.stdout.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["v"], 1);
        kinds.insert(value["type"].as_str().unwrap().to_owned());
    }
    for kind in ["run_started", "step_started", "tool_started", "tool_ended", "message", "step_ended", "run_ended"] {
        assert!(kinds.contains(kind), "{kind} is missing in {kinds:?}");
    }
    assert!(done.stderr.contains("complete  (7 of 7 steps"), "{done:?}");
    let done = world.output(&["run", "--no-tui", "--output", "json", "--", "true"]);
    let value: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&value["state"], &value["exit_code"]), (&"complete".into(), &0.into()));
}

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

/// What an agent may leave where its output goes neither holds the runner nor leads the text elsewhere, and is told.
#[test]
fn an_output_that_cannot_be_written_is_told_and_holds_nothing() {
    let world = World::new();
    world.file("victim.txt", "as it was");
    let odd = r#"mkfifo fifo; ln -s victim.txt link; mkdir folder; echo done"#;
    let say = |id: &str, output: &str| {
        format!(
            "[[step]]\nid = \"{id}\"\noutput = \"{output}\"\n\
             runner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo of {id}\"] }}\n"
        )
    };
    let plan = format!(
        "[[step]]\nid = \"odd\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{odd}\"] }}\n{}{}{}{}",
        say("a", "fifo"),
        say("b", "link"),
        say("c", "folder"),
        say("d", "fine.md")
    );
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    for (step, why) in [(1, "not a regular file"), (2, "a symbolic link"), (3, "not a regular file")] {
        let told = run.status()["steps"][step]["subdeck"]["fileError"].to_string();
        assert!(told.contains("could not be saved") && told.contains(why), "{step}: {told}");
    }
    assert_eq!(
        done.stdout.matches("the output could not be saved to ").count(),
        6,
        "when it happens and at the end: {done:?}"
    );
    assert_eq!(run.events_of("subdeck.artifact.failed").len(), 3);
    assert_eq!(std::fs::read_to_string(world.project().join("victim.txt")).unwrap(), "as it was");
    assert_eq!(std::fs::read_to_string(world.project().join("fine.md")).unwrap().trim_end(), "of d");
    let status = world.output(&["status", run.id()]);
    assert!(status.stdout.contains("the output could not be saved to "), "{status:?}");
}

#[test]
fn output_that_a_grandchild_holds_open_does_not_hold_the_run() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", "sleep 60 & echo $! > pid; echo done"]);
    assert_eq!(done.code, 0, "{done:?}");
    let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
    assert!(done.stdout.contains(&format!("pid {} holds its output open", pid.trim())), "{done:?}");
    let run = world.only_run();
    assert_eq!(run.events_of("subdeck.output.held").len(), 1);
    world.wait_until_empty();
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
fn a_second_runner_is_refused() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    let done = world.output(&["__runner", run.dir.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("error") && done.stdout.contains("runner"), "{done:?}");
    run.control("stop.json", "");
    run.wait_end();
}

#[test]
fn twenty_runs_at_the_same_root_keep_out_of_each_others_way() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        id = "one"
        runner = { type = "external-cli", command = "sh", args = ["-c", "echo first"] }
        [[step]]
        parallel = [
          { id = "two", runner = { type = "external-cli", command = "sh", args = ["-c", "cat; echo second"] }, task = "{outputs.one}" },
          { id = "three", runner = { type = "external-cli", command = "sh", args = ["-c", "sleep 0.1 & echo third"] } },
        ]
        "#,
    );
    let children: Vec<_> = (0..20)
        .map(|_| {
            world
                .subdeck(&["run", plan.to_str().unwrap(), "--no-tui"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.contains("two   │ first"), "{done:?}");
    }
    world.wait_until_empty();
    let runs = world.root().join("async-subagent-runs");
    let names: Vec<String> =
        std::fs::read_dir(&runs).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let ids: Vec<&String> = names.iter().filter(|n| !n.starts_with('.')).collect();
    assert_eq!(ids.len(), 20);
    assert_eq!(std::fs::read_dir(runs.join(".active-runs")).unwrap().count(), 0, "no run is active any more");
    assert_eq!(files_below(&runs.join(".terminal-runs")).len(), 20);
    for id in ids {
        assert_eq!(world.run(id).status()["state"], "complete");
        assert!(world.root().join(format!("async-subagent-results/{id}.json")).exists());
    }
    let left: Vec<_> =
        files_below(&world.root()).into_iter().filter(|p| p.extension().is_some_and(|e| e == "tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
    let pending = files_below(&world.root().join("async-subagent-results/result-pending"));
    assert!(pending.is_empty(), "{pending:?}");
}

#[test]
fn values_of_variables_are_nowhere_on_disk() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        runner = { type = "external-cli", command = "sh", args = ["-c", "test \"$TOKEN\" = very-s3cret && echo right"], env = { TOKEN = "very-s3cret" } }
        "#,
    );
    let done = world.output(&["run", plan.to_str().unwrap(), "--no-tui"]);
    assert_eq!(done.code, 0, "{done:?}");
    for path in files_below(&world.root()) {
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let in_arguments = text.replace("= very-s3cret &&", "");
        assert!(!in_arguments.contains("very-s3cret"), "{}", path.display());
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    assert_eq!(world.output(&["demo", "--no-tui", "--speed", "50"]).code, 0);
    let mut folders = vec![world.root()];
    while let Some(folder) = folders.pop() {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{}", path.display());
            }
        }
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
fn a_reader_that_goes_away_does_not_end_the_run() {
    let world = World::new();
    let mut child = world
        .subdeck(&[
            "run",
            "--no-tui",
            "--",
            "sh",
            "-c",
            "echo up; while [ ! -e go ]; do sleep 0.02; done; echo more; echo end > ended",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    world.only_run().wait_output(0, "up");
    drop(child.stdout.take());
    world.file("go", "");
    assert_eq!(code(wait_child(&mut child)), 0);
    assert!(world.project().join("ended").exists());
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
fn a_root_that_others_may_write_is_only_read() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; sleep 60"]);
    run.wait_output(0, "up");
    let open = |mode| std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(mode)).unwrap();
    open(0o777);
    let refused = world.output(&["stop", run.id()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("others may write into it"), "{refused:?}");
    let refused = world.output(&["run", "--no-tui", "--", "true"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert_eq!(world.output(&["status", run.id()]).code, 0, "looking is allowed");
    open(0o700);
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
}

#[test]
fn a_session_is_gone_on_with_by_one_run_at_a_time() {
    let world = World::new();
    let session = world.file("session.jsonl", "{\"type\":\"session\"}\n");
    let plan = format!(
        "[[step]]\nid = \"one\"\nrunner = {{ type = \"pi\", transport = \"json\", command = \"sh\", args = [\"-c\", \
         \"touch here; while [ ! -e go ]; do sleep 0.02; done\"] }}\ntask = \"t\"\nsession = \"{}\"\n",
        session.display()
    );
    let plan = world.file("plan.toml", &plan);
    let first = world.detach(&[plan.to_str().unwrap()]);
    wait_for("the first child", || world.project().join("here").exists().then_some(()));
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("another run goes on with the session"), "{done:?}");
    world.file("go", "");
    first.wait_end();
    world.wait_until_empty();
}

#[test]
fn a_directory_is_run_once() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.02; done"]);
    run.wait_output(0, "up");
    wait_for("the identity", || run.dir.join("subdeck/runner.json").exists().then_some(()));
    let again = |word| world.output(&[word, run.dir.to_str().unwrap()]);
    for word in ["__keeper", "__runner"] {
        let done = again(word);
        assert!(done.code != 0 && done.stdout.contains("error"), "{word}: {done:?}");
    }
    assert_eq!(run.status()["state"], "running", "it goes on");
    world.file("go", "");
    assert_eq!(run.wait_end()["state"], "complete");
    let before = std::fs::read(run.dir.join("status.json")).unwrap();
    for word in ["__keeper", "__runner"] {
        assert_ne!(again(word).code, 0, "{word}");
    }
    assert_eq!(std::fs::read(run.dir.join("status.json")).unwrap(), before);
    world.wait_until_empty();
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

#[test]
fn doubled_braces_are_the_text_itself_and_what_a_person_says_is_not_filled_in() {
    let world = World::new();
    let scenes = world.file(
        "scenes.toml",
        "[scene.echo]\n[[scene.echo.turn]]\nsay = \"I heard: {task}\"\n[[scene.echo.turn]]\nsay = \"Done.\"\n",
    );
    let plan = format!(
        "task = \"T\"\n[[step]]\nid = \"a\"\nrunner = {{ type = \"external-cli\", command = \"printf\", args = [\"%s|\", \"{{task}}\", \"{{{{task}}}}\"] }}\ntask = \"{{task}} {{{{previous}}}} {{{{outputs.none}}}}\"\n\
         [[step]]\nid = \"b\"\nagent = \"b\"\nrunner = {{ type = \"demo\", script = \"{}#echo\" }}\ntask = \"{{task}} {{{{task}}}}\"\n",
        scenes.display()
    );
    let plan = world.file("plan.toml", &plan);
    let checked = world.output(&["check", plan.to_str().unwrap()]);
    assert!(checked.code == 0 && !checked.stderr.contains("placeholder"), "{checked:?}");
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(world.output(&["logs", "@last:a"]).stdout, "T {previous} {outputs.none}|{task}|\n");
    assert!(world.output(&["logs", "@last:b"]).stdout.contains("I heard: T {task}"));
    let resumed = world.output(&["resume", "@last:b", "what is {task} and {previous}", "--no-tui"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let id = resumed.stdout.trim_start().strip_prefix("run ").unwrap().lines().next().unwrap();
    let heard = std::fs::read_to_string(world.run(id).dir.join("raw-0.stdout")).unwrap();
    assert!(heard.contains("what is {task} and {previous}"), "{heard}");
}
