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
    /// Where its record begins in the event log; `None` for what stands in another file.
    pub record: Option<u64>,
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
