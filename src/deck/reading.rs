//! An entry of a tab in full: a call with all its arguments and what it gave, a message with what was thought before it,
//! the record of an event. Read from the event log when somebody opens it.

use std::borrow::Cow;

use jiff::tz::TimeZone;

use super::changes::{Diff, Opens};
use super::entries::{self, Call, Earlier, Entries};
use super::feed::{Feed, StepFacts};
use super::history::Entry;
use super::listed::Listed;
use super::model::Tab;
use super::said::{Said, SaidWhat};
use super::sheet::{Goal, Needle};
use crate::run::{OpenCall, RunState, StepId, StepState, Timestamp, ToolCall, ToolOutcome};
use crate::rundir::record::{self, Kind, Part};
use crate::text::{SafeText, grouped, lasted};

/// What is said of an entry whose record is not there any more, or not as it was.
pub const UNREADABLE: &str = "its record cannot be read";

/// No more lines than these are shown of an entry; the event log has all.
const MOST: usize = 5000;
/// Of so many calls on a file it is told how they went, the newest ones.
pub const CALLS: usize = 500;

/// A text to be read, above the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it is.
    pub title: SafeText,
    /// Its lines, not wrapped yet.
    pub lines: Vec<SafeText>,
    /// From here on its lines are those of a difference.
    pub diff: Option<usize>,
    /// The first visible row.
    pub top: usize,
    /// The line that a search has gone to, and what it says of how many there are.
    pub found: Option<Found>,
}

/// Where a search in a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The line.
    pub line: usize,
    /// Which of the lines that have what is looked for, from 1; 0 when none has.
    pub nth: usize,
    /// How many have it.
    pub total: usize,
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
        self.rows_before(self.lines.len(), width)
    }

    fn rows_before(&self, line: usize, width: u16) -> usize {
        self.lines.iter().take(line).map(|line| line.wrap(Self::room(width)).len()).sum()
    }

    /// Goes to the next line that has a text, or the one before; at the ends it goes on at the other end.
    pub fn find(&mut self, needle: &Needle, back: bool, width: u16) {
        let has = |(_, line): &(usize, &SafeText)| needle.is_in(line.as_str());
        let hits: Vec<u64> = self.lines.iter().enumerate().filter(has).map(|(n, _)| n as u64).collect();
        let from = self.found.map_or(0, |found| found.line as u64);
        let goal = Goal { from, here: self.found.is_none(), back };
        let Some(at) = goal.among(&hits).or_else(|| goal.other_side(&hits)) else {
            self.found = Some(Found { line: 0, nth: 0, total: 0 });
            return;
        };
        let line = hits.get(at).and_then(|line| usize::try_from(*line).ok()).unwrap_or_default();
        self.found = Some(Found { line, nth: at + 1, total: hits.len() });
        // A little of what is before it tells what it is about.
        self.top = self.rows_before(line, width).saturating_sub(3);
    }
}

/// Where and when: what every entry is read with.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The run.
    pub state: &'a RunState,
    /// What happened in it.
    pub entries: Entries<'a>,
    /// Where times of day are told.
    pub zone: &'a TimeZone,
}

impl<'a> Reader<'a> {
    /// The entry of a step's tab that the keys are at.
    #[must_use]
    pub fn open(
        &self,
        feed: &dyn Feed,
        facts: &StepFacts,
        step: StepId,
        tab: Tab,
        listed: &Listed<'_>,
    ) -> Option<Reading> {
        let number = listed.number(listed.at)?;
        let unread = || ("not to be read".to_owned(), vec![SafeText::line(UNREADABLE)]);
        let (title, lines) = match tab {
            Tab::Tools => self.call(feed, step, number).unwrap_or_else(unread),
            Tab::Transcript if number == entries::TASK => {
                let none = facts.task.is_empty().then(|| SafeText::line("its runner keeps it to itself"));
                (format!("task of step {step}"), facts.task.iter().cloned().chain(none).collect())
            }
            Tab::Transcript => match self.entries.said(step, number) {
                Some(said) => {
                    let mut lines = full(feed, &said);
                    if said.what.is_message() && lines.iter().all(SafeText::is_empty) {
                        lines = calls(feed, self.entries.said_after(step, number));
                    }
                    if let SaidWhat::Result { of: Some(_), .. } = said.what {
                        lines.extend([SafeText::default(), SafeText::line("it gave no text")]);
                    }
                    (self.title(&said), lines)
                }
                None => unread(),
            },
            Tab::Events => match self.entries.told(step, number) {
                Some(entry) => (format!("event of {}", self.time(entry.at)), event(feed, &entry)),
                None => unread(),
            },
            Tab::Output | Tab::Budget | Tab::Changes => return None,
        };
        let hidden = lines.len().saturating_sub(MOST);
        let mut lines: Vec<SafeText> = lines.into_iter().take(MOST).collect();
        if hidden > 0 {
            lines.push(SafeText::line(&format!("… {hidden} more lines are in the event log")));
        }
        Some(Reading { title: SafeText::line(&title), lines, ..Reading::default() })
    }

    /// What a line of another tab stands for, in full; `None` for a line that is all there is.
    #[must_use]
    pub fn behind(&self, feed: &dyn Feed, step: StepId, what: &Opens, diff: Option<&Diff>) -> Option<Reading> {
        match what {
            Opens::Nothing => None,
            Opens::Event(number) => {
                let entry = self.entries.history.budget.iter().find(|entry| entry.seq == *number)?;
                let title = SafeText::line(&format!("event of {}", self.time(entry.at)));
                Some(Reading { title, lines: event(feed, entry), ..Reading::default() })
            }
            Opens::File(path) => {
                let step = self.state.step(step)?;
                let numbers = self.entries.calls_on_file(step, path);
                let mut lines = Vec::new();
                let hidden = numbers.len().saturating_sub(CALLS);
                if hidden > 0 {
                    let many = format!("… {} earlier calls on it are in the tab tools", grouped(hidden as u64));
                    lines.push(SafeText::line(&many));
                }
                lines.extend(numbers.iter().skip(hidden).map(|number| self.on_file(step, *number)));
                let unread = match self.entries.earlier(step, Tab::Tools) {
                    Earlier::None | Earlier::Listed => None,
                    Earlier::Unread => Some("earlier calls are still being read"),
                    Earlier::Unlisted => Some("earlier calls are in the files only"),
                };
                if let Some(unread) = unread {
                    lines.insert(0, SafeText::line(unread));
                }
                if !lines.is_empty() {
                    lines.push(SafeText::default());
                }
                let from = lines.len();
                let changed = diff.map(|diff| diff.of(path)).unwrap_or_default();
                lines.extend(changed.iter().cloned());
                if changed.is_empty() {
                    lines.push(SafeText::line("git tells no differences of it since the last commit"));
                }
                Some(Reading { title: path.clone(), lines, diff: Some(from), ..Reading::default() })
            }
        }
    }

    /// A call on a file in a line.
    fn on_file(&self, step: &StepState, number: u64) -> SafeText {
        SafeText::line(&match self.entries.call(step, number) {
            Some(Call::Ended(call, _)) => {
                let at = self.time(call.started_at.unwrap_or(call.ended_at));
                // The first line of what it says is the reason.
                let why = SafeText::block(&call.preview).into_iter().find(|line| !line.is_empty());
                let why = why.filter(|_| call.outcome != Some(ToolOutcome::Ok));
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                format!("{at}  {}  {}{why}", call.tool, outcome(&call))
            }
            Some(Call::Open(call)) => format!("{}  {}  still open", self.time(call.started_at), call.tool),
            None => UNREADABLE.to_owned(),
        })
    }

    /// Everything that an entry of a step's tab says, to be looked through.
    #[must_use]
    pub fn said(&self, feed: &dyn Feed, facts: &StepFacts, step: StepId, tab: Tab, number: u64) -> Vec<SafeText> {
        match tab {
            Tab::Tools => self.told_call(feed, step, number).unwrap_or_default(),
            Tab::Transcript if number == entries::TASK => facts.task.clone(),
            // Of what is read again no preview has to be made first.
            Tab::Transcript => {
                let again = self.entries.record(number).map(|place| whole(feed, place)).filter(|all| !all.is_empty());
                again.or_else(|| self.entries.said(step, number).map(|said| full(feed, &said))).unwrap_or_default()
            }
            Tab::Events => self.entries.told(step, number).map(|entry| entry.text.clone()).into_iter().collect(),
            Tab::Output | Tab::Budget | Tab::Changes => Vec::new(),
        }
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

    /// What a list shows of an entry, about: the rest is seen when it is opened.
    #[must_use]
    pub fn in_sight(&self, step: StepId, tab: Tab, number: u64) -> Option<Vec<SafeText>> {
        match tab {
            Tab::Tools => {
                let row = |tool: &str, path: Option<&str>, args: &str, gave: &str| {
                    let gave = gave.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    [tool, path.unwrap_or_default(), args, gave].map(SafeText::line).to_vec()
                };
                Some(match self.entries.call(self.state.step(step)?, number)? {
                    Call::Ended(call, _) => row(&call.tool, call.path.as_deref(), &call.args, &call.preview),
                    Call::Open(call) => row(&call.tool, call.path.as_deref(), &call.args, ""),
                })
            }
            Tab::Transcript => match &self.entries.said(step, number)?.what {
                SaidWhat::Message { text, error, .. } => Some(text.iter().chain(error).cloned().collect()),
                SaidWhat::Call { tool, args, .. } => Some(vec![tool.clone(), args.clone()]),
                SaidWhat::Result { tool, text, of, .. } => Some(
                    text.iter().find(|line| !line.is_empty()).into_iter().chain(of).chain([tool]).cloned().collect(),
                ),
            },
            Tab::Output | Tab::Budget | Tab::Changes | Tab::Events => None,
        }
    }

    /// What was said of a call at a moment: by its id, which calls of one tool that begin together have each; of agents that
    /// give none, what looks like it most.
    fn of_call(
        &self,
        step: StepId,
        id: Option<&str>,
        at: Timestamp,
        id_of: fn(&SaidWhat) -> Option<&Option<String>>,
        alike: impl Fn(&SaidWhat) -> usize,
    ) -> Option<&'a Said> {
        let said = self.entries.history.said.get(&step)?.iter().rev().filter(|said| id_of(&said.what).is_some());
        if let Some(id) = id {
            // An agent that is started anew may begin its ids anew; a log that was merged may be a millisecond off.
            let mut of_it = said.filter(|said| id_of(&said.what).is_some_and(|other| other.as_deref() == Some(id)));
            return of_it.clone().find(|said| said.at == at).or_else(|| of_it.next());
        }
        let at_once = said.filter(|said| said.at == at).map(|said| (alike(&said.what), said));
        at_once.filter(|(alike, _)| *alike > 0).max_by_key(|(alike, _)| *alike).map(|(_, said)| said)
    }

    /// The arguments of a call, whole where its record is known.
    fn arguments(&self, feed: &dyn Feed, step: StepId, call: Begun<'_>) -> Vec<SafeText> {
        let (tool, args) = (SafeText::line(call.tool).truncate(40), SafeText::line(call.args));
        let alike = |what: &SaidWhat| match what {
            SaidWhat::Call { tool: t, args: a, .. } if t.as_str() == tool.as_str() => {
                1 + usize::from(a.as_str() == args.as_str())
            }
            _ => 0,
        };
        let found = match call.begin {
            Some(number) => self.entries.record(number).map(|place| whole(feed, place)),
            None => {
                call.at.and_then(|at| self.of_call(step, call.id, at, begun_id, alike)).map(|said| full(feed, said))
            }
        };
        found.filter(|lines| !lines.is_empty()).unwrap_or_else(|| SafeText::block(call.args))
    }

    /// What a call gave, whole where its record is known; `end` is the number of its end, where that is.
    fn gave(&self, feed: &dyn Feed, step: StepId, call: &ToolCall, end: Option<u64>) -> Vec<SafeText> {
        let first = SafeText::block(&call.preview).into_iter().find(|line| !line.is_empty());
        let alike = |what: &SaidWhat| match what {
            SaidWhat::Result { outcome, text, .. } if Some(*outcome) == call.outcome => {
                1 + usize::from(text.first().map(SafeText::as_str) == first.as_ref().map(SafeText::as_str))
            }
            _ => 0,
        };
        let found = match end {
            Some(number) => self.entries.record(number).map(|place| whole(feed, place)),
            None => {
                let said = self.of_call(step, call.call.as_deref(), call.ended_at, ended_id, alike);
                said.map(|said| full(feed, said))
            }
        };
        found.filter(|lines| !lines.is_empty()).unwrap_or_else(|| SafeText::block(&call.preview))
    }

    /// What is said by and about a call, without the words that the deck finds for it.
    fn told_call(&self, feed: &dyn Feed, step: StepId, number: u64) -> Option<Vec<SafeText>> {
        let mut lines;
        match self.entries.call(self.state.step(step)?, number)? {
            Call::Ended(call, spots) => {
                lines = vec![SafeText::line(&call.tool)];
                lines.extend(call.path.as_deref().map(SafeText::line));
                lines.extend(self.arguments(feed, step, Begun::ended(&call, spots)));
                lines.extend(self.gave(feed, step, &call, spots.map(|(_, end)| end)));
            }
            Call::Open(call) => {
                lines = vec![SafeText::line(&call.tool)];
                lines.extend(call.path.as_deref().map(SafeText::line));
                lines.extend(self.arguments(feed, step, Begun::open(call)));
            }
        }
        Some(lines)
    }

    /// A call: how it went, its arguments, what it gave.
    fn call(&self, feed: &dyn Feed, step: StepId, number: u64) -> Option<(String, Vec<SafeText>)> {
        let fact = |name: &str, value: String| SafeText::line(&format!("{name:<10}{value}"));
        let heading = |name: &str| [SafeText::default(), SafeText::line(name)];
        match self.entries.call(self.state.step(step)?, number)? {
            Call::Ended(call, spots) => {
                let mut lines = vec![fact("outcome", outcome(&call).to_owned())];
                lines.extend(call.started_at.map(|at| fact("started", self.time(at))));
                lines.extend(call.started_at.map(|at| fact("took", lasted(call.ended_at.since(at)))));
                let args = self.arguments(feed, step, Begun::ended(&call, spots));
                lines.extend(unsaid(call.path.as_deref(), &args).map(|path| fact("path", path.to_owned())));
                lines.extend(heading("arguments"));
                lines.extend(args);
                lines.extend(heading("result"));
                let gave = self.gave(feed, step, &call, spots.map(|(_, end)| end));
                let nothing = gave.is_empty().then(|| SafeText::line("no text"));
                lines.extend(gave.into_iter().chain(nothing));
                Some((format!("call of {}", call.tool), lines))
            }
            Call::Open(call) => {
                let mut lines =
                    vec![fact("outcome", "still open".to_owned()), fact("started", self.time(call.started_at))];
                let args = self.arguments(feed, step, Begun::open(call));
                lines.extend(unsaid(call.path.as_deref(), &args).map(|path| fact("path", path.to_owned())));
                lines.extend(heading("arguments"));
                lines.extend(args);
                Some((format!("call of {}", call.tool), lines))
            }
        }
    }
}

/// The path of a call, where its arguments do not say it.
fn unsaid<'p>(path: Option<&'p str>, args: &[SafeText]) -> Option<&'p str> {
    path.filter(|path| !args.iter().any(|line| line.as_str().ends_with(SafeText::line(path).as_str())))
}

/// What happened, and its record.
fn event(feed: &dyn Feed, entry: &Entry) -> Vec<SafeText> {
    let mut lines = vec![entry.text.clone(), SafeText::default()];
    lines.extend(match entry.place.map(|place| feed.record(place)) {
        Some(Ok(line)) => record::pretty(&line).iter().map(|line| SafeText::line(line)).collect(),
        Some(Err(why)) => vec![SafeText::line(&format!("its record cannot be read: {why}"))],
        None => vec![SafeText::line("its record is not known")],
    });
    lines
}

const fn begun_id(what: &SaidWhat) -> Option<&Option<String>> {
    match what {
        SaidWhat::Call { id, .. } => Some(id),
        _ => None,
    }
}

const fn ended_id(what: &SaidWhat) -> Option<&Option<String>> {
    match what {
        SaidWhat::Result { id, .. } => Some(id),
        _ => None,
    }
}

/// How a call began, whether it has ended or not.
#[derive(Clone, Copy)]
struct Begun<'a> {
    id: Option<&'a str>,
    tool: &'a str,
    args: &'a str,
    at: Option<Timestamp>,
    /// The number of its beginning, where that is known.
    begin: Option<u64>,
}

impl<'a> Begun<'a> {
    fn ended(call: &'a ToolCall, spots: Option<(u64, u64)>) -> Self {
        let begin = spots.map(|(begin, _)| begin);
        Self { id: call.call.as_deref(), tool: &call.tool, args: &call.args, at: call.started_at, begin }
    }

    fn open(call: &'a OpenCall) -> Self {
        Self { id: call.call.as_deref(), tool: &call.tool, args: &call.args, at: Some(call.started_at), begin: None }
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
    let whole = said.place.map(|place| whole(feed, place)).unwrap_or_default();
    let mut lines = Vec::new();
    if let SaidWhat::Message { error: Some(error), .. } = &said.what {
        lines.push(SafeText::line(&format!("error: {error}")));
    }
    if whole.is_empty() {
        match &said.what {
            SaidWhat::Result { of: Some(of), .. } => lines.push(of.clone()),
            SaidWhat::Message { text, .. } | SaidWhat::Result { text, .. } => lines.extend(text.iter().cloned()),
            SaidWhat::Call { args, .. } => lines.push(args.clone()),
        }
        return lines;
    }
    if !lines.is_empty() {
        lines.push(SafeText::default());
    }
    lines.extend(whole);
    lines
}

/// What the record at a place says.
fn whole(feed: &dyn Feed, place: u64) -> Vec<SafeText> {
    let parts = feed.record(place).map(|line| record::parts(&line)).unwrap_or_default();
    let mut lines = Vec::new();
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
        match heading {
            Some(heading) => {
                lines.push(SafeText::line(&heading));
                lines.extend(SafeText::block(&text).iter().map(|line| SafeText::line(&format!("  {line}"))));
            }
            None => lines.extend(SafeText::block(&text)),
        }
    }
    lines
}

/// The calls of a message that says nothing else: those that follow it.
fn calls<'a>(feed: &dyn Feed, after: impl Iterator<Item = Cow<'a, Said>>) -> Vec<SafeText> {
    let mut lines = Vec::new();
    for said in after.take_while(|said| !said.what.is_message()) {
        if let SaidWhat::Call { tool, .. } = &said.what {
            if !lines.is_empty() {
                lines.push(SafeText::default());
            }
            lines.push(SafeText::line(&format!("calls {tool}")));
            lines.extend(full(feed, &said).iter().map(|line| SafeText::line(&format!("  {line}"))));
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
