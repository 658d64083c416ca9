//! What is told of a run as a whole: how far it is and what it used. A sum of which a part is not told is at least that,
//! and is marked wherever it is shown (product 10).

use super::{Metric, RunState, StepPhase, StepState};
use crate::text::{cost, count};

/// What stands behind a sum that is at least that.
#[must_use]
pub const fn or_more(partial: bool) -> &'static str {
    if partial { "+" } else { "" }
}

/// What steps cost together in US dollars, and whether that is only a part of it; `None` where none tells a cost.
#[must_use]
pub fn cost_of<'s>(steps: impl IntoIterator<Item = &'s StepState>) -> Option<(f64, bool)> {
    let (mut sum, mut partial) = (None, false);
    for step in steps {
        match step.cost {
            Some(usd) => *sum.get_or_insert(0.0) += usd.0,
            None => partial |= step.worked(),
        }
    }
    sum.map(|usd| (usd, partial))
}

impl RunState {
    /// How many steps have ended well.
    #[must_use]
    pub fn steps_done(&self) -> usize {
        self.steps.iter().filter(|step| step.phase == StepPhase::Complete).count()
    }

    /// How far the steps have come, with the word for it. Of a run in which nothing goes on any more it matters how many
    /// ended well: the others did not. `lost`: a reader found it without its runner.
    #[must_use]
    pub fn progress(&self, lost: bool) -> (usize, &'static str) {
        if self.is_over() || lost { (self.steps_done(), "done") } else { (self.steps_ended(), "ended") }
    }

    /// What it cost, as people read it: `$0.84+`.
    #[must_use]
    pub fn cost_told(&self) -> Option<String> {
        self.cost().map(|usd| format!("{}{}", cost(usd.0), or_more(self.is_cost_partial())))
    }

    /// How many tokens it used, as people read it: `412k+`. Nothing where nobody tells of any.
    #[must_use]
    pub fn tokens_told(&self) -> Option<String> {
        let tokens = Some(self.tokens()).filter(|tokens| !tokens.is_zero())?;
        Some(format!("{}{}", count(tokens.total()), or_more(self.are_tokens_partial())))
    }

    /// Whether some agent told no turns, so that the sum is at least that. Who has just begun may have had none yet.
    #[must_use]
    pub fn are_turns_partial(&self) -> bool {
        let did = |s: &StepState| s.phase.is_terminal() || s.tool_count > 0 || !s.tokens.is_zero();
        self.steps.iter().any(|s| s.worked() && s.turn_count == 0 && did(s))
    }

    /// The same of its tool calls. Who told turns may have called none.
    #[must_use]
    pub fn are_calls_partial(&self) -> bool {
        let untold = |s: &StepState| s.worked() && s.turn_count == 0 && s.tool_count == 0;
        self.steps.iter().any(|s| untold(s) && s.phase.is_terminal())
    }

    /// Whether of what the run used of this a part is not told.
    #[must_use]
    pub fn is_partial(&self, metric: Metric) -> bool {
        match metric {
            Metric::Cost => self.is_cost_partial(),
            Metric::Tokens => self.are_tokens_partial(),
            Metric::Turns | Metric::ToolCalls => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostUsd, RunPhase, Timestamp, Tokens};

    fn step(phase: StepPhase, used: Option<(u64, f64)>) -> StepState {
        StepState {
            tokens: Tokens { input: used.map_or(0, |(tokens, _)| tokens), ..Tokens::default() },
            cost: used.map(|(_, usd)| CostUsd(usd)),
            phase,
            ..StepState::default()
        }
    }

    #[test]
    fn a_sum_of_which_a_part_is_not_told_says_that_it_is_at_least_that() {
        use StepPhase::{Complete, Pending};
        let told = step(Complete, Some((1_000, 0.5)));
        let whole = RunState { steps: vec![told.clone(), step(Pending, None)], ..RunState::default() };
        assert_eq!((whole.cost_told().as_deref(), whole.tokens_told().as_deref()), (Some("$0.50"), Some("1.0k")));
        assert_eq!(cost_of(&whole.steps), Some((0.5, false)));
        let part = RunState { steps: vec![told, step(Complete, None)], ..RunState::default() };
        assert_eq!((part.cost_told().as_deref(), part.tokens_told().as_deref()), (Some("$0.50+"), Some("1.0k+")));
        assert_eq!(cost_of(&part.steps), Some((0.5, true)));
        let partial = Metric::ALL.map(|metric| part.is_partial(metric));
        assert_eq!(partial, Metric::ALL.map(|metric| matches!(metric, Metric::Cost | Metric::Tokens)));
        // Nothing is not at least nothing.
        let none = RunState { steps: vec![step(Complete, None)], ..RunState::default() };
        assert_eq!((none.cost_told(), none.tokens_told(), cost_of(&none.steps)), (None, None, None));
    }

    #[test]
    fn of_a_run_in_which_nothing_goes_on_only_what_ended_well_is_counted() {
        let steps = [StepPhase::Complete, StepPhase::Failed, StepPhase::Stopped].map(|phase| step(phase, None));
        let on = RunState { steps: steps.to_vec(), phase: RunPhase::Running, ..RunState::default() };
        assert_eq!((on.progress(false), on.progress(true)), ((3, "ended"), (1, "done")));
        let over = RunState { phase: RunPhase::Failed, ended_at: Some(Timestamp::from_millis(9)), ..on };
        assert_eq!(over.progress(false), (1, "done"));
    }
}
