//! When somebody should look at a step, as far as a plan or the configuration says so. What nobody said keeps the
//! built-in threshold (runner-behaviour 4.1, product 5).

use std::collections::BTreeMap;

use crate::run::Thresholds;

/// What is said of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It never applies.
    Off,
    /// It applies from here on: milliseconds, turns, tokens or a count, as the rule has it; at least 1.
    At(u64),
}

impl Rule {
    const fn threshold(self) -> Option<u64> {
        match self {
            Self::Off => None,
            Self::At(value) => Some(value),
        }
    }
}

/// What one place says; `None` leaves a rule to the place below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    /// Whether there are any rules at all.
    pub enabled: Option<bool>,
    /// Milliseconds without a sign of life.
    pub idle: Option<Rule>,
    /// Milliseconds that a tool is open.
    pub tool_open: Option<Rule>,
    /// The same for single tools.
    pub tools: BTreeMap<String, Rule>,
    /// Tools that may be open as long as they like.
    pub exempt: Option<Vec<String>>,
    /// Milliseconds that the step runs.
    pub long_running: Option<Rule>,
    /// Turns of the step.
    pub long_running_turns: Option<Rule>,
    /// Tokens of the step.
    pub long_running_tokens: Option<Rule>,
    /// Failed changes.
    pub tool_failures: Option<Rule>,
    /// Milliseconds without a first word.
    pub no_first_event: Option<Rule>,
    /// The same call in a row.
    pub repeated_calls: Option<Rule>,
}

impl Attention {
    /// What `self` says, and what `lower` says where it says nothing. Single tools are rules of their own; the list
    /// of exempt tools is one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        let mut tools = lower.tools.clone();
        tools.extend(self.tools.clone());
        Self {
            enabled: self.enabled.or(lower.enabled),
            idle: self.idle.or(lower.idle),
            tool_open: self.tool_open.or(lower.tool_open),
            tools,
            exempt: self.exempt.clone().or_else(|| lower.exempt.clone()),
            long_running: self.long_running.or(lower.long_running),
            long_running_turns: self.long_running_turns.or(lower.long_running_turns),
            long_running_tokens: self.long_running_tokens.or(lower.long_running_tokens),
            tool_failures: self.tool_failures.or(lower.tool_failures),
            no_first_event: self.no_first_event.or(lower.no_first_event),
            repeated_calls: self.repeated_calls.or(lower.repeated_calls),
        }
    }

    /// The thresholds: what is said here, and the built-in ones.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        let built_in = Thresholds::default();
        let of = |rule: Option<Rule>, built_in: Option<u64>| rule.map_or(built_in, Rule::threshold);
        Thresholds {
            enabled: self.enabled.unwrap_or(built_in.enabled),
            idle_ms: of(self.idle, built_in.idle_ms),
            tool_open_ms: of(self.tool_open, built_in.tool_open_ms),
            tool_open_of: self.tools.iter().map(|(t, rule)| (t.clone(), rule.threshold().unwrap_or(0))).collect(),
            exempt: self.exempt.clone().unwrap_or(built_in.exempt),
            long_ms: of(self.long_running, built_in.long_ms),
            long_turns: of(self.long_running_turns, built_in.long_turns),
            long_tokens: of(self.long_running_tokens, built_in.long_tokens),
            failures: of(self.tool_failures, built_in.failures),
            first_event_ms: of(self.no_first_event, built_in.first_event_ms),
            repeats: of(self.repeated_calls, built_in.repeats),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_nearer_goes_first_rule_by_rule() {
        let tools = |pairs: &[(&str, Rule)]| pairs.iter().map(|(t, rule)| ((*t).to_owned(), *rule)).collect();
        let plan = Attention {
            idle: Some(Rule::At(5)),
            tool_failures: Some(Rule::Off),
            tools: tools(&[("bash", Rule::At(7)), ("web", Rule::At(8))]),
            exempt: Some(vec!["ask".into()]),
            ..Attention::default()
        };
        let step = Attention {
            idle: Some(Rule::Off),
            long_running_turns: Some(Rule::At(9)),
            tools: tools(&[("web", Rule::Off)]),
            ..Attention::default()
        };
        let all = step.over(&plan).thresholds();
        let expected = Thresholds {
            idle_ms: None,
            failures: None,
            long_turns: Some(9),
            tool_open_of: [("bash".to_owned(), 7), ("web".to_owned(), 0)].into(),
            exempt: vec!["ask".into()],
            ..Thresholds::default()
        };
        assert_eq!(all, expected);
        assert_eq!(Attention::default().thresholds(), Thresholds::default());
        let nothing = Attention { enabled: Some(false), exempt: Some(vec![]), ..Attention::default() };
        assert_eq!((nothing.over(&plan).exempt, nothing.over(&plan).enabled), (Some(vec![]), Some(false)));
    }
}
