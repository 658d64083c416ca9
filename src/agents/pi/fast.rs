//! Shortcuts for the records that make up most of a stream. Each takes only a line that has exactly the usual shape and
//! says what the full parse says; every other line goes the long way. Tests hold the two to each other.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

use crate::run::AgentEvent;

const MESSAGE_START: &[u8] = br#"{"type":"message_start","message":{"role":""#;
const TURN_END: &[u8] = br#"{"type":"turn_end""#;
const UPDATE: &[u8] = br#"{"type":"message_update","#;
const PROGRESS: &[u8] = br#"{"type":"tool_execution_update","toolCallId":""#;
const RESULT: &[u8] = br#"{"type":"message_end","message":{"role":"toolResult","toolCallId":""#;
const DELTA: &[u8] = br#""assistantMessageEvent":{"type":"text_delta","contentIndex":"#;
/// Prepared once: preparing it costs as much as a search in a short line.
static DELTA_FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(DELTA));
const DELTA_TEXT: &[u8] = br#","delta":"#;

/// A line whose meaning is known without parsing the whole of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known<'a> {
    /// A message begins.
    MessageStart {
        /// Who speaks.
        role: &'a str,
    },
    /// A turn ended; the record repeats its messages.
    TurnEnd,
    /// A piece of answer text.
    Delta {
        /// The content block.
        block: u64,
        /// The text.
        text: Cow<'a, str>,
    },
    /// A report of a running tool.
    Progress {
        /// The call.
        call: &'a str,
    },
    /// The long result of a tool that did not fail, as a message.
    Result {
        /// The call.
        call: &'a str,
        /// The beginning of its text, longer than any preview.
        beginning: String,
    },
}

/// Looks whether the line is one of those.
pub(super) fn known(line: &[u8]) -> Option<Known<'_>> {
    if !line.ends_with(b"}") {
        return None;
    }
    if line.starts_with(UPDATE) {
        return delta(line);
    }
    if let Some(rest) = line.strip_prefix(PROGRESS) {
        return plain(rest).map(|call| Known::Progress { call });
    }
    if let Some(rest) = line.strip_prefix(RESULT) {
        return result(rest);
    }
    if let Some(rest) = line.strip_prefix(MESSAGE_START) {
        return plain(rest).map(|role| Known::MessageStart { role });
    }
    // The next byte decides that the type ends here.
    (line.strip_prefix(TURN_END)?.first() == Some(&b',')).then_some(Known::TurnEnd)
}

fn delta(line: &[u8]) -> Option<Known<'_>> {
    let at = DELTA_FINDER.find(line)?;
    let rest = line.get(at + DELTA.len()..)?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let block = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
    let quoted = rest.get(digits..)?.strip_prefix(DELTA_TEXT)?.strip_suffix(b"}}")?;
    let text = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let text = if text.iter().any(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        // With a quotation mark in it that is not escaped it is no string, nor is anything with control characters.
        Cow::Owned(serde_json::from_slice(quoted).ok()?)
    } else {
        Cow::Borrowed(simdutf8::basic::from_utf8(text).ok()?)
    };
    Some(Known::Delta { block, text })
}

fn result(rest: &[u8]) -> Option<Known<'_>> {
    // The text before that key ends with a quotation mark, which no text has without a backslash before it, so what
    // follows stands outside of every text.
    let tail = rest.get(rest.len().checked_sub(120)?..)?;
    let end = tail.get(memmem::rfind(tail, br#"],"isError":false"#)? + br#"],"isError":false"#.len()..)?;
    let numbers = end.strip_suffix(b"}}")?;
    let number = |field: &[u8]| {
        let digits = field.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        digits > 0 && field.get(..field.len() - digits).is_some_and(|key| key.ends_with(b"\":"))
    };
    if !numbers.is_empty() && !numbers.strip_prefix(b",")?.split(|b| *b == b',').all(number) {
        return None;
    }
    let call = plain(rest)?;
    let rest = rest.get(call.len()..)?.strip_prefix(br#"","toolName":""#)?;
    let tool = plain(rest)?;
    let text = rest.get(tool.len()..)?.strip_prefix(br#"","content":[{"type":"text","text":"#)?;
    text.starts_with(b"\"").then_some(())?;
    Some(Known::Result { call, beginning: beginning(text)? })
}

/// The first part of a text that is longer than a preview; `None` for a shorter one.
fn beginning(quoted: &[u8]) -> Option<String> {
    let mut at = 1;
    // How many bytes it is at least without its escapes.
    let mut length = 0;
    while length <= AgentEvent::PREVIEW {
        let rest = quoted.get(at..)?;
        let run = memchr::memchr2(b'"', b'\\', rest)?;
        let escape = match rest.get(run..)? {
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => return None,
        };
        at += run + escape;
        length += run + 1;
    }
    let mut text = quoted.get(..at)?.to_vec();
    text.push(b'"');
    serde_json::from_slice(&text).ok()
}

/// The string that ends at the next quotation mark, if it holds no escape.
fn plain(rest: &[u8]) -> Option<&str> {
    let end = memchr::memchr2(b'"', b'\\', rest.get(..rest.len().min(300))?)?;
    (rest.get(end) == Some(&b'"')).then(|| std::str::from_utf8(rest.get(..end)?).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_the_usual_shape_are_taken() {
        let table: &[(&str, Option<Known<'_>>)] = &[
            (r#"{"type":"turn_end","message":{}}"#, Some(Known::TurnEnd)),
            (r#"{"type":"turn_end_soon","message":{}}"#, None),
            (r#"{"type":"turn_end"}"#, None),
            (
                r#"{"type":"message_start","message":{"role":"user","content":[]}}"#,
                Some(Known::MessageStart { role: "user" }),
            ),
            (r#"{"type":"message_start","message":{"role":"a\\u0062"}}"#, None),
            (
                r#"{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":3,"delta":"häh"}}"#,
                Some(Known::Delta { block: 3, text: "häh".into() }),
            ),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a\nb \"\u00e9"}}"#,
                Some(Known::Delta { block: 0, text: "a\nb \"é".into() }),
            ),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a","b":"c"}}"#,
                None,
            ),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"\q"}}"#,
                None,
            ),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"""}}"#,
                None,
            ),
            (
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a"},"more":1}"#,
                None,
            ),
            (
                r#"{"type":"tool_execution_update","toolCallId":"c1","toolName":"bash"}"#,
                Some(Known::Progress { call: "c1" }),
            ),
            (r#"{"type":"tool_execution_update","toolName":"bash"}"#, None),
            (r#"{"type":"message_start","message":{"role":"user"}"#, Some(Known::MessageStart { role: "user" })),
            (r#"{"type":"turn_end","message":"#, None),
        ];
        for (line, want) in table {
            assert_eq!(known(line.as_bytes()), *want, "{line}");
        }
    }

    #[test]
    fn long_results_of_tools_are_taken_by_their_beginning() {
        let line = |text: &str, end: &str| {
            let text = serde_json::Value::from(text);
            format!(
                r#"{{"type":"message_end","message":{{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{{"type":"text","text":{text}}}{end}"#
            )
        };
        let long = "a line with a \"word\", \u{1}, été and \u{1f642}\n".repeat(80);
        for end in [
            r#"],"isError":false}}"#,
            r#"],"isError":false,"durationMs":12,"timestamp":1795951460672}}"#,
            r#",{"type":"text","text":"more"}],"isError":false}}"#,
        ] {
            let line = line(&long, end);
            let Some(Known::Result { call: "c1", beginning }) = known(line.as_bytes()) else { panic!("{end}") };
            assert!(beginning.len() > AgentEvent::PREVIEW && long.starts_with(&beginning), "{beginning}");
            // The parse says the same.
            let mut found = Vec::new();
            super::super::decode::decode_line(line.as_bytes(), &mut found);
            let preview = super::super::decode::preview(&beginning);
            assert!(matches!(found.as_slice(), [AgentEvent::Message { preview: p, .. }] if *p == preview));
        }
        for (text, end) in [
            (long.as_str(), r#"],"isError":true}}"#),
            (&long, r#"],"isError":false,"isError":true}}"#),
            (&long, r#"],"isError":false,"details":{"isError":true}}}"#),
            (&long, r#"],"isError":false}"#),
            (r#""}],"isError":false}}"#, r#"],"isError":true}}"#),
            ("short", r#"],"isError":false}}"#),
        ] {
            let line = line(text, end);
            assert_eq!(known(line.as_bytes()), None, "{end}");
        }
    }
}
