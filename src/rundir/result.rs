//! The result file and the three steps of writing it (run-directory 5).

use std::path::{Path, PathBuf};

use super::json::{Json, Obj};
use super::status::{self, cost_summary, tokens};
use super::write::Op;
use super::{RunDir, segment};
use crate::run::{RunMode, RunPhase, RunState, StepId, StepPhase, StepState, Timestamp};

/// What a step that ran gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepResult {
    /// Which step.
    pub step: StepId,
    /// Its final text.
    pub output: String,
    /// The text was cut.
    pub truncated: bool,
}

/// The final result. `results` holds one entry for each step that ran, in flat order; `limit_ms` is left to the state.
#[must_use]
pub fn encode(state: &RunState, dir: &RunDir, results: &[StepResult]) -> Vec<u8> {
    let mut obj = head(state, &summary(state, results));
    obj.set("results", results.iter().filter_map(|r| entry(state, r)).collect::<Json>());
    obj.set("outputs", status::outputs(state));
    tail(&mut obj, state, dir);
    obj.set("truncated", results.iter().any(|r| r.truncated));
    close(&mut obj, state, dir);
    obj.pretty()
}

/// The recoverable result, which is only ever pending: written whenever the status turns to an end before the final
/// result exists, so that a crash still leaves one (run-directory 5).
#[must_use]
pub fn encode_recoverable(state: &RunState, dir: &RunDir) -> Vec<u8> {
    let text = state.error.clone().unwrap_or_else(|| format!("Run {}.", state.phase.as_str()));
    let mut obj = head(state, &text);
    obj.set("runId", state.id.as_str());
    let ran = state.steps.iter().filter(|s| s.started_at.is_some());
    let empty = |s: &StepState| StepResult { step: s.id, ..StepResult::default() };
    obj.set("results", ran.filter_map(|s| entry(state, &empty(s))).collect::<Json>());
    tail(&mut obj, state, dir);
    close(&mut obj, state, dir);
    obj.pretty()
}

fn head(state: &RunState, summary: &str) -> Obj {
    let mut obj = Obj::new();
    obj.set("lifecycleArtifactVersion", 3).set("id", state.id.as_str()).set("agent", agent_label(state));
    obj.set("mode", status::mode_word(&state.mode)).set("success", state.phase == RunPhase::Complete);
    obj.set("state", state.phase.as_str()).set("summary", summary);
    obj.opt("error", state.error.as_ref()).flag("timedOut", state.timed_out).flag("stopped", state.stopped);
    obj.opt("timeoutMs", state.timeout_ms).opt("deadlineAt", state.deadline_at);
    obj
}

fn tail(obj: &mut Obj, state: &RunState, _dir: &RunDir) {
    let ok = matches!(state.phase, RunPhase::Complete | RunPhase::Paused);
    obj.set("exitCode", if ok { 0 } else { 1 });
    let end = state.ended_at.or(state.last_update).unwrap_or_default();
    obj.set("timestamp", end);
    obj.set("durationMs", state.started_at.map_or(0, |start| status::millis(end, start)));
    let sum = state.tokens();
    if !sum.is_zero() {
        obj.set("totalTokens", tokens(sum));
    }
    obj.opt("totalCost", cost_summary(sum, state.cost()));
}

fn close(obj: &mut Obj, state: &RunState, dir: &RunDir) {
    obj.set("cwd", &state.cwd).set("asyncDir", dir.path().to_string_lossy().into_owned());
    obj.opt("sessionId", state.session_id.as_ref()).opt("completionOwnerId", state.owner_id.as_ref());
    let newest = state.last_started.and_then(|id| state.step(id)).and_then(|s| s.session_file.as_ref());
    obj.opt("sessionFile", newest);
}

/// A single name, `parallel:a+b`, or `chain:a->b` over all flat steps.
fn agent_label(state: &RunState) -> String {
    let names: Vec<&str> = state.steps.iter().map(|s| s.agent.as_str()).collect();
    match (&state.mode, names.as_slice()) {
        (_, [only]) => (*only).to_owned(),
        (RunMode::Parallel, _) => format!("parallel:{}", names.join("+")),
        _ => format!("chain:{}", names.join("->")),
    }
}

/// What the run came to, in words (runner-behaviour 11).
#[must_use]
pub fn summary(state: &RunState, results: &[StepResult]) -> String {
    if state.stopped || state.timed_out {
        return state.error.clone().unwrap_or_default();
    }
    let blocks = results.iter().map(|r| {
        let agent = state.step(r.step).map_or("", |s| s.agent.as_str());
        format!("{agent}:\n{}", r.output)
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn entry(state: &RunState, result: &StepResult) -> Option<Obj> {
    let step = state.step(result.step)?;
    let mut obj = Obj::new();
    obj.set("agent", &step.agent).set("output", &result.output);
    obj.set("outputState", if result.output.is_empty() { "absent" } else { "present" });
    obj.set("success", step.phase == StepPhase::Complete).opt("error", step.error.as_ref());
    obj.flag("skipped", step.exit_code == Some(-1)).flag("interrupted", step.phase == StepPhase::Paused);
    obj.flag("timedOut", step.timed_out).flag("stopped", step.stopped);
    obj.opt("sessionFile", step.session_file.as_ref()).opt("model", step.model.as_ref());
    let mut models: Vec<&String> = Vec::new();
    for model in step.attempts.iter().filter_map(|a| a.model.as_ref()) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if !models.is_empty() {
        obj.set("attemptedModels", models.into_iter().collect::<Json>());
    }
    let attempts: Vec<Obj> = step.attempts.iter().filter_map(status::model_attempt).collect();
    if !attempts.is_empty() {
        obj.set("modelAttempts", attempts.into_iter().collect::<Json>());
    }
    obj.opt("totalCost", cost_summary(step.tokens, step.cost)).flag("truncated", result.truncated);
    if !state.groups.iter().any(|g| g.logical == step.logical) {
        obj.opt("runner", status::runner(&step.runner)).opt("externalProcess", status::external(step));
    }
    Some(obj)
}

/// Why a result cannot be written: without a session nobody would find it (run-directory 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a result needs a session id")]
pub struct NoSession;

/// The changes that publish a result at `public` (normally `<results>/<id>.json`): pending payload, indexes, rename.
/// To be performed in their order under one key, so that a lack of room keeps the rest for later.
///
/// # Errors
/// [`NoSession`] when the state names no session.
pub fn publish(
    state: &RunState,
    dir: &RunDir,
    public: &Path,
    payload: Vec<u8>,
    now: Timestamp,
) -> Result<Vec<Op>, NoSession> {
    let mut ops = pend(state, dir, public, payload, now)?;
    let pending = pending_path(public, state).ok_or(NoSession)?;
    ops.push(Op::Rename(pending, public.to_owned()));
    Ok(ops)
}

/// The changes that leave a result pending, without publishing it.
///
/// # Errors
/// [`NoSession`] when the state names no session.
pub fn pend(
    state: &RunState,
    dir: &RunDir,
    public: &Path,
    payload: Vec<u8>,
    now: Timestamp,
) -> Result<Vec<Op>, NoSession> {
    let session = state.session_id.as_deref().filter(|s| !s.is_empty()).ok_or(NoSession)?;
    let pending = pending_path(public, state).ok_or(NoSession)?;
    let results = public.parent().unwrap_or(Path::new("."));
    let file = public.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut entry = Obj::new();
    entry.set("version", 1).set("runId", state.id.as_str()).set("sessionId", session).set("file", file);
    entry.set("writtenAt", now.millis()).set("asyncDir", dir.path().to_string_lossy().into_owned());
    let entry = entry.pretty();
    let name = format!("{}.json", segment::stem(state.id.as_str()));
    let index = results.join("result-index");
    Ok(vec![
        Op::Replace(pending, payload),
        Op::Replace(index.join("sessions").join(segment::folder(session)).join(&name), entry.clone()),
        Op::Replace(index.join("runs").join(&name), entry),
    ])
}

fn pending_path(public: &Path, state: &RunState) -> Option<PathBuf> {
    let session = state.session_id.as_deref()?;
    let name = format!("{}.json", segment::stem(state.id.as_str()));
    Some(public.parent()?.join("result-pending").join(segment::folder(session)).join(name))
}
