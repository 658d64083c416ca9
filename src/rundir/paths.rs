//! Where things live: the run root and the names inside of a run directory (run-directory 1 and 2).
//!
//! Knows names and makes folders; never reads or writes a document.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::run::{RunId, StepId};

/// The folder below a root that holds run directories.
pub const RUNS: &str = "async-subagent-runs";
/// The folder below a root that holds results.
pub const RESULTS: &str = "async-subagent-results";
/// The folder below a root that holds the run directories of runs that were started in other runs.
const NESTED: &str = "nested-subagent-runs";
/// The folder of the markers of live runs.
pub const ACTIVE: &str = ".active-runs";
/// The folder of the index of finished runs.
pub const TERMINAL: &str = ".terminal-runs";

/// A folder of run directories and their indexes (run-directory 1.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunRoot {
    path: PathBuf,
}

impl RunRoot {
    /// The root at this path; nothing is created.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where runs go when nobody says otherwise: `$SUBDECK_ROOT`, else `$XDG_STATE_HOME/subdeck`, else
    /// `$HOME/.local/state/subdeck`. `None` when the environment names no home; a relative one would be another in every folder.
    pub fn default_root(env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let get = |key: &str| env(key).filter(|v| !v.is_empty()).map(PathBuf::from);
        if let Some(root) = get("SUBDECK_ROOT") {
            return Some(Self::at(std::path::absolute(&root).unwrap_or(root)));
        }
        // A relative state home is to be ignored, says the base directory specification.
        if let Some(state) = get("XDG_STATE_HOME").filter(|p| p.is_absolute()) {
            return Some(Self::at(state.join("subdeck")));
        }
        get("HOME").filter(|p| p.is_absolute()).map(|home| Self::at(home.join(".local/state/subdeck")))
    }

    /// Where pi-subagents keeps its runs (run-directory 1.1): where it was told to in this environment, and where it
    /// does without being told. Those that others started elsewhere are in the second.
    pub fn pi_roots(env: impl Fn(&str) -> Option<OsString>) -> Vec<Self> {
        let get = |key: &str| env(key).filter(|v| !v.is_empty()).map(PathBuf::from);
        let told = env("PI_SUBAGENTS_TEMP_ROOT").map(|root| root.to_string_lossy().trim().to_owned());
        let told = told.filter(|root| !root.is_empty()).map(PathBuf::from);
        let told = told.map(|root| Self::at(std::path::absolute(&root).unwrap_or(root)));
        let temp = ["TMPDIR", "TMP", "TEMP"].into_iter().find_map(get).unwrap_or_else(|| PathBuf::from("/tmp"));
        let usual = Self::at(temp.join(format!("pi-subagents-uid-{}", rustix::process::getuid().as_raw())));
        told.into_iter().chain([usual]).collect()
    }

    /// The root's own path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of run directories.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// The folder of runs that were started in other runs, one folder a root run (run-directory 1.1).
    #[must_use]
    pub fn nested(&self) -> PathBuf {
        self.path.join(NESTED)
    }

    /// The folder of results.
    #[must_use]
    pub fn results(&self) -> PathBuf {
        self.path.join(RESULTS)
    }

    /// The marker that says a run lives (run-directory 1.4).
    #[must_use]
    pub fn active_marker(&self, id: &RunId) -> PathBuf {
        self.runs().join(ACTIVE).join(id.as_str())
    }

    /// The directory of a run; `None` when the id cannot be the name of one (run-directory 1.2).
    #[must_use]
    pub fn run(&self, id: &RunId) -> Option<RunDir> {
        is_run_id(id.as_str()).then(|| RunDir::at(self.runs().join(id.as_str())))
    }

    /// Makes the root and the two folders in it, for their owner alone.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(&self) -> io::Result<()> {
        private_dir(&self.runs())?;
        private_dir(&self.results())
    }
}

/// Whether a word can be a run id and the name of its directory (run-directory 1.2).
#[must_use]
pub fn is_run_id(word: &str) -> bool {
    !word.is_empty() && word.len() <= 255 && !word.starts_with('.') && !word.contains(['/', '\\', '\0'])
}

/// A new run id: a random UUID in lower case (run-directory 1.2).
#[must_use]
pub fn new_run_id() -> RunId {
    RunId(uuid::Uuid::new_v4().to_string())
}

/// Makes a folder and the missing ones above it, for their owner alone.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The directory of one run and the names inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The run directory at this path; nothing is created.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes the directory of a new run, with its control folders, for its owner alone.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of that name, `InvalidInput` when the id cannot be a name, else what the
    /// file system says.
    pub fn create(root: &RunRoot, id: &RunId) -> io::Result<Self> {
        let dir = Self::claim(root, id)?;
        root.create()?;
        dir.make_folders()?;
        Ok(dir)
    }

    /// Makes the directory of a new run and nothing in it, for its owner alone.
    ///
    /// # Errors
    /// As [`RunDir::create`].
    pub fn claim(root: &RunRoot, id: &RunId) -> io::Result<Self> {
        let dir = root.run(id).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a run id"))?;
        private_dir(&root.runs())?;
        DirBuilder::new().mode(0o700).create(dir.path())?;
        Ok(dir)
    }

    /// Makes the folders of a run directory that somebody else has made (run-directory 1.2, 11).
    ///
    /// # Errors
    /// What the file system says.
    pub fn make_folders(&self) -> io::Result<()> {
        private_dir(&self.path)?;
        private_dir(&super::inside::folder(self))?;
        for folder in ["steer-requests", "steer-capabilities", "steer-acks", "steer-targets", "subdeck-requests"] {
            private_dir(&self.control().join(folder))?;
        }
        for folder in ["requests", "replies"] {
            private_dir(&super::supervisor::channel(self).join(folder))?;
        }
        private_dir(&self.control().join("stop-requests"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is anything of a run in it.
    #[must_use]
    pub fn looks_like_one(&self) -> bool {
        [self.status(), self.plan_json(), self.events()].iter().any(|p| p.exists())
    }

    /// The run's id as a word: the name of the directory, made readable where it is no text.
    #[must_use]
    pub fn id_str(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or("")
    }

    /// The run's id: the name of the directory.
    #[must_use]
    pub fn id(&self) -> RunId {
        RunId(self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default())
    }

    /// The root that the directory lies in, when it lies in one; among the runs, or among those of another run.
    #[must_use]
    pub fn root(&self) -> Option<RunRoot> {
        let folder = self.path.parent()?;
        if folder.file_name()? == RUNS {
            return folder.parent().map(RunRoot::at);
        }
        self.nested_in().and(folder.parent()?.parent()).map(RunRoot::at)
    }

    /// The run that the directory was made in, when it lies among the nested runs of one (run-directory 2.16).
    #[must_use]
    pub fn nested_in(&self) -> Option<RunId> {
        let folder = self.path.parent()?;
        let name = folder.file_name()?.to_str().filter(|name| is_run_id(name))?;
        (folder.parent()?.file_name()? == NESTED).then(|| RunId(name.to_owned()))
    }

    /// Where the result of the run goes, when the directory lies in a root (run-directory 1.1).
    #[must_use]
    pub fn results(&self) -> Option<PathBuf> {
        let results = self.root()?.results();
        Some(match self.nested_in() {
            Some(within) => results.join("nested").join(within.as_str()),
            None => results,
        })
    }

    /// `status.json`.
    #[must_use]
    pub fn status(&self) -> PathBuf {
        self.path.join("status.json")
    }

    /// `events.jsonl`.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// The live output of a step (run-directory 2.6).
    #[must_use]
    pub fn output(&self, step: StepId) -> PathBuf {
        self.path.join(format!("output-{}.log", step.flat()))
    }

    /// The marks beside the output (run-directory 3.9).
    #[must_use]
    pub fn marks(&self, step: StepId) -> PathBuf {
        self.path.join(format!("output-{}.marks", step.flat()))
    }

    /// Standard output of a plain command (run-directory 2.15).
    #[must_use]
    pub fn external_out(&self, step: StepId) -> PathBuf {
        self.path.join(format!("external-{}.stdout.log", step.flat()))
    }

    /// Standard error of a plain command (run-directory 2.15).
    #[must_use]
    pub fn external_err(&self, step: StepId) -> PathBuf {
        self.path.join(format!("external-{}.stderr.log", step.flat()))
    }

    /// Standard output of an agent child as it came (run-directory 3.9).
    #[must_use]
    pub fn raw_out(&self, step: StepId) -> PathBuf {
        self.path.join(format!("raw-{}.stdout", step.flat()))
    }

    /// Standard error of an agent child as it came (run-directory 3.9).
    #[must_use]
    pub fn raw_err(&self, step: StepId) -> PathBuf {
        self.path.join(format!("raw-{}.stderr", step.flat()))
    }

    /// The run log for people (run-directory 2.7).
    #[must_use]
    pub fn log_markdown(&self) -> PathBuf {
        self.path.join(format!("subagent-log-{}.md", self.id().as_str()))
    }

    /// What the runner itself prints on standard output (run-directory 2.7).
    #[must_use]
    pub fn runner_out(&self) -> PathBuf {
        self.path.join("runner.stdout.log")
    }

    /// What the runner itself prints on standard error (run-directory 2.7).
    #[must_use]
    pub fn runner_err(&self) -> PathBuf {
        self.path.join("runner.stderr.log")
    }

    /// The folder of our own documents (run-directory 3.9).
    #[must_use]
    pub fn subdeck(&self) -> PathBuf {
        self.path.join("subdeck")
    }

    /// The identity of the runner (run-directory 3.9).
    #[must_use]
    pub fn runner_json(&self) -> PathBuf {
        self.subdeck().join("runner.json")
    }

    /// The lock that the runner holds while it lives (run-directory 3.9).
    #[must_use]
    pub fn runner_lock(&self) -> PathBuf {
        self.subdeck().join("runner.lock")
    }

    /// The resolved plan (run-directory 3.9).
    #[must_use]
    pub fn plan_json(&self) -> PathBuf {
        self.subdeck().join("plan.json")
    }

    /// The task of a step as it was handed over, where the plan has only what it was made of; for nobody else's eyes, like
    /// the plan (run-directory 3.9).
    #[must_use]
    pub fn asked(&self, step: StepId) -> PathBuf {
        self.subdeck().join(format!("asked-{}.txt", step.flat()))
    }

    /// The folder for the sessions of children that have none beforehand.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.subdeck().join("sessions")
    }

    /// The folder for messages that are being written.
    #[must_use]
    pub fn drafts(&self) -> PathBuf {
        self.subdeck().join("drafts")
    }

    /// The control inbox (run-directory 3.1).
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.path.join("control")
    }

    /// Requests to steer (run-directory 3.3).
    #[must_use]
    pub fn steer_requests(&self) -> PathBuf {
        self.control().join("steer-requests")
    }

    /// The marker that says no more steering is taken (run-directory 3.7).
    #[must_use]
    pub fn inbox_closed(&self) -> PathBuf {
        self.control().join("steer-inbox-closed.json")
    }

    /// Requests beyond the reference's (run-directory 3.9).
    #[must_use]
    pub fn subdeck_requests(&self) -> PathBuf {
        self.control().join("subdeck-requests")
    }

    /// Requests to stop single steps.
    #[must_use]
    pub fn stop_requests(&self) -> PathBuf {
        self.control().join("stop-requests")
    }

    /// Where malformed requests are set aside (product 6).
    #[must_use]
    pub fn rejected(&self) -> PathBuf {
        self.control().join("rejected")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn root_of(vars: &[(&str, &str)]) -> Option<PathBuf> {
        RunRoot::default_root(|key| vars.iter().find(|(k, _)| *k == key).map(|(_, v)| OsString::from(v)))
            .map(|r| r.path().to_owned())
    }

    #[test]
    fn default_root_follows_the_environment() {
        let table = [
            (vec![("SUBDECK_ROOT", "/r"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")], Some("/r")),
            (vec![("XDG_STATE_HOME", "/x"), ("HOME", "/h")], Some("/x/subdeck")),
            (vec![("XDG_STATE_HOME", "relative"), ("HOME", "/h")], Some("/h/.local/state/subdeck")),
            (vec![("SUBDECK_ROOT", ""), ("HOME", "/h")], Some("/h/.local/state/subdeck")),
            (vec![("HOME", "relative")], None),
            (vec![], None),
        ];
        for (vars, want) in table {
            assert_eq!(root_of(&vars), want.map(PathBuf::from), "{vars:?}");
        }
    }

    #[test]
    fn ids_that_could_leave_the_root_are_refused() {
        let root = RunRoot::at("/r");
        for bad in ["", ".", "..", "a/b", "a\\b", ".active-runs", ".deleting-run-1", "a\0b"] {
            assert_eq!(root.run(&RunId(bad.into())), None, "{bad:?}");
        }
        let id = new_run_id();
        let dir = root.run(&id).unwrap();
        assert_eq!((dir.id(), dir.root(), dir.nested_in()), (id, Some(root.clone()), None));
        let nested = RunDir::at(root.nested().join("r-1/r-2"));
        assert_eq!((nested.root(), nested.nested_in()), (Some(root.clone()), Some(RunId("r-1".into()))));
        assert_eq!(nested.results(), Some(root.results().join("nested/r-1")));
        assert_eq!((RunDir::at("/a/b").root(), RunDir::at("/a").nested_in()), (None, None));
    }

    #[test]
    fn a_new_run_directory_is_private_and_has_its_folders() {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path().join("state"));
        let dir = RunDir::create(&root, &RunId("one".into())).unwrap();
        for folder in [root.path().to_owned(), root.runs(), root.results(), dir.path().into(), dir.steer_requests()] {
            assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        }
        let again = RunDir::create(&root, &RunId("one".into())).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }
}
