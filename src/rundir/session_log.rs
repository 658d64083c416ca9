//! What a session file of pi tells of a child whose output nobody kept: a workflow's parent records nothing of the
//! children that it runs itself (run-directory 2.8, 2.17), but each of them writes its session.
//!
//! A session holds whole messages and not what happened between them, so calls begin with the message that asks for
//! them and end with their result.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::child_record::{ChildContext, annotate};
use super::{RunDir, records};
use crate::run::{Event, RunMode, RunState, StepId, StepPhase, Timestamp};

/// A step whose session is to be read.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) step: StepId,
    pub(super) agent: String,
    pub(super) started: Timestamp,
    pub(super) session: PathBuf,
}

/// The steps of a workflow that ran in its parent, and whose sessions belong to whom the run belongs to. The path of a
/// session comes from a file, so no other one is read (trap 27).
pub(super) fn children(dir: &RunDir, state: &RunState) -> Vec<Child> {
    if state.mode != RunMode::Workflow {
        return Vec::new();
    }
    let Ok(owner) = fs::metadata(dir.path()).map(|meta| meta.uid()) else { return Vec::new() };
    let own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.uid() == owner);
    let steps = state.steps.iter().filter(|step| step.own_run.is_none() && step.phase != StepPhase::Pending);
    let child = |step: &crate::run::StepState| {
        let session = PathBuf::from(step.session_file.as_deref()?);
        let named = session.is_absolute() && session.extension().is_some_and(|e| e == "jsonl");
        let started = step.started_at.or(state.started_at).unwrap_or_default();
        (named && own(&session)).then(|| Child { step: step.id, agent: step.agent.clone(), started, session })
    };
    steps.filter_map(child).collect()
}

/// Reads a line of a session as what happened to its step. Returns whether it could be read.
pub(super) fn decode(line: &[u8], child: &Child, run: &str, events: &mut Vec<Event>) -> bool {
    let Ok(entry) = serde_json::from_slice::<Value>(line) else { return false };
    let Some(message) = entry.get("message").filter(|_| entry.get("type").is_some_and(|t| t == "message")) else {
        return true;
    };
    let context = ChildContext { run_id: run, step: child.step, agent: &child.agent };
    let at = time(&entry, message).unwrap_or(child.started);
    let mut tell = |record: &Value| {
        let mut annotated = Vec::new();
        annotate(record.to_string().as_bytes(), &context, at, &mut annotated)
            && records::decode(annotated.trim_ascii_end(), events)
    };
    let text = |key: &str| message.get(key).cloned().unwrap_or(Value::Null);
    match message.get("role").and_then(Value::as_str) {
        Some("toolResult") => tell(&json!({
            "type": "tool_execution_end", "toolCallId": text("toolCallId"), "toolName": text("toolName"),
            "result": { "content": text("content") }, "isError": text("isError"),
        })),
        Some("user") => tell(&json!({ "type": "message_end", "message": message })),
        Some("assistant") => {
            let mut good = tell(&json!({ "type": "message_end", "message": message }));
            let parts = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for call in parts.iter().filter(|part| part.get("type").is_some_and(|t| t == "toolCall")) {
                good &= tell(&json!({
                    "type": "tool_execution_start", "toolCallId": call.get("id"), "toolName": call.get("name"),
                    "args": call.get("arguments"),
                }));
            }
            good
        }
        _ => true,
    }
}

/// When an entry was written; where it does not say so, when its message was begun.
fn time(entry: &Value, message: &Value) -> Option<Timestamp> {
    let written = entry.get("timestamp").and_then(Value::as_str).and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let written = written.map(|at| Timestamp::from_micros(at.as_microsecond()));
    written.or_else(|| message.get("timestamp").and_then(Value::as_f64).map(Timestamp::from_millis_f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{StepState, ToolOutcome};
    use crate::rundir::Follower;

    const SESSION: &str = concat!(
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-29T11:33:17.000Z","cwd":"/x"}"#,
        "\n",
        r#"{"type":"message","id":"1","timestamp":"2026-11-29T11:33:18.000Z","message":{"role":"user","content":[{"type":"text","text":"Task: look around"}]}}"#,
        "\n",
        r#"{"type":"message","id":"2","timestamp":"2026-11-29T11:33:19.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}},{"type":"toolCall","id":"c2","name":"read","arguments":{"path":"a"}}],"model":"fake-1","usage":{"input":100,"output":20,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.002}},"stopReason":"toolUse"}}"#,
        "\n",
        r#"{"type":"message","id":"3","timestamp":"2026-11-29T11:33:20.000Z","message":{"role":"toolResult","toolCallId":"c2","toolName":"read","content":[{"type":"text","text":"no such file"}],"isError":true}}"#,
        "\n",
    );

    #[test]
    fn a_child_of_a_workflow_has_the_history_of_its_session() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("w-1"));
        fs::create_dir(dir.path()).unwrap();
        let session = temp.path().join("session.jsonl");
        fs::write(&session, SESSION).unwrap();
        let status = |session: &Path, more: &str| {
            let text = format!(
                r#"{{"runId":"w-1","mode":"workflow","state":"running","startedAt":1795951997000,
                "lastUpdate":1795952000000,"pid":{},"steps":[{{"agent":"scout","status":"running","async":false,
                "startedAt":1795951997100,"turnCount":1,"toolCount":2,"currentTool":"bash","sessionFile":"{}",
                "recentTools":[{{"tool":"read","args":"a","endMs":1795952000000}}]{more}}}]}}"#,
                std::process::id(),
                session.display()
            );
            fs::write(dir.status(), text).unwrap();
        };
        status(&session, "");
        let look = || {
            let mut follower = Follower::open(dir.path()).unwrap();
            let news = follower.poll().news.len();
            assert_eq!((follower.state().anomalies, follower.notices()), (0, Vec::new()));
            (follower.state().steps[0].clone(), news)
        };
        let (step, news) = look();
        assert!(news >= 5, "{news}");
        assert_eq!((step.tokens.input, step.tokens.output, step.cost.map(|c| c.0)), (100, 20, Some(0.002)));
        assert_eq!(step.last_message.as_deref(), Some("Looking."));
        assert_eq!(step.recent_tools[0].outcome, Some(ToolOutcome::Error));
        let open: Vec<_> = step.open.iter().map(|call| (call.tool.as_str(), call.call.as_deref())).collect();
        assert_eq!(open, [("bash", Some("c1"))]);
        // What is not there, or is a link, is not made up and not read.
        let link = temp.path().join("link.jsonl");
        std::os::unix::fs::symlink(&session, &link).unwrap();
        for path in [temp.path().join("none.jsonl"), link] {
            status(&path, "");
            let (step, _) = look();
            assert_eq!((step.cost, step.last_message, step.recent_tools[0].outcome), (None, None, None));
        }
        // A step that is a run of its own tells there.
        status(&session, r#","async":true,"runId":"r-2""#);
        assert_eq!(look().0.last_message, StepState::default().last_message);
    }
}
