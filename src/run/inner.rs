//! Runs that were started in a step of another one. What they do is a sign of life of the step, and what they need of a
//! person is told at the step too (product 5). Pure.

use super::{Notice, RunId, RunState, StepId, StepPhase, StepState, Timestamp, needs};

/// A run that was started in a step and has not ended, as it was when somebody looked at it last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InnerRun {
    /// Its id.
    pub id: RunId,
    /// What it is called. Text from outside.
    pub title: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its newest sign of life. While a tool is open in it, or something in it waits for what has a time of its own, that
    /// is the look itself.
    pub heard: Timestamp,
    /// What it needs a person for, and since when. Text from outside.
    pub needs: Option<(String, Timestamp)>,
}

impl InnerRun {
    /// How many of a step are kept.
    pub const KEPT: usize = 16;

    /// What is to be known of a run that is called so, looked at now; `None` once it is over.
    #[must_use]
    pub fn of(state: &RunState, title: &str, now: Timestamp) -> Option<Self> {
        if state.is_over() || state.lost.is_some() {
            return None;
        }
        let started_at = state.started_at.or(state.last_update).unwrap_or(now);
        let running = || state.steps.iter().filter(|step| step.phase == StepPhase::Running);
        let signs = |step: &StepState| [step.started_at, step.last_activity, step.inner_heard, step.ended_at];
        let signs = state.steps.iter().flat_map(signs).flatten();
        let heard = if running().any(excused) { now } else { signs.fold(started_at, Timestamp::max) };
        let need = needs(state).into_iter().next().map(|need| {
            let evidence = if need.evidence.is_empty() { String::new() } else { format!(": {}", need.evidence) };
            (format!("{}{evidence}", need.short()), need.since.unwrap_or(now))
        });
        Some(Self { id: state.id.clone(), title: title.to_owned(), started_at, heard: heard.min(now), needs: need })
    }

    /// Whether two looks at it say the same, but for when it was heard.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        Self { heard: other.heard, ..self.clone() } == *other
    }

    /// What it needs with its name, where it needs something: `build: pusher: asks: git push?`.
    #[must_use]
    pub fn asks(&self) -> Option<String> {
        self.needs.as_ref().map(|(need, _)| format!("{}: {need}", self.title))
    }
}

/// Whether the silence of a step has a reason that has a time of its own.
fn excused(step: &StepState) -> bool {
    !step.open.is_empty() || step.retrying.is_some() || !step.questions.is_empty() || step.next_attempt.is_some()
}

/// A look at the inner runs of a step: those that go on. What an open call started is heard in that call.
pub(super) fn seen(step: &mut StepState, runs: &[InnerRun], at: Timestamp) {
    // One that has ended since the last look showed life by that.
    let ended = step.inner.iter().filter(|known| runs.iter().all(|run| run.id != known.id)).map(|known| (known, at));
    let signs: Vec<_> =
        ended.chain(runs.iter().map(|run| (run, run.heard))).map(|(r, at)| (r.started_at, at)).collect();
    for (started, heard) in signs {
        step.inner_heard = step.inner_heard.max(Some(heard));
        let calls = step.open.iter_mut().filter(|call| call.started_at <= started);
        if let Some(call) = calls.max_by_key(|call| (call.started_at, call.seq)) {
            call.heard = call.heard.max(Some(heard));
        }
    }
    step.inner = runs.iter().take(InnerRun::KEPT).cloned().collect();
}

impl StepState {
    /// The inner run that the step waits for, where one goes on: one that needs a person before the others, then the
    /// newest.
    #[must_use]
    pub fn waits_for(&self) -> Option<&InnerRun> {
        self.inner.iter().max_by_key(|run| (run.needs.is_some(), run.started_at))
    }

    /// Whether an inner run has shown life since a notice said that the step shows none. Runners of others do not look at
    /// inner runs, and ours takes such a notice back when it looks again.
    #[must_use]
    pub fn is_void(&self, notice: &Notice) -> bool {
        notice.condition.reason.is_silence() && self.inner.iter().any(|run| run.heard > notice.raised_at)
    }

    /// Whether all that files say of the step's need for a person is void. Where they say no more than that there is a
    /// need, it is taken for silence, but for a step that asks somebody.
    #[must_use]
    pub fn is_excused(&self) -> bool {
        let quiet = |run: &InnerRun| run.needs.is_none();
        let of_silence = |notice: &Notice| notice.level() != super::Level::Needs || self.is_void(notice);
        let asks = |call: &super::OpenCall| call.about.asks || matches!(&*call.tool, "contact_supervisor" | "intercom");
        !self.inner.is_empty()
            && self.inner.iter().all(quiet)
            && self.attention.iter().all(of_silence)
            && !self.open.iter().any(asks)
    }
}

/// In which steps of a run others were started: where that is not told, in the only one that runs.
#[must_use]
pub fn by_step(state: &RunState, runs: Vec<(Option<StepId>, InnerRun)>) -> Vec<(StepId, Vec<InnerRun>)> {
    let mut running = state.steps.iter().filter(|step| step.phase == StepPhase::Running).map(|step| step.id);
    let only = running.next().filter(|_| running.next().is_none());
    let mut found: Vec<(StepId, Vec<InnerRun>)> = Vec::new();
    for (step, run) in runs {
        let Some(step) = step.or(only).filter(|id| state.step(*id).is_some()) else { continue };
        match found.iter_mut().find(|(known, _)| *known == step) {
            Some((_, runs)) if runs.len() < InnerRun::KEPT => runs.push(run),
            Some(_) => {}
            None => found.push((step, vec![run])),
        }
    }
    found
}
