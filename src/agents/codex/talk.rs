//! The client's side of the conversation with Codex's app server: the handshake, the task, messages, breaking off, and
//! answers to what it asks for (agent-streams 2b).

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::approval;
use super::session::{INITIALIZE, INTERRUPT, RUNS, STEER, Session, TAKEN, TASK, THREAD, TURN};
use crate::agents::asked::{Outstanding, Together, request_of};
use crate::agents::handshake::{Phase, refused};
use crate::agents::{Receipt, Talk, wrapping};
use crate::run::{AgentEvent, Answer, Asking, SteerMode, SteerRequest, Steerable, TargetState};

/// A message to the model.
#[derive(Clone, Debug)]
struct Note {
    /// The request's id; `None` for what nobody waits for.
    id: Option<String>,
    text: String,
    /// Only for when the work before it is done.
    follow_up: bool,
}

/// A message that was handed over and that the model does not have yet.
#[derive(Debug)]
struct Sent {
    /// Our id of the request, which names the message too.
    wire: String,
    note: Note,
}

/// Talks to an app server.
#[derive(Debug)]
pub struct CodexTalk {
    session: Arc<Session>,
    phase: Phase,
    task: String,
    /// Codex's id of the session.
    thread: Option<String>,
    /// The turn that runs.
    turn: Option<String>,
    /// A turn was asked for and has not begun.
    starting: bool,
    next: u64,
    sent: Vec<Sent>,
    waiting: VecDeque<Note>,
    /// What became of messages, and was not told yet.
    moved: Vec<Receipt>,
    /// It was asked to break off for good.
    breaking_off: bool,
    /// What it asked.
    asked: Outstanding,
    together: Together,
}

impl CodexTalk {
    /// A new one, for one child.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            phase: Phase::default(),
            task: String::new(),
            thread: None,
            turn: None,
            starting: false,
            next: 1,
            sent: Vec::new(),
            waiting: VecDeque::new(),
            moved: Vec::new(),
            breaking_off: false,
            asked: Outstanding::default(),
            together: Together::default(),
        }
    }

    /// The id of the next request of a kind.
    fn name(&mut self, kind: &str) -> String {
        let n = self.next;
        self.next += 1;
        format!("{kind}:{n}")
    }

    /// A turn of its own for a text.
    fn begin(&mut self, text: &str, note: Option<Note>) -> Vec<u8> {
        let wire = self.name(TURN);
        self.starting = true;
        let params = json!({"threadId": self.thread, "input": input(text), "clientUserMessageId": wire});
        let bytes = request(&wire, "turn/start", &params);
        self.sent.extend(note.map(|note| Sent { wire, note }));
        bytes
    }

    /// Into the turn that runs.
    fn put(&mut self, turn: &str, note: Note) -> Vec<u8> {
        let wire = self.name(STEER);
        let params = json!({"threadId": self.thread, "expectedTurnId": turn, "input": input(&note.text),
            "clientUserMessageId": wire});
        let bytes = request(&wire, "turn/steer", &params);
        self.sent.push(Sent { wire, note });
        bytes
    }

    fn interrupt(&mut self) -> Option<Vec<u8>> {
        let turn = self.turn.clone()?;
        let wire = self.name(INTERRUPT);
        Some(request(&wire, "turn/interrupt", &json!({"threadId": self.thread, "turnId": turn})))
    }

    /// What is to be said next, as far as it can be said now.
    fn go_on(&mut self) -> Option<Vec<u8>> {
        if self.phase != Phase::Open || self.breaking_off || self.starting {
            return None;
        }
        if let Some(turn) = self.turn.clone() {
            let (now, later): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut self.waiting).into_iter().partition(|note| !note.follow_up);
            self.waiting = later;
            let bytes: Vec<u8> = now.into_iter().flat_map(|note| self.put(&turn, note)).collect();
            return (!bytes.is_empty()).then_some(bytes);
        }
        // What was said in the middle of the work comes before what was meant for its end.
        let at = self.waiting.iter().position(|note| !note.follow_up).unwrap_or(0);
        let note = self.waiting.remove(at)?;
        Some(self.begin(&note.text.clone(), Some(note)))
    }

    /// A request of ours was answered.
    fn answered(&mut self, id: &str, error: Option<&str>) -> Option<Vec<u8>> {
        let at = self.sent.iter().position(|sent| sent.wire == id);
        match (id.split(':').next().unwrap_or_default(), error) {
            (INITIALIZE, None) if !self.breaking_off => {
                let (method, params) = self.session.request();
                let mut bytes = line(&json!({"method": "initialized"}));
                bytes.extend(request(THREAD, method, &params));
                Some(bytes)
            }
            (INITIALIZE | THREAD, Some(_)) => {
                self.phase = Phase::Refused;
                None
            }
            (TURN, Some(error)) => {
                self.starting = false;
                if let Some(id) = at.map(|at| self.sent.remove(at)).and_then(|sent| sent.note.id) {
                    self.moved.push(Receipt { id, state: TargetState::Failed, detail: Some(error.to_owned()) });
                }
                if id == TASK {
                    self.phase = Phase::Refused;
                }
                self.go_on()
            }
            // The turn ended before the message came; it gets one of its own.
            (STEER, Some(_)) => {
                let note = at.map(|at| self.sent.remove(at).note)?;
                self.waiting.push_front(note);
                if self.turn.is_none() { self.go_on() } else { None }
            }
            (TURN | STEER, None) => {
                if let Some(id) = at.and_then(|at| self.sent.get(at)).and_then(|sent| sent.note.id.clone()) {
                    self.moved.push(Receipt { id, state: TargetState::Queued, detail: None });
                }
                None
            }
            _ => None,
        }
    }
}

fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"id": id, "method": method, "params": params}))
}

/// The answer to a request of the server's, whose id is JSON.
fn reply_line(id: &str, member: &str, value: Value) -> Vec<u8> {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    line(&json!({"id": id, member: value}))
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

impl Talk for CodexTalk {
    fn prompt(&mut self, text: &str) -> Vec<u8> {
        text.clone_into(&mut self.task);
        let client = json!({"name": "subdeck", "title": "Subdeck", "version": env!("CARGO_PKG_VERSION")});
        request(INITIALIZE, "initialize", &json!({ "clientInfo": client }))
    }

    fn steer(&mut self, id: &str, mode: SteerMode, text: &str) -> Option<Vec<u8>> {
        let follow_up = mode == SteerMode::FollowUp;
        let full = self.waiting.iter().filter(|note| note.follow_up).count() >= SteerRequest::QUEUE_LIMIT;
        if self.breaking_off || self.phase == Phase::Refused || (follow_up && full) {
            return None;
        }
        self.waiting.push_back(Note { id: Some(id.to_owned()), text: wrapping::wrapped(mode, text), follow_up });
        Some(self.go_on().unwrap_or_default())
    }

    fn wrap_up(&mut self, text: &str) -> Option<Vec<u8>> {
        let turn = self.turn.clone().filter(|_| !self.breaking_off)?;
        Some(self.put(&turn, Note { id: None, text: wrapping::limit(text), follow_up: false }))
    }

    fn abort(&mut self) -> Option<Vec<u8>> {
        self.breaking_off = true;
        // It forgets by itself what it asked.
        self.asked.give_up();
        self.interrupt()
    }

    fn reply(&mut self, asking: &Asking, answer: &Answer) -> Option<Vec<u8>> {
        if !self.asked.take(&asking.id) {
            return None;
        }
        let Some(result) = approval::result(asking, answer, &mut self.together) else { return Some(Vec::new()) };
        // What else the request asked is answered with it.
        let request = request_of(&asking.id);
        self.asked.give_up_if(|open| request_of(open) == request);
        Some(reply_line(request, "result", result))
    }

    fn given_up(&mut self) -> Vec<String> {
        self.asked.given_up()
    }

    fn answer(&mut self, event: &AgentEvent) -> Option<Vec<u8>> {
        self.asked.note(event);
        match event {
            AgentEvent::SessionStarted { session_id: Some(id), .. } if self.phase == Phase::Greeting => {
                self.thread = Some(id.clone());
                self.phase = Phase::Open;
                if self.breaking_off {
                    return None;
                }
                let task = std::mem::take(&mut self.task);
                Some(self.begin(&task, None))
            }
            AgentEvent::Response { id: Some(id), command, .. } if command == TAKEN => {
                let at = self.sent.iter().position(|sent| sent.wire == *id)?;
                let id = self.sent.remove(at).note.id?;
                self.moved.push(Receipt { id, state: TargetState::Delivered, detail: None });
                None
            }
            AgentEvent::Response { id: Some(id), success, error, .. } => {
                let otherwise = (!success).then_some("the agent refused the message");
                self.answered(id, error.as_deref().or(otherwise))
            }
            AgentEvent::Called { id, method } if method == RUNS => {
                self.starting = false;
                self.turn = Some(id.clone());
                if self.breaking_off { self.interrupt() } else { self.go_on() }
            }
            AgentEvent::Called { id, method } => {
                let (member, value) = approval::answer(method);
                Some(reply_line(id, member, value))
            }
            AgentEvent::Settled { .. } => {
                self.turn = None;
                self.go_on()
            }
            _ => None,
        }
    }

    fn receipts(&mut self, _event: &AgentEvent) -> Vec<Receipt> {
        let mut all = std::mem::take(&mut self.moved);
        if self.phase == Phase::Refused {
            all.extend(refused(self.waiting.drain(..).filter_map(|note| note.id)));
        }
        all
    }

    fn steerable(&self) -> Steerable {
        self.phase.steerable()
    }

    fn done(&self) -> bool {
        match self.phase {
            Phase::Refused => true,
            Phase::Greeting => false,
            Phase::Open => self.turn.is_none() && !self.starting && (self.breaking_off || self.waiting.is_empty()),
        }
    }
}
