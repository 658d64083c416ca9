//! What was typed while the terminal was still being asked what it can do, as input. The library that reads keys reads
//! the terminal itself and takes no bytes, so the few kinds of keys that people type blindly are known here; sequences
//! of other keys are dropped whole, so that their letters do nothing.

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};

const PASTE: &[u8] = b"\x1b[200~";
const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// The input that these bytes are.
#[must_use]
pub fn input(bytes: &[u8]) -> Vec<Input> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (input, used) = first(rest);
        out.extend(input);
        rest = rest.get(used.max(1)..).unwrap_or_default();
    }
    out
}

fn key(code: KeyCode) -> Option<Input> {
    Some(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// The first input, and how many bytes it is made of.
fn first(bytes: &[u8]) -> (Option<Input>, usize) {
    if let Some(rest) = bytes.strip_prefix(PASTE) {
        let end = memchr::memmem::find(rest, END_OF_PASTE).unwrap_or(rest.len());
        let text = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
        return (Some(Input::Paste(text)), PASTE.len() + end + END_OF_PASTE.len());
    }
    match bytes {
        [0x1b, b'[' | b'O', rest @ ..] => {
            let parameters = rest.iter().take_while(|b| (0x20..0x40).contains(*b)).count();
            let code = match (rest.get(..parameters), rest.get(parameters)) {
                (Some(b""), Some(b'A')) => Some(KeyCode::Up),
                (Some(b""), Some(b'B')) => Some(KeyCode::Down),
                (Some(b""), Some(b'C')) => Some(KeyCode::Right),
                (Some(b""), Some(b'D')) => Some(KeyCode::Left),
                (Some(b""), Some(b'H')) | (Some(b"1"), Some(b'~')) => Some(KeyCode::Home),
                (Some(b""), Some(b'F')) | (Some(b"4"), Some(b'~')) => Some(KeyCode::End),
                (Some(b"5"), Some(b'~')) => Some(KeyCode::PageUp),
                (Some(b"6"), Some(b'~')) => Some(KeyCode::PageDown),
                _ => None,
            };
            (code.and_then(key), 2 + parameters + 1)
        }
        [0x1b] => (key(KeyCode::Esc), 1),
        // A key with alt, which means nothing here.
        [0x1b, _, ..] => (None, 2),
        [b'\r' | b'\n', ..] => (key(KeyCode::Enter), 1),
        [b'\t', ..] => (key(KeyCode::Tab), 1),
        [0x7f | 0x08, ..] => (key(KeyCode::Backspace), 1),
        [control @ 1..=26, ..] => {
            let letter = char::from(control + b'a' - 1);
            (Some(Input::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))), 1)
        }
        [0..=31, ..] => (None, 1),
        _ => {
            let whole = (1..=4).find_map(|n| std::str::from_utf8(bytes.get(..n)?).ok());
            match whole.and_then(|text| text.chars().next()) {
                Some(c) => (key(KeyCode::Char(c)), c.len_utf8()),
                None => (None, 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(bytes: &[u8]) -> Vec<String> {
        let of = |input: Input| match input {
            Input::Key(key) if key.modifiers == KeyModifiers::CONTROL => format!("ctrl {}", key.code),
            Input::Key(key) => key.code.to_string(),
            Input::Paste(text) => format!("paste {text}"),
            other => format!("{other:?}"),
        };
        input(bytes).into_iter().map(of).collect()
    }

    #[test]
    fn keys_that_people_type_blindly_are_known_and_others_do_nothing() {
        assert_eq!(told(b"vj\r\x1b[A\x1bOB\x03\xc3\xa9\x1b"), ["v", "j", "Enter", "Up", "Down", "ctrl c", "é", "Esc"]);
        assert_eq!(told(b"\x1b[1;5Cx\x1b[<0;3;4Mz\x1bqk"), ["x", "z", "k"]);
        assert_eq!(told(b"a\x1b[200~X\ny\x1b[201~b"), ["a", "paste X\ny", "b"]);
        assert_eq!(told(b"\x1b[200~never ended"), ["paste never ended"]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_trouble(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(input(&bytes).len() <= bytes.len());
        }
    }
}
