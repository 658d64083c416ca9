//! How these agents are started with one prompt, which goes to their standard input: an argument would be seen in the list
//! of processes, and may be no longer than 128 KiB.

use super::{CopilotAdapter, GeminiAdapter, OpenCodeAdapter, QwenAdapter};
use crate::agents::families::{Input, Start, Voice};
use crate::agents::{Adapter, OneShot};
use crate::run::{Family, Permission};

/// The arguments, after those of the plan.
pub(in crate::agents) fn arguments(start: &Start<'_>) -> Vec<String> {
    let free = start.kind.permission == Permission::Allow;
    let mut args: Vec<&str> = match start.kind.family {
        // What its own settings do not allow is refused, unless it is told otherwise.
        Family::OpenCode if free => vec!["run", "--format", "json", "--auto"],
        Family::OpenCode => vec!["run", "--format", "json"],
        Family::Copilot if free => vec!["--output-format", "json", "--no-ask-user", "--allow-all"],
        Family::Copilot => vec!["--output-format", "json", "--no-ask-user"],
        _ => vec!["-o", "stream-json", "--approval-mode", if free { "yolo" } else { "default" }],
    };
    if let Some(model) = start.model.filter(|_| start.kind.family.takes_model()) {
        args.extend(["--model", model]);
    }
    let session;
    match (start.resume, start.kind.family) {
        (None, _) => {}
        (Some(id), Family::OpenCode) => args.extend(["-s", id]),
        (Some(id), Family::Copilot) => {
            session = format!("--resume={id}");
            args.push(&session);
        }
        (Some(id), _) => args.extend(["-r", id]),
    }
    args.into_iter().map(str::to_owned).collect()
}

/// Who understands such an agent, and its prompt.
pub(in crate::agents) fn voice(start: &Start<'_>, task: String) -> Voice {
    let (adapter, reason): (Box<dyn Adapter>, _) = match start.kind.family {
        Family::OpenCode => (Box::new(OpenCodeAdapter::new()), "OpenCode was started with one prompt"),
        Family::Copilot => (Box::new(CopilotAdapter::new()), "Copilot CLI was started with one prompt"),
        Family::Qwen => (Box::new(QwenAdapter::new(start.resume.is_some())), "Qwen Code was started with one prompt"),
        _ => (Box::new(GeminiAdapter::new()), "Gemini CLI was started with one prompt"),
    };
    Voice { adapter, talk: Box::new(OneShot { reason }), input: Input::Once(task.into_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{AgentKind, Transport};

    #[test]
    fn what_they_are_started_with() {
        for (family, permission, expected) in [
            (Family::OpenCode, Permission::Allow, "run --format json --auto -s s1"),
            (Family::OpenCode, Permission::Ask, "run --format json -s s1"),
            (Family::Gemini, Permission::Allow, "-o stream-json --approval-mode yolo --model m -r s1"),
            (Family::Gemini, Permission::Deny, "-o stream-json --approval-mode default --model m -r s1"),
            (Family::Qwen, Permission::Allow, "-o stream-json --approval-mode yolo --model m -r s1"),
            (
                Family::Copilot,
                Permission::Allow,
                "--output-format json --no-ask-user --allow-all --model m --resume=s1",
            ),
            (Family::Copilot, Permission::Deny, "--output-format json --no-ask-user --model m --resume=s1"),
        ] {
            let kind = AgentKind { family, transport: Transport::OneShot, permission };
            let start = Start { model: Some("m"), resume: Some("s1"), task: "secret", ..Start::new(kind) };
            assert_eq!(arguments(&start).join(" "), expected, "{family:?}");
            assert_eq!(voice(&start, "the task".to_owned()).input, Input::Once(b"the task".to_vec()));
        }
    }
}
