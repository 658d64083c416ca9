//! What the words of an agent do to its step.

use std::time::Duration;

use super::watch;
use crate::run::sub_agent;
use crate::run::{
    AgentEvent, Family, MessageRole, OpenCall, Retrying, RunnerKind, StepState, StopReason, Timestamp, ToolCall,
    ToolOutcome, Usage, budget,
};

/// Returns whether the event could not have happened.
pub(super) fn agent_event(step: &mut StepState, event: &AgentEvent, at: Timestamp, seq: u64) -> bool {
    match event {
        AgentEvent::SessionStarted { session_id, model } => {
            if session_id.is_some() {
                step.session_id.clone_from(session_id);
            }
            if model.is_some() {
                step.model.clone_from(model);
            }
        }
        AgentEvent::Message { role: MessageRole::Assistant, preview, model, usage, stop, error, calls_tools } => {
            step.last_word = !calls_tools && error.is_none() && *stop == Some(StopReason::Stop);
            step.calls_pending = *calls_tools;
            // What a provider failed is tried again, by rules of its own.
            step.barren = if *calls_tools || error.is_some() { 0 } else { step.barren.saturating_add(1) };
            step.turn_count += 1;
            step.retrying = None;
            if !preview.is_empty() {
                step.last_message = Some(preview.clone());
            }
            if model.is_some() {
                step.model.clone_from(model);
            }
            if let Some(usage) = usage {
                used(step, usage);
                // A call that was broken off tells of nothing, and its window is not empty for that.
                if tells_by_call(&step.runner) && !usage.tokens.is_zero() {
                    step.window.used = Some(usage.tokens.all());
                }
                if let Some(attempt) = step.attempts.last_mut() {
                    attempt.turns += 1;
                }
            }
        }
        AgentEvent::Used(usage) => used(step, usage),
        AgentEvent::Window(window) => step.window = window.or(step.window),
        AgentEvent::Unknown { kind } => step.unknown.take(kind),
        AgentEvent::SubAgent { id, did } => sub_agent::take(step, id, did, at),
        AgentEvent::ToolStarted { call, tool, args, path, about } => {
            step.tool_count += 1;
            step.barren = 0;
            (step.last_word, step.calls_pending) = (false, false);
            step.retrying = None;
            step.changed_files |= about.mutates;
            let hard = step.limits.tool_calls.and_then(|limit| limit.hard);
            if hard.is_some_and(|hard| step.tool_count > hard) && step.limits.tool_block.blocks(tool) {
                step.beyond_calls.get_or_insert(step.turn_count);
            }
            watch::called(step, tool, args, *about, at);
            // A second start of the same call replaces the first (runner-behaviour 14.10).
            let before = step.open.len();
            if call.is_some() {
                step.open.retain(|c| c.call != *call);
            }
            let replaced = step.open.len() != before;
            step.open.push(OpenCall {
                call: call.clone(),
                tool: tool.clone(),
                args: args.clone(),
                path: path.clone(),
                started_at: at,
                seq,
                about: *about,
                heard: None,
            });
            return replaced;
        }
        AgentEvent::ToolEnded { call, tool, outcome, preview } => {
            let Some(index) = matching_call(&step.open, call.as_deref(), tool.as_deref()) else { return true };
            step.calls_pending = false;
            let ended = step.open.remove(index);
            if budget::is_block(preview) {
                step.blocked_tool = Some(ended.tool.clone());
            }
            watch::returned(step, &ended, *outcome, preview, at);
            if step.open.is_empty() {
                step.free_turns = step.turn_count;
            }
            remember_call(step, ended, *outcome, preview.clone(), at);
        }
        AgentEvent::Retry { attempt, max, delay_ms, reason } => {
            step.retrying = Some(Retrying {
                attempt: *attempt,
                max: *max,
                since: at,
                until: delay_ms.map(|ms| at + Duration::from_millis(ms)),
                reason: reason.clone(),
            });
        }
        AgentEvent::RetryEnded { .. } => step.retrying = None,
        AgentEvent::AgentStarted => {
            step.settled_at = None;
            step.last_word = false;
            step.barren = 0;
            step.retrying = None;
        }
        AgentEvent::AgentEnded { will_retry } => {
            if *will_retry {
                step.settled_at = None;
            }
        }
        AgentEvent::Settled { .. } => {
            step.settled_at = Some(at);
            step.barren = 0;
        }
        AgentEvent::TurnStarted => step.last_word = false,
        AgentEvent::TurnEnded => {
            step.calls_pending = false;
            if step.open.is_empty() {
                step.free_turns = step.turn_count;
            }
        }
        // The record of a result names no call; the one that ended last is meant.
        AgentEvent::Message { role: MessageRole::ToolResult, preview, .. } if budget::is_block(preview) => {
            let last = step.recent_tools.back().map(|call| call.tool.clone());
            step.blocked_tool = step.blocked_tool.take().or(last).or_else(|| Some(String::new()));
        }
        // Somebody asks for more.
        AgentEvent::Message { role: MessageRole::User, .. } => {
            step.last_word = false;
            step.barren = 0;
        }
        AgentEvent::TextDelta { .. }
        | AgentEvent::Message { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::Queue(_)
        | AgentEvent::Response { .. }
        // The runner decides which questions wait, and records them.
        | AgentEvent::Asked(_)
        | AgentEvent::Unasked { .. }
        | AgentEvent::Called { .. }
        | AgentEvent::Unparsed { .. }
        | AgentEvent::ProtocolFailure { .. } => {}
    }
    false
}

/// Whether what a message used is that of one model call, which is all that stood in its window.
const fn tells_by_call(runner: &RunnerKind) -> bool {
    match runner {
        RunnerKind::Pi | RunnerKind::PiJson | RunnerKind::Demo => true,
        RunnerKind::Agent(agent) => matches!(agent.family, Family::Claude),
        _ => false,
    }
}

fn used(step: &mut StepState, usage: &Usage) {
    step.tokens += usage.tokens;
    if let Some(cost) = usage.cost {
        *step.cost.get_or_insert_default() += cost;
    }
    if let Some(attempt) = step.attempts.last_mut() {
        attempt.usage.tokens += usage.tokens;
        if let Some(cost) = usage.cost {
            *attempt.usage.cost.get_or_insert_default() += cost;
        }
    }
}

/// Which open call an end means: by id, and an unknown id means none; else the oldest of that name; with neither
/// only if exactly one call is open (runner-behaviour 3.6).
fn matching_call(open: &[OpenCall], call: Option<&str>, tool: Option<&str>) -> Option<usize> {
    match (call.filter(|id| !id.is_empty()), tool) {
        (Some(id), _) => open.iter().position(|c| c.call.as_deref() == Some(id)),
        (None, Some(name)) => open.iter().position(|c| c.tool == name),
        (None, None) => (open.len() == 1).then_some(0),
    }
}

fn remember_call(step: &mut StepState, call: OpenCall, outcome: ToolOutcome, preview: String, at: Timestamp) {
    step.recent_tools.push_back(ToolCall {
        call: call.call,
        tool: call.tool,
        args: call.args,
        path: call.path,
        started_at: Some(call.started_at),
        ended_at: at,
        outcome: Some(outcome),
        preview,
    });
    while step.recent_tools.len() > StepState::KEPT_TOOLS {
        step.recent_tools.pop_front();
    }
}

/// Calls that are open when all that the child said is known will never end by themselves. Its exit is not yet that
/// moment: their ends may still lie in the pipe.
pub(super) fn lose_open_calls(step: &mut StepState, at: Timestamp) {
    sub_agent::lose(step, at);
    for call in std::mem::take(&mut step.open) {
        remember_call(step, call, ToolOutcome::Lost, String::new(), at);
    }
}
