//! What runs and steps are told of at their beginning and their end, any of it.

use proptest::prelude::*;

use super::values::*;
use crate::run::*;

pub(super) fn ledger() -> impl Strategy<Value = Ledger> {
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

pub(super) fn node() -> impl Strategy<Value = GraphNode> {
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

pub(super) fn run_contract() -> impl Strategy<Value = RunContract> {
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

pub(super) fn step_contract() -> impl Strategy<Value = StepContract> {
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

pub(super) fn step_meta() -> impl Strategy<Value = StepMeta> {
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

pub(super) fn mode() -> impl Strategy<Value = RunMode> {
    proptest::sample::select(vec![RunMode::Single, RunMode::Parallel, RunMode::Chain, RunMode::Unknown("odd".into())])
}

pub(super) fn run_meta() -> impl Strategy<Value = RunMeta> {
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

pub(super) fn steer_request() -> impl Strategy<Value = SteerRequest> {
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

pub(super) fn outcome() -> impl Strategy<Value = StepOutcome> {
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

pub(super) fn step() -> impl Strategy<Value = StepId> {
    (0u32..9).prop_map(StepId)
}

pub(super) fn pids() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..3)
}

pub(super) fn next_attempt() -> impl Strategy<Value = NextAttempt> {
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

pub(super) fn inner_run() -> impl Strategy<Value = InnerRun> {
    let time = || (0i64..9000).prop_map(at);
    (text(), text(), (time(), time()), maybe((text(), time())))
        .prop_map(|(id, title, (started_at, heard), needs)| InnerRun { id: RunId(id), title, started_at, heard, needs })
}
