//! What the threads and tasks of the engine tell its one loop.

use crate::run::{AgentEvent, ExitInfo, Ledger, Report, StepId, Stream, Timestamp};

use super::kept::Kept;
use super::tree::Swept;

/// A note to the loop.
#[derive(Debug)]
pub enum Note {
    /// The agent said things; they are in the event log already.
    Agent {
        /// Which step.
        step: StepId,
        /// What, and when each arrived.
        events: Vec<(Timestamp, AgentEvent)>,
        /// Non-blank lines that the live log got.
        lines: Vec<String>,
    },
    /// Bytes came that carry no event.
    Seen {
        /// Which step.
        step: StepId,
        /// How many since the last note.
        bytes: u64,
        /// The newest non-blank lines.
        lines: Vec<String>,
        /// The last of them has no end yet.
        open: bool,
    },
    /// The cap on captured bytes was reached.
    Truncated {
        /// Which step.
        step: StepId,
        /// Which stream.
        stream: Stream,
        /// The cap in bytes.
        cap: u64,
    },
    /// A log of the step cannot be written.
    LogTrouble {
        /// Which step.
        step: StepId,
        /// What went wrong.
        error: String,
    },
    /// A stream ended.
    Ended {
        /// Which step.
        step: StepId,
        /// Which attempt.
        attempt: u32,
        /// Which stream.
        stream: Stream,
        /// What it left.
        end: Box<StreamEnd>,
    },
    /// The child's process ended.
    Exited {
        /// Which step.
        step: StepId,
        /// Which attempt.
        attempt: u32,
        /// How.
        exit: ExitInfo,
        /// When.
        at: Timestamp,
    },
    /// A look at what a step's work shows has ended.
    Examined {
        /// Which step.
        step: StepId,
        /// What came of it.
        ledger: Box<Ledger>,
    },
    /// What a step had left behind was ended.
    Swept {
        /// Which step; `None` for the sweep at the end of the run.
        step: Option<StepId>,
        /// What the sweep did.
        swept: Swept,
    },
}

/// What is left of a stream when it has ended.
#[derive(Debug, Default)]
pub struct StreamEnd {
    /// What the adapter made of it; only for the standard output of agents.
    pub report: Option<Report>,
    /// Its last bytes, where they are kept.
    pub tail: Vec<u8>,
    /// Somebody else still had it open when it was given up.
    pub abandoned: bool,
    /// Its log, when there is no room yet for the end of it.
    pub late: Option<Kept>,
}
