//! Shortcuts for the records that make up most of a stream. Each takes only a line that has exactly the usual shape and
//! says what the full parse says; every other line goes the long way. Tests hold the two to each other.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

const MESSAGE_START: &[u8] = br#"{"type":"message_start","message":{"role":""#;
const TURN_END: &[u8] = br#"{"type":"turn_end""#;
const UPDATE: &[u8] = br#"{"type":"message_update","#;
const PROGRESS: &[u8] = br#"{"type":"tool_execution_update","toolCallId":""#;
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
        Cow::Borrowed(std::str::from_utf8(text).ok()?)
    };
    Some(Known::Delta { block, text })
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
}
