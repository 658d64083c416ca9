//! What follows from a state: budgets, timeouts and the ladder that ends a child. Nothing here does anything; the
//! engine records each conclusion as an event and then performs its effect (law 3).

use super::{EndingCause, RunState, StepId, Timestamp};

/// What is due now, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What is due, in the order to be done.
    pub due: Vec<Conclusion>,
    /// The earliest moment at which something else may be due.
    pub next: Option<Timestamp>,
}

/// One thing that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The effect to perform.
    pub effect: Effect,
}

/// What the engine can be told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effect {
    TimeOutRun,
    TimeOutStep(StepId),
    Abort(StepId),
    Signal { step: StepId, signal: &'static str, group: bool, cause: EndingCause },
}

/// What is due at `now`.
#[must_use]
pub fn decide(_state: &RunState, _now: Timestamp) -> Decision {
    Decision::default()
}
