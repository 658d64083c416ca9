//! What the launcher of a runner config said of a run and its steps. It changes nothing of what happens; the documents
//! repeat it for the package's readers (run-directory 2.1, 5). A plan says none of it but the models.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

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
    /// The extensions that the launcher found, as it wrote them; often the same for all steps of a run.
    pub launch_extensions: Option<Arc<Value>>,
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
    /// Why its output is not in the file that its plan names.
    pub file_error: Option<String>,
    /// How its acceptance went, once that is known.
    pub acceptance: Option<Ledger>,
}

/// The contract of a step, which the copies of the step have together until one of them changes it: it is larger than all
/// else that is known of most steps, and of ten thousand steps there are several pictures.
#[derive(Clone, Debug, Default)]
pub struct SharedContract(Option<Arc<StepContract>>);

impl SharedContract {
    /// Has what is the same in the contract of a neighbour together with it.
    pub(crate) fn share_with(&mut self, neighbour: &Self) {
        if self.launch_extensions.is_some() && self.launch_extensions == neighbour.launch_extensions {
            self.launch_extensions.clone_from(&neighbour.launch_extensions);
        }
    }
}

impl Deref for SharedContract {
    type Target = StepContract;

    fn deref(&self) -> &StepContract {
        static EMPTY: LazyLock<StepContract> = LazyLock::new(StepContract::default);
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for SharedContract {
    fn deref_mut(&mut self) -> &mut StepContract {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl PartialEq for SharedContract {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            _ => **self == **other,
        }
    }
}

impl From<StepContract> for SharedContract {
    fn from(contract: StepContract) -> Self {
        Self((contract != StepContract::default()).then(|| contract.into()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_changed_leaves_the_other_as_it_was() {
        let contract = StepContract { context: Some("fresh".into()), ..StepContract::default() };
        let first = SharedContract::from(contract.clone());
        let mut second = first.clone();
        assert_eq!(first, second);
        second.output_error = Some("the disk is full".into());
        assert_ne!(first, second);
        assert_eq!(*first, contract);
        assert_eq!(SharedContract::default(), SharedContract::from(StepContract::default()));
        let mut none = SharedContract::default();
        none.models.clear();
        assert_eq!(none, SharedContract::default(), "touched and the same");
    }

    #[test]
    fn neighbours_have_the_same_extensions_once() {
        let with = |value: i32| {
            let launch_extensions = Some(Arc::new(Value::from(value)));
            SharedContract::from(StepContract { launch_extensions, ..StepContract::default() })
        };
        let (first, mut same, mut other) = (with(1), with(1), with(2));
        same.share_with(&first);
        other.share_with(&first);
        let of = |contract: &SharedContract| contract.launch_extensions.clone().unwrap();
        assert!(Arc::ptr_eq(&of(&first), &of(&same)));
        assert_eq!(*of(&other), Value::from(2));
    }
}
