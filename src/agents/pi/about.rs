//! What a tool call is about beyond its preview: whether it changes files, whether it waits for a supervisor, and
//! whether it is the same call as another one (runner-behaviour 4.3, 4.6).

use serde_json::{Map, Value};

use super::args::words;
use crate::run::CallFacts;

/// Tools that change files by their very name.
const CHANGING: [&str; 10] = [
    "edit",
    "write",
    "multi_edit",
    "multiedit",
    "apply_patch",
    "patch",
    "str_replace",
    "create_file",
    "write_file",
    "notebook_edit",
];
/// Commands that change files.
const COMMANDS: [&str; 9] = ["rm", "mv", "cp", "mkdir", "touch", "tee", "patch", "rmdir", "ln"];
/// Git's words that change the tree, the index or somebody else's copy.
const GIT: [&str; 4] = ["add", "commit", "push", "apply"];
/// The words before a command that are no command themselves.
const BEFORE: [&str; 5] = ["sudo", "env", "time", "nice", "command"];

/// What a call is about.
pub(super) fn about(tool: &str, json: Option<&str>, args: Option<&Map<String, Value>>) -> CallFacts {
    CallFacts {
        fingerprint: fingerprint(tool, json.unwrap_or_default()),
        mutates: mutates(tool, args),
        asks: asks(tool, args),
    }
}

/// FNV-1a: the same in every version of this program, so that a log read again says the same.
fn fingerprint(tool: &str, json: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in tool.bytes().chain([0]).chain(json.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn text<'a>(args: Option<&'a Map<String, Value>>, key: &str) -> Option<&'a str> {
    args.and_then(|map| map.get(key)).and_then(Value::as_str)
}

fn mutates(tool: &str, args: Option<&Map<String, Value>>) -> bool {
    let lower = tool.to_ascii_lowercase();
    if CHANGING.contains(&lower.as_str()) {
        return true;
    }
    let shell = matches!(lower.as_str(), "bash" | "shell" | "sh");
    shell && text(args, "command").or_else(|| text(args, "cmd")).is_some_and(command_mutates)
}

/// Whether a command line changes files, as far as its words tell: an unquoted redirection into a file, or a command
/// that is known for it.
fn command_mutates(line: &str) -> bool {
    let words = words(line);
    let mut head = true;
    let mut command = "";
    let mut rest = words.iter().peekable();
    while let Some((word, quoted)) = rest.next() {
        if !quoted && matches!(word.as_str(), ";" | "&&" | "||" | "|" | "&") {
            head = true;
            continue;
        }
        if !quoted && word == ">" {
            let target = rest.peek().map_or("", |(target, _)| target.as_str());
            if !target.starts_with("/dev/") && !target.starts_with('&') && !target.is_empty() {
                return true;
            }
            continue;
        }
        if head {
            let name = word.rsplit('/').next().unwrap_or(word);
            let assignment =
                word.split_once('=').is_some_and(|(n, _)| n.chars().all(|c| c.is_alphanumeric() || c == '_'));
            if BEFORE.contains(&name) || assignment {
                continue;
            }
            if COMMANDS.contains(&name) {
                return true;
            }
            head = false;
            command = name;
            continue;
        }
        let changes = match command {
            "git" => GIT.contains(&word.as_str()),
            "sed" | "perl" => word.starts_with("-i") || word.starts_with("-pi") || word == "--in-place",
            _ => false,
        };
        if changes {
            return true;
        }
    }
    false
}

fn asks(tool: &str, args: Option<&Map<String, Value>>) -> bool {
    match tool {
        "contact_supervisor" => matches!(text(args, "reason"), Some("need_decision" | "interview_request")),
        "intercom" => text(args, "action") == Some("ask"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(tool: &str, json: &str) -> CallFacts {
        let map: Map<String, Value> = serde_json::from_str(json).unwrap();
        about(tool, Some(json), Some(&map))
    }

    #[test]
    fn calls_that_change_files_are_known() {
        for (command, want) in [
            ("ls -l", false),
            ("cargo test 2>&1 | tail -3", false),
            ("echo hi > out.txt", true),
            ("echo 'a > b'", false),
            ("cmd 2>/dev/null", false),
            ("cd x && rm -rf y", true),
            ("FOO=1 sudo /bin/mv a b", true),
            ("grep rm file", false),
            ("git status", false),
            ("git commit -m x", true),
            ("sed -i s/a/b/ f", true),
            ("sed -n 1p f", false),
            ("perl -pi -e 1 f", true),
            ("cat x | tee y", true),
        ] {
            let json = serde_json::json!({ "command": command }).to_string();
            assert_eq!(facts("bash", &json).mutates, want, "{command}");
        }
        assert!(facts("edit", "{}").mutates && facts("Write", "{}").mutates && !facts("read", "{}").mutates);
    }

    #[test]
    fn only_some_words_to_a_supervisor_wait_for_an_answer() {
        for (tool, json, want) in [
            ("contact_supervisor", r#"{"reason":"need_decision"}"#, true),
            ("contact_supervisor", r#"{"reason":"interview_request"}"#, true),
            ("contact_supervisor", r#"{"reason":"progress"}"#, false),
            ("intercom", r#"{"action":"ask"}"#, true),
            ("intercom", r#"{"action":"send"}"#, false),
            ("read", r#"{"reason":"need_decision"}"#, false),
        ] {
            assert_eq!(facts(tool, json).asks, want, "{tool} {json}");
        }
    }

    #[test]
    fn equal_calls_have_equal_fingerprints() {
        let one = facts("read", r#"{"path":"a"}"#).fingerprint;
        assert_eq!(one, facts("read", r#"{"path":"a"}"#).fingerprint);
        assert_ne!(one, facts("read", r#"{"path":"b"}"#).fingerprint);
        assert_ne!(one, facts("rea", r#"d{"path":"a"}"#.trim_start_matches('d')).fingerprint);
    }
}
