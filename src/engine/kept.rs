//! A log that only grows. What there is no room for waits in memory, up to a bound, and is written when there is room
//! again; a child is never held up by it.

use std::fs::File;
use std::io::{self, Write};

use crate::rundir::is_capacity;

/// How many bytes of one log wait for room; what comes beyond is lost.
const MOST: usize = 1024 * 1024;

/// A log and what waits for room in it.
#[derive(Debug)]
pub struct Kept<W: Write = File> {
    file: W,
    /// Where the next bytes will stand, once what waits is written.
    end: u64,
    waiting: Vec<u8>,
    /// It cannot be written for another reason than lack of room and is not tried again.
    broken: bool,
}

impl<W: Write> Kept<W> {
    /// A log of `end` bytes so far, to which `file` appends.
    pub const fn new(file: W, end: u64) -> Self {
        Self { file, end, waiting: Vec::new(), broken: false }
    }

    /// Where the next bytes will stand.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Appends. That bytes wait for room is no error.
    ///
    /// # Errors
    /// When bytes are lost: there is no room and too much waits, or the file cannot be written at all. The latter is
    /// told once.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.broken {
            return Ok(());
        }
        self.retry()?;
        let rest = if self.waiting.is_empty() { self.put(bytes)? } else { 0 };
        let rest = bytes.get(rest..).unwrap_or_default();
        if self.waiting.len() + rest.len() > MOST {
            self.end += (bytes.len() - rest.len()) as u64;
            let text = "there is no room and too much waits for it, so some of the output is not in the log";
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        self.waiting.extend_from_slice(rest);
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Writes what waits, as far as there is room.
    ///
    /// # Errors
    /// When it cannot be written for another reason; it is lost then.
    pub fn retry(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let done = self.put(&waiting)?;
        self.waiting = waiting.get(done..).unwrap_or_default().to_vec();
        Ok(())
    }

    /// Whether bytes wait for room.
    pub const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
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
        assert_eq!((log.file.got.as_slice(), log.is_waiting(), log.end()), (&b"one t"[..], true, 114));
        log.file.room = 3;
        log.retry().unwrap();
        assert!(log.is_waiting());
        log.file.room = 100;
        log.append(b"four").unwrap();
        assert_eq!((log.file.got.as_slice(), log.is_waiting(), log.end()), (&b"one two three four"[..], false, 118));
    }

    #[test]
    fn too_much_is_lost_and_told_and_what_stands_is_counted() {
        let mut log = small(0, 122);
        log.append(&vec![b'x'; MOST]).unwrap();
        assert_eq!(log.append(b"more").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(log.end(), 100 + MOST as u64);
        log.file.room = MOST + 10;
        log.append(b"end").unwrap();
        assert_eq!((log.file.got.len(), log.end()), (MOST + 3, 103 + MOST as u64));
    }

    #[test]
    fn another_error_is_told_once() {
        let mut log = small(0, 5);
        assert_eq!(log.append(b"a").unwrap_err().raw_os_error(), Some(5));
        log.append(b"b").unwrap();
        assert!(!log.is_waiting());
    }
}
