//! A runner that a single word names: in an agent definition, in the configuration, on the command line.

use super::Family;

/// Such a runner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamedRunner {
    /// pi.
    #[default]
    Pi,
    /// An agent of another family, as it is started when a plan says no more of it.
    Agent(Family),
    /// The scripted agent inside this program, with its own script.
    Demo,
}

impl NamedRunner {
    /// The words: those of every runner that needs no more than its word in a plan.
    pub const WORDS: &[&str] = &["pi", "claude", "codex", "opencode", "gemini", "qwen", "copilot", "amp", "demo"];

    /// The runner of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "pi" => Some(Self::Pi),
            "demo" => Some(Self::Demo),
            _ => Family::of_word(word).filter(|family| !family.needs_command()).map(Self::Agent),
        }
    }

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Agent(family) => family.word(),
            Self::Demo => "demo",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_runner_and_no_other_does() {
        for word in NamedRunner::WORDS {
            assert_eq!(NamedRunner::of_word(word).map(NamedRunner::word), Some(*word));
        }
        for family in Family::ALL {
            assert_eq!(NamedRunner::WORDS.contains(&family.word()), !family.needs_command(), "{family:?}");
        }
        assert_eq!((NamedRunner::of_word("acp"), NamedRunner::of_word("Claude")), (None, None));
    }
}
