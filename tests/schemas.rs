//! What the program prints for scripts agrees with the schemas that it publishes, for every way a run can end.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use jsonschema::Validator;
use serde_json::Value;
use subdeck::headless::{json_event, json_line, json_output, status_json};
use subdeck::run::{
    AgentEvent, AgentKind, Answer, AnsweredBy, Artifact, Asking, Attempt, Choice, Condition, ControlSource, CostUsd,
    End, Ending, EndingCause, Event, ExitInfo, Family, InnerRun, Limit, Limits, MessageRole, Metric, NextAttempt,
    Notice, OpenCall, Permission, Question, Raise, Reason, Retrying, RunId, RunMeta, RunPhase, RunState, RunnerKind,
    Stage, SteerMode, SteerRequest, SteerTarget, Steerable, StepId, StepMeta, StepOutcome, StepPhase, Stream, SubAgent,
    SubAgentDid, SubCall, TargetState, Timestamp, Tokens, ToolOutcome, Transport, TurnLimit, UnknownKind, Unknowns,
    Usage, What, reduce,
};
use subdeck::rundir::LogLine;
use support::{Done, Run, World, wait_for};

fn inner_run() -> InnerRun {
    let at = Timestamp::from_millis(2);
    let needs = Some(("n".to_owned(), at));
    InnerRun { id: RunId("r".into()), title: "t".into(), started_at: at, heard: at, needs }
}

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

#[test]
fn every_kind_of_event_is_in_the_schema_with_all_that_it_can_carry() {
    let validator = validator("events");
    let mut state = RunState::default();
    reduce(&mut state, &at(What::RunStarted(Box::new(meta()))));
    let mut seen = std::collections::BTreeSet::new();
    for what in every_what() {
        let Some(value) = json_event(&state, &at(what.clone())) else { panic!("{what:?} is not printed") };
        assert!(validator.is_valid(&value), "no event of the schema: {value:#}");
        seen.insert(value["type"].as_str().unwrap().to_owned());
    }
    let schema: Value = serde_json::from_str(include_str!("../assets/schema/events.json")).unwrap();
    let published: std::collections::BTreeSet<String> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["$ref"].as_str().unwrap().trim_start_matches("#/$defs/").to_owned())
        .collect();
    let log = log_line();
    let output = json_output(&state, StepId(0), &log);
    let line = serde_json::to_value(&output).unwrap();
    assert_eq!(json_line(&output), json_line(&line), "its keys stand where those of every line stand");
    assert!(validator.is_valid(&line), "no event of the schema: {line:#}");
    seen.insert(line["type"].as_str().unwrap().to_owned());
    assert_eq!(seen, published);
}

fn log_line() -> LogLine {
    LogLine {
        start: 0,
        end: 2,
        bytes: vec![b't', 0xff],
        stream: Stream::Err,
        at: Some(Timestamp::from_millis(1_764_000_000_000)),
        attempt: 1,
        cut: true,
        complete: false,
    }
}

fn at(what: What) -> Event {
    Event { at: Timestamp::from_millis(1_764_000_000_000), what }
}

fn meta() -> RunMeta {
    let step = StepMeta { key: "a".into(), agent: "a".into(), label: Some("A".into()), ..StepMeta::default() };
    RunMeta {
        id: RunId("r".into()),
        name: Some("n".into()),
        pid: Some(1),
        cwd: "/".into(),
        timeout_ms: Some(5),
        steps: vec![step, StepMeta { label: None, ..StepMeta::default() }],
        logical_count: 2,
        ..RunMeta::default()
    }
}

fn question() -> Question {
    let choice = Choice { id: "o".into(), label: "Yes".into(), kind: "allow_once".into() };
    Question {
        id: "q1".into(),
        asking: Asking {
            id: "7".into(),
            text: "May it?".into(),
            tool: Some("Bash".into()),
            args: "make".into(),
            call: Some("c".into()),
            choices: vec![choice],
            ..Asking::default()
        },
        asked_at: Timestamp::from_millis(1),
        until: Some(Timestamp::from_millis(2)),
    }
}

/// Every event that is printed, with everything it can carry, and the bare form where much of it may be missing.
fn every_what() -> Vec<What> {
    let step = StepId(0);
    let text = || "t".to_owned();
    let source = Some(ControlSource {
        via: text(),
        user: Some(text()),
        pid: Some(1),
        tty: Some(text()),
        key: Some(text()),
        reason: Some(text()),
    });
    let usage = Usage { tokens: Tokens { input: 1, ..Tokens::default() }, cost: Some(CostUsd(0.5)) };
    let message = |usage, text: &str| AgentEvent::Message {
        role: MessageRole::Assistant,
        preview: text.to_owned(),
        model: Some(text.to_owned()),
        stop: None,
        usage,
        error: Some(text.to_owned()),
        calls_tools: true,
    };
    let mut all = vec![
        What::RunStarted(Box::new(meta())),
        What::RunStarted(Box::default()),
        What::StepStarted { step },
        What::GroupStarted { logical: 0 },
        What::GroupEnded { logical: 0, success: true },
        What::AttemptStarted { step, attempt: 2, model: Some(text()), reason: Some(text()) },
        What::ChildSpawned { step, pid: 1, start_ticks: None },
        What::ChildExited { step, exit: ExitInfo { code: Some(1), signal: Some(9) } },
        What::ChildExited { step, exit: ExitInfo::default() },
        What::OutputHeld { step, pids: vec![1] },
        What::OutputTruncated { step, stream: Stream::Err, cap: 1 },
        What::LogFailed { step, error: text() },
        What::ArtifactFailed { step, which: Artifact::Transcript, error: text() },
        What::StepEnded {
            step,
            outcome: Box::new(StepOutcome {
                phase: StepPhase::Failed,
                exit_code: 1,
                error: Some(text()),
                timed_out: true,
                signal: Some(9),
                acceptance: Some(Box::default()),
                ..StepOutcome::default()
            }),
        },
        What::QuestionAsked { step, question: Box::new(question()) },
        What::QuestionAsked { step, question: Box::default() },
        What::QuestionAnswered {
            step,
            id: text(),
            text: text(),
            answer: Answer::Deny(Some(text())),
            by: AnsweredBy::Person,
            source: source.clone(),
        },
        What::QuestionAnswered {
            step,
            id: text(),
            text: text(),
            answer: Answer::Text(text()),
            by: AnsweredBy::Gone,
            source: None,
        },
        What::RunInterrupted { source: source.clone() },
        What::RunStopped { message: text(), source: source.clone() },
        What::RunTimedOut { timeout_ms: Some(1), message: text(), source: None },
        What::SteerRequested(Box::new(SteerRequest {
            id: text(),
            requested_at: Timestamp::from_millis(1),
            source: Some(text()),
            mode: SteerMode::Auto,
            message: text(),
            preview: text(),
            targets: vec![SteerTarget {
                step,
                state: TargetState::Routed,
                routed_at: None,
                delivered_at: None,
                failed_at: None,
                reason: None,
            }],
        })),
        What::ControlRejected { file: text(), reason: text(), set_aside: true },
        What::ControlUnannounced { step: Some(StepId(0)), what: text(), source: source.clone().unwrap_or_default() },
        What::SignalSent { step, signal: "SIGTERM", pid: 1, group: true, cause: EndingCause::StepStop },
        What::AbortSent { step },
        What::TreeSwept { step, ended: vec![1], survivors: vec![2] },
        What::RunEnded { state: RunPhase::Complete, error: Some(text()) },
        What::RunLost { message: text() },
        What::Unknown { kind: text() },
        What::AttemptEnded {
            step,
            exit_code: 1,
            error: text(),
            next: NextAttempt {
                at: Timestamp::from_millis(1),
                model: Some(text()),
                reason: text(),
                task_by_file: true,
                transport: None,
            },
        },
        What::AttentionCleared { step, id: text() },
        What::AttentionAcknowledged { step, id: text(), source: source.clone() },
        What::AttentionNoted { step, reason: Reason::Idle, message: text() },
        What::InnerRuns { step, runs: vec![inner_run()] },
        What::Slept { ms: 5 },
        What::DiskSpace { free: 5, low: true },
    ];
    for reason in Reason::ALL {
        let since = Timestamp::from_millis(1);
        let (subject, evidence) = (text(), text());
        let condition = Condition { reason, subject, since, threshold: None, amount: None, evidence };
        all.push(What::AttentionRaised { step, notice: Box::new(Notice::new(step, condition, since)) });
    }
    for metric in Metric::ALL {
        for stage in [Stage::Soft, Stage::Deferred, Stage::Hard, Stage::Late] {
            for step in [Some(step), None] {
                all.push(What::BudgetReached { step, metric, stage, used: 1.5, message: text() });
            }
        }
    }
    for step in [Some(step), None] {
        for raise in [Raise::Cost(End::Soft, CostUsd(0.5)), Raise::Time(std::time::Duration::from_secs(90))] {
            all.push(What::BudgetRaised { step, raise, source: source.clone() });
        }
    }
    all.extend(EndingCause::ALL.map(|cause| What::StepEnding { step, cause, message: text(), source: source.clone() }));
    all.extend(TargetState::ALL.map(|to| What::SteerMoved { id: text(), step, to, detail: Some(text()) }));
    let sub_agent = |did| AgentEvent::SubAgent { id: text(), did };
    let mut said = vec![
        AgentEvent::SessionStarted { session_id: Some(text()), model: Some(text()) },
        AgentEvent::TurnStarted,
        AgentEvent::TurnEnded,
        message(Some(usage), "t"),
        message(Some(Usage { cost: None, ..usage }), ""),
        message(None, ""),
        AgentEvent::ToolStarted {
            call: Some(text()),
            tool: text(),
            args: text(),
            path: Some(text()),
            about: Default::default(),
        },
        AgentEvent::ToolStarted { call: None, tool: text(), args: text(), path: None, about: Default::default() },
        AgentEvent::Retry { attempt: Some(1), max: Some(3), delay_ms: Some(5), reason: text() },
        AgentEvent::Retry { attempt: None, max: None, delay_ms: None, reason: text() },
        AgentEvent::RetryEnded { success: true },
        AgentEvent::Used(Usage {
            tokens: Tokens { input: 1, output: 2, cache_read: 3, cache_write: 4 },
            cost: Some(CostUsd(0.5)),
        }),
        AgentEvent::ProtocolFailure { message: text() },
        AgentEvent::Unknown { kind: text() },
        sub_agent(SubAgentDid::Started { name: text(), about: text(), model: Some(text()) }),
        sub_agent(SubAgentDid::Started { name: text(), about: text(), model: None }),
    ];
    said.extend(ToolOutcome::ALL.map(|outcome| sub_agent(SubAgentDid::Ended(outcome))));
    let outcomes =
        [ToolOutcome::Ok, ToolOutcome::Error, ToolOutcome::Denied, ToolOutcome::Cancelled, ToolOutcome::Lost];
    said.extend(outcomes.map(|outcome| AgentEvent::ToolEnded {
        call: Some(text()),
        tool: Some(text()),
        outcome,
        preview: text(),
    }));
    all.extend(said.into_iter().map(|event| What::Agent { step, event }));
    all
}

#[test]
fn a_status_with_all_that_it_can_carry_is_in_the_schema_and_leaves_nothing_of_it_out() {
    let text = || Some("t".to_owned());
    let time = Some(Timestamp::from_millis(1_764_000_000_000));
    let mut state = RunState::default();
    for what in every_what() {
        reduce(&mut state, &at(what));
    }
    state.resumed_from = Some(RunId("r0".into()));
    state.started_in = Some(subdeck::run::Within { run: RunId("r1".into()), step: Some(StepId(2)) });
    state.ended_by = Some(ControlSource { via: "cli".into(), reason: text(), ..ControlSource::default() });
    state.lost = text();
    state.error = text();
    (state.timed_out, state.stopped) = (true, true);
    (state.deadline_at, state.ended_at, state.last_update, state.last_activity) = (time, time, time, time);
    let step = &mut state.steps[0];
    step.runner = RunnerKind::ExternalCli { command: "c".into(), args: Vec::new() };
    (step.timed_out, step.stopped, step.carried_over) = (true, true, true);
    step.phase_title = text();
    step.error = text();
    step.contract.artifacts.transcript = text();
    step.contract.acceptance = Some(subdeck::run::Ledger::default());
    step.contract.file_error = text();
    step.model = text();
    step.thinking = text();
    step.session_id = text();
    step.session_file = text();
    step.last_message = text();
    step.activity = text();
    step.pid = Some(1);
    step.exit_code = Some(1);
    step.truncated_at = Some(1);
    step.cost = Some(CostUsd(0.5));
    step.tokens = Tokens { input: 1, ..Tokens::default() };
    (step.started_at, step.ended_at, step.last_activity) = (time, time, time);
    step.steerable = Steerable::No("t".into());
    (step.held_by, step.survivors) = (vec![1], vec![2]);
    step.retrying = Some(Retrying {
        attempt: Some(1),
        max: Some(3),
        since: Timestamp::from_millis(1),
        until: time,
        reason: "t".into(),
    });
    step.unknown = Unknowns { total: 2, kinds: vec![UnknownKind { name: "t".into(), count: 1 }] };
    step.sub_agents = vec![
        SubAgent {
            about: "t".into(),
            model: text(),
            ended_at: time,
            outcome: Some(ToolOutcome::Ok),
            tool: Some(SubCall::default()),
            tokens: Some(1),
            last_message: text(),
            ..SubAgent::default()
        },
        SubAgent::default(),
    ];
    let limits = Limits {
        turns: Some(TurnLimit { max: 1, grace: 1 }),
        tokens: Some(Limit { soft: Some(1), hard: None }),
        cost: Some(Limit { soft: None, hard: Some(CostUsd(0.1)) }),
        ..Limits::default()
    };
    step.limits = limits.clone();
    step.budget.exceeded = Some(Metric::Turns);
    let attempt = Attempt {
        model: text(),
        reason: text(),
        started_at: time,
        ended_at: time,
        success: Some(false),
        exit_code: Some(1),
        error: text(),
        ..Attempt::default()
    };
    step.attempts = vec![attempt, Attempt::default()];
    step.next_attempt = Some(NextAttempt {
        at: Timestamp::from_millis(1),
        model: text(),
        reason: "t".into(),
        task_by_file: false,
        transport: None,
    });
    step.attention = Reason::ALL
        .into_iter()
        .map(|reason| {
            let since = Timestamp::from_millis(1);
            let (subject, evidence) = ("t".to_owned(), "t".to_owned());
            let condition = Condition { reason, subject, since, threshold: None, amount: None, evidence };
            Notice { acknowledged: time.filter(|_| reason == Reason::Idle), ..Notice::new(step.id, condition, since) }
        })
        .collect();
    state.limits = limits;
    state.budget.exceeded = Some(Metric::Cost);
    let step = &mut state.steps[0];
    step.ending = Some(Ending {
        cause: EndingCause::RunStop,
        since: Timestamp::from_millis(1),
        message: "t".into(),
        abort_at: None,
        int_at: None,
        term_at: None,
        kill_at: None,
    });
    let full = status_json(&state);
    check_status(&full);
    // While it goes on it has what an ended one has not.
    state.ended_at = None;
    state.lost = None;
    let step = &mut state.steps[0];
    step.phase = StepPhase::Running;
    step.runner = RunnerKind::Agent(AgentKind {
        family: Family::Claude,
        transport: Transport::Steerable,
        permission: Permission::Allow,
    });
    step.open = vec![OpenCall {
        call: text(),
        tool: "t".into(),
        args: "t".into(),
        path: text(),
        started_at: Timestamp::from_millis(1),
        seq: 0,
        about: Default::default(),
        heard: Some(Timestamp::from_millis(2)),
    }];
    step.inner = vec![inner_run()];
    step.questions = vec![question()];
    step.unanswered = text();
    let living = status_json(&state);
    check_status(&living);
    assert!(living["needs"].as_array().unwrap().len() > 5, "{living:#}");
    assert!(full["steps"][0]["limits"].as_array().unwrap().iter().any(|l| l["reached"] == "hard"), "{full:#}");
    let schema: Value = serde_json::from_str(include_str!("../assets/schema/status.json")).unwrap();
    let published =
        |pointer: &str| schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (pointer, at) in [("/$defs/run/properties", ""), ("/$defs/step/properties", "/steps/0")] {
        for key in published(pointer).iter().filter(|key| !["directory", "leftovers"].contains(&key.as_str())) {
            let there = [&full, &living].iter().any(|status| status.pointer(&format!("{at}/{key}")).is_some());
            assert!(there, "{pointer}/{key} is never printed: {full:#}");
        }
    }
}
