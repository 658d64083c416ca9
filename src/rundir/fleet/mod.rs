//! All runs of several roots at once, and what changes among them (product 2, run-directory 1.9).
//!
//! A run that is over is read once; one that goes on is read again when its status is another one; a root is listed
//! again when its folder is. Reading is done in slices, so that nobody waits for a thousand runs. Only looks.

mod eyes;
mod facts;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(test)]
pub(crate) mod place;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use facts::Project;

use super::find::{self, Listed};
use super::follow::HALF_WRITTEN;
use super::trust::{self, Distrust};
use super::watch::SAFETY;
use super::{RunDir, RunRoot, nested};
use crate::run::{InnerRun, RunId, RunState, StepId, StepPhase, Timestamp, inner};
use crate::text::SafeText;

/// A folder that was changed this recently may be changed again within the same tick of the file system's clock.
const SAME_TICK: Duration = Duration::from_secs(1);

/// A nested run that has not told where it stands by then does not.
const TELLS_ITS_PLACE: Duration = Duration::from_secs(10);

/// One run of the fleet.
#[derive(Debug)]
pub struct FleetRun {
    /// As a list has it. Of its state only what a list shows is kept.
    pub listed: Listed,
    /// Which root it is in, by its place in [`Fleet::roots`].
    pub root: usize,
    /// What its first agent is to do, as far as that is known. Text from outside.
    pub task: String,
    /// Where it works.
    pub project: Option<Project>,
    /// The run that this one is a part of.
    pub parent: Option<RunId>,
    /// In which of its steps, where that is known.
    pub step: Option<StepId>,
    /// Its runner is one of ours, which looks at the runs inside itself.
    ours: bool,
    stamp: Option<Stamp>,
    /// Since when its newest status cannot be read, while the last good one is shown.
    bad_since: Option<Instant>,
}

impl FleetRun {
    /// A run that was read elsewhere, without what its files say beside its status.
    #[must_use]
    pub fn of(listed: Listed, root: usize) -> Self {
        let parent = listed.nested_in.clone();
        let task = String::new();
        Self { listed, root, task, project: None, parent, step: None, ours: false, stamp: None, bad_since: None }
    }

    /// Its directory.
    #[must_use]
    pub const fn dir(&self) -> &RunDir {
        &self.listed.dir
    }

    /// Its state, where it can be read.
    #[must_use]
    pub fn state(&self) -> Option<&RunState> {
        self.listed.state.as_ref().ok()
    }

    /// Whether its runner died without ending it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.listed.lost.is_some() || self.state().is_some_and(|s| s.lost.is_some())
    }

    /// Whether it goes on, as far as its files say.
    #[must_use]
    pub fn is_living(&self) -> bool {
        !self.is_lost() && self.state().is_some_and(|s| !s.is_over())
    }

    /// The agents of its steps, each once, in the order of the steps. Text from outside.
    #[must_use]
    pub fn agents(&self) -> Vec<&str> {
        let mut agents: Vec<&str> = Vec::new();
        for step in self.state().map(|s| s.steps.as_slice()).unwrap_or_default() {
            if !step.agent.is_empty() && !agents.contains(&step.agent.as_str()) {
                agents.push(&step.agent);
            }
        }
        agents
    }

    /// What it is called: its name, else the first words of its task, else what it is.
    #[must_use]
    pub fn title(&self) -> SafeText {
        let name = self.state().and_then(|s| s.name.as_deref()).filter(|n| !n.trim().is_empty());
        let task = self.task.lines().find(|l| !l.trim().is_empty());
        let first = self.state().and_then(|s| s.steps.first()).map(|s| s.title()).filter(|t| !t.is_empty());
        SafeText::line(name.or(task).or(first).unwrap_or("–").trim())
    }

    /// Its id as far as it names the run and can be copied as it is: the beginning of what is random, all of what somebody
    /// chose.
    #[must_use]
    pub fn short_id(&self) -> SafeText {
        use std::os::unix::ffi::OsStrExt;
        let name = self.dir().path().file_name().unwrap_or_default();
        let id = SafeText::from_bytes(name.as_bytes());
        let random = id.as_str().len() == 36 && id.as_str().bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        // Without a mark where it is cut: it is there to be copied.
        let cut: String = id.as_str().chars().take(if random { 8 } else { 20 }).collect();
        SafeText::line(&cut)
    }

    /// When it last showed a sign of life: its newest event, else when its directory was changed.
    #[must_use]
    pub fn heard(&self) -> Timestamp {
        let state = self.state();
        state.and_then(|s| s.ended_at.max(s.last_update).max(s.last_activity)).unwrap_or_else(|| self.listed.started())
    }
}

/// What tells one version of a file from another.
pub(super) type Stamp = (u64, i64, i64, u64);

pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}

/// A folder of run directories.
#[derive(Debug, Default)]
struct Folder {
    stamp: Option<Stamp>,
    runs: HashSet<PathBuf>,
}

/// What is to be read.
#[derive(Debug)]
struct Wanted {
    dir: RunDir,
    root: usize,
    distrust: Option<Distrust>,
    nested_in: Option<RunId>,
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetChanges {
    /// Something is another than before.
    pub changed: bool,
    /// There is more to read; look again without waiting.
    pub behind: bool,
}

/// All runs of these roots.
#[derive(Debug)]
pub struct Fleet {
    roots: Vec<RunRoot>,
    folders: BTreeMap<PathBuf, Folder>,
    runs: BTreeMap<PathBuf, FleetRun>,
    wanted: VecDeque<Wanted>,
    projects: facts::Projects,
    eyes: eyes::Eyes,
    /// When the disk was looked at last.
    looked: Option<Instant>,
    /// When the runners of all living runs were looked for last.
    probed: Option<Instant>,
}

impl Fleet {
    /// The fleet of these roots; nothing is read yet.
    #[must_use]
    pub fn new(roots: Vec<RunRoot>) -> Self {
        Self {
            roots,
            folders: BTreeMap::new(),
            runs: BTreeMap::new(),
            wanted: VecDeque::new(),
            projects: facts::Projects::default(),
            eyes: eyes::Eyes::new(),
            looked: None,
            probed: None,
        }
    }

    /// Looks at the disk for about this long.
    pub fn poll(&mut self, budget: Duration) -> FleetChanges {
        let begun = Instant::now();
        self.looked = Some(begun);
        self.eyes.note_mounts();
        let mut changed = self.list();
        self.look_at_the_living();
        let mut read = false;
        while let Some(wanted) = self.wanted.pop_front() {
            read = true;
            changed |= self.read(wanted);
            if begun.elapsed() >= budget {
                break;
            }
        }
        if read || changed {
            self.show_inner_runs();
        }
        FleetChanges { changed, behind: !self.wanted.is_empty() }
    }

    /// Puts into the pictures of runs of others what goes on inside them: their runners do not look at that. Of all that
    /// is known already; nothing is read for it.
    fn show_inner_runs(&mut self) {
        let mut inside: BTreeMap<RunId, Vec<(Option<StepId>, InnerRun)>> = BTreeMap::new();
        let at = super::health::wall();
        for run in self.runs.values().filter(|run| run.is_living()) {
            let Some(above) = run.parent.as_ref() else { continue };
            let title = run.title();
            let Some(inner) = run.state().and_then(|state| InnerRun::of(state, title.as_str(), at)) else { continue };
            inside.entry(above.clone()).or_default().push((run.step, InnerRun { id: run.dir().id(), ..inner }));
        }
        for run in self.runs.values_mut().filter(|run| !run.ours && run.is_living()) {
            let mut found = inside.remove(&run.dir().id()).unwrap_or_default();
            let Ok(state) = &mut run.listed.state else { continue };
            let mut found = inner::by_step(state, std::mem::take(&mut found));
            for step in &mut state.steps {
                let of = found.iter_mut().find(|(id, _)| *id == step.id);
                step.inner = of.map(|(_, runs)| std::mem::take(runs)).unwrap_or_default();
            }
        }
    }

    /// The roots.
    #[must_use]
    pub fn roots(&self) -> &[RunRoot] {
        &self.roots
    }

    /// Every run that was read.
    pub fn runs(&self) -> impl Iterator<Item = &FleetRun> {
        self.runs.values()
    }

    /// The run in this directory.
    #[must_use]
    pub fn run(&self, path: &Path) -> Option<&FleetRun> {
        self.runs.get(path)
    }

    /// How many runs are still to be read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.wanted.len()
    }

    /// What stands between the files and the picture, one sentence each.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.eyes.limit().map(str::to_owned).into_iter().chain(self.unlisted()).collect()
    }

    /// Which roots cannot be listed, and why, one sentence each; one that is not there yet has no runs and no sentence.
    #[must_use]
    pub fn unlisted(&self) -> Vec<String> {
        let why = |root: &RunRoot| match fs::read_dir(root.runs()) {
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("the runs in {} cannot be listed: {error}", root.path().display())),
        };
        self.roots.iter().filter_map(why).collect()
    }

    /// Returns when something may have changed. May be dropped and called again, which puts nothing off.
    pub async fn wait(&self) {
        if self.wanted.is_empty() {
            self.eyes.wait(self.looked, self.look_again()).await;
        }
    }

    /// How often to look though nothing was told; `None` where nothing can change without being told. A runner that
    /// dies changes no file, and what keeps a status from being read may end without a change of it.
    #[must_use]
    pub fn look_again(&self) -> Option<Duration> {
        let untold = |run: &FleetRun| {
            let closed = run.listed.state.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::InvalidData);
            run.is_living() || closed || run.bad_since.is_some()
        };
        let untold = self.runs.values().any(untold).then_some(SAFETY);
        [untold, self.eyes.look_again()].into_iter().flatten().min()
    }

    /// Lists the folders that changed. Returns whether a run is gone.
    fn list(&mut self) -> bool {
        let mut gone = false;
        let mut present = HashSet::new();
        for root in 0..self.roots.len() {
            let Some(known) = self.roots.get(root).cloned() else { continue };
            self.eyes.on(known.path());
            self.eyes.on(&known.nested());
            let folders = find::run_folders(&known).unwrap_or_else(|_| {
                // Those that were known stay: one look that fails empties no list.
                let nested = self.folders.keys().filter(|path| path.starts_with(known.nested())).cloned();
                present.extend(nested);
                vec![(known.runs(), None)]
            });
            for (path, nested_in) in folders {
                gone |= self.list_folder(&path, root, known.path(), nested_in.as_ref());
                present.insert(path);
            }
        }
        let left: Vec<PathBuf> = self.folders.keys().filter(|f| !present.contains(*f)).cloned().collect();
        for folder in left {
            self.eyes.off(&folder);
            for run in self.folders.remove(&folder).unwrap_or_default().runs {
                gone |= self.runs.remove(&run).is_some();
            }
        }
        gone
    }

    fn list_folder(&mut self, path: &Path, root: usize, root_path: &Path, nested_in: Option<&RunId>) -> bool {
        self.eyes.on(path);
        let now = stamp(path);
        let folder = self.folders.entry(path.to_owned()).or_default();
        if folder.stamp.is_some() && folder.stamp == now {
            return false;
        }
        // What cannot be listed just now stays as it was and is tried again.
        let Ok(entries) = find::entries(path) else { return false };
        folder.stamp = now.filter(|_| !is_fresh(path));
        let distrust = trust::check(root_path).err();
        let here: HashSet<PathBuf> = entries.iter().map(|(dir, _)| dir.path().to_owned()).collect();
        let gone: Vec<PathBuf> = folder.runs.difference(&here).cloned().collect();
        // The newest first: that is what is looked at.
        let mut new: Vec<(SystemTime, Wanted)> = entries
            .into_iter()
            .filter(|(dir, _)| !folder.runs.contains(dir.path()))
            .map(|(dir, link)| {
                let changed = fs::metadata(dir.path()).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                let distrust = if link { Some(Distrust::Link) } else { distrust };
                (changed, Wanted { dir, root, distrust, nested_in: nested_in.cloned() })
            })
            .collect();
        new.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        folder.runs = here;
        self.wanted.extend(new.into_iter().map(|(_, wanted)| wanted));
        self.wanted.retain(|wanted| !gone.contains(&wanted.dir.path().to_owned()));
        gone.iter().for_each(|run| self.eyes.off(run));
        let before = self.runs.len();
        self.runs.retain(|path, _| !gone.contains(path));
        self.runs.len() < before
    }

    /// Reads again what goes on, or cannot be read, and has another status. That a runner died changes no file, so all
    /// of them are asked for from time to time.
    fn look_at_the_living(&mut self) {
        let probe = self.probed.is_none_or(|at| at.elapsed() >= SAFETY);
        if probe {
            self.probed = Some(Instant::now());
        }
        let known: HashSet<&Path> = self.wanted.iter().map(|w| w.dir.path()).collect();
        // What was seen to live is watched, and may still change when it is over: its last words follow its end.
        let open = self.runs.values().filter(|run| run.listed.state.is_err() || self.eyes.are_on(run.dir().path()));
        let again: Vec<Wanted> = open
            .filter(|run| !known.contains(run.dir().path()))
            .filter(|run| probe && !is_settled(run) || stamp(&run.dir().status()) != run.stamp)
            .map(|run| Wanted {
                dir: run.dir().clone(),
                root: run.root,
                distrust: run.listed.distrust,
                nested_in: run.listed.nested_in.clone(),
            })
            .collect();
        // What is known already and changed goes before what was never read.
        for wanted in again {
            self.wanted.push_front(wanted);
        }
    }

    /// Reads a run. Returns whether it is another than before.
    fn read(&mut self, wanted: Wanted) -> bool {
        let Wanted { dir, root, distrust, nested_in } = wanted;
        let path = dir.path().to_owned();
        // Before the read: what is written meanwhile is then seen as another version.
        let stamp = stamp(&dir.status());
        let Some(mut listed) = find::list_one(dir, distrust) else { return self.runs.remove(&path).is_some() };
        listed.nested_in = nested_in;
        // A status that is being written, and a system that is short of something, are no reason to flicker: the last good
        // picture stays for a while.
        if listed.state.is_err()
            && let Some(known) = self.runs.get_mut(&path).filter(|known| known.listed.state.is_ok())
        {
            known.stamp = None;
            if known.bad_since.get_or_insert_with(Instant::now).elapsed() < HALF_WRITTEN {
                return false;
            }
        }
        let before = self.runs.remove(&path);
        let task = before.as_ref().map(|b| b.task.clone()).filter(|t| !t.is_empty());
        let mut parent = listed.nested_in.clone();
        let (mut project, mut ours) = (None, false);
        let mut step = before.as_ref().and_then(|before| before.step);
        // It tells where it stands when it begins.
        let young = super::health::wall().since(listed.started()) < TELLS_ITS_PLACE;
        if let Some(above) = listed.nested_in.as_ref().filter(|_| step.is_none() && (young || before.is_none()))
            && let Some(root) = self.roots.get(root)
        {
            step = nested::steps_of(root.path(), above.as_str()).get(listed.dir.id_str()).copied();
        }
        let mut known_task = task.unwrap_or_default();
        if let Ok(state) = &mut listed.state {
            if known_task.is_empty() {
                known_task = facts::task(&listed.dir, state);
            }
            parent = parent.or_else(|| state.contract.parent_workflow.clone().map(RunId));
            parent = parent.or_else(|| state.started_in.as_ref().map(|within| within.run.clone()));
            step = step.or_else(|| state.started_in.as_ref().and_then(|within| within.step));
            ours = !state.is_over() && listed.dir.runner_json().exists();
            project = self.projects.of(&state.cwd);
            lighten(state);
        }
        if listed.state.as_ref().map_or(true, |s| !s.is_over()) {
            self.eyes.on(&path);
        }
        let run = FleetRun { task: known_task, project, parent, step, ours, stamp, ..FleetRun::of(listed, root) };
        let changed = before.as_ref().is_none_or(|before| differs(before, &run));
        self.runs.insert(path, run);
        changed
    }
}

/// Whether only another status could change what is known of it.
fn is_settled(run: &FleetRun) -> bool {
    run.listed.state.is_ok() && !run.is_living()
}

fn is_fresh(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|m| m.modified()).ok();
    // A folder from the future is looked at each time, too.
    changed.is_none_or(|at| at.elapsed().map_or(true, |age| age < SAME_TICK))
}

pub(super) fn differs(before: &FleetRun, now: &FleetRun) -> bool {
    let state = match (&before.listed.state, &now.listed.state) {
        (Ok(a), Ok(b)) if before.ours => a != b,
        (Ok(a), Ok(b)) => differ(a, b),
        (Err(a), Err(b)) => a.to_string() != b.to_string(),
        _ => true,
    };
    state || before.listed.lost != now.listed.lost || before.project != now.project || before.task != now.task
}

/// Whether two states of a run of others are not the same; what goes on inside is put into the newer one later.
fn differ(before: &RunState, now: &RunState) -> bool {
    if before.steps.iter().all(|step| step.inner.is_empty()) {
        return before != now;
    }
    let mut bare = before.clone();
    bare.steps.iter_mut().for_each(|step| step.inner.clear());
    bare != *now
}

/// Drops what no list shows: thousands of runs are kept.
fn lighten(state: &mut RunState) {
    state.steering = Default::default();
    state.outputs.clear();
    state.contract.graph = None;
    state.contract.launch_extensions = None;
    for step in &mut state.steps {
        step.recent_output = VecDeque::new();
        step.recent_tools = VecDeque::new();
        step.steering = Default::default();
        step.last_message = None;
        step.contract = Default::default();
        if step.phase != StepPhase::Running {
            step.attention = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;
