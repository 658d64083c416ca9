//! The events of a run to be played again, read from its event log at any place.
//!
//! A log of others does not say which steps there are; the status does (run-directory 2). Of the status nothing else is
//! taken: it tells how everything ended, which nobody knew before.

use std::path::PathBuf;

use super::tail::Tail;
use super::unrecorded::{Told, rank};
use super::{Follower, RunDir, merge, plan_doc, records, status_read};
use crate::run::replay::{Piece, Recorded, Tape};
use crate::run::{Event, RunMode, RunPhase, RunState, StepState, What};

/// The recorded events of one run.
#[derive(Debug)]
pub struct Recording {
    beginning: RunState,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The event log, whose places are its bytes.
    Log { path: PathBuf, len: u64 },
    /// The event log of a workflow and the sessions of its children, which go on beside each other; not read yet.
    Beside { dir: RunDir, status: Box<RunState> },
    /// The same in the order of their times; places are numbers. Whether there are more.
    Held(Vec<Recorded>, bool),
}

/// As many events of a workflow are held; what comes later is not played.
const HELD_MOST: usize = 200_000;

impl Recording {
    /// The events of the run in this directory. Never writes.
    #[must_use]
    pub fn open(dir: &RunDir) -> Self {
        let status = status_read::read(dir).ok();
        let mut beginning = status.as_ref().map_or_else(|| plan_doc::unstarted(dir), unstarted);
        if beginning.id.0.is_empty() {
            beginning.id = dir.id();
        }
        let path = dir.events();
        let source = match status {
            Some(status) if status.mode == RunMode::Workflow => {
                Source::Beside { dir: dir.clone(), status: Box::new(status) }
            }
            _ => {
                let len = std::fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
                Source::Log { path, len }
            }
        };
        Self { beginning, source }
    }

    /// Completes what a runner of others does not say at its start.
    fn know_steps(&self, event: &mut Event) {
        let What::RunStarted(meta) = &mut event.what else { return };
        let known = &self.beginning;
        let more = known.steps.get(meta.steps.len()..).unwrap_or_default();
        meta.steps.extend(more.iter().map(StepState::meta));
        if meta.groups.is_empty() {
            meta.groups.clone_from(&known.groups);
        }
        meta.logical_count = meta.logical_count.max(known.logical_count);
        meta.name = meta.name.take().or_else(|| known.name.clone());
        meta.session_id = meta.session_id.take().or_else(|| known.session_id.clone());
        meta.owner_id = meta.owner_id.take().or_else(|| known.owner_id.clone());
        if meta.id.0.is_empty() {
            meta.id.clone_from(&known.id);
        }
        if meta.cwd.is_empty() {
            meta.cwd.clone_from(&known.cwd);
        }
    }
}

impl Tape for Recording {
    fn beginning(&self) -> RunState {
        self.beginning.clone()
    }

    fn read(&mut self, place: u64, most: u64) -> Piece {
        if let Source::Beside { dir, status } = &self.source {
            let (events, cut) = held(dir, status);
            self.source = Source::Held(events, cut);
        }
        let mut piece = match &self.source {
            Source::Log { path, .. } => from_log(path.clone(), place, most),
            Source::Held(events, _) => from_held(events, place, most),
            Source::Beside { .. } => Piece::default(),
        };
        for recorded in &mut piece.events {
            self.know_steps(&mut recorded.event);
        }
        piece
    }

    fn len(&self) -> u64 {
        match &self.source {
            Source::Log { len, .. } => *len,
            Source::Beside { .. } => 0,
            Source::Held(events, _) => events.len() as u64,
        }
    }

    fn is_cut(&self) -> bool {
        matches!(&self.source, Source::Held(_, true))
    }
}

fn from_log(path: PathBuf, place: u64, most: u64) -> Piece {
    let mut tail = Tail::from(path, place);
    let mut events = Vec::new();
    let mut said = Vec::new();
    loop {
        let more = tail.read_on(most.max(1), |start, line| {
            let good = records::decode(line, &mut said);
            let numbered = said.drain(..).zip(0..);
            events.extend(numbered.map(|(event, nth)| Recorded { event, place: start, nth, record: Some(start) }));
            good
        });
        if !more.behind {
            return Piece { events, next: None };
        }
        // Of a record that is longer than that the end is still to come.
        if !events.is_empty() {
            return Piece { events, next: Some(tail.place()) };
        }
    }
}

fn from_held(events: &[Recorded], place: u64, most: u64) -> Piece {
    // An event takes about as much as a line of a log does.
    let many = usize::try_from(most / 256).unwrap_or(usize::MAX).max(1);
    let from = usize::try_from(place).unwrap_or(usize::MAX).min(events.len());
    let to = from.saturating_add(many).min(events.len());
    let next = (to < events.len()).then_some(to as u64);
    Piece { events: events.get(from..to).unwrap_or_default().to_vec(), next }
}

/// Everything that a follower finds of a workflow, in the order of the times, with the beginnings and ends that only its status
/// tells.
fn held(dir: &RunDir, status: &RunState) -> (Vec<Recorded>, bool) {
    let Ok(mut follower) = Follower::open(dir.path()) else { return (Vec::new(), false) };
    let mut events: Vec<(Event, Option<u64>)> = Vec::new();
    loop {
        let changes = follower.poll();
        events.extend(changes.news.into_iter().zip(changes.places.into_iter().map(|spot| spot.record)));
        if !changes.behind || events.len() > HELD_MOST {
            break;
        }
    }
    let cut = events.len() > HELD_MOST;
    events.truncate(HELD_MOST);
    let mut told = Told::default();
    events.iter().for_each(|(event, _)| told.hear(&event.what));
    events.extend(told.missing(status).into_iter().map(|event| (event, None)));
    // Stable: what has the same time stays in the order in which it was recorded.
    events.sort_by_key(|(event, _)| (event.at, rank(event)));
    let numbered = events.into_iter().zip(0_u64..);
    (numbered.map(|((event, record), place)| Recorded { event, place, nth: 0, record }).collect(), cut)
}

/// A run as it was before anything happened, from its status.
fn unstarted(status: &RunState) -> RunState {
    RunState {
        id: status.id.clone(),
        name: status.name.clone(),
        session_id: status.session_id.clone(),
        owner_id: status.owner_id.clone(),
        mode: status.mode.clone(),
        phase: RunPhase::Queued,
        cwd: status.cwd.clone(),
        timeout_ms: status.timeout_ms,
        limits: status.limits.clone(),
        groups: status.groups.clone(),
        logical_count: status.logical_count,
        steps: status.steps.iter().map(merge::unstarted).collect(),
        resumed_from: status.resumed_from.clone(),
        started_in: status.started_in.clone(),
        contract: status.contract.clone(),
        ..RunState::default()
    }
}

#[cfg(test)]
mod tests;
