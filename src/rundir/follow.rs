//! Following a run, living or finished, ours or foreign: the same state from the files that everybody sees (law 4).
//!
//! Two sources make one picture. The event log is reduced by the one reducer (law 2); `status.json` is a snapshot by
//! the runner and wins while it is at least as new as the newest event, because a foreign log does not say everything.
//! What a snapshot does not carry (results of tool calls, the last message) is kept from the events. Never writes,
//! never decides for the run; a run that is lost is only shown as lost.

mod told;
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ears::Ears;
use super::health::{Health, health, living, wall};
use super::identity::{self, RunnerLife};
use super::inside::{Inner, Inside};
use super::merge::know_steps;
use super::past::{LeftOut, Past};
use super::presence::Presence;
use super::result_read::{self, Ending};
use super::tail::Tail;
use super::unrecorded::{self, Told};
use super::watch::Watch;
use super::{RunDir, merge, open, plan_doc, records, session_log, status_read};
use crate::run::replay::Spot;
use crate::run::{Event, RunMode, RunState, StepId, StepPhase, What, reduce};

/// A status that cannot be read for this long is not just being written.
pub const HALF_WRITTEN: Duration = Duration::from_secs(2);
/// Where stands what is in no event log.
const NOWHERE: Spot = Spot::loose(None);
/// How long changes are gathered while much happens.
pub const GATHER: Duration = Duration::from_millis(40);
/// A runner of others may tell the end of a child before it has written what the child printed last.
const SETTLED: Duration = Duration::from_secs(2);
/// What a look found.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The state is another.
    pub state: bool,
    /// These steps printed something.
    pub output: Vec<StepId>,
    /// What happened, oldest first.
    pub news: Vec<Event>,
    /// Where each of them stands in the event log; its record is what [`super::record`] reads.
    pub places: Vec<Spot>,
    /// The steps of which older news than these were left out.
    pub cut: BTreeMap<StepId, LeftOut>,
    /// The health is another.
    pub health: bool,
    /// There is more in the event log; look again without waiting.
    pub behind: bool,
    /// The event log is another one: its events begin anew, and places in it that were given before mean nothing.
    pub anew: bool,
    /// The event log is not there any more, or is there again.
    pub gone: bool,
}

/// What became of an event log while it was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LogFate {
    /// It only grew.
    #[default]
    Grew,
    /// It became shorter, or another one.
    Cut,
    /// It was removed.
    Gone,
}

/// Follows one run.
#[derive(Debug)]
pub struct Follower {
    dir: RunDir,
    presence: Presence,
    watch: Watch,
    events: Tail,
    /// Of a long log only the newest events are given.
    newest_only: bool,
    /// What a long log held already is being read.
    past: Option<Past>,
    /// The sessions of the children of a workflow, of which the event log says nothing.
    sessions: BTreeMap<StepId, Tail>,
    /// Which beginnings and ends of a workflow were told.
    told: Told,
    /// The state by the events alone.
    reduced: RunState,
    /// The last snapshot that could be read, and the version of the file it came from.
    snapshot: Option<Arc<RunState>>,
    stamp: Option<(u64, i64, i64, u64)>,
    /// How a run without a runner ended by its result, once looked for.
    result: Option<Option<Ending>>,
    /// Why the newest version of the status could not be read, and since when.
    unreadable: Option<(String, Instant)>,
    /// The picture: the snapshot itself, where nothing else adds to it.
    view: Arc<RunState>,
    health: Health,
    /// How long the logs of each step were, and whether nothing more comes.
    sizes: Vec<(u64, bool)>,
    behind: bool,
    /// What became of the event log while it was followed.
    log: LogFate,
    /// All events that there were at one time are reduced.
    caught_up: bool,
    started: bool,
    /// The runs that were started in it. A runner of ours looks at them itself and says what it sees.
    inside: Inside,
    /// What children of others say of themselves.
    ears: Ears,
    /// The last look.
    looked: Option<Instant>,
    /// Something may have changed since.
    woken: bool,
}

impl Follower {
    /// Begins to follow the run in this directory; the first [`Follower::poll`] reads it.
    ///
    /// # Errors
    /// When it is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let presence = Presence::of(path)?;
        let dir = RunDir::at(path);
        Ok(Self {
            presence,
            watch: Watch::flooded([path]),
            events: Tail::new(dir.events()),
            newest_only: false,
            past: None,
            sessions: BTreeMap::new(),
            told: Told::default(),
            reduced: RunState::default(),
            snapshot: None,
            stamp: None,
            result: None,
            unreadable: None,
            view: Arc::default(),
            health: Health::Starting,
            sizes: Vec::new(),
            log: LogFate::default(),
            behind: false,
            caught_up: false,
            started: false,
            inside: Inside::new(dir.clone()),
            ears: Ears::new(dir.clone()),
            looked: None,
            woken: false,
            dir,
        })
    }

    /// Of a long event log only the newest events are wanted, a bounded number of each step: all of it is read on
    /// another thread, and the picture is that of the status until then.
    #[must_use]
    pub const fn newest_only(mut self) -> Self {
        self.newest_only = true;
        self
    }

    /// Looks at the files and says what changed. Never waits; reads a long event log piece by piece.
    pub fn poll(&mut self) -> Changes {
        let mut changes = Changes { state: !self.started, ..Changes::default() };
        self.started = true;
        self.woken = false;
        self.looked = Some(Instant::now());
        if let Some(what) = self.presence.missing() {
            changes.health = self.set_health(Health::Gone(what));
            return changes;
        }
        changes.state |= self.read_status();
        changes.state |= self.read_events(&mut changes);
        changes.state |= self.read_sessions(&mut changes);
        let mut health = self.look();
        if matches!(health, Health::Lost(_)) {
            // The runner may have written its end after our look at the files and before our look at it.
            changes.state |= self.read_status();
            changes.state |= self.read_events(&mut changes);
            health = self.look();
        }
        if matches!(health, Health::Lost(_)) && !self.behind {
            // Nobody writes another one any more, so one look is enough.
            if self.result.is_none() {
                self.result = Some(result_read::ending(&self.dir, &self.merged()));
            }
            if self.result.as_ref().is_some_and(Option::is_some) {
                health = Health::Over;
            }
        }
        // A runner of others that lives may be about to write its end; one that has told it in its result long ago is not.
        if matches!(health, Health::Live | Health::Unknown(_)) && !self.behind && self.is_of_others() {
            let merged = self.merged();
            if !merged.is_over() && result_read::is_due(&self.dir, &merged) {
                self.result = Some(result_read::ending(&self.dir, &merged));
                health = if self.result.as_ref().is_some_and(Option::is_some) { Health::Over } else { health };
            }
        }
        changes.health = self.set_health(health);
        let others = self.health == Health::Live && self.is_of_others();
        let inside = others && self.inside.look(&self.view);
        if changes.state || changes.health || inside {
            changes.state |= self.picture();
        }
        // Which steps there are is known by now, also to who looks once.
        if self.may_be_told() && self.ears.look(&self.view) {
            changes.state |= self.picture();
        }
        self.tell_of_a_workflow(&mut changes);
        changes.behind = self.behind;
        self.caught_up |= !self.behind;
        changes.output = self.grown();
        changes
    }

    /// Looks until everything is read that is there, for who looks once and tells what is so.
    pub fn catch_up(&mut self) {
        while self.poll().behind {}
    }

    /// The same for at most about so long where there is a status: of a long event log the rest is not waited for, and the
    /// picture is that of the status.
    pub fn catch_up_within(&mut self, most: Duration) {
        let begun = Instant::now();
        while self.poll().behind {
            if self.snapshot.is_some() && begun.elapsed() >= most {
                break;
            }
        }
    }

    /// Takes in the status if its file is another; a half-written one leaves the last good picture.
    fn read_status(&mut self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let meta = match fs::symlink_metadata(self.dir.status()) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(error) => return self.cannot_read(error.to_string()),
        };
        let stamp = (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len());
        if self.stamp == Some(stamp) {
            return false;
        }
        let read = open::regular(&self.dir.status()).and_then(|f| open::read_at_most(&f, status_read::STATUS_MOST));
        match read.map_err(|e| e.to_string()).and_then(|b| status_read::decode(&b).map_err(|e| e.to_string())) {
            Ok(state) => {
                self.stamp = Some(stamp);
                self.unreadable = None;
                self.snapshot = Some(state.into());
                true
            }
            // The stamp is not kept, so the next look tries again even when nothing changes any more.
            Err(why) => self.cannot_read(why),
        }
    }

    /// Keeps why the status cannot be read; whether that is news.
    fn cannot_read(&mut self, why: String) -> bool {
        let before = self.unreadable.take();
        let news = before.as_ref().is_none_or(|(known, _)| *known != why);
        let since = before.map_or_else(Instant::now, |(_, since)| since);
        self.unreadable = Some((why, since));
        news
    }

    fn read_events(&mut self, changes: &mut Changes) -> bool {
        let mut changed = false;
        if let Some(past) = &self.past {
            match past.found() {
                None => return false,
                Some(Ok(found)) => {
                    (self.events, self.reduced) = (found.tail, found.reduced);
                    changes.cut = found.cut;
                    for (event, place) in found.newest {
                        changes.news.push(event);
                        changes.places.push(place);
                    }
                }
                // It is read here from its beginning.
                Some(Err(())) => {
                    (self.events, self.reduced) = (Tail::new(self.dir.events()), RunState::default());
                    self.newest_only = false;
                    changes.anew = true;
                }
            }
            self.past = None;
            changed = true;
        }
        changed | self.read_more_events(changes)
    }

    fn read_more_events(&mut self, changes: &mut Changes) -> bool {
        let (mut events, mut places) = (Vec::new(), Vec::new());
        let piece = self.events.read(|start, line| {
            let known = events.len();
            let good = records::decode(line, &mut events);
            places.extend(events.iter().skip(known).zip(0..).map(|(_, nth)| Spot::of(start, nth)));
            good
        });
        if piece.restarted {
            self.reduced = RunState::default();
            self.log = LogFate::Cut;
            changes.anew = true;
        } else if piece.gone != (self.log == LogFate::Gone) {
            self.log = if piece.gone { LogFate::Gone } else { LogFate::Grew };
            changes.gone = true;
        }
        self.behind = piece.behind;
        let changed = changes.anew || changes.gone || !events.is_empty();
        for mut event in events {
            know_steps(self.snapshot.as_deref(), &mut self.reduced, &mut event);
            reduce(&mut self.reduced, &event);
            changes.news.push(event);
        }
        changes.places.append(&mut places);
        if piece.behind && self.newest_only {
            let tail = std::mem::replace(&mut self.events, Tail::new(self.dir.events()));
            match Past::begin(tail, self.reduced.clone(), self.snapshot.clone()) {
                Ok(past) => self.past = Some(past),
                Err(tail) => self.events = tail,
            }
        }
        changed
    }

    /// Takes in what the sessions of a workflow's children say beyond the event log.
    fn read_sessions(&mut self, changes: &mut Changes) -> bool {
        let Some(snapshot) = &self.snapshot else { return false };
        let run = snapshot.id.clone();
        let mut changed = false;
        for child in session_log::children(&self.dir, snapshot) {
            let begun = Event { at: child.started, what: What::StepStarted { step: child.step } };
            let mut events = Vec::new();
            let tail = self.sessions.entry(child.step).or_insert_with(|| {
                events.push(begun.clone());
                Tail::new(child.session.clone())
            });
            let piece = tail.read(|_, line| session_log::decode(line, &child, run.as_str(), &mut events));
            self.behind |= piece.behind;
            changed |= !events.is_empty();
            for mut event in events {
                know_steps(self.snapshot.as_deref(), &mut self.reduced, &mut event);
                reduce(&mut self.reduced, &event);
                changes.news.push(event);
                changes.places.push(NOWHERE);
            }
        }
        changed
    }

    /// Adds what the parent of a workflow records nowhere to what happened, in the order of the times. The state has it from
    /// the status.
    fn tell_of_a_workflow(&mut self, changes: &mut Changes) {
        let Some(snapshot) = self.snapshot.as_ref().filter(|s| s.mode == RunMode::Workflow) else { return };
        changes.news.iter().for_each(|event| self.told.hear(&event.what));
        let missing = if self.behind { Vec::new() } else { self.told.missing(snapshot) };
        if missing.is_empty() {
            return;
        }
        let known = std::mem::take(&mut changes.news).into_iter().zip(std::mem::take(&mut changes.places));
        let mut all: Vec<(Event, Spot)> = known.chain(missing.into_iter().map(|event| (event, NOWHERE))).collect();
        all.sort_by_key(|(event, _)| (event.at, unrecorded::rank(event)));
        (changes.news, changes.places) = all.into_iter().unzip();
    }

    /// What both sources say together.
    fn merged(&self) -> Arc<RunState> {
        match &self.snapshot {
            // The first part of what happened tells neither what was used nor what was said last.
            Some(snapshot) if self.behind && !self.caught_up => Arc::clone(snapshot),
            // Nothing happened that anybody recorded.
            Some(snapshot) if self.reduced == RunState::default() => Arc::clone(snapshot),
            Some(snapshot) => merge::merge(&self.reduced, snapshot, self.behind).into(),
            // What the plan says is all that is known of a run that is being started.
            None if self.reduced.started_at.is_none() => plan_doc::unstarted(&self.dir).into(),
            None => self.reduced.clone().into(),
        }
    }

    /// Makes the picture from both sources; whether it is another.
    fn picture(&mut self) -> bool {
        let mut view = self.merged();
        if view.id.0.is_empty() {
            Arc::make_mut(&mut view).id = self.dir.id();
        }
        // Told already while the keeper still records how each step ended, or found by this reader.
        let told = view.lost.clone();
        let found = if let Health::Lost(evidence) = &self.health { Some(evidence) } else { None };
        if let Some(evidence) = told.as_ref().or(found) {
            merge::lose(Arc::make_mut(&mut view), evidence);
        } else if let (Health::Over, None, Some(Some(ending))) = (&self.health, view.ended_at, &self.result) {
            ending.show(Arc::make_mut(&mut view));
        }
        if self.health == Health::Over && !self.behind {
            merge::settle(&mut view);
        }
        if self.health == Health::Live && self.is_of_others() {
            self.inside.show(&mut view, wall());
        }
        if self.may_be_told() {
            self.ears.show(&mut view);
        }
        let changed = !Arc::ptr_eq(&view, &self.view) && view != self.view;
        if changed {
            self.view = view;
        }
        changed
    }

    /// Whether a message to a child of others may still arrive.
    fn may_be_told(&self) -> bool {
        matches!(self.health, Health::Live | Health::Suspended(_) | Health::Unknown(_)) && self.is_of_others()
    }

    /// Whether its runner is none of ours, which would look at the runs inside itself.
    fn is_of_others(&self) -> bool {
        !self.dir.runner_json().exists()
    }

    /// Looks for the runs that were started in it; whether any of them is another than before.
    pub fn look_inside(&mut self) -> bool {
        // Of a run of others that was done with everything else.
        let done = self.health == Health::Live && self.is_of_others();
        !done && self.inside.look(&self.view)
    }

    /// The runs that were started in it, as the last look found them.
    pub fn inside(&self) -> impl Iterator<Item = &Inner> {
        self.inside.runs()
    }

    fn set_health(&mut self, health: Health) -> bool {
        let changed = health != self.health;
        self.health = health;
        changed
    }

    /// Whether somebody runs the run, by its files and by its runner.
    fn look(&self) -> Health {
        let newest = self.snapshot.as_deref();
        let over = |s: &RunState| s.phase.is_terminal() && s.ended_at.is_some();
        if over(&self.reduced) {
            return Health::Over;
        }
        // A runner of ours tells the end after its last status; while it lives that is still to come.
        if newest.is_some_and(over) {
            let told = identity::probe(&self.dir) != RunnerLife::Alive;
            return if told { Health::Over } else { living(&self.dir) };
        }
        let known = newest.or_else(|| self.reduced.started_at.map(|_| &self.reduced));
        // Of such a run nobody can say whether it ever began; only its own runner would write another status.
        if let (None, Some((why, _))) = (known, &self.unreadable)
            && !matches!(identity::probe(&self.dir), RunnerLife::Alive | RunnerLife::Unknown(_))
        {
            return Health::Unreadable(why.clone());
        }
        health(&self.dir, known)
    }

    /// Which steps' logs are longer, or shorter, than at the last look.
    fn grown(&mut self) -> Vec<StepId> {
        let mut grown = Vec::new();
        self.sizes.resize(self.view.steps.len(), (0, false));
        for (step, known) in self.view.steps.iter().zip(&mut self.sizes) {
            // Of thousands of steps that have ended none is looked at again and again.
            if step.phase == StepPhase::Pending || known.1 && step.phase.is_terminal() {
                continue;
            }
            let plain = !step.runner.is_agent();
            let size = |path: std::path::PathBuf| fs::metadata(path).map_or(0, |m| m.len());
            let size = if plain {
                size(self.dir.external_out(step.id)) + size(self.dir.external_err(step.id))
            } else {
                size(self.dir.output(step.id))
            };
            if size != known.0 {
                grown.push(step.id);
            }
            // Of a child whose end was told a while ago nothing more comes.
            let told = step.ended_at.zip(self.view.last_update).is_some_and(|(end, now)| now.since(end) > SETTLED);
            *known = (size, step.phase.is_terminal() && (told || self.view.ended_at.is_some()));
        }
        grown
    }
}
