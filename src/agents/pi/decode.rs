//! What a line of pi means: the one decoder for live output, for our own event logs and for foreign ones. Stateless.

use super::args::{Described, describe};
use super::asked;
use super::record::{Body, Record, UsageRecord, with_record};
use crate::run::{
    AgentEvent, CostUsd, MessageRole, QueueContents, StopReason, Stream, SubAgentDid, SubCall, Tokens, ToolOutcome,
    Usage, Window,
};
use crate::text::prefix;

/// What kind of line was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not a record: text that somebody printed.
    Text,
    /// A piece of a message that is being written; never kept in an event log (run-directory 2.5).
    Update,
    /// A report of a tool that runs; repeats what the tool's end says.
    Progress,
    /// Any other record.
    Record,
}

const UPDATE: &[u8] = br#"{"type":"message_update""#;
const PROGRESS: &[u8] = br#"{"type":"tool_execution_update""#;
const DELTA: &[u8] = br#""type":"text_delta""#;

/// Records that are known and say nothing about a run's state.
const SILENT: [&str; 14] = [
    "message_start",
    "session_info_changed",
    "thinking_level_changed",
    "model_changed",
    "entry_appended",
    "compaction_start",
    "compaction_end",
    "auto_compaction_start",
    "auto_compaction_end",
    "bash_execution_update",
    "summarization_retry_scheduled",
    "summarization_retry_attempt_start",
    "summarization_retry_finished",
    "extension_error",
];

/// Decodes one line without its line feed and appends what it says to `out`.
///
/// Lines of text give nothing; records of an unknown type give [`AgentEvent::Unknown`] (law 10). A piece of a message
/// that is not answer text gives a [`AgentEvent::TextDelta`] of no bytes: a sign of life.
pub fn decode_line(line: &[u8], out: &mut Vec<AgentEvent>) -> Kind {
    if line.starts_with(UPDATE) && memchr::memmem::find(line, DELTA).is_none() {
        // The test only saves time: the full parse below says the same, which a test proves.
        if line.ends_with(b"}") {
            out.push(AgentEvent::TextDelta { bytes: 0 });
            return Kind::Update;
        }
    }
    if line.starts_with(PROGRESS)
        && line.ends_with(b"}")
        && let Some(call) = plain_string_after(line, br#""toolCallId":""#)
    {
        out.push(AgentEvent::ToolProgress { call: Some(call.to_owned()) });
        return Kind::Progress;
    }
    decode_fully(line, out)
}

fn decode_fully(line: &[u8], out: &mut Vec<AgentEvent>) -> Kind {
    with_record(line, |record| events(line, record, out)).unwrap_or(Kind::Text)
}

/// The string that follows `key` near the beginning of the line, if it holds no escape.
fn plain_string_after<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let head = line.get(PROGRESS.len()..line.len().min(PROGRESS.len() + 400))?;
    let rest = head.strip_prefix(b",")?.strip_prefix(key)?;
    let end = memchr::memchr2(b'"', b'\\', rest)?;
    (rest.get(end) == Some(&b'"')).then(|| std::str::from_utf8(rest.get(..end)?).ok())?
}

/// What such a record says of a sub-agent.
fn sub_agent(record: &Record<'_>) -> Option<AgentEvent> {
    let did = record.sub_agent.as_ref()?;
    let said =
        |text: &Option<std::borrow::Cow<'_, str>>, limit| prefix(text.as_deref().unwrap_or_default(), limit).to_owned();
    let short = |text| said(text, AgentEvent::ARGS_PREVIEW);
    let did = match did.did.as_deref()? {
        "started" => SubAgentDid::Started {
            name: short(&did.name),
            about: short(&did.about),
            model: did.model.as_deref().map(str::to_owned),
        },
        "called" => SubAgentDid::Called(SubCall { tool: short(&did.tool), args: short(&did.args) }),
        "returned" => SubAgentDid::Returned,
        "said" => SubAgentDid::Said(said(&did.text, AgentEvent::PREVIEW)),
        "used" => SubAgentDid::Used(did.tokens?),
        "ended" => SubAgentDid::Ended(ToolOutcome::of_word(did.outcome.as_deref()?)?),
        _ => return None,
    };
    Some(AgentEvent::SubAgent { id: record.id.as_deref()?.to_owned(), did })
}

/// What the record of a line says.
pub(super) fn events(line: &[u8], record: &Record<'_>, out: &mut Vec<AgentEvent>) -> Kind {
    let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
    let kind = record.kind.as_deref().unwrap_or_default();
    match kind {
        "message_update" => {
            let piece = record.assistant_message_event.as_ref();
            let text =
                piece.filter(|piece| piece.kind.as_deref() == Some("text_delta")).and_then(|p| p.delta.as_deref());
            out.push(AgentEvent::TextDelta { bytes: text.map_or(0, str::len) });
            return Kind::Update;
        }
        "tool_execution_update" => {
            out.push(AgentEvent::ToolProgress { call: owned(&record.tool_call_id) });
            return Kind::Progress;
        }
        "session" => out.push(AgentEvent::SessionStarted { session_id: owned(&record.id), model: None }),
        "agent_start" => out.push(AgentEvent::AgentStarted),
        "turn_start" => out.push(AgentEvent::TurnStarted),
        "turn_end" => out.push(AgentEvent::TurnEnded),
        "message_end" | "tool_result_end" => {
            if let Some(body) = &record.message {
                out.push(message(kind, body));
            }
        }
        // What agents of other families used beside what their messages carry.
        "subdeck_usage" => out.extend(record.usage.as_ref().map(usage).map(AgentEvent::Used)),
        "subdeck_window" => {
            let told = record.window.as_ref().map(|window| Window { used: window.used, size: window.size });
            out.push(told.map_or_else(|| AgentEvent::Unknown { kind: kind.to_owned() }, AgentEvent::Window));
        }
        "subdeck_subagent" => {
            out.push(sub_agent(record).unwrap_or_else(|| AgentEvent::Unknown { kind: kind.to_owned() }))
        }
        // What agents of other families say that nobody knows.
        "subdeck_unknown" => {
            let kind = record.unknown.as_deref().unwrap_or(kind);
            out.push(AgentEvent::Unknown { kind: prefix(kind, AgentEvent::KIND).to_owned() });
        }
        "tool_execution_start" => {
            let tool = record.tool_name.as_deref().unwrap_or("?").to_owned();
            let Described { args, path, about } = describe(&tool, record.args.map(serde_json::value::RawValue::get));
            out.push(AgentEvent::ToolStarted { call: owned(&record.tool_call_id), tool, args, path, about });
        }
        "tool_execution_end" => out.push(AgentEvent::ToolEnded {
            call: owned(&record.tool_call_id),
            tool: owned(&record.tool_name),
            outcome: if record.is_error == Some(true) { ToolOutcome::Error } else { ToolOutcome::Ok },
            preview: record.result.as_ref().map_or_else(String::new, |body| preview(&body.text())),
        }),
        "auto_retry_start" => out.push(AgentEvent::Retry {
            attempt: record.attempt.map(small),
            max: record.max_attempts.map(small),
            delay_ms: record.delay_ms,
            reason: preview(record.error_message.as_deref().unwrap_or_default()),
        }),
        "auto_retry_end" => out.push(AgentEvent::RetryEnded { success: record.success == Some(true) }),
        "queue_update" => out.push(AgentEvent::Queue(QueueContents {
            steering: record.steering.iter().map(|text| preview(text)).collect(),
            follow_up: record.follow_up.iter().map(|text| preview(text)).collect(),
        })),
        "response" => {
            if let Some(state) = record.data.as_ref().filter(|state| state.session_id.is_some()) {
                let model = state.model.as_ref().and_then(|model| owned(&model.id));
                out.push(AgentEvent::SessionStarted { session_id: owned(&state.session_id), model });
                let size = state.model.as_ref().and_then(|model| model.context_window).filter(|size| *size > 0);
                out.extend(size.map(|size| AgentEvent::Window(Window { used: None, size: Some(size) })));
            }
            out.push(AgentEvent::Response {
                id: owned(&record.id),
                command: record.command.as_deref().unwrap_or_default().to_owned(),
                success: record.success == Some(true),
                error: record.error.as_deref().map(preview),
            });
        }
        "agent_end" => out.push(AgentEvent::AgentEnded { will_retry: record.will_retry == Some(true) }),
        "agent_settled" => out.push(AgentEvent::Settled { aborted: record.aborted == Some(true) }),
        "extension_ui_request" => out.extend(asked::read(line)),
        // What agents of other families say when they wait no more.
        "subdeck_unasked" => out.extend(owned(&record.id).map(|id| AgentEvent::Unasked { id })),
        "subagent.child.stdout" => out.push(AgentEvent::Unparsed { stream: Stream::Out }),
        "subagent.child.stderr" => out.push(AgentEvent::Unparsed { stream: Stream::Err }),
        _ if SILENT.contains(&kind) => {}
        _ => out.push(AgentEvent::Unknown { kind: prefix(kind, AgentEvent::KIND).to_owned() }),
    }
    Kind::Record
}

fn message(kind: &str, body: &Body<'_>) -> AgentEvent {
    let role = match body.role.as_deref() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("toolResult") => MessageRole::ToolResult,
        Some("system") => MessageRole::System,
        _ if kind == "tool_result_end" => MessageRole::ToolResult,
        _ => MessageRole::Other,
    };
    let assistant = role == MessageRole::Assistant;
    AgentEvent::Message {
        role,
        preview: preview(&body.text()),
        model: body.model.as_deref().filter(|_| assistant).map(str::to_owned),
        stop: body.stop_reason.as_deref().filter(|_| assistant).map(stop),
        usage: body.usage.as_ref().filter(|_| assistant).map(usage),
        error: body.error_message.as_deref().map(preview),
        calls_tools: body.content.calls_tools,
    }
}

fn stop(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::Stop,
        "toolUse" => StopReason::ToolUse,
        "length" => StopReason::Length,
        "error" => StopReason::Error,
        "aborted" => StopReason::Aborted,
        _ => StopReason::Other,
    }
}

fn usage(record: &UsageRecord) -> Usage {
    Usage {
        tokens: Tokens {
            input: record.input.or(record.input_tokens).unwrap_or(0),
            output: record.output.or(record.output_tokens).unwrap_or(0),
            cache_read: record.cache_read.unwrap_or(0),
            cache_write: record.cache_write.unwrap_or(0),
        },
        cost: record.cost.as_ref().and_then(|cost| cost.total).and_then(CostUsd::reported),
    }
}

pub(super) fn preview(text: &str) -> String {
    prefix(text, AgentEvent::PREVIEW).to_owned()
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(line: &str) -> (Kind, Vec<AgentEvent>) {
        let mut fast = Vec::new();
        let kind = decode_line(line.as_bytes(), &mut fast);
        let mut full = Vec::new();
        assert_eq!(kind, decode_fully(line.as_bytes(), &mut full), "{line}");
        assert_eq!(fast, full, "{line}");
        (kind, fast)
    }

    fn message_event(role: MessageRole, preview: &str) -> AgentEvent {
        AgentEvent::Message {
            role,
            preview: preview.into(),
            model: None,
            stop: None,
            usage: None,
            error: None,
            calls_tools: false,
        }
    }

    #[test]
    fn records() {
        let table = [
            (
                r#"{"type":"session","version":3,"id":"s1"}"#,
                vec![AgentEvent::SessionStarted { session_id: Some("s1".into()), model: None }],
            ),
            (r#"{"type":"agent_start"}"#, vec![AgentEvent::AgentStarted]),
            (r#"{"type":"turn_end","message":{"role":"assistant"},"toolResults":[{}]}"#, vec![AgentEvent::TurnEnded]),
            (r#"{"type":"message_start","message":{}}"#, vec![]),
            (r#"{"type":"message_end"}"#, vec![]),
            (
                r#"{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}"#,
                vec![message_event(MessageRole::User, "a\nb")],
            ),
            (
                r#"{"type":"message_end","message":{"role":"system","content":"x"}}"#,
                vec![message_event(MessageRole::System, "x")],
            ),
            (r#"{"type":"message_end","message":{"role":7,"content":9}}"#, vec![message_event(MessageRole::Other, "")]),
            (
                r#"{"type":"tool_result_end","message":{"content":["x",null]}}"#,
                vec![message_event(MessageRole::ToolResult, "x")],
            ),
            (
                r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"c"}],"model":"m","usage":{"inputTokens":1,"output":2.0,"cacheRead":3,"cacheWrite":-4,"cost":{"total":0.5}},"stopReason":"toolUse"}}"#,
                vec![AgentEvent::Message {
                    role: MessageRole::Assistant,
                    preview: String::new(),
                    model: Some("m".into()),
                    stop: Some(StopReason::ToolUse),
                    usage: Some(Usage {
                        tokens: Tokens { input: 1, output: 2, cache_read: 3, cache_write: 0 },
                        cost: Some(CostUsd(0.5)),
                    }),
                    error: None,
                    calls_tools: true,
                }],
            ),
            (
                r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"read","args":{"path":"p"}}"#,
                vec![AgentEvent::ToolStarted {
                    call: Some("c".into()),
                    tool: "read".into(),
                    args: "p".into(),
                    path: Some("p".into()),
                    about: Default::default(),
                }],
            ),
            (
                r#"{"type":"tool_execution_start","args":[1]}"#,
                vec![AgentEvent::ToolStarted {
                    call: None,
                    tool: "?".into(),
                    args: "[1]".into(),
                    path: None,
                    about: Default::default(),
                }],
            ),
            (
                r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","result":{"content":[{"type":"text","text":"no"}]},"isError":true}"#,
                vec![AgentEvent::ToolEnded {
                    call: Some("c".into()),
                    tool: Some("bash".into()),
                    outcome: ToolOutcome::Error,
                    preview: "no".into(),
                }],
            ),
            (
                r#"{"type":"tool_execution_end","result":"text","isError":"yes"}"#,
                vec![AgentEvent::ToolEnded {
                    call: None,
                    tool: None,
                    outcome: ToolOutcome::Ok,
                    preview: String::new(),
                }],
            ),
            (
                r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429"}"#,
                vec![AgentEvent::Retry { attempt: Some(1), max: Some(3), delay_ms: Some(2000), reason: "429".into() }],
            ),
            (r#"{"type":"auto_retry_end","success":true,"attempt":1}"#, vec![AgentEvent::RetryEnded { success: true }]),
            (
                r#"{"type":"queue_update","steering":["a",1],"followUp":["b"]}"#,
                vec![AgentEvent::Queue(QueueContents { steering: vec!["a".into()], follow_up: vec!["b".into()] })],
            ),
            (
                r#"{"id":"x","type":"response","command":"steer","success":false,"error":"no"}"#,
                vec![AgentEvent::Response {
                    id: Some("x".into()),
                    command: "steer".into(),
                    success: false,
                    error: Some("no".into()),
                }],
            ),
            (
                r#"{"id":"x","type":"response","command":"get_state","success":true,"data":{"model":{"id":"m","contextWindow":128000},"sessionId":"s"}}"#,
                vec![
                    AgentEvent::SessionStarted { session_id: Some("s".into()), model: Some("m".into()) },
                    AgentEvent::Window(Window { used: None, size: Some(128_000) }),
                    AgentEvent::Response {
                        id: Some("x".into()),
                        command: "get_state".into(),
                        success: true,
                        error: None,
                    },
                ],
            ),
            (
                r#"{"type":"agent_end","messages":[[]],"willRetry":true}"#,
                vec![AgentEvent::AgentEnded { will_retry: true }],
            ),
            (r#"{"type":"agent_end","willRetry":"true"}"#, vec![AgentEvent::AgentEnded { will_retry: false }]),
            (r#"{"type":"agent_settled","aborted":true}"#, vec![AgentEvent::Settled { aborted: true }]),
            (r#"{"type":"subagent.child.stderr","line":"x"}"#, vec![AgentEvent::Unparsed { stream: Stream::Err }]),
            (
                r#"{"type":"extension_ui_request","id":"u","method":"confirm","title":"Sure?"}"#,
                vec![AgentEvent::Asked(Box::new(crate::run::Asking {
                    id: "u".into(),
                    kind: crate::run::QuestionKind::Confirm,
                    text: "Sure?".into(),
                    ..Default::default()
                }))],
            ),
            (r#"{"type":"extension_ui_request","id":"u","method":"notify","message":"hi"}"#, vec![]),
            (r#" { "new" : {} , "type" : "brand_new" } "#, vec![AgentEvent::Unknown { kind: "brand_new".into() }]),
            // A repeated key, which a strict reader refuses.
            (r#"{"type":"agent_settled","aborted":1,"aborted":true}"#, vec![AgentEvent::Settled { aborted: true }]),
        ];
        for (line, expected) in table {
            let (kind, mut events) = decode(line);
            if let [AgentEvent::ToolStarted { about, .. }] = events.as_mut_slice() {
                assert_ne!(std::mem::take(about).fingerprint, 0, "{line}");
            }
            assert_eq!((kind, events), (Kind::Record, expected), "{line}");
        }
    }

    #[test]
    fn updates() {
        let table = [
            (
                r#"{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"h\u00e9"}}"#,
                3,
            ),
            (r#"{"assistantMessageEvent":{"delta":"ab","type":"text_delta"},"type":"message_update"}"#, 2),
            (r#"{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","delta":"abc"}}"#, 0),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_delta","delta":"{\"type\":\"text_delta\"}"}}"#,
                0,
            ),
            (r#"{"type":"message_update"}"#, 0),
        ];
        for (line, bytes) in table {
            assert_eq!(decode(line), (Kind::Update, vec![AgentEvent::TextDelta { bytes }]), "{line}");
        }
        for call in ["c1", "c\\\"1", "é"] {
            let line = format!(
                r#"{{"type":"tool_execution_update","toolCallId":"{call}","toolName":"bash","partialResult":{{}}}}"#
            );
            let expected = call.replace('\\', "");
            assert_eq!(
                decode(&line),
                (Kind::Progress, vec![AgentEvent::ToolProgress { call: Some(expected) }]),
                "{line}"
            );
        }
        assert_eq!(decode(r#"{"type":"tool_execution_update"}"#).1, vec![AgentEvent::ToolProgress { call: None }]);
    }

    #[test]
    fn text_is_text() {
        for line in [
            "",
            "hello",
            "42",
            "null",
            "[1]",
            r#""x""#,
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"agent_settled""#,
            "{broken}",
            "\u{1b}[31mred",
        ] {
            assert_eq!(decode(line), (Kind::Text, vec![]), "{line}");
        }
    }

    #[test]
    fn half_a_character_does_not_lose_a_record() {
        let line =
            r#"{"type":"message_end","message":{"role":"user","content":"a\ud83d \\ud83d \ud83d\ude42 \u00e9\udc00"}}"#;
        assert_eq!(decode(line).1, vec![message_event(MessageRole::User, "a\u{fffd} \\ud83d 🙂 é\u{fffd}")]);
        let mut out = Vec::new();
        decode_line(b"{\"type\":\"message_end\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}", &mut out);
        assert_eq!(out, vec![message_event(MessageRole::User, "\u{fffd}")]);
    }

    #[test]
    fn previews_are_bounded() {
        let text = "é".repeat(3000);
        let line = serde_json::json!({"type":"message_end","message":{"role":"assistant","content":text}}).to_string();
        let (_, events) = decode(&line);
        let [AgentEvent::Message { preview, .. }] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(preview.len(), AgentEvent::PREVIEW);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode_line(&line, &mut Vec::new());
        }

        #[test]
        fn the_short_way_agrees_with_the_full_parse(
            kind in prop_oneof![Just("message_update"), Just("tool_execution_update")],
            piece in prop_oneof![Just("text_delta"), Just("thinking_delta"), Just("text_end")],
            delta in ".{0,8}",
            call in "[a-z\"\\\\]{0,6}",
        ) {
            let text = |text: &str| serde_json::Value::from(text).to_string();
            let (call, delta) = (text(&call), text(&delta));
            let line = format!(
                r#"{{"type":"{kind}","toolCallId":{call},"assistantMessageEvent":{{"type":"{piece}","delta":{delta}}}}}"#
            );
            decode(&line);
        }
    }
}
