//! What a runner config says beyond a plan (run-directory 4): files to keep, the graph, nesting, acceptance.

use super::contract::{KeptFiles, NestedSelf, PathEntry, Route, RunExtras, StepExtras, SummaryLimit};
use super::foreign::{list, number, present, required, required_path, truth, word};
use super::reader::{Fields, Reader};
use super::tree::{Kind, Node};
use crate::run::{Acceptance, AcceptanceLevel, Criterion, Review, Verify};

/// What is said of the run.
pub(super) fn run(reader: &mut Reader<'_>, fields: &Fields<'_>) -> RunExtras {
    let whole = |reader: &mut Reader<'_>, key| number(reader, fields, key).map(|n| n.value as u64);
    RunExtras {
        artifacts: kept(reader, fields),
        graph: object(fields, "workflowGraph"),
        route: route(reader, fields),
        nested: nested(reader, fields),
        parent_workflow: word(reader, fields, "parentWorkflowRunId").map(|s| s.value),
        launch_digest: word(reader, fields, "launchContractDigest").map(|s| s.value),
        launch_extensions: object(fields, "launchResolvedExtensions"),
        task_index: whole(reader, "taskIndex"),
        total_tasks: whole(reader, "totalTasks"),
        summary: summary(reader, fields),
    }
}

/// What is said of a step.
pub(super) fn step(reader: &mut Reader<'_>, fields: &Fields<'_>) -> StepExtras {
    StepExtras {
        output_name: word(reader, fields, "outputName").map(|s| s.value),
        context: word(reader, fields, "context").map(|s| s.value),
        launch_digest: word(reader, fields, "launchContractDigest").map(|s| s.value),
        launch_extensions: object(fields, "launchResolvedExtensions"),
        agent_contract: object(fields, "agentContract"),
        output_mode: present(fields, "outputPath")
            .map(|_| word(reader, fields, "outputMode").map_or_else(|| "inline".to_owned(), |s| s.value)),
    }
}

fn summary(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<SummaryLimit> {
    let most = reader.open(present(fields, "maxOutput")?, "how much of the summary is kept")?;
    let usual = SummaryLimit::default();
    let bytes = number(reader, &most, "bytes").map_or(usual.bytes, |n| n.value as u64);
    let lines = number(reader, &most, "lines").map_or(usual.lines, |n| n.value as u64);
    Some(SummaryLimit { bytes, lines })
}

/// An object as it is; anything else counts as absent.
fn object(fields: &Fields<'_>, key: &str) -> Option<serde_json::Value> {
    present(fields, key).filter(|n| matches!(n.kind, Kind::Table(_))).map(Node::to_json)
}

/// Which files are kept: each, unless it is said not to be. Without a folder there is no place for them.
fn kept(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<KeptFiles> {
    present(fields, "artifactsDir")?;
    let folder = required_path(reader, fields, "artifactsDir");
    let config = present(fields, "artifactConfig").and_then(|n| reader.open(n, "what is kept of a step"));
    let mut is = |key| config.as_ref().and_then(|config| truth(reader, config, key)).unwrap_or(true);
    // The lines as they came (`includeJsonl`) are in the run directory, and hold the prompt.
    is("enabled").then(|| KeptFiles {
        input: is("includeInput"),
        output: is("includeOutput"),
        transcript: is("includeTranscript"),
        metadata: is("includeMetadata"),
        folder,
    })
}

/// The route of runs below this one: all of it, or an error; whether it can be used is found out when the run begins.
fn route(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Route> {
    let route = reader.open(present(fields, "nestedRoute")?, "a route of nested runs")?;
    let root = id(reader, &route, "rootRunId");
    let token = id(reader, &route, "capabilityToken");
    Some(Route {
        root_run_id: root,
        event_sink: required_path(reader, &route, "eventSink"),
        control_inbox: required_path(reader, &route, "controlInbox"),
        capability_token: token,
    })
}

/// An id that is part of the names of files (run-directory 1.2).
fn id(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> String {
    let Some(id) = required(reader, fields, key) else { return String::new() };
    if id.value.len() > 128 || id.value.contains(['/', '\\']) || id.value.contains("..") {
        reader.error_at(&id, format!("`{key}` cannot be part of the name of a file"));
    }
    id.value
}

fn nested(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<NestedSelf> {
    let own = reader.open(present(fields, "nestedSelf")?, "the place of a nested run")?;
    let whole = |reader: &mut Reader<'_>, fields: &Fields<'_>, key| number(reader, fields, key).map(|n| n.value as u64);
    let mut path = Vec::new();
    if let Some(Node { kind: Kind::Array(entries), .. }) = present(&own, "path") {
        for entry in entries {
            let Some(entry) = reader.open(entry, "a run on the way") else { continue };
            path.push(PathEntry {
                run_id: id(reader, &entry, "runId"),
                step_index: whole(reader, &entry, "stepIndex"),
                agent: word(reader, &entry, "agent").map(|s| s.value),
            });
        }
    }
    Some(NestedSelf {
        parent_run_id: id(reader, &own, "parentRunId"),
        parent_step_index: whole(reader, &own, "parentStepIndex"),
        depth: whole(reader, &own, "depth").unwrap_or(1),
        path,
    })
}

/// What the work of a step has to show, as the launcher has worked it out.
pub(super) fn acceptance(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Acceptance {
    let node = present(fields, "effectiveAcceptance");
    let Some(asked) = node.and_then(|node| reader.open(node, "an acceptance")) else { return Acceptance::default() };
    let strings = |reader: &mut Reader<'_>, key| list(reader, &asked, key).unwrap_or_default();
    let level = match word(reader, &asked, "level") {
        None => AcceptanceLevel::None,
        Some(level) => AcceptanceLevel::parse(&level.value).unwrap_or_else(|| {
            reader
                .error_at(&level, format!("there is no level of acceptance `{}`", level.value))
                .suggest("use none, attested, checked or verified");
            AcceptanceLevel::None
        }),
    };
    let contract = present(fields, "agentContract").is_some();
    Acceptance {
        level,
        explicit: truth(reader, &asked, "explicit").unwrap_or(false),
        inferred: strings(reader, "inferredReason"),
        criteria: each(reader, &asked, "criteria", "a criterion", |reader, own| {
            Some(Criterion {
                id: required(reader, own, "id")?.value,
                must: word(reader, own, "must").map(|s| s.value).unwrap_or_default(),
                evidence: list(reader, own, "evidence").unwrap_or_default(),
                recommended: word(reader, own, "severity").is_some_and(|s| s.value == "recommended"),
            })
        }),
        evidence: strings(reader, "evidence"),
        verify: each(reader, &asked, "verify", "a command", |reader, own| {
            Some(Verify {
                id: required(reader, own, "id")?.value,
                command: required(reader, own, "command")?.value,
                timeout_ms: number(reader, own, "timeoutMs").map(|n| (n.value as u64).max(1)),
                cwd: word(reader, own, "cwd").map(|s| s.value),
                env: variables(own),
                allow_failure: truth(reader, own, "allowFailure").unwrap_or(false),
            })
        }),
        review: present(&asked, "review").filter(|n| matches!(n.kind, Kind::Table(_))).and_then(|node| {
            let own = reader.open(node, "a review")?;
            Some(Review {
                agent: word(reader, &own, "agent").map(|s| s.value),
                focus: word(reader, &own, "focus").map(|s| s.value),
                optional: truth(reader, &own, "required") == Some(false),
            })
        }),
        stop_rules: strings(reader, "stopRules"),
        reason: word(reader, &asked, "reason").map(|s| s.value),
        contract,
        gate: contract && word(reader, fields, "gateOn").is_some_and(|s| s.value == "acceptance"),
    }
}

fn each<T>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &str,
    what: &str,
    mut make: impl FnMut(&mut Reader<'_>, &Fields<'_>) -> Option<T>,
) -> Vec<T> {
    let Some(Node { kind: Kind::Array(nodes), .. }) = present(fields, key) else { return Vec::new() };
    let mut found = Vec::new();
    for node in nodes {
        if let Some(own) = reader.open(node, what) {
            found.extend(make(reader, &own));
        }
    }
    found
}

fn variables(fields: &Fields<'_>) -> Vec<(String, String)> {
    let Some(Node { kind: Kind::Table(entries), .. }) = present(fields, "env") else { return Vec::new() };
    let text = |node: &Node| match &node.kind {
        Kind::String(text) => Some(text.clone()),
        _ => None,
    };
    entries.iter().filter_map(|e| Some((e.key.clone(), text(&e.node)?))).collect()
}
