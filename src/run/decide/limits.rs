//! Limits: of time, of single tools, of turns, calls, tokens and money (runner-behaviour 3).

use std::time::Duration;

use super::{DRAIN, DRAIN_MOST, DRAIN_QUIET, Decision, Effect};
use crate::run::{
    EndingCause, Limit, Limits, Metric, OpenCall, RunState, Stage, StepPhase, StepState, Timestamp, Used, budget,
};

/// After so many model calls in a row that asked for nothing and ended nothing an agent is known to go round in circles
/// (agent-streams 0.12).
const BARREN: u32 = 25;

/// The limits of the whole run.
pub(super) fn run(decision: &mut Decision, state: &RunState) {
    if state.limits == Limits::default() {
        return;
    }
    let more = state.steps.iter().any(|s| match s.phase {
        StepPhase::Pending => true,
        StepPhase::Running => !s.last_word && s.settled_at.is_none(),
        _ => false,
    });
    if state.is_ending() {
        return;
    }
    // A limit that is passed with the very last word keeps nothing from happening and is only told.
    let end = if more { Stage::Hard } else { Stage::Late };
    let mut over = state.budget.exceeded.is_some();
    for metric in Metric::ALL {
        let limit = budget::limit(&state.limits, metric);
        if limit == Limit::default() {
            continue;
        }
        let used = budget::used_by_run(state, metric);
        // What spares the children is looked at when the next one is to start, by the schedule.
        let hard = limit.hard.filter(|_| !state.limits.usage_spares_children);
        for (stage, at) in [(Stage::Soft, limit.soft), (end, hard)] {
            let told = state.budget.at(metric, stage).is_some() || (over && stage != Stage::Soft);
            let reached = at.is_some_and(|at| match (metric, stage) {
                (Metric::ToolCalls, Stage::Hard) => used.amount > at && blocked(state),
                (_, Stage::Late) => used.amount > at,
                _ => used.amount >= at,
            });
            if reached && !told {
                over |= stage == Stage::Hard;
                let message = match stage {
                    Stage::Hard => budget::run_sentence(metric, used, &state.limits),
                    Stage::Late => budget::late_sentence("The run", metric, used, &state.limits),
                    Stage::Soft | Stage::Deferred => budget::run_warning(metric, used, &state.limits),
                };
                decision.due.push(Effect::Reach { step: None, metric, stage, used, message });
            }
        }
    }
}

/// Whether a call is open that may not be made once the run has used its calls, as with those of a step.
fn blocked(state: &RunState) -> bool {
    let running = state.steps.iter().filter(|step| step.phase == StepPhase::Running);
    running.flat_map(|step| &step.open).any(|call| state.limits.tool_block.blocks(&call.tool))
}

/// The limits of a running step. Of several ends only the one that came first is told, however late it is looked at.
pub(super) fn step(decision: &mut Decision, state: &RunState, step: &StepState, now: Timestamp) {
    if step.barren >= BARREN && step.pid.is_some() {
        let message = format!("the agent goes round in circles: {BARREN} model calls came to nothing");
        decision.due.push(Effect::End { step: step.id, cause: EndingCause::Protocol, message });
        return;
    }
    let own = time(state, step);
    let mut ends: Vec<End> = own.iter().cloned().collect();
    if step.pid.is_some() {
        ends.extend(idle(state, step));
        ends.extend(tools(state, step, own.map(|(at, ..)| at)));
        ends.extend(drain(step));
    }
    let Some((at, cause, message)) = ends.into_iter().min_by_key(|(at, cause, _)| (*at, std::cmp::Reverse(*cause)))
    else {
        return counts(decision, step);
    };
    if now < at {
        counts(decision, step);
    }
    decision.at(now, at, Effect::End { step: step.id, cause, message });
}

/// An end that comes with time: when, why, and the sentence for the files.
type End = (Timestamp, EndingCause, String);

/// Who runs out of time, as the sentences of the files begin (runner-behaviour 3.6).
const fn who(step: &StepState) -> &'static str {
    if step.runner.is_agent() { "Subagent" } else { "Command" }
}

/// The step's own time.
fn time(state: &RunState, step: &StepState) -> Option<End> {
    let (ms, started) = (step.timeout_ms?, step.started_at?);
    let due = state.gaps.due(started, Duration::from_millis(ms));
    Some((due, EndingCause::StepTimeout, format!("{} timed out after {ms}ms.", who(step))))
}

/// No sign of life.
fn idle(state: &RunState, step: &StepState) -> Option<End> {
    let ms = step.limits.idle_ms.or(state.limits.idle_ms)?;
    if !step.may_be_idle() {
        return None;
    }
    let due = state.gaps.due(step.silent_since()?, Duration::from_millis(ms));
    Some((due, EndingCause::StepTimeout, format!("{} timed out: no sign of life for {ms}ms.", who(step))))
}

/// Single tools: the first whose time is over ends the step. A limit that lies beyond the step's own end is left to that end (runner-behaviour 3.6).
fn tools(state: &RunState, step: &StepState, own_end: Option<Timestamp>) -> Option<End> {
    let of = |call: &OpenCall| {
        if step.asks_about(call) {
            return None;
        }
        let ms = step.limits.tool_limit(&call.tool)?;
        let due = state.gaps.due(call.started_at, Duration::from_millis(ms));
        let message = format!("Tool '{}' timed out after {ms}ms.", call.tool);
        own_end.is_none_or(|end| due < end).then_some((due, EndingCause::ToolTimeout, message))
    };
    step.open.iter().filter_map(of).min_by_key(|(due, ..)| *due)
}

/// A child that said its last word but does not exit (runner-behaviour 1.7).
fn drain(step: &StepState) -> Option<End> {
    let settled = step.settled_at?;
    let quiet = step.last_activity.map_or(settled, |at| at + DRAIN_QUIET);
    let due = (settled + DRAIN).max(quiet).min(settled + DRAIN_MOST);
    Some((due, EndingCause::Drain, String::new()))
}

/// What is counted. One limit is enough to end a step.
fn counts(decision: &mut Decision, step: &StepState) {
    let mut over = false;
    for metric in Metric::ALL {
        let limit = budget::limit(&step.limits, metric);
        let used = budget::used(step, metric);
        let mut reach = |stage| {
            if step.budget.at(metric, stage).is_none() && !(over && stage == Stage::Hard) {
                over |= stage == Stage::Hard;
                let message = match stage {
                    Stage::Hard => budget::sentence(metric, used, &step.limits),
                    Stage::Late => budget::late_sentence("The step", metric, Used::all(used), &step.limits),
                    Stage::Soft | Stage::Deferred => format!("{} used.", metric.words(used)),
                };
                let used = Used::all(used);
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
                let free = step.open.is_empty() && !step.calls_pending;
                if free || step.free_turns as f64 >= hard {
                    reach(Stage::Hard);
                } else {
                    reach(Stage::Deferred);
                }
            }
            Metric::Turns => {}
            // The call that is one too many ends it, if it is one that is blocked. Where a guard in the agent is to refuse
            // it, the agent is ended only when it goes on with what none refused (runner-behaviour 3.2).
            Metric::ToolCalls if used > hard => {
                let blocked = || step.open.iter().any(|call| step.limits.tool_block.blocks(&call.tool));
                let unguarded = || step.has_no_guard() && !step.last_word && step.settled_at.is_none();
                if if step.limits.tool_calls_observed { unguarded() } else { blocked() } {
                    reach(Stage::Hard);
                }
            }
            Metric::ToolCalls => {}
            // Several agents tell what they used only with their last word, which is not thrown away for that.
            Metric::Tokens | Metric::Cost if step.settled_at.is_some() || step.last_word => {
                if used > hard {
                    reach(Stage::Late);
                }
            }
            Metric::Tokens | Metric::Cost if used >= hard => reach(Stage::Hard),
            Metric::Tokens | Metric::Cost => {}
        }
    }
}
