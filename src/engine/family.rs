//! From a step with an agent of another family than pi's to what starts it.

use std::io::Write;

use super::child::Input;
use super::prepare::{Try, Voice};
use crate::agents::families::{self, Start, SystemPrompt};
use crate::plan::{AgentRunner, Step, SystemPromptMode};
use crate::run::{AgentKind, budget};

/// What a child of a family needs.
pub struct Parts {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets where nobody sets them.
    pub env: Vec<(&'static str, &'static str)>,
    /// What it finds on its standard input.
    pub stdin: Input,
    /// Who understands it and talks to it.
    pub voice: Voice,
    /// Files that must live as long as the child.
    pub files: Option<tempfile::TempDir>,
}

/// Prepares an attempt of a step with its filled-in task.
///
/// # Errors
/// A sentence when a file for the agent cannot be written.
pub fn parts(step: &Step, agent: &AgentRunner, task: &str, this: &Try<'_>) -> Result<Parts, String> {
    let system = system_prompt(step);
    let files = system.as_deref().map(written).transpose()?;
    let path = files.as_ref().map(|folder| folder.path().join(SYSTEM_PROMPT));
    let family = families::of(agent.kind.family);
    let set = |name: &str| step.env.iter().any(|(key, _)| key == name) || std::env::var_os(name).is_some();
    let kind = AgentKind { transport: this.transport.unwrap_or(agent.kind.transport), ..agent.kind };
    let start = Start {
        kind,
        model: this.model,
        thinking: step.thinking.as_deref(),
        tools: step.tools.as_deref(),
        system_prompt: path.as_deref().map(|path| match step.system_prompt_mode {
            SystemPromptMode::Append => SystemPrompt::Append(path),
            SystemPromptMode::Replace => SystemPrompt::Replace(path),
        }),
        system_text: system.as_deref(),
        has_key: family.key().is_some_and(set),
        resume: agent.resume.as_deref(),
        cwd: &step.cwd,
        task,
    };
    let args = agent.args.iter().cloned().chain(family.arguments(&start)).collect();
    let voice = family.voice(&start);
    let stdin = match voice.input {
        families::Input::Nothing => Input::Null,
        families::Input::Once(bytes) => Input::Once(bytes),
        families::Input::Open(bytes) => Input::Open(bytes),
    };
    let env = family.variables(&start).into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect();
    let program = agent.command.clone().unwrap_or_else(|| agent.kind.family.program().to_owned());
    let voice = Voice::Agent { adapter: voice.adapter, talk: Some(voice.talk) };
    Ok(Parts { program, args, env, stdin, voice, files })
}

const SYSTEM_PROMPT: &str = "system.md";

/// The system prompt of the step. Who has a limit of turns is told from the start (runner-behaviour 3.1), but only where
/// that does not take the place of the agent's own prompt.
fn system_prompt(step: &Step) -> Option<String> {
    let note = step.budget.turns.map(budget::prompt_note);
    match (&step.system_prompt, note) {
        (Some(text), Some(note)) => Some(format!("{text}\n\n{note}\n")),
        (Some(text), None) => Some(text.clone()),
        (None, Some(note)) if step.system_prompt_mode == SystemPromptMode::Append => Some(format!("{note}\n")),
        (None, _) => None,
    }
}

fn written(text: &str) -> Result<tempfile::TempDir, String> {
    let cannot = |error: std::io::Error| format!("cannot write a file for the agent: {error}");
    let folder = tempfile::Builder::new().prefix("subdeck-agent-").tempdir().map_err(cannot)?;
    let mut file = std::fs::File::create_new(folder.path().join(SYSTEM_PROMPT)).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    Ok(folder)
}
