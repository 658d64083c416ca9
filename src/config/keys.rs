//! The keys of the configuration, one table for reading, explaining and testing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Env;
use crate::plan::reader::{Reader, TOOL_TIME_RANGE};
use crate::plan::tree::{Kind as NodeKind, Node};
use crate::plan::{Rule, read_attention, read_permission};
use crate::run::{Limits, NamedRunner, Permission, ToolRule, permission};
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
    /// What counts where nobody set it and there is no one value for it; empty for nothing.
    pub note: &'static str,
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
    /// The longest time of a tool call, with its unit.
    ToolTime,
    /// The same in milliseconds, as another program's variable has it.
    Milliseconds,
    /// A time with its unit, or false.
    TimeRule,
    /// A whole number of at least 1, or false.
    CountRule,
    /// A list of names; in a variable with `,` between them.
    Words,
    /// Tools, each with a time or false; in a variable like `bash=20m,web=false`.
    ToolRules,
    /// Tools, each with what it may do; in a variable like `Write=deny,Bash(git *)=allow`.
    Permissions,
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
    Off,
    Words(Vec<String>),
    Rules(BTreeMap<String, Rule>),
    Permissions(Vec<ToolRule>),
}

impl Value {
    /// What it says of a rule.
    pub(super) fn rule(&self) -> Option<Rule> {
        match self {
            Self::Off => Some(Rule::Off),
            Self::Time(time) => Some(Rule::At(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))),
            Self::Count(count) => Some(Rule::At(*count)),
            _ => None,
        }
    }

    const fn of_time(rule: Rule) -> Self {
        match rule {
            Rule::Off => Self::Off,
            Rule::At(ms) => Self::Time(Duration::from_millis(ms)),
        }
    }

    const fn of_count(rule: Rule) -> Self {
        match rule {
            Rule::Off => Self::Off,
            Rule::At(count) => Self::Count(count),
        }
    }
}

const fn key(name: &'static str, kind: Kind, variables: &'static [&'static str], built_in: &'static str) -> Key {
    Key { name, kind, variables, needs_trust: false, built_in, note: "" }
}

/// Every key but the variables of `[env]`.
pub const KEYS: &[Key] = &[
    key("root", Kind::Path, &["SUBDECK_ROOT"], ""),
    key("roots", Kind::Paths, &["SUBDECK_ROOTS"], ""),
    // A project must not lift what its user has set.
    Key { needs_trust: true, ..key("read_only", Kind::Bool, &["SUBDECK_READ_ONLY"], "false") },
    Key { needs_trust: true, ..key("executables.pi", Kind::Program, &["SUBDECK_PI", "PI_SUBAGENT_PI_BINARY"], "pi") },
    key("defaults.agent", Kind::Text, &["SUBDECK_AGENT"], ""),
    key("defaults.model", Kind::Text, &["SUBDECK_MODEL"], ""),
    Key { needs_trust: true, ..key("defaults.runner", Kind::Word(NamedRunner::WORDS), &["SUBDECK_RUNNER"], "pi") },
    key("defaults.concurrency", Kind::Count, &["SUBDECK_CONCURRENCY"], "4"),
    key("defaults.time", Kind::Time, &["SUBDECK_TIME"], ""),
    Key {
        note: "5m for read, grep, find, ls, edit, write and structured_output",
        ..key("defaults.tool_timeout", Kind::ToolTime, &["SUBDECK_TOOL_TIMEOUT"], "")
    },
    key("defaults.tool_timeout_exempt", Kind::Words, &["SUBDECK_TOOL_TIMEOUT_EXEMPT"], ""),
    Key {
        needs_trust: true,
        ..key("defaults.permission", Kind::Word(&["allow", "ask", "deny"]), &["SUBDECK_PERMISSION"], "ask")
    },
    Key { needs_trust: true, ..key("defaults.permission_tools", Kind::Permissions, &["SUBDECK_PERMISSION_TOOLS"], "") },
    key("defaults.question_timeout", Kind::Time, &["SUBDECK_QUESTION_TIMEOUT"], ""),
    key("defaults.output", Kind::Word(&["text", "jsonl"]), &["SUBDECK_OUTPUT"], "text"),
    key("defaults.attention.enabled", Kind::Bool, &["SUBDECK_ATTENTION"], "true"),
    key("defaults.attention.idle", Kind::TimeRule, &["SUBDECK_ATTENTION_IDLE"], "1m"),
    key("defaults.attention.tool_open", Kind::TimeRule, &["SUBDECK_ATTENTION_TOOL_OPEN"], "4m"),
    key("defaults.attention.tools", Kind::ToolRules, &["SUBDECK_ATTENTION_TOOLS"], ""),
    key("defaults.attention.exempt", Kind::Words, &["SUBDECK_ATTENTION_EXEMPT"], ""),
    key("defaults.attention.long_running", Kind::TimeRule, &["SUBDECK_ATTENTION_LONG_RUNNING"], "4m"),
    key("defaults.attention.long_running_turns", Kind::CountRule, &["SUBDECK_ATTENTION_LONG_RUNNING_TURNS"], ""),
    key("defaults.attention.long_running_tokens", Kind::CountRule, &["SUBDECK_ATTENTION_LONG_RUNNING_TOKENS"], ""),
    key("defaults.attention.tool_failures", Kind::CountRule, &["SUBDECK_ATTENTION_TOOL_FAILURES"], "3"),
    key("defaults.attention.no_first_event", Kind::TimeRule, &["SUBDECK_ATTENTION_NO_FIRST_EVENT"], "45s"),
    key("defaults.attention.repeated_calls", Kind::CountRule, &["SUBDECK_ATTENTION_REPEATED_CALLS"], "5"),
    key("capture.step", Kind::Size, &["SUBDECK_CAPTURE_STEP"], "2GiB"),
    key("capture.run", Kind::Size, &["SUBDECK_CAPTURE_RUN"], "8GiB"),
    key("ui.theme", Kind::Word(&["auto", "dark", "light", "high-contrast", "16", "mono"]), &["SUBDECK_THEME"], "auto"),
    key("ui.ascii", Kind::Bool, &["SUBDECK_ASCII"], ""),
    key("ui.mouse", Kind::Bool, &["SUBDECK_MOUSE"], "false"),
    key("ui.notify", Kind::Word(&["auto", "off", "bell", "osc9", "osc777", "osc99"]), &["SUBDECK_NOTIFY"], "auto"),
    Key { needs_trust: true, ..key("ui.notify_hook", Kind::Words, &["SUBDECK_NOTIFY_HOOK"], "") },
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

    /// What counts where nobody set it, in words.
    #[must_use]
    pub fn built_in_words(&self) -> String {
        match (self.built_in, self.note) {
            ("", "") => crate::text::UNKNOWN.to_owned(),
            ("", note) => note.to_owned(),
            (value, _) => value.to_owned(),
        }
    }

    /// Its table, empty at the top, and its name there.
    #[must_use]
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.rsplit_once('.').unwrap_or(("", self.name))
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
                Ok(span) if span.as_millis() == 0 => Err("a time of zero allows nothing".to_owned()),
                Ok(span) => Ok(Value::Time(span)),
                Err(error) => Err(error.to_string()),
            },
            Self::ToolTime => match Self::Time.parse(text, base, env)? {
                Value::Time(time) if time.as_millis() > u128::from(Limits::TOOL_MOST) => {
                    Err(TOOL_TIME_RANGE.to_owned())
                }
                time => Ok(time),
            },
            Self::Milliseconds => text
                .parse()
                .ok()
                .filter(|ms| (1..=Limits::TOOL_MOST).contains(ms))
                .map(|ms| Value::Time(Duration::from_millis(ms)))
                .ok_or_else(|| "1 to 2147483647 milliseconds are needed".to_owned()),
            Self::TimeRule | Self::CountRule if is_off(text) => Ok(Value::Off),
            Self::TimeRule => Self::Time.parse(text, base, env),
            Self::CountRule => Self::Count.parse(text, base, env),
            Self::Words => Ok(Value::Words(parts(text).map(str::to_owned).collect())),
            Self::ToolRules => {
                let rules = parts(text).map(|part| {
                    let (tool, rule) = part.split_once('=').ok_or("tools like bash=20m,web=false are needed")?;
                    let rule = Self::TimeRule.parse(rule, base, env)?.rule().unwrap_or(Rule::Off);
                    Ok((tool.trim().to_owned(), rule))
                });
                rules.collect::<Result<_, String>>().map(Value::Rules)
            }
            Self::Permissions => {
                let rules = parts(text).map(|part| {
                    // The pattern may hold the sign too.
                    let (pattern, word) =
                        part.rsplit_once('=').ok_or("tools like Write=deny,Bash(git *)=allow are needed")?;
                    permission::check_pattern(pattern)?;
                    let permission = Permission::of_word(word.trim())
                        .ok_or_else(|| format!("`{word}` is none of allow, ask and deny"))?;
                    Ok(ToolRule { pattern: pattern.to_owned(), permission })
                });
                rules.collect::<Result<_, String>>().map(Value::Permissions)
            }
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
            (Self::TimeRule, _) => read_attention::time_rule(reader, node).map(Value::of_time),
            (Self::CountRule, _) => read_attention::count_rule(reader, node).map(Value::of_count),
            (Self::ToolRules, _) => Some(Value::Rules(read_attention::tool_rules(reader, node))),
            (Self::Permissions, _) => Some(Value::Permissions(read_permission::tools(reader, node))),
            (Self::Words, _) => reader.list(node).map(|words| Value::Words(words.value)),
            (_, NodeKind::String(text)) => match self.parse(text, base, env) {
                Ok(value) => Some(value),
                Err(message) => {
                    reader.error(node.span.clone(), &node.path, message);
                    None
                }
            },
            (Self::Time | Self::ToolTime, _) => reader.duration(node).map(|d| Value::Time(d.value)),
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
            Self::Off => f.write_str("false"),
            Self::Words(words) => f.write_str(&words.join(",")),
            Self::Rules(rules) => {
                let rules: Vec<_> =
                    rules.iter().map(|(tool, rule)| format!("{tool}={}", Self::of_time(*rule))).collect();
                f.write_str(&rules.join(","))
            }
            Self::Permissions(rules) => {
                let rules: Vec<_> =
                    rules.iter().map(|rule| format!("{}={}", rule.pattern, rule.permission.word())).collect();
                f.write_str(&rules.join(","))
            }
        }
    }
}

/// Whether a word of a variable switches a rule off.
fn is_off(text: &str) -> bool {
    matches!(text, "0" | "false" | "no" | "off")
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// A size as people write it in a file, without rounding.
fn written_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}
