//! What a long event log held when somebody began to look at it, read on a thread of its own: the state by all its
//! events, and the newest of them. A screen shows the status until then and never waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use tokio::sync::Notify;

use super::merge::know_steps;
use super::records;
use super::tail::Tail;
use crate::run::replay::Spot;
use crate::run::{AgentEvent, Event, RunState, StepId, What, reduce};

/// So many bytes are read between two looks at whether anybody still waits.
const PIECE: u64 = 4 * 1024 * 1024;

/// The reading of a log.
#[derive(Debug)]
pub(super) struct Past {
    shared: Arc<Shared>,
    len: u64,
    found: Receiver<Found>,
}

/// What was found in it.
#[derive(Debug)]
pub(super) struct Found {
    /// Where the log goes on.
    pub(super) tail: Tail,
    /// The state by all that was read.
    pub(super) reduced: RunState,
    /// The newest events and where they stand, oldest first.
    pub(super) newest: Vec<(Event, Spot)>,
    /// The steps of which older ones were left out.
    pub(super) cut: BTreeMap<StepId, LeftOut>,
}

/// What was left out of the events of a step: from the event with which number on nothing is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Of what its agent said; `None` where all of that is there.
    pub said: Option<u64>,
    /// Of everything else.
    pub other: Option<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Up to where it was read, in bytes.
    read: AtomicU64,
    /// Nobody wants it any more.
    dropped: AtomicBool,
    /// Told when another hundredth was read, and at the end.
    moved: Notify,
}

impl Past {
    /// Begins to read what a tail has before it. `reduced` is the state by what was read of it already, `status` what
    /// the run says of its steps. Gives the tail back where no thread can be had.
    pub(super) fn begin(tail: Tail, reduced: RunState, status: Option<Arc<RunState>>) -> Result<Self, Tail> {
        let (read, len) = tail.progress();
        let shared = Arc::new(Shared { read: AtomicU64::new(read), ..Shared::default() });
        let (give, found) = sync_channel(1);
        // The thread is handed the tail once it is there, so that the tail is not lost where it is not.
        let (hand, handed) = sync_channel::<Tail>(1);
        let to_tell = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("past".to_owned()).spawn(move || {
            let Ok(tail) = handed.recv() else { return };
            if let Some(found) = read_all(tail, len, reduced, status.as_deref(), &to_tell) {
                let _ = give.send(found);
            }
            drop(give);
            to_tell.moved.notify_one();
        });
        match thread {
            Ok(_) => match hand.send(tail) {
                Ok(()) => Ok(Self { shared, len, found }),
                Err(unsent) => Err(unsent.0),
            },
            Err(_) => Err(tail),
        }
    }

    /// What was found, once everything is read. `Err` when the reading broke off.
    pub(super) fn found(&self) -> Option<Result<Box<Found>, ()>> {
        match self.found.try_recv() {
            Ok(found) => Some(Ok(Box::new(found))),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(())),
        }
    }

    /// How far it was read, of how many bytes.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.shared.read.load(Ordering::Relaxed), self.len)
    }

    /// Returns when more was read. May be dropped and called again.
    pub(super) async fn moved(&self) {
        self.shared.moved.notified().await;
    }
}

impl Drop for Past {
    fn drop(&mut self) {
        self.shared.dropped.store(true, Ordering::Relaxed);
    }
}

fn read_all(
    mut tail: Tail,
    len: u64,
    mut reduced: RunState,
    status: Option<&RunState>,
    shared: &Shared,
) -> Option<Found> {
    let mut newest = Newest::default();
    let (mut events, mut hundredth) = (Vec::new(), 0);
    loop {
        let piece = tail.read_on(PIECE, |start, line| {
            let good = records::decode(line, &mut events);
            for (mut event, nth) in events.drain(..).zip(0..) {
                know_steps(status, &mut reduced, &mut event);
                reduce(&mut reduced, &event);
                newest.add(event, Spot::of(start, nth));
            }
            good
        });
        if piece.restarted {
            // Another file: whoever follows begins with it as with the first.
            return None;
        }
        let (read, _) = tail.progress();
        shared.read.store(read, Ordering::Relaxed);
        if shared.dropped.load(Ordering::Relaxed) {
            return None;
        }
        if !piece.behind || read >= len {
            let cut = newest.left_out();
            return Some(Found { tail, reduced, newest: newest.in_order(), cut });
        }
        let now = read.saturating_mul(100) / len.max(1);
        if now != hundredth {
            hundredth = now;
            shared.moved.notify_one();
        }
    }
}

/// An event, its number among all, and where it stands.
#[derive(Debug)]
struct Kept {
    number: u64,
    event: Event,
    place: Spot,
}

/// The newest events of each step, and of each step those that its agent did not say apart, which are few and matter
/// long. Bounded by all of them together: the more steps there are the fewer are kept of each.
#[derive(Debug)]
struct Newest {
    rings: BTreeMap<(Option<StepId>, bool), VecDeque<Kept>>,
    /// As many are kept in a ring at most.
    quota: usize,
    kept: usize,
    next: u64,
    /// The rings of which older ones were left out.
    cut: BTreeSet<(Option<StepId>, bool)>,
}

impl Default for Newest {
    fn default() -> Self {
        Self { rings: BTreeMap::new(), quota: Self::OF_ONE, kept: 0, next: 0, cut: BTreeSet::new() }
    }
}

impl Newest {
    /// Kept of one step at most.
    const OF_ONE: usize = 1500;
    /// Kept at most.
    const OF_ALL: usize = 20_000;

    fn add(&mut self, event: Event, place: Spot) {
        let said = matches!(event.what, What::Agent { .. });
        if let What::Agent { event: AgentEvent::TurnStarted | AgentEvent::TurnEnded, .. } = event.what {
            return;
        }
        let of = (event.what.step(), said);
        let ring = self.rings.entry(of).or_default();
        if ring.len() >= self.quota {
            ring.pop_front();
            self.kept -= 1;
            self.cut.insert(of);
        }
        ring.push_back(Kept { number: self.next, event, place });
        self.next += 1;
        self.kept += 1;
        while self.kept > Self::OF_ALL && self.quota > 1 {
            self.quota /= 2;
            for (of, ring) in &mut self.rings {
                if ring.len() > self.quota {
                    self.cut.insert(*of);
                }
                ring.drain(..ring.len().saturating_sub(self.quota));
                ring.shrink_to_fit();
            }
            self.kept = self.rings.values().map(VecDeque::len).sum();
        }
    }

    /// What was left out.
    fn left_out(&self) -> BTreeMap<StepId, LeftOut> {
        let mut all: BTreeMap<StepId, LeftOut> = BTreeMap::new();
        for (of, said) in &self.cut {
            let first = self.rings.get(&(*of, *said)).and_then(VecDeque::front).and_then(|kept| kept.place.number);
            if let Some(step) = of {
                let left = all.entry(*step).or_default();
                *(if *said { &mut left.said } else { &mut left.other }) = Some(first.unwrap_or(u64::MAX));
            }
        }
        all
    }

    fn in_order(self) -> Vec<(Event, Spot)> {
        let mut all: Vec<_> = self.rings.into_values().flatten().collect();
        all.sort_unstable_by_key(|kept| kept.number);
        all.into_iter().map(|kept| (kept.event, kept.place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;
    use crate::run::{RunId, Stage, StepPhase, StepState, Timestamp};
    use crate::rundir::follow::Follower;
    use crate::rundir::records::{ChildContext, annotate};
    use crate::rundir::{RunDir, RunRoot, StatusContext, record, replace, status};

    /// A finished run of two steps whose agents said so many things in turn.
    fn run(root: &RunRoot, things: usize) -> RunDir {
        let dir = RunDir::create(root, &RunId("long".into())).unwrap();
        let step = |flat| StepState {
            id: StepId(flat),
            agent: "a".into(),
            phase: StepPhase::Complete,
            ..StepState::default()
        };
        let state = RunState {
            id: RunId("long".into()),
            phase: crate::run::RunPhase::Complete,
            started_at: Some(Timestamp::from_millis(1)),
            ended_at: Some(Timestamp::from_millis(1_000_000)),
            steps: vec![step(0), step(1)],
            ..RunState::default()
        };
        replace(&dir.status(), &status::encode(&state, &StatusContext { dir: &dir, instance: None })).unwrap();
        fs::write(dir.events(), log(things)).unwrap();
        dir
    }

    fn log(things: usize) -> Vec<u8> {
        let mut log = b"{\"type\":\"subagent.run.started\",\"ts\":1,\"runId\":\"long\",\"cwd\":\"/\"}\n".to_vec();
        for n in 0..things {
            let step = StepId(u32::from(n % 2 == 1));
            let child = ChildContext { run_id: "long", step, agent: "a" };
            let text = format!("thing {n} {}", "and more ".repeat(20));
            let line = format!(
                r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input":3,"output":1}}}}}}"#
            );
            assert!(annotate(line.as_bytes(), &child, Timestamp::from_millis(2 + n as i64), &mut log));
        }
        log
    }

    /// Follows until everything is read; what was given, and how far it was each time.
    fn read(follower: &mut Follower) -> (Vec<(Event, Spot)>, Vec<u64>) {
        let (mut given, mut progress) = (Vec::new(), Vec::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begun = Instant::now();
        loop {
            let changes = follower.poll();
            given.extend(changes.news.into_iter().zip(changes.places));
            let Some((read, all)) = follower.reading() else { return (given, progress) };
            assert!(read <= all && begun.elapsed().as_secs() < 60, "{read} of {all}");
            progress.push(read);
            runtime.block_on(follower.wait());
        }
    }

    #[test]
    fn what_is_read_aside_makes_the_same_picture_and_gives_the_newest() {
        let temp = tempfile::tempdir().unwrap();
        let dir = run(&RunRoot::at(temp.path()), 20_000);
        let (all, _) = read(&mut Follower::open(dir.path()).unwrap());
        assert_eq!(all.len(), 20_001);
        let mut whole = Follower::open(dir.path()).unwrap();
        read(&mut whole);
        let mut aside = Follower::open(dir.path()).unwrap().newest_only();
        let first = aside.poll();
        assert!(first.behind && aside.reading().is_some() && !aside.is_over());
        let meanwhile = aside.state();
        assert!(meanwhile.ended_at.is_some(), "the status is shown meanwhile");
        assert!(meanwhile.tokens().is_zero(), "the first part of a sum is none");
        let (newest, progress) = read(&mut aside);
        assert!(progress.is_sorted(), "{progress:?}");
        assert_eq!((aside.state(), aside.is_over()), (whole.state(), true));
        assert_eq!(aside.state().tokens().input, 60_000);
        // The last ones of each step, in the order of the log, with the places of their records.
        assert_eq!(newest.len(), 2 * Newest::OF_ONE);
        assert_eq!(newest, all[all.len() - newest.len()..]);
        let line = record::read(&dir, newest.last().unwrap().1.record.unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&line).contains("thing 19999 "));
    }

    #[test]
    fn another_log_in_its_place_is_read_from_its_beginning() {
        let temp = tempfile::tempdir().unwrap();
        let dir = run(&RunRoot::at(temp.path()), 20_000);
        let mut follower = Follower::open(dir.path()).unwrap().newest_only();
        follower.poll();
        replace(&dir.events(), &log(5_000)).unwrap();
        read(&mut follower);
        read(&mut follower);
        let mut whole = Follower::open(dir.path()).unwrap();
        read(&mut whole);
        assert_eq!(follower.state(), whole.state());
    }

    #[test]
    fn however_many_steps_there_are_it_stays_bounded() {
        let mut newest = Newest::default();
        let event = |n: u32| {
            let step = StepId(n % 3_000);
            let said = AgentEvent::Unknown { kind: n.to_string() };
            Event { at: Timestamp::from_millis(i64::from(n)), what: What::Agent { step, event: said } }
        };
        let limit = What::BudgetReached {
            step: None,
            metric: crate::run::Metric::Tokens,
            stage: Stage::Soft,
            used: crate::run::Used::all(1.0),
            message: String::new(),
        };
        newest.add(Event { at: Timestamp::default(), what: limit.clone() }, Spot::of(0, 0));
        for n in 0..200_000 {
            newest.add(event(n), Spot::of(u64::from(n), 1));
            assert!(newest.kept <= Newest::OF_ALL + 1);
        }
        let left = newest.left_out()[&StepId(0)];
        let kept = newest.in_order();
        let first = kept.iter().find(|(event, _)| event.what.step() == Some(StepId(0))).unwrap().1;
        assert_eq!((left.said, left.other), (first.number, None), "what was left out is known");
        assert!(
            kept.len() > Newest::OF_ALL / 4 && kept[1..].is_sorted_by_key(|(_, place)| place.number),
            "{}",
            kept.len()
        );
        // What is rare and matters long is there still, and so is what each step said last.
        assert_eq!(kept[0].0.what, limit);
        let last: std::collections::BTreeSet<_> =
            kept[kept.len() - 3_000..].iter().map(|(e, _)| e.what.step()).collect();
        assert_eq!(last.len(), 3_000);
    }
}
