//! The intake of a stream: takes the bytes from the pipe and keeps them as they came, as far as the allowance goes. It
//! never looks at what they mean. What there is no room for waits in [`Kept`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::capture::Allowance;
use super::clock::now;
use super::kept::Kept;
use crate::run::Timestamp;

/// A pipe and the log that its bytes go to.
#[derive(Debug)]
pub(super) struct Intake {
    pipe: OwnedFd,
    raw: Option<Kept>,
    allowance: Allowance,
    chunks: Chunks,
}

/// What one look at the pipe brought.
pub(super) enum Took {
    /// Bytes; they are kept.
    Piece(Piece),
    /// Nothing for now.
    Dry,
    /// Nothing any more.
    End,
}

/// Bytes that were read together.
pub(super) struct Piece {
    bytes: Arc<Vec<u8>>,
    many: usize,
    /// When they were read.
    pub(super) at: Timestamp,
    /// Where the first of them stands in the log, if there is one and it holds any of them.
    pub(super) start: Option<u64>,
    /// Some are not in the log because the allowance is used up.
    pub(super) cut: bool,
    /// Why some are lost.
    pub(super) trouble: Option<String>,
}

impl Piece {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.many).unwrap_or_default()
    }
}

impl Intake {
    /// Takes from `pipe`, which does not block, at most `size` bytes at once.
    pub(super) fn new(pipe: OwnedFd, raw: Option<Kept>, allowance: Allowance, size: usize) -> Self {
        Self { pipe, raw, allowance, chunks: Chunks { size, all: Vec::new() } }
    }

    /// The pipe, to wait for.
    pub(super) const fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// The allowance in bytes: what a person is told.
    pub(super) const fn cap(&self) -> u64 {
        self.allowance.cap
    }

    /// Takes what is there and keeps it.
    pub(super) fn take(&mut self) -> Took {
        let mut chunk = self.chunks.free();
        let read = loop {
            match rustix::io::read(&self.pipe, Arc::get_mut(&mut chunk).map(Vec::as_mut_slice).unwrap_or_default()) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        self.chunks.all.push(Arc::clone(&chunk));
        match read {
            Err(Errno::AGAIN) => Took::Dry,
            Ok(0) | Err(_) => Took::End,
            Ok(many) => {
                let mut piece = Piece { bytes: chunk, many, at: now(), start: None, cut: false, trouble: None };
                self.keep(&mut piece);
                Took::Piece(piece)
            }
        }
    }

    fn keep(&mut self, piece: &mut Piece) {
        let Some(raw) = &mut self.raw else { return };
        let granted = self.allowance.take(piece.many);
        piece.cut = granted < piece.many;
        if granted > 0 {
            let kept = raw.append(piece.bytes.get(..granted).unwrap_or_default());
            piece.start = raw.began();
            piece.trouble = kept.err().map(|error| error.to_string());
        }
    }

    /// Writes what waits for room, as far as there is room; returns whether some of it still waits.
    ///
    /// # Errors
    /// When what waited is lost.
    pub(super) fn retry(&mut self) -> io::Result<bool> {
        self.raw.as_mut().map_or(Ok(false), |raw| raw.retry().map(|()| raw.is_waiting()))
    }

    /// The log itself if some of it still waits for room.
    pub(super) fn into_late(self) -> Option<Kept> {
        self.raw.filter(Kept::is_waiting)
    }
}

/// The memory that pieces lie in: each piece has a chunk of its own for as long as anybody looks at it.
#[derive(Debug)]
struct Chunks {
    size: usize,
    all: Vec<Arc<Vec<u8>>>,
}

impl Chunks {
    /// A chunk that nobody looks at, taken out.
    fn free(&mut self) -> Arc<Vec<u8>> {
        let unused = self.all.iter().position(|chunk| Arc::strong_count(chunk) == 1);
        unused.map_or_else(|| Arc::new(vec![0; self.size]), |at| self.all.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::super::capture::Capture;
    use super::*;

    /// A pipe with an intake that reads at most 8 bytes at once and keeps at most `cap` of them.
    fn intake(log: Option<&str>, cap: u64) -> (OwnedFd, Intake) {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let raw = log.map(|path| Kept::new(OpenOptions::new().append(true).open(path).unwrap(), 0));
        (write, Intake::new(read, raw, Capture::new(cap, 100).step(), 8))
    }

    fn piece(took: Took) -> Piece {
        match took {
            Took::Piece(piece) => piece,
            Took::Dry => panic!("dry"),
            Took::End => panic!("the end"),
        }
    }

    #[test]
    fn bytes_are_kept_up_to_the_allowance_and_all_are_handed_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (write, mut intake) = intake(file.path().to_str(), 10);
        assert!(matches!(intake.take(), Took::Dry));
        rustix::io::write(&write, b"0123456789abcdefgh").unwrap();
        drop(write);
        let pieces: Vec<Piece> = (0..3).map(|_| piece(intake.take())).collect();
        let facts: Vec<_> = pieces.iter().map(|p| (p.bytes(), p.start, p.cut)).collect();
        assert_eq!(
            facts,
            [(&b"01234567"[..], Some(0), false), (b"89abcdef", Some(8), true), (b"gh", None, true)],
            "pieces that somebody looks at stay as they are"
        );
        assert!(matches!(intake.take(), Took::End));
        assert_eq!(std::fs::read(file.path()).unwrap(), b"0123456789");
        assert!(!intake.retry().unwrap() && intake.into_late().is_none());
    }

    #[test]
    fn memory_is_used_again() {
        let (write, mut intake) = intake(None, 10);
        for _ in 0..5 {
            rustix::io::write(&write, b"0123456789abcdef").unwrap();
            let pair = [piece(intake.take()), piece(intake.take())];
            assert_eq!(pair.map(|p| p.start), [None, None]);
        }
        assert_eq!(intake.chunks.all.len(), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_lacks_room_waits_and_what_cannot_be_written_is_told() {
        let (write, mut full) = intake(Some("/dev/full"), 10);
        rustix::io::write(&write, b"01234").unwrap();
        assert_eq!(piece(full.take()).trouble, None);
        assert!(full.retry().unwrap());
        assert_eq!(full.into_late().unwrap().end(), 5);

        let (write, mut broken) = intake(None, 10);
        broken.raw = Some(Kept::new(std::fs::File::open("/dev/null").unwrap(), 0));
        rustix::io::write(&write, b"01234").unwrap();
        assert!(piece(broken.take()).trouble.unwrap().contains("Bad file descriptor"));
        assert!(broken.into_late().is_none(), "it is not tried again");
    }
}
