//! Messages to agents: written, kept, refused, taken back, and those that go on with a session.

use super::*;

#[test]
fn a_message_is_written_sent_and_kept() {
    let mut stage = stage();
    effects(&mut stage, "shello q x\nthere");
    let steer = |targets: &[u32], mode| UiEffect::Steer {
        targets: targets.iter().map(|n| StepId(*n)).collect(),
        mode,
        message: "hello q x\nthere".to_owned(),
        key: "ctrl-s",
        home: StepId(2),
    };
    assert!(stage.key(KeyCode::Esc).is_empty());
    assert!(stage.ui.overlays.is_empty());
    stage.keys("s");
    assert_eq!(stage.press(ctrl('s')), [steer(&[2], SteerMode::Steer)]);
    assert!(stage.ui.drafts.contains_key(&StepId(2)), "the draft stays until the request is on disk");
    stage.keys("s");
    stage.key(KeyCode::Tab);
    stage.press(ctrl('t'));
    assert_eq!(stage.press(ctrl('s')), [steer(&[3], SteerMode::FollowUp)]);
    stage.keys("s");
    for _ in 0..3 {
        stage.key(KeyCode::Tab);
    }
    assert_eq!(stage.press(ctrl('s')), [steer(&[2, 3, 4], SteerMode::FollowUp)]);
    stage.keys("s");
    stage.press(ctrl('c'));
    assert!(stage.ui.drafts.is_empty() && stage.ui.overlays.is_empty());
}

#[test]
fn what_cannot_be_sent_says_why() {
    let mut stage = stage();
    stage.keys("s");
    assert!(stage.press(ctrl('s')).is_empty());
    assert!(stage.ui.notice.as_ref().is_some_and(|n| n.bad));
    stage.keys("text");
    stage.feed.state.steps[2].steerable = Steerable::No("a plain command".to_owned());
    assert!(stage.press(ctrl('s')).is_empty());
    assert_eq!(stage.ui.notice.as_ref().unwrap().text.as_str(), "step 3 cannot be steered: a plain command");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Composer(_))), "the text is not lost");
}

#[test]
fn what_is_typed_to_a_step_that_takes_no_message_is_no_key() {
    type Case = (&'static str, fn(&mut Stage), &'static str);
    let over = |stage: &mut Stage| {
        stage.feed.state.phase = RunPhase::Complete;
        stage.feed.state.ended_at = Some(NOW);
    };
    let cases: [Case; 4] = [
        ("s", over, "the run is over (complete)"),
        ("S", over, "the run is over (complete)"),
        ("S", |stage| stage.read_only = Some(SafeText::line("--read-only")), "read-only: --read-only"),
        (
            "s",
            |stage| stage.feed.state.steps[2].phase = StepPhase::Complete,
            "step 3 is over; once the run is over too, s goes on with its session",
        ),
    ];
    for (key, prepare, why) in cases {
        let mut stage = stage();
        stage.feed.state.steps[2].session_file = Some("/s.jsonl".to_owned());
        prepare(&mut stage);
        assert!(effects(&mut stage, key).is_empty());
        stage.seen();
        assert!(effects(&mut stage, "xyXyiiqls").is_empty(), "{key}");
        assert_eq!(refused(&stage).as_deref(), Some(why));
        assert!(stage.press(ctrl('s')).is_empty());
        assert_eq!(stage.ui.notice.as_ref().map(|n| n.text.as_str()), Some(why));
        stage.key(KeyCode::Esc);
        assert!(stage.ui.overlays.is_empty());
        assert_eq!(stage.ui.drafts[&StepId(2)].message(), "xyXyiiqls", "the draft is kept");
    }
}

/// What the composer says of why nothing can be sent.
fn refused(stage: &Stage) -> Option<String> {
    match stage.ui.overlays.last() {
        Some(Overlay::Composer(composer)) => composer.refused.as_ref().map(ToString::to_string),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_to_a_step_that_takes_none_can_go_to_another_one() {
    let mut stage = stage();
    stage.feed.state.steps[2].steerable = Steerable::No("a plain command".to_owned());
    stage.keys("slook");
    assert_eq!(refused(&stage).as_deref(), Some("step 3 cannot be steered: a plain command"));
    stage.key(KeyCode::Tab);
    assert_eq!(refused(&stage), None);
    let sent = stage.press(ctrl('s'));
    assert!(matches!(&sent[..], [UiEffect::Steer { targets, .. }] if *targets == [StepId(3)]), "{sent:?}");
    // It can be told something by now.
    stage.keys("s");
    assert!(refused(&stage).is_some());
    stage.feed.state.steps[2].steerable = Steerable::Yes;
    let sent = stage.press(ctrl('s'));
    assert!(matches!(&sent[..], [UiEffect::Steer { targets, .. }] if *targets == [StepId(2)]), "{sent:?}");
}

#[test]
fn what_was_asked_is_told_to_its_end() {
    let mut stage = stage();
    stage.feed.state.steering.recent.clear();
    let sent = |what, step| Sent { id: None, what, step, at: NOW, fate: Fate::default() };
    let sees = |stage: &mut Stage, text: &str| {
        let picture = stage.text();
        assert!(picture.contains(text), "{text}: {picture}");
    };
    stage.ui.sent.push(sent("acknowledge", Some(StepId(3))));
    sees(&mut stage, "control: acknowledge → step 4 written");
    for notice in &mut stage.feed.state.steps[3].attention {
        notice.acknowledged = Some(NOW);
    }
    sees(&mut stage, "control: acknowledge → step 4 done");
    stage.ui.sent.push(sent("stop", Some(StepId(2))));
    sees(&mut stage, "control: stop → step 3 written");
    stage.feed.state.steps[2].ending = Some(Ending {
        cause: EndingCause::StepStop,
        since: NOW,
        message: String::new(),
        abort_at: None,
        int_at: None,
        term_at: None,
        kill_at: None,
    });
    sees(&mut stage, "control: stop → step 3 taken");
    stage.feed.state.steps[2].ending = None;
    stage.feed.state.steps[2].phase = StepPhase::Stopped;
    sees(&mut stage, "control: stop → step 3 done");
    stage.ui.sent.push(sent("stop", None));
    sees(&mut stage, "control: stop written");
    stage.feed.state.stopped = true;
    sees(&mut stage, "control: stop taken");
}

#[test]
fn a_message_can_be_taken_back_until_somebody_took_it() {
    let mut stage = stage();
    assert!(effects(&mut stage, "u").is_empty());
    assert_eq!(stage.ui.notice.as_ref().unwrap().text.as_str(), "no message of yours waits to be taken");
    // Written by this deck and not taken by the runner yet.
    stage.ui.sent.push(Sent {
        id: Some("new".to_owned()),
        what: "steer",
        step: Some(StepId(2)),
        at: NOW,
        fate: Fate::default(),
    });
    assert_eq!(effects(&mut stage, "u"), [UiEffect::TakeBack("new".to_owned())]);
    // Taken, and held for a step that waits; then delivered.
    let mut request = SteerRequest {
        id: "new".to_owned(),
        requested_at: NOW,
        source: None,
        mode: SteerMode::Steer,
        message: String::new(),
        preview: "go left".to_owned(),
        targets: vec![SteerTarget {
            step: StepId(5),
            state: TargetState::Scheduled,
            routed_at: None,
            delivered_at: None,
            failed_at: None,
            reason: None,
        }],
    };
    stage.feed.state.steering.add(request.clone());
    assert_eq!(effects(&mut stage, "u"), [UiEffect::TakeBack("new".to_owned())]);
    request.targets[0].state = TargetState::Delivered;
    *stage.feed.state.steering.recent.last_mut().unwrap() = request;
    assert!(effects(&mut stage, "u").is_empty());
    stage.ui.sent[0].id = Some("newer".to_owned());
    stage.ui.withdrawn.insert("newer".to_owned());
    assert!(effects(&mut stage, "u").is_empty(), "once is enough");
}

#[test]
fn a_message_that_the_agent_queued_is_said_to_be_with_it() {
    let mut stage = stage();
    stage.keys("u");
    assert_eq!(stage.ui.notice.as_ref().unwrap().text.as_str(), "no message of yours waits to be taken");
    let mut request = stage.feed.state.steering.recent.last().unwrap().clone();
    request.targets[0].state = TargetState::Queued;
    stage.feed.state.steering.add(request);
    stage.keys("u");
    let said = stage.ui.notice.as_ref().unwrap().text.to_string();
    assert!(said.contains("is with the agent already"), "{said}");
}

#[test]
fn a_run_that_is_over_is_gone_on_with() {
    let over = |can: bool, session: bool| {
        let mut stage = stage();
        stage.ui.can_go_on = can;
        stage.feed.state.phase = RunPhase::Complete;
        stage.feed.state.ended_at = Some(NOW);
        let step = &mut stage.feed.state.steps[2];
        step.phase = StepPhase::Complete;
        step.session_file = session.then(|| "/s.jsonl".to_owned());
        stage
    };
    let mut stage = over(true, true);
    stage.keys("snow the docs");
    // There is one target and one mode.
    stage.key(KeyCode::Tab);
    stage.press(ctrl('t'));
    let effect = UiEffect::GoOn { step: StepId(2), message: "now the docs".to_owned() };
    assert_eq!(stage.press(ctrl('s')), [effect]);
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Composer(_))), "it stays until the run has begun");
    assert_eq!(stage.ui.drafts[&StepId(2)].message(), "now the docs");
    for (can, session) in [(false, true), (true, false)] {
        let mut stage = over(can, session);
        stage.keys("s");
        assert_eq!(refused(&stage).as_deref(), Some("the run is over (complete)"));
    }
    // The sessions of a lost run live on; a run that is only looked at for another reason is left alone.
    for (lost, opens) in [(true, true), (false, false)] {
        let mut stage = over(true, true);
        stage.read_only = Some(SafeText::line("the runner is gone"));
        stage.feed.state.lost = lost.then(|| "no such process".to_owned());
        stage.keys("s");
        assert_eq!(refused(&stage).is_none(), opens, "{lost}");
    }
    // A plain command has no session, and a run that goes on is steered.
    let mut stage = over(true, true);
    stage.feed.state.steps[2].runner = RunnerKind::ExternalCli { command: "sh".to_owned(), args: Vec::new() };
    stage.keys("s");
    assert!(refused(&stage).is_some());
}
