//! The resolved plan as the run directory keeps it, `subdeck/plan.json` (run-directory 3.9).
//!
//! Holds the prompts, so the file is for its owner alone. Of variables it holds the names and never a value; whoever
//! reads the plan to run it again supplies the values. Unknown fields of a newer version are passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Budget, Carried, Limit, LogicalStep, PiTransport, Plan, Runner, Step, SystemPromptMode};
use crate::run::{CostUsd, RunMode, Thresholds, TurnLimit};

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// Why a stored plan cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// Not the document that it should be.
    #[error("the stored plan is not readable: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Written by a newer version in a form that this one does not know.
    #[error("the stored plan has version {0}, this program reads up to {VERSION}; use a newer subdeck")]
    TooNew(u32),
}

/// A stored plan with the variables whose values could not be had.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The plan.
    pub plan: Plan,
    /// The id of a step and the name of a variable that it had and now lacks.
    pub missing_env: Vec<(String, String)>,
}

/// The document for a plan: JSON with two spaces, as all documents of a run (run-directory 0).
#[must_use]
pub fn encode(plan: &Plan) -> Vec<u8> {
    // Nothing in the document can fail to become JSON: keys are texts, and numbers are made finite.
    serde_json::to_vec_pretty(&Doc::of(plan)).unwrap_or_default()
}

/// Reads the document; `value_of` gives the value of a variable by the key of its step and its name.
///
/// # Errors
/// When it is not such a document, or too new.
pub fn decode(bytes: &[u8], value_of: &dyn Fn(&str, &str) -> Option<String>) -> Result<Stored, StoredError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Versioned { version } = serde_json::from_slice(bytes)?;
    if version > VERSION {
        return Err(StoredError::TooNew(version));
    }
    let doc: Doc = serde_json::from_slice(bytes)?;
    let mut missing_env = Vec::new();
    let plan = doc.plan(value_of, &mut missing_env);
    Ok(Stored { plan, missing_env })
}

/// The values that may not be on disk, on their way from a launcher to its runner: by step key and variable.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets(BTreeMap<String, BTreeMap<String, String>>);

impl Secrets {
    /// The values of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let with_env = plan.flat().filter(|step| !step.env.is_empty());
        Self(with_env.map(|step| (step.key.clone(), step.env.iter().cloned().collect())).collect())
    }

    /// The value of one variable.
    #[must_use]
    pub fn get(&self, step: &str, name: &str) -> Option<String> {
        self.0.get(step)?.get(name).cloned()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

const fn is_false(truth: &bool) -> bool {
    !*truth
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Doc {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    cwd: String,
    #[serde(default)]
    budget: BudgetDoc,
    steps: Vec<LogicalDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumed_from: Option<String>,
}

/// A group has `parallel`, a single step everything else.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LogicalDoc {
    Group(GroupDoc),
    Single(Box<StepDoc>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupDoc {
    parallel: Vec<StepDoc>,
    #[serde(default = "one")]
    concurrency: usize,
    #[serde(default)]
    fail_fast: bool,
}

const fn one() -> usize {
    1
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepDoc {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<CarriedDoc>,
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
    ExternalCli {
        command: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
    Demo {
        script: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TransportDoc {
    Rpc,
    Json,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BudgetDoc {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<TurnsDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<LimitDoc<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<LimitDoc<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<LimitDoc<f64>>,
}

#[derive(Serialize, Deserialize)]
struct TurnsDoc {
    max: u64,
    #[serde(default)]
    grace: u64,
}

#[derive(Serialize, Deserialize)]
struct LimitDoc<T> {
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    soft: Option<T>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    hard: Option<T>,
}

fn ms(span: Option<Duration>) -> Option<u64> {
    span.map(|s| u64::try_from(s.as_millis()).unwrap_or(u64::MAX))
}

impl BudgetDoc {
    fn of(budget: &Budget) -> Self {
        let limit = |l: Limit<u64>| LimitDoc { soft: l.soft, hard: l.hard };
        let usd = |c: CostUsd| Some(c.0).filter(|c| c.is_finite());
        Self {
            time_ms: ms(budget.time),
            idle_ms: ms(budget.idle),
            turns: budget.turns.map(|t| TurnsDoc { max: t.max, grace: t.grace }),
            tool_calls: budget.tool_calls.map(limit),
            tokens: budget.tokens.map(limit),
            cost_usd: budget.cost.map(|l| LimitDoc { soft: l.soft.and_then(usd), hard: l.hard.and_then(usd) }),
        }
    }

    fn budget(self) -> Budget {
        let limit = |l: LimitDoc<u64>| Limit { soft: l.soft, hard: l.hard };
        Budget {
            time: self.time_ms.map(Duration::from_millis),
            idle: self.idle_ms.map(Duration::from_millis),
            turns: self.turns.map(|t| TurnLimit { max: t.max, grace: t.grace }),
            tool_calls: self.tool_calls.map(limit),
            tokens: self.tokens.map(limit),
            cost: self.cost_usd.map(|l| Limit { soft: l.soft.map(CostUsd), hard: l.hard.map(CostUsd) }),
            tool_block: None,
        }
    }
}

impl StepDoc {
    fn of(step: &Step) -> Self {
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
            tool_timeout_ms: ms(step.tool_timeout),
            session_file: step.session_file.as_deref().map(text),
            carried: step.carried.as_ref().map(|c| CarriedDoc { output: c.output.clone() }),
        }
    }

    fn step(self, value_of: &dyn Fn(&str, &str) -> Option<String>, missing: &mut Vec<(String, String)>) -> Step {
        let mut env = Vec::with_capacity(self.env.len());
        for name in self.env {
            match value_of(&self.id, &name) {
                Some(value) => env.push((name, value)),
                None => missing.push((self.id.clone(), name)),
            }
        }
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
            tool_exempt: Vec::new(),
            attention: Thresholds::default(),
            session_file: self.session_file.map(PathBuf::from),
            carried: self.carried.map(|c| Carried { output: c.output }),
        }
    }
}

impl Doc {
    fn of(plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(|logical| match logical {
            LogicalStep::Single(step) => LogicalDoc::Single(Box::new(StepDoc::of(step))),
            LogicalStep::Group { steps, concurrency, fail_fast } => LogicalDoc::Group(GroupDoc {
                parallel: steps.iter().map(StepDoc::of).collect(),
                concurrency: *concurrency,
                fail_fast: *fail_fast,
            }),
        });
        Self {
            version: VERSION,
            name: plan.name.clone(),
            task: plan.task.clone(),
            cwd: text(&plan.cwd),
            budget: BudgetDoc::of(&plan.budget),
            steps: steps.collect(),
            run_id: plan.run_id.clone(),
            run_dir: plan.run_dir.as_deref().map(text),
            result_path: plan.result_path.as_deref().map(text),
            session_id: plan.session_id.clone(),
            session_dir: plan.session_dir.as_deref().map(text),
            owner_id: plan.owner_id.clone(),
            mode: plan.mode.as_ref().map(mode_word),
            deadline_at: plan.deadline_at_ms,
            resumed_from: plan.resumed_from.clone(),
        }
    }

    fn plan(self, value_of: &dyn Fn(&str, &str) -> Option<String>, missing: &mut Vec<(String, String)>) -> Plan {
        let mut steps = Vec::with_capacity(self.steps.len());
        for logical in self.steps {
            steps.push(match logical {
                LogicalDoc::Single(step) => LogicalStep::Single(Box::new(step.step(value_of, missing))),
                LogicalDoc::Group(group) => LogicalStep::Group {
                    steps: group.parallel.into_iter().map(|s| s.step(value_of, missing)).collect(),
                    concurrency: group.concurrency.max(1),
                    fail_fast: group.fail_fast,
                },
            });
        }
        Plan {
            name: self.name,
            task: self.task,
            cwd: self.cwd.into(),
            budget: self.budget.budget(),
            steps,
            run_id: self.run_id,
            run_dir: self.run_dir.map(PathBuf::from),
            result_path: self.result_path.map(PathBuf::from),
            session_id: self.session_id,
            session_dir: self.session_dir.map(PathBuf::from),
            owner_id: self.owner_id,
            mode: self.mode.as_deref().map(parse_mode),
            deadline_at_ms: self.deadline_at,
            resumed_from: self.resumed_from,
            usage_spares_children: false,
        }
    }
}

fn mode_word(mode: &RunMode) -> String {
    match mode {
        RunMode::Single => "single",
        RunMode::Parallel => "parallel",
        RunMode::Chain => "chain",
        RunMode::Workflow => "workflow",
        RunMode::Unknown(word) => word,
    }
    .to_owned()
}

/// A mode from the word that files use (run-directory 2.1).
pub(super) fn parse_mode(word: &str) -> RunMode {
    match word {
        "single" => RunMode::Single,
        "parallel" => RunMode::Parallel,
        "chain" => RunMode::Chain,
        "workflow" => RunMode::Workflow,
        other => RunMode::Unknown(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_step() -> Step {
        Step {
            key: "a".into(),
            agent: "scout".into(),
            label: Some("Look".into()),
            phase: Some("one".into()),
            task: "Do {previous}".into(),
            cwd: "/w".into(),
            env: vec![("TOKEN".into(), "s3cret".into()), ("GONE".into(), "s3cret".into())],
            runner: Runner::Pi { transport: PiTransport::Json, command: Some("pi2".into()), args: vec!["-x".into()] },
            models: vec!["m".into(), "n".into()],
            thinking: Some("high".into()),
            tools: Some(vec![]),
            extensions: Some(vec!["e".into()]),
            system_prompt: Some("Be".into()),
            system_prompt_mode: SystemPromptMode::Replace,
            inherit_project_context: true,
            inherit_skills: true,
            output: Some("o.md".into()),
            budget: Budget {
                time: Some(Duration::from_millis(1500)),
                idle: Some(Duration::from_secs(9)),
                turns: Some(TurnLimit { max: 40, grace: 2 }),
                tool_calls: Some(Limit { soft: Some(20), hard: Some(30) }),
                tokens: Some(Limit { soft: None, hard: Some(7) }),
                cost: Some(Limit { soft: Some(CostUsd(0.5)), hard: None }),
                tool_block: None,
            },
            tool_exempt: Vec::new(),
            attention: Thresholds::default(),
            tool_timeout: Some(Duration::from_secs(600)),
            session_file: Some("/s.jsonl".into()),
            carried: Some(Carried { output: "done".into() }),
        }
    }

    fn full_plan() -> Plan {
        let command = Runner::ExternalCli { command: "make".into(), args: vec!["{task}".into()] };
        let demo = Runner::Demo { script: "scout".into() };
        Plan {
            name: Some("n".into()),
            task: Some("t".into()),
            cwd: "/w".into(),
            budget: full_step().budget,
            steps: vec![
                LogicalStep::Single(Box::new(full_step())),
                LogicalStep::Group {
                    steps: vec![
                        Step { key: "b".into(), runner: command, ..Step::default() },
                        Step { key: "c".into(), runner: demo, ..Step::default() },
                        Step { key: "d".into(), ..Step::default() },
                    ],
                    concurrency: 2,
                    fail_fast: true,
                },
            ],
            run_id: Some("id".into()),
            run_dir: Some("/r".into()),
            result_path: Some("/r.json".into()),
            session_id: Some("s".into()),
            session_dir: Some("/sessions".into()),
            owner_id: Some("o".into()),
            mode: Some(RunMode::Unknown("odd".into())),
            deadline_at_ms: Some(5),
            usage_spares_children: false,
            resumed_from: Some("before".into()),
        }
    }

    #[test]
    fn everything_but_values_comes_back() {
        let plan = full_plan();
        let bytes = encode(&plan);
        assert!(!String::from_utf8(bytes.clone()).unwrap().contains("s3cret"));
        let value_of = |_step: &str, name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let stored = decode(&bytes, &value_of).unwrap();
        assert_eq!(stored.missing_env, [("a".to_owned(), "GONE".to_owned())]);
        let mut expected = plan;
        if let LogicalStep::Single(step) = &mut expected.steps[0] {
            step.env.pop();
        }
        assert_eq!(stored.plan, expected);
        assert_eq!(encode(&stored.plan).len(), encode(&expected).len());
    }

    #[test]
    fn unknown_fields_are_passed_over_and_newer_versions_refused() {
        let text = r#"{"version":1,"cwd":"/w","new":{},"steps":[{"id":"a","agent":"pi","cwd":"/w","x":1,
            "runner":{"type":"pi","transport":"rpc","y":2}}]}"#;
        let stored = decode(text.as_bytes(), &|_, _| None).unwrap();
        assert_eq!(stored.plan.flat().map(|s| s.key.as_str()).collect::<Vec<_>>(), ["a"]);
        let newer = text.replace("\"version\":1", "\"version\":2");
        assert!(matches!(decode(newer.as_bytes(), &|_, _| None), Err(StoredError::TooNew(2))));
        for broken in ["", "{", "[]", "{\"version\":1}", "{\"version\":1,\"cwd\":\"/\",\"steps\":[{}]}", "\u{feff}"] {
            assert!(matches!(decode(broken.as_bytes(), &|_, _| None), Err(StoredError::Malformed(_))), "{broken}");
        }
    }
}
