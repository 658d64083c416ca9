//! The part of the normalised status that tells what the runner watches over: limits, attention, attempts.

use serde_json::{Value, json};

use super::jsonl::{level_word, question_json};
use super::limits::{Gauge, counted};
use crate::run::{Attempt, Metric, Need, Notice, RunState, StepState, Timestamp};

/// The fields of a step.
pub(super) fn step(state: &RunState, step: &StepState) -> Value {
    json!({
        "limits": limits(state, Some(step)),
        "over_budget": step.budget.exceeded.map(Metric::key),
        "notices": step.attention.iter().map(notice).collect::<Vec<_>>(),
        "questions": step.questions.iter().map(question_json).collect::<Vec<_>>(),
        "unanswered": step.unanswered,
        "attempts": step.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "next_attempt": step.next_attempt.as_ref().map(|next| json!({
            "at": next.at.millis(), "model": next.model, "reason": next.reason,
        })),
    })
}

/// The limits that are set; absent where there are none.
pub(super) fn limits(state: &RunState, step: Option<&StepState>) -> Value {
    let set = counted(state, step);
    if set.is_empty() { Value::Null } else { set.iter().map(Gauge::json).collect() }
}

/// What needs a person.
pub(super) fn needs(state: &RunState) -> Vec<Value> {
    crate::run::needs(state).iter().map(need).collect()
}

fn need(need: &Need<'_>) -> Value {
    json!({
        "step": need.step.id.number(),
        "id": need.step.key,
        "attention": need.id,
        "reason": need.reason.as_str(),
        "since": ms(need.since),
        "message": need.evidence,
    })
}

fn notice(notice: &Notice) -> Value {
    json!({
        "attention": notice.id,
        "reason": notice.condition.reason.as_str(),
        "level": level_word(notice.level()),
        "since": notice.condition.since.millis(),
        "raised_at": notice.raised_at.millis(),
        "times": notice.times,
        "acknowledged_at": ms(notice.acknowledged),
        "message": notice.condition.evidence,
    })
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "model": attempt.model,
        "reason": attempt.reason,
        "started_at": ms(attempt.started_at),
        "ended_at": ms(attempt.ended_at),
        "success": attempt.success,
        "exit_code": attempt.exit_code,
        "error": attempt.error,
    })
}

fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::millis)
}
