//! Messages to the children of a workflow (run-directory 2.17). A workflow has no runner: its parent runs it, and what
//! it takes depends on its version. A newer one reads the requests of the workflow's own inbox and tells of them in
//! status and events, as a runner does. An older one gives each child that it runs itself an inbox of its own below
//! `control/workflow-foreground`, which the child reads; of those nothing is told but the child's own answer.

use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::control::{make, plain_folder, request_name};
use super::json::Obj;
use super::{Answered, Inbox, RunDir, SendError, open, write};
use crate::run::{RunState, SteerMode, StepId, StepPhase, Timestamp};

/// The largest answer of a child that is read, in bytes.
const ANSWER_MOST: u64 = 64 * 1024;
/// A child of a workflow counts itself from here.
const OWN_INDEX: u32 = 0;

/// How a message reaches the children of a workflow.
pub(super) enum Route {
    /// Through the workflow's own inbox.
    Inbox,
    /// Through the inboxes of these children, each with its step.
    Children(Vec<(StepId, PathBuf)>),
}

fn foreground(dir: &RunDir) -> PathBuf {
    dir.control().join("workflow-foreground")
}

/// The way to these steps; with none named, to all that run.
pub(super) fn route(dir: &RunDir, state: &RunState, targets: &[StepId]) -> Result<Route, SendError> {
    let named = if targets.is_empty() {
        state.steps.iter().filter(|step| step.phase == StepPhase::Running && step.own_run.is_none()).collect()
    } else {
        let count = state.steps.len();
        let step = |id: &StepId| state.step(*id).ok_or(SendError::NoSuchStep { step: id.number(), count });
        targets.iter().map(step).collect::<Result<Vec<_>, _>>()?
    };
    if named.is_empty() {
        return Err(SendError::NoTarget);
    }
    for step in &named {
        if step.phase != StepPhase::Running {
            return Err(SendError::NotRunning { step: step.id.number(), phase: step.phase.as_str().to_owned() });
        }
        if let Some(run) = &step.own_run {
            return Err(SendError::OwnRun { step: step.id.number(), run: run.0.clone() });
        }
    }
    if dir.steer_requests().is_dir() {
        return Ok(Route::Inbox);
    }
    let inboxes = named.into_iter().map(|step| match child(dir, state, step.id) {
        Some(child) => Ok((step.id, child)),
        None => Err(SendError::NoDoor { step: step.id.number() }),
    });
    inboxes.collect::<Result<Vec<_>, _>>().map(Route::Children)
}

/// The inbox of the child that a step is: it is named in the path of the child's session, or it is the only one.
fn child(dir: &RunDir, state: &RunState, step: StepId) -> Option<PathBuf> {
    let entries = fs::read_dir(foreground(dir)).ok()?.flatten();
    let mut inboxes: Vec<(String, PathBuf)> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    let session = state.step(step)?.session_file.clone().unwrap_or_default();
    let named = inboxes.iter().position(|(name, _)| session.split('/').any(|part| part == name));
    let running = state.steps.iter().filter(|s| s.phase == StepPhase::Running).count();
    let at = named.or((inboxes.len() == 1 && running == 1).then_some(0))?;
    Some(inboxes.swap_remove(at).1.join("control"))
}

impl Inbox {
    /// Writes a message into the inboxes of children. Returns the ids of the requests, one a child.
    pub(super) fn steer_children(
        &self,
        children: &[(StepId, PathBuf)],
        message: &str,
        mode: SteerMode,
        now: Timestamp,
    ) -> Result<Vec<String>, SendError> {
        let mut ids = Vec::new();
        for (_, control) in children {
            let id = uuid::Uuid::new_v4().to_string();
            let mut obj = Obj::new();
            obj.set("type", "steer").set("id", &id).set("ts", now.millis()).set("message", message);
            if mode != SteerMode::Steer {
                obj.set("mode", mode.as_str());
            }
            obj.set("targetIndex", OWN_INDEX);
            self.sign(&mut obj);
            // Nothing above the child's own inbox is made: without it there is nobody who reads.
            for folder in [foreground(&self.dir), control.clone()] {
                plain_folder(&folder)?;
            }
            let inboxes = control.join("steer-targets");
            make(&inboxes)?;
            let inbox = inboxes.join(OWN_INDEX.to_string());
            make(&inbox)?;
            write::replace(&inbox.join(request_name(now, &id)), &obj.pretty())?;
            ids.push(id);
        }
        Ok(ids)
    }
}

/// What a child of a workflow answered to a request; `None` while it has not, or has only put it in its queue.
#[must_use]
pub fn answer_of_child(dir: &RunDir, request: &str) -> Option<Answered> {
    let name = URL_SAFE_NO_PAD.encode(request);
    let children = fs::read_dir(foreground(dir)).ok()?.flatten();
    let folders = children.map(|child| child.path().join("control/steer-acks").join(OWN_INDEX.to_string()));
    let answers = folders.filter_map(|folder| fs::read_dir(folder).ok()).flat_map(|entries| entries.flatten());
    let mine = answers.filter(|entry| {
        let file = entry.file_name();
        file.to_str().is_some_and(|file| file.ends_with(".json") && file.starts_with(&format!("{name}-")))
    });
    let read = mine.filter_map(|entry| {
        let bytes = open::read_at_most(&open::regular(&entry.path()).ok()?, ANSWER_MOST).ok()?;
        let ack: Value = serde_json::from_slice(&bytes).ok()?;
        (ack.get("requestId")?.as_str()? == request).then_some(ack)
    });
    read.filter_map(|ack| match ack.get("state")?.as_str()? {
        "delivered" => Some(Answered::Done),
        "failed" => {
            let why = ack.get("message").and_then(Value::as_str).unwrap_or("the child could not take it");
            Some(Answered::Refused(why.to_owned()))
        }
        _ => None,
    })
    .next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ControlSource, RunId, RunMode, RunPhase, StepState};

    const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_123);

    /// A workflow with a child that its parent runs, one that is a run of its own, and one without an inbox.
    fn workflow() -> (tempfile::TempDir, RunDir, Inbox, RunState) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        fs::create_dir_all(foreground(&dir).join("c-1/control/steer-capabilities")).unwrap();
        let step = |id: u32, session: &str| StepState {
            id: StepId(id),
            phase: StepPhase::Running,
            session_file: Some(session.to_owned()),
            ..StepState::default()
        };
        let own = StepState { own_run: Some(RunId("r-9".into())), ..step(1, "") };
        let steps = vec![step(0, "/s/c-1/run-0/session.jsonl"), own, step(2, "/s/c-2/run-0/session.jsonl")];
        let state = RunState { mode: RunMode::Workflow, phase: RunPhase::Running, steps, ..RunState::default() };
        let inbox = Inbox::open(&dir, ControlSource { via: "cli".into(), ..ControlSource::default() }).unwrap();
        (temp, dir, inbox, state)
    }

    #[test]
    fn a_child_gets_its_message_in_its_own_inbox_and_answers_there() {
        let (_temp, dir, inbox, state) = workflow();
        let ids = inbox.steer(&state, &[StepId(0)], " hi ", SteerMode::FollowUp, NOW).unwrap();
        let [id] = ids.as_slice() else { panic!("{ids:?}") };
        let control = foreground(&dir).join("c-1/control");
        let file = control.join("steer-targets/0").join(request_name(NOW, id));
        let request: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let facts = (&request["type"], &request["message"], &request["mode"], &request["targetIndex"]);
        assert_eq!(facts, (&"steer".into(), &"hi".into(), &"follow_up".into(), &0.into()));
        let acks = control.join("steer-acks/0");
        fs::create_dir_all(&acks).unwrap();
        let answer = |state: &str, k: u8| {
            let name = format!("{}-1760000000124-{k}-{state}.json", URL_SAFE_NO_PAD.encode(id));
            let text =
                format!(r#"{{"type":"steer-ack","requestId":"{id}","state":"{state}","message":"queue is full"}}"#);
            fs::write(acks.join(name), text).unwrap();
            answer_of_child(&dir, id)
        };
        assert_eq!(answer_of_child(&dir, id), None);
        assert_eq!(answer("queued", 0), None);
        assert_eq!(answer("failed", 2), Some(Answered::Refused("queue is full".into())));
        fs::remove_dir_all(&acks).unwrap();
        fs::create_dir_all(&acks).unwrap();
        assert_eq!(answer("delivered", 1), Some(Answered::Done));
        assert_eq!(answer_of_child(&dir, "other"), None);
    }

    #[test]
    fn what_cannot_be_reached_is_refused_with_the_reason() {
        let (_temp, dir, inbox, state) = workflow();
        let say = |targets: &[u32]| {
            let targets: Vec<StepId> = targets.iter().copied().map(StepId).collect();
            inbox.steer(&state, &targets, "x", SteerMode::Steer, NOW).unwrap_err().to_string()
        };
        assert_eq!(say(&[1]), "step 2 is a run of its own (r-9); send it there");
        assert_eq!(say(&[2]), "step 3 has no inbox; its parent, which runs the workflow, is the only way to it");
        assert_eq!(say(&[7]), "there is no step 8; the run has 3");
        assert!(matches!(inbox.stop(&state, NOW), Err(SendError::Workflow)));
        assert!(matches!(inbox.interrupt(&state, NOW), Err(SendError::Workflow)));
        // An inbox that leads elsewhere is not written through.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::remove_dir_all(foreground(&dir)).unwrap();
        fs::create_dir_all(elsewhere.path().join("c-1/control")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), foreground(&dir)).unwrap();
        assert!(say(&[0]).contains("a symbolic link"), "{}", say(&[0]));
        assert_eq!(fs::read_dir(elsewhere.path().join("c-1/control")).unwrap().count(), 0);
    }

    #[test]
    fn a_workflow_that_reads_its_own_inbox_gets_the_message_there() {
        let (_temp, dir, inbox, state) = workflow();
        fs::create_dir_all(dir.steer_requests()).unwrap();
        let ids = inbox.steer(&state, &[StepId(0), StepId(2)], "x", SteerMode::Steer, NOW).unwrap();
        let file = dir.steer_requests().join(request_name(NOW, &ids[0]));
        let request: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(request["targetIndexes"], serde_json::json!([0, 2]));
        fs::write(dir.inbox_closed(), "{}").unwrap();
        assert!(matches!(inbox.steer(&state, &[], "x", SteerMode::Steer, NOW), Err(SendError::Closed)));
    }
}
