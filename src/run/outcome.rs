//! How steps and runs end, and the exit code that says so.

use super::{NamedOutput, RunPhase, RunState, StepPhase};

/// How a step ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutcome {
    /// One of the ends.
    pub phase: StepPhase,
    /// The step's exit code (run-directory 8.3): the child's own, 0 for paused, 1 for stopped and timed out,
    /// -1 for skipped by fail-fast.
    pub exit_code: i32,
    /// What went wrong.
    pub error: Option<String>,
    /// Its time, or the run's, was over.
    pub timed_out: bool,
    /// Somebody stopped it.
    pub stopped: bool,
    /// The signal that ended the child, when nobody here sent it.
    pub signal: Option<i32>,
    /// What later steps may use, and under which name.
    pub output: Option<(String, NamedOutput)>,
}

/// The end of a run, decided from its steps (run-directory 8.1, runner-behaviour 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVerdict {
    /// The final state.
    pub phase: RunPhase,
    /// The error, which a failed run always has.
    pub error: Option<String>,
}

/// Decides how the run ended. To be asked only when no step runs any more.
#[must_use]
pub fn verdict(state: &RunState) -> RunVerdict {
    let phase = if state.stopped {
        RunPhase::Stopped
    } else if state.timed_out || state.error.is_some() {
        RunPhase::Failed
    } else if state.interrupted {
        RunPhase::Paused
    } else if state.steps.iter().all(|s| s.phase == StepPhase::Complete) {
        RunPhase::Complete
    } else if state.steps.iter().any(|s| matches!(s.phase, StepPhase::Failed | StepPhase::Rejected)) {
        RunPhase::Failed
    } else if state.steps.iter().any(|s| s.phase == StepPhase::Stopped) {
        // Only single steps were stopped and nothing failed: the run did not do what was asked, and somebody
        // wanted it so.
        RunPhase::Stopped
    } else {
        RunPhase::Failed
    };
    let error = match phase {
        RunPhase::Failed => state.error.clone().or_else(|| {
            state
                .steps
                .iter()
                .find(|s| matches!(s.phase, StepPhase::Failed | StepPhase::Rejected))
                .map(|s| format!("Step failed: {}", s.agent))
        }),
        _ => state.error.clone(),
    };
    RunVerdict { phase, error }
}

/// Why `subdeck` ends with the code it ends with (product 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ExitCause {
    Complete,
    Failed,
    Usage,
    Stopped,
    Paused,
    TimedOut,
    OverBudget,
    Lost,
    WaitTimeout,
    NeedsPerson,
}

impl ExitCause {
    /// All of them in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Complete,
        Self::Failed,
        Self::Usage,
        Self::Stopped,
        Self::Paused,
        Self::TimedOut,
        Self::OverBudget,
        Self::Lost,
        Self::WaitTimeout,
        Self::NeedsPerson,
    ];

    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Stopped => 3,
            Self::Paused => 4,
            Self::TimedOut => 5,
            Self::OverBudget => 6,
            Self::Lost => 7,
            Self::WaitTimeout => 8,
            Self::NeedsPerson => 9,
        }
    }

    /// One line for the table of `subdeck help exit-codes`.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "a step failed",
            Self::Usage => "usage or invalid plan, nothing started",
            Self::Stopped => "stopped",
            Self::Paused => "paused by an interrupt",
            Self::TimedOut => "timed out (run, step or tool)",
            Self::OverBudget => "over budget (turns, tools, tokens, cost)",
            Self::Lost => "lost (the runner died, or the run could not be recorded)",
            Self::WaitTimeout => "`wait` ran out of time",
            Self::NeedsPerson => "waiting for a person in a headless run that may not wait",
        }
    }
}

/// The exit code of a run that is over. Of several causes the order is: stopped, timed out, over budget, failed,
/// paused; lost only where no end was recorded.
#[must_use]
pub fn exit_code(state: &RunState) -> ExitCause {
    if !state.phase.is_terminal() || (state.lost.is_some() && state.ended_at.is_none()) {
        return ExitCause::Lost;
    }
    match state.phase {
        RunPhase::Complete => ExitCause::Complete,
        RunPhase::Stopped => ExitCause::Stopped,
        _ if state.stopped => ExitCause::Stopped,
        _ if state.timed_out || state.steps.iter().any(|s| s.timed_out) => ExitCause::TimedOut,
        _ if state.budget.exceeded.is_some() || state.steps.iter().any(|s| s.budget.exceeded.is_some()) => {
            ExitCause::OverBudget
        }
        _ if state.lost.is_some() => ExitCause::Lost,
        RunPhase::Paused => ExitCause::Paused,
        _ => ExitCause::Failed,
    }
}
