//! What both sides of a conversation with Codex's app server have to know of it (agent-streams 2b).

use serde_json::{Map, Value, json};

use crate::agents::families::{Start, SystemPrompt};
use crate::run::Permission;

/// How our requests are called. Their ids begin with the same words, so that an answer can be told by its id alone.
pub(super) const INITIALIZE: &str = "initialize";
/// The request that makes a session or goes on with one.
pub(super) const THREAD: &str = "thread";
/// The request that hands over a prompt; the task is the first one.
pub(super) const TURN: &str = "turn";
/// The request that puts a message into the running turn.
pub(super) const STEER: &str = "steer";
/// The request to break off.
pub(super) const INTERRUPT: &str = "interrupt";
/// The id of the request with the task.
pub(super) const TASK: &str = "turn:1";
/// What the event is called that tells which turn runs.
pub(super) const RUNS: &str = "turn/started";
/// The command of the response that says that the model has a message.
pub(super) const TAKEN: &str = "userMessage";

/// The session that is to be made or gone on with.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Where it works: an absolute path.
    pub cwd: String,
    /// What it may do when it asks.
    pub permission: Permission,
    /// Codex's id of the session to go on with; `None` begins a new one.
    pub resume: Option<String>,
    /// The model; `None` leaves the choice to Codex.
    pub model: Option<String>,
    /// How much it thinks.
    pub thinking: Option<String>,
    /// A system prompt that adds to Codex's own.
    pub added: Option<String>,
    /// A system prompt that takes the place of Codex's own.
    pub replaced: Option<String>,
}

impl Session {
    pub(super) fn new(start: &Start<'_>) -> Self {
        let system = |replaces: bool| {
            let wanted = matches!(start.system_prompt, Some(SystemPrompt::Replace(_))) == replaces;
            start.system_text.filter(|text| wanted && !text.trim().is_empty()).map(str::to_owned)
        };
        Self {
            cwd: start.cwd.to_string_lossy().into_owned(),
            permission: start.kind.permission,
            resume: start.resume.map(str::to_owned),
            model: start.model.map(str::to_owned),
            thinking: start.thinking.map(str::to_owned),
            added: system(false),
            replaced: system(true),
        }
    }

    /// The method and the particulars of the request that makes it or goes on with it.
    pub(super) fn request(&self) -> (&'static str, Value) {
        // Nobody is asked for what everything or nothing is allowed of. What is named is the usual: the user's
        // configuration may have another.
        let (policy, sandbox) = match self.permission {
            Permission::Allow => ("never", "danger-full-access"),
            Permission::Ask => ("on-request", "workspace-write"),
            Permission::Deny => ("never", "workspace-write"),
        };
        let mut params = Map::new();
        let mut set = |key: &str, value: Value| params.insert(key.to_owned(), value);
        set("cwd", json!(self.cwd));
        set("approvalPolicy", json!(policy));
        set("sandbox", json!(sandbox));
        for (key, value) in
            [("model", &self.model), ("developerInstructions", &self.added), ("baseInstructions", &self.replaced)]
        {
            if let Some(value) = value {
                set(key, json!(value));
            }
        }
        if let Some(level) = &self.thinking {
            set("config", json!({"model_reasoning_effort": level}));
        }
        let Some(id) = &self.resume else { return ("thread/start", Value::Object(params)) };
        set("threadId", json!(id));
        // Its history is nobody's work here, and can be long.
        set("excludeTurns", json!(true));
        ("thread/resume", Value::Object(params))
    }
}
