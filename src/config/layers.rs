//! Reading the files and variables into one configuration.

use std::path::{Path, PathBuf};

use super::keys::{FOREIGN_TOOL_TIMEOUT, KEYS, Kind};
use super::{Config, Env, Key, Origin, Setting, Trust, Value};
use crate::plan::agents::project_levels;
use crate::plan::reader::{Fields, Reader};
use crate::plan::{Problem, Source, tree};

/// Which of the two files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    User,
    Project,
}

pub(super) fn load(env: &Env) -> (Config, Vec<Problem>) {
    let mut config = Config { user_file: env.config_dir().map(|d| d.join("config.toml")), ..Config::default() };
    let mut problems = Vec::new();
    if let Some(path) = config.user_file.clone().filter(|p| p.exists()) {
        file(&mut config, &mut problems, env, &path, Layer::User);
    }
    config.project_file = project_file(&env.current_dir).filter(|p| Some(p) != config.user_file.as_ref());
    if let Some(path) = config.project_file.clone() {
        file(&mut config, &mut problems, env, &path, Layer::Project);
    }
    variables(&mut config, &mut problems, env);
    (config, problems)
}

/// The nearest project file, upward to the root of the repository.
fn project_file(cwd: &Path) -> Option<PathBuf> {
    project_levels(cwd).into_iter().map(|dir| dir.join(".subdeck/config.toml")).find(|path| path.exists())
}

fn file(config: &mut Config, problems: &mut Vec<Problem>, env: &Env, path: &Path, layer: Layer) {
    // A pipe or a device in the place of a project's file would never end.
    if !path.is_file() {
        problems.push(Problem::of_file(path.display().to_string(), "not a regular file"));
        return;
    }
    let source = match Source::read(path) {
        Ok(source) => source,
        Err(more) => return problems.extend(more.0),
    };
    let trusted = layer == Layer::User || Trust::open(env).is_trusted(path, source.text().as_bytes());
    let root = match tree::parse_toml(&source) {
        Ok(root) => root,
        Err(more) => return problems.extend(more.0),
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    // What a project's file names is meant from the project, not from the folder of the file.
    let base = if layer == Layer::Project { folder.parent().unwrap_or(folder) } else { folder };
    let mut reader = Reader::new(&source).lenient();
    let mut file = File { config, env, path, base, layer, trusted, refused: Vec::new() };
    if let Some(top) =
        reader.table(&root, "a table of configuration keys", &[names_in(""), vec!["env", "keys"]].concat())
    {
        file.tables(&mut reader, &top, "");
        file.variables(&mut reader, &top);
        file.bindings(&mut reader, &top);
    }
    file.finish(&mut reader);
    problems.extend(reader.finish());
}

/// What can stand in a table: keys, and tables in it. Nothing for what is no table.
fn names_in(table: &str) -> Vec<&'static str> {
    let inside = |key: &Key| match table {
        "" => Some(key.name),
        _ => key.name.strip_prefix(table)?.strip_prefix('.'),
    };
    let mut names: Vec<_> = KEYS.iter().filter_map(inside).map(|n| n.split('.').next().unwrap_or(n)).collect();
    names.dedup();
    names
}

/// One file while it is read.
struct File<'f> {
    config: &'f mut Config,
    env: &'f Env,
    path: &'f Path,
    base: &'f Path,
    layer: Layer,
    trusted: bool,
    /// What needs trust that is not there: where, and the key.
    refused: Vec<(std::ops::Range<usize>, String)>,
}

impl File<'_> {
    fn origin(&self, reader: &Reader<'_>, at: usize) -> Origin {
        let line = reader.source().position(at).map_or(1, |p| p.line);
        match self.layer {
            Layer::User => Origin::User(self.path.to_owned(), line),
            Layer::Project => Origin::Project(self.path.to_owned(), line),
        }
    }

    /// A table and those in it.
    fn tables(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>, table: &str) {
        self.keys(reader, fields, table);
        for name in names_in(table) {
            let inner = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
            let names = names_in(&inner);
            let Some(node) = fields.get(name).filter(|_| !names.is_empty()) else { continue };
            if let Some(fields) = reader.table(node, "a table of configuration keys", &names) {
                self.tables(reader, &fields, &inner);
            }
        }
    }

    fn keys(&mut self, reader: &mut Reader<'_>, fields: &Fields<'_>, table: &str) {
        for key in KEYS.iter().filter(|key| key.split().0 == table) {
            let Some(entry) = fields.entry(key.split().1) else { continue };
            let Some(value) = key.kind.read(reader, &entry.node, self.base, self.env) else { continue };
            if key.needs_trust && self.layer == Layer::Project && !self.trusted {
                self.refused.push((entry.key_span.clone(), key.name.to_owned()));
                continue;
            }
            let origin = self.origin(reader, entry.key_span.start);
            self.config.set(key, Setting { value, origin });
            if key.needs_trust && self.layer == Layer::Project {
                self.config.project_trusted = Some(true);
            }
        }
    }

    fn variables(&mut self, reader: &mut Reader<'_>, top: &Fields<'_>) {
        let Some(entry) = top.entry("env") else { return };
        for (name, value) in crate::plan::read::env(reader, &entry.node) {
            let place = entry.node.entry(&name).map_or(&entry.key_span, |e| &e.key_span);
            if self.layer == Layer::Project && !self.trusted {
                self.refused.push((place.clone(), format!("env.{name}")));
                continue;
            }
            let origin = self.origin(reader, place.start);
            self.config.variables.insert(name, Setting { value: Value::Text(value), origin });
            if self.layer == Layer::Project {
                self.config.project_trusted = Some(true);
            }
        }
    }

    /// Keys of the deck: an action and its key, or a list of them. Which actions there are the deck knows.
    fn bindings(&mut self, reader: &mut Reader<'_>, top: &Fields<'_>) {
        let Some(entry) = top.entry("keys") else { return };
        let Some(fields) = reader.open(&entry.node, "a table like { steer = \"s\" }") else { return };
        for binding in fields.entries() {
            let keys = match &binding.node.kind {
                tree::Kind::String(key) => vec![key.clone()],
                _ => match reader.list(&binding.node) {
                    Some(keys) => keys.value,
                    None => continue,
                },
            };
            if self.layer == Layer::Project && !self.trusted {
                self.refused.push((binding.key_span.clone(), format!("keys.{}", binding.key)));
                continue;
            }
            if self.layer == Layer::Project {
                self.config.project_trusted = Some(true);
            }
            let origin = self.origin(reader, binding.key_span.start);
            self.config.bindings.insert(binding.key.clone(), Setting { value: Value::Words(keys), origin });
        }
    }

    fn finish(self, reader: &mut Reader<'_>) {
        if self.refused.is_empty() {
            return;
        }
        self.config.project_trusted = Some(false);
        let changed = Trust::open(self.env).knows(self.path);
        let why = if changed { "the file changed since it was trusted" } else { "the project is not trusted" };
        for (span, key) in self.refused {
            reader
                .warn(span, &key, format!("`{key}` is not used because {why}"))
                .suggest("read the file, then say `subdeck config trust`");
        }
    }
}

fn variables(config: &mut Config, problems: &mut Vec<Problem>, env: &Env) {
    for key in KEYS {
        if let Some(variable) = key.variables.iter().find(|v| env.get(v).is_some()) {
            variable_of(config, problems, env, key, key.kind, variable, Origin::Environment((*variable).to_owned()));
        }
    }
    if let Some(key) = Key::named("defaults.tool_timeout") {
        let origin = Origin::Fallback(FOREIGN_TOOL_TIMEOUT.to_owned());
        variable_of(config, problems, env, key, Kind::Milliseconds, FOREIGN_TOOL_TIMEOUT, origin);
    }
}

fn variable_of(
    config: &mut Config,
    problems: &mut Vec<Problem>,
    env: &Env,
    key: &Key,
    kind: Kind,
    variable: &str,
    origin: Origin,
) {
    let Some(text) = env.get(variable) else { return };
    match kind.parse(text, &env.current_dir, env) {
        Ok(value) => config.set(key, Setting { value, origin }),
        Err(message) => {
            let mut problem = Problem::of_file(format!("environment {variable}"), format!("`{text}`: {message}"));
            key.name.clone_into(&mut problem.key);
            problems.push(problem);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
