//! Reading a tree by hand: every wrong thing is noted, none of them ends the reading.

use std::ops::Range;
use std::time::Duration;

use super::limits::millis;
use super::nearest::nearest;
use super::tree::{Entry, Kind, Node};
use super::{Problem, Source};
use crate::run::Limits;
use crate::text::parse_duration;

/// What is said of a time for tool calls that is too long.
pub(crate) const TOOL_TIME_RANGE: &str = "a tool call can be given 1ms to 2147483647ms, about 24 days";

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
    pub(crate) path: String,
}

impl<T> Spanned<T> {
    pub(crate) fn of(node: &Node, value: T) -> Self {
        Self { value, span: node.span.clone(), path: node.path.clone() }
    }

    /// A value that was not written anywhere.
    pub(crate) fn nowhere(value: T, path: &str) -> Self {
        Self { value, span: 0..0, path: path.to_owned() }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: f(self.value), span: self.span, path: self.path }
    }
}

/// Takes the problems of one source.
pub(crate) struct Reader<'s> {
    source: &'s Source,
    problems: Vec<Problem>,
    /// Unknown keys are warnings.
    lenient: bool,
}

/// A table whose keys were checked.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    pub(crate) node: &'n Node,
    entries: &'n [Entry],
}

impl<'n> Fields<'n> {
    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|e| &e.node)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    pub(crate) fn entries(&self) -> &'n [Entry] {
        self.entries
    }
}

impl<'s> Reader<'s> {
    pub(crate) const fn new(source: &'s Source) -> Self {
        Self { source, problems: Vec::new(), lenient: false }
    }

    /// The same, with warnings for unknown keys: those of a newer version must not make an older one useless.
    pub(crate) const fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(crate) const fn source(&self) -> &'s Source {
        self.source
    }

    /// Notes an error; the answer takes the suggestion.
    pub(crate) fn error(&mut self, span: Range<usize>, path: &str, message: impl Into<String>) -> Note<'_> {
        self.problems.push(Problem::at(self.source, span, path, message));
        Note(self.problems.last_mut())
    }

    /// Notes a warning; the answer takes the suggestion.
    pub(crate) fn warn(&mut self, span: Range<usize>, path: &str, message: impl Into<String>) -> Note<'_> {
        self.problems.push(Problem::at(self.source, span, path, message).warning());
        Note(self.problems.last_mut())
    }

    pub(crate) fn error_at<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) -> Note<'_> {
        self.error(at.span.clone(), &at.path, message)
    }

    pub(crate) fn warn_at<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) -> Note<'_> {
        self.warn(at.span.clone(), &at.path, message)
    }

    /// Everything that was noted, in the order of the text, each thing once.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|p| p.position);
        self.problems.dedup();
        self.problems
    }

    /// A table with any keys.
    pub(crate) fn open<'n>(&mut self, node: &'n Node, what: &str) -> Option<Fields<'n>> {
        if let Kind::Table(entries) = &node.kind {
            return Some(Fields { node, entries });
        }
        self.wrong_type(node, what);
        None
    }

    /// A table; keys that are not among `known` are errors (or warnings), with the nearest known one.
    pub(crate) fn table<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        let fields = self.open(node, what)?;
        for entry in fields.entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
            let near = nearest(&entry.key, known.iter().copied());
            let hint = super::keys::HINTS.iter().find(|(wrong, right, _)| *wrong == entry.key && known.contains(right));
            let suggestion = match near {
                _ if hint.is_some() => hint.map_or_else(String::new, |(_, _, hint)| (*hint).to_owned()),
                Some(near) if fields.has(near) => format!("`{near}` is known, and stands here already"),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let mut problem = Problem::at(
                self.source,
                entry.key_span.clone(),
                &entry.node.path,
                format!("unknown key `{}`", entry.key),
            );
            problem.suggestion = Some(suggestion);
            self.problems.push(if self.lenient { problem.warning() } else { problem });
        }
        Some(fields)
    }

    pub(crate) fn wrong_type(&mut self, node: &Node, wanted: &str) {
        self.error(node.span.clone(), &node.path, format!("{wanted} is needed here, not {}", node.kind.name()));
    }

    /// A text.
    pub(crate) fn string(&mut self, fields: &Fields<'_>, key: &str) -> Option<Spanned<String>> {
        let node = fields.get(key)?;
        match &node.kind {
            Kind::String(text) => Some(Spanned::of(node, text.clone())),
            Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) => {
                let text = self.source.text().get(node.span.clone()).unwrap_or_default();
                let quoted = format!("write \"{text}\" in quotes");
                self.error(node.span.clone(), &node.path, format!("a text is needed here, not {}", node.kind.name()))
                    .suggest(quoted);
                None
            }
            _ => {
                self.wrong_type(node, "a text");
                None
            }
        }
    }

    /// A text with something in it.
    pub(crate) fn word(&mut self, fields: &Fields<'_>, key: &str) -> Option<Spanned<String>> {
        let text = self.string(fields, key)?;
        if text.value.trim().is_empty() {
            self.error_at(&text, format!("`{key}` is empty")).suggest("leave the key out or give it a value");
            return None;
        }
        if text.value.contains('\0') {
            self.error_at(&text, format!("`{key}` holds a NUL character"));
            return None;
        }
        Some(text)
    }

    /// A list of texts.
    pub(crate) fn strings(&mut self, fields: &Fields<'_>, key: &str) -> Option<Spanned<Vec<String>>> {
        self.list(fields.get(key)?)
    }

    /// The same, of a value.
    pub(crate) fn list(&mut self, node: &Node) -> Option<Spanned<Vec<String>>> {
        let Kind::Array(elements) = &node.kind else {
            let note = self.error(
                node.span.clone(),
                &node.path,
                format!("a list of texts is needed here, not {}", node.kind.name()),
            );
            if let Kind::String(text) = &node.kind {
                let parts: Vec<String> = text.split(',').map(|p| format!("\"{}\"", p.trim())).collect();
                note.suggest(format!("write [{}]", parts.join(", ")));
            }
            return None;
        };
        let mut texts = Vec::with_capacity(elements.len());
        for element in elements {
            match &element.kind {
                Kind::String(text) if text.contains('\0') => {
                    self.error(element.span.clone(), &element.path, "the text holds a NUL character");
                }
                Kind::String(text) => texts.push(text.clone()),
                _ => self.wrong_type(element, "a text"),
            }
        }
        Some(Spanned::of(node, texts))
    }

    /// True or false.
    pub(crate) fn bool(&mut self, fields: &Fields<'_>, key: &str) -> Option<bool> {
        let node = fields.get(key)?;
        if let Kind::Bool(truth) = node.kind {
            return Some(truth);
        }
        self.wrong_type(node, "true or false");
        None
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&mut self, node: &Node, least: u64) -> Option<Spanned<u64>> {
        let number = match node.kind {
            Kind::Int(number) => u64::try_from(number).ok(),
            // JSON writers may give whole numbers a fraction.
            Kind::Float(number) if number.fract() == 0.0 && (0.0..9e15).contains(&number) => Some(number as u64),
            Kind::Float(_) => None,
            _ => {
                self.wrong_type(node, "a whole number");
                return None;
            }
        };
        if let Some(number) = number.filter(|n| *n >= least) {
            return Some(Spanned::of(node, number));
        }
        self.error(node.span.clone(), &node.path, format!("a whole number of at least {least} is needed here"));
        None
    }

    /// The longest time of a tool call: 1 ms to [`Limits::TOOL_MOST`] (runner-behaviour 3.6).
    pub(crate) fn tool_time(&mut self, node: &Node) -> Option<Spanned<Duration>> {
        let time = self.duration(node)?;
        if millis(time.value) <= Limits::TOOL_MOST {
            return Some(time);
        }
        self.error_at(&time, TOOL_TIME_RANGE).suggest("leave the key out for no limit");
        None
    }

    /// A time with its unit.
    pub(crate) fn duration(&mut self, node: &Node) -> Option<Spanned<Duration>> {
        match &node.kind {
            Kind::String(text) => match parse_duration(text) {
                // Times are kept in whole milliseconds.
                Ok(span) if span.as_millis() == 0 => {
                    self.error(node.span.clone(), &node.path, "a time of zero allows nothing")
                        .suggest("leave the key out for no limit");
                    None
                }
                Ok(span) => Some(Spanned::of(node, Duration::from_millis(millis(span)))),
                Err(error) => {
                    self.error(node.span.clone(), &node.path, error.to_string());
                    None
                }
            },
            Kind::Int(number) => {
                self.error(node.span.clone(), &node.path, "a time needs its unit")
                    .suggest(format!("write \"{number}s\" for seconds, or \"{number}m\" for minutes"));
                None
            }
            Kind::Float(_) => {
                self.error(node.span.clone(), &node.path, "a time needs its unit")
                    .suggest("write a text like \"90s\" or \"10m\"");
                None
            }
            _ => {
                self.wrong_type(node, "a time like \"30s\" or \"10m\"");
                None
            }
        }
    }
}

/// A problem that was just noted.
pub(crate) struct Note<'r>(Option<&'r mut Problem>);

impl Note<'_> {
    pub(crate) fn suggest(self, suggestion: impl Into<String>) {
        if let Some(problem) = self.0 {
            problem.suggestion = Some(suggestion.into());
        }
    }
}
