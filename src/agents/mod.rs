//! What agents say, and how to talk back: line framing and one adapter per agent.
//!
//! Adapters are pure state machines: bytes of a line in, [`AgentEvent`]s and text out. They own what a line means and
//! what a child's report amounts to; they never start, signal or wait for anything, and they know no clock.

pub mod acceptance;
pub mod acp;
mod asked;
pub mod claude;
pub mod codex;
pub mod demo;
pub mod families;
pub mod framing;
mod handshake;
mod jsonrpc;
mod look;
pub mod once;
mod one_shot;
mod outside;
pub mod pi;
mod skim;
pub mod text;
mod told;
mod work;
pub mod wrapping;
mod written;

pub use framing::{Framer, Line, Oversize};
pub use one_shot::OneShot;
pub use skim::Facts;

use crate::run::{AgentEvent, Answer, Asking, Report, SteerMode, Steerable, Stream, TargetState};

/// Where an adapter puts what it found in a line.
pub trait Sink {
    /// Something happened in the agent.
    fn event(&mut self, event: AgentEvent);
    /// The line is to be kept in the run's event log as it is, with the annotation of a child record
    /// (run-directory 2.5).
    fn keep_line(&mut self);
    /// This record, one JSON object in pi's vocabulary, is to be kept in place of the line, with the same annotation.
    fn record(&mut self, json: &[u8]);
    /// Text for the step's output log. It may be a part of a line and may hold any character; a later part follows
    /// without a separator.
    fn text(&mut self, stream: Stream, text: &str);
}

/// Understands the standard output of one child.
pub trait Adapter: Send {
    /// Takes one line.
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink);
    /// The caller has no more lines just now: what was held back because the next line might have made it pointless
    /// is to be handed on.
    fn flush(&mut self, sink: &mut dyn Sink) {
        let _ = sink;
    }
    /// The output is over: what was begun and not told is told as it is.
    fn end(&mut self, sink: &mut dyn Sink) {
        self.flush(sink);
    }
    /// What the output amounts to so far.
    fn report(&self) -> Report;
}

/// Talks to one child over its standard input.
pub trait Talk: Send {
    /// The bytes that hand the child its task. To be written once, first.
    fn prompt(&mut self, text: &str) -> Vec<u8>;
    /// The bytes that hand the child a message; `None` when it cannot take one (or another one) at all.
    fn steer(&mut self, id: &str, mode: SteerMode, text: &str) -> Option<Vec<u8>>;
    /// The bytes that tell the child, in the middle of its work, to come to an end by itself; `None` when it cannot be
    /// told. Nobody waits for what becomes of it.
    fn wrap_up(&mut self, text: &str) -> Option<Vec<u8>> {
        let _ = text;
        None
    }
    /// The bytes that ask the child to break off; `None` when its protocol has no such thing.
    fn abort(&mut self) -> Option<Vec<u8>>;
    /// Takes an event of the child and says what it means for messages that are under way.
    fn receipts(&mut self, event: &AgentEvent) -> Vec<Receipt>;
    /// Takes an event of the child and says what the protocol demands next: the next step of a handshake, the answer to
    /// what needs nobody.
    fn answer(&mut self, _event: &AgentEvent) -> Option<Vec<u8>> {
        None
    }
    /// The bytes that answer a question of the child's; `None` when it does not wait with it (any more). Empty when the
    /// answer goes out together with others.
    fn reply(&mut self, asking: &Asking, answer: &Answer) -> Option<Vec<u8>> {
        let _ = (asking, answer);
        None
    }
    /// The questions that the child waits with no more because of what it was told, by its ids; each is said once.
    fn given_up(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Whether the child takes messages.
    fn steerable(&self) -> Steerable;
    /// Whether everything that was asked is answered, so that the child's standard input can be closed for it to
    /// exit.
    fn done(&self) -> bool;
}

/// What became of a message to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The id of the request.
    pub id: String,
    /// Where it is now.
    pub state: TargetState,
    /// Why it failed, or what the agent said.
    pub detail: Option<String>,
}
