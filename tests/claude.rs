//! Claude Code as a child of the real binary: what it is started with, messages, an interrupt, questions. The agent is
//! `tests/bin/claude.sh`.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use serde_json::Value;
use support::{Run, World, wait_for};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/claude.sh");

/// A run of one step in this mode; `more` is more of its runner, `step` more of the step.
fn detach(world: &World, mode: &str, more: &str, step: &str) -> Run {
    let runner = format!("{{ type = \"claude\", command = {AGENT:?}, args = [{mode:?}]{more} }}");
    let plan =
        world.file("plan.toml", &format!("[[step]]\nid = \"c\"\ntask = \"/do it\"\nrunner = {runner}\n{step}\n"));
    world.detach(&[plan.to_str().unwrap()])
}

fn kept(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.project().join(name)).unwrap_or_default()
}

#[test]
fn it_is_started_as_the_plan_says_and_its_result_is_the_end() {
    let world = World::new();
    let step = "model = \"opus\"\nthinking = \"high\"\ntools = [\"Read\"]\nsystem_prompt = \"Be brief.\"\nbudget = { turns = 9 }";
    let run = detach(&world, "answer", ", permission = \"allow\", resume = \"s-0\"", step);
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    let step = &status["steps"][0];
    assert_eq!((&step["tokens"]["input"], &step["tokens"]["output"]), (&3.into(), &2.into()), "{step:#}");
    assert_eq!(step["subdeck"]["costUsd"], Value::Null, "what the session cost before is not known: {step:#}");
    let started = kept(&world, "started");
    let started: Vec<&str> = started.lines().collect();
    let prompt = started.iter().position(|arg| *arg == "--append-system-prompt-file").unwrap() + 1;
    for pair in [["--resume", "s-0"], ["--model", "opus"], ["--effort", "high"], ["--tools", "Read"]] {
        assert!(started.windows(2).any(|w| w == pair), "{started:?}");
    }
    assert!(started.contains(&"--dangerously-skip-permissions"), "{started:?}");
    assert!(!started.iter().any(|arg| arg.contains("do it")), "{started:?}");
    assert!(!std::path::Path::new(started[prompt]).exists(), "the file lives as long as the child");
    let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    let step = &shown["steps"][0];
    assert_eq!((&step["runner"], &step["permission"]), (&"claude".into(), &"allow".into()), "{step:#}");
    assert_eq!((&step["transport"], &step["session"]), (&"steerable".into(), &"s-1".into()), "{step:#}");
    world.wait_until_empty();
}

#[test]
fn what_one_said_last_that_ends_without_an_end_is_told() {
    let world = World::new();
    let run = detach(&world, "half", "", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "failed", "{status:#}");
    assert_eq!(status["steps"][0]["error"], "the agent ended without saying that it was done", "{status:#}");
    assert_eq!(status["steps"][0]["turnCount"], 1, "{status:#}");
    let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    assert_eq!(shown["steps"][0]["last_message"], "half of it", "{shown:#}");
}

#[test]
fn what_a_newer_one_says_beyond_what_is_known_is_counted_and_changes_nothing() {
    let world = World::new();
    let run = detach(&world, "newer", "", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    let unknown = &status["steps"][0]["subdeck"]["unknown"];
    assert_eq!(unknown["total"], 3, "{status:#}");
    assert_eq!(unknown["kinds"][0], serde_json::json!({"kind": "claude.brand_new", "count": 2}));
    let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    let step = &shown["steps"][0];
    assert_eq!(step["unknown_events"]["total"], 3, "{step:#}");
    let kind = step["unknown_events"]["kinds"][1]["kind"].as_str().unwrap();
    assert!(kind.starts_with("claude.system.") && !kind.contains(char::is_control), "{kind:?}");
    assert_eq!(step["resume_command"], "claude --resume s-1", "{step:#}");
    let told = world.output(&["status", run.id()]).stdout;
    assert!(told.contains("unknown to this version: 3 events: claude.brand_new ×2, claude.system."), "{told}");
    assert!(told.contains("session: claude --resume s-1"), "{told}");
    let events = world.output(&["events", run.id(), "--json"]).stdout;
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let unknown: Vec<&Value> = events.iter().filter(|event| event["type"] == "unknown").collect();
    assert_eq!(unknown.len(), 3, "{events:#?}");
    assert_eq!((&unknown[0]["step"], &unknown[0]["kind"]), (&1.into(), &"claude.brand_new".into()));
}

#[test]
fn a_message_reaches_it_in_the_middle_of_its_work() {
    let world = World::new();
    let run = detach(&world, "listen", "", "");
    run.wait("the tool", |s| s["steps"][0]["currentTool"] == "Bash");
    let done = world.output(&["steer", run.id(), "bananas", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    assert_eq!(status["steering"]["delivered"], 1, "{status:#}");
    let heard: Value = serde_json::from_str(&kept(&world, "heard")).unwrap();
    assert!(heard["message"]["content"][0]["text"].as_str().unwrap().contains("\n\nbananas\n\n"), "{heard}");
    assert_eq!(run.events_of("subagent.steer.delivered").len(), 1);
    world.wait_until_empty();
}

#[test]
fn an_interrupted_one_goes_on_in_its_session() {
    let world = World::new();
    let run = detach(&world, "long", "", "");
    run.wait("the tool", |s| s["steps"][0]["currentTool"] == "Bash");
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"paused".into(), &"paused".into()));
    assert!(run.events_of("subdeck.signal.sent").is_empty(), "it went when it was asked over its protocol");
    assert!(!kept(&world, "started").contains("--resume"));
    let done = world.output(&["resume", run.id(), "--detach"]);
    assert_eq!(done.code, 0, "{done:?}");
    let resumed = world.run(done.stdout.trim());
    resumed.wait("the tool", |s| s["steps"][0]["currentTool"] == "Bash");
    assert!(kept(&world, "started").contains("--resume\ns-1\n"), "{}", kept(&world, "started"));
    assert_eq!(world.output(&["stop", resumed.id(), "--wait"]).code, 0);
    assert_eq!(resumed.wait_end()["state"], "stopped");
    world.wait_until_empty();
}

#[test]
fn what_needs_a_permission_is_refused_where_nothing_is_permitted() {
    let world = World::new();
    let run = detach(&world, "ask", ", permission = \"deny\"", "");
    let answer = wait_for("the answer", || serde_json::from_str::<Value>(&kept(&world, "answer")).ok());
    assert_eq!(answer["response"]["request_id"], "q-1");
    assert_eq!(answer["response"]["response"]["behavior"], "deny");
    world.file("go", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    assert!(run.events_of("subdeck.question.asked").is_empty(), "nobody is asked");
    assert_eq!(run.events_of("subdeck.question.answered")[0]["by"], "rule");
    world.wait_until_empty();
}

#[test]
fn amp_takes_one_prompt_and_its_lines_are_understood() {
    let world = World::new();
    let runner = format!("{{ type = \"amp\", command = {AGENT:?}, args = [\"once\"], resume = \"T-1\" }}");
    let plan = world.file("plan.toml", &format!("[[step]]\nid = \"a\"\ntask = \"/do it\"\nrunner = {runner}\n"));
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(kept(&world, "heard"), "Task: /do it");
    let started = kept(&world, "started").lines().collect::<Vec<_>>().join(" ");
    assert_eq!(started, "threads continue T-1 -x --stream-json --no-archive-after-execute");
    let run = world.only_run();
    let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    let step = &shown["steps"][0];
    assert_eq!((&step["runner"], &step["transport"]), (&"amp".into(), &"oneshot".into()), "{step:#}");
    assert_eq!(step["resume_command"], "amp threads continue s-1", "{step:#}");
}

#[test]
fn one_prompt_goes_to_its_input_and_messages_are_refused() {
    let world = World::new();
    let run = detach(&world, "once", ", transport = \"oneshot\"", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    assert_eq!(status["steps"][0]["subdeck"]["costUsd"], 0.25, "{status:#}");
    assert_eq!(kept(&world, "heard"), "Task: /do it");
    assert!(!kept(&world, "started").contains("--input-format"), "{}", kept(&world, "started"));
    world.wait_until_empty();
}
