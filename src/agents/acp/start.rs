//! How agents that speak the protocol are started, and what they are told first (agent-streams 3 to 7).

use std::sync::Arc;

use super::{AcpAdapter, AcpTalk, Dialect, Session};
use crate::agents::families::{Agents, Input, Start, Voice};
use crate::agents::{Talk, once};
use crate::run::{Permission, Transport};

/// A family of agents that speak the protocol.
pub struct Speaker(
    /// Whose they are.
    pub Dialect,
);

impl Agents for Speaker {
    fn arguments(&self, start: &Start<'_>) -> Vec<String> {
        if start.kind.transport == Transport::OneShot {
            return once::arguments(start);
        }
        let free = start.kind.permission == Permission::Allow;
        let mut args: Vec<&str> = match self.0 {
            Dialect::OpenCode => vec!["acp"],
            // Named even where it is the usual one: the user's settings may have another.
            Dialect::Gemini | Dialect::Qwen => {
                vec!["--acp", "--approval-mode", gemini_mode(free)]
            }
            Dialect::Copilot if free => vec!["--acp", "--allow-all"],
            Dialect::Copilot => vec!["--acp"],
            Dialect::Other => vec![],
        };
        if let (Dialect::Gemini | Dialect::Qwen | Dialect::Copilot, Some(model)) = (self.0, start.model) {
            args.extend(["--model", model]);
        }
        args.into_iter().map(str::to_owned).collect()
    }

    fn variables(&self, _start: &Start<'_>) -> Vec<(&'static str, &'static str)> {
        // None is to replace itself in the middle of a run. Gemini and Qwen would start themselves a second time, and
        // whoever ends the first leaves the second working (agent-streams 0.5).
        match self.0 {
            Dialect::OpenCode => vec![("OPENCODE_DISABLE_AUTOUPDATE", "1")],
            Dialect::Gemini => vec![("GEMINI_CLI_NO_RELAUNCH", "true")],
            Dialect::Qwen => vec![("QWEN_CODE_NO_RELAUNCH", "true")],
            Dialect::Copilot => vec![("COPILOT_AUTO_UPDATE", "false")],
            Dialect::Other => vec![],
        }
    }

    fn key(&self) -> Option<&'static str> {
        (self.0 == Dialect::Gemini).then_some("GEMINI_API_KEY")
    }

    fn voice(&self, start: &Start<'_>) -> Voice {
        if start.kind.transport == Transport::OneShot {
            return once::voice(start, task(start));
        }
        let session = Arc::new(Session {
            dialect: self.0,
            cwd: start.cwd.to_string_lossy().into_owned(),
            login: start.has_key.then(|| "gemini-api-key".to_owned()),
            resume: start.resume.map(str::to_owned),
            settle: (self.0 == Dialect::Gemini && start.resume.is_some())
                .then(|| gemini_mode(start.kind.permission == Permission::Allow)),
        });
        let mut talk = AcpTalk::new(Arc::clone(&session));
        let input = Input::Open(talk.prompt(&task(start)));
        Voice { adapter: Box::new(AcpAdapter::new(session)), talk: Box::new(talk), input }
    }
}

/// What Gemini and Qwen call the way in which they ask.
const fn gemini_mode(free: bool) -> &'static str {
    if free { "yolo" } else { "default" }
}

/// The first prompt. The protocol has no place for a system prompt, so it stands before the task, which no agent takes
/// for a command of its own because of the word in front.
fn task(start: &Start<'_>) -> String {
    match start.system_text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(system) => format!("{system}\n\nTask: {}", start.task),
        None => format!("Task: {}", start.task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::families::of;
    use crate::run::{AgentKind, Family};

    fn start(family: Family, permission: Permission) -> Start<'static> {
        Start::new(AgentKind { family, transport: Transport::Steerable, permission })
    }

    #[test]
    fn what_they_are_started_with() {
        for (family, permission, expected) in [
            (Family::OpenCode, Permission::Allow, "acp"),
            (Family::Gemini, Permission::Allow, "--acp --approval-mode yolo --model m"),
            (Family::Gemini, Permission::Ask, "--acp --approval-mode default --model m"),
            (Family::Qwen, Permission::Allow, "--acp --approval-mode yolo --model m"),
            (Family::Qwen, Permission::Deny, "--acp --approval-mode default --model m"),
            (Family::Copilot, Permission::Allow, "--acp --allow-all --model m"),
            (Family::Copilot, Permission::Ask, "--acp --model m"),
            (Family::Acp, Permission::Allow, ""),
        ] {
            let start = Start { model: Some("m"), task: "secret", ..start(family, permission) };
            assert_eq!(of(family).arguments(&start).join(" "), expected, "{family:?}");
            let told = of(family).arguments(&start).contains(&"m".to_owned());
            assert_eq!(told, family.takes_model(), "{family:?}");
        }
    }

    #[test]
    fn the_system_prompt_stands_before_the_task() {
        let start = start(Family::Acp, Permission::Ask);
        assert_eq!(task(&Start { task: "/clear", ..start }), "Task: /clear");
        assert_eq!(task(&Start { task: "go", system_text: Some("Be brief.\n"), ..start }), "Be brief.\n\nTask: go");
    }

    #[test]
    fn only_who_has_a_key_is_told_to_log_in_with_it() {
        for (family, variable) in [(Family::Gemini, Some("GEMINI_API_KEY")), (Family::Qwen, None)] {
            assert_eq!(of(family).key(), variable);
        }
    }
}
