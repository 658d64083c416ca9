//! What is written is read back the same: records and statuses.

use proptest::prelude::*;
use proptest::strategy::Union;

use crate::run::story::every;
use crate::run::*;
use crate::rundir::records::{self, ChildContext, RecordContext};
use crate::rundir::{RunDir, StatusContext, decode_status, status};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_764_000_000_000 + ms)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9 \"\\\\{},:\n]{0,20}", any::<String>(), Just(r#""subagentSource":"child""#.to_owned())]
}

fn maybe<T: Clone + std::fmt::Debug + 'static>(s: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Option<T>> {
    proptest::option::of(s).boxed()
}

fn source() -> impl Strategy<Value = ControlSource> {
    (text(), maybe(text()), maybe(any::<u32>()), maybe(text()), maybe(text()), maybe(text()))
        .prop_map(|(via, user, pid, tty, key, reason)| ControlSource { via, user, pid, tty, key, reason })
}

fn cause() -> impl Strategy<Value = EndingCause> {
    proptest::sample::select(EndingCause::ALL.to_vec())
}

fn target_state() -> impl Strategy<Value = TargetState> {
    proptest::sample::select(vec![
        TargetState::Scheduled,
        TargetState::Routed,
        TargetState::Queued,
        TargetState::Delivered,
        TargetState::Late,
        TargetState::Failed,
        TargetState::Recovered,
        TargetState::Unknown,
    ])
}

fn runner() -> impl Strategy<Value = RunnerKind> {
    prop_oneof![
        Just(RunnerKind::Pi),
        Just(RunnerKind::PiJson),
        Just(RunnerKind::Demo),
        (
            proptest::sample::select(Family::ALL.to_vec()),
            proptest::bool::ANY,
            proptest::sample::select(Permission::ALL.to_vec())
        )
            .prop_map(|(family, once, permission)| {
                let transport = if once { Transport::OneShot } else { Transport::Steerable };
                RunnerKind::Agent(AgentKind { family, transport, permission })
            }),
        (text(), proptest::collection::vec(text(), 0..3))
            .prop_map(|(command, args)| RunnerKind::ExternalCli { command, args }),
        text().prop_map(|provider| RunnerKind::ExternalJob { provider }),
        Just(RunnerKind::Other("goose".into())),
    ]
}

fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![(0u32..1_000_000).prop_map(f64::from), (0u32..1_000_000).prop_map(|n| f64::from(n) / 1024.0)]
}

fn counts() -> BoxedStrategy<Option<Limit<u64>>> {
    maybe((maybe(0u64..1 << 50), maybe(0u64..1 << 50)).prop_map(|(soft, hard)| Limit { soft, hard }))
}

fn limits() -> impl Strategy<Value = Limits> {
    let names = || proptest::collection::vec(text(), 0..3);
    let block = prop_oneof![Just(ToolBlock::All), names().prop_map(ToolBlock::Names)];
    let turns = maybe((0u64..1 << 50, 0u64..9).prop_map(|(max, grace)| TurnLimit { max, grace }));
    let cost = maybe(
        (maybe(amount()), maybe(amount()))
            .prop_map(|(soft, hard)| Limit { soft: soft.map(CostUsd), hard: hard.map(CostUsd) }),
    );
    let times = (maybe(0u64..1 << 50), maybe(0u64..1 << 50));
    (times, turns, counts(), block, counts(), cost, names(), any::<[bool; 2]>()).prop_map(
        |((idle_ms, tool_ms), turns, tool_calls, tool_block, tokens, cost, tool_exempt, flags)| {
            let [usage_spares_children, tool_calls_observed] = flags;
            Limits {
                idle_ms,
                turns,
                tool_calls,
                tool_block,
                tokens,
                cost,
                tool_ms,
                tool_exempt,
                usage_spares_children,
                tool_calls_observed,
            }
        },
    )
}

fn thresholds() -> impl Strategy<Value = Thresholds> {
    let ms = || maybe(0u64..1 << 50);
    let tools = proptest::collection::btree_map(text(), 0u64..1 << 50, 0..3);
    let more = (ms(), ms(), ms(), proptest::collection::vec(text(), 0..3));
    (any::<bool>(), ms(), ms(), tools, ms(), ms(), ms(), more).prop_map(
        |(enabled, idle_ms, tool_open_ms, tool_open_of, long_ms, long_turns, long_tokens, more)| {
            let (failures, first_event_ms, repeats, exempt) = more;
            Thresholds {
                enabled,
                idle_ms,
                tool_open_ms,
                tool_open_of,
                exempt,
                long_ms,
                long_turns,
                long_tokens,
                failures,
                first_event_ms,
                repeats,
            }
        },
    )
}

fn notice() -> impl Strategy<Value = Box<Notice>> {
    let measure =
        || maybe(prop_oneof![(0u64..1 << 50).prop_map(Amount::Millis), (0u64..1 << 50).prop_map(Amount::Count)]);
    let reason = proptest::sample::select(Reason::ALL.to_vec());
    let condition = (reason, text(), 0i64..9999, measure(), measure(), text());
    (text(), condition, 0i64..9999, 1u32..9, maybe(0i64..9999)).prop_map(|(id, condition, raised, times, known)| {
        let (reason, subject, since, threshold, amount, evidence) = condition;
        let condition = Condition { reason, subject, since: at(since), threshold, amount, evidence };
        Box::new(Notice { id, condition, raised_at: at(raised), times, acknowledged: known.map(at) })
    })
}

fn metric() -> impl Strategy<Value = Metric> {
    proptest::sample::select(Metric::ALL.to_vec())
}

fn raise() -> impl Strategy<Value = Raise> {
    let time = || (1u64..1 << 31).prop_map(std::time::Duration::from_millis);
    let end = || proptest::sample::select(vec![End::Soft, End::Hard]);
    prop_oneof![
        time().prop_map(Raise::Time),
        time().prop_map(Raise::Idle),
        (1u64..Limits::TOOL_MOST).prop_map(|ms| Raise::ToolTimeout(std::time::Duration::from_millis(ms))),
        (1u64..1 << 50).prop_map(Raise::Turns),
        (0u64..1 << 50).prop_map(Raise::TurnsGrace),
        (end(), 1u64..1 << 50).prop_map(|(end, n)| Raise::ToolCalls(end, n)),
        (end(), 1u64..1 << 50).prop_map(|(end, n)| Raise::Tokens(end, n)),
        (end(), amount()).prop_map(|(end, n)| Raise::Cost(end, CostUsd(n + 0.5))),
    ]
}

fn question() -> impl Strategy<Value = Box<Question>> {
    let choice = (text(), text(), text()).prop_map(|(id, label, kind)| Choice { id, label, kind });
    let kind = proptest::sample::select(QuestionKind::ALL.to_vec());
    let asking = (text(), kind, text(), maybe(text()), text(), maybe(text()), any::<bool>(), any::<bool>());
    let asking = (asking, text(), any::<bool>());
    let choices = proptest::collection::vec(choice, 0..3);
    (text(), asking, choices, 0i64..9999, maybe(0i64..9999)).prop_map(|(name, asking, choices, asked, until)| {
        let ((id, kind, text, tool, args, call, free, by_file), detail, many) = asking;
        let (within_ms, repeat) = (None, None);
        let asking =
            Asking { id, kind, text, tool, args, detail, call, choices, many, free, within_ms, by_file, repeat };
        Box::new(Question { id: name, asking, asked_at: at(asked), until: until.map(at) })
    })
}

fn answered() -> impl Strategy<Value = What> {
    let answer = prop_oneof![
        Just(Answer::Allow),
        Just(Answer::Dismiss),
        maybe(text()).prop_map(Answer::Deny),
        text().prop_map(Answer::Text),
        "o[a-z]{0,5}".prop_map(Answer::Choose),
        (proptest::collection::vec("o[a-z]{0,5}", 1..4), maybe(text()))
            .prop_map(|(ids, text)| Answer::Several(ids, text)),
    ];
    let by = proptest::sample::select(AnsweredBy::ALL.to_vec());
    ((0u32..9).prop_map(StepId), text(), text(), answer, by, maybe(source()))
        .prop_map(|(step, id, text, answer, by, source)| What::QuestionAnswered { step, id, text, answer, by, source })
}

fn ledger() -> impl Strategy<Value = Ledger> {
    let words = || proptest::collection::vec(text(), 0..3);
    let level = proptest::sample::select(AcceptanceLevel::ALL.to_vec());
    let criteria = proptest::collection::vec(
        (text(), text(), words(), any::<bool>()).prop_map(|(id, must, evidence, recommended)| Criterion {
            id,
            must,
            evidence,
            recommended,
        }),
        0..3,
    );
    let verify = proptest::collection::vec(
        (text(), text(), maybe(1u64..1 << 50), maybe(text()), any::<bool>()).prop_map(
            |(id, command, timeout_ms, cwd, allow_failure)| Verify {
                id,
                command,
                timeout_ms,
                cwd,
                env: Vec::new(),
                allow_failure,
            },
        ),
        0..3,
    );
    let review = maybe((maybe(text()), maybe(text()), any::<bool>()).prop_map(|(agent, focus, optional)| Review {
        agent,
        focus,
        optional,
    }));
    let asked = (level, any::<[bool; 3]>(), words(), criteria, words(), verify, review, (words(), maybe(text())))
        .prop_map(|(level, [explicit, contract, gate], inferred, criteria, evidence, verify, review, rest)| {
            let (stop_rules, reason) = rest;
            Acceptance {
                level,
                explicit,
                inferred,
                criteria,
                evidence,
                verify,
                review,
                stop_rules,
                reason,
                contract,
                gate,
            }
        });
    let claims = || {
        let claim = (text(), text(), text()).prop_map(|(what, status, evidence)| Claim { what, status, evidence });
        proptest::collection::vec(claim, 0..3)
    };
    let lists = proptest::sample::subsequence(AcceptanceReport::LISTS.to_vec(), 0..=5).prop_flat_map(move |names| {
        let lists = proptest::collection::vec(proptest::collection::vec(text(), 0..3), names.len());
        lists.prop_map(move |lists| names.iter().map(|n| (*n).to_owned()).zip(lists).collect())
    });
    let report = (claims(), lists, maybe(claims()), maybe(any::<bool>()), maybe(text()), maybe(text())).prop_map(
        |(criteria, lists, commands, no_staged_files, diff_summary, notes)| AcceptanceReport {
            criteria,
            lists,
            commands,
            no_staged_files,
            diff_summary,
            notes,
        },
    );
    let check = (text(), proptest::sample::select(CheckStatus::ALL.to_vec()), text());
    let check = check.prop_map(|(id, status, message)| Check { id, status, message });
    let status = || proptest::sample::select(AcceptanceStatus::ALL.to_vec());
    let rest = (maybe(report), maybe(text()), proptest::collection::vec(check, 0..3));
    (status(), status(), asked, rest).prop_map(|(status, evidence, asked, (report, report_error, checks))| Ledger {
        status,
        evidence,
        asked,
        report,
        report_error,
        checks,
        runs: vec![VerifyRun {
            id: "v".into(),
            command: "make".into(),
            exit_code: Some(2),
            ms: 7,
            ..VerifyRun::default()
        }],
    })
}

fn node() -> impl Strategy<Value = GraphNode> {
    let names = (text(), text(), maybe(text()), maybe(text()), text(), text());
    let rest = (maybe(0u32..9), maybe(0usize..9), maybe(text()), maybe(text()), maybe(any::<bool>()), maybe(text()));
    let leaf = (names, rest, maybe(text())).prop_map(|((id, kind, agent, phase, label, status), rest, error)| {
        let (step, logical, item_key, output_name, structured, acceptance) = rest;
        GraphNode {
            id,
            kind,
            agent,
            phase,
            label,
            status,
            step: step.map(StepId),
            logical,
            children: Vec::new(),
            dynamic: None,
            item_key,
            output_name,
            structured,
            acceptance,
            error,
        }
    });
    leaf.prop_recursive(2, 6, 3, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..3)).prop_map(|(node, children)| GraphNode {
            children,
            dynamic: Some(serde_json::json!({ "itemName": "item", "maxItems": 3 })),
            ..node
        })
    })
}

fn run_contract() -> impl Strategy<Value = RunContract> {
    let graph = maybe(
        (text(), proptest::collection::vec((text(), proptest::collection::vec(text(), 0..2)), 0..2), maybe(text()))
            .prop_flat_map(|(mode, phases, current)| {
                proptest::collection::vec(node(), 0..3).prop_map(move |nodes| Graph {
                    mode: mode.clone(),
                    phases: phases.clone(),
                    nodes,
                    current: current.clone(),
                })
            }),
    );
    let texts = (maybe(text()), maybe(text()), maybe(text()), maybe(text()), maybe(text()));
    let counts = (maybe(0u64..99), maybe(0u64..99));
    (texts, any::<bool>(), counts, graph).prop_map(|(texts, nested, (task_index, total_tasks), graph)| {
        let (session_dir, artifacts_dir, parent_workflow, workflow_key, launch_digest) = texts;
        RunContract {
            session_dir,
            artifacts_dir,
            parent_workflow,
            workflow_key,
            nested,
            launch_digest,
            launch_extensions: nested.then(|| serde_json::json!({ "version": 1, "runtime": ["a"], "x": 0.5 })),
            task_index,
            total_tasks,
            graph,
        }
    })
}

fn step_contract() -> impl Strategy<Value = StepContract> {
    let files = (maybe(text()), maybe(text()), maybe(text()), maybe(text()));
    let files =
        files.prop_map(|(input, output, transcript, metadata)| Artifacts { input, output, transcript, metadata });
    let texts = (maybe(text()), maybe(text()), maybe(text()), maybe(text()), maybe(text()), maybe(text()));
    (proptest::collection::vec(text(), 0..3), texts, files, any::<bool>()).prop_map(
        |(models, texts, artifacts, more)| {
            let (output_name, context, launch_digest, transcript_error, output_error, metadata_error) = texts;
            let object = || more.then(|| serde_json::json!({ "version": 1 }));
            StepContract {
                models,
                output_name,
                context,
                launch_digest,
                launch_extensions: object().map(Into::into),
                agent_contract: object(),
                artifacts,
                transcript_error,
                output_error,
                file_error: metadata_error.clone(),
                metadata_error,
                acceptance: None,
            }
        },
    )
}

fn step_meta() -> impl Strategy<Value = StepMeta> {
    let names = (text(), text(), maybe(text()), maybe(text()));
    let rest =
        (0usize..9, runner(), maybe(text()), maybe(text()), maybe(text()), any::<bool>(), maybe(0u64..9_000_000));
    let rules = (text(), limits(), thresholds(), step_contract());
    (names, rest, any::<bool>(), rules).prop_map(|((key, agent, label, phase), rest, carried_over, rules)| {
        let (cwd, limits, thresholds, contract) = rules;
        let (logical, runner, model, thinking, session_file, has_task, timeout_ms) = rest;
        StepMeta {
            key,
            agent,
            label,
            phase,
            logical,
            runner,
            model,
            thinking,
            session_file,
            has_task,
            timeout_ms,
            cwd,
            limits,
            thresholds,
            carried_over,
            contract: contract.into(),
        }
    })
}

fn mode() -> impl Strategy<Value = RunMode> {
    proptest::sample::select(vec![RunMode::Single, RunMode::Parallel, RunMode::Chain, RunMode::Unknown("odd".into())])
}

fn run_meta() -> impl Strategy<Value = RunMeta> {
    let ids = (text(), maybe(text()), maybe(text()), maybe(text()), mode(), maybe(any::<u32>()), text());
    let rest = (
        maybe(0u64..9_000_000),
        maybe(0i64..9_000_000),
        proptest::collection::vec(step_meta(), 0..3),
        proptest::collection::vec((0usize..9, 1usize..9, 0usize..9), 0..2),
        0usize..9,
        maybe(text()),
    );
    let within = maybe((text(), maybe(0u32..9)));
    let all = (ids, rest, any::<bool>(), limits(), run_contract(), within);
    all.prop_map(|(ids, rest, deadline_fixed, limits, contract, within)| {
        let (id, name, session_id, owner_id, mode, pid, cwd) = ids;
        let (timeout_ms, deadline, steps, groups, logical_count, resumed_from) = rest;
        RunMeta {
            id: RunId(id),
            name,
            session_id,
            owner_id,
            mode,
            pid,
            cwd,
            timeout_ms,
            deadline_at: deadline.map(at),
            deadline_fixed,
            limits,
            steps,
            groups: groups.into_iter().map(|(start, count, logical)| Group { start, count, logical }).collect(),
            logical_count,
            resumed_from: resumed_from.map(RunId),
            started_in: within.map(|(run, step)| Within { run: RunId(run), step: step.map(StepId) }),
            contract,
        }
    })
}

fn steer_request() -> impl Strategy<Value = SteerRequest> {
    let mode = proptest::sample::select(vec![SteerMode::Steer, SteerMode::FollowUp, SteerMode::Auto]);
    let targets = proptest::collection::vec((0u32..9, target_state(), maybe(0i64..9999), maybe(text())), 0..3);
    (text(), 0i64..9999, maybe(text()), mode, text(), targets).prop_map(|(id, ms, source, mode, preview, targets)| {
        let targets = targets
            .into_iter()
            .map(|(step, state, routed, reason)| SteerTarget {
                step: StepId(step),
                state,
                routed_at: routed.map(at),
                delivered_at: None,
                failed_at: None,
                reason,
            })
            .collect();
        SteerRequest { id, requested_at: at(ms), source, mode, message: String::new(), preview, targets }
    })
}

fn outcome() -> impl Strategy<Value = StepOutcome> {
    let phase = proptest::sample::select(vec![
        StepPhase::Complete,
        StepPhase::Failed,
        StepPhase::Paused,
        StepPhase::Stopped,
        StepPhase::Rejected,
        StepPhase::Unknown("odd".into()),
    ]);
    let output = maybe((text(), text(), text(), 0usize..9));
    let acceptance = maybe(ledger().prop_map(Box::new));
    (phase, -1i32..200, maybe(text()), any::<bool>(), any::<bool>(), maybe(1i32..64), output, acceptance).prop_map(
        |(phase, exit_code, error, timed_out, stopped, signal, output, acceptance)| {
            // The reader takes a stopped step without flags of ours for stopped by somebody.
            let stopped = stopped || phase == StepPhase::Stopped;
            let output =
                output.map(|(name, text, agent, logical)| (name, NamedOutput { text: text.into(), agent, logical }));
            StepOutcome { phase, exit_code, error, timed_out, stopped, signal, output, acceptance }
        },
    )
}

fn step() -> impl Strategy<Value = StepId> {
    (0u32..9).prop_map(StepId)
}

fn pids() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..3)
}

fn next_attempt() -> impl Strategy<Value = NextAttempt> {
    let transport = proptest::option::of(proptest::sample::select(vec![Transport::Steerable, Transport::OneShot]));
    (0i64..9999, maybe(text()), text(), any::<bool>(), transport).prop_map(
        |(ms, model, reason, task_by_file, transport)| NextAttempt {
            at: at(ms),
            model,
            reason,
            task_by_file,
            transport,
        },
    )
}

fn inner_run() -> impl Strategy<Value = InnerRun> {
    let time = || (0i64..9000).prop_map(at);
    (text(), text(), (time(), time()), maybe((text(), time())))
        .prop_map(|(id, title, (started_at, heard), needs)| InnerRun { id: RunId(id), title, started_at, heard, needs })
}

every! { What: what, whats, kind {
    RunStarted * 1 => run_meta().prop_map(|m| What::RunStarted(Box::new(m))),
    StepStarted * 1 => step().prop_map(|step| What::StepStarted { step }),
    GroupStarted * 1 => (0usize..9).prop_map(|logical| What::GroupStarted { logical }),
    GroupEnded * 1 => (0usize..9, any::<bool>()).prop_map(|(logical, success)| What::GroupEnded { logical, success }),
    AttemptStarted * 1 => (step(), any::<u32>(), maybe(text()), maybe(text()))
        .prop_map(|(step, attempt, model, reason)| What::AttemptStarted { step, attempt, model, reason }),
    ChildSpawned * 1 => (step(), any::<u32>(), maybe(0u64..1 << 50))
        .prop_map(|(step, pid, start_ticks)| What::ChildSpawned { step, pid, start_ticks }),
    // What a child says is recorded as its own line, except what is no line of its.
    Agent * 1 => (step(), text())
        .prop_map(|(step, message)| What::Agent { step, event: AgentEvent::ProtocolFailure { message } }),
    OutputLines * 1 => step().prop_map(|step| What::OutputLines { step, lines: Vec::new(), open: false }),
    OutputSeen * 1 => step().prop_map(|step| What::OutputSeen { step, bytes: 1 }),
    ChildExited * 1 => (step(), maybe(0i32..256), maybe(1i32..32))
        .prop_map(|(step, code, signal)| What::ChildExited { step, exit: ExitInfo { code, signal } }),
    OutputHeld * 1 => (step(), pids()).prop_map(|(step, pids)| What::OutputHeld { step, pids }),
    OutputTruncated * 1 => (step(), proptest::sample::select(vec![Stream::Out, Stream::Err, Stream::Own]), 0u64..1 << 50)
        .prop_map(|(step, stream, cap)| What::OutputTruncated { step, stream, cap }),
    LogFailed * 1 => (step(), text()).prop_map(|(step, error)| What::LogFailed { step, error }),
    ArtifactFailed * 1 => (step(), proptest::sample::select(Artifact::ALL.to_vec()), text())
        .prop_map(|(step, which, error)| What::ArtifactFailed { step, which, error }),
    StepEnded * 1 => (step(), outcome()).prop_map(|(step, o)| What::StepEnded { step, outcome: Box::new(o) }),
    RunInterrupted * 1 => maybe(source()).prop_map(|source| What::RunInterrupted { source }),
    RunStopped * 1 => (text(), maybe(source())).prop_map(|(message, source)| What::RunStopped { message, source }),
    RunTimedOut * 1 => (maybe(0u64..1 << 50), text(), maybe(source()))
        .prop_map(|(timeout_ms, message, source)| What::RunTimedOut { timeout_ms, message, source }),
    StepEnding * 1 => (step(), cause(), text(), maybe(source()))
        .prop_map(|(step, cause, message, source)| What::StepEnding { step, cause, message, source }),
    AttemptEnded * 1 => (step(), 0i32..9, text(), next_attempt())
        .prop_map(|(step, exit_code, error, next)| What::AttemptEnded { step, exit_code, error, next }),
    AttentionRaised * 1 => (step(), notice()).prop_map(|(step, notice)| What::AttentionRaised { step, notice }),
    AttentionCleared * 1 => (step(), text()).prop_map(|(step, id)| What::AttentionCleared { step, id }),
    AttentionAcknowledged * 1 => (step(), text(), maybe(source()))
        .prop_map(|(step, id, source)| What::AttentionAcknowledged { step, id, source }),
    AttentionNoted * 1 => (step(), text())
        .prop_map(|(step, message)| What::AttentionNoted { step, reason: Reason::Idle, message }),
    QuestionAsked * 1 => (step(), question()).prop_map(|(step, question)| What::QuestionAsked { step, question }),
    QuestionAnswered * 1 => answered(),
    BudgetReached * 1 => (
        maybe(step()), metric(), proptest::sample::select(vec![Stage::Soft, Stage::Deferred, Stage::Hard]), amount(), text(),
    ).prop_map(|(step, metric, stage, used, message)| What::BudgetReached { step, metric, stage, used, message }),
    BudgetRaised * 1 => (maybe(step()), raise(), maybe(source()))
        .prop_map(|(step, raise, source)| What::BudgetRaised { step, raise, source }),
    DiskSpace * 1 => (0u64..1 << 40, any::<bool>()).prop_map(|(free, low)| What::DiskSpace { free, low }),
    InnerRuns * 1 => (step(), proptest::collection::vec(inner_run(), 0..3))
        .prop_map(|(step, runs)| What::InnerRuns { step, runs }),
    Slept * 1 => (0u64..1 << 40).prop_map(|ms| What::Slept { ms }),
    SteerRequested * 1 => steer_request().prop_map(|r| What::SteerRequested(Box::new(r))),
    SteerMoved * 1 => (text(), step(), target_state(), maybe(text()))
        .prop_map(|(id, step, to, detail)| What::SteerMoved { id, step, to, detail }),
    Capability * 1 => (step(), prop_oneof![Just(Steerable::Unknown), Just(Steerable::Yes), text().prop_map(Steerable::No)])
        .prop_map(|(step, steerable)| What::Capability { step, steerable }),
    ControlRejected * 1 => (text(), text(), any::<bool>())
        .prop_map(|(file, reason, set_aside)| What::ControlRejected { file, reason, set_aside }),
    ControlUnannounced * 1 => (proptest::option::of(step()), text(), source())
        .prop_map(|(step, what, source)| What::ControlUnannounced { step, what, source }),
    SignalSent * 1 => (step(), proptest::sample::select(vec!["SIGINT", "SIGTERM", "SIGKILL"]), any::<u32>(), any::<bool>(), cause())
        .prop_map(|(step, signal, pid, group, cause)| What::SignalSent { step, signal, pid, group, cause }),
    AbortSent * 1 => step().prop_map(|step| What::AbortSent { step }),
    TreeSwept * 1 => (step(), pids(), pids())
        .prop_map(|(step, ended, survivors)| What::TreeSwept { step, ended, survivors }),
    RunEnded * 1 => (
        proptest::sample::select(vec![RunPhase::Complete, RunPhase::Failed, RunPhase::Stopped]), maybe(text()),
    ).prop_map(|(state, error)| What::RunEnded { state, error }),
    RunLost * 1 => text().prop_map(|message| What::RunLost { message }),
    Unknown * 1 => text().prop_map(|kind| What::Unknown { kind }),
} }

fn example_state() -> RunState {
    let mut state = RunState { id: RunId("r".into()), started_at: Some(at(0)), ..RunState::default() };
    for id in 0..3 {
        let agent = format!("agent {id}");
        state.steps.push(StepState { id: StepId(id), agent, logical: 1, ..StepState::default() });
    }
    state
}

proptest! {
    #[test]
    fn a_record_is_read_back_as_the_event_it_was(what in what(), us in 0i64..10_000_000) {
        let event = Event { at: at(0) + std::time::Duration::from_micros(us as u64), what };
        let state = example_state();
        let line = records::encode(&event, &RecordContext { state: &state });
        // What comes as it is printed, what only others say, and what nobody knows.
        let never = ["OutputLines", "OutputSeen", "AttentionNoted", "Unknown"].contains(&kind(&event.what));
        prop_assert_eq!(line.is_none(), never);
        let Some(line) = line else { return Ok(()) };
        prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert!(line.starts_with(b"{\"type\":\""), "the type stands first");
        let mut read = Vec::new();
        prop_assert!(records::decode(&line, &mut read));
        prop_assert_eq!(read, vec![event]);
    }

    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut read = Vec::new();
        records::decode(&line, &mut read);
    }

    #[test]
    fn an_annotated_line_belongs_to_the_child_whatever_it_says(
        kind in proptest::sample::select(vec!["subagent.run.completed", "subagent.run.repaired_stale", "tool_execution_start"]),
        text in text(), step in 0u32..1000, us in 0i64..10_000_000,
    ) {
        let spoof = serde_json::json!({
            "type": kind, "status": text, "subagentSource": "child", "subagentStepIndex": 77, "observedAt": 5,
            "nested": {"subagentSource": "child", "subagentStepIndex": 78},
        });
        let when = at(0) + std::time::Duration::from_micros(us as u64);
        let child = ChildContext { run_id: "r", step: StepId(step), agent: &text };
        for line in [spoof.to_string(), "{}".into(), " { } \r".into(), r#"{"a":"}"}"#.into()] {
            let mut out = Vec::new();
            prop_assert!(records::annotate(line.as_bytes(), &child, when, &mut out));
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
            let found = records::child_of(&out).unwrap();
            prop_assert_eq!((found.step, found.at()), (StepId(step), when));
            let mut read = Vec::new();
            records::decode(&out, &mut read);
            let of_agent = read.iter().all(|e| matches!(e.what, What::Agent { .. }));
            prop_assert!(of_agent);
        }
    }
}

#[test]
fn every_kind_of_event_is_looked_at() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (name, strategy) in whats() {
        assert_eq!(kind(&proptest::strategy::ValueTree::current(&strategy.new_tree(&mut runner).unwrap())), name);
    }
}

#[test]
fn lines_that_are_no_objects_are_not_annotated() {
    let child = ChildContext { run_id: "r", step: StepId(0), agent: "a" };
    for line in ["", "text", "[1]", "{\"a\":1", "\"}\"", "}"] {
        let mut out = Vec::new();
        assert!(!records::annotate(line.as_bytes(), &child, at(0), &mut out), "{line}");
        assert!(out.is_empty());
    }
}

#[test]
fn the_annotation_has_the_fields_of_the_reference() {
    let child = ChildContext { run_id: "run", step: StepId(2), agent: "scout" };
    let mut out = Vec::new();
    records::annotate(br#"{"type":"agent_start"}"#, &child, Timestamp::from_millis(1_764_000_000_900), &mut out);
    records::plain_line(b"hi \"you\"", Stream::Err, &child, Timestamp::from_millis(7), &mut out);
    let want = "{\"type\":\"agent_start\",\"subagentSource\":\"child\",\"subagentRunId\":\"run\",\"subagentStepIndex\":2,\
                \"subagentAgent\":\"scout\",\"observedAt\":1764000000900}\n\
                {\"type\":\"subagent.child.stderr\",\"line\":\"hi \\\"you\\\"\",\"subagentSource\":\"child\",\
                \"subagentRunId\":\"run\",\"subagentStepIndex\":2,\"subagentAgent\":\"scout\",\"observedAt\":7}\n";
    assert_eq!(String::from_utf8(out).unwrap(), want);
}

#[test]
fn records_of_the_reference_are_read() {
    let table = [
        (
            r#"{"type":"subagent.step.completed","ts":1,"runId":"r","stepIndex":1.0,"agent":"a","exitCode":0,"tokens":null}"#,
            1,
        ),
        (r#"{"type":"subagent.control","event":{"type":"needs_attention","ts":5}}"#, 0),
        (r#"{"type":"subagent.run.process_terminal","ts":1,"runId":"r","processTerminal":{}}"#, 0),
        (r#"{"type":"subagent.workflow.trace","ts":1,"runId":"r","trace":[]}"#, 1),
        (r#"{"type":"of.tomorrow","ts":1.5}"#, 1),
        (r#"{"type":"subagent.step.started","ts":1,"runId":"r"}"#, 1),
    ];
    for (line, events) in table {
        let mut read = Vec::new();
        assert!(records::decode(line.as_bytes(), &mut read), "{line}");
        assert_eq!(read.len(), events, "{line}");
    }
    let mut read = Vec::new();
    assert!(!records::decode(b"{\"type\":\"torn", &mut read));
    assert!(read.is_empty());
}

proptest! {
    #[test]
    fn a_status_is_stable_when_it_is_read_and_written_again(events in proptest::collection::vec(what(), 0..30), meta in run_meta()) {
        // A group that points beyond the steps is dropped by the reader, which is another test's matter.
        let meta = RunMeta {
            groups: meta.steps.first().map(|_| Group { start: 0, count: meta.steps.len(), logical: 0 }).into_iter().collect(),
            logical_count: 1,
            ..meta
        };
        let mut state = RunState::default();
        reduce(&mut state, &Event { at: at(0), what: What::RunStarted(Box::new(meta)) });
        for (n, what) in events.into_iter().enumerate() {
            reduce(&mut state, &Event { at: at(n as i64), what });
        }
        let dir = RunDir::at("/runs/r");
        for instance in [None, Some("i")] {
            let context = StatusContext { dir: &dir, instance };
            let once = status::encode(&state, &context);
            let read = decode_status(&once).unwrap();
            let twice = status::encode(&read, &context);
            prop_assert_eq!(String::from_utf8(once).unwrap(), String::from_utf8(twice).unwrap());
        }
    }
}
