//! Writing `status.json` (run-directory 2.1, 2.1.1, 2.2): fields in the order of its tables, absent instead of null.
//! What the reference does not know stands under one key `subdeck` at run and step level (run-directory 3.9).

use super::RunDir;
use super::json::{Json, Obj};
use super::{contract, graph, inner_run, question_record, supervision};
use crate::run::{
    Attempt, ControlSource, CostUsd, ExitInfo, NamedOutput, OpenCall, RunMode, RunState, RunnerKind, Steerable,
    Steering, StepId, StepPhase, StepState, SubAgent, Timestamp, Tokens, ToolOutcome, Unknowns, Within,
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
    let steps = state.steps.iter().map(|s| step(s, state, context)).collect();
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

fn process_terminal(state: &RunState, instance: &str, child: Option<usize>) -> Obj {
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

fn steering(steering: &Steering) -> Obj {
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

pub(super) fn step(step: &StepState, state: &RunState, context: &StatusContext<'_>) -> Obj {
    let mut obj = Obj::new();
    obj.set("agent", &step.agent).set("status", step.phase.as_str());
    obj.opt("description", step.has_task.then_some(REDACTED));
    obj.opt("phase", step.phase_title.as_ref()).opt("label", step.label.as_ref());
    contract::step(&mut obj, &step.contract);
    obj.opt("runner", runner(&step.runner));
    obj.opt("externalProcess", external(step, context.dir));
    obj.opt("sessionFile", step.session_file.as_ref());
    obj.opt("activityState", step.activity.as_ref()).opt("lastActivityAt", step.last_activity);
    if let Some(call) = step.current_call() {
        obj.set("currentTool", &call.tool).set("currentToolArgs", &call.args);
        obj.set("currentToolStartedAt", call.started_at).opt("currentPath", call.path.as_ref());
    }
    let recent = step.recent_tools.iter().map(|t| {
        let mut call = Obj::new();
        call.set("tool", &t.tool).set("args", &t.args).set("endMs", t.ended_at);
        call
    });
    obj.set("recentTools", recent.collect::<Json>());
    obj.set("recentOutput", step.recent_output.iter().collect::<Json>());
    let ran = step.started_at.is_some();
    obj.opt("turnCount", ran.then_some(step.turn_count)).opt("toolCount", ran.then_some(step.tool_count));
    obj.opt("startedAt", step.started_at).opt("endedAt", step.ended_at);
    if let (Some(start), Some(end)) = (step.started_at, step.ended_at) {
        obj.set("durationMs", millis(end, start));
    }
    obj.opt("exitCode", step.exit_code);
    obj.flag("timedOut", step.timed_out).flag("stopped", step.stopped);
    supervision::budgets_of_step(&mut obj, step);
    if !step.tokens.is_zero() {
        obj.set("tokens", tokens(step.tokens));
    }
    if step.phase.is_terminal() {
        obj.opt("totalCost", cost_summary(step.tokens, step.cost));
    }
    obj.opt("model", step.model.as_ref()).opt("thinking", step.thinking.as_ref());
    obj.opt("attemptedModels", attempted_models(step));
    let ended: Vec<Obj> = step.attempts.iter().filter_map(model_attempt).collect();
    if !ended.is_empty() {
        obj.set("modelAttempts", ended.into_iter().collect::<Json>());
    }
    if step.steering != Steering::default() {
        obj.set("steering", steering(&step.steering));
    }
    obj.opt("error", step.error.as_ref());
    obj.opt("processTerminal", context.instance.map(|i| process_terminal(state, i, Some(step.id.flat()))));
    let own = step_extras(step);
    if !own.is_empty() {
        obj.set("subdeck", own);
    }
    obj
}

/// The models that were asked, in their order; before the first those that may be (run-directory 2.1.1). `None` when there
/// are none.
pub(super) fn attempted_models(step: &StepState) -> Option<Json> {
    let mut models: Vec<&String> = Vec::new();
    for model in step.attempts.iter().filter_map(|a| a.model.as_ref()) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if step.attempts.is_empty() && step.phase == StepPhase::Pending {
        models.extend(&step.contract.models);
    }
    (!models.is_empty()).then(|| models.into_iter().collect())
}

/// Whole milliseconds between two moments.
pub(super) fn millis(end: Timestamp, start: Timestamp) -> u64 {
    u64::try_from(end.since(start).as_millis()).unwrap_or(u64::MAX)
}

/// The `runner` object, which only steps that are no native pi child have (run-directory 2.1.1).
pub(super) fn runner(kind: &RunnerKind) -> Option<Obj> {
    let mut obj = Obj::new();
    let stop = match kind {
        RunnerKind::ExternalCli { command, args } => {
            obj.set("type", "external-cli").set("command", command);
            obj.set("args", args.iter().collect::<Json>()).set("promptDelivery", "stdin");
            true
        }
        RunnerKind::ExternalJob { provider } => {
            obj.set("type", "external-job").set("provider", provider).set("options", Obj::new());
            false
        }
        _ => return None,
    };
    let mut can = Obj::new();
    can.set("stop", stop).set("steer", false).set("resume", false);
    can.set("structuredOutput", false).set("toolEvents", false);
    obj.set("capabilities", can);
    Some(obj)
}

/// The `externalProcess` object of a plain command (run-directory 2.1.1).
pub(super) fn external(step: &StepState, dir: &RunDir) -> Option<Obj> {
    let process = step.external.as_ref()?;
    let mut obj = Obj::new();
    obj.opt("pid", process.pid);
    obj.set("startedAt", process.started_at.or(step.started_at).unwrap_or_default());
    obj.opt("endedAt", process.ended_at);
    if let (Some(start), Some(end)) = (process.started_at, process.ended_at) {
        obj.set("durationMs", millis(end, start));
    }
    if let Some(exit) = process.exit {
        obj.set("exitCode", exit.code.map_or(Json::Null, Json::from));
        obj.set("processSignal", exit.signal.map_or(Json::Null, |n| signal_name(n).into()));
    }
    // A runner of ours keeps the streams at their usual places and does not repeat the paths in its state.
    let place = |known: &String, usual: std::path::PathBuf| {
        if known.is_empty() { usual.to_string_lossy().into_owned() } else { known.clone() }
    };
    obj.set("stdoutPath", place(&process.stdout_path, dir.external_out(step.id)));
    obj.set("stderrPath", place(&process.stderr_path, dir.external_err(step.id)));
    Some(obj)
}

pub(super) fn model_attempt(attempt: &Attempt) -> Option<Obj> {
    let success = attempt.success?;
    let mut obj = Obj::new();
    obj.set("model", attempt.model.as_deref().unwrap_or("default")).set("success", success);
    obj.opt("exitCode", attempt.exit_code).opt("error", attempt.error.as_ref());
    obj.set("usage", usage(attempt));
    Some(obj)
}

fn usage(attempt: &Attempt) -> Obj {
    let mut usage = Obj::new();
    let tokens = attempt.usage.tokens;
    usage.set("input", tokens.input).set("output", tokens.output);
    usage.set("cacheRead", tokens.cache_read).set("cacheWrite", tokens.cache_write);
    usage.set("cost", attempt.usage.cost.unwrap_or_default().0).set("turns", attempt.turns);
    usage
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

fn step_extras(step: &StepState) -> Obj {
    let mut own = Obj::new();
    own.opt("key", Some(&step.key).filter(|k| !k.is_empty()));
    own.set("logical", step.logical);
    contract::own_step(&mut own, &step.contract);
    own.opt("runner", runner_word(&step.runner));
    own.opt("pid", step.pid).opt("startTicks", step.start_ticks);
    own.opt("exit", step.exit.map(exit));
    own.opt("sessionId", step.session_id.as_ref());
    if !step.attempts.is_empty() {
        let attempts = step.attempts.iter().map(|a| {
            let mut obj = Obj::new();
            obj.opt("model", a.model.as_ref()).opt("reason", a.reason.as_ref()).opt("startedAt", a.started_at);
            obj.opt("endedAt", a.ended_at)
                .opt("success", a.success)
                .opt("exitCode", a.exit_code)
                .opt("error", a.error.as_ref());
            obj.set("usage", usage(a)).flag("free", a.usage.cost.is_none());
            obj
        });
        own.set("attempts", attempts.collect::<Json>());
    }
    if !step.open.is_empty() {
        let open = step.open.iter().map(|c| {
            let mut obj = Obj::new();
            obj.opt("call", c.call.as_ref()).set("tool", &c.tool).set("args", &c.args).opt("path", c.path.as_ref());
            obj.set("startedAt", c.started_at).set("seq", c.seq).opt("heardAt", c.heard);
            obj
        });
        own.set("open", open.collect::<Json>());
    }
    if !step.recent_tools.is_empty() {
        // One entry for each of `recentTools`; the previews of results are left to the event log.
        let tools = step.recent_tools.iter().map(|t| {
            let mut obj = Obj::new();
            obj.opt("startedAt", t.started_at).opt("outcome", t.outcome.map(ToolOutcome::as_str));
            obj.opt("path", t.path.as_ref()).opt("call", t.call.as_ref());
            obj
        });
        own.set("tools", tools.collect::<Json>());
    }
    if !step.sub_agents.is_empty() {
        own.set("subAgents", step.sub_agents.iter().map(sub_agent).collect::<Json>());
    }
    own.opt("unknown", (step.unknown.total > 0).then(|| unknown(&step.unknown)));
    let mut cache = Obj::new();
    cache.opt("read", Some(step.tokens.cache_read).filter(|n| *n > 0));
    cache.opt("write", Some(step.tokens.cache_write).filter(|n| *n > 0));
    own.opt("cache", Some(cache).filter(|c| !c.is_empty()));
    own.opt("costUsd", step.cost.map(|c| c.0));
    let mut window = Obj::new();
    window.opt("used", step.window.used).opt("size", step.window.size);
    own.opt("window", Some(window).filter(|w| !w.is_empty()));
    own.opt(
        "retrying",
        step.retrying.as_ref().map(|r| {
            let mut obj = Obj::new();
            obj.opt("attempt", r.attempt)
                .opt("max", r.max)
                .set("since", r.since)
                .opt("until", r.until)
                .set("reason", &r.reason);
            obj
        }),
    );
    own.opt("settledAt", step.settled_at);
    own.opt(
        "ending",
        step.ending.as_ref().map(|e| {
            let mut obj = Obj::new();
            obj.set("cause", e.cause.as_str()).set("since", e.since).set("message", &e.message);
            obj.opt("abortAt", e.abort_at).opt("intAt", e.int_at).opt("termAt", e.term_at).opt("killAt", e.kill_at);
            obj
        }),
    );
    match &step.steerable {
        Steerable::Unknown => {}
        Steerable::Yes => drop(own.set("steerable", true)),
        Steerable::No(reason) => drop(own.set("steerable", false).set("notSteerable", reason)),
    }
    let pids = |list: &[u32]| (!list.is_empty()).then(|| list.iter().copied().collect::<Json>());
    own.opt("heldBy", pids(&step.held_by)).opt("survivors", pids(&step.survivors));
    own.opt("truncatedAt", step.truncated_at).opt("timeoutMs", step.timeout_ms);
    own.opt("logError", step.log_error.as_ref());
    own.flag("carriedOver", step.carried_over);
    own.opt("cwd", Some(&step.cwd).filter(|c| !c.is_empty()));
    own.opt("limits", supervision::limits(&step.limits)).opt("thresholds", supervision::thresholds(&step.thresholds));
    own.opt("budget", supervision::budget(&step.budget));
    if !step.attention.is_empty() {
        own.set("attention", step.attention.iter().map(supervision::notice).collect::<Json>());
    }
    if !step.questions.is_empty() {
        own.set("questions", step.questions.iter().map(question_record::question).collect::<Json>());
    }
    if !step.inner.is_empty() {
        own.set("inner", inner_run::runs(&step.inner));
    }
    own.opt("innerHeardAt", step.inner_heard).opt("unanswered", step.unanswered.as_ref());
    own.opt("nextAttempt", step.next_attempt.as_ref().map(supervision::next_attempt));
    own
}

fn unknown(unknown: &Unknowns) -> Obj {
    let mut obj = Obj::new();
    let kinds = unknown.kinds.iter().map(|kind| {
        let mut obj = Obj::new();
        obj.set("kind", &kind.name).set("count", kind.count);
        obj
    });
    obj.set("total", unknown.total).set("kinds", kinds.collect::<Json>());
    obj
}

fn sub_agent(agent: &SubAgent) -> Obj {
    let mut obj = Obj::new();
    obj.set("id", &agent.id).set("name", &agent.name);
    obj.opt("about", Some(&agent.about).filter(|about| !about.is_empty())).opt("model", agent.model.as_ref());
    obj.set("startedAt", agent.started_at).opt("endedAt", agent.ended_at);
    obj.opt("outcome", agent.outcome.map(ToolOutcome::as_str));
    obj.opt(
        "tool",
        agent.tool.as_ref().map(|call| {
            let mut obj = Obj::new();
            obj.set("tool", &call.tool).set("args", &call.args);
            obj
        }),
    );
    obj.opt("open", Some(agent.open).filter(|open| *open > 0)).set("toolCount", agent.tool_count);
    obj.opt("tokens", agent.tokens).opt("lastMessage", agent.last_message.as_ref());
    obj
}

/// The word for runners that the shared `runner` object has no place for; pi over rpc needs none.
pub(super) fn runner_word(kind: &RunnerKind) -> Option<String> {
    match kind {
        RunnerKind::PiJson => Some("pi-json".to_owned()),
        RunnerKind::Demo => Some("demo".to_owned()),
        RunnerKind::Agent(agent) => Some(agent.word()),
        RunnerKind::Other(word) => Some(word.clone()),
        RunnerKind::Pi | RunnerKind::ExternalCli { .. } | RunnerKind::ExternalJob { .. } => None,
    }
}

pub(super) fn exit(exit: ExitInfo) -> Obj {
    let mut obj = Obj::new();
    obj.opt("code", exit.code).opt("signal", exit.signal);
    obj
}

/// The name of a signal, such as `SIGTERM`; unknown ones by number.
pub(super) fn signal_name(number: i32) -> String {
    SIGNALS.iter().find(|(n, _)| *n == number).map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

/// The number of a signal from its name.
pub(super) fn signal_number(name: &str) -> Option<i32> {
    SIGNALS.iter().find(|(_, n)| *n == name).map(|(n, _)| *n).or_else(|| name.strip_prefix("SIG")?.parse().ok())
}

/// The signals that a supervisor meets and whose numbers are the same on Linux and macOS.
pub(super) const SIGNALS: [(i32, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];
