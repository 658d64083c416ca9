//! Where another attempt of a step began, among its calls and what was said: a line of ours in the words that its output has
//! for it too. It is no entry, so that the keys pass over it and nothing is numbered otherwise.

use super::Scene;
use super::entry::Line;
use super::paint::piece;
use crate::deck::window::OWN_MARK;
use crate::run::{StepState, Timestamp};
use crate::text::SafeText;

/// How many attempts of a step had begun at a moment; 0 where it had only one, of which nothing tells.
pub(super) fn begun(step: &StepState, at: Timestamp) -> usize {
    step.attempts.iter().rposition(|attempt| attempt.started_at.is_some_and(|began| began <= at)).map_or(0, |n| n + 1)
}

/// A line for each attempt after the first that began between two entries, of which the first was made when so many
/// had begun and the second when `then` had. Of attempts without a time nobody knows where they began.
pub(super) fn lines(step: &StepState, before: usize, then: usize, width: u16, scene: &Scene<'_>) -> Vec<Line> {
    let attempts = (1..).zip(&step.attempts).take(then).skip(before.max(1));
    let began = attempts.filter(|(_, attempt)| attempt.started_at.is_some());
    began
        .map(|(n, attempt)| {
            let after = attempt.reason.as_deref().map(|reason| format!(", after: {reason}")).unwrap_or_default();
            let text = SafeText::line(&format!("{OWN_MARK}attempt {n}{after}")).truncate(usize::from(width));
            let rest = "─".repeat(usize::from(width).saturating_sub(text.width() + 1));
            (vec![piece(text.to_string(), scene.theme.halted()), piece(rest, scene.theme.dim()).gap(1)], Vec::new())
        })
        .collect()
}
