//! What the parent of a workflow records nowhere: when the run and its steps began and ended, and how. Its status has the
//! times (run-directory 2.17), and whoever is told what happens is told of these too.

use std::collections::BTreeSet;

use crate::run::{Event, RunMeta, RunState, StepId, StepOutcome, StepPhase, Timestamp, What};

/// Which beginnings and ends were told.
#[derive(Debug, Default)]
pub(super) struct Told {
    began: BTreeSet<StepId>,
    ended: BTreeSet<StepId>,
    run_began: bool,
    run_ended: bool,
}

impl Told {
    /// Somebody recorded it.
    pub(super) fn hear(&mut self, what: &What) {
        match what {
            What::RunStarted(_) => self.run_began = true,
            What::RunEnded { .. } => self.run_ended = true,
            What::StepStarted { step } => drop(self.began.insert(*step)),
            What::StepEnded { step, .. } => drop(self.ended.insert(*step)),
            _ => {}
        }
    }

    /// What the status of a workflow tells beyond that; from now on it is told.
    pub(super) fn missing(&mut self, status: &RunState) -> Vec<Event> {
        let mut missing = Vec::new();
        let mut happened = |at: Option<Timestamp>, what: What| {
            missing.extend(at.map(|at| Event { at, what }));
            at.is_some()
        };
        if !self.run_began {
            let meta = RunMeta { mode: status.mode.clone(), pid: status.pid, ..RunMeta::default() };
            self.run_began = happened(status.started_at, What::RunStarted(Box::new(meta)));
        }
        for step in &status.steps {
            let id = step.id;
            if !self.began.contains(&id) && happened(step.started_at, What::StepStarted { step: id }) {
                self.began.insert(id);
            }
            if step.phase.is_terminal() && !self.ended.contains(&id) {
                let outcome = StepOutcome {
                    phase: step.phase.clone(),
                    exit_code: step.exit_code.unwrap_or(i32::from(step.phase != StepPhase::Complete)),
                    error: step.error.clone(),
                    timed_out: step.timed_out,
                    stopped: step.stopped,
                    ..StepOutcome::default()
                };
                if happened(step.ended_at, What::StepEnded { step: id, outcome: Box::new(outcome) }) {
                    self.ended.insert(id);
                }
            }
        }
        if status.phase.is_terminal() && !self.run_ended {
            let ended = What::RunEnded { state: status.phase.clone(), error: status.error.clone() };
            self.run_ended = happened(status.ended_at, ended);
        }
        missing
    }
}

/// The place of an event among those of the same time: nothing happened outside of the run, and nothing in a step outside
/// of it.
pub(super) const fn rank(event: &Event) -> u8 {
    match event.what {
        What::RunStarted(_) => 0,
        What::StepStarted { .. } => 1,
        What::StepEnded { .. } => 3,
        What::RunEnded { .. } => 4,
        _ => 2,
    }
}
