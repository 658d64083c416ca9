//! Understands the output of an OpenCode with one prompt: one object a line (agent-streams 3a).

use super::{object, told_failure};
use crate::agents::look::Look;
use crate::agents::told::{tell, unknown};
use crate::agents::work::{Begun, End, Over, Work};
use crate::agents::{Adapter, Line, Sink};
use crate::run::{AgentEvent, CostUsd, Report, StopReason, Tokens, ToolOutcome, Usage};

/// The adapter for `opencode run --format json`.
#[derive(Debug)]
pub struct OpenCodeAdapter {
    work: Work,
    /// Its session was told.
    named: bool,
}

impl OpenCodeAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self { work: Work::new(true), named: false }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        if let Some(session_id) = line.str("sessionID").filter(|_| !self.named).map(str::to_owned) {
            self.named = true;
            tell(AgentEvent::SessionStarted { session_id: Some(session_id), model: None }, sink);
        }
        let part = line.object("part");
        match line.word("type") {
            "step_start" => self.work.begins(sink),
            "text" => self.work.said(part.word("text"), sink),
            "reasoning" => self.work.thought(part.word("text"), sink),
            "tool_use" => self.tool(part, sink),
            "step_finish" => self.finished(part, sink),
            "error" => {
                let error = line.object("error");
                let data = error.object("data");
                let status = data.get("statusCode").and_then(serde_json::Value::as_u64);
                let status = status.map(|status| format!("{status}: ")).unwrap_or_default();
                let message = data.str("message").or_else(|| error.str("name"));
                self.work.over(&End::Failed(format!("{status}{}", told_failure(message))), sink);
            }
            kind => unknown("opencode", kind, sink),
        }
    }

    /// A call, which is told when it is over.
    fn tool(&mut self, part: Look<'_>, sink: &mut dyn Sink) {
        let (id, state) = (part.word("callID"), part.object("state"));
        let args = state.get("input").cloned().unwrap_or_default();
        self.work.called(Begun::new(id, part.word("tool"), args), sink);
        let code = state.object("metadata").get("exit").and_then(serde_json::Value::as_i64);
        let code = code.and_then(|code| i32::try_from(code).ok());
        // A command that failed is completed (agent-streams 0.10).
        let failed = state.word("status") == "error" || code.is_some_and(|code| code != 0);
        let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
        let output = state.str("error").unwrap_or_else(|| state.word("output")).to_owned();
        self.work.returned(id, Over { output, outcome, code }, sink);
    }

    /// A model call and its tools are over; the last one is the end.
    fn finished(&mut self, part: Look<'_>, sink: &mut dyn Sink) {
        let (told, cache) = (part.object("tokens"), part.object("tokens").object("cache"));
        let count = |key| told.count(key).unwrap_or_default();
        let tokens = Tokens {
            input: count("input"),
            output: count("output").saturating_add(count("reasoning")),
            cache_read: cache.count("read").unwrap_or_default(),
            cache_write: cache.count("write").unwrap_or_default(),
        };
        let cost = part.get("cost").and_then(serde_json::Value::as_f64).and_then(CostUsd::reported);
        let usage = Usage { tokens, cost };
        // One that ends for another reason is followed by the next (agent-streams 0.12).
        let stop = (part.word("reason") == "stop").then_some(StopReason::Stop);
        self.work.model_call_over((!tokens.is_zero()).then_some(usage), stop, sink);
        if part.word("reason") == "stop" {
            self.work.over(&End::Done, sink);
        }
    }
}

impl Default for OpenCodeAdapter {
    fn default() -> Self {
        Self::new()
    }
}

impl Adapter for OpenCodeAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        if let Some(value) = object(&mut self.work, "opencode", line, sink) {
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
