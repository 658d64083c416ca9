//! Codex (agent-streams 2): over its app server, which takes messages while it works, or with one prompt.

mod approval;
mod command;
mod exec;
mod item;
mod known;
mod retry;
mod server;
mod session;
mod subs;
mod talk;
#[cfg(test)]
mod tests;
mod usage;

pub use exec::ExecAdapter;
pub use server::ServerAdapter;
pub use session::Session;
pub use talk::CodexTalk;

use std::sync::Arc;

use super::families::{Agents, Input, Start, Voice};
use super::{OneShot, Talk};
use crate::run::Transport;

/// The family of Codex.
pub struct Codex;

impl Agents for Codex {
    fn arguments(&self, start: &Start<'_>) -> Vec<String> {
        command::arguments(start)
    }

    fn variables(&self, _start: &Start<'_>) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn voice(&self, start: &Start<'_>) -> Voice {
        match start.kind.transport {
            Transport::Steerable => {
                let session = Arc::new(Session::new(start));
                let mut talk = CodexTalk::new(Arc::clone(&session));
                let input = Input::Open(talk.prompt(&command::task(start)));
                Voice { adapter: Box::new(ServerAdapter::new(session)), talk: Box::new(talk), input }
            }
            Transport::OneShot => {
                let adapter = Box::new(ExecAdapter::new(start.resume.is_some()));
                let talk = OneShot { reason: "Codex was started with one prompt" };
                Voice { adapter, input: Input::Once(command::task(start).into_bytes()), talk: Box::new(talk) }
            }
        }
    }
}
