//! The tabs that list things: which entries there are, which are left out, and which one the keys are at.

use std::borrow::Cow;
use std::ops::Range;

use super::book::Column;
use super::history::{Entry, History, Tone};
use super::model::{Above, PaneState, Scroll, Tab, UiState};
use super::older::Older;
use super::said::Said;
use crate::run::{OpenCall, StepId, StepState, ToolCall, ToolOutcome};

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
                let all = ended.chain(step.open.iter().map(|_| false));
                let numbered = (self.first_call(step)..).zip(all);
                numbered.filter(|(_, wrong)| *wrong || !bad).map(|(number, _)| number).collect()
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
    /// stayed at one that is kept no longer, or all are asked for what they are, or none is kept.
    #[must_use]
    pub fn wanted(&self, ui: &UiState, step: &StepState) -> bool {
        let none = PaneState::default();
        let pane = ui.panes.get(&step.id).unwrap_or(&none);
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
        let Some(place) = number.checked_sub(self.first_call(step)) else {
            let spots = self.call_spots(step, number)?;
            return Some(Call::Ended(Cow::Owned(self.older.call(spots)?), Some(spots)));
        };
        let place = usize::try_from(place).ok()?;
        match step.recent_tools.get(place) {
            Some(call) => Some(Call::Ended(Cow::Borrowed(call), None)),
            None => Some(Call::Open(step.open.get(place.checked_sub(step.recent_tools.len())?)?)),
        }
    }

    /// The numbers of the events that began and ended a call before those that are kept.
    fn call_spots(&self, step: &StepState, number: u64) -> Option<(u64, u64)> {
        let before = self.before(step, Tab::Tools, Sieve::All)?;
        let place = usize::try_from(number.checked_sub(before.first?)?).ok().filter(|place| *place < before.len)?;
        self.older.open()?.shelf(step.id)?.call(place)
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
        numbers.collect()
    }
}

/// The entries of a tab before those that are kept.
#[derive(Clone, Copy, Debug)]
struct Before<'a> {
    column: &'a Column,
    sieve: Sieve,
    /// So many of those that the filter leaves.
    len: usize,
    /// The number of the first of all, where they are numbered one by one.
    first: Option<u64>,
}

impl Before<'_> {
    fn number(&self, nth: usize) -> Option<u64> {
        let place = self.column.place(self.sieve, nth).filter(|_| nth < self.len)?;
        match self.first {
            Some(first) => Some(first + place as u64),
            None => self.column.number(place),
        }
    }

    /// How many of them have a smaller number.
    fn below(&self, number: u64) -> usize {
        let below = match self.first {
            Some(first) => {
                let places = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
                self.column.among(self.sieve, places)
            }
            None => self.column.before(self.sieve, number),
        };
        below.min(self.len)
    }
}

/// What is listed of a tab, and where the keys are.
#[derive(Clone, Debug, Default)]
pub struct Listed<'a> {
    /// The task comes first.
    task: bool,
    /// Then what is read again.
    before: Option<Before<'a>>,
    /// At last the numbers of what is kept.
    kept: Vec<u64>,
    /// The place of the entry that the keys are at.
    pub at: usize,
    /// The keys stay at the newest entry.
    pub follows: bool,
    /// What is left out.
    pub sieve: Sieve,
}

impl Listed<'_> {
    /// How many entries there are before those that are kept.
    fn before_len(&self) -> usize {
        usize::from(self.task) + self.before.map_or(0, |before| before.len)
    }

    /// How many entries are listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before_len() + self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the entry at a place; the oldest is at 0.
    #[must_use]
    pub fn number(&self, place: usize) -> Option<u64> {
        if let Some(nth) = place.checked_sub(self.before_len()) {
            return self.kept.get(nth).copied();
        }
        match place.checked_sub(usize::from(self.task)) {
            Some(nth) => self.before?.number(nth),
            None => Some(TASK),
        }
    }

    /// The number of the newest entry.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.number(self.len().checked_sub(1)?)
    }

    /// The place of the first entry whose number is not smaller than this one.
    #[must_use]
    pub fn place(&self, number: u64) -> usize {
        let task = usize::from(self.task && number > TASK);
        let before = self.before.map_or(0, |before| before.below(number));
        task + before + self.kept.partition_point(|kept| *kept < number)
    }
}

/// Moves the keys among the entries of the tab that a step shows; at the end they follow. Where they go before the entries
/// that are kept, it is noted how far.
pub fn scroll(ui: &mut UiState, step: &StepState, entries: Entries<'_>, scroll: Scroll) {
    let listed = entries.listed(ui, step);
    let page = isize::try_from(ui.size.1.saturating_sub(6).max(2)).unwrap_or(10);
    let by = match scroll {
        Scroll::Rows(n) => n as isize,
        Scroll::Halves(n) => n as isize * (page / 2).max(1),
        Scroll::Pages(n) => n as isize * page,
        Scroll::Start => isize::MIN,
        Scroll::End => isize::MAX,
        Scroll::To(_) => 0,
    };
    let tab = ui.tab(step.id);
    // Who goes on upwards while what is there is still read goes on from where the keys will be.
    let waits =
        ui.above.filter(|above| (above.step, above.tab) == (step.id, tab) && by < 0).map_or(0, |above| above.by);
    let beyond = (waits.saturating_add(by)).saturating_add_unsigned(listed.at);
    let unread = beyond < 0 && entries.earlier(step, tab) == Earlier::Unread;
    ui.above = listed.number(0).filter(|_| unread).map(|first| Above { step: step.id, tab, first, by: beyond });
    go_to(ui, step, &listed, listed.at.saturating_add_signed(by), by < 0);
}

/// What was gone to before the entries that were kept was read: the keys go there.
pub fn arrive(ui: &mut UiState, step: &StepState, entries: Entries<'_>, above: Above) {
    let listed = entries.listed(ui, step);
    go_to(ui, step, &listed, listed.place(above.first).saturating_add_signed(above.by), true);
}

fn go_to(ui: &mut UiState, step: &StepState, listed: &Listed<'_>, to: usize, back: bool) {
    let to = to.min(listed.len());
    let pane = ui.pane_mut(step.id);
    match listed.number(to) {
        Some(number) if to + 1 < listed.len() || listed.len() == 1 && back => {
            pane.cursor.insert(pane.tab, number);
        }
        _ => {
            pane.cursor.remove(&pane.tab);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::StepId;

    fn places(stage: &Stage) -> Listed<'_> {
        stage.entries().listed(&stage.ui, stage.feed.state.step(StepId(2)).unwrap())
    }

    #[test]
    fn the_keys_stay_at_an_entry_while_others_come_and_follow_again_at_the_end() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2kk");
        let before = places(&stage);
        assert_eq!((before.len(), before.at, before.follows), (4, 1, false));
        let at = before.number(1).unwrap();
        let step = &mut stage.feed.state.steps[2];
        let call = step.recent_tools[0].clone();
        step.recent_tools.push_back(call);
        step.tool_count += 1;
        let after = places(&stage);
        assert_eq!((after.len(), after.number(after.at)), (5, Some(at)));
        // The oldest call is kept no longer.
        stage.feed.state.steps[2].recent_tools.drain(..2);
        assert_eq!(places(&stage).at, 0);
        stage.keys("jjjjjj");
        assert!(places(&stage).follows);
        stage.keys("gG");
        assert!(places(&stage).follows);
    }

    #[test]
    fn a_filter_leaves_what_it_says() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2&");
        assert_eq!((places(&stage).len(), places(&stage).sieve), (1, Sieve::Errors));
        stage.keys("&3");
        let all = places(&stage).len();
        stage.keys("&");
        assert_eq!((all, places(&stage).len(), places(&stage).sieve), (5, 3, Sieve::Text));
        stage.keys("&");
        assert_eq!((places(&stage).len(), places(&stage).sieve), (0, Sieve::Errors));
        stage.keys("&");
        assert_eq!(places(&stage).sieve, Sieve::All);
    }
}
