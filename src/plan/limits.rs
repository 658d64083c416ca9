//! What a plan grants, as the core counts it.

use std::time::Duration;

use super::{Budget, LogicalStep, Plan, Step};
use crate::run::{Limits, Raise, RunState};

impl Step {
    /// What the step may use beside its time.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { tool_ms: self.tool_timeout.map(millis), tool_exempt: self.tool_exempt.clone(), ..limits(&self.budget) }
    }
}

impl Plan {
    /// What all steps together may use beside the run's time. Tool calls have their limits of time in the steps.
    #[must_use]
    pub fn run_limits(&self) -> Limits {
        Limits { usage_spares_children: self.usage_spares_children, ..limits(&self.budget) }
    }
}

impl Plan {
    /// Takes over the limits that a run of this plan ended with: what was raised while it went on counts for the next
    /// one too. A state that knows of no limits changes nothing.
    pub fn take_limits(&mut self, state: &RunState) {
        self.budget.take(&state.limits, state.timeout_ms);
        let members = self.steps.iter_mut().flat_map(|entry| match entry {
            LogicalStep::Single(step) => std::slice::from_mut(&mut **step),
            LogicalStep::Group { steps, .. } => steps.as_mut_slice(),
        });
        for (step, known) in members.zip(&state.steps) {
            step.budget.take(&known.limits, known.timeout_ms);
            step.tool_timeout = known.limits.tool_ms.map(Duration::from_millis).or(step.tool_timeout);
        }
    }
}

impl Budget {
    fn take(&mut self, limits: &Limits, time_ms: Option<u64>) {
        self.time = time_ms.map(Duration::from_millis).or(self.time);
        self.idle = limits.idle_ms.map(Duration::from_millis).or(self.idle);
        self.turns = limits.turns.or(self.turns);
        self.tool_calls = limits.tool_calls.or(self.tool_calls);
        self.tokens = limits.tokens.or(self.tokens);
        self.cost = limits.cost.or(self.cost);
    }

    /// Takes a limit over.
    ///
    /// # Errors
    /// Why the limits would make no sense afterwards; they are as they were then.
    pub fn change(&mut self, raise: Raise) -> Result<(), String> {
        if let Raise::Time(time) = raise {
            self.time = Some(time);
            return Ok(());
        }
        let mut after = limits(self);
        raise.apply(&mut after)?;
        self.idle = after.idle_ms.map(Duration::from_millis);
        self.turns = after.turns;
        self.tool_calls = after.tool_calls;
        self.tokens = after.tokens;
        self.cost = after.cost;
        Ok(())
    }
}

fn limits(budget: &Budget) -> Limits {
    Limits {
        idle_ms: budget.idle.map(millis),
        turns: budget.turns,
        tool_calls: budget.tool_calls,
        tool_block: budget.tool_block.clone().unwrap_or_default(),
        tokens: budget.tokens,
        cost: budget.cost,
        ..Limits::default()
    }
}

/// Whole milliseconds.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostUsd, Limit, ToolBlock, TurnLimit};

    #[test]
    fn the_core_gets_what_the_plan_grants() {
        let budget = Budget {
            time: Some(Duration::from_secs(1)),
            idle: Some(Duration::from_millis(1500)),
            turns: Some(TurnLimit { max: 4, grace: 2 }),
            tool_calls: Some(Limit { soft: Some(2), hard: Some(3) }),
            tool_block: Some(ToolBlock::Names(vec!["read".into()])),
            tokens: Some(Limit { soft: None, hard: Some(7) }),
            cost: Some(Limit { soft: Some(CostUsd(0.5)), hard: None }),
        };
        let run = Limits {
            idle_ms: Some(1500),
            turns: budget.turns,
            tool_calls: budget.tool_calls,
            tool_block: ToolBlock::Names(vec!["read".into()]),
            tokens: budget.tokens,
            cost: budget.cost,
            usage_spares_children: true,
            ..Limits::default()
        };
        let plan = Plan { budget: budget.clone(), usage_spares_children: true, ..Plan::default() };
        assert_eq!(plan.run_limits(), run);
        let step = Step {
            budget,
            tool_timeout: Some(Duration::from_secs(6)),
            tool_exempt: vec!["ask".into()],
            ..Step::default()
        };
        let own = Limits { usage_spares_children: false, tool_ms: Some(6000), tool_exempt: vec!["ask".into()], ..run };
        assert_eq!(step.limits(), own);
        assert_eq!(Step::default().limits(), Limits::default());
    }
}
