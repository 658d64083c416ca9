//! Understands the output of one agent: events for the reducer, text for the output log, records in pi's vocabulary
//! for the event log, and what it all amounts to.
//!
//! The protocol knows no model calls, which are what a turn is elsewhere. A new one is taken to begin with the first
//! text or thought after a tool call, and with a tool call when none is open (agent-streams 11).

use std::sync::Arc;

use serde_json::Value;

use super::subs::{self, Subs, Whose};
use super::tool::Call;
use super::usage::Spent;
use super::{Dialect, INITIALIZE, SETTLE, Session};
use crate::agents::jsonrpc::{Message, number, parse, text, within};
use crate::agents::pi::live::Live;
use crate::agents::told::{self, Answer, preview, tell, think, think_anew, unknown};
use crate::agents::{Adapter, Line, Oversize, Sink, outside};
use crate::run::{AgentEvent, Report, StopReason, Stream, ToolOutcome, Window};

/// Largest answer that is kept, in bytes.
const ANSWER: usize = 16 * 1024 * 1024;
/// Most calls that are open at once; more than any agent starts.
const MOST_CALLS: usize = 256;
/// What Copilot says in the place of its model: when it was refused a permission, when it asks its provider again, and
/// how it begins when that came to nothing. Each is one chunk of text, also in the middle of what its model said.
const CANCELLED: &str = "Info: Operation cancelled by user";
const RETRYING: [&str; 2] = ["Info: ", " Retrying..."];
const FAILED: &str = "Error: ";

/// Updates that are known and say nothing about a run's state.
const SILENT: [&str; 8] = [
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "notice",
    "plan",
    "plan_update",
    "session_info_update",
    "user_message_chunk",
];

/// One model call and its tools.
#[derive(Debug, Default)]
struct Turn {
    text: String,
    /// What was thought, and the agent's id of the last thought.
    thought: String,
    thinks: Option<String>,
    /// The agent's id of the message that is being written.
    message: Option<String>,
    /// How many messages there were; the output log separates them.
    block: u64,
    /// How many pieces its text came in.
    pieces: u32,
    /// The last of them, where it may be an error.
    failure: Option<String>,
    /// Its message was told, because it called tools.
    told: bool,
    /// It began while calls were open: it is the answer to another prompt than they are.
    ahead: bool,
}

/// The adapter for agents that speak the protocol.
#[derive(Debug)]
pub struct AcpAdapter {
    pub(super) session: Arc<Session>,
    pub(super) live: Live,
    pub(super) report: Report,
    /// Whether the session is there; what comes before it is the history of one that was loaded.
    open: bool,
    /// Whether the agent works.
    busy: bool,
    model: Option<String>,
    turn: Option<Turn>,
    /// Whether a turn began since the last prompt was answered.
    worked: bool,
    pub(super) calls: Vec<Call>,
    /// A permission was refused, and the model said nothing since.
    refused: bool,
    /// How often the provider was asked again since the model said something.
    retries: u32,
    pub(super) spent: Spent,
    pub(super) subs: Subs,
}

impl AcpAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            live: Live::default(),
            report: Report::default(),
            open: false,
            busy: false,
            model: None,
            turn: None,
            worked: false,
            calls: Vec::new(),
            refused: false,
            retries: 0,
            spent: Spent::default(),
            subs: Subs::default(),
        }
    }

    fn message(&mut self, message: Message, sink: &mut dyn Sink) {
        match message {
            Message::Notice { method, params } if method == "session/update" => {
                self.update(params.get("update").unwrap_or(&Value::Null), sink);
            }
            Message::Notice { method, .. } if method == subs::OWN_TURN_OVER => self.own_turn_over(sink),
            Message::Notice { method, .. } if method.starts_with(subs::SCREEN) => {}
            Message::Notice { method, .. } => unknown("acp", &method, sink),
            Message::Request { id, method, params } => self.request(&id, method, &params, sink),
            Message::Answer { id, result } => {
                let Some(id) = number(&id) else {
                    return unknown("acp", "response", sink);
                };
                let result = result.map_err(|failure| failure.text());
                match self.session.method_of(id) {
                    "session/prompt" => self.answered(id, result, sink),
                    // Whether it could be set says nothing: it was the same before.
                    SETTLE => {
                        self.open = true;
                        tell(response(id, SETTLE, None), sink);
                    }
                    method => self.greeted(id, method, result, sink),
                }
            }
        }
    }

    /// A step of the handshake was answered.
    fn greeted(&mut self, id: u64, method: &'static str, result: Result<Value, String>, sink: &mut dyn Sink) {
        let version = |result: Value| match result.get("protocolVersion").and_then(Value::as_u64) {
            Some(1) => Ok(result),
            Some(other) => Err(format!("it speaks version {other} of the protocol, and only version 1 is understood")),
            None => Err("it does not say which version of the protocol it speaks".to_owned()),
        };
        let result = if id == INITIALIZE { result.and_then(version) } else { result };
        let result = if id == self.session.session_request() {
            result.and_then(|result| self.begun(&result, sink))
        } else {
            result.map(|_| ())
        };
        if let Err(error) = &result {
            self.live.line(Stream::Own, &format!("the agent refused to begin: {error}"), sink);
            self.report.protocol_error = Some(format!("the agent refused to begin ({method}): {error}"));
        }
        tell(response(id, method, result.err()), sink);
    }

    /// The session is there.
    fn begun(&mut self, result: &Value, sink: &mut dyn Sink) -> Result<(), String> {
        let named = text(result, "sessionId").map(str::to_owned);
        let session_id = named.or_else(|| self.session.resume.clone()).ok_or("it names no session")?;
        let options = result.get("configOptions").and_then(Value::as_array);
        let option = options.and_then(|all| all.iter().find(|option| text(option, "id") == Some("model")));
        let model = within(result, &["models", "currentModelId"]).and_then(Value::as_str);
        self.model = model.or_else(|| text(option?, "currentValue")).map(str::to_owned);
        self.open = self.session.settle.is_none();
        tell(AgentEvent::SessionStarted { session_id: Some(session_id), model: self.model.clone() }, sink);
        Ok(())
    }

    fn update(&mut self, update: &Value, sink: &mut dyn Sink) {
        let kind = text(update, "sessionUpdate").unwrap_or_default();
        // The history of a session that is being loaded is nobody's work.
        let history = !self.open && self.session.resume.is_some();
        match kind {
            "usage_update" => {
                let count = |name| update.get(name).and_then(Value::as_u64).filter(|n| *n > 0);
                let window = Window { used: count("used"), size: count("size") };
                if window != Window::default() {
                    tell(AgentEvent::Window(window), sink);
                }
                self.spent.session(update, history);
            }
            _ if history => {}
            "agent_message_chunk" if self.told_of_background(update, sink) => {}
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" => {
                // A call that was told as the agent's own stays it.
                let known = text(update, "toolCallId").is_some_and(|id| self.calls.iter().any(|call| call.id == id));
                let whose = if known { Whose::Own } else { self.subs.whose(kind, update, self.session.dialect) };
                match whose {
                    Whose::Own => self.own(kind, update, sink),
                    Whose::Sub(at) => self.nested(at, kind, update, sink),
                    Whose::OneOfThem => sink.event(AgentEvent::TextDelta { bytes: 0 }),
                }
            }
            kind if SILENT.contains(&kind) => {}
            kind => unknown("session/update", kind, sink),
        }
    }

    /// What the agent itself says, thinks or calls.
    fn own(&mut self, kind: &str, update: &Value, sink: &mut dyn Sink) {
        match kind {
            "agent_message_chunk" => {
                let said = within(update, &["content", "text"]).and_then(Value::as_str).unwrap_or_default();
                if !said.is_empty() && !self.own_words(said, sink) {
                    self.said(said, text(update, "messageId"), sink);
                }
                if let Some(usage) = within(update, &["_meta", "usage"]) {
                    self.report.saw_any_event = true;
                    self.spent.call(usage);
                }
            }
            "agent_thought_chunk" => {
                let thought = within(update, &["content", "text"]).and_then(Value::as_str).unwrap_or_default();
                self.thought(thought, text(update, "messageId"), sink);
            }
            _ => self.call(update, sink),
        }
    }

    /// The agent begins, unless it works already.
    pub(super) fn works(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.busy, true) {
            let report = &mut self.report;
            // What it does by itself takes nothing back of an end that was told.
            if !self.subs.own_turn {
                (report.settled, report.ended, report.aborted) = (false, false, false);
            }
            tell(AgentEvent::AgentStarted, sink);
        }
        self.report.clean_stop = false;
        self.report.saw_any_event = true;
    }

    /// The model says or thinks something: after a tool call that is another turn.
    fn speaks(&mut self, sink: &mut dyn Sink) {
        // The model goes on when all of its calls are over; Gemini does not tell how a refused one ended.
        for call in self.calls.extract_if(.., |call| call.asked).collect::<Vec<_>>() {
            self.ended(&call, ToolOutcome::Denied, sink);
        }
        self.refused = false;
        if self.turn.as_ref().is_none_or(|turn| turn.told) {
            self.turn_over(sink);
            self.turn_begins(sink);
        }
    }

    fn turn_begins(&mut self, sink: &mut dyn Sink) {
        self.works(sink);
        self.worked = true;
        let ahead = self.calls.iter().any(|call| call.started);
        self.turn = Some(Turn { ahead, ..Turn::default() });
        tell(AgentEvent::TurnStarted, sink);
    }

    fn turn_over(&mut self, sink: &mut dyn Sink) {
        if self.turn.take().is_some() {
            tell(AgentEvent::TurnEnded, sink);
        }
    }

    /// Whether this is what Copilot says in the place of its model, which is no answer.
    fn own_words(&mut self, said: &str, sink: &mut dyn Sink) -> bool {
        if self.session.dialect != Dialect::Copilot {
            return false;
        }
        let retrying = said.strip_prefix(RETRYING[0]).and_then(|said| said.strip_suffix(RETRYING[1]));
        if let Some(reason) = retrying.filter(|reason| !reason.contains('\n')) {
            let reason = preview(reason);
            self.works(sink);
            self.retries += 1;
            // What was said before is said again.
            if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.told) {
                (turn.text, turn.thought, turn.pieces) = (String::new(), String::new(), 0);
                self.live.end_line(sink);
            }
            self.live.line(Stream::Own, &format!("retry {}: {reason}", self.retries), sink);
            tell(AgentEvent::Retry { attempt: Some(self.retries), max: None, delay_ms: None, reason }, sink);
            return true;
        }
        if std::mem::take(&mut self.retries) > 0 {
            tell(AgentEvent::RetryEnded { success: !said.starts_with(FAILED) }, sink);
        }
        self.refused && said.trim() == CANCELLED
    }

    fn said(&mut self, said: &str, message: Option<&str>, sink: &mut dyn Sink) {
        self.speaks(sink);
        self.works(sink);
        // OpenCode names a message after its model call; one that follows another without a tool between is another call.
        let another = |turn: &Turn| turn.message.is_some() && message.is_some() && turn.message.as_deref() != message;
        if self.turn.as_ref().is_some_and(|turn| another(turn) && !turn.text.is_empty()) {
            self.tell_message(None, None, false, sink);
            self.turn_over(sink);
            self.turn_begins(sink);
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.message.as_deref() != message {
            turn.message = message.map(str::to_owned);
            if !turn.text.is_empty() {
                turn.text.push('\n');
                turn.block += 1;
            }
        }
        turn.pieces = turn.pieces.saturating_add(1);
        turn.failure = said.starts_with(FAILED).then(|| said.to_owned());
        if turn.text.len() + said.len() <= ANSWER {
            turn.text.push_str(said);
        }
        self.live.delta(Some(turn.block), said, sink);
        sink.event(AgentEvent::TextDelta { bytes: said.len() });
    }

    /// A piece of a thought; Gemini tells whole ones.
    fn thought(&mut self, thought: &str, id: Option<&str>, sink: &mut dyn Sink) {
        self.speaks(sink);
        sink.event(AgentEvent::TextDelta { bytes: 0 });
        let whole = self.session.dialect == Dialect::Gemini;
        let Some(turn) = &mut self.turn else { return };
        if whole || turn.thinks.as_deref() != id {
            turn.thinks = id.map(str::to_owned);
            think_anew(&mut turn.thought, thought);
        } else {
            think(&mut turn.thought, thought);
        }
    }

    pub(super) fn call(&mut self, update: &Value, sink: &mut dyn Sink) {
        let Some(id) = text(update, "toolCallId") else {
            return unknown("session/update", "tool_call", sink);
        };
        // What a sub-agent of it calls, which is told for itself too.
        if within(update, &["_meta", "subagentProgress"]).and_then(Value::as_bool) == Some(true) {
            return sink.event(AgentEvent::TextDelta { bytes: 0 });
        }
        let known = self.calls.iter().position(|call| call.id == id);
        let mut call = match known {
            Some(at) => self.calls.remove(at),
            None if self.calls.len() >= MOST_CALLS => return,
            None => Call::new(id),
        };
        call.take(update, self.session.dialect);
        if !call.started && call.is_ready() {
            self.started(&mut call, sink);
        }
        match call.outcome() {
            Some(outcome) => self.ended(&call, outcome, sink),
            None => {
                call.asked = false;
                if call.started && !call.text().is_empty() {
                    self.live.progress(id, call.text(), sink);
                    sink.event(AgentEvent::ToolProgress { call: Some(id.to_owned()) });
                }
                // In the order of their beginning, as they were.
                self.calls.insert(known.unwrap_or(self.calls.len()).min(self.calls.len()), call);
            }
        }
    }

    pub(super) fn started(&mut self, call: &mut Call, sink: &mut dyn Sink) {
        call.started = true;
        // Calls that run side by side are of one turn; one that begins when the others are over is of another.
        if self.turn.as_ref().is_none_or(|turn| turn.told) && !self.calls.iter().any(|other| other.started) {
            self.turn_over(sink);
            self.turn_begins(sink);
        }
        self.works(sink);
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            self.tell_message(Some(StopReason::ToolUse), None, true, sink);
        }
        let said = call.describe();
        let line = told::call(call.name(), &said.args);
        self.live.line(Stream::Out, &line, sink);
        let (tool, id) = (call.name().to_owned(), Some(call.id.clone()));
        let event = AgentEvent::ToolStarted { call: id, tool, args: said.args, path: said.path, about: said.about };
        told::begins(event, &call.whole(), sink);
        self.delegates(call, sink);
    }

    fn ended(&mut self, call: &Call, outcome: ToolOutcome, sink: &mut dyn Sink) {
        if !call.text().is_empty() {
            self.live.result(Some(&call.id), call.text(), sink);
        }
        match outcome {
            ToolOutcome::Error => self.report.hidden_error = Some(call.failure()),
            ToolOutcome::Denied => self.refused = true,
            _ => {}
        }
        told::ends(&call.id, call.name().to_owned(), outcome, &call.gave(), sink);
        self.came_back(call, outcome, sink);
    }

    /// Tells what the model said in this turn, and what was used since the last time.
    fn tell_message(&mut self, stop: Option<StopReason>, error: Option<String>, calls: bool, sink: &mut dyn Sink) {
        let said = self.turn.as_mut().map(|turn| {
            turn.told = true;
            (std::mem::take(&mut turn.text), std::mem::take(&mut turn.thought))
        });
        let (said, thought) = said.unwrap_or_default();
        self.live.end_line(sink);
        self.live.message_over();
        let (model, usage) = (self.model.as_deref(), self.spent.take());
        Answer { said: &said, thought: &thought, model, stop, usage, error, calls_tools: calls }.tell(sink);
        let report = &mut self.report;
        if !said.trim().is_empty() {
            report.hidden_error = None;
            report.final_text = Some(said);
        }
    }

    /// A prompt was answered: what comes after it is the work on another one.
    fn answered(&mut self, id: u64, result: Result<Value, String>, sink: &mut dyn Sink) {
        let worked = std::mem::take(&mut self.worked);
        if let Ok(result) = &result {
            self.spent.prompt(self.session.dialect, result, worked);
        }
        let word = result.as_ref().map(|result| text(result, "stopReason").unwrap_or_default().to_owned());
        let cancelled = word.as_deref() == Ok("cancelled");
        for call in std::mem::take(&mut self.calls).into_iter().filter(|call| call.started) {
            let unsaid = if call.asked { ToolOutcome::Denied } else { ToolOutcome::Lost };
            self.ended(&call, if cancelled { ToolOutcome::Cancelled } else { unsaid }, sink);
        }
        let (stop, error) = match word.as_deref() {
            Ok("end_turn") => (StopReason::Stop, self.hidden_failure()),
            Ok("max_tokens") => (StopReason::Length, None),
            Ok("cancelled") => (StopReason::Aborted, Some("the agent was told to break off".to_owned())),
            Ok("max_turn_requests") => {
                (StopReason::Error, Some("the agent reached its own limit of model calls".to_owned()))
            }
            Ok("refusal") => (StopReason::Error, Some("the agent refused to go on".to_owned())),
            Ok("") => (StopReason::Other, Some("the agent did not say why it stopped".to_owned())),
            Ok(other) => {
                (StopReason::Other, Some(format!("the agent stopped for a reason that is not known: {other}")))
            }
            Err(error) => (StopReason::Error, Some((*error).clone())),
        };
        let keeps_on = cancelled && self.turn.as_ref().is_some_and(|turn| turn.ahead && !turn.told);
        let mut turn = if keeps_on { self.turn.take() } else { None };
        let untold = self.turn.as_ref().is_some_and(|turn| !turn.told);
        let failed = error.as_ref().filter(|_| !cancelled);
        if let Some(error) = failed {
            self.live.line(Stream::Own, &format!("model error: {}", preview(error)), sink);
        }
        if untold || failed.is_some() {
            let kept = self.report.final_text.clone();
            self.tell_message(Some(stop), error.clone(), false, sink);
            // What is said of a failure is no answer.
            if error.is_some() {
                self.report.final_text = kept;
            }
        }
        if let Some(usage) = self.spent.take() {
            tell(AgentEvent::Used(usage), sink);
        }
        if cancelled {
            self.live.line(Stream::Own, "broken off", sink);
        }
        self.turn_over(sink);
        self.turn = turn.take();
        self.busy = self.turn.is_some();
        let report = &mut self.report;
        report.saw_any_event = true;
        report.clean_stop = stop == StopReason::Stop && error.is_none();
        report.aborted = cancelled;
        report.assistant_error.clone_from(&error);
        self.rests(cancelled, sink);
        // A refused prompt is an answer too; only one that ended well was accepted.
        tell(response(id, "session/prompt", result.err()), sink);
        if self.report.settled {
            tell(AgentEvent::Settled { aborted: cancelled }, sink);
        }
    }

    /// The end of a turn that no prompt began.
    pub(super) fn turn_told(&mut self, stop: StopReason, sink: &mut dyn Sink) {
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            self.tell_message(Some(stop), None, false, sink);
        }
        if let Some(usage) = self.spent.take() {
            tell(AgentEvent::Used(usage), sink);
        }
        self.turn_over(sink);
        self.busy = false;
    }

    /// What an agent tells as an answer that ended well, and is none: that it gave up because of a refusal, without
    /// asking its model (Qwen, Copilot), and its provider's error (agent-streams 7).
    fn hidden_failure(&mut self) -> Option<String> {
        if std::mem::take(&mut self.refused) {
            return Some("the agent broke off when it was refused a permission".to_owned());
        }
        let turn = self.turn.as_ref().filter(|turn| !turn.told && self.session.dialect == Dialect::Copilot)?;
        // Models say what they say piece by piece. Whether this one said anything can only be told where it used nothing
        // before either.
        let failure = turn.failure.as_deref().filter(|_| turn.pieces == 1 || !self.spent.has_some())?;
        Some(failure.trim().to_owned())
    }

    /// A line outside the protocol.
    fn text_line(&mut self, text: &str, complete: bool, sink: &mut dyn Sink) {
        self.live.end_line(sink);
        outside::line(&mut self.report, text, complete, sink);
    }

    /// A line that is too long to be parsed: of a call its id and status, which stand in front of what makes it long.
    fn oversize(&mut self, long: &Oversize<'_>, sink: &mut dyn Sink) {
        let note = format!("[a message of {} bytes, shortened]", long.observed);
        let prefix = String::from_utf8_lossy(long.prefix);
        let found = |key: &str| {
            let (_, rest) = prefix.split_once(&format!("\"{key}\":\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let mut update = serde_json::Map::new();
        for key in ["sessionUpdate", "toolCallId", "status", "title", "kind"] {
            if let Some(value) = found(key) {
                update.insert(key.to_owned(), Value::String(value));
            }
        }
        self.live.line(Stream::Own, &note, sink);
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or("?").to_owned();
        if kind.starts_with("tool_call") && update.contains_key("toolCallId") {
            self.update(&Value::Object(update), sink);
        } else {
            unknown("session/update", &kind, sink);
        }
    }
}

fn response(id: u64, command: &str, error: Option<String>) -> AgentEvent {
    AgentEvent::Response { id: Some(id.to_string()), command: command.to_owned(), success: error.is_none(), error }
}

impl Adapter for AcpAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => match parse(bytes) {
                Some(message) => self.message(message, sink),
                None => {
                    self.report.torn |= !complete && bytes.trim_ascii_start().starts_with(b"{");
                    self.text_line(&String::from_utf8_lossy(bytes), *complete, sink);
                }
            },
            Line::Oversize(long) => self.oversize(long, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            self.tell_message(None, None, false, sink);
            self.turn_over(sink);
        }
    }

    fn report(&self) -> Report {
        let mut report = outside::bounded(&self.report);
        // What was said and not yet told is the newest that there is.
        if let Some(turn) = self.turn.as_ref().filter(|turn| !turn.told && !turn.text.trim().is_empty()) {
            report.final_text = Some(turn.text.clone());
        }
        report
    }
}
