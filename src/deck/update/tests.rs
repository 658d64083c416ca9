//! Keys to effects, as a table and as stories.

use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

mod looking;
mod messages;
mod mouse;

use super::*;
use crate::deck::entries::Entries;
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
    let cx = Context {
        state: &stage.feed.state,
        read_only: None,
        entries: Entries { history: &stage.history, older: &stage.older },
        now: NOW,
    };
    assert!(update(&mut stage.ui, cx, &Input::Paste("xy\x1b[31m\r\nii".to_owned())).is_empty());
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Composer(_))));
    assert_eq!(stage.ui.drafts[&StepId(2)].message(), "xy[31m\nii");
    for opener in ["x", "X", "q", "?"] {
        let mut stage = Stage::new(120, 36);
        stage.keys(opener);
        stage.seen();
        let cx = Context {
            state: &stage.feed.state,
            read_only: None,
            entries: Entries { history: &stage.history, older: &stage.older },
            now: stage.now,
        };
        assert!(update(&mut stage.ui, cx, &Input::Paste("y".to_owned())).is_empty());
        assert_eq!(stage.ui.overlays.len(), 1);
    }
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
    assert!(stage.text().contains("F9  interrupt    pause the run"), "{}", stage.text());
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

#[test]
fn who_goes_elsewhere_while_a_search_goes_on_does_not_end_it_and_is_not_moved_by_it() {
    for (keys, away) in [
        ("", false),
        // Nothing of this is another place: a picture that is held, a line that is wrapped, an entry that is read.
        (" ", false),
        ("w", false),
        ("j", false),
        ("k", true),
        ("g", true),
        ("3", true),
        ("]", true),
        ("z", true),
        ("&", true),
    ] {
        let mut stage = stage();
        stage.keys("2");
        stage.ui.searching = Some(5);
        stage.keys(keys);
        assert_eq!((stage.ui.searching, stage.ui.away), (Some(5), away), "{keys:?}");
    }
    for code in [KeyCode::PageUp, KeyCode::PageDown] {
        let mut stage = stage();
        stage.keys("2");
        stage.ui.searching = Some(5);
        stage.key(code);
        assert_eq!((stage.ui.searching, stage.ui.away), (Some(5), true), "{code:?}");
    }
    // Nobody is moved below what he reads; one key back ends the search and nothing else.
    let mut stage = stage();
    stage.keys("2");
    stage.ui.searching = Some(5);
    assert!(stage.ui.may_be_led());
    stage.key(KeyCode::Enter);
    assert!(!stage.ui.may_be_led() && !stage.ui.away);
    stage.key(KeyCode::Esc);
    assert!(stage.ui.may_be_led());
    stage.key(KeyCode::Esc);
    assert!(stage.ui.searching.is_none() && stage.ui.zoom);
}
