//! What Codex used: it reports sums of a whole session, and a sub-agent is a session of its own (agent-streams 0.8, 0.9).

use std::collections::BTreeMap;

use crate::agents::look::Look;
use crate::run::{Tokens, Usage, Window};

/// Sessions of which sums are remembered; more than any agent starts.
const MOST: usize = 256;

/// The sums that were reported, by session.
#[derive(Debug, Default)]
pub(super) struct Spent(BTreeMap<String, Known>);

#[derive(Debug, Default)]
struct Known {
    /// It began to work in this process; what it reports before that was used before.
    working: bool,
    total: Option<Tokens>,
}

impl Spent {
    /// A session begins to work.
    pub(super) fn begins(&mut self, session: &str) {
        if self.0.len() < MOST || self.0.contains_key(session) {
            self.0.entry(session.to_owned()).or_default().working = true;
        }
    }

    /// A report on a session: what came to its sum; `None` when that is nothing.
    pub(super) fn report(&mut self, session: &str, usage: Look<'_>) -> Option<Usage> {
        if self.0.len() >= MOST && !self.0.contains_key(session) {
            return None;
        }
        let known = self.0.entry(session.to_owned()).or_default();
        let (total, last) = (tokens(usage.object("total")), tokens(usage.object("last")));
        // A session that was made from another one may begin with the other's sum.
        let before = known.total.unwrap_or_else(|| total.since(last));
        known.total = Some(total);
        let tokens = total.since(before);
        (known.working && tokens != Tokens::default()).then_some(Usage { tokens, cost: None })
    }
}

/// How full the context window is: of what its newest model call had and said.
pub(super) fn window(usage: Look<'_>) -> Option<Window> {
    let last = tokens(usage.object("last")).all();
    let window = Window { used: (last > 0).then_some(last), size: usage.count("modelContextWindow") };
    (window != Window::default()).then_some(window)
}

/// The tokens of a report of either transport. Its input holds what came from the cache and went into it; its output
/// holds what was thought.
pub(super) fn tokens(usage: Look<'_>) -> Tokens {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.count(name)).unwrap_or(0);
    let cache_read = count(["cachedInputTokens", "cached_input_tokens"]);
    let cache_write = count(["cacheWriteInputTokens", "cache_write_input_tokens"]);
    let input = count(["inputTokens", "input_tokens"]);
    Tokens {
        input: input.saturating_sub(cache_read.saturating_add(cache_write)),
        output: count(["outputTokens", "output_tokens"]),
        cache_read,
        cache_write,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn usage(total: u64, last: u64) -> Value {
        let tokens = |n: u64| json!({"inputTokens": n, "cachedInputTokens": n / 2, "outputTokens": 1});
        json!({"total": tokens(total), "last": tokens(last)})
    }

    #[test]
    fn only_what_came_in_this_process_is_told() {
        let mut spent = Spent::default();
        assert_eq!(spent.report("main", Look::new(&usage(100, 40))), None, "it was used before");
        spent.begins("main");
        let mut told = |session: &str, total: u64, last: u64| {
            spent.report(session, Look::new(&usage(total, last))).map(|usage| usage.tokens.input)
        };
        assert_eq!(told("main", 120, 20), Some(10));
        assert_eq!(told("main", 120, 20), None, "the same sum again");
        assert_eq!(told("main", 90, 20), None, "a sum never falls");
        spent.begins("fork");
        assert_eq!(spent.report("fork", Look::new(&usage(500, 8))).map(|usage| usage.tokens.input), Some(4));
        assert_eq!(spent.report("fork", Look::new(&json!("odd"))), None);
    }

    #[test]
    fn the_window_holds_what_the_newest_call_had() {
        let mut told = usage(500, 40);
        told["modelContextWindow"] = json!(1000);
        assert_eq!(window(Look::new(&told)), Some(Window { used: Some(41), size: Some(1000) }));
        assert_eq!(window(Look::new(&json!({"total": {}}))), None);
    }

    #[test]
    fn one_measure_for_both_transports() {
        let expected = Tokens { input: 1300, output: 57, cache_read: 700, cache_write: 100 };
        let server = json!({"totalTokens": 2157, "inputTokens": 2100, "cachedInputTokens": 700,
            "cacheWriteInputTokens": 100, "outputTokens": 57, "reasoningOutputTokens": 11});
        let exec = json!({"input_tokens": 2100, "cached_input_tokens": 700, "cache_write_input_tokens": 100,
            "output_tokens": 57, "reasoning_output_tokens": 11});
        assert_eq!(tokens(Look::new(&server)), expected);
        assert_eq!(tokens(Look::new(&exec)), expected);
    }
}
