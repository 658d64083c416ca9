//! The resolved plan as the run directory keeps it, `subdeck/plan.json` (run-directory 3.9).
//!
//! Holds the prompts, so the file is for its owner alone. Of variables it holds the names and never a value; whoever
//! reads the plan to run it again supplies the values. Unknown fields of a newer version are passed over.

mod acceptance;
mod limits;
mod step;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{LogicalStep, Plan, RunExtras};
use crate::run::RunMode;
use limits::{BudgetDoc, ControlDoc};
use step::StepDoc;

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
        let mut values: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for step in plan.flat() {
            let own = step.env.iter().cloned().chain(acceptance::secrets(&step.acceptance));
            own.for_each(|(name, value)| drop(values.entry(step.key.clone()).or_default().insert(name, value)));
        }
        Self(values)
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
    #[serde(default, skip_serializing_if = "is_false")]
    usage_spares_children: bool,
    #[serde(default, skip_serializing_if = "ControlDoc::is_default")]
    control: ControlDoc,
    #[serde(default, skip_serializing_if = "RunExtras::is_empty")]
    extras: RunExtras,
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
            usage_spares_children: plan.usage_spares_children,
            control: ControlDoc::of(&plan.control),
            extras: plan.extras.clone(),
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
            usage_spares_children: self.usage_spares_children,
            control: self.control.control(),
            extras: self.extras,
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
mod tests;
