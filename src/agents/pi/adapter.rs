//! Understands the output of one pi: events for the reducer, text for the output log, records for the event log, and
//! what it all amounts to.
//!
//! A line over the framer's limit never fails a child: the aggregates that repeat a whole conversation are reduced to
//! the facts that matter, anything else is kept as a short record (public bug reports of neighbouring programs: a valid
//! huge event must not kill an agent).

use super::decode::{Kind, decode_line, events, preview};
use super::encode::{REDACTED, encode, line_of};
use super::fast::{Known, known};
use super::live::Live;
use super::record::{Record, with_record};
use super::talk::PROMPT_ID;
use crate::agents::acceptance;
use crate::agents::told;
use crate::agents::wrapping::unwrapped;
use crate::agents::{Adapter, Facts, Line, Oversize, Sink, outside};
use crate::run::{AgentEvent, CallFacts, MessageRole, Report, StopReason, Stream, ToolOutcome, broken_off};

/// Largest line that is kept as it is in the event log, in bytes. Longer ones are kept by their events.
const KEPT_LINE: usize = 1024 * 1024;
/// How many bytes of reports of running tools one child may add to the event log; each repeats the one before.
const KEPT_PROGRESS: usize = 1024 * 1024;
/// Commands whose answers hold nothing of the conversation.
const OWN_COMMANDS: [&str; 5] = ["prompt", "steer", "follow_up", "abort", "get_state"];
/// How much of a tool's output is quoted in an error (runner-behaviour 1.8).
const QUOTED: usize = 200;

/// The adapter for pi.
#[derive(Debug, Default)]
pub struct PiAdapter {
    live: Live,
    report: Report,
    progress_kept: usize,
    /// The newest report of each running call that came since the last flush: each repeats the one before, so only
    /// the last of a batch is worth parsing.
    held: Vec<(String, Vec<u8>)>,
    prompted: bool,
    events: Vec<AgentEvent>,
}

impl PiAdapter {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn record(&mut self, line: &[u8], record: &Record<'_>, sink: &mut dyn Sink) {
        self.write_log(record, sink);
        let mut found = std::mem::take(&mut self.events);
        let kind = events(line, record, &mut found);
        self.keep(line, kind, record, &found, sink);
        for event in found.drain(..) {
            if let AgentEvent::ToolStarted { tool, args, .. } = &event {
                self.live.line(Stream::Out, &told::call(tool, args), sink);
            }
            if let AgentEvent::Asked(asking) = &event {
                self.live.line(Stream::Own, &format!("an extension asks: {}", asking.text), sink);
            }
            self.count(&event, record);
            sink.event(event);
        }
        self.events = found;
    }

    /// Whether nothing but what is known of the line matters.
    fn says_enough(&self, known: &Known<'_>) -> bool {
        !matches!(known, Known::Result { call, .. } if !self.live.has_result(call) || !self.held.is_empty())
    }

    /// A line whose meaning is known without a parse.
    fn known(&mut self, line: &[u8], known: Known<'_>, sink: &mut dyn Sink) {
        match known {
            Known::Delta { block, text } => {
                self.live.delta(Some(block), &text, sink);
                sink.event(AgentEvent::TextDelta { bytes: text.len() });
            }
            Known::Progress { call } => {
                self.progress_kept = self.progress_kept.saturating_add(line.len());
                if self.progress_kept <= KEPT_PROGRESS {
                    sink.keep_line();
                }
                match self.held.iter_mut().find(|(held, _)| held == call) {
                    Some((_, newest)) => {
                        newest.clear();
                        newest.extend_from_slice(line);
                    }
                    None => self.held.push((call.to_owned(), line.to_vec())),
                }
                sink.event(AgentEvent::ToolProgress { call: Some(call.to_owned()) });
            }
            Known::MessageStart { role } => {
                let record = serde_json::json!({"type": "message_start", "message": {"role": role}});
                sink.record(record.to_string().as_bytes());
            }
            Known::Result { beginning, .. } => {
                sink.keep_line();
                self.report.saw_any_event = true;
                sink.event(AgentEvent::Message {
                    role: MessageRole::ToolResult,
                    preview: preview(&beginning),
                    model: None,
                    stop: None,
                    usage: None,
                    error: None,
                    calls_tools: false,
                });
            }
            Known::TurnEnd => {
                // It repeats the messages of its turn, which are all kept.
                sink.record(br#"{"type":"turn_end"}"#);
                self.count(&AgentEvent::TurnEnded, &Record::default());
                sink.event(AgentEvent::TurnEnded);
            }
        }
    }

    /// Hands on what is held, but for the call that this very line ends: its output comes whole.
    fn flush_except(&mut self, line: &[u8], sink: &mut dyn Sink) {
        if self.held.is_empty() {
            return;
        }
        let head = line.get(..line.len().min(400)).unwrap_or(line);
        if line.starts_with(br#"{"type":"tool_execution_end""#) {
            self.held.retain(|(call, _)| memchr::memmem::find(head, call.as_bytes()).is_none());
        }
        self.flush(sink);
    }

    /// Writes what a person wants to read.
    fn write_log(&mut self, record: &Record<'_>, sink: &mut dyn Sink) {
        let live = &mut self.live;
        let call = record.tool_call_id.as_deref();
        match record.kind.as_deref().unwrap_or_default() {
            "message_update" => {
                if let Some(piece) = &record.assistant_message_event
                    && piece.kind.as_deref() == Some("text_delta")
                {
                    live.delta(piece.content_index, piece.delta.as_deref().unwrap_or_default(), sink);
                }
            }
            "tool_execution_update" => {
                if let (Some(call), Some(body)) = (call, &record.partial_result) {
                    live.progress(call, &body.text(), sink);
                }
            }
            "tool_execution_end" => {
                if let Some(body) = &record.result
                    && !body.content.texts.is_empty()
                {
                    live.result(call, &body.text(), sink);
                }
            }
            "message_end" | "tool_result_end" => {
                let Some(body) = &record.message else { return };
                let text = body.text();
                match body.role.as_deref() {
                    Some("assistant") => {
                        live.message(&text, sink);
                        if let Some(error) = &body.error_message {
                            let stop = (body.stop_reason.as_deref() == Some("aborted")).then_some(StopReason::Aborted);
                            let what = if broken_off(stop, error) { "broken off" } else { "model error" };
                            live.line(Stream::Own, &format!("{what}: {}", preview(error)), sink);
                        }
                    }
                    Some("toolResult") => live.result(body.tool_call_id.as_deref().or(call), &text, sink),
                    // The first message is the task, which is written nowhere (runner-behaviour 14.20).
                    Some("user") if self.prompted => {
                        live.line(Stream::Own, &format!("» {}", unwrapped(&text).trim()), sink);
                    }
                    _ => {}
                }
            }
            "auto_retry_start" => {
                let number = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
                let wait = record.delay_ms.map_or_else(String::new, |ms| format!(" in {:.1} s", ms as f64 / 1000.0));
                let text = format!("retry {} of {}{wait}", number(record.attempt), number(record.max_attempts));
                live.line(Stream::Own, &text, sink);
            }
            "compaction_start" => live.line(Stream::Own, "the agent shortens its conversation", sink),
            "extension_error" => {
                let error = record.error.as_deref().unwrap_or("no reason given");
                live.line(Stream::Own, &format!("extension error: {}", preview(error)), sink);
            }
            _ => {}
        }
    }

    /// Keeps the line in the event log: as it is, reduced, or not at all.
    fn keep(&mut self, line: &[u8], kind: Kind, record: &Record<'_>, found: &[AgentEvent], sink: &mut dyn Sink) {
        match kind {
            Kind::Text | Kind::Update => return,
            Kind::Progress => {
                self.progress_kept = self.progress_kept.saturating_add(line.len());
                if self.progress_kept <= KEPT_PROGRESS {
                    sink.keep_line();
                }
                return;
            }
            Kind::Record => {}
        }
        let role = record.message.as_ref().and_then(|body| body.role.as_deref());
        match record.kind.as_deref().unwrap_or_default() {
            // They repeat the whole conversation, the task included.
            "agent_end" => keep_by_events(found, sink),
            "response" if !OWN_COMMANDS.contains(&record.command.as_deref().unwrap_or_default()) => {
                keep_by_events(found, sink);
            }
            "message_start" => {
                let role = role.unwrap_or_default();
                let record = serde_json::json!({"type": "message_start", "message": {"role": role}});
                sink.record(line_of(record).as_bytes());
            }
            "message_end" if role == Some("system") || (role == Some("user") && !self.prompted) => {
                let content = serde_json::json!([{"type": "text", "text": REDACTED}]);
                let message = serde_json::json!({"role": role, "content": content});
                let record = serde_json::json!({"type": "message_end", "message": message});
                sink.record(line_of(record).as_bytes());
            }
            "turn_end" => sink.record(br#"{"type":"turn_end"}"#),
            _ if line.len() <= KEPT_LINE => sink.keep_line(),
            _ => keep_by_events(found, sink),
        }
    }

    /// Takes an event into the report.
    fn count(&mut self, event: &AgentEvent, record: &Record<'_>) {
        let report = &mut self.report;
        match event {
            AgentEvent::AgentStarted => {
                (report.settled, report.ended, report.clean_stop, report.aborted) = (false, false, false, false);
            }
            AgentEvent::TurnStarted => report.clean_stop = false,
            AgentEvent::AgentEnded { will_retry } => report.ended = !will_retry,
            AgentEvent::Settled { aborted } => {
                report.settled = true;
                report.aborted |= aborted;
            }
            AgentEvent::ToolStarted { .. } => {
                report.saw_any_event = true;
                report.clean_stop = false;
            }
            AgentEvent::Response { id, success: false, error, command } if id.as_deref() == Some(PROMPT_ID) => {
                let reason = error.as_deref().unwrap_or("no reason given");
                report.protocol_error = Some(format!("the agent refused the task ({command}): {reason}"));
            }
            AgentEvent::Message { role, stop, usage, error, calls_tools, .. } => {
                let Some(body) = &record.message else { return };
                let text = body.text();
                match role {
                    MessageRole::Assistant => {
                        report.saw_any_event |= !text.is_empty() || *calls_tools || error.is_some() || usage.is_some();
                        self.assistant(&text, *stop, error.as_deref(), *calls_tools);
                    }
                    MessageRole::ToolResult => {
                        report.saw_any_event = true;
                        if body.is_error == Some(true) {
                            let tool = body.tool_name.as_deref().or(record.tool_name.as_deref());
                            report.hidden_error = Some(tool_failure(tool.unwrap_or("tool"), &text));
                        }
                    }
                    MessageRole::User => {
                        // After a whole answer somebody asked for more.
                        report.clean_stop = false;
                        self.prompted = true;
                    }
                    MessageRole::System | MessageRole::Other => {}
                }
            }
            _ => {}
        }
    }

    fn assistant(&mut self, text: &str, stop: Option<StopReason>, error: Option<&str>, calls_tools: bool) {
        let report = &mut self.report;
        let failed = error.is_some() || matches!(stop, Some(StopReason::Error | StopReason::Aborted));
        report.clean_stop = !failed && !calls_tools && stop == Some(StopReason::Stop);
        report.aborted |= stop == Some(StopReason::Aborted);
        if failed {
            let error = error.filter(|error| !error.trim().is_empty());
            let otherwise =
                if stop == Some(StopReason::Aborted) { "the answer was broken off" } else { "the model failed" };
            report.assistant_error = Some(error.unwrap_or(otherwise).to_owned());
            return;
        }
        if !text.trim().is_empty() || calls_tools {
            report.assistant_error = None;
        }
        if !text.trim().is_empty() {
            // A message with a report of the work is the answer, whatever is said after it (runner-behaviour 1.7).
            let reported = report.final_text.as_deref().is_some_and(acceptance::holds) && !acceptance::holds(text);
            if !reported {
                report.final_text = Some(text.to_owned());
            }
            report.hidden_error = None;
        }
    }

    /// A line that is too long to be parsed: the facts that the framer found stand for it.
    fn oversize(&mut self, long: &Oversize<'_>, sink: &mut dyn Sink) {
        let facts = long.facts.clone().unwrap_or_default();
        let note = format!("[a record of {} bytes, shortened]", long.observed);
        let event = match facts.kind.as_deref() {
            None => {
                self.text_line(&String::from_utf8_lossy(long.prefix), true, sink);
                self.live.line(Stream::Own, &format!("[a line of {} bytes, shortened]", long.observed), sink);
                return;
            }
            Some("message_update") => {
                sink.event(AgentEvent::TextDelta { bytes: 0 });
                return;
            }
            Some("tool_execution_update") => {
                sink.event(AgentEvent::ToolProgress { call: facts.call });
                return;
            }
            Some("agent_end") => AgentEvent::AgentEnded { will_retry: facts.will_retry == Some(true) },
            Some("agent_settled") => AgentEvent::Settled { aborted: facts.aborted == Some(true) },
            Some("turn_end") => AgentEvent::TurnEnded,
            Some("tool_execution_start") => AgentEvent::ToolStarted {
                call: facts.call,
                tool: facts.tool.unwrap_or_else(|| "?".to_owned()),
                args: note,
                path: None,
                about: CallFacts::default(),
            },
            Some("tool_execution_end") => AgentEvent::ToolEnded {
                call: facts.call,
                tool: facts.tool,
                outcome: if facts.is_error == Some(true) { ToolOutcome::Error } else { ToolOutcome::Ok },
                preview: note,
            },
            Some("message_end") => self.long_message(&facts, &note, sink),
            Some(kind) => {
                let record = line_of(serde_json::json!({"type": kind, "subdeckShortened": long.observed}));
                sink.record(record.as_bytes());
                let mut found = Vec::new();
                let _ = decode_line(record.as_bytes(), &mut found);
                // Of one that is known its type says nothing; one that is not known is counted as if it were short.
                found.retain(|event| matches!(event, AgentEvent::Unknown { .. }));
                sink.event(found.pop().unwrap_or(AgentEvent::TextDelta { bytes: 0 }));
                return;
            }
        };
        if let Some(record) = encode(&event) {
            sink.record(&record);
        }
        self.count(&event, &Record::default());
        sink.event(event);
    }

    /// A message that is too long: what was streamed of it stands for its text.
    fn long_message(&mut self, facts: &Facts, note: &str, sink: &mut dyn Sink) -> AgentEvent {
        let role = match facts.role.as_deref() {
            Some("user") => MessageRole::User,
            Some("assistant") => MessageRole::Assistant,
            Some("toolResult") => MessageRole::ToolResult,
            Some("system") => MessageRole::System,
            _ => MessageRole::Other,
        };
        let stop = match facts.stop.as_deref() {
            Some("stop") => Some(StopReason::Stop),
            Some("toolUse") => Some(StopReason::ToolUse),
            Some("length") => Some(StopReason::Length),
            Some("error") => Some(StopReason::Error),
            Some("aborted") => Some(StopReason::Aborted),
            _ => None,
        };
        let text = match role {
            MessageRole::Assistant => self.live.streamed().unwrap_or(note).to_owned(),
            MessageRole::User if !self.prompted => REDACTED.to_owned(),
            _ => note.to_owned(),
        };
        let calls_tools = stop == Some(StopReason::ToolUse);
        match role {
            MessageRole::Assistant => {
                self.report.saw_any_event = true;
                self.assistant(&text, stop, None, calls_tools);
                self.live.end_line(sink);
                self.live.message_over();
            }
            MessageRole::User => self.prompted = true,
            _ => {}
        }
        self.live.line(Stream::Own, note, sink);
        let preview = preview(&text);
        AgentEvent::Message { role, preview, model: None, stop, usage: None, error: None, calls_tools }
    }

    /// A line outside the protocol.
    fn text_line(&mut self, text: &str, complete: bool, sink: &mut dyn Sink) {
        self.live.end_line(sink);
        outside::line(&mut self.report, text, complete, sink);
    }
}

impl Adapter for PiAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => {
                if let Some(known) = known(bytes).filter(|known| self.says_enough(known)) {
                    return self.known(bytes, known, sink);
                }
                // What was held came before this line.
                self.flush_except(bytes, sink);
                let known = with_record(bytes, |record| self.record(bytes, record, sink)).is_some();
                if !known {
                    self.report.torn |= !complete && bytes.trim_ascii_start().starts_with(b"{");
                    self.text_line(&String::from_utf8_lossy(bytes), *complete, sink);
                }
            }
            Line::Oversize(long) => {
                self.flush(sink);
                self.oversize(long, sink);
            }
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        for (call, line) in std::mem::take(&mut self.held) {
            with_record(&line, |record| {
                if let Some(body) = &record.partial_result {
                    self.live.progress(&call, &body.text(), sink);
                }
            });
        }
    }

    fn report(&self) -> Report {
        outside::bounded(&self.report)
    }
}

fn keep_by_events(found: &[AgentEvent], sink: &mut dyn Sink) {
    for record in found.iter().filter_map(encode) {
        sink.record(&record);
    }
}

/// The error of a tool that failed after the last text, and the exit code that its output names (runner-behaviour 1.8).
fn tool_failure(tool: &str, text: &str) -> (String, i32) {
    let code = exit_code(text).filter(|code| *code != 0).unwrap_or(1);
    let quoted: String = text.trim().chars().take(QUOTED).collect();
    (format!("{tool} failed (exit {code}): {quoted}"), code)
}

/// The number in the last "exited with code N", "exit code N" or "exited N".
fn exit_code(text: &str) -> Option<i32> {
    let lower = text.to_ascii_lowercase();
    lower.rmatch_indices("exit").find_map(|(at, word)| {
        let rest = lower.get(at + word.len()..)?;
        let rest = rest.strip_prefix("ed").unwrap_or(rest).trim_start_matches([' ', ':']);
        let rest = rest.strip_prefix("with").unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix("code").unwrap_or(rest).trim_start_matches([' ', ':']);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests;
