//! The indexes of a root: the marker of a live run and the entry of a finished one (run-directory 1.4, 1.5).
//!
//! Says what is to be written, and what a tool call leads to; whoever writes the status writes these behind it. Indexes are a convenience for listings:
//! that one cannot be written never fails a run (runner-behaviour 10).

use std::fs;
use std::path::PathBuf;

use super::json::Obj;
use super::write::Op;
use super::{ACTIVE, RunRoot, TERMINAL, is_run_id, open, segment};
use crate::run::{RunId, RunState};

/// The largest entry of an index that is read, in bytes.
const ENTRY_MOST: u64 = 64 * 1024;

/// The marker of a live run, to be made right behind its first status.
#[must_use]
pub fn active(root: &RunRoot, id: &RunId) -> Op {
    Op::Touch(root.active_marker(id))
}

/// That marker taken away, right behind the final status.
#[must_use]
pub fn inactive(root: &RunRoot, id: &RunId) -> Op {
    Op::Remove(root.active_marker(id))
}

/// The entry of a finished run; `None` for a run without a session or without an end (run-directory 1.5).
#[must_use]
pub fn terminal(root: &RunRoot, state: &RunState) -> Option<Op> {
    let session = state.session_id.as_deref().filter(|s| !s.is_empty())?;
    if !state.phase.is_terminal() {
        return None;
    }
    let ended = state.ended_at.or(state.last_update).or(state.started_at).unwrap_or_default().millis().max(0);
    let mut entry = Obj::new();
    entry.set("version", 1).set("runId", state.id.as_str()).set("sessionId", session).set("endedAt", ended);
    Some(Op::Replace(terminal_path(root, session, &state.id, ended), entry.pretty()))
}

/// The entry of a finished run; `None` for one that has none.
#[must_use]
pub fn entry_of(root: &RunRoot, state: &RunState) -> Option<PathBuf> {
    match terminal(root, state)? {
        Op::Replace(path, _) => Some(path),
        _ => None,
    }
}

fn terminal_path(root: &RunRoot, session: &str, id: &RunId, ended: i64) -> PathBuf {
    // The digits make names sort by time; the dash and `.json` take five bytes more than a stem leaves.
    let name = format!("{ended:016}-{}.json", segment::stem(id.as_str()));
    root.runs().join(TERMINAL).join(segment::folder(session)).join(name)
}

/// The runs that a tool call of a parent started, by the two indexes under its id: that of live workflow runs and that of
/// results (run-directory 1.1, 1.4, 5). They are written by pi-subagents for its own calls; no run of ours belongs to one.
#[must_use]
pub fn of_tool_call(root: &RunRoot, call: &str) -> Vec<RunId> {
    let name = segment::folder(call);
    let files = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let live = files(root.runs().join(ACTIVE).join("tool-calls").join(&name));
    let live = live.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let ended = files(root.results().join("result-index").join("tool-calls").join(&name));
    let ended = ended.filter_map(|path| {
        let entry = open::regular(&path).and_then(|f| open::read_at_most(&f, ENTRY_MOST)).ok()?;
        serde_json::from_slice::<serde_json::Value>(&entry).ok()?.get("runId")?.as_str().map(str::to_owned)
    });
    let mut ids: Vec<RunId> = live.chain(ended).filter(|id| is_run_id(id)).map(RunId).collect();
    ids.sort();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunPhase, Timestamp};

    #[test]
    fn a_finished_run_is_indexed_under_its_session() {
        let root = RunRoot::at("/r");
        let mut state = RunState {
            id: RunId("5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001".into()),
            session_id: Some("direct-run-session".into()),
            phase: RunPhase::Complete,
            ended_at: Some(Timestamp::from_micros(1_764_000_061_500_900)),
            ..RunState::default()
        };
        let Some(Op::Replace(path, bytes)) = terminal(&root, &state) else { panic!("an entry") };
        let want = "/r/async-subagent-runs/.terminal-runs/direct-run-session/0001764000061500-5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001.json";
        assert_eq!(path, PathBuf::from(want));
        let entry: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            entry,
            serde_json::json!({"version": 1, "runId": state.id.as_str(), "sessionId": "direct-run-session", "endedAt": 1_764_000_061_500_i64})
        );
        state.phase = RunPhase::Running;
        assert_eq!(terminal(&root, &state), None);
        state.phase = RunPhase::Failed;
        state.session_id = Some(String::new());
        assert_eq!(terminal(&root, &state), None);
    }

    #[test]
    fn a_tool_call_leads_to_its_runs_live_and_ended() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        assert!(of_tool_call(&root, "call_1").is_empty());
        let put = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // The id of a call is no path, whatever it looks like.
        let call = "call_1|fc/../2";
        let name = "call_1%7Cfc%2F..%2F2";
        let results = root.results().join("result-index/tool-calls").join(name);
        put(root.runs().join(".active-runs/tool-calls").join(name).join("live"), "");
        put(results.join("ended.json"), r#"{"version": 1, "runId": "ended", "file": "ended.json"}"#);
        put(results.join("live.json"), r#"{"version": 1, "runId": "live"}"#);
        put(results.join("outside.json"), r#"{"version": 1, "runId": "../x"}"#);
        put(results.join("torn.json"), r#"{"version": 1, "run"#);
        assert_eq!(of_tool_call(&root, call), [RunId("ended".into()), RunId("live".into())]);
    }

    #[test]
    fn the_marker_is_the_raw_id() {
        let root = RunRoot::at("/r");
        let id = RunId("a b".into());
        let path = PathBuf::from("/r/async-subagent-runs/.active-runs/a b");
        assert_eq!(active(&root, &id), Op::Touch(path.clone()));
        assert_eq!(inactive(&root, &id), Op::Remove(path));
    }
}
