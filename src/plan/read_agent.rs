//! An agent of another family in a plan: what its table may say.

use super::AgentRunner;
use super::draft::DraftRunner;
use super::nearest::{nearest, one_of};
use super::read_permission;
use super::reader::{Fields, Reader};
use super::tree::Node;
use crate::run::{AgentKind, Family, Permission, Transport};

/// An agent of which only the word stands there.
pub(super) fn plain(family: Family) -> DraftRunner {
    let kind = AgentKind { family, transport: family.transport(), permission: Permission::default() };
    let runner =
        AgentRunner { kind, command: None, args: Vec::new(), rules: Vec::new(), resume: None, fixed_transport: false };
    DraftRunner::Agent { runner, permitted: false, env: Vec::new() }
}

/// Notes an agent whose program nobody named.
pub(super) fn named(reader: &mut Reader<'_>, node: &Node, family: Family, command: bool) {
    if family.needs_command() && !command {
        reader
            .error(node.span.clone(), &node.path, format!("the runner `{}` has no `command`", family.word()))
            .suggest("name the program: runner = { type = \"acp\", command = \"my-agent\", args = [\"--acp\"] }");
    }
}

/// An agent of which a table says more.
pub(super) fn table(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    family: Family,
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
) -> DraftRunner {
    let fixed_transport = fields.has("transport");
    let transport = transport(reader, fields, family);
    let permitted = fields.has("permission");
    let (permission, rules) = read_permission::read(reader, fields).unwrap_or_default().settled();
    let resume = reader.word(fields, "resume").map(|session| session.value);
    let kind = AgentKind { family, transport, permission };
    DraftRunner::Agent { runner: AgentRunner { kind, command, args, rules, resume, fixed_transport }, permitted, env }
}

fn transport(reader: &mut Reader<'_>, fields: &Fields<'_>, family: Family) -> Transport {
    let Some(word) = reader.word(fields, "transport") else { return family.transport() };
    let has: Vec<Transport> =
        [Transport::Steerable, Transport::OneShot].into_iter().filter(|transport| family.has(*transport)).collect();
    let known = Transport::of_word(&word.value).filter(|transport| has.contains(transport));
    known.unwrap_or_else(|| {
        let words = has.iter().map(|transport| transport.word());
        let advice = match nearest(&word.value, words.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use {}", one_of(words)),
        };
        let message = format!("{} has no transport `{}`", family.name(), word.value);
        reader.error_at(&word, message).suggest(advice);
        family.transport()
    })
}
