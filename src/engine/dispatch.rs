//! The one loop of the runner: it waits for what happens, names it, and hands it to the room's other files. State
//! changes only through the recorder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::accept::Examining;
use super::clock::{now, slept};
use super::descriptors::Descriptors;
use super::inside::is_of_silence;
use super::notes::Note;
use super::recorder::Recorder;
use super::schedule::{self, Move, Schedule};
use super::signals::{Asked, Signals};
use super::step::Active;
use super::tree;
use crate::plan::Plan;
use crate::run::{ControlSource, Effect, Metric, RunPhase, Stage, StepId, Timestamp, What, decide, verdict};
use crate::rundir::transcript::Transcript;
use crate::rundir::{ControlRequest, Home, InboxReader, Place, RunDir, Watch};

/// Notes that may wait for the loop; a pump that is further ahead waits.
const NOTES: usize = 1024;
/// Shorter sleeps of the machine are not worth a record.
const LEAST_SLEEP: Duration = Duration::from_secs(1);
/// While a folder of the inbox is missing, how often it is looked for.
const MISSING_LOOK: Duration = Duration::from_millis(50);
/// Notes handled before the loop looks at signals and control files again.
const BATCH: usize = 256;

/// The runner of one run.
pub struct Engine {
    pub(super) plan: Plan,
    pub(super) dir: RunDir,
    /// The directory itself, whatever is done to its name.
    pub(super) home: Arc<Home>,
    /// Where it was at the last look.
    pub(super) place: Place,
    pub(super) recorder: Recorder,
    pub(super) schedule: Schedule,
    /// The files that may be open at once.
    pub(super) descriptors: Descriptors,
    pub(super) active: BTreeMap<StepId, Active>,
    pub(super) sender: Sender<Note>,
    /// Whole outputs of finished steps by their keys, for placeholders.
    pub(super) texts: BTreeMap<String, String>,
    /// Final texts of every step that ran, for the result.
    pub(super) finals: BTreeMap<StepId, String>,
    /// What `{previous}` stands for.
    pub(super) previous: String,
    /// Messages for steps that have not started, and those handed to children, by request id.
    pub(super) held: Vec<super::control::Held>,
    /// What agents asked.
    pub(super) questions: super::questions::Questions,
    /// Captured bytes that the whole run may still keep.
    pub(super) capture: super::capture::Capture,
    /// The run's last sweep was begun.
    pub(super) swept: bool,

    /// Logs of steps that have ended whose end waits for room.
    pub(super) late: Vec<super::finish::Late>,
    /// The runner put something into its own inbox.
    pub(super) posted: bool,
    /// What was told to the package's readers: each cause once.
    pub(super) told: BTreeSet<String>,
    /// How long the machine has slept since it was started, as last seen.
    slept: Duration,
    /// Room on the disk.
    pub(super) disk: super::disk::Disk,
    /// The transcripts of steps that run.
    pub(super) transcripts: BTreeMap<StepId, Transcript>,
    /// Steps whose child is gone and whose work is looked at.
    pub(super) examining: BTreeMap<StepId, Examining>,
    /// What the runs below were told.
    pub(super) passed: super::nested::Passed,
    /// The runs that were started in its steps.
    pub(super) inner: super::inside::InnerRuns,
}

/// Everything that the loop listens to beside its notes.
pub struct Doors {
    /// Signals to the runner.
    pub signals: Signals,
    /// Wakes when a process below the runner has ended, its own child or one that fell to it.
    pub deaths: tokio::signal::unix::Signal,
    /// The control inbox.
    pub inbox: InboxReader,
    /// Wakes when something may lie in it.
    pub watch: Watch,
    /// Since when a folder of the inbox is missing.
    pub missing: Option<Instant>,
}

enum Happened {
    Signal(Asked),
    Control,
    Death,
    Stirred,
    Note(Option<Note>),
    Time,
}

/// What came of performing what was due.
pub(super) struct Performed {
    /// Something was due, so that other moves may be.
    some: bool,
    /// When the next effect is due.
    next: Option<Timestamp>,
}

impl Engine {
    /// An engine for a plan whose run directory exists and whose lock is held.
    #[must_use]
    pub fn new(
        plan: Plan,
        home: Arc<Home>,
        recorder: Recorder,
        capture: super::capture::Capture,
        on: crate::run::OnPermission,
    ) -> (Self, Receiver<Note>) {
        let (sender, receiver) = channel(NOTES);
        let descriptors = Descriptors::for_children(schedule::widest(&plan));
        let inner = super::inside::InnerRuns::of(home.dir());
        let engine = Self {
            plan,
            dir: home.dir().clone(),
            home,
            place: Place::There,
            recorder,
            schedule: Schedule::default().at_once(descriptors.at_once),
            descriptors,
            active: BTreeMap::new(),
            sender,
            texts: BTreeMap::new(),
            finals: BTreeMap::new(),
            previous: String::new(),
            held: Vec::new(),
            questions: super::questions::Questions::new(on),
            capture,
            swept: false,
            late: Vec::new(),
            posted: false,
            told: BTreeSet::new(),
            slept: slept(),
            disk: super::disk::Disk::default(),
            transcripts: BTreeMap::new(),
            examining: BTreeMap::new(),
            passed: super::nested::Passed::default(),
            inner,
        };
        (engine, receiver)
    }

    /// Runs until every child is gone and everything is on disk.
    pub async fn run(&mut self, mut notes: Receiver<Note>, doors: &mut Doors) {
        // Requests that lie there already are honoured before anything starts.
        let mut look_at = Instant::now();
        let mut open = false;
        loop {
            if std::mem::take(&mut self.posted) || Instant::now() >= look_at {
                if open {
                    self.keep_inbox(doors);
                }
                self.read_inbox(&mut doors.inbox);
                self.hear_inner_runs();
                self.look_home();
                // However much else happens: a watcher that lost an event costs a request only this much time.
                let missing = doors.missing.map(|_| MISSING_LOOK);
                let wait =
                    [Some(doors.watch.look_again()), doors.inbox.look_again(), missing].into_iter().flatten().min();
                let behind = doors.inbox.is_behind();
                look_at = Instant::now() + wait.filter(|_| !behind).unwrap_or_default();
            }
            let (finished, next) = self.advance();
            self.end_examinations();
            self.pass_down();
            // Readers may wait for what children and signals need not wait for.
            self.recorder.flush_due();
            if !std::mem::replace(&mut open, true) {
                super::runner::open_doors(&self.home, doors, &mut self.recorder);
                // What came before anybody watched is not lost.
                look_at = Instant::now();
                continue;
            }
            if finished && self.active.is_empty() && self.examining.is_empty() {
                break;
            }
            self.write_late();
            self.watch_the_silent();
            let late = (!self.late.is_empty()).then(|| Instant::now() + crate::rundir::RETRY);
            let deadline =
                [next.map(to_instant), self.recorder.next_write(), Some(look_at), late].into_iter().flatten().min();
            let happened = tokio::select! {
                biased;
                asked = doors.signals.next() => Happened::Signal(asked),
                () = doors.watch.changed() => Happened::Control,
                _ = doors.deaths.recv() => Happened::Death,
                note = notes.recv() => Happened::Note(note),
                () = self.inner.stirred() => Happened::Stirred,
                () = until(deadline) => Happened::Time,
            };
            match happened {
                Happened::Signal(asked) => self.asked_by_signal(asked),
                Happened::Note(Some(note)) => {
                    self.note(note);
                    for _ in 1..BATCH {
                        let Ok(note) = notes.try_recv() else { break };
                        self.note(note);
                    }
                }
                Happened::Control => look_at = Instant::now(),
                Happened::Stirred => drop(self.look_at_inner_runs()),
                Happened::Death => {
                    let mut own = self.examining_pids();
                    own.extend(self.active.values().map(Active::child_pid));
                    tree::reap_orphans(&own);
                }
                Happened::Note(None) | Happened::Time => {}
            }
            self.notice_sleep();
            self.watch_disk();
        }
        // From here on the inbox is looked at once more and nobody waits for it.
        doors.watch.release();
        self.finish(doors).await;
    }

    /// Time that the machine slept counts for no budget (product 5).
    fn notice_sleep(&mut self) {
        let total = slept();
        let more = total.saturating_sub(self.slept);
        if more >= LEAST_SLEEP {
            self.slept = total;
            self.recorder.record(What::Slept { ms: u64::try_from(more.as_millis()).unwrap_or(u64::MAX) });
        }
    }

    /// Makes the moves and performs the effects that are due until neither leads to more: a step that ends without a child
    /// sends no note that would wake the loop. Returns whether nothing more will be started, and when the next effect is due.
    fn advance(&mut self) -> (bool, Option<Timestamp>) {
        loop {
            let finished = self.move_on();
            let Performed { some, next } = self.perform_due();
            if !some {
                return (finished, next);
            }
        }
    }

    /// Makes the moves that are due; returns whether nothing more will be started.
    fn move_on(&mut self) -> bool {
        loop {
            // A step that waits for its next attempt has no child and is not over.
            let waits = self.recorder.state().steps.iter().filter(|s| s.next_attempt.is_some()).map(|s| s.id);
            let examined = self.examining.keys().copied();
            let alive: BTreeSet<StepId> = self.active.keys().copied().chain(waits).chain(examined).collect();
            let moves = self.schedule.next(&self.plan, self.recorder.state(), &alive);
            let mut changed = false;
            for step in moves {
                match step {
                    Move::Finish => return true,
                    Move::BeginGroup(logical) => self.recorder.record(What::GroupStarted { logical }),
                    Move::EndGroup { logical, success } => {
                        self.gather_group(logical);
                        self.recorder.record(What::GroupEnded { logical, success });
                        changed = true;
                    }
                    Move::Start(id) => {
                        self.start_step(id);
                        // A child that could not be started has ended already.
                        changed |= !self.active.contains_key(&id);
                    }
                    Move::Carry(id) => {
                        self.carry_step(id);
                        changed = true;
                    }
                    Move::Skip(id) => {
                        self.skip_step(id);
                        changed = true;
                    }
                    Move::Exhaust => {
                        self.exhaust();
                        changed = true;
                    }
                    Move::Refuse(id) => {
                        self.refuse_step(id);
                        changed = true;
                    }
                }
            }
            if !changed {
                return false;
            }
        }
    }

    /// Performs every effect that is due.
    pub(super) fn perform_due(&mut self) -> Performed {
        let (mut some, mut looked) = (false, false);
        // Each effect is recorded and so changes what is due; the bound is only against a fault in the rules.
        for _ in 0..64 {
            let decision = decide(self.recorder.state(), now());
            if decision.due.is_empty() {
                return Performed { some, next: decision.next };
            }
            some = true;
            // What shows no life itself may wait for a run that was started in it.
            if !std::mem::replace(&mut looked, true)
                && decision.due.iter().any(is_of_silence)
                && self.look_at_inner_runs()
            {
                continue;
            }
            for effect in decision.due {
                self.perform(effect);
            }
        }
        Performed { some: false, next: Some(now() + Duration::from_millis(100)) }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::TimeOutRun => self.time_out_run(None),
            Effect::End { step, cause, message } => {
                self.recorder.record(What::StepEnding { step, cause, message, source: None });
            }
            Effect::Reach { step, metric, stage, used, message } => {
                self.recorder.record(What::BudgetReached { step, metric, stage, used, message });
                if let Some(step) = step.filter(|_| metric == Metric::Turns && stage == Stage::Soft) {
                    self.ask_to_wrap_up(step);
                }
            }
            Effect::Raise { step, notice } => self.raise(step, notice),
            Effect::Clear { step, id } => self.recorder.record(What::AttentionCleared { step, id }),
            Effect::Again(step) => self.try_again(step),
            Effect::GiveUp(step) => self.give_up(step),
            Effect::Abort(step) => {
                if let Some(active) = self.active.get_mut(&step) {
                    active.abort();
                }
                self.recorder.record(What::AbortSent { step });
                self.settle_given_up(step);
            }
            Effect::Expire { step, id } => self.expire_question(step, &id),
            Effect::Signal { step, signal, group, cause } => {
                let Some(active) = self.active.get_mut(&step) else { return };
                let pid = active.pid().unwrap_or(0);
                self.recorder.record(What::SignalSent { step, signal, pid, group, cause });
                active.signal(signal, group);
            }
        }
    }

    /// The sentence of the run's timeout, with the configured limit where there is one (run-directory 3.2).
    pub(super) fn time_out_run(&mut self, source: Option<ControlSource>) {
        let timeout_ms = self.recorder.state().timeout_ms;
        let message = match timeout_ms {
            Some(ms) => format!("Subagent timed out after {ms}ms."),
            None => "Subagent timed out.".to_owned(),
        };
        if self.recorder.state().is_ending() && !self.recorder.state().interrupted {
            return;
        }
        self.recorder.record(What::RunTimedOut { timeout_ms, message, source });
    }

    /// Takes in one note.
    fn note(&mut self, note: Note) {
        match note {
            Note::Agent { step, events, lines } => {
                for (at, event) in events {
                    self.agent_said(step, at, event);
                }
                if !lines.is_empty() {
                    self.recorder.absorb(now(), What::OutputLines { step, lines, open: false });
                }
            }
            Note::Seen { step, bytes, lines, open } => {
                let what = match lines.is_empty() {
                    true => What::OutputSeen { step, bytes },
                    false => What::OutputLines { step, lines, open },
                };
                self.recorder.absorb(now(), what);
            }
            Note::Truncated { step, stream, cap } => self.recorder.record(What::OutputTruncated { step, stream, cap }),
            Note::LogTrouble { step, error } => {
                self.recorder.record(What::LogFailed { step, error });
            }
            Note::Exited { step, attempt, exit, at } => {
                if let Some(active) = self.active.get_mut(&step)
                    && active.attempt == attempt
                {
                    active.exited(exit, at);
                    self.recorder.record(What::ChildExited { step, exit });
                    self.questions_gone(step, |_| true);
                    self.end_if_done(step);
                }
            }
            Note::Ended { step, attempt, stream, end } => {
                if let Some(active) = self.active.get_mut(&step)
                    && active.attempt == attempt
                {
                    active.stream_ended(stream, *end);
                    self.end_if_done(step);
                }
            }
            Note::Swept { step: Some(step), swept } => self.step_swept(step, swept),
            Note::Swept { step: None, .. } => {}
            Note::Examined { step, ledger } => self.examined(step, *ledger),
        }
    }

    fn asked_by_signal(&mut self, asked: Asked) {
        let source = source_of(asked, std::env::var(tree::RUN_MARK).ok(), std::env::var(tree::STEP_MARK).ok());
        match asked.want {
            super::signals::Want::Interrupt => self.take(ControlRequest::Interrupt { source }),
            super::signals::Want::Stop => self.take(ControlRequest::Stop { source }),
            super::signals::Want::Kill => self.kill(&source),
        }
    }

    /// The end of the run: verdict, documents, nothing left alive.
    async fn finish(&mut self, doors: &mut Doors) {
        self.sweep_run().await;
        self.close_inbox(&mut doors.inbox);
        let end = verdict(self.recorder.state());
        let state = match end.phase {
            RunPhase::Running | RunPhase::Queued => RunPhase::Failed,
            phase => phase,
        };
        self.write_end(state, end.error, &mut doors.signals).await;
    }
}

/// Who is behind a signal: the system for a command in front that is gone, else whoever sent it. What a step of another
/// run started says so, because that run ends what its steps leave.
fn source_of(asked: Asked, run: Option<String>, step: Option<String>) -> ControlSource {
    if let Some(pid) = asked.orphaned_by {
        let reason = Some(format!("the command in front (pid {pid}) is gone"));
        return ControlSource { via: "runner".to_owned(), reason, ..ControlSource::default() };
    }
    let number = step.and_then(|s| s.parse().ok()).map(|flat| StepId(flat).number());
    let reason = run.zip(number).map(|(run, step)| {
        format!("this run was started by step {step} of run {run}, which ends what the step leaves when it ends")
    });
    let key = Some(asked.signal.to_owned());
    ControlSource { via: "signal".to_owned(), key, reason, ..ControlSource::default() }
}

fn to_instant(at: Timestamp) -> Instant {
    Instant::now() + super::clock::wait_until(at)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::super::signals::Want;
    use super::*;

    #[test]
    fn a_signal_says_as_much_of_its_sender_as_is_known() {
        let asked = Asked { want: Want::Stop, signal: "SIGTERM", orphaned_by: None };
        let text = |asked, run: Option<&str>, step: Option<&str>| {
            source_of(asked, run.map(str::to_owned), step.map(str::to_owned)).to_string()
        };
        assert_eq!(text(asked, None, None), "somebody (signal, SIGTERM)");
        let nested = text(asked, Some("r1"), Some("1"));
        assert!(nested.starts_with("somebody (signal, SIGTERM): this run was started by step 2 of run r1"), "{nested}");
        assert_eq!(text(asked, Some("r1"), Some("x")), "somebody (signal, SIGTERM)");
        let orphaned = text(Asked { orphaned_by: Some(7), ..asked }, Some("r1"), Some("1"));
        assert_eq!(orphaned, "the runner: the command in front (pid 7) is gone");
    }
}
