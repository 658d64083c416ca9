//! Agents that speak the Agent Client Protocol, version 1: JSON-RPC 2.0 both ways, one message a line (agent-streams 7).
//!
//! Subdeck is the client. It offers no files and no terminals, so that an agent uses its own; what an agent asks for
//! nevertheless is refused, and it goes on.
//!
//! The protocol's own crate, `agent-client-protocol-schema`, is kept up well, but its types are of no use here: a
//! `session/update` of a kind that they do not know is an error as a whole, while a reader of a stream has to count it
//! and go on (law 10); what the agents measured add under `_meta` and in results has no type; and it brings six crates
//! for some twenty fields. So messages are read field by field.

mod adapter;
mod asking;
mod start;
mod subs;
mod talk;
#[cfg(test)]
mod tests;
mod tool;
mod usage;

pub use adapter::AcpAdapter;
pub use start::Speaker;
pub use talk::AcpTalk;

/// Whose agent it is: where they differ in what the protocol leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// OpenCode.
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    /// Any other: what the protocol says, and nothing more.
    #[default]
    Other,
}

/// What both sides of a conversation have to know of it.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Whose agent it is.
    pub dialect: Dialect,
    /// Where it works: an absolute path.
    pub cwd: String,
    /// The way of logging in that it is to be told before a session begins.
    pub login: Option<String>,
    /// The id of the session to go on with; `None` begins a new one.
    pub resume: Option<String>,
    /// The mode that a loaded session is set to, although it has it: the history of Gemini comes after the answer to the
    /// request that loads it, and before the answer to this one.
    pub settle: Option<&'static str>,
}

/// The id of the first request, `initialize`. The others follow in steps of one: the login if there is one, the
/// session, and then one prompt after the other, so that an answer can be told by its id alone.
const INITIALIZE: u64 = 1;

impl Session {
    /// The id of the request that makes or loads the session.
    const fn session_request(&self) -> u64 {
        if self.login.is_some() { INITIALIZE + 2 } else { INITIALIZE + 1 }
    }

    /// The method of our request with this id.
    fn method_of(&self, id: u64) -> &'static str {
        let session = self.session_request();
        match id {
            INITIALIZE => "initialize",
            _ if id < session => "authenticate",
            _ if id == session + 1 && self.settle.is_some() => SETTLE,
            _ if id > session => "session/prompt",
            _ if self.resume.is_some() => "session/load",
            _ => "session/new",
        }
    }
}

/// What sets a mode.
const SETTLE: &str = "session/set_mode";
/// What a permission request is called.
const PERMISSION: &str = "session/request_permission";
/// Qwen's question whether something is to be put into the running turn (agent-streams 7).
const DRAIN: &str = "craft/drainMidTurnQueue";
