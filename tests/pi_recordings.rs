//! Recorded output of the real pi, replayed: what is found in it was read from the recordings by a person.

use subdeck::agents::pi::{PiAdapter, PiTalk, decode_line};
use subdeck::agents::{Adapter, Framer, Sink, Talk};
use subdeck::run::{
    AgentEvent, Evidence, ExitInfo, Report, SteerMode, StepPhase, Stream, TargetState, Tokens, ToolOutcome, judge,
};

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<AgentEvent>,
    log: String,
    /// Lines that are kept as they are, and records in their place.
    records: Vec<Vec<u8>>,
    line: Vec<u8>,
}

impl Sink for Seen {
    fn event(&mut self, event: AgentEvent) {
        self.events.push(event);
    }
    fn keep_line(&mut self) {
        self.records.push(self.line.clone());
    }
    fn record(&mut self, json: &[u8]) {
        self.records.push(json.to_vec());
    }
    fn text(&mut self, _stream: Stream, text: &str) {
        self.log.push_str(text);
    }
}

fn replay<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let mut seen = Seen::default();
    let mut adapter = PiAdapter::new();
    let mut framer = Framer::new();
    let mut line = |line: subdeck::agents::Line<'_>, seen: &mut Seen| {
        if let subdeck::agents::Line::Text { bytes, .. } = &line {
            seen.line = bytes.to_vec();
        }
        adapter.line(&line, seen);
    };
    for chunk in chunks {
        framer.push(chunk, |l| line(l, &mut seen));
    }
    framer.finish(|l| line(l, &mut seen));
    let report = adapter.report();
    (seen, report)
}

fn phase(report: &Report, exit: ExitInfo) -> (StepPhase, i32, Option<String>) {
    let judged = judge(&Evidence { report, exit, spawn_error: None, ending: None, stderr_tail: "" });
    (judged.outcome.phase, judged.outcome.exit_code, judged.outcome.error)
}

fn read(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/streams/pi-{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

struct Recording {
    name: &'static str,
    exit: ExitInfo,
    session: Option<&'static str>,
    /// Tools in the order they ended, and whether they worked; `None` for one that never ended.
    tools: &'static [(&'static str, Option<bool>)],
    text: Option<&'static str>,
    /// Input and output tokens, and the cost in millionths of a dollar.
    usage: (u64, u64, u64),
    end: (StepPhase, i32, Option<&'static str>),
}

const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };
const DONE: (StepPhase, i32, Option<&str>) = (StepPhase::Complete, 0, None);
const HELLO: &str = "Hello from the fake model. This is a plain answer with héllo 漢字 🙂.";
const LONG_COMMAND: &str = "Running a very long command.";
const E400: &str = r#"400: {"message":"bad request (fake)","type":"invalid_request_error","code":400}"#;
const E401: &str = r#"401: {"message":"invalid api key (fake)","type":"authentication_error","code":401}"#;
const E500: &str = r#"500: {"message":"internal server error (fake)","type":"server_error","code":500}"#;

const fn code(code: i32) -> ExitInfo {
    ExitInfo { code: Some(code), signal: None }
}

const fn signal(signal: i32) -> ExitInfo {
    ExitInfo { code: None, signal: Some(signal) }
}

fn recordings() -> Vec<Recording> {
    let failed = |code, error| (StepPhase::Failed, code, Some(error));
    let unfinished = "the agent ended without saying that it was done";
    let all = |name, exit, session, tools, text, usage, end| Recording { name, exit, session, tools, text, usage, end };
    vec![
        all(
            "0.84.4-bash",
            OK,
            Some("01a2270c-7c65-7d9b-8a9b-3ee2277b284b"),
            &[("bash", Some(true))],
            Some("The command printed one and two."),
            (260, 40, 460),
            DONE,
        ),
        all(
            "0.84.4-cutstream",
            OK,
            Some("01a2270d-fd11-7d31-bf2a-5510ab19d6ef"),
            &[],
            None,
            (0, 0, 0),
            failed(1, "terminated"),
        ),
        all("0.84.4-err400", OK, Some("01a22715-f2d4-722f-9122-4868612b529d"), &[], None, (0, 0, 0), failed(1, E400)),
        all("0.84.4-err401", OK, Some("01a22715-ef0a-78ef-9c7d-d77e8ba31442"), &[], None, (0, 0, 0), failed(1, E401)),
        all(
            "0.84.4-err429once",
            OK,
            Some("01a2270d-25c1-74c3-8c1a-ea0200e78a27"),
            &[],
            Some("Recovered after one 429."),
            (120, 20, 220),
            DONE,
        ),
        all("0.84.4-err500", OK, Some("01a22715-b117-75ac-b1b9-c43d33fddd88"), &[], None, (0, 0, 0), failed(1, E500)),
        all(
            "0.84.4-failing",
            OK,
            Some("01a2270c-b7d8-7552-ba1d-a3e2985dbb62"),
            &[("bash", Some(false)), ("read", Some(false)), ("no_such_tool", Some(false)), ("bash", Some(false))],
            Some("All of those failed, as expected."),
            (610, 80, 1010),
            DONE,
        ),
        all(
            "0.84.4-longtool",
            OK,
            Some("01a22715-8bd2-7683-ab4e-e202d5e18ac5"),
            &[("bash", Some(true))],
            Some("The long command finished."),
            (260, 40, 460),
            DONE,
        ),
        all(
            "0.84.4-midstream",
            OK,
            Some("01a2270d-f90f-7e93-8fec-b3d5275fa01c"),
            &[],
            None,
            (0, 0, 0),
            failed(1, "upstream exploded (fake)"),
        ),
        all(
            "0.84.4-multi",
            OK,
            Some("01a2270c-d204-75af-8abb-8e17f8a40d4a"),
            &[("bash", Some(true)); 4],
            Some("All four steps are done."),
            (800, 100, 1300),
            DONE,
        ),
        all(
            "0.84.4-parallel",
            OK,
            Some("01a2270c-853f-7213-a853-403a005dedbd"),
            &[("read", Some(true)), ("bash", Some(true)), ("bash", Some(true))],
            Some("All three tools returned."),
            (280, 40, 480),
            DONE,
        ),
        all("0.84.4-plain", OK, Some("01a2270c-71d0-7565-9cec-8137544cb2d2"), &[], Some(HELLO), (120, 20, 220), DONE),
        all("0.84.4-rpc-abort-stream", OK, None, &[], None, (0, 0, 0), failed(1, "Request was aborted")),
        all("0.84.4-rpc-abort", OK, None, &[("bash", Some(false))], Some(HELLO), (270, 40, 470), DONE),
        all(
            "0.84.4-rpc-bad",
            OK,
            None,
            &[],
            None,
            (0, 0, 0),
            failed(1, "the agent produced no output and ended without saying that it was done"),
        ),
        all(
            "0.84.4-rpc-eof-midrun",
            OK,
            None,
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(1, unfinished),
        ),
        all(
            "0.84.4-rpc-plain",
            OK,
            Some("01a2270e-ba73-7c5a-8024-66699df8cec0"),
            &[("bash", Some(true))],
            Some("The command printed one and two."),
            (260, 40, 460),
            DONE,
        ),
        all(
            "0.84.4-rpc-sigint",
            signal(2),
            None,
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(1, "Subagent process terminated by signal SIGINT."),
        ),
        all(
            "0.84.4-rpc-sigterm",
            code(143),
            None,
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(143, "exited with code 143"),
        ),
        all(
            "0.84.4-rpc-steer",
            OK,
            None,
            &[("bash", Some(true)); 4],
            Some("Acknowledged steering: <<And a follow-up afterwards>>"),
            (1070, 120, 1670),
            DONE,
        ),
        all(
            "0.84.4-sighup-tool",
            code(129),
            Some("01a22716-01b9-774f-8d72-8050e2b90c2f"),
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(129, "exited with code 129"),
        ),
        all(
            "0.84.4-sigint-tool",
            signal(2),
            Some("01a22715-f715-7650-a947-1895784ee359"),
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(1, "Subagent process terminated by signal SIGINT."),
        ),
        all(
            "0.84.4-sigkill-tool",
            signal(9),
            Some("01a22716-078c-77f1-8270-8043f665c99b"),
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(1, "Subagent process terminated by signal SIGKILL."),
        ),
        all(
            "0.84.4-sigterm-tool",
            code(143),
            Some("01a22715-fca8-7bb5-9a0a-406be1db9ef1"),
            &[("bash", None)],
            Some(LONG_COMMAND),
            (120, 20, 220),
            failed(143, "exited with code 143"),
        ),
        all(
            "0.84.4-stdout-closed",
            code(1),
            Some("01a2270e-594d-7678-983b-3de53db896f9"),
            &[("bash", Some(true)), ("bash", None)],
            Some("Step 2."),
            (260, 40, 460),
            failed(1, "exited with code 1"),
        ),
        all(
            "0.84.4-thinking",
            OK,
            Some("01a2270c-76b6-75ef-b927-1fb7631ee2e9"),
            &[],
            Some("Thought about it: answer is 42."),
            (120, 20, 440),
            DONE,
        ),
        all(
            "0.84.4-tooltimeout",
            OK,
            Some("01a2270c-beb3-7ad7-bb97-271ce8c27bfb"),
            &[("bash", Some(false))],
            Some("It timed out."),
            (260, 40, 460),
            DONE,
        ),
        all(
            "1.6.0-bash",
            OK,
            Some("01a2270f-123a-7286-9086-51496f98527b"),
            &[("bash", Some(true))],
            Some("The command printed one and two."),
            (260, 40, 460),
            DONE,
        ),
        all("1.6.0-plain", OK, Some("01a2270f-0376-73f8-ae30-be653e7cc794"), &[], Some(HELLO), (120, 20, 220), DONE),
        all(
            "1.6.0-rpc-steer",
            OK,
            None,
            &[("bash", Some(true)); 4],
            Some("Acknowledged steering: <<And a follow-up afterwards>>"),
            (1070, 120, 1670),
            DONE,
        ),
    ]
}

#[test]
fn every_recording_has_its_row() {
    let dir = format!("{}/tests/fixtures/streams", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .expect("the folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_prefix("pi-")?.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    files.sort();
    let mut rows: Vec<String> = recordings().iter().map(|r| r.name.to_owned()).collect();
    rows.sort();
    assert_eq!(rows, files);
}

#[test]
fn recordings_mean_what_a_person_reads_in_them() {
    for recording in recordings() {
        let name = recording.name;
        let (seen, report) = replay([read(name).as_slice()]);
        let session = seen.events.iter().find_map(|event| match event {
            AgentEvent::SessionStarted { session_id, .. } => session_id.as_deref(),
            _ => None,
        });
        assert_eq!(session, recording.session, "{name}");

        let mut open: Vec<(Option<String>, String)> = Vec::new();
        let mut tools: Vec<(String, Option<bool>)> = Vec::new();
        let mut tokens = Tokens::default();
        let mut cost = 0.0;
        for event in &seen.events {
            match event {
                AgentEvent::ToolStarted { call, tool, .. } => open.push((call.clone(), tool.clone())),
                AgentEvent::ToolEnded { call, tool, outcome, .. } => {
                    let at = open.iter().position(|(id, _)| id == call).expect("the call was opened");
                    let (_, started) = open.remove(at);
                    assert_eq!(tool.as_deref(), Some(started.as_str()), "{name}");
                    tools.push((started, Some(*outcome == ToolOutcome::Ok)));
                }
                AgentEvent::Message { usage: Some(usage), .. } => {
                    tokens += usage.tokens;
                    cost += usage.cost.map_or(0.0, |cost| cost.0);
                }
                AgentEvent::Unknown { kind } => panic!("{name}: unknown {kind}"),
                AgentEvent::Unparsed { .. } => panic!("{name}: unparsed"),
                _ => {}
            }
        }
        tools.extend(open.into_iter().map(|(_, tool)| (tool, None)));
        let expected: Vec<(String, Option<bool>)> =
            recording.tools.iter().map(|(t, ok)| ((*t).to_owned(), *ok)).collect();
        assert_eq!(tools, expected, "{name}");
        assert_eq!((tokens.input, tokens.output, (cost * 1e6_f64).round() as u64), recording.usage, "{name}");
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, exit_code, error) = phase(&report, recording.exit);
        assert_eq!((phase, exit_code, error.as_deref()), recording.end, "{name}");
    }
}

#[test]
fn the_cutting_of_the_input_changes_nothing() {
    for recording in recordings() {
        let bytes = read(recording.name);
        let whole = replay([bytes.as_slice()]);
        assert_eq!(replay(bytes.split_inclusive(|b| *b == b'\n')), whole, "{}", recording.name);
        assert_eq!(replay(bytes.chunks(1)), whole, "{}", recording.name);
        assert_eq!(replay(bytes.chunks(4093)), whole, "{}", recording.name);
    }
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
        let end = end - 2;
        for cut in (0..50).map(|n| end * n / 49) {
            let (_, report) = replay([&bytes[..cut]]);
            let (phase, _, _) = phase(&report, OK);
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
