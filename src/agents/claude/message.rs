//! A message of the model that comes block by block, one line each, and counts as one (agent-streams 1).

use serde_json::{Value, json};

use crate::agents::look::Look;
use crate::run::Usage;
use crate::text::prefix;

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
    /// Why the model stopped, in pi's words.
    pub stop: Option<&'static str>,
    told: bool,
}

/// What is told of a message.
pub(super) struct Told {
    pub text: String,
    thought: String,
    pub error: Option<String>,
    model: Option<String>,
    calls: bool,
    stop: Option<&'static str>,
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
        if !self.thought.is_empty() {
            self.thought.push('\n');
        }
        self.thought.push_str(text);
    }

    pub(super) fn failed(&mut self, text: &str, kind: &str) {
        self.error = Some(if text.trim().is_empty() { kind.to_owned() } else { text.to_owned() });
        self.stop = Some("error");
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
            stop: if self.calls { Some("toolUse") } else { self.stop },
            usage: usage.copied().unwrap_or_default(),
        })
    }
}

impl Told {
    /// The record of it, with at most `kept` bytes of its text.
    pub(super) fn record(&self, kept: usize) -> Value {
        let mut content = Vec::new();
        if !self.thought.trim().is_empty() {
            content.push(json!({"type": "thinking", "thinking": prefix(&self.thought, kept)}));
        }
        // The text of an error is the error.
        if !self.text.is_empty() && self.error.is_none() {
            content.push(json!({"type": "text", "text": prefix(&self.text, kept)}));
        }
        if self.calls {
            content.push(json!({"type": "toolCall"}));
        }
        let tokens = self.usage.tokens;
        let usage = json!({"input": tokens.input, "output": tokens.output, "cacheRead": tokens.cache_read,
            "cacheWrite": tokens.cache_write});
        let mut message = json!({"role": "assistant", "content": content, "usage": usage});
        if let Some(fields) = message.as_object_mut() {
            let mut set = |key: &str, value: Option<&str>| {
                if let Some(value) = value {
                    fields.insert(key.to_owned(), prefix(value, kept).into());
                }
            };
            set("model", self.model.as_deref());
            set("stopReason", self.stop);
            set("errorMessage", self.error.as_deref());
        }
        json!({"type": "message_end", "message": message})
    }
}

/// The word of pi for the reason of the provider.
pub(super) fn stop(reason: &str) -> &'static str {
    match reason {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" | "pause_turn" => "toolUse",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "error",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thought_is_told_with_the_message_and_once() {
        let mut message = Message::new(Look::new(&json!({"id": "m"})));
        message.thought("deep");
        message.thought("thoughts");
        message.text("So be it.");
        let told = message.take(None).unwrap().record(1000);
        let content =
            json!([{"type": "thinking", "thinking": "deep\nthoughts"}, {"type": "text", "text": "So be it."}]);
        assert_eq!(told["message"]["content"], content);
        assert!(message.take(None).is_none());
        message.text("More.");
        let told = message.take(None).unwrap().record(2);
        assert_eq!(told["message"]["content"], json!([{"type": "text", "text": "Mo"}]));
    }
}
