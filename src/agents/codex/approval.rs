//! What Codex's app server asks of its client, and what it is answered (agent-streams 2b).

use serde_json::{Value, json};

use super::item::Item;
use crate::agents::look::Look;
use crate::run::Permission;
use crate::text::prefix;

/// JSON-RPC's code for a method that is not there.
const NOT_FOUND: i64 = -32601;
/// Largest part of a question that is shown, in bytes.
const SHOWN: usize = 500;

/// The question whether a command may run.
const COMMAND: &str = "item/commandExecution/requestApproval";
/// The question whether files may be changed.
const FILES: &str = "item/fileChange/requestApproval";
/// The question for more rights.
const RIGHTS: &str = "item/permissions/requestApproval";
/// Questions of the model to a person.
const PERSON: &str = "item/tool/requestUserInput";
/// Questions of a tool's server to a person.
const SERVER: &str = "mcpServer/elicitation/request";

/// A request that a person would have to answer.
pub(super) struct Asked {
    /// Whether it asks for a permission.
    pub permission: bool,
    /// The question in words.
    pub text: String,
}

/// What a request asks a person; `None` when it asks none. `about` is what can be said of the call that it is about.
pub(super) fn asked(method: &str, params: Look<'_>, about: Option<&str>) -> Option<Asked> {
    let reason = params.str("reason").or_else(|| params.str("message"));
    let permission = |text: &str| {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({})", prefix(reason, SHOWN)));
        Some(Asked { permission: true, text: format!("{}{reason}", prefix(text.trim(), SHOWN)) })
    };
    match method {
        COMMAND => permission(&format!("run {}", Item::new(params).command())),
        FILES => permission(&about.map_or_else(|| "change files".to_owned(), |about| format!("change {about}"))),
        RIGHTS => permission("have more rights"),
        PERSON | SERVER => {
            let questions = params.list("questions").iter().map(Look::new).filter_map(|one| one.str("question"));
            let mut text = questions.collect::<Vec<_>>().join(" ");
            if text.is_empty() {
                text = reason.unwrap_or("it has a question").to_owned();
            }
            Some(Asked { permission: false, text: prefix(&text, SHOWN).to_owned() })
        }
        _ => None,
    }
}

/// The members of the answer to a request: a result, or an error for what is not offered. Nothing is allowed or refused for
/// longer than this once.
pub(super) fn answer(method: &str, permission: Permission) -> (&'static str, Value) {
    let result = match method {
        COMMAND | FILES => {
            let allowed = permission == Permission::Allow;
            json!({"decision": if allowed { "accept" } else { "decline" }})
        }
        // No right beside those that it has.
        RIGHTS => json!({"permissions": {}, "scope": "turn"}),
        PERSON => json!({"answers": {}}),
        SERVER => json!({"action": "decline", "content": null}),
        _ => {
            let message = format!("the client does not offer {method}");
            return ("error", json!({"code": NOT_FOUND, "message": message}));
        }
    };
    ("result", result)
}
