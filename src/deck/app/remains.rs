//! Finding and ending what lives on of a run that nobody supervises any more, on threads of their own: a look goes through
//! every process of the machine, and an end takes its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{App, Source, wall};
use crate::deck::left::{Door, Left, Swept, processes};
use crate::deck::update::say;
use crate::run::{StepId, Timestamp};

/// What was found is looked for again after this time, as long as there is anything.
const AGAIN: Duration = Duration::from_secs(5);

/// What was asked and answered.
#[derive(Default)]
pub(super) struct Remains {
    door: Option<Door>,
    looking: Option<oneshot::Receiver<Vec<Left>>>,
    ending: Option<oneshot::Receiver<Swept>>,
    /// When it was looked for last.
    looked: Option<Instant>,
}

/// What a thread had to say.
pub(super) enum Told {
    Found(Vec<Left>),
    Ended(Swept),
}

impl Remains {
    pub(super) fn new(door: Option<Door>) -> Self {
        Self { door, ..Self::default() }
    }

    pub(super) fn can_end(&self) -> bool {
        self.door.as_ref().is_some_and(|door| door.end.is_some())
    }

    /// Returns when a thread has something to say, and never while none does. May be dropped at any time.
    pub(super) async fn told(&mut self) -> Told {
        if let Some(ending) = &mut self.ending {
            let swept = ending.await.unwrap_or_default();
            self.ending = None;
            return Told::Ended(swept);
        }
        let Some(looking) = &mut self.looking else { return std::future::pending().await };
        let found = looking.await.unwrap_or_default();
        self.looking = None;
        Told::Found(found)
    }
}

impl<S: Source> App<'_, S> {
    /// Looks for what lives on, where the run is lost and that is not known or may be another answer by now.
    pub(super) fn look_for_remains(&mut self) {
        let lost = self.source.state().lost.is_some();
        let due = self.remains.looked.is_none_or(|at| !self.ui.left.is_empty() && at.elapsed() >= AGAIN);
        if !lost || !due || self.remains.looking.is_some() || self.remains.ending.is_some() {
            return;
        }
        let Some(look) = self.remains.door.as_ref().map(|door| Arc::clone(&door.look)) else { return };
        self.remains.looked = Some(Instant::now());
        self.remains.looking = spawned(move || look());
    }

    /// When it is looked for again.
    pub(super) fn remains_due(&self) -> Option<Instant> {
        let waits = self.remains.looking.is_none() && self.remains.ending.is_none() && !self.ui.left.is_empty();
        self.remains.looked.filter(|_| waits).map(|at| at + AGAIN)
    }

    /// Ends what lives on, or what a step left.
    pub(super) fn end_remains(&mut self, step: Option<StepId>, now: Timestamp) {
        let Some(end) = self.remains.door.as_ref().and_then(|door| door.end.clone()) else { return };
        let count = self.ui.left.iter().filter(|left| step.is_none_or(|step| step == left.step)).count();
        // What a look that still goes on finds is old by then.
        self.remains.looking = None;
        self.remains.ending = spawned(move || end(step));
        let begun = self.remains.ending.is_some();
        self.ui.ending_left = begun;
        let what = processes(count);
        let text = if begun { format!("ending {what} …") } else { format!("{what} could not be ended") };
        say(&mut self.ui, now, !begun, &text);
    }

    /// Takes what a thread has said.
    pub(super) fn take_told(&mut self, told: Told) {
        match told {
            Told::Found(found) => self.ui.left = found,
            Told::Ended(Swept { ended, survivors }) => {
                self.ui.ending_left = false;
                self.ui.left.retain(|left| !ended.contains(&left.pid));
                self.remains.looked = None;
                let pids = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let text = match (ended.len(), survivors.len()) {
                    (0, 0) => "nothing lived on any more".to_owned(),
                    (n, 0) => format!("{} ended: pid {}", processes(n), pids(&ended)),
                    (_, n) => format!("{} would not die: pid {}", processes(n), pids(&survivors)),
                };
                say(&mut self.ui, wall(), !survivors.is_empty(), &text);
            }
        }
    }
}

fn spawned<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<oneshot::Receiver<T>> {
    let (sender, answer) = oneshot::channel();
    let work = move || drop(sender.send(work()));
    std::thread::Builder::new().name("deck-remains".to_owned()).spawn(work).is_ok().then_some(answer)
}
