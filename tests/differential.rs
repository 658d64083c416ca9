//! Runs of the package's own runner, done again: the same config, and a scripted agent in json mode that prints what its
//! agents printed. Our status, events and result are the recorded ones, value for value, but for the differences that are
//! listed here with their reasons; a listed difference that is none fails the test too.

#[allow(dead_code)]
#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;

use scripted::Scene;
use serde_json::{Value, json};
use support::{Run, wait_for};

/// What is another value in every run, at whatever depth: times, processes, places, ids. That it is there, and what kind of
/// value it is, is compared.
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

/// A difference that is meant: where, what both say, and why. `[]` stands for any place in a list, and a `*` at the end for
/// whatever follows.
struct Known {
    at: &'static str,
    /// Whether this is it, from our value and the recorded one.
    is: fn(&Value, &Value) -> bool,
    #[allow(dead_code, reason = "for who reads this")]
    why: &'static str,
}

const fn known(at: &'static str, is: fn(&Value, &Value) -> bool, why: &'static str) -> Known {
    Known { at, is, why }
}

fn only_ours(ours: &Value, theirs: &Value) -> bool {
    !ours.is_null() && theirs.is_null()
}

fn only_theirs(ours: &Value, theirs: &Value) -> bool {
    ours.is_null() && !theirs.is_null()
}

/// Ours is the name that a child gives its model, theirs the one that was asked for.
fn without_provider(ours: &Value, theirs: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_str(), theirs.as_str()) else { return false };
    theirs.strip_suffix(ours).is_some_and(|provider| provider.ends_with('/'))
}

/// Theirs are among ours, in their order.
fn more_lines(ours: &Value, theirs: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_array(), theirs.as_array()) else { return false };
    let mut ours = ours.iter();
    theirs.iter().all(|line| ours.any(|own| own == line))
}

fn numbers(ours: &Value, theirs: &Value) -> bool {
    ours.is_number() && theirs.is_number()
}

const DIFFERENCES: &[Known] = &[
    known("status.subdeck", only_ours, "one key for what the package does not know"),
    known("status.steps[].subdeck", only_ours, "one key for what the package does not know"),
    known("result.results[].subdeck", only_ours, "one key for what the package does not know"),
    known("run subagent.run.started.subdeck", only_ours, "one key for what the package does not know"),
    known("step subagent.step.completed.subdeck", only_ours, "one key for what the package does not know"),
    known("step subagent.step.failed.subdeck", only_ours, "one key for what the package does not know"),
    known("run subagent.run.completed.subdeck", only_ours, "one key for what the package does not know"),
    known("run subagent.steer.requested.subdeck", only_ours, "one key for what the package does not know"),
    known("run subagent.steer.delivered.message", only_theirs, "how its extension took the message, in its own words"),
    known(
        "child message_end.message.content[].text",
        |ours, theirs| {
            [ours, theirs].iter().all(|said| said.as_str().is_some_and(|t| t.contains("\n\nonly the second child\n\n")))
        },
        "what stands around a message to a running agent is worded by the runner",
    ),
    known("result.error", only_ours, "the error of the run, which the package has in the status alone"),
    known(
        "status.steps[].recentTools[].args",
        |ours, theirs| ours.is_string() && theirs == "",
        "arguments that the package has no preview for",
    ),
    known(
        "status.steps[].tokens",
        |ours, theirs| ours.is_null() && theirs["total"].as_f64().is_some_and(|n| n <= 0.0),
        "of a step without usage nothing is said; in chains the package comes to less than nothing (trap 26)",
    ),
    known(
        "step subagent.step.failed.tokens",
        |ours, theirs| ours.is_null() && theirs["total"].as_f64().is_some_and(|n| n <= 0.0),
        "as in the status",
    ),
    known(
        "status.outputs.*",
        only_ours,
        "the outputs of all steps by their ids; the package has those with a name of their own",
    ),
    known(
        "result.outputs.*",
        only_ours,
        "the outputs of all steps by their ids; the package has those with a name of their own",
    ),
    known("status.processTerminal", only_theirs, "written by a parent that saw the runner close; there is none here"),
    known(
        "status.steps[].processTerminal",
        only_theirs,
        "written by a parent that saw the runner close; there is none here",
    ),
    known("status.sessionFile", only_ours, "named before the child makes it, so that it can be resumed"),
    known("status.steps[].sessionFile", only_ours, "named before the child makes it, so that it can be resumed"),
    known("result.sessionFile", only_ours, "named before the child makes it, so that it can be resumed"),
    known("result.results[].sessionFile", only_ours, "named before the child makes it, so that it can be resumed"),
    known("status.steps[].model", without_provider, "the model that answered, not the one that was asked for"),
    known("result.results[].model", without_provider, "the model that answered, not the one that was asked for"),
    known("status.steps[].recentOutput", more_lines, "the tools and what they gave, too, as in the log"),
    known("status.steps[].skills", only_theirs, "always empty there; ours uses none"),
    known("status.steps[].toolCount", |ours, theirs| *ours == 0.0 && theirs.is_null(), "a count of nothing is a count"),
    known(
        "status.steps[].tokens.*",
        numbers,
        "in chains the reference counts how much the sessions of all steps have grown, and looks too early (trap 26)",
    ),
    known("status.totalTokens.*", numbers, "the reference takes the last step's for the sum (trap 26)"),
    known("result.totalTokens.*", numbers, "the reference takes the last step's for the sum (trap 26)"),
    known(
        "run subagent.run.completed.totalTokens.*",
        numbers,
        "the reference takes the last step's for the sum (trap 26)",
    ),
    known("step subagent.step.completed.tokens.*", numbers, "as in the status"),
    known("child message_start.message.*", only_theirs, "message_end says it all again"),
    known("child turn_end.message", only_theirs, "message_end has said it"),
    known("child turn_end.toolResults", only_theirs, "message_end has said it"),
    known("child agent_end.messages", only_theirs, "message_end has said it"),
    known(
        "child message_end.message.content[].text",
        |ours, theirs| *ours == "[prompt redacted]" && theirs.as_str().is_some_and(|t| t.starts_with("Task: ")),
        "a prompt stands in no file (trap 20)",
    ),
    known("child message_end.message.timestamp", only_theirs, "of the prompt nothing is kept but that it was said"),
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

/// With a word for its kind in the place of each value that belongs to the run, at every depth.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let kind = match value {
                    Value::Number(_) => "a number",
                    Value::String(_) => "a text",
                    _ => "something",
                };
                let of_the_run = OF_THE_RUN.contains(&key.as_str());
                (key.clone(), if of_the_run { json!(kind) } else { comparable(value) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Number(number) => json!((number.as_f64().unwrap() * 1e9).round() / 1e9),
        other => other.clone(),
    }
}

fn is_child(record: &Value) -> bool {
    record["subagentSource"] == "child"
}

/// The records of one child, in its order; what it answers to requests of ours over rpc nobody answered in json mode.
fn of_child(records: &[Value], step: usize) -> Vec<Value> {
    let own = records.iter().filter(|r| is_child(r) && r["subagentStepIndex"] == step);
    own.filter(|r| r["type"] != "response").cloned().collect()
}

/// The runner's own records: those of the run and its groups in their order, and of each step its own. Those of steps
/// at the same time come in the order of their ends.
fn of_runner(records: &[Value], step: Option<usize>) -> Vec<Value> {
    let own = records.iter().filter(|r| !is_child(r) && r["type"].as_str().unwrap().starts_with("subagent."));
    let of = own.filter(|r| {
        let of_step = r["type"].as_str().unwrap().starts_with("subagent.step.");
        match step {
            None => !of_step,
            Some(index) => of_step && r["stepIndex"] == index,
        }
    });
    // Of a message ours tells too that it waits in the queue of the agent.
    of.filter(|r| r["type"] != "subagent.steer.queued").cloned().collect()
}

/// Prepares to play a recorded run again; returns the config too.
fn prepare(name: &str, transport: &str) -> (Scene, String) {
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
    let mut steps = config["steps"].as_array().unwrap().clone();
    for step in &mut steps {
        match step.get_mut("parallel").and_then(Value::as_array_mut) {
            Some(members) => members.iter_mut().for_each(|member| place(&scene, member, transport)),
            None => place(&scene, step, transport),
        }
    }
    let fields = config.as_object_mut().unwrap();
    for key in ["id", "steps", "cwd", "asyncDir", "resultPath", "placeholder"] {
        fields.remove(key);
    }
    if fields.contains_key("sessionDir") {
        fields.insert("sessionDir".to_owned(), scene.world.project().join("sessions").to_str().unwrap().into());
    }
    let path = scene.config(&steps, config);
    (scene, path)
}

/// A step works in our project, and a pi is spoken to so.
fn place(scene: &Scene, step: &mut Value, transport: &str) {
    step["cwd"] = scene.world.project().to_str().unwrap().into();
    if step.get("runner").is_none() {
        step["runner"] = json!({ "type": "pi", "transport": transport });
    }
}

/// What differs between our run and the recorded one, and which of the known differences were found.
#[derive(Default)]
struct Found {
    unknown: BTreeSet<String>,
    known: BTreeSet<&'static str>,
}

impl Found {
    fn compare(&mut self, ours: &Value, theirs: &Value, at: &str) {
        self.walk(&comparable(ours), &comparable(theirs), at);
    }

    /// Records one by one, each under its type.
    fn lists(&mut self, ours: &[Value], theirs: &[Value], at: &str) {
        let kinds = |list: &[Value]| list.iter().map(|r| r["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        if kinds(ours) != kinds(theirs) {
            self.unknown.insert(format!("{at}: {:?} are not {:?}", kinds(ours), kinds(theirs)));
            return;
        }
        for (one, two) in ours.iter().zip(theirs) {
            self.compare(one, two, &format!("{at} {}", one["type"].as_str().unwrap()));
        }
    }

    fn walk(&mut self, ours: &Value, theirs: &Value, at: &str) {
        match (ours, theirs) {
            _ if ours == theirs => {}
            (Value::Object(one), Value::Object(two)) => {
                let keys: BTreeSet<_> = one.keys().chain(two.keys()).collect();
                keys.into_iter().for_each(|key| self.walk(&ours[key], &theirs[key], &format!("{at}.{key}")));
            }
            (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
                one.iter().zip(two).for_each(|(one, two)| self.walk(one, two, &format!("{at}[]")));
            }
            _ => {
                let place = |known: &&Known| match known.at.strip_suffix('*') {
                    Some(begin) => at.starts_with(begin),
                    None => at == known.at,
                };
                match DIFFERENCES.iter().filter(place).find(|known| (known.is)(ours, theirs)) {
                    Some(known) => drop(self.known.insert(known.at)),
                    None => drop(self.unknown.insert(format!("{at}: {ours} is not {theirs}"))),
                }
            }
        }
    }

    fn run(&mut self, name: &str, scene: &Scene, run: &Run) {
        self.compare(&run.wait_end(), &read(name, "status.json"), "status");
        self.compare(&scene.result(run), &read(name, "result.json"), "result");
        let (ours, theirs) = (run.events(), records(name));
        self.lists(&of_runner(&ours, None), &of_runner(&theirs, None), "run");
        for step in 0..5 {
            self.lists(&of_runner(&ours, Some(step)), &of_runner(&theirs, Some(step)), "step");
            self.lists(&of_child(&ours, step), &of_child(&theirs, step), "child");
        }
        self.tokens(name, run);
    }

    /// What each step used is what its agent said that it used; of chains the recorded numbers are none.
    fn tokens(&mut self, name: &str, run: &Run) {
        let status = run.status();
        let mut total = [0.0, 0.0];
        for (step, known) in status["steps"].as_array().unwrap().iter().enumerate() {
            let said = records(name).into_iter().filter(|r| {
                is_child(r)
                    && r["subagentStepIndex"] == step
                    && r["type"] == "message_end"
                    && r["message"]["role"] == "assistant"
            });
            let mut used = [0.0, 0.0];
            for record in said {
                for (sum, key) in used.iter_mut().zip(["input", "output"]) {
                    *sum += record["message"]["usage"][key].as_f64().unwrap_or(0.0);
                }
            }
            for ((key, used), total) in ["input", "output"].iter().zip(used).zip(&mut total) {
                *total += used;
                assert_eq!(known["tokens"][key].as_f64().unwrap_or(0.0), used, "{name}: {key} of step {step}");
            }
        }
        for (key, total) in ["input", "output"].iter().zip(total) {
            assert_eq!(status["totalTokens"][key].as_f64().unwrap_or(0.0), total, "{name}: {key}");
        }
    }
}

#[test]
fn a_recorded_run_comes_out_the_same() {
    let mut found = Found::default();
    for name in ["direct-chain", "direct-chain-fail", "direct-mixed", "direct-parallel"] {
        let (scene, path) = prepare(name, "json");
        let (run, _) = scene.run(&path);
        found.run(name, &scene, &run);
    }
    // A message can reach a running pi of ours over rpc only; in the recorded run an extension of the package took it.
    let name = "direct-par-steer-one";
    let (scene, path) = prepare(name, "rpc");
    let run = scene.detach(&path);
    wait_for("the place where it was steered", || scene.scripts().join("asked").exists().then_some(()));
    let request = json!({ "type": "steer", "id": "b4857599-3088-49d6-a1b5-65850dad76ea", "ts": 1795952508561i64,
        "message": "only the second child", "targetIndex": 1, "source": "outside-test" });
    run.control(
        "steer-requests/1795952508561-YjQ4NTc1OTktMzA4OC00OWQ2LWExYjUtNjU4NTBkYWQ3NmVh.json",
        &request.to_string(),
    );
    found.run(name, &scene, &run);
    assert!(found.unknown.is_empty(), "{:#?}", found.unknown);
    let stale: Vec<_> = DIFFERENCES.iter().map(|known| known.at).filter(|at| !found.known.contains(at)).collect();
    assert!(stale.is_empty(), "these differ no more: {stale:#?}");
}
