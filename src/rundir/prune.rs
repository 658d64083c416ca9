//! Which runs are old enough to be removed, and removing one (run-directory 1.2: a run that is being removed has a name
//! that is none of a run). What cannot be known keeps a run.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::find::Listed;
use super::health::STARTING;
use super::identity::{self, RunnerLife};
use super::index;
use super::trust;
use super::{RunDir, RunRoot};
use crate::run::{RunPhase, RunState, Timestamp};

/// How the name of a run that is being removed begins.
const GRAVE: &str = ".deleting-run-";
/// How long such a name is left alone.
const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// What may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Runs that ended longer ago than this.
    pub older_than: Duration,
    /// Only those that ended like this; empty for any end but a pause, after which a run is to go on.
    pub ends: Vec<RunPhase>,
    /// Runs that other programs made too.
    pub foreign: bool,
    /// Runs whose status cannot be read, and those that were lost, too; their age is that of their directory.
    pub broken: bool,
}

/// Why a run stays, or that it may go and when it ended.
///
/// # Errors
/// The reason why it stays, as a sentence.
pub fn judge(run: &Listed, rules: &Rules, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(why) = run.distrust {
        return Err(format!("it is not ours to remove: {why}"));
    }
    trust::check(run.dir.path()).map_err(|why| format!("it is not ours to remove: {why}"))?;
    match identity::probe(&run.dir) {
        RunnerLife::Alive => return Err("its runner lives".into()),
        RunnerLife::Unknown(why) => return Err(format!("whether its runner lives is not known: {why}")),
        RunnerLife::NotOurs if !rules.foreign => return Err("another program made it (--foreign)".into()),
        RunnerLife::NotOurs | RunnerLife::Dead(_) => {}
    }
    let ended = match &run.state {
        // A directory is there before its runner and its first status are.
        Err(_) if now.since(run.started()) < STARTING => return Err("it may be about to start".into()),
        Err(_) if rules.broken => run.started(),
        Err(error) => return Err(format!("its status cannot be read (--broken): {error}")),
        Ok(state) => ended(run, state, rules)?,
    };
    if now.since(ended) < rules.older_than {
        return Err(format!("it ended {} ago", crate::text::span(now.since(ended))));
    }
    Ok(ended)
}

fn ended(run: &Listed, state: &RunState, rules: &Rules) -> Result<Timestamp, String> {
    if run.lost.is_some() || state.lost.is_some() {
        let last = state.last_update.unwrap_or_else(|| run.started());
        return if rules.broken { Ok(last) } else { Err("it was lost (--broken)".into()) };
    }
    let Some(ended) = state.ended_at.filter(|_| state.phase.is_terminal()) else {
        return Err("it has not ended".into());
    };
    if rules.ends.is_empty() && state.phase == RunPhase::Paused {
        return Err("it is paused and can go on (--state paused)".into());
    }
    if !rules.ends.is_empty() && !rules.ends.contains(&state.phase) {
        return Err(format!("it ended as {}", state.phase.as_str()));
    }
    Ok(ended)
}

/// Removes what is left of runs whose removal broke off a day ago or longer; readers of other programs may look at what
/// has such a name until then (run-directory 1.8).
pub fn sweep(root: &RunRoot) {
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(root.runs()).into_iter().flatten().flatten() {
        let is_grave = entry.file_name().to_str().is_some_and(|name| name.starts_with(GRAVE));
        // Its name is newer than what is in it: the time of the change tells when it was given.
        let since = entry.metadata().ok().filter(|m| m.is_dir()).map(|m| Timestamp::from_millis(m.ctime() * 1000));
        if is_grave && since.is_some_and(|since| wall().since(since) > GRACE) {
            // What cannot be removed today may be another time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Whether a run goes on with a session that lies in the directory of another.
#[must_use]
pub fn leans_on(run: &Listed, other: &RunDir) -> bool {
    // The same folder may be named in two ways.
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real(other.path());
    let inside =
        |file: &String| Path::new(file).starts_with(other.path()) || real(Path::new(file)).starts_with(&folder);
    run.state.as_ref().is_ok_and(|s| s.steps.iter().filter_map(|step| step.session_file.as_ref()).any(inside))
}

/// How many bytes the files of a directory have. Links are not followed.
#[must_use]
pub fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Removes a run with its result and its entries in the indexes. It gets a name that is none of a run first, so that
/// nobody meets a half-removed one. Links are removed and not followed.
///
/// # Errors
/// What the file system says. What was not removed yet is found below its other name.
pub fn remove(root: &RunRoot, run: &Listed) -> io::Result<()> {
    let grave = root.runs().join(format!("{GRAVE}{}", uuid::Uuid::new_v4()));
    fs::rename(run.dir.path(), &grave)?;
    let mut files = vec![root.active_marker(&run.dir.id())];
    files.push(root.results().join(format!("{}.json", run.dir.id_str())));
    files.push(
        root.results().join("result-index/runs").join(format!("{}.json", super::segment::stem(run.dir.id_str()))),
    );
    if let Ok(state) = &run.state {
        files.extend(index::entry_of(root, state));
        if let Some(session) = state.session_id.as_deref().filter(|s| !s.is_empty()) {
            let name = format!("{}.json", super::segment::stem(run.dir.id_str()));
            let bucket = super::segment::folder(session);
            files.push(root.results().join("result-index/sessions").join(&bucket).join(&name));
            files.push(root.results().join("result-pending").join(&bucket).join(&name));
        }
    }
    for file in files {
        // An entry that is not there, or cannot be removed, leads to nothing; readers drop such entries.
        let _ = fs::remove_file(&file);
        // A folder that is this run's alone; any other one has entries of other runs, and stays also when it has none.
        if let Some(folder) = file
            .parent()
            .filter(|f| f.file_name().is_some_and(|n| n.as_encoded_bytes().ends_with(run.dir.id_str().as_bytes())))
        {
            let _ = fs::remove_dir(folder);
        }
    }
    fs::remove_dir_all(grave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunId, StepState};
    use crate::rundir::{RunnerIdentity, StatusContext, list_runs, replace, status};

    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn put(root: &RunRoot, id: &str, phase: RunPhase, ended: Option<i64>, session: Option<&Path>) -> RunDir {
        let dir = RunDir::create(root, &RunId(id.into())).unwrap();
        let step = StepState {
            agent: "a".into(),
            session_file: session.map(|p| p.display().to_string()),
            ..StepState::default()
        };
        let state = RunState {
            id: RunId(id.into()),
            phase,
            session_id: Some("s".into()),
            started_at: Some(Timestamp::from_millis(1)),
            ended_at: ended.map(Timestamp::from_millis),
            steps: vec![step],
            ..RunState::default()
        };
        replace(&dir.status(), &status::encode(&state, &StatusContext { dir: &dir, instance: None })).unwrap();
        // A runner that was and is not any more.
        let mut runner = RunnerIdentity::of_this_process(None);
        runner.start_ticks = runner.start_ticks.map(|t| t + 1);
        runner.write(&dir).unwrap();
        dir
    }

    fn rules() -> Rules {
        Rules { older_than: Duration::from_secs(7 * 24 * 60 * 60), ends: Vec::new(), foreign: false, broken: false }
    }

    fn verdict(root: &RunRoot, id: &str, rules: &Rules) -> Result<(), String> {
        let run = list_runs(root).into_iter().find(|run| run.dir.id_str() == id).unwrap();
        judge(&run, rules, Timestamp::from_millis(100 * DAY)).map(drop)
    }

    #[test]
    fn only_what_ended_long_ago_may_go() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        put(&root, "old-done", RunPhase::Complete, Some(DAY), None);
        put(&root, "new-done", RunPhase::Complete, Some(99 * DAY), None);
        put(&root, "old-fail", RunPhase::Failed, Some(DAY), None);
        put(&root, "old-lost", RunPhase::Running, None, None);
        let live = put(&root, "old-live", RunPhase::Complete, Some(DAY), None);
        RunnerIdentity::of_this_process(None).write(&live).unwrap();
        let _lock = crate::rundir::RunnerLock::acquire(&live).unwrap();
        let foreign = put(&root, "foreign1", RunPhase::Complete, Some(DAY), None);
        fs::remove_dir_all(foreign.subdeck()).unwrap();
        let failed = Rules { ends: vec![RunPhase::Failed], ..rules() };
        for (id, rules, want) in [
            ("old-done", rules(), ""),
            ("new-done", rules(), "ended 1d"),
            ("old-done", failed.clone(), "ended as complete"),
            ("old-fail", failed, ""),
            ("old-lost", rules(), "--broken"),
            ("old-lost", Rules { broken: true, ..rules() }, ""),
            ("old-live", Rules { broken: true, foreign: true, ..rules() }, "lives"),
            ("foreign1", rules(), "--foreign"),
            ("foreign1", Rules { foreign: true, ..rules() }, ""),
        ] {
            match verdict(&root, id, &rules) {
                Ok(()) => assert_eq!(want, "", "{id}"),
                Err(why) => assert!(!want.is_empty() && why.contains(want), "{id}: {why:?} has no {want:?}"),
            }
        }
    }

    #[test]
    fn a_removed_run_leaves_nothing_and_takes_nothing_along() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let dir = put(&root, "gone", RunPhase::Complete, Some(DAY), None);
        let stays =
            put(&root, "stays", RunPhase::Complete, Some(DAY), Some(&dir.path().join("subdeck/sessions/0.jsonl")));
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, dir.path().join("link")).unwrap();
        fs::create_dir_all(root.results()).unwrap();
        fs::write(root.results().join("gone.json"), "{}").unwrap();
        let runs = list_runs(&root);
        let find = |id: &str| runs.iter().find(|run| run.dir.id_str() == id).unwrap();
        assert!(leans_on(find("stays"), &dir) && !leans_on(find("gone"), &stays));
        assert!(size(dir.path()) > 0);
        remove(&root, find("gone")).unwrap();
        assert!(!dir.path().exists() && !root.results().join("gone.json").exists());
        assert!(stays.status().exists() && outside.join("file").exists());
        let left: Vec<_> = fs::read_dir(root.runs()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["stays"]);
    }
}
