//! What a person wants to know first of a run, and which runs need one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::run::{RunPhase, RunState, StepId, StepPhase, needs};
use crate::rundir::fleet::FleetRun;

/// What a person wants to know first of a run, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Somebody is needed.
    Needs,
    /// It goes on.
    Running,
    /// It cannot be read.
    Unreadable,
    /// Its runner died.
    Lost,
    /// It was paused, and waits to be gone on with.
    Paused,
    /// It failed, ran out of something, or was stopped.
    Failed,
    /// It is complete, or whatever else is over.
    Complete,
}

impl Class {
    /// The class of a run.
    #[must_use]
    pub fn of(run: &FleetRun) -> Self {
        if let Some(broken) = Self::of_broken(run) {
            return broken;
        }
        let Some(state) = run.state() else { return Self::Unreadable };
        if !state.is_over() {
            let survivors = state.steps.iter().any(|s| !s.survivors.is_empty());
            return if survivors || !needs(state).is_empty() { Self::Needs } else { Self::Running };
        }
        match state.phase {
            RunPhase::Paused => Self::Paused,
            RunPhase::Failed | RunPhase::Stopped | RunPhase::Rejected => Self::Failed,
            _ => Self::Complete,
        }
    }

    /// The class of a run that cannot be read or whose runner died.
    fn of_broken(run: &FleetRun) -> Option<Self> {
        match run.state() {
            None => Some(Self::Unreadable),
            Some(_) => run.is_lost().then_some(Self::Lost),
        }
    }

    /// Its heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Needs => "needs you",
            Self::Running => "running",
            Self::Unreadable => "unreadable",
            Self::Lost => "lost",
            Self::Paused => "paused",
            Self::Failed => "failed or stopped",
            Self::Complete => "complete",
        }
    }
}

/// The runs that need a person, the newest first. What a run needs only because a run inside one of its steps needs it is
/// one alarm, that of the run inside.
#[must_use]
pub fn waiting<'r>(runs: impl Iterator<Item = &'r FleetRun>) -> Vec<&'r FleetRun> {
    let mut all: Vec<&FleetRun> = runs.filter(|run| Class::of(run) == Class::Needs).collect();
    let mut parts: BTreeMap<&str, Vec<&FleetRun>> = BTreeMap::new();
    for run in &all {
        if let Some(whole) = &run.parent {
            parts.entry(whole.as_str()).or_default().push(run);
        }
    }
    let of = |run: &FleetRun| parts.get(run.dir().id_str()).map_or(&[][..], Vec::as_slice);
    let own: Vec<&FleetRun> = all.iter().copied().filter(|run| !is_told_by_parts(run, of(run))).collect();
    // Runs that are each other's part would tell of nobody.
    if !own.is_empty() {
        all = own;
    }
    all.sort_by_key(|run| Reverse(run.listed.started()));
    all
}

/// Whether everything that a run needs is in steps in which these parts of it were started, which need something.
fn is_told_by_parts(run: &FleetRun, parts: &[&FleetRun]) -> bool {
    let Some(state) = run.state().filter(|s| s.steps.iter().all(|step| step.survivors.is_empty())) else {
        return false;
    };
    let steps: Vec<StepId> = parts.iter().filter_map(|part| step_of(state, part)).collect();
    !steps.is_empty() && needs(state).iter().all(|need| steps.contains(&need.step.id))
}

/// In which step of a run another one was started. Where that is not told it is the only one that runs.
fn step_of(state: &RunState, part: &FleetRun) -> Option<StepId> {
    let told = part.step.or_else(|| part.state()?.started_in.as_ref()?.step);
    let named = || state.steps.iter().find(|s| s.own_run.as_ref().is_some_and(|id| id.as_str() == part.dir().id_str()));
    let mut running = state.steps.iter().filter(|s| s.phase == StepPhase::Running);
    let only = running.next().filter(|_| running.next().is_none());
    told.or_else(|| named().or(only).map(|step| step.id))
}

/// How many runs cannot be read, and of how many the runner died.
#[must_use]
pub fn broken<'r>(runs: impl Iterator<Item = &'r FleetRun>) -> (usize, usize) {
    runs.fold((0, 0), |(unreadable, lost), run| match Class::of_broken(run) {
        Some(Class::Unreadable) => (unreadable + 1, lost),
        Some(_) => (unreadable, lost + 1),
        None => (unreadable, lost),
    })
}
