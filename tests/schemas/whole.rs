//! All that can be printed is in the schemas, and all of the schemas is printed.

use serde_json::Value;
use subdeck::headless::{json_event, json_line, json_output, status_json};
use subdeck::run::{
    AgentKind, Attempt, Condition, ControlSource, CostUsd, Ending, EndingCause, Family, Limit, Limits, Metric,
    NextAttempt, Notice, OpenCall, Permission, Reason, Retrying, RunId, RunState, RunnerKind, Steerable, StepId,
    StepPhase, SubAgent, SubCall, Timestamp, Tokens, ToolOutcome, Transport, TurnLimit, UnknownKind, Unknowns, What,
    reduce,
};

use crate::values::{at, every_what, inner_run, log_line, meta, question};
use crate::{check_status, validator};

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
    let schema: Value = serde_json::from_str(include_str!("../../assets/schema/events.json")).unwrap();
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
    // And of another step nobody tells what it used.
    state.steps[1].phase = StepPhase::Running;
    state.steps[1].runner = RunnerKind::Pi;
    let step = &mut state.steps[0];
    (step.phase, step.carried_over) = (StepPhase::Running, false);
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
    for key in ["tokens_at_least", "cost_at_least", "limits/1/used_at_least"] {
        let there = [&full, &living].map(|status| status.pointer(&format!("/{key}")).is_some());
        assert_eq!(there, [false, true], "{key}: {full:#} {living:#}");
    }
    assert!(living["needs"].as_array().unwrap().len() > 5, "{living:#}");
    assert!(full["steps"][0]["limits"].as_array().unwrap().iter().any(|l| l["reached"] == "hard"), "{full:#}");
    let schema: Value = serde_json::from_str(include_str!("../../assets/schema/status.json")).unwrap();
    let published =
        |pointer: &str| schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (pointer, at) in [("/$defs/run/properties", ""), ("/$defs/step/properties", "/steps/0")] {
        for key in published(pointer).iter().filter(|key| !["directory", "leftovers"].contains(&key.as_str())) {
            let there = [&full, &living].iter().any(|status| status.pointer(&format!("{at}/{key}")).is_some());
            assert!(there, "{pointer}/{key} is never printed: {full:#}");
        }
    }
}
