//! What ends a child: tokens, turns, tools, silence, time.

use super::*;

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
    // Who runs has told nothing yet.
    let error = "The run is over budget: 1,100+ tokens used, 1,000 tokens allowed.";
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
