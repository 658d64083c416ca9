//! The one place that reads the wall clock for events.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::Timestamp;

/// Now, in whole milliseconds, as files hold them.
#[must_use]
pub fn now() -> Timestamp {
    let span = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}
