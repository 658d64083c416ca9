//! What can happen in a run. Each event is recorded in `events.jsonl` (run-directory 2.5 and 3.9) and reduced.

use super::{
    AgentEvent, Answer, AnsweredBy, EndingCause, Group, Limits, Metric, NextAttempt, Notice, Question, Raise, Reason,
    RunContract, RunId, RunMode, RunPhase, Stage, SteerRequest, StepId, StepMeta, StepOutcome, TargetState, Timestamp,
    Used, Within,
};

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The run began.
    RunStarted(Box<RunMeta>),
    /// A step began; its first attempt follows.
    StepStarted {
        /// Which.
        step: StepId,
    },
    /// A parallel group began.
    GroupStarted {
        /// The logical step.
        logical: usize,
    },
    /// A parallel group ended.
    GroupEnded {
        /// The logical step.
        logical: usize,
        /// Whether every member succeeded or was skipped.
        success: bool,
    },
    /// An attempt of a step is about to start its child.
    AttemptStarted {
        /// Which step.
        step: StepId,
        /// From 1.
        attempt: u32,
        /// The model asked for.
        model: Option<String>,
        /// Why there is another attempt; `None` on the first.
        reason: Option<String>,
    },
    /// The child of a step runs.
    ChildSpawned {
        /// Which step.
        step: StepId,
        /// Its process id, which is its process group's id too.
        pid: u32,
        /// Field 22 of `/proc/<pid>/stat`, where it could be read.
        start_ticks: Option<u64>,
    },
    /// The agent said something.
    Agent {
        /// Which step.
        step: StepId,
        /// What it said.
        event: AgentEvent,
    },
    /// Text of the step's live output, line by line, for `recentOutput`.
    OutputLines {
        /// Which step.
        step: StepId,
        /// Non-blank lines, oldest first.
        lines: Vec<String>,
        /// The last of them has no end yet: what comes next takes its place.
        open: bool,
    },
    /// The child printed bytes that carry no event (plain commands); activity only.
    OutputSeen {
        /// Which step.
        step: StepId,
        /// How many bytes.
        bytes: u64,
    },
    /// The child's process ended; its pipes may still be open.
    ChildExited {
        /// Which step.
        step: StepId,
        /// How.
        exit: ExitInfo,
    },
    /// The child had ended but somebody else kept its output open.
    OutputHeld {
        /// Which step.
        step: StepId,
        /// Who holds it, as far as could be found.
        pids: Vec<u32>,
    },
    /// The cap on captured bytes was reached (per step or per run).
    OutputTruncated {
        /// Which step.
        step: StepId,
        /// Which stream.
        stream: Stream,
        /// The cap in bytes.
        cap: u64,
    },
    /// A log of the step cannot be written; the child goes on.
    LogFailed {
        /// Which step.
        step: StepId,
        /// What the system says.
        error: String,
    },
    /// A file of a step that outlives its run directory cannot be written; the child goes on.
    ArtifactFailed {
        /// Which step.
        step: StepId,
        /// Which file.
        which: Artifact,
        /// What the system says.
        error: String,
    },
    /// A step ended.
    StepEnded {
        /// Which.
        step: StepId,
        /// How.
        outcome: Box<StepOutcome>,
    },
    /// The run is to be paused: every running step is interrupted.
    RunInterrupted {
        /// Who asked.
        source: Option<ControlSource>,
    },
    /// The run is to be stopped.
    RunStopped {
        /// The sentence for the files.
        message: String,
        /// Who asked.
        source: Option<ControlSource>,
    },
    /// The run's time is over.
    RunTimedOut {
        /// The configured limit in milliseconds, if there is one.
        timeout_ms: Option<u64>,
        /// The sentence for the files.
        message: String,
        /// Who asked; `None` when the runner's own timer fired.
        source: Option<ControlSource>,
    },
    /// One step is to end while its siblings go on (or its time is over).
    StepEnding {
        /// Which.
        step: StepId,
        /// Why.
        cause: EndingCause,
        /// The sentence for the files.
        message: String,
        /// Who asked; `None` when a limit did.
        source: Option<ControlSource>,
    },
    /// An attempt ended and another one follows (runner-behaviour 5).
    AttemptEnded {
        /// Which step.
        step: StepId,
        /// The exit code of the attempt.
        exit_code: i32,
        /// Why it failed.
        error: String,
        /// The attempt that follows.
        next: NextAttempt,
    },
    /// Something needs a look (runner-behaviour 4, product 5).
    AttentionRaised {
        /// Which step.
        step: StepId,
        /// What.
        notice: Box<Notice>,
    },
    /// The cause of a notice ended.
    AttentionCleared {
        /// Which step.
        step: StepId,
        /// Which notice.
        id: String,
    },
    /// Somebody took note of a notice.
    AttentionAcknowledged {
        /// Which step.
        step: StepId,
        /// Which notice.
        id: String,
        /// Who.
        source: Option<ControlSource>,
    },
    /// A foreign runner says that something needs a look (run-directory 2.5); it never says when that ends.
    AttentionNoted {
        /// Which step.
        step: StepId,
        /// Why.
        reason: Reason,
        /// What it says.
        message: String,
    },
    /// An agent asks something and waits for the answer.
    QuestionAsked {
        /// Which step.
        step: StepId,
        /// What.
        question: Box<Question>,
    },
    /// A question is not open any more.
    QuestionAnswered {
        /// Which step.
        step: StepId,
        /// Which question, by its name in the run; of what needed nobody this is the only record.
        id: String,
        /// What was asked.
        text: String,
        /// What its agent was told.
        answer: Answer,
        /// Who or what answered.
        by: AnsweredBy,
        /// The person, where one did.
        source: Option<ControlSource>,
    },
    /// A limit is reached.
    BudgetReached {
        /// Of which step; `None` for the limits of the run.
        step: Option<StepId>,
        /// Of what.
        metric: Metric,
        /// Which limit.
        stage: Stage,
        /// How much was used.
        used: Used,
        /// The sentence for the files.
        message: String,
    },
    /// A limit was changed while the run goes on.
    BudgetRaised {
        /// Of which step; `None` for the limits of the run.
        step: Option<StepId>,
        /// The new limit.
        raise: Raise,
        /// Who.
        source: Option<ControlSource>,
    },
    /// The disk that holds the run directory is nearly full, or is not any more.
    DiskSpace {
        /// How many bytes are free.
        free: u64,
        /// Whether that is too little.
        low: bool,
    },
    /// The runs that were started in a step and go on were looked at.
    InnerRuns {
        /// Which step.
        step: StepId,
        /// They.
        runs: Vec<super::InnerRun>,
    },
    /// The machine slept; budgets do not count that time.
    Slept {
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// Somebody wants to tell running children something.
    SteerRequested(Box<SteerRequest>),
    /// A steering request moved on for one target.
    SteerMoved {
        /// The request.
        id: String,
        /// Which step.
        step: StepId,
        /// Where it is now.
        to: TargetState,
        /// Why it failed, or what the agent said.
        detail: Option<String>,
    },
    /// What the child can take, as it or its adapter says.
    Capability {
        /// Which step.
        step: StepId,
        /// Whether it can be steered.
        steerable: super::Steerable,
    },
    /// A control request was refused (product 6).
    ControlRejected {
        /// The name of its file, or what was asked for.
        file: String,
        /// Why.
        reason: String,
        /// It was no valid request, and its file was moved to `control/rejected/`.
        set_aside: bool,
    },
    /// A control request was taken that does not say which deck or command sent it (product 7).
    ControlUnannounced {
        /// Which step it is about, where it is about one.
        step: Option<StepId>,
        /// What was asked for, in words.
        what: String,
        /// What is known of who asked.
        source: ControlSource,
    },
    /// A signal was sent to a child.
    SignalSent {
        /// Which step.
        step: StepId,
        /// The signal's name, such as `SIGTERM`.
        signal: &'static str,
        /// The process group, or the process if `group` is false.
        pid: u32,
        /// Whether the whole group got it.
        group: bool,
        /// Why.
        cause: EndingCause,
    },
    /// The agent was asked over its protocol to break off.
    AbortSent {
        /// Which step.
        step: StepId,
    },
    /// The step's process tree was emptied, or not.
    TreeSwept {
        /// Which step.
        step: StepId,
        /// Processes that were ended by the sweep.
        ended: Vec<u32>,
        /// Processes that would not die.
        survivors: Vec<u32>,
    },
    /// The run ended.
    RunEnded {
        /// In which state.
        state: RunPhase,
        /// The error of the run, if it has one.
        error: Option<String>,
    },
    /// The runner died without an end; found by its keeper or by a reader.
    RunLost {
        /// What is known.
        message: String,
    },
    /// A record that this version does not know, kept as unknown (law 10).
    Unknown {
        /// Its type.
        kind: String,
    },
}

/// A file of a step that outlives its run directory and whose failure is told (run-directory 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// What was said and done.
    Transcript,
    /// The final text.
    Output,
    /// What it was and how it ended.
    Metadata,
    /// The file that its plan names for its output.
    File,
}

impl Artifact {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Transcript, Self::Output, Self::Metadata, Self::File];

    /// The word that records use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::Output => "output",
            Self::Metadata => "metadata",
            Self::File => "file",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|artifact| artifact.as_str() == word)
    }
}

/// What is known of a run when it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMeta {
    /// Its id, equal to the name of its directory.
    pub id: RunId,
    /// What the user calls it.
    pub name: Option<String>,
    /// The session bucket (run-directory 1.6).
    pub session_id: Option<String>,
    /// The parent process that wants the result.
    pub owner_id: Option<String>,
    /// The shape of the run.
    pub mode: RunMode,
    /// The runner's process id.
    pub pid: Option<u32>,
    /// Where it works.
    pub cwd: String,
    /// The run's time limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// When its time is over.
    pub deadline_at: Option<Timestamp>,
    /// That moment was given and does not move when the machine sleeps.
    pub deadline_fixed: bool,
    /// What the whole run may use beside its time.
    pub limits: Limits,
    /// The steps, in flat order.
    pub steps: Vec<StepMeta>,
    /// Which of them form groups.
    pub groups: Vec<Group>,
    /// How many logical steps there are.
    pub logical_count: usize,
    /// The run this one goes on from.
    pub resumed_from: Option<RunId>,
    /// The run of ours in whose step this one was started.
    pub started_in: Option<Within>,
    /// What its launcher said for the package's readers.
    pub contract: RunContract,
}

impl What {
    /// The step that it is about; `None` for what is about the whole run.
    #[must_use]
    pub const fn step(&self) -> Option<StepId> {
        match self {
            Self::StepStarted { step }
            | Self::AttemptStarted { step, .. }
            | Self::ChildSpawned { step, .. }
            | Self::Agent { step, .. }
            | Self::OutputLines { step, .. }
            | Self::OutputSeen { step, .. }
            | Self::ChildExited { step, .. }
            | Self::OutputHeld { step, .. }
            | Self::OutputTruncated { step, .. }
            | Self::LogFailed { step, .. }
            | Self::ArtifactFailed { step, .. }
            | Self::StepEnded { step, .. }
            | Self::StepEnding { step, .. }
            | Self::Capability { step, .. }
            | Self::SignalSent { step, .. }
            | Self::AbortSent { step }
            | Self::AttemptEnded { step, .. }
            | Self::AttentionRaised { step, .. }
            | Self::AttentionCleared { step, .. }
            | Self::AttentionAcknowledged { step, .. }
            | Self::AttentionNoted { step, .. }
            | Self::QuestionAsked { step, .. }
            | Self::QuestionAnswered { step, .. }
            | Self::SteerMoved { step, .. }
            | Self::InnerRuns { step, .. }
            | Self::TreeSwept { step, .. } => Some(*step),
            Self::BudgetReached { step, .. }
            | Self::BudgetRaised { step, .. }
            | Self::ControlUnannounced { step, .. } => *step,
            Self::RunStarted(_)
            | Self::GroupStarted { .. }
            | Self::GroupEnded { .. }
            | Self::RunInterrupted { .. }
            | Self::RunStopped { .. }
            | Self::RunTimedOut { .. }
            | Self::RunEnded { .. }
            | Self::RunLost { .. }
            | Self::DiskSpace { .. }
            | Self::Slept { .. }
            | Self::SteerRequested(_)
            | Self::ControlRejected { .. }
            | Self::Unknown { .. } => None,
        }
    }
}

/// How a process ended. One of the two is set; neither when it could not be learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// Its exit code.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
}

/// Which of a child's two output streams; `Own` marks lines that Subdeck writes into a log itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A line of our own, such as an attempt separator.
    Own,
}

/// Who asked for something (product 7). Text from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlSource {
    /// The door: `deck`, `cli`, `headless`, `signal`, or what a foreign file says; for one that says nothing, `unknown`
    /// and what kind of file it is. Never empty in what a runner of ours records.
    pub via: String,
    /// The user's name by its id: of the file's owner, or of the process that asked.
    pub user: Option<String>,
    /// The process that asked.
    pub pid: Option<u32>,
    /// The terminal it sat at.
    pub tty: Option<String>,
    /// The key that was pressed.
    pub key: Option<String>,
    /// The reason given.
    pub reason: Option<String>,
}

impl std::fmt::Display for ControlSource {
    /// `USER (VIA, key K, TTY, pid N): REASON` with what is known of it; a door that is unknown says itself what is
    /// known, and what the runner does by itself was asked for by nobody. Text from outside.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.via.starts_with("unknown") {
            f.write_str(&self.via)?;
        } else if self.via == "runner" {
            f.write_str("the runner")?;
        } else {
            write!(f, "{} ({}", self.user.as_deref().unwrap_or("somebody"), self.via)?;
            if let Some(key) = &self.key {
                write!(f, ", {key}")?;
            }
            if let Some(tty) = &self.tty {
                write!(f, ", {tty}")?;
            }
            if let Some(pid) = self.pid {
                write!(f, ", pid {pid}")?;
            }
            f.write_str(")")?;
        }
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_says_what_is_known_of_it_and_is_never_blank() {
        let mut source = ControlSource { via: "signal".into(), ..ControlSource::default() };
        assert_eq!(source.to_string(), "somebody (signal)");
        source.key = Some("SIGINT".into());
        source.user = Some("ann".into());
        source.tty = Some("/dev/pts/3".into());
        source.pid = Some(7);
        source.reason = Some("enough".into());
        assert_eq!(source.to_string(), "ann (signal, SIGINT, /dev/pts/3, pid 7): enough");
        source.via = "unknown (an empty file owned by ann)".into();
        assert_eq!(source.to_string(), "unknown (an empty file owned by ann): enough");
    }
}
