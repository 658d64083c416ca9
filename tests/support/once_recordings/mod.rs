//! Recorded output of OpenCode 1.18.33, Gemini CLI 0.61.0, Qwen Code 0.24.4 and Copilot CLI 1.0.102 with one prompt, and what
//! its raw JSON says, worked out apart from the adapters. Of `opencode-1.18.33-truncated`, which goes round in circles 225
//! times, the first 60 lines are here.

mod copilot;
mod gemini;
mod opencode;
mod qwen;

use subdeck::run::{ExitInfo, StepPhase, ToolOutcome};

/// What the agent printed.
pub fn read(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/streams/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };
pub const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";
pub const BASH: &str = "Final answer for scenario bash: all done.";
pub const THOUGHT: &str = "Thought about it: 42.";
const COMMAND: &str = "I will run a shell command.";
const DONE: (StepPhase, i32, Option<&str>) = (StepPhase::Complete, 0, None);

/// Input, output and cached tokens, and the cost in millionths of a dollar.
type Used = (u64, u64, u64, u64);
const NOTHING: Used = (0, 0, 0, 0);
const GEMINI_ONE: Used = (1300, 68, 800, 0);
const GEMINI_TWO: Used = (2600, 136, 1600, 0);
const OPENCODE_ONE: Used = (1300, 57, 800, 4995);
const OPENCODE_TWO: Used = (2600, 114, 1600, 9990);
const QWEN_ONE: Used = (1300, 57, 800, 0);
const QWEN_TWO: Used = (2600, 114, 1600, 0);

pub struct Recording {
    pub name: &'static str,
    pub exit: ExitInfo,
    pub session: Option<&'static str>,
    pub model: Option<&'static str>,
    /// Tools in the order they ended, then those that never did.
    pub tools: &'static [(&'static str, Option<ToolOutcome>)],
    pub text: Option<&'static str>,
    pub usage: Used,
    pub end: (StepPhase, i32, Option<&'static str>),
}

const fn code(code: i32) -> ExitInfo {
    ExitInfo { code: Some(code), signal: None }
}

const fn signal(signal: i32) -> ExitInfo {
    ExitInfo { code: None, signal: Some(signal) }
}
#[allow(clippy::too_many_arguments)]
const fn all(
    name: &'static str,
    exit: ExitInfo,
    session: Option<&'static str>,
    model: Option<&'static str>,
    tools: &'static [(&'static str, Option<ToolOutcome>)],
    text: Option<&'static str>,
    usage: Used,
    end: (StepPhase, i32, Option<&'static str>),
) -> Recording {
    Recording { name, exit, session, model, tools, text, usage, end }
}

const fn failed(code: i32, error: &'static str) -> (StepPhase, i32, Option<&'static str>) {
    (StepPhase::Failed, code, Some(error))
}

pub fn recordings() -> Vec<Recording> {
    [copilot::recordings(), gemini::recordings(), opencode::recordings(), qwen::recordings()]
        .into_iter()
        .flatten()
        .collect()
}
