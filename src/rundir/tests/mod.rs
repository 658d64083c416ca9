//! Tests that need several documents of this room at once.

mod documents;
mod ends;
mod following;
mod replaying;
mod round_trip;
