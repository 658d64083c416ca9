//! How a step is run: a word, or a table with more to say.

use super::draft::DraftRunner;
use super::keys;
use super::nearest::{nearest, one_of};
use super::read::env;
use super::reader::{Fields, Reader, Spanned};
use super::template::{Filling, takes_prompt};
use super::tree::{Kind, Node};
use super::{PiTransport, read_agent};
use crate::run::Family;

pub(super) fn runner(reader: &mut Reader<'_>, node: &Node) -> Option<Spanned<DraftRunner>> {
    if let Kind::String(word) = &node.kind {
        known_type(reader, node, word)?;
        if let Some(family) = Family::of_word(word) {
            read_agent::named(reader, node, family, false);
            return Some(Spanned::of(node, read_agent::plain(family)));
        }
        return match word.as_str() {
            "pi" => Some(Spanned::of(node, DraftRunner::pi())),
            "demo" => Some(Spanned::of(node, DraftRunner::Demo { script: None, env: Vec::new() })),
            _ => {
                reader
                    .error(node.span.clone(), &node.path, "a plain command needs to be named")
                    .suggest("write { type = \"external-cli\", command = \"...\", args = [...] }");
                None
            }
        };
    }
    let fields =
        reader.table(node, "a runner like \"pi\" or { type = \"external-cli\", command = \"make\" }", keys::RUNNER)?;
    let type_of = match fields.get("type") {
        Some(_) => reader.word(&fields, "type")?,
        // A command alone can only be meant as one.
        None if fields.has("command") => Spanned::of(node, "external-cli".to_owned()),
        None => {
            reader
                .error(node.span.clone(), &node.path, "the runner has no `type`")
                .suggest(format!("give `type` as {}", one_of(keys::RUNNERS.iter().copied())));
            return None;
        }
    };
    let type_node = fields.get("type").unwrap_or(node);
    known_type(reader, type_node, &type_of.value)?;
    let env = fields.get("env").map(|n| env(reader, n)).unwrap_or_default();
    let command = reader.word(&fields, "command").map(|s| s.value);
    let args = reader.strings(&fields, "args");
    if let Some(family) = Family::of_word(&type_of.value) {
        refuse(reader, &fields, family.word(), &["prompt", "script"]);
        read_agent::named(reader, node, family, fields.has("command"));
        let args = args.map(|s| s.value).unwrap_or_default();
        return Some(Spanned::of(node, read_agent::table(reader, &fields, family, command, args, env)));
    }
    let value = match type_of.value.as_str() {
        "pi" => {
            refuse(reader, &fields, "pi", &["prompt", "script", "permission", "resume"]);
            let transport = transport(reader, &fields);
            DraftRunner::Pi { transport, command, args: args.map(|s| s.value).unwrap_or_default(), env }
        }
        "demo" => {
            refuse(reader, &fields, "demo", &["transport", "command", "args", "prompt", "permission", "resume"]);
            let script = reader.word(&fields, "script");
            // What can be wrong with a demo is its script, so that is where it stands.
            let at = script.as_ref().map_or_else(|| Spanned::of(node, ()), |s| s.clone().map(|_| ()));
            let script = script.map(|s| s.value);
            return Some(at.map(|()| DraftRunner::Demo { script, env }));
        }
        _ => {
            refuse(reader, &fields, "external-cli", &["transport", "script", "permission", "resume"]);
            let args = prompt(reader, &fields, args);
            let Some(command) = command else {
                if !fields.has("command") {
                    reader
                        .error(node.span.clone(), &node.path, "the runner has no `command`")
                        .suggest("name the program: command = \"cargo\"");
                }
                return None;
            };
            DraftRunner::ExternalCli { command, args, env }
        }
    };
    Some(Spanned::of(node, value))
}

/// Notes a runner type that cannot be used.
fn known_type(reader: &mut Reader<'_>, node: &Node, word: &str) -> Option<()> {
    if keys::RUNNERS.contains(&word) {
        return Some(());
    }
    let suggestion = nearest(word, keys::RUNNERS.iter().copied()).map_or_else(
        || format!("use {}", one_of(keys::RUNNERS.iter().copied())),
        |near| format!("did you mean `{near}`?"),
    );
    reader.error(node.span.clone(), &node.path, format!("there is no runner `{word}`")).suggest(suggestion);
    None
}

/// Notes keys that belong to another type.
fn refuse(reader: &mut Reader<'_>, fields: &Fields<'_>, type_of: &str, keys: &[&str]) {
    for entry in keys.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("`{}` does not belong to the runner `{type_of}`", entry.key);
        reader.error(entry.key_span.clone(), &entry.node.path, message).suggest("leave it out");
    }
}

pub(super) fn transport(reader: &mut Reader<'_>, fields: &Fields<'_>) -> PiTransport {
    match reader.word(fields, "transport") {
        None => PiTransport::Rpc,
        Some(word) => match word.value.as_str() {
            "rpc" => PiTransport::Rpc,
            "json" | "oneshot" => PiTransport::Json,
            other => {
                let near = nearest(other, ["rpc", "json", "oneshot"]);
                let suggestion = near.map_or_else(
                    || "use `rpc`, which can be steered, or `json`, which cannot".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                reader.error_at(&word, format!("there is no transport `{other}`")).suggest(suggestion);
                PiTransport::Rpc
            }
        },
    }
}

/// The arguments of a plain command; `prompt` says whether the prompt stands among them.
fn prompt(reader: &mut Reader<'_>, fields: &Fields<'_>, args: Option<Spanned<Vec<String>>>) -> Vec<String> {
    let way = reader.word(fields, "prompt");
    let at = args.as_ref().map(|a| Spanned { value: (), span: a.span.clone(), path: a.path.clone() });
    let mut args = args.map(|a| a.value).unwrap_or_default();
    let in_args = args.iter().any(|a| takes_prompt(a, Filling::Template));
    match way.as_ref().map(|w| w.value.as_str()) {
        Some("stdin") if in_args => {
            if let Some(at) = at {
                reader
                    .error_at(&at, "`{task}` stands in the arguments, but the prompt is to go to standard input")
                    .suggest("leave one of them out");
            }
        }
        Some("arg") if !in_args => args.push("{task}".to_owned()),
        None | Some("stdin" | "arg") => {}
        Some(other) => {
            if let Some(way) = &way {
                reader
                    .error_at(way, format!("`{other}` is no way for a prompt to reach a command"))
                    .suggest("use `stdin` or `arg`");
            }
        }
    }
    args
}
