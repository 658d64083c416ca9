//! What the program prints for scripts agrees with the schemas that it publishes, for every way a run can end.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "../support/runs.rs"]
mod support;
mod values;
mod whole;

use jsonschema::Validator;
use serde_json::Value;
use support::{Done, Run, World, wait_for};

fn validator(subject: &str) -> Validator {
    let done = World::new().output(&["schema", subject]);
    assert_eq!(done.code, 0, "{done:?}");
    jsonschema::validator_for(&serde_json::from_str(&done.stdout).unwrap()).unwrap()
}

/// Every line of the output is an event; returns their types.
fn check_events(done: &Done) -> Vec<String> {
    let validator = validator("events");
    let mut types = Vec::new();
    for line in done.stdout.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(validator.is_valid(&value), "no event of the schema: {line}");
        types.push(value["type"].as_str().unwrap().to_owned());
    }
    assert!(!types.is_empty(), "{done:?}");
    types
}

fn check_status(value: &Value) {
    assert!(validator("status").is_valid(value), "no status of the schema: {value:#}");
}

/// Checks everything that is printed of a run that has ended, and returns its status.
fn check_run(world: &World, id: &str, exit_code: i32) -> Value {
    assert_eq!(world.output(&["wait", id]).code, exit_code);
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", id]).stdout).unwrap();
    check_status(&status);
    assert_eq!((&status["run"], &status["exit_code"]), (&id.into(), &exit_code.into()), "{status:#}");
    let events = world.output(&["events", "--json", id]);
    let types = check_events(&events);
    assert_eq!(types.first().map(String::as_str), Some("run_started"));
    assert!(types.iter().any(|t| t == "run_ended"), "{types:?}");
    // A follower prints what a reader prints.
    assert_eq!(world.output(&["attach", "--no-tui", "--output", "jsonl", id]).stdout, events.stdout);
    status
}

#[test]
fn a_complete_run() {
    let world = World::new();
    let done = world.output(&["demo", "--no-tui", "--speed", "20", "--output", "jsonl"]);
    assert_eq!(done.code, 0, "{done:?}");
    let types = check_events(&done);
    for kind in
        ["run_started", "step_started", "child_spawned", "turn_started", "tool_started", "tool_ended", "message"]
    {
        assert!(types.iter().any(|t| t == kind), "no {kind}");
    }
    let run = world.only_run();
    let status = check_run(&world, run.id(), 0);
    assert_eq!(status["steps"].as_array().unwrap().len(), 7);
    let done = world.output(&["attach", "--no-tui", "--output", "json"]);
    check_status(&serde_json::from_str(&done.stdout).unwrap());
}

#[test]
fn what_plain_commands_print_is_among_the_events_and_the_status() {
    let world = World::new();
    let script = "echo one; printf 'a\\033[31mb' >&2; sleep 0.01; printf 'no end'";
    let done = world.output(&["run", "--no-tui", "--output", "jsonl", "--", "sh", "-c", script]);
    assert_eq!(done.code, 0, "{done:?}");
    let types = check_events(&done);
    let place = |kind: &str| types.iter().position(|t| t == kind).unwrap();
    let last = types.iter().rposition(|t| t == "output").unwrap();
    assert!(place("step_started") < place("output") && last < place("step_ended"), "{types:?}");
    assert!(!done.stdout.contains('\u{1b}'));
    let lines = |text: &str| -> Vec<(String, String, u64)> {
        let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let printed = values.filter(|v| v["type"] == "output" || v.get("type").is_none());
        let of = |v: &Value, key: &str| v[key].as_str().unwrap().to_owned();
        let mut all: Vec<_> =
            printed.map(|v| (of(&v, "stream"), of(&v, "text"), v["step"].as_u64().unwrap())).collect();
        // Which stream is read first is not for the child to say.
        all.sort();
        all
    };
    let printed = lines(&done.stdout);
    let row = |stream: &str, text: &str| (stream.to_owned(), text.to_owned(), 1);
    assert_eq!(printed.len(), 3, "{printed:?}");
    for row in [row("stdout", "one"), row("stderr", "a\u{1b}[31mb"), row("stdout", "no end")] {
        assert!(printed.contains(&row), "{row:?} {printed:?}");
    }
    let run = world.only_run();
    assert_eq!(lines(&world.output(&["logs", "--json", run.id()]).stdout), printed);
    let status = check_run(&world, run.id(), 0);
    assert!(status["steps"][0]["recent_output"].as_array().unwrap().contains(&"one".into()), "{status:#}");
}

#[test]
fn a_failed_run() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    let status = check_run(&world, run.id(), 1);
    assert_eq!(status["steps"][0]["exit_code"], 7);
}

#[test]
fn a_run_that_is_stopped_by_somebody() {
    let world = World::new();
    let run = world.detach(&["--", "sh", "-c", "echo up; exec sleep 600"]);
    run.wait_output(0, "up");
    running(&world, &run);
    assert_eq!(world.output(&["stop", "--wait", "--reason", "enough", run.id()]).code, 0);
    let status = check_run(&world, run.id(), 3);
    assert_eq!((&status["ended_by"]["via"], &status["ended_by"]["reason"]), (&"cli".into(), &"enough".into()));
}

#[test]
fn a_run_that_is_out_of_time() {
    let world = World::new();
    let run = world.detach(&["--time", "300ms", "--", "sleep", "600"]);
    let status = check_run(&world, run.id(), 5);
    assert_eq!(status["timed_out"], true);
}

#[test]
fn a_run_that_is_steered_then_paused() {
    let world = World::new();
    let plan = "[[step]]\nagent = \"a\"\nrunner = { type = \"demo\", script = \"long\" }\ntask = \"t\"\n";
    let plan = world.file("plan.toml", plan);
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait("an open tool", |s| s["steps"][0]["currentTool"].is_string());
    assert_eq!(world.output(&["steer", run.id(), "a word"]).code, 0);
    run.control("steer-requests/broken.json", "not json");
    wait_for("what became of the requests", || {
        let events = world.output(&["events", "--json", run.id()]).stdout;
        (events.contains("steer_moved") && events.contains("control_rejected")).then_some(())
    });
    running(&world, &run);
    world.output(&["interrupt", "--wait", run.id()]);
    let status = check_run(&world, run.id(), 4);
    assert_eq!(status["steering"][0]["preview"], "a word");
    assert_eq!(status["rejected_requests"][0]["file"], "broken.json");
}

/// The status of a run that goes on.
fn running(world: &World, run: &Run) {
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    check_status(&status);
    assert_eq!(status["state"], "running");
    assert!(status.get("exit_code").is_none() && status.get("ended_at").is_none(), "{status:#}");
}

#[test]
fn the_list_of_runs_good_and_unreadable() {
    let world = World::new();
    let run = world.detach(&["--", "true"]);
    run.wait_end();
    let broken = world.root().join("async-subagent-runs").join("broken-one");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("status.json"), "{").unwrap();
    let list: Value = serde_json::from_str(&world.output(&["ls", "--json"]).stdout).unwrap();
    assert_eq!(list["v"], 1);
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{list:#}");
    runs.iter().for_each(check_status);
    assert!(runs.iter().any(|r| r["unreadable"].is_string()), "{list:#}");
}

#[test]
fn recorded_runs_of_another_program() {
    let world = World::new();
    let events = validator("events");
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs");
    let mut seen = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let dir = entry.unwrap().path();
        let path = dir.to_str().unwrap();
        let done = world.output(&["status", "--json", path]);
        check_status(&serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}")));
        for line in world.output(&["events", "--json", path]).stdout.lines() {
            assert!(events.is_valid(&serde_json::from_str(line).unwrap()), "{path}: {line}");
        }
        seen += 1;
    }
    assert!(seen >= 7, "{seen}");
}

#[test]
fn what_is_not_in_the_schema_is_not_valid() {
    let world = World::new();
    let run = world.detach(&["--", "true"]);
    run.wait_end();
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    let events = world.output(&["events", "--json", run.id()]).stdout;
    let event: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    for (subject, good) in [("status", status), ("events", event)] {
        let validator = validator(subject);
        assert!(validator.is_valid(&good));
        let mut more = good.clone();
        more["surprise"] = 1.into();
        assert!(!validator.is_valid(&more), "{subject}");
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove("run");
        assert!(!validator.is_valid(&less), "{subject}");
    }
}
