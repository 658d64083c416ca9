//! Where the events of a run come from when it is played again.

use crate::run::{Event, RunState};

/// An event as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What happened.
    pub event: Event,
    /// Where the tape can be read again from: the first event that is given then is this one, or one that was recorded
    /// in the same record before it.
    pub place: u64,
    /// How many events of the same record stand before it there.
    pub nth: u64,
    /// Where its record begins in the event log; `None` for what stands in another file.
    pub record: Option<u64>,
}

impl Recorded {
    /// Where it stands.
    #[must_use]
    pub const fn spot(&self) -> Spot {
        Spot { number: Some(Spot::number(self.place, self.nth)), record: self.record }
    }
}

/// Where an event stands in what was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Its number: whoever reads the same recording gives it the same one, and what was recorded later has a larger one.
    /// Never 0. `None` for what stands in no recording that can be read again in this order.
    pub number: Option<u64>,
    /// Where its record begins in the event log, where it has one there.
    pub record: Option<u64>,
}

/// Bits of a number that tell events of one record apart.
const OF_ONE_RECORD: u32 = 12;

impl Spot {
    /// The spot of the n-th event of the record that begins at this place of the event log.
    #[must_use]
    pub const fn of(record: u64, nth: u64) -> Self {
        Self { number: Some(Self::number(record, nth)), record: Some(record) }
    }

    /// What stands in no recording that could be read again in this order; `record` is where its record is.
    #[must_use]
    pub const fn loose(record: Option<u64>) -> Self {
        Self { number: None, record }
    }

    const fn number(place: u64, nth: u64) -> u64 {
        let most = (1 << OF_ONE_RECORD) - 1;
        ((place << OF_ONE_RECORD) | if nth > most { most } else { nth }) + 1
    }

    /// From which place on a tape gives the event with this number, and how many of that place it gives before it.
    #[must_use]
    pub const fn place(number: u64) -> (u64, u64) {
        let at = number.saturating_sub(1);
        (at >> OF_ONE_RECORD, at & ((1 << OF_ONE_RECORD) - 1))
    }
}

/// A part of a tape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// The events, in the order in which they were recorded.
    pub events: Vec<Recorded>,
    /// Where the next part begins; `None` at the end of the tape.
    pub next: Option<u64>,
}

/// The events of a run, to be read from any place that was given before.
pub trait Tape: Send {
    /// What is known before the first event.
    fn beginning(&self) -> RunState;

    /// The events from a place on, in about `most` bytes; 0 is the beginning. A record is given whole, so one that is longer
    /// is given all the same.
    fn read(&mut self, place: u64, most: u64) -> Piece;

    /// How long it is, in the unit of its places, as far as that is known before it was read.
    fn len(&self) -> u64;

    /// Whether there is more than it gives; known once it was read to its end.
    fn is_cut(&self) -> bool {
        false
    }

    /// Whether nothing was recorded.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
