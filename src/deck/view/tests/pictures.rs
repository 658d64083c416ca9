//! Every view at four sizes and in every look, from fixed runs: text, colours, modifiers without colours, and ASCII.
//!
//! One file a view and size. Below the text stand planes of the same shape that have one letter a cell for its style:
//! `.` plain, `d` dim, `b` bold, `c` accent, `g` good, `r` bad, `m` halted, `s` selected, `R` alarm; capitals and digits
//! are told in a legend.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::cast;
use super::stage::{NOW, Stage};
use crate::deck::feed::Hands;
use crate::deck::model::ViewMode;
use crate::deck::theme::{Palette, Theme};
use crate::run::{RunId, RunPhase, RunState, StepId};
use crate::text::SafeText;

const SIZES: [(u16, u16); 4] = [(200, 60), (120, 36), (80, 24), (50, 14)];

/// What is drawn in every look: the text, the planes of its styles, and the text in ASCII.
pub(crate) fn planes(name: &str, drawn: impl Fn(Theme) -> Buffer) -> String {
    let colour = drawn(Theme { palette: Palette::Sixteen, ascii: false });
    let mono = drawn(Theme { palette: Palette::Mono, ascii: false });
    let ascii = drawn(Theme { palette: Palette::Mono, ascii: true });
    assert_eq!(text(&colour), text(&mono), "{name}: a palette changes no text");
    format!("{}\n== colour\n{}\n== mono\n{}\n== ascii\n{}", text(&colour), plane(&colour), plane(&mono), text(&ascii))
}

/// Draws a view at every size in every look and compares it with what was approved.
fn picture(name: &str, dress: impl Fn(&mut Stage)) {
    picture_at(name, &SIZES, dress);
}

/// The same at these sizes.
pub(super) fn picture_at(name: &str, sizes: &[(u16, u16)], dress: impl Fn(&mut Stage)) {
    for &(width, height) in sizes {
        let whole = planes(name, |theme| {
            let mut stage = Stage::new(width, height);
            dress(&mut stage);
            stage.theme = theme;
            stage.buffer()
        });
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(format!("{name}-{width}x{height}"), whole);
        });
    }
}

fn text(buf: &Buffer) -> String {
    // The cell behind a wide character is a part of it.
    let hidden = |x: u16, y| x > 0 && crate::text::width(buf[(x - 1, y)].symbol()) > 1;
    rows(buf, |x, y| if hidden(x, y) { String::new() } else { buf[(x, y)].symbol().to_owned() }, " ")
}

fn rows(buf: &Buffer, cell: impl Fn(u16, u16) -> String, empty: &str) -> String {
    let row = |y| (0..buf.area.width).map(|x| cell(x, y)).collect::<String>();
    (0..buf.area.height).map(|y| format!("{}\n", row(y).trim_end_matches(empty))).collect()
}

/// One letter a cell for its style.
fn plane(buf: &Buffer) -> String {
    let mut legend = BTreeMap::new();
    let letters = rows(buf, |x, y| letter(buf[(x, y)].style(), &mut BTreeMap::new()).to_string(), ".");
    for cell in &buf.content {
        letter(cell.style(), &mut legend);
    }
    let told: String = legend.iter().map(|(letter, style)| format!("{letter}: {style}\n")).collect();
    format!("{letters}{told}")
}

fn letter(style: Style, legend: &mut BTreeMap<char, String>) -> char {
    let fg = style.fg.filter(|c| *c != Color::Reset);
    let bg = style.bg.filter(|c| *c != Color::Reset);
    let m = style.add_modifier;
    let known = match (fg, bg) {
        (None, None) if m.is_empty() => Some('.'),
        (None, None) if m == Modifier::DIM => Some('d'),
        (None, None) if m == Modifier::BOLD => Some('b'),
        (None, None) if m == Modifier::BOLD | Modifier::REVERSED => Some('R'),
        (Some(Color::Cyan), None) if m.is_empty() => Some('c'),
        (Some(Color::Green), None) if m.is_empty() => Some('g'),
        (Some(Color::Red), None) if m.is_empty() => Some('r'),
        (Some(Color::Magenta), None) if m.is_empty() => Some('m'),
        (Some(Color::Blue), None) if m == Modifier::BOLD => Some('s'),
        _ => None,
    };
    if let Some(known) = known {
        return known;
    }
    let (letter, told) = match (fg, bg) {
        (Some(Color::Red), None) if m == Modifier::BOLD => ('F', "red bold".to_owned()),
        (None, None) if m == Modifier::BOLD | Modifier::DIM => ('P', "bold dim".to_owned()),
        (None, None) if m == Modifier::BOLD | Modifier::UNDERLINED => ('f', "bold underlined".to_owned()),
        (Some(_), None) if m == Modifier::BOLD | Modifier::UNDERLINED => ('h', "bold underlined, in colour".to_owned()),
        (Some(_), None) if m == Modifier::BOLD | Modifier::REVERSED => ('H', "bold reversed, in colour".to_owned()),
        (Some(Color::Yellow), None) if m.is_empty() => ('Y', "yellow, of a child".to_owned()),
        (None, None) if m == Modifier::BOLD | Modifier::DIM | Modifier::UNDERLINED => {
            ('u', "bold dim underlined".to_owned())
        }
        (None, None) if m == Modifier::BOLD | Modifier::DIM | Modifier::REVERSED => {
            ('v', "bold dim reversed".to_owned())
        }
        (None, None) if m == Modifier::REVERSED => ('V', "reversed".to_owned()),
        (None, None) if m == Modifier::UNDERLINED => ('U', "underlined".to_owned()),
        _ => ('?', format!("{style:?}")),
    };
    legend.insert(letter, told);
    letter
}

fn ctrl(stage: &mut Stage, c: char) {
    stage.press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
}

macro_rules! pictures {
    ($($name:ident: $dress:expr;)*) => {
        $(#[test] fn $name() { picture(&stringify!($name).replace('_', "-"), $dress); })*
    };
}

pictures! {
    overview: |_| {};
    overview_of_many: cast::many;
    overview_of_every_state: cast::every_state;
    overview_of_long_names: cast::long_names;
    overview_of_commands: cast::commands;
    overview_of_nothing: |s| {
        s.feed.state = RunState { id: RunId("0c1d2e3f-4a5b".into()), name: Some("empty".into()), phase: RunPhase::Running, ..RunState::default() };
        s.history = Default::default();
        s.ui.selected = StepId(0);
    };
    queued_step: |s| s.ui.selected = StepId(5);
    ended_step: |s| s.ui.selected = StepId(0);
    sub_agents: |s| s.feed.state.steps[2].sub_agents = super::sub_agents();
    sub_agents_among_stages: |s| { s.feed.state.steps[2].sub_agents = super::sub_agents(); s.ui.mode = ViewMode::Flow; };
    step_that_needs_you: |s| s.ui.selected = StepId(3);
    answer_permission: |s| { cast::asked(s, "permission"); s.keys("A"); };
    answer_choice: |s| { cast::asked(s, "choice"); s.keys("Agre"); s.key(KeyCode::Down); };
    answer_several: |s| { cast::asked(s, "several"); s.keys("A13"); };
    answer_edit: |s| { cast::asked(s, "edit"); s.keys("A"); };
    answer_text: |s| { cast::asked(s, "text"); s.keys("Athe left one"); };
    scrolled_back: |s| {
        cast::long_log(s);
        s.key(KeyCode::Tab);
        s.buffer();
        s.keys("kkkkk");
        s.buffer();
        s.feed.print(2, crate::run::Stream::Out, "and one more");
    };
    frozen: |s| { s.keys(" "); s.ui.frozen = Some(NOW - std::time::Duration::from_secs(12)); };
    folded: |s| { s.key(KeyCode::Left); };
    folded_with_sub_agents: |s| { s.feed.state.steps[3].sub_agents = super::sub_agents(); s.key(KeyCode::Left); };
    folded_many: |s| { cast::many(s); s.ui.folded = (0..12).collect(); s.ui.selected = StepId(40); };
    flow: |s| s.ui.mode = ViewMode::Flow;
    flow_of_many: |s| { cast::many(s); s.ui.mode = ViewMode::Flow; };
    retry: |s| { cast::over(s); s.ui.can_retry = true; s.keys("R"); };
    search_everywhere: |s| { s.keys("/drain"); s.key(KeyCode::Tab); };
    grid: |s| s.keys("v");
    grid_of_many: |s| { cast::many(s); s.keys("v"); };
    tabs: |s| s.ui.mode = ViewMode::Tabs;
    tabs_not_started: |s| { s.ui.mode = ViewMode::Tabs; s.ui.selected = StepId(5); };
    tabs_of_a_retry: |s| {
        s.ui.mode = ViewMode::Tabs;
        s.feed.print(2, crate::run::Stream::Own, "── attempt 2, after: the provider is overloaded");
        s.feed.print(2, crate::run::Stream::Out, "$ cargo test pool::\n   Compiling pool v0.3.1 (~/src/pool)");
        s.feed.state.steps[2].attempts = vec![Default::default(), Default::default()];
    };
    tabs_of_many: |s| { cast::many(s); s.ui.mode = ViewMode::Tabs; };
    zoom_output: |s| s.keys("1");
    zoom_tools: |s| s.keys("2");
    zoom_transcript: |s| s.keys("3");
    zoom_budget: |s| s.keys("4");
    zoom_changes: |s| { cast::changed(s); s.keys("5"); };
    zoom_changes_scrolled: |s| { cast::changed(s); s.keys("5"); s.buffer(); s.keys("jjjjjjjj"); };
    zoom_changes_asked: |s| s.keys("5");
    zoom_tools_errors: |s| s.keys("2k&");
    zoom_transcript_text: |s| s.keys("3&kk");
    reading_call: |s| { s.keys("2"); s.key(KeyCode::Enter); };
    reading_ended_call: |s| { s.keys("2kkk"); s.key(KeyCode::Enter); };
    reading_message: |s| { s.keys("3gj"); s.key(KeyCode::Enter); };
    reading_task: |s| { s.keys("3g"); s.key(KeyCode::Enter); };
    reading_event: |s| { s.keys("6"); s.key(KeyCode::Enter); };
    zoom_events: |s| s.keys("6");
    zoom_queued: |s| { s.ui.selected = StepId(5); s.keys("z"); };
    zoom_ended: |s| { s.ui.selected = StepId(0); s.keys("z"); };
    help: |s| s.keys("?");
    palette: |s| s.keys(":st");
    stop_step: |s| s.keys("x");
    stop_run: |s| s.keys("X");
    quit: |s| s.keys("q");
    quit_stop: |s| s.keys("qX");
    lost_live_on: |s| { cast::lost(s); cast::left_behind(s); };
    lost_end_left: |s| { cast::lost(s); cast::left_behind(s); s.keys("X"); };
    lost_refuses_a_retry: |s| { cast::lost(s); cast::left_behind(s); s.ui.can_retry = true; s.keys("R"); };
    why: |s| s.keys("jw");
    raise: |s| s.keys("+6");
    armed: |s| s.keys("i");
    search_typed: |s| s.keys("/drain");
    search_found: |s| { s.keys("z"); cast::searched(s); };
    search_found_in_tools: |s| { s.keys("2"); cast::searched_in(s, "pool", 20, 2, 4); };
    search_found_in_transcript: |s| { s.keys("3"); cast::searched_in(s, "the", 6, 2, 3); };
    search_found_in_changes: |s| { cast::changed(s); s.keys("5"); cast::searched_in(s, "self.drain", 14, 1, 2); };
    search_typed_in_a_reading: |s| { s.keys("3gj"); s.key(KeyCode::Enter); s.keys("/thin"); };
    search_found_in_a_reading: |s| { s.keys("3gj"); s.key(KeyCode::Enter); s.keys("/re"); s.key(KeyCode::Enter); s.keys("n"); };
    reading_changes: |s| { cast::changed(s); s.keys("5jjjj"); s.buffer(); s.key(KeyCode::Enter); };
    reading_history: |s| { s.keys("4"); s.keys("jjjjjjjjjjjjjjjj"); s.buffer(); s.key(KeyCode::Enter); };
    filter: |s| s.keys("&work");
    composer: |s| { s.keys("sDo not hold the lock."); s.key(KeyCode::Enter); s.keys("x and q are text here"); };
    composer_to_all: |s| s.keys("SStop and write down what you know.");
    composer_refused: |s| { s.keys("s"); ctrl(s, 's'); };
    composer_for_an_ended_step: |s| { s.ui.selected = StepId(0); s.keys("sLook at the docs too."); };
    read_only: |s| s.read_only = Some(SafeText::line("its root belongs to another user"));
    replay: cast::replayed;
    replay_paused_at_the_end: cast::replayed_to_the_end;
    replay_zoomed: |s| { cast::replayed(s); s.keys("z2"); };
    replay_reading: |s| { cast::replayed(s); if let Some(replay) = &mut s.ui.replay { replay.reading = Some(37); } };
    replay_refuses: |s| { cast::replayed(s); s.keys("x"); };
    notice: |s| { s.ui.selected = StepId(5); s.keys("x"); };
    over: cast::over;
    over_go_on: |s| { cast::over(s); s.ui.can_go_on = true; s.keys("sTry the other lock."); };
    over_with_a_session: |s| { cast::over(s); (s.ui.can_go_on, s.ui.can_retry) = (true, true); };
    lost: cast::lost;
    gone: |s| { s.feed.hands = Hands::Gone(SafeText::line("was removed")); s.read_only = Some(SafeText::line("the run's directory was removed")); };
    leaving: |s| { s.keys("qXy"); s.feed.state.stopped = true; };
}

#[test]
fn smaller_than_anything_one_sentence_is_left() {
    for (width, height) in [(29, 8), (60, 7), (12, 5)] {
        let mut stage = Stage::new(width, height);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(format!("tiny-{width}x{height}"), stage.text());
        });
    }
}

/// What is counted down, what leaves a state and what is not told any more stand at every size.
#[test]
fn what_must_be_seen_is_seen_at_every_size() {
    let look = |dress: &dyn Fn(&mut Stage)| {
        SIZES.map(|(width, height)| {
            let mut stage = Stage::new(width, height);
            dress(&mut stage);
            text(&stage.buffer())
        })
    };
    for text in look(&|s| cast::asked(s, "permission")) {
        let line = text.lines().nth(1).unwrap();
        assert!(line.contains("refused in 1:30") && line.contains("A answer"), "{line}");
    }
    for text in look(&|s| s.keys(" ")) {
        assert!(text.lines().last().unwrap().contains("space go on"), "{text}");
        assert!(!text.contains("following") && !text.contains("─ end ─"), "{text}");
    }
    for text in look(&|s| {
        cast::over(s);
        s.history = Default::default();
    }) {
        assert!(!text.contains("nothing happened yet"), "{text}");
        assert!(text.contains("step 3 worker failed"), "{text}");
    }
}

#[test]
fn everything_of_ours_is_ascii_where_only_ascii_may_be_drawn() {
    for keys in ["", "v", "vv", "1", "2", "3", "4", "5", "6", "?", ":st", "x", "q", "+", "w", "i", "/a", "s"] {
        let mut stage = Stage::new(120, 36);
        cast::every_state(&mut stage);
        stage.theme = Theme { palette: Palette::Mono, ascii: true };
        stage.keys(keys);
        let text = text(&stage.buffer());
        assert!(text.is_ascii(), "{keys:?}: {text}");
    }
}
