//! Steps whose logs cannot be written because something else stands in their place: what they said last is shown instead, by
//! whatever prints output, and it is told that it is not all.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use serde_json::Value;
use support::World;

#[test]
fn what_a_step_said_last_stands_in_for_its_log() {
    let world = World::new();
    // The command's log is a folder, and that of the agent behind it.
    let odd = "cd \"$SUBDECK_ROOT/async-subagent-runs/$SUBDECK_RUN\" && mkdir external-1.stdout.log output-2.log";
    let plan = format!(
        "[[step]]\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", {odd:?}] }}\n\
         [[step]]\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo IMPORTANT; echo aside >&2\"] }}\n\
         [[step]]\nagent = \"scout\"\ntask = \"Look.\"\nrunner = \"demo\"\n"
    );
    let plan = world.file("plan.toml", &plan);
    let run = world.subdeck(&["run", "--no-tui", plan.to_str().unwrap()]).env("SUBDECK_DEMO_SPEED", "1000").output();
    let done = support::Done::of(run.unwrap());
    // What became of the work is not changed by it.
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("a log cannot be written"), "{done:?}");
    let run = world.only_run();
    let status: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    let said = status["steps"][2]["last_message"].as_str().unwrap().lines().last().unwrap().to_owned();
    assert!(said.len() > 5, "{status:#}");
    assert_eq!(
        status["steps"].as_array().unwrap().iter().filter(|s| s["log_error"].is_string()).count(),
        2,
        "{status:#}"
    );
    for words in ["IMPORTANT", &said] {
        assert_eq!(done.stdout.matches(&format!("│ {words}")).count(), 1, "{words}: {done:?}");
    }
    for (step, words) in [(2, "IMPORTANT"), (3, said.as_str())] {
        let logs = world.output(&["logs", &format!("{}:{step}", run.id())]);
        assert_eq!(logs.code, 1, "{logs:?}");
        assert!(logs.stdout.contains(words), "{logs:?}");
        assert!(logs.stderr.contains("is not read; what its step said last stands in for it"), "{logs:?}");
    }
    let all = world.output(&["logs", run.id()]);
    assert!(all.stdout.contains("IMPORTANT") && all.stdout.contains(&said), "{all:?}");
}
