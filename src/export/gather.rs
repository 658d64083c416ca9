//! Collecting what a report shows, in one pass over the event log and the ends of the output logs.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use serde_json::Value;

use super::NO_PROMPT;
use super::prompts::Prompts;
use super::whole::Records;
use crate::deck::history::{Entry, tell};
use crate::headless::json_event;
use crate::run::{AgentEvent, Event, MessageRole, RunState, StepId, Timestamp, ToolOutcome, What};
use crate::rundir::{Follower, LogLine, RunDir, StepLog, plan_doc};
use crate::text::{SafeText, SecretLines, StyledLine, prefix, redact};

/// How much a report holds, and what it leaves out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The newest events.
    pub events: usize,
    /// The newest tool calls.
    pub calls: usize,
    /// The last bytes of each step's output.
    pub output: u64,
    /// The last bytes of all outputs together, given to the steps in their order.
    pub outputs: u64,
    /// Bytes of what was thought and of whole arguments, given to the newest first.
    pub wholes: usize,
    /// Tasks and messages to agents are part of it.
    pub prompts: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events: 20_000,
            calls: 20_000,
            output: 1024 * 1024,
            outputs: 32 * 1024 * 1024,
            wholes: 16 * 1024 * 1024,
            prompts: false,
        }
    }
}

/// Longer texts of events are cut here, in bytes.
const TEXT_MOST: usize = 4 * 1024;
/// Lines of output that are read at a time.
const LINES: usize = 1000;

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Of which step.
    pub step: StepId,
    /// The id that the agent gave it.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// What it was called with, in a line; redacted.
    pub args: String,
    /// All that it was called with, where that is more; redacted.
    pub whole: Option<String>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended, if it did.
    pub ended: Option<Timestamp>,
    /// How.
    pub outcome: Option<ToolOutcome>,
}

/// What a model thought before it spoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thought {
    /// Of which step.
    pub step: StepId,
    /// When the message came that followed it.
    pub at: Timestamp,
    /// How many entries of the story stand before it.
    pub before: usize,
    /// Its text; redacted.
    pub text: String,
}

/// The end of what a step printed.
#[derive(Clone, Debug)]
pub struct OutputPart {
    /// Which step.
    pub step: StepId,
    /// How many bytes there are.
    pub len: u64,
    /// How many bytes before the lines are left out.
    pub left_out: u64,
    /// The lines, redacted, with their colours; the stream and the time of each.
    pub lines: Vec<(StyledLine, LogLine)>,
}

/// Everything that is shown of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The run as it stood when the report was made.
    pub state: RunState,
    /// The evidence that its runner died, if so.
    pub lost: Option<String>,
    /// What happened, oldest first.
    pub story: VecDeque<Entry>,
    /// What was thought before the messages of the story, oldest first.
    pub thoughts: Vec<Thought>,
    /// The same as programs read it.
    pub events: VecDeque<Value>,
    /// How many older events are left out.
    pub events_left_out: u64,
    /// Tool calls in the order in which they began.
    pub calls: VecDeque<Call>,
    /// How many older ones are left out.
    pub calls_left_out: u64,
    /// The ends of the outputs of the steps.
    pub outputs: Vec<OutputPart>,
    /// The tasks, where they were asked for, by step.
    pub tasks: BTreeMap<StepId, String>,
    /// What could not be read.
    pub notices: Vec<String>,
}

/// Collects a report of a run. How far the event log was read is told now and then, in bytes of all.
///
/// # Errors
/// When the directory cannot be read.
pub fn gather(dir: &RunDir, bounds: Bounds, mut read: impl FnMut(u64, u64)) -> io::Result<Report> {
    let mut follower = Follower::open(dir.path())?;
    let mut kept = Kept::default();
    loop {
        let changes = follower.poll();
        for (event, place) in changes.news.into_iter().zip(changes.places) {
            kept.take(event, place.record.unwrap_or(u64::MAX), bounds);
        }
        if !changes.behind {
            break;
        }
        if let Some((done, all)) = follower.reading() {
            read(done, all);
        }
    }
    let mut report = kept.tell(follower.state(), bounds, &mut Records::of(dir, bounds.wholes));
    report.state = follower.state().clone();
    report.lost = follower.lost();
    report.notices = follower.notices();
    let docs = plan_doc::read(dir);
    let tasks = report.state.steps.iter().map(|step| (step.id, plan_doc::step(&docs, step.id).task));
    let tasks: BTreeMap<StepId, String> = tasks.filter(|(_, task)| !task.is_empty()).collect();
    let mut left_out = None;
    if bounds.prompts {
        report.tasks = tasks.into_iter().map(|(id, task)| (id, redact(&task).into_owned())).collect();
    } else {
        left_out = Some(Prompts::of(dir, tasks.iter().map(|(id, task)| (*id, task.as_str()))));
    }
    let mut room = bounds.outputs;
    for step in &report.state.steps {
        let part = output(dir, step.id, bounds.output.min(room), left_out.as_ref());
        room = room.saturating_sub(part.len - part.left_out);
        report.outputs.push(part);
    }
    Ok(report)
}

/// What is kept on the way through a log, as it was recorded: of a long one most is pushed out again, and to put it into
/// words takes twenty times as long as to read it.
#[derive(Default)]
struct Kept {
    /// What agents said and did, with the number of each among all.
    said: VecDeque<Told>,
    /// Everything else, which is rare and matters long.
    other: VecDeque<Told>,
    next: u64,
    left_out: u64,
    /// With where their records begin.
    calls: VecDeque<(Call, u64)>,
    calls_left_out: u64,
}

/// An event, its number among all, and where its record begins in the event log.
struct Told {
    number: u64,
    event: Event,
    place: u64,
}

impl Kept {
    fn take(&mut self, event: Event, place: u64, bounds: Bounds) {
        self.note_call(&event, place, bounds);
        let ring = if matches!(event.what, What::Agent { .. }) { &mut self.said } else { &mut self.other };
        self.left_out += u64::from(keep(ring, Told { number: self.next, event, place }, bounds.events));
        self.next += 1;
    }

    fn note_call(&mut self, event: &Event, place: u64, bounds: Bounds) {
        let What::Agent { step, event: said } = &event.what else { return };
        match said {
            AgentEvent::ToolStarted { call, tool, args, .. } => {
                let call = Call {
                    step: *step,
                    id: call.clone(),
                    tool: tool.clone(),
                    args: prefix(args, TEXT_MOST).to_owned(),
                    whole: None,
                    started: event.at,
                    ended: None,
                    outcome: None,
                };
                self.calls_left_out += u64::from(keep(&mut self.calls, (call, place), bounds.calls));
            }
            AgentEvent::ToolEnded { call, tool, outcome, .. } => {
                // By its id; of agents that give none, the oldest open one of that name.
                let open = |known: &&mut Call| known.step == *step && known.ended.is_none();
                let same = |known: &&mut Call| match call {
                    Some(_) => known.id == *call,
                    None => tool.as_ref().is_none_or(|tool| *tool == known.tool),
                };
                if let Some(known) = self.calls.iter_mut().rev().map(|(call, _)| call).filter(open).find(same) {
                    known.ended = Some(event.at);
                    known.outcome = Some(*outcome);
                }
            }
            _ => {}
        }
    }

    /// Leaves as many events as there may be: of what is rare at least a quarter of them.
    fn bound(&mut self, most: usize) {
        let rare = most.saturating_sub(self.said.len()).max(most / 4).max(1).min(most);
        let too_many = self.other.len().saturating_sub(rare);
        self.other.drain(..too_many);
        let more = self.said.len().saturating_sub(most.saturating_sub(self.other.len()));
        self.said.drain(..more);
        self.left_out += (too_many + more) as u64;
    }

    /// Puts it into words; `state` is the run at its end.
    fn tell(mut self, state: &RunState, bounds: Bounds, records: &mut Records<'_>) -> Report {
        self.bound(bounds.events);
        let mut events: Vec<Told> = self.said.into_iter().chain(self.other).collect();
        events.sort_unstable_by_key(|told| told.number);
        let mut report = Report { events_left_out: self.left_out, ..Report::default() };
        let mut messages = Vec::new();
        for Told { event, place, .. } in events {
            let prompt = is_prompt(&event) && !bounds.prompts;
            let Some(event) = (if prompt { without_prompt(&event) } else { Some(event) }) else { continue };
            if let What::Agent { step, event: AgentEvent::Message { role: MessageRole::Assistant, .. } } = &event.what {
                messages.push((*step, event.at, report.story.len(), place));
            }
            if let Some(mut entry) = tell(state, &event) {
                entry.text = SafeText::line(&redact(entry.text.as_str()));
                report.story.push_back(entry);
            }
            if let Some(mut value) = json_event(state, &event) {
                scrub(&mut value);
                report.events.push_back(value);
            }
        }
        let thought = |(step, at, before, place): (StepId, Timestamp, usize, u64)| {
            Some(Thought { step, at, before, text: records.thought(place)? })
        };
        report.thoughts = messages.into_iter().rev().filter_map(thought).collect();
        report.thoughts.reverse();
        for (call, place) in self.calls.iter_mut().rev() {
            call.tool = redact(&call.tool).into_owned();
            call.args = redact(&call.args).into_owned();
            call.whole = records.arguments(*place, &call.args);
        }
        report.calls = self.calls.into_iter().map(|(call, _)| call).collect();
        report.calls_left_out = self.calls_left_out;
        report
    }
}

/// Whether an event has the words of a prompt.
const fn is_prompt(event: &Event) -> bool {
    matches!(
        event.what,
        What::Agent { event: AgentEvent::Message { role: MessageRole::User, .. }, .. } | What::SteerRequested(_)
    )
}

/// The same event without its words; `None` where nothing else was in it.
fn without_prompt(event: &Event) -> Option<Event> {
    let What::SteerRequested(request) = &event.what else { return None };
    let mut request = request.clone();
    request.preview = NO_PROMPT.to_owned();
    Some(Event { at: event.at, what: What::SteerRequested(request) })
}

/// Adds to a ring; whether something had to go.
fn keep<T>(ring: &mut VecDeque<T>, item: T, most: usize) -> bool {
    ring.push_back(item);
    ring.len() > most && ring.pop_front().is_some()
}

/// Redacts and cuts every text of a document.
pub(super) fn scrub(value: &mut Value) {
    match value {
        Value::String(text) => scrub_line(text, &mut SecretLines::default()),
        // They may be lines that stand below each other.
        Value::Array(items) => {
            let mut above = SecretLines::default();
            for item in items {
                match item {
                    Value::String(text) => scrub_line(text, &mut above),
                    other => scrub(other),
                }
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(scrub),
        _ => {}
    }
}

fn scrub_line(text: &mut String, above: &mut SecretLines) {
    let cut = prefix(text, TEXT_MOST);
    let clean = above.redact(cut);
    if clean.len() != text.len() || clean != text.as_str() {
        *text = clean.into_owned();
    }
}

/// The end of what a step printed, without these prompts.
fn output(dir: &RunDir, step: StepId, most: u64, prompts: Option<&Prompts>) -> OutputPart {
    let log = StepLog::open(dir, step);
    let len = log.len();
    let mut part = OutputPart { step, len, left_out: len, lines: Vec::new() };
    if most == 0 {
        return part;
    }
    let mut position = len.saturating_sub(most);
    let mut first = true;
    while position < len {
        let mut lines = log.lines_from(position, LINES);
        // The line that begins before what is shown is left out with it.
        if first && position > 0 && lines.first().is_some_and(|line| line.start < position) && lines.len() > 1 {
            lines.remove(0);
        }
        let Some(last) = lines.last() else { break };
        if first {
            part.left_out = lines.first().map_or(len, |line| line.start);
        }
        first = false;
        position = last.end;
        for line in lines {
            let styled = StyledLine::parse(&line.bytes);
            part.lines.push((styled, LogLine { bytes: Vec::new(), ..line }));
        }
    }
    if let Some(prompts) = prompts {
        prompts.leave_out(step, &mut part.lines, part.left_out > 0);
    }
    let mut above = SecretLines::default();
    part.lines.iter_mut().for_each(|(line, _)| line.mask(&mut above));
    part
}
