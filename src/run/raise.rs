//! One limit that is changed while the run goes on.

use std::time::Duration;

use super::{CostUsd, Limit, Limits, Metric, TurnLimit};

/// Which end of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The warning before the end.
    Soft,
    /// The end.
    Hard,
}

/// A limit and its new value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raise {
    /// The whole time, counted from the start.
    Time(Duration),
    /// Time without a sign of life.
    Idle(Duration),
    /// The longest time of a tool call; at most [`Limits::TOOL_MOST`] milliseconds.
    ToolTimeout(Duration),
    /// Turns; at least 1.
    Turns(u64),
    /// Turns that are granted beyond them.
    TurnsGrace(u64),
    /// Tool calls; at least 1.
    ToolCalls(End, u64),
    /// Tokens, input plus output; at least 1.
    Tokens(End, u64),
    /// Money; above zero.
    Cost(End, CostUsd),
}

impl Raise {
    /// The key in a request.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Time(_) => "time",
            Self::Idle(_) => "idle",
            Self::ToolTimeout(_) => "tool_timeout",
            Self::Turns(_) => "turns",
            Self::TurnsGrace(_) => "turns.grace",
            Self::ToolCalls(End::Hard, _) => "tool_calls",
            Self::ToolCalls(End::Soft, _) => "tool_calls.soft",
            Self::Tokens(End::Hard, _) => "tokens",
            Self::Tokens(End::Soft, _) => "tokens.soft",
            Self::Cost(End::Hard, _) => "cost_usd",
            Self::Cost(End::Soft, _) => "cost_usd.soft",
        }
    }

    /// What is counted by the limit; `None` for times.
    #[must_use]
    pub const fn metric(self) -> Option<Metric> {
        match self {
            Self::Time(_) | Self::Idle(_) | Self::ToolTimeout(_) => None,
            Self::Turns(_) | Self::TurnsGrace(_) => Some(Metric::Turns),
            Self::ToolCalls(..) => Some(Metric::ToolCalls),
            Self::Tokens(..) => Some(Metric::Tokens),
            Self::Cost(..) => Some(Metric::Cost),
        }
    }

    /// Changes the limits; the time of a run or step is not among them and is left alone.
    ///
    /// # Errors
    /// Why the limits would make no sense afterwards; they are as they were then.
    pub fn apply(self, limits: &mut Limits) -> Result<(), String> {
        match self {
            Self::Time(_) => {}
            Self::Idle(time) => limits.idle_ms = Some(super::limits::millis(time)),
            Self::ToolTimeout(time) => limits.tool_ms = Some(super::limits::millis(time)),
            Self::Turns(max) => {
                let grace = limits.turns.map_or(TurnLimit::GRACE, |t| t.grace);
                limits.turns = Some(TurnLimit { max, grace });
            }
            Self::TurnsGrace(grace) => match &mut limits.turns {
                Some(turns) => turns.grace = grace,
                None => return Err("there is no limit of turns; write turns=N first".to_owned()),
            },
            Self::ToolCalls(end, n) => limits.tool_calls = Some(moved(limits.tool_calls, end, n, self.key())?),
            Self::Tokens(end, n) => limits.tokens = Some(moved(limits.tokens, end, n, self.key())?),
            Self::Cost(end, usd) => limits.cost = Some(moved(limits.cost, end, usd, self.key())?),
        }
        Ok(())
    }
}

fn moved<T: Copy + PartialOrd>(limit: Option<Limit<T>>, end: End, value: T, key: &str) -> Result<Limit<T>, String> {
    let old = limit.unwrap_or(Limit { soft: None, hard: None });
    let new = match end {
        End::Soft => Limit { soft: Some(value), ..old },
        End::Hard => Limit { hard: Some(value), ..old },
    };
    match (new.soft, new.hard) {
        (Some(soft), Some(hard)) if soft > hard => {
            let name = key.split('.').next().unwrap_or(key);
            Err(format!("the warning of `{name}` would lie above its end; change `{name}` and `{name}.soft` together"))
        }
        _ => Ok(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_would_make_no_sense_stay_as_they_are() {
        let mut limits = Limits { tokens: Some(Limit { soft: Some(5), hard: Some(9) }), ..Limits::default() };
        let before = limits.clone();
        for bad in [Raise::Tokens(End::Soft, 10), Raise::Tokens(End::Hard, 4), Raise::TurnsGrace(1)] {
            assert!(bad.apply(&mut limits).is_err(), "{bad:?}");
            assert_eq!(limits, before);
        }
        for good in [
            Raise::Tokens(End::Hard, 20),
            Raise::Tokens(End::Soft, 20),
            Raise::Turns(3),
            Raise::TurnsGrace(7),
            Raise::Idle(Duration::from_secs(1)),
            Raise::ToolTimeout(Duration::from_secs(2)),
            Raise::ToolCalls(End::Soft, 3),
            Raise::Cost(End::Hard, CostUsd(1.0)),
            Raise::Time(Duration::from_secs(3)),
        ] {
            assert_eq!(good.apply(&mut limits), Ok(()), "{good:?}");
        }
        let after = Limits {
            tokens: Some(Limit { soft: Some(20), hard: Some(20) }),
            turns: Some(TurnLimit { max: 3, grace: 7 }),
            idle_ms: Some(1000),
            tool_ms: Some(2000),
            tool_calls: Some(Limit { soft: Some(3), hard: None }),
            cost: Some(Limit { soft: None, hard: Some(CostUsd(1.0)) }),
            ..Limits::default()
        };
        assert_eq!(limits, after);
    }
}
