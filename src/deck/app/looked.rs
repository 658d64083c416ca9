//! What a search through the entries of tabs has looked at, step by step, and where it found what it looks for: a part of
//! each list without gaps, from where the keys were outwards. It is kept for the next look, which goes on from there.

use std::collections::{BTreeMap, VecDeque};

use crate::deck::entries::{OPEN, Sieve};
use crate::deck::listed::Listed;
use crate::deck::model::Tab;
use crate::deck::sheet::{Goal, Needle};
use crate::run::StepId;

/// The moment whose entries were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MomentKey {
    /// The newest one, to which more is added, or the picture of it that stands still.
    #[default]
    Now,
    /// One of a run that plays again, after so many events.
    Replay(usize),
}

impl MomentKey {
    /// Whether all that there was at another moment is there too, under the same numbers.
    const fn has_all_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Now, Self::Now) => true,
            (Self::Replay(now), Self::Replay(then)) => now >= then,
            _ => false,
        }
    }
}

/// The part of a list that was looked through.
#[derive(Debug, Default)]
pub(super) struct Region {
    pub(super) sieve: Sieve,
    /// The numbers from here on ...
    pub(super) low: u64,
    /// ... to before this one.
    pub(super) high: u64,
    /// Behind the newest of them that will not get another number.
    pub(super) settled: u64,
    /// Those that have the text, in their order.
    pub(super) hits: VecDeque<u64>,
}

impl Region {
    /// Where one has to look first, so that what is next to the keys is known: back, or on.
    pub(super) fn toward(&self, goal: Goal, listed: &Listed<'_>) -> Option<bool> {
        let at = begin(goal, listed);
        if at < self.low && listed.place(at) < listed.place(self.low) {
            Some(true)
        } else {
            (at > self.high && listed.place(at) > listed.place(self.high)).then_some(false)
        }
    }
}

/// The border between two entries at which one begins to look.
fn begin(goal: Goal, listed: &Listed<'_>) -> u64 {
    let end = listed.newest().map_or(0, |newest| newest.saturating_add(1));
    let behind = goal.from.saturating_add(u64::from(goal.back == goal.here));
    behind.min(end)
}

/// What was looked at.
#[derive(Debug, Default)]
pub(super) struct Looked {
    tab: Tab,
    needle: Option<Needle>,
    moment: MomentKey,
    generation: u64,
    steps: BTreeMap<StepId, Region>,
}

impl Looked {
    /// Looks for this from now on; what is known of something else is let go of.
    pub(super) fn begin(&mut self, tab: Tab, needle: &Needle, moment: MomentKey, generation: u64) {
        let same = self.tab == tab && self.needle.as_ref() == Some(needle) && self.generation == generation;
        if !same || !moment.has_all_of(self.moment) {
            *self = Self { tab, needle: Some(needle.clone()), generation, ..Self::default() };
        }
        self.moment = moment;
        // A call that was open gets another number when it ends.
        self.steps.retain(|_, region| region.high <= OPEN || region.low < region.settled);
        for region in self.steps.values_mut().filter(|region| region.high > OPEN) {
            region.high = region.settled;
            region.hits.retain(|hit| *hit < OPEN);
        }
    }

    /// Whether what is known of a step is of what is listed of it now.
    /// `moves`: the moment goes on by itself, or it is still looked.
    pub(super) fn fits(&self, step: StepId, sieve: Sieve, moment: MomentKey, generation: u64, moves: bool) -> bool {
        self.generation == generation
            && moment.has_all_of(self.moment)
            // That there is nothing is said of that moment alone.
            && self.steps.get(&step).is_none_or(|region| {
                region.sieve == sieve && (moves || moment == self.moment || !region.hits.is_empty())
            })
    }

    /// What is known of a step; where that is far from where one looks from, it is begun anew there.
    pub(super) fn region(&mut self, step: StepId, sieve: Sieve, goal: Goal, listed: &Listed<'_>) -> &Region {
        let at = begin(goal, listed);
        let known = self.steps.get(&step).filter(|region| region.sieve == sieve).is_some_and(|region| {
            let (low, high, at) = (listed.place(region.low), listed.place(region.high), listed.place(at));
            let away = low.saturating_sub(at).max(at.saturating_sub(high));
            away <= high.saturating_sub(low)
        });
        if !known {
            self.put(step, Region { sieve, low: at, high: at, ..Region::default() });
        }
        self.steps.entry(step).or_default()
    }

    /// Notes what is known of a step.
    pub(super) fn put(&mut self, step: StepId, region: Region) {
        self.steps.insert(step, region);
    }

    /// The numbers between which it was looked.
    pub(super) fn bounds(&self, step: StepId) -> Option<(u64, u64)> {
        self.steps.get(&step).map(|region| (region.low, region.high))
    }

    /// Notes the next entry on one side.
    pub(super) fn note(&mut self, step: StepId, number: u64, back: bool, hit: bool) {
        let Some(region) = self.steps.get_mut(&step) else { return };
        if back {
            region.low = number;
        } else {
            region.high = number.saturating_add(1);
        }
        if number < OPEN {
            region.settled = region.settled.max(number + 1);
        }
        match (hit, back) {
            (true, true) => region.hits.push_front(number),
            (true, false) => region.hits.push_back(number),
            (false, _) => {}
        }
    }

    fn hits(&mut self, step: StepId) -> &[u64] {
        self.steps.get_mut(&step).map(|region| &*region.hits.make_contiguous()).unwrap_or_default()
    }

    /// The one that is gone to, as far as it was looked.
    pub(super) fn hit(&mut self, step: StepId, goal: Goal) -> Option<u64> {
        let hits = self.hits(step);
        hits.get(goal.among(hits)?).copied()
    }

    /// The one on the other side.
    pub(super) fn other_side(&mut self, step: StepId, goal: Goal) -> Option<u64> {
        let hits = self.hits(step);
        hits.get(goal.other_side(hits)?).copied()
    }

    /// Which of them it is, from 1; 0 where it is none of them.
    pub(super) fn nth(&mut self, step: StepId, number: u64) -> u64 {
        self.hits(step).binary_search(&number).map_or(0, |place| place as u64 + 1)
    }

    /// How many were found.
    pub(super) fn total(&self, step: StepId) -> u64 {
        self.steps.get(&step).map_or(0, |region| region.hits.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: StepId = StepId(0);

    fn listed(all: u64) -> Listed<'static> {
        Listed { kept: (1..=all).map(|n| n * 10).collect(), ..Listed::default() }
    }

    /// Looks for what every tenth entry has, as far as it has to. How many were looked at, and what was found.
    fn find(looked: &mut Looked, listed: &Listed<'_>, goal: Goal) -> (usize, Option<u64>) {
        let mut many = 0;
        loop {
            let toward = looked.region(STEP, Sieve::All, goal, listed).toward(goal, listed);
            if toward.is_none()
                && let Some(hit) = looked.hit(STEP, goal)
            {
                return (many, Some(hit));
            }
            let back = toward.unwrap_or(goal.back);
            let (low, high) = looked.bounds(STEP).unwrap();
            let place = if back { listed.place(low).checked_sub(1) } else { Some(listed.place(high)) };
            let Some(number) = place.and_then(|place| listed.number(place)) else { return (many, None) };
            looked.note(STEP, number, back, number % 100 == 0);
            many += 1;
        }
    }

    fn begun(needle: &str) -> Looked {
        let mut looked = Looked::default();
        looked.begin(Tab::Transcript, &Needle::new(needle).unwrap(), MomentKey::Now, 0);
        looked
    }

    #[test]
    fn the_next_match_is_found_by_what_is_between_and_what_was_looked_at_is_not_looked_at_again() {
        let (mut looked, list) = (begun("x"), listed(1_000));
        let goal = |from, here, back| Goal { from, here, back };
        assert_eq!(find(&mut looked, &list, goal(u64::MAX, true, true)), (1, Some(10_000)));
        assert_eq!(find(&mut looked, &list, goal(10_000, false, true)), (10, Some(9_900)));
        assert_eq!(find(&mut looked, &list, goal(9_900, false, false)), (0, Some(10_000)));
        assert_eq!(find(&mut looked, &list, goal(9_900, false, true)), (10, Some(9_800)));
        // What came since is looked at alone.
        assert_eq!(find(&mut looked, &listed(1_015), goal(u64::MAX, true, true)), (15, Some(10_100)));
        // Far away it begins anew, next to the keys.
        assert_eq!(find(&mut looked, &list, goal(5_000, true, false)), (1, Some(5_000)));
        assert_eq!(find(&mut looked, &list, goal(5_000, false, false)), (10, Some(5_100)));
        assert_eq!((looked.total(STEP), looked.nth(STEP, 5_100), looked.nth(STEP, 5_110)), (2, 2, 0));
        assert_eq!(find(&mut looked, &listed(3), goal(0, true, false)), (3, None));
    }

    #[test]
    fn what_is_listed_otherwise_is_looked_at_anew() {
        let mut looked = begun("x");
        find(&mut looked, &listed(100), Goal { from: u64::MAX, here: true, back: true });
        assert!(looked.fits(STEP, Sieve::All, MomentKey::Now, 0, false));
        assert!(!looked.fits(STEP, Sieve::Errors, MomentKey::Now, 0, false));
        assert!(!looked.fits(STEP, Sieve::All, MomentKey::Replay(3), 0, false));
        assert!(!looked.fits(STEP, Sieve::All, MomentKey::Now, 1, false));
        let x = Needle::new("x").unwrap();
        looked.begin(Tab::Transcript, &x, MomentKey::Now, 0);
        assert!(looked.bounds(STEP).is_some());
        looked.begin(Tab::Transcript, &Needle::new("y").unwrap(), MomentKey::Now, 0);
        assert!(looked.bounds(STEP).is_none());
        looked.begin(Tab::Transcript, &x, MomentKey::Replay(5), 0);
        find(&mut looked, &listed(100), Goal { from: u64::MAX, here: true, back: true });
        assert!(looked.fits(STEP, Sieve::All, MomentKey::Replay(6), 0, false));
        assert!(!looked.fits(STEP, Sieve::All, MomentKey::Replay(4), 0, false));
        looked.put(STEP, Region::default());
        assert!(looked.fits(STEP, Sieve::All, MomentKey::Replay(5), 0, false));
        assert!(!looked.fits(STEP, Sieve::All, MomentKey::Replay(6), 0, false));
        assert!(looked.fits(STEP, Sieve::All, MomentKey::Replay(6), 0, true));
    }

    #[test]
    fn an_open_call_is_looked_at_again_as_it_may_have_ended() {
        let mut looked = begun("x");
        let list = Listed { kept: vec![1, 2, OPEN + 7, OPEN + 9], ..Listed::default() };
        find(&mut looked, &list, Goal { from: u64::MAX, here: true, back: true });
        assert_eq!(looked.bounds(STEP), Some((1, OPEN + 10)));
        looked.begin(Tab::Transcript, &Needle::new("x").unwrap(), MomentKey::Now, 0);
        assert_eq!(looked.bounds(STEP), Some((1, 3)));
    }
}
