//! The arguments of Claude Code (agent-streams 1).

use crate::agents::families::{Start, SystemPrompt};
use crate::run::{Permission, Transport};

/// The arguments, without those that a plan puts before them. The prompt goes to standard input: an argument would be
/// seen in the list of processes, and may be no longer than 128 KiB.
pub(super) fn arguments(start: &Start<'_>) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    if start.kind.transport == Transport::Steerable {
        add(&["--input-format", "stream-json", "--replay-user-messages"]);
    }
    match start.kind.permission {
        Permission::Allow => add(&["--dangerously-skip-permissions"]),
        Permission::Ask | Permission::Deny => {
            // Named even though it is the usual one: the user's settings may have another.
            add(&["--permission-mode", "default"]);
            if start.kind.transport == Transport::Steerable {
                add(&["--permission-prompt-tool", "stdio"]);
            }
        }
    }
    if let Some(session) = start.resume {
        add(&["--resume", session]);
    }
    if let Some(model) = start.model {
        add(&["--model", model]);
    }
    if let Some(level) = start.thinking {
        add(&["--effort", level]);
    }
    if let Some(tools) = start.tools {
        // `Bash(git *)` is a rule: what it names is there, and what it describes needs no permission.
        let names: Vec<&str> = tools.iter().map(|tool| tool.split('(').next().unwrap_or(tool)).collect();
        add(&["--tools", &names.join(",")]);
        let rules: Vec<&str> = tools.iter().map(String::as_str).filter(|tool| tool.contains('(')).collect();
        if !rules.is_empty() {
            add(&["--allowedTools"]);
            add(&rules);
        }
    }
    match start.system_prompt {
        Some(SystemPrompt::Append(file)) => add(&["--append-system-prompt-file", &file.to_string_lossy()]),
        Some(SystemPrompt::Replace(file)) => add(&["--system-prompt-file", &file.to_string_lossy()]),
        None => {}
    }
    args
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::{AgentKind, Family};

    fn line<'a>(transport: Transport, permission: Permission, change: impl FnOnce(&mut Start<'a>)) -> String {
        let mut start = Start::new(AgentKind { family: Family::Claude, transport, permission });
        start.task = "secret task";
        change(&mut start);
        arguments(&start).join(" ")
    }

    #[test]
    fn what_it_is_started_with() {
        let head = "-p --output-format stream-json --verbose --include-partial-messages";
        let open = "--input-format stream-json --replay-user-messages";
        for (transport, permission, rest) in [
            (
                Transport::Steerable,
                Permission::Ask,
                format!("{open} --permission-mode default --permission-prompt-tool stdio"),
            ),
            (
                Transport::Steerable,
                Permission::Deny,
                format!("{open} --permission-mode default --permission-prompt-tool stdio"),
            ),
            (Transport::Steerable, Permission::Allow, format!("{open} --dangerously-skip-permissions")),
            (Transport::OneShot, Permission::Ask, "--permission-mode default".to_owned()),
            (Transport::OneShot, Permission::Allow, "--dangerously-skip-permissions".to_owned()),
        ] {
            assert_eq!(line(transport, permission, |_| {}), format!("{head} {rest}"));
        }
        let tools = ["Read".to_owned(), "Bash(git *)".to_owned()];
        let full = line(Transport::OneShot, Permission::Deny, |start| {
            start.resume = Some("s1");
            start.model = Some("opus");
            start.thinking = Some("high");
            start.tools = Some(&tools);
            start.system_prompt = Some(SystemPrompt::Replace(Path::new("/p")));
        });
        let rest = "--resume s1 --model opus --effort high --tools Read,Bash --allowedTools Bash(git *) --system-prompt-file /p";
        assert_eq!(full, format!("{head} --permission-mode default {rest}"));
        let none = line(Transport::OneShot, Permission::Deny, |start| {
            start.tools = Some(&[]);
            start.system_prompt = Some(SystemPrompt::Append(Path::new("/p")));
        });
        assert!(none.ends_with(" --tools  --append-system-prompt-file /p"), "{none}");
    }
}
