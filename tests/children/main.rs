//! Children that misbehave, run by the real binary: whatever they do, the outcome is right, nothing that they printed is
//! lost, nothing of it reaches a terminal raw, and no process is left.

mod asked;
#[allow(dead_code)]
#[path = "../support/runs.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::Instant;

use support::{Done, Run, World, code, signal, wait_child, wait_for};

/// A plan of one step whose agent is `tests/bin/agent.sh` in a mode.
fn agent(world: &World, transport: &str, mode: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let args: Vec<String> = std::iter::once(script).chain(mode.iter().copied()).map(|a| format!("{a:?}")).collect();
    let text = format!(
        "[[step]]\nid = \"odd\"\ntask = \"Be odd.\"\nrunner = {{ type = \"pi\", transport = \"{transport}\", command = \"sh\", args = [{}] }}\n",
        args.join(", ")
    );
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

/// The raw bytes of the only step's standard output.
fn raw(run: &Run) -> Vec<u8> {
    std::fs::read(run.dir.join("raw-0.stdout")).unwrap()
}

/// What the same mode prints when nobody supervises it.
fn printed(mode: &[&str]) -> Vec<u8> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    Command::new("sh").arg(script).args(mode).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap().stdout
}

/// No control character but the line feed.
fn assert_clean(what: &str, text: &str) {
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(bad, None, "{what}: {text}");
}

fn signals(run: &Run) -> Vec<(String, bool)> {
    let sent = run.events_of("subdeck.signal.sent");
    sent.iter().map(|e| (e["signal"].as_str().unwrap().to_owned(), e["group"].as_bool().unwrap())).collect()
}

/// Starts an agent in a mode detached and waits until its child lives.
fn detach(world: &World, transport: &str, mode: &[&str]) -> Run {
    let run = world.detach(&[&agent(world, transport, mode)]);
    run.wait("a child", |s| s["steps"][0]["subdeck"]["startTicks"].is_number());
    run
}

/// Mode, exit code of the command, and the step's status, exit code and error.
type Row = (&'static [&'static str], i32, &'static str, i32, Option<&'static str>);

#[test]
fn whatever_a_child_prints_the_outcome_is_right_and_nothing_is_lost() {
    let cut = "the agent produced no output and ended without saying that it was done";
    let table: &[Row] = &[
        (&["ok"], 0, "complete", 0, None),
        (&["no-newline"], 0, "complete", 0, None),
        (&["crlf"], 0, "complete", 0, None),
        (&["bytes"], 0, "complete", 0, None),
        (&["escapes"], 0, "complete", 0, None),
        (&["stderr", "1000"], 0, "complete", 0, None),
        (&["flood", "100000"], 0, "complete", 0, None),
        (&["long-line"], 0, "complete", 0, None),
        (&["cut"], 1, "failed", 1, Some(cut)),
        (&["fail", "9"], 1, "failed", 9, Some("something is wrong")),
        (&["kill", "KILL"], 1, "failed", 1, Some("Subagent process terminated by signal SIGKILL.")),
        (&["kill", "TERM"], 1, "failed", 1, Some("Subagent process terminated by signal SIGTERM.")),
    ];
    for (mode, exit, status, step_exit, error) in table {
        let world = World::new();
        let done = world.output(&["run", "--no-tui", &agent(&world, "json", mode)]);
        let run = world.only_run();
        let step = run.status()["steps"][0].clone();
        assert_eq!((&step["status"], &step["exitCode"]), (&(*status).into(), &(*step_exit).into()), "{mode:?}: {step}");
        assert_eq!(step["error"].as_str(), *error, "{mode:?}");
        assert_eq!(done.code, *exit, "{mode:?}: {}", done.stderr);
        assert!(raw(&run) == printed(mode), "{mode:?}: the raw log is not what was printed");
        assert_clean(&format!("{mode:?} on stdout"), &done.stdout);
        assert_clean(&format!("{mode:?} on stderr"), &done.stderr);
        let logs = world.output(&["logs"]);
        assert_eq!(logs.code, 0, "{mode:?}: {logs:?}");
        assert_clean(&format!("{mode:?} in logs"), &logs.stdout);
        if *status == "complete" {
            assert!(logs.stdout.contains("fine"), "{mode:?}");
        }
        if mode == &["flood", "100000"] {
            assert!(logs.stdout.lines().count() >= 100_000, "every line is in the log");
        }
        if mode == &["stderr", "1000"] {
            let text = std::fs::read_to_string(run.dir.join("raw-0.stderr")).unwrap();
            assert_eq!(text, "a warning\n".repeat(1000));
            // What the other stream printed in between begins a line of its own.
            let only = world.output(&["logs", "--stderr"]);
            assert_eq!(only.stdout.replace('\n', ""), text.replace('\n', ""));
        }
        world.wait_until_empty();
    }
}

#[test]
fn a_silent_or_deaf_child_is_stopped_for_good() {
    for (mode, ladder) in [("silent", vec!["SIGTERM"]), ("deaf", vec!["SIGTERM", "SIGKILL"])] {
        let world = World::new();
        let run = detach(&world, "json", &[mode]);
        if mode == "deaf" {
            run.wait("its first record", |_| !run.events_of("agent_start").is_empty());
        }
        let done = world.output(&["stop", run.id(), "--wait", "--timeout", "20s"]);
        assert_eq!(done.code, 0, "{mode}: {done:?}");
        let sent: Vec<_> = signals(&run).into_iter().map(|(name, _)| name).collect();
        assert_eq!(sent, ladder, "{mode}");
        let step = run.wait_end()["steps"][0].clone();
        assert_eq!((&step["status"], &step["exitCode"]), (&"stopped".into(), &1.into()), "{mode}");
        assert_eq!(step["error"], "Subagent stopped by user.", "{mode}");
        world.wait_until_empty();
    }
}

#[test]
fn a_child_that_said_its_last_word_but_lingers_is_drained_and_complete() {
    for (mode, ladder) in [
        ("linger", vec![("SIGTERM".to_owned(), false)]),
        ("deaf-linger", vec![("SIGTERM".to_owned(), false), ("SIGKILL".to_owned(), true)]),
    ] {
        let world = World::new();
        let done = world.output(&["run", "--no-tui", &agent(&world, "json", &[mode])]);
        assert_eq!(done.code, 0, "{mode}: {done:?}");
        let run = world.only_run();
        let step = run.status()["steps"][0].clone();
        assert_eq!((&step["status"], &step["exitCode"]), (&"complete".into(), &0.into()), "{mode}: {step}");
        assert_eq!(step["error"].as_str(), None, "{mode}");
        assert_eq!(signals(&run), ladder, "{mode}");
        assert!(done.stdout.contains("│ fine"), "{mode}: {done:?}");
        world.wait_until_empty();
    }
}

#[test]
fn what_a_child_leaves_behind_is_ended_whether_it_holds_the_output_or_not() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", &agent(&world, "json", &["grandchild"])]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    let held = run.events_of("subdeck.output.held");
    assert_eq!(held.len(), 1, "{done:?}");
    let pid = held[0]["pids"][0].as_u64().unwrap();
    let swept = run.events_of("subdeck.tree.swept");
    assert!(swept[0]["ended"].as_array().unwrap().contains(&pid.into()), "{swept:?}");
    world.wait_until_empty();

    let world = World::new();
    let done = world.output(&["run", "--no-tui", &agent(&world, "json", &["escape"])]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    assert_eq!(run.events_of("subdeck.output.held").len(), 0, "nobody waits for what does not hold the output");
    let swept = run.events_of("subdeck.tree.swept");
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert_eq!(swept[0]["survivors"].as_array().map_or(0, Vec::len), 0);
    world.wait_until_empty();
}

#[test]
fn an_agent_in_rpc_mode_is_asked_answers_and_ends_with_its_input() {
    let world = World::new();
    let done = world.output(&["run", "--no-tui", &agent(&world, "rpc", &["rpc"])]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(signals(&world.only_run()).is_empty(), "the end of its input is enough");
    world.wait_until_empty();
}

#[test]
fn a_child_that_never_reads_holds_nobody_up() {
    let task = "x".repeat(1024 * 1024);
    let plain = "[[step]]\ntask = \"TASK\"\nrunner = { type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo up; sleep 60\"] }\n";
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let rpc = format!(
        "[[step]]\ntask = \"TASK\"\nrunner = {{ type = \"pi\", command = \"sh\", args = [{script:?}, \"silent\"] }}\n"
    );
    for (name, text) in [("plain", plain.to_owned()), ("rpc", rpc)] {
        let world = World::new();
        let plan = world.file("plan.toml", &text.replace("TASK", &task));
        let run = world.detach(&[plan.to_str().unwrap()]);
        run.wait("a child", |s| s["steps"][0]["subdeck"]["startTicks"].is_number());
        if name == "rpc" {
            let steered = world.output(&["steer", run.id(), "hello"]);
            assert_eq!(steered.code, 0, "{name}: {steered:?}");
            run.wait("the routing", |s| s["steering"]["requested"] == 1);
        }
        let done = world.output(&["stop", run.id(), "--wait", "--timeout", "20s"]);
        assert_eq!(done.code, 0, "{name}: {done:?}");
        // SIGKILL would come only after SIGTERM had its time.
        let sent: Vec<_> = signals(&run).into_iter().map(|(name, _)| name).collect();
        assert_eq!(sent, ["SIGTERM"], "{name}");
        assert_eq!(run.wait_end()["state"], "stopped", "{name}");
        world.wait_until_empty();
    }
}

#[test]
fn a_plain_command_ends_as_its_exit_says() {
    let table: &[(&str, i32, i32, Option<&str>, &str)] = &[
        ("echo all; echo well", 0, 0, None, "all\nwell"),
        ("echo out; echo first >&2; echo last >&2; exit 7", 1, 7, Some("first\nlast"), "out"),
        ("exit 200", 1, 200, Some("exited with code 200"), ""),
        ("echo out; kill -SEGV $$", 1, 1, Some("Subagent process terminated by signal SIGSEGV."), "out"),
        // Its last words on standard error are not an error when it ends well.
        ("echo fine; echo warning >&2", 0, 0, None, "fine"),
    ];
    for (script, exit, step_exit, error, output) in table {
        let world = World::new();
        let done = world.output(&["run", "--no-tui", "--", "sh", "-c", script]);
        assert_eq!(done.code, *exit, "{script}: {done:?}");
        let run = world.only_run();
        let step = run.status()["steps"][0].clone();
        assert_eq!(step["exitCode"], *step_exit, "{script}");
        assert_eq!(step["error"].as_str(), *error, "{script}");
        let result = world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
        let result: serde_json::Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
        assert_eq!(result["results"][0]["output"].as_str().unwrap_or("").trim_end(), *output, "{script}: {result}");
    }
}

#[test]
fn the_end_of_long_output_is_what_is_passed_on() {
    let world = World::new();
    let plan = world.file(
        "plan.toml",
        r#"
        [[step]]
        id = "long"
        runner = { type = "external-cli", command = "sh", args = ["-c", "yes 'a line of output' | head -n 10000; echo the very last"] }
        [[step]]
        id = "after"
        task = "{previous}"
        runner = { type = "external-cli", command = "tail", args = ["-n", "1"] }
        "#,
    );
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run = world.only_run();
    let status = run.status();
    assert_eq!(status["outputs"]["after"]["text"].as_str().unwrap().trim_end(), "the very last");
    let whole = std::fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap();
    assert_eq!(whole.lines().count(), 10_001);
    let result = world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    let text = result["results"][0]["output"].as_str().unwrap();
    assert!(text.len() >= 64 * 1024 && text.trim_end().ends_with("the very last"), "{} bytes", text.len());
}

#[test]
fn a_child_begins_with_ordinary_signals_whatever_the_starter_ignored() {
    let world = World::new();
    // What `nohup` and a background job of a script leave behind.
    let wrapper = "trap '' INT HUP QUIT TERM USR1 USR2 PIPE; exec \"$0\" \"$@\"";
    let script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; echo up; sleep 60";
    let mut command = Command::new("sh");
    command.args(["-c", wrapper, env!("CARGO_BIN_EXE_subdeck"), "run", "--detach", "--", "sh", "-c", script]);
    let template = world.subdeck(&[]);
    command.current_dir(world.project()).stdin(Stdio::null());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let done = Done::of(command.output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.run(done.stdout.trim());
    run.wait_output(0, "up");
    let text = std::fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap();
    for line in text.lines().filter(|l| l.starts_with("Sig")) {
        let mask = u64::from_str_radix(line.rsplit(':').next().unwrap().trim(), 16).unwrap();
        for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("USR2", 12), ("PIPE", 13), ("TERM", 15)] {
            assert_eq!(mask >> (number - 1) & 1, 0, "SIG{name} in {line}");
        }
    }
    // So an interrupt reaches it.
    let begin = Instant::now();
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(run.wait_end()["state"], "paused");
    assert_eq!(signals(&run), [("SIGINT".to_owned(), true)], "{:?}", begin.elapsed());
    world.wait_until_empty();
}

#[test]
fn a_child_that_was_frozen_can_be_stopped() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; kill -STOP $$; sleep 60"]);
    run.wait_output(0, "up");
    let pid = world.processes().into_iter().find(|pid| {
        wait_for("the child's state", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let state = stat.rsplit(") ").next()?.chars().next()?;
            Some(state)
        });
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sh\0-c\0echo up")
    });
    let pid = pid.expect("the child");
    wait_for("the child to freeze", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.starts_with('T').then_some(())
    });
    let done = world.output(&["stop", run.id(), "--wait", "--timeout", "20s"]);
    assert_eq!(done.code, 0, "{done:?}");
    // It goes on to be ended; left frozen, it would get SIGKILL when SIGTERM had had its time.
    assert!(signals(&run).iter().all(|(name, _)| name != "SIGKILL"), "{:?}", signals(&run));
    assert_eq!(run.wait_end()["state"], "stopped");
    world.wait_until_empty();
}

#[test]
fn the_marks_of_an_enclosing_agent_do_not_reach_a_child() {
    let marks = [
        ("PI_SUBAGENT_CHILD", "1"),
        ("PI_SUBAGENT_RUN_ID", "outer"),
        ("PI_SUBAGENT_PARENT_CONTROL_INBOX", "/outer/inbox"),
        ("PI_SUBAGENT_PARENT_EVENT_SINK", "/outer/sink"),
        ("PI_SUBAGENT_STEER_INBOX", "/outer/steer"),
        ("PI_SUBAGENT_MADE_UP", "outer"),
        ("PI_INTERCOM_SESSION_ID", "outer"),
        ("CLAUDECODE", "outer"),
    ];
    let world = World::new();
    let mut command = world.subdeck(&["run", "--no-tui", "--", "env"]);
    let done = Done::of(command.envs(marks).output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let text = std::fs::read_to_string(world.only_run().dir.join("external-0.stdout.log")).unwrap();
    for (name, _) in marks {
        assert!(!text.contains(&format!("{name}=")), "{name} in {text}");
    }
    assert!(!text.contains("outer"), "{text}");

    let world = World::new();
    let plan = world.file(
        "plan.toml",
        "[[step]]\ntask = \"t\"\nrunner = { type = \"pi\", transport = \"json\", command = \"sh\", args = [\"-c\", \"env >&2\"] }\n",
    );
    let mut command = world.subdeck(&["run", "--no-tui", plan.to_str().unwrap()]);
    command.envs(marks).output().unwrap();
    let run = world.only_run();
    let text = std::fs::read_to_string(run.dir.join("raw-0.stderr")).unwrap();
    assert!(!text.contains("outer"), "{text}");
    assert!(text.contains(&format!("PI_SUBAGENT_RUN_ID={}\n", run.id())), "{text}");
    assert!(text.contains("PI_SUBAGENT_CHILD=1\n") && text.contains("PI_SUBAGENT_CHILD_INDEX=0\n"), "{text}");
}

#[test]
fn a_plain_command_in_front_gets_one_sigint_for_one_ctrl_c() {
    let world = World::new();
    let script = "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.02; done";
    let mut child = world
        .subdeck(&["run", "--no-tui", "--", "sh", "-c", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    signal(child.id(), "-INT");
    assert_eq!(code(wait_child(&mut child)), 4);
    let text = std::fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap();
    assert_eq!(text, "up\ncaught\n");
    assert_eq!(signals(&run), [("SIGINT".to_owned(), true)]);
    world.wait_until_empty();
}

#[test]
fn what_fell_to_the_runner_and_ended_does_not_stay_in_the_process_table() {
    let world = World::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &); done; echo up; sleep 60";
    let run = world.detach(&["--", "sh", "-c", script]);
    run.wait_output(0, "up");
    let runner = run.runner_pid().to_string();
    let children = |dead: bool| {
        let stats = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats
            .filter(|stat| {
                let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
                fields.get(1) == Some(&runner.as_str()) && dead == fields.first().is_some_and(|s| *s == "Z")
            })
            .count()
    };
    wait_for("the end of all but the child", || (children(false) == 1).then_some(()));
    wait_for("the dead to be collected", || (children(true) == 0).then_some(()));
    assert_eq!(run.status()["steps"][0]["status"], "running");
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    world.wait_until_empty();
}
