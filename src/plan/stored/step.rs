//! One step in the stored plan.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::limits::millis;
use super::super::template::Filling;
use super::super::{AgentRunner, Carried, PiTransport, Runner, Step, StepExtras, SystemPromptMode};
use super::acceptance::AcceptanceDoc;
use super::limits::{AttentionDoc, BudgetDoc};
use super::{is_false, text};
use crate::run::{AgentKind, Permission, ToolRule};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepDoc {
    id: String,
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(default)]
    task: String,
    cwd: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    runner: RunnerDoc,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    models: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extensions: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    replace_system_prompt: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    inherit_project_context: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    inherit_skills: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(default)]
    budget: BudgetDoc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_timeout_exempt: Vec<String>,
    #[serde(default, skip_serializing_if = "AttentionDoc::is_built_in")]
    attention: AttentionDoc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    completion_guard: bool,
    /// `given` or `literal`; a template says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filling: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<CarriedDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acceptance: Option<AcceptanceDoc>,
    #[serde(default, skip_serializing_if = "StepExtras::is_empty")]
    extras: StepExtras,
}

#[derive(Serialize, Deserialize)]
struct CarriedDoc {
    #[serde(default)]
    output: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum RunnerDoc {
    Pi {
        transport: TransportDoc,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
    Agent {
        kind: KindDoc,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RuleDoc>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fixed_transport: bool,
    },
    ExternalCli {
        command: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
    Demo {
        script: String,
    },
}

/// The word of [`AgentKind::word`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct KindDoc(AgentKind);

impl TryFrom<String> for KindDoc {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        AgentKind::of_word(&word).map(Self).ok_or_else(|| format!("there is no agent `{word}`"))
    }
}

impl From<KindDoc> for String {
    fn from(kind: KindDoc) -> Self {
        kind.0.word()
    }
}

/// A rule for a tool; a word that is not known asks.
#[derive(Serialize, Deserialize)]
struct RuleDoc {
    tool: String,
    permission: String,
}

impl From<ToolRule> for RuleDoc {
    fn from(rule: ToolRule) -> Self {
        Self { tool: rule.pattern, permission: rule.permission.word().to_owned() }
    }
}

impl From<RuleDoc> for ToolRule {
    fn from(rule: RuleDoc) -> Self {
        Self { permission: Permission::of_word(&rule.permission).unwrap_or_default(), pattern: rule.tool }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TransportDoc {
    Rpc,
    Json,
}

impl StepDoc {
    pub(super) fn of(step: &Step) -> Self {
        Self {
            id: step.key.clone(),
            agent: step.agent.clone(),
            label: step.label.clone(),
            phase: step.phase.clone(),
            task: step.task.clone(),
            cwd: text(&step.cwd),
            env: step.env.iter().map(|(name, _)| name.clone()).collect(),
            runner: match step.runner.clone() {
                Runner::Pi { transport, command, args } => {
                    let transport = match transport {
                        PiTransport::Rpc => TransportDoc::Rpc,
                        PiTransport::Json => TransportDoc::Json,
                    };
                    RunnerDoc::Pi { transport, command, args }
                }
                Runner::Agent(AgentRunner { kind, command, args, rules, resume, fixed_transport }) => {
                    let rules = rules.into_iter().map(RuleDoc::from).collect();
                    RunnerDoc::Agent { kind: KindDoc(kind), command, args, rules, resume, fixed_transport }
                }
                Runner::ExternalCli { command, args } => RunnerDoc::ExternalCli { command, args },
                Runner::Demo { script } => RunnerDoc::Demo { script },
            },
            models: step.models.clone(),
            thinking: step.thinking.clone(),
            tools: step.tools.clone(),
            extensions: step.extensions.clone(),
            system_prompt: step.system_prompt.clone(),
            replace_system_prompt: step.system_prompt_mode == SystemPromptMode::Replace,
            inherit_project_context: step.inherit_project_context,
            inherit_skills: step.inherit_skills,
            output: step.output.as_deref().map(text),
            budget: BudgetDoc::of(&step.budget),
            tool_timeout_ms: step.tool_timeout.map(millis),
            tool_timeout_exempt: step.tool_exempt.clone(),
            attention: AttentionDoc::of(&step.attention),
            question_timeout_ms: step.question_timeout.map(millis),
            completion_guard: step.completion_guard,
            filling: match step.filling {
                Filling::Template => None,
                Filling::Given => Some("given".to_owned()),
                Filling::Literal => Some("literal".to_owned()),
            },
            session_file: step.session_file.as_deref().map(text),
            carried: step.carried.as_ref().map(|c| CarriedDoc { output: c.output.clone() }),
            acceptance: AcceptanceDoc::of(&step.acceptance),
            extras: step.extras.clone(),
        }
    }

    pub(super) fn step(
        self,
        value_of: &dyn Fn(&str, &str) -> Option<String>,
        missing: &mut Vec<(String, String)>,
    ) -> Step {
        let mut env = Vec::with_capacity(self.env.len());
        for name in self.env {
            match value_of(&self.id, &name) {
                Some(value) => env.push((name, value)),
                None => missing.push((self.id.clone(), name)),
            }
        }
        let mut tell = |name| missing.push((self.id.clone(), name));
        let acceptance = self.acceptance.map(|doc| doc.acceptance(&|name| value_of(&self.id, name), &mut tell));
        let acceptance = acceptance.unwrap_or_default();
        let replace = self.replace_system_prompt;
        Step {
            key: self.id,
            agent: self.agent,
            label: self.label,
            phase: self.phase,
            task: self.task,
            cwd: self.cwd.into(),
            env,
            runner: match self.runner {
                RunnerDoc::Pi { transport, command, args } => {
                    let transport = match transport {
                        TransportDoc::Rpc => PiTransport::Rpc,
                        TransportDoc::Json => PiTransport::Json,
                    };
                    Runner::Pi { transport, command, args }
                }
                RunnerDoc::Agent { kind: KindDoc(kind), command, args, rules, resume, fixed_transport } => {
                    let rules = rules.into_iter().map(ToolRule::from).collect();
                    Runner::Agent(AgentRunner { kind, command, args, rules, resume, fixed_transport })
                }
                RunnerDoc::ExternalCli { command, args } => Runner::ExternalCli { command, args },
                RunnerDoc::Demo { script } => Runner::Demo { script },
            },
            models: self.models,
            thinking: self.thinking,
            tools: self.tools,
            extensions: self.extensions,
            system_prompt: self.system_prompt,
            system_prompt_mode: if replace { SystemPromptMode::Replace } else { SystemPromptMode::Append },
            inherit_project_context: self.inherit_project_context,
            inherit_skills: self.inherit_skills,
            output: self.output.map(PathBuf::from),
            budget: self.budget.budget(),
            tool_timeout: self.tool_timeout_ms.map(Duration::from_millis),
            tool_exempt: self.tool_timeout_exempt,
            attention: self.attention.thresholds(),
            question_timeout: self.question_timeout_ms.map(Duration::from_millis),
            completion_guard: self.completion_guard,
            filling: match self.filling.as_deref() {
                Some("given") => Filling::Given,
                Some("literal") => Filling::Literal,
                _ => Filling::Template,
            },
            session_file: self.session_file.map(PathBuf::from),
            carried: self.carried.map(|c| Carried { output: c.output }),
            acceptance,
            extras: self.extras,
        }
    }
}
