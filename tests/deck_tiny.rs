//! Every action of the table, by its key, where nothing can be seen of what it does: on terminals without room, and while
//! the size of the terminal changes fifty times in a second and a child prints ten thousand lines in it. The deck takes
//! each key and answers, and then has its whole picture of a run that is as it was.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use subdeck::deck::actions::{Action, TABLE};
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, bytes};

/// A command that has said what it had to say and then needs a person, and one that prints as the test wants.
const PLAN: &str = r#"
name = "tiny"

[attention]
idle = "1s"

[[step]]
parallel = [
  { id = "calm", runner = { type = "external-cli", command = "sh", args = ["calm.sh"] } },
  { id = "loud", runner = { type = "external-cli", command = "sh", args = ["loud.sh"] } },
]
"#;

const CALM: &str = "echo hello from the calm one; exec sleep 1000\n";
/// Some fifteen thousand lines a second: a fiftieth of a second is slept after each four hundred.
const FLOOD: &str =
    "i=0; while :; do i=$((i+1)); echo \"line $i 日本 of many\"; [ $((i % 400)) = 0 ] && sleep 0.02; done\n";

const TAKES_MOUSE: &[u8] = b"\x1b[?1000h";
const GIVES_MOUSE: &[u8] = b"\x1b[?1000l";
/// The sizes of a terminal that is pulled about.
const SIZES: [(u16, u16); 10] =
    [(120, 36), (80, 24), (50, 14), (20, 5), (5, 3), (1, 1), (200, 60), (30, 8), (119, 20), (61, 15)];

struct Stage {
    home: Home,
    pty: Pty,
    /// The size is changed while something is waited for: when it was last, and how often so far.
    pulls: bool,
    pulled: u32,
    since: Instant,
}

impl Stage {
    fn new(loud: &str) -> Self {
        let home = Home::new();
        home.file("plan.toml", PLAN);
        home.file("calm.sh", CALM);
        home.file("loud.sh", loud);
        let tool = home.file("tool.sh", "#!/bin/sh\ntouch \"$HOME/tool.out\"\n");
        let pager = home.file("pager.sh", "#!/bin/sh\ncat > /dev/null\ntouch \"$HOME/tool.out\"\n");
        let variables = [("PAGER", &*pager), ("EDITOR", &tool), ("VISUAL", &tool), ("SHELL", &tool)];
        let pty = home.deck_with(&["run", "plan.toml"], &variables, 80, 24);
        pty.wait_text("hello from the calm one");
        pty.wait_text("▲ attention");
        Self { home, pty, pulls: false, pulled: 0, since: Instant::now() }
    }

    /// Waits for it; meanwhile the terminal is pulled about, when it is to be.
    fn wait(&mut self, what: &str, mut is: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is(self) {
            assert!(Instant::now() < deadline, "never: {what}; the screen is\n{}", self.pty.text());
            if self.pulls && self.since.elapsed() >= Duration::from_millis(20) {
                let (columns, rows) = SIZES[self.pulled as usize % SIZES.len()];
                self.pty.resize(columns, rows);
                (self.pulled, self.since) = (self.pulled + 1, Instant::now());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Presses a key, and waits until the terminal was told one more time what only this key makes it told.
    fn press_for(&mut self, keys: &str, part: &[u8]) {
        let before = self.pty.count(part);
        self.pty.keys(keys);
        self.wait(&format!("an answer to {keys:?}"), |stage| stage.pty.count(part) > before);
    }

    /// Proves that every key so far was taken: the one that takes the mouse is answered at any size.
    fn answers(&mut self) {
        self.press_for("m", TAKES_MOUSE);
        self.press_for("m", GIVES_MOUSE);
    }

    /// Has the terminal at this size, and the deck drawing for it.
    fn resize(&mut self, columns: u16, rows: u16) {
        let before = self.pty.count(b"\x1b[2J");
        self.pty.resize(columns, rows);
        self.wait("a picture for the new size", |stage| stage.pty.count(b"\x1b[2J") > before);
    }

    /// Presses the best key of an action, and everything after it that leads back to how it was. Nothing is confirmed.
    fn play(&mut self, action: Action, key: &str) {
        match action {
            Action::Mouse => {
                self.press_for(key, TAKES_MOUSE);
                self.press_for(key, GIVES_MOUSE);
            }
            // The terminal belongs to somebody else until it is the deck's again.
            Action::Pager | Action::Shell => {
                let tool = self.home.path().join("tool.out");
                self.press_for(key, b"\x1b[?1049h");
                std::fs::remove_file(tool).expect("the tool ran");
            }
            Action::Suspend => {
                let before = self.pty.count(b"\x1b[?1049l");
                self.pty.keys(key);
                self.wait("the normal screen", |stage| stage.pty.count(b"\x1b[?1049l") > before);
                let stat = format!("/proc/{}/stat", self.pty.pid());
                let stopped = || std::fs::read_to_string(&stat).unwrap_or_default().contains(") T ");
                self.wait("a stopped deck", |_| cfg!(not(target_os = "linux")) || stopped());
                let taken = self.pty.count(b"\x1b[?1049h");
                let pid = Pid::from_raw(i32::try_from(self.pty.pid()).unwrap()).unwrap();
                kill_process(pid, Signal::CONT).unwrap();
                self.wait("the screen of the deck", |stage| stage.pty.count(b"\x1b[?1049h") > taken);
            }
            // What the same key undoes.
            Action::Freeze | Action::Wrap | Action::Fold | Action::Reveal => self.pty.keys(&key.repeat(2)),
            _ => self.pty.keys(key),
        }
        // Out of what it opened, and to the first step with its output followed and its group unfolded.
        self.pty.keys(&format!("{}g\x1b[Cf", ESCAPE.repeat(5)));
        self.answers();
    }

    /// The whole picture of the run as it was, for a terminal of the usual size.
    fn wait_as_before(&mut self, after: &str) {
        self.pulls = false;
        self.pty.resize(100, 30);
        self.resize(80, 24);
        self.wait(&format!("the whole picture, after {after}"), |stage| {
            let text = stage.pty.text();
            let rows: Vec<&str> = text.lines().collect();
            let framed: Vec<&&str> = rows.iter().filter(|row| row.starts_with('│')).collect();
            let width = |row: &str| subdeck::text::SafeText::line(row).width();
            rows.len() == 24
                && rows[0].contains("● running")
                && rows.iter().any(|r| r.starts_with("╭─›steps ") && r.ends_with('╮') && width(r) == 80)
                && framed.len() > 10
                && framed.iter().all(|r| r.ends_with('│') && width(r) == 80)
                && ["›┌ 1 calm", "2 loud", "╭─ 1 calm ", "hello from the calm one"]
                    .iter()
                    .all(|part| text.contains(part))
                && !["FROZEN", "End ", "alive", "commands ─", "keys ─"].iter().any(|part| text.contains(part))
        });
        let status = self.home.subdeck(&["status", "@last"]);
        assert!(status.contains("running") && !status.contains("paused"), "after {after}: {status}");
    }

    /// What reached the run: that its need was seen, which is all that is not asked about.
    fn run_is_as_before(&self) {
        const OWN: [&str; 6] =
            ["run_started", "group_started", "step_started", "attempt_started", "child_spawned", "attention_raised"];
        let told = self.home.subdeck(&["events", "@last"]);
        let (seen, other): (Vec<&str>, Vec<&str>) = told
            .lines()
            .filter(|line| !OWN.iter().any(|kind| line.contains(kind)))
            .partition(|line| line.contains(" attention_acknowledged "));
        assert!(!seen.is_empty() && other.is_empty(), "{told}");
        assert_eq!(told.matches(" step_started").count(), 2, "{told}");
    }
}

fn every_action_at(columns: u16, rows: u16) {
    let mut stage = Stage::new("echo the loud one is quiet; exec sleep 1000\n");
    for row in TABLE {
        stage.resize(columns, rows);
        stage.play(row.action, &bytes(row.keys[0]));
        stage.wait_as_before(row.name);
    }
    stage.run_is_as_before();
}

#[test]
fn every_action_on_a_terminal_without_cells_leaves_a_deck_that_answers_and_a_run_as_it_was() {
    every_action_at(0, 0);
}

#[test]
fn every_action_on_a_terminal_of_one_cell_leaves_a_deck_that_answers_and_a_run_as_it_was() {
    every_action_at(1, 1);
}

#[test]
fn every_action_on_a_terminal_of_fifteen_cells_leaves_a_deck_that_answers_and_a_run_as_it_was() {
    every_action_at(5, 3);
}

#[test]
fn every_action_while_the_size_changes_fifty_times_a_second_and_ten_thousand_lines_arrive_in_it() {
    let mut stage = Stage::new(FLOOD);
    stage.wait("the flood", |stage| stage.pty.text().contains("of many"));
    stage.pulls = true;
    for row in TABLE {
        stage.play(row.action, &bytes(row.keys[0]));
    }
    // Also when all of that took less than a second.
    stage.wait("fifty changes", |stage| stage.pulled >= 50);
    stage.wait_as_before("all of them");
    stage.run_is_as_before();
    // Nothing that was printed meanwhile is lost.
    stage.home.subdeck(&["stop", "@last", "--wait"]);
    let log = stage.home.subdeck(&["logs", "@last:2"]);
    let lines = log.lines().filter(|line| line.starts_with("line ") && line.ends_with(" of many"));
    let mut last = 0;
    for (n, line) in lines.enumerate() {
        assert_eq!(line, format!("line {} 日本 of many", n + 1));
        last = n + 1;
    }
    assert!(last >= 10_000, "{last} lines");
}
