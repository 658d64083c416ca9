//! Each document is checked field by field against the tables of run-directory 2.1, 2.1.1 and 5, for every way a run
//! can end.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::*;
use crate::rundir::{ResultContext, RunDir, RunRoot, StatusContext, Writer, result_read, status, status_read};

#[path = "../../../tests/support/tables/mod.rs"]
mod tables;

use tables::{RESULT, RUN, check_table};

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
        about: Default::default(),
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
    happen(What::OutputLines { step: StepId(0), lines: vec!["Found it.".into()], open: false });
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

#[test]
fn sub_agents_are_read_back_as_they_were() {
    let mut state = under_way();
    let call = SubCall { tool: "grep".to_owned(), args: "x".to_owned() };
    let whole = SubAgent {
        id: "a".to_owned(),
        name: "scout".to_owned(),
        about: "look".to_owned(),
        model: Some("m".to_owned()),
        started_at: Timestamp::from_millis(5),
        ended_at: Some(Timestamp::from_millis(9)),
        outcome: Some(ToolOutcome::Cancelled),
        tool: Some(call),
        open: 2,
        tool_count: 3,
        tokens: Some(70),
        last_message: Some("found".to_owned()),
    };
    state.steps[1].sub_agents = vec![whole, SubAgent { id: "b".to_owned(), ..SubAgent::default() }];
    let dir = RunDir::at("/r/async-subagent-runs/x");
    let bytes = status::encode(&state, &StatusContext { dir: &dir, instance: None });
    let read = status_read::decode(&bytes).unwrap();
    assert_eq!(read.steps[1].sub_agents, state.steps[1].sub_agents);
    assert!(read.steps[0].sub_agents.is_empty());
}

/// The words of the flags and codes, by the way the run ended (run-directory 8.3).
#[test]
fn a_result_has_the_fields_of_the_table_in_every_state() {
    let expected: BTreeMap<&str, (bool, i64, &str)> = BTreeMap::from([
        ("complete", (true, 0, "scout:\nFound it.\n\nworker:\n\n\nlint:\n")),
        ("failed", (false, 1, "scout:\nFound it.\n\nworker:\n\n\nlint:\n")),
        ("stopped", (false, 1, "Subagent stopped by user.")),
        ("paused", (false, 0, "Paused by an interrupt; it goes on when somebody resumes it.")),
        ("timed out", (false, 1, "Subagent timed out after 60000ms.")),
    ]);
    for (name, state) in ends() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let dir = RunDir::create(&root, &state.id).unwrap();
        let texts = BTreeMap::from([(StepId(0), "Found it.".to_owned())]);
        let context = ResultContext { dir: dir.clone(), results: root.results(), public: None, texts, most: None };
        let mut writer = Writer::default();
        let steps = context.steps(&state, at(1)).unwrap();
        let key = root.results();
        writer.perform(&key, steps.clone().leave_pending(), at(1)).unwrap();
        let public = root.results().join(format!("{}.json", state.id.as_str()));
        assert!(!public.exists(), "pending is not public");
        assert_eq!(result_read::outputs(&dir, &state).get(&StepId(0)).map(String::as_str), Some("Found it."));
        writer.perform(&key, [steps.publish.clone()], at(2)).unwrap();
        let value: Value = serde_json::from_slice(&std::fs::read(&public).unwrap()).unwrap();
        check_table(&value, RESULT, name);
        let (success, code, summary) = expected[name];
        assert_eq!((&value["success"], &value["exitCode"]), (&Value::from(success), &Value::from(code)), "{name}");
        assert!(value["summary"].as_str().unwrap().starts_with(summary), "{name}: {}", value["summary"]);
        assert_eq!(value["agent"], "chain:scout->worker->lint->writer");
        assert_eq!(result_read::outputs(&dir, &state).get(&StepId(0)).map(String::as_str), Some("Found it."));
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
