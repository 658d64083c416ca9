//! How events change a state. Total: every event in every state has a defined result; what could not have happened
//! is counted in `anomalies` and otherwise ignored.

use super::{
    AgentEvent, Attempt, ControlSource, Ending, EndingCause, Event, ExternalProcess, MessageRole, OpenCall, Retrying,
    RunMeta, RunPhase, RunState, Steerable, StepId, StepOutcome, StepPhase, StepState, Timestamp, ToolCall,
    ToolOutcome, What,
};
use std::time::Duration;

/// Refused control files that are kept to be shown.
const KEPT_REJECTIONS: usize = 20;

/// Applies one event.
pub fn reduce(state: &mut RunState, event: &Event) {
    let at = event.at;
    state.last_update = state.last_update.max(Some(at));
    match &event.what {
        What::RunStarted(meta) => run_started(state, meta, at),
        What::RunInterrupted { source } => run_interrupted(state, source.as_ref(), at),
        What::RunStopped { message, source } => run_stopped(state, message, source.as_ref(), at),
        What::RunTimedOut { message, source, .. } => run_timed_out(state, message, source.as_ref(), at),
        What::SteerRequested(request) => {
            let mut request = (**request).clone();
            request.message = String::new();
            for target in &request.targets {
                if let Some(step) = state.step_mut(target.step) {
                    let mut own = request.clone();
                    own.targets.retain(|t| t.step == target.step);
                    step.steering.add(own);
                }
            }
            state.steering.add(request);
        }
        What::SteerMoved { id, step, to, detail } => {
            state.steering.advance(id, *step, *to, detail.as_deref(), at);
            if let Some(found) = state.step_mut(*step) {
                found.steering.advance(id, *step, *to, detail.as_deref(), at);
            }
        }
        What::ControlRejected { file, reason } => {
            state.rejected.push_back((file.clone(), reason.clone()));
            while state.rejected.len() > KEPT_REJECTIONS {
                state.rejected.pop_front();
            }
        }
        What::RunEnded { state: phase, error } => {
            if state.ended_at.is_some() {
                state.anomalies += 1;
                return;
            }
            state.phase = phase.clone();
            state.error.clone_from(error);
            state.ended_at = Some(at);
        }
        What::RunLost { message } => {
            if state.ended_at.is_none() {
                state.lost = Some(message.clone());
            }
        }
        What::GroupStarted { .. }
        | What::GroupEnded { .. }
        | What::ControlUnannounced { .. }
        | What::Unknown { .. } => {}
        What::StepStarted { step }
        | What::AttemptStarted { step, .. }
        | What::ChildSpawned { step, .. }
        | What::Agent { step, .. }
        | What::OutputLines { step, .. }
        | What::OutputSeen { step, .. }
        | What::ChildExited { step, .. }
        | What::OutputHeld { step, .. }
        | What::OutputTruncated { step, .. }
        | What::LogFailed { step, .. }
        | What::StepEnded { step, .. }
        | What::StepEnding { step, .. }
        | What::Capability { step, .. }
        | What::SignalSent { step, .. }
        | What::AbortSent { step }
        | What::TreeSwept { step, .. } => step_event(state, *step, &event.what, at),
    }
}

fn run_started(state: &mut RunState, meta: &RunMeta, at: Timestamp) {
    if state.started_at.is_some() {
        state.anomalies += 1;
        return;
    }
    *state = RunState {
        id: meta.id.clone(),
        name: meta.name.clone(),
        session_id: meta.session_id.clone(),
        owner_id: meta.owner_id.clone(),
        mode: meta.mode.clone(),
        phase: RunPhase::Running,
        pid: meta.pid,
        cwd: meta.cwd.clone(),
        started_at: Some(at),
        last_update: Some(at),
        last_activity: Some(at),
        timeout_ms: meta.timeout_ms,
        deadline_at: meta.deadline_at,
        groups: meta.groups.clone(),
        logical_count: meta.logical_count,
        resumed_from: meta.resumed_from.clone(),
        anomalies: state.anomalies,
        ..RunState::default()
    };
    for (step, id) in meta.steps.iter().zip(0u32..) {
        state.steps.push(StepState {
            id: StepId(id),
            key: step.key.clone(),
            agent: step.agent.clone(),
            label: step.label.clone(),
            phase_title: step.phase.clone(),
            logical: step.logical,
            runner: step.runner.clone(),
            model: step.model.clone(),
            thinking: step.thinking.clone(),
            session_file: step.session_file.clone(),
            has_task: step.has_task,
            timeout_ms: step.timeout_ms,
            carried_over: step.carried_over,
            steerable: if step.runner.is_agent() {
                Steerable::Unknown
            } else {
                Steerable::No("a plain command takes no messages".into())
            },
            ..StepState::default()
        });
    }
}

/// The run pauses at once; its steps follow when their children are gone (run-directory 3.2).
fn run_interrupted(state: &mut RunState, source: Option<&ControlSource>, at: Timestamp) {
    if state.phase != RunPhase::Running || state.is_ending() {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Paused;
    state.interrupted = true;
    state.ended_by = source.cloned();
    for step in &mut state.steps {
        if step.phase == StepPhase::Running {
            step.phase = StepPhase::Paused;
            step.ended_at = Some(at);
            begin_ending(step, EndingCause::Interrupt, String::new(), at);
        }
    }
}

/// Stop is honoured whenever the run has not ended, also after an interrupt (runner-behaviour 14.7).
fn run_stopped(state: &mut RunState, message: &str, source: Option<&ControlSource>, at: Timestamp) {
    if state.ended_at.is_some() || state.stopped {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Running;
    state.stopped = true;
    // A stop after the time was over ends what the timeout began; the time-out stays on the steps it hit.
    state.timed_out = false;
    state.error = Some(message.to_owned());
    state.ended_by = source.cloned();
    end_steps(state, EndingCause::RunStop, message, at);
}

fn run_timed_out(state: &mut RunState, message: &str, source: Option<&ControlSource>, at: Timestamp) {
    if state.ended_at.is_some() || state.stopped || state.timed_out {
        state.anomalies += 1;
        return;
    }
    state.phase = RunPhase::Running;
    state.timed_out = true;
    state.error = Some(message.to_owned());
    state.ended_by = source.cloned();
    end_steps(state, EndingCause::RunTimeout, message, at);
}

fn end_steps(state: &mut RunState, cause: EndingCause, message: &str, at: Timestamp) {
    for step in &mut state.steps {
        let never_ran = step.phase == StepPhase::Pending;
        let dying = step.ending.is_some();
        if !(never_ran || dying || step.phase == StepPhase::Running) {
            continue;
        }
        if cause == EndingCause::RunStop {
            step.phase = StepPhase::Stopped;
            step.stopped = true;
        } else {
            step.phase = StepPhase::Failed;
            step.timed_out = true;
        }
        step.exit_code = Some(1);
        step.error = Some(message.to_owned());
        step.ended_at = Some(at);
        if never_ran {
            step.started_at = step.started_at.or(Some(at));
        } else {
            begin_ending(step, cause, message.to_owned(), at);
        }
    }
}

/// A stronger cause replaces a weaker one and starts its own ladder; a weaker one changes nothing.
fn begin_ending(step: &mut StepState, cause: EndingCause, message: String, at: Timestamp) {
    if step.ending.as_ref().is_some_and(|e| e.cause >= cause) {
        return;
    }
    step.ending =
        Some(Ending { cause, since: at, message, abort_at: None, int_at: None, term_at: None, kill_at: None });
}

fn step_event(state: &mut RunState, id: StepId, what: &What, at: Timestamp) {
    let seq = state.next_seq;
    let run_ending = state.is_ending();
    let Some(step) = state.step_mut(id) else {
        state.anomalies += 1;
        return;
    };
    let mut strange = false;
    let mut started = false;
    let mut active = false;
    match what {
        What::StepStarted { .. } => {
            if step.phase == StepPhase::Pending {
                step.phase = StepPhase::Running;
                step.started_at = Some(at);
                started = true;
            } else {
                strange = true;
            }
        }
        What::AttemptStarted { attempt, model, reason, .. } => {
            lose_open_calls(step, at);
            strange = step.attempts.len().saturating_add(1) != *attempt as usize;
            step.attempts.push(Attempt {
                model: model.clone(),
                reason: reason.clone(),
                started_at: Some(at),
                ..Attempt::default()
            });
            step.settled_at = None;
            step.retrying = None;
        }
        What::ChildSpawned { pid, start_ticks, .. } => {
            step.pid = Some(*pid);
            step.start_ticks = *start_ticks;
            if !step.runner.is_agent() {
                let external = step.external.get_or_insert_with(ExternalProcess::default);
                external.pid = Some(*pid);
                external.started_at = Some(at);
            }
        }
        What::Agent { event, .. } => {
            active = true;
            step.last_activity = Some(at);
            strange = agent_event(step, event, at, seq);
        }
        What::OutputLines { lines, .. } => {
            active = true;
            step.last_activity = Some(at);
            for line in lines {
                step.recent_output.push_back(line.clone());
            }
            while step.recent_output.len() > StepState::KEPT_LINES {
                step.recent_output.pop_front();
            }
        }
        What::OutputSeen { .. } => {
            active = true;
            step.last_activity = Some(at);
        }
        What::ChildExited { exit, .. } => {
            step.pid = None;
            step.exit = Some(*exit);
            step.retrying = None;
            if let Some(external) = &mut step.external {
                external.exit = Some(*exit);
                external.ended_at = Some(at);
            }
        }
        What::OutputHeld { pids, .. } => step.held_by.clone_from(pids),
        What::OutputTruncated { cap, .. } => step.truncated_at = Some(*cap),
        What::LogFailed { error, .. } => step.log_error = Some(error.clone()),
        What::StepEnded { outcome, .. } => {
            step_ended(step, outcome, at);
            if let Some((name, output)) = &outcome.output {
                state.outputs.insert(name.clone(), output.clone());
            }
        }
        What::StepEnding { cause, message, source, .. } => {
            // A step that is being ended already can still be ended for a stronger cause.
            if step.phase == StepPhase::Running || step.ending.is_some() {
                begin_ending(step, *cause, message.clone(), at);
                if source.is_some() && !run_ending {
                    state.ended_by.clone_from(source);
                }
            } else {
                strange = true;
            }
        }
        What::Capability { steerable, .. } => step.steerable = steerable.clone(),
        What::SignalSent { signal, .. } => {
            if let Some(ending) = &mut step.ending {
                match *signal {
                    "SIGKILL" => ending.kill_at = Some(at),
                    "SIGINT" => ending.int_at = Some(at),
                    _ => ending.term_at = Some(at),
                }
            }
        }
        What::AbortSent { .. } => {
            if let Some(ending) = &mut step.ending {
                ending.abort_at = Some(at);
            }
        }
        What::TreeSwept { survivors, .. } => step.survivors.clone_from(survivors),
        _ => {}
    }
    if started {
        state.last_started = Some(id);
    }
    if started || active {
        state.current = Some(id);
        state.last_activity = state.last_activity.max(Some(at));
        state.next_seq = seq + 1;
    }
    if strange {
        state.anomalies += 1;
    }
}

/// Returns whether the event could not have happened.
fn agent_event(step: &mut StepState, event: &AgentEvent, at: Timestamp, seq: u64) -> bool {
    match event {
        AgentEvent::SessionStarted { session_id, model } => {
            if session_id.is_some() {
                step.session_id.clone_from(session_id);
            }
            if model.is_some() {
                step.model.clone_from(model);
            }
        }
        AgentEvent::Message { role: MessageRole::Assistant, preview, model, usage, .. } => {
            step.turn_count += 1;
            step.retrying = None;
            if !preview.is_empty() {
                step.last_message = Some(preview.clone());
            }
            if model.is_some() {
                step.model.clone_from(model);
            }
            if let Some(usage) = usage {
                step.tokens += usage.tokens;
                if let Some(cost) = usage.cost {
                    *step.cost.get_or_insert_default() += cost;
                }
                if let Some(attempt) = step.attempts.last_mut() {
                    attempt.turns += 1;
                    attempt.usage.tokens += usage.tokens;
                    if let Some(cost) = usage.cost {
                        *attempt.usage.cost.get_or_insert_default() += cost;
                    }
                }
            }
        }
        AgentEvent::ToolStarted { call, tool, args, path } => {
            step.tool_count += 1;
            step.retrying = None;
            // A second start of the same call replaces the first (runner-behaviour 14.10).
            let before = step.open.len();
            if call.is_some() {
                step.open.retain(|c| c.call != *call);
            }
            let replaced = step.open.len() != before;
            step.open.push(OpenCall {
                call: call.clone(),
                tool: tool.clone(),
                args: args.clone(),
                path: path.clone(),
                started_at: at,
                seq,
            });
            return replaced;
        }
        AgentEvent::ToolEnded { call, tool, outcome, preview } => {
            let Some(index) = matching_call(&step.open, call.as_deref(), tool.as_deref()) else { return true };
            let ended = step.open.remove(index);
            remember_call(step, ended, *outcome, preview.clone(), at);
        }
        AgentEvent::Retry { attempt, max, delay_ms, reason } => {
            step.retrying = Some(Retrying {
                attempt: *attempt,
                max: *max,
                until: delay_ms.map(|ms| at + Duration::from_millis(ms)),
                reason: reason.clone(),
            });
        }
        AgentEvent::RetryEnded { .. } => step.retrying = None,
        AgentEvent::AgentStarted => {
            step.settled_at = None;
            step.retrying = None;
        }
        AgentEvent::AgentEnded { will_retry } => {
            if *will_retry {
                step.settled_at = None;
            }
        }
        AgentEvent::Settled { .. } => step.settled_at = Some(at),
        AgentEvent::TurnStarted
        | AgentEvent::TurnEnded
        | AgentEvent::TextDelta { .. }
        | AgentEvent::Message { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::Queue(_)
        | AgentEvent::Asked { .. }
        | AgentEvent::Response { .. }
        | AgentEvent::Unparsed { .. }
        | AgentEvent::Unknown { .. }
        | AgentEvent::ProtocolFailure { .. } => {}
    }
    false
}

/// Which open call an end means: by id, and an unknown id means none; else the oldest of that name; with neither
/// only if exactly one call is open (runner-behaviour 3.6).
fn matching_call(open: &[OpenCall], call: Option<&str>, tool: Option<&str>) -> Option<usize> {
    match (call.filter(|id| !id.is_empty()), tool) {
        (Some(id), _) => open.iter().position(|c| c.call.as_deref() == Some(id)),
        (None, Some(name)) => open.iter().position(|c| c.tool == name),
        (None, None) => (open.len() == 1).then_some(0),
    }
}

fn remember_call(step: &mut StepState, call: OpenCall, outcome: ToolOutcome, preview: String, at: Timestamp) {
    step.recent_tools.push_back(ToolCall {
        tool: call.tool,
        args: call.args,
        path: call.path,
        started_at: Some(call.started_at),
        ended_at: at,
        outcome: Some(outcome),
        preview,
    });
    while step.recent_tools.len() > StepState::KEPT_TOOLS {
        step.recent_tools.pop_front();
    }
}

/// Calls that are open when all that the child said is known will never end by themselves. Its exit is not yet that
/// moment: their ends may still lie in the pipe.
fn lose_open_calls(step: &mut StepState, at: Timestamp) {
    for call in std::mem::take(&mut step.open) {
        remember_call(step, call, ToolOutcome::Lost, String::new(), at);
    }
}

fn step_ended(step: &mut StepState, outcome: &StepOutcome, at: Timestamp) {
    lose_open_calls(step, at);
    step.phase = outcome.phase.clone();
    step.exit_code = Some(outcome.exit_code);
    step.error.clone_from(&outcome.error);
    step.timed_out = outcome.timed_out;
    step.stopped = outcome.stopped;
    step.started_at = step.started_at.or(Some(at));
    step.ended_at = Some(at);
    step.pid = None;
    step.ending = None;
    step.retrying = None;
    step.activity = None;
    if let Some(attempt) = step.attempts.last_mut() {
        attempt.success = Some(outcome.phase == StepPhase::Complete);
        attempt.exit_code = Some(outcome.exit_code);
        attempt.error.clone_from(&outcome.error);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CostUsd, ExitInfo, RunId, StepMeta, Tokens, Usage};
    use super::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn run(steps: usize) -> RunState {
        let meta = RunMeta {
            id: RunId("r".into()),
            steps: (0..steps)
                .map(|i| StepMeta { key: format!("s{i}"), agent: format!("a{i}"), ..Default::default() })
                .collect(),
            logical_count: steps,
            ..Default::default()
        };
        let mut state = RunState::default();
        reduce(&mut state, &Event { at: ms(0), what: What::RunStarted(Box::new(meta)) });
        state
    }

    fn apply(state: &mut RunState, at: i64, what: What) {
        reduce(state, &Event { at: ms(at), what });
    }

    fn start(state: &mut RunState, at: i64, step: u32) {
        apply(state, at, What::StepStarted { step: StepId(step) });
        apply(state, at, What::AttemptStarted { step: StepId(step), attempt: 1, model: None, reason: None });
        apply(state, at, What::ChildSpawned { step: StepId(step), pid: 100 + step, start_ticks: None });
    }

    fn tool(state: &mut RunState, at: i64, id: Option<&str>, name: &str) {
        let event =
            AgentEvent::ToolStarted { call: id.map(Into::into), tool: name.into(), args: name.into(), path: None };
        apply(state, at, What::Agent { step: StepId(0), event });
    }

    fn tool_end(state: &mut RunState, at: i64, id: Option<&str>, name: Option<&str>) {
        let event = AgentEvent::ToolEnded {
            call: id.map(Into::into),
            tool: name.map(Into::into),
            outcome: ToolOutcome::Ok,
            preview: String::new(),
        };
        apply(state, at, What::Agent { step: StepId(0), event });
    }

    fn current(state: &RunState) -> Option<&str> {
        state.steps[0].current_call().map(|c| c.tool.as_str())
    }

    #[test]
    fn the_current_tool_is_the_one_started_last_and_the_first_of_a_tie() {
        let mut s = run(1);
        start(&mut s, 1, 0);
        tool(&mut s, 10, Some("A"), "bash");
        tool(&mut s, 20, Some("B"), "read");
        assert_eq!(current(&s), Some("read"));
        tool_end(&mut s, 30, Some("B"), None);
        assert_eq!(current(&s), Some("bash"));
        tool(&mut s, 10, Some("C"), "grep");
        assert_eq!(current(&s), Some("bash"), "of two started in the same instant the first wins");
        tool_end(&mut s, 40, Some("A"), None);
        tool_end(&mut s, 41, Some("C"), None);
        assert_eq!(current(&s), None);
        let names: Vec<_> = s.steps[0].recent_tools.iter().map(|t| t.tool.as_str()).collect();
        assert_eq!(names, ["read", "bash", "grep"]);
        assert_eq!(s.anomalies, 0);
    }

    #[test]
    fn an_end_matches_by_id_then_by_name_then_only_a_single_call() {
        // (open calls, end, which are left open, whether it was strange)
        type Case<'a> = (&'a [(Option<&'a str>, &'a str)], (Option<&'a str>, Option<&'a str>), &'a [&'a str], bool);
        let cases: [Case; 7] = [
            (&[(Some("A"), "read"), (Some("B"), "read")], (Some("A"), None), &["read"], false),
            (&[(Some("A"), "read")], (Some("X"), Some("read")), &["read"], true),
            (&[(None, "read"), (None, "read")], (None, Some("read")), &["read"], false),
            (&[(None, "read")], (None, Some("bash")), &["read"], true),
            (&[(None, "read")], (None, None), &[], false),
            (&[(None, "read"), (None, "bash")], (None, None), &["read", "bash"], true),
            (&[(None, "read")], (Some(""), Some("read")), &[], false),
        ];
        for (open, end, left, strange) in cases {
            let mut s = run(1);
            start(&mut s, 1, 0);
            for (id, name) in open {
                tool(&mut s, 10, *id, name);
            }
            tool_end(&mut s, 20, end.0, end.1);
            let names: Vec<_> = s.steps[0].open.iter().map(|c| c.tool.as_str()).collect();
            assert_eq!(names, left, "{open:?} {end:?}");
            assert_eq!(s.anomalies, u64::from(strange), "{open:?} {end:?}");
        }
    }

    #[test]
    fn a_second_start_of_a_call_replaces_the_first() {
        let mut s = run(1);
        start(&mut s, 1, 0);
        tool(&mut s, 10, Some("A"), "read");
        tool(&mut s, 20, Some("A"), "read");
        assert_eq!(s.steps[0].open.len(), 1);
        assert_eq!(s.steps[0].open[0].started_at, ms(20));
        assert_eq!((s.steps[0].tool_count, s.anomalies), (2, 1));
    }

    #[test]
    fn calls_may_still_end_after_the_exit_and_are_lost_with_the_step_or_the_attempt() {
        let mut s = run(2);
        start(&mut s, 1, 0);
        start(&mut s, 1, 1);
        tool(&mut s, 10, Some("A"), "bash");
        tool(&mut s, 10, Some("B"), "read");
        let exit = ExitInfo { code: Some(0), signal: None };
        apply(&mut s, 20, What::ChildExited { step: StepId(0), exit });
        assert_eq!(current(&s), None, "nothing stays current");
        // What was still in the pipe when the child was gone.
        tool(&mut s, 30, Some("C"), "grep");
        tool_end(&mut s, 30, Some("A"), None);
        tool_end(&mut s, 30, Some("C"), None);
        assert_eq!(s.anomalies, 0);
        let again = What::AttemptStarted { step: StepId(0), attempt: 2, model: None, reason: None };
        apply(&mut s, 40, again);
        let found: Vec<_> = s.steps[0].recent_tools.iter().map(|t| (t.tool.as_str(), t.outcome)).collect();
        let (ok, lost) = (Some(ToolOutcome::Ok), Some(ToolOutcome::Lost));
        assert_eq!(found, [("bash", ok), ("grep", ok), ("read", lost)]);
        tool(&mut s, 50, Some("D"), "bash");
        let outcome = Box::new(StepOutcome::default());
        apply(&mut s, 60, What::StepEnded { step: StepId(0), outcome });
        assert!(s.steps[0].open.is_empty());
        assert_eq!(s.steps[0].recent_tools[3].outcome, lost);
        tool_end(&mut s, 70, Some("D"), None);
        assert_eq!((s.steps[0].recent_tools.len(), s.anomalies), (4, 1));
    }

    #[test]
    fn usage_adds_up_for_the_step_the_attempt_and_the_run() {
        let mut s = run(2);
        start(&mut s, 1, 0);
        start(&mut s, 1, 1);
        for step in [0, 0, 1] {
            let usage = Usage {
                tokens: Tokens { input: 10, output: 3, cache_read: 5, cache_write: 1 },
                cost: Some(CostUsd(0.5)),
            };
            let event = AgentEvent::Message {
                role: MessageRole::Assistant,
                preview: "hi".into(),
                model: Some("m".into()),
                stop: None,
                usage: Some(usage),
                error: None,
                calls_tools: false,
            };
            apply(&mut s, 5, What::Agent { step: StepId(step), event });
        }
        assert_eq!(s.steps[0].tokens, Tokens { input: 20, output: 6, cache_read: 10, cache_write: 2 });
        assert_eq!(s.steps[0].turn_count, 2);
        assert_eq!(s.steps[0].attempts[0].turns, 2);
        assert_eq!(s.tokens().total(), 39);
        assert_eq!(s.cost(), Some(CostUsd(1.5)));
    }

    #[test]
    fn an_interrupt_pauses_at_once_and_leaves_pending_steps() {
        let mut s = run(2);
        start(&mut s, 1, 0);
        apply(&mut s, 10, What::RunInterrupted { source: None });
        assert_eq!(s.phase, RunPhase::Paused);
        assert_eq!(s.ended_at, None);
        assert_eq!(s.steps[0].phase, StepPhase::Paused);
        assert_eq!(s.steps[0].ending.as_ref().map(|e| e.cause), Some(EndingCause::Interrupt));
        assert_eq!(s.steps[1].phase, StepPhase::Pending);
        // A second interrupt changes nothing; a stop does.
        apply(&mut s, 11, What::RunInterrupted { source: None });
        assert_eq!(s.anomalies, 1);
        apply(&mut s, 12, What::RunStopped { message: "m".into(), source: None });
        assert!(s.stopped);
        assert_eq!(s.phase, RunPhase::Running);
        assert_eq!(s.steps[0].phase, StepPhase::Stopped);
        assert_eq!(s.steps[0].ending.as_ref().map(|e| e.cause), Some(EndingCause::RunStop));
        assert_eq!(s.steps[1].phase, StepPhase::Stopped);
    }

    #[test]
    fn stop_and_timeout_mark_what_has_not_ended_and_leave_what_has() {
        for stop in [true, false] {
            let mut s = run(3);
            start(&mut s, 1, 0);
            let done = StepOutcome { phase: StepPhase::Complete, ..Default::default() };
            apply(&mut s, 2, What::StepEnded { step: StepId(0), outcome: Box::new(done) });
            start(&mut s, 3, 1);
            let what = if stop {
                What::RunStopped { message: "m".into(), source: None }
            } else {
                What::RunTimedOut { timeout_ms: Some(5), message: "m".into(), source: None }
            };
            apply(&mut s, 9, what);
            assert_eq!(s.steps[0].phase, StepPhase::Complete);
            for step in &s.steps[1..] {
                assert_eq!(step.phase, if stop { StepPhase::Stopped } else { StepPhase::Failed });
                assert_eq!((step.exit_code, step.error.as_deref()), (Some(1), Some("m")));
                assert_eq!((step.stopped, step.timed_out), (stop, !stop));
            }
            assert_eq!(s.steps[2].elapsed(ms(99)), Some(Duration::ZERO), "a step that never ran took no time");
            assert_eq!(s.phase, RunPhase::Running, "ending, not ended");
        }
    }

    #[test]
    fn a_kill_is_stronger_than_the_stop_before_it() {
        let mut s = run(1);
        start(&mut s, 1, 0);
        apply(&mut s, 10, What::RunStopped { message: "m".into(), source: None });
        let step = StepId(0);
        apply(&mut s, 11, What::StepEnding { step, cause: EndingCause::Kill, message: "m".into(), source: None });
        assert_eq!(s.steps[0].ending.as_ref().map(|e| e.cause), Some(EndingCause::Kill));
        apply(&mut s, 12, What::StepEnding { step, cause: EndingCause::StepStop, message: "m".into(), source: None });
        assert_eq!(
            s.steps[0].ending.as_ref().map(|e| e.cause),
            Some(EndingCause::Kill),
            "a weaker cause changes nothing"
        );
        assert_eq!(s.anomalies, 0);
    }

    #[test]
    fn nothing_happens_twice_and_unknown_steps_only_count() {
        let mut s = run(1);
        apply(&mut s, 5, What::StepStarted { step: StepId(7) });
        apply(&mut s, 6, What::RunEnded { state: RunPhase::Complete, error: None });
        apply(&mut s, 7, What::RunEnded { state: RunPhase::Failed, error: None });
        assert_eq!(s.phase, RunPhase::Complete);
        assert_eq!(s.anomalies, 2);
        apply(&mut s, 8, What::RunStopped { message: "m".into(), source: None });
        assert!(!s.stopped);
    }
}
