//! What no recording shows: agents that fail, lie, stop in the middle, or say too much.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{AcpAdapter, Dialect, Session};
use crate::agents::framing::LINE_LIMIT;
use crate::agents::told::{self, Seen};
use crate::run::{
    AgentEvent, Asking, Choice, Evidence, ExitInfo, Report, StepPhase, SubAgentDid, SubCall, ToolOutcome, Window, judge,
};

fn run_with(session: Session, lines: &[String]) -> (Seen, Report) {
    told::play(&mut AcpAdapter::new(Arc::new(session)), &lines.join("\n"))
}

fn run(dialect: Dialect, lines: &[String]) -> (Seen, Report) {
    let lines = [&begin()[..], lines].concat();
    run_with(Session { dialect, ..Session::default() }, &lines)
}

fn begin() -> Vec<String> {
    vec![
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#.to_owned(),
    ]
}

fn update(update: Value) -> String {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}).to_string()
}

fn says(text: &str) -> String {
    update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

fn call(id: &str, status: &str) -> String {
    update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": status, "kind": "execute", "title": "ls"}))
}

fn answer(stop: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": stop}}).to_string()
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
fn every_reason_to_stop_has_its_end() {
    let failed = |error: &str| (StepPhase::Failed, Some(error.to_owned()));
    for (stop, expected) in [
        ("end_turn", (StepPhase::Complete, None)),
        ("max_tokens", (StepPhase::Complete, None)),
        ("max_turn_requests", failed("the agent reached its own limit of model calls")),
        ("refusal", failed("the agent refused to go on")),
        ("cancelled", failed("the agent was told to break off")),
        ("bored", failed("the agent stopped for a reason that is not known: bored")),
        ("", failed("the agent did not say why it stopped")),
    ] {
        let (_, report) = run(Dialect::Other, &[says("Hello."), answer(stop)]);
        assert_eq!(end(&report), expected, "{stop}");
    }
    let (_, report) = run(Dialect::Other, &[says("Hello.")]);
    assert_eq!(end(&report), failed("the agent ended without saying that it was done"));
    assert_eq!(report.final_text.as_deref(), Some("Hello."));
}

#[test]
fn an_error_of_copilots_provider_looks_like_an_answer() {
    let error = "Error: 500 the model is on fire";
    let (seen, report) = run(Dialect::Copilot, &[says(error), answer("end_turn")]);
    assert_eq!(end(&report), (StepPhase::Failed, Some(error.to_owned())));
    assert!(seen.log.contains("model error: Error: 500"), "{}", seen.log);
    // In the middle of its work, too; but what comes in pieces is the model's.
    let spent = r#"{"id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":1}}}"#;
    let over = update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed"}));
    let worked = [says("I "), says("look."), call("a", "in_progress"), over];
    let (_, report) = run(Dialect::Copilot, &[&worked[..], &[says(error), spent.to_owned()]].concat());
    assert_eq!(end(&report), (StepPhase::Failed, Some(error.to_owned())));
    assert_eq!(report.final_text.as_deref(), Some("I look."));
    let (_, report) = run(Dialect::Copilot, &[says("Error: "), says("none."), spent.to_owned()]);
    assert_eq!(end(&report), (StepPhase::Complete, None));
    let (_, report) = run(Dialect::Other, &[says(error), answer("end_turn")]);
    assert_eq!(end(&report).0, StepPhase::Complete);
}

#[test]
fn a_history_that_comes_late_is_nobodys_work() {
    let resume = Some("old".to_owned());
    let session = Session { dialect: Dialect::Gemini, resume, settle: Some("yolo"), ..Session::default() };
    let settled = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#.to_owned();
    let last = r#"{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}"#.to_owned();
    let old = [says("What I said."), call("a", "completed")];
    let lines = [&begin()[..], &old, &[settled, says("What I say."), last]].concat();
    let (seen, report) = run_with(session, &lines);
    assert_eq!((end(&report), report.final_text.as_deref()), ((StepPhase::Complete, None), Some("What I say.")));
    assert_eq!(ends(&seen), []);
    assert!(!seen.log.contains("What I said."), "{}", seen.log);
}

#[test]
fn copilot_asks_its_provider_again() {
    let again = says("Info: Request failed due to a transient API error. Retrying...");
    for (then, answered) in [("Here it is.", true), ("Error: Failed to get response; retried 2 times", false)] {
        let (seen, report) = run(Dialect::Copilot, &[again.clone(), again.clone(), says(then), answer("end_turn")]);
        let retries: Vec<_> = seen
            .events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Retry { attempt, reason, .. } => Some((*attempt, reason.as_str())),
                AgentEvent::RetryEnded { success } => Some((None, if *success { "well" } else { "badly" })),
                _ => None,
            })
            .collect();
        let why = "Request failed due to a transient API error.";
        let end_of_it = if answered { "well" } else { "badly" };
        assert_eq!(retries, [(Some(1), why), (Some(2), why), (None, end_of_it)]);
        let failed = (StepPhase::Failed, Some(then.to_owned()));
        assert_eq!(end(&report), if answered { (StepPhase::Complete, None) } else { failed });
        assert_eq!(report.final_text.as_deref(), answered.then_some(then));
    }
}

/// What agents tell of a call that was refused, as they were seen to.
#[test]
fn a_refused_call_is_denied_and_who_breaks_off_has_failed() {
    let pending = |id: &str| json!({"toolCallId": id, "title": "ls", "kind": "execute", "status": "pending"});
    let ask = |id: &str| {
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
        "params": {"toolCall": pending(id), "options": []}})
        .to_string()
    };
    let ended = |more: Value| {
        let mut fields = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "failed"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update(fields)
    };
    let copilot = ended(json!({"rawOutput": {"message": "The user rejected this tool call.", "code": "rejected"}}));
    let qwen = ended(json!({"content": [{"type": "content",
        "content": {"type": "text", "text": "Tool \"shell\" was canceled by the user."}}]}));
    let broke_off = Some("the agent broke off when it was refused a permission".to_owned());
    for (dialect, rest) in [
        (Dialect::Copilot, vec![copilot.clone(), says("Info: Operation cancelled by user")]),
        (Dialect::Qwen, vec![qwen.clone()]),
        (Dialect::Gemini, vec![]),
    ] {
        let lines = [vec![says("I look."), ask("a")], rest, vec![answer("end_turn")]].concat();
        let (seen, report) = run(dialect, &lines);
        assert_eq!(ends(&seen), [ToolOutcome::Denied], "{dialect:?}");
        assert_eq!(end(&report), (StepPhase::Failed, broke_off.clone()), "{dialect:?}");
        assert_eq!(report.final_text.as_deref(), Some("I look."), "{dialect:?}");
        // The model hears of it, or is told to go on.
        let lines = [lines, vec![says("Well then."), answer("end_turn")]].concat();
        let (_, report) = run(dialect, &lines);
        assert_eq!((end(&report), report.final_text.as_deref()), ((StepPhase::Complete, None), Some("Well then.")));
    }
    // Gemini's model goes on without a word about the call.
    let lines = [says("I look."), ask("a"), says("Well then."), answer("end_turn")];
    let (seen, report) = run(Dialect::Gemini, &lines);
    assert_eq!(ends(&seen), [ToolOutcome::Denied]);
    assert_eq!((end(&report), report.final_text.as_deref()), ((StepPhase::Complete, None), Some("Well then.")));
    // What was allowed and failed afterwards is an error, whatever it says.
    let begun = update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "in_progress"}));
    let (seen, _) = run(Dialect::Qwen, &[ask("a"), begun, qwen, says("Hm."), answer("end_turn")]);
    assert_eq!(ends(&seen), [ToolOutcome::Error]);
}

#[test]
fn open_calls_end_with_the_prompt() {
    let lines = [call("a", "in_progress"), call("b", "pending"), answer("end_turn")];
    let (seen, _) = run(Dialect::Other, &lines);
    assert_eq!(ends(&seen), [ToolOutcome::Lost], "what never began does not end");
    let (seen, _) = run(Dialect::Other, &[call("a", "in_progress"), answer("cancelled")]);
    assert_eq!(ends(&seen), [ToolOutcome::Cancelled]);
}

#[test]
fn calls_side_by_side_are_of_one_turn() {
    let over = |id: &str| update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}));
    let turns = |seen: &Seen| seen.events.iter().filter(|event| **event == AgentEvent::TurnStarted).count();
    let (seen, _) = run(Dialect::Other, &[call("a", "in_progress"), call("b", "in_progress"), over("a"), over("b")]);
    assert_eq!(turns(&seen), 1);
    let (seen, _) = run(Dialect::Other, &[call("a", "in_progress"), over("a"), call("b", "in_progress"), over("b")]);
    assert_eq!(turns(&seen), 2);
    let started = seen.events.iter().filter(|event| matches!(event, AgentEvent::ToolStarted { .. })).count();
    assert_eq!((started, ends(&seen).len()), (2, 2));
}

#[test]
fn a_failed_tool_at_the_end_is_not_hidden() {
    let failed = update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}],
        "rawOutput": {"metadata": {"exit": 3}}}));
    let (_, report) = run(Dialect::OpenCode, &[call("a", "in_progress"), failed.clone(), answer("end_turn")]);
    assert_eq!(report.hidden_error, Some(("ls failed (exit 3): no such file".to_owned(), 3)));
    let lines = [call("a", "in_progress"), failed, says("Never mind."), answer("end_turn")];
    let (_, report) = run(Dialect::OpenCode, &lines);
    assert_eq!(end(&report), (StepPhase::Complete, None));
}

#[test]
fn who_cannot_begin_says_why() {
    for (line, expected) in [
        (
            r#"{"id":1,"result":{"protocolVersion":2}}"#,
            "(initialize): it speaks version 2 of the protocol, and only version 1 is understood",
        ),
        (r#"{"id":1,"result":{}}"#, "(initialize): it does not say which version of the protocol it speaks"),
        (
            r#"{"id":2,"error":{"code":-32000,"message":"Authentication required"}}"#,
            "(session/new): Authentication required",
        ),
        (r#"{"id":2,"result":{}}"#, "(session/new): it names no session"),
    ] {
        let (seen, report) = run_with(Session::default(), &[line.to_owned()]);
        let error = format!("the agent refused to begin {expected}");
        assert_eq!(end(&report), (StepPhase::Failed, Some(error)), "{line}");
        assert!(!seen.events.iter().any(|event| matches!(event, AgentEvent::SessionStarted { .. })), "{line}");
        assert!(seen.log.starts_with("the agent refused to begin: "), "{}", seen.log);
    }
}

#[test]
fn how_full_the_window_is_is_told_as_it_comes() {
    let used = |used: u64| update(json!({"sessionUpdate": "usage_update", "used": used, "size": 128_000}));
    let mut lines = begin();
    lines.extend([used(0), says("New."), used(2100), answer("end_turn")]);
    let (seen, _) = run_with(Session::default(), &lines);
    let told: Vec<_> = seen.events.iter().filter(|event| matches!(event, AgentEvent::Window(_))).collect();
    let window = |used| AgentEvent::Window(Window { used, size: Some(128_000) });
    assert_eq!(told, [&window(None), &window(Some(2100))]);
}

#[test]
fn the_history_of_a_loaded_session_is_nobodys_work() {
    let session = Session { resume: Some("old".to_owned()), ..Session::default() };
    let cost = |amount: f64| update(json!({"sessionUpdate": "usage_update", "cost": {"amount": amount}}));
    let [first, _] = begin().try_into().unwrap();
    let loaded = r#"{"id":2,"result":null}"#.to_owned();
    let lines = [
        first,
        says("An old answer."),
        call("a", "completed"),
        cost(2.0),
        loaded,
        says("New."),
        cost(2.5),
        answer("end_turn"),
    ];
    let (seen, report) = run_with(session, &lines);
    assert_eq!(report.final_text.as_deref(), Some("New."));
    assert_eq!(seen.log, "New.\n");
    let started = AgentEvent::SessionStarted { session_id: Some("old".to_owned()), model: None };
    assert!(seen.events.contains(&started), "{:?}", seen.events);
    let costs: Vec<f64> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Message { usage: Some(usage), .. } => usage.cost.map(|cost| cost.0),
            _ => None,
        })
        .collect();
    assert_eq!(costs, [0.5]);
}

#[test]
fn what_it_asks_for_is_passed_on_and_a_person_is_told_of_permissions() {
    let ask = json!({"id": "q-1", "method": "session/request_permission", "params": {"sessionId": "s",
        "toolCall": {"toolCallId": "a", "title": "rm -r x", "kind": "execute", "rawInput": {"command": "rm -r x"}},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, "odd", {"optionId": "n"}]}})
    .to_string();
    let files = r#"{"id":7,"method":"fs/read_text_file","params":{"path":"/x"}}"#.to_owned();
    let lines = [&begin()[..], &[ask, files]].concat();
    let (seen, _) = run_with(Session::default(), &lines);
    let called = AgentEvent::Called { id: "7".to_owned(), method: "fs/read_text_file".to_owned() };
    assert!(seen.events.contains(&called));
    let tool = |event: &AgentEvent| matches!(event, AgentEvent::ToolStarted { args, .. } if args == "rm -r x");
    let tool = seen.events.iter().position(tool).unwrap();
    let asked = |event: &AgentEvent| match event {
        AgentEvent::Asked(asking) => Some((**asking).clone()),
        _ => None,
    };
    let questions: Vec<Asking> = seen.events[tool..].iter().filter_map(asked).collect();
    let choice = |id: &str, label: &str, kind: &str| Choice { id: id.into(), label: label.into(), kind: kind.into() };
    let expected = Asking {
        id: "\"q-1\"".to_owned(),
        text: "May it use execute? rm -r x".to_owned(),
        tool: Some("execute".to_owned()),
        args: "rm -r x".to_owned(),
        call: Some("a".to_owned()),
        choices: vec![choice("y", "Yes", "allow_once"), choice("n", "", "")],
        ..Asking::default()
    };
    assert_eq!(questions, [expected]);
    assert!(seen.log.contains("the agent asks for permission: rm -r x"), "{}", seen.log);
}

#[test]
fn lines_outside_the_protocol_and_kinds_that_are_not_known_end_nothing() {
    let lines = [
        "\u{1b}[31mwarning\u{1b}[0m".to_owned(),
        update(json!({"sessionUpdate": "fireworks"})),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}})),
        update(json!({"sessionUpdate": "tool_call"})),
        update(json!(7)),
        r#"{"method":"_vendor/thing","params":{}}"#.to_owned(),
        r#"{"id":99,"result":{}}"#.to_owned(),
        says("Fine."),
    ];
    let (seen, report) = run(Dialect::Other, &lines);
    let count = |wanted: fn(&AgentEvent) -> bool| seen.events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, AgentEvent::Unparsed { .. })), 1);
    assert_eq!(count(|event| matches!(event, AgentEvent::Unknown { .. })), 4);
    assert_eq!(report.raw_tail, "\u{1b}[31mwarning\u{1b}[0m\n");
    assert_eq!(report.final_text.as_deref(), Some("Fine."));
}

#[test]
fn a_call_with_a_huge_output_ends_all_the_same() {
    let text = "x".repeat(LINE_LIMIT + 1);
    // The order of the recorded agents: what it is stands in front.
    let head = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":""#;
    let (seen, report) = run(
        Dialect::Other,
        &[call("a", "in_progress"), format!("{head}{text}\"}}}}}}"), says("Done."), answer("end_turn")],
    );
    assert_eq!(ends(&seen), [ToolOutcome::Ok]);
    assert!(seen.log.contains("[a message of 16"), "{}", seen.log);
    assert_eq!(end(&report), (StepPhase::Complete, None));
}

fn delegates(id: &str, status: &str, more: Value) -> String {
    let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": status, "kind": "other", "title": "job",
        "rawInput": {"subagent_type": "helper", "prompt": "p", "description": "d"}});
    if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
        call.extend(more);
    }
    update(call)
}

fn subs(seen: &Seen) -> Vec<(String, SubAgentDid)> {
    let sub = |event: &AgentEvent| match event {
        AgentEvent::SubAgent { id, did } => Some((id.clone(), did.clone())),
        _ => None,
    };
    seen.events.iter().filter_map(sub).collect()
}

#[test]
fn sub_agents_end_with_their_call_with_the_prompt_or_when_they_are_told_to() {
    let starts = delegates("t", "in_progress", json!({}));
    let background = delegates("t", "completed", json!({"rawOutput": {"executionMode": "background"}}));
    for (lines, outcome) in [
        (vec![starts.clone(), delegates("t", "completed", json!({})), answer("end_turn")], ToolOutcome::Ok),
        (vec![starts.clone(), delegates("t", "failed", json!({})), answer("end_turn")], ToolOutcome::Error),
        (vec![starts.clone(), answer("end_turn")], ToolOutcome::Lost),
        (vec![starts.clone(), answer("cancelled")], ToolOutcome::Cancelled),
        (vec![starts.clone(), background.clone(), answer("cancelled")], ToolOutcome::Cancelled),
    ] {
        let (seen, report) = run(Dialect::Qwen, &lines);
        assert_eq!(subs(&seen).last(), Some(&("t".to_owned(), SubAgentDid::Ended(outcome))), "{lines:?}");
        assert!(report.settled, "{lines:?}");
    }
    // Only who begins by itself again is waited for.
    for (dialect, waits) in [(Dialect::Qwen, true), (Dialect::Copilot, false), (Dialect::Other, false)] {
        let (seen, report) = run(dialect, &[starts.clone(), background.clone(), says("it works"), answer("end_turn")]);
        assert_eq!(report.settled, !waits, "{dialect:?}");
        assert_eq!(subs(&seen).iter().any(|(_, did)| matches!(did, SubAgentDid::Ended(_))), !waits, "{dialect:?}");
        let expected = if waits { StepPhase::Failed } else { StepPhase::Complete };
        assert_eq!(end(&report).0, expected, "{dialect:?}: it ended before what it began");
    }
}

#[test]
fn a_turn_of_its_own_takes_nothing_back() {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "_qwencode/start_turn", "params": {}}).to_string();
    let over = json!({"jsonrpc": "2.0", "method": "_qwencode/end_turn", "params": {}}).to_string();
    let lines = [says("first"), answer("end_turn"), request, says("second"), over];
    let (_, report) = run(Dialect::Qwen, &lines[..4]);
    assert_eq!((end(&report).0, report.final_text.as_deref()), (StepPhase::Complete, Some("second")));
    let (seen, report) = run(Dialect::Qwen, &lines);
    assert_eq!(seen.events.iter().filter(|event| matches!(event, AgentEvent::Settled { .. })).count(), 2);
    assert_eq!((end(&report).0, report.final_text.as_deref()), (StepPhase::Complete, Some("second")));
}

#[test]
fn what_a_sub_agent_does_is_not_its_agents_work() {
    let meta = json!({"parentToolCallId": "t", "subagentType": "helper"});
    let chunk = |text: &str| {
        update(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "_meta": meta}),
        )
    };
    let nested = |status: &str| {
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "n", "status": status, "kind": "execute",
            "rawInput": {"command": "ls"}, "_meta": meta}))
    };
    let asks = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": {"sessionId": "s",
        "toolCall": {"toolCallId": "n", "kind": "execute", "rawInput": {"command": "ls"}, "_meta": meta},
        "options": [{"optionId": "a", "name": "A", "kind": "allow_once"}]}})
    .to_string();
    let lines = [
        delegates("t", "in_progress", json!({})),
        chunk("I look."),
        asks,
        nested("in_progress"),
        nested("completed"),
        // Of one that was never told of.
        chunk("x").replace(r#""t""#, r#""u""#),
        delegates("t", "completed", json!({})),
        says("mine"),
        answer("end_turn"),
    ];
    let (seen, report) = run(Dialect::Qwen, &lines);
    assert_eq!(report.final_text.as_deref(), Some("mine"));
    assert_eq!(ends(&seen), [ToolOutcome::Ok], "only the call that began it is its own");
    assert!(
        seen.events.iter().any(|event| matches!(event, AgentEvent::Asked(_))),
        "what it asks is asked all the same"
    );
    let called = SubAgentDid::Called(SubCall { tool: "execute".to_owned(), args: "ls".to_owned() });
    assert_eq!(subs(&seen).iter().filter(|(id, did)| id == "t" && *did == called).count(), 1, "{:?}", subs(&seen));
    assert!(!seen.log.contains("I look."), "{}", seen.log);
}

#[test]
fn what_was_said_last_is_told_when_the_output_ends() {
    let (seen, report) = run(Dialect::Gemini, &[says("half"), says(" of it")]);
    let last = seen.events.iter().rev().find_map(|event| match event {
        AgentEvent::Message { preview, .. } => Some(preview.as_str()),
        _ => None,
    });
    assert_eq!((last, report.final_text.as_deref()), (Some("half of it"), Some("half of it")));
    assert_eq!(end(&report).1.as_deref(), Some("the agent ended without saying that it was done"));
}
