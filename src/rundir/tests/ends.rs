//! How a run ends, as its files tell it: every combination of what can happen to a run of a few steps, told to the reducer
//! as events, against the order of reasons of runner-behaviour 11 (check 52).
//!
//! What is expected is written down here, by hand, in lists of which the first line that is true decides. Where it is not
//! the section's own word:
//! - A child that was killed from outside has failed (trap 32), so a signal is a failure like others.
//! - Result and status agree; in the reference they need not (section 11, result.state).
//! - A step that somebody stopped alone leaves the run stopped when nothing else went wrong (run-directory 8).
//! - What took too long in one step is a failure of the run, and its time only for the exit code (product 2).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::{
    EndingCause, Event, ExitCause, Metric, RunId, RunMeta, RunState, Stage, StepId, StepMeta, StepOutcome, StepPhase,
    Timestamp, Used, What, exit_code, reduce, verdict,
};
use crate::rundir::records::{self, RecordContext};
use crate::rundir::{Op, ResultContext, RunDir, StatusContext, status};

/// What may happen, in the order in which it is told.
const FLAGS: [&str; 11] = [
    "step failed",
    "step timed out",
    "step over its turns",
    "step stopped",
    "step killed",
    "step rejected",
    "step pending",
    "run over budget",
    "interrupted",
    "run timed out",
    "stopped",
];

/// The state of status, result and last record: the first that is true.
const STATES: [(&str, &str); 11] = [
    ("stopped", "stopped"),
    ("run timed out", "failed"),
    ("step over its turns", "failed"),
    ("run over budget", "failed"),
    ("interrupted", "paused"),
    ("step failed", "failed"),
    ("step timed out", "failed"),
    ("step killed", "failed"),
    ("step rejected", "failed"),
    ("step stopped", "stopped"),
    ("step pending", "failed"),
];

/// The error of the run; a run that neither failed nor was ended by something has none. Of several failed steps the first
/// is named.
const ERRORS: [(&str, Option<&str>); 11] = [
    ("stopped", Some("Subagent stopped by user.")),
    ("run timed out", Some("Subagent timed out after 5ms.")),
    ("run over budget", Some("The run is over budget.")),
    ("step over its turns", Some("c took too many turns.")),
    ("interrupted", None),
    ("step failed", Some("Step failed: a")),
    ("step timed out", Some("Step failed: b")),
    ("step killed", Some("Step failed: e")),
    ("step rejected", Some("Step failed: f")),
    ("step stopped", None),
    ("step pending", Some("Not every step was run.")),
];

/// The summary of the result: the reason, else what the steps said.
const SUMMARIES: [(&str, &str); 5] = [
    ("stopped", "Subagent stopped by user."),
    ("run timed out", "Subagent timed out after 5ms."),
    ("step over its turns", "c took too many turns."),
    ("run over budget", "The run is over budget."),
    ("interrupted", "Paused by an interrupt; it goes on when somebody resumes it."),
];
const SAID: &str = "a:\nI am a.\n\nb:\n\n\nc:\nI am c.\n\nd:\nI am d.\n\ne:\nI am e.\n\nf:\nI am f.";

/// The exit code in the result (runner-behaviour 11).
const RESULT_CODES: [(&str, i64); 11] = [
    ("stopped", 1),
    ("run timed out", 1),
    ("step over its turns", 1),
    ("run over budget", 1),
    ("interrupted", 0),
    ("step failed", 1),
    ("step timed out", 1),
    ("step killed", 1),
    ("step rejected", 1),
    ("step stopped", 1),
    ("step pending", 1),
];

/// The exit code of our commands (product 2).
const CODES: [(&str, ExitCause); 11] = [
    ("stopped", ExitCause::Stopped),
    ("run timed out", ExitCause::TimedOut),
    ("step timed out", ExitCause::TimedOut),
    ("run over budget", ExitCause::OverBudget),
    ("step over its turns", ExitCause::OverBudget),
    ("step failed", ExitCause::Failed),
    ("step killed", ExitCause::Failed),
    ("step rejected", ExitCause::Failed),
    ("interrupted", ExitCause::Paused),
    ("step stopped", ExitCause::Stopped),
    ("step pending", ExitCause::Failed),
];

fn first<T: Copy>(list: &[(&str, T)], has: impl Fn(&str) -> bool, none: T) -> T {
    list.iter().find(|(flag, _)| has(flag)).map_or(none, |(_, value)| *value)
}

/// A run of six steps, and one that is never begun, to which these things happen.
fn told(has: impl Fn(&str) -> bool) -> RunState {
    let mut state = RunState::default();
    let mut clock = 0;
    let mut tell = |what: What| {
        clock += 1;
        reduce(&mut state, &Event { at: Timestamp::from_millis(clock), what });
    };
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let names = names.into_iter().filter(|name| *name != "g" || has("step pending"));
    let steps = names.map(|name| StepMeta { key: name.into(), agent: name.into(), ..StepMeta::default() });
    tell(What::RunStarted(Box::new(RunMeta {
        id: RunId("r".into()),
        session_id: Some("s".into()),
        steps: steps.collect(),
        logical_count: 6,
        ..RunMeta::default()
    })));
    for n in 0..6 {
        let step = StepId(n);
        tell(What::StepStarted { step });
        tell(What::AttemptStarted { step, attempt: 1, model: None, reason: None });
        let failed = |error: &str| StepOutcome {
            phase: StepPhase::Failed,
            exit_code: 1,
            error: Some(error.into()),
            ..StepOutcome::default()
        };
        let ending = |cause, message: &str| What::StepEnding { step, cause, message: message.into(), source: None };
        let outcome = match n {
            0 if has("step failed") => StepOutcome { exit_code: 3, ..failed("a broke") },
            1 if has("step timed out") => {
                tell(ending(EndingCause::ToolTimeout, "Tool 'bash' timed out after 5ms."));
                StepOutcome { timed_out: true, ..failed("Tool 'bash' timed out after 5ms.") }
            }
            2 if has("step over its turns") => {
                let (metric, stage, message) = (Metric::Turns, Stage::Hard, "c took too many turns.".to_owned());
                tell(What::BudgetReached { step: Some(step), metric, stage, used: Used::all(3.0), message });
                failed("c took too many turns.")
            }
            3 if has("step stopped") => {
                tell(ending(EndingCause::StepStop, "Subagent stopped by user."));
                StepOutcome { phase: StepPhase::Stopped, stopped: true, ..failed("Subagent stopped by user.") }
            }
            4 if has("step killed") => {
                StepOutcome { signal: Some(9), ..failed("Subagent terminated by signal SIGKILL") }
            }
            5 if has("step rejected") => {
                StepOutcome { phase: StepPhase::Rejected, ..failed("Acceptance rejected: no.") }
            }
            _ => StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() },
        };
        tell(What::StepEnded { step, outcome: Box::new(outcome) });
    }
    if has("run over budget") {
        let (metric, stage, message) = (Metric::Tokens, Stage::Hard, "The run is over budget.".to_owned());
        tell(What::BudgetReached { step: None, metric, stage, used: Used::all(9.0), message });
    }
    if has("interrupted") {
        tell(What::RunInterrupted { source: None });
    }
    if has("run timed out") {
        tell(What::RunTimedOut { timeout_ms: Some(5), message: "Subagent timed out after 5ms.".into(), source: None });
    }
    if has("stopped") {
        tell(What::RunStopped { message: "Subagent stopped by user.".into(), source: None });
    }
    state
}

#[test]
fn check_52_the_first_of_several_reasons_decides_what_every_file_says() {
    let dir = RunDir::at("/runs/r");
    let text = |n: u32| (StepId(n), format!("I am {}.", ["a", "b", "c", "d", "e", "f"][n as usize]));
    let context = ResultContext {
        // The second one said nothing.
        texts: BTreeMap::from([0, 2, 3, 4, 5].map(text)),
        ..ResultContext::of_run(&dir, None)
    };
    for flags in 0..1u32 << FLAGS.len() {
        let has = |name: &str| flags & 1 << FLAGS.iter().position(|flag| *flag == name).unwrap() != 0;
        let names: Vec<&str> = FLAGS.into_iter().filter(|name| has(name)).collect();
        let mut state = told(has);
        let end = verdict(&state);
        let ended =
            Event { at: Timestamp::from_millis(99), what: What::RunEnded { state: end.phase, error: end.error } };
        reduce(&mut state, &ended);

        let word = first(&STATES, has, "complete");
        let error = first(&ERRORS, has, None);
        let written: Value =
            serde_json::from_slice(&status::encode(&state, &StatusContext { dir: &dir, instance: None })).unwrap();
        assert_eq!((written["state"].as_str(), written["error"].as_str()), (Some(word), error), "{names:?}");
        assert_eq!(written["endedAt"], 99, "{names:?}");

        let Op::Keep(_, bytes) = context.steps(&state, Timestamp::from_millis(99)).unwrap().pending else { panic!() };
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((result["state"].as_str(), result["error"].as_str()), (Some(word), error), "{names:?}");
        assert_eq!(result["success"], names.is_empty(), "{names:?}");
        assert_eq!(result["summary"], first(&SUMMARIES, has, SAID), "{names:?}");
        assert_eq!(result["exitCode"], first(&RESULT_CODES, has, 0), "{names:?}");
        let flag = |key: &str| result.get(key).is_some_and(|value| *value == true);
        assert_eq!(flag("stopped"), has("stopped"), "{names:?}");
        assert_eq!(flag("timedOut"), has("run timed out") && !has("stopped"), "{names:?}");
        // Who never began has no entry, unless the end of the run ended it too.
        let entries = 6 + usize::from(has("step pending") && (has("stopped") || has("run timed out")));
        assert_eq!(result["results"].as_array().unwrap().len(), entries, "{names:?}");

        let record = records::encode(&ended, &RecordContext { state: &state }).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        assert_eq!((&record["type"], &record["status"]), (&"subagent.run.completed".into(), &word.into()), "{names:?}");
        assert_eq!(exit_code(&state), first(&CODES, has, ExitCause::Complete), "{names:?}");
    }
}
