//! [`Bare`]: what a search compares. Escape sequences and controls are left out, so that a word is found however it was
//! coloured, and however often a carriage return went over it.

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

/// Goes through a stream, chunk by chunk. How it is cut into chunks never changes what is left. A newline ends whatever
/// has begun. Bytes from 0x80 on stay as they are, also where they are no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bare {
    state: State,
    string_len: u32,
}

impl Bare {
    /// Whether a sequence has begun, so that the next bytes may be no text.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != State::Ground
    }

    /// Whether there is nothing in these bytes that would be left out while no sequence is open. With `fold`, capitals of
    /// ASCII become small on the way.
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

    /// Appends what is text in `bytes` to `text`, and to `places` where each unbroken piece of it begins: in `text`, and
    /// in the stream, where the bytes begin `at`.
    pub fn push(&mut self, bytes: &[u8], at: u64, text: &mut Vec<u8>, places: &mut Vec<(usize, u64)>) {
        let mut broken = true;
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            if self.state == State::Ground {
                let many = rest.iter().position(|b| is_odd(*b)).unwrap_or(rest.len());
                if let Some((run, other)) = rest.split_at_checked(many).filter(|(run, _)| !run.is_empty()) {
                    if broken {
                        places.push((text.len(), at + (bytes.len() - rest.len()) as u64));
                        broken = false;
                    }
                    text.extend_from_slice(run);
                    rest = other;
                    continue;
                }
            }
            if self.byte(*byte) {
                places.push((text.len(), at + (bytes.len() - rest.len()) as u64));
                text.push(*byte);
            }
            broken = true;
            rest = tail;
        }
    }

    /// Takes a byte that is odd or inside of a sequence; whether it is text all the same.
    fn byte(&mut self, byte: u8) -> bool {
        match (self.state, byte) {
            (_, b'\n') => {
                self.state = State::Ground;
                return true;
            }
            (_, 0x18 | 0x1a) => self.state = State::Ground,
            (State::String, 0x1b) => self.state = State::StringEscape,
            (_, 0x1b) => self.state = State::Escape,
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

/// Whether a byte is, or begins, something that is left out.
const fn is_odd(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bare(chunks: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
        let (mut state, mut text, mut places) = (Bare::default(), Vec::new(), Vec::new());
        let mut at = 0;
        for chunk in chunks {
            state.push(chunk, at, &mut text, &mut places);
            at += chunk.len() as u64;
        }
        let of = |index: usize| {
            let (begin, place) = places[places.partition_point(|(begin, _)| *begin <= index) - 1];
            place + (index - begin) as u64
        };
        let positions = (0..text.len()).map(of).collect();
        (text, positions)
    }

    #[test]
    fn colours_and_controls_leave_nothing_and_positions_stay() {
        for (raw, want) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("nee\x1b[1;31mdle\x1b[0m", "needle"),
            ("nee\rdle\x08\x7f", "needle"),
            ("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "xlink"),
            ("\x1b(Bx\x1b[", "x"),
            ("\x1b]open\nnext", "\nnext"),
            ("é\x1b[31mé", "éé"),
        ] {
            let (text, positions) = bare(&[raw.as_bytes()]);
            assert_eq!(String::from_utf8(text.clone()).unwrap(), want, "{raw:?}");
            for (byte, at) in text.iter().zip(positions) {
                assert_eq!(raw.as_bytes()[usize::try_from(at).unwrap()], *byte);
            }
        }
    }

    #[test]
    fn a_sequence_that_never_ends_hides_no_more_than_its_cap() {
        let raw = format!("\x1b]{}needle", "x".repeat(STRING_CAP as usize + 10));
        assert!(bare(&[raw.as_bytes()]).0.ends_with(b"needle"));
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
        fn chunks_do_not_matter(raw in "[ab\x1b\\[\\]\r\n\x07;m\\\\é]{0,40}", cut in 0usize..40) {
            let raw = raw.as_bytes();
            let (one, two) = raw.split_at(cut.min(raw.len()));
            prop_assert_eq!(bare(&[one, two]), bare(&[raw]));
        }

        #[test]
        fn what_is_bare_stays_whole(mut raw: Vec<u8>) {
            let whole = raw.clone();
            if Bare::is_bare(&mut raw, false) {
                prop_assert_eq!(bare(&[&whole]).0, whole);
            }
        }
    }
}
