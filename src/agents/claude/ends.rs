//! The end of a turn of Claude Code: what it amounts to, and whether another one follows.

use serde_json::{Value, json};

use super::adapter::ClaudeAdapter;
use super::ledger::window_size;
use crate::agents::Sink;
use crate::agents::look::Look;
use crate::agents::told::tell;
use crate::run::{AgentEvent, StopReason, Stream, Window};

impl ClaudeAdapter {
    /// The end of a turn. It may not be the last one (agent-streams 0.2).
    pub(super) fn result(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        self.begin(sink);
        let reason = line.word("terminal_reason");
        let aborted = reason.starts_with("aborted");
        let failed = line.is("is_error") || line.word("subtype") != "success" || aborted;
        self.message_over(
            Some(match (failed, aborted) {
                (_, true) => StopReason::Aborted,
                (true, false) => StopReason::Error,
                (false, false) => StopReason::Stop,
            }),
            sink,
        );
        for (id, tool) in std::mem::take(&mut self.turn.open) {
            self.tool_over(&id, &tool, "the turn ended without a result of this call", true, sink);
        }
        if let Some(size) = window_size(line.object("modelUsage")) {
            tell(AgentEvent::Window(Window { used: None, size: Some(size) }), sink);
        }
        if let Some(usage) = self.ledger.result(line) {
            self.used(&usage, sink);
        }
        let text = line.str("result").filter(|text| !text.trim().is_empty());
        if failed {
            // Amp has one error in the place of the list.
            let listed: Vec<&str> =
                line.list("errors").iter().filter_map(Value::as_str).chain(line.str("error")).collect();
            let said = text.map(str::to_owned).or_else(|| (!listed.is_empty() && !aborted).then(|| listed.join("; ")));
            let error = match line.word("subtype") {
                _ if aborted => "the agent was interrupted".to_owned(),
                "success" | "error_during_execution" => said.unwrap_or_else(|| "the agent failed".to_owned()),
                limit => {
                    said.map_or_else(|| limit.replace('_', " "), |said| format!("{}: {said}", limit.replace('_', " ")))
                }
            };
            // An answer that is an error stands there already.
            if self.report.assistant_error.as_ref() != Some(&error) {
                let what = if aborted { "broken off" } else { "failed" };
                self.live.line(Stream::Own, &format!("{what}: {error}"), sink);
            }
            self.report.assistant_error = Some(error);
        } else {
            self.report.assistant_error = None;
            self.report.final_text = text.map(str::to_owned).or(self.report.final_text.take());
        }
        self.report.clean_stop = !failed;
        self.report.aborted = aborted;
        self.over(aborted, sink);
    }

    fn over(&mut self, aborted: bool, sink: &mut dyn Sink) {
        self.turn.working = false;
        self.report.ended = true;
        // Its sub-agents and its queue make it begin again; it is not expected to exit before.
        let more = self.turn.background > 0 || !self.turn.queued.is_empty();
        self.emit(json!({"type": "agent_end", "willRetry": more}), sink);
        self.report.settled = !more;
        if !more {
            self.emit(json!({"type": "agent_settled", "aborted": aborted}), sink);
        }
    }
}
