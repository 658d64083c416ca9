//! The live log of a step (`output-N.log` with its marks), shared by the pumps of its streams.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::kept::Kept;
use crate::run::{Stream, Timestamp};
use crate::rundir::{MarkWriter, is_capacity};

/// The live log of a step (`output-N.log` with its marks), shared by the pumps of its streams.
#[derive(Clone, Debug)]
pub struct LiveLog(Arc<Mutex<LiveLogInner>>);

#[derive(Debug)]
struct LiveLogInner {
    file: Option<Kept>,
    marks: Option<MarkWriter>,
    at_line_start: bool,
    last: Stream,
    failed: bool,
}

impl LiveLog {
    /// A log with its marks.
    #[must_use]
    pub fn new(file: Option<Kept>, marks: Option<MarkWriter>) -> Self {
        Self(Arc::new(Mutex::new(LiveLogInner { file, marks, at_line_start: true, last: Stream::Own, failed: false })))
    }

    /// Appends. A change of stream in the middle of a line begins a new line first, so that the two stay apart.
    ///
    /// # Errors
    /// The first failure is returned, later ones are swallowed: the caller tells about it once.
    pub fn append(&self, stream: Stream, attempt: u32, at: Timestamp, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.failed {
            return Ok(());
        }
        let log = &mut *log;
        let result = (|| {
            let Some(file) = &mut log.file else { return Ok(()) };
            if !log.at_line_start && log.last != stream {
                file.append(b"\n")?;
                log.at_line_start = true;
            }
            file.retry()?;
            note(&mut log.marks, file.end(), at, stream, attempt)?;
            file.append(bytes)
        })();
        log.at_line_start = bytes.last() == Some(&b'\n');
        log.last = stream;
        // Output that is lost because too much waits for room does not keep the rest out.
        log.failed = result.as_ref().is_err_and(|error| !is_capacity(error));
        result
    }

    /// Marks bytes that another file holds (plain commands keep their streams in files of their own).
    ///
    /// # Errors
    /// As for [`LiveLog::append`].
    pub fn mark(&self, stream: Stream, attempt: u32, at: Timestamp, offset: u64) -> io::Result<()> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.failed {
            return Ok(());
        }
        let result = note(&mut log.marks, offset, at, stream, attempt);
        log.failed = result.is_err();
        result
    }

    /// Writes what waits for room, as far as there is room.
    ///
    /// # Errors
    /// As for [`LiveLog::append`].
    pub fn retry(&self) -> io::Result<()> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.file.as_mut().map_or(Ok(()), Kept::retry)
    }

    /// Whether bytes wait for room.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.as_ref().is_some_and(Kept::is_waiting)
    }
}

/// A mark for which there is no room is made with the next bytes: until then they count as what came before.
fn note(marks: &mut Option<MarkWriter>, offset: u64, at: Timestamp, stream: Stream, attempt: u32) -> io::Result<()> {
    match marks.as_mut().map(|marks| marks.note(offset, at, stream, attempt)) {
        Some(Err(error)) if !is_capacity(&error) => Err(error),
        _ => Ok(()),
    }
}
