//! How the child of a step is run, where the step stands, and its tool calls.

use super::{AgentKind, CallFacts, ExitInfo, Timestamp};

/// How a child is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunnerKind {
    /// The pi coding agent over its rpc protocol, which can be steered.
    #[default]
    Pi,
    /// The pi coding agent in json mode: one prompt, no steering.
    PiJson,
    /// The scripted agent inside this program.
    Demo,
    /// An agent of another family.
    Agent(AgentKind),
    /// Any command; its output is text.
    ExternalCli {
        /// The program.
        command: String,
        /// Its arguments, as templates.
        args: Vec<String>,
    },
    /// A job that somebody else runs (run-directory 2.15); only read, never started.
    ExternalJob {
        /// Who runs it.
        provider: String,
    },
    /// Another agent, by its word in the plan.
    Other(String),
}

impl RunnerKind {
    /// Whether the child is an agent that speaks a protocol; everything else is a plain command.
    #[must_use]
    pub const fn is_agent(&self) -> bool {
        !matches!(self, Self::ExternalCli { .. } | Self::ExternalJob { .. })
    }

    /// Whether the child can be asked over its protocol to break off.
    #[must_use]
    pub const fn can_abort(&self) -> bool {
        match self {
            Self::Pi | Self::Demo => true,
            Self::Agent(agent) => agent.family.can_abort(agent.transport),
            Self::PiJson | Self::ExternalCli { .. } | Self::ExternalJob { .. } | Self::Other(_) => false,
        }
    }
}

/// Where a step stands (run-directory 8.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepPhase {
    /// It has not started.
    #[default]
    Pending,
    /// Its child runs.
    Running,
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
    /// It was interrupted.
    Paused,
    /// It was stopped.
    Stopped,
    /// It was refused.
    Rejected,
    /// It ran when its runner died, and nobody recorded how it went on. Only a reader says so; no file does.
    Lost,
    /// A word this version does not know.
    Unknown(String),
}

impl StepPhase {
    /// Whether it is an end: nothing more will come.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Paused | Self::Stopped | Self::Rejected | Self::Lost)
    }

    /// The word that files use.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Rejected => "rejected",
            Self::Lost => "lost",
            Self::Unknown(word) => word,
        }
    }
}

/// A tool call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The agent's id of the call.
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// A one-line preview of its arguments.
    pub args: String,
    /// The path it works on.
    pub path: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// Its place in the order of all calls of the run.
    pub seq: u64,
    /// What it is about.
    pub about: CallFacts,
    /// The newest sign of life of a run that was started in it.
    pub heard: Option<Timestamp>,
}

/// A tool call that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The agent's id of the call; unknown in foreign status files.
    pub call: Option<String>,
    /// The tool.
    pub tool: String,
    /// A one-line preview of its arguments.
    pub args: String,
    /// The path it worked on.
    pub path: Option<String>,
    /// When it started; unknown in foreign status files.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended; unknown in foreign status files.
    pub outcome: Option<super::ToolOutcome>,
    /// The first part of its result.
    pub preview: String,
}

/// Whether a child can be steered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Steerable {
    /// Not known yet.
    #[default]
    Unknown,
    /// It can.
    Yes,
    /// It cannot, and why.
    No(String),
}

/// Facts of a plain command's process (run-directory 2.1.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalProcess {
    /// Its process id.
    pub pid: Option<u32>,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub exit: Option<ExitInfo>,
    /// Where its standard output is kept.
    pub stdout_path: String,
    /// Where its standard error is kept.
    pub stderr_path: String,
}
