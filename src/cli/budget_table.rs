//! What a run and its steps were granted and what they used of it: a table, or JSON.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::{lines, out};
use crate::headless::VERSION;
use crate::plan::{Budget, Plan};
use crate::run::{Limit, Limits, RunState, StepId, StepPhase, StepState, Timestamp};
use crate::rundir::{RunDir, plan_doc};
use crate::text::{self as units, written};

/// How much of something.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Amount {
    /// Milliseconds.
    Time(u64),
    Count(u64),
    /// US dollars.
    Money(f64),
}

/// One limit and its use.
#[derive(Clone, Debug, PartialEq)]
struct Gauge {
    /// The key of a plan.
    key: &'static str,
    used: Option<Amount>,
    soft: Option<Amount>,
    hard: Option<Amount>,
}

/// The limits of the run, or of one of its steps.
struct Part<'s> {
    step: Option<&'s StepState>,
    gauges: Vec<Gauge>,
}

/// Prints the limits of a run and of its steps, or of one step.
pub fn print(state: &RunState, dir: &RunDir, step: Option<StepId>, json: bool) -> anyhow::Result<ExitCode> {
    let plan = plan_doc::plan(dir).unwrap_or_default();
    let parts = parts(state, &plan, step, crate::engine::now());
    if json {
        let limits: Vec<Value> = parts.iter().flat_map(Part::json).collect();
        out::json(&json!({ "v": VERSION, "run": state.id.as_str(), "limits": limits }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![["OF", "LIMIT", "USED", "WARNING", "END", ""].map(str::to_owned).to_vec()];
    rows.extend(parts.iter().flat_map(Part::rows));
    lines::out(|to| lines::table(to, &rows))?;
    Ok(ExitCode::SUCCESS)
}

/// Of the run, and of a step that is asked for, everything that is counted; of the other steps what is limited.
fn parts<'s>(state: &'s RunState, plan: &Plan, only: Option<StepId>, now: Timestamp) -> Vec<Part<'s>> {
    let granted: Vec<(Budget, Limits)> = plan.flat().map(|s| (s.budget.clone(), s.limits())).collect();
    let steps = state.steps.iter().filter(|s| only.is_none_or(|id| s.id == id)).map(|step| {
        let (budget, limits) = granted.get(step.id.flat()).cloned().unwrap_or_default();
        let mut gauges = of_step(step, &budget, &limits, now);
        if only.is_none() {
            gauges.retain(|g| g.soft.is_some() || g.hard.is_some());
        }
        Part { step: Some(step), gauges }
    });
    let run = only.is_none().then(|| Part { step: None, gauges: of_run(state, plan, now) });
    run.into_iter().chain(steps).collect()
}

fn of_run(state: &RunState, plan: &Plan, now: Timestamp) -> Vec<Gauge> {
    let sum = |of: fn(&StepState) -> u64| state.steps.iter().map(of).sum();
    let used = Used {
        time: state.elapsed(now).map(ms),
        silent: state.last_activity.filter(|_| !state.is_over()).map(|at| ms(now.since(at))),
        turns: sum(|s| s.turn_count),
        tool_calls: sum(|s| s.tool_count),
        tokens: state.tokens().total(),
        cost: state.cost().map(|c| c.0),
    };
    gauges(&used, plan.budget.time.or(state.timeout_ms.map(Duration::from_millis)), &plan.run_limits())
}

fn of_step(step: &StepState, budget: &Budget, limits: &Limits, now: Timestamp) -> Vec<Gauge> {
    let used = Used {
        time: step.elapsed(now).map(ms),
        silent: step.last_activity.filter(|_| step.phase == StepPhase::Running).map(|at| ms(now.since(at))),
        turns: step.turn_count,
        tool_calls: step.tool_count,
        tokens: step.tokens.total(),
        cost: step.cost.map(|c| c.0),
    };
    let mut all = gauges(&used, budget.time.or(step.timeout_ms.map(Duration::from_millis)), limits);
    if let Some(most) = limits.tool_ms {
        // The call that is nearest to its end.
        let open = step.open.iter().filter(|c| limits.tool_limit(&c.tool).is_some() && step.current_call().is_some());
        let used = open.map(|c| ms(now.since(c.started_at))).max().map(Amount::Time);
        all.push(Gauge { key: "tool_timeout", used, soft: None, hard: Some(Amount::Time(most)) });
    }
    all
}

/// What was used of everything that can be limited.
struct Used {
    /// Milliseconds.
    time: Option<u64>,
    /// Milliseconds since the last sign of life, while there is one to be expected.
    silent: Option<u64>,
    turns: u64,
    tool_calls: u64,
    tokens: u64,
    /// US dollars, where they are reported.
    cost: Option<f64>,
}

fn gauges(used: &Used, time: Option<Duration>, limits: &Limits) -> Vec<Gauge> {
    let count = |key, used, limit: Option<Limit<u64>>| Gauge {
        key,
        used: Some(Amount::Count(used)),
        soft: limit.and_then(|l| l.soft).map(Amount::Count),
        hard: limit.and_then(|l| l.hard).map(Amount::Count),
    };
    let span = |key, used: Option<u64>, hard: Option<u64>| Gauge {
        key,
        used: used.map(Amount::Time),
        soft: None,
        hard: hard.map(Amount::Time),
    };
    let turns = limits.turns.map(|t| Limit { soft: Some(t.max), hard: Some(t.hard()) });
    let mut all = vec![span("time", used.time, time.map(ms))];
    all.extend(limits.idle_ms.map(|idle| span("idle", used.silent, Some(idle))));
    all.push(count("turns", used.turns, turns));
    all.push(count("tool_calls", used.tool_calls, limits.tool_calls));
    all.push(count("tokens", used.tokens, limits.tokens));
    all.push(Gauge {
        key: "cost_usd",
        used: used.cost.map(Amount::Money),
        soft: limits.cost.and_then(|l| l.soft).map(|c| Amount::Money(c.0)),
        hard: limits.cost.and_then(|l| l.hard).map(|c| Amount::Money(c.0)),
    });
    all
}

impl Gauge {
    /// Which end was reached, in a word.
    fn reached(&self) -> &'static str {
        let at = |end: Option<Amount>| end.zip(self.used).is_some_and(|(end, used)| used >= end);
        match () {
            () if at(self.hard) => "over",
            () if at(self.soft) => "warning",
            () => "",
        }
    }
}

impl Amount {
    /// What was used.
    fn used(self) -> String {
        match self {
            Self::Time(ms) => units::span(Duration::from_millis(ms)),
            Self::Count(n) => units::grouped(n),
            Self::Money(usd) => units::cost(usd),
        }
    }

    /// What was granted, as people write it.
    fn granted(self) -> String {
        match self {
            Self::Time(ms) => written(Duration::from_millis(ms)),
            other => other.used(),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Time(n) | Self::Count(n) => json!(n),
            Self::Money(usd) => json!(usd),
        }
    }
}

impl Part<'_> {
    fn rows(&self) -> Vec<Vec<String>> {
        let of = self.step.map_or_else(|| "run".to_owned(), |s| format!("{} {}", s.id.number(), s.title()));
        let say = |amount: Option<Amount>, how: fn(Amount) -> String| units::or_unknown(amount.map(how));
        let row = |(nth, gauge): (usize, &Gauge)| {
            vec![
                if nth == 0 { of.clone() } else { String::new() },
                gauge.key.to_owned(),
                say(gauge.used, Amount::used),
                say(gauge.soft, Amount::granted),
                say(gauge.hard, Amount::granted),
                gauge.reached().to_owned(),
            ]
        };
        self.gauges.iter().enumerate().map(row).collect()
    }

    /// Times are in milliseconds, money is in US dollars; what is not known or not limited is left out.
    fn json(&self) -> Vec<Value> {
        let one = |gauge: &Gauge| {
            let mut value = json!({ "key": gauge.key });
            let Some(fields) = value.as_object_mut() else { return value };
            if let Some(step) = self.step {
                fields.insert("step".into(), step.id.number().into());
                fields.insert("id".into(), step.key.as_str().into());
            }
            for (name, amount) in [("used", gauge.used), ("soft", gauge.soft), ("hard", gauge.hard)] {
                if let Some(amount) = amount {
                    fields.insert(name.into(), amount.json());
                }
            }
            let reached = match gauge.reached() {
                "over" => Some("hard"),
                "warning" => Some("soft"),
                _ => None,
            };
            if let Some(end) = reached {
                fields.insert("reached".into(), end.into());
            }
            value
        };
        self.gauges.iter().map(one).collect()
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
