//! What takes runs along, and what removes them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{RootArgs, duration};
use crate::text as units;

/// `--format` of `subdeck export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ExportFormat {
    Html,
    Json,
}

fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|e| e.to_string())
}

/// `subdeck export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The HTML document has the timeline, what happened, the tool calls, the costs and the end of each step's output, with a \
search; it fetches nothing. The JSON report has the run as `status --json` prints it, its events as `events --json` \
prints them, its tool calls and its output. Prompts, messages to agents and what looks like a key are left out.")]
pub struct ExportArgs {
    /// Which run.
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
    /// Only this document [default: both].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,
    /// Where to, - for standard output [default: subdeck-ID.html and subdeck-ID.json in this folder].
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace what is there.
    #[arg(long)]
    pub force: bool,
    /// Put the tasks and the messages to agents into it.
    #[arg(long)]
    pub with_prompts: bool,
    /// How much of the end of each step's output goes into it.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1MiB")]
    pub output_size: u64,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}

/// `subdeck prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --yes nothing is removed: the runs that would go are printed with how they ended, how long ago, and their size.
A run that goes on, or of which that is not known, is never removed, nor one with a session that a run which stays goes \
on with.")]
pub struct PruneArgs {
    /// Remove them.
    #[arg(long)]
    pub yes: bool,
    /// Only runs that ended longer ago than this, such as 30d.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30d")]
    pub older_than: Duration,
    /// Only runs that ended like this: complete, failed, paused, stopped or rejected; may be given more than once
    /// [default: all of them but paused].
    #[arg(long, value_name = "STATE")]
    pub state: Vec<String>,
    /// Leave the newest N of them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep: usize,
    /// Runs that other programs made too.
    #[arg(long)]
    pub foreign: bool,
    /// Runs that were lost or cannot be read too.
    #[arg(long)]
    pub broken: bool,
    /// Say why each of the others stays.
    #[arg(long)]
    pub why: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
}
