//! Claude Code over its JSON lines (agent-streams 1): with messages on standard input while it works, or with one prompt.

mod adapter;
mod amp;
mod asked;
mod calls;
mod command;
mod ends;
mod ledger;
mod message;
mod nested;
mod talk;
mod turn;

pub use adapter::ClaudeAdapter;
pub use amp::Amp;
pub use talk::ClaudeTalk;

use super::families::{Agents, Input, Start, Voice};
use super::{OneShot, Talk};
use crate::run::Transport;

/// The family of Claude Code.
pub struct Claude;

impl Agents for Claude {
    fn arguments(&self, start: &Start<'_>) -> Vec<String> {
        command::arguments(start)
    }

    fn variables(&self, _start: &Start<'_>) -> Vec<(&'static str, &'static str)> {
        // A program that replaces itself in the middle of a run is not the one that was started.
        vec![("DISABLE_AUTOUPDATER", "1")]
    }

    fn voice(&self, start: &Start<'_>) -> Voice {
        let adapter = Box::new(ClaudeAdapter::new(start.resume.is_some()));
        match start.kind.transport {
            Transport::Steerable => {
                let mut talk = ClaudeTalk::new();
                Voice { adapter, input: Input::Open(talk.prompt(start.task)), talk: Box::new(talk) }
            }
            Transport::OneShot => {
                let talk = OneShot { reason: "Claude Code was started with one prompt" };
                Voice { adapter, input: Input::Once(talk::task(start.task).into_bytes()), talk: Box::new(talk) }
            }
        }
    }
}
