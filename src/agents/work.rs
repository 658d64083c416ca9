//! The work of an agent, whatever tells of it: model calls, messages, tool calls and their ends, as events, as records
//! and as lines of the output log.
//!
//! A turn is one model call and its tools. Some streams tell when one is over. Where none does, a new one is taken to
//! begin with the first text or thought after a tool call, and with a tool call when none is open (agent-streams 11).

use std::borrow::Cow;

use serde_json::Value;

use super::look::kept;
use super::pi::args::{Described, describe, tail};
use super::pi::live::Live;
use super::told::{self, Answer, preview, tell, think, think_anew};
use super::{Sink, outside};
use crate::run::{AgentEvent, MessageRole, Report, StopReason, Stream, ToolOutcome, Usage};
use crate::text::prefix;

/// Most calls that are open at once; more than any agent starts.
const MOST_CALLS: usize = 256;
/// How much of a tool's output is quoted in an error, in characters (runner-behaviour 1.8).
const QUOTED: usize = 200;
/// Largest text of a call that is read, in bytes.
pub(super) const OUTPUT: usize = told::KEPT - told::MARK;
/// Largest answer that is kept, in bytes.
const ANSWER: usize = 16 * 1024 * 1024;

/// One model call and its tools.
#[derive(Debug, Default)]
struct Turn {
    /// What the model said last in it.
    text: String,
    /// What it thought so far: thoughts that are whole, the last of them, and the one that is being written.
    thought: String,
    last_thought: String,
    mused: String,
    /// Its message was told, because it called tools.
    told: bool,
}

/// A call that is open.
#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    /// What can be said of it in one line.
    args: String,
    /// The end of what it printed so far.
    text: String,
    /// How many bytes of it came before that.
    before: usize,
}

impl Call {
    fn keep_the_end(&mut self) {
        let end = tail(&self.text, OUTPUT);
        if end.len() < self.text.len() {
            self.before += self.text.len() - end.len();
            self.text = end.to_owned();
        }
    }

    /// What it printed, as far as it is kept, and how much is missing before that.
    fn gave(&self) -> Cow<'_, str> {
        match self.before {
            0 => Cow::Borrowed(&self.text),
            before => Cow::Owned(format!("… {before} bytes before this\n{}", self.text)),
        }
    }
}

/// A call that begins.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    /// The agent's id.
    pub id: &'a str,
    /// The tool's name.
    pub tool: String,
    /// What can be said of it.
    pub said: Described,
    /// Its arguments as they are kept.
    pub whole: Value,
}

impl<'a> Begun<'a> {
    /// A call with these arguments.
    pub(super) fn new(id: &'a str, tool: &str, args: Value) -> Self {
        let whole = kept(args);
        let tool = if tool.is_empty() { "tool" } else { prefix(tool, 100) };
        Self { id, tool: tool.to_owned(), said: describe(tool, Some(&whole.to_string())), whole }
    }
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Over {
    /// What it printed; nothing where the agent does not repeat it.
    pub output: String,
    /// Whether it worked.
    pub outcome: ToolOutcome,
    /// The exit code of the command that it ran, where the agent tells it.
    pub code: Option<i32>,
}

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was answered.
    Done,
    /// It was broken off.
    Interrupted,
    /// It failed.
    Failed(String),
}

/// What is known of the work.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub live: Live,
    pub report: Report,
    /// The model, where it is named.
    pub model: Option<String>,
    /// The transport tells when a model call is over.
    told_ends: bool,
    busy: bool,
    turn: Option<Turn>,
    calls: Vec<Call>,
    retrying: bool,
}

impl Work {
    pub(super) fn new(told_ends: bool) -> Self {
        Self { told_ends, ..Self::default() }
    }

    /// It begins, unless it works already.
    pub(super) fn begins(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.busy, true) {
            let report = &mut self.report;
            (report.settled, report.ended, report.aborted) = (false, false, false);
            tell(AgentEvent::AgentStarted, sink);
        }
        self.report.clean_stop = false;
    }

    fn works(&mut self, sink: &mut dyn Sink) {
        self.begins(sink);
        self.report.saw_any_event = true;
        if std::mem::take(&mut self.retrying) {
            tell(AgentEvent::RetryEnded { success: true }, sink);
        }
    }

    /// The model says or thinks something: after a tool call that is another turn.
    pub(super) fn speaks(&mut self, sink: &mut dyn Sink) {
        self.works(sink);
        if self.turn.as_ref().is_none_or(|turn| turn.told) {
            self.turn_over(sink);
            self.turn_begins(sink);
        }
    }

    /// A piece of a thought.
    pub(super) fn muses(&mut self, piece: &str, sink: &mut dyn Sink) {
        self.speaks(sink);
        if let Some(turn) = &mut self.turn {
            think(&mut turn.mused, piece);
        }
        sink.event(AgentEvent::TextDelta { bytes: 0 });
    }

    /// A whole thought, of which pieces may have been told. Nothing is whole of one that was told without words.
    pub(super) fn thought(&mut self, whole: &str, sink: &mut dyn Sink) {
        // Copilot repeats it when the message is there, and then the turn may be told.
        let again = |turn: &Turn| !whole.trim().is_empty() && turn.last_thought == whole;
        if self.turn.as_ref().is_some_and(again) {
            return sink.event(AgentEvent::TextDelta { bytes: 0 });
        }
        self.speaks(sink);
        if let Some(turn) = self.turn.as_mut().filter(|_| !whole.trim().is_empty()) {
            turn.mused.clear();
            think_anew(&mut turn.thought, whole);
            prefix(whole, OUTPUT).clone_into(&mut turn.last_thought);
        }
    }

    fn turn_begins(&mut self, sink: &mut dyn Sink) {
        self.turn = Some(Turn::default());
        tell(AgentEvent::TurnStarted, sink);
    }

    fn turn_over(&mut self, sink: &mut dyn Sink) {
        if self.turn.take().is_some() {
            tell(AgentEvent::TurnEnded, sink);
        }
    }

    /// A piece of a message.
    pub(super) fn piece(&mut self, text: &str, sink: &mut dyn Sink) {
        self.speaks(sink);
        self.live.delta(None, text, sink);
        sink.event(AgentEvent::TextDelta { bytes: text.len() });
    }

    /// A piece of a message of which the whole is never told.
    pub(super) fn adds(&mut self, text: &str, sink: &mut dyn Sink) {
        self.piece(text, sink);
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.text.len() + text.len() <= ANSWER) {
            turn.text.push_str(text);
        }
    }

    /// A whole message.
    pub(super) fn said(&mut self, text: &str, sink: &mut dyn Sink) {
        self.speaks(sink);
        self.live.message(text, sink);
        if let Some(turn) = self.turn.as_mut().filter(|_| !text.trim().is_empty()) {
            text.clone_into(&mut turn.text);
        }
    }

    /// A call began.
    pub(super) fn called(&mut self, begun: Begun<'_>, sink: &mut dyn Sink) {
        if self.calls.len() >= MOST_CALLS || self.calls.iter().any(|call| call.id == begun.id) {
            return;
        }
        self.works(sink);
        // Calls that run side by side are of one turn; one that begins when the others are over is of another, unless it is
        // told when a turn is over.
        let another = self.turn.as_ref().is_some_and(|turn| turn.told) && !self.told_ends && self.calls.is_empty();
        if self.turn.is_none() || another {
            self.turn_over(sink);
            self.turn_begins(sink);
        }
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            self.tell_message(Some(StopReason::ToolUse), None, true, sink);
        }
        let Begun { id, tool, said, whole } = begun;
        self.live.line(Stream::Out, &told::call(&tool, &said.args), sink);
        let id = id.to_owned();
        self.calls.push(Call {
            id: id.clone(),
            tool: tool.clone(),
            args: said.args.clone(),
            text: String::new(),
            before: 0,
        });
        let event =
            AgentEvent::ToolStarted { call: Some(id), tool, args: said.args, path: said.path, about: said.about };
        told::begins(event, &whole, sink);
    }

    /// What can be said of an open call.
    pub(super) fn about(&self, id: &str) -> Option<&str> {
        self.calls.iter().find(|call| call.id == id).map(|call| call.args.as_str())
    }

    /// A call printed something.
    pub(super) fn printed(&mut self, id: &str, text: &str, sink: &mut dyn Sink) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else { return };
        call.text.push_str(text);
        if call.text.len() > OUTPUT * 2 {
            call.keep_the_end();
        }
        self.live.progress(id, &call.text, sink);
        sink.event(AgentEvent::ToolProgress { call: Some(id.to_owned()) });
    }

    /// A call has printed this by now.
    pub(super) fn shows(&mut self, id: &str, text: &str, sink: &mut dyn Sink) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else { return };
        (call.text, call.before) = (text.to_owned(), 0);
        call.keep_the_end();
        self.live.progress(id, &call.text, sink);
        sink.event(AgentEvent::ToolProgress { call: Some(id.to_owned()) });
    }

    /// A call is over.
    pub(super) fn returned(&mut self, id: &str, over: Over, sink: &mut dyn Sink) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let mut call = self.calls.remove(at);
        if !over.output.is_empty() {
            (call.text, call.before) = (over.output, 0);
        }
        call.keep_the_end();
        self.ended(&call, over.outcome, over.code, sink);
    }

    fn ended(&mut self, call: &Call, outcome: ToolOutcome, code: Option<i32>, sink: &mut dyn Sink) {
        self.report.saw_any_event = true;
        if !call.text.is_empty() {
            self.live.result(Some(&call.id), &call.text, sink);
        }
        if outcome == ToolOutcome::Error {
            let code = code.filter(|code| *code != 0).unwrap_or(1);
            let quoted: String = call.text.trim().chars().take(QUOTED).collect();
            self.report.hidden_error = Some((format!("{} failed (exit {code}): {quoted}", call.tool), code));
        }
        told::ends(&call.id, call.tool.clone(), outcome, &call.gave(), sink);
    }

    /// A model call is over: what was used for it, and why it ended where it asked for no tools.
    pub(super) fn model_call_over(&mut self, usage: Option<Usage>, stop: Option<StopReason>, sink: &mut dyn Sink) {
        // One of which nothing was seen called something that is no item of its own.
        let unseen = self.turn.is_none() && self.busy;
        if unseen {
            self.turn_begins(sink);
        }
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            let stop = if unseen { Some(StopReason::ToolUse) } else { stop };
            self.tell_message(stop, None, unseen, sink);
        }
        self.used(usage, sink);
        self.turn_over(sink);
    }

    /// A model call is over, of which nothing is told but that.
    pub(super) fn turn_told_over(&mut self, sink: &mut dyn Sink) {
        if self.turn.is_some() {
            self.model_call_over(None, Some(StopReason::Stop), sink);
        }
    }

    /// This was used.
    pub(super) fn used(&mut self, usage: Option<Usage>, sink: &mut dyn Sink) {
        if let Some(usage) = usage {
            self.report.saw_any_event = true;
            tell(AgentEvent::Used(usage), sink);
        }
    }

    /// Tells what the model said in this turn.
    fn tell_message(&mut self, stop: Option<StopReason>, error: Option<String>, calls: bool, sink: &mut dyn Sink) {
        let said = self.turn.as_mut().map(|turn| {
            turn.told = true;
            // A thought that was broken off was thought all the same.
            think_anew(&mut turn.thought, &std::mem::take(&mut turn.mused));
            (std::mem::take(&mut turn.text), std::mem::take(&mut turn.thought))
        });
        let (said, thought) = said.unwrap_or_default();
        self.live.end_line(sink);
        self.live.message_over();
        let report = &mut self.report;
        if error.is_none() && !said.trim().is_empty() {
            report.hidden_error = None;
            report.final_text = Some(said.clone());
        }
        let model = self.model.as_deref();
        Answer { said: &said, thought: &thought, model, stop, usage: None, error, calls_tools: calls }.tell(sink);
    }

    /// Somebody said something to the model in the middle of its work.
    pub(super) fn heard(&mut self, text: &str, sink: &mut dyn Sink) {
        self.live.line(Stream::Own, &format!("» {}", text.trim()), sink);
        let event = AgentEvent::Message {
            role: MessageRole::User,
            preview: preview(text),
            model: None,
            stop: None,
            usage: None,
            error: None,
            calls_tools: false,
        };
        tell(event, sink);
    }

    /// Something that is to be told and changes nothing (agent-streams 0.3).
    pub(super) fn notice(&mut self, text: &str, sink: &mut dyn Sink) {
        self.live.line(Stream::Own, &format!("note: {}", preview(text)), sink);
    }

    /// It will try its provider again: which attempt of how many that is, and why.
    pub(super) fn retries(&mut self, attempt: Option<u32>, max: Option<u32>, reason: &str, sink: &mut dyn Sink) {
        self.begins(sink);
        let reason = preview(reason);
        let number = |n: Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let of = max.map(|max| format!(" of {max}")).unwrap_or_default();
        self.live.line(Stream::Own, &format!("retry {}{of}: {reason}", number(attempt)), sink);
        self.retrying = true;
        // What was said of the answer that broke off is no answer.
        if let Some(turn) = &mut self.turn {
            turn.text.clear();
            turn.thought.clear();
            turn.mused.clear();
        }
        self.live.message_over();
        tell(AgentEvent::Retry { attempt, max, delay_ms: None, reason }, sink);
    }

    /// The prompt is dealt with.
    pub(super) fn over(&mut self, end: &End, sink: &mut dyn Sink) {
        self.begins(sink);
        let aborted = *end == End::Interrupted;
        for call in std::mem::take(&mut self.calls) {
            // An interrupted call is never told to be over (agent-streams 2b).
            self.ended(&call, if aborted { ToolOutcome::Cancelled } else { ToolOutcome::Lost }, None, sink);
        }
        if std::mem::take(&mut self.retrying) {
            tell(AgentEvent::RetryEnded { success: false }, sink);
        }
        let error = match end {
            End::Done => None,
            End::Interrupted => Some("the agent was told to break off".to_owned()),
            End::Failed(error) => Some(error.clone()),
        };
        let stop = match end {
            End::Done => StopReason::Stop,
            End::Interrupted => StopReason::Aborted,
            End::Failed(_) => StopReason::Error,
        };
        match end {
            End::Done => {}
            End::Interrupted => self.live.line(Stream::Own, "broken off", sink),
            End::Failed(error) => self.live.line(Stream::Own, &format!("model error: {}", preview(error)), sink),
        }
        let untold = self.turn.as_ref().is_some_and(|turn| !turn.told);
        if untold || matches!(end, End::Failed(_)) {
            self.tell_message(Some(stop), error.clone(), false, sink);
        }
        self.turn_over(sink);
        self.busy = false;
        let report = &mut self.report;
        report.saw_any_event = true;
        report.clean_stop = *end == End::Done;
        report.aborted = aborted;
        report.assistant_error = error;
        (report.settled, report.ended) = (true, true);
        tell(AgentEvent::Settled { aborted }, sink);
    }

    /// A line outside the protocol.
    pub(super) fn stray(&mut self, text: &str, complete: bool, sink: &mut dyn Sink) {
        self.report.torn |= !complete && text.trim_start().starts_with('{');
        self.live.end_line(sink);
        outside::line(&mut self.report, text, complete, sink);
    }

    /// Its output is over: what the model said in the turn that was not ended is told.
    pub(super) fn end(&mut self, sink: &mut dyn Sink) {
        if self.turn.as_ref().is_some_and(|turn| !turn.told) {
            self.tell_message(None, None, false, sink);
            self.turn_over(sink);
        }
    }

    /// What it amounts to so far.
    pub(super) fn report(&self) -> Report {
        let mut report = outside::bounded(&self.report);
        // What was said and not yet told is the newest that there is.
        if let Some(turn) = self.turn.as_ref().filter(|turn| !turn.told && !turn.text.trim().is_empty()) {
            report.final_text = Some(turn.text.clone());
        }
        report
    }
}
