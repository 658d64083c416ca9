//! The pump: one thread a stream, from a child's pipe to the disk, and from there what it means to the engine.
//!
//! Reading never waits for a screen or a reader (law 7); only a disk that cannot keep up slows a child. A disk that
//! fails loses bytes of the log, says so once, and never changes what becomes of the child.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::Sender;

use super::capture::Allowance;
use super::clock::now;
use super::notes::{Note, StreamEnd};
use crate::agents::{Adapter, Framer, Line, Sink};
use crate::run::{AgentEvent, Report, StepId, Stream, Timestamp};
use crate::rundir::records::{ChildContext, annotate, plain_line};
use crate::rundir::{EventLog, MarkWriter};

/// After the child's exit a silent pipe is given up after this time (runner-behaviour 1.7).
pub const HELD_IDLE: Duration = Duration::from_millis(2000);
/// After the child's exit a pipe is given up after this time, however much still comes.
pub const HELD_MOST: Duration = Duration::from_millis(8000);
/// Bytes of a stream's end that are kept in memory for errors and final texts of agents.
pub const TAIL: usize = 128 * 1024;
/// How often a stream without events says that it is alive.
const SEEN_EVERY: Duration = Duration::from_millis(100);
/// Bytes per read: large enough that a flood costs few calls, small enough to stay in the second-level cache.
const CHUNK: usize = 256 * 1024;
/// Lines of output that one report to the engine carries at most (runner-behaviour 9).
const LINES_A_NOTE: usize = 10;
/// Longest line in a report, in bytes.
const LINE_BYTES: usize = 512;

/// The live log of a step (`output-N.log` with its marks), shared by the pumps of its streams.
#[derive(Clone, Debug)]
pub struct LiveLog(Arc<Mutex<LiveLogInner>>);

#[derive(Debug)]
struct LiveLogInner {
    file: Option<File>,
    marks: Option<MarkWriter>,
    offset: u64,
    at_line_start: bool,
    last: Stream,
    failed: bool,
}

impl LiveLog {
    /// A log that appends to `file`, which now is `offset` bytes long.
    #[must_use]
    pub fn new(file: Option<File>, marks: Option<MarkWriter>, offset: u64) -> Self {
        Self(Arc::new(Mutex::new(LiveLogInner {
            file,
            marks,
            offset,
            at_line_start: true,
            last: Stream::Own,
            failed: false,
        })))
    }

    /// Appends. A change of stream in the middle of a line begins a new line first, so that the two stay apart.
    ///
    /// # Errors
    /// The first failure is returned, later ones are swallowed: the caller tells about it once.
    pub fn append(&self, stream: Stream, attempt: u32, at: Timestamp, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.failed {
            return Ok(());
        }
        let log = &mut *log;
        let result = (|| {
            let Some(file) = &mut log.file else { return Ok(()) };
            if !log.at_line_start && log.last != stream {
                file.write_all(b"\n")?;
                log.offset += 1;
                log.at_line_start = true;
            }
            if let Some(marks) = &mut log.marks {
                marks.note(log.offset, at, stream, attempt)?;
            }
            file.write_all(bytes)?;
            log.offset += bytes.len() as u64;
            Ok(())
        })();
        log.at_line_start = bytes.last() == Some(&b'\n');
        log.last = stream;
        log.failed = result.is_err();
        result
    }

    /// Marks bytes that another file holds (plain commands keep their streams in files of their own).
    ///
    /// # Errors
    /// As for [`LiveLog::append`].
    pub fn mark(&self, stream: Stream, attempt: u32, at: Timestamp, offset: u64) -> io::Result<()> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.failed {
            return Ok(());
        }
        let result = match &mut log.marks {
            Some(marks) => marks.note(offset, at, stream, attempt),
            None => Ok(()),
        };
        log.failed = result.is_err();
        result
    }
}

/// Whose records a pump writes.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The run.
    pub run: String,
    /// The step.
    pub step: StepId,
    /// The agent's name.
    pub agent: String,
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

/// Everything a pump needs.
pub struct PumpSpec {
    /// Which step.
    pub step: StepId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Which stream.
    pub stream: Stream,
    /// The pipe.
    pub source: OwnedFd,
    /// Where the bytes go as they came, and how many are there already.
    pub raw: Option<(File, u64)>,
    /// The step's live log.
    pub log: LiveLog,
    /// How much may be kept.
    pub allowance: Allowance,
    /// What the bytes mean.
    pub meaning: Meaning,
}

/// A running pump.
#[derive(Debug)]
pub struct Pump {
    exited: Arc<AtomicBool>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// The inode of the pipe, to find who holds it.
    pub inode: Option<u64>,
}

impl Pump {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no pipe or thread can be made.
    pub fn start(spec: PumpSpec, notes: Sender<Note>) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&spec.source)?;
        rustix::fs::fcntl_setfl(&spec.source, flags | rustix::fs::OFlags::NONBLOCK)?;
        let inode = rustix::fs::fstat(&spec.source).ok().map(|s| s.st_ino);
        let (woken, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let exited = Arc::new(AtomicBool::new(false));
        let seen_exit = Arc::clone(&exited);
        let thread = std::thread::Builder::new()
            .name(format!("pump-{}", spec.step))
            .stack_size(256 * 1024)
            .spawn(move || run(spec, &woken, &seen_exit, &notes))?;
        Ok(Self { exited, wake, thread: Some(thread), inode })
    }

    /// Tells the pump that the child is gone: from now on it waits only so long for the pipe to close.
    pub fn child_exited(&self) {
        self.exited.store(true, Ordering::Release);
        // The pipe is only a bell; when it cannot be rung the thread is gone.
        let _ = rustix::io::write(&self.wake, b"x");
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        // The thread ends by itself; nobody waits for it.
        drop(self.thread.take());
    }
}

fn run(mut spec: PumpSpec, woken: &OwnedFd, exited: &AtomicBool, notes: &Sender<Note>) {
    let (step, attempt, stream) = (spec.step, spec.attempt, spec.stream);
    let mut keeper = Keeper {
        step,
        stream,
        raw: spec.raw.take(),
        plain: matches!(spec.meaning, Meaning::Plain),
        log: spec.log,
        attempt,
        allowance: spec.allowance,
        pending: Pending::default(),
        tail: Tail::default(),
        told: Told::default(),
        at: now(),
    };
    let mut meaning = spec.meaning;
    let mut framer = Framer::new();
    let mut buffer = vec![0u8; CHUNK];
    let mut exit_seen: Option<Instant> = None;
    let mut last_data = Instant::now();
    let mut last_note: Option<Instant> = None;
    let mut abandoned = false;
    loop {
        match rustix::io::read(&spec.source, &mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                last_data = Instant::now();
                let Some(bytes) = buffer.get(..n) else { break };
                keeper.at = now();
                keeper.keep(bytes);
                mean(&mut meaning, &mut framer, &mut keeper, bytes);
                keeper.pending.bytes += n as u64;
                let has_events = !keeper.pending.events.is_empty();
                if has_events || last_note.is_none_or(|t| t.elapsed() >= SEEN_EVERY) {
                    last_note = Some(Instant::now());
                    if !keeper.tell(notes) {
                        return;
                    }
                }
                if exit_seen.is_none_or(|t| t.elapsed() < HELD_MOST) {
                    continue;
                }
                abandoned = true;
                break;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
        if exit_seen.is_none() && exited.load(Ordering::Acquire) {
            exit_seen = Some(Instant::now());
            last_data = Instant::now();
        }
        // Quiet now: what was not told yet is told, then the thread sleeps until something comes.
        if !keeper.pending.is_empty() {
            last_note = Some(Instant::now());
            if !keeper.tell(notes) {
                return;
            }
        }
        let timeout = match exit_seen {
            None => None,
            Some(exit) => {
                let idle = HELD_IDLE.saturating_sub(last_data.elapsed());
                let most = HELD_MOST.saturating_sub(exit.elapsed());
                let left = idle.min(most);
                if left.is_zero() {
                    abandoned = true;
                    break;
                }
                Timespec::try_from(left).ok()
            }
        };
        let bell_wanted = exit_seen.is_none();
        let mut fds = vec![PollFd::new(&spec.source, PollFlags::IN)];
        if bell_wanted {
            fds.push(PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN));
        }
        let _ = poll(&mut fds, timeout.as_ref());
    }
    keeper.at = now();
    let report = finish(meaning, framer, &mut keeper);
    keeper.tell(notes);
    let end = StreamEnd { report, tail: keeper.tail.into_bytes(), abandoned };
    // The engine is gone when this fails, and nobody is left to be told.
    let _ = notes.blocking_send(Note::Ended { step, attempt, stream, end: Box::new(end) });
}

fn mean(meaning: &mut Meaning, framer: &mut Framer, keeper: &mut Keeper, bytes: &[u8]) {
    let mut records = Vec::new();
    match meaning {
        Meaning::Agent { adapter, events, whose } => {
            framer.push(bytes, |line| said(adapter.as_mut(), &line, keeper, whose, &mut records));
            adapter.flush(&mut Collector { keeper, records: &mut records, context: whose.context(), line: b"" });
            write_records(events, &records);
            keeper.flush_log();
        }
        Meaning::AgentError { events, whose } => {
            keeper.tail.push(bytes);
            keeper.log_bytes(bytes);
            framer.push(bytes, |line| printed(&line, keeper, whose, &mut records));
            write_records(events, &records);
        }
        Meaning::Plain => {
            keeper.tail.push(bytes);
            keeper.gather_lines(bytes);
        }
    }
}

/// The rest of a stream whose last line had no end.
fn finish(meaning: Meaning, mut framer: Framer, keeper: &mut Keeper) -> Option<Report> {
    let mut records = Vec::new();
    match meaning {
        Meaning::Agent { mut adapter, events, whose } => {
            framer.finish(|line| said(adapter.as_mut(), &line, keeper, &whose, &mut records));
            adapter.flush(&mut Collector { keeper, records: &mut records, context: whose.context(), line: b"" });
            write_records(&events, &records);
            keeper.flush_log();
            Some(adapter.report())
        }
        Meaning::AgentError { events, whose } => {
            framer.finish(|line| printed(&line, keeper, &whose, &mut records));
            write_records(&events, &records);
            None
        }
        Meaning::Plain => None,
    }
}

fn said(adapter: &mut dyn Adapter, line: &Line<'_>, keeper: &mut Keeper, whose: &Whose, records: &mut Vec<u8>) {
    let bytes = match line {
        Line::Text { bytes, .. } => bytes,
        Line::Oversize(long) => long.prefix,
    };
    adapter.line(line, &mut Collector { keeper, records, context: whose.context(), line: bytes });
}

fn printed(line: &Line<'_>, keeper: &Keeper, whose: &Whose, records: &mut Vec<u8>) {
    let bytes = match line {
        Line::Text { bytes, .. } => bytes,
        Line::Oversize(long) => long.prefix,
    };
    plain_line(bytes, Stream::Err, &whose.context(), keeper.at, records);
}

fn write_records(events: &EventLog, records: &[u8]) {
    if !records.is_empty() {
        // The event log is best effort here: what it lost is counted by the log itself, the state is not.
        let _ = events.append_children(records);
    }
}

/// Keeps bytes and gathers what the engine is to be told.
struct Keeper {
    step: StepId,
    stream: Stream,
    raw: Option<(File, u64)>,
    plain: bool,
    log: LiveLog,
    attempt: u32,
    allowance: Allowance,
    pending: Pending,
    tail: Tail,
    told: Told,
    at: Timestamp,
}

#[derive(Default)]
struct Pending {
    events: Vec<(Timestamp, AgentEvent)>,
    /// Text for the live log, written once a chunk.
    text: Vec<u8>,
    text_stream: Option<Stream>,
    /// The unfinished last line of the text, for the lines that the engine is told.
    lines: Vec<String>,
    partial: String,
    bytes: u64,
    truncated: bool,
    trouble: Option<String>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.bytes == 0 && self.lines.is_empty()
    }
}

/// What is said only once.
#[derive(Default)]
struct Told {
    truncated: bool,
    trouble: bool,
}

impl Keeper {
    /// Keeps the bytes as they came, as far as the allowance goes.
    fn keep(&mut self, bytes: &[u8]) {
        if self.raw.is_none() {
            return;
        }
        let granted = self.allowance.take(bytes.len());
        self.pending.truncated |= granted < bytes.len();
        let Some((file, offset)) = &mut self.raw else { return };
        let Some(kept) = bytes.get(..granted) else { return };
        if kept.is_empty() {
            return;
        }
        let start = *offset;
        *offset += kept.len() as u64;
        let result = file.write_all(kept);
        let failed = result.is_err();
        self.trouble(result.err());
        if failed {
            self.raw = None;
        } else if self.plain {
            let marked = self.log.mark(self.stream, self.attempt, self.at, start);
            self.trouble(marked.err());
        }
    }

    fn trouble(&mut self, error: Option<io::Error>) {
        if let Some(error) = error
            && !self.told.trouble
        {
            self.told.trouble = true;
            self.pending.trouble = Some(error.to_string());
        }
    }

    fn log_bytes(&mut self, bytes: &[u8]) {
        let appended = self.log.append(self.stream, self.attempt, self.at, bytes);
        self.trouble(appended.err());
        self.gather_lines(bytes);
    }

    fn text(&mut self, stream: Stream, text: &str) {
        if self.pending.text_stream.is_some_and(|s| s != stream) {
            self.flush_log();
        }
        self.pending.text_stream = Some(stream);
        self.pending.text.extend_from_slice(text.as_bytes());
    }

    fn flush_log(&mut self) {
        let text = std::mem::take(&mut self.pending.text);
        let stream = self.pending.text_stream.take().unwrap_or(self.stream);
        if !text.is_empty() {
            let appended = self.log.append(stream, self.attempt, self.at, &text);
            self.trouble(appended.err());
            self.gather_lines(&text);
        }
        // The buffer's memory is kept for the next chunk unless one burst made it huge.
        if text.capacity() <= CHUNK {
            self.pending.text = text;
            self.pending.text.clear();
        }
    }

    /// Remembers the newest non-blank lines; only the end of a large chunk is looked at.
    fn gather_lines(&mut self, bytes: &[u8]) {
        let start = bytes.len().saturating_sub(LINES_A_NOTE * LINE_BYTES);
        if start > 0 {
            self.pending.partial.clear();
        }
        let Some(end) = bytes.get(start..) else { return };
        let text = String::from_utf8_lossy(end);
        let mut pieces = text.split('\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LINE_BYTES.saturating_sub(self.pending.partial.len());
            self.pending.partial.push_str(floor(piece, room));
            if pieces.peek().is_some() {
                let line = std::mem::take(&mut self.pending.partial);
                if !line.trim().is_empty() {
                    self.pending.lines.push(line.trim_end().to_owned());
                }
            }
        }
        let surplus = self.pending.lines.len().saturating_sub(LINES_A_NOTE);
        self.pending.lines.drain(..surplus);
    }

    /// Tells the engine what has gathered; `false` when the engine is gone.
    fn tell(&mut self, notes: &Sender<Note>) -> bool {
        let step = self.step;
        if std::mem::take(&mut self.pending.truncated) && !self.told.truncated {
            self.told.truncated = true;
            let note = Note::Truncated { step, stream: self.stream, cap: self.allowance.cap };
            if notes.blocking_send(note).is_err() {
                return false;
            }
        }
        if let Some(error) = self.pending.trouble.take()
            && notes.blocking_send(Note::LogTrouble { step, error }).is_err()
        {
            return false;
        }
        let events = std::mem::take(&mut self.pending.events);
        let lines = std::mem::take(&mut self.pending.lines);
        let bytes = std::mem::take(&mut self.pending.bytes);
        let note = if events.is_empty() {
            if bytes == 0 && lines.is_empty() {
                return true;
            }
            Note::Seen { step, bytes, lines }
        } else {
            Note::Agent { step, events, lines }
        };
        notes.blocking_send(note).is_ok()
    }
}

/// The longest prefix of `text` that has at most `room` bytes.
fn floor(text: &str, room: usize) -> &str {
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

/// The last [`TAIL`] bytes of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or(bytes);
        // Twice the size before it is cut, so that a flood of small chunks does not move memory each time.
        if self.0.len() + bytes.len() > 2 * TAIL {
            let surplus = (self.0.len() + bytes.len()).saturating_sub(TAIL).min(self.0.len());
            self.0.drain(..surplus);
        }
        self.0.extend_from_slice(bytes);
    }

    fn into_bytes(mut self) -> Vec<u8> {
        let surplus = self.0.len().saturating_sub(TAIL);
        self.0.drain(..surplus);
        self.0
    }
}

struct Collector<'a> {
    keeper: &'a mut Keeper,
    records: &'a mut Vec<u8>,
    context: ChildContext<'a>,
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
        if !annotate(self.line, &self.context, self.keeper.at, self.records) {
            plain_line(self.line, Stream::Out, &self.context, self.keeper.at, self.records);
        }
    }

    fn record(&mut self, json: &[u8]) {
        annotate(json, &self.context, self.keeper.at, self.records);
    }

    fn text(&mut self, stream: Stream, text: &str) {
        self.keeper.text(stream, text);
    }
}
