//! Questions that come by the channel of pi's extensions to a supervisor: a file for each, and a file for its reply.

use serde_json::{Value, json};

use crate::support::{World, wait_for};
use crate::{answer, answers, open, start, wait_open};

/// A request to the supervisor in the agent's folder `channel`.
fn supervisor(world: &World, id: &str, more: Value) {
    let mut request = json!({
        "type": "subagent.supervisor.request", "id": id, "createdAt": 1, "reason": "need_decision",
        "message": "Which shard?", "expectsReply": true, "runId": "r", "agent": "a", "childIndex": 0,
    });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.file(&format!("channel/{id}.json"), &request.to_string());
}

#[test]
fn a_question_to_the_supervisor_is_answered_with_a_text() {
    let world = World::new();
    supervisor(&world, "s-1", json!({}));
    supervisor(&world, "s-2", json!({"message": "And then?", "toolCallId": "c-s-2.json"}));
    let run = start(&world, "pi", &[], "", "");
    let asked = wait_open(&run, 2);
    let named = |text: &str| {
        let found = asked.iter().find(|q| q["text"] == text).unwrap_or_else(|| panic!("{asked:?}"));
        assert_eq!((&found["kind"], &found["byFile"]), (&"text".into(), &true.into()));
        found["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (named("Which shard?"), named("And then?"));
    // One notice for each, none beside them for the tool that waits.
    run.wait("both notices", |s| {
        let all = s["steps"][0]["subdeck"]["attention"].as_array().cloned().unwrap_or_default();
        all.len() == 2 && all.iter().all(|notice| notice["reason"] == "question")
    });
    assert_eq!(answer(&world, &run, &["the left one", "--question", &first]).code, 0);
    assert_eq!(answer(&world, &run, &["--dismiss", "--question", &second]).code, 0);
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    let reply = |id: &str| -> Value {
        serde_json::from_slice(&std::fs::read(world.project().join(format!("reply.{id}.json"))).unwrap()).unwrap()
    };
    let left = reply("s-1");
    assert_eq!((&left["type"], &left["requestId"]), (&"subagent.supervisor.reply".into(), &"s-1".into()));
    assert_eq!(left["message"], "the left one");
    assert!(reply("s-2")["message"].as_str().unwrap().contains("does not answer"));
    world.wait_until_empty();
}

#[test]
fn what_is_no_question_to_the_supervisor_is_set_aside_or_only_told() {
    let world = World::new();
    supervisor(&world, "told", json!({"reason": "progress_update", "message": "half of it"}));
    supervisor(&world, "odd", json!({"reason": "boredom"}));
    supervisor(&world, "far", json!({"childIndex": 7}));
    let run = start(&world, "pi", &[], "", "");
    wait_for("two refusals", || (run.events_of("subdeck.control.rejected").len() == 2).then_some(()));
    let reasons: Vec<String> =
        run.events_of("subdeck.control.rejected").iter().map(|e| e["reason"].as_str().unwrap().to_owned()).collect();
    assert!(
        reasons.iter().any(|r| r.contains("boredom")) && reasons.iter().any(|r| r.contains("step 8")),
        "{reasons:?}"
    );
    assert!(run.dir.join("control/rejected/odd.json").exists());
    let log = || std::fs::read_to_string(run.dir.join("output-0.log")).unwrap_or_default();
    wait_for("the word to the supervisor", || log().contains("tells its supervisor: half of it").then_some(()));
    assert!(open(&run.status()).is_empty());
    world.file("giveup", "");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn a_question_to_the_supervisor_goes_with_its_call() {
    let world = World::new();
    supervisor(&world, "s-1", json!({}));
    let run = start(&world, "pi", &[], "", "");
    wait_open(&run, 1);
    world.file("giveup", "");
    assert_eq!(run.wait_end()["state"], "complete");
    assert_eq!(answers(&run)[0]["by"], "gone");
}
