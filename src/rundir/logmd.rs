//! The run log for people, `subagent-log-<id>.md` (run-directory 2.7, runner-behaviour 11).

use std::fmt::Write;
use std::time::Duration;

use super::{ResultContext, status};
use crate::run::{RunState, Timestamp};

/// The document; `result` has the final texts of the steps that ran.
#[must_use]
pub fn encode(state: &RunState, result: &ResultContext) -> Vec<u8> {
    let mut text = format!("# Subagent run {}\n\n", state.id.as_str());
    let mut bullet = |name: &str, value: &str| {
        // Writing into memory cannot fail.
        let _ = writeln!(text, "- **{name}:** {}", one_line(value));
    };
    bullet("Mode", status::mode_word(&state.mode));
    bullet("CWD", &state.cwd);
    let (start, end) = (state.started_at.unwrap_or_default(), state.ended_at.unwrap_or_default());
    bullet("Started", &iso(start));
    bullet("Ended", &iso(end));
    bullet("Duration", &duration(end.since(start)));
    if let Some(session) = state.last_started.and_then(|id| state.step(id)).and_then(|s| s.session_file.as_ref()) {
        bullet("Session", session);
    }
    if let Some(folder) = &state.contract.artifacts_dir {
        bullet("Artifacts", folder);
    }
    text.push_str("\n## Steps\n| Step | Agent | Status | Duration |\n| --- | --- | --- | --- |\n");
    for step in &state.steps {
        let took = match (step.started_at, step.ended_at) {
            (Some(start), Some(end)) => duration(end.since(start)),
            _ => "-".into(),
        };
        let agent = one_line(&step.agent).replace('|', "\\|");
        let _ = writeln!(text, "| {} | {agent} | {} | {took} |", step.id.number(), step.phase.as_str());
    }
    text.push_str("\n## Summary\n");
    let (summary, _) = result.summary(state);
    text.push_str(if summary.trim().is_empty() { "_No output._" } else { &summary });
    text.push('\n');
    text.into_bytes()
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

/// Below a second in milliseconds, below a minute with one decimal, else minutes and seconds.
fn duration(span: Duration) -> String {
    let ms = span.as_millis();
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{:.1}s", span.as_secs_f64()),
        _ => format!("{}m{}s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// The moment as `2025-11-24T16:00:00.000Z`.
fn iso(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.millis()).map_or_else(|_| "-".into(), |t| format!("{t:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunId, RunMode, StepId, StepPhase, StepState};

    #[test]
    fn the_log_has_the_shape_that_people_know() {
        let at = |ms: i64| Some(Timestamp::from_millis(1_764_000_000_000 + ms));
        let step = |id: u32, agent: &str, phase, from, to| StepState {
            id: StepId(id),
            agent: agent.into(),
            phase,
            started_at: from,
            ended_at: to,
            ..StepState::default()
        };
        let state = RunState {
            id: RunId("run-1".into()),
            mode: RunMode::Chain,
            cwd: "/home/demo/project".into(),
            started_at: at(0),
            ended_at: at(61_500),
            steps: vec![
                step(0, "scout", StepPhase::Complete, at(0), at(20_000)),
                step(1, "wor|ker", StepPhase::Stopped, at(20_000), at(20_000)),
                step(2, "writer", StepPhase::Pending, None, None),
            ],
            ..RunState::default()
        };
        let want = "\
# Subagent run run-1

- **Mode:** chain
- **CWD:** /home/demo/project
- **Started:** 2025-11-24T16:00:00.000Z
- **Ended:** 2025-11-24T16:01:01.500Z
- **Duration:** 1m1s

## Steps
| Step | Agent | Status | Duration |
| --- | --- | --- | --- |
| 1 | scout | complete | 20.0s |
| 2 | wor\\|ker | stopped | 0ms |
| 3 | writer | pending | - |

## Summary
scout:
Found it.

wor|ker:

";
        let result = ResultContext { texts: [(StepId(0), "Found it.".to_owned())].into(), ..ResultContext::default() };
        assert_eq!(String::from_utf8(encode(&state, &result)).unwrap(), want);
        let none = encode(&RunState::default(), &ResultContext::default());
        assert!(none.ends_with(b"## Summary\n_No output._\n"));
    }
}
