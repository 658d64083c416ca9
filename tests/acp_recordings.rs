//! Recorded output of real agents that speak the Agent Client Protocol, replayed: what is found in it was read from the
//! recordings by a person, and what is said to the agents is what the recordings were made with.

#[path = "support/acp_recordings.rs"]
mod acp_recordings;
#[path = "support/replayed.rs"]
mod replayed;

use std::sync::Arc;

use serde_json::{Value, json};
use subdeck::agents::Talk;
use subdeck::agents::acp::{AcpAdapter, AcpTalk, Dialect, Session};
use subdeck::run::{AgentEvent, Report, SteerMode, SubAgentDid, TargetState};

use acp_recordings::{ALL_DONE, OK, Recording, THOUGHT, read, recordings, sent};
use replayed::{
    Conversation, Seen, Told, check_breaking_off, check_cutting, check_long_call, check_records, check_rows,
    check_thoughts, check_unknown, first_arguments, outcome,
};

fn session(dialect: Dialect) -> Arc<Session> {
    let login = (dialect == Dialect::Gemini).then(|| "gemini-api-key".to_owned());
    let cwd = "/home/user/project".to_owned();
    Arc::new(Session { dialect, cwd, login, ..Session::default() })
}

fn replay<'a>(dialect: Dialect, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let said = replayed::replay(&mut AcpAdapter::new(session(dialect)), chunks);
    assert_eq!(said.0.kept_lines, 0, "a line of another vocabulary is never kept as it is");
    said
}

#[test]
fn every_recording_has_its_row() {
    check_rows(|file| file.contains("-acp-").then(|| file.to_owned()), recordings().iter().map(|r| r.name));
}

#[test]
fn recordings_mean_what_a_person_reads_in_them() {
    for recording in recordings() {
        let name = recording.name;
        let (seen, report) = replay(recording.dialect, [read(name).as_slice()]);
        let told = Told::of(name, &seen.events);
        assert_eq!(told.sessions(), [(Some(recording.session), recording.model)], "{name}");
        for (_, args) in &told.calls {
            let what = ["python3 -c", "child", "job ", "generalist", "since_turn"];
            assert!(
                what.iter().any(|what| args.contains(what)),
                "{name}: what it does is known when it starts: {args:?}"
            );
        }
        // An agent that has answered runs no tools.
        let tools: Vec<_> = recording.tools.iter().map(|(tool, end)| (*tool, Some(*end))).collect();
        assert_eq!(told.tools(), tools, "{name}");
        let used = (told.tokens.input, told.tokens.output, told.tokens.cache_read, told.cost);
        assert_eq!(used, recording.usage, "{name}");
        assert_eq!(told.turns, recording.turns, "{name}");
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, code, error) = recording.end;
        assert_eq!(outcome(&report, OK), (phase, code, error.map(str::to_owned)), "{name}");
        assert!(report.settled, "{name}");
    }
}

#[test]
fn how_the_bytes_are_cut_changes_nothing() {
    for recording in recordings() {
        check_cutting(recording.name, &read(recording.name), |chunks| replay(recording.dialect, chunks));
    }
}

#[test]
fn what_is_not_known_is_counted_and_changes_nothing_else() {
    let unknown = [
        r#"{"jsonrpc":"2.0","method":"session/brand_new","params":{"sessionUpdate":"tool_call"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"brand_new","toolCallId":"x"}}}"#,
    ];
    for recording in recordings() {
        check_unknown(recording.name, &read(recording.name), &unknown, |chunks| replay(recording.dialect, chunks));
    }
}

#[test]
fn what_was_thought_stands_in_the_record_of_the_message() {
    let table = [
        ("copilot-1.0.102-acp-text", "Let me think about it for a moment.", THOUGHT),
        ("opencode-1.18.33-acp-text", "Let me think about it for a moment.", THOUGHT),
        ("qwen-0.24.4-acp-text", "Let me think about it for a moment.", THOUGHT),
        ("gemini-0.61.0-acp-text", "**Thinking**\nLet me think about it for a moment.", THOUGHT),
    ];
    check_thoughts(&table, recordings().iter().map(|r| (r.name, replay(r.dialect, [read(r.name).as_slice()]).0)));
}

#[test]
fn a_cut_recording_is_never_complete() {
    for recording in recordings() {
        let bytes = read(recording.name);
        // The end of the line that answers the last prompt. Two that were joined are answered together.
        let answers: Vec<usize> = memchr::memmem::find_iter(&bytes, br#""stopReason":"end_turn""#).collect();
        let Some(answer) = answers.first() else { continue };
        let end = answer + memchr::memchr(b'\n', &bytes[*answer..]).expect("a line feed") - 1;
        assert_eq!(bytes[end], b'}', "{}", recording.name);
        check_breaking_off(recording.name, &bytes, end, |chunks| replay(recording.dialect, chunks));
    }
}

#[test]
fn what_is_recorded_says_the_same() {
    for recording in recordings() {
        check_records(recording.name, &replay(recording.dialect, [read(recording.name).as_slice()]).0);
    }
}

#[test]
fn what_a_call_is_told_stands_whole_in_its_record() {
    let long = |r: &Recording| check_long_call(r.name, &read(r.name), |chunks| replay(r.dialect, chunks));
    assert_eq!(recordings().iter().filter(|recording| long(recording)).count(), 4, "one of each agent");
    let command = r#""command":"python3 -c \"import time; time.sleep(2)\"; echo tool-finished""#;
    for (dialect, name, expected) in [
        (
            Dialect::OpenCode,
            "opencode-1.18.33-acp-bash",
            format!(r#"{{{command},"timeout":200000,"cwd":"/home/user/project"}}"#),
        ),
        (
            Dialect::Copilot,
            "copilot-1.0.102-acp-bash",
            format!(r#"{{{command},"description":"scripted command","initial_wait":120,"mode":"sync"}}"#),
        ),
        (Dialect::Qwen, "qwen-0.24.4-acp-bash", format!(r#"{{{command},"timeout":200000}}"#)),
        (Dialect::Gemini, "gemini-0.61.0-acp-bash", format!("{{{command}}}")),
    ] {
        let (seen, _) = replay(dialect, [read(name).as_slice()]);
        assert_eq!(first_arguments(&seen), expected, "{name}");
    }
}

/// What a recording tells of sub-agents: which of them, in the order they began, and what it did.
fn subs(name: &str, dialect: Dialect) -> Vec<(usize, String)> {
    let (seen, _) = replay(dialect, [read(name).as_slice()]);
    let mut ids: Vec<String> = Vec::new();
    let did = seen.events.iter().filter_map(|event| match event {
        AgentEvent::SubAgent { id, did } => {
            let at = ids.iter().position(|known| known == id).unwrap_or_else(|| {
                ids.push(id.clone());
                ids.len() - 1
            });
            let did = match did {
                SubAgentDid::Started { name, about, .. } => format!("starts: {name}, {about}"),
                SubAgentDid::Called(call) => format!("calls {}", call.tool),
                SubAgentDid::Returned => "returns".to_owned(),
                SubAgentDid::Said(text) => format!("says: {text}"),
                SubAgentDid::Used(tokens) => format!("used {tokens}"),
                SubAgentDid::Ended(outcome) => format!("ends: {}", outcome.as_str()),
            };
            Some((at, did))
        }
        _ => None,
    });
    did.collect()
}

const WILL: &str = "says: I will run a shell command.";
const DID: &str = "says: Final answer for scenario bash: all done.";

#[test]
fn a_sub_agent_is_told_as_far_as_its_agent_tells_of_it() {
    for (name, dialect, expected) in [
        ("opencode-1.18.33-acp-task", Dialect::OpenCode, &["starts: general, child job", "ends: ok"][..]),
        ("gemini-0.61.0-acp-task", Dialect::Gemini, &["starts: generalist, ", "ends: ok"]),
        (
            "qwen-0.24.4-acp-task",
            Dialect::Qwen,
            &[
                "starts: general-purpose, child job",
                WILL,
                "used 2157",
                "calls run_shell_command",
                "returns",
                DID,
                "used 4314",
                "ends: ok",
            ],
        ),
        ("qwen-0.24.4-acp-task-background", Dialect::Qwen, &["starts: general-purpose, child job", "ends: ok"]),
        (
            "copilot-1.0.102-acp-task",
            Dialect::Copilot,
            &["starts: general-purpose, child job", WILL, "calls execute", "returns", DID, "ends: ok"],
        ),
        // What it says cannot be told from what its agent says, nor how it ends.
        (
            "copilot-1.0.102-acp-task-background",
            Dialect::Copilot,
            &["starts: general-purpose, child job", "calls execute", "returns", "ends: lost"],
        ),
    ] {
        let found = subs(name, dialect);
        assert!(found.iter().all(|(at, _)| *at == 0), "{name}: {found:?}");
        assert_eq!(found.iter().map(|(_, did)| did.as_str()).collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn sub_agents_side_by_side_are_told_apart() {
    for (name, dialect, steps) in [
        ("qwen-0.24.4-acp-tasks", Dialect::Qwen, &["calls run_shell_command", "returns", DID, "used 4314"][..]),
        // Whose text it is is told only where one of them is left.
        ("copilot-1.0.102-acp-tasks", Dialect::Copilot, &["calls execute", "returns"]),
    ] {
        let found = subs(name, dialect);
        for at in [0, 1] {
            let own: Vec<&str> = found.iter().filter(|(of, _)| *of == at).map(|(_, did)| did.as_str()).collect();
            assert_eq!(own.first(), Some(&format!("starts: general-purpose, job {}", at + 1).as_str()), "{name}");
            assert_eq!(own.last(), Some(&"ends: ok"), "{name}: {own:?}");
            for step in steps {
                assert_eq!(own.iter().filter(|did| *did == step).count(), 1, "{name}: {step} in {own:?}");
            }
        }
    }
}

#[test]
fn one_that_goes_on_in_the_background_is_waited_for() {
    let recording = recordings().into_iter().find(|r| r.name == "qwen-0.24.4-acp-task-background").expect("a row");
    let bytes = read(recording.name);
    let answer = memchr::memmem::find(&bytes, br#""stopReason":"end_turn""#).expect("an answer");
    let answer = answer + memchr::memchr(b'\n', &bytes[answer..]).expect("a line feed") + 1;
    let (seen, report) = replay(recording.dialect, [&bytes[..answer]]);
    assert!(!report.terminal_record_seen() && !seen.events.contains(&AgentEvent::Settled { aborted: false }));
    let (seen, report) = replay(recording.dialect, [bytes.as_slice()]);
    assert!(report.settled && report.clean_stop);
    assert_eq!(seen.events.iter().filter(|event| matches!(event, AgentEvent::Settled { .. })).count(), 1);
    let talked = converse(&recording, |_, _| None);
    assert_eq!(talked.done.iter().position(|done| *done), Some(talked.done.len() - 1), "its input stays open");
}

#[test]
fn the_log_reads_like_a_conversation() {
    let command = r#"python3 -c "import time; time.sleep(2)"; echo tool-finished"#;
    let table = [
        (Dialect::OpenCode, "opencode-1.18.33-acp-text", format!("{THOUGHT}\n")),
        (
            Dialect::OpenCode,
            "opencode-1.18.33-acp-bash",
            format!("I will run a shell command.\nbash: {command}\ntool-finished\n{ALL_DONE}\n"),
        ),
        (
            Dialect::Gemini,
            "gemini-0.61.0-acp-bash",
            format!("I will run a shell command.\nrun_shell_command: {command}\n{ALL_DONE}\n"),
        ),
        (
            Dialect::Copilot,
            "copilot-1.0.102-acp-bash",
            format!(
                "I will run a shell command.\nexecute: {command}\ntool-finished\n\
                 <shellId: 0 completed with exit code 0>\n{ALL_DONE}\n"
            ),
        ),
        (
            Dialect::OpenCode,
            "opencode-1.18.33-acp-err400",
            "model error: Internal error: scripted bad request\n".to_owned(),
        ),
    ];
    for (dialect, name, expected) in table {
        assert_eq!(replay(dialect, [read(name).as_slice()]).0.log, expected, "{name}");
    }
}

/// Has the recording play; `before` is asked before each line what a person does now.
fn converse(recording: &Recording, before: impl FnMut(&str, &mut AcpTalk) -> Option<Vec<u8>>) -> Conversation<AcpTalk> {
    let adapter = AcpAdapter::new(session(recording.dialect));
    let talk = AcpTalk::new(session(recording.dialect));
    Conversation::of(read(recording.name), adapter, talk, before, |_, _| None)
}

/// A message of a client without what differs from one to the other.
fn shape(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
        params.remove("clientInfo");
        if params.contains_key("prompt") {
            params.insert("prompt".to_owned(), json!("a prompt"));
        }
    }
    if let Some(messages) = message.pointer_mut("/result/messages").and_then(Value::as_array_mut) {
        messages.iter_mut().for_each(|text| *text = json!("a text"));
    }
    if let Some(error) = message.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("message");
    }
    message
}

fn shapes(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(shape).collect()
}

#[test]
fn what_is_said_to_the_agents_is_what_they_were_recorded_with() {
    for recording in recordings() {
        let name = recording.name;
        if !(name.ends_with("-text") || name.ends_with("-bash") || name.ends_with("-err400")) {
            continue;
        }
        let talked = converse(&recording, |_, _| None);
        let mut expected = shapes(&sent(name));
        // The recording client could not be asked for messages.
        for answer in expected.iter_mut().filter(|message| message.get("error").is_some()) {
            *answer = json!({"jsonrpc": "2.0", "id": answer["id"],
                "result": {"messages": [], "hasQueuedPrompt": false}});
        }
        assert_eq!(shapes(&talked.sent), expected, "{name}");
        let first_done = talked.done.iter().position(|done| *done);
        assert!(first_done.is_some_and(|at| at + 3 > talked.done.len()), "{name}: done at the very end only");
    }
}

#[test]
fn messages_reach_each_agent_in_its_own_way() {
    let tool_runs = |line: &str| line.contains(r#""status":"completed""#) || line.contains(r#""status":"failed""#);
    for name in ["opencode-1.18.33-acp-steer", "qwen-0.24.4-acp-drain-steer"] {
        let recording = recordings().into_iter().find(|r| r.name == name).expect("a row");
        let mut said = false;
        let talked = converse(&recording, |line, talk| {
            if said || !tool_runs(line) {
                return None;
            }
            said = true;
            Some(talk.steer("s", SteerMode::Auto, "change of plan").expect("it takes messages"))
        });
        assert_eq!(shapes(&talked.sent), shapes(&sent(name)), "{name}");
        assert_eq!(talked.moves, [("s".to_owned(), TargetState::Delivered)], "{name}");
        assert_eq!(talked.done.last(), Some(&true), "{name}");
    }
}

#[test]
fn who_takes_no_messages_while_it_works_is_cancelled_to_make_room() {
    for recording in recordings() {
        let name = recording.name;
        if !name.ends_with("-cancel") || matches!(recording.dialect, Dialect::OpenCode | Dialect::Qwen) {
            continue;
        }
        let mut said = false;
        let talked = converse(&recording, |line, talk| {
            if said || !line.contains(r#""tool_call""#) {
                return None;
            }
            said = true;
            let bytes = talk.steer("s", SteerMode::Steer, "change of plan").expect("it takes messages");
            assert_eq!(talk.steer("f", SteerMode::FollowUp, "later"), Some(Vec::new()));
            Some(bytes)
        });
        let mut expected = shapes(&sent(name));
        let mut last = expected.last().cloned().expect("a prompt");
        // The follow-up is the one that the recording has no answer to.
        last["id"] = json!(last["id"].as_u64().expect("a number") + 1);
        expected.push(last);
        assert_eq!(shapes(&talked.sent), expected, "{name}");
        let text = talked.sent.last().and_then(|m| m.pointer("/params/prompt/0/text")).and_then(Value::as_str);
        assert!(text.is_some_and(|text| text.contains("later")), "{name}");
        assert_eq!(talked.moves, [("s".to_owned(), TargetState::Delivered)], "{name}");
        assert_eq!(talked.done.last(), Some(&false), "{name}: the follow-up is not answered");
    }
}

#[test]
fn an_agent_that_is_told_to_break_off_is_done_when_it_has() {
    for recording in recordings() {
        let name = recording.name;
        if !name.ends_with("-cancel") {
            continue;
        }
        let bytes = read(name);
        let end = memchr::memmem::find(&bytes, br#""stopReason":"cancelled""#).expect("it was cancelled");
        let end = end + memchr::memchr(b'\n', &bytes[end..]).expect("a line feed");
        let (_, report) = replay(recording.dialect, [&bytes[..end]]);
        assert!(report.aborted && !report.clean_stop, "{name}");
        let mut said = false;
        let talked = converse(&recording, |line, talk| {
            if said || !line.contains(r#""tool_call""#) {
                return None;
            }
            said = true;
            let bytes = talk.abort();
            assert_eq!(talk.steer("s", SteerMode::Auto, "too late"), None);
            Some(bytes.expect("it can be told"))
        });
        let mut expected = shapes(&sent(name));
        expected.pop();
        assert_eq!(shapes(&talked.sent), expected, "{name}");
        assert!(talked.done.contains(&true), "{name}");
    }
}
