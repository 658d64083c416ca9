//! Reading a result: the final texts of its steps, and how its run ended where no status says so (run-directory 5, 7).
//!
//! Looks only: what the reference repairs in such a case is shown here and not written.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::look::Look;
use super::{ResultContext, RunDir, open, segment};
use crate::run::{CostUsd, RunPhase, RunState, StepId, StepPhase, StepState, Timestamp, Tokens};

/// The largest result that is read, in bytes.
const MOST: u64 = 256 * 1024 * 1024;

/// The final texts of a run's steps as its result has them, pending or public; empty when there is no result any
/// more, as after a parent took it.
#[must_use]
pub fn outputs(dir: &RunDir, state: &RunState) -> BTreeMap<StepId, String> {
    let Some(document) = document(&ResultContext::of_run(dir, None), state) else { return BTreeMap::new() };
    texts(&document, state)
}

/// The same of a result that may be in another place.
#[must_use]
pub fn outputs_in(place: &ResultContext, state: &RunState) -> BTreeMap<StepId, String> {
    document(place, state).map(|document| texts(&document, state)).unwrap_or_default()
}

fn texts(document: &Map<String, Value>, state: &RunState) -> BTreeMap<StepId, String> {
    let texts = entries(document, state).into_iter();
    texts.filter_map(|(step, entry)| Some((step, entry.text("output")?))).collect()
}

/// How a run ended by its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    phase: RunPhase,
    at: Option<Timestamp>,
    error: Option<String>,
    timed_out: bool,
    stopped: bool,
    steps: Vec<(StepId, StepEnding)>,
}

#[derive(Clone, Debug, PartialEq)]
struct StepEnding {
    phase: StepPhase,
    error: Option<String>,
    timed_out: bool,
    stopped: bool,
    model: Option<String>,
    tokens: Tokens,
    cost: Option<CostUsd>,
}

/// Whether there has been a result of the run for so long that whoever wrote it would have written an end into the status
/// too (run-directory 7.2).
#[must_use]
pub fn is_due(dir: &RunDir, state: &RunState) -> bool {
    let public = ResultContext::of_run(dir, None).public(state);
    std::fs::metadata(public).and_then(|m| m.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= DUE))
}

/// A status follows its result within this time.
const DUE: Duration = Duration::from_secs(2);

/// How the run ended by its result, public or pending; `None` without one of this run.
#[must_use]
pub fn ending(dir: &RunDir, state: &RunState) -> Option<Ending> {
    ending_in(&ResultContext::of_run(dir, None), state)
}

/// The same of a result that may be in another place.
#[must_use]
pub fn ending_in(place: &ResultContext, state: &RunState) -> Option<Ending> {
    let document = document(place, state)?;
    let look = Look(&document);
    let ok = look.is("success");
    let zero = look.code("exitCode") == Some(0);
    let phase = match look.str("state") {
        _ if ok => RunPhase::Complete,
        Some("stopped") => RunPhase::Stopped,
        Some("rejected") => RunPhase::Rejected,
        Some("paused") => RunPhase::Paused,
        _ if zero => RunPhase::Paused,
        _ => RunPhase::Failed,
    };
    let steps: Vec<(StepId, StepEnding)> =
        entries(&document, state).into_iter().map(|(id, entry)| (id, step_ending(&entry, &phase))).collect();
    // A summary is the texts of all steps; what went wrong is told by the one that failed.
    let failed = || steps.iter().filter(|(_, step)| step.phase == StepPhase::Failed).find_map(|(_, s)| s.error.clone());
    let summary = || look.text("summary");
    let error = look.text("error").or_else(|| (phase == RunPhase::Failed).then(|| failed().or_else(summary)).flatten());
    let at = look.time("timestamp");
    Some(Ending { phase, at, error, timed_out: look.is("timedOut"), stopped: look.is("stopped"), steps })
}

fn step_ending(entry: &Look<'_>, run: &RunPhase) -> StepEnding {
    let execution = entry.obj("execution");
    let says = |key: &str| entry.is(key) || execution.as_ref().is_some_and(|e| e.is(key));
    let word = execution.as_ref().and_then(|e| e.str("status"));
    let phase = match entry.bool("success") {
        // It goes on elsewhere, and nobody here knows how.
        _ if says("detached") || word == Some("detached") => StepPhase::Unknown("detached".to_owned()),
        Some(true) => StepPhase::Complete,
        _ if says("interrupted") || word == Some("paused") => StepPhase::Paused,
        _ if says("stopped") || word == Some("stopped") => StepPhase::Stopped,
        Some(false) => StepPhase::Failed,
        None => like_the_run(run),
    };
    let sum = entry.obj("totalCost");
    let count = |key| sum.as_ref().and_then(|sum| sum.count(key)).unwrap_or(0);
    StepEnding {
        phase,
        error: entry.text("error"),
        timed_out: says("timedOut"),
        stopped: says("stopped"),
        model: entry.text("model"),
        tokens: Tokens { input: count("inputTokens"), output: count("outputTokens"), ..Tokens::default() },
        cost: sum.as_ref().and_then(|sum| sum.num("costUsd")).map(CostUsd),
    }
}

fn like_the_run(run: &RunPhase) -> StepPhase {
    match run {
        RunPhase::Complete => StepPhase::Complete,
        RunPhase::Stopped => StepPhase::Stopped,
        RunPhase::Rejected => StepPhase::Rejected,
        RunPhase::Paused => StepPhase::Paused,
        _ => StepPhase::Failed,
    }
}

impl Ending {
    /// The picture of a run that has this result and no end in its status: what had ended stays as it is.
    pub fn show(&self, view: &mut RunState) {
        view.phase = self.phase.clone();
        view.ended_at = self.at.or(view.last_update).or(view.started_at);
        view.error = view.error.take().or_else(|| self.error.clone());
        view.timed_out |= self.timed_out;
        view.stopped |= self.stopped;
        let own_of = |id: StepId| self.steps.iter().find(|(known, _)| *known == id).map(|(_, own)| own);
        let is_open = |step: &StepState| {
            step.phase == StepPhase::Running || (step.phase == StepPhase::Pending && own_of(step.id).is_some())
        };
        // Of several nobody knows which of them ended with the run.
        let alone = view.steps.iter().filter(|step| is_open(step)).count() == 1;
        for step in &mut view.steps {
            step.ending = None;
            let open = is_open(step);
            let own = own_of(step.id);
            if let Some(own) = own
                && own.tokens.total() > step.tokens.total()
            {
                step.tokens = Tokens { input: own.tokens.input, output: own.tokens.output, ..step.tokens };
            }
            step.cost = step.cost.or(own.and_then(|own| own.cost));
            if !open {
                continue;
            }
            step.activity = None;
            step.model = step.model.take().or_else(|| own.and_then(|own| own.model.clone()));
            step.ended_at = view.ended_at.filter(|_| alone && step.started_at.is_some());
            step.phase = own.map_or_else(|| like_the_run(&self.phase), |own| own.phase.clone());
            if let Some(own) = own {
                step.error = step.error.take().or_else(|| own.error.clone());
                step.timed_out |= own.timed_out;
                step.stopped |= own.stopped;
            }
            step.exit_code = Some(match step.phase {
                StepPhase::Complete | StepPhase::Paused => 0,
                _ => 1,
            });
        }
    }
}

/// The result of this run, public or pending.
fn document(place: &ResultContext, state: &RunState) -> Option<Map<String, Value>> {
    let name = format!("{}.json", segment::stem(state.id.as_str()));
    let session = state.session_id.as_deref().unwrap_or_default();
    let places = [place.public(state), place.results.join("result-pending").join(segment::folder(session)).join(&name)];
    let read = |path: &PathBuf| {
        let file = open::regular(path).ok()?;
        let value = serde_json::from_slice(&open::read_at_most(&file, MOST).ok()?).ok()?;
        let Value::Object(document) = value else { return None };
        let look = Look(&document);
        let whose = look.str("runId").or_else(|| look.str("id"));
        whose.is_none_or(|id| id == state.id.as_str()).then_some(document)
    };
    places.iter().find_map(read)
}

/// The entries of a result and their steps.
fn entries<'a>(document: &'a Map<String, Value>, state: &RunState) -> Vec<(StepId, Look<'a>)> {
    // A foreign entry does not say whose it is; entries stand in the order of the steps that ran.
    let of = |started: bool| state.steps.iter().filter(move |s| s.started_at.is_some() == started).map(|s| s.id);
    // The status may be older than the result: then more steps ran than it says.
    let all = Look(document).objs("results").count() >= state.steps.len();
    let in_order = state.steps.iter().map(|s| s.id).filter(|_| all);
    let mut ran = in_order.chain(of(true).chain(of(false)).filter(|_| !all));
    let mut found = Vec::new();
    for entry in Look(document).objs("results") {
        let next = ran.next();
        if let Some(step) = entry.obj("subdeck").and_then(|own| own.step("step")).or(next) {
            found.push((step, entry));
        }
    }
    found
}
