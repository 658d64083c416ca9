//! The event log alone, told to the reducer again, gives the state that the status has, conclusions included.

use proptest::prelude::*;
use serde_json::Value;

use crate::agents::pi;
use crate::run::story::{STEPS, begun, record, story};
use crate::run::*;
use crate::rundir::child_record::lean;
use crate::rundir::records::{self, ChildContext, RecordContext};
use crate::rundir::{RunDir, StatusContext, status};

/// What a status says that no record says: what children print as it comes, which is in logs of its own, and when the
/// newest of that came.
const NEVER_RECORDED: [&str; 5] = ["recentOutput", "lastActivityAt", "lastUpdate", "currentStep", "current"];

/// The status as JSON, without what is never recorded.
fn said(state: &RunState) -> Value {
    let dir = RunDir::at("/runs/r");
    let bytes = status::encode(state, &StatusContext { dir: &dir, instance: None });
    let mut value = serde_json::from_slice(&bytes).unwrap();
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !NEVER_RECORDED.contains(&key.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// A runner: the state, and the log beside it; `full` is a log at its cap, in which only lean records of children have a
/// place.
struct Runner {
    state: RunState,
    log: Vec<u8>,
    full: bool,
}

impl Runner {
    fn happened(&mut self, at: Timestamp, what: What) {
        match what {
            What::Agent { step, event } if !matches!(event, AgentEvent::ProtocolFailure { .. }) => {
                self.child_said(at, step, &event);
            }
            // Nobody can print in a step that is none, and nothing that is recorded would say that it was counted.
            What::OutputLines { step, .. } | What::OutputSeen { step, .. } if step.0 >= STEPS => {}
            // Of others' runners only.
            What::AttentionNoted { .. } | What::Unknown { .. } => {}
            what => {
                let event = Event { at, what };
                reduce(&mut self.state, &event);
                let never = matches!(event.what, What::OutputLines { .. } | What::OutputSeen { .. });
                let line = records::encode(&event, &RecordContext { state: &self.state });
                assert_eq!(line.is_none(), never, "{event:?}");
                self.log.extend(line.unwrap_or_default());
            }
        }
    }

    /// What a child says is what its line says: the line is recorded as it is, and what is read from it happens.
    fn child_said(&mut self, at: Timestamp, step: StepId, event: &AgentEvent) {
        let child = ChildContext { run_id: "r", step, agent: "a" };
        let mut line = Vec::new();
        match event {
            // A sign of life, and no record.
            AgentEvent::TextDelta { .. } | AgentEvent::ToolProgress { .. } | AgentEvent::Called { .. } => {
                return self.happened(at, What::OutputSeen { step, bytes: 1 });
            }
            AgentEvent::Unparsed { stream } => records::plain_line(b"text", *stream, &child, at, &mut line),
            AgentEvent::Unknown { kind } => {
                let record = format!("{{\"type\":\"{kind}\"}}");
                assert!(records::annotate(record.as_bytes(), &child, at, &mut line));
            }
            event => assert!(records::annotate(&pi::encode(event).unwrap(), &child, at, &mut line)),
        }
        let mut read = Vec::new();
        assert!(records::decode(&line, &mut read));
        read.iter().for_each(|event| reduce(&mut self.state, event));
        self.log.extend(if self.full { lean(&line).unwrap_or_default() } else { line });
    }
}

/// The state that the lines of a log give.
fn replayed(log: &[u8]) -> RunState {
    let mut events = Vec::new();
    for line in log.split(|byte| *byte == b'\n') {
        assert!(records::decode(line, &mut events), "{}", String::from_utf8_lossy(line));
    }
    let mut state = RunState::default();
    events.iter().for_each(|event| reduce(&mut state, event));
    state
}

/// The status of both; what a log at its cap leaves out because it says nothing of the state is not counted when it could
/// not have happened.
fn both(again: &RunState, runner: &Runner) -> [Value; 2] {
    [again, &runner.state].map(|state| {
        let mut state = state.clone();
        if runner.full {
            state.anomalies = 0;
        }
        said(&state)
    })
}

/// The places where two documents differ, for a person to read.
fn differences(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().for_each(|key| differences(&one[key], &other[key], &format!("{at}.{key}"), found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(n, (a, b))| differences(a, b, &format!("{at}[{n}]"), found));
        }
        _ if one == other => {}
        _ => found.push(format!("{at}: {one} by the log, {other} by the status")),
    }
}

fn check(meta: RunMeta, story: Vec<(Timestamp, What)>, full: bool) {
    let mut runner = Runner { state: RunState::default(), log: Vec::new(), full };
    runner.happened(Timestamp::from_millis(0), What::RunStarted(Box::new(meta)));
    for (at, what) in story {
        runner.happened(at, what);
        for effect in decide(&runner.state, at).due {
            runner.happened(at, record(&effect));
        }
    }
    let again = replayed(&runner.log);
    let [one, other] = both(&again, &runner);
    let mut found = Vec::new();
    differences(&one, &other, "", &mut found);
    assert!(found.is_empty(), "{found:#?}\n{}", String::from_utf8_lossy(&runner.log));
    assert_eq!((exit_code(&again), verdict(&again)), (exit_code(&runner.state), verdict(&runner.state)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_event_log_gives_the_state_of_the_status(meta in begun(), story in story(60, false)) {
        check(meta, story, false);
    }

    #[test]
    fn so_it_does_with_a_clock_that_is_set_back(meta in begun(), story in story(60, true)) {
        check(meta, story, false);
    }

    #[test]
    fn so_it_does_when_it_is_at_its_cap(meta in begun(), story in story(60, false)) {
        check(meta, story, true);
    }
}
