//! A log that only grows. What there is no room for waits in memory, up to a bound, and is written when there is room
//! again; a child is never held up by it. What does not fit there either is left out up to the moment when there is room,
//! and a line in its place says how much that is.

use std::fs::File;
use std::io::{self, Write};

use crate::rundir::is_capacity;

/// How many bytes of one log wait for room; what comes beyond is left out.
const MOST: usize = 1024 * 1024;

/// A log and what waits for room in it.
#[derive(Debug)]
pub struct Kept<W: Write = File> {
    file: W,
    /// Where the next bytes will stand, once what waits is written.
    end: u64,
    waiting: Vec<u8>,
    /// How many bytes are left out where the next ones will stand.
    missing: u64,
    /// Where the first of the bytes stands that were appended last; `None` when none of them does.
    began: Option<u64>,
    /// It cannot be written for another reason than lack of room and is not tried again.
    broken: bool,
}

impl<W: Write> Kept<W> {
    /// A log of `end` bytes so far, to which `file` appends.
    pub const fn new(file: W, end: u64) -> Self {
        Self { file, end, waiting: Vec::new(), missing: 0, began: None, broken: false }
    }

    /// Where the next bytes will stand, unless a mark stands before them.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Where the first of the bytes that were appended last stands; `None` when none of them is in the log.
    pub const fn began(&self) -> Option<u64> {
        self.began
    }

    /// Appends. That bytes wait for room is no error.
    ///
    /// # Errors
    /// When bytes begin to be left out: there is no room and too much waits, or the file cannot be written at all. Each
    /// is told once.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.began = None;
        if self.broken {
            return Ok(());
        }
        self.retry()?;
        if self.missing > 0 {
            self.missing += bytes.len() as u64;
            return Ok(());
        }
        let start = self.end;
        let done = if self.waiting.is_empty() { self.put(bytes)? } else { 0 };
        let rest = bytes.get(done..).unwrap_or_default();
        // Of bytes that do not fit whole those that do are kept, so that what is missing is in one place.
        let fit = rest.len().min(MOST.saturating_sub(self.waiting.len()));
        self.waiting.extend_from_slice(rest.get(..fit).unwrap_or_default());
        self.end += (done + fit) as u64;
        self.began = (done + fit > 0).then_some(start);
        if fit == rest.len() {
            return Ok(());
        }
        self.missing = (rest.len() - fit) as u64;
        let text = "there is no room and too much waits for it, so some of the output is not in the log";
        Err(io::Error::new(io::ErrorKind::StorageFull, text))
    }

    /// Writes what waits, as far as there is room, and then how much is left out there.
    ///
    /// # Errors
    /// When it cannot be written for another reason; it is lost then.
    pub fn retry(&mut self) -> io::Result<()> {
        self.drain()?;
        if self.missing == 0 || !self.waiting.is_empty() {
            return Ok(());
        }
        let missing = std::mem::take(&mut self.missing);
        self.waiting = format!("\n[subdeck: {missing} bytes are not here: there was no room for them]\n").into_bytes();
        self.end += self.waiting.len() as u64;
        self.drain()
    }

    fn drain(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let done = self.put(&waiting)?;
        self.waiting = waiting.get(done..).unwrap_or_default().to_vec();
        Ok(())
    }

    /// Whether bytes wait for room.
    pub const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.missing > 0
    }

    /// Writes what there is room for; returns how many bytes that were.
    fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_capacity(&error) => break,
                Err(error) => {
                    self.broken = true;
                    return Err(error);
                }
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has room for so many bytes.
    struct Small {
        room: usize,
        got: Vec<u8>,
        error: i32,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::Error::from_raw_os_error(self.error));
            }
            self.room -= n;
            self.got.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn small(room: usize, error: i32) -> Kept<Small> {
        Kept::new(Small { room, got: Vec::new(), error }, 100)
    }

    #[test]
    fn what_lacks_room_is_written_later_and_in_order() {
        let mut log = small(5, 28);
        for text in ["one ", "two ", "three "] {
            log.append(text.as_bytes()).unwrap();
        }
        assert_eq!((log.file.got.as_slice(), log.is_waiting(), log.began()), (&b"one t"[..], true, Some(108)));
        log.file.room = 3;
        log.retry().unwrap();
        assert!(log.is_waiting());
        log.file.room = 100;
        log.append(b"four").unwrap();
        assert_eq!(
            (log.file.got.as_slice(), log.is_waiting(), log.began()),
            (&b"one two three four"[..], false, Some(114))
        );
    }

    #[test]
    fn too_much_is_left_out_in_one_place_and_marked_there() {
        let mut log = small(0, 122);
        log.append(&vec![b'x'; MOST - 2]).unwrap();
        assert_eq!(log.append(b"more").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(log.began(), Some(100 + MOST as u64 - 2), "its beginning is in the log");
        // Room for some of what waits is none for what comes now: it would stand behind a hole that nobody sees.
        log.file.room = 1000;
        log.append(b"lost too").unwrap();
        assert_eq!((log.began(), log.is_waiting()), (None, true));
        log.file.room = MOST - 1000 + 20;
        log.append(b"end").unwrap();
        assert!(log.is_waiting(), "of the mark, too, only a part has room");
        log.file.room = 1000;
        log.retry().unwrap();
        assert!(!log.is_waiting());
        let mark = "\n[subdeck: 10 bytes are not here: there was no room for them]\n";
        let expected = format!("{}mo{mark}end", "x".repeat(MOST - 2));
        assert!(log.file.got == expected.as_bytes(), "{}", String::from_utf8_lossy(&log.file.got[MOST - 4..]));
        assert_eq!(log.began(), Some(100 + (MOST + mark.len()) as u64), "places behind the mark are right");
    }

    #[test]
    fn what_is_left_out_at_the_end_is_marked_too() {
        let mut log = small(0, 28);
        log.append(&vec![b'x'; MOST]).unwrap();
        log.append(b"last words").unwrap_err();
        log.file.room = MOST * 2;
        log.retry().unwrap();
        let end = String::from_utf8_lossy(&log.file.got[MOST..]).into_owned();
        assert_eq!(end, "\n[subdeck: 10 bytes are not here: there was no room for them]\n");
    }

    #[test]
    fn another_error_is_told_once() {
        let mut log = small(0, 5);
        assert_eq!(log.append(b"a").unwrap_err().raw_os_error(), Some(5));
        log.append(b"b").unwrap();
        assert!(!log.is_waiting());
    }
}
