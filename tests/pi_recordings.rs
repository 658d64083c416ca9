//! Recorded output of the real pi, replayed: what is found in it was read from the recordings by a person.

#[path = "support/recordings.rs"]
mod recordings;
#[path = "support/replayed.rs"]
mod replayed;

use subdeck::agents::Talk;
use subdeck::agents::pi::{PiAdapter, PiTalk, decode_line};
use subdeck::run::{AgentEvent, Report, SteerMode, StepPhase, TargetState};

use recordings::{HELLO, LONG_COMMAND, OK, read, recordings};
use replayed::{Seen, Told, check_breaking_off, check_cutting, check_rows, check_thoughts, check_unknown, outcome};

fn replay<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    replayed::replay(&mut PiAdapter::new(), chunks)
}

#[test]
fn every_recording_has_its_row() {
    check_rows(|file| file.strip_prefix("pi-").map(str::to_owned), recordings().iter().map(|r| r.name));
}

#[test]
fn recordings_mean_what_a_person_reads_in_them() {
    for recording in recordings() {
        let name = recording.name;
        let (seen, report) = replay([read(name).as_slice()]);
        let told = Told::of(name, &seen.events);
        let session = told.sessions.first().and_then(|(id, _)| id.as_deref());
        assert_eq!(session, recording.session, "{name}");
        assert_eq!(told.worked(), recording.tools, "{name}");
        assert_eq!((told.tokens.input, told.tokens.output, told.cost), recording.usage, "{name}");
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, exit_code, error) = outcome(&report, recording.exit);
        assert_eq!((phase, exit_code, error.as_deref()), recording.end, "{name}");
    }
}

#[test]
fn the_cutting_of_the_input_changes_nothing() {
    for recording in recordings() {
        check_cutting(recording.name, &read(recording.name), |chunks| replay(chunks));
    }
}

#[test]
fn what_is_not_known_is_counted_and_changes_nothing_else() {
    let unknown = [r#"{"type":"brand_new","payload":{"type":"agent_end"}}"#, r#"{ "type" : "brand.newer" }"#];
    for recording in recordings() {
        check_unknown(recording.name, &read(recording.name), &unknown, |chunks| replay(chunks));
    }
}

#[test]
fn what_was_thought_stands_in_the_record_of_the_message() {
    let table = [("0.84.4-thinking", "Let me think about this for a moment.", "Thought about it: answer is 42.")];
    check_thoughts(&table, recordings().iter().map(|r| (r.name, replay([read(r.name).as_slice()]).0)));
}

#[test]
fn what_is_kept_decodes_to_what_was_said() {
    for recording in recordings() {
        let (seen, _) = replay([read(recording.name).as_slice()]);
        let mut kept = Vec::new();
        for record in &seen.records {
            decode_line(record, &mut kept);
        }
        let said: Vec<AgentEvent> = seen
            .events
            .into_iter()
            .filter(|event| !matches!(event, AgentEvent::TextDelta { .. }))
            .map(without_prompt())
            .collect();
        let kept: Vec<AgentEvent> = kept.into_iter().map(without_prompt()).collect();
        assert_eq!(kept, said, "{}", recording.name);
        if recording.name == "0.84.4-rpc-abort" {
            // Its second prompt is a later message like any other.
            continue;
        }
        let all = seen.records.concat();
        assert!(memchr::memmem::find(&all, b"Please run @@").is_none(), "{}: the task is in the log", recording.name);
        assert!(!seen.log.contains("Please run @@"), "{}: the task is in the log", recording.name);
    }
}

/// The text of the first message of the user and of system messages is not kept.
fn without_prompt() -> impl FnMut(AgentEvent) -> AgentEvent {
    use subdeck::run::MessageRole::{System, User};
    let mut prompted = false;
    move |mut event| {
        if let AgentEvent::Message { role, preview, .. } = &mut event {
            if *role == System || (*role == User && !prompted) {
                "[prompt redacted]".clone_into(preview);
            }
            prompted |= *role == User;
        }
        event
    }
}

#[test]
fn a_cut_recording_is_never_complete() {
    for recording in recordings() {
        let bytes = read(recording.name);
        // The last byte of the first record that says that the agent is done, or of the recording.
        let mut end = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            end += line.len();
            let last = memchr::memmem::find(line, br#""stopReason":"stop""#).is_some();
            if last && line.starts_with(br#"{"type":"message_end""#) {
                break;
            }
        }
        // Without the line feed and the brace before it.
        check_breaking_off(recording.name, &bytes, end - 2, |chunks| replay(chunks));
        // Nor in the middle of whatever comes after it, down to the last byte but one (the line feed is no part of it).
        let last = bytes.iter().rposition(|b| *b == b'}').unwrap();
        for cut in [last, last.saturating_sub(5)] {
            let (_, report) = replay([&bytes[..cut]]);
            let (phase, _, _) = outcome(&report, OK);
            assert_ne!(phase, StepPhase::Complete, "{} cut at {cut}", recording.name);
        }
    }
}

#[test]
fn the_log_reads_like_a_conversation() {
    let table = [
        ("0.84.4-plain", format!("{HELLO}\n")),
        (
            "0.84.4-bash",
            "I will list files.\nbash: echo one; sleep 1; echo two; ls\none\ntwo\nREADME.md\nmain.c\n\
             The command printed one and two.\n"
                .to_owned(),
        ),
        (
            "0.84.4-parallel",
            "Three tools at once.\nbash: sleep 2; echo A\nbash: sleep 1; echo B\nread: README.md\n# Demo project\nB\nA\n\
             All three tools returned.\n"
                .to_owned(),
        ),
        ("0.84.4-thinking", "Thought about it: answer is 42.\n".to_owned()),
        (
            "0.84.4-err429once",
            "model error: 429: {\"message\":\"rate limit exceeded (fake)\",\"type\":\"rate_limit_error\",\"code\":429}\n\
             retry 1 of 3 in 2.0 s\nRecovered after one 429.\n"
                .to_owned(),
        ),
        (
            "0.84.4-rpc-abort-stream",
            "Starting an endless answer: tick0 tick1 \nbroken off: Request was aborted\n".to_owned(),
        ),
        ("0.84.4-sigkill-tool", format!("{LONG_COMMAND}\nbash: for i in $(seq 1 120); do echo tick $i; sleep 1; done\ntick 1\n")),
    ];
    for (name, expected) in table {
        assert_eq!(replay([read(name).as_slice()]).0.log, expected, "{name}");
    }
    // That version says that the abort of a running tool is an error of the model.
    let (seen, _) = replay([read("0.84.4-rpc-abort").as_slice()]);
    assert!(seen.log.contains("broken off: This operation was aborted\n"), "{}", seen.log);
    let (seen, _) = replay([read("0.84.4-rpc-steer").as_slice()]);
    assert!(seen.log.contains("s1\n» Please also mention bananas\nAcknowledged steering"), "{}", seen.log);
}

#[test]
fn messages_to_the_agent_get_their_receipts() {
    for name in ["0.84.4-rpc-steer", "1.6.0-rpc-steer"] {
        let mut talk = PiTalk::new();
        talk.prompt("Please run @@fake:slowsteps@@");
        // The recording was made with the bare texts and the ids `s` and `f`.
        let mut stream = String::from_utf8(read(name)).expect("text");
        for (id, mode, text) in [
            ("s", SteerMode::Auto, "Please also mention bananas"),
            ("f", SteerMode::FollowUp, "And a follow-up afterwards"),
        ] {
            let command = talk.steer(id, mode, text).expect("a command");
            let command: serde_json::Value = serde_json::from_slice(&command).expect("JSON");
            stream = stream.replace(&format!("{text:?}"), &command["message"].to_string());
        }
        let (seen, _) = replay([stream.as_bytes()]);
        let mut moves = Vec::new();
        let mut done = Vec::new();
        for event in &seen.events {
            moves.extend(talk.receipts(event).into_iter().map(|r| (r.id, r.state)));
            done.push(talk.done());
        }
        let expected = [
            ("s", TargetState::Queued),
            ("s", TargetState::Delivered),
            ("f", TargetState::Queued),
            ("f", TargetState::Delivered),
        ];
        assert_eq!(moves, expected.map(|(id, state)| (id.to_owned(), state)), "{name}");
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{name}: done at the very end only");
        assert_eq!(done.last(), Some(&true), "{name}");
        assert!(seen.log.contains("» Please also mention bananas\n"), "{name}: {}", seen.log);
    }
}
