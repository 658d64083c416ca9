//! [`Bare`]: what a search compares, which is what a reader sees of a log without its colours. Escape sequences and
//! controls are left out, a carriage return begins the line anew, a backspace takes a character back.

/// A string sequence (OSC, DCS, ...) longer than this was never meant to end; what follows is text again.
const STRING_CAP: u32 = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    Intermediate,
    Csi,
    String,
    StringEscape,
}

/// A part of a log as text, with where each byte of it is in the log. How it is cut into chunks never changes what is
/// left. A newline ends whatever has begun. Bytes from 0x80 on stay as they are, also where they are no text.
///
/// Of a line that was written over only its last state stays, and in front of that the last bytes of the state before:
/// as many as it is made for, so that what a carriage return interrupts is found as well as what stands behind it.
#[derive(Clone, Debug, Default)]
pub struct Bare {
    text: Vec<u8>,
    /// Where each unbroken piece of it begins: in the text, and in the log.
    places: Vec<(usize, u64)>,
    state: State,
    string_len: u32,
    /// Where the last line begins in the text, and its last state.
    line: usize,
    shown: usize,
    /// A carriage return came: what comes next begins the line anew.
    restart: bool,
    /// So many bytes of what is written over stay.
    keep: usize,
    /// Capitals of ASCII become small.
    fold: bool,
    /// From here on the log has to be read again when it goes on.
    begun: u64,
}

impl Bare {
    /// Nothing yet of a log that is read from a position on; of what is written over `keep` bytes stay. With `fold`,
    /// capitals of ASCII become small on the way.
    #[must_use]
    pub fn new(at: u64, keep: usize, fold: bool) -> Self {
        Self { keep, fold, begun: at, ..Self::default() }
    }

    /// What is text so far.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The part of it that no byte to come can change.
    #[must_use]
    pub fn settled(&self) -> &[u8] {
        self.text.get(..self.line).unwrap_or_default()
    }

    /// The position in the log of what comes behind [`Bare::settled`].
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether there is nothing in these bytes that would be left out or change what is there while no sequence is
    /// open. With `fold`, capitals of ASCII become small on the way.
    pub fn is_bare(bytes: &mut [u8], fold: bool) -> bool {
        // Without a branch for each byte, which the compiler turns into a few instructions for many.
        if fold {
            bytes.iter_mut().fold(0, |odd, byte| {
                let was = *byte;
                *byte = was.to_ascii_lowercase();
                odd | u8::from(is_odd(was))
            }) == 0
        } else {
            bytes.iter().fold(0, |odd, byte| odd | u8::from(is_odd(*byte))) == 0
        }
    }

    /// Where a byte of the text is in the log.
    #[must_use]
    pub fn place(&self, index: usize) -> u64 {
        let known = self.places.partition_point(|(begin, _)| *begin <= index).checked_sub(1);
        known.and_then(|n| self.places.get(n)).map_or(self.begun, |(begin, place)| place + (index - begin) as u64)
    }

    /// Goes on with bytes that are in the log `at` a position.
    pub fn push(&mut self, bytes: &[u8], at: u64) {
        let mut broken = true;
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            let here = at + (bytes.len() - rest.len()) as u64;
            if self.state == State::Ground {
                let many = rest.iter().position(|b| is_odd(*b)).unwrap_or(rest.len());
                if let Some((run, other)) = rest.split_at_checked(many).filter(|(run, _)| !run.is_empty()) {
                    self.append(run, here, broken);
                    broken = false;
                    rest = other;
                    continue;
                }
            }
            if self.byte(*byte, here) {
                self.append(std::slice::from_ref(byte), here, true);
            }
            broken = true;
            rest = tail;
        }
    }

    /// Ends the line without a line feed: what comes next is another stream's, and writes over nothing of this one.
    pub fn end_line(&mut self, at: u64) {
        self.state = State::Ground;
        if self.text.len() > self.line {
            self.places.push((self.text.len(), at));
            self.text.push(b'\n');
        }
        self.begin_line(at);
    }

    const fn begin_line(&mut self, at: u64) {
        self.line = self.text.len();
        self.shown = self.line;
        self.restart = false;
        self.begun = at;
    }

    /// Takes text. The pieces of a run that follow each other need one place.
    fn append(&mut self, run: &[u8], at: u64, broken: bool) {
        let mut rest = run;
        let mut begins = broken;
        while !rest.is_empty() {
            let here = at + (run.len() - rest.len()) as u64;
            // The line feed behind a carriage return writes over nothing.
            if self.restart && rest.first() != Some(&b'\n') {
                self.begin_anew(here);
                begins = true;
            }
            if begins {
                self.places.push((self.text.len(), here));
                begins = false;
            }
            let many = memchr::memchr(b'\n', rest).map_or(rest.len(), |feed| feed + 1);
            let (line, other) = rest.split_at_checked(many).unwrap_or((rest, &[]));
            let known = self.text.len();
            self.text.extend_from_slice(line);
            if let Some(new) = self.text.get_mut(known..).filter(|_| self.fold) {
                new.make_ascii_lowercase();
            }
            if line.last() == Some(&b'\n') {
                self.begin_line(here + line.len() as u64);
            }
            rest = other;
        }
    }

    /// Takes what is there of the line away, but for its end.
    fn begin_anew(&mut self, at: u64) {
        self.restart = false;
        let kept = (self.text.len() - self.shown).min(self.keep);
        let from = self.text.len() - kept;
        if from > self.line {
            let tail: Vec<(usize, u64)> = (from..self.text.len()).map(|index| (index, self.place(index))).collect();
            self.text.drain(self.line..from);
            self.places.truncate(self.places.partition_point(|(begin, _)| *begin < self.line));
            let moved = from - self.line;
            self.places.extend(tail.into_iter().map(|(index, place)| (index - moved, place)));
        }
        self.shown = self.text.len();
        self.begun = if kept > 0 { self.place(self.line) } else { at };
    }

    /// Takes the last character of what is shown of the line away.
    fn take_back(&mut self, at: u64) {
        if self.restart {
            self.begin_anew(at);
        }
        while self.text.len() > self.shown {
            let gone = self.text.pop();
            if gone.is_none_or(|byte| byte & 0xc0 != 0x80) {
                break;
            }
        }
        self.places.truncate(self.places.partition_point(|(begin, _)| *begin < self.text.len()));
    }

    /// Takes a byte that is odd or inside of a sequence, where it is in the log; whether it is text all the same.
    fn byte(&mut self, byte: u8, at: u64) -> bool {
        match (self.state, byte) {
            (_, b'\n') => {
                self.state = State::Ground;
                return true;
            }
            (_, 0x18 | 0x1a) => self.state = State::Ground,
            (State::String, 0x1b) => self.state = State::StringEscape,
            (_, 0x1b) => self.state = State::Escape,
            (State::Ground, b'\r') => self.restart = true,
            (State::Ground, 0x08) => self.take_back(at),
            (State::Ground, _) => {}
            (State::Escape | State::StringEscape, b'[') => self.state = State::Csi,
            (State::Escape | State::StringEscape, b']' | b'P' | b'X' | b'^' | b'_') => {
                self.state = State::String;
                self.string_len = 0;
            }
            (State::Escape | State::StringEscape, 0x20..=0x2f) => self.state = State::Intermediate,
            (State::Escape | State::StringEscape | State::Intermediate, 0x30..=0x7e) => self.state = State::Ground,
            (State::Csi, 0x40..=0x7e) => self.state = State::Ground,
            (State::String, _) => {
                self.string_len = self.string_len.saturating_add(1);
                if byte == 0x07 || self.string_len > STRING_CAP {
                    self.state = State::Ground;
                }
            }
            // What cannot be part of a sequence ends it and is text.
            (_, 0x80..) => {
                self.state = State::Ground;
                return true;
            }
            _ => {}
        }
        false
    }
}

/// Whether a byte is, or begins, something that is left out or changes what is there.
const fn is_odd(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::StyledLine;

    fn bare(chunks: &[&[u8]], keep: usize) -> (Vec<u8>, Vec<u64>) {
        let mut bare = Bare::new(0, keep, false);
        let mut at = 0;
        for chunk in chunks {
            bare.push(chunk, at);
            at += chunk.len() as u64;
        }
        let positions = (0..bare.text().len()).map(|index| bare.place(index)).collect();
        (bare.text, positions)
    }

    #[test]
    fn what_a_reader_sees_is_left_and_positions_stay() {
        for (raw, want) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("nee\x1b[1;31mdle\x1b[0m", "needle"),
            ("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "xlink"),
            ("\x1b(Bx\x1b[", "x"),
            ("\x1b]open\nnext", "\nnext"),
            ("é\x1b[31mé", "éé"),
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("top\n10%\r\x1b[K20%\r\x1b[K30%\x1b[0m\r\nend", "top\n30%\nend"),
            ("10%\r", "10%"),
            ("10%\r\x1b[2K\nx", "10%\nx"),
            ("né\x08ée\x08\x7f", "né"),
            ("n\x08ne\x08e\n\x08x", "ne\nx"),
            ("ab\r\x08\x08", ""),
        ] {
            let (text, positions) = bare(&[raw.as_bytes()], 0);
            assert_eq!(String::from_utf8(text.clone()).unwrap(), want, "{raw:?}");
            for (byte, at) in text.iter().zip(positions) {
                assert_eq!(raw.as_bytes()[usize::try_from(at).unwrap()], *byte, "{raw:?}");
            }
        }
    }

    #[test]
    fn as_much_of_what_is_written_over_stays_as_is_asked_for() {
        for (raw, keep, want) in [
            ("top\nsome nee\rdle", 5, "top\ne needle"),
            ("n\rdle", 5, "ndle"),
            ("far away\rnee\r\rdle\n", 5, "needle\n"),
            ("nee\x08\x08\x08\rdle", 5, "dle"),
        ] {
            assert_eq!(String::from_utf8(bare(&[raw.as_bytes()], keep).0).unwrap(), want, "{raw:?}");
        }
    }

    #[test]
    fn what_can_still_change_is_known() {
        let mut bare = Bare::new(7, 2, false);
        bare.push(b"one\ntwo", 7);
        assert_eq!((bare.settled(), bare.begun()), (&b"one\n"[..], 11));
        bare.push(b"\rthree\rfour", 14);
        assert_eq!((bare.settled(), bare.begun()), (&b"one\n"[..], 18));
        assert_eq!(bare.text(), b"one\neefour");
        bare.end_line(25);
        bare.push(b"\rother", 25);
        assert_eq!((bare.settled(), bare.begun()), (&b"one\neefour\n"[..], 26));
        assert_eq!(bare.text(), b"one\neefour\nother");
    }

    #[test]
    fn capitals_become_small_and_end_no_sequence() {
        let mut bare = Bare::new(0, 0, true);
        bare.push(b"One\x1bPNOT This\x1b\\ TWO", 0);
        assert_eq!(bare.text(), b"one two");
    }

    #[test]
    fn a_sequence_that_never_ends_hides_no_more_than_its_cap() {
        let raw = format!("\x1b]{}needle", "x".repeat(STRING_CAP as usize + 10));
        assert!(bare(&[raw.as_bytes()], 0).0.ends_with(b"needle"));
    }

    #[test]
    fn what_is_bare_is_known_and_folded() {
        let mut text = *b"A plain LINE\twith \xc3\x89\n";
        assert!(Bare::is_bare(&mut text, false));
        assert!(Bare::is_bare(&mut text, true));
        assert_eq!(&text, b"a plain line\twith \xc3\x89\n");
        for odd in [0, 7, 8, 0x0d, 0x1b, 0x7f] {
            assert!(!Bare::is_bare(&mut [b'a', odd, b'b'], true), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(raw in "[ab\x1b\\[\\]\r\n\x07\x08;m\\\\é]{0,40}", cut in 0usize..40, keep in 0usize..4) {
            let raw = raw.as_bytes();
            let (one, two) = raw.split_at(cut.min(raw.len()));
            prop_assert_eq!(bare(&[one, two], keep), bare(&[raw], keep));
        }

        #[test]
        fn it_is_what_a_line_shows(raw in "[abcé\r\x08]{0,40}", colour in 0usize..40) {
            let cut = raw.char_indices().nth(colour).map_or(raw.len(), |(at, _)| at);
            let raw = format!("{}\x1b[31m{}", &raw[..cut], &raw[cut..]);
            let shown = StyledLine::parse(raw.as_bytes()).text();
            prop_assert_eq!(String::from_utf8(bare(&[raw.as_bytes()], 0).0).unwrap(), shown.as_str());
        }

        #[test]
        fn what_is_bare_stays_whole(mut raw: Vec<u8>) {
            let whole = raw.clone();
            if Bare::is_bare(&mut raw, false) {
                prop_assert_eq!(bare(&[&whole], 3).0, whole);
            }
        }
    }
}
