//! What a person reads off a picture at a glance: that nothing is kept from him where there is room for it, that one thing
//! has one word, and that the keys which are named are those that help.

use crossterm::event::KeyCode;
use ratatui::style::Modifier;

use super::{Stage, cast};
use crate::deck::actions::matching;
use crate::deck::model::ViewMode;
use crate::run::{StepId, Stream};

const SIZES: [(u16, u16); 4] = [(200, 60), (120, 36), (80, 24), (50, 14)];

/// What is done to the stage before it is looked at.
type Dress<'a> = &'a dyn Fn(&mut Stage);

/// A picture at every size.
fn pictures(dress: impl Fn(&mut Stage)) -> Vec<String> {
    SIZES.iter().map(|size| picture(*size, &dress)).collect()
}

fn picture((width, height): (u16, u16), dress: impl Fn(&mut Stage)) -> String {
    let mut stage = Stage::new(width, height);
    dress(&mut stage);
    stage.text()
}

fn footer(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn who_allows_a_change_is_told_how_much_of_it_he_does_not_see() {
    for text in pictures(|stage| {
        cast::asked(stage, "edit");
        stage.keys("A");
    }) {
        assert!(text.contains("… 12 more lines that come"), "{text}");
        // While all of it fits nobody has to page for it.
        assert!(
            text.contains("- connect(key)") && text.contains("+ connect(api_key)") && !text.contains("pgup"),
            "{text}"
        );
        assert!(text.contains("y allow") && text.contains("n deny"), "{text}");
    }
    // The countdown is seen also where the question takes all the rows.
    for text in pictures(|stage| {
        cast::asked(stage, "permission");
        stage.feed.state.steps[2].questions[0].asking.args = "make\n".repeat(80);
        stage.keys("A");
    }) {
        assert!(text.contains("pgup pgdn") && text.matches("refused in 1:30").count() >= 1, "{text}");
    }
}

#[test]
fn what_is_wrong_has_one_figure_in_one_spelling() {
    for text in pictures(|stage| stage.keys("jw")) {
        assert!(text.contains("open for 6:12") && !text.contains("6m12s") && !text.contains("4m00s"), "{text}");
    }
    let text = picture((80, 24), |stage| stage.keys("jw"));
    assert!(text.contains("still active after 6:20") && text.contains("for            6:20"), "{text}");
}

#[test]
fn the_key_that_ends_a_filter_is_named_while_it_is_on() {
    for (keys, named) in [("2k&", "& all"), ("6&", "& all"), ("3&kk", "& errors"), ("z&", "& stdout"), ("z&&", "& all")]
    {
        for text in pictures(|stage| stage.keys(keys)) {
            assert!(footer(&text).contains(named), "{keys}: {text}");
        }
    }
    for text in pictures(|stage| {
        stage.keys("&work");
        stage.key(KeyCode::Enter);
    }) {
        assert!(footer(&text).contains("esc all steps"), "{text}");
    }
}

#[test]
fn the_footer_names_what_helps_where_one_is() {
    for text in pictures(|stage| drop(stage.key(KeyCode::Left))) {
        let footer = footer(&text);
        assert!(footer.contains("→ unfold") && footer.contains("s steer 3"), "{footer}");
    }
    // Opening it takes the hint away, and with it the step that keys would reach.
    let open = picture((120, 36), |stage| {
        stage.key(KeyCode::Left);
        stage.key(KeyCode::Right);
    });
    assert!(!footer(&open).contains("unfold") && !footer(&open).contains("steer 3"), "{open}");
    for text in pictures(|stage| stage.ui.mode = ViewMode::Tabs) {
        assert!(!text.contains("›3 worker") || footer(&text).contains("[ ] step"), "{text}");
    }
    // At the step that needs somebody every key about that is on the screen.
    for text in pictures(|stage| stage.ui.selected = StepId(3)) {
        assert!(text.contains("a acknowledge") && text.contains("w why"), "{text}");
    }
    // In a run without steps nothing is named that would do nothing.
    for text in pictures(|stage| {
        stage.feed.state = Default::default();
        stage.history = Default::default();
    }) {
        assert!(!footer(&text).contains("view") && text.contains("the steps come with the plan"), "{text}");
        assert!(!text.lines().next().unwrap_or_default().contains('–'), "{text}");
    }
}

#[test]
fn scrolling_is_named_exactly_where_there_is_more() {
    let all: [Dress<'_>; 8] = [
        &|s| s.keys("jw"),
        &|s| s.keys("?"),
        &|s| s.keys("?/jump"),
        &|s| {
            s.keys("2");
            s.key(KeyCode::Enter);
        },
        &|s| {
            s.keys("2kkk");
            s.key(KeyCode::Enter);
        },
        &|s| {
            s.keys("3gj");
            s.key(KeyCode::Enter);
        },
        &|s| {
            s.keys("3g");
            s.key(KeyCode::Enter);
        },
        &|s| {
            s.keys("6");
            s.key(KeyCode::Enter);
        },
    ];
    for (at, dress) in all.iter().enumerate() {
        for text in pictures(dress) {
            assert_eq!(
                text.contains(" more ╯") || text.contains(" more ─"),
                footer(&text).contains("scroll"),
                "{at}: {text}"
            );
        }
    }
}

#[test]
fn the_help_has_the_words_of_the_footer() {
    for (word, what) in
        [("interrupt", "pause the run"), ("acknowledge", "seen; say so"), ("jump", "the next step that needs")]
    {
        for (width, height) in SIZES {
            let mut stage = Stage::new(width, height);
            stage.keys("?/");
            stage.keys(word);
            let text = stage.text();
            let found = text.lines().any(|line| line.contains(word) && line.contains(what));
            assert!(found, "{word} at {width}: {text}");
        }
    }
    assert!(matching("jump").iter().any(|row| row.name == "next attention"));
    // What is impossible says why where it is looked up.
    let text = picture((120, 36), |stage| stage.keys(":faster"));
    assert!(text.contains("not now: nothing is played"), "{text}");
}

#[test]
fn what_must_be_told_on_a_narrow_screen_is_told_whole() {
    let lines = |dress: &dyn Fn(&mut Stage)| {
        let text = picture((50, 14), dress);
        let lines: Vec<&str> = text.lines().rev().take(2).collect();
        lines.join("\n")
    };
    let all: [(Dress<'_>, &str); 7] = [
        (&cast::lost, "read-only: runner gone since 12:40:46, run lost"),
        (
            &|s| {
                cast::lost(s);
                cast::left_behind(s);
                s.ui.can_retry = true;
                s.keys("R");
            },
            "X first: 5 processes of this run live on",
        ),
        (
            &|s| {
                s.keys("qXy");
                s.feed.state.stopped = true;
            },
            "stopping all; leaves when the last has ended",
        ),
        (&|s| s.keys("i"), "i again pauses 3 children; sessions live on"),
        (&cast::replayed_to_the_end, "the end; space plays again, P leaves the replay"),
        (
            &|s| {
                cast::replayed(s);
                s.keys("x");
            },
            "no stop step in a replay; P shows the run",
        ),
        (&cast::over, "step 3 worker failed: the tests still fail"),
    ];
    for (dress, told) in all {
        let lines = lines(dress);
        assert!(lines.contains(told), "{lines}");
    }
    // What comes next for a paused step is not cut off.
    for text in pictures(cast::over) {
        assert!(text.contains("session lives on"), "{text}");
    }
}

#[test]
fn a_run_that_ended_well_has_one_word_for_it() {
    for text in pictures(cast::replayed_to_the_end) {
        assert!(text.contains("✓ done") && !text.contains("complete"), "{text}");
    }
}

#[test]
fn a_question_says_what_its_time_is() {
    for (kind, told) in [("choice", "asked 1:05"), ("edit", "asked 1:05"), ("permission", "(refused in 1:30)")] {
        for text in pictures(|stage| cast::asked(stage, kind)) {
            assert!(text.lines().nth(1).is_some_and(|line| line.contains(told)), "{text}");
        }
    }
    // On the smallest screen that has lines too.
    let text = picture((30, 8), |stage| cast::asked(stage, "permission"));
    assert!(text.lines().nth(1).is_some_and(|line| line.contains("▲ 2  (refused in 1:30)")), "{text}");
    // No key is silent: what is missing is said.
    for text in pictures(|stage| {
        cast::asked(stage, "text");
        stage.keys("A");
        let before = stage.text();
        stage.seen();
        stage.key(KeyCode::Enter);
        assert_ne!(before, stage.text());
    }) {
        assert!(text.contains("step 3 worker asks"), "{text}");
    }
    // Nothing is kept free for hints that are not there.
    let text = picture((80, 24), |stage| {
        cast::asked(stage, "permission");
        stage.keys("A");
    });
    assert!(text.lines().nth(1).is_some_and(|line| line.contains("rm -rf target/debug (refused")), "{text}");
    // On a large screen the pane shows the whole of what is to be decided.
    let text = picture((120, 36), |stage| cast::asked(stage, "permission"));
    assert!(text.contains("│ needs you May it use Bash?") && text.contains("target/debug"), "{text}");
}

#[test]
fn who_needs_somebody_is_an_alarm_also_below_a_dialog() {
    for keys in ["q", "x", "X", "s", "w", "+", ":st"] {
        for (width, height) in [(120, 36), (80, 24)] {
            let mut stage = Stage::new(width, height);
            stage.keys(keys);
            let buf = stage.buffer();
            let reversed = |x: u16| buf[(x, 1)].modifier.contains(Modifier::REVERSED);
            assert!(reversed(1) && reversed(width - 1), "{keys} at {width}: {}", stage.text());
        }
    }
}

#[test]
fn what_sub_agents_do_stands_in_the_column_of_what_steps_do() {
    for size in [(200, 60), (120, 36), (80, 24), (50, 20)] {
        let text = picture(size, |stage| stage.feed.state.steps[2].sub_agents = super::sub_agents());
        // In the row of whom, how many cells stand before what is done.
        let column = |who: &str, what: &str| {
            let row = text.lines().find(|line| line.contains(who) && line.contains(what))?;
            Some(row.split_once(what)?.0.chars().count())
        };
        let step = column("worker", "edit src/pool.rs");
        assert!(step.is_some(), "{text}");
        assert_eq!(column("reader", "grep drain"), step, "{text}");
        // One that has ended has no row where there is no room for all of them.
        assert!(column("explorer", "There").is_none_or(|ended| Some(ended) == step), "{text}");
    }
}

#[test]
fn a_bar_of_tabs_says_what_lies_beyond_its_ends_and_its_labels_part() {
    let bar = |size, dress: &dyn Fn(&mut Stage)| picture(size, dress).lines().nth(2).unwrap_or_default().to_owned();
    let whole = bar((80, 24), &|stage| stage.ui.mode = ViewMode::Tabs);
    assert!(whole.contains("│ 2 more +128"), "{whole}");
    let narrow = bar((50, 14), &|stage| stage.ui.mode = ViewMode::Tabs);
    assert!(narrow.ends_with("│ +3 ▲"), "{narrow}");
    let last = bar((50, 14), &|stage| {
        stage.ui.mode = ViewMode::Tabs;
        stage.ui.selected = StepId(5);
    });
    assert!(last.starts_with(" +") && last.contains(" │ "), "{last}");
    for (width, height) in [(120, 36), (80, 24), (50, 14), (40, 14)] {
        for tab in ["1", "2", "3", "4", "5", "6"] {
            let bar = bar((width, height), &|stage| stage.keys(tab));
            let (before, rest) = bar.split_once('[').unwrap_or_default();
            let (_, after) = rest.split_once(']').unwrap_or_default();
            assert!(before.ends_with(' ') || before.is_empty(), "{bar}");
            assert!(after.starts_with(' ') || after.is_empty(), "{bar}");
            // Either all that stand before it are named, or none that stands behind one without a name.
            let numbers = "123456".chars().filter(|n| bar.contains(*n)).count();
            assert_eq!(numbers, 6, "{bar}");
        }
    }
}

#[test]
fn stages_beyond_the_ends_are_joined_to_those_that_are_seen() {
    for (size, after) in [((80, 24), ""), ((50, 14), "▶ 1›")] {
        let text = picture(size, |stage| stage.ui.mode = ViewMode::Flow);
        let line = text.lines().nth(2).unwrap_or_default();
        assert!(line.starts_with(" ‹2") && line.contains("▶ ›3 worker") && line.contains(after), "{text}");
    }
    let wide = picture((200, 60), |stage| stage.ui.mode = ViewMode::Flow);
    assert!(wide.contains("4 reviewer ▲ attention 6:20") && !wide.contains('‹'), "{wide}");
}

#[test]
fn what_came_while_one_looked_back_is_counted_in_lines() {
    let back = |more: usize| {
        picture((80, 24), move |stage| {
            cast::long_log(stage);
            stage.key(KeyCode::Tab);
            stage.buffer();
            stage.keys("kkkkk");
            stage.buffer();
            for n in 0..more {
                stage.feed.print(2, Stream::Out, &format!("and one more, the {n}."));
            }
        })
    };
    assert!(back(1).contains("+1 line new"), "{}", back(1));
    assert!(back(12).contains("+12 lines new"), "{}", back(12));
    // So many are not counted for a picture.
    assert!(back(400).contains("kB new"), "{}", back(400));
}

#[test]
fn whom_a_message_goes_to_is_listed_in_the_order_of_steps() {
    let text = picture((80, 24), |stage| {
        stage.ui.selected = StepId(0);
        stage.keys("sLook.");
    });
    assert!(text.contains("to    [x] 1 scout   [ ] 3 worker   2 more"), "{text}");
    let all = picture((120, 36), |stage| stage.keys("Sx"));
    assert!(all.contains("of 3 accept steering"), "{all}");
}

#[test]
fn a_call_in_a_list_does_not_look_like_the_sign_of_the_keys() {
    for tab in ["3", "6"] {
        for text in pictures(|stage| stage.keys(tab)) {
            let line = text.lines().find(|line| line.contains("edit src/pool.rs") && line.starts_with("│ ›"));
            assert!(line.is_some_and(|line| line.matches('›').count() == 1 && line.contains("● edit")), "{text}");
        }
    }
}
