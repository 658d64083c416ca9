use std::time::Duration;

use super::super::template::Filling;
use super::super::{
    Budget, Carried, Control, KeptFiles, Limit, NestedSelf, NotifyOn, PathEntry, PiTransport, Route, Runner, Step,
    StepExtras, SummaryLimit, SystemPromptMode,
};
use super::*;
use crate::run::{Acceptance, AcceptanceLevel, CostUsd, Criterion, Review, Thresholds, ToolBlock, TurnLimit, Verify};

fn full_step() -> Step {
    Step {
        key: "a".into(),
        agent: "scout".into(),
        label: Some("Look".into()),
        phase: Some("one".into()),
        task: "Do {previous}".into(),
        filling: Filling::Literal,
        cwd: "/w".into(),
        env: vec![("TOKEN".into(), "s3cret".into()), ("GONE".into(), "s3cret".into())],
        runner: Runner::Pi { transport: PiTransport::Json, command: Some("pi2".into()), args: vec!["-x".into()] },
        models: vec!["m".into(), "n".into()],
        thinking: Some("high".into()),
        tools: Some(vec![]),
        extensions: Some(vec!["e".into()]),
        system_prompt: Some("Be".into()),
        system_prompt_mode: SystemPromptMode::Replace,
        inherit_project_context: true,
        inherit_skills: true,
        output: Some("o.md".into()),
        budget: Budget {
            time: Some(Duration::from_millis(1500)),
            idle: Some(Duration::from_secs(9)),
            turns: Some(TurnLimit { max: 40, grace: 2 }),
            tool_calls: Some(Limit { soft: Some(20), hard: Some(30) }),
            tokens: Some(Limit { soft: None, hard: Some(7) }),
            cost: Some(Limit { soft: Some(CostUsd(0.5)), hard: None }),
            tool_block: Some(ToolBlock::Names(vec!["bash".into()])),
        },
        tool_exempt: vec!["ask".into()],
        question_timeout: Some(Duration::from_millis(77)),
        completion_guard: true,
        attention: Thresholds {
            enabled: false,
            idle_ms: Some(1),
            tool_open_ms: None,
            tool_open_of: [("bash".to_owned(), 2), ("web".to_owned(), 0)].into(),
            exempt: vec!["sleep".into()],
            long_ms: Some(3),
            long_turns: Some(4),
            long_tokens: Some(5),
            failures: None,
            first_event_ms: Some(6),
            repeats: None,
        },
        tool_timeout: Some(Duration::from_secs(600)),
        session_file: Some("/s.jsonl".into()),
        carried: Some(Carried { output: "done".into() }),
        acceptance: Acceptance {
            level: AcceptanceLevel::Verified,
            explicit: true,
            inferred: vec!["guess".into()],
            criteria: vec![Criterion {
                id: "c".into(),
                must: "hold".into(),
                evidence: vec!["manual-notes".into()],
                recommended: true,
            }],
            evidence: vec!["changed-files".into()],
            verify: vec![Verify {
                id: "v".into(),
                command: "make".into(),
                timeout_ms: Some(5),
                cwd: Some("sub".into()),
                env: vec![("KEY".into(), "s3cret".into())],
                allow_failure: true,
            }],
            review: Some(Review { agent: Some("r".into()), focus: Some("f".into()), optional: true }),
            stop_rules: vec!["stop".into()],
            reason: Some("why".into()),
            contract: true,
            gate: true,
        },
        extras: StepExtras {
            output_name: Some("out".into()),
            context: Some("fork".into()),
            launch_digest: Some("digest".into()),
            launch_extensions: Some(serde_json::json!({ "version": 1 })),
            agent_contract: Some(serde_json::json!({ "version": 1 })),
            output_mode: Some("file-only".into()),
        },
    }
}

fn full_plan() -> Plan {
    let command = Runner::ExternalCli { command: "make".into(), args: vec!["{task}".into()] };
    let demo = Runner::Demo { script: "scout".into() };
    Plan {
        name: Some("n".into()),
        task: Some("t".into()),
        cwd: "/w".into(),
        budget: Budget { tool_block: Some(ToolBlock::All), ..full_step().budget },
        steps: vec![
            LogicalStep::Single(Box::new(full_step())),
            LogicalStep::Group {
                steps: vec![
                    Step { key: "b".into(), runner: command, ..Step::default() },
                    Step { key: "c".into(), runner: demo, ..Step::default() },
                    Step { key: "d".into(), ..Step::default() },
                ],
                concurrency: 2,
                fail_fast: true,
            },
        ],
        run_id: Some("id".into()),
        run_dir: Some("/r".into()),
        result_path: Some("/r.json".into()),
        session_id: Some("s".into()),
        session_dir: Some("/sessions".into()),
        owner_id: Some("o".into()),
        mode: Some(RunMode::Unknown("odd".into())),
        deadline_at_ms: Some(5),
        usage_spares_children: true,
        control: Control {
            notify_on: NotifyOn { needs_attention: false, active_long_running: false },
            channels: vec![],
            intercom_to: Some("parent".into()),
            child_targets: vec![Some("child".into()), None],
            workflow_key: Some("key".into()),
        },
        resumed_from: Some("before".into()),
        extras: RunExtras {
            artifacts: Some(KeptFiles {
                folder: "/a".into(),
                input: true,
                output: false,
                transcript: true,
                metadata: false,
            }),
            graph: Some(serde_json::json!({ "nodes": [] })),
            route: Some(Route {
                root_run_id: "root".into(),
                event_sink: "/e".into(),
                control_inbox: "/c".into(),
                capability_token: "token".into(),
            }),
            nested: Some(NestedSelf {
                parent_run_id: "parent".into(),
                parent_step_index: Some(1),
                depth: 2,
                path: vec![PathEntry { run_id: "root".into(), step_index: Some(0), agent: Some("a".into()) }],
            }),
            parent_workflow: Some("wf".into()),
            launch_digest: Some("digest".into()),
            launch_extensions: Some(serde_json::json!({ "version": 1 })),
            task_index: Some(1),
            total_tasks: Some(2),
            summary: Some(SummaryLimit { bytes: 7, lines: 8 }),
        },
    }
}

#[test]
fn everything_but_values_comes_back() {
    let plan = full_plan();
    let bytes = encode(&plan);
    assert!(!String::from_utf8(bytes.clone()).unwrap().contains("s3cret"));
    let value_of = |_step: &str, name: &str| matches!(name, "TOKEN" | "verify v KEY").then(|| "s3cret".to_owned());
    let stored = decode(&bytes, &value_of).unwrap();
    assert_eq!(stored.missing_env, [("a".to_owned(), "GONE".to_owned())]);
    let mut expected = plan;
    if let LogicalStep::Single(step) = &mut expected.steps[0] {
        step.env.pop();
    }
    assert_eq!(stored.plan, expected);
    assert_eq!(encode(&stored.plan).len(), encode(&expected).len());
}

#[test]
fn unknown_fields_are_passed_over_and_newer_versions_refused() {
    let text = r#"{"version":1,"cwd":"/w","new":{},"steps":[{"id":"a","agent":"pi","cwd":"/w","x":1,
        "runner":{"type":"pi","transport":"rpc","y":2}}]}"#;
    let stored = decode(text.as_bytes(), &|_, _| None).unwrap();
    assert_eq!(stored.plan.flat().map(|s| s.key.as_str()).collect::<Vec<_>>(), ["a"]);
    let newer = text.replace("\"version\":1", "\"version\":2");
    assert!(matches!(decode(newer.as_bytes(), &|_, _| None), Err(StoredError::TooNew(2))));
    for broken in ["", "{", "[]", "{\"version\":1}", "{\"version\":1,\"cwd\":\"/\",\"steps\":[{}]}", "\u{feff}"] {
        assert!(matches!(decode(broken.as_bytes(), &|_, _| None), Err(StoredError::Malformed(_))), "{broken}");
    }
}

#[test]
fn what_is_not_said_is_built_in() {
    let text = r#"{"version":1,"cwd":"/w","steps":[{"id":"a","agent":"pi","cwd":"/w","runner":{"type":"demo","script":"s"},
        "attention":{"idleMs":0,"repeatedCalls":9}}]}"#;
    let plan = decode(text.as_bytes(), &|_, _| None).unwrap().plan;
    let expected = Thresholds { idle_ms: None, repeats: Some(9), ..Thresholds::default() };
    assert_eq!(plan.flat().map(|s| s.attention.clone()).collect::<Vec<_>>(), [expected]);
    assert_eq!((plan.control, plan.usage_spares_children), (Control::default(), false));
}
