//! Looking for a text on the real program on a terminal: `/`, `n` and `N` in the tabs that are not output, the count in
//! the title, smart case, all steps, and what opens from there; and matches in very long lines of output.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::process::Command;

use support::pty::Pty;
use support::{ESCAPE, Home};

fn git(home: &Home, arguments: &[&str]) {
    let status = Command::new("git")
        .arg("-C")
        .arg(home.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success(), "{arguments:?}");
}

/// The demonstration after it has ended, in a folder with a file that changed since its last commit, with the step on the
/// whole screen that mends that file.
fn mended(home: &Home) -> Pty {
    std::fs::create_dir(home.path().join("tests")).unwrap();
    home.file(".gitignore", "/root\n/.*\n");
    home.file("tests/tide.rs", "fn rollover() {\n    let now = Clock::system().now();\n}\n");
    git(home, &["init", "-q"]);
    git(home, &["add", "."]);
    git(home, &["commit", "-qm", "first"]);
    home.file("tests/tide.rs", "fn rollover() {\n    let now = Clock::fixed(NOON).now();\n}\n");
    let pty = home.deck(&["demo", "--speed", "100"], 120, 36);
    pty.wait_text("leaves and prints the summary");
    pty.keys("gjj");
    pty.wait_text("╭─ 3 mend the test ");
    pty.keys("z");
    pty.wait_text("[1 output]");
    pty
}

#[test]
fn calls_are_searched_with_their_arguments_and_results_and_the_one_found_is_opened() {
    let home = Home::new();
    let pty = mended(&home);
    pty.keys("2");
    pty.wait_text("[2 tools");
    // Who follows the newest looks for what has been.
    pty.keys("/tide\r");
    pty.wait_text("5/5  5 of 5");
    pty.keys("n");
    pty.wait_text("4/5  4 of 5");
    pty.keys("N");
    pty.wait_text("5/5  5 of 5");
    pty.keys("N");
    pty.wait_text("no more of \"tide\" below; n looks the other way");
    // Only its result has it: what opens begins there.
    pty.keys("nnnn");
    pty.wait_text("it is in what is not shown of this entry; enter shows all of it");
    pty.wait_text("1/5  1 of 5");
    pty.keys("\r");
    pty.wait_text("╭─ call of grep");
    pty.wait_text(" 1/1 ");
    pty.keys("/main\r");
    pty.wait_text("src/main.rs:18");
    pty.wait_text(" 1/1 ");
    pty.keys("/nowhere\r");
    pty.wait_text("nothing found");
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ call of grep");
    // Capitals are meant.
    pty.keys("/tIDE\r");
    pty.wait_text("nothing found: \"tIDE\" is nowhere in this tab");
    pty.keys("/clock\r");
    pty.wait_text("/2  ");
}

#[test]
fn what_was_said_and_what_happened_is_searched_also_in_all_steps() {
    let home = Home::new();
    let pty = mended(&home);
    pty.keys("3");
    pty.wait_text("[3 transcript]");
    pty.keys("/twenty runs\r");
    pty.wait_text("2/2");
    pty.keys("n");
    pty.wait_text("1/2");
    // Another tab is looked through from its newest entry on.
    pty.keys("6");
    pty.wait_text("[6 events");
    pty.keys("/edit\r");
    pty.wait_text("● edit tests/tide.rs");
    pty.wait_text("1/1  10 of 15");
    // Another step's page is the only one that has this.
    pty.keys("2");
    pty.wait_text("[2 tools");
    pty.keys("/docs/design");
    pty.keys("\t");
    pty.wait_text("in all steps / docs/design");
    pty.keys("\r");
    pty.wait_text("in step 2 scout the docs");
    pty.wait_text("1/1");
}

#[test]
fn changes_and_budgets_tell_where_one_is_are_searched_and_open_what_they_name() {
    let home = Home::new();
    let pty = mended(&home);
    pty.keys("5");
    pty.wait_text("[5 changes]");
    pty.wait_text("+    let now = Clock::fixed(NOON).now();");
    pty.wait_text("line 1 of ");
    pty.keys("\r");
    pty.wait_text("there is nothing to open on this line");
    pty.keys("jj");
    pty.wait_text("line 3 of ");
    pty.keys("g");
    pty.wait_text("line 1 of ");
    pty.keys("/NOON\r");
    pty.wait_text("1/1  line ");
    pty.keys("\r");
    pty.wait_text("╭─ tests/tide.rs ");
    pty.wait_text(" 1/1 ");
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ tests/tide.rs ");
    // Of the line that names the file, too.
    pty.keys("g/edit\r");
    pty.wait_text("1/1  line ");
    pty.keys("\r");
    pty.wait_text("╭─ tests/tide.rs ");
    pty.wait_text("edit  it worked");
    pty.keys(ESCAPE);
    pty.wait_gone("╭─ tests/tide.rs ");
    pty.keys("4");
    pty.wait_text("[4 budget]");
    pty.keys("/warning reached\r");
    pty.wait_text("1/1  line ");
    pty.keys("\r");
    pty.wait_text("╭─ event of ");
    pty.wait_text("subdeck.budget.reached");
    pty.keys(ESCAPE);
    pty.keys("1");
    pty.wait_text("[1 output]");
    pty.keys("\r");
    pty.wait_text("an output has nothing to open");
}

#[test]
fn a_match_behind_pieces_of_a_very_long_line_is_in_sight_and_whoever_went_elsewhere_searches_from_there() {
    let home = Home::new();
    // The log is cut at every 64 KiB of a line without an end; the match is the first thing behind such a cut.
    let script = "echo before; head -c 131072 /dev/zero | tr '\\0' y; echo NEEDLE$((8 + 8))zz; echo after";
    let pty = home.deck(&["run", "--name", "long", "--", "sh", "-c", script], 100, 30);
    pty.wait_text("the run is over");
    pty.keys("z/needle16\r");
    pty.wait_text("NEEDLE16");
    pty.wait_text(" 1/1 ");
    pty.keys("g");
    pty.wait_text("before");
    pty.wait_gone("NEEDLE16");
    pty.keys("n");
    pty.wait_text("no more of \"needle16\" above; N looks the other way");
    pty.keys("N");
    pty.wait_text("NEEDLE16");
    // While the match can be seen it is where the search goes on.
    pty.keys("N");
    pty.wait_text("no more of \"needle16\" below; n looks the other way");
    pty.keys("k");
    pty.keys("n");
    pty.wait_text("no more of \"needle16\" above; N looks the other way");
}
