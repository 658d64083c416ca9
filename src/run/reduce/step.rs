//! What an event does to one step.

use super::agent::{agent_event, lose_open_calls};
use super::watch;
use crate::run::inner;
use crate::run::{
    AgentEvent, AnsweredBy, Artifact, Attempt, Ending, EndingCause, ExternalProcess, Raise, RunState, RunnerKind,
    Stage, StepId, StepOutcome, StepPhase, StepState, Timestamp, What, Window,
};

/// A stronger cause replaces a weaker one and starts its own ladder; a weaker one changes nothing.
pub(super) fn begin_ending(step: &mut StepState, cause: EndingCause, message: String, at: Timestamp) {
    if step.ending.as_ref().is_some_and(|e| e.cause >= cause) {
        return;
    }
    if cause != EndingCause::Drain {
        // Nobody has to look at a step that is being ended.
        forget_notices(step);
    }
    step.ending =
        Some(Ending { cause, since: at, message, abort_at: None, int_at: None, term_at: None, kill_at: None });
}

pub(super) fn step_event(state: &mut RunState, id: StepId, what: &What, at: Timestamp) {
    let seq = state.next_seq;
    let run_ending = state.is_ending();
    let Some(step) = state.step_mut(id) else {
        state.anomalies += 1;
        return;
    };
    // Nothing begins again in a step that is over, and nobody speaks in it any more.
    let over = step.phase.is_terminal() && step.ending.is_none();
    let late = matches!(
        what,
        What::AttemptStarted { .. }
            | What::AttemptEnded { .. }
            | What::ChildSpawned { .. }
            | What::Agent { .. }
            | What::QuestionAsked { .. }
            | What::StepEnded { .. }
    );
    // No attempt follows in a step that is being ended for good.
    let beyond = matches!(what, What::AttemptEnded { .. }) && step.phase != StepPhase::Running;
    if (over && late) || beyond {
        state.anomalies += 1;
        return;
    }
    let mut strange = false;
    let mut started = false;
    let mut active = false;
    let mut opened = false;
    let mut changed = None;
    let mut noted = None;
    match what {
        What::StepStarted { .. } => {
            if step.phase == StepPhase::Pending {
                step.phase = StepPhase::Running;
                step.started_at = Some(at);
                step.heard = false;
                started = true;
            } else {
                strange = true;
            }
        }
        What::AttemptStarted { attempt, model, reason, .. } => {
            lose_open_calls(step, at);
            strange = step.attempts.len().saturating_add(1) != *attempt as usize;
            // Until the agent names another one.
            step.model = model.clone().or_else(|| step.model.take());
            step.attempts.push(Attempt {
                model: model.clone(),
                reason: reason.clone(),
                started_at: Some(at),
                ..Attempt::default()
            });
            (step.heard, step.beyond_calls) = (false, None);
            step.settled_at = None;
            step.retrying = None;
            step.next_attempt = None;
            step.exit = None;
            (step.last_word, step.calls_pending, step.barren) = (false, false, 0);
            step.free_turns = 0;
            step.window = Window::default();
        }
        What::AttemptEnded { exit_code, error, next, .. } => {
            lose_open_calls(step, at);
            strange = step.attempts.is_empty();
            if let Some(attempt) = step.attempts.last_mut() {
                attempt.success = Some(false);
                attempt.exit_code = Some(*exit_code);
                attempt.error = Some(error.clone());
                attempt.ended_at = Some(at);
            }
            step.pid = None;
            step.ending = None;
            step.settled_at = None;
            step.retrying = None;
            step.questions.clear();
            step.repeat = None;
            step.failures.clear();
            step.task_by_file |= next.task_by_file;
            if let (Some(transport), RunnerKind::Agent(agent)) = (next.transport, &mut step.runner) {
                agent.transport = transport;
            }
            step.next_attempt = Some(next.clone());
        }
        What::AttentionRaised { notice, .. } => {
            if step.phase == StepPhase::Running && step.ending.as_ref().is_none_or(|e| e.cause == EndingCause::Drain) {
                watch::raised(step, notice);
            } else {
                strange = true;
            }
        }
        // What ended with its step is gone already.
        What::AttentionCleared { id, .. } => drop(watch::cleared(step, id)),
        What::AttentionAcknowledged { id, .. } => {
            strange = step.attention.iter().all(|n| n.id != *id);
            noted = Some(id);
        }
        // What a foreign runner says while it ends a child is past.
        What::AttentionNoted { .. } if step.ending.is_some() => {}
        What::AttentionNoted { reason, message, .. } => watch::noted(step, *reason, message, at),
        What::QuestionAsked { question, .. } => {
            let known = step.questions.iter().any(|q| q.id == question.id);
            strange = known || step.phase != StepPhase::Running || step.questions.len() >= StepState::KEPT_SIGNS;
            if !strange {
                step.questions.push((**question).clone());
            }
        }
        What::QuestionAnswered { id: name, text, by, .. } => {
            if let Some(index) = step.questions.iter().position(|q| q.id == *name) {
                let question = step.questions.remove(index);
                // Neither the silence nor the open call was the agent's while it waited.
                active = true;
                let call = step.open.iter_mut().find(|c| c.call.is_some() && c.call == question.asking.call);
                if let Some(call) = call {
                    call.started_at = at;
                }
            }
            if *by == AnsweredBy::Nobody {
                step.unanswered = Some(text.clone());
            }
        }
        What::BudgetReached { metric, stage, used, message, .. } => {
            watch::reached(&mut step.budget, *metric, *stage, used.amount, at);
            if *stage == Stage::Hard && step.phase == StepPhase::Running {
                step.budget.exceeded = Some(*metric);
                begin_ending(step, EndingCause::Budget, message.clone(), at);
            }
        }
        What::BudgetRaised { raise, .. } => {
            if let Raise::Time(time) = raise {
                step.timeout_ms = Some(crate::run::limits::millis(*time));
            }
            strange = raise.apply(&mut step.limits).is_err();
            if let Some(metric) = raise.metric() {
                step.budget.forget(metric);
                step.beyond_calls = None;
            }
        }
        What::ChildSpawned { pid, start_ticks, .. } => {
            step.pid = Some(*pid);
            step.start_ticks = *start_ticks;
            if !step.runner.is_agent() {
                let external = step.external.get_or_insert_with(ExternalProcess::default);
                external.pid = Some(*pid);
                external.started_at = Some(at);
            }
        }
        What::Agent { event, .. } => {
            active = true;
            opened = matches!(event, AgentEvent::ToolStarted { .. });
            strange = agent_event(step, event, at, seq);
            if let AgentEvent::ToolStarted { path: Some(path), about, .. } = event
                && about.mutates
            {
                changed = Some(path.as_str());
            }
        }
        What::OutputLines { lines, open, .. } => {
            active = true;
            if std::mem::replace(&mut step.open_line, *open) {
                step.recent_output.pop_back();
            }
            for line in lines {
                step.recent_output.push_back(line.clone());
            }
            while step.recent_output.len() > StepState::KEPT_LINES {
                step.recent_output.pop_front();
            }
        }
        What::OutputSeen { .. } => active = true,
        What::ChildExited { exit, .. } => {
            step.pid = None;
            step.exit = Some(*exit);
            step.retrying = None;
            if let Some(external) = &mut step.external {
                external.exit = Some(*exit);
                external.ended_at = Some(at);
            }
        }
        What::OutputHeld { pids, .. } => step.held_by.clone_from(pids),
        What::OutputTruncated { cap, .. } => step.truncated_at = Some(*cap),
        What::LogFailed { error, .. } => step.log_error = Some(error.clone()),
        What::ArtifactFailed { which, error, .. } => {
            let told = match which {
                Artifact::Transcript => &mut step.contract.transcript_error,
                Artifact::Output => &mut step.contract.output_error,
                Artifact::Metadata => &mut step.contract.metadata_error,
                Artifact::File => &mut step.contract.file_error,
            };
            *told = Some(error.clone());
        }
        What::StepEnded { outcome, .. } => {
            step_ended(step, outcome, at);
            if let Some((name, output)) = &outcome.output {
                state.outputs.insert(name.clone(), output.clone());
            }
        }
        What::StepEnding { cause, message, source, .. } => {
            // A step that is being ended already can still be ended for a stronger cause.
            if step.phase == StepPhase::Running || step.ending.is_some() {
                begin_ending(step, *cause, message.clone(), at);
                if source.is_some() && !run_ending {
                    state.ended_by.clone_from(source);
                }
            } else if *cause == EndingCause::StepStop && step.phase == StepPhase::Pending {
                // It has no child to end; this says who asked for what follows.
                if source.is_some() && !run_ending {
                    state.ended_by.clone_from(source);
                }
            } else {
                strange = true;
            }
        }
        What::InnerRuns { runs, .. } if step.phase == StepPhase::Running => inner::seen(step, runs, at),
        What::Capability { steerable, .. } => step.steerable = steerable.clone(),
        What::SignalSent { signal, .. } => {
            if let Some(ending) = &mut step.ending {
                match *signal {
                    "SIGKILL" => ending.kill_at = Some(at),
                    "SIGINT" => ending.int_at = Some(at),
                    _ => ending.term_at = Some(at),
                }
            }
        }
        What::AbortSent { .. } => {
            if let Some(ending) = &mut step.ending {
                ending.abort_at = Some(at);
            }
        }
        What::TreeSwept { survivors, .. } => step.survivors.clone_from(survivors),
        _ => {}
    }
    if active && let Some(step) = state.step_mut(id) {
        step.last_activity = Some(at);
        step.heard = true;
    }
    if let Some(path) = changed {
        watch::changes(state, id, path, at);
    }
    if let Some(notice) = noted {
        watch::acknowledged(state, id, notice, at);
    }
    if started {
        state.last_started = Some(id);
    }
    if started || active {
        state.current = Some(id);
        state.last_activity = state.last_activity.max(Some(at));
    }
    if opened {
        state.next_seq = seq + 1;
    }
    if strange {
        state.anomalies += 1;
    }
}

fn step_ended(step: &mut StepState, outcome: &StepOutcome, at: Timestamp) {
    lose_open_calls(step, at);
    step.phase = outcome.phase.clone();
    step.exit_code = Some(outcome.exit_code);
    step.error.clone_from(&outcome.error);
    step.timed_out = outcome.timed_out;
    step.stopped = outcome.stopped;
    if step.contract.acceptance.as_ref() != outcome.acceptance.as_deref() {
        step.contract.acceptance = outcome.acceptance.as_deref().cloned();
    }
    step.started_at = step.started_at.or(Some(at));
    step.ended_at = Some(at);
    step.pid = None;
    step.ending = None;
    step.retrying = None;
    step.next_attempt = None;
    step.free_turns = 0;
    step.inner.clear();
    step.questions.clear();
    step.conflicts.clear();
    forget_notices(step);
    if let Some(attempt) = step.attempts.last_mut() {
        attempt.success = Some(outcome.phase == StepPhase::Complete);
        attempt.exit_code = Some(outcome.exit_code);
        attempt.error.clone_from(&outcome.error);
    }
}

/// What a step was to be looked at for is over.
fn forget_notices(step: &mut StepState) {
    step.attention.clear();
    step.activity = None;
}
