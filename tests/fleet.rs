//! The fleet as a person has it: the real program on a terminal.

#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    fleet.wait_text("by state, age first");
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
    fleet.keys("\x13");
    fleet.wait_text("what is it to do?");
    fleet.keys("Say something");
    fleet.wait_text("Say something");
    fleet.keys("\x13");
    fleet.wait_text("the run started");
    fleet.wait_text("player");
    fleet.keys("\x1b");
    fleet.wait_text("by state, age first");
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
