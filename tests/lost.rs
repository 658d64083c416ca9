//! Runs whose runner was killed, alone or together with its keeper: they read as lost, their files are whole, a look
//! changes and ends nothing, and what lives on can be found and ended.

#![cfg(target_os = "linux")]

#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Run, World, files_below, wait_for};

/// Kills runner and keeper; the keeper is frozen first, so that it does not see the runner die.
fn kill_both(run: &Run) {
    let identity: Value = serde_json::from_slice(&fs::read(run.dir.join("subdeck/runner.json")).unwrap()).unwrap();
    let pid = |key: &str| i32::try_from(identity[key].as_i64().unwrap()).unwrap();
    let (runner, keeper) = (pid("pid"), pid("keeperPid"));
    send(keeper, "-STOP");
    send(runner, "-KILL");
    send(keeper, "-KILL");
    wait_for("the end of both", || (!lives(runner) && !lives(keeper)).then_some(()));
}

fn send(pid: i32, signal: &str) {
    let done = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "{signal} {pid}");
}

/// Whether a process lives. One whose first thread has ended lives until its other threads have, and holds its lock.
fn lives(pid: i32) -> bool {
    if fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1) {
        return true;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Every file of the root with its bytes.
fn bytes(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files_below(root).into_iter().map(|p| (p.clone(), fs::read(p).unwrap())).collect()
}

/// A run of two steps at once and one that waits, whose tools live in sessions of their own.
fn busy(world: &World) -> Run {
    let script = "setsid sleep 300 & echo up; sleep 300";
    let step = |id: &str| {
        format!(r#"{{ id = "{id}", runner = {{ type = "external-cli", command = "sh", args = ["-c", "{script}"] }} }}"#)
    };
    let plan = format!(
        "name = \"busy\"\n[[step]]\nparallel = [{}, {}]\n[[step]]\nid = \"later\"\nrunner = {{ type = \"external-cli\", command = \"true\" }}\n",
        step("one"),
        step("two")
    );
    let plan = world.file("plan.toml", &plan);
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait_output(0, "up");
    run.wait_output(1, "up");
    run
}

#[test]
fn a_run_without_runner_and_keeper_is_told_as_lost_and_no_look_changes_anything() {
    let world = World::new();
    let run = busy(&world);
    kill_both(&run);
    let before = bytes(&world.root());
    let living = world.processes();
    assert!(living.len() >= 4, "two shells and their sleeps: {living:?}");

    let status = world.output(&["status", run.id()]);
    assert_eq!(status.code, 0, "{status:?}");
    assert!(status.stdout.contains(": lost  (0 of 3 steps"), "{status:?}");
    assert!(status.stdout.contains("lost: the runner (pid"), "{status:?}");
    let words: Vec<&str> = status.stdout.lines().filter_map(|l| l.split_whitespace().nth(2)).skip(1).take(3).collect();
    assert_eq!(words, ["lost", "lost", "not"], "{status:?}");
    for pid in &living {
        assert!(status.stdout.contains(&format!("pid {pid} of step ")), "{pid}: {status:?}");
    }
    assert!(status.stdout.contains("sleep 300") && status.stdout.contains("subdeck stop"), "{status:?}");

    let json = world.output(&["status", "--json", run.id()]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let states: Vec<_> = json["steps"].as_array().unwrap().iter().map(|s| s["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["lost", "lost", "pending"]);
    assert!(json["lost"].as_str().unwrap().contains("is gone"), "{json}");
    let mut left: Vec<_> = json["leftovers"].as_array().unwrap().iter().map(|l| l["pid"].as_u64().unwrap()).collect();
    left.sort_unstable();
    let mut want: Vec<u64> = living.iter().copied().map(u64::from).collect();
    want.sort_unstable();
    assert_eq!(left, want);

    let list = world.output(&["ls"]);
    let row: Vec<&str> =
        list.stdout.lines().find(|l| l.starts_with(&run.id()[..8])).unwrap().split_whitespace().collect();
    assert!(row.contains(&"lost") && row.contains(&"0/3"), "{list:?}");
    let listed: Value = serde_json::from_str(&world.output(&["ls", "--json"]).stdout).unwrap();
    assert_eq!(listed["runs"][0]["steps"][0]["state"], "lost");

    let attached = world.output(&["attach", "--no-tui", run.id()]);
    assert_eq!(attached.code, 7, "{attached:?}");
    assert!(attached.stdout.contains("lost: the runner (pid"), "{attached:?}");
    assert_eq!(world.output(&["wait", run.id(), "--for", "running"]).code, 7);
    for refused in [["retry", run.id()], ["resume", run.id()]] {
        let done = world.output(&refused);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("live on") && done.stderr.contains("subdeck stop"), "{done:?}");
    }
    let interrupted = world.output(&["interrupt", run.id()]);
    assert!(interrupted.code == 2 && interrupted.stderr.contains("the run is lost"), "{interrupted:?}");

    assert_eq!(bytes(&world.root()), before, "a look writes nothing");
    assert_eq!(world.processes(), living, "a look ends nothing");
}

#[test]
fn what_lives_on_of_a_lost_run_is_ended_by_a_stop_and_by_nothing_else() {
    let world = World::new();
    let other = world.detach(&["--", "sh", "-c", "echo up; sleep 300"]);
    other.wait_output(0, "up");
    let kept = world.processes();
    let run = busy(&world);
    kill_both(&run);
    let one = world.output(&["stop", &format!("{}:one", run.id())]);
    assert_eq!(one.code, 0, "{one:?}");
    assert!(one.stderr.contains("ended what the lost run had left"), "{one:?}");
    let json: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    let left = json["leftovers"].as_array().unwrap();
    assert!(!left.is_empty() && left.iter().all(|l| l["step"] == 2), "the other step goes on: {left:?}");
    let all = world.output(&["stop", run.id(), "--wait"]);
    assert_eq!(all.code, 0, "{all:?}");
    assert_eq!(world.processes(), kept, "the processes of another run are left alone");
    let again = world.output(&["stop", run.id()]);
    assert!(again.code == 2 && again.stderr.contains("the run is lost"), "{again:?}");
    // Now nothing of it is in the way of a new one.
    let plan = run.dir.join("subdeck/plan.json");
    let quick = fs::read_to_string(&plan).unwrap().replace("setsid sleep 300 & echo up; sleep 300", "true");
    fs::write(&plan, quick).unwrap();
    let retried = world.output(&["retry", run.id(), "--no-tui"]);
    assert_eq!(retried.code, 0, "{retried:?}");
}
