//! The deck of a run whose runner and keeper were killed: it says what lives on, and ends it when it is asked to.

#![cfg(target_os = "linux")]

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::path::PathBuf;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use support::pty::PATIENCE;
use support::{ESCAPE, Home};

/// The process of a number in a file of JSON.
fn pid_of(file: &str, key: &str) -> Pid {
    let json: serde_json::Value = serde_json::from_str(file).unwrap();
    Pid::from_raw(i32::try_from(json[key].as_i64().unwrap()).unwrap()).unwrap()
}

fn wait_dead(pid: Pid) {
    let deadline = Instant::now() + PATIENCE;
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        test_kill_process(pid).is_ok() && !stat.contains(") Z ")
    };
    while lives() {
        assert!(Instant::now() < deadline, "{pid:?} lives");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// A run of two commands that go on for long, without anybody who sees to them.
fn abandoned(home: &Home) -> String {
    let step = |id: &str| {
        format!(
            r#"{{ id = "{id}", runner = {{ type = "external-cli", command = "sh", args = ["-c", "echo up; echo $$ > {id}.pid.new; mv {id}.pid.new {id}.pid; sleep 1000; echo never"] }} }}"#
        )
    };
    home.file("plan.toml", &format!("name = \"busy\"\n[[step]]\nparallel = [{}, {}]\n", step("one"), step("two")));
    let id = home.subdeck(&["run", "--detach", "plan.toml"]).trim().to_owned();
    for step in ["one", "two"] {
        shell(home, step);
    }
    let dir: PathBuf = home.path().join("root/async-subagent-runs").join(&id);
    let identity = std::fs::read_to_string(dir.join("subdeck/runner.json")).unwrap();
    let (runner, keeper) = (pid_of(&identity, "pid"), pid_of(&identity, "keeperPid"));
    // Frozen first, so that it does not see the runner die.
    kill_process(keeper, Signal::STOP).unwrap();
    kill_process(runner, Signal::KILL).unwrap();
    kill_process(keeper, Signal::KILL).unwrap();
    wait_dead(runner);
    wait_dead(keeper);
    id
}

/// The shell of a step.
fn shell(home: &Home, step: &str) -> Pid {
    let path = home.path().join(format!("{step}.pid"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(pid) = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()) {
            return Pid::from_raw(pid).unwrap();
        }
        assert!(Instant::now() < deadline, "{step} never began");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

#[test]
fn what_lives_on_of_a_lost_run_is_told_and_ended_by_its_key_and_nothing_is_begun_before() {
    let home = Home::new();
    let id = abandoned(&home);
    let (one, two) = (shell(&home, "one"), shell(&home, "two"));
    let pty = home.deck(&["attach", &id], 120, 36);
    pty.wait_text("▲ 4 PROCESSES LIVE ON");
    pty.wait_text(&format!("1 one: pid {} sh -c ", one.as_raw_nonzero()));
    pty.wait_text("X end what lives on");
    pty.wait_text(") is gone since ");
    pty.wait_text("; the run is lost");
    // Nothing is begun again beside it.
    pty.keys("R");
    pty.wait_text("X first: 4 processes of this run live on and would meet the new ones");
    // One step's alone, and not without an answer.
    pty.keys("x");
    pty.wait_text("End 2 processes of step 1 that nobody supervises any more?");
    pty.keys(ESCAPE);
    pty.wait_gone("supervises any more?");
    assert!(test_kill_process(one).is_ok());
    pty.keys("x");
    pty.wait_text("supervises any more?");
    pty.keys("y");
    wait_dead(one);
    pty.wait_text("▲ 2 PROCESSES LIVE ON");
    assert!(test_kill_process(two).is_ok());
    pty.keys("x");
    pty.wait_text("nothing of step 1 lives on");
    pty.keys("X");
    pty.wait_text("End 2 processes that nobody supervises any more?");
    pty.keys("y");
    wait_dead(two);
    pty.wait_gone("LIVE ON");
    pty.keys("R");
    pty.wait_text("Do 2 steps again?");
}

#[test]
fn a_deck_that_only_looks_tells_what_lives_on_and_ends_nothing() {
    let home = Home::new();
    let id = abandoned(&home);
    let one = shell(&home, "one");
    let pty = home.deck(&["attach", "--read-only", &id], 120, 36);
    pty.wait_text("▲ 4 PROCESSES LIVE ON");
    pty.keys("X");
    pty.wait_text("cannot be ended from here: it is only looked at");
    assert!(test_kill_process(one).is_ok());
    pty.keys("q");
    home.subdeck(&["stop", &id]);
    wait_dead(one);
}
