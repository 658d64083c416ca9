//! What follows from a state: timeouts and the ladder that ends a child. Nothing here does anything; the engine
//! records each conclusion as an event and then performs its effect (law 3).

use std::time::Duration;

mod limits;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod tests;

use super::{
    Ending, EndingCause, Metric, Notice, RunState, Stage, StepId, StepPhase, StepState, Timestamp, Used, attention,
};

/// A child that said its last word may take this long to exit by itself (runner-behaviour 1.7).
pub const DRAIN: Duration = Duration::from_millis(1000);
/// While its output still moves, the drain waits for a pause of this length, so that no record is cut in flight
/// (runner-behaviour 14.18), but never longer than [`DRAIN_MOST`].
pub const DRAIN_QUIET: Duration = Duration::from_millis(250);
/// The longest a moving drain is waited for.
pub const DRAIN_MOST: Duration = Duration::from_millis(10_000);
/// From SIGTERM to SIGKILL.
pub const TERM_TO_KILL: Duration = Duration::from_millis(3000);
/// From the request over the protocol to SIGTERM (agent-streams 9).
pub const ABORT_TO_TERM: Duration = Duration::from_millis(5000);
/// The same for a child that is over its budget (runner-behaviour 3.1).
pub const BUDGET_TO_TERM: Duration = Duration::from_millis(1000);
/// From SIGINT to SIGTERM for plain commands.
pub const INT_TO_TERM: Duration = Duration::from_millis(1000);

/// What is due now, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What is due, in the order to be done.
    pub due: Vec<Effect>,
    /// The earliest moment at which something else may be due.
    pub next: Option<Timestamp>,
}

/// What the engine can be told to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The run's time is over: record it; the children follow.
    TimeOutRun,
    /// A step is to end.
    End {
        /// Which.
        step: StepId,
        /// Why.
        cause: EndingCause,
        /// The sentence for the files.
        message: String,
    },
    /// A limit is reached.
    Reach {
        /// Of which step; `None` for the limits of the run.
        step: Option<StepId>,
        /// Of what.
        metric: Metric,
        /// Which limit.
        stage: Stage,
        /// How much was used.
        used: Used,
        /// The sentence for the files.
        message: String,
    },
    /// Something needs a look.
    Raise {
        /// Which step.
        step: StepId,
        /// What.
        notice: Box<Notice>,
    },
    /// Something needs no look any more.
    Clear {
        /// Which step.
        step: StepId,
        /// Which notice.
        id: String,
    },
    /// Nobody answered a question in time.
    Expire {
        /// Of which step.
        step: StepId,
        /// Which question.
        id: String,
    },
    /// The next attempt of a step is to be made.
    Again(StepId),
    /// The next attempt of a step is not to be made.
    GiveUp(StepId),
    /// Ask the agent over its protocol to break off.
    Abort(StepId),
    /// Send a signal.
    Signal {
        /// To which child.
        step: StepId,
        /// Its name, such as `SIGTERM`.
        signal: &'static str,
        /// To the whole group and everything the sweep knows of, or only to the child itself.
        group: bool,
        /// Why.
        cause: EndingCause,
    },
}

impl Decision {
    fn later(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |n| n.min(at)));
    }

    /// Whether what is due ends a step, or the run with it.
    fn ends(&self, id: StepId) -> bool {
        self.due.iter().any(|effect| match effect {
            Effect::TimeOutRun => true,
            Effect::End { step, .. } => *step == id,
            Effect::Reach { step, stage: Stage::Hard, .. } => step.is_none_or(|step| step == id),
            _ => false,
        })
    }

    /// Adds `effect` if `at` has come, else remembers when it will.
    fn at(&mut self, now: Timestamp, at: Timestamp, effect: Effect) {
        if now >= at {
            self.due.push(effect);
        } else {
            self.later(at);
        }
    }
}

/// What is due at `now`.
#[must_use]
pub fn decide(state: &RunState, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if state.started_at.is_none() || state.ended_at.is_some() {
        return decision;
    }
    if let Some(deadline) = state.deadline_at
        && !state.is_ending()
    {
        decision.at(now, deadline, Effect::TimeOutRun);
    }
    limits::run(&mut decision, state);
    for step in &state.steps {
        if let Some(ending) = &step.ending {
            if step.pid.is_some() {
                ladder(&mut decision, step, ending, now);
            }
        } else if step.phase == StepPhase::Running {
            limits::step(&mut decision, state, step, now);
            for question in &step.questions {
                if let Some(until) = question.until {
                    decision.at(now, until, Effect::Expire { step: step.id, id: question.id.clone() });
                }
            }
            // What ends in this very moment is not tried again (runner-behaviour 3.1).
            if let Some(next) = &step.next_attempt
                && !decision.ends(step.id)
            {
                decision.at(now, next.at, Effect::Again(step.id));
            }
        }
        if step.next_attempt.is_some() && (step.ending.is_some() || state.is_ending()) {
            // There is no child to be ended: the step ends as it is.
            decision.due.push(Effect::GiveUp(step.id));
        }
        // What is being ended needs no look; what it was told for ends with it.
        let ends = |effect: &Effect| match effect {
            Effect::End { step: id, cause, .. } => *id == step.id && *cause != EndingCause::Drain,
            Effect::Reach { step: id, stage: Stage::Hard, .. } => id.is_none_or(|id| id == step.id),
            _ => false,
        };
        if !decision.due.iter().any(ends) {
            notices(&mut decision, state, step, now);
        }
    }
    decision
}

/// Tells what holds now and was not told, or is to be told again, and takes back what holds no more.
fn notices(decision: &mut Decision, state: &RunState, step: &StepState, now: Timestamp) {
    if step.phase != StepPhase::Running && step.attention.is_empty() {
        return;
    }
    let standing = attention::conditions(state, step, now);
    if let Some(next) = standing.next {
        decision.later(next);
    }
    let mut held = Vec::new();
    for condition in standing.holds {
        let id = Notice::name(step.id, &condition);
        match step.attention.iter().find(|n| n.id == id) {
            None => {
                let notice = Box::new(Notice::new(step.id, condition, now));
                decision.due.push(Effect::Raise { step: step.id, notice });
            }
            Some(known) if known.again(&condition) => {
                let times = known.times.saturating_add(1);
                let notice = Notice { condition, times, acknowledged: None, ..known.clone() };
                decision.due.push(Effect::Raise { step: step.id, notice: Box::new(notice) });
            }
            Some(_) => {}
        }
        held.push(id);
    }
    for notice in step.attention.iter().filter(|n| !held.contains(&n.id)) {
        decision.due.push(Effect::Clear { step: step.id, id: notice.id.clone() });
    }
}

/// The ladder that ends a child: what its cause asks for first, then SIGTERM, then SIGKILL, each once
/// (runner-behaviour 6 with product 5: agents are interrupted over their protocol, because SIGINT orphans the
/// tools of several of them; plain commands get SIGINT).
fn ladder(decision: &mut Decision, step: &StepState, ending: &Ending, now: Timestamp) {
    let signal = |signal, group| Effect::Signal { step: step.id, signal, group, cause: ending.cause };
    if ending.kill_at.is_some() {
        return;
    }
    if ending.cause == EndingCause::Kill {
        decision.due.push(signal("SIGKILL", true));
        return;
    }
    if let Some(term) = ending.term_at {
        decision.at(now, term + TERM_TO_KILL, signal("SIGKILL", true));
        return;
    }
    match ending.cause {
        EndingCause::Interrupt if step.runner.can_abort() => match ending.abort_at {
            None => decision.due.push(Effect::Abort(step.id)),
            Some(at) => decision.at(now, at + ABORT_TO_TERM, signal("SIGTERM", true)),
        },
        // What it used stays with its session, so that it can go on with a larger limit (runner-behaviour 3.1).
        EndingCause::Budget | EndingCause::RunBudget if step.runner.can_abort() => match ending.abort_at {
            None => decision.due.push(Effect::Abort(step.id)),
            Some(at) => decision.at(now, at + BUDGET_TO_TERM, signal("SIGTERM", true)),
        },
        EndingCause::Interrupt if !step.runner.is_agent() => match ending.int_at {
            None => decision.due.push(signal("SIGINT", true)),
            Some(at) => decision.at(now, at + INT_TO_TERM, signal("SIGTERM", true)),
        },
        // The drain is aimed at the child alone: what it started on purpose is judged by the sweep afterwards.
        EndingCause::Drain => decision.due.push(signal("SIGTERM", false)),
        _ => decision.due.push(signal("SIGTERM", true)),
    }
}
