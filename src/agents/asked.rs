//! Which questions a child waits with: shared by all that talk to one.

use std::collections::BTreeMap;

use crate::run::{AgentEvent, Asking};

/// What an agent is told when it may not do something.
pub(super) const REFUSED: &str = "This is not permitted. Go on without it, or end with what you would need it for.";

/// The questions that are not answered, by the agent's ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    open: Vec<String>,
    given_up: Vec<String>,
}

impl Outstanding {
    /// Takes an event of the child.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Asked(asking) if !self.open.contains(&asking.id) => self.open.push(asking.id.clone()),
            AgentEvent::Unasked { id } => self.open.retain(|open| open != id),
            _ => {}
        }
    }

    /// The question is being answered; false when it is not open.
    pub(super) fn take(&mut self, id: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open != id);
        self.open.len() != before
    }

    /// Nothing that is open will be answered any more. Returns the ids.
    pub(super) fn give_up(&mut self) -> &[String] {
        let from = self.given_up.len();
        self.given_up.append(&mut self.open);
        self.given_up.get(from..).unwrap_or_default()
    }

    /// The same for some of them.
    pub(super) fn give_up_if(&mut self, which: impl Fn(&str) -> bool) {
        let (over, open): (Vec<String>, Vec<String>) =
            std::mem::take(&mut self.open).into_iter().partition(|id| which(id));
        self.open = open;
        self.given_up.extend(over);
    }

    /// What was given up since this was asked last.
    pub(super) fn given_up(&mut self) -> Vec<String> {
        std::mem::take(&mut self.given_up)
    }
}

/// Between a request's id and the number of one of its questions.
const NUMBER: char = '#';

/// The id of one of several questions of a request; one alone needs no number.
pub(super) fn numbered(request: &str, n: usize, of: usize) -> String {
    if of == 1 { request.to_owned() } else { format!("{request}{NUMBER}{n}") }
}

/// The request that a question belongs to.
pub(super) fn request_of(id: &str) -> &str {
    match id.rsplit_once(NUMBER) {
        Some((request, number)) if number.parse::<usize>().is_ok() => request,
        _ => id,
    }
}

/// The answers to the questions of one request by their keys; `None` where nobody answers one.
pub(super) type Answered = BTreeMap<String, Option<String>>;

/// The answers to questions of one request, until all are there: the agent takes them together.
#[derive(Clone, Debug, Default)]
pub(super) struct Together(BTreeMap<String, Answered>);

impl Together {
    /// Takes the answer to a question by its `key`, or that nobody answers it; returns all `of` them once the last has
    /// one or the other. What a person said to one is not lost because nobody says anything to another.
    pub(super) fn take(&mut self, asking: &Asking, key: &str, said: Option<String>, of: usize) -> Option<Answered> {
        let request = request_of(&asking.id);
        let answers = self.0.entry(request.to_owned()).or_default();
        answers.insert(key.to_owned(), said);
        if answers.len() < of { None } else { self.0.remove(request) }
    }

    /// The request is answered in another way.
    pub(super) fn forget(&mut self, asking: &Asking) {
        self.0.remove(request_of(&asking.id));
    }
}
