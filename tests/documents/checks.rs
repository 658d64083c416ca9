//! What every document of a run has to be, whatever its kind.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use subdeck::run::{RunState, reduce};
use subdeck::rundir::{RunDir, StatusContext, decode_status, records, status};

use crate::PROMPT;
use crate::support::{Run, World, files_below, wait_for};
use crate::tables::{
    CAPABILITY, INBOX_CLOSED, RESULT, RESULT_INDEX, RUN, RUNNER_JSON, TERMINAL_ENTRY, check_record, check_table,
};

/// What a run must look like once it has ended.
pub struct Want<'s> {
    pub state: &'static str,
    pub exit_code: i64,
    pub steps: &'s [&'static str],
}

/// Waits for the end, with both eyes on the files, and checks everything that is there.
pub fn check_run(world: &World, run: &Run, want: &Want<'_>) -> Value {
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
pub fn watch_until_end(world: &World, run: &Run) {
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

pub fn has_result(world: &World, run: &Run, status: &Value) -> bool {
    let results = world.root().join("async-subagent-results");
    let name = format!("{}.json", run.id());
    let session = status["sessionId"].as_str().unwrap();
    let public = results.join(&name);
    let pending = results.join("result-pending").join(session).join(&name);
    let entry = results.join("result-index/sessions").join(session).join(&name);
    // The pending one becomes the public one, so whoever misses both looks at the public one again.
    entry.exists() && (public.exists() || pending.exists() || public.exists())
}

pub fn document(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}"), "{} is not in the shared style", path.display());
    assert!(!has_null(&value), "{}", path.display());
    value
}

/// Absent, not null; but for the two fields that may be (run-directory 0).
pub fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => {
            fields.iter().any(|(k, v)| !matches!(k.as_str(), "exitCode" | "processSignal") && has_null(v))
        }
        _ => false,
    }
}

pub fn check_status(run: &Run, status: &Value) {
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

pub fn check_events(run: &Run, status: &Value) {
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

pub fn check_result(world: &World, run: &Run, status: &Value, want: &Want<'_>) {
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

pub fn check_indexes(world: &World, run: &Run, status: &Value) {
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

pub fn check_control(run: &Run, status: &Value) {
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

pub fn check_own(run: &Run) {
    let own = run.dir.join("subdeck");
    let runner = document(&own.join("runner.json"));
    check_table(&runner, RUNNER_JSON, "runner.json");
    assert_eq!(runner["pid"], run.status()["pid"]);
    assert!(own.join("runner.lock").exists());
    let plan = json_with_nulls(&own.join("plan.json"));
    assert_eq!(plan["version"], 1);
    assert!(run.dir.join("runner.stdout.log").exists() && run.dir.join("runner.stderr.log").exists());
}

pub fn json_with_nulls(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub fn check_logs(run: &Run, status: &Value) {
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
pub fn check_marks(dir: &Path, index: usize) {
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

pub fn check_prompts(world: &World, run: &Run, status: &Value) {
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
pub fn replayed(run: &Run) -> Value {
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
pub fn comparable(status: &Value) -> Value {
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
