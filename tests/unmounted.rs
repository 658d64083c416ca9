//! The file system with the runs is unmounted while somebody looks: a real one, in a namespace of the test's own.

#[path = "support/namespace.rs"]
mod namespace;
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::Home;

/// A run of somebody else that goes on; this process stands for its runner.
fn put(root: &Path, id: &str, agent: &str) -> PathBuf {
    let dir = root.join("async-subagent-runs").join(id);
    fs::create_dir_all(&dir).unwrap();
    let status = serde_json::json!({
        "runId": id, "mode": "single", "state": "running", "startedAt": 1_764_000_000_000_u64,
        "lastUpdate": 1_764_000_060_000_u64, "pid": std::process::id(), "cwd": "/srv/project",
        "steps": [{ "agent": agent, "status": "running" }],
    });
    fs::write(dir.join("status.json"), status.to_string()).unwrap();
    dir
}

fn mount(root: &Path) {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=0700", "none"]).arg(root).status();
    assert!(done.unwrap().success());
}

#[test]
fn an_unmounted_file_system_is_named_holds_nobody_up_and_may_come_back() {
    namespace::in_a_namespace("an_unmounted_file_system_is_named_holds_nobody_up_and_may_come_back", || {
        let home = Home::new();
        let root = home.path().join("root");
        fs::create_dir(&root).unwrap();
        mount(&root);
        let dir = put(&root, "aaaa-1", "scout");
        let (mut deck, mut fleet) = (home.deck(&["attach", dir.to_str().unwrap()], 120, 36), home.deck(&[], 120, 36));
        deck.wait_text("scout");
        fleet.wait_text("scout");
        // Whoever only looks keeps no file system busy.
        assert!(Command::new("umount").arg(&root).status().unwrap().success());
        deck.wait_text("is on a file system that was unmounted");
        deck.wait_text("scout");
        fleet.wait_gone("scout");
        fleet.wait_text("no runs yet");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nothing is made in its place");
        // Another one in the same place is looked at like the first.
        mount(&root);
        let other = put(&root, "bbbb-2", "worker");
        deck.wait_text("is on a file system that was unmounted");
        fleet.wait_text("worker");
        for pty in [&mut deck, &mut fleet] {
            pty.keys("q");
            pty.wait_exit();
            assert!(pty.is_sane(), "{}", pty.text());
        }
        // Nobody would ever end it.
        fs::remove_dir_all(other).unwrap();
    });
}
