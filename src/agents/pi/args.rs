//! What can be said of a tool call in one line: a preview of its arguments, and the path that it works on
//! (runner-behaviour 4.5).

use serde_json::{Map, Value};

use super::about::about;
use crate::run::{AgentEvent, CallFacts};
use crate::text::prefix;

/// Arguments whose text says it all, in the order of preference.
const SPEAKING: [&str; 8] = ["command", "path", "file_path", "file", "filename", "pattern", "query", "url"];
/// Arguments that name the path a call works on (runner-behaviour 4.5).
const PATHS: [&str; 6] = ["path", "file", "filename", "target", "cwd", "file_path"];
/// Tools whose command line is looked at for the file it writes.
const SHELLS: [&str; 3] = ["bash", "shell", "sh"];

/// What can be said of a call.
#[derive(Debug)]
pub(in crate::agents) struct Described {
    /// A preview of its arguments, in one line.
    pub(in crate::agents) args: String,
    /// The path that it works on.
    pub(in crate::agents) path: Option<String>,
    /// What it is about.
    pub(in crate::agents) about: CallFacts,
}

/// Describes a call.
pub(in crate::agents) fn describe(tool: &str, args: Option<&str>) -> Described {
    let parsed = args.and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok());
    let about = about(tool, args, parsed.as_ref());
    match parsed {
        Some(map) => Described { args: preview(&map), path: path(tool, &map), about },
        None => {
            let args = args.filter(|json| *json != "null").map_or_else(String::new, one_line);
            Described { args, path: None, about }
        }
    }
}

fn preview(map: &Map<String, Value>) -> String {
    for key in SPEAKING {
        if let Some(text) = filled(map, key) {
            return one_line(text);
        }
    }
    let mut out = String::new();
    for (key, value) in map {
        if !out.is_empty() {
            out.push(' ');
        }
        match value {
            Value::String(text) => out.push_str(&format!("{key}={text}")),
            other => out.push_str(&format!("{key}={other}")),
        }
        if out.len() > AgentEvent::ARGS_PREVIEW {
            break;
        }
    }
    one_line(&out)
}

fn path(tool: &str, map: &Map<String, Value>) -> Option<String> {
    if SHELLS.contains(&tool) {
        let command = filled(map, "command").or_else(|| filled(map, "cmd"));
        if let Some(target) = command.and_then(written_file) {
            return Some(prefix(&target, AgentEvent::ARGS_PREVIEW).to_owned());
        }
    }
    PATHS.iter().find_map(|key| filled(map, key)).map(|text| prefix(text, AgentEvent::ARGS_PREVIEW).to_owned())
}

fn filled<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// The file that a shell command writes, as far as a look at its words can tell: the target of an unquoted `>` or `>>`,
/// or the first operand of `tee`.
fn written_file(command: &str) -> Option<String> {
    let words = words(command);
    let mut words = words.iter().map(|word| (word.0.as_str(), word.1)).peekable();
    while let Some((word, quoted)) = words.next() {
        if quoted {
            continue;
        }
        if word == "tee" {
            let target = words.find(|(operand, quoted)| *quoted || !operand.starts_with('-'));
            return target.map(|(operand, _)| operand.to_owned()).filter(|operand| !is_operator(operand));
        }
        if word == ">"
            && let Some((target, quoted)) = words.peek()
        {
            let device = target.starts_with("/dev/") || (!quoted && (target.starts_with('&') || is_operator(target)));
            if !device {
                return Some((*target).to_owned());
            }
        }
    }
    None
}

fn is_operator(word: &str) -> bool {
    matches!(word, "|" | "&&" | "||" | ";" | ">" | "<" | "&")
}

/// Splits a command line into words and operators; the flag says that a word was quoted. `>` and `>>`, with or without
/// a file descriptor before them, become `>`.
pub(in crate::agents) fn words(command: &str) -> Vec<(String, bool)> {
    let mut out: Vec<(String, bool)> = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = command.chars().peekable();
    let mut flush = |word: &mut String, quoted: &mut bool, operator: Option<&str>| {
        let descriptor = operator == Some(">") && !*quoted && word.chars().all(|c| c.is_ascii_digit() || c == '&');
        if (!word.is_empty() || *quoted) && !descriptor {
            out.push((std::mem::take(word), *quoted));
        }
        word.clear();
        *quoted = false;
        if let Some(operator) = operator {
            out.push((operator.to_owned(), false));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                quoted = true;
                while let Some(inner) = chars.next() {
                    match inner {
                        _ if inner == c => break,
                        '\\' if c == '"' => word.extend(chars.next()),
                        _ => word.push(inner),
                    }
                }
            }
            '\\' => word.extend(chars.next()),
            '>' => {
                chars.next_if_eq(&'>');
                flush(&mut word, &mut quoted, Some(">"));
                if chars.next_if_eq(&'&').is_some() {
                    word.push('&');
                }
            }
            '|' | ';' | '<' | '\n' => flush(&mut word, &mut quoted, Some(";")),
            _ if c.is_whitespace() => flush(&mut word, &mut quoted, None),
            _ => word.push(c),
        }
    }
    flush(&mut word, &mut quoted, None);
    out
}

/// One line of at most [`AgentEvent::ARGS_PREVIEW`] bytes: runs of white space become one blank.
fn one_line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > AgentEvent::ARGS_PREVIEW {
            break;
        }
    }
    prefix(&out, AgentEvent::ARGS_PREVIEW).to_owned()
}

/// The end of a text, at most `limit` bytes, cut between two characters.
pub(in crate::agents) fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_and_paths() {
        let table: &[(&str, &str, &str, Option<&str>)] = &[
            ("bash", r#"{"command":"echo one;\n  sleep 1"}"#, "echo one; sleep 1", None),
            ("bash", r#"{"cmd":"wrong key"}"#, "cmd=wrong key", None),
            ("bash", r#"{"command":"ls > out.txt"}"#, "ls > out.txt", Some("out.txt")),
            ("bash", r#"{"command":"ls 2>&1 >> 'my file'"}"#, "ls 2>&1 >> 'my file'", Some("my file")),
            ("bash", r#"{"command":"ls 2>/dev/null"}"#, "ls 2>/dev/null", None),
            ("bash", r#"{"command":"echo 'a > b'","cwd":"/src"}"#, "echo 'a > b'", Some("/src")),
            ("bash", r#"{"command":"date | tee -a log/x | cat"}"#, "date | tee -a log/x | cat", Some("log/x")),
            ("bash", r#"{"command":"tee"}"#, "tee", None),
            ("bash", r#"{"command":">"}"#, ">", None),
            ("read", r#"{"offset":3,"path":"src/a.rs"}"#, "src/a.rs", Some("src/a.rs")),
            ("edit", r#"{"path":"","file":"b"}"#, "b", Some("b")),
            ("grep", r#"{"pattern":"fn main","path":"src"}"#, "src", Some("src")),
            ("no_such_tool", r#"{"x":1,"y":[true]}"#, "x=1 y=[true]", None),
            ("read", r#""text""#, "\"text\"", None),
            ("read", "null", "", None),
            ("read", "{}", "", None),
        ];
        for (tool, args, preview, path) in table {
            let got = describe(tool, Some(args));
            assert_eq!((got.args.as_str(), got.path.as_deref()), (*preview, *path), "{args}");
        }
        assert_eq!(describe("x", None).args, "");
    }

    #[test]
    fn previews_are_bounded() {
        let args = serde_json::json!({ "command": "漢".repeat(500) }).to_string();
        let preview = describe("bash", Some(&args)).args;
        assert!(preview.len() <= AgentEvent::ARGS_PREVIEW && preview.len() > AgentEvent::ARGS_PREVIEW - 3);
    }
}
