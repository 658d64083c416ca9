//! Durations, sizes, counts and money as people write and read them.

use std::time::Duration;

/// What stands for a value that is not known. Never a zero.
pub const UNKNOWN: &str = "–";

/// Why a text is not a duration or a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("{0} has no unit, write {1}")]
    NoUnit(String, &'static str),
    /// A unit that does not exist.
    #[error("unknown unit \"{0}\", use {1}")]
    UnknownUnit(String, &'static str),
    /// Not a number at all.
    #[error("not a {0}, write for example {1}")]
    NotANumber(&'static str, &'static str),
    /// Beyond what can be held.
    #[error("too large")]
    TooLarge,
}

/// Reads `250ms`, `30s`, `10m`, `1h`, `1.5h`, `1h30m`. A bare number is an error that says so.
///
/// # Errors
/// When the text is not a duration; the message says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const EXAMPLE: &str = "250ms, 30s, 10m or 1h";
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(UnitError::NotANumber("duration", EXAMPLE));
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let (number, unit, after) = split(rest).ok_or(UnitError::NotANumber("duration", EXAMPLE))?;
        total += number
            * match unit {
                "" => return Err(UnitError::NoUnit(text.trim().to_owned(), EXAMPLE)),
                "ms" => 0.001,
                "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                other => return Err(UnitError::UnknownUnit(other.to_owned(), "ms, s, m, h or d")),
            };
        rest = after;
    }
    // Ten years are more than any run and far from what a duration or a timestamp cannot hold.
    if total > 10.0 * 366.0 * 86_400.0 {
        return Err(UnitError::TooLarge);
    }
    Ok(Duration::from_millis((total * 1000.0).round() as u64))
}

/// Reads `512B`, `64KiB`, `1MiB`, `2GiB`, `10kB`, `10MB`. A bare number is an error that says so.
///
/// # Errors
/// When the text is not a size; the message says what to write.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    const EXAMPLE: &str = "512B, 64KiB or 1MiB";
    let (number, unit, after) = split(text.trim()).ok_or(UnitError::NotANumber("size", EXAMPLE))?;
    let factor: f64 = match unit {
        "" => return Err(UnitError::NoUnit(text.trim().to_owned(), EXAMPLE)),
        "B" => 1.0,
        "KiB" | "K" => 1024.0,
        "MiB" | "M" => 1024.0 * 1024.0,
        "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        other => return Err(UnitError::UnknownUnit(other.to_owned(), "B, KiB, MiB, GiB, kB, MB or GB")),
    };
    if !after.is_empty() {
        return Err(UnitError::NotANumber("size", EXAMPLE));
    }
    let size = number * factor;
    if size >= 9.0e15 { Err(UnitError::TooLarge) } else { Ok(size.round() as u64) }
}

/// The number and the unit at the start of a text, and what follows.
fn split(text: &str) -> Option<(f64, &str, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let number: f64 = number.replace('_', "").parse().ok()?;
    let rest = rest.trim_start();
    let letters = rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(letters);
    Some((number, unit, after.trim_start()))
}

/// A running clock: `0:48`, `12:41`, `1:02:03`.
#[must_use]
pub fn clock(span: Duration) -> String {
    let s = span.as_secs();
    if s < 3600 {
        format!("{}:{:02}", s / 60, s % 60)
    } else {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

/// A running clock of fixed shape: `00:12:41`.
#[must_use]
pub fn clock_long(span: Duration) -> String {
    let s = span.as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// How long something took: `0.1s`, `18.4s`, `1m04s`, `2h05m`, `3d04h`.
#[must_use]
pub fn span(span: Duration) -> String {
    let s = span.as_secs();
    match s {
        // Rounded first, so that 59.96 seconds are not "60.0s".
        0..60 if (span.as_secs_f64() * 10.0).round() < 600.0 => format!("{:.1}s", span.as_secs_f64()),
        0..60 => "1m00s".to_owned(),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

/// How long something took, for a screen: what took less than a minute to the tenth of a second, else as the clocks beside
/// it show it: `18.4s`, `12:41`.
#[must_use]
pub fn lasted(time: Duration) -> String {
    if time.as_secs_f64() < 59.95 { span(time) } else { clock(time.max(Duration::from_secs(60))) }
}

/// A time as people write it in a plan, without rounding to more than milliseconds: `250ms`, `90s`, `10m`, `2h`.
#[must_use]
pub fn written(span: Duration) -> String {
    let ms = span.as_millis();
    match ms {
        _ if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ => format!("{}s", ms / 1000),
    }
}

/// A count in few cells: `999`, `9.4k`, `412k`, `1.1M`, `3.0G`.
#[must_use]
pub fn count(n: u64) -> String {
    scaled(n, &["", "k", "M", "G", "T"], "")
}

/// A size in few cells: `512 B`, `1.2 kB`, `2.1 MB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    scaled(n, &["B", "kB", "MB", "GB", "TB"], " ")
}

fn scaled(n: u64, units: &[&str], gap: &str) -> String {
    let mut value = n as f64;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    if n < 1000 {
        return format!("{n}{gap}{unit}");
    }
    // 999.5 would be written as "1000" by rounding, so the next unit begins there.
    for next in units {
        value /= 1000.0;
        unit = next;
        if value < 999.5 {
            break;
        }
    }
    if value < 9.95 { format!("{value:.1}{gap}{unit}") } else { format!("{value:.0}{gap}{unit}") }
}

/// A number with its thousands set apart: `18,204`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// An amount of US dollars: `$0.84`, `$12.30`; below a cent `<$0.01`.
#[must_use]
pub fn cost(usd: f64) -> String {
    if usd > 0.0 && usd < 0.005 { "<$0.01".to_owned() } else { format!("${usd:.2}") }
}

/// The value, or [`UNKNOWN`].
#[must_use]
pub fn or_unknown(value: Option<String>) -> String {
    value.unwrap_or_else(|| UNKNOWN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("1h 30m", 5_400_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "30", "s", "1x", "-1s", "1h30", "99999999h", "1.2.3s", "NaNs", "infs"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration("30").unwrap_err().to_string(), "30 has no unit, write 250ms, 30s, 10m or 1h");
    }

    #[test]
    fn sizes_are_read() {
        for (text, size) in [("512B", 512), ("64KiB", 65_536), ("1MiB", 1_048_576), ("10kB", 10_000), ("1.5KiB", 1536)]
        {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "64", "KiB", "1XiB", "-1B", "99999999GiB", "1MiB2"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_and_clocks_are_written() {
        for (ms, running, took) in [
            (0, "0:00", "0.0s"),
            (1_400, "0:01", "1.4s"),
            (18_440, "0:18", "18.4s"),
            (59_960, "0:59", "1m00s"),
            (64_000, "1:04", "1m04s"),
            (761_000, "12:41", "12m41s"),
            (3_723_000, "1:02:03", "1h02m"),
            (90_000_000, "25:00:00", "1d01h"),
        ] {
            let d = Duration::from_millis(ms);
            assert_eq!((clock(d).as_str(), span(d).as_str()), (running, took));
        }
        assert_eq!(clock_long(Duration::from_secs(761)), "00:12:41");
        for (ms, text) in [(250, "250ms"), (90_000, "90s"), (90_500, "90500ms"), (5_400_000, "90m"), (7_200_000, "2h")]
        {
            assert_eq!(written(Duration::from_millis(ms)), text);
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)));
        }
    }

    #[test]
    fn counts_sizes_and_money_are_written() {
        for (n, short, size, long) in [
            (0, "0", "0 B", "0"),
            (999, "999", "999 B", "999"),
            (1_000, "1.0k", "1.0 kB", "1,000"),
            (9_400, "9.4k", "9.4 kB", "9,400"),
            (412_345, "412k", "412 kB", "412,345"),
            (999_600, "1.0M", "1.0 MB", "999,600"),
            (1_100_000, "1.1M", "1.1 MB", "1,100,000"),
        ] {
            assert_eq!((count(n).as_str(), bytes(n).as_str(), grouped(n).as_str()), (short, size, long));
        }
        assert!(!count(u64::MAX).is_empty());
        for (usd, text) in [(0.0, "$0.00"), (0.001, "<$0.01"), (0.84, "$0.84"), (12.3, "$12.30")] {
            assert_eq!(cost(usd), text);
        }
        assert_eq!(or_unknown(None), "–");
    }
}
