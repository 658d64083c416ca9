//! A tool call as the updates of an agent describe it, piece by piece.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Dialect;
use crate::agents::jsonrpc::{text, within};
use crate::agents::look::kept;
use crate::agents::pi::args::{Described, describe};
use crate::agents::told;
use crate::run::{AgentEvent, CallFacts, ToolOutcome};
use crate::text::prefix;

/// Largest text of a call's output that is read, in bytes.
const OUTPUT: usize = told::KEPT - told::MARK;
/// How much of a tool's output is quoted in an error, in characters (runner-behaviour 1.8).
const QUOTED: usize = 200;
/// What agents write in place of the output of a call that was broken off, where its status does not say it.
const BROKEN_OFF: [&str; 2] = ["Command cancelled by user.", "User aborted the command"];
/// What Qwen writes in place of the output of a call that it was refused a permission for.
const REFUSED: &str = "was canceled by the user.";

/// One call.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// The agent's id.
    pub(super) id: String,
    /// It was told; before that it may still lack its arguments.
    pub(super) started: bool,
    /// A permission was asked for it, and nothing was told of it since.
    pub(super) asked: bool,
    name: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    input: Option<Value>,
    location: Option<String>,
    /// The changes of files that it shows.
    changes: Vec<Value>,
    status: Option<String>,
    output: Option<Value>,
    text: Option<String>,
    /// How many bytes of its output are not kept.
    missing: usize,
}

impl Call {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Takes what an update, or a question about the call, says of it.
    pub(super) fn take(&mut self, update: &Value, dialect: Dialect) {
        let set = |field: &mut Option<String>, found: Option<&str>| {
            if let Some(found) = found.filter(|found| !found.trim().is_empty()) {
                *field = Some(found.to_owned());
            }
        };
        set(&mut self.name, within(update, &["_meta", "toolName"]).and_then(Value::as_str));
        if self.name.is_none() {
            self.name = named(&self.id, text(update, "title"), dialect);
        }
        set(&mut self.title, text(update, "title"));
        set(&mut self.kind, text(update, "kind"));
        set(&mut self.status, text(update, "status"));
        let place = within(update, &["locations"]).and_then(|places| places.get(0)).and_then(|at| text(at, "path"));
        set(&mut self.location, place);
        if let Some(input) = update.get("rawInput").filter(|input| !input.is_null()) {
            self.input = Some(input.clone());
        }
        if let Some(output) = update.get("rawOutput").filter(|output| !output.is_null()) {
            self.output = Some(output.clone());
        }
        if let Some(content) = update.get("content").and_then(Value::as_array) {
            let (shown, missing) = texts(content);
            (self.text, self.missing) = (Some(shown), missing);
            let changes = content.iter().filter(|part| text(part, "type") == Some("diff"));
            let changes: Vec<Value> = changes.map(change).collect();
            if !changes.is_empty() {
                self.changes = changes;
            }
        }
    }

    /// Whether it can be told: it runs, or all that is to be known of it is known.
    pub(super) fn is_ready(&self) -> bool {
        let waits = matches!(self.status.as_deref(), None | Some("pending"));
        // OpenCode says where a call would run before it says what it is.
        let known = |input: &Value| match input {
            Value::Object(map) => map.keys().any(|key| key != "cwd"),
            other => !other.is_null(),
        };
        !waits || self.input.as_ref().is_some_and(known)
    }

    /// How it ended; `None` while it runs.
    pub(super) fn outcome(&self) -> Option<ToolOutcome> {
        let failed = match self.status.as_deref()? {
            "completed" => false,
            "failed" => true,
            _ => return None,
        };
        let output = self.output.as_ref();
        let cancelled = output.and_then(|output| text(output, "outcome")) == Some("cancelled");
        if cancelled || BROKEN_OFF.iter().any(|words| self.text().contains(words)) {
            return Some(ToolOutcome::Cancelled);
        }
        if matches!(output.and_then(|output| text(output, "code")), Some("rejected" | "denied")) {
            return Some(ToolOutcome::Denied);
        }
        if failed && self.asked && self.text().ends_with(REFUSED) {
            return Some(ToolOutcome::Denied);
        }
        // A shell command that failed is a completed call to some (agent-streams 0.10).
        let code = self.exit_code().is_some_and(|code| code != 0);
        Some(if failed || code { ToolOutcome::Error } else { ToolOutcome::Ok })
    }

    /// The exit code of the command that it ran, where the agent tells it.
    pub(super) fn exit_code(&self) -> Option<i32> {
        let output = self.output.as_ref()?;
        let ended = |part: &Value| part.get("exitCode").and_then(Value::as_i64);
        let code = within(output, &["metadata", "exit"])
            .and_then(Value::as_i64)
            .or_else(|| ended(output))
            .or_else(|| output.get("contents")?.as_array()?.iter().find_map(ended))?;
        i32::try_from(code).ok()
    }

    /// The error that it leaves when it failed and nothing was said after it, and its exit code (runner-behaviour 1.8).
    pub(super) fn failure(&self) -> (String, i32) {
        let code = self.exit_code().filter(|code| *code != 0).unwrap_or(1);
        let quoted: String = self.text().trim().chars().take(QUOTED).collect();
        (format!("{} failed (exit {code}): {quoted}", self.name()), code)
    }

    /// The kind of sub-agent that it starts, and what that is to do; `None` for any other call.
    pub(super) fn delegated(&self) -> Option<(String, String)> {
        let said = |key| self.input.as_ref().and_then(|input| text(input, key)).filter(|said| !said.is_empty());
        if let (Some(name), Some(prompt)) = (said("subagent_type").or_else(|| said("agent_type")), said("prompt")) {
            return Some((name.to_owned(), said("description").unwrap_or(prompt).to_owned()));
        }
        // Gemini tells no more than a title: Delegating to agent 'NAME'.
        let title = self.title.as_deref().filter(|_| self.id.starts_with("invoke_agent"))?;
        let name = title.split('\'').nth(1).unwrap_or(title);
        Some((name.to_owned(), String::new()))
    }

    /// Whether what it started works on in the background.
    pub(super) fn goes_on(&self) -> bool {
        let (input, output) = (self.input.as_ref(), self.output.as_ref());
        input.and_then(|input| text(input, "mode")) == Some("background")
            || output.and_then(|output| text(output, "executionMode")) == Some("background")
    }

    /// What it gave, as far as it is kept, and how much is missing behind that.
    pub(super) fn gave(&self) -> Cow<'_, str> {
        match self.missing {
            0 => Cow::Borrowed(self.text()),
            missing => Cow::Owned(told::without_its_end(self.text(), missing)),
        }
    }

    /// Its output so far.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The tool's name. Not all agents tell it; then the kind of tool stands for it.
    pub(super) fn name(&self) -> &str {
        let task = self.delegated().map(|_| "task");
        self.name.as_deref().or(task).or(self.kind.as_deref()).or(self.title.as_deref()).unwrap_or("tool")
    }

    /// What it is to do, as far as the agent tells: a command as a whole.
    pub(super) fn subject(&self) -> String {
        let command = self.input.as_ref().and_then(|input| text(input, "command"));
        command.map_or_else(|| self.describe().args, str::to_owned)
    }

    /// All that it is to do, as it is kept: its arguments, or the changes that it shows where it tells no arguments.
    pub(super) fn whole(&self) -> Value {
        let told = |input: &&Value| !matches!(input, Value::Object(map) if map.is_empty());
        kept(match (self.input.as_ref().filter(told), self.changes.as_slice()) {
            (Some(input), _) => input.clone(),
            // A title is what is said of it in a line, where it fits.
            (None, []) => match self.title.as_deref().filter(|title| title.len() > AgentEvent::ARGS_PREVIEW) {
                Some(title) => json!({ "title": title }),
                None => Value::Null,
            },
            (None, [only]) => only.clone(),
            (None, changes) => json!({ "changes": changes }),
        })
    }

    /// What can be said of it in one line, and what it is about.
    pub(super) fn describe(&self) -> Described {
        let input = self.input.clone().filter(|input| !matches!(input, Value::Object(map) if map.is_empty()));
        let title = self.title.as_deref().filter(|title| *title != self.name()).unwrap_or_default();
        let shell = self.kind.as_deref() == Some("execute");
        let args = match input {
            // The folder that a command runs in is not what it is about.
            Some(Value::Object(mut input)) if shell => {
                input.shift_remove("cwd");
                Value::Object(input)
            }
            Some(input) => input,
            // Who tells no arguments has the command as the title.
            None if shell && !title.is_empty() => json!({ "command": title }),
            None if !title.is_empty() => json!(title),
            None => Value::Null,
        };
        let json = args.to_string();
        let mut said = describe(if shell { "bash" } else { self.name() }, Some(&json));
        if let Value::String(title) = &args {
            said.args = prefix(title, AgentEvent::ARGS_PREVIEW).to_owned();
        }
        let place = self.location.as_deref().filter(|_| !shell);
        said.path = said.path.or_else(|| Some(prefix(place?, AgentEvent::ARGS_PREVIEW).to_owned()));
        let changes = matches!(self.kind.as_deref(), Some("edit" | "delete" | "move"));
        said.about = CallFacts { mutates: said.about.mutates || changes, ..said.about };
        said
    }
}

/// The name of a tool that stands elsewhere than where it belongs.
fn named(id: &str, title: Option<&str>, dialect: Dialect) -> Option<String> {
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    match dialect {
        Dialect::Gemini => id.split_once("__").map(|(name, _)| name).filter(|name| word(name)),
        // Copilot's titles say what a call is for.
        Dialect::Copilot => None,
        Dialect::OpenCode | Dialect::Qwen | Dialect::Other => title.map(str::trim).filter(|title| word(title)),
    }
    .map(str::to_owned)
}

/// A change of a file: where, what goes and what comes.
fn change(diff: &Value) -> Value {
    let told =
        ["path", "oldText", "newText"].into_iter().filter_map(|key| Some((key.to_owned(), diff.get(key)?.clone())));
    Value::Object(told.filter(|(_, value)| !value.is_null()).collect())
}

/// The texts in the content of a call, one after the other as far as they are kept, and how many bytes are missing.
fn texts(content: &[Value]) -> (String, usize) {
    let (mut all, mut missing) = (String::new(), 0);
    for part in content {
        let found = match text(part, "type") {
            Some("diff") => text(part, "path"),
            _ => within(part, &["content", "text"]).and_then(Value::as_str),
        };
        let Some(found) = found else { continue };
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        let part = prefix(found, OUTPUT.saturating_sub(all.len()));
        all.push_str(part);
        missing += found.len() - part.len();
    }
    (all, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(dialect: Dialect, id: &str, updates: &[Value]) -> Call {
        let mut call = Call::new(id);
        updates.iter().for_each(|update| call.take(update, dialect));
        call
    }

    #[test]
    fn a_call_is_told_when_its_arguments_are_there() {
        let first = json!({"title": "bash", "kind": "execute", "status": "pending", "rawInput": {"cwd": "/p"}});
        let then = json!({"title": "ls > x", "status": "in_progress", "rawInput": {"command": "ls > x", "cwd": "/p"}});
        let waiting = call(Dialect::OpenCode, "c", std::slice::from_ref(&first));
        assert!(!waiting.is_ready());
        let running = call(Dialect::OpenCode, "c", &[first, then]);
        assert!(running.is_ready() && running.outcome().is_none());
        let said = running.describe();
        assert_eq!((running.name(), said.args.as_str(), said.path.as_deref()), ("bash", "ls > x", Some("x")));
        assert!(said.about.mutates);
        let pending =
            json!({"title": "list files", "kind": "execute", "status": "pending", "rawInput": {"command": "ls"}});
        let copilot = call(Dialect::Copilot, "c", &[pending]);
        assert!(copilot.is_ready());
        assert_eq!((copilot.name(), copilot.describe().args.as_str()), ("execute", "ls"));
    }

    #[test]
    fn names_and_arguments_that_stand_elsewhere() {
        let running = json!({"title": "rm -r x", "kind": "execute", "status": "in_progress", "content": []});
        let gemini = call(Dialect::Gemini, "run_shell_command__fc-1", &[running]);
        let said = gemini.describe();
        assert_eq!((gemini.name(), said.args.as_str()), ("run_shell_command", "rm -r x"));
        assert!(said.about.mutates && said.about.fingerprint != 0);
        let edit = json!({"title": "Editing main.rs", "kind": "edit", "status": "in_progress",
            "locations": [{"path": "/p/main.rs", "line": 3}]});
        let other = call(Dialect::Other, "c", &[edit]);
        let said = other.describe();
        assert_eq!(
            (other.name(), said.args.as_str(), said.path.as_deref()),
            ("edit", "Editing main.rs", Some("/p/main.rs"))
        );
        assert!(said.about.mutates);
        let command = json!({"title": "make", "kind": "execute", "status": "in_progress", "locations": [{"path": "/p"}],
            "rawInput": {"command": "make", "cwd": "/p"}});
        let said = call(Dialect::OpenCode, "c", &[command]).describe();
        assert_eq!((said.args.as_str(), said.path), ("make", None), "where it runs is not what it is about");
        let meta = json!({"title": "Shell: ls", "_meta": {"toolName": "run_shell_command"}});
        assert_eq!(call(Dialect::Qwen, "c", &[meta]).name(), "run_shell_command");
        assert_eq!(call(Dialect::Other, "c", &[]).name(), "tool");
    }

    #[test]
    fn of_more_than_is_kept_it_is_told_how_much_is_missing() {
        let part = |bytes: usize| json!({"content": {"type": "text", "text": "x".repeat(bytes)}});
        let long = call(Dialect::Other, "c", &[json!({"content": [part(OUTPUT), part(7)]})]);
        assert_eq!(long.gave(), format!("{}\n\n… 7 more bytes", "x".repeat(OUTPUT)));
        assert_eq!(call(Dialect::Other, "c", &[json!({"content": [part(7)]})]).gave(), "xxxxxxx");
    }

    #[test]
    fn how_calls_end() {
        let said = |words: &str| json!({"status": "completed", "content": [{"type": "content", "content": {"type": "text", "text": words}}]});
        let table = [
            (json!({"status": "completed"}), Some(ToolOutcome::Ok)),
            (json!({"status": "failed"}), Some(ToolOutcome::Error)),
            (json!({"status": "failed", "rawOutput": {"code": "rejected"}}), Some(ToolOutcome::Denied)),
            (json!({"status": "completed", "rawOutput": {"metadata": {"exit": 3}}}), Some(ToolOutcome::Error)),
            (
                json!({"status": "completed", "rawOutput": {"contents": [{}, {"exitCode": 3}]}}),
                Some(ToolOutcome::Error),
            ),
            (
                json!({"status": "failed", "rawOutput": {"exitCode": 0, "outcome": "cancelled"}}),
                Some(ToolOutcome::Cancelled),
            ),
            (said("Command cancelled by user."), Some(ToolOutcome::Cancelled)),
            (said("fine"), Some(ToolOutcome::Ok)),
            (json!({"status": "in_progress"}), None),
            (json!({"status": "dreaming"}), None),
            (json!({}), None),
        ];
        for (update, expected) in table {
            assert_eq!(call(Dialect::Other, "c", std::slice::from_ref(&update)).outcome(), expected, "{update}");
        }
        let parts = json!([{"type": "content", "content": {"type": "text", "text": "a"}}, {"type": "diff", "path": "b"},
            {"type": "terminal", "terminalId": "t"}, "odd"]);
        assert_eq!(texts(parts.as_array().unwrap()), ("a\nb".to_owned(), 0));
    }
}
