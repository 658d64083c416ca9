//! Tests that need several documents of this room at once.

mod documents;
mod following;
mod round_trip;
