//! What keys and clicks mean in a replay: where it goes and how fast.

use super::say;
use crate::deck::model::UiState;
use crate::run::Timestamp;
use crate::run::replay::Step;

/// Holds it, or lets it go on.
pub(super) fn pause(ui: &mut UiState, now: Timestamp) {
    let Some(replay) = &mut ui.replay else { return };
    if replay.cursor.plays() {
        replay.cursor.pause();
    } else if replay.reading.is_none() {
        replay.cursor.play(&replay.line, now);
    }
}

/// Plays faster or slower.
pub(super) fn change_speed(ui: &mut UiState, now: Timestamp, faster: bool) {
    let Some(replay) = &mut ui.replay else { return };
    if !replay.cursor.change_speed(faster) {
        let text = if faster { "it plays as fast as it can" } else { "it plays as fast as it happened" };
        say(ui, now, false, text);
    }
}

/// Goes to another place. What is looked at event by event does not move by itself.
pub(super) fn step(ui: &mut UiState, now: Timestamp, step: Step) {
    let Some(replay) = &mut ui.replay else { return };
    if matches!(step, Step::Event | Step::EventBack) {
        replay.cursor.pause();
    }
    if !replay.cursor.step(&replay.line, step) {
        let back = matches!(step, Step::EventBack | Step::MarkBack | Step::JumpBack | Step::Start);
        say(ui, now, false, if back { "this is the beginning" } else { "this is the end" });
    }
}

/// Passes over idle times, or plays them.
pub(super) fn skip_idle(ui: &mut UiState, now: Timestamp) {
    let Some(replay) = &mut ui.replay else { return };
    let skips = !replay.cursor.skips();
    replay.cursor.skip_idle(skips);
    let text = if skips { "times in which nothing happens are passed over" } else { "every time is played" };
    say(ui, now, false, text);
}

/// Goes to where the scrubber was clicked: one of `of` cells, and there to what stands out most.
pub(super) fn scrub(ui: &mut UiState, cell: usize, of: usize) {
    let Some(replay) = ui.replay.as_mut().filter(|replay| replay.reading.is_none()) else { return };
    let line = &replay.line;
    match line.mark_in(line.in_cell(cell, of)) {
        Some((_, mark)) => replay.cursor.seek_events(line, mark + 1),
        None => replay.cursor.seek(line, line.cell_begins(cell, of)),
    }
}
