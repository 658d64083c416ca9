//! Writing `status.json` (run-directory 2.1, 2.2): fields in the order of its tables, absent instead of null. What the
//! reference does not know stands under one key `subdeck` at run and step level (run-directory 3.9). The steps are
//! `status_step`'s.

use super::json::{Json, Obj};
use super::{RunDir, contract, graph, status_step, supervision};
use crate::run::{
    ControlSource, CostUsd, NamedOutput, OpenCall, RunMode, RunState, Steering, StepId, StepState, Timestamp, Tokens,
    Within,
};

/// The literal that stands for every task in shared documents (runner-behaviour 14.20).
pub const REDACTED: &str = "[prompt redacted]";

/// What a status needs to know besides the state.
#[derive(Clone, Copy, Debug)]
pub struct StatusContext<'a> {
    /// The run's directory.
    pub dir: &'a RunDir,
    /// The id of the runner's process instance. With one, the proof of the process's end is written as pending
    /// (run-directory 2.2, 11.7); without one no proof is promised and the field is left out.
    pub instance: Option<&'a str>,
}

/// The whole document.
#[must_use]
pub fn encode(state: &RunState, context: &StatusContext<'_>) -> Vec<u8> {
    let steps = state.steps.iter().map(|s| status_step::step(s, state, context)).collect();
    document(state, context, steps, outputs(state))
}

/// The whole document around what was written of the steps and the outputs.
pub(super) fn document(state: &RunState, context: &StatusContext<'_>, steps: Json, outputs: Obj) -> Vec<u8> {
    let mut run = Obj::new();
    run.set("lifecycleArtifactVersion", 3).set("runId", state.id.as_str());
    run.opt("sessionId", state.session_id.as_ref()).opt("completionOwnerId", state.owner_id.as_ref());
    run.set("mode", mode_word(&state.mode)).set("state", state.phase.as_str());
    run.opt("error", state.error.as_ref());
    let live = state.ended_at.is_none();
    run.opt("activityState", worst_activity(state).filter(|_| live));
    run.set("lastActivityAt", state.last_activity.or(state.started_at).unwrap_or_default());
    if let Some(call) = newest_call(state) {
        run.set("currentTool", &call.tool).set("currentToolStartedAt", call.started_at);
        run.opt("currentPath", call.path.as_ref());
    }
    run.opt("turnCount", state.steps.iter().map(|s| s.turn_count).max().filter(|n| *n > 0));
    let tools = state.steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.tool_count));
    run.opt("toolCount", Some(tools).filter(|n| *n > 0));
    run.set("steering", steering(&state.steering));
    run.set("startedAt", state.started_at.unwrap_or_default());
    run.opt("endedAt", state.ended_at);
    run.set("lastUpdate", state.last_update.or(state.started_at).unwrap_or_default());
    run.opt("timeoutMs", state.timeout_ms).opt("deadlineAt", state.deadline_at);
    run.flag("timedOut", state.timed_out).flag("stopped", state.stopped);
    supervision::budgets_of_run(&mut run, state);
    run.set("pid", state.pid.unwrap_or(0)).set("cwd", &state.cwd);
    run.set("currentStep", state.current.map_or(0, |s| s.flat()));
    run.set("chainStepCount", state.logical_count);
    run.set("parallelGroups", groups(state));
    run.opt("workflowGraph", state.contract.graph.as_ref().map(|g| graph::encode(&g.now(state), state.id.as_str())));
    contract::run(&mut run, &state.contract);
    run.opt("processTerminal", context.instance.map(|instance| process_terminal(state, instance, None)));
    run.set("steps", steps);
    let last = state.last_started.unwrap_or_default();
    run.set("outputFile", context.dir.output(last).to_string_lossy().into_owned());
    let sum = state.tokens();
    if !sum.is_zero() {
        run.set("totalTokens", tokens(sum));
    }
    if !live {
        run.opt("totalCost", cost_summary(sum, state.cost()));
        let newest = state.last_started.and_then(|id| state.step(id)).and_then(|s| s.session_file.as_ref());
        run.opt("sessionFile", newest);
    }
    run.set("outputs", outputs);
    run.set("subdeck", run_extras(state));
    run.pretty()
}

/// The word of a mode.
pub(super) fn mode_word(mode: &RunMode) -> &str {
    match mode {
        RunMode::Single => "single",
        RunMode::Parallel => "parallel",
        RunMode::Chain => "chain",
        RunMode::Workflow => "workflow",
        RunMode::Unknown(word) => word,
    }
}

pub(super) fn worst_activity(state: &RunState) -> Option<&str> {
    let mut running = state.steps.iter().filter(|s| !s.phase.is_terminal()).filter_map(|s| s.activity.as_deref());
    let mut worst = None;
    running
        .find(|a| {
            worst.get_or_insert(*a);
            *a == "needs_attention"
        })
        .or(worst)
}

pub(super) fn newest_call(state: &RunState) -> Option<&OpenCall> {
    let calls = state.steps.iter().filter_map(StepState::current_call);
    calls.min_by_key(|c| (std::cmp::Reverse(c.started_at), c.seq))
}

fn groups(state: &RunState) -> Json {
    state
        .groups
        .iter()
        .map(|g| {
            let mut group = Obj::new();
            group.set("start", g.start).set("count", g.count).set("stepIndex", g.logical);
            group
        })
        .collect()
}

pub(super) fn outputs(state: &RunState) -> Obj {
    let mut map = Obj::new();
    for (name, entry) in &state.outputs {
        map.set(name, output(entry));
    }
    map
}

pub(super) fn output(output: &NamedOutput) -> Obj {
    let mut entry = Obj::new();
    entry.set("text", &*output.text).set("agent", &output.agent).set("stepIndex", output.logical);
    entry
}

pub(super) fn process_terminal(state: &RunState, instance: &str, child: Option<usize>) -> Obj {
    let mut proof = Obj::new();
    proof.set("version", 1).set("state", "pending").set("runId", state.id.as_str());
    proof.opt("childIndex", child).set("runnerProcessInstanceId", instance);
    proof
}

/// TokenUsage of run-directory 2.2.
pub(super) fn tokens(tokens: Tokens) -> Obj {
    let mut usage = Obj::new();
    usage.set("input", tokens.input).set("output", tokens.output).set("total", tokens.total());
    usage
}

/// CostSummary of run-directory 2.2; `None` when nothing was reported.
pub(super) fn cost_summary(sum: Tokens, cost: Option<CostUsd>) -> Option<Obj> {
    if sum.is_zero() && cost.is_none_or(|c| c.0 == 0.0) {
        return None;
    }
    let mut summary = Obj::new();
    summary.set("inputTokens", sum.input).set("outputTokens", sum.output);
    summary.set("costUsd", cost.unwrap_or_default().0);
    Some(summary)
}

pub(super) fn steering(steering: &Steering) -> Obj {
    let mut obj = Obj::new();
    obj.set("requested", steering.requested).set("scheduled", steering.scheduled).set("pending", steering.pending);
    obj.set("delivered", steering.delivered).set("failed", steering.failed).set("recovered", steering.recovered);
    obj.opt("lastRequestedAt", steering.last_requested_at).opt("lastDeliveredAt", steering.last_delivered_at);
    let recent = steering.recent.iter().map(|request| {
        let mut entry = Obj::new();
        entry.set("id", &request.id).set("requestedAt", request.requested_at).opt("source", request.source.as_ref());
        entry.set("messagePreview", &request.preview);
        entry.set("targets", request.targets.iter().map(target).collect::<Json>());
        if request.mode != crate::run::SteerMode::Steer {
            let mut own = Obj::new();
            own.set("mode", request.mode.as_str());
            entry.set("subdeck", own);
        }
        entry
    });
    obj.set("recent", recent.collect::<Json>());
    obj
}

/// One target of a request, as the status and our own records hold it.
pub(super) fn target(target: &crate::run::SteerTarget) -> Obj {
    use crate::run::TargetState;
    let mut entry = Obj::new();
    entry.set("index", target.step.flat()).set("state", target.state.as_str()).opt("routedAt", target.routed_at);
    match target.state {
        TargetState::Late => entry.opt("lateDeliveredAt", target.delivered_at),
        _ => entry.opt("deliveredAt", target.delivered_at),
    };
    entry.opt("failedAt", target.failed_at).opt("reason", target.reason.as_ref());
    entry
}

/// Whole milliseconds between two moments.
pub(super) fn millis(end: Timestamp, start: Timestamp) -> u64 {
    u64::try_from(end.since(start).as_millis()).unwrap_or(u64::MAX)
}

/// The place of another run in which this one was started.
pub(super) fn within(within: &Within) -> Obj {
    let mut place = Obj::new();
    place.set("runId", within.run.as_str()).opt("stepIndex", within.step.map(StepId::flat));
    place
}

fn run_extras(state: &RunState) -> Obj {
    let mut own = Obj::new();
    // Always there, so that a reader knows a status of ours from a foreign one.
    own.set("version", env!("CARGO_PKG_VERSION"));
    own.opt("name", state.name.as_ref());
    own.flag("interrupted", state.interrupted);
    own.opt("endedBy", state.ended_by.as_ref().map(source));
    own.opt("resumedFrom", state.resumed_from.as_ref().map(|id| id.as_str()));
    own.opt("startedIn", state.started_in.as_ref().map(within));
    own.opt("lost", state.lost.as_ref());
    if !state.rejected.is_empty() {
        let rejected = state.rejected.iter().map(|(file, reason)| {
            let mut entry = Obj::new();
            entry.set("file", file).set("reason", reason);
            entry
        });
        own.set("rejected", rejected.collect::<Json>());
    }
    own.flag("deadlineFixed", state.deadline_fixed);
    contract::task(&mut own, &state.contract);
    own.opt("limits", supervision::limits(&state.limits)).opt("budget", supervision::budget(&state.budget));
    own.opt("slept", supervision::gaps(&state.gaps));
    own.opt(
        "diskLow",
        state.disk_low.map(|(since, free)| {
            let mut low = Obj::new();
            low.set("since", since).set("free", free);
            low
        }),
    );
    own.opt(
        "unannounced",
        state.unannounced.as_ref().map(|one| {
            let mut obj = Obj::new();
            obj.set("at", one.at).set("step", one.step.flat()).set("what", &one.told);
            obj
        }),
    );
    own.opt("anomalies", Some(state.anomalies).filter(|n| *n > 0));
    own.opt("nextSeq", Some(state.next_seq).filter(|n| *n > 0));
    own.opt("lastStarted", state.last_started.map(|s| s.flat()));
    own.opt("current", state.current.map(|s| s.flat()));
    own
}

/// Who asked, as an object.
pub(super) fn source(source: &ControlSource) -> Obj {
    let mut obj = Obj::new();
    obj.set("via", &source.via).opt("user", source.user.as_ref()).opt("pid", source.pid);
    obj.opt("tty", source.tty.as_ref()).opt("key", source.key.as_ref()).opt("reason", source.reason.as_ref());
    obj
}
