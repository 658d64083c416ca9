//! Removing old runs, with the program: what would go is listed, what goes is gone, and nothing else ever goes: none that
//! lives or is about to, none of others, nothing that a link leads to.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Done, Run, World, files_below, wait_for};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A run that has ended, so long ago.
fn ended(world: &World, days: i64, args: &[&str]) -> Run {
    let run = world.detach(args);
    run.wait_end();
    // While its runner or its keeper is still there it is nobody's to remove.
    let is_its = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(run.id())
    };
    wait_for("the end of runner and keeper", || (!world.processes().iter().any(is_its)).then_some(()));
    age(&run.dir, days);
    run
}

/// Makes a run older, with its entry in the index, whose name has the time.
fn age(dir: &Path, days: i64) {
    let id = dir.file_name().unwrap().to_str().unwrap();
    for entry in files_below(&dir.parent().unwrap().join(".terminal-runs")) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if let Some((time, _)) = name.split_once('-').filter(|(_, rest)| rest.starts_with(id)) {
            let time = time.parse::<i64>().unwrap() - days * DAY;
            fs::rename(&entry, entry.with_file_name(format!("{time:016}-{id}.json"))).unwrap();
        }
    }
    let path = dir.join("status.json");
    let mut status: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for key in ["startedAt", "endedAt", "lastUpdate"] {
        if let Some(at) = status[key].as_f64() {
            status[key] = ((at as i64) - days * DAY).into();
        }
    }
    fs::write(&path, serde_json::to_vec(&status).unwrap()).unwrap();
}

fn prune(world: &World, args: &[&str]) -> Done {
    let mut all = vec!["prune"];
    all.extend(args);
    world.output(&all)
}

/// The runs that a dry run names, and that a look at the folder finds.
fn named(done: &Done) -> BTreeSet<String> {
    done.stdout.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn there(world: &World) -> BTreeSet<String> {
    let runs = fs::read_dir(world.root().join("async-subagent-runs")).into_iter().flatten().flatten();
    runs.map(|e| e.file_name().into_string().unwrap()).filter(|name| !name.ends_with("-runs")).collect()
}

fn ids(runs: &[&Run]) -> BTreeSet<String> {
    runs.iter().map(|run| run.id().to_owned()).collect()
}

#[test]
fn what_is_old_enough_is_listed_first_and_removed_with_all_that_leads_to_it() {
    let world = World::new();
    let new = ended(&world, 0, &["--", "true"]);
    let old = ended(&world, 40, &["--name", "old one", "--", "true"]);
    let failed = ended(&world, 50, &["--", "false"]);
    let before = files_below(&world.root());
    // By age.
    let dry = prune(&world, &[]);
    assert_eq!((dry.code, named(&dry)), (0, ids(&[&old, &failed])), "{dry:?}");
    assert!(dry.stdout.contains("old one") && dry.stdout.contains("failed"), "{dry:?}");
    assert!(dry.stderr.contains("2 runs would go") && dry.stderr.contains("1 run stay"), "{dry:?}");
    assert_eq!(named(&prune(&world, &["--older-than", "45d"])), ids(&[&failed]));
    assert_eq!(named(&prune(&world, &["--older-than", "0s"])), ids(&[&new, &old, &failed]));
    // By how they ended, and all but the newest.
    assert_eq!(named(&prune(&world, &["--state", "complete"])), ids(&[&old]));
    assert_eq!(named(&prune(&world, &["--state", "stopped"])), BTreeSet::new());
    assert_eq!(named(&prune(&world, &["--keep", "1"])), ids(&[&failed]));
    let why = prune(&world, &["--why", "--keep", "1"]).stderr;
    assert!(why.contains("it ended ") && why.contains("it is one of the newest 1"), "{why}");
    assert_eq!(prune(&world, &["--state", "odd"]).code, 2);
    assert_eq!(files_below(&world.root()), before, "a list changes nothing");
    // And gone.
    let done = prune(&world, &["--yes"]);
    assert_eq!((done.code, named(&done)), (0, ids(&[&old, &failed])), "{done:?}");
    assert_eq!(there(&world), ids(&[&new]));
    let find = |id: &str| {
        let found = std::process::Command::new("find").arg(world.root()).output().unwrap();
        String::from_utf8_lossy(&found.stdout).lines().filter(|line| line.contains(id)).map(str::to_owned).collect()
    };
    for gone in [&old, &failed] {
        let left: Vec<String> = find(gone.id());
        assert_eq!(left, Vec::<String>::new());
    }
    assert_eq!(world.output(&["status", new.id()]).code, 0);
}

#[test]
fn what_goes_on_is_paused_or_is_gone_on_from_stays() {
    let world = World::new();
    let lives = world.detach(&["--", "sh", "-c", "echo begun; exec sleep 1000"]);
    lives.wait_output(0, "begun");
    // Even with a status that says that it ended long ago.
    let status = fs::read(lives.dir.join("status.json")).unwrap();
    let mut lie: Value = serde_json::from_slice(&status).unwrap();
    lie["state"] = "complete".into();
    lie["endedAt"] = 5.into();
    fs::write(lives.dir.join("status.json"), serde_json::to_vec(&lie).unwrap()).unwrap();
    let paused = ended(&world, 40, &["--", "true"]);
    let mut status: Value = serde_json::from_slice(&fs::read(paused.dir.join("status.json")).unwrap()).unwrap();
    status["state"] = "paused".into();
    fs::write(paused.dir.join("status.json"), serde_json::to_vec(&status).unwrap()).unwrap();
    let everything = ["--yes", "--older-than", "0s", "--foreign", "--broken", "--why"];
    let done = prune(&world, &everything);
    assert_eq!((done.code, named(&done)), (0, BTreeSet::new()), "{done:?}");
    assert!(done.stderr.contains("its runner lives") && done.stderr.contains("--state paused"), "{done:?}");
    assert_eq!(named(&prune(&world, &["--state", "paused"])), ids(&[&paused]));
    assert_eq!(there(&world), ids(&[&lives, &paused]));
}

/// A run that another program made.
fn foreign(world: &World, fixture: &str, id: &str) -> PathBuf {
    let dir = world.root().join("async-subagent-runs").join(id);
    fs::create_dir_all(&dir).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(fixture);
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    dir
}

/// `ls` lists the runs of other roots too.
#[test]
fn runs_in_another_root_are_not_passed_over_without_a_word() {
    let world = World::new();
    ended(&world, 0, &["--", "true"]);
    assert!(!prune(&world, &[]).stderr.contains("only;"), "{:?}", prune(&world, &[]));
    let other = world.project().parent().unwrap().join("pi-root");
    for id in ["one", "two"] {
        fs::create_dir_all(other.join("async-subagent-runs").join(id)).unwrap();
    }
    let told = format!("2 more are in {0}: --root {0}", other.display());
    let done = prune(&world, &["--foreign"]);
    assert!(done.stderr.contains(&told), "{done:?}");
    let done = prune(&world, &["--root", &other.display().to_string()]);
    assert!(!done.stderr.contains("only;"), "{done:?}");
}

#[test]
fn runs_of_others_lost_ones_and_links_stay_unless_told() {
    let world = World::new();
    ended(&world, 0, &["--", "true"]);
    foreign(&world, "finished-single", "foreign-done");
    // The runner of this one is dead, so it is lost.
    foreign(&world, "running-parallel", "foreign-lost");
    let broken = foreign(&world, "finished-single", "foreign-broken");
    fs::write(broken.join("status.json"), "{").unwrap();
    let outside = world.project().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::copy(world.root().join("async-subagent-runs/foreign-done/status.json"), outside.join("status.json")).unwrap();
    symlink(&outside, world.root().join("async-subagent-runs/linked")).unwrap();
    let of = |args: &[&str]| {
        let mut names = named(&prune(&world, args));
        names.retain(|name| name.contains('-') && name.starts_with("foreign") || name == "linked");
        names.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), Vec::<String>::new());
    assert_eq!(of(&["--broken"]), Vec::<String>::new());
    assert_eq!(of(&["--foreign"]), ["foreign-done"]);
    // What cannot be read is as old as its directory, which may be about to begin.
    assert_eq!(of(&["--foreign", "--broken"]), ["foreign-done", "foreign-lost"]);
    assert_eq!(of(&["--foreign", "--broken", "--older-than", "0s"]), ["foreign-done", "foreign-lost"]);
    let done = prune(&world, &["--foreign", "--broken", "--yes", "--why"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("it may be about to start") && done.stderr.contains("symbolic link"), "{done:?}");
    let left = there(&world);
    assert!(left.contains("foreign-broken") && left.contains("linked") && !left.contains("foreign-lost"), "{left:?}");
    assert!(outside.join("status.json").exists());
}

#[test]
fn nothing_that_begins_or_goes_on_is_lost_to_it() {
    let world = World::new();
    ended(&world, 0, &["--", "true"]);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pruning = scope.spawn(|| {
            let mut removed = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let done = prune(&world, &["--yes", "--older-than", "0s", "--foreign", "--broken"]);
                // Another one may have taken it first; nothing else goes wrong.
                assert!(done.code == 0, "{done:?}");
                removed += named(&done).len();
            }
            removed
        });
        for n in 0..6 {
            let out = world.project().join(format!("out-{n}"));
            let script = format!("echo one; echo two > {}", out.display());
            let done = world.output(&["run", "--no-tui", "--", "sh", "-c", &script]);
            assert_eq!((done.code, fs::read_to_string(&out).unwrap().as_str()), (0, "two\n"), "{done:?}");
            assert!(done.stdout.contains("one"), "{done:?}");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(pruning.join().unwrap() >= 1);
    });
    // Who reads one meanwhile is told.
    let run = world.detach(&["--", "true"]);
    run.wait_end();
    world.wait_until_empty();
    let mut reader = world.subdeck(&["events", "-f", run.id()]);
    let reading = reader.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(prune(&world, &["--yes", "--older-than", "0s"]).code, 0);
    let read = Done::of(reading.wait_with_output().unwrap());
    assert!(!read.stderr.contains("panicked"), "{read:?}");
    wait_for("an empty root", || there(&world).is_empty().then_some(()));
}

#[test]
fn a_removal_that_broke_off_is_finished_a_day_later() {
    let world = World::new();
    ended(&world, 0, &["--", "true"]);
    let runs = world.root().join("async-subagent-runs");
    let grave = runs.join(".deleting-run-5b0c1d2e");
    fs::create_dir(&grave).unwrap();
    fs::write(grave.join("status.json"), "{}").unwrap();
    assert_eq!(prune(&world, &["--yes"]).code, 0);
    assert!(grave.exists(), "somebody may look at it still");
    assert!(world.output(&["ls"]).stdout.lines().count() == 2, "it is no run");
}
