//! Agents that are older than their steerable transport, as children of the real binary: they are given one prompt instead,
//! unless the plan wants the transport. The agent is `tests/bin/older.sh`.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use serde_json::Value;
use support::{Done, Run, World};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/older.sh");

/// Runs one step of this family; `more` is more of its runner.
fn run(family: &str, how: &str, recording: &str, more: &str) -> (World, Done, Run) {
    let world = World::new();
    let recording = format!("{}/tests/fixtures/streams/{recording}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let args = format!("[{how:?}, {recording:?}]");
    let plan = format!(
        "[[step]]\nid = \"old\"\ntask = \"Do it.\"\nrunner = {{ type = {family:?}, command = {AGENT:?}, args = {args}{more} }}\n"
    );
    let plan = world.file("plan.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    let run = world.only_run();
    (world, done, run)
}

fn kept(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.project().join(name)).unwrap_or_default()
}

#[test]
fn one_that_does_not_know_its_steerable_transport_is_given_one_prompt() {
    for (family, how, recording) in [
        ("claude", "error: unknown option '--input-format'", "claude-2.1.332-text"),
        ("codex", "Error: stdin is not a terminal", "codex-0.171.0-text"),
        ("opencode", "Error: Failed to change directory to /x/acp", "opencode-1.18.33-text"),
        ("gemini", "Unknown argument: acp", "gemini-0.61.0-text"),
        ("qwen", "refuses", "qwen-0.24.4-text"),
        ("copilot", "error: unexpected argument '--acp' found", "copilot-1.0.102-text"),
    ] {
        let (world, done, run) = run(family, how, recording, "");
        assert_eq!(done.code, 0, "{family}: {done:?}");
        assert!(kept(&world, "prompt").contains("Do it."), "{family}");
        assert_eq!(kept(&world, "started").lines().count(), 2, "{family}: {}", kept(&world, "started"));
        assert_eq!(kept(&world, "talked"), "", "{family}: nothing is said after the refusal");
        let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
        let step = &shown["steps"][0];
        assert_eq!((&step["transport"], &step["attempt"]), (&"oneshot".into(), &2.into()), "{family}: {step:#}");
        assert_eq!((&step["state"], &step["steerable"]), (&"complete".into(), &false.into()), "{family}: {step:#}");
        let told = world.output(&["status", run.id()]).stdout;
        assert!(told.contains("attempt 2") && told.contains("it is too old to be steered ("), "{family}: {told}");
        // Who reads only the events knows it too.
        assert_eq!(run.status()["steps"][0]["subdeck"]["runner"], format!("{family}-oneshot"));
        world.wait_until_empty();
    }
}

#[test]
fn one_whose_transport_the_plan_names_fails_with_what_it_says() {
    let how = "Unknown argument: acp";
    let (world, done, run) = run("gemini", how, "gemini-0.61.0-text", ", transport = \"steerable\"");
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(kept(&world, "started").lines().count(), 1);
    let error = run.status()["steps"][0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains(how), "{error}");
}

#[test]
fn one_that_lacks_anything_else_is_not_tried_again() {
    let (world, done, _) = run("claude", "error: unknown option '--effort'", "claude-2.1.332-text", "");
    assert_eq!((done.code, kept(&world, "started").lines().count()), (1, 1), "{done:?}");
}
