//! Agents that speak the Agent Client Protocol as children of the real binary: a scripted one for what goes both ways,
//! and recordings of the real ones, whose run is the same however their output arrives.

#[allow(dead_code)]
#[path = "support/acp_recordings.rs"]
mod acp_recordings;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::io::Write;
use std::path::PathBuf;

use acp_recordings::{Recording, read, recordings};
use serde_json::Value;
use subdeck::agents::acp::Dialect;
use subdeck::run::StepPhase;
use support::{Done, Run, World};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/acp_agent.sh");

fn heard(world: &World) -> PathBuf {
    world.project().join("heard.jsonl")
}

/// What the scripted agent was told.
fn told(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(heard(world)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn methods(world: &World) -> Vec<String> {
    told(world).iter().filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
}

/// A plan with one step of the scripted agent.
fn plan(world: &World, task: &str, more: &str) -> String {
    let runner = format!("runner = {{ type = \"acp\", command = \"{AGENT}\"{more} }}");
    let heard = heard(world);
    let text =
        format!("[[step]]\nid = \"a\"\ntask = \"{task}\"\nenv = {{ ACP_HEARD = \"{}\" }}\n{runner}\n", heard.display());
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

fn output(run: &Run, world: &World) -> String {
    let result = world.root().join("async-subagent-results").join(format!("{}.json", run.id()));
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    result["results"][0]["output"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_task_is_handed_over_and_answered() {
    let world = World::new();
    let plan = plan(&world, "Do it.", "");
    let done = world.output(&["run", "--no-tui", &plan]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    assert_eq!(output(&run, &world), "Answer 3.");
    assert_eq!(methods(&world), ["initialize", "session/new", "session/prompt"]);
    let told = told(&world);
    let cwd = world.project().canonicalize().unwrap();
    assert_eq!(told[1]["params"]["cwd"].as_str().map(PathBuf::from), Some(cwd));
    assert_eq!(told[2]["params"]["prompt"][0]["text"], "Task: Do it.");
    world.wait_until_empty();
}

#[test]
fn a_message_makes_it_break_off_and_a_follow_up_waits_for_its_turn() {
    let world = World::new();
    let plan = plan(&world, "WAIT for it.", "");
    let run = world.detach(&[&plan]);
    run.wait("the tool", |status| status["currentTool"] == "execute");
    let follow = world.output(&["steer", run.id(), "--mode", "follow-up", "And this at last."]);
    assert_eq!(follow.code, 0, "{follow:?}");
    let steer = world.output(&["steer", run.id(), "Another way."]);
    assert_eq!(steer.code, 0, "{steer:?}");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status}");
    assert_eq!(output(&run, &world), "Answer 5.");
    let said = methods(&world);
    let prompts = ["initialize", "session/new", "session/prompt", "session/cancel", "session/prompt", "session/prompt"];
    assert_eq!(said, prompts);
    let texts: Vec<String> = told(&world)
        .iter()
        .filter_map(|message| message.pointer("/params/prompt/0/text")?.as_str().map(str::to_owned))
        .collect();
    assert!(texts[1].contains("Another way.") && texts[2].contains("And this at last."), "{texts:?}");
    world.wait_until_empty();
}

#[test]
fn an_interrupt_goes_over_the_protocol() {
    let world = World::new();
    let plan = plan(&world, "WAIT for it.", "");
    let run = world.detach(&[&plan]);
    run.wait("the tool", |status| status["currentTool"] == "execute");
    let done = world.output(&["interrupt", run.id()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(run.wait_end()["state"], "paused");
    assert_eq!(methods(&world).last().map(String::as_str), Some("session/cancel"));
    assert_eq!(run.events_of("subdeck.signal.sent"), Vec::<Value>::new(), "nobody had to be signalled");
    world.wait_until_empty();
}

#[test]
fn permissions_and_files_are_answered() {
    for (task, more, expected) in [
        ("ASK first.", ", permission = \"allow\"", "It was allowed."),
        ("ASK first.", ", permission = \"deny\"", "It was refused."),
        ("FILE, please.", "", "There is no file."),
    ] {
        let world = World::new();
        let plan = plan(&world, task, more);
        let done = world.output(&["run", "--no-tui", &plan]);
        assert_eq!(done.code, 0, "{task} {more}: {done:?}");
        assert_eq!(output(&world.only_run(), &world), expected, "{task} {more}");
        world.wait_until_empty();
    }
}

/// The child's side: this program is started again by `tests/bin/replay.sh` and prints what the variables say. Without
/// them there is nothing to play.
#[test]
fn plays_a_recording() {
    let Ok(file) = std::env::var("SUBDECK_REPLAY_FILE") else { return };
    let bytes = std::fs::read(file).unwrap();
    let mut out = std::fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    match std::env::var("SUBDECK_REPLAY_PACE").unwrap().as_str() {
        "byte" => bytes.chunks(1).for_each(|byte| out.write_all(byte).unwrap()),
        "line" => bytes.split_inclusive(|b| *b == b'\n').for_each(|line| out.write_all(line).unwrap()),
        _ => out.write_all(&bytes).unwrap(),
    }
    std::process::exit(0);
}

/// Plays bytes through the binary.
fn play(recording: &Recording, bytes: &[u8], pace: &str) -> (World, Done) {
    let world = World::new();
    let file = world.project().join("recording.jsonl");
    std::fs::write(&file, bytes).unwrap();
    let word = match recording.dialect {
        Dialect::OpenCode => "opencode",
        Dialect::Gemini => "gemini",
        Dialect::Qwen => "qwen",
        Dialect::Copilot => "copilot",
        Dialect::Other => "acp",
    };
    let player = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/replay.sh");
    let text =
        format!("[[step]]\nid = \"a\"\ntask = \"Play.\"\nrunner = {{ type = \"{word}\", command = \"{player}\" }}\n");
    let plan = world.file("plan.toml", &text);
    let mut command = world.subdeck(&["run", "--no-tui", plan.to_str().unwrap()]);
    // The recordings of that agent begin with a login.
    match recording.dialect {
        Dialect::Gemini => command.env("GEMINI_API_KEY", "none"),
        _ => command.env_remove("GEMINI_API_KEY"),
    };
    let done = command
        .env("SUBDECK_REPLAY_PLAYER", std::env::current_exe().unwrap())
        .env("SUBDECK_REPLAY_FILE", &file)
        .env("SUBDECK_REPLAY_PACE", pace)
        .output()
        .unwrap();
    (world, Done::of(done))
}

#[test]
fn however_it_arrives_the_run_is_the_one_that_was_recorded() {
    for recording in recordings() {
        let name = recording.name;
        let bytes = read(name);
        let mut log: Option<String> = None;
        for pace in ["byte", "line", "once"] {
            let (world, done) = play(&recording, &bytes, pace);
            let run = world.only_run();
            assert!(std::fs::read(run.dir.join("raw-0.stdout")).unwrap() == bytes, "{name} by {pace}: the raw log");
            let status = run.status();
            let step = &status["steps"][0];
            let (phase, exit_code, error) = &recording.end;
            assert_eq!(step["status"], phase.as_str(), "{name} by {pace}: {done:?}");
            assert_eq!(
                (step["exitCode"].as_i64(), step["error"].as_str()),
                (Some((*exit_code).into()), *error),
                "{name}"
            );
            assert_eq!(done.code, i32::from(*phase != StepPhase::Complete), "{name} by {pace}: {done:?}");
            if let Some(text) = recording.text {
                assert_eq!(output(&run, &world), text, "{name} by {pace}");
            }
            let (input, out, _, cost) = recording.usage;
            let count = |key: &str| step["tokens"][key].as_u64().unwrap_or(0);
            assert_eq!((count("input"), count("output")), (input, out), "{name} by {pace}");
            let usd = step["totalCost"]["costUsd"].as_f64().unwrap_or(0.0);
            assert_eq!((usd * 1e6).round() as u64, cost, "{name} by {pace}");
            let ends = run.events_of("tool_execution_end").len();
            assert_eq!(ends, recording.tools.len(), "{name} by {pace}");
            let found = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
            assert_eq!(*log.get_or_insert_with(|| found.clone()), found, "{name} by {pace}");
            world.wait_until_empty();
        }
    }
}

#[test]
fn a_recording_that_breaks_off_is_never_complete() {
    for recording in recordings().into_iter().filter(|recording| recording.name.ends_with("-bash")) {
        let bytes = read(recording.name);
        let end = bytes.len() - 2;
        assert_eq!(bytes[end], b'}', "{}", recording.name);
        for (cut, pace) in [(end, "byte"), (end, "once"), (end / 2, "line"), (0, "once")] {
            let (world, done) = play(&recording, &bytes[..cut], pace);
            assert_eq!(done.code, 1, "{} cut at {cut} by {pace}: {done:?}", recording.name);
            assert_eq!(world.only_run().status()["state"], "failed", "{} cut at {cut} by {pace}", recording.name);
            world.wait_until_empty();
        }
    }
}
