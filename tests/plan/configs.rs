//! Runner configs of pi-subagents as plans.

use super::*;

fn config(change: &dyn Fn(&mut serde_json::Value)) -> Result<Loaded, Problems> {
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fixtures().join("configs/chain.json")).unwrap()).unwrap();
    config["cwd"] = fixtures().to_str().unwrap().into();
    change(&mut config);
    load_text("cfg.json", &serde_json::to_string_pretty(&config).unwrap())
}

#[test]
fn a_runner_config_is_a_plan() {
    let loaded = config(&|_| ()).unwrap();
    let plan = &loaded.plan;
    assert_eq!(plan.run_id.as_deref(), Some("36d641b6-121e-4fa1-8793-b458bc09ae63"));
    assert_eq!(plan.run_dir.as_deref(), Some(Path::new("/t/async-subagent-runs/36d641b6-121e-4fa1-8793-b458bc09ae63")));
    assert_eq!(plan.result_path.as_deref(), Some(Path::new("/t/async-subagent-results/36d641b6.json")));
    assert_eq!((plan.session_id.as_deref(), plan.owner_id.as_deref()), (Some("/s/parent.jsonl"), Some("owner-1")));
    assert_eq!(plan.session_dir.as_deref(), Some(Path::new("/t/sessions/36d641b6")));
    assert_eq!((plan.mode(), plan.deadline_at_ms), (RunMode::Chain, Some(1_764_000_000_500)));
    assert_eq!(plan.budget.time, Some(Duration::from_secs(60)));
    assert_eq!((plan.budget.tokens.unwrap().hard, plan.usage_spares_children), (Some(9000), true));
    // Turns are granted to each step, not to all of them together.
    assert_eq!(plan.budget.turns, None);
    assert!(steps(&loaded).iter().all(|s| s.budget.turns == Some(TurnLimit { max: 10, grace: 1 })));
    assert_eq!((plan.control.clone(), loaded.warnings.len()), (Control::default(), 0));
    let [first, native, external] = steps(&loaded)[..] else { panic!() };
    assert_eq!((first.key.as_str(), first.agent.as_str(), first.task.as_str()), ("found", "worker", "Look"));
    assert_eq!(first.models, ["fake/fake-1:high", "fake/fake-2"]);
    assert_eq!((first.system_prompt_mode, first.inherit_skills), (SystemPromptMode::Replace, false));
    assert_eq!(first.tool_timeout, Some(Duration::from_secs(7)));
    assert_eq!(first.budget.time, Some(Duration::from_secs(1800)));
    assert_eq!(first.session_file.as_deref(), Some(Path::new("/s/child.jsonl")));
    assert_eq!((native.key.as_str(), native.tool_timeout), ("worker", Some(Duration::from_secs(5))));
    assert_eq!((native.tools.as_deref(), native.inherit_project_context), (Some(&["read".to_owned()][..]), true));
    assert_eq!(
        external.runner,
        Runner::ExternalCli { command: "sh".to_owned(), args: vec!["-c".to_owned(), "cat".to_owned()] }
    );
    assert!(matches!(plan.steps[1], LogicalStep::Group { concurrency: 2, fail_fast: true, .. }));
}

#[test]
fn a_runner_config_has_its_limits_and_thresholds() {
    let loaded = config(&|c| {
        c["toolBudget"] = serde_json::json!({ "hard": 8, "soft": 5 });
        c["steps"][0]["toolBudget"] = serde_json::json!({ "hard": 3, "block": "*" });
        c["steps"][1]["parallel"][0]["toolBudget"] = serde_json::json!({ "hard": 4, "block": ["bash"] });
        c["usageBudget"]["costUsd"] = serde_json::json!({ "soft": 0.5, "hard": 1 });
        c["controlConfig"] = serde_json::json!({
            "enabled": false, "needsAttentionAfterMs": 1500.5, "activeNoticeAfterMs": 9000, "activeNoticeAfterTurns": 7,
            "activeNoticeAfterTokens": 8, "failedToolAttemptsBeforeAttention": 2, "notifyOn": ["needs_attention", "new"],
            "notifyChannels": [],
        });
        c["controlIntercomTarget"] = "parent".into();
        c["childIntercomTargets"] = serde_json::json!(["one", null, "three"]);
    })
    .unwrap();
    let names = |names: &[&str]| Some(ToolBlock::Names(names.iter().map(|n| (*n).to_owned()).collect()));
    let calls: Vec<_> =
        steps(&loaded).iter().map(|s| (s.budget.tool_calls.unwrap(), s.budget.tool_block.clone())).collect();
    let limit = |soft, hard| Limit { soft, hard: Some(hard) };
    assert_eq!(
        calls,
        [
            (limit(None, 3), Some(ToolBlock::All)),
            (limit(None, 4), names(&["bash"])),
            (limit(Some(5), 8), names(&["read", "grep", "find", "ls"])),
        ]
    );
    assert_eq!((loaded.plan.budget.tool_calls, loaded.plan.run_limits().usage_spares_children), (None, true));
    assert_eq!(loaded.plan.budget.cost, Some(Limit { soft: Some(CostUsd(0.5)), hard: Some(CostUsd(1.0)) }));
    let expected = Thresholds {
        enabled: false,
        idle_ms: Some(1500),
        tool_open_ms: Some(9000),
        long_ms: Some(9000),
        long_turns: Some(7),
        long_tokens: Some(8),
        failures: Some(2),
        ..Thresholds::default()
    };
    assert!(steps(&loaded).iter().all(|s| s.attention == expected));
    let control = Control {
        notify_on: NotifyOn { needs_attention: true, active_long_running: false },
        channels: vec![],
        intercom_to: Some("parent".to_owned()),
        child_targets: vec![Some("one".to_owned()), None, Some("three".to_owned())],
        workflow_key: None,
    };
    assert_eq!(loaded.plan.control, control);
}

#[test]
fn thresholds_of_a_runner_config_that_can_be_none_leave_the_built_in_ones() {
    for bad in [serde_json::json!(0), (-5).into(), 0.5.into(), "60000".into(), serde_json::Value::Null, true.into()] {
        let loaded = config(&|c| {
            c["controlConfig"] = serde_json::json!({
                "enabled": "yes", "needsAttentionAfterMs": bad, "activeNoticeAfterMs": bad, "activeNoticeAfterTurns": bad,
                "activeNoticeAfterTokens": bad, "failedToolAttemptsBeforeAttention": bad, "notifyOn": bad,
                "notifyChannels": bad,
            });
        })
        .unwrap();
        assert!(steps(&loaded).iter().all(|s| s.attention == Thresholds::default()), "{bad}");
        assert_eq!(loaded.plan.control, Control::default(), "{bad}");
    }
    let loaded = config(&|c| c["controlConfig"] = 5.into()).unwrap();
    assert_eq!(steps(&loaded)[0].attention, Thresholds::default());
}

#[test]
fn what_a_runner_config_leaves_open_the_configuration_does_not_fill_in() {
    let text = std::fs::read_to_string(fixtures().join("configs/chain.json")).unwrap();
    let mut options = options();
    options.defaults.tool_timeout = Some(Duration::from_secs(1));
    options.defaults.attention.idle = Some(Rule::Off);
    let text = text.replace("\"/w\"", &format!("{:?}", fixtures().display().to_string())).replace("toolTimeoutMs", "x");
    let loaded = plan::load_source(&Source::new("c.json", text), &fixtures(), &options).unwrap();
    assert!(steps(&loaded).iter().all(|s| s.tool_timeout.is_none() && s.attention == Thresholds::default()));
}

#[test]
fn a_runner_config_is_checked_too() {
    type Change = fn(&mut serde_json::Value);
    let table: &[(Change, &str, &str)] = &[
        (|c| c["id"] = serde_json::Value::Null, "id", "the field `id` is missing"),
        (|c| c["id"] = "a/b".into(), "id", "name of a folder"),
        (|c| c["asyncDir"] = "rel".into(), "asyncDir", "not an absolute path"),
        (|c| c["cwd"] = "/no/such/folder".into(), "cwd", "does not exist"),
        (|c| c["placeholder"] = "{prev}".into(), "placeholder", "not supported yet"),
        (|c| c["steps"] = serde_json::json!([]), "steps", "no steps"),
        (|c| c["steps"] = serde_json::json!({}), "steps", "a list of steps"),
        (|c| c["steps"][0]["task"] = serde_json::Value::Null, "steps[1]", "has no `task`"),
        (|c| c["steps"][0]["agent"] = 5.into(), "steps[1].agent", "a text is needed here"),
        (|c| c["steps"][0]["task"] = "{outputs.nobody}".into(), "steps[1].task", "names no earlier step"),
        (|c| c["steps"][0]["worktree"] = true.into(), "steps[1].worktree", "not supported yet"),
        (|c| c["steps"][0]["importAsyncRoot"] = serde_json::json!({}), "steps[1].importAsyncRoot", "not supported yet"),
        (
            |c| c["steps"][0]["runner"] = serde_json::json!({"type": "external-job"}),
            "steps[1].runner.type",
            "not supported yet",
        ),
        (|c| c["steps"][0]["runner"] = serde_json::json!({"type": "x"}), "steps[1].runner.type", "no runner `x`"),
        (
            |c| {
                c["steps"][1] =
                    serde_json::json!({"expand": {}, "parallel": {}, "collect": {}, "agent": "a", "task": ""})
            },
            "steps[2].expand",
            "not supported yet",
        ),
        (|c| c["toolTimeoutMs"] = 0.into(), "toolTimeoutMs", "1 to 2147483647"),
        (|c| c["steps"][0]["toolTimeoutMs"] = 2_147_483_648_u64.into(), "steps[1].toolTimeoutMs", "1 to 2147483647"),
        (|c| c["toolBudget"] = serde_json::json!({"hard": 1, "soft": 2}), "toolBudget.soft", "lies above the hard one"),
        (|c| c["toolBudget"] = serde_json::json!({"hard": 0}), "toolBudget.hard", "at least 1"),
        (|c| c["steps"][0]["toolBudget"] = serde_json::json!({"hard": 0.5}), "steps[1].toolBudget.hard", "at least 1"),
        (|c| c["turnBudget"] = serde_json::json!({"maxTurns": 0}), "turnBudget.maxTurns", "at least 1"),
        (|c| c["timeoutMs"] = (-5).into(), "timeoutMs", "not negative"),
        (|c| c["permissionRules"] = serde_json::json!([1]), "", ""),
        (|c| c["capabilityCeiling"] = serde_json::json!({}), "capabilityCeiling", "not supported yet"),
    ];
    for (change, key, message) in table {
        let result = config(&|c| change(c));
        if key.is_empty() {
            assert!(result.is_ok(), "unknown fields are left alone");
            continue;
        }
        let problems = result.expect_err(key);
        let errors: Vec<_> = problems.0.iter().filter(|p| p.severity == Severity::Error).collect();
        let [error] = errors[..] else { panic!("{key}\n{errors:#?}") };
        assert_eq!(error.key, *key, "{error:#?}");
        assert!(error.message.contains(message), "{error:#?}");
    }
}

#[test]
fn a_single_step_of_a_config_keeps_text_that_looks_like_an_output() {
    let loaded = config(&|c| {
        let mut only = c["steps"][0].clone();
        only["task"] = "{outputs.nobody}".into();
        c["steps"] = serde_json::json!([only]);
    });
    assert_eq!(steps(&loaded.unwrap())[0].task, "{outputs.nobody}");
    // The launcher has filled in the task, so what looks like its placeholder is text in every mode.
    let loaded = config(&|c| c["steps"][0]["task"] = "{task} {prevoius} {previous}".into()).unwrap();
    assert_eq!(steps(&loaded)[0].task, "{task} {prevoius} {previous}");
    assert!(loaded.warnings.iter().all(|w| w.key != "steps[1].task"), "{:#?}", loaded.warnings);
}
