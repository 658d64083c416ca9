//! Runs of the real Codex. They are skipped, with a word about it, unless `SUBDECK_REAL_AGENTS` names a folder with a
//! `codex` that needs no arguments to find its model and its key. The model behind it is scripted as for
//! `tests/real_acp.rs`; `parallel` runs two commands at once, `fail` one that fails, `err500` fails itself.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, World, wait_for};

/// After a stop nothing may live longer than this.
const GONE: Duration = Duration::from_secs(10);
const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";

/// The codex to run; `None`, with a word about it, where there is none.
fn real_codex() -> Option<PathBuf> {
    let codex = std::env::var_os("SUBDECK_REAL_AGENTS").map(|folder| PathBuf::from(folder).join("codex"));
    match codex {
        Some(codex) if codex.exists() => return Some(codex),
        Some(codex) => println!("skipped: there is no {}", codex.display()),
        None => println!("skipped: SUBDECK_REAL_AGENTS names no folder with agents"),
    }
    None
}

fn detach(world: &World, codex: &std::path::Path, task: &str, more: &str, step: &str) -> Run {
    let runner = format!("{{ type = \"codex\", command = {codex:?}{more} }}");
    let plan = world.file("plan.toml", &format!("[[step]]\nid = \"c\"\ntask = {task:?}\nrunner = {runner}\n{step}\n"));
    world.detach(&[plan.to_str().unwrap()])
}

fn wait_for_the_tool(run: &Run) {
    run.wait("the tool", |status| status["steps"][0]["currentTool"] == "shell");
}

#[test]
fn it_completes_both_ways_and_says_what_it_used() {
    let Some(codex) = real_codex() else { return };
    for (transport, turns) in [("steerable", 2), ("oneshot", 3)] {
        for (scene, tools, failed) in [("bash secs=1", 1, 0), ("parallel", 2, 0), ("fail", 1, 1)] {
            let world = World::new();
            let more = format!(", permission = \"allow\", transport = \"{transport}\"");
            let run = detach(&world, &codex, &format!("[[scenario:{scene}]] Run it."), &more, "");
            let status = run.wait_end();
            assert_eq!(status["state"], "complete", "{transport} {scene}: {status:#}");
            let step = &status["steps"][0];
            let turns = if scene == "parallel" { turns } else { 2 };
            assert_eq!((&step["toolCount"], &step["turnCount"]), (&tools.into(), &turns.into()), "{transport} {scene}");
            assert_eq!((&step["tokens"]["input"], &step["tokens"]["output"]), (&2600.into(), &114.into()), "{step:#}");
            let ends = run.events_of("tool_execution_end");
            assert_eq!(ends.iter().filter(|end| end["isError"] == true).count(), failed, "{transport} {scene}");
            world.wait_until_empty();
        }
        let world = World::new();
        let run = detach(&world, &codex, "[[scenario:err500]] Try.", &format!(", transport = \"{transport}\""), "");
        let status = run.wait_end();
        assert_eq!(status["state"], "failed", "{transport}: {status:#}");
        assert!(!run.events_of("auto_retry_start").is_empty(), "{transport}");
        world.wait_until_empty();
    }
}

#[test]
fn a_message_in_the_middle_reaches_the_model() {
    let Some(codex) = real_codex() else { return };
    let world = World::new();
    let run = detach(&world, &codex, "[[scenario:multi secs=3 n=3]] Run them.", "", "");
    wait_for_the_tool(&run);
    let done = world.output(&["steer", "--wait", run.id(), "[[scenario:text]] Enough."]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait("the delivery", |status| status["steering"]["delivered"] == 1);
    assert_eq!(status["steps"][0]["status"], "running", "it was told while it worked");
    assert_eq!(run.wait_end()["state"], "complete");
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    assert!(log.contains(HELLO) && !log.contains("round-3"), "{log}");
    world.wait_until_empty();
}

#[test]
fn an_interrupted_one_leaves_nothing_behind_and_goes_on_in_its_session() {
    let Some(codex) = real_codex() else { return };
    let world = World::new();
    let run = detach(&world, &codex, "[[scenario:bash secs=60]] Take your time.", "", "");
    wait_for_the_tool(&run);
    wait_for("a process of the tool", || world.processes().len().checked_sub(3));
    let begin = Instant::now();
    assert_eq!(world.output(&["interrupt", run.id(), "--wait"]).code, 0);
    println!("paused after {:?}", begin.elapsed());
    let status = run.wait_end();
    assert_eq!(status["state"], "paused", "{status:#}");
    assert!(run.events_of("subdeck.signal.sent").is_empty(), "it went when it was asked over its protocol");
    world.wait_until_empty();
    let done = world.output(&["resume", run.id(), "[[scenario:text]] Go on.", "--detach"]);
    assert_eq!(done.code, 0, "{done:?}");
    let second = world.run(done.stdout.trim());
    let resumed = second.wait_end();
    assert_eq!(resumed["state"], "complete", "{resumed:#}");
    let session = |status: &Value| status["steps"][0]["subdeck"]["sessionId"].clone();
    assert_eq!(session(&resumed), session(&status));
    assert_eq!(resumed["steps"][0]["tokens"]["input"], 1300, "what was used before is not counted again");
    world.wait_until_empty();
}

#[test]
fn a_stop_ends_it_and_its_tool() {
    let Some(codex) = real_codex() else { return };
    for transport in ["steerable", "oneshot"] {
        let world = World::new();
        let more = format!(", transport = \"{transport}\"");
        let run = detach(&world, &codex, "[[scenario:bash secs=60]] Take your time.", &more, "");
        wait_for_the_tool(&run);
        let begin = Instant::now();
        assert_eq!(world.output(&["stop", run.id(), "--wait", "--timeout", "10s"]).code, 0, "{transport}");
        wait_for("the end of all processes", || world.processes().is_empty().then_some(()));
        assert!(begin.elapsed() < GONE, "{transport}: {:?}", begin.elapsed());
        assert_eq!(run.wait_end()["state"], "stopped", "{transport}");
    }
}

#[test]
fn it_takes_all_that_a_plan_can_say() {
    let Some(codex) = real_codex() else { return };
    for transport in ["steerable", "oneshot"] {
        for mode in ["append", "replace"] {
            let world = World::new();
            let step = format!(
                "system_prompt = \"Be brief.\"\nsystem_prompt_mode = \"{mode}\"\nmodel = \"gpt-5.5\"\nthinking = \"low\""
            );
            let more = format!(", transport = \"{transport}\"");
            let run = detach(&world, &codex, "[[scenario:write]] x", &more, &step);
            let status = run.wait_end();
            assert_eq!(status["state"], "complete", "{transport} {mode}: {status:#}");
            let ends = run.events_of("tool_execution_end");
            assert_eq!((ends.len(), &ends[0]["isError"]), (1, &false.into()), "{transport} {mode}: {ends:?}");
            world.wait_until_empty();
        }
    }
}
