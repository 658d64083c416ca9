//! Recordings that a child of the real binary prints, as one step of a run.

// Each test uses a part of it.
#![allow(dead_code)]

use std::io::Write;
use std::process::Command;

use serde_json::Value;
use subdeck::run::{ExitInfo, StepPhase};

use crate::support::{Done, Run, World, signal};

/// The program of a step that is played.
pub const PLAYER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/replay.sh");
/// How a child prints.
pub const PACES: [&str; 3] = ["byte", "line", "once"];
/// A child that ends well.
pub const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };

/// The child's side, for a test called `plays_a_recording`: the test's program is started again by the player and prints
/// what the variables say. Without them there is nothing to play.
pub fn child() {
    let Ok(file) = std::env::var("SUBDECK_REPLAY_FILE") else { return };
    let set = |name: &str| std::env::var(name).unwrap();
    let bytes = std::fs::read(file).unwrap();
    let mut out = std::fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    match set("SUBDECK_REPLAY_PACE").as_str() {
        "byte" => bytes.chunks(1).for_each(|byte| out.write_all(byte).unwrap()),
        "line" => bytes.split_inclusive(|b| *b == b'\n').for_each(|line| out.write_all(line).unwrap()),
        _ => out.write_all(&bytes).unwrap(),
    }
    let end = set("SUBDECK_REPLAY_END");
    if let Some(number) = end.strip_prefix("signal ") {
        signal(std::process::id(), &format!("-{number}"));
    }
    std::process::exit(end.strip_prefix("code ").and_then(|code| code.parse().ok()).unwrap_or(99));
}

/// Plays bytes through the binary; `runner` is how the plan runs the player, `change` has a word about the command.
/// Returns the world with the one run in it, and what was printed.
pub fn play(
    bytes: &[u8],
    pace: &str,
    exit: ExitInfo,
    runner: &str,
    change: impl FnOnce(&mut Command),
) -> (World, Done) {
    let world = World::new();
    let file = world.project().join("recording.jsonl");
    std::fs::write(&file, bytes).unwrap();
    let plan = format!("[[step]]\nid = \"played\"\ntask = \"Play.\"\nrunner = {runner}\n");
    let plan = world.file("plan.toml", &plan);
    let end = match (exit.code, exit.signal) {
        (Some(code), _) => format!("code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap()),
    };
    let mut command = world.subdeck(&["run", "--no-tui", plan.to_str().unwrap()]);
    command
        .env("SUBDECK_REPLAY_PLAYER", std::env::current_exe().unwrap())
        .env("SUBDECK_REPLAY_FILE", &file)
        .env("SUBDECK_REPLAY_PACE", pace)
        .env("SUBDECK_REPLAY_END", end);
    change(&mut command);
    let done = Done::of(command.output().unwrap());
    (world, done)
}

/// The answer of the only step, as the result has it.
pub fn output(run: &Run, world: &World) -> String {
    let result = world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    result["results"][0]["output"].as_str().unwrap_or_default().to_owned()
}

/// What a person reads in a recording, as far as it stands in the files of its run.
pub struct Wanted<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
    pub end: (StepPhase, i32, Option<&'a str>),
    pub text: Option<&'a str>,
    /// Input and output tokens, and the cost in millionths of a dollar.
    pub usage: (u64, u64, u64),
    /// How many tools ended.
    pub ends: usize,
}

impl Wanted<'_> {
    /// Plays it in these ways: each time the run is the one that was recorded, and its log is the same. `more` looks at
    /// the step of the status.
    pub fn check(&self, paces: &[&str], play: impl Fn(&str) -> (World, Done), more: impl Fn(&Value)) {
        let name = self.name;
        let mut log: Option<String> = None;
        for pace in paces {
            let (world, done) = play(pace);
            let run = world.only_run();
            assert!(
                std::fs::read(run.dir.join("raw-0.stdout")).unwrap() == self.bytes,
                "{name} by {pace}: the raw log"
            );
            let status = run.status();
            let step = &status["steps"][0];
            let (phase, exit_code, error) = &self.end;
            assert_eq!(step["status"], phase.as_str(), "{name} by {pace}: {done:?}");
            let ended = (step["exitCode"].as_i64(), step["error"].as_str());
            assert_eq!(ended, (Some((*exit_code).into()), *error), "{name} by {pace}");
            assert_eq!(done.code, i32::from(*phase != StepPhase::Complete), "{name} by {pace}: {done:?}");
            if let Some(text) = self.text {
                assert_eq!(output(&run, &world), text, "{name} by {pace}");
            }
            let count = |key: &str| step["tokens"][key].as_u64().unwrap_or(0);
            let usd = step["totalCost"]["costUsd"].as_f64().unwrap_or(0.0);
            let used = (count("input"), count("output"), (usd * 1e6).round() as u64);
            assert_eq!(used, self.usage, "{name} by {pace}");
            assert_eq!(run.events_of("tool_execution_end").len(), self.ends, "{name} by {pace}");
            more(step);
            let found = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap_or_default();
            assert_eq!(*log.get_or_insert_with(|| found.clone()), found, "{name} by {pace}");
            world.wait_until_empty();
        }
    }
}

/// A recording whose last record lacks its brace, or more, makes a run that failed.
pub fn check_breaking_off(name: &str, bytes: &[u8], play: impl Fn(&[u8], &str) -> (World, Done)) {
    let end = bytes.len() - 2;
    assert_eq!(bytes[end], b'}', "{name}");
    for (cut, pace) in [(end, "byte"), (end, "once"), (end / 2, "line"), (0, "once")] {
        let (world, done) = play(&bytes[..cut], pace);
        assert_eq!(done.code, 1, "{name} cut at {cut} by {pace}: {done:?}");
        assert_eq!(world.only_run().status()["state"], "failed", "{name} cut at {cut} by {pace}");
        world.wait_until_empty();
    }
}
