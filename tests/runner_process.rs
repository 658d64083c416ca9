//! The runner as a process: its name, signals that mean nothing, who is behind the others, a runner that is suspended, an
//! inbox that somebody removes.

#![cfg(target_os = "linux")]

#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, World, kill, signal, wait_child, wait_for};

fn identity(run: &Run) -> (u32, u32) {
    let identity: Value = serde_json::from_slice(&fs::read(run.dir.join("subdeck/runner.json")).unwrap()).unwrap();
    let pid = |key: &str| u32::try_from(identity[key].as_u64().unwrap()).unwrap();
    (pid("pid"), pid("keeperPid"))
}

fn waiting(world: &World) -> Run {
    let run = world.detach(&["--", "sh", "-c", "echo up; exec sleep 300"]);
    run.wait_output(0, "up");
    run
}

#[test]
fn runner_and_keeper_are_found_by_the_name_of_the_program() {
    let world = World::new();
    let run = waiting(&world);
    let (runner, keeper) = identity(&run);
    for (pid, word) in [(runner, "__runner"), (keeper, "__keeper")] {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        assert_eq!(words[..2], [b"subdeck".as_slice(), word.as_bytes()]);
        assert_eq!(fs::read_to_string(format!("/proc/{pid}/comm")).unwrap(), "subdeck\n");
    }
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
}

/// Every signal that ends a process, can be caught and asks for nothing here. 16 is STKFLT, which not every `kill` knows
/// by its name.
const STRAYS: [&str; 9] = ["-USR1", "-ALRM", "-VTALRM", "-PROF", "-IO", "-XFSZ", "-16", "-34", "-64"];

#[test]
fn signals_that_mean_nothing_end_neither_runner_nor_keeper_and_children_have_them_at_their_defaults() {
    let world = World::new();
    // The launcher ignores one of them, which a program that it starts would inherit.
    let script = "trap '' USR1 ALRM; exec \"$0\" run --detach -- sh -c 'grep -E \"^Sig(Ign|Cgt)\" /proc/self/status; echo up; exec sleep 300'";
    let mut command = world.subdeck(&[]);
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", script, env!("CARGO_BIN_EXE_subdeck")]).current_dir(world.project()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => sh.env(name, value),
            None => sh.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    let done = support::Done::of(sh.output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.run(done.stdout.trim());
    run.wait_output(0, "up");
    let (runner, keeper) = identity(&run);
    for name in STRAYS {
        signal(runner, name);
        signal(keeper, name);
    }
    // What asks the runner for something asks nothing of its keeper.
    for name in ["-TERM", "-INT", "-HUP", "-USR2"] {
        signal(keeper, name);
    }
    let done = world.output(&["stop", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!(status["state"], "stopped", "{status}");
    wait_for("the end of the keeper", || (!fs::exists(format!("/proc/{keeper}")).unwrap()).then_some(()));
    // `grep` was started by the shell, which had caught nothing and changed nothing.
    let masks = fs::read_to_string(run.dir.join("external-0.stdout.log")).unwrap();
    for line in masks.lines().filter(|l| l.starts_with("Sig")) {
        let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        // HUP, INT, QUIT, USR1, USR2, PIPE, ALRM, TERM, STKFLT, XCPU to IO, and what has no name.
        let ours = [1, 2, 3, 10, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 34, 64];
        let odd: Vec<u32> = ours.into_iter().filter(|n| mask & (1 << (n - 1)) != 0).collect();
        assert!(odd.is_empty(), "{odd:?} in {masks}");
    }
}

#[test]
fn a_run_in_front_heeds_no_stray_signal_and_ends_orderly_when_its_processor_time_is_spent() {
    let world = World::new();
    let mut command = world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo up; exec sleep 300"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    for name in STRAYS {
        signal(child.id(), name);
    }
    signal(run.runner_pid(), "-XCPU");
    assert_eq!(support::code(wait_child(&mut child)), 3);
    let status = run.wait_end();
    assert_eq!(status["state"], "stopped");
    assert_eq!(asked_for(&world, &run), "somebody (signal, SIGXCPU)");
}

/// What `status` says of who asked for the end.
fn asked_for(world: &World, run: &Run) -> String {
    let text = world.output(&["status", run.id()]).stdout;
    text.lines().find_map(|l| l.trim().strip_prefix("asked for by ").map(str::to_owned)).unwrap_or(text)
}

#[test]
fn a_run_whose_command_in_front_was_killed_says_so() {
    let world = World::new();
    let mut command = world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo up; exec sleep 300"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(run.wait_end()["state"], "stopped");
    let said = asked_for(&world, &run);
    assert_eq!(said, format!("the runner: the command in front (pid {}) is gone", child.id()));
    world.wait_until_empty();
}

#[test]
fn a_run_that_a_step_started_ends_with_the_step_and_says_so() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_subdeck");
    let script = format!("{program} run --detach -- sleep 300");
    let done = world.output(&["run", "--no-tui", "--", "sh", "-c", &script]);
    assert_eq!(done.code, 0, "{done:?}");
    let runs = fs::read_dir(world.root().join("async-subagent-runs")).unwrap().flatten();
    let ids: Vec<String> = runs.map(|e| e.file_name().into_string().unwrap()).filter(|n| !n.starts_with('.')).collect();
    let outer = ids.iter().find(|id| done.stdout.contains(&format!("run {id}"))).unwrap();
    let inner = world.run(ids.iter().find(|id| *id != outer).unwrap());
    assert_eq!(inner.wait_end()["state"], "stopped");
    let said = asked_for(&world, &inner);
    let want = format!("this run was started by step 1 of run {outer}, which ends what the step leaves");
    assert!(said.contains(&want), "{said}");
    world.wait_until_empty();
}

#[test]
fn a_suspended_runner_is_told_of_by_everything_that_waits_for_it() {
    let world = World::new();
    let run = waiting(&world);
    let (runner, _) = identity(&run);
    signal(runner, "-STOP");
    let says = format!("the runner (pid {runner}) is suspended");
    wait_for("word of it", || world.output(&["status", run.id()]).stderr.contains(&says).then_some(()));
    for (args, code) in [
        (vec!["wait", run.id(), "--timeout", "1ms"], 8),
        (vec!["steer", run.id(), "hello"], 2),
        (vec!["status", "--json", run.id()], 0),
        (vec!["stop", run.id(), "--wait", "--timeout", "1ms"], 8),
    ] {
        let done = world.output(&args);
        assert_eq!(done.code, code, "{done:?}");
        assert_eq!(done.stderr.matches(&says).count(), 1, "{args:?}: {done:?}");
        assert!(done.stderr.contains(&format!("kill -CONT {runner}")), "{done:?}");
    }
    signal(runner, "-CONT");
    let status = run.wait_end();
    assert_eq!(status["state"], "stopped", "the request lay there");
    assert!(!world.output(&["status", run.id()]).stderr.contains("suspended"));
}

#[test]
fn an_inbox_that_was_removed_is_made_again_and_heard() {
    let world = World::new();
    let run = waiting(&world);
    for removed in ["control", "control/stop-requests"] {
        fs::remove_dir_all(run.dir.join(removed)).unwrap();
        wait_for("the inbox", || run.dir.join("control/stop-requests").is_dir().then_some(()));
    }
    fs::rename(run.dir.join("control"), run.dir.join("aside")).unwrap();
    // The folders come one after another; this is the one that is written to.
    wait_for("the inbox", || run.dir.join("control/stop-requests").is_dir().then_some(()));
    run.control("stop-requests/x.json", r#"{"type":"stop","targetIndex":9}"#);
    wait_for("the refused request", || run.dir.join("control/rejected/x.json").exists().then_some(()));
    let refused = wait_for("its refusal", || Some(run.events_of("subdeck.control.rejected")).filter(|r| !r.is_empty()));
    assert_eq!((&refused[0]["file"], &refused[0]["setAside"]), (&"x.json".into(), &true.into()));
    assert_eq!(refused[0]["reason"], "there is no step 10; the run has 1");
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
}

#[test]
fn a_request_that_cannot_be_met_is_refused_with_its_reason_and_not_set_aside() {
    let world = World::new();
    let run = waiting(&world);
    // A time that is over already is no limit but a stop.
    let shorter = world.output(&["budget", run.id(), "time=1ms", "--wait"]);
    assert!(shorter.code == 1 && shorter.stderr.contains("already; stop it instead"), "{shorter:?}");
    run.control("subdeck-requests/x.json", r#"{"type":"retract","id":"q1","ts":1,"requestId":"none"}"#);
    wait_for("both refusals", || (run.events_of("subdeck.control.rejected").len() == 2).then_some(()));
    let refused = wait_for("the refusal", || run.events_of("subdeck.control.rejected").pop());
    assert_eq!((&refused["file"], &refused["setAside"]), (&"retraction of a message (q1)".into(), &Value::Null));
    assert_eq!(refused["reason"], "the message was taken already");
    let events = world.output(&["events", run.id()]).stdout;
    assert!(events.contains("file=retraction of a message (q1) reason=the message was taken already"), "{events}");
    assert!(!run.dir.join("control/rejected").exists());
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
}

/// Runs the program under a limit on open files; `kind` is `-n` for both limits or `-Sn` for the one that can be raised.
fn limited(world: &World, kind: &str, script: &str) -> support::Done {
    let script = script.replace('"', "\\\"");
    let members: Vec<String> = (0..60)
        .map(|n| {
            format!(
                r#"{{ id = "s{n}", runner = {{ type = "external-cli", command = "sh", args = ["-c", "{script}"] }} }}"#
            )
        })
        .collect();
    let plan =
        world.file("many.toml", &format!("[[step]]\nconcurrency = 20\nparallel = [\n{}\n]\n", members.join(",\n")));
    let command = world.subdeck(&["run", "--no-tui", plan.to_str().unwrap()]);
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", &format!("ulimit {kind} 64; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args());
    sh.current_dir(world.project()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => sh.env(name, value),
            None => sh.env_remove(name),
        };
    }
    support::Done::of(sh.output().unwrap())
}

#[test]
fn few_open_files_let_fewer_children_run_at_once_and_none_fail() {
    let world = World::new();
    let done = limited(&world, "-n", "echo out; echo err >&2");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.matches("│ out").count(), 60, "{done:?}");
    assert_eq!(done.stdout.matches("err│ err").count(), 60, "{done:?}");
    assert!(!done.stderr.contains("Too many open files"), "{done:?}");
    assert!(done.stderr.contains("(ulimit -n) lets 2 children run at once, not 20"), "{done:?}");
}

#[test]
fn a_limit_that_can_be_raised_is_raised_for_the_runner_alone() {
    let world = World::new();
    let done = limited(&world, "-Sn", "until [ \"$(ulimit -Sn)\" = 64 ]; do :; done; echo same");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stdout.matches("│ same").count(), 60, "{done:?}");
    assert!(!done.stderr.contains("ulimit"), "{done:?}");
}

#[test]
fn a_stopped_step_is_not_told_as_a_stopped_run() {
    let world = World::new();
    let later = "id = \"later\"\nrunner = { type = \"external-cli\", command = \"true\" }";
    let member = |id: &str| {
        format!(r#"{{ id = "{id}", runner = {{ type = "external-cli", command = "sleep", args = ["300"] }} }}"#)
    };
    let plan = format!("[[step]]\nparallel = [{}, {}]\n[[step]]\n{}\n", member("a"), member("b"), later);
    let run = world.detach(&[world.file("plan.toml", &plan).to_str().unwrap()]);
    // One that never ran has no child to end; who stopped it is recorded all the same.
    assert_eq!(world.output(&["stop", &format!("{}:later", run.id()), "--wait", "--reason", "not needed"]).code, 0);
    let ending = run.events_of("subdeck.step.ending").pop().unwrap();
    assert_eq!(ending["source"]["reason"], "not needed", "{ending}");
    assert_eq!(world.output(&["stop", &format!("{}:a", run.id()), "--wait"]).code, 0);
    let said = world.output(&["status", run.id()]).stdout;
    assert!(said.contains("a step was stopped by ") && !said.contains("asked for by"), "{said}");
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    assert!(asked_for(&world, &run).contains("(cli, pid "), "{}", asked_for(&world, &run));
}

#[test]
fn the_help_of_an_interrupt_names_no_step() {
    let world = World::new();
    let help = |command: &str| world.output(&[command, "--help"]).stdout;
    assert!(help("interrupt").contains("<RUN>") && !help("interrupt").contains("STEP"), "{}", help("interrupt"));
    assert!(help("stop").contains("<RUN[:STEP]>"), "{}", help("stop"));
}

/// The runner is the parent of its first child; from then on there is something to end.
#[test]
fn a_runner_that_dies_before_it_is_ready_leaves_nothing_and_a_lost_run() {
    for _ in 0..5 {
        let world = World::new();
        let done = world.output(&["run", "--no-tui", "--", "sh", "-c", "kill -9 $PPID; exec sleep 300"]);
        assert_eq!(done.code, 7, "{} {}", done.stdout, done.stderr);
        world.wait_until_empty();
        let ids = fs::read_dir(world.root().join("async-subagent-runs")).unwrap();
        let run = ids.map(|entry| entry.unwrap().path()).find(|dir| dir.join("status.json").exists()).unwrap();
        let status: Value = serde_json::from_slice(&fs::read(run.join("status.json")).unwrap()).unwrap();
        assert_eq!(status["state"], "failed");
        assert!(done.stderr.contains("recorded as lost"), "{}", done.stderr);
    }
}

/// Whoever reads the words of a command may go away; the command goes on as if they stayed.
#[test]
fn a_command_whose_words_nobody_reads_is_interrupted_all_the_same() {
    let world = World::new();
    let mut command = world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "echo up; exec sleep 300"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    wait_for("the run", || {
        (!world.processes().is_empty()
            && fs::read_dir(world.root().join("async-subagent-runs")).is_ok_and(|mut d| d.next().is_some()))
        .then_some(())
    });
    world.only_run().wait_output(0, "up");
    signal(child.id(), "-INT");
    assert_eq!(wait_child(&mut child).code(), Some(4));
    world.wait_until_empty();

    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let bad = world.file("bad.toml", "[[stop]]\n");
    let mut command = world.subdeck(&["run", "--no-tui"]);
    let status = command.arg(bad).stderr(full).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

/// The runner of the command, as soon as there is one. Until its own program begins, the command waits for it and can
/// hear nothing, so that whoever suspends it then suspends both.
fn newborn(command: u32) -> u32 {
    wait_for("the runner", || {
        let children = fs::read_to_string(format!("/proc/{command}/task/{command}/children")).ok()?;
        let child = children.split_whitespace().next()?.parse().ok()?;
        let words = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
        words.contains("__runner").then_some(child)
    })
}

/// A runner may hang before it is ready, on a disk that does not answer; here it is suspended as it is born.
#[test]
fn a_command_is_ended_by_ctrl_c_before_its_runner_is_ready() {
    let caught = (0..50).any(|_| {
        let world = World::new();
        let mut command = world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "exec sleep 300"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let runner = newborn(child.id());
        signal(runner, "-STOP");
        let begun = || {
            let runs = fs::read_dir(world.root().join("async-subagent-runs")).into_iter().flatten();
            runs.flatten().any(|run| run.path().join("status.json").exists())
        };
        let early = !begun();
        let deaf = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            // Each counts only when the command is there to hear it.
            let asks = if early { "-INT" } else { "-TERM" };
            let _ = kill(asks, child.id()).stderr(Stdio::null()).status();
            if !early {
                let _ = kill("-CONT", runner).stderr(Stdio::null()).status();
            }
            assert!(Instant::now() < deaf, "it heeds no signal");
        }
        world.wait_until_empty();
        early && !begun()
    });
    assert!(caught, "no runner was suspended before it was ready");
}
