//! Recorded output of the real Claude Code 2.1.332, and what a person reads in it.

use subdeck::run::StepPhase;

use super::recordings::{DONE, OK, Recording, all, code, signal};

const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";
const COMMAND: &str = "I will run a shell command.";
const BASH: &str = "Final answer for scenario bash: all done.";
const WRITE: &str = "Final answer for scenario write: all done.";
const INTERRUPTED: (StepPhase, i32, Option<&str>) = (StepPhase::Failed, 1, Some("the agent was interrupted"));
const E500: &str = "API Error: 500 scripted server error. This is a server-side issue, usually temporary — try again in a \
    moment. If it persists, check your inference gateway (127.0.0.1:18777).";
const E529: &str = "API Error: 529 scripted overload. This is a server-side issue, usually temporary — try again in a \
    moment. If it persists, check your inference gateway (127.0.0.1:18777).";
const LOST: &str = "API Error: Connection lost mid-response. The response above may be incomplete.";

const ONE: (u64, u64, u64) = (1200, 57, 6600);
const TWO: (u64, u64, u64) = (2400, 114, 13200);

/// Named like their files, without the version.
pub fn claude_recordings() -> Vec<Recording> {
    let failed = |code, error| (StepPhase::Failed, code, Some(error));
    let one = |name, exit, tools, text, usage, end| all(name, exit, None, tools, text, usage, end);
    vec![
        one("claude-bash", OK, &[("Bash", Some(true))], Some(BASH), TWO, DONE),
        one(
            "claude-err401",
            signal(9),
            &[],
            None,
            (0, 0, 0),
            failed(1, "Subagent process terminated by signal SIGKILL."),
        ),
        one("claude-err500", code(1), &[], None, (0, 0, 0), failed(1, E500)),
        one("claude-err529-maxretries2", code(1), &[], None, (0, 0, 0), failed(1, E529)),
        one("claude-fail", OK, &[("Bash", Some(false))], Some("Final answer for scenario fail: all done."), TWO, DONE),
        one(
            "claude-max-budget",
            code(1),
            &[("Bash", Some(true)), ("Bash", Some(false))],
            Some("Round 2."),
            TWO,
            failed(1, "error max budget usd: Reached maximum budget ($0.01)"),
        ),
        one("claude-no-bypass", OK, &[("Write", Some(false))], Some(WRITE), TWO, DONE),
        one(
            "claude-parallel",
            OK,
            &[("Bash", Some(true)), ("Bash", Some(true))],
            Some("Final answer for scenario parallel: all done."),
            TWO,
            DONE,
        ),
        one("claude-pg-sigint-tool", OK, &[("Bash", Some(false))], Some(COMMAND), ONE, INTERRUPTED),
        one("claude-read", OK, &[("Read", Some(true))], Some("Final answer for scenario read: all done."), TWO, DONE),
        one("claude-sid-new", OK, &[("Bash", Some(true))], Some(BASH), TWO, DONE),
        one(
            "claude-sid-resume-missing",
            code(1),
            &[],
            None,
            (0, 0, 0),
            failed(1, "No conversation found with session ID: 33333333-3333-4333-8333-333333333333"),
        ),
        one("claude-sid-resume", OK, &[], Some(HELLO), ONE, DONE),
        one("claude-sigint-text", OK, &[], Some("word0 word1 word2 word3 word4 word5 "), (1200, 12, 5700), INTERRUPTED),
        one("claude-sigint-tool", OK, &[("Bash", Some(false))], Some(COMMAND), ONE, INTERRUPTED),
        // Without a result and without partial messages nothing says what was used.
        one(
            "claude-sigkill-tool",
            signal(9),
            &[("Bash", None)],
            Some(COMMAND),
            (0, 0, 0),
            failed(1, "Subagent process terminated by signal SIGKILL."),
        ),
        one(
            "claude-sigterm-tool",
            code(143),
            &[("Bash", Some(false))],
            Some(COMMAND),
            (0, 0, 0),
            failed(143, "exited with code 143"),
        ),
        one("claude-sj-close-early", OK, &[("Bash", Some(true))], Some(BASH), TWO, DONE),
        one("claude-sj-control", code(1), &[], None, (0, 0, 0), failed(1, "exited with code 1")),
        one("claude-sj-interrupt-text", OK, &[], Some(HELLO), (2400, 67, 12260), DONE),
        one("claude-sj-interrupt-tool", OK, &[("Bash", Some(false))], Some(HELLO), TWO, DONE),
        one("claude-sj-partial", OK, &[("Bash", Some(true))], Some(BASH), TWO, DONE),
        one("claude-sj-permission-allow", OK, &[("Write", Some(true))], Some(WRITE), TWO, DONE),
        one("claude-sj-permission-deny", OK, &[("Write", Some(false))], Some(WRITE), TWO, DONE),
        one(
            "claude-sj-steer-later",
            OK,
            &[("Bash", Some(true)), ("Bash", Some(true))],
            Some(HELLO),
            (4800, 228, 26400),
            DONE,
        ),
        one("claude-sj-steer", OK, &[("Bash", Some(true))], Some(HELLO), TWO, DONE),
        one("claude-sj-text", OK, &[], Some(HELLO), ONE, DONE),
        one("claude-stdin-open", OK, &[], Some(HELLO), ONE, DONE),
        one("claude-stdin-prompt", OK, &[], Some(HELLO), ONE, DONE),
        // Its sub-agent used two more calls and had a tool of its own.
        one(
            "claude-task",
            OK,
            &[("Agent", Some(true))],
            Some("Final answer for scenario task: all done."),
            (6000, 285, 33000),
            DONE,
        ),
        one("claude-text", OK, &[], Some(HELLO), ONE, DONE),
        one("claude-think", OK, &[], Some("Thought about it: 42."), ONE, DONE),
        one("claude-truncated", code(1), &[], Some("This sentence will be cut"), (4800, 32, 22480), failed(1, LOST)),
    ]
}
