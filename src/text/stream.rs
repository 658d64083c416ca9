//! [`Sanitizer`]: a stream of bytes to clean lines, for what is printed without a screen.

use super::safe::{SafeText, TAB};
use super::scan::{Control, Scanner, Sink};

/// Cleans a stream, chunk by chunk. How the input is cut into chunks never changes the output.
///
/// Colours are dropped. A carriage return restarts the line, so that a progress bar leaves one line. The state of a
/// sequence is kept between chunks and forgotten at a newline.
#[derive(Clone, Debug, Default)]
pub struct Sanitizer {
    scanner: Scanner,
    line: Line,
}

impl Sanitizer {
    /// A line that is longer than this many bytes leaves in pieces.
    pub const LINE_CAP: usize = 64 * 1024;

    /// Takes a chunk; `emit` gets every line that is complete.
    pub fn push(&mut self, bytes: &[u8], emit: impl FnMut(SafeText)) {
        self.scanner.push(bytes, &mut Emitting { line: &mut self.line, emit });
    }

    /// The stream is over: the line that has no newline, if there is one.
    #[must_use]
    pub fn finish(&mut self) -> Option<SafeText> {
        let mut last = None;
        self.scanner.finish(&mut Emitting { line: &mut self.line, emit: |text| last = Some(text) });
        let rest = std::mem::take(&mut self.line);
        if rest.text.is_empty() { last } else { Some(SafeText::trusted(rest.text)) }
    }
}

#[derive(Clone, Debug, Default)]
struct Line {
    text: String,
    column: usize,
    /// A carriage return came; the next character begins the line anew. Kept apart so that CRLF loses nothing.
    restart: bool,
}

struct Emitting<'a, F: FnMut(SafeText)> {
    line: &'a mut Line,
    emit: F,
}

impl<F: FnMut(SafeText)> Emitting<'_, F> {
    fn flush(&mut self) {
        let line = std::mem::take(self.line);
        (self.emit)(SafeText::trusted(line.text));
    }

    fn begin(&mut self) {
        if self.line.restart {
            *self.line = Line::default();
        }
    }
}

impl<F: FnMut(SafeText)> Sink for Emitting<'_, F> {
    fn text(&mut self, ch: char) {
        self.begin();
        self.line.text.push(ch);
        self.line.column += unicode_width::UnicodeWidthChar::width(ch).unwrap_or(0);
        if self.line.text.len() >= Sanitizer::LINE_CAP {
            self.flush();
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::Newline => self.flush(),
            Control::Return => self.line.restart = true,
            Control::Backspace => {
                self.begin();
                if let Some(gone) = self.line.text.pop() {
                    self.line.column -= unicode_width::UnicodeWidthChar::width(gone).unwrap_or(0);
                }
            }
            Control::Tab => {
                self.begin();
                for _ in 0..TAB - self.line.column % TAB {
                    self.text(' ');
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::safe::hostile_byte;
    use crate::text::scan::is_unsafe;

    fn clean(chunks: &[&[u8]]) -> Vec<String> {
        let mut sanitizer = Sanitizer::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            sanitizer.push(chunk, |line| lines.push(line.as_str().to_owned()));
        }
        lines.extend(sanitizer.finish().map(|l| l.as_str().to_owned()));
        lines
    }

    #[test]
    fn a_stream_becomes_clean_lines() {
        for (input, expected) in [
            (&b"one\ntwo"[..], &["one", "two"][..]),
            (b"one\r\ntwo\r\n", &["one", "two"]),
            (b"\r10%\r20%\r100%\n", &["100%"]),
            (b"a\tb", &["a       b"]),
            (b"ab\x08c", &["ac"]),
            (b"\x1b]0;swallowed\nseen\n", &["", "seen"]),
            (b"\x1b[1mbold\x1b[0m\n", &["bold"]),
            (b"\n\n", &["", ""]),
            (b"", &[]),
        ] {
            assert_eq!(clean(&[input]), expected, "{:?}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn an_endless_sequence_costs_no_memory_and_ends() {
        let mut sanitizer = Sanitizer::default();
        sanitizer.push(b"\x1b]", |_| {});
        let mut seen = 0;
        for _ in 0..1000 {
            sanitizer.push(&[b'x'; 1000], |line| seen += line.as_str().len());
        }
        assert!(seen > 800_000, "the text after an abandoned sequence is shown, {seen}");
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            bytes in proptest::collection::vec(hostile_byte(), 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(clean(&chunks), clean(&[&bytes]));
        }

        #[test]
        fn nothing_unsafe_leaves(bytes in proptest::collection::vec(hostile_byte(), 0..200)) {
            prop_assert!(clean(&[&bytes]).iter().all(|line| !line.chars().any(is_unsafe)));
        }
    }
}
