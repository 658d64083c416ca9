//! What is wrong with a plan or configuration, where, and what to do about it.

use std::fmt;
use std::ops::Range;

use super::{Position, Source};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is started.
    Error,
    /// It is said, and everything goes on.
    Warning,
}

/// One thing that is wrong.
///
/// The texts come from outside; [`Problem::lines`] makes them displayable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The file, or what else the text came from.
    pub file: String,
    /// Where in the file.
    pub position: Option<Position>,
    /// The way to the key, like `step[2].budget.time`, counted from 1; empty for the whole file.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub suggestion: Option<String>,
    /// The line it stands on, and how many characters are meant.
    pub excerpt: Option<(String, usize)>,
}

impl Problem {
    /// An error at a place.
    #[must_use]
    pub fn at(source: &Source, span: Range<usize>, key: &str, message: impl Into<String>) -> Self {
        let position = source.position(span.start);
        Self {
            severity: Severity::Error,
            file: source.name().to_owned(),
            position,
            key: key.to_owned(),
            message: message.into(),
            suggestion: None,
            excerpt: position.map(|p| (source.line(p.line).to_owned(), source.width_on_line(&span))),
        }
    }

    /// An error of a whole file.
    #[must_use]
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.into(),
            position: None,
            key: String::new(),
            message: message.into(),
            suggestion: None,
            excerpt: None,
        }
    }

    /// With advice.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// As a warning.
    #[must_use]
    pub const fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Where it is, as `file:line:column`.
    #[must_use]
    pub fn location(&self) -> String {
        match self.position {
            Some(at) => format!("{}:{}:{}", self.file, at.line, at.column),
            None => self.file.clone(),
        }
    }
}

/// Everything that is wrong; at least one error is among it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// How many of them are errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|p| p.severity == Severity::Error).count()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errors() {
            1 => f.write_str("1 error"),
            n => write!(f, "{n} errors"),
        }
    }
}

impl std::error::Error for Problems {}
