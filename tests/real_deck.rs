//! The deck on a plan with all of the real agents at once: a pane for each, with what it does and what it used. What they
//! need is described in `tests/support/real.rs`.

#[path = "support/glass.rs"]
mod glass;
#[path = "support/real.rs"]
mod real;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use glass::deck;
use glass::pty::Pty;
use real::{Agent, agents, detach, end, wait};
use serde_json::Value;
use support::{Run, World};

const ALL: [&str; 7] = ["pi", "claude", "codex", "opencode", "gemini", "qwen", "copilot"];
/// Agents that tell what they cost.
const PRICED: [&str; 3] = ["pi", "claude", "opencode"];

/// A run of all of them side by side, and the deck on it, as a grid.
fn side_by_side(world: &World, there: &[Agent], task: &str) -> (Run, Pty) {
    let member = |agent: &Agent| {
        let more = if agent.word == "pi" { "" } else { ", permission = \"allow\"" };
        format!("  {{ id = \"{}\", task = {task:?}, runner = {} }},\n", agent.word, agent.runner(more))
    };
    let members: String = there.iter().map(member).collect();
    let run = detach(world, &format!("[[step]]\nconcurrency = {}\nparallel = [\n{members}]\n", there.len()));
    let pty = deck(world, &run, 200, 60);
    pty.wait_text("pi");
    pty.keys("v");
    (run, pty)
}

/// The line of a pane below its title, which says what its step does and what it used.
fn line(pty: &Pty, title: &str) -> Option<String> {
    let screen = pty.text();
    let rows: Vec<Vec<char>> = screen.lines().map(|row| row.chars().collect()).collect();
    let wanted: Vec<char> = title.chars().collect();
    let (at, column) = rows.iter().enumerate().find_map(|(at, row)| {
        let column = row.windows(wanted.len()).position(|cells| cells == wanted)?;
        Some((at, column))
    })?;
    // The title begins one cell after what stands below it.
    let below: String =
        rows.get(at + 1)?.iter().skip(column.checked_sub(1)?).take_while(|cell| **cell != '│').collect();
    Some(below)
}

/// Waits until the pane of each of them is as it is to be.
fn see(pty: &Pty, there: &[Agent], what: &str, accept: impl Fn(&Agent, &str) -> bool) {
    for (agent, n) in there.iter().zip(1..) {
        let title = format!("{n} {} ", agent.word);
        wait(&format!("{what} of {}", agent.word), || {
            let found = line(pty, &title).is_some_and(|line| accept(agent, &line));
            found.then_some(())
        });
    }
}

#[test]
fn every_agent_has_a_pane_with_its_tool_its_tokens_and_its_cost() {
    let there = agents(&ALL);
    if there.is_empty() {
        return;
    }
    let world = World::new();
    let (run, pty) = side_by_side(&world, &there, "[[scenario:bash secs=900]] Take your time.");
    let busy = |status: &Value| {
        let steps = status["steps"].as_array().unwrap();
        steps.iter().all(|step| step["currentTool"].is_string())
    };
    let status = wait("a tool in all of them", || Some(run.status()).filter(busy));
    println!("{}", pty.text());
    let tools: Vec<&str> =
        status["steps"].as_array().unwrap().iter().filter_map(|s| s["currentTool"].as_str()).collect();
    see(&pty, &there, "the tool", |agent, line| {
        let at = there.iter().position(|other| other.word == agent.word).unwrap();
        // A long name is cut.
        let tool: String = tools[at].chars().take(12).collect();
        line.contains(&tool) && line.contains("pytho") && line.contains("open ")
    });
    // What nobody told is a dash, and nothing is left out.
    see(&pty, &there, "tokens and cost", |_, line| {
        let (tokens, cost) = (line.contains(" tok "), line.contains('$') || line.contains("cost –"));
        tokens && cost
    });
    drop(pty);
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    world.wait_until_empty();
}

#[test]
fn what_each_used_stands_in_its_pane_when_it_is_done() {
    let there = agents(&ALL);
    if there.is_empty() {
        return;
    }
    let world = World::new();
    let (run, pty) = side_by_side(&world, &there, "[[scenario:bash secs=1]] Run it.");
    assert_eq!(end(&run)["state"], "complete");
    see(&pty, &there, "what it used", |agent, line| {
        let cost = if PRICED.contains(&agent.word) { line.contains("$0.") } else { line.contains("cost –") };
        let tokens =
            line.split_once(" tok").is_some_and(|(much, _)| much.ends_with(|c: char| c.is_ascii_digit() || c == 'k'));
        cost && tokens
    });
    drop(pty);
    world.wait_until_empty();
}
