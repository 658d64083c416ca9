//! Limits: of time, of single tools, of turns, calls, tokens and money (runner-behaviour 3).

use std::time::Duration;

use super::{Decision, Effect};
use crate::run::{EndingCause, Metric, RunState, Stage, StepPhase, StepState, Timestamp, budget};

/// The limits of the whole run.
pub(super) fn run(decision: &mut Decision, state: &RunState) {
    // A limit that is reached with the very last word keeps nothing from happening.
    let more = state.steps.iter().any(|s| match s.phase {
        StepPhase::Pending => true,
        StepPhase::Running => !s.last_word && s.settled_at.is_none(),
        _ => false,
    });
    if state.is_ending() || !more {
        return;
    }
    for metric in Metric::ALL {
        let limit = budget::limit(&state.limits, metric);
        let used = budget::used_by_run(state, metric);
        // What spares the children is looked at when the next one is to start, by the schedule.
        let hard = limit.hard.filter(|_| !state.limits.usage_spares_children);
        for (stage, at) in [(Stage::Soft, limit.soft), (Stage::Hard, hard)] {
            if at.is_some_and(|at| used >= at) && state.budget.at(metric, stage).is_none() {
                let message = budget::run_sentence(metric, used, &state.limits);
                decision.due.push(Effect::Reach { step: None, metric, stage, used, message });
            }
        }
    }
}

/// The limits of a running step.
pub(super) fn step(decision: &mut Decision, state: &RunState, step: &StepState, now: Timestamp) {
    let ends = time(decision, state, step, now);
    if step.pid.is_some() {
        idle(decision, state, step, now);
        tools(decision, state, step, ends, now);
        counts(decision, step);
    }
}

/// The step's own time; returns when it is over.
fn time(decision: &mut Decision, state: &RunState, step: &StepState, now: Timestamp) -> Option<Timestamp> {
    let (ms, started) = (step.timeout_ms?, step.started_at?);
    let due = state.gaps.due(started, Duration::from_millis(ms));
    let message = format!("Subagent timed out after {ms}ms.");
    decision.at(now, due, Effect::End { step: step.id, cause: EndingCause::StepTimeout, message });
    Some(due)
}

/// No sign of life. An open tool is one, and so is an agent that waits for its provider or for a person.
fn idle(decision: &mut Decision, state: &RunState, step: &StepState, now: Timestamp) {
    let Some(ms) = step.limits.idle_ms.or(state.limits.idle_ms) else { return };
    if !step.open.is_empty() || step.retrying.is_some() || !step.questions.is_empty() {
        return;
    }
    let started = step.attempts.last().and_then(|a| a.started_at).or(step.started_at);
    let Some(since) = step.last_activity.max(started) else { return };
    let due = state.gaps.due(since, Duration::from_millis(ms));
    let message = format!("Subagent timed out: no sign of life for {ms}ms.");
    decision.at(now, due, Effect::End { step: step.id, cause: EndingCause::StepTimeout, message });
}

/// Single tools: the first whose time is over ends the step. A limit that lies beyond the step's own end is left to
/// that end (runner-behaviour 3.6).
fn tools(decision: &mut Decision, state: &RunState, step: &StepState, ends: Option<Timestamp>, now: Timestamp) {
    let limited = step.open.iter().filter_map(|call| {
        let ms = step.limits.tool_limit(&call.tool)?;
        Some((state.gaps.due(call.started_at, Duration::from_millis(ms)), call.seq, &call.tool, ms))
    });
    let Some((due, _, tool, ms)) = limited.min() else { return };
    if ends.is_some_and(|ends| due >= ends) {
        return;
    }
    let message = format!("Tool '{tool}' timed out after {ms}ms.");
    decision.at(now, due, Effect::End { step: step.id, cause: EndingCause::ToolTimeout, message });
}

/// What is counted.
fn counts(decision: &mut Decision, step: &StepState) {
    for metric in Metric::ALL {
        let limit = budget::limit(&step.limits, metric);
        let used = budget::used(step, metric);
        let mut reach = |stage| {
            if step.budget.at(metric, stage).is_none() {
                let message = match stage {
                    Stage::Hard => budget::sentence(metric, used, &step.limits),
                    Stage::Soft | Stage::Deferred => format!("{} used.", metric.words(used)),
                };
                decision.due.push(Effect::Reach { step: Some(step.id), metric, stage, used, message });
            }
        };
        if limit.soft.is_some_and(|soft| used >= soft) {
            reach(Stage::Soft);
        }
        let Some(hard) = limit.hard else { continue };
        match metric {
            // The last answer may end the step anyway; one that uses a tool has to wait for it
            // (runner-behaviour 3.1).
            Metric::Turns if used >= hard && step.settled_at.is_none() && !step.last_word => {
                if step.open.is_empty() && !step.calls_pending {
                    reach(Stage::Hard);
                } else {
                    reach(Stage::Deferred);
                }
            }
            Metric::Turns => {}
            // The call that is one too many ends it, if it is one that is blocked (runner-behaviour 3.2).
            Metric::ToolCalls if used > hard => {
                if step.open.iter().any(|call| step.limits.tool_block.blocks(&call.tool)) {
                    reach(Stage::Hard);
                }
            }
            Metric::ToolCalls => {}
            Metric::Tokens | Metric::Cost if used >= hard && step.settled_at.is_none() && !step.last_word => {
                reach(Stage::Hard);
            }
            Metric::Tokens | Metric::Cost => {}
        }
    }
}
