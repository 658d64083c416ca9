//! What starts runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{RootArgs, ShowArgs, duration};
use crate::run::{OnPermission, Raise};

/// A limit, as `subdeck budget` takes it.
fn raise(word: &str) -> Result<Raise, String> {
    Raise::parse(word)
}

/// A time that allows something.
fn limit(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        span if span.as_millis() == 0 => Err("a time of zero allows nothing".to_owned()),
        span => Ok(span),
    }
}

/// What a run can be called; nothing could not be asked for.
fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("a name has to have something in it".to_owned()) } else { Ok(text.to_owned()) }
}

/// What becomes of questions.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct PermissionArgs {
    /// What becomes of a permission or a question that the plan does not decide [default: fail (exit code 9) with
    /// --no-tui, else ask]. ask waits for the deck or `subdeck answer`, allow and deny answer, fail pauses the run.
    #[arg(long, value_enum, value_name = "POLICY")]
    pub on_permission: Option<Policy>,
}

/// `--on-permission`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Policy {
    Ask,
    Allow,
    Deny,
    Fail,
}

impl From<Policy> for OnPermission {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Ask => Self::Ask,
            Policy::Allow => Self::Allow,
            Policy::Deny => Self::Deny,
            Policy::Fail => Self::Fail,
        }
    }
}

/// `subdeck run`.
#[derive(Debug, Args)]
#[command(
    override_usage = "subdeck run [OPTIONS] PLAN [TASK]\n       subdeck run [OPTIONS] --agent NAME TASK\n       \
                            subdeck run [OPTIONS] --runner RUNNER TASK\n       \
                            subdeck run [OPTIONS] -- COMMAND [ARG]..."
)]
pub struct RunArgs {
    /// A plan file (TOML or JSON), a runner config of pi-subagents, or - for standard input; then what `{task}`
    /// stands for in it. With --agent or --runner only the task, in quotes.
    #[arg(value_name = "PLAN")]
    pub words: Vec<String>,
    /// One step with this agent; no file needed.
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub agent: Option<String>,
    /// One step that is any command.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "words")]
    pub command: Vec<String>,
    /// Return as soon as the runner is ready and print the run's id.
    #[arg(long, conflicts_with = "no_tui")]
    pub detach: bool,
    /// What to call the run.
    #[arg(long, value_parser = name)]
    pub name: Option<String>,
    /// The folder that the run works in [default: the plan's `cwd`, else this one].
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The runner of steps that name none [default: that of the agent's definition, else `defaults.runner`]. With a
    /// task in place of the plan one step with it; no file needed.
    #[arg(long, value_name = "RUNNER", conflicts_with = "command",
        value_parser = clap::builder::PossibleValuesParser::new(crate::run::NamedRunner::WORDS))]
    pub runner: Option<String>,
    /// The model of a step started with --agent, or with --runner and a task.
    #[arg(long)]
    pub model: Option<String>,
    /// The time limit of the whole run, such as 30m.
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub time: Option<Duration>,
    /// A limit of the whole run before the plan's, such as tokens=400_000, cost_usd=2.50, turns=40 or
    /// tool_calls.soft=20; may be given more than once. tool_timeout then means every step that has none of its own.
    #[arg(long, value_name = "KEY=VALUE", value_parser = raise)]
    pub budget: Vec<Raise>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub ask: PermissionArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub show: ShowArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Which run, and which step; without a step every paused one.
    #[arg(value_name = "RUN[:STEP]")]
    pub target: String,
    /// What to tell the agent [default: to go on where it was interrupted].
    pub text: Option<String>,
    /// Return as soon as the runner is ready and print the run's id.
    #[arg(long, conflicts_with = "no_tui")]
    pub detach: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub ask: PermissionArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub show: ShowArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// Return as soon as the runner is ready and print the run's id.
    #[arg(long, conflicts_with = "no_tui")]
    pub detach: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub ask: PermissionArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub show: ShowArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Play faster or slower: 2 is twice as fast.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub speed: f64,
    /// Return as soon as the runner is ready and print the run's id.
    #[arg(long, conflicts_with = "no_tui")]
    pub detach: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub show: ShowArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}
