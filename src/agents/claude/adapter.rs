//! Understands the output of one Claude Code: its lines become records in pi's vocabulary, which the one decoder turns
//! into events (law 5), so that a log read again says what was said live.

use serde_json::{Value, json};

use super::asked::questions;
use super::ledger::Ledger;
use super::message::{Message, stop};
use super::turn::Turn;
use crate::agents::asked::request_of;
use crate::agents::look::{Look, text_of};
use crate::agents::pi::live::Live;
use crate::agents::pi::{decode_line, line_of};
use crate::agents::told::{self, tell};
use crate::agents::wrapping::unwrapped;
use crate::agents::{Adapter, Line, Oversize, Sink, outside};
use crate::run::{AgentEvent, Report, StopReason, Stream, Usage};
use crate::text::prefix;

/// The command of the response that stands for a request that this program knows no answer to.
pub(super) const FOREIGN: &str = "control_request";
/// How many questions are remembered; more than any agent puts at once.
const MOST_ASKED: usize = 64;
/// What stands in event logs where a prompt was (runner-behaviour 9).
const REDACTED: &str = "[prompt redacted]";
/// Lines of the system that say only that it lives, and those that say nothing of the run.
const ALIVE: [&str; 6] =
    ["status", "thinking_tokens", "task_updated", "tool_progress", "hook_started", "hook_response"];
const SILENT: [&str; 5] =
    ["session_state_changed", "prompt_suggestion", "files_persisted", "model_fallback", "rate_limit_event"];

/// The adapter for Claude Code.
#[derive(Debug)]
pub struct ClaudeAdapter {
    pub(super) live: Live,
    pub(super) report: Report,
    pub(super) ledger: Ledger,
    pub(super) turn: Turn,
    prompted: bool,
    /// The newest questions, by their ids, to know which of them are withdrawn.
    asked: Vec<String>,
    pub(super) events: Vec<AgentEvent>,
}

impl ClaudeAdapter {
    /// A new one, for one child; `resumed` says that it goes on with a session.
    #[must_use]
    pub fn new(resumed: bool) -> Self {
        Self {
            live: Live::default(),
            report: Report::default(),
            ledger: Ledger::new(resumed),
            turn: Turn::default(),
            prompted: false,
            asked: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Keeps a record and hands on what it says.
    pub(super) fn emit(&mut self, record: Value, sink: &mut dyn Sink) {
        let line = line_of(record);
        sink.record(line.as_bytes());
        decode_line(line.as_bytes(), &mut self.events);
        for event in self.events.drain(..) {
            sink.event(event);
        }
    }

    fn object(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let nested = line.str("parent_tool_use_id");
        match line.word("type") {
            "assistant" | "user" | "stream_event" if nested.is_some() => {
                self.nested(nested.unwrap_or_default(), line, sink);
            }
            "assistant" => self.assistant(line, sink),
            "user" => self.user(line, sink),
            "stream_event" => self.piece(line.object("event"), sink),
            "system" => self.system(line, sink),
            "result" => self.result(line, sink),
            "command_lifecycle" => self.lifecycle(line, sink),
            "control_request" => self.asked(line, sink),
            "control_cancel_request" => {
                // Of a request with several questions all are meant.
                let id = line.word("request_id");
                let open = std::mem::take(&mut self.asked);
                let (over, open): (Vec<String>, Vec<String>) = open.into_iter().partition(|q| request_of(q) == id);
                self.asked = open;
                for id in over {
                    self.emit(json!({"type": "subdeck_unasked", "id": id}), sink);
                }
            }
            "control_response" => {
                let response = line.object("response");
                let success = response.word("subtype") == "success";
                self.response(response.word("request_id"), "control", success, response.str("error"), sink);
            }
            "keep_alive" | "rate_limit_event" => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            kind => self.emit(json!({"type": format!("claude.{}", prefix(kind, 100))}), sink),
        }
    }

    fn response(&mut self, id: &str, command: &str, success: bool, error: Option<&str>, sink: &mut dyn Sink) {
        let mut record = json!({"type": "response", "id": id, "command": command, "success": success});
        if let (Some(fields), Some(error)) = (record.as_object_mut(), error) {
            fields.insert("error".to_owned(), told::kept(error).into());
        }
        self.emit(record, sink);
    }

    fn system(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        match line.word("subtype") {
            "init" => {
                let model = line.str("model").map(|model| json!({"id": model}));
                let data = json!({"sessionId": line.str("session_id"), "model": model});
                self.emit(json!({"type": "response", "command": "get_state", "success": true, "data": data}), sink);
                self.begin(sink);
            }
            "api_retry" => {
                let status = line.count("error_status").map_or_else(String::new, |status| format!("{status}: "));
                let reason = format!("{status}{}", line.str("error").unwrap_or("the provider failed"));
                let (attempt, most) = (line.count("attempt"), line.count("max_retries"));
                let delay = line.get("retry_delay_ms").and_then(Value::as_f64).map(|ms| ms.max(0.0) as u64);
                let number = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
                let wait = delay.map_or_else(String::new, |ms| format!(" in {:.1} s", ms as f64 / 1000.0));
                let told = format!("retry {} of {}{wait}: {reason}", number(attempt), number(most));
                self.live.line(Stream::Own, &told, sink);
                self.turn.retrying = true;
                let record = json!({"type": "auto_retry_start", "attempt": attempt, "maxAttempts": most,
                    "delayMs": delay, "errorMessage": reason});
                self.emit(record, sink);
            }
            "permission_denied" => {
                let question = format!("{}: {}", line.word("tool_name"), line.word("message"));
                self.live.line(Stream::Own, &format!("refused: {question}"), sink);
            }
            "background_tasks_changed" => {
                let agents = |task: &&Value| Look::new(task).str("task_type") == Some("local_agent");
                self.turn.background = line.list("tasks").iter().filter(agents).count();
            }
            "compact_boundary" => self.live.line(Stream::Own, "the agent shortens its conversation", sink),
            "task_started" | "task_progress" | "task_notification" => self.task(line, sink),
            known if ALIVE.contains(&known) => sink.event(AgentEvent::TextDelta { bytes: 0 }),
            known if SILENT.contains(&known) => {}
            other => self.emit(json!({"type": format!("claude.system.{}", prefix(other, 100))}), sink),
        }
    }

    /// It works, if it did not before.
    pub(super) fn begin(&mut self, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.turn.working, true) {
            let report = &mut self.report;
            (report.settled, report.ended, report.clean_stop, report.aborted) = (false, false, false, false);
            self.emit(json!({"type": "agent_start"}), sink);
        }
    }

    /// A message of the model, if it is not the one that is being written.
    fn message(&mut self, message: Look<'_>, sink: &mut dyn Sink) {
        self.begin(sink);
        if self.turn.message.as_ref().is_some_and(|open| open.id == message.word("id")) {
            return;
        }
        self.message_over(None, sink);
        if std::mem::take(&mut self.turn.retrying) {
            self.emit(json!({"type": "auto_retry_end", "success": true}), sink);
        }
        self.emit(json!({"type": "turn_start"}), sink);
        self.turn.message = Some(Message::new(message));
    }

    /// Tells of the message what was not told yet.
    pub(super) fn tell(&mut self, usage: Option<Usage>, sink: &mut dyn Sink) {
        let Some(told) = self.turn.message.as_mut().and_then(|message| message.take(usage.as_ref())) else {
            if let Some(usage) = usage {
                self.used(&usage, sink);
            }
            return;
        };
        self.report.saw_any_event = true;
        self.report.clean_stop = false;
        if let Some(error) = &told.error {
            self.report.assistant_error = Some(error.clone());
        } else if !told.text.trim().is_empty() {
            self.report.final_text = Some(told.text.clone());
            self.report.assistant_error = None;
        }
        told.answer().tell(sink);
    }

    pub(super) fn message_over(&mut self, end: Option<StopReason>, sink: &mut dyn Sink) {
        if let Some(message) = &mut self.turn.message {
            message.stop = message.stop.or(end);
            self.tell(None, sink);
            self.turn.message = None;
            self.emit(json!({"type": "turn_end"}), sink);
        }
    }

    pub(super) fn used(&mut self, usage: &Usage, sink: &mut dyn Sink) {
        tell(AgentEvent::Used(*usage), sink);
    }

    fn piece(&mut self, event: Look<'_>, sink: &mut dyn Sink) {
        match event.word("type") {
            "message_start" => {
                self.message(event.object("message"), sink);
                self.ledger.began(event.object("message").object("usage"));
            }
            "content_block_delta" => {
                let text = event.object("delta").str("text").unwrap_or_default();
                self.live.delta(event.count("index"), text, sink);
                sink.event(AgentEvent::TextDelta { bytes: text.len() });
            }
            "message_delta" => {
                if let Some(message) = &mut self.turn.message {
                    message.stop = event.object("delta").str("stop_reason").map(stop);
                }
                let usage = self.ledger.ended(event.object("usage"));
                self.tell(Some(usage), sink);
            }
            _ => sink.event(AgentEvent::TextDelta { bytes: 0 }),
        }
    }

    fn assistant(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let body = line.object("message");
        self.message(body, sink);
        let failed = line.is("is_api_error_message") || line.str("error").is_some();
        for block in body.list("content").iter().map(Look::new) {
            match block.word("type") {
                "text" => {
                    let text = block.word("text");
                    self.live.message(text, sink);
                    let Some(message) = &mut self.turn.message else { continue };
                    message.text(text);
                    if failed {
                        message.failed(text, line.word("error"));
                    } else if line.is("aborted") {
                        message.stop = Some(StopReason::Aborted);
                    }
                }
                "thinking" => {
                    if let Some(message) = &mut self.turn.message {
                        message.thought(block.word("thinking"));
                    }
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => self.call(block, sink),
                _ => {}
            }
        }
    }

    fn user(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let content = line.object("message").get("content");
        for block in content.and_then(Value::as_array).into_iter().flatten().map(Look::new) {
            if block.word("type") == "tool_result" {
                self.returned(block, sink);
            }
        }
        let text = text_of(content);
        if text.trim().is_empty() {
            return;
        }
        if !line.is("isReplay") {
            self.live.line(Stream::Own, prefix(text.trim(), 200), sink);
            return;
        }
        let prompt = !std::mem::replace(&mut self.prompted, true);
        let text = if prompt { REDACTED.into() } else { told::kept(&text) };
        if !prompt {
            self.live.line(Stream::Own, &format!("» {}", unwrapped(&text).trim()), sink);
        }
        self.report.clean_stop = false;
        let content = json!([{"type": "text", "text": text}]);
        self.emit(json!({"type": "message_end", "message": {"role": "user", "content": content}}), sink);
    }

    fn lifecycle(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let (uuid, state) = (line.word("command_uuid"), line.word("state"));
        let known = matches!(state, "queued" | "started" | "completed");
        self.turn.queued.retain(|queued| queued != uuid);
        if state == "queued" {
            self.turn.queued.push(uuid.to_owned());
        }
        let error = (!known).then(|| format!("the agent says of the message: {state}"));
        self.response(uuid, prefix(state, 100), known, error.as_deref(), sink);
    }

    fn asked(&mut self, line: Look<'_>, sink: &mut dyn Sink) {
        let (id, request) = (line.word("request_id"), line.object("request"));
        if request.word("subtype") != "can_use_tool" {
            return self.response(id, FOREIGN, true, None, sink);
        }
        for asking in questions(id, request) {
            self.live.line(Stream::Own, &format!("it asks: {}", asking.text), sink);
            if self.asked.len() >= MOST_ASKED {
                self.asked.remove(0);
            }
            self.asked.push(asking.id.clone());
            tell(AgentEvent::Asked(Box::new(asking)), sink);
        }
    }

    /// A line that is too long to be parsed: the facts that the framer found stand for it.
    fn oversize(&mut self, long: &Oversize<'_>, sink: &mut dyn Sink) {
        let note = format!("[a line of {} bytes, shortened]", long.observed);
        let facts = long.facts.clone().unwrap_or_default();
        match (facts.kind.as_deref(), facts.is_error) {
            (None, _) => {
                self.live.end_line(sink);
                outside::line(&mut self.report, &String::from_utf8_lossy(long.prefix), true, sink);
            }
            (Some("result"), Some(failed)) => {
                let subtype = if failed { "error" } else { "success" };
                let line = json!({"type": "result", "subtype": subtype, "is_error": failed});
                return self.result(Look::new(&line), sink);
            }
            (Some(kind), _) => {
                self.emit(
                    json!({"type": format!("claude.{}", prefix(kind, 100)), "subdeckShortened": long.observed}),
                    sink,
                );
                // Which call it ends stands in what was left out.
                if kind == "user"
                    && self.turn.open.len() == 1
                    && let Some((id, tool)) = self.turn.open.pop()
                {
                    self.message_over(Some(StopReason::ToolUse), sink);
                    self.tool_over(&id, &tool, &note, facts.is_error == Some(true), sink);
                }
            }
        }
        self.live.line(Stream::Own, &note, sink);
    }
}

impl Adapter for ClaudeAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => match serde_json::from_slice::<Value>(bytes) {
                Ok(value) if value.get("type").is_some_and(Value::is_string) => self.object(Look::new(&value), sink),
                _ => {
                    self.report.torn |= !complete && bytes.trim_ascii_start().starts_with(b"{");
                    self.live.end_line(sink);
                    outside::line(&mut self.report, &String::from_utf8_lossy(bytes), *complete, sink);
                }
            },
            Line::Oversize(long) => self.oversize(long, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.message_over(None, sink);
    }

    fn report(&self) -> Report {
        outside::bounded(&self.report)
    }
}
