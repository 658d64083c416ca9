//! A finished run that plays again: what the picture shows of it, and the player that brings the run to any place of it.
//!
//! Nothing is decided and nothing is written. The state is that of the one reducer over the events until then (law 2).

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
        let places: &[u64] = recorded.record.as_slice();
        self.history.add(&self.state, std::slice::from_ref(&recorded.event), places);
    }

    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        self.state.steps.len() * 2_048 + self.history.entries() * 192 + 4_096
    }
}

/// As many bytes are read between two looks at the keys.
const SLICE: u64 = 1024 * 1024;
/// As many bytes are read at once on the way to a place.
const AHEAD: u64 = 64 * 1024;
/// All that is kept on the way takes about as many bytes.
const KEPT: usize = 24 * 1024 * 1024;
/// As many moments are kept at most.
const KEPT_MOST: usize = 128;
/// So many events before a place another moment is kept, for who goes back from there step by step.
const NEAR: usize = 64;

/// Brings a run to any place of its events.
pub(super) struct Player {
    tape: Box<dyn Tape>,
    keeps: Keeps<Known>,
    /// A moment a little before where it is.
    near: Option<(usize, Known)>,
    /// Where it is, after so many events.
    now: Known,
    events: usize,
    /// While the tape is read for the first time: where the next part begins, and the run at the end of what was read.
    loading: Option<(u64, Known)>,
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
        let mut keeps = Keeps::default();
        keeps.keep(0, beginning.clone(), 1);
        Self {
            tape,
            keeps,
            near: None,
            now: beginning.clone(),
            events: 0,
            loading: Some((0, beginning)),
            ahead: Ahead::default(),
        }
    }

    /// The run where it is.
    pub(super) const fn now(&self) -> &Known {
        &self.now
    }

    /// Reads the next part of the tape. When it has been read to its end, the replay stands at its first event.
    pub(super) fn load(&mut self, replay: &mut Replay) {
        let Some((place, mut known)) = self.loading.take() else { return };
        let mut piece = self.tape.read(place, SLICE);
        for recorded in &piece.events {
            if !replay.line.push(&recorded.event, recorded.place) {
                (replay.cut, piece.next) = (true, None);
                break;
            }
            known.take(recorded);
            let events = replay.line.len();
            if self.keeps.wants(events) {
                let most = (KEPT / known.weight()).min(KEPT_MOST);
                self.keeps.keep(events, known.clone(), most);
            }
        }
        match piece.next {
            Some(next) => {
                replay.reading = Some(percent(next, self.tape.len()));
                self.loading = Some((next, known));
            }
            None => {
                replay.reading = None;
                replay.cursor.seek(&replay.line, std::time::Duration::ZERO);
            }
        }
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
        let mut from = match self.ahead.next {
            Some(next) if self.ahead.end() == number => (number, next),
            _ => line.place(number),
        };
        loop {
            let piece = self.tape.read(from.1, AHEAD);
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
