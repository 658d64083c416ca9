//! What is tried again, and what is not.

use super::*;

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
    assert!(log.contains("── attempt 2, after: [fallback] a/one failed"), "{log}");
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
