//! Much output, long lines, many steps, large logs: what the deck and the runner cost then, counted in bytes, calls and
//! memory and never in time. The numbers are those of reports about other programs.
#![cfg(target_os = "linux")]

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

#[allow(dead_code)]
#[path = "support/measure.rs"]
mod measure;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use measure::{io, most_memory, sleeps};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::pty::Pty;
use support::{ESCAPE, Home};

const MIB: u64 = 1 << 20;
/// What the deck and the runner may take at most, in a build without optimizations, whatever is printed.
const MEMORY: u64 = 96 * MIB;
/// As long as a flood may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);

fn wait_long(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn signal(pid: u32, which: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), which).unwrap();
}

/// A run of this script.
fn script(home: &Home, script: &str, variables: &[(&str, &str)]) -> Pty {
    home.deck_with(&["run", "--name", "much", "--", "sh", "-c", script], variables, 120, 36)
}

/// The directory of the only run.
fn run_dir(home: &Home) -> PathBuf {
    let runs = home.path().join("root/async-subagent-runs");
    let mut found = None;
    wait_long("a run directory", || {
        let dirs = fs::read_dir(&runs).into_iter().flatten().flatten().map(|entry| entry.path());
        found = dirs.into_iter().find(|dir| dir.join("status.json").exists());
        found.is_some()
    });
    found.unwrap()
}

fn status(home: &Home) -> Value {
    serde_json::from_slice(&fs::read(run_dir(home).join("status.json")).unwrap()).unwrap()
}

fn runner(home: &Home) -> u32 {
    u32::try_from(status(home)["pid"].as_u64().unwrap()).unwrap()
}

/// What the only step printed.
fn printed(home: &Home) -> PathBuf {
    run_dir(home).join("external-0.stdout.log")
}

fn length(path: &PathBuf) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

#[test]
fn b19_a_line_of_many_megabytes_is_cut_where_it_is_drawn_and_whole_in_the_file() {
    const LINE: u64 = 64 * MIB;
    let home = Home::new();
    let text = format!("yes /a/long/path | tr -d '\\n' | head -c {LINE}; echo; echo last line; exec sleep 1000");
    let pty = script(&home, &text, &[]);
    wait_long("the whole line", || length(&printed(&home)) == LINE + 11);
    pty.wait_text("last line");
    // Every way to look at it: each shape, each size, wrapped and not, up and down.
    let (before, drawn) = (io(pty.pid()), frames(&pty));
    for (columns, rows) in [(200, 60), (80, 24), (50, 14), (120, 36)] {
        pty.resize(columns, rows);
        for key in ["v", "v", "v", "v", "z", "W", "\x1b[5~", "\x1b[5~", "\x1b[6~", "g", "G", "W", "\x1b[27u", "?"] {
            pty.keys(key);
        }
        pty.wait_text("─ keys");
        pty.keys(ESCAPE);
        pty.wait_gone("─ keys");
    }
    // A picture takes a block of the line for each of its rows and never the whole of it; its lines are counted once.
    let (read, pictures) = (io(pty.pid()).read - before.read, frames(&pty) - drawn);
    assert!(read < (pictures + 60) * 16 * MIB + 2 * LINE, "{read} bytes for {pictures} pictures");
    assert!(most_memory(pty.pid()) < MEMORY, "{}", most_memory(pty.pid()));
    assert!(most_memory(runner(&home)) < MEMORY, "{}", most_memory(runner(&home)));
    assert!(pty.bytes().len() < 4 << 20, "{}", pty.bytes().len());
}

#[test]
fn b20_a_child_is_never_held_up_by_a_deck_that_does_not_read() {
    let home = Home::new();
    let text = "echo begun; until [ -e on ]; do sleep 0.05; done; line=$(head -c 102400 /dev/zero | tr '\\0' x); \
                for i in $(seq 100); do echo $line; done; yes flood | head -c 33554432; echo last line; touch done; exec sleep 1000";
    let pty = script(&home, text, &[]);
    pty.wait_text("begun");
    signal(pty.pid(), Signal::STOP);
    fs::write(home.path().join("on"), "").unwrap();
    wait_long("the end of the output", || home.path().join("done").exists());
    let all = 6 + 100 * 102_401 + 33_554_432 + 10;
    wait_long("all of it in the file", || length(&printed(&home)) == all);
    assert!(most_memory(runner(&home)) < MEMORY, "{}", most_memory(runner(&home)));
    // The deck begins where it is, with what is there, and not with everything that it missed.
    let (before, drawn) = (io(pty.pid()), frames(&pty));
    signal(pty.pid(), Signal::CONT);
    pty.wait_text("last line");
    assert!(most_memory(pty.pid()) < MEMORY, "{}", most_memory(pty.pid()));
    let (read, pictures) = (io(pty.pid()).read - before.read, frames(&pty) - drawn);
    assert!(read < (pictures + 4) * 8 * MIB, "{read} bytes for {pictures} pictures of {all} bytes");
}

#[test]
fn b22_an_event_of_20_mib_ends_no_child() {
    let home = Home::new();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let plan = format!(
        "[[step]]\nid = \"odd\"\ntask = \"Be odd.\"\nrunner = {{ type = \"pi\", command = \"sh\", args = [\"{program}\", \"long-line\"] }}\n"
    );
    fs::write(home.path().join("plan.toml"), plan).unwrap();
    let mut pty = home.deck(&["run", "plan.toml"], 120, 36);
    wait_long("the end", || pty.text().contains("the run is over"));
    pty.wait_text("✓ done");
    pty.wait_text("fine");
    assert!(most_memory(pty.pid()) < MEMORY, "{}", most_memory(pty.pid()));
    let events = fs::read_to_string(run_dir(&home).join("events.jsonl")).unwrap();
    assert!(events.len() < 1 << 20, "a record of it is short: {}", events.len());
    assert!(!events.contains("subdeck.signal.sent"), "{events}");
    pty.keys("q");
    assert_eq!(pty.wait_exit().exit_code(), 0);
}

#[test]
fn b24_a_child_that_prints_its_own_output_fills_its_share_of_the_disk_and_no_more() {
    const CAP: u64 = 2 * MIB;
    let home = Home::new();
    let text = "echo first; until [ -s root/async-subagent-runs/*/external-0.stdout.log ]; do sleep 0.05; done; \
                n=0; while [ $n -lt 24 ]; do n=$((n+1)); cat root/async-subagent-runs/*/external-0.stdout.log; done; \
                touch done; exec sleep 1000";
    let pty = script(&home, text, &[("SUBDECK_CAPTURE_STEP", "2MiB")]);
    wait_long("the end of the loop", || home.path().join("done").exists());
    pty.wait_text("output is kept up to 2.1 MB");
    let kept: u64 =
        fs::read_dir(run_dir(&home)).unwrap().flatten().filter_map(|e| Some(e.metadata().ok()?.len())).sum();
    assert!(kept < CAP * 5 / 2, "{kept}");
    assert_eq!(status(&home)["state"], "running", "the child goes on");
}

#[test]
fn b25_a_large_log_opens_scrolls_and_is_searched_in_little_memory() {
    const LOG: u64 = 96 * MIB;
    let home = Home::new();
    let text = format!(
        "echo the first needle; yes 'a line of hay that goes on for a while' | head -c {LOG}; echo; echo the last needle; exec sleep 1000"
    );
    let first = script(&home, &text, &[]);
    wait_long("the log", || length(&printed(&home)) > LOG + 20);
    drop(first);
    let pty = home.deck(&["attach", "@last"], 120, 36);
    pty.wait_text("the last needle");
    let first = io(pty.pid());
    assert!(first.read < 16 * MIB, "the first picture needs the end of the log alone: {first:?}");
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty.keys("g");
    pty.wait_text("the first needle");
    pty.keys("G/needle\r");
    wait_long("both matches", || pty.text().contains("2/2 "));
    pty.keys("n");
    pty.wait_text("1/2 ");
    pty.wait_text("the first needle");
    assert!(most_memory(pty.pid()) < MEMORY, "{}", most_memory(pty.pid()));
    // It is read a fixed number of times: to count its lines and to search it.
    assert!(io(pty.pid()).read < 4 * LOG, "{:?}", io(pty.pid()));
}

/// A run of so many children that wait and say nothing.
fn idle(home: &Home, steps: usize) -> Pty {
    let step = "[[step.parallel]]\nrunner = { type = \"external-cli\", command = \"sh\", args = [\"-c\", \"sleep 1000 & sleep 1000 & sleep 1000 & wait\"] }\n";
    let plan = format!("name = \"idle\"\n[[step]]\nconcurrency = {steps}\n{}", step.repeat(steps));
    fs::write(home.path().join("plan.toml"), plan).unwrap();
    let pty = home.deck(&["run", "plan.toml"], 120, 36);
    wait_long("all steps running", || {
        let status = status(home);
        let steps = status["steps"].as_array().unwrap();
        !steps.is_empty() && steps.iter().all(|step| step["status"] == "running")
    });
    pty
}

fn frames(pty: &Pty) -> u64 {
    pty.bytes().windows(8).filter(|w| w == b"\x1b[?2026l").count() as u64
}

/// Waits for the first stretch of so many frames in which nothing else happens than that a clock moves, and tells what
/// it was like: its time in seconds, and what grew meanwhile.
fn stretch<const N: usize>(pty: &Pty, count: u64, measured: impl Fn() -> [u64; N]) -> (f64, [u64; N]) {
    let deadline = Instant::now() + LONG;
    loop {
        let (from, since, before) = (frames(pty), Instant::now(), measured());
        while frames(pty) < from + count {
            assert!(Instant::now() < deadline, "the clock stands still");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        let (seconds, after) = (since.elapsed().as_secs_f64(), measured());
        // What comes with the start of a run has to be over: frames come once a second then.
        if seconds > count as f64 - 1.1 {
            return (seconds, std::array::from_fn(|n| after[n] - before[n]));
        }
    }
}

#[test]
fn b26_no_loop_walks_over_the_processes_of_a_run() {
    let home = Home::new();
    let pty = idle(&home, 20);
    let (deck, runner) = (pty.pid(), runner(&home));
    let (seconds, [deck, runner]) = stretch(&pty, 5, || [io(deck).reads, io(runner).reads]);
    // A look at each of 80 processes would be hundreds of calls each second.
    for calls in [deck, runner] {
        assert!((calls as f64) < 40.0 * seconds + 40.0, "deck {deck}, runner {runner} in {seconds} s");
    }
}

#[test]
fn b27_idle_steps_cost_a_clock_a_second_and_nothing_when_there_is_none() {
    let home = Home::new();
    let mut pty = idle(&home, 20);
    for focus in ["", "\x1b[O"] {
        pty.keys(focus);
        let (deck, runner) = (pty.pid(), runner(&home));
        let (seconds, [written, woken, runner]) = stretch(&pty, 5, || [io(deck).written, sleeps(deck), sleeps(runner)]);
        // A clock is a few cells a row.
        assert!((written as f64) < 3_000.0 * seconds + 3_000.0, "{written} bytes in {seconds} s");
        assert!((woken as f64) < 12.0 * seconds + 12.0, "woken {woken} times in {seconds} s");
        assert!((runner as f64) < 12.0 * seconds + 12.0, "the runner woke {runner} times in {seconds} s");
    }
    pty.keys("X");
    pty.wait_text("Stop the whole run?");
    pty.keys("y");
    wait_long("the end", || pty.text().contains("the run is over"));
    // No clock is on the screen any more; what still settles counts for nothing.
    let (quiet, deadline) = (Duration::from_secs(4), Instant::now() + Duration::from_secs(90));
    let (mut woken, mut since) = (sleeps(pty.pid()), Instant::now());
    while since.elapsed() < quiet {
        assert!(Instant::now() < deadline, "it keeps waking up although nothing can change");
        std::thread::sleep(Duration::from_millis(100));
        let now = sleeps(pty.pid());
        if now != woken {
            (woken, since) = (now, Instant::now());
        }
    }
    pty.keys("q");
    pty.wait_exit();
}

#[test]
fn b29_output_in_small_writes_is_appended_once() {
    const WRITES: u64 = 100_000;
    const ALL: u64 = WRITES * 64;
    let home = Home::new();
    let text = format!(
        "echo begun; until [ -e on ]; do sleep 0.05; done; yes 'a line of sixty-four bytes with its end, which is a lot of text' \
         | dd bs=64 count={WRITES} iflag=fullblock 2>/dev/null; echo last line; exec sleep 1000"
    );
    let pty = script(&home, &text, &[]);
    pty.wait_text("begun");
    let (runner, log) = (runner(&home), printed(&home));
    let (before, file) = (io(runner), fs::metadata(&log).unwrap().ino());
    fs::write(home.path().join("on"), "").unwrap();
    wait_long("all of it", || length(&log) == ALL + 16);
    pty.wait_text("last line");
    let after = io(runner);
    assert_eq!(fs::metadata(&log).unwrap().ino(), file, "it is one file");
    // What was printed once or twice, and the state now and then.
    let written = after.written - before.written;
    assert!(written < ALL * 3 + 4 * MIB, "{written} bytes for {ALL}");
}
