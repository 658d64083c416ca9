//! What looks at runs.

use std::time::Duration;

use clap::Args;

use super::{RootArgs, ShowArgs, duration};
use crate::listing::{Group, Show, Sort};

/// `subdeck attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub show: ShowArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck ls`.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "In the table – is what nobody tells: unknown, not zero. An empty cell is what there is not: nobody who is \
needed, no agent at work that could have used tokens or money. A number with + behind it is at least that: not all of it \
is told."
)]
pub struct LsArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// List finished runs of any age too, not only the newest 20.
    #[arg(long, short)]
    pub all: bool,
    /// What stands together: state, project, root, day, none [default: none, what goes on first].
    #[arg(long, value_name = "BY", value_parser = Group::parse)]
    pub group: Option<Group>,
    /// In what order: age, need, cost, tokens, time, name [default: age].
    #[arg(long, value_name = "BY", value_parser = Sort::parse)]
    pub sort: Option<Sort>,
    /// Which runs: all, living, needs, trouble, today [default: all].
    #[arg(long, value_name = "WHICH", value_parser = Show::parse)]
    pub show: Option<Show>,
    /// Only runs that have all these words somewhere: in name, task, agents, models, project, branch, folder, state.
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// Print the normalised status as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// Go on as events come, until the run is over.
    #[arg(long, short)]
    pub follow: bool,
    /// Print the normalised vocabulary as JSON lines.
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// Print the file as it is.
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Which run, and which step; without a step all of them in their order.
    #[arg(value_name = "RUN[:STEP]", default_value = "@last")]
    pub target: String,
    /// Go on as output comes, until the step or the run is over.
    #[arg(long, short)]
    pub follow: bool,
    /// Only the last N lines (of each step).
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// Only standard error.
    #[arg(long)]
    pub stderr: bool,
    /// Print JSON lines with time and stream.
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// Print the bytes as they came.
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// What to wait for: complete (any end), attention, idle, or a state such as running or paused.
    #[arg(long = "for", value_name = "STATE", default_value = "complete")]
    pub what: String,
    /// Give up after this time (exit code 8).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}
