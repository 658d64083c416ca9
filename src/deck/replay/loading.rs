//! The first reading of a tape, on a thread of its own: a screen never waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use super::{Known, percent};
use crate::run::replay::{Keeps, Tape, Timeline};

/// As many bytes are read between two looks at whether anybody still waits.
const SLICE: u64 = 1024 * 1024;
/// All that is kept on the way takes about as many bytes.
pub(super) const KEPT: usize = 24 * 1024 * 1024;
/// As many moments are kept at most.
pub(super) const KEPT_MOST: usize = 128;
/// How often a screen asks how far it is.
pub(in crate::deck) const ASK: Duration = Duration::from_millis(33);

/// A tape that was read to its end once.
pub(super) struct Loaded {
    pub(super) tape: Box<dyn Tape>,
    /// When what happened.
    pub(super) line: Timeline,
    /// The run at some of its moments.
    pub(super) keeps: Keeps<Known>,
    /// There were more events than can be played.
    pub(super) cut: bool,
}

#[derive(Default)]
struct Shared {
    /// How much was read, in per cent.
    percent: AtomicU8,
    /// Nobody wants it any more.
    dropped: AtomicBool,
}

/// The reading while it goes on.
pub(super) struct Loading {
    shared: Arc<Shared>,
    found: Receiver<Loaded>,
}

/// How far it is.
pub(super) enum Progress {
    /// So many per cent.
    Reading(u8),
    /// To the end.
    Done(Box<Loaded>),
    /// It broke off.
    BrokenOff,
}

impl Loading {
    /// Begins to read a tape; `beginning` is the run before its first event.
    pub(super) fn begin(tape: Box<dyn Tape>, beginning: Known) -> Self {
        let shared = Arc::new(Shared::default());
        let (give, found) = sync_channel(1);
        let to_tell = Arc::clone(&shared);
        // Without a thread nothing is ever found, which is told like a reading that broke off.
        let _ =
            std::thread::Builder::new().name("replay".to_owned()).spawn(move || read(tape, beginning, &to_tell, &give));
        Self { shared, found }
    }

    pub(super) fn progress(&self) -> Progress {
        match self.found.try_recv() {
            Ok(loaded) => Progress::Done(Box::new(loaded)),
            Err(TryRecvError::Empty) => Progress::Reading(self.shared.percent.load(Ordering::Relaxed)),
            Err(TryRecvError::Disconnected) => Progress::BrokenOff,
        }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.shared.dropped.store(true, Ordering::Relaxed);
    }
}

fn read(mut tape: Box<dyn Tape>, mut known: Known, shared: &Shared, give: &SyncSender<Loaded>) {
    let (mut line, mut keeps, mut cut) = (Timeline::default(), Keeps::default(), false);
    keeps.keep(0, known.clone(), 1);
    let mut place = Some(0);
    while let Some(from) = place {
        if shared.dropped.load(Ordering::Relaxed) {
            return;
        }
        let piece = tape.read(from, SLICE);
        place = piece.next;
        for recorded in &piece.events {
            if !line.push(&recorded.event, recorded.place) {
                (cut, place) = (true, None);
                break;
            }
            known.take(recorded);
            let events = line.len();
            if keeps.wants(events) {
                let most = (KEPT / known.weight()).min(KEPT_MOST);
                keeps.keep(events, known.clone(), most);
            }
        }
        shared.percent.store(percent(place.unwrap_or(0), tape.len()), Ordering::Relaxed);
    }
    cut |= tape.is_cut();
    // Whoever waited may be gone.
    let _ = give.send(Loaded { tape, line, keeps, cut });
}
