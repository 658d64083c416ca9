//! Limits and thresholds: what a step or a run may use, and what makes a person look. Values only; what they mean is
//! in [`super::budget`] and [`super::attention`].

use std::collections::BTreeMap;

use super::CostUsd;

/// A limit with a warning before it. Both are reached at the value itself, not beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit<T> {
    /// Where the warning is.
    pub soft: Option<T>,
    /// Where the end is.
    pub hard: Option<T>,
}

/// How many answers of the model a step may take (runner-behaviour 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimit {
    /// Here the agent is asked to wrap up; at least 1.
    pub max: u64,
    /// So many more are granted.
    pub grace: u64,
}

impl TurnLimit {
    /// Turns that are granted beyond the limit when nothing else is said.
    pub const GRACE: u64 = 1;

    /// The turn that ends the step unless it is the last one anyway.
    #[must_use]
    pub const fn hard(self) -> u64 {
        self.max.saturating_add(self.grace)
    }
}

/// Which tools may not be called any more once the hard limit of calls is passed (runner-behaviour 3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolBlock {
    /// Every tool.
    #[default]
    All,
    /// Only these.
    Names(Vec<String>),
}

impl ToolBlock {
    /// What a runner config blocks when it says nothing else.
    pub const CONFIG_DEFAULT: [&str; 4] = ["read", "grep", "find", "ls"];

    /// Whether this tool may not be called any more.
    #[must_use]
    pub fn blocks(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|n| n == tool),
        }
    }
}

/// What a run, or one step of it, may use beside its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Milliseconds awake without any sign of life.
    pub idle_ms: Option<u64>,
    /// Turns.
    pub turns: Option<TurnLimit>,
    /// Tool calls.
    pub tool_calls: Option<Limit<u64>>,
    /// Which tools the hard limit of calls blocks.
    pub tool_block: ToolBlock,
    /// Tokens, input plus output.
    pub tokens: Option<Limit<u64>>,
    /// Money.
    pub cost: Option<Limit<CostUsd>>,
    /// The longest time a single tool call may take, in milliseconds awake; 1 to [`Limits::TOOL_MOST`].
    pub tool_ms: Option<u64>,
    /// Tools without a limit on their time, beside [`Limits::TOOLS_EXEMPT`].
    pub tool_exempt: Vec<String>,
    /// A hard limit on tokens or money lets the running child go on and only keeps the next one from starting, as
    /// runner configs mean it (runner-behaviour 3.3).
    pub usage_spares_children: bool,
    /// The hard limit on tool calls is kept by a guard inside the agent, as runner configs mean it (runner-behaviour 3.2);
    /// it is seen and told here, and kept here only when there turns out to be no guard.
    pub tool_calls_observed: bool,
}

impl Limits {
    /// Tools that wait for somebody else and so have no limit on their time, ever (runner-behaviour 3.6).
    pub const TOOLS_EXEMPT: [&str; 3] = ["contact_supervisor", "intercom", "subagent_wait"];
    /// Tools that are quick unless something is wrong.
    pub const TOOLS_FAST: [&str; 7] = ["read", "grep", "find", "ls", "edit", "write", "structured_output"];
    /// Their limit when nothing is configured, in milliseconds.
    pub const TOOL_FAST_MS: u64 = 300_000;
    /// The largest limit on a tool call, in milliseconds.
    pub const TOOL_MOST: u64 = 2_147_483_647;

    /// The longest time that a call of this tool may take (runner-behaviour 3.6): never one for exempt tools; else
    /// what is configured, for all tools; else five minutes for the fast ones.
    #[must_use]
    pub fn tool_limit(&self, tool: &str) -> Option<u64> {
        if Self::TOOLS_EXEMPT.contains(&tool) || self.tool_exempt.iter().any(|t| t == tool) {
            return None;
        }
        self.tool_ms.or_else(|| Self::TOOLS_FAST.contains(&tool).then_some(Self::TOOL_FAST_MS))
    }
}

/// Whole milliseconds.
pub(super) fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// When a step needs a look (runner-behaviour 4.1, product 5). `None` switches a rule off. Times are milliseconds
/// awake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Without this no rule applies at all.
    pub enabled: bool,
    /// No sign of life and no open tool for longer than this.
    pub idle_ms: Option<u64>,
    /// A tool is open for this long.
    pub tool_open_ms: Option<u64>,
    /// The same for single tools; 0 switches it off.
    pub tool_open_of: BTreeMap<String, u64>,
    /// Tools that may be open as long as they like, beside [`Limits::TOOLS_EXEMPT`].
    pub exempt: Vec<String>,
    /// The step runs for this long.
    pub long_ms: Option<u64>,
    /// The step took this many turns.
    pub long_turns: Option<u64>,
    /// The step used this many tokens.
    pub long_tokens: Option<u64>,
    /// So many changes failed in a row, or on one path within [`Thresholds::FAILURE_WINDOW_MS`].
    pub failures: Option<u64>,
    /// The agent said nothing at all for this long.
    pub first_event_ms: Option<u64>,
    /// The same call so many times in a row.
    pub repeats: Option<u64>,
}

impl Thresholds {
    /// Failures on one path count together within this time.
    pub const FAILURE_WINDOW_MS: u64 = 300_000;

    /// How long a call of this tool may be open before somebody should look.
    #[must_use]
    pub fn tool_open(&self, tool: &str) -> Option<u64> {
        if Limits::TOOLS_EXEMPT.contains(&tool) || self.exempt.iter().any(|t| t == tool) {
            return None;
        }
        match self.tool_open_of.get(tool) {
            Some(0) => None,
            Some(ms) => Some(*ms),
            None => self.tool_open_ms,
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            enabled: true,
            idle_ms: Some(60_000),
            tool_open_ms: Some(240_000),
            tool_open_of: BTreeMap::new(),
            exempt: Vec::new(),
            long_ms: Some(240_000),
            long_turns: None,
            long_tokens: None,
            failures: Some(3),
            first_event_ms: Some(45_000),
            repeats: Some(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_the_limit_that_its_kind_and_the_configuration_give_it() {
        let configured = Limits { tool_ms: Some(800), tool_exempt: vec!["ask".into()], ..Limits::default() };
        for (tool, unset, set) in [
            ("read", Some(300_000), Some(800)),
            ("structured_output", Some(300_000), Some(800)),
            ("bash", None, Some(800)),
            ("mcp__x", None, Some(800)),
            ("contact_supervisor", None, None),
            ("intercom", None, None),
            ("subagent_wait", None, None),
            ("ask", None, None),
        ] {
            assert_eq!(Limits::default().tool_limit(tool), unset, "{tool}");
            assert_eq!(configured.tool_limit(tool), set, "{tool}");
        }
    }

    #[test]
    fn thresholds_can_be_set_for_single_tools() {
        let thresholds = Thresholds {
            tool_open_of: [("bash".to_owned(), 5), ("web".to_owned(), 0)].into(),
            exempt: vec!["sleep".into()],
            ..Thresholds::default()
        };
        let open = |tool| thresholds.tool_open(tool);
        assert_eq!((open("bash"), open("web"), open("sleep")), (Some(5), None, None));
        assert_eq!((open("read"), open("intercom")), (Some(240_000), None));
    }
}
