//! What is printed of a run: while nobody reads, where nothing can be written, and of what cannot be shown or done.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use support::{Done, World, code, signal, wait_child, wait_for};

/// More than a pipe holds, then the end.
const BACKLOG: &str = "yes 'a line of the backlog' | head -n 200000; echo end";

/// A command whose standard output is a pipe that nobody reads; its stderr is a file.
struct Unread {
    child: Child,
    stderr: PathBuf,
}

impl Unread {
    fn start(world: &World, args: &[&str]) -> Self {
        let stderr = world.project().join("stderr");
        let child = world.subdeck(args).stdout(Stdio::piped()).stderr(File::create(&stderr).unwrap()).spawn().unwrap();
        Self { child, stderr }
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    fn wait_stderr(&self, text: &str) {
        wait_for(text, || self.stderr().contains(text).then_some(()));
    }

    fn end(&mut self) -> i32 {
        code(wait_child(&mut self.child))
    }
}

/// As everything else that is printed for people; what is asked for as it is, is as it is.
#[test]
fn what_looks_like_a_key_is_masked_in_logs_and_events() {
    let world = World::new();
    let key = "Zq8LmN0pR7sT4vW9xYb3";
    let script = format!("echo 'ANTHROPIC_API_KEY={key}'; echo plain");
    let done = world.output(&["run", "--no-tui", "--name", &format!("with API_KEY={key}"), "--", "sh", "-c", &script]);
    assert!(done.code == 0 && !done.stdout.contains(key), "{done:?}");
    let run = world.only_run();
    for (args, has) in [
        (&["logs", run.id()][..], "plain"),
        (&["events", run.id()], "run_started"),
        (&["logs", "--lines", "5", run.id()], "plain"),
    ] {
        let done = world.output(args);
        assert!(done.code == 0 && done.stdout.contains(has) && !done.stdout.contains(key), "{args:?}: {done:?}");
    }
    for args in [&["logs", "--raw", run.id()][..], &["logs", "--json", run.id()], &["events", "--json", run.id()]] {
        let done = world.output(args);
        assert!(done.code == 0 && done.stdout.contains(key), "{args:?}: {done:?}");
    }
}

#[test]
fn a_signal_after_the_end_of_the_run_ends_the_printing_and_leaves_the_exit_code() {
    for (format, name, exit, want) in
        [("text", "-TERM", "", 0), ("jsonl", "-HUP", "", 0), ("text", "-QUIT", "; exit 5", 1)]
    {
        let world = World::new();
        let script = format!("{BACKLOG}{exit}");
        let mut unread = Unread::start(&world, &["run", "--no-tui", "--output", format, "--", "sh", "-c", &script]);
        let run = world.only_run();
        run.wait_end();
        let runner = run.runner_pid();
        wait_for("the end of the runner", || (!world.processes().contains(&runner)).then_some(()));
        signal(unread.child.id(), name);
        assert_eq!(unread.end(), want, "{}", unread.stderr());
        let rest = format!("not everything was printed; `subdeck logs {}` has the rest", run.id());
        assert!(unread.stderr().contains(&rest), "{}", unread.stderr());
        assert!(unread.stderr().contains(" of 1 steps"), "the summary is told: {}", unread.stderr());
        assert_eq!(world.output(&["logs", "-n", "1"]).stdout, "end\n");
    }
}

#[test]
fn the_third_ctrl_c_ends_the_printing_of_a_run_that_has_ended() {
    let world = World::new();
    let mut unread = Unread::start(&world, &["run", "--no-tui", "--", "sh", "-c", BACKLOG]);
    let run = world.only_run();
    run.wait_end();
    let runner = run.runner_pid();
    wait_for("the end of the runner", || (!world.processes().contains(&runner)).then_some(()));
    // That the runner is gone reaches the command a moment later; a Ctrl-C before that is one of the ladder for a run that
    // goes on, so how many it takes from here is not known.
    wait_for("the end of the printing", || {
        signal(unread.child.id(), "-INT");
        unread.child.try_wait().unwrap()
    });
    assert!(unread.stderr().contains("press Ctrl-C 1 more"), "{}", unread.stderr());
    assert_eq!(unread.end(), 0, "{}", unread.stderr());
    assert!(unread.stderr().contains("not everything was printed"), "{}", unread.stderr());
}

#[test]
fn the_ladder_works_while_a_flood_is_printed() {
    let world = World::new();
    let stubborn = format!("trap '' TERM INT; {BACKLOG}; while :; do sleep 60; done");
    let mut unread = Unread::start(&world, &["run", "--no-tui", "--", "sh", "-c", &stubborn]);
    let run = world.only_run();
    run.wait_output(0, "end");
    for said in ["interrupting", "stopping", "killing"] {
        signal(unread.child.id(), "-INT");
        unread.wait_stderr(said);
    }
    assert_eq!(unread.end(), 3, "{}", unread.stderr());
    assert_eq!(run.status()["state"], "stopped");
    world.wait_until_empty();

    let world = World::new();
    let mut unread = Unread::start(&world, &["run", "--no-tui", "--", "yes"]);
    let run = world.only_run();
    wait_for("a flood", || (run.dir.join("external-0.stdout.log").metadata().ok()?.len() > 1 << 20).then_some(()));
    signal(unread.child.id(), "-TERM");
    assert_eq!(unread.end(), 3, "{}", unread.stderr());
    assert!(unread.stderr().contains("not everything was printed"), "{}", unread.stderr());
}

#[test]
fn ctrl_c_ends_following_while_a_backlog_is_printed() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", BACKLOG]);
    run.wait_end();
    let mut unread = Unread::start(&world, &["attach", "--no-tui", run.id()]);
    // What prints has its handlers.
    unread.child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    signal(unread.child.id(), "-INT");
    assert_eq!(unread.end(), 130, "{}", unread.stderr());
    assert!(unread.stderr().contains("not following any more"), "{}", unread.stderr());
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_told_once_and_does_not_fail_the_run() {
    let world = World::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for format in ["text", "jsonl", "json"] {
        for (script, want) in [("echo a", 0), ("echo a; exit 3", 1)] {
            let args = ["run", "--no-tui", "--output", format, "--", "sh", "-c", script];
            let done = Done::of(world.subdeck(&args).stdout(full()).output().unwrap());
            assert_eq!(done.code, want, "{format}: {done:?}");
            assert_eq!(done.stderr.matches("standard output cannot be written").count(), 1, "{format}: {done:?}");
        }
        let done = Done::of(
            world.subdeck(&["attach", "--no-tui", "--output", format, "@last"]).stdout(full()).output().unwrap(),
        );
        assert_eq!(done.code, 1, "{format}: {done:?}");
        assert_eq!(done.stderr.matches("standard output cannot be written").count(), 1, "{format}: {done:?}");
    }
}

#[test]
fn output_beyond_the_cap_is_said_where_people_look() {
    let world = World::new();
    let mut command =
        world.subdeck(&["run", "--no-tui", "--", "sh", "-c", "yes $(printf %01000d 0) | head -c 3000000; echo LAST"]);
    let done = Done::of(command.env("SUBDECK_CAPTURE_STEP", "1MiB").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let said = "its output beyond 1.0 MB was not kept";
    let (_, summary) = done.stdout.rsplit_once("complete  (1 of 1 steps").unwrap();
    assert!(summary.contains(said), "{summary}");
    let status = world.output(&["status", "@last"]).stdout;
    assert!(status.contains(said), "{status}");
    for args in [&["logs", "@last:1"][..], &["logs", "-f", "@last:1"], &["logs", "-n", "1", "@last"]] {
        let done = world.output(args);
        assert_eq!(done.stdout.lines().last(), Some(format!("▲ {said}").as_str()), "{args:?}");
        assert_eq!((done.stdout.matches(said).count(), done.stderr.as_str()), (1, ""), "{args:?}");
    }
    for flag in ["--raw", "--json"] {
        let done = world.output(&["logs", flag, "@last:1"]);
        assert!(!done.stdout.contains(said), "{flag}: standard output is data");
        assert!(done.stderr.contains(&format!("step 1: {said}")), "{flag}: {}", done.stderr);
    }
}

#[test]
fn a_plain_command_is_not_resumed_whatever_it_should_do() {
    let world = World::new();
    assert_eq!(world.output(&["run", "--no-tui", "--", "true"]).code, 0);
    for args in [&["resume", "@last:1"][..], &["resume", "@last:1", "go on"], &["resume", "@last"]] {
        let done = world.output(args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(done.stderr.contains("is a plain command and has no session"), "{args:?}: {done:?}");
        assert!(!done.stderr.contains("say what it should do"), "{args:?}: {done:?}");
    }
}
