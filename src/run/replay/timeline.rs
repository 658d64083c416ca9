//! Where the events of a run lie in time, and which of them stand out.

use std::ops::Range;
use std::time::Duration;

use crate::run::{AgentEvent, Event, Timestamp, What};

/// For so long nothing has to happen for a time to be idle.
pub const IDLE: Duration = Duration::from_secs(10);

/// A clock that goes back so far was set.
const SET: Duration = Duration::from_secs(60);

/// So many events apart are the places from which a tape is read again.
const PLACES_APART: usize = 256;

/// Why an event stands out. The later ones are more important where there is room for one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// A tool was called.
    Tool,
    /// Somebody asked for something.
    Control,
    /// A step or the run ended.
    End,
    /// A person was needed.
    Attention,
}

impl MarkKind {
    /// All of them, the least important first.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Control, Self::End, Self::Attention];

    /// Why this event stands out, if it does.
    #[must_use]
    pub const fn of(event: &Event) -> Option<Self> {
        match &event.what {
            What::Agent { event: AgentEvent::ToolStarted { .. }, .. } => Some(Self::Tool),
            What::RunInterrupted { .. }
            | What::RunStopped { .. }
            | What::StepEnding { source: Some(_), .. }
            | What::AttentionAcknowledged { .. }
            | What::QuestionAnswered { .. }
            | What::BudgetRaised { .. }
            | What::SteerRequested(_)
            | What::ControlRejected { .. }
            | What::ControlUnannounced { .. } => Some(Self::Control),
            What::StepEnded { .. } | What::RunEnded { .. } | What::RunLost { .. } | What::RunTimedOut { .. } => {
                Some(Self::End)
            }
            What::AttentionRaised { .. }
            | What::AttentionNoted { .. }
            | What::QuestionAsked { .. }
            | What::BudgetReached { .. } => Some(Self::Attention),
            _ => None,
        }
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Control => "control",
            Self::End => "end",
            Self::Attention => "attention",
        }
    }
}

/// The events of a run in the order in which they were recorded, each at its distance from the first one.
///
/// The order is believed and not the clock, so that every event has one place and no later one lies before it. What is a
/// little earlier than the event before it was written by somebody else in between and takes no time; where the clock goes
/// back further, it was set, and goes on from there.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// How far each event lies from the first one, in microseconds.
    at: Vec<u64>,
    /// Where the clock went backwards: the first event after it, and what it showed then.
    clocks: Vec<(usize, Timestamp)>,
    /// Where the tape is read again from, by the first event that it gives there.
    places: Vec<(usize, u64)>,
    /// The numbers of the events that stand out, by kind.
    marks: [Vec<u32>; MarkKind::ALL.len()],
    last: Timestamp,
    last_place: Option<u64>,
}

impl Timeline {
    /// More events than these have no place: a log of them is longer than anybody looks at, and would take more memory
    /// than there is to spare.
    pub const MOST: usize = 8_000_000;

    /// Adds the next event and the place where its record can be read again; whether there was room for it.
    pub fn push(&mut self, event: &Event, place: u64) -> bool {
        let number = self.at.len();
        if number >= Self::MOST {
            return false;
        }
        // A record without a time was written when the one before it was.
        let untimed = number > 0 && event.at == Timestamp::default();
        let before = self.at.last().copied();
        if before.is_none() || !untimed && self.last.since(event.at) >= SET {
            self.clocks.push((number, event.at));
            self.last = event.at;
        }
        let later = if untimed { 0 } else { micros(event.at.since(self.last)) };
        self.at.push(before.unwrap_or(0).saturating_add(later));
        self.last = self.last + Duration::from_micros(later);
        let begins = self.last_place != Some(place);
        if begins && self.places.last().is_none_or(|(first, _)| number >= first + PLACES_APART) {
            self.places.push((number, place));
        }
        self.last_place = Some(place);
        if let (Some(kind), Ok(number)) = (MarkKind::of(event), u32::try_from(number))
            && let Some(marks) = self.marks.get_mut(kind as usize)
        {
            marks.push(number);
        }
        true
    }

    /// How many events there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// From the first event to the last one.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_micros(self.at.last().copied().unwrap_or(0))
    }

    /// How far an event lies from the first one, by its number from 0; the last one for what is behind it.
    #[must_use]
    pub fn at(&self, event: usize) -> Duration {
        Duration::from_micros(self.at.get(event).or(self.at.last()).copied().unwrap_or(0))
    }

    /// How many events have happened at this distance from the first one.
    #[must_use]
    pub fn until(&self, at: Duration) -> usize {
        let at = micros(at);
        self.at.partition_point(|other| *other <= at)
    }

    /// What the clock showed at this distance from the first event, as far as `events` of them had happened.
    #[must_use]
    pub fn clock(&self, at: Duration, events: usize) -> Timestamp {
        let latest = events.saturating_sub(1);
        let set = self.clocks.partition_point(|(first, _)| *first <= latest);
        let Some((first, showed)) = set.checked_sub(1).and_then(|n| self.clocks.get(n)) else {
            return Timestamp::default();
        };
        *showed + at.saturating_sub(self.at(*first))
    }

    /// Where the clock showed this moment, seen from a place that is not behind it.
    #[must_use]
    pub fn when(&self, clock: Timestamp, at: Duration, events: usize) -> Duration {
        at + clock.since(self.clock(at, events))
    }

    /// Where a tape is read again to come to an event, and the number of the first event that it gives there.
    #[must_use]
    pub fn place(&self, event: usize) -> (usize, u64) {
        let at = self.places.partition_point(|(first, _)| *first <= event);
        at.checked_sub(1).and_then(|n| self.places.get(n)).copied().unwrap_or((0, 0))
    }

    /// The first event from this one on that stands out.
    #[must_use]
    pub fn mark_from(&self, event: usize) -> Option<usize> {
        let next = |marks: &Vec<u32>| marks.get(marks.partition_point(|m| (*m as usize) < event)).copied();
        self.marks.iter().filter_map(next).min().map(|m| m as usize)
    }

    /// The last event before this one that stands out.
    #[must_use]
    pub fn mark_before(&self, event: usize) -> Option<usize> {
        let last = |marks: &Vec<u32>| {
            let behind = marks.partition_point(|m| (*m as usize) < event);
            marks.get(behind.checked_sub(1)?).copied()
        };
        self.marks.iter().filter_map(last).max().map(|m| m as usize)
    }

    /// The most important event that stands out among these, by their numbers; of several the first.
    #[must_use]
    pub fn mark_in(&self, events: Range<usize>) -> Option<(MarkKind, usize)> {
        MarkKind::ALL.into_iter().rev().find_map(|kind| {
            let marks = self.marks.get(kind as usize)?;
            let first = marks.get(marks.partition_point(|m| (*m as usize) < events.start)).map(|m| *m as usize)?;
            events.contains(&first).then_some((kind, first))
        })
    }

    /// The cell that a distance from the first event is in, where the time is drawn as `of` cells. The last cell is the end
    /// and nothing before it; the others are equal parts of the time.
    #[must_use]
    pub fn cell(&self, at: Duration, of: usize) -> usize {
        let (span, parts) = self.scale(of);
        usize::try_from(u128::from(micros(at)) * parts / span).unwrap_or(usize::MAX).min(of.saturating_sub(1))
    }

    /// The events in one of `of` such cells, by their numbers.
    #[must_use]
    pub fn in_cell(&self, cell: usize, of: usize) -> Range<usize> {
        let (span, parts) = self.scale(of);
        let edge = |cell: usize| self.at.partition_point(|at| u128::from(*at) * parts < span * cell as u128);
        edge(cell)..edge(cell.saturating_add(1))
    }

    /// Where one of `of` such cells begins.
    #[must_use]
    pub fn cell_begins(&self, cell: usize, of: usize) -> Duration {
        let (span, parts) = self.scale(of);
        let at = (span * cell as u128).div_ceil(parts.max(1));
        Duration::from_micros(u64::try_from(at).unwrap_or(u64::MAX)).min(self.span())
    }

    /// The time in microseconds, and into how many parts so many cells divide it.
    fn scale(&self, cells: usize) -> (u128, u128) {
        (u128::from(micros(self.span())).max(1), cells.saturating_sub(1) as u128)
    }

    /// The time around a place in which nothing happens, where it is idle: from the event before it to the one after it.
    #[must_use]
    pub fn gap(&self, events: usize) -> Option<Range<Duration>> {
        let (from, to) = (self.at(events.checked_sub(1)?), self.at.get(events).copied().map(Duration::from_micros)?);
        (to - from >= IDLE).then_some(from..to)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
