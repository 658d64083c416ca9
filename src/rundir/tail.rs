//! Reading the new whole lines of a file that others append to.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::open;

/// How many bytes are read at most in one look, so that a long log does not keep a screen from being drawn.
const PIECE: u64 = 4 * 1024 * 1024;
/// As many in the first look, so that the first picture does not wait for what happened long ago.
const FIRST_PIECE: u64 = 256 * 1024;
/// The beginning of a line whose end is not there yet is kept up to this many bytes; a longer one is read again once
/// its end is known, so that it never takes more room than it has bytes.
const KEPT: usize = 256 * 1024;
/// A line beyond this many bytes is skipped; the largest record of a child is 16 MiB and its annotation.
const LONGEST: u64 = 20 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// The file is shorter than before or another one: it is read from its start again.
    pub(super) restarted: bool,
    /// There is more.
    pub(super) behind: bool,
    /// The file was there and is not any more.
    pub(super) gone: bool,
}

/// Reads a growing file line by line.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    offset: u64,
    /// Where it is read from when it is read anew.
    begin: u64,
    /// How long it was at the last look.
    len: u64,
    /// The beginning of a line whose end is not there yet, unless it is too long to be kept.
    partial: Vec<u8>,
    /// How many bytes of that line there are.
    partial_len: u64,
    bad: u64,
    failed: Option<Box<str>>,
}

impl Tail {
    /// The file at this path, which need not exist yet.
    pub(super) fn new(path: PathBuf) -> Self {
        let partial = Vec::new();
        Self { path, file: None, offset: 0, begin: 0, len: 0, partial, partial_len: 0, bad: 0, failed: None }
    }

    /// The same from the beginning of a line on.
    pub(super) fn from(path: PathBuf, offset: u64) -> Self {
        Self { offset, begin: offset, ..Self::new(path) }
    }

    /// How many lines could not be read.
    pub(super) const fn bad_lines(&self) -> u64 {
        self.bad
    }

    /// Gives each new whole line and where it begins to `take`, which says whether it could be read.
    pub(super) fn read(&mut self, take: impl FnMut(u64, &[u8]) -> bool) -> Piece {
        self.read_on(if self.offset == 0 { FIRST_PIECE } else { PIECE }, take)
    }

    /// The same with at most this many bytes.
    pub(super) fn read_on(&mut self, most: u64, take: impl FnMut(u64, &[u8]) -> bool) -> Piece {
        self.read_by(most, take, File::read_at)
    }

    fn read_by(
        &mut self,
        most: u64,
        mut take: impl FnMut(u64, &[u8]) -> bool,
        read_at: impl Fn(&File, &mut [u8], u64) -> io::Result<usize>,
    ) -> Piece {
        // A mark of the byte order at the very beginning is none of the first line.
        let mut take = |start: u64, line: &[u8]| match line.strip_prefix(BOM).filter(|_| start == 0) {
            Some(line) => take(BOM.len() as u64, line),
            None => take(start, line),
        };
        let mut piece = Piece::default();
        let meta = match std::fs::symlink_metadata(&self.path) {
            Ok(meta) => meta,
            Err(error) => {
                piece.gone = error.kind() == io::ErrorKind::NotFound && self.file.is_some();
                return piece;
            }
        };
        if self.file.as_ref().is_none_or(|(_, inode)| *inode != meta.ino()) {
            let Ok(file) = open::regular(&self.path) else { return piece };
            piece.restarted = self.file.is_some();
            self.file = Some((file, meta.ino()));
            self.restart();
        }
        if self.is_cut_at_its_torn_line(meta.len()) {
            // What stands before it was given already, and is as it was.
            self.offset = self.place();
            self.partial.clear();
            self.partial_len = 0;
        } else if meta.len() < self.offset {
            piece.restarted = true;
            self.restart();
        }
        self.len = meta.len();
        if self.len < self.offset {
            return piece;
        }
        let Some((file, _)) = &self.file else { return piece };
        // What is read from its start again is as new as it was at the first look, and no picture waits for all of it.
        let most = if piece.restarted { most.min(FIRST_PIECE) } else { most };
        let end = meta.len().min(self.offset.saturating_add(most));
        piece.behind = end < meta.len();
        let mut failed = None;
        let mut buffer = vec![0; usize::try_from((end - self.offset).min(256 * 1024)).unwrap_or(0)];
        while self.offset < end {
            let many = usize::try_from(end - self.offset).unwrap_or(usize::MAX).min(buffer.len());
            let Some(window) = buffer.get_mut(..many) else { break };
            let read = match read_at(file, window, self.offset) {
                // It is shorter by now: the next look finds out.
                Ok(0) => {
                    piece.behind = false;
                    break;
                }
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Nobody waits for what cannot be read; the next look tries again.
                Err(error) => {
                    piece.behind = false;
                    failed = Some(error.to_string().into());
                    break;
                }
            };
            let mut rest = window.get(..read).unwrap_or_default();
            while let Some(feed) = memchr::memchr(b'\n', rest) {
                let (line, after) = rest.split_at(feed);
                rest = after.get(1..).unwrap_or_default();
                let whole = self.partial_len + line.len() as u64;
                let end = self.offset + (read - rest.len() - 1) as u64;
                let start = end.saturating_sub(whole);
                let good = if self.partial_len == 0 {
                    take(start, line)
                } else if whole > LONGEST {
                    false
                } else if self.partial.len() as u64 == self.partial_len {
                    self.partial.extend_from_slice(line);
                    take(start, &self.partial)
                } else {
                    again(file, start, whole).is_some_and(|line| take(start, &line))
                };
                self.bad += u64::from(!good);
                self.partial.clear();
                self.partial_len = 0;
            }
            self.partial_len += rest.len() as u64;
            if self.partial_len <= KEPT as u64 {
                self.partial.extend_from_slice(rest);
            } else {
                self.partial = Vec::new();
            }
            self.offset += read as u64;
        }
        self.failed = failed;
        piece
    }

    /// Why the file could not be read on at the last look, if it could not.
    pub(super) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Whether a file that is so long now was cut where its last, torn line began, and whatever followed came later: its
    /// writer was killed in the middle of it. What is cut elsewhere is another file.
    fn is_cut_at_its_torn_line(&self, len: u64) -> bool {
        if self.partial_len == 0 || len < self.place() {
            return false;
        }
        let Some((file, _)) = &self.file else { return false };
        let place = self.place();
        let whole = place == 0 || again(file, place - 1, 1).is_some_and(|byte| byte == b"\n");
        whole && (len < self.offset || len > self.len && self.partial_is_gone())
    }

    /// Whether the beginning of a line that was read is not there any more. Of one that is too long to be kept nobody
    /// knows.
    fn partial_is_gone(&self) -> bool {
        if self.partial.is_empty() || self.partial.len() as u64 != self.partial_len {
            return false;
        }
        let Some((file, _)) = &self.file else { return false };
        again(file, self.offset - self.partial_len, self.partial_len).is_none_or(|bytes| bytes != self.partial)
    }

    fn restart(&mut self) {
        self.offset = self.begin;
        self.partial.clear();
        self.partial_len = 0;
        self.bad = 0;
    }

    /// Where the first line begins that was not given yet.
    pub(super) const fn place(&self) -> u64 {
        self.offset.saturating_sub(self.partial_len)
    }

    /// How far the file was read, and how long it was at the last look, in bytes.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.offset, self.len)
    }
}

/// The whole lines among the last bytes of a file, as they are now.
pub(super) fn newest(path: &Path, most: u64) -> Vec<u8> {
    let Ok(file) = open::regular(path) else { return Vec::new() };
    let len = file.metadata().map_or(0, |meta| meta.len());
    let from = len.saturating_sub(most);
    let Some(mut bytes) = again(&file, from, len - from) else { return Vec::new() };
    // In the middle of a line nothing begins.
    let mark = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
    let begin = if from == 0 { mark } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1) };
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    bytes.drain(..begin.min(bytes.len()));
    bytes
}

/// A part of a file that was seen before; `None` when it is not there any more.
fn again(file: &File, from: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    file.read_exact_at(&mut bytes, from).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn lines(tail: &mut Tail) -> (Vec<String>, Piece) {
        let mut lines = Vec::new();
        let piece = tail.read(|_, line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            line != b"bad"
        });
        (lines, piece)
    }

    #[test]
    fn of_a_file_that_was_cut_only_the_first_lines_are_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut tail = Tail::new(path.clone());
        fs::write(&path, "a line of twenty bytes\n".repeat(100_000)).unwrap();
        while lines(&mut tail).1.behind {}
        let half = 50_000 * "a line of twenty bytes\n".len() as u64;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(half).unwrap();
        let (first, piece) = lines(&mut tail);
        assert!(piece.restarted && piece.behind && first.len() < 20_000, "{} {piece:?}", first.len());
        let (rest, piece) = lines(&mut tail);
        assert_eq!((first.len() + rest.len(), piece), (50_000, Piece::default()));
    }

    #[test]
    fn a_torn_line_that_the_next_writer_cut_off_is_forgotten() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut tail = Tail::new(path.clone());
        fs::write(&path, "one\ntor").unwrap();
        assert_eq!(lines(&mut tail).0, ["one"]);
        let log = crate::rundir::EventLog::open(&path, u64::MAX).unwrap();
        log.append(b"a line that is longer\n").unwrap();
        // What stands before it is given once.
        assert_eq!(lines(&mut tail), (vec!["a line that is longer".to_owned()], Piece::default()));
        // Also where it was cut off and nothing follows yet.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"torn again").unwrap();
        assert!(lines(&mut tail).0.is_empty());
        drop(log);
        let log = crate::rundir::EventLog::open(&path, u64::MAX).unwrap();
        assert_eq!(lines(&mut tail), (Vec::new(), Piece::default()));
        log.append(b"x\n").unwrap();
        assert_eq!(lines(&mut tail), (vec!["x".to_owned()], Piece::default()));
        assert_eq!(tail.bad_lines(), 0);
        // What is cut in the middle of what was given begins anew.
        fs::write(&path, "other\n").unwrap();
        assert_eq!(lines(&mut tail), (vec!["other".to_owned()], Piece { restarted: true, ..Piece::default() }));
    }

    #[test]
    fn what_cannot_be_read_is_told_and_not_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        fs::write(&path, "one\ntwo\n").unwrap();
        let mut tail = Tail::new(path);
        let broken = |_: &File, _: &mut [u8], _: u64| Err(io::Error::from_raw_os_error(5));
        assert_eq!(tail.read_by(4, |_, _| true, broken), Piece::default());
        assert!(tail.failed().unwrap().contains("os error 5"), "{:?}", tail.failed());
        assert_eq!(tail.read_by(4, |_, _| true, |_, _, _| Ok(0)), Piece::default());
        assert_eq!((lines(&mut tail).0, tail.failed()), (vec!["one".to_owned(), "two".to_owned()], None));
    }

    #[test]
    fn torn_lines_wait_and_a_cut_file_begins_again() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut tail = Tail::new(path.clone());
        assert_eq!(lines(&mut tail).0, Vec::<String>::new());
        fs::write(&path, "one\nbad\ntw").unwrap();
        assert_eq!(lines(&mut tail), (vec!["one".into(), "bad".into()], Piece::default()));
        assert_eq!(tail.bad_lines(), 1);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"o\n").unwrap();
        assert_eq!(lines(&mut tail).0, ["two"]);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(lines(&mut tail), (vec!["new".into()], Piece { restarted: true, ..Piece::default() }));
    }

    #[test]
    fn a_mark_of_the_byte_order_is_none_of_the_first_line() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        fs::write(&path, "\u{feff}one\n\u{feff}two\n").unwrap();
        let mut tail = Tail::new(path);
        let mut found = Vec::new();
        tail.read(|start, line| {
            found.push((start, String::from_utf8_lossy(line).into_owned()));
            true
        });
        assert_eq!(found, [(3, "one".to_owned()), (7, "\u{feff}two".to_owned())]);
        assert_eq!(newest(&temp.path().join("events.jsonl"), 100), "one\n\u{feff}two\n".as_bytes());
    }

    #[test]
    fn a_long_file_is_read_in_pieces_and_a_giant_line_is_skipped() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut text = "x".repeat(LONGEST as usize + 10);
        text.push_str("\nend\n");
        fs::write(&path, text).unwrap();
        let mut tail = Tail::new(path);
        let mut pieces = 0;
        let found = loop {
            let (found, piece) = lines(&mut tail);
            pieces += 1;
            if !piece.behind {
                break found;
            }
        };
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [3]);
        assert_eq!((pieces, tail.bad_lines()), (LONGEST / PIECE + 1, 1));
        assert!(tail.partial.capacity() <= 512 * 1024);
    }

    #[test]
    fn a_long_line_is_given_whole_and_the_newest_lines_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let long = "y".repeat(9 * 1024 * 1024);
        fs::write(&path, format!("one\n{long}\nlast\ntorn")).unwrap();
        let mut tail = Tail::new(path.clone());
        let (first, piece) = lines(&mut tail);
        assert_eq!((first, piece.behind), (vec!["one".to_owned()], true));
        assert_eq!(newest(&path, 20), b"last\n");
        assert_eq!(tail.progress(), (FIRST_PIECE, long.len() as u64 + 14));
        let mut rest = Vec::new();
        loop {
            let (found, piece) = lines(&mut tail);
            rest.extend(found);
            assert!(tail.partial.capacity() <= 2 * KEPT);
            if !piece.behind {
                break;
            }
        }
        assert_eq!((rest.len(), rest[0] == long, rest[1].as_str()), (2, true, "last"));
    }

    proptest! {
        #[test]
        fn however_the_bytes_come_the_lines_are_the_same(text in "[a\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..5)) {
            let temp = tempfile::tempdir().unwrap();
            let path = temp.path().join("f");
            let mut file = fs::File::create(&path).unwrap();
            let mut tail = Tail::new(path);
            let (mut found, mut starts) = (Vec::new(), Vec::new());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).chain([text.len()]).collect();
            cuts.sort_unstable();
            let mut from = 0;
            for to in cuts {
                file.write_all(&text.as_bytes()[from..to]).unwrap();
                tail.read(|start, line| {
                    starts.push(usize::try_from(start).unwrap());
                    found.push(String::from_utf8_lossy(line).into_owned());
                    true
                });
                from = to;
            }
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let want: Vec<&str> = if text.contains('\n') { whole.split('\n').collect() } else { vec![] };
            let from_there = |(line, start): (&String, &usize)| text[*start..].strip_prefix(line.as_str()).is_some_and(|rest| rest.starts_with('\n'));
            prop_assert!(found.iter().zip(&starts).all(from_there));
            prop_assert_eq!(found, want);
        }
    }
}
