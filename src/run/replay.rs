//! Playing a run again from its events: where they lie in time, which of them stand out, and a place that moves over
//! them. The state at a place is that of [`super::reduce`] over the events before it, and of nothing else.
//!
//! Pure: the wall clock is an argument, and the events come from a [`Tape`].

mod cursor;
mod keeps;
mod tape;
mod timeline;

pub use cursor::{Cursor, SPEEDS, Step};
pub use keeps::Keeps;
pub use tape::{Piece, Recorded, Spot, Tape};
pub use timeline::{IDLE, MarkKind, Timeline};
