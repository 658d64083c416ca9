//! What the terminal sends, as input. Bytes are first cut into whole sequences, then each is read for itself: one that
//! nobody knows, such as the late answer to a question, is dropped whole, so that its letters do nothing.
//!
//! A sequence may come in pieces, and its first byte is a key of its own: whether more of it comes only time tells. How
//! long to wait is said here; whoever reads the terminal has the clock.

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};

const ESC: u8 = 0x1b;
const PASTE: &[u8] = b"\x1b[200~";
const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// A lone escape is the key when nothing follows for so long; terminals send the rest of a sequence together with it.
const LONE: Duration = Duration::from_millis(25);
/// The rest of a sequence that has begun may be late, as at the end of a slow line.
const BEGUN: Duration = Duration::from_millis(100);
/// So may the rest of a paste, which is long; what would come after it would be keys.
const PASTED: Duration = Duration::from_secs(5);
/// No sequence but a paste is longer: an answer that never ends is let go of.
const MOST: usize = 4096;

/// What was typed, as far as it came.
#[derive(Debug, Default)]
pub struct Typed {
    /// The beginning of a sequence whose rest has not come.
    open: Vec<u8>,
    /// Up to where the end of a paste was looked for.
    looked: usize,
    ready: VecDeque<Input>,
}

impl Typed {
    /// Takes bytes of the terminal.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        let mut done = 0;
        while let Some(rest) = self.open.get(done..).filter(|rest| !rest.is_empty()) {
            let Some(len) = whole(rest, &mut self.looked) else { break };
            self.ready.extend(rest.get(..len).and_then(input));
            done += len;
            self.looked = 0;
        }
        self.open.drain(..done);
        if self.open.len() > MOST && !self.open.starts_with(PASTE) {
            self.open.clear();
        }
    }

    /// The next input that came whole.
    pub fn next(&mut self) -> Option<Input> {
        self.ready.pop_front()
    }

    /// How long the rest of what has begun is waited for; `None` where nothing has.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        match self.open.as_slice() {
            [] => None,
            [ESC] => Some(LONE),
            open if open.starts_with(PASTE) => Some(PASTED),
            _ => Some(BEGUN),
        }
    }

    /// Nothing came for so long: what has begun was all of it.
    pub fn settle(&mut self) {
        self.looked = 0;
        let open = std::mem::take(&mut self.open);
        self.ready.extend(match open.as_slice() {
            [ESC] => Some(Input::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE))),
            // With alt, these begin what terminals send.
            [ESC, key] if key.is_ascii_graphic() => {
                Some(Input::Key(KeyEvent::new(KeyCode::Char(char::from(*key)), KeyModifiers::ALT)))
            }
            open => open.strip_prefix(PASTE).map(pasted),
        });
    }
}

fn pasted(text: &[u8]) -> Input {
    Input::Paste(String::from_utf8_lossy(text).into_owned())
}

/// How long the sequence is that these bytes begin with; `None` while more of it has to come. `looked` is up to where the
/// end of a paste was looked for already.
fn whole(bytes: &[u8], looked: &mut usize) -> Option<usize> {
    match bytes {
        [ESC, ESC, ..] => Some(1),
        [ESC] | [ESC, b'['] => None,
        [ESC, b'[', b'[', rest @ ..] => rest.first().map(|_| 4),
        // Three bytes of any kind follow: a button and where it was.
        [ESC, b'[', b'M', rest @ ..] => rest.get(2).map(|_| 6),
        [ESC, b'[' | b'O', rest @ ..] => {
            if bytes.starts_with(PASTE) {
                let from = (*looked).max(PASTE.len());
                let end = memchr::memmem::find(bytes.get(from..)?, END_OF_PASTE);
                *looked = bytes.len().saturating_sub(END_OF_PASTE.len());
                return end.map(|at| from + at + END_OF_PASTE.len());
            }
            let inner = rest.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
            // What cannot be part of a sequence ends it, and is for itself.
            rest.get(inner).map(|last| 2 + inner + usize::from((0x40..0x7f).contains(last)))
        }
        // Texts of the terminal end with ST, those of the first kind with BEL too.
        [ESC, kind @ (b']' | b'P' | b'X' | b'^' | b'_'), rest @ ..] => {
            let end = rest.iter().position(|byte| *byte == ESC || (*byte == 0x07 && *kind == b']'))?;
            match rest.get(end..)? {
                [ESC] => None,
                [ESC, b'\\', ..] => Some(2 + end + 2),
                [ESC, ..] => Some(2 + end),
                _ => Some(2 + end + 1),
            }
        }
        [ESC, rest @ ..] => character(rest).map(|len| 1 + len),
        _ => character(bytes),
    }
}

/// How long the character is that these bytes begin with; a byte that begins none is one for itself.
fn character(bytes: &[u8]) -> Option<usize> {
    let len = match bytes.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let more = bytes.iter().skip(1).take(len - 1).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    if more == len - 1 {
        Some(len)
    } else if bytes.len() > 1 + more {
        Some(1)
    } else {
        None
    }
}

/// What a whole sequence says; nothing where nobody knows it.
fn input(sequence: &[u8]) -> Option<Input> {
    match sequence {
        // Texts of the terminal, which answer something.
        [ESC, b']' | b'P' | b'X' | b'^' | b'_', _, ..] => return None,
        // Where the cursor is. A terminal that is asked to tell keys apart does not write F3 so.
        [ESC, b'[', b'0'..=b'9', .., b'R'] => return None,
        _ if sequence.starts_with(PASTE) => {
            return sequence.strip_prefix(PASTE)?.strip_suffix(END_OF_PASTE).map(pasted);
        }
        _ => {}
    }
    terminput::Event::parse_from(sequence)
        .ok()
        .flatten()
        .and_then(|event| terminput_crossterm::to_crossterm(event).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(typed: &mut Typed) -> Vec<String> {
        let of = |input: Input| match input {
            Input::Key(key) if key.modifiers == KeyModifiers::CONTROL => format!("ctrl {}", key.code),
            Input::Key(key) if key.modifiers == KeyModifiers::ALT => format!("alt {}", key.code),
            Input::Key(key) => key.code.to_string(),
            Input::Paste(text) => format!("paste {text}"),
            Input::Mouse(mouse) => format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row),
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| typed.next()).map(of).collect()
    }

    /// What these bytes are when they come together and nothing follows.
    fn told(bytes: &[u8]) -> Vec<String> {
        let mut typed = Typed::default();
        typed.feed(bytes);
        typed.settle();
        names(&mut typed)
    }

    #[test]
    fn keys_are_known_however_the_terminal_writes_them() {
        assert_eq!(told(b"vj\r\t\x7f\x03\xc3\xa9"), ["v", "j", "Enter", "Tab", "Backspace", "ctrl c", "é"]);
        assert_eq!(told(b"\x1b[A\x1bOB\x1b[5~\x1b[H\x1bOP\x1b[[A"), ["Up", "Down", "Page Up", "Home", "F1", "F1"]);
        assert_eq!(told(b"\x1b[27u\x1b[106u\x1b[99;5u\x1b[1;5A"), ["Esc", "j", "ctrl c", "ctrl Up"]);
        assert_eq!(told(b"\x1b[<0;3;4M\x1b[<64;1;1M"), ["Down(Left) 2 3", "ScrollUp 0 0"]);
        assert_eq!(told(b"\x1b[I\x1b[O"), ["FocusGained", "FocusLost"]);
        assert_eq!(told(b"\x1bq\x1b\xc3\xa9k"), ["alt q", "alt é", "k"]);
    }

    #[test]
    fn an_escape_is_a_key_only_when_nothing_of_a_sequence_follows() {
        let mut typed = Typed::default();
        typed.feed(b"\x1b");
        assert_eq!((typed.next(), typed.patience()), (None, Some(LONE)));
        typed.feed(b"[<0;35");
        assert_eq!((typed.next(), typed.patience()), (None, Some(BEGUN)));
        typed.feed(b";12M");
        assert_eq!((names(&mut typed), typed.patience()), (vec!["Down(Left) 34 11".to_owned()], None));
        typed.feed(b"\x1b");
        typed.settle();
        typed.feed(b"x");
        assert_eq!(names(&mut typed), ["Esc", "x"]);
        assert_eq!(told(b"\x1b\x1b"), ["Esc", "Esc"]);
        assert_eq!(told(b"\x1b\x1b[A"), ["Esc", "Up"]);
        assert_eq!([told(b"\x1b["), told(b"\x1bO"), told(b"\x1b]")], [["alt ["], ["alt O"], ["alt ]"]]);
    }

    #[test]
    fn what_a_terminal_answers_does_nothing_whenever_it_comes() {
        let answers: [&[u8]; 7] = [
            b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
            b"\x1b]11;rgb:ff/ff/f0\x07",
            b"\x1b[?62;22c",
            b"\x1b[?2026;2$y",
            b"\x1bP1$r0 q\x1b\\",
            b"\x1b[?1u",
            b"\x1b[12;40R",
        ];
        for answer in answers {
            assert_eq!(told(&[b"a", answer, b"b"].concat()), ["a", "b"], "{answer:?}");
            for cut in 1..answer.len() {
                let mut typed = Typed::default();
                typed.feed(&answer[..cut]);
                typed.feed(&answer[cut..]);
                assert_eq!(typed.patience(), None, "{answer:?} {cut}");
                typed.feed(b"b");
                assert_eq!(names(&mut typed), ["b"], "{answer:?} {cut}");
            }
        }
        // One that breaks off is let go of, and what follows is for itself.
        assert_eq!(told(b"\x1b]11;rgb:1e"), Vec::<String>::new());
        assert_eq!(told(b"\x1b]11;rgb:1e\x1b[A"), ["Up"]);
        assert_eq!(told(b"\x1b[12;\rx"), ["Enter", "x"]);
        let mut typed = Typed::default();
        typed.feed(&[b"\x1b]", &[b'x'; MOST][..]].concat());
        assert_eq!((typed.next(), typed.patience()), (None, None));
    }

    #[test]
    fn a_paste_is_one_input_in_however_many_pieces_it_comes() {
        assert_eq!(told(b"a\x1b[200~X\ny\x1b[201~b"), ["a", "paste X\ny", "b"]);
        assert_eq!(told(b"\x1b[200~a \x1b[A key\x1b[201~"), ["paste a \x1b[A key"]);
        assert_eq!(told(b"\x1b[200~never ended"), ["paste never ended"]);
        let all = b"\x1b[200~one\ntwo\x1b[201~j";
        let mut typed = Typed::default();
        for byte in all {
            typed.feed(&[*byte]);
        }
        assert_eq!(names(&mut typed), ["paste one\ntwo", "j"]);
    }

    #[test]
    fn half_a_character_waits_for_the_rest() {
        let mut typed = Typed::default();
        typed.feed(b"\xe6\x97");
        assert_eq!((typed.next(), typed.patience()), (None, Some(BEGUN)));
        typed.feed(b"\xa5\xff\xc3j");
        assert_eq!(names(&mut typed), ["日", "j"]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_trouble_and_pieces_are_as_good_as_the_whole(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(ESC), Just(b'['), Just(b'~')], 0..60),
            cut in 0_usize..60,
        ) {
            let mut typed = Typed::default();
            let cut = cut.min(bytes.len());
            typed.feed(&bytes[..cut]);
            typed.feed(&bytes[cut..]);
            typed.settle();
            let pieces = names(&mut typed);
            prop_assert!(pieces.len() <= bytes.len());
            prop_assert_eq!(pieces, told(&bytes));
        }
    }
}
