//! The report for programs.

use serde_json::{Value, json};

use super::NO_PROMPT;
use super::gather::{Report, scrub};
use crate::headless::{VERSION, status_json, without_nulls};
use crate::run::Timestamp;
use crate::run::ToolOutcome;
use crate::rundir::records::stream_word;

/// The whole report. The run is that of `status --json`, its events are those of `events --json`.
#[must_use]
pub fn json(report: &Report, prompts: bool) -> Value {
    let mut run = status_json(&report.state);
    if !prompts {
        forget_messages(&mut run);
    }
    scrub(&mut run);
    let calls = report.calls.iter().map(|call| {
        json!({
            "step": call.step.number(), "call": call.id, "tool": call.tool, "args": call.args,
            "arguments": call.whole,
            "started_at": call.started.millis(), "ended_at": call.ended.map(Timestamp::millis),
            "outcome": call.outcome.map(ToolOutcome::as_str),
        })
    });
    let thoughts = report
        .thoughts
        .iter()
        .map(|thought| json!({ "step": thought.step.number(), "ts": thought.at.millis(), "text": thought.text }));
    let outputs = report.outputs.iter().map(|part| {
        let lines = part.lines.iter().map(|(styled, line)| {
            let text: String = styled.runs.iter().map(|run| run.text.as_str()).collect();
            json!({
                "stream": stream_word(line.stream), "ts": line.at.map(Timestamp::millis), "attempt": line.attempt,
                "text": text,
            })
        });
        json!({
            "step": part.step.number(), "bytes": part.len, "bytes_left_out": part.left_out,
            "lines": lines.collect::<Vec<_>>(),
        })
    });
    let tasks = report.tasks.iter().map(|(step, task)| json!({ "step": step.number(), "task": task }));
    without_nulls(json!({
        "v": VERSION,
        "run": run,
        "lost": report.lost,
        "prompts": prompts,
        "tasks": prompts.then(|| tasks.collect::<Vec<_>>()),
        "thoughts": thoughts.collect::<Vec<_>>(),
        "tool_calls": calls.collect::<Vec<_>>(),
        "tool_calls_left_out": report.calls_left_out,
        "events": report.events,
        "events_left_out": report.events_left_out,
        "outputs": outputs.collect::<Vec<_>>(),
        "notices": report.notices,
    }))
}

/// Takes the words of messages to agents out of a status.
fn forget_messages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "preview" && value.is_string() {
                    *value = NO_PROMPT.into();
                } else {
                    forget_messages(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forget_messages),
        _ => {}
    }
}
