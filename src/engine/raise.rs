//! Our own requests beyond the package's: a limit is changed, a notice is taken note of (run-directory 3.9).

use std::time::Duration;

use serde_json::Value;

use super::clock::now;
use super::complain::complain;
use super::dispatch::Engine;
use crate::run::{ControlSource, Limits, Metric, Raise, RunState, StepId, StepPhase, Used, What, budget};
use crate::rundir::capability;
use crate::text::span;

impl Engine {
    /// Changes a limit of the run or of a step.
    pub(super) fn change_budget(
        &mut self,
        id: &str,
        step: Option<StepId>,
        key: &str,
        value: &Value,
        source: ControlSource,
    ) {
        let made =
            Raise::read(key, value).and_then(|raise| allowed(self.recorder.state(), step, raise).map(|()| raise));
        let refused = match made {
            Ok(raise) => {
                self.recorder.record(What::BudgetRaised { step, raise, source: Some(source) });
                None
            }
            Err(reason) => Some(reason),
        };
        self.answer_own(id, "change of a budget", refused);
    }

    /// Takes note of a notice.
    pub(super) fn take_note(&mut self, id: &str, words: &str, notice: &str, source: ControlSource) {
        let found = self.recorder.state().steps.iter().find(|s| s.attention.iter().any(|n| n.id == notice));
        let refused = match found.map(|s| s.id) {
            Some(step) => {
                let (id, source) = (notice.to_owned(), Some(source));
                self.recorder.record(What::AttentionAcknowledged { step, id, source });
                None
            }
            None => Some("there is no such notice, or its cause is over".to_owned()),
        };
        self.answer_own(id, words, refused);
    }

    /// Tells whoever asked what became of a request of ours, which asked for what `words` say.
    pub(super) fn answer_own(&mut self, id: &str, words: &str, refused: Option<String>) {
        if let Err(error) = capability::answer(self.home.way(), id, refused.as_deref(), now()) {
            complain("runner", &error);
        }
        if let Some(reason) = refused {
            let file = format!("{words} ({id})");
            self.recorder.record(What::ControlRejected { file, reason, set_aside: false });
        }
    }
}

/// Whether the change can be made now.
fn allowed(state: &RunState, step: Option<StepId>, raise: Raise) -> Result<(), String> {
    let Some(id) = step else {
        if state.is_ending() || state.budget.exceeded.is_some() {
            return Err("the run is ending".to_owned());
        }
        raise.apply(&mut state.limits.clone())?;
        longer(raise, state.started_at.map(|start| state.gaps.awake(start, now())))?;
        return above(raise, &state.limits, |metric| budget::used_by_run(state, metric));
    };
    let step = state.step(id).ok_or("there is no such step")?;
    if step.ending.is_some() || !matches!(step.phase, StepPhase::Pending | StepPhase::Running) {
        return Err("the step is over".to_owned());
    }
    raise.apply(&mut step.limits.clone())?;
    longer(raise, step.started_at.map(|start| state.gaps.awake(start, now())))?;
    above(raise, &step.limits, |metric| Used::all(budget::used(step, metric)))
}

/// So would a time that is over already.
fn longer(raise: Raise, ran: Option<Duration>) -> Result<(), String> {
    match (raise, ran) {
        (Raise::Time(most), Some(ran)) if most <= ran => {
            Err(format!("it has run for {} already; stop it instead", span(ran)))
        }
        _ => Ok(()),
    }
}

/// A limit below what was used already would be no limit but a stop, which is asked for as such.
fn above(raise: Raise, limits: &Limits, used: impl Fn(Metric) -> Used) -> Result<(), String> {
    let Some(metric) = raise.metric() else { return Ok(()) };
    let mut after = limits.clone();
    raise.apply(&mut after)?;
    let used = used(metric);
    match budget::limit(&after, metric).hard {
        Some(hard) if hard <= used.amount => Err(format!("{} are used already; stop it instead", used.words(metric))),
        _ => Ok(()),
    }
}
