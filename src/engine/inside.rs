//! The runs that were started in the steps of this one. What they do is a sign of life of the step, so they are looked at
//! before a step is said to be silent, when one of them says that it has changed, and, where both were silent, once
//! the inner run writes again. Nothing is asked for from time to time.

use std::path::PathBuf;
use std::time::Duration;

use super::clock::now;
use super::dispatch::Engine;
use crate::run::{Effect, EndingCause, InnerRun, Reason, RunState, StepId, StepPhase, StepState, What, inner};
use crate::rundir::inside::{Inside, folder};
use crate::rundir::{RunDir, Watch};

/// A folder that was changed this recently may be changed again without looking so.
const SAME_TICK: Duration = Duration::from_secs(1);

/// What the runner knows of the runs inside.
#[derive(Debug)]
pub(super) struct InnerRuns {
    inside: Inside,
    /// The version of the folder in which they put their names that was looked at.
    told: Option<std::time::SystemTime>,
    /// Wakes when a run writes that was silent together with its step.
    silent: Option<(Vec<PathBuf>, Watch)>,
}

impl InnerRuns {
    pub(super) fn of(dir: &RunDir) -> Self {
        Self { inside: Inside::new(dir.clone()), told: None, silent: None }
    }

    /// Returns once a run writes that was silent; waits for ever where none is.
    pub(super) async fn stirred(&self) {
        match &self.silent {
            Some((_, watch)) => watch.woken().await,
            None => std::future::pending().await,
        }
    }
}

impl Engine {
    /// Looks at the runs inside if one of them has said that it is another than before.
    pub(super) fn hear_inner_runs(&mut self) {
        let changed = std::fs::metadata(folder(&self.dir)).and_then(|meta| meta.modified()).ok();
        if changed.is_some() && changed != self.inner.told {
            // What changes again within the same tick of the file system's clock looks the same.
            self.inner.told = changed.filter(|at| at.elapsed().is_ok_and(|age| age > SAME_TICK));
            self.look_at_inner_runs();
        }
    }

    /// Looks at the runs inside, and records what of them is news. Whether anything is.
    pub(super) fn look_at_inner_runs(&mut self) -> bool {
        let at = now();
        let state = self.recorder.state();
        self.inner.inside.look_closely(state);
        let runs = self.inner.inside.living(at);
        let found = inner::by_step(state, runs);
        let of = |id: StepId| found.iter().find(|(step, _)| *step == id).map_or(&[][..], |(_, runs)| runs.as_slice());
        let news = |step: &StepState| {
            let now = of(step.id);
            let same = |run: &InnerRun| step.inner.iter().any(|known| known == run);
            step.phase == StepPhase::Running && (now.len() != step.inner.len() || !now.iter().all(same))
        };
        let changed: Vec<(StepId, Vec<InnerRun>)> =
            state.steps.iter().filter(|step| news(step)).map(|step| (step.id, of(step.id).to_vec())).collect();
        let any = !changed.is_empty();
        for (step, runs) in changed {
            self.recorder.record(What::InnerRuns { step, runs });
        }
        any
    }

    /// Waits for what was silent together with its step, as long as that is told.
    pub(super) fn watch_the_silent(&mut self) {
        let silent = silent_ids(self.recorder.state());
        let runs = self.inner.inside.runs().filter(|inner| silent.contains(&inner.run.dir().id_str()));
        let dirs: Vec<PathBuf> = runs.map(|inner| inner.run.dir().path().to_owned()).collect();
        if dirs.is_empty() {
            self.inner.silent = None;
        } else if self.inner.silent.as_ref().is_none_or(|(known, _)| *known != dirs) {
            let watch = Watch::new(&dirs);
            self.inner.silent = Some((dirs, watch));
        }
    }
}

/// Whether something that is due says of a step that it shows no life.
pub(super) const fn is_of_silence(effect: &Effect) -> bool {
    match effect {
        Effect::Raise { notice, .. } => notice.condition.reason.is_silence(),
        Effect::End { cause, .. } => matches!(cause, EndingCause::StepTimeout),
        _ => false,
    }
}

/// The inner runs of steps of which it is told that they show no life.
fn silent_ids(state: &RunState) -> Vec<&str> {
    let told = |step: &&StepState| {
        step.attention.iter().map(|notice| &notice.condition).any(|told| match told.reason {
            // Another call may be open for long beside that in which the run was started.
            Reason::ToolOpen => step.open.iter().any(|c| c.heard.is_some() && c.seq.to_string() == told.subject),
            reason => reason.is_silence(),
        })
    };
    state.steps.iter().filter(told).flat_map(|step| step.inner.iter().map(|run| run.id.as_str())).collect()
}
