//! The fleet as a person has it: the real program on a terminal.

#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use support::Home;

/// A finished run in a root, as its runner left it.
fn put(root: &Path, id: &str, name: &str, state: &str) -> PathBuf {
    let dir = root.join("async-subagent-runs").join(id);
    fs::create_dir_all(&dir).unwrap();
    let status = serde_json::json!({
        "runId": id, "mode": "single", "state": state, "startedAt": 1_764_000_000_000_u64,
        "lastUpdate": 1_764_000_060_000_u64, "endedAt": 1_764_000_060_000_u64, "pid": 1, "cwd": "/srv/project",
        "steps": [{ "agent": "scout", "status": state, "model": "vendor/m-large",
            "totalCost": { "inputTokens": 100, "outputTokens": 10, "costUsd": 0.25 } }],
        "subdeck": { "name": name },
    });
    let file = dir.join(".status.json.tmp");
    fs::write(&file, status.to_string()).unwrap();
    fs::rename(file, dir.join("status.json")).unwrap();
    dir
}

#[test]
fn a_run_is_opened_from_the_fleet_and_esc_comes_back() {
    let home = Home::new();
    let root = home.path().join("root");
    put(&root, "aaaa-1", "first", "complete");
    let broken = put(&root, "bbbb-2", "second", "failed");
    fs::write(broken.join("status.json"), "{\"runId\"").unwrap();
    let mut fleet = home.deck(&[], 120, 36);
    fleet.wait_text("unreadable 1");
    fleet.wait_text("it is not valid JSON");
    fleet.wait_text("first");
    // Runs come, change and go while one looks.
    put(&root, "cccc-3", "third", "paused");
    fleet.wait_text("third");
    fs::remove_dir_all(&broken).unwrap();
    fleet.wait_gone("unreadable");
    fleet.keys("/first\r");
    fleet.keys("\r");
    fleet.wait_text("the run is over");
    fleet.wait_text("esc back");
    fleet.keys("\x1b");
    fleet.wait_text("by state, the newest first");
    fleet.keys("q");
    assert!(fleet.wait_exit().success());
    assert!(fleet.is_sane(), "{}", fleet.text());
}

#[test]
fn a_run_is_started_from_the_fleet() {
    let home = Home::new();
    let agents = home.path().join(".subdeck/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("player.md"), "---\nname: player\ndescription: plays a scene\n---\nPlay.\n").unwrap();
    // An agent that only waits.
    let pi = home.path().join("pi");
    fs::write(&pi, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&pi, fs::Permissions::from_mode(0o755)).unwrap();
    let mut fleet = home.deck_with(&[], &[("PI_SUBAGENT_PI_BINARY", pi.to_str().unwrap())], 120, 36);
    fleet.wait_text("no runs yet: c starts one");
    fleet.keys("c");
    fleet.wait_text("plays a scene");
    // What is missing is asked for, and nothing is started.
    // What runs it stands there, and can be chosen.
    fleet.keys("\t");
    fleet.wait_text("pi, as the agent says");
    fleet.wait_text("opencode");
    fleet.keys("\x13");
    fleet.wait_text("what is it to do?");
    fleet.keys("Say something");
    fleet.wait_text("Say something");
    fleet.keys("\x13");
    fleet.wait_text("the run started");
    fleet.wait_text("player");
    fleet.keys("\x1b");
    fleet.wait_text("by state, the newest first");
    fleet.wait_text("Say something");
    fleet.keys("q");
    fleet.wait_exit();
    assert!(fleet.is_sane());
}

#[test]
fn without_a_terminal_the_fleet_is_a_list() {
    let home = Home::new();
    put(&home.path().join("root"), "aaaa-1", "first", "complete");
    put(&home.path().join("root"), "bbbb-2", "second", "failed");
    let listed = home.subdeck(&[]);
    assert!(listed.contains("aaaa-1") && listed.contains("first") && listed.contains("$0.25"), "{listed}");
    let grouped = home.subdeck(&["ls", "--group", "state", "--sort", "name"]);
    let places = ["failed or stopped (1)", "second", "complete (1)", "first"].map(|text| grouped.find(text).unwrap());
    assert!(places.is_sorted(), "{grouped}");
    assert!(!home.subdeck(&["ls", "second"]).contains("aaaa-1"));
    assert!(home.subdeck(&["ls", "--show", "trouble", "--json"]).contains("bbbb-2"));
}

#[test]
fn two_viewers_look_at_the_same_runs_and_change_nothing() {
    let home = Home::new();
    let dir = put(&home.path().join("root"), "aaaa-1", "first", "complete");
    let before = fs::read_dir(&dir).unwrap().count();
    let mut viewers = [home.deck(&[], 100, 30), home.deck(&[], 80, 24)];
    for viewer in &mut viewers {
        viewer.wait_text("first");
        viewer.keys("\r");
        viewer.wait_text("the run is over");
    }
    for viewer in &mut viewers {
        viewer.keys("\x1b");
        viewer.wait_text("by state");
        viewer.keys("q");
        viewer.wait_exit();
        assert!(viewer.is_sane());
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), before);
}

#[test]
fn a_run_that_was_started_in_a_step_is_found_in_it_and_below_it() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_subdeck");
    let script = format!("{program} run --detach --name inner -- sleep 1000 && echo both run && sleep 1000");
    home.subdeck(&["run", "--detach", "--name", "outer", "--", "sh", "-c", &script]);
    let mut fleet = home.deck(&[], 120, 36);
    fleet.wait_text("└ ● running");
    fleet.keys("/outer\r\r");
    fleet.wait_text("both run");
    fleet.wait_text("1 run inside");
    fleet.keys("r");
    fleet.wait_text("╭─ 1 sleep");
    fleet.wait_text("step 1");
    fleet.wait_gone("1 run inside");
    fleet.wait_text("inner");
    fleet.keys("\x1b");
    fleet.wait_text("1 run inside");
    fleet.keys("\x1b");
    fleet.wait_text("by state, the newest first");
    fleet.keys("q");
    fleet.wait_exit();
    assert!(fleet.is_sane());
    let list: serde_json::Value = serde_json::from_str(&home.subdeck(&["ls", "--json"])).unwrap();
    let runs = list["runs"].as_array().unwrap();
    let [outer, inner] = ["outer", "inner"].map(|name| runs.iter().find(|r| r["name"] == name).unwrap());
    assert_eq!(inner["started_in"], serde_json::json!({ "run": outer["run"], "step": 1 }));
    // The end of a step is the end of what was started in it.
    let id = |run: &serde_json::Value| run["run"].as_str().unwrap().to_owned();
    home.subdeck(&["stop", "--wait", &id(outer)]);
    home.subdeck(&["wait", "--timeout", "60s", &id(inner)]);
    assert!(!home.subdeck(&["status", "--json", &id(inner)]).contains("\"state\":\"running\""));
}

/// A process that dies changes no file, and a clock that is drawn each second puts no look off.
#[test]
fn the_death_of_a_runner_of_others_is_noticed_by_everybody_who_looks_on() {
    let home = Home::new();
    let mut runner = Command::new("sleep").arg("1000").spawn().unwrap();
    let dir = home.path().join("root/async-subagent-runs/aaaa-1");
    fs::create_dir_all(&dir).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let status = serde_json::json!({
        "runId": "aaaa-1", "mode": "single", "state": "running", "startedAt": now, "lastUpdate": now, "pid": runner.id(),
        "cwd": "/", "steps": [{ "agent": "scout", "status": "running", "startedAt": now }],
    });
    fs::write(dir.join("status.json"), status.to_string()).unwrap();
    let (mut deck, mut fleet) = (home.deck(&["attach", "aaaa-1"], 120, 36), home.deck(&[], 120, 36));
    deck.wait_text("● running");
    fleet.wait_text("● running");
    runner.kill().unwrap();
    runner.wait().unwrap();
    deck.wait_text("† lost");
    deck.wait_text("read-only");
    fleet.wait_text("† lost");
    for pty in [&mut deck, &mut fleet] {
        pty.keys("q");
        pty.wait_exit();
        assert!(pty.is_sane(), "{}", pty.text());
    }
}

#[test]
fn a_run_is_played_again_from_the_fleet() {
    let home = Home::new();
    home.subdeck(&["run", "--no-tui", "--name", "played", "--", "echo", "said once"]);
    let mut fleet = home.deck(&[], 120, 36);
    fleet.wait_text("played");
    fleet.keys("P");
    fleet.wait_text("REPLAY");
    fleet.keys("\x1b");
    fleet.wait_gone("REPLAY");
    fleet.keys("\x1b");
    fleet.wait_text("by state, the newest first");
    fleet.keys("q");
    fleet.wait_exit();
    assert!(fleet.is_sane());
}

/// How often the threads of a process gave the processor away or had it taken.
#[cfg(target_os = "linux")]
fn switches(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let counts = texts.map(|text| {
        let lines = text.lines().filter(|line| line.contains("ctxt_switches"));
        lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>()
    });
    counts.sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_fleet_of_runs_that_are_over_sleeps_until_something_happens() {
    let home = Home::new();
    if !subdeck::rundir::watch::tells_everything(home.path()) {
        println!("skipped: {} is not on a file system that tells everything", home.path().display());
        return;
    }
    let root = home.path().join("root");
    put(&root, "aaaa-1", "first", "complete");
    let mut fleet = home.deck(&[], 120, 36);
    fleet.wait_text("first");
    // Longer than any look that is had for safety's sake; what still settles at the beginning counts for nothing.
    let (quiet, deadline) = (Duration::from_secs(8), Instant::now() + Duration::from_secs(90));
    let (mut count, mut since) = (switches(fleet.pid()), Instant::now());
    while since.elapsed() < quiet {
        assert!(Instant::now() < deadline, "it keeps waking up");
        std::thread::sleep(Duration::from_millis(100));
        let now = switches(fleet.pid());
        if now != count {
            (count, since) = (now, Instant::now());
        }
    }
    put(&root, "bbbb-2", "second", "failed");
    fleet.wait_text("second");
    fleet.keys("q");
    fleet.wait_exit();
}
