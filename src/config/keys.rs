//! The keys of the configuration, one table for reading, explaining and testing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Env;
use crate::plan::reader::Reader;
use crate::plan::tree::{Kind as NodeKind, Node};
use crate::text::{parse_duration, parse_size, span};

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name with its table, like `defaults.time`.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// The variables that set it, the first one wins.
    pub variables: &'static [&'static str],
    /// Whether a project's file needs trust to set it.
    pub needs_trust: bool,
    /// The built-in value as people write it; empty for none.
    pub built_in: &'static str,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Path,
    /// A list of folders; in a variable with `:` between them.
    Paths,
    /// A program: a name for PATH or a path.
    Program,
    /// Any text.
    Text,
    /// A whole number of at least 1.
    Count,
    /// A time with its unit.
    Time,
    /// Milliseconds, as another program's variable has them.
    Milliseconds,
    /// A size with its unit.
    Size,
    /// True or false.
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Value {
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    Text(String),
    Count(u64),
    Time(Duration),
    Size(u64),
    Bool(bool),
}

const fn key(name: &'static str, kind: Kind, variables: &'static [&'static str], built_in: &'static str) -> Key {
    Key { name, kind, variables, needs_trust: false, built_in }
}

/// Every key but the variables of `[env]`.
pub const KEYS: &[Key] = &[
    key("root", Kind::Path, &["SUBDECK_ROOT"], ""),
    key("roots", Kind::Paths, &["SUBDECK_ROOTS"], ""),
    Key { needs_trust: true, ..key("executables.pi", Kind::Program, &["SUBDECK_PI", "PI_SUBAGENT_PI_BINARY"], "pi") },
    key("defaults.agent", Kind::Text, &["SUBDECK_AGENT"], ""),
    key("defaults.model", Kind::Text, &["SUBDECK_MODEL"], ""),
    key("defaults.concurrency", Kind::Count, &["SUBDECK_CONCURRENCY"], "4"),
    key("defaults.time", Kind::Time, &["SUBDECK_TIME"], ""),
    key("defaults.tool_timeout", Kind::Time, &["SUBDECK_TOOL_TIMEOUT"], ""),
    key("defaults.output", Kind::Word(&["text", "jsonl"]), &["SUBDECK_OUTPUT"], "text"),
    key("capture.step", Kind::Size, &["SUBDECK_CAPTURE_STEP"], "2GiB"),
    key("capture.run", Kind::Size, &["SUBDECK_CAPTURE_RUN"], "8GiB"),
    key("ui.theme", Kind::Word(&["auto", "color", "mono"]), &["SUBDECK_THEME"], "auto"),
    key("ui.ascii", Kind::Bool, &["SUBDECK_ASCII"], "false"),
    key("ui.mouse", Kind::Bool, &["SUBDECK_MOUSE"], "false"),
];

/// Another program's variable for the longest time of a tool call; every other layer goes before it
/// (runner-behaviour 3.6).
pub(super) const FOREIGN_TOOL_TIMEOUT: &str = "PI_SUBAGENT_TOOL_TIMEOUT_MS";

impl Key {
    /// The key of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Its table, empty at the top, and its name there.
    #[must_use]
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }
}

impl Kind {
    /// From a variable or a flag.
    ///
    /// # Errors
    /// A sentence part that says what is needed.
    pub fn parse(self, text: &str, base: &Path, env: &Env) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the value is empty".to_owned());
        }
        match self {
            Self::Path => Ok(Value::Path(env.path_from(base, text))),
            Self::Paths => {
                let paths = text.split(':').filter(|p| !p.is_empty()).map(|p| env.path_from(base, p));
                Ok(Value::Paths(paths.collect()))
            }
            Self::Program if text.contains('/') => {
                Ok(Value::Text(env.path_from(base, text).to_string_lossy().into_owned()))
            }
            Self::Program | Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Count => text
                .parse()
                .ok()
                .filter(|n| *n >= 1)
                .map(Value::Count)
                .ok_or_else(|| "a whole number of at least 1 is needed".to_owned()),
            Self::Time => match parse_duration(text) {
                Ok(Duration::ZERO) => Err("a time of zero allows nothing".to_owned()),
                Ok(span) => Ok(Value::Time(span)),
                Err(error) => Err(error.to_string()),
            },
            Self::Milliseconds => text
                .parse()
                .ok()
                .filter(|ms| (1..=2_147_483_647).contains(ms))
                .map(|ms| Value::Time(Duration::from_millis(ms)))
                .ok_or_else(|| "1 to 2147483647 milliseconds are needed".to_owned()),
            Self::Size => match parse_size(text) {
                Ok(0) => Err("a size of zero captures nothing".to_owned()),
                Ok(bytes) => Ok(Value::Size(bytes)),
                Err(error) => Err(error.to_string()),
            },
            Self::Bool => match text {
                "1" | "true" | "yes" | "on" => Ok(Value::Bool(true)),
                "0" | "false" | "no" | "off" => Ok(Value::Bool(false)),
                _ => Err("`true` or `false` is needed".to_owned()),
            },
            Self::Word(words) => words
                .contains(&text)
                .then(|| Value::Text(text.to_owned()))
                .ok_or_else(|| format!("{} is needed", crate::plan::nearest::one_of(words.iter().copied()))),
        }
    }

    /// From a file; what is wrong is noted in `reader`.
    pub(crate) fn read(self, reader: &mut Reader<'_>, node: &Node, base: &Path, env: &Env) -> Option<Value> {
        match (self, &node.kind) {
            (Self::Bool, NodeKind::Bool(truth)) => Some(Value::Bool(*truth)),
            (Self::Bool, _) => {
                reader.wrong_type(node, "true or false");
                None
            }
            (Self::Count, _) => reader.count(node, 1).map(|n| Value::Count(n.value)),
            (Self::Paths, NodeKind::Array(elements)) => {
                let mut paths = Vec::with_capacity(elements.len());
                for element in elements {
                    match &element.kind {
                        NodeKind::String(text) if !text.trim().is_empty() => paths.push(env.path_from(base, text)),
                        _ => reader.wrong_type(element, "a folder"),
                    }
                }
                Some(Value::Paths(paths))
            }
            (Self::Paths, _) => {
                reader.wrong_type(node, "a list of folders");
                None
            }
            (_, NodeKind::String(text)) => match self.parse(text, base, env) {
                Ok(value) => Some(value),
                Err(message) => {
                    reader.error(node.span.clone(), &node.path, message);
                    None
                }
            },
            (Self::Time, _) => reader.duration(node).map(|d| Value::Time(d.value)),
            (Self::Size, NodeKind::Int(number)) => {
                reader
                    .error(node.span.clone(), &node.path, "a size needs its unit")
                    .suggest(format!("write \"{number}MiB\" or \"{number}GiB\""));
                None
            }
            _ => {
                reader.wrong_type(node, "a text");
                None
            }
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Paths(paths) => {
                let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
                f.write_str(&paths.join(":"))
            }
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Time(time) => f.write_str(&span(*time)),
            Self::Size(size) => f.write_str(&written_size(*size)),
            Self::Bool(truth) => write!(f, "{truth}"),
        }
    }
}

/// A size as people write it in a file, without rounding.
fn written_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}
