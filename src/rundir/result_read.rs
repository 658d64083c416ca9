//! Reading a result: the final texts of its steps, and how its run ended where no status says so (run-directory 5, 7).
//!
//! Looks only: what the reference repairs in such a case is shown here and not written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::look::Look;
use super::{ResultContext, RunDir, open, segment};
use crate::run::{RunPhase, RunState, StepId, StepPhase, Timestamp};

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
}

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
    let steps = entries(&document, state).into_iter().map(|(id, entry)| (id, step_ending(&entry, &phase))).collect();
    let error = look.text("error").or_else(|| (phase == RunPhase::Failed).then(|| look.text("summary")).flatten());
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
    StepEnding { phase, error: entry.text("error"), timed_out: says("timedOut"), stopped: says("stopped") }
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
        for step in &mut view.steps {
            step.ending = None;
            let own = self.steps.iter().find(|(id, _)| *id == step.id).map(|(_, own)| own);
            let open = step.phase == StepPhase::Running || (step.phase == StepPhase::Pending && own.is_some());
            if !open {
                continue;
            }
            step.activity = None;
            step.ended_at = view.ended_at;
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
    let mut ran = state.steps.iter().filter(|s| s.started_at.is_some()).map(|s| s.id);
    let mut found = Vec::new();
    for entry in Look(document).objs("results") {
        let next = ran.next();
        if let Some(step) = entry.obj("subdeck").and_then(|own| own.step("step")).or(next) {
            found.push((step, entry));
        }
    }
    found
}
