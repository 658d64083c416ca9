//! What a list tells of a run beside its status: its task, and the project and the branch that it works on.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::{RunDir, open, plan_doc};
use crate::run::RunState;

/// How much of an event log is looked at for the task, in bytes; it is in the first message.
const HEAD: usize = 64 * 1024;
/// How many bytes of a task are kept.
const TASK: usize = 400;
/// A branch is believed for this long.
const BELIEVED: Duration = Duration::from_secs(5);
/// How often a folder above is tried before it is no project.
const ABOVE: usize = 40;

/// Where a run works. Text from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The name of the project's folder.
    pub name: String,
    /// The branch that is checked out there, or the first digits of the commit.
    pub branch: Option<String>,
}

/// What the first agent of a run is to do; empty where nothing says so. Shared documents keep tasks out, so it is in
/// the plan of a run of ours and in the first message of a foreign one.
pub(super) fn task(dir: &RunDir, state: &RunState) -> String {
    let of_plan = plan_doc::read(dir).into_iter().map(|step| step.task).find(|task| !task.trim().is_empty());
    of_plan.or_else(|| first_message(dir, state)).map(|task| cut(&task)).unwrap_or_default()
}

fn cut(task: &str) -> String {
    let end = (0..=task.len().min(TASK)).rev().find(|at| task.is_char_boundary(*at)).unwrap_or(0);
    task.get(..end).unwrap_or_default().trim().to_owned()
}

fn first_message(dir: &RunDir, state: &RunState) -> Option<String> {
    // A run of ours has its task in its plan, or none.
    if dir.runner_json().exists() || state.steps.is_empty() {
        return None;
    }
    let file = open::regular(&dir.events()).ok()?;
    let mut head = vec![0; HEAD];
    let read = std::os::unix::fs::FileExt::read_at(&file, &mut head, 0).ok()?;
    head.truncate(read);
    let lines = head.split(|byte| *byte == b'\n');
    let user = lines.filter(|line| memchr::memmem::find(line, b"\"role\":\"user\"").is_some());
    let text = user.filter_map(|line| serde_json::from_slice::<Value>(line).ok()).find_map(|record| {
        let content = record.get("message")?.get("content")?;
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let text = content.as_str().or_else(|| parts.iter().find_map(|part| part.get("text")?.as_str()))?;
        Some(text.to_owned())
    })?;
    // pi-subagents puts a word before the task, and what it expects of the answer behind it.
    let task = text.strip_prefix("Task: ").unwrap_or(&text);
    let end = task.find("\n\n## Acceptance Contract").unwrap_or(task.len());
    task.get(..end).map(str::to_owned)
}

/// The projects of folders that were asked for.
#[derive(Debug, Default)]
pub(super) struct Projects {
    known: HashMap<String, (Instant, Option<Project>)>,
}

impl Projects {
    /// The project of a folder.
    pub(super) fn of(&mut self, folder: &str) -> Option<Project> {
        if let Some((at, project)) = self.known.get(folder)
            && at.elapsed() < BELIEVED
        {
            return project.clone();
        }
        let project = project(Path::new(folder));
        self.known.insert(folder.to_owned(), (Instant::now(), project.clone()));
        project
    }
}

fn project(folder: &Path) -> Option<Project> {
    if !folder.is_absolute() {
        return None;
    }
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    for above in folder.ancestors().take(ABOVE) {
        if let Some(git) = git_folder(&above.join(".git")) {
            return Some(Project { name: name(above)?, branch: branch(&git) });
        }
    }
    Some(Project { name: name(folder)?, branch: None })
}

/// The folder that a `.git` is, or that it names (in worktrees it is a file).
fn git_folder(git: &Path) -> Option<PathBuf> {
    if fs::symlink_metadata(git).ok()?.is_dir() {
        return Some(git.to_owned());
    }
    let text = read_small(git)?;
    let named = Path::new(text.strip_prefix("gitdir:")?.trim());
    Some(git.parent()?.join(named))
}

fn branch(git: &Path) -> Option<String> {
    let head = read_small(&git.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref:") {
        Some(name) => Some(name.trim().trim_start_matches("refs/heads/").to_owned()),
        None => head.get(..8).map(str::to_owned),
    }
}

fn read_small(path: &Path) -> Option<String> {
    let bytes = open::read_at_most(&open::regular(path).ok()?, 4096).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_known_by_its_git_folder_also_in_a_worktree() {
        let temp = tempfile::tempdir().unwrap();
        let (pool, tree) = (temp.path().join("pool"), temp.path().join("tree"));
        fs::create_dir_all(pool.join(".git/worktrees/tree")).unwrap();
        fs::create_dir_all(pool.join("src/deep")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(pool.join(".git/HEAD"), "ref: refs/heads/fix/drain\n").unwrap();
        fs::write(pool.join(".git/worktrees/tree/HEAD"), "0123456789abcdef\n").unwrap();
        fs::write(tree.join(".git"), "gitdir: ../pool/.git/worktrees/tree\n").unwrap();
        for (folder, name, branch) in
            [(pool.join("src/deep"), "pool", Some("fix/drain")), (tree, "tree", Some("01234567"))]
        {
            let found = project(&folder).unwrap();
            assert_eq!((found.name.as_str(), found.branch.as_deref()), (name, branch), "{}", folder.display());
        }
        // Above the temporary folder there may be a project of its own, so the folder that is in none is the highest.
        assert_eq!((project(Path::new("/")), project(Path::new("relative"))), (None, None));
    }

    #[test]
    fn a_task_is_cut_between_characters() {
        assert_eq!(cut("  do it \n"), "do it");
        let long = "ä".repeat(TASK);
        assert_eq!(cut(&long).chars().count(), TASK / 2);
    }
}
