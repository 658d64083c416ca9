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

use super::ahead::{FLOOD, Reader};
use super::capture::Allowance;
use super::clock::now;
use super::intake::{Intake, Took};
use super::keep::{Keeper, Pending, Tail, Told};
use super::kept::Kept;
use super::live_log::LiveLog;
use super::notes::{Note, StreamEnd};
use super::understand::{Meaning, Understanding};
use crate::run::{StepId, Stream};
use crate::rundir::RETRY;

/// After the child's exit a silent pipe is given up after this time (runner-behaviour 1.7).
pub const HELD_IDLE: Duration = Duration::from_millis(2000);
/// After the child's exit a pipe is given up after this time, however much still comes.
pub const HELD_MOST: Duration = Duration::from_millis(8000);
/// How often a stream without events says that it is alive.
const SEEN_EVERY: Duration = Duration::from_millis(100);
/// So much may lie between a child that is gone and the pump, in the pipe and in what was read ahead; it is taken
/// however long it takes, because a slow disk is no reason to lose what the child said.
const IN_FLIGHT: u64 = 2 * 1024 * 1024;
/// Bytes per read: large enough that a flood costs few calls, small enough to stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

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

fn run(spec: PumpSpec, woken: &OwnedFd, exited: &AtomicBool, notes: &Sender<Note>) {
    let (step, attempt, stream) = (spec.step, spec.attempt, spec.stream);
    let plain = matches!(spec.meaning, Meaning::Plain);
    let intake = Intake::new(spec.source, spec.raw, spec.allowance, CHUNK);
    let mut keeper = Keeper {
        step,
        stream,
        plain,
        log: spec.log,
        attempt,
        cap: intake.cap(),
        pending: Pending::default(),
        tail: Tail::default(),
        told: Told::default(),
        at: now(),
    };
    let mut reader = Reader::Here(intake);
    let mut understanding = Understanding::new(spec.meaning);
    let mut exit = Exit::default();
    let mut last_note: Option<Instant> = None;
    let mut abandoned = false;
    spec.turn.wait();
    let mut turn = Some(spec.turn);
    loop {
        let took = reader.next();
        exit.look(exited);
        match took {
            Took::End => break,
            Took::Piece(mut piece) => {
                let many = piece.bytes().len();
                // The bytes of a plain command are not understood, so there is nothing to do beside.
                if many >= FLOOD && !plain {
                    reader.go_ahead();
                }
                exit.read(many);
                understanding.take(&mut keeper, &mut piece);
                let has_events = !keeper.pending.events.is_empty();
                if has_events || last_note.is_none_or(|t| t.elapsed() >= SEEN_EVERY) {
                    last_note = Some(Instant::now());
                    if !keeper.tell(notes) {
                        return;
                    }
                }
                Turn::over(&mut turn);
                if exit.is_too_long_ago() {
                    abandoned = true;
                    break;
                }
                continue;
            }
            Took::Dry => {}
        }
        Turn::over(&mut turn);
        // Quiet now: what was not told yet is told, then the thread sleeps until something comes.
        if !keeper.pending.is_empty() {
            last_note = Some(Instant::now());
            if !keeper.tell(notes) {
                return;
            }
        }
        let Some(patience) = exit.patience() else {
            abandoned = true;
            break;
        };
        // Nobody reads ahead of a stream that is dry.
        let Reader::Here(intake) = &mut reader else { continue };
        // What waits for room is tried again also when the child is silent.
        let timeout = if keeper.retry(intake) { patience.or(Some(RETRY)) } else { patience };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = vec![PollFd::new(intake.pipe(), PollFlags::IN)];
        if exit.seen.is_none() {
            fds.push(PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN));
        }
        let _ = poll(&mut fds, timeout.as_ref());
    }
    let intake = reader.into_intake(|mut piece| understanding.take(&mut keeper, &mut piece));
    keeper.at = now();
    let report = understanding.finish(&mut keeper);
    keeper.tell(notes);
    let late = intake.and_then(Intake::into_late);
    let end = StreamEnd { report, tail: keeper.tail.into_bytes(), abandoned, late };
    // The engine is gone when this fails, and nobody is left to be told.
    let _ = notes.blocking_send(Note::Ended { step, attempt, stream, end: Box::new(end) });
}

/// What a pump knows of its child's exit.
struct Exit {
    seen: Option<Instant>,
    last_data: Instant,
    /// Bytes read since.
    read: u64,
}

impl Default for Exit {
    fn default() -> Self {
        Self { seen: None, last_data: Instant::now(), read: 0 }
    }
}

impl Exit {
    fn look(&mut self, exited: &AtomicBool) {
        if self.seen.is_none() && exited.load(Ordering::Acquire) {
            self.last_data = Instant::now();
            self.seen = Some(self.last_data);
        }
    }

    fn read(&mut self, many: usize) {
        if self.seen.is_some() {
            self.last_data = Instant::now();
            self.read = self.read.saturating_add(many as u64);
        }
    }

    /// Whether what still comes cannot be the child's own.
    fn is_too_long_ago(&self) -> bool {
        self.read > IN_FLIGHT && self.seen.is_some_and(|seen| seen.elapsed() >= HELD_MOST)
    }

    /// How long a silent pipe is still waited for, without an end while the child lives; `None` when it is given up.
    #[allow(clippy::option_option, reason = "no limit and no patience are two things")]
    fn patience(&self) -> Option<Option<Duration>> {
        let Some(seen) = self.seen else { return Some(None) };
        let idle = HELD_IDLE.saturating_sub(self.last_data.elapsed());
        let most = HELD_MOST.saturating_sub(seen.elapsed());
        let left = idle.min(most);
        (!left.is_zero()).then_some(Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn what_a_child_left_in_the_pipe_is_taken_and_a_flood_that_outlives_it_is_not() {
        let mut exit = Exit::default();
        exit.read(usize::MAX);
        assert!(!exit.is_too_long_ago() && exit.patience() == Some(None), "the child lives");
        exit.seen = Some(ago(9));
        exit.read(1024 * 1024);
        assert!(!exit.is_too_long_ago(), "a slow disk");
        exit.read(2 * 1024 * 1024);
        assert!(exit.is_too_long_ago());
        exit.seen = Some(ago(7));
        assert!(!exit.is_too_long_ago());
    }

    #[test]
    fn a_silent_pipe_is_waited_for_only_so_long() {
        let gone = AtomicBool::new(true);
        let mut exit = Exit { last_data: ago(60), ..Exit::default() };
        exit.look(&gone);
        let left = exit.patience().unwrap().unwrap();
        assert!(left <= HELD_IDLE && left > HELD_IDLE / 2, "counted from the exit: {left:?}");
        exit.last_data = ago(3);
        assert_eq!(exit.patience(), None, "it is silent");
        (exit.seen, exit.last_data) = (Some(ago(9)), Instant::now());
        assert_eq!(exit.patience(), None, "it trickles on");
    }
}
