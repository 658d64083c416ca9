//! What follows from conclusions beyond their record: notices are told once in the words of the package's readers
//! (runner-behaviour 4.4), an agent near its last turn is told so, and a run without anything left starts nothing more.

use super::clock::now;
use super::dispatch::Engine;
use crate::run::{Effect, Level, Notice, Stage, StepId, What, budget, decide};
use crate::rundir::notice_record;

impl Engine {
    /// Tells an agent that its turns come to an end, where it listens and has not finished yet (runner-behaviour 3.1).
    pub(super) fn ask_to_wrap_up(&mut self, step: StepId) {
        let Some(state) = self.recorder.state().step(step) else { return };
        let (turns, done) = (state.turn_count, state.last_word || state.settled_at.is_some());
        let Some(limit) = state.limits.turns.filter(|_| !done) else { return };
        let text = budget::wrap_up(turns, limit);
        let Some(active) = self.active.get_mut(&step) else { return };
        let sent = match active.talk().and_then(|talk| talk.wrap_up(&text)) {
            Some(bytes) => active.send(bytes),
            None => false,
        };
        let told = if sent { "it was asked to wrap up" } else { "it cannot be told to wrap up" };
        let line = format!("turn budget: {turns} of {} turns; {told}", limit.max);
        let told = active.tell_log(&line);
        self.recorder.absorb(now(), What::OutputLines { step, lines: vec![line], open: false });
        if let Err(error) = told {
            self.recorder.record(What::LogFailed { step, error: error.to_string() });
        }
    }

    /// The run has used what it may. Children that run go on; nothing more is started (runner-behaviour 3.3).
    pub(super) fn exhaust(&mut self) {
        let state = self.recorder.state();
        let Some((metric, used)) = budget::exhausted(state) else { return };
        let message = budget::run_sentence(metric, used, &state.limits);
        self.recorder.record(What::BudgetReached { step: None, metric, stage: Stage::Hard, used, message });
    }

    /// Tells what holds of a step that is about to end. What a child did last may have come together with its end, and is
    /// told all the same.
    pub(super) fn tell_last(&mut self, id: StepId) {
        for effect in decide(self.recorder.state(), now()).due {
            if let Effect::Raise { step, notice } = effect
                && step == id
            {
                self.raise(step, notice);
            }
        }
    }

    /// Records a notice, and tells each cause once.
    pub(super) fn raise(&mut self, step: StepId, notice: Box<Notice>) {
        self.recorder.record(What::AttentionRaised { step, notice: notice.clone() });
        if notice.level() == Level::Note || !self.told.insert(notice.id.clone()) {
            return;
        }
        let line = notice_record::encode(self.recorder.state(), step, &notice, &self.plan.control, now());
        if let Some(line) = line {
            // As with every record: the log keeps what it could not write.
            let _ = self.recorder.log().append(&line);
        }
    }
}
