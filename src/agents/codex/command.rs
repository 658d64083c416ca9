//! The arguments of Codex, and its first prompt (agent-streams 2a, 2b).

use crate::agents::families::{Start, SystemPrompt};
use crate::run::{Permission, Transport};

/// The arguments, without those that a plan puts before them. What is not said here is said over the protocol; with one
/// prompt, which goes to standard input, it is said as configuration.
pub(super) fn arguments(start: &Start<'_>) -> Vec<String> {
    if start.kind.transport == Transport::Steerable {
        return vec!["app-server".to_owned()];
    }
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["exec"]);
    if start.resume.is_some() {
        add(&["resume"]);
    }
    // A step may work outside of a repository; whether it should is for the plan to say.
    add(&["--json", "--skip-git-repo-check"]);
    match start.kind.permission {
        Permission::Allow => add(&["--dangerously-bypass-approvals-and-sandbox"]),
        // With one prompt it asks nobody. Named even though it is the usual one, and as configuration, because a session
        // that is gone on with takes no `-s`.
        Permission::Ask | Permission::Deny => {
            add(&["-c", "sandbox_mode=\"workspace-write\"", "-c", "approval_policy=\"never\""]);
        }
    }
    if let Some(model) = start.model {
        add(&["-m", model]);
    }
    if let Some(level) = start.thinking {
        add(&["-c", &format!("model_reasoning_effort={}", quoted(level))]);
    }
    if let Some(SystemPrompt::Replace(file)) = start.system_prompt {
        add(&["-c", &format!("model_instructions_file={}", quoted(&file.to_string_lossy()))]);
    }
    if let Some(session) = start.resume {
        add(&[session]);
    }
    add(&["-"]);
    args
}

/// A text as a value of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// The first prompt. With one prompt a system prompt that adds to the agent's own stands before the task: an argument would
/// be seen in the list of processes.
pub(super) fn task(start: &Start<'_>) -> String {
    let beside =
        start.kind.transport == Transport::Steerable || !matches!(start.system_prompt, Some(SystemPrompt::Append(_)));
    match start.system_text.map(str::trim).filter(|text| !beside && !text.is_empty()) {
        Some(system) => format!("{system}\n\nTask: {}", start.task),
        None => format!("Task: {}", start.task),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::{AgentKind, Family};

    fn start(transport: Transport, permission: Permission) -> Start<'static> {
        Start { task: "secret task", ..Start::new(AgentKind { family: Family::Codex, transport, permission }) }
    }

    #[test]
    fn what_it_is_started_with() {
        let bound = "-c sandbox_mode=\"workspace-write\" -c approval_policy=\"never\"";
        let free = "--dangerously-bypass-approvals-and-sandbox";
        for permission in Permission::ALL {
            let steerable = Start { model: Some("m"), ..start(Transport::Steerable, permission) };
            assert_eq!(arguments(&steerable), ["app-server"]);
            let may = if permission == Permission::Allow { free } else { bound };
            let once = arguments(&start(Transport::OneShot, permission)).join(" ");
            assert_eq!(once, format!("exec --json --skip-git-repo-check {may} -"));
        }
        let full = Start {
            resume: Some("s1"),
            model: Some("m"),
            thinking: Some("high"),
            system_prompt: Some(SystemPrompt::Replace(Path::new("/p \"q\""))),
            ..start(Transport::OneShot, Permission::Allow)
        };
        let rest = r#"-m m -c model_reasoning_effort="high" -c model_instructions_file='/p "q"' s1 -"#;
        assert_eq!(arguments(&full).join(" "), format!("exec resume --json --skip-git-repo-check {free} {rest}"));
    }

    #[test]
    fn a_system_prompt_that_adds_stands_before_the_task_where_there_is_no_other_place() {
        let append = Some(SystemPrompt::Append(Path::new("/p")));
        let replace = Some(SystemPrompt::Replace(Path::new("/p")));
        for (transport, system_prompt, expected) in [
            (Transport::OneShot, append, "Be brief.\n\nTask: secret task"),
            (Transport::OneShot, replace, "Task: secret task"),
            (Transport::Steerable, append, "Task: secret task"),
        ] {
            let start = Start { system_prompt, system_text: Some("Be brief.\n"), ..start(transport, Permission::Ask) };
            assert_eq!(task(&start), expected);
        }
    }
}
