//! The small values that everything else is made of: times, ids, token counts and money, never bare numbers.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment: microseconds since the Unix epoch.
///
/// Files hold milliseconds that may carry a fraction (run-directory 0), so a whole-millisecond type would not survive
/// a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch, as files hold them. Not-a-number and values beyond the range of the type
    /// become the nearest value that can be held.
    #[must_use]
    pub fn from_millis_f64(ms: f64) -> Self {
        // `as` saturates and maps NaN to 0, which is just what is wanted of a foreign number.
        Self((ms * 1000.0).round() as i64)
    }

    /// From whole milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(us: i64) -> Self {
        Self(us)
    }

    /// Whole milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The span from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }
}

/// Names one step for as long as the run exists, whatever happens to the order of steps.
///
/// In a run without dynamic groups it equals the flat index of run-directory 2.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u32);

impl StepId {
    /// The flat index that files use, from 0.
    #[must_use]
    pub const fn flat(self) -> usize {
        self.0 as usize
    }

    /// The number a person sees, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.saturating_add(1)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// The id of a run, as it stands in files. Text from outside: display it through [`crate::text::SafeText`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub String);

impl RunId {
    /// The id as it stands in files.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Token counts. `input` excludes what came from a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Tokens read from a prompt cache.
    pub cache_read: u64,
    /// Tokens written to a prompt cache.
    pub cache_write: u64,
}

impl Tokens {
    /// Input plus output, the `total` of run-directory 2.2.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// All kinds together: what stands in the context window after one model call.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.total().saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether nothing was counted.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.input == 0 && self.output == 0 && self.cache_read == 0 && self.cache_write == 0
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

impl Tokens {
    /// What came to a sum since `before`; a sum never falls.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
        }
    }
}

/// How full the context window of an agent's model is, as far as the agent tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Tokens that stand in it since the newest model call.
    pub used: Option<u64>,
    /// Tokens that there is room for.
    pub size: Option<u64>,
}

impl Window {
    /// What is known of both together: the newer word counts.
    #[must_use]
    pub fn or(self, older: Self) -> Self {
        Self { used: self.used.or(older.used), size: self.size.or(older.size) }
    }

    /// How much of it is used, 0 to 1 and beyond; `None` where either is not told.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        Some(self.used? as f64 / size as f64)
    }
}

/// An amount of money in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct CostUsd(pub f64);

impl CostUsd {
    /// The most that one report may say, in dollars; beyond it a number is no price that anybody was asked.
    const MOST: f64 = 1e6;

    /// What somebody else says that something cost; `None` for what cannot be a price. A negative one would take back
    /// what a limit counts.
    #[must_use]
    pub fn reported(amount: f64) -> Option<Self> {
        (0.0..=Self::MOST).contains(&amount).then_some(Self(amount))
    }

    /// Dollars as documents and lines tell them: to a billionth, beyond which a sum of binary fractions says nothing.
    #[must_use]
    pub fn told(self) -> f64 {
        const PART: f64 = 1e9;
        (self.0 * PART).round() / PART
    }
}

impl AddAssign for CostUsd {
    fn add_assign(&mut self, more: Self) {
        self.0 += more.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_as_full_as_is_told() {
        let told = |used, size| Window { used, size };
        assert_eq!(told(Some(50), Some(200)).share(), Some(0.25));
        for unknown in [told(None, Some(200)), told(Some(50), None), told(Some(50), Some(0))] {
            assert_eq!(unknown.share(), None, "{unknown:?}");
        }
        assert_eq!(told(Some(1), None).or(told(Some(2), Some(3))), told(Some(1), Some(3)));
    }

    #[test]
    fn a_sum_of_money_is_told_without_the_dust_of_its_fractions() {
        let mut sum = CostUsd(0.0009040000000000001);
        sum += CostUsd(0.000644);
        assert_ne!(sum.0, 0.001548);
        assert_eq!(serde_json::json!(sum.told()).to_string(), "0.001548");
        for whole in [0.0, 0.25, 2.5, 1e6, 0.000000001] {
            assert_eq!(CostUsd(whole).told(), whole);
        }
    }

    #[test]
    fn only_prices_count_as_prices() {
        for amount in [0.0, 0.25, 1e6] {
            assert_eq!(CostUsd::reported(amount), Some(CostUsd(amount)));
        }
        for amount in [-0.1, 1.1e6, 1e308, f64::INFINITY, f64::NAN] {
            assert_eq!(CostUsd::reported(amount), None, "{amount}");
        }
    }
}
