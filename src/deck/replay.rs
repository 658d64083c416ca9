//! A finished run that plays again: what the picture shows of it, and the player that brings the run to any place of it.
//!
//! Nothing is decided and nothing is written. The state is that of the one reducer over the events until then (law 2).

mod loading;

pub(super) use loading::ASK;
use loading::{Loading, Progress};

use super::history::History;
use crate::run::replay::{Cursor, Keeps, Recorded, Tape, Timeline};
use crate::run::{RunState, Timestamp, reduce};

/// What the picture shows of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// When what happened.
    pub line: Timeline,
    /// Where it is.
    pub cursor: Cursor,
    /// How much of the events was read, in per cent, while there is more; it stands at the beginning until then.
    pub reading: Option<u8>,
    /// There were more events than can be played.
    pub cut: bool,
}

impl Replay {
    /// What the clock showed where it is.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.line.clock(self.cursor.at(), self.cursor.events())
    }
}

/// A run at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) state: RunState,
    pub(super) history: History,
}

impl Known {
    fn take(&mut self, recorded: &Recorded) {
        reduce(&mut self.state, &recorded.event);
        self.history.add(&self.state, std::slice::from_ref(&recorded.event), &[recorded.spot()]);
    }

    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        self.state.steps.len() * 2_048 + self.history.weight() + 4_096
    }
}

/// As many bytes are read at once on the way to a place.
const AHEAD: u64 = 64 * 1024;
/// So many events before a place another moment is kept, for who goes back from there step by step.
const NEAR: usize = 64;

/// Brings a run to any place of its events.
pub(super) struct Player {
    /// Not there while it is read for the first time.
    tape: Option<Box<dyn Tape>>,
    keeps: Keeps<Known>,
    /// A moment a little before where it is.
    near: Option<(usize, Known)>,
    /// Where it is, after so many events.
    now: Known,
    events: usize,
    /// While the tape is read for the first time.
    loading: Option<Loading>,
    ahead: Ahead,
}

/// Events that were read together.
#[derive(Default)]
struct Ahead {
    /// The number of the first one.
    first: usize,
    events: Vec<Recorded>,
    /// Where the next part begins.
    next: Option<u64>,
}

impl Ahead {
    fn end(&self) -> usize {
        self.first + self.events.len()
    }

    fn get(&self, number: usize) -> Option<&Recorded> {
        self.events.get(number.checked_sub(self.first)?)
    }
}

impl Player {
    pub(super) fn new(tape: Box<dyn Tape>) -> Self {
        let beginning = Known { state: tape.beginning(), history: History::default() };
        Self {
            tape: None,
            keeps: Keeps::default(),
            near: None,
            now: beginning.clone(),
            events: 0,
            loading: Some(Loading::begin(tape, beginning)),
            ahead: Ahead::default(),
        }
    }

    /// The run where it is.
    pub(super) const fn now(&self) -> &Known {
        &self.now
    }

    /// Asks how far the first reading is. When it has come to the end, the replay stands at its first event.
    pub(super) fn load(&mut self, replay: &mut Replay) {
        let Some(loading) = &self.loading else { return };
        match loading.progress() {
            Progress::Reading(percent) => {
                replay.reading = Some(percent);
                return;
            }
            Progress::Done(loaded) => {
                (self.tape, self.keeps) = (Some(loaded.tape), loaded.keeps);
                (replay.line, replay.cut) = (loaded.line, loaded.cut);
            }
            Progress::BrokenOff => replay.cut = true,
        }
        (self.loading, replay.reading) = (None, None);
        replay.cursor.seek_events(&replay.line, 0);
    }

    /// Goes to where so many events have happened. Whether the run is another there.
    pub(super) fn seek(&mut self, line: &Timeline, events: usize) -> bool {
        if events == self.events {
            return false;
        }
        let before = self.events;
        let kept = self.keeps.before(events);
        let near = self.near.as_ref().filter(|(at, _)| *at <= events).map(|(at, known)| (*at, known));
        let from = [kept, near].into_iter().flatten().max_by_key(|(at, _)| *at);
        if let Some((at, known)) = from.filter(|(at, _)| events < self.events || *at > self.events) {
            self.now = known.clone();
            self.events = at;
        }
        while self.events < events {
            let number = self.events;
            if !self.reach(line, number) {
                // Its log is not there any more.
                break;
            }
            let Some(recorded) = self.ahead.get(number) else { break };
            self.now.take(recorded);
            self.events += 1;
            if events - self.events == NEAR && events < before {
                self.near = Some((self.events, self.now.clone()));
            }
        }
        true
    }

    /// Has the event with this number among those that were read ahead. Whether it is there.
    fn reach(&mut self, line: &Timeline, number: usize) -> bool {
        if self.ahead.get(number).is_some() {
            return true;
        }
        let Some(tape) = &mut self.tape else { return false };
        let mut from = match self.ahead.next {
            Some(next) if self.ahead.end() == number => (number, next),
            _ => line.place(number),
        };
        loop {
            let piece = tape.read(from.1, AHEAD);
            self.ahead = Ahead { first: from.0, events: piece.events, next: piece.next };
            if self.ahead.get(number).is_some() {
                return true;
            }
            match self.ahead.next {
                Some(next) if !self.ahead.events.is_empty() => from = (self.ahead.end(), next),
                _ => return false,
            }
        }
    }
}

fn percent(part: u64, of: u64) -> u8 {
    u8::try_from(part.saturating_mul(100) / of.max(1)).unwrap_or(99).min(99)
}

#[cfg(test)]
mod tests;
