//! A run that plays again, between two looks at the keys: the tape is read piece by piece, then the picture follows the
//! place that the person plays to.

use std::sync::Arc;
use std::time::Duration;

use super::{App, Moment, Source, wall};
use crate::deck::replay::{ASK, Player, Replay};
use crate::deck::sums::Sums;
use crate::deck::update::say;
use crate::run::{StepId, StepPhase, Timestamp};
use crate::text::lasted;

/// A time with less to pass over is played.
const WORTH_IT: Duration = Duration::from_secs(4);
/// So much of it is shown before something is printed.
const SHOWN: Duration = Duration::from_secs(1);

impl<S: Source> App<'_, S> {
    /// Begins to play the run from its start.
    pub(super) fn begin_replay(&mut self) {
        if self.history.is_loose() {
            // What was read again was another recording.
            self.older.forget();
        }
        self.moment = Some(Moment::Replay(Box::new(Player::new(self.source.tape()))));
        self.ui.frozen = None;
        self.ui.begin_replay(Replay { reading: Some(0), ..Replay::default() });
        self.settle_moment();
    }

    /// Shows the run as it is again.
    pub(super) fn end_replay(&mut self) {
        self.ui.replay = None;
        self.show_newest();
    }

    /// How long it is until a replay shows something else.
    pub(super) fn replay_due(&self) -> Option<Duration> {
        let replay = self.ui.replay.as_ref()?;
        // The thread that reads wakes nobody.
        if replay.reading.is_some() {
            return Some(ASK);
        }
        replay.cursor.due(&replay.line)
    }

    /// What the clock showed at the moment that is played.
    pub(super) fn replay_clock(&self) -> Timestamp {
        self.ui.replay.as_ref().map(|replay| replay.clock()).unwrap_or_default()
    }

    /// Reads on, or moves on. Whether something else is to be shown.
    pub(super) fn play_on(&mut self) -> bool {
        let at_calls = if self.ui.replay.is_some() { self.open_calls_at() } else { Vec::new() };
        let (Some(Moment::Replay(player)), Some(replay)) = (&mut self.moment, &mut self.ui.replay) else {
            return false;
        };
        let now = wall();
        let mut changed = false;
        if replay.reading.is_some() {
            let before = replay.reading;
            player.load(replay);
            changed = replay.reading != before;
            if replay.reading.is_none() {
                replay.cursor.play(&replay.line, now);
            }
        } else {
            changed |= replay.cursor.advance(&replay.line, now);
        }
        if player.seek(&replay.line, replay.cursor.events()) {
            self.stay_at_calls(&at_calls);
            self.settle_moment();
            changed = true;
        }
        changed | self.pass_idle(now)
    }

    /// Passes over a time in which nothing happened and nothing was printed.
    fn pass_idle(&mut self, now: Timestamp) -> bool {
        let (Some(Moment::Replay(player)), Some(replay)) = (&self.moment, &mut self.ui.replay) else { return false };
        let Some(idle) = replay.cursor.idle(&replay.line) else { return false };
        let clock = replay.clock();
        let mut end = idle.end;
        for step in player.now().state.steps.iter().filter(|step| step.phase == StepPhase::Running) {
            if let Some(printed) = self.source.printed_after(step.id, clock) {
                let when = replay.line.when(printed, replay.cursor.at(), replay.cursor.events());
                end = end.min(when.saturating_sub(SHOWN));
            }
        }
        if end.saturating_sub(idle.start) < WORTH_IT {
            return false;
        }
        let passed = replay.cursor.pass_over(&replay.line, end);
        say(&mut self.ui, now, false, &format!("passed over {} in which nothing happened", lasted(passed)));
        true
    }

    /// Finds out what is true of all steps at the moment that is shown.
    fn settle_moment(&mut self) {
        if let Some(moment) = &self.moment {
            let state = &moment.known().state;
            self.ui.known = Some(Arc::new(Sums::of(state)));
            self.ui.settle(state);
        }
    }

    /// How long the log of a step was at the moment that is shown: `None` while that is now, `Some(None)` where nothing
    /// tells it.
    pub(super) fn length_then(&mut self, step: StepId) -> Option<Option<u64>> {
        let at = self.replay_clock();
        let state = match self.moment.as_ref()? {
            Moment::Frozen { lengths, .. } => return Some(Some(lengths.get(&step).copied().unwrap_or(0))),
            Moment::Replay(player) => &player.now().state,
        };
        Some(match state.step(step).map(|found| &found.phase) {
            None | Some(StepPhase::Pending) => Some(0),
            Some(phase) => {
                let over = phase.is_terminal() || state.is_over() || state.lost.is_some();
                let marked = self.source.log_len_at(step, at);
                // What had ended had printed all of it.
                if over && marked.is_none() { Some(self.source.log_len(step)) } else { marked }
            }
        })
    }
}
