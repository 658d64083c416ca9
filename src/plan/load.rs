//! Where plans come from: a file, standard input, or a command line.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::agents::Flavor;
use super::draft::{DraftLogical, DraftPlan, DraftRunner, DraftStep};
use super::read_permission::Permissions;
use super::reader::{Reader, Spanned};
use crate::run::NamedRunner;

use super::{Attention, Budget, Plan, Problem, Problems, Severity, Source, foreign, read, resolve, tree};

/// Where a plan is read from.
pub enum Input<'a> {
    /// A file, named as the user named it.
    Path(&'a Path),
    /// Standard input, or what stands for it.
    Reader(&'a mut dyn Read),
}

/// What loading needs to know of the world, and what goes before the plan's own words.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The folder of the caller; absolute.
    pub current_dir: PathBuf,
    /// The home folder, for `~/` and for agent definitions.
    pub home: Option<PathBuf>,
    /// The caller's PATH, to say which programs are missing.
    pub path: Option<OsString>,
    /// The run's folder, before the plan's.
    pub cwd: Option<PathBuf>,
    /// The run's name, before the plan's.
    pub name: Option<String>,
    /// The runner of steps without one, before that of their agent's definition.
    pub runner: Option<NamedRunner>,
    /// What `{task}` stands for, before the plan's.
    pub task: Option<String>,
    /// Limits of the run, before the plan's.
    pub budget: Budget,
    /// Where agent definitions are; `None` for the usual folders.
    pub agent_folders: Option<Vec<(PathBuf, Flavor)>>,
    /// The program for steps of pi that name none.
    pub pi_program: Option<String>,
    /// What counts where the plan says nothing.
    pub defaults: Defaults,
    /// What is wrong with the script of a demo step in this folder; `None` asks nobody.
    pub check_script: Option<ScriptCheck>,
}

/// Says what is wrong with a script, as a demo step names it, in a folder.
pub type ScriptCheck = fn(&str, &Path) -> Result<(), ScriptProblem>;

/// Why a demo step could not play its script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptProblem {
    /// The sentence.
    pub message: String,
    /// What there is instead.
    pub known: Vec<String>,
    /// A step before may make it still.
    pub may_come: bool,
}

/// What counts where a plan says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The agent of steps without one.
    pub agent: Option<String>,
    /// The model of agents without one.
    pub model: Option<String>,
    /// The runner of steps without one, whose agent's definition names none; `None` means pi. Runner configs name their
    /// own.
    pub runner: Option<NamedRunner>,
    /// How many children of a group run at once.
    pub concurrency: Option<usize>,
    /// The time of a whole run.
    pub time: Option<Duration>,
    /// The longest time a tool call may take.
    pub tool_timeout: Option<Duration>,
    /// Tools without a limit on their time, beside the ones that never have one.
    pub tool_exempt: Option<Vec<String>>,
    /// What agents but pi may do without being asked.
    pub permission: Permissions,
    /// A question that nobody answers for so long is refused.
    pub question_timeout: Option<Duration>,
    /// When somebody should look.
    pub attention: Attention,
    /// Variables of every step.
    pub env: Vec<(String, String)>,
}

/// A plan that can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The plan.
    pub plan: Plan,
    /// What is odd but no reason not to run it.
    pub warnings: Vec<Problem>,
}

/// Reads a plan: TOML, JSON, or a runner config of pi-subagents (run-directory 4).
///
/// # Errors
/// Everything that is wrong, in the order of the text, warnings included.
pub fn load(from: Input<'_>, options: &LoadOptions) -> Result<Loaded, Problems> {
    let (source, base) = match from {
        Input::Path(path) => {
            let source = Source::read(&options.current_dir.join(path));
            let source = source.map(|s| s.named(path.display().to_string()));
            let source = source.map_err(|mut problems| {
                problems.0.iter_mut().for_each(|p| p.file = path.display().to_string());
                problems
            });
            let folder = path.parent().unwrap_or(Path::new(""));
            (source?, resolve::absolute(&options.current_dir, &folder.to_string_lossy(), options))
        }
        Input::Reader(reader) => (Source::read_from("<stdin>", reader)?, options.current_dir.clone()),
    };
    load_source(&source, &base, options)
}

/// Reads a plan from a text; relative folders of the plan are meant from `base`.
///
/// # Errors
/// Everything that is wrong, in the order of the text, warnings included.
pub fn load_source(source: &Source, base: &Path, options: &LoadOptions) -> Result<Loaded, Problems> {
    let root = tree::parse(source)?;
    let mut reader = Reader::new(source);
    let draft =
        if foreign::is_config(&root) { foreign::plan(&mut reader, &root) } else { read::plan(&mut reader, &root) };
    finish(reader, draft, base, options)
}

/// One step that is any command.
///
/// # Errors
/// When the folder cannot be used.
pub fn from_command(command: &str, args: &[String], options: &LoadOptions) -> Result<Loaded, Problems> {
    let runner = DraftRunner::ExternalCli { command: command.to_owned(), args: args.to_vec(), env: Vec::new() };
    let mut step = DraftStep { runner: Some(Spanned::nowhere(runner, "command")), ..DraftStep::default() };
    step.task = options.task.as_ref().map(|_| Spanned::nowhere("{task}".to_owned(), "task"));
    step.literal = true;
    from_step(step, options)
}

/// One step of an agent, with this model instead of its own; `None` for what its runner does by itself.
///
/// # Errors
/// When there is no such agent, or the folder cannot be used.
pub fn from_agent(
    agent: Option<&str>,
    model: Option<&str>,
    task: &str,
    options: &LoadOptions,
) -> Result<Loaded, Problems> {
    let options = LoadOptions { task: Some(task.to_owned()), ..options.clone() };
    let step = DraftStep {
        agent: agent.map(|agent| Spanned::nowhere(agent.to_owned(), "--agent")),
        models: model.map(|model| vec![model.to_owned()]),
        ..DraftStep::default()
    };
    from_step(step, &options)
}

fn from_step(step: DraftStep, options: &LoadOptions) -> Result<Loaded, Problems> {
    let source = Source::command_line();
    let draft = DraftPlan { steps: vec![DraftLogical::Single(Box::new(step))], ..DraftPlan::default() };
    finish(Reader::new(&source), draft, &options.current_dir, options)
}

fn finish(mut reader: Reader<'_>, draft: DraftPlan, base: &Path, options: &LoadOptions) -> Result<Loaded, Problems> {
    let plan = resolve::resolve(&mut reader, draft, base, options);
    let problems = reader.finish();
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return Err(Problems(problems));
    }
    Ok(Loaded { plan, warnings: problems })
}
