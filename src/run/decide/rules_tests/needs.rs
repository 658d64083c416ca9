//! What is told because somebody may be needed, and until when.

use super::*;

#[test]
fn each_rule_is_told_at_its_threshold_and_taken_back_with_its_cause() {
    let ok = ToolOutcome::Ok;
    let failed = ToolOutcome::Error;
    let edits = CallFacts { fingerprint: 5, mutates: true, asks: false };
    let asks = CallFacts { fingerprint: 6, mutates: false, asks: true };
    let retry = || AgentEvent::Retry { attempt: Some(1), max: None, delay_ms: None, reason: "429".into() };
    type Story = (&'static str, StepMeta, Vec<(i64, AgentEvent)>, Vec<(i64, &'static str)>);
    let stories: Vec<Story> = vec![
        (
            "idle is longer than its threshold",
            watched(|t| t.idle_ms = Some(1000)),
            vec![(200, AgentEvent::AgentStarted), (1500, AgentEvent::TurnStarted), (1600, open("A", "bash"))],
            vec![(1201, "raise idle"), (1500, "clear idle")],
        ),
        (
            "no first word",
            watched(|t| t.first_event_ms = Some(700)),
            vec![(900, AgentEvent::AgentStarted)],
            vec![(700, "raise no_first_event"), (900, "clear no_first_event")],
        ),
        (
            "an open tool, the oldest of them",
            watched(|t| t.tool_open_ms = Some(900)),
            vec![(300, open("A", "bash")), (400, open("B", "read")), (2000, close("A", ok)), (2100, close("B", ok))],
            vec![
                (1200, "raise tool_open_threshold"),
                // The oldest one goes, the other one is the oldest then.
                (2000, "raise tool_open_threshold"),
                (2000, "clear tool_open_threshold"),
                (2100, "clear tool_open_threshold"),
            ],
        ),
        (
            "single tools, and those that are exempt",
            watched(|t| {
                (t.tool_open_ms, t.exempt) = (Some(900), vec!["ask".into()]);
                t.tool_open_of = [("web".to_owned(), 50), ("bash".to_owned(), 0)].into();
            }),
            vec![
                (0, open("A", "bash")),
                (0, open("B", "ask")),
                (0, open("C", "intercom")),
                (10, open("D", "web")),
                (2000, close("D", ok)),
            ],
            vec![(60, "raise tool_open_threshold"), (2000, "clear tool_open_threshold")],
        ),
        (
            "a question to the supervisor, until the last is answered",
            meta(),
            vec![
                (10, about("A", "contact_supervisor", asks)),
                (20, about("B", "intercom", asks)),
                (30, close("A", ok)),
                (40, close("B", ok)),
            ],
            vec![(10, "raise supervisor_request"), (40, "clear supervisor_request")],
        ),
        (
            "changes that fail, until one works",
            watched(|t| t.failures = Some(2)),
            vec![
                (1, about("A", "edit", edits)),
                (2, close("A", failed)),
                (3, open("B", "bash")),
                (4, close("B", failed)),
                (5, about("C", "edit", edits)),
                (6, close("C", failed)),
                (7, about("D", "edit", edits)),
                (8, close("D", ok)),
            ],
            vec![(6, "raise tool_failures"), (8, "clear tool_failures")],
        ),
        (
            "the same call, until another one",
            watched(|t| t.repeats = Some(3)),
            vec![
                (1, open("A", "bash")),
                (2, open("B", "bash")),
                (3, open("C", "bash")),
                (4, open("D", "bash")),
                (5, about("E", "edit", edits)),
            ],
            vec![(3, "raise repeated_call"), (5, "clear repeated_call")],
        ),
        (
            "for long, by time, turns and tokens",
            watched(|t| (t.long_ms, t.long_turns, t.long_tokens) = (Some(1000), Some(2), Some(30))),
            vec![(10, turn(29, 0.0, false)), (20, turn(1, 0.0, false))],
            vec![(20, "raise turn_threshold"), (20, "raise token_threshold"), (1000, "raise time_threshold")],
        ),
        (
            "a provider that does not answer",
            meta(),
            vec![(10, retry()), (90, AgentEvent::RetryEnded { success: true })],
            vec![(10, "raise retrying"), (90, "clear retrying")],
        ),
    ];
    for (name, meta, events, told) in stories {
        let mut play = Play::of(meta);
        for (at, event) in events {
            play.says(at, event);
        }
        play.until(5000);
        assert_eq!(play.done(), told, "{name}");
        // Nothing needs a look in a step that is over.
        let outcome = Box::default();
        play.at(6000, What::StepEnded { step: STEP, outcome });
        let step = &play.state.steps[0];
        assert!(step.attention.is_empty() && step.activity.is_none(), "{name}");
    }
}

fn asks(id: &str, at: i64, until: Option<i64>, call: Option<&str>) -> What {
    let asking = Asking { text: "Which?".into(), call: call.map(str::to_owned), ..Asking::default() };
    let question = Question { id: id.into(), asking, asked_at: ms(at), until: until.map(ms) };
    What::QuestionAsked { step: STEP, question: Box::new(question) }
}

fn answers(id: &str, by: AnsweredBy) -> What {
    let (answer, text) = (Answer::Allow, "Which?".into());
    What::QuestionAnswered { step: STEP, id: id.into(), text, answer, by, source: None }
}

#[test]
fn each_question_is_told_until_it_is_answered_or_its_time_is_over() {
    let mut play = Play::of(meta());
    play.at(10, asks("q1", 10, None, None)).at(20, asks("q2", 20, Some(90), None));
    // A message of the agent's in between is no answer.
    play.says(30, turn(1, 0.0, false)).at(50, answers("q1", AnsweredBy::Person)).until(200);
    let told = [(10, "raise question"), (20, "raise question"), (50, "clear question"), (90, "expire q2")];
    assert_eq!(play.done()[..4], told);
    assert_eq!(play.done()[4..], [(90, "clear question")]);
    assert!(play.state.steps[0].questions.is_empty());
    // Once is enough, and a second one of the same name is none.
    let anomalies = play.state.anomalies;
    play.at(210, asks("q3", 210, None, None)).at(220, asks("q3", 220, None, None));
    assert_eq!((play.state.steps[0].questions.len(), play.state.anomalies), (1, anomalies + 1));
    // A step that is being ended asks nobody.
    let (cause, message) = (EndingCause::StepStop, String::new());
    play.at(230, What::StepEnding { step: STEP, cause, message, source: None }).until(300);
    assert!(play.state.steps[0].attention.is_empty());
    play.at(310, What::StepEnded { step: STEP, outcome: Box::default() });
    assert!(play.state.steps[0].questions.is_empty());
    assert_eq!(play.state.anomalies, anomalies + 1);
    play.at(320, asks("q4", 320, None, None));
    assert!(play.state.steps[0].questions.is_empty() && play.state.anomalies == anomalies + 2);
}

#[test]
fn a_call_that_waits_for_a_permission_has_not_begun_and_silence_is_not_the_agents() {
    let step = StepMeta {
        limits: Limits { tool_ms: Some(100), idle_ms: Some(150), ..Limits::default() },
        thresholds: Thresholds { tool_open_ms: Some(50), ..Thresholds::default() },
        ..StepMeta::default()
    };
    let mut play = Play::of(step);
    play.says(0, open("A", "bash")).at(10, asks("q1", 10, None, Some("A"))).until(1000);
    assert_eq!(play.done(), [(10, "raise question")]);
    play.at(1000, answers("q1", AnsweredBy::Person)).until(1200);
    let after = [(1000, "clear question"), (1050, "raise tool_open_threshold"), (1100, "tool-timeout")];
    assert_eq!(play.done()[1..4], after, "its time begins with the answer");
}

#[test]
fn a_question_that_nobody_may_be_asked_pauses_the_run_with_a_code_of_its_own() {
    let mut play = Play::of(meta());
    play.at(10, asks("q1", 10, None, None)).at(10, answers("q1", AnsweredBy::Nobody));
    play.at(10, What::RunInterrupted { source: None });
    let paused = StepOutcome { phase: StepPhase::Paused, ..StepOutcome::default() };
    play.at(20, What::StepEnded { step: STEP, outcome: Box::new(paused) });
    let (state, error) = (RunPhase::Paused, None);
    play.reduce(What::RunEnded { state, error });
    assert_eq!(play.state.steps[0].unanswered.as_deref(), Some("Which?"));
    assert_eq!(exit_code(&play.state), ExitCause::NeedsPerson);
    play.state.steps.push(StepState { phase: StepPhase::Failed, ..StepState::default() });
    assert_eq!(exit_code(&play.state), ExitCause::Failed, "a failure says more");
}

#[test]
fn nothing_is_told_where_the_rules_are_off() {
    let all = |enabled| StepMeta { thresholds: Thresholds { enabled, ..Thresholds::default() }, ..meta() };
    let play = |enabled| {
        let mut play = Play::of(all(enabled));
        play.says(10, about("A", "contact_supervisor", CallFacts { asks: true, ..CallFacts::default() }))
            .until(500_000);
        play.done.len()
    };
    assert_eq!((play(false), play(true)), (0, 2), "a question, and that it runs for long");
}

#[test]
fn what_happened_to_a_step_is_told() {
    let path = |id: u32| {
        let about = CallFacts { mutates: true, ..CallFacts::default() };
        let (call, path) = (Some("A".into()), Some("a.rs".into()));
        let event = AgentEvent::ToolStarted { call, tool: "edit".into(), args: String::new(), path, about };
        What::Agent { step: StepId(id), event }
    };
    let mut play = Play::new(vec![meta(), meta()], RunMeta::default());
    play.at(1, path(0)).at(2, path(1)).at(9, What::StepEnded { step: STEP, outcome: Box::default() }).until(20);
    assert_eq!(play.done(), [(2, "raise path_conflict"), (2, "raise path_conflict"), (9, "clear path_conflict")]);

    let mut play = Play::of(meta());
    play.at(3, What::OutputTruncated { step: STEP, stream: crate::run::Stream::Out, cap: 5 });
    play.at(4, What::OutputHeld { step: STEP, pids: vec![12] }).until(20);
    assert_eq!(play.done(), [(3, "raise disk_cap"), (4, "raise output_held")]);
    let held = &play.state.steps[0].attention[1];
    assert!(held.condition.evidence.contains("12"), "{held:?}");

    let steer = |id: &str, state| {
        let failed_at = (state == TargetState::Failed).then_some(ms(5));
        let target = SteerTarget { step: STEP, state, routed_at: None, delivered_at: None, failed_at, reason: None };
        What::SteerRequested(Box::new(SteerRequest {
            id: id.into(),
            requested_at: ms(5),
            source: None,
            mode: SteerMode::Steer,
            preview: String::new(),
            message: String::new(),
            targets: vec![target],
        }))
    };
    let mut play = Play::of(meta());
    play.at(5, steer("one", TargetState::Failed)).at(8, steer("two", TargetState::Routed)).until(20);
    assert_eq!(play.done(), [(5, "raise steer_failed"), (8, "clear steer_failed")]);
}

/// What a request of somebody unknown did is looked for in the step that it was about, not in who runs after it.
#[test]
fn what_nobody_announced_stays_with_the_step_that_it_was_about() {
    let unannounced = |step| {
        let source = crate::run::ControlSource { via: "v".to_owned(), ..Default::default() };
        What::ControlUnannounced { step, what: "answer".to_owned(), source }
    };
    let ended = |id| What::StepEnded { step: StepId(id), outcome: Box::default() };
    let told = |play: &Play, id: usize| play.state.steps[id].attention.len();
    for (about, carrier) in [(Some(StepId(1)), 1), (Some(STEP), 0), (None, 0)] {
        let mut play = Play::new(vec![meta(), meta()], RunMeta::default());
        play.at(5, unannounced(about)).until(8);
        assert_eq!(play.done(), [(5, "raise control_unannounced")]);
        assert_eq!((told(&play, carrier), told(&play, 1 - carrier)), (1, 0), "{about:?}");
        play.at(9, ended(u32::try_from(carrier).unwrap())).until(20);
        assert_eq!((told(&play, 0), told(&play, 1), play.done().len()), (0, 0, 1), "{about:?}");
    }
}

#[test]
fn what_somebody_took_note_of_is_told_again_at_twice_the_threshold() {
    let note = |play: &mut Play, at| {
        let id = play.state.steps[0].attention[0].id.clone();
        play.at(at, What::AttentionAcknowledged { step: STEP, id, source: None });
    };
    let mut play = Play::of(watched(|t| t.tool_open_ms = Some(1000)));
    play.says(0, open("A", "bash")).until(1100);
    note(&mut play, 1500);
    play.until(2500);
    note(&mut play, 2600);
    play.until(9000);
    let again = "raise tool_open_threshold again";
    assert_eq!(play.done(), [(1000, "raise tool_open_threshold"), (2000, again), (4000, again)]);
    assert!(play.state.steps[0].attention[0].is_open());
    // Nobody is told twice of what nobody took note of.
    let mut play = Play::of(watched(|t| t.repeats = Some(2)));
    for n in 1..=8 {
        play.says(n, open(&n.to_string(), "bash"));
    }
    assert_eq!(play.until(20).done(), [(2, "raise repeated_call")]);
    note(&mut play, 30);
    // The count is at four times the threshold already, and who took note knows: eight times is what lies ahead.
    for n in 9..=16 {
        play.says(n + 30, open(&n.to_string(), "bash"));
    }
    assert_eq!(play.until(60).done()[1..], [(46, "raise repeated_call again")]);
}

#[test]
fn what_is_taken_note_of_late_is_told_again_at_the_next_threshold_that_lies_ahead() {
    let mut play = Play::of(watched(|t| t.idle_ms = Some(999)));
    play.says(0, AgentEvent::AgentStarted).until(10_000);
    play.at(10_000, What::AttentionAcknowledged { step: STEP, id: "0:idle".into(), source: None }).until(20_000);
    assert_eq!(play.done(), [(1000, "raise idle"), (16_000, "raise idle again")]);
}

#[test]
fn changes_that_fail_at_one_path_are_told_though_others_work_between_them() {
    let mut play = Play::of(watched(|t| t.failures = Some(3)));
    let call = |id: &str, path: &str| AgentEvent::ToolStarted {
        call: Some(id.into()),
        tool: "edit".into(),
        args: String::new(),
        path: Some(path.into()),
        about: CallFacts { mutates: true, ..CallFacts::default() },
    };
    for n in 0..3i64 {
        play.says(n * 10, call("A", "a.rs")).says(n * 10 + 1, close("A", ToolOutcome::Error));
        play.says(n * 10 + 2, call("B", "b.rs")).says(n * 10 + 3, close("B", ToolOutcome::Ok));
    }
    play.until(100);
    assert_eq!(play.done().first().copied(), Some((21, "raise tool_failures")));
}
#[test]
fn changes_that_failed_at_one_path_are_past_when_one_works_there_or_after_five_minutes() {
    let call = |id: &str, path: &str| AgentEvent::ToolStarted {
        call: Some(id.into()),
        tool: "edit".into(),
        args: String::new(),
        path: Some(path.into()),
        about: CallFacts { mutates: true, ..CallFacts::default() },
    };
    let story = || {
        let mut play = Play::of(watched(|t| t.failures = Some(2)));
        play.says(0, call("A", "a.rs")).says(1, close("A", ToolOutcome::Error));
        play.says(2, call("B", "b.rs")).says(3, close("B", ToolOutcome::Ok));
        play.says(4, call("A", "a.rs")).says(5, close("A", ToolOutcome::Error));
        play.says(6, call("B", "b.rs")).says(7, close("B", ToolOutcome::Ok));
        play
    };
    let mut play = story();
    play.says(8, call("A", "a.rs")).says(9, close("A", ToolOutcome::Ok)).until(100);
    assert_eq!(play.done(), [(5, "raise tool_failures"), (9, "clear tool_failures")]);
    let mut play = story();
    play.until(400_000);
    assert_eq!(play.done(), [(5, "raise tool_failures"), (300_002, "clear tool_failures")]);
}

#[test]
fn what_is_counted_is_told_again_at_the_next_doubling_beyond_what_was_noted() {
    let mut play = Play::of(watched(|t| t.long_turns = Some(1)));
    for at in 1..=20 {
        play.says(at * 10, turn(1, 0.0, false));
        if at == 5 {
            play.until(55);
            play.at(55, What::AttentionAcknowledged { step: STEP, id: "0:turn_threshold".into(), source: None });
        }
    }
    play.until(300);
    assert_eq!(play.done(), [(10, "raise turn_threshold"), (80, "raise turn_threshold again")]);
}

/// A look at what was started in the step.
fn look(heard: i64, needs: Option<&str>) -> What {
    let run = InnerRun {
        id: RunId("inner".to_owned()),
        title: "build".to_owned(),
        started_at: ms(100),
        heard: ms(heard),
        needs: needs.map(|need| (need.to_owned(), ms(heard))),
    };
    What::InnerRuns { step: STEP, runs: vec![run] }
}

#[test]
fn what_an_inner_run_does_is_a_sign_of_life_of_its_step() {
    let mut play = Play::of(watched(|t| t.idle_ms = Some(1000)));
    play.says(0, AgentEvent::AgentStarted);
    play.until(900).reduce(look(900, None));
    play.until(1800).reduce(look(1700, None));
    assert_eq!(play.state.steps[0].waits_for().map(|run| run.title.as_str()), Some("build"));
    // Both are silent for longer than the threshold, and that is said of both.
    play.until(2800);
    assert_eq!(play.done(), [(2701, "raise idle")]);
    let evidence = &play.state.steps[0].attention[0].condition.evidence;
    assert!(evidence.ends_with("for 1s, in its inner run build neither"), "{evidence}");
    // It writes again, so nobody is needed.
    play.reduce(look(2800, None));
    assert!(crate::run::needs(&play.state).is_empty(), "void before it is taken back");
    play.until(2900);
    // It ends, which is a sign of life too, and from there the rule holds again.
    play.reduce(What::InnerRuns { step: STEP, runs: Vec::new() });
    assert_eq!(play.state.steps[0].waits_for(), None);
    play.until(4000);
    assert_eq!(play.done(), [(2701, "raise idle"), (2800, "clear idle"), (3901, "raise idle")]);
    assert!(play.state.steps[0].attention[0].condition.evidence.ends_with("for 1s"));
}

#[test]
fn what_an_inner_run_needs_is_told_at_its_step_until_it_has_it() {
    let mut play = Play::of(watched(|t| t.idle_ms = Some(1000)));
    play.says(0, AgentEvent::AgentStarted);
    play.until(500).reduce(look(500, Some("pusher: asks: git push?")));
    // Somebody is asked already; that the step is silent meanwhile is no other matter.
    play.until(5000);
    let needs = crate::run::needs(&play.state);
    let lines: Vec<String> = needs.iter().map(|n| n.line(&play.state, ms(5000)).to_string()).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("its inner run needs you: build: pusher: asks: git push?"), "{lines:?}");
    assert_eq!(play.done(), [(500, "raise inner_run")]);
    play.reduce(look(5000, None));
    play.until(5500);
    assert_eq!(play.done().last(), Some(&(5000, "clear inner_run")));
    assert_eq!(play.state.steps[0].activity, None);
}

#[test]
fn a_tool_in_which_a_run_was_started_is_open_for_long_only_once_that_is_silent() {
    let mut play = Play::of(watched(|t| t.tool_open_ms = Some(1000)));
    play.says(50, open("A", "bash"));
    play.until(900).reduce(look(900, None));
    // One that was begun after the run waits for something else.
    play.says(950, open("B", "read"));
    play.until(2500);
    assert_eq!(play.done(), [(1900, "raise tool_open_threshold")]);
    play.reduce(look(2500, None));
    play.until(3400);
    // B has been silent for longer now.
    let want = [(1900, "raise"), (2500, "raise"), (2500, "clear")];
    assert_eq!(
        play.done(),
        want.map(|(at, word)| (at, format!("{word} tool_open_threshold")))
            .each_ref()
            .map(|(at, word)| (*at, word.as_str()))
    );
}

#[test]
fn the_limit_on_silence_hears_an_inner_run_too() {
    let mut play = Play::of(limited(|l| l.idle_ms = Some(1000)));
    play.says(0, AgentEvent::AgentStarted);
    play.until(900).reduce(look(900, None));
    play.until(1800);
    assert_eq!(play.done(), []);
    play.until(2000);
    assert!(play.done().first().is_some_and(|(at, _)| *at == 1900), "{:?}", play.done);
}
