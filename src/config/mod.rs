//! What the user set: the layers of configuration, where each value comes from, and which projects are trusted.
//!
//! A later layer wins: built in, the user's file, the project's file, the environment, flags. A value that cannot be
//! used is a problem with its place and leaves the value below it in force. Never touches runs.

mod environment;
mod keys;
mod layers;
mod trust;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use environment::Env;
pub use keys::{KEYS, Key, Kind, Value};
pub use trust::{Trust, TrustError, TrustedProject};

use crate::plan::{Attention, Defaults, Permissions, Problem};
use crate::run::{NamedRunner, Permission};

/// Where a value comes from. The order is the precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody set it.
    BuiltIn,
    /// A variable of another program, which every other layer goes before.
    Fallback(String),
    /// The user's file, and the line.
    User(PathBuf, usize),
    /// The project's file, and the line.
    Project(PathBuf, usize),
    /// A variable.
    Environment(String),
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// The configuration of one call.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Every value of every layer, the one in force last.
    settings: BTreeMap<&'static str, Vec<Setting>>,
    /// Variables for the children.
    variables: BTreeMap<String, Setting>,
    /// Keys of the deck, by the names of actions.
    bindings: BTreeMap<String, Setting>,
    /// The user's file, whether it exists or not.
    user_file: Option<PathBuf>,
    /// The project's file.
    project_file: Option<PathBuf>,
    /// Whether the project's file may name programs; `None` when it does not want to.
    project_trusted: Option<bool>,
}

impl Config {
    /// Reads every layer. Never fails: what is wrong is in the problems.
    #[must_use]
    pub fn load(env: &Env) -> (Self, Vec<Problem>) {
        layers::load(env)
    }

    fn set(&mut self, key: &Key, setting: Setting) {
        let settings = self.settings.entry(key.name).or_default();
        settings.push(setting);
        settings.sort_by(|a, b| a.origin.cmp(&b.origin));
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.settings.get(key)?.last().map(|s| &s.value)
    }

    /// Every value that somebody set for a key, the one in force last.
    #[must_use]
    pub fn settings(&self, key: &str) -> &[Setting] {
        self.settings.get(key).map_or(&[], Vec::as_slice)
    }

    /// The variables for children with where they come from.
    #[must_use]
    pub const fn variables(&self) -> &BTreeMap<String, Setting> {
        &self.variables
    }

    /// The keys of the deck, by the names of actions as they were written, with where they come from. The values are
    /// [`Value::Words`]; whether there are such actions and keys the deck knows.
    #[must_use]
    pub const fn bindings(&self) -> &BTreeMap<String, Setting> {
        &self.bindings
    }

    /// The user's file, whether it exists or not; `None` without a home.
    #[must_use]
    pub fn user_file(&self) -> Option<&Path> {
        self.user_file.as_deref()
    }

    /// The project's file, when there is one.
    #[must_use]
    pub fn project_file(&self) -> Option<&Path> {
        self.project_file.as_deref()
    }

    /// Whether the project's file is trusted; `None` when it asks for nothing that needs it.
    #[must_use]
    pub const fn project_trusted(&self) -> Option<bool> {
        self.project_trusted
    }

    /// The run root, where one is set.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        match self.value("root") {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// Other roots that are listed and attached to.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        match self.value("roots") {
            Some(Value::Paths(paths)) => paths,
            _ => &[],
        }
    }

    /// The program for steps of pi that name none.
    #[must_use]
    pub fn pi_program(&self) -> Option<&str> {
        self.text("executables.pi")
    }

    /// What counts where a plan says nothing.
    #[must_use]
    pub fn defaults(&self) -> Defaults {
        let values = self.variables.iter();
        let variables = values.filter_map(|(name, setting)| match &setting.value {
            Value::Text(value) => Some((name.clone(), value.clone())),
            _ => None,
        });
        Defaults {
            agent: self.text("defaults.agent").map(str::to_owned),
            model: self.text("defaults.model").map(str::to_owned),
            runner: self.text("defaults.runner").and_then(NamedRunner::of_word),
            concurrency: match self.value("defaults.concurrency") {
                Some(Value::Count(count)) => usize::try_from(*count).ok(),
                _ => None,
            },
            time: self.time("defaults.time"),
            tool_timeout: self.time("defaults.tool_timeout"),
            tool_exempt: self.words("defaults.tool_timeout_exempt"),
            permission: self.permission(),
            question_timeout: self.time("defaults.question_timeout"),
            attention: self.attention(),
            env: variables.collect(),
        }
    }

    /// How `run --no-tui` prints: `text` or `jsonl`.
    #[must_use]
    pub fn output(&self) -> &str {
        self.text("defaults.output").unwrap_or("text")
    }

    /// The most bytes that are captured of a step.
    #[must_use]
    pub fn capture_step(&self) -> u64 {
        self.size("capture.step").unwrap_or(2 << 30)
    }

    /// The most bytes that are captured of a run.
    #[must_use]
    pub fn capture_run(&self) -> u64 {
        self.size("capture.run").unwrap_or(8 << 30)
    }

    /// The theme of the deck: `auto`, `dark`, `light`, `high-contrast`, `16` or `mono`.
    #[must_use]
    pub fn theme(&self) -> &str {
        self.text("ui.theme").unwrap_or("auto")
    }

    /// Whether the deck draws with ASCII characters only; `None` leaves it to the locale.
    #[must_use]
    pub fn ascii(&self) -> Option<bool> {
        self.truth("ui.ascii")
    }

    /// Whether nothing is to be written into any run, and none started.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.truth("read_only").unwrap_or(false)
    }

    /// Whether the deck takes the mouse.
    #[must_use]
    pub fn mouse(&self) -> bool {
        self.truth("ui.mouse").unwrap_or(false)
    }

    /// How the deck tells a person who looks elsewhere: `auto`, `off`, `bell`, `osc9`, `osc777` or `osc99`.
    #[must_use]
    pub fn notify(&self) -> &str {
        self.text("ui.notify").unwrap_or("auto")
    }

    /// The program that the deck tells what happens, and its arguments; empty for none.
    #[must_use]
    pub fn notify_hook(&self) -> Vec<String> {
        self.words("ui.notify_hook").unwrap_or_default()
    }

    fn permission(&self) -> Permissions {
        let word = self.text("defaults.permission").and_then(Permission::of_word);
        let tools = match self.value("defaults.permission_tools") {
            Some(Value::Permissions(rules)) => rules.clone(),
            _ => Vec::new(),
        };
        Permissions { otherwise: word.unwrap_or_default(), tools }
    }

    fn attention(&self) -> Attention {
        let rule = |name: &str| self.value(&format!("defaults.attention.{name}"))?.rule();
        Attention {
            enabled: self.truth("defaults.attention.enabled"),
            idle: rule("idle"),
            tool_open: rule("tool_open"),
            tools: match self.value("defaults.attention.tools") {
                Some(Value::Rules(rules)) => rules.clone(),
                _ => BTreeMap::new(),
            },
            exempt: self.words("defaults.attention.exempt"),
            long_running: rule("long_running"),
            long_running_turns: rule("long_running_turns"),
            long_running_tokens: rule("long_running_tokens"),
            tool_failures: rule("tool_failures"),
            no_first_event: rule("no_first_event"),
            repeated_calls: rule("repeated_calls"),
        }
    }

    fn words(&self, key: &str) -> Option<Vec<String>> {
        match self.value(key) {
            Some(Value::Words(words)) => Some(words.clone()),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn time(&self, key: &str) -> Option<Duration> {
        match self.value(key) {
            Some(Value::Time(span)) => Some(*span),
            _ => None,
        }
    }

    fn size(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Some(Value::Size(bytes)) => Some(*bytes),
            _ => None,
        }
    }

    fn truth(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Bool(truth)) => Some(*truth),
            _ => None,
        }
    }
}
