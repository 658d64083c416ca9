//! Agents of other makers than pi's: whose they are, how they are talked to, and what they may do without being asked.

use super::resume::unchanged;
use crate::text::quoted;

/// Whose agent it is. The word is the same in plans, in files and on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    /// Amp.
    Amp,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Claude, Self::Codex, Self::OpenCode, Self::Gemini, Self::Qwen, Self::Copilot, Self::Amp, Self::Acp];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Amp => "amp",
            Self::Acp => "acp",
        }
    }

    /// The family of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.word() == word)
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenCode => "OpenCode",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Copilot => "Copilot CLI",
            Self::Amp => "Amp",
            Self::Acp => "the ACP agent",
        }
    }

    /// The program that is it, looked up on PATH. A plan always names the one of [`Self::Acp`].
    #[must_use]
    pub const fn program(self) -> &'static str {
        self.word()
    }

    /// The versions whose recordings are among the tests, the newest last; none where it is no agent of its own.
    #[must_use]
    pub const fn recorded(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["2.1.332"],
            Self::Codex => &["0.171.0"],
            Self::OpenCode => &["1.18.33"],
            Self::Gemini => &["0.61.0"],
            Self::Qwen => &["0.24.4"],
            Self::Copilot => &["1.0.102"],
            Self::Amp | Self::Acp => &[],
        }
    }

    /// Whether it is no program of its own, so that a plan has to name one.
    #[must_use]
    pub const fn needs_command(self) -> bool {
        matches!(self, Self::Acp)
    }

    /// Whether it can be told which model to use.
    #[must_use]
    pub const fn takes_model(self) -> bool {
        !matches!(self, Self::OpenCode | Self::Acp)
    }

    /// Whether it can be told how much to think.
    #[must_use]
    pub const fn takes_thinking(self) -> bool {
        matches!(self, Self::Claude | Self::Codex)
    }

    /// Whether it can be told which tools it has.
    #[must_use]
    pub const fn takes_tools(self) -> bool {
        matches!(self, Self::Claude)
    }

    /// Whether it has this transport.
    #[must_use]
    pub const fn has(self, transport: Transport) -> bool {
        match (self, transport) {
            (Self::Acp, Transport::OneShot) | (Self::Amp, Transport::Steerable) => false,
            (
                Self::Claude
                | Self::Codex
                | Self::OpenCode
                | Self::Gemini
                | Self::Qwen
                | Self::Copilot
                | Self::Amp
                | Self::Acp,
                Transport::Steerable | Transport::OneShot,
            ) => true,
        }
    }

    /// The transport that it is talked to over where a plan names none.
    #[must_use]
    pub const fn transport(self) -> Transport {
        if self.has(Transport::Steerable) { Transport::Steerable } else { Transport::OneShot }
    }

    /// How a message reaches it in the middle of its work (agent-streams 10).
    #[must_use]
    pub const fn arrival(self) -> &'static str {
        match self {
            Self::Claude | Self::Codex | Self::OpenCode | Self::Qwen => "after its tool",
            Self::Gemini | Self::Copilot | Self::Amp | Self::Acp => "it breaks off what it does",
        }
    }

    /// Its own command that goes on with a session, for a person at a terminal; `None` where it is no program of its own,
    /// or where the session is no word that can stand there.
    #[must_use]
    pub(super) fn resume_command(self, session: &str) -> Option<String> {
        // What begins with a dash would be read as an option.
        let word = !session.is_empty() && !session.starts_with('-') && session.len() <= 256;
        let how = match self {
            Self::Claude => "claude --resume ",
            Self::Codex => "codex resume ",
            Self::OpenCode => "opencode -s ",
            Self::Gemini => "gemini -r ",
            Self::Qwen => "qwen -r ",
            Self::Copilot => "copilot --resume=",
            Self::Amp => "amp threads continue ",
            Self::Acp => return None,
        };
        word.then(|| format!("{how}{}", quoted(session))).and_then(unchanged)
    }

    /// Whether it can be asked over this transport to break off.
    #[must_use]
    pub const fn can_abort(self, transport: Transport) -> bool {
        match (self, transport) {
            (
                Self::Claude | Self::Codex | Self::OpenCode | Self::Gemini | Self::Qwen | Self::Copilot | Self::Acp,
                Transport::Steerable,
            ) => true,
            (Self::Amp, Transport::Steerable) | (_, Transport::OneShot) => false,
        }
    }
}

/// How an agent is talked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Messages both ways while it works.
    #[default]
    Steerable,
    /// One prompt, and then nothing more.
    OneShot,
}

impl Transport {
    /// Its word in plans and files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Steerable => "steerable",
            Self::OneShot => "oneshot",
        }
    }

    /// The transport of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Steerable, Self::OneShot].into_iter().find(|transport| transport.word() == word)
    }
}

/// What an agent may do that its own rules do not allow already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Everything, without a question.
    Allow,
    /// What a person allows. Nobody can be asked yet: it is refused, and the question is shown.
    #[default]
    Ask,
    /// Nothing.
    Deny,
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Its word in plans and files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The permission of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.word() == word)
    }
}

/// An agent of a family as a run knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AgentKind {
    /// Whose it is.
    pub family: Family,
    /// How it is talked to.
    pub transport: Transport,
    /// What it may do.
    pub permission: Permission,
}

impl AgentKind {
    /// The word in files: the family, then what differs from the usual, each after a dash: `claude`, `claude-oneshot`,
    /// `claude-oneshot-allow`.
    #[must_use]
    pub fn word(&self) -> String {
        let mut word = self.family.word().to_owned();
        if self.transport != self.family.transport() {
            word.push_str(&format!("-{}", self.transport.word()));
        }
        if self.permission != Permission::default() {
            word.push_str(&format!("-{}", self.permission.word()));
        }
        word
    }

    /// What people read.
    #[must_use]
    pub fn told(&self) -> String {
        let how = if self.transport == Transport::OneShot { ", one prompt" } else { "" };
        let may = match self.permission {
            Permission::Allow => ", all allowed",
            Permission::Deny => ", nothing allowed",
            Permission::Ask => "",
        };
        format!("{}{how}{may}", self.family.word())
    }

    /// The agent of such a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let mut parts = word.split('-');
        let family = Family::of_word(parts.next()?)?;
        let mut kind = Self { family, transport: family.transport(), permission: Permission::default() };
        for part in parts {
            match (Transport::of_word(part), Permission::of_word(part)) {
                (Some(transport), _) => kind.transport = transport,
                (None, Some(permission)) => kind.permission = permission,
                (None, None) => return None,
            }
        }
        // A word that another spelling says is not ours.
        (kind.word() == word).then_some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_one_word_of_a_command_or_there_is_none() {
        assert_eq!(Family::Claude.resume_command("a-1").as_deref(), Some("claude --resume a-1"));
        assert_eq!(Family::Copilot.resume_command("$(x) y").as_deref(), Some("copilot --resume='$(x) y'"));
        assert_eq!(Family::Codex.resume_command("a'; rm -r .").as_deref(), Some(r"codex resume 'a'\''; rm -r .'"));
        for session in ["", "-x", "--yolo", "a\nb", "a\u{1b}[2J", "\u{202e}a", &"a".repeat(257)] {
            assert_eq!(Family::Codex.resume_command(session), None, "{session:?}");
        }
        assert_eq!(Family::Acp.resume_command("a-1"), None);
    }

    #[test]
    fn words_lead_back_to_what_they_say() {
        let mut words = Vec::new();
        for family in Family::ALL {
            for transport in [Transport::Steerable, Transport::OneShot] {
                for permission in Permission::ALL {
                    let kind = AgentKind { family, transport, permission };
                    assert_eq!(AgentKind::of_word(&kind.word()), Some(kind));
                    words.push(kind.word());
                }
            }
        }
        assert!(words.contains(&"claude".to_owned()) && words.contains(&"claude-oneshot-allow".to_owned()));
        for word in ["", "pi", "claude-", "claude-steerable", "claude-ask", "claude-allow-oneshot", "claude-x"] {
            assert_eq!(AgentKind::of_word(word), None, "{word}");
        }
    }
}
