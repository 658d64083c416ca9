//! Questions to the terminal, asked once before the first frame and before anybody reads keys.
//!
//! A reply that comes late is dropped by whoever reads the keys, but nobody should wait for one that does not come: only
//! a terminal that has just told its device attributes is asked anything else. The last question is the same one again,
//! and all replies come in order, so with its reply all are there.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A terminal that is there answers within this time; one at the end of a slow line is not asked anything else.
const FIRST: Duration = Duration::from_millis(100);
/// One that answered once has this long for the other answers.
const SECOND: Duration = Duration::from_secs(1);
/// More than all replies together.
const MOST: usize = 4096;

const ATTRIBUTES: &[u8] = b"\x1b[c";
const BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";
const SYNCHRONIZED: &[u8] = b"\x1b[?2026$p";

/// What the terminal said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Its background is light.
    pub light: Option<bool>,
    /// It holds a frame back until all of it is there (mode 2026).
    pub synchronized: Option<bool>,
    /// What was typed meanwhile: everything that was read and is no answer.
    pub typed: Vec<u8>,
}

/// Asks; `background` says whether its colour is wanted. In raw mode only.
///
/// # Errors
/// When the terminal cannot be written.
pub fn ask(out: &mut impl Write, background: bool) -> io::Result<Answers> {
    out.write_all(ATTRIBUTES)?;
    out.flush()?;
    let first = listen(FIRST);
    let mut typed = without_answers(&first);
    if !has_attributes(&first) {
        return Ok(Answers { typed, ..Answers::default() });
    }
    let background = if background { BACKGROUND } else { &[] };
    out.write_all(&[background, SYNCHRONIZED, ATTRIBUTES].concat())?;
    out.flush()?;
    let second = listen(SECOND);
    typed.extend(without_answers(&second));
    Ok(Answers { typed, ..understand(&second) })
}

/// The bytes that are not of an answer to any of the questions.
fn without_answers(heard: &[u8]) -> Vec<u8> {
    let mut typed = Vec::new();
    let mut rest = heard;
    while let Some((first, after)) = rest.split_first() {
        match answer_len(rest) {
            0 => {
                typed.push(*first);
                rest = after;
            }
            len => rest = rest.get(len..).unwrap_or_default(),
        }
    }
    typed
}

/// How long the answer is that these bytes begin with; 0 when they begin with none.
fn answer_len(bytes: &[u8]) -> usize {
    if let Some(rest) = bytes.strip_prefix(b"\x1b[?") {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b';').count();
        return match rest.get(digits..) {
            Some([b'c', ..]) => 3 + digits + 1,
            Some([b'$', b'y', ..]) => 3 + digits + 2,
            _ => 0,
        };
    }
    let Some(rest) = bytes.strip_prefix(b"\x1b]11;") else { return 0 };
    let text = rest.iter().take_while(|b| b.is_ascii_graphic() && **b != 0x1b).count();
    match rest.get(text..) {
        Some([0x07, ..]) => 5 + text + 1,
        Some([0x1b, b'\\', ..]) => 5 + text + 2,
        _ => 0,
    }
}

/// Reads until the device attributes have come, or the time is over.
fn listen(time: Duration) -> Vec<u8> {
    let deadline = Instant::now() + time;
    let stdin = io::stdin();
    let mut heard = Vec::new();
    while !has_attributes(&heard) && heard.len() < MOST {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { break };
        let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(n) if n > 0 => {}
            _ => break,
        }
        let mut chunk = [0; 256];
        match rustix::io::read(stdin.as_fd(), &mut chunk) {
            Ok(n) if n > 0 => heard.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    heard
}

/// Whether `CSI ? ... c` is among the bytes.
fn has_attributes(heard: &[u8]) -> bool {
    let replies = starts(heard, b"\x1b[?");
    replies.into_iter().any(|rest| rest.iter().find(|b| !(b.is_ascii_digit() || **b == b';')) == Some(&b'c'))
}

/// What follows each place where a prefix stands.
fn starts<'a>(heard: &'a [u8], prefix: &[u8]) -> Vec<&'a [u8]> {
    let places = memchr::memmem::find_iter(heard, prefix);
    places.filter_map(|at| heard.get(at + prefix.len()..)).collect()
}

fn understand(heard: &[u8]) -> Answers {
    // 1 and 2 are set and not set, 3 is always set; 0 is not known and 4 can never be set.
    let mode = starts(heard, b"\x1b[?2026;").into_iter().find_map(|rest| match rest {
        [state, b'$', b'y', ..] => Some(matches!(state, b'1' | b'2' | b'3')),
        _ => None,
    });
    let light = starts(heard, b"\x1b]11;rgb:").into_iter().find_map(luminance).map(|l| l > 0.5);
    Answers { light, synchronized: Some(mode.unwrap_or(false)), typed: Vec::new() }
}

/// The luminance, 0 to 1, of `RRRR/GGGG/BBBB` with one to four digits each.
fn luminance(rest: &[u8]) -> Option<f64> {
    let end = rest.iter().position(|b| !(b.is_ascii_hexdigit() || *b == b'/'))?;
    let text = std::str::from_utf8(rest.get(..end)?).ok()?;
    let mut channels = text.split('/').map(|digits| {
        let most = 16_f64.powi(i32::try_from(digits.len()).ok().filter(|n| (1..=4).contains(n))?) - 1.0;
        Some(f64::from(u16::from_str_radix(digits, 16).ok()?) / most)
    });
    let mut next = || channels.next().flatten();
    Some(0.2126 * next()? + 0.7152 * next()? + 0.0722 * next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_between_the_answers_is_kept() {
        for (heard, typed) in [
            (&b"v\x1b[?62;22cz"[..], &b"vz"[..]),
            (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\j\x1b[?2026;2$y\x1b[A\x1b[?62;22c", b"j\x1b[A"),
            (b"\x1b]11;rgb:ff/ff/f0\x07\xc3\xa9", b"\xc3\xa9"),
            (b"\x1b", b"\x1b"),
            (b"\x1b[?62", b"\x1b[?62"),
        ] {
            assert_eq!(without_answers(heard), typed, "{heard:?}");
        }
    }

    #[test]
    fn replies_are_understood_and_nothing_else_is() {
        let dark = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?2026;2$y\x1b[?62;22c";
        assert!(has_attributes(dark));
        assert_eq!(understand(dark), Answers { light: Some(false), synchronized: Some(true), ..Answers::default() });
        let light = b"\x1b]11;rgb:ff/ff/f0\x07\x1b[?2026;0$y\x1b[?1;2c";
        assert_eq!(understand(light), Answers { light: Some(true), synchronized: Some(false), ..Answers::default() });
        let plain = b"\x1b[?6c";
        assert!(has_attributes(plain));
        assert_eq!(understand(plain), Answers { synchronized: Some(false), ..Answers::default() });
        for odd in [&b""[..], b"q", b"\x1b[?62;", b"\x1b[?1u", b"\x1b[A", b"\x1b]11;rgb:zz", b"\x1b[?2026;2$y"] {
            assert!(!has_attributes(odd), "{odd:?}");
        }
        for odd in
            [&b"\x1b]11;rgb:\x07"[..], b"\x1b]11;rgb:1/2\x07", b"\x1b]11;rgb:12345/1/1\x07", b"\x1b]11;rgb:ff/ff/ff"]
        {
            assert_eq!(understand(odd).light, None, "{odd:?}");
        }
    }
}
