//! The stored plan as readers of a run need it (run-directory 3.9): the tasks, which no shared document carries, and
//! the limits.

use std::io;

use super::{RunDir, open};
use crate::plan::{Budget, Limit, LogicalStep, Plan, Step, stored, template};
use crate::run::{RunState, StepId, StepMeta};
use crate::text::{cost, grouped, written};

/// Larger documents are not plans.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What the plan says of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepDoc {
    /// The task as a template. Text from outside.
    pub task: String,
    /// The limits that were set: their names and how they read.
    pub limits: Vec<(&'static str, String)>,
}

/// The stored plan as it is.
///
/// # Errors
/// What the file system says; also for what is no regular file or larger than any plan.
pub fn bytes(dir: &RunDir) -> io::Result<Vec<u8>> {
    open::read_at_most(&open::regular(&dir.plan_json())?, MAX_BYTES)
}

/// The plan of a run, without the values of variables; nothing for runs that have none, such as foreign ones.
fn plan(dir: &RunDir) -> Option<Plan> {
    stored::decode(&bytes(dir).ok()?, &|_, _| None).ok().map(|stored| stored.plan)
}

/// What the plan of a run says of its steps; nothing for runs that have none.
#[must_use]
pub fn read(dir: &RunDir) -> Vec<StepDoc> {
    let Some(plan) = plan(dir) else { return Vec::new() };
    // What `{task}` stands for is known from the start; the other placeholders are filled when a step begins.
    let task = |step: &Step| template::fill_task(&step.task, step.filling, plan.task.as_deref());
    let limits = |step: &Step| {
        let mut all = limits(&step.budget);
        all.extend(step.tool_timeout.map(|time| ("a tool call", written(time))));
        all
    };
    plan.flat().map(|step| StepDoc { task: task(step), limits: limits(step) }).collect()
}

/// A run of which there is only the plan: its name, its folder and its steps, none of which has begun.
#[must_use]
pub fn unstarted(dir: &RunDir) -> RunState {
    let mut state = RunState { id: dir.id(), ..RunState::default() };
    let Some(plan) = plan(dir) else { return state };
    state.cwd = plan.cwd.display().to_string();
    state.logical_count = plan.steps.len();
    for (logical, entry) in plan.steps.iter().enumerate() {
        let members = match entry {
            LogicalStep::Single(step) => std::slice::from_ref(&**step),
            LogicalStep::Group { steps, .. } => steps.as_slice(),
        };
        for step in members {
            let meta = StepMeta {
                key: step.key.clone(),
                agent: step.agent.clone(),
                label: step.label.clone(),
                phase: step.phase.clone(),
                logical,
                ..StepMeta::default()
            };
            state.steps.push(meta.begin(StepId(u32::try_from(state.steps.len()).unwrap_or(u32::MAX))));
        }
    }
    state.name = plan.name;
    state
}

/// What the plan says of the step with this id.
#[must_use]
pub fn step(docs: &[StepDoc], id: StepId) -> StepDoc {
    docs.get(id.flat()).cloned().unwrap_or_default()
}

/// The task of a step as it was handed over, where that was kept: the plan alone has it when there is nothing to fill in.
#[must_use]
pub fn asked(dir: &RunDir, id: StepId) -> Option<String> {
    let bytes = open::read_at_most(&open::regular(&dir.asked(id)).ok()?, MAX_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

fn limits(budget: &Budget) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if let Some(time) = budget.time {
        out.push(("time", written(time)));
    }
    if let Some(idle) = budget.idle {
        out.push(("idle", written(idle)));
    }
    if let Some(crate::run::TurnLimit { max: most, grace }) = budget.turns {
        out.push(("turns", format!("{most} and {grace} more")));
    }
    out.extend(limit("tool calls", budget.tool_calls, |n| grouped(*n)));
    out.extend(limit("tokens", budget.tokens, |n| grouped(*n)));
    out.extend(limit("cost", budget.cost, |usd| cost(usd.0)));
    out
}

fn limit<T>(
    name: &'static str,
    limit: Option<Limit<T>>,
    text: impl Fn(&T) -> String,
) -> Option<(&'static str, String)> {
    let limit = limit?;
    let soft = limit.soft.as_ref().map(|v| format!("warning at {}", text(v)));
    let hard = limit.hard.as_ref().map(&text);
    let parts: Vec<String> = hard.into_iter().chain(soft).collect();
    (!parts.is_empty()).then(|| (name, parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CostUsd;

    #[test]
    fn limits_read_like_sentences() {
        let budget = Budget {
            time: Some(std::time::Duration::from_secs(900)),
            turns: Some(crate::run::TurnLimit { max: 40, grace: 2 }),
            tool_calls: Some(Limit { soft: Some(20), hard: Some(30) }),
            cost: Some(Limit { soft: None, hard: Some(CostUsd(2.5)) }),
            ..Budget::default()
        };
        let read: Vec<String> = limits(&budget).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(read, ["time: 15m", "turns: 40 and 2 more", "tool calls: 30, warning at 20", "cost: $2.50"]);
    }

    #[test]
    fn a_run_without_a_plan_has_no_facts() {
        let dir = tempfile::tempdir().unwrap();
        let docs = read(&RunDir::at(dir.path()));
        assert_eq!(step(&docs, StepId(3)), StepDoc::default());
    }
}
