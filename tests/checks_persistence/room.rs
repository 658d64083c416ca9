//! Disks without room (numbers 4 to 6 and 11 to 13).

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::full_disk::{SmallDisk, on_a_small_disk};
use crate::support::{Done, Run, World, wait_child, wait_for};
use crate::{closed, marker, public, read, run_log};

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
        assert_eq!(crate::support::code(status), 0, "the exit code is that of the child's success: {done:?}");
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
