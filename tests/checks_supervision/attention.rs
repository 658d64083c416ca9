//! Checks 27 to 30: what a person is told of calls that are open for long and of questions, how often, and for how long.

use serde_json::{Value, json};

use crate::scripted::{Scene, step};
use crate::start_of;
use crate::support::{Run, wait_for};

/// The control events with this reason.
fn notices(run: &Run, reason: &str) -> Vec<Value> {
    let all = run.events_of("subagent.control").into_iter();
    all.map(|record| record["event"].clone()).filter(|event| event["reason"] == reason).collect()
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
