//! The tabs that list things: which entries there are, which are left out, and which one the keys are at.

use std::borrow::Cow;
use std::ops::Range;

use super::changes::same_file;
use super::history::{Entry, History, Tone};
use super::listed::{Before, Listed};
use super::model::{PaneState, Tab, UiState};
use super::older::Older;
use super::said::Said;
use crate::run::{OpenCall, StepId, StepState, ToolCall, ToolOutcome};
use crate::text::SafeText;

/// Which entries of a tab are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sieve {
    /// All.
    #[default]
    All,
    /// What went wrong.
    Errors,
    /// What was said, without calls and what they gave.
    Text,
}

impl Sieve {
    /// The next one that means something on this tab.
    #[must_use]
    pub const fn next(self, tab: Tab) -> Self {
        match (self, tab) {
            (Self::All, Tab::Transcript) => Self::Text,
            (Self::All, _) | (Self::Text, _) => Self::Errors,
            (Self::Errors, _) => Self::All,
        }
    }

    /// What is listed, for the frame; nothing when all is.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Errors => Some("errors only"),
            Self::Text => Some("text only"),
        }
    }
}

/// Whether a tab lists entries that can be opened.
#[must_use]
pub const fn lists(tab: Tab) -> bool {
    matches!(tab, Tab::Tools | Tab::Transcript | Tab::Events)
}

/// The number of the task in a transcript, before everything that was said.
pub const TASK: u64 = 0;

/// From here on are the numbers of calls that have not ended: as the run counts them, whatever ends before them.
pub const OPEN: u64 = 1 << 62;

/// The numbers of the open calls of a step, in their order. Who counts otherwise may give several the same.
fn open_numbers(step: &StepState) -> impl Iterator<Item = u64> {
    let mut next = OPEN;
    step.open.iter().map(move |call| {
        let number = next.max(OPEN.saturating_add(call.seq));
        next = number.saturating_add(1);
        number
    })
}

/// Whether there are entries before those that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// There are none.
    None,
    /// They are listed.
    Listed,
    /// They are listed once somebody goes there.
    Unread,
    /// They cannot be listed.
    Unlisted,
}

/// The entries of all steps: those that are kept, and before them those that are read again.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    /// The newest ones.
    pub history: &'a History,
    /// Those before them.
    pub older: &'a Older,
}

/// A call, wherever it was found.
#[derive(Clone, Debug)]
pub enum Call<'a> {
    /// It ended. The numbers of its beginning and its end, where it was read again.
    Ended(Cow<'a, ToolCall>, Option<(u64, u64)>),
    /// It has not.
    Open(&'a OpenCall),
}

impl<'a> Entries<'a> {
    /// Whether there are entries of a tab before those that are kept of it.
    #[must_use]
    pub fn earlier(&self, step: &StepState, tab: Tab) -> Earlier {
        let more = match tab {
            // Who counts may have missed some.
            Tab::Tools => {
                let full = step.recent_tools.len() >= StepState::KEPT_TOOLS;
                full || step.tool_count > (step.recent_tools.len() + step.open.len()) as u64
            }
            Tab::Transcript | Tab::Events => self.history.is_cut(step.id, tab == Tab::Transcript),
            Tab::Output | Tab::Budget | Tab::Changes => false,
        };
        if !more {
            Earlier::None
        } else if self.before(step, tab, Sieve::All).is_some() {
            Earlier::Listed
        } else if !self.history.is_loose() && self.older.open().is_some_and(|book| book.shelf(step.id).is_none()) {
            // The log does not have them any more.
            Earlier::None
        } else if !self.history.is_loose() && self.older.may_open() {
            Earlier::Unread
        } else {
            Earlier::Unlisted
        }
    }

    /// The number of the oldest call that is kept of a step.
    #[must_use]
    pub fn first_call(&self, step: &StepState) -> u64 {
        let kept = step.recent_tools.len() + step.open.len();
        let counted = step.tool_count.max(kept as u64) - kept as u64;
        // Who counts may have missed some that the log has.
        let book = self.older.open().filter(|_| !self.history.is_loose());
        let listed = book.and_then(|book| book.calls_before(step, self.history.newest()));
        counted.max(listed.map_or(0, |listed| listed as u64))
    }

    /// The entries of a tab before those that are kept, where there are any that can be listed.
    fn before(&self, step: &StepState, tab: Tab, sieve: Sieve) -> Option<Before<'a>> {
        let book = self.older.open().filter(|_| !self.history.is_loose())?;
        let shelf = book.shelf(step.id);
        let newest = self.history.newest();
        let (column, len, first) = match tab {
            Tab::Tools => {
                let many = book.calls_before(step, newest)?;
                let first = self.first_call(step).saturating_sub(many as u64);
                (&shelf?.calls, shelf?.calls.among(sieve, many), Some(first))
            }
            Tab::Transcript | Tab::Events => {
                let said = tab == Tab::Transcript;
                if !self.history.is_cut(step.id, said) {
                    return None;
                }
                let kept = if said {
                    self.history.said.get(&step.id).and_then(|ring| ring.front()).map(|said| said.seq)
                } else {
                    self.history.of(step.id).next().map(|entry| entry.seq)
                };
                let column = if said { &shelf?.said } else { &shelf?.told };
                (column, column.before(sieve, kept.unwrap_or(newest + 1)), None)
            }
            Tab::Output | Tab::Budget | Tab::Changes => return None,
        };
        Some(Before { column, sieve, len, first })
    }

    /// How many events of a step are listed.
    #[must_use]
    pub fn many(&self, step: &StepState) -> usize {
        let before = self.before(step, Tab::Events, Sieve::All).map_or(0, |before| before.len);
        before + self.history.of(step.id).count()
    }

    /// What is listed of a tab, with the keys at the newest.
    #[must_use]
    pub fn all(&self, step: &StepState, tab: Tab, sieve: Sieve) -> Listed<'a> {
        let bad = sieve == Sieve::Errors;
        let before = self.before(step, tab, sieve);
        let mut task = false;
        let kept: Vec<u64> = match tab {
            Tab::Tools => {
                let ended = step.recent_tools.iter().map(|c| !matches!(c.outcome, Some(ToolOutcome::Ok) | None));
                let ended = (self.first_call(step)..).zip(ended).filter(|(_, wrong)| *wrong || !bad);
                let open = open_numbers(step).filter(|_| !bad);
                ended.map(|(number, _)| number).chain(open).collect()
            }
            Tab::Transcript => {
                // The task stands before everything that was said.
                let whole = before.is_some() || !self.history.is_cut(step.id, true);
                task = step.has_task && whole && !bad;
                let said = self.history.said.get(&step.id).into_iter().flatten();
                let said = said.filter(|said| match sieve {
                    Sieve::All => true,
                    Sieve::Errors => said.what.is_bad(),
                    Sieve::Text => said.what.is_message(),
                });
                said.map(|said| said.seq).collect()
            }
            Tab::Events => self.history.of(step.id).filter(|e| !bad || e.tone == Tone::Bad).map(|e| e.seq).collect(),
            Tab::Output | Tab::Budget | Tab::Changes => Vec::new(),
        };
        let mut listed = Listed { task, before, kept, at: 0, follows: true, sieve };
        listed.at = listed.len().saturating_sub(1);
        listed
    }

    /// What is listed of the tab that a step shows.
    #[must_use]
    pub fn listed(&self, ui: &UiState, step: &StepState) -> Listed<'a> {
        let none = PaneState::default();
        let pane = ui.panes.get(&step.id).unwrap_or(&none);
        let sieve = pane.sieve.get(&pane.tab).copied().unwrap_or_default();
        let listed = self.all(step, pane.tab, sieve);
        match pane.cursor.get(&pane.tab) {
            // An entry that is not listed any more is followed by the next one that is.
            Some(cursor) => Listed { at: listed.place(*cursor).min(listed.at), follows: false, ..listed },
            None => listed,
        }
    }

    /// Whether somebody looks for entries of a step's tab that were not read yet: the keys go before those that are kept, or
    /// stayed at one that is kept no longer, or all are asked for what they are, or none is kept, or the tab tells of all.
    #[must_use]
    pub fn wanted(&self, ui: &UiState, step: &StepState) -> bool {
        let none = PaneState::default();
        let pane = ui.panes.get(&step.id).unwrap_or(&none);
        // Which files were worked on is told by all calls.
        if pane.tab == Tab::Changes {
            return self.earlier(step, Tab::Tools) == Earlier::Unread;
        }
        if self.earlier(step, pane.tab) != Earlier::Unread {
            return false;
        }
        let sieve = pane.sieve.get(&pane.tab).copied().unwrap_or_default();
        let first = self.all(step, pane.tab, Sieve::All).number(0);
        let gone = |cursor: &u64| first.is_some_and(|first| *cursor < first);
        let above = ui.above.is_some_and(|above| (above.step, above.tab) == (step.id, pane.tab));
        sieve != Sieve::All || above || first.is_none() || pane.cursor.get(&pane.tab).is_some_and(gone)
    }

    /// A call by its number.
    #[must_use]
    pub fn call(&self, step: &'a StepState, number: u64) -> Option<Call<'a>> {
        if number >= OPEN {
            return Self::open_call(step, number).map(Call::Open);
        }
        let Some(place) = number.checked_sub(self.first_call(step)) else {
            let spots = self.call_spots(step, number)?;
            return Some(Call::Ended(Cow::Owned(self.older.call(spots)?), Some(spots)));
        };
        let place = usize::try_from(place).ok()?;
        step.recent_tools.get(place).map(|call| Call::Ended(Cow::Borrowed(call), None))
    }

    /// The open call of a step under a number.
    #[must_use]
    pub fn open_call(step: &StepState, number: u64) -> Option<&OpenCall> {
        open_numbers(step).zip(&step.open).find(|(own, _)| *own == number).map(|(_, call)| call)
    }

    /// The number of a call that was open, wherever it is now.
    #[must_use]
    pub fn number_of(&self, step: &StepState, call: &OpenCall) -> Option<u64> {
        let same = |other: &&OpenCall| {
            (&other.call, &other.tool, &other.args, other.started_at)
                == (&call.call, &call.tool, &call.args, call.started_at)
        };
        let open = open_numbers(step).zip(&step.open).filter(|(_, other)| same(other)).map(|(number, _)| number);
        let ended = (self.first_call(step)..).zip(&step.recent_tools).filter(|(_, other)| {
            (&other.call, &other.tool, &other.args, other.started_at)
                == (&call.call, &call.tool, &call.args, Some(call.started_at))
        });
        open.min_by_key(|number| number.abs_diff(OPEN + call.seq)).or_else(|| ended.map(|(number, _)| number).last())
    }

    /// The numbers of the events that began and ended a call before those that are kept.
    fn call_spots(&self, step: &StepState, number: u64) -> Option<(u64, u64)> {
        let before = self.before(step, Tab::Tools, Sieve::All)?;
        let place = usize::try_from(number.checked_sub(before.first?)?).ok().filter(|place| *place < before.len)?;
        self.older.open()?.shelf(step.id)?.call(place)
    }

    /// The files that calls of a step named, with the tool and how often it did, as far as the calls are listed.
    pub fn touched(&self, step: &'a StepState) -> impl Iterator<Item = (&'a str, &'a str, usize)> {
        let before = self.before(step, Tab::Tools, Sieve::All).map_or(0, |before| before.len);
        let id = step.id;
        let again = self.older.open().into_iter().flat_map(move |book| book.touched(id, before));
        let ended = step.recent_tools.iter().map(|call| (&call.path, &call.tool));
        let open = step.open.iter().map(|call| (&call.path, &call.tool));
        let kept = ended.chain(open).filter_map(|(path, tool)| Some((path.as_deref()?, tool.as_str(), 1)));
        again.chain(kept)
    }

    /// The numbers of the calls of a step that named a file with such a name, in the order in which they are listed.
    #[must_use]
    pub fn calls_on(&self, step: &StepState, names: impl Fn(&str) -> bool) -> Vec<u64> {
        let named = |path: &Option<String>| path.as_deref().is_some_and(&names);
        let mut numbers = Vec::new();
        if let (Some(before), Some(book)) = (self.before(step, Tab::Tools, Sieve::All), self.older.open()) {
            let first = before.first.unwrap_or_default();
            numbers.extend(book.calls_on(step.id, before.len, &names).into_iter().map(|place| first + place as u64));
        }
        let ended = (self.first_call(step)..).zip(&step.recent_tools).filter(|(_, call)| named(&call.path));
        numbers.extend(ended.map(|(number, _)| number));
        numbers
            .extend(open_numbers(step).zip(&step.open).filter(|(_, call)| named(&call.path)).map(|(number, _)| number));
        numbers
    }

    /// The numbers of the calls that named a file, by whatever name.
    #[must_use]
    pub fn calls_on_file(&self, step: &StepState, path: &SafeText) -> Vec<u64> {
        self.calls_on(step, |name| same_file(path.as_str(), SafeText::line(name).as_str()))
    }

    /// The events that have to be at hand for these calls.
    #[must_use]
    pub fn calls_need(&self, step: &StepState, numbers: &[u64]) -> Vec<u64> {
        numbers.iter().filter_map(|number| self.call_spots(step, *number)).flat_map(|(a, b)| [a, b]).collect()
    }

    /// What was said under a number.
    #[must_use]
    pub fn said(&self, step: StepId, number: u64) -> Option<Cow<'a, Said>> {
        let ring = self.history.said.get(&step);
        let kept = ring.and_then(|ring| ring.get(ring.partition_point(|said| said.seq < number)));
        match kept.filter(|said| said.seq == number) {
            Some(said) => Some(Cow::Borrowed(said)),
            None => self.older.said(step, number).map(Cow::Owned),
        }
    }

    /// Where the record is of something that was read again, where that says all of it.
    #[must_use]
    pub fn record(&self, number: u64) -> Option<u64> {
        self.older.record(number)
    }

    /// What was said after a number, as far as it is at hand.
    pub fn said_after(&self, step: StepId, number: u64) -> impl Iterator<Item = Cow<'a, Said>> {
        let Entries { history, older } = *self;
        let ring = history.said.get(&step);
        let first = ring.and_then(|ring| ring.front()).map_or(u64::MAX, |said| said.seq);
        let column = older.open().and_then(|book| book.shelf(step)).map(|shelf| &shelf.said);
        let from = column.map_or(0, |column| column.before(Sieve::All, number.saturating_add(1)));
        let again = (from..).map_while(move |place| column?.number(place).filter(|number| *number < first));
        let again = again.map_while(move |number| older.said(step, number).map(Cow::Owned));
        again.chain(ring.into_iter().flatten().filter(move |said| said.seq > number).map(Cow::Borrowed))
    }

    /// What happened under a number.
    #[must_use]
    pub fn told(&self, step: StepId, number: u64) -> Option<Cow<'a, Entry>> {
        let ring = self.history.steps.get(&step);
        let kept = ring.and_then(|ring| ring.get(ring.partition_point(|entry| entry.seq < number)));
        match kept.filter(|entry| entry.seq == number) {
            Some(entry) => Some(Cow::Borrowed(entry)),
            None => self.older.told(number).map(Cow::Owned),
        }
    }

    /// The events that have to be at hand for what is listed at these places.
    #[must_use]
    pub fn needs(&self, step: &StepState, tab: Tab, listed: &Listed<'_>, places: Range<usize>) -> Vec<u64> {
        let end = places.end.min(listed.before_len());
        let numbers = (places.start..end)
            .filter_map(|place| listed.number(place))
            .filter(|number| *number != TASK || tab == Tab::Tools);
        if tab == Tab::Tools {
            return numbers.filter_map(|number| self.call_spots(step, number)).flat_map(|(a, b)| [a, b]).collect();
        }
        // The end of a call may not tell which one it was.
        numbers.flat_map(|number| [Some(number), self.older.begin_of(step.id, number)]).flatten().collect()
    }
}
