//! What Codex's app server asks of its client, and what it is answered (agent-streams 2b).

use serde_json::{Map, Value, json};

use super::item::Item;
use crate::agents::asked::{Together, numbered};
use crate::agents::look::Look;
use crate::run::{Answer, Asking, Choice, QuestionKind};
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
/// Questions of a tool's server to a person, in forms that this program cannot show.
const SERVER: &str = "mcpServer/elicitation/request";

/// What a request asks a person, with the id of the request as JSON; nothing when it asks none. `about` is what can be
/// said of the call that it is about.
pub(super) fn asked(id: &str, method: &str, params: Look<'_>, about: Option<&str>) -> Vec<Asking> {
    let base = Asking { id: id.to_owned(), call: params.str("itemId").map(str::to_owned), ..Asking::default() };
    let reason = params.str("reason").map_or_else(String::new, |reason| format!(" ({})", prefix(reason, SHOWN)));
    let may = |what: String, tool: &str, args: String| Asking {
        text: format!("May it {}{reason}?", prefix(what.trim(), SHOWN)),
        tool: Some(tool.to_owned()),
        args,
        ..base.clone()
    };
    // What else may be decided, such as rules for later, is the user's to write down.
    let decisions = || {
        [("accept", "allow", "allow_once"), ("acceptForSession", "allow for this session", "allow_always")]
            .into_iter()
            .chain([("decline", "deny", "reject_once")])
            .map(|(id, label, kind)| Choice { id: id.into(), label: label.into(), kind: kind.into() })
            .collect()
    };
    let asked = match method {
        COMMAND => {
            let command = Item::new(params).command();
            vec![Asking { choices: decisions(), ..may(format!("run {command}"), "bash", command) }]
        }
        FILES => {
            let about = about.unwrap_or("files");
            vec![Asking { choices: decisions(), ..may(format!("change {about}"), "edit", about.to_owned()) }]
        }
        RIGHTS => {
            let wanted = granted(params).to_string();
            let asking = may("have more rights".to_owned(), "permissions", wanted.clone());
            vec![Asking { repeat: Some(wanted), ..asking }]
        }
        PERSON => {
            let own = params.list("questions");
            own.iter().enumerate().map(|(n, question)| one(&base, Look::new(question), n, own.len())).collect()
        }
        _ => Vec::new(),
    };
    asked.into_iter().map(Asking::bounded).collect()
}

/// One of the questions of the model. Its own id is repeated in the answer.
fn one(base: &Asking, question: Look<'_>, n: usize, of: usize) -> Asking {
    let option = |option: &Value| {
        let look = Look::new(option);
        let (id, about) = (look.str("label")?, look.word("description"));
        let label = if about.is_empty() { String::new() } else { format!("{id}: {about}") };
        Some(Choice { id: id.to_owned(), label, kind: String::new() })
    };
    let choices: Vec<Choice> = question.list("options").iter().filter_map(option).collect();
    Asking {
        id: numbered(&base.id, n, of),
        kind: if choices.is_empty() { QuestionKind::Text } else { QuestionKind::Choice },
        text: question.word("question").to_owned(),
        free: question.is("isOther"),
        choices,
        repeat: Some(json!([question.word("id"), of]).to_string()),
        ..base.clone()
    }
}

/// The rights that are asked for, as they can be given.
fn granted(params: Look<'_>) -> Value {
    let wanted = params.object("permissions");
    let fields =
        ["network", "fileSystem"].into_iter().filter_map(|key| Some((key.to_owned(), wanted.get(key)?.clone())));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// The result that an answer of a person makes; `None` while answers to other questions of the request are missing.
pub(super) fn result(asking: &Asking, answer: &Answer, together: &mut Together) -> Option<Value> {
    if let Some((id, of)) = own_question(asking) {
        let said = match answer {
            Answer::Choose(_) | Answer::Several(..) | Answer::Text(_) => answer.words(),
            Answer::Dismiss => None,
            Answer::Allow | Answer::Deny(_) => {
                together.forget(asking);
                return Some(json!({"answers": {}}));
            }
        };
        // A question that nobody answers has no entry.
        let all = together.take(asking, &id, said, of)?.into_iter();
        let all = all.filter_map(|(id, text)| Some((id, json!({"answers": [text?]}))));
        return Some(json!({"answers": all.collect::<Map<String, Value>>()}));
    }
    if let Some(rights) = &asking.repeat {
        let given = if *answer == Answer::Allow { serde_json::from_str(rights).unwrap_or_default() } else { json!({}) };
        return Some(json!({"permissions": given, "scope": "turn"}));
    }
    Some(json!({"decision": match answer {
        Answer::Allow => "accept",
        Answer::Choose(id) => id,
        Answer::Deny(_) | Answer::Several(..) | Answer::Text(_) | Answer::Dismiss => "decline",
    }}))
}

/// The id of a question of the model, and how many the request has.
fn own_question(asking: &Asking) -> Option<(String, usize)> {
    if asking.kind == QuestionKind::Permission {
        return None;
    }
    serde_json::from_str(asking.repeat.as_deref()?).ok()
}

/// The members of the answer to a request that asks no person: a result, or an error for what is not offered.
pub(super) fn answer(method: &str) -> (&'static str, Value) {
    let result = match method {
        // There is nothing in it to be asked.
        PERSON => json!({"answers": {}}),
        SERVER => json!({"action": "decline", "content": null, "_meta": null}),
        _ => {
            let message = format!("the client does not offer {method}");
            return ("error", json!({"code": NOT_FOUND, "message": message}));
        }
    };
    ("result", result)
}
