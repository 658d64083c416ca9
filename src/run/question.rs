//! What agents ask a person: a permission, a yes or no, one of several things, or a text. One shape for every family; what
//! an answer looks like on the wire is theirs.

use super::{AgentEvent, OpenCall, StepState, Timestamp};

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// Whether it may do something that its rules do not allow.
    #[default]
    Permission,
    /// Yes or no.
    Confirm,
    /// One of its choices.
    Choice,
    /// Words.
    Text,
}

impl QuestionKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Permission, Self::Confirm, Self::Choice, Self::Text];

    /// The word that files use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Confirm => "confirm",
            Self::Choice => "choice",
            Self::Text => "text",
        }
    }

    /// From the word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// One of the answers that an agent takes. Texts from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The agent's id of the answer.
    pub id: String,
    /// What people read; empty where the id is all there is.
    pub label: String,
    /// What kind of answer it is, in the protocol's word; empty where it has none.
    pub kind: String,
}

impl Choice {
    /// The most that a question offers; what an agent offers beyond them is left out.
    pub const MOST: usize = 32;

    /// What people read.
    #[must_use]
    pub fn shown(&self) -> &str {
        if self.label.is_empty() { &self.id } else { &self.label }
    }
}

/// A question as an agent put it. Texts from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The agent's id of it, to be repeated in the answer.
    pub id: String,
    /// What kind of answer is wanted.
    pub kind: QuestionKind,
    /// The question, at most [`AgentEvent::PREVIEW`] bytes.
    pub text: String,
    /// The tool that it wants to use, where it asks for one.
    pub tool: Option<String>,
    /// What it wants to do with it, at most [`AgentEvent::PREVIEW`] bytes.
    pub args: String,
    /// What would stand in the file afterwards: `+` before each line that comes and `-` before each that goes, and how much
    /// is left out. At most [`Asking::DETAIL`] bytes; empty where nothing is written.
    pub detail: String,
    /// The agent's id of the call that waits for the answer.
    pub call: Option<String>,
    /// What may be answered, at most [`Choice::MOST`]; empty for a text, and where yes and no are all there is.
    pub choices: Vec<Choice>,
    /// More than one of the choices may be the answer.
    pub many: bool,
    /// Words of one's own do as well as one of the choices.
    pub free: bool,
    /// The agent itself goes on without an answer after so many milliseconds.
    pub within_ms: Option<u64>,
    /// It came through the folder that children reach their supervisor by, not over the protocol.
    pub by_file: bool,
    /// What an answer has to repeat, as JSON. Never recorded.
    pub repeat: Option<String>,
}

/// A question that nobody has answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Its name in the run, such as `q3`: what an answer names.
    pub id: String,
    /// What was asked.
    pub asking: Asking,
    /// When.
    pub asked_at: Timestamp,
    /// Without an answer it is refused then.
    pub until: Option<Timestamp>,
}

impl StepState {
    /// Whether a call waits for the answer to a question about it. It has not begun then, and no limit on tools counts.
    #[must_use]
    pub fn asks_about(&self, call: &OpenCall) -> bool {
        call.call.is_some() && self.questions.iter().any(|question| question.asking.call == call.call)
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Allow,
    /// No, and why.
    Deny(Option<String>),
    /// One of the choices, by its id.
    Choose(String),
    /// Several of the choices, by their ids in the question's order, and words of one's own beside them.
    Several(Vec<String>, Option<String>),
    /// Words.
    Text(String),
    /// Nobody will answer.
    Dismiss,
}

/// Who or what answered a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// Somebody, who is named beside it.
    Person,
    /// What the plan permits.
    Rule,
    /// What the run was started with, because nobody can be asked in it.
    Unattended,
    /// Nobody may be asked in this run, which therefore pauses.
    Nobody,
    /// The time for an answer was over.
    Timeout,
    /// Its agent went on or ended.
    Gone,
}

impl AnsweredBy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Person, Self::Rule, Self::Unattended, Self::Nobody, Self::Timeout, Self::Gone];

    /// The word that files use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Rule => "rule",
            Self::Unattended => "unattended",
            Self::Nobody => "nobody",
            Self::Timeout => "timeout",
            Self::Gone => "gone",
        }
    }

    /// From the word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.word() == word)
    }
}

impl Answer {
    /// The longest text of an answer, in bytes.
    pub const MOST: usize = 64 * 1024;
    /// How much of a text is recorded, in characters; as much as of a message.
    pub const PREVIEW: usize = 160;

    /// The word in requests and records: `allow`, `deny`, `dismiss`, or the id of a choice; `None` for a text and for
    /// several choices.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        match self {
            Self::Allow => Some("allow"),
            Self::Deny(_) => Some("deny"),
            Self::Choose(id) => Some(id),
            Self::Dismiss => Some("dismiss"),
            Self::Text(_) | Self::Several(..) => None,
        }
    }

    /// The ids in requests and records, where several choices are the answer; else none.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        match self {
            Self::Several(ids, _) => ids,
            Self::Allow | Self::Deny(_) | Self::Choose(_) | Self::Text(_) | Self::Dismiss => &[],
        }
    }

    /// What an agent hears that takes one text: choices with a comma between them, one's own words last. `None` where
    /// the answer is no text.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Choose(text) | Self::Text(text) => Some(text.clone()),
            Self::Several(ids, text) => Some(ids.iter().chain(text).map(String::as_str).collect::<Vec<_>>().join(", ")),
            Self::Allow | Self::Deny(_) | Self::Dismiss => None,
        }
    }

    /// The text in requests and records.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Deny(why) => why.as_deref(),
            Self::Several(_, text) => text.as_deref(),
            Self::Allow | Self::Choose(_) | Self::Dismiss => None,
        }
    }

    /// As it is recorded: of a text only the beginning, since it may be meant for the agent alone.
    #[must_use]
    pub fn recorded(self) -> Self {
        let cut = |text: String| match text.char_indices().nth(Self::PREVIEW) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        };
        match self {
            Self::Text(text) => Self::Text(cut(text)),
            Self::Deny(why) => Self::Deny(why.map(cut)),
            Self::Several(ids, text) => Self::Several(ids, text.map(cut)),
            other => other,
        }
    }

    /// From a record.
    #[must_use]
    pub fn of_record(choice: Option<&str>, choices: Vec<String>, text: Option<&str>) -> Option<Self> {
        Some(match (choice, text) {
            (None, text) if !choices.is_empty() => Self::Several(choices, text.map(str::to_owned)),
            (Some("allow"), _) => Self::Allow,
            (Some("deny"), why) => Self::Deny(why.map(str::to_owned)),
            (Some("dismiss"), _) => Self::Dismiss,
            (Some(id), _) => Self::Choose(id.to_owned()),
            (None, text) => Self::Text(text?.to_owned()),
        })
    }
}

/// Words for yes and no, as people type them.
const YES: [&str; 3] = ["allow", "yes", "y"];
const NO: [&str; 3] = ["deny", "no", "n"];

impl Asking {
    /// The most that is kept of what would be written, in bytes: a status holds it while the question is open.
    pub const DETAIL: usize = 8192;

    /// Whether words of one's own can be the answer.
    #[must_use]
    pub const fn takes_text(&self) -> bool {
        self.free || matches!(self.kind, QuestionKind::Text)
    }

    /// Whether yes and no can be the answer.
    #[must_use]
    pub const fn takes_yes(&self) -> bool {
        matches!(self.kind, QuestionKind::Permission | QuestionKind::Confirm)
    }

    /// The answer that somebody typed: a word for yes or no, a choice by its number from 1, its id or its label, else a
    /// text where one is wanted.
    ///
    /// # Errors
    /// What can be answered instead, ready to be shown.
    pub fn typed(&self, words: &str) -> Result<Answer, String> {
        let word = words.trim();
        if self.kind == QuestionKind::Text {
            return self.given(None, &[], Some(words));
        }
        if let Some(choice) = self.chosen(word) {
            return Ok(Answer::Choose(choice.id.clone()));
        }
        if self.many && word.contains(',') {
            let parts: Vec<&str> = word.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
            let chosen: Option<Vec<String>> = parts.iter().map(|part| Some(self.chosen(part)?.id.clone())).collect();
            match chosen {
                Some(ids) if !ids.is_empty() => return self.given(None, &ids, None),
                // Numbers that no choice has are a slip and no words.
                _ if !parts.is_empty() && parts.iter().all(|part| part.parse::<usize>().is_ok()) => {
                    return Err(self.instead());
                }
                _ => {}
            }
        }
        let lower = word.to_lowercase();
        if self.takes_yes() && YES.contains(&lower.as_str()) {
            return Ok(Answer::Allow);
        }
        if self.takes_yes() && NO.contains(&lower.as_str()) {
            return Ok(Answer::Deny(None));
        }
        if self.free { self.given(None, &[], Some(words)) } else { Err(self.instead()) }
    }

    /// The answer that a request holds: `allow`, `deny`, `dismiss` or the id of a choice, or the ids of several, and a
    /// text. With `deny` the text is the reason, with several choices one's own words beside them.
    ///
    /// # Errors
    /// What can be answered instead, ready to be shown.
    pub fn given(&self, choice: Option<&str>, choices: &[String], text: Option<&str>) -> Result<Answer, String> {
        if let Some(text) = text.filter(|text| text.len() > Answer::MOST) {
            return Err(format!("the text has {} bytes; at most {} go", text.len(), Answer::MOST));
        }
        let why = || text.map(str::trim).filter(|why| !why.is_empty()).map(str::to_owned);
        if !choices.is_empty() {
            return self.several(choice, choices, why());
        }
        match choice {
            Some(id) if self.choices.iter().any(|choice| choice.id == id) => Ok(Answer::Choose(id.to_owned())),
            Some("allow") if self.takes_yes() => Ok(Answer::Allow),
            Some("deny") if self.takes_yes() => Ok(Answer::Deny(why())),
            Some("dismiss") => Ok(Answer::Dismiss),
            Some(_) => Err(self.instead()),
            None if !self.takes_text() => Err(self.instead()),
            None => why().map(Answer::Text).ok_or_else(|| "the answer is empty".to_owned()),
        }
    }

    /// The answer of several choices, each once and in the order of the question.
    fn several(&self, choice: Option<&str>, choices: &[String], text: Option<String>) -> Result<Answer, String> {
        let known = choices.iter().all(|id| self.choices.iter().any(|choice| choice.id == *id));
        if !self.many || !known || choice.is_some() || (text.is_some() && !self.takes_text()) {
            return Err(self.instead());
        }
        let mut ids: Vec<String> = Vec::new();
        for choice in self.choices.iter().filter(|choice| choices.contains(&choice.id)) {
            if !ids.contains(&choice.id) {
                ids.push(choice.id.clone());
            }
        }
        Ok(match (&ids[..], text) {
            ([one], None) => Answer::Choose(one.clone()),
            (_, text) => Answer::Several(ids, text),
        })
    }

    /// The choice of a number from 1, an id or a label.
    fn chosen(&self, word: &str) -> Option<&Choice> {
        if word.is_empty() {
            return None;
        }
        let by = |is: &dyn Fn(&Choice) -> bool| self.choices.iter().find(|choice| is(choice));
        by(&|choice| choice.id == word)
            .or_else(|| by(&|choice| [&choice.id, &choice.label].iter().any(|text| text.eq_ignore_ascii_case(word))))
            .or_else(|| self.choices.get(word.parse::<usize>().ok()?.checked_sub(1)?))
    }

    /// What can be answered, in words.
    #[must_use]
    pub fn instead(&self) -> String {
        let mut ways: Vec<String> = Vec::new();
        if self.takes_yes() {
            ways.extend(["allow".to_owned(), "deny".to_owned()]);
        }
        ways.extend(self.choices.iter().zip(1..).map(|(choice, n)| format!("{n} ({})", choice.shown())));
        if self.many && self.choices.len() > 1 {
            ways.push("several of them with commas (1,2)".to_owned());
        }
        if self.takes_text() {
            ways.push("a text".to_owned());
        }
        format!("it can be answered with {}", ways.join(", "))
    }

    /// The id of the choice of one of these kinds, the best kind first.
    #[must_use]
    pub fn choice_of(&self, kinds: &[&str]) -> Option<&str> {
        let mut found = kinds.iter().filter_map(|kind| self.choices.iter().find(|choice| choice.kind == *kind));
        found.next().map(|choice| choice.id.as_str())
    }

    /// Whether the choice of this id is a no.
    #[must_use]
    pub fn refuses(&self, id: &str) -> bool {
        self.choices.iter().any(|choice| choice.id == id && choice.kind.starts_with("reject"))
    }

    /// Cuts what is longer than a state may keep.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            let kept = crate::text::prefix(text, AgentEvent::PREVIEW).len();
            text.truncate(kept);
        };
        cut(&mut self.text);
        cut(&mut self.args);
        let kept = crate::text::prefix(&self.detail, Self::DETAIL).len();
        self.detail.truncate(kept);
        self.choices.truncate(Choice::MOST);
        self.choices.iter_mut().for_each(|choice| cut(&mut choice.label));
        self
    }
}

#[cfg(test)]
mod tests;
