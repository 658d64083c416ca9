//! From a step of the plan to a child that can be spawned: the program, its arguments and variables, what is written
//! to it first, and who understands it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::child::{Input, Spawn};
use super::family;
use super::keeper::this_program;
use super::output_file::{OutputFile, Told};
use super::session::{self, SessionLock};
use super::tree::{RUN_MARK, STEP_MARK};
use crate::agents::pi::{PiAdapter, PiTalk, command};
use crate::agents::{Adapter, OneShot, Talk};
use crate::plan::template::{self, Values};
use crate::plan::{PiTransport, Runner, Step, SystemPromptMode};
use crate::run::{StepId, Transport, budget};
use crate::rundir::{Home, RunDir, replace};

/// A child that is ready to be spawned.
pub struct Prepared {
    /// The process.
    pub spawn: Spawn,
    /// Who understands it and talks to it.
    pub voice: Voice,
    /// Where its final text goes.
    pub output: Option<OutputFile>,
    /// Files that must live as long as the child.
    pub files: Option<tempfile::TempDir>,
    /// The session that it goes on with is its own for as long as it lives.
    pub session: Option<SessionLock>,
}

/// Who understands a child.
pub enum Voice {
    /// An agent that speaks a protocol.
    Agent {
        /// Understands its output.
        adapter: Box<dyn Adapter>,
        /// Talks to it; `None` when it takes no messages.
        talk: Option<Box<dyn Talk>>,
    },
    /// A plain command: its output is text.
    Plain,
}

/// What earlier steps left for the placeholders of this one.
pub struct Earlier<'a> {
    /// What `{task}` stands for.
    pub task: Option<&'a str>,
    /// What `{previous}` stands for.
    pub previous: &'a str,
    /// What `{outputs.ID}` stand for.
    pub texts: &'a BTreeMap<String, String>,
}

/// What is special about this attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Try<'a> {
    /// The model to ask for.
    pub model: Option<&'a str>,
    /// The task is handed over in a file, however short it is.
    pub task_by_file: bool,
    /// What is asked of its work, to be told at the end of the task.
    pub acceptance: &'a str,
    /// How the agent is talked to, where that is not as planned.
    pub transport: Option<Transport>,
    /// Variables that an agent of the package reads, beside those that mark it.
    pub told: &'a [(&'static str, String)],
}

/// Prepares an attempt of a step.
///
/// # Errors
/// A sentence that says what is missing; the step fails with it.
pub fn prepare(
    step: &Step,
    id: StepId,
    home: &Home,
    earlier: &Earlier<'_>,
    this: &Try<'_>,
) -> Result<Prepared, String> {
    let dir = home.dir();
    let output = |name: &str| earlier.texts.get(name).map(String::as_str);
    let values = Values { task: earlier.task, previous: earlier.previous, output: &output };
    let task = template::fill(&step.task, step.filling, &values) + this.acceptance;
    let planned = template::fill_task(&step.task, step.filling, earlier.task) + this.acceptance;
    if task != planned
        && let Err(error) = replace(&dir.asked(id), task.as_bytes())
    {
        // Only those miss it who look at the run later.
        tell!("subdeck runner: cannot write {}: {error}", dir.asked(id).display());
    }
    if !step.cwd.is_dir() {
        return Err(format!("the folder of the step does not exist: {}", step.cwd.display()));
    }
    let session = match &step.session_file {
        Some(path) => session::take(path)?,
        None => None,
    };
    let mut env = marks(step, id, dir);
    let output = step.output.as_ref().map(|path| {
        let told = match step.extras.output_mode.as_deref() {
            None => Told::Nothing,
            Some("file-only") => Told::LineOnly,
            Some(_) => Told::Line,
        };
        OutputFile::watch(step.cwd.join(path), told)
    });
    let (program, args, stdin, voice, files) = match &step.runner {
        Runner::ExternalCli { command, args } => {
            let prompt = (!step.task.is_empty()).then(|| prompt_of(step, &task));
            let (args, in_args) = template::fill_args(args, step.filling, prompt.as_deref());
            let stdin = match prompt {
                Some(prompt) if !in_args => Input::Once(prompt.into_bytes()),
                _ => Input::Null,
            };
            (OsString::from(command), args, stdin, Voice::Plain, None)
        }
        Runner::Pi { transport, command: planned, args } => {
            let lookup = |name: &str| std::env::var(name).ok();
            let program = command::program(planned.as_deref(), lookup);
            let (mine, stdin, voice, files) = pi(step, id, home, *transport, &task, this)?;
            let args = args.iter().cloned().chain(mine).collect();
            (OsString::from(program), args, stdin, voice, files)
        }
        Runner::Agent(agent) => {
            let parts = family::parts(step, agent, &task, this)?;
            env.extend(parts.env.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
            (OsString::from(parts.program), parts.args, parts.stdin, parts.voice, parts.files)
        }
        Runner::Demo { script } => {
            let (mine, stdin, voice, files) = pi(step, id, home, PiTransport::Rpc, &task, this)?;
            let args = ["__demo-agent".to_owned(), script.clone()].into_iter().chain(mine).collect();
            (this_program().into_os_string(), args, stdin, voice, files)
        }
    };
    if matches!(step.runner, Runner::Pi { .. } | Runner::Demo { .. }) {
        let supervisor = crate::rundir::supervisor::channel(dir);
        let marks = command::Marks {
            run_id: dir.id_str(),
            agent: &step.agent,
            index: id.flat(),
            context_files: step.inherit_project_context,
            skills: step.inherit_skills,
            tools: step.tools.as_deref(),
            parent_session: None,
            supervisor: &supervisor,
        };
        for (name, value) in command::variables(&marks, |name| std::env::var(name).ok()) {
            env.push((name.into(), Some(value.into())));
        }
        // These stand in place of the empty ones of a child that starts no agents.
        for (name, value) in this.told {
            env.retain(|(known, _)| known != name);
            env.push(((*name).into(), Some(value.into())));
        }
    }
    env.extend(step.env.iter().map(|(name, value)| (name.into(), Some(value.into()))));
    let args = args.into_iter().map(OsString::from).collect();
    let spawn = Spawn { program, args, cwd: step.cwd.clone(), env, stdin };
    Ok(Prepared { spawn, voice, output, files, session })
}

/// The variables that mark a child, and those of an enclosing agent that must not reach it (product 3).
fn marks(_step: &Step, id: StepId, dir: &RunDir) -> Vec<(OsString, Option<OsString>)> {
    let mut env: Vec<(OsString, Option<OsString>)> =
        vec![(RUN_MARK.into(), Some(dir.id_str().into())), (STEP_MARK.into(), Some(id.flat().to_string().into()))];
    // An agent that started Subdeck marks its environment; its marks would make our children think that they run
    // inside it.
    let enclosing = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "PI_INTERCOM_SESSION_ID"];
    env.extend(enclosing.iter().filter(|name| std::env::var_os(name).is_some()).map(|name| ((*name).into(), None)));
    let nested = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_str().is_some_and(|n| n.starts_with("PI_SUBAGENT_") && n != command::BINARY_VAR));
    env.extend(nested.map(|name| (name, None)));
    env
}

/// The prompt of a plain command: the system text, a blank line, the task (run-directory 2.15).
fn prompt_of(step: &Step, task: &str) -> String {
    match &step.system_prompt {
        Some(system) if !system.trim().is_empty() => format!("{}\n\n{task}", system.trim_end()),
        _ => task.to_owned(),
    }
}

/// The session file of a step: the one it goes on with, else one of its own in the run directory, so that it can be
/// gone on with later. Plain commands have none.
#[must_use]
pub fn session_file(step: &Step, flat: usize, dir: &RunDir) -> Option<PathBuf> {
    if !matches!(step.runner, Runner::Pi { .. } | Runner::Demo { .. }) || step.carried.is_some() {
        return None;
    }
    let own = || {
        let name: String = step
            .agent
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
            .take(64)
            .collect();
        dir.sessions().join(format!("{flat}-{name}.jsonl"))
    };
    Some(step.session_file.clone().unwrap_or_else(own))
}

type PiParts = (Vec<String>, Input, Voice, Option<tempfile::TempDir>);

fn pi(
    step: &Step,
    id: StepId,
    home: &Home,
    transport: PiTransport,
    task: &str,
    this: &Try<'_>,
) -> Result<PiParts, String> {
    let session = session_file(step, id.flat(), home.dir());
    if let Some(folder) = session.as_ref().and_then(|p| p.parent()) {
        home.through(folder)
            .and_then(|folder| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder))
            .map_err(|e| format!("cannot make the folder for sessions: {e}"))?;
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let needs_task_file =
        transport == PiTransport::Json && (this.task_by_file || command::needs_task_file(task, lookup));
    let mut files = None;
    let mut write = |name: &str, text: &str| -> Result<PathBuf, String> {
        let cannot = |error: std::io::Error| format!("cannot write a file for the agent: {error}");
        if files.is_none() {
            files = Some(tempfile::Builder::new().prefix("pi-subagent-").tempdir().map_err(cannot)?);
        }
        let folder = files.as_ref().map(|f| f.path().to_path_buf()).unwrap_or_default();
        let path = folder.join(name);
        let mut file = std::fs::File::create_new(&path).map_err(cannot)?;
        file.write_all(text.as_bytes()).map_err(cannot)?;
        Ok(path)
    };
    let system_file = match &step.system_prompt {
        Some(system) => {
            let head = format!("<active_agent name=\"{}\"/>\n", escape_xml(&step.agent));
            // Who has a limit of turns is told from the start (runner-behaviour 3.1).
            let turns = step.budget.turns.map_or_else(String::new, |t| format!("\n\n{}\n", budget::prompt_note(t)));
            Some(write("agent.md", &format!("{head}{system}{turns}"))?)
        }
        None => None,
    };
    let task_file = if needs_task_file { Some(write("task.md", &format!("Task: {task}"))?) } else { None };
    let args = command::arguments(&command::Command {
        mode: if transport == PiTransport::Rpc { command::Mode::Rpc } else { command::Mode::Json },
        session_file: session.as_deref(),
        session_dir: None,
        model: this.model,
        thinking: step.thinking.as_deref(),
        tools: step.tools.as_deref(),
        extensions: step.extensions.as_deref(),
        context_files: step.inherit_project_context,
        skills: step.inherit_skills,
        system_prompt: system_file.as_deref().map(|path| match step.system_prompt_mode {
            SystemPromptMode::Append => command::SystemPrompt::Append(path),
            SystemPromptMode::Replace => command::SystemPrompt::Replace(path),
        }),
        task,
        task_file: task_file.as_deref(),
    });
    let adapter = Box::new(PiAdapter::new());
    let (stdin, talk): (Input, Box<dyn Talk>) = match transport {
        PiTransport::Rpc => {
            let mut talk = PiTalk::new();
            (Input::Open(talk.prompt(task)), Box::new(talk))
        }
        PiTransport::Json => (Input::Null, Box::new(OneShot { reason: "pi was started in json mode" })),
    };
    Ok((args, stdin, Voice::Agent { adapter, talk: Some(talk) }, files))
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
