//! The budget table of a run or a step.

use super::read_attention::tool_names;
use super::reader::{Reader, Spanned};
use super::tree::{Kind, Node};
use super::{Budget, Limit, keys};
use crate::run::{CostUsd, ToolBlock, TurnLimit};

pub(super) fn budget(reader: &mut Reader<'_>, node: &Node) -> Budget {
    let Some(fields) = reader.table(node, "a budget table like { time = \"30m\" }", keys::BUDGET) else {
        return Budget::default();
    };
    let time = fields.get("time").and_then(|n| reader.duration(n)).map(|s| s.value);
    let idle = fields.get("idle").and_then(|n| reader.duration(n));
    if let (Some(time), Some(idle)) = (time, &idle)
        && idle.value > time
    {
        reader
            .warn_at(idle, "the limit of silence is longer than the whole time and is never reached")
            .suggest("the limit of time ends it first");
    }
    Budget {
        time,
        idle: idle.map(|s| s.value),
        turns: fields.get("turns").and_then(|n| turns(reader, n)),
        tool_calls: fields.get("tool_calls").and_then(|n| limit(reader, n, keys::TOOL_CALLS, count)),
        tool_block: fields.get("tool_calls").and_then(|n| block(reader, n)),
        tokens: fields.get("tokens").and_then(|n| limit(reader, n, keys::LIMIT, count)),
        cost: fields.get("cost_usd").and_then(|n| limit(reader, n, keys::LIMIT, money)),
    }
}

/// Which tools the hard limit of calls blocks.
fn block(reader: &mut Reader<'_>, node: &Node) -> Option<ToolBlock> {
    let (Kind::Table(entries), written) = (&node.kind, node.get("block")?) else { return None };
    if entries.iter().all(|e| e.key != "hard") {
        // Of a table with nothing else in it the limit itself is missed already.
        if entries.len() > 1 {
            reader
                .error(written.span.clone(), &written.path, "tools are blocked at the hard limit, and there is none")
                .suggest("add `hard`, or leave `block` out");
        }
        return None;
    }
    if let Kind::String(word) = &written.kind {
        if word == "*" {
            return Some(ToolBlock::All);
        }
        reader
            .error(written.span.clone(), &written.path, "tools to block are \"*\" for all, or a list of names")
            .suggest(format!("write [{word:?}]"));
        return None;
    }
    let fields = reader.open(node, "a limit")?;
    let names = tool_names(reader, &fields, "block")?;
    if names.is_empty() {
        reader
            .error(written.span.clone(), &written.path, "a hard limit that blocks no tool does nothing")
            .suggest("write \"*\" for all tools, or leave `hard` out");
        return None;
    }
    Some(ToolBlock::Names(names))
}

fn count(reader: &mut Reader<'_>, node: &Node) -> Option<Spanned<u64>> {
    reader.count(node, 1)
}

fn money(reader: &mut Reader<'_>, node: &Node) -> Option<Spanned<CostUsd>> {
    let amount = match node.kind {
        Kind::Int(number) => number as f64,
        Kind::Float(number) => number,
        _ => {
            reader.wrong_type(node, "an amount of US dollars like 2.50");
            return None;
        }
    };
    if amount > 0.0 && amount.is_finite() {
        return Some(Spanned::of(node, CostUsd(amount)));
    }
    reader.error(node.span.clone(), &node.path, "an amount above zero is needed here");
    None
}

/// A limit: a bare value is the hard one.
fn limit<T: Copy + PartialOrd>(
    reader: &mut Reader<'_>,
    node: &Node,
    known: &[&str],
    value: fn(&mut Reader<'_>, &Node) -> Option<Spanned<T>>,
) -> Option<Limit<T>> {
    if matches!(node.kind, Kind::Int(_) | Kind::Float(_)) {
        return value(reader, node).map(|hard| Limit { soft: None, hard: Some(hard.value) });
    }
    let fields = reader.table(node, "a limit like { soft = 20, hard = 30 }", known)?;
    if fields.entries().iter().all(|e| e.key == "block") {
        reader.error(node.span.clone(), &node.path, "the limit has neither `soft` nor `hard`");
    }
    let soft = fields.get("soft").and_then(|n| value(reader, n));
    let hard = fields.get("hard").and_then(|n| value(reader, n));
    if let (Some(soft), Some(hard)) = (&soft, &hard)
        && soft.value > hard.value
    {
        reader
            .error_at(soft, "the soft limit lies above the hard one and could never be reached")
            .suggest("make `soft` smaller than `hard`");
        return None;
    }
    Some(Limit { soft: soft.map(|s| s.value), hard: hard.map(|s| s.value) })
}

fn turns(reader: &mut Reader<'_>, node: &Node) -> Option<TurnLimit> {
    if matches!(node.kind, Kind::Int(_) | Kind::Float(_)) {
        return reader.count(node, 1).map(|max| TurnLimit { max: max.value, grace: TurnLimit::GRACE });
    }
    let fields = reader.table(node, "a limit like { max = 40, grace = 2 }", keys::TURNS)?;
    let grace = fields.get("grace").and_then(|n| reader.count(n, 0)).map_or(TurnLimit::GRACE, |s| s.value);
    let Some(max) = fields.get("max") else {
        reader
            .error(node.span.clone(), &node.path, "the turn limit has no `max`")
            .suggest("write { max = 40, grace = 2 }");
        return None;
    };
    reader.count(max, 1).map(|max| TurnLimit { max: max.value, grace })
}
