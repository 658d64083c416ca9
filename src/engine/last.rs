//! The last documents of a run and their order. A terminal status is never on the disk without a result, and both are
//! there before anything says that the run has ended (run-directory 11.6, runner-behaviour 10).

use std::collections::BTreeMap;

use super::clock::now;
use super::complain::complain;
use super::recorder::Recorder;
use crate::run::{Event, RunPhase, RunState, StepId, What, reduce};
use crate::rundir::{Disk, Op, WriteFailure, Written, index, logmd};

/// The end of a run on its way to the disk.
#[derive(Debug)]
pub(super) struct LastWords {
    /// The state before the end.
    before: RunState,
    event: Event,
    without_result: bool,
    /// The result is on the disk already, and is not made anew from what is known.
    has_result: bool,
    /// So is the status.
    has_status: bool,
    /// So is the event.
    has_event: bool,
    /// Everything that must come first is on the disk, and the end has been told.
    pub(super) told: bool,
}

impl LastWords {
    pub(super) const fn new(before: RunState, event: Event) -> Self {
        Self {
            before,
            event,
            without_result: false,
            has_result: false,
            has_status: false,
            has_event: false,
            told: false,
        }
    }
}

impl<D: Disk> Recorder<D> {
    /// Writes the end as one chain: whatever lacks room holds back everything behind it.
    pub(super) fn write_end(&mut self) {
        let key = self.dir.status();
        loop {
            let Some(last) = &self.last else { return };
            if last.told {
                return;
            }
            let (without_result, has_result, has_status) = (last.without_result, last.has_result, last.has_status);
            let ops = self.last_ops(without_result, has_result, has_status);
            match self.perform(&key, ops) {
                Ok(Written::Now) => return self.tell_end(),
                Ok(Written::Deferred) => return,
                // Every failure leaves something out, so this ends.
                Err(failure) => self.end_failed(&failure),
            }
        }
    }

    fn last_ops(&mut self, without_result: bool, has_result: bool, has_status: bool) -> Vec<Op> {
        let steps = self.result.steps(&self.state, now());
        let mut ops = Vec::new();
        let mut publish = Vec::new();
        match steps {
            Some(steps) if has_result => {
                publish = steps.make_public().into();
                if !steps.pending.path().exists() {
                    publish.remove(0);
                }
            }
            Some(steps) if !without_result => {
                publish = steps.make_public().into();
                ops.extend(steps.leave_pending());
            }
            // A provisional result of something else must not pass for the end.
            Some(steps) if self.provisional => ops.extend(steps.withdraw()),
            _ => {}
        }
        if !has_status {
            ops.push(Op::Keep(self.dir.status(), self.status_bytes()));
        }
        if let Some(root) = self.dir.root() {
            ops.push(index::inactive(&root, &self.state.id));
            ops.extend(index::terminal(&root, &self.state));
        }
        ops.extend(publish);
        ops
    }

    /// Writes what is missing of an end that is in the state and of which the result is on the disk, with `status` the
    /// status too, and with `told` the event that tells it.
    pub(super) fn finish(&mut self, texts: BTreeMap<StepId, String>, status: bool, told: bool) {
        self.result.texts = texts;
        self.given_up.clear();
        let what = What::RunEnded { state: self.state.phase.clone(), error: self.state.error.clone() };
        let event = Event { at: self.state.ended_at.unwrap_or_else(now), what };
        let last = LastWords::new(self.state.clone(), event);
        self.last = Some(LastWords { has_result: true, has_status: status, has_event: told, ..last });
        self.write_status();
    }

    /// Decides how the end goes on without a file that cannot be written.
    pub(super) fn end_failed(&mut self, failure: &WriteFailure) {
        complain("runner", &failure);
        let Some(last) = &mut self.last else { return };
        let essential = self
            .result
            .steps(&self.state, now())
            .is_some_and(|s| [s.pending.path(), s.session_entry.path()].contains(&failure.path.as_path()));
        if !essential || last.without_result {
            self.given_up.insert(failure.path.clone());
            return;
        }
        // A result that cannot be written makes the run failed, whatever its children did (runner-behaviour 10).
        last.without_result = true;
        if let What::RunEnded { state, error } = &mut last.event.what {
            if *state != RunPhase::Failed || error.is_none() {
                *error = Some(failure.to_string());
            }
            *state = RunPhase::Failed;
        }
        self.state = last.before.clone();
        reduce(&mut self.state, &last.event);
    }

    /// Tells the end once nothing that comes before it waits any more.
    pub(super) fn go_on_ending(&mut self) {
        let status = self.dir.status();
        if self.last.as_ref().is_some_and(|l| !l.told) && !self.writer.waiting().any(|key| key == status) {
            self.tell_end();
        }
    }

    fn tell_end(&mut self) {
        let Some(last) = &mut self.last else { return };
        last.told = true;
        let event = (!last.has_event).then(|| last.event.clone());
        if let Some(nested) = &mut self.nested {
            nested.tell(&self.state, true);
        }
        self.outer.tell(&self.dir, &self.state);
        if let Some(event) = event {
            self.append(&event);
        }
        let text = logmd::encode(&self.state, &self.result);
        if let Err(failure) = self.writer.write(&self.dir.log_markdown(), text, now()) {
            complain("runner", &failure);
        }
    }
}
