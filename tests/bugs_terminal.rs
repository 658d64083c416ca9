//! The life of the deck's terminal: how it is taken, shared and given back, and what happens when it goes away. The
//! numbers are those of reports about other programs.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

#[allow(dead_code)]
#[path = "support/measure.rs"]
mod measure;

use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, PROGRAM};

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn signal(pid: u32, which: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), which).unwrap();
}

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|w| *w == part).count()
}

/// Waits until a process has ended, while nobody has waited for it: what it cost can be told then.
#[cfg(target_os = "linux")]
fn wait_dead(pid: u32) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    wait_until("the end of the deck", || state().contains(") Z ") || state().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn b30_a_deck_whose_terminal_is_gone_ends_without_turning_in_circles() {
    let home = Home::new();
    let mut pty = home.run(80, 24);
    let (pid, before) = (pty.pid(), measure::ticks(pty.pid()));
    pty.hang_up();
    wait_dead(pid);
    let spent = measure::ticks(pid) - before;
    assert!(spent < 100, "{spent} hundredths of a second of processor time for leaving");
    pty.wait_exit();
    home.wait_state("running");
    // The fleet, and a deck that nobody told: its starter ignores the signal of a lost terminal.
    for words in [&[][..], &["attach", "@last"]] {
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", PROGRAM]);
        command.args(words);
        command.cwd(home.path());
        command.env("HOME", home.path());
        command.env("SUBDECK_ROOT", home.path().join("root"));
        command.env("TMPDIR", home.path());
        let mut pty = Pty::spawn(command, 80, 24);
        pty.wait_text("nap");
        let (pid, before) = (pty.pid(), measure::ticks(pty.pid()));
        pty.hang_up();
        wait_dead(pid);
        let spent = measure::ticks(pid) - before;
        assert!(spent < 100, "{words:?}: {spent} hundredths of a second");
    }
    home.wait_state("running");
}

/// The reader of the terminal does not read: what the deck writes fills the terminal until a write waits.
#[test]
fn b31_a_deck_that_cannot_write_heeds_sigterm_and_leaves_its_run_alone() {
    for which in [Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let script = "i=0; while :; do i=$((i+1)); echo \"$i $i $i\"; [ $((i % 50)) = 0 ] && sleep 0.02; done";
        let mut pty = home.deck(&["run", "--name", "flood", "--", "sh", "-c", script], 200, 60);
        pty.wait_text("steps");
        pty.pause();
        // Until its main thread sleeps in a write, which only a full terminal makes it do.
        #[cfg(target_os = "linux")]
        {
            let pid = pty.pid();
            let at = || std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
            let (mut last, mut since) = (measure::io(pid).written, Instant::now());
            wait_until("a write that waits", || {
                let now = measure::io(pid).written;
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                at().contains("tty") || at().contains("n_tty") || since.elapsed() > Duration::from_secs(2)
            });
        }
        signal(pty.pid(), which);
        let status = pty.wait_exit();
        let name = if which == Signal::TERM { "Terminated" } else { "Hangup" };
        assert_eq!(status.signal(), Some(name), "{status:?}");
        home.wait_state("running");
    }
}

#[test]
fn b32_signals_leave_the_terminal_as_it_was_and_the_run_alive() {
    let home = Home::new();
    let mut pty = home.run(80, 24);
    // Each deck after the first one is attached to the run that the first one left.
    for (which, name) in [
        (Signal::TERM, "Terminated"),
        (Signal::HUP, "Hangup"),
        (Signal::QUIT, "Quit"),
        (Signal::USR1, "User defined signal 1"),
        (Signal::USR2, "User defined signal 2"),
        (Signal::ALARM, "Alarm clock"),
        (Signal::VTALARM, "Virtual timer expired"),
        (Signal::PROF, "Profiling timer expired"),
    ] {
        assert!(!pty.is_as_before(), "the deck has modes of its own");
        signal(pty.pid(), which);
        let status = pty.wait_exit();
        assert!(pty.is_sane(), "{which:?}");
        assert!(pty.is_as_before(), "{which:?}: keys are read as before");
        assert_eq!(status.signal(), Some(name), "{which:?} ends the deck by itself: {status:?}");
        home.wait_state("running");
        pty = home.deck(&["attach"], 80, 24);
        pty.wait_text("hello from the child");
    }
}

/// A fleet and the runs that are opened from it are one process, which listens once.
#[cfg(target_os = "linux")]
#[test]
fn b32_a_fleet_that_opened_many_runs_heeds_a_signal_with_the_threads_of_one() {
    let home = Home::new();
    drop(home.run(80, 24));
    let mut pty = home.deck(&[], 80, 24);
    let threads = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    // What is typed while one of them leaves is let go with the reports of the mouse.
    let fleet = |s: &vt100::Screen| s.alternate_screen() && s.contents().contains(" fleet  1 running");
    let mut most = 0;
    for n in 0..6 {
        pty.wait_for("the fleet", fleet);
        pty.keys("\r");
        pty.wait_text("hello from the child");
        if n == 0 {
            most = threads(pty.pid());
        }
        pty.keys(ESCAPE);
    }
    pty.wait_for("the fleet", fleet);
    pty.keys("\r");
    pty.wait_text("hello from the child");
    wait_until("no more threads than for the first run", || threads(pty.pid()) <= most);
    signal(pty.pid(), Signal::TERM);
    let status = pty.wait_exit();
    assert_eq!(status.signal(), Some("Terminated"), "{status:?}");
    assert!(pty.is_sane() && pty.is_as_before());
    home.wait_state("running");
}

#[cfg(debug_assertions)]
#[test]
fn b33_a_fault_in_the_deck_leaves_the_terminal_as_it_was_and_the_run_alive() {
    for which in ["deck", "thread"] {
        let home = Home::new();
        home.configure("[ui]\nmouse = true\n");
        let variables = [("SUBDECK_TEST_PANIC", which), ("RUST_BACKTRACE", "0")];
        let mut pty = home.deck_with(&["run", "--", "sh", "-c", "exec sleep 1000"], &variables, 80, 24);
        assert_eq!(pty.wait_exit().exit_code(), 101, "{which}");
        assert!(pty.is_sane(), "{which}");
        assert!(pty.is_as_before(), "{which}: keys are read as before");
        // On the normal screen, so after it was given back.
        pty.wait_text("asked to");
        let bytes = pty.bytes();
        for (on, off) in [("\x1b[>1u", "\x1b[<1u"), ("\x1b[?1004h", "\x1b[?1004l"), ("\x1b[?1006h", "\x1b[?1006l")] {
            assert_eq!((count(&bytes, on.as_bytes()), count(&bytes, off.as_bytes())), (1, 1), "{which}: {on:?}");
        }
        home.wait_state("running");
    }
}

#[test]
fn b35_what_the_mouse_did_while_the_deck_left_is_not_typed_into_the_shell() {
    let home = Home::new();
    home.configure("[ui]\nmouse = true\n");
    // What the shell gets after the deck is told.
    let script = "\"$0\" run --name short -- echo done already; echo BACK; read -r line; echo \"GOT<$line>\"";
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", script, PROGRAM]);
    command.cwd(home.path());
    command.env("HOME", home.path());
    command.env("SUBDECK_ROOT", home.path().join("root"));
    command.env("TMPDIR", home.path());
    let mut pty = Pty::spawn(command, 80, 24);
    pty.wait_text("the run is over");
    // In one piece with the key that leaves.
    let moves: String = (1..=60).map(|n| format!("\x1b[<35;{n};10M")).collect();
    pty.keys(&format!("{moves}q{moves}"));
    pty.wait_text("BACK");
    assert!(pty.is_sane());
    pty.keys("typed\r");
    pty.wait_text("GOT<typed>");
    pty.wait_exit();
    let text = pty.text();
    assert!(!text.contains("35;"), "{text}");
}

#[test]
fn b36_the_size_changes_fifty_times_in_a_second_while_much_arrives() {
    let home = Home::new();
    let script = "i=0; while :; do i=$((i+1)); echo \"line $i 日本 of many\"; [ $((i % 200)) = 0 ] && sleep 0.02; done";
    let pty = home.deck(&["run", "--name", "flood", "--", "sh", "-c", script], 120, 36);
    pty.wait_text("of many");
    let sizes = [(120, 36), (80, 24), (50, 14), (20, 5), (5, 3), (1, 1), (200, 60), (30, 8), (119, 20), (61, 15)];
    let begun = Instant::now();
    for n in 0..50_u32 {
        let (columns, rows) = sizes[n as usize % sizes.len()];
        pty.resize(columns, rows);
        if n.is_multiple_of(7) {
            pty.keys("v");
        }
        let next = begun + Duration::from_millis(20) * (n + 1);
        std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
    pty.keys("\x1b\x1b");
    pty.resize(100, 30);
    // The picture is whole for the size that stayed: both edges of the frames stand where they belong in every row.
    pty.wait_for("a whole picture", |screen| {
        let rows: Vec<String> = screen.rows(0, 100).collect();
        let framed: Vec<&String> = rows.iter().filter(|r| r.starts_with('│')).collect();
        rows.len() == 30
            && rows.iter().any(|r| r.starts_with("╭─") && r.ends_with('╮') && r.contains("steps"))
            && framed.len() > 10
            && framed.iter().all(|r| r.ends_with('│') && !r.contains('╭'))
    });
    pty.keys("?");
    pty.wait_text("╭─ keys");
}

#[test]
fn b38_no_size_is_too_small_and_any_size_that_comes_later_is_used() {
    let home = Home::new();
    let script = "echo 日本語 👩‍🔬 hello; exec sleep 1000";
    for (columns, rows) in [(0, 0), (1, 1), (5, 3), (20, 5)] {
        let mut pty = home.deck(&["run", "--name", "nap", "--", "sh", "-c", script], columns, rows);
        // Every key that draws something else, at this size.
        let keys = "vvvv2345671jkgGzz[]?E:E/xEsE+ExEXE&EWWFF!awE\t\t\tzzEEEEE";
        pty.keys(&keys.replace('E', ESCAPE));
        pty.resize(80, 24);
        pty.wait_text("hello");
        pty.keys(&"E".repeat(4).replace('E', ESCAPE));
        pty.wait_text("nap");
        pty.resize(columns, rows);
        pty.resize(120, 36);
        pty.wait_text("╭─ happening");
        pty.keys("X");
        pty.wait_text("Stop the whole run?");
        pty.keys("y");
        pty.wait_text("the run is over");
        pty.keys("q");
        assert_eq!(pty.wait_exit().exit_code(), 3, "{columns}x{rows}");
        assert!(pty.is_sane());
    }
}

#[test]
fn b40_without_colours_the_selection_is_seen_by_its_mark() {
    let home = Home::new();
    let script = "printf '\\033[31mred\\033[0m\\nlast line\\n'; exec sleep 1000";
    let pty = home.deck_with(&["run", "--name", "odd", "--", "sh", "-c", script], &[("NO_COLOR", "1")], 100, 30);
    pty.wait_text("last line");
    pty.wait_text("›  1 sh");
    let bytes = pty.bytes();
    let coloured = bytes.windows(5).any(|w| {
        matches!(w, [0x1b, b'[', b'3' | b'4' | b'9', b'0'..=b'7', b'm'] | [0x1b, b'[', b'3' | b'4', b'8', b';'])
    });
    assert!(!coloured, "a colour was set");
}

#[test]
fn b42_a_flood_is_drawn_at_most_thirty_times_a_second_in_whole_frames_that_scroll_nothing() {
    let home = Home::new();
    let script = "i=0; while :; do i=$((i+1)); echo flooded $i; done";
    let begun = Instant::now();
    let pty = home.deck(&["run", "--name", "flood", "--", "sh", "-c", script], 100, 30);
    let (begin, end) = (&b"\x1b[?2026h"[..], &b"\x1b[?2026l"[..]);
    wait_until("forty frames", || count(&pty.bytes(), end) >= 40);
    let bytes = pty.bytes();
    // However slow the machine is, there are not more frames than time for them; a few come before the first output.
    let most = begun.elapsed().as_millis() / 33 + 5;
    let frames = count(&bytes, end);
    assert!(frames as u128 <= most, "{frames} frames where {most} have room");
    // No frame begins inside of another one.
    let mut open = 0_i32;
    for at in 0..bytes.len() {
        let rest = &bytes[at..];
        open += i32::from(rest.starts_with(begin)) - i32::from(rest.starts_with(end));
        assert!((0..=1).contains(&open));
    }
    // A frame places cells: nothing scrolls, and the screen is cleared once, when it is taken.
    let first = bytes.windows(begin.len()).position(|w| w == begin).unwrap();
    assert!(!bytes[first..].iter().any(|b| matches!(b, b'\n' | b'\r' | 0x0b | 0x0c)), "a line feed");
    let sequences = String::from_utf8_lossy(&bytes).into_owned();
    for part in sequences.split("\x1b[").skip(1) {
        let last = part.chars().find(|c| ('\x40'..='\x7e').contains(c));
        assert!(!matches!(last, Some('S' | 'T' | 'L' | 'M' | 'r')), "it scrolls: {part:?}");
    }
    assert_eq!(count(&bytes[first + 1..], b"\x1b[2J"), 0, "cleared once");
    pty.keys("X");
    pty.wait_text("Stop the whole run?");
    pty.keys("y");
    home.wait_state("stopped");
}

/// In tmux frames are not marked: it repaints its whole pane after each that is.
#[test]
fn b42_inside_of_tmux_frames_are_differences_without_marks() {
    let home = Home::new();
    let script = "echo begun; until [ -e on ]; do sleep 0.05; done";
    let variables = [("TMUX", "/tmp/tmux-0/default,1,0")];
    let pty = home.deck_with(&["run", "--name", "nap", "--", "sh", "-c", script], &variables, 100, 30);
    pty.wait_text("begun");
    let before = pty.bytes().len();
    std::fs::write(home.path().join("on"), "").unwrap();
    pty.wait_text("the run is over");
    let bytes = pty.bytes();
    assert_eq!(count(&bytes, b"\x1b[?2026h"), 0);
    assert!(bytes.len() - before < 12_000, "{} bytes for the end of a run", bytes.len() - before);
}

#[test]
fn b43_a_copy_of_nothing_leaves_the_clipboard_alone() {
    let home = Home::new();
    let pty = home.deck(&["run", "--name", "mute", "--", "sh", "-c", "exec sleep 1000"], 100, 30);
    pty.wait_text("no output yet");
    pty.keys("y");
    pty.wait_text("there is nothing to copy");
    assert_eq!(count(&pty.bytes(), b"\x1b]52;"), 0);
    // The mouse is the terminal's until it is asked for, and its again after that.
    assert_eq!(count(&pty.bytes(), b"\x1b[?1000h"), 0);
    pty.keys("m");
    wait_until("the mouse is taken", || count(&pty.bytes(), b"\x1b[?1000h") == 1);
    pty.keys("m");
    wait_until("the mouse is given back", || count(&pty.bytes(), b"\x1b[?1000l") == 1);
}

/// A shell with jobs on a terminal, which runs this script; `$deck` is the program, on a run that goes on.
fn jobs(home: &Home, script: &str) -> Pty {
    home.subdeck(&["run", "--detach", "--", "sh", "-c", "echo hello from the child; exec sleep 1000"]);
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &format!("set -m; deck='{PROGRAM} attach @last'; {script}")]);
    command.cwd(home.path());
    command.env("HOME", home.path());
    command.env("SUBDECK_ROOT", home.path().join("root"));
    Pty::spawn(command, 80, 24)
}

#[test]
fn b31_a_deck_without_the_terminal_heeds_sigterm() {
    let home = Home::new();
    // It was suspended, and is continued only to be ended, which is how shells end a stopped job.
    let suspended = jobs(&home, "$deck; echo suspended; kill -TERM %1; bg %1; wait %1; echo ended with $?");
    suspended.wait_text("hello from the child");
    suspended.keys("\x1a");
    suspended.wait_text("ended with 143");
    // It never had the terminal.
    let stopped = "while ! grep -q ') T ' /proc/$!/stat; do :; done";
    let beside = jobs(&home, &format!("$deck & {stopped}; kill -TERM $!; bg %1; wait %1; echo ended with $?"));
    beside.wait_text("ended with 143");
    assert!(!beside.bytes().windows(8).any(|w| w == b"\x1b[?1049h"), "it took the screen of another job");
    assert!(home.subdeck(&["status", "@last"]).contains("running"));
    home.subdeck(&["stop", "@last", "--wait"]);
}

#[test]
fn b32_a_deck_that_was_put_into_the_background_comes_back_whole() {
    let home = Home::new();
    let stopped = "while ! grep -q ') T ' /proc/$!/stat; do :; done";
    let pty = jobs(&home, &format!("$deck & {stopped}; echo behind; fg %1; echo back at the shell"));
    pty.wait_text("hello from the child");
    let (behind, taken) = (b"behind".as_slice(), b"\x1b[?1049h".as_slice());
    let bytes = pty.bytes();
    let first = |part: &[u8]| bytes.windows(part.len()).position(|w| w == part).expect("it was written");
    assert!(first(behind) < first(taken), "it took the screen of another job");
    pty.keys("q");
    pty.keys("q");
    pty.wait_text("back at the shell");
    home.subdeck(&["stop", "@last", "--wait"]);
}
