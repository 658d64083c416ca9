//! When the next attempt is made, and when none is.

use super::*;

#[test]
fn the_next_attempt_is_made_at_its_time_or_given_up() {
    let next = || {
        let next = crate::run::NextAttempt {
            at: ms(750),
            model: None,
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        What::AttemptEnded { step: STEP, exit_code: 1, error: "e".into(), next }
    };
    let mut play = Play::of(meta());
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(750, "again")]);
    let mut play = Play::of(meta());
    play.at(100, next()).at(200, What::RunStopped { message: "m".into(), source: None }).until(5000);
    assert_eq!(play.done(), [(200, "give up")]);
    let mut play = Play::of(StepMeta { timeout_ms: Some(300), ..meta() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "step-timeout"), (300, "give up")]);
}

#[test]
fn no_attempt_follows_once_a_limit_is_reached() {
    let tokens = |l: &mut Limits| l.tokens = Some(Limit { soft: None, hard: Some(100) });
    let turns = |l: &mut Limits| l.turns = Some(TurnLimit { max: 1, grace: 0 });
    for (meta, word) in [(limited(tokens), "tokens hard"), (limited(turns), "turns hard")] {
        let mut play = Play::of(meta);
        let failed = AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: String::new(),
            model: None,
            stop: Some(StopReason::Error),
            usage: Some(Usage { tokens: Tokens { input: 100, ..Tokens::default() }, cost: None }),
            error: Some("503 overloaded".into()),
            calls_tools: false,
        };
        // All of it comes in one piece, and then the child is gone.
        play.reduce(What::Agent { step: STEP, event: failed });
        play.reduce(What::Agent { step: STEP, event: AgentEvent::Settled { aborted: false } });
        play.reduce(What::ChildExited { step: STEP, exit: crate::run::ExitInfo::default() });
        let next = crate::run::NextAttempt {
            at: ms(0),
            model: Some("b".into()),
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        play.reduce(What::AttemptEnded { step: STEP, exit_code: 1, error: "503 overloaded".into(), next });
        play.until(10);
        let done: Vec<&str> =
            play.done.iter().map(|(_, word)| word.as_str()).filter(|w| !w.ends_with("soft")).collect();
        assert_eq!(done, [word, "give up"]);
    }
}

#[test]
fn no_attempt_follows_when_time_ends_the_step_or_the_run_in_the_same_moment() {
    let next = || {
        let next = crate::run::NextAttempt {
            at: ms(300),
            model: None,
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        What::AttemptEnded { step: STEP, exit_code: 1, error: "e".into(), next }
    };
    let mut play = Play::of(StepMeta { timeout_ms: Some(300), ..meta() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "step-timeout"), (300, "give up")]);
    let mut play = Play::new(vec![meta()], RunMeta { deadline_at: Some(ms(300)), ..RunMeta::default() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "run"), (300, "give up")]);
    // The end of another step is not its own.
    let mut play = Play::new(vec![meta(), StepMeta { timeout_ms: Some(300), ..meta() }], RunMeta::default());
    play.at(100, next()).until(300);
    assert_eq!(play.done(), [(300, "again"), (300, "step-timeout"), (300, "SIGTERM")]);
}
