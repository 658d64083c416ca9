//! The keys of the deck as the configuration has them: from its words to a keymap, and what is wrong with them.

use crate::config::{Config, Origin, Setting, Value};
use crate::deck::keymap::{Binding, Keymap};
use crate::plan::{Position, Problem, Severity};

/// The keymap of the configuration, and what is wrong with it, which leaves the built-in keys of an action in force.
#[must_use]
pub fn keymap(config: &Config) -> (Keymap, Vec<Problem>) {
    let mut settings: Vec<(&String, &Setting)> = config.bindings().iter().collect();
    // In the order of the file: of two that want a key, the later one is told.
    settings.sort_by(|a, b| a.1.origin.cmp(&b.1.origin));
    let bindings: Vec<Binding> = settings.iter().map(|(action, setting)| binding(action, setting)).collect();
    let (map, refused) = Keymap::with(&bindings);
    let problems = refused.into_iter().filter_map(|refused| {
        let (action, setting) = settings.get(refused.at)?;
        let mut problem = Problem::of_file("", refused.message);
        if let Origin::User(path, line) | Origin::Project(path, line) = &setting.origin {
            problem.file = path.display().to_string();
            problem.position = Some(Position { line: *line, column: 1 });
        }
        problem.severity = Severity::Warning;
        problem.key = format!("keys.{action}");
        problem.suggestion = refused.suggestion;
        Some(problem)
    });
    (map, problems.collect())
}

fn binding(action: &str, setting: &Setting) -> Binding {
    let keys = match &setting.value {
        Value::Words(words) => words.clone(),
        _ => Vec::new(),
    };
    Binding { action: action.to_owned(), keys }
}
