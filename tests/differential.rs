//! Runs of the package's own runner, done again: the same config, and a scripted agent that prints what its agents
//! printed. Our status, events and result are the recorded ones, but for the differences that are listed here.

#[allow(dead_code)]
#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::PathBuf;

use scripted::Scene;
use serde_json::{Value, json};
use support::{Run, wait_for};

/// What differs because it is another run: times, processes, places.
const OF_THE_RUN: [&str; 27] = [
    "runId",
    "startedAt",
    "endedAt",
    "lastUpdate",
    "lastActivityAt",
    "durationMs",
    "pid",
    "cwd",
    "endMs",
    "ts",
    "outputFile",
    "sessionDir",
    "asyncDir",
    "id",
    "timestamp",
    "subagentRunId",
    "observedAt",
    "sessionFile",
    "processTerminal",
    "runnerProcessInstanceId",
    "currentStep",
    "transcriptPath",
    "requestedAt",
    "routedAt",
    "deliveredAt",
    "lastRequestedAt",
    "lastDeliveredAt",
];
/// What ours has beyond the recorded: one key for everything that the package does not know, and the outputs of all
/// steps by their ids where the package has those with a name of their own.
const OURS: [&str; 2] = ["subdeck", "outputs"];
/// What the recorded has beyond ours: `skills` is always empty, since ours refuses to use any; the rest describes
/// features of the package that ours does not have (extensions, acceptance, contracts) and that these runs did not use.
const THEIRS: [&str; 8] = [
    "skills",
    "acceptance",
    "execution",
    "review",
    "effects",
    "artifactPaths",
    "outputState",
    "runtimeAcknowledgedExtensions",
];

fn fixture(name: &str, file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(name).join(file)
}

fn read(name: &str, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name, file)).unwrap()).unwrap()
}

fn records(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(fixture(name, "events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What both have and say differently: ours names the model that answered, not the one that was asked for, and shows
/// the tools and their output among the last lines, as the log does.
const OTHERWISE: [&str; 2] = ["model", "recentOutput"];

/// Without what differs, at every depth. Whether a count of nothing is 0 or left out differs in both directions.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let lists: [&[&str]; 4] = [&OF_THE_RUN, &OURS, &THEIRS, &OTHERWISE];
            let skip = |key: &str, value: &Value| {
                lists.iter().any(|list| list.contains(&key))
                    || (matches!(key, "toolCount" | "turnCount") && value == 0)
                    || (key == "tokens" && value["total"] == 0)
            };
            let kept = fields.iter().filter(|(key, value)| !skip(key, value));
            Value::Object(kept.map(|(key, value)| (key.clone(), comparable(value))).collect())
        }
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Number(number) => json!((number.as_f64().unwrap() * 1e9).round() / 1e9),
        other => other.clone(),
    }
}

/// The reference counts the tokens of a step of a chain by how much the sessions of all steps have grown meanwhile, looks
/// too early, and comes to less than nothing; so what it sums up is not the sum.
fn without_wrong_sums(name: &str, value: &Value) -> Value {
    let mut value = comparable(value);
    if value.get("success").is_some() {
        // Of a result ours repeats the error of the run, which the recorded has in the status alone.
        value.as_object_mut().unwrap().remove("error");
    }
    if name.starts_with("direct-chain") {
        let fields = value.as_object_mut().unwrap();
        fields.remove("totalTokens");
        fields.remove("tokens");
        for step in fields.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
            let tokens = step.as_object_mut().unwrap().remove("tokens");
            assert!(tokens.is_none_or(|t| t["total"].as_f64().unwrap().abs() > 0.0));
        }
    }
    value
}

/// Of records that repeat the conversation, and of the one that holds the task, ours keeps only what they say.
fn child_record(record: &Value) -> Value {
    let role = record["message"]["role"].as_str().unwrap_or_default();
    match record["type"].as_str().unwrap() {
        kind @ ("agent_end" | "turn_end" | "message_start") => json!({ "type": kind }),
        kind @ "message_end" if role == "user" => json!({ "type": kind, "role": role }),
        _ => comparable(record),
    }
}

fn is_child(record: &Value) -> bool {
    record["subagentSource"] == "child"
}

/// The records of one child, in its order. Ours talks to it over its protocol, so it answers the task too.
fn of_child(records: &[Value], step: usize) -> Vec<Value> {
    records
        .iter()
        .filter(|r| is_child(r) && r["subagentStepIndex"] == step && r["type"] != "response")
        .map(child_record)
        .collect()
}

/// The runner's own records: those of the run and its groups in their order, and of each step its own. Those of steps
/// at the same time come in the order of their ends.
fn of_runner(name: &str, records: &[Value], step: Option<usize>) -> Vec<Value> {
    let own = records.iter().filter(|r| !is_child(r) && r["type"].as_str().unwrap().starts_with("subagent."));
    let of = own.filter(|r| {
        let of_step = r["type"].as_str().unwrap().starts_with("subagent.step.");
        match step {
            None => !of_step,
            Some(index) => of_step && r["stepIndex"] == index,
        }
    });
    // Of a message ours tells too that it waits in the queue of the agent, and says how it arrived in words of its own.
    let of = of.filter(|r| r["type"] != "subagent.steer.queued");
    of.map(|record| {
        let mut record = without_wrong_sums(name, record);
        if record["type"] == "subagent.steer.delivered" {
            record.as_object_mut().unwrap().remove("message");
        }
        record
    })
    .collect()
}

/// Prepares to play a recorded run again; returns the config too.
fn prepare(name: &str) -> (Scene, String) {
    let theirs = records(name);
    let mut config = read(name, "config.json");
    let status = read(name, "status.json");
    let steps = status["steps"].as_array().unwrap();
    let scene = Scene::new(&[]);
    for (index, step) in steps.iter().enumerate() {
        let mut script = String::new();
        for record in theirs.iter().filter(|r| is_child(r) && r["subagentStepIndex"] == index) {
            let mut record = record.clone();
            let fields = record.as_object_mut().unwrap();
            fields.retain(|key, _| !key.starts_with("subagent") && key != "observedAt");
            // A message that came meanwhile comes again, and is repeated in the words in which it came.
            if record["type"] == "queue_update" && record["steering"].as_array().is_some_and(|s| !s.is_empty()) {
                script.push_str("touch asked\nhear\n");
            }
            let steered = record["type"] == "message_end"
                && record["message"]["role"] == "user"
                && record.to_string().contains("Mid-run steering");
            script.push_str(&if steered { "echo".to_owned() } else { record.to_string() });
            script.push('\n');
        }
        if let Some(code) = step["exitCode"].as_i64() {
            script.push_str(&format!("exit {code}\n"));
        }
        scene.script(&index.to_string(), &script);
    }
    let place = |steps: &mut Vec<Value>| {
        for step in steps {
            step["cwd"] = scene.world.project().to_str().unwrap().into();
        }
    };
    let mut steps = config["steps"].as_array().unwrap().clone();
    for step in &mut steps {
        if let Some(members) = step.get_mut("parallel").and_then(Value::as_array_mut) {
            place(members);
        }
    }
    let mut singles: Vec<Value> = steps;
    for step in singles.iter_mut().filter(|s| s.get("parallel").is_none()) {
        step["cwd"] = scene.world.project().to_str().unwrap().into();
    }
    let fields = config.as_object_mut().unwrap();
    for key in ["id", "steps", "cwd", "asyncDir", "resultPath", "sessionDir", "placeholder"] {
        fields.remove(key);
    }
    let path = scene.config(&singles, config);
    (scene, path)
}

#[test]
fn a_recorded_run_comes_out_the_same() {
    for name in ["direct-chain", "direct-chain-fail", "direct-mixed", "direct-parallel"] {
        let (scene, path) = prepare(name);
        let (run, _) = scene.run(&path);
        assert_comes_out_the_same(name, &scene, &run);
    }
}

#[test]
fn a_recorded_run_that_was_steered_comes_out_the_same() {
    let name = "direct-par-steer-one";
    let (scene, path) = prepare(name);
    let run = scene.detach(&path);
    wait_for("the place where it was steered", || scene.scripts().join("asked").exists().then_some(()));
    let request = json!({ "type": "steer", "id": "b4857599-3088-49d6-a1b5-65850dad76ea", "ts": 1795952508561i64,
        "message": "only the second child", "targetIndex": 1, "source": "outside-test" });
    run.control(
        "steer-requests/1795952508561-YjQ4NTc1OTktMzA4OC00OWQ2LWExYjUtNjU4NTBkYWQ3NmVh.json",
        &request.to_string(),
    );
    assert_comes_out_the_same(name, &scene, &run);
}

fn assert_comes_out_the_same(name: &str, scene: &Scene, run: &Run) {
    let (ours, theirs) = (run.wait_end(), read(name, "status.json"));
    assert_same(&without_wrong_sums(name, &ours), &without_wrong_sums(name, &theirs), &format!("{name} status"));
    assert_same(
        &without_wrong_sums(name, &scene.result(run)),
        &without_wrong_sums(name, &read(name, "result.json")),
        &format!("{name} result"),
    );
    let (ours, theirs) = (run.events(), records(name));
    assert_eq!(of_runner(name, &ours, None), of_runner(name, &theirs, None), "{name}");
    for step in 0..5 {
        assert_eq!(of_runner(name, &ours, Some(step)), of_runner(name, &theirs, Some(step)), "{name} {step}");
        let (mine, other) = (of_child(&ours, step), of_child(&theirs, step));
        for (one, two) in mine.iter().zip(&other) {
            assert_same(one, two, &format!("{name} {step}"));
        }
        assert_eq!(mine.len(), other.len(), "{name} {step}");
    }
}

/// The places where two values differ.
fn differences(ours: &Value, theirs: &Value, at: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(two)) => {
            let mut keys: Vec<_> = one.keys().chain(two.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                differences(&ours[key], &theirs[key], &format!("{at}.{key}"), found);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (index, (one, two)) in one.iter().zip(two).enumerate() {
                differences(one, two, &format!("{at}[{index}]"), found);
            }
        }
        _ if ours == theirs => {}
        // The reference shows nothing of arguments that it does not know.
        _ if at.ends_with(".args") && theirs == "" => {}
        _ => found.push(format!("{at}: {ours} is not {theirs}")),
    }
}

fn assert_same(ours: &Value, theirs: &Value, at: &str) {
    let mut found = Vec::new();
    differences(ours, theirs, at, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}
