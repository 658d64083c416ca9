//! What a launcher said for the package's readers, as status, result and the record that begins a run hold it
//! (run-directory 2.1, 2.1.1, 5): the same names in all of them.

use super::acceptance;
use super::graph;
use super::json::{Json, Obj};
use super::look::Look;
use crate::run::{Artifacts, RunContract, SharedContract, StepContract};

/// The fields of a run, but for the graph.
pub(super) fn run(obj: &mut Obj, contract: &RunContract) {
    obj.flag("isNested", contract.nested).opt("sessionDir", contract.session_dir.as_ref());
    result(obj, contract);
}

/// Those of them that a result has too.
pub(super) fn result(obj: &mut Obj, contract: &RunContract) {
    obj.opt("parentWorkflowRunId", contract.parent_workflow.as_ref());
    obj.opt("workflowKey", contract.workflow_key.as_ref());
    obj.opt("artifactsDir", contract.artifacts_dir.as_ref());
    obj.opt("launchContractDigest", contract.launch_digest.as_ref());
    obj.opt("launchResolvedExtensions", contract.launch_extensions.as_ref());
}

/// The place of a run among the tasks of one launch.
pub(super) fn task(obj: &mut Obj, contract: &RunContract) {
    obj.opt("taskIndex", contract.task_index).opt("totalTasks", contract.total_tasks);
}

/// All of it, for the record that begins a run.
pub(super) fn whole_run(contract: &RunContract, id: &str) -> Option<Obj> {
    let mut obj = Obj::new();
    run(&mut obj, contract);
    task(&mut obj, contract);
    obj.opt("workflowGraph", contract.graph.as_ref().map(|g| graph::encode(g, id)));
    Some(obj).filter(|o| !o.is_empty())
}

/// The contract of a run, from where its fields stand, and from where those stand that are only ours in a status.
pub(super) fn read_run(look: &Look<'_>, own: &Look<'_>) -> RunContract {
    RunContract {
        session_dir: look.text("sessionDir"),
        artifacts_dir: look.text("artifactsDir"),
        parent_workflow: look.text("parentWorkflowRunId"),
        workflow_key: look.text("workflowKey"),
        nested: look.is("isNested"),
        launch_digest: look.text("launchContractDigest"),
        launch_extensions: look.0.get("launchResolvedExtensions").filter(|v| v.is_object()).cloned(),
        task_index: own.count("taskIndex"),
        total_tasks: own.count("totalTasks"),
        graph: graph::of(look.0),
    }
}

/// The fields of a step that status and result share; the result has the paths of its artifacts beside.
pub(super) fn step(obj: &mut Obj, contract: &StepContract) {
    obj.opt("context", contract.context.as_ref()).opt("outputName", contract.output_name.as_ref());
    obj.opt("transcriptPath", contract.artifacts.transcript.as_ref());
    obj.opt("transcriptError", contract.transcript_error.as_ref());
    obj.opt("launchContractDigest", contract.launch_digest.as_ref());
    obj.opt("launchResolvedExtensions", contract.launch_extensions.as_deref());
    obj.opt("agentContract", contract.agent_contract.as_ref());
    obj.opt("acceptance", contract.acceptance.as_ref().map(acceptance::encode));
}

/// What a status of ours has of a step beyond that.
pub(super) fn own_step(own: &mut Obj, contract: &StepContract) {
    own.opt("models", Some(&contract.models).filter(|m| !m.is_empty()).map(|m| m.iter().collect::<Json>()));
    own.opt("artifacts", artifacts(&contract.artifacts));
    own.opt("outputError", contract.output_error.as_ref()).opt("metadataError", contract.metadata_error.as_ref());
    own.opt("fileError", contract.file_error.as_ref());
}

/// All of it, for the record that begins a run.
pub(super) fn whole_step(contract: &StepContract) -> Option<Obj> {
    let mut obj = Obj::new();
    step(&mut obj, contract);
    own_step(&mut obj, contract);
    Some(obj).filter(|o| !o.is_empty())
}

/// The contract of a step, from where its fields stand, and from where those stand that are only ours in a status.
pub(super) fn read_step(look: &Look<'_>, own: &Look<'_>) -> SharedContract {
    let object = |key: &str| look.0.get(key).filter(|v| v.is_object()).cloned();
    let mut artifacts = own.obj("artifacts").map(|a| read_artifacts(&a)).unwrap_or_default();
    artifacts.transcript = look.text("transcriptPath");
    StepContract {
        models: own.strings("models").unwrap_or_default(),
        output_name: look.text("outputName"),
        context: look.text("context"),
        launch_digest: look.text("launchContractDigest"),
        launch_extensions: object("launchResolvedExtensions").map(Into::into),
        agent_contract: object("agentContract"),
        artifacts,
        transcript_error: look.text("transcriptError"),
        output_error: own.text("outputError"),
        metadata_error: own.text("metadataError"),
        file_error: own.text("fileError"),
        acceptance: acceptance::read(look, "acceptance"),
    }
    .into()
}

/// The paths of a step's artifacts (run-directory 5); `None` when there are none.
pub(super) fn artifacts(artifacts: &Artifacts) -> Option<Obj> {
    let mut obj = Obj::new();
    obj.opt("inputPath", artifacts.input.as_ref()).opt("outputPath", artifacts.output.as_ref());
    obj.opt("transcriptPath", artifacts.transcript.as_ref()).opt("metadataPath", artifacts.metadata.as_ref());
    Some(obj).filter(|o| !o.is_empty())
}

fn read_artifacts(look: &Look<'_>) -> Artifacts {
    Artifacts {
        input: look.text("inputPath"),
        output: look.text("outputPath"),
        transcript: look.text("transcriptPath"),
        metadata: look.text("metadataPath"),
    }
}
