//! Recorded output of the real Codex, replayed: what is found in it was read from the recordings by a person, and what
//! is said to its app server is what the recordings were made with.

#[path = "support/codex_recordings.rs"]
mod codex_recordings;
#[path = "support/replayed.rs"]
mod replayed;

use std::sync::Arc;

use serde_json::Value;
use subdeck::agents::codex::{CodexTalk, ExecAdapter, ServerAdapter, Session};
use subdeck::agents::{Adapter, Talk};
use subdeck::run::{AgentEvent, Answer, Permission, Report, SteerMode, StepPhase, TargetState};

use codex_recordings::{HELLO, Recording, is_server, read, recordings, sent};
use replayed::{
    Conversation, Seen, Told, check_breaking_off, check_cutting, check_long_call, check_records, check_rows,
    check_thoughts, check_unknown, first_arguments, outcome,
};

fn session(name: &str) -> Arc<Session> {
    let resume = sent(name).iter().find_map(|message| match message["method"].as_str() {
        Some("thread/resume") => message["params"]["threadId"].as_str().map(str::to_owned),
        _ => None,
    });
    let permission = if name == "app-accepted" { Permission::Allow } else { Permission::Deny };
    Arc::new(Session { cwd: "/home/user/project".to_owned(), permission, resume, ..Session::default() })
}

fn replay<'a>(name: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let mut adapter: Box<dyn Adapter> = if is_server(name) {
        Box::new(ServerAdapter::new(session(name)))
    } else {
        Box::new(ExecAdapter::new(name == "sid-resume"))
    };
    let said = replayed::replay(adapter.as_mut(), chunks);
    assert_eq!(said.0.kept_lines, 0, "a line of another vocabulary is never kept as it is");
    said
}

#[test]
fn every_recording_has_its_row() {
    let scene = |file: &str| file.strip_prefix("codex-0.171.0-").map(str::to_owned);
    check_rows(scene, recordings().iter().map(|r| r.name));
}

#[test]
fn recordings_mean_what_a_person_reads_in_them() {
    for recording in recordings() {
        let name = recording.name;
        let (seen, report) = replay(name, [read(name).as_slice()]);
        let told = Told::of(name, &seen.events);
        let expected: Vec<_> = recording.session.iter().map(|id| (Some(*id), recording.model)).collect();
        assert_eq!(told.sessions(), expected, "{name}");
        for (tool, args) in &told.calls {
            let known = match tool.as_str() {
                "shell" => args.starts_with("python3 -c") || args.starts_with("echo "),
                "apply_patch" => args == "/home/user/project/out.txt",
                _ => true,
            };
            assert!(known, "{name}: what it does is known when it starts: {args:?}");
        }
        assert_eq!(told.tools(), recording.tools, "{name}");
        assert_eq!((told.tokens.input, told.tokens.output, told.tokens.cache_read), recording.usage, "{name}");
        assert_eq!(told.priced_answers, 0, "{name}: what was used is told apart");
        assert_eq!(told.turns, recording.turns, "{name}");
        if is_server(name) && name != "app-err500" {
            assert_eq!(told.answers, told.turns, "{name}: a turn has one message");
        }
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, code, error) = recording.end;
        assert_eq!(outcome(&report, recording.exit), (phase, code, error.map(str::to_owned)), "{name}");
    }
}

#[test]
fn a_sub_agent_is_told_with_its_own_numbers() {
    let (seen, _) = replay("app-spawn", [read("app-spawn").as_slice()]);
    let did: Vec<(&str, String)> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::SubAgent { id, did } => Some((id.as_str(), format!("{did:?}"))),
            _ => None,
        })
        .collect();
    assert!(did.iter().all(|(id, _)| *id == "01a228c9-e0dc-7ee2-9013-45667523a7a7"), "{did:?}");
    let did: Vec<&str> = did.iter().map(|(_, did)| did.as_str()).collect();
    let expected = [
        r#"Started { name: "child", about: "", model: Some("gpt-6-sol") }"#,
        r#"Called(SubCall { tool: "wait", args: "" })"#,
        "Returned",
        "Used(2157)",
        r#"Said("Final answer for scenario spawn: all done.")"#,
        "Used(4314)",
        "Ended(Ok)",
    ];
    assert_eq!(did, expected);
}

#[test]
fn how_the_bytes_are_cut_changes_nothing() {
    for recording in recordings() {
        check_cutting(recording.name, &read(recording.name), |chunks| replay(recording.name, chunks));
    }
}

#[test]
fn what_is_not_known_is_counted_and_changes_nothing_else() {
    let once = [
        r#"{"type":"brand.new","usage":{"input_tokens":9}}"#,
        r#"{"type":"item.completed","item":{"id":"item_99","type":"brand_new","status":"failed"}}"#,
    ];
    let server = [
        r#"{"method":"brand/new","params":{"threadId":"t"}}"#,
        r#"{"method":"turn/brandNew","params":{"turn":{"status":"failed"}}}"#,
        r#"{"method":"item/brandNew/delta","params":{"delta":"x"}}"#,
    ];
    for recording in recordings() {
        let unknown: &[&str] = if is_server(recording.name) { &server } else { &once };
        check_unknown(recording.name, &read(recording.name), unknown, |chunks| replay(recording.name, chunks));
    }
}

#[test]
fn what_was_thought_stands_in_the_record_of_the_message() {
    let table = [
        ("think", "Let me think about it for a moment.", "Thought about it: 42."),
        ("app-text", "Let me think about it for a moment.", "Thought about it: 42."),
    ];
    check_thoughts(&table, recordings().iter().map(|r| (r.name, replay(r.name, [read(r.name).as_slice()]).0)));
}

#[test]
fn a_cut_recording_is_never_complete() {
    for recording in recordings() {
        let bytes = read(recording.name);
        // Up to the last brace of the line that says that the turn is over, which is the last one.
        let end = bytes.iter().rposition(|b| *b == b'}').expect("a record");
        if recording.end.0 == StepPhase::Complete {
            let last = bytes[..end].iter().rposition(|b| *b == b'\n').expect("a line") + 1;
            let last = String::from_utf8_lossy(&bytes[last..end]);
            assert!(last.contains("turn.completed") || last.contains("turn/completed"), "{last}");
        }
        check_breaking_off(recording.name, &bytes, end, |chunks| replay(recording.name, chunks));
    }
}

#[test]
fn what_is_recorded_says_the_same() {
    for recording in recordings() {
        check_records(recording.name, &replay(recording.name, [read(recording.name).as_slice()]).0);
    }
}

#[test]
fn what_a_call_is_told_stands_whole_in_its_record() {
    let long = |name: &str| check_long_call(name, &read(name), |chunks| replay(name, chunks));
    assert!(recordings().iter().filter(|recording| long(recording.name)).count() >= 2);
    let changed = r#""path":"/home/user/project/out.txt","kind""#;
    for (name, expected) in [
        ("app-patch", format!(r#"{{"changes":[{{{changed}:{{"type":"add"}},"diff":"written\n"}}]}}"#)),
        ("patch", format!(r#"{{"changes":[{{{changed}:"add"}}]}}"#)),
    ] {
        assert_eq!(first_arguments(&replay(name, [read(name).as_slice()]).0), expected, "{name}");
    }
}

#[test]
fn the_log_reads_like_a_conversation() {
    let nap =
        |secs: u32, word: &str| format!("shell: python3 -c \"import time; time.sleep({secs})\"; echo {word}\n{word}\n");
    let unknown = "note: Model metadata for `fake-model` not found. Defaulting to fallback metadata; this can degrade \
        performance and cause issues.\n";
    let table = [
        (
            "bash",
            format!(
                "{unknown}I will run a shell command.\n{}Final answer for scenario bash: all done.\n",
                nap(3, "tool-finished")
            ),
        ),
        ("app-steer-named", format!("{unknown}Round 1.\n{}» [[scenario:text]] now\n{HELLO}\n", nap(2, "round-1"))),
        (
            "app-declined",
            format!(
                "{unknown}I will run a shell command.\nshell: python3 -c \"import time; time.sleep(1)\"; echo tool-finished\n\
                 the agent asks: May it run python3 -c \"import time; time.sleep(1)\"; echo tool-finished?\n\
                 Final answer for scenario bash: all done.\n"
            ),
        ),
        (
            "truncated",
            format!(
                "{unknown}This sentence will be cut\nretry 1 of 2: stream disconnected before completion: stream closed \
                 before response.completed\nThis sentence will be cut\nretry 2 of 2: stream disconnected before completion: \
                 stream closed before response.completed\nThis sentence will be cut\nmodel error: stream disconnected \
                 before completion: stream closed before response.completed\n"
            ),
        ),
    ];
    for (name, expected) in table {
        let log = replay(name, [read(name).as_slice()]).0.log;
        let log: String = log.split_inclusive('\n').filter(|line| !line.contains("bubblewrap")).collect();
        assert_eq!(log, expected, "{name}");
    }
}

/// Has the recording play; `before` is asked before each line what a person does now.
fn converse(
    recording: &Recording,
    before: impl FnMut(&str, &mut CodexTalk) -> Option<Vec<u8>>,
) -> Conversation<CodexTalk> {
    let adapter = ServerAdapter::new(session(recording.name));
    let talk = CodexTalk::new(session(recording.name));
    let answer = if recording.name == "app-accepted" { Answer::Allow } else { Answer::Deny(None) };
    Conversation::of(read(recording.name), adapter, talk, before, |event, talk| match event {
        AgentEvent::Asked(asking) => Some(talk.reply(asking, &answer).expect("it still waits")),
        _ => None,
    })
}

/// A message of a client without what differs from one to the other.
fn shape(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
        for key in ["clientInfo", "clientUserMessageId", "approvalPolicy", "sandbox", "model", "excludeTurns"] {
            params.remove(key);
        }
        if let Some(text) = params.get_mut("input").and_then(|input| input.pointer_mut("/0/text")) {
            *text = "a text".into();
        }
    }
    message
}

fn shapes(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(shape).collect()
}

#[test]
fn what_is_said_to_the_server_is_what_it_was_recorded_with() {
    let mut tried = 0;
    for recording in recordings() {
        let name = recording.name;
        if !is_server(name) || name.contains("steer") || name.contains("interrupt") {
            continue;
        }
        let talked = converse(&recording, |_, _| None);
        assert_eq!(shapes(&talked.sent), shapes(&sent(name)), "{name}");
        let ended = name != "app-close-mid-tool";
        assert_eq!(talked.done.last(), Some(&ended), "{name}");
        assert!(talked.done.iter().filter(|done| **done).count() <= 2, "{name}: done at the very end only");
        tried += 1;
    }
    assert!(tried >= 10);
}

fn tool_runs(line: &str) -> bool {
    line.contains(r#""item/started""#) && line.contains("commandExecution")
}

#[test]
fn a_message_goes_into_the_running_turn() {
    for (name, moves) in [
        ("app-steer-named", &[TargetState::Queued, TargetState::Delivered][..]),
        // A client that gives its messages no names is not told when the model has them.
        ("app-steer", &[TargetState::Queued]),
    ] {
        let recording = recordings().into_iter().find(|r| r.name == name).expect("a row");
        let mut said = false;
        let talked = converse(&recording, |line, talk| {
            if said || !line.contains(r#""id":"steer:2""#) && !line.contains("outputDelta") {
                return None;
            }
            said = true;
            Some(talk.steer("s", SteerMode::Auto, "change of plan").expect("it takes messages"))
        });
        assert_eq!(shapes(&talked.sent), shapes(&sent(name)), "{name}");
        let expected: Vec<_> = moves.iter().map(|state| ("s".to_owned(), *state)).collect();
        assert_eq!(talked.moves, expected, "{name}");
        assert_eq!(talked.done.last(), Some(&true), "{name}");
    }
}

#[test]
fn an_agent_that_is_told_to_break_off_is_done_when_it_has() {
    let recording = recordings().into_iter().find(|r| r.name == "app-interrupt").expect("a row");
    let bytes = read(recording.name);
    let end = memchr::memmem::find(&bytes, br#""status":"interrupted""#).expect("it was interrupted");
    let end = end + memchr::memchr(b'\n', &bytes[end..]).expect("a line feed");
    let (_, report) = replay(recording.name, [&bytes[..end]]);
    assert!(report.aborted && !report.clean_stop);
    let mut said = false;
    let talked = converse(&recording, |line, talk| {
        if said || !tool_runs(line) {
            return None;
        }
        said = true;
        let bytes = talk.abort();
        assert_eq!(talk.steer("s", SteerMode::Auto, "too late"), None);
        Some(bytes.expect("it can be told"))
    });
    let mut expected = shapes(&sent(recording.name));
    expected.pop();
    // Whatever begins after that is broken off, too.
    assert_eq!(shapes(&talked.sent)[..expected.len()], expected);
    assert!(talked.done.contains(&true));
}
