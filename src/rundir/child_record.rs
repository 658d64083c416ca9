//! The lines of children in `events.jsonl` (run-directory 2.5): annotated as they are, as text, and in the lean form
//! that is kept beyond the cap. Never parses a line that is kept whole.

use std::io::Write;

use super::json::Obj;
use super::records_read::type_of;
use crate::run::{AgentEvent, StepId, Stream, Timestamp};

/// The marker that child records were cut off at the cap (run-directory 2.5).
pub(super) fn truncated(cap: u64, dropped: &[u8]) -> Vec<u8> {
    let mut obj = Obj::new();
    obj.set("type", "subagent.events.truncated").set("maxBytes", cap);
    obj.opt("droppedEventType", type_of(dropped));
    obj.line()
}

/// Whose a child's line is.
#[derive(Clone, Copy, Debug)]
pub struct ChildContext<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The step.
    pub step: StepId,
    /// The agent's name.
    pub agent: &'a str,
}

/// Copies a JSON line of a child into `out` and puts the child annotation into it (run-directory 2.5), without parsing
/// it, and ends it with a line feed. Returns `false` and adds nothing when the line is no JSON object on the face of
/// it. The annotation stands last, so it wins over fields of that name that the child may have printed itself.
pub fn annotate(line: &[u8], child: &ChildContext<'_>, at: Timestamp, out: &mut Vec<u8>) -> bool {
    let Some(open) = line.trim_ascii().strip_suffix(b"}").filter(|l| l.starts_with(b"{")) else { return false };
    if memchr::memchr(b'\n', open).is_some() {
        return false;
    }
    let empty = open.get(1..).is_some_and(|rest| rest.trim_ascii().is_empty());
    out.extend_from_slice(open);
    if !empty {
        out.push(b',');
    }
    annotation(child, at, out);
    out.extend_from_slice(b"}\n");
    true
}

fn annotation(child: &ChildContext<'_>, at: Timestamp, out: &mut Vec<u8>) {
    let mut tail = Obj::new();
    tail.set("subagentSource", "child").set("subagentRunId", child.run_id).set("subagentStepIndex", child.step.flat());
    tail.set("subagentAgent", child.agent).set("observedAt", at);
    let bytes = tail.compact();
    // The braces of the object are those of the line.
    out.extend_from_slice(bytes.get(1..bytes.len().saturating_sub(1)).unwrap_or_default());
}

/// Longest line of plain output that is recorded, in bytes; logs hold the whole.
const PLAIN_MOST: usize = 16 * 1024;

/// A line of a child's output that is no JSON (`subagent.child.stdout`, `.stderr`), with its line feed.
pub fn plain_line(line: &[u8], stream: Stream, child: &ChildContext<'_>, at: Timestamp, out: &mut Vec<u8>) {
    let kind = if stream == Stream::Err { "stderr" } else { "stdout" };
    let line = line.get(..line.len().min(PLAIN_MOST)).unwrap_or_default();
    let mut obj = Obj::new();
    obj.set("type", format!("subagent.child.{kind}")).set("line", String::from_utf8_lossy(line).into_owned());
    let mut bytes = obj.compact();
    bytes.pop();
    bytes.push(b',');
    annotation(child, at, &mut bytes);
    bytes.extend_from_slice(b"}\n");
    // Writing into memory cannot fail.
    let _ = out.write_all(&bytes);
}

/// What is put into a child's line.
const ANNOTATION: [&str; 5] = ["subagentSource", "subagentRunId", "subagentStepIndex", "subagentAgent", "observedAt"];

/// Whether the line is of a type that nobody knows, which is counted.
fn is_unknown(line: &[u8]) -> bool {
    let mut said = Vec::new();
    super::child::decode_line(line, &mut said);
    said.iter().any(|event| matches!(event, AgentEvent::Unknown { .. }))
}

/// Longest text that a lean record keeps, in bytes.
const LEAN_TEXT: usize = 200;

/// The lean form of an annotated child line that bears state, for use beyond the cap: texts are cut, everything else
/// stays. `None` for records without meaning for the state (law 5).
pub(super) fn lean(line: &[u8]) -> Option<Vec<u8>> {
    const BEARING: [&str; 18] = [
        "session",
        "agent_start",
        "agent_end",
        "agent_settled",
        "turn_start",
        "turn_end",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "auto_retry_start",
        "auto_retry_end",
        "queue_update",
        "response",
        "extension_ui_request",
        "subdeck_usage",
        "subdeck_window",
        "subdeck_subagent",
        "model_change",
    ];
    let known = BEARING.contains(&type_of(line)?.as_str());
    if !known && !is_unknown(line) {
        return None;
    }
    let mut value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let object = value.as_object_mut()?;
    if !known {
        // It is counted by its type alone.
        object.retain(|key, _| ANNOTATION.contains(&key.as_str()) || matches!(key.as_str(), "type" | "unknown"));
    }
    // What a turn or an agent repeats of its messages was recorded when they ended.
    for repeated in ["messages", "toolResults", "partialResult"] {
        object.shift_remove(repeated);
    }
    let kind = object.get("type")?.clone();
    cut(&mut value);
    let object = value.as_object_mut()?;
    let annotation: Vec<(String, serde_json::Value)> =
        ANNOTATION.into_iter().filter_map(|key| Some((key.to_owned(), object.shift_remove(key)?))).collect();
    object.shift_remove("type");
    // The type stands first and the annotation last, as in every other record.
    let mut lean = format!("{{\"type\":{kind}").into_bytes();
    for (key, value) in object.iter().map(|(k, v)| (k.clone(), v.clone())).chain(annotation) {
        let _ = write!(lean, ",{}:{value}", serde_json::Value::String(key));
    }
    lean.extend_from_slice(b"}\n");
    Some(lean)
}

fn cut(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.len() > LEAN_TEXT => {
            let end = (0..=LEAN_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(cut),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(cut),
        _ => {}
    }
}
