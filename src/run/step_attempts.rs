//! The attempts of a step: those that were made, the one that is to be made, and how the child of one is ended.

use super::{Timestamp, Transport, Usage};

/// One attempt of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    /// The model asked for.
    pub model: Option<String>,
    /// Why there was another attempt.
    pub reason: Option<String>,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended, if another one followed.
    pub ended_at: Option<Timestamp>,
    /// How it ended, once it has.
    pub success: Option<bool>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Its error.
    pub error: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// Its turns.
    pub turns: u64,
}

/// An attempt that is to be made (runner-behaviour 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextAttempt {
    /// When.
    pub at: Timestamp,
    /// The model to ask for.
    pub model: Option<String>,
    /// Why there is another one.
    pub reason: String,
    /// The task is to be handed over in a file.
    pub task_by_file: bool,
    /// How the agent is talked to from now on, where that changes.
    pub transport: Option<Transport>,
}

/// An agent that waits before it tries its provider again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrying {
    /// Which attempt, from 1.
    pub attempt: Option<u32>,
    /// Of how many.
    pub max: Option<u32>,
    /// When it began to wait.
    pub since: Timestamp,
    /// When it goes on.
    pub until: Option<Timestamp>,
    /// The provider's error.
    pub reason: String,
}

/// A child that is being ended: since when, why, and what was done so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Why.
    pub cause: EndingCause,
    /// Since when.
    pub since: Timestamp,
    /// The sentence for the files.
    pub message: String,
    /// When the agent was asked over its protocol to break off.
    pub abort_at: Option<Timestamp>,
    /// When it got SIGINT (plain commands only).
    pub int_at: Option<Timestamp>,
    /// When it got SIGTERM.
    pub term_at: Option<Timestamp>,
    /// When it got SIGKILL.
    pub kill_at: Option<Timestamp>,
}

/// Why a child is being ended. The order is the precedence: a later one replaces an earlier one
/// (runner-behaviour 6 with the fix of section 14.7: stop and timeout are honoured after an interrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndingCause {
    /// It said its last word but does not exit (runner-behaviour 1.7).
    Drain,
    /// It is to pause; its session lives on.
    Interrupt,
    /// It broke its protocol (runner-behaviour 1.5).
    Protocol,
    /// One of its tools took too long (runner-behaviour 3.6).
    ToolTimeout,
    /// It used more than it may.
    Budget,
    /// The run used more than it may.
    RunBudget,
    /// Its own time is over.
    StepTimeout,
    /// The run's time is over.
    RunTimeout,
    /// Somebody stopped the step.
    StepStop,
    /// Somebody stopped the run.
    RunStop,
    /// Somebody asked three times.
    Kill,
}

impl EndingCause {
    /// All of them, the weakest first.
    pub const ALL: [Self; 11] = [
        Self::Drain,
        Self::Interrupt,
        Self::Protocol,
        Self::ToolTimeout,
        Self::Budget,
        Self::RunBudget,
        Self::StepTimeout,
        Self::RunTimeout,
        Self::StepStop,
        Self::RunStop,
        Self::Kill,
    ];

    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Interrupt => "interrupt",
            Self::Protocol => "protocol",
            Self::ToolTimeout => "tool-timeout",
            Self::Budget => "budget",
            Self::RunBudget => "run-budget",
            Self::StepTimeout => "step-timeout",
            Self::RunTimeout => "run-timeout",
            Self::StepStop => "step-stop",
            Self::RunStop => "run-stop",
            Self::Kill => "kill",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}
