//! How many bytes of output a step and a run may keep (product 5, "disk").

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The default for a step: large enough for any honest log, small enough for a disk.
pub const STEP_CAP: u64 = 2 * 1024 * 1024 * 1024;
/// The default for a run.
pub const RUN_CAP: u64 = 8 * 1024 * 1024 * 1024;

/// The allowance of a run, from which its steps take.
#[derive(Clone, Debug)]
pub struct Capture {
    run: Arc<AtomicU64>,
    run_cap: u64,
    step_cap: u64,
}

/// The allowance of one step; its streams share it.
#[derive(Clone, Debug)]
pub struct Allowance {
    step: Arc<AtomicU64>,
    run: Arc<AtomicU64>,
    /// The smaller of the two caps in bytes: what a person is told.
    pub cap: u64,
}

impl Capture {
    /// An allowance of `run_cap` bytes in all and `step_cap` bytes a step.
    #[must_use]
    pub fn new(step_cap: u64, run_cap: u64) -> Self {
        Self { run: Arc::new(AtomicU64::new(run_cap)), run_cap, step_cap }
    }

    /// What one step may keep.
    #[must_use]
    pub fn step(&self) -> Allowance {
        Allowance {
            step: Arc::new(AtomicU64::new(self.step_cap)),
            run: Arc::clone(&self.run),
            cap: self.step_cap.min(self.run_cap),
        }
    }
}

impl Allowance {
    /// Takes up to `wanted` bytes; returns how many are granted.
    #[must_use]
    pub fn take(&self, wanted: usize) -> usize {
        let from_step = take(&self.step, wanted as u64);
        let from_run = take(&self.run, from_step);
        if from_run < from_step {
            self.step.fetch_add(from_step - from_run, Ordering::Relaxed);
        }
        usize::try_from(from_run).unwrap_or(usize::MAX)
    }
}

fn take(from: &AtomicU64, wanted: u64) -> u64 {
    let before = from
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(wanted)))
        .unwrap_or_else(|left| left);
    before.min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_stops_at_its_cap_and_all_steps_at_the_runs() {
        let capture = Capture::new(10, 15);
        let (a, b) = (capture.step(), capture.step());
        assert_eq!(a.take(8), 8);
        assert_eq!(a.take(8), 2, "the step's cap");
        assert_eq!(b.take(8), 5, "what the run has left");
        assert_eq!(b.take(8), 0);
        assert_eq!(a.cap, 10);
    }
}
