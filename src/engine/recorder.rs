//! Records what happens: reduces each event, appends it to the event log, and writes status.json, gathering what
//! comes within 100 ms (run-directory 2.4). Never decides.

use std::time::{Duration, Instant};

use super::clock::now;
use crate::run::{Event, RunState, Timestamp, What, reduce};
use crate::rundir::records::{self, RecordContext};
use crate::rundir::{EventLog, RunDir, StatusContext, Writer, status};

/// Changes within this time are gathered into one write; the first after a quiet time is written at once.
pub const COALESCE: Duration = Duration::from_millis(100);

/// The one writer of a run's state.
#[derive(Debug)]
pub struct Recorder {
    state: RunState,
    dir: RunDir,
    log: EventLog,
    writer: Writer,
    dirty: bool,
    last_write: Option<Instant>,
    marker: bool,
}

impl Recorder {
    /// A recorder for a run that has not started.
    #[must_use]
    pub fn new(dir: RunDir, log: EventLog) -> Self {
        Self {
            state: RunState::default(),
            dir,
            log,
            writer: Writer::default(),
            dirty: false,
            last_write: None,
            marker: false,
        }
    }

    /// The state as it is now.
    #[must_use]
    pub const fn state(&self) -> &RunState {
        &self.state
    }

    /// The event log, for the pumps.
    #[must_use]
    pub const fn log(&self) -> &EventLog {
        &self.log
    }

    /// The writer of whole documents, for what is not the status.
    pub const fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// Records something that happens now; transitions are written to status.json at once.
    pub fn record(&mut self, what: What) {
        self.record_at(now(), what);
    }

    fn record_at(&mut self, at: Timestamp, what: What) {
        let event = Event { at, what };
        self.change(&event);
        if let Some(line) = records::encode(&event, &RecordContext { state: &self.state }) {
            // A full disk must not end the run: the log keeps what it could not write and tries again.
            let _ = self.log.append(&line);
        }
        self.write_status();
    }

    /// Takes in an event that its pump has recorded already.
    pub fn absorb(&mut self, at: Timestamp, what: What) {
        self.change(&Event { at, what });
        if self.last_write.is_none_or(|t| t.elapsed() >= COALESCE) {
            self.write_status();
        }
    }

    fn change(&mut self, event: &Event) {
        reduce(&mut self.state, event);
        self.dirty = true;
    }

    /// When something is to be written next, if nothing else happens.
    #[must_use]
    pub fn next_write(&self) -> Option<Instant> {
        let status = self.dirty.then(|| self.last_write.map_or_else(Instant::now, |t| t + COALESCE));
        let retry = self.writer.retry_at().map(|at| Instant::now() + at.since(now()));
        match (status, retry) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Writes what is due.
    pub fn flush_due(&mut self) {
        if self.dirty && self.last_write.is_none_or(|t| t.elapsed() >= COALESCE) {
            self.write_status();
        }
        self.writer.retry(now());
        if self.log.pending() {
            let _ = self.log.retry();
        }
    }

    /// Whether something waits for room on the disk.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.writer.pending() || self.log.pending()
    }

    /// Tries everything that waits.
    pub fn flush_all(&mut self) {
        self.writer.flush(now());
        let _ = self.log.retry();
    }

    /// The state as it would be after something that is not recorded yet.
    #[must_use]
    pub fn preview(&self, what: &What) -> RunState {
        let mut state = self.state.clone();
        reduce(&mut state, &Event { at: now(), what: what.clone() });
        state
    }

    /// Says that requests are not taken any more (run-directory 3.7).
    pub fn close_inbox(&mut self, state: &str) {
        let bytes = crate::rundir::inbox_closed::encode(now(), state);
        let path = self.dir.inbox_closed();
        // Only a lack of room is possible here, and then the writer keeps it.
        let _ = self.writer.write(&path, bytes, now());
    }

    /// Writes status.json now.
    pub fn write_status(&mut self) {
        let bytes = status::encode(&self.state, &StatusContext { dir: &self.dir, instance: None });
        // Capacity errors are queued by the writer; any other is remembered there and told at the end.
        let written = self.writer.write(&self.dir.status(), bytes, now());
        self.dirty = false;
        self.last_write = Some(Instant::now());
        if written.is_ok() && !self.marker {
            self.marker = true;
            // An index that cannot be written never fails a run (runner-behaviour 10).
            let _ = crate::rundir::index::mark_active(&self.dir, &self.state.id);
        }
    }
}
