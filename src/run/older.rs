//! An agent that does not know its steerable transport: it was started with words that came with a newer version, or it
//! refuses to begin. Nothing of the task reached it, so that it can be given one prompt instead.

use super::{AgentKind, Family, Report, Transport};

/// What programs say of a word on their command line that they do not know.
const UNKNOWN: [&str; 9] = [
    "unknown option",
    "unknown argument",
    "unknown command",
    "unexpected argument",
    "unrecognized option",
    "unrecognized argument",
    "unrecognized subcommand",
    "no such option",
    "no such command",
];
/// What Codex says when it takes such a word for the prompt of a conversation at a terminal.
const NO_TERMINAL: &str = "stdin is not a terminal";
/// What OpenCode says when it takes such a word for a folder.
const NO_FOLDER: &str = "failed to change directory to";
/// How an adapter begins to tell of the first request of a conversation that was refused.
const REFUSED: &str = "the agent refused to begin (initialize)";

/// The words that only the steerable transport needs, as they are told without their dashes.
const fn words(family: Family) -> &'static [&'static str] {
    match family {
        Family::Claude => &["input-format", "replay-user-messages", "permission-prompt-tool"],
        Family::Codex => &["app-server"],
        Family::OpenCode | Family::Gemini | Family::Qwen | Family::Copilot => &["acp"],
        Family::Amp | Family::Acp => &[],
    }
}

/// Why an attempt shows that the agent has no steerable transport; `None` when it does not. `said` is the end of what it
/// printed as errors.
#[must_use]
pub fn has_no_steerable(kind: AgentKind, report: &Report, said: &str) -> Option<String> {
    let family = kind.family;
    if kind.transport != Transport::Steerable || !family.has(Transport::OneShot) || report.saw_any_event {
        return None;
    }
    if let Some(error) = report.protocol_error.as_deref().filter(|error| error.starts_with(REFUSED)) {
        return Some(error.to_owned());
    }
    let all = [said, &report.raw_tail];
    let line = all.into_iter().flat_map(str::lines).find(|line| {
        let lower = line.to_ascii_lowercase();
        let named = words(family).iter().any(|word| lower.contains(word));
        (named && UNKNOWN.into_iter().any(|says| lower.contains(says)))
            || (family == Family::OpenCode && named && lower.contains(NO_FOLDER))
            || (family == Family::Codex && lower.contains(NO_TERMINAL))
    })?;
    Some(super::retry::first_line(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Permission;

    fn kind(family: Family) -> AgentKind {
        AgentKind { family, transport: Transport::Steerable, permission: Permission::default() }
    }

    #[test]
    fn what_the_programs_say_of_words_that_they_do_not_know() {
        for (family, said, older) in [
            (Family::Claude, "error: unknown option '--input-format'\n", true),
            (Family::Claude, "error: unknown option '--effort'\n", false),
            (Family::Claude, "Error: --input-format=stream-json requires --print", false),
            (Family::Codex, "Error: stdin is not a terminal\n\nStack backtrace:\n", true),
            (Family::Codex, "error: unrecognized subcommand 'app-server'", true),
            (Family::OpenCode, "\u{1b}[91mError: \u{1b}[0mFailed to change directory to /srv/acp", true),
            (Family::OpenCode, "Failed to change directory to /srv/other", false),
            (Family::Gemini, "Unknown argument: acp\nUsage: gemini [options] [command]\n", true),
            (Family::Gemini, "Unknown arguments: acp, approval-mode, approvalMode", true),
            (Family::Gemini, "Usage: gemini [options]\n  --acp  starts it\n", false),
            (Family::Qwen, "Unknown argument: acp", true),
            (Family::Copilot, "error: unexpected argument '--acp' found\n\nUsage: copilot", true),
            (Family::Copilot, "error: unknown option '--acp'", true),
            (Family::Copilot, "", false),
            (Family::Acp, "Unknown argument: acp", false),
        ] {
            let by_errors = has_no_steerable(kind(family), &Report::default(), said);
            assert_eq!(by_errors.is_some(), older, "{family:?} {said}");
            let report = Report { raw_tail: said.to_owned(), ..Report::default() };
            assert_eq!(has_no_steerable(kind(family), &report, "").is_some(), older, "{family:?} {said}");
        }
    }

    #[test]
    fn one_that_refuses_the_first_request_has_none_and_one_that_did_anything_has() {
        let refused = |of: &str| Report {
            protocol_error: Some(format!("the agent refused to begin ({of}): it speaks version 9 of the protocol")),
            ..Report::default()
        };
        let gemini = kind(Family::Gemini);
        assert!(has_no_steerable(gemini, &refused("initialize"), "").is_some());
        assert_eq!(has_no_steerable(gemini, &refused("session/new"), ""), None, "it knows the transport");
        assert_eq!(has_no_steerable(kind(Family::Acp), &refused("initialize"), ""), None, "there is no other one");
        let worked = Report { saw_any_event: true, ..refused("initialize") };
        assert_eq!(has_no_steerable(gemini, &worked, "Unknown argument: acp"), None);
        let once = AgentKind { transport: Transport::OneShot, ..gemini };
        assert_eq!(has_no_steerable(once, &Report::default(), "Unknown argument: acp"), None);
    }
}
