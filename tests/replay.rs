//! Recorded output of the real agents, printed by a child of the real binary: however it arrives, the run that comes of it
//! is the same, and it is the one that a person reads in the recording.

#[allow(dead_code)]
#[path = "support/claude_recordings.rs"]
mod claude_recordings;
#[path = "support/played.rs"]
mod played;
#[allow(dead_code)]
#[path = "support/recordings.rs"]
mod recordings;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::sync::Mutex;

use claude_recordings::claude_recordings;
use played::{PACES, PLAYER, output};
use recordings::{Recording, read, recordings};
use serde_json::{Value, json};
use subdeck::run::{ExitInfo, StepPhase};
use support::{Done, World};

#[test]
fn plays_a_recording() {
    played::child();
}

/// Plays bytes through the binary.
fn play(recording: &Recording, bytes: &[u8], pace: &str, exit: ExitInfo) -> (World, Done) {
    let talks = |mark| recording.name.contains(mark);
    let runner = if talks("claude-") {
        let transport = if talks("-sj-") { "steerable" } else { "oneshot" };
        format!("{{ type = \"claude\", transport = \"{transport}\", command = {PLAYER:?} }}")
    } else {
        format!("{{ type = \"pi\", transport = \"{}\" }}", if talks("-rpc-") { "rpc" } else { "json" })
    };
    let policy = if recording.name.ends_with("permission-allow") { "allow" } else { "deny" };
    played::play(bytes, pace, exit, &runner, |command| {
        command.args(["--on-permission", policy]).env("PI_SUBAGENT_PI_BINARY", PLAYER);
    })
}

/// What must not depend on how the output arrived.
fn outcome(world: &World) -> Value {
    let run = world.only_run();
    let mut events = run.events();
    events.retain(|event| event["subagentSource"] == "child");
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        assert!(event.remove("observedAt").is_some_and(|at| at.is_number()), "{event:?}");
        assert_eq!(event.remove("subagentRunId").unwrap(), run.id());
    }
    let status = run.status();
    let mut step = status["steps"][0].clone();
    for tool in step["recentTools"].as_array_mut().unwrap() {
        tool.as_object_mut().unwrap().retain(|key, _| key == "tool" || key == "args");
    }
    let keys = [
        "status",
        "exitCode",
        "error",
        "tokens",
        "totalCost",
        "model",
        "turnCount",
        "toolCount",
        "recentTools",
        "currentTool",
    ];
    let step: serde_json::Map<_, _> = keys.map(|key| (key.to_owned(), step[key].clone())).into_iter().collect();
    // An answer is noted when the runner gives it, whatever the child printed by then.
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    let said: String = log.split_inclusive('\n').filter(|line| !line.starts_with("── ")).collect();
    json!({
        "events": events,
        "step": step,
        "state": status["state"],
        "totalTokens": status["totalTokens"],
        "totalCost": status["totalCost"],
        "output": output(&run, world),
        "log": said,
    })
}

/// Runs `work` for every item, on a few threads: most of the time is spent waiting for processes.
fn at_once<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(items);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(item) = queue.lock().unwrap().pop() else { break };
                    work(item);
                }
            });
        }
    });
}

#[test]
fn however_it_arrives_the_run_is_the_one_that_was_recorded() {
    let all = recordings().into_iter().chain(claude_recordings()).collect();
    at_once(all, |recording| {
        let name = recording.name;
        let bytes = read(name);
        let mut first: Option<Value> = None;
        for pace in PACES {
            let (world, done) = play(&recording, &bytes, pace, recording.exit);
            let run = world.only_run();
            let raw = std::fs::read(run.dir.join("raw-0.stdout")).unwrap();
            assert!(raw == bytes, "{name} by {pace}: the raw log is not what was printed");
            let found = outcome(&world);
            let (phase, exit_code, error) = &recording.end;
            let step = &found["step"];
            assert_eq!(step["status"], phase.as_str(), "{name} by {pace}");
            assert_eq!(step["exitCode"], *exit_code, "{name} by {pace}");
            assert_eq!(step["error"].as_str(), *error, "{name} by {pace}");
            let complete = *phase == StepPhase::Complete;
            assert_eq!(done.code, i32::from(!complete), "{name} by {pace}: {done:?}");
            assert_eq!(found["state"], if complete { "complete" } else { "failed" }, "{name} by {pace}");
            if let Some(text) = recording.text {
                assert_eq!(found["output"], text, "{name} by {pace}");
            }
            let (input, output, cost) = recording.usage;
            let count = |key: &str| step["tokens"][key].as_u64().unwrap_or(0);
            assert_eq!((count("input"), count("output")), (input, output), "{name} by {pace}");
            let usd = step["totalCost"]["costUsd"].as_f64().unwrap_or(0.0);
            assert_eq!((usd * 1e6).round(), cost as f64, "{name} by {pace}");
            let ended = recording.tools.iter().filter(|(_, ok)| ok.is_some()).count();
            let ends = found["events"].as_array().unwrap().iter().filter(|e| e["type"] == "tool_execution_end");
            assert_eq!(ends.count(), ended, "{name} by {pace}");
            match &first {
                None => first = Some(found),
                Some(first) => assert_eq!(&found, first, "{name} by {pace} and by {}", PACES[0]),
            }
            world.wait_until_empty();
        }
    });
}

#[test]
fn a_recording_that_breaks_off_is_never_complete() {
    let mut cuts = Vec::new();
    for recording in recordings().into_iter().chain(claude_recordings()) {
        if recording.end.0 != StepPhase::Complete {
            continue;
        }
        let bytes = read(recording.name);
        // Up to the last byte of the first record that says that the agent is done: its brace is missing.
        let mut end = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            end += line.len();
            let record: Value = serde_json::from_slice(line).unwrap();
            let pi = record["type"] == "message_end" && record["message"]["stopReason"] == "stop";
            if pi || (record["type"] == "result" && record["is_error"] == false) {
                break;
            }
        }
        let end = end - 2;
        assert_eq!(bytes[end], b'}', "{}", recording.name);
        cuts.push((recording, bytes, end));
    }
    assert!(cuts.len() >= 12, "most recordings end well");
    at_once(cuts, |(recording, bytes, end)| {
        for (cut, pace) in [(end, "byte"), (end, "once"), (end / 2, "line"), (0, "once")] {
            let (world, done) = play(&recording, &bytes[..cut], pace, played::OK);
            let found = outcome(&world);
            assert_eq!(found["step"]["status"], "failed", "{} cut at {cut} by {pace}", recording.name);
            assert_eq!(found["state"], "failed", "{} cut at {cut} by {pace}", recording.name);
            assert_eq!(done.code, 1, "{} cut at {cut} by {pace}: {done:?}", recording.name);
            world.wait_until_empty();
        }
    });
}
