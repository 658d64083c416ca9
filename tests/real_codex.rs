//! Runs of the real Codex: what it reports both ways, and all that a plan can say to it. What they need is described in
//! `tests/support/real.rs`; messages, interrupts and stops are tried by `tests/real-agents/seven.py`.

#[path = "support/real.rs"]
mod real;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use real::{agent, detach, end};
use support::World;

#[test]
fn it_completes_both_ways_and_says_what_it_used() {
    let Some(codex) = agent("codex") else { return };
    for (transport, turns) in [("steerable", 2), ("oneshot", 3)] {
        for (scene, tools, failed) in [("bash secs=1", 1, 0), ("parallel", 2, 0), ("fail", 1, 1)] {
            let world = World::new();
            let more = format!(", permission = \"allow\", transport = \"{transport}\"");
            let run = codex.detach(&world, &format!("[[scenario:{scene}]] Run it."), &more);
            let status = end(&run);
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
        let run = codex.detach(&world, "[[scenario:err500]] Try.", &format!(", transport = \"{transport}\""));
        let status = end(&run);
        assert_eq!(status["state"], "failed", "{transport}: {status:#}");
        assert!(!run.events_of("auto_retry_start").is_empty(), "{transport}");
        world.wait_until_empty();
    }
}

#[test]
fn it_takes_all_that_a_plan_can_say() {
    let Some(codex) = agent("codex") else { return };
    for transport in ["steerable", "oneshot"] {
        for mode in ["append", "replace"] {
            let world = World::new();
            let step = format!(
                "system_prompt = \"Be brief.\"\nsystem_prompt_mode = \"{mode}\"\nmodel = \"gpt-5.5\"\nthinking = \"low\""
            );
            let more = format!(", transport = \"{transport}\"");
            let run = detach(&world, &codex.step("[[scenario:write]] x", &more, &step));
            let status = end(&run);
            assert_eq!(status["state"], "complete", "{transport} {mode}: {status:#}");
            let ends = run.events_of("tool_execution_end");
            assert_eq!((ends.len(), &ends[0]["isError"]), (1, &false.into()), "{transport} {mode}: {ends:?}");
            world.wait_until_empty();
        }
    }
}
