//! How Claude Code is talked to over its standard input: one JSON object a line (agent-streams 1).

use serde_json::{Value, json};

use super::adapter::FOREIGN;
use super::asked::{Answers, Next};
use crate::agents::asked::{Outstanding, request_of};
use crate::agents::{Receipt, Talk, wrapping};
use crate::run::{AgentEvent, Answer, Asking, SteerMode, SteerRequest, Steerable, TargetState};

const INTERRUPT_ID: &str = "subdeck-interrupt";

/// A message that is under way.
#[derive(Clone, Debug)]
struct Open {
    id: String,
    uuid: String,
    follow_up: bool,
    /// The agent said that it has it.
    queued: bool,
}

/// Talks to Claude Code with its input open.
#[derive(Debug, Default)]
pub struct ClaudeTalk {
    /// It has ended its turn and waits.
    idle: bool,
    open: Vec<Open>,
    /// It was asked to break off: what waits in its queue is not waited for.
    breaking_off: bool,
    /// What it asked.
    asked: Outstanding,
    answers: Answers,
}

impl ClaudeTalk {
    /// A new one, for one child.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn command_line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn message(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

/// A task that begins with a slash is no command of the agent's because of the word in front.
pub(super) fn task(text: &str) -> String {
    format!("Task: {text}")
}

/// The name of a message for the agent, which takes only UUIDs; the same for the same request, and different from what
/// earlier runs of the session used.
fn uuid_of(id: &str) -> String {
    let hash = |seed: u64| {
        id.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(5))
    };
    let (high, low) = (hash(0xcbf2_9ce4_8422_2325), hash(0x9e37_79b9_7f4a_7c15));
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
    let (d, e) = (((low >> 48) & 0x3fff) | 0x8000, low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

impl Talk for ClaudeTalk {
    fn prompt(&mut self, text: &str) -> Vec<u8> {
        command_line(&message(&task(text)))
    }

    fn steer(&mut self, id: &str, mode: SteerMode, text: &str) -> Option<Vec<u8>> {
        let follow_up = mode == SteerMode::FollowUp;
        let waiting = self.open.iter().filter(|open| open.follow_up).count();
        if self.breaking_off || (follow_up && waiting >= SteerRequest::QUEUE_LIMIT) {
            return None;
        }
        let uuid = uuid_of(id);
        let mut command = message(&wrapping::wrapped(mode, text));
        if let Some(fields) = command.as_object_mut() {
            fields.insert("uuid".to_owned(), uuid.clone().into());
            if follow_up {
                fields.insert("priority".to_owned(), "later".into());
            }
        }
        self.open.push(Open { id: id.to_owned(), uuid, follow_up, queued: false });
        Some(command_line(&command))
    }

    fn wrap_up(&mut self, text: &str) -> Option<Vec<u8>> {
        // An idle agent would begin again because of it.
        (!self.idle).then(|| command_line(&message(&wrapping::limit(text))))
    }

    fn abort(&mut self) -> Option<Vec<u8>> {
        self.breaking_off = true;
        // It forgets by itself what it asked.
        self.asked.give_up();
        let request = json!({"subtype": "interrupt"});
        Some(command_line(&json!({"type": "control_request", "request_id": INTERRUPT_ID, "request": request})))
    }

    fn receipts(&mut self, event: &AgentEvent) -> Vec<Receipt> {
        match event {
            AgentEvent::AgentStarted => self.idle = false,
            AgentEvent::AgentEnded { .. } | AgentEvent::Settled { .. } => self.idle = true,
            AgentEvent::Response { id: Some(uuid), command, success, error } => {
                let Some(at) = self.open.iter().position(|open| open.uuid == *uuid) else { return Vec::new() };
                let state = match command.as_str() {
                    _ if !success => TargetState::Failed,
                    "queued" => TargetState::Queued,
                    "started" | "completed" => TargetState::Delivered,
                    _ => return Vec::new(),
                };
                if state == TargetState::Queued {
                    let Some(open) = self.open.get_mut(at) else { return Vec::new() };
                    open.queued = true;
                    return vec![Receipt { id: open.id.clone(), state, detail: None }];
                }
                return vec![Receipt { id: self.open.remove(at).id, state, detail: error.clone() }];
            }
            _ => {}
        }
        Vec::new()
    }

    fn answer(&mut self, event: &AgentEvent) -> Option<Vec<u8>> {
        self.asked.note(event);
        match event {
            // Whatever it wants to know, it waits until it hears something.
            AgentEvent::Response { id: Some(id), command, .. } if command == FOREIGN && !id.is_empty() => {
                let response = json!({"subtype": "error", "request_id": id, "error": "this is not supported"});
                Some(command_line(&json!({"type": "control_response", "response": response})))
            }
            _ => None,
        }
    }

    fn reply(&mut self, asking: &Asking, answer: &Answer) -> Option<Vec<u8>> {
        if !self.asked.take(&asking.id) {
            return None;
        }
        match self.answers.take(asking, answer) {
            Next::Wait => Some(Vec::new()),
            Next::Say(id, response) => {
                // What else the request asked is answered with it.
                self.asked.give_up_if(|open| request_of(open) == id);
                let response = json!({"subtype": "success", "request_id": id, "response": response});
                Some(command_line(&json!({"type": "control_response", "response": response})))
            }
        }
    }

    fn given_up(&mut self) -> Vec<String> {
        self.asked.given_up()
    }

    fn steerable(&self) -> Steerable {
        Steerable::Yes
    }

    /// With its input closed it ends what it has, and then itself, so a message on its way is not lost.
    fn done(&self) -> bool {
        self.idle && (self.breaking_off || !self.open.iter().any(|open| open.queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: Option<Vec<u8>>) -> Value {
        let bytes = bytes.expect("a command");
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "one line");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn lifecycle(uuid: &str, state: &str) -> AgentEvent {
        AgentEvent::Response { id: Some(uuid.into()), command: state.into(), success: true, error: None }
    }

    #[test]
    fn a_message_is_queued_then_delivered_once() {
        let mut talk = ClaudeTalk::new();
        let prompt = parse(Some(talk.prompt("/clear\n\"q\"")));
        assert_eq!(prompt["message"]["content"][0]["text"], "Task: /clear\n\"q\"");
        let sent = parse(talk.steer("r1", SteerMode::Auto, "bananas"));
        assert_eq!((sent["type"].as_str(), sent.get("priority")), (Some("user"), None));
        assert_eq!(wrapping::unwrapped(sent["message"]["content"][0]["text"].as_str().unwrap()), "bananas");
        let uuid = sent["uuid"].as_str().unwrap().to_owned();
        let states = |receipts: Vec<Receipt>| receipts.into_iter().map(|r| (r.id, r.state)).collect::<Vec<_>>();
        assert_eq!(states(talk.receipts(&lifecycle("other", "queued"))), []);
        assert_eq!(states(talk.receipts(&lifecycle(&uuid, "queued"))), [("r1".to_owned(), TargetState::Queued)]);
        talk.receipts(&AgentEvent::Settled { aborted: false });
        assert!(!talk.done(), "it has a message to deal with");
        talk.receipts(&AgentEvent::AgentStarted);
        assert_eq!(states(talk.receipts(&lifecycle(&uuid, "started"))), [("r1".to_owned(), TargetState::Delivered)]);
        assert_eq!(states(talk.receipts(&lifecycle(&uuid, "completed"))), []);
        assert!(!talk.done());
        talk.receipts(&AgentEvent::Settled { aborted: false });
        assert!(talk.done());
    }

    #[test]
    fn follow_ups_wait_for_the_end_of_the_turn_and_are_bounded() {
        let mut talk = ClaudeTalk::new();
        for n in 0..SteerRequest::QUEUE_LIMIT {
            let sent = parse(talk.steer(&n.to_string(), SteerMode::FollowUp, "more"));
            assert_eq!(sent["priority"], "later");
        }
        assert_eq!(talk.steer("one too many", SteerMode::FollowUp, "x"), None);
        assert!(talk.steer("another way", SteerMode::Steer, "x").is_some());
    }

    #[test]
    fn an_agent_that_breaks_off_is_done_whatever_waits_in_its_queue() {
        let mut talk = ClaudeTalk::new();
        let uuid = parse(talk.steer("f", SteerMode::FollowUp, "more"))["uuid"].as_str().unwrap().to_owned();
        talk.receipts(&lifecycle(&uuid, "queued"));
        let abort = parse(talk.abort());
        assert_eq!(abort["request"]["subtype"], "interrupt");
        assert_eq!(talk.steer("late", SteerMode::Steer, "x"), None);
        assert!(!talk.done());
        talk.receipts(&AgentEvent::Settled { aborted: true });
        assert!(talk.done());
        assert_eq!(talk.wrap_up("x"), None);
    }

    #[test]
    fn questions_are_answered_once_and_what_is_not_known_is_refused() {
        let mut talk = ClaudeTalk::new();
        let asking =
            |id: &str| Asking { id: id.to_owned(), repeat: Some(r#"{"command":"make"}"#.into()), ..Asking::default() };
        assert_eq!(talk.reply(&asking("q1"), &Answer::Allow), None, "nobody asked");
        for id in ["q1", "q2"] {
            assert_eq!(talk.answer(&AgentEvent::Asked(Box::new(asking(id)))), None, "somebody has to be asked");
        }
        let reply = parse(talk.reply(&asking("q2"), &Answer::Allow));
        assert_eq!((&reply["type"], &reply["response"]["request_id"]), (&json!("control_response"), &json!("q2")));
        assert_eq!(reply["response"]["response"], json!({"behavior": "allow", "updatedInput": {"command": "make"}}));
        assert_eq!(talk.reply(&asking("q2"), &Answer::Deny(None)), None, "once");
        talk.abort();
        assert_eq!(talk.given_up(), ["q1"]);
        assert_eq!(talk.reply(&asking("q1"), &Answer::Allow), None);
        let foreign =
            AgentEvent::Response { id: Some("q3".into()), command: FOREIGN.into(), success: true, error: None };
        assert_eq!(parse(talk.answer(&foreign))["response"]["subtype"], "error");
        assert_eq!(talk.answer(&lifecycle("u", "queued")), None);
    }

    #[test]
    fn a_refusal_answers_all_questions_of_a_request() {
        let mut talk = ClaudeTalk::new();
        let asking = |id: &str| Asking { id: id.to_owned(), ..Asking::default() };
        for id in ["r#0", "r#1", "x"] {
            talk.answer(&AgentEvent::Asked(Box::new(asking(id))));
        }
        let reply = parse(talk.reply(&asking("r#0"), &Answer::Deny(None)));
        assert_eq!((&reply["response"]["request_id"], talk.given_up()), (&json!("r"), vec!["r#1".to_owned()]));
        assert!(talk.reply(&asking("x"), &Answer::Allow).is_some());
    }

    #[test]
    fn names_of_messages_are_uuids() {
        let uuid = uuid_of("1764000000000-abc");
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
        assert_eq!(uuid, uuid_of("1764000000000-abc"));
        assert_ne!(uuid, uuid_of("1764000000000-abd"));
    }
}
