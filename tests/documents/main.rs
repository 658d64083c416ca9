//! Every document of every kind of run against the tables, by the files that the binary wrote (run-directory 2.1, 11).

mod checks;
mod plans;
#[path = "../support/scripted.rs"]
#[allow(dead_code)]
mod scripted;
#[path = "../support/runs.rs"]
#[allow(dead_code)]
mod support;
#[path = "../support/tables/mod.rs"]
mod tables;

use checks::{Want, check_run, document};
use plans::{agent, command, plan, start};
use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{World, signal};

/// Stands in every task; may stand nowhere but in the stored plan, the agents' own
/// sessions and their own bytes.
const PROMPT: &str = "PROMPT-4f1d";

#[test]
fn a_single_run() {
    let world = World::new();
    let run = start(&world, &plan(&world, "", &[&[agent(&world, "scout", "quick")]]), &[]);
    let status = check_run(&world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert_eq!((&status["mode"], &status["parallelGroups"]), (&"single".into(), &serde_json::json!([])));
    assert_eq!(status["steps"][0]["recentTools"].as_array().unwrap().len(), 2);
}

#[test]
fn a_parallel_run() {
    let world = World::new();
    let group =
        [agent(&world, "scout", "quick"), command("lint", "echo fine; echo odd >&2"), agent(&world, "writer", "quick")];
    let run = start(&world, &plan(&world, "", &[&group]), &[]);
    let want = Want { state: "complete", exit_code: 0, steps: &["complete", "complete", "complete"] };
    let status = check_run(&world, &run, &want);
    assert_eq!(status["parallelGroups"], serde_json::json!([{ "start": 0, "count": 3, "stepIndex": 0 }]));
    assert_eq!(status["mode"], "parallel");
}

#[test]
fn a_chain_whose_middle_fails() {
    let world = World::new();
    let group = [agent(&world, "worker", "quick"), command("lint", "echo why >&2; exit 3")];
    let steps = [&[agent(&world, "scout", "quick")][..], &group, &[agent(&world, "writer", "quick")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    let want = Want { state: "failed", exit_code: 1, steps: &["complete", "complete", "failed", "pending"] };
    let status = check_run(&world, &run, &want);
    assert_eq!((&status["mode"], &status["chainStepCount"]), (&"chain".into(), &3.into()));
    assert_eq!(status["steps"][2]["exitCode"], 3);
}

#[test]
fn a_stopped_run_with_a_message_that_waits() {
    let world = World::new();
    let group = [agent(&world, "worker", "slow"), command("wait", "trap '' TERM; echo up; while :; do sleep 60; done")];
    let run = start(&world, &plan(&world, "", &[&group, &[agent(&world, "writer", "quick")]]), &[]);
    run.wait("the tool", |s| s["currentTool"] == "bash");
    run.wait_output(1, "up");
    let ids = [("waits", 2), ("astray", 9), ("taken", 0)];
    for (id, target) in ids {
        let request = format!(
            r#"{{"type":"steer","id":"{id}","ts":1764000694800,"message":"Look again.","targetIndex":{target},"source":"test"}}"#
        );
        run.control(&format!("steer-requests/1764000694800-{id}.json"), &request);
    }
    run.wait("all messages", |s| s["steering"]["recent"].as_array().is_some_and(|r| r.len() == 3));
    assert_eq!(world.output(&["stop", run.id()]).code, 0);
    let status =
        check_run(&world, &run, &Want { state: "stopped", exit_code: 1, steps: &["stopped", "stopped", "stopped"] });
    assert_eq!((&status["error"], &status["stopped"]), (&"Subagent stopped by user.".into(), &true.into()));
    let mut notices: Vec<_> =
        run.events_of("subagent.steering.notice").iter().map(|n| n["requestId"].as_str().unwrap().to_owned()).collect();
    notices.sort_unstable();
    assert_eq!(notices[..1], ["astray"], "{notices:?}");
    assert!(notices.contains(&"waits".to_owned()), "{notices:?}");
    let open = status["steering"]["recent"].as_array().unwrap().iter().flat_map(|r| r["targets"].as_array().unwrap());
    let open: Vec<_> =
        open.filter(|t| matches!(t["state"].as_str().unwrap(), "scheduled" | "routed" | "queued")).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_paused_run() {
    let world = World::new();
    let steps = [&[agent(&world, "worker", "slow")][..], &[agent(&world, "writer", "quick")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    run.wait("the tool", |s| s["currentTool"] == "bash");
    assert_eq!(world.output(&["interrupt", run.id()]).code, 0);
    let status = check_run(&world, &run, &Want { state: "paused", exit_code: 0, steps: &["paused", "pending"] });
    assert!(status.get("error").is_none());
    assert_eq!(run.events_of("subagent.run.paused").len(), 1);
}

#[test]
fn a_run_whose_time_is_over() {
    let world = World::new();
    let steps = [&[agent(&world, "worker", "slow")][..], &[command("never", "echo never")]];
    let run = start(&world, &plan(&world, "", &steps), &["--time", "700ms"]);
    let status = check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["failed", "failed"] });
    assert_eq!((&status["timedOut"], &status["timeoutMs"]), (&true.into(), &700.into()));
    assert!(status["deadlineAt"].is_number());
    assert_eq!(run.events_of("subagent.run.timed_out")[0]["timeoutMs"], 700);
}

#[test]
fn a_step_whose_time_is_over() {
    let world = World::new();
    let slow = command("slow", "sleep 60").replace("] } }", "] }, budget = { time = \"200ms\" } }");
    let run = start(&world, &plan(&world, "", &[&[slow], &[command("never", "echo never")]]), &[]);
    let status = check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["failed", "pending"] });
    assert_eq!(status["steps"][0]["timedOut"], true);
    assert!(status.get("timedOut").is_none());
}

#[test]
fn a_lost_run() {
    let world = World::new();
    let steps =
        [&[agent(&world, "scout", "quick")][..], &[agent(&world, "worker", "slow")], &[command("never", "true")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    run.wait("the tool", |s| s["steps"][1]["currentTool"] == "bash");
    signal(run.runner_pid(), "-KILL");
    let status =
        check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["complete", "failed", "pending"] });
    assert!(status["error"].as_str().unwrap().contains("SIGKILL"), "{}", status["error"]);
    assert_eq!(run.events_of("subagent.run.repaired_stale").len(), 1);
    let result = document(&world.root().join(format!("async-subagent-results/{}.json", run.id())));
    assert_eq!(result["results"][0]["output"], "Two files.", "what a step had said is not lost with the runner");
}

/// A step of a runner config with a task that may be written nowhere.
fn asked(more: Value) -> Value {
    let mut step = step(more);
    step["task"] = PROMPT.into();
    step
}

#[test]
fn a_run_that_needed_somebody_and_went_on() {
    let scene = Scene::new(&[concat!(
        "open A contact_supervisor {\"reason\":\"need_decision\"}\nuntil one\nclose A -\n",
        "open B bash {\"command\":\"make\"}\nwait 700\nclose B -\n",
        "open E1 edit {\"path\":\"a\"}\nbroke E1 edit no\nopen E2 edit {\"path\":\"a\"}\nbroke E2 edit no\nsay fine"
    )]);
    let control = json!({ "controlConfig": { "activeNoticeAfterMs": 400, "failedToolAttemptsBeforeAttention": 2 } });
    let run = scene.detach(&scene.config(&[asked(json!({}))], control));
    run.wait("attention", |s| s["activityState"] == "needs_attention");
    scene.touch("one");
    let status = check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert!(status["steps"][0].get("activityState").is_none());
    let reasons: Vec<_> = run.events_of("subagent.control").iter().map(|e| e["event"]["reason"].clone()).collect();
    for reason in ["supervisor_request", "tool_open_threshold", "tool_failures"] {
        assert!(reasons.contains(&reason.into()), "{reason}: {reasons:?}");
    }
}

#[test]
fn runs_that_are_over_their_budgets() {
    for (scripts, step, more, want) in [
        (
            ["turn 1 1 0\nturn 1 1 0\nopen A bash\nclose A bash\nhang", "say never"],
            json!({}),
            json!({ "turnBudget": { "maxTurns": 1, "graceTurns": 1 } }),
            ["failed", "pending"],
        ),
        (
            ["say_at 600 500 0.5 big", "say never"],
            json!({}),
            json!({ "usageBudget": { "tokens": { "soft": 10, "hard": 1000 }, "costUsd": { "hard": 5 } } }),
            ["complete", "pending"],
        ),
        (["open A bash\nhang", "say never"], json!({ "toolTimeoutMs": 500 }), json!({}), ["failed", "pending"]),
    ] {
        let scene = Scene::new(&scripts);
        let run = scene.detach(&scene.config(&[asked(step), asked(json!({}))], more));
        check_run(&scene.world, &run, &Want { state: "failed", exit_code: 1, steps: &want });
    }
    // The calls of a runner config are counted, and a guard inside the agent sees to the limit.
    let scene = Scene::new(&["open A read\nclose A read\nopen B read\nclose B read\nsay fine", "say done"]);
    let steps = [asked(json!({ "toolBudget": { "soft": 1, "hard": 1 } })), asked(json!({}))];
    let run = scene.detach(&scene.config(&steps, json!({})));
    check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete", "complete"] });
}

#[test]
fn a_run_whose_step_was_tried_again() {
    let scene = Scene::new(&["say fine"]);
    let refused = concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"503"}}"#,
        "\n{\"type\":\"agent_settled\"}"
    );
    scene.script("0.1", refused);
    let run = scene.detach(&scene.config(&[asked(json!({ "modelCandidates": ["a/one", "b/two"] }))], json!({})));
    let status = check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert_eq!(status["steps"][0]["modelAttempts"].as_array().unwrap().len(), 2);
    assert_eq!(run.events_of("subdeck.attempt.ended").len(), 1);
}
