//! Recorded output of the real pi, and what a person reads in it.

use subdeck::run::{ExitInfo, StepPhase};

pub fn read(name: &str) -> Vec<u8> {
    let file = match name.strip_prefix("claude-") {
        Some(scene) => format!("claude-2.1.332-{scene}"),
        None => format!("pi-{name}"),
    };
    let path = format!("{}/tests/fixtures/streams/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub struct Recording {
    pub name: &'static str,
    pub exit: ExitInfo,
    pub session: Option<&'static str>,
    /// Tools in the order they ended, and whether they worked; `None` for one that never ended.
    pub tools: &'static [(&'static str, Option<bool>)],
    pub text: Option<&'static str>,
    /// Input and output tokens, and the cost in millionths of a dollar.
    pub usage: (u64, u64, u64),
    pub end: (StepPhase, i32, Option<&'static str>),
}

pub const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };
pub const DONE: (StepPhase, i32, Option<&str>) = (StepPhase::Complete, 0, None);
pub const HELLO: &str = "Hello from the fake model. This is a plain answer with héllo 漢字 🙂.";
pub const LONG_COMMAND: &str = "Running a very long command.";
const E400: &str = r#"400: {"message":"bad request (fake)","type":"invalid_request_error","code":400}"#;
const E401: &str = r#"401: {"message":"invalid api key (fake)","type":"authentication_error","code":401}"#;
const E500: &str = r#"500: {"message":"internal server error (fake)","type":"server_error","code":500}"#;

pub const fn code(code: i32) -> ExitInfo {
    ExitInfo { code: Some(code), signal: None }
}

pub const fn signal(signal: i32) -> ExitInfo {
    ExitInfo { code: None, signal: Some(signal) }
}

pub const fn all(
    name: &'static str,
    exit: ExitInfo,
    session: Option<&'static str>,
    tools: &'static [(&'static str, Option<bool>)],
    text: Option<&'static str>,
    usage: (u64, u64, u64),
    end: (StepPhase, i32, Option<&'static str>),
) -> Recording {
    Recording { name, exit, session, tools, text, usage, end }
}

pub fn recordings() -> Vec<Recording> {
    let failed = |code, error| (StepPhase::Failed, code, Some(error));
    let unfinished = "the agent ended without saying that it was done";
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
