//! Runs of the real pi: groups, limits, the death of the runner. What they need is described in `tests/support/real.rs`;
//! interrupts and stops are tried by `tests/real-agents/seven.py`, its questions in `tests/real_questions.rs`.
//! `SUBDECK_REAL_MODEL_LOG`, if set, names the file to which the model writes the user's last words of every request.

#[path = "support/real.rs"]
mod real;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::time::{Duration, Instant};

use real::{Agent, agent, end};
use support::{Run, World, signal, wait_for};

/// After the death of the runner nothing may live longer than this.
const GONE: Duration = Duration::from_secs(5);

/// Starts a run; the plan's steps are of pi where they do not say otherwise.
fn detach(world: &World, pi: &Agent, plan: &str) -> Run {
    let plan = world.file("plan.toml", plan);
    let mut command = world.subdeck(&["run", "--detach", plan.to_str().unwrap()]);
    let done = support::Done::of(command.env("PI_SUBAGENT_PI_BINARY", &pi.program).output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.run(done.stdout.trim())
}

/// A step that works for a minute.
const LONG: &str = "[[step]]\nid = \"long\"\ntask = \"[[scenario:bash secs=60]] Take your time.\"\n";

/// Waits until the agent's tool runs as a process of its own; returns its pid.
fn wait_for_the_tool(world: &World, run: &Run) -> u32 {
    run.wait("the tool", |s| s["currentTool"] == "bash");
    wait_for("the tool's process", || {
        world.processes().into_iter().find(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            command.contains("sleep(60)") && !command.contains("subdeck")
        })
    })
}

/// Whether a process exists that has not ended; one that nobody has collected yet has.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_group_and_a_step_complete_and_a_message_in_the_middle_reaches_the_model() {
    let Some(pi) = agent("pi") else { return };
    let world = World::new();
    let run = detach(
        &world,
        &pi,
        r#"
        [[step]]
        parallel = [
          { id = "short", task = "[[scenario:bash secs=3]] Run it." },
          { id = "rounds", task = "[[scenario:multi secs=2 n=3]] Run them." },
        ]
        [[step]]
        id = "last"
        task = "[[scenario:text]] Sum up: {previous}"
        "#,
    );
    let at = |status: &serde_json::Value, step: usize| status["steps"][step]["currentTool"].clone();
    run.wait("both tools at once", |s| at(s, 0) == "bash" && at(s, 1) == "bash");
    let words = format!("mention bananas of {}", run.id());
    let done = world.output(&["steer", &format!("{}:rounds", run.id()), &words, "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait("the delivery", |s| s["steering"]["delivered"] == 1);
    assert_eq!(status["steps"][1]["status"], "running", "it was told while it worked");
    assert_eq!(run.events_of("subagent.steer.delivered").len(), 1);
    let status = end(&run);
    assert_eq!(status["state"], "complete", "{status}");
    for (step, tools) in [(0, 1), (1, 3), (2, 0)] {
        assert_eq!(status["steps"][step]["status"], "complete");
        assert_eq!(status["steps"][step]["toolCount"], tools, "step {step}");
        assert_eq!(at(&status, step), serde_json::Value::Null, "step {step}");
        assert!(status["steps"][step]["tokens"]["input"].as_u64().unwrap() > 0, "step {step}");
    }
    if let Some(log) = std::env::var_os("SUBDECK_REAL_MODEL_LOG") {
        let log = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
        assert!(log.lines().any(|line| line.contains(&words)), "the model got the message");
        let summed = log.lines().any(|line| line.contains("Sum up: ") && line.contains("Parallel Task 2"));
        assert!(summed, "the last step got what the group said");
    }
    world.wait_until_empty();
}

#[test]
fn the_death_of_the_runner_ends_the_agent_and_its_tool() {
    let Some(pi) = agent("pi") else { return };
    let world = World::new();
    let run = detach(&world, &pi, LONG);
    let tool = wait_for_the_tool(&world, &run);
    let begin = Instant::now();
    signal(run.runner_pid(), "-KILL");
    wait_for("the end of all processes", || world.processes().is_empty().then_some(()));
    assert!(begin.elapsed() < GONE, "{:?}", begin.elapsed());
    println!("all gone after {:?}", begin.elapsed());
    assert!(!lives(tool), "{}", std::fs::read_to_string(format!("/proc/{tool}/stat")).unwrap_or_default());
    assert_eq!(end(&run)["state"], "failed");
    assert_eq!(world.output(&["wait", run.id()]).code, 7);
}

#[test]
fn a_tool_that_takes_too_long_is_told_then_ended_with_its_process() {
    let Some(pi) = agent("pi") else { return };
    let world = World::new();
    let plan = "[[step]]\nid = \"slow\"\ntask = \"[[scenario:bash secs=60]] Run it.\"\ntool_timeout = \"3s\"\n\
        attention = { tool_open = \"1s\" }\n";
    let run = detach(&world, &pi, plan);
    run.wait("the notice", |s| s["steps"][0]["activityState"] == "needs_attention");
    let status = end(&run);
    let step = &status["steps"][0];
    assert_eq!((&step["status"], &step["timedOut"]), (&"failed".into(), &true.into()), "{step}");
    assert_eq!(step["error"], "Tool 'bash' timed out after 3000ms.");
    assert_eq!(world.output(&["wait", run.id()]).code, 5);
    world.wait_until_empty();
}

#[test]
fn an_agent_that_used_its_turns_is_told_and_ended_once_its_tool_is() {
    let Some(pi) = agent("pi") else { return };
    let world = World::new();
    let plan = "[[step]]\nid = \"rounds\"\ntask = \"[[scenario:multi secs=2 n=9]] Run them.\"\n\
        budget = { turns = { max = 1, grace = 0 } }\n[[step]]\nid = \"next\"\ntask = \"[[scenario:text]] Go on.\"\n";
    let run = detach(&world, &pi, plan);
    let status = end(&run);
    assert_eq!((&status["state"], &status["steps"][1]["status"]), (&"failed".into(), &"pending".into()), "{status}");
    assert_eq!(status["steps"][0]["turnBudget"]["outcome"], "exceeded", "{status}");
    assert_eq!(run.events_of("subagent.step.turn_budget_deferred").len(), 1);
    let tools = &status["steps"][0]["recentTools"];
    assert_eq!(tools[0]["tool"], "bash", "the tool of the last turn came to its end: {tools}");
    assert_eq!(world.output(&["wait", run.id()]).code, 6);
    world.wait_until_empty();
}

#[test]
fn the_next_model_is_asked_for_when_one_cannot_be_had() {
    let Some(pi) = agent("pi") else { return };
    let world = World::new();
    // Which models there are is not known here, so both are made up: that each of them is asked for is what counts.
    let plan = "[[step]]\nid = \"one\"\ntask = \"[[scenario:text]] Answer.\"\nmodels = [\"no/such-model\", \"nor/this-one\"]\n";
    let run = detach(&world, &pi, plan);
    let status = end(&run);
    let attempts = &status["steps"][0]["modelAttempts"];
    assert_eq!(attempts.as_array().map(Vec::len), Some(2), "{status}");
    assert_eq!(status["steps"][0]["attemptedModels"], serde_json::json!(["no/such-model", "nor/this-one"]));
    assert!(attempts[0]["error"].as_str().unwrap().contains("no/such-model"), "{attempts}");
    assert_eq!(status["state"], "failed", "there is neither: {status}");
    world.wait_until_empty();
}
