//! Moments as a person of a time zone has them. A moment is microseconds since the Unix epoch.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

use super::UNKNOWN;

fn zoned(micros: i64, zone: &TimeZone) -> Option<ZonedDateTime> {
    Timestamp::from_microsecond(micros).ok().map(|at| at.to_zoned_datetime(zone.clone()))
}

/// The day of a moment, `2026-11-29`.
#[must_use]
pub fn day(micros: i64, zone: &TimeZone) -> String {
    zoned(micros, zone).map_or_else(|| UNKNOWN.to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
}

/// The day and the time of a moment, `2026-11-29 12:40:51`.
#[must_use]
pub fn moment(micros: i64, zone: &TimeZone) -> String {
    zoned(micros, zone).map_or_else(|| UNKNOWN.to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// When the day of a moment began.
#[must_use]
pub fn midnight(micros: i64, zone: &TimeZone) -> i64 {
    let day = zoned(micros, zone).and_then(|at| at.start_of_day().ok());
    day.map_or(0, |day| day.timestamp().as_microsecond())
}

/// When the day after that of a moment begins.
#[must_use]
pub fn next_midnight(micros: i64, zone: &TimeZone) -> i64 {
    // No day is as long as 36 hours, and none as short as 12.
    let hours = |n: i64| n * 3_600_000_000;
    let next = midnight(midnight(micros, zone).saturating_add(hours(36)), zone);
    if next > micros { next } else { micros.saturating_add(hours(24)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_of_its_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = 1_764_455_400_000_000; // 2025-11-29 22:30 UTC
        assert_eq!((day(at, &zone).as_str(), moment(at, &zone).as_str()), ("2025-11-30", "2025-11-30 00:30:00"));
        assert_eq!(at - midnight(at, &zone), 30 * 60 * 1_000_000);
        assert_eq!(next_midnight(at, &zone) - at, (23 * 60 + 30) * 60 * 1_000_000);
        assert_eq!((day(i64::MAX, &zone).as_str(), midnight(i64::MAX, &zone)), (UNKNOWN, 0));
    }
}
