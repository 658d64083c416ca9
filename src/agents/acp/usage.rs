//! What an agent used, brought to one measure: each agent counts in its own way (agent-streams 0.8, 0.9, 7).

use serde_json::Value;

use super::Dialect;
use crate::agents::jsonrpc::{text, within};
use crate::run::{CostUsd, Tokens, Usage};

/// What was used and not yet told.
#[derive(Debug, Default)]
pub(super) struct Spent {
    tokens: Tokens,
    cost: Option<CostUsd>,
    /// What the whole session had used when it was last told.
    session: Tokens,
    /// What the whole session had cost when it was last told, in USD.
    session_cost: f64,
}

impl Spent {
    /// A report on one model call.
    pub(super) fn call(&mut self, usage: &Value) {
        self.tokens += tokens(usage);
    }

    /// The answer to a prompt; `turns` says whether the model was called since the last one.
    pub(super) fn prompt(&mut self, dialect: Dialect, result: &Value, turns: bool) {
        if let Some(usage) = result.get("usage") {
            let found = tokens(usage);
            match dialect {
                // Only the last call; two prompts that were answered together report the same one twice.
                Dialect::OpenCode => {
                    if turns {
                        self.tokens += found;
                    }
                }
                _ => {
                    self.tokens += found.since(self.session);
                    self.session = found;
                }
            }
        }
        // Gemini: all calls of this prompt.
        if let Some(count) = within(result, &["_meta", "quota", "token_count"]) {
            self.tokens += tokens(count);
        }
    }

    /// A report on the whole session, from before this process began when `history`.
    pub(super) fn session(&mut self, update: &Value, history: bool) {
        let Some(cost) = update.get("cost") else { return };
        let Some(amount) = cost.get("amount").and_then(Value::as_f64) else { return };
        let usd = text(cost, "currency").is_none_or(|currency| currency.eq_ignore_ascii_case("usd"));
        if !usd || CostUsd::reported(amount).is_none() {
            return;
        }
        // A sum never falls.
        let more = amount - self.session_cost;
        self.session_cost = self.session_cost.max(amount);
        if more > 0.0 && !history {
            *self.cost.get_or_insert_default() += CostUsd(more);
        }
    }

    /// Whether anything was used that is not told yet.
    pub(super) fn has_some(&self) -> bool {
        !self.tokens.is_zero() || self.cost.is_some()
    }

    /// What is to be told, once.
    pub(super) fn take(&mut self) -> Option<Usage> {
        let usage = Usage { tokens: std::mem::take(&mut self.tokens), cost: self.cost.take() };
        (usage != Usage::default()).then_some(usage)
    }
}

/// The tokens of a report. Some count what came out of the cache, and what was thought, within the rest, some beside it:
/// the total tells which.
fn tokens(usage: &Value) -> Tokens {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64()).unwrap_or(0);
    let input = count(["inputTokens", "input_tokens"]);
    let output = count(["outputTokens", "output_tokens"]);
    let cache_read = count(["cachedReadTokens", "cached_read_tokens"]);
    let cache_write = count(["cachedWriteTokens", "cached_write_tokens"]);
    let thought = count(["thoughtTokens", "thought_tokens"]);
    let total = count(["totalTokens", "total_tokens"]);
    let cached = cache_read.saturating_add(cache_write);
    let inner = input.saturating_add(output);
    let beside = inner.saturating_add(cached).saturating_add(thought);
    if total == beside && total != inner {
        Tokens { input, output: output.saturating_add(thought), cache_read, cache_write }
    } else {
        Tokens { input: input.saturating_sub(cached), output, cache_read, cache_write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_measure_for_all() {
        // The same call as two agents count it.
        let expected = Tokens { input: 1300, output: 57, cache_read: 800, cache_write: 0 };
        let within = json!({"inputTokens": 2100, "outputTokens": 57, "totalTokens": 2157, "thoughtTokens": 11,
            "cachedReadTokens": 800});
        let beside = json!({"inputTokens": 1300, "outputTokens": 46, "totalTokens": 2157, "thoughtTokens": 11,
            "cachedReadTokens": 800});
        assert_eq!(tokens(&within), expected);
        assert_eq!(tokens(&beside), expected);
        assert_eq!(
            tokens(&json!({"input_tokens": 4, "output_tokens": 2})),
            Tokens { input: 4, output: 2, ..Tokens::default() }
        );
        assert_eq!(tokens(&json!({"inputTokens": -1, "outputTokens": "x"})), Tokens::default());
        assert_eq!(tokens(&json!({"inputTokens": u64::MAX, "outputTokens": u64::MAX})).input, u64::MAX);
    }

    #[test]
    fn sums_are_told_by_what_came_to_them() {
        let mut spent = Spent::default();
        let told = |spent: &mut Spent| spent.take().map(|usage| (usage.tokens.input, usage.cost.map(|c| c.0)));
        let answer = |input: u64| json!({"usage": {"inputTokens": input}});
        spent.prompt(Dialect::Copilot, &answer(10), true);
        assert_eq!(told(&mut spent), Some((10, None)));
        spent.prompt(Dialect::Copilot, &answer(25), true);
        assert_eq!(told(&mut spent), Some((15, None)));
        assert_eq!(told(&mut spent), None);
        spent.prompt(Dialect::OpenCode, &answer(7), true);
        spent.prompt(Dialect::OpenCode, &answer(7), false);
        assert_eq!(told(&mut spent), Some((7, None)));
        spent.session(&json!({"cost": {"amount": 0.5, "currency": "USD"}}), true);
        spent.session(&json!({"cost": {"amount": 0.75}}), false);
        spent.session(&json!({"cost": {"amount": 99, "currency": "EUR"}}), false);
        spent.session(&json!({"cost": {"amount": -1}}), false);
        assert_eq!(told(&mut spent), Some((0, Some(0.25))));
    }
}
