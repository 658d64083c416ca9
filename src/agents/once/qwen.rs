//! Understands the output of a Qwen Code with one prompt: lines like those of Claude Code (agent-streams 5).

use super::{object, told_failure};
use crate::agents::look::{Look, text_of};
use crate::agents::told::{preview, tell, unknown};
use crate::agents::work::{Begun, End, Over, Work};
use crate::agents::{Adapter, Line, Sink};
use crate::run::{AgentEvent, Report, SubAgentDid, SubCall, Tokens, ToolOutcome, Usage};

/// Lines of the system that say only that it lives.
const ALIVE: [&str; 5] = ["background_tasks_changed", "session_source", "status", "task_progress", "task_updated"];

/// The adapter for `qwen -o stream-json`.
#[derive(Debug)]
pub struct QwenAdapter {
    work: Work,
    /// The session was gone on with: the sum at the end holds what was used before (agent-streams 0.8).
    resumed: bool,
    named: bool,
    /// What was told of use so far.
    told: Tokens,
}

impl QwenAdapter {
    /// A new one, for one child; `resumed` says that it goes on with a session.
    #[must_use]
    pub fn new(resumed: bool) -> Self {
        Self { work: Work::new(false), resumed, named: false, told: Tokens::default() }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let parent = line.str("parent_tool_use_id");
        match (line.word("type"), parent) {
            ("system", None) => self.system(line, sink),
            ("assistant" | "user", Some(parent)) => nested(parent, line, sink),
            ("assistant", None) => self.assistant(line, sink),
            ("user", None) => self.user(line, sink),
            ("result", _) => self.result(line, sink),
            ("stream_event" | "control_response" | "system", _) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            (kind, _) => unknown("qwen", kind, sink),
        }
    }

    fn system(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let data = line.object("data");
        match line.word("subtype") {
            "init" => {
                self.work.model = line.str("model").map(str::to_owned);
                if !std::mem::replace(&mut self.named, true) {
                    let session_id = line.str("session_id").map(str::to_owned);
                    tell(AgentEvent::SessionStarted { session_id, model: self.work.model.clone() }, sink);
                }
                self.work.begins(sink);
            }
            "retry" => {
                let number = |key| u32::try_from(data.count(key).unwrap_or_default()).ok().filter(|n| *n > 0);
                self.work.retries(number("attempt"), number("maxRetries"), data.word("message"), sink);
            }
            "task_started" => {
                let name = data.str("subagent_type").unwrap_or("agent").to_owned();
                let did = SubAgentDid::Started { name, about: data.word("description").to_owned(), model: None };
                tell(AgentEvent::SubAgent { id: data.word("tool_use_id").to_owned(), did }, sink);
            }
            "task_notification" => {
                let id = data.word("tool_use_id");
                let mut did = |did| tell(AgentEvent::SubAgent { id: id.to_owned(), did }, sink);
                did(SubAgentDid::Used(data.object("usage").count("total_tokens").unwrap_or_default()));
                let ok = data.word("status") == "completed";
                did(SubAgentDid::Ended(if ok { ToolOutcome::Ok } else { ToolOutcome::Error }));
            }
            known if ALIVE.contains(&known) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            other => unknown("qwen system", other, sink),
        }
    }

    /// A line has one kind of what the model said; the last of a call says what the call used.
    fn assistant(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let message = line.object("message");
        for block in message.list("content") {
            let block = Look::new(block);
            match block.word("type") {
                "text" => self.work.said(block.word("text"), sink),
                "tool_use" => {
                    let args = block.get("input").cloned().unwrap_or_default();
                    self.work.called(Begun::new(block.word("id"), block.word("name"), args), sink);
                }
                "thinking" => self.work.thought(block.word("thinking"), sink),
                _ => self.work.speaks(sink),
            }
        }
        self.uses(tokens(message.object("usage")), sink);
    }

    fn user(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        for block in line.object("message").list("content") {
            let block = Look::new(block);
            if block.word("type") == "tool_result" {
                let failed = block.get("is_error").and_then(serde_json::Value::as_bool) == Some(true);
                let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
                let output = text_of(block.get("content"));
                self.work.returned(block.word("tool_use_id"), Over { output, outcome, code: None }, sink);
            }
        }
    }

    fn result(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        if !self.resumed {
            let all = tokens(line.object("usage"));
            self.uses(all.since(self.told), sink);
        }
        let failed = line.get("is_error").and_then(serde_json::Value::as_bool) != Some(false);
        let error = line.object("error").str("message");
        let end = if failed { End::Failed(told_failure(error)) } else { End::Done };
        self.work.over(&end, sink);
    }

    fn uses(&mut self, tokens: Tokens, sink: &mut dyn Sink) {
        if !tokens.is_zero() {
            self.told += tokens;
            self.work.used(Some(Usage { tokens, cost: None }), sink);
        }
    }
}

/// Its input has in it what was read from a cache (agent-streams 0.9).
fn tokens(usage: Look<'_>) -> Tokens {
    let cached = usage.count("cache_read_input_tokens").unwrap_or_default();
    let (input, output) = (
        usage.count("input_tokens").unwrap_or_default().saturating_sub(cached),
        usage.count("output_tokens").unwrap_or_default(),
    );
    Tokens { input, output, cache_read: cached, cache_write: 0 }
}

/// What a sub-agent does.
fn nested(parent: &str, line: Look<'_>, sink: &mut dyn Sink) {
    sink.event(AgentEvent::TextDelta { bytes: 0 });
    let mut did = |did| tell(AgentEvent::SubAgent { id: parent.to_owned(), did }, sink);
    let of_agent = line.word("type") == "assistant";
    for block in line.object("message").list("content") {
        let block = Look::new(block);
        match block.word("type") {
            "text" if of_agent => did(SubAgentDid::Said(preview(block.word("text")))),
            "tool_use" => {
                let args = block.get("input").cloned().unwrap_or_default();
                let begun = Begun::new("", block.word("name"), args);
                did(SubAgentDid::Called(SubCall { tool: begun.tool, args: begun.said.args }));
            }
            "tool_result" => did(SubAgentDid::Returned),
            _ => {}
        }
    }
}

impl Adapter for QwenAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        if let Some(value) = object(&mut self.work, "qwen", line, sink) {
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
