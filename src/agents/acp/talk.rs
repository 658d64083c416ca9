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
mod tests {
    use super::*;
    use crate::run::Choice;

    fn session(dialect: Dialect, change: impl FnOnce(&mut Session)) -> Arc<Session> {
        let mut session = Session { dialect, cwd: "/work".to_owned(), ..Session::default() };
        change(&mut session);
        Arc::new(session)
    }

    /// A talk whose task is under way, as prompt 3.
    fn busy(dialect: Dialect) -> AcpTalk {
        let mut talk = AcpTalk::new(session(dialect, |_| ()));
        talk.prompt("t");
        talk.answer(&response("1", "initialize", None));
        assert_eq!(parse(talk.answer(&begun()))["id"], 3);
        talk
    }

    fn begun() -> AgentEvent {
        AgentEvent::SessionStarted { session_id: Some("s".to_owned()), model: None }
    }

    fn response(id: &str, command: &str, error: Option<&str>) -> AgentEvent {
        let (id, command) = (Some(id.to_owned()), command.to_owned());
        AgentEvent::Response { id, command, success: error.is_none(), error: error.map(str::to_owned) }
    }

    fn parse(bytes: Option<Vec<u8>>) -> Value {
        let bytes = bytes.expect("something is said");
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "one line");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn moves(receipts: &[Receipt]) -> Vec<(&str, TargetState)> {
        receipts.iter().map(|receipt| (receipt.id.as_str(), receipt.state)).collect()
    }

    fn called(method: &str) -> AgentEvent {
        AgentEvent::Called { id: "7".to_owned(), method: method.to_owned() }
    }

    fn asking(id: &str, kinds: &[(&str, &str)]) -> Asking {
        let choice = |(id, kind): &(&str, &str)| {
            let (id, kind) = ((*id).to_owned(), (*kind).to_owned());
            Choice { id, label: String::new(), kind }
        };
        Asking { id: id.to_owned(), choices: kinds.iter().map(choice).collect(), ..Asking::default() }
    }

    #[test]
    fn a_session_is_logged_in_to_and_loaded_where_that_is_wanted() {
        let mut talk = AcpTalk::new(session(Dialect::Gemini, |session| {
            session.login = Some("key".to_owned());
            session.resume = Some("old".to_owned());
        }));
        let first = parse(Some(talk.prompt("the task")));
        assert_eq!((&first["method"], &first["id"]), (&json!("initialize"), &json!(1)));
        assert_eq!(first["params"]["clientCapabilities"]["fs"]["writeTextFile"], false);
        assert!(!first.to_string().contains("the task"));
        let login = parse(talk.answer(&response("1", "initialize", None)));
        assert_eq!((&login["method"], &login["params"]["methodId"]), (&json!("authenticate"), &json!("key")));
        let load = parse(talk.answer(&response("2", "authenticate", None)));
        let params = json!({"sessionId": "old", "cwd": "/work", "mcpServers": []});
        assert_eq!((&load["method"], &load["params"]), (&json!("session/load"), &params));
        let prompt = parse(talk.answer(&begun()));
        assert_eq!(prompt["params"], json!({"sessionId": "s", "prompt": [{"type": "text", "text": "the task"}]}));
        assert_eq!(talk.answer(&response("3", "session/load", None)), None);
        assert!(!talk.done());
        assert_eq!(talk.answer(&response("4", "session/prompt", None)), None);
        assert!(talk.done());
    }

    #[test]
    fn the_task_waits_for_the_history_where_it_comes_late() {
        let mut talk = AcpTalk::new(session(Dialect::Gemini, |session| {
            session.resume = Some("old".to_owned());
            session.settle = Some("yolo");
        }));
        talk.prompt("the task");
        assert_eq!(parse(talk.answer(&response("1", "initialize", None)))["method"], "session/load");
        let settle = parse(talk.answer(&begun()));
        assert_eq!((&settle["id"], &settle["method"]), (&json!(3), &json!("session/set_mode")));
        assert_eq!(settle["params"], json!({"sessionId": "s", "modeId": "yolo"}));
        assert_eq!(talk.answer(&response("2", "session/load", None)), None);
        assert!(!talk.done());
        let prompt = parse(talk.answer(&response("3", SETTLE, None)));
        assert_eq!((&prompt["id"], &prompt["method"]), (&json!(4), &json!("session/prompt")));
    }

    #[test]
    fn who_refuses_to_begin_is_done() {
        for command in ["initialize", "session/new"] {
            let mut talk = AcpTalk::new(session(Dialect::Other, |_| ()));
            talk.prompt("t");
            assert_eq!(talk.steer("m", SteerMode::Steer, "early"), Some(Vec::new()));
            let no = response("1", command, Some("no key"));
            assert_eq!(talk.answer(&no), None);
            assert_eq!(moves(&talk.receipts(&no)), [("m", TargetState::Failed)]);
            assert!(talk.done() && matches!(talk.steerable(), Steerable::No(_)));
            assert_eq!(talk.steer("n", SteerMode::Steer, "late"), None);
        }
    }

    #[test]
    fn an_early_message_follows_the_task() {
        let mut talk = AcpTalk::new(session(Dialect::OpenCode, |_| ()));
        talk.prompt("t");
        assert_eq!(talk.steer("m", SteerMode::Auto, "early"), Some(Vec::new()));
        talk.answer(&response("1", "initialize", None));
        talk.answer(&begun());
        let message = parse(talk.answer(&response("3", "session/prompt", None)));
        let text = message["params"]["prompt"][0]["text"].as_str().expect("text");
        assert_eq!(wrapping::unwrapped(text), "early");
        assert_eq!(talk.receipts(&response("3", "session/prompt", None)), []);
        assert_eq!(moves(&talk.receipts(&AgentEvent::TurnStarted)), [("m", TargetState::Delivered)]);
        let failed = response("4", "session/prompt", Some("no"));
        assert_eq!(talk.answer(&failed), None);
        assert_eq!(talk.receipts(&failed), []);
        assert!(talk.done());
    }

    #[test]
    fn a_message_that_the_agent_refuses_has_failed() {
        let mut talk = busy(Dialect::OpenCode);
        assert_eq!(parse(talk.steer("m", SteerMode::Auto, "now"))["id"], 4);
        let failed = response("4", "session/prompt", Some("no room"));
        talk.answer(&failed);
        let receipts = talk.receipts(&failed);
        assert_eq!(
            (moves(&receipts), receipts[0].detail.as_deref()),
            (vec![("m", TargetState::Failed)], Some("no room"))
        );
        assert!(!talk.done(), "the task is not answered");
    }

    #[test]
    fn one_cancel_makes_room_for_all_that_is_said() {
        for dialect in [Dialect::Gemini, Dialect::Copilot, Dialect::Other] {
            let mut talk = busy(dialect);
            let cancel = parse(talk.steer("a", SteerMode::Steer, "first"));
            assert_eq!(cancel, json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}));
            assert_eq!(talk.steer("b", SteerMode::Steer, "second"), Some(Vec::new()));
            assert_eq!(parse(talk.answer(&response("3", "session/prompt", None)))["id"], 4);
            assert!(!talk.done());
            assert_eq!(parse(talk.answer(&response("4", "session/prompt", None)))["id"], 5);
            assert_eq!(talk.wrap_up("two turns left"), None);
        }
    }

    #[test]
    fn an_answer_is_the_option_that_says_it_for_this_once() {
        let options = [("a", "allow_always"), ("o", "allow_once"), ("r", "reject_once")];
        for (options, answer, expected) in [
            (&options[..], Answer::Allow, json!({"outcome": "selected", "optionId": "o"})),
            (&options[..1], Answer::Allow, json!({"outcome": "selected", "optionId": "a"})),
            (&options[..], Answer::Choose("a".into()), json!({"outcome": "selected", "optionId": "a"})),
            (&options[..], Answer::Deny(None), json!({"outcome": "selected", "optionId": "r"})),
            (&options[..2], Answer::Deny(None), json!({"outcome": "cancelled"})),
            (&[("x", "dance")][..], Answer::Allow, json!({"outcome": "cancelled"})),
            (&options[..], Answer::Dismiss, json!({"outcome": "cancelled"})),
        ] {
            let mut talk = busy(Dialect::OpenCode);
            let asked = asking("\"q\"", options);
            assert_eq!(talk.reply(&asked, &answer), None, "nobody asked");
            assert_eq!(talk.answer(&AgentEvent::Asked(Box::new(asked.clone()))), None);
            let reply = parse(talk.reply(&asked, &answer));
            assert_eq!((&reply["id"], &reply["result"]["outcome"]), (&json!("q"), &expected), "{answer:?}");
            assert_eq!(talk.reply(&asked, &answer), None, "once");
        }
    }

    #[test]
    fn who_breaks_off_because_of_a_refusal_is_told_to_go_on() {
        let options = [("a", "allow_once"), ("r", "reject_once")];
        let refuse = |talk: &mut AcpTalk, answer: &Answer| {
            let asked = asking("5", &options);
            talk.answer(&AgentEvent::Asked(Box::new(asked.clone())));
            talk.reply(&asked, answer).expect("it waits");
        };
        let over = |n: u64| response(&n.to_string(), "session/prompt", None);
        let text =
            |bytes: Option<Vec<u8>>| parse(bytes)["params"]["prompt"][0]["text"].as_str().expect("text").to_owned();
        let why = Answer::Deny(Some("not today".to_owned()));
        for (answer, reason) in
            [(Answer::Deny(None), REFUSED), (why, "not today"), (Answer::Choose("r".into()), REFUSED)]
        {
            let mut talk = busy(Dialect::Qwen);
            refuse(&mut talk, &answer);
            let said = text(talk.answer(&over(3)));
            assert!(said.contains(reason) && said.contains(REFUSED), "{said}");
            assert!(!talk.done());
            assert_eq!(talk.answer(&over(4)), None, "once");
            assert!(talk.done());
        }
        // Whose model heard of it, who was allowed it, and who is to break off is not told.
        for (answer, heard, broken_off) in [
            (Answer::Deny(None), true, false),
            (Answer::Deny(None), false, true),
            (Answer::Allow, false, false),
            (Answer::Dismiss, false, false),
        ] {
            let mut talk = busy(Dialect::Copilot);
            refuse(&mut talk, &answer);
            if heard {
                assert_eq!(talk.answer(&AgentEvent::TextDelta { bytes: 3 }), None);
            }
            if broken_off {
                assert!(talk.abort().is_some());
            }
            assert_eq!(talk.answer(&over(3)), None, "{answer:?}");
            assert!(talk.done());
        }
        // A person's message comes in its place, and nobody is told for ever.
        let mut talk = busy(Dialect::Qwen);
        refuse(&mut talk, &Answer::Deny(None));
        talk.steer("m", SteerMode::Steer, "another way");
        assert_eq!(wrapping::unwrapped(&text(talk.answer(&over(3)))), "another way");
        let mut talk = busy(Dialect::Qwen);
        for n in 0..MOST_TOLD {
            refuse(&mut talk, &Answer::Deny(None));
            assert!(talk.answer(&over(u64::from(n) + 3)).is_some());
        }
        refuse(&mut talk, &Answer::Deny(None));
        assert_eq!(talk.answer(&over(u64::from(MOST_TOLD) + 3)), None);
        assert!(talk.done());
    }

    #[test]
    fn what_breaks_a_prompt_off_answers_what_it_waits_for() {
        for steered in [true, false] {
            let mut talk = busy(Dialect::Gemini);
            talk.answer(&AgentEvent::Asked(Box::new(asking("5", &[("o", "allow_once")]))));
            let bytes = if steered { talk.steer("m", SteerMode::Steer, "stop that") } else { talk.abort() };
            let text = String::from_utf8(bytes.unwrap()).unwrap();
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines[0]["method"], "session/cancel");
            assert_eq!(lines[1], json!({"jsonrpc": "2.0", "id": 5, "result": {"outcome": {"outcome": "cancelled"}}}));
            assert_eq!((talk.given_up(), talk.given_up()), (vec!["5".to_owned()], vec![]));
        }
    }

    #[test]
    fn what_is_not_offered_is_refused() {
        let mut talk = busy(Dialect::Other);
        for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "x"] {
            let reply = parse(talk.answer(&called(method)));
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32601)), "{method}");
        }
    }

    #[test]
    fn qwen_is_given_what_was_said_when_it_asks() {
        let mut talk = busy(Dialect::Qwen);
        assert_eq!(talk.steer("m", SteerMode::Steer, "now"), Some(Vec::new()));
        assert_eq!(talk.steer("f", SteerMode::FollowUp, "later"), Some(Vec::new()));
        assert_eq!(talk.wrap_up("two turns left"), Some(Vec::new()));
        let reply = parse(talk.answer(&called(DRAIN)));
        let texts = reply["result"]["messages"].as_array().expect("a list");
        assert_eq!(texts.len(), 2);
        assert_eq!(wrapping::unwrapped(texts[0].as_str().expect("text")), "now");
        assert_eq!(moves(&talk.receipts(&called(DRAIN))), [("m", TargetState::Delivered)]);
        let later = parse(talk.answer(&response("3", "session/prompt", None)));
        assert_eq!(wrapping::unwrapped(later["params"]["prompt"][0]["text"].as_str().expect("text")), "later");
    }

    #[test]
    fn queues_are_bounded_and_end_with_the_agent() {
        let mut talk = busy(Dialect::Other);
        for n in 0..SteerRequest::QUEUE_LIMIT {
            assert_eq!(talk.steer(&n.to_string(), SteerMode::FollowUp, "x"), Some(Vec::new()));
        }
        assert_eq!(talk.steer("one too many", SteerMode::FollowUp, "x"), None);
        let abort = parse(talk.abort());
        assert_eq!(abort["method"], "session/cancel");
        assert!(!talk.done());
        assert_eq!(talk.answer(&response("3", "session/prompt", None)), None);
        assert!(talk.done());
    }

    #[test]
    fn who_has_no_session_cannot_be_told_to_break_off() {
        let mut talk = AcpTalk::new(session(Dialect::Other, |_| ()));
        talk.prompt("t");
        assert_eq!(talk.abort(), None);
        assert_eq!(talk.answer(&response("1", "initialize", None)), None);
        assert_eq!(talk.answer(&begun()), None);
        assert!(talk.done());
    }
}
