//! How steps and runs end, and the exit code that says so.

use super::{Ledger, NamedOutput, RunPhase, RunState, StepPhase};

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
    /// How its acceptance went, where one was asked for.
    pub acceptance: Option<Box<Ledger>>,
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
    let over = over_budget(state);
    let phase = if state.stopped {
        RunPhase::Stopped
    } else if state.timed_out || over || state.error.is_some() {
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
        RunPhase::Failed => Some(state.error.clone().unwrap_or_else(|| failure(state))),
        _ => state.error.clone(),
    };
    RunVerdict { phase, error }
}

/// Why a run failed that has no error of its own. What a step used too much of is the run's error too; what took too
/// long is only its step's (runner-behaviour 3.1, 3.6).
fn failure(state: &RunState) -> String {
    let mut failed = state.steps.iter().filter(|s| matches!(s.phase, StepPhase::Failed | StepPhase::Rejected));
    let spent = failed.clone().find(|s| s.budget.exceeded.is_some()).and_then(|s| s.error.clone());
    let first = || failed.next().map(|s| format!("Step failed: {}", s.agent));
    spent.or_else(first).unwrap_or_else(|| "Not every step was run.".to_owned())
}

/// Whether a limit of the run or of a step was passed that counts something other than time.
fn over_budget(state: &RunState) -> bool {
    let spent = |s: &super::StepState| s.budget.exceeded.is_some() && s.phase == StepPhase::Failed;
    state.budget.exceeded.is_some() || state.steps.iter().any(spent)
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

/// The exit code of a run that is over. Of several causes the order is: stopped, timed out, over budget, failed, needs
/// a person, paused; lost only where no end was recorded.
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
        _ if over_budget(state) => ExitCause::OverBudget,
        _ if state.lost.is_some() => ExitCause::Lost,
        RunPhase::Paused if state.steps.iter().any(|s| matches!(s.phase, StepPhase::Failed | StepPhase::Rejected)) => {
            ExitCause::Failed
        }
        // What paused it is that somebody would have had to be asked.
        RunPhase::Paused if state.steps.iter().any(|s| s.unanswered.is_some()) => ExitCause::NeedsPerson,
        RunPhase::Paused => ExitCause::Paused,
        _ => ExitCause::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Metric, StepState, Timestamp};

    /// What can be true of a run at its end. Every combination of them, and more, is looked at where the files of a run are
    /// written: `rundir::tests::ends`.
    const FLAGS: [&str; 9] = [
        "stopped",
        "run timed out",
        "run over budget",
        "step over budget",
        "interrupted",
        "step timed out",
        "step failed",
        "step stopped",
        "step pending",
    ];

    /// A run of four steps in which these things happened.
    fn run(flags: u32) -> RunState {
        let has = |name: &str| FLAGS.iter().position(|f| *f == name).is_some_and(|bit| flags & (1 << bit) != 0);
        let complete = |id: &str| StepState { agent: id.into(), phase: StepPhase::Complete, ..StepState::default() };
        let failed =
            |id: &str| StepState { phase: StepPhase::Failed, error: Some(format!("{id} broke")), ..complete(id) };
        let mut state = RunState {
            phase: RunPhase::Running,
            steps: vec![complete("a"), complete("b"), complete("c"), complete("d")],
            stopped: has("stopped"),
            timed_out: has("run timed out") && !has("stopped"),
            interrupted: has("interrupted"),
            ..RunState::default()
        };
        if state.timed_out {
            state.error = Some("time".into());
        }
        if has("run over budget") {
            state.budget.exceeded = Some(Metric::Tokens);
            state.error.get_or_insert_with(|| "tokens".into());
        }
        if state.stopped {
            state.error = Some("stop".into());
        }
        if has("step failed") {
            state.steps[0] = failed("a");
        }
        if has("step timed out") {
            state.steps[1] = StepState { timed_out: true, ..failed("b") };
        }
        if has("step over budget") {
            state.steps[2] = failed("c");
            state.steps[2].budget.exceeded = Some(Metric::Turns);
        }
        if has("step stopped") {
            state.steps[3] = StepState { phase: StepPhase::Stopped, stopped: true, ..complete("d") };
        }
        if has("step pending") {
            state.steps.push(StepState::default());
        }
        state
    }

    #[test]
    fn the_error_of_a_run_names_what_ended_it() {
        let bit = |name: &str| 1 << FLAGS.iter().position(|f| *f == name).unwrap();
        for (flags, error) in [
            (bit("step failed"), "Step failed: a"),
            (bit("step timed out"), "Step failed: b"),
            (bit("step over budget") | bit("step failed"), "c broke"),
            (bit("run over budget") | bit("step failed"), "tokens"),
            (bit("run timed out") | bit("step over budget"), "time"),
        ] {
            assert_eq!(verdict(&run(flags)).error.as_deref(), Some(error));
        }
    }

    #[test]
    fn a_run_without_a_recorded_end_is_lost() {
        let mut state = run(0);
        state.phase = RunPhase::Running;
        assert_eq!(exit_code(&state), ExitCause::Lost);
        (state.phase, state.lost) = (RunPhase::Failed, Some("gone".into()));
        assert_eq!(exit_code(&state), ExitCause::Lost);
        state.ended_at = Some(Timestamp::from_millis(1));
        assert_eq!(exit_code(&state), ExitCause::Lost);
        state.steps[0].timed_out = true;
        assert_eq!(exit_code(&state), ExitCause::TimedOut, "what was recorded says more");
    }
}
