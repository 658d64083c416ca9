//! What agents may do without being asked: a word for everything, or a table with more precise rules for tools.

use super::keys;
use super::nearest::{nearest, one_of};
use super::reader::{Fields, Reader, Spanned};
use super::tree::{Kind, Node};
use crate::run::{Permission, ToolRule, permission};

/// What somebody says of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What no rule speaks of.
    pub otherwise: Permission,
    /// Tools, each with what it may do.
    pub tools: Vec<ToolRule>,
}

impl Permissions {
    /// What the agent is told, and what the runner decides by. An agent whose questions are decided one by one has to ask
    /// all of them, so with rules it is never told that everything is allowed.
    #[must_use]
    pub fn settled(self) -> (Permission, Vec<ToolRule>) {
        let Self { otherwise, mut tools } = self;
        if tools.is_empty() {
            return (otherwise, tools);
        }
        if otherwise != Permission::Ask {
            tools.push(ToolRule { pattern: "*".to_owned(), permission: otherwise });
        }
        (Permission::Ask, tools)
    }
}

/// The key `permission` of a runner; `None` where it says nothing that could be used.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Permissions> {
    let node = fields.get("permission")?;
    if matches!(node.kind, Kind::String(_)) {
        let said = reader.word(fields, "permission")?;
        let otherwise = word(reader, &said)?;
        return Some(Permissions { otherwise, tools: Vec::new() });
    }
    let what = "a word like \"ask\" or { default = \"ask\", tools = { \"Bash(git *)\" = \"allow\" } }";
    let inner = reader.table(node, what, keys::PERMISSION)?;
    let otherwise = match inner.get("default") {
        Some(_) => {
            let said = reader.word(&inner, "default")?;
            word(reader, &said)?
        }
        None => Permission::default(),
    };
    let tools = inner.get("tools").map(|node| tools(reader, node)).unwrap_or_default();
    Some(Permissions { otherwise, tools })
}

/// A table of tools, each with what it may do.
pub(crate) fn tools(reader: &mut Reader<'_>, node: &Node) -> Vec<ToolRule> {
    let Some(fields) = reader.open(node, "a table of tools like { Write = \"deny\", \"Bash(git *)\" = \"allow\" }")
    else {
        return Vec::new();
    };
    let mut rules = Vec::new();
    for entry in fields.entries() {
        if let Err(why) = permission::check_pattern(&entry.key) {
            reader.error(entry.key_span.clone(), &entry.node.path, why);
            continue;
        }
        let said = reader.word(&fields, &entry.key).and_then(|said| word(reader, &said));
        rules.extend(said.map(|permission| ToolRule { pattern: entry.key.clone(), permission }));
    }
    rules
}

fn word(reader: &mut Reader<'_>, said: &Spanned<String>) -> Option<Permission> {
    let known = Permission::of_word(&said.value);
    if known.is_none() {
        let words = Permission::ALL.map(Permission::word);
        let advice = match nearest(&said.value, words) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use {}", one_of(words)),
        };
        reader.error_at(said, format!("there is no permission `{}`", said.value)).suggest(advice);
    }
    known
}
