//! Runs that other programs wrote are read without a change on their side, and reading writes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use subdeck::run::{RunMode, RunState, StepFace, TargetState, ToolOutcome, What};
use subdeck::rundir::{Follower, Health, decode_status};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(name)
}

fn followed(name: &str) -> Follower {
    let mut follower = Follower::open(&fixture(name)).unwrap();
    follower.poll();
    assert_eq!(follower.notices(), Vec::<String>::new(), "{name}");
    assert_eq!(follower.state().anomalies, 0, "{name}");
    follower
}

fn phases(state: &RunState) -> Vec<&str> {
    std::iter::once(state.phase.as_str()).chain(state.steps.iter().map(|s| s.phase.as_str())).collect()
}

#[test]
fn every_run_has_the_states_that_its_files_say() {
    let table: [(&str, &[&str]); 7] = [
        ("finished-single", &["complete", "complete"]),
        // Of the two that were caught in the middle the runner is long gone, and nobody wrote an end.
        ("running-parallel", &["running", "lost", "lost", "pending"]),
        ("failed-chain", &["failed", "complete", "failed", "pending"]),
        ("steered", &["complete", "complete"]),
        ("interrupted", &["paused", "paused"]),
        ("workflow", &["complete", "complete", "complete", "complete"]),
        ("parallel-under-way", &["running", "lost", "complete", "lost", "failed"]),
    ];
    for (name, want) in table {
        let follower = followed(name);
        assert_eq!(phases(follower.state()), want, "{name}");
        let over = follower.state().ended_at.is_some();
        assert_eq!(follower.health() == &Health::Over, over, "{name}: {:?}", follower.health());
    }
}

#[test]
fn a_finished_run_keeps_its_history() {
    let follower = followed("finished-single");
    let state = follower.state();
    let step = &state.steps[0];
    assert_eq!((state.mode.clone(), state.session_id.is_some(), state.logical_count), (RunMode::Single, true, 1));
    assert_eq!(state.elapsed(Default::default()).unwrap().as_millis(), 61_500);
    assert_eq!((step.tool_count, step.turn_count, step.tokens.input, step.tokens.output), (2, 2, 5400, 310));
    assert_eq!(step.cost.unwrap().0, 0.0184);
    assert_eq!(step.last_message.as_deref(), Some("Found two modules; the parser lives in src/lib.rs."));
    let outcomes: Vec<_> = step.recent_tools.iter().map(|t| (t.tool.as_str(), t.outcome)).collect();
    assert_eq!(outcomes, [("ls", Some(ToolOutcome::Ok)), ("read", Some(ToolOutcome::Ok))]);
    assert_eq!(step.steering.recent[0].targets[0].state, TargetState::Delivered);
    assert_eq!(step.model.as_deref(), Some("demo/small-1:low"));
}

#[test]
fn a_running_run_shows_what_is_open_and_what_is_wanted() {
    // With a runner that lives: this process stands for it.
    let temp = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture("running-parallel")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let text = text.replace("\"pid\": 4194303", &format!("\"pid\": {}", std::process::id()));
        fs::write(temp.path().join(entry.file_name()), text).unwrap();
    }
    let mut follower = Follower::open(temp.path()).unwrap();
    follower.poll();
    let state = follower.state();
    assert_eq!(state.steps[0].face(), StepFace::Attention);
    let call = state.steps[1].current_call().unwrap();
    assert_eq!((call.tool.as_str(), call.call.as_deref()), ("bash", Some("b3")));
    assert_eq!(state.steps[1].last_activity.unwrap().micros(), 1_764_000_693_950_250);
    let waits: Vec<_> = state.steering.recent.iter().map(|r| r.targets[0].state).collect();
    assert_eq!(waits, [TargetState::Queued, TargetState::Scheduled]);
    assert_eq!(state.groups.len(), 1);
    assert!(state.steps.iter().all(|s| s.logical == 0));
}

#[test]
fn open_calls_of_a_run_under_way_have_their_ids() {
    let follower = followed("parallel-under-way");
    let open: Vec<_> = follower.state().steps.iter().flat_map(|s| &s.open).collect();
    assert_eq!(open.len(), 1);
    assert!(open[0].call.is_some());
    let failed = &follower.state().steps[1].recent_tools;
    assert!(failed.iter().all(|t| t.outcome == Some(ToolOutcome::Error)), "{failed:?}");
}

#[test]
fn tokens_that_a_chain_lost_come_from_its_events() {
    let follower = followed("failed-chain");
    let state = follower.state();
    assert_eq!(state.error.as_deref(), Some("Step failed: worker"));
    assert_eq!(state.steps[0].tokens.total(), 300);
    assert_eq!(state.steps[2].logical, 2);
}

#[test]
fn an_interrupted_run_was_interrupted_and_is_over() {
    let follower = followed("interrupted");
    assert!(follower.state().interrupted && follower.is_over());
    let step = &follower.state().steps[0];
    // Its status still names the tool that was open; nothing is current in a step that does not run.
    assert!(step.current_call().is_none());
    assert_eq!((step.exit_code, step.error.as_deref()), (Some(0), None));
}

#[test]
fn a_message_is_followed_from_request_to_delivery() {
    let mut follower = Follower::open(&fixture("steered")).unwrap();
    let news = follower.poll().news;
    let moves: Vec<TargetState> = news
        .iter()
        .filter_map(|e| match &e.what {
            What::SteerMoved { to, .. } => Some(*to),
            _ => None,
        })
        .collect();
    assert_eq!(moves, [TargetState::Routed, TargetState::Delivered]);
}

#[test]
fn reading_changes_nothing() {
    let contents = |dir: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
        fs::read_dir(dir).unwrap().flatten().map(|e| (e.path(), fs::read(e.path()).unwrap())).collect()
    };
    for name in ["finished-single", "running-parallel", "workflow"] {
        let temp = tempfile::tempdir().unwrap();
        for (path, bytes) in contents(&fixture(name)) {
            fs::write(temp.path().join(path.file_name().unwrap()), bytes).unwrap();
        }
        let before = contents(temp.path());
        let mut follower = Follower::open(temp.path()).unwrap();
        follower.poll();
        follower.poll();
        assert_eq!(contents(temp.path()), before, "{name}");
    }
}

#[test]
fn any_damage_to_a_status_is_survived() {
    let whole = fs::read_to_string(fixture("running-parallel").join("status.json")).unwrap();
    // Every type is exchanged for every other somewhere.
    for (from, to) in [
        ("\"steps\": [", "\"steps\": 7, \"x\": ["),
        ("\"running\"", "17"),
        ("1764000600000", "\"soon\""),
        ("1764000600000", "-1e300"),
        ("\"targets\": [", "\"targets\": [null, 3, {\"index\": -1}, "),
        ("\"index\": 1", "\"index\": 99999999999"),
        ("\"agent\": \"worker\"", "\"agent\": null"),
        ("\"count\": 3", "\"count\": 4000000000"),
        ("\"pid\": 4194303", "\"pid\": \"x\""),
        ("\"recentOutput\": [\n", "\"recentOutput\": [{}, 1, null, "),
    ] {
        let damaged = whole.replace(from, to);
        assert_ne!(damaged, whole, "{from}");
        let state = decode_status(damaged.as_bytes()).unwrap();
        // What is made of it must hold too.
        let faces: Vec<StepFace> = state.steps.iter().map(|s| s.face()).collect();
        let _ = (state.tokens(), state.cost(), faces);
    }
    let with_mark = [b"\xef\xbb\xbf", whole.as_bytes()].concat();
    assert_eq!(decode_status(&with_mark).unwrap(), decode_status(whole.as_bytes()).unwrap());
    for end in (0..whole.len()).step_by(97) {
        assert!(decode_status(whole.as_bytes().get(..end).unwrap()).is_err());
    }
}
