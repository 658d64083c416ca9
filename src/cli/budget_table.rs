//! What a run and its steps were granted and what they used of it: a table, or JSON.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::{lines, out};
use crate::headless::{Amount, Gauge, VERSION, limits_of_run, limits_of_step};
use crate::run::{RunState, StepId, StepState, Timestamp};
use crate::text as units;

/// The limits of the run, or of one of its steps.
struct Part<'s> {
    step: Option<&'s StepState>,
    gauges: Vec<Gauge>,
}

/// Prints the limits of a run and of its steps, or of one step.
pub fn print(state: &RunState, step: Option<StepId>, json: bool) -> anyhow::Result<ExitCode> {
    let parts = parts(state, step, crate::engine::now());
    if json {
        let limits: Vec<Value> = parts.iter().flat_map(Part::json).collect();
        out::json(&json!({ "v": VERSION, "run": state.id.as_str(), "limits": limits }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![["OF", "LIMIT", "USED", "WARNING", "END", "LEFT"].map(str::to_owned).to_vec()];
    rows.extend(parts.iter().flat_map(Part::rows));
    lines::out(|to| lines::table(to, &rows))?;
    Ok(ExitCode::SUCCESS)
}

/// Of the run, and of a step that is asked for, everything that is counted; of the other steps what is limited.
fn parts(state: &RunState, only: Option<StepId>, now: Timestamp) -> Vec<Part<'_>> {
    let steps = state.steps.iter().filter(|s| only.is_none_or(|id| s.id == id)).map(|step| {
        let mut gauges = limits_of_step(state, step, now);
        if only.is_none() {
            gauges.retain(Gauge::is_limited);
        }
        Part { step: Some(step), gauges }
    });
    let run = only.is_none().then(|| Part { step: None, gauges: limits_of_run(state, now) });
    run.into_iter().chain(steps).collect()
}

impl Part<'_> {
    fn rows(&self) -> Vec<Vec<String>> {
        let of = self.step.map_or_else(|| "run".to_owned(), |s| format!("{} {}", s.id.number(), s.title()));
        let say = |amount: Option<Amount>, how: fn(Amount) -> String| units::or_unknown(amount.map(how));
        let row = |(nth, gauge): (usize, &Gauge)| {
            let last = match gauge.reached() {
                Some("hard") => "over".to_owned(),
                Some(_) => "warning".to_owned(),
                None => gauge.left_ms.map(|ms| units::span(Duration::from_millis(ms))).unwrap_or_default(),
            };
            vec![
                if nth == 0 { of.clone() } else { String::new() },
                gauge.key.to_owned(),
                say(gauge.used, Amount::used),
                say(gauge.soft, Amount::granted),
                say(gauge.hard, Amount::granted),
                last,
            ]
        };
        self.gauges.iter().enumerate().map(row).collect()
    }

    fn json(&self) -> Vec<Value> {
        let mut all: Vec<Value> = self.gauges.iter().map(Gauge::json).collect();
        if let Some(step) = self.step {
            for fields in all.iter_mut().filter_map(Value::as_object_mut) {
                fields.insert("step".into(), step.id.number().into());
                fields.insert("id".into(), step.key.as_str().into());
            }
        }
        all
    }
}
