//! What asks runs for something.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{RootArgs, duration};

/// `--mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Mode {
    #[default]
    Steer,
    FollowUp,
    Auto,
}

/// `subdeck steer`.
#[derive(Debug, Args)]
pub struct SteerArgs {
    /// Which run, and which step; without a step every running one.
    #[arg(value_name = "RUN[:STEP]")]
    pub target: String,
    /// The message; - reads standard input.
    pub text: String,
    /// Into the running turn, after it, or whatever fits.
    #[arg(long, value_enum, default_value_t)]
    pub mode: Mode,
    /// Wait until it is delivered, queued or failed.
    #[arg(long)]
    pub wait: bool,
    /// How long --wait waits (exit code 8 after it).
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub timeout: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck interrupt` and `subdeck stop`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// Which run, and which step; without a step the whole run.
    #[arg(value_name = "RUN[:STEP]")]
    pub target: String,
    /// Wait until it has ended, or is paused, and none of its processes lives.
    #[arg(long)]
    pub wait: bool,
    /// How long --wait waits (exit code 8 after it).
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub timeout: Duration,
    /// Why, to be recorded.
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck budget`.
#[derive(Debug, Args)]
#[command(after_help = "\
KEY is time, idle, turns, tool_calls, tokens, cost_usd or tool_timeout. `tool_calls`, `tokens` and \
`cost_usd` have a warning before their end: tokens.soft=VALUE. Turns that are granted beyond the limit \
are turns.grace=N. Times have a unit. Without a step the limits of the whole run are meant; tool_timeout \
then means every step that has not ended.

Examples:
  subdeck budget @last                            what is granted, and what was used
  subdeck budget @last time=2h cost_usd=5         of the whole run
  subdeck budget @last:reviewer turns=60 --wait   of one step; returns once it is taken
  subdeck budget @last tokens.soft=300_000 tokens=400_000")]
pub struct BudgetArgs {
    /// Which run, and which step; without a step the whole run.
    #[arg(value_name = "RUN[:STEP]")]
    pub target: String,
    /// What to change; without any the limits are printed.
    #[arg(value_name = "KEY=VALUE")]
    pub changes: Vec<String>,
    /// Print the limits as JSON.
    #[arg(long, conflicts_with = "changes")]
    pub json: bool,
    /// Wait for the runner's answer.
    #[arg(long, requires = "changes")]
    pub wait: bool,
    /// How long --wait waits (exit code 8 after it).
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub timeout: Duration,
    /// Why, to be recorded.
    #[arg(long, requires = "changes")]
    pub reason: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck answer`.
#[derive(Debug, Args)]
#[command(after_help = "\
ANSWER is allow or deny for a permission or a yes and no, the number, the id or the label of a choice, else a text; - \
reads it from standard input. Without ANSWER the open questions are listed.

Examples:
  subdeck answer @last                                what is asked, and what can be answered
  subdeck answer @last allow                          the only open question of the run
  subdeck answer @last:worker deny --reason \"not in this folder\"
  subdeck answer @last 2 --question q3                of several open questions the one with this name
  subdeck answer @last \"the left one\" --wait         returns when the runner has taken it")]
pub struct AnswerArgs {
    /// Which run, and which step.
    #[arg(value_name = "RUN[:STEP]")]
    pub target: String,
    /// The answer; without one the open questions are listed.
    #[arg(value_name = "ANSWER", conflicts_with = "dismiss", allow_hyphen_values = true)]
    pub answer: Option<String>,
    /// Which question, by its name, such as q3; needed where several are open.
    #[arg(long, value_name = "NAME")]
    pub question: Option<String>,
    /// Say that nobody will answer.
    #[arg(long)]
    pub dismiss: bool,
    /// Why not, for the agent; with deny.
    #[arg(long, value_name = "TEXT", requires = "answer")]
    pub reason: Option<String>,
    /// List the questions as JSON.
    #[arg(long, conflicts_with_all = ["answer", "dismiss"])]
    pub json: bool,
    /// Wait for the runner's answer.
    #[arg(long)]
    pub wait: bool,
    /// How long --wait waits (exit code 8 after it).
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub timeout: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}
