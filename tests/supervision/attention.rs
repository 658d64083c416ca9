//! What only tells.

use super::*;

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
