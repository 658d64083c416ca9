//! Tables of what is due when.

use super::*;
use crate::run::{AgentEvent, Answer, AnsweredBy, Event, RunMeta, RunnerKind, StepMeta, Thresholds, What, reduce};

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

fn running(runner: RunnerKind, meta: RunMeta, timeout_ms: Option<u64>) -> RunState {
    let thresholds = Thresholds { enabled: false, ..Thresholds::default() };
    let steps = vec![StepMeta { runner, timeout_ms, thresholds, ..Default::default() }];
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
                Effect::End { step, cause, message } => {
                    done.push((now, cause.as_str().to_owned()));
                    What::StepEnding { step: *step, cause: *cause, message: message.clone(), source: None }
                }
                Effect::Reach { step, metric, stage, used, message } => {
                    done.push((now, format!("{} {}", metric.key(), stage.as_str())));
                    let (metric, stage, used) = (*metric, *stage, *used);
                    What::BudgetReached { step: *step, metric, stage, used, message: message.clone() }
                }
                Effect::Raise { step, notice } => {
                    let again = if notice.times > 1 { " again" } else { "" };
                    done.push((now, format!("raise {}{again}", notice.condition.reason.as_str())));
                    What::AttentionRaised { step: *step, notice: notice.clone() }
                }
                Effect::Clear { step, id } => {
                    done.push((now, format!("clear {id}")));
                    What::AttentionCleared { step: *step, id: id.clone() }
                }
                Effect::Expire { step, id } => {
                    done.push((now, format!("expire {id}")));
                    let (text, answer, by) = (String::new(), Answer::Deny(None), AnsweredBy::Timeout);
                    What::QuestionAnswered { step: *step, id: id.clone(), text, answer, by, source: None }
                }
                Effect::Again(step) => {
                    done.push((now, "attempt".into()));
                    let attempt = state.steps[0].attempt() + 1;
                    What::AttemptStarted { step: *step, attempt, model: None, reason: None }
                }
                Effect::GiveUp(step) => {
                    done.push((now, "give up".into()));
                    What::StepEnded { step: *step, outcome: Box::default() }
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
    assert_eq!(names(&play(&mut state, 60_000)), [(700, "step-timeout"), (700, "SIGTERM"), (3700, "SIGKILL")]);
}

#[test]
fn the_drain_waits_for_moving_output_but_not_for_ever() {
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

/// An agent that goes on after it had said its last word is not cut off (runner-behaviour 1.5, trap 18).
#[test]
fn an_agent_that_goes_on_is_not_drained() {
    for (goes_on, want) in [
        (AgentEvent::AgentEnded { will_retry: true }, vec![]),
        (AgentEvent::AgentStarted, vec![]),
        (
            AgentEvent::AgentEnded { will_retry: false },
            vec![(1000, "drain"), (1000, "SIGTERM child"), (4000, "SIGKILL")],
        ),
    ] {
        let mut state = running(RunnerKind::Pi, RunMeta::default(), None);
        let mut say = |at, event| {
            reduce(&mut state, &Event { at: ms(at), what: What::Agent { step: StepId(0), event } });
        };
        say(0, AgentEvent::Settled { aborted: false });
        say(500, goes_on.clone());
        assert_eq!(names(&play(&mut state, 60_000)), want, "{goes_on:?}");
        let mut say = |at, event| {
            reduce(&mut state, &Event { at: ms(at), what: What::Agent { step: StepId(0), event } });
        };
        if want.is_empty() {
            say(70_000, AgentEvent::Settled { aborted: false });
            assert_eq!(decide(&state, ms(70_999)).due, [], "{goes_on:?}");
            assert_eq!(decide(&state, ms(71_000)).due.len(), 1, "the next last word is one again: {goes_on:?}");
        }
    }
}

#[test]
fn nothing_is_due_for_a_child_that_is_gone_or_a_run_that_is_over() {
    let mut state = running(RunnerKind::Pi, RunMeta { deadline_at: Some(ms(5)), ..Default::default() }, None);
    reduce(&mut state, &Event { at: ms(0), what: What::RunStopped { message: "m".into(), source: None } });
    reduce(&mut state, &Event { at: ms(1), what: What::ChildExited { step: StepId(0), exit: Default::default() } });
    assert_eq!(decide(&state, ms(100)), Decision::default());
}
