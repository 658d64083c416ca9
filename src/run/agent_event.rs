//! What an agent said, in one vocabulary for all of them. Adapters in [`crate::agents`] make these; [`super::reduce`]
//! understands them.
//!
//! Texts in here are previews with a bound, so that a [`super::RunState`] stays small; whole texts are in files.

use super::{Asking, CostUsd, Stream, SubAgentDid, Tokens, Window};

/// One thing that an agent said. Time and step stand in the [`super::Event`] around it.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The agent named its session.
    SessionStarted {
        /// The agent's own id of the session.
        session_id: Option<String>,
        /// The model, where the agent names it at the start.
        model: Option<String>,
    },
    /// The agent began to work on a prompt.
    AgentStarted,
    /// One model call and its tools began.
    TurnStarted,
    /// One model call and its tools ended.
    TurnEnded,
    /// A piece of answer text arrived. Never recorded; the message that ends it is.
    TextDelta {
        /// How many bytes of text.
        bytes: usize,
    },
    /// A message is complete.
    Message {
        /// Who speaks.
        role: MessageRole,
        /// The first part of the text (at most [`AgentEvent::PREVIEW`] bytes); empty when the message has none.
        preview: String,
        /// The model that answered, on assistant messages.
        model: Option<String>,
        /// Why the model stopped, on assistant messages.
        stop: Option<StopReason>,
        /// Usage of this one call, on assistant messages.
        usage: Option<Usage>,
        /// The error the message carries.
        error: Option<String>,
        /// Whether the message asks for tools.
        calls_tools: bool,
    },
    /// More was used; it adds to what messages carried.
    Used(Usage),
    /// How full the context window of its model is; what it does not tell stays as it was.
    Window(Window),
    /// A tool call opened.
    ToolStarted {
        /// The agent's id of the call.
        call: Option<String>,
        /// The tool's name.
        tool: String,
        /// A one-line preview of the arguments (at most [`AgentEvent::ARGS_PREVIEW`] bytes).
        args: String,
        /// The path the call works on (runner-behaviour 4.5).
        path: Option<String>,
        /// What the call is about.
        about: CallFacts,
    },
    /// A tool call reported progress.
    ToolProgress {
        /// The agent's id of the call.
        call: Option<String>,
    },
    /// A tool call ended.
    ToolEnded {
        /// The agent's id of the call.
        call: Option<String>,
        /// The tool's name, where the agent repeats it.
        tool: Option<String>,
        /// How it ended.
        outcome: ToolOutcome,
        /// The first part of the result (at most [`AgentEvent::PREVIEW`] bytes).
        preview: String,
    },
    /// An agent that the agent started itself did something.
    SubAgent {
        /// The agent's id of it.
        id: String,
        /// What it did.
        did: SubAgentDid,
    },
    /// The agent will try its provider again.
    Retry {
        /// Which attempt this is, from 1.
        attempt: Option<u32>,
        /// How many attempts there will be.
        max: Option<u32>,
        /// How long it waits, in milliseconds.
        delay_ms: Option<u64>,
        /// The provider's error.
        reason: String,
    },
    /// The retries ended.
    RetryEnded {
        /// Whether the provider answered at last.
        success: bool,
    },
    /// What waits in the agent's own queues changed.
    Queue(QueueContents),
    /// The agent answered a command of ours.
    Response {
        /// The id we gave the command.
        id: Option<String>,
        /// The command's name.
        command: String,
        /// Whether it was accepted.
        success: bool,
        /// Why not.
        error: Option<String>,
    },
    /// The agent's loop ended; with `will_retry` another one follows.
    AgentEnded {
        /// Whether the agent starts again by itself.
        will_retry: bool,
    },
    /// Nothing more will come for this prompt.
    Settled {
        /// Whether it was aborted.
        aborted: bool,
    },
    /// The agent asked something and waits for the answer.
    Asked(Box<Asking>),
    /// The agent does not wait for an answer any more.
    Unasked {
        /// The agent's id of the question.
        id: String,
    },
    /// The agent told its client something that only the client's side of the protocol has to do with: a request that it
    /// answers by itself, or a name that it has to repeat. Never recorded.
    Called {
        /// The agent's id of the request as JSON, or the name.
        id: String,
        /// What it is, in the protocol's word.
        method: String,
    },
    /// Output that is not part of the agent's protocol.
    Unparsed {
        /// Where it was printed.
        stream: Stream,
    },
    /// A record of a kind that this version does not know; counted, never an error.
    Unknown {
        /// The record's type (at most [`AgentEvent::KIND`] bytes).
        kind: String,
    },
    /// A line broke the protocol's limits (runner-behaviour 1.5).
    ProtocolFailure {
        /// What was wrong, ready to be shown.
        message: String,
    },
}

/// Whether an answer with an error was broken off instead of failing: by its stop or, where the agent calls even that an
/// error, by the words that JavaScript has for it.
#[must_use]
pub fn broken_off(stop: Option<StopReason>, error: &str) -> bool {
    let error = error.trim().trim_end_matches('.');
    let words = ["This operation was aborted", "The operation was aborted", "Request was aborted", "Request aborted"];
    stop == Some(StopReason::Aborted) || words.iter().any(|words| error.eq_ignore_ascii_case(words))
}

impl AgentEvent {
    /// Largest preview of a text, in bytes.
    pub const PREVIEW: usize = 2048;
    /// Longest type of a record that is not known, in bytes.
    pub const KIND: usize = 128;
    /// Largest preview of tool arguments, in bytes.
    pub const ARGS_PREVIEW: usize = 256;
}

/// What a tool call is about, as its name and all its arguments say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// Equal for equal calls (tool and arguments), and different for nearly all others.
    pub fingerprint: u64,
    /// It changes files (runner-behaviour 4.6).
    pub mutates: bool,
    /// It waits until a supervisor answers (runner-behaviour 4.3).
    pub asks: bool,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// The person or the supervisor.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    ToolResult,
    /// The system prompt.
    System,
    /// A role this version does not know.
    Other,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The provider failed.
    Error,
    /// It was aborted.
    Aborted,
    /// Any other word.
    Other,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It worked.
    Ok,
    /// The tool reported an error.
    Error,
    /// It was not permitted.
    Denied,
    /// It was cancelled.
    Cancelled,
    /// The agent ended without saying how the call ended.
    Lost,
}

impl ToolOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Error, Self::Denied, Self::Cancelled, Self::Lost];

    /// Its word in files and for scripts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// The outcome of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// Usage of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens by kind.
    pub tokens: Tokens,
    /// Cost, where the agent reports one.
    pub cost: Option<CostUsd>,
}

/// The texts that wait in an agent's queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueContents {
    /// To be given to the model as soon as the running tool ends.
    pub steering: Vec<String>,
    /// To be given to the model after its last turn.
    pub follow_up: Vec<String>,
}
