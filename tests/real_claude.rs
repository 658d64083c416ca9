//! Runs of the real Claude Code: what it reports both ways, and all that a plan can say to it. What they need is described
//! in `tests/support/real.rs`; messages, interrupts and stops are tried by `tests/real-agents/seven.py`, its questions in
//! `tests/real_questions.rs`.

#[path = "support/real.rs"]
mod real;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use real::{agent, detach, end};
use support::World;

#[test]
fn it_completes_both_ways_and_says_what_it_used() {
    let Some(claude) = agent("claude") else { return };
    for transport in ["steerable", "oneshot"] {
        let world = World::new();
        let more = format!(", permission = \"allow\", transport = \"{transport}\"");
        let run = claude.detach(&world, "[[scenario:bash secs=1]] Run it.", &more);
        let status = end(&run);
        assert_eq!(status["state"], "complete", "{transport}: {status:#}");
        let step = &status["steps"][0];
        assert_eq!((&step["toolCount"], &step["turnCount"]), (&1.into(), &2.into()), "{transport}: {step:#}");
        assert!(step["tokens"]["input"].as_u64().unwrap() > 0, "{transport}: {step:#}");
        assert!(step["subdeck"]["costUsd"].as_f64().unwrap() > 0.0, "{transport}: {step:#}");
        world.wait_until_empty();
    }
}

#[test]
fn what_it_may_not_do_is_refused() {
    let Some(claude) = agent("claude") else { return };
    for (transport, permission) in [("steerable", "deny"), ("oneshot", "ask")] {
        let world = World::new();
        let more = format!(", transport = \"{transport}\", permission = \"{permission}\"");
        let run = claude.detach(&world, "[[scenario:write]] Write it.", &more);
        let status = end(&run);
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
    let Some(claude) = agent("claude") else { return };
    for mode in ["append", "replace"] {
        let world = World::new();
        let rest = "thinking = \"low\"\nmodel = \"opus\"\ntools = [\"Read\", \"Bash(python3 *)\", \"Bash(echo *)\"]";
        let step = format!("system_prompt = \"Be brief.\"\nsystem_prompt_mode = \"{mode}\"\n{rest}");
        let run = detach(&world, &claude.step("[[scenario:bash secs=1]] x", "", &step));
        let status = end(&run);
        assert_eq!(status["state"], "complete", "{mode}: {status:#}");
        let ends = run.events_of("tool_execution_end");
        assert_eq!(ends.len(), 1, "{mode}: {ends:?}");
        assert_eq!(ends[0]["isError"], false, "{mode}: what stands in brackets needs no permission: {ends:?}");
        world.wait_until_empty();
    }
}
