//! Runs whose runner was killed, alone or together with its keeper: they read as lost, their files are whole, a look
//! changes and ends nothing, and what lives on can be found and ended.

#![cfg(target_os = "linux")]

#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, World, files_below, kill, wait_for};

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

/// Sends a signal; that there is no such process any more is as good.
fn send(pid: i32, signal: &str) {
    let done = kill(signal, u32::try_from(pid).unwrap()).output().unwrap();
    assert!(done.status.success() || !lives(pid), "{signal} {pid}");
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
    assert_eq!(words, ["lost", "lost", "skipped"], "{status:?}");
    for pid in &living {
        assert!(status.stdout.contains(&format!("pid {pid} of step ")), "{pid}: {status:?}");
    }
    assert!(status.stdout.contains("sleep 300") && status.stdout.contains("subdeck stop"), "{status:?}");

    let json = world.output(&["status", "--json", run.id()]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let states: Vec<_> = json["steps"].as_array().unwrap().iter().map(|s| s["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["lost", "lost", "skipped"]);
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

    let pruned = world.output(&["prune", "--broken", "--older-than", "0s", "--yes", "--why"]);
    assert_eq!(pruned.code, 0, "{pruned:?}");
    let why = format!("live on; `subdeck stop {}` ends them", run.id());
    assert!(pruned.stderr.contains(&why) && pruned.stderr.contains("0 runs removed"), "{pruned:?}");

    assert_eq!(bytes(&world.root()), before, "a look writes nothing");
    assert_eq!(world.processes(), living, "a look ends nothing");
}

/// A run that nobody runs any more and that has left processes, beside the processes of another one that goes on.
fn left_behind(world: &World) -> (Vec<u32>, Run) {
    let other = world.detach(&["--", "sh", "-c", "echo up; sleep 300"]);
    other.wait_output(0, "up");
    let kept = world.processes();
    let run = busy(world);
    kill_both(&run);
    (kept, run)
}

#[test]
fn what_lives_on_of_a_lost_run_is_ended_by_a_stop_and_by_nothing_else() {
    let world = World::new();
    let (kept, run) = left_behind(&world);
    let one = world.output(&["stop", &format!("{}:one", run.id())]);
    assert_eq!(one.code, 0, "{one:?}");
    assert!(one.stderr.contains("ended what the run had left, which nobody runs any more"), "{one:?}");
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

/// The id of a run is the name of its directory, so its processes are known also where its status is not.
#[test]
fn what_lives_on_of_a_run_whose_status_cannot_be_read_is_ended_by_a_stop() {
    let world = World::new();
    let (kept, run) = left_behind(&world);
    fs::remove_file(run.dir.join("status.json")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(run.dir.join("status.json")).status().unwrap();
    assert!(fifo.success());
    fs::remove_file(run.dir.join("events.jsonl")).unwrap();
    assert!(world.processes().len() > kept.len());
    let stopped = world.output(&["stop", run.id()]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.stderr.contains("ended what the run had left"), "{stopped:?}");
    assert_eq!(world.processes(), kept, "the processes of another run are left alone");
    let again = world.output(&["stop", run.id()]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("is unreadable") && again.stderr.contains("nothing was asked for"), "{again:?}");
}

/// A child may do what it likes with the files of its run: nobody waits at a FIFO that stands where one was.
#[test]
fn a_fifo_in_the_place_of_a_file_holds_neither_runner_nor_keeper() {
    let world = World::new();
    let fifo = |path: &Path| {
        // Put there at once, because the runner may write its file anew at any moment.
        let made = path.with_extension("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&made).status().unwrap().success());
        fs::rename(&made, path).unwrap();
    };
    // The logs of the step to come.
    let shell = |id: &str, script: &str| {
        format!(
            "[[step]]\nid = \"{id}\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }}\n"
        )
    };
    let wait = "echo up; until [ -e go ]; do :; done";
    let plan = world.file("odd.toml", &(shell("one", wait) + &shell("two", "echo there; exec sleep 300")));
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait_output(0, "up");
    for name in ["external-1.stdout.log", "external-1.stderr.log", "output-1.log"] {
        fifo(&run.dir.join(name));
    }
    world.file("go", "");
    wait_for("word of the log", || {
        let failed = run.events_of("subdeck.log.failed");
        failed.iter().find_map(|e| e.to_string().contains("not a regular file").then_some(()))
    });
    // All that the keeper reads and writes when the runner is gone.
    let runner = run.runner_pid();
    for name in ["events.jsonl", "status.json"] {
        fifo(&run.dir.join(name));
    }
    send(i32::try_from(runner).unwrap(), "-KILL");
    world.wait_until_empty();
}

/// Numbers that differ from run to run of the test; a failure names the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Two agents and two floods at once, then one more step: for some hundred milliseconds something is written all the time.
fn stormy(world: &World) -> Run {
    let scenes = world.file(
        "scenes.toml",
        "[scene.busy]\n[[scene.busy.turn]]\nthink = \"Where?\"\nsay = \"I look.\"\ntool = [{ name = \"bash\", args = { command = \"ls\" }, time_ms = 2000, output = \"a\\nb\\n\" }, { name = \"read\", args = { path = \"a\" }, time_ms = 1000 }]\n[[scene.busy.turn]]\nsay = \"Done.\"\n",
    );
    let agent = |id: &str| {
        format!(
            "{{ id = \"{id}\", agent = \"{id}\", task = \"Go.\", runner = {{ type = \"demo\", script = \"{}#busy\" }} }}",
            scenes.display()
        )
    };
    let flood = |id: &str| {
        let script = "setsid sleep 30 >/dev/null 2>&1 & for i in 1 2 3 4; do seq 300; sleep 0.02; done";
        format!(
            "{{ id = \"{id}\", runner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }} }}"
        )
    };
    let steps = [agent("a"), flood("b"), agent("c"), flood("d")].join(",\n");
    let plan = format!(
        "[[step]]\nparallel = [\n{steps}\n]\n[[step]]\nid = \"last\"\nrunner = {{ type = \"external-cli\", command = \"true\" }}\n"
    );
    let plan = world.file("plan.toml", &plan);
    let mut command = world.subdeck(&["run", "--detach", plan.to_str().unwrap()]);
    let done = support::Done::of(command.env("SUBDECK_DEMO_SPEED", "20").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.run(done.stdout.trim())
}

/// Every document is whole, and so is every line of a log but the last, at which its writer may have been killed. `settled`:
/// a keeper has written the end since, and leaves no torn line in the event log.
fn assert_whole(root: &Path, settled: bool) {
    for path in files_below(root) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // A keeper that still records has temporary files.
        let Ok(bytes) = fs::read(&path) else { continue };
        if name.ends_with(".json") {
            serde_json::from_slice::<Value>(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else if name.ends_with(".jsonl") {
            let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
            // What follows the last line feed is nothing, or the one line that may be torn.
            let last = lines.pop().unwrap_or_default();
            for (number, line) in lines.iter().enumerate() {
                let read = serde_json::from_slice::<Value>(line);
                assert!(read.is_ok(), "line {} of {} is torn: {read:?}", number + 1, path.display());
            }
            assert!(!settled || name != "events.jsonl" || last.is_empty(), "{}: a torn end", path.display());
        }
    }
}

/// One run that is killed at a random moment; returns how long it took until it read as lost, if it was not over by then.
fn one_round(random: &mut Random, both: bool) -> Option<Duration> {
    let world = World::new();
    let run = stormy(&world);
    let runner = i32::try_from(run.runner_pid()).unwrap();
    std::thread::sleep(Duration::from_millis(random.below(250)));
    let ended = |run: &Run| run.status()["endedAt"].is_number();
    if ended(&run) {
        return None;
    }
    let killed = Instant::now();
    if both {
        kill_both(&run);
    } else {
        send(runner, "-KILL");
    }
    let state = wait_for("a verdict", || {
        let json = world.output(&["status", "--json", run.id()]);
        assert_eq!(json.code, 0, "{json:?}");
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        (json["lost"].is_string() || json["ended_at"].is_number()).then_some(json)
    });
    let took = killed.elapsed();
    assert!(state["steps"].as_array().unwrap().iter().all(|s| s["state"] != "running"), "{state}");
    assert_whole(&world.root(), false);
    if both {
        let before = bytes(&world.root());
        let lost = state["lost"].is_string();
        assert_eq!(world.output(&["wait", run.id()]).code, if lost { 7 } else { 0 });
        let listed = world.output(&["ls"]);
        assert!(listed.stdout.contains(if lost { "lost" } else { "complete" }), "{listed:?}");
        assert_eq!(bytes(&world.root()), before, "a look writes nothing");
        if world.processes().iter().any(|p| lives(i32::try_from(*p).unwrap())) {
            let stopped = world.output(&["stop", run.id()]);
            assert!(stopped.code == 0 || world.processes().is_empty(), "{stopped:?}");
        }
    }
    world.wait_until_empty();
    assert_whole(&world.root(), !both);
    state["lost"].is_string().then_some(took)
}

/// Twenty rounds always, two hundred when `SUBDECK_LONG_TESTS` is 1, four at a time.
fn rounds(both: bool) {
    let long = std::env::var("SUBDECK_LONG_TESTS").is_ok_and(|v| v == "1");
    let count = if long { 200 } else { 20 };
    let seed = u64::from(std::process::id()) << 20 | u64::try_from(count).unwrap() << 1 | u64::from(both);
    println!("seed {seed}");
    let lost: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Random(seed + (thread << 50));
                    // A kill that met the very end of a run, or came after it, is none of them.
                    let tries = 0..20 * count;
                    tries.filter_map(|_| one_round(&mut random, both)).take(count / 4).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let slowest = lost.iter().max().copied().unwrap_or_default();
    println!("{} runs were lost, the slowest was known after {slowest:?}", lost.len());
    assert_eq!(lost.len(), count, "so many kills met a run that went on");
    // How quickly depends on what else the machine does, so it is only told unless somebody asked for the long test.
    assert!(!long || slowest <= Duration::from_secs(2), "a run read as lost only after {slowest:?}");
}

#[test]
fn a_runner_killed_at_random_moments_leaves_whole_files_and_no_child() {
    rounds(false);
}

#[test]
fn runner_and_keeper_killed_at_random_moments_leave_whole_files_and_a_lost_run() {
    rounds(true);
}
