//! A call in full, opened with a key on the real program: whatever protocol its agent speaks, all that it was called with
//! is there, in the order in which the agent wrote it.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use support::pty::Pty;
use support::{ESCAPE, Home};

/// Lines of a text that is much longer than a line about a call.
fn lines(word: &str) -> String {
    (1..=20).map(|n| format!("{word} line {n} of the text that stands in the file\\n")).collect()
}

/// An agent that prints this and does nothing else.
fn agent(home: &Home, name: &str, stream: &str) -> String {
    let said = home.file(&format!("{name}.jsonl"), stream);
    home.file(name, &format!("#!/bin/sh\ncat {said}\n"))
}

/// The deck on a run of the plan that has ended, after these keys, which show the calls of a step.
fn calls(home: &Home, rows: u16, keys: &str) -> Pty {
    let pty = home.deck(&["run", "plan.toml"], 100, rows);
    pty.wait_text("the run is over");
    pty.keys(keys);
    pty
}

#[test]
fn all_that_a_call_was_given_is_read_in_the_tools_tab() {
    let home = Home::new();
    let (old, new) = (lines("old"), lines("new"));
    let written = include_str!("fixtures/streams/opencode-1.18.33-write.jsonl");
    let input = r#""input":{"content":"written\n","filePath":"/home/user/project/out.txt"}"#;
    assert!(written.contains(input));
    let edit = format!(r#""input":{{"filePath":"/p/notes.txt","oldString":"{old}","newString":"{new}"}}"#);
    let opencode = agent(&home, "opencode", &written.replace(input, &edit));
    let patched = include_str!("fixtures/streams/codex-0.171.0-patch.jsonl");
    let kind = r#""kind":"add""#;
    assert!(patched.contains(kind));
    let codex = agent(&home, "codex", &patched.replace(kind, &format!(r#"{kind},"diff":"{new}""#)));
    home.file(
        "plan.toml",
        &format!(
            "[[step]]\nid = \"edits\"\ntask = \"Edit.\"\n\
             runner = {{ type = \"opencode\", transport = \"oneshot\", command = {opencode:?} }}\n\
             [[step]]\nid = \"patches\"\ntask = \"Patch.\"\n\
             runner = {{ type = \"codex\", transport = \"oneshot\", command = {codex:?} }}\n"
        ),
    );
    let pty = calls(&home, 70, "gz2");
    pty.wait_text("write");
    pty.keys("\r");
    pty.wait_text("new line 20 of the text");
    let shown = pty.text();
    let mut rest = shown.as_str();
    for text in ["arguments", "filePath: /p/notes.txt", "oldString:", "old line 1 of", "old line 20 of", "newString:"] {
        rest = rest.split_once(text).unwrap_or_else(|| panic!("{text}: {shown}")).1;
    }
    pty.keys(ESCAPE);
    pty.wait_gone("new line 20 of");
    pty.keys("]");
    pty.wait_text("apply_patch");
    pty.keys("2\r");
    pty.wait_text("new line 20 of the text");
}

/// Calls of one message begin in the same millisecond, and may end so: each has its own arguments and its own result.
#[test]
fn calls_that_begin_and_end_together_are_told_apart() {
    let home = Home::new();
    let each = |what: &dyn Fn(&str) -> String| ["one", "two", "three"].map(what).join(",");
    let called = each(&|n| {
        format!(r#"{{"type":"tool_use","id":"c-{n}","name":"Bash","input":{{"command":"job {n}","note":"of {n}"}}}}"#)
    });
    let gave = each(&|n| format!(r#"{{"type":"tool_result","tool_use_id":"c-{n}","content":"gave {n}\nall of {n}"}}"#));
    let stream = format!(
        "{}\n{{\"type\":\"assistant\",\"message\":{{\"id\":\"m\",\"role\":\"assistant\",\"model\":\"x\",\"content\":[{called}]}}}}\n\
         {{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{gave}]}}}}\n{}\n",
        r#"{"type":"system","subtype":"init","session_id":"s-1","model":"x"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"fine","terminal_reason":"completed"}"#,
    );
    let claude = agent(&home, "claude", &stream);
    home.file(
        "plan.toml",
        &format!(
            "[[step]]\nid = \"jobs\"\ntask = \"Do.\"\n\
             runner = {{ type = \"claude\", transport = \"oneshot\", command = {claude:?} }}\n"
        ),
    );
    let pty = calls(&home, 40, "z2");
    pty.wait_text("job three");
    pty.keys("g");
    for (n, next) in [("one", "j"), ("two", "j"), ("three", "")] {
        pty.keys("\r");
        pty.wait_text(&format!("command: job {n}"));
        pty.wait_text(&format!("all of {n}"));
        pty.keys(ESCAPE);
        pty.wait_gone(&format!("command: job {n}"));
        pty.keys(next);
    }
}
