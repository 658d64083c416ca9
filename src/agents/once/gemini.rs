//! Understands the output of a Gemini CLI with one prompt: one object a line (agent-streams 4).

use super::{object, told_failure};
use crate::agents::look::Look;
use crate::agents::told::{tell, unknown};
use crate::agents::work::{Begun, End, Over, Work};
use crate::agents::{Adapter, Line, Sink};
use crate::run::{AgentEvent, Report, Tokens, ToolOutcome, Usage};

/// The adapter for `gemini -o stream-json`.
#[derive(Debug)]
pub struct GeminiAdapter {
    work: Work,
    /// The last error that was told; where the result names none it is the reason.
    error: Option<String>,
}

impl GeminiAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self { work: Work::new(false), error: None }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        match line.word("type") {
            "init" => {
                self.work.model = line.str("model").map(str::to_owned);
                let session_id = line.str("session_id").map(str::to_owned);
                tell(AgentEvent::SessionStarted { session_id, model: self.work.model.clone() }, sink);
                self.work.begins(sink);
            }
            "message" if line.word("role") == "assistant" => self.work.adds(line.word("content"), sink),
            // The prompt.
            "message" => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            "tool_use" => {
                let args = line.get("parameters").cloned().unwrap_or_default();
                self.work.called(Begun::new(line.word("tool_id"), line.word("tool_name"), args), sink);
            }
            "tool_result" => {
                let error = line.object("error").str("message");
                let outcome = if line.word("status") == "error" { ToolOutcome::Error } else { ToolOutcome::Ok };
                let output = error.unwrap_or_else(|| line.word("output")).to_owned();
                self.work.returned(line.word("tool_id"), Over { output, outcome, code: None }, sink);
            }
            "error" => {
                // It may go on all the same (agent-streams 0.3).
                let message = line.word("message");
                self.error = Some(message.to_owned());
                self.work.notice(message, sink);
            }
            "result" => {
                self.work.used(used(line.object("stats")), sink);
                let end = match line.word("status") {
                    "success" => End::Done,
                    _ => End::Failed(told_failure(line.object("error").str("message").or(self.error.as_deref()))),
                };
                self.work.over(&end, sink);
            }
            kind => unknown("gemini", kind, sink),
        }
    }
}

impl Default for GeminiAdapter {
    fn default() -> Self {
        Self::new()
    }
}

/// What was used: its own input is what was not read from a cache, and what is in no sum is what the model thought.
fn used(stats: Look<'_>) -> Option<Usage> {
    let [total, all, fresh, cached] =
        ["total_tokens", "input_tokens", "input", "cached"].map(|key| stats.count(key).unwrap_or_default());
    let tokens = Tokens { input: fresh, output: total.saturating_sub(all), cache_read: cached, ..Tokens::default() };
    (!tokens.is_zero()).then_some(Usage { tokens, cost: None })
}

impl Adapter for GeminiAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        if let Some(value) = object(&mut self.work, "gemini", line, sink) {
            self.object(Look::new(&value), sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.work.end(sink);
    }

    fn report(&self) -> Report {
        self.work.report()
    }
}
