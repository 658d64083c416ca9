//! Time that the machine was awake. Budgets and thresholds count only this; deadlines are wall time (product 5).

use std::time::Duration;

use super::Timestamp;

/// The machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it was awake again.
    pub until: Timestamp,
    /// For how long it had slept.
    pub slept: Duration,
}

/// The times that the machine slept during a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// Sleeps that are kept apart; beyond them the oldest two are taken as one.
    const KEPT: usize = 64;

    /// Takes another sleep in. Nothing sleeps twice at a time: where a clock that was set back says so, the later
    /// sleep is cut, so that every moment counts once and what is due can be said in both directions.
    pub fn push(&mut self, gap: Gap) {
        let before = self.0.last().map_or(gap.until - gap.slept, |last| last.until);
        let slept = gap.until.since(before.max(gap.until - gap.slept));
        let gap = Gap { until: gap.until, slept };
        if slept.is_zero() {
            return;
        }
        self.0.push(gap);
        if self.0.len() > Self::KEPT {
            // What began between the two oldest is credited too much; it is too long ago to matter.
            let oldest = self.0.remove(0);
            if let Some(next) = self.0.first_mut() {
                next.slept = next.slept.saturating_add(oldest.slept);
            }
        }
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Gap> {
        self.0.iter()
    }

    /// How long the machine slept between two moments.
    #[must_use]
    pub fn slept(&self, from: Timestamp, to: Timestamp) -> Duration {
        let mut sum = Duration::ZERO;
        for gap in self.0.iter().rev().take_while(|gap| gap.until > from) {
            let began = gap.until - gap.slept;
            // Only the part between the two moments counts.
            sum = sum.saturating_add(gap.until.min(to).since(began.max(from)));
        }
        sum
    }

    /// How long it was awake between two moments; never negative.
    #[must_use]
    pub fn awake(&self, from: Timestamp, to: Timestamp) -> Duration {
        to.since(from).saturating_sub(self.slept(from, to))
    }

    /// When it will have been awake for `span` since `from`, if it does not sleep again.
    #[must_use]
    pub fn due(&self, from: Timestamp, span: Duration) -> Timestamp {
        let mut due = from + span;
        for gap in self.0.iter().filter(|gap| gap.until > from) {
            let began = (gap.until - gap.slept).max(from);
            // A sleep that began before the moment puts it off.
            if began < due {
                due = due + gap.until.since(began);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn gaps(list: &[(i64, u64)]) -> Gaps {
        let mut gaps = Gaps::default();
        for (until, slept) in list {
            gaps.push(Gap { until: ms(*until), slept: Duration::from_millis(*slept) });
        }
        gaps
    }

    #[test]
    fn only_time_awake_counts() {
        let g = gaps(&[(1000, 400), (5000, 1000)]);
        for (from, to, want) in [
            (0, 500, 500),
            (0, 1000, 600),
            (800, 1000, 0),
            (800, 900, 0),
            (1000, 2000, 1000),
            (0, 6000, 4600),
            (4500, 6000, 1000),
            (6000, 10, 0),
        ] {
            assert_eq!(g.awake(ms(from), ms(to)), Duration::from_millis(want), "{from}..{to}");
        }
    }

    #[test]
    fn what_is_due_is_put_off_by_every_sleep_before_it() {
        let g = gaps(&[(1000, 400), (5000, 1000)]);
        for (from, span, want) in [(0, 500, 500), (0, 700, 1100), (0, 4000, 5400), (800, 100, 1100), (1000, 100, 1100)]
        {
            let due = g.due(ms(from), Duration::from_millis(span));
            assert_eq!(due, ms(want), "{from} + {span}");
            assert_eq!(g.awake(ms(from), due), Duration::from_millis(span), "{from} + {span}");
        }
    }

    #[test]
    fn sleeps_that_overlap_count_once() {
        let g = gaps(&[(1000, 400), (1200, 900), (900, 100)]);
        assert_eq!(g.slept(ms(0), ms(2000)), Duration::from_millis(600));
        assert_eq!(g.due(ms(0), Duration::from_millis(700)), ms(1300));
        assert_eq!(g.awake(ms(0), ms(1300)), Duration::from_millis(700));
    }

    #[test]
    fn many_sleeps_stay_few_and_lose_nothing() {
        let mut g = Gaps::default();
        for n in 1..=1000 {
            g.push(Gap { until: ms(n * 10), slept: Duration::from_millis(1) });
        }
        assert!(g.0.len() <= Gaps::KEPT);
        assert_eq!(g.slept(ms(-1_000_000), ms(10_000)), Duration::from_millis(1000));
    }
}
