//! Limits and what was used of them, as tables and JSON tell it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::run::{CostUsd, Limits, Meter, Metric, RunState, StepPhase, StepState, Timestamp, Used, budget, or_more};
use crate::text::{self as units, written};

/// How much of something.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Amount {
    /// Milliseconds.
    Time(u64),
    /// A number of things.
    Count(u64),
    /// US dollars.
    Money(f64),
}

/// One limit and its use; a limit without an end is only counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// The key of a plan.
    pub key: &'static str,
    /// What was used, where it is known.
    pub used: Option<Amount>,
    /// Whether a part of it is not told, so that it is at least that.
    pub partial: bool,
    /// The warning.
    pub soft: Option<Amount>,
    /// The end.
    pub hard: Option<Amount>,
    /// When the end comes if it goes on like this, in milliseconds from now; of a time what is left of it, while it runs.
    pub left_ms: Option<u64>,
}

/// Of the run: everything that is counted, limited or not.
#[must_use]
pub fn of_run(state: &RunState, now: Timestamp) -> Vec<Gauge> {
    let awake = |from: Option<Timestamp>, to: Timestamp| from.map(|from| state.gaps.awake(from, to));
    let silent = state.last_activity.filter(|_| !state.is_over());
    let times = Times {
        used: awake(state.started_at, state.ended_at.unwrap_or(now)),
        limit_ms: state.timeout_ms,
        running: !state.is_over() && state.lost.is_none(),
        silent: awake(silent, now),
        // It counts in the steps.
        silence_counts: false,
    };
    let told = |metric| metric != Metric::Cost || state.cost().is_some() || state.budget.told(metric).is_some();
    let known = |metric| told(metric) && budget::is_known_of_run(state, metric);
    let used = |metric| known(metric).then(|| budget::used_by_run(state, metric));
    all(&times, &state.limits, used, &budget::run_meters(state, now))
}

/// Of a step: everything that is counted, limited or not.
#[must_use]
pub fn of_step(state: &RunState, step: &StepState, now: Timestamp) -> Vec<Gauge> {
    let awake = |from: Option<Timestamp>, to: Timestamp| from.map(|from| state.gaps.awake(from, to));
    let running = step.phase == StepPhase::Running && state.lost.is_none();
    let silence_counts = running && step.may_be_idle();
    // What is a sign of life ends the silence for as long as it lasts.
    let silent = step.silent_since().filter(|_| step.phase == StepPhase::Running);
    let silent = silent.map(|since| if silence_counts { since } else { now });
    let times = Times {
        used: awake(step.started_at.filter(|_| step.elapsed(now).is_some()), step.ended_at.unwrap_or(now)),
        limit_ms: step.timeout_ms,
        running,
        silent: awake(silent, now),
        silence_counts,
    };
    // No command costs money, and nobody says that it cost none.
    let told = |metric| metric != Metric::Cost || step.cost.is_some();
    let used = |metric| (told(metric) && budget::is_known(step, metric)).then(|| Used::all(budget::used(step, metric)));
    let mut gauges = all(&times, &step.limits, used, &budget::meters(state, step, now));
    // The call that is nearest to its end; quick tools have a limit though nobody set one.
    let open = step.open.iter().filter(|call| step.current_call().is_some() && !step.asks_about(call));
    let open = open.filter_map(|c| Some((ms(state.gaps.awake(c.started_at, now)), step.limits.tool_limit(&c.tool)?)));
    let nearest = open.min_by_key(|(used, most)| most.saturating_sub(*used));
    if let Some(most) = nearest.map(|(_, most)| most).or(step.limits.tool_ms) {
        let used = nearest.map(|(used, _)| Amount::Time(used));
        let left_ms = nearest.filter(|_| running).map(|(used, most)| most.saturating_sub(used));
        gauges.push(Gauge {
            key: "tool_timeout",
            used,
            partial: false,
            soft: None,
            hard: Some(Amount::Time(most)),
            left_ms,
        });
    }
    gauges
}

/// Of the counted limits only those that are set, without what depends on the moment.
#[must_use]
pub fn counted(state: &RunState, step: Option<&StepState>) -> Vec<Gauge> {
    // Without a moment there is no pace.
    let now = Timestamp::default();
    let mut gauges = step.map_or_else(|| of_run(state, now), |step| of_step(state, step, now));
    gauges.retain(|g| Metric::parse(g.key).is_some() && g.is_limited());
    gauges.iter_mut().for_each(|g| g.left_ms = None);
    gauges
}

/// What is measured in time.
struct Times {
    used: Option<Duration>,
    limit_ms: Option<u64>,
    /// Whether time is being used.
    running: bool,
    /// Since the last sign of life, while one is to be expected.
    silent: Option<Duration>,
    /// Whether silence is what a limit counts now.
    silence_counts: bool,
}

fn all(times: &Times, limits: &Limits, used: impl Fn(Metric) -> Option<Used>, meters: &[Meter]) -> Vec<Gauge> {
    let time = |key, used: Option<Duration>, hard: Option<u64>, counts: bool| Gauge {
        key,
        used: used.map(|used| Amount::Time(ms(used))),
        partial: false,
        soft: None,
        hard: hard.map(Amount::Time),
        left_ms: used.zip(hard).filter(|_| counts).map(|(used, hard)| hard.saturating_sub(ms(used))),
    };
    let mut gauges = vec![time("time", times.used, times.limit_ms, times.running)];
    gauges.extend(limits.idle_ms.map(|idle| time("idle", times.silent, Some(idle), times.silence_counts)));
    gauges.extend(Metric::ALL.map(|metric| {
        let (limit, used) = (budget::limit(limits, metric), used(metric));
        let amount = |value: f64| match metric {
            Metric::Cost => Amount::Money(value),
            Metric::Turns | Metric::ToolCalls | Metric::Tokens => Amount::Count(value as u64),
        };
        Gauge {
            key: metric.key(),
            used: used.map(|used| amount(used.amount)),
            partial: used.is_some_and(|used| used.partial),
            soft: limit.soft.map(amount),
            hard: limit.hard.map(amount),
            left_ms: meters.iter().find(|m| m.metric == metric).and_then(|m| m.left).map(ms),
        }
    }));
    gauges
}

impl Gauge {
    /// Whether there is an end or a warning.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.soft.is_some() || self.hard.is_some()
    }

    /// Which end was reached: `hard`, `soft`.
    #[must_use]
    pub fn reached(&self) -> Option<&'static str> {
        let used = self.used?;
        // Calls are blocked beyond their limit, not at it (runner-behaviour 3.2).
        let beyond = self.key == Metric::ToolCalls.key();
        match (self.soft, self.hard) {
            (_, Some(hard)) if used > hard || (used == hard && !beyond) => Some("hard"),
            (Some(soft), _) if used >= soft => Some("soft"),
            _ => None,
        }
    }

    /// In a few words: `turns 12 of 42`.
    #[must_use]
    pub fn words(&self) -> String {
        let used = self.used.map(|used| format!("{}{}", used.used(), or_more(self.partial)));
        let used = units::or_unknown(used);
        match (self.hard, self.soft) {
            (Some(hard), _) => format!("{} {used} of {}", self.key, hard.granted()),
            (None, Some(soft)) => format!("{} {used}, warning at {}", self.key, soft.granted()),
            (None, None) => format!("{} {used}", self.key),
        }
    }

    /// Times in milliseconds, money in US dollars; what is not known or not limited is left out.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut value = json!({ "key": self.key });
        if let Some(fields) = value.as_object_mut() {
            for (name, amount) in [("used", self.used), ("soft", self.soft), ("hard", self.hard)] {
                fields.extend(amount.map(|amount| (name.to_owned(), amount.json())));
            }
            fields.extend(self.partial.then(|| ("used_at_least".to_owned(), true.into())));
            fields.extend(self.left_ms.map(|left| ("left_ms".to_owned(), left.into())));
            fields.extend(self.reached().map(|end| ("reached".to_owned(), end.into())));
        }
        value
    }
}

impl Amount {
    /// What was used, as people read it.
    #[must_use]
    pub fn used(self) -> String {
        match self {
            Self::Time(ms) => units::span(Duration::from_millis(ms)),
            Self::Count(n) => units::grouped(n),
            Self::Money(usd) => units::cost(usd),
        }
    }

    /// What was granted, as people write it.
    #[must_use]
    pub fn granted(self) -> String {
        match self {
            Self::Time(ms) => written(Duration::from_millis(ms)),
            other => other.used(),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Time(n) | Self::Count(n) => json!(n),
            Self::Money(usd) => json!(CostUsd(usd).told()),
        }
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostUsd, Limit, StepId, Tokens, TurnLimit};

    const fn at(s: i64) -> Timestamp {
        Timestamp::from_millis(s * 1000)
    }

    fn step() -> StepState {
        StepState {
            id: StepId(0),
            phase: StepPhase::Running,
            started_at: Some(at(0)),
            last_activity: Some(at(90)),
            heard: true,
            turn_count: 40,
            tokens: Tokens { input: 60, output: 40, ..Tokens::default() },
            limits: Limits {
                turns: Some(TurnLimit { max: 40, grace: 2 }),
                tokens: Some(Limit { soft: None, hard: Some(200) }),
                cost: Some(Limit { soft: Some(CostUsd(0.5)), hard: None }),
                idle_ms: Some(60_000),
                tool_ms: Some(5_000),
                ..Limits::default()
            },
            timeout_ms: Some(90_000),
            ..StepState::default()
        }
    }

    #[test]
    fn a_gauge_says_what_was_used_of_what() {
        let state = RunState { steps: vec![step()], started_at: Some(at(0)), ..RunState::default() };
        let gauges = of_step(&state, &state.steps[0], at(100));
        let words: Vec<String> = gauges.iter().map(Gauge::words).collect();
        assert_eq!(
            words,
            [
                "time 1m40s of 90s",
                "idle 10.0s of 1m",
                "turns 40 of 42",
                "tool_calls 0",
                "tokens 100 of 200",
                "cost_usd –, warning at $0.50",
                "tool_timeout – of 5s",
            ]
        );
        let reached: Vec<_> = gauges.iter().filter_map(|g| Some((g.key, g.reached()?))).collect();
        assert_eq!(reached, [("time", "hard"), ("turns", "soft")]);
        // A hundred tokens in a hundred seconds, and a hundred to go.
        assert_eq!(gauges[4].json(), json!({"key": "tokens", "used": 100, "hard": 200, "left_ms": 100_000}));
        let calls = |n| Gauge {
            key: "tool_calls",
            used: Some(Amount::Count(n)),
            partial: false,
            soft: None,
            hard: Some(Amount::Count(3)),
            left_ms: None,
        };
        assert_eq!((calls(3).reached(), calls(4).reached()), (None, Some("hard")));
        let keys: Vec<_> = counted(&state, Some(&state.steps[0])).iter().map(|g| g.key).collect();
        assert_eq!(keys, ["turns", "tokens", "cost_usd"]);
        assert!(counted(&state, None).is_empty());
        let run: Vec<String> = of_run(&state, at(100)).iter().map(Gauge::words).collect();
        assert_eq!(run, ["time 1m40s", "turns 40", "tool_calls 0", "tokens 100", "cost_usd –"]);
        // Of another one nothing is told, so the run has used at least that.
        let silent = StepState { tokens: Tokens::default(), ..step() };
        let limits = Limits { tokens: Some(Limit { soft: None, hard: Some(900) }), ..Limits::default() };
        let state = RunState { steps: vec![step(), silent], limits, ..state };
        let run: Vec<String> = counted(&state, None).iter().map(Gauge::words).collect();
        assert_eq!(run, ["tokens 100+ of 900"]);
        let told = json!({"key": "tokens", "used": 100, "used_at_least": true, "hard": 900});
        assert_eq!(counted(&state, None)[0].json(), told);
    }

    #[test]
    fn what_is_left_of_a_time_is_told_while_it_runs() {
        let call = |name: &str, s| crate::run::OpenCall {
            call: Some(name.to_owned()),
            tool: "bash".to_owned(),
            args: String::new(),
            path: None,
            started_at: at(s),
            seq: 0,
            about: crate::run::CallFacts::default(),
            heard: None,
        };
        let left = |step: StepState| {
            let state = RunState { steps: vec![step], started_at: Some(at(0)), ..RunState::default() };
            let told = of_step(&state, &state.steps[0], at(30)).into_iter();
            let times = told.filter(|g| ["time", "idle", "tool_timeout"].contains(&g.key));
            times.map(|g| (g.words(), g.left_ms)).collect::<Vec<_>>()
        };
        let quiet = StepState { last_activity: Some(at(10)), ..step() };
        let time = ("time 30.0s of 90s".to_owned(), Some(60_000));
        let silent = ("idle 20.0s of 1m".to_owned(), Some(40_000));
        assert_eq!(left(quiet.clone()), [time.clone(), silent.clone(), ("tool_timeout – of 5s".to_owned(), None)]);
        // An open call is a sign of life, and has a time of its own.
        let busy = StepState { open: vec![call("a", 27), call("b", 28)], ..quiet.clone() };
        let alive = ("idle 0.0s of 1m".to_owned(), None);
        let tool = ("tool_timeout 3.0s of 5s".to_owned(), Some(2000));
        assert_eq!(left(busy.clone()), [time.clone(), alive.clone(), tool]);
        // One that waits for a permission has not begun.
        let asking = crate::run::Asking { call: Some("a".to_owned()), ..crate::run::Asking::default() };
        let question = crate::run::Question { id: "q".to_owned(), asking, asked_at: at(27), until: None };
        let asked = StepState { questions: vec![question], ..busy };
        assert_eq!(left(asked), [time, alive, ("tool_timeout 2.0s of 5s".to_owned(), Some(3000))]);
        // What is over uses no more.
        let over = StepState { phase: StepPhase::Complete, ended_at: Some(at(20)), ..quiet };
        assert!(left(over).iter().all(|(_, left)| left.is_none()));
        let state = RunState { timeout_ms: Some(90_000), started_at: Some(at(0)), ..RunState::default() };
        let of = |state: &RunState| of_run(state, at(30)).first().and_then(|g| g.left_ms);
        assert_eq!(of(&RunState { phase: crate::run::RunPhase::Running, ..state.clone() }), Some(60_000));
        assert_eq!(of(&RunState { lost: Some("it is gone".to_owned()), ..state }), None);
    }
}
