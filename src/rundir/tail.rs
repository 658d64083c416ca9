//! Reading the new whole lines of a file that others append to.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::open;

/// How many bytes are read at most in one look, so that a long log does not keep a screen from being drawn.
const PIECE: u64 = 4 * 1024 * 1024;
/// A line beyond this many bytes is skipped; the largest record of a child is 16 MiB and its annotation.
const LONGEST: usize = 20 * 1024 * 1024;

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// The file is shorter than before or another one: it is read from its start again.
    pub(super) restarted: bool,
    /// There is more.
    pub(super) behind: bool,
}

/// Reads a growing file line by line.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    offset: u64,
    /// Where the line that is being read begins.
    start: u64,
    /// The beginning of a line whose end is not there yet.
    partial: Vec<u8>,
    /// The line that is being read is too long and is dropped up to its end.
    skipping: bool,
    bad: u64,
}

impl Tail {
    /// The file at this path, which need not exist yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, offset: 0, start: 0, partial: Vec::new(), skipping: false, bad: 0 }
    }

    /// How many lines could not be read.
    pub(super) const fn bad_lines(&self) -> u64 {
        self.bad
    }

    /// Gives each new whole line and where it begins to `take`, which says whether it could be read.
    pub(super) fn read(&mut self, mut take: impl FnMut(u64, &[u8]) -> bool) -> Piece {
        let mut piece = Piece::default();
        let Ok(meta) = std::fs::symlink_metadata(&self.path) else { return piece };
        if self.file.as_ref().is_none_or(|(_, inode)| *inode != meta.ino()) {
            let Ok(file) = open::regular(&self.path) else { return piece };
            piece.restarted = self.file.is_some();
            self.file = Some((file, meta.ino()));
            self.restart();
        }
        if meta.len() < self.offset {
            piece.restarted = true;
            self.restart();
        }
        let Some((file, _)) = &self.file else { return piece };
        let end = meta.len().min(self.offset + PIECE);
        piece.behind = end < meta.len();
        let mut buffer = vec![0; usize::try_from((end - self.offset).min(256 * 1024)).unwrap_or(0)];
        while self.offset < end {
            let many = usize::try_from(end - self.offset).unwrap_or(usize::MAX).min(buffer.len());
            let Some(window) = buffer.get_mut(..many) else { break };
            let read = match file.read_at(window, self.offset) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            self.offset += read as u64;
            let mut rest = window.get(..read).unwrap_or_default();
            while let Some(feed) = memchr::memchr(b'\n', rest) {
                let (line, after) = rest.split_at(feed);
                rest = after.get(1..).unwrap_or_default();
                let start = std::mem::replace(&mut self.start, self.offset - rest.len() as u64);
                let good = if self.skipping || self.partial.len() + line.len() > LONGEST {
                    false
                } else if self.partial.is_empty() {
                    take(start, line)
                } else {
                    self.partial.extend_from_slice(line);
                    take(start, &self.partial)
                };
                self.bad += u64::from(!good);
                self.partial.clear();
                // One long line is no reason to keep its room for good.
                self.partial.shrink_to(256 * 1024);
                self.skipping = false;
            }
            if self.partial.len() + rest.len() > LONGEST {
                self.skipping = true;
                self.partial = Vec::new();
            }
            if !self.skipping {
                self.partial.extend_from_slice(rest);
            }
        }
        piece
    }

    fn restart(&mut self) {
        self.offset = 0;
        self.start = 0;
        self.partial.clear();
        self.skipping = false;
        self.bad = 0;
    }
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
        assert_eq!(lines(&mut tail), (vec!["new".into()], Piece { restarted: true, behind: false }));
    }

    #[test]
    fn a_long_file_is_read_in_pieces_and_a_giant_line_is_skipped() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut text = "x".repeat(LONGEST + 10);
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
        assert_eq!((pieces, tail.bad_lines()), (LONGEST as u64 / PIECE + 1, 1));
        assert!(tail.partial.capacity() <= 512 * 1024);
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
