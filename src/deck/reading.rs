//! An entry of a tab in full: a call with all its arguments and what it gave, a message with what was thought before it,
//! the record of an event. Read from the event log when somebody opens it.

use jiff::tz::TimeZone;

use super::entries::{self, Listed};
use super::feed::{Feed, StepFacts};
use super::history::History;
use super::model::Tab;
use super::said::{Said, SaidWhat};
use crate::run::{RunState, StepId, Timestamp, ToolCall, ToolOutcome};
use crate::rundir::record::{self, Kind, Part};
use crate::text::{SafeText, span};

/// No more lines than these are shown of an entry; the event log has all.
const MOST: usize = 5000;

/// A text to be read, above the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it is.
    pub title: SafeText,
    /// Its lines, not wrapped yet.
    pub lines: Vec<SafeText>,
    /// The first visible row.
    pub top: usize,
}

impl Reading {
    /// Cells at most of a line, before it is wrapped, on a screen of this width.
    #[must_use]
    pub fn room(width: u16) -> usize {
        usize::from(width.min(110)).saturating_sub(4).max(1)
    }

    /// How many rows there are on a screen of this width.
    #[must_use]
    pub fn rows(&self, width: u16) -> usize {
        self.lines.iter().map(|line| line.wrap(Self::room(width)).len()).sum()
    }
}

/// Where and when: what every entry is read with.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The run.
    pub state: &'a RunState,
    /// What happened in it.
    pub history: &'a History,
    /// Where times of day are told.
    pub zone: &'a TimeZone,
}

impl Reader<'_> {
    /// The entry of a step's tab that the keys are at.
    #[must_use]
    pub fn open(&self, feed: &dyn Feed, facts: &StepFacts, step: StepId, tab: Tab, listed: &Listed) -> Option<Reading> {
        let number = *listed.numbers.get(listed.at)?;
        let (title, lines) = match tab {
            Tab::Tools => self.call(feed, step, number)?,
            Tab::Transcript if number == entries::TASK => {
                let none = facts.task.is_empty().then(|| SafeText::line("its runner keeps it to itself"));
                (format!("task of step {step}"), facts.task.iter().cloned().chain(none).collect())
            }
            Tab::Transcript => {
                let ring = self.history.said.get(&step)?;
                let said = ring.iter().find(|s| s.seq == number)?;
                let mut lines = full(feed, said);
                if said.is_message() && lines.iter().all(SafeText::is_empty) {
                    lines = calls(feed, ring.iter().skip_while(|s| s.seq <= number));
                }
                (self.title(said), lines)
            }
            Tab::Events => {
                let entry = self.history.of(step).find(|e| e.seq == number)?;
                let mut lines = vec![entry.text.clone(), SafeText::default()];
                lines.extend(match entry.place.map(|place| feed.record(place)) {
                    Some(Ok(line)) => record::pretty(&line).iter().map(|line| SafeText::line(line)).collect(),
                    Some(Err(why)) => vec![SafeText::line(&format!("its record cannot be read: {why}"))],
                    None => vec![SafeText::line("its record is not known")],
                });
                (format!("event of {}", self.time(entry.at)), lines)
            }
            Tab::Output | Tab::Budget | Tab::Changes => return None,
        };
        let hidden = lines.len().saturating_sub(MOST);
        let mut lines: Vec<SafeText> = lines.into_iter().take(MOST).collect();
        if hidden > 0 {
            lines.push(SafeText::line(&format!("… {hidden} more lines are in the event log")));
        }
        Some(Reading { title: SafeText::line(&title), lines, top: 0 })
    }

    fn time(&self, at: Timestamp) -> String {
        super::view::time_of_day(at, self.zone)
    }

    fn title(&self, said: &Said) -> String {
        let what = match &said.what {
            SaidWhat::Message { told: false, .. } => "assistant".to_owned(),
            SaidWhat::Message { told: true, .. } => "told".to_owned(),
            SaidWhat::Call { tool, .. } => format!("call of {tool}"),
            SaidWhat::Result { tool, .. } => format!("result of {tool}"),
        };
        format!("{what} at {}", self.time(said.at))
    }

    /// A call: how it went, its arguments, what it gave.
    fn call(&self, feed: &dyn Feed, step: StepId, number: u64) -> Option<(String, Vec<SafeText>)> {
        let state = self.state.step(step)?;
        let place = usize::try_from(number.checked_sub(entries::call_number(state, 0))?).ok()?;
        let kept = state.recent_tools.len();
        let fact = |name: &str, value: String| SafeText::line(&format!("{name:<10}{value}"));
        let said = self.history.said.get(&step);
        let find = |at: Timestamp, is: &dyn Fn(&SaidWhat) -> bool| {
            said.into_iter().flatten().rev().find(|s| s.at == at && is(&s.what))
        };
        let heading = |name: &str| [SafeText::default(), SafeText::line(name)];
        let begun = |tool: &str, at: Option<Timestamp>, args: &str| {
            let of = |what: &SaidWhat| matches!(what, SaidWhat::Call { tool: t, .. } if t.as_str() == SafeText::line(tool).truncate(40).as_str());
            let found = at.and_then(|at| find(at, &of)).map(|said| full(feed, said));
            found.filter(|lines| !lines.is_empty()).unwrap_or_else(|| SafeText::block(args))
        };
        if let Some(call) = state.recent_tools.get(place) {
            let mut lines = vec![fact("outcome", outcome(call).to_owned())];
            lines.extend(call.started_at.map(|at| fact("started", self.time(at))));
            lines.extend(call.started_at.map(|at| fact("took", span(call.ended_at.since(at)))));
            lines.extend(call.path.as_deref().map(|path| fact("path", path.to_owned())));
            lines.extend(heading("arguments"));
            lines.extend(begun(&call.tool, call.started_at, &call.args));
            lines.extend(heading("result"));
            let is_result =
                |what: &SaidWhat| matches!(what, SaidWhat::Result { outcome, .. } if Some(*outcome) == call.outcome);
            let found = find(call.ended_at, &is_result).map(|said| full(feed, said));
            let gave = found.filter(|l| !l.is_empty()).unwrap_or_else(|| SafeText::block(&call.preview));
            let nothing = gave.is_empty().then(|| SafeText::line("no text"));
            lines.extend(gave.into_iter().chain(nothing));
            return Some((format!("call of {}", call.tool), lines));
        }
        let call = state.open.get(place.checked_sub(kept)?)?;
        let mut lines = vec![fact("outcome", "it is open".to_owned()), fact("started", self.time(call.started_at))];
        lines.extend(call.path.as_deref().map(|path| fact("path", path.to_owned())));
        lines.extend(heading("arguments"));
        lines.extend(begun(&call.tool, Some(call.started_at), &call.args));
        Some((format!("call of {}", call.tool), lines))
    }
}

/// How a call ended, in a word.
#[must_use]
pub const fn outcome(call: &ToolCall) -> &'static str {
    match call.outcome {
        Some(ToolOutcome::Ok) => "it worked",
        Some(ToolOutcome::Error) => "failed",
        Some(ToolOutcome::Denied) => "denied",
        Some(ToolOutcome::Cancelled) => "cancelled",
        Some(ToolOutcome::Lost) => "no result",
        None => "not known",
    }
}

/// All of what was said, by its record; what is kept of it where there is no record.
fn full(feed: &dyn Feed, said: &Said) -> Vec<SafeText> {
    let parts =
        said.place.and_then(|place| feed.record(place).ok()).map(|line| record::parts(&line)).unwrap_or_default();
    let mut lines = Vec::new();
    if let SaidWhat::Message { error: Some(error), .. } = &said.what {
        lines.push(SafeText::line(&format!("error: {error}")));
    }
    if parts.is_empty() {
        match &said.what {
            SaidWhat::Message { text, .. } | SaidWhat::Result { text, .. } => lines.extend(text.iter().cloned()),
            SaidWhat::Call { args, .. } => lines.push(args.clone()),
        }
        return lines;
    }
    let alone = parts.len() == 1;
    for Part { kind, text } in parts {
        let heading = match &kind {
            Kind::Thought => Some("thinking".to_owned()),
            Kind::Call(tool) if !alone => Some(format!("calls {tool}")),
            Kind::Said | Kind::Result | Kind::Call(_) => None,
        };
        if !lines.is_empty() {
            lines.push(SafeText::default());
        }
        let indent = if heading.is_some() { "  " } else { "" };
        lines.extend(heading.map(|text| SafeText::line(&text)));
        lines.extend(SafeText::block(&text).iter().map(|line| SafeText::line(&format!("{indent}{line}"))));
    }
    lines
}

/// The calls of a message that says nothing else: those that follow it.
fn calls<'a>(feed: &dyn Feed, after: impl Iterator<Item = &'a Said>) -> Vec<SafeText> {
    let mut lines = Vec::new();
    for said in after.take_while(|said| !said.is_message()) {
        if let SaidWhat::Call { tool, .. } = &said.what {
            if !lines.is_empty() {
                lines.push(SafeText::default());
            }
            lines.push(SafeText::line(&format!("calls {tool}")));
            lines.extend(full(feed, said).iter().map(|line| SafeText::line(&format!("  {line}"))));
        }
    }
    if lines.is_empty() {
        lines.push(SafeText::line("it has no text and calls no tool"));
    }
    lines
}

/// What a transcript shows of a message beside what is kept of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its first lines.
    pub text: Vec<SafeText>,
    /// How many there are.
    pub lines: usize,
    /// How many lines were thought before it.
    pub thought: usize,
}

/// Lines of a message that a transcript shows where there is not room for all.
pub const SHOWN: usize = 12;
/// Lines of a message that are read for it.
const READ: usize = 60;

/// Reads a message for a transcript.
#[must_use]
pub fn message(feed: &dyn Feed, place: u64) -> Message {
    let mut out = Message::default();
    for Part { kind, text } in feed.record(place).map(|line| record::parts(&line)).unwrap_or_default() {
        match kind {
            Kind::Thought => out.thought += text.lines().count(),
            Kind::Said => {
                let lines = SafeText::block(&text);
                out.lines += lines.len();
                let room = READ.saturating_sub(out.text.len());
                out.text.extend(lines.into_iter().take(room));
            }
            Kind::Call(_) | Kind::Result => {}
        }
    }
    out
}
