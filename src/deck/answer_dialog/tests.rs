//! The keys of the dialog, and what can be read in it.

use super::*;
use crate::deck::view::tests::Stage;
use crate::run::{Asking, Choice, QuestionKind, Timestamp};

fn asks(stage: &mut Stage, step: usize, id: &str, asking: Asking, at: i64) {
    let question = Question { id: id.into(), asking, asked_at: Timestamp::from_millis(at), until: None };
    stage.feed.state.steps[step].questions.push(question);
}

fn permission() -> Asking {
    Asking { text: "May it use Bash? make".into(), ..Asking::default() }
}

fn choices(free: bool) -> Asking {
    let choice = |id: &str| Choice { id: id.into(), ..Choice::default() };
    Asking { kind: QuestionKind::Choice, choices: vec![choice("Red"), choice("Blue")], free, ..Asking::default() }
}

/// The effects of keys typed by a person who looks at each frame.
fn keys(stage: &mut Stage, keys: &[KeyCode]) -> Vec<UiEffect> {
    keys.iter()
        .flat_map(|key| {
            stage.seen();
            stage.key(*key)
        })
        .collect()
}

fn typed(stage: &mut Stage, text: &str) -> Vec<UiEffect> {
    keys(stage, &text.chars().map(|c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }).collect::<Vec<_>>())
}

fn answered(step: u32, question: &str, answer: Answer) -> Vec<UiEffect> {
    vec![UiEffect::Answer { step: StepId(step), question: question.into(), answer }]
}

#[test]
fn a_permission_is_answered_by_a_key_or_by_a_choice() {
    let mut stage = Stage::new(120, 36);
    asks(&mut stage, 2, "q1", permission(), 5);
    assert_eq!(typed(&mut stage, "Ay"), answered(2, "q1", Answer::Allow));
    // It stays until the answer is on disk.
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Answer(_))));
    assert_eq!(typed(&mut stage, "n"), answered(2, "q1", Answer::Deny(None)));
    assert_eq!(typed(&mut stage, "\n"), [], "nothing is chosen beforehand");
    assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Allow));
    assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Deny(None)));
    assert_eq!(typed(&mut stage, "xqX1"), [], "other keys do nothing");
    keys(&mut stage, &[KeyCode::Esc]);
    assert!(stage.ui.overlays.is_empty());
}

#[test]
fn keys_that_came_before_the_question_was_seen_answer_nothing() {
    let mut stage = Stage::new(120, 36);
    asks(&mut stage, 2, "q1", permission(), 5);
    let breath: Vec<UiEffect> = ['A', 'y', 'n'].iter().flat_map(|c| stage.key(KeyCode::Char(*c))).collect();
    assert_eq!(breath, [], "typed in one breath");
    assert_eq!(stage.key(KeyCode::Enter), []);
    stage.seen();
    assert_eq!(stage.key(KeyCode::Char('y')), answered(2, "q1", Answer::Allow));
}

#[test]
fn words_and_choices_of_the_agent() {
    let mut stage = Stage::new(120, 36);
    asks(&mut stage, 2, "q1", choices(false), 5);
    assert_eq!(typed(&mut stage, "A2"), answered(2, "q1", Answer::Choose("Blue".into())));
    stage.ui.overlays.clear();
    stage.feed.state.steps[2].questions[0].asking = choices(true);
    // One of them is meant until words are typed, which no key for a choice begins.
    for (keys, id) in [("A\n", "Red"), ("A2\n", "Blue"), ("Ajj\n", "Blue"), ("Ajk1\n", "Red")] {
        assert_eq!(typed(&mut stage, keys), answered(2, "q1", Answer::Choose(id.into())), "{keys:?}");
        stage.ui.overlays.clear();
    }
    assert_eq!(typed(&mut stage, "Areds 2j\n"), answered(2, "q1", Answer::Text("reds 2j".into())));
    assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Choose("Red".into())));
    stage.ui.overlays.clear();
    stage.feed.state.steps[2].questions[0].asking = Asking { kind: QuestionKind::Text, ..Asking::default() };
    assert_eq!(typed(&mut stage, "A\n"), []);
    let Some(Overlay::Answer(dialog)) = stage.ui.overlays.last_mut() else { panic!("the dialog is gone") };
    assert_eq!(dialog.wrong.as_ref().unwrap().as_str(), "the answer is empty");
    paste(dialog, &stage.feed.state, "two\r\nlines\x1b[31m");
    assert_eq!(dialog.text, "two\nlines[31m");
    assert_eq!(typed(&mut stage, "\n"), answered(2, "q1", Answer::Text("two\nlines[31m".into())));
}

#[test]
fn several_choices_are_ticked_and_sent_together() {
    let mut stage = Stage::new(120, 36);
    let many = |free: bool| Asking { many: true, ..choices(free) };
    let both = |text: Option<&str>| {
        answered(2, "q1", Answer::Several(vec!["Red".into(), "Blue".into()], text.map(str::to_owned)))
    };
    let one = |id: &str| answered(2, "q1", Answer::Choose(id.into()));
    for (free, keys, expected) in [
        (true, "A j \n", both(None)),
        (true, "A21\n", both(None)),
        (true, "A 2", vec![]),
        (true, "A 2 \n", one("Red")),
        (false, "A12\n", both(None)),
        (false, "Aj \n", one("Blue")),
        (true, "Ajk2\n", one("Blue")),
        (true, "A12and 1 more\n", both(Some("and 1 more"))),
        (true, "Anone of these\n", answered(2, "q1", Answer::Text("none of these".into()))),
    ] {
        asks(&mut stage, 2, "q1", many(free), 5);
        assert_eq!(typed(&mut stage, keys), expected, "{keys:?}");
        stage.ui.overlays.clear();
        stage.feed.state.steps[2].questions.clear();
    }
    asks(&mut stage, 2, "q1", many(true), 5);
    assert_eq!(typed(&mut stage, "A\n"), [], "nothing is chosen by standing on it");
    let Some(Overlay::Answer(dialog)) = stage.ui.overlays.last() else { panic!("the dialog is gone") };
    assert!(dialog.wrong.as_ref().unwrap().as_str().contains("space"));
}

#[test]
fn what_is_asked_is_paged_through_and_never_beyond_its_end() {
    let mut stage = Stage::new(80, 24);
    let detail = (1..=99).map(|n| format!("+ row {n}\n")).collect();
    asks(&mut stage, 2, "q1", Asking { detail, ..permission() }, 5);
    typed(&mut stage, "A");
    let shows = |stage: &mut Stage, text: &str| stage.text().contains(text);
    assert!(shows(&mut stage, "+ row 1 ") && !shows(&mut stage, "row 99"));
    keys(&mut stage, &[KeyCode::PageDown; 50]);
    assert!(shows(&mut stage, "+ row 99") && shows(&mut stage, "y allow"));
    keys(&mut stage, &[KeyCode::PageUp]);
    assert!(!shows(&mut stage, "+ row 99"), "one key is enough to leave the end");
    keys(&mut stage, &[KeyCode::PageUp; 50]);
    assert!(shows(&mut stage, "+ row 1 "));
    assert_eq!(typed(&mut stage, "y"), answered(2, "q1", Answer::Allow));
}

#[test]
fn on_the_smallest_screens_all_that_is_allowed_can_be_read() {
    let rest: String = (1..=40).map(|n| format!(" part-{n}-")).collect();
    for high in 4..=12 {
        let mut stage = Stage::new(30, high);
        asks(&mut stage, 2, "q1", Asking { text: format!("May it use Bash?{rest}"), ..Asking::default() }, 5);
        typed(&mut stage, "A");
        let mut seen = std::collections::BTreeSet::new();
        let mut look = |stage: &mut Stage| {
            let text = stage.text();
            seen.extend((1..=40).filter(|n| text.contains(&format!("part-{n}-"))));
        };
        look(&mut stage);
        for _ in 0..60 {
            keys(&mut stage, &[KeyCode::PageDown]);
            look(&mut stage);
        }
        let text = stage.text();
        let allowed = !typed(&mut stage, "y").is_empty();
        assert!(!allowed || seen.len() == 40, "30x{high}: only {seen:?} was seen\n{text}");
        assert!(allowed || text.contains("enlarge"), "30x{high}\n{text}");
        assert!(high < 8 || allowed && text.contains("pgup pgdn"), "30x{high}\n{text}");
    }
}

#[test]
fn yes_and_no_are_the_choices_for_this_once() {
    let mut stage = Stage::new(120, 36);
    let choice = |id: &str, kind: &str| Choice { id: id.into(), label: id.into(), kind: kind.into() };
    let choices = vec![choice("always", "allow_always"), choice("once", "allow_once"), choice("not", "reject_once")];
    asks(&mut stage, 2, "q1", Asking { choices, ..permission() }, 5);
    assert_eq!(typed(&mut stage, "Ay"), answered(2, "q1", Answer::Choose("once".into())));
    assert_eq!(typed(&mut stage, "n"), answered(2, "q1", Answer::Choose("not".into())));
    assert_eq!(typed(&mut stage, "1"), answered(2, "q1", Answer::Choose("always".into())));
    assert_eq!(typed(&mut stage, "23"), []);
}

#[test]
fn the_selected_step_comes_first_and_a_question_that_is_gone_is_said_to_be() {
    let mut stage = Stage::new(120, 36);
    stage.keys("A");
    assert!(stage.ui.notice.as_ref().is_some_and(|n| n.bad), "nobody asks anything");
    asks(&mut stage, 3, "q1", permission(), 9);
    asks(&mut stage, 4, "q2", permission(), 5);
    assert_eq!(next(&stage.ui, &stage.feed.state), Some((StepId(4), "q2".to_owned())));
    stage.ui.selected = StepId(3);
    assert_eq!(typed(&mut stage, "Ay"), answered(3, "q1", Answer::Allow));
    stage.feed.state.steps[3].questions.clear();
    assert_eq!(typed(&mut stage, "y"), []);
    assert!(stage.ui.overlays.is_empty() && stage.ui.notice.is_some());
}
