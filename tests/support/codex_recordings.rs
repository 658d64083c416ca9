//! Recorded output of the real Codex, and what a person reads in it.

use std::collections::HashMap;

use serde_json::Value;
use subdeck::run::{ExitInfo, StepPhase, ToolOutcome};

fn file(name: &str, end: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/streams/codex-0.171.0-{name}{end}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub fn is_server(name: &str) -> bool {
    name.starts_with("app-")
}

/// What the client of the recording wrote, as it stands there.
fn written(name: &str) -> Vec<Value> {
    let text = String::from_utf8(file(name, ".sent.jsonl")).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The ids that this program gives the requests which the recordings were made with, by the ids that they had.
fn names(name: &str) -> HashMap<u64, String> {
    let mut turns = 0;
    let mut names = HashMap::new();
    for message in written(name) {
        let (Some(id), Some(method)) = (message["id"].as_u64(), message["method"].as_str()) else { continue };
        let kind = match method {
            "initialize" => "initialize".to_owned(),
            "thread/start" | "thread/resume" => "thread".to_owned(),
            _ => {
                turns += 1;
                let kind = if method == "turn/start" { "turn" } else { method.trim_start_matches("turn/") };
                format!("{kind}:{turns}")
            }
        };
        names.insert(id, kind);
    }
    names
}

/// What the client of the recording wrote, with the ids of this program.
pub fn sent(name: &str) -> Vec<Value> {
    let names = names(name);
    let mut messages = written(name);
    for message in messages.iter_mut().filter(|message| message.get("method").is_some()) {
        if let Some(id) = message["id"].as_u64() {
            message["id"] = names[&id].clone().into();
        }
    }
    messages
}

/// What the agent printed; answers carry the ids of this program. Nothing else is changed.
pub fn read(name: &str) -> Vec<u8> {
    let bytes = file(name, ".jsonl");
    if !is_server(name) {
        return bytes;
    }
    let names = names(name);
    let text = String::from_utf8(bytes).expect("text");
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let message: Value = serde_json::from_str(line).expect("JSON");
        match message["id"].as_u64().filter(|_| message.get("method").is_none()) {
            Some(id) => {
                let (old, new) = (format!("\"id\":{id}"), format!("\"id\":\"{}\"", names[&id]));
                assert_eq!(line.matches(&old).count(), 1, "{line}");
                out.push_str(&line.replace(&old, &new));
            }
            None => out.push_str(line),
        }
    }
    out.into_bytes()
}

pub struct Recording {
    pub name: &'static str,
    pub exit: ExitInfo,
    pub session: Option<&'static str>,
    pub model: Option<&'static str>,
    /// Tools in the order they ended; `None` for one that never ended.
    pub tools: &'static [(&'static str, Option<ToolOutcome>)],
    pub text: Option<&'static str>,
    /// Input, output and cached tokens.
    pub usage: (u64, u64, u64),
    /// How often the model was called, as far as the stream tells.
    pub turns: usize,
    pub end: (StepPhase, i32, Option<&'static str>),
}

pub const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };
const ONE: ExitInfo = ExitInfo { code: Some(1), signal: None };
const TERM: ExitInfo = ExitInfo { code: None, signal: Some(15) };
const DONE: (StepPhase, i32, Option<&str>) = (StepPhase::Complete, 0, None);
pub const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";
const COMMAND: &str = "I will run a shell command.";
const BASH: &str = "Final answer for scenario bash: all done.";
const FAIL: &str = "Final answer for scenario fail: all done.";
const PARALLEL: &str = "Final answer for scenario parallel: all done.";
const WRITE: &str = "Final answer for scenario write: all done.";
const E500: &str = "We’re currently experiencing high demand, which may cause temporary errors.";
const CUT: &str = "stream disconnected before completion: stream closed before response.completed";
/// What no, one and two model calls used.
const NONE: (u64, u64, u64) = (0, 0, 0);
const CALL: (u64, u64, u64) = (1300, 57, 800);
const TWICE: (u64, u64, u64) = (2600, 114, 1600);

pub fn recordings() -> Vec<Recording> {
    use ToolOutcome::{Cancelled, Denied, Error, Ok};
    let all = |name, exit, session, model, tools, text, usage, turns, end| Recording {
        name,
        exit,
        session: Some(session),
        model,
        tools,
        text,
        usage,
        turns,
        end,
    };
    let exec = |name, exit, session, tools, text, usage, turns, end| {
        all(name, exit, session, None, tools, text, usage, turns, end)
    };
    let app = |name, session, tools, text, usage, turns, end| {
        let model = match name {
            "app-patch" | "app-patch-declined" => "gpt-5.5",
            "app-spawn" => "gpt-6-sol",
            _ => "fake-model",
        };
        all(name, OK, session, Some(model), tools, text, usage, turns, end)
    };
    let failed = |error| (StepPhase::Failed, 1, Some(error));
    let shell: &[_] = &[("shell", Some(Ok))];
    let shells: &[_] = &[("shell", Some(Ok)), ("shell", Some(Ok))];
    let broken: &[_] = &[("shell", Some(Error))];
    let open: &[_] = &[("shell", None)];
    let patch: &[_] = &[("apply_patch", Some(Ok))];
    vec![
        // One prompt. A call of a tool that is not there, of a plan and of a reading tool leaves no line.
        exec(
            "badtool",
            OK,
            "01a22710-308f-75b2-ac17-838a5dfa0592",
            &[],
            Some("Final answer for scenario badtool: all done."),
            TWICE,
            1,
            DONE,
        ),
        exec("bash", OK, "01a22710-168d-7510-9df0-0454a0b421e3", shell, Some(BASH), TWICE, 2, DONE),
        exec("codemode-bash", OK, "01a22716-68a6-7ea2-b2be-27641b4cf967", shell, Some(BASH), TWICE, 2, DONE),
        exec("codemode-fail", OK, "01a22716-7478-7401-ba3b-0645c96ee809", broken, Some(FAIL), TWICE, 2, DONE),
        exec(
            "err429",
            ONE,
            "01a22711-0beb-71b0-9822-7db03b741bb8",
            &[],
            None,
            NONE,
            0,
            failed("exceeded retry limit, last status: 429 Too Many Requests"),
        ),
        exec("err500", ONE, "01a22711-0d6d-7861-8850-5e4cb8230ff8", &[], None, NONE, 0, failed(E500)),
        exec(
            "err500once",
            OK,
            "01a22710-3901-7e63-9229-74995b0d07f5",
            &[],
            Some("Recovered after a provider error."),
            CALL,
            1,
            DONE,
        ),
        exec("fail", OK, "01a22710-2d75-7463-a717-6185b0b7399c", broken, Some(FAIL), TWICE, 2, DONE),
        // Nothing tells that both calls were of one answer.
        exec("known-model", OK, "01a22715-fb87-7273-9a1c-d063b22c3af9", shells, Some(PARALLEL), TWICE, 3, DONE),
        exec("last-message-file", OK, "01a22714-f787-7661-b685-a86607ca3967", &[], Some(HELLO), CALL, 1, DONE),
        exec("parallel", OK, "01a22710-2641-7863-ad72-0146c97de8a5", shells, Some(PARALLEL), TWICE, 3, DONE),
        exec("patch", OK, "01a22715-f1ed-7383-9930-298bbb1d1382", patch, Some(WRITE), TWICE, 2, DONE),
        exec(
            "pg-sigint-tool",
            ONE,
            "01a22714-6965-76f3-931c-edbe4ce0d83d",
            open,
            Some(COMMAND),
            NONE,
            1,
            failed("exited with code 1"),
        ),
        exec(
            "plan",
            OK,
            "01a22715-f6e2-7f33-bd39-2fb2c0c1dac4",
            &[],
            Some("Final answer for scenario plan: all done."),
            TWICE,
            1,
            DONE,
        ),
        exec(
            "read",
            OK,
            "01a22710-331a-77f1-b828-5ef4b3062937",
            &[],
            Some("Final answer for scenario read: all done."),
            TWICE,
            1,
            DONE,
        ),
        exec("readonly-sandbox", OK, "01a22714-ed20-7aa3-8309-4692fac9da54", &[], Some(WRITE), TWICE, 1, DONE),
        exec("sid-new", OK, "01a22714-d68a-7323-a92b-c0af5542ce4b", shell, Some(BASH), TWICE, 2, DONE),
        // Its sum holds what was used before.
        exec("sid-resume", OK, "01a22714-d68a-7323-a92b-c0af5542ce4b", &[], Some(HELLO), NONE, 1, DONE),
        exec(
            "sigint-tool",
            ONE,
            "01a22714-4b44-7442-bac3-24c79e569367",
            open,
            Some(COMMAND),
            NONE,
            1,
            failed("exited with code 1"),
        ),
        exec(
            "sigint2-tool",
            ONE,
            "01a22714-5f31-73d0-807b-043c31f2afc0",
            open,
            Some(COMMAND),
            NONE,
            1,
            failed("exited with code 1"),
        ),
        exec(
            "sigterm-tool",
            TERM,
            "01a22714-558d-7021-8d91-e3efa0acda7d",
            open,
            Some(COMMAND),
            NONE,
            1,
            failed("Subagent process terminated by signal SIGTERM."),
        ),
        exec("stdin-open", OK, "01a2271d-53ab-7f50-8e55-ea9a3e910e75", &[], Some(HELLO), CALL, 1, DONE),
        exec("stdin-prompt", OK, "01a22710-fa86-7f02-aa9b-f2b92117a532", &[], Some(HELLO), CALL, 1, DONE),
        exec(
            "task",
            OK,
            "01a22711-0954-7072-bc9e-9522a10da72a",
            &[],
            Some("Final answer for scenario task: all done."),
            TWICE,
            1,
            DONE,
        ),
        exec("text", OK, "01a22710-0e83-7593-a00b-b54993f2cea9", &[], Some(HELLO), CALL, 1, DONE),
        exec("think", OK, "01a22710-1166-7793-8c7c-5d79af9f9741", &[], Some("Thought about it: 42."), CALL, 1, DONE),
        exec("truncated", ONE, "01a22710-fcd5-7bb1-806d-64b946f629ac", &[], None, NONE, 1, failed(CUT)),
        // The app server.
        app("app-accepted", "01a228ca-0d80-7fc1-a71e-b46f853c5c13", shell, Some(BASH), TWICE, 2, DONE),
        app(
            "app-close-mid-tool",
            "01a22715-3065-7133-9e85-56ea2a659fe0",
            open,
            Some(COMMAND),
            NONE,
            1,
            failed("the agent ended without saying that it was done"),
        ),
        app(
            "app-declined",
            "01a228ca-0a4d-7782-ba87-c8817f40e62e",
            &[("shell", Some(Denied))],
            Some(BASH),
            TWICE,
            2,
            DONE,
        ),
        app("app-err500", "01a22715-188c-7dd0-88dd-10c9cbe1cf53", &[], None, NONE, 0, failed(E500)),
        app("app-fail", "01a228c9-da58-7330-a5e8-8643904acbe4", broken, Some(FAIL), TWICE, 2, DONE),
        app(
            "app-interrupt",
            "01a22715-0ec1-7a93-b689-c95257081da7",
            &[("shell", Some(Cancelled))],
            Some(HELLO),
            TWICE,
            2,
            DONE,
        ),
        app("app-parallel", "01a228c9-d373-7160-8811-21e3c7e852e7", shells, Some(PARALLEL), TWICE, 2, DONE),
        app("app-patch", "01a228c9-dd5e-7362-ba3b-0ab9507c56e2", patch, Some(WRITE), TWICE, 2, DONE),
        app(
            "app-patch-declined",
            "01a228ca-155d-7792-a5a8-337da3e5f685",
            &[("apply_patch", Some(Denied))],
            Some(WRITE),
            TWICE,
            2,
            DONE,
        ),
        // The session had used as much as two calls before.
        app("app-resume", "01a228c9-da58-7330-a5e8-8643904acbe4", &[], Some(HELLO), CALL, 1, DONE),
        Recording {
            session: None,
            model: None,
            ..app(
                "app-resume-missing",
                "",
                &[],
                None,
                NONE,
                0,
                failed(
                    "the agent refused to begin (thread/resume): no rollout found for thread id \
                     33333333-3333-4333-8333-333333333333",
                ),
            )
        },
        // Three calls of the model are the agent's own, two its sub-agent's.
        app(
            "app-spawn",
            "01a228c9-e033-72a0-998f-6a2c48b456f0",
            &[("wait", Some(Ok))],
            Some("Final answer for scenario spawn: all done."),
            (6500, 285, 4000),
            3,
            DONE,
        ),
        app("app-steer", "01a22714-fe5a-7a10-8488-3933d8fd7d3b", shell, Some(HELLO), TWICE, 2, DONE),
        app("app-steer-named", "01a228c9-c87f-7250-9208-7f4184ceaf5e", shell, Some(HELLO), TWICE, 2, DONE),
        app("app-text", "01a22714-fa09-72a2-95dd-e91efa34abcd", &[], Some("Thought about it: 42."), CALL, 1, DONE),
    ]
}
