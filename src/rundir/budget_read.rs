//! Limits and what became of them as the package's own runner writes them (run-directory 2.2): `turnBudget`,
//! `toolBudget` and `usageBudget`. Ours stand below `subdeck` and say more.

use super::look::Look;
use crate::run::{BudgetState, CostUsd, Limit, Limits, Metric, Reached, Stage, Timestamp, ToolBlock, TurnLimit};

/// The limits of a step, with what was reached of them; `at` stands for moments that are not known.
pub(super) fn step(look: &Look<'_>, at: Timestamp) -> (Limits, BudgetState) {
    let (mut limits, mut budget) = (Limits::default(), BudgetState::default());
    if let Some(turns) = look.obj("turnBudget") {
        limits.turns = turns
            .count("maxTurns")
            .map(|max| TurnLimit { max, grace: turns.count("graceTurns").unwrap_or(TurnLimit::GRACE) });
        let stages = [
            (Stage::Soft, "wrapUpRequestedAtTurn"),
            (Stage::Deferred, "terminationDeferredAtTurn"),
            (Stage::Hard, "exceededAtTurn"),
        ];
        for (stage, key) in stages {
            let reached = turns.num(key).map(|used| Reached { metric: Metric::Turns, stage, at, used });
            budget.reached.extend(reached);
        }
        if turns.str("outcome") == Some("exceeded") {
            budget.exceeded = Some(Metric::Turns);
        }
    }
    if look.is("turnBudgetExceeded") {
        budget.exceeded = Some(Metric::Turns);
    }
    if let Some(tools) = look.obj("toolBudget") {
        limits.tool_calls = Some(Limit { soft: tools.count("soft"), hard: tools.count("hard") });
        limits.tool_block = tools.strings("block").map_or(ToolBlock::All, ToolBlock::Names);
        if matches!(tools.str("outcome"), Some("soft-reached" | "hard-blocked")) {
            let used = tools.num("toolCount").unwrap_or_default();
            budget.reached.push(Reached { metric: Metric::ToolCalls, stage: Stage::Soft, at, used });
        }
    }
    (limits, budget)
}

/// The limits of the run, with what was reached of them.
pub(super) fn run(look: &Look<'_>, at: Timestamp) -> (Limits, BudgetState) {
    // A hard limit on use keeps only the next child from starting (runner-behaviour 3.3).
    let mut limits = Limits { usage_spares_children: true, ..Limits::default() };
    let mut budget = BudgetState::default();
    let Some(usage) = look.obj("usageBudget") else { return (Limits::default(), budget) };
    if let Some(tokens) = usage.obj("tokens") {
        limits.tokens = Some(Limit { soft: tokens.count("soft"), hard: tokens.count("hard") });
    }
    if let Some(cost) = usage.obj("costUsd") {
        limits.cost = Some(Limit { soft: cost.num("soft").map(CostUsd), hard: cost.num("hard").map(CostUsd) });
    }
    for (metric, key) in [(Metric::Tokens, "tokens"), (Metric::Cost, "costUsd")] {
        let Some(entry) = usage.obj(key) else { continue };
        budget.told.extend(entry.num("used").map(|used| (metric, used)));
        let stage = match entry.str("outcome") {
            Some("soft-exceeded") => Stage::Soft,
            Some("hard-exceeded") => Stage::Hard,
            _ => continue,
        };
        let used = entry.num("used").unwrap_or_default();
        budget.reached.push(Reached { metric, stage, at, used });
        if stage == Stage::Hard && budget.exceeded.is_none() {
            budget.exceeded = Some(metric);
        }
    }
    (limits, budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_package_writes_of_limits_is_understood() {
        let doc = serde_json::json!({
            "turnBudget": { "maxTurns": 3, "graceTurns": 2, "turnCount": 5, "outcome": "exceeded",
                            "wrapUpRequestedAtTurn": 3, "exceededAtTurn": 5 },
            "toolBudget": { "hard": 9, "soft": 4, "block": ["read"], "toolCount": 4, "outcome": "soft-reached" },
            "usageBudget": { "version": 1, "source": "reported", "exhausted": true, "reason": "tokens",
                             "tokens": { "soft": 5, "hard": 9, "used": 12, "outcome": "hard-exceeded" },
                             "costUsd": { "hard": 1.5, "used": 0.25, "outcome": "within-budget" } },
        });
        let look = Look(doc.as_object().unwrap());
        let at = Timestamp::from_millis(7);
        let (limits, budget) = step(&look, at);
        assert_eq!(limits.turns, Some(TurnLimit { max: 3, grace: 2 }));
        assert_eq!(limits.tool_calls, Some(Limit { soft: Some(4), hard: Some(9) }));
        assert_eq!(limits.tool_block, ToolBlock::Names(vec!["read".into()]));
        assert_eq!(budget.at(Metric::Turns, Stage::Hard).map(|r| r.used), Some(5.0));
        assert_eq!((budget.reached.len(), budget.exceeded), (3, Some(Metric::Turns)));
        let (limits, budget) = run(&look, at);
        assert!(limits.usage_spares_children);
        assert_eq!(limits.tokens, Some(Limit { soft: Some(5), hard: Some(9) }));
        assert_eq!(limits.cost.and_then(|c| c.hard), Some(CostUsd(1.5)));
        assert_eq!((budget.reached.len(), budget.exceeded), (1, Some(Metric::Tokens)));
        // What is within its limit is told too.
        assert_eq!((budget.told(Metric::Tokens), budget.told(Metric::Cost)), (Some(12.0), Some(0.25)));
        let state = crate::run::RunState { limits, budget, ..crate::run::RunState::default() };
        let used = |metric| crate::run::budget::used_by_run(&state, metric).amount;
        assert_eq!((used(Metric::Tokens), used(Metric::Cost)), (12.0, 0.25), "though no step tells any");
    }

    #[test]
    fn odd_values_are_absent() {
        let doc = serde_json::json!({ "turnBudget": { "maxTurns": "many" }, "toolBudget": [], "usageBudget": 7 });
        let look = Look(doc.as_object().unwrap());
        assert_eq!(step(&look, Timestamp::default()), (Limits::default(), BudgetState::default()));
        assert_eq!(run(&look, Timestamp::default()), (Limits::default(), BudgetState::default()));
    }
}
