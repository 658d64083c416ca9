//! Who needs a person, as scripts and lists tell it.

use crate::run::{RunState, StepPhase, StepState, Timestamp};
use crate::text::SafeText;

/// A step that needs a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Need<'s> {
    /// The step.
    pub step: &'s StepState,
    /// Why, in words. Text from outside.
    pub reason: String,
    /// Since when, where it is known.
    pub since: Option<Timestamp>,
}

/// The steps that need a person. Only of steps that run: what a file says of others is left over (runner-behaviour
/// 14.8).
#[must_use]
pub fn needs(state: &RunState) -> Vec<Need<'_>> {
    let running = state.steps.iter().filter(|s| s.phase == StepPhase::Running);
    running
        .filter(|s| s.activity.as_deref() == Some("needs_attention"))
        .map(|step| Need { step, reason: "needs attention".to_owned(), since: None })
        .collect()
}

impl Need<'_> {
    /// The step and the reason: `2 reviewer: needs attention`.
    #[must_use]
    pub fn line(&self) -> SafeText {
        SafeText::line(&format!("{} {}: {}", self.step.id.number(), self.step.title(), self.reason))
    }
}
