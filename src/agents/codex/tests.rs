//! What no recording shows: agents that fail, lie, stop in the middle, or say too much, and a client that is asked for
//! more at the wrong moment.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CodexTalk, ExecAdapter, ServerAdapter, Session, approval};
use crate::agents::framing::LINE_LIMIT;
use crate::agents::look::Look;
use crate::agents::told::{self, Seen};
use crate::agents::work::OUTPUT;
use crate::agents::{Adapter, Receipt, Talk};
use crate::run::{
    AgentEvent, Answer, Evidence, ExitInfo, Permission, QuestionKind, Report, SteerMode, SteerRequest, Steerable,
    StepPhase, TargetState, ToolOutcome, judge,
};

fn play(adapter: &mut dyn Adapter, lines: &[String]) -> (Seen, Report) {
    told::play(adapter, &lines.join("\n"))
}

fn exec(lines: &[Value]) -> (Seen, Report) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    play(&mut ExecAdapter::new(false), &lines)
}

/// The lines of a server whose session is there and whose turn runs, and then these.
fn server(lines: &[Value]) -> (Seen, Report) {
    let begin = [
        json!({"id": "thread", "result": {"thread": {"id": "main"}, "model": "m"}}),
        json!({"method": "turn/started", "params": {"threadId": "main", "turn": {"id": "t1"}}}),
    ];
    let lines: Vec<String> = begin.iter().chain(lines).map(Value::to_string).collect();
    play(&mut ServerAdapter::new(Arc::default()), &lines)
}

fn item(over: bool, item: Value) -> Value {
    let method = if over { "item/completed" } else { "item/started" };
    json!({"method": method, "params": {"threadId": "main", "item": item}})
}

fn shell(over: bool, id: &str, more: Value) -> Value {
    let mut call = json!({"type": "commandExecution", "id": id, "command": "ls", "status": "inProgress"});
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item(over, call)
}

fn says(text: &str) -> Value {
    item(true, json!({"type": "agentMessage", "id": "m", "text": text}))
}

fn over(status: &str, error: Value) -> Value {
    let turn = json!({"id": "t1", "status": status, "error": error});
    json!({"method": "turn/completed", "params": {"threadId": "main", "turn": turn}})
}

fn end(report: &Report) -> (StepPhase, Option<String>) {
    let exit = ExitInfo { code: Some(0), signal: None };
    let judged = judge(&Evidence { report, exit, spawn_error: None, ending: None, stderr_tail: "" });
    (judged.outcome.phase, judged.outcome.error)
}

fn ends(seen: &Seen) -> Vec<ToolOutcome> {
    let outcome = |event: &AgentEvent| match event {
        AgentEvent::ToolEnded { outcome, .. } => Some(*outcome),
        _ => None,
    };
    seen.events.iter().filter_map(outcome).collect()
}

#[test]
fn every_end_of_a_turn_has_its_end() {
    let failed = |error: &str| (StepPhase::Failed, Some(error.to_owned()));
    let error = |message: &str, details: Value| json!({"message": message, "additionalDetails": details});
    for (status, given, expected) in [
        ("completed", Value::Null, (StepPhase::Complete, None)),
        ("interrupted", Value::Null, failed("the agent was told to break off")),
        ("failed", error("no quota", Value::Null), failed("no quota")),
        ("failed", error("no quota", json!("until noon")), failed("no quota: until noon")),
        ("failed", Value::Null, failed("the agent failed")),
        ("bored", Value::Null, failed("the agent stopped for a reason that is not known: bored")),
    ] {
        let (seen, report) = server(&[says("Hello."), over(status, given)]);
        assert_eq!(end(&report), expected, "{status}");
        let settled = seen.events.iter().filter(|event| matches!(event, AgentEvent::Settled { .. })).count();
        assert_eq!(settled, 1, "{status}");
    }
    let (_, report) = server(&[says("Hello.")]);
    assert_eq!(end(&report), failed("the agent ended without saying that it was done"));
    assert_eq!(report.final_text.as_deref(), Some("Hello."));
}

#[test]
fn an_error_alone_ends_nothing() {
    let retry = json!({"method": "error", "params": {"threadId": "main", "willRetry": true,
        "error": {"message": "Reconnecting... 1/5", "additionalDetails": "503"}}});
    let last =
        json!({"method": "error", "params": {"threadId": "main", "willRetry": false, "error": {"message": "x"}}});
    let (seen, report) = server(&[says("Half an ans"), retry, last, says("Fine."), over("completed", Value::Null)]);
    assert_eq!(end(&report), (StepPhase::Complete, None));
    assert_eq!(report.final_text.as_deref(), Some("Fine."));
    let retries: Vec<&AgentEvent> = seen
        .events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Retry { .. } | AgentEvent::RetryEnded { .. }))
        .collect();
    let expected = AgentEvent::Retry { attempt: Some(1), max: Some(5), delay_ms: None, reason: "503".to_owned() };
    assert_eq!(retries, [&expected, &AgentEvent::RetryEnded { success: true }]);
    let error = json!({"type": "item.completed", "item": {"type": "error", "message": "be careful"}});
    let say = json!({"type": "item.completed", "item": {"type": "agent_message", "text": "Fine."}});
    let (seen, report) =
        exec(&[error, say, json!({"type": "error", "message": "y"}), json!({"type": "turn.completed"})]);
    assert_eq!(end(&report), (StepPhase::Complete, None));
    assert!(seen.log.starts_with("note: be careful\n"), "{}", seen.log);
}

#[test]
fn open_calls_end_with_the_turn() {
    for (status, expected) in [("completed", ToolOutcome::Lost), ("interrupted", ToolOutcome::Cancelled)] {
        let (seen, _) = server(&[shell(false, "a", json!({})), over(status, Value::Null)]);
        assert_eq!(ends(&seen), [expected], "{status}");
    }
}

#[test]
fn a_failed_tool_at_the_end_is_not_hidden() {
    let failed = shell(true, "a", json!({"status": "failed", "exitCode": 3, "aggregatedOutput": "no such file\n"}));
    let (_, report) = server(&[failed.clone(), over("completed", Value::Null)]);
    assert_eq!(report.hidden_error, Some(("shell failed (exit 3): no such file".to_owned(), 3)));
    let (_, report) = server(&[failed, says("Never mind."), over("completed", Value::Null)]);
    assert_eq!(end(&report), (StepPhase::Complete, None));
}

#[test]
fn what_a_call_prints_is_shown_once() {
    let print = |text: &str| {
        json!({"method": "item/commandExecution/outputDelta",
            "params": {"threadId": "main", "itemId": "a", "delta": text}})
    };
    let lines = [
        shell(false, "a", json!({})),
        print("one\ntw"),
        print("o\n"),
        shell(true, "a", json!({"status": "completed", "exitCode": 0, "aggregatedOutput": "one\ntwo\nthree\n"})),
    ];
    assert_eq!(server(&lines).0.log, "shell: ls\none\ntwo\nthree\n");
}

#[test]
fn what_it_thinks_stands_in_the_record_of_its_message() {
    let think = |kind: &str, text: &str| {
        let method = format!("item/reasoning/{kind}");
        json!({"method": method, "params": {"threadId": "main", "itemId": "r", "delta": text}})
    };
    let thinks = |over, summary: &[&str], content: &[&str]| {
        item(over, json!({"type": "reasoning", "id": "r", "summary": summary, "content": content}))
    };
    let thought = |lines: &[Value]| -> Vec<Value> {
        let records = server(lines).0.records.into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let ends = records.filter(|record| record["type"] == "message_end");
        ends.map(|record| record["message"]["content"][0]["thinking"].clone()).collect()
    };
    let done = over("completed", Value::Null);
    // Pieces are repeated by the whole, of which the summary is what is shown.
    let whole = [
        thinks(false, &[], &[]),
        think("summaryTextDelta", "Fir"),
        think("summaryTextDelta", "st."),
        thinks(true, &["First.", "Second."], &["raw"]),
        thinks(true, &[], &["Raw."]),
        says("So."),
        done.clone(),
    ];
    assert_eq!(thought(&whole), ["First.\nSecond.\nRaw."]);
    // Of one that is broken off there are only the pieces.
    let broken = [think("textDelta", "Hm"), think("textDelta", "m."), over("interrupted", Value::Null)];
    assert_eq!(thought(&broken), ["Hmm."]);
    // Thoughts before a call are told with it, and not again.
    let call = [thinks(true, &["Look."], &[]), shell(false, "a", json!({})), says("Done."), done];
    assert_eq!(thought(&call), [json!("Look."), Value::Null]);
}

#[test]
fn all_that_a_call_printed_is_in_the_record_and_of_too_much_it_is_told_what_is_missing() {
    let printed = |bytes: usize| {
        json!({"method": "item/commandExecution/outputDelta",
            "params": {"threadId": "main", "turnId": "t", "itemId": "c", "delta": "x".repeat(bytes)}})
    };
    let begun = json!({"type": "commandExecution", "id": "c", "command": "make", "status": "inProgress"});
    let ended = |output: Value| {
        json!({"type": "commandExecution", "id": "c", "command": "make", "status": "completed", "exitCode": 0,
            "aggregatedOutput": output})
    };
    let gave = |lines: &[Value]| {
        let (seen, _) = server(lines);
        let mut records = seen.records.iter().rev().map(|record| serde_json::from_str::<Value>(record).unwrap());
        let end = records.find(|record| record["type"] == "tool_execution_end").unwrap();
        end["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let lines = "line\n".repeat(3000);
    assert_eq!(gave(&[item(false, begun.clone()), item(true, ended(lines.as_str().into()))]), lines);
    let long = gave(&[item(false, begun.clone()), item(true, ended("y".repeat(OUTPUT + 9).into()))]);
    assert!(long.starts_with("… 9 bytes before this\nyy"), "{}", &long[..40]);
    let end = gave(&[item(false, begun), printed(OUTPUT), printed(OUTPUT), printed(1), item(true, ended(Value::Null))]);
    assert!(end.starts_with(&format!("… {} bytes before this\nxx", OUTPUT + 1)), "{}", &end[..60]);
}

#[test]
fn who_cannot_begin_says_why() {
    let refused = |id: &str| json!({"id": id, "error": {"code": -32600, "message": "not today"}});
    for (line, expected) in [
        (refused("initialize"), "(initialize): not today"),
        (refused("thread"), "(thread/start): not today"),
        (json!({"id": "thread", "result": {}}), "(thread/start): it names no session"),
        (refused("turn:1"), "(turn/start): not today"),
    ] {
        let (seen, report) = play(&mut ServerAdapter::new(Arc::default()), &[line.to_string()]);
        assert_eq!(end(&report), (StepPhase::Failed, Some(format!("the agent refused to begin {expected}"))), "{line}");
        assert!(seen.log.starts_with("the agent refused to begin: "), "{}", seen.log);
    }
    let (_, report) = server(&[refused("turn:2"), says("Fine."), over("completed", Value::Null)]);
    assert_eq!(end(&report), (StepPhase::Complete, None), "a message that is refused ends nothing");
}

#[test]
fn a_person_is_told_what_it_asks_for() {
    let ask = |method: &str, params: Value| json!({"id": 0, "method": method, "params": params});
    let command =
        ask("item/commandExecution/requestApproval", json!({"command": "/bin/sh -c 'rm x'", "reason": "net"}));
    let change = json!({"type": "fileChange", "id": "c", "changes": [{"path": "/p"}], "status": "inProgress"});
    let files = ask("item/fileChange/requestApproval", json!({"itemId": "c", "threadId": "main"}));
    let options = json!([{"label": "Red", "description": "warm"}]);
    let person = ask(
        "item/tool/requestUserInput",
        json!({"questions": [
            {"id": "q", "question": "Which one?", "options": options, "isOther": false}, {"id": "r", "question": "Why?"},
        ]}),
    );
    let quiet = ask("attestation/generate", json!({}));
    let (seen, _) = server(&[command, item(false, change), files, person, quiet]);
    let asked = |event: &AgentEvent| match event {
        AgentEvent::Asked(asking) => Some((asking.id.clone(), asking.kind, asking.text.clone(), asking.choices.len())),
        _ => None,
    };
    let questions: Vec<_> = seen.events.iter().filter_map(asked).collect();
    let expected = [
        ("0", QuestionKind::Permission, "May it run rm x (net)?", 3),
        ("0", QuestionKind::Permission, "May it change /p?", 3),
        ("0#0", QuestionKind::Choice, "Which one?", 1),
        ("0#1", QuestionKind::Text, "Why?", 0),
    ];
    let expected = expected.map(|(id, kind, text, choices)| (id.to_owned(), kind, text.to_owned(), choices));
    assert_eq!(questions, expected);
    let calls = seen.events.iter().filter(|event| matches!(event, AgentEvent::Called { id, .. } if id == "0"));
    assert_eq!(calls.count(), 1, "only what asks nobody is answered at once");
}

#[test]
fn lines_outside_the_protocol_and_kinds_that_are_not_known_end_nothing() {
    let mut lines = vec!["\u{1b}[31mwarning\u{1b}[0m".to_owned()];
    let odd = [
        json!({"method": "fireworks", "params": {}}),
        item(true, json!({"type": "hologram", "id": "h"})),
        item(true, json!(7)),
        json!({"method": "turn/completed", "params": {"threadId": "other", "turn": {"status": "failed"}}}),
        json!({"method": "warning", "params": {"message": "be careful"}}),
        json!({"id": 99, "result": {}}),
    ];
    lines.push(json!({"id": "thread", "result": {"thread": {"id": "main"}}}).to_string());
    lines.extend(odd.iter().chain(&[says("Fine.")]).map(Value::to_string));
    let (seen, report) = play(&mut ServerAdapter::new(Arc::default()), &lines);
    let count = |wanted: fn(&AgentEvent) -> bool| seen.events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, AgentEvent::Unparsed { .. })), 1);
    assert_eq!(count(|event| matches!(event, AgentEvent::Unknown { .. })), 4);
    assert_eq!(report.raw_tail, "\u{1b}[31mwarning\u{1b}[0m\n");
    assert_eq!(report.final_text.as_deref(), Some("Fine."));
    assert!(seen.log.contains("note: be careful\n"), "{}", seen.log);
}

#[test]
fn a_call_with_a_huge_output_ends_all_the_same() {
    let text = "x".repeat(LINE_LIMIT + 1);
    // The order of the recorded ones: what it is stands in front, whose it is at the end.
    let head = r#"{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"a","command":"ls","status":"completed","aggregatedOutput":""#;
    let lines = [
        json!({"id": "thread", "result": {"thread": {"id": "main"}}}).to_string(),
        shell(false, "a", json!({})).to_string(),
        format!("{head}{text}\"}},\"threadId\":\"main\"}}}}"),
        says("Done.").to_string(),
        over("completed", Value::Null).to_string(),
    ];
    let (seen, report) = play(&mut ServerAdapter::new(Arc::default()), &lines);
    assert_eq!(ends(&seen), [ToolOutcome::Ok]);
    assert!(seen.log.contains("[a message of 16"), "{}", seen.log);
    assert_eq!(end(&report), (StepPhase::Complete, None));
    let head =
        r#"{"type":"item.completed","item":{"id":"a","type":"command_execution","command":"ls","aggregated_output":""#;
    let start = json!({"type": "item.started", "item": {"id": "a", "type": "command_execution", "command": "ls"}});
    let line = format!("{head}{text}\",\"exit_code\":3,\"status\":\"failed\"}}}}");
    let (seen, _) = play(&mut ExecAdapter::new(false), &[start.to_string(), line]);
    assert_eq!(ends(&seen), [ToolOutcome::Error]);
}

fn parse(bytes: Option<Vec<u8>>) -> Vec<Value> {
    let bytes = bytes.unwrap_or_default();
    bytes.split_inclusive(|b| *b == b'\n').map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn methods(bytes: Option<Vec<u8>>) -> Vec<String> {
    parse(bytes).iter().map(|message| message["method"].as_str().unwrap_or("answer").to_owned()).collect()
}

fn response(id: &str, error: Option<&str>) -> AgentEvent {
    let (id, command) = (Some(id.to_owned()), "x".to_owned());
    AgentEvent::Response { id, command, success: error.is_none(), error: error.map(str::to_owned) }
}

fn taken(id: &str) -> AgentEvent {
    AgentEvent::Response {
        id: Some(id.to_owned()),
        command: super::session::TAKEN.to_owned(),
        success: true,
        error: None,
    }
}

fn runs(turn: &str) -> AgentEvent {
    AgentEvent::Called { id: turn.to_owned(), method: "turn/started".to_owned() }
}

const OVER: AgentEvent = AgentEvent::Settled { aborted: false };

/// A talk whose task was handed over and whose turn has not begun.
fn begun(permission: Permission) -> CodexTalk {
    let session = Session { cwd: "/work".to_owned(), permission, ..Session::default() };
    let mut talk = CodexTalk::new(Arc::new(session));
    talk.prompt("t");
    assert_eq!(methods(talk.answer(&response("initialize", None))), ["initialized", "thread/start"]);
    let started = AgentEvent::SessionStarted { session_id: Some("s".to_owned()), model: None };
    let turn = parse(talk.answer(&started));
    assert_eq!((&turn[0]["id"], &turn[0]["params"]["threadId"]), (&json!("turn:1"), &json!("s")));
    talk
}

fn moved(talk: &mut CodexTalk) -> Vec<(String, TargetState)> {
    let pair = |receipt: Receipt| (receipt.id, receipt.state);
    talk.receipts(&AgentEvent::TurnStarted).into_iter().map(pair).collect()
}

#[test]
fn a_message_that_comes_before_its_turn_waits_for_it() {
    let mut talk = begun(Permission::Deny);
    assert_eq!(talk.steer("a", SteerMode::Auto, "x"), Some(Vec::new()));
    assert!(!talk.done());
    let sent = parse(talk.answer(&runs("t1")));
    assert_eq!((&sent[0]["method"], &sent[0]["params"]["expectedTurnId"]), (&json!("turn/steer"), &json!("t1")));
    assert_eq!(sent[0]["params"]["clientUserMessageId"], "steer:2");
    talk.answer(&response("steer:2", None));
    talk.answer(&taken("steer:2"));
    let expected = [("a".to_owned(), TargetState::Queued), ("a".to_owned(), TargetState::Delivered)];
    assert_eq!(moved(&mut talk), expected);
    assert_eq!(talk.answer(&OVER), None);
    assert!(talk.done());
}

#[test]
fn a_message_that_comes_too_late_for_its_turn_gets_one_of_its_own() {
    let mut talk = begun(Permission::Deny);
    talk.answer(&runs("t1"));
    assert!(talk.steer("a", SteerMode::Steer, "x").is_some());
    assert_eq!(talk.answer(&OVER), None);
    let late = talk.answer(&response("steer:2", Some("no active turn to steer")));
    assert_eq!(methods(late), ["turn/start"]);
    assert!(!talk.done());
    talk.answer(&response("turn:3", None));
    talk.answer(&runs("t2"));
    talk.answer(&taken("turn:3"));
    talk.answer(&OVER);
    assert!(talk.done());
    assert_eq!(moved(&mut talk).last(), Some(&("a".to_owned(), TargetState::Delivered)));
}

#[test]
fn follow_ups_wait_for_the_end_of_the_turn_and_are_bounded() {
    let mut talk = begun(Permission::Deny);
    talk.answer(&runs("t1"));
    for n in 0..SteerRequest::QUEUE_LIMIT {
        assert_eq!(talk.steer(&n.to_string(), SteerMode::FollowUp, "more"), Some(Vec::new()));
    }
    assert_eq!(talk.steer("one too many", SteerMode::FollowUp, "x"), None);
    assert!(talk.steer("now", SteerMode::Steer, "x").is_some_and(|bytes| !bytes.is_empty()));
    assert_eq!(methods(talk.answer(&OVER)), ["turn/start"]);
    assert!(!talk.done());
}

#[test]
fn it_breaks_off_as_soon_as_there_is_something_to_break_off() {
    let mut talk = begun(Permission::Deny);
    assert_eq!(talk.abort(), None, "no turn runs yet");
    assert_eq!(talk.steer("late", SteerMode::Steer, "x"), None);
    assert_eq!(methods(talk.answer(&runs("t1"))), ["turn/interrupt"]);
    assert!(!talk.done());
    assert_eq!(talk.answer(&AgentEvent::Settled { aborted: true }), None);
    assert!(talk.done());
    assert_eq!(talk.wrap_up("x"), None);
}

#[test]
fn who_refuses_to_begin_is_done_and_loses_what_waits() {
    let mut talk = CodexTalk::new(Arc::default());
    talk.prompt("t");
    assert_eq!(talk.steer("a", SteerMode::Auto, "x"), Some(Vec::new()));
    assert_eq!(talk.answer(&response("initialize", Some("no"))), None);
    assert_eq!(moved(&mut talk), [("a".to_owned(), TargetState::Failed)]);
    assert!(talk.done() && matches!(talk.steerable(), Steerable::No(_)));
    assert_eq!(talk.steer("b", SteerMode::Auto, "x"), None);
}

#[test]
fn what_it_asks_for_is_answered() {
    let asked = |method: &str, params: Value| approval::asked("\"q\"", method, Look::new(&params), Some("/p"));
    let command = asked("item/commandExecution/requestApproval", json!({"command": "rm x"}));
    let files = asked("item/fileChange/requestApproval", json!({}));
    let rights =
        asked("item/permissions/requestApproval", json!({"permissions": {"network": {"enabled": true}, "x": 1}}));
    let given = json!({"network": {"enabled": true}});
    for (asking, answer, expected) in [
        (&command[0], Answer::Allow, json!({"decision": "accept"})),
        (&command[0], Answer::Choose("acceptForSession".into()), json!({"decision": "acceptForSession"})),
        (&files[0], Answer::Deny(Some("no".into())), json!({"decision": "decline"})),
        (&files[0], Answer::Dismiss, json!({"decision": "decline"})),
        (&rights[0], Answer::Allow, json!({"permissions": given, "scope": "turn"})),
        (&rights[0], Answer::Deny(None), json!({"permissions": {}, "scope": "turn"})),
    ] {
        let mut talk = begun(Permission::Ask);
        assert_eq!(talk.reply(asking, &answer), None, "nobody asked");
        assert_eq!(talk.answer(&AgentEvent::Asked(Box::new(asking.clone()))), None);
        assert_eq!(parse(talk.reply(asking, &answer)), [json!({"id": "q", "result": expected})], "{answer:?}");
    }
    let other = AgentEvent::Called { id: "5".to_owned(), method: "item/tool/call".to_owned() };
    let answer = parse(begun(Permission::Ask).answer(&other));
    assert_eq!((&answer[0]["id"], &answer[0]["error"]["code"]), (&json!(5), &json!(-32601)));
}

#[test]
fn its_own_questions_are_answered_together() {
    let params = json!({"questions": [{"id": "a", "question": "Which?"}, {"id": "b", "question": "Why?"}]});
    let asked = approval::asked("7", "item/tool/requestUserInput", Look::new(&params), None);
    let mut talk = begun(Permission::Ask);
    for asking in &asked {
        talk.answer(&AgentEvent::Asked(Box::new(asking.clone())));
    }
    assert_eq!(talk.reply(&asked[1], &Answer::Text("so".into())), Some(Vec::new()));
    let reply = parse(talk.reply(&asked[0], &Answer::Text("left".into())));
    let expected = json!({"answers": {"a": {"answers": ["left"]}, "b": {"answers": ["so"]}}});
    assert_eq!(reply, [json!({"id": 7, "result": expected})]);
    for asking in &asked {
        talk.answer(&AgentEvent::Asked(Box::new(asking.clone())));
    }
    let reply = parse(talk.reply(&asked[0], &Answer::Deny(None)));
    assert_eq!(reply, [json!({"id": 7, "result": {"answers": {}}})]);
    assert_eq!(talk.given_up(), ["7#1"], "the other is answered by it");
    // What was answered goes on its way although nobody answers the other.
    for asking in &asked {
        talk.answer(&AgentEvent::Asked(Box::new(asking.clone())));
    }
    assert_eq!(talk.reply(&asked[0], &Answer::Text("left".into())), Some(Vec::new()));
    let reply = parse(talk.reply(&asked[1], &Answer::Dismiss));
    assert_eq!(reply, [json!({"id": 7, "result": {"answers": {"a": {"answers": ["left"]}}}})]);
    talk.answer(&AgentEvent::Asked(Box::new(asked[0].clone())));
    talk.abort();
    assert_eq!(talk.given_up(), ["7#0"]);
}

#[test]
fn what_a_plan_can_say_is_in_the_request_for_a_session() {
    let session = Session {
        cwd: "/work".to_owned(),
        permission: Permission::Ask,
        model: Some("m".to_owned()),
        thinking: Some("high".to_owned()),
        added: Some("Be brief.".to_owned()),
        ..Session::default()
    };
    let expected = json!({"cwd": "/work", "approvalPolicy": "on-request", "sandbox": "workspace-write", "model": "m",
        "config": {"model_reasoning_effort": "high"}, "developerInstructions": "Be brief."});
    assert_eq!(session.request(), ("thread/start", expected));
    let resumed = Session {
        permission: Permission::Allow,
        resume: Some("s".to_owned()),
        replaced: Some("You are a duck.".to_owned()),
        ..Session::default()
    };
    let expected = json!({"cwd": "", "approvalPolicy": "never", "sandbox": "danger-full-access",
        "baseInstructions": "You are a duck.", "threadId": "s", "excludeTurns": true});
    assert_eq!(resumed.request(), ("thread/resume", expected));
    assert_eq!(Session::default().request().1["sandbox"], "workspace-write");
}
