//! Runs of the real OpenCode, Gemini CLI, Qwen Code and Copilot CLI. `SUBDECK_REAL_AGENTS` names a folder with programs
//! of these names that need no arguments to find their model and their key; whichever is missing is skipped, with a
//! word about it. The model behind them is scripted: the last `[[scenario:NAME key=value]]` in what the user said decides
//! what it does. `text` answers at once; `bash secs=S` runs one shell command of S seconds, then answers; `multi secs=S
//! n=N` runs N of them, one a turn, then answers.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::PathBuf;

use support::{Done, Run, World, wait_for};

const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";

/// The agents that are there: their words and programs.
fn agents() -> Vec<(&'static str, PathBuf)> {
    let Some(folder) = std::env::var_os("SUBDECK_REAL_AGENTS").map(PathBuf::from) else {
        println!("skipped: SUBDECK_REAL_AGENTS names no folder with agents");
        return Vec::new();
    };
    let there = |word: &'static str| {
        let program = folder.join(word);
        if !program.exists() {
            println!("skipped: there is no {}", program.display());
            return None;
        }
        Some((word, program))
    };
    ["opencode", "gemini", "qwen", "copilot"].into_iter().filter_map(there).collect()
}

fn detach(world: &World, agent: &(&str, PathBuf), task: &str) -> Run {
    detach_with(world, agent, task, "allow")
}

fn detach_with(world: &World, (word, program): &(&str, PathBuf), task: &str, permission: &str) -> Run {
    // Qwen is told where its key is from by an argument.
    let args = if *word == "qwen" { ", args = [\"--auth-type\", \"openai\"]" } else { "" };
    let runner =
        format!("{{ type = \"{word}\", command = \"{}\", permission = \"{permission}\"{args} }}", program.display());
    let plan = world.file("plan.toml", &format!("[[step]]\nid = \"a\"\ntask = \"{task}\"\nrunner = {runner}\n"));
    let mut command = world.subdeck(&["run", "--detach", plan.to_str().unwrap()]);
    let done = Done::of(command.env("GEMINI_API_KEY", "dummy").output().unwrap());
    assert_eq!(done.code, 0, "{word}: {done:?}");
    world.run(done.stdout.trim())
}

fn wait_for_the_tool(run: &Run) {
    run.wait("the tool", |status| status["currentTool"].is_string());
}

fn log(run: &Run) -> String {
    std::fs::read_to_string(run.dir.join("output-0.log")).unwrap_or_default()
}

#[test]
fn a_message_in_the_middle_reaches_the_model() {
    for agent in agents() {
        let world = World::new();
        let run = detach(&world, &agent, "[[scenario:multi secs=5 n=3]] Run them.");
        wait_for_the_tool(&run);
        let done = world.output(&["steer", "--wait", run.id(), "[[scenario:text]] Enough."]);
        assert!(done.code == 0 && done.stderr.contains("delivered"), "{}: {done:?}", agent.0);
        assert_eq!(run.wait_end()["state"], "complete", "{}", agent.0);
        assert!(log(&run).contains(HELLO) && !log(&run).contains("round-3"), "{}: {}", agent.0, log(&run));
        world.wait_until_empty();
    }
}

#[test]
fn an_interrupted_agent_leaves_nothing_behind_and_goes_on_with_its_session() {
    for agent in agents() {
        let world = World::new();
        let run = detach(&world, &agent, "[[scenario:bash secs=60]] Take your time.");
        wait_for_the_tool(&run);
        wait_for("a process of the tool", || world.processes().len().checked_sub(3));
        assert_eq!(world.output(&["interrupt", run.id()]).code, 0, "{}", agent.0);
        assert_eq!(run.wait_end()["state"], "paused", "{}", agent.0);
        world.wait_until_empty();
        if agent.0 == "gemini" {
            // What it has of a session so early in its first turn is not always on disk yet.
            continue;
        }
        let mut command = world.subdeck(&["resume", run.id(), "[[scenario:text]] Go on.", "--no-tui"]);
        let done = Done::of(command.env("GEMINI_API_KEY", "dummy").output().unwrap());
        assert_eq!(done.code, 0, "{}: {done:?}", agent.0);
        assert!(done.stdout.contains(HELLO), "{}: {done:?}", agent.0);
        world.wait_until_empty();
    }
}

/// OpenCode asks for nothing that its own settings allow, so it is not among those that have to ask.
#[test]
fn a_permission_is_asked_for_and_the_answer_is_heeded() {
    for agent in agents().into_iter().filter(|agent| agent.0 != "opencode") {
        for (answer, allowed) in [("allow", true), ("deny", false)] {
            let world = World::new();
            let run = detach_with(&world, &agent, "[[scenario:bash secs=1]] Run it.", "ask");
            let open = |status: &serde_json::Value| status["steps"][0]["subdeck"]["questions"].clone();
            let status = run.wait("the question", |status| open(status).as_array().is_some_and(|all| all.len() == 1));
            println!("{}: {}", agent.0, open(&status));
            let done = world.output(&["answer", run.id(), answer, "--wait"]);
            assert_eq!(done.code, 0, "{} {answer}: {done:?}", agent.0);
            let status = run.wait_end();
            // What the command says is not passed on by all of them.
            let ran = run.events_of("tool_execution_end").iter().any(|event| event["isError"] == false);
            assert_eq!(ran, allowed, "{} {answer}: {}", agent.0, log(&run));
            println!("{} {answer}: {}", agent.0, status["state"]);
            assert!(run.events_of("subdeck.question.answered").iter().all(|event| event["by"] == "person"));
            world.wait_until_empty();
        }
    }
}
