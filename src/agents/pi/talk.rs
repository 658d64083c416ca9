//! How pi is talked to over its standard input: one JSON object a line.

use serde_json::json;

use super::decode::preview;
use crate::agents::asked::Outstanding;
use crate::agents::{Receipt, Talk, wrapping};
use crate::run::{
    AgentEvent, Answer, Asking, MessageRole, QuestionKind, SteerMode, SteerRequest, Steerable, TargetState,
};

/// The id of the command that hands over the task.
pub(super) const PROMPT_ID: &str = "subdeck-prompt";
const STATE_ID: &str = "subdeck-state";
const ABORT_ID: &str = "subdeck-abort";
const WRAP_UP_ID: &str = "subdeck-wrap-up";

/// What pi does, as far as its events tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked yet.
    #[default]
    New,
    /// It works on a prompt, or will.
    Busy,
    /// It waits for a prompt.
    Idle,
    /// It refused the task.
    Refused,
}

/// A message that is under way.
#[derive(Clone, Debug)]
struct Open {
    id: String,
    /// The beginning of the text as pi will echo it.
    echo: String,
    follow_up: bool,
    prompt: bool,
}

/// Talks to pi in rpc mode.
#[derive(Debug, Default)]
pub struct PiTalk {
    phase: Phase,
    open: Vec<Open>,
    /// It was asked to break off: what waits in its queue is not to be begun.
    breaking_off: bool,
    /// What its extensions asked.
    asked: Outstanding,
}

impl PiTalk {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn command_line(value: &serde_json::Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn ui_response(id: &str, key: &str, value: serde_json::Value) -> serde_json::Value {
    json!({"type": "extension_ui_response", "id": id, key: value})
}

impl Talk for PiTalk {
    fn prompt(&mut self, text: &str) -> Vec<u8> {
        self.phase = Phase::Busy;
        // The word in front keeps a task that begins with a slash, an at sign or a dash from being taken for something
        // else. The state is asked for because rpc mode has no session header.
        let mut bytes = command_line(&json!({"id": PROMPT_ID, "type": "prompt", "message": format!("Task: {text}")}));
        bytes.extend(command_line(&json!({"id": STATE_ID, "type": "get_state"})));
        bytes
    }

    fn steer(&mut self, id: &str, mode: SteerMode, text: &str) -> Option<Vec<u8>> {
        let follow_up = mode == SteerMode::FollowUp;
        let waiting = self.open.iter().filter(|open| open.follow_up).count();
        if self.breaking_off || self.phase == Phase::Refused || (follow_up && waiting >= SteerRequest::QUEUE_LIMIT) {
            return None;
        }
        let message = wrapping::wrapped(mode, text);
        // A queue is only emptied by a run of the agent, so an idle agent gets a prompt in any mode.
        let prompt = self.phase != Phase::Busy;
        let command = if prompt {
            json!({"id": id, "type": "prompt", "message": message, "streamingBehavior": "steer"})
        } else if follow_up {
            json!({"id": id, "type": "follow_up", "message": message})
        } else {
            json!({"id": id, "type": "steer", "message": message})
        };
        if prompt {
            self.phase = Phase::Busy;
        }
        self.open.push(Open { id: id.to_owned(), echo: preview(&message), follow_up, prompt });
        Some(command_line(&command))
    }

    fn wrap_up(&mut self, text: &str) -> Option<Vec<u8>> {
        // An idle agent would begin again because of it.
        let message = wrapping::limit(text);
        (self.phase == Phase::Busy)
            .then(|| command_line(&json!({"id": WRAP_UP_ID, "type": "steer", "message": message})))
    }

    fn abort(&mut self) -> Option<Vec<u8>> {
        self.breaking_off = true;
        let mut bytes = command_line(&json!({"id": ABORT_ID, "type": "abort"}));
        // An extension that waits for an answer would keep it from breaking off.
        for id in self.asked.give_up() {
            bytes.extend(command_line(&ui_response(id, "cancelled", true.into())));
        }
        Some(bytes)
    }

    fn receipts(&mut self, event: &AgentEvent) -> Vec<Receipt> {
        match event {
            // After this it would begin with what waits in its queue; with its input closed it exits instead (real-pi 3).
            AgentEvent::AgentEnded { .. } | AgentEvent::Settled { .. } if self.breaking_off => self.phase = Phase::Idle,
            AgentEvent::AgentStarted if !self.breaking_off => self.phase = Phase::Busy,
            // A prompt of ours that was sent meanwhile will start it again.
            AgentEvent::Settled { .. } if !self.open.iter().any(|open| open.prompt) => self.phase = Phase::Idle,
            AgentEvent::Response { id: Some(id), success, error, .. } => {
                if id == PROMPT_ID && !success {
                    self.phase = Phase::Refused;
                }
                let Some(at) = self.open.iter().position(|open| open.id == *id) else { return Vec::new() };
                if *success {
                    return vec![Receipt { id: id.clone(), state: TargetState::Queued, detail: None }];
                }
                let open = self.open.remove(at);
                if open.prompt {
                    self.phase = Phase::Idle;
                }
                let detail = Some(error.clone().unwrap_or_else(|| "the agent refused the message".to_owned()));
                return vec![Receipt { id: open.id, state: TargetState::Failed, detail }];
            }
            AgentEvent::Message { role: MessageRole::User, preview, .. } => {
                let Some(at) = self.open.iter().position(|open| open.echo == *preview) else { return Vec::new() };
                let open = self.open.remove(at);
                return vec![Receipt { id: open.id, state: TargetState::Delivered, detail: None }];
            }
            _ => {}
        }
        Vec::new()
    }

    fn answer(&mut self, event: &AgentEvent) -> Option<Vec<u8>> {
        self.asked.note(event);
        None
    }

    fn reply(&mut self, asking: &Asking, answer: &Answer) -> Option<Vec<u8>> {
        if !self.asked.take(&asking.id) {
            return None;
        }
        let (key, value) = match answer {
            Answer::Choose(_) | Answer::Several(..) | Answer::Text(_) => ("value", answer.words().into()),
            Answer::Allow | Answer::Deny(_) if asking.kind == QuestionKind::Confirm => {
                ("confirmed", (*answer == Answer::Allow).into())
            }
            Answer::Allow | Answer::Deny(_) | Answer::Dismiss => ("cancelled", true.into()),
        };
        Some(command_line(&ui_response(&asking.id, key, value)))
    }

    fn given_up(&mut self) -> Vec<String> {
        self.asked.given_up()
    }

    fn steerable(&self) -> Steerable {
        match self.phase {
            Phase::Refused => Steerable::No("the agent refused its task".to_owned()),
            Phase::New | Phase::Busy | Phase::Idle => Steerable::Yes,
        }
    }

    fn done(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> AgentEvent {
        AgentEvent::Message {
            role: MessageRole::User,
            preview: preview(text),
            model: None,
            stop: None,
            usage: None,
            error: None,
            calls_tools: false,
        }
    }

    fn response(id: &str, success: bool) -> AgentEvent {
        AgentEvent::Response { id: Some(id.into()), command: "x".into(), success, error: Some("no".into()) }
    }

    fn parse(bytes: Option<Vec<u8>>) -> serde_json::Value {
        let bytes = bytes.expect("a command");
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "one line");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn states(receipts: &[Receipt]) -> Vec<(&str, TargetState)> {
        receipts.iter().map(|r| (r.id.as_str(), r.state)).collect()
    }

    #[test]
    fn a_task_is_safe_whatever_it_begins_with() {
        let mut talk = PiTalk::new();
        let bytes = talk.prompt("@file\n-x \"q\"");
        let text = String::from_utf8(bytes).expect("text");
        let first = text.lines().next().expect("a line");
        let value: serde_json::Value = serde_json::from_str(first).expect("JSON");
        assert_eq!(value, json!({"id": "subdeck-prompt", "type": "prompt", "message": "Task: @file\n-x \"q\""}));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_message_is_queued_then_delivered_once() {
        let mut talk = PiTalk::new();
        talk.prompt("t");
        talk.receipts(&AgentEvent::AgentStarted);
        let command = parse(talk.steer("r1", SteerMode::Auto, "bananas"));
        assert_eq!((command["type"].as_str(), command["id"].as_str()), (Some("steer"), Some("r1")));
        let sent = command["message"].as_str().expect("text").to_owned();
        assert_eq!(wrapping::unwrapped(&sent), "bananas");
        assert_eq!(states(&talk.receipts(&response("r1", true))), [("r1", TargetState::Queued)]);
        assert_eq!(talk.receipts(&user("something else")), []);
        assert_eq!(states(&talk.receipts(&user(&sent))), [("r1", TargetState::Delivered)]);
        assert_eq!(talk.receipts(&user(&sent)), []);
        assert_eq!(talk.receipts(&response("r1", true)), []);
        assert!(!talk.done());
        talk.receipts(&AgentEvent::Settled { aborted: false });
        assert!(talk.done());
    }

    #[test]
    fn an_idle_agent_gets_a_prompt() {
        let mut talk = PiTalk::new();
        talk.prompt("t");
        talk.receipts(&AgentEvent::Settled { aborted: false });
        for (id, mode) in [("a", SteerMode::Steer), ("b", SteerMode::FollowUp), ("c", SteerMode::Auto)] {
            let command = parse(talk.steer(id, mode, "more"));
            assert_eq!(command["type"].as_str(), Some("prompt"));
            assert!(!talk.done());
            let sent = command["message"].as_str().expect("text").to_owned();
            talk.receipts(&user(&sent));
            talk.receipts(&AgentEvent::Settled { aborted: false });
            assert!(talk.done());
        }
    }

    #[test]
    fn an_agent_that_breaks_off_is_done_whatever_waits_in_its_queue() {
        let mut talk = PiTalk::new();
        talk.prompt("t");
        talk.receipts(&AgentEvent::AgentStarted);
        assert!(talk.steer("f", SteerMode::FollowUp, "more").is_some());
        talk.receipts(&response("f", true));
        talk.receipts(&AgentEvent::AgentEnded { will_retry: false });
        assert!(!talk.done(), "without an abort the follow-up is waited for");
        assert!(talk.abort().is_some());
        assert!(!talk.done());
        talk.receipts(&AgentEvent::AgentEnded { will_retry: false });
        assert!(talk.done());
        // It begins with the follow-up before it sees the end of its input.
        talk.receipts(&AgentEvent::AgentStarted);
        assert!(talk.done());
        assert_eq!(talk.steer("g", SteerMode::Steer, "too late"), None);
    }

    #[test]
    fn extensions_get_the_answer_that_their_dialog_takes() {
        use QuestionKind::{Choice, Confirm, Text};
        let denied = Answer::Deny(Some("no".into()));
        for (kind, answer, key, value) in [
            (Confirm, Answer::Allow, "confirmed", json!(true)),
            (Confirm, denied, "confirmed", json!(false)),
            (Choice, Answer::Choose("Block".into()), "value", json!("Block")),
            (Text, Answer::Text("two\nlines".into()), "value", json!("two\nlines")),
            (Text, Answer::Dismiss, "cancelled", json!(true)),
        ] {
            let mut talk = PiTalk::new();
            let asking = Asking { id: "u1".into(), kind, ..Asking::default() };
            assert_eq!(talk.reply(&asking, &answer), None, "nobody asked");
            assert_eq!(talk.answer(&AgentEvent::Asked(Box::new(asking.clone()))), None, "somebody has to be asked");
            let reply = parse(talk.reply(&asking, &answer));
            assert_eq!(reply, json!({"type": "extension_ui_response", "id": "u1", key: value}));
            assert_eq!(talk.reply(&asking, &answer), None, "once");
        }
    }

    #[test]
    fn an_extension_that_waits_does_not_keep_it_from_breaking_off() {
        let mut talk = PiTalk::new();
        talk.prompt("t");
        talk.answer(&AgentEvent::Asked(Box::new(Asking { id: "u1".into(), ..Asking::default() })));
        let text = String::from_utf8(talk.abort().expect("bytes")).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines[0]["type"], "abort");
        assert_eq!(lines[1], json!({"type": "extension_ui_response", "id": "u1", "cancelled": true}));
        assert_eq!((talk.given_up(), talk.given_up()), (vec!["u1".to_owned()], vec![]));
    }

    #[test]
    fn refusals() {
        let mut talk = PiTalk::new();
        talk.prompt("t");
        let command = parse(talk.steer("f", SteerMode::FollowUp, "later"));
        assert_eq!(command["type"].as_str(), Some("follow_up"));
        let failed = talk.receipts(&response("f", false));
        assert_eq!((failed[0].state, failed[0].detail.as_deref()), (TargetState::Failed, Some("no")));
        for n in 0..SteerRequest::QUEUE_LIMIT {
            assert!(talk.steer(&n.to_string(), SteerMode::FollowUp, "x").is_some());
        }
        assert_eq!(talk.steer("one too many", SteerMode::FollowUp, "x"), None);
        assert!(talk.steer("another way", SteerMode::Steer, "x").is_some());
        talk.receipts(&response(PROMPT_ID, false));
        assert!(talk.done());
        assert_eq!(talk.steer("s", SteerMode::Steer, "x"), None);
        assert!(matches!(talk.steerable(), Steerable::No(_)));
    }
}
