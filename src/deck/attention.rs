//! What needs a person: which step, why, by which rule, and the evidence.

use super::model::UiState;
use crate::run::{RunState, StepId, StepPhase, StepState, Timestamp};
use crate::text::span;

/// Why a step needs a person, if it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Which step.
    pub step: StepId,
    /// What is wrong, in a few words.
    pub reason: String,
    /// The rule that says so.
    pub rule: &'static str,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
}

/// The steps that need a person and were not acknowledged, in the order of steps.
#[must_use]
pub fn attention(state: &RunState, ui: &UiState) -> Vec<Attention> {
    state
        .steps
        .iter()
        .filter_map(needs_person)
        .filter(|a| ui.acknowledged.get(&a.step).is_none_or(|reason| *reason != a.reason))
        .collect()
}

/// Why this step needs a person.
#[must_use]
pub fn needs_person(step: &StepState) -> Option<Attention> {
    let attention = |rule, reason: String, since| Some(Attention { step: step.id, reason, rule, since });
    if !step.survivors.is_empty() {
        let pids: Vec<String> = step.survivors.iter().map(u32::to_string).collect();
        return attention("survivors", format!("processes would not die: {}", pids.join(" ")), step.ended_at);
    }
    if step.phase != StepPhase::Running {
        return None;
    }
    if !step.held_by.is_empty() {
        let pids: Vec<String> = step.held_by.iter().map(u32::to_string).collect();
        return attention("output_held", format!("output held open by pid {}", pids.join(" ")), step.last_activity);
    }
    match step.activity.as_deref() {
        Some("needs_attention") => {
            let (reason, since) = match step.current_call() {
                Some(call) => (format!("{} {} open", call.tool, call.args), Some(call.started_at)),
                None => ("no activity".to_owned(), step.last_activity),
            };
            attention("needs_attention", reason, since)
        }
        Some("active_long_running") => attention("active_long_running", "long running".to_owned(), step.started_at),
        _ => None,
    }
}

/// The evidence for a step's attention, line by line.
#[must_use]
pub fn evidence(state: &RunState, step: StepId, now: Timestamp) -> Vec<(String, String)> {
    let Some(step) = state.step(step) else { return Vec::new() };
    let Some(attention) = needs_person(step) else { return Vec::new() };
    let mut lines = vec![("rule".to_owned(), attention.rule.to_owned()), ("reason".to_owned(), attention.reason)];
    if let Some(since) = attention.since {
        lines.push(("since".to_owned(), format!("{} ago", span(now.since(since)))));
    }
    if let Some(at) = step.last_activity {
        lines.push(("last activity".to_owned(), format!("{} ago", span(now.since(at)))));
    }
    lines.extend(step.open.iter().map(|call| {
        let open = span(now.since(call.started_at));
        ("open tool".to_owned(), format!("{} {}, {open}", call.tool, call.args))
    }));
    lines
}
