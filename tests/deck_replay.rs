//! A run that is over plays again in the deck, on the real program on a terminal: every key of a replay, that nothing is
//! written, and runs of others as far as their files tell.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use subdeck::deck::actions::{Action, row};
use subdeck::run::replay::{Step, Tape};
use support::pty::Pty;
use support::{ESCAPE, Home};

/// Two commands after each other that print and one agent; over in a moment.
const PLAN: &str = r#"
name = "played"

[[step]]
id = "first"
label = "first"
runner = { type = "external-cli", command = "sh", args = ["-c", "echo early word; sleep 1; echo late word; exit 0"] }

[[step]]
id = "agent"
agent = "scout"
runner = { type = "demo", script = "default" }
task = "Look around"

[[step]]
id = "last"
label = "last"
runner = { type = "external-cli", command = "sh", args = ["-c", "echo the last word; exit 3"] }
"#;

/// A run that is over.
fn over() -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("plan.toml"), PLAN).unwrap();
    home.subdeck(&["run", "--no-tui", "plan.toml"]);
    home.wait_state("failed");
    home
}

/// Its replay, paused at its first event.
fn paused(home: &Home) -> Pty {
    let pty = home.deck(&["replay", "@last"], 120, 36);
    pty.wait_text("REPLAY");
    // Until everything was read there is nothing to be moved.
    pty.wait_text(" event ");
    press(&pty, Action::Seek(Step::EventBack));
    press(&pty, Action::Seek(Step::Start));
    wait_events(&pty, |n| n == 1);
    pty.wait_text("‖  paused  1x");
    pty
}

fn press(pty: &Pty, action: Action) {
    let key = row(action).unwrap().keys[0];
    let crossterm::event::KeyCode::Char(c) = key.code else { panic!("{key:?}") };
    pty.keys(&c.to_string());
}

/// How many events have happened where it is; nothing while the screen is between two pictures.
fn events(text: &str) -> Option<usize> {
    let after = text.split("event ").nth(1)?.trim_start();
    after.split_whitespace().next()?.replace(',', "").parse().ok()
}

fn wait_events(pty: &Pty, wanted: impl Fn(usize) -> bool) -> usize {
    let seen = std::cell::Cell::new(0);
    pty.wait_for("as many events as wanted", |screen| {
        events(&screen.contents()).is_some_and(|n| {
            seen.set(n);
            wanted(n)
        })
    });
    seen.get()
}

/// Every file below a folder, with what says that it was written.
fn files(folder: &Path) -> BTreeMap<String, (u64, SystemTime)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                open.push(entry.path());
            }
            all.insert(entry.path().display().to_string(), (meta.len(), meta.modified().unwrap()));
        }
    }
    all
}

#[test]
fn every_key_of_a_replay_does_what_it_says_and_nothing_is_written() {
    let home = over();
    let before = files(&home.path().join("root"));
    let pty = paused(&home);
    // Nothing has happened yet.
    pty.wait_text("1 first  ○ queued");
    pty.wait_gone("the last word");

    // Event by event, on and back.
    press(&pty, Action::Seek(Step::Event));
    wait_events(&pty, |n| n == 2);
    press(&pty, Action::Seek(Step::Event));
    wait_events(&pty, |n| n == 3);
    press(&pty, Action::Seek(Step::EventBack));
    wait_events(&pty, |n| n == 2);

    // By what stands out: the end of the first step is the first mark.
    press(&pty, Action::Seek(Step::Mark));
    pty.wait_text("1 first  ✓ done");
    pty.wait_text("late word");
    let ended = wait_events(&pty, |n| n > 2);
    press(&pty, Action::Seek(Step::Mark));
    let called = wait_events(&pty, |n| n > ended);
    pty.wait_text("2 agent  ● running");
    press(&pty, Action::Seek(Step::MarkBack));
    wait_events(&pty, |n| n == ended);
    assert!(called > ended);

    // By time, and to the ends.
    press(&pty, Action::Seek(Step::Start));
    wait_events(&pty, |n| n == 1);
    press(&pty, Action::Seek(Step::Jump));
    wait_events(&pty, |n| n > ended);
    press(&pty, Action::Seek(Step::JumpBack));
    wait_events(&pty, |n| n < called);
    press(&pty, Action::Seek(Step::End));
    pty.wait_text("this is the end");
    pty.wait_text("3 last   ✗ failed");

    // Speed, idle times, and playing from the end.
    press(&pty, Action::Slower);
    pty.wait_text("it plays as fast as it happened");
    for speed in [2, 4, 8, 16, 32, 64] {
        press(&pty, Action::Faster);
        pty.wait_text(&format!(" {speed:>2}x "));
    }
    press(&pty, Action::Faster);
    pty.wait_text("it plays as fast as it can");
    press(&pty, Action::Slower);
    pty.wait_text(" 32x ");
    press(&pty, Action::SkipIdle);
    pty.wait_text("every time is played");
    pty.wait_gone("skips idle");
    press(&pty, Action::SkipIdle);
    pty.wait_text("skips idle");
    press(&pty, Action::Seek(Step::Start));
    wait_events(&pty, |n| n == 1);
    press(&pty, Action::Freeze);
    // It plays to its end by itself.
    pty.wait_text("this is the end");

    // What would reach the run says why it does not.
    for action in [Action::Steer, Action::StopRun, Action::Interrupt, Action::Retry, Action::Raise, Action::Acknowledge]
    {
        press(&pty, action);
        pty.wait_text("does nothing in a replay; P shows the run as it is");
        // Another notice in between, so that the next one is seen.
        press(&pty, Action::SkipIdle);
        pty.wait_gone("does nothing in a replay");
    }

    // Back to the run as it is, and again.
    press(&pty, Action::Replay);
    pty.wait_gone("REPLAY");
    pty.wait_text("the run is over");
    press(&pty, Action::Replay);
    pty.wait_text("REPLAY");
    pty.keys(ESCAPE);
    pty.wait_gone("REPLAY");
    pty.keys("q");
    pty.wait_for("the normal screen", |s| !s.alternate_screen());
    assert_eq!(files(&home.path().join("root")), before);
}

#[test]
fn views_tabs_and_searches_are_of_the_moment_that_is_shown() {
    let home = over();
    let pty = paused(&home);
    press(&pty, Action::Seek(Step::Event));
    wait_events(&pty, |n| n == 2);
    // Long before the last step began, what it printed is nowhere.
    pty.keys("/");
    pty.keys("last word\t\r");
    pty.wait_text("nothing found");
    press(&pty, Action::Seek(Step::End));
    pty.wait_text("this is the end");
    pty.keys("/last word\r");
    pty.wait_text("in step 3 last");
    // The tabs of a zoomed step tell the same moment.
    pty.keys("gj2");
    pty.wait_text("[2 tools");
    pty.wait_text("bash ls");
    press(&pty, Action::Seek(Step::Start));
    pty.wait_gone("bash ls");
    pty.keys("5");
    pty.wait_text("git tells of now, not of then");
}

#[test]
fn a_click_on_the_scrubber_goes_there() {
    let home = over();
    let pty = paused(&home);
    pty.keys("m");
    pty.wait_text("the mouse is the deck's");
    let text = pty.text();
    let (row, line) = text.lines().enumerate().find(|(_, line)| line.contains("event ")).unwrap();
    let column = line.chars().collect::<Vec<_>>().iter().rposition(|c| *c == '■').unwrap() + 1;
    pty.keys(&format!("\x1b[<0;{column};{}M\x1b[<0;{column};{}m", row + 1, row + 1));
    let at = wait_events(&pty, |n| n > 20);
    // A turn of the wheel there goes 10 s back.
    pty.keys(&format!("\x1b[<64;{column};{}M", row + 1));
    wait_events(&pty, |n| n < at);
}

#[test]
fn a_run_ends_on_its_tape_as_its_files_say() {
    let home = over();
    let dir = subdeck::rundir::RunDir::at(newest(&home));
    let mut follower = subdeck::rundir::Follower::open(dir.path()).unwrap();
    while follower.poll().behind {}
    let mut tape = subdeck::rundir::Recording::open(&dir);
    let mut state = tape.beginning();
    let mut next = Some(0);
    while let Some(place) = next {
        // In small parts, as a replay reads them.
        let piece = tape.read(place, 1_000);
        piece.events.iter().for_each(|recorded| subdeck::run::reduce(&mut state, &recorded.event));
        next = piece.next;
    }
    let mut told = follower.state().clone();
    // What a status has beside the events (the last lines of output, when a plain command printed last, and where), and what
    // the reducer only keeps for the events to come.
    for (step, played) in told.steps.iter_mut().zip(&state.steps) {
        step.recent_output.clone_from(&played.recent_output);
        step.external.clone_from(&played.external);
        step.last_activity = played.last_activity;
        step.last_word = played.last_word;
        step.repeat.clone_from(&played.repeat);
    }
    (told.last_update, told.last_activity) = (state.last_update, state.last_activity);
    assert_eq!(told.steps.len(), 3);
    for (told, played) in told.steps.iter().zip(&state.steps) {
        assert_eq!(other(told, played), Vec::<String>::new(), "step {}", told.id);
    }
    told.steps.clone_from(&state.steps);
    assert_eq!(other(&told, &state), Vec::<String>::new());
}

/// The lines of two states that are not the same.
fn other<T: std::fmt::Debug>(one: &T, two: &T) -> Vec<String> {
    let lines = |state: &T| format!("{state:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
    let (one, two) = (lines(one), lines(two));
    let count = one.len().max(two.len());
    let at = |lines: &[String], n: usize| lines.get(n).cloned().unwrap_or_default();
    (0..count).filter(|n| at(&one, *n) != at(&two, *n)).map(|n| format!("{} | {}", at(&one, n), at(&two, n))).collect()
}

/// The directory of the only run.
fn newest(home: &Home) -> std::path::PathBuf {
    let listed: serde_json::Value = serde_json::from_str(&home.subdeck(&["ls", "--json"])).unwrap();
    listed["runs"][0]["directory"].as_str().unwrap().into()
}

#[test]
fn a_run_that_goes_on_and_a_missing_terminal_are_refused_with_the_way_out() {
    let home = Home::new();
    let pty = home.run(100, 30);
    let refused = home.deck(&["replay", "@last"], 100, 30);
    refused.wait_text("the run is not over yet");
    drop(pty);
    let output = std::process::Command::new(support::PROGRAM)
        .args(["replay", "@last"])
        .env("HOME", home.path())
        .env("SUBDECK_ROOT", home.path().join("root"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("subdeck events"), "{told}");
}
