//! The sub-agents of Claude Code: the lines that they say themselves carry the call that began them, and the system tells
//! of those that work in the background (agent-streams 1).

use serde_json::Value;

use super::adapter::ClaudeAdapter;
use crate::agents::Sink;
use crate::agents::look::Look;
use crate::agents::pi::args::describe;
use crate::agents::told::tell;
use crate::run::{AgentEvent, SubAgentDid, SubCall, ToolOutcome};
use crate::text::prefix;

/// Most sub-agents that are followed at once.
const MOST: usize = 256;

impl ClaudeAdapter {
    fn did(&self, id: &str, did: SubAgentDid, sink: &mut dyn Sink) {
        tell(AgentEvent::SubAgent { id: id.to_owned(), did }, sink);
    }

    /// One begins, unless it is known. `line` says what it is.
    fn sub_agent(&mut self, id: &str, line: Look<'_>, background: bool, sink: &mut dyn Sink) {
        if id.is_empty() || self.turn.agents.len() >= MOST || self.turn.agents.iter().any(|(known, _)| known == id) {
            return;
        }
        self.turn.agents.push((id.to_owned(), background));
        let short = |text: &str| prefix(text, AgentEvent::ARGS_PREVIEW).to_owned();
        let about = line.str("description").or_else(|| line.str("task_description")).unwrap_or_default();
        let name = short(line.str("subagent_type").unwrap_or("agent"));
        self.did(id, SubAgentDid::Started { name, about: short(about), model: None }, sink);
    }

    /// One is over.
    fn sub_agent_over(&mut self, id: &str, outcome: ToolOutcome, sink: &mut dyn Sink) {
        if let Some(at) = self.turn.agents.iter().position(|(known, _)| known == id) {
            self.turn.agents.remove(at);
            self.did(id, SubAgentDid::Ended(outcome), sink);
        }
    }

    /// A line of a sub-agent's own.
    pub(super) fn nested(&mut self, id: &str, line: Look<'_>, sink: &mut dyn Sink) {
        let blocks = line.object("message").list("content").iter().map(Look::new);
        // A piece of an answer is a sign of life and nothing more.
        sink.event(AgentEvent::TextDelta { bytes: 0 });
        if line.word("type") == "stream_event" {
            return;
        }
        self.sub_agent(id, line, false, sink);
        for block in blocks {
            let did = match block.word("type") {
                "tool_use" => {
                    let tool = prefix(block.str("name").unwrap_or("?"), 100).to_owned();
                    let input = block.get("input").map(Value::to_string);
                    let args = describe(&tool, input.as_deref()).args;
                    SubAgentDid::Called(SubCall { tool, args })
                }
                "tool_result" => SubAgentDid::Returned,
                "text" if line.word("type") == "assistant" && !block.word("text").trim().is_empty() => {
                    SubAgentDid::Said(prefix(block.word("text"), AgentEvent::PREVIEW).to_owned())
                }
                _ => continue,
            };
            self.did(id, did, sink);
        }
    }

    /// The system tells of a task. Commands in the background are tasks too.
    pub(super) fn task(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        sink.event(AgentEvent::TextDelta { bytes: 0 });
        let id = line.word("tool_use_id");
        if line.word("task_type") == "local_agent" {
            self.sub_agent(id, line, line.is("is_backgrounded"), sink);
        }
        if !self.turn.agents.iter().any(|(known, _)| known == id) {
            return;
        }
        if let Some(tokens) = line.object("usage").count("total_tokens") {
            self.did(id, SubAgentDid::Used(tokens), sink);
        }
        if line.word("subtype") == "task_notification" {
            let outcome = match line.word("status") {
                "completed" => ToolOutcome::Ok,
                "stopped" | "killed" | "cancelled" => ToolOutcome::Cancelled,
                _ => ToolOutcome::Error,
            };
            self.sub_agent_over(id, outcome, sink);
        }
    }

    /// A call of the agent's own has a result: that of a sub-agent which does not work in the background is its end.
    pub(super) fn brought(&mut self, id: &str, failed: bool, sink: &mut dyn Sink) {
        if self.turn.agents.iter().any(|(known, background)| known == id && !background) {
            self.sub_agent_over(id, if failed { ToolOutcome::Error } else { ToolOutcome::Ok }, sink);
        }
    }
}
