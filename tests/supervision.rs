//! Limits, attention and attempts by the real binary with a scripted agent, beyond the numbered checks of
//! `checks_supervision`: what ends a child, what only tells, what is tried again, and what the files say of it.
//!
//! # The traps of runner-behaviour 14 that concern supervision
//!
//! | trap | where it is tried, or why it cannot occur |
//! |---|---|
//! | 1 arrays per step that do not grow | steps are state in one list; open calls belong to their step |
//! | 2 exceptions in a step | `what_goes_wrong_beside_a_child...`, `check_50`; a status that cannot be written: `check_10` |
//! | 3 logs that cannot be written | `what_goes_wrong_beside_a_child...`, `output_on_a_full_disk...` of checks_persistence |
//! | 4 a full disk | checks 4 to 6 and 11 to 13 of checks_persistence, `a_run_can_be_stopped_on_a_full_disk` |
//! | 5 exit is not close | `check_23`; `run::decide::rules_tests` (no limit for a child that is gone); tests/children.rs |
//! | 7 an interrupt blocks a later stop | `run::decide::tests` (a stop after an interrupt); a KILL ends each ladder |
//! | 8 attention that stays, tools of steps that are over | `check_14`, `check_23`, `check_27`, `silence_is_told_and_taken_back...` |
//! | 9 calls that began at the same time | `run::reduce::tests` (the first of a tie) |
//! | 10 the same id twice | `run::decide::rules_tests` (its time begins anew), `run::reduce::tests` |
//! | 11 an end with an unknown id | `check_26`, `run::reduce::tests` (matched by id, then by name, then alone) |
//! | 12 the same cause again | one notice for a cause: `run::reduce::prop_tests`; told outside once: `a_cause_that_comes_again...`; another call is another one: `rules_tests` |
//! | 13 flat and logical numbers | tests/differential.rs (a chain with a group) |
//! | 14 pending steps, short results | `usage_is_looked_at_before_each_step...`, tests/documents.rs |
//! | 15 the time of a tool is no time of the run | `check_14` |
//! | 16 no answer is retried, a failed tool never | `a_failed_tool_is_no_reason...`, `run::retry` |
//! | 17 starts that fail | `a_child_that_never_began...`, `run::retry` (late, or with a word, it did start) |
//! | 18 the drain | `an_agent_that_goes_on_after_its_last_word...`; `run::decide::tests` (it goes on, moving output), `run::judge` (what is a success) |
//! | 19 lines of 16 MiB | tests/children.rs (`long-line`), agents::framing |
//! | 20 prompts | `check_30`, tests/documents.rs (`check_prompts`), tests/package.rs (artifacts and transcripts) |
//! | 21 variables of nested runs | agents::pi::command, tests/package.rs (empty, and set for who may start agents) |
//! | 22 usage never ends a child of a runner config | `the_usage_of_a_runner_config_spares_who_runs...` |
//! | 23 turns wait for an open tool, the last word may come | `turns_beyond_the_last_one...`, `run::decide::rules_tests` |
//! | 24 a stop that lies there already | `a_stop_that_lies_there_already...` (what is told first); `run::reduce::tests` (either order is read) |
//! | 26 sums that disagree | one sum over the steps, for tokens and for money |
//! | 27 no session | `check_02`; `engine::recorder::tests` |
//! | 29 long output of plain commands | the streams are files; tests/children.rs |
//! | 30 fail-fast | tests/runs.rs (a skipped member is no failure of its own, and its end is an event) |
//! | 31 the order of a write | `engine::recorder::tests` (result, status, those above); `check_50` (the graph is of the same write) |
//! | 32 killed from outside | tests/children.rs (`kill KILL`: failed) |
//! | 33 clean when shown | tests/children.rs (`assert_clean`) |
//! | 35 times of what is over | an end is final: `run::reduce::prop_tests`; that of a pause until its child is gone: `run::reduce::tests` |
//!
//! Time that the machine sleeps (product 5) is tried in the core, where time is an argument: `run::decide::rules_tests`,
//! `run::reduce::prop_tests`. By the binary it cannot be tried without a machine that sleeps: the runner asks the kernel how
//! long that was, a stopped process is not asleep, and a namespace of times has one difference between its clocks from its
//! first process on to its last.
//!
//! 25, 28: there are neither groups that grow nor external jobs. 6, 34: nothing
//! runs `ps`, and there are no numbers of tabs in files.

#[allow(dead_code)]
#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{Run, signal, wait_for};

/// The statuses of all steps.
fn states(status: &Value) -> Vec<&str> {
    status["steps"].as_array().unwrap().iter().map(|s| s["status"].as_str().unwrap()).collect()
}

/// The notices that were raised, by their reasons in order.
fn raised(run: &Run) -> Vec<String> {
    let raised = run.events_of("subdeck.attention.raised");
    raised.iter().map(|e| e["notice"]["reason"].as_str().unwrap().to_owned()).collect()
}

fn usage(tokens: u64) -> Value {
    json!({ "usageBudget": { "tokens": { "hard": tokens } } })
}

#[test]
fn the_usage_of_a_runner_config_spares_who_runs_and_keeps_the_rest_from_starting() {
    let scene = Scene::new(&["say_at 600 500 0 big", "until go\nsay fine", "say never", "say never"]);
    let group = json!({ "parallel": [step(json!({})), step(json!({})), step(json!({}))], "concurrency": 2 });
    let run = scene.detach(&scene.config(&[group, step(json!({}))], usage(1000)));
    run.wait("the refusal", |s| states(s) == ["complete", "running", "failed", "pending"]);
    assert!(run.events_of("subdeck.signal.sent").is_empty(), "who runs goes on");
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!(states(&status), ["complete", "complete", "failed", "pending"]);
    let error = "The run is over budget: 1,100 tokens used, 1,000 tokens allowed.";
    assert_eq!((&status["state"], &status["error"]), (&"failed".into(), &error.into()));
    let refused = &status["steps"][2];
    assert_eq!((&refused["error"], &refused["exitCode"]), (&error.into(), &1.into()));
    assert_eq!((scene.starts(2), scene.starts(3)), (0, 0));
    let failed = run.events_of("subagent.step.failed");
    assert_eq!((failed.len(), &failed[0]["stepIndex"], &failed[0]["exitCode"]), (1, &2.into(), &1.into()));
    let budget = &status["usageBudget"];
    assert_eq!((&budget["exhausted"], &budget["reason"]), (&true.into(), &"tokens".into()));
    assert_eq!(budget["tokens"]["outcome"], "hard-exceeded");
    let result = scene.result(&run);
    assert_eq!((&result["state"], &result["exitCode"]), (&"failed".into(), &1.into()));
    assert_eq!(result["results"].as_array().unwrap().len(), 3);
    assert_eq!(scene.world.output(&["wait", run.id()]).code, 6);
}

#[test]
fn usage_is_looked_at_before_each_step_and_only_then() {
    let scene = Scene::new(&["say_at 600 500 0.25 big", "say never"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({})), step(json!({}))], usage(1000)));
    assert_eq!((states(&run.wait_end()).as_slice(), done.code), (["complete", "pending"].as_slice(), 6), "{done:?}");

    // With nothing left to start nothing is kept from happening.
    let scene = Scene::new(&["say_at 600 500 0.25 big"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], usage(1000)));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    assert_eq!(status["usageBudget"]["exhausted"], true);

    // Money is named with six decimals.
    let scene = Scene::new(&["say_at 6 5 0.25 big", "say never"]);
    let config = json!({ "usageBudget": { "costUsd": { "hard": 0.1 } } });
    let (run, done) = scene.run(&scene.config(&[step(json!({})), step(json!({}))], config));
    assert_eq!(done.code, 6, "{done:?}");
    assert_eq!(run.wait_end()["error"], "The run is over budget: $0.250000 used, $0.100000 allowed.");
}

#[test]
fn the_hard_limit_of_a_plan_ends_who_runs_at_once() {
    let scene = Scene::new(&["turn 600 500 0\nhang", "say never"]);
    let plan = "[budget]\ntokens = 1000\n[[step]]\nid = \"one\"\ntask = \"Do it.\"\n[[step]]\nid = \"two\"\ntask = \"More.\"\n";
    let (run, done) = scene.run(&scene.plan(plan));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["failed", "pending"].as_slice(), 6), "{done:?}");
    let error = "The run is over budget: 1,100 tokens used, 1,000 tokens allowed.";
    assert_eq!((&status["error"], &status["steps"][0]["error"]), (&error.into(), &error.into()));
    scene.world.wait_until_empty();
}

#[test]
fn an_agent_near_its_last_turn_is_told_once_and_may_finish() {
    let scene = Scene::new(&["turn 1 1 0\nturn 1 1 0\nhear\nsay that is all"]);
    let with = step(json!({ "systemPrompt": "Be brief." }));
    let config = scene.config(&[with], json!({ "turnBudget": { "maxTurns": 2, "graceTurns": 1 } }));
    let (run, done) = scene.run(&config);
    let status = run.wait_end();
    assert_eq!((&status["state"], done.code), (&"complete".into(), 0), "{done:?}");
    let heard = std::fs::read_to_string(scene.scripts().join("heard.0")).unwrap();
    assert!(heard.contains("2 of your 2 turns are used; at most 1 more"), "{heard}");
    assert_eq!(status["steering"]["requested"], 0, "nobody asked for it");
    for place in [&status, &status["steps"][0]] {
        assert_eq!(place["wrapUpRequested"], true);
        assert_eq!(place.get("turnBudgetExceeded"), None);
        let budget = &place["turnBudget"];
        assert_eq!((&budget["outcome"], &budget["wrapUpRequestedAtTurn"]), (&"wrap-up-requested".into(), &2.into()));
        assert_eq!((&budget["maxTurns"], &budget["turnCount"]), (&2.into(), &3.into()));
    }
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    let note = "turn budget: 2 of 2 turns; it was asked to wrap up";
    assert!(log.contains(&format!("── {note}\n")), "{log}");
    let recent = status["steps"][0]["recentOutput"].as_array().unwrap();
    assert_eq!(recent.iter().filter(|line| **line == note).count(), 1, "{recent:?}");
    let output = scene.result(&run)["results"][0]["output"].clone();
    assert_eq!(output, "[turn budget: 2 turns of 2; it was asked to wrap up]\n\nthat is all");
}

#[test]
fn an_agent_reads_of_its_turns_in_its_system_prompt() {
    let scene = Scene::new(&["until go\nsay fine"]);
    let with = step(json!({ "systemPrompt": "Be brief." }));
    let config = scene.config(&[with], json!({ "turnBudget": { "maxTurns": 4, "graceTurns": 2 } }));
    let run = scene.detach(&config);
    run.wait("the child", |s| s["steps"][0]["status"] == "running");
    let arguments = wait_for("the arguments", || scene.arguments(0, 1).filter(|a| a.contains("system-prompt")));
    let file = arguments.lines().skip_while(|l| !l.ends_with("system-prompt")).nth(1).unwrap().to_owned();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.contains("Be brief.") && text.contains("You have 4 turns") && text.contains("At most 2 more"),
        "{text}"
    );
    scene.touch("go");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn turns_beyond_the_last_one_end_the_step_once_no_tool_is_open() {
    let scene = Scene::new(&["turn 1 1 0\nturn 1 1 0\nopen A bash\nuntil go\nclose A bash\nhang", "say never"]);
    let steps = [step(json!({})), step(json!({}))];
    let run = scene.detach(&scene.config(&steps, json!({ "turnBudget": { "maxTurns": 1, "graceTurns": 1 } })));
    let deferred = wait_for("the deferral", || {
        Some(run.events_of("subagent.step.turn_budget_deferred")).filter(|e| !e.is_empty())
    });
    assert_eq!((&deferred[0]["turnCount"], &deferred[0]["maxTurns"]), (&2.into(), &1.into()));
    run.wait("the tool", |s| s["currentTool"] == "bash");
    assert!(run.events_of("subagent.step.turn_budget_exceeded").is_empty(), "the tool is open");
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!(states(&status), ["failed", "pending"]);
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("exceeded turn budget") && error.contains("2 turns"), "{error}");
    assert_eq!(status["error"].as_str(), Some(error));
    for place in [&status, &status["steps"][0]] {
        assert_eq!(place["turnBudgetExceeded"], true);
        assert_eq!(place["turnBudget"]["outcome"], "exceeded");
    }
    assert_eq!(run.events_of("subagent.step.turn_budget_deferred").len(), 1);
    assert_eq!(run.events_of("subagent.step.turn_budget_exceeded").len(), 1);
    let output = scene.result(&run)["results"][0]["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with(error) && output.contains("on it"), "{output}");
    assert_eq!(scene.world.output(&["wait", run.id()]).code, 6);
    scene.world.wait_until_empty();
}

#[test]
fn a_call_too_many_of_a_blocked_tool_ends_the_step_and_one_of_another_tool_does_not() {
    let budget = json!({ "toolBudget": { "soft": 1, "hard": 1 } });
    let scene = Scene::new(&["open A read\nclose A read\nopen B read\nhang"]);
    let own = "budget = { tool_calls = { soft = 1, hard = 1, block = [\"read\"] } }";
    let (run, done) = scene.run(&scene.plan(&format!("[[step]]\nid = \"one\"\ntask = \"Do it.\"\n{own}\n")));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["failed"].as_slice(), 6), "{done:?}");
    assert_eq!(status["steps"][0]["error"], "Over budget: 2 tool calls used, 1 tool call allowed.");
    assert_eq!(status["steps"][0]["toolBudget"]["outcome"], "hard-blocked");

    let scene = Scene::new(&["open A bash\nclose A bash\nopen B bash\nclose B bash\nsay fine"]);
    let (run, done) = scene.run(&scene.plan(&format!("[[step]]\nid = \"one\"\ntask = \"Do it.\"\n{own}\n")));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    assert_eq!(status["steps"][0].get("toolBudgetBlocked"), None);

    // A runner config leaves it to a guard inside the agent, and what goes beyond is seen and told.
    let scene =
        Scene::new(&["open A read\nclose A read\nopen B read\nclose B read\nenv PI_SUBAGENT_TOOL_BUDGET\nsay fine"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], budget.clone()));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    let told = &status["steps"][0]["toolBudget"];
    assert_eq!((&told["outcome"], &told["toolCount"]), (&"hard-blocked".into(), &2.into()));
    assert_eq!(status["steps"][0].get("toolBudgetBlocked"), None, "the guard refused nothing");
    let guard = std::fs::read_to_string(scene.scripts().join("env.0")).unwrap();
    let guard: Value = serde_json::from_str(guard.trim()).unwrap();
    assert_eq!(guard, json!({ "hard": 1, "soft": 1, "block": ["read", "grep", "find", "ls"] }));

    // An agent that goes on with what none refused has no guard: the runner ends it, and says why.
    let scene = Scene::new(&["open A read\nclose A read\nopen B read\nclose B read\nturn 1 1 0\nhang"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], budget.clone()));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["failed"].as_slice(), 6), "{done:?}");
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("Over budget: 2 tool calls used, 1 tool call allowed. No guard in the agent"), "{error}");
    assert_eq!(
        (&status["error"], &status["steps"][0]["toolBudget"]["outcome"]),
        (&error.into(), &"hard-blocked".into())
    );
    scene.world.wait_until_empty();

    // The guard inside the agent refused a call: that is seen and told, and it may go on.
    for refusal in [
        "broke B grep Tool budget hard limit reached (1).",
        "close B grep\nfailure B grep Tool budget hard limit reached (1).",
    ] {
        let scene = Scene::new(&[&format!(
            "open A read\nclose A read\nopen B grep\n{refusal}\nturn 1 1 0\nturn 1 1 0\nsay fine"
        )]);
        let (run, done) = scene.run(&scene.config(&[step(json!({}))], budget.clone()));
        let status = run.wait_end();
        assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{refusal}: {done:?}");
        for place in [&status, &status["steps"][0]] {
            assert_eq!(place["toolBudgetBlocked"], true, "{refusal}");
            let budget = &place["toolBudget"];
            assert_eq!((&budget["outcome"], &budget["blockedTool"]), (&"hard-blocked".into(), &"grep".into()));
        }
    }
}

/// An agent that says after its last word that it goes on is not ended by the drain (runner-behaviour 1.5, trap 18).
#[test]
fn an_agent_that_goes_on_after_its_last_word_is_not_drained() {
    let goes_on = "{\"type\":\"agent_settled\"}\n{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":true}";
    let scene = Scene::new(&[&format!("turn 1 1 0\n{goes_on}\nwait 1600\nsay after all")]);
    let (run, done) = scene.run(&scene.plan(JSON));
    assert_eq!((states(&run.wait_end()).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "after all");
    assert!(run.events_of("subdeck.signal.sent").is_empty() && run.events_of("subdeck.step.ending").is_empty());
    // One that does not say so is.
    let scene = Scene::new(&["turn 1 1 0\n{\"type\":\"agent_settled\"}\nwait 60000\nsay too late"]);
    let (run, _) = scene.run(&scene.plan(JSON));
    let sent = run.events_of("subdeck.signal.sent");
    assert_eq!((&sent[0]["signal"], &sent[0]["cause"]), (&"SIGTERM".into(), &"drain".into()));
    assert!(!scene.result(&run).to_string().contains("too late"));
}

#[test]
fn a_child_without_a_sign_of_life_is_ended() {
    let scene = Scene::new(&["{\"type\":\"agent_start\"}\nhang"]);
    let (run, done) =
        scene.run(&scene.plan("[[step]]\nid = \"one\"\ntask = \"Do it.\"\nbudget = { idle = \"700ms\" }\n"));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["failed"].as_slice(), 5), "{done:?}");
    assert!(status["steps"][0]["error"].as_str().unwrap().contains("no sign of life for 700ms"), "{status}");
}

#[test]
fn a_limit_that_is_raised_in_time_ends_nothing() {
    let scene = Scene::new(&["turn 30 30 0\nuntil go\nturn 30 30 0\nuntil on\nsay fine"]);
    let run = scene.detach(&scene.plan("[[step]]\nid = \"one\"\ntask = \"Do it.\"\nbudget = { tokens = 100 }\n"));
    run.wait("the first turn", |s| s["steps"][0]["turnCount"] == 1);
    let of_step = format!("{}:1", run.id());
    let done = scene.world.output(&["budget", &of_step, "tokens=1000", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let told = scene.world.output(&["budget", &of_step]);
    assert!(told.stdout.lines().any(|l| l.contains("tokens") && l.contains("1,000")), "{told:?}");
    scene.touch("go");
    run.wait("the second turn", |s| s["steps"][0]["turnCount"] == 2);
    scene.touch("on");
    assert_eq!(run.wait_end()["state"], "complete");
    let raised = run.events_of("subdeck.budget.raised");
    assert_eq!((raised.len(), &raised[0]["key"], &raised[0]["value"]), (1, &"tokens".into(), &1000.into()));
}

#[test]
fn the_next_model_is_tried_when_the_provider_failed_and_the_text_says_so() {
    let failed = concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","#,
        r#""errorMessage":"429 rate limit reached"}}"#,
        "\n{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":false}\n{\"type\":\"agent_settled\"}"
    );
    let scene = Scene::new(&["say fine"]);
    scene.script("0.1", failed);
    let with = step(json!({ "modelCandidates": ["a/one", "b/two"] }));
    let (run, done) = scene.run(&scene.config(&[with], json!({})));
    let status = run.wait_end();
    assert_eq!((&status["state"], done.code), (&"complete".into(), 0), "{done:?}");
    let step = &status["steps"][0];
    assert_eq!((&step["model"], &step["attemptedModels"]), (&"b/two".into(), &json!(["a/one", "b/two"])));
    let attempts = step["modelAttempts"].as_array().unwrap();
    assert_eq!(attempts.iter().map(|a| a["success"].as_bool().unwrap()).collect::<Vec<_>>(), [false, true]);
    assert!(scene.arguments(0, 2).unwrap().contains("b/two"));
    let output = scene.result(&run)["results"][0]["output"].clone();
    assert_eq!(output, "[fallback] a/one failed: 429 rate limit reached. Retrying with b/two.\nfine");
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    assert!(log.contains("── attempt 2: [fallback] a/one failed"), "{log}");
}

#[test]
fn a_failed_tool_is_no_reason_to_try_the_next_model() {
    let scene = Scene::new(&[
        "open A bash\nbroke A bash connection refused\nfailure A bash connection refused\n{\"type\":\"agent_settled\"}",
    ]);
    let with = step(json!({ "modelCandidates": ["a/one", "b/two"] }));
    let (run, done) = scene.run(&scene.config(&[with], json!({})));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code, scene.starts(0)), (["failed"].as_slice(), 1, 1), "{done:?}");
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("bash failed (exit 1): connection refused"), "{error}");
}

const JSON: &str = "[[step]]\nid = \"one\"\ntask = \"Do it.\"\nrunner = { type = \"pi\", transport = \"json\" }\n";

#[test]
fn a_child_that_never_began_is_started_four_times() {
    let scene = Scene::new(&["exit 3"]);
    let (run, done) = scene.run(&scene.plan(JSON));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code, scene.starts(0)), (["failed"].as_slice(), 1, 4), "{done:?}");
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("Subagent failed to start after 4 attempts on"), "{error}");
    assert_eq!(status["steps"][0]["modelAttempts"].as_array().unwrap().len(), 4);

    // One that comes up in the end is as good as any.
    let scene = Scene::new(&["say fine"]);
    scene.script("0.1", "kill KILL");
    let (run, done) = scene.run(&scene.plan(JSON));
    assert_eq!((&run.wait_end()["state"], done.code, scene.starts(0)), (&"complete".into(), 0, 2), "{done:?}");
    // What the system killed may have been too large: the task is in a file from then on.
    assert!(scene.arguments(0, 2).unwrap().contains("@"), "{:?}", scene.arguments(0, 2));
}

#[test]
fn what_a_child_leaves_behind_does_not_make_its_start_a_late_failure() {
    // What it leaves holds its output open for longer than a start may take, and is ended before the step goes on.
    let scene = Scene::new(&["say fine"]);
    scene.script("0.1", "leave\nexit 3");
    let (run, done) = scene.run(&scene.plan(JSON));
    assert_eq!((&run.wait_end()["state"], done.code, scene.starts(0)), (&"complete".into(), 0, 2), "{done:?}");
    assert_eq!(run.events_of("subdeck.output.held").len(), 1);
}

#[test]
fn time_that_ends_a_step_between_its_attempts_ends_the_run_at_once() {
    let scene = Scene::new(&["exit 3"]);
    // The third wait is the longest; this time is over within it, however slow the starts are.
    let (run, done) = scene.run(&scene.plan(&format!("{JSON}budget = {{ time = \"1500ms\" }}\n")));
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["failed"].as_slice(), 5), "{done:?}");
    assert!(scene.starts(0) < 4, "{}", scene.starts(0));
    let at = |what: &str| run.events_of(what)[0]["ts"].as_i64().unwrap();
    // Nothing but the time of the step wakes the loop here; its own look at the inbox comes seconds later.
    let between = at("subagent.run.completed") - at("subagent.step.failed");
    assert!(between < 3000, "{between} ms");
}

#[test]
fn a_stop_also_ends_the_wait_for_the_next_attempt() {
    let scene = Scene::new(&["exit 3"]);
    let run = scene.detach(&scene.plan(JSON));
    // The third wait is the longest.
    wait_for("two failed starts", || (run.events_of("subdeck.attempt.ended").len() >= 2).then_some(()));
    assert_eq!(scene.world.output(&["stop", run.id(), "--wait"]).code, 0);
    let status = run.wait_end();
    assert_eq!((&status["state"], states(&status).as_slice()), (&"stopped".into(), ["stopped"].as_slice()));
    assert!(scene.starts(0) < 4, "{}", scene.starts(0));
}

#[test]
fn silence_is_told_and_taken_back_with_the_next_word() {
    let scene = Scene::new(&["{\"type\":\"agent_start\"}\nuntil go\n{\"type\":\"turn_start\"}\nuntil on\nsay fine"]);
    let plan = "[attention]\nidle = \"600ms\"\n[[step]]\nid = \"one\"\ntask = \"Do it.\"\n";
    let run = scene.detach(&scene.plan(plan));
    run.wait("attention", |s| s["steps"][0]["activityState"] == "needs_attention");
    let notice = run.events_of("subdeck.attention.raised")[0].clone();
    assert_eq!((&notice["notice"]["reason"], &notice["stepIndex"]), (&"idle".into(), &0.into()));
    assert_eq!(run.events_of("subagent.control").len(), 1);
    scene.touch("go");
    run.wait("the end of it", |_| !run.events_of("subdeck.attention.cleared").is_empty());
    scene.touch("on");
    let status = run.wait_end();
    assert_eq!((&status["state"], status.get("activityState")), (&"complete".into(), None));
}

#[test]
fn a_cause_that_comes_again_is_told_again_but_calls_the_readers_of_the_package_once() {
    let scene = Scene::new(&["{\"type\":\"agent_start\"}\nuntil go\n{\"type\":\"turn_start\"}\nuntil on\nsay fine"]);
    let plan = "[attention]\nidle = \"300ms\"\n[[step]]\nid = \"one\"\ntask = \"Do it.\"\n";
    let run = scene.detach(&scene.plan(plan));
    wait_for("a first silence", || (raised(&run) == ["idle"]).then_some(()));
    scene.touch("go");
    wait_for("a second silence", || (raised(&run) == ["idle", "idle"]).then_some(()));
    scene.touch("on");
    assert_eq!(run.wait_end()["state"], "complete");
    assert_eq!(run.events_of("subagent.control").len(), 1, "the same claim is made once (runner-behaviour 4.4)");
}

#[test]
fn a_notice_is_taken_note_of_over_the_inbox() {
    let scene = Scene::new(&["{\"type\":\"agent_start\"}\nuntil go\nsay fine"]);
    let plan = "[attention]\nidle = \"300ms\"\n[[step]]\nid = \"one\"\ntask = \"Do it.\"\n";
    let run = scene.detach(&scene.plan(plan));
    let notice = wait_for("a notice", || run.events_of("subdeck.attention.raised").first().cloned());
    let ask = |id: &str, attention: &Value| {
        let name = format!("subdeck-requests/1764000694800-{}.json", URL_SAFE_NO_PAD.encode(id));
        let request = json!({ "type": "acknowledge", "id": id, "ts": 1764000694800_u64, "source": { "via": "test", "pid": 1 },
            "attentionId": attention });
        run.control(&name, &request.to_string());
        let answer = run.dir.join(format!("control/subdeck-acks/{}.json", URL_SAFE_NO_PAD.encode(id)));
        wait_for("an answer", || serde_json::from_slice::<Value>(&std::fs::read(&answer).ok()?).ok())
    };
    assert_eq!(ask("one", &notice["notice"]["id"])["state"], "done");
    assert_eq!(ask("two", &"0:nothing".into())["state"], "refused");
    let acknowledged = run.events_of("subdeck.attention.acknowledged");
    assert_eq!((acknowledged.len(), &acknowledged[0]["source"]["via"]), (1, &"test".into()));
    // At twice the time it is told again, once.
    let again = wait_for("the second time", || run.events_of("subdeck.attention.raised").get(1).cloned());
    assert_eq!((&again["notice"]["id"], &again["notice"]["times"]), (&notice["notice"]["id"], &2.into()));
    scene.touch("go");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn what_goes_wrong_again_and_again_is_told() {
    let broke = |n: usize| format!("open E{n} edit {{\"path\":\"a.rs\",\"n\":{n}}}\nbroke E{n} edit no match\n");
    let same = |n: usize| format!("open S{n} bash {{\"command\":\"ls\"}}\nclose S{n} bash\n");
    for (script, key, reason) in [
        (broke(1) + &broke(2), "tool_failures = 2", "tool_failures"),
        (same(1) + &same(2) + &same(3), "repeated_calls = 3", "repeated_call"),
        (String::new(), "no_first_event = \"400ms\"", "no_first_event"),
    ] {
        let scene = Scene::new(&[&format!("{script}until go\nsay fine")]);
        let run = scene.detach(&scene.plan(&format!("[attention]\n{key}\n{JSON}")));
        wait_for(reason, || (raised(&run) == [reason]).then_some(()));
        let needs = |s: &Value| s["steps"][0]["activityState"] == "needs_attention";
        run.wait(reason, needs);
        scene.touch("go");
        assert_eq!(run.wait_end()["state"], "complete", "{reason}");
        assert_eq!(raised(&run), [reason]);
    }
}

/// A runner that comes late, here because it is suspended, finds what a child did last together with its end.
#[test]
fn what_goes_wrong_right_before_the_end_is_told() {
    let broke = |n: usize| format!("open E{n} edit {{\"path\":\"a.rs\",\"n\":{n}}}\nbroke E{n} edit no match\n");
    let scene = Scene::new(&[&format!("until go\n{}{}say fine", broke(1), broke(2))]);
    let run = scene.detach(&scene.plan(&format!("[attention]\ntool_failures = 2\n{JSON}")));
    let child =
        run.wait("the child", |s| s["steps"][0]["subdeck"]["pid"].is_u64())["steps"][0]["subdeck"]["pid"].clone();
    signal(run.runner_pid(), "-STOP");
    scene.touch("go");
    wait_for("the end of the child", || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
        stat.contains(") Z ").then_some(())
    });
    signal(run.runner_pid(), "-CONT");
    assert_eq!(run.wait_end()["state"], "complete");
    assert_eq!(raised(&run), ["tool_failures"]);
}

#[test]
fn two_steps_that_change_one_file_are_told() {
    let edit = "open A edit {\"path\":\"src/../a.rs\"}\nuntil go\nclose A edit\nsay fine";
    let scene = Scene::new(&[edit, "open A write {\"path\":\"a.rs\"}\nuntil go\nclose A write\nsay fine"]);
    let plan = "[[step]]\nparallel = [{ id = \"one\", task = \"Do it.\" }, { id = \"two\", task = \"Do it.\" }]\n";
    let run = scene.detach(&scene.plan(plan));
    wait_for("both notices", || (raised(&run) == ["path_conflict", "path_conflict"]).then_some(()));
    let notices = run.events_of("subdeck.attention.raised");
    let mut of: Vec<_> = notices.iter().map(|n| n["stepIndex"].as_u64().unwrap()).collect();
    of.sort_unstable();
    assert_eq!(of, [0, 1]);
    scene.touch("go");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn without_attention_nothing_is_told() {
    let scene = Scene::new(&[
        "open A contact_supervisor {\"reason\":\"need_decision\"}\nwait 600\nclose A -\nwait 600\nsay fine",
    ]);
    let control =
        json!({ "controlConfig": { "enabled": false, "needsAttentionAfterMs": 200, "activeNoticeAfterMs": 200 } });
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], control));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(raised(&run).is_empty() && run.events_of("subagent.control").is_empty());
}

#[test]
fn a_task_that_demands_edits_is_not_done_without_one() {
    let config = |scene: &Scene, more: Value| {
        let mut with = step(more);
        with["task"] = "Fix the bug in src/lexer.rs.".into();
        scene.config(&[with, step(json!({}))], json!({}))
    };
    // On is what a runner config means when it says nothing.
    let scene = Scene::new(&["open A read\nclose A read\nsay all is well", "say never"]);
    let (run, done) =
        scene.run(&config(&scene, json!({ "completionGuard": null, "modelCandidates": ["a/one", "b/two"] })));
    let status = run.wait_end();
    assert_eq!(
        (states(&status).as_slice(), done.code, scene.starts(0)),
        (["failed", "pending"].as_slice(), 1, 1),
        "{done:?}"
    );
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("without having made any edit") && error.lines().count() == 2, "{error}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "all is well");
    let control = run.events_of("subagent.control");
    assert_eq!((control.len(), &control[0]["event"]["reason"]), (1, &"completion_guard".into()));
    // Switched off it is only told; with an edit, or with tools that only look, there is nothing to tell.
    for (script, more, told) in [
        ("say all is well", json!({ "completionGuard": false }), 1),
        ("open A edit\nclose A edit\nsay done", json!({ "completionGuard": true }), 0),
        (
            "open A bash {\"command\":\"sed -i s/a/b/ f\"}\nclose A bash\nsay done",
            json!({ "completionGuard": true }),
            0,
        ),
        ("say all is well", json!({ "completionGuard": true, "tools": ["read", "grep"] }), 0),
        ("say all is well", json!({ "completionGuard": null, "agentContract": { "version": 1 } }), 1),
    ] {
        let scene = Scene::new(&[script, "say next"]);
        let (run, done) = scene.run(&config(&scene, more.clone()));
        assert_eq!((states(&run.wait_end()).as_slice(), done.code), (["complete", "complete"].as_slice(), 0), "{more}");
        assert_eq!(raised(&run).len(), told, "{more}");
    }
    // One that was challenged to better its work may find that there is nothing better.
    for (reply, code) in [("No better change is needed. All tests pass.", 0), ("All tests pass.", 1)] {
        let scene = Scene::new(&[&format!("say {reply}"), "say next"]);
        let mut with = step(json!({ "completionGuard": true }));
        with["task"] = "Fix the bug in src/lexer.rs. Implementation challenge pass two.".into();
        let (run, done) = scene.run(&scene.config(&[with], json!({})));
        assert_eq!((done.code, raised(&run).len()), (code, usize::try_from(code).unwrap()), "{reply}: {done:?}");
    }
    // In a plan somebody has to ask for it.
    for (key, code) in [("", 0), ("completion_guard = true\n", 1)] {
        let scene = Scene::new(&["say all is well"]);
        let plan = format!("[[step]]\nid = \"one\"\ntask = \"Add a test to src/a.rs\"\n{key}");
        let (run, done) = scene.run(&scene.plan(&plan));
        assert_eq!((done.code, raised(&run)), (code, vec!["completion_guard".to_owned()]), "{key}");
    }
}

#[test]
fn what_became_of_the_output_is_told() {
    // Somebody holds the output of a child that has ended, until the sweep ends that too.
    let scene = Scene::new(&["say fine\nleave"]);
    let (run, done) = scene.run(&scene.plan(JSON));
    assert_eq!(done.code, 0, "{done:?}");
    let notices = run.events_of("subdeck.attention.raised");
    assert_eq!(raised(&run), ["output_held"], "{notices:?}");
    let held = run.events_of("subdeck.output.held")[0]["pids"][0].to_string();
    assert!(notices[0]["notice"]["evidence"].as_str().unwrap().contains(&held), "{notices:?}");
    assert!(run.events_of("subagent.control").is_empty(), "nobody is called for it");
    scene.world.wait_until_empty();

    // More was said than is kept.
    let scene = Scene::new(&["out 0123456789 0123456789 0123456789 0123456789\nuntil go\nsay fine"]);
    let plan = scene.plan(JSON);
    let mut command = scene.subdeck(&["run", "--detach", &plan]);
    let done = support::Done::of(command.env("SUBDECK_CAPTURE_STEP", "20B").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let run = scene.world.only_run();
    wait_for("a notice", || (raised(&run) == ["disk_cap"]).then_some(()));
    scene.touch("go");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn a_stop_that_lies_there_already_keeps_everything_from_starting() {
    let scene = Scene::new(&["say never", "say never"]);
    let config = scene.config(&[step(json!({})), step(json!({}))], json!({}));
    let written: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let control = std::path::Path::new(written["asyncDir"].as_str().unwrap()).join("control");
    std::fs::create_dir_all(&control).unwrap();
    std::fs::write(control.join("stop.json"), "").unwrap();
    let (run, done) = scene.run(&config);
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["stopped", "stopped"].as_slice(), 3), "{done:?}");
    assert_eq!((&status["state"], scene.starts(0)), (&"stopped".into(), 0));
    assert!(!control.join("stop.json").exists(), "it was taken");
    // Ours begins before it stops; that the reference does not, and is read all the same: `run::reduce::tests`.
    let told: Vec<String> = run.events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    let place = |kind: &str| told.iter().position(|t| t == kind).unwrap();
    assert!(place("subagent.run.started") < place("subagent.run.stopped"), "{told:?}");
    assert!(place("subagent.run.stopped") < place("subagent.run.completed"), "{told:?}");
}

/// What goes wrong in a step is that step's failure, and the run is ended in order (trap 2); what cannot be logged is told
/// and fails nothing (trap 3).
#[test]
fn what_goes_wrong_beside_a_child_ends_in_order() {
    let ended = |scene: &Scene, run: &Run| {
        let status = run.wait_end();
        assert_eq!(scene.result(run)["state"], status["state"]);
        assert_eq!(run.events_of("subagent.run.completed").len(), 1);
        status
    };
    // The folder of a step is gone when it is to begin.
    let scene = Scene::new(&["say never", "say never", "say never"]);
    let gone = scene.world.project().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let first = step(json!({ "runner": { "type": "external-cli", "command": "rmdir", "args": [&gone] } }));
    let (run, done) = scene.run(&scene.config(&[first, step(json!({ "cwd": &gone })), step(json!({}))], json!({})));
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete", "failed", "pending"].as_slice(), 1), "{done:?}");
    assert!(status["steps"][1]["error"].as_str().unwrap().contains("gone"), "{status}");
    // So is the program.
    let scene = Scene::new(&[]);
    let tool = scene.world.file("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let call = |command: &str, args: Value| {
        step(json!({ "runner": { "type": "external-cli", "command": command, "args": args } }))
    };
    let steps = [call("rm", json!([tool])), call(tool.to_str().unwrap(), json!([]))];
    let (run, done) = scene.run(&scene.config(&steps, json!({})));
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete", "failed"].as_slice(), 1), "{done:?}");
    let error = status["steps"][1]["error"].as_str().unwrap();
    assert!(error.contains("tool.sh"), "{error}");
    // An output that nobody gives is found out before anything begins; in the reference it ends the runner.
    let scene = Scene::new(&["say never", "say never"]);
    let asks = step(json!({ "task": "Use {outputs.nobody}." }));
    let config = scene.config(&[step(json!({})), asks], json!({}));
    let done = support::Done::of(scene.subdeck(&["run", "--no-tui", &config]).output().unwrap());
    assert_eq!((done.code, scene.starts(0)), (2, 0), "{done:?}");
    assert!(done.stderr.contains("nobody"), "{done:?}");
    // The log of a step cannot be made.
    let scene = Scene::new(&["out a line\nturn 1 1 0\nsay fine"]);
    let config = scene.config(&[step(json!({}))], json!({}));
    let written: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let log = std::path::Path::new(written["asyncDir"].as_str().unwrap()).join("output-0.log");
    std::fs::create_dir_all(log.join("in the way")).unwrap();
    let (run, done) = scene.run(&config);
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "fine");
    let failed = run.events_of("subdeck.log.failed");
    assert_eq!(failed[0]["error"], "output-0.log: it is not a regular file", "{failed:?}");
}
