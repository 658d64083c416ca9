use super::*;
use crate::agents::framing::LINE_LIMIT;
use crate::agents::told::{self, Seen};

fn run(stream: &str) -> (Seen, Report) {
    told::play(&mut PiAdapter::new(), stream)
}

fn assistant(text: &str, stop: &str) -> String {
    let message =
        serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": stop});
    serde_json::json!({"type": "message_end", "message": message}).to_string()
}

fn tool_result(tool: &str, text: &str, is_error: bool) -> String {
    let content = serde_json::json!([{"type": "text", "text": text}]);
    serde_json::json!({"type": "message_end", "message": {
        "role": "toolResult", "toolName": tool, "content": content, "isError": is_error,
    }})
    .to_string()
}

#[test]
fn huge_records_fail_nothing() {
    let huge = "x".repeat(LINE_LIMIT + 10);
    let delta =
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"half"}}"#;
    let stream = format!(
        "{delta}\n\
         {{\"type\":\"message_end\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"half{huge}\"}}],\"stopReason\":\"stop\"}}}}\n\
         {{\"type\":\"turn_end\",\"message\":\"{huge}\"}}\n\
         {{\"type\":\"image\",\"data\":\"{huge}\"}}\n\
         {huge}\n\
         {{\"type\":\"agent_end\",\"messages\":[\"{huge}\"],\"willRetry\":false}}\n\
         {{\"type\":\"agent_settled\"}}\n"
    );
    let (seen, report) = run(&stream);
    assert_eq!(report.final_text.as_deref(), Some("half"));
    assert!(report.settled && report.clean_stop && report.ended && report.protocol_error.is_none());
    let kinds: Vec<&str> = seen
        .events
        .iter()
        .map(|event| match event {
            AgentEvent::TextDelta { .. } => "delta",
            AgentEvent::Message { .. } => "message",
            AgentEvent::TurnEnded => "turn",
            AgentEvent::Unknown { kind } => kind,
            AgentEvent::Unparsed { .. } => "text",
            AgentEvent::AgentEnded { will_retry: false } => "end",
            AgentEvent::Settled { .. } => "settled",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["delta", "message", "turn", "image", "text", "end", "settled"]);
    assert_eq!(seen.records.len(), 5);
    assert!(seen.records.iter().all(|record| record.len() < 10_000));
    assert!(seen.log.starts_with("half\n[a record of 16777"), "{}", &seen.log[..60]);
}

#[test]
fn a_retry_is_not_the_end() {
    let (_, report) = run("{\"type\":\"agent_end\",\"willRetry\":true}\n");
    assert!(!report.terminal_record_seen());
    let (_, report) = run("{\"type\":\"agent_settled\"}\n{\"type\":\"agent_start\"}\n");
    assert!(!report.terminal_record_seen());
    let (_, report) = run(&format!("{}\n{{\"type\":\"turn_start\"}}\n", assistant("x", "stop")));
    assert!(!report.terminal_record_seen());
}

#[test]
fn tool_errors_count_until_the_next_text() {
    let result = tool_result("bash", "boom\n\nCommand exited with code 7", true);
    let call = assistant("", "toolUse");
    let (_, report) = run(&[assistant("try", "toolUse"), result.clone(), call.clone()].join("\n"));
    assert_eq!(report.hidden_error, Some(("bash failed (exit 7): boom\n\nCommand exited with code 7".to_owned(), 7)));
    let (_, report) = run(&[call, result, assistant("it failed", "stop")].join("\n"));
    assert_eq!(report.hidden_error, None);
    let (_, report) =
        run(&[tool_result("read", &"é".repeat(300), true), tool_result("read", "fine", false)].join("\n"));
    assert_eq!(report.hidden_error, Some((format!("read failed (exit 1): {}", "é".repeat(200)), 1)));
}

#[test]
fn exit_codes_in_text() {
    let table = [
        ("Command exited with code 3", Some(3)),
        ("process exit code: 12.", Some(12)),
        ("it exited 4 and then exit with code 5", Some(5)),
        ("Exited With Code 6 and left the exit open", Some(6)),
        ("no way out", None),
        ("exit code 99999999999999", None),
    ];
    for (text, code) in table {
        assert_eq!(exit_code(text), code, "{text}");
    }
}

#[test]
fn a_good_answer_clears_an_error() {
    let bad = r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error"}}"#;
    let (_, report) = run(bad);
    assert_eq!(report.assistant_error.as_deref(), Some("the model failed"));
    let (_, report) = run(&[bad.to_owned(), assistant("fine", "stop")].join("\n"));
    assert_eq!((report.assistant_error, report.final_text.as_deref()), (None, Some("fine")));
    let (_, report) = run(&[assistant("fine", "stop"), bad.to_owned()].join("\n"));
    assert!(report.assistant_error.is_some() && !report.clean_stop);
    assert_eq!(report.final_text.as_deref(), Some("fine"));
}

#[test]
fn text_between_records_has_lines_of_its_own() {
    let delta = |text: &str| {
        serde_json::json!({
            "type": "message_update",
            "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": text},
        })
        .to_string()
    };
    let stream =
        [delta("one "), "\u{1b}[31mnoise\u{1b}[0m".to_owned(), delta("two"), assistant("one two!", "stop")].join("\n");
    let (seen, report) = run(&stream);
    assert_eq!(seen.log, "one \n\u{1b}[31mnoise\u{1b}[0m\ntwo!\n");
    assert_eq!(report.raw_tail, "\u{1b}[31mnoise\u{1b}[0m\n");
    assert_eq!(seen.records, [r#"{"type":"subagent.child.stdout","line":"\u001b[31mnoise\u001b[0m"}"#]);
}

#[test]
fn running_tools_show_their_output_once() {
    let content = |text: &str| serde_json::json!({"content": [{"type": "text", "text": text}]});
    // Parsed at once, and as pi writes it: then the newest of several that come together counts.
    let parsed = |call: &str, text: &str| {
        serde_json::json!({"partialResult": content(text), "type": "tool_execution_update", "toolCallId": call})
            .to_string()
    };
    let gathered = |call: &str, text: &str| {
        serde_json::json!({"type": "tool_execution_update", "toolCallId": call, "partialResult": content(text)})
            .to_string()
    };
    let end = |call: &str, text: &str| {
        serde_json::json!({"type": "tool_execution_end", "toolCallId": call, "toolName": "bash",
            "result": {"content": [{"type": "text", "text": text}]}, "isError": false})
        .to_string()
    };
    let log = |update: &dyn Fn(&str, &str) -> String| {
        let stream = [
            update("call-1", "1\n2"),
            update("call-2", "x\n"),
            update("call-1", "1\n2\n3"),
            end("call-2", "x\ny\n"),
            end("call-1", "1\n2\n3\n\nCommand exited with code 1"),
            tool_result("bash", "no id, so it is written", false),
        ];
        run(&stream.join("\n")).0.log
    };
    let rest = "3\n\nCommand exited with code 1\nno id, so it is written\n";
    assert_eq!(log(&parsed), format!("1\nx\n2\ny\n{rest}"));
    assert_eq!(log(&gathered), format!("1\n2\nx\ny\n{rest}"));
}

#[test]
fn a_refused_task_is_an_error() {
    let (_, report) =
        run(r#"{"id":"subdeck-prompt","type":"response","command":"prompt","success":false,"error":"no model"}"#);
    assert_eq!(report.protocol_error.as_deref(), Some("the agent refused the task (prompt): no model"));
}
