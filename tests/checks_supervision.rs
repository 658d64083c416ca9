//! Supervision, as runner-behaviour 13 lists it: checks 14 to 30 and 48 to 52, each by the real binary with a scripted
//! agent in the place of pi. Times are scaled by the configuration; what is built in is checked in the core, where time is
//! an argument, and here by what the binary says that it is.

#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{Done, Run, wait_for};

/// When a record of the event log was made, in milliseconds since the epoch.
fn when(event: &Value) -> f64 {
    event["ts"].as_f64().or(event["observedAt"].as_f64()).unwrap_or_else(|| panic!("{event}"))
}

/// The start of a call, by the order of all starts.
fn start_of(run: &Run, nth: usize) -> f64 {
    when(&run.events_of("tool_execution_start")[nth])
}

/// When the first signal went to the child of a step.
fn first_signal(run: &Run) -> f64 {
    when(run.events_of("subdeck.signal.sent").first().expect("a signal"))
}

/// The control events with this reason.
fn notices(run: &Run, reason: &str) -> Vec<Value> {
    let all = run.events_of("subagent.control").into_iter();
    all.map(|record| record["event"].clone()).filter(|event| event["reason"] == reason).collect()
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

fn control(more: Value) -> Value {
    let mut config = json!({ "enabled": true, "needsAttentionAfterMs": 60000, "activeNoticeAfterMs": 240000,
        "failedToolAttemptsBeforeAttention": 3, "notifyOn": ["active_long_running", "needs_attention"],
        "notifyChannels": ["event", "async"] });
    let fields = config.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({ "controlConfig": config })
}

#[test]
fn check_27_a_call_that_is_open_for_long_is_told_once() {
    let scene = Scene::new(&[concat!(
        "open A bash {\"command\":\"make\"}\nwait 300\nopen B read {\"path\":\"src/a.rs\"}\nuntil go\n",
        "close B read\nuntil on\nclose A bash\nuntil end\nsay fine"
    )]);
    let run = scene.detach(&scene.config(&[step(json!({}))], control(json!({ "activeNoticeAfterMs": 1000 }))));
    let told = wait_for("a notice", || Some(notices(&run, "tool_open_threshold")).filter(|n| !n.is_empty()));
    let event = &told[0];
    assert_eq!((&event["type"], &event["to"]), (&"needs_attention".into(), &"needs_attention".into()));
    assert_eq!(
        (&event["currentTool"], &event["index"], &event["agent"]),
        (&"bash".into(), &0.into(), &"worker".into())
    );
    assert!(event["currentToolDurationMs"].as_f64().unwrap() >= 1000.0, "{event}");
    let raised =
        |s: &Value| s["steps"][0]["activityState"] == "needs_attention" && s["activityState"] == "needs_attention";
    run.wait("the state", raised);
    // B is open for long too by now, and once is enough while A is.
    let b = start_of(&run, 1);
    wait_for("the time of B", || (support_now() > b + 1100.0).then_some(()));
    scene.touch("go");
    run.wait("the end of B", |s| s["steps"][0]["recentTools"].as_array().is_some_and(|t| t.len() == 1));
    assert!(raised(&run.status()), "A is still open");
    scene.touch("on");
    // The reference keeps the state for ever (trap 8); here it goes with its cause.
    run.wait("an end of the state", |s| s["steps"][0]["activityState"] != "needs_attention");
    scene.touch("end");
    let status = run.wait_end();
    assert_eq!((&status["state"], status["steps"][0].get("activityState")), (&"complete".into(), None));
    assert_eq!(notices(&run, "tool_open_threshold").len(), 1);
}

fn support_now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

#[test]
fn check_28_tools_that_wait_for_somebody_may_be_open_for_long() {
    let scene = Scene::new(&["open A contact_supervisor {\"reason\":\"progress\"}\nwait 1500\nclose A -\nsay fine"]);
    let (run, done) = scene.run(&scene.config(&[step(json!({}))], control(json!({ "activeNoticeAfterMs": 500 }))));
    assert_eq!(done.code, 0, "{done:?}");
    let told: Vec<_> = run.events_of("subagent.control").iter().map(|e| e["event"]["to"].clone()).collect();
    // That the step runs for long is told; that somebody is needed is not.
    assert_eq!(told, ["active_long_running"]);
}

#[test]
fn check_29_attention_for_a_question_lasts_until_the_last_one_is_answered() {
    for (before, more) in [
        (None, json!({})),
        // What was told before comes back when the last question is answered.
        (Some("active_long_running"), json!({ "activeNoticeAfterMs": 300 })),
    ] {
        questions(before, more);
    }
}

fn questions(before: Option<&str>, more: Value) {
    let scene = Scene::new(&[concat!(
        "open 0 read\nclose 0 read\nuntil zero\n",
        "open A contact_supervisor {\"reason\":\"need_decision\",\"message\":\"which?\"}\n",
        "open B contact_supervisor {\"reason\":\"interview_request\"}\nuntil one\n",
        "close A contact_supervisor\nuntil two\nclose B contact_supervisor\nuntil three\nsay fine"
    )]);
    let run = scene.detach(&scene.config(&[step(json!({}))], control(more)));
    let is = |s: &Value, word: Option<&str>| {
        [&s["steps"][0], s].iter().all(|place| place.get("activityState").and_then(Value::as_str) == word)
    };
    let raised = |s: &Value| is(s, Some("needs_attention"));
    run.wait("the state before", |s| s["steps"][0]["toolCount"] == 1 && is(s, before));
    scene.touch("zero");
    run.wait("attention", raised);
    assert!(!notices(&run, "supervisor_request").is_empty());
    scene.touch("one");
    run.wait("the end of A", |s| s["steps"][0]["recentTools"].as_array().is_some_and(|t| t.len() == 2));
    assert!(raised(&run.status()), "B waits still");
    scene.touch("two");
    run.wait("the state before", |s| is(s, before));
    scene.touch("three");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn check_30_a_notice_says_where_it_belongs_and_nothing_of_the_task() {
    let scene = Scene::new(&["open A bash\nwait 1200\nclose A -\nsay fine"]);
    let steps = [step(json!({ "phase": "Build", "label": "the parser", "task": "SECRET-7731 do it" }))];
    let mut more = control(json!({ "activeNoticeAfterMs": 600 }));
    more["workflowKey"] = "wf-key".into();
    let (run, done) = scene.run(&scene.config(&steps, more));
    assert_eq!(done.code, 0, "{done:?}");
    let event = notices(&run, "tool_open_threshold").remove(0);
    assert_eq!(
        (&event["phase"], &event["label"], &event["workflowKey"], &event["taskPreview"]),
        (&"Build".into(), &"the parser".into(), &"wf-key".into(), &"[prompt redacted]".into())
    );
    for name in ["events.jsonl", "status.json", "output-0.log", &format!("subagent-log-{}.md", run.id())] {
        let text = std::fs::read_to_string(run.dir.join(name)).unwrap();
        assert!(!text.contains("SECRET-7731"), "{name}");
    }
}

#[test]
fn check_48_a_conflict_of_extensions_says_what_to_do() {
    let conflict = "err Failed to load extension \"/x/a.ts\": Tool \"web\" conflicts with /y/b.ts\nexit 1";
    // Extensions are found by themselves unless the step lists the ones that it wants, if only none.
    let error = |more: Value| {
        let scene = Scene::new(&[conflict]);
        let (run, done) = scene.run(&scene.config(&[step(more)], json!({})));
        assert_eq!(done.code, 1, "{done:?}");
        run.wait_end()["steps"][0]["error"].as_str().unwrap().to_owned()
    };
    let told = error(json!({}));
    assert!(told.contains("Tool \"web\" conflicts with"), "{told}");
    assert!(told.contains(".pi/settings.json") && told.contains("worker"), "{told}");
    let bare = error(json!({ "extensions": [] }));
    assert!(bare.contains("Tool \"web\" conflicts with") && !bare.contains(".pi/settings.json"), "{bare}");
}

#[test]
fn check_49_a_run_is_nested_only_when_it_says_where() {
    let scene = Scene::new(&["say fine"]);
    let (run, _) = scene.run(&scene.config(&[step(json!({}))], json!({})));
    assert_eq!(run.wait_end().get("isNested"), None);
    // A route for runs below this one makes it no nested one; a place below another one does.
    for (place, nested) in [(Value::Null, None), (json!({ "parentRunId": "parent", "depth": 1 }), Some(true))] {
        let scene = Scene::new(&["say fine"]);
        let route = scene.route("top");
        let config = scene.config(&[step(json!({}))], json!({ "nestedRoute": route, "nestedSelf": place }));
        let (run, done) = scene.run(&config);
        assert_eq!((run.wait_end().get("isNested").map(|v| v == true), done.code), (nested, 0), "{done:?}");
    }
}

#[test]
fn check_50_what_happens_in_a_group_is_in_the_status_at_once() {
    let scene = Scene::new(&["say never", "until go\nsay fine", "say never", "until go\nsay fine"]);
    let gone = scene.world.project().join("gone");
    std::fs::create_dir(&gone).unwrap();
    // The folder is there when the config is checked, and not any more when the member is to start.
    let first = step(json!({ "runner": { "type": "external-cli", "command": "rmdir", "args": [&gone] } }));
    let bad = step(json!({ "cwd": &gone, "label": "bad" }));
    let group = json!({ "parallel": [step(json!({})), bad, step(json!({}))], "concurrency": 4 });
    let node = |id: &str, flat: Option<u64>, children: Vec<Value>| {
        let mut node = json!({ "id": id, "kind": "step", "label": id, "status": "pending" });
        let fields = node.as_object_mut().unwrap();
        flat.map(|flat| fields.insert("flatIndex".to_owned(), flat.into()));
        if !children.is_empty() {
            fields.insert("children".to_owned(), children.into());
        }
        node
    };
    let members = (1..4).map(|flat| node(&format!("step-1-agent-{}", flat - 1), Some(flat), vec![])).collect();
    let graph = json!({ "runId": "r", "mode": "chain", "phases": [{ "title": "Build", "nodeIds": ["step-1"] }],
        "nodes": [node("step-0", Some(0), vec![]), node("step-1", None, members)] });
    let run = scene.detach(&scene.config(&[first, group], json!({ "workflowGraph": graph })));
    let status = run.wait("the group", |s| {
        let of = |index: usize| s["steps"][index]["status"].as_str().unwrap().to_owned();
        of(1) == "running" && of(2) == "failed" && of(3) == "running"
    });
    assert!(status["steps"][2]["error"].as_str().unwrap().contains("gone"), "{status}");
    // The graph of that very status says the same.
    let drawn = |status: &Value| {
        let group = &status["workflowGraph"]["nodes"][1];
        let members = group["children"].as_array().unwrap().iter().map(|n| n["status"].as_str().unwrap().to_owned());
        (status["workflowGraph"]["nodes"][0]["status"].clone(), group["status"].clone(), members.collect::<Vec<_>>())
    };
    let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
    let under_way = ("completed".into(), "running".into(), words(["running", "failed", "running"]));
    assert_eq!(drawn(&status), under_way, "{}", status["workflowGraph"]);
    assert!(status["workflowGraph"]["nodes"][1]["children"][1]["error"].as_str().unwrap().contains("gone"));
    let current = status["workflowGraph"]["currentNodeId"].as_str().unwrap();
    assert!(current.starts_with("step-1-agent-"), "{current}");
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!(status["state"], "failed");
    let ended = ("completed".into(), "failed".into(), words(["completed", "failed", "completed"]));
    assert_eq!(drawn(&status), ended);
    let result = scene.result(&run);
    assert_eq!(drawn(&result), ended);
    assert_eq!(result["workflowGraph"]["phases"], graph["phases"]);
    assert_eq!(run.events_of("subagent.parallel.completed")[0]["success"], false);
}

#[test]
fn check_51_there_are_no_checkpoints() {
    let scene = Scene::new(&["until go\nsay fine"]);
    let run = scene.detach(&scene.config(&[step(json!({}))], json!({})));
    run.wait("the child", |s| s["steps"][0]["status"] == "running");
    for name in ["approve.json", "reject.json", "approve-0.json", "reject-0.json"] {
        run.control(name, r#"{"stepIndex":0}"#);
    }
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"complete".into(), &"complete".into()));

    let scene = Scene::new(&["say never", "say never"]);
    let config = scene.config(&[step(json!({})), json!({ "checkpoint": { "message": "go on?" } })], json!({}));
    let done = Done::of(scene.subdeck(&["run", "--no-tui", &config]).output().unwrap());
    assert_eq!((done.code, scene.starts(0)), (2, 0), "{done:?}");
}

/// One row of the table of ends: what the children do, what is asked for once the last of them is up, and what comes of it.
struct End {
    scripts: &'static [&'static str],
    more: Value,
    asked: &'static [&'static str],
    state: &'static str,
    error: Option<&'static str>,
    code: i32,
}

#[test]
fn check_52_the_strongest_reason_is_the_state_of_the_run() {
    const UP: &str = "touch up\nhang";
    const BIG: &str = "say_at 600 500 0 big";
    let none = || json!({});
    let used_up = || json!({ "usageBudget": { "tokens": { "hard": 1000 } } });
    let turns = json!({ "turnBudget": { "maxTurns": 1, "graceTurns": 0 } });
    let end = |scripts, more, asked, state, error, code| End { scripts, more, asked, state, error, code };
    let stopped = Some("Subagent stopped by user.");
    let over = Some("The run is over budget: 1,100+ tokens used, 1,000 tokens allowed.");
    let table = [
        end(&["say fine"], none(), &[], "complete", None, 0),
        end(&["exit 3"], none(), &[], "failed", Some("Step failed: worker"), 1),
        end(&["kill KILL"], none(), &[], "failed", Some("Step failed: worker"), 1),
        end(
            &["turn 1 1 0\nopen A bash\nclose A bash\nhang"],
            turns,
            &[],
            "failed",
            Some("Subagent exceeded turn budget"),
            6,
        ),
        end(&[UP], none(), &["interrupt"], "paused", None, 4),
        end(&[UP], none(), &["timeout"], "failed", Some("Subagent timed out."), 5),
        // Whatever is looked at first.
        end(&[UP], none(), &["interrupt", "stop"], "stopped", stopped, 3),
        end(&[UP], none(), &["timeout", "interrupt"], "failed", Some("Subagent timed out."), 5),
        end(&[UP], none(), &["interrupt", "timeout", "stop"], "stopped", stopped, 3),
        // A member failed, or was refused because the run has used what it may, before somebody asked.
        end(&["exit 3", UP], none(), &["interrupt"], "paused", None, 1),
        end(&["exit 3", UP], none(), &["stop"], "stopped", stopped, 3),
        end(&[BIG, UP, "say never"], used_up(), &["interrupt"], "failed", over, 6),
        end(&[BIG, UP, "say never"], used_up(), &["timeout"], "failed", None, 5),
        end(&[BIG, UP, "say never"], used_up(), &["stop"], "stopped", None, 3),
    ];
    for row in table {
        let about = format!("{:?} {:?}", row.scripts, row.asked);
        let scene = Scene::new(row.scripts);
        let members: Vec<Value> = row.scripts.iter().map(|_| step(json!({}))).collect();
        let steps = if members.len() > 1 { vec![json!({ "parallel": members, "concurrency": 2 })] } else { members };
        let run = scene.detach(&scene.config(&steps, row.more));
        if !row.asked.is_empty() {
            wait_for("the last child", || scene.scripts().join("up").exists().then_some(()));
            run.wait("what comes before", |s| {
                let of = |n: usize| s["steps"][n]["status"].as_str();
                row.scripts.len() < 2 || (of(0) != Some("running") && of(2).is_none_or(|third| third == "failed"))
            });
            row.asked.iter().for_each(|kind| run.control(&format!("{kind}.json"), "{}"));
        }
        let (status, result) = (run.wait_end(), scene.result(&run));
        assert_eq!((&status["state"], &result["state"]), (&row.state.into(), &row.state.into()), "{about}: {status}");
        let good = row.state == "complete";
        let exit_code = i32::from(!good && row.state != "paused");
        assert_eq!((&result["success"], &result["exitCode"]), (&good.into(), &exit_code.into()), "{about}");
        let error = status["error"].as_str();
        match row.error {
            Some(words) => assert!(error.is_some_and(|e| e.starts_with(words)), "{about}: {error:?}"),
            None if row.state == "complete" || row.state == "paused" => assert_eq!(error, None, "{about}"),
            None => assert!(error.is_some(), "{about}"),
        }
        // The reason is the summary; without one, what the steps said.
        let summary = result["summary"].as_str().unwrap();
        match (row.state, row.code) {
            ("paused", _) => assert!(summary.starts_with("Paused by an interrupt"), "{about}: {summary}"),
            (_, 3 | 5 | 6) => assert_eq!(Some(summary), error, "{about}"),
            _ => assert!(summary.starts_with("worker:\n"), "{about}: {summary}"),
        }
        assert_eq!(run.events_of("subagent.run.completed")[0]["status"], row.state, "{about}");
        assert_eq!(scene.world.output(&["wait", run.id()]).code, row.code, "{about}");
        if row.scripts == ["kill KILL"] {
            assert!(status["steps"][0]["error"].as_str().unwrap().contains("SIGKILL"), "{status}");
        }
        scene.world.wait_until_empty();
    }
}
