//! How a run and a step stand, in the glyphs and words that everything shows to people: the deck, what is printed, what is
//! exported. Programs get the words of the contract with other readers ([`super::RunPhase`], [`super::StepPhase`]).

use super::{ExitCause, RunPhase, RunState, StepState, exit_code};

/// A step's state as a person sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum StepFace {
    Queued,
    Starting,
    Running,
    Attention,
    Paused,
    Stopping,
    Succeeded,
    Failed,
    TimedOut,
    OverBudget,
    Stopped,
    Skipped,
    Lost,
    Unknown,
}

impl StepFace {
    /// All of them: what waits, what goes on, what ended.
    pub const ALL: [Self; 14] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Attention,
        Self::Stopping,
        Self::Paused,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::OverBudget,
        Self::Stopped,
        Self::Skipped,
        Self::Lost,
        Self::Unknown,
    ];

    /// Its glyph, one cell wide; no two have the same.
    #[must_use]
    pub const fn glyph(self) -> &'static str {
        self.told().0
    }

    /// Its word; no two have the same.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.told().1
    }

    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Queued => ("○", "queued"),
            Self::Starting => ("◌", "starting"),
            Self::Running => ("●", "running"),
            Self::Attention => ("▲", "attention"),
            Self::Paused => ("‖", "paused"),
            Self::Stopping => ("◐", "stopping"),
            Self::Succeeded => ("✓", "done"),
            Self::Failed => ("✗", "failed"),
            Self::TimedOut => ("◷", "timed out"),
            Self::OverBudget => ("$", "over budget"),
            Self::Stopped => ("■", "stopped"),
            Self::Skipped => ("–", "skipped"),
            Self::Lost => ("†", "lost"),
            Self::Unknown => ("?", "unknown"),
        }
    }
}

impl RunState {
    /// How a step of this run stands: one that waits for its turn in a run that is over waits for nothing.
    #[must_use]
    pub fn face(&self, step: &StepState) -> StepFace {
        match step.face() {
            StepFace::Queued if self.is_over() => StepFace::Skipped,
            // What the death of the runner ended is failed by the contract with other readers (run-directory 7).
            StepFace::Failed if self.lost.is_some() && step.error == self.lost => StepFace::Lost,
            face => face,
        }
    }

    /// Why nobody takes a request for a run that has ended, in a sentence without a stop: one that is paused can be gone on
    /// with and is not called over too.
    #[must_use]
    pub fn closed(&self) -> String {
        match &self.phase {
            _ if self.lost.is_some() => "the run is over (lost)".to_owned(),
            RunPhase::Paused => "the run is paused".to_owned(),
            phase => format!("the run is over ({})", phase.as_str()),
        }
    }

    /// How the run stands, and the word for it, which for some states is another than that of a step. It agrees with the
    /// exit code that the run has for scripts.
    #[must_use]
    pub fn run_face(&self) -> (StepFace, &'static str) {
        let face = match &self.phase {
            _ if self.lost.is_some() => StepFace::Lost,
            RunPhase::Queued => StepFace::Starting,
            RunPhase::Running if self.stopped || self.timed_out => StepFace::Stopping,
            RunPhase::Running if self.interrupted => return (StepFace::Stopping, "pausing"),
            RunPhase::Running => StepFace::Running,
            RunPhase::Complete => return (StepFace::Succeeded, "complete"),
            RunPhase::Failed => match exit_code(self) {
                ExitCause::TimedOut => StepFace::TimedOut,
                ExitCause::OverBudget => StepFace::OverBudget,
                ExitCause::Stopped => StepFace::Stopped,
                _ => StepFace::Failed,
            },
            // Its children are still to end.
            RunPhase::Paused if self.ended_at.is_none() => return (StepFace::Stopping, "pausing"),
            RunPhase::Paused => StepFace::Paused,
            RunPhase::Stopped => StepFace::Stopped,
            RunPhase::Rejected => return (StepFace::Failed, "rejected"),
            RunPhase::Unknown(_) => StepFace::Unknown,
        };
        (face, face.word())
    }
}
