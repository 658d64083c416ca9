//! Agents that speak the Agent Client Protocol as children of the real binary: a scripted one for what goes both ways,
//! and recordings of the real ones, whose run is the same however their output arrives.

#[allow(dead_code)]
#[path = "support/acp_recordings.rs"]
mod acp_recordings;
#[path = "support/played.rs"]
mod played;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::PathBuf;

use acp_recordings::{Recording, read, recordings};
use played::{OK, PACES, PLAYER, Wanted, check_breaking_off, output};
use serde_json::Value;
use subdeck::agents::acp::Dialect;
use support::{Done, World};

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

#[test]
fn plays_a_recording() {
    played::child();
}

/// Plays bytes through the binary.
fn play(recording: &Recording, bytes: &[u8], pace: &str) -> (World, Done) {
    let word = match recording.dialect {
        Dialect::OpenCode => "opencode",
        Dialect::Gemini => "gemini",
        Dialect::Qwen => "qwen",
        Dialect::Copilot => "copilot",
        Dialect::Other => "acp",
    };
    let runner = format!("{{ type = \"{word}\", command = {PLAYER:?} }}");
    played::play(bytes, pace, OK, &runner, |command| {
        // The recordings of that agent begin with a login.
        match recording.dialect {
            Dialect::Gemini => command.env("GEMINI_API_KEY", "none"),
            _ => command.env_remove("GEMINI_API_KEY"),
        };
    })
}

#[test]
fn however_it_arrives_the_run_is_the_one_that_was_recorded() {
    for recording in recordings() {
        let bytes = read(recording.name);
        let (input, out, _, cost) = recording.usage;
        let wanted = Wanted {
            name: recording.name,
            bytes: &bytes,
            end: recording.end.clone(),
            text: recording.text,
            usage: (input, out, cost),
            ends: recording.tools.len(),
        };
        wanted.check(&PACES, |pace| play(&recording, &bytes, pace), |_| ());
    }
}

#[test]
fn a_recording_that_breaks_off_is_never_complete() {
    for recording in recordings().into_iter().filter(|recording| recording.name.ends_with("-bash")) {
        check_breaking_off(recording.name, &read(recording.name), |bytes, pace| play(&recording, bytes, pace));
    }
}
