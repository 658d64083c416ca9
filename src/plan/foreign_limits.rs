//! Limits, thresholds and whom to tell, as a runner config has them (run-directory 4).

use super::foreign::{list, number, present, word};
use super::reader::{Fields, Reader, Spanned};
use super::tree::{Kind, Node};
use super::{Attention, Budget, Control, Limit, NotifyOn, Rule};
use crate::run::{CostUsd, ToolBlock, TurnLimit};

/// The turns of each step; the run only shows those of the step that answered last (runner-behaviour 3.1).
pub(super) fn turn_budget(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<TurnLimit> {
    let turns = reader.open(present(fields, "turnBudget")?, "a turn budget")?;
    let max = number(reader, &turns, "maxTurns").and_then(|max| at_least_one(reader, &max));
    let grace = number(reader, &turns, "graceTurns").map_or(TurnLimit::GRACE, |s| s.value as u64);
    max.map(|max| TurnLimit { max, grace })
}

/// The tool calls of one step. What is blocked when nothing is said are the tools that only look
/// (runner-behaviour 3.2).
pub(super) fn tool_budget(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Budget {
    let Some(node) = present(fields, "toolBudget") else { return Budget::default() };
    let tool_calls = limit(reader, node, |n| Some(n as u64).filter(|n| *n > 0));
    let Some(own) = reader.open(node, "a tool budget").filter(|_| tool_calls.is_some()) else {
        return Budget::default();
    };
    if let Some(Limit { hard: None, .. }) = tool_calls
        && let Some(hard) = number(reader, &own, "hard")
    {
        let _refused = at_least_one(reader, &hard);
    }
    let tool_block = match present(&own, "block").map(|n| &n.kind) {
        None => Some(ToolBlock::Names(ToolBlock::CONFIG_DEFAULT.map(str::to_owned).into())),
        Some(Kind::String(word)) if word == "*" => Some(ToolBlock::All),
        Some(_) => list(reader, &own, "block").map(ToolBlock::Names),
    };
    Budget { tool_calls, tool_block, ..Budget::default() }
}

/// Tokens and money of the whole run.
pub(super) fn usage_budget(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Budget {
    let usage = present(fields, "usageBudget").and_then(|node| reader.open(node, "a usage budget"));
    let Some(usage) = usage else { return Budget::default() };
    Budget {
        tokens: present(&usage, "tokens").and_then(|n| limit(reader, n, |n| Some(n as u64))),
        cost: present(&usage, "costUsd").and_then(|n| limit(reader, n, |n| Some(CostUsd(n)))),
        ..Budget::default()
    }
}

/// Gives a step what the run grants to each and it has no word of its own on.
pub(super) fn grant(own: &mut Budget, each: &Budget) {
    own.turns = own.turns.or(each.turns);
    if own.tool_calls.is_none() {
        own.tool_calls = each.tool_calls;
        own.tool_block.clone_from(&each.tool_block);
    }
}

/// A number of turns or calls. None at all is no limit that a step could keep, and not the wish for no limit either
/// (runner-behaviour 3.1, 3.2).
fn at_least_one(reader: &mut Reader<'_>, number: &Spanned<f64>) -> Option<u64> {
    let whole = Some(number.value as u64).filter(|n| *n > 0);
    if whole.is_none() {
        reader.error_at(number, "a number of at least 1 is needed here").suggest("leave the key out for no limit");
    }
    whole
}

fn limit<T>(reader: &mut Reader<'_>, node: &Node, make: fn(f64) -> Option<T>) -> Option<Limit<T>> {
    let fields = reader.open(node, "a limit")?;
    let soft = number(reader, &fields, "soft");
    let hard = number(reader, &fields, "hard");
    if let (Some(soft), Some(hard)) = (&soft, &hard)
        && soft.value > hard.value
    {
        reader.error_at(soft, "the soft limit lies above the hard one and could never be reached");
    }
    Some(Limit { soft: soft.and_then(|s| make(s.value)), hard: hard.and_then(|s| make(s.value)) })
}

/// The thresholds of every step. A number that can be none leaves the built-in one, as its launcher does
/// (runner-behaviour 4.1); rules that the reference does not know are not touched.
pub(super) fn attention(fields: &Fields<'_>) -> Attention {
    let Some(config) = present(fields, "controlConfig") else { return Attention::default() };
    let at = |key: &str| match config.get(key).map(|n| &n.kind) {
        Some(Kind::Int(n)) if *n > 0 => u64::try_from(*n).ok().map(Rule::At),
        Some(Kind::Float(n)) if n.is_finite() && *n >= 1.0 => Some(Rule::At(*n as u64)),
        _ => None,
    };
    Attention {
        enabled: match config.get("enabled").map(|n| &n.kind) {
            Some(Kind::Bool(truth)) => Some(*truth),
            _ => None,
        },
        idle: at("needsAttentionAfterMs"),
        tool_open: at("activeNoticeAfterMs"),
        long_running: at("activeNoticeAfterMs"),
        long_running_turns: at("activeNoticeAfterTurns"),
        long_running_tokens: at("activeNoticeAfterTokens"),
        tool_failures: at("failedToolAttemptsBeforeAttention"),
        ..Attention::default()
    }
}

/// Whom to tell. Empty lists are honoured.
pub(super) fn control(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Control {
    let mut control = Control {
        intercom_to: word(reader, fields, "controlIntercomTarget").map(|s| s.value),
        workflow_key: word(reader, fields, "workflowKey").map(|s| s.value),
        ..Control::default()
    };
    if let Some(Node { kind: Kind::Array(targets), .. }) = present(fields, "childIntercomTargets") {
        control.child_targets = targets.iter().map(|n| text(n).map(str::to_owned)).collect();
    }
    let config = present(fields, "controlConfig");
    let words = |key: &str| match config.and_then(|c| c.get(key)).map(|n| &n.kind) {
        Some(Kind::Array(words)) => Some(words.iter().filter_map(text).collect::<Vec<_>>()),
        _ => None,
    };
    if let Some(channels) = words("notifyChannels") {
        control.channels = channels.into_iter().map(str::to_owned).collect();
    }
    if let Some(on) = words("notifyOn") {
        control.notify_on = NotifyOn {
            needs_attention: on.contains(&"needs_attention"),
            active_long_running: on.contains(&"active_long_running"),
        };
    }
    control
}

fn text(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::String(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    }
}
