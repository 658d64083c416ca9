//! The keys of a plan file. The reader takes them from here, and a test holds the published schema to them.

/// Keys of the whole plan.
pub const PLAN: &[&str] = &[
    "name",
    "task",
    "cwd",
    "env",
    "concurrency",
    "tool_timeout",
    "tool_timeout_exempt",
    "question_timeout",
    "budget",
    "attention",
    "step",
];

/// Keys of a step.
pub const STEP: &[&str] = &[
    "id",
    "label",
    "phase",
    "agent",
    "runner",
    "task",
    "cwd",
    "env",
    "model",
    "models",
    "thinking",
    "tools",
    "extensions",
    "system_prompt",
    "system_prompt_mode",
    "inherit_project_context",
    "inherit_skills",
    "output",
    "session",
    "tool_timeout",
    "tool_timeout_exempt",
    "question_timeout",
    "budget",
    "attention",
    "completion_guard",
];

/// Keys of a group.
pub const GROUP: &[&str] = &["parallel", "concurrency", "fail_fast", "phase"];

/// Keys that are known but that this version cannot do, with what they are called in a message.
pub const LATER: &[(&str, &str)] =
    &[("worktree", "a worktree for a step"), ("after", "an order other than the plan's")];

/// Keys of a runner table.
pub const RUNNER: &[&str] =
    &["type", "transport", "command", "args", "env", "prompt", "script", "permission", "resume"];

/// Keys of a table of permissions.
pub const PERMISSION: &[&str] = &["default", "tools"];

/// Keys of a budget.
pub const BUDGET: &[&str] = &["time", "idle", "turns", "tool_calls", "tokens", "cost_usd"];

/// Keys of a limit.
pub const LIMIT: &[&str] = &["soft", "hard"];

/// Keys of the limit on tool calls.
pub const TOOL_CALLS: &[&str] = &["soft", "hard", "block"];

/// Keys of the turn limit.
pub const TURNS: &[&str] = &["max", "grace"];

/// Keys of what makes a person look.
pub const ATTENTION: &[&str] = &[
    "enabled",
    "idle",
    "tool_open",
    "tools",
    "exempt",
    "long_running",
    "long_running_turns",
    "long_running_tokens",
    "tool_failures",
    "no_first_event",
    "repeated_calls",
];

/// Runner types that run now.
pub const RUNNERS: &[&str] =
    &["pi", "claude", "codex", "opencode", "gemini", "qwen", "copilot", "amp", "acp", "demo", "external-cli"];

/// Words of other programs: the word, the key of ours that must be known at the place, and the advice.
pub(super) const HINTS: &[(&str, &str, &str)] = &[
    ("steps", "step", "write one `[[step]]` table for each step"),
    ("chain", "step", "write one `[[step]]` table for each step"),
    ("prompt", "task", "what the agent is to do is called `task`"),
    ("instructions", "system_prompt", "use `task` for what to do, `system_prompt` for how to be"),
    ("command", "runner", "write runner = { type = \"external-cli\", command = \"...\" }"),
    ("args", "runner", "write runner = { type = \"external-cli\", command = \"...\", args = [...] }"),
    ("type", "runner", "the kind of agent is called `runner`"),
    ("timeout", "budget", "write budget = { time = \"10m\" }"),
    ("time", "budget", "write budget = { time = \"10m\" }"),
    ("idle", "budget", "write attention = { idle = \"2m\" } to be told, budget = { idle = \"5m\" } to end it"),
    ("turns", "budget", "write budget = { turns = 40 }"),
    ("tokens", "budget", "write budget = { tokens = 400_000 }"),
    ("tool_calls", "budget", "write budget = { tool_calls = 30 }"),
    ("cost_usd", "budget", "write budget = { cost_usd = 2.50 }"),
    ("tool_timeout", "time", "`tool_timeout` stands beside `budget`, not in it"),
    ("dir", "cwd", "the folder is called `cwd`"),
    ("directory", "cwd", "the folder is called `cwd`"),
    ("workdir", "cwd", "the folder is called `cwd`"),
    ("environment", "env", "variables are called `env`"),
    ("title", "label", "what people read is called `label`"),
    ("name", "id", "use `id` for placeholders and commands, `label` for people"),
    ("cost", "cost_usd", "money is called `cost_usd`"),
    ("max", "hard", "the end is called `hard`, the warning before it `soft`"),
    ("hard", "max", "turns have `max` and `grace`"),
    ("soft", "max", "turns have `max` and `grace`"),
];
