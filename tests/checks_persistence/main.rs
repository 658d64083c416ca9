//! The persistence checks of the behaviour specification (runner-behaviour 13, numbers 1 to 13), by the binary and a
//! scripted child. Where Subdeck differs by design the check says so.

#[path = "../support/full_disk.rs"]
#[allow(dead_code)]
mod full_disk;
mod results;
mod room;
#[path = "../support/runs.rs"]
#[allow(dead_code)]
mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Run, World, files_below};

fn read(path: PathBuf) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn results(world: &World) -> PathBuf {
    world.root().join("async-subagent-results")
}

fn public(world: &World, run: &Run) -> PathBuf {
    results(world).join(format!("{}.json", run.id()))
}

fn marker(world: &World, run: &Run) -> PathBuf {
    world.root().join("async-subagent-runs/.active-runs").join(run.id())
}

fn closed(run: &Run) -> PathBuf {
    run.dir.join("control/steer-inbox-closed.json")
}

fn run_log(run: &Run) -> PathBuf {
    run.dir.join(format!("subagent-log-{}.md", run.id()))
}

/// The pending result of a run, found as a reader finds it: by the entry of its session.
fn pending(world: &World) -> Option<Value> {
    files_below(&results(world).join("result-pending")).into_iter().find_map(read)
}

/// Starts a run from a runner config of pi-subagents with one child.
fn configured(world: &World, more: Value) -> Run {
    let id = "0b8f2c1e-6d1f-4e57-9d0a-2f6f3f3f9a10";
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let mut config = json!({
        "id": id,
        "cwd": world.project(),
        "placeholder": "{previous}",
        "asyncDir": world.root().join("async-subagent-runs").join(id),
        "resultPath": results(world).join(format!("{id}.json")),
        "steps": [{
            "agent": "worker", "task": "Go.", "inheritProjectContext": false, "inheritSkills": false,
            "runner": { "type": "external-cli", "command": "sh", "args": [agent, "ok"] },
        }],
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = world.file("config.json", &config.to_string());
    world.detach(&[path.to_str().unwrap()])
}

/// The fields of a config whose only child goes on until there is a file `go`.
fn held_back() -> Value {
    let script = "while [ ! -e go ]; do sleep 0.02; done; echo done";
    json!({ "sessionId": "a-session", "steps": [{
        "agent": "worker", "task": "Go.", "inheritProjectContext": false, "inheritSkills": false,
        "runner": { "type": "external-cli", "command": "sh", "args": ["-c", script] },
    }] })
}
