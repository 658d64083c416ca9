//! The run directory is removed, replaced or renamed while its runner lives. Nothing is written into a directory that
//! is not the run's own, nothing that was removed is made again, and no child stays behind.

#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use support::{Done, Run, World, code, files_below, wait_child, wait_for};

/// A command that says that it runs and lives until the file `go` is there.
const BUSY: &str = "echo up; while [ ! -e go ]; do sleep 0.02; done; echo more; echo end";

/// A run in the foreground whose child is up.
fn in_front(world: &World) -> (Child, Run) {
    let child = world
        .subdeck(&["run", "--no-tui", "--", "sh", "-c", BUSY])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = world.only_run();
    run.wait_output(0, "up");
    (child, run)
}

fn done(mut child: Child) -> Done {
    let status = wait_child(&mut child);
    let done = Done::of(child.wait_with_output().unwrap());
    Done { code: code(status), ..done }
}

/// Everything below a folder with its bytes.
fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = files_below(folder).into_iter().map(|p| (p.clone(), fs::read(p).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_run_whose_directory_is_removed_is_stopped_and_nothing_is_made_again() {
    let world = World::new();
    let (child, run) = in_front(&world);
    fs::remove_dir_all(&run.dir).unwrap();
    let done = done(child);
    assert_eq!(done.code, 7, "{done:?}");
    assert!(done.stderr.contains("was removed") && done.stderr.contains(run.id()), "{done:?}");
    // The summary has the cause too, not what is seen of the runner that went for it.
    let why = done.stdout.lines().find(|line| line.trim_start().starts_with("lost: "));
    assert!(why.is_some_and(|why| why.contains("was removed")) && !done.stdout.contains("is gone"), "{done:?}");
    world.wait_until_empty();
    assert!(!run.dir.exists());
    let active = world.root().join("async-subagent-runs/.active-runs").join(run.id());
    assert!(!active.exists(), "the run is not shown as a live one");
    // Whoever waits for the result learns what happened.
    let result = world.root().join(format!("async-subagent-results/{}.json", run.id()));
    let result: serde_json::Value = serde_json::from_slice(&fs::read(result).unwrap()).unwrap();
    assert_eq!((&result["state"], &result["success"]), (&"stopped".into(), &false.into()));
    assert!(result["error"].as_str().unwrap().contains("was removed"), "{result}");
}

#[test]
fn a_detached_run_whose_root_is_removed_ends_without_making_it_again() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", BUSY]);
    run.wait_output(0, "up");
    // While it is being removed the runner may still write.
    wait_for("the root to be removed", || fs::remove_dir_all(world.root()).is_ok().then_some(()));
    world.wait_until_empty();
    assert!(!world.root().exists());
}

#[test]
fn another_directory_in_its_place_is_left_as_it_is() {
    let world = World::new();
    let (child, run) = in_front(&world);
    // It looks like a run of its own, with a request that is not meant for this runner.
    let other = world.project().join("other");
    fs::create_dir_all(other.join("control")).unwrap();
    fs::create_dir_all(other.join("subdeck")).unwrap();
    for name in ["status.json", "events.jsonl", "control/interrupt.json", "subdeck/plan.json"] {
        fs::write(other.join(name), "{}").unwrap();
    }
    let before = contents(&other);
    fs::remove_dir_all(&run.dir).unwrap();
    fs::rename(&other, &run.dir).unwrap();
    let done = done(child);
    assert_eq!(done.code, 7, "{done:?}");
    world.wait_until_empty();
    let moved = |files: Vec<(std::path::PathBuf, Vec<u8>)>, from: &Path| -> Vec<_> {
        files.into_iter().map(|(p, bytes)| (p.strip_prefix(from).unwrap().to_owned(), bytes)).collect()
    };
    assert_eq!(moved(contents(&run.dir), &run.dir), moved(before, &other));
}

#[cfg(target_os = "linux")]
#[test]
fn a_renamed_directory_is_followed_and_one_in_its_old_place_is_left_alone() {
    for in_place in [false, true] {
        let world = World::new();
        let (child, run) = in_front(&world);
        let aside = Run { dir: run.dir.with_file_name("put-aside") };
        fs::rename(&run.dir, &aside.dir).unwrap();
        if in_place {
            fs::create_dir(&run.dir).unwrap();
        }
        world.file("go", "");
        let done = done(child);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.contains("│ end"), "what it printed afterwards is printed: {done:?}");
        world.wait_until_empty();
        let status = aside.status();
        assert_eq!((&status["state"], status["runId"].as_str()), (&"complete".into(), Some(run.id())));
        assert!(fs::read_to_string(aside.dir.join("external-0.stdout.log")).unwrap().ends_with("more\nend\n"));
        assert_eq!(aside.events_of("subagent.run.completed").len(), 1);
        let says = fs::read_to_string(aside.dir.join("runner.stderr.log")).unwrap();
        assert!(says.is_empty() || says.contains("put-aside now; the run goes on"), "{says}");
        assert_eq!(run.dir.exists(), in_place);
        assert!(!in_place || files_below(&run.dir).is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_renamed_run_takes_requests_at_its_new_place() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", BUSY]);
    run.wait_output(0, "up");
    let aside = Run { dir: run.dir.with_file_name("put-aside") };
    fs::rename(&run.dir, &aside.dir).unwrap();
    let stopped = world.output(&["stop", aside.dir.to_str().unwrap(), "--wait"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(aside.status()["state"], "stopped");
    world.wait_until_empty();
    assert!(!run.dir.exists());
}

#[test]
fn a_runner_without_its_directory_says_so_and_goes() {
    let world = World::new();
    let run = world.run("0b8f2c1e-6d1f-4e57-9d0a-2f6f3f3f9a10");
    for word in ["__runner", "__keeper"] {
        let done = world.output(&[word, run.dir.to_str().unwrap()]);
        assert_eq!(done.code, 1, "{word}: {done:?}");
        assert!(done.stdout.contains("cannot open the run directory"), "{word}: {done:?}");
    }
    assert!(!world.root().exists());
    // Without a plan there is nothing to run either.
    fs::create_dir_all(&run.dir).unwrap();
    let done = world.output(&["__runner", run.dir.to_str().unwrap()]);
    assert!(done.code == 1 && done.stdout.contains("cannot read the stored plan"), "{done:?}");
    wait_for("nothing in it", || files_below(&run.dir).is_empty().then_some(()));
}
