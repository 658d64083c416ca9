//! Limits, thresholds, notices and what was reached, as our own parts of the status and of the event log hold them
//! (run-directory 3.9): below the key `subdeck`, or in records whose type begins with `subdeck.`.

use serde_json::Map;

use super::json::{Json, Obj};
use super::look::Look;
use crate::run::{
    Amount, BudgetState, Condition, CostUsd, Gap, Gaps, Limit, Limits, Metric, NextAttempt, Notice, Raise, Reached,
    Reason, RunState, Stage, StepState, Thresholds, ToolBlock, Transport, TurnLimit,
};

/// Limits; `None` when there are none.
pub(super) fn limits(limits: &Limits) -> Option<Obj> {
    let counts = |l: Option<Limit<u64>>| l.map(|l| soft_hard(l.soft, l.hard));
    let mut obj = Obj::new();
    obj.opt("idleMs", limits.idle_ms);
    obj.opt(
        "turns",
        limits.turns.map(|t| {
            let mut turns = Obj::new();
            turns.set("max", t.max).set("grace", t.grace);
            turns
        }),
    );
    obj.opt("toolCalls", counts(limits.tool_calls));
    if let ToolBlock::Names(names) = &limits.tool_block {
        obj.set("block", names.iter().collect::<Json>());
    }
    obj.opt("tokens", counts(limits.tokens));
    obj.opt("costUsd", limits.cost.map(|l| soft_hard(l.soft.map(|c| c.0), l.hard.map(|c| c.0))));
    obj.opt("toolMs", limits.tool_ms);
    obj.opt("toolExempt", names(&limits.tool_exempt)).flag("sparesChildren", limits.usage_spares_children);
    obj.flag("toolCallsObserved", limits.tool_calls_observed);
    Some(obj).filter(|o| !o.is_empty())
}

fn soft_hard<T: Into<Json>>(soft: Option<T>, hard: Option<T>) -> Obj {
    let mut obj = Obj::new();
    obj.opt("soft", soft).opt("hard", hard);
    obj
}

fn names(list: &[String]) -> Option<Json> {
    (!list.is_empty()).then(|| list.iter().collect())
}

/// Limits from the object that `key` names.
pub(super) fn read_limits(look: &Look<'_>, key: &str) -> Limits {
    let Some(look) = look.obj(key) else { return Limits::default() };
    let counts = |key| look.obj(key).map(|l| Limit { soft: l.count("soft"), hard: l.count("hard") });
    Limits {
        idle_ms: look.count("idleMs"),
        turns: look.obj("turns").and_then(|t| Some(TurnLimit { max: t.count("max")?, grace: t.count("grace")? })),
        tool_calls: counts("toolCalls"),
        tool_block: look.strings("block").map_or(ToolBlock::All, ToolBlock::Names),
        tokens: counts("tokens"),
        cost: look.obj("costUsd").map(|l| Limit { soft: l.num("soft").map(CostUsd), hard: l.num("hard").map(CostUsd) }),
        tool_ms: look.count("toolMs"),
        tool_exempt: look.strings("toolExempt").unwrap_or_default(),
        usage_spares_children: look.is("sparesChildren"),
        tool_calls_observed: look.is("toolCallsObserved"),
    }
}

/// Thresholds; `None` when they are the usual ones. A rule that is off is left out.
pub(super) fn thresholds(rules: &Thresholds) -> Option<Obj> {
    if *rules == Thresholds::default() {
        return None;
    }
    let mut obj = Obj::new();
    obj.set("enabled", rules.enabled);
    let each = [
        ("idleMs", rules.idle_ms),
        ("toolOpenMs", rules.tool_open_ms),
        ("longMs", rules.long_ms),
        ("longTurns", rules.long_turns),
        ("longTokens", rules.long_tokens),
        ("failures", rules.failures),
        ("firstEventMs", rules.first_event_ms),
        ("repeats", rules.repeats),
    ];
    for (key, value) in each {
        obj.opt(key, value);
    }
    if !rules.tool_open_of.is_empty() {
        let mut tools = Obj::new();
        for (tool, ms) in &rules.tool_open_of {
            tools.set(tool, *ms);
        }
        obj.set("tools", tools);
    }
    obj.opt("exempt", names(&rules.exempt));
    Some(obj)
}

/// Thresholds from the object that `key` names; the usual ones where there is none.
pub(super) fn read_thresholds(look: &Look<'_>, key: &str) -> Thresholds {
    let Some(look) = look.obj(key) else { return Thresholds::default() };
    let empty = Map::new();
    let tools = look.obj("tools").unwrap_or(Look(&empty));
    Thresholds {
        enabled: look.bool("enabled").unwrap_or(true),
        idle_ms: look.count("idleMs"),
        tool_open_ms: look.count("toolOpenMs"),
        tool_open_of: tools.0.keys().filter_map(|tool| Some((tool.clone(), tools.count(tool)?))).collect(),
        exempt: look.strings("exempt").unwrap_or_default(),
        long_ms: look.count("longMs"),
        long_turns: look.count("longTurns"),
        long_tokens: look.count("longTokens"),
        failures: look.count("failures"),
        first_event_ms: look.count("firstEventMs"),
        repeats: look.count("repeats"),
    }
}

/// What was reached; `None` when nothing was.
pub(super) fn budget(budget: &BudgetState) -> Option<Obj> {
    let mut obj = Obj::new();
    if !budget.reached.is_empty() {
        let reached = budget.reached.iter().map(|r| {
            let mut entry = Obj::new();
            entry.set("metric", r.metric.key()).set("stage", r.stage.as_str()).set("at", r.at).set("used", r.used);
            entry
        });
        obj.set("reached", reached.collect::<Json>());
    }
    obj.opt("exceeded", budget.exceeded.map(Metric::key));
    Some(obj).filter(|o| !o.is_empty())
}

/// What was reached, from the object that `key` names.
pub(super) fn read_budget(look: &Look<'_>, key: &str) -> BudgetState {
    let Some(look) = look.obj(key) else { return BudgetState::default() };
    let reached = look.objs("reached").filter_map(|r| {
        Some(Reached {
            metric: Metric::parse(r.str("metric")?)?,
            stage: Stage::parse(r.str("stage")?)?,
            at: r.time("at")?,
            used: r.num("used")?,
        })
    });
    BudgetState { reached: reached.collect(), exceeded: look.str("exceeded").and_then(Metric::parse), told: Vec::new() }
}

/// A notice.
pub(super) fn notice(notice: &Notice) -> Obj {
    let condition = &notice.condition;
    let mut obj = Obj::new();
    obj.set("id", &notice.id).set("reason", condition.reason.as_str());
    obj.opt("subject", Some(&condition.subject).filter(|s| !s.is_empty()));
    obj.set("since", condition.since).set("raisedAt", notice.raised_at).set("times", notice.times);
    obj.opt("threshold", condition.threshold.map(amount)).opt("amount", condition.amount.map(amount));
    obj.set("evidence", &condition.evidence).opt("acknowledgedAt", notice.acknowledged);
    obj
}

fn amount(amount: Amount) -> Obj {
    let mut obj = Obj::new();
    match amount {
        Amount::Millis(ms) => obj.set("ms", ms),
        Amount::Count(count) => obj.set("count", count),
    };
    obj
}

/// A notice back.
pub(super) fn read_notice(look: &Look<'_>) -> Option<Notice> {
    let amount = |key| {
        let look = look.obj(key)?;
        look.count("ms").map(Amount::Millis).or_else(|| look.count("count").map(Amount::Count))
    };
    Some(Notice {
        id: look.text("id")?,
        condition: Condition {
            reason: Reason::parse(look.str("reason")?),
            subject: look.text("subject").unwrap_or_default(),
            since: look.time("since")?,
            threshold: amount("threshold"),
            amount: amount("amount"),
            evidence: look.text("evidence").unwrap_or_default(),
        },
        raised_at: look.time("raisedAt")?,
        times: look.small("times").unwrap_or(1),
        acknowledged: look.time("acknowledgedAt"),
    })
}

/// The value of a changed limit, as a request carries it.
pub(super) fn raise_value(raise: Raise) -> Json {
    match raise.value() {
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        _ => Json::Null,
    }
}

/// The attempt that follows.
pub(super) fn next_attempt(next: &NextAttempt) -> Obj {
    let mut obj = Obj::new();
    obj.set("at", next.at).opt("model", next.model.as_ref()).set("reason", &next.reason);
    obj.flag("taskByFile", next.task_by_file);
    obj.opt("transport", next.transport.map(Transport::word));
    obj
}

/// The attempt that follows, back.
pub(super) fn read_next_attempt(look: &Look<'_>) -> Option<NextAttempt> {
    Some(NextAttempt {
        at: look.time("at")?,
        model: look.text("model"),
        reason: look.text("reason").unwrap_or_default(),
        task_by_file: look.is("taskByFile"),
        transport: look.str("transport").and_then(Transport::of_word),
    })
}

/// The times that the machine slept; `None` when it did not.
pub(super) fn gaps(gaps: &Gaps) -> Option<Json> {
    let mut list = gaps.iter().peekable();
    list.peek()?;
    let list = list.map(|gap| {
        let mut obj = Obj::new();
        obj.set("until", gap.until).set("ms", u64::try_from(gap.slept.as_millis()).unwrap_or(u64::MAX));
        obj
    });
    Some(list.collect())
}

/// The times that the machine slept, back.
pub(super) fn read_gaps(look: &Look<'_>, key: &str) -> Gaps {
    let mut gaps = Gaps::default();
    for gap in look.objs(key) {
        if let (Some(until), Some(ms)) = (gap.time("until"), gap.count("ms")) {
            gaps.push(Gap { until, slept: std::time::Duration::from_millis(ms) });
        }
    }
    gaps
}

/// What the package's readers are told of a step's limits, in a status and in a result (run-directory 2.1.1, 5).
pub(super) fn budgets_of_step(obj: &mut Obj, step: &StepState) {
    let turns = |stage| step.budget.at(Metric::Turns, stage).is_some();
    obj.flag("turnBudgetExceeded", turns(Stage::Hard)).flag("wrapUpRequested", turns(Stage::Soft));
    obj.flag("toolBudgetBlocked", step.blocked_tool.is_some());
    obj.opt("turnBudget", turn_budget(step)).opt("toolBudget", tool_budget(step));
}

/// The same of a run: its turns and calls are those of the step that was started last.
pub(super) fn budgets_of_run(obj: &mut Obj, state: &RunState) {
    let newest = state.last_started.and_then(|id| state.step(id));
    obj.opt("turnBudget", newest.and_then(turn_budget));
    let turns = |stage| state.steps.iter().any(|s| s.budget.at(Metric::Turns, stage).is_some());
    obj.flag("turnBudgetExceeded", turns(Stage::Hard)).flag("wrapUpRequested", turns(Stage::Soft));
    obj.opt("toolBudget", newest.and_then(tool_budget));
    obj.flag("toolBudgetBlocked", state.steps.iter().any(|s| s.blocked_tool.is_some()));
    obj.opt("usageBudget", usage_budget(state));
}

/// The state of a turn limit as the package's readers know it (run-directory 2.2).
fn turn_budget(step: &StepState) -> Option<Obj> {
    let limit = step.limits.turns?;
    let at = |stage| step.budget.at(Metric::Turns, stage).map(|r| r.used as u64);
    let (soft, deferred, hard) = (at(Stage::Soft), at(Stage::Deferred), at(Stage::Hard));
    let outcome = match (soft, deferred, hard) {
        (_, _, Some(_)) => "exceeded",
        (_, Some(_), _) => "termination-deferred",
        (Some(_), ..) => "wrap-up-requested",
        _ => "within-budget",
    };
    let mut obj = Obj::new();
    obj.set("maxTurns", limit.max).set("graceTurns", limit.grace).set("turnCount", step.turn_count);
    obj.set("outcome", outcome).opt("wrapUpRequestedAtTurn", soft);
    obj.opt("terminationDeferredAtTurn", deferred).opt("exceededAtTurn", hard);
    Some(obj)
}

/// The state of a limit on tool calls as the package's readers know it (run-directory 2.2).
fn tool_budget(step: &StepState) -> Option<Obj> {
    let limit = step.limits.tool_calls?;
    let count = step.tool_count;
    let at = |stage| step.budget.at(Metric::ToolCalls, stage).map(|r| r.used as u64);
    let mut obj = Obj::new();
    let hard = limit.hard.or(limit.soft)?;
    obj.set("hard", hard).opt("soft", limit.soft);
    match &step.limits.tool_block {
        ToolBlock::All => obj.set("block", "*"),
        ToolBlock::Names(names) => obj.set("block", names.iter().collect::<Json>()),
    };
    let outcome = if step.blocked_tool.is_some() || limit.hard.is_some_and(|hard| count > hard) {
        "hard-blocked"
    } else if limit.soft.is_some_and(|soft| count >= soft) {
        "soft-reached"
    } else {
        "within-budget"
    };
    obj.set("toolCount", count).set("outcome", outcome);
    obj.opt("softReachedAt", at(Stage::Soft)).opt("hardReachedAt", at(Stage::Hard));
    obj.opt("blockedTool", step.blocked_tool.as_ref().filter(|tool| !tool.is_empty()));
    Some(obj)
}

/// The state of the run's limits on tokens and money as the package's readers know it (run-directory 2.2).
pub(super) fn usage_budget(state: &RunState) -> Option<Obj> {
    let mut obj = Obj::new();
    let mut reason = None;
    let metric = |metric: Metric| {
        let limit = crate::run::budget::limit(&state.limits, metric);
        let hard = limit.hard.or(limit.soft)?;
        let used = crate::run::budget::used_by_run(state, metric).amount;
        let outcome = if limit.hard.is_some_and(|hard| used >= hard) {
            "hard-exceeded"
        } else if limit.soft.is_some_and(|soft| used >= soft) {
            "soft-exceeded"
        } else {
            "within-budget"
        };
        let mut entry = Obj::new();
        entry.opt("soft", limit.soft).set("hard", hard).set("used", used).set("outcome", outcome);
        Some((entry, outcome))
    };
    let (tokens, cost) = (metric(Metric::Tokens), metric(Metric::Cost));
    if tokens.is_none() && cost.is_none() {
        return None;
    }
    obj.set("version", 1).set("source", "reported");
    for (key, entry) in [("tokens", tokens), ("costUsd", cost)] {
        let Some((entry, outcome)) = entry else { continue };
        if outcome == "hard-exceeded" {
            reason = reason.or(Some(key));
        }
        obj.set(key, entry);
    }
    obj.set("exhausted", reason.is_some()).opt("reason", reason);
    Some(obj)
}
