//! The deck as a person has it: the real program on a terminal.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home};

fn signal(pty: &Pty, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pty.pid()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn one_stream_of_the_output_is_shown_searched_and_left_again() {
    let home = Home::new();
    let script = "echo fine one; echo BAD one >&2; echo fine two; echo BAD two >&2; exec sleep 1000";
    let pty = home.deck(&["run", "--name", "both", "--", "sh", "-c", script], 120, 36);
    pty.keys("z");
    pty.wait_for("both streams", |s| s.contents().contains("BAD one") && s.contents().contains("fine one"));
    pty.keys("&");
    pty.wait_for("standard error only", |s| {
        let text = s.contents();
        text.contains("stderr only") && text.contains("err│ BAD one") && !text.contains("fine one")
    });
    pty.keys("/one\r");
    pty.wait_text("1/1");
    pty.keys("&");
    pty.wait_for("all but standard error", |s| {
        let text = s.contents();
        text.contains("without stderr") && text.contains("fine one") && !text.contains("BAD one")
    });
    pty.keys("/bad\r");
    pty.wait_text("is nowhere in what is shown of this output");
    pty.keys("&");
    pty.wait_for("both streams", |s| {
        let text = s.contents();
        !text.contains("without stderr") && text.contains("BAD one") && text.contains("fine one")
    });
    pty.keys("n");
    pty.wait_text("2/2");
}

#[test]
fn a_locale_of_ascii_gets_ascii_and_a_terminal_without_colours_none_unless_one_says_so() {
    let home = Home::new();
    drop(home.run(80, 24));
    let sees = |variables: &[(&str, &str)]| {
        let pty = home.deck_with(&["attach", "@last"], variables, 80, 24);
        pty.wait_text("hello from the child");
        let bytes = pty.bytes();
        let text = String::from_utf8_lossy(&bytes);
        let styles =
            text.split("\x1b[").filter_map(|part| part.split_once('m')).flat_map(|(style, _)| style.split(';'));
        let colours = styles.filter_map(|number| number.parse::<u8>().ok()).any(|n| matches!(n, 31..=38 | 91..=97));
        (bytes.is_ascii(), colours)
    };
    assert_eq!(sees(&[("LC_ALL", "C.UTF-8")]), (false, true));
    assert_eq!(sees(&[("LC_ALL", "C")]), (true, true));
    assert_eq!(sees(&[("LC_ALL", "C"), ("SUBDECK_ASCII", "false")]), (false, true));
    assert_eq!(sees(&[("LC_ALL", "C"), ("TERM", "vt100")]), (true, false));
    assert_eq!(sees(&[("LC_ALL", "C.UTF-8"), ("TERM", "vt100"), ("SUBDECK_THEME", "dark")]), (false, true));
}

#[test]
fn a_run_is_watched_left_and_found_again() {
    let home = Home::new();
    let mut pty = home.run(120, 36);
    pty.wait_for("the run's header", |s| s.contents().contains("nap") && s.contents().contains("running"));
    pty.wait_text("err│ oops");
    pty.keys("q");
    pty.wait_text("1 child is alive");
    pty.keys("l");
    assert!(pty.wait_exit().success());
    assert!(pty.is_sane(), "{}", pty.text());

    let mut again = home.deck(&["attach", "@last"], 80, 24);
    again.wait_text("hello from the child");
    again.keys("z");
    again.wait_text("[1 output]");
    again.keys("\x1b");
    again.wait_gone("[1 output]");
    again.keys("x");
    again.wait_text("Stop step 1");
    again.keys("y");
    again.wait_text("the run is over");
    again.keys("q");
    again.wait_exit();
    assert!(again.is_sane());
    home.wait_state("stopped");
}

#[test]
fn stop_everything_leaves_when_all_have_ended() {
    let home = Home::new();
    let mut pty = home.run(100, 30);
    pty.keys("q");
    pty.wait_text("stop everything");
    pty.keys("X");
    pty.wait_text("╭─ stop");
    pty.keys("y");
    pty.wait_exit();
    assert!(pty.is_sane());
    home.wait_state("stopped");
}

/// A terminal that does not mark what is pasted gives it as keys, all at once.
#[test]
fn keys_that_come_all_at_once_end_nothing() {
    let home = Home::new();
    let pty = home.run(100, 30);
    for (burst, sign) in [("Xy", "╭─ stop"), ("xyyyy", "╭─ stop"), ("qXy", "╭─ leave the deck")] {
        pty.keys(burst);
        pty.wait_text(sign);
        pty.keys(ESCAPE);
        pty.wait_gone(sign);
    }
    pty.keys("ii");
    pty.wait_text("press i again");
    assert!(home.subdeck(&["status", "@last"]).contains("running"));
    assert!(!home.subdeck(&["events", "@last"]).contains("control"), "nothing was asked for");
}

#[test]
fn every_size_is_drawn() {
    let home = Home::new();
    let pty = home.run(120, 36);
    pty.resize(50, 14);
    pty.wait_for("the narrow shape", |s| !s.contents().contains('╭') && s.contents().contains("nap"));
    pty.resize(20, 5);
    pty.wait_text("enlarge me");
    pty.resize(1, 1);
    pty.resize(80, 24);
    pty.wait_for("the stacked shape", |s| s.contents().contains("╭─›steps"));
    pty.keys("v");
    pty.wait_gone("╭─›steps");
    pty.keys("?");
    pty.wait_text("╭─ keys");
}

#[test]
fn a_killed_deck_leaves_the_run_alive_and_another_deck_shows_it() {
    let home = Home::new();
    let mut pty = home.run(120, 36);
    signal(&pty, Signal::KILL);
    pty.wait_exit();
    home.wait_state("running");
    let again = home.deck(&["attach", "@last"], 120, 36);
    again.wait_text("hello from the child");
}

#[test]
fn a_message_that_cannot_be_sent_says_why_in_the_composer() {
    let home = Home::new();
    let pty = home.deck(&["demo", "--speed", "0.2"], 120, 36);
    pty.wait_text("● running");
    pty.keys("s");
    pty.wait_text("╭─ steer");
    pty.keys("\u{13}");
    pty.wait_text("there is nothing to send yet");
}

#[test]
fn suspending_gives_the_terminal_back_and_takes_it_again() {
    let home = Home::new();
    let pty = home.run(80, 24);
    for _ in 0..2 {
        pty.keys("\x1a");
        pty.wait_for("the normal screen", |s| !s.alternate_screen() && !s.hide_cursor());
        let deadline = Instant::now() + PATIENCE;
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pty.pid())).unwrap_or_default();
        while cfg!(target_os = "linux") && !state().contains(") T ") {
            assert!(Instant::now() < deadline, "it is not stopped: {}", state());
        }
        signal(&pty, Signal::CONT);
        pty.wait_for("the deck again", |s| s.alternate_screen() && s.contents().contains("hello from the child"));
    }
    pty.keys("?");
    pty.wait_text("╭─ keys");
}

#[test]
fn a_child_cannot_drive_the_terminal() {
    let home = Home::new();
    let script = r"printf '\033]52;c;ZXZpbA==\007\033]0;evil title\007\033[2J\033[?1000h\033P+q544e\033\\\2335n'; echo survived; sleep 1000";
    let pty = home.deck(&["run", "--name", "evil\x1b]0;x\x07", "--", "sh", "-c", script], 100, 30);
    pty.wait_text("survived");
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty.wait_frame();
    let bytes = pty.bytes();
    // Its text stands in the command that is shown too.
    for forbidden in [&b"\x1b]52;c;"[..], b"\x1b]0;evil title", b"\x1b[?1000h", b"\x1bP+q544e", b"\x9b5n"] {
        assert!(!bytes.windows(forbidden.len()).any(|w| w == forbidden), "{}", String::from_utf8_lossy(forbidden));
    }
}

#[test]
fn a_step_that_prints_no_line_feed_is_not_said_to_be_silent() {
    let home = Home::new();
    // Its own words are on the screen too, and are not to be taken for what it prints.
    let script = "for n in 1 2; do printf \"progress $n\\\\r\"; done; sleep 1000";
    let pty = home.deck(&["run", "--name", "bar", "--", "sh", "-c", script], 100, 30);
    // In the list as in the output beside it.
    pty.wait_for("its state in two places", |s| s.contents().matches("progress 2").count() == 2);
    assert!(!pty.text().contains("no output yet"));
    pty.keys("X");
    pty.wait_text("Stop the whole run?");
    pty.keys("y");
    home.wait_state("stopped");
}

#[test]
fn a_match_among_lines_that_come_again_is_in_sight() {
    let home = Home::new();
    let script = "yes same | head -n 9000; echo NEEDLE; yes same | head -n 9000; echo needle2";
    let pty = home.deck(&["run", "--name", "same", "--", "sh", "-c", script], 100, 30);
    pty.wait_text("the run is over");
    let sees = |place: &str, line: &str, text: &str| {
        pty.wait_for(place, |s| {
            let shown = s.contents();
            let in_log = shown.lines().any(|row| row.trim_matches([' ', '│']) == text);
            shown.contains(place) && shown.contains(line) && in_log
        });
    };
    pty.keys("z/needle\r");
    sees(" 2/2 ", "line 18,002 of 18,002", "needle2");
    pty.keys("n");
    sees(" 1/2 ", "line 9,001 of 18,002", "NEEDLE");
    pty.keys("N");
    sees(" 2/2 ", "line 18,002 of 18,002", "needle2");
}

#[test]
fn of_what_is_too_long_for_a_clipboard_the_beginning_is_copied_and_said_to_be_that() {
    let home = Home::new();
    let script = "for n in 1 2 3 4 5 6 7 8; do echo line $n; head -c 20000 /dev/zero | tr '\\0' y; echo; done";
    let pty = home.deck(&["run", "--name", "long", "--", "sh", "-c", script], 100, 30);
    pty.wait_text("the run is over");
    // Not wrapped, all of it is visible, as far as the screen is wide; what is copied are whole lines.
    pty.keys("W");
    pty.wait_text("line 1");
    pty.wait_text("line 8");
    pty.keys("y");
    pty.wait_text("the first 100 kB sent to the terminal's clipboard, which takes no more");
    assert_eq!(pty.count(b"\x1b]52;c;"), 1);
}

#[test]
fn a_flood_leaves_the_deck_quick() {
    let home = Home::new();
    let pty = home.deck(&["run", "--name", "flood", "--", "sh", "-c", "yes flooded; sleep 1000"], 100, 30);
    pty.wait_text("flooded");
    pty.keys("?");
    pty.wait_text("╭─ keys");
    pty.keys("q");
    pty.wait_gone("╭─ keys");
    pty.keys("X");
    pty.wait_text("Stop the whole run?");
    pty.keys("y");
    home.wait_state("stopped");
}

#[test]
fn the_whole_output_is_searched() {
    let home = Home::new();
    let script = "echo the needle; i=0; while [ $i -lt 3000 ]; do echo hay $i; i=$((i+1)); done";
    let pty = home.deck(&["run", "--name", "stack", "--", "sh", "-c", script], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("z/Needle\r");
    pty.wait_text("is nowhere in this output");
    pty.wait_for("the count", |s| s.contents().contains("nothing found  "));
    pty.keys("/needle\r");
    pty.wait_text("the needle");
    pty.wait_text(" 1/1 ");
    // Of many the newest is shown first, and the numbers follow the matches.
    pty.keys("/hay 2\r");
    pty.wait_text("/1,111 ");
    pty.keys("G");
    pty.wait_text(" end ─");
    pty.keys("/hay 2\r");
    pty.wait_text(" 1,111/1,111 ");
    pty.keys("n");
    pty.wait_text(" 1,110/1,111 ");
    pty.keys("N");
    pty.wait_text(" 1,111/1,111 ");
    pty.keys("N");
    pty.wait_text("no more of");
    pty.keys("G");
    pty.wait_text("hay 2999");
}

#[test]
fn the_mouse_is_taken_from_the_start_where_the_configuration_says_so() {
    for (value, taken) in [("true", true), ("false", false)] {
        let home = Home::new();
        let file = home.path().join(".config/subdeck/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("[ui]\nmouse = {value}\n")).unwrap();
        let mut pty = home.deck(&["run", "--name", "short", "--", "echo", "done already"], 80, 24);
        pty.wait_text("the run is over");
        let mode = b"\x1b[?1000h";
        assert_eq!(pty.bytes().windows(mode.len()).any(|w| w == mode), taken);
        pty.keys("q");
        pty.wait_exit();
        assert!(pty.is_sane());
    }
}

#[test]
fn a_quiet_deck_writes_nothing() {
    let home = Home::new();
    let mut pty = home.deck(&["run", "--name", "short", "--", "echo", "done already"], 80, 24);
    pty.wait_text("the run is over");
    pty.wait_text("done already");
    pty.keys("?");
    pty.wait_text("jk scroll");
    pty.wait_frame();
    let before = pty.bytes().len();
    // A time, because it is the absence of something that is waited for.
    std::thread::park_timeout(Duration::from_millis(1500));
    assert_eq!(pty.bytes().len(), before, "no clock runs, so nothing is drawn");
    pty.keys("q");
    pty.wait_gone("╭─ keys");
    pty.keys("q");
    assert!(pty.wait_exit().success());
}

#[test]
fn a_task_is_shown_as_it_was_handed_over_and_its_file_is_nobody_elses() {
    let home = Home::new();
    let plan = r#"
[[step]]
id = "seed"
runner = { type = "external-cli", command = "echo", args = ["seed-42"] }

[[step]]
id = "use"
runner = { type = "external-cli", command = "cat" }
task = "Use {previous} now\n{outputs.seed} once more"
"#;
    std::fs::write(home.path().join("plan.toml"), plan).unwrap();
    let pty = home.deck(&["run", "plan.toml"], 120, 36);
    pty.wait_text("the run is over");
    pty.keys("G3");
    pty.wait_text("[3 transcript]");
    pty.wait_text("Use seed-42 now");
    pty.wait_text("seed-42 once more");
    pty.keys("g\r");
    pty.wait_text("─ task of step 2 ");
    // What is open can be copied, and what the keys are at too.
    pty.keys("y");
    pty.wait_text("2 lines sent to the terminal's clipboard");
    let runs = std::fs::read_dir(home.path().join("root/async-subagent-runs")).unwrap();
    let asked = runs.map(|run| run.unwrap().path().join("subdeck/asked-1.txt")).find(|path| path.exists()).unwrap();
    assert_eq!(std::fs::read_to_string(&asked).unwrap(), "Use seed-42 now\nseed-42 once more");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(asked).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
