//! Limits, thresholds and whom to tell, in the stored plan.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::limits::millis;
use super::super::{Budget, Control, Limit, NotifyOn};
use super::is_false;
use crate::run::{CostUsd, Thresholds, ToolBlock, TurnLimit};

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BudgetDoc {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<TurnsDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<LimitDoc<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_block: Option<BlockDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<LimitDoc<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<LimitDoc<f64>>,
}

#[derive(Serialize, Deserialize)]
struct TurnsDoc {
    max: u64,
    #[serde(default)]
    grace: u64,
}

/// `"*"`, or the names of tools.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BlockDoc {
    Word(String),
    Names(Vec<String>),
}

#[derive(Serialize, Deserialize)]
struct LimitDoc<T> {
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    soft: Option<T>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    hard: Option<T>,
}

impl BudgetDoc {
    pub(super) fn of(budget: &Budget) -> Self {
        let limit = |l: Limit<u64>| LimitDoc { soft: l.soft, hard: l.hard };
        let usd = |c: CostUsd| Some(c.0).filter(|c| c.is_finite());
        Self {
            time_ms: budget.time.map(millis),
            idle_ms: budget.idle.map(millis),
            turns: budget.turns.map(|t| TurnsDoc { max: t.max, grace: t.grace }),
            tool_calls: budget.tool_calls.map(limit),
            tool_block: budget.tool_block.as_ref().map(|block| match block {
                ToolBlock::All => BlockDoc::Word("*".to_owned()),
                ToolBlock::Names(names) => BlockDoc::Names(names.clone()),
            }),
            tokens: budget.tokens.map(limit),
            cost_usd: budget.cost.map(|l| LimitDoc { soft: l.soft.and_then(usd), hard: l.hard.and_then(usd) }),
        }
    }

    pub(super) fn budget(self) -> Budget {
        let limit = |l: LimitDoc<u64>| Limit { soft: l.soft, hard: l.hard };
        Budget {
            time: self.time_ms.map(Duration::from_millis),
            idle: self.idle_ms.map(Duration::from_millis),
            turns: self.turns.map(|t| TurnLimit { max: t.max, grace: t.grace }),
            tool_calls: self.tool_calls.map(limit),
            tokens: self.tokens.map(limit),
            cost: self.cost_usd.map(|l| Limit { soft: l.soft.map(CostUsd), hard: l.hard.map(CostUsd) }),
            tool_block: self.tool_block.map(|block| match block {
                BlockDoc::Word(_) => ToolBlock::All,
                BlockDoc::Names(names) => ToolBlock::Names(names),
            }),
        }
    }
}

/// The thresholds that differ from the built-in ones; 0 switches a rule off.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttentionDoc {
    #[serde(default, skip_serializing_if = "is_false")]
    disabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_open_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tools_ms: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exempt: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long_running_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long_running_turns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long_running_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_failures: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_first_event_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeated_calls: Option<u64>,
}

impl AttentionDoc {
    pub(super) fn is_built_in(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn of(own: &Thresholds) -> Self {
        let built_in = Thresholds::default();
        let set = |own: Option<u64>, built_in: Option<u64>| (own != built_in).then(|| own.unwrap_or(0));
        Self {
            disabled: !own.enabled,
            idle_ms: set(own.idle_ms, built_in.idle_ms),
            tool_open_ms: set(own.tool_open_ms, built_in.tool_open_ms),
            tools_ms: own.tool_open_of.clone(),
            exempt: own.exempt.clone(),
            long_running_ms: set(own.long_ms, built_in.long_ms),
            long_running_turns: set(own.long_turns, built_in.long_turns),
            long_running_tokens: set(own.long_tokens, built_in.long_tokens),
            tool_failures: set(own.failures, built_in.failures),
            no_first_event_ms: set(own.first_event_ms, built_in.first_event_ms),
            repeated_calls: set(own.repeats, built_in.repeats),
        }
    }

    pub(super) fn thresholds(self) -> Thresholds {
        let built_in = Thresholds::default();
        let of = |set: Option<u64>, built_in: Option<u64>| set.map_or(built_in, |n| Some(n).filter(|n| *n > 0));
        Thresholds {
            enabled: !self.disabled,
            idle_ms: of(self.idle_ms, built_in.idle_ms),
            tool_open_ms: of(self.tool_open_ms, built_in.tool_open_ms),
            tool_open_of: self.tools_ms,
            exempt: self.exempt,
            long_ms: of(self.long_running_ms, built_in.long_ms),
            long_turns: of(self.long_running_turns, built_in.long_turns),
            long_tokens: of(self.long_running_tokens, built_in.long_tokens),
            failures: of(self.tool_failures, built_in.failures),
            first_event_ms: of(self.no_first_event_ms, built_in.first_event_ms),
            repeats: of(self.repeated_calls, built_in.repeats),
        }
    }
}

/// Whom to tell; only what differs from the default.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ControlDoc {
    #[serde(default, skip_serializing_if = "is_false")]
    mute_needs_attention: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    mute_active_long_running: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intercom_to: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    child_targets: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow_key: Option<String>,
}

impl ControlDoc {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn of(control: &Control) -> Self {
        Self {
            mute_needs_attention: !control.notify_on.needs_attention,
            mute_active_long_running: !control.notify_on.active_long_running,
            channels: Some(control.channels.clone()).filter(|c| *c != Control::CHANNELS),
            intercom_to: control.intercom_to.clone(),
            child_targets: control.child_targets.clone(),
            workflow_key: control.workflow_key.clone(),
        }
    }

    pub(super) fn control(self) -> Control {
        let default = Control::default();
        Control {
            notify_on: NotifyOn {
                needs_attention: !self.mute_needs_attention,
                active_long_running: !self.mute_active_long_running,
            },
            channels: self.channels.unwrap_or(default.channels),
            intercom_to: self.intercom_to,
            child_targets: self.child_targets,
            workflow_key: self.workflow_key,
        }
    }
}
