//! One record of the event log in full, for a person who wants to see it: events carry previews with a bound, records
//! have everything (run-directory 2.5).

use std::io;
use std::os::unix::fs::FileExt;

use serde_json::Value;

use super::child::whole_args;
use super::{RunDir, open};

/// As much of a record is read; what is longer is cut and cannot be understood any more, only shown.
const MOST: usize = 4 * 1024 * 1024;
/// As much of a text in it is given.
const TEXT_MOST: usize = 256 * 1024;

/// What a part of a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something that was said.
    Said,
    /// What the model thought before it spoke.
    Thought,
    /// A call with all its arguments.
    Call(String),
    /// What a call gave.
    Result,
}

/// A part of a record: texts from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: String,
}

/// Reads the record that begins at this place of the event log.
///
/// # Errors
/// What the file system says; `NotFound` when nothing begins there.
pub fn read(dir: &RunDir, place: u64) -> io::Result<Vec<u8>> {
    let file = open::regular(&dir.events())?;
    let mut line = Vec::new();
    // Most records are short, and a search reads very many.
    let mut chunk = vec![0; 8 * 1024];
    while line.len() < MOST {
        if line.len() == chunk.len() {
            chunk.resize(64 * 1024, 0);
        }
        let read = file.read_at(&mut chunk, place + line.len() as u64)?;
        let new = chunk.get(..read).unwrap_or_default();
        match memchr::memchr(b'\n', new) {
            Some(end) => {
                line.extend_from_slice(new.get(..end).unwrap_or_default());
                return Ok(line);
            }
            None if read == 0 => break,
            None => line.extend_from_slice(new),
        }
    }
    if line.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(line) }
}

/// A record as indented JSON, line by line; one that is no JSON as it is.
#[must_use]
pub fn pretty(line: &[u8]) -> Vec<String> {
    match serde_json::from_slice::<Value>(line).and_then(|value| serde_json::to_string_pretty(&value)) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(_) => vec![cut(&String::from_utf8_lossy(line))],
    }
}

/// What a record of a message or of a call says, part by part; nothing for other records.
#[must_use]
pub fn parts(line: &[u8]) -> Vec<Part> {
    let Ok(record) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
    let text = |value: &Value| value.as_str().map(cut);
    match record.get("type").and_then(Value::as_str) {
        Some("tool_execution_start") => {
            let tool = record.get("toolName").and_then(text).unwrap_or_default();
            vec![Part { kind: Kind::Call(tool), text: arguments(record.as_object().and_then(whole_args)) }]
        }
        Some("tool_execution_end") => {
            let result = record.get("result").and_then(|r| r.get("content"));
            result.map(|content| content_parts(content, true)).unwrap_or_default()
        }
        Some("message_end") => {
            let message = record.get("message");
            let is_result = message.and_then(|m| m.get("role")).and_then(Value::as_str) == Some("toolResult");
            message.and_then(|m| m.get("content")).map(|c| content_parts(c, is_result)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn content_parts(content: &Value, is_result: bool) -> Vec<Part> {
    let said = if is_result { Kind::Result } else { Kind::Said };
    if let Some(text) = content.as_str() {
        return vec![Part { kind: said, text: cut(text) }];
    }
    let of = |part: &Value| {
        let field = |name: &str| part.get(name).and_then(Value::as_str).map(cut);
        match part.get("type").and_then(Value::as_str)? {
            "text" => Some(Part { kind: said.clone(), text: field("text")? }),
            "thinking" => Some(Part { kind: Kind::Thought, text: field("thinking")? }),
            "toolCall" => Some(Part { kind: Kind::Call(field("name")?), text: arguments(part.get("arguments")) }),
            // An image or whatever else there may be is named and not shown.
            other => Some(Part { kind: said.clone(), text: format!("({other})") }),
        }
    };
    content.as_array().into_iter().flatten().filter_map(of).collect()
}

/// The arguments of a call: one a line where there are names, with texts as they are, and what is in one of them below it.
fn arguments(value: Option<&Value>) -> String {
    cut(&value.map(readable).unwrap_or_default())
}

fn readable(value: &Value) -> String {
    let below = |text: &str| text.trim_end().replace('\n', "\n  ");
    let lines: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Object(fields) if !fields.is_empty() => {
            let named = |(name, value): (&String, &Value)| {
                let text = if value.is_null() { "null".to_owned() } else { readable(value) };
                let nested = matches!(value, Value::Object(_) | Value::Array(_)) && !text.starts_with(['[', '{']);
                if nested || text.contains('\n') {
                    format!("{name}:\n  {}", below(&text))
                } else {
                    format!("{name}: {text}")
                }
            };
            // A text and the one in its place are told as what goes and what comes.
            let Some([old, new]) = changed(fields) else {
                return fields.iter().map(named).collect::<Vec<_>>().join("\n");
            };
            let others = fields.iter().filter(|(name, _)| *name != old && *name != new).map(named);
            others.chain(change(fields, old, '-')).chain(change(fields, new, '+')).collect()
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(is_change) => items.iter().map(readable).collect(),
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| format!("- {}", below(&readable(item)))).collect()
        }
        other => vec![other.to_string()],
    };
    lines.join("\n")
}

/// What agents call the text that goes and the one that comes in its place.
const CHANGES: [[&str; 2]; 5] = [
    ["old_string", "new_string"],
    ["oldText", "newText"],
    ["old_text", "new_text"],
    ["old_str", "new_str"],
    ["old", "new"],
];

/// The names under which these arguments hold a text and the one in its place, if they do.
fn changed(fields: &serde_json::Map<String, Value>) -> Option<[&'static str; 2]> {
    CHANGES.into_iter().find(|names| names.iter().all(|name| fields.get(*name).is_some_and(Value::is_string)))
}

/// Whether it is such a change.
fn is_change(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| changed(fields).is_some())
}

/// The lines of a text, each with its mark.
fn change(fields: &serde_json::Map<String, Value>, name: &str, mark: char) -> Vec<String> {
    let text = fields.get(name).and_then(Value::as_str).unwrap_or_default();
    text.lines().map(|line| format!("{mark} {line}")).collect()
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT_MOST {
        return text.to_owned();
    }
    let end = (0..=TEXT_MOST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n… cut, {} bytes in all", text.get(..end).unwrap_or_default(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: Kind, text: &str) -> Part {
        Part { kind, text: text.to_owned() }
    }

    #[test]
    fn a_record_is_read_whole_from_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let long = "x".repeat(200_000);
        std::fs::write(dir.events(), format!("{{\"a\":1}}\n{{\"b\":\"{long}\"}}\nrest")).unwrap();
        assert_eq!(read(&dir, 0).unwrap(), b"{\"a\":1}");
        assert_eq!(read(&dir, 8).unwrap().len(), 200_000 + 8);
        assert_eq!(read(&dir, 8 + 200_009).unwrap(), b"rest");
        assert_eq!(read(&dir, 1_000_000).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_edit_is_told_as_what_goes_and_what_comes() {
        let told = |args: &str| {
            let line = format!("{{\"type\":\"tool_execution_start\",\"toolName\":\"edit\",\"args\":{args}}}");
            parts(line.as_bytes()).remove(0).text
        };
        let one = r#"{"new_string":"c","old_string":"a\nb","path":"x.rs"}"#;
        assert_eq!(told(one), "path: x.rs\n- a\n- b\n+ c");
        let many = r#"{"path":"x.rs","edits":[{"oldText":"a","newText":"b"},{"oldText":"c","newText":""}]}"#;
        assert_eq!(told(many), "path: x.rs\nedits:\n  - a\n  + b\n  - c");
        // Half of one is what it is.
        assert_eq!(told(r#"{"old":"a","path":"x.rs"}"#), "old: a\npath: x.rs");
    }

    #[test]
    fn messages_and_calls_come_in_parts() {
        let message = br#"{"type":"message_end","message":{"role":"assistant","content":[
            {"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"image","data":"..."},
            {"type":"toolCall","name":"bash","arguments":{"command":"ls\nps","wait":2}}]}}"#;
        let expected = [
            part(Kind::Thought, "hm"),
            part(Kind::Said, "I look."),
            part(Kind::Said, "(image)"),
            part(Kind::Call("bash".to_owned()), "command:\n  ls\n  ps\nwait: 2"),
        ];
        assert_eq!(parts(message), expected);
        let patch = br#"{"type":"tool_execution_start","toolName":"patch","args":{"command":"a.txt"},"subdeckArgs":{
            "changes":[{"path":"a.txt","kind":{"type":"add"},"diff":"one\ntwo\n"},{"path":"b"}],"none":[],"no":null}}"#;
        let text = "changes:\n  - path: a.txt\n    kind:\n      type: add\n    diff:\n      one\n      two\n  - path: b\n\
            none: []\nno: null";
        assert_eq!(parts(patch), [part(Kind::Call("patch".to_owned()), text)]);
        let ended = br#"{"type":"tool_execution_end","result":{"content":[{"type":"text","text":"two\nlines"}]}}"#;
        assert_eq!(parts(ended), [part(Kind::Result, "two\nlines")]);
        let plain = br#"{"type":"message_end","message":{"role":"user","content":"do it"}}"#;
        assert_eq!(parts(plain), [part(Kind::Said, "do it")]);
        for odd in [
            &b"no json"[..],
            b"{}",
            b"[]",
            br#"{"type":"message_end"}"#,
            br#"{"type":"message_end","message":{"content":[1,{"type":"text"}]}}"#,
        ] {
            assert_eq!(parts(odd), [], "{}", String::from_utf8_lossy(odd));
        }
    }

    #[test]
    fn json_is_indented_and_anything_else_is_shown_as_it_is() {
        assert_eq!(pretty(b"{\"a\":[1]}"), ["{", "  \"a\": [", "    1", "  ]", "}"]);
        assert_eq!(pretty(b"{\"a\":"), ["{\"a\":"]);
    }

    #[test]
    fn a_text_without_end_is_cut_at_a_letter() {
        let text = cut(&"é".repeat(TEXT_MOST));
        assert!(text.len() < TEXT_MOST + 64 && text.ends_with(&format!("… cut, {} bytes in all", TEXT_MOST * 2)));
    }
}
