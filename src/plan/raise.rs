//! One limit that is changed while the run goes on: as people type it, as a request carries it (run-directory 3.9), and
//! what becomes of the limits by it.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::limits::millis;
use super::nearest::nearest;
use crate::run::{CostUsd, End, Limits, Raise};
use crate::text::{parse_duration, written};

impl Raise {
    /// The keys that can be changed, as a plan has them; `turns.grace` and `.soft` of those with a warning beside them.
    pub const KEYS: [&str; 7] = ["time", "idle", "turns", "tool_calls", "tokens", "cost_usd", "tool_timeout"];

    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to write.
    pub fn parse(word: &str) -> Result<Self, String> {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("`{word}` is not KEY=VALUE; write something like tokens=400_000 or time=1h"));
        };
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            return Err(format!("`{key}` has no value"));
        }
        Self::read(key, &Value::from(value))
    }

    /// Reads the key and the value of a request. Numbers may stand as texts, with `_` between their digits.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to write.
    pub fn read(key: &str, value: &Value) -> Result<Self, String> {
        let (name, part) = key.split_once('.').map_or((key, None), |(name, part)| (name, Some(part)));
        let end = match (name, part) {
            ("tool_calls" | "tokens" | "cost_usd", Some("soft")) => End::Soft,
            ("tool_calls" | "tokens" | "cost_usd", Some("hard")) | (_, None) => End::Hard,
            ("turns", Some("max")) => End::Hard,
            ("turns", Some("grace")) => return count(key, value, 0).map(Self::TurnsGrace),
            ("turns", Some(_)) => return Err(format!("there is no `{key}`; turns have `turns` and `turns.grace`")),
            ("tool_calls" | "tokens" | "cost_usd", Some(_)) => {
                return Err(format!("there is no `{key}`; write `{name}` or `{name}.soft`"));
            }
            (known, Some(_)) if Self::KEYS.contains(&known) => {
                return Err(format!("there is no `{key}`; `{name}` has no parts"));
            }
            _ => return Err(unknown(key)),
        };
        match name {
            "time" => time(key, value).map(Self::Time),
            "idle" => time(key, value).map(Self::Idle),
            "tool_timeout" => match time(key, value)? {
                long if millis(long) > Limits::TOOL_MOST => Err(format!("`{key}`: {}", super::reader::TOOL_TIME_RANGE)),
                time => Ok(Self::ToolTimeout(time)),
            },
            "turns" => count(key, value, 1).map(Self::Turns),
            "tool_calls" => count(key, value, 1).map(|n| Self::ToolCalls(end, n)),
            "tokens" => count(key, value, 1).map(|n| Self::Tokens(end, n)),
            "cost_usd" => money(key, value).map(|c| Self::Cost(end, c)),
            _ => Err(unknown(key)),
        }
    }

    /// The value in a request: times as texts with their unit, everything else as numbers.
    #[must_use]
    pub fn value(self) -> Value {
        match self {
            Self::Time(time) | Self::Idle(time) | Self::ToolTimeout(time) => json!(written(time)),
            Self::Turns(n) | Self::TurnsGrace(n) | Self::ToolCalls(_, n) | Self::Tokens(_, n) => json!(n),
            Self::Cost(_, CostUsd(usd)) => json!(usd),
        }
    }
}

impl fmt::Display for Raise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Value::String(text) => write!(f, "{}={text}", self.key()),
            value => write!(f, "{}={value}", self.key()),
        }
    }
}

fn unknown(key: &str) -> String {
    let known = Raise::KEYS.join(", ");
    match nearest(key, Raise::KEYS) {
        Some(near) => format!("there is no limit `{key}`; did you mean `{near}`? There are {known}"),
        None => format!("there is no limit `{key}`; there are {known}"),
    }
}

fn time(key: &str, value: &Value) -> Result<Duration, String> {
    let Some(text) = value.as_str() else {
        return Err(format!("`{key}`: a time needs its unit, like \"10m\""));
    };
    match parse_duration(text) {
        Ok(span) if span.as_millis() == 0 => Err(format!("`{key}`: a time of zero allows nothing")),
        Ok(span) => Ok(Duration::from_millis(millis(span))),
        Err(error) => Err(format!("`{key}`: {error}")),
    }
}

/// The largest number that every reader of the files takes exactly: 2 to the power of 53.
const MOST: u64 = 1 << 53;

fn count(key: &str, value: &Value, least: u64) -> Result<u64, String> {
    let number = match value {
        Value::String(text) => digits(text).and_then(|digits| digits.parse().ok()),
        value => value.as_u64(),
    };
    let wrong = || format!("`{key}`: a whole number of at least {least} is needed, not {value}");
    let number = number.filter(|n| *n >= least).ok_or_else(wrong)?;
    if number > MOST {
        return Err(format!("`{key}`: {value} is more than can be counted; the most is {MOST}"));
    }
    Ok(number)
}

fn money(key: &str, value: &Value) -> Result<CostUsd, String> {
    let amount = match value {
        Value::String(text) => digits(text).and_then(|digits| digits.parse().ok()),
        value => value.as_f64(),
    };
    let wrong = || format!("`{key}`: an amount of US dollars above zero is needed, like 2.50, not {value}");
    amount.filter(|usd: &f64| *usd > 0.0 && usd.is_finite()).map(CostUsd).ok_or_else(wrong)
}

/// A number without the `_` between its digits; only those of a decimal number.
fn digits(text: &str) -> Option<String> {
    let inside = !text.starts_with('_') && !text.ends_with('_');
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '.'));
    (inside && plain).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_arrives_as_it_was_meant() {
        let s = Duration::from_secs;
        for (word, raise, key, value) in [
            ("time=1h30m", Raise::Time(s(5400)), "time", json!("90m")),
            ("idle = 5m", Raise::Idle(s(300)), "idle", json!("5m")),
            ("tool_timeout=20m", Raise::ToolTimeout(s(1200)), "tool_timeout", json!("20m")),
            ("turns=50", Raise::Turns(50), "turns", json!(50)),
            ("turns.max=50", Raise::Turns(50), "turns", json!(50)),
            ("turns.grace=0", Raise::TurnsGrace(0), "turns.grace", json!(0)),
            ("tool_calls=30", Raise::ToolCalls(End::Hard, 30), "tool_calls", json!(30)),
            ("tool_calls.soft=20", Raise::ToolCalls(End::Soft, 20), "tool_calls.soft", json!(20)),
            ("tokens=400_000", Raise::Tokens(End::Hard, 400_000), "tokens", json!(400_000)),
            ("tokens.hard=7", Raise::Tokens(End::Hard, 7), "tokens", json!(7)),
            ("cost_usd=2.50", Raise::Cost(End::Hard, CostUsd(2.5)), "cost_usd", json!(2.5)),
            ("cost_usd.soft=1", Raise::Cost(End::Soft, CostUsd(1.0)), "cost_usd.soft", json!(1.0)),
        ] {
            assert_eq!(Raise::parse(word), Ok(raise), "{word}");
            assert_eq!((raise.key(), raise.value()), (key, value), "{word}");
            assert_eq!(Raise::read(raise.key(), &raise.value()), Ok(raise), "{word}");
        }
    }

    #[test]
    fn the_largest_number_is_read() {
        assert_eq!(Raise::parse("tokens=9007199254740992"), Ok(Raise::Tokens(End::Hard, MOST)));
    }

    #[test]
    fn what_cannot_be_meant_says_what_to_write() {
        for (word, part) in [
            ("tokens", "is not KEY=VALUE"),
            ("tokens=", "`tokens` has no value"),
            ("tokns=5", "did you mean `tokens`?"),
            ("colour=5", "there are time, idle, turns"),
            ("tokens.softer=5", "write `tokens` or `tokens.soft`"),
            ("turns.soft=5", "turns have `turns` and `turns.grace`"),
            ("time.soft=5m", "`time` has no parts"),
            ("time=5", "has no unit"),
            ("time=0s", "a time of zero"),
            ("tool_timeout=25d", "1ms to 2147483647ms"),
            ("tokens=0", "at least 1"),
            ("tokens=-5", "at least 1"),
            ("tokens=4e5", "at least 1"),
            ("tokens=9007199254740993", "the most is 9007199254740992"),
            ("turns.grace=18446744073709551615", "the most is 9007199254740992"),
            ("tokens=_5", "at least 1"),
            ("turns=1.5", "at least 1"),
            ("cost_usd=0", "above zero"),
            ("cost_usd=inf", "above zero"),
            ("cost_usd=1.2.3", "above zero"),
        ] {
            let error = Raise::parse(word).unwrap_err();
            assert!(error.contains(part), "{word}: {error}");
        }
        for (key, value) in
            [("time", json!(5)), ("tokens", json!(null)), ("turns", json!([1])), ("cost_usd", json!({}))]
        {
            assert!(Raise::read(key, &value).is_err(), "{key}");
        }
    }
}
