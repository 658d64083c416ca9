//! The raw log of a stream: its bytes as they came. While a stream of an agent floods, they are written by a thread of
//! its own, so that keeping them and understanding them go on side by side. Never reorders; at most two chunks wait for the
//! thread, then the pump does. What there is no room for waits in [`Kept`].

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::kept::Kept;

/// From this many bytes in one read on a stream floods.
const FLOOD: usize = 64 * 1024;

/// The chunks of a pump: the one that is read into and understood, and those that are still being written.
pub(super) struct Chunks {
    size: usize,
    all: Vec<Arc<Vec<u8>>>,
    current: usize,
}

impl Chunks {
    /// Chunks of this many bytes.
    pub(super) fn new(size: usize) -> Self {
        Self { size, all: Vec::new(), current: 0 }
    }

    /// A chunk to read into.
    pub(super) fn free(&mut self) -> &mut [u8] {
        self.current = self.all.iter().position(|chunk| Arc::strong_count(chunk) == 1).unwrap_or_else(|| {
            self.all.push(Arc::new(vec![0; self.size]));
            self.all.len() - 1
        });
        self.all.get_mut(self.current).and_then(Arc::get_mut).map(Vec::as_mut_slice).unwrap_or_default()
    }

    /// The beginning of the chunk that was read into.
    pub(super) fn read(&self, many: usize) -> Piece {
        let bytes = self.all.get(self.current).cloned().unwrap_or_default();
        let waiting = self.all.iter().enumerate().any(|(n, c)| n != self.current && Arc::strong_count(c) > 1);
        Piece { many: many.min(bytes.len()), bytes, waiting }
    }
}

/// Bytes that were read together.
pub(super) struct Piece {
    bytes: Arc<Vec<u8>>,
    many: usize,
    /// Earlier ones are still being written.
    waiting: bool,
}

impl Piece {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.many).unwrap_or_default()
    }

    /// The same piece, cut.
    fn first(&self, many: usize) -> Self {
        Self { bytes: Arc::clone(&self.bytes), many: many.min(self.many), waiting: self.waiting }
    }
}

/// Writes a raw log.
#[derive(Debug)]
pub(super) struct RawLog {
    log: Arc<Mutex<Kept>>,
    writer: Option<(SyncSender<Piece>, JoinHandle<()>)>,
    failed: Arc<OnceLock<String>>,
}

impl RawLog {
    /// A log that appends to `log`.
    pub(super) fn new(log: Kept) -> Self {
        Self { log: Arc::new(Mutex::new(log)), writer: None, failed: Arc::default() }
    }

    /// Where the next byte will stand, as long as nothing is written aside.
    pub(super) fn end(&self) -> u64 {
        lock(&self.log).end()
    }

    /// Appends the first bytes of a piece; with `aside` possibly later, but in their order.
    ///
    /// # Errors
    /// The first failure, also of an earlier piece: bytes are lost.
    pub(super) fn keep(&mut self, piece: &Piece, many: usize, aside: bool) -> Result<(), String> {
        let piece = piece.first(many);
        if !(aside && (piece.many >= FLOOD || piece.waiting)) {
            return self.write(piece.bytes()).map_err(|error| error.to_string());
        }
        if self.writer.is_none() {
            self.writer = self.start().ok();
        }
        match &self.writer {
            Some((pieces, _)) if pieces.send(piece.first(many)).is_ok() => self.trouble(),
            // Without a thread nothing waits, so the order is kept.
            _ => self.write(piece.bytes()).map_err(|error| error.to_string()),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// As [`RawLog::keep`].
    pub(super) fn settle(&mut self) -> Result<(), String> {
        if let Some((pieces, thread)) = self.writer.take() {
            drop(pieces);
            if thread.join().is_err() {
                return Err("its writer failed".to_owned());
            }
        }
        self.trouble()
    }

    fn trouble(&self) -> Result<(), String> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.log).append(bytes)
    }

    /// Writes what waits for room, as far as there is room; returns whether some of it still waits.
    ///
    /// # Errors
    /// When what waited is lost.
    pub(super) fn retry(&self) -> io::Result<bool> {
        let mut log = lock(&self.log);
        log.retry().map(|()| log.is_waiting())
    }

    /// The log itself if some of it still waits for room; everything must be settled.
    pub(super) fn into_late(self) -> Option<Kept> {
        let log = Arc::into_inner(self.log)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        log.is_waiting().then_some(log)
    }

    fn start(&self) -> io::Result<(SyncSender<Piece>, JoinHandle<()>)> {
        let (sender, receiver) = sync_channel(1);
        let (log, failed) = (Arc::clone(&self.log), Arc::clone(&self.failed));
        let writer = std::thread::Builder::new().name("raw".to_owned()).stack_size(64 * 1024);
        let thread = writer.spawn(move || write_pieces(&log, &receiver, &failed))?;
        Ok((sender, thread))
    }
}

/// A thread that panicked here left whole bytes and a true end, so its poison means nothing.
fn lock(log: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_pieces(log: &Mutex<Kept>, pieces: &Receiver<Piece>, failed: &OnceLock<String>) {
    for piece in pieces {
        if let Err(error) = lock(log).append(piece.bytes()) {
            // Whoever keeps the next piece tells; only the first failure counts.
            let _ = failed.set(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn fill(chunks: &mut Chunks, many: usize, with: u8) -> Piece {
        chunks.free()[..many].fill(with);
        chunks.read(many)
    }

    #[test]
    fn floods_and_drops_are_written_in_their_order_with_few_chunks() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        let file = OpenOptions::new().append(true).open(temp.path()).unwrap();
        let (mut chunks, mut log) = (Chunks::new(2 * FLOOD), RawLog::new(Kept::new(file, 0)));
        let mut want = Vec::new();
        for n in 0..200u32 {
            let with = u8::try_from(n).unwrap();
            let many = if n % 7 == 3 { 5 } else { FLOOD + n as usize };
            let kept = if n % 5 == 0 { many - 1 } else { many };
            let piece = fill(&mut chunks, many, with);
            log.keep(&piece, kept, true).unwrap();
            want.extend(std::iter::repeat_n(with, kept));
            drop(piece);
        }
        assert!(log.writer.is_some(), "a thread writes a flood");
        log.settle().unwrap();
        assert_eq!(log.end(), want.len() as u64);
        assert!(!log.retry().unwrap());
        assert!(std::fs::read(temp.path()).unwrap() == want);
        assert!(chunks.all.len() <= 4, "{} chunks", chunks.all.len());
    }

    #[test]
    fn a_quiet_stream_and_a_plain_one_need_no_thread_and_one_chunk() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        let file = OpenOptions::new().append(true).open(temp.path()).unwrap();
        let (mut chunks, mut log) = (Chunks::new(2 * FLOOD), RawLog::new(Kept::new(file, 7)));
        for (many, aside) in [(5, true), (2 * FLOOD, false), (FLOOD - 1, true)] {
            let piece = fill(&mut chunks, many, b'x');
            log.keep(&piece, many, aside).unwrap();
        }
        assert!(log.writer.is_none() && chunks.all.len() == 1);
        assert_eq!(log.end(), 7 + std::fs::metadata(temp.path()).unwrap().len());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_failure_is_told_at_the_latest_when_everything_is_settled() {
        let file = OpenOptions::new().read(true).open("/dev/null").unwrap();
        let (mut chunks, mut log) = (Chunks::new(FLOOD), RawLog::new(Kept::new(file, 0)));
        let piece = fill(&mut chunks, FLOOD, b'x');
        // The thread may or may not have come to it.
        let _ = log.keep(&piece, FLOOD, true);
        assert!(log.settle().unwrap_err().contains("Bad file descriptor"));
        assert!(log.into_late().is_none(), "it is not tried again");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_lacks_room_waits_whoever_writes_it() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let (mut chunks, mut log) = (Chunks::new(FLOOD), RawLog::new(Kept::new(file, 0)));
        for aside in [true, false] {
            let piece = fill(&mut chunks, FLOOD, b'x');
            log.keep(&piece, FLOOD, aside).unwrap();
            log.settle().unwrap();
        }
        assert!(log.retry().unwrap());
        assert_eq!(log.into_late().unwrap().end(), 2 * FLOOD as u64);
    }
}
