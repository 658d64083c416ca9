//! The live log of a step (`output-N.log` with its marks), shared by the pumps of its streams.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::run::{Stream, Timestamp};
use crate::rundir::MarkWriter;

/// The live log of a step (`output-N.log` with its marks), shared by the pumps of its streams.
#[derive(Clone, Debug)]
pub struct LiveLog(Arc<Mutex<LiveLogInner>>);

#[derive(Debug)]
struct LiveLogInner {
    file: Option<File>,
    marks: Option<MarkWriter>,
    offset: u64,
    at_line_start: bool,
    last: Stream,
    failed: bool,
}

impl LiveLog {
    /// A log that appends to `file`, which now is `offset` bytes long.
    #[must_use]
    pub fn new(file: Option<File>, marks: Option<MarkWriter>, offset: u64) -> Self {
        Self(Arc::new(Mutex::new(LiveLogInner {
            file,
            marks,
            offset,
            at_line_start: true,
            last: Stream::Own,
            failed: false,
        })))
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
                file.write_all(b"\n")?;
                log.offset += 1;
                log.at_line_start = true;
            }
            if let Some(marks) = &mut log.marks {
                marks.note(log.offset, at, stream, attempt)?;
            }
            file.write_all(bytes)?;
            log.offset += bytes.len() as u64;
            Ok(())
        })();
        log.at_line_start = bytes.last() == Some(&b'\n');
        log.last = stream;
        log.failed = result.is_err();
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
        let result = match &mut log.marks {
            Some(marks) => marks.note(offset, at, stream, attempt),
            None => Ok(()),
        };
        log.failed = result.is_err();
        result
    }
}
