//! What can be typed. Only shapes and help; what a command does is in its own file.

mod control;
mod keep;
mod launch;
mod look;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub use control::{AnswerArgs, BudgetArgs, ControlArgs, Mode, SteerArgs};
pub use keep::{ExportArgs, ExportFormat, PruneArgs};
pub use launch::{DemoArgs, PermissionArgs, Policy, ResumeArgs, RetryArgs, RunArgs};
pub use look::{AttachArgs, EventsArgs, LogsArgs, LsArgs, ReplayArgs, StatusArgs, WaitArgs};
pub use show::{Output, ShowArgs};

use crate::text as units;

/// Supervise AI subagent runs: launch coding agents, watch each in a pane, steer, interrupt and stop them.
#[derive(Debug, Parser)]
#[command(
    name = "subdeck",
    version,
    propagate_version = true,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    override_usage = "subdeck [--root DIR] [--read-only] [--ascii]\n       subdeck COMMAND [OPTIONS]",
    after_help = "RUN is @last, a run id, a unique prefix of at least 4 characters, a run name, or the path of a run \
                  directory. RUN:STEP names a step by its number (from 1), its id or its label.\n\
                  `subdeck help exit-codes` prints the table of exit codes."
)]
pub struct Cli {
    /// What to do; without a command the fleet is shown.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub fleet: FleetArgs,
}

/// `subdeck`: every run on this machine.
#[derive(Clone, Debug, Default, Args)]
pub struct FleetArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub root: RootArgs,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)]
pub enum Command {
    /// Launch a run and open the deck on it.
    Run(RunArgs),
    /// Open the deck on a run, running or finished, own or foreign.
    Attach(AttachArgs),
    /// Play a finished run again in the deck.
    Replay(ReplayArgs),
    /// List runs with state, age, task, steps and cost.
    Ls(LsArgs),
    /// Show one run and its steps.
    Status(StatusArgs),
    /// Print the events of a run.
    Events(EventsArgs),
    /// Print the output of a step, or of every step.
    Logs(LogsArgs),
    /// Wait for a run to reach a state.
    Wait(WaitArgs),
    /// Send a message to running children.
    Steer(SteerArgs),
    /// Pause a run; its agents can go on later with `resume`.
    #[command(mut_arg("target", |arg| arg.value_name("RUN").help("Which run")))]
    Interrupt(ControlArgs),
    /// Stop a run or one step: the whole process tree, proven empty.
    Stop(ControlArgs),
    /// Show the limits of a run and what was used of them, or change some while it goes on.
    Budget(BudgetArgs),
    /// List what agents ask, or answer it.
    Answer(AnswerArgs),
    /// Go on with paused or finished agents on their own sessions, in a new run.
    Resume(ResumeArgs),
    /// Run again what failed or never ran, in a new run.
    Retry(RetryArgs),
    /// Write a run as one HTML document that needs nothing but a browser, and as JSON.
    Export(ExportArgs),
    /// List the runs that ended long ago, and remove them when told to.
    Prune(PruneArgs),
    /// A scripted run of built-in demo agents: no model, no key, no network.
    Demo(DemoArgs),
    /// Validate a plan and print what would run; starts nothing.
    Check(super::check::CheckArgs),
    /// List the agent definitions, where they are and what is wrong with them.
    Agents(super::agents_cmd::AgentsArgs),
    /// Say which agents are there, whether they are known, and what else a run needs.
    Doctor(super::doctor::DoctorArgs),
    /// Show the configuration and where it comes from; trust a project.
    Config(super::config_cmd::ConfigArgs),
    /// Print a JSON schema.
    Schema(super::schema::SchemaArgs),
    /// Print completions for a shell.
    Completions(super::completions::CompletionsArgs),
    /// Print the manual page.
    Man(super::man::ManArgs),
}

/// Where runs are.
#[derive(Clone, Debug, Default, Args)]
pub struct RootArgs {
    /// The run root [default: $SUBDECK_ROOT, else $XDG_STATE_HOME/subdeck, else ~/.local/state/subdeck].
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write nothing into any run and start none: what would is refused [default: `read_only` of the configuration].
    #[arg(long)]
    pub read_only: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_breaks_lines_where_a_sentence_ends_or_leaves_it_to_the_width() {
        let mut command = Cli::command();
        command.build();
        let mut looked = 0;
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            let Some(help) = command.get_after_help() else { continue };
            let text = help.to_string();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                // An empty line and an indented one begin something new.
                if let [above, below] = pair
                    && !above.is_empty()
                    && !below.is_empty()
                    && !below.starts_with(' ')
                {
                    assert!(above.ends_with('.'), "{}: a line ends within a sentence: {above}", command.get_name());
                }
            }
            looked += 1;
        }
        assert!(looked > 4, "{looked} commands say more behind their options");
    }
}
