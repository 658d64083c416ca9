//! Every document of every kind of run against the tables, by the files that the binary wrote (run-directory 2.1, 11).

#[path = "support/scripted.rs"]
#[allow(dead_code)]
mod scripted;
#[path = "support/runs.rs"]
#[allow(dead_code)]
mod support;
#[path = "support/tables.rs"]
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use scripted::{Scene, step};
use serde_json::{Value, json};
use subdeck::run::{RunState, reduce};
use subdeck::rundir::{RunDir, StatusContext, decode_status, records, status};
use support::{Run, World, files_below, signal, wait_for};
use tables::{
    CAPABILITY, INBOX_CLOSED, RESULT, RESULT_INDEX, RUN, RUNNER_JSON, TERMINAL_ENTRY, check_record, check_table,
};

/// Stands in every task; may stand nowhere but in the stored plan, the agents' own
/// sessions and their own bytes.
const PROMPT: &str = "PROMPT-4f1d";

const SCENES: &str = r#"
[scene.quick]
[[scene.quick.turn]]
think = "Where to begin?"
say = "I look."
tool = [{ name = "bash", args = { command = "ls" }, time_ms = 50, output = "a\nb\n" }, { name = "read", args = { path = "a" }, time_ms = 20, fail = true, output = "no such file" }]
[[scene.quick.turn]]
say = "Two files."
[scene.slow]
[[scene.slow.turn]]
say = "I take my time."
tool = [{ name = "bash", args = { command = "sleep" }, time_ms = 6000000 }]
[[scene.slow.turn]]
say = "Done."
"#;

fn agent(world: &World, id: &str, scene: &str) -> String {
    let script = world.file("scenes.toml", SCENES);
    format!(
        "{{ id = \"{id}\", agent = \"{id}\", task = \"{PROMPT} of {id}\", runner = {{ type = \"demo\", script = \"{}#{scene}\" }} }}",
        script.display()
    )
}

fn command(id: &str, script: &str) -> String {
    format!(
        "{{ id = \"{id}\", runner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }} }}"
    )
}

/// A plan of logical steps: one entry is a single step, several are a group.
fn plan(world: &World, head: &str, steps: &[&[String]]) -> String {
    let mut text = format!("{head}\n");
    for step in steps {
        text.push_str("[[step]]\n");
        match step {
            [only] => {
                let inner = only.trim_start_matches('{').trim_end_matches('}').trim();
                text.push_str(&split_fields(inner).join("\n"));
            }
            many => text.push_str(&format!("parallel = [\n{}\n]", many.join(",\n"))),
        }
        text.push('\n');
    }
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

/// The fields of an inline table, each on a line of its own.
fn split_fields(inner: &str) -> Vec<String> {
    let (mut fields, mut field, mut depth, mut quoted) = (Vec::new(), String::new(), 0, false);
    for c in inner.chars() {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                fields.push(std::mem::take(&mut field).trim().to_owned());
                continue;
            }
            _ => {}
        }
        field.push(c);
    }
    fields.push(field.trim().to_owned());
    fields
}

/// Starts a run whose agents play fast, in the background.
fn start(world: &World, plan: &str, more: &[&str]) -> Run {
    let mut command = world.subdeck(&["run", "--detach", plan]);
    let done = support::Done::of(command.args(more).env("SUBDECK_DEMO_SPEED", "100").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.run(done.stdout.trim())
}

/// What a run must look like once it has ended.
struct Want<'s> {
    state: &'static str,
    exit_code: i64,
    steps: &'s [&'static str],
}

/// Waits for the end, with both eyes on the files, and checks everything that is there.
fn check_run(world: &World, run: &Run, want: &Want<'_>) -> Value {
    watch_until_end(world, run);
    let status = run.wait_end();
    world.wait_until_empty();
    assert_eq!(status, run.status(), "nothing is written after the end");
    let states: Vec<&str> = status["steps"].as_array().unwrap().iter().map(|s| s["status"].as_str().unwrap()).collect();
    assert_eq!((status["state"].as_str().unwrap(), states.as_slice()), (want.state, want.steps));
    check_status(run, &status);
    check_events(run, &status);
    check_result(world, run, &status, want);
    check_indexes(world, run, &status);
    check_control(run, &status);
    check_own(run);
    check_logs(run, &status);
    check_prompts(world, run, &status);
    let events_alone = replayed(run);
    assert_eq!(comparable(&events_alone), comparable(&status), "the events alone make the status");
    status
}

/// While a run lives its documents agree with each other at every moment.
fn watch_until_end(world: &World, run: &Run) {
    let marker = world.root().join("async-subagent-runs/.active-runs").join(run.id());
    let runner = document(&run.dir.join("subdeck/runner.json"));
    wait_for("a terminal status", || {
        let events = fs::read(run.dir.join("events.jsonl")).unwrap_or_default();
        let status = fs::read(run.dir.join("status.json")).ok().and_then(|b| serde_json::from_slice::<Value>(&b).ok());
        let Some(status) = status else {
            assert!(events.is_empty(), "something is told of a run without a status");
            return None;
        };
        assert_eq!(status["pid"], runner["pid"]);
        if matches!(status["state"].as_str().unwrap(), "complete" | "failed" | "paused" | "stopped") {
            assert!(has_result(world, run, &status), "a terminal status without a result");
        } else {
            assert_eq!(status["state"], "running");
            let gone = || !marker.exists() && run.status()["state"] == "running";
            if gone() {
                wait_for("the marker of a live run", || (!gone()).then_some(()));
            }
        }
        status["endedAt"].is_number().then_some(())
    });
}

fn has_result(world: &World, run: &Run, status: &Value) -> bool {
    let results = world.root().join("async-subagent-results");
    let name = format!("{}.json", run.id());
    let session = status["sessionId"].as_str().unwrap();
    let public = results.join(&name);
    let pending = results.join("result-pending").join(session).join(&name);
    let entry = results.join("result-index/sessions").join(session).join(&name);
    // The pending one becomes the public one, so whoever misses both looks at the public one again.
    entry.exists() && (public.exists() || pending.exists() || public.exists())
}

fn document(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}"), "{} is not in the shared style", path.display());
    assert!(!has_null(&value), "{}", path.display());
    value
}

/// Absent, not null; but for the two fields that may be (run-directory 0).
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => {
            fields.iter().any(|(k, v)| !matches!(k.as_str(), "exitCode" | "processSignal") && has_null(v))
        }
        _ => false,
    }
}

fn check_status(run: &Run, status: &Value) {
    document(&run.dir.join("status.json"));
    check_table(status, RUN, "status");
    assert_eq!(status["runId"], run.id());
    assert_eq!(status["lifecycleArtifactVersion"], 3);
    let steps = status["steps"].as_array().unwrap();
    for group in status["parallelGroups"].as_array().unwrap() {
        let number = |name: &str| group[name].as_u64().unwrap();
        assert!(number("count") > 0 && number("start") + number("count") <= steps.len() as u64);
        assert!(number("stepIndex") < status["chainStepCount"].as_u64().unwrap());
    }
    for step in steps {
        let started = step["startedAt"].is_number();
        let ended = !matches!(step["status"].as_str().unwrap(), "pending" | "running");
        assert_eq!(ended, step["endedAt"].is_number(), "{step}");
        assert!(ended || !started, "nothing runs any more: {step}");
        let code = step["exitCode"].as_i64();
        match step["status"].as_str().unwrap() {
            "complete" | "paused" => assert_eq!(code, Some(0)),
            "stopped" => assert_eq!((code, &step["stopped"]), (Some(1), &Value::Bool(true))),
            "failed" => assert!(code.is_some_and(|c| c != 0) && step["error"].is_string(), "{step}"),
            _ => assert_eq!(code, None),
        }
        assert!(step.get("currentTool").is_none(), "no tool is open any more: {step}");
    }
}

fn check_events(run: &Run, status: &Value) {
    let text = fs::read_to_string(run.dir.join("events.jsonl")).unwrap();
    assert!(
        text.ends_with('\n')
            && text
                .lines()
                .filter(|l| !l.contains("\"subagentSource\":\"child\""))
                .all(|l| l.starts_with("{\"type\":\"")),
        "type stands first"
    );
    let events = run.events();
    for event in &events {
        check_record(event, run.id());
    }
    assert_eq!(events[0]["type"], "subagent.run.started");
    let ends = run.events_of("subagent.run.completed");
    assert_eq!((ends.len(), &ends[0]["status"]), (1, &status["state"]));
    assert_eq!(events.last().unwrap()["type"], "subagent.run.completed");
    for (index, step) in status["steps"].as_array().unwrap().iter().enumerate() {
        let of_step = |e: &&Value| e["stepIndex"] == index && e["type"].as_str().unwrap().starts_with("subagent.step.");
        let kinds: Vec<&str> =
            events.iter().filter(of_step).map(|e| &e["type"].as_str().unwrap()["subagent.step.".len()..]).collect();
        match step["status"].as_str().unwrap() {
            "pending" => assert!(kinds.is_empty()),
            word if step.get("pid").is_none() => {
                let last = if word == "complete" { "completed" } else { word };
                assert!(kinds.is_empty() || kinds.last() == Some(&last), "{kinds:?} {step}");
            }
            _ => {}
        }
    }
}

fn check_result(world: &World, run: &Run, status: &Value, want: &Want<'_>) {
    let results = world.root().join("async-subagent-results");
    let result = document(&results.join(format!("{}.json", run.id())));
    check_table(&result, RESULT, "result");
    assert_eq!(result["id"], run.id());
    assert_eq!(result["state"], status["state"]);
    assert_eq!(result["exitCode"], want.exit_code);
    assert_eq!(result["success"], want.state == "complete");
    assert_eq!(result["asyncDir"], run.dir.to_str().unwrap());
    assert_eq!(result["sessionId"], status["sessionId"]);
    let ran = status["steps"].as_array().unwrap().iter().filter(|s| s["startedAt"].is_number());
    let ran: Vec<&Value> = ran.map(|s| &s["agent"]).collect();
    let told: Vec<&Value> = result["results"].as_array().unwrap().iter().map(|r| &r["agent"]).collect();
    assert_eq!(told, ran, "a result has an entry for every step that ran");
    let pending = files_below(&results.join("result-pending"));
    assert!(pending.is_empty(), "{pending:?}");
    let name = format!("{}.json", run.id());
    let session = status["sessionId"].as_str().unwrap();
    for entry in [PathBuf::from("sessions").join(session).join(&name), Path::new("runs").join(&name)] {
        let entry = document(&results.join("result-index").join(entry));
        check_table(&entry, RESULT_INDEX, "index entry");
        assert_eq!((&entry["runId"], &entry["sessionId"]), (&status["runId"], &status["sessionId"]));
        assert_eq!(entry["file"], name);
    }
}

fn check_indexes(world: &World, run: &Run, status: &Value) {
    let runs = world.root().join("async-subagent-runs");
    assert!(!runs.join(".active-runs").join(run.id()).exists());
    let folder = runs.join(".terminal-runs").join(status["sessionId"].as_str().unwrap());
    let entries = files_below(&folder);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let ended = status["endedAt"].as_f64().unwrap().floor();
    assert_eq!(entries[0].file_name().unwrap().to_str().unwrap(), format!("{ended:016}-{}.json", run.id()));
    let entry = document(&entries[0]);
    check_table(&entry, TERMINAL_ENTRY, "terminal entry");
    assert_eq!((&entry["runId"], &entry["endedAt"].as_f64()), (&status["runId"], &Some(ended)));
}

fn check_control(run: &Run, status: &Value) {
    let control = run.dir.join("control");
    let closed = document(&control.join("steer-inbox-closed.json"));
    check_table(&closed, INBOX_CLOSED, "closed inbox");
    assert_eq!(closed["state"], status["state"]);
    for folder in ["steer-requests", "steer-capabilities", "steer-acks"] {
        assert!(control.join(folder).is_dir(), "{folder}");
    }
    for name in ["stop.json", "interrupt.json", "timeout.json"] {
        assert!(!control.join(name).exists(), "{name} was taken");
    }
    for (index, step) in status["steps"].as_array().unwrap().iter().enumerate() {
        let path = control.join(format!("steer-capabilities/{index}.json"));
        let spawned = run.events_of("subdeck.child.spawned").iter().any(|e| e["stepIndex"] == index);
        if step["runner"].is_null() && spawned {
            assert!(path.exists(), "an agent that ran could be steered");
        }
        if path.exists() {
            let capability = document(&path);
            check_table(&capability, CAPABILITY, "capability");
            assert_eq!((&capability["index"], &capability["protocolVersion"]), (&index.into(), &1.into()));
        }
    }
}

fn check_own(run: &Run) {
    let own = run.dir.join("subdeck");
    let runner = document(&own.join("runner.json"));
    check_table(&runner, RUNNER_JSON, "runner.json");
    assert_eq!(runner["pid"], run.status()["pid"]);
    assert!(own.join("runner.lock").exists());
    let plan = json_with_nulls(&own.join("plan.json"));
    assert_eq!(plan["version"], 1);
    assert!(run.dir.join("runner.stdout.log").exists() && run.dir.join("runner.stderr.log").exists());
}

fn json_with_nulls(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn check_logs(run: &Run, status: &Value) {
    let text = fs::read_to_string(run.dir.join(format!("subagent-log-{}.md", run.id()))).unwrap();
    assert!(text.starts_with(&format!("# Subagent run {}\n", run.id())), "{text}");
    for part in
        ["**Mode:**", "**CWD:**", "**Started:**", "**Ended:**", "**Duration:**", "\n## Steps\n", "\n## Summary\n"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    for (index, step) in status["steps"].as_array().unwrap().iter().enumerate() {
        if step["startedAt"].is_null() || step["startedAt"] == step["endedAt"] {
            continue;
        }
        assert!(run.dir.join(format!("output-{index}.log")).exists(), "{index}");
        if step["runner"]["type"] == "external-cli" {
            for stream in ["stdout", "stderr"] {
                let named = step["externalProcess"][format!("{stream}Path")].as_str().unwrap();
                assert_eq!(Path::new(named), run.dir.join(format!("external-{index}.{stream}.log")));
                assert!(Path::new(named).exists(), "{named}");
            }
        }
        check_marks(&run.dir, index);
    }
    let named = Path::new(status["outputFile"].as_str().unwrap());
    assert_eq!(named.parent(), Some(run.dir.as_path()));
}

/// A header of 16 bytes and records of 24 (run-directory 3.9).
fn check_marks(dir: &Path, index: usize) {
    let bytes = fs::read(dir.join(format!("output-{index}.marks"))).unwrap();
    assert_eq!(&bytes[..16], b"SUBDECKMARKS\x01\0\0\0");
    assert_eq!((bytes.len() - 16) % 24, 0);
    for mark in bytes[16..].chunks(24) {
        let number = |at: usize| u64::from_le_bytes(mark[at..at + 8].try_into().unwrap());
        let (stream, attempt) = (mark[16], mark[17]);
        assert!(number(8) > 1_700_000_000_000 && stream <= 2 && attempt >= 1 && mark[18..] == [0; 6], "{mark:?}");
        let file = match (dir.join(format!("external-{index}.stdout.log")).exists(), stream) {
            (true, 1) => format!("external-{index}.stderr.log"),
            (true, _) => format!("external-{index}.stdout.log"),
            (false, _) => format!("output-{index}.log"),
        };
        assert!(number(0) < fs::metadata(dir.join(file)).unwrap().len());
    }
}

fn check_prompts(world: &World, run: &Run, status: &Value) {
    for path in files_below(&world.root()) {
        let inside = |folder: &str| path.starts_with(run.dir.join(folder));
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        // The agent's own bytes as they came may repeat what it was asked.
        let raw = path.file_name().unwrap().to_str().unwrap().starts_with("raw-");
        let may = raw || inside("subdeck/plan.json") || inside("subdeck/sessions");
        assert!(may || !text.contains(PROMPT), "a prompt is in {}", path.display());
        assert!(path.extension().is_none_or(|e| e != "tmp"), "{} was left behind", path.display());
    }
    for step in status["steps"].as_array().unwrap() {
        let agent = step["runner"].is_null();
        assert_eq!(step.get("description"), agent.then(|| Value::from("[prompt redacted]")).as_ref(), "{step}");
    }
}

/// The status that the events alone give.
fn replayed(run: &Run) -> Value {
    let mut events = Vec::new();
    for line in fs::read(run.dir.join("events.jsonl")).unwrap().split(|b| *b == b'\n') {
        assert!(records::decode(line, &mut events));
    }
    let mut state = RunState::default();
    for event in &events {
        reduce(&mut state, event);
    }
    let dir = RunDir::at(&run.dir);
    // Through the reader, because a status keeps whole milliseconds.
    let bytes = status::encode(&state, &StatusContext { dir: &dir, instance: None });
    let again = decode_status(&bytes).unwrap();
    let on_disk = decode_status(&fs::read(run.dir.join("status.json")).unwrap()).unwrap();
    assert_eq!((again.phase.clone(), again.ended_at), (on_disk.phase, on_disk.ended_at));
    serde_json::from_slice(&bytes).unwrap()
}

/// A status without what is never recorded: output as it comes, and the order and times of activity that it makes.
fn comparable(status: &Value) -> Value {
    let mut status = status.clone();
    for name in ["lastActivityAt", "currentStep"] {
        status.as_object_mut().unwrap().remove(name);
    }
    for name in ["nextSeq", "current"] {
        status["subdeck"].as_object_mut().unwrap().remove(name);
    }
    for step in status["steps"].as_array_mut().unwrap() {
        for name in ["recentOutput", "lastActivityAt"] {
            step.as_object_mut().unwrap().remove(name);
        }
    }
    status
}

#[test]
fn a_single_run() {
    let world = World::new();
    let run = start(&world, &plan(&world, "", &[&[agent(&world, "scout", "quick")]]), &[]);
    let status = check_run(&world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert_eq!((&status["mode"], &status["parallelGroups"]), (&"single".into(), &serde_json::json!([])));
    assert_eq!(status["steps"][0]["recentTools"].as_array().unwrap().len(), 2);
}

#[test]
fn a_parallel_run() {
    let world = World::new();
    let group =
        [agent(&world, "scout", "quick"), command("lint", "echo fine; echo odd >&2"), agent(&world, "writer", "quick")];
    let run = start(&world, &plan(&world, "", &[&group]), &[]);
    let want = Want { state: "complete", exit_code: 0, steps: &["complete", "complete", "complete"] };
    let status = check_run(&world, &run, &want);
    assert_eq!(status["parallelGroups"], serde_json::json!([{ "start": 0, "count": 3, "stepIndex": 0 }]));
    assert_eq!(status["mode"], "parallel");
}

#[test]
fn a_chain_whose_middle_fails() {
    let world = World::new();
    let group = [agent(&world, "worker", "quick"), command("lint", "echo why >&2; exit 3")];
    let steps = [&[agent(&world, "scout", "quick")][..], &group, &[agent(&world, "writer", "quick")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    let want = Want { state: "failed", exit_code: 1, steps: &["complete", "complete", "failed", "pending"] };
    let status = check_run(&world, &run, &want);
    assert_eq!((&status["mode"], &status["chainStepCount"]), (&"chain".into(), &3.into()));
    assert_eq!(status["steps"][2]["exitCode"], 3);
}

#[test]
fn a_stopped_run_with_a_message_that_waits() {
    let world = World::new();
    let group = [agent(&world, "worker", "slow"), command("wait", "trap '' TERM; echo up; while :; do sleep 60; done")];
    let run = start(&world, &plan(&world, "", &[&group, &[agent(&world, "writer", "quick")]]), &[]);
    run.wait("the tool", |s| s["currentTool"] == "bash");
    run.wait_output(1, "up");
    let ids = [("waits", 2), ("astray", 9), ("taken", 0)];
    for (id, target) in ids {
        let request = format!(
            r#"{{"type":"steer","id":"{id}","ts":1764000694800,"message":"Look again.","targetIndex":{target},"source":"test"}}"#
        );
        run.control(&format!("steer-requests/1764000694800-{id}.json"), &request);
    }
    run.wait("all messages", |s| s["steering"]["recent"].as_array().is_some_and(|r| r.len() == 3));
    assert_eq!(world.output(&["stop", run.id()]).code, 0);
    let status =
        check_run(&world, &run, &Want { state: "stopped", exit_code: 1, steps: &["stopped", "stopped", "stopped"] });
    assert_eq!((&status["error"], &status["stopped"]), (&"Subagent stopped by user.".into(), &true.into()));
    let mut notices: Vec<_> =
        run.events_of("subagent.steering.notice").iter().map(|n| n["requestId"].as_str().unwrap().to_owned()).collect();
    notices.sort_unstable();
    assert_eq!(notices[..1], ["astray"], "{notices:?}");
    assert!(notices.contains(&"waits".to_owned()), "{notices:?}");
    let open = status["steering"]["recent"].as_array().unwrap().iter().flat_map(|r| r["targets"].as_array().unwrap());
    let open: Vec<_> =
        open.filter(|t| matches!(t["state"].as_str().unwrap(), "scheduled" | "routed" | "queued")).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_paused_run() {
    let world = World::new();
    let steps = [&[agent(&world, "worker", "slow")][..], &[agent(&world, "writer", "quick")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    run.wait("the tool", |s| s["currentTool"] == "bash");
    assert_eq!(world.output(&["interrupt", run.id()]).code, 0);
    let status = check_run(&world, &run, &Want { state: "paused", exit_code: 0, steps: &["paused", "pending"] });
    assert!(status.get("error").is_none());
    assert_eq!(run.events_of("subagent.run.paused").len(), 1);
}

#[test]
fn a_run_whose_time_is_over() {
    let world = World::new();
    let steps = [&[agent(&world, "worker", "slow")][..], &[command("never", "echo never")]];
    let run = start(&world, &plan(&world, "", &steps), &["--time", "700ms"]);
    let status = check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["failed", "failed"] });
    assert_eq!((&status["timedOut"], &status["timeoutMs"]), (&true.into(), &700.into()));
    assert!(status["deadlineAt"].is_number());
    assert_eq!(run.events_of("subagent.run.timed_out")[0]["timeoutMs"], 700);
}

#[test]
fn a_step_whose_time_is_over() {
    let world = World::new();
    let slow = command("slow", "sleep 60").replace("] } }", "] }, budget = { time = \"200ms\" } }");
    let run = start(&world, &plan(&world, "", &[&[slow], &[command("never", "echo never")]]), &[]);
    let status = check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["failed", "pending"] });
    assert_eq!(status["steps"][0]["timedOut"], true);
    assert!(status.get("timedOut").is_none());
}

#[test]
fn a_lost_run() {
    let world = World::new();
    let steps =
        [&[agent(&world, "scout", "quick")][..], &[agent(&world, "worker", "slow")], &[command("never", "true")]];
    let run = start(&world, &plan(&world, "", &steps), &[]);
    run.wait("the tool", |s| s["steps"][1]["currentTool"] == "bash");
    signal(run.runner_pid(), "-KILL");
    let status =
        check_run(&world, &run, &Want { state: "failed", exit_code: 1, steps: &["complete", "failed", "pending"] });
    assert!(status["error"].as_str().unwrap().contains("SIGKILL"), "{}", status["error"]);
    assert_eq!(run.events_of("subagent.run.repaired_stale").len(), 1);
    let result = document(&world.root().join(format!("async-subagent-results/{}.json", run.id())));
    assert_eq!(result["results"][0]["output"], "Two files.", "what a step had said is not lost with the runner");
}

/// A step of a runner config with a task that may be written nowhere.
fn asked(more: Value) -> Value {
    let mut step = step(more);
    step["task"] = PROMPT.into();
    step
}

#[test]
fn a_run_that_needed_somebody_and_went_on() {
    let scene = Scene::new(&[concat!(
        "open A contact_supervisor {\"reason\":\"need_decision\"}\nuntil one\nclose A -\n",
        "open B bash {\"command\":\"make\"}\nwait 700\nclose B -\n",
        "open E1 edit {\"path\":\"a\"}\nbroke E1 edit no\nopen E2 edit {\"path\":\"a\"}\nbroke E2 edit no\nsay fine"
    )]);
    let control = json!({ "controlConfig": { "activeNoticeAfterMs": 400, "failedToolAttemptsBeforeAttention": 2 } });
    let run = scene.detach(&scene.config(&[asked(json!({}))], control));
    run.wait("attention", |s| s["activityState"] == "needs_attention");
    scene.touch("one");
    let status = check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert!(status["steps"][0].get("activityState").is_none());
    let reasons: Vec<_> = run.events_of("subagent.control").iter().map(|e| e["event"]["reason"].clone()).collect();
    for reason in ["supervisor_request", "tool_open_threshold", "tool_failures"] {
        assert!(reasons.contains(&reason.into()), "{reason}: {reasons:?}");
    }
}

#[test]
fn runs_that_are_over_their_budgets() {
    for (scripts, step, more, want) in [
        (
            ["turn 1 1 0\nturn 1 1 0\nopen A bash\nclose A bash\nhang", "say never"],
            json!({}),
            json!({ "turnBudget": { "maxTurns": 1, "graceTurns": 1 } }),
            ["failed", "pending"],
        ),
        (
            ["say_at 600 500 0.5 big", "say never"],
            json!({}),
            json!({ "usageBudget": { "tokens": { "soft": 10, "hard": 1000 }, "costUsd": { "hard": 5 } } }),
            ["complete", "pending"],
        ),
        (["open A bash\nhang", "say never"], json!({ "toolTimeoutMs": 500 }), json!({}), ["failed", "pending"]),
    ] {
        let scene = Scene::new(&scripts);
        let run = scene.detach(&scene.config(&[asked(step), asked(json!({}))], more));
        check_run(&scene.world, &run, &Want { state: "failed", exit_code: 1, steps: &want });
    }
    // The calls of a runner config are counted, and a guard inside the agent sees to the limit.
    let scene = Scene::new(&["open A read\nclose A read\nopen B read\nclose B read\nsay fine", "say done"]);
    let steps = [asked(json!({ "toolBudget": { "soft": 1, "hard": 1 } })), asked(json!({}))];
    let run = scene.detach(&scene.config(&steps, json!({})));
    check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete", "complete"] });
}

#[test]
fn a_run_whose_step_was_tried_again() {
    let scene = Scene::new(&["say fine"]);
    let refused = concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"503"}}"#,
        "\n{\"type\":\"agent_settled\"}"
    );
    scene.script("0.1", refused);
    let run = scene.detach(&scene.config(&[asked(json!({ "modelCandidates": ["a/one", "b/two"] }))], json!({})));
    let status = check_run(&scene.world, &run, &Want { state: "complete", exit_code: 0, steps: &["complete"] });
    assert_eq!(status["steps"][0]["modelAttempts"].as_array().unwrap().len(), 2);
    assert_eq!(run.events_of("subdeck.attempt.ended").len(), 1);
}
