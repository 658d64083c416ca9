//! What looks like a key, a token or a password in a text, so that it can be left out of what is shown and given away.
//!
//! It goes by shape: prefixes that issuers put in front of their keys, and values that a name in front of them calls
//! secret. It is a help against carelessness and no proof: a secret without a shape is not known by it.

mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use super::ansi::StyledLine;
use super::safe::SafeText;
use shapes::merged;
pub use shapes::secrets;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// What stands for each character of a secret where the width of a text is to stay.
const MASK: char = '*';

/// How long the lines of a private key are, but for the last.
const BODY_LEAST: usize = 60;
const BODY_MOST: usize = 80;

/// The lines of a text that is looked at one by one, for secrets that have several: private keys. One for a text whose
/// start is not known works too, as long as its lines have the usual length.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecretLines {
    /// The last line was of a private key, or began one.
    inside: bool,
    /// The last line looked like one of a key.
    body: bool,
}

impl SecretLines {
    /// Where secrets are in the next line, as [`secrets`] tells it.
    pub fn next(&mut self, line: &str) -> Vec<Range<usize>> {
        let mut found = secrets(line);
        let begin = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        let bytes = trimmed.as_bytes();
        let whole = begin..begin + trimmed.len();
        let base64 = bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
        let has = |class: fn(&u8) -> bool| bytes.iter().any(class);
        let body = base64
            && (BODY_LEAST..=BODY_MOST).contains(&bytes.len())
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit);
        if base64 && !trimmed.is_empty() && (self.inside || self.body || body) {
            found.push(whole);
        }
        // A key has no other lines than these, and headers with a colon; behind anything else nothing is masked.
        let header = trimmed.split_once(": ").is_some_and(|(name, _)| matches!(name, "Proc-Type" | "DEK-Info"));
        self.inside = match line.rfind("-----BEGIN ") {
            Some(at) => {
                line.get(at..).is_some_and(|rest| rest.contains("PRIVATE KEY-----") && !rest.contains("-----END "))
            }
            None => self.inside && (base64 || header),
        };
        self.body = body;
        merged(found)
    }

    /// The next line with [`REDACTED`] where secrets were.
    pub fn redact<'t>(&mut self, line: &'t str) -> Cow<'t, str> {
        without(line, self.next(line))
    }
}

/// A text of several lines with a mask over what looks like a secret, for people to read.
#[must_use]
pub fn masked_lines(text: &str) -> Cow<'_, str> {
    let mut above = SecretLines::default();
    let mut begin = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let here = above.next(line.trim_end_matches('\n'));
        found.extend(here.into_iter().map(|range| begin + range.start..begin + range.end));
        begin += line.len();
    }
    if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked(text, 0, &found)) }
}

/// The text with [`REDACTED`] where secrets were.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    without(text, secrets(text))
}

fn without(text: &str, found: Vec<Range<usize>>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for range in found {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(REDACTED);
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

impl SafeText {
    /// The text with a mask over what looks like a secret, character by character.
    #[must_use]
    pub fn masked(&self) -> Self {
        let found = secrets(self.as_str());
        if found.is_empty() { self.clone() } else { Self::trusted(masked(self.as_str(), 0, &found)) }
    }

    /// The same for the next of several lines, of which a secret may have more than one.
    #[must_use]
    pub fn masked_below(&self, lines: &mut SecretLines) -> Self {
        let found = lines.next(self.as_str());
        if found.is_empty() { self.clone() } else { Self::trusted(masked(self.as_str(), 0, &found)) }
    }
}

impl StyledLine {
    /// Puts a mask over what looks like a secret, also where its characters differ in style. `lines` are those that stand
    /// above it.
    pub fn mask(&mut self, lines: &mut SecretLines) {
        let text = match self.runs.as_slice() {
            [] => Cow::Borrowed(""),
            [only] => Cow::Borrowed(only.text.as_str()),
            runs => Cow::Owned(runs.iter().map(|run| run.text.as_str()).collect::<String>()),
        };
        let found = lines.next(&text);
        if found.is_empty() {
            return;
        }
        let mut begin = 0;
        for run in &mut self.runs {
            let len = run.text.as_str().len();
            run.text = SafeText::trusted(masked(run.text.as_str(), begin, &found));
            begin += len;
        }
    }
}

/// A part of a text that begins at `begin` of the whole, with a mask over the ranges of the whole.
fn masked(part: &str, begin: usize, found: &[Range<usize>]) -> String {
    let hidden = |at: usize| found.iter().any(|range| range.contains(&(begin + at)));
    part.char_indices().map(|(at, ch)| if hidden(at) { MASK } else { ch }).collect()
}
