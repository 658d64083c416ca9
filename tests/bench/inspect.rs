//! Looking at runs that somebody else made, and at many: the first picture of a run with 1 GB of output and 1 GB of
//! events, a search through all of it, a frame of 10,000 steps beside one of 10, and 1,000 runs at once.
//!
//! `cargo bench --bench inspect -- attach read search older replay export steps fleet` picks parts; without words all of them are measured.
//! `SUBDECK_BENCH_MB=100` makes the log and the events of the first three shorter.

#[path = "support.rs"]
mod support;

// A part of it is used.
#[path = "../support/measure.rs"]
#[allow(dead_code)]
mod measure;
#[path = "../support/pty.rs"]
#[allow(dead_code)]
mod pty;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use portable_pty::CommandBuilder;
use pty::Pty;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use subdeck::deck::feed::{Hands, StepFacts};
use subdeck::deck::history::History;
use subdeck::deck::model::UiState;
use subdeck::deck::older::Older;
use subdeck::deck::sums::Sums;
use subdeck::deck::theme::Theme;
use subdeck::deck::view::{Scene, draw};
use subdeck::deck::window::Windows;
use subdeck::run::{RunId, RunPhase, RunState, StepId, StepPhase, StepState, Timestamp};
use subdeck::rundir::{Follower, LogSearch, RunDir, RunRoot, StatusContext, StepLog, records, replace, status};
use support::{Samples, rounds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_subdeck");

/// How long the output and the events of the huge run are, in bytes.
fn size() -> u64 {
    let asked = std::env::var("SUBDECK_BENCH_MB").ok().and_then(|text| text.parse::<u64>().ok());
    asked.unwrap_or(1000) * 1_000_000
}

fn main() {
    support::play();
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|word| word == part);
    let folder = tempfile::tempdir().unwrap();
    if ["attach", "read", "search", "older", "replay", "export"].into_iter().any(wanted) {
        let root = RunRoot::at(folder.path().join("huge"));
        let dir = huge(&root);
        if wanted("attach") {
            attach(folder.path(), &dir);
        }
        if wanted("read") {
            read(&dir);
        }
        if wanted("search") {
            search(&dir);
        }
        if wanted("older") {
            older(folder.path(), &dir);
        }
        if wanted("replay") {
            replay(folder.path(), &dir);
        }
        if wanted("export") {
            export(folder.path(), &dir);
        }
        fs::remove_dir_all(root.path()).unwrap();
    }
    if wanted("steps") {
        steps();
    }
    if wanted("fleet") {
        fleet(folder.path());
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_760_000_000_000 + ms)
}

fn state(id: &str, steps: u32) -> RunState {
    let step = |flat: u32| StepState {
        id: StepId(flat),
        key: format!("step-{flat}"),
        agent: "worker".into(),
        logical: flat as usize,
        phase: StepPhase::Complete,
        started_at: Some(at(i64::from(flat))),
        ended_at: Some(at(i64::from(flat) + 60_000)),
        exit_code: Some(0),
        turn_count: 12,
        tool_count: 30,
        last_message: Some("All of it was looked at, and nothing is left to do.".into()),
        ..StepState::default()
    };
    RunState {
        id: RunId(id.into()),
        name: Some(format!("run {id}")),
        cwd: "/work".into(),
        phase: RunPhase::Complete,
        started_at: Some(at(0)),
        ended_at: Some(at(3_600_000)),
        last_update: Some(at(3_600_000)),
        logical_count: steps as usize,
        steps: (0..steps).map(step).collect(),
        ..RunState::default()
    }
}

fn put(root: &RunRoot, state: &RunState) -> RunDir {
    let dir = RunDir::create(root, &state.id).unwrap();
    put_status(&dir, state);
    dir
}

fn put_status(dir: &RunDir, state: &RunState) {
    replace(&dir.status(), &status::encode(state, &StatusContext { dir, instance: None })).unwrap();
}

/// A finished run of one step that printed 1 GB and of which 1 GB of events was recorded, one line of 16 MiB among them.
fn huge(root: &RunRoot) -> RunDir {
    let dir = put(root, &state("huge", 1));
    let mut calls = 1;
    let mut log = BufWriter::new(File::create(dir.output(StepId(0))).unwrap());
    let (mut number, mut written) = (0_u64, 0);
    while written < size() {
        let line =
            format!("{number:>9}  a line of what the agent printed while it worked on the tests, in plain words\n");
        log.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        number += 1;
    }
    log.flush().unwrap();
    let mut events = BufWriter::new(File::create(dir.events()).unwrap());
    let child = records::ChildContext { run_id: "huge", step: StepId(0), agent: "worker" };
    let mut written = 0;
    let mut put = |line: &str, ms: i64| {
        let mut bytes = Vec::new();
        assert!(records::annotate(line.as_bytes(), &child, at(ms), &mut bytes));
        events.write_all(&bytes).unwrap();
        written += bytes.len() as u64;
        written
    };
    let said = "the agent says what it saw, with a \\\"quoted\\\" word; ".repeat(20);
    let content = format!(r#"[{{"type":"text","text":"{said}"}}]"#);
    let result = |text: &str| {
        format!(
            r#"{{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","result":{{"content":[{{"type":"text","text":"{text}"}}]}},"isError":false}}"#
        )
    };
    put(r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"cat big"}}"#, 0);
    put(&result(&"x".repeat(16 << 20)), 1);
    for ms in 2.. {
        put(
            r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"cargo test"}}"#,
            ms,
        );
        put(&result(&said), ms);
        calls += 1;
        let message = format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":{content},"provider":"p","model":"m","usage":{{"input":120,"output":20,"cacheRead":0,"cacheWrite":0,"cost":{{"total":0.0002}}}},"stopReason":"toolUse"}}}}"#
        );
        if put(&message, ms) > size() {
            break;
        }
    }
    events.flush().unwrap();
    let mut state = state("huge", 1);
    state.steps[0].tool_count = calls;
    put_status(&dir, &state);
    dir
}

fn deck(home: &Path, arguments: &[&str]) -> Pty {
    let mut command = CommandBuilder::new(PROGRAM);
    command.args(arguments);
    command.cwd(home);
    command.env("HOME", home);
    command.env_remove("XDG_CONFIG_HOME");
    Pty::spawn(command, 120, 36)
}

/// The highest resident memory of a process so far, in MiB, and its context switches.
fn vitals(pid: u32) -> (f64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    let switches = number("voluntary_ctxt_switches:") + number("nonvoluntary_ctxt_switches:");
    (number("VmHWM:") as f64 / 1024.0, switches)
}

fn attach(home: &Path, dir: &RunDir) {
    let (mut first, mut all, mut found, mut memory) = <(Samples, Samples, Samples, Samples)>::default();
    let path = dir.path().display().to_string();
    for _ in 0..rounds(5) {
        let begun = Instant::now();
        let pty = deck(home, &["attach", &path]);
        pty.wait_text("in plain words");
        first.push(begun.elapsed().as_secs_f64() * 1e3);
        // The first picture says already that it goes on.
        pty.wait_gone("reading what happened");
        all.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        pty.send("/no such text\r");
        pty.wait_text("is nowhere in this output");
        found.push(begun.elapsed().as_secs_f64());
        memory.push(vitals(pty.pid()).0);
        pty.send("q");
    }
    let what = format!("attach {0} MB + {0} MB", size() / 1_000_000);
    first.print(&format!("{what}: first picture"), "ms", "");
    all.print(&format!("{what}: everything read"), "s", "");
    found.print(&format!("{what}: searched in the deck"), "s", "");
    memory.print(&format!("{what}: peak memory"), "MiB", "");
}

/// Waits for a text for as long as a busy machine may take.
fn wait_long(pty: &Pty, text: &str) {
    let begun = Instant::now();
    while !pty.text().contains(text) {
        assert!(begun.elapsed() < Duration::from_secs(300), "never saw {text}: {}", pty.text());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The oldest entries of a step: how long it takes until the first call is on the screen, how long a key waits meanwhile, and
/// how long it takes to look through all of them.
fn older(home: &Path, dir: &RunDir) {
    let (mut first, mut key, mut again, mut errors) = <(Samples, Samples, Samples, Samples)>::default();
    let (mut moved, mut found, mut before, mut memory) = <(Samples, Samples, Samples, Samples)>::default();
    let path = dir.path().display().to_string();
    for _ in 0..rounds(3) {
        let pty = deck(home, &["attach", &path]);
        pty.wait_text("in plain words");
        pty.wait_gone("reading what happened");
        pty.keys("z2");
        pty.wait_text("[2 tools");
        before.push(vitals(pty.pid()).0);
        let begun = Instant::now();
        pty.send("g");
        pty.wait_text("reading earlier ones");
        for _ in 0..5 {
            let pressed = Instant::now();
            pty.send("?");
            pty.wait_text("write to the selected step");
            key.push(pressed.elapsed().as_secs_f64() * 1e3);
            pty.send("\x1b");
            pty.wait_gone("write to the selected step");
        }
        wait_long(&pty, "cat big");
        first.push(begun.elapsed().as_secs_f64());
        for tab in ["3", "6", "2"] {
            pty.keys(tab);
            pty.keys("f");
            pty.wait_text(&format!("[{tab} "));
            pty.wait_gone("cat big");
            let pressed = Instant::now();
            pty.send("g");
            pty.wait_text("bash cat big");
            again.push(pressed.elapsed().as_secs_f64() * 1e3);
        }
        for n in 2..12 {
            let pressed = Instant::now();
            pty.send("j");
            pty.wait_text(&format!("─ {n} of "));
            moved.push(pressed.elapsed().as_secs_f64() * 1e3);
        }
        let pressed = Instant::now();
        pty.keys("&");
        pty.wait_text("nothing went wrong so far");
        errors.push(pressed.elapsed().as_secs_f64() * 1e3);
        pty.keys("&");
        pty.wait_text("cat big");
        let begun = Instant::now();
        pty.send("/no such text\r");
        wait_long(&pty, "is nowhere in this tab");
        found.push(begun.elapsed().as_secs_f64());
        memory.push(vitals(pty.pid()).0);
        pty.send("q");
    }
    let what = format!("tools of {} MB", size() / 1_000_000);
    first.print(&format!("{what}: the first call"), "s", "");
    key.print(&format!("{what}: a key meanwhile"), "ms", "");
    again.print(&format!("{what}: the first of a tab afterwards"), "ms", "");
    moved.print(&format!("{what}: a key among them"), "ms", "");
    errors.print(&format!("{what}: errors only"), "ms", "");
    found.print(&format!("{what}: searched"), "s", "");
    before.print(&format!("{what}: peak memory before"), "MiB", "");
    memory.print(&format!("{what}: peak memory"), "MiB", "");
}

/// A replay: how long it takes to read what happened, and how long a key waits meanwhile.
fn replay(home: &Path, dir: &RunDir) {
    let (mut all, mut key, mut memory) = <(Samples, Samples, Samples)>::default();
    let (mut first, mut left) = <(Samples, Samples)>::default();
    let path = dir.path().display().to_string();
    for _ in 0..rounds(3) {
        // Nobody has to wait for it: it is left while it is read.
        let mut pty = deck(home, &["replay", &path]);
        pty.wait_text("reading what happened");
        let pressed = Instant::now();
        pty.keys("q");
        pty.wait_exit();
        left.push(pressed.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        let pty = deck(home, &["replay", &path]);
        pty.wait_text("reading what happened");
        first.push(begun.elapsed().as_secs_f64() * 1e3);
        for _ in 0..5 {
            let pressed = Instant::now();
            pty.send("?");
            pty.wait_text("write to the selected step");
            key.push(pressed.elapsed().as_secs_f64() * 1e3);
            pty.send("\x1b");
            pty.wait_gone("write to the selected step");
        }
        pty.wait_gone("reading what happened");
        all.push(begun.elapsed().as_secs_f64());
        memory.push(vitals(pty.pid()).0);
        pty.send("q");
    }
    let what = format!("replay {} MB", size() / 1_000_000);
    first.print(&format!("{what}: first picture"), "ms", "");
    left.print(&format!("{what}: left while it is read"), "ms", "");
    all.print(&format!("{what}: everything read"), "s", "");
    key.print(&format!("{what}: a key meanwhile"), "ms", "");
    memory.print(&format!("{what}: peak memory"), "MiB", "");
}

/// An export: how long both documents take, and how much memory.
fn export(home: &Path, dir: &RunDir) {
    let (mut all, mut memory) = <(Samples, Samples)>::default();
    let path = dir.path().display().to_string();
    for _ in 0..rounds(3) {
        let begun = Instant::now();
        let mut exporting = Command::new(PROGRAM)
            .args(["export", &path, "--force", "--out", "run"])
            .current_dir(home)
            .env("HOME", home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut most: f64 = 0.0;
        let status = loop {
            // Of a process that has ended nothing is told any more.
            most = most.max(vitals(exporting.id()).0);
            if let Some(status) = exporting.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success());
        all.push(begun.elapsed().as_secs_f64());
        memory.push(most);
    }
    let what = format!("export of {0} MB of events and {0} MB of output, both documents", size() / 1_000_000);
    all.print(&what, "s", "");
    memory.print("export: peak memory", "MiB", "");
}

/// The event log alone, as a screen reads it.
fn read(dir: &RunDir) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let len = fs::metadata(dir.events()).unwrap().len() as f64;
    let mut speed = Samples::default();
    for _ in 0..rounds(5) {
        let begun = Instant::now();
        let mut follower = Follower::open(dir.path()).unwrap().newest_only();
        follower.poll();
        while follower.reading().is_some() {
            runtime.block_on(follower.wait());
            follower.poll();
        }
        speed.push(len / 1e9 / begun.elapsed().as_secs_f64());
    }
    speed.print("read the events", "GB/s", "");
}

fn search(dir: &RunDir) {
    let log = StepLog::open(dir, StepId(0));
    for needle in ["no such text", "No Such Text"] {
        let mut speed = Samples::default();
        for _ in 0..rounds(5) {
            let begun = Instant::now();
            let mut search = LogSearch::new(needle).unwrap();
            while search.advance(&log) {}
            assert_eq!((search.total(), search.searched()), (0, log.len()));
            speed.push(log.len() as f64 / 1e9 / begun.elapsed().as_secs_f64());
        }
        let how = if needle.contains('N') { "as written" } else { "whatever its case" };
        speed.print(&format!("search {} MB without a hit, {how}", size() / 1_000_000), "GB/s", "");
    }
}

fn steps() {
    let mut medians = Vec::new();
    // Of fifty all that the screen has room for are there.
    // One of them alone can be looked at with a profiler.
    let only = std::env::var("SUBDECK_BENCH_STEPS").ok().and_then(|text| text.parse::<u32>().ok());
    for count in [10, 50, 10_000].into_iter().filter(|count| only.is_none_or(|only| only == *count)) {
        let state = state("steps", count);
        let mut ui = UiState::new((200, 50));
        ui.selected = StepId(count / 2);
        // Counted when the state changes, not for each frame.
        ui.known = Some(Arc::new(Sums::of(&state)));
        let (facts, history, older) = (StepFacts::default(), History::default(), Older::default());
        let zone = TimeZone::UTC;
        let scene = Scene {
            state: &state,
            hands: &Hands::Over,
            read_only: None,
            trouble: None,
            now: at(3_700_000),
            wall: at(3_700_000),
            reveal: false,
            theme: Theme::default(),
            history: &history,
            older: &older,
            facts: &facts,
            facts_of: None,
            zone: &zone,
        };
        let mut samples = Samples::default();
        for _ in 0..rounds(300) {
            let mut buf = Buffer::empty(Rect::new(0, 0, 200, 50));
            let begun = Instant::now();
            draw(&mut buf, &scene, &ui, &Windows::default());
            samples.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        medians.push(samples.median());
        let more = match medians.as_slice() {
            [few, many] => format!("{:.2} of the frame of 10 steps", many / few),
            [few, full, many] => {
                format!("{:.2} of the frame of 10 steps, {:.2} of that of 50", many / few, many / full)
            }
            _ => String::new(),
        };
        samples.print(&format!("a frame of {count} steps, 200x50"), "µs", &more);
    }
}

fn fleet(home: &Path) {
    let root = RunRoot::at(home.join("fleet"));
    for number in 1..1000 {
        // The last one is the newest, which stands on top.
        let started = Some(at(number));
        put(&root, &RunState { started_at: started, ended_at: started, ..state(&format!("{number:08}-run"), 4) });
    }
    let path = root.path().display().to_string();
    let mut listed = Samples::default();
    for _ in 0..rounds(5) {
        let begun = Instant::now();
        let output = Command::new(PROGRAM)
            .args(["ls", "--all", "--root", &path])
            .env("HOME", home)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        listed.push(begun.elapsed().as_secs_f64() * 1e3);
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1000);
    }
    listed.print("fleet of 1,000: ls", "ms", "");
    let (mut first, mut noticed, mut idle, mut keys) = <(Samples, Samples, Samples, Samples)>::default();
    for _ in 0..rounds(5) {
        let begun = Instant::now();
        let pty = deck(home, &["--root", &path]);
        pty.wait_text("00000999-run");
        first.push(begun.elapsed().as_secs_f64() * 1e3);
        // The screen that nobody touches costs nothing from when it has settled.
        std::thread::sleep(Duration::from_secs(2));
        let before = vitals(pty.pid()).1;
        std::thread::sleep(Duration::from_secs(10));
        idle.push((vitals(pty.pid()).1 - before) as f64 / 10.0);
        let before = measure::ticks(pty.pid());
        for _ in 0..50 {
            pty.send("j");
            // Each has a picture of its own.
            std::thread::sleep(Duration::from_millis(50));
        }
        keys.push((measure::ticks(pty.pid()) - before) as f64 * 1e3 / procfs::ticks_per_second() as f64 / 50.0);
        pty.send("q");
    }
    keys.print("fleet of 1,000: a key", "ms of CPU", "");
    put(&root, &goes_on("00001000-run", "goes on"));
    let pty = deck(home, &["--root", &path]);
    pty.wait_text("goes on");
    pty.wait_gone("reading ");
    for round in 0..rounds(20) {
        let name = format!("renamed {round} times");
        let begun = Instant::now();
        put_again(&root, &goes_on("00001000-run", &name));
        pty.wait_text(&name);
        noticed.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    pty.send("q");
    first.print("fleet of 1,000: first picture", "ms", "");
    noticed.print("fleet of 1,000: one changed run on the screen", "ms", "");
    idle.print("fleet of 1,000: context switches a second while nothing happens", "", "");
}

/// A run that goes on: this process stands for its runner.
fn goes_on(id: &str, name: &str) -> RunState {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0));
    let mut state = RunState { name: Some(name.into()), phase: RunPhase::Running, ended_at: None, ..state(id, 4) };
    (state.pid, state.started_at, state.last_update) = (Some(std::process::id()), Some(now), Some(now));
    state
}

fn put_again(root: &RunRoot, state: &RunState) {
    let dir: PathBuf = root.run(&state.id).unwrap().path().to_owned();
    let dir = RunDir::at(dir);
    replace(&dir.status(), &status::encode(state, &StatusContext { dir: &dir, instance: None })).unwrap();
}
