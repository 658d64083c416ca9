//! What the deck wants done in the world, and what became of what it asked for.

use super::model::Scroll;
use crate::run::{Answer, Raise, SteerMode, StepId, Timestamp};
use crate::text::SafeText;

/// A control request that this deck wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its id, where it has one.
    pub id: Option<String>,
    /// What it asks, such as `steer` or `stop`.
    pub what: &'static str,
    /// For which step; `None` is the run.
    pub step: Option<StepId>,
    /// When it was written.
    pub at: Timestamp,
    /// What became of it, for requests that the runner answers.
    pub fate: Fate,
}

/// What became of a request that the runner answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Nobody will answer it; the state of the run tells.
    #[default]
    Unanswered,
    /// An answer is awaited.
    Awaited,
    /// It was done.
    Done,
    /// It was refused, and why.
    Refused(SafeText),
}

/// What the deck wants done that it does not do itself.
#[derive(Clone, Debug, PartialEq)]
pub enum UiEffect {
    /// Write a message to running steps.
    Steer {
        /// Who gets it.
        targets: Vec<StepId>,
        /// How.
        mode: SteerMode,
        /// What.
        message: String,
        /// The key that sent it.
        key: &'static str,
        /// The step whose draft it was.
        home: StepId,
    },
    /// Pause the run.
    Interrupt,
    /// Stop the run.
    StopRun,
    /// Stop one step.
    StopStep(StepId),
    /// Take note of a notice of the runner.
    Acknowledge(StepId, String),
    /// Answer a question of an agent.
    Answer {
        /// Whose.
        step: StepId,
        /// Which, by its name in the run.
        question: String,
        /// What.
        answer: Answer,
    },
    /// Change a limit of the run, or of a step.
    Raise(Option<StepId>, Raise),
    /// Withdraw a message, by the id of its request.
    TakeBack(String),
    /// Start a run that goes on with the session of a step.
    GoOn {
        /// Whose session.
        step: StepId,
        /// What it is told.
        message: String,
    },
    /// Start a run that does again what failed or never ran.
    Retry,
    /// End what lives on of a run that nobody supervises any more, or what a step left.
    EndLeft(Option<StepId>),
    /// Show the path that a step works on in the person's editor.
    Editor(StepId),
    /// A shell in the folder of a step.
    Shell(StepId),
    /// Leave the deck.
    Leave,
    /// Back to the fleet, or to the run that this one was started in; the run goes on.
    Fleet,
    /// To look at the run in this directory, which was started in this one.
    Inside(std::path::PathBuf),
    /// Play the run again, or show it as it is again.
    Replay(bool),
    /// Give the terminal back to the shell.
    Suspend,
    /// Draw everything anew.
    Repaint,
    /// Take or give back the mouse.
    Mouse(bool),
    /// Give the visible lines of the selected step to the terminal's clipboard.
    Copy,
    /// Give the agent's own command that goes on with the session of a step to the terminal's clipboard.
    CopySession(StepId),
    /// Show the log of a step in the person's pager.
    Pager(StepId),
    /// Go a page, or half of one, on or back among the entries that the selected step lists: how many fit is known where
    /// they are laid out.
    Page(Scroll),
    /// Show the entry of a step's tab that the keys are at in full.
    Open(StepId),
    /// Look for the text of the search in the output of the selected step, in its direction or against it.
    Find {
        /// Against the direction of the search.
        opposite: bool,
    },
    /// Keep the picture, or let it go on.
    Freeze(bool),
}
