//! One picture of a run from its event log and its status. Pure.

use std::sync::Arc;

use crate::run::{
    Event, RunContract, RunState, SharedContract, StepId, StepMeta, StepPhase, StepState, ToolCall, ToolOutcome, What,
};

/// More steps than these are not made up for a log whose status is missing.
const MADE_UP: usize = 1000;

/// A foreign log does not say which steps there are; the status does, also when a chain grows. Without one there are at
/// least those that something happened to, of which nothing else is known.
pub(super) fn know_steps(status: Option<&RunState>, reduced: &mut RunState, event: &mut Event) {
    let Some(status) = status else {
        let step = event.what.step().filter(|step| step.flat() < MADE_UP);
        for flat in reduced.steps.len()..step.map_or(0, |step| step.flat() + 1) {
            let id = StepId(u32::try_from(flat).unwrap_or(u32::MAX));
            reduced.steps.push(StepState { id, logical: flat, ..StepState::default() });
            reduced.logical_count = reduced.steps.len();
        }
        return;
    };
    match &mut event.what {
        What::RunStarted(meta) if meta.steps.is_empty() => {
            meta.steps = status.steps.iter().map(StepState::meta).collect();
            meta.groups.clone_from(&status.groups);
            meta.logical_count = status.logical_count;
            meta.session_id = meta.session_id.take().or_else(|| status.session_id.clone());
        }
        _ => {
            for step in status.steps.get(reduced.steps.len()..).unwrap_or_default() {
                reduced.steps.push(unstarted(step));
            }
        }
    }
}

/// The step of a status as it was before it started.
pub(super) fn unstarted(step: &StepState) -> StepState {
    // What is chosen and counted when it begins is told by the events then.
    let meta = StepMeta { model: None, timeout_ms: None, carried_over: false, ..step.meta() };
    StepState { steerable: step.steerable.clone(), contract: unjudged(&step.contract), ..meta.begin(step.id) }
}

/// The contract of a step that has not ended.
fn unjudged(contract: &SharedContract) -> SharedContract {
    let mut contract = contract.clone();
    if contract.acceptance.is_some() {
        contract.acceptance = None;
    }
    contract
}

/// The steps of one source, looked up for those of the other. Ids are positions until a dynamic group moves them, and
/// of ten thousand steps none is looked for among all the others.
struct Known<'a> {
    steps: &'a [StepState],
    in_order: bool,
}

impl<'a> Known<'a> {
    fn of(steps: &'a [StepState]) -> Self {
        Self { steps, in_order: steps.iter().enumerate().all(|(place, step)| step.id.flat() == place) }
    }

    fn find(&self, step: &StepState) -> Option<&'a StepState> {
        let same = |known: &&StepState| known.id == step.id && known.agent == step.agent;
        if self.in_order {
            return self.steps.get(step.id.flat()).filter(same);
        }
        self.steps.iter().find(same)
    }
}

/// The picture. The status wins when it is at least as new as the newest event, when it has the end, or when the log
/// was not read to its end yet; then the events add what a status does not carry. Else the events win and the status
/// adds what is never recorded.
pub(super) fn merge(events: &RunState, status: &RunState, behind: bool) -> RunState {
    let newer = status.last_update >= events.last_update || status.ended_at.is_some();
    if behind || newer || events.started_at.is_none() || events.steps.len() < status.steps.len() {
        let mut view = status.clone();
        view.lost = view.lost.or_else(|| events.lost.clone());
        view.interrupted |= events.interrupted;
        view.ended_by = view.ended_by.or_else(|| events.ended_by.clone());
        view.anomalies = view.anomalies.max(events.anomalies);
        let known = Known::of(&events.steps);
        for step in &mut view.steps {
            if let Some(known) = known.find(step) {
                add_history(step, known);
                if !behind {
                    lose_calls(step, known);
                }
            }
        }
        return view;
    }
    let mut view = events.clone();
    view.cwd = non_empty(view.cwd, &status.cwd);
    view.session_id = view.session_id.or_else(|| status.session_id.clone());
    view.owner_id = view.owner_id.or_else(|| status.owner_id.clone());
    view.name = view.name.or_else(|| status.name.clone());
    view.pid = view.pid.or(status.pid);
    view.timeout_ms = view.timeout_ms.or(status.timeout_ms);
    view.deadline_at = view.deadline_at.or(status.deadline_at);
    if view.contract == RunContract::default() {
        view.contract.clone_from(&status.contract);
    }
    view.totals = view.totals.or(status.totals);
    let known = Known::of(&status.steps);
    for step in &mut view.steps {
        if let Some(known) = known.find(step) {
            add_unrecorded(step, known);
        }
    }
    view
}

/// The picture of a run that nobody runs any more: what ran then is lost. For readers; the files stay as they are.
pub(super) fn lose(view: &mut RunState, evidence: &str) {
    view.lost.get_or_insert_with(|| evidence.to_owned());
    if view.ended_at.is_some() {
        return;
    }
    lose_steps(view);
}

/// The picture of a run that has ended and says of some steps that they run: nobody will tell how those ended
/// (runner-behaviour 14.8).
pub(super) fn settle(view: &mut Arc<RunState>) {
    if view.is_over() && view.steps.iter().any(|step| step.phase == StepPhase::Running) {
        lose_steps(Arc::make_mut(view));
    }
}

fn lose_steps(view: &mut RunState) {
    for step in &mut view.steps {
        step.ending = None;
        if step.phase == StepPhase::Running {
            step.phase = StepPhase::Lost;
            step.activity = None;
        }
    }
}

fn non_empty(first: String, second: &str) -> String {
    if first.is_empty() { second.to_owned() } else { first }
}

/// What the events know and a status does not say.
fn add_history(step: &mut StepState, events: &StepState) {
    step.last_message = step.last_message.take().or_else(|| events.last_message.clone());
    step.session_id = step.session_id.take().or_else(|| events.session_id.clone());
    step.pid = step.pid.or(events.pid.filter(|_| !step.phase.is_terminal()));
    step.exit = step.exit.or(events.exit);
    if step.attempts.len() < events.attempts.len() {
        step.attempts.clone_from(&events.attempts);
    }
    // The events have the results of calls. Their list is taken when it ends with the very calls of the status; the
    // times of the two may differ by a millisecond.
    let tail = events.recent_tools.len().checked_sub(step.recent_tools.len());
    if tail.is_some_and(|n| {
        events.recent_tools.iter().skip(n).map(|t| &t.tool).eq(step.recent_tools.iter().map(|t| &t.tool))
    }) {
        step.recent_tools.clone_from(&events.recent_tools);
    }
    // A foreign status names one open call; the log knows them all, with their ids.
    let current = step.current_call().map(|c| c.tool.clone());
    let ours = step.open.iter().any(|c| c.call.is_some());
    if !ours && current.is_some() && events.open.iter().any(|c| Some(&c.tool) == current.as_ref()) {
        step.open.clone_from(&events.open);
    }
    if step.steerable == crate::run::Steerable::Unknown {
        step.steerable = events.steerable.clone();
    }
    // A foreign status says that something is wrong, the log says what.
    if step.activity.is_some() && step.attention.is_empty() {
        step.attention.clone_from(&events.attention);
    }
    step.retrying = step.retrying.take().or_else(|| events.retrying.clone());
    step.settled_at = step.settled_at.or(events.settled_at);
    step.heard |= events.heard;
    more_unknown(step, events);
    // A foreign status counts cached tokens nowhere and loses some of the others in chains (runner-behaviour 14.26).
    if events.tokens.total() >= step.tokens.total() {
        step.tokens = events.tokens;
    }
    step.cost = step.cost.or(events.cost);
    step.window = step.window.or(events.window);
}

/// A log beyond its cap tells of fewer, and a status may be older.
fn more_unknown(step: &mut StepState, other: &StepState) {
    if other.unknown.total > step.unknown.total {
        step.unknown.clone_from(&other.unknown);
    }
}

/// Calls that nobody ended in a step that is over: a runner that died said no more of them.
fn lose_calls(step: &mut StepState, events: &StepState) {
    let Some(ended_at) = step.ended_at.filter(|_| step.phase.is_terminal()) else { return };
    for call in &events.open {
        step.recent_tools.push_back(ToolCall {
            call: call.call.clone(),
            tool: call.tool.clone(),
            args: call.args.clone(),
            path: call.path.clone(),
            started_at: Some(call.started_at),
            ended_at,
            outcome: Some(ToolOutcome::Lost),
            preview: String::new(),
        });
    }
}

/// What a status knows and the events do not record.
fn add_unrecorded(step: &mut StepState, status: &StepState) {
    more_unknown(step, status);
    step.recent_output.clone_from(&status.recent_output);
    if step.attention.is_empty() {
        step.activity.clone_from(&status.activity);
    }
    step.external = step.external.take().map_or_else(
        || status.external.clone(),
        |mut external| {
            if let Some(known) = &status.external {
                external.stdout_path = non_empty(external.stdout_path, &known.stdout_path);
                external.stderr_path = non_empty(external.stderr_path, &known.stderr_path);
            }
            Some(external)
        },
    );
    step.session_file = step.session_file.take().or_else(|| status.session_file.clone());
    if step.contract == SharedContract::default() {
        step.contract.clone_from(&status.contract);
    }
    step.own_run = step.own_run.take().or_else(|| status.own_run.clone());
    // A child names its model without its provider.
    let full = status.model.as_deref().filter(|full| {
        step.model.as_deref().is_none_or(|short| full.strip_suffix(short).is_some_and(|rest| rest.ends_with('/')))
    });
    step.model = full.map(str::to_owned).or(step.model.take());
    if step.phase == status.phase && step.phase.is_terminal() {
        step.error = step.error.take().or_else(|| status.error.clone());
    }
    step.last_activity = step.last_activity.max(status.last_activity);
    // What only grows is at least as much as anybody says; a status may only seem older, by a clock that was set back.
    step.turn_count = step.turn_count.max(status.turn_count);
    step.tool_count = step.tool_count.max(status.tool_count);
    if status.tokens.total() > step.tokens.total() {
        step.tokens = status.tokens;
    }
    step.cost = step.cost.or(status.cost);
    step.window = step.window.or(status.window);
}
