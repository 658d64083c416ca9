//! [`SafeText`]: one line that a terminal can be given.

use std::fmt;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::scan::{Control, Scanner, Sink, is_printable};

/// How far apart tab stops are.
pub(super) const TAB: usize = 8;

/// The number of terminal cells that a text takes; ambiguous characters take one.
#[must_use]
pub fn width(text: &str) -> usize {
    if is_printable(text.as_bytes()) { text.len() } else { text.width() }
}

/// What a person typed or pasted, for a field of several lines: its lines, without what is no text.
#[must_use]
pub fn typed(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

/// Whether a text is printable ASCII throughout: safe as it is, and each byte of it a cell.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    // Most of what is drawn is short: a look at each byte is cheaper than one at whole blocks of them.
    text.bytes().all(|b| matches!(b, b' '..=b'~'))
}

#[cfg(test)]
thread_local! {
    /// How many lines were cleaned on this thread: what a test of a picture's cost counts.
    pub(crate) static MADE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One line of text that cannot drive a terminal: no controls, no escape sequences and no bodies of them, nothing that
/// changes the direction of text, tabs expanded. Where such a thing stood in a text that is meant to be one line (a name,
/// a message) there is a [`SafeText::REMOVED`], so that two names which are not the same never look the same by it;
/// colours leave no trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafeText(String);

impl SafeText {
    /// Stands for what was taken out and for bytes that are no text.
    pub const REMOVED: char = char::REPLACEMENT_CHARACTER;

    /// Cleans a text that is meant to be one line. Newlines, carriage returns and tabs become spaces, so that nothing
    /// of the text can be hidden behind a restart of the line.
    #[must_use]
    pub fn line(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    /// Like [`SafeText::line`], for bytes; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        #[cfg(test)]
        MADE.with(|made| made.set(made.get() + 1));
        // Most names and messages are plain, and the check is much cheaper than the scanner.
        if is_printable(bytes) {
            return Self(String::from_utf8_lossy(bytes).into_owned());
        }
        let mut sink = OneLine { out: String::with_capacity(bytes.len()), gap: false };
        let mut scanner = Scanner::default();
        scanner.push(bytes, &mut sink);
        scanner.finish(&mut sink);
        Self(sink.out)
    }

    /// Cleans a text of several lines, one entry a line. A newline at the end makes no empty line.
    #[must_use]
    pub fn block(text: &str) -> Vec<Self> {
        text.lines().map(Self::line).collect()
    }

    /// Of what [`super::scan`] let through. Only this room can promise that.
    pub(super) fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These bytes of it; nothing where they do not begin and end with a character.
    #[must_use]
    pub fn part(&self, bytes: Range<usize>) -> Self {
        Self(self.0.get(bytes).unwrap_or_default().to_owned())
    }

    /// How many terminal cells it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.0.width()
    }

    /// The beginning of the text in at most `cells` cells, with an ellipsis as its last cell where something is
    /// missing.
    #[must_use]
    pub fn truncate(&self, cells: usize) -> Self {
        if self.width() <= cells {
            return self.clone();
        }
        let Some(room) = cells.checked_sub(1) else {
            return Self::default();
        };
        let mut out = String::new();
        let mut used = 0;
        for cluster in self.0.graphemes(true) {
            used += cluster.width();
            if used > room {
                break;
            }
            out.push_str(cluster);
        }
        out.push('…');
        Self(out)
    }

    /// The end of the text in at most `cells` cells, with an ellipsis as its first cell where something is missing;
    /// for paths.
    #[must_use]
    pub fn truncate_start(&self, cells: usize) -> Self {
        if self.width() <= cells {
            return self.clone();
        }
        let Some(room) = cells.checked_sub(1) else {
            return Self::default();
        };
        let mut clusters = Vec::new();
        let mut used = 0;
        for cluster in self.0.graphemes(true).rev() {
            used += cluster.width();
            if used > room {
                break;
            }
            clusters.push(cluster);
        }
        Self(std::iter::once("…").chain(clusters.into_iter().rev()).collect())
    }

    /// The text broken into rows of at most `cells` cells, at spaces where there are any. At least one row.
    #[must_use]
    pub fn wrap(&self, cells: usize) -> Vec<Self> {
        let cells = cells.max(2);
        let mut rows = Vec::new();
        let mut row = String::new();
        let mut used = 0;
        for word in self.0.split_inclusive(' ') {
            // The space behind a word may hang over the edge.
            let wide = word.trim_end().width();
            if used + wide > cells && used > 0 {
                rows.push(Self(row.trim_end().to_owned()));
                row.clear();
                used = 0;
            }
            if wide <= cells {
                row.push_str(word);
                used += word.width();
                continue;
            }
            for cluster in word.graphemes(true) {
                let wide = cluster.width();
                if used + wide > cells && used > 0 {
                    rows.push(Self(std::mem::take(&mut row).trim_end().to_owned()));
                    used = 0;
                }
                row.push_str(cluster);
                used += wide;
            }
        }
        if !row.is_empty() || rows.is_empty() {
            rows.push(Self(row.trim_end().to_owned()));
        }
        rows
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for SafeText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SafeText {
    fn from(text: &str) -> Self {
        Self::line(text)
    }
}

struct OneLine {
    out: String,
    /// White space that is worth one space, if anything follows it: a tab stop means nothing inside of a name.
    gap: bool,
}

impl Sink for OneLine {
    fn text(&mut self, ch: char) {
        if std::mem::take(&mut self.gap) && !self.out.is_empty() && !self.out.ends_with(' ') && ch != ' ' {
            self.out.push(' ');
        }
        self.out.push(ch);
    }

    fn control(&mut self, control: Control) {
        if control == Control::Backspace {
            return self.removed();
        }
        self.gap = true;
    }

    fn removed(&mut self) {
        if self.gap || !self.out.ends_with(SafeText::REMOVED) {
            self.text(SafeText::REMOVED);
        }
    }
}

#[cfg(test)]
pub(crate) use tests::hostile_byte;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::scan::is_unsafe;

    #[test]
    fn hostile_texts_become_harmless() {
        for (input, expected) in [
            ("plain", "plain"),
            ("a\x1b[31mred\x1b[0m", "ared"),
            ("\x1b]52;c;aGk=\x07after", "�after"),
            ("\x1b]0;title\x1b\\after", "�after"),
            ("\x1bPq#0;2;0;0;0\x1b\\x", "�x"),
            ("\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "�x"),
            ("\u{9d}0;title\u{9c}x", "�x"),
            ("\u{9b}31mx", "x"),
            ("\u{9b}2Jx", "�x"),
            ("\x1bcreset", "�reset"),
            ("\x1b(0x", "�x"),
            ("\x1b[6n\x1b[?1049hx", "�x"),
            ("\x1b]0;never ends", "�"),
            ("a\x1b", "a�"),
            ("a\x1b[3", "a�"),
            ("a\x1b[3\u{1b}[31mb", "a�b"),
            ("a\0b\x07c\x7fd", "a�b�c�d"),
            ("a\u{202e}b\u{2066}c\u{200f}d\u{feff}e", "a�b�c�d�e"),
            ("a\u{202e}\u{2066}\0\x18b", "a�b"),
            ("rm -rf /\rls", "rm -rf / ls"),
            ("one\r\ntwo\n", "one two"),
            ("a\tb", "a b"),
            ("a\x08b", "a�b"),
            ("👩‍🔬 ok", "👩‍🔬 ok"),
            ("\x1b[31é", "�é"),
        ] {
            assert_eq!(SafeText::line(input).as_str(), expected, "{input:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_such() {
        for (input, expected) in [
            (&b"\xff"[..], "\u{fffd}"),
            (b"a\xe2\x9cb", "a\u{fffd}b"),
            (b"\xe2\x9c\x93", "✓"),
            (b"\x9b31mx", "x"),
            (b"\x9d0;t\x9cx", "\u{fffd}x"),
            (b"\x1b]0;\xe2\x9c\x93\x07x", "\u{fffd}x"),
            // A surrogate: its first byte, its second, and a C1 control, for which the mark before it stands.
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}"),
            (b"\xf0\x9f", "\u{fffd}"),
        ] {
            assert_eq!(SafeText::from_bytes(input).as_str(), expected, "{input:?}");
        }
    }

    #[test]
    fn text_is_cut_to_cells_not_to_bytes() {
        for (text, cells, start, end) in [
            ("abcdef", 6, "abcdef", "abcdef"),
            ("abcdef", 4, "abc…", "…def"),
            ("日本語", 4, "日…", "…語"),
            ("日本語", 3, "日…", "…語"),
            ("abc", 1, "…", "…"),
            ("abc", 0, "", ""),
        ] {
            assert_eq!(SafeText::line(text).truncate(cells).as_str(), start);
            assert_eq!(SafeText::line(text).truncate_start(cells).as_str(), end);
        }
    }

    #[test]
    fn text_wraps_at_spaces_and_breaks_long_words() {
        let rows = |text: &str, cells| {
            SafeText::line(text).wrap(cells).into_iter().map(|r| r.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(rows("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("", 5), [""]);
        assert_eq!(rows("one that fails.", 14), ["one that", "fails."]);
    }

    proptest! {
        #[test]
        fn no_bytes_yield_anything_unsafe(bytes in proptest::collection::vec(hostile_byte(), 0..200)) {
            let text = SafeText::from_bytes(&bytes);
            prop_assert!(!text.as_str().chars().any(is_unsafe), "{:?}", text);
        }

        #[test]
        fn cleaning_is_stable(text in "\\PC{0,40}") {
            let once = SafeText::line(&text);
            prop_assert_eq!(SafeText::line(once.as_str()), once);
        }

        #[test]
        fn cut_text_fits(text in ".{0,40}", cells in 0usize..20) {
            let text = SafeText::line(&text);
            prop_assert!(text.truncate(cells).width() <= cells);
            prop_assert!(text.truncate_start(cells).width() <= cells);
            // One character cannot be divided, and with all that belongs to it may be wider than the row.
            let widest = text.as_str().graphemes(true).map(width).max().unwrap_or(0);
            prop_assert!(text.wrap(cells).iter().all(|row| row.width() <= cells.max(2).max(widest)));
        }
    }

    pub(crate) fn hostile_byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            Just(0x1b_u8),
            Just(b'['),
            Just(b']'),
            Just(b'm'),
            Just(b';'),
            Just(b'\n'),
            Just(b'\r'),
            Just(0x08),
            Just(0xc2),
            Just(0x9b),
            Just(0x9d),
            Just(0xe2),
            Just(0x80),
            Just(0xae),
            any::<u8>(),
        ]
    }
}
