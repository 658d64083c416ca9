//! What is told of a run as a whole: how far it is and what it used. A sum of which a part is not told is at least that,
//! and is marked wherever it is shown (product 10).

use super::{Metric, RunState, StepPhase, StepState};
use crate::text::{cost, count};

/// How much of a metric was used, and whether that is only a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// How much.
    pub amount: f64,
    /// A part is not told, so that it is at least that.
    pub partial: bool,
}

impl Used {
    /// An amount of which all is told.
    #[must_use]
    pub const fn all(amount: f64) -> Self {
        Self { amount, partial: false }
    }

    /// With the amount in the words of whoever shows it: `$0.84+`.
    #[must_use]
    pub fn told(self, amount: impl FnOnce(f64) -> String) -> String {
        format!("{}{}", amount(self.amount), or_more(self.partial))
    }

    /// As the sentences about limits say it: `12,000+ tokens`.
    #[must_use]
    pub fn words(self, metric: Metric) -> String {
        let unit = match metric {
            Metric::Turns => " turn",
            Metric::ToolCalls => " tool call",
            Metric::Tokens => " token",
            Metric::Cost => "",
        };
        let one = unit.is_empty() || (self.amount == 1.0 && !self.partial);
        format!("{}{unit}{}", self.told(|amount| metric.amount(amount)), if one { "" } else { "s" })
    }
}

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
        self.cost().map(|usd| Used { amount: usd.0, partial: self.is_cost_partial() }.told(cost))
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

    /// Whether of some agent that worked the cost is not told, so that the sum is at least that. Where only that of the whole
    /// is told it is all of it.
    #[must_use]
    pub fn is_cost_partial(&self) -> bool {
        lacks_a_part(&self.steps, Metric::Cost)
    }

    /// The same of its tokens.
    #[must_use]
    pub fn are_tokens_partial(&self) -> bool {
        lacks_a_part(&self.steps, Metric::Tokens)
    }

    /// The same of what counts for the limit of the run on this: what an earlier run had done does not.
    #[must_use]
    pub fn is_partial(&self, metric: Metric) -> bool {
        lacks_a_part(self.steps.iter().filter(|step| !step.carried_over), metric)
    }
}

/// Whether some of the steps tell what they used of this, and some that worked do not.
fn lacks_a_part<'s>(steps: impl IntoIterator<Item = &'s StepState>, metric: Metric) -> bool {
    let (mut told, mut untold) = (false, false);
    for step in steps {
        let tells = match metric {
            Metric::Cost => step.cost.is_some(),
            Metric::Tokens => !step.tokens.is_zero(),
            Metric::Turns | Metric::ToolCalls => true,
        };
        told |= tells;
        untold |= !tells && step.worked();
    }
    told && untold
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
        // What an earlier run had done counts in the sum of all, and not for a limit of this one.
        let [told, silent] = [part.steps[0].clone(), StepState { carried_over: true, ..part.steps[1].clone() }];
        let after = RunState { steps: vec![told, silent], ..RunState::default() };
        assert!(after.is_cost_partial() && after.are_tokens_partial());
        assert!(!Metric::ALL.iter().any(|metric| after.is_partial(*metric)));
        // Nothing is not at least nothing.
        let none = RunState { steps: vec![step(Complete, None)], ..RunState::default() };
        assert_eq!((none.cost_told(), none.tokens_told(), cost_of(&none.steps)), (None, None, None));
    }

    #[test]
    fn an_amount_in_words_says_when_it_is_only_a_part() {
        let words = |amount, partial| Metric::ALL.map(|metric| Used { amount, partial }.words(metric));
        assert_eq!(words(12_000.0, false), ["12,000 turns", "12,000 tool calls", "12,000 tokens", "$12000.000000"]);
        assert_eq!(words(1.0, false), ["1 turn", "1 tool call", "1 token", "$1.000000"]);
        assert_eq!(words(1.0, true), ["1+ turns", "1+ tool calls", "1+ tokens", "$1.000000+"]);
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
