//! Finds a few facts in a JSON object that is too long to be kept, in constant memory, while its bytes pass by. It owns
//! that scan; it never validates more than the nesting, because a long line must not end a child.

/// What was found at the top of an object: enough to know what kind of record it was and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `type`.
    pub kind: Option<String>,
    /// `toolCallId`.
    pub call: Option<String>,
    /// `toolName`.
    pub tool: Option<String>,
    /// `message.role`.
    pub role: Option<String>,
    /// `message.stopReason`.
    pub stop: Option<String>,
    /// `isError` or `is_error`.
    pub is_error: Option<bool>,
    /// `willRetry`.
    pub will_retry: Option<bool>,
    /// `aborted`.
    pub aborted: Option<bool>,
}

/// Longest key or value that is looked at, in bytes.
const LONGEST: usize = 256;

/// A scanner over the bytes of one object.
#[derive(Debug, Default)]
pub(super) struct Skim {
    depth: u32,
    /// Whether the containers at depth 1 and 2 are objects; deeper ones do not matter.
    in_message: bool,
    string: Option<StringPart>,
    word: Vec<u8>,
    key: Vec<u8>,
    /// The next string is a value, not a key.
    after_colon: bool,
    done: bool,
    broken: bool,
    facts: Facts,
}

#[derive(Debug, Default)]
struct StringPart {
    escaped: bool,
    /// The text so far; `None` once it is too long or holds an escape, which no value of interest does.
    text: Option<Vec<u8>>,
}

impl Skim {
    /// Takes more of the line.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            if self.string.is_some() {
                // Most of a long line is inside strings; whole runs are skipped at once.
                rest = self.in_string(rest);
                continue;
            }
            rest = tail;
            self.structure(*byte);
        }
    }

    fn in_string<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(part) = &mut self.string else { return bytes };
        if part.escaped {
            part.escaped = false;
            return bytes.get(1..).unwrap_or_default();
        }
        let Some(at) = memchr::memchr2(b'"', b'\\', bytes) else {
            part.extend(bytes);
            return &[];
        };
        let (run, rest) = bytes.split_at(at);
        part.extend(run);
        if rest.first() == Some(&b'\\') {
            part.escaped = true;
            part.text = None;
        } else {
            let text = self.string.take().and_then(|p| p.text).unwrap_or_default();
            self.string_ended(text);
        }
        rest.get(1..).unwrap_or_default()
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => self.string = Some(StringPart { escaped: false, text: Some(Vec::new()) }),
            b'{' | b'[' => {
                if self.done || (self.depth == 0 && byte == b'[') {
                    self.broken = true;
                }
                self.depth += 1;
                if self.depth == 2 {
                    self.in_message = byte == b'{' && self.key == b"message";
                }
                self.after_colon = false;
            }
            b'}' | b']' => {
                self.word_ended();
                match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => self.broken = true,
                }
                self.done = self.depth == 0;
                self.after_colon = false;
            }
            b':' => self.after_colon = true,
            b',' => {
                self.word_ended();
                self.after_colon = false;
            }
            _ if byte.is_ascii_whitespace() => {}
            _ if self.depth == 0 => self.broken = true,
            _ => {
                if self.word.len() < 8 {
                    self.word.push(byte);
                }
            }
        }
    }

    fn string_ended(&mut self, text: Vec<u8>) {
        if self.depth == 0 {
            self.broken = true;
        } else if self.depth > 2 || (self.depth == 2 && !self.in_message) {
            // Too deep to be of interest.
        } else if !self.after_colon {
            self.key = text;
        } else if let Ok(text) = String::from_utf8(text) {
            let slot = match (self.depth, self.key.as_slice()) {
                (1, b"type") => &mut self.facts.kind,
                (1, b"toolCallId") => &mut self.facts.call,
                (1, b"toolName") => &mut self.facts.tool,
                (2, b"role") => &mut self.facts.role,
                (2, b"stopReason") => &mut self.facts.stop,
                _ => return,
            };
            *slot = Some(text);
        }
    }

    fn word_ended(&mut self) {
        let word = std::mem::take(&mut self.word);
        let value = match word.as_slice() {
            b"true" => true,
            b"false" => false,
            _ => return,
        };
        if self.depth == 1 {
            match self.key.as_slice() {
                b"isError" | b"is_error" => self.facts.is_error = Some(value),
                b"willRetry" => self.facts.will_retry = Some(value),
                b"aborted" => self.facts.aborted = Some(value),
                _ => {}
            }
        }
    }

    /// The facts, if the line was one object from its first to its last byte.
    pub(super) fn finish(&mut self) -> Option<Facts> {
        let whole = self.done && !self.broken && self.depth == 0 && self.string.is_none();
        whole.then(|| std::mem::take(&mut self.facts))
    }
}

impl StringPart {
    fn extend(&mut self, run: &[u8]) {
        match &mut self.text {
            Some(text) if text.len() + run.len() <= LONGEST => text.extend_from_slice(run),
            text => *text = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(line: &str) -> Option<Facts> {
        let mut whole = Skim::default();
        whole.feed(line.as_bytes());
        let mut bytewise = Skim::default();
        for byte in line.as_bytes() {
            bytewise.feed(&[*byte]);
        }
        let found = whole.finish();
        assert_eq!(found, bytewise.finish(), "{line}");
        found
    }

    #[test]
    fn facts_at_the_top_only() {
        let found = skim(
            r#" {"type":"agent_end","messages":[{"type":"no","willRetry":false,"text":"\"}]\\"},[[]]],"willRetry":true} "#,
        );
        let found = found.expect("an object");
        assert_eq!(found.kind.as_deref(), Some("agent_end"));
        assert_eq!(found.will_retry, Some(true));
        let found = skim(
            r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[],"isError":false},"isError":true}"#,
        )
        .expect("an object");
        assert_eq!(
            (found.call.as_deref(), found.tool.as_deref(), found.is_error),
            (Some("c1"), Some("read"), Some(true))
        );
        let found = skim(
            r#"{"type":"message_end","message":{"role":"assistant","content":[{"role":"x"}],"usage":{"role":"y"},"stopReason":"stop"}}"#,
        )
        .expect("an object");
        assert_eq!((found.role.as_deref(), found.stop.as_deref()), (Some("assistant"), Some("stop")));
    }

    #[test]
    fn what_is_not_one_object_has_no_facts() {
        for line in [
            "",
            "yyyy",
            r#"{"type":"agent_end""#,
            r#"{"type":"agent_end"}}"#,
            r#"{"a":1}{"b":2}"#,
            "[1]",
            r#""x""#,
            r#"{"a":"x}"#,
        ] {
            assert_eq!(skim(line), None, "{line}");
        }
    }
}
