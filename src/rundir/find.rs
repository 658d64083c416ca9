//! From what a person types to a run and a step (product 2), and lists of runs (run-directory 1.9). Looks only.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::follow::Follower;
use super::health::{Health, health};
use super::trust::{self, Distrust};
use super::{RunDir, RunRoot, index, is_run_id, open, plan_doc, status_read};
use crate::run::{RunId, RunState, StepId, Timestamp};
use crate::text::SafeText;

/// The shortest beginning of an id that names a run (product 2).
const SHORTEST_PREFIX: usize = 4;
/// The longest event log of a lost run that is read for a list, in bytes.
const LISTED_EVENTS: u64 = 8 * 1024 * 1024;
/// How many candidates an error lists.
const CANDIDATES: usize = 10;

/// One run of a root.
#[derive(Debug)]
pub struct Listed {
    /// Its directory.
    pub dir: RunDir,
    /// Its state, or why it cannot be read; an unreadable run is never hidden (product 6).
    pub state: io::Result<RunState>,
    /// How it is known that its runner died without ending it.
    pub lost: Option<String>,
    /// Why it is not ours to write into: its root, or that it is a link itself.
    pub distrust: Option<Distrust>,
    /// The run that it was started in, where it lies among the nested runs of that (run-directory 2.16).
    pub nested_in: Option<RunId>,
}

impl Listed {
    /// When it was started, as far as that is known; else when its plan was stored or its directory was changed last.
    #[must_use]
    pub fn started(&self) -> Timestamp {
        let state = self.state.as_ref().ok();
        state.and_then(|s| s.started_at.or(s.last_update)).unwrap_or_else(|| created(&self.dir))
    }

    /// Whether it works in this folder; of a run whose state cannot be read as its plan has it.
    fn is_of(&self, folder: &Path) -> bool {
        match &self.state {
            Ok(state) => Path::new(&state.cwd) == folder,
            Err(_) => Path::new(&plan_doc::unstarted(&self.dir).cwd) == folder,
        }
    }

    fn line(&self) -> String {
        let (name, word) = match &self.state {
            Ok(state) => (
                state.name.as_deref().or_else(|| state.steps.first().map(|s| s.agent.as_str())).unwrap_or_default(),
                if self.lost.is_some() { "lost" } else { state.run_face().1 },
            ),
            Err(_) => ("", "unreadable"),
        };
        format!("{}  {}  {}", SafeText::line(&self.dir.id().0), SafeText::line(word), SafeText::line(name))
    }
}

fn created(dir: &RunDir) -> Timestamp {
    let changed = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let modified = changed(&dir.plan_json()).or_else(|| changed(dir.path()));
    let since = modified.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Every run of a root, in no order; a root that is not there has none. Runs that were dismissed are left out.
#[must_use]
pub fn list_runs(root: &RunRoot) -> Vec<Listed> {
    let distrust = trust::check(root.path()).err();
    let folders = run_folders(root).unwrap_or_else(|_| vec![(root.runs(), None)]).into_iter();
    let found = folders.flat_map(|(folder, parent)| {
        entries(&folder).unwrap_or_default().into_iter().map(move |entry| (entry, parent.clone()))
    });
    found
        .filter_map(|((dir, link), parent)| {
            let listed = list_one(dir, if link { Some(Distrust::Link) } else { distrust })?;
            Some(Listed { nested_in: parent, ..listed })
        })
        .collect()
}

/// The folders of a root that hold run directories: that of its runs, and one for each run that started others in
/// itself, with that run (run-directory 1.1).
///
/// # Errors
/// When there is a folder of the latter and it cannot be listed.
pub(super) fn run_folders(root: &RunRoot) -> io::Result<Vec<(PathBuf, Option<RunId>)>> {
    let nested = listed(&root.nested())?.into_iter().filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| is_run_id(name))?;
        entry.file_type().ok()?.is_dir().then(|| (entry.path(), Some(RunId(name))))
    });
    Ok(std::iter::once((root.runs(), None)).chain(nested).collect())
}

/// What is in a folder; one that is not there holds nothing.
fn listed(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The run directories in a folder, and whether each is a link. Names with a dot in front are no runs (run-directory
/// 1.2). A link could lead anywhere (trap 11), so what it leads to is shown and never written to (product 7).
///
/// # Errors
/// When the folder is there and cannot be listed.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<(RunDir, bool)>> {
    let runs = listed(folder)?.into_iter().filter_map(|entry| {
        let kind = entry.file_type().ok().filter(|_| is_run_id(&entry.file_name().to_string_lossy()))?;
        let dir = RunDir::at(entry.path());
        if kind.is_dir() {
            return Some((dir, false));
        }
        let leads_to_a_run = kind.is_symlink() && dir.path().is_dir() && dir.looks_like_one();
        leads_to_a_run.then_some((dir, true))
    });
    Ok(runs.collect())
}

/// A run as its files have it; `None` for one that somebody asked to hide.
pub(super) fn list_one(dir: RunDir, distrust: Option<Distrust>) -> Option<Listed> {
    let read = open::regular(&dir.status()).and_then(|f| open::read_at_most(&f, status_read::STATUS_MOST));
    let state = match read {
        Ok(bytes) if is_dismissed(&bytes) => return None,
        Ok(bytes) => status_read::decode(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && has_events(&dir) => {
            // What happened is told by the events alone, to whoever follows them and here.
            let (state, lost) = followed(&dir, plan_doc::unstarted(&dir), None);
            return Some(Listed { dir, state, lost, distrust, nested_in: None });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match health(&dir, None) {
            Health::Starting => Ok(plan_doc::unstarted(&dir)),
            Health::Lost(evidence) => {
                let state = Ok(plan_doc::unstarted(&dir));
                return Some(Listed { dir, state, lost: Some(evidence), distrust, nested_in: None });
            }
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "it has no status.json")),
        },
        Err(error) => Err(error),
    };
    let lost = state.as_ref().ok().filter(|s| !s.is_over()).and_then(|s| match health(&dir, Some(s)) {
        Health::Lost(evidence) => Some(evidence),
        _ => None,
    });
    // The last status of a runner that died is older than its last events; whoever follows the run sees both.
    let (state, lost) = match (state, lost) {
        (Ok(state), Some(evidence)) => followed(&dir, state, Some(evidence)),
        (Ok(state), None)
            if !state.is_over() && !dir.runner_json().exists() && super::result_read::is_due(&dir, &state) =>
        {
            followed(&dir, state, None)
        }
        other => other,
    };
    Some(Listed { dir, state, lost, distrust, nested_in: None })
}

/// Whether there are events, and no more than a list reads.
fn has_events(dir: &RunDir) -> bool {
    fs::symlink_metadata(dir.events()).is_ok_and(|m| m.is_file() && (1..=LISTED_EVENTS).contains(&m.len()))
}

/// A lost run as its followers see it: with what its events say beyond its status, which may be its end.
fn followed(dir: &RunDir, state: RunState, evidence: Option<String>) -> (io::Result<RunState>, Option<String>) {
    // A list does not wait for the events of one run.
    if fs::metadata(dir.events()).is_ok_and(|m| m.len() > LISTED_EVENTS) {
        return (Ok(state), evidence);
    }
    let Ok(mut follower) = Follower::open(dir.path()) else { return (Ok(state), evidence) };
    while follower.poll().behind {}
    (Ok(follower.state().clone()), follower.lost())
}

/// Whether somebody asked to hide the run (run-directory 1.9).
fn is_dismissed(status: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Dismissed {
        #[serde(rename = "displayDismissedAt")]
        at: Option<f64>,
    }
    memchr::memmem::find(status, b"\"displayDismissedAt\"").is_some()
        && serde_json::from_slice::<Dismissed>(status).is_ok_and(|d| d.at.is_some())
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// A folder that holds no run.
    #[error("{0:?} is no run directory: it has no status.json")]
    NotARun(String),
    /// No run is meant by this.
    #[error("no run is called {word:?}{hint}")]
    NoRun {
        /// What was typed.
        word: String,
        /// What there is.
        hint: String,
    },
    /// Several runs could be meant.
    #[error("{word:?} could mean several runs:{candidates}")]
    ManyRuns {
        /// What was typed.
        word: String,
        /// They, one a line.
        candidates: String,
    },
    /// No step is meant by this.
    #[error("no step is called {word:?}; there are:{candidates}")]
    NoStep {
        /// What was typed.
        word: String,
        /// The steps, one a line.
        candidates: String,
    },
    /// Several steps could be meant.
    #[error("{word:?} could mean several steps:{candidates}")]
    ManySteps {
        /// What was typed.
        word: String,
        /// They, one a line.
        candidates: String,
    },
    /// The run's steps are not known.
    #[error("the steps of the run cannot be read: {0}")]
    Unreadable(String),
}

/// The run that RUN means: a path, `@last` (the newest of this folder, else of the first root that has one), an id, the
/// beginning of an id, a name, or the id of the tool call that started it.
///
/// # Errors
/// What could be meant instead.
pub fn run(roots: &[RunRoot], word: &str, cwd: &Path) -> Result<RunDir, FindError> {
    if let Some(dir) = by_path(word, cwd) {
        // Requests are written into a run's directory, so a folder must look like one first.
        return if dir.looks_like_one() { Ok(dir) } else { Err(FindError::NotARun(word.to_owned())) };
    }
    let by_id = |root: &RunRoot| root.run(&RunId(word.to_owned())).filter(|d| d.path().is_dir());
    if let Some(dir) = roots.iter().find_map(by_id) {
        return Ok(dir);
    }
    let runs: Vec<Vec<Listed>> = roots.iter().map(list_runs).collect();
    if word == "@last" {
        return last(runs, cwd)
            .ok_or_else(|| FindError::NoRun { word: word.to_owned(), hint: "; there are no runs yet".into() });
    }
    let all: Vec<Listed> = runs.into_iter().flatten().collect();
    let mut found: Vec<&Listed> = Vec::new();
    if word.len() >= SHORTEST_PREFIX {
        found.extend(all.iter().filter(|r| r.dir.id().0.starts_with(word)));
    }
    if found.is_empty() {
        found.extend(all.iter().filter(|r| r.state.as_ref().is_ok_and(|s| s.name.as_deref() == Some(word))));
    }
    if found.is_empty() {
        let called: Vec<RunDir> = roots
            .iter()
            .flat_map(|root| index::of_tool_call(root, word).into_iter().filter_map(|id| root.run(&id)))
            .collect();
        found.extend(all.iter().filter(|r| called.contains(&r.dir)));
    }
    match found.as_slice() {
        [only] => Ok(only.dir.clone()),
        [] => Err(FindError::NoRun { word: word.to_owned(), hint: hint(&all) }),
        many => Err(FindError::ManyRuns { word: word.to_owned(), candidates: lines(many) }),
    }
}

/// The run and the step of `RUN[:STEP]`.
///
/// # Errors
/// As [`run`] and [`step`].
pub fn target(roots: &[RunRoot], word: &str, cwd: &Path) -> Result<(RunDir, Option<StepId>), FindError> {
    let whole = || run(roots, word, cwd).map(|dir| (dir, None));
    // A path may hold a colon itself.
    let Some((first, rest)) = word.rsplit_once(':').filter(|_| by_path(word, cwd).is_none()) else { return whole() };
    let dir = run(roots, first, cwd)?;
    let state = status_read::read(&dir).map_err(|e| FindError::Unreadable(e.to_string()))?;
    Ok((dir, Some(step(&state, rest)?)))
}

/// The step that STEP means: the number that the deck shows (from 1), the id, the label, or the agent's name.
///
/// # Errors
/// What could be meant instead.
pub fn step(state: &RunState, word: &str) -> Result<StepId, FindError> {
    if let Ok(number) = word.parse::<u32>()
        && let Some(found) = number.checked_sub(1).and_then(|flat| state.step(StepId(flat)))
    {
        return Ok(found.id);
    }
    let list = |steps: &mut dyn Iterator<Item = StepId>| {
        let mut text = String::new();
        for step in steps.filter_map(|id| state.step(id)) {
            // Writing into memory cannot fail.
            let _ = write!(text, "\n  {}  {}  {}", step.id, SafeText::line(&step.key), SafeText::line(step.title()));
        }
        text
    };
    let by: [&dyn Fn(&crate::run::StepState) -> bool; 3] =
        [&|s| s.key == word, &|s| s.label.as_deref() == Some(word), &|s| s.agent == word];
    for matches in by {
        let found: Vec<StepId> = state.steps.iter().filter(|s| matches(s)).map(|s| s.id).collect();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(*only),
            many => {
                let candidates = list(&mut many.iter().copied());
                return Err(FindError::ManySteps { word: word.to_owned(), candidates });
            }
        }
    }
    let candidates = list(&mut state.steps.iter().map(|s| s.id));
    Err(FindError::NoStep { word: word.to_owned(), candidates })
}

/// A word that can only be a path: with a slash, or `.` and `..`.
fn by_path(word: &str, cwd: &Path) -> Option<RunDir> {
    let path = cwd.join(word);
    (word.contains('/') || matches!(word, "." | "..")).then_some(())?;
    let real = fs::canonicalize(path).ok()?;
    real.is_dir().then(|| RunDir::at(real))
}

fn last(runs: Vec<Vec<Listed>>, cwd: &Path) -> Option<RunDir> {
    let here = |r: &&Listed| r.is_of(cwd);
    let in_folder = runs.iter().flatten().filter(here).max_by_key(|r| r.started());
    let newest = in_folder.or_else(|| runs.iter().find_map(|root| root.iter().max_by_key(|r| r.started())));
    newest.map(|r| r.dir.clone())
}

fn hint(all: &[Listed]) -> String {
    if all.is_empty() {
        return "; there are no runs yet".into();
    }
    let mut newest: Vec<&Listed> = all.iter().collect();
    newest.sort_by_key(|r| std::cmp::Reverse(r.started()));
    format!("; the newest are:{}", lines(&newest))
}

fn lines(runs: &[&Listed]) -> String {
    let mut text = String::new();
    for run in runs.iter().take(CANDIDATES) {
        let _ = write!(text, "\n  {}", run.line());
    }
    if runs.len() > CANDIDATES {
        let _ = write!(text, "\n  and {} more", runs.len() - CANDIDATES);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunPhase, StepState};
    use crate::rundir::{StatusContext, replace, status};

    fn put(root: &RunRoot, id: &str, name: &str, cwd: &str, started: i64) -> RunDir {
        let dir = RunDir::create(root, &RunId(id.into())).unwrap();
        let step = |id: u32, key: &str, label: Option<&str>| StepState {
            id: StepId(id),
            key: key.into(),
            agent: "worker".into(),
            label: label.map(Into::into),
            ..StepState::default()
        };
        let state = RunState {
            id: RunId(id.into()),
            name: Some(name.into()),
            cwd: cwd.into(),
            phase: RunPhase::Complete,
            started_at: Some(Timestamp::from_millis(started)),
            ended_at: Some(Timestamp::from_millis(started + 1)),
            steps: vec![step(0, "scout", None), step(1, "fix", Some("7")), step(2, "lint", Some("style"))],
            ..RunState::default()
        };
        replace(&dir.status(), &status::encode(&state, &StatusContext { dir: &dir, instance: None })).unwrap();
        dir
    }

    #[test]
    fn runs_are_found_by_all_that_names_them() {
        let temp = tempfile::tempdir().unwrap();
        let (own, foreign) = (RunRoot::at(temp.path().join("own")), RunRoot::at(temp.path().join("pi")));
        let a = put(&own, "abcd1111", "fix", "/work", 10);
        let b = put(&own, "abcd2222", "fix", "/other", 30);
        let c = put(&foreign, "ffff3333", "docs", "/work", 20);
        let roots = [own, foreign];
        let find = |word: &str| run(&roots, word, Path::new("/work"));
        for (word, want) in [("abcd1111", &a), ("abcd2", &b), ("ffff", &c), ("docs", &c), ("@last", &c)] {
            assert_eq!(find(word).as_ref(), Ok(want), "{word}");
        }
        assert_eq!(run(&roots, "@last", Path::new("/nowhere")), Ok(b.clone()));
        let alias = roots[1].runs().join(".active-runs/tool-calls/call_7/ffff3333");
        fs::create_dir_all(alias.parent().unwrap()).unwrap();
        fs::write(alias, "").unwrap();
        assert_eq!(find("call_7"), Ok(c.clone()));
        let path = a.path().to_str().unwrap();
        assert_eq!(find(path).unwrap().id(), a.id());
        assert!(run(&roots, "./none", a.path()).is_err());
        assert_eq!(run(&roots, ".", a.path()).unwrap().id(), a.id());
        for (word, part) in [("abcd", "several runs"), ("fix", "several runs"), ("fff", "no run"), ("..x", "no run")] {
            let error = find(word).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("abcd1111"), "{word}: {error}");
        }
        assert_eq!(target(&roots, "@last:fix", Path::new("/work")), Ok((c.clone(), Some(StepId(1)))));
        assert_eq!(target(&roots, "ffff", Path::new("/work")), Ok((c, None)));
    }

    #[test]
    fn steps_are_found_by_number_key_label_and_agent() {
        let temp = tempfile::tempdir().unwrap();
        let state = status_read::read(&put(&RunRoot::at(temp.path()), "abcd", "n", "/", 0)).unwrap();
        for (word, want) in [("1", 0), ("3", 2), ("scout", 0), ("style", 2), ("7", 1)] {
            assert_eq!(step(&state, word), Ok(StepId(want)), "{word}");
        }
        assert!(matches!(step(&state, "worker"), Err(FindError::ManySteps { .. })));
        assert!(step(&state, "0").unwrap_err().to_string().contains("scout"));
    }

    #[test]
    fn the_unreadable_is_listed_and_the_dismissed_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        assert!(list_runs(&root).is_empty());
        put(&root, "good", "n", "/", 0);
        let bad = RunDir::create(&root, &RunId("bad".into())).unwrap();
        fs::write(bad.status(), "{\"runId\":").unwrap();
        let hidden = RunDir::create(&root, &RunId("hidden".into())).unwrap();
        fs::write(hidden.status(), r#"{"runId":"hidden","state":"failed","displayDismissedAt":1.5}"#).unwrap();
        RunDir::create(&root, &RunId("starting".into())).unwrap();
        fs::create_dir(root.runs().join(".active-runs")).unwrap();
        std::os::unix::fs::symlink(bad.path(), root.runs().join("link")).unwrap();
        let mut runs = list_runs(&root);
        runs.sort_by_key(|r| r.dir.id());
        let seen: Vec<(String, bool)> = runs.iter().map(|r| (r.dir.id().0, r.state.is_ok())).collect();
        let expected = [("bad", false), ("good", true), ("link", false), ("starting", true)];
        assert_eq!(seen, expected.map(|(id, ok)| (id.to_owned(), ok)));
    }

    #[test]
    fn a_link_to_a_run_is_shown_and_not_trusted_and_one_to_anything_else_is_not_shown() {
        let temp = tempfile::tempdir().unwrap();
        let (root, other) = (RunRoot::at(temp.path().join("a")), RunRoot::at(temp.path().join("b")));
        root.create().unwrap();
        let far = put(&other, "abcd1111", "far", "/", 10);
        for (name, to) in [("linked", far.path()), ("folder", temp.path()), ("gone", Path::new("/nowhere"))] {
            std::os::unix::fs::symlink(to, root.runs().join(name)).unwrap();
        }
        let runs = list_runs(&root);
        let [only] = runs.as_slice() else { panic!("{runs:?}") };
        assert_eq!((only.dir.id().0.as_str(), only.distrust), ("linked", Some(Distrust::Link)));
        assert_eq!(only.state.as_ref().unwrap().name.as_deref(), Some("far"));
        for word in ["linked", "link", "far"] {
            assert_eq!(run(std::slice::from_ref(&root), word, Path::new("/")).as_ref(), Ok(&only.dir), "{word}");
        }
        assert_eq!(trust::check(only.dir.path()), Err(Distrust::Link));
    }

    #[test]
    fn a_run_that_never_began_is_lost_after_a_while_and_has_its_name_from_the_start() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let dir = RunDir::create(&root, &RunId("r".into())).unwrap();
        let step = |key: &str| crate::plan::Step { key: key.into(), agent: "a".into(), ..Default::default() };
        let plan = crate::plan::Plan {
            name: Some("the name".into()),
            cwd: "/work".into(),
            steps: vec![crate::plan::LogicalStep::Group {
                steps: vec![step("x"), step("y")],
                concurrency: 2,
                fail_fast: false,
            }],
            ..Default::default()
        };
        replace(&dir.plan_json(), &crate::plan::stored::encode(&plan)).unwrap();
        let look = || {
            let mut runs = list_runs(&root);
            assert_eq!(runs.len(), 1);
            let listed = runs.remove(0);
            let state = listed.state.unwrap();
            assert_eq!((state.name.as_deref(), state.cwd.as_str(), state.steps.len()), (Some("the name"), "/work", 2));
            assert_eq!(state.steps[1].key, "y");
            let mut follower = Follower::open(dir.path()).unwrap();
            follower.poll();
            assert_eq!(follower.state().name.as_deref(), Some("the name"));
            assert_eq!((follower.lost(), follower.is_over()), (listed.lost.clone(), listed.lost.is_some()));
            listed.lost
        };
        assert_eq!(look(), None);
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        fs::File::open(dir.path()).unwrap().set_modified(old).unwrap();
        let evidence = look().unwrap();
        assert!(evidence.starts_with("before it started: it has neither a status nor a runner"), "{evidence}");
        // A runner that said who it is and is gone is evidence at once.
        let mut runner = crate::rundir::RunnerIdentity::of_this_process(None);
        runner.start_ticks = runner.start_ticks.map(|t| t + 1);
        runner.write(&dir).unwrap();
        fs::File::open(dir.path()).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
        let evidence = look().unwrap();
        assert!(evidence.starts_with("before it started: the runner (pid"), "{evidence}");
    }
}
