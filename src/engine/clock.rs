//! The one place that reads the wall clock for events.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::Timestamp;

/// Now.
#[must_use]
pub fn now() -> Timestamp {
    let span = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}
