//! Every action of the table, by its key, on the real program on a terminal. The match in `play` has no other arm, so an
//! action that is new has to be played too.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use subdeck::deck::actions::{Action, TABLE, row};
use subdeck::deck::model::Tab;
use support::pty::{PATIENCE, Pty};
use support::{ESCAPE, Home, bytes};

/// Two agents that play slowly and a command that has printed much, side by side; one more agent after them.
const PLAN: &str = r#"
name = "keys"

[attention]
tool_open = "1s"

[[step]]
parallel = [
  { id = "look", agent = "scout", runner = { type = "demo", script = "default" }, task = "Look around" },
  { id = "talk", label = "talk", runner = { type = "external-cli", command = "sh", args = ["talk.sh"] } },
  { id = "work", agent = "worker", runner = { type = "demo", script = "default" }, task = "Work" },
]

[[step]]
id = "last"
agent = "reviewer"
runner = { type = "demo", script = "default" }
task = "Review what was done"
"#;

const TALK: &str = "i=0; while [ $i -lt 300 ]; do echo line $i of the talk; i=$((i+1)); done\n\
                    for i in 1 2 3 4 5; do echo the same again; done\n\
                    printf 'a gap\\033]52;c;UFdO\\007 here\\n'\n\
                    printf 'a long line '; printf '%0300d' 0; echo; echo the talk is over; exec sleep 1000\n";

struct Stage {
    home: Home,
    pty: Pty,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        home.file("plan.toml", PLAN);
        home.file("talk.sh", TALK);
        home.file("README.md", "what the agent reads\n");
        let tool = home.file(
            "tool.sh",
            "#!/bin/sh\nprintf '%s\\n' \"$PWD\" \"$@\" > \"$HOME/tool.out.new\"\nmv \"$HOME/tool.out.new\" \"$HOME/tool.out\"\n",
        );
        // A pager is given the log on its input.
        let pager = home.file(
            "pager.sh",
            "#!/bin/sh\ncat > \"$HOME/tool.out.new\"\nmv \"$HOME/tool.out.new\" \"$HOME/tool.out\"\n",
        );
        let variables =
            [("SUBDECK_DEMO_SPEED", "0.05"), ("PAGER", &pager), ("EDITOR", &tool), ("VISUAL", &tool), ("SHELL", &tool)];
        let pty = home.deck_with(&["run", "plan.toml"], &variables, 120, 36);
        pty.wait_text("talk");
        // One or two by then: both agents have a tool open.
        pty.wait_text(" YOU  step 1 look");
        Self { home, pty }
    }

    /// Presses the best key of an action.
    fn press(&self, action: Action) {
        self.pty.keys(&bytes(row(action).unwrap().keys[0]));
    }

    fn sees(&self, text: &str) {
        self.pty.wait_text(text);
    }

    fn goes(&self, text: &str) {
        self.pty.wait_gone(text);
    }

    fn escape(&self) {
        self.pty.keys(ESCAPE);
    }

    /// Back to the list with the first step selected.
    fn rest(&self) {
        self.press(Action::First);
        self.sees("╭─ 1 look ");
    }

    /// The command that has printed much, on the whole screen.
    fn zoom_talk(&self) {
        self.press(Action::Down);
        self.sees("╭─ 2 talk ");
        self.press(Action::Zoom);
        self.sees("[1 output]");
        self.sees("the talk is over");
    }

    fn leave_zoom(&self) {
        self.press(Action::Follow);
        self.sees("▼ following");
        self.escape();
        self.goes("[1 output]");
        self.rest();
    }

    /// What the tool of the person was given.
    fn tool(&self) -> String {
        let path = self.home.path().join("tool.out");
        let deadline = Instant::now() + PATIENCE;
        while !path.exists() {
            assert!(Instant::now() < deadline, "the tool never ran; the screen is\n{}", self.pty.text());
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let given = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        given
    }

    fn wait_more(&self, part: &[u8], than: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.pty.count(part) <= than {
            assert!(Instant::now() < deadline, "never written: {:?}", String::from_utf8_lossy(part));
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// Whether an action ends the run or the deck, so that it has a stage of its own.
const fn ends(action: Action) -> bool {
    matches!(action, Action::Interrupt | Action::StopStep | Action::StopRun | Action::Retry | Action::Quit)
}

/// Does it and looks at what comes of it. The stage is as it was afterwards: the list, the first step selected.
fn play(stage: &Stage, action: Action) {
    match action {
        Action::Down => {
            stage.press(action);
            stage.sees("╭─ 2 talk ");
            stage.rest();
        }
        Action::Up => {
            stage.press(Action::Down);
            stage.sees("╭─ 2 talk ");
            stage.press(action);
            stage.sees("╭─ 1 look ");
        }
        Action::Last => {
            stage.press(action);
            stage.sees("╭─ 4 last ");
            stage.sees("waits for steps 1, 2 and 3");
            stage.rest();
        }
        Action::First => {
            stage.press(Action::Last);
            stage.sees("╭─ 4 last ");
            stage.press(action);
            stage.sees("╭─ 1 look ");
        }
        Action::Left => {
            stage.press(action);
            stage.sees("▸ 1 look +2");
            // The members stand in the pane, which is that of the group.
            stage.sees("─ group of steps 1-3 ─");
            stage.sees("   2 talk ");
            stage.sees("── 1 look ──");
            stage.press(Action::Right);
            stage.goes("▸ 1 look +2");
            stage.sees("╭─ 1 look ");
        }
        Action::Right => {
            stage.press(Action::Left);
            stage.sees("▸ 1 look +2");
            stage.press(action);
            stage.goes("▸ 1 look +2");
        }
        // Here there is none; how one is entered and left is shown where there is one (tests/fleet.rs).
        Action::Inside => {
            stage.press(action);
            stage.sees("no run was started in this one");
        }
        Action::NextPane => {
            stage.press(action);
            stage.sees("╭─›1 look ");
            stage.press(action);
            stage.sees("╭─›happening ");
            stage.press(action);
            stage.sees("╭─›steps ");
        }
        Action::Back => {
            stage.press(Action::NextPane);
            stage.sees("╭─›1 look ");
            stage.press(action);
            stage.sees("╭─›steps ");
        }
        Action::HalfUp | Action::PageUp => {
            stage.zoom_talk();
            stage.press(action);
            stage.sees("f follow");
            stage.goes("a long line");
            stage.leave_zoom();
        }
        Action::HalfDown | Action::PageDown => {
            stage.zoom_talk();
            stage.press(Action::First);
            stage.sees("line 0 of the talk");
            stage.press(action);
            stage.goes("line 0 of the talk");
            stage.leave_zoom();
        }
        Action::Zoom => {
            stage.press(action);
            stage.sees("[1 output]");
            stage.press(action);
            stage.goes("[1 output]");
        }
        Action::Open => {
            stage.press(action);
            stage.sees("[1 output]");
            stage.press(Action::Tab(Tab::Tools));
            stage.sees("[2 tools");
            stage.sees("bash ls");
            stage.press(action);
            stage.sees("╭─ call of bash");
            stage.sees("command: ls");
            stage.escape();
            stage.goes("╭─ call of bash");
            stage.press(Action::Tab(Tab::Output));
            stage.sees("[1 output]");
            stage.leave_zoom();
        }
        Action::Tab(tab) => {
            stage.press(action);
            stage.sees(&format!("[{} {}", 1 + Tab::ALL.iter().position(|t| *t == tab).unwrap(), tab.name()));
            stage.sees(match tab {
                Tab::Output => "I was asked: Look around",
                Tab::Tools => "bash ls",
                Tab::Transcript => "task",
                Tab::Budget => "cache read",
                Tab::Changes => "the folder is in no git repository",
                Tab::Events => "started",
            });
            stage.press(Action::Tab(Tab::Output));
            stage.sees("[1 output]");
            stage.leave_zoom();
        }
        Action::PreviousStep | Action::NextStep => {
            stage.press(Action::Zoom);
            stage.sees("[1 output]");
            stage.press(Action::NextStep);
            stage.sees(" 2 talk  ");
            stage.sees("the talk is over");
            stage.press(Action::PreviousStep);
            stage.sees(" 1 look  ");
            stage.leave_zoom();
        }
        Action::View => {
            stage.press(action);
            stage.sees("╭─›1 look ● running");
            stage.press(action);
            stage.sees("│ 2 talk ●");
            stage.press(action);
            stage.sees("┬▶  4 last ○");
            stage.press(action);
            stage.sees("╭─›steps ");
        }
        Action::Follow => {
            stage.zoom_talk();
            stage.press(Action::PageUp);
            stage.sees("f follow");
            stage.press(action);
            stage.sees("▼ following");
            stage.leave_zoom();
        }
        Action::Freeze => {
            stage.press(action);
            stage.sees("FROZEN");
            stage.press(action);
            stage.goes("FROZEN");
        }
        Action::Wrap => {
            stage.zoom_talk();
            stage.press(action);
            stage.sees("not wrapped");
            stage.press(action);
            stage.goes("not wrapped");
            stage.leave_zoom();
        }
        Action::Fold => {
            stage.zoom_talk();
            stage.sees("… 4 more times");
            stage.press(action);
            stage.sees("not folded");
            stage.goes("… 4 more times");
            stage.press(action);
            stage.sees("… 4 more times");
            stage.leave_zoom();
        }
        Action::Filter => {
            stage.press(action);
            stage.pty.keys("talk");
            stage.sees("& talk: ");
            stage.goes("3 work  ●");
            stage.escape();
            stage.sees("3 work  ●");
            stage.rest();
        }
        Action::Search | Action::SearchNext | Action::SearchPrevious => {
            stage.zoom_talk();
            stage.press(Action::Search);
            stage.pty.keys("line 1\r");
            stage.sees("111/111");
            stage.press(Action::SearchNext);
            stage.sees("110/111");
            stage.press(Action::SearchPrevious);
            stage.sees("111/111");
            stage.leave_zoom();
            // In all steps, from one that does not have it.
            stage.press(Action::Search);
            stage.pty.keys("\x15line 299\t");
            stage.sees("in all steps / line 299");
            stage.pty.keys("\r");
            stage.sees("in step 2 talk");
            stage.press(Action::Search);
            stage.pty.keys("\t");
            stage.goes("in all steps");
            stage.escape();
            stage.press(Action::Follow);
            stage.sees("the talk is over");
            stage.rest();
        }
        Action::Replay => {
            // A run that goes on is not played; one that is over is in tests/deck_replay.rs.
            stage.press(action);
            stage.sees("the run is not over yet");
        }
        Action::Slower | Action::Faster | Action::Seek(_) | Action::SkipIdle => {
            stage.press(action);
            stage.sees("nothing is played; P plays a run that is over again");
        }
        Action::Steer => {
            stage.press(action);
            stage.sees("╭─ steer ");
            stage.sees("[x] 1 look");
            stage.pty.keys("\x03");
            stage.goes("╭─ steer ");
            // What is typed for a step that takes no message is a draft and no keys.
            stage.press(Action::Down);
            stage.sees("╭─ 2 talk ");
            stage.press(action);
            stage.pty.keys("xyXyqs");
            stage.sees("cannot be sent: step 2 cannot be steered");
            stage.sees("xyXyqs");
            stage.pty.keys("\x13");
            stage.sees("─ steer ");
            stage.escape();
            stage.sees("draft kept");
            stage.press(action);
            stage.sees("xyXyqs");
            stage.pty.keys("\x03");
            stage.goes("─ steer ");
            stage.rest();
        }
        Action::SteerAll => {
            stage.press(action);
            stage.sees("[x] all 2 running");
            stage.pty.keys("\x03");
            stage.goes("╭─ steer ");
        }
        Action::Raise => {
            stage.press(action);
            stage.sees("╭─ raise a budget ");
            stage.escape();
            stage.goes("╭─ raise a budget ");
        }
        Action::TakeBack => {
            stage.press(Action::Last);
            stage.sees("╭─ 4 last ");
            stage.press(Action::Steer);
            stage.sees("╭─ steer ");
            stage.pty.keys("Look at the pool too.\x13");
            stage.sees("u take back");
            stage.press(action);
            stage.goes("u take back");
            stage.rest();
        }
        Action::NextAttention => {
            stage.press(Action::Down);
            stage.sees("╭─ 2 talk ");
            stage.press(action);
            stage.goes("╭─ 2 talk ");
            stage.rest();
        }
        Action::Why => {
            stage.press(action);
            stage.sees("why step 1 look needs you");
            stage.escape();
            stage.goes("why step 1 look needs you");
        }
        Action::Acknowledge => {
            stage.press(action);
            stage.sees("acknowledge → step 1 done");
        }
        Action::Reveal => {
            // There and back; what it shows has tests of its own.
            stage.press(action);
            stage.press(action);
            stage.sees("╭─›steps ");
        }
        Action::Answer => {
            // Agents that ask have tests of their own.
            stage.press(action);
            stage.sees("no agent asks anything");
        }
        Action::Copy => {
            let before = stage.pty.count(b"\x1b]52;c;");
            stage.press(action);
            stage.wait_more(b"\x1b]52;c;", before);
            stage.sees("sent to the terminal's clipboard");
        }
        Action::CopySession => {
            // Plain commands have no session; that of an agent is copied in tests/deck_questions.rs.
            stage.press(action);
            stage.sees("has no command that goes on with its session");
        }
        Action::Pager => {
            stage.press(Action::Down);
            stage.sees("╭─ 2 talk ");
            stage.press(action);
            let given = stage.tool();
            assert!(given.starts_with("line 0 of the talk\n") && given.ends_with("the talk is over\n"), "{given}");
            // Nothing in it acts on the terminal.
            assert!(given.contains("a gap") && !given.chars().any(|c| c.is_control() && c != '\n'), "{given:?}");
            stage.sees("╭─›steps ");
            stage.rest();
        }
        Action::Editor => {
            // No tool has named a path yet, which is said; a path is opened in tests/deck_control.rs.
            stage.press(action);
            stage.sees("no tool of this step named a path yet");
        }
        Action::Shell => {
            stage.press(action);
            let folder = std::fs::canonicalize(stage.home.path()).unwrap();
            assert_eq!(stage.tool().trim(), folder.to_string_lossy());
            stage.sees("╭─›steps ");
        }
        Action::Mouse => {
            let before = stage.pty.count(b"\x1b[?1000h");
            stage.press(action);
            stage.wait_more(b"\x1b[?1000h", before);
            stage.sees("the mouse is the deck's");
            // A click on the third row, and a turn of the wheel over the list.
            let text = stage.pty.text();
            let third = |l: &str| l.contains("3 work") && l.contains('●') && !l.contains('╭');
            let row = 1 + text.lines().position(third).unwrap();
            stage.pty.keys(&format!("\x1b[<0;20;{row}M\x1b[<0;20;{row}m"));
            stage.sees("╭─ 3 work ");
            stage.pty.keys(&format!("\x1b[<64;20;{row}M"));
            stage.sees("╭─ 2 talk ");
            let before = stage.pty.count(b"\x1b[?1000l");
            stage.press(action);
            stage.wait_more(b"\x1b[?1000l", before);
            stage.sees("the mouse is yours");
            stage.rest();
        }
        Action::Repaint => {
            let before = stage.pty.count(b"\x1b[2J");
            stage.press(action);
            stage.wait_more(b"\x1b[2J", before);
            stage.sees("╭─›steps ");
        }
        Action::Palette => {
            stage.press(action);
            stage.sees("╭─ commands ");
            stage.pty.keys("freeze\r");
            stage.sees("FROZEN");
            stage.press(Action::Freeze);
            stage.goes("FROZEN");
        }
        Action::Help => {
            stage.press(action);
            stage.sees("╭─ keys ");
            stage.escape();
            stage.goes("╭─ keys ");
        }
        Action::Suspend => {
            stage.press(action);
            stage.pty.wait_for("the normal screen", |s| !s.alternate_screen());
            let pid = Pid::from_raw(i32::try_from(stage.pty.pid()).unwrap()).unwrap();
            let state = || std::fs::read_to_string(format!("/proc/{}/stat", stage.pty.pid())).unwrap_or_default();
            let deadline = Instant::now() + PATIENCE;
            while cfg!(target_os = "linux") && !state().contains(") T ") {
                assert!(Instant::now() < deadline, "it is not stopped: {}", state());
            }
            kill_process(pid, Signal::CONT).unwrap();
            stage.sees("╭─›steps ");
        }
        Action::Interrupt => {
            stage.press(action);
            stage.sees("press i again");
            stage.press(action);
            stage.home.wait_state("paused");
            stage.sees("the run is paused");
        }
        Action::StopStep => {
            stage.press(Action::Down);
            stage.sees("╭─ 2 talk ");
            stage.press(action);
            stage.sees("Stop step 2 talk");
            stage.pty.keys("y");
            stage.sees("■ stopped");
            stage.home.wait_state("running");
        }
        Action::StopRun => {
            stage.press(action);
            stage.sees("Stop the whole run?");
            stage.pty.keys("y");
            stage.sees("the run is over");
            stage.home.wait_state("stopped");
        }
        Action::Retry => {
            stage.press(Action::StopRun);
            stage.sees("Stop the whole run?");
            stage.pty.keys("y");
            stage.sees("the run is over");
            stage.press(action);
            stage.sees("Do 4 steps again");
            stage.pty.keys("y");
            stage.sees("goes on from");
            stage.sees("● running");
        }
        Action::Quit => {
            stage.press(action);
            stage.sees("3 children are alive");
            stage.pty.keys("l");
            stage.home.wait_state("running");
        }
    }
}

#[test]
fn every_action_that_leaves_the_run_as_it_is_does_what_its_key_says() {
    let stage = Stage::new();
    for action in TABLE.iter().map(|row| row.action).filter(|action| !ends(*action) && !notes(*action)) {
        play(&stage, action);
    }
}

/// Whether an action is about what needs a person, which is so only while the first calls are open.
const fn notes(action: Action) -> bool {
    matches!(action, Action::NextAttention | Action::Why | Action::Acknowledge)
}

#[test]
fn every_action_about_what_needs_a_person_does_what_its_key_says() {
    for action in [Action::NextAttention, Action::Why, Action::Acknowledge] {
        let stage = Stage::new();
        stage.sees("step 1 look");
        play(&stage, action);
    }
}

#[test]
fn every_action_that_ends_something_does_what_its_key_says() {
    for action in TABLE.iter().map(|row| row.action).filter(|action| ends(*action)) {
        play(&Stage::new(), action);
    }
}
