//! A plan as it was written, before agents are looked up and defaults filled in.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::reader::Spanned;
use super::{AgentRunner, Attention, Budget, Control, PiTransport, RunExtras, StepExtras, SystemPromptMode};
use crate::run::{Acceptance, RunMode};

/// The whole plan.
#[derive(Debug, Default)]
pub(crate) struct DraftPlan {
    pub(crate) name: Option<String>,
    pub(crate) task: Option<Spanned<String>>,
    pub(crate) cwd: Option<Spanned<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) tool_timeout: Option<Spanned<Duration>>,
    pub(crate) tool_exempt: Option<Vec<String>>,
    pub(crate) question_timeout: Option<Duration>,
    pub(crate) budget: Budget,
    pub(crate) attention: Attention,
    pub(crate) steps: Vec<DraftLogical>,
    /// What only runner configs have.
    pub(crate) fixed: Option<Fixed>,
}

/// What a runner config fixes (run-directory 4). Its steps bring their whole agent along.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) run_id: String,
    pub(crate) run_dir: PathBuf,
    pub(crate) result_path: PathBuf,
    pub(crate) session_id: Option<String>,
    pub(crate) session_dir: Option<PathBuf>,
    pub(crate) owner_id: Option<String>,
    pub(crate) mode: Option<RunMode>,
    pub(crate) deadline_at_ms: Option<i64>,
    pub(crate) control: Control,
    pub(crate) extras: RunExtras,
}

#[derive(Debug)]
pub(crate) enum DraftLogical {
    Single(Box<DraftStep>),
    Group { steps: Vec<DraftStep>, concurrency: Option<usize>, fail_fast: bool, phase: Option<String> },
}

#[derive(Debug, Default)]
pub(crate) struct DraftStep {
    /// Where the step stands.
    pub(crate) span: Range<usize>,
    pub(crate) path: String,
    pub(crate) id: Option<Spanned<String>>,
    pub(crate) agent: Option<Spanned<String>>,
    pub(crate) label: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) runner: Option<Spanned<DraftRunner>>,
    pub(crate) models: Option<Vec<String>>,
    pub(crate) thinking: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) extensions: Option<Vec<String>>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) system_prompt_mode: Option<SystemPromptMode>,
    pub(crate) inherit_project_context: Option<bool>,
    pub(crate) inherit_skills: Option<bool>,
    pub(crate) task: Option<Spanned<String>>,
    pub(crate) cwd: Option<Spanned<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) output: Option<Spanned<String>>,
    pub(crate) session: Option<Spanned<String>>,
    pub(crate) tool_timeout: Option<Spanned<Duration>>,
    pub(crate) tool_exempt: Option<Vec<String>>,
    pub(crate) question_timeout: Option<Duration>,
    pub(crate) budget: Budget,
    pub(crate) attention: Attention,
    pub(crate) completion_guard: bool,
    pub(crate) acceptance: Acceptance,
    pub(crate) extras: StepExtras,
    /// `{task}` in the arguments is meant literally when the step has no task.
    pub(crate) literal: bool,
    /// Something of the step was wrong already, so that what is missing is not worth a second error.
    pub(crate) broken: Broken,
}

/// The parts of a step that stand there but could not be read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken {
    pub(crate) agent: bool,
    pub(crate) task: bool,
    pub(crate) runner: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DraftRunner {
    Pi {
        transport: PiTransport,
        command: Option<String>,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    /// `permitted`: it says itself what the agent may do.
    Agent {
        runner: AgentRunner,
        permitted: bool,
        env: Vec<(String, String)>,
    },
    ExternalCli {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    Demo {
        script: Option<String>,
        env: Vec<(String, String)>,
    },
}

impl DraftRunner {
    pub(crate) const fn pi() -> Self {
        Self::Pi { transport: PiTransport::Rpc, command: None, args: Vec::new(), env: Vec::new() }
    }
}
