//! Writing the lines of `events.jsonl` (run-directory 2.5, 3.9; runner-behaviour, Appendix B). Reading them is
//! `records_read`'s.

use super::contract;
use super::inner_run;
use super::json::{Json, Obj};
use super::question_record;
use super::signal_names::signal_name;
use super::status::{self, cost_summary, millis, tokens};
use super::status_step;
use super::supervision;
use crate::run::{
    AgentEvent, Event, Metric, RunMeta, RunState, Stage, Steerable, StepId, StepMeta, StepOutcome, StepPhase, Stream,
    TargetState, Timestamp, Used, What,
};

pub use super::child_record::{ChildContext, annotate, plain_line};
pub use super::records_read::{Child, child_of, decode};

/// What a record needs to know besides the event: the run as it is before or after the event.
#[derive(Clone, Copy, Debug)]
pub struct RecordContext<'a> {
    /// The run.
    pub state: &'a RunState,
}

impl RecordContext<'_> {
    fn agent(&self, step: StepId) -> &str {
        self.state.step(step).map_or("", |s| s.agent.as_str())
    }
}

/// The line of an event, with its line feed. `None` for what is never recorded: text pieces, output as it comes, and
/// what a child said, which is recorded as the child's own line ([`annotate`]).
#[must_use]
pub fn encode(event: &Event, context: &RecordContext<'_>) -> Option<Vec<u8>> {
    let at = event.at;
    let run = match &event.what {
        What::RunStarted(meta) => meta.id.as_str(),
        _ => context.state.id.as_str(),
    };
    let record = |kind: &str| begin(kind, at, run);
    let of_step = |kind: &str, step: StepId| {
        let mut obj = begin(kind, at, run);
        obj.set("stepIndex", step.flat()).set("agent", context.agent(step));
        obj
    };
    let obj = match &event.what {
        What::RunStarted(meta) => run_started(meta, at),
        What::StepStarted { step } => of_step("subagent.step.started", *step),
        What::GroupStarted { logical } => {
            let mut obj = record("subagent.parallel.started");
            let agents: Vec<&str> =
                context.state.steps.iter().filter(|s| s.logical == *logical).map(|s| s.agent.as_str()).collect();
            let count = agents.len();
            obj.set("stepIndex", *logical).set("agents", agents.into_iter().collect::<Json>()).set("count", count);
            obj
        }
        What::GroupEnded { logical, success } => {
            let mut obj = record("subagent.parallel.completed");
            obj.set("stepIndex", *logical).set("success", *success);
            obj
        }
        What::AttemptStarted { step, attempt, model, reason } => {
            let mut obj = of_step("subdeck.attempt.started", *step);
            obj.set("attempt", *attempt).opt("model", model.as_ref()).opt("reason", reason.as_ref());
            obj
        }
        What::ChildSpawned { step, pid, start_ticks } => {
            let mut obj = of_step("subdeck.child.spawned", *step);
            obj.set("pid", *pid).opt("startTicks", *start_ticks);
            obj
        }
        What::Agent { step, event: AgentEvent::ProtocolFailure { message } } => {
            let mut obj = of_step("subdeck.protocol.failed", *step);
            obj.set("message", message);
            obj
        }
        What::ChildExited { step, exit } => {
            let mut obj = of_step("subdeck.child.exited", *step);
            obj.set("exitCode", exit.code.map_or(Json::Null, Json::from));
            obj.set("signal", exit.signal.map_or(Json::Null, |n| signal_name(n).into()));
            obj
        }
        What::OutputHeld { step, pids } => {
            let mut obj = of_step("subdeck.output.held", *step);
            obj.set("pids", pids.iter().copied().collect::<Json>());
            obj
        }
        What::OutputTruncated { step, stream, cap } => {
            let mut obj = of_step("subdeck.output.truncated", *step);
            obj.set("stream", stream_word(*stream)).set("cap", *cap);
            obj
        }
        What::LogFailed { step, error } => {
            let mut obj = of_step("subdeck.log.failed", *step);
            obj.set("error", error);
            obj
        }
        What::ArtifactFailed { step, which, error } => {
            let mut obj = of_step("subdeck.artifact.failed", *step);
            obj.set("which", which.as_str()).set("error", error);
            obj
        }
        What::StepEnded { step, outcome } => step_ended(*step, outcome, at, context),
        What::RunInterrupted { source } => {
            let mut obj = record("subagent.run.paused");
            obj.opt("subdeck", source.as_ref().map(by));
            obj
        }
        What::RunStopped { message, source } => {
            let mut obj = record("subagent.run.stopped");
            obj.set("message", message).opt("subdeck", source.as_ref().map(by));
            obj
        }
        What::RunTimedOut { timeout_ms, message, source } => {
            let mut obj = record("subagent.run.timed_out");
            obj.opt("timeoutMs", *timeout_ms).opt("deadlineAt", context.state.deadline_at).set("message", message);
            obj.opt("subdeck", source.as_ref().map(by));
            obj
        }
        What::StepEnding { step, cause, message, source } => {
            let mut obj = of_step("subdeck.step.ending", *step);
            obj.set("cause", cause.as_str()).set("message", message);
            obj.opt("source", source.as_ref().map(status::source));
            obj
        }
        What::AttemptEnded { step, exit_code, error, next } => {
            let mut obj = of_step("subdeck.attempt.ended", *step);
            obj.set("exitCode", *exit_code).set("error", error).set("next", supervision::next_attempt(next));
            obj
        }
        What::AttentionRaised { step, notice } => {
            let mut obj = of_step("subdeck.attention.raised", *step);
            obj.set("notice", supervision::notice(notice));
            obj
        }
        What::AttentionCleared { step, id } => {
            let mut obj = of_step("subdeck.attention.cleared", *step);
            obj.set("id", id);
            obj
        }
        What::AttentionAcknowledged { step, id, source } => {
            let mut obj = of_step("subdeck.attention.acknowledged", *step);
            obj.set("id", id).opt("source", source.as_ref().map(status::source));
            obj
        }
        What::QuestionAsked { step, question } => {
            let mut obj = of_step("subdeck.question.asked", *step);
            obj.set("question", question_record::question(question));
            obj
        }
        What::QuestionAnswered { step, id, text, answer, by, source } => {
            let mut obj = of_step("subdeck.question.answered", *step);
            question_record::answered(&mut obj, (id, text), answer, *by, source.as_ref());
            obj
        }
        What::BudgetReached { step, metric, stage, used, message } => {
            budget_reached(&record, &of_step, context.state, *step, (*metric, *stage, *used), message)
        }
        What::BudgetRaised { step, raise, source } => {
            let mut obj = step.map_or_else(|| record("subdeck.budget.raised"), |s| of_step("subdeck.budget.raised", s));
            obj.set("key", raise.key())
                .set("value", supervision::raise_value(*raise))
                .opt("source", source.as_ref().map(status::source));
            obj
        }
        What::DiskSpace { free, low } => {
            let mut obj = record("subdeck.disk.space");
            obj.set("free", *free).set("low", *low);
            obj
        }
        What::InnerRuns { step, runs } => {
            let mut obj = of_step("subdeck.inner.runs", *step);
            obj.set("runs", inner_run::runs(runs));
            obj
        }
        What::Slept { ms } => {
            let mut obj = record("subdeck.slept");
            obj.set("ms", *ms);
            obj
        }
        What::SteerRequested(request) => {
            let mut obj = record("subagent.steer.requested");
            obj.set("requestId", &request.id);
            let targets = request.targets.iter().map(|target| {
                let mut entry = Obj::new();
                entry.set("index", target.step.flat()).set("state", target.state.as_str());
                entry.opt("reason", target.reason.as_ref());
                entry
            });
            obj.set("targets", targets.collect::<Json>());
            let mut own = Obj::new();
            own.set("targets", request.targets.iter().map(status::target).collect::<Json>());
            own.set("requestedAt", request.requested_at).opt("source", request.source.as_ref());
            own.set("mode", request.mode.as_str()).set("preview", &request.preview);
            obj.set("subdeck", own);
            obj
        }
        What::SteerMoved { id, step, to, detail } => steer_moved(record, id, *step, *to, detail.as_ref()),
        What::Capability { step, steerable } => {
            let mut obj = of_step("subdeck.capability", *step);
            match steerable {
                Steerable::Unknown => {}
                Steerable::Yes => drop(obj.set("steerable", true)),
                Steerable::No(reason) => drop(obj.set("steerable", false).set("reason", reason)),
            }
            obj
        }
        What::ControlRejected { file, reason, set_aside } => {
            let mut obj = record("subdeck.control.rejected");
            obj.set("file", file).set("reason", reason).flag("setAside", *set_aside);
            obj
        }
        What::ControlUnannounced { step, what, source } => {
            let kind = "subdeck.control.unannounced";
            let mut obj = step.map_or_else(|| record(kind), |step| of_step(kind, step));
            obj.set("what", what).set("source", status::source(source));
            obj
        }
        What::SignalSent { step, signal, pid, group, cause } => {
            let mut obj = of_step("subdeck.signal.sent", *step);
            obj.set("signal", *signal).set("pid", *pid).set("group", *group).set("cause", cause.as_str());
            obj
        }
        What::AbortSent { step } => of_step("subdeck.abort.sent", *step),
        What::TreeSwept { step, ended, survivors } => {
            let mut obj = of_step("subdeck.tree.swept", *step);
            obj.set("ended", ended.iter().copied().collect::<Json>());
            obj.set("survivors", survivors.iter().copied().collect::<Json>());
            obj
        }
        What::RunEnded { state, error } => {
            let mut obj = begin("subagent.run.completed", at, run);
            obj.set("lifecycleArtifactVersion", 3).set("status", state.as_str());
            obj.set("durationMs", context.state.started_at.map_or(0, |start| millis(at, start)));
            let sum = context.state.tokens();
            if !sum.is_zero() {
                obj.set("totalTokens", tokens(sum));
            }
            obj.opt("totalCost", cost_summary(sum, context.state.cost()));
            obj.opt("usageBudget", supervision::usage_budget(context.state));
            obj.opt(
                "subdeck",
                error.as_ref().map(|error| {
                    let mut own = Obj::new();
                    own.set("error", error);
                    own
                }),
            );
            obj
        }
        What::RunLost { message } => {
            // The word of the reference's own repair, so that its readers know what happened.
            let mut obj = record("subagent.run.repaired_stale");
            obj.opt("pid", context.state.pid);
            obj.set("message", message);
            obj
        }
        // What a foreign runner said is not repeated.
        What::AttentionNoted { .. } => return None,
        What::Agent { .. } | What::OutputLines { .. } | What::OutputSeen { .. } | What::Unknown { .. } => return None,
    };
    Some(obj.line())
}

/// Of turns the package's readers know two records (run-directory 2.5); everything else is ours.
fn budget_reached(
    record: &dyn Fn(&str) -> Obj,
    of_step: &dyn Fn(&str, StepId) -> Obj,
    state: &RunState,
    step: Option<StepId>,
    (metric, stage, used): (Metric, Stage, Used),
    message: &str,
) -> Obj {
    let turns = step.and_then(|id| Some((id, state.step(id)?.limits.turns?)));
    let shared = match stage {
        Stage::Deferred => Some("subagent.step.turn_budget_deferred"),
        Stage::Hard => Some("subagent.step.turn_budget_exceeded"),
        Stage::Soft | Stage::Late => None,
    };
    let mut obj = match (step, turns, shared) {
        (_, Some((id, limit)), Some(kind)) if metric == Metric::Turns => {
            let mut obj = of_step(kind, id);
            obj.set("turnCount", used.amount as u64).set("maxTurns", limit.max).set("graceTurns", limit.grace);
            obj
        }
        (Some(id), ..) => of_step("subdeck.budget.reached", id),
        (None, ..) => record("subdeck.budget.reached"),
    };
    obj.set("message", message);
    let mut own = Obj::new();
    own.set("metric", metric.key()).set("stage", stage.as_str()).set("used", used.amount);
    own.opt("atLeast", used.partial.then_some(true));
    obj.set("subdeck", own);
    obj
}

fn begin(kind: &str, at: Timestamp, run: &str) -> Obj {
    let mut obj = Obj::new();
    obj.set("type", kind).set("ts", at).set("runId", run);
    obj
}

/// Who asked, below the one key for what is ours.
fn by(source: &crate::run::ControlSource) -> Obj {
    let mut own = Obj::new();
    own.set("source", status::source(source));
    own
}

/// The record that begins a run carries everything known of its steps, so that events alone rebuild the state.
fn run_started(meta: &RunMeta, at: Timestamp) -> Obj {
    let mut obj = Obj::new();
    obj.set("type", "subagent.run.started").set("lifecycleArtifactVersion", 3).set("ts", at);
    obj.set("runId", meta.id.as_str()).set("mode", status::mode_word(&meta.mode)).set("cwd", &meta.cwd);
    obj.opt("pid", meta.pid);
    let mut own = Obj::new();
    own.opt("name", meta.name.as_ref()).opt("sessionId", meta.session_id.as_ref());
    own.opt("ownerId", meta.owner_id.as_ref()).opt("timeoutMs", meta.timeout_ms).opt("deadlineAt", meta.deadline_at);
    own.flag("deadlineFixed", meta.deadline_fixed).opt("limits", supervision::limits(&meta.limits));
    own.opt("resumedFrom", meta.resumed_from.as_ref().map(|id| id.as_str())).set("logicalCount", meta.logical_count);
    own.opt("startedIn", meta.started_in.as_ref().map(status::within));
    let groups = meta.groups.iter().map(|g| {
        let mut group = Obj::new();
        group.set("start", g.start).set("count", g.count).set("stepIndex", g.logical);
        group
    });
    own.set("groups", groups.collect::<Json>());
    own.set("steps", meta.steps.iter().map(step_meta).collect::<Json>());
    own.opt("contract", contract::whole_run(&meta.contract, meta.id.as_str()));
    obj.set("subdeck", own);
    obj
}

fn step_meta(meta: &StepMeta) -> Obj {
    let mut step = Obj::new();
    step.set("key", &meta.key).set("agent", &meta.agent).opt("label", meta.label.as_ref());
    step.opt("phase", meta.phase.as_ref()).set("logical", meta.logical);
    step.opt("runner", status_step::runner(&meta.runner)).opt("runnerKind", status_step::runner_word(&meta.runner));
    step.opt("model", meta.model.as_ref()).opt("thinking", meta.thinking.as_ref());
    step.opt("sessionFile", meta.session_file.as_ref()).flag("hasTask", meta.has_task);
    step.opt("timeoutMs", meta.timeout_ms).flag("carriedOver", meta.carried_over);
    step.opt("cwd", Some(&meta.cwd).filter(|c| !c.is_empty()));
    step.opt("limits", supervision::limits(&meta.limits)).opt("thresholds", supervision::thresholds(&meta.thresholds));
    step.opt("contract", contract::whole_step(&meta.contract));
    step
}

fn step_ended(step: StepId, outcome: &StepOutcome, at: Timestamp, context: &RecordContext<'_>) -> Obj {
    let kind = match outcome.phase {
        StepPhase::Complete => "subagent.step.completed",
        StepPhase::Paused => "subagent.step.paused",
        StepPhase::Stopped => "subagent.step.stopped",
        _ => "subagent.step.failed",
    };
    let mut obj = begin(kind, at, context.state.id.as_str());
    obj.set("stepIndex", step.flat()).set("agent", context.agent(step)).set("exitCode", outcome.exit_code);
    let known = context.state.step(step);
    let start = known.and_then(|s| s.started_at).unwrap_or(at);
    obj.set("durationMs", millis(at, start));
    if let Some(known) = known
        && !context.state.groups.iter().any(|g| g.logical == known.logical)
    {
        // Only steps outside of groups carry this field, and for them it is null without usage.
        obj.set("tokens", if known.tokens.is_zero() { Json::Null } else { tokens(known.tokens).into() });
    }
    let mut own = Obj::new();
    if !matches!(outcome.phase, StepPhase::Complete | StepPhase::Paused | StepPhase::Stopped | StepPhase::Failed) {
        own.set("phase", outcome.phase.as_str());
    }
    own.opt("error", outcome.error.as_ref()).flag("timedOut", outcome.timed_out).flag("stopped", outcome.stopped);
    own.opt("signal", outcome.signal);
    own.opt("acceptance", outcome.acceptance.as_deref().map(super::acceptance::encode));
    if let Some((name, output)) = &outcome.output {
        let mut entry = Obj::new();
        entry.set("name", name).set("text", &*output.text).set("agent", &output.agent);
        entry.set("stepIndex", output.logical);
        own.set("output", entry);
    }
    if !own.is_empty() {
        obj.set("subdeck", own);
    }
    obj
}

fn steer_moved(record: impl Fn(&str) -> Obj, id: &str, step: StepId, to: TargetState, detail: Option<&String>) -> Obj {
    let begin = |kind: &str| {
        let mut obj = record(kind);
        obj.set("requestId", id).set("index", step.flat());
        obj
    };
    match to {
        TargetState::Scheduled | TargetState::Routed => {
            let mut obj =
                begin(if to == TargetState::Routed { "subagent.steer.routed" } else { "subagent.steer.scheduled" });
            obj.opt("message", detail);
            obj
        }
        TargetState::Queued => {
            let mut obj = begin("subagent.steer.queued");
            obj.set("deliveryStatus", "queued").opt("message", detail);
            obj
        }
        TargetState::Delivered | TargetState::Late => {
            let mut obj = begin("subagent.steer.delivered");
            obj.set("late", to == TargetState::Late).set("deliveryStatus", "delivered").opt("message", detail);
            obj
        }
        TargetState::Failed => {
            let mut obj = begin("subagent.steer.failed");
            obj.opt("reason", detail);
            obj
        }
        TargetState::Recovered | TargetState::Unknown => {
            let mut obj = begin("subdeck.steer.moved");
            obj.set("state", to.as_str()).opt("message", detail);
            obj
        }
    }
}

/// The notice that no target of a request is open any more and at least one failed (run-directory 3.6). It changes no
/// state; foreign readers show it. `partial` says that other targets got the message.
#[must_use]
pub fn steering_notice(run: &str, request: &str, partial: bool, message: &str, at: Timestamp) -> Vec<u8> {
    let mut obj = begin("subagent.steering.notice", at, run);
    obj.set("requestId", request).set("state", if partial { "partial" } else { "failed" }).set("message", message);
    obj.line()
}

/// The word of a stream.
#[must_use]
pub const fn stream_word(stream: Stream) -> &'static str {
    match stream {
        Stream::Out => "stdout",
        Stream::Err => "stderr",
        Stream::Own => "own",
    }
}
