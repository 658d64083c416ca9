//! Understands what Codex's app server says: answers to our requests, and what happens in its sessions, of which the
//! first is the agent's and the others are its sub-agents' (agent-streams 2b).

use std::sync::Arc;

use serde_json::Value;

use super::approval;
use super::exec::found;
use super::item::{Item, Kind};
use super::known;
use super::retry;
use super::session::{INITIALIZE, INTERRUPT, RUNS, STEER, Session, TAKEN, TASK, THREAD, TURN};
use super::subs::Subs;
use super::usage::{Spent, window};
use crate::agents::jsonrpc::{Message, parse};
use crate::agents::look::{Look, text_of};
use crate::agents::told::{tell, unknown};
use crate::agents::work::{End, Over, Work};
use crate::agents::wrapping::unwrapped;
use crate::agents::{Adapter, Line, Oversize, Sink};
use crate::run::{AgentEvent, Report, StopReason, Stream, ToolOutcome};
use crate::text::prefix;

/// The adapter for `codex app-server`.
#[derive(Debug)]
pub struct ServerAdapter {
    session: Arc<Session>,
    work: Work,
    /// The agent's own session.
    thread: Option<String>,
    spent: Spent,
    subs: Subs,
    /// The model has the task.
    tasked: bool,
}

impl ServerAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        let work = Work::new(true);
        Self { session, work, thread: None, spent: Spent::default(), subs: Subs::default(), tasked: false }
    }

    fn message(&mut self, message: Message, sink: &mut dyn Sink) {
        match message {
            Message::Answer { id, result } => {
                let result = result.map_err(|failure| failure.text());
                self.answered(id.as_str().unwrap_or_default(), result, sink);
            }
            Message::Request { id, method, params } => self.request(&id, method, Look::new(&params), sink),
            Message::Notice { method, params } => self.notice(&method, Look::new(&params), sink),
        }
    }

    /// A request of ours was answered.
    fn answered(&mut self, id: &str, result: Result<Value, String>, sink: &mut dyn Sink) {
        let command = match id.split(':').next().unwrap_or_default() {
            INITIALIZE => INITIALIZE,
            THREAD if self.session.resume.is_some() => "thread/resume",
            THREAD => "thread/start",
            TURN => "turn/start",
            STEER => "turn/steer",
            INTERRUPT => "turn/interrupt",
            _ => return unknown("codex", "response", sink),
        };
        let result = if id == THREAD {
            result.and_then(|result| self.begun(Look::new(&result), sink))
        } else {
            result.map(|_| ())
        };
        if let Err(error) = &result
            && matches!(id, INITIALIZE | THREAD | TASK)
        {
            self.work.live.line(Stream::Own, &format!("the agent refused to begin: {error}"), sink);
            self.work.report.protocol_error = Some(format!("the agent refused to begin ({command}): {error}"));
        }
        let (id, error) = (Some(id.to_owned()), result.err());
        tell(AgentEvent::Response { id, command: command.to_owned(), success: error.is_none(), error }, sink);
    }

    /// The session is there.
    fn begun(&mut self, result: Look<'_>, sink: &mut dyn Sink) -> Result<(), String> {
        let id = result.object("thread").str("id").ok_or("it names no session")?.to_owned();
        self.work.model = result.str("model").map(str::to_owned);
        self.thread = Some(id.clone());
        tell(AgentEvent::SessionStarted { session_id: Some(id), model: self.work.model.clone() }, sink);
        Ok(())
    }

    fn notice(&mut self, method: &str, params: Look<'_>, sink: &mut dyn Sink) {
        let own = self.thread.as_deref() == params.str("threadId");
        if let (false, Some(thread)) = (own, params.str("threadId")) {
            self.subs.happened(thread, method, params, sink);
        }
        match method {
            "warning" | "configWarning" | "guardianWarning" => {
                let text = params.str("message").or_else(|| params.str("summary")).unwrap_or_default();
                self.work.notice(text, sink);
            }
            "thread/tokenUsage/updated" => {
                let usage = self.spent.report(params.word("threadId"), params.object("tokenUsage"));
                if let Some(window) = window(params.object("tokenUsage")).filter(|_| own) {
                    tell(AgentEvent::Window(window), sink);
                }
                if own && usage.is_some() {
                    self.work.model_call_over(usage, Some(StopReason::Stop), sink)
                } else {
                    self.work.used(usage, sink)
                }
            }
            "turn/started" => {
                self.spent.begins(params.word("threadId"));
                if own {
                    self.work.begins(sink);
                    let id = params.object("turn").word("id").to_owned();
                    sink.event(AgentEvent::Called { id, method: RUNS.to_owned() });
                }
            }
            "turn/completed" if own => self.over(params.object("turn"), sink),
            "item/started" | "item/completed" if own => {
                self.item(Item::new(params.object("item")), method == "item/completed", sink);
            }
            "item/agentMessage/delta" if own => self.work.piece(params.word("delta"), sink),
            // What a model thought is told as its provider's summary of it or as it is, or as both.
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" if own => {
                self.work.muses(params.word("delta"), sink);
            }
            "item/commandExecution/outputDelta" if own => {
                self.work.printed(params.word("itemId"), params.word("delta"), sink);
            }
            "error" if own => {
                let error = params.object("error");
                // One that is not tried again ends the turn, and is repeated by its end (agent-streams 0.3).
                if params.is("willRetry") {
                    retry::told(&mut self.work, error.word("message"), error.str("additionalDetails"), sink);
                }
            }
            // Pieces of thoughts, and what sub-agents do, are signs of life.
            _ if known::ALIVE.contains(&method) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            "error" => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            _ if known::SILENT.contains(&method) => {}
            _ if known::SILENT_OF.iter().any(|start| method.starts_with(start)) => {}
            _ => unknown("codex", method, sink),
        }
    }

    fn item(&mut self, item: Item<'_>, over: bool, sink: &mut dyn Sink) {
        match item.kind() {
            Kind::User if over => self.heard(item.look(), sink),
            Kind::Message if over => self.work.said(item.text(), sink),
            Kind::Thought if over => self.work.thought(&item.thought(), sink),
            Kind::Message | Kind::Thought => self.work.speaks(sink),
            Kind::Tool if over => {
                self.subs.call(item.look(), sink);
                self.work.called(item.begun(), sink);
                self.work.returned(item.id(), item.over(), sink);
            }
            Kind::SubAgent => self.subs.activity(item.look(), sink),
            Kind::Tool => self.work.called(item.begun(), sink),
            Kind::Compaction if over => self.work.notice("the agent shortens its conversation", sink),
            Kind::Notice if over => self.work.notice(item.look().word("message"), sink),
            Kind::Unknown if over => {
                unknown("codex item", item.word(), sink);
            }
            Kind::User | Kind::Compaction | Kind::Notice | Kind::Silent | Kind::Unknown => {
                sink.event(AgentEvent::TextDelta { bytes: 0 });
            }
        }
    }

    /// The model has the task, or a message.
    fn heard(&mut self, item: Look<'_>, sink: &mut dyn Sink) {
        self.work.begins(sink);
        if std::mem::replace(&mut self.tasked, true) {
            self.work.heard(unwrapped(&text_of(item.get("content"))), sink);
        }
        if let Some(id) = item.str("clientId") {
            let command = TAKEN.to_owned();
            tell(AgentEvent::Response { id: Some(id.to_owned()), command, success: true, error: None }, sink);
        }
    }

    fn over(&mut self, turn: Look<'_>, sink: &mut dyn Sink) {
        let end = match turn.word("status") {
            "completed" => End::Done,
            "interrupted" => End::Interrupted,
            status => {
                let error = turn.object("error");
                let details = error.str("additionalDetails").map_or_else(String::new, |more| format!(": {more}"));
                End::Failed(match error.str("message") {
                    Some(message) => format!("{message}{details}"),
                    None if status == "failed" => "the agent failed".to_owned(),
                    None => format!("the agent stopped for a reason that is not known: {}", prefix(status, 100)),
                })
            }
        };
        self.work.over(&end, sink);
    }

    /// It asks for something.
    fn request(&mut self, id: &Value, method: String, params: Look<'_>, sink: &mut dyn Sink) {
        let id = id.to_string();
        let asked = approval::asked(&id, &method, params, self.work.about(params.word("itemId")));
        if asked.is_empty() {
            return sink.event(AgentEvent::Called { id, method });
        }
        for asking in asked {
            self.work.live.line(Stream::Own, &format!("the agent asks: {}", asking.text), sink);
            tell(AgentEvent::Asked(Box::new(asking)), sink);
        }
    }

    /// A message that is too long to be parsed: of a call its id and status, of which the id stands in front.
    fn oversize(&mut self, long: &Oversize<'_>, sink: &mut dyn Sink) {
        let (head, tail) = (String::from_utf8_lossy(long.prefix), String::from_utf8_lossy(long.tail));
        self.work.live.line(Stream::Own, &format!("[a message of {} bytes, shortened]", long.observed), sink);
        let own = self.thread.is_some() && self.thread == found(&tail, "threadId");
        match found(&head, "id") {
            Some(id) if own && head.contains("\"item/completed\"") => {
                let status = found(&head, "status");
                let failed = status.as_deref() == Some("failed");
                let outcome = if failed { ToolOutcome::Error } else { ToolOutcome::Ok };
                self.work.returned(&id, Over { output: String::new(), outcome, code: None }, sink);
            }
            _ => {
                let method = found(&head, "method").unwrap_or_default();
                unknown("codex", &method, sink);
            }
        }
    }
}

impl Adapter for ServerAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => match parse(bytes) {
                Some(message) => self.message(message, sink),
                None => self.work.stray(&String::from_utf8_lossy(bytes), *complete, sink),
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
