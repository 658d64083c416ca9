//! An agent's own command that goes on with the session of a step, for a person at a terminal.

use super::{RunnerKind, StepState};
use crate::text::{SafeText, quoted};

/// The command, ready to be pasted into a shell; `None` where the step has no session that a program of its own takes,
/// or where something in it cannot be shown as it is.
#[must_use]
pub fn resume_command(step: &StepState) -> Option<String> {
    match &step.runner {
        RunnerKind::Agent(agent) => agent.family.resume_command(step.session_id.as_deref()?),
        RunnerKind::Pi | RunnerKind::PiJson => {
            let file = step.session_file.as_deref().filter(|file| file.starts_with('/'))?;
            unchanged(format!("pi --session {}", quoted(file)))
        }
        RunnerKind::Demo | RunnerKind::ExternalCli { .. } | RunnerKind::ExternalJob { .. } | RunnerKind::Other(_) => {
            None
        }
    }
}

/// The same, in the folder that the step worked in: most agents look for a session below the folder that they are in.
#[must_use]
pub fn resume_line(step: &StepState) -> Option<String> {
    let command = resume_command(step)?;
    if step.cwd.starts_with('/') { unchanged(format!("cd {} && {command}", quoted(&step.cwd))) } else { Some(command) }
}

/// The text, unless it would be another one on the screen or in a clipboard.
pub(super) fn unchanged(command: String) -> Option<String> {
    (SafeText::line(&command).as_str() == command).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{AgentKind, Family, Permission, Transport};

    fn step(runner: RunnerKind) -> StepState {
        StepState {
            runner,
            session_id: Some("s-1".to_owned()),
            session_file: Some("/runs/a b/0-x.jsonl".to_owned()),
            cwd: "/home/u/it's".to_owned(),
            ..StepState::default()
        }
    }

    #[test]
    fn each_agent_has_a_command_of_its_own() {
        let agent = |family| {
            let (transport, permission) = (Transport::default(), Permission::default());
            step(RunnerKind::Agent(AgentKind { family, transport, permission }))
        };
        for (step, command) in [
            (agent(Family::Claude), Some("claude --resume s-1")),
            (agent(Family::Codex), Some("codex resume s-1")),
            (agent(Family::OpenCode), Some("opencode -s s-1")),
            (agent(Family::Gemini), Some("gemini -r s-1")),
            (agent(Family::Qwen), Some("qwen -r s-1")),
            (agent(Family::Copilot), Some("copilot --resume=s-1")),
            (agent(Family::Amp), Some("amp threads continue s-1")),
            (agent(Family::Acp), None),
            (step(RunnerKind::Pi), Some("pi --session '/runs/a b/0-x.jsonl'")),
            (step(RunnerKind::PiJson), Some("pi --session '/runs/a b/0-x.jsonl'")),
            (step(RunnerKind::Demo), None),
        ] {
            assert_eq!(resume_command(&step).as_deref(), command);
            let line = command.map(|command| format!(r"cd '/home/u/it'\''s' && {command}"));
            assert_eq!(resume_line(&step), line);
        }
        let nameless = StepState { session_id: None, cwd: String::new(), ..agent(Family::Claude) };
        assert_eq!((resume_command(&nameless), resume_line(&nameless)), (None, None));
    }

    #[test]
    fn what_cannot_be_shown_as_it_is_is_no_command() {
        for file in ["/a\u{1b}[2J", "/a\nb", "/a\u{202e}b", "relative"] {
            let step = StepState { session_file: Some(file.to_owned()), ..step(RunnerKind::Pi) };
            assert_eq!(resume_command(&step), None, "{file:?}");
        }
        let step = StepState { cwd: "/a\nb".to_owned(), ..step(RunnerKind::Pi) };
        assert!(resume_command(&step).is_some() && resume_line(&step).is_none());
    }
}
