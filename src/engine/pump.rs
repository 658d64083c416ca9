//! The pump: one thread a stream, from a child's pipe to the disk, and from there what it means to the engine.
//!
//! Reading never waits for a screen or a reader (law 7); only a disk that cannot keep up slows a child. A disk that
//! fails loses bytes of the log, says so once, and never changes what becomes of the child.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::Sender;

use super::capture::Allowance;
use super::clock::now;
use super::keep::{Keeper, Pending, Tail, Told};
use super::kept::Kept;
use super::live_log::LiveLog;
use super::notes::{Note, StreamEnd};
use super::raw::{Chunks, RawLog};
use crate::agents::{Adapter, Framer, Line, Sink};
use crate::run::{AgentEvent, Report, StepId, Stream};
use crate::rundir::records::{ChildContext, annotate, plain_line};
use crate::rundir::{EventLog, RETRY};

/// After the child's exit a silent pipe is given up after this time (runner-behaviour 1.7).
pub const HELD_IDLE: Duration = Duration::from_millis(2000);
/// After the child's exit a pipe is given up after this time, however much still comes.
pub const HELD_MOST: Duration = Duration::from_millis(8000);
/// How often a stream without events says that it is alive.
const SEEN_EVERY: Duration = Duration::from_millis(100);
/// Bytes per read: large enough that a flood costs few calls, small enough to stay in the second-level cache.
pub(super) const CHUNK: usize = 256 * 1024;

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
    pub raw: Option<Kept>,
    /// The step's live log.
    pub log: LiveLog,
    /// How much may be kept.
    pub allowance: Allowance,
    /// What the bytes mean.
    pub meaning: Meaning,
    /// Which of a child's streams is looked at first.
    pub turn: Turn,
}

/// Of what a child printed before anybody looked nobody knows the order; its standard output is taken first.
#[derive(Debug)]
pub enum Turn {
    /// Looks first, and lets go of this then.
    First(SyncSender<()>),
    /// Waits until the other one has let go.
    Second(Receiver<()>),
}

impl Turn {
    /// The turns of two pumps.
    #[must_use]
    pub fn both() -> [Self; 2] {
        let (first, second) = sync_channel(0);
        [Self::First(first), Self::Second(second)]
    }

    fn wait(&self) {
        if let Self::Second(other) = self {
            // Nothing is ever sent.
            let _ = other.recv();
        }
    }

    fn over(turn: &mut Option<Self>) {
        if let Some(Self::First(hold)) = turn.take() {
            drop(hold);
        }
    }
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
        raw: spec.raw.take().map(RawLog::new),
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
    let mut chunks = Chunks::new(CHUNK);
    let mut exit_seen: Option<Instant> = None;
    let mut last_data = Instant::now();
    let mut last_note: Option<Instant> = None;
    let mut abandoned = false;
    spec.turn.wait();
    let mut turn = Some(spec.turn);
    loop {
        match rustix::io::read(&spec.source, chunks.free()) {
            Ok(0) => break,
            Ok(n) => {
                last_data = Instant::now();
                let piece = chunks.read(n);
                keeper.at = now();
                keeper.keep(&piece);
                mean(&mut meaning, &mut framer, &mut keeper, piece.bytes());
                keeper.pending.bytes += n as u64;
                let has_events = !keeper.pending.events.is_empty();
                if has_events || last_note.is_none_or(|t| t.elapsed() >= SEEN_EVERY) {
                    last_note = Some(Instant::now());
                    if !keeper.tell(notes) {
                        return;
                    }
                }
                Turn::over(&mut turn);
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
        Turn::over(&mut turn);
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
        // What waits for room is tried again also when the child is silent.
        let timeout = if keeper.retry() { timeout.or(Timespec::try_from(RETRY).ok()) } else { timeout };
        let bell_wanted = exit_seen.is_none();
        let mut fds = vec![PollFd::new(&spec.source, PollFlags::IN)];
        if bell_wanted {
            fds.push(PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN));
        }
        let _ = poll(&mut fds, timeout.as_ref());
    }
    keeper.at = now();
    let report = finish(meaning, framer, &mut keeper);
    keeper.settle();
    keeper.tell(notes);
    let late = keeper.raw.take().and_then(RawLog::into_late);
    let end = StreamEnd { report, tail: keeper.tail.into_bytes(), abandoned, late };
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
