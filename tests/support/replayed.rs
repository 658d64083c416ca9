//! What every test of recordings does with them: an adapter takes the bytes, and what it says is looked at.

// Each test uses a part of it.
#![allow(dead_code)]

use std::hash::{BuildHasher, RandomState};

use subdeck::agents::pi::{WHOLE_ARGS, decode_line};
use subdeck::agents::{Adapter, Framer, Line, Sink, Talk};
use subdeck::run::{
    AgentEvent, Evidence, ExitInfo, MessageRole, Report, StepPhase, Stream, TargetState, Tokens, ToolOutcome, judge,
};

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
    adapter.end(&mut seen);
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

/// A recording that breaks off before the byte `end`, the last one of the record that says that all went well, is never
/// complete: at 50 places that are random, and at that byte. `SUBDECK_CUT_SEED` chooses the places of an earlier run.
pub fn check_breaking_off(name: &str, bytes: &[u8], end: usize, replay: impl Fn(Vec<&[u8]>) -> (Seen, Report)) {
    let seed = std::env::var("SUBDECK_CUT_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seed: u64 = seed.unwrap_or_else(|| RandomState::new().hash_one(name));
    let places = (0..50u64).map(|n| {
        // splitmix64
        let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (end as u64 + 1)).expect("a place in the recording")
    });
    let ok = ExitInfo { code: Some(0), signal: None };
    for cut in places.chain([end]) {
        let (_, report) = replay(vec![&bytes[..cut]]);
        let phase = outcome(&report, ok).0;
        assert_ne!(phase, StepPhase::Complete, "{name} cut at {cut} of {end} (SUBDECK_CUT_SEED={seed})");
    }
}

/// Lines of types that are in no recording, one of them after each line: each is counted, and nothing else changes, in the
/// events, in what they amount to, in the log and in what is recorded.
pub fn check_unknown(name: &str, bytes: &[u8], unknown: &[&str], replay: impl Fn(Vec<&[u8]>) -> (Seen, Report)) {
    let (plain, report) = replay(vec![bytes]);
    let (mut mixed, mut added) = (Vec::new(), 0);
    for (line, unknown) in bytes.split_inclusive(|b| *b == b'\n').zip(unknown.iter().cycle()) {
        mixed.extend_from_slice(line);
        if line.ends_with(b"\n") {
            mixed.extend_from_slice(unknown.as_bytes());
            mixed.push(b'\n');
            added += 1;
        }
    }
    let (seen, with) = replay(vec![&mixed]);
    assert_eq!(with, report, "{name}");
    let is_unknown = |event: &&AgentEvent| matches!(event, AgentEvent::Unknown { .. });
    assert_eq!(seen.events.iter().filter(is_unknown).count(), added, "{name}");
    // Of reports that came together only the last one is told.
    let told = |events: &[AgentEvent]| {
        let told = |event: &&AgentEvent| {
            !matches!(
                event,
                AgentEvent::Unknown { .. } | AgentEvent::TextDelta { .. } | AgentEvent::ToolProgress { .. }
            )
        };
        events.iter().filter(told).cloned().collect::<Vec<_>>()
    };
    assert_eq!(told(&seen.events), told(&plain.events), "{name}");
    assert_eq!(seen.log, plain.log, "{name}");
    let decoded = |seen: &Seen| {
        let mut decoded = Vec::new();
        for record in &seen.records {
            decode_line(record, &mut decoded);
        }
        decoded
    };
    let (again, before) = (decoded(&seen), decoded(&plain));
    assert_eq!(again.iter().filter(is_unknown).count(), added, "{name}: who reads the log counts the same");
    assert_eq!(told(&again), told(&before), "{name}");
}

/// What a person reads in a recording, as far as it stands in the events.
#[derive(Debug, Default)]
pub struct Told {
    /// The sessions that began, each with its model.
    pub sessions: Vec<(Option<String>, Option<String>)>,
    /// What each tool was told, in the order they started.
    pub calls: Vec<(String, String)>,
    /// Tools in the order they ended, then those that never did.
    pub tools: Vec<(String, Option<ToolOutcome>)>,
    /// What was used, and what it cost in millionths of a dollar.
    pub tokens: Tokens,
    pub cost: u64,
    pub turns: usize,
    /// Answers of a model that is known, and how many of them told what they used.
    pub answers: usize,
    pub priced_answers: usize,
}

impl Told {
    /// Reads them; what is unknown or not understood is none of a recording.
    pub fn of(name: &str, events: &[AgentEvent]) -> Self {
        let mut this = Self::default();
        let mut open: Vec<(Option<&str>, &str)> = Vec::new();
        let mut cost = 0.0;
        for event in events {
            match event {
                AgentEvent::SessionStarted { session_id, model } => {
                    this.sessions.push((session_id.clone(), model.clone()));
                }
                AgentEvent::ToolStarted { call, tool, args, .. } => {
                    assert!(open.iter().all(|(known, _)| *known != call.as_deref()), "{name}: a call starts once");
                    this.calls.push((tool.clone(), args.clone()));
                    open.push((call.as_deref(), tool));
                }
                AgentEvent::ToolEnded { call, tool, outcome, .. } => {
                    let at = open.iter().position(|(id, _)| *id == call.as_deref()).expect("the call was opened");
                    let (_, started) = open.remove(at);
                    assert_eq!(tool.as_deref(), Some(started), "{name}");
                    this.tools.push((started.to_owned(), Some(*outcome)));
                }
                AgentEvent::Message { role: MessageRole::Assistant, usage, model, .. } => {
                    this.answers += usize::from(model.is_some());
                    this.priced_answers += usize::from(usage.is_some());
                    if let Some(usage) = usage {
                        this.tokens += usage.tokens;
                        cost += usage.cost.map_or(0.0, |cost| cost.0);
                    }
                }
                AgentEvent::Used(usage) => {
                    this.tokens += usage.tokens;
                    cost += usage.cost.map_or(0.0, |cost| cost.0);
                }
                AgentEvent::TurnStarted => this.turns += 1,
                AgentEvent::Unknown { kind } => panic!("{name}: unknown {kind}"),
                AgentEvent::Unparsed { .. } => panic!("{name}: not understood"),
                _ => {}
            }
        }
        this.cost = (cost * 1e6_f64).round() as u64;
        this.tools.extend(open.into_iter().map(|(_, tool)| (tool.to_owned(), None)));
        this
    }

    /// The tools, as a row of a table has them.
    pub fn tools(&self) -> Vec<(&str, Option<ToolOutcome>)> {
        self.tools.iter().map(|(tool, end)| (tool.as_str(), *end)).collect()
    }

    /// The tools, where a row says no more than whether they worked.
    pub fn worked(&self) -> Vec<(&str, Option<bool>)> {
        self.tools().into_iter().map(|(tool, end)| (tool, end.map(|end| end == ToolOutcome::Ok))).collect()
    }

    /// The sessions, as a row has them.
    pub fn sessions(&self) -> Vec<(Option<&str>, Option<&str>)> {
        self.sessions.iter().map(|(id, model)| (id.as_deref(), model.as_deref())).collect()
    }
}

/// The records in the event log lead back to what was said, beside what is never recorded, where they are made from
/// another vocabulary than that of the log.
pub fn check_records(name: &str, seen: &Seen) {
    let mut decoded = Vec::new();
    for record in &seen.records {
        assert!(record.starts_with(b"{\"type\":\""), "{}", String::from_utf8_lossy(record));
        decode_line(record, &mut decoded);
    }
    let plain = |event: &AgentEvent| match event.clone() {
        AgentEvent::TextDelta { .. } | AgentEvent::ToolProgress { .. } | AgentEvent::Called { .. } => None,
        AgentEvent::ToolStarted { call, tool, args, path, .. } => {
            Some(AgentEvent::ToolStarted { call, tool, args, path, about: Default::default() })
        }
        // That vocabulary knows only whether a call went well.
        AgentEvent::ToolEnded { call, tool, outcome: ToolOutcome::Cancelled | ToolOutcome::Denied, preview } => {
            Some(AgentEvent::ToolEnded { call, tool, outcome: ToolOutcome::Error, preview })
        }
        // How that vocabulary names a model at the start of a session.
        AgentEvent::Response { id: None, command, .. } if command == "get_state" => None,
        event => Some(event),
    };
    let events: Vec<_> = seen.events.iter().filter_map(plain).collect();
    let decoded: Vec<_> = decoded.iter().filter_map(plain).collect();
    assert_eq!(decoded, events, "{name}");
}

/// A call of a recording whose command is made much longer than the line that an event has: the record has all of it, and
/// still leads back to the event. Whether there is such a call.
pub fn check_long_call(name: &str, bytes: &[u8], replay: impl Fn(Vec<&[u8]>) -> (Seen, Report)) -> bool {
    const SHORT: &str = "echo tool-finished";
    let text = String::from_utf8_lossy(bytes);
    if !name.contains("bash") || !text.contains(SHORT) {
        return false;
    }
    let long = format!("echo {}", (0..1000).map(|n| format!("word{n} ")).collect::<String>());
    let (seen, _) = replay(vec![text.replace(SHORT, &long).as_bytes()]);
    let whole = |record: &&Vec<u8>| {
        let Ok(record) = serde_json::from_slice::<serde_json::Value>(record) else { return false };
        let args = record.get(WHOLE_ARGS).unwrap_or(&record["args"]);
        record["type"] == "tool_execution_start" && args.to_string().contains(&long)
    };
    assert!(seen.records.iter().any(|record| whole(&record)), "{name}: {:?}", seen.events);
    for event in &seen.events {
        if let AgentEvent::ToolStarted { args, .. } = event {
            assert!(args.len() <= AgentEvent::ARGS_PREVIEW, "{name}: {args}");
        }
    }
    check_records(name, &seen);
    true
}

/// All the arguments of the first call of a recording, as its record has them.
pub fn first_arguments(seen: &Seen) -> String {
    let calls = seen.records.iter().filter_map(|record| serde_json::from_slice::<serde_json::Value>(record).ok());
    let mut calls = calls.filter(|record| record["type"] == "tool_execution_start");
    let call = calls.next().expect("a call");
    call.get(WHOLE_ARGS).unwrap_or(&call["args"]).to_string()
}

/// What the records say that the model thought, each with the text that it said after it: of the recordings in the table
/// that, and of others nothing. What a model thinks is in no event; who opens a message reads it in its record.
pub fn check_thoughts<'a>(table: &[(&str, &str, &str)], played: impl IntoIterator<Item = (&'a str, Seen)>) {
    let mut found = Vec::new();
    for (name, seen) in played {
        for record in &seen.records {
            // Lines of text stand among those of the vocabulary on disk.
            let Ok(record) = serde_json::from_slice::<serde_json::Value>(record) else { continue };
            if record["type"] != "message_end" {
                continue;
            }
            let blocks = record["message"]["content"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str| {
                let texts =
                    blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block[kind].as_str());
                texts.collect::<Vec<_>>().join("|")
            };
            if !of("thinking").is_empty() {
                found.push((name.to_owned(), of("thinking"), of("text")));
            }
        }
    }
    let mut table: Vec<_> = table.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect();
    table.sort();
    found.sort();
    assert_eq!(found, table);
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
