//! The tool calls of Claude Code: a block of a message begins one, a block of the next user line ends it.

use serde_json::json;

use super::adapter::ClaudeAdapter;
use crate::agents::Sink;
use crate::agents::look::{Look, kept, text_of};
use crate::agents::pi::{decode_line, line_of};
use crate::agents::told;
use crate::run::{AgentEvent, StopReason, Stream};

impl ClaudeAdapter {
    pub(super) fn call(&mut self, block: Look<'_>, sink: &mut dyn Sink) {
        if let Some(message) = &mut self.turn.message {
            message.calls = true;
        }
        self.tell(None, sink);
        let (id, tool) = (block.word("id"), block.str("name").unwrap_or("?"));
        self.turn.open.push((id.to_owned(), tool.to_owned()));
        let args = kept(block.get("input").cloned().unwrap_or_default());
        let at = self.events.len();
        let record = json!({"type": "tool_execution_start", "toolCallId": id, "toolName": tool, "args": args});
        decode_line(line_of(record.clone()).as_bytes(), &mut self.events);
        if let Some(AgentEvent::ToolStarted { tool, args, .. }) = self.events.get(at) {
            self.live.line(Stream::Out, &told::call(tool, args), sink);
        }
        self.events.truncate(at);
        self.emit(record, sink);
    }

    pub(super) fn returned(&mut self, block: Look<'_>, sink: &mut dyn Sink) {
        let id = block.word("tool_use_id");
        let Some(at) = self.turn.open.iter().position(|(open, _)| open == id) else { return };
        let (id, tool) = self.turn.open.remove(at);
        self.message_over(Some(StopReason::ToolUse), sink);
        let text = text_of(block.get("content"));
        self.live.result(Some(&id), &text, sink);
        self.tool_over(&id, &tool, &told::kept(&text), block.is("is_error"), sink);
        self.brought(&id, block.is("is_error"), sink);
    }

    pub(super) fn tool_over(&mut self, id: &str, tool: &str, text: &str, failed: bool, sink: &mut dyn Sink) {
        let content = if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
        let record = json!({"type": "tool_execution_end", "toolCallId": id, "toolName": tool,
            "result": {"content": content}, "isError": failed});
        self.emit(record, sink);
    }
}
