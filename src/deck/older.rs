//! What happened before everything that is kept: read from the recording when somebody goes there. An index of it is made in
//! slices between two looks at the keys; what an entry says is read again when it comes into sight.

use std::collections::BTreeMap;

use super::book::Book;
use super::history::{Entry, tell};
use super::said::{Called, Said, is_nameless, said};
use crate::run::replay::{Recorded, Spot, Tape};
use crate::run::{AgentEvent, Event, RunState, StepId, ToolCall, ToolOutcome, What};

/// As much of a recording is read at once for an entry that comes into sight, in bytes; what stands behind it in there most
/// often comes into sight with it.
const PAGE: u64 = 32 * 1024;
/// As many records are kept at most of those that were in sight.
const KEPT: usize = 2000;

/// The older entries of a run, as far as anybody asked for them.
#[derive(Default)]
pub struct Older {
    stage: Stage,
    /// Records that were in sight, by their places; an empty one could not be read.
    pages: BTreeMap<u64, Vec<Recorded>>,
    nobody: RunState,
    /// How often the recording became another one.
    generation: u64,
}

#[derive(Default)]
enum Stage {
    /// Nobody asked for them.
    #[default]
    Closed,
    /// The index is made: up to here.
    Reading { tape: Box<dyn Tape>, book: Box<Book>, next: u64 },
    /// The index has everything.
    Open { tape: Box<dyn Tape>, book: Box<Book> },
    /// There is too much for an index, or the recording goes on in another way than it began.
    Beyond,
}

impl std::fmt::Debug for Older {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Older").field("book", &self.book()).field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl Older {
    /// Begins to read a recording, unless that was begun.
    pub fn begin(&mut self, tape: impl FnOnce() -> Box<dyn Tape>) {
        if let Stage::Closed = self.stage {
            let tape = tape();
            let book = Box::new(Book::new(tape.beginning()));
            self.stage = Stage::Reading { tape, book, next: 0 };
        }
    }

    /// Forgets everything: the recording is another one.
    pub fn forget(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    /// How often the recording became another one: what was read before tells nothing about it.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Reads about so many bytes more. Whether there are more after these.
    pub fn read_on(&mut self, most: u64) -> bool {
        let Stage::Reading { mut tape, mut book, next } = std::mem::take(&mut self.stage) else { return false };
        let piece = tape.read(next, most);
        let fits = piece.events.iter().all(|recorded| book.take(recorded));
        self.stage = match piece.next {
            _ if !fits || tape.is_cut() => Stage::Beyond,
            Some(next) => Stage::Reading { tape, book, next },
            None => Stage::Open { tape, book },
        };
        matches!(self.stage, Stage::Reading { .. })
    }

    /// How much was read, in per cent, while there is more.
    #[must_use]
    pub fn reading(&self) -> Option<u8> {
        let Stage::Reading { tape, next, .. } = &self.stage else { return None };
        u8::try_from(next.saturating_mul(100) / tape.len().max(1)).ok().map(|percent| percent.min(99))
    }

    /// Whether there is no index yet, and one may be made.
    #[must_use]
    pub const fn may_open(&self) -> bool {
        matches!(self.stage, Stage::Closed | Stage::Reading { .. })
    }

    /// The index, once it has everything.
    #[must_use]
    pub fn open(&self) -> Option<&Book> {
        if let Stage::Open { book, .. } = &self.stage { Some(book) } else { None }
    }

    fn book(&self) -> Option<&Book> {
        match &self.stage {
            Stage::Reading { book, .. } | Stage::Open { book, .. } => Some(book),
            Stage::Closed | Stage::Beyond => None,
        }
    }

    /// Notes what has just happened. While the index is made it comes from the recording.
    pub fn add(&mut self, events: &[Event], spots: &[Spot]) {
        let Stage::Open { book, .. } = &mut self.stage else { return };
        for (event, spot) in events.iter().zip(spots) {
            let Some(number) = spot.number else { continue };
            let (place, nth) = Spot::place(number);
            if !book.take(&Recorded { event: event.clone(), place, nth, record: spot.record }) {
                self.stage = Stage::Beyond;
                return;
            }
        }
    }

    /// Has the records of these events at hand. Those of earlier sights may be let go of.
    pub fn fetch(&mut self, numbers: &[u64]) {
        let Stage::Open { tape, .. } = &mut self.stage else { return };
        let missing = |number: &u64| !self.pages.contains_key(&Spot::place(*number).0);
        if self.pages.len() > KEPT && numbers.iter().any(missing) {
            self.pages.clear();
        }
        for number in numbers {
            let (place, _) = Spot::place(*number);
            if self.pages.contains_key(&place) {
                continue;
            }
            for recorded in tape.read(place, PAGE).events {
                let page = self.pages.entry(recorded.place).or_default();
                // A record that was read before is given again from its beginning.
                if page.len() as u64 == recorded.nth {
                    page.push(recorded);
                }
            }
            self.pages.entry(place).or_default();
        }
    }

    /// What happened, and where its record is.
    fn recorded(&self, number: u64) -> Option<&Recorded> {
        let (place, nth) = Spot::place(number);
        self.pages.get(&place)?.iter().find(|recorded| recorded.nth == nth)
    }

    /// Where the record of an event is that is at hand, unless the event says more than that.
    #[must_use]
    pub fn record(&self, number: u64) -> Option<u64> {
        let recorded = self.recorded(number)?;
        let failed =
            matches!(recorded.event.what, What::Agent { event: AgentEvent::Message { error: Some(_), .. }, .. });
        recorded.record.filter(|_| !failed)
    }

    /// What an event says in a line; `None` where its record is not at hand or cannot be read.
    #[must_use]
    pub fn told(&self, number: u64) -> Option<Entry> {
        let recorded = self.recorded(number)?;
        let kept = self.open().and_then(|book| book.told(number)).cloned();
        let entry = kept.or_else(|| tell(&self.nobody, &recorded.event))?;
        let entry = Entry { seq: number, place: recorded.record, ..entry };
        Some(entry.naming(&recorded.event, self.called(recorded, number)))
    }

    /// The number of the event that began the call which an event ended.
    #[must_use]
    pub fn begin_of(&self, step: StepId, end: u64) -> Option<u64> {
        let shelf = self.open()?.shelf(step)?;
        let place = shelf.calls.place_of(end)?;
        shelf.call(place).map(|(begin, _)| begin)
    }

    /// The call that an event ended, where the event itself does not tell which one it was.
    fn called(&self, recorded: &Recorded, number: u64) -> Option<Called<'_>> {
        let What::Agent { step, event } = &recorded.event.what else { return None };
        if !is_nameless(event) {
            return None;
        }
        let begin = &self.recorded(self.begin_of(*step, number)?)?.event;
        let What::Agent { event: AgentEvent::ToolStarted { tool, args, .. }, .. } = &begin.what else { return None };
        Some(Called { tool, args })
    }

    /// What was said; `None` where its record is not at hand or cannot be read.
    #[must_use]
    pub fn said(&self, step: StepId, number: u64) -> Option<Said> {
        let recorded = self.recorded(number)?;
        let What::Agent { step: of, event } = &recorded.event.what else { return None };
        let kept = self.open().and_then(|book| book.said(number)).cloned();
        let what = kept.or_else(|| said(&self.nobody, step, event)).filter(|_| *of == step)?;
        let what = what.naming(self.called(recorded, number));
        Some(Said { seq: number, at: recorded.event.at, place: recorded.record, what })
    }

    /// The call that these two events began and ended; `None` where a record is not at hand or cannot be read.
    #[must_use]
    pub fn call(&self, (begin, end): (u64, u64)) -> Option<ToolCall> {
        let begin = &self.recorded(begin)?.event;
        let What::Agent { event: AgentEvent::ToolStarted { call, tool, args, path, .. }, .. } = &begin.what else {
            return None;
        };
        let end = &self.recorded(end)?.event;
        let (outcome, preview) = match &end.what {
            What::Agent { event: AgentEvent::ToolEnded { outcome, preview, .. }, .. } => (*outcome, preview.clone()),
            // What ended was the step.
            _ => (ToolOutcome::Lost, String::new()),
        };
        Some(ToolCall {
            call: call.clone(),
            tool: tool.clone(),
            args: args.clone(),
            path: path.clone(),
            started_at: Some(begin.at),
            ended_at: end.at,
            outcome: Some(outcome),
            preview,
        })
    }
}

#[cfg(test)]
mod tests;
