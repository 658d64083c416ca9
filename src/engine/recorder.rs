//! Records what happens: reduces each event, appends it to the event log at once, and writes status.json when its
//! caller has done what the events ask for: transitions then, the rest gathered over 100 ms (run-directory 2.4). With
//! the status go the documents that must not be without it or before
//! it: the marker of a live run, a provisional result, the end. Never decides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::now;
use super::complain::complain;
use super::last::LastWords;
use super::nested::{Nested, Outer};
use crate::run::{Event, RunPhase, RunState, StepId, TargetState, Timestamp, What, reduce};
use crate::rundir::records::{self, RecordContext};
use crate::rundir::{
    Disk, EventLog, Home, HomeDisk, Op, ResultContext, RunDir, StatusContext, StatusEncoder, WriteFailure, Writer,
    Written, inbox_closed, index,
};

/// Changes within this time are gathered into one write; the first after a quiet time is written at once.
pub const COALESCE: Duration = Duration::from_millis(100);

/// The one writer of a run's state.
#[derive(Debug)]
pub struct Recorder<D: Disk = HomeDisk> {
    pub(super) state: RunState,
    encoder: StatusEncoder,
    pub(super) dir: RunDir,
    pub(super) log: EventLog,
    pub(super) writer: Writer<D>,
    pub(super) result: ResultContext,
    dirty: bool,
    /// A transition is not in the status yet.
    urgent: bool,
    last_write: Option<Instant>,
    /// The marker of a live run is on the disk.
    marked: bool,
    /// A provisional result may be on the disk.
    pub(super) provisional: bool,
    /// Files that cannot be written, for another reason than lack of room; they are not tried again.
    pub(super) given_up: BTreeSet<PathBuf>,
    pub(super) last: Option<LastWords>,
    /// Who is told of the run beside its own readers.
    pub(super) nested: Option<Nested>,
    /// What the run was told in whose step this one was started.
    pub(super) outer: Outer,
}

impl Recorder {
    /// A recorder for a run that has not started; `result` says where its result goes.
    #[must_use]
    pub fn new(home: &Arc<Home>, log: EventLog, result: ResultContext) -> Self {
        let writer = Writer::new(HomeDisk(Arc::clone(home)));
        Self::writing_to(writer, home.dir().clone(), log, result)
    }

    /// A recorder that goes on where another process stopped.
    #[must_use]
    pub fn resume(home: &Arc<Home>, log: EventLog, result: ResultContext, state: RunState) -> Self {
        let mut recorder = Self::new(home, log, result);
        // Whether the marker is there was the business of who began the run.
        recorder.marked = true;
        recorder.provisional = true;
        recorder.state = state;
        recorder
    }
}

impl<D: Disk> Recorder<D> {
    /// A recorder that writes its documents with this writer.
    pub(super) fn writing_to(writer: Writer<D>, dir: RunDir, log: EventLog, result: ResultContext) -> Self {
        Self {
            state: RunState::default(),
            encoder: StatusEncoder::default(),
            dir,
            log,
            writer,
            result,
            dirty: false,
            urgent: false,
            last_write: None,
            marked: false,
            provisional: false,
            given_up: BTreeSet::new(),
            last: None,
            nested: None,
            outer: Outer::default(),
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

    /// Records something that happens now. The next [`Recorder::flush_due`] writes transitions to status.json: whoever
    /// records acts on what it recorded first, a signal above all, and what belongs together is one write.
    pub fn record(&mut self, what: What) {
        let event = Event { at: now(), what };
        let was_open = self.open_target(&event.what);
        self.change(&event);
        if matches!(event.what, What::RunStarted(_)) {
            // A run is known by its status before anything is said of it (run-directory 2.4, 11).
            self.write_status();
            self.append(&event);
            return;
        }
        self.append(&event);
        match &event.what {
            What::SteerMoved { id, .. } if was_open => self.notice(id, event.at),
            // All of its targets may have failed at once.
            What::SteerRequested(request) => self.notice(&request.id, event.at),
            _ => {}
        }
        match event.what {
            // Anybody can send thousands of requests; the status follows them at its own pace.
            What::ControlRejected { .. }
            | What::ControlUnannounced { .. }
            | What::SteerRequested(_)
            | What::SteerMoved { .. } => {}
            // The step's end follows as a rule, which is worth a write; otherwise this is gathered like what it says.
            What::ChildExited { .. } => {}
            _ => self.urgent = true,
        }
    }

    /// Takes in an event that its pump has recorded already.
    pub fn absorb(&mut self, at: Timestamp, what: What) {
        self.change(&Event { at, what });
    }

    fn change(&mut self, event: &Event) {
        reduce(&mut self.state, event);
        self.dirty = true;
    }

    pub(super) fn append(&self, event: &Event) {
        if let Some(line) = records::encode(event, &RecordContext { state: &self.state }) {
            // A full disk must not end the run: the log keeps what it could not write and tries again.
            let _ = self.log.append(&line);
        }
    }

    fn open_target(&self, what: &What) -> bool {
        let What::SteerMoved { id, step, .. } = what else { return false };
        self.state.steering.target(id, *step).is_some_and(|t| t.state.is_open())
    }

    /// Tells that a request is settled and did not arrive everywhere (run-directory 3.6).
    fn notice(&self, request: &str, at: Timestamp) {
        let Some(found) = self.state.steering.all().rev().find(|r| r.id == request) else { return };
        let lost = |state: TargetState| matches!(state, TargetState::Failed | TargetState::Late);
        let Some(failed) = found.targets.iter().find(|t| t.state == TargetState::Failed) else { return };
        if found.targets.iter().any(|t| t.state.is_open()) {
            return;
        }
        let partial = found.targets.iter().any(|t| !lost(t.state));
        let agent = self.state.step(failed.step).map_or(String::new(), |s| format!(" ({})", s.agent));
        let reason = failed.reason.as_deref().unwrap_or("no reason is known");
        let rest = match found.targets.iter().filter(|t| t.state == TargetState::Failed).count() {
            1 => String::new(),
            n => format!(", nor {} others", n - 1),
        };
        let message =
            format!("The message {request} did not reach step {}{agent}{rest}: {reason}.", failed.step.number());
        let line = records::steering_notice(self.state.id.as_str(), request, partial, &message, at);
        // As in `append`.
        let _ = self.log.append(&line);
    }

    /// When something is to be written next, if nothing else happens.
    #[must_use]
    pub fn next_write(&self) -> Option<Instant> {
        let gathered = self.last_write.filter(|_| !self.urgent).map(|t| t + COALESCE);
        let status = self.dirty.then(|| gathered.unwrap_or_else(Instant::now));
        let retry = self.writer.retry_at().map(|at| Instant::now() + at.since(now()));
        // The log has no clock of its own.
        let log = self.log.pending().then(|| Instant::now() + crate::rundir::RETRY);
        [status, retry, log].into_iter().flatten().min()
    }

    /// Writes what is due: transitions, the first change after a quiet time, and what was gathered since the last
    /// write long enough. To be called before anything is waited for.
    pub fn flush_due(&mut self) {
        if self.dirty && (self.urgent || self.last_write.is_none_or(|t| t.elapsed() >= COALESCE)) {
            self.write_status();
        }
        let failures = self.writer.retry(now());
        self.failed(failures);
        if self.log.pending() {
            let _ = self.log.retry();
        }
    }

    /// Whether something is not on the disk yet; the runner may not go before it is.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.dirty || self.writer.pending() || self.log.pending() || self.last.as_ref().is_some_and(|l| !l.told)
    }

    /// Tries everything that waits.
    pub fn flush_all(&mut self) {
        if self.dirty {
            self.write_status();
        }
        let failures = self.writer.flush(now());
        self.failed(failures);
        self.go_on_ending();
        let _ = self.log.retry();
    }

    /// Writes a document beside the status, as soon as there is room for it.
    pub(super) fn keep(&mut self, path: &Path, bytes: Vec<u8>) {
        let written = self.writer.write(path, bytes, now());
        self.failed(written.err());
    }

    /// Says that requests are not taken any more (run-directory 3.7).
    pub fn close_inbox(&mut self, state: &str) {
        self.keep(&self.dir.inbox_closed(), inbox_closed::encode(now(), state));
    }

    /// Writes status.json now.
    pub fn write_status(&mut self) {
        (self.dirty, self.urgent) = (false, false);
        self.last_write = Some(Instant::now());
        if self.last.is_some() {
            return self.write_end();
        }
        // Every failure gives one file up, so this ends.
        while let Err(failure) = self.try_status() {
            if !self.give_up(&failure) {
                return;
            }
        }
    }

    fn try_status(&mut self) -> Result<(), WriteFailure> {
        let key = self.dir.status();
        let early_end = self.state.phase.is_terminal();
        let mut ops = Vec::new();
        // An interrupted run is paused at once, and a reader that sees a terminal status relies on a result
        // (runner-behaviour 10); when it is stopped instead, that result must not be taken for its end.
        if (early_end || self.provisional)
            && let Some(steps) = self.result.steps(&self.state, now())
        {
            ops.extend(if early_end { steps.leave_pending().to_vec() } else { steps.withdraw().to_vec() });
        }
        ops.push(Op::Replace(key.clone(), self.status_bytes()));
        if !self.marked
            && !early_end
            && let Some(root) = self.dir.root()
        {
            ops.push(index::active(&root, &self.state.id));
        }
        // What waits for room is not known to be done, and is done again with the next status.
        match self.perform(&key, ops)? {
            Written::Now => {
                if let Some(nested) = &mut self.nested {
                    nested.tell(&self.state, false);
                }
                self.outer.tell(&self.dir, &self.state);
                self.marked |= !early_end;
                self.provisional = early_end;
            }
            Written::Deferred => self.provisional |= early_end,
        }
        Ok(())
    }

    pub(super) fn status_bytes(&mut self) -> Vec<u8> {
        self.encoder.encode(&self.state, &StatusContext { dir: &self.dir, instance: None })
    }

    /// Does several things in their order, without the files that were given up.
    pub(super) fn perform(&mut self, key: &Path, mut ops: Vec<Op>) -> Result<Written, WriteFailure> {
        ops.retain(|op| !self.given_up.contains(op.path()));
        self.writer.perform(key, ops, now())
    }

    /// Takes in what could not be written after it had waited.
    fn failed(&mut self, failures: impl IntoIterator<Item = WriteFailure>) {
        for failure in failures {
            if failure.key != self.dir.status() {
                complain("runner", &failure);
            } else if self.last.is_some() {
                self.end_failed(&failure);
                self.write_end();
            } else if self.give_up(&failure) {
                self.write_status();
            }
        }
    }

    /// Whether the rest can be tried without the file that failed. The status itself is tried again with the next
    /// change.
    fn give_up(&mut self, failure: &WriteFailure) -> bool {
        complain("runner", &failure);
        failure.path != self.dir.status() && self.given_up.insert(failure.path.clone())
    }

    /// Ends the run: its result, its last status, its place in the indexes, its last record and its log for people
    /// (run-directory 11.6). What lacks room is written by [`Recorder::flush_all`].
    pub fn end(&mut self, state: RunPhase, error: Option<String>, texts: BTreeMap<StepId, String>) {
        self.result.texts = texts;
        self.given_up.clear();
        let (state, error) = match (self.state.session_id.as_deref(), state) {
            (None | Some(""), RunPhase::Complete) => {
                let path = self.result.public(&self.state);
                let error = format!("the run has no session, so its result {} cannot be written", path.display());
                (RunPhase::Failed, Some(error))
            }
            (_, state) => (state, error),
        };
        let event = Event { at: now(), what: What::RunEnded { state, error } };
        self.last = Some(LastWords::new(self.state.clone(), event.clone()));
        self.change(&event);
        self.write_status();
    }
}

#[cfg(test)]
mod tests;
