//! Events as records in pi's vocabulary: for records too long to be kept whole, and for what other agents say.

use serde_json::{Value, json};

use super::asked;
use crate::run::{AgentEvent, MessageRole, StopReason, SubAgentDid, ToolOutcome, Usage};

/// What stands in event logs where a prompt was (runner-behaviour 9).
pub(super) const REDACTED: &str = "[prompt redacted]";

/// The field of the record of a call that has all of its arguments, where `args` has only what is said of them in a line
/// (agents of another vocabulary than pi's).
pub const WHOLE_ARGS: &str = "subdeckArgs";

/// A record as a line of JSON, with its type first as in all records (run-directory 2.5).
#[must_use]
pub fn line_of(mut record: Value) -> String {
    let kind = record.as_object_mut().and_then(|map| map.shift_remove("type"));
    let fields = record.to_string();
    match (kind, fields.strip_prefix('{')) {
        (Some(kind), Some("}")) => format!("{{\"type\":{kind}}}"),
        (Some(kind), Some(rest)) => format!("{{\"type\":{kind},{rest}"),
        _ => fields,
    }
}

/// The record that decodes to this event; `None` for events that are never kept.
#[must_use]
pub fn encode(event: &AgentEvent) -> Option<Vec<u8>> {
    let record = match event {
        AgentEvent::SessionStarted { session_id, model } => match model {
            None => json!({"type": "session", "id": session_id}),
            Some(model) => json!({
                "type": "response", "command": "get_state", "success": true,
                "data": {"sessionId": session_id, "model": {"id": model}},
            }),
        },
        AgentEvent::AgentStarted => json!({"type": "agent_start"}),
        AgentEvent::TurnStarted => json!({"type": "turn_start"}),
        AgentEvent::TurnEnded => json!({"type": "turn_end"}),
        AgentEvent::Message { preview, .. } => return message(event, "", preview),
        AgentEvent::SubAgent { id, did } => {
            let did = match did {
                SubAgentDid::Started { name, about, model } => {
                    let mut did = json!({"did": "started", "name": name, "about": about});
                    set(&mut did, "model", model.as_deref().map(Value::from));
                    did
                }
                SubAgentDid::Called(call) => json!({"did": "called", "tool": call.tool, "args": call.args}),
                SubAgentDid::Returned => json!({"did": "returned"}),
                SubAgentDid::Said(text) => json!({"did": "said", "text": text}),
                SubAgentDid::Used(tokens) => json!({"did": "used", "tokens": tokens}),
                SubAgentDid::Ended(outcome) => json!({"did": "ended", "outcome": outcome.as_str()}),
            };
            json!({"type": "subdeck_subagent", "id": id, "subAgent": did})
        }
        AgentEvent::Used(usage) => json!({"type": "subdeck_usage", "usage": usage_value(usage)}),
        AgentEvent::Window(window) => {
            let mut told = json!({});
            set(&mut told, "used", window.used.map(Value::from));
            set(&mut told, "size", window.size.map(Value::from));
            json!({"type": "subdeck_window", "window": told})
        }
        AgentEvent::ToolStarted { .. } => return call_begins(event, &Value::Null),
        AgentEvent::ToolEnded { preview, .. } => return call_ends(event, preview),
        AgentEvent::Retry { attempt, max, delay_ms, reason } => json!({
            "type": "auto_retry_start", "attempt": attempt, "maxAttempts": max, "delayMs": delay_ms,
            "errorMessage": reason,
        }),
        AgentEvent::RetryEnded { success } => json!({"type": "auto_retry_end", "success": success}),
        AgentEvent::Queue(queue) => {
            json!({"type": "queue_update", "steering": queue.steering, "followUp": queue.follow_up})
        }
        AgentEvent::Response { id, command, success, error } => {
            let mut record = json!({"type": "response", "command": command, "success": success});
            set(&mut record, "id", id.as_deref().map(Value::from));
            set(&mut record, "error", error.as_deref().map(Value::from));
            record
        }
        AgentEvent::Asked(asking) => asked::record(asking),
        AgentEvent::Unasked { id } => json!({"type": "subdeck_unasked", "id": id}),
        AgentEvent::Unknown { kind } => json!({"type": "subdeck_unknown", "unknown": kind}),
        AgentEvent::AgentEnded { will_retry } => json!({"type": "agent_end", "willRetry": will_retry}),
        AgentEvent::Settled { aborted } => json!({"type": "agent_settled", "aborted": aborted}),
        AgentEvent::TextDelta { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::Called { .. }
        | AgentEvent::Unparsed { .. }
        | AgentEvent::ProtocolFailure { .. } => return None,
    };
    Some(line_of(record).into_bytes())
}

/// The record of a call that decodes to this event of its beginning: `args` is what the event says of its arguments, and
/// where that is not all, [`WHOLE_ARGS`] is the whole. `None` for an event that is none of a call that begins.
#[must_use]
pub fn call_begins(event: &AgentEvent, whole: &Value) -> Option<Vec<u8>> {
    let AgentEvent::ToolStarted { call, tool, args, path, about: _ } = event else { return None };
    let mut said = json!({});
    set(&mut said, "command", (!args.is_empty()).then(|| Value::from(args.as_str())));
    set(&mut said, "path", path.as_deref().map(Value::from));
    let more = *whole != said && !matches!(whole, Value::Null) && *whole != json!({});
    let mut record = json!({"type": "tool_execution_start"});
    set(&mut record, "toolCallId", call.as_deref().map(Value::from));
    set(&mut record, "toolName", Some(tool.as_str().into()));
    set(&mut record, "args", Some(said));
    set(&mut record, WHOLE_ARGS, more.then(|| whole.clone()));
    Some(line_of(record).into_bytes())
}

/// The record of a call that decodes to this event of its end: with all that the call gave in place of the beginning that
/// the event has. `None` for an event that is none of a call that ends.
#[must_use]
pub fn call_ends(event: &AgentEvent, gave: &str) -> Option<Vec<u8>> {
    let AgentEvent::ToolEnded { call, tool, outcome, preview: _ } = event else { return None };
    let content = if gave.is_empty() { vec![] } else { vec![json!({"type": "text", "text": gave})] };
    let mut record = json!({
        "type": "tool_execution_end",
        "result": {"content": content},
        "isError": *outcome != ToolOutcome::Ok,
    });
    set(&mut record, "toolCallId", call.as_deref().map(Value::from));
    set(&mut record, "toolName", tool.as_deref().map(Value::from));
    Some(line_of(record).into_bytes())
}

/// The record of a message that decodes to this event of it: with what was thought before it, and with all of its text
/// in place of the beginning that the event has. `None` for an event that is none of a message.
#[must_use]
pub fn message(event: &AgentEvent, thought: &str, text: &str) -> Option<Vec<u8>> {
    let AgentEvent::Message { role, preview: _, model, stop, usage, error, calls_tools } = event else { return None };
    let mut content = Vec::new();
    if !thought.trim().is_empty() {
        content.push(json!({"type": "thinking", "thinking": thought}));
    }
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    if *calls_tools {
        content.push(json!({"type": "toolCall"}));
    }
    let mut message = json!({"role": role_word(*role), "content": content});
    set(&mut message, "model", model.as_deref().map(Value::from));
    set(&mut message, "stopReason", stop.map(|stop| Value::from(stop_word(stop))));
    set(&mut message, "usage", usage.as_ref().map(usage_value));
    set(&mut message, "errorMessage", error.as_deref().map(Value::from));
    Some(line_of(json!({"type": "message_end", "message": message})).into_bytes())
}

fn set(record: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(map), Some(value)) = (record.as_object_mut(), value) {
        map.insert(key.to_owned(), value);
    }
}

fn usage_value(usage: &Usage) -> Value {
    let tokens = usage.tokens;
    let mut value = json!({
        "input": tokens.input, "output": tokens.output,
        "cacheRead": tokens.cache_read, "cacheWrite": tokens.cache_write,
    });
    set(&mut value, "cost", usage.cost.map(|cost| json!({"total": cost.0})));
    value
}

const fn role_word(role: MessageRole) -> &'static str {
    match role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::ToolResult => "toolResult",
        MessageRole::System => "system",
        MessageRole::Other => "other",
    }
}

const fn stop_word(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "stop",
        StopReason::ToolUse => "toolUse",
        StopReason::Length => "length",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::pi::decode_line;
    use crate::run::{CallFacts, CostUsd, QueueContents, SubCall, Tokens, Window};

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let assistant = AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: "text\n\"x\"".into(),
            model: Some("m".into()),
            stop: Some(StopReason::Length),
            usage: Some(Usage {
                tokens: Tokens { input: 1, output: 2, cache_read: 3, cache_write: 4 },
                cost: Some(CostUsd(0.25)),
            }),
            error: Some("e".into()),
            calls_tools: true,
        };
        let sub = |did| AgentEvent::SubAgent { id: "s".into(), did };
        let events = [
            AgentEvent::SessionStarted { session_id: Some("s".into()), model: None },
            AgentEvent::AgentStarted,
            AgentEvent::TurnStarted,
            AgentEvent::TurnEnded,
            assistant,
            AgentEvent::ToolStarted {
                call: Some("c".into()),
                tool: "read".into(),
                args: "a".into(),
                path: Some("p".into()),
                about: Default::default(),
            },
            AgentEvent::ToolStarted {
                call: None,
                tool: "wait".into(),
                args: String::new(),
                path: None,
                about: Default::default(),
            },
            AgentEvent::ToolEnded {
                call: None,
                tool: Some("t".into()),
                outcome: ToolOutcome::Error,
                preview: "p".into(),
            },
            sub(SubAgentDid::Started { name: "n".into(), about: "a".into(), model: Some("m".into()) }),
            sub(SubAgentDid::Called(SubCall { tool: "t".into(), args: "a".into() })),
            sub(SubAgentDid::Returned),
            sub(SubAgentDid::Said("s".into())),
            sub(SubAgentDid::Used(7)),
            sub(SubAgentDid::Ended(ToolOutcome::Cancelled)),
            AgentEvent::Retry { attempt: Some(1), max: None, delay_ms: Some(5), reason: "r".into() },
            AgentEvent::RetryEnded { success: true },
            AgentEvent::Queue(QueueContents { steering: vec!["a".into()], follow_up: vec![] }),
            AgentEvent::Used(Usage {
                tokens: Tokens { input: 1, output: 2, cache_read: 3, cache_write: 4 },
                cost: Some(CostUsd(0.5)),
            }),
            AgentEvent::Window(Window { used: Some(5), size: None }),
            AgentEvent::Window(Window { used: None, size: Some(9) }),
            AgentEvent::Response { id: Some("i".into()), command: "c".into(), success: false, error: Some("e".into()) },
            AgentEvent::Asked(Box::new(crate::run::Asking { id: "u".into(), text: "q".into(), ..Default::default() })),
            AgentEvent::Unasked { id: "u".into() },
            AgentEvent::Unknown { kind: "agent_start".into() },
            AgentEvent::AgentEnded { will_retry: true },
            AgentEvent::Settled { aborted: true },
        ];
        for event in events {
            let line = encode(&event).expect("kept");
            assert!(line.starts_with(b"{\"type\":\""), "{line:?}");
            let mut out = Vec::new();
            decode_line(&line, &mut out);
            // What a call is about is read from its arguments, of which only a preview is left.
            if let [AgentEvent::ToolStarted { about, .. }] = out.as_mut_slice() {
                *about = CallFacts::default();
            }
            assert_eq!(out, [event]);
        }
        assert_eq!(encode(&AgentEvent::TextDelta { bytes: 1 }), None);
    }
}
