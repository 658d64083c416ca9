//! Safe text, display widths, ANSI to styles, human units.
//!
//! Owns the one way in which bytes that somebody else wrote become displayable: [`SafeText`] for names, messages and
//! arguments, [`Sanitizer`] for streams of lines, [`StyledLine`] for a line of a log with its colours; and
//! [`Bare`], which a search compares and nobody displays. Never prints,
//! never knows a terminal, never depends on another room.

mod ansi;
mod bare;
mod safe;
mod scan;
mod secret;
mod shell;
mod stream;
mod units;
pub mod when;

pub use ansi::{Ansi, Run, Style, StyledLine};
pub use bare::Bare;
#[cfg(test)]
pub(crate) use safe::MADE;
pub use safe::{SafeText, is_plain, typed, width};
pub use secret::{REDACTED, SecretLines, masked_lines, redact, secrets};
pub use shell::quoted;
pub use stream::Sanitizer;
pub use units::{
    UNKNOWN, UnitError, bytes, clock, clock_long, cost, count, grouped, lasted, or_unknown, parse_duration, parse_size,
    span, written,
};

/// The longest beginning of `text` that has at most `most` bytes and ends between two characters. What it gives is as
/// safe or unsafe as `text` is.
#[must_use]
pub fn prefix(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}
