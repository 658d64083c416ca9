//! An item of a turn of Codex: a message, a thought, a tool call. Both transports have the same ones, with names written
//! in two ways (agent-streams 2a, 2b).

use serde_json::{Value, json};

use crate::agents::look::{Look, kept, text_of};
use crate::agents::pi::args::{Described, describe, words};
use crate::agents::work::{Begun, OUTPUT, Over};
use crate::run::{AgentEvent, ToolOutcome};
use crate::text::prefix;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Somebody said something to the model.
    User,
    /// The model says something.
    Message,
    /// The model thinks.
    Thought,
    /// It uses a tool.
    Tool,
    /// A sub-agent began or ended.
    SubAgent,
    /// It shortens its conversation.
    Compaction,
    /// Something is to be told.
    Notice,
    /// Nothing of a run's state.
    Silent,
    /// None that is known.
    Unknown,
}

/// A view of an item.
#[derive(Clone, Copy)]
pub(super) struct Item<'a>(Look<'a>);

impl<'a> Item<'a> {
    pub(super) const fn new(look: Look<'a>) -> Self {
        Self(look)
    }

    pub(super) fn id(self) -> &'a str {
        self.0.word("id")
    }

    /// Its type as the app server writes it.
    pub(super) fn word(self) -> &'a str {
        self.0.word("type")
    }

    pub(super) fn text(self) -> &'a str {
        self.0.word("text")
    }

    /// What was thought: the parts of its summary, or of itself where there is none.
    pub(super) fn thought(self) -> String {
        let parts = |key| self.0.list(key).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
        let summary = parts("summary");
        if summary.trim().is_empty() { parts("content") } else { summary }
    }

    pub(super) fn look(self) -> Look<'a> {
        self.0
    }

    pub(super) fn kind(self) -> Kind {
        match self.word() {
            "userMessage" => Kind::User,
            "agentMessage" | "agent_message" => Kind::Message,
            "reasoning" => Kind::Thought,
            "commandExecution"
            | "command_execution"
            | "fileChange"
            | "file_change"
            | "mcpToolCall"
            | "mcp_tool_call"
            | "dynamicToolCall"
            | "collabAgentToolCall"
            | "collab_tool_call"
            | "webSearch"
            | "web_search"
            | "imageView"
            | "imageGeneration"
            | "sleep" => Kind::Tool,
            "subAgentActivity" => Kind::SubAgent,
            "contextCompaction" => Kind::Compaction,
            "error" => Kind::Notice,
            "plan" | "todo_list" | "hookPrompt" | "functionCallOutput" | "enteredReviewMode" | "exitedReviewMode" => {
                Kind::Silent
            }
            _ => Kind::Unknown,
        }
    }

    /// The call that it tells of.
    pub(super) fn begun(self) -> Begun<'a> {
        Begun { id: self.id(), tool: self.tool(), said: self.described(), whole: kept(self.args()) }
    }

    /// How that ended.
    pub(super) fn over(self) -> Over {
        Over { output: self.output(), outcome: self.outcome(), code: self.exit_code() }
    }

    /// The tool's name.
    pub(super) fn tool(self) -> String {
        let named = |at: &str| self.0.str(at).map(|name| prefix(name, 100).to_owned());
        match self.word() {
            "commandExecution" | "command_execution" => Some("shell".to_owned()),
            "fileChange" | "file_change" => Some("apply_patch".to_owned()),
            "mcpToolCall" | "mcp_tool_call" => {
                named("server").zip(named("tool")).map(|(server, tool)| format!("{server}.{tool}"))
            }
            "webSearch" | "web_search" => Some("web_search".to_owned()),
            "imageView" => Some("view_image".to_owned()),
            "imageGeneration" => Some("image_generation".to_owned()),
            "sleep" => Some("sleep".to_owned()),
            _ => named("tool"),
        }
        .unwrap_or_else(|| "tool".to_owned())
    }

    /// What a call is to do, under the names that say it (see `describe`).
    fn args(self) -> Value {
        let one = |name: &str, value: Option<&Value>| value.map_or_else(|| json!({}), |value| json!({name: value}));
        match self.word() {
            "commandExecution" | "command_execution" => json!({"command": self.command()}),
            "fileChange" | "file_change" => one("changes", self.0.get("changes")),
            "webSearch" | "web_search" => one("query", self.0.get("query")),
            "imageView" => one("path", self.0.get("path")),
            "sleep" => one("durationMs", self.0.get("durationMs")),
            "imageGeneration" => one("query", self.0.get("revisedPrompt")),
            "collabAgentToolCall" | "collab_tool_call" => one("command", self.0.get("prompt")),
            _ => self.0.get("arguments").cloned().unwrap_or_default(),
        }
    }

    /// What can be said of a call.
    pub(super) fn described(self) -> Described {
        if matches!(self.word(), "fileChange" | "file_change") {
            let paths: Vec<&str> =
                self.0.list("changes").iter().filter_map(|change| Look::new(change).str("path")).collect();
            return self.changes(&paths);
        }
        describe(&self.tool(), Some(&kept(self.args()).to_string()))
    }

    /// A change of files: it is about the first of them.
    fn changes(self, paths: &[&str]) -> Described {
        let args =
            paths.first().map_or_else(|| json!({}), |path| json!({"path": path, "changes": self.0.get("changes")}));
        let mut said = describe(&self.tool(), Some(&args.to_string()));
        if paths.len() > 1 {
            let more = format!("{} and {} more", said.args, paths.len() - 1);
            said.args = prefix(&more, AgentEvent::ARGS_PREVIEW).to_owned();
        }
        said
    }

    /// The command line, without the shell that Codex puts around it.
    pub(super) fn command(self) -> String {
        let whole = self.0.word("command");
        if let [action] = self.0.list("commandActions")
            && let Some(command) = Look::new(action).str("command")
        {
            return command.to_owned();
        }
        // One that is so long is shown as it is.
        let whole_words = if whole.len() > OUTPUT { Vec::new() } else { words(whole) };
        match whole_words.as_slice() {
            [(shell, _), (flag, _), (command, _)]
                if matches!(flag.as_str(), "-lc" | "-c")
                    && shell.rsplit('/').next().is_some_and(|s| s.ends_with("sh")) =>
            {
                command.clone()
            }
            _ => whole.to_owned(),
        }
    }

    /// What a call printed or answered.
    pub(super) fn output(self) -> String {
        let failed = || self.0.object("error").str("message").or_else(|| self.0.str("error"));
        let output = self.0.str("aggregatedOutput").or_else(|| self.0.str("aggregated_output")).or_else(failed);
        match output {
            Some(text) => text.to_owned(),
            None => {
                let content = self.0.object("result").get("content").or_else(|| self.0.get("contentItems"));
                text_of(content)
            }
        }
    }

    /// The exit code of a command.
    pub(super) fn exit_code(self) -> Option<i32> {
        let code: &Value = self.0.get("exitCode").or_else(|| self.0.get("exit_code"))?;
        i32::try_from(code.as_i64()?).ok()
    }

    /// How a call ended that is said to be over.
    pub(super) fn outcome(self) -> ToolOutcome {
        match self.0.word("status") {
            "failed" => ToolOutcome::Error,
            "declined" => ToolOutcome::Denied,
            "interrupted" => ToolOutcome::Cancelled,
            "inProgress" | "in_progress" => ToolOutcome::Lost,
            _ if self.exit_code().is_some_and(|code| code != 0) => ToolOutcome::Error,
            _ => ToolOutcome::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: &Value) -> (String, String, Option<String>, bool) {
        let item = Item::new(Look::new(value));
        let described = item.described();
        assert_eq!(item.kind(), Kind::Tool, "{value}");
        (item.tool(), described.args, described.path, described.about.mutates)
    }

    #[test]
    fn calls_say_what_they_are_about() {
        let shell = |command: &str| json!({"type": "command_execution", "command": command});
        let table = [
            (shell("/bin/bash -lc 'rm -r \"x y\"'"), ("shell", "rm -r \"x y\"", None, true)),
            (shell("/usr/bin/zsh -c ls"), ("shell", "ls", None, false)),
            (shell("/bin/bash script.sh now"), ("shell", "/bin/bash script.sh now", None, false)),
            (
                json!({"type": "commandExecution", "command": "/bin/bash -lc 'echo a > b'",
                    "commandActions": [{"type": "unknown", "command": "echo a > b"}]}),
                ("shell", "echo a > b", Some("b"), true),
            ),
            (
                json!({"type": "fileChange", "changes": [{"path": "/p/a"}, {"path": "/p/b"}]}),
                ("apply_patch", "/p/a and 1 more", Some("/p/a"), true),
            ),
            (json!({"type": "file_change", "changes": 7}), ("apply_patch", "", None, true)),
            (
                json!({"type": "mcp_tool_call", "server": "docs", "tool": "find", "arguments": {"query": "x"}}),
                ("docs.find", "x", None, false),
            ),
            (json!({"type": "webSearch", "query": "rust"}), ("web_search", "rust", None, false)),
            (
                json!({"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "Do."}),
                ("spawnAgent", "Do.", None, false),
            ),
            (json!({"type": "dynamicToolCall"}), ("tool", "", None, false)),
        ];
        for (value, (tool, args, path, mutates)) in table {
            let expected = (tool.to_owned(), args.to_owned(), path.map(str::to_owned), mutates);
            assert_eq!(said(&value), expected, "{value}");
        }
    }

    #[test]
    fn how_calls_end() {
        let table = [
            (json!({"status": "completed", "exitCode": 0}), ToolOutcome::Ok),
            (json!({"status": "completed"}), ToolOutcome::Ok),
            (json!({"status": "completed", "exit_code": 3}), ToolOutcome::Error),
            (json!({"status": "failed"}), ToolOutcome::Error),
            (json!({"status": "declined"}), ToolOutcome::Denied),
            (json!({"status": "interrupted"}), ToolOutcome::Cancelled),
            (json!({"status": "inProgress"}), ToolOutcome::Lost),
            (json!({}), ToolOutcome::Ok),
        ];
        for (value, expected) in table {
            assert_eq!(Item::new(Look::new(&value)).outcome(), expected, "{value}");
        }
        let mcp = json!({"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}});
        assert_eq!(Item::new(Look::new(&mcp)).output(), "a\nb");
        let failed = json!({"error": {"message": "no server"}, "result": null});
        assert_eq!(Item::new(Look::new(&failed)).output(), "no server");
    }
}
