//! The sub-agents of a step in lines of text.

use crate::run::{SubAgent, Timestamp, ToolOutcome};
use crate::text::{self as units, SafeText};

/// How wide such a line may be, in columns.
const WIDE: usize = 120;

/// One of them in a line: what it is, what it does or how it ended, and its own numbers.
pub(super) fn line(agent: &SubAgent, now: Timestamp) -> SafeText {
    let word = match agent.outcome {
        None => "works",
        Some(ToolOutcome::Ok) => "done",
        Some(ToolOutcome::Cancelled) => "stopped",
        Some(ToolOutcome::Lost) => "lost",
        Some(ToolOutcome::Error | ToolOutcome::Denied) => "failed",
    };
    let mut facts = vec![units::span(agent.ended_at.unwrap_or(now).since(agent.started_at))];
    facts.push(format!("{} {}", agent.tool_count, if agent.tool_count == 1 { "call" } else { "calls" }));
    facts.extend(agent.tokens.map(|tokens| format!("{} tokens", units::count(tokens))));
    let does = match &agent.tool {
        Some(call) => format!(": {} {}", call.tool, call.args),
        None if agent.about.is_empty() => String::new(),
        None => format!(": {}", agent.about),
    };
    SafeText::line(&format!("↳ {} {word} ({}){does}", agent.name, facts.join(", "))).truncate(WIDE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::SubCall;

    #[test]
    fn what_it_does_or_was_to_do() {
        let now = Timestamp::from_millis(90_000);
        let call = SubCall { tool: "grep".to_owned(), args: "x\u{1b}[2J\ny".to_owned() };
        let works = SubAgent { name: "scout".to_owned(), tool: Some(call), tool_count: 1, ..SubAgent::default() };
        let text = line(&works, now).to_string();
        assert!(text.starts_with("↳ scout works (1m30s, 1 call): grep x") && !text.contains('\u{1b}'), "{text:?}");
        let done = SubAgent {
            name: "scout".to_owned(),
            about: "look".to_owned(),
            ended_at: Some(Timestamp::from_millis(5_000)),
            outcome: Some(ToolOutcome::Ok),
            tokens: Some(2_157),
            ..SubAgent::default()
        };
        assert_eq!(line(&done, now).to_string(), "↳ scout done (5.0s, 0 calls, 2.2k tokens): look");
    }
}
