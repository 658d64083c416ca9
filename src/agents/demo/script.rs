//! Scripts of the demo agent: scenes, each a list of turns. It owns the format and its defaults.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The scenes that come with the program.
pub const BUILT_IN: &str = include_str!("../../../assets/demo.toml");

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not TOML of the right shape.
    #[error("the script cannot be read: {0}")]
    Malformed(#[from] toml_edit::de::Error),
    /// The scene does not exist.
    #[error("there is no scene `{name}`; use one of {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "))]
    NoScene {
        /// What was asked for.
        name: String,
        /// The scenes there are.
        known: Vec<String>,
    },
    /// Its file cannot be read.
    #[error("the script {0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// The scene has nothing to say.
    #[error("the scene `{0}` has no turns; give it at least one [[scene.{0}.turn]]")]
    Empty(String),
}

/// Scenes by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The scenes.
    pub scene: BTreeMap<String, Scene>,
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    /// When it is not TOML of the right shape, or a scene is empty.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = toml_edit::de::from_str(text)?;
        match script.scene.iter().find(|(_, scene)| scene.turn.is_empty()) {
            Some((name, _)) => Err(ScriptError::Empty(name.clone())),
            None => Ok(script),
        }
    }

    /// Takes one scene out; an empty name means the only one, or the one called `default`.
    ///
    /// # Errors
    /// When there is no such scene.
    pub fn into_scene(mut self, name: &str) -> Result<Scene, ScriptError> {
        let only = self.scene.keys().next().filter(|_| self.scene.len() == 1).cloned();
        let name = if name.is_empty() { only.unwrap_or_else(|| "default".to_owned()) } else { name.to_owned() };
        let found = self.scene.remove(&name);
        found.ok_or_else(|| ScriptError::NoScene { name, known: self.scene.into_keys().collect() })
    }
}

/// What one agent does with one task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// The model it pretends to be.
    #[serde(default = "model")]
    pub model: String,
    /// Milliseconds between two words.
    #[serde(default = "pace")]
    pub pace_ms: u64,
    /// Its turns; the last one should have no tools.
    #[serde(default)]
    pub turn: Vec<Turn>,
}

/// One model call and its tools. In texts, `{task}` stands for the first words of the task and `{words}` for how many
/// words it has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// A provider error before this turn.
    pub retry: Option<Retry>,
    /// What it thinks.
    pub think: String,
    /// What it says.
    pub say: String,
    /// Lines on standard error.
    pub warn: Vec<String>,
    /// Lines on standard output outside the protocol.
    pub print: Vec<String>,
    /// A progress bar on standard output.
    pub progress: Option<Progress>,
    /// Tools that run side by side.
    pub tool: Vec<Tool>,
    /// Tokens and cost; derived from the texts when it is missing.
    pub usage: Option<UsageOf>,
}

/// A provider that fails at first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// What the provider says.
    pub error: String,
    /// How often it fails.
    #[serde(default = "once")]
    pub times: u32,
    /// Milliseconds before the next attempt.
    pub wait_ms: u64,
}

/// A progress bar that is drawn over itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// What stands before it.
    pub label: String,
    /// How many times it moves.
    pub steps: u32,
    /// Milliseconds from the beginning to the end.
    pub time_ms: u64,
}

/// A tool call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub args: BTreeMap<String, serde_json::Value>,
    /// Milliseconds that it takes.
    pub time_ms: u64,
    /// Its output; lines come one after the other.
    #[serde(default)]
    pub output: String,
    /// Whether it fails.
    #[serde(default)]
    pub fail: bool,
}

/// Tokens and cost of a turn.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageOf {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// US dollars.
    pub cost: f64,
}

fn model() -> String {
    "demo-1".to_owned()
}

const fn pace() -> u64 {
    45
}

const fn once() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_script_is_good() {
        let script = Script::parse(BUILT_IN).expect("a script");
        for (name, scene) in &script.scene {
            let last = scene.turn.last().expect("a turn");
            assert!(last.tool.is_empty() && !last.say.trim().is_empty(), "{name} ends with an answer");
        }
        assert!(script.into_scene("default").is_ok());
    }

    #[test]
    fn mistakes_are_named() {
        let table = [
            ("scene = 3", "cannot be read"),
            ("[scene.a]\nspeed = 3", "unknown field `speed`"),
            ("[scene.a]\npace_ms = 3", "the scene `a` has no turns"),
            ("[[scene.a.turn]]\ntool = [{ name = \"x\" }]", "time_ms"),
        ];
        for (text, expected) in table {
            let error = Script::parse(text).expect_err("a mistake").to_string();
            assert!(error.contains(expected), "{error}");
        }
        let two = "[[scene.a.turn]]\nsay = \"x\"\n[[scene.b.turn]]\nsay = \"y\"";
        let error = Script::parse(two).expect("good").into_scene("c").expect_err("no such scene").to_string();
        assert_eq!(error, "there is no scene `c`; use one of `a`, `b`");
        let one = "[[scene.a.turn]]\nsay = \"x\"";
        assert!(Script::parse(one).expect("good").into_scene("").is_ok());
    }
}
