//! What can be asked of a runner, and what a child can tell it, through the control inbox (run-directory 3.3, 3.5, 3.6, 3.9).
//! Reading it is `request_read`'s.

use serde_json::Value;

use super::supervisor::SupervisorRequest;
use crate::run::{ControlSource, SteerMode, Steerable, StepId, TargetState, Timestamp};

/// Something that was asked of a runner, or that a child told it.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRequest {
    /// End the run (run-directory 3.2).
    Stop {
        /// Who asked.
        source: ControlSource,
    },
    /// End the run because its time is over (run-directory 3.2).
    TimeOut {
        /// Who asked.
        source: ControlSource,
    },
    /// Pause the run (run-directory 3.2).
    Interrupt {
        /// Who asked.
        source: ControlSource,
    },
    /// End one step while its siblings go on.
    StopStep {
        /// Which.
        step: StepId,
        /// Who asked.
        source: ControlSource,
        /// The name of the file that it came in.
        file: String,
    },
    /// Tell children something (run-directory 3.3).
    Steer(Steer),
    /// One of our own requests (run-directory 3.9).
    Own(OwnRequest),
    /// A child of pi-subagents wants something from its supervisor (run-directory 1.1).
    Supervisor(SupervisorRequest),
    /// A child said whether it can be steered (run-directory 3.5).
    Capability {
        /// Which step.
        step: StepId,
        /// What it said.
        steerable: Steerable,
    },
    /// A child said what became of a message (run-directory 3.6).
    Ack(Ack),
    /// The request after this one does not say which deck or command sent it (product 7).
    Unannounced {
        /// What was asked for, in words.
        what: String,
        /// Which step it is about.
        about: About,
        /// What is known of who asked.
        source: ControlSource,
    },
    /// A file was no valid request; it was moved to `control/rejected/`.
    Rejected {
        /// The file's name.
        file: String,
        /// Why.
        reason: String,
    },
}

impl ControlRequest {
    /// Who asked, where somebody asked for something.
    pub(super) fn source_mut(&mut self) -> Option<&mut ControlSource> {
        match self {
            Self::Stop { source }
            | Self::TimeOut { source }
            | Self::Interrupt { source }
            | Self::StopStep { source, .. } => Some(source),
            Self::Steer(steer) => Some(steer.source.get_or_insert_default()),
            Self::Own(own) => Some(&mut own.source),
            Self::Supervisor(_)
            | Self::Capability { .. }
            | Self::Ack(_)
            | Self::Unannounced { .. }
            | Self::Rejected { .. } => None,
        }
    }

    /// Which step it is about.
    pub(super) fn about(&self) -> About {
        match self {
            Self::StopStep { step, .. } => About::Step(*step),
            Self::Own(OwnRequest { what: OwnWhat::Answer { request, .. }, .. }) => About::Question(request.clone()),
            Self::Own(own) => own.step.map_or(About::Run, About::Step),
            _ => About::Run,
        }
    }

    /// What is asked for, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Stop { .. } => "stop".into(),
            Self::TimeOut { .. } => "timeout".into(),
            Self::Interrupt { .. } => "interrupt".into(),
            Self::StopStep { step, .. } => format!("stop of step {step}"),
            Self::Steer(_) => crate::run::MESSAGE.into(),
            Self::Own(own) => own.what.words().into(),
            Self::Supervisor(_)
            | Self::Capability { .. }
            | Self::Ack(_)
            | Self::Unannounced { .. }
            | Self::Rejected { .. } => "report".into(),
        }
    }
}

/// Which step a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// All of the run, or more than one step.
    Run,
    /// A step that it names.
    Step(StepId),
    /// The one that asked this.
    Question(String),
}

/// A request to steer as it was asked for; what becomes of each target is for the runner to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Steer {
    /// 1 to 256 characters without white space.
    pub id: String,
    /// When it was written.
    pub at: Timestamp,
    /// The message, trimmed, at most [`crate::run::SteerRequest::MAX_BYTES`].
    pub message: String,
    /// How it is to arrive.
    pub mode: SteerMode,
    /// Which steps; `None` leaves it to the runner. May name steps that do not exist.
    pub targets: Option<Vec<StepId>>,
    /// Who asked.
    pub source: Option<ControlSource>,
}

impl Steer {
    /// The first 160 characters of the message, white space folded, which is all that shared files keep
    /// (run-directory 2.2).
    #[must_use]
    pub fn preview(&self) -> String {
        let mut preview = String::new();
        for (n, word) in self.message.split_whitespace().enumerate() {
            if n > 0 {
                preview.push(' ');
            }
            preview.push_str(word);
            if preview.chars().nth(160).is_some() {
                break;
            }
        }
        preview.chars().take(160).collect()
    }
}

/// A child's answer to a message (run-directory 3.6).
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The request.
    pub id: String,
    /// Which step.
    pub step: StepId,
    /// When.
    pub at: Timestamp,
    /// What became of it: delivered, queued or failed.
    pub state: TargetState,
    /// What the child says about it.
    pub message: Option<String>,
}

/// A request beyond the reference's (run-directory 3.9).
#[derive(Clone, Debug, PartialEq)]
pub struct OwnRequest {
    /// Its id.
    pub id: String,
    /// When it was written.
    pub at: Timestamp,
    /// Who asked.
    pub source: ControlSource,
    /// Which step; `None` means the run.
    pub step: Option<StepId>,
    /// What is asked.
    pub what: OwnWhat,
}

/// What one of our own requests asks.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnWhat {
    /// Raise a limit.
    Budget {
        /// Which.
        key: String,
        /// To what.
        value: Value,
    },
    /// Answer a question.
    Answer {
        /// Which.
        request: String,
        /// The choice taken.
        choice: Option<String>,
        /// The choices taken, where they are several.
        choices: Vec<String>,
        /// The text given.
        text: Option<String>,
    },
    /// Somebody has seen a reason to look.
    Acknowledge {
        /// Which.
        attention: String,
    },
    /// Take back a message that waits.
    Retract {
        /// The steering request.
        request: String,
    },
    /// End everything at once, without grace.
    Kill,
}

impl OwnWhat {
    /// What is asked for, in words.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Budget { .. } => "change of a budget",
            Self::Answer { .. } => "answer",
            Self::Acknowledge { .. } => "acknowledgement",
            Self::Retract { .. } => "retraction of a message",
            Self::Kill => "kill",
        }
    }
}
