//! The sub-agents of Codex: sessions of their own in the same app server (agent-streams 2b). Which session is whose is told
//! by items of the agent's own session; what happens in one is told as it is for the agent's own.

use super::item::{Item, Kind};
use crate::agents::Sink;
use crate::agents::look::Look;
use crate::agents::told::{preview, tell};
use crate::run::{AgentEvent, SubAgentDid, SubCall, ToolOutcome};
use crate::text::prefix;

/// Most sub-agents that are followed.
const MOST: usize = 256;

/// One of them.
#[derive(Debug)]
struct Known {
    thread: String,
    name: String,
    works: bool,
}

/// Those that are known.
#[derive(Debug, Default)]
pub(super) struct Subs(Vec<Known>);

fn did(id: &str, did: SubAgentDid, sink: &mut dyn Sink) {
    tell(AgentEvent::SubAgent { id: id.to_owned(), did }, sink);
}

impl Subs {
    /// One begins, or goes on, unless it works already.
    fn begins(&mut self, thread: &str, name: Option<&str>, about: &str, model: Option<&str>, sink: &mut dyn Sink) {
        if thread.is_empty() {
            return;
        }
        if !self.0.iter().any(|known| known.thread == thread) {
            if self.0.len() >= MOST {
                return;
            }
            let name = prefix(name.unwrap_or("agent"), AgentEvent::ARGS_PREVIEW).to_owned();
            self.0.push(Known { thread: thread.to_owned(), name, works: false });
        }
        let Some(known) = self.0.iter_mut().find(|known| known.thread == thread && !known.works) else { return };
        known.works = true;
        let name = known.name.clone();
        let about = prefix(about, AgentEvent::ARGS_PREVIEW).to_owned();
        did(thread, SubAgentDid::Started { name, about, model: model.map(str::to_owned) }, sink);
    }

    fn over(&mut self, thread: &str, outcome: ToolOutcome, sink: &mut dyn Sink) {
        if let Some(known) = self.0.iter_mut().find(|known| known.thread == thread && known.works) {
            known.works = false;
            did(thread, SubAgentDid::Ended(outcome), sink);
        }
    }

    /// An item of the agent's own session that tells of one.
    pub(super) fn activity(&mut self, item: Look<'_>, sink: &mut dyn Sink) {
        let thread = item.word("agentThreadId");
        match item.word("kind") {
            "started" => {
                let name = item.str("agentPath").and_then(|path| path.rsplit('/').next());
                self.begins(thread, name, "", item.str("model"), sink);
            }
            "completed" => self.over(thread, ToolOutcome::Ok, sink),
            "interrupted" | "shutdown" => self.over(thread, ToolOutcome::Cancelled, sink),
            "failed" | "errored" => self.over(thread, ToolOutcome::Error, sink),
            _ => {}
        }
    }

    /// A call of the agent's own that has to do with some of them.
    pub(super) fn call(&mut self, item: Look<'_>, sink: &mut dyn Sink) {
        let about = item.word("prompt");
        for thread in item.list("receiverThreadIds").iter().filter_map(|thread| thread.as_str()) {
            let state = item.object("agentsStates").object(thread);
            if item.word("tool") == "spawnAgent" {
                self.begins(thread, None, about, item.str("model"), sink);
            }
            match state.word("status") {
                "completed" => self.over(thread, ToolOutcome::Ok, sink),
                "errored" => self.over(thread, ToolOutcome::Error, sink),
                "interrupted" | "shutdown" => self.over(thread, ToolOutcome::Cancelled, sink),
                "notFound" => self.over(thread, ToolOutcome::Lost, sink),
                _ => {}
            }
        }
    }

    /// Something that happened in the session of one.
    pub(super) fn happened(&mut self, thread: &str, method: &str, params: Look<'_>, sink: &mut dyn Sink) {
        match method {
            "turn/started" => self.begins(thread, None, "", None, sink),
            "turn/completed" => {
                let outcome = match params.object("turn").word("status") {
                    "completed" => ToolOutcome::Ok,
                    "interrupted" => ToolOutcome::Cancelled,
                    _ => ToolOutcome::Error,
                };
                self.over(thread, outcome, sink);
            }
            "thread/tokenUsage/updated" => {
                let total = params.object("tokenUsage").object("total").count("totalTokens");
                if let Some(tokens) = total.filter(|_| self.0.iter().any(|known| known.thread == thread)) {
                    did(thread, SubAgentDid::Used(tokens), sink);
                }
            }
            "item/started" | "item/completed" if self.0.iter().any(|known| known.thread == thread) => {
                let item = Item::new(params.object("item"));
                match (item.kind(), method == "item/completed") {
                    (Kind::Tool, false) => {
                        let call = SubCall { tool: item.tool(), args: item.described().args };
                        did(thread, SubAgentDid::Called(call), sink);
                    }
                    (Kind::Tool, true) => did(thread, SubAgentDid::Returned, sink),
                    (Kind::Message, true) if !item.text().trim().is_empty() => {
                        did(thread, SubAgentDid::Said(preview(item.text())), sink);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
