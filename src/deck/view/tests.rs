//! Pictures of fixed runs at fixed sizes, as text and as styles; and sizes at which nothing may panic.

mod cast;
mod foreign;
mod lists;
pub(crate) mod pictures;
mod reader;
mod stage;
mod states;
mod trouble;

use super::*;
use crate::run::{RunId, RunnerKind, Steerable, StepPhase, Stream};
pub(crate) use cast::asked;
use stage::step;
pub(crate) use stage::{NOW, Stage, run};

/// Two sub-agents of a step: one that ended, one that works.
pub(super) fn sub_agents() -> Vec<crate::run::SubAgent> {
    use crate::run::{SubAgent, SubCall, ToolOutcome};
    let agent = |name: &str, ended: bool| SubAgent {
        id: name.to_owned(),
        name: name.to_owned(),
        about: "find the callers".to_owned(),
        started_at: stage::ago(90),
        ended_at: ended.then(|| stage::ago(30)),
        outcome: ended.then_some(ToolOutcome::Ok),
        tool: (!ended).then(|| SubCall { tool: "grep".to_owned(), args: "drain\u{1b}[2J".to_owned() }),
        tool_count: 4,
        tokens: ended.then_some(21_000),
        last_message: ended.then(|| "There are three.".to_owned()),
        ..SubAgent::default()
    };
    vec![agent("explorer", true), agent("reader", false)]
}

#[test]
fn sub_agents_stand_below_their_step() {
    let mut stage = Stage::new(50, 20);
    stage.feed.state.steps[2].sub_agents = sub_agents();
    insta::assert_snapshot!("sub-agents-50x20", stage.text());
}

#[test]
fn sub_agents_stand_below_their_step_among_the_stages_and_fold() {
    use crossterm::event::KeyCode;
    let mut stage = Stage::new(120, 36);
    stage.feed.state.steps[2].sub_agents = sub_agents();
    stage.keys("vvv");
    let stages = |stage: &mut Stage| {
        let rows: Vec<String> = stage.text().lines().skip(2).take(6).map(|row| row.trim_end().to_owned()).collect();
        rows.into_iter().take_while(|row| !row.starts_with('╭')).collect::<Vec<_>>()
    };
    assert_eq!(
        stages(&mut stage),
        [
            "  1 scout ✓ 0:48   ───▶  2 planner ✓ 1:20   ──┬▶ ›3 worker ● 4:02      ──┬▶  6 acceptance ○ –",
            "                                              │    ↳ explorer ✓ 1:00     │",
            "                                              │    ↳ reader ● 1:30       │",
            "                                              ├▶  4 reviewer ▲ 6:20    ──┤",
            "                                              └▶  5 worker-b ● 2:55    ──┘",
        ]
    );
    // In the list they fold, first they and then their group, and the step says how many there are.
    stage.ui.mode = crate::deck::model::ViewMode::List;
    stage.key(KeyCode::Left);
    let text = stage.text();
    assert!(text.contains("3 worker +2") && !text.contains("explorer") && text.contains("5 worker-b"), "{text}");
    stage.ui.mode = crate::deck::model::ViewMode::Flow;
    let folded = stages(&mut stage);
    assert!(folded.len() == 3 && folded[0].contains("3 worker +2 ●"), "{folded:?}");
    stage.ui.mode = crate::deck::model::ViewMode::List;
    stage.key(KeyCode::Left);
    let folded = stage.text();
    assert!(folded.contains("▸ 3 worker +2") && !folded.contains("└ 5 worker-b"), "{folded}");
    stage.key(KeyCode::Right);
    stage.key(KeyCode::Right);
    let text = stage.text();
    assert!(text.contains("↳ explorer") && text.contains("5 worker-b") && !text.contains("worker +2"), "{text}");
    // Where the list and its preview share the rows it grows for them.
    stage.ui.size = (80, 24);
    assert!(stage.text().contains("↳ reader"), "{}", stage.text());
}

#[test]
fn the_pane_of_a_folded_group_has_a_row_for_each_member() {
    use crossterm::event::KeyCode;
    let mut stage = Stage::new(120, 36);
    stage.feed.state.steps[4].inner = vec![crate::run::InnerRun { title: "nightly".to_owned(), ..Default::default() }];
    assert!(!stage.text().contains("group of steps"));
    stage.key(KeyCode::Left);
    let pane = |stage: &mut Stage| -> Vec<String> {
        let text = stage.text();
        let inside = text.lines().skip(2).map(|line| line.rsplit("││").next().unwrap().to_owned());
        inside.take_while(|line| !line.contains('╯')).collect()
    };
    let rows = pane(&mut stage);
    assert!(rows[0].contains(" group of steps 3-5 "), "{rows:?}");
    assert!(rows[1].contains("▲ 1 attention   ● 2 running") && rows[1].contains("$0.63+   6:20"), "{rows:?}");
    assert!(rows[2].contains("›  3 worker") && rows[2].contains("edit src/pool.rs") && rows[2].contains("4:02"));
    assert!(rows[3].contains("4 reviewer") && rows[3].contains("▲ attention") && rows[3].contains("6:20"), "{rows:?}");
    assert!(rows[4].contains("5 worker-b") && rows[4].contains("waits for run nightly"), "{rows:?}");
    // Below them is what the member prints that the keys act on.
    assert!(rows[5].contains("── 3 worker ──") && rows.iter().any(|row| row.contains("test pool::steal_is_fair")));
    // A click on a member opens the group at it.
    let spot = layout::spot(&stage.ui, &stage.feed.state, 70, 6);
    assert_eq!(spot, Some(layout::Spot::Member { step: StepId(4), pane: StepId(2) }));
    // Another step has its own pane, and so has each member while a filter lists them.
    stage.key(KeyCode::Down);
    assert!(pane(&mut stage)[0].contains(" 6 acceptance "));
    stage.key(KeyCode::Up);
    assert!(pane(&mut stage)[0].contains(" group of steps 3-5 "));
    stage.keys("&work");
    assert!(!stage.text().contains("group of steps"));
    // A group that is larger than its pane says how many have no row, and shows what goes on.
    let mut stage = Stage::new(80, 24);
    let many = |n: u32| step(n, "unit", 0, if n < 30 { StepPhase::Complete } else { StepPhase::Running });
    stage.feed.state.steps = (0..50).map(many).collect();
    stage.feed.state.groups = vec![crate::run::Group { start: 0, count: 50, logical: 0 }];
    stage.ui.selected = StepId(0);
    stage.key(KeyCode::Left);
    let text = stage.text();
    assert!(text.contains("◌ 20 starting   ✓ 30 done") && text.contains("   31 unit"), "{text}");
    assert!(text.contains("more of 50") && text.contains("── 1 unit ──"), "{text}");
}

#[test]
fn before_a_step_is_stopped_it_is_told_who_goes_on_and_who_never_starts() {
    let asked = |steps: &[u32], at: u32| {
        let mut stage = Stage::new(200, 60);
        stage.feed.state.steps.retain(|step| steps.contains(&step.id.0));
        stage.ui.selected = StepId(at);
        stage.keys("x");
        // As one line, whatever was wrapped.
        let text = stage.text();
        let rows = text.lines().filter(|row| row.contains("│")).map(|row| row.split('│').nth(2).unwrap_or_default());
        rows.map(str::trim).collect::<Vec<_>>().join(" ")
    };
    let all = asked(&[0, 1, 2, 3, 4, 5], 2);
    assert!(all.contains("Its siblings go on. 6 acceptance waits for it and will never start."), "{all}");
    let last = asked(&[0, 1, 2, 3], 2);
    assert!(last.contains("Its siblings go on. No step waits for it."), "{last}");
    let alone = asked(&[0, 1, 3], 3);
    assert!(alone.contains("No step waits for it.") && !alone.contains("siblings"), "{alone}");
}

#[test]
fn while_a_permission_is_waited_for_no_limit_on_tools_is_shown() {
    let mut stage = Stage::new(120, 36);
    assert!(stage.text().contains("open 0:07 of 10:00"));
    cast::asked(&mut stage, "permission");
    let step = &mut stage.feed.state.steps[2];
    step.open[0].call = Some("c9".to_owned());
    step.questions[0].asking.call = step.open[0].call.clone();
    for keys in ["", "z", "2"] {
        stage.keys(keys);
        let text = stage.text();
        assert!(text.contains("0:07") && !text.contains("0:07 of"), "{text}");
    }
}

#[test]
fn of_a_plain_command_no_tool_and_no_word_is_awaited() {
    let mut stage = Stage::new(80, 24);
    cast::commands(&mut stage);
    stage.history = History::default();
    stage.facts.task.clear();
    stage.feed.state.steps[2].has_task = false;
    stage.keys("2");
    assert!(stage.text().contains("a plain command uses no tools"), "{}", stage.text());
    stage.keys("3");
    assert!(stage.text().contains("a plain command says nothing but what it prints"), "{}", stage.text());
}

#[test]
fn the_composer_tells_of_the_message_and_not_of_the_key_before_it() {
    let mut stage = Stage::new(120, 36);
    stage.keys("jjju");
    let refused = "no message of yours waits";
    assert!(stage.text().contains(refused), "{}", stage.text());
    stage.keys("kks");
    let text = stage.text();
    assert!(text.contains("0 of 131,072 bytes") && !text.contains(refused), "{text}");
    // In a replay nothing is sent, and nothing is asked for.
    let mut stage = Stage::new(120, 36);
    cast::replayed(&mut stage);
    stage.keys("s");
    assert!(
        stage.ui.overlays.is_empty() && stage.text().contains("steer does nothing in a replay"),
        "{}",
        stage.text()
    );
}

#[test]
fn each_key_of_the_line_about_what_needs_a_person_is_about_the_step_that_it_names() {
    let line = |stage: &mut Stage| stage.text().lines().nth(1).unwrap_or_default().to_owned();
    let mut stage = Stage::new(120, 36);
    // Another step is selected than the one that needs somebody.
    let told = line(&mut stage);
    assert!(told.contains("step 4 ") && told.contains("! jump") && told.contains("w why"), "{told}");
    stage.keys("w");
    assert!(stage.text().contains("why step 4 "), "{}", stage.text());
    stage.key(KeyCode::Esc);
    // There is nowhere to jump to from there.
    stage.keys("j");
    let told = line(&mut stage);
    assert!(told.contains("w why") && !stage.text().contains("! jump"), "{}", stage.text());
    stage.keys("!");
    assert!(stage.text().contains("no other step needs you"), "{}", stage.text());
    // What was noted of the selected step is still told, and the line is about the other one, which `w` is not.
    stage.keys("a");
    stage.feed.state.steps[0].survivors = vec![7];
    let told = line(&mut stage);
    assert!(told.contains("step 1 ") && told.contains("! jump") && !told.contains("w why"), "{told}");
    stage.keys("w");
    assert!(stage.text().contains("why step 4 "), "{}", stage.text());
}

#[test]
fn a_picture_costs_what_is_visible_and_not_what_there_is() {
    // Lines of text that are made safe for one picture: each row that is laid out needs some, and nothing else does.
    let cost = |steps: u32, keys: &str, size: (u16, u16)| {
        let mut stage = Stage::new(size.0, size.1);
        let many = |n: u32| {
            let phase = if n.is_multiple_of(3) { StepPhase::Running } else { StepPhase::Complete };
            step(n, &format!("agent-{}", n % 7), 0, phase)
        };
        stage.feed.state.steps = (0..steps).map(many).collect();
        stage.feed.state.groups.clear();
        stage.ui.selected = StepId(steps / 2);
        stage.keys(keys);
        let before = crate::text::MADE.get();
        stage.buffer();
        crate::text::MADE.get() - before
    };
    // All of them are one group, which is folded.
    let folded = |steps: u32| {
        let mut stage = Stage::new(120, 36);
        stage.feed.state.steps = (0..steps).map(|n| step(n, "agent", 0, StepPhase::Running)).collect();
        stage.feed.state.groups = vec![crate::run::Group { start: 0, count: steps as usize, logical: 0 }];
        (stage.ui.selected, stage.ui.folded) = (StepId(0), [0].into_iter().collect());
        assert!(stage.text().contains("group of steps 1-"));
        let before = crate::text::MADE.get();
        stage.buffer();
        crate::text::MADE.get() - before
    };
    assert!(folded(5000) <= folded(100) + 8);
    for keys in ["", "v", "vv", "vvv", "z"] {
        for size in [(200, 60), (120, 36), (80, 24), (50, 14)] {
            let (few, many) = (cost(100, keys, size), cost(5000, keys, size));
            assert!(many <= few + 8, "{keys:?} at {size:?}: {many} lines for 5,000 steps, {few} for 100");
        }
    }
}

/// The second row: the bar below the line about what needs a person.
fn bar(stage: &mut Stage) -> String {
    stage.text().lines().nth(2).unwrap_or_default().to_owned()
}

#[test]
fn tabs_tell_what_was_printed_while_nobody_looked() {
    let mut stage = Stage::new(120, 36);
    stage.keys("vv");
    assert!(bar(&mut stage).contains("5 worker-b ● +128"), "{}", bar(&mut stage));
    for (lines, shown) in [(9_999, "+9999"), (12_345, "+12k"), (3_000_000, "+3M")] {
        stage.ui.unread.insert(StepId(4), lines);
        assert!(bar(&mut stage).contains(shown), "{}", bar(&mut stage));
    }
    // Whoever looks at it has no need of a count, and its neighbours do not move.
    let at = |bar: &str| bar.find("6 acceptance").unwrap();
    let before = at(&bar(&mut stage));
    stage.ui.unread.insert(StepId(4), 0);
    assert_eq!(at(&bar(&mut stage)), before);
}

#[test]
fn a_bar_of_many_tabs_shows_the_selected_one_and_those_around_it() {
    let mut stage = Stage::new(80, 24);
    stage.feed.state.steps = (0..5000).map(|n| step(n, "agent", 0, StepPhase::Complete)).collect();
    stage.keys("vv");
    for (selected, shown) in [(0, "1 agent"), (2499, "2500 agent"), (4999, "5000 agent")] {
        stage.ui.selected = StepId(selected);
        let text = stage.text();
        let bar = text.lines().find(|l| l.contains("│ ") || l.contains(" │")).unwrap();
        assert!(bar.contains(&format!("›{shown}")), "{bar}");
        assert!(bar.trim_end().chars().count() > 60, "the bar is used: {bar}");
    }
}

#[test]
fn page_keys_move_through_the_panes_of_a_grid_that_not_all_fit_into() {
    use crossterm::event::KeyCode;
    let mut stage = Stage::new(120, 36);
    cast::many(&mut stage);
    stage.keys("v");
    assert!(stage.text().contains("panes 41-46 of 60  pgup pgdn"), "{}", stage.text());
    stage.key(KeyCode::PageDown);
    let text = stage.text();
    assert!(text.contains("panes 47-52 of 60") && stage.ui.selected == StepId(48), "{text}");
    stage.key(KeyCode::PageUp);
    assert_eq!(stage.ui.selected, StepId(42));
    // Where all are seen they scroll.
    let mut stage = Stage::new(120, 36);
    stage.keys("v");
    stage.key(KeyCode::PageUp);
    assert_eq!(stage.ui.selected, StepId(2));
    assert!(!stage.text().contains("pgup pgdn"), "{}", stage.text());
}

#[test]
fn a_sum_of_which_a_part_is_not_told_says_so() {
    let header = |change: &dyn Fn(&mut RunState)| {
        let mut stage = Stage::new(120, 36);
        change(&mut stage.feed.state);
        stage.text().lines().next().unwrap().to_owned()
    };
    assert!(header(&|_| {}).contains("$0.84+   412k+ tok"));
    let told = |state: &mut RunState| {
        state.steps[3].cost = Some(crate::run::CostUsd(0.01));
        state.steps[3].tokens.input = 1_000;
    };
    assert!(header(&told).contains("$0.85   414k tok"), "{}", header(&told));
    // What a command costs nobody asks, and a step that has not begun costs nothing yet.
    let command = |state: &mut RunState| {
        state.steps[3].runner = RunnerKind::ExternalCli { command: "make".to_owned(), args: Vec::new() };
    };
    assert!(header(&command).contains("$0.84   412k tok"), "{}", header(&command));
}

#[test]
fn turns_and_calls_of_the_run_are_at_least_those_that_were_told() {
    let work = |change: &dyn Fn(&mut RunState)| {
        let mut stage = Stage::new(120, 36);
        change(&mut stage.feed.state);
        let text = stage.text();
        let line = text.lines().find(|line| line.contains("    work ")).unwrap_or_default().to_owned();
        line.split('│').nth(1).unwrap_or_default().replace("work", "").trim().to_owned()
    };
    // Two steps that are over told no turns, and one of them no call either.
    assert_eq!(work(&|_| {}), "22+ turns  36+ calls");
    let told = |state: &mut RunState| state.steps[..2].iter_mut().for_each(|step| step.turn_count = 1);
    assert_eq!(work(&told), "24 turns  36 calls");
    // Who has just begun may have done nothing yet.
    let begun = |state: &mut RunState| {
        told(state);
        let step = &mut state.steps[4];
        (step.turn_count, step.tool_count, step.tokens) = (0, 0, Default::default());
    };
    assert_eq!(work(&begun), "19 turns  36 calls");
}

#[test]
fn keys_are_named_by_words_where_the_signs_for_them_are_other_keys() {
    use crate::deck::theme::{Palette, Theme};
    let ascii = |keys: &str| {
        let mut stage = Stage::new(200, 60);
        stage.keys(keys);
        stage.theme = Theme { palette: Palette::Mono, ascii: true };
        stage.text()
    };
    let help = ascii("?");
    let row = |keys: &str| help.lines().any(|line| line.contains(keys));
    assert!(row("  j down  ") && row("  k up  ") && row("  left  ") && row("  right  "), "{help}");
    assert!(ascii("+").contains("up/down limit") && ascii("/").contains("up last search"));
    // There is more than is seen.
    let mut stage = Stage::new(80, 24);
    stage.keys("?");
    stage.theme = Theme { palette: Palette::Mono, ascii: true };
    assert!(stage.text().contains(" more below "), "{}", stage.text());
}

#[test]
fn the_pane_of_a_lost_step_says_why_it_is_lost_and_what_is_left_of_it() {
    let mut stage = Stage::new(120, 36);
    cast::lost(&mut stage);
    cast::left_behind(&mut stage);
    stage.ui.selected = StepId(3);
    let text = stage.text();
    assert!(text.contains("error     the runner (pid 48200) is gone since 12:40:46"), "{text}");
    assert!(text.contains("lives on  pid 48214  pi --mode rpc") && text.contains("pid 48230  cargo test"), "{text}");
    // The log of the step begins below these rows, and what a reader found out himself is told with what happened.
    assert!(text.contains("12:40:46  run                  the runner was lost"), "{text}");
    // The digits of times stand below each other, whether they are the whole time or at least that.
    let times = ["0:48  │", "1:20  │", "3:57+ │", "6:15+ │", "2:50+ │"];
    assert!(times.iter().all(|time| text.contains(time)), "{text}");
}

#[test]
fn what_was_not_read_yet_stands_above_what_is_listed_and_is_no_entry() {
    let mut stage = Stage::new(120, 36);
    stage.keys("2");
    let text = stage.text();
    assert!(text.contains("19 earlier calls, g lists them"), "{text}");
    let row = |text: &str, of: &str| u16::try_from(text.lines().position(|line| line.contains(of)).unwrap()).unwrap();
    let (note, first) = (row(&text, "19 earlier calls"), row(&text, "read src/pool.rs"));
    assert_eq!(first, note + 1);
    assert_eq!(entry_at(&stage.scene(), &stage.ui, 20, note), None);
    let listed = stage.entries().listed(&stage.ui, &stage.feed.state.steps[2]);
    assert_eq!(entry_at(&stage.scene(), &stage.ui, 20, first), listed.number(0));
}

#[test]
fn a_runner_that_answers_nothing_is_told_of() {
    let mut stage = Stage::new(120, 36);
    stage.feed.hands =
        Hands::Suspended(SafeText::line("the runner (pid 7) is suspended; `kill -CONT 7` lets it go on"));
    assert!(stage.text().contains("the runner (pid 7) is suspended; `kill -CONT 7`"), "{}", stage.text());
}

#[test]
fn the_end_of_a_step_names_its_session() {
    let mut stage = Stage::new(120, 36);
    let step = &mut stage.feed.state.steps[0];
    step.session_id = Some("0c9a-5e55".to_owned());
    stage.keys("gvv");
    assert!(stage.text().contains("── done · exit 0 · 0:48 · 20 B · session 0c9a-5e55 ─"), "{}", stage.text());
}

#[test]
fn no_size_and_no_key_panics() {
    let sizes =
        [(0, 0), (1, 1), (5, 3), (20, 5), (30, 8), (31, 9), (60, 12), (70, 16), (119, 20), (120, 16), (200, 60)];
    for (width, height) in sizes {
        for keys in
            ["", "z", "2", "3", "4", "5", "6", "v", "vv", "s", "x", "X", "q", "+", "?G", ":x", "jw", "i", " ", "\tkkG"]
        {
            let mut stage = Stage::new(width, height);
            stage.keys(keys);
            stage.buffer();
            stage.feed.state = RunState::default();
            stage.ui.settle(&stage.feed.state.clone());
            stage.buffer();
        }
    }
}

#[test]
fn hostile_texts_cannot_move_anything() {
    let plain = Stage::new(120, 36).text().lines().count();
    let mut stage = Stage::new(120, 36);
    let evil = "\x1b[2J\x1b]52;c;x\x07e\u{202e}vil\r\n\t日本語\u{9b}31m";
    let state = &mut stage.feed.state;
    state.name = Some(evil.to_owned());
    state.id = RunId(evil.to_owned());
    state.cwd = evil.to_owned();
    for step in &mut state.steps {
        step.agent = evil.to_owned();
        step.label = Some(evil.to_owned());
        step.model = Some(evil.to_owned());
        step.error = Some(evil.to_owned());
        step.last_message = Some(evil.to_owned());
        step.runner = RunnerKind::ExternalCli { command: evil.to_owned(), args: Vec::new() };
        step.steerable = Steerable::No(evil.to_owned());
        for call in &mut step.open {
            call.tool = evil.to_owned();
            call.args = evil.to_owned();
            call.path = Some(evil.to_owned());
        }
    }
    for keys in ["", "z", "2", "4", "v", "vv", "x", "q", "w"] {
        stage.ui = UiState::new((120, 36));
        stage.ui.selected = StepId(2);
        stage.keys(keys);
        let text = stage.text();
        assert_eq!(text.lines().count(), plain);
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text}");
        assert!(!text.contains("[2J") && !text.contains("52;c"), "{text}");
    }
}

#[test]
fn a_wide_character_never_breaks_a_frame() {
    let mut stage = Stage::new(120, 36);
    for cells in 50..70 {
        stage.feed.print(2, Stream::Out, &format!("{}日本👩‍🔬é", "x".repeat(cells)));
    }
    for line in stage.buffer().content.chunks(120).skip(3).take(20) {
        assert_eq!(line[119].symbol(), "│");
        assert_eq!(line[57].symbol(), "│");
    }
}

#[test]
fn the_line_about_who_needs_somebody_tells_what_comes_next_and_who_else_while_there_is_room() {
    let line = |width: u16, change: &dyn Fn(&mut Stage)| {
        let mut stage = Stage::new(width, 60);
        change(&mut stage);
        stage.text().lines().nth(1).unwrap().to_owned()
    };
    assert!(line(200, &|_| {}).contains("open 6:12 (warned 4:00, no limit)"));
    let limited = |stage: &mut Stage| stage.feed.state.steps[3].limits.tool_ms = Some(900_000);
    assert!(line(200, &limited).contains("open 6:12 (warned 4:00, stopped at 15:00)"));
    let asked = |stage: &mut Stage| cast::asked(stage, "permission");
    let both = line(200, &asked);
    assert!(both.contains("target/debug (refused in 1:30)   4 reviewer: bash cargo test open 6:12"), "{both}");
    // Until when is never cut, at any width.
    assert!([50, 80, 100].iter().all(|width| line(*width, &asked).contains("refused in 1:30")));
    let narrow = line(100, &asked);
    assert!(narrow.contains("2 NEED YOU") && !narrow.contains("reviewer"), "{narrow}");
}

#[test]
fn a_picture_that_stands_still_says_who_has_come_to_need_somebody() {
    let mut stage = Stage::new(120, 36);
    stage.keys(" ");
    assert!(!stage.text().contains("YOU NOW"), "{}", stage.text());
    stage.ui.missed = 2;
    assert!(stage.text().contains("▲ 2 NEED YOU NOW"), "{}", stage.text());
    stage.keys("A");
    assert!(stage.text().contains("the picture stands still; space shows who needs you now"), "{}", stage.text());
}
