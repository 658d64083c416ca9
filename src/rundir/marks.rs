//! `output-<flat>.marks`: when, on which stream and in which attempt the bytes of an output log came
//! (run-directory 3.9).
//!
//! For an agent one log holds everything and offsets count in it. For a plain command each stream has its own file and
//! the offset of a mark counts in the file of the mark's stream.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::run::{Stream, Timestamp};

/// The header: a word and the version.
const HEADER: [u8; 16] = *b"SUBDECKMARKS\x01\0\0\0";
/// How many bytes a mark has.
const SIZE: u64 = 24;
/// After this time a mark is made even when nothing changed, so that times are known to a quarter of a
/// second.
const EVERY: Duration = Duration::from_millis(250);

/// From here on the log's bytes came at this time, on this stream, in this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The position in the log in bytes.
    pub offset: u64,
    /// When, in whole milliseconds since the epoch.
    pub at: Timestamp,
    /// On which stream.
    pub stream: Stream,
    /// In which attempt, from 1; 255 stands for that and all later ones.
    pub attempt: u8,
}

impl Mark {
    fn encode(self) -> [u8; SIZE as usize] {
        let mut bytes = [0; SIZE as usize];
        let ms = u64::try_from(self.at.millis()).unwrap_or(0);
        let stream = match self.stream {
            Stream::Out => 0,
            Stream::Err => 1,
            Stream::Own => 2,
        };
        let fields = self.offset.to_le_bytes().into_iter().chain(ms.to_le_bytes()).chain([stream, self.attempt]);
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }

    fn decode(bytes: &[u8; SIZE as usize]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk::<8>()?;
        let (ms, rest) = rest.split_first_chunk::<8>()?;
        let [stream, attempt, ..] = rest else { return None };
        Some(Self {
            offset: u64::from_le_bytes(*offset),
            at: Timestamp::from_millis(i64::try_from(u64::from_le_bytes(*ms)).ok()?),
            stream: match stream {
                0 => Stream::Out,
                1 => Stream::Err,
                _ => Stream::Own,
            },
            attempt: *attempt,
        })
    }
}

/// Writes marks as bytes arrive.
#[derive(Debug)]
pub struct MarkWriter {
    file: File,
    last: Option<Mark>,
}

impl MarkWriter {
    /// Opens the marks of a log, mode 0600, and makes them when there are none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = super::open::append(path)?;
        let size = file.metadata()?.len();
        if size < HEADER.len() as u64 {
            file.set_len(0)?;
            file.write_all(&HEADER)?;
        } else {
            // A writer that was killed in the middle of a mark must not shift the ones to come.
            let torn = size.saturating_sub(HEADER.len() as u64) % SIZE;
            if torn != 0 {
                file.set_len(size - torn)?;
            }
        }
        Ok(Self { file, last: None })
    }

    /// Notes that the bytes from `offset` on come now; to be called before they are written, so that a reader never
    /// meets bytes whose mark is still to come. Appends a mark when stream or attempt changed or a quarter
    /// of a second went by since the last one.
    ///
    /// # Errors
    /// What the file system says; the log itself is not affected.
    pub fn note(&mut self, offset: u64, at: Timestamp, stream: Stream, attempt: u32) -> io::Result<()> {
        let attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
        if let Some(last) = self.last
            && last.stream == stream
            && last.attempt == attempt
            && at.since(last.at) < EVERY
        {
            return Ok(());
        }
        let mark = Mark { offset, at, stream, attempt };
        if let Err(error) = self.file.write_all(&mark.encode()) {
            // Where there was room for a part of it only, the part must not shift the ones to come.
            let size = self.file.metadata()?.len();
            self.file.set_len(size - size.saturating_sub(HEADER.len() as u64) % SIZE)?;
            return Err(error);
        }
        self.last = Some(mark);
        Ok(())
    }
}

/// How many marks are read at once.
const BLOCK: u64 = 512;

/// Reads marks by number, a block at a time: neighbouring lines ask for neighbouring marks.
#[derive(Debug)]
pub struct MarkReader {
    file: File,
    count: u64,
    /// The block that was read last, and the number of its first mark.
    block: RefCell<(u64, Vec<Mark>)>,
}

impl MarkReader {
    /// Opens the marks of a log; `None` when there are none or they are of another version.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        let file = super::open::regular(path).ok()?;
        let mut header = [0; HEADER.len()];
        file.read_exact_at(&mut header, 0).ok()?;
        if header != HEADER {
            return None;
        }
        let mut reader = Self { file, count: 0, block: RefCell::default() };
        reader.refresh();
        Some(reader)
    }

    /// Looks how many marks there are by now.
    pub fn refresh(&mut self) {
        let size = self.file.metadata().map_or(0, |m| m.len());
        self.count = size.saturating_sub(HEADER.len() as u64) / SIZE;
    }

    /// How many marks there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mark with this number, from 0.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<Mark> {
        if number >= self.count {
            return None;
        }
        let mut block = self.block.borrow_mut();
        let known =
            |(first, marks): &(u64, Vec<Mark>)| marks.get(usize::try_from(number.checked_sub(*first)?).ok()?).copied();
        if known(&block).is_none() {
            let first = number / BLOCK * BLOCK;
            // What has been written never changes, so a block can only grow.
            *block = (first, self.read(first, BLOCK as usize));
        }
        known(&block)
    }

    /// The numbers of the marks that are known without another look at the file.
    #[must_use]
    pub fn known(&self) -> std::ops::Range<u64> {
        let block = self.block.borrow();
        block.0..block.0 + block.1.len() as u64
    }

    /// Marks from this number on, at most `most` of them, in one read.
    #[must_use]
    pub fn read(&self, from: u64, most: usize) -> Vec<Mark> {
        let many = usize::try_from(self.count.saturating_sub(from)).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; many * SIZE as usize];
        if self.file.read_exact_at(&mut bytes, HEADER.len() as u64 + from * SIZE).is_err() {
            return Vec::new();
        }
        let (marks, _) = bytes.as_chunks::<{ SIZE as usize }>();
        marks.iter().filter_map(Mark::decode).collect()
    }

    /// The number of the last mark at or before an offset, in a log where one file holds everything.
    #[must_use]
    pub fn before(&self, offset: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)?.offset <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_mark_is_made_on_change_and_four_times_a_second() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("output-0.marks");
        let mut writer = MarkWriter::open(&path).unwrap();
        let notes = [
            (0, 0, Stream::Out, 1),
            (10, 249, Stream::Out, 1),
            (20, 250, Stream::Out, 1),
            (30, 1001, Stream::Err, 1),
            (40, 1002, Stream::Out, 1),
            (50, 1003, Stream::Out, 2),
            (60, 1004, Stream::Own, 300),
        ];
        for (offset, ms, stream, attempt) in notes {
            writer.note(offset, at(ms), stream, attempt).unwrap();
        }
        let reader = MarkReader::open(&path).unwrap();
        let all = reader.read(0, 100);
        assert_eq!(all.iter().map(|m| m.offset).collect::<Vec<_>>(), [0, 20, 30, 40, 50, 60]);
        assert_eq!(all.last().unwrap(), &Mark { offset: 60, at: at(1004), stream: Stream::Own, attempt: 255 });
        assert_eq!(reader.before(35), Some(2));
        assert_eq!(reader.before(0), Some(0));
        assert_eq!(reader.before(u64::MAX), Some(5));
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let mark = Mark { offset: 0x0102, at: at(3), stream: Stream::Err, attempt: 4 };
        let want = [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0];
        assert_eq!(mark.encode(), want);
        assert_eq!(&HEADER, b"SUBDECKMARKS\x01\x00\x00\x00");
    }

    #[test]
    fn a_torn_mark_is_cut_off_and_another_version_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("m");
        MarkWriter::open(&path).unwrap().note(1, at(1), Stream::Out, 1).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"torn").unwrap();
        MarkWriter::open(&path).unwrap().note(2, at(2), Stream::Out, 1).unwrap();
        let offsets: Vec<u64> = MarkReader::open(&path).unwrap().read(0, 9).iter().map(|m| m.offset).collect();
        assert_eq!(offsets, [1, 2]);
        std::fs::write(&path, b"SUBDECKMARKS\x02\x00\x00\x00").unwrap();
        assert!(MarkReader::open(&path).is_none());
    }

    proptest! {
        #[test]
        fn marks_survive_the_round_trip(offset: u64, ms in 0i64..9_000_000_000_000, stream in 0u8..3, attempt: u8) {
            let stream = [Stream::Out, Stream::Err, Stream::Own][stream as usize];
            let mark = Mark { offset, at: at(ms), stream, attempt };
            prop_assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        }
    }
}
