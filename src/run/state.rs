//! The state of a run: nouns only. [`super::reduce`] is the one place that changes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{
    BudgetState, ControlSource, CostUsd, Gaps, Limits, RunContract, RunId, Steering, StepId, StepPhase, StepState,
    Timestamp, Tokens,
};

/// A request that no deck or command of ours announced (product 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unannounced {
    /// When it came.
    pub at: Timestamp,
    /// The step that it is about, or that stands for the run.
    pub step: StepId,
    /// What it is, in words.
    pub told: String,
}

/// Everything known of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// Its id.
    pub id: RunId,
    /// What the user calls it.
    pub name: Option<String>,
    /// The session bucket (run-directory 1.6).
    pub session_id: Option<String>,
    /// The parent process that wants the result.
    pub owner_id: Option<String>,
    /// Its shape.
    pub mode: RunMode,
    /// Where it stands.
    pub phase: RunPhase,
    /// The runner's process id.
    pub pid: Option<u32>,
    /// Where it works.
    pub cwd: String,
    /// When the runner started.
    pub started_at: Option<Timestamp>,
    /// When it ended; set only by the final write.
    pub ended_at: Option<Timestamp>,
    /// When the newest event was.
    pub last_update: Option<Timestamp>,
    /// When a child last did something.
    pub last_activity: Option<Timestamp>,
    /// The time limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// When its time is over.
    pub deadline_at: Option<Timestamp>,
    /// The deadline was given as a moment and does not move when the machine sleeps.
    pub deadline_fixed: bool,
    /// What the whole run may use beside its time.
    pub limits: Limits,
    /// What became of these limits.
    pub budget: BudgetState,
    /// When the machine slept.
    pub gaps: Gaps,
    /// Since when the disk is nearly full, and how many bytes were free then.
    pub disk_low: Option<(Timestamp, u64)>,
    /// The newest request that no deck or command of ours announced.
    pub unannounced: Option<Unannounced>,
    /// The steps in flat order.
    pub steps: Vec<StepState>,
    /// Which of them form parallel groups.
    pub groups: Vec<Group>,
    /// How many logical steps there are.
    pub logical_count: usize,
    /// The step started last or heard from last.
    pub current: Option<StepId>,
    /// The step started last; its log is the run's `outputFile`.
    pub last_started: Option<StepId>,
    /// What was asked of the run.
    pub steering: Steering,
    /// The run's error.
    pub error: Option<String>,
    /// A stop was asked for (set when it begins).
    pub stopped: bool,
    /// The time was over (set when it begins).
    pub timed_out: bool,
    /// An interrupt was asked for (set when it begins).
    pub interrupted: bool,
    /// Who asked for the newest interrupt, stop or timeout.
    pub ended_by: Option<ControlSource>,
    /// Named outputs of finished steps.
    pub outputs: BTreeMap<String, NamedOutput>,
    /// The run this one goes on from.
    pub resumed_from: Option<RunId>,
    /// The run of ours in whose step this one was started.
    pub started_in: Option<Within>,
    /// What its launcher said for the package's readers.
    pub contract: RunContract,
    /// The runner died without an end: what is known of it.
    pub lost: Option<String>,
    /// What the run says it used as a whole, where its steps say nothing of themselves.
    pub totals: Option<(Tokens, Option<CostUsd>)>,
    /// Control files that were refused: name and reason, newest last, at most 20.
    pub rejected: VecDeque<(String, String)>,
    /// Events that could not have happened in the state they met; counted, never fatal.
    pub anomalies: u64,
    /// The next order number for open calls; ties in time are decided by it.
    pub next_seq: u64,
}

impl RunState {
    /// The step with this id.
    #[must_use]
    pub fn step(&self, id: StepId) -> Option<&StepState> {
        // Ids equal positions until a dynamic group moves them, so the position is tried first.
        match self.steps.get(id.flat()) {
            Some(step) if step.id == id => Some(step),
            _ => self.steps.iter().find(|s| s.id == id),
        }
    }

    /// The step with this id, to be changed; only [`super::reduce`] and readers of snapshots may.
    pub fn step_mut(&mut self, id: StepId) -> Option<&mut StepState> {
        match self.steps.get(id.flat()) {
            Some(step) if step.id == id => self.steps.get_mut(id.flat()),
            _ => self.steps.iter_mut().find(|s| s.id == id),
        }
    }

    /// Tokens of all steps; where none reported any, those of the whole.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        let mut sum = Tokens::default();
        for step in &self.steps {
            sum += step.tokens;
        }
        self.totals.map(|(tokens, _)| tokens).filter(|_| sum.is_zero()).unwrap_or(sum)
    }

    /// Cost of all steps; where none reported one, that of the whole, if that is known.
    #[must_use]
    pub fn cost(&self) -> Option<CostUsd> {
        let mut sum = None;
        for cost in self.steps.iter().filter_map(|s| s.cost) {
            *sum.get_or_insert(CostUsd(0.0)) += cost;
        }
        sum.or_else(|| self.totals.and_then(|(_, cost)| cost))
    }

    /// How long it ran, or runs as of `now`; of a lost one without an end how long it was heard of.
    #[must_use]
    pub fn elapsed(&self, now: Timestamp) -> Option<Duration> {
        let end = self.ended_at.or_else(|| self.lost.as_ref().and(self.last_update)).unwrap_or(now);
        self.started_at.map(|start| end.since(start))
    }

    /// Whether an end was asked for and is not reached yet.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.ended_at.is_none() && (self.stopped || self.timed_out || self.interrupted)
    }

    /// Whether it has reached its end.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.lost.is_some() || (self.phase.is_terminal() && self.ended_at.is_some())
    }

    /// How many steps have ended; a lost one has no end that is known, a paused one is to go on, and one that never ran
    /// has done nothing that could be counted.
    #[must_use]
    pub fn steps_ended(&self) -> usize {
        let ended = |phase: &StepPhase| phase.is_terminal() && !matches!(phase, StepPhase::Lost | StepPhase::Paused);
        self.steps.iter().filter(|s| ended(&s.phase) && !s.never_ran()).count()
    }
}

/// The shape of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunMode {
    /// One step.
    #[default]
    Single,
    /// One group.
    Parallel,
    /// Steps after each other, some of them groups.
    Chain,
    /// A script in the parent launches the steps (run-directory 2.17).
    Workflow,
    /// A word this version does not know.
    Unknown(String),
}

/// Where a run stands (run-directory 8.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    /// It has not started.
    #[default]
    Queued,
    /// It runs; with `stopped` or `timed_out` set it is ending.
    Running,
    /// Every step succeeded.
    Complete,
    /// Something failed.
    Failed,
    /// It was interrupted; its agents can go on in a new run.
    Paused,
    /// It was stopped.
    Stopped,
    /// It was refused.
    Rejected,
    /// A word this version does not know.
    Unknown(String),
}

impl RunPhase {
    /// Whether it is one of the five ends.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Paused | Self::Stopped | Self::Rejected)
    }

    /// The word that files use.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Rejected => "rejected",
            Self::Unknown(word) => word,
        }
    }
}

/// Flat steps `start .. start + count` form the logical step `logical` (run-directory 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The first flat step.
    pub start: usize,
    /// How many.
    pub count: usize,
    /// The logical step.
    pub logical: usize,
}

/// A place in another run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Which run.
    pub run: RunId,
    /// Which step of it, where that is known.
    pub step: Option<StepId>,
}

/// The output of a finished step that later steps may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedOutput {
    /// The text; shared, because it may be long and a picture of a run is made of several states.
    pub text: Arc<str>,
    /// The agent.
    pub agent: String,
    /// The logical step.
    pub logical: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_step_has_not_ended() {
        use StepPhase::{Complete, Failed, Lost, Paused, Pending, Running, Stopped};
        let step = |phase| StepState { phase, ..StepState::default() };
        let steps = [Complete, Failed, Stopped, Paused, Lost, Running, Pending].map(step).into();
        assert_eq!(RunState { steps, ..RunState::default() }.steps_ended(), 3);
    }
}
