//! Tests that need several documents of this room at once.

mod documents;
mod round_trip;
