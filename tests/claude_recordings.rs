//! Recorded output of the real Claude Code, replayed: what is found in it was read from the recordings by a person.

#[path = "support/claude_recordings.rs"]
mod claude_recordings;
#[allow(dead_code)]
#[path = "support/recordings.rs"]
mod recordings;
#[path = "support/replayed.rs"]
mod replayed;

use subdeck::agents::Talk;
use subdeck::agents::claude::{ClaudeAdapter, ClaudeTalk};
use subdeck::agents::pi::decode_line;
use subdeck::run::{AgentEvent, Answer, MessageRole, QuestionKind, Report, SteerMode, StepPhase, TargetState};

use claude_recordings::claude_recordings;
use recordings::{OK, read};
use replayed::{Seen, Told, check_breaking_off, check_cutting, check_rows, check_thoughts, check_unknown, outcome};

fn replay<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let said = replayed::replay(&mut ClaudeAdapter::new(false), chunks);
    assert_eq!(said.0.kept_lines, 0, "lines of Claude Code are none of the vocabulary on disk");
    said
}

#[test]
fn every_recording_has_its_row() {
    let scene = |file: &str| Some(format!("claude-{}", file.strip_prefix("claude-2.1.332-")?));
    check_rows(scene, claude_recordings().iter().map(|r| r.name));
}

#[test]
fn recordings_mean_what_a_person_reads_in_them() {
    for recording in claude_recordings() {
        let name = recording.name;
        let (seen, report) = replay([read(name).as_slice()]);
        let told = Told::of(name, &seen.events);
        assert_eq!(told.worked(), recording.tools, "{name}");
        assert_eq!((told.tokens.input, told.tokens.output, told.cost), recording.usage, "{name}");
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, exit_code, error) = outcome(&report, recording.exit);
        assert_eq!((phase, exit_code, error.as_deref()), recording.end, "{name}");
        let session = told.sessions.iter().any(|(id, _)| id.is_some());
        assert_eq!(session, !["claude-sid-resume-missing", "claude-sj-control"].contains(&name), "{name}");
    }
}

#[test]
fn the_cutting_of_the_input_changes_nothing() {
    for recording in claude_recordings() {
        check_cutting(recording.name, &read(recording.name), |chunks| replay(chunks));
    }
}

#[test]
fn what_is_not_known_is_counted_and_changes_nothing_else() {
    let unknown = [
        r#"{"type":"brand_new","message":{"content":[{"type":"tool_use","id":"x","name":"Bash"}]}}"#,
        r#"{"type":"system","subtype":"brand_new","session_id":"other"}"#,
        r#"{"subtype":"success","parent_tool_use_id":"x","is_error":true,"type":"results"}"#,
    ];
    for recording in claude_recordings() {
        check_unknown(recording.name, &read(recording.name), &unknown, |chunks| replay(chunks));
    }
}

#[test]
fn what_is_kept_decodes_to_what_was_said() {
    for recording in claude_recordings() {
        let (seen, _) = replay([read(recording.name).as_slice()]);
        let mut kept = Vec::new();
        for record in &seen.records {
            assert!(record.starts_with(b"{\"type\":\""), "{}", recording.name);
            decode_line(record, &mut kept);
        }
        let mut said: Vec<AgentEvent> =
            seen.events.into_iter().filter(|event| !matches!(event, AgentEvent::TextDelta { .. })).collect();
        for event in &mut said {
            // What the answer has to repeat is not kept.
            if let AgentEvent::Asked(asking) = event {
                asking.repeat = None;
            }
        }
        assert_eq!(kept, said, "{}", recording.name);
    }
}

#[test]
fn what_was_thought_stands_in_the_record_of_the_message() {
    let table = [("claude-think", "Let me think about it for a moment.", "Thought about it: 42.")];
    check_thoughts(&table, claude_recordings().iter().map(|r| (r.name, replay([read(r.name).as_slice()]).0)));
}

#[test]
fn a_cut_recording_is_never_complete() {
    for recording in claude_recordings() {
        let bytes = read(recording.name);
        // Up to the brace of the first result that says that all went well, or of the recording.
        let mut end = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            end += line.len();
            let record: serde_json::Value = serde_json::from_slice(line).unwrap();
            if record["type"] == "result" && record["is_error"] == false {
                break;
            }
        }
        check_breaking_off(recording.name, &bytes, end - 2, |chunks| replay(chunks));
        let last = bytes.iter().rposition(|b| *b == b'}').unwrap();
        for cut in [last, last.saturating_sub(5)] {
            let (_, report) = replay([&bytes[..cut]]);
            assert_ne!(outcome(&report, OK).0, StepPhase::Complete, "{} cut at {cut}", recording.name);
        }
    }
}

#[test]
fn the_log_reads_like_a_conversation() {
    let sleep = |n: u32| format!("Bash: python3 -c \"import time; time.sleep({n})\"; echo");
    let table = [
        ("claude-text", "Hello! This is a plain text reply, streamed in a few chunks.\n".to_owned()),
        (
            "claude-sj-partial",
            format!(
                "I will run a shell command.\n{} tool-finished\ntool-finished\nFinal answer for scenario bash: all done.\n",
                sleep(1)
            ),
        ),
        (
            "claude-sj-steer",
            format!(
                "Round 1.\n{} round-1\nround-1\n» [[scenario:text]] STEER change of plan\n\
                 Hello! This is a plain text reply, streamed in a few chunks.\n",
                sleep(3)
            ),
        ),
        (
            "claude-sj-permission-deny",
            "Write: /home/user/project/out.txt\nit asks: May it use Write? /home/user/project/out.txt\nnot this one\n\
             Final answer for scenario write: all done.\n"
                .to_owned(),
        ),
    ];
    for (name, expected) in table {
        assert_eq!(replay([read(name).as_slice()]).0.log, expected, "{name}");
    }
    let log = replay([read("claude-err529-maxretries2").as_slice()]).0.log;
    let retries =
        "retry 1 of 2 in 0.5 s: 529: overloaded\nretry 2 of 2 in 1.2 s: 529: overloaded\nAPI Error: 529 scripted";
    assert!(log.starts_with(retries) && log.lines().count() == 3, "{log}");
}

/// Sub-agents have tools and answers of their own; those of their parent are told, and they end once.
#[test]
fn sub_agents_do_not_mix_with_their_parent() {
    let (seen, _) = replay([read("claude-task").as_slice()]);
    let answers = seen.events.iter().filter(|e| matches!(e, AgentEvent::Message { role: MessageRole::Assistant, .. }));
    assert_eq!(answers.count(), 3, "the parent's own calls of the model");
    assert!(!seen.log.contains("tool-finished"), "{}", seen.log);
    let did: Vec<(&str, String)> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::SubAgent { id, did } => Some((id.as_str(), format!("{did:?}"))),
            _ => None,
        })
        .collect();
    assert!(did.iter().all(|(id, _)| *id == "toolu_6e9e44761b9545a5848b2f"), "{did:?}");
    let did: Vec<&str> = did.iter().map(|(_, did)| did.as_str()).collect();
    let call =
        r#"Called(SubCall { tool: "Bash", args: "python3 -c \"import time; time.sleep(1)\"; echo tool-finished" })"#;
    let expected = [
        r#"Started { name: "general-purpose", about: "child job", model: None }"#,
        r#"Said("I will run a shell command.")"#,
        call,
        "Used(2101)",
        "Returned",
        r#"Said("Final answer for scenario bash: all done.")"#,
        "Used(2157)",
        "Ended(Ok)",
    ];
    assert_eq!(did, expected);
    let ends: Vec<bool> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Settled { .. } => Some(true),
            AgentEvent::AgentStarted => Some(false),
            _ => None,
        })
        .collect();
    assert_eq!(ends.first(), Some(&false));
    assert_eq!(ends.last(), Some(&true));
}

#[test]
fn a_permission_is_asked_for_and_the_answer_goes_back_to_it() {
    let (seen, _) = replay([read("claude-sj-permission-deny").as_slice()]);
    let mut talk = ClaudeTalk::new();
    let mut asked = Vec::new();
    for event in &seen.events {
        assert_eq!(talk.answer(event), None, "nothing is answered without a person");
        if let AgentEvent::Asked(asking) = event {
            asked.push((**asking).clone());
        }
    }
    let [asking] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(asking.kind, QuestionKind::Permission);
    assert!(asking.call.is_some(), "{asking:?}");
    let answer = talk.reply(asking, &Answer::Allow).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["request_id"], "6e5528d7-98f9-44fd-9f79-f237f5f91d5c");
    let input: serde_json::Value = serde_json::from_str(asking.repeat.as_deref().unwrap()).unwrap();
    assert_eq!(answer["response"]["response"]["updatedInput"], input);
    // Without an open input it cannot ask and refuses by itself.
    let (seen, _) = replay([read("claude-no-bypass").as_slice()]);
    assert!(!seen.events.iter().any(|e| matches!(e, AgentEvent::Asked(_))));
    assert!(seen.log.contains("refused: "), "{}", seen.log);
}

#[test]
fn a_message_to_the_agent_gets_its_receipts() {
    let mut talk = ClaudeTalk::new();
    talk.prompt("first");
    let command = talk.steer("s", SteerMode::Auto, "change of plan").expect("a command");
    let command: serde_json::Value = serde_json::from_slice(&command).unwrap();
    // The recording was made with another name of the message.
    let stream = String::from_utf8(read("claude-sj-steer")).unwrap();
    let stream = stream.replace("11111111-1111-4111-8111-111111111111", command["uuid"].as_str().unwrap());
    let (seen, _) = replay([stream.as_bytes()]);
    let mut moves = Vec::new();
    let mut done = Vec::new();
    for event in &seen.events {
        moves.extend(talk.receipts(event).into_iter().map(|r| (r.id, r.state)));
        done.push(talk.done());
    }
    assert_eq!(moves, [("s".to_owned(), TargetState::Queued), ("s".to_owned(), TargetState::Delivered)]);
    assert_eq!(done.last(), Some(&true));
    assert!(done.iter().filter(|done| **done).count() <= 2, "done at the very end only");
}
