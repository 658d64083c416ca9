//! A place on a timeline that moves by itself, or as a person moves it.

use std::ops::Range;
use std::time::Duration;

use super::Timeline;
use crate::run::Timestamp;

/// How much faster than it happened a run is played.
pub const SPEEDS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// So far a person jumps at once.
const JUMP: Duration = Duration::from_secs(10);
/// What is shown of an idle time, at either end of it.
const SHOWN: Duration = Duration::from_secs(2);

/// How a person moves the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To where one event more has happened.
    Event,
    /// To where one event less has happened.
    EventBack,
    /// To the next event that stands out.
    Mark,
    /// To the one before.
    MarkBack,
    /// 10 s on.
    Jump,
    /// 10 s back.
    JumpBack,
    /// To the first event.
    Start,
    /// To the last one.
    End,
}

/// A place on a timeline. Several events may have happened in the same moment, so it is both a time and how many events
/// have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: Duration,
    events: usize,
    speed: usize,
    /// While it moves by itself: when it was moved last.
    moved: Option<Timestamp>,
    /// Idle times are passed over.
    skips: bool,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { at: Duration::ZERO, events: 0, speed: 0, moved: None, skips: true }
    }
}

impl Cursor {
    /// How far from the first event.
    #[must_use]
    pub const fn at(&self) -> Duration {
        self.at
    }

    /// How many events have happened.
    #[must_use]
    pub const fn events(&self) -> usize {
        self.events
    }

    /// How much faster than it happened; 1 to 64.
    #[must_use]
    pub fn speed(&self) -> u32 {
        SPEEDS.get(self.speed).copied().unwrap_or(1)
    }

    /// Whether it moves by itself.
    #[must_use]
    pub const fn plays(&self) -> bool {
        self.moved.is_some()
    }

    /// Whether idle times are passed over.
    #[must_use]
    pub const fn skips(&self) -> bool {
        self.skips
    }

    /// Passes over idle times, or not.
    pub const fn skip_idle(&mut self, skips: bool) {
        self.skips = skips;
    }

    /// Whether everything has happened.
    #[must_use]
    pub fn is_at_end(&self, line: &Timeline) -> bool {
        self.events >= line.len() && self.at >= line.span()
    }

    /// Moves by itself from now on; from the end it begins again.
    pub fn play(&mut self, line: &Timeline, now: Timestamp) {
        if self.is_at_end(line) {
            self.seek_events(line, 0);
        }
        self.moved = Some(now);
    }

    /// Stays where it is.
    pub const fn pause(&mut self) {
        self.moved = None;
    }

    /// Plays faster, or slower, by one of [`SPEEDS`]. Whether there is such a speed.
    pub const fn change_speed(&mut self, faster: bool) -> bool {
        let to = if faster { self.speed + 1 } else { self.speed.wrapping_sub(1) };
        if to >= SPEEDS.len() {
            return false;
        }
        self.speed = to;
        true
    }

    /// Moves as far as the wall clock did; stays at the end. Whether it is somewhere else.
    pub fn advance(&mut self, line: &Timeline, now: Timestamp) -> bool {
        let Some(moved) = self.moved else { return false };
        self.moved = Some(now);
        // A clock that was set back moves nothing.
        let to = self.at.saturating_add(now.since(moved).saturating_mul(self.speed())).min(line.span());
        let before = (self.at, self.events);
        self.at = to;
        self.events = self.events.max(line.until(to));
        if self.is_at_end(line) {
            self.moved = None;
        }
        before != (self.at, self.events)
    }

    /// The idle time that it can pass over from where it is, of which a little is shown at either end.
    #[must_use]
    pub fn idle(&self, line: &Timeline) -> Option<Range<Duration>> {
        let gap = line.gap(self.events).filter(|_| self.skips && self.plays())?;
        let rest = self.at..gap.end.saturating_sub(SHOWN);
        (self.at >= gap.start + SHOWN && rest.start < rest.end).then_some(rest)
    }

    /// Passes over time in which no event happened, to `to` or the next event. How much that was.
    pub fn pass_over(&mut self, line: &Timeline, to: Duration) -> Duration {
        let next = if self.events < line.len() { line.at(self.events) } else { line.span() };
        let from = self.at;
        self.at = to.min(next).max(from);
        self.at - from
    }

    /// Goes to a distance from the first event: all that had happened by then has happened.
    pub fn seek(&mut self, line: &Timeline, at: Duration) {
        self.at = at.min(line.span());
        self.events = line.until(self.at);
    }

    /// Goes to where so many events have happened, and none after them.
    pub fn seek_events(&mut self, line: &Timeline, events: usize) {
        // The first event has always happened: before it there is nothing to be seen.
        self.events = events.clamp(1.min(line.len()), line.len());
        self.at = line.at(self.events.saturating_sub(1));
    }

    /// Moves as a person wishes. Whether there was anywhere to go.
    pub fn step(&mut self, line: &Timeline, step: Step) -> bool {
        let before = (self.at, self.events);
        match step {
            Step::Event => self.seek_events(line, self.events.saturating_add(1)),
            Step::EventBack => self.seek_events(line, self.events.saturating_sub(1)),
            Step::Mark => match line.mark_from(self.events) {
                Some(mark) => self.seek_events(line, mark + 1),
                None => self.seek_events(line, line.len()),
            },
            Step::MarkBack => match line.mark_before(self.events.saturating_sub(1)) {
                Some(mark) => self.seek_events(line, mark + 1),
                None => self.seek_events(line, 0),
            },
            Step::Jump => self.seek(line, self.at.saturating_add(JUMP)),
            Step::JumpBack => self.seek(line, self.at.saturating_sub(JUMP)),
            // By number, as more than one may have happened in that moment.
            Step::Start => self.seek_events(line, 0),
            Step::End => self.seek(line, line.span()),
        }
        if self.is_at_end(line) {
            self.moved = None;
        }
        before != (self.at, self.events)
    }

    /// How long it is until something changes by itself: the next event, or the next second of the clock of the run. `None`
    /// while it does not move.
    #[must_use]
    pub fn due(&self, line: &Timeline) -> Option<Duration> {
        self.moved?;
        let clock = line.clock(self.at, self.events).micros().rem_euclid(1_000_000);
        let second = Duration::from_micros(u64::try_from(1_000_000 - clock).unwrap_or(1_000_000));
        let event = if self.events < line.len() { line.at(self.events) } else { line.span() };
        Some(second.min(event.saturating_sub(self.at)) / self.speed())
    }
}

#[cfg(test)]
mod tests;
