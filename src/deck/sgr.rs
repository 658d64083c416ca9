//! Colours in the words that every terminal knows. The library that draws names each of the sixteen colours in the way of
//! the 256, which a terminal that has sixteen does not know; the old way is shorter too.

use std::io::{self, Write};

/// The longest beginning of a sequence that is held back until the rest of it comes.
const LONGEST: usize = 64;

/// Passes on what is written, with the sixteen colours by their old numbers.
#[derive(Debug)]
pub struct Sixteen<W> {
    out: W,
    /// The beginning of a sequence at the end of what was written last.
    begun: Vec<u8>,
}

impl<W: Write> Sixteen<W> {
    pub const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for Sixteen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let (told, rest) = translated(&all);
        self.begun.extend_from_slice(rest);
        self.out.write_all(&told)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The text with its colours renamed, and the beginning of a sequence that is not whole yet.
fn translated(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        let parameters = from.get(2..).unwrap_or_default();
        let len = parameters.iter().take_while(|b| b.is_ascii_digit() || **b == b';').count();
        match (from.get(1), parameters.get(len)) {
            (None, _) => return (out, from),
            (Some(b'['), None) if from.len() < LONGEST => return (out, from),
            (Some(b'['), Some(b'm')) => {
                out.extend_from_slice(b"\x1b[");
                renamed(parameters.get(..len).unwrap_or_default(), &mut out);
                out.push(b'm');
                rest = parameters.get(len + 1..).unwrap_or_default();
            }
            _ => {
                out.push(0x1b);
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.extend_from_slice(rest);
    (out, &[])
}

/// The parameters of a sequence of colours.
fn renamed(parameters: &[u8], out: &mut Vec<u8>) {
    let words: Vec<&[u8]> = parameters.split(|b| *b == b';').collect();
    let mut rest = words.as_slice();
    let mut first = true;
    while let [word, others @ ..] = rest {
        if !std::mem::take(&mut first) {
            out.push(b';');
        }
        rest = match rest {
            [ground @ (b"38" | b"48"), b"5", number, more @ ..] => {
                let base = if *ground == b"38" { 30 } else { 40 };
                match std::str::from_utf8(number).ok().and_then(|n| n.parse::<u8>().ok()) {
                    Some(n @ 0..=7) => out.extend_from_slice((base + n).to_string().as_bytes()),
                    // The bright ones stand sixty further.
                    Some(n @ 8..=15) => out.extend_from_slice((base + 60 + n - 8).to_string().as_bytes()),
                    _ => out.extend_from_slice(&[ground, b"5".as_slice(), number].join(&b';')),
                }
                more
            }
            // Red, green and blue are no colours of their own.
            [ground @ (b"38" | b"48"), b"2", red, green, blue, more @ ..] => {
                out.extend_from_slice(&[ground, b"2".as_slice(), red, green, blue].join(&b';'));
                more
            }
            _ => {
                out.extend_from_slice(word);
                others
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn through(pieces: &[&[u8]]) -> String {
        let mut out = Sixteen::new(Vec::new());
        for piece in pieces {
            out.write_all(piece).unwrap();
        }
        String::from_utf8_lossy(&out.out).into_owned()
    }

    #[test]
    fn the_sixteen_colours_have_their_old_names_and_nothing_else_changes() {
        for (text, wanted) in [
            ("a\x1b[38;5;4;49mb", "a\x1b[34;49mb"),
            ("\x1b[38;5;9;48;5;15m", "\x1b[91;107m"),
            ("\x1b[1;38;5;0;7m", "\x1b[1;30;7m"),
            ("\x1b[38;5;16m\x1b[48;5;231m", "\x1b[38;5;16m\x1b[48;5;231m"),
            ("\x1b[38;2;5;5;5;48;5;1m", "\x1b[38;2;5;5;5;41m"),
            ("\x1b[m\x1b[0m\x1b[38;5m", "\x1b[m\x1b[0m\x1b[38;5m"),
            ("\x1b[38;5;4H\x1b[?25l\x1b]0;38;5;4m\x07\x1b7", "\x1b[38;5;4H\x1b[?25l\x1b]0;38;5;4m\x07\x1b7"),
        ] {
            assert_eq!(through(&[text.as_bytes()]), wanted, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn where_it_is_cut_makes_no_difference(
            parts in prop::collection::vec("(\x1b\\[(38;5;[0-9]{1,3}|1|0|48;5;7|38;5;3;49)?m|\x1b\\[[0-9]{1,2}H|[a-z;m]{1,3})", 0..8),
            at in any::<prop::sample::Index>(),
        ) {
            let text = parts.concat() + "\x1b[0m";
            let (one, two) = text.as_bytes().split_at(at.index(text.len()));
            prop_assert_eq!(through(&[one, two]), through(&[text.as_bytes()]));
        }
    }
}
