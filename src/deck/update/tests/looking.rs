//! Moving about, filters, searches and folds.

use super::*;

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
fn groups_fold_and_stages_are_walked_through() {
    let mut stage = stage();
    stage.ui.selected = StepId(4);
    stage.key(KeyCode::Left);
    assert_eq!(stage.ui.selected, StepId(2));
    let text = stage.text();
    assert!(text.contains("▸ 3 worker +2") && !text.contains("└ 5 worker-b"), "{text}");
    // Folding what is folded says so.
    stage.key(KeyCode::Left);
    assert!(stage.text().contains("is folded already"), "{}", stage.text());
    stage.key(KeyCode::Right);
    assert!(stage.text().contains("└ 5 worker-b"));
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
