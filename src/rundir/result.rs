//! The result file and the three steps of writing it (run-directory 5).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::json::{Json, Obj};
use super::status::{self, cost_summary, tokens};
use super::status_step;
use super::write::Op;
use super::{RunDir, contract, graph, segment, supervision};
use crate::plan::SummaryLimit;
use crate::run::{Metric, RunMode, RunPhase, RunState, StepId, StepPhase, StepState, Timestamp};

/// What a result needs to know besides the state.
#[derive(Clone, Debug, Default)]
pub struct ResultContext {
    /// The run's directory.
    pub dir: RunDir,
    /// The folder of results.
    pub results: PathBuf,
    /// Where the result must be, when somebody said so; else `<results>/<id>.json`.
    pub public: Option<PathBuf>,
    /// The final texts of the steps that ran.
    pub texts: BTreeMap<StepId, String>,
    /// How much of the summary is kept; all of it where nobody said otherwise.
    pub most: Option<SummaryLimit>,
}

impl ResultContext {
    /// Where the result of the run in `dir` goes: to the file that was asked for, else into the folder of results of
    /// its root. A run outside of a root keeps it in a folder of its own.
    #[must_use]
    pub fn of_run(dir: &RunDir, public: Option<&Path>) -> Self {
        let results = public
            .and_then(|p| p.parent().map(Path::to_path_buf))
            .or_else(|| dir.results())
            .unwrap_or_else(|| dir.path().join("results"));
        Self { dir: dir.clone(), results, public: public.map(Path::to_path_buf), texts: BTreeMap::new(), most: None }
    }

    /// What the run came to, in words, and whether that is only the first part of it.
    #[must_use]
    pub fn summary(&self, state: &RunState) -> (String, bool) {
        let whole = summary(state, &self.texts);
        let Some(most) = self.most else { return (whole, false) };
        let lines = usize::try_from(most.lines).unwrap_or(usize::MAX);
        let end = whole.split_inclusive('\n').take(lines).map(str::len).sum::<usize>();
        let kept = crate::text::prefix(&whole, end.min(usize::try_from(most.bytes).unwrap_or(usize::MAX)));
        if kept.len() == whole.len() {
            return (whole, false);
        }
        let (some, all) = (kept.lines().count(), whole.lines().count());
        let mark = format!("[cut: {some} of {all} lines, {} of {} bytes]", kept.len(), whole.len());
        (format!("{}\n\n{mark}", kept.trim_end()), true)
    }

    /// Where the result of a run is once it is public.
    #[must_use]
    pub fn public(&self, state: &RunState) -> PathBuf {
        self.public.clone().unwrap_or_else(|| self.results.join(format!("{}.json", state.id.as_str())))
    }

    /// The steps of writing the result of a run, to be done in their order (run-directory 5); `None` for a run without
    /// a session, which has no result.
    #[must_use]
    pub fn steps(&self, state: &RunState, now: Timestamp) -> Option<ResultSteps> {
        let session = state.session_id.as_deref().filter(|s| !s.is_empty())?;
        let public = self.public(state);
        let results = public.parent()?;
        let mut entry = Obj::new();
        entry.set("version", 1).set("runId", state.id.as_str()).set("sessionId", session);
        entry.set("file", public.file_name()?.to_string_lossy().into_owned()).set("writtenAt", now.millis());
        entry.set("asyncDir", self.dir.path().to_string_lossy().into_owned());
        let entry = entry.pretty();
        let name = format!("{}.json", segment::stem(state.id.as_str()));
        let bucket = segment::folder(session);
        let index = results.join("result-index");
        let pending = results.join("result-pending").join(&bucket).join(&name);
        Some(ResultSteps {
            pending: Op::Keep(pending.clone(), encode(state, self)),
            session_entry: Op::Replace(index.join("sessions").join(&bucket).join(&name), entry.clone()),
            run_entry: Op::Replace(index.join("runs").join(&name), entry),
            publish: Op::Rename(pending, public),
        })
    }
}

/// The three steps of writing a result, the second in its two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSteps {
    /// The payload, not public yet; with the entry of its session a reader finds it, so from here on a crash leaves a
    /// result.
    pub pending: Op,
    /// The entry under its session, without which there is no result.
    pub session_entry: Op,
    /// The entry under its run; readers do without.
    pub run_entry: Op,
    /// The payload made public; when that fails it stays pending and any reader promotes it.
    pub publish: Op,
}

impl ResultSteps {
    /// What makes a pending result public, and leaves no empty folder of its session behind.
    #[must_use]
    pub fn make_public(&self) -> [Op; 2] {
        [self.publish.clone(), self.leave_no_folder()]
    }

    fn leave_no_folder(&self) -> Op {
        Op::RemoveEmpty(self.pending.path().parent().unwrap_or(Path::new("")).to_owned())
    }

    /// What leaves a pending result.
    #[must_use]
    pub fn leave_pending(self) -> [Op; 3] {
        [self.pending, self.session_entry, self.run_entry]
    }

    /// What takes a pending result back.
    #[must_use]
    pub fn withdraw(&self) -> [Op; 4] {
        let [run, session, pending] =
            [&self.run_entry, &self.session_entry, &self.pending].map(|op| Op::Remove(op.path().to_owned()));
        [run, session, pending, self.leave_no_folder()]
    }
}

/// The document.
fn encode(state: &RunState, context: &ResultContext) -> Vec<u8> {
    let (summary, truncated) = context.summary(state);
    let mut obj = head(state, &summary);
    let ran = state.steps.iter().filter(|s| s.started_at.is_some() || context.texts.contains_key(&s.id));
    obj.set("results", ran.map(|step| entry(state, step, context)).collect::<Json>());
    obj.set("outputs", status::outputs(state));
    tail(&mut obj, state);
    obj.set("truncated", truncated);
    close(&mut obj, state, &context.dir);
    obj.pretty()
}

fn head(state: &RunState, summary: &str) -> Obj {
    let mut obj = Obj::new();
    obj.set("lifecycleArtifactVersion", 3).set("id", state.id.as_str()).set("agent", agent_label(state));
    obj.set("mode", status::mode_word(&state.mode)).set("success", state.phase == RunPhase::Complete);
    obj.set("state", state.phase.as_str()).set("summary", summary);
    obj.opt("error", state.error.as_ref()).flag("timedOut", state.timed_out).flag("stopped", state.stopped);
    obj.opt("timeoutMs", state.timeout_ms).opt("deadlineAt", state.deadline_at);
    supervision::budgets_of_run(&mut obj, state);
    obj
}

fn tail(obj: &mut Obj, state: &RunState) {
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
    obj.opt("workflowGraph", state.contract.graph.as_ref().map(|g| graph::encode(&g.now(state), state.id.as_str())));
    contract::result(obj, &state.contract);
    contract::task(obj, &state.contract);
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

/// What the run came to, in words (runner-behaviour 11): why it ended before its time, else what its steps said.
#[must_use]
pub fn summary(state: &RunState, texts: &BTreeMap<StepId, String>) -> String {
    if let Some(reason) = reason(state) {
        return reason;
    }
    let ran = state.steps.iter().filter(|s| s.started_at.is_some() || texts.contains_key(&s.id));
    let blocks = ran.map(|s| format!("{}:\n{}", s.agent, texts.get(&s.id).map_or("", String::as_str)));
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// Of several reasons the first of this order: the loss of its runner, stop, time, turns, what else was used, pause.
fn reason(state: &RunState) -> Option<String> {
    let spent = |turns: bool| {
        let over = move |s: &&StepState| s.budget.exceeded.is_some_and(|metric| (metric == Metric::Turns) == turns);
        state.steps.iter().find(over).and_then(|s| s.error.clone())
    };
    if let Some(lost) = &state.lost {
        return Some(lost.clone());
    }
    if state.stopped || state.timed_out {
        return state.error.clone();
    }
    if let Some(turns) = spent(true) {
        return Some(turns);
    }
    if state.budget.exceeded.is_some() {
        return state.error.clone();
    }
    spent(false).or_else(|| (state.phase == RunPhase::Paused).then(|| paused(state)))
}

/// Why it pauses: somebody interrupted it, or nobody could be asked what one of its agents wanted to know.
fn paused(state: &RunState) -> String {
    match state.steps.iter().find_map(|s| s.unanswered.as_ref()) {
        Some(question) => format!("Paused, because nobody could be asked: {question}"),
        None => "Paused by an interrupt; it goes on when somebody resumes it.".to_owned(),
    }
}

fn entry(state: &RunState, step: &StepState, context: &ResultContext) -> Obj {
    let output = context.texts.get(&step.id).map_or("", String::as_str);
    let mut obj = Obj::new();
    obj.set("agent", &step.agent).set("output", output);
    obj.set("outputState", if output.is_empty() { "absent" } else { "present" });
    obj.set("success", step.phase == StepPhase::Complete).opt("error", step.error.as_ref());
    obj.flag("skipped", step.exit_code == Some(-1)).flag("interrupted", step.phase == StepPhase::Paused);
    obj.flag("timedOut", step.timed_out).flag("stopped", step.stopped);
    supervision::budgets_of_step(&mut obj, step);
    obj.opt("sessionFile", step.session_file.as_ref()).opt("model", step.model.as_ref());
    obj.opt("attemptedModels", status_step::attempted_models(step));
    let attempts: Vec<Obj> = step.attempts.iter().filter_map(status_step::model_attempt).collect();
    if !attempts.is_empty() {
        obj.set("modelAttempts", attempts.into_iter().collect::<Json>());
    }
    obj.opt("totalCost", cost_summary(step.tokens, step.cost));
    // Of a step that was never begun nothing was written.
    obj.opt("artifactPaths", contract::artifacts(&step.contract.artifacts).filter(|_| !step.attempts.is_empty()));
    obj.opt("outputSaveError", step.contract.output_error.as_ref());
    obj.opt("metadataSaveError", step.contract.metadata_error.as_ref());
    contract::step(&mut obj, &step.contract);
    if !state.groups.iter().any(|g| g.logical == step.logical) {
        obj.opt("runner", status_step::runner(&step.runner))
            .opt("externalProcess", status_step::external(step, &context.dir));
    }
    let mut own = Obj::new();
    own.set("step", step.id.flat());
    obj.set("subdeck", own);
    obj
}
