//! The logs of a run's steps, opened when they are needed: a run may have more steps than a process may have files.

use std::collections::BTreeMap;

use crate::run::{StepId, Stream};
use crate::rundir::{RunDir, StepLog};

/// How many logs have their files open.
const OPEN_MOST: usize = 24;

/// The logs of one run.
pub(super) struct Logs {
    dir: RunDir,
    logs: BTreeMap<StepId, StepLog>,
    /// Of which steps one stream is looked at.
    only: BTreeMap<StepId, Stream>,
    /// The steps whose logs are open, the one that was looked at last at the end.
    open: Vec<StepId>,
}

impl Logs {
    pub(super) const fn new(dir: RunDir) -> Self {
        Self { dir, logs: BTreeMap::new(), only: BTreeMap::new(), open: Vec::new() }
    }

    /// Looks at one stream of a step, or at all again. Returns whether that is another log than before.
    pub(super) fn show(&mut self, step: StepId, only: Option<Stream>) -> bool {
        if self.only.get(&step).copied() == only {
            return false;
        }
        match only {
            Some(stream) => self.only.insert(step, stream),
            None => self.only.remove(&step),
        };
        self.logs.remove(&step);
        true
    }

    /// The log of a step; the one that was not looked at for the longest time lets go of its files.
    pub(super) fn get(&mut self, step: StepId) -> &mut StepLog {
        let (dir, only) = (&self.dir, self.only.get(&step).copied());
        let opened = || match only {
            Some(stream) => StepLog::open_only(dir, step, stream),
            None => StepLog::open(dir, step),
        };
        if self.open.last() != Some(&step) {
            self.open.retain(|other| *other != step);
            self.open.push(step);
            if self.open.len() > OPEN_MOST
                && let Some(log) = self.logs.get_mut(&self.open.remove(0))
            {
                log.rest();
            }
        }
        let log = self.logs.entry(step).or_insert_with(opened);
        if log.is_resting() {
            log.refresh();
        }
        if log.is_starved() {
            // The one that is looked at is worth more than all others.
            self.open.retain(|other| *other == step);
            self.logs.iter_mut().filter(|(other, _)| **other != step).for_each(|(_, log)| log.rest());
        }
        let log = self.logs.entry(step).or_insert_with(opened);
        if log.is_starved() {
            log.refresh();
        }
        log
    }
}
