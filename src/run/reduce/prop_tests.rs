//! Whatever happens in whatever order, at whatever time: nothing panics, what a state says of itself holds, and nothing is
//! told or ended before its time.

mod early;

use proptest::prelude::*;

use super::*;
use crate::run::story::{STEPS, begun, record, story};
use crate::run::{Decision, Effect, Notice, StepState, attention, budget, decide, exit_code, verdict};
use early::History;

/// The state of a run that has just begun.
fn start(meta: RunMeta) -> (RunState, History) {
    let mut state = RunState::default();
    let history = History::new(&meta);
    reduce(&mut state, &Event { at: Timestamp::from_millis(0), what: What::RunStarted(Box::new(meta)) });
    (state, history)
}

/// What must hold of every state.
fn check(state: &RunState, now: Timestamp) {
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
        assert!(step.sub_agents.len() <= crate::run::SubAgent::KEPT && step.steering.recent.len() <= 20);
        // What people are shown of it can be asked for at any time, also before it began.
        let _ = (step.elapsed(now), step.face(), budget::meters(state, step, now));
    }
    assert!(state.rejected.len() <= KEPT_REJECTIONS && state.steering.recent.len() <= 20);
    let _ = (state.elapsed(now), budget::run_meters(state, now), attention::open_notices(state));
    let _ = (verdict(state), exit_code(state), budget::exhausted(state));
}

/// What only grows, and what never changes any more.
fn check_change(before: &RunState, after: &RunState) {
    assert!(before.ended_at.is_none() || after.phase == before.phase, "the end of a run is final");
    for (old, new) in before.steps.iter().zip(&after.steps) {
        assert!(new.tool_count >= old.tool_count && new.turn_count >= old.turn_count);
        assert!(new.tokens.total() >= old.tokens.total() && new.attempts.len() >= old.attempts.len());
        let over = old.phase.is_terminal() && old.ending.is_none();
        assert!(!over || new.phase == old.phase, "an end is final: {:?} became {:?}", old.phase, new.phase);
        assert!(!over || new.ended_at == old.ended_at, "the end of a step is final");
    }
}

/// No step is ended for two reasons at once, and nothing but a signal twice.
fn check_decision(decision: &Decision) {
    for id in (0..STEPS).map(StepId) {
        let ends = decision.due.iter().filter(|effect| match effect {
            Effect::End { step, .. } => *step == id,
            Effect::Reach { step, stage, .. } => *step == Some(id) && *stage == crate::run::Stage::Hard,
            _ => false,
        });
        assert!(ends.count() <= 1, "{:?}", decision.due);
    }
}

/// Tells a story to the reducer, decides after every event, and looks at everything; `attentive`: records the conclusions.
fn tell(meta: RunMeta, story: Vec<(Timestamp, What)>, attentive: bool) {
    let (mut state, mut history) = start(meta);
    let step = |state: &mut RunState, history: &mut History, at, what: What| {
        let before = state.clone();
        reduce(state, &Event { at, what: what.clone() });
        history.push(at, what);
        check(state, at);
        check_change(&before, state);
    };
    for (at, what) in story {
        step(&mut state, &mut history, at, what);
        let decision = decide(&state, at);
        check_decision(&decision);
        history.check(&state, at, &decision);
        if attentive {
            for effect in &decision.due {
                step(&mut state, &mut history, at, record(effect));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_a_state_holds_together(meta in begun(), story in story(80, false), attentive in any::<bool>()) {
        tell(meta, story, attentive);
    }

    #[test]
    fn whatever_happens_a_clock_that_is_set_back_makes_nothing_early(meta in begun(), story in story(80, true), attentive in any::<bool>()) {
        tell(meta, story, attentive);
    }

    #[test]
    fn what_is_decided_comes_to_rest(meta in begun(), story in story(60, false)) {
        let (mut state, _) = start(meta);
        for (at, what) in story {
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
