//! Keys to effects, as a table and as stories.

use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::deck::keymap::{Binding, Keymap};
use crate::deck::model::{Fate, Overlay, Sent, Tab, ViewMode};
use crate::deck::view::tests::{NOW, Stage};
use crate::run::{
    Ending, EndingCause, RunPhase, RunnerKind, SteerMode, SteerRequest, SteerTarget, Steerable, StepPhase, TargetState,
};

fn stage() -> Stage {
    Stage::new(120, 36)
}

fn ctrl(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

/// The effects of keys typed by a person.
fn effects(stage: &mut Stage, keys: &str) -> Vec<UiEffect> {
    keys.chars()
        .flat_map(|c| {
            stage.seen();
            stage.key(if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) })
        })
        .collect()
}

#[test]
fn what_ends_something_needs_two_different_keys() {
    let step = StepId(2);
    for (keys, expected) in [
        ("x", vec![]),
        ("xx", vec![]),
        ("x\n", vec![]),
        ("xn", vec![]),
        ("xy", vec![UiEffect::StopStep(step)]),
        ("X", vec![]),
        ("XX", vec![]),
        ("X\n", vec![]),
        ("Xy", vec![UiEffect::StopRun]),
        ("i", vec![]),
        ("ii", vec![UiEffect::Interrupt]),
        ("ij", vec![]),
        ("iji", vec![]),
        ("q", vec![]),
        ("qn", vec![]),
        ("qc", vec![]),
        ("ql", vec![UiEffect::Leave]),
        ("q\n", vec![UiEffect::Leave]),
        ("qq", vec![UiEffect::Leave]),
        // The letter that everybody types all day stops nothing, and the way to stop asks again.
        ("qs", vec![]),
        ("qX", vec![]),
        ("qXn", vec![]),
        ("qXy", vec![UiEffect::StopRun]),
    ] {
        assert_eq!(effects(&mut stage(), keys), expected, "{keys:?}");
    }
}

#[test]
fn the_second_interrupt_must_come_in_time_and_not_at_once() {
    for (seen, wait_ms, acts) in
        [(false, 0, false), (false, 500, false), (true, 1, true), (true, 1900, true), (true, 2100, false)]
    {
        let mut stage = stage();
        stage.key(KeyCode::Char('i'));
        if seen {
            stage.seen();
        }
        stage.now = stage.now + Duration::from_millis(wait_ms);
        let done = stage.key(KeyCode::Char('i')) == [UiEffect::Interrupt];
        assert_eq!(done, acts, "{seen} {wait_ms}");
    }
}

/// Not every terminal marks what is pasted, and one that is slow draws in the middle of it.
#[test]
fn keys_that_come_at_once_answer_nothing_although_a_frame_came_between() {
    for (after_key, after_frame, acts) in [(0, 0, false), (50, 10, false), (10, 50, false), (50, 50, true)] {
        for (keys, done) in [("xy", UiEffect::StopStep(StepId(2))), ("ii", UiEffect::Interrupt)] {
            let mut stage = stage();
            let [first, second] = [0, 1].map(|n| KeyCode::Char(char::from(keys.as_bytes()[n])));
            let now = stage.now;
            stage.now = Timestamp::from_millis(now.millis() - after_key);
            stage.key(first);
            stage.ui.drawn(Timestamp::from_millis(now.millis() - after_frame));
            stage.now = now;
            let wanted = if acts { vec![done] } else { vec![] };
            assert_eq!(stage.key(second), wanted, "{keys} {after_key} {after_frame}");
        }
    }
}

#[test]
fn a_burst_of_keys_cannot_answer_its_own_question() {
    let mut stage = stage();
    for c in "xyXyqs".chars() {
        assert!(stage.key(KeyCode::Char(c)).is_empty(), "{c}");
    }
}

#[test]
fn a_paste_is_a_message_and_never_a_key() {
    let mut stage = stage();
    let cx = Context { state: &stage.feed.state, read_only: None, history: &stage.history, now: NOW };
    assert!(update(&mut stage.ui, cx, &Input::Paste("xy\x1b[31m\r\nii".to_owned())).is_empty());
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Composer(_))));
    assert_eq!(stage.ui.drafts[&StepId(2)].message(), "xy[31m\nii");
    for opener in ["x", "X", "q", "?"] {
        let mut stage = Stage::new(120, 36);
        stage.keys(opener);
        stage.seen();
        let cx = Context { state: &stage.feed.state, read_only: None, history: &stage.history, now: stage.now };
        assert!(update(&mut stage.ui, cx, &Input::Paste("y".to_owned())).is_empty());
        assert_eq!(stage.ui.overlays.len(), 1);
    }
}

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
fn no_control_key_is_silent_when_it_can_do_nothing() {
    for key in ["i", "x", "X", "+", "u"] {
        let mut stage = stage();
        stage.feed.state.phase = RunPhase::Complete;
        stage.feed.state.ended_at = Some(NOW);
        assert!(effects(&mut stage, key).is_empty());
        assert_eq!(stage.ui.notice.as_ref().map(|n| n.text.as_str()), Some("the run is over (complete)"), "{key}");
    }
    let mut stage = stage();
    stage.read_only = Some(SafeText::line("--read-only"));
    effects(&mut stage, "x");
    assert_eq!(stage.ui.notice.as_ref().map(|n| n.text.as_str()), Some("read-only: --read-only"));
    assert_eq!(effects(&mut stage, "q"), [UiEffect::Leave]);
}

/// What the composer says of why nothing can be sent.
fn refused(stage: &Stage) -> Option<String> {
    match stage.ui.overlays.last() {
        Some(Overlay::Composer(composer)) => composer.refused.as_ref().map(ToString::to_string),
        other => panic!("{other:?}"),
    }
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
fn escape_goes_back_one_level_at_a_time() {
    let mut stage = stage();
    stage.keys("vz?");
    stage.key(KeyCode::Esc);
    assert!(stage.ui.overlays.is_empty() && stage.ui.zoom);
    stage.key(KeyCode::Esc);
    assert!(!stage.ui.zoom && stage.ui.mode == ViewMode::Grid);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.ui.mode, ViewMode::List);
    assert!(stage.key(KeyCode::Esc).is_empty());
}

#[test]
fn selection_moves_and_stops_at_the_ends() {
    for (keys, expected) in
        [("", 2), ("j", 3), ("k", 1), ("jjjjjjj", 5), ("kkkkkk", 0), ("g", 0), ("G", 5), ("]", 3), ("[", 1)]
    {
        let mut stage = stage();
        stage.keys(keys);
        assert_eq!(stage.ui.selected, StepId(expected), "{keys:?}");
    }
}

#[test]
fn digits_pick_a_step_below_the_bar_and_a_tab_elsewhere() {
    let mut stage = stage();
    stage.keys("vv5");
    assert_eq!((stage.ui.selected, stage.ui.zoom), (StepId(4), false));
    stage.keys("z2");
    assert_eq!((stage.ui.selected, stage.ui.tab(StepId(4))), (StepId(4), Tab::Tools));
    let mut stage = Stage::new(120, 36);
    stage.keys("4");
    assert_eq!((stage.ui.zoom, stage.ui.tab(StepId(2))), (true, Tab::Budget));
}

#[test]
fn what_a_runner_of_others_told_is_seen_in_this_deck_only() {
    let mut stage = stage();
    stage.feed.state.steps.iter_mut().for_each(|step| step.key.clear());
    stage.keys("g!");
    assert_eq!(effects(&mut stage, "a"), [], "nothing is written that nobody reads");
    assert!(attention(&stage.feed.state, &stage.ui).is_empty());
    assert!(stage.ui.notice.as_ref().unwrap().text.as_str().contains("in this deck"));
    let told = crate::deck::attention::evidence(&stage.feed.state, StepId(3), NOW);
    assert!(told.iter().any(|(name, text)| name == "told by" && text == "its own runner"), "{told:?}");
}

#[test]
fn attention_is_jumped_to_acknowledged_and_raised_again_when_it_changes() {
    let mut stage = stage();
    stage.keys("g!");
    assert_eq!(stage.ui.selected, StepId(3));
    // The runner's notice is taken note of in the run, for everybody who looks.
    let sent = effects(&mut stage, "a");
    let notice = "3:tool_open_threshold:372".to_owned();
    assert_eq!(sent, [UiEffect::Acknowledge(StepId(3), notice)]);
    assert!(attention(&stage.feed.state, &stage.ui).is_empty());
    let row =
        |stage: &mut Stage| stage.text().lines().find(|l| l.contains("│ 4 reviewer ")).unwrap_or_default().to_owned();
    assert!(row(&mut stage).contains("● seen"), "{}", stage.text());
    assert!(!stage.text().contains("▲ attention"), "{}", stage.text());
    stage.feed.state.steps[3].attention[1].times = 2;
    assert!(row(&mut stage).contains("▲ attention"), "{}", stage.text());
    assert_eq!(attention(&stage.feed.state, &stage.ui).len(), 1, "told again");
    // A run that is only looked at is left alone.
    stage.read_only = Some(SafeText::line("finished"));
    assert!(effects(&mut stage, "a").is_empty());
    assert!(attention(&stage.feed.state, &stage.ui).is_empty());
    // Of a foreign run the word alone is known.
    let step = &mut stage.feed.state.steps[3];
    step.attention.clear();
    assert_eq!(attention(&stage.feed.state, &stage.ui).len(), 1);
    stage.keys("a");
    stage.feed.state.steps[3].open.clear();
    assert_eq!(attention(&stage.feed.state, &stage.ui).len(), 1, "it is something else now");
}

#[test]
fn what_is_taken_note_of_is_what_the_line_names() {
    let mut stage = stage();
    // Two steps need somebody; the line speaks of the selected one, and of the most urgent when that needs nobody.
    let word = Some("needs_attention".to_owned());
    let two = &mut stage.feed.state.steps[2];
    (two.activity, two.attention) = (word, Vec::new());
    for (selected, named) in [(2, 2), (3, 3), (0, 3)] {
        stage.ui.selected = StepId(selected);
        stage.ui.acknowledged.clear();
        let text = stage.text();
        let line = text.lines().find(|l| l.contains("2 NEED YOU")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(&format!("step {} ", StepId(named))), "{line}");
        assert!(line.contains(&format!("a acknowledge step {}", StepId(named))), "{line}");
        stage.keys("a");
        assert_eq!(stage.ui.acknowledged.keys().copied().collect::<Vec<_>>(), [StepId(named)]);
    }
}

#[test]
fn the_palette_does_what_the_key_does() {
    let mut stage = stage();
    assert!(effects(&mut stage, ":stop run\n").is_empty());
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Confirm { what: Danger::Run, .. })));
    let mut stage = Stage::new(120, 36);
    assert!(effects(&mut stage, ":zoom\n").is_empty());
    assert!(stage.ui.zoom);
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

#[test]
fn the_folder_and_the_path_of_a_step_are_a_key_away() {
    let mut stage = stage();
    assert_eq!(effects(&mut stage, "$"), [UiEffect::Shell(StepId(2))]);
    // The open call names no path, so it is that of the newest call that did.
    assert_eq!(effects(&mut stage, "e"), [UiEffect::Editor(StepId(2))]);
    stage.keys("G");
    assert!(effects(&mut stage, "e").is_empty());
    assert!(stage.ui.notice.as_ref().is_some_and(|n| n.bad));
}

#[test]
fn a_filter_lists_what_has_its_words_and_keys_move_among_them() {
    let mut stage = stage();
    stage.keys("&work");
    assert!(stage.text().contains("& work: 2 of 6"), "{}", stage.text());
    assert!(!stage.text().contains("acceptance"), "{}", stage.text());
    stage.key(KeyCode::Enter);
    stage.keys("j");
    assert_eq!(stage.ui.selected, StepId(4));
    stage.keys("j");
    assert_eq!(stage.ui.selected, StepId(4));
    stage.keys("k");
    assert_eq!(stage.ui.selected, StepId(2));
    // One level back, and all are there again.
    stage.key(KeyCode::Esc);
    assert_eq!(stage.ui.filter, None);
    stage.keys("&qX");
    stage.key(KeyCode::Esc);
    assert_eq!((stage.ui.filter.as_deref(), stage.ui.overlays.len()), (None, 0));
    assert!(stage.text().contains("acceptance"));
}

#[test]
fn own_keys_do_what_they_say_and_are_what_is_shown() {
    let mut stage = stage();
    let binding = |action: &str, key: &str| Binding { action: action.to_owned(), keys: vec![key.to_owned()] };
    let (keymap, refused) =
        Keymap::with(&[binding("stop_step", "K"), binding("interrupt", "F9"), binding("help", "h")]);
    assert!(refused.is_empty());
    stage.ui.keymap = keymap;
    assert!(effects(&mut stage, "x").is_empty() && stage.ui.overlays.is_empty());
    let text = stage.text();
    let footer = text.lines().last().unwrap();
    assert!(footer.contains("K stop") && footer.contains("F9 F9 interrupt") && footer.contains("h help"), "{footer}");
    stage.keys("h");
    assert!(stage.text().contains("F9  pause the run"), "{}", stage.text());
    stage.key(KeyCode::Esc);
    assert_eq!(effects(&mut stage, "Ky"), [UiEffect::StopStep(StepId(2))]);
    stage.key(KeyCode::F(9));
    stage.seen();
    assert!(stage.text().contains("press F9 again"), "{}", stage.text());
    assert_eq!(stage.key(KeyCode::F(9)), [UiEffect::Interrupt]);
}

#[test]
fn what_has_had_its_time_goes() {
    let mut stage = stage();
    say(&mut stage.ui, NOW, false, "seen");
    stage.ui.armed = Some(Question::new(NOW));
    assert_eq!(expires_at(&stage.ui), Some(NOW + ARMED_FOR));
    assert!(expire(&mut stage.ui, NOW + ARMED_FOR));
    assert!(stage.ui.armed.is_none() && stage.ui.notice.is_some());
    assert!(expire(&mut stage.ui, NOW + NOTICE_FOR));
    assert!(!expire(&mut stage.ui, NOW + NOTICE_FOR));
    assert_eq!(expires_at(&stage.ui), None);
}

#[test]
fn a_quiet_picture_needs_no_clock() {
    let mut stage = stage();
    assert!(clocks_run(&stage.feed.state, &stage.ui));
    stage.feed.state.phase = RunPhase::Complete;
    stage.feed.state.ended_at = Some(NOW);
    for step in &mut stage.feed.state.steps {
        step.phase = StepPhase::Complete;
    }
    assert!(!clocks_run(&stage.feed.state, &stage.ui));
    stage.ui.frozen = Some(NOW);
    assert!(clocks_run(&stage.feed.state, &stage.ui));
}

#[test]
fn the_mouse_points_at_what_is_drawn() {
    let mut stage = stage();
    let click = |stage: &mut Stage, x, y| {
        let mouse = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: x,
            row: y,
            modifiers: KeyModifiers::NONE,
        };
        let cx = Context { state: &stage.feed.state, read_only: None, history: &stage.history, now: NOW };
        update(&mut stage.ui, cx, &Input::Mouse(mouse))
    };
    // The header, the attention line and the frame are above the first row.
    click(&mut stage, 5, 4);
    assert_eq!(stage.ui.selected, StepId(1));
    click(&mut stage, 5, 4);
    assert!(stage.ui.zoom);
    stage.keys("zvv");
    click(&mut stage, 14, 2);
    assert_eq!(stage.ui.selected, StepId(1));
}

/// Clicks on a text that is on the screen.
fn click_on(stage: &mut Stage, text: &str) -> Vec<UiEffect> {
    let screen = stage.text();
    let (row, line) = screen.lines().enumerate().find(|(_, l)| l.contains(text)).unwrap_or_else(|| panic!("{screen}"));
    let column = line[..line.find(text).unwrap()].chars().count();
    let kind = MouseEventKind::Down(MouseButton::Left);
    let at = |n: usize| u16::try_from(n).unwrap();
    let mouse = MouseEvent { kind, column: at(column), row: at(row), modifiers: KeyModifiers::NONE };
    let cx = Context { state: &stage.feed.state, read_only: None, history: &stage.history, now: NOW };
    update(&mut stage.ui, cx, &Input::Mouse(mouse))
}

#[test]
fn what_looks_clickable_is() {
    let mut stage = stage();
    click_on(&mut stage, "jump");
    assert_eq!(stage.ui.selected, StepId(3));
    click_on(&mut stage, "w why");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Why { step: StepId(3), .. })));
    // Above a dialog a click answers nothing.
    click_on(&mut stage, "rule");
    assert_eq!(stage.ui.overlays.len(), 1);
    stage.key(KeyCode::Esc);
    stage.keys("kz");
    click_on(&mut stage, "tools 23");
    assert_eq!(stage.ui.tab(StepId(2)), Tab::Tools);
    click_on(&mut stage, "no match");
    assert_eq!(stage.ui.pane(StepId(2)).cursor.get(&Tab::Tools), Some(&21));
    assert_eq!(click_on(&mut stage, "no match"), [UiEffect::Open(StepId(2))]);
    click_on(&mut stage, "esc back");
    assert!(!stage.ui.zoom);
    click_on(&mut stage, "stop");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Confirm { .. })));
    stage.key(KeyCode::Esc);
    for (text, size) in [("worker-b", (120, 36)), ("worker-b", (80, 24))] {
        stage.ui.size = size;
        stage.ui.mode = ViewMode::Flow;
        stage.ui.selected = StepId(2);
        click_on(&mut stage, text);
        assert_eq!(stage.ui.selected, StepId(4), "{text} at {size:?}");
    }
}

#[test]
fn groups_fold_and_stages_are_walked_through() {
    let mut stage = stage();
    stage.ui.selected = StepId(4);
    stage.key(KeyCode::Left);
    assert_eq!(stage.ui.selected, StepId(2));
    assert!(stage.text().contains("▸ 3 worker +2") && !stage.text().contains("5 worker-b"), "{}", stage.text());
    // Folding what is folded says so.
    stage.key(KeyCode::Left);
    assert!(stage.text().contains("is folded already"), "{}", stage.text());
    stage.key(KeyCode::Right);
    assert!(stage.text().contains("5 worker-b"));
    stage.ui.selected = StepId(5);
    stage.key(KeyCode::Left);
    assert!(stage.text().contains("step 6 is in no group and has no sub-agents"), "{}", stage.text());
    stage.ui.mode = ViewMode::Flow;
    for (key, selected) in [
        (KeyCode::Left, 2),
        (KeyCode::Char('j'), 3),
        (KeyCode::Left, 1),
        (KeyCode::Left, 0),
        (KeyCode::Left, 0),
        (KeyCode::Right, 1),
    ] {
        stage.key(key);
        assert_eq!(stage.ui.selected, StepId(selected), "{key:?}");
    }
}

#[test]
fn a_run_that_is_over_is_done_again_after_a_question() {
    let mut stage = stage();
    stage.ui.can_retry = true;
    assert!(effects(&mut stage, "R").is_empty(), "it is not over yet");
    stage.feed.state.phase = RunPhase::Failed;
    stage.feed.state.ended_at = Some(NOW);
    assert!(effects(&mut stage, "R\n").is_empty());
    assert_eq!(effects(&mut stage, "Ry"), [UiEffect::Retry]);
    for step in &mut stage.feed.state.steps {
        step.phase = StepPhase::Complete;
    }
    assert!(effects(&mut stage, "R").is_empty());
    assert!(stage.text().contains("every step is complete"), "{}", stage.text());
}

#[test]
fn the_help_is_searched() {
    let mut stage = stage();
    stage.keys("?/budget");
    let text = stage.text();
    assert!(text.contains("/ budget") && text.contains("change a limit") && !text.contains("withdraw"), "{text}");
    stage.key(KeyCode::Esc);
    assert!(stage.text().contains("withdraw"));
    stage.key(KeyCode::Esc);
    assert!(stage.ui.overlays.is_empty());
}

#[test]
fn what_was_looked_for_can_be_looked_for_again() {
    let mut stage = stage();
    let typed = |stage: &Stage| match stage.ui.overlays.last() {
        Some(Overlay::Search { query, .. }) => query.clone(),
        other => panic!("{other:?}"),
    };
    for needle in ["one", "two", "one"] {
        stage.keys("/");
        stage.keys(needle);
        assert_eq!(stage.key(KeyCode::Enter), [UiEffect::Find { opposite: false }]);
    }
    stage.keys("/");
    stage.key(KeyCode::Up);
    assert_eq!(typed(&stage), "one");
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Up);
    assert_eq!(typed(&stage), "two");
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    assert_eq!(typed(&stage), "");
    assert_eq!(stage.key(KeyCode::Enter), [UiEffect::Find { opposite: false }]);
    assert_eq!(stage.ui.search.as_ref().unwrap().needle, "one");
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
fn who_reads_why_can_do_something_about_it_at_once() {
    let mut stage = stage();
    stage.ui.selected = StepId(3);
    // Other keys close it and do nothing else.
    assert_eq!(effects(&mut stage, "wv"), []);
    assert!(stage.ui.overlays.is_empty() && stage.ui.mode == ViewMode::List);
    assert_eq!(effects(&mut stage, "wx"), []);
    let confirms = |stage: &Stage| matches!(stage.ui.overlays.as_slice(), [Overlay::Confirm { what, .. }] if *what == Danger::Step(StepId(3)));
    assert!(confirms(&stage), "{:?}", stage.ui.overlays);
    assert_eq!(effects(&mut stage, "n"), []);
    assert_eq!(effects(&mut stage, "ws"), []);
    assert!(matches!(stage.ui.overlays.as_slice(), [Overlay::Composer(_)]), "{:?}", stage.ui.overlays);
    stage.ui.overlays.clear();
    effects(&mut stage, "wa");
    assert!(stage.ui.overlays.is_empty() && stage.ui.acknowledged.contains_key(&StepId(3)));
}
