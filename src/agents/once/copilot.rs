//! Understands the output of a Copilot CLI with one prompt: one object a line, the last of them flat (agent-streams 6).

use super::{object, told_failure};
use crate::agents::look::Look;
use crate::agents::told::{tell, unknown};
use crate::agents::work::{Begun, End, Over, Work};
use crate::agents::{Adapter, Line, Sink};
use crate::run::{AgentEvent, Report, SubAgentDid, SubCall, ToolOutcome};

/// Types that tell nothing of a run's state.
const SILENT: [&str; 42] = [
    "agent.interrupted",
    "assistant.idle",
    "assistant.intent",
    "assistant.message_start",
    "assistant.streaming_delta",
    "assistant.tool_call_delta",
    "assistant.usage",
    "hook.end",
    "hook.start",
    "model.call_failure",
    "model.call_final_result",
    "model.call_finished",
    "model.call_start",
    "pending_messages.modified",
    "permission.completed",
    "permission.requested",
    "session.background_tasks_changed",
    "session.compaction_complete",
    "session.compaction_start",
    "session.context_changed",
    "session.custom_agents_updated",
    "session.extensions_loaded",
    "session.idle",
    "session.info",
    "session.mcp_server_status_changed",
    "session.mcp_servers_loaded",
    "session.mode_changed",
    "session.model_change",
    "session.plan_changed",
    "session.resume",
    "session.shutdown",
    "session.skills_loaded",
    "session.start",
    "session.title_changed",
    "session.tools_updated",
    "session.truncation",
    "session.usage_info",
    "session.workspace_file_changed",
    "skill.invoked",
    "system.message",
    "tool.shell_output",
    "user.message",
];

/// The same of a sub-agent, beside what says nothing of any agent.
const SILENT_NESTED: [&str; 10] = [
    "assistant.message_delta",
    "assistant.reasoning",
    "assistant.reasoning_delta",
    "assistant.turn_end",
    "assistant.turn_retry",
    "assistant.turn_start",
    "subagent.configured",
    "subagent.deselected",
    "subagent.selected",
    "tool.execution_partial_result",
];

/// The adapter for `copilot --output-format json`.
#[derive(Debug)]
pub struct CopilotAdapter {
    work: Work,
    /// Why it failed, until it says that it is over.
    error: Option<String>,
    aborted: bool,
    retries: u32,
}

impl CopilotAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self { work: Work::new(true), error: None, aborted: false, retries: 0 }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let (kind, data) = (line.word("type"), line.object("data"));
        if line.str("agentId").is_some() || kind.starts_with("subagent.") {
            return nested(kind, data, sink);
        }
        match kind {
            "assistant.turn_start" => self.work.begins(sink),
            "assistant.turn_end" => self.work.turn_told_over(sink),
            "assistant.message_delta" => {
                self.retries = 0;
                self.work.piece(data.word("deltaContent"), sink);
            }
            "assistant.reasoning_delta" => self.work.muses(data.word("deltaContent"), sink),
            "assistant.reasoning" => self.work.thought(data.word("content"), sink),
            "assistant.message" => {
                self.retries = 0;
                self.work.model = data.str("model").map(str::to_owned).or_else(|| self.work.model.take());
                if let Some(thought) = data.str("reasoningText") {
                    self.work.thought(thought, sink);
                }
                self.work.said(data.word("content"), sink);
            }
            "assistant.turn_retry" => {
                self.retries += 1;
                self.work.retries(Some(self.retries), None, data.word("reason"), sink);
            }
            "tool.execution_start" => {
                let args = data.get("arguments").cloned().unwrap_or_default();
                self.work.called(Begun::new(data.word("toolCallId"), data.word("toolName"), args), sink);
            }
            "tool.execution_partial_result" => {
                self.work.shows(data.word("toolCallId"), data.word("partialOutput"), sink);
            }
            "tool.execution_complete" => self.work.returned(data.word("toolCallId"), over(data), sink),
            "session.error" => self.error = Some(told_failure(data.str("message"))),
            "session.warning" => self.work.notice(data.word("message"), sink),
            "session.info" if data.word("infoType") != "model_retry" => self.work.notice(data.word("message"), sink),
            "abort" => self.aborted = true,
            "result" => self.ended(line, sink),
            kind if SILENT.contains(&kind) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            kind => unknown("copilot", kind, sink),
        }
    }

    /// It is over. Only here its session has a name.
    fn ended(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        if let Some(session_id) = line.str("sessionId").map(str::to_owned) {
            tell(AgentEvent::SessionStarted { session_id: Some(session_id), model: self.work.model.clone() }, sink);
        }
        let end = match self.error.take() {
            Some(error) => End::Failed(error),
            None if self.aborted => End::Interrupted,
            None if line.get("exitCode").and_then(serde_json::Value::as_i64) == Some(0) => End::Done,
            None => End::Failed(told_failure(None)),
        };
        self.work.over(&end, sink);
    }
}

impl Default for CopilotAdapter {
    fn default() -> Self {
        Self::new()
    }
}

/// How a call ended. A command that failed is a success to it (agent-streams 0.10).
fn over(data: Look<'_>) -> Over {
    let error = data.object("error");
    let code = data.object("shellExecution").get("exitCode").and_then(serde_json::Value::as_i64);
    let code = code.and_then(|code| i32::try_from(code).ok());
    let ok = data.get("success").and_then(serde_json::Value::as_bool) == Some(true);
    let outcome = match error.word("code") {
        "denied" | "rejected" => ToolOutcome::Denied,
        _ if ok && code.is_none_or(|code| code == 0) => ToolOutcome::Ok,
        _ => ToolOutcome::Error,
    };
    let output = data.object("result").str("content").or_else(|| error.str("message")).unwrap_or_default().to_owned();
    Over { output, outcome, code }
}

/// What a sub-agent does.
fn nested(kind: &str, data: Look<'_>, sink: &mut dyn Sink) {
    let of = data.str("parentToolCallId").or_else(|| data.str("toolCallId")).unwrap_or_default();
    let mut did = |did: SubAgentDid| tell(AgentEvent::SubAgent { id: of.to_owned(), did }, sink);
    match kind {
        "subagent.started" => did(SubAgentDid::Started {
            name: data.word("agentName").to_owned(),
            about: data.word("agentDisplayName").to_owned(),
            model: data.str("model").map(str::to_owned),
        }),
        "tool.execution_start" => {
            let args = data.get("arguments").cloned().unwrap_or_default();
            let begun = Begun::new("", data.word("toolName"), args);
            did(SubAgentDid::Called(SubCall { tool: begun.tool, args: begun.said.args }));
        }
        "tool.execution_complete" => did(SubAgentDid::Returned),
        "assistant.message" => did(SubAgentDid::Said(crate::agents::told::preview(data.word("content")))),
        "subagent.completed" | "subagent.failed" => {
            did(SubAgentDid::Used(data.count("totalTokens").unwrap_or_default()));
            let outcome = if kind == "subagent.completed" { ToolOutcome::Ok } else { ToolOutcome::Error };
            did(SubAgentDid::Ended(outcome));
        }
        _ if SILENT.contains(&kind) || SILENT_NESTED.contains(&kind) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
        _ => unknown("copilot sub-agent", kind, sink),
    }
}

impl Adapter for CopilotAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        if let Some(value) = object(&mut self.work, "copilot", line, sink) {
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
