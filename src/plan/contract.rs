//! What a runner config says beyond a plan: for the package's readers, where its files go, how it is nested in other
//! runs, and what its work has to show (run-directory 4). Plans have none of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is said of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunExtras {
    /// Where files go that outlive the run directory, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<KeptFiles>,
    /// The run as a graph, as the launcher wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Value>,
    /// Where runs below this one tell of themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Where this run stands below another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested: Option<NestedSelf>,
    /// The workflow run that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_workflow: Option<String>,
    /// What the launch was, as a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_digest: Option<String>,
    /// The extensions that the launcher found, as it wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_extensions: Option<Value>,
    /// The run's place among the tasks of one launch, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_index: Option<u64>,
    /// How many tasks that launch had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tasks: Option<u64>,
    /// How much of the run's summary is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryLimit>,
}

impl RunExtras {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much of the run's summary is kept (run-directory 4, `maxOutput`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryLimit {
    /// Bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
}

impl Default for SummaryLimit {
    fn default() -> Self {
        Self { bytes: 204_800, lines: 5000 }
    }
}

/// Which files of a step are kept, and where. Each is kept unless it is said not to be (run-directory 4,
/// `artifactConfig`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptFiles {
    /// The folder; absolute.
    pub folder: String,
    /// What it was asked, without the words.
    pub input: bool,
    /// Its final text.
    pub output: bool,
    /// What was said and done, record by record.
    pub transcript: bool,
    /// What it was and how it ended.
    pub metadata: bool,
}

/// Where runs below this one tell of themselves and are told what to do (run-directory 2.16).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The run at the root of all.
    pub root_run_id: String,
    /// The folder for what they tell; absolute.
    pub event_sink: String,
    /// The folder for what they are told; absolute.
    pub control_inbox: String,
    /// What proves that somebody belongs to it.
    pub capability_token: String,
}

/// Where a run stands below another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NestedSelf {
    /// The run whose child started it.
    pub parent_run_id: String,
    /// The flat index of that child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_step_index: Option<u64>,
    /// How deep, from 1.
    pub depth: u64,
    /// The way to it from the root.
    pub path: Vec<PathEntry>,
}

/// One run on the way to a nested one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathEntry {
    /// The run.
    pub run_id: String,
    /// The flat index of the child that went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// That child's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What is said of a step, beside its acceptance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepExtras {
    /// The name of its output, where the launcher gave it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_name: Option<String>,
    /// Whether its agent knows the conversation of its launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What the launch was, as a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_digest: Option<String>,
    /// The extensions that the launcher found, as it wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_extensions: Option<Value>,
    /// The contract of the agent, as the launcher wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_contract: Option<Value>,
    /// What others are told of the file with its output: `inline`, where it is behind the text, or `file-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_mode: Option<String>,
}

impl StepExtras {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
