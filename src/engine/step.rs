//! One step from its start to its end: the child, what it left, and the outcome.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::accept::Settled;
use super::attempt::Over;
use super::child::{self, Child};
use super::clock::now;
use super::dispatch::Engine;
use super::finish::Late;
use super::kept::Kept;
use super::live_log::LiveLog;
use super::notes::{Note, StreamEnd};
use super::prepare::{Prepared, Voice};
use super::pump::{Pump, PumpSpec, Turn};
use super::tree::{self, Seen, Snapshot, Swept};
use super::understand::{Meaning, Whose};
use crate::agents::Talk;
use crate::plan::LogicalStep;
use crate::run::{
    AgentEvent, Artifact, EndingCause, Evidence, ExitInfo, Judgement, NamedOutput, StepId, StepOutcome, StepPhase,
    Stream, TERM_TO_KILL, Timestamp, What, judge,
};
use crate::rundir::MarkWriter;

/// Named outputs that status.json carries are cut at this many bytes; placeholders get the whole text.
const OUTPUT_IN_STATUS: usize = 64 * 1024;

/// A step whose child, or what it left, is not gone yet.
pub struct Active {
    /// The attempt, from 1.
    pub attempt: u32,
    child: Option<Seen>,
    pid: u32,
    /// Processes that are known to be of this step, for what loses its parent later.
    pids: BTreeSet<u32>,
    stdin: Option<tokio::sync::mpsc::UnboundedSender<Vec<u8>>>,
    talk: Option<Box<dyn Talk>>,
    pumps: Vec<Pump>,
    exit: Option<ExitInfo>,
    /// When the child's process ended; sweeping what it left may take seconds more.
    exited_at: Option<Timestamp>,
    out: Option<StreamEnd>,
    err: Option<StreamEnd>,
    plain: bool,
    sweeping: bool,
    log: LiveLog,
    output: Option<super::output_file::OutputFile>,
    /// Lives as long as the child may read it.
    _files: Option<tempfile::TempDir>,
    /// Nobody else goes on with the child's session.
    _session: Option<super::session::SessionLock>,
}

impl Active {
    /// The child's process id while it is not reaped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.exit.is_none().then_some(self.pid)
    }

    /// The process id that the child has or had.
    #[must_use]
    pub const fn child_pid(&self) -> u32 {
        self.pid
    }

    /// Sends bytes to the child's standard input; `false` when it takes none.
    pub fn send(&self, bytes: Vec<u8>) -> bool {
        self.stdin.as_ref().is_some_and(|stdin| stdin.send(bytes).is_ok())
    }

    /// How the child is talked to.
    pub fn talk(&mut self) -> Option<&mut (dyn Talk + 'static)> {
        self.talk.as_deref_mut()
    }

    /// Asks the agent to break off.
    pub fn abort(&mut self) {
        if let Some(bytes) = self.talk.as_mut().and_then(|t| t.abort()) {
            self.send(bytes);
        }
    }

    /// Nothing more will be said to the child.
    fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal to the child, or to its group and, for SIGKILL, to everything below it.
    pub fn signal(&mut self, name: &str, group: bool) {
        let signal = match name {
            "SIGINT" => Signal::INT,
            "SIGKILL" => Signal::KILL,
            _ => Signal::TERM,
        };
        if self.exit.is_some() {
            return;
        }
        // What is below the child is looked at before it can go, and must not keep the signal waiting.
        let below = tree::below(self.pid);
        self.pids.extend(below.iter().map(|s| s.pid));
        if !group {
            if let Some(child) = self.child {
                tree::signal(child, signal);
                tree::signal(child, Signal::CONT);
            }
            return;
        }
        tree::signal_group(self.pid, signal);
        // What was stopped acts on a signal only once it goes on.
        tree::signal_group(self.pid, Signal::CONT);
        if signal == Signal::KILL {
            for seen in below {
                tree::signal(seen, signal);
            }
        }
    }

    /// The child's process ended.
    pub fn exited(&mut self, exit: ExitInfo, at: Timestamp) {
        self.exit = Some(exit);
        self.exited_at = Some(at);
        self.stdin = None;
        for pump in &self.pumps {
            pump.child_exited();
        }
    }

    /// A stream ended.
    pub fn stream_ended(&mut self, stream: Stream, end: StreamEnd) {
        match stream {
            Stream::Err => self.err = Some(end),
            Stream::Out | Stream::Own => self.out = Some(end),
        }
    }

    /// The child's process id, and when it started in the kernel's ticks.
    pub fn identity(&self) -> (u32, Option<u64>) {
        (self.pid, self.child.map(|c| c.start_ticks))
    }

    /// A line of our own in the live log.
    ///
    /// # Errors
    /// As for [`LiveLog::append`].
    pub fn tell_log(&self, line: &str) -> std::io::Result<()> {
        self.log.append(Stream::Own, self.attempt, now(), format!("── {line}\n").as_bytes())
    }

    /// Whether it takes messages; `None` when it is a plain command.
    pub fn steerable(&self) -> Option<crate::run::Steerable> {
        self.talk.as_ref().map(|t| t.steerable())
    }

    fn is_closed(&self) -> bool {
        self.exit.is_some() && self.out.is_some() && self.err.is_some()
    }
}

impl Engine {
    /// Starts the child of an attempt; `reason` says why it is not the first one.
    pub(super) fn spawn(
        &mut self,
        id: StepId,
        attempt: u32,
        prepared: Prepared,
        reason: Option<&str>,
    ) -> std::io::Result<Active> {
        let plain = matches!(prepared.voice, Voice::Plain);
        let way = self.home.way();
        let (out_path, err_path) =
            if plain { (way.external_out(id), way.external_err(id)) } else { (way.raw_out(id), way.raw_err(id)) };
        // Opened before the child starts, so that its streams are read from the moment on in which it prints: only so is it
        // known which of two came first.
        let mut trouble = Vec::new();
        let marks = MarkWriter::open(&way.marks(id)).map_err(|error| trouble.push(error)).ok();
        let mut open = |path: &Path| {
            // The run directory is reached by another way than the one that people know.
            let name = path.file_name().unwrap_or_default().display();
            let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("{name}: {error}"));
            append(path).map_err(|error| trouble.push(named(error))).ok()
        };
        let live = if plain { None } else { open(&way.output(id)) };
        let (raw_out, raw_err) = (open(&out_path), open(&err_path));
        let log = LiveLog::new(live, marks);
        if let Some(error) = trouble.first() {
            self.recorder.record(What::LogFailed { step: id, error: error.to_string() });
        }
        if let Some(reason) = reason {
            // Nothing of the attempts before is thrown away; a line of ours stands between them.
            let line = format!("── attempt {attempt}, after: {reason}\n");
            if let Err(error) = log.append(Stream::Own, attempt, now(), line.as_bytes()) {
                self.recorder.record(What::LogFailed { step: id, error: error.to_string() });
            }
        }
        let child = child::spawn(prepared.spawn, id, attempt, &self.sender)?;
        let Child { pid, start_ticks, stdin, stdout, stderr } = child;
        self.descriptors.give_back(pid);
        let events = self.recorder.log().clone();
        let agent = self.plan.flat().nth(id.flat()).map_or_else(String::new, |s| s.agent.clone());
        let transcript = self.transcripts.get(&id).cloned();
        let whose = Whose { run: self.dir.id_str().to_owned(), step: id, agent, transcript };
        let (talk, out_meaning, err_meaning) = match prepared.voice {
            Voice::Agent { adapter, talk } => (
                talk,
                Meaning::Agent { adapter, events: events.clone(), whose: whose.clone() },
                Meaning::AgentError { events, whose },
            ),
            Voice::Plain => (None, Meaning::Plain, Meaning::Plain),
        };
        let allowance = self.capture.step();
        let spec = |stream, source, raw, meaning, turn| PumpSpec {
            step: id,
            attempt,
            stream,
            source,
            raw,
            log: log.clone(),
            allowance: allowance.clone(),
            meaning,
            turn,
        };
        let mut active = Active {
            attempt,
            child: start_ticks.map(|start_ticks| Seen { pid, start_ticks }),
            pid,
            pids: BTreeSet::from([pid]),
            stdin,
            talk,
            pumps: Vec::new(),
            exit: None,
            exited_at: None,
            out: None,
            err: None,
            plain,
            sweeping: false,
            log: log.clone(),
            output: prepared.output,
            _files: prepared.files,
            _session: prepared.session,
        };
        let parts = [(Stream::Out, stdout, raw_out, out_meaning), (Stream::Err, stderr, raw_err, err_meaning)];
        for ((stream, source, raw, meaning), turn) in parts.into_iter().zip(Turn::both()) {
            match Pump::start(spec(stream, source, raw, meaning, turn), self.sender.clone()) {
                Ok(pump) => active.pumps.push(pump),
                // Without a pump the stream is over: the child gets EPIPE, and the step ends with what is known.
                Err(_) => active.stream_ended(stream, StreamEnd::default()),
            }
        }
        Ok(active)
    }

    /// The agent said something.
    pub(super) fn agent_said(&mut self, step: StepId, at: Timestamp, event: AgentEvent) {
        let receipts = match self.active.get_mut(&step) {
            Some(active) => {
                if let Some(bytes) = active.talk.as_mut().and_then(|t| t.answer(&event)) {
                    active.send(bytes);
                }
                active.talk.as_mut().map(|t| t.receipts(&event)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let settled = matches!(event, AgentEvent::Settled { .. });
        let asked = match &event {
            AgentEvent::Asked(asking) => Some((**asking).clone()),
            _ => None,
        };
        match &event {
            AgentEvent::Unasked { id } => self.questions_gone(step, |asking| !asking.by_file && asking.id == *id),
            // A call that ended waits for no permission and for no supervisor, whom it need not tell who it is.
            AgentEvent::ToolEnded { call, tool, .. } => {
                let reaches = matches!(tool.as_deref(), Some("contact_supervisor" | "intercom"));
                self.questions_gone(step, |asking| match &asking.call {
                    Some(waits) => call.as_ref() == Some(waits),
                    None => asking.by_file && reaches,
                });
            }
            _ => {}
        }
        self.recorder.absorb(at, What::Agent { step, event });
        if let Some(asking) = asked {
            self.asked(step, asking, at);
        }
        if settled && self.active.get(&step).and_then(|a| a.talk.as_ref()).is_some_and(|t| !t.done()) {
            // It was just told more, and is not to be taken for one that does not exit.
            self.recorder.absorb(at, What::Agent { step, event: AgentEvent::AgentStarted });
        }
        for receipt in receipts {
            self.acknowledge(step, &receipt);
            self.steer_moved(step, &receipt.id, receipt.state, receipt.detail);
        }
        if let Some(active) = self.active.get_mut(&step)
            && active.talk.as_ref().is_some_and(|t| t.done())
        {
            // Everything is answered; an agent that waits for more would wait for ever.
            active.close_stdin();
        }
    }

    /// Begins the sweep once the child is gone and its pipes are closed or given up.
    pub(super) fn end_if_done(&mut self, id: StepId) {
        let others = self.pids_except(id);
        let since = self.recorder.state().step(id).and_then(|s| s.ending.as_ref()).map(|e| (e.cause, e.since));
        let Some(active) = self.active.get_mut(&id) else { return };
        if !active.is_closed() || active.sweeping {
            return;
        }
        active.sweeping = true;
        let abandoned: Vec<u64> = [(&active.out, 0), (&active.err, 1)]
            .into_iter()
            .filter(|(end, _)| end.as_ref().is_some_and(|e| e.abandoned))
            .filter_map(|(_, index)| active.pumps.get(index).and_then(|p| p.inode))
            .collect();
        let (pid, pids) = (active.pid, active.pids.clone());
        if !abandoned.is_empty() {
            let snapshot = Snapshot::take();
            let mut held: Vec<u32> = abandoned
                .iter()
                .flat_map(|inode| tree::holders_of_pipe(&snapshot, std::process::id(), *inode))
                .collect();
            held.sort_unstable();
            held.dedup();
            self.recorder.record(What::OutputHeld { step: id, pids: held });
        }
        // The cheap question first: nearly every step leaves nothing behind.
        if tree::has_other_children(&others) == Some(false) && !group_exists(pid) {
            return self.step_swept(id, Swept::default());
        }
        // What is left after a stop had its time to go already while the child had it.
        let grace = match since {
            Some((EndingCause::Kill, _)) => Duration::ZERO,
            Some((EndingCause::Drain, _)) | None => TERM_TO_KILL,
            Some((_, since)) => TERM_TO_KILL.saturating_sub(now().since(since)),
        };
        let (sender, run) = (self.sender.clone(), self.dir.id().0);
        let work = move || {
            let alone = others.is_empty();
            let swept = tree::sweep(grace, || {
                let snapshot = Snapshot::take();
                let mut found = snapshot.below_except(std::process::id(), &others);
                if !alone {
                    found = snapshot.of_step(&found, &run, id.flat(), &pids);
                }
                let group = snapshot.group(pid);
                found.extend(group.into_iter().filter(|s| !others.contains(&s.pid)));
                found.sort_unstable_by_key(|s| s.pid);
                found.dedup();
                found
            });
            let _ = sender.blocking_send(Note::Swept { step: Some(id), swept });
        };
        if std::thread::Builder::new().name("sweep".to_owned()).spawn(work).is_err() {
            // No thread can be made: the step ends; the run's last sweep finds what is left.
            self.step_swept(id, Swept::default());
        }
    }

    /// The children of all other steps, and commands that look at the work of some: a sweep leaves them and what is below
    /// them alone.
    fn pids_except(&self, id: StepId) -> BTreeSet<u32> {
        let mut others = self.examining_pids();
        others.extend(self.active.iter().filter(|(step, _)| **step != id).map(|(_, a)| a.pid));
        others
    }

    /// The step's processes are gone, or it is known which are not: judge it.
    pub(super) fn step_swept(&mut self, id: StepId, swept: Swept) {
        if !swept.ended.is_empty() || !swept.survivors.is_empty() {
            let Swept { ended, survivors } = swept;
            self.recorder.record(What::TreeSwept { step: id, ended, survivors });
        }
        self.tell_last(id);
        let Some(active) = self.active.remove(&id) else { return };
        let out = active.out.unwrap_or_default();
        let err = active.err.unwrap_or_default();
        let report = match out.report {
            Some(report) => report,
            None => crate::agents::text::report(&out.tail, false),
        };
        let stderr_tail = String::from_utf8_lossy(&err.tail).into_owned();
        let ending = self.recorder.state().step(id).and_then(|s| s.ending.clone());
        let judgement = judge(&Evidence {
            report: &report,
            exit: active.exit.unwrap_or_default(),
            spawn_error: None,
            ending: ending.as_ref(),
            stderr_tail: &stderr_tail,
        });
        let Settled { judgement, reported, failed } = self.settle(id, judgement, active.output.as_ref());
        if let Some(error) = failed {
            self.recorder.record(What::ArtifactFailed { step: id, which: Artifact::File, error });
        }
        if active.plain {
            // Foreign readers look for the final text of a plain command here (run-directory 2.6).
            let written = append(&self.home.way().output(id)).and_then(|mut file| {
                file.append(judgement.text.as_bytes())?;
                self.late.push(Late::Raw(file));
                Ok(())
            });
            if let Err(error) = written {
                self.recorder.record(What::LogFailed { step: id, error: error.to_string() });
            }
        }
        self.late.extend(out.late.into_iter().chain(err.late).map(Late::Raw));
        self.late.push(Late::Live(active.log));
        self.write_late();
        let over = Over {
            report: &report,
            exit: active.exit.unwrap_or_default(),
            exited_at: active.exited_at.unwrap_or_else(now),
            stderr_tail: &stderr_tail,
            reported,
        };
        self.attempt_over(id, over, judgement);
    }

    /// Records the end of a step and keeps what later steps may use.
    pub(super) fn end_step(&mut self, id: StepId, judgement: Judgement, ran: bool) {
        let Judgement { mut outcome, text } = judgement;
        let step = self.plan.flat().nth(id.flat()).cloned().unwrap_or_default();
        let logical = self.recorder.state().step(id).map_or(0, |s| s.logical);
        if outcome.phase == StepPhase::Complete {
            let cut = crate::text::prefix(&text, OUTPUT_IN_STATUS);
            let output = NamedOutput { text: cut.into(), agent: step.agent.clone(), logical };
            outcome.output = Some((step.key.clone(), output));
            self.texts.insert(step.key.clone(), text.clone());
        }
        if matches!(self.plan.steps.get(logical), Some(LogicalStep::Single(_))) {
            self.previous.clone_from(&text);
        }
        self.fail_open_steers(id, "child terminated before steering delivery");
        let told = ran || !text.is_empty() || outcome.error.is_some();
        self.recorder.record(What::StepEnded { step: id, outcome: Box::new(outcome) });
        self.end_artifacts(id, &text);
        if told {
            self.finals.insert(id, text);
        }
    }

    /// Takes the outcome of an earlier run over.
    pub(super) fn carry_step(&mut self, id: StepId) {
        let carried = self.plan.flat().nth(id.flat()).and_then(|s| s.carried.clone()).unwrap_or_default();
        let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
        self.end_step(id, Judgement { outcome, text: carried.output }, true);
    }

    /// A member of a group that is not run because a sibling failed (runner-behaviour 2.3).
    pub(super) fn skip_step(&mut self, id: StepId) {
        let outcome = StepOutcome {
            phase: StepPhase::Failed,
            exit_code: -1,
            error: Some("Skipped due to fail-fast".to_owned()),
            ..StepOutcome::default()
        };
        self.end_step(id, Judgement { outcome, text: String::new() }, false);
    }

    /// A member of a group that the run's limit keeps from starting (runner-behaviour 3.3).
    pub(super) fn refuse_step(&mut self, id: StepId) {
        let outcome = StepOutcome {
            phase: StepPhase::Failed,
            exit_code: 1,
            error: self.recorder.state().error.clone(),
            ..StepOutcome::default()
        };
        self.end_step(id, Judgement { outcome, text: String::new() }, false);
    }

    /// Joins the outputs of a group for `{previous}` (runner-behaviour 2.3).
    pub(super) fn gather_group(&mut self, logical: usize) {
        let state = self.recorder.state();
        let members: Vec<_> = state.steps.iter().filter(|s| s.logical == logical).collect();
        let mut blocks = Vec::new();
        for (number, step) in members.iter().enumerate() {
            let text = self.finals.get(&step.id).map_or("", String::as_str);
            let error = step.error.as_deref().unwrap_or("");
            let head = format!("=== Parallel Task {} ({}) ===", number + 1, step.agent);
            let body = match step.exit_code {
                Some(-1) => "SKIPPED".to_owned(),
                Some(0) if text.trim().is_empty() => "EMPTY OUTPUT (the step printed nothing)".to_owned(),
                Some(0) => text.to_owned(),
                code => format!("FAILED (exit code {}): {error}\n{text}", code.unwrap_or(1)).trim_end().to_owned(),
            };
            blocks.push(format!("{head}\n{body}"));
        }
        self.previous = blocks.join("\n\n");
    }

    /// Ends whatever the run left, however it came to be left.
    pub(super) async fn sweep_run(&mut self) {
        if self.swept || tree::has_other_children(&BTreeSet::new()) == Some(false) {
            return;
        }
        self.swept = true;
        let work = || tree::sweep(Duration::from_millis(500), || Snapshot::take().below(std::process::id()));
        if let Ok(swept) = tokio::task::spawn_blocking(work).await
            && (!swept.ended.is_empty() || !swept.survivors.is_empty())
        {
            let step = self.recorder.state().current.unwrap_or_default();
            self.recorder.record(What::TreeSwept { step, ended: swept.ended, survivors: swept.survivors });
        }
    }
}

/// Whether any process is in this group.
fn group_exists(group: u32) -> bool {
    i32::try_from(group)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
}

/// Opens a log for appending, mode 0600.
fn append(path: &Path) -> std::io::Result<Kept> {
    let file = crate::rundir::open::append(path)?;
    let length = file.metadata()?.len();
    Ok(Kept::new(file, length))
}
