//! Tables of what each event does.

use super::*;
use crate::run::{
    AgentEvent, CostUsd, ExitInfo, MessageRole, RunId, StepMeta, StepOutcome, Tokens, ToolOutcome, Usage, Window,
};

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
    let event = AgentEvent::ToolStarted {
        call: id.map(Into::into),
        tool: name.into(),
        args: name.into(),
        path: None,
        about: Default::default(),
    };
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
        let usage =
            Usage { tokens: Tokens { input: 10, output: 3, cache_read: 5, cache_write: 1 }, cost: Some(CostUsd(0.5)) };
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
    // In the window stands what the newest call had, whatever was used before.
    assert_eq!(s.steps[0].window, Window { used: Some(19), size: None });
    let size = Window { used: None, size: Some(100) };
    apply(&mut s, 6, What::Agent { step: StepId(0), event: AgentEvent::Window(size) });
    assert_eq!(s.steps[0].window.share(), Some(0.19));
    // One that was broken off tells of nothing.
    let broken_off = AgentEvent::Message {
        role: MessageRole::Assistant,
        preview: String::new(),
        model: None,
        stop: None,
        usage: Some(Usage::default()),
        error: Some("aborted".into()),
        calls_tools: false,
    };
    apply(&mut s, 7, What::Agent { step: StepId(0), event: broken_off });
    assert_eq!(s.steps[0].window.used, Some(19));
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
    // Its end is that of the interrupt until its child is gone, and from then on that one (runner-behaviour 14.35).
    assert_eq!(s.steps[0].ended_at, Some(Timestamp::from_millis(10)));
    let mut later = s.clone();
    let paused = StepOutcome { phase: StepPhase::Paused, ..Default::default() };
    apply(&mut later, 15, What::StepEnded { step: StepId(0), outcome: Box::new(paused.clone()) });
    assert_eq!(later.steps[0].ended_at, Some(Timestamp::from_millis(15)));
    apply(&mut later, 20, What::OutputSeen { step: StepId(0), bytes: 1 });
    apply(&mut later, 21, What::StepEnded { step: StepId(0), outcome: Box::new(paused) });
    assert_eq!(later.steps[0].elapsed(Timestamp::from_millis(99)), Some(Duration::from_millis(14)), "it stands still");
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

/// A stop that lies there before a run begins may be told before the beginning (runner-behaviour 14.24).
#[test]
fn an_end_that_is_told_before_the_beginning_counts() {
    let begin = || What::RunStarted(Box::new(RunMeta { steps: vec![StepMeta::default(); 2], ..RunMeta::default() }));
    let stop = || What::RunStopped { message: "m".into(), source: None };
    let orders = [[begin(), stop()], [stop(), begin()]].map(|order| {
        let mut s = RunState::default();
        order.into_iter().for_each(|what| apply(&mut s, 5, what));
        apply(&mut s, 6, What::RunEnded { state: RunPhase::Stopped, error: Some("m".into()) });
        s
    });
    assert_eq!(orders[0], orders[1]);
    assert!(orders[0].stopped && orders[0].steps.iter().all(|s| s.phase == StepPhase::Stopped));
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
    assert_eq!(s.steps[0].ending.as_ref().map(|e| e.cause), Some(EndingCause::Kill), "a weaker cause changes nothing");
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

#[test]
fn a_line_without_an_end_gives_way_to_what_comes_next() {
    let mut state = run(1);
    start(&mut state, 1, 0);
    let mut printed = |lines: &[&str], open: bool| {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        apply(&mut state, 2, What::OutputLines { step: StepId(0), lines, open });
        Vec::from(state.steps[0].recent_output.clone()).join("|")
    };
    assert_eq!(printed(&["begin", "1 of 9"], true), "begin|1 of 9");
    assert_eq!(printed(&["2 of 9"], true), "begin|2 of 9");
    assert_eq!(printed(&["done"], false), "begin|done");
    assert_eq!(printed(&["end"], false), "begin|done|end");
}
