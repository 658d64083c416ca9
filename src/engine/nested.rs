//! A run's place among runs within runs (run-directory 2.16): it tells those above what becomes of it, and passes down what
//! it is told itself. Whatever fails here changes nothing of the run.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::clock::now;
use super::complain::complain;
use super::dispatch::Engine;
use crate::plan::{NestedSelf, Plan, Route};
use crate::run::{RunState, needs};
use crate::rundir::{RunDir, inside, nested};

/// How often those above are told that nothing but the time has changed.
const AGAIN: Duration = Duration::from_secs(1);

/// The route that this run may use.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    route: Route,
    own: Option<NestedSelf>,
    root: PathBuf,
    dir: PathBuf,
    /// What was told last, without its times, and when.
    told: Option<(RunState, Instant)>,
}

impl Nested {
    /// The route of a plan, when it has one that can be used.
    pub(super) fn of(plan: &Plan, dir: &RunDir) -> Option<Self> {
        let route = plan.extras.route.clone()?;
        match nested::root_of(&route, dir.path()) {
            Ok(root) => {
                let own = plan.extras.nested.clone();
                Some(Self { route, own, root, dir: dir.path().to_path_buf(), told: None })
            }
            Err(error) => {
                complain("runner", &format_args!("the route of nested runs is not used: {error}"));
                None
            }
        }
    }

    /// Tells those above, after a status was written: `last` when it is the last one.
    pub(super) fn tell(&mut self, state: &RunState, last: bool) {
        let Some(own) = &self.own else { return };
        let plain = timeless(state);
        if !last && self.told.as_ref().is_some_and(|(told, when)| *told == plain && when.elapsed() < AGAIN) {
            return;
        }
        self.told = Some((plain, Instant::now()));
        let kind = if last { "completed" } else { "updated" };
        let event = nested::event(&self.route, own, &self.dir, state, kind, now());
        if let Err(error) = nested::tell(&self.route, &event, now()) {
            complain("runner", &format_args!("those above cannot be told of this run: {error}"));
        }
    }
}

/// What the run of ours was told in whose step this one was started.
#[derive(Debug, Default)]
pub(super) struct Outer {
    told: Option<News>,
}

/// What is told: that it needs a person, and for what; that it is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct News {
    needs: Option<String>,
    over: bool,
}

impl Outer {
    /// Says to the outer run that there is news, if there is, once the status has it. That the run began is told when it
    /// opens its doors.
    pub(super) fn tell(&mut self, dir: &RunDir, state: &RunState) {
        let Some(within) = &state.started_in else { return };
        let needs = needs(state).first().map(|need| format!("{} {}", need.short(), need.evidence));
        let news = News { needs, over: state.is_over() };
        if self.told.replace(news.clone()).unwrap_or_default() != news
            && let Err(error) = inside::announce(dir, within)
        {
            complain("runner", &format_args!("the run that this one was started in cannot be told of it: {error}"));
        }
    }
}

/// The state without what changes all the time.
fn timeless(state: &RunState) -> RunState {
    let mut plain = RunState { last_update: None, last_activity: None, next_seq: 0, ..state.clone() };
    for step in &mut plain.steps {
        (step.last_activity, step.heard) = (None, false);
        step.recent_output.clear();
    }
    plain
}

/// What was passed down already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    interrupt: bool,
    stop: bool,
    timeout: bool,
}

impl Engine {
    /// The runs below are told what this run was told.
    pub(super) fn pass_down(&mut self) {
        let state = self.recorder.state();
        let asked = Passed { interrupt: state.interrupted, stop: state.stopped, timeout: state.timed_out };
        if asked == self.passed {
            return;
        }
        let before = std::mem::replace(&mut self.passed, asked);
        let Some(place) = self.recorder.nested.clone() else { return };
        let kinds = [
            ("stop", asked.stop, before.stop),
            ("timeout", asked.timeout, before.timeout),
            ("interrupt", asked.interrupt, before.interrupt),
        ];
        for (kind, _, _) in kinds.into_iter().filter(|(_, asked, before)| *asked && !before) {
            self.pass(&place, kind);
        }
    }

    fn pass(&self, place: &Nested, kind: &str) {
        let run = self.dir.id_str();
        let tell = |target: Option<&str>, error: &dyn std::fmt::Display| {
            let line = nested::failed(run, kind, target, &error.to_string(), now());
            // As for every record: what the disk has no room for waits.
            let _ = self.recorder.log().append(&line);
        };
        let below = match nested::descendants(&place.route, &place.root, run) {
            Ok(below) => below,
            Err(error) => return tell(None, &error),
        };
        for descendant in below {
            if let Err(error) = nested::pass_down(&descendant, kind, now()) {
                tell(Some(&descendant.id), &error);
            }
        }
    }

    /// What a child finds in its environment that may start agents of its own.
    pub(super) fn route_variables(&self, flat: usize, agent: &str) -> Vec<(&'static str, String)> {
        let Some(place) = &self.recorder.nested else { return Vec::new() };
        nested::variables(&place.route, place.own.as_ref(), self.dir.id_str(), flat, agent)
    }
}
