//! How events change a state. Total: every event in every state has a defined result; what could not have happened
//! is counted in `anomalies` and otherwise ignored.

mod agent;
#[cfg(test)]
mod prop_tests;
mod step;
#[cfg(test)]
mod tests;
mod watch;

use std::time::Duration;

use super::{
    ControlSource, EndingCause, Event, Gap, Raise, RunMeta, RunPhase, RunState, StepId, StepPhase, Timestamp,
    Unannounced, What,
};
use step::{begin_ending, step_event};

/// Refused control files that are kept to be shown.
const KEPT_REJECTIONS: usize = 20;

/// Applies one event.
pub fn reduce(state: &mut RunState, event: &Event) {
    let at = event.at;
    state.last_update = state.last_update.max(Some(at));
    match &event.what {
        What::RunStarted(meta) => run_started(state, meta, at),
        What::RunInterrupted { source } => run_interrupted(state, source.as_ref(), at),
        What::RunStopped { message, source } => run_stopped(state, message, source.as_ref(), at),
        What::RunTimedOut { message, source, .. } => run_timed_out(state, message, source.as_ref(), at),
        What::SteerRequested(request) => {
            let mut request = (**request).clone();
            request.message = String::new();
            for target in &request.targets {
                if let Some(step) = state.step_mut(target.step) {
                    let mut own = request.clone();
                    own.targets.retain(|t| t.step == target.step);
                    step.steering.add(own);
                }
            }
            state.steering.add(request);
        }
        What::SteerMoved { id, step, to, detail } => {
            state.steering.advance(id, *step, *to, detail.as_deref(), at);
            if let Some(found) = state.step_mut(*step) {
                found.steering.advance(id, *step, *to, detail.as_deref(), at);
            }
        }
        What::ControlRejected { file, reason, .. } => {
            state.rejected.push_back((file.clone(), reason.clone()));
            while state.rejected.len() > KEPT_REJECTIONS {
                state.rejected.pop_front();
            }
        }
        What::RunEnded { state: phase, error } => {
            if state.ended_at.is_some() {
                state.anomalies += 1;
                return;
            }
            state.phase = phase.clone();
            state.error.clone_from(error);
            state.ended_at = Some(at);
        }
        What::RunLost { message } => {
            if state.ended_at.is_none() {
                state.lost = Some(message.clone());
            }
        }
        // The package's own tools sign nothing, and to say something to an agent is no power over it (product 7).
        What::ControlUnannounced { what, .. } if what == super::MESSAGE => {}
        What::ControlUnannounced { step, what, source } => {
            let told = format!("no deck or command announced this {what}: it came from {source}");
            // What is about all of the run is told by the step that runs first, and by no other after it.
            let first = || state.steps.iter().find(|s| s.phase == StepPhase::Running).map(|s| s.id);
            state.unannounced = step.or_else(first).map(|step| Unannounced { at, step, told });
        }
        What::DiskSpace { free, low } => state.disk_low = low.then_some((at, *free)),
        What::Slept { ms } => slept(state, Duration::from_millis(*ms), at),
        What::BudgetReached { step: None, metric, stage, used, message } => {
            watch::reached(&mut state.budget, *metric, *stage, used.amount, at);
            if *stage == super::Stage::Hard {
                run_over_budget(state, *metric, message, at);
            }
        }
        What::BudgetRaised { step: None, raise, .. } => run_budget_raised(state, *raise),
        of_a_step => {
            if let Some(step) = of_a_step.step() {
                step_event(state, step, of_a_step, at);
            }
        }
    }
}

fn run_started(state: &mut RunState, meta: &RunMeta, at: Timestamp) {
    if state.started_at.is_some() {
        state.anomalies += 1;
        return;
    }
    let before = std::mem::take(state);
    *state = RunState {
        id: meta.id.clone(),
        name: meta.name.clone(),
        session_id: meta.session_id.clone(),
        owner_id: meta.owner_id.clone(),
        mode: meta.mode.clone(),
        phase: RunPhase::Running,
        pid: meta.pid,
        cwd: meta.cwd.clone(),
        started_at: Some(at),
        last_update: Some(at),
        last_activity: Some(at),
        timeout_ms: meta.timeout_ms,
        deadline_at: meta.deadline_at,
        deadline_fixed: meta.deadline_fixed,
        limits: meta.limits.clone(),
        groups: meta.groups.clone(),
        logical_count: meta.logical_count,
        resumed_from: meta.resumed_from.clone(),
        started_in: meta.started_in.clone(),
        contract: meta.contract.clone(),
        anomalies: before.anomalies,
        ..RunState::default()
    };
    for (step, id) in meta.steps.iter().zip(0u32..) {
        state.steps.push(step.begin(StepId(id)));
    }
    // Other runners tell of an end that was asked for beforehand before they tell of the beginning (runner-behaviour 14.24).
    let (by, message) = (before.ended_by.as_ref(), before.error.as_deref().unwrap_or_default());
    if before.stopped {
        run_stopped(state, message, by, at);
    } else if before.timed_out {
        run_timed_out(state, message, by, at);
    } else if before.interrupted {
        run_interrupted(state, by, at);
    }
}

/// The run pauses at once; its steps follow when their children are gone (run-directory 3.2).
fn run_interrupted(state: &mut RunState, source: Option<&ControlSource>, at: Timestamp) {
    if state.phase != RunPhase::Running || state.is_ending() || state.ended_at.is_some() {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Paused;
    state.interrupted = true;
    state.ended_by = source.cloned();
    for step in &mut state.steps {
        if step.phase == StepPhase::Running {
            step.phase = StepPhase::Paused;
            step.ended_at = Some(at);
            begin_ending(step, EndingCause::Interrupt, String::new(), at);
        }
    }
}

/// Stop is honoured whenever the run has not ended, also after an interrupt (runner-behaviour 14.7).
fn run_stopped(state: &mut RunState, message: &str, source: Option<&ControlSource>, at: Timestamp) {
    if state.ended_at.is_some() || state.stopped {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Running;
    state.stopped = true;
    // A stop after the time was over ends what the timeout began; the time-out stays on the steps it hit.
    state.timed_out = false;
    state.error = Some(message.to_owned());
    state.ended_by = source.cloned();
    end_steps(state, EndingCause::RunStop, message, at);
}

fn run_timed_out(state: &mut RunState, message: &str, source: Option<&ControlSource>, at: Timestamp) {
    if state.ended_at.is_some() || state.stopped || state.timed_out {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Running;
    state.timed_out = true;
    state.error = Some(message.to_owned());
    state.ended_by = source.cloned();
    end_steps(state, EndingCause::RunTimeout, message, at);
}

fn end_steps(state: &mut RunState, cause: EndingCause, message: &str, at: Timestamp) {
    for step in &mut state.steps {
        let never_ran = step.phase == StepPhase::Pending;
        let dying = step.ending.is_some();
        if !(never_ran || dying || step.phase == StepPhase::Running) {
            continue;
        }
        if cause == EndingCause::RunStop {
            step.phase = StepPhase::Stopped;
            step.stopped = true;
        } else {
            step.phase = StepPhase::Failed;
            step.timed_out = true;
        }
        step.exit_code = Some(1);
        step.error = Some(message.to_owned());
        step.ended_at = Some(at);
        if never_ran {
            step.started_at = step.started_at.or(Some(at));
            // A log without the beginning may have told of calls and attempts.
            step.next_attempt = None;
            agent::lose_open_calls(step, at);
        } else {
            begin_ending(step, cause, message.to_owned(), at);
        }
    }
}

/// The machine slept: a deadline that comes from a limit moves with it.
fn slept(state: &mut RunState, slept: Duration, at: Timestamp) {
    state.gaps.push(Gap { until: at, slept });
    if !state.deadline_fixed {
        state.deadline_at = state.deadline_at.map(|deadline| deadline + slept);
    }
}

/// The run used more than it may. Children go on where its limits only keep the next one from starting.
fn run_over_budget(state: &mut RunState, metric: super::Metric, message: &str, at: Timestamp) {
    if state.ended_at.is_some() || state.is_ending() {
        return;
    }
    state.budget.exceeded = Some(metric);
    state.error = Some(message.to_owned());
    if state.limits.usage_spares_children {
        return;
    }
    for step in state.steps.iter_mut().filter(|s| s.phase == StepPhase::Running) {
        step.budget.exceeded = Some(metric);
        begin_ending(step, EndingCause::RunBudget, message.to_owned(), at);
    }
}

fn run_budget_raised(state: &mut RunState, raise: Raise) {
    if let Raise::Time(time) = raise
        && let Some(started) = state.started_at
    {
        state.timeout_ms = Some(super::limits::millis(time));
        state.deadline_at = Some(state.gaps.due(started, time));
        state.deadline_fixed = false;
    }
    if raise.apply(&mut state.limits).is_err() {
        state.anomalies += 1;
    } else if let Some(metric) = raise.metric() {
        state.budget.forget(metric);
    }
}
