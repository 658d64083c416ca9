//! Understands the output of a Codex with one prompt: one object a line (agent-streams 2a).

use serde_json::Value;

use super::item::{Item, Kind};
use super::retry;
use super::usage::tokens;
use crate::agents::look::Look;
use crate::agents::told::{tell, unknown};
use crate::agents::work::{End, Over, Work};
use crate::agents::{Adapter, Line, Oversize, Sink};
use crate::run::{AgentEvent, Report, Stream, ToolOutcome, Usage};

/// The adapter for `codex exec --json`.
#[derive(Debug)]
pub struct ExecAdapter {
    work: Work,
    /// The session was gone on with: the only sum that is told holds what was used before (agent-streams 0.8), so
    /// nothing can be said of what was used now.
    resumed: bool,
}

impl ExecAdapter {
    /// A new one, for one child; `resumed` says that it goes on with a session.
    #[must_use]
    pub fn new(resumed: bool) -> Self {
        Self { work: Work::new(false), resumed }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        match line.word("type") {
            "thread.started" => {
                let session_id = line.str("thread_id").map(str::to_owned);
                tell(AgentEvent::SessionStarted { session_id, model: None }, sink);
            }
            "turn.started" => self.work.begins(sink),
            kind @ ("item.started" | "item.updated" | "item.completed") => {
                self.item(Item::new(line.object("item")), kind == "item.completed", sink);
            }
            "turn.completed" => {
                let usage = line.object("usage");
                let used = Usage { tokens: tokens(usage), cost: None };
                self.work.used((!self.resumed && usage.is_there()).then_some(used), sink);
                self.work.over(&End::Done, sink);
            }
            "turn.failed" => {
                let error = line.object("error").str("message").unwrap_or("the agent failed");
                self.work.over(&End::Failed(error.to_owned()), sink);
            }
            "error" => {
                let text = line.word("message");
                // The error that ends the turn is repeated by its end (agent-streams 0.3).
                if retry::is_one(text) {
                    retry::told(&mut self.work, text, None, sink);
                }
            }
            kind => unknown("codex", kind, sink),
        }
    }

    fn item(&mut self, item: Item<'_>, over: bool, sink: &mut dyn Sink) {
        match item.kind() {
            Kind::Message if over => self.work.said(item.text(), sink),
            Kind::Thought => self.work.thought(item.text(), sink),
            Kind::Tool => {
                // Some are told only when they are over.
                self.work.called(item.begun(), sink);
                if over {
                    self.work.returned(item.id(), item.over(), sink);
                }
            }
            Kind::Notice if over => self.work.notice(item.look().word("message"), sink),
            Kind::Compaction if over => self.work.notice("the agent shortens its conversation", sink),
            Kind::Unknown if over => {
                unknown("codex item", item.word(), sink);
            }
            Kind::Message
            | Kind::User
            | Kind::SubAgent
            | Kind::Notice
            | Kind::Compaction
            | Kind::Silent
            | Kind::Unknown => sink.event(AgentEvent::TextDelta { bytes: 0 }),
        }
    }

    /// A line that is too long to be parsed: the only ones that can be are calls, whose id stands in front.
    fn oversize(&mut self, long: &Oversize<'_>, sink: &mut dyn Sink) {
        let head = String::from_utf8_lossy(long.prefix);
        self.work.live.line(Stream::Own, &format!("[a line of {} bytes, shortened]", long.observed), sink);
        match found(&head, "id") {
            Some(id) if head.contains("\"item.completed\"") => {
                let failed = found(&String::from_utf8_lossy(long.tail), "status").as_deref() == Some("failed");
                let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
                self.work.returned(&id, Over { output: String::new(), outcome, code: None }, sink);
            }
            _ => {
                let kind = found(&head, "type").unwrap_or_default();
                unknown("codex", &kind, sink);
            }
        }
    }
}

/// The first text of this name in a piece of JSON.
pub(super) fn found(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("\"{key}\":\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

impl Adapter for ExecAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => match serde_json::from_slice::<Value>(bytes) {
                Ok(value) if value.get("type").is_some_and(Value::is_string) => self.object(Look::new(&value), sink),
                _ => self.work.stray(&String::from_utf8_lossy(bytes), *complete, sink),
            },
            Line::Oversize(long) => self.oversize(long, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.work.end(sink);
    }

    fn report(&self) -> Report {
        self.work.report()
    }
}
