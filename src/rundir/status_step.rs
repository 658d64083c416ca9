//! Writing the steps of `status.json` (run-directory 2.1.1), and the parts of a step that other documents repeat: its models,
//! its attempts, its runner, its process.

use super::RunDir;
use super::json::{Json, Obj};
use super::signal_names::signal_name;
use super::status::{REDACTED, StatusContext, cost_summary, millis, process_terminal, steering, tokens};
use super::{contract, inner_run, question_record, supervision};
use crate::run::{
    Attempt, ExitInfo, RunState, RunnerKind, Steerable, Steering, StepPhase, StepState, SubAgent, ToolOutcome, Unknowns,
};

/// All that a status says of a step.
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
