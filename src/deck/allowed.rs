//! What can be done with a run and its steps, and why not: rules that hold for keys, dialogs and words alike.

use super::feed::InnerRun;
use super::model::UiState;
use crate::run::{RunState, RunnerKind, Steerable, StepPhase, StepState};
use crate::text::SafeText;
/// The run inside that the key for it enters: of the selected step before those of others; what needs a person before what
/// goes on, what goes on before what is over, the newest of several.
#[must_use]
pub fn inner_run(ui: &UiState) -> Option<&InnerRun> {
    let here = |run: &InnerRun| run.step == Some(ui.selected);
    ui.inside.iter().max_by_key(|run| (here(run), run.needs, run.living, run.started))
}

/// Whether the run belongs to a runner of somebody else: steps of ours have ids, which theirs have not.
#[must_use]
pub fn is_foreign(state: &RunState) -> bool {
    !state.steps.is_empty() && state.steps.iter().all(|step| step.key.is_empty())
}

/// Whether a step can be given a message now, and why not.
///
/// # Errors
/// The reason, ready to be shown.
pub fn can_steer(step: &StepState) -> Result<(), String> {
    match (&step.phase, &step.steerable) {
        (phase, _) if phase.is_terminal() => Err(format!("step {} is over", step.id)),
        _ if step.own_run.is_some() => {
            let run = step.own_run.as_ref().map_or("", |run| run.as_str());
            Err(format!("step {} is a run of its own ({run}); it is steered there", step.id))
        }
        (_, Steerable::No(why)) => Err(format!("step {} cannot be steered: {why}", step.id)),
        _ => Ok(()),
    }
}

/// Whether a new run can go on with the session of a step, and why not.
///
/// # Errors
/// The reason, ready to be shown.
pub fn can_go_on(state: &RunState, step: &StepState) -> Result<(), String> {
    match &step.runner {
        _ if !state.is_over() => Err("the run is not over yet".to_owned()),
        _ if step.phase == StepPhase::Pending => Err(format!("step {} never ran", step.id)),
        // Of what others started nobody here knows the plan, without which no step is begun again.
        _ if is_foreign(state) => Err("the plan of this run is not known here, it was started elsewhere".to_owned()),
        RunnerKind::Pi | RunnerKind::PiJson | RunnerKind::Demo if step.session_file.is_some() => Ok(()),
        RunnerKind::Agent(_) if step.session_id.is_some() => Ok(()),
        _ => Err(format!("step {} has no session to go on with", step.id)),
    }
}

/// Whether a new run can do again what failed or never ran in this one, and why not.
///
/// # Errors
/// The reason, ready to be shown.
pub fn can_retry(ui: &UiState, state: &RunState, read_only: Option<&SafeText>) -> Result<(), String> {
    match read_only {
        // A run whose runner is gone takes nothing more, but it can be done again as any other.
        Some(why) if state.lost.is_none() => return Err(format!("read-only: {why}")),
        _ if !state.is_over() => return Err("the run is not over yet".to_owned()),
        _ => {}
    }
    if !ui.can_retry {
        return Err("no run can be started from here".to_owned());
    }
    // Nobody here knows its plan, without which no step is begun again.
    if is_foreign(state) {
        return Err("the plan of this run is not known here, it was started elsewhere".to_owned());
    }
    super::left::in_the_way(ui)?;
    let left = state.steps.iter().filter(|s| s.phase != StepPhase::Complete).count();
    if left == 0 { Err("every step is complete".to_owned()) } else { Ok(()) }
}

/// The path that a step works on, or worked on last; text from outside.
#[must_use]
pub fn current_path(step: &StepState) -> Option<&str> {
    let open = step.current_call().and_then(|call| call.path.as_deref());
    open.or_else(|| step.recent_tools.iter().rev().find_map(|call| call.path.as_deref()))
}

/// How many children are alive or about to be.
#[must_use]
pub fn living(state: &RunState) -> usize {
    state.steps.iter().filter(|s| s.phase == StepPhase::Running).count()
}
