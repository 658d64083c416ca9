//! Agents of other families than pi's: one object a family says how its agent is started, who understands it and who
//! talks to it. What is the same for all of them stands in the engine.

use std::path::Path;

use super::{Adapter, Talk, acp, claude, codex};
use crate::run::{AgentKind, Family};

/// The file that holds a system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemPrompt<'a> {
    /// It adds to the agent's own.
    Append(&'a Path),
    /// It takes the place of the agent's own.
    Replace(&'a Path),
}

/// Everything that decides how an agent is started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Which agent, how it is talked to, what it may do.
    pub kind: AgentKind,
    /// The model; `None` leaves the choice to the agent.
    pub model: Option<&'a str>,
    /// The thinking level.
    pub thinking: Option<&'a str>,
    /// The tools that the agent has; `None` leaves its own set, an empty list means none.
    pub tools: Option<&'a [String]>,
    /// The system prompt, if there is one.
    pub system_prompt: Option<SystemPrompt<'a>>,
    /// What stands in that file.
    pub system_text: Option<&'a str>,
    /// The variable of [`Agents::key`] is set.
    pub has_key: bool,
    /// The agent's id of the session to go on with.
    pub resume: Option<&'a str>,
    /// The folder that it works in.
    pub cwd: &'a Path,
    /// The task.
    pub task: &'a str,
}

impl<'a> Start<'a> {
    /// The start of an agent of which nothing else is known.
    #[must_use]
    pub fn new(kind: AgentKind) -> Self {
        Self {
            kind,
            model: None,
            thinking: None,
            tools: None,
            system_prompt: None,
            system_text: None,
            has_key: false,
            resume: None,
            cwd: Path::new("."),
            task: "",
        }
    }
}

/// What an agent finds on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// These bytes, then the end.
    Once(Vec<u8>),
    /// These bytes, and it stays open for more.
    Open(Vec<u8>),
}

/// Who understands a started agent, who talks to it, and what is said first.
pub struct Voice {
    /// Understands its output.
    pub adapter: Box<dyn Adapter>,
    /// Talks to it.
    pub talk: Box<dyn Talk>,
    /// What it finds on its standard input; the prompt of [`Talk`] is in it already.
    pub input: Input,
}

/// A family of agents. Its program is [`Family::program`] unless the plan names another one.
pub trait Agents: Sync {
    /// Its arguments, after those of the plan.
    fn arguments(&self, start: &Start<'_>) -> Vec<String>;
    /// The variables that it gets where the plan and the environment do not set them.
    fn variables(&self, start: &Start<'_>) -> Vec<(&'static str, &'static str)>;
    /// The variable with the key that the agent is to be told to log in with, where it does not see that by itself.
    fn key(&self) -> Option<&'static str> {
        None
    }
    /// Who understands and talks to an agent that is started so.
    fn voice(&self, start: &Start<'_>) -> Voice;
}

/// The object of a family.
#[must_use]
pub fn of(family: Family) -> &'static dyn Agents {
    match family {
        Family::Claude => &claude::Claude,
        Family::Codex => &codex::Codex,
        Family::OpenCode => &acp::Speaker(acp::Dialect::OpenCode),
        Family::Gemini => &acp::Speaker(acp::Dialect::Gemini),
        Family::Qwen => &acp::Speaker(acp::Dialect::Qwen),
        Family::Copilot => &acp::Speaker(acp::Dialect::Copilot),
        Family::Amp => &claude::Amp,
        Family::Acp => &acp::Speaker(acp::Dialect::Other),
    }
}
