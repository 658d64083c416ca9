//! Each document is checked field by field against the tables of run-directory 2.1, 2.1.1 and 5, for every way a run
//! can end.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::*;
use crate::rundir::{ResultContext, RunDir, RunRoot, StatusContext, Writer, result, status};

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Words(&'static [&'static str]),
    Int,
    Number,
    True,
    Bool,
    IntOrNull,
    TextOrNull,
    Path,
    List,
    Object,
    /// An object with exactly these fields, of these kinds.
    Shape(&'static [(&'static str, Kind, bool)]),
    /// A list of such objects.
    Shapes(&'static [(&'static str, Kind, bool)]),
}

use Kind::{Bool, Int, IntOrNull, List, Number, Object, Path, Shape, Shapes, Text, TextOrNull, True, Words};

type Table = &'static [(&'static str, Kind, bool)];

const STATES: &[&str] = &["queued", "running", "complete", "failed", "paused", "stopped", "rejected"];
const STEP_STATES: &[&str] = &["pending", "running", "complete", "failed", "paused", "stopped", "rejected"];

const TOKENS: Table = &[("input", Int, true), ("output", Int, true), ("total", Int, true)];
const COST: Table = &[("inputTokens", Int, true), ("outputTokens", Int, true), ("costUsd", Number, true)];
const USAGE: Table = &[
    ("input", Int, true),
    ("output", Int, true),
    ("cacheRead", Int, true),
    ("cacheWrite", Int, true),
    ("cost", Number, true),
    ("turns", Int, true),
];
const ATTEMPT: Table = &[
    ("model", Text, true),
    ("success", Bool, true),
    ("exitCode", Int, false),
    ("error", Text, false),
    ("usage", Shape(USAGE), false),
];
const TARGET: Table = &[
    ("index", Int, true),
    ("state", Words(&["scheduled", "routed", "queued", "delivered", "late", "failed", "recovered"]), true),
    ("routedAt", Number, false),
    ("deliveredAt", Number, false),
    ("lateDeliveredAt", Number, false),
    ("failedAt", Number, false),
    ("reason", Text, false),
];
const REQUEST: Table = &[
    ("id", Text, true),
    ("requestedAt", Number, true),
    ("source", Text, false),
    ("messagePreview", Text, true),
    ("targets", Shapes(TARGET), true),
];
const STEERING: Table = &[
    ("requested", Int, true),
    ("scheduled", Int, true),
    ("pending", Int, true),
    ("delivered", Int, true),
    ("failed", Int, true),
    ("recovered", Int, true),
    ("lastRequestedAt", Number, false),
    ("lastDeliveredAt", Number, false),
    ("recent", Shapes(REQUEST), true),
];
const CAPABILITIES: Table = &[
    ("stop", Bool, true),
    ("steer", Bool, true),
    ("resume", Bool, true),
    ("structuredOutput", Bool, true),
    ("toolEvents", Bool, true),
];
const RUNNER: Table = &[
    ("type", Words(&["external-cli"]), true),
    ("command", Text, true),
    ("args", List, true),
    ("promptDelivery", Words(&["stdin"]), true),
    ("capabilities", Shape(CAPABILITIES), true),
];
const EXTERNAL: Table = &[
    ("pid", Int, false),
    ("startedAt", Number, true),
    ("endedAt", Number, false),
    ("durationMs", Int, false),
    ("exitCode", IntOrNull, false),
    ("processSignal", TextOrNull, false),
    ("stdoutPath", Path, true),
    ("stderrPath", Path, true),
];
const TOOL: Table = &[("tool", Text, true), ("args", Text, true), ("endMs", Number, true)];
const GROUP: Table = &[("start", Int, true), ("count", Int, true), ("stepIndex", Int, true)];
const PROOF: Table = &[
    ("version", Int, true),
    ("state", Words(&["pending"]), true),
    ("runId", Text, true),
    ("childIndex", Int, false),
    ("runnerProcessInstanceId", Text, true),
];

/// run-directory 2.1.1
const STEP: Table = &[
    ("agent", Text, true),
    ("status", Words(STEP_STATES), true),
    ("description", Words(&["[prompt redacted]"]), false),
    ("phase", Text, false),
    ("label", Text, false),
    ("runner", Shape(RUNNER), false),
    ("externalProcess", Shape(EXTERNAL), false),
    ("sessionFile", Path, false),
    ("lastActivityAt", Number, false),
    ("currentTool", Text, false),
    ("currentToolArgs", Text, false),
    ("currentToolStartedAt", Number, false),
    ("currentPath", Text, false),
    ("recentTools", Shapes(TOOL), false),
    ("recentOutput", List, false),
    ("turnCount", Int, false),
    ("toolCount", Int, false),
    ("startedAt", Number, false),
    ("endedAt", Number, false),
    ("durationMs", Int, false),
    ("exitCode", Int, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("tokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("model", Text, false),
    ("thinking", Text, false),
    ("attemptedModels", List, false),
    ("modelAttempts", Shapes(ATTEMPT), false),
    ("steering", Shape(STEERING), false),
    ("error", Text, false),
    ("processTerminal", Shape(PROOF), false),
    ("subdeck", Object, false),
];

/// run-directory 2.1
const RUN: Table = &[
    ("lifecycleArtifactVersion", Int, true),
    ("runId", Text, true),
    ("sessionId", Text, false),
    ("completionOwnerId", Text, false),
    ("mode", Words(&["single", "parallel", "chain"]), true),
    ("state", Words(STATES), true),
    ("error", Text, false),
    ("lastActivityAt", Number, true),
    ("currentTool", Text, false),
    ("currentToolStartedAt", Number, false),
    ("currentPath", Text, false),
    ("turnCount", Int, false),
    ("toolCount", Int, false),
    ("steering", Shape(STEERING), true),
    ("startedAt", Number, true),
    ("endedAt", Number, false),
    ("lastUpdate", Number, true),
    ("timeoutMs", Int, false),
    ("deadlineAt", Number, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("pid", Int, true),
    ("cwd", Path, true),
    ("currentStep", Int, true),
    ("chainStepCount", Int, true),
    ("parallelGroups", Shapes(GROUP), true),
    ("processTerminal", Shape(PROOF), false),
    ("steps", Shapes(STEP), true),
    ("outputFile", Path, true),
    ("totalTokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("sessionFile", Path, false),
    ("outputs", Object, false),
    ("subdeck", Object, false),
];

const RESULT_ENTRY: Table = &[
    ("agent", Text, true),
    ("output", Text, true),
    ("outputState", Words(&["present", "absent", "unknown"]), false),
    ("success", Bool, true),
    ("error", Text, false),
    ("skipped", True, false),
    ("interrupted", True, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("sessionFile", Path, false),
    ("model", Text, false),
    ("attemptedModels", List, false),
    ("modelAttempts", Shapes(ATTEMPT), false),
    ("totalCost", Shape(COST), false),
    ("runner", Shape(RUNNER), false),
    ("externalProcess", Shape(EXTERNAL), false),
    ("subdeck", Object, false),
];

/// run-directory 5
const RESULT: Table = &[
    ("lifecycleArtifactVersion", Int, true),
    ("id", Text, true),
    ("agent", Text, true),
    ("mode", Text, true),
    ("success", Bool, true),
    ("state", Words(&["complete", "failed", "paused", "stopped"]), true),
    ("summary", Text, true),
    ("error", Text, false),
    ("timedOut", True, false),
    ("stopped", True, false),
    ("timeoutMs", Int, false),
    ("deadlineAt", Number, false),
    ("results", Shapes(RESULT_ENTRY), true),
    ("outputs", Object, true),
    ("exitCode", Int, true),
    ("timestamp", Number, true),
    ("durationMs", Int, true),
    ("totalTokens", Shape(TOKENS), false),
    ("totalCost", Shape(COST), false),
    ("truncated", Bool, true),
    ("cwd", Path, true),
    ("asyncDir", Path, true),
    ("sessionId", Text, true),
    ("completionOwnerId", Text, false),
    ("sessionFile", Path, false),
];

fn check(value: &Value, kind: Kind, at: &str) {
    let ok = match kind {
        Text => value.is_string(),
        Words(words) => value.as_str().is_some_and(|w| words.contains(&w)),
        Int => value.is_i64() || value.is_u64(),
        Number => value.is_number(),
        True => value == &Value::Bool(true),
        Bool => value.is_boolean(),
        IntOrNull => value.is_null() || value.is_i64(),
        TextOrNull => value.is_null() || value.is_string(),
        Path => value.as_str().is_some_and(|p| p.starts_with('/')),
        List => value.is_array(),
        Object => value.is_object(),
        Shape(table) => {
            check_table(value, table, at);
            true
        }
        Shapes(table) => {
            for (n, item) in value.as_array().unwrap().iter().enumerate() {
                check_table(item, table, &format!("{at}[{n}]"));
            }
            true
        }
    };
    assert!(ok, "{at} is not {kind:?}: {value}");
}

fn check_table(value: &Value, table: Table, at: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("{at} is no object: {value}"));
    for (name, value) in object {
        let known = table.iter().find(|(n, ..)| n == name);
        let (_, kind, _) = known.unwrap_or_else(|| panic!("{at}.{name} is not in the table"));
        check(value, *kind, &format!("{at}.{name}"));
    }
    for (name, _, required) in table {
        assert!(!required || object.contains_key(*name), "{at}.{name} is missing");
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_764_000_000_000 + ms)
}

/// A run of a single step, a group of an agent and a command, and a last step, until before its end.
fn under_way() -> RunState {
    let command = RunnerKind::ExternalCli { command: "make".into(), args: vec!["-j".into()] };
    let step = |key: &str, logical, runner| StepMeta {
        key: key.into(),
        agent: key.into(),
        label: Some(key.to_uppercase()),
        phase: Some("build".into()),
        logical,
        runner,
        thinking: Some("low".into()),
        session_file: Some(format!("/sessions/{key}.jsonl")),
        has_task: true,
        ..StepMeta::default()
    };
    let meta = RunMeta {
        id: RunId("5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001".into()),
        name: Some("demo".into()),
        session_id: Some("/home/demo/parent.jsonl".into()),
        owner_id: Some("owner".into()),
        mode: RunMode::Chain,
        pid: Some(40211),
        cwd: "/home/demo/project".into(),
        timeout_ms: Some(60_000),
        deadline_at: Some(at(60_000)),
        steps: vec![
            step("scout", 0, RunnerKind::Pi),
            step("worker", 1, RunnerKind::Pi),
            step("lint", 1, command),
            step("writer", 2, RunnerKind::Pi),
        ],
        groups: vec![Group { start: 1, count: 2, logical: 1 }],
        logical_count: 3,
        ..RunMeta::default()
    };
    let mut state = RunState::default();
    let mut now = 0;
    let mut happen = |what: What| {
        now += 10;
        reduce(&mut state, &Event { at: at(now), what });
    };
    let say = |step: u32, event| What::Agent { step: StepId(step), event };
    let start = |call: &str, tool: &str| AgentEvent::ToolStarted {
        call: Some(call.into()),
        tool: tool.into(),
        args: "src/lib.rs".into(),
        path: Some("src/lib.rs".into()),
    };
    happen(What::RunStarted(Box::new(meta)));
    happen(What::StepStarted { step: StepId(0) });
    happen(What::AttemptStarted { step: StepId(0), attempt: 1, model: Some("demo/small".into()), reason: None });
    happen(What::ChildSpawned { step: StepId(0), pid: 7, start_ticks: Some(3) });
    happen(say(0, start("c1", "read")));
    happen(say(
        0,
        AgentEvent::ToolEnded { call: Some("c1".into()), tool: None, outcome: ToolOutcome::Ok, preview: "x".into() },
    ));
    happen(say(
        0,
        AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: "Found it.".into(),
            model: Some("demo/small".into()),
            stop: Some(StopReason::Stop),
            usage: Some(Usage {
                tokens: Tokens { input: 5400, output: 310, cache_read: 9, cache_write: 1 },
                cost: Some(CostUsd(0.0184)),
            }),
            error: None,
            calls_tools: false,
        },
    ));
    happen(What::OutputLines { step: StepId(0), lines: vec!["Found it.".into()] });
    let output = NamedOutput { text: "Found it.".into(), agent: "scout".into(), logical: 0 };
    let outcome =
        StepOutcome { phase: StepPhase::Complete, output: Some(("scout".into(), output)), ..StepOutcome::default() };
    happen(What::StepEnded { step: StepId(0), outcome: Box::new(outcome) });
    happen(What::StepStarted { step: StepId(1) });
    happen(What::AttemptStarted { step: StepId(1), attempt: 1, model: None, reason: None });
    happen(say(1, start("c2", "edit")));
    happen(What::StepStarted { step: StepId(2) });
    happen(What::ChildSpawned { step: StepId(2), pid: 9, start_ticks: None });
    let target = |step: u32, state| SteerTarget {
        step: StepId(step),
        state,
        routed_at: None,
        delivered_at: None,
        failed_at: None,
        reason: None,
    };
    let request = SteerRequest {
        id: "r1".into(),
        requested_at: at(1),
        source: Some("deck".into()),
        mode: SteerMode::Steer,
        message: String::new(),
        preview: "Look again.".into(),
        targets: vec![target(1, TargetState::Routed), target(3, TargetState::Scheduled)],
    };
    happen(What::SteerRequested(Box::new(request)));
    let moved = |step: u32, to| What::SteerMoved { id: "r1".into(), step: StepId(step), to, detail: Some("so".into()) };
    happen(moved(1, TargetState::Delivered));
    happen(moved(3, TargetState::Failed));
    state
}

/// The same run, ended in each way.
fn ends() -> Vec<(&'static str, RunState)> {
    let message = "Subagent stopped by user.";
    let ways: [(&str, Option<What>, RunPhase, StepPhase); 5] = [
        ("complete", None, RunPhase::Complete, StepPhase::Complete),
        ("failed", None, RunPhase::Failed, StepPhase::Failed),
        (
            "stopped",
            Some(What::RunStopped { message: message.into(), source: None }),
            RunPhase::Stopped,
            StepPhase::Stopped,
        ),
        ("paused", Some(What::RunInterrupted { source: None }), RunPhase::Paused, StepPhase::Paused),
        (
            "timed out",
            Some(What::RunTimedOut {
                timeout_ms: Some(60_000),
                message: "Subagent timed out after 60000ms.".into(),
                source: None,
            }),
            RunPhase::Failed,
            StepPhase::Failed,
        ),
    ];
    ways.into_iter()
        .map(|(name, asked, run, phase)| {
            let mut state = under_way();
            let mut now = 1000;
            let mut happen = |what: What| {
                now += 10;
                reduce(&mut state, &Event { at: at(now), what });
            };
            if let Some(asked) = asked {
                happen(asked);
            }
            for step in [1, 2] {
                let code = i32::from(phase == StepPhase::Failed);
                happen(What::ChildExited { step: StepId(step), exit: ExitInfo { code: Some(code), signal: None } });
                let outcome = StepOutcome {
                    phase: phase.clone(),
                    exit_code: i32::from(!matches!(phase, StepPhase::Complete | StepPhase::Paused)),
                    error: (phase == StepPhase::Failed).then(|| "it broke".into()),
                    timed_out: name == "timed out",
                    stopped: name == "stopped",
                    ..StepOutcome::default()
                };
                happen(What::StepEnded { step: StepId(step), outcome: Box::new(outcome) });
            }
            let error = verdict(&state).error;
            reduce(&mut state, &Event { at: at(2000), what: What::RunEnded { state: run, error } });
            (name, state)
        })
        .collect()
}

fn status_of(state: &RunState) -> Value {
    let dir = RunDir::at("/r/async-subagent-runs/5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001");
    let bytes = status::encode(state, &StatusContext { dir: &dir, instance: Some("instance") });
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_status_has_the_fields_of_the_table_in_every_state() {
    check_table(&status_of(&under_way()), RUN, "running");
    for (name, state) in ends() {
        let value = status_of(&state);
        check_table(&value, RUN, name);
        assert!(value["endedAt"].is_number(), "{name}");
        assert_eq!(
            value["steps"][3]["status"],
            if matches!(name, "stopped") {
                "stopped"
            } else if name == "timed out" {
                "failed"
            } else {
                "pending"
            },
            "{name}"
        );
    }
}

#[test]
fn a_status_says_what_happens_now() {
    let value = status_of(&under_way());
    assert_eq!(value["currentTool"], "edit");
    assert_eq!(value["steps"][1]["currentToolArgs"], "src/lib.rs");
    assert_eq!(value["toolCount"], 2);
    assert_eq!(value["steps"][0]["tokens"], serde_json::json!({"input": 5400, "output": 310, "total": 5710}));
    assert_eq!(value["outputFile"], "/r/async-subagent-runs/5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001/output-2.log");
    assert_eq!(value["parallelGroups"], serde_json::json!([{"start": 1, "count": 2, "stepIndex": 1}]));
    assert_eq!(value["steering"]["recent"][0]["targets"][1]["state"], "failed");
    assert!(value["steps"][2]["externalProcess"]["stderrPath"].as_str().unwrap().ends_with("/external-2.stderr.log"));
    assert!(value["steps"][3].get("durationMs").is_none());
}

/// The words of the flags and codes, by the way the run ended (run-directory 8.3).
#[test]
fn a_result_has_the_fields_of_the_table_in_every_state() {
    let expected: BTreeMap<&str, (bool, i64, &str)> = BTreeMap::from([
        ("complete", (true, 0, "scout:\nFound it.\n\nworker:\n\n\nlint:\n")),
        ("failed", (false, 1, "scout:\nFound it.\n\nworker:\n\n\nlint:\n")),
        ("stopped", (false, 1, "Subagent stopped by user.")),
        ("paused", (false, 0, "scout:\nFound it.\n\nworker:\n\n\nlint:\n")),
        ("timed out", (false, 1, "Subagent timed out after 60000ms.")),
    ]);
    for (name, state) in ends() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let dir = RunDir::create(&root, &state.id).unwrap();
        let texts = BTreeMap::from([(StepId(0), "Found it.".to_owned())]);
        let context = ResultContext { dir: dir.clone(), results: root.results(), public: None, texts };
        let mut writer = Writer::default();
        let steps = context.steps(&state, at(1)).unwrap();
        let key = root.results();
        writer.perform(&key, steps.clone().leave_pending(), at(1)).unwrap();
        let public = root.results().join(format!("{}.json", state.id.as_str()));
        assert!(!public.exists(), "pending is not public");
        assert_eq!(result::outputs(&dir, &state).get(&StepId(0)).map(String::as_str), Some("Found it."));
        writer.perform(&key, [steps.publish.clone()], at(2)).unwrap();
        let value: Value = serde_json::from_slice(&std::fs::read(&public).unwrap()).unwrap();
        check_table(&value, RESULT, name);
        let (success, code, summary) = expected[name];
        assert_eq!((&value["success"], &value["exitCode"]), (&Value::from(success), &Value::from(code)), "{name}");
        assert!(value["summary"].as_str().unwrap().starts_with(summary), "{name}: {}", value["summary"]);
        assert_eq!(value["agent"], "chain:scout->worker->lint->writer");
        assert_eq!(result::outputs(&dir, &state).get(&StepId(0)).map(String::as_str), Some("Found it."));
        let folder = crate::rundir::segment::folder("/home/demo/parent.jsonl");
        let index =
            root.results().join("result-index/sessions").join(folder).join(format!("{}.json", state.id.as_str()));
        let entry: Value = serde_json::from_slice(&std::fs::read(index).unwrap()).unwrap();
        assert_eq!(entry["file"], format!("{}.json", state.id.as_str()));
        assert_eq!(entry["sessionId"], "/home/demo/parent.jsonl");
        assert!(root.results().join("result-index/runs").join(format!("{}.json", state.id.as_str())).exists());
    }
}

#[test]
fn a_result_is_taken_back_as_it_was_left() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let (_, state) = ends().remove(0);
    let dir = RunDir::create(&root, &state.id).unwrap();
    let context = ResultContext::of_run(&dir, None);
    assert_eq!(context.results, root.results());
    let steps = context.steps(&state, at(0)).unwrap();
    let mut writer = Writer::default();
    writer.perform(temp.path(), steps.clone().leave_pending(), at(0)).unwrap();
    assert!(steps.pending.path().exists() && steps.session_entry.path().exists());
    writer.perform(temp.path(), steps.withdraw(), at(0)).unwrap();
    for op in [&steps.pending, &steps.session_entry, &steps.run_entry] {
        assert!(!op.path().exists(), "{op:?}");
    }
}

#[test]
fn a_result_goes_where_it_was_asked_for_and_needs_a_session() {
    let dir = RunDir::at("/elsewhere/r");
    let (_, mut state) = ends().remove(0);
    let asked = ResultContext::of_run(&dir, Some(std::path::Path::new("/wanted/out.json")));
    assert_eq!(asked.steps(&state, at(0)).unwrap().publish.path(), std::path::Path::new("/wanted/out.json"));
    let own = ResultContext::of_run(&dir, None);
    assert_eq!(own.results, std::path::Path::new("/elsewhere/r/results"));
    state.session_id = None;
    assert_eq!(own.steps(&state, at(0)), None);
}
