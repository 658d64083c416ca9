//! What the deck does to a run and beside it, as a person does it: limits, drafts, sessions, other programs.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, PROGRAM};

/// Files below the run directories of a home whose path ends so.
fn files(home: &Home, folder: &str) -> Vec<PathBuf> {
    let runs = home.path().join("root/async-subagent-runs");
    let dirs = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let inner = dirs.flat_map(|run| std::fs::read_dir(run.path().join(folder)).into_iter().flatten().flatten());
    inner.map(|entry| entry.path()).collect()
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// A demo that is slow enough to be talked to.
fn slow(home: &Home) -> Pty {
    let pty = home.deck(&["demo", "--speed", "0.2"], 120, 36);
    pty.wait_text("● running");
    pty
}

#[test]
fn a_limit_is_raised_and_the_runner_answers() {
    let home = Home::new();
    let pty = home.run(120, 36);
    pty.keys("+");
    pty.wait_text("raise a budget");
    // What makes no sense is said in the dialog.
    pty.keys("5\r");
    pty.wait_text("has no unit");
    pty.keys("\x7f2h\r");
    pty.wait_gone("raise a budget");
    pty.wait_text("limit changed by");
    pty.wait_text("done");
    pty.wait_text("of 2:00:00");
    assert!(home.subdeck(&["budget", "@last:1"]).contains("2h"), "{}", home.subdeck(&["budget", "@last:1"]));
}

#[test]
fn a_draft_outlives_a_killed_deck_and_goes_when_it_is_thrown_away() {
    let home = Home::new();
    let mut pty = slow(&home);
    pty.keys("sdo not hold the lock");
    pty.wait_text("do not hold the lock");
    wait_until("the draft is kept", || files(&home, "subdeck/drafts").len() == 1);
    let kept = files(&home, "subdeck/drafts").remove(0);
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = i32::try_from(pty.pid()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    pty.wait_exit();
    assert!(std::fs::read_to_string(&kept).unwrap().contains("do not hold the lock"));
    let step: u32 = kept.file_stem().unwrap().to_str().unwrap().split('-').next().unwrap().parse().unwrap();
    let again = home.deck(&["attach", "@last"], 120, 36);
    again.wait_text("● running");
    again.keys("g");
    for _ in 0..step {
        again.keys("j");
    }
    // Whether the step can still be told something is up to the demo; its draft is there while it runs.
    again.wait_text("✎");
    again.keys("s");
    again.wait_text("do not hold the lock");
    again.wait_text("begun in another deck");
    again.keys("\x03");
    again.wait_gone("do not hold the lock");
    wait_until("the draft is gone", || files(&home, "subdeck/drafts").is_empty());
}

#[test]
fn two_decks_on_one_run_lose_neither_of_their_drafts() {
    let home = Home::new();
    let mut decks = [slow(&home), home.deck(&["attach", "@last"], 120, 36)];
    for pty in &decks {
        pty.wait_text("● running");
        // The last step waits for all others.
        pty.keys("G");
        pty.wait_text("waits for step");
        pty.keys("s");
        pty.wait_text("╭─ steer");
    }
    // Both write at the same time.
    for (pty, text) in decks.iter().zip(["what the first has to say", "what the second has to say"]) {
        pty.keys(text);
        pty.wait_text(text);
        pty.keys(ESCAPE);
        pty.wait_text("draft kept");
        pty.wait_text("✎");
    }
    wait_until("both drafts are kept", || files(&home, "subdeck/drafts").len() == 2);
    for pty in &mut decks {
        kill_process(Pid::from_raw(i32::try_from(pty.pid()).unwrap()).unwrap(), Signal::KILL).unwrap();
        pty.wait_exit();
    }
    let later = home.deck(&["attach", "@last"], 120, 36);
    later.wait_text("✎");
    later.keys("Gs");
    later.wait_text("2 drafts of other decks");
    later.wait_text("what the first has to say");
    later.wait_text("what the second has to say");
    // What goes on with them stands for both.
    later.keys(" and more");
    later.wait_text("what the second has to say and more");
    wait_until("there is one draft", || files(&home, "subdeck/drafts").len() == 1);
    later.keys("\x03");
    wait_until("the draft is gone", || files(&home, "subdeck/drafts").is_empty());
}

#[test]
fn a_deck_shows_what_another_one_wrote_on_its_draft_and_sends_nothing_else() {
    let home = Home::new();
    let one = slow(&home);
    one.keys("G");
    one.wait_text("waits for step");
    one.keys("ssay thanks");
    one.wait_text("say thanks");
    one.keys(ESCAPE);
    one.wait_text("draft kept");
    let other = home.deck(&["attach", "@last"], 120, 36);
    other.wait_text("✎");
    other.keys("Gs");
    other.wait_text("say thanks");
    other.keys(" from b");
    other.wait_text("say thanks from b");
    let holds = |text: &str| {
        let drafts = files(&home, "subdeck/drafts");
        drafts.iter().filter(|file| std::fs::read_to_string(file).is_ok_and(|draft| draft.contains(text))).count()
    };
    wait_until("it is kept", || holds("say thanks from b") == 1 && files(&home, "subdeck/drafts").len() == 1);
    one.keys("s");
    one.wait_text("say thanks from b");
    one.wait_text("begun in another deck");
    // The other one writes on meanwhile: this is not sent with what is on the screen here, and not thrown away with it.
    other.keys(" again");
    wait_until("it is kept", || holds("say thanks from b again") == 1);
    one.keys("\x13");
    one.wait_gone("begun in another deck");
    one.wait_text("scheduled");
    assert_eq!((holds("say thanks from b again"), files(&home, "subdeck/drafts").len()), (1, 1));
}

#[test]
fn a_sent_message_leaves_no_draft() {
    let home = Home::new();
    let pty = slow(&home);
    pty.keys("shello there");
    pty.wait_text("hello there");
    wait_until("the draft is kept", || files(&home, "subdeck/drafts").len() == 1);
    pty.keys("\x13");
    pty.wait_gone("╭─ steer");
    wait_until("the draft is gone", || files(&home, "subdeck/drafts").is_empty());
}

#[test]
fn a_draft_for_a_run_that_is_over_outlives_the_deck_and_leaves_the_run_as_it_is() {
    let home = Home::new();
    let mut pty = home.deck(&["demo", "--speed", "100"], 120, 36);
    pty.wait_text("the run is over");
    let before = files(&home, "");
    pty.keys("g");
    pty.wait_text("goes on with step 1");
    pty.keys("s");
    pty.wait_text("╭─ go on");
    pty.keys("not yet sent\x1b");
    pty.wait_text("draft kept");
    assert!(!pty.text().contains("until this deck is left"));
    pty.keys("q");
    pty.wait_exit();
    let mut again = home.deck(&["attach", "@last"], 120, 36);
    again.wait_text("the run is over");
    again.keys("gs");
    again.wait_text("not yet sent");
    again.keys("\x03");
    again.wait_gone("not yet sent");
    again.keys("q");
    again.wait_exit();
    assert_eq!(files(&home, ""), before);
    let third = home.deck(&["attach", "@last"], 120, 36);
    third.wait_text("the run is over");
    third.keys("gs");
    third.wait_text("╭─ go on");
    assert!(!third.text().contains("not yet sent"), "what was thrown away does not come back");
}

#[test]
fn a_message_for_a_step_that_waits_is_taken_back() {
    let home = Home::new();
    let pty = slow(&home);
    // The last step waits for all others; the demo is slow enough for it to wait throughout.
    pty.keys("G");
    pty.wait_text("waits for step");
    pty.keys("sread the changelog first\x13");
    pty.wait_text("scheduled");
    pty.keys("u");
    pty.wait_text("taken back");
    wait_until("the message is told as taken back", || home.subdeck(&["events", "@last"]).contains("taken back"));
    pty.keys("u");
    pty.wait_text("no message of yours waits to be taken");
}

#[test]
fn a_shell_and_an_editor_have_the_terminal_and_give_it_back() {
    let home = Home::new();
    let tool = home.path().join("tool");
    std::fs::write(&tool, "#!/bin/sh\necho \"TOOL IN $(pwd)\"\nread line\n").unwrap();
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = CommandBuilder::new(PROGRAM);
    command.args(["run", "--", "sh", "-c", "echo hello from the child; exec sleep 1000"]);
    command.cwd(home.path());
    command.env("HOME", home.path());
    command.env("SUBDECK_ROOT", home.path().join("root"));
    command.env("SHELL", &tool);
    let pty = Pty::spawn(command, 100, 30);
    pty.wait_text("hello from the child");
    let folder = home.path().canonicalize().unwrap();
    pty.keys("$");
    let here = format!("TOOL IN {}", folder.display());
    pty.wait_for("the shell in the folder", |s| !s.alternate_screen() && s.contents().contains(&here));
    pty.keys("\r");
    pty.wait_for("the deck again", |s| s.alternate_screen() && s.contents().contains("hello from the child"));
    pty.keys("e");
    pty.wait_text("no tool of this step named a path yet");
}

#[test]
fn a_run_that_is_over_is_gone_on_with_in_a_new_one() {
    let home = Home::new();
    let mut pty = home.deck(&["demo", "--speed", "100"], 120, 36);
    pty.wait_text("the run is over");
    pty.keys("g");
    pty.wait_text("goes on with step 1");
    pty.keys("s");
    pty.wait_text("╭─ go on");
    pty.keys("look once more\x13");
    pty.wait_text("goes on from");
    pty.wait_text("the run is over");
    pty.keys("q");
    pty.wait_exit();
    assert!(pty.is_sane());
    assert_eq!(home.subdeck(&["ls"]).lines().filter(|l| l.contains("complete") || l.contains("failed")).count(), 2);
}

#[test]
fn keys_of_the_configuration_count_and_wrong_ones_are_told_with_their_place() {
    let home = Home::new();
    let file = home.path().join(".config/subdeck/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "[keys]\nhelp = [\"h\", \"F1\"]\nzoom = \"j\"\nstpo_run = \"K\"\n";
    std::fs::write(&file, text).unwrap();
    let mut pty = home.deck(&["run", "--", "echo", "done already"], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("h");
    pty.wait_text("╭─ keys");
    pty.keys("\x1b");
    pty.wait_gone("╭─ keys");
    pty.keys("q");
    pty.wait_exit();
    let told = pty.bytes();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("config.toml:3") && told.contains("`j` is the key of `down` already"), "{told}");
    assert!(told.contains("config.toml:4") && told.contains("did you mean `stop_run`?"), "{told}");
    assert!(home.subdeck(&["config", "explain"]).contains("keys.help"));
}

#[test]
fn keys_of_a_project_need_trust() {
    let home = Home::new();
    let file = home.path().join(".subdeck/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[keys]\nhelp = \"h\"\n").unwrap();
    assert!(!home.subdeck(&["config", "explain"]).contains("keys.help"));
    assert!(home.subdeck(&["config", "trust"]).contains("keys    help = h"));
    assert!(home.subdeck(&["config", "explain"]).contains("keys.help"));
}
