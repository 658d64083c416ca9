//! What every test of recordings does with them: an adapter takes the bytes, and what it says is looked at.

// Each test uses a part of it.
#![allow(dead_code)]

use subdeck::agents::{Adapter, Framer, Line, Sink, Talk};
use subdeck::run::{AgentEvent, Evidence, ExitInfo, Report, StepPhase, Stream, TargetState, judge};

/// What an adapter said.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    pub events: Vec<AgentEvent>,
    pub log: String,
    /// Records for the event log, and lines that stand there as they came.
    pub records: Vec<Vec<u8>>,
    /// How many lines stand there as they came, which only lines of the vocabulary on disk may.
    pub kept_lines: usize,
    line: Vec<u8>,
}

impl Sink for Seen {
    fn event(&mut self, event: AgentEvent) {
        self.events.push(event);
    }
    fn keep_line(&mut self) {
        self.kept_lines += 1;
        self.records.push(self.line.clone());
    }
    fn record(&mut self, json: &[u8]) {
        self.records.push(json.to_vec());
    }
    fn text(&mut self, _stream: Stream, text: &str) {
        self.log.push_str(text);
    }
}

/// Gives the adapter the chunks, one after the other.
pub fn replay<'a>(adapter: &mut (impl Adapter + ?Sized), chunks: impl IntoIterator<Item = &'a [u8]>) -> (Seen, Report) {
    let (mut seen, mut framer) = (Seen::default(), Framer::new());
    let take = |line: Line<'_>, adapter: &mut _, seen: &mut Seen| {
        if let Line::Text { bytes, .. } = &line {
            seen.line = bytes.to_vec();
        }
        Adapter::line(adapter, &line, seen);
    };
    for chunk in chunks {
        framer.push(chunk, |line| take(line, adapter, &mut seen));
        adapter.flush(&mut seen);
    }
    framer.finish(|line| take(line, adapter, &mut seen));
    adapter.flush(&mut seen);
    seen.line.clear();
    (seen, adapter.report())
}

/// What becomes of a step whose child reported this and ended so.
pub fn outcome(report: &Report, exit: ExitInfo) -> (StepPhase, i32, Option<String>) {
    let judged = judge(&Evidence { report, exit, spawn_error: None, ending: None, stderr_tail: "" });
    (judged.outcome.phase, judged.outcome.exit_code, judged.outcome.error)
}

/// Every recording whose file `scene` knows has its row in the table, and there are no other rows.
pub fn check_rows<'a>(scene: impl Fn(&str) -> Option<String>, rows: impl IntoIterator<Item = &'a str>) {
    let dir = format!("{}/tests/fixtures/streams", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .expect("the folder")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned()))
        .filter(|name| !name.ends_with(".sent"))
        .filter_map(|name| scene(&name))
        .collect();
    files.sort();
    let mut rows: Vec<&str> = rows.into_iter().collect();
    rows.sort_unstable();
    assert_eq!(rows, files);
}

/// How the bytes of a recording come changes nothing.
pub fn check_cutting(name: &str, bytes: &[u8], replay: impl Fn(Vec<&[u8]>) -> (Seen, Report)) {
    let whole = replay(vec![bytes]);
    assert_eq!(replay(bytes.split_inclusive(|b| *b == b'\n').collect()), whole, "{name} by line");
    for size in [1, 7, 4093] {
        assert_eq!(replay(bytes.chunks(size).collect()), whole, "{name} by {size}");
    }
}

/// A conversation: the agent says what is recorded, line by line; what was said to it, and the moves of messages.
pub struct Conversation<T> {
    pub talk: T,
    pub sent: Vec<serde_json::Value>,
    pub moves: Vec<(String, TargetState)>,
    pub done: Vec<bool>,
}

impl<T: Talk> Conversation<T> {
    fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            assert_eq!(line.last(), Some(&b'\n'), "a whole line");
            self.sent.push(serde_json::from_slice(line).expect("JSON"));
        }
    }

    /// Has the recording play; `before` is asked before each line what a person does now, `asked` what a person says to
    /// an event.
    pub fn of(
        recording: Vec<u8>,
        mut adapter: impl Adapter,
        talk: T,
        mut before: impl FnMut(&str, &mut T) -> Option<Vec<u8>>,
        mut asked: impl FnMut(&AgentEvent, &mut T) -> Option<Vec<u8>>,
    ) -> Self {
        let mut this = Self { talk, sent: Vec::new(), moves: Vec::new(), done: Vec::new() };
        let first = this.talk.prompt("Do it.");
        this.write(&first);
        let text = String::from_utf8(recording).expect("text");
        for line in text.lines() {
            if let Some(bytes) = before(line, &mut this.talk) {
                this.write(&bytes);
            }
            let mut seen = Seen::default();
            adapter.line(&Line::Text { bytes: line.as_bytes(), complete: true }, &mut seen);
            for event in seen.events {
                for bytes in [this.talk.answer(&event), asked(&event, &mut this.talk)].into_iter().flatten() {
                    this.write(&bytes);
                }
                let receipts = this.talk.receipts(&event);
                this.moves.extend(receipts.into_iter().map(|receipt| (receipt.id, receipt.state)));
                this.done.push(this.talk.done());
            }
        }
        this
    }
}
