//! Agents with one prompt and nothing more, whose steerable transport is the Agent Client Protocol: what they print is a
//! stream of their own each (agent-streams 3a, 4, 5, 6).

mod copilot;
mod gemini;
mod opencode;
mod qwen;
mod start;

pub use copilot::CopilotAdapter;
pub use gemini::GeminiAdapter;
pub use opencode::OpenCodeAdapter;
pub use qwen::QwenAdapter;
pub(super) use start::{arguments, voice};

use serde_json::Value;

use super::told::unknown;
use super::work::Work;
use super::{Line, Sink};
use crate::run::Stream;

/// The object of a line that has a type; what a line is that has none is told.
fn object(work: &mut Work, agent: &str, line: &Line<'_>, sink: &mut dyn Sink) -> Option<Value> {
    match line {
        Line::Text { bytes, complete } => match serde_json::from_slice::<Value>(bytes) {
            Ok(value) if value.get("type").is_some_and(Value::is_string) => return Some(value),
            _ => work.stray(&String::from_utf8_lossy(bytes), *complete, sink),
        },
        Line::Oversize(long) => {
            work.live.line(Stream::Own, &format!("[a line of {} bytes, left out]", long.observed), sink);
            unknown(agent, "a line that is too long", sink);
        }
    }
    None
}

/// Why an agent failed, where it says so.
fn told_failure(said: Option<&str>) -> String {
    said.filter(|said| !said.trim().is_empty()).unwrap_or("the agent failed").to_owned()
}
