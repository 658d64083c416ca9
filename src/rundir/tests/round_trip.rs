//! What is written is read back the same: records and statuses.

mod metas;
mod values;

use proptest::prelude::*;
use proptest::strategy::Union;

use crate::run::story::every;
use crate::run::*;
use crate::rundir::records::{self, ChildContext, RecordContext};
use crate::rundir::{RunDir, StatusContext, decode_status, status};
use metas::*;
use values::*;

every! { What: what, whats, kind {
    RunStarted * 1 => run_meta().prop_map(|m| What::RunStarted(Box::new(m))),
    StepStarted * 1 => step().prop_map(|step| What::StepStarted { step }),
    GroupStarted * 1 => (0usize..9).prop_map(|logical| What::GroupStarted { logical }),
    GroupEnded * 1 => (0usize..9, any::<bool>()).prop_map(|(logical, success)| What::GroupEnded { logical, success }),
    AttemptStarted * 1 => (step(), any::<u32>(), maybe(text()), maybe(text()))
        .prop_map(|(step, attempt, model, reason)| What::AttemptStarted { step, attempt, model, reason }),
    ChildSpawned * 1 => (step(), any::<u32>(), maybe(0u64..1 << 50))
        .prop_map(|(step, pid, start_ticks)| What::ChildSpawned { step, pid, start_ticks }),
    // What a child says is recorded as its own line, except what is no line of its.
    Agent * 1 => (step(), text())
        .prop_map(|(step, message)| What::Agent { step, event: AgentEvent::ProtocolFailure { message } }),
    OutputLines * 1 => step().prop_map(|step| What::OutputLines { step, lines: Vec::new(), open: false }),
    OutputSeen * 1 => step().prop_map(|step| What::OutputSeen { step, bytes: 1 }),
    ChildExited * 1 => (step(), maybe(0i32..256), maybe(1i32..32))
        .prop_map(|(step, code, signal)| What::ChildExited { step, exit: ExitInfo { code, signal } }),
    OutputHeld * 1 => (step(), pids()).prop_map(|(step, pids)| What::OutputHeld { step, pids }),
    OutputTruncated * 1 => (step(), proptest::sample::select(vec![Stream::Out, Stream::Err, Stream::Own]), 0u64..1 << 50)
        .prop_map(|(step, stream, cap)| What::OutputTruncated { step, stream, cap }),
    LogFailed * 1 => (step(), text()).prop_map(|(step, error)| What::LogFailed { step, error }),
    ArtifactFailed * 1 => (step(), proptest::sample::select(Artifact::ALL.to_vec()), text())
        .prop_map(|(step, which, error)| What::ArtifactFailed { step, which, error }),
    StepEnded * 1 => (step(), outcome()).prop_map(|(step, o)| What::StepEnded { step, outcome: Box::new(o) }),
    RunInterrupted * 1 => maybe(source()).prop_map(|source| What::RunInterrupted { source }),
    RunStopped * 1 => (text(), maybe(source())).prop_map(|(message, source)| What::RunStopped { message, source }),
    RunTimedOut * 1 => (maybe(0u64..1 << 50), text(), maybe(source()))
        .prop_map(|(timeout_ms, message, source)| What::RunTimedOut { timeout_ms, message, source }),
    StepEnding * 1 => (step(), ending_cause(), text(), maybe(source()))
        .prop_map(|(step, cause, message, source)| What::StepEnding { step, cause, message, source }),
    AttemptEnded * 1 => (step(), 0i32..9, text(), next_attempt())
        .prop_map(|(step, exit_code, error, next)| What::AttemptEnded { step, exit_code, error, next }),
    AttentionRaised * 1 => (step(), notice()).prop_map(|(step, notice)| What::AttentionRaised { step, notice }),
    AttentionCleared * 1 => (step(), text()).prop_map(|(step, id)| What::AttentionCleared { step, id }),
    AttentionAcknowledged * 1 => (step(), text(), maybe(source()))
        .prop_map(|(step, id, source)| What::AttentionAcknowledged { step, id, source }),
    AttentionNoted * 1 => (step(), text())
        .prop_map(|(step, message)| What::AttentionNoted { step, reason: Reason::Idle, message }),
    QuestionAsked * 1 => (step(), question()).prop_map(|(step, question)| What::QuestionAsked { step, question }),
    QuestionAnswered * 1 => answered(),
    BudgetReached * 1 => (
        maybe(step()), metric(), proptest::sample::select(vec![Stage::Soft, Stage::Deferred, Stage::Hard]), amount(), any::<bool>(), text(),
    ).prop_map(|(step, metric, stage, amount, partial, message)| {
        What::BudgetReached { step, metric, stage, used: Used { amount, partial }, message }
    }),
    BudgetRaised * 1 => (maybe(step()), raise(), maybe(source()))
        .prop_map(|(step, raise, source)| What::BudgetRaised { step, raise, source }),
    DiskSpace * 1 => (0u64..1 << 40, any::<bool>()).prop_map(|(free, low)| What::DiskSpace { free, low }),
    InnerRuns * 1 => (step(), proptest::collection::vec(inner_run(), 0..3))
        .prop_map(|(step, runs)| What::InnerRuns { step, runs }),
    Slept * 1 => (0u64..1 << 40).prop_map(|ms| What::Slept { ms }),
    SteerRequested * 1 => steer_request().prop_map(|r| What::SteerRequested(Box::new(r))),
    SteerMoved * 1 => (text(), step(), target_state(), maybe(text()))
        .prop_map(|(id, step, to, detail)| What::SteerMoved { id, step, to, detail }),
    Capability * 1 => (step(), prop_oneof![Just(Steerable::Unknown), Just(Steerable::Yes), text().prop_map(Steerable::No)])
        .prop_map(|(step, steerable)| What::Capability { step, steerable }),
    ControlRejected * 1 => (text(), text(), any::<bool>())
        .prop_map(|(file, reason, set_aside)| What::ControlRejected { file, reason, set_aside }),
    ControlUnannounced * 1 => (proptest::option::of(step()), text(), source())
        .prop_map(|(step, what, source)| What::ControlUnannounced { step, what, source }),
    SignalSent * 1 => (step(), proptest::sample::select(vec!["SIGINT", "SIGTERM", "SIGKILL"]), any::<u32>(), any::<bool>(), ending_cause())
        .prop_map(|(step, signal, pid, group, cause)| What::SignalSent { step, signal, pid, group, cause }),
    AbortSent * 1 => step().prop_map(|step| What::AbortSent { step }),
    TreeSwept * 1 => (step(), pids(), pids())
        .prop_map(|(step, ended, survivors)| What::TreeSwept { step, ended, survivors }),
    RunEnded * 1 => (
        proptest::sample::select(vec![RunPhase::Complete, RunPhase::Failed, RunPhase::Stopped]), maybe(text()),
    ).prop_map(|(state, error)| What::RunEnded { state, error }),
    RunLost * 1 => text().prop_map(|message| What::RunLost { message }),
    Unknown * 1 => text().prop_map(|kind| What::Unknown { kind }),
} }

fn example_state() -> RunState {
    let mut state = RunState { id: RunId("r".into()), started_at: Some(at(0)), ..RunState::default() };
    for id in 0..3 {
        let agent = format!("agent {id}");
        state.steps.push(StepState { id: StepId(id), agent, logical: 1, ..StepState::default() });
    }
    state
}

proptest! {
    #[test]
    fn a_record_is_read_back_as_the_event_it_was(what in what(), us in 0i64..10_000_000) {
        let event = Event { at: at(0) + std::time::Duration::from_micros(us as u64), what };
        let state = example_state();
        let line = records::encode(&event, &RecordContext { state: &state });
        // What comes as it is printed, what only others say, and what nobody knows.
        let never = ["OutputLines", "OutputSeen", "AttentionNoted", "Unknown"].contains(&kind(&event.what));
        prop_assert_eq!(line.is_none(), never);
        let Some(line) = line else { return Ok(()) };
        prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert!(line.starts_with(b"{\"type\":\""), "the type stands first");
        let mut read = Vec::new();
        prop_assert!(records::decode(&line, &mut read));
        prop_assert_eq!(read, vec![event]);
    }

    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut read = Vec::new();
        records::decode(&line, &mut read);
    }

    #[test]
    fn an_annotated_line_belongs_to_the_child_whatever_it_says(
        kind in proptest::sample::select(vec!["subagent.run.completed", "subagent.run.repaired_stale", "tool_execution_start"]),
        text in text(), step in 0u32..1000, us in 0i64..10_000_000,
    ) {
        let spoof = serde_json::json!({
            "type": kind, "status": text, "subagentSource": "child", "subagentStepIndex": 77, "observedAt": 5,
            "nested": {"subagentSource": "child", "subagentStepIndex": 78},
        });
        let when = at(0) + std::time::Duration::from_micros(us as u64);
        let child = ChildContext { run_id: "r", step: StepId(step), agent: &text };
        for line in [spoof.to_string(), "{}".into(), " { } \r".into(), r#"{"a":"}"}"#.into()] {
            let mut out = Vec::new();
            prop_assert!(records::annotate(line.as_bytes(), &child, when, &mut out));
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
            let found = records::child_of(&out).unwrap();
            prop_assert_eq!((found.step, found.at()), (StepId(step), when));
            let mut read = Vec::new();
            records::decode(&out, &mut read);
            let of_agent = read.iter().all(|e| matches!(e.what, What::Agent { .. }));
            prop_assert!(of_agent);
        }
    }
}

#[test]
fn every_kind_of_event_is_looked_at() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for (name, strategy) in whats() {
        assert_eq!(kind(&proptest::strategy::ValueTree::current(&strategy.new_tree(&mut runner).unwrap())), name);
    }
}

#[test]
fn lines_that_are_no_objects_are_not_annotated() {
    let child = ChildContext { run_id: "r", step: StepId(0), agent: "a" };
    for line in ["", "text", "[1]", "{\"a\":1", "\"}\"", "}"] {
        let mut out = Vec::new();
        assert!(!records::annotate(line.as_bytes(), &child, at(0), &mut out), "{line}");
        assert!(out.is_empty());
    }
}

#[test]
fn the_annotation_has_the_fields_of_the_reference() {
    let child = ChildContext { run_id: "run", step: StepId(2), agent: "scout" };
    let mut out = Vec::new();
    records::annotate(br#"{"type":"agent_start"}"#, &child, Timestamp::from_millis(1_764_000_000_900), &mut out);
    records::plain_line(b"hi \"you\"", Stream::Err, &child, Timestamp::from_millis(7), &mut out);
    let want = "{\"type\":\"agent_start\",\"subagentSource\":\"child\",\"subagentRunId\":\"run\",\"subagentStepIndex\":2,\
                \"subagentAgent\":\"scout\",\"observedAt\":1764000000900}\n\
                {\"type\":\"subagent.child.stderr\",\"line\":\"hi \\\"you\\\"\",\"subagentSource\":\"child\",\
                \"subagentRunId\":\"run\",\"subagentStepIndex\":2,\"subagentAgent\":\"scout\",\"observedAt\":7}\n";
    assert_eq!(String::from_utf8(out).unwrap(), want);
}

#[test]
fn records_of_the_reference_are_read() {
    let table = [
        (
            r#"{"type":"subagent.step.completed","ts":1,"runId":"r","stepIndex":1.0,"agent":"a","exitCode":0,"tokens":null}"#,
            1,
        ),
        (r#"{"type":"subagent.control","event":{"type":"needs_attention","ts":5}}"#, 0),
        (r#"{"type":"subagent.run.process_terminal","ts":1,"runId":"r","processTerminal":{}}"#, 0),
        (r#"{"type":"subagent.workflow.trace","ts":1,"runId":"r","trace":[]}"#, 0),
        (r#"{"type":"of.tomorrow","ts":1.5}"#, 1),
        (r#"{"type":"subagent.step.started","ts":1,"runId":"r"}"#, 1),
    ];
    for (line, events) in table {
        let mut read = Vec::new();
        assert!(records::decode(line.as_bytes(), &mut read), "{line}");
        assert_eq!(read.len(), events, "{line}");
    }
    let mut read = Vec::new();
    assert!(!records::decode(b"{\"type\":\"torn", &mut read));
    assert!(read.is_empty());
}

proptest! {
    #[test]
    fn a_status_is_stable_when_it_is_read_and_written_again(events in proptest::collection::vec(what(), 0..30), meta in run_meta()) {
        // A group that points beyond the steps is dropped by the reader, which is another test's matter.
        let meta = RunMeta {
            groups: meta.steps.first().map(|_| Group { start: 0, count: meta.steps.len(), logical: 0 }).into_iter().collect(),
            logical_count: 1,
            ..meta
        };
        let mut state = RunState::default();
        reduce(&mut state, &Event { at: at(0), what: What::RunStarted(Box::new(meta)) });
        for (n, what) in events.into_iter().enumerate() {
            reduce(&mut state, &Event { at: at(n as i64), what });
        }
        let dir = RunDir::at("/runs/r");
        for instance in [None, Some("i")] {
            let context = StatusContext { dir: &dir, instance };
            let once = status::encode(&state, &context);
            let read = decode_status(&once).unwrap();
            let twice = status::encode(&read, &context);
            prop_assert_eq!(String::from_utf8(once).unwrap(), String::from_utf8(twice).unwrap());
        }
    }
}
