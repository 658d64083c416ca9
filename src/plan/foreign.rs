//! The runner config of pi-subagents (run-directory 4) becomes a draft.
//!
//! Another program wrote it, so unknown fields are left alone; what would change how a child runs and cannot be done
//! here is refused with its name.

use std::time::Duration;

use super::draft::{DraftLogical, DraftPlan, DraftRunner, DraftStep, Fixed};
use super::foreign_extras;
use super::foreign_limits::{attention, control, grant, tool_budget, turn_budget, usage_budget};
use super::reader::{Fields, Reader, Spanned};
use super::stored::parse_mode;
use super::tree::{Kind, Node};
use super::{Budget, SystemPromptMode, read_runner};

/// Fields of the whole run that this version cannot honour.
const RUN_LATER: &[(&str, &str)] = &[
    ("revivalLease", "going on with the session of another run"),
    ("capabilityCeiling", "a ceiling on what children may do"),
];

/// Fields of a step that this version cannot honour.
const STEP_LATER: &[(&str, &str)] = &[
    ("importAsyncRoot", "taking over the step of another run"),
    ("worktree", "a worktree for a step"),
    ("structuredOutput", "a structured output"),
    ("structuredOutputSchema", "a structured output"),
    ("capabilityCeiling", "a ceiling on what a child may do"),
    ("permissionRules", "permission rules"),
    ("expand", "a group that grows from an earlier output"),
];

/// Whether a tree is a runner config and not a plan.
pub(super) fn is_config(root: &Node) -> bool {
    root.get("steps").is_some() && ["asyncDir", "resultPath", "placeholder"].iter().any(|key| root.get(key).is_some())
}

/// Reads the whole config; what is wrong is noted in `reader`.
pub(super) fn plan(reader: &mut Reader<'_>, root: &Node) -> DraftPlan {
    let Some(fields) = reader.open(root, "a runner config") else { return DraftPlan::default() };
    later(reader, &fields, RUN_LATER);
    let placeholder = word(reader, &fields, "placeholder");
    if let Some(other) = placeholder.filter(|p| p.value != "{previous}") {
        reader
            .error_at(&other, format!("the placeholder `{}` is not supported yet in this version", other.value))
            .suggest("use `{previous}`");
    }
    let run_id = required(reader, &fields, "id");
    if let Some(id) = &run_id
        && (id.value.contains(['/', '\\']) || matches!(id.value.as_str(), "." | ".."))
    {
        reader.error_at(id, "the id cannot be the name of a folder");
    }
    let run_dir = required_path(reader, &fields, "asyncDir");
    let result_path = required_path(reader, &fields, "resultPath");
    let budget = Budget { time: milliseconds(reader, &fields, "timeoutMs"), ..usage_budget(reader, &fields) };
    // Both are written by the launcher; the earlier end counts (runner-behaviour 3.4).
    let deadline_at_ms = number(reader, &fields, "deadlineAt").map(|ms| ms.value as i64);
    let fixed = Fixed {
        run_id: run_id.map(|s| s.value).unwrap_or_default(),
        run_dir: run_dir.into(),
        result_path: result_path.into(),
        session_id: word(reader, &fields, "sessionId").map(|s| s.value),
        session_dir: word(reader, &fields, "sessionDir").map(|s| s.value.into()),
        owner_id: word(reader, &fields, "completionOwnerId").map(|s| s.value),
        mode: word(reader, &fields, "resultMode").map(|s| parse_mode(&s.value)),
        deadline_at_ms,
        control: control(reader, &fields),
        extras: foreign_extras::run(reader, &fields),
    };
    let mut draft = DraftPlan {
        cwd: required(reader, &fields, "cwd"),
        tool_timeout: tool_timeout(reader, &fields),
        budget,
        attention: attention(&fields),
        fixed: Some(fixed),
        ..DraftPlan::default()
    };
    if let Some(node) = present(&fields, "share").filter(|node| matches!(node.kind, Kind::Bool(true))) {
        reader.warn(node.span.clone(), &node.path, "`share` is not used by this version: nothing is uploaded");
    }
    let limit = whole(reader, &fields, "globalConcurrencyLimit", 1);
    match fields.get("steps").map(|n| (&n.kind, n)) {
        Some((Kind::Array(nodes), node)) => {
            if nodes.is_empty() {
                reader.error(node.span.clone(), &node.path, "the run has no steps");
            }
            for node in nodes {
                draft.steps.extend(logical(reader, node, limit));
            }
        }
        Some((_, node)) => reader.wrong_type(node, "a list of steps"),
        None => reader.error(root.span.clone(), "steps", "the run has no steps").suggest("add `steps`"),
    }
    let each = Budget { turns: turn_budget(reader, &fields), ..tool_budget(reader, &fields) };
    for step in draft.steps.iter_mut().flat_map(members_mut) {
        grant(&mut step.budget, &each);
    }
    draft
}

/// The steps that a request to append brings (run-directory 3.8), in the same form.
pub(super) fn logical(reader: &mut Reader<'_>, node: &Node, limit: Option<usize>) -> Option<DraftLogical> {
    let fields = reader.open(node, "a step")?;
    let Some(members) = present(&fields, "parallel").filter(|_| present(&fields, "expand").is_none()) else {
        return step(reader, node).map(|s| DraftLogical::Single(Box::new(s)));
    };
    later(reader, &fields, STEP_LATER);
    let Kind::Array(nodes) = &members.kind else {
        reader.wrong_type(members, "a list of steps");
        return None;
    };
    if nodes.is_empty() {
        reader.error(members.span.clone(), &members.path, "the group has no members");
    }
    let own = whole(reader, &fields, "concurrency", 0).unwrap_or(4).max(1);
    Some(DraftLogical::Group {
        steps: nodes.iter().filter_map(|n| step(reader, n)).collect(),
        concurrency: Some(own.min(limit.unwrap_or(20))),
        fail_fast: truth(reader, &fields, "failFast").unwrap_or(false),
        phase: word(reader, &fields, "phase").map(|s| s.value),
    })
}

fn step(reader: &mut Reader<'_>, node: &Node) -> Option<DraftStep> {
    let fields = reader.open(node, "a step")?;
    later(reader, &fields, STEP_LATER);
    if present(&fields, "expand").is_some() {
        return None;
    }
    for key in ["skills", "mcpDirectTools"] {
        if let Some(n @ Node { kind: Kind::Array(list), .. }) = present(&fields, key)
            && !list.is_empty()
        {
            reader.warn(n.span.clone(), &n.path, format!("`{key}` is not used by this version"));
        }
    }
    let mut step = DraftStep {
        span: node.span.clone(),
        path: node.path.clone(),
        id: word(reader, &fields, "outputName"),
        agent: required(reader, &fields, "agent"),
        label: word(reader, &fields, "label").map(|s| s.value),
        phase: word(reader, &fields, "phase").map(|s| s.value),
        runner: present(&fields, "runner").and_then(|n| runner(reader, n)),
        models: list(reader, &fields, "modelCandidates").filter(|m| !m.is_empty()),
        thinking: word(reader, &fields, "thinking").map(|s| s.value),
        tools: list(reader, &fields, "tools"),
        extensions: list(reader, &fields, "extensions"),
        system_prompt: word(reader, &fields, "systemPrompt").map(|s| s.value),
        inherit_project_context: Some(truth(reader, &fields, "inheritProjectContext").unwrap_or(false)),
        inherit_skills: Some(truth(reader, &fields, "inheritSkills").unwrap_or(false)),
        task: present(&fields, "task").and_then(|_| reader.string(&fields, "task")),
        cwd: word(reader, &fields, "cwd"),
        output: word(reader, &fields, "outputPath"),
        session: word(reader, &fields, "sessionFile"),
        tool_timeout: tool_timeout(reader, &fields),
        budget: Budget { time: milliseconds(reader, &fields, "timeoutMs"), ..tool_budget(reader, &fields) },
        acceptance: foreign_extras::acceptance(reader, &fields),
        extras: foreign_extras::step(reader, &fields),
        ..DraftStep::default()
    };
    // On unless it is switched off; with a contract off unless it is switched on (run-directory 4).
    let contract = present(&fields, "agentContract").is_some();
    step.completion_guard = truth(reader, &fields, "completionGuard").unwrap_or(!contract);
    step.models = step.models.or_else(|| word(reader, &fields, "model").map(|s| vec![s.value]));
    step.broken.task = present(&fields, "task").is_some() && step.task.is_none();
    step.broken.runner = present(&fields, "runner").is_some() && step.runner.is_none();
    step.system_prompt_mode = word(reader, &fields, "systemPromptMode").map(|m| match m.value.as_str() {
        "replace" => SystemPromptMode::Replace,
        _ => SystemPromptMode::Append,
    });
    Some(step)
}

fn runner(reader: &mut Reader<'_>, node: &Node) -> Option<Spanned<DraftRunner>> {
    let fields = reader.open(node, "a runner")?;
    let of = word(reader, &fields, "type")?;
    match of.value.as_str() {
        // How pi is spoken to is a word of ours; without it over rpc, so that it can be steered.
        "pi" => {
            let transport = read_runner::transport(reader, &fields);
            Some(Spanned::of(node, DraftRunner::Pi { transport, command: None, args: Vec::new(), env: Vec::new() }))
        }
        "external-cli" => {
            let command = required(reader, &fields, "command")?.value;
            let args = list(reader, &fields, "args").unwrap_or_default();
            Some(Spanned::of(node, DraftRunner::ExternalCli { command, args, env: Vec::new() }))
        }
        "external-job" => {
            reader.error_at(&of, "an external job is not supported yet in this version").suggest("leave the step out");
            None
        }
        other => {
            reader.error_at(&of, format!("there is no runner `{other}`")).suggest("use `pi` or `external-cli`");
            None
        }
    }
}

/// A field that is there and not null.
pub(super) fn present<'n>(fields: &Fields<'n>, key: &str) -> Option<&'n Node> {
    fields.get(key).filter(|n| !matches!(n.kind, Kind::Null))
}

/// A text; empty ones count as absent.
pub(super) fn word(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Spanned<String>> {
    present(fields, key)?;
    reader.string(fields, key).filter(|text| !text.value.trim().is_empty())
}

pub(super) fn required(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Spanned<String>> {
    let found = word(reader, fields, key);
    let wrong_type = present(fields, key).is_some_and(|n| !matches!(n.kind, Kind::String(_)));
    if found.is_none() && !wrong_type {
        let node = fields.node;
        let path = if node.path.is_empty() { key.to_owned() } else { format!("{}.{key}", node.path) };
        let at = node.span.start..node.span.start + 1;
        reader.error(at, &path, format!("the field `{key}` is missing")).suggest("a runner config needs it");
    }
    found
}

pub(super) fn required_path(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> String {
    let Some(path) = required(reader, fields, key) else { return String::new() };
    if !std::path::Path::new(&path.value).is_absolute() {
        reader.error_at(&path, format!("`{key}` is not an absolute path"));
    }
    path.value
}

pub(super) fn list(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Vec<String>> {
    present(fields, key)?;
    reader.strings(fields, key).map(|s| s.value)
}

pub(super) fn truth(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<bool> {
    present(fields, key)?;
    reader.bool(fields, key)
}

/// A finite number that is not negative; times may carry a fraction (run-directory 0).
pub(super) fn number(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Spanned<f64>> {
    let node = present(fields, key)?;
    let number = match node.kind {
        Kind::Int(number) => number as f64,
        Kind::Float(number) => number,
        _ => {
            reader.wrong_type(node, "a number");
            return None;
        }
    };
    if number.is_finite() && number >= 0.0 {
        return Some(Spanned::of(node, number));
    }
    reader.error(node.span.clone(), &node.path, "a number that is not negative is needed here");
    None
}

fn tool_timeout(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Spanned<Duration>> {
    let at = Spanned::of(present(fields, "toolTimeoutMs")?, ());
    milliseconds(reader, fields, "toolTimeoutMs").map(|time| at.map(|()| time))
}

fn members_mut(logical: &mut DraftLogical) -> &mut [DraftStep] {
    match logical {
        DraftLogical::Single(step) => std::slice::from_mut(&mut **step),
        DraftLogical::Group { steps, .. } => steps,
    }
}

fn whole(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str, least: u64) -> Option<usize> {
    number(reader, fields, key).map(|n| (n.value as u64).max(least) as usize)
}

/// Whole milliseconds; 1 to 2147483647 (runner-behaviour 3.6).
fn milliseconds(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Duration> {
    let ms = number(reader, fields, key)?;
    if (1.0..=2_147_483_647.0).contains(&ms.value) {
        return Some(Duration::from_millis(ms.value as u64));
    }
    reader.error_at(&ms, format!("`{key}` must be 1 to 2147483647 milliseconds"));
    None
}

fn later(reader: &mut Reader<'_>, fields: &Fields<'_>, table: &[(&str, &str)]) {
    for (key, what) in table {
        let Some(entry) = fields.entry(key) else { continue };
        if !matches!(entry.node.kind, Kind::Null | Kind::Bool(false)) {
            let message = format!("{what} (`{key}`) is not supported yet in this version");
            reader.error(entry.key_span.clone(), &entry.node.path, message).suggest("run it with its own runner");
        }
    }
}
