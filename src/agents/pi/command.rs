//! How pi is started: which program, which arguments in which order, which variables (runner-behaviour 1.1 to 1.3).

use std::path::Path;

/// Longest task that is put into the arguments, in characters (runner-behaviour 1.2).
pub const INLINE_TASK: usize = 8000;

/// The versions whose recordings are among the tests, the newest last.
pub const RECORDED: &[&str] = &["0.84.4", "1.6.0"];

/// The variable that names the program.
pub const BINARY_VAR: &str = "PI_SUBAGENT_PI_BINARY";

/// How pi is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Commands on standard input.
    Rpc,
    /// One prompt in the arguments.
    Json,
}

/// The file that holds a system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemPrompt<'a> {
    /// It adds to pi's own.
    Append(&'a Path),
    /// It takes the place of pi's own.
    Replace(&'a Path),
}

/// Everything that decides pi's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// How it is talked to.
    pub mode: Mode,
    /// The session to begin or to go on with.
    pub session_file: Option<&'a Path>,
    /// The folder for a new session, when no file was chosen. With neither, no session is kept.
    pub session_dir: Option<&'a Path>,
    /// The model; `None` leaves the choice to pi.
    pub model: Option<&'a str>,
    /// The thinking level.
    pub thinking: Option<&'a str>,
    /// The tools that are allowed; `None` leaves pi's own set, an empty list means none.
    pub tools: Option<&'a [String]>,
    /// The extensions to load; `None` leaves pi's own set.
    pub extensions: Option<&'a [String]>,
    /// Whether pi reads the project's context files.
    pub context_files: bool,
    /// Whether pi uses skills.
    pub skills: bool,
    /// The system prompt, if there is one.
    pub system_prompt: Option<SystemPrompt<'a>>,
    /// The task; used in json mode only.
    pub task: &'a str,
    /// The file that holds `Task: ` and the task, for tasks longer than [`INLINE_TASK`]; used in json mode only.
    pub task_file: Option<&'a Path>,
}

impl Command<'_> {
    /// A start of which nothing else is known: pi's own tools, skills and context files, and no session.
    #[must_use]
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            session_file: None,
            session_dir: None,
            model: None,
            thinking: None,
            tools: None,
            extensions: None,
            context_files: true,
            skills: true,
            system_prompt: None,
            task: "",
            task_file: None,
        }
    }
}

/// pi's arguments, without those that a plan puts before them.
#[must_use]
pub fn arguments(command: &Command<'_>) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    match command.mode {
        Mode::Rpc => add(&["--mode", "rpc"]),
        Mode::Json => add(&["--mode", "json", "-p"]),
    }
    match (command.session_file, command.session_dir) {
        (Some(file), _) => add(&["--session", &file.to_string_lossy()]),
        (None, Some(dir)) => add(&["--session-dir", &dir.to_string_lossy()]),
        (None, None) => add(&["--no-session"]),
    }
    match (command.model, command.thinking) {
        (Some(model), Some(level)) if !model.ends_with(&format!(":{level}")) => {
            add(&["--model", &format!("{model}:{level}")]);
        }
        (Some(model), _) => add(&["--model", model]),
        (None, Some(level)) => add(&["--thinking", level]),
        (None, None) => {}
    }
    match command.tools {
        Some([]) => add(&["--no-tools"]),
        Some(tools) => add(&["--tools", &tools.join(",")]),
        None => {}
    }
    if let Some(extensions) = command.extensions {
        add(&["--no-extensions"]);
        for path in extensions {
            add(&["--extension", path]);
        }
    }
    if !command.context_files {
        add(&["--no-context-files"]);
    }
    if !command.skills {
        add(&["--no-skills"]);
    }
    match command.system_prompt {
        Some(SystemPrompt::Append(file)) => add(&["--append-system-prompt", &file.to_string_lossy()]),
        Some(SystemPrompt::Replace(file)) => add(&["--system-prompt", &file.to_string_lossy()]),
        None => {}
    }
    if command.mode == Mode::Json {
        match command.task_file {
            Some(file) => add(&[&format!("@{}", file.display())]),
            None => add(&[&format!("Task: {}", command.task)]),
        }
    }
    args
}

/// Whether a task has to be handed over in a file in json mode (runner-behaviour 1.2).
#[must_use]
pub fn needs_task_file(task: &str, lookup: impl Fn(&str) -> Option<String>) -> bool {
    lookup("PI_SUBAGENT_TASK_DELIVERY").is_some_and(|how| how.trim() == "file")
        || task.chars().nth(INLINE_TASK).is_some()
}

/// The program: what the plan names, else what [`BINARY_VAR`] names, else `pi` from the path.
#[must_use]
pub fn program(planned: Option<&str>, lookup: impl Fn(&str) -> Option<String>) -> String {
    let named = lookup(BINARY_VAR).map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
    planned.map(str::to_owned).or(named).unwrap_or_else(|| "pi".to_owned())
}

/// What a child is told about itself through its environment.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// The flat index.
    pub index: usize,
    /// Whether the child may read the project's context files.
    pub context_files: bool,
    /// Whether the child may use skills.
    pub skills: bool,
    /// The tools that are allowed; the child may start agents of its own only when `subagent` is among them.
    pub tools: Option<&'a [String]>,
    /// The session bucket of the parent.
    pub parent_session: Option<&'a str>,
    /// The folder that it reaches its supervisor by; extensions that offer it a tool for that look for these variables.
    pub supervisor: &'a Path,
}

/// Variables of an enclosing run that a child must not see (runner-behaviour 1.3).
pub const REMOVED: [&str; 7] = [
    "PI_INTERCOM_SESSION_ID",
    "PI_SUBAGENT_STEER_INBOX",
    "PI_SUBAGENT_STEER_CAPABILITY",
    "PI_SUBAGENT_STEER_ACK_DIR",
    "PI_SUBAGENT_STRUCTURED_OUTPUT_CAPTURE",
    "PI_SUBAGENT_STRUCTURED_OUTPUT_SCHEMA",
    "PI_SUBAGENT_TOOL_BUDGET",
];

/// The route to an enclosing run; empty for a child, because a missing variable would be inherited by what it starts.
pub const BLANKED: [&str; 8] = [
    "PI_SUBAGENT_PARENT_EVENT_SINK",
    "PI_SUBAGENT_PARENT_CONTROL_INBOX",
    "PI_SUBAGENT_PARENT_ROOT_RUN_ID",
    "PI_SUBAGENT_PARENT_RUN_ID",
    "PI_SUBAGENT_PARENT_CHILD_INDEX",
    "PI_SUBAGENT_PARENT_DEPTH",
    "PI_SUBAGENT_PARENT_PATH",
    "PI_SUBAGENT_PARENT_CAPABILITY_TOKEN",
];

/// The variables to set on top of the inherited ones: name and value. [`BLANKED`] ones are among them; [`REMOVED`] ones
/// are to be taken out.
#[must_use]
pub fn variables(marks: &Marks<'_>, lookup: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
    let number = |name: &str| lookup(name).and_then(|text| text.trim().parse::<u32>().ok());
    let fanout = marks.tools.is_some_and(|tools| tools.iter().any(|tool| tool == "subagent"));
    let mut out = vec![
        ("PI_SUBAGENT_CHILD", flag(true)),
        ("PI_SUBAGENT_RUN_ID", marks.run_id.to_owned()),
        ("PI_SUBAGENT_CHILD_AGENT", marks.agent.to_owned()),
        ("PI_SUBAGENT_CHILD_INDEX", marks.index.to_string()),
        ("PI_SUBAGENT_FANOUT_CHILD", flag(fanout)),
        ("PI_SUBAGENT_INHERIT_PROJECT_CONTEXT", flag(marks.context_files)),
        ("PI_SUBAGENT_INHERIT_SKILLS", flag(marks.skills)),
        ("PI_SUBAGENT_DEPTH", number("PI_SUBAGENT_DEPTH").unwrap_or(0).saturating_add(1).to_string()),
        ("PI_SUBAGENT_MAX_DEPTH", number("PI_SUBAGENT_MAX_DEPTH").unwrap_or(2).to_string()),
        ("PI_SUBAGENT_PARENT_SESSION", marks.parent_session.unwrap_or_default().to_owned()),
        ("PI_SUBAGENT_SUPERVISOR_CHANNEL_DIR", marks.supervisor.to_string_lossy().into_owned()),
        // The supervisor is this run, whatever session started it.
        ("PI_SUBAGENT_ORCHESTRATOR_SESSION_ID", marks.run_id.to_owned()),
    ];
    out.extend(BLANKED.iter().map(|name| (*name, String::new())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Command<'_> = Command { task: "@do it", ..Command::new(Mode::Rpc) };

    #[test]
    fn argument_order() {
        let tools = ["read".to_owned(), "bash".to_owned()];
        let extensions = ["/x.ts".to_owned()];
        let table: &[(Command<'_>, &str)] = &[
            (PLAIN, "--mode rpc --no-session"),
            (Command { mode: Mode::Json, ..PLAIN }, "--mode json -p --no-session Task: @do it"),
            (
                Command {
                    mode: Mode::Json,
                    session_file: Some(Path::new("/s.jsonl")),
                    session_dir: Some(Path::new("/dir")),
                    model: Some("p/m"),
                    thinking: Some("high"),
                    tools: Some(&tools),
                    extensions: Some(&extensions),
                    context_files: false,
                    skills: false,
                    system_prompt: Some(SystemPrompt::Append(Path::new("/p.md"))),
                    task_file: Some(Path::new("/t.md")),
                    ..PLAIN
                },
                "--mode json -p --session /s.jsonl --model p/m:high --tools read,bash --no-extensions --extension /x.ts \
                 --no-context-files --no-skills --append-system-prompt /p.md @/t.md",
            ),
            (
                Command {
                    session_dir: Some(Path::new("/dir")),
                    model: Some("m:high"),
                    thinking: Some("high"),
                    tools: Some(&[]),
                    extensions: Some(&[]),
                    system_prompt: Some(SystemPrompt::Replace(Path::new("/p.md"))),
                    ..PLAIN
                },
                "--mode rpc --session-dir /dir --model m:high --no-tools --no-extensions --system-prompt /p.md",
            ),
            (Command { thinking: Some("low"), ..PLAIN }, "--mode rpc --no-session --thinking low"),
        ];
        for (command, expected) in table {
            assert_eq!(arguments(command).join(" "), *expected);
        }
    }

    #[test]
    fn long_tasks_go_by_file() {
        let none = |_: &str| None;
        assert!(!needs_task_file(&"é".repeat(INLINE_TASK), none));
        assert!(needs_task_file(&"é".repeat(INLINE_TASK + 1), none));
        assert!(needs_task_file("x", |name| (name == "PI_SUBAGENT_TASK_DELIVERY").then(|| "file".to_owned())));
    }

    #[test]
    fn which_program() {
        let env = |value: &'static str| move |name: &str| (name == BINARY_VAR).then(|| value.to_owned());
        assert_eq!(program(None, env(" /opt/pi ")), "/opt/pi");
        assert_eq!(program(None, env("  ")), "pi");
        assert_eq!(program(Some("mine"), env("/opt/pi")), "mine");
    }

    #[test]
    fn marks() {
        let tools = ["subagent".to_owned()];
        let marks = Marks {
            run_id: "r",
            agent: "scout",
            index: 3,
            context_files: true,
            skills: false,
            tools: Some(&tools),
            parent_session: None,
            supervisor: Path::new("/run/supervisor"),
        };
        let set = variables(&marks, |name| (name == "PI_SUBAGENT_DEPTH").then(|| "1".to_owned()));
        let get = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(get("PI_SUBAGENT_CHILD_INDEX"), Some("3"));
        assert_eq!(get("PI_SUBAGENT_FANOUT_CHILD"), Some("1"));
        assert_eq!(get("PI_SUBAGENT_DEPTH"), Some("2"));
        assert_eq!(get("PI_SUBAGENT_INHERIT_SKILLS"), Some("0"));
        assert_eq!(get("PI_SUBAGENT_PARENT_PATH"), Some(""));
        assert_eq!(get("PI_SUBAGENT_SUPERVISOR_CHANNEL_DIR"), Some("/run/supervisor"));
        assert!(set.iter().all(|(name, _)| !REMOVED.contains(name)));
    }
}
