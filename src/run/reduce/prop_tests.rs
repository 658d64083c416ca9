//! Whatever happens in whatever order, at whatever time: nothing panics, and what a state says of itself holds.

use proptest::prelude::*;
use proptest::strategy::Union;

use super::*;
use crate::run::{
    AgentEvent, Answer, AnsweredBy, Asking, CallFacts, CostUsd, Decision, Effect, EndingCause, ExitInfo, Limit, Limits,
    MessageRole, NextAttempt, Notice, Question, Reason, StepMeta, StepOutcome, StopReason, Stream, Thresholds, Tokens,
    ToolOutcome, TurnLimit, Usage, decide,
};

const STEPS: u32 = 3;

fn step() -> impl Strategy<Value = StepId> {
    // Now and then one that does not exist.
    (0..=STEPS).prop_map(StepId)
}

fn name() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[ab]")
}

fn agent_event() -> impl Strategy<Value = AgentEvent> {
    let about = (0u64..3, any::<bool>(), any::<bool>()).prop_map(|(fingerprint, mutates, asks)| CallFacts {
        fingerprint,
        mutates,
        asks,
    });
    let outcome = prop_oneof![Just(ToolOutcome::Ok), Just(ToolOutcome::Error), Just(ToolOutcome::Lost)];
    Union::new_weighted(vec![
        (
            4,
            (name(), "read|bash|intercom", name(), about)
                .prop_map(|(call, tool, path, about)| AgentEvent::ToolStarted {
                    call,
                    tool,
                    args: String::new(),
                    path,
                    about,
                })
                .boxed(),
        ),
        (
            4,
            (name(), proptest::option::of("read|bash"), outcome)
                .prop_map(|(call, tool, outcome)| AgentEvent::ToolEnded { call, tool, outcome, preview: "p".into() })
                .boxed(),
        ),
        (
            3,
            (0u64..50, any::<bool>())
                .prop_map(|(tokens, last)| AgentEvent::Message {
                    role: MessageRole::Assistant,
                    preview: String::new(),
                    model: None,
                    stop: Some(if last { StopReason::Stop } else { StopReason::ToolUse }),
                    usage: Some(Usage {
                        tokens: Tokens { input: tokens, ..Tokens::default() },
                        cost: Some(CostUsd(0.25)),
                    }),
                    error: None,
                    calls_tools: !last,
                })
                .boxed(),
        ),
        (
            1,
            (0u64..500)
                .prop_map(|ms| AgentEvent::Retry {
                    attempt: None,
                    max: None,
                    delay_ms: Some(ms),
                    reason: String::new(),
                })
                .boxed(),
        ),
        (1, Just(AgentEvent::RetryEnded { success: true }).boxed()),
        (1, Just(AgentEvent::AgentStarted).boxed()),
        (1, Just(AgentEvent::TurnStarted).boxed()),
        (1, Just(AgentEvent::TurnEnded).boxed()),
        (1, any::<bool>().prop_map(|will_retry| AgentEvent::AgentEnded { will_retry }).boxed()),
        (1, Just(AgentEvent::Settled { aborted: false }).boxed()),
    ])
}

fn maybe_call() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[ab]")
}

fn outcome() -> impl Strategy<Value = Box<StepOutcome>> {
    let phase = prop_oneof![
        Just(StepPhase::Complete),
        Just(StepPhase::Failed),
        Just(StepPhase::Paused),
        Just(StepPhase::Stopped)
    ];
    phase.prop_map(|phase| Box::new(StepOutcome { phase, ..StepOutcome::default() }))
}

fn what() -> impl Strategy<Value = What> {
    let cause = prop_oneof![
        Just(EndingCause::Drain),
        Just(EndingCause::ToolTimeout),
        Just(EndingCause::StepTimeout),
        Just(EndingCause::StepStop),
        Just(EndingCause::Kill)
    ];
    let metric = prop_oneof![Just(super::super::Metric::Turns), Just(super::super::Metric::Tokens)];
    let stage = prop_oneof![
        Just(super::super::Stage::Soft),
        Just(super::super::Stage::Deferred),
        Just(super::super::Stage::Hard)
    ];
    Union::new_weighted(vec![
        (4, step().prop_map(|step| What::StepStarted { step }).boxed()),
        (
            4,
            (step(), 1u32..4)
                .prop_map(|(step, attempt)| What::AttemptStarted { step, attempt, model: None, reason: None })
                .boxed(),
        ),
        (4, step().prop_map(|step| What::ChildSpawned { step, pid: 7, start_ticks: None }).boxed()),
        (20, (step(), agent_event()).prop_map(|(step, event)| What::Agent { step, event }).boxed()),
        (2, step().prop_map(|step| What::OutputLines { step, lines: vec!["l".into()] }).boxed()),
        (2, step().prop_map(|step| What::ChildExited { step, exit: ExitInfo::default() }).boxed()),
        (1, step().prop_map(|step| What::OutputHeld { step, pids: vec![1] }).boxed()),
        (1, step().prop_map(|step| What::OutputTruncated { step, stream: Stream::Out, cap: 1 }).boxed()),
        (
            3,
            (step(), "[abc]", maybe_call(), 0i64..6000)
                .prop_map(|(step, id, call, until)| {
                    let asking = Asking { call, ..Asking::default() };
                    let until = (until < 3000).then(|| Timestamp::from_millis(until));
                    let question = Question { id, asking, until, ..Question::default() };
                    What::QuestionAsked { step, question: Box::new(question) }
                })
                .boxed(),
        ),
        (
            2,
            (step(), "[abc]")
                .prop_map(|(step, id)| {
                    let (answer, by) = (Answer::Allow, AnsweredBy::Person);
                    What::QuestionAnswered { step, id, text: String::new(), answer, by, source: None }
                })
                .boxed(),
        ),
        (2, (step(), outcome()).prop_map(|(step, outcome)| What::StepEnded { step, outcome }).boxed()),
        (
            2,
            (step(), cause)
                .prop_map(|(step, cause)| What::StepEnding { step, cause, message: "m".into(), source: None })
                .boxed(),
        ),
        (
            1,
            (step(), 0i64..3000)
                .prop_map(|(step, at)| What::AttemptEnded {
                    step,
                    exit_code: 1,
                    error: "e".into(),
                    next: NextAttempt {
                        at: Timestamp::from_millis(at),
                        model: None,
                        reason: "r".into(),
                        task_by_file: false,
                    },
                })
                .boxed(),
        ),
        (1, (step(), "[ab]").prop_map(|(step, id)| What::AttentionCleared { step, id }).boxed()),
        (1, (step(), "[ab]").prop_map(|(step, id)| What::AttentionAcknowledged { step, id, source: None }).boxed()),
        (1, step().prop_map(|step| What::AttentionNoted { step, reason: Reason::Idle, message: "m".into() }).boxed()),
        (
            1,
            (proptest::option::of(step()), metric, stage)
                .prop_map(|(step, metric, stage)| What::BudgetReached {
                    step,
                    metric,
                    stage,
                    used: 1.0,
                    message: "m".into(),
                })
                .boxed(),
        ),
        (
            1,
            (proptest::option::of(step()), 1u64..100)
                .prop_map(|(step, n)| What::BudgetRaised {
                    step,
                    raise: Raise::Tokens(super::super::End::Hard, n),
                    source: None,
                })
                .boxed(),
        ),
        (1, (0u64..2000).prop_map(|ms| What::Slept { ms }).boxed()),
        (1, Just(What::RunInterrupted { source: None }).boxed()),
        (1, Just(What::RunStopped { message: "m".into(), source: None }).boxed()),
        (1, Just(What::RunTimedOut { timeout_ms: None, message: "m".into(), source: None }).boxed()),
        (
            1,
            (step(), "SIGTERM|SIGINT")
                .prop_map(|(step, signal)| What::SignalSent {
                    step,
                    signal: if signal == "SIGINT" { "SIGINT" } else { "SIGTERM" },
                    pid: 7,
                    group: true,
                    cause: EndingCause::Kill,
                })
                .boxed(),
        ),
        (1, step().prop_map(|step| What::AbortSent { step }).boxed()),
        (1, Just(What::RunEnded { state: RunPhase::Failed, error: None }).boxed()),
    ])
}

/// A run whose limits and thresholds all lie within reach.
fn begun() -> RunState {
    let limits = Limits {
        idle_ms: Some(700),
        turns: Some(TurnLimit { max: 2, grace: 1 }),
        tool_calls: Some(Limit { soft: Some(2), hard: Some(4) }),
        tokens: Some(Limit { soft: Some(60), hard: Some(120) }),
        tool_ms: Some(400),
        ..Limits::default()
    };
    let thresholds = Thresholds {
        idle_ms: Some(200),
        tool_open_ms: Some(150),
        long_ms: Some(900),
        long_turns: Some(2),
        failures: Some(2),
        first_event_ms: Some(100),
        repeats: Some(2),
        ..Thresholds::default()
    };
    let meta = StepMeta { timeout_ms: Some(2000), limits, thresholds, cwd: "/w".into(), ..StepMeta::default() };
    let run = Limits { tokens: Some(Limit { soft: None, hard: Some(300) }), ..Limits::default() };
    let meta = RunMeta {
        steps: vec![meta; STEPS as usize],
        limits: run,
        deadline_at: Some(Timestamp::from_millis(4000)),
        ..RunMeta::default()
    };
    let mut state = RunState::default();
    reduce(&mut state, &Event { at: Timestamp::from_millis(0), what: What::RunStarted(Box::new(meta)) });
    state
}

/// What an engine records of a decision.
fn record(effect: &Effect) -> What {
    match effect.clone() {
        Effect::TimeOutRun => What::RunTimedOut { timeout_ms: None, message: "t".into(), source: None },
        Effect::End { step, cause, message } => What::StepEnding { step, cause, message, source: None },
        Effect::Reach { step, metric, stage, used, message } => {
            What::BudgetReached { step, metric, stage, used, message }
        }
        Effect::Raise { step, notice } => What::AttentionRaised { step, notice },
        Effect::Clear { step, id } => What::AttentionCleared { step, id },
        Effect::Again(step) => What::AttemptStarted { step, attempt: 2, model: None, reason: None },
        Effect::GiveUp(step) => {
            let outcome = StepOutcome { phase: StepPhase::Failed, ..StepOutcome::default() };
            What::StepEnded { step, outcome: Box::new(outcome) }
        }
        Effect::Expire { step, id } => {
            let (text, answer, by) = (String::new(), Answer::Deny(None), AnsweredBy::Timeout);
            What::QuestionAnswered { step, id, text, answer, by, source: None }
        }
        Effect::Abort(step) => What::AbortSent { step },
        Effect::Signal { step, signal, group, cause } => What::SignalSent { step, signal, pid: 7, group, cause },
    }
}

/// What must hold of every state.
fn check(state: &RunState) {
    for step in &state.steps {
        let over = step.phase.is_terminal() && step.ending.is_none();
        assert!(!over || step.open.is_empty(), "an ended step has open calls: {step:?}");
        assert!(step.attention.is_empty() || step.phase == StepPhase::Running, "a notice on a step that is over");
        let mut ids: Vec<_> = step.attention.iter().map(|n: &Notice| &n.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), step.attention.len(), "one notice for each cause");
        assert!(step.activity.is_none() || !step.attention.is_empty(), "{step:?}");
        assert!(step.questions.is_empty() || !over, "an ended step waits for answers: {step:?}");
        assert!(step.questions.len() <= StepState::KEPT_SIGNS);
        assert!(step.recent_tools.len() <= StepState::KEPT_TOOLS && step.recent_output.len() <= StepState::KEPT_LINES);
    }
}

/// What only grows, and what never changes any more.
fn check_change(before: &RunState, after: &RunState) {
    assert!(before.ended_at.is_none() || after.phase == before.phase, "the end of a run is final");
    for (old, new) in before.steps.iter().zip(&after.steps) {
        assert!(new.tool_count >= old.tool_count && new.turn_count >= old.turn_count);
        assert!(new.tokens.total() >= old.tokens.total() && new.attempts.len() >= old.attempts.len());
        let over = old.phase.is_terminal() && old.ending.is_none();
        assert!(!over || new.phase == old.phase, "an end is final: {:?} became {:?}", old.phase, new.phase);
    }
}

/// No step is ended for two reasons at once, and nothing but a signal twice.
fn check_decision(decision: &Decision) {
    for id in (0..STEPS).map(StepId) {
        let ends = decision.due.iter().filter(|effect| match effect {
            Effect::End { step, .. } => *step == id,
            Effect::Reach { step, stage, .. } => *step == Some(id) && *stage == super::super::Stage::Hard,
            _ => false,
        });
        assert!(ends.count() <= 1, "{:?}", decision.due);
    }
}

/// Limits of time that fire have run out.
fn check_early(state: &RunState, now: Timestamp, decision: &Decision) {
    for effect in &decision.due {
        let Effect::End { step, cause, .. } = effect else { continue };
        let step = state.step(*step).unwrap();
        let awake = |since: Option<Timestamp>| since.map_or(0, |at| state.gaps.awake(at, now).as_millis());
        match cause {
            EndingCause::ToolTimeout => {
                assert!(step.open.iter().any(|call| awake(Some(call.started_at)) >= 400), "{step:?} at {now:?}");
            }
            EndingCause::StepTimeout => {
                // The order of the beginnings is as odd as everything else.
                let began = step.attempts.iter().filter_map(|a| a.started_at).chain(step.started_at).min();
                // One limit is on the whole step, the other on its silence.
                let silent = awake(step.last_activity.or(began)) >= 700;
                assert!(awake(began) >= 2000 || (silent && awake(began) >= 700), "{step:?} at {now:?}");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_state_holds_together(
        story in proptest::collection::vec((0i64..5000, what()), 0..60),
        backwards in any::<bool>(),
        attentive in any::<bool>(),
    ) {
        let mut state = begun();
        let mut story = story;
        if !backwards {
            story.sort_by_key(|(at, _)| *at);
        }
        for (at, what) in story {
            let at = Timestamp::from_millis(at);
            let before = state.clone();
            reduce(&mut state, &Event { at, what });
            check(&state);
            check_change(&before, &state);
            let decision = decide(&state, at);
            check_decision(&decision);
            check_early(&state, at, &decision);
            if attentive {
                for effect in &decision.due {
                    let before = state.clone();
                    reduce(&mut state, &Event { at, what: record(effect) });
                    check(&state);
                    check_change(&before, &state);
                }
            }
        }
    }

    #[test]
    fn what_is_decided_comes_to_rest(story in proptest::collection::vec((0i64..5000, what()), 0..40)) {
        let mut state = begun();
        let mut story = story;
        story.sort_by_key(|(at, _)| *at);
        for (at, what) in story {
            let at = Timestamp::from_millis(at);
            reduce(&mut state, &Event { at, what });
            let mut rounds = 0;
            loop {
                let decision = decide(&state, at);
                if decision.due.is_empty() {
                    prop_assert!(decision.next.is_none_or(|next| next > at), "what is past is due");
                    break;
                }
                rounds += 1;
                prop_assert!(rounds < 8, "{:?}", decision.due);
                for effect in &decision.due {
                    reduce(&mut state, &Event { at, what: record(effect) });
                }
            }
        }
    }
}
