//! The attention table of a plan or a step.

use std::collections::BTreeMap;

use super::reader::{Fields, Reader};
use super::tree::{Kind, Node};
use super::{Attention, Rule, keys};

pub(super) fn attention(reader: &mut Reader<'_>, node: &Node) -> Attention {
    let Some(fields) = reader.table(node, "an attention table like { idle = \"2m\" }", keys::ATTENTION) else {
        return Attention::default();
    };
    let mut time = |key: &str| fields.get(key).and_then(|n| time_rule(reader, n));
    let (idle, tool_open) = (time("idle"), time("tool_open"));
    let (long_running, no_first_event) = (time("long_running"), time("no_first_event"));
    let mut count = |key: &str| fields.get(key).and_then(|n| count_rule(reader, n));
    let (long_running_turns, long_running_tokens) = (count("long_running_turns"), count("long_running_tokens"));
    let (tool_failures, repeated_calls) = (count("tool_failures"), count("repeated_calls"));
    Attention {
        idle,
        tool_open,
        long_running,
        long_running_turns,
        long_running_tokens,
        tool_failures,
        no_first_event,
        repeated_calls,
        enabled: reader.bool(&fields, "enabled"),
        tools: fields.get("tools").map(|n| tool_rules(reader, n)).unwrap_or_default(),
        exempt: tool_names(reader, &fields, "exempt"),
    }
}

/// A time, or `false`.
pub(crate) fn time_rule(reader: &mut Reader<'_>, node: &Node) -> Option<Rule> {
    if let Some(off) = switch(reader, node, "a time like \"2m\"") {
        return off;
    }
    if let Kind::String(text) = &node.kind
        && crate::text::parse_duration(text).is_ok_and(|span| span.as_millis() == 0)
    {
        reader
            .error(node.span.clone(), &node.path, "a time of zero would need a look always")
            .suggest("write false to switch the rule off, or leave the key out for the built-in threshold");
        return None;
    }
    let time = reader.duration(node)?;
    Some(Rule::At(u64::try_from(time.value.as_millis()).unwrap_or(u64::MAX)))
}

/// A whole number, or `false`.
pub(crate) fn count_rule(reader: &mut Reader<'_>, node: &Node) -> Option<Rule> {
    if let Some(off) = switch(reader, node, "a whole number") {
        return off;
    }
    reader.count(node, 1).map(|n| Rule::At(n.value))
}

/// `false` switches a rule off; `true` says nothing that could be done.
fn switch(reader: &mut Reader<'_>, node: &Node, wanted: &str) -> Option<Option<Rule>> {
    match node.kind {
        Kind::Bool(false) => Some(Some(Rule::Off)),
        Kind::Bool(true) => {
            reader
                .error(node.span.clone(), &node.path, format!("{wanted} or false is needed here, not true"))
                .suggest("leave the key out for the built-in threshold");
            Some(None)
        }
        _ => None,
    }
}

/// A table of tools, each with a time or `false`.
pub(crate) fn tool_rules(reader: &mut Reader<'_>, node: &Node) -> BTreeMap<String, Rule> {
    let Some(fields) = reader.open(node, "a table of tools like { bash = \"20m\", web = false }") else {
        return BTreeMap::new();
    };
    let entries = fields.entries().iter();
    entries.filter_map(|e| time_rule(reader, &e.node).map(|rule| (e.key.clone(), rule))).collect()
}

/// A list of tools; none of them without a name.
pub(super) fn tool_names(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Vec<String>> {
    let names = reader.strings(fields, key)?;
    if names.value.iter().any(|name| name.trim().is_empty()) {
        reader.error_at(&names, "a tool in the list has no name").suggest("take the empty text out");
        return None;
    }
    Some(names.value)
}
