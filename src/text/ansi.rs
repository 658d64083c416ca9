//! One line of a log with its colours. Colours are the sixteen of the terminal's own palette, so that a child can
//! never make its text invisible on a theme it does not know better than the person does.

use unicode_width::UnicodeWidthChar;

use super::safe::{SafeText, TAB, width};
use super::scan::{Control, Scanner, Sink, split_printable};

/// One of the sixteen colours of the terminal's palette: 0 to 7 normal, 8 to 15 bright.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ansi(pub u8);

/// How a run of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// Foreground; `None` is the terminal's own.
    pub fg: Option<Ansi>,
    /// Background; `None` is the terminal's own.
    pub bg: Option<Ansi>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Foreground and background exchanged.
    pub reverse: bool,
}

/// Text of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The text.
    pub text: SafeText,
    /// How it looks.
    pub style: Style,
}

/// A line of a log, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    /// The runs from left to right; neighbours differ in style.
    pub runs: Vec<Run>,
    /// The line was longer than [`StyledLine::MAX_COLUMNS`].
    pub cut: bool,
    /// How many bytes of text are missing behind there.
    pub left: usize,
}

impl StyledLine {
    /// Longer lines are cut here before anything is measured.
    pub const MAX_COLUMNS: usize = 4096;

    /// Cleans one line and keeps its colours. Where something would have acted beyond the line (a clipboard, a question to
    /// the terminal, a reset) there is a [`SafeText::REMOVED`]. A carriage return restarts the line, a backspace deletes a character,
    /// tabs go to stops of eight; links keep their text.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        match split_printable(bytes) {
            (text, []) => Self::plain(text),
            _ => Self::scan(bytes, Self::MAX_COLUMNS),
        }
    }

    /// Like [`StyledLine::parse`], and no line is too long: the caller bounds it.
    #[must_use]
    pub fn whole(bytes: &[u8]) -> Self {
        Self::scan(bytes, usize::MAX)
    }

    /// A line of nothing but printable ASCII, which most lines are, is its own text.
    fn plain(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let (shown, beyond) = text.split_at_checked(Self::MAX_COLUMNS).unwrap_or((text, ""));
        let run = Run { text: SafeText::trusted(shown.to_owned()), style: Style::default() };
        Self { runs: vec![run], cut: !beyond.is_empty(), left: beyond.len() }
    }

    fn scan(bytes: &[u8], most: usize) -> Self {
        let mut builder = Builder { most, ..Builder::default() };
        let mut scanner = Scanner::default();
        scanner.push(bytes, &mut builder);
        scanner.finish(&mut builder);
        let runs = builder.runs.into_iter().map(|(text, style)| Run { text: SafeText::trusted(text), style }).collect();
        Self { runs, cut: builder.cut, left: builder.left }
    }

    /// The text without its colours.
    #[must_use]
    pub fn text(&self) -> SafeText {
        if let [only] = self.runs.as_slice() {
            return only.text.clone();
        }
        SafeText::trusted(self.runs.iter().map(|r| r.text.as_str()).collect())
    }

    /// How many terminal cells it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.runs.iter().map(|r| width(r.text.as_str())).sum()
    }

    /// Whether there is nothing but white space to show.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.runs.iter().all(|r| r.text.as_str().trim().is_empty())
    }
}

#[derive(Default)]
struct Builder {
    runs: Vec<(String, Style)>,
    style: Style,
    column: usize,
    restart: bool,
    cut: bool,
    left: usize,
    /// So many columns are kept.
    most: usize,
}

impl Builder {
    fn begin(&mut self) {
        if self.restart {
            self.runs.clear();
            self.column = 0;
            self.restart = false;
            (self.cut, self.left) = (false, 0);
        }
    }
}

impl Sink for Builder {
    fn text(&mut self, ch: char) {
        self.begin();
        let wide = ch.width().unwrap_or(0);
        if self.cut || self.column + wide > self.most {
            self.cut = true;
            self.left += ch.len_utf8();
            return;
        }
        self.column += wide;
        match self.runs.last_mut() {
            Some((text, style)) if *style == self.style => text.push(ch),
            _ => self.runs.push((ch.to_string(), self.style)),
        }
    }

    fn printable(&mut self, run: &str) {
        self.begin();
        // Each of these characters takes one cell.
        let room = if self.cut { 0 } else { self.most - self.column };
        let (shown, beyond) = run.split_at_checked(room.min(run.len())).unwrap_or((run, ""));
        self.cut |= !beyond.is_empty();
        self.left += beyond.len();
        self.column += shown.len();
        match self.runs.last_mut() {
            _ if shown.is_empty() => {}
            Some((text, style)) if *style == self.style => text.push_str(shown),
            _ => self.runs.push((shown.to_owned(), self.style)),
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            // The caller cuts at newlines; one inside of the line is a gap like any other.
            Control::Newline => self.text(' '),
            Control::Return => self.restart = true,
            Control::Backspace => {
                self.begin();
                if let Some((text, _)) = self.runs.last_mut() {
                    if let Some(gone) = text.pop() {
                        self.column -= gone.width().unwrap_or(0);
                    }
                    if text.is_empty() {
                        self.runs.pop();
                    }
                }
            }
            Control::Tab => {
                self.begin();
                for _ in 0..TAB - self.column % TAB {
                    self.text(' ');
                }
            }
        }
    }

    fn sgr(&mut self, params: &[u16]) {
        apply(&mut self.style, params);
    }

    /// What only moves or erases leaves no trace, as in most logs; what would have acted leaves a mark.
    fn acted(&mut self) {
        self.text(SafeText::REMOVED);
    }
}

fn apply(style: &mut Style, params: &[u16]) {
    let mut rest = params.iter().copied();
    while let Some(param) = rest.next() {
        match param {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.reverse = true,
            21 | 22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            30..=37 => style.fg = Some(palette(param - 30)),
            39 => style.fg = None,
            40..=47 => style.bg = Some(palette(param - 40)),
            49 => style.bg = None,
            90..=97 => style.fg = Some(palette(param - 82)),
            100..=107 => style.bg = Some(palette(param - 92)),
            38 | 48 => {
                let colour = match rest.next() {
                    Some(5) => rest.next().map(indexed),
                    Some(2) => match (rest.next(), rest.next(), rest.next()) {
                        (Some(r), Some(g), Some(b)) => Some(nearest(r, g, b)),
                        _ => None,
                    },
                    _ => None,
                };
                if colour.is_some() {
                    *(if param == 38 { &mut style.fg } else { &mut style.bg }) = colour;
                }
            }
            _ => {}
        }
    }
}

fn palette(index: u16) -> Ansi {
    Ansi(u8::try_from(index & 15).unwrap_or(0))
}

/// The 256-colour palette: sixteen of the terminal, a cube of six steps a side, 24 greys.
fn indexed(index: u16) -> Ansi {
    match index {
        0..=15 => palette(index),
        16..=231 => {
            let cube = index - 16;
            let level = |step: u16| if step == 0 { 0 } else { 55 + step * 40 };
            nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let grey = 8 + (index.min(255) - 232) * 10;
            nearest(grey, grey, grey)
        }
    }
}

/// The palette colour of the same hue: which channels are strong, and whether the strongest is bright.
fn nearest(r: u16, g: u16, b: u16) -> Ansi {
    let (r, g, b) = (r.min(255), g.min(255), b.min(255));
    let (high, low) = (r.max(g).max(b), r.min(g).min(b));
    if high - low < 32 {
        return Ansi(match high {
            0..=47 => 0,
            48..=159 => 8,
            160..=223 => 7,
            _ => 15,
        });
    }
    let middle = (high + low) / 2;
    let bits = u8::from(r > middle) | (u8::from(g > middle) << 1) | (u8::from(b > middle) << 2);
    Ansi(if high > 191 { bits + 8 } else { bits })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::safe::hostile_byte;
    use crate::text::scan::is_unsafe;

    fn shape(bytes: &[u8]) -> Vec<(String, Style)> {
        StyledLine::parse(bytes).runs.into_iter().map(|r| (r.text.as_str().to_owned(), r.style)).collect()
    }

    fn fg(n: u8) -> Style {
        Style { fg: Some(Ansi(n)), ..Style::default() }
    }

    #[test]
    fn colours_become_styles() {
        let plain = Style::default();
        for (input, expected) in [
            (&b"x"[..], vec![("x", plain)]),
            (b"\x1b[31mr\x1b[0mp", vec![("r", fg(1)), ("p", plain)]),
            (b"\x1b[mp", vec![("p", plain)]),
            (b"\x1b[91mr", vec![("r", fg(9))]),
            (b"\x1b[38;5;9mr", vec![("r", fg(9))]),
            (b"\x1b[38;2;255;0;0mr", vec![("r", fg(9))]),
            (b"\x1b[38;5;196mr", vec![("r", fg(9))]),
            (b"\x1b[38:5:2mr", vec![("r", fg(2))]),
            (
                b"\x1b[1;2;3;4;7mx\x1b[22;23;24;27my",
                vec![
                    ("x", Style { bold: true, dim: true, italic: true, underline: true, reverse: true, ..plain }),
                    ("y", plain),
                ],
            ),
            (b"\x1b[?1mp", vec![("p", plain)]),
            (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", vec![("link", plain)]),
            (b"\x1b]0;title\x07a\x1b[2K\x1b[1Ab\x1b[?25lc", vec![("abc", plain)]),
            (b"a\x1b]52;c;aGk=\x07b\x1bPq\x1b\\c", vec![("a\u{fffd}b\u{fffd}c", plain)]),
            (b"a\x1b[6nb\x1bcd\x9d52;c;\x9ce\x1b]104\x1b\\f", vec![("a\u{fffd}b\u{fffd}d\u{fffd}e\u{fffd}f", plain)]),
            (b"10%\r\x1b[32m20%", vec![("20%", fg(2))]),
            (b"done\r", vec![("done", plain)]),
            (b"ab\x08\x08c", vec![("c", plain)]),
            (b"a\tb", vec![("a       b", plain)]),
        ] {
            let expected: Vec<(String, Style)> = expected.into_iter().map(|(t, s)| (t.to_owned(), s)).collect();
            assert_eq!(shape(input), expected, "{:?}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn long_lines_are_cut_and_say_so() {
        let line = StyledLine::parse(&vec![b'x'; 10_000]);
        assert_eq!((line.width(), line.cut, line.left), (StyledLine::MAX_COLUMNS, true, 5904));
        let line = StyledLine::parse("é".repeat(5000).as_bytes());
        assert_eq!((line.width(), line.left), (StyledLine::MAX_COLUMNS, 2 * 904));
        let whole = StyledLine::whole(&vec![b'x'; 10_000]);
        assert_eq!((whole.width(), whole.cut, whole.left), (10_000, false, 0));
        assert!(!StyledLine::parse(b"short").cut);
    }

    /// A builder that is given every character alone.
    struct OneByOne(Builder);

    impl Sink for OneByOne {
        fn text(&mut self, ch: char) {
            self.0.text(ch);
        }

        fn control(&mut self, control: Control) {
            self.0.control(control);
        }

        fn sgr(&mut self, params: &[u16]) {
            self.0.sgr(params);
        }

        fn acted(&mut self) {
            self.0.acted();
        }
    }

    proptest! {
        #[test]
        fn the_short_way_agrees_with_the_scanner(text in "[ -~]{0,40}", repeat in 0usize..200) {
            let text = text.repeat(repeat);
            prop_assert_eq!(StyledLine::parse(text.as_bytes()), StyledLine::scan(text.as_bytes(), StyledLine::MAX_COLUMNS));
        }

        #[test]
        fn runs_are_taken_as_their_characters(
            pieces in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(hostile_byte(), 0..40),
                    "[ -~]{0,60}".prop_map(String::into_bytes),
                    Just("x".repeat(StyledLine::MAX_COLUMNS - 20).into_bytes()),
                    Just("日".repeat(20).into_bytes()),
                ],
                0..12,
            ),
        ) {
            let bytes = pieces.concat();
            let mut slow = OneByOne(Builder { most: StyledLine::MAX_COLUMNS, ..Builder::default() });
            let mut scanner = Scanner::default();
            scanner.push(&bytes, &mut slow);
            scanner.finish(&mut slow);
            let line = StyledLine::scan(&bytes, StyledLine::MAX_COLUMNS);
            prop_assert_eq!((line.cut, line.left), (slow.0.cut, slow.0.left));
            let runs: Vec<_> = line.runs.into_iter().map(|r| (r.text.as_str().to_owned(), r.style)).collect();
            prop_assert_eq!(runs, slow.0.runs);
        }

        #[test]
        fn nothing_unsafe_is_drawn(bytes in proptest::collection::vec(hostile_byte(), 0..300)) {
            let line = StyledLine::parse(&bytes);
            prop_assert!(!line.text().as_str().chars().any(is_unsafe));
            prop_assert!(line.runs.windows(2).all(|w| w[0].style != w[1].style || w[0].text.is_empty()));
        }
    }
}
