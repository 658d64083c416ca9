//! Where Claude Code stands in a turn.

use super::message::Message;

/// What is open.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// It works on something.
    pub working: bool,
    /// The message that is being written.
    pub message: Option<Message>,
    /// Calls without a result, with their tools, in the order of their start.
    pub open: Vec<(String, String)>,
    /// Messages that wait in its queue.
    pub queued: Vec<String>,
    /// Sub-agents that work in the background.
    pub background: usize,
    /// Sub-agents that work: the calls that began them, and whether they do it in the background.
    pub agents: Vec<(String, bool)>,
    /// It waits to try its provider again.
    pub retrying: bool,
}
