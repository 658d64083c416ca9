//! The resolved plan.

use std::path::PathBuf;
use std::time::Duration;

use super::template::Filling;
use super::{RunExtras, StepExtras};
use crate::run::{Acceptance, AgentKind, CostUsd, RunMode, Thresholds, ToolBlock, ToolRule, TurnLimit};

pub use crate::run::Limit;

/// A plan that is ready to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What the user calls it.
    pub name: Option<String>,
    /// What the run is about: the text that `{task}` stands for in the steps' tasks.
    pub task: Option<String>,
    /// The folder that the run works in; absolute.
    pub cwd: PathBuf,
    /// The limits of the whole run.
    pub budget: Budget,
    /// The steps; at least one.
    pub steps: Vec<LogicalStep>,
    /// The id the run must have (runner configs only).
    pub run_id: Option<String>,
    /// The directory the run must have (runner configs only).
    pub run_dir: Option<PathBuf>,
    /// Where the result must be (runner configs only).
    pub result_path: Option<PathBuf>,
    /// The session bucket (run-directory 1.6); one is made up when it is missing.
    pub session_id: Option<String>,
    /// The folder for the sessions of agents that have none yet (runner configs only).
    pub session_dir: Option<PathBuf>,
    /// The parent process that wants the result.
    pub owner_id: Option<String>,
    /// The shape that files name; `None` derives it from the steps.
    pub mode: Option<RunMode>,
    /// When the run's time is over, in milliseconds since the epoch (runner configs only; plans use `budget.time`).
    pub deadline_at_ms: Option<i64>,
    /// The run this one goes on from.
    pub resumed_from: Option<String>,
    /// A hard limit on tokens or money keeps only the next child from starting (runner configs).
    pub usage_spares_children: bool,
    /// Who is told of what needs a look.
    pub control: Control,
    /// What else its launcher said (runner configs only).
    pub extras: RunExtras,
}

/// Who is told of what needs a look, in the words of the records that tell it (runner-behaviour 4.4). Only runner
/// configs can say something else than the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// What is told at all.
    pub notify_on: NotifyOn,
    /// The channels that a record names.
    pub channels: Vec<String>,
    /// Whom the channel `intercom` reaches.
    pub intercom_to: Option<String>,
    /// The name that each child has there, by its flat index.
    pub child_targets: Vec<Option<String>>,
    /// The key of the run in the workflow that it belongs to.
    pub workflow_key: Option<String>,
}

impl Control {
    /// The channels when nothing else is said.
    pub const CHANNELS: [&str; 3] = ["event", "async", "intercom"];
}

impl Default for Control {
    fn default() -> Self {
        Self {
            notify_on: NotifyOn::default(),
            channels: Self::CHANNELS.map(str::to_owned).into(),
            intercom_to: None,
            child_targets: Vec::new(),
            workflow_key: None,
        }
    }
}

/// What is told (runner-behaviour 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyOn {
    /// A step needs a look.
    pub needs_attention: bool,
    /// A step runs for long.
    pub active_long_running: bool,
}

impl Default for NotifyOn {
    fn default() -> Self {
        Self { needs_attention: true, active_long_running: true }
    }
}

impl Plan {
    /// Every child in flat order.
    pub fn flat(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flat_map(|s| match s {
            LogicalStep::Single(step) => std::slice::from_ref(&**step),
            LogicalStep::Group { steps, .. } => steps.as_slice(),
        })
    }

    /// The shape that files name (run-directory 2.1).
    #[must_use]
    pub fn mode(&self) -> RunMode {
        if let Some(mode) = &self.mode {
            return mode.clone();
        }
        match self.steps.as_slice() {
            [LogicalStep::Single(_)] => RunMode::Single,
            [LogicalStep::Group { .. }] => RunMode::Parallel,
            _ => RunMode::Chain,
        }
    }
}

/// One position in the order of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum LogicalStep {
    /// One child.
    Single(Box<Step>),
    /// Several children at once.
    Group {
        /// The children.
        steps: Vec<Step>,
        /// How many may run at the same time; at least 1.
        concurrency: usize,
        /// Whether a failure keeps the ones that have not started from starting.
        fail_fast: bool,
    },
}

impl LogicalStep {
    /// How many children may run at the same time, whatever a group says (runner-behaviour 2.3).
    pub const AT_ONCE_MOST: usize = 20;
}

/// One child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The id for `{outputs.ID}` and `RUN:STEP`; unique in the plan.
    pub key: String,
    /// The agent's name, which files show.
    pub agent: String,
    /// What the person calls the step.
    pub label: Option<String>,
    /// The phase it belongs to.
    pub phase: Option<String>,
    /// The task, a template: `{task}`, `{previous}` and `{outputs.ID}` are filled in when the step starts
    /// (`template::fill`). Empty when the step has none, which only plain commands may.
    pub task: String,
    /// What its braces mean, and those of the arguments.
    pub filling: Filling,
    /// The folder that the child works in; absolute.
    pub cwd: PathBuf,
    /// Variables on top of the launcher's environment. Values are never written to disk.
    pub env: Vec<(String, String)>,
    /// How the child is run.
    pub runner: Runner,
    /// The models to try, best first; empty leaves the choice to the agent.
    pub models: Vec<String>,
    /// The thinking level.
    pub thinking: Option<String>,
    /// The tools the agent may use; `None` leaves the agent's own set.
    pub tools: Option<Vec<String>>,
    /// Extensions to load; `None` leaves the agent's own set (runner-behaviour 1.2).
    pub extensions: Option<Vec<String>>,
    /// The agent definition's body.
    pub system_prompt: Option<String>,
    /// Whether it adds to the agent's own system prompt or takes its place.
    pub system_prompt_mode: SystemPromptMode,
    /// Whether the agent reads the project's context files.
    pub inherit_project_context: bool,
    /// Whether the agent uses the skills it finds.
    pub inherit_skills: bool,
    /// A file for the final text, relative to the step's folder.
    pub output: Option<PathBuf>,
    /// The limits of this step.
    pub budget: Budget,
    /// The longest time a single tool call may take.
    pub tool_timeout: Option<Duration>,
    /// Tools without a limit on their time, beside the ones that never have one.
    pub tool_exempt: Vec<String>,
    /// A question that nobody answers for so long is refused; `None` waits.
    pub question_timeout: Option<Duration>,
    /// When somebody should look at it.
    pub attention: Thresholds,
    /// The step fails when its task clearly demands that files are changed and the agent began to change none
    /// (runner-behaviour 4.6). Without it that is only told.
    pub completion_guard: bool,
    /// The session to go on with; `None` begins a new one.
    pub session_file: Option<PathBuf>,
    /// The step is not run; its outcome is taken over from an earlier run.
    pub carried: Option<Carried>,
    /// What its work has to show (runner configs only).
    pub acceptance: Acceptance,
    /// What else its launcher said (runner configs only).
    pub extras: StepExtras,
}

/// What a finished step of an earlier run left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Its output.
    pub output: String,
}

/// How a child is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The pi coding agent.
    Pi {
        /// How it is talked to.
        transport: PiTransport,
        /// The program; `None` means `PI_SUBAGENT_PI_BINARY`, else `pi` on PATH.
        command: Option<String>,
        /// Arguments put before ours.
        args: Vec<String>,
    },
    /// An agent of another family.
    Agent(AgentRunner),
    /// Any command: prompt on stdin, or wherever `{task}` stands in the arguments.
    ExternalCli {
        /// The program.
        command: String,
        /// Its arguments; `{task}` is replaced when the step has a task (`template::fill_args`).
        args: Vec<String>,
    },
    /// The scripted agent inside this program.
    Demo {
        /// The name of a scene in the embedded script, or the path of a script.
        script: String,
    },
}

impl Default for Runner {
    fn default() -> Self {
        Self::Pi { transport: PiTransport::default(), command: None, args: Vec::new() }
    }
}

/// How an agent of another family is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRunner {
    /// Whose it is, how it is talked to and what it may do.
    pub kind: AgentKind,
    /// The program; `None` means the family's own from PATH.
    pub command: Option<String>,
    /// Arguments put before ours.
    pub args: Vec<String>,
    /// What single tools may do; the most precise one that fits goes before the permission of `kind`.
    pub rules: Vec<ToolRule>,
    /// The agent's id of the session to go on with; `None` begins a new one.
    pub resume: Option<String>,
    /// The plan names the transport, so that an agent that is too old for it fails.
    pub fixed_transport: bool,
}

/// How pi is talked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PiTransport {
    /// JSON lines both ways; it can be steered and interrupted.
    #[default]
    Rpc,
    /// One prompt on the command line, JSON lines out.
    Json,
}

/// Whether a system prompt adds to the agent's own or takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SystemPromptMode {
    #[default]
    Append,
    Replace,
}

/// The limits of a run or a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// Time awake.
    pub time: Option<Duration>,
    /// Time without any sign of life.
    pub idle: Option<Duration>,
    /// Turns: the soft limit and how many more are granted.
    pub turns: Option<TurnLimit>,
    /// Tool calls.
    pub tool_calls: Option<Limit<u64>>,
    /// Which tools the hard limit of calls blocks; `None` means all.
    pub tool_block: Option<ToolBlock>,
    /// Tokens, input plus output.
    pub tokens: Option<Limit<u64>>,
    /// Money.
    pub cost: Option<Limit<CostUsd>>,
}
