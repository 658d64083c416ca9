//! What the bytes of a stream mean to the engine: lines, and what an agent's adapter makes of them, become events, records
//! and text. Knows nothing of pipes and threads.

use super::intake::Piece;
use super::keep::Keeper;
use crate::agents::{Adapter, Framer, Line, Sink};
use crate::run::{AgentEvent, Report, StepId, Stream};
use crate::rundir::EventLog;
use crate::rundir::records::{ChildContext, annotate, plain_line};
use crate::rundir::transcript::Transcript;

/// A buffer for records is kept for the next piece unless one burst made it huge.
const BUFFER: usize = 256 * 1024;

/// Whose records a pump writes.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The run.
    pub run: String,
    /// The step.
    pub step: StepId,
    /// The agent's name.
    pub agent: String,
    /// What was said and done, for those who keep it.
    pub transcript: Option<Transcript>,
}

impl Whose {
    fn context(&self) -> ChildContext<'_> {
        ChildContext { run_id: &self.run, step: self.step, agent: &self.agent }
    }
}

/// What a pump does with the bytes, beside keeping them as they came.
pub enum Meaning {
    /// The standard output of an agent.
    Agent {
        /// Understands its lines.
        adapter: Box<dyn Adapter>,
        /// Where its records go.
        events: EventLog,
        /// How its records are annotated.
        whose: Whose,
    },
    /// The standard error of an agent: goes into the live log as it comes.
    AgentError {
        /// Where its lines go as records.
        events: EventLog,
        /// How they are annotated.
        whose: Whose,
    },
    /// A stream of a plain command: its file is the log.
    Plain,
}

/// Understands a stream, piece by piece.
pub(super) struct Understanding {
    meaning: Meaning,
    framer: Framer,
    /// The records of one piece, which are written together.
    records: Vec<u8>,
}

impl Understanding {
    /// Nothing came yet.
    pub(super) const fn new(meaning: Meaning) -> Self {
        Self { meaning, framer: Framer::new(), records: Vec::new() }
    }

    /// Takes a piece, which is kept already.
    pub(super) fn take(&mut self, keeper: &mut Keeper, piece: &mut Piece) {
        keeper.kept(piece);
        let bytes = piece.bytes();
        let Self { meaning, framer, records } = self;
        match meaning {
            Meaning::Agent { adapter, events, whose } => {
                framer.push(bytes, |line| said(adapter.as_mut(), &line, keeper, whose, records));
                adapter.flush(&mut Collector { keeper, records, whose, line: b"" });
                write_records(events, records);
                keeper.flush_log();
            }
            Meaning::AgentError { events, whose } => {
                keeper.tail.push(bytes);
                keeper.log_bytes(bytes);
                framer.push(bytes, |line| printed(&line, keeper, whose, records));
                write_records(events, records);
            }
            Meaning::Plain => {
                keeper.tail.push(bytes);
                keeper.gather_lines(bytes);
            }
        }
    }

    /// The rest of a stream whose last line had no end, and what an agent reported in all.
    pub(super) fn finish(self, keeper: &mut Keeper) -> Option<Report> {
        let Self { meaning, mut framer, mut records } = self;
        let records = &mut records;
        match meaning {
            Meaning::Agent { mut adapter, events, whose } => {
                framer.finish(|line| said(adapter.as_mut(), &line, keeper, &whose, records));
                adapter.end(&mut Collector { keeper, records, whose: &whose, line: b"" });
                write_records(&events, records);
                keeper.flush_log();
                Some(adapter.report())
            }
            Meaning::AgentError { events, whose } => {
                framer.finish(|line| printed(&line, keeper, &whose, records));
                write_records(&events, records);
                None
            }
            Meaning::Plain => {
                keeper.close_line();
                None
            }
        }
    }
}

fn said(adapter: &mut dyn Adapter, line: &Line<'_>, keeper: &mut Keeper, whose: &Whose, records: &mut Vec<u8>) {
    let bytes = match line {
        Line::Text { bytes, .. } => bytes,
        Line::Oversize(long) => long.prefix,
    };
    adapter.line(line, &mut Collector { keeper, records, whose, line: bytes });
}

fn printed(line: &Line<'_>, keeper: &Keeper, whose: &Whose, records: &mut Vec<u8>) {
    let bytes = match line {
        Line::Text { bytes, .. } => bytes,
        Line::Oversize(long) => long.prefix,
    };
    plain_line(bytes, Stream::Err, &whose.context(), keeper.at, records);
    if let Some(transcript) = &whose.transcript {
        transcript.line(Stream::Err, bytes, keeper.at);
    }
}

fn write_records(events: &EventLog, records: &mut Vec<u8>) {
    if !records.is_empty() {
        // The event log is best effort here: what it lost is counted by the log itself, the state is not.
        let _ = events.append_children(records);
    }
    records.clear();
    records.shrink_to(BUFFER);
}

struct Collector<'a> {
    keeper: &'a mut Keeper,
    records: &'a mut Vec<u8>,
    whose: &'a Whose,
    line: &'a [u8],
}

impl Sink for Collector<'_> {
    fn event(&mut self, event: AgentEvent) {
        // Deltas are activity; the bytes of the chunk say that already.
        if !matches!(event, AgentEvent::TextDelta { .. } | AgentEvent::ToolProgress { .. }) {
            self.keeper.pending.events.push((self.keeper.at, event));
        }
    }

    fn keep_line(&mut self) {
        let kept = annotate(self.line, &self.whose.context(), self.keeper.at, self.records);
        if !kept {
            plain_line(self.line, Stream::Out, &self.whose.context(), self.keeper.at, self.records);
        }
        match &self.whose.transcript {
            Some(transcript) if kept => transcript.record(self.line, self.keeper.at),
            Some(transcript) => transcript.line(Stream::Out, self.line, self.keeper.at),
            None => {}
        }
    }

    fn record(&mut self, json: &[u8]) {
        annotate(json, &self.whose.context(), self.keeper.at, self.records);
        if let Some(transcript) = &self.whose.transcript {
            transcript.record(json, self.keeper.at);
        }
    }

    fn text(&mut self, stream: Stream, text: &str) {
        self.keeper.text(stream, text);
    }
}
