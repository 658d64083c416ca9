//! Requests that only runners of ours know, and their answers (run-directory 3.9): the sender's side.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::control::request_name;
use super::json::Json;
use super::json::Obj;
use super::{Inbox, RunDir, SendError, open, status, write};
use crate::plan::Raise;
use crate::run::{Answer, RunState, StepId, Timestamp};

/// The largest answer that is read, in bytes.
const ANSWER_MOST: u64 = 64 * 1024;

/// What became of a request of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It was done.
    Done,
    /// It was not; the reason, text from outside.
    Refused(String),
}

impl Inbox {
    /// Asks to change a limit of the run, or of one step that has not ended. Returns the id of the request.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn budget(
        &self,
        state: &RunState,
        step: Option<StepId>,
        raise: Raise,
        now: Timestamp,
    ) -> Result<String, SendError> {
        self.check_live(state)?;
        if let Some(id) = step {
            let count = state.steps.len();
            let found = state.step(id).ok_or(SendError::NoSuchStep { step: id.number(), count })?;
            if found.phase.is_terminal() {
                return Err(SendError::NotRunning { step: id.number(), phase: found.phase.as_str().to_owned() });
            }
        }
        // A runner that reads these requests has made the folder for them.
        if !self.dir.subdeck_requests().is_dir() {
            return Err(SendError::NoBudgets);
        }
        self.own("budget", now, |request| {
            request.set("key", raise.key());
            match raise.value() {
                Value::Number(n) => match n.as_u64() {
                    Some(whole) => request.set("value", whole),
                    None => request.opt("value", n.as_f64()),
                },
                Value::String(text) => request.set("value", text),
                _ => request,
            };
            request.opt("target", step.map(|s| s.flat()));
        })
    }

    /// Says that somebody took note of a notice. Returns the id of the request.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn acknowledge(&self, state: &RunState, notice: &str, now: Timestamp) -> Result<String, SendError> {
        self.check_live(state)?;
        self.own("acknowledge", now, |request| {
            request.set("attentionId", notice);
        })
    }

    /// Answers a question, by its name in the run. Returns the id of the request.
    ///
    /// # Errors
    /// Why nothing was sent: nobody waits for this answer, or it is none.
    pub fn answer(
        &self,
        state: &RunState,
        question: &str,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<String, SendError> {
        self.check_live(state)?;
        let open = state.steps.iter().flat_map(|step| &step.questions).find(|open| open.id == question);
        let open = open.ok_or_else(|| SendError::NoQuestion(question.to_owned()))?;
        open.asking.given(answer.choice(), answer.choices(), answer.text()).map_err(SendError::NoAnswer)?;
        self.own("answer", now, |request| {
            request.set("requestId", question).opt("choice", answer.choice()).opt("text", answer.text());
            if !answer.choices().is_empty() {
                request.set("choices", answer.choices().iter().collect::<Json>());
            }
        })
    }

    /// Withdraws a message that nobody took yet: its file while it lies there, else by a request to the runner, which may
    /// hold it for a step that has not begun. Returns the id of that request; `None` when the file was taken away.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn retract(&self, state: &RunState, request: &str, now: Timestamp) -> Result<Option<String>, SendError> {
        self.check_live(state)?;
        if self.take_away(request)? {
            return Ok(None);
        }
        if !self.dir.subdeck_requests().is_dir() {
            return Err(SendError::Taken);
        }
        self.own("retract", now, |obj| {
            obj.set("requestId", request);
        })
        .map(Some)
    }

    /// Removes the file of a message; false when it is not there any more. The runner opens, reads and removes: where its
    /// removal comes second, it leaves the message alone.
    fn take_away(&self, request: &str) -> Result<bool, SendError> {
        let tail = format!("-{}.json", URL_SAFE_NO_PAD.encode(request));
        let Ok(entries) = std::fs::read_dir(self.dir.steer_requests()) else { return Ok(false) };
        let mine = entries.flatten().find(|e| e.file_name().to_string_lossy().ends_with(&tail));
        let Some(mine) = mine else { return Ok(false) };
        match std::fs::remove_file(mine.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(SendError::Io(error)),
        }
    }

    /// Asks to end everything at once, without grace.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub fn kill(&self, now: Timestamp) -> Result<(), SendError> {
        self.own("kill", now, |_| ()).map(drop)
    }

    fn own(&self, kind: &str, now: Timestamp, fill: impl FnOnce(&mut Obj)) -> Result<String, SendError> {
        let id = uuid::Uuid::new_v4().to_string();
        let mut request = Obj::new();
        request.set("type", kind).set("id", &id).set("ts", now.millis()).set("source", status::source(&self.source));
        fill(&mut request);
        let path = self.folder("subdeck-requests")?.join(request_name(now, &id));
        write::replace(&path, &request.pretty())?;
        Ok(id)
    }
}

/// Where the answers to requests of ours are.
#[must_use]
pub fn answers(dir: &RunDir) -> PathBuf {
    dir.control().join("subdeck-acks")
}

/// The name of the answer to a request.
pub(super) fn answer_name(request: &str) -> String {
    format!("{}.json", URL_SAFE_NO_PAD.encode(request))
}

/// The runner's answer to a request of ours; `None` while there is none.
#[must_use]
pub fn answer_to(dir: &RunDir, request: &str) -> Option<Answered> {
    let file = open::ours(&answers(dir).join(answer_name(request))).ok()?;
    let value: Value = serde_json::from_slice(&open::read_at_most(&file, ANSWER_MOST).ok()?).ok()?;
    match value.get("state")?.as_str()? {
        "done" => Some(Answered::Done),
        "refused" => {
            let reason = value.get("reason").and_then(Value::as_str).unwrap_or("no reason is given");
            Some(Answered::Refused(reason.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ControlSource, RunPhase, SteerMode, StepPhase, StepState};
    use crate::rundir::{ControlRequest, InboxReader, OwnWhat, capability};

    const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_123);

    fn inbox() -> (tempfile::TempDir, RunDir, Inbox, RunState) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        dir.make_folders().unwrap();
        let source = ControlSource { via: "cli".into(), pid: Some(7), ..ControlSource::default() };
        let inbox = Inbox::open(&dir, source).unwrap();
        let step = |id, phase| StepState { id: StepId(id), phase, ..StepState::default() };
        let steps = vec![step(0, StepPhase::Running), step(1, StepPhase::Pending), step(2, StepPhase::Complete)];
        (temp, dir, inbox, RunState { phase: RunPhase::Running, steps, ..RunState::default() })
    }

    #[test]
    fn a_change_of_a_limit_arrives_as_it_was_sent() {
        let (_temp, dir, inbox, state) = inbox();
        for (step, word) in [(None, "tokens.soft=5"), (Some(StepId(1)), "time=1m"), (Some(StepId(0)), "cost_usd=2.5")] {
            let raise = Raise::parse(word).unwrap();
            let id = inbox.budget(&state, step, raise, NOW).unwrap();
            let taken = InboxReader::new(dir.clone()).take();
            let [ControlRequest::Own(own)] = &taken[..] else { panic!("{taken:?}") };
            assert_eq!((&own.id, own.step, own.at, own.source.pid), (&id, step, NOW, Some(7)));
            assert_eq!(own.what, OwnWhat::Budget { key: raise.key().to_owned(), value: raise.value() });
        }
    }

    #[test]
    fn a_change_that_would_come_to_nothing_is_not_sent() {
        let (_temp, dir, inbox, state) = inbox();
        let raise = Raise::parse("tokens=1").unwrap();
        let say = |state: &RunState, step| inbox.budget(state, step, raise, NOW).unwrap_err().to_string();
        assert_eq!(say(&state, Some(StepId(2))), "step 3 is complete");
        assert_eq!(say(&state, Some(StepId(9))), "there is no step 10; the run has 3");
        let over = RunState { phase: RunPhase::Complete, ended_at: Some(NOW), ..state.clone() };
        assert_eq!(say(&over, None), "the run is over (complete)");
        std::fs::remove_dir(dir.subdeck_requests()).unwrap();
        assert!(say(&state, None).contains("only those of subdeck"));
        assert!(!dir.subdeck_requests().exists());
    }

    #[test]
    fn a_message_is_taken_away_while_nobody_took_it_and_asked_for_afterwards() {
        let (_temp, dir, inbox, state) = inbox();
        let ids = inbox.steer(&state, &[StepId(0)], "go left", SteerMode::Steer, NOW).unwrap();
        assert_eq!(inbox.retract(&state, &ids[0], NOW).unwrap(), None);
        assert!(InboxReader::new(dir.clone()).take().is_empty(), "nothing is left of it");
        let ids = inbox.steer(&state, &[StepId(1)], "go left", SteerMode::Steer, NOW).unwrap();
        assert_eq!(InboxReader::new(dir.clone()).take().len(), 1);
        let asked = inbox.retract(&state, &ids[0], NOW).unwrap().unwrap();
        let taken = InboxReader::new(dir.clone()).take();
        let [ControlRequest::Own(own)] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!((&own.id, &own.what), (&asked, &OwnWhat::Retract { request: ids[0].clone() }));
        std::fs::remove_dir(dir.subdeck_requests()).unwrap();
        let error = inbox.retract(&state, &ids[0], NOW).unwrap_err().to_string();
        assert_eq!(error, "the message was taken already");
    }

    #[test]
    fn an_answer_is_read_once_it_is_there() {
        let (_temp, dir, _inbox, _state) = inbox();
        assert_eq!(answer_to(&dir, "r1"), None);
        capability::answer(&dir, "r1", None, NOW).unwrap();
        capability::answer(&dir, "r2", Some("too late"), NOW).unwrap();
        assert_eq!(answer_to(&dir, "r1"), Some(Answered::Done));
        assert_eq!(answer_to(&dir, "r2"), Some(Answered::Refused("too late".into())));
        for odd in ["", "[]", "{\"state\":\"perhaps\"}", "{\"state\":5}"] {
            std::fs::write(answers(&dir).join(answer_name("r3")), odd).unwrap();
            assert_eq!(answer_to(&dir, "r3"), None, "{odd}");
        }
        std::fs::write(answers(&dir).join(answer_name("r3")), "{\"state\":\"refused\"}").unwrap();
        assert_eq!(answer_to(&dir, "r3"), Some(Answered::Refused("no reason is given".into())));
    }
}
