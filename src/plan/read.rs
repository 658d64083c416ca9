//! A plan file as a tree becomes a draft.

use super::draft::{DraftLogical, DraftPlan, DraftStep};
use super::nearest::nearest;
use super::read_attention::{attention, tool_names};
use super::read_budget::budget;
use super::read_runner::runner;
use super::reader::{Fields, Reader};
use super::template::is_id;
use super::tree::{Kind, Node};
use super::{SystemPromptMode, keys};

/// Reads the whole plan; what is wrong is noted in `reader`.
pub(super) fn plan(reader: &mut Reader<'_>, root: &Node) -> DraftPlan {
    let Some(fields) = reader.table(root, "a table of plan keys", keys::PLAN) else { return DraftPlan::default() };
    let mut draft = DraftPlan {
        name: reader.word(&fields, "name").map(|s| s.value),
        task: reader.word(&fields, "task"),
        cwd: reader.word(&fields, "cwd"),
        env: fields.get("env").map(|n| env(reader, n)).unwrap_or_default(),
        concurrency: concurrency(reader, &fields),
        tool_timeout: fields.get("tool_timeout").and_then(|n| reader.tool_time(n)),
        tool_exempt: tool_names(reader, &fields, "tool_timeout_exempt"),
        question_timeout: fields.get("question_timeout").and_then(|n| reader.duration(n)).map(|t| t.value),
        budget: fields.get("budget").map(|n| budget(reader, n)).unwrap_or_default(),
        attention: fields.get("attention").map(|n| attention(reader, n)).unwrap_or_default(),
        steps: Vec::new(),
        fixed: None,
    };
    match fields.get("step") {
        None => {
            reader.error(0..0, "step", "the plan has no steps").suggest("add a [[step]] table with `agent` and `task`")
        }
        Some(Node { kind: Kind::Array(nodes), span, path }) => {
            if nodes.is_empty() {
                reader
                    .error(span.clone(), path, "the plan has no steps")
                    .suggest("add a [[step]] table with `agent` and `task`");
            }
            for node in nodes {
                draft.steps.extend(logical(reader, node));
            }
        }
        Some(node) => reader
            .error(node.span.clone(), &node.path, format!("a list of steps is needed here, not {}", node.kind.name()))
            .suggest("write [[step]] with two brackets"),
    }
    draft
}

fn logical(reader: &mut Reader<'_>, node: &Node) -> Option<DraftLogical> {
    let open = reader.open(node, "a table of step keys")?;
    let Some(members) = open.entry("parallel") else {
        return step(reader, node).map(|s| DraftLogical::Single(Box::new(s)));
    };
    for entry in open.entries().iter().filter(|e| keys::STEP.contains(&e.key.as_str()) && e.key != "phase") {
        let message = format!("a group with `parallel` cannot have `{}`", entry.key);
        reader.error(entry.key_span.clone(), &entry.node.path, message).suggest("put it into the members");
    }
    let known: Vec<&str> = [keys::GROUP, keys::STEP].concat();
    let fields = with_later(reader, node, "a table of group keys", &known)?;
    let concurrency = concurrency(reader, &fields);
    let fail_fast = reader.bool(&fields, "fail_fast").unwrap_or(false);
    let phase = reader.word(&fields, "phase").map(|s| s.value);
    let mut steps = Vec::new();
    match &members.node.kind {
        Kind::Array(nodes) if nodes.is_empty() => reader
            .error(members.node.span.clone(), &members.node.path, "the group has no members")
            .suggest("list its steps: parallel = [ { agent = \"...\", task = \"...\" } ]"),
        Kind::Array(nodes) => {
            for member in nodes {
                if let Some(nested) = member.get("parallel") {
                    reader
                        .error(nested.span.clone(), &nested.path, "a group cannot stand in a group")
                        .suggest("put its members beside the others");
                    continue;
                }
                steps.extend(step(reader, member));
            }
        }
        _ => reader.wrong_type(&members.node, "a list of steps"),
    }
    Some(DraftLogical::Group { steps, concurrency, fail_fast, phase })
}

/// A table whose unknown keys are errors, and whose keys of a later version are errors that say so.
fn with_later<'n>(reader: &mut Reader<'_>, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
    let later: Vec<&str> = keys::LATER.iter().map(|(key, _)| *key).collect();
    let fields = reader.table(node, what, &[known, &later].concat())?;
    for (key, what) in keys::LATER {
        if let Some(entry) = fields.entry(key)
            && !matches!(entry.node.kind, Kind::Bool(false))
        {
            let message = format!("{what} (`{key}`) is not supported yet in this version");
            reader.error(entry.key_span.clone(), &entry.node.path, message).suggest("leave it out");
        }
    }
    Some(fields)
}

fn step(reader: &mut Reader<'_>, node: &Node) -> Option<DraftStep> {
    for entry in reader.open(node, "a table of step keys")?.entries() {
        if matches!(entry.key.as_str(), "concurrency" | "fail_fast") {
            reader
                .error(entry.key_span.clone(), &entry.node.path, format!("`{}` belongs to a group", entry.key))
                .suggest("put it beside `parallel`");
        }
    }
    let fields =
        with_later(reader, node, "a table of step keys", &[keys::STEP, &["concurrency", "fail_fast"]].concat())?;
    let mut step = DraftStep {
        span: node.span.clone(),
        path: node.path.clone(),
        id: reader.word(&fields, "id"),
        agent: reader.word(&fields, "agent"),
        label: reader.word(&fields, "label").map(|s| s.value),
        phase: reader.word(&fields, "phase").map(|s| s.value),
        runner: fields.get("runner").and_then(|n| runner(reader, n)),
        models: models(reader, &fields),
        thinking: thinking(reader, &fields),
        tools: reader.strings(&fields, "tools").map(|s| s.value),
        extensions: reader.strings(&fields, "extensions").map(|s| s.value),
        system_prompt: reader.string(&fields, "system_prompt").map(|s| s.value),
        system_prompt_mode: None,
        inherit_project_context: reader.bool(&fields, "inherit_project_context"),
        inherit_skills: reader.bool(&fields, "inherit_skills"),
        task: reader.word(&fields, "task"),
        cwd: reader.word(&fields, "cwd"),
        env: fields.get("env").map(|n| env(reader, n)).unwrap_or_default(),
        output: reader.word(&fields, "output"),
        session: reader.word(&fields, "session"),
        tool_timeout: fields.get("tool_timeout").and_then(|n| reader.tool_time(n)),
        tool_exempt: tool_names(reader, &fields, "tool_timeout_exempt"),
        question_timeout: fields.get("question_timeout").and_then(|n| reader.duration(n)).map(|t| t.value),
        budget: fields.get("budget").map(|n| budget(reader, n)).unwrap_or_default(),
        attention: fields.get("attention").map(|n| attention(reader, n)).unwrap_or_default(),
        completion_guard: reader.bool(&fields, "completion_guard").unwrap_or(false),
        ..DraftStep::default()
    };
    step.broken.agent = fields.has("agent") && step.agent.is_none();
    step.broken.task = fields.has("task") && step.task.is_none();
    step.broken.runner = fields.has("runner") && step.runner.is_none();
    step.system_prompt_mode = prompt_mode(reader, &fields);
    if let Some(id) = &step.id {
        if !is_id(&id.value) {
            reader
                .error_at(id, format!("`{}` cannot be an id", id.value))
                .suggest("use letters, digits, `_`, `-` and `.`, beginning with a letter, a digit or `_`");
        } else if id.value.bytes().all(|b| b.is_ascii_digit()) {
            reader
                .error_at(id, "an id that is a number would be taken for the step's number")
                .suggest(format!("write \"s{}\"", id.value));
        }
    }
    Some(step)
}

fn concurrency(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<usize> {
    let count = reader.count(fields.get("concurrency")?, 1)?;
    Some(usize::try_from(count.value).unwrap_or(usize::MAX))
}

fn models(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<String>> {
    let one = reader.word(fields, "model").map(|s| vec![s.value]);
    let several = reader.strings(fields, "models");
    if fields.has("model")
        && let Some(models) = fields.entry("models")
    {
        reader
            .error(models.key_span.clone(), &models.node.path, "`model` and `models` stand beside each other")
            .suggest("keep `models`, the first choice first");
    }
    if let Some(models) = &several
        && (models.value.is_empty() || models.value.iter().any(|m| m.trim().is_empty()))
    {
        reader.error_at(models, "a list of models needs names").suggest("leave the key out for the agent's own model");
    }
    one.or_else(|| several.map(|s| s.value))
}

/// The levels that pi knows.
const THINKING: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

fn thinking(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let level = reader.word(fields, "thinking")?;
    if !THINKING.contains(&level.value.as_str()) {
        let near = nearest(&level.value, THINKING);
        let suggestion = near
            .map_or_else(|| format!("use {}", super::nearest::one_of(THINKING)), |n| format!("did you mean `{n}`?"));
        reader.error_at(&level, format!("there is no thinking level `{}`", level.value)).suggest(suggestion);
    }
    Some(level.value)
}

fn prompt_mode(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<SystemPromptMode> {
    let mode = reader.word(fields, "system_prompt_mode")?;
    match mode.value.as_str() {
        "append" => Some(SystemPromptMode::Append),
        "replace" => Some(SystemPromptMode::Replace),
        other => {
            reader
                .error_at(&mode, format!("`{other}` is no way to use a system prompt"))
                .suggest("use `append` or `replace`");
            None
        }
    }
}

/// Variables: names that can be names, and values that are texts.
pub(crate) fn env(reader: &mut Reader<'_>, node: &Node) -> Vec<(String, String)> {
    let Some(fields) = reader.open(node, "a table of variables like { NAME = \"value\" }") else { return Vec::new() };
    let mut variables = Vec::new();
    for entry in fields.entries() {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            let message = format!("`{}` cannot be the name of a variable", entry.key);
            reader.error(entry.key_span.clone(), &entry.node.path, message).suggest("use letters, digits and `_`");
            continue;
        }
        if let Some(value) = reader.string(&fields, &entry.key) {
            if value.value.contains('\0') {
                reader.error_at(&value, "the value holds a NUL character");
            } else {
                variables.push((entry.key.clone(), value.value));
            }
        }
    }
    variables
}
