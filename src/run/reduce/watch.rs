//! What the rules of attention and the limits look at, gathered as it happens.

use crate::run::{
    BudgetState, CallFacts, Condition, Conflict, Failure, Notice, OpenCall, Reached, Reason, Repeat, RunState, Stage,
    StepId, StepPhase, StepState, Timestamp, ToolOutcome, same_name,
};

/// A limit is reached; once for each stage.
pub(super) fn reached(budget: &mut BudgetState, metric: crate::run::Metric, stage: Stage, used: f64, at: Timestamp) {
    if budget.at(metric, stage).is_none() {
        budget.reached.push(Reached { metric, stage, at, used });
    }
}

/// A call started: is it the same as the one before?
pub(super) fn called(step: &mut StepState, tool: &str, args: &str, about: CallFacts, at: Timestamp) {
    match &mut step.repeat {
        Some(repeat) if repeat.fingerprint == about.fingerprint => repeat.count += 1,
        repeat => {
            let (tool, args) = (tool.to_owned(), args.to_owned());
            *repeat = Some(Repeat { fingerprint: about.fingerprint, tool, args, count: 1, since: at });
        }
    }
}

/// A call ended: did a change work?
pub(super) fn returned(step: &mut StepState, call: &OpenCall, outcome: ToolOutcome, said: &str, at: Timestamp) {
    if !call.about.mutates {
        return;
    }
    match outcome {
        ToolOutcome::Ok => step.failures.worked(call.path.as_deref()),
        ToolOutcome::Error | ToolOutcome::Denied => {
            step.failures.push(Failure { at, tool: call.tool.clone(), path: call.path.clone(), said: said.to_owned() })
        }
        ToolOutcome::Cancelled | ToolOutcome::Lost => {}
    }
}

/// A step changes a file: does another running one change it too (product 5)?
pub(super) fn changes(state: &mut RunState, id: StepId, path: &str, at: Timestamp) {
    let Some(step) = state.step_mut(id) else { return };
    let path = same_name(&step.cwd, path);
    if !step.edited.contains(&path) {
        step.edited.push_back(path.clone());
        if step.edited.len() > StepState::KEPT_EDITS {
            step.edited.pop_front();
        }
    }
    let others: Vec<StepId> = state
        .steps
        .iter()
        .filter(|s| s.id != id && s.phase == StepPhase::Running && s.edited.contains(&path))
        .map(|s| s.id)
        .collect();
    for other in others {
        for (one, two) in [(id, other), (other, id)] {
            let Some(step) = state.step_mut(one) else { continue };
            let known = step.conflicts.iter().any(|c| c.other == two && c.path == path);
            if !known && step.conflicts.len() < StepState::KEPT_SIGNS {
                step.conflicts.push(Conflict { path: path.clone(), other: two, at });
            }
        }
    }
}

/// A notice is told, for the first time or again.
pub(super) fn raised(step: &mut StepState, notice: &Notice) {
    match step.attention.iter_mut().find(|n| n.id == notice.id) {
        Some(known) => known.clone_from(notice),
        None => step.attention.push(notice.clone()),
    }
    settle(step);
}

/// A notice ends; `false` when there is none of that name.
pub(super) fn cleared(step: &mut StepState, id: &str) -> bool {
    let before = step.attention.len();
    step.attention.retain(|n| n.id != id);
    settle(step);
    step.attention.len() != before
}

/// Somebody took note of a notice that the step has, and of how far it has come until then.
pub(super) fn acknowledged(state: &mut RunState, id: StepId, name: &str, at: Timestamp) {
    let seen = state.step(id).and_then(|step| {
        let holds = crate::run::attention::conditions(state, step, at).holds;
        holds.into_iter().find(|condition| Notice::name(id, condition) == name)
    });
    let Some(step) = state.step_mut(id) else { return };
    let Some(notice) = step.attention.iter_mut().find(|n| n.id == name) else { return };
    notice.acknowledged = Some(at);
    if let Some(seen) = seen {
        notice.condition = seen;
    }
}

/// What a foreign runner says. Our own says it twice, so that the package's readers see it too; the second time adds
/// nothing.
pub(super) fn noted(step: &mut StepState, reason: Reason, message: &str, at: Timestamp) {
    if step.phase != StepPhase::Running || step.attention.iter().any(|n| n.condition.reason == reason) {
        return;
    }
    let condition = Condition {
        reason,
        subject: String::new(),
        since: at,
        threshold: None,
        amount: None,
        evidence: message.to_owned(),
    };
    step.attention.push(Notice::new(step.id, condition, at));
    settle(step);
}

/// The word that files carry follows from the notices.
fn settle(step: &mut StepState) {
    step.activity = step.level().and_then(|level| level.activity()).map(str::to_owned);
}
