//! What is true of all steps together, found out once for each state of the run: a frame of ten thousand steps costs
//! what one of ten does.

use std::sync::Arc;

use super::attention::needs_person;
use super::model::UiState;
use crate::run::{CostUsd, RunState, RunnerKind, StepFace, StepId, StepPhase, Tokens};

/// Facts about all steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// How far they have come, with the word for it.
    pub progress: (usize, &'static str),
    /// Their tokens.
    pub tokens: Tokens,
    /// Their cost, where any told one.
    pub cost: Option<CostUsd>,
    /// Of some agent that worked the cost is not told, so that theirs is at least that.
    pub cost_more: bool,
    /// The same of its tokens.
    pub tokens_more: bool,
    /// Their turns.
    pub turns: u64,
    /// Of some agent the turns are not told, so that they are at least that.
    pub turns_more: bool,
    /// Their tool calls.
    pub tools: u64,
    /// The same of its tool calls.
    pub tools_more: bool,
    /// All of them are plain commands.
    pub plain: bool,
    /// How many characters the longest title has.
    pub longest_title: usize,
    /// How many characters the longest name of a model has; 0 where none is known.
    pub longest_model: usize,
    /// Of how many the model is known.
    pub models: usize,
    /// The faces that there are.
    pub faces: Vec<StepFace>,
    /// Those that need a person, whether that was taken note of or not.
    pub needy: Vec<StepId>,
    /// The place of the first one that failed.
    pub first_failed: Option<usize>,
    /// The place of the first one that ended in another way than a chain goes on from.
    pub breaks: Option<usize>,
    /// The place of the first one that is queued.
    pub first_queued: Option<usize>,
    /// The place of the first one that has not ended.
    pub first_open: usize,
}

impl Sums {
    /// Looks at every step.
    #[must_use]
    pub fn of(state: &RunState) -> Self {
        let mut sums = Self {
            progress: state.progress(false),
            tokens: state.tokens(),
            cost: state.cost(),
            cost_more: state.is_cost_partial(),
            tokens_more: state.are_tokens_partial(),
            turns_more: state.are_turns_partial(),
            tools_more: state.are_calls_partial(),
            plain: true,
            first_open: state.steps.len(),
            ..Self::default()
        };
        for (place, step) in state.steps.iter().enumerate() {
            sums.turns = sums.turns.saturating_add(step.turn_count);
            sums.tools = sums.tools.saturating_add(step.tool_count);
            sums.plain &= matches!(step.runner, RunnerKind::ExternalCli { .. });
            sums.longest_title = sums.longest_title.max(step.title().chars().count());
            let model = step.model.as_deref().unwrap_or_default();
            sums.longest_model = sums.longest_model.max(model.chars().count());
            sums.models += usize::from(!model.is_empty());
            let face = state.face(step);
            if !sums.faces.contains(&face) {
                sums.faces.push(face);
            }
            if (step.phase == StepPhase::Running || !step.survivors.is_empty()) && needs_person(step).is_some() {
                sums.needy.push(step.id);
            }
            if step.phase == StepPhase::Failed && !step.never_ran() && sums.first_failed.is_none() {
                sums.first_failed = Some(place);
            }
            // A member of a group that never ran is one beside another that ended so.
            if sums.breaks.is_none()
                && step.phase.is_terminal()
                && step.phase != StepPhase::Complete
                && !step.never_ran()
            {
                sums.breaks = Some(place);
            }
            if sums.first_queued.is_none() && step.phase == StepPhase::Pending {
                sums.first_queued = Some(place);
            }
            if !step.phase.is_terminal() {
                sums.first_open = sums.first_open.min(place);
            }
        }
        sums
    }
}

impl UiState {
    /// The sums of a state: those that are known, where the loop keeps them, else found out now.
    #[must_use]
    pub fn sums(&self, state: &RunState) -> Arc<Sums> {
        let known = self.known.as_ref().map(Arc::clone);
        // Whoever changes the state without telling is found out by any test that draws.
        debug_assert!(known.as_ref().is_none_or(|known| **known == Sums::of(state)), "the sums are of another state");
        known.unwrap_or_else(|| Arc::new(Sums::of(state)))
    }
}

/// The place of a step among all; ids are places until a dynamic group moves them.
#[must_use]
pub fn place(state: &RunState, id: StepId) -> Option<usize> {
    match state.steps.get(id.flat()) {
        Some(step) if step.id == id => Some(id.flat()),
        _ => state.steps.iter().position(|step| step.id == id),
    }
}
