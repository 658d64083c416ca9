//! Files that are half written, full disks, limits on open files and on watching, a directory that goes away, a reader
//! that does. The numbers are those of reports about other programs; B59, B63 and B65 concern no screen and no process
//! and are tested beside the code that they are about.
#![cfg(target_os = "linux")]

#[allow(dead_code)]
#[path = "support/full_disk.rs"]
mod full_disk;

#[allow(dead_code)]
#[path = "support/pty.rs"]
mod pty;

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use full_disk::on_a_small_disk;
use portable_pty::CommandBuilder;
use pty::Pty;
use support::{Done, World, code, wait_child, wait_for};

/// A command on a terminal.
fn on_a_terminal(command: &Command) -> Pty {
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    builder.cwd(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => builder.env(name, value),
            None => builder.env_remove(name),
        }
    }
    Pty::spawn(builder, 120, 36)
}

fn deck(world: &World, arguments: &[&str]) -> Pty {
    on_a_terminal(&world.subdeck(arguments))
}

/// The same program started by a shell that does something first.
fn after(world: &World, first: &str, arguments: &[&str]) -> Command {
    let own = world.subdeck(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_subdeck")]).args(arguments);
    command.current_dir(world.project()).stdin(Stdio::null());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn b54_a_status_that_is_written_in_place_is_never_taken_for_broken_and_never_written() {
    let world = World::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/running-parallel");
    let dir = world.project().join("foreign");
    fs::create_dir(&dir).unwrap();
    // With a runner that lives: this process stands for it.
    for file in ["status.json", "events.jsonl"] {
        let text = fs::read_to_string(from.join(file)).unwrap();
        let text = text.replace("\"pid\": 4194303", &format!("\"pid\": {}", std::process::id()));
        fs::write(dir.join(file), text).unwrap();
    }
    let status = dir.join("status.json");
    let whole = fs::read(&status).unwrap();
    let mut terminal = deck(&world, &["attach", dir.to_str().unwrap()]);
    terminal.wait_text("╭─›steps");
    for n in 0..2_000 {
        fs::write(&status, &whole[..whole.len() * (n % 7) / 7]).unwrap();
        fs::write(&status, &whole).unwrap();
    }
    // The next picture is one of the whole document.
    terminal.keys("?");
    terminal.wait_text("╭─ keys");
    terminal.keys("\x1b[27u");
    terminal.wait_gone("╭─ keys");
    assert!(!terminal.text().contains("cannot be read"), "{}", terminal.text());
    // One that stays as it is, is told, below the last good picture; and nobody repairs it.
    fs::write(&status, &whole[..whole.len() / 2]).unwrap();
    terminal.wait_text("the last good picture is shown");
    terminal.wait_text("▲ attention");
    assert_eq!(fs::read(&status).unwrap(), &whole[..whole.len() / 2]);
    fs::write(&status, &whole).unwrap();
    terminal.wait_gone("the last good picture");
    terminal.keys("q");
    terminal.wait_text("children are alive");
    terminal.keys("l");
    terminal.wait_exit();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing was written there");
}

#[test]
fn b55_a_full_disk_empties_no_file_and_the_deck_says_what_is_waited_for() {
    on_a_small_disk("b55_a_full_disk_empties_no_file_and_the_deck_says_what_is_waited_for", |disk| {
        let script = "echo before; until [ -e go ]; do sleep 0.02; done; echo after the room; exit 4";
        let mut terminal = deck(&disk.world, &["run", "--name", "tight", "--", "sh", "-c", script]);
        terminal.wait_text("before");
        let run = disk.world.only_run();
        run.wait("the child in the status", |s| s["steps"][0]["externalProcess"]["pid"].is_number());
        disk.fill();
        terminal.wait_text("the disk of this run is full");
        let pid = u32::try_from(run.status()["steps"][0]["externalProcess"]["pid"].as_u64().unwrap()).unwrap();
        disk.world.file("go", "");
        wait_for("the end of the child", || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
        // Every look finds a whole document, and the picture stays.
        for _ in 0..200 {
            assert_eq!(run.status()["state"], "running");
        }
        terminal.wait_text("before");
        disk.free();
        terminal.wait_text("the run is over");
        terminal.wait_text("after the room");
        terminal.wait_gone("the disk of this run is full");
        assert_eq!(run.status()["steps"][0]["exitCode"], 4);
        terminal.keys("q");
        assert_eq!(terminal.wait_exit().exit_code(), 1);
    });
}

#[test]
fn b56_few_open_files_lose_no_state_and_fail_no_child() {
    for limit in [64, 32] {
        let world = World::new();
        let mut plan = "name = \"few\"\n".to_owned();
        for n in 0..6 {
            plan += &format!(
                "[[step]]\nid = \"s{n}\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo out {n}; echo err {n} >&2\"] }}\n"
            );
        }
        let plan = world.file("plan.toml", &plan);
        let words = ["run", "--no-tui", plan.to_str().unwrap()];
        let done = Done::of(after(&world, &format!("ulimit -n {limit}"), &words).output().unwrap());
        assert_eq!(done.code, 0, "{limit}: {done:?}");
        let status = world.only_run().wait_end();
        assert_eq!(status["state"], "complete", "{limit}");
        for n in 0..6 {
            assert_eq!(
                (&status["steps"][n]["status"], &status["steps"][n]["exitCode"]),
                (&"complete".into(), &0.into())
            );
            assert!(done.stdout.contains(&format!("out {n}")), "{limit}: {done:?}");
        }
        // A deck with so few shows it all the same.
        let words = ["attach", "@last"];
        let terminal = on_a_terminal(&after(&world, &format!("ulimit -n {limit}"), &words));
        terminal.wait_text("the run is over");
        terminal.keys("Gz");
        terminal.wait_text("out 5");
    }
}

/// The limits on watching, in a user namespace of the test's own; `None` where there can be none.
fn with_limit(world: &World, limit: &str, arguments: &[&str]) -> Option<Command> {
    let set = format!("echo 0 > /proc/sys/user/{limit}");
    let possible = Command::new("unshare").args(["--user", "--map-root-user", "sh", "-c", &set]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("skipped, {limit} cannot be set here");
        return None;
    }
    let inner = after(world, &set, arguments);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(world.project()).stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}

#[test]
fn b57_a_limit_on_watching_is_named_and_nothing_is_missed() {
    for (limit, named) in [
        ("max_inotify_watches", "the limit fs.inotify.max_user_watches is reached"),
        ("max_inotify_instances", "the limit fs.inotify.max_user_instances or that of open files is reached"),
    ] {
        let world = World::new();
        let script = "echo before; until [ -e go ]; do sleep 0.02; done; echo after";
        let words = ["run", "--name", "unwatched", "--", "sh", "-c", script];
        let Some(command) = with_limit(&world, limit, &words) else { return };
        let mut terminal = on_a_terminal(&command);
        terminal.wait_text("before");
        terminal.wait_text(named);
        terminal.wait_text("looking every 250 ms instead");
        assert!(!terminal.text().contains("o space left"), "{}", terminal.text());
        // The runner has no watch either, and takes requests all the same.
        world.file("go", "");
        terminal.wait_text("after");
        terminal.wait_text("the run is over");
        terminal.keys("q");
        assert_eq!(terminal.wait_exit().exit_code(), 0, "{limit}");

        let words = ["run", "--name", "unwatched", "--", "sh", "-c", "echo up; exec sleep 1000"];
        let mut terminal = on_a_terminal(&with_limit(&world, limit, &words).unwrap());
        terminal.wait_text("up");
        terminal.keys("X");
        terminal.wait_text("Stop the whole run?");
        terminal.keys("y");
        terminal.wait_text("the run is over");
        terminal.keys("q");
        assert_eq!(terminal.wait_exit().exit_code(), 3, "{limit}");
    }
}

#[test]
fn b60_the_last_picture_stays_when_the_directory_goes_and_the_exit_code_is_what_was_seen() {
    // Over when it went: with its own code. Not over: nobody knows, which is 7.
    for (script, seen, code) in
        [("exit 4", "the run is over", 1), ("echo hello from the child; exec sleep 1000", "hello from the child", 7)]
    {
        let world = World::new();
        let mut terminal = deck(&world, &["run", "--name", "nap", "--", "sh", "-c", script]);
        terminal.wait_text(seen);
        // While it is being removed the runner may still write.
        let dir: PathBuf = world.only_run().dir;
        wait_for("the directory is removed", || (fs::remove_dir_all(&dir).is_ok() || !dir.exists()).then_some(()));
        terminal.wait_text("this is the last picture");
        if code == 7 {
            terminal.wait_text("hello from the child");
        }
        terminal.keys("q");
        assert_eq!(terminal.wait_exit().exit_code(), code, "{}", terminal.text());
        assert!(terminal.is_sane());
        terminal.wait_text("directory was removed");
        assert!(!dir.exists(), "it is not made again");
    }
}

#[test]
fn b67_a_reader_that_goes_away_is_no_fault_of_the_run_and_no_noise() {
    let world = World::new();
    let text = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done; echo end > ended";
    let words = ["run", "--no-tui", "--", "sh", "-c", text];
    let mut child = world.subdeck(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // As head -1 does.
    let mut first = String::new();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reader, &mut first).unwrap();
    drop(reader);
    let status = wait_child(&mut child);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(code(status), 0, "{done:?}");
    assert!(!done.stderr.contains("panicked") && done.stderr.lines().count() <= 4, "{done:?}");
    assert!(world.project().join("ended").exists(), "the run went on to its end");
    assert_eq!(world.only_run().status()["state"], "complete");
    // Everything that prints, into a pipe that nobody reads.
    for words in [
        &["ls"][..],
        &["ls", "--json"],
        &["status", "@last"],
        &["logs", "@last"],
        &["logs", "--raw", "@last"],
        &["events", "@last"],
        &["events", "--json", "@last"],
        &["attach", "--no-tui", "@last"],
        &["config", "explain"],
        &["agents"],
        &["--help"],
        &["run", "--help"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = Done::of(world.subdeck(words).stdout(writer).stderr(Stdio::piped()).output().unwrap());
        assert!(!done.stderr.contains("panicked") && done.code != 101, "{words:?}: {done:?}");
        assert!(done.stderr.lines().count() <= 4, "{words:?}: {done:?}");
    }
}

#[test]
fn b68_the_deck_stays_when_everything_has_failed_and_a_summary_follows_it() {
    let world = World::new();
    let step = "[[step.parallel]]\nrunner = { type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo no >&2; exit 5\"] }\n";
    let plan = world.file("plan.toml", &format!("name = \"bad\"\n[[step]]\n{}", step.repeat(4)));
    let mut terminal = deck(&world, &["run", plan.to_str().unwrap()]);
    terminal.wait_text("the run is over");
    terminal.wait_for("four failures", |s| s.contents().matches("✗ failed").count() >= 4);
    terminal.keys("q");
    assert_eq!(terminal.wait_exit().exit_code(), 1);
    assert!(terminal.is_sane());
    terminal.wait_for("the summary", |s| {
        let text = s.contents();
        !s.alternate_screen() && text.contains("bad") && text.contains("failed") && text.contains("0 of 4 steps done")
    });
}
