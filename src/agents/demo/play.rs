//! Plays a scene: commands in, pi's records out. A state machine over a [`Stage`], which gives it time and input, so
//! that tests play hours in an instant.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Scene, Session, Turn};
use crate::agents::pi::line_of;
use crate::agents::wrapping::unwrapped;

/// How much the window of its model is said to hold, in tokens.
const WINDOW: u64 = 8_000;

/// What comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A line of standard input.
    Line(String),
    /// Standard input ended: what runs is dropped.
    Eof,
    /// A signal that ends the process in order.
    Signal(u8),
}

/// Time, input and output of the agent.
pub trait Stage {
    /// The time since the start.
    fn now(&self) -> Duration;
    /// The next input; `None` when it did not come before `until`. Without a limit it waits for ever.
    fn wait(&mut self, until: Option<Duration>) -> Option<Input>;
    /// Writes to standard output, at once.
    ///
    /// # Errors
    /// When nobody reads any more.
    fn out(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes a line to standard error.
    fn err(&mut self, line: &str);
    /// The wall clock in milliseconds since the epoch.
    fn wall_ms(&self) -> i64;
}

/// Serves prompts with the scene until the input ends. Gives the exit code.
pub fn serve(scene: &Scene, session: Session, stage: &mut dyn Stage) -> u8 {
    let next_turn = session.resumed_at.map_or(0, |done| done.min(scene.turn.len().saturating_sub(1)));
    let mut player = Player {
        scene,
        stage,
        going_on: session.resumed_at.is_some(),
        session,
        next_turn,
        busy: false,
        mid_line: false,
        steering: VecDeque::new(),
        follow_up: VecDeque::new(),
        taken: Vec::new(),
        task: String::new(),
        calls: 0,
        abort: None,
    };
    match player.idle() {
        Halt::Exit(code) => code,
        Halt::Aborted => 0,
    }
}

/// Why playing ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The client asked to break off.
    Aborted,
    /// The process ends.
    Exit(u8),
}

pub(super) type Played = Result<(), Halt>;

pub(super) struct Player<'a> {
    pub(super) scene: &'a Scene,
    pub(super) stage: &'a mut dyn Stage,
    pub(super) session: Session,
    /// The scene goes on where an earlier process left it; said once.
    pub(super) going_on: bool,
    pub(super) next_turn: usize,
    busy: bool,
    /// Standard output stands in the middle of a line.
    mid_line: bool,
    steering: VecDeque<String>,
    follow_up: VecDeque<String>,
    /// Messages that came in the middle and are to be answered.
    pub(super) taken: Vec<String>,
    pub(super) task: String,
    pub(super) calls: u32,
    /// The command that asked to break off.
    abort: Option<Value>,
}

impl Player<'_> {
    fn idle(&mut self) -> Halt {
        loop {
            let step = match self.stage.wait(None) {
                None => Ok(()),
                Some(Input::Eof) => return Halt::Exit(0),
                Some(Input::Signal(number)) => return Halt::Exit(128_u8.saturating_add(number)),
                Some(Input::Line(line)) => self.command(&line),
            };
            match step {
                Ok(()) | Err(Halt::Aborted) => {}
                Err(exit) => return exit,
            }
        }
    }

    // Input.

    fn command(&mut self, line: &str) -> Played {
        if line.trim().is_empty() {
            return Ok(());
        }
        let command: Value = match serde_json::from_str(line) {
            Ok(command) => command,
            Err(error) => {
                return self.respond(
                    &Value::Null,
                    "parse",
                    Err(&format!("Failed to parse command: {error}")),
                    Value::Null,
                );
            }
        };
        let kind = command.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = command.get("message").and_then(Value::as_str).map(str::to_owned);
        match (kind.as_str(), message) {
            ("prompt", Some(text)) if !self.busy => {
                self.respond(&command, "prompt", Ok(()), Value::Null)?;
                self.play(&text)
            }
            ("prompt", Some(text)) => match command.get("streamingBehavior").and_then(Value::as_str) {
                Some("steer") => self.queue(&command, "prompt", text, false),
                Some("followUp") => self.queue(&command, "prompt", text, true),
                _ => self.respond(
                    &command,
                    "prompt",
                    Err("the agent is working; say how to queue the prompt"),
                    Value::Null,
                ),
            },
            ("steer", Some(text)) => self.queue(&command, "steer", text, false),
            ("follow_up", Some(text)) => self.queue(&command, "follow_up", text, true),
            ("prompt" | "steer" | "follow_up", None) => {
                self.respond(&command, &kind, Err("the command has no message"), Value::Null)
            }
            ("abort", _) if self.busy => {
                self.abort = Some(command);
                Err(Halt::Aborted)
            }
            ("abort", _) => self.respond(&command, "abort", Ok(()), Value::Null),
            ("get_state", _) => {
                let state = json!({
                    "sessionId": self.session.id, "isStreaming": self.busy,
                    "model": {"id": self.scene.model, "provider": "demo", "contextWindow": WINDOW},
                    "pendingMessageCount": self.steering.len() + self.follow_up.len(),
                });
                self.respond(&command, "get_state", Ok(()), state)
            }
            _ => self.respond(&command, &kind, Err(&format!("Unknown command: {kind}")), Value::Null),
        }
    }

    fn queue(&mut self, command: &Value, kind: &str, text: String, later: bool) -> Played {
        if later {
            self.follow_up.push_back(text)
        } else {
            self.steering.push_back(text)
        }
        self.queue_update()?;
        self.respond(command, kind, Ok(()), Value::Null)
    }

    /// Lets time pass, taking in what comes.
    pub(super) fn pause(&mut self, ms: u64) -> Played {
        let until = self.stage.now() + Duration::from_millis(ms);
        self.pause_until(until)
    }

    pub(super) fn pause_until(&mut self, until: Duration) -> Played {
        while self.stage.now() < until {
            match self.stage.wait(Some(until)) {
                None => break,
                Some(Input::Eof) => return Err(Halt::Exit(0)),
                Some(Input::Signal(number)) => return Err(Halt::Exit(128_u8.saturating_add(number))),
                Some(Input::Line(line)) => self.command(&line)?,
            }
        }
        Ok(())
    }

    // Output.

    pub(super) fn raw(&mut self, bytes: &[u8]) -> Played {
        self.mid_line = bytes.last() != Some(&b'\n');
        self.stage.out(bytes).map_err(|_| Halt::Exit(1))
    }

    pub(super) fn emit(&mut self, kind: &str, fields: &Value) -> Played {
        let mut record = fields.clone();
        if let Some(map) = record.as_object_mut() {
            map.insert("type".into(), json!(kind));
        }
        let newline = if self.mid_line { "\n" } else { "" };
        self.raw(format!("{newline}{}\n", line_of(record)).as_bytes())
    }

    fn respond(&mut self, command: &Value, name: &str, result: Result<(), &str>, data: Value) -> Played {
        let mut fields = json!({"command": name, "success": result.is_ok()});
        if let Some(map) = fields.as_object_mut() {
            if let Some(id) = command.get("id") {
                map.insert("id".into(), id.clone());
            }
            if let Err(error) = result {
                map.insert("error".into(), json!(error));
            }
            if !data.is_null() {
                map.insert("data".into(), data);
            }
        }
        self.emit("response", &fields)
    }

    fn queue_update(&mut self) -> Played {
        let fields = json!({"steering": self.steering, "followUp": self.follow_up});
        self.emit("queue_update", &fields)
    }

    pub(super) fn message(&mut self, message: &Value) -> Played {
        self.emit("message_end", &json!({"message": message}))?;
        self.session.message(message, self.stage.wall_ms());
        Ok(())
    }

    fn user(&mut self, text: &str) -> Played {
        let message = json!({
            "role": "user", "content": [{"type": "text", "text": text}], "timestamp": self.stage.wall_ms(),
        });
        self.emit("message_start", &json!({"message": message}))?;
        self.message(&message)
    }

    // A prompt.

    fn play(&mut self, prompt: &str) -> Played {
        self.busy = true;
        self.task = unwrapped(prompt.strip_prefix("Task: ").unwrap_or(prompt)).to_owned();
        self.taken.clear();
        let halt = self.turns(prompt);
        self.busy = false;
        let aborted = match halt {
            Ok(()) => false,
            Err(Halt::Aborted) => true,
            Err(exit) => return Err(exit),
        };
        self.emit("agent_end", &json!({"messages": [], "willRetry": false}))?;
        self.emit("agent_settled", &json!({"aborted": aborted}))?;
        if let Some(command) = self.abort.take() {
            self.respond(&command, "abort", Ok(()), Value::Null)?;
        }
        Ok(())
    }

    fn turns(&mut self, prompt: &str) -> Played {
        self.emit("agent_start", &json!({}))?;
        self.emit("turn_start", &json!({}))?;
        self.user(prompt)?;
        // A prompt after the scene's end is answered like a message.
        let over = self.next_turn >= self.scene.turn.len();
        if over {
            self.taken.push(self.task.clone());
        }
        let mut first = true;
        let scene = self.scene;
        loop {
            let scripted = scene.turn.get(self.next_turn);
            if !first {
                self.emit("turn_start", &json!({}))?;
            }
            let new = if first { None } else { self.take_message(scripted.is_none())? };
            first = false;
            let turn = match scripted {
                Some(turn) => turn.clone(),
                None => Turn { say: self.answer(), ..Turn::default() },
            };
            let last = scripted.is_none() || self.next_turn + 1 == self.scene.turn.len();
            let more = self.turn(&turn, new.as_deref(), last)?;
            if scripted.is_some() {
                self.next_turn += 1;
                self.session.turn_done(self.next_turn, self.stage.wall_ms());
            }
            let waiting = !self.steering.is_empty() || !self.follow_up.is_empty();
            if !more && self.next_turn >= self.scene.turn.len() && !waiting {
                return Ok(());
            }
        }
    }

    /// Takes the next message out of the queues; follow-ups only when nothing else is left to do.
    fn take_message(&mut self, idle: bool) -> Result<Option<String>, Halt> {
        let text = match self.steering.pop_front() {
            Some(text) => text,
            None if idle => match self.follow_up.pop_front() {
                Some(text) => text,
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        self.queue_update()?;
        self.user(&text)?;
        let text = unwrapped(&text).to_owned();
        self.taken.push(text.clone());
        Ok(Some(text))
    }

    fn answer(&mut self) -> String {
        if self.taken.is_empty() {
            return "Done.".to_owned();
        }
        let said: Vec<String> = self.taken.drain(..).map(|text| format!("\"{}\"", short(&text))).collect();
        format!("I took in what you said, {}, and the result stands.", said.join(" and "))
    }

    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("{words}", &self.task.split_whitespace().count().to_string()).replace("{task}", &short(&self.task))
    }
}

/// The first line of a text, at most 80 characters.
pub(super) fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut out: String = line.chars().take(80).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}
