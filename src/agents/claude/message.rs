//! A message of the model that comes block by block, one line each, and counts as one (agent-streams 1).

use crate::agents::look::Look;
use crate::agents::told::{Answer, think_anew};
use crate::run::{StopReason, Usage};

/// A message that is being written.
#[derive(Debug)]
pub(super) struct Message {
    pub id: String,
    model: Option<String>,
    text: String,
    thought: String,
    error: Option<String>,
    /// It asks for tools.
    pub calls: bool,
    /// Why the model stopped.
    pub stop: Option<StopReason>,
    told: bool,
}

/// What is told of a message.
pub(super) struct Told {
    pub text: String,
    thought: String,
    pub error: Option<String>,
    model: Option<String>,
    calls: bool,
    stop: Option<StopReason>,
    usage: Usage,
}

impl Message {
    pub(super) fn new(message: Look<'_>) -> Self {
        // What Claude Code writes itself in the model's place names no model.
        let model = message.str("model").filter(|model| !model.starts_with('<')).map(str::to_owned);
        let id = message.word("id").to_owned();
        Self {
            id,
            model,
            text: String::new(),
            thought: String::new(),
            error: None,
            calls: false,
            stop: None,
            told: false,
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        // What comes after the calls is a message of its own.
        self.told = false;
    }

    /// What was thought before it is told with it.
    pub(super) fn thought(&mut self, text: &str) {
        think_anew(&mut self.thought, text);
    }

    pub(super) fn failed(&mut self, text: &str, kind: &str) {
        self.error = Some(if text.trim().is_empty() { kind.to_owned() } else { text.to_owned() });
        self.stop = Some(StopReason::Error);
    }

    /// What was not told yet; `None` when that is nothing.
    pub(super) fn take(&mut self, usage: Option<&Usage>) -> Option<Told> {
        if self.told {
            return None;
        }
        self.told = true;
        Some(Told {
            text: std::mem::take(&mut self.text),
            thought: std::mem::take(&mut self.thought),
            error: self.error.take(),
            model: self.model.clone(),
            calls: self.calls,
            stop: if self.calls { Some(StopReason::ToolUse) } else { self.stop },
            usage: usage.copied().unwrap_or_default(),
        })
    }
}

impl Told {
    /// As it is handed on.
    pub(super) fn answer(&self) -> Answer<'_> {
        Answer {
            // The text of an error is the error.
            said: if self.error.is_none() { &self.text } else { "" },
            thought: &self.thought,
            model: self.model.as_deref(),
            stop: self.stop,
            usage: Some(self.usage),
            error: self.error.clone(),
            calls_tools: self.calls,
        }
    }
}

/// Why the model stopped, by the provider's word for it.
pub(super) fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::Stop,
        "tool_use" | "pause_turn" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Error,
        _ => StopReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::agents::told::Seen;

    fn content(told: &Told) -> Value {
        let mut seen = Seen::default();
        told.answer().tell(&mut seen);
        let record: Value = serde_json::from_str(&seen.records[0]).unwrap();
        record["message"]["content"].clone()
    }

    #[test]
    fn what_was_thought_is_told_with_the_message_and_once() {
        let mut message = Message::new(Look::new(&json!({"id": "m"})));
        message.thought("deep");
        message.thought("thoughts");
        message.text("So be it.");
        let expected =
            json!([{"type": "thinking", "thinking": "deep\nthoughts"}, {"type": "text", "text": "So be it."}]);
        assert_eq!(content(&message.take(None).unwrap()), expected);
        assert!(message.take(None).is_none());
        message.text("More.");
        assert_eq!(content(&message.take(None).unwrap()), json!([{"type": "text", "text": "More."}]));
    }
}
