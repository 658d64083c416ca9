//! The client's side of the conversation: the handshake, the task, messages, breaking off, and answers to what the
//! agent asks for.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::subs::OWN_TURN;
use super::{DRAIN, Dialect, INITIALIZE, SETTLE, Session};
use crate::agents::asked::{Outstanding, REFUSED};
use crate::agents::handshake::{Phase, refused};
use crate::agents::{Receipt, Talk, wrapping};
use crate::run::{AgentEvent, Answer, Asking, SteerMode, SteerRequest, Steerable, SubAgentDid, TargetState};

/// JSON-RPC's code for a method that is not there.
const NOT_FOUND: i64 = -32601;

/// How often an agent is told to go on after it broke off because of a refusal; one that asks for the same again and
/// again is not helped by it.
const MOST_TOLD: u32 = 5;

/// A message that the agent does not have yet.
#[derive(Clone, Debug)]
struct Waiting {
    /// The request's id; `None` for what nobody waits for.
    id: Option<String>,
    text: String,
    /// Only for when the work before it is done.
    follow_up: bool,
}

/// A prompt that is not answered.
#[derive(Clone, Debug)]
struct Prompt {
    number: u64,
    /// The request that it came from, until it is known that the agent has it.
    steer: Option<String>,
}

/// Talks to an agent.
#[derive(Debug)]
pub struct AcpTalk {
    session: Arc<Session>,
    phase: Phase,
    task: String,
    session_id: Option<String>,
    next: u64,
    /// Prompts that are not answered, the oldest first.
    prompts: VecDeque<Prompt>,
    waiting: VecDeque<Waiting>,
    /// What became of messages, and was not told yet.
    moved: Vec<Receipt>,
    /// The running prompt is being cancelled, to make room for a message.
    redirecting: bool,
    /// It was asked to break off for good.
    breaking_off: bool,
    /// Permissions that it waits for.
    asked: Outstanding,
    /// Why it was refused one, until its model says something: an agent may break off instead of telling it.
    refused: Option<String>,
    /// How often it was told to go on because of that.
    told: u32,
    /// Its sub-agents that work.
    subs: Vec<String>,
    /// It will go on by itself, or does: one of them works, or has brought what it came to.
    goes_on: bool,
}

impl AcpTalk {
    /// A new one, for one child.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            phase: Phase::default(),
            task: String::new(),
            session_id: None,
            next: INITIALIZE,
            prompts: VecDeque::new(),
            waiting: VecDeque::new(),
            moved: Vec::new(),
            redirecting: false,
            breaking_off: false,
            asked: Outstanding::default(),
            refused: None,
            told: 0,
            subs: Vec::new(),
            goes_on: false,
        }
    }

    /// A request with the next number.
    fn request(&mut self, params: &Value) -> Vec<u8> {
        let id = self.next;
        self.next += 1;
        line(&json!({"jsonrpc": "2.0", "id": id, "method": self.session.method_of(id), "params": params}))
    }

    fn prompt_with(&mut self, text: &str, steer: Option<String>) -> Vec<u8> {
        self.prompts.push_back(Prompt { number: self.next, steer });
        let params = json!({"sessionId": self.session_id, "prompt": [{"type": "text", "text": text}]});
        self.request(&params)
    }

    /// Breaks the running prompt off. What the agent waits for is answered too, as the protocol wants it.
    fn cancel(&mut self) -> Vec<u8> {
        let mut bytes =
            line(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session_id}}));
        for id in self.asked.give_up() {
            bytes.extend(outcome(id, None));
        }
        bytes
    }

    /// The next step of the handshake, once the one before is answered.
    fn greet(&mut self) -> Vec<u8> {
        let session = Arc::clone(&self.session);
        let params = match (session.method_of(self.next), &session.login, &session.resume) {
            ("authenticate", login, _) => json!({"methodId": login}),
            (_, _, Some(id)) => json!({"sessionId": id, "cwd": session.cwd, "mcpServers": []}),
            (_, _, None) => json!({"cwd": session.cwd, "mcpServers": []}),
        };
        self.request(&params)
    }

    /// The session is there: the task is handed over.
    fn begin(&mut self) -> Option<Vec<u8>> {
        self.phase = Phase::Open;
        if self.breaking_off {
            return None;
        }
        let task = std::mem::take(&mut self.task);
        Some(self.prompt_with(&task, None))
    }

    /// What is to be said next, now that the agent waits.
    fn go_on(&mut self) -> Option<Vec<u8>> {
        if self.phase != Phase::Open || self.breaking_off || !self.prompts.is_empty() {
            return None;
        }
        let at = self.waiting.iter().position(|waiting| !waiting.follow_up);
        // Whoever broke off because of a refusal has work left; what a person says in the meantime does as well.
        if let Some(reason) = self.refused.take()
            && at.is_none()
            && self.told < MOST_TOLD
        {
            self.told += 1;
            return Some(self.prompt_with(&wrapping::limit(&reason), None));
        }
        // What was said in the middle of the work comes before what was meant for its end.
        let at = at.unwrap_or(0);
        let next = self.waiting.remove(at)?;
        Some(self.prompt_with(&next.text, next.id))
    }

    /// A prompt was answered; `error` says why it came to nothing.
    fn answered(&mut self, number: u64, error: Option<&str>) {
        self.redirecting = false;
        let Some(at) = self.prompts.iter().position(|prompt| prompt.number == number) else { return };
        let Some(id) = self.prompts.remove(at).and_then(|prompt| prompt.steer) else { return };
        let state = if error.is_some() { TargetState::Failed } else { TargetState::Delivered };
        self.moved.push(Receipt { id, state, detail: error.map(str::to_owned) });
    }

    /// The answer to a request of the agent's.
    fn serve(&mut self, id: &str, method: &str) -> Vec<u8> {
        let id: Value = serde_json::from_str(id).unwrap_or_default();
        let result = match method {
            DRAIN => {
                let texts = self.drain();
                json!({"messages": texts, "hasQueuedPrompt": false})
            }
            _ => {
                let error = json!({"code": NOT_FOUND, "message": format!("the client does not offer {method}")});
                return line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    /// Takes out what is to be put into the running turn.
    fn drain(&mut self) -> Vec<String> {
        if self.breaking_off {
            return Vec::new();
        }
        let (now, later): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| !waiting.follow_up);
        self.waiting = later;
        self.moved.extend(now.iter().filter_map(|waiting| waiting.id.clone()).map(delivered));
        now.into_iter().map(|waiting| waiting.text).collect()
    }
}

/// The answer to a request for a permission: the chosen option, or that it was broken off. The id is JSON.
fn outcome(id: &str, option: Option<&str>) -> Vec<u8> {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    line(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
}

fn delivered(id: String) -> Receipt {
    Receipt { id, state: TargetState::Delivered, detail: None }
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

impl Talk for AcpTalk {
    fn prompt(&mut self, text: &str) -> Vec<u8> {
        text.clone_into(&mut self.task);
        self.request(&json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "subdeck", "title": "Subdeck", "version": env!("CARGO_PKG_VERSION")},
        }))
    }

    fn steer(&mut self, id: &str, mode: SteerMode, text: &str) -> Option<Vec<u8>> {
        let follow_up = mode == SteerMode::FollowUp;
        let full = self.waiting.iter().filter(|waiting| waiting.follow_up).count() >= SteerRequest::QUEUE_LIMIT;
        if self.breaking_off || self.phase == Phase::Refused || (follow_up && full) {
            return None;
        }
        let text = wrapping::wrapped(mode, text);
        // OpenCode takes a second prompt into the running turn.
        if self.phase == Phase::Open && !follow_up && self.session.dialect == Dialect::OpenCode {
            return Some(self.prompt_with(&text, Some(id.to_owned())));
        }
        self.waiting.push_back(Waiting { id: Some(id.to_owned()), text, follow_up });
        if self.phase != Phase::Open || follow_up || self.prompts.is_empty() {
            return Some(self.go_on().unwrap_or_default());
        }
        // Qwen asks for it after its tools; the others are to break off what they do, so that they take it now.
        if self.session.dialect == Dialect::Qwen || std::mem::replace(&mut self.redirecting, true) {
            return Some(Vec::new());
        }
        Some(self.cancel())
    }

    fn wrap_up(&mut self, text: &str) -> Option<Vec<u8>> {
        if self.breaking_off || self.phase != Phase::Open || self.prompts.is_empty() {
            return None;
        }
        let text = wrapping::limit(text);
        match self.session.dialect {
            Dialect::OpenCode => Some(self.prompt_with(&text, None)),
            Dialect::Qwen => {
                self.waiting.push_back(Waiting { id: None, text, follow_up: false });
                Some(Vec::new())
            }
            // It would have to break off the very work that it is to bring to an end.
            Dialect::Gemini | Dialect::Copilot | Dialect::Other => None,
        }
    }

    fn abort(&mut self) -> Option<Vec<u8>> {
        self.breaking_off = true;
        self.session_id.is_some().then(|| self.cancel())
    }

    fn reply(&mut self, asking: &Asking, answer: &Answer) -> Option<Vec<u8>> {
        if !self.asked.take(&asking.id) {
            return None;
        }
        self.refused = match answer {
            Answer::Deny(Some(why)) => Some(format!("{REFUSED} The reason: {why}")),
            Answer::Deny(None) => Some(REFUSED.to_owned()),
            Answer::Choose(id) if asking.refuses(id) => Some(REFUSED.to_owned()),
            _ => self.refused.take(),
        };
        let option = match answer {
            Answer::Choose(id) => Some(id.as_str()),
            // Of several ways to say it the one that holds for this once.
            Answer::Allow => asking.choice_of(&["allow_once", "allow_always"]),
            Answer::Deny(_) => asking.choice_of(&["reject_once", "reject_always"]),
            Answer::Several(..) | Answer::Text(_) | Answer::Dismiss => None,
        };
        Some(outcome(&asking.id, option))
    }

    fn given_up(&mut self) -> Vec<String> {
        self.asked.given_up()
    }

    fn answer(&mut self, event: &AgentEvent) -> Option<Vec<u8>> {
        self.asked.note(event);
        match event {
            AgentEvent::SubAgent { id, did } => {
                self.subs.retain(|known| known != id);
                if !matches!(did, SubAgentDid::Ended(_)) {
                    self.subs.push(id.clone());
                }
                None
            }
            AgentEvent::Settled { .. } => {
                self.goes_on = false;
                None
            }
            AgentEvent::Called { id, method } if method == OWN_TURN => {
                self.goes_on = true;
                Some(self.serve(id, method))
            }
            AgentEvent::TextDelta { .. } | AgentEvent::TurnStarted => {
                self.refused = None;
                None
            }
            AgentEvent::Response { success: true, command, .. }
                if matches!(command.as_str(), "initialize" | "authenticate") =>
            {
                (!self.breaking_off).then(|| self.greet())
            }
            AgentEvent::SessionStarted { session_id: Some(id), .. } if self.phase == Phase::Greeting => {
                self.session_id = Some(id.clone());
                match self.session.settle {
                    Some(mode) => Some(self.request(&json!({"sessionId": id, "modeId": mode}))),
                    None => self.begin(),
                }
            }
            AgentEvent::Response { command, .. } if self.phase == Phase::Greeting && command == SETTLE => self.begin(),
            AgentEvent::Response { id, command, success, error } if command == "session/prompt" => {
                let number = id.as_deref().and_then(|id| id.parse().ok())?;
                let otherwise = (!success).then_some("the agent refused the message");
                self.answered(number, error.as_deref().or(otherwise));
                self.goes_on |= !self.subs.is_empty();
                self.go_on()
            }
            AgentEvent::Response { success: false, .. } if self.phase == Phase::Greeting => {
                self.phase = Phase::Refused;
                None
            }
            AgentEvent::Called { id, method } => Some(self.serve(id, method)),
            _ => None,
        }
    }

    fn receipts(&mut self, event: &AgentEvent) -> Vec<Receipt> {
        // A model call that began after a prompt was sent has it.
        if *event == AgentEvent::TurnStarted {
            let taken = self.prompts.iter_mut().filter_map(|prompt| prompt.steer.take());
            self.moved.extend(taken.map(delivered));
        }
        let mut all = std::mem::take(&mut self.moved);
        if self.phase == Phase::Refused {
            all.extend(refused(self.waiting.drain(..).filter_map(|waiting| waiting.id)));
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
            Phase::Open => self.prompts.is_empty() && (self.breaking_off || (self.waiting.is_empty() && !self.goes_on)),
        }
    }
}

#[cfg(test)]
mod tests;
