//! The normalised event vocabulary of `--output jsonl` and `events --json`, version 1. Its schema is in
//! `assets/schema/events.json`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::inner_runs::inner_runs;
use super::json::without_nulls;
use crate::run::{
    AgentEvent, ControlSource, CostUsd, Event, Level, MessageRole, Question, RunState, StepId, SubAgentDid, Timestamp,
    Unknowns, Usage, What,
};
use crate::rundir::LogLine;
use crate::rundir::records::stream_word;

/// The version that every line carries as `v`.
pub const VERSION: u32 = 1;

/// One line; `None` for events that carry nothing a script could use.
#[must_use]
pub fn event(state: &RunState, event: &Event) -> Option<Value> {
    let (kind, step, fields) = fields(&event.what)?;
    Some(line(state, kind, Some(event.at), step, fields))
}

/// A line that a plain command printed. There may be millions of them, so it is written as it is, with its keys in the
/// order that every other line has.
#[derive(Serialize)]
struct OutputLine<'a> {
    v: u32,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<i64>,
    run: &'a str,
    step: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    attempt: u8,
    stream: &'static str,
    cut: bool,
    text: Cow<'a, str>,
}

/// A line that a plain command printed, or a piece of one; what it says is what `logs --json` says.
#[must_use]
pub fn output<'a>(state: &'a RunState, step: StepId, log: &'a LogLine) -> impl Serialize + use<'a> {
    let found = state.step(step);
    OutputLine {
        v: VERSION,
        r#type: "output",
        ts: log.at.map(Timestamp::millis),
        run: state.id.as_str(),
        step: step.number(),
        id: found.map(|s| s.key.as_str()),
        agent: found.map(|s| s.agent.as_str()),
        attempt: log.attempt,
        stream: stream_word(log.stream),
        cut: log.cut,
        text: String::from_utf8_lossy(&log.bytes),
    }
}

fn line(state: &RunState, kind: &str, at: Option<Timestamp>, step: Option<StepId>, fields: Value) -> Value {
    let mut line = Map::new();
    line.insert("v".into(), json!(VERSION));
    line.insert("type".into(), json!(kind));
    if let Some(at) = at {
        line.insert("ts".into(), json!(at.millis()));
    }
    line.insert("run".into(), json!(state.id.as_str()));
    if let Some(id) = step {
        line.insert("step".into(), json!(id.number()));
        if let Some(found) = state.step(id) {
            line.insert("id".into(), json!(found.key));
            line.insert("agent".into(), json!(found.agent));
        }
    }
    if let Value::Object(fields) = without_nulls(fields) {
        line.extend(fields);
    }
    Value::Object(line)
}

fn fields(what: &What) -> Option<(&'static str, Option<StepId>, Value)> {
    Some(match what {
        What::RunStarted(meta) => (
            "run_started",
            None,
            json!({
                "name": meta.name, "cwd": meta.cwd, "pid": meta.pid, "timeout_ms": meta.timeout_ms,
                "steps": meta.steps.iter().zip(1u32..).map(|(s, n)| json!({
                    "step": n, "id": s.key, "agent": s.agent, "label": s.label,
                })).collect::<Vec<_>>(),
            }),
        ),
        What::StepStarted { step } => ("step_started", Some(*step), json!({})),
        What::AttemptStarted { step, attempt, model, reason } => {
            ("attempt_started", Some(*step), json!({ "attempt": attempt, "model": model, "reason": reason }))
        }
        What::ChildSpawned { step, pid, .. } => ("child_spawned", Some(*step), json!({ "pid": pid })),
        What::ChildExited { step, exit } => {
            ("child_exited", Some(*step), json!({ "exit_code": exit.code, "signal": exit.signal }))
        }
        What::OutputHeld { step, pids } => ("output_held", Some(*step), json!({ "pids": pids })),
        What::OutputTruncated { step, stream, cap } => {
            ("output_truncated", Some(*step), json!({ "stream": stream_word(*stream), "cap_bytes": cap }))
        }
        What::LogFailed { step, error } => ("log_failed", Some(*step), json!({ "error": error })),
        What::ArtifactFailed { step, which, error } => {
            ("artifact_failed", Some(*step), json!({ "artifact": which.as_str(), "error": error }))
        }
        What::StepEnded { step, outcome } => (
            "step_ended",
            Some(*step),
            json!({
                "state": outcome.phase.as_str(), "exit_code": outcome.exit_code, "error": outcome.error,
                "timed_out": outcome.timed_out.then_some(true), "signal": outcome.signal,
                "acceptance": outcome.acceptance.as_ref().map(|ledger| ledger.status.as_str()),
            }),
        ),
        What::GroupStarted { logical } => ("group_started", None, json!({ "group": logical.saturating_add(1) })),
        What::GroupEnded { logical, success } => {
            ("group_ended", None, json!({ "group": logical.saturating_add(1), "success": success }))
        }
        What::RunInterrupted { source } => ("run_interrupted", None, json!({ "source": source_json(source.as_ref()) })),
        What::RunStopped { message, source } => {
            ("run_stopping", None, json!({ "message": message, "source": source_json(source.as_ref()) }))
        }
        What::RunTimedOut { message, source, timeout_ms } => (
            "run_timed_out",
            None,
            json!({ "message": message, "timeout_ms": timeout_ms, "source": source_json(source.as_ref()) }),
        ),
        What::StepEnding { step, cause, message, source } => (
            "step_ending",
            Some(*step),
            json!({ "cause": cause.as_str(), "message": message, "source": source_json(source.as_ref()) }),
        ),
        What::AttemptEnded { step, exit_code, error, next } => (
            "attempt_ended",
            Some(*step),
            json!({ "exit_code": exit_code, "error": error, "next_model": next.model, "reason": next.reason }),
        ),
        What::AttentionRaised { step, notice } => (
            "attention_raised",
            Some(*step),
            json!({
                "attention": notice.id, "reason": notice.condition.reason.as_str(),
                "level": level_word(notice.level()), "since": notice.condition.since.millis(),
                "message": notice.condition.evidence, "times": notice.times,
            }),
        ),
        What::AttentionCleared { step, id } => ("attention_cleared", Some(*step), json!({ "attention": id })),
        What::AttentionAcknowledged { step, id, source } => {
            ("attention_acknowledged", Some(*step), json!({ "attention": id, "source": source_json(source.as_ref()) }))
        }
        What::AttentionNoted { step, reason, message } => {
            ("attention_noted", Some(*step), json!({ "reason": reason.as_str(), "message": message }))
        }
        What::QuestionAsked { step, question } => ("question_asked", Some(*step), question_json(question)),
        What::QuestionAnswered { step, id, text, answer, by, source } => (
            "question_answered",
            Some(*step),
            json!({
                "question": id, "text": text, "choice": answer.choice(),
                "choices": Some(answer.choices()).filter(|ids| !ids.is_empty()), "answer": answer.text(), "by": by.word(),
                "source": source_json(source.as_ref()),
            }),
        ),
        What::BudgetReached { step, metric, stage, used, message } => (
            "budget_reached",
            *step,
            json!({
                "metric": metric.key(), "stage": stage.as_str(), "used": CostUsd(used.amount).told(),
                "used_at_least": used.partial.then_some(true), "message": message,
            }),
        ),
        What::BudgetRaised { step, raise, source } => (
            "budget_raised",
            *step,
            json!({
                "key": raise.key(), "value": raise.value(),
                "source": source_json(source.as_ref()),
            }),
        ),
        What::DiskSpace { free, low } => ("disk_space", None, json!({ "free_bytes": free, "low": low })),
        What::InnerRuns { step, runs } => ("inner_runs", Some(*step), json!({ "runs": inner_runs(runs) })),
        What::Slept { ms } => ("slept", None, json!({ "ms": ms })),
        What::SteerRequested(request) => (
            "steer_requested",
            None,
            json!({
                "request": request.id, "mode": request.mode.as_str(), "preview": request.preview,
                "source": request.source,
                "targets": request.targets.iter().map(|t| t.step.number()).collect::<Vec<_>>(),
            }),
        ),
        What::SteerMoved { id, step, to, detail } => {
            ("steer_moved", Some(*step), json!({ "request": id, "state": to.as_str(), "detail": detail }))
        }
        What::ControlRejected { file, reason, set_aside } => {
            let set_aside = set_aside.then_some(true);
            ("control_rejected", None, json!({ "file": file, "reason": reason, "set_aside": set_aside }))
        }
        What::ControlUnannounced { step, what, source } => {
            ("control_unannounced", *step, json!({ "what": what, "source": source_json(Some(source)) }))
        }
        What::SignalSent { step, signal, pid, group, .. } => {
            ("signal_sent", Some(*step), json!({ "signal": signal, "pid": pid, "group": group }))
        }
        What::AbortSent { step } => ("abort_sent", Some(*step), json!({})),
        What::TreeSwept { step, ended, survivors } => {
            ("tree_swept", Some(*step), json!({ "ended": ended, "survivors": survivors }))
        }
        What::RunEnded { state, error } => ("run_ended", None, json!({ "state": state.as_str(), "error": error })),
        What::RunLost { message } => ("run_lost", None, json!({ "message": message })),
        What::Agent { step, event } => {
            let (kind, fields) = agent(event)?;
            (kind, Some(*step), fields)
        }
        What::OutputLines { .. } | What::OutputSeen { .. } | What::Capability { .. } => return None,
        What::Unknown { kind } => ("unknown", None, json!({ "kind": kind })),
    })
}

fn agent(event: &AgentEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        AgentEvent::SessionStarted { session_id, model } => {
            ("session_started", json!({ "session": session_id, "model": model }))
        }
        AgentEvent::TurnStarted => ("turn_started", json!({})),
        AgentEvent::TurnEnded => ("turn_ended", json!({})),
        AgentEvent::Message { role: MessageRole::Assistant, preview, model, usage, error, calls_tools, .. } => (
            "message",
            json!({
                "text": preview, "model": model, "error": error, "calls_tools": calls_tools,
                "usage": usage.as_ref().map(usage_json),
            }),
        ),
        AgentEvent::Used(usage) => ("used", json!({ "usage": usage_json(usage) })),
        AgentEvent::ToolStarted { call, tool, args, path, .. } => {
            ("tool_started", json!({ "call": call, "tool": tool, "args": args, "path": path }))
        }
        AgentEvent::ToolEnded { call, tool, outcome, preview } => {
            ("tool_ended", json!({ "call": call, "tool": tool, "outcome": outcome.as_str(), "preview": preview }))
        }
        AgentEvent::SubAgent { id, did: SubAgentDid::Started { name, about, model } } => {
            ("sub_agent_started", json!({ "sub_agent": id, "name": name, "about": about, "model": model }))
        }
        AgentEvent::SubAgent { id, did: SubAgentDid::Ended(outcome) } => {
            ("sub_agent_ended", json!({ "sub_agent": id, "outcome": outcome.as_str() }))
        }
        AgentEvent::Retry { attempt, max, delay_ms, reason } => {
            ("retrying", json!({ "attempt": attempt, "max": max, "delay_ms": delay_ms, "reason": reason }))
        }
        AgentEvent::RetryEnded { success } => ("retry_ended", json!({ "success": success })),
        AgentEvent::Unknown { kind } => ("unknown", json!({ "kind": Unknowns::name(kind) })),
        AgentEvent::ProtocolFailure { message } => ("protocol_failure", json!({ "message": message })),
        _ => return None,
    })
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input": usage.tokens.input, "output": usage.tokens.output, "cache_read": usage.tokens.cache_read,
        "cache_write": usage.tokens.cache_write, "cost_usd": usage.cost.map(CostUsd::told),
    })
}

/// A question and what can be answered to it.
#[must_use]
pub fn question_json(question: &Question) -> Value {
    let asking = &question.asking;
    let choices = asking.choices.iter().map(|choice| json!({ "id": choice.id, "label": choice.shown() }));
    without_nulls(json!({
        "question": question.id, "kind": asking.kind.word(), "text": asking.text, "tool": asking.tool,
        "args": Some(&asking.args).filter(|args| !args.is_empty()), "call": asking.call,
        "detail": Some(&asking.detail).filter(|detail| !detail.is_empty()),
        "choices": choices.collect::<Vec<_>>(), "several": asking.many.then_some(true), "takes_text": asking.takes_text(),
        "asked_at": question.asked_at.millis(), "until": question.until.map(Timestamp::millis),
    }))
}

/// The word for how loud a notice is.
#[must_use]
pub const fn level_word(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Busy => "busy",
        Level::Needs => "needs",
    }
}

/// Who asked, with what is known of it.
#[must_use]
pub fn source_json(source: Option<&ControlSource>) -> Value {
    let Some(source) = source else { return Value::Null };
    let mut fields = Map::new();
    fields.insert("via".into(), json!(source.via));
    let optional = [
        ("user", source.user.as_ref().map(|v| json!(v))),
        ("pid", source.pid.map(|v| json!(v))),
        ("tty", source.tty.as_ref().map(|v| json!(v))),
        ("key", source.key.as_ref().map(|v| json!(v))),
        ("reason", source.reason.as_ref().map(|v| json!(v))),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Value::Object(fields)
}
