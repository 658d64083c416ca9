//! The deck in trouble: sizes that nothing fits into, sizes that change while much arrives, keys before the first picture,
//! other programs on its terminal, a directory that goes away. The numbers are those of reports about other programs.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use support::Home;
use support::pty::{PATIENCE, Pty};

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
fn b38_no_size_is_too_small_and_any_size_that_comes_later_is_used() {
    let home = Home::new();
    let script = "echo 日本語 👩‍🔬 hello; exec sleep 1000";
    for (columns, rows) in [(0, 0), (1, 1), (5, 3), (20, 5)] {
        let mut pty = home.deck(&["run", "--name", "nap", "--", "sh", "-c", script], columns, rows);
        // Every key that draws something else, at this size.
        let keys = "vvvv2345671jkgGzz[]?E:E/xEsE+ExEXE&EWWFF!awE\t\t\tzzEEEEE";
        pty.keys(&keys.replace('E', "\x1b[27u"));
        pty.resize(80, 24);
        pty.wait_text("hello");
        pty.keys(&"E".repeat(4).replace('E', "\x1b[27u"));
        pty.wait_text("nap");
        pty.resize(columns, rows);
        pty.resize(120, 36);
        pty.wait_text("╭─ happening");
        pty.keys("X");
        pty.wait_text("End the whole run?");
        pty.keys("y");
        pty.wait_text("the run is over");
        pty.keys("q");
        assert_eq!(pty.wait_exit().exit_code(), 3, "{columns}x{rows}");
        assert!(pty.is_sane());
    }
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
         while [ ! -e $HOME/int ]; do sleep 0.05; done\nread answer\nexit 0\n",
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
    let pager = tool(&home, "#!/bin/sh\necho pager is up\nread answer\nexit 0\n");
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

/// The directory of the newest run.
fn run_dir(home: &Home) -> std::path::PathBuf {
    let runs = home.path().join("root/async-subagent-runs");
    let mut dirs: Vec<_> = std::fs::read_dir(runs).unwrap().map(|e| e.unwrap().path()).collect();
    dirs.retain(|d| d.join("status.json").exists());
    dirs.pop().unwrap()
}

#[test]
fn b60_the_last_picture_stays_when_the_directory_goes_and_the_exit_code_is_what_was_seen() {
    // Over when it went: with its own code. Not over: nobody knows, which is 7.
    for (script, seen, code) in
        [("exit 4", "the run is over", 1), ("echo hello from the child; exec sleep 1000", "hello from the child", 7)]
    {
        let home = Home::new();
        let mut pty = home.deck(&["run", "--name", "nap", "--", "sh", "-c", script], 100, 30);
        pty.wait_text(seen);
        // While it is being removed the runner may still write.
        let dir = run_dir(&home);
        wait_until("the directory is removed", || std::fs::remove_dir_all(&dir).is_ok() || !dir.exists());
        pty.wait_text("this is the last picture");
        if code == 7 {
            pty.wait_text("hello from the child");
        }
        pty.keys("q");
        assert_eq!(pty.wait_exit().exit_code(), code, "{}", pty.text());
        assert!(pty.is_sane());
        pty.wait_text("directory was removed");
    }
}

#[test]
fn b68_the_deck_stays_when_everything_has_failed_and_a_summary_follows_it() {
    let home = Home::new();
    let mut pty = home.deck(&["run", "--name", "bad", "--", "sh", "-c", "echo no >&2; exit 5"], 100, 30);
    pty.wait_text("the run is over");
    pty.wait_text("✗ failed");
    pty.keys("q");
    assert_eq!(pty.wait_exit().exit_code(), 1);
    assert!(pty.is_sane());
    pty.wait_for("the summary", |s| {
        !s.alternate_screen() && s.contents().contains("bad") && s.contents().contains("failed")
    });
}

/// A run whose child prints these bytes and goes on.
fn prints(home: &Home, text: &[u8], variables: &[(&str, &str)]) -> Pty {
    std::fs::write(home.path().join("text"), text).unwrap();
    let pty =
        home.deck_with(&["run", "--name", "odd", "--", "sh", "-c", "cat text; exec sleep 1000"], variables, 100, 30);
    pty.wait_text("last line");
    pty
}

#[test]
fn b1_a_sequence_without_an_end_hides_nothing_that_comes_after_its_line() {
    let home = Home::new();
    let mut text = b"first line\n\x1b]0;never ended".to_vec();
    text.extend_from_slice(&b"x".repeat(2 << 20));
    text.extend_from_slice(b"\n\x1bPnor this\nlast line\n");
    let pty = prints(&home, &text, &[]);
    pty.keys("z");
    pty.wait_text("[1 output]");
    assert!(pty.bytes().len() < 1 << 20, "a screen or two was drawn: {}", pty.bytes().len());
}

#[test]
fn b8_b9_b10_control_characters_tabs_and_clusters_break_no_frame() {
    let home = Home::new();
    let mut text = "a\0b\tc\u{1}d\r\nx\u{200b}y\n".as_bytes().to_vec();
    for cells in 0..100 {
        text.extend_from_slice(format!("{}👩‍🔬♻️🇩🇪e\u{301}日\n", "·".repeat(cells)).as_bytes());
    }
    text.extend_from_slice(b"last line\n");
    let pty = prints(&home, &text, &[]);
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty.keys("W");
    pty.wait_text("not wrapped");
    for _ in 0..5 {
        pty.keys("\x1b[5~");
        pty.wait_frame();
        pty.wait_for("whole frames", |screen| {
            let framed = screen.rows(0, 100).filter(|r| r.starts_with('│')).count();
            framed > 15 && screen.rows(0, 100).filter(|r| r.starts_with('│')).all(|r| r.ends_with('│'))
        });
    }
}

#[test]
fn b12_a_line_that_is_written_over_is_one_row() {
    let home = Home::new();
    let mut text = b"first line\n".to_vec();
    (0..100_000).for_each(|n| text.extend_from_slice(format!("\r{}%", n / 1000).as_bytes()));
    text.extend_from_slice(b"\nlast line\n");
    let pty = prints(&home, &text, &[]);
    pty.keys("z");
    pty.wait_for("one row of progress", |s| {
        let text = s.contents();
        text.contains("99%") && !text.contains("98%") && text.contains("first line")
    });
}

#[test]
fn b40_without_colours_the_selection_is_seen_by_its_mark() {
    let home = Home::new();
    let pty = prints(&home, b"\x1b[31mred\x1b[0m\nlast line\n", &[("NO_COLOR", "1")]);
    pty.wait_text("›  1 sh");
    let bytes = pty.bytes();
    let coloured = bytes.windows(5).any(|w| {
        matches!(w, [0x1b, b'[', b'3' | b'4' | b'9', b'0'..=b'7', b'm'] | [0x1b, b'[', b'3' | b'4', b'8', b';'])
    });
    assert!(!coloured, "a colour was set");
}

#[test]
fn b43_a_copy_of_nothing_leaves_the_clipboard_alone() {
    let home = Home::new();
    let pty = home.deck(&["run", "--name", "mute", "--", "sh", "-c", "exec sleep 1000"], 100, 30);
    pty.wait_text("no output yet");
    pty.keys("y");
    pty.wait_text("there is nothing to copy");
    assert!(!pty.bytes().windows(5).any(|w| w == b"\x1b]52;"));
}
