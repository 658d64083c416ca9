//! What was used of the limits, what follows from it, and how long the rest will last (runner-behaviour 3).

use std::time::Duration;

use super::{Limit, RunState, StepState, Timestamp, TurnLimit, Used};

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Answers of the model.
    Turns,
    /// Tool calls.
    ToolCalls,
    /// Tokens, input plus output.
    Tokens,
    /// US dollars.
    Cost,
}

impl Metric {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 4] = [Self::Turns, Self::ToolCalls, Self::Tokens, Self::Cost];

    /// The key that plans use.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::ToolCalls => "tool_calls",
            Self::Tokens => "tokens",
            Self::Cost => "cost_usd",
        }
    }

    /// From the key.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.key() == key)
    }

    /// An amount of it without its unit, such as `12,000`.
    #[must_use]
    pub fn amount(self, amount: f64) -> String {
        match self {
            // `as` saturates.
            Self::Turns | Self::ToolCalls | Self::Tokens => crate::text::grouped(amount as u64),
            // Six decimals, as a cost of one call may be that small (runner-behaviour 3.3).
            Self::Cost => format!("${amount:.6}"),
        }
    }

    /// An amount of it in words, such as `12 turns`.
    #[must_use]
    pub fn words(self, amount: f64) -> String {
        Used::all(amount).words(self)
    }
}

/// How far a metric has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The soft limit is reached.
    Soft,
    /// The hard limit is reached, but a tool is open: the end waits for it (turns only).
    Deferred,
    /// The hard limit is reached and the child is ended.
    Hard,
    /// The hard limit was passed with the very last word, so that there is nothing left to be ended.
    Late,
}

impl Stage {
    /// The word that events use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Deferred => "deferred",
            Self::Hard => "hard",
            Self::Late => "late",
        }
    }

    /// From the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Soft, Self::Deferred, Self::Hard, Self::Late].into_iter().find(|s| s.as_str() == word)
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Of what.
    pub metric: Metric,
    /// Which.
    pub stage: Stage,
    /// When.
    pub at: Timestamp,
    /// How much was used then.
    pub used: f64,
}

/// What became of the limits of a run or a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetState {
    /// Limits that were reached, oldest first; each once unless the limit was raised meanwhile.
    pub reached: Vec<Reached>,
    /// The limit that ended it.
    pub exceeded: Option<Metric>,
    /// What a runner of others says was used of a metric of the run, where its steps do not tell all of it.
    pub told: Vec<(Metric, f64)>,
}

impl BudgetState {
    /// The newest time that a stage was reached.
    #[must_use]
    pub fn at(&self, metric: Metric, stage: Stage) -> Option<&Reached> {
        self.reached.iter().rev().find(|r| r.metric == metric && r.stage == stage)
    }

    /// What a runner of others says was used of a metric.
    #[must_use]
    pub fn told(&self, metric: Metric) -> Option<f64> {
        self.told.iter().find(|(of, _)| *of == metric).map(|(_, used)| *used)
    }

    /// Forgets what was reached of a metric, when its limit was raised beyond it.
    pub fn forget(&mut self, metric: Metric) {
        self.reached.retain(|r| r.metric != metric);
    }
}

/// One limit with what was used of it, for a screen or a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meter {
    /// What is counted.
    pub metric: Metric,
    /// How much was used, where it is known: some agents tell of tokens and money only at their end.
    pub used: Option<Used>,
    /// The warning.
    pub soft: Option<f64>,
    /// The end.
    pub hard: Option<f64>,
    /// When the end comes if it goes on like this; an estimate, from now.
    pub left: Option<Duration>,
}

impl Meter {
    /// How much of the hard limit (or the soft one, where there is no other) was used, 0 to 1 and beyond.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.hard.or(self.soft) {
            Some(limit) if limit > 0.0 => self.used.unwrap_or_default().amount / limit,
            _ => 0.0,
        }
    }
}

/// What a step used of a metric. Tokens and money of a step without any report are zero.
#[must_use]
pub fn used(step: &StepState, metric: Metric) -> f64 {
    let count = |n: u64| n as f64;
    match metric {
        Metric::Turns => count(step.turn_count),
        Metric::ToolCalls => count(step.tool_count),
        Metric::Tokens => count(step.tokens.total()),
        Metric::Cost => step.cost.unwrap_or_default().0,
    }
}

/// Whether [`used`] means something: an agent that has begun and told nothing of its tokens, or of its money, may have used
/// any amount.
#[must_use]
pub fn is_known(step: &StepState, metric: Metric) -> bool {
    let quiet = step.phase == super::StepPhase::Pending || matches!(step.runner, super::RunnerKind::ExternalCli { .. });
    match metric {
        Metric::Turns | Metric::ToolCalls => true,
        Metric::Tokens => quiet || !step.tokens.is_zero(),
        Metric::Cost => quiet || step.cost.is_some(),
    }
}

/// Whether [`used_by_run`] means something: it does as soon as one step tells something.
#[must_use]
pub fn is_known_of_run(state: &RunState, metric: Metric) -> bool {
    let told = used_by_run(state, metric).amount > 0.0 || state.budget.told(metric).is_some();
    told || state.steps.iter().filter(|s| !s.carried_over).all(|s| is_known(s, metric))
}

/// What all steps together used of a metric; no less than what the run itself tells.
#[must_use]
pub fn used_by_run(state: &RunState, metric: Metric) -> Used {
    let steps: f64 = state.steps.iter().filter(|s| !s.carried_over).map(|s| used(s, metric)).sum();
    let amount = steps.max(state.budget.told(metric).unwrap_or_default());
    Used { amount, partial: state.is_partial(metric) }
}

/// The soft and the hard limit of a metric.
#[must_use]
pub fn limit(limits: &super::Limits, metric: Metric) -> Limit<f64> {
    let counts = |l: Option<Limit<u64>>| {
        let l = l.unwrap_or_default();
        Limit { soft: l.soft.map(|n| n as f64), hard: l.hard.map(|n| n as f64) }
    };
    match metric {
        Metric::Turns => limits
            .turns
            .map_or_else(Limit::default, |t| Limit { soft: Some(t.max as f64), hard: Some(TurnLimit::hard(t) as f64) }),
        Metric::ToolCalls => counts(limits.tool_calls),
        Metric::Tokens => counts(limits.tokens),
        Metric::Cost => {
            let l = limits.cost.unwrap_or_default();
            Limit { soft: l.soft.map(|c| c.0), hard: l.hard.map(|c| c.0) }
        }
    }
}

/// Every limit of a step with what was used of it.
#[must_use]
pub fn meters(state: &RunState, step: &StepState, now: Timestamp) -> Vec<Meter> {
    let awake = step.started_at.map(|from| state.gaps.awake(from, step.ended_at.unwrap_or(now)));
    let running = step.phase == super::StepPhase::Running;
    let used = |metric| is_known(step, metric).then(|| Used::all(used(step, metric)));
    all(&step.limits, used, awake.filter(|_| running))
}

/// Every limit of the run with what was used of it.
#[must_use]
pub fn run_meters(state: &RunState, now: Timestamp) -> Vec<Meter> {
    let awake = state.started_at.map(|from| state.gaps.awake(from, state.ended_at.unwrap_or(now)));
    let used = |metric| is_known_of_run(state, metric).then(|| used_by_run(state, metric));
    all(&state.limits, used, awake.filter(|_| state.ended_at.is_none()))
}

fn all(limits: &super::Limits, used: impl Fn(Metric) -> Option<Used>, awake: Option<Duration>) -> Vec<Meter> {
    let mut out = Vec::new();
    for metric in Metric::ALL {
        let limit = limit(limits, metric);
        if limit == Limit::default() {
            continue;
        }
        let used = used(metric);
        let pace = awake.zip(limit.hard.or(limit.soft)).zip(used);
        let left = pace.and_then(|((awake, end), used)| estimate(used.amount, end, awake));
        out.push(Meter { metric, used, soft: limit.soft, hard: limit.hard, left });
    }
    out
}

/// When a limit comes if what was used in `awake` goes on at the same pace. `None` while nothing can be said.
#[must_use]
fn estimate(used: f64, limit: f64, awake: Duration) -> Option<Duration> {
    if used <= 0.0 || awake < Duration::from_secs(1) {
        return None;
    }
    let seconds = (limit - used).max(0.0) * awake.as_secs_f64() / used;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The limit of the run that keeps the next child from starting where limits spare the children that run, with what was
/// used of it; tokens go before money (runner-behaviour 3.3).
#[must_use]
pub fn exhausted(state: &RunState) -> Option<(Metric, Used)> {
    if !state.limits.usage_spares_children {
        return None;
    }
    let used = |metric| (metric, used_by_run(state, metric));
    let over =
        |(metric, used): &(Metric, Used)| limit(&state.limits, *metric).hard.is_some_and(|hard| used.amount >= hard);
    [Metric::Tokens, Metric::Cost].into_iter().map(used).find(over)
}

/// The sentence of a limit that the run has reached.
#[must_use]
pub fn run_sentence(metric: Metric, used: Used, limits: &super::Limits) -> String {
    let used = used.words(metric);
    match limit(limits, metric).hard {
        Some(hard) => format!("The run is over budget: {used} used, {} allowed.", metric.words(hard)),
        None => format!("The run is over budget: {used} used."),
    }
}

/// The sentence of a limit that somebody passed with their last word.
#[must_use]
pub fn late_sentence(who: &str, metric: Metric, used: Used, limits: &super::Limits) -> String {
    let hard = limit(limits, metric).hard.unwrap_or_default();
    let (used, hard) = (used.words(metric), metric.words(hard));
    format!("{who} went over its limit with its last word: {used} used, {hard} allowed.")
}

/// The sentence of a warning that the run has reached: what was used, and of how much.
#[must_use]
pub fn run_warning(metric: Metric, used: Used, limits: &super::Limits) -> String {
    let used = used.words(metric);
    match limit(limits, metric).hard {
        Some(hard) => format!("The run has used {used}; {} are allowed.", metric.words(hard)),
        None => format!("The run has used {used}."),
    }
}

/// The sentence of a limit that ended a step.
#[must_use]
pub fn sentence(metric: Metric, used: f64, limits: &super::Limits) -> String {
    match (metric, limits.turns) {
        (Metric::Turns, Some(TurnLimit { max, grace })) => {
            format!("Subagent exceeded turn budget: {used} turns, {max} allowed and {grace} more to finish.")
        }
        _ => {
            let hard = limit(limits, metric).hard.unwrap_or_default();
            let guard = metric == Metric::ToolCalls && limits.tool_calls_observed;
            let guard = if guard { " No guard in the agent refused them, so the runner ended it." } else { "" };
            format!("Over budget: {} used, {} allowed.{guard}", metric.words(used), metric.words(hard))
        }
    }
}

/// Whether a tool's result is the refusal of a call beyond the hard limit, by the words of the package's guard inside
/// the agent (runner-behaviour 3.2).
#[must_use]
pub fn is_block(result: &str) -> bool {
    result.contains("Tool budget hard limit reached")
}

/// What an agent is told when its turns come to an end (runner-behaviour 3.1).
#[must_use]
pub fn wrap_up(turns: u64, limit: TurnLimit) -> String {
    format!(
        "{turns} of your {} turns are used; at most {} more are granted to finish. Start nothing new, use no more tools \
         than you must, and give your final answer now.",
        limit.max, limit.grace
    )
}

/// What an agent with a limit of turns reads about it in its system prompt (runner-behaviour 3.1).
#[must_use]
pub fn prompt_note(limit: TurnLimit) -> String {
    format!(
        "## Turn budget\n\nYou have {} turns; an answer or a round of tool calls is one turn. At most {} more are granted \
         to finish, then you are broken off. When the turns come to an end stop starting tools and give your final \
         answer.",
        limit.max, limit.grace
    )
}

/// The text of a step as others get it: with what the turn limit did to it (runner-behaviour 3.1).
#[must_use]
pub fn annotate(step: &StepState, text: String) -> String {
    let turns = |stage| step.budget.at(Metric::Turns, stage).map(|r| r.used);
    let Some(limit) = step.limits.turns else { return text };
    if let Some(used) = turns(Stage::Hard) {
        let message = sentence(Metric::Turns, used, &step.limits);
        return if text.trim().is_empty() || text == message {
            message
        } else {
            format!("{message}\n\nPartial output before the turn budget ended it:\n\n{text}")
        };
    }
    if let Some(used) = turns(Stage::Soft) {
        return format!("[turn budget: {} turns of {}; it was asked to wrap up]\n\n{text}", used, limit.max);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;

    #[test]
    fn an_estimate_says_nothing_before_there_is_a_pace() {
        let second = Duration::from_secs(1);
        assert_eq!(estimate(0.0, 10.0, 60 * second), None);
        assert_eq!(estimate(5.0, 10.0, second / 2), None);
        assert_eq!(estimate(5.0, 10.0, 60 * second), Some(60 * second));
        assert_eq!(estimate(20.0, 10.0, 60 * second), Some(Duration::ZERO));
        assert_eq!(estimate(1e-300, f64::MAX, 60 * second), None, "an overflow is no estimate");
    }

    #[test]
    fn the_text_of_a_step_tells_what_its_turn_limit_did() {
        let mut step = StepState {
            limits: Limits { turns: Some(TurnLimit { max: 2, grace: 1 }), ..Limits::default() },
            ..StepState::default()
        };
        assert_eq!(annotate(&step, "done".into()), "done");
        let reached = |stage, used| Reached { metric: Metric::Turns, stage, at: Timestamp::default(), used };
        step.budget.reached.push(reached(Stage::Soft, 2.0));
        assert_eq!(annotate(&step, "done".into()), "[turn budget: 2 turns of 2; it was asked to wrap up]\n\ndone");
        step.budget.reached.push(reached(Stage::Hard, 3.0));
        let text = annotate(&step, "half".into());
        assert!(text.starts_with("Subagent exceeded turn budget: 3 turns, 2 allowed and 1 more to finish."), "{text}");
        assert!(text.ends_with("Partial output before the turn budget ended it:\n\nhalf"), "{text}");
    }
}
