//! What follows from a state: timeouts and the ladder that ends a child. Nothing here does anything; the engine
//! records each conclusion as an event and then performs its effect (law 3).

use std::time::Duration;

use super::{Ending, EndingCause, RunState, StepId, StepPhase, StepState, Timestamp};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The run's time is over: record it; the children follow.
    TimeOutRun,
    /// A step's own time is over.
    TimeOutStep(StepId),
    /// The child settled but does not exit.
    BeginDrain(StepId),
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
    for step in &state.steps {
        if let Some(ending) = &step.ending {
            if step.pid.is_some() {
                ladder(&mut decision, step, ending, now);
            }
        } else if step.phase == StepPhase::Running {
            step_limits(&mut decision, step, now);
        }
    }
    decision
}

fn step_limits(decision: &mut Decision, step: &StepState, now: Timestamp) {
    if let (Some(ms), Some(started)) = (step.timeout_ms, step.started_at) {
        decision.at(now, started + Duration::from_millis(ms), Effect::TimeOutStep(step.id));
    }
    if let (Some(settled), Some(_)) = (step.settled_at, step.pid) {
        let quiet = step.last_activity.map_or(settled, |at| at + DRAIN_QUIET);
        let due = (settled + DRAIN).max(quiet).min(settled + DRAIN_MOST);
        decision.at(now, due, Effect::BeginDrain(step.id));
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
        EndingCause::Interrupt if !step.runner.is_agent() => match ending.int_at {
            None => decision.due.push(signal("SIGINT", true)),
            Some(at) => decision.at(now, at + INT_TO_TERM, signal("SIGTERM", true)),
        },
        // The drain is aimed at the child alone: what it started on purpose is judged by the sweep afterwards.
        EndingCause::Drain => decision.due.push(signal("SIGTERM", false)),
        _ => decision.due.push(signal("SIGTERM", true)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Event, RunMeta, RunnerKind, StepMeta, What, reduce};
    use super::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn running(runner: RunnerKind, meta: RunMeta, timeout_ms: Option<u64>) -> RunState {
        let steps = vec![StepMeta { runner, timeout_ms, ..Default::default() }];
        let mut state = RunState::default();
        let step = StepId(0);
        for what in [
            What::RunStarted(Box::new(RunMeta { steps, ..meta })),
            What::StepStarted { step },
            What::AttemptStarted { step, attempt: 1, model: None, reason: None },
            What::ChildSpawned { step, pid: 7, start_ticks: None },
        ] {
            reduce(&mut state, &Event { at: ms(0), what });
        }
        state
    }

    /// Performs what is due every millisecond until `end`, as the engine would; returns what was done and when.
    fn play(state: &mut RunState, end: i64) -> Vec<(i64, String)> {
        let mut done = Vec::new();
        let mut now = 0;
        while now <= end {
            let decision = decide(state, ms(now));
            for effect in &decision.due {
                let what = match effect {
                    Effect::Abort(step) => {
                        done.push((now, "abort".into()));
                        What::AbortSent { step: *step }
                    }
                    Effect::Signal { step, signal, group, cause } => {
                        done.push((now, format!("{signal}{}", if *group { "" } else { " child" })));
                        What::SignalSent { step: *step, signal, pid: 7, group: *group, cause: *cause }
                    }
                    Effect::TimeOutRun => {
                        done.push((now, "run".into()));
                        What::RunTimedOut { timeout_ms: None, message: "t".into(), source: None }
                    }
                    Effect::TimeOutStep(step) => {
                        done.push((now, "step".into()));
                        let cause = EndingCause::StepTimeout;
                        What::StepEnding { step: *step, cause, message: "t".into(), source: None }
                    }
                    Effect::BeginDrain(step) => {
                        done.push((now, "drain".into()));
                        let cause = EndingCause::Drain;
                        What::StepEnding { step: *step, cause, message: String::new(), source: None }
                    }
                };
                reduce(state, &Event { at: ms(now), what });
            }
            if decision.due.is_empty() {
                // Nothing may come due between `now` and the announced moment.
                match decision.next {
                    Some(next) => now = next.millis(),
                    None => break,
                }
            }
        }
        done
    }

    fn names(done: &[(i64, String)]) -> Vec<(i64, &str)> {
        done.iter().map(|(at, what)| (*at, what.as_str())).collect()
    }

    #[test]
    fn each_cause_has_its_ladder() {
        let cli = RunnerKind::ExternalCli { command: "x".into(), args: vec![] };
        let interrupt = What::RunInterrupted { source: None };
        let stop = What::RunStopped { message: "m".into(), source: None };
        let cases = [
            (RunnerKind::Pi, &interrupt, vec![(0, "abort"), (5000, "SIGTERM"), (8000, "SIGKILL")]),
            (RunnerKind::PiJson, &interrupt, vec![(0, "SIGTERM"), (3000, "SIGKILL")]),
            (cli.clone(), &interrupt, vec![(0, "SIGINT"), (1000, "SIGTERM"), (4000, "SIGKILL")]),
            (RunnerKind::Pi, &stop, vec![(0, "SIGTERM"), (3000, "SIGKILL")]),
            (cli, &stop, vec![(0, "SIGTERM"), (3000, "SIGKILL")]),
        ];
        for (runner, what, want) in cases {
            let mut state = running(runner.clone(), RunMeta::default(), None);
            reduce(&mut state, &Event { at: ms(0), what: what.clone() });
            assert_eq!(names(&play(&mut state, 60_000)), want, "{runner:?} {what:?}");
        }
    }

    #[test]
    fn a_stop_after_an_interrupt_does_not_wait_for_the_interrupts_ladder() {
        let mut state = running(RunnerKind::Pi, RunMeta::default(), None);
        reduce(&mut state, &Event { at: ms(0), what: What::RunInterrupted { source: None } });
        reduce(&mut state, &Event { at: ms(0), what: What::AbortSent { step: StepId(0) } });
        reduce(&mut state, &Event { at: ms(10), what: What::RunStopped { message: "m".into(), source: None } });
        let due = decide(&state, ms(10)).due;
        assert!(matches!(due.as_slice(), [Effect::Signal { signal: "SIGTERM", group: true, .. }]), "{due:?}");
    }

    #[test]
    fn limits_fire_once_at_their_moment() {
        let deadline = RunMeta { deadline_at: Some(ms(500)), ..Default::default() };
        let mut state = running(RunnerKind::Pi, deadline, None);
        assert_eq!(names(&play(&mut state, 60_000)), [(500, "run"), (500, "SIGTERM"), (3500, "SIGKILL")]);
        let mut state = running(RunnerKind::Pi, RunMeta::default(), Some(700));
        assert_eq!(names(&play(&mut state, 60_000)), [(700, "step"), (700, "SIGTERM"), (3700, "SIGKILL")]);
    }

    #[test]
    fn the_drain_waits_for_moving_output_but_not_for_ever() {
        use super::super::AgentEvent;
        let settle = |state: &mut RunState| {
            let what = What::Agent { step: StepId(0), event: AgentEvent::Settled { aborted: false } };
            reduce(state, &Event { at: ms(0), what });
        };
        let mut state = running(RunnerKind::Pi, RunMeta::default(), None);
        settle(&mut state);
        assert_eq!(names(&play(&mut state, 60_000)), [(1000, "drain"), (1000, "SIGTERM child"), (4000, "SIGKILL")]);
        let mut state = running(RunnerKind::Pi, RunMeta::default(), None);
        settle(&mut state);
        for at in (0..20_000).step_by(100) {
            let due = decide(&state, ms(at)).due;
            assert_eq!(due.is_empty(), at < 10_000, "at {at}");
            reduce(&mut state, &Event { at: ms(at), what: What::OutputSeen { step: StepId(0), bytes: 1 } });
        }
    }

    #[test]
    fn nothing_is_due_for_a_child_that_is_gone_or_a_run_that_is_over() {
        let mut state = running(RunnerKind::Pi, RunMeta { deadline_at: Some(ms(5)), ..Default::default() }, None);
        reduce(&mut state, &Event { at: ms(0), what: What::RunStopped { message: "m".into(), source: None } });
        reduce(&mut state, &Event { at: ms(1), what: What::ChildExited { step: StepId(0), exit: Default::default() } });
        assert_eq!(decide(&state, ms(100)), Decision::default());
    }
}
