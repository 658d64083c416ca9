//! What the mouse does, on the picture and on what lies above it.

use super::*;

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
        let cx = Context {
            state: &stage.feed.state,
            read_only: None,
            entries: Entries { history: &stage.history, older: &stage.older },
            now: NOW,
        };
        stage.ui.mouse = true;
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

/// Clicks on a text that is on the screen, the first of them.
fn click_on(stage: &mut Stage, text: &str) -> Vec<UiEffect> {
    click(stage, text, false)
}

/// The same with the last of them, where the hints are.
fn click_last(stage: &mut Stage, text: &str) -> Vec<UiEffect> {
    click(stage, text, true)
}

fn click(stage: &mut Stage, text: &str, last: bool) -> Vec<UiEffect> {
    let screen = stage.text();
    let mut found = screen.lines().enumerate().filter(|(_, l)| l.contains(text));
    let found = if last { found.last() } else { found.next() };
    let (row, line) = found.unwrap_or_else(|| panic!("{text}: {screen}"));
    let column = line[..line.find(text).unwrap()].chars().count();
    let kind = MouseEventKind::Down(MouseButton::Left);
    let at = |n: usize| u16::try_from(n).unwrap();
    let mouse = MouseEvent { kind, column: at(column), row: at(row), modifiers: KeyModifiers::NONE };
    let cx = Context {
        state: &stage.feed.state,
        read_only: None,
        entries: Entries { history: &stage.history, older: &stage.older },
        now: NOW,
    };
    stage.ui.mouse = true;
    update(&mut stage.ui, cx, &Input::Mouse(mouse))
}

#[test]
fn a_report_of_the_mouse_does_nothing_while_the_mouse_is_not_the_decks() {
    let mut stage = stage();
    let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
    let cx = Context {
        state: &stage.feed.state,
        read_only: None,
        entries: Entries { history: &stage.history, older: &stage.older },
        now: NOW,
    };
    let before = stage.ui.selected;
    update(&mut stage.ui, cx, &Input::Mouse(MouseEvent { kind, column: 5, row: 4, modifiers }));
    assert_eq!(stage.ui.selected, before);
    assert_ne!(before, StepId(1), "there was somewhere to go");
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
fn hints_of_a_dialog_are_keys_and_what_ends_something_is_never_one_click_away() {
    let over = |stage: &Stage| stage.ui.overlays.len();
    // The words of both keys stand in the hints; the one that ends something is none.
    for (opens, ends, back) in
        [("x", "y stop it", "esc no"), ("X", "y stop it", "esc no"), ("q", "X stop everything", "esc stay")]
    {
        let mut stage = stage();
        stage.keys(opens);
        stage.seen();
        assert_eq!(click_last(&mut stage, ends), [], "{opens}");
        assert_eq!(over(&stage), 1, "{opens}");
        assert_eq!(click_last(&mut stage, back), []);
        assert_eq!(over(&stage), 0, "{opens}");
    }
    let mut stage = stage();
    stage.keys("q");
    stage.seen();
    assert_eq!(click_last(&mut stage, "l leave it running"), [UiEffect::Leave]);
    stage.keys("s");
    click_last(&mut stage, "tab target");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Composer(to)) if !to.targets.contains(&StepId(2))));
    click_last(&mut stage, "esc keep draft");
    stage.keys("?");
    click_last(&mut stage, "/ find");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Help { query: Some(_), .. })));
}

#[test]
fn a_click_goes_to_a_choice_and_answers_nothing_by_itself() {
    let mut stage = stage();
    stage.keys(":st");
    click_on(&mut stage, "end the run and every child");
    assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Palette { index: 3, .. })));
    click_on(&mut stage, "end the run and every child");
    assert!(matches!(stage.ui.overlays.as_slice(), [Overlay::Confirm { what: Danger::Run, .. }]));
    stage.key(KeyCode::Esc);
    for kind in ["choice", "several"] {
        let mut stage = Stage::new(120, 36);
        crate::deck::view::tests::asked(&mut stage, kind);
        stage.keys("A");
        stage.seen();
        let text = if kind == "choice" { "Blue" } else { "The cache" };
        assert_eq!(click_on(&mut stage, text), []);
        let Some(Overlay::Answer(dialog)) = stage.ui.overlays.last() else { panic!() };
        assert_eq!((dialog.index, dialog.ticked.contains(&1)), (Some(1), kind == "several"), "{kind}");
        assert!(matches!(click_last(&mut stage, "enter send").as_slice(), [UiEffect::Answer { .. }]), "{kind}");
    }
    let mut stage = Stage::new(120, 36);
    stage.keys("+");
    let before = match stage.ui.overlays.last() {
        Some(Overlay::Budget(dialog)) => dialog.index,
        other => panic!("{other:?}"),
    };
    click_last(&mut stage, "14 of 42 (40, 2 more");
    let after = match stage.ui.overlays.last() {
        Some(Overlay::Budget(dialog)) => dialog.index,
        other => panic!("{other:?}"),
    };
    assert_ne!(before, after);
}

#[test]
fn a_click_goes_to_a_line_and_opens_the_one_that_has_the_keys() {
    let mut stage = stage();
    stage.keys("4");
    assert_eq!(click_on(&mut stage, "warning reached"), []);
    assert_eq!(stage.ui.pane(StepId(2)).lines[&Tab::Budget].at, 14);
    assert_eq!(click_on(&mut stage, "warning reached"), [UiEffect::Open(StepId(2))]);
}
