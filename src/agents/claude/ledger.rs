//! What Claude Code used. It says so three times: at the start of a model call without the output, at its end (only with
//! partial messages), and in the result for everything since the last result, its sub-agents included. The sum of what
//! is handed on is always what the results say.

use crate::agents::look::Look;
use crate::run::{CostUsd, Tokens, Usage};

/// What was handed on since the last result.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The session was gone on with: its first total holds what was used before (agent-streams 0.8).
    resumed: bool,
    /// Of the running model call, as its start said.
    call: Tokens,
    /// Handed on since the last result.
    told: Tokens,
    /// The cost that the last result gave for the whole session.
    total: Option<f64>,
}

impl Ledger {
    pub(super) fn new(resumed: bool) -> Self {
        Self { resumed, ..Self::default() }
    }

    /// A model call began.
    pub(super) fn began(&mut self, usage: Look<'_>) {
        self.call = Tokens { output: 0, ..tokens(usage) };
    }

    /// It ended: what it used.
    pub(super) fn ended(&mut self, usage: Look<'_>) -> Usage {
        let end = tokens(usage);
        let more = |end: u64, start: u64| if end > 0 { end } else { start };
        let call = std::mem::take(&mut self.call);
        let tokens = Tokens {
            input: more(end.input, call.input),
            output: end.output,
            cache_read: more(end.cache_read, call.cache_read),
            cache_write: more(end.cache_write, call.cache_write),
        };
        self.told += tokens;
        Usage { tokens, cost: None }
    }

    /// A result: what was not handed on yet; `None` when that is nothing.
    pub(super) fn result(&mut self, result: Look<'_>) -> Option<Usage> {
        let total = result.money("total_cost_usd");
        let since = result.object("model_usage_since_last_result");
        let (used, cost) = if since.is_there() {
            let mut used = Tokens::default();
            let mut cost = None;
            for model in since.values() {
                used += Tokens {
                    input: model.count("inputTokens").unwrap_or(0),
                    output: model.count("outputTokens").unwrap_or(0),
                    cache_read: model.count("cacheReadInputTokens").unwrap_or(0),
                    cache_write: model.count("cacheCreationInputTokens").unwrap_or(0),
                };
                cost = model.money("costUSD").map(|more| cost.unwrap_or(0.0) + more).or(cost);
            }
            (used, cost)
        } else {
            let before = self.total.or((!self.resumed).then_some(0.0));
            let cost = total.zip(before).map(|(total, before)| (total - before).max(0.0));
            (tokens(result.object("usage")), cost)
        };
        self.total = total.or(self.total);
        let told = std::mem::take(&mut self.told);
        self.call = Tokens::default();
        let rest = Tokens {
            input: used.input.saturating_sub(told.input),
            output: used.output.saturating_sub(told.output),
            cache_read: used.cache_read.saturating_sub(told.cache_read),
            cache_write: used.cache_write.saturating_sub(told.cache_write),
        };
        let cost = cost.filter(|cost| *cost > 0.0).and_then(CostUsd::reported);
        (cost.is_some() || rest != Tokens::default()).then_some(Usage { tokens: rest, cost })
    }
}

/// How much the window of the model holds that did most of the work.
pub(super) fn window_size(models: Look<'_>) -> Option<u64> {
    let kinds = ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
    let used = |model: &Look<'_>| kinds.iter().filter_map(|kind| model.count(kind)).fold(0_u64, u64::saturating_add);
    models.values().max_by_key(used)?.count("contextWindow").filter(|size| *size > 0)
}

/// Claude's input does not hold what came from its cache, like ours (agent-streams 0.9).
fn tokens(usage: Look<'_>) -> Tokens {
    Tokens {
        input: usage.count("input_tokens").unwrap_or(0),
        output: usage.count("output_tokens").unwrap_or(0),
        cache_read: usage.count("cache_read_input_tokens").unwrap_or(0),
        cache_write: usage.count("cache_creation_input_tokens").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn numbers(usage: Option<Usage>) -> Option<(u64, u64, Option<u64>)> {
        let micros = |cost: CostUsd| (cost.0 * 1e6).round() as u64;
        usage.map(|u| (u.tokens.input, u.tokens.output, u.cost.map(micros)))
    }

    fn result(ledger: &mut Ledger, value: &Value) -> Option<(u64, u64, Option<u64>)> {
        numbers(ledger.result(Look::new(value)))
    }

    #[test]
    fn the_window_is_that_of_the_model_that_did_most() {
        let models = json!({"small": {"inputTokens": 5, "contextWindow": 1000},
            "main": {"inputTokens": 2, "cacheReadInputTokens": 90, "contextWindow": 200}});
        assert_eq!(window_size(Look::new(&models)), Some(200));
        assert_eq!(window_size(Look::new(&json!({"main": {"inputTokens": 2}}))), None);
        assert_eq!(window_size(Look::new(&json!(null))), None);
    }

    #[test]
    fn what_was_handed_on_is_not_handed_on_again() {
        let mut ledger = Ledger::new(false);
        let start = json!({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5});
        ledger.began(Look::new(&start));
        let end = json!({"output_tokens": 7});
        let usage = ledger.ended(Look::new(&end));
        assert_eq!((usage.tokens.input, usage.tokens.output, usage.tokens.cache_read), (10, 7, 5));
        // A sub-agent used as much again.
        let since = json!({"model_usage_since_last_result": {"m": {"inputTokens": 15, "outputTokens": 9, "costUSD": 0.5},
            "n": {"inputTokens": 5, "outputTokens": 5, "costUSD": 0.25}}, "total_cost_usd": 9.0});
        assert_eq!(result(&mut ledger, &since), Some((10, 7, Some(750_000))));
        let nothing = json!({"model_usage_since_last_result": {}, "total_cost_usd": 9.0});
        assert_eq!(result(&mut ledger, &nothing), None);
    }

    #[test]
    fn totals_of_a_session_become_what_each_turn_cost() {
        let turn = |total: f64| json!({"usage": {"input_tokens": 3, "output_tokens": 2}, "total_cost_usd": total});
        let mut ledger = Ledger::new(false);
        assert_eq!(result(&mut ledger, &turn(0.5)), Some((3, 2, Some(500_000))));
        assert_eq!(result(&mut ledger, &turn(0.75)), Some((3, 2, Some(250_000))));
        let mut resumed = Ledger::new(true);
        assert_eq!(result(&mut resumed, &turn(0.5)), Some((3, 2, None)), "what was spent before is not known");
        assert_eq!(result(&mut resumed, &turn(0.75)), Some((3, 2, Some(250_000))));
        assert_eq!(result(&mut Ledger::new(false), &json!({"usage": 7, "total_cost_usd": -1})), None);
    }
}
