//! Agents that an agent started itself, as far as its stream tells of them (agent-streams 7; the rest was recorded with the
//! agents themselves). The protocol does not know them: each is a tool call, and
//!
//! - Qwen names that call (`parentToolCallId`) with all that its sub-agents say, call and use; of one that works in the
//!   background it tells only the beginning and the end, and then begins a turn of its own about it;
//! - Copilot names its own id of the sub-agent with the calls of it, but with nothing that it says: what is said while it waits
//!   for one is not its own model's, and in the background nobody can tell;
//! - OpenCode and Gemini tell the beginning and the end.

use serde_json::Value;

use super::Dialect;
use super::adapter::AcpAdapter;
use super::tool::Call;
use crate::agents::Sink;
use crate::agents::jsonrpc::{text, within};
use crate::agents::told::{preview, tell};
use crate::run::{AgentEvent, StopReason, Stream, SubAgentDid, SubCall, ToolOutcome};
use crate::text::prefix;

/// Qwen begins, and ends, a turn that nobody asked it for: a sub-agent in the background is over.
pub(super) const OWN_TURN: &str = "_qwencode/start_turn";
pub(super) const OWN_TURN_OVER: &str = "_qwencode/end_turn";
/// What the notices of Qwen begin with that are for the screen of its client.
pub(super) const SCREEN: &str = "qwen/notify/";
/// Most that work at once, and calls of one that are open at once; more than any agent starts.
const MOST: usize = 64;

/// Whose an update is.
pub(super) enum Whose {
    /// The agent's.
    Own,
    /// That of a sub-agent, by its place.
    Sub(usize),
    /// Of one of several sub-agents.
    OneOfThem,
}

/// Those that work.
#[derive(Debug, Default)]
pub(super) struct Subs {
    working: Vec<Sub>,
    /// The agent works on what one of them brought, without a prompt.
    pub(super) own_turn: bool,
}

#[derive(Debug, Default)]
struct Sub {
    /// The call that began it.
    id: String,
    /// What it is called in updates.
    name: Option<String>,
    /// Its calls that are open.
    calls: Vec<Call>,
    said: String,
    tokens: u64,
    /// Its call is over, and it goes on.
    background: bool,
}

impl Subs {
    /// Whose an update of this kind is.
    pub(super) fn whose(&mut self, kind: &str, update: &Value, dialect: Dialect) -> Whose {
        let agent = within(update, &["_meta", "github.com/copilot", "agentId"]).and_then(Value::as_str);
        let place = match (dialect, within(update, &["_meta", "parentToolCallId"]).and_then(Value::as_str), agent) {
            (_, Some(parent), _) => self.place(|sub| sub.id == parent, parent),
            (Dialect::Copilot, None, Some(agent)) => {
                let known = self.working.iter().position(|sub| sub.name.as_deref() == Some(agent));
                // They begin in the order of their calls.
                let next = || self.working.iter().position(|sub| sub.name.is_none());
                let place = known.or_else(next);
                place.or_else(|| self.place(|_| false, agent)).inspect(|at| {
                    if let Some(sub) = self.working.get_mut(*at) {
                        sub.name.get_or_insert_with(|| agent.to_owned());
                    }
                })
            }
            (Dialect::Copilot, None, None) if kind.ends_with("_chunk") => {
                let mut waited = self.working.iter().enumerate().filter(|(_, sub)| !sub.background);
                match (waited.next(), waited.next()) {
                    (None, _) => return Whose::Own,
                    (Some((at, _)), None) => Some(at),
                    (Some(_), Some(_)) => return Whose::OneOfThem,
                }
            }
            _ => return Whose::Own,
        };
        place.map_or(Whose::OneOfThem, Whose::Sub)
    }

    /// The place of one; one of which nothing was told is new. `None` when there are too many.
    fn place(&mut self, is: impl Fn(&Sub) -> bool, id: &str) -> Option<usize> {
        if let Some(at) = self.working.iter().position(is) {
            return Some(at);
        }
        (self.working.len() < MOST).then(|| {
            self.working.push(Sub { id: id.to_owned(), ..Sub::default() });
            self.working.len() - 1
        })
    }

    /// Whether one works that the agent does not wait for, and of whose end it will tell.
    fn in_the_background(&self) -> bool {
        self.working.iter().any(|sub| sub.background)
    }
}

impl AcpAdapter {
    /// A call began; with some, so does a sub-agent.
    pub(super) fn delegates(&mut self, call: &Call, sink: &mut dyn Sink) {
        let Some((name, about)) = call.delegated() else { return };
        if self.subs.place(|sub| sub.id == call.id, &call.id).is_some() {
            let about = prefix(&about, AgentEvent::ARGS_PREVIEW).to_owned();
            did(&call.id, SubAgentDid::Started { name, about, model: None }, sink);
        }
    }

    /// A call is over, and with it its sub-agent, unless that goes on.
    pub(super) fn came_back(&mut self, call: &Call, outcome: ToolOutcome, sink: &mut dyn Sink) {
        let Some(at) = self.subs.working.iter().position(|sub| sub.id == call.id) else { return };
        if call.goes_on() && outcome == ToolOutcome::Ok {
            if let Some(sub) = self.subs.working.get_mut(at) {
                sub.background = true;
            }
            return;
        }
        self.sub_over(at, outcome, sink);
    }

    fn sub_over(&mut self, at: usize, outcome: ToolOutcome, sink: &mut dyn Sink) {
        let mut sub = self.subs.working.remove(at);
        sub.tell_said(sink);
        did(&sub.id, SubAgentDid::Ended(outcome), sink);
    }

    /// What a sub-agent says, thinks, calls or uses. Nothing of it is the agent's, but what it uses is paid together.
    pub(super) fn nested(&mut self, at: usize, kind: &str, update: &Value, sink: &mut dyn Sink) {
        sink.event(AgentEvent::TextDelta { bytes: 0 });
        let usage = within(update, &["_meta", "usage"]);
        if let Some(usage) = usage {
            self.spent.call(usage);
        }
        let Some(sub) = self.subs.working.get_mut(at) else { return };
        match kind {
            "agent_message_chunk" => {
                let said = within(update, &["content", "text"]).and_then(Value::as_str).unwrap_or_default();
                if sub.said.len() < AgentEvent::PREVIEW {
                    sub.said.push_str(said);
                }
                if let Some(total) = usage.and_then(|usage| usage.get("totalTokens")).and_then(Value::as_u64) {
                    sub.tell_said(sink);
                    sub.tokens = sub.tokens.saturating_add(total);
                    did(&sub.id, SubAgentDid::Used(sub.tokens), sink);
                }
            }
            "tool_call" | "tool_call_update" => {
                let Some(id) = text(update, "toolCallId") else { return };
                let known = sub.calls.iter().position(|call| call.id == id);
                let mut call = match known {
                    Some(at) => sub.calls.remove(at),
                    None if sub.calls.len() >= MOST => return,
                    None => Call::new(id),
                };
                call.take(update, self.session.dialect);
                if !call.started && call.is_ready() {
                    call.started = true;
                    sub.tell_said(sink);
                    let (tool, args) = (call.name().to_owned(), call.describe().args);
                    did(&sub.id, SubAgentDid::Called(SubCall { tool, args }), sink);
                }
                if call.outcome().is_none() {
                    sub.calls.push(call);
                } else if call.started {
                    did(&sub.id, SubAgentDid::Returned, sink);
                }
            }
            _ => {}
        }
    }

    /// Whether a message is Qwen's own about a sub-agent in the background, and no model's.
    pub(super) fn told_of_background(&mut self, update: &Value, sink: &mut dyn Sink) -> bool {
        let about = within(update, &["_meta", "backgroundTask"]);
        match (within(update, &["_meta", "source"]).and_then(Value::as_str), about) {
            (Some("background_task_completed"), Some(task)) => {
                let id = text(task, "toolUseId").unwrap_or_default();
                if let Some(at) = self.subs.working.iter().position(|sub| sub.id == id) {
                    let outcome = match text(task, "status") {
                        Some("completed") => ToolOutcome::Ok,
                        Some("cancelled") => ToolOutcome::Cancelled,
                        _ => ToolOutcome::Error,
                    };
                    let what = within(update, &["content", "text"]).and_then(Value::as_str).unwrap_or_default();
                    self.live.line(Stream::Own, &preview(what), sink);
                    self.sub_over(at, outcome, sink);
                }
                true
            }
            (Some("background_notification"), _) => {
                sink.event(AgentEvent::TextDelta { bytes: 0 });
                true
            }
            _ => false,
        }
    }

    /// It begins to work on what a sub-agent brought.
    pub(super) fn own_turn(&mut self, sink: &mut dyn Sink) {
        self.subs.own_turn = true;
        self.works(sink);
    }

    /// That is over.
    pub(super) fn own_turn_over(&mut self, sink: &mut dyn Sink) {
        if !std::mem::take(&mut self.subs.own_turn) {
            return;
        }
        self.turn_told(StopReason::Stop, sink);
        self.report.clean_stop = true;
        self.rests(false, sink);
        if self.report.settled {
            tell(AgentEvent::Settled { aborted: false }, sink);
        }
    }

    /// A prompt is answered, or a turn of its own is over: it works no more, unless a sub-agent will make it.
    pub(super) fn rests(&mut self, aborted: bool, sink: &mut dyn Sink) {
        // Only Qwen goes on by itself; what another one left behind is never told of again.
        let lives = |sub: &Sub| sub.background && self.session.dialect == Dialect::Qwen && !aborted;
        let over: Vec<String> = self.subs.working.iter().filter(|sub| !lives(sub)).map(|sub| sub.id.clone()).collect();
        for id in over {
            let outcome = if aborted { ToolOutcome::Cancelled } else { ToolOutcome::Lost };
            if let Some(at) = self.subs.working.iter().position(|sub| sub.id == id) {
                self.sub_over(at, outcome, sink);
            }
        }
        let more = self.subs.in_the_background();
        let report = &mut self.report;
        (report.settled, report.ended) = (!more, !more);
        report.clean_stop &= !more;
        if more {
            tell(AgentEvent::AgentEnded { will_retry: true }, sink);
        }
    }
}

impl Sub {
    /// Tells what it said, once.
    fn tell_said(&mut self, sink: &mut dyn Sink) {
        let said = std::mem::take(&mut self.said);
        if !said.trim().is_empty() {
            did(&self.id, SubAgentDid::Said(preview(&said)), sink);
        }
    }
}

fn did(id: &str, did: SubAgentDid, sink: &mut dyn Sink) {
    tell(AgentEvent::SubAgent { id: id.to_owned(), did }, sink);
}
