//! What the launcher of a runner config said of a run and its steps. It changes nothing of what happens; the documents
//! repeat it for the package's readers (run-directory 2.1, 5). A plan says none of it but the models.

use serde_json::Value;

use super::{Graph, Ledger};

/// What was said of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunContract {
    /// The folder for the sessions of its children.
    pub session_dir: Option<String>,
    /// The folder for the artifacts of its steps.
    pub artifacts_dir: Option<String>,
    /// The workflow run that it belongs to.
    pub parent_workflow: Option<String>,
    /// Its key in that workflow.
    pub workflow_key: Option<String>,
    /// A child of another run started it.
    pub nested: bool,
    /// What the launch was, as a digest.
    pub launch_digest: Option<String>,
    /// The extensions that the launcher found, as it wrote them.
    pub launch_extensions: Option<Value>,
    /// Its place among the tasks of one launch, from 0.
    pub task_index: Option<u64>,
    /// How many tasks that launch had.
    pub total_tasks: Option<u64>,
    /// The run as a graph for those who draw it, as it was before anything began.
    pub graph: Option<Graph>,
}

/// What was said of a step, and what became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepContract {
    /// The models that may be asked, best first.
    pub models: Vec<String>,
    /// The name of its output, where the launcher gave it one.
    pub output_name: Option<String>,
    /// Whether its agent knows the conversation of its launcher (`fork`) or not (`fresh`).
    pub context: Option<String>,
    /// What the launch was, as a digest.
    pub launch_digest: Option<String>,
    /// The extensions that the launcher found, as it wrote them.
    pub launch_extensions: Option<Value>,
    /// The contract of the agent, as the launcher wrote it.
    pub agent_contract: Option<Value>,
    /// The files that are kept of it.
    pub artifacts: Artifacts,
    /// Why its transcript breaks off.
    pub transcript_error: Option<String>,
    /// Why its output could not be kept.
    pub output_error: Option<String>,
    /// Why the file about it could not be written.
    pub metadata_error: Option<String>,
    /// How its acceptance went, once that is known.
    pub acceptance: Option<Ledger>,
}

/// The files of a step that outlive its run directory; absolute paths (run-directory 2.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifacts {
    /// What it was asked, without the words.
    pub input: Option<String>,
    /// Its final text.
    pub output: Option<String>,
    /// What was said and done, record by record.
    pub transcript: Option<String>,
    /// What it was and how it ended.
    pub metadata: Option<String>,
}
