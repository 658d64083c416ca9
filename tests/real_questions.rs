//! What real agents ask, answered by a person: from the deck, and from the command line. What they need is described in
//! `tests/support/real.rs`.

#[path = "support/glass.rs"]
mod glass;
#[path = "support/real.rs"]
mod real;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use glass::deck;
use real::{ALL_DONE, Agent, HELLO, agent, agents, asked, detach, end, subdeck, wait};
use support::{Done, Run, World};

/// Agents that ask for permissions over their protocol. OpenCode asks for nothing that its own settings allow, and Codex
/// works in its sandbox.
const ASK: [&str; 4] = ["claude", "gemini", "qwen", "copilot"];
const TASK: &str = "[[scenario:bash secs=1]] Run it.";

/// How the only call of the run ended, and what the agent said at last.
fn outcome(run: &Run) -> (&'static str, String) {
    let ends = run.events_of("tool_execution_end");
    assert_eq!(ends.len(), 1, "{ends:?}");
    let failed = ends[0]["isError"] == true;
    let status = run.status();
    assert_eq!(status["state"], "complete", "{status:#}");
    let log = std::fs::read_to_string(run.dir.join("output-0.log")).unwrap();
    (if failed { "refused" } else { "allowed" }, log)
}

/// An answer was heeded: the call ran or was refused, and the model went on and answered either way.
fn check(world: &World, agent: &Agent, run: &Run, answer: &str, via: &str) {
    end(run);
    let (call, log) = outcome(run);
    let expected = if answer == "allow" { "allowed" } else { "refused" };
    assert_eq!(call, expected, "{} by {via}: {log}", agent.word);
    assert!(log.contains(ALL_DONE), "{} by {via}: {log}", agent.word);
    let answers = run.events_of("subdeck.question.answered");
    assert_eq!(answers.len(), 1, "{} by {via}: {answers:?}", agent.word);
    assert_eq!((&answers[0]["by"], &answers[0]["source"]["via"]), (&"person".into(), &via.into()), "{answers:?}");
    world.wait_until_empty();
}

#[test]
fn a_permission_is_answered_from_the_command_line() {
    for agent in agents(&ASK) {
        for answer in ["allow", "deny"] {
            let world = World::new();
            let run = agent.detach(&world, TASK, "");
            let question = asked(&run);
            assert_eq!(question["kind"], "permission", "{}: {question:#}", agent.word);
            assert!(question["text"].as_str().unwrap().contains("time.sleep(1)"), "{}: {question:#}", agent.word);
            let done = world.output(&["answer", run.id(), answer, "--wait"]);
            assert_eq!(done.code, 0, "{} {answer}: {done:?}", agent.word);
            check(&world, &agent, &run, answer, "cli");
        }
    }
}

#[test]
fn a_permission_is_answered_in_the_deck() {
    for agent in agents(&ASK) {
        for (key, answer) in [("y", "allow"), ("n", "deny")] {
            let world = World::new();
            let run = agent.detach(&world, TASK, "");
            asked(&run);
            let pty = deck(&world, &run, 140, 40);
            pty.wait_text("1 NEEDS YOU");
            pty.wait_text("May it use");
            pty.keys("A");
            pty.wait_text(&format!("step 1 {} asks", agent.word));
            pty.keys(key);
            pty.wait_gone(&format!("step 1 {} asks", agent.word));
            drop(pty);
            check(&world, &agent, &run, answer, "deck");
        }
    }
}

/// With nobody to ask, the run pauses and says what was asked; it goes on where somebody can be asked.
#[test]
fn a_headless_run_says_what_was_asked_and_can_be_gone_on_with() {
    for agent in agents(&ASK) {
        let world = World::new();
        let plan = world.file("plan.toml", &agent.step(TASK, "", ""));
        let done = Done::of(subdeck(&world, &["run", "--no-tui", plan.to_str().unwrap()]).output().unwrap());
        assert_eq!(done.code, 9, "{}: {done:?}", agent.word);
        assert!(
            done.stderr.contains("May it use") && done.stderr.contains("time.sleep(1)"),
            "{}: {done:?}",
            agent.word
        );
        world.wait_until_empty();
        let id = world.only_run().id().to_owned();
        let resume = ["resume", &id, "[[scenario:text]] Go on.", "--no-tui"];
        let done = Done::of(subdeck(&world, &resume).output().unwrap());
        assert!(done.code == 0 && done.stdout.contains(HELLO), "{}: {done:?}", agent.word);
        world.wait_until_empty();
    }
}

/// The pi that can ask its supervisor, and its step: `SUBDECK_REAL_PI_SUPERVISOR` names the extension of pi-subagents
/// 0.49 that its children get (`subagent-prompt-runtime.ts`). The scenario `supervisor` of the model calls
/// `contact_supervisor` for a decision on "Which shard?", then answers.
fn asker(world: &World) -> Option<Run> {
    let agent = agent("pi")?;
    let Ok(extension) = std::env::var("SUBDECK_REAL_PI_SUPERVISOR") else {
        println!("skipped: SUBDECK_REAL_PI_SUPERVISOR names no extension");
        return None;
    };
    let step = format!("system_prompt = \"You ask.\"\nextensions = [{extension:?}]");
    let run = detach(world, &agent.step("[[scenario:supervisor]] Ask.", "", &step));
    let question = asked(&run);
    assert_eq!((&question["text"], &question["kind"]), (&"Which shard?".into(), &"text".into()), "{question:#}");
    Some(run)
}

fn check_reply(world: &World, run: &Run, reply: &str, via: &str) {
    let status = end(run);
    assert_eq!(status["state"], "complete", "{status:#}");
    let ends = run.events_of("tool_execution_end");
    assert!(ends[0]["isError"] == false && ends[0]["result"].to_string().contains(reply), "{ends:?}");
    let answered = run.events_of("subdeck.question.answered");
    assert_eq!((&answered[0]["by"], &answered[0]["source"]["via"]), (&"person".into(), &via.into()), "{answered:?}");
    world.wait_until_empty();
}

#[test]
fn a_question_to_the_supervisor_is_answered_with_a_text_from_the_command_line() {
    for (args, reply) in [(&["the left one"][..], "the left one"), (&["--dismiss"][..], "does not answer")] {
        let world = World::new();
        let Some(run) = asker(&world) else { return };
        let done = world.output(&[&["answer", run.id(), "--wait"], args].concat());
        assert_eq!(done.code, 0, "{done:?}");
        check_reply(&world, &run, reply, "cli");
    }
}

#[test]
fn a_question_to_the_supervisor_is_answered_with_a_text_in_the_deck() {
    let world = World::new();
    let Some(run) = asker(&world) else { return };
    let pty = deck(&world, &run, 140, 40);
    pty.wait_text("Which shard?");
    pty.keys("A");
    pty.wait_text("step 1 pi asks");
    pty.keys("the right one");
    pty.wait_text("the right one");
    pty.keys("\r");
    pty.wait_gone("step 1 pi asks");
    drop(pty);
    check_reply(&world, &run, "the right one", "deck");
}

/// The scenario `person` calls `AskUserQuestion` with the question "Which colour?" and the options Red and Blue; where the
/// model does not know it, there is nothing to see.
#[test]
fn a_question_of_claude_is_answered_with_a_choice() {
    let Some(claude) = agent("claude") else { return };
    if std::env::var_os("SUBDECK_REAL_QUESTIONS").is_none() {
        println!("skipped: SUBDECK_REAL_QUESTIONS does not say that the model knows the scenario `person`");
        return;
    }
    let world = World::new();
    let run = claude.detach(&world, "[[scenario:person]] Ask.", "");
    let question = asked(&run);
    assert_eq!((&question["kind"], &question["text"]), (&"choice".into(), &"Which colour?".into()), "{question:#}");
    let done = world.output(&["answer", run.id(), "blue", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    check_reply(&world, &run, "Blue", "cli");
    wait("no question", || {
        run.status()["steps"][0]["subdeck"]["questions"].as_array().is_none_or(Vec::is_empty).then_some(())
    });
}
