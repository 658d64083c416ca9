//! Runs of the real Claude Code. They are skipped, with a word about it, unless `SUBDECK_REAL_CLAUDE` names a claude
//! executable that needs no arguments to find its model and its key. The model behind it is scripted as for
//! `tests/real_agents.rs`; `write` asks it to write a file.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, World, wait_for};

/// After a stop nothing may live longer than this.
const GONE: Duration = Duration::from_secs(5);

/// The claude to run; `None`, with a word about it, where there is none.
fn real_claude() -> Option<String> {
    let claude = std::env::var("SUBDECK_REAL_CLAUDE").ok();
    if claude.is_none() {
        println!("skipped: SUBDECK_REAL_CLAUDE names no claude executable");
    }
    claude
}

fn detach(world: &World, claude: &str, task: &str, more: &str) -> Run {
    let runner = format!("{{ type = \"claude\", command = {claude:?}{more} }}");
    let plan = world.file("plan.toml", &format!("[[step]]\nid = \"c\"\ntask = {task:?}\nrunner = {runner}\n"));
    world.detach(&[plan.to_str().unwrap()])
}

fn wait_for_the_tool(run: &Run) {
    run.wait("the tool", |s| s["steps"][0]["currentTool"] == "Bash");
}

#[test]
fn it_completes_both_ways_and_says_what_it_used() {
    let Some(claude) = real_claude() else { return };
    for transport in ["steerable", "oneshot"] {
        let world = World::new();
        let more = format!(", permission = \"allow\", transport = \"{transport}\"");
        let run = detach(&world, &claude, "[[scenario:bash secs=1]] Run it.", &more);
        let status = run.wait_end();
        assert_eq!(status["state"], "complete", "{transport}: {status:#}");
        let step = &status["steps"][0];
        assert_eq!((&step["toolCount"], &step["turnCount"]), (&1.into(), &2.into()), "{transport}: {step:#}");
        assert!(step["tokens"]["input"].as_u64().unwrap() > 0, "{transport}: {step:#}");
        assert!(step["subdeck"]["costUsd"].as_f64().unwrap() > 0.0, "{transport}: {step:#}");
        world.wait_until_empty();
    }
}

#[test]
fn a_message_in_the_middle_reaches_it() {
    let Some(claude) = real_claude() else { return };
    let world = World::new();
    let run = detach(&world, &claude, "[[scenario:multi secs=2 n=3]] Run them.", ", permission = \"allow\"");
    wait_for_the_tool(&run);
    let done = world.output(&["steer", run.id(), "mention bananas", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait("the delivery", |s| s["steering"]["delivered"] == 1);
    assert_eq!(status["steps"][0]["status"], "running", "it was told while it worked");
    assert_eq!(run.wait_end()["state"], "complete");
    world.wait_until_empty();
}

#[test]
fn an_interrupted_one_goes_on_in_its_session() {
    let Some(claude) = real_claude() else { return };
    let world = World::new();
    let run = detach(&world, &claude, "[[scenario:bash secs=60]] Take your time.", ", permission = \"allow\"");
    wait_for_the_tool(&run);
    let begin = Instant::now();
    assert_eq!(world.output(&["interrupt", run.id(), "--wait"]).code, 0);
    println!("paused after {:?}", begin.elapsed());
    let status = run.wait_end();
    assert_eq!(status["state"], "paused", "{status:#}");
    assert!(run.events_of("subdeck.signal.sent").is_empty(), "it went when it was asked over its protocol");
    let done = world.output(&["resume", run.id(), "[[scenario:text]] Go on.", "--detach"]);
    assert_eq!(done.code, 0, "{done:?}");
    let second = world.run(done.stdout.trim());
    let resumed = second.wait_end();
    assert_eq!(resumed["state"], "complete", "{resumed:#}");
    let session = |status: &Value| status["steps"][0]["subdeck"]["sessionId"].clone();
    assert_eq!(session(&resumed), session(&status));
    world.wait_until_empty();
}

#[test]
fn a_stop_ends_it_and_its_tool() {
    let Some(claude) = real_claude() else { return };
    let world = World::new();
    let run = detach(&world, &claude, "[[scenario:bash secs=60]] Take your time.", ", permission = \"allow\"");
    wait_for_the_tool(&run);
    let begin = Instant::now();
    assert_eq!(world.output(&["stop", run.id(), "--wait", "--timeout", "5s"]).code, 0);
    wait_for("the end of all processes", || world.processes().is_empty().then_some(()));
    assert!(begin.elapsed() < GONE, "{:?}", begin.elapsed());
    assert_eq!(run.wait_end()["state"], "stopped");
}

/// Waits until one question is open; returns it.
fn asked(run: &Run) -> Value {
    let open = |status: &Value| status["steps"][0]["subdeck"]["questions"].as_array().cloned().unwrap_or_default();
    open(&run.wait("the question", |status| open(status).len() == 1)).remove(0)
}

#[test]
fn a_permission_is_asked_for_and_the_answer_is_heeded() {
    let Some(claude) = real_claude() else { return };
    for (answer, failed) in [("allow", false), ("deny", true)] {
        let world = World::new();
        let run = detach(&world, &claude, "[[scenario:bash]] Do it.", "");
        let question = asked(&run);
        assert_eq!((&question["kind"], &question["tool"]), (&"permission".into(), &"Bash".into()), "{question:#}");
        let done = world.output(&["answer", run.id(), answer, "--wait"]);
        assert_eq!(done.code, 0, "{answer}: {done:?}");
        let status = run.wait_end();
        assert_eq!(status["state"], "complete", "{answer}: {status:#}");
        let ends = run.events_of("tool_execution_end");
        assert_eq!((ends.len(), &ends[0]["isError"]), (1, &failed.into()), "{answer}: {ends:?}");
        world.wait_until_empty();
    }
    // Nobody can be asked: the run pauses, and goes on where somebody can.
    let world = World::new();
    let runner = format!("{{ type = \"claude\", command = {claude:?} }}");
    let task = "[[scenario:bash]] Do it.";
    let plan = world.file("plan.toml", &format!("[[step]]\nid = \"c\"\ntask = \"{task}\"\nrunner = {runner}\n"));
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert!(done.code == 9 && done.stderr.contains("May it use Bash? "), "{done:?}");
    let done = world.output(&["resume", world.only_run().id(), "[[scenario:text]] Go on.", "--detach"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(world.run(done.stdout.trim()).wait_end()["state"], "complete");
    world.wait_until_empty();
}

/// The scenario `person` calls `AskUserQuestion` with the question "Which colour?" and the options Red and Blue; where the
/// model does not know it, there is nothing to see.
#[test]
fn a_question_of_its_own_is_answered_with_a_choice() {
    let Some(claude) = real_claude() else { return };
    if std::env::var_os("SUBDECK_REAL_QUESTIONS").is_none() {
        println!("skipped: SUBDECK_REAL_QUESTIONS does not say that the model knows the scenario `person`");
        return;
    }
    let world = World::new();
    let run = detach(&world, &claude, "[[scenario:person]] Ask.", "");
    let question = asked(&run);
    assert_eq!((&question["kind"], &question["text"]), (&"choice".into(), &"Which colour?".into()), "{question:#}");
    let done = world.output(&["answer", run.id(), "blue", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    let ends = run.events_of("tool_execution_end");
    let text = ends[0]["result"].to_string();
    assert!(ends[0]["isError"] == false && text.contains("Blue"), "{ends:?}");
    world.wait_until_empty();
}

#[test]
fn what_it_may_not_do_is_refused() {
    let Some(claude) = real_claude() else { return };
    for (transport, permission) in [("steerable", "deny"), ("oneshot", "ask")] {
        let world = World::new();
        let more = format!(", transport = \"{transport}\", permission = \"{permission}\"");
        let run = detach(&world, &claude, "[[scenario:write]] Write it.", &more);
        let status = run.wait_end();
        assert_eq!(status["state"], "complete", "{transport}: {status:#}");
        assert!(run.events_of("subdeck.question.asked").is_empty(), "{transport}");
        let ends = run.events_of("tool_execution_end");
        assert_eq!(ends.len(), 1, "{transport}: {ends:?}");
        assert_eq!(ends[0]["isError"], true, "{transport}: {ends:?}");
        world.wait_until_empty();
    }
}

/// A session goes on with its own system prompt, tools and model named on the command line.
#[test]
fn it_takes_all_that_a_plan_can_say() {
    let Some(claude) = real_claude() else { return };
    for mode in ["append", "replace"] {
        let world = World::new();
        let runner = format!("{{ type = \"claude\", command = {claude:?} }}");
        let rest = "thinking = \"low\"\nmodel = \"opus\"\ntools = [\"Read\", \"Bash(python3 *)\", \"Bash(echo *)\"]";
        let plan = format!(
            "[[step]]\nid = \"c\"\ntask = \"[[scenario:bash secs=1]] x\"\nrunner = {runner}\nsystem_prompt = \"Be brief.\"\n\
             system_prompt_mode = \"{mode}\"\n{rest}\n"
        );
        let plan = world.file("plan.toml", &plan);
        let run = world.detach(&[plan.to_str().unwrap()]);
        let status = run.wait_end();
        assert_eq!(status["state"], "complete", "{mode}: {status:#}");
        let ends = run.events_of("tool_execution_end");
        assert_eq!(ends.len(), 1, "{mode}: {ends:?}");
        assert_eq!(ends[0]["isError"], false, "{mode}: what stands in brackets needs no permission: {ends:?}");
        world.wait_until_empty();
    }
}
