//! The tabs that list entries: where another attempt begins in them, and where the keys are.

use super::stage::ago;
use super::*;
use crate::run::Attempt;

/// Whether a text has all of these, one after the other.
fn in_order(text: &str, parts: &[&str]) -> bool {
    parts.iter().try_fold(0, |from, part| Some(from + text[from..].find(part)? + part.len())).is_some()
}

fn attempts() -> Vec<Attempt> {
    let attempt = |seconds, reason: Option<&str>| Attempt {
        started_at: Some(ago(seconds)),
        reason: reason.map(str::to_owned),
        ..Attempt::default()
    };
    vec![attempt(242, None), attempt(30, Some("529 overloaded\u{1b}[2J")), attempt(2, None)]
}

#[test]
fn a_line_stands_where_another_attempt_began_among_calls_and_what_was_said() {
    let mut stage = Stage::new(100, 30);
    stage.keys("2");
    assert!(!stage.text().contains("attempt"), "{}", stage.text());
    stage.feed.state.steps[2].attempts = attempts();
    let text = stage.text();
    let (second, third) = ("── attempt 2, after: 529 overloaded", "── attempt 3 ──");
    assert!(in_order(&text, &["cargo test pool::", second, "no match", "● edit", third]), "{text}");
    // The keys are at entries alone, and so are clicks.
    stage.keys("k");
    let text = stage.text();
    let marked = text.lines().find(|row| row.contains("│ › ")).unwrap();
    assert!(marked.contains("no match"), "{text}");
    let row = |part: &str| u16::try_from(text.lines().position(|row| row.contains(part)).unwrap()).unwrap();
    let [before, line, after] = ["cargo test pool::", second, "no match"].map(|part| stage.entry_at(row(part)));
    assert!(line.is_some() && line == after && before != after, "{before:?} {line:?} {after:?}");
    // What was said has it at the same place.
    stage.keys("3");
    let text = stage.text();
    assert!(in_order(&text, &["Then the two tests", "● read", second, "… 2 more lines", "● edit", third]), "{text}");
    stage.keys("g");
    let text = stage.text();
    assert!(in_order(&text, &["› task", "Mend the flaky", "● read", second]), "{text}");
}

#[test]
fn above_the_first_entry_that_is_listed_a_line_stands_only_where_nothing_is_before_it() {
    let mut stage = Stage::new(100, 30);
    stage.feed.state.steps[2].attempts = attempts();
    stage.keys("2&");
    // Nobody knows what was called before.
    assert!(stage.text().contains("no match") && !stage.text().contains("attempt 2"), "{}", stage.text());
    stage.feed.state.steps[2].tool_count = 4;
    let text = stage.text();
    assert!(in_order(&text, &["── attempt 2", "no match"]), "{text}");
    // Of attempts without times nobody knows where they began.
    stage.feed.state.steps[2].attempts.iter_mut().for_each(|attempt| attempt.started_at = None);
    assert!(!stage.text().contains("── attempt"), "{}", stage.text());
}

#[test]
fn a_list_without_entries_shows_no_position() {
    let mut stage = Stage::new(100, 30);
    let title = |stage: &mut Stage, tab: &str| {
        let text = stage.text();
        text.lines().find(|row| row.starts_with(&format!("╭─ {tab}"))).map(str::to_owned).expect(&text)
    };
    // The keys stayed at an entry that a filter leaves out with all others.
    stage.keys("3k");
    assert!(title(&mut stage, "transcript").contains("4 of 5"));
    stage.keys("&&");
    let none = title(&mut stage, "transcript");
    assert!(stage.text().contains("nothing went wrong so far"), "{}", stage.text());
    assert!(none.contains("errors only") && !none.contains(" of ") && !none.contains("follow"), "{none}");
    // Nothing was there from the beginning.
    stage.ui.selected = StepId(5);
    for (key, tab) in [("2", "tools"), ("3", "transcript"), ("6", "events")] {
        stage.feed.state.steps[5].has_task = false;
        for keys in [key, "k", "g", "G"] {
            stage.keys(keys);
            let title = title(&mut stage, tab);
            assert!(!title.contains(" of ") && !title.contains("follow") && !title.contains("end"), "{keys} {title}");
        }
    }
}

#[test]
fn a_step_with_a_message_that_was_begun_has_a_mark_and_the_composer_says_where_that_was() {
    let mut stage = Stage::new(120, 36);
    assert!(!stage.text().contains('✎'));
    let mut draft = crate::deck::model::Draft { found: Some((1, ago(600))), ..Default::default() };
    draft.text.insert_str("Hold no lock.");
    stage.ui.drafts.insert(StepId(4), draft);
    stage.ui.drafts.insert(StepId(3), Default::default());
    let text = stage.text();
    let row = |name: &str| text.lines().find(|row| row.contains(name)).unwrap_or_default().to_owned();
    assert!(row("5 worker-b ✎").contains("running") && !row(" 4 reviewer").contains('✎'), "{text}");
    stage.theme.ascii = true;
    assert!(stage.text().contains("5 worker-b %"));
    stage.theme.ascii = false;
    // A folded group has it too.
    stage.key(crossterm::event::KeyCode::Left);
    assert!(stage.text().contains("3 worker +2 ✎"), "{}", stage.text());
    stage.key(crossterm::event::KeyCode::Right);
    stage.ui.selected = StepId(4);
    stage.keys("s");
    assert!(stage.text().contains("begun in another deck, 12:30:51"), "{}", stage.text());
    // What is typed here is nobody else's.
    stage.ui.overlays.clear();
    stage.ui.selected = StepId(3);
    stage.keys("sx");
    assert!(!stage.text().contains("another deck"));
    stage.ui.drafts.get_mut(&StepId(3)).unwrap().found = Some((2, ago(600)));
    assert!(stage.text().contains("2 drafts of other decks, 12:30:51"));
}
