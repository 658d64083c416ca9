//! The logs of a run's steps, opened when they are needed: a run may have more steps than a process may have files.

use std::collections::BTreeMap;

use crate::run::StepId;
use crate::rundir::{RunDir, StepLog};

/// How many logs have their files open.
const OPEN_MOST: usize = 24;

/// The logs of one run.
pub(super) struct Logs {
    dir: RunDir,
    logs: BTreeMap<StepId, StepLog>,
    /// The steps whose logs are open, the one that was looked at last at the end.
    open: Vec<StepId>,
}

impl Logs {
    pub(super) const fn new(dir: RunDir) -> Self {
        Self { dir, logs: BTreeMap::new(), open: Vec::new() }
    }

    /// The log of a step; the one that was not looked at for the longest time lets go of its files.
    pub(super) fn get(&mut self, step: StepId) -> &mut StepLog {
        let dir = &self.dir;
        if self.open.last() != Some(&step) {
            self.open.retain(|other| *other != step);
            self.open.push(step);
            if self.open.len() > OPEN_MOST
                && let Some(log) = self.logs.get_mut(&self.open.remove(0))
            {
                log.rest();
            }
        }
        let log = self.logs.entry(step).or_insert_with(|| StepLog::open(dir, step));
        if log.is_resting() {
            log.refresh();
        }
        if log.is_starved() {
            // The one that is looked at is worth more than all others.
            self.open.retain(|other| *other == step);
            self.logs.iter_mut().filter(|(other, _)| **other != step).for_each(|(_, log)| log.rest());
        }
        let log = self.logs.entry(step).or_insert_with(|| StepLog::open(dir, step));
        if log.is_starved() {
            log.refresh();
        }
        log
    }
}
