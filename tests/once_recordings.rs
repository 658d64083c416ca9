//! Recorded output of agents with one prompt, replayed: what is found in it was worked out from their raw
//! JSON, apart from the adapters.

#[path = "support/once_recordings/mod.rs"]
mod once_recordings;
#[path = "support/replayed.rs"]
mod replayed;

use subdeck::agents::Adapter;
use subdeck::agents::once::{CopilotAdapter, GeminiAdapter, OpenCodeAdapter, QwenAdapter};
use subdeck::run::{AgentEvent, Report, StepPhase};

use once_recordings::{BASH, HELLO, OK, THOUGHT, read, recordings};
use replayed::{
    Seen, Told, check_breaking_off, check_cutting, check_long_call, check_records, check_rows, check_thoughts,
    check_unknown, first_arguments, outcome,
};

const FAMILIES: [&str; 4] = ["copilot-", "gemini-", "opencode-", "qwen-"];

fn replay<'a>(name: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let mut adapter: Box<dyn Adapter> = match name.split('-').next() {
        Some("copilot") => Box::new(CopilotAdapter::new()),
        Some("gemini") => Box::new(GeminiAdapter::new()),
        Some("opencode") => Box::new(OpenCodeAdapter::new()),
        _ => Box::new(QwenAdapter::new(name.ends_with("-sid-resume"))),
    };
    let said = replayed::replay(adapter.as_mut(), chunks);
    assert_eq!(said.0.kept_lines, 0, "a line of another vocabulary is never kept as it is");
    said
}

#[test]
fn every_recording_has_its_row() {
    let scene = |file: &str| {
        let mine = FAMILIES.iter().any(|family| file.starts_with(family)) && !file.contains("-acp-");
        mine.then(|| file.to_owned())
    };
    check_rows(scene, recordings().iter().map(|r| r.name));
}

#[test]
fn recordings_mean_what_their_json_says() {
    for recording in recordings() {
        let name = recording.name;
        let (seen, report) = replay(name, [read(name).as_slice()]);
        let told = Told::of(name, &seen.events);
        let session: Vec<_> = recording.session.iter().map(|id| (Some(*id), recording.model)).collect();
        assert_eq!(told.sessions(), session, "{name}");
        for (tool, args) in told.calls.iter().filter(|(tool, _)| tool.contains("bash") || tool.contains("shell")) {
            let known = args.starts_with("python3 -c") || args.starts_with("echo ");
            assert!(known, "{name}: what {tool} does is known when it starts: {args:?}");
        }
        assert_eq!(told.tools(), recording.tools, "{name}");
        let used = (told.tokens.input, told.tokens.output, told.tokens.cache_read, told.cost);
        assert_eq!(used, recording.usage, "{name}");
        assert_eq!(report.final_text.as_deref(), recording.text, "{name}");
        let (phase, code, error) = recording.end;
        assert_eq!(outcome(&report, recording.exit), (phase, code, error.map(str::to_owned)), "{name}");
    }
}

#[test]
fn how_the_bytes_are_cut_changes_nothing() {
    for recording in recordings() {
        check_cutting(recording.name, &read(recording.name), |chunks| replay(recording.name, chunks));
    }
}

#[test]
fn what_is_not_known_is_counted_and_changes_nothing_else() {
    let each = [r#"{"type":"brand.new","data":{"message":"x"},"status":"error"}"#];
    let copilot =
        [each[0], r#"{"type":"session.brand_new","data":{}}"#, r#"{"type":"brand.new","agentId":"a","data":{}}"#];
    let qwen = [each[0], r#"{"type":"system","subtype":"brand_new","data":{}}"#];
    for recording in recordings() {
        let name = recording.name;
        let unknown: &[&str] = match name {
            _ if name.starts_with("copilot") => &copilot,
            _ if name.starts_with("qwen") => &qwen,
            _ => &each,
        };
        check_unknown(name, &read(name), unknown, |chunks| replay(name, chunks));
    }
}

#[test]
fn what_was_thought_stands_in_the_record_of_the_message() {
    let table = [
        ("copilot-1.0.102-think", "Let me think about it for a moment.", THOUGHT),
        ("opencode-1.18.33-thinking", "Let me think about it for a moment.", THOUGHT),
        ("qwen-0.24.4-think", "Let me think about it for a moment.", THOUGHT),
    ];
    check_thoughts(&table, recordings().iter().map(|r| (r.name, replay(r.name, [read(r.name).as_slice()]).0)));
}

#[test]
fn a_cut_recording_is_never_complete() {
    let mut cut = 0;
    for recording in recordings().into_iter().filter(|recording| recording.end.0 == StepPhase::Complete) {
        let bytes = read(recording.name);
        // Up to the last brace of the line that says that it is over, which is the last one.
        let end = bytes.iter().rposition(|b| *b == b'}').expect("a record");
        let start = bytes[..end].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let last = String::from_utf8_lossy(&bytes[start..end]);
        assert!(last.contains(r#""type":"result""#) || last.contains(r#""reason":"stop""#), "{last}");
        check_breaking_off(recording.name, &bytes, end, |chunks| replay(recording.name, chunks));
        cut += 1;
    }
    assert!(cut > 40);
    assert_eq!(OK.code, Some(0));
}

#[test]
fn what_is_recorded_says_the_same() {
    for recording in recordings() {
        check_records(recording.name, &replay(recording.name, [read(recording.name).as_slice()]).0);
    }
}

#[test]
fn the_log_reads_like_a_conversation() {
    let nap = r#"python3 -c "import time; time.sleep(3)"; echo tool-finished"#;
    let ran = |tool: &str| format!("I will run a shell command.\n{tool}: {nap}\ntool-finished\n{BASH}\n");
    for (name, expected) in [
        ("gemini-0.61.0-text", format!("{HELLO}\n")),
        ("gemini-0.61.0-bash", ran("run_shell_command")),
        ("qwen-0.24.4-bash", ran("run_shell_command")),
        ("opencode-1.18.33-bash", ran("bash")),
        (
            "copilot-1.0.102-bash",
            ran("bash").replace(BASH, &format!("<shellId: 0 completed with exit code 0>\n{BASH}")),
        ),
        ("opencode-1.18.33-err500", "model error: 500: scripted server error\n".to_owned()),
    ] {
        assert_eq!(replay(name, [read(name).as_slice()]).0.log, expected, "{name}");
    }
}

#[test]
fn what_a_call_is_told_stands_whole_in_its_record() {
    let long = |name: &str| check_long_call(name, &read(name), |chunks| replay(name, chunks));
    assert_eq!(recordings().iter().filter(|recording| long(recording.name)).count(), 4, "one of each agent");
    for (name, expected) in [
        ("opencode-1.18.33-write", r#"{"content":"written\n","filePath":"/home/user/project/out.txt"}"#),
        ("qwen-0.24.4-write", r#"{"file_path":"/home/user/project/out.txt","content":"written\n"}"#),
    ] {
        assert_eq!(first_arguments(&replay(name, [read(name).as_slice()]).0), expected, "{name}: in its order");
    }
}

/// The sub-agents of Copilot and Qwen are told with what they do and their own numbers.
#[test]
fn sub_agents_do_not_mix_with_their_parent() {
    for (name, id) in
        [("copilot-1.0.102-task", "call_2d641ef1cca04aa1b039"), ("qwen-0.24.4-task", "call_7d5596f0c1214ae481f9")]
    {
        let (seen, _) = replay(name, [read(name).as_slice()]);
        let did: Vec<(&str, String)> = seen
            .events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::SubAgent { id, did } => Some((id.as_str(), format!("{did:?}"))),
                _ => None,
            })
            .collect();
        assert!(did.iter().all(|(of, _)| *of == id), "{name}: {did:?}");
        let has = |what: &str| assert!(did.iter().any(|(_, did)| did.starts_with(what)), "{name}: {what}: {did:?}");
        for what in [r#"Started { name: "general-purpose", "#, "Used(4314)", "Ended(Ok)"] {
            has(what);
        }
    }
}
