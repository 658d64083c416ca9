//! What runs cost since a moment, and by which model.

use crate::run::{RunState, StepState, Timestamp};
use crate::rundir::fleet::FleetRun;

/// Money that was spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// All of it, in dollars.
    pub usd: f64,
    /// By model, the dearest first. Text from outside.
    pub models: Vec<(String, f64)>,
    /// How many runs of that time did work and told nothing of its cost.
    pub unknown: usize,
    /// Of some run that told a cost a part is not told.
    pub partial: bool,
}

impl Spent {
    /// Whether not all of it is told, so that it is at least that.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.partial || self.unknown > 0
    }

    fn add(&mut self, model: &str, usd: f64) {
        self.usd += usd;
        match self.models.iter_mut().find(|(name, _)| name == model) {
            Some((_, sum)) => *sum += usd,
            None => self.models.push((model.to_owned(), usd)),
        }
    }
}

/// What these runs spent since `since`. A step counts at its end, or with its last sign while it goes on, and as a
/// whole; what a run carried over from an earlier one was spent by that.
#[must_use]
pub fn spent_since<'r>(runs: impl Iterator<Item = &'r FleetRun>, since: Timestamp) -> Spent {
    let mut spent = Spent::default();
    for state in runs.filter_map(FleetRun::state) {
        let mut told = false;
        let mut worked = false;
        for step in state.steps.iter().filter(|step| !step.carried_over) {
            let at = step.ended_at.max(step.last_activity).max(step.started_at);
            if at.is_none_or(|at| at < since) {
                continue;
            }
            told |= add_step(&mut spent, step);
            // A plain command costs nothing that anybody could tell, and a step that is a run of its own tells there.
            worked |= step.runner.is_agent() && step.own_run.is_none();
        }
        told |= add_whole(&mut spent, state, since);
        spent.unknown += usize::from(worked && !told);
        spent.partial |= told && state.is_cost_partial();
    }
    spent.models.retain(|(_, usd)| *usd > 0.0);
    spent.models.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    spent
}

fn add_step(spent: &mut Spent, step: &StepState) -> bool {
    let Some(whole) = step.cost else { return false };
    let mut rest = whole.0;
    let models = step.attempts.iter().filter_map(|a| Some((a.model.as_deref()?, a.usage.cost?)));
    for (model, usd) in models {
        // Attempts that together cost more than the step were told wrongly.
        let usd = usd.0.min(rest);
        rest -= usd;
        spent.add(short(model), usd);
    }
    if rest > 0.0 {
        spent.add(step.model.as_deref().map_or("unknown model", short), rest);
    }
    true
}

fn add_whole(spent: &mut Spent, state: &RunState, since: Timestamp) -> bool {
    let whole = state.totals.filter(|_| state.steps.iter().all(|s| s.cost.is_none()));
    let Some((_, Some(usd))) = whole else { return false };
    if state.ended_at.max(state.last_update).is_none_or(|at| at < since) {
        return false;
    }
    let mut models: Vec<&str> = state.steps.iter().filter_map(|s| s.model.as_deref()).map(short).collect();
    models.sort_unstable();
    models.dedup();
    spent.add(if let [only] = models.as_slice() { only } else { "several models" }, usd.0);
    true
}

/// A model without its provider and without how hard it thinks.
fn short(model: &str) -> &str {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
    name.rsplit_once(':').filter(|(_, level)| LEVELS.contains(level)).map_or(name, |(name, _)| name)
}
