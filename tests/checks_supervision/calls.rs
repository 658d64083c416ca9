//! Checks 14 to 26: how long a call may be open, which one an end means, and what is known of those that are open or ended.

use serde_json::{Value, json};

use crate::scripted::{Scene, step};
use crate::support::{Done, Run};
use crate::{start_of, when};

/// When the first signal went to the child of a step.
fn first_signal(run: &Run) -> f64 {
    when(run.events_of("subdeck.signal.sent").first().expect("a signal"))
}

/// What a tool that took too long makes of the run: the step failed for that reason, and nothing else says so.
fn assert_tool_timeout(scene: &Scene, run: &Run, done: &Done, tool: &str, ms: u64) {
    let status = run.wait_end();
    let step = &status["steps"][0];
    assert_eq!((&step["status"], &step["exitCode"], &step["timedOut"]), (&"failed".into(), &1.into(), &true.into()));
    let error = step["error"].as_str().unwrap();
    assert!(error.contains(&format!("'{tool}'")) && error.contains(&format!("{ms}ms")), "{error}");
    let said = format!("Step failed: {}", step["agent"].as_str().unwrap());
    assert_eq!((&status["state"], &status["error"]), (&"failed".into(), &said.into()));
    assert_eq!(status.get("timedOut"), None, "the run itself did not run out of time");
    assert!(run.events_of("subagent.run.timed_out").is_empty());
    let result = scene.result(run);
    assert_eq!(result["results"][0]["error"].as_str(), Some(error));
    assert_eq!((&result["state"], result.get("timedOut")), (&"failed".into(), None));
    assert_eq!(done.code, 5, "{done:?}");
    // The reference keeps the tool of a killed child in the status (trap 8); nothing is open in a step that is over.
    for place in [&status, step] {
        assert_eq!((place.get("currentTool"), place.get("currentToolStartedAt")), (None, None));
    }
    scene.world.wait_until_empty();
}

#[test]
fn check_14_a_tool_that_takes_too_long_ends_its_step() {
    let script = "open t1 bash {\"command\":\"sleep 99\"}\nhang";
    let plan = |transport: &str| {
        format!(
            "tool_timeout = \"800ms\"\n[[step]]\nid = \"worker\"\ntask = \"Do it.\"\n\
             runner = {{ type = \"pi\", transport = \"{transport}\" }}\n\
             [[step]]\nid = \"next\"\ntask = \"More.\"\n"
        )
    };
    for kind in ["config", "json", "rpc"] {
        let scene = Scene::new(&[script, "say never"]);
        let path = match kind {
            "config" => scene.config(&[step(json!({})), step(json!({}))], json!({ "toolTimeoutMs": 800 })),
            transport => scene.plan(&plan(transport)),
        };
        let (run, done) = scene.run(&path);
        assert_tool_timeout(&scene, &run, &done, "bash", 800);
        let late = first_signal(&run) - start_of(&run, 0);
        assert!(late >= 800.0, "{kind}: {late}");
        assert_eq!(run.status()["steps"][1]["status"], "pending", "{kind}: what follows does not start");
        assert_eq!((scene.starts(0), scene.starts(1)), (1, 0), "{kind}");
    }
}

/// The limit on the time of a tool call that the binary tells of the first step.
fn told_tool_limit(scene: &Scene, run: &Run) -> Option<u64> {
    let done = scene.world.output(&["budget", &format!("{}:1", run.id()), "--json"]);
    let told: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let limits = told["limits"].as_array().unwrap();
    limits.iter().find(|l| l["key"] == "tool_timeout").map(|l| l["hard"].as_u64().unwrap())
}

/// The clock of a build for tests can be told to go faster, so that five minutes are a second and a half.
#[test]
fn check_15_only_quick_tools_have_a_limit_that_nobody_set() {
    if !cfg!(debug_assertions) {
        println!("skipped: the clock of a release build cannot be told to go faster");
        return;
    }
    let quick = ["read", "grep", "find", "ls", "edit", "write", "structured_output"];
    let others = ["bash", "mcp__web__fetch"];
    let mut scripts: Vec<String> = quick.iter().map(|tool| format!("open A {tool}\nhang")).collect();
    scripts.extend(others.iter().map(|tool| format!("open A {tool}\nwait 2200\nclose A {tool}\nsay fine")));
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let scene = Scene::new(&scripts);
    let members: Vec<Value> = scripts.iter().map(|_| step(json!({}))).collect();
    let config = scene.config(&[json!({ "parallel": members, "concurrency": 9 })], json!({}));
    let mut command = scene.subdeck(&["run", "--detach", &config]);
    let done = Done::of(command.env("SUBDECK_TEST_CLOCK_SPEED", "200").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let run = scene.world.only_run();
    let (status, result) = (run.wait_end(), scene.result(&run));
    assert_eq!(scene.world.output(&["wait", run.id()]).code, 5);
    let at = |kind: &str, index: usize| {
        let of = |e: &Value| e["stepIndex"] == index || e["subagentStepIndex"] == index;
        run.events_of(kind).iter().find(|e| of(e)).map(when)
    };
    // Each of the quick ones is ended after its five minutes, and for that reason.
    for (index, tool) in quick.iter().enumerate() {
        let step = &status["steps"][index];
        let error = format!("Tool '{tool}' timed out after 300000ms.");
        assert_eq!((&step["status"], &step["timedOut"]), (&"failed".into(), &true.into()), "{step}");
        assert_eq!((&step["error"], &result["results"][index]["error"]), (&json!(error), &json!(error)));
        let open = at("subdeck.signal.sent", index).unwrap() - at("tool_execution_start", index).unwrap();
        assert!(open >= 300_000.0, "{tool}: {open}");
    }
    // Any other one is not, though it is open for longer.
    for (index, tool) in others.iter().enumerate().map(|(n, tool)| (quick.len() + n, tool)) {
        let step = &status["steps"][index];
        assert_eq!((&step["status"], step.get("error")), (&"complete".into(), None), "{step}");
        let open = at("tool_execution_end", index).unwrap() - at("tool_execution_start", index).unwrap();
        assert!(open > 300_000.0, "{tool}: {open}");
    }
    // What the binary tells of it.
    let scene = Scene::new(&["open A bash\nuntil one\nclose A -\nopen B read\nuntil two\nclose B -\nsay fine"]);
    let run = scene.detach(&scene.config(&[crate::step(json!({}))], json!({})));
    run.wait("bash", |s| s["currentTool"] == "bash");
    assert_eq!(told_tool_limit(&scene, &run), None);
    scene.touch("one");
    run.wait("read", |s| s["currentTool"] == "read");
    assert_eq!(told_tool_limit(&scene, &run), Some(300_000));
    scene.touch("two");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn check_16_tools_that_wait_for_somebody_are_not_timed() {
    for tool in ["contact_supervisor", "intercom", "subagent_wait"] {
        let scene =
            Scene::new(&[&format!("open t1 {tool} {{\"reason\":\"progress\"}}\nwait 900\nclose t1 {tool}\nsay fine")]);
        let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({ "toolTimeoutMs": 300 })));
        assert_eq!((run.status()["state"].as_str(), done.code), (Some("complete"), 0), "{tool}: {done:?}");
    }
}

#[test]
fn check_17_the_limit_of_the_step_goes_before_the_one_of_the_run() {
    let scene = Scene::new(&["open t1 bash\nhang"]);
    let config = scene.config(&[step(json!({ "toolTimeoutMs": 700 }))], json!({ "toolTimeoutMs": 60000 }));
    let (run, done) = scene.run(&config);
    assert_tool_timeout(&scene, &run, &done, "bash", 700);
}

#[test]
fn check_18_calls_are_known_by_their_ids() {
    let scene = Scene::new(&["open A read\nwait 300\nopen B read\nclose A read\nhang"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({ "toolTimeoutMs": 800 })));
    assert_tool_timeout(&scene, &run, &done, "read", 800);
    // The end of A, whose start is older, left the time of B alone.
    assert!(first_signal(&run) - start_of(&run, 1) >= 800.0);
    assert_eq!(run.events_of("tool_execution_end").len(), 1);
}

#[test]
fn check_19_an_end_by_name_ends_the_oldest_call_without_an_id() {
    let scene = Scene::new(&["open - read\nwait 300\nopen - read\nclose - read\nhang"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({ "toolTimeoutMs": 800 })));
    assert_tool_timeout(&scene, &run, &done, "read", 800);
    assert!(first_signal(&run) - start_of(&run, 1) >= 800.0, "the later start is the one that is left");
}

#[test]
fn check_20_an_end_without_id_and_name_ends_a_call_that_is_alone() {
    let scene = Scene::new(&["open A bash\nclose - -\nwait 1200\nsay fine"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({ "toolTimeoutMs": 800 })));
    assert_eq!((run.status()["state"].as_str(), done.code), (Some("complete"), 0), "{done:?}");
    assert_eq!(run.status()["steps"][0]["recentTools"].as_array().unwrap().len(), 1);

    let scene = Scene::new(&["open A read\nopen B bash\nclose - -\nhang"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({ "toolTimeoutMs": 800 })));
    assert_tool_timeout(&scene, &run, &done, "read", 800);
    // Ours also lists the calls that were lost with the child, in the order in which they began.
    let tools: Vec<_> =
        run.status()["steps"][0]["recentTools"].as_array().unwrap().iter().map(|t| t["tool"].clone()).collect();
    assert_eq!(tools, ["read", "bash"]);
}

#[test]
fn check_21_a_step_that_is_over_sooner_is_over_for_its_own_reason() {
    let scene = Scene::new(&["open A bash\nhang"]);
    let steps = [step(json!({ "timeoutMs": 1000, "toolTimeoutMs": 5000 })), step(json!({}))];
    let (run, done) = scene.run(&scene.config(&steps, json!({})));
    let status = run.wait_end();
    let failed = &status["steps"][0];
    assert_eq!((&failed["status"], &failed["timedOut"]), (&"failed".into(), &true.into()));
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("timed out after 1000ms") && !error.contains("bash"), "{error}");
    assert_eq!(done.code, 5, "{done:?}");
}

#[test]
fn check_22_what_the_tool_did_is_still_the_reason_at_the_end() {
    // The step had said something whole before, which an acceptance would judge.
    let scene = Scene::new(&[concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"half done"}],"stopReason":"toolUse"}}"#,
        "\nopen A write {\"path\":\"a.rs\"}\nhang"
    )]);
    let acceptance = json!({ "level": "attested", "explicit": true, "inferredReason": [], "criteria": [],
        "evidence": [], "verify": [], "stopRules": [] });
    let with = step(json!({ "toolTimeoutMs": 600, "effectiveAcceptance": acceptance, "acceptanceInput": {} }));
    let (run, done) = scene.run(&scene.config(&[with], json!({})));
    assert_tool_timeout(&scene, &run, &done, "write", 600);
    let entry = &scene.result(&run)["results"][0];
    assert_eq!(entry["output"], "half done");
    // The acceptance, which would be rejected for want of a report, is told and takes nothing from the reason.
    for ledger in [&entry["acceptance"], &run.status()["steps"][0]["acceptance"]] {
        assert_eq!((&ledger["status"], &ledger["explicit"]), (&"rejected".into(), &true.into()));
        let check = &ledger["runtimeChecks"][0];
        assert_eq!((&check["id"], &check["status"]), (&"timeout".into(), &"failed".into()));
        assert!(check["message"].as_str().unwrap().contains("600ms"), "{check}");
    }
}

#[test]
fn check_23_nothing_is_timed_once_the_child_is_gone() {
    let scene = Scene::new(&["open A bash\nsay fine\nexit 0", "wait 1000\nsay later"]);
    let steps = [step(json!({ "toolTimeoutMs": 600 })), step(json!({}))];
    let (run, done) = scene.run(&scene.config(&steps, json!({})));
    let status = run.wait_end();
    assert_eq!((&status["state"], done.code), (&"complete".into(), 0), "{done:?}");
    assert!(run.events_of("subdeck.signal.sent").is_empty());
    assert_eq!(status["steps"][0].get("currentTool"), None, "nothing is open in a step that is over (trap 8)");
}

#[test]
fn check_24_the_end_of_a_call_is_only_that() {
    let end = concat!(
        r#"{"type":"tool_execution_end","toolCallId":"A","toolName":"bash","isError":false,"message":{"role":"assistant","#,
        r#""content":[{"type":"text","text":"EXTRA"}],"usage":{"input":7,"output":7},"stopReason":"stop"}}"#
    );
    let scene = Scene::new(&[&format!("open A bash\n{end}\nsay fine")]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], json!({})));
    let status = run.wait_end();
    assert_eq!((&status["state"], done.code), (&"complete".into(), 0), "{done:?}");
    let step = &status["steps"][0];
    assert_eq!((&step["turnCount"], &step["tokens"]["total"]), (&1.into(), &2.into()));
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    assert!(!log.contains("EXTRA") && !step["recentOutput"].to_string().contains("EXTRA"), "{log}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "fine");
}

#[test]
fn check_25_the_call_that_began_last_is_the_current_one() {
    let scene = Scene::new(&[concat!(
        "open A bash {\"command\":\"make\"}\nwait 20\nopen B read {\"path\":\"src/a.rs\"}\nuntil one\n",
        "close B read\nuntil two\nclose A bash\nuntil three\nsay fine"
    )]);
    let run = scene.detach(&scene.config(&[step(json!({}))], json!({})));
    let shows = |status: &Value, tool: &str| status["currentTool"] == tool && status["steps"][0]["currentTool"] == tool;
    let status = run.wait("B", |s| shows(s, "read"));
    assert_eq!((&status["currentPath"], &status["steps"][0]["currentPath"]), (&"src/a.rs".into(), &"src/a.rs".into()));
    scene.touch("one");
    let status = run.wait("A", |s| shows(s, "bash"));
    assert_eq!(status["steps"][0].get("currentPath"), None, "the path of the call that ended is gone");
    assert!(status["steps"][0]["currentToolArgs"].as_str().unwrap().contains("make"));
    scene.touch("two");
    let status = run.wait("no call", |s| s["steps"][0].get("currentTool").is_none());
    for place in [&status, &status["steps"][0]] {
        for key in ["currentTool", "currentToolArgs", "currentToolStartedAt", "currentPath"] {
            assert_eq!(place.get(key), None, "{key}");
        }
    }
    scene.touch("three");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn check_26_calls_that_ended_keep_their_own_arguments() {
    let scene = Scene::new(&[concat!(
        "open A bash {\"command\":\"first\"}\nopen B read {\"path\":\"second\"}\nclose C read\nclose A bash\n",
        "close B read\nclose C read\nsay fine"
    )]);
    let (run, _) = scene.run(&scene.config(&[step(json!({}))], json!({})));
    let tools = run.wait_end()["steps"][0]["recentTools"].clone();
    let listed: Vec<_> = tools.as_array().unwrap().iter().map(|t| (t["tool"].as_str().unwrap(), &t["args"])).collect();
    assert_eq!(
        listed.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(),
        ["bash", "read"],
        "an unknown id adds nothing"
    );
    assert!(listed[0].1.as_str().unwrap().contains("first") && listed[1].1.as_str().unwrap().contains("second"));
}
