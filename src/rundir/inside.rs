//! Runs that were started in the steps of another one, so that each leads to the other.
//!
//! Of runs of others it is told by where they lie (run-directory 2.16) and by the status of a workflow (2.17). A run of
//! ours says itself where it was started, and puts its name into a folder of the run that it was started in, so that
//! nobody has to look through all runs for those of one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::fleet::{self, FleetRun, Stamp, stamp};
use super::look::Look;
use super::watch::SAFETY;
use super::{RunDir, find, is_run_id, nested, open, replace, status};
use crate::run::{InnerRun, RunId, RunMode, RunState, StepId, Timestamp, Within, inner};

/// More runs than these are not looked at.
const MOST: usize = 256;
/// What stands in the folder is no longer than this, in bytes.
const MARK_MOST: u64 = 4096;

/// A run that was started in a step of another one.
#[derive(Debug)]
pub struct Inner {
    /// It, as a list has it.
    pub run: FleetRun,
    /// In which step, where that is known.
    pub step: Option<StepId>,
    stamp: Option<Stamp>,
}

/// The runs inside one run.
#[derive(Debug)]
pub struct Inside {
    dir: RunDir,
    runs: BTreeMap<PathBuf, Inner>,
    /// When it was asked last whether their runners live.
    probed: Option<Instant>,
}

impl Inside {
    /// Those of the run in this directory; none was looked for yet.
    #[must_use]
    pub const fn new(dir: RunDir) -> Self {
        Self { dir, runs: BTreeMap::new(), probed: None }
    }

    /// The same, and whether the runner of each still lives.
    pub fn look_closely(&mut self, state: &RunState) -> bool {
        self.probed = None;
        self.look(state)
    }

    /// Looks for them. Whether any of them is another than before. What has the same status is not read again, but for
    /// whether its runner still lives, which is asked from time to time. Writes nothing.
    pub fn look(&mut self, state: &RunState) -> bool {
        let probe = self.probed.is_none_or(|at| at.elapsed() >= SAFETY);
        if probe {
            self.probed = Some(Instant::now());
        }
        let mut before = std::mem::take(&mut self.runs);
        let count = before.len();
        let mut changed = false;
        for (dir, step) in found(&self.dir, state).into_iter().take(MOST) {
            let path = dir.path().to_owned();
            let now = stamp(&dir.status());
            let known = before.remove(&path);
            // That a runner died changes no file.
            let same = |known: &Inner| known.stamp == now && !(probe && known.run.is_living());
            let known = match known {
                Some(known) if same(&known) => {
                    self.runs.insert(path, Inner { step, ..known });
                    continue;
                }
                known => known,
            };
            let Some(listed) = find::list_one(dir, None) else { continue };
            let run = FleetRun::of(listed, 0);
            changed |= known.is_none_or(|known| fleet::differs(&known.run, &run) || known.step != step);
            self.runs.insert(path, Inner { run, step, stamp: now });
        }
        changed || count != self.runs.len()
    }

    /// Those that go on, with their steps where those are known, as they were at the last look, which is now.
    #[must_use]
    pub fn living(&self, now: Timestamp) -> Vec<(Option<StepId>, InnerRun)> {
        let of = |inner: &Inner| {
            let state = inner.run.state().filter(|_| inner.run.is_living())?;
            let title = inner.run.title();
            let run = InnerRun::of(state, title.as_str(), now)?;
            // The name of its directory names it, whatever its files say.
            Some((inner.step, InnerRun { id: inner.run.dir().id(), ..run }))
        };
        self.runs.values().filter_map(of).collect()
    }

    /// Puts those that go on into the picture of a run whose own runner says nothing of them: of a run of others.
    pub(super) fn show(&self, view: &mut Arc<RunState>, now: Timestamp) {
        for (step, runs) in inner::by_step(view, self.living(now)) {
            if let Some(step) = Arc::make_mut(view).steps.iter_mut().find(|known| known.id == step) {
                step.inner = runs;
            }
        }
    }

    /// They, in the order of their ids.
    pub fn runs(&self) -> impl Iterator<Item = &Inner> {
        self.runs.values()
    }
}

/// Where runs lie that were started in this one, and in which step of it.
fn found(dir: &RunDir, state: &RunState) -> Vec<(RunDir, Option<StepId>)> {
    let mut all = Vec::new();
    let Some(root) = dir.root() else { return all };
    for (id, step) in marks(&folder(dir)) {
        all.extend(root.run(&RunId(id)).filter(|run| run.path().is_dir()).map(|run| (run, step)));
    }
    let nested = find::entries(&root.nested().join(dir.id_str())).unwrap_or_default();
    let nested: Vec<RunDir> = nested.into_iter().filter(|(_, link)| !link).map(|(run, _)| run).collect();
    if !nested.is_empty() {
        let steps = nested::steps_of(root.path(), dir.id_str());
        all.extend(nested.into_iter().map(|run| {
            let step = steps.get(run.id_str()).copied();
            (run, step)
        }));
    }
    if state.mode == RunMode::Workflow {
        let own = state.steps.iter().filter_map(|step| Some((root.run(step.own_run.as_ref()?)?, Some(step.id))));
        all.extend(own.filter(|(run, _)| run.path().is_dir()));
    }
    all
}

/// The folder in which runs that were started in this one put their names, and put them anew when there is news of them.
#[must_use]
pub fn folder(dir: &RunDir) -> PathBuf {
    dir.subdeck().join("inside")
}

fn marks(folder: &Path) -> Vec<(String, Option<StepId>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(".json").filter(|id| is_run_id(id))?.to_owned();
        let bytes = open::regular(&entry.path()).and_then(|file| open::read_at_most(&file, MARK_MOST)).ok()?;
        let document: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&bytes).ok()?;
        Some((id, Look(&document).step("stepIndex")))
    });
    names.take(MOST).collect()
}

/// Puts the name of a run into the run that it was started in, where that is a run of ours in the same root.
///
/// # Errors
/// What the file system says.
pub fn announce(dir: &RunDir, within: &Within) -> io::Result<()> {
    let above = dir.root().and_then(|root| root.run(&within.run));
    let Some(above) = above.filter(|above| above.runner_json().is_file() && above.path() != dir.path()) else {
        return Ok(());
    };
    let folder = folder(&above);
    super::control::plain_folder(&above.subdeck())?;
    super::control::make(&folder)?;
    replace(&folder.join(format!("{}.json", dir.id_str())), &status::within(within).pretty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunPhase, StepState};
    use crate::rundir::{RunRoot, StatusContext};

    fn put(dir: &RunDir, state: &RunState) {
        fs::create_dir_all(dir.path()).unwrap();
        replace(&dir.status(), &status::encode(state, &StatusContext { dir, instance: None })).unwrap();
    }

    fn state(id: &str, phase: RunPhase) -> RunState {
        let steps = vec![StepState { id: StepId(0), agent: "scout".into(), ..StepState::default() }];
        let at = Some(Timestamp::from_millis(1000));
        let ended_at = at.filter(|_| phase.is_terminal());
        RunState {
            id: RunId(id.into()),
            phase,
            steps,
            started_at: at,
            last_update: at,
            ended_at,
            ..RunState::default()
        }
    }

    fn names(inside: &Inside) -> Vec<(String, Option<StepId>, bool)> {
        inside.runs().map(|i| (i.run.dir().id_str().to_owned(), i.step, i.run.is_living())).collect()
    }

    #[test]
    fn a_run_is_found_in_the_run_that_it_was_started_in_however_that_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let run = |id: &str| root.run(&RunId(id.into())).unwrap();
        let outer = run("outer");
        let mut workflow = state("outer", RunPhase::Running);
        put(&outer, &workflow);
        let mut inside = Inside::new(outer.clone());
        assert!(!inside.look(&workflow) && names(&inside).is_empty());
        // One of ours, whose parent is one of ours only once it has a runner of ours.
        let ours = run("ours");
        let within = Within { run: RunId("outer".into()), step: Some(StepId(3)) };
        let mut living = state("ours", RunPhase::Running);
        living.pid = Some(std::process::id());
        put(&ours, &living);
        announce(&ours, &within).unwrap();
        assert!(!outer.subdeck().exists(), "nothing is written into runs of others");
        crate::rundir::paths::private_dir(&outer.subdeck()).unwrap();
        fs::write(outer.runner_json(), "{}").unwrap();
        announce(&ours, &within).unwrap();
        // One that lies among the nested ones, and one that a workflow names.
        put(&RunDir::at(root.nested().join("outer/nested")), &state("nested", RunPhase::Complete));
        put(&run("flow"), &state("flow", RunPhase::Complete));
        workflow.mode = RunMode::Workflow;
        workflow.steps[0].own_run = Some(RunId("flow".into()));
        assert!(inside.look(&workflow));
        let want = [("flow", Some(StepId(0)), false), ("ours", Some(StepId(3)), true), ("nested", None, false)];
        assert_eq!(names(&inside), want.map(|(id, step, living)| (id.to_owned(), step, living)));
        put(&ours, &state("ours", RunPhase::Complete));
        assert!(inside.look(&workflow));
        assert!(!inside.look(&workflow), "nothing changed");
        assert!(names(&inside).iter().all(|(_, _, living)| !living));
        fs::remove_dir_all(ours.path()).unwrap();
        assert!(inside.look(&workflow));
        assert_eq!(names(&inside).len(), 2);
    }

    #[test]
    fn what_stands_in_the_folder_leads_nowhere_else() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path().join("root"));
        let outer = root.run(&RunId("outer".into())).unwrap();
        put(&outer, &state("outer", RunPhase::Running));
        let folder = folder(&outer);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("...json"), "{}").unwrap();
        fs::write(folder.join("missing.json"), "{}").unwrap();
        fs::write(folder.join("torn.json"), "{").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link.json")).unwrap();
        let mut inside = Inside::new(outer);
        assert!(!inside.look(&state("outer", RunPhase::Running)));
    }
}
