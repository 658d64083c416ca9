//! How the deck behaves on a terminal: what it asks, what it writes and how often, whom it tells what happens.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::time::{Duration, Instant};

use support::Home;
use support::pty::{PATIENCE, Pty};

const FOCUS_LOST: &str = "\x1b[O";
const FOCUS_GAINED: &str = "\x1b[I";

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|w| *w == part).count()
}

fn wait_bytes(pty: &Pty, part: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    while count(&pty.bytes(), part) == 0 {
        assert!(Instant::now() < deadline, "never written: {:?}", String::from_utf8_lossy(part));
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A run that waits for a file and then ends.
fn waiting(home: &Home, variables: &[(&str, &str)]) -> Pty {
    let script = "echo begun; until [ -e on ]; do sleep 0.05; done";
    let pty = home.deck_with(&["run", "--name", "nap", "--", "sh", "-c", script], variables, 100, 30);
    pty.wait_text("begun");
    pty
}

fn go(home: &Home) {
    std::fs::write(home.path().join("on"), "").unwrap();
}

#[test]
fn who_looks_elsewhere_is_told_that_the_run_ended() {
    for (word, told) in [
        ("osc9", &b"\x1b]9;subdeck nap: the run ended: complete\x1b\\"[..]),
        ("osc777", b"\x1b]777;notify;nap;the run ended: complete\x1b\\"),
        ("bell", b"\x07"),
    ] {
        let home = Home::new();
        home.configure(&format!("[ui]\nnotify = \"{word}\"\n"));
        let mut pty = waiting(&home, &[]);
        pty.keys(FOCUS_LOST);
        go(&home);
        pty.wait_text("the run is over");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let bytes = pty.bytes();
            // A bell also ends each name of the window.
            let names = if word == "bell" { count(&bytes, b"\x1b]0;") } else { 0 };
            if count(&bytes, told) == names + 1 {
                break;
            }
            assert!(Instant::now() < deadline, "{word}: {}", String::from_utf8_lossy(&bytes));
            std::thread::park_timeout(Duration::from_millis(5));
        }
        pty.keys("q");
        pty.wait_exit();
        assert!(pty.is_sane());
        let mode = b"\x1b[?1004l";
        assert_eq!(count(&pty.bytes(), mode), 1, "the terminal stops to report its focus");
    }
}

#[test]
fn who_looks_is_not_told_and_a_hook_is_told_all_the_same() {
    let home = Home::new();
    let heard = home.path().join("heard");
    home.configure(&format!(
        "[ui]\nnotify = \"osc9\"\nnotify_hook = [\"sh\", \"-c\", \"cat >> {}\"]\n",
        heard.display()
    ));
    let mut pty = waiting(&home, &[]);
    pty.keys(FOCUS_LOST);
    pty.keys(FOCUS_GAINED);
    go(&home);
    pty.wait_text("the run is over");
    pty.keys("q");
    pty.wait_exit();
    assert_eq!(count(&pty.bytes(), b"\x1b]9;"), 0);
    // The deck waits for its hook before it is gone.
    let heard = std::fs::read_to_string(heard).unwrap();
    assert_eq!(heard.lines().count(), 1, "{heard}");
    for part in ["\"event\":\"end\"", "\"state\":\"complete\"", "\"name\":\"nap\"", "\"version\":1"] {
        assert!(heard.contains(part), "{heard}");
    }
}

#[test]
fn the_hook_of_a_project_that_is_not_trusted_is_not_started() {
    let home = Home::new();
    let file = home.path().join(".subdeck/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "[ui]\nnotify_hook = [\"touch\", \"started\"]\n").unwrap();
    let mut pty = waiting(&home, &[]);
    go(&home);
    pty.wait_text("the run is over");
    pty.keys("q");
    pty.wait_exit();
    assert!(!home.path().join("started").exists());
    assert!(home.subdeck(&["config", "trust"]).contains("ui.notify_hook"));
}

#[test]
fn colours_fit_the_ground_and_go_where_nobody_wants_them() {
    // The terminal of the tests says that its ground is dark.
    for (variables, expected, never) in [
        (&[][..], &b"\x1b]11;?"[..], &b"no such bytes"[..]),
        (&[("SUBDECK_THEME", "light")], b"\x1b[c", b"\x1b]11;?"),
        (&[("NO_COLOR", "1")], b"\x1b[c", b"\x1b[36;"),
        (&[("SUBDECK_THEME", "mono")], b"\x1b[c", b"\x1b[36;"),
        (&[("SUBDECK_THEME", "16")], b"\x1b[36;", b"\x1b[38;5;"),
    ] {
        let home = Home::new();
        let pty = waiting(&home, variables);
        pty.wait_frame();
        let bytes = pty.bytes();
        assert!(count(&bytes, expected) > 0, "{variables:?}");
        assert_eq!(count(&bytes, never), 0, "{variables:?}");
    }
    let home = Home::new();
    let pty = waiting(&home, &[]);
    wait_bytes(&pty, b"\x1b[96;");
}

#[test]
fn a_quiet_run_is_drawn_once_a_second() {
    let home = Home::new();
    let pty = waiting(&home, &[]);
    let end = &b"\x1b[?2026l"[..];
    // What comes with the start of a run has to be over: a whole second with nothing but the clock.
    let deadline = Instant::now() + PATIENCE;
    let (mut frames, mut since) = (count(&pty.bytes(), end), Instant::now());
    loop {
        assert!(Instant::now() < deadline, "more than the clock is drawn");
        std::thread::park_timeout(Duration::from_millis(20));
        let now = count(&pty.bytes(), end);
        if now < frames + 3 {
            continue;
        }
        // Three frames more: with one each second they take two seconds at least, however slow the machine is.
        if since.elapsed() >= Duration::from_millis(1_900) {
            break;
        }
        (frames, since) = (now, Instant::now());
    }
    // The clock is a few cells, and a frame is what changed.
    let before = pty.bytes().len();
    let deadline = Instant::now() + PATIENCE;
    while count(&pty.bytes(), end) < frames + 5 {
        assert!(Instant::now() < deadline, "the clock stands still");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let written = pty.bytes().len() - before;
    assert!(written < 2_000, "{written} bytes for a clock that moved");
    go(&home);
}

#[test]
fn a_picture_stands_still_while_steps_end_and_others_print() {
    let home = Home::new();
    let plan = "[[step]]\nparallel = [\n  \
        { id = \"brief\", runner = { type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo begun; until [ -e on ]; do sleep 0.05; done\"] } },\n  \
        { id = \"loud\", runner = { type = \"external-cli\", command = \"sh\", args = [\"-c\", \"while :; do echo more; sleep 0.05; done\"] } },\n]\n";
    std::fs::write(home.path().join("plan.toml"), plan).unwrap();
    let pty = home.deck(&["run", "plan.toml"], 120, 30);
    pty.wait_text("begun");
    pty.keys(" ");
    pty.wait_text("FROZEN");
    go(&home);
    home.wait_state("1 of 2");
    // The time that it stands still is drawn each second, and what comes is looked at behind it.
    let (end, deadline) = (&b"\x1b[?2026l"[..], Instant::now() + PATIENCE);
    let frames = count(&pty.bytes(), end);
    while count(&pty.bytes(), end) < frames + 2 {
        assert!(Instant::now() < deadline, "nothing is drawn any more:\n{}", pty.text());
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(pty.text().contains("FROZEN") && !pty.text().contains("brief              done"), "{}", pty.text());
    pty.keys(" ");
    pty.wait_gone("FROZEN");
    pty.wait_text("brief              done");
}
