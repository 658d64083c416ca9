//! Events of agents that speak another vocabulary than that of the event log, which is pi's: handed on together with
//! their record.

use super::Sink;
use super::pi::encode;
use crate::run::{AgentEvent, MessageRole, StopReason, Usage};
use crate::text::prefix;

/// Hands an event on, and its record.
pub(super) fn tell(event: AgentEvent, sink: &mut dyn Sink) {
    if let Some(record) = encode(&event) {
        sink.record(&record);
    }
    sink.event(event);
}

/// Tells of something that an agent said and nobody knows, by the agent's word and the type that it named.
pub(super) fn unknown(agent: &str, kind: &str, sink: &mut dyn Sink) {
    let kind = format!("{agent} {kind}");
    tell(AgentEvent::Unknown { kind: prefix(kind.trim(), AgentEvent::KIND).to_owned() }, sink);
}

/// As much of a text as an event has.
pub(super) fn preview(text: &str) -> String {
    prefix(text, AgentEvent::PREVIEW).to_owned()
}

/// What the model said in a turn.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub said: &'a str,
    pub model: Option<&'a str>,
    pub stop: Option<StopReason>,
    pub usage: Option<Usage>,
    pub error: Option<String>,
    pub calls_tools: bool,
}

impl Answer<'_> {
    /// The event.
    pub(super) fn event(self) -> AgentEvent {
        AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: preview(self.said),
            model: self.model.map(str::to_owned),
            stop: self.stop,
            usage: self.usage,
            error: self.error,
            calls_tools: self.calls_tools,
        }
    }
}

/// Collects what an adapter hands on, for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub events: Vec<AgentEvent>,
    pub log: String,
    pub records: Vec<String>,
    pub kept_lines: usize,
}

#[cfg(test)]
impl Sink for Seen {
    fn event(&mut self, event: AgentEvent) {
        self.events.push(event);
    }
    fn keep_line(&mut self) {
        self.kept_lines += 1;
    }
    fn record(&mut self, json: &[u8]) {
        self.records.push(String::from_utf8(json.to_vec()).expect("text"));
    }
    fn text(&mut self, _stream: crate::run::Stream, text: &str) {
        self.log.push_str(text);
    }
}

/// Gives the adapter these bytes, in pieces.
#[cfg(test)]
pub(super) fn play(adapter: &mut (impl super::Adapter + ?Sized), stream: &str) -> (Seen, crate::run::Report) {
    let (mut seen, mut framer) = (Seen::default(), super::Framer::new());
    for chunk in stream.as_bytes().chunks(65_536) {
        framer.push(chunk, |line| adapter.line(&line, &mut seen));
    }
    framer.finish(|line| adapter.line(&line, &mut seen));
    adapter.end(&mut seen);
    (seen, adapter.report())
}
