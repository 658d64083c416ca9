//! What can be typed. Only shapes and help; what a command does is in its own file.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::Config;
use crate::headless::Format;
use crate::run::{OnPermission, Raise};
use crate::rundir::fleet::{Group, Show, Sort};
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

/// `--output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Output {
    #[default]
    Text,
    Jsonl,
    Json,
}

impl From<Output> for Format {
    fn from(output: Output) -> Self {
        match output {
            Output::Text => Self::Text,
            Output::Jsonl => Self::Jsonl,
            Output::Json => Self::Json,
        }
    }
}

/// A limit, as `subdeck budget` takes it.
fn raise(word: &str) -> Result<Raise, String> {
    Raise::parse(word)
}

fn duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|e| e.to_string())
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

/// How a launched or attached run is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct ShowArgs {
    /// Print to stdout instead of opening the deck. A run that is started in this way ends with the command that prints it.
    #[arg(long)]
    pub no_tui: bool,
    /// What --no-tui prints [default: `defaults.output` of the configuration, else text].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output: Option<Output>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
}

impl ShowArgs {
    /// What is printed without a deck: by the flag, else by the configuration.
    #[must_use]
    pub fn output(&self, config: &Config) -> Output {
        self.output.unwrap_or(if config.output() == "jsonl" { Output::Jsonl } else { Output::Text })
    }
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
