//! Events of agents that speak another vocabulary than that of the event log, which is pi's: handed on together with
//! their record.

use std::borrow::Cow;

use serde_json::Value;

use super::Sink;
use super::pi::{call_begins, call_ends, encode, message};
use crate::run::{AgentEvent, MessageRole, StopReason, ToolOutcome, Usage};
use crate::text::prefix;

/// Hands an event on, and its record.
pub(super) fn tell(event: AgentEvent, sink: &mut dyn Sink) {
    if let Some(record) = encode(&event) {
        sink.record(&record);
    }
    sink.event(event);
}

/// Hands on that a call begins. The event has a line about its arguments; the record has all of them.
pub(super) fn begins(event: AgentEvent, whole: &Value, sink: &mut dyn Sink) {
    if let Some(record) = call_begins(&event, whole) {
        sink.record(&record);
    }
    sink.event(event);
}

/// Hands on that a call of a tool is over. The event has the beginning of what it gave; the record has it as far as it is
/// kept.
pub(super) fn ends(call: &str, tool: String, outcome: ToolOutcome, gave: &str, sink: &mut dyn Sink) {
    let event =
        AgentEvent::ToolEnded { call: Some(call.to_owned()), tool: Some(tool), outcome, preview: preview(gave) };
    if let Some(record) = call_ends(&event, &kept(gave)) {
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

/// What the log says of a call as it begins: its tool and what it is to do, with a mark where that was cut.
pub(super) fn call(tool: &str, args: &str) -> String {
    // Cut at the end of a character, it is shorter by up to three bytes.
    let cut = if args.len() + 4 > AgentEvent::ARGS_PREVIEW { "…" } else { "" };
    if args.is_empty() { tool.to_owned() } else { format!("{tool}: {args}{cut}") }
}

/// Largest text that the record of a message or of the end of a call keeps, and as much of what was thought before it, in
/// bytes.
pub(super) const KEPT: usize = 256 * 1024;

/// Room in that for the words that say how much is missing, in bytes.
pub(super) const MARK: usize = 64;

/// A text as far as it is kept. Of a longer one the beginning, and how much is missing.
pub(super) fn kept(text: &str) -> Cow<'_, str> {
    let beginning = prefix(text, KEPT);
    match text.len() - beginning.len() {
        0 => Cow::Borrowed(text),
        more => Cow::Owned(without_its_end(beginning, more)),
    }
}

/// The beginning of a text of which so many bytes more are not kept.
pub(super) fn without_its_end(beginning: &str, more: usize) -> String {
    format!("{beginning}\n… {more} more bytes")
}

/// Appends to what a model thought, as far as it is kept.
pub(super) fn think(thought: &mut String, more: &str) {
    thought.push_str(prefix(more, KEPT.saturating_sub(thought.len())));
}

/// Appends a thought of its own to those before it.
pub(super) fn think_anew(thought: &mut String, whole: &str) {
    if !thought.is_empty() && !whole.is_empty() {
        think(thought, "\n");
    }
    think(thought, whole);
}

/// What the model said in a turn.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub said: &'a str,
    /// What it thought before that.
    pub thought: &'a str,
    pub model: Option<&'a str>,
    pub stop: Option<StopReason>,
    pub usage: Option<Usage>,
    pub error: Option<String>,
    pub calls_tools: bool,
}

impl Answer<'_> {
    /// Hands it on. The event has the beginning of the text; the record has the text, and the thoughts, which are in no
    /// event: who opens the message reads them there.
    pub(super) fn tell(self, sink: &mut dyn Sink) {
        let event = AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: preview(self.said),
            model: self.model.map(str::to_owned),
            stop: self.stop,
            usage: self.usage,
            error: self.error.as_deref().map(preview),
            calls_tools: self.calls_tools,
        };
        if let Some(record) = message(&event, &kept(self.thought), &kept(self.said)) {
            sink.record(&record);
        }
        sink.event(event);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::pi::decode_line;

    #[test]
    fn the_record_of_an_answer_has_all_of_it_and_the_event_its_beginning() {
        let said = "word ".repeat(2000);
        let thought = "é".repeat(KEPT / 2 + 1);
        let answer = Answer {
            said: &said,
            thought: &thought,
            model: Some("m"),
            stop: Some(StopReason::Stop),
            usage: None,
            error: None,
            calls_tools: true,
        };
        let mut seen = Seen::default();
        answer.tell(&mut seen);
        let record: Value = serde_json::from_str(&seen.records[0]).unwrap();
        let content = &record["message"]["content"];
        let kept = format!("{}\n… 2 more bytes", "é".repeat(KEPT / 2));
        assert_eq!(content[0]["thinking"], kept, "what is missing is told");
        assert_eq!((&content[1]["text"], &content[2]["type"]), (&said.as_str().into(), &"toolCall".into()));
        let mut decoded = Vec::new();
        decode_line(seen.records[0].as_bytes(), &mut decoded);
        assert_eq!(decoded, seen.events, "who reads the log understands the same");
        let AgentEvent::Message { preview, .. } = &seen.events[0] else { panic!("{:?}", seen.events) };
        assert_eq!(preview, &said[..AgentEvent::PREVIEW]);
    }

    #[test]
    fn the_record_of_a_call_that_ends_has_all_that_it_gave_up_to_a_bound() {
        for (gave, kept) in [
            (String::new(), None),
            ("line\n".repeat(2000), Some("line\n".repeat(2000))),
            ("x".repeat(KEPT + 5), Some(format!("{}\n… 5 more bytes", "x".repeat(KEPT)))),
        ] {
            let mut seen = Seen::default();
            ends("c-1", "bash".to_owned(), ToolOutcome::Ok, &gave, &mut seen);
            let record: Value = serde_json::from_str(&seen.records[0]).unwrap();
            assert_eq!(record["result"]["content"][0]["text"].as_str(), kept.as_deref());
            let mut decoded = Vec::new();
            decode_line(seen.records[0].as_bytes(), &mut decoded);
            assert_eq!(decoded, seen.events, "who reads the log understands the same");
        }
    }

    #[test]
    fn thoughts_are_kept_up_to_a_bound() {
        let mut thought = String::new();
        think(&mut thought, "a");
        think(&mut thought, "b");
        think_anew(&mut thought, "");
        think_anew(&mut thought, "c");
        assert_eq!(thought, "ab\nc");
        think_anew(&mut thought, &"é".repeat(KEPT));
        think(&mut thought, "more");
        assert!(thought.len() <= KEPT && thought.len() >= KEPT - 1, "{}", thought.len());
    }
}
