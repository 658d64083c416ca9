//! A root with runs for tests of fleets and lists of them.

use std::fs;
use std::time::Duration;

use super::Fleet;
use crate::run::{CostUsd, RunId, RunPhase, RunState, StepPhase, StepState, Timestamp, Tokens};
use crate::rundir::{RunDir, RunRoot, StatusContext, replace, status};

pub(crate) const ALL: Duration = Duration::from_secs(60);

pub(crate) fn put(dir: &RunDir, state: &RunState) {
    fs::create_dir_all(dir.path()).unwrap();
    replace(&dir.status(), &status::encode(state, &StatusContext { dir, instance: None })).unwrap();
}

pub(crate) fn state(id: &str, name: &str, phase: RunPhase, started: i64) -> RunState {
    let over = phase.is_terminal();
    let step = StepState {
        agent: "worker".into(),
        model: Some("vendor/large:low".into()),
        cost: Some(CostUsd(0.5)),
        tokens: Tokens { input: 10, ..Tokens::default() },
        phase: if over { StepPhase::Complete } else { StepPhase::Running },
        started_at: Some(Timestamp::from_millis(started)),
        ended_at: over.then(|| Timestamp::from_millis(started + 10)),
        ..StepState::default()
    };
    RunState {
        id: RunId(id.into()),
        name: Some(name.into()),
        pid: Some(std::process::id()),
        phase,
        started_at: Some(Timestamp::from_millis(started)),
        last_update: Some(Timestamp::from_millis(started + 10)),
        ended_at: over.then(|| Timestamp::from_millis(started + 10)),
        steps: vec![step],
        ..RunState::default()
    }
}

pub(crate) struct Place {
    _temp: tempfile::TempDir,
    pub(crate) root: RunRoot,
    pub(crate) fleet: Fleet,
}

impl Place {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path().join("root"));
        root.create().unwrap();
        let fleet = Fleet::new(vec![root.clone()]);
        Self { _temp: temp, root, fleet }
    }

    pub(crate) fn put(&self, id: &str, name: &str, phase: RunPhase, started: i64) -> RunDir {
        let dir = self.root.run(&RunId(id.into())).unwrap();
        put(&dir, &state(id, name, phase, started));
        dir
    }

    pub(crate) fn look(&mut self) -> bool {
        self.fleet.poll(ALL).changed
    }

    /// The title and the state of each run, by id.
    pub(crate) fn listed(&self) -> Vec<String> {
        let mut runs: Vec<_> = self.fleet.runs().collect();
        runs.sort_by_key(|run| run.dir().id_str().to_owned());
        let state =
            |run: &super::FleetRun| run.state().map_or("unreadable".to_owned(), |s| s.phase.as_str().to_owned());
        runs.into_iter().map(|run| format!("{} {}", run.title(), state(run))).collect()
    }
}
