//! The sender's side of the control inbox (run-directory 3): the same files whoever presses the key (law 4).
//!
//! Writes below `control/` only, in one step each, and says beforehand why a request would come to nothing.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::json::{Json, Obj};
use super::{RunDir, status, workflow, write};
use crate::run::{
    ControlSource, RunMode, RunPhase, RunState, SteerMode, SteerRequest, Steerable, StepId, StepPhase, Timestamp,
};

/// Why a request was not sent.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SendError {
    #[error("{0}")]
    Over(String),
    #[error("the run takes no messages any more")]
    Closed,
    #[error("the parent that runs this workflow takes no such request; use the parent itself")]
    Workflow,
    #[error("step {step} is a run of its own ({run}); send it there")]
    OwnRun { step: u32, run: String },
    #[error("step {step} has no inbox; its parent, which runs the workflow, is the only way to it")]
    NoDoor { step: u32 },
    #[error("there is no step {step}; the run has {count}")]
    NoSuchStep { step: u32, count: usize },
    #[error("step {step} is {phase}")]
    NotRunning { step: u32, phase: String },
    #[error("step {step} takes no messages: {reason}")]
    NotSteerable { step: u32, reason: String },
    #[error("no step runs; name one that waits")]
    NoTarget,
    #[error("the question {0} is not open: it was answered, or its agent waits no more")]
    NoQuestion(String),
    #[error("{0}")]
    NoAnswer(String),
    #[error("the message is empty")]
    Empty,
    #[error("the message has {0} bytes; at most {most} go", most = SteerRequest::MAX_BYTES)]
    TooLong(usize),
    #[error("this runner cannot stop a single step; stop the run")]
    NoStepStop,
    #[error("this runner takes no change of a limit; only those of subdeck do")]
    NoBudgets,
    #[error("the message was taken already")]
    Taken,
    #[error("the run directory is gone")]
    Gone,
    #[error("the request cannot be written: {0}")]
    Io(io::Error),
}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Gone } else { Self::Io(error) }
    }
}

/// Sends requests to the runner of a run.
#[derive(Clone, Debug)]
pub struct Inbox {
    pub(super) dir: RunDir,
    pub(super) source: ControlSource,
}

/// `<13-digit ms>-<base64url id>.json` (run-directory 3.1).
pub(super) fn request_name(at: Timestamp, id: &str) -> String {
    format!("{:013}-{}.json", at.millis().max(0), URL_SAFE_NO_PAD.encode(id))
}

impl Inbox {
    /// The inbox of this run; every request names this source.
    ///
    /// # Errors
    /// [`SendError::Gone`] when there is no such directory.
    pub fn open(dir: &RunDir, source: ControlSource) -> Result<Self, SendError> {
        if !dir.path().is_dir() {
            return Err(SendError::Gone);
        }
        Ok(Self { dir: dir.clone(), source })
    }

    /// Asks to tell steps something; with no steps named, all that run. One request goes to the running ones together
    /// and one to each pending one, because pending members of a list are never reached (run-directory, trap 14).
    /// Returns the ids of the requests.
    ///
    /// # Errors
    /// Why nothing was sent; when only a later request fails, the earlier ones stay.
    pub fn steer(
        &self,
        state: &RunState,
        targets: &[StepId],
        message: &str,
        mode: SteerMode,
        now: Timestamp,
    ) -> Result<Vec<String>, SendError> {
        let message = message.trim();
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        if message.len() > SteerRequest::MAX_BYTES {
            return Err(SendError::TooLong(message.len()));
        }
        check_going_on(state)?;
        if self.dir.inbox_closed().exists() {
            return Err(SendError::Closed);
        }
        if state.mode == RunMode::Workflow
            && let workflow::Route::Children(children) = workflow::route(&self.dir, state, targets)?
        {
            return self.steer_children(&children, message, mode, now);
        }
        let (running, pending) = split(state, targets)?;
        let mut ids = Vec::new();
        if !running.is_empty() {
            ids.push(self.send_steer(&running, message, mode, now)?);
        }
        for step in pending {
            ids.push(self.send_steer(&[step], message, mode, now)?);
        }
        Ok(ids)
    }

    fn send_steer(
        &self,
        steps: &[StepId],
        message: &str,
        mode: SteerMode,
        now: Timestamp,
    ) -> Result<String, SendError> {
        let id = uuid::Uuid::new_v4().to_string();
        let mut obj = Obj::new();
        obj.set("type", "steer").set("id", &id).set("ts", now.millis()).set("message", message);
        if mode != SteerMode::Steer {
            obj.set("mode", mode.as_str());
        }
        match steps {
            [one] => obj.set("targetIndex", one.flat()),
            many => obj.set("targetIndexes", many.iter().map(|s| s.flat()).collect::<Json>()),
        };
        self.sign(&mut obj);
        let path = self.folder("steer-requests")?.join(request_name(now, &id));
        write::replace(&path, &obj.pretty())?;
        // The runner may have closed the inbox between our look and our write; then nobody reads the file any more.
        if self.dir.inbox_closed().exists() && fs::remove_file(&path).is_ok() {
            return Err(SendError::Closed);
        }
        Ok(id)
    }

    /// Asks to pause the run.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn interrupt(&self, state: &RunState, now: Timestamp) -> Result<(), SendError> {
        self.check_live(state)?;
        self.send_one("interrupt", now)
    }

    /// Asks to end the run.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn stop(&self, state: &RunState, now: Timestamp) -> Result<(), SendError> {
        self.check_live(state)?;
        self.send_one("stop", now)
    }

    /// Asks to end the run as out of time.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn timeout(&self, state: &RunState, now: Timestamp) -> Result<(), SendError> {
        self.check_live(state)?;
        self.send_one("timeout", now)
    }

    /// Asks to end one step while its siblings go on, by the protocol of newer runners (`control/stop-requests/`).
    ///
    /// # Errors
    /// Why nothing was sent; [`SendError::NoStepStop`] when the runner does not know the protocol.
    pub fn stop_step(&self, state: &RunState, step: StepId, now: Timestamp) -> Result<(), SendError> {
        self.check_live(state)?;
        let found = state.step(step).ok_or(SendError::NoSuchStep { step: step.number(), count: state.steps.len() })?;
        if found.phase.is_terminal() {
            return Err(SendError::NotRunning { step: step.number(), phase: found.phase.as_str().to_owned() });
        }
        // A runner that reads these requests has made the folder for them.
        if !self.dir.stop_requests().is_dir() {
            return Err(SendError::NoStepStop);
        }
        plain_folder(&self.dir.control())?;
        plain_folder(&self.dir.stop_requests())?;
        let mut obj = Obj::new();
        obj.set("type", "stop").set("ts", now.millis()).set("targetIndex", step.flat());
        obj.set("childId", format!("step:{}", step.flat()));
        self.sign(&mut obj);
        let name = format!("{:013}-{}.json", now.millis().max(0), uuid::Uuid::new_v4());
        Ok(write::replace(&self.dir.stop_requests().join(name), &obj.pretty())?)
    }

    pub(super) fn check_live(&self, state: &RunState) -> Result<(), SendError> {
        if state.mode == RunMode::Workflow {
            return Err(SendError::Workflow);
        }
        check_going_on(state)
    }

    fn send_one(&self, kind: &str, now: Timestamp) -> Result<(), SendError> {
        let mut obj = Obj::new();
        obj.set("type", kind).set("ts", now.millis());
        self.sign(&mut obj);
        let path = self.folder("")?.join(format!("{kind}.json"));
        Ok(write::replace(&path, &obj.pretty())?)
    }

    /// Adds who asks: one word for the reference's readers, and everything known for ours.
    pub(super) fn sign(&self, obj: &mut Obj) {
        obj.set("source", format!("subdeck-{}", self.source.via)).opt("reason", self.source.reason.as_ref());
        obj.set("subdeck", status::source(&self.source));
    }

    /// A folder of the inbox, made when missing; the run directory itself is never made again.
    pub(super) fn folder(&self, name: &str) -> Result<std::path::PathBuf, SendError> {
        let control = self.dir.control();
        make(&control)?;
        if name.is_empty() {
            return Ok(control);
        }
        let folder = control.join(name);
        make(&folder)?;
        Ok(folder)
    }
}

/// Whether a run still takes anything.
fn check_going_on(state: &RunState) -> Result<(), SendError> {
    if state.lost.is_some() {
        return Err(SendError::Over(state.closed()));
    }
    // A paused run without an end is still pausing, and a stop then is honoured (runner-behaviour 14.7).
    if state.ended_at.is_some() || (state.phase.is_terminal() && state.phase != RunPhase::Paused) {
        return Err(SendError::Over(state.closed()));
    }
    Ok(())
}

/// Makes a folder of the inbox, where it is missing.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => plain_folder(folder),
        other => other,
    }
}

/// Whether this is a folder and not a link to one: whoever may write into a run directory must not make us write
/// elsewhere (trap 27).
pub(super) fn plain_folder(folder: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(folder)?.file_type();
    if kind.is_dir() {
        return Ok(());
    }
    let what = if kind.is_symlink() { "a symbolic link" } else { "not a folder" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is {what}", folder.display())))
}

/// The running and the pending ones of the steps named, or every running one; a single run's pending step counts too
/// when nothing is named.
fn split(state: &RunState, targets: &[StepId]) -> Result<(Vec<StepId>, Vec<StepId>), SendError> {
    let (mut running, mut pending) = (Vec::new(), Vec::new());
    if targets.is_empty() {
        let mut unable = None;
        for step in state.steps.iter().filter(|s| s.phase == StepPhase::Running) {
            match &step.steerable {
                Steerable::No(reason) => {
                    let reason = reason.clone();
                    unable.get_or_insert(SendError::NotSteerable { step: step.id.number(), reason });
                }
                Steerable::Yes | Steerable::Unknown => running.push(step.id),
            }
        }
        if running.is_empty()
            && let Some(unable) = unable
        {
            return Err(unable);
        }
        if running.is_empty()
            && let [only] = state.steps.as_slice()
            && only.phase == StepPhase::Pending
        {
            pending.push(only.id);
        }
        if running.is_empty() && pending.is_empty() {
            return Err(SendError::NoTarget);
        }
        return Ok((running, pending));
    }
    for &id in targets {
        let number = id.number();
        let step = state.step(id).ok_or(SendError::NoSuchStep { step: number, count: state.steps.len() })?;
        if let Steerable::No(reason) = &step.steerable {
            return Err(SendError::NotSteerable { step: number, reason: reason.clone() });
        }
        match step.phase {
            StepPhase::Running if !running.contains(&id) => running.push(id),
            StepPhase::Pending if !pending.contains(&id) => pending.push(id),
            StepPhase::Running | StepPhase::Pending => {}
            _ => return Err(SendError::NotRunning { step: number, phase: step.phase.as_str().to_owned() }),
        }
    }
    Ok((running, pending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StepState;
    use crate::rundir::inbox::InboxReader;
    use crate::rundir::request::ControlRequest;

    fn state(phases: &[StepPhase]) -> RunState {
        let mut state = RunState { phase: RunPhase::Running, ..RunState::default() };
        for (phase, id) in phases.iter().zip(0..) {
            state.steps.push(StepState { id: StepId(id), phase: phase.clone(), ..StepState::default() });
        }
        state
    }

    fn open() -> (tempfile::TempDir, RunDir, Inbox) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        dir.make_folders().unwrap();
        let source =
            ControlSource { via: "deck".into(), pid: Some(7), key: Some("s".into()), ..ControlSource::default() };
        let inbox = Inbox::open(&dir, source).unwrap();
        (temp, dir, inbox)
    }

    const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_123);

    #[test]
    fn the_name_of_a_request_is_that_of_the_reference() {
        assert_eq!(request_name(Timestamp::from_micros(1_760_000_000_123_700), "r1"), "1760000000123-cjE.json");
    }

    #[test]
    fn running_steps_share_a_request_and_each_pending_one_has_its_own() {
        use StepPhase::{Pending, Running};
        let (_temp, dir, inbox) = open();
        let state = state(&[Running, Pending, Running, Pending]);
        let all = [StepId(0), StepId(1), StepId(2), StepId(3), StepId(0)];
        let ids = inbox.steer(&state, &all, "  hi ", SteerMode::FollowUp, NOW).unwrap();
        assert_eq!(ids.len(), 3);
        let mut sent: Vec<Vec<u32>> = InboxReader::new(dir)
            .take()
            .into_iter()
            .map(|r| match r {
                ControlRequest::Steer(s) => {
                    assert_eq!((s.message.as_str(), s.mode), ("hi", SteerMode::FollowUp));
                    assert_eq!(s.source.unwrap().key.as_deref(), Some("s"));
                    s.targets.unwrap().iter().map(|t| t.0).collect()
                }
                other => panic!("{other:?}"),
            })
            .collect();
        sent.sort();
        assert_eq!(sent, [vec![0, 2], vec![1], vec![3]]);
    }

    #[test]
    fn whatever_would_come_to_nothing_is_refused() {
        use StepPhase::{Complete, Pending, Running};
        let (_temp, dir, inbox) = open();
        let live = state(&[Running, Complete, Pending]);
        let say = |state: &RunState, targets: &[u32], text: &str| {
            let targets: Vec<StepId> = targets.iter().copied().map(StepId).collect();
            inbox.steer(state, &targets, text, SteerMode::Steer, NOW).unwrap_err().to_string()
        };
        assert_eq!(say(&live, &[0], " \n"), "the message is empty");
        assert_eq!(say(&live, &[0], &"x".repeat(131_073)), "the message has 131073 bytes; at most 131072 go");
        assert_eq!(say(&live, &[7], "x"), "there is no step 8; the run has 3");
        assert_eq!(say(&live, &[1], "x"), "step 2 is complete");
        assert_eq!(say(&state(&[Complete, Pending]), &[], "x"), "no step runs; name one that waits");
        let mut deaf = state(&[Complete, Running]);
        deaf.steps[1].steerable = Steerable::No("it has no ears".into());
        assert_eq!(say(&deaf, &[], "x"), "step 2 takes no messages: it has no ears");
        let mut deaf = live.clone();
        deaf.steps[0].steerable = Steerable::No("it is a command".into());
        assert_eq!(say(&deaf, &[0], "x"), "step 1 takes no messages: it is a command");
        let over = RunState { phase: RunPhase::Complete, ended_at: Some(NOW), ..live.clone() };
        assert_eq!(say(&over, &[0], "x"), "the run is over (complete)");
        assert!(matches!(inbox.stop(&over, NOW), Err(SendError::Over(_))));
        let lost = RunState { lost: Some("gone".into()), ..live.clone() };
        assert!(matches!(inbox.interrupt(&lost, NOW), Err(SendError::Over(_))));
        let workflow = RunState { mode: RunMode::Workflow, ..live.clone() };
        assert!(matches!(inbox.stop(&workflow, NOW), Err(SendError::Workflow)));
        assert!(matches!(inbox.stop_step(&live, StepId(1), NOW), Err(SendError::NotRunning { .. })));
        std::fs::remove_dir(dir.stop_requests()).unwrap();
        assert!(matches!(inbox.stop_step(&live, StepId(0), NOW), Err(SendError::NoStepStop)));
        std::fs::write(dir.inbox_closed(), "{}").unwrap();
        assert_eq!(say(&live, &[0], "x"), "the run takes no messages any more");
        assert!(InboxReader::new(dir).take().is_empty());
    }

    #[test]
    fn a_run_that_is_pausing_can_still_be_stopped() {
        let (_temp, dir, inbox) = open();
        let pausing = RunState { phase: RunPhase::Paused, ..state(&[StepPhase::Paused]) };
        inbox.stop(&pausing, NOW).unwrap();
        inbox.timeout(&pausing, NOW).unwrap();
        inbox.kill(NOW).unwrap();
        let taken = InboxReader::new(dir).take();
        assert!(
            matches!(&taken[..], [ControlRequest::Stop { source }, ControlRequest::TimeOut { .. }, ControlRequest::Own(_)] if source.via == "deck")
        );
    }

    #[test]
    fn a_directory_that_is_gone_is_not_made_again() {
        let (temp, dir, inbox) = open();
        drop(temp);
        assert!(matches!(inbox.stop(&state(&[StepPhase::Running]), NOW), Err(SendError::Gone)));
        assert!(!dir.path().exists());
    }
}
