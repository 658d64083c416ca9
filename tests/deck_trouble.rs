//! The deck in trouble: keys that come with a new size or before the first picture, other programs on its terminal.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use support::Home;
use support::pty::PATIENCE;

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A program of the person's.
fn tool(home: &Home, text: &str) -> String {
    let path = home.path().join("tool.sh");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

#[test]
fn a_picture_that_stands_still_bears_whatever_happens_to_the_run() {
    let home = Home::new();
    let pty = home.deck(&["demo", "--speed", "4"], 120, 36);
    pty.wait_text("● running");
    pty.keys(" ");
    pty.wait_text("FROZEN");
    home.wait_state("complete");
    // The view changes, the picture does not.
    pty.keys("v");
    pty.wait_text("FROZEN");
    pty.keys("\x1b");
    pty.wait_text("╭─›steps");
    assert!(!pty.text().contains("the run is over"), "{}", pty.text());
    pty.keys(" ");
    pty.wait_text("the run is over");
}

/// The reader of keys is told of a new size too, and must not forget over it what was typed.
#[test]
fn a_key_that_comes_together_with_a_new_size_counts() {
    let home = Home::new();
    let first = home.run(100, 30);
    drop(first);
    let pty = home.deck(&["attach", "@last"], 100, 30);
    pty.wait_text("╭─›steps");
    for n in 0..60_u16 {
        pty.keys("?");
        pty.resize(100 + n % 3, 30 + n % 2);
        pty.wait_text("╭─ keys");
        pty.resize(101 + n % 3, 30 + n % 2);
        pty.keys("?");
        pty.wait_for("the help to go", |screen| !screen.contents().contains("╭─ keys"));
    }
}

#[test]
fn keys_before_the_first_picture_are_not_lost() {
    let home = Home::new();
    let first = home.run(100, 30);
    drop(first);
    // Typed while the program still starts: the terminal echoes them, and then they count.
    let pty = home.deck(&["attach", "@last"], 100, 30);
    pty.keys("z4");
    pty.wait_text("[4 budget]");
    // And what comes in one piece with the answers of the terminal.
    let pty = home.deck(&["attach", "@last"], 100, 30);
    wait_until("the first question", || pty.bytes().windows(3).any(|w| w == b"\x1b[c"));
    pty.keys("?");
    pty.wait_text("╭─ keys");
}

#[test]
fn what_is_typed_into_a_pager_is_for_the_pager_alone() {
    let home = Home::new();
    // It says that it is there, takes Ctrl-C for itself, and ends with q.
    let pager = tool(
        &home,
        "#!/bin/sh\ntrap 'echo interrupted > $HOME/int' INT\ntrap '' QUIT\necho pager is up\n\
         while [ ! -e $HOME/int ]; do sleep 0.05; done\nread answer < /dev/tty\nexit 0\n",
    );
    // The run is over, so that a Ctrl-C that reached the deck would end it without a question.
    let mut pty =
        home.deck_with(&["run", "--name", "short", "--", "echo", "done already"], &[("PAGER", &pager)], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("o");
    pty.wait_text("pager is up");
    // The terminal is in its ordinary mode, so these are signals for everybody on it.
    pty.keys("\x1c\x03");
    wait_until("the pager heard Ctrl-C", || home.path().join("int").exists());
    pty.keys("\r");
    pty.wait_for("the deck again", |s| s.alternate_screen() && s.contents().contains("the run is over"));
    pty.keys("?");
    pty.wait_text("╭─ keys");
    pty.keys("\x1b");
    pty.wait_gone("╭─ keys");
    pty.keys("q");
    assert_eq!(pty.wait_exit().exit_code(), 0);
    assert!(pty.is_sane());
}

#[cfg(target_os = "linux")]
#[test]
fn a_pager_that_is_suspended_suspends_the_deck_with_it() {
    let home = Home::new();
    let pager = tool(&home, "#!/bin/sh\necho pager is up\nread answer < /dev/tty\nexit 0\n");
    let pty = home.deck_with(&["run", "--", "echo", "done already"], &[("PAGER", &pager)], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("o");
    pty.wait_text("pager is up");
    let state = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", pty.pid())).unwrap();
    let child: i32 = children.split_whitespace().last().unwrap().parse().unwrap();
    let signal = |pid: i32, which| {
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), which).unwrap();
    };
    // Whoever started the deck has its terminal again.
    signal(child, rustix::process::Signal::STOP);
    wait_until("the deck is stopped too", || state(pty.pid()).contains(") T "));
    signal(child, rustix::process::Signal::CONT);
    signal(i32::try_from(pty.pid()).unwrap(), rustix::process::Signal::CONT);
    pty.keys("\r");
    pty.wait_for("the deck again", |s| s.alternate_screen() && s.contents().contains("the run is over"));
}
