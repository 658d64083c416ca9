//! The normalised status of `status --json`, `ls --json` and `--output json`, version 1. Its schema is in
//! `assets/schema/status.json`.

use serde_json::{Value, json};

use super::inner_runs::inner_runs;
use super::json::without_nulls;
use super::jsonl::{VERSION, source_json};
use super::status_watch;
use crate::run::{
    CostUsd, Metric, RunMode, RunState, RunnerKind, Steerable, Steering, StepFace, StepId, StepState, SubAgent,
    Timestamp, Tokens, ToolOutcome, Unknowns, exit_code, resume_command,
};
use crate::rundir::RunDir;

/// A run with its steps.
#[must_use]
pub fn run(state: &RunState) -> Value {
    let mode = match &state.mode {
        RunMode::Single => "single",
        RunMode::Parallel => "parallel",
        RunMode::Chain => "chain",
        RunMode::Workflow => "workflow",
        RunMode::Unknown(word) => word,
    };
    without_nulls(json!({
        "v": VERSION,
        "run": state.id.as_str(),
        "name": state.name,
        "mode": mode,
        "state": if state.lost.is_some() { StepFace::Lost.word() } else { state.phase.as_str() },
        "ending": state.is_ending().then_some(true),
        "lost": state.lost,
        "exit_code": state.is_over().then(|| exit_code(state).code()),
        "error": state.error,
        "timed_out": state.timed_out.then_some(true),
        "stopped": state.stopped.then_some(true),
        "ended_by": source_json(state.ended_by.as_ref()),
        "cwd": state.cwd,
        "pid": state.pid,
        "started_at": ms(state.started_at),
        "ended_at": ms(state.ended_at),
        "last_update": ms(state.last_update),
        "last_activity": ms(state.last_activity),
        "timeout_ms": state.timeout_ms,
        "deadline_at": ms(state.deadline_at),
        "resumed_from": state.resumed_from.as_ref().map(|r| r.as_str()),
        "started_in": state.started_in.as_ref().map(|place| {
            without_nulls(json!({ "run": place.run.as_str(), "step": place.step.map(StepId::number) }))
        }),
        "tokens": tokens(state.tokens()),
        "tokens_at_least": state.are_tokens_partial().then_some(true),
        "cost_usd": state.cost().map(CostUsd::told),
        "cost_at_least": state.is_cost_partial().then_some(true),
        "limits": status_watch::limits(state, None),
        "over_budget": state.budget.exceeded.map(Metric::key),
        "needs": status_watch::needs(state),
        "steering": steering(&state.steering),
        "rejected_requests": state.rejected.iter().map(|(file, reason)| json!({ "file": file, "reason": reason }))
            .collect::<Vec<_>>(),
        "steps": state.steps.iter().map(|s| step(state, s)).collect::<Vec<_>>(),
    }))
}

/// A run in its directory, as `status --json` prints it and `ls --json` lists it. `lost` is the evidence of a reader
/// that found the run without its runner.
#[must_use]
pub fn document(state: &RunState, dir: &RunDir, lost: Option<&str>) -> Value {
    placed(run(state), dir, lost)
}

/// A run whose status cannot be read, for the same list.
#[must_use]
pub fn unreadable(dir: &RunDir, error: &str, lost: Option<&str>) -> Value {
    placed(json!({ "v": VERSION, "run": dir.id_str(), "unreadable": error }), dir, lost)
}

fn placed(mut value: Value, dir: &RunDir, lost: Option<&str>) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.insert("directory".into(), dir.path().display().to_string().into());
        if let Some(evidence) = lost {
            fields.insert("state".into(), StepFace::Lost.word().into());
            fields.insert("lost".into(), evidence.into());
        }
    }
    value
}

/// The word for how a step stands: that of the files, but what never ran is told as one thing, whatever it was that
/// kept it from running.
fn word<'a>(state: &RunState, step: &'a StepState) -> &'a str {
    match state.face(step) {
        face @ (StepFace::Lost | StepFace::Skipped) => face.word(),
        _ => step.phase.as_str(),
    }
}

fn step(state: &RunState, step: &StepState) -> Value {
    let skipped = state.face(step) == StepFace::Skipped;
    let (runner, command) = match &step.runner {
        RunnerKind::Pi => ("pi", None),
        RunnerKind::PiJson => ("pi-json", None),
        RunnerKind::Demo => ("demo", None),
        RunnerKind::Agent(agent) => (agent.family.word(), None),
        RunnerKind::ExternalCli { command, .. } => ("external-cli", Some(command.as_str())),
        RunnerKind::ExternalJob { provider } => ("external-job", Some(provider.as_str())),
        RunnerKind::Other(word) => (word.as_str(), None),
    };
    let current = step.current_call();
    let mut value = json!({
        "step": step.id.number(),
        "id": step.key,
        "agent": step.agent,
        "label": step.label,
        "phase": step.phase_title,
        "runner": runner,
        "command": command,
        "state": word(state, step),
        "ending": step.ending.is_some().then_some(true),
        "exit_code": step.exit_code.filter(|_| !skipped),
        "error": step.error,
        "timed_out": step.timed_out.then_some(true),
        "stopped": step.stopped.then_some(true),
        "carried_over": step.carried_over.then_some(true),
        "model": step.model,
        "thinking": step.thinking,
        "attempt": step.attempt(),
        "pid": step.pid,
        "session": step.session_id,
        "session_file": step.session_file,
        "started_at": ms(step.started_at.filter(|_| !skipped)),
        "ended_at": ms(step.ended_at.filter(|_| !skipped)),
        "last_activity": ms(step.last_activity),
        "turns": step.turn_count,
        "tool_calls": step.tool_count,
        "tokens": tokens(step.tokens),
        "cost_usd": step.cost.map(CostUsd::told),
        "current_tool": current.map(|c| json!({
            "tool": c.tool, "args": c.args, "path": c.path, "started_at": ms(Some(c.started_at)),
        })),
        "open_tools": step.open.iter().map(|c| json!({
            "call": c.call, "tool": c.tool, "args": c.args, "path": c.path, "started_at": ms(Some(c.started_at)),
        })).collect::<Vec<_>>(),
        "recent_tools": step.recent_tools.iter().map(|c| json!({
            "tool": c.tool, "args": c.args, "path": c.path, "started_at": ms(c.started_at),
            "ended_at": ms(Some(c.ended_at)), "outcome": c.outcome.map(ToolOutcome::as_str),
        })).collect::<Vec<_>>(),
        "sub_agents": if step.sub_agents.is_empty() { Value::Null } else {
            step.sub_agents.iter().map(sub_agent).collect()
        },
        "last_message": step.last_message,
        "recent_output": step.recent_output,
        "retrying": step.retrying.as_ref().map(|r| json!({
            "attempt": r.attempt, "max": r.max, "until": ms(r.until), "reason": r.reason,
        })),
        "steerable": match &step.steerable {
            Steerable::Unknown => Value::Null,
            Steerable::Yes => json!(true),
            Steerable::No(_) => json!(false),
        },
        "not_steerable_because": match &step.steerable {
            Steerable::No(reason) => json!(reason),
            _ => Value::Null,
        },
        "steering": steering(&step.steering),
        "output_held_by": if step.held_by.is_empty() { Value::Null } else { json!(step.held_by) },
        "survivors": if step.survivors.is_empty() { Value::Null } else { json!(step.survivors) },
        "output_truncated_at": step.truncated_at,
        "attention": step.activity.as_ref().filter(|_| !step.is_excused()),
    });
    if let Some(fields) = value.as_object_mut().filter(|_| !step.inner.is_empty()) {
        fields.insert("inner_runs".into(), inner_runs(&step.inner));
    }
    if let (RunnerKind::Agent(agent), Some(fields)) = (&step.runner, value.as_object_mut()) {
        fields.insert("transport".into(), agent.transport.word().into());
        fields.insert("permission".into(), agent.permission.word().into());
    }
    if let Some(fields) = value.as_object_mut() {
        let exit = step.exit.map(|exit| json!({ "code": exit.code, "signal": exit.signal }));
        fields.insert("child_exit".into(), json!(exit));
        let acceptance = step.contract.acceptance.as_ref().map(|ledger| ledger.status.as_str());
        fields.insert("transcript".into(), json!(step.contract.artifacts.transcript));
        fields.insert("acceptance".into(), json!(acceptance));
        fields.insert("unknown_events".into(), unknown(&step.unknown));
        fields.insert("log_error".into(), json!(step.log_error));
        fields.insert("output_error".into(), json!(step.contract.file_error));
        fields.insert("resume_command".into(), json!(resume_command(step)));
    }
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), status_watch::step(state, step)) {
        fields.extend(more);
    }
    value
}

fn unknown(unknown: &Unknowns) -> Value {
    if unknown.total == 0 {
        return Value::Null;
    }
    let kinds = unknown.kinds.iter().map(|kind| json!({ "kind": kind.name, "count": kind.count }));
    json!({ "total": unknown.total, "kinds": kinds.collect::<Vec<_>>() })
}

fn sub_agent(agent: &SubAgent) -> Value {
    json!({
        "sub_agent": agent.id,
        "name": agent.name,
        "about": (!agent.about.is_empty()).then_some(&agent.about),
        "model": agent.model,
        "started_at": ms(Some(agent.started_at)),
        "ended_at": ms(agent.ended_at),
        "outcome": agent.outcome.map(ToolOutcome::as_str),
        "current_tool": agent.tool.as_ref().map(|call| json!({ "tool": call.tool, "args": call.args })),
        "tool_calls": agent.tool_count,
        "tokens": agent.tokens,
        "last_message": agent.last_message,
    })
}

fn steering(steering: &Steering) -> Value {
    json!(
        steering
            .recent
            .iter()
            .map(|request| json!({
                "request": request.id,
                "requested_at": request.requested_at.millis(),
                "source": request.source,
                "mode": request.mode.as_str(),
                "preview": request.preview,
                "targets": request.targets.iter().map(|t| json!({
                    "step": t.step.number(), "state": t.state.as_str(), "reason": t.reason,
                    "delivered_at": ms(t.delivered_at),
                })).collect::<Vec<_>>(),
            }))
            .collect::<Vec<_>>()
    )
}

fn tokens(tokens: Tokens) -> Value {
    if tokens.is_zero() {
        return Value::Null;
    }
    json!({
        "input": tokens.input, "output": tokens.output, "cache_read": tokens.cache_read,
        "cache_write": tokens.cache_write,
    })
}

fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::millis)
}
