//! Telling a person who looks elsewhere: what there is to tell, when, and in which words a terminal understands.
//!
//! Pure: the loop asks what is due and writes it.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use super::attention::{Attention, attention};
use super::model::UiState;
use crate::run::{RunState, StepId, Timestamp};
use crate::text::SafeText;

/// What comes within this time is told together.
pub const GATHER: Duration = Duration::from_secs(2);
/// A notification is a line, not a page.
const CELLS: usize = 160;

/// How a terminal is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// Not at all.
    #[default]
    Off,
    /// The bell, which every terminal has.
    Bell,
    /// iTerm2, WezTerm, Ghostty.
    Osc9,
    /// foot, rxvt-unicode.
    Osc777,
    /// kitty.
    Osc99,
}

impl Channel {
    /// The channel of a word of the configuration; `auto` looks at what the terminal calls itself. Inside of tmux that is
    /// tmux, which passes only the bell on unless it is told to pass everything.
    #[must_use]
    pub fn named(word: &str, env: impl Fn(&str) -> Option<String>) -> Self {
        let is = |name: &str, wanted: &str| env(name).is_some_and(|value| value.to_lowercase().contains(wanted));
        match word {
            "off" => Self::Off,
            "bell" => Self::Bell,
            "osc9" => Self::Osc9,
            "osc777" => Self::Osc777,
            "osc99" => Self::Osc99,
            _ if env("TMUX").is_some() => Self::Bell,
            _ if is("TERM", "kitty") => Self::Osc99,
            _ if is("TERM", "foot") || is("TERM", "rxvt-unicode") => Self::Osc777,
            _ if ["iterm", "wezterm", "ghostty"].iter().any(|known| is("TERM_PROGRAM", known)) => Self::Osc9,
            _ => Self::Bell,
        }
    }

    /// The bytes that tell a title and a sentence; `tmux` wraps what only the terminal around it understands.
    #[must_use]
    pub fn bytes(self, title: &SafeText, text: &SafeText, tmux: bool) -> Vec<u8> {
        let (title, text) = (title.truncate(CELLS), text.truncate(CELLS));
        let sequence = match self {
            Self::Off => return Vec::new(),
            Self::Bell => return b"\x07".to_vec(),
            // It begins with a word, so that it cannot be taken for a number that means something else.
            Self::Osc9 => format!("\x1b]9;subdeck {title}: {text}\x1b\\"),
            Self::Osc777 => {
                let field = |text: &SafeText| text.as_str().replace(';', ",");
                format!("\x1b]777;notify;{};{}\x1b\\", field(&title), field(&text))
            }
            Self::Osc99 => {
                let field = |text: &SafeText| base64::engine::general_purpose::STANDARD.encode(text.as_str());
                let (title, text) = (field(&title), field(&text));
                format!("\x1b]99;i=subdeck:d=0:e=1;{title}\x1b\\\x1b]99;i=subdeck:p=body:e=1;{text}\x1b\\")
            }
        };
        if tmux {
            format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes()
        } else {
            sequence.into_bytes()
        }
    }
}

/// Something that a person is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A step needs a person.
    Needs(Attention, SafeText),
    /// The run has ended, with this word.
    Ended(SafeText),
}

impl Item {
    /// What a hook reads.
    #[must_use]
    pub fn json(&self, state: &RunState, at: Timestamp) -> Value {
        let mut value = match self {
            Self::Needs(attention, name) => json!({
                "event": "attention",
                "step": attention.step.number(),
                "agent": name.as_str(),
                "rule": attention.rule,
                "text": SafeText::line(&attention.reason).as_str(),
            }),
            Self::Ended(word) => json!({ "event": "end", "state": word.as_str() }),
        };
        if let Some(fields) = value.as_object_mut() {
            fields.insert("version".to_owned(), json!(1));
            fields.insert("run".to_owned(), json!(SafeText::line(state.id.as_str()).as_str()));
            fields.insert("name".to_owned(), json!(state.name.as_deref().map(|n| SafeText::line(n).to_string())));
            fields.insert("at".to_owned(), json!(at.millis()));
        }
        value
    }
}

/// What was told and what waits to be.
#[derive(Clone, Debug, Default)]
pub struct Notifier {
    /// The terminal said that nobody looks. One that never says anything counts as looked at.
    unfocused: bool,
    /// Steps and causes that are known.
    known: BTreeSet<(StepId, String)>,
    ended: bool,
    waiting: Vec<Item>,
    since: Option<Timestamp>,
}

impl Notifier {
    /// One that takes what is already there for known: who opens a deck sees it.
    #[must_use]
    pub fn new(state: &RunState, ui: &UiState) -> Self {
        let known = attention(state, ui).into_iter().map(|a| (a.step, a.cause)).collect();
        Self { known, ended: state.is_over(), ..Self::default() }
    }

    /// The terminal says whether somebody looks.
    pub fn focus(&mut self, gained: bool) {
        self.unfocused = !gained;
        if gained {
            self.waiting.clear();
            self.since = None;
        }
    }

    /// Looks for what is new; gives it for the hook, and keeps it for the terminal when nobody looks.
    pub fn look(&mut self, state: &RunState, ui: &UiState, now: Timestamp) -> Vec<Item> {
        let mut new = Vec::new();
        for found in attention(state, ui) {
            if self.known.insert((found.step, found.cause.clone())) {
                let name = state.step(found.step).map(|s| SafeText::line(s.title())).unwrap_or_default();
                new.push(Item::Needs(found, name));
            }
        }
        if state.is_over() && !self.ended {
            self.ended = true;
            let word = if state.lost.is_some() { "lost" } else { state.phase.as_str() };
            new.push(Item::Ended(SafeText::line(word)));
        }
        if self.unfocused && !new.is_empty() {
            self.since.get_or_insert(now);
            self.waiting.extend(new.iter().cloned());
        }
        new
    }

    /// When there is something to tell.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.since.map(|since| since + GATHER)
    }

    /// The sentence that is due; several things are one sentence.
    pub fn due(&mut self, now: Timestamp) -> Option<SafeText> {
        self.due_at().filter(|at| *at <= now)?;
        self.since = None;
        let items = std::mem::take(&mut self.waiting);
        if let Some(Item::Ended(word)) = items.iter().find(|i| matches!(i, Item::Ended(_))) {
            return Some(SafeText::line(&format!("the run ended: {word}")));
        }
        let needs = items.iter().filter_map(|item| match item {
            Item::Needs(attention, name) => Some((attention, name)),
            Item::Ended(_) => None,
        });
        let (first, name) = needs.clone().next()?;
        let more = match needs.map(|(a, _)| a.step).collect::<BTreeSet<_>>().len() {
            1 => String::new(),
            steps => format!(" (and {} more)", steps - 1),
        };
        Some(SafeText::line(&format!("step {} {name} needs you{more}: {}", first.step, first.reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::RunPhase;

    fn text(text: &str) -> SafeText {
        SafeText::line(text)
    }

    #[test]
    fn each_terminal_is_told_in_its_own_words() {
        let (title, body) = (text("nap"), text("4;x\x1b]0;evil\x07"));
        let said = |channel: Channel, tmux| String::from_utf8(channel.bytes(&title, &body, tmux)).unwrap();
        assert_eq!(said(Channel::Off, false), "");
        assert_eq!(said(Channel::Bell, true), "\x07");
        assert_eq!(said(Channel::Osc9, false), "\x1b]9;subdeck nap: 4;x\u{fffd}\x1b\\");
        assert_eq!(said(Channel::Osc777, false), "\x1b]777;notify;nap;4,x\u{fffd}\x1b\\");
        assert!(said(Channel::Osc99, false).starts_with("\x1b]99;i=subdeck:d=0:e=1;bmFw\x1b\\"));
        assert_eq!(said(Channel::Osc9, true), "\x1bPtmux;\x1b\x1b]9;subdeck nap: 4;x\u{fffd}\x1b\x1b\\\x1b\\");
    }

    #[test]
    fn the_channel_is_found_by_what_the_terminal_calls_itself() {
        for (word, variables, channel) in [
            ("auto", &[("TERM", "xterm-kitty")][..], Channel::Osc99),
            ("auto", &[("TERM", "foot-extra")], Channel::Osc777),
            ("auto", &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], Channel::Osc9),
            ("auto", &[("TERM", "xterm-256color")], Channel::Bell),
            ("auto", &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], Channel::Bell),
            ("osc9", &[("TMUX", "/tmp/x")], Channel::Osc9),
            ("off", &[("TERM", "xterm-kitty")], Channel::Off),
        ] {
            let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(Channel::named(word, env), channel, "{word} {variables:?}");
        }
    }

    #[test]
    fn only_who_looks_elsewhere_is_told_and_what_comes_together_is_told_together() {
        let mut stage = Stage::new(80, 24);
        let state = stage.feed.state.clone();
        let mut calm = state.clone();
        for step in &mut calm.steps {
            step.attention.clear();
            step.activity = None;
        }
        let now = stage.now;
        // What was there when the deck was opened is seen there.
        let mut notifier = Notifier::new(&state, &stage.ui);
        notifier.focus(false);
        assert!(notifier.look(&state, &stage.ui, now).is_empty());
        // New, but the terminal is looked at: the hook gets it, the terminal does not.
        let mut notifier = Notifier::new(&calm, &stage.ui);
        assert_eq!(notifier.look(&state, &stage.ui, now).len(), 1);
        assert_eq!(notifier.due_at(), None);
        // New, and nobody looks.
        let mut notifier = Notifier::new(&calm, &stage.ui);
        notifier.focus(false);
        assert_eq!(notifier.look(&state, &stage.ui, now).len(), 1);
        assert_eq!(notifier.look(&state, &stage.ui, now).len(), 0, "once");
        stage.feed.state.steps[4].held_by = vec![7];
        notifier.look(&stage.feed.state, &stage.ui, now + Duration::from_secs(1));
        assert_eq!(notifier.due(now + Duration::from_secs(1)), None);
        let said = notifier.due(now + GATHER).unwrap();
        assert_eq!(said.as_str(), "step 4 reviewer needs you (and 1 more): bash cargo test open");
        assert_eq!((notifier.due_at(), notifier.due(now + GATHER * 9)), (None, None));
        // Whoever comes back before it is due has seen it.
        stage.feed.state.phase = RunPhase::Failed;
        stage.feed.state.ended_at = Some(now);
        notifier.look(&stage.feed.state, &stage.ui, now);
        notifier.focus(true);
        assert_eq!(notifier.due(now + GATHER * 9), None);
    }

    #[test]
    fn the_end_is_told_once_and_a_hook_reads_what_it_was() {
        let mut stage = Stage::new(80, 24);
        let mut notifier = Notifier::new(&stage.feed.state, &stage.ui);
        notifier.focus(false);
        stage.feed.state.phase = RunPhase::Failed;
        stage.feed.state.ended_at = Some(stage.now);
        let items = notifier.look(&stage.feed.state, &stage.ui, stage.now);
        assert_eq!(items, [Item::Ended(text("failed"))]);
        let json = items[0].json(&stage.feed.state, stage.now);
        assert_eq!((json["event"].as_str(), json["state"].as_str()), (Some("end"), Some("failed")));
        assert_eq!((json["name"].as_str(), json["version"].as_u64()), (Some("fix-flaky-tests"), Some(1)));
        assert!(notifier.look(&stage.feed.state, &stage.ui, stage.now).is_empty());
        assert_eq!(notifier.due(stage.now + GATHER).unwrap().as_str(), "the run ended: failed");
    }
}
