//! Asking git what changed in a step's folder, on a thread of its own: a folder may be large, slow or gone, and nobody's
//! keys wait for it. Only looks: no lock is taken, no program that the folder's settings name is started.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{App, Source, wall};
use crate::deck::changes::Diff;
use crate::deck::model::Tab;
use crate::run::{StepId, StepPhase};

/// Between two questions about the same step.
const REST: Duration = Duration::from_secs(2);
/// An answer about a step that runs is asked for again after this time, with a frame that is drawn anyway.
const OLD: Duration = Duration::from_secs(5);
/// A folder whose settings name more filters than fit into this many bytes is not looked at.
const FILTERS: usize = 64 * 1024;
/// As much of an answer is read.
const MOST: u64 = 2 * 1024 * 1024;

/// What was asked and answered.
#[derive(Default)]
pub(super) struct Git {
    /// The newest answer.
    pub(super) diff: Option<Arc<Diff>>,
    /// Whose folder was asked about last, how many of its calls had ended then, whether it ran, and when.
    asked: Option<(StepId, u64, bool, Instant)>,
    answer: Option<oneshot::Receiver<Diff>>,
}

impl Git {
    /// Asks again the next time that the answer is wanted: somebody looks anew.
    pub(super) fn forget(&mut self) {
        self.asked = None;
    }

    /// Returns when an answer has come, and never while none is awaited. May be dropped at any time.
    pub(super) async fn answered(&mut self) {
        let Some(answer) = &mut self.answer else { return std::future::pending().await };
        let diff = answer.await;
        self.answer = None;
        self.diff = diff.ok().map(Arc::new).or(self.diff.take());
    }
}

impl<S: Source> App<'_, S> {
    /// Asks git again where its answer is visible and may be another one.
    pub(super) fn ask_git(&mut self) {
        let id = self.ui.selected;
        if !self.ui.zoom || self.ui.tab(id) != Tab::Changes || self.git.answer.is_some() {
            return;
        }
        let Some(step) = self.source.state().step(id) else { return };
        let ended = step.tool_count.saturating_sub(step.open.len() as u64);
        let runs = step.phase == StepPhase::Running;
        let known = self.git.asked.is_some_and(|(asked, calls, ran, at)| {
            let (same, age) = (calls == ended && ran == runs, at.elapsed());
            asked == id && (age < REST || same && !(runs && age >= OLD))
        });
        if known {
            return;
        }
        self.git.asked = Some((id, ended, runs, Instant::now()));
        let Some(folder) = self.source.folder(id) else {
            self.git.diff = Some(Arc::new(Diff::failed(id, "", "the folder of this step is gone")));
            return;
        };
        let (sender, answer) = oneshot::channel();
        let look = move || drop(sender.send(look(id, &folder)));
        if std::thread::Builder::new().name("deck-git".to_owned()).spawn(look).is_ok() {
            self.git.answer = Some(answer);
        }
    }
}

fn look(step: StepId, folder: &Path) -> Diff {
    let name = folder.display().to_string();
    let found = filters(folder).and_then(|filters| {
        let status = ["status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--", "."];
        Ok((ask(folder, &filters, &status)?, filters))
    });
    let (status, filters) = match found {
        Ok(found) => found,
        Err(why) => return Diff::failed(step, &name, &why),
    };
    // A folder without any commit has no differences yet.
    let compare = |how: &[&str]| {
        let fixed = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        ask(folder, &filters, &[&fixed[..], how, &["HEAD", "--", "."]].concat()).unwrap_or_default()
    };
    let diff = Diff::parse(step, &name, &status, &compare(&["--numstat", "-z"]), &compare(&[]));
    Diff { at: Some(wall()), ..diff }
}

/// The settings of the folder that name a program through which git reads its files. To list them starts nothing.
///
/// # Errors
/// When there are more than can be turned off in one call, or git cannot be asked.
fn filters(folder: &Path) -> Result<Vec<OsString>, String> {
    let wanted = r"^filter\..*\.(clean|smudge|process|required)$";
    let listed = ask(folder, &[], &["config", "--null", "--name-only", "--get-regexp", wanted])?;
    if listed.len() >= FILTERS {
        return Err("its settings name more filters than can be turned off, so git is not asked".to_owned());
    }
    // Byte for byte as git has them: one that is taken for another stays on.
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
}

/// What git prints, as far as it is read, with these settings of the folder turned off.
fn ask(folder: &Path, off: &[OsString], arguments: &[&str]) -> Result<Vec<u8>, String> {
    // Variables, because a name may have a `=` in it, which would end it on the command line.
    let variables = off.iter().enumerate().flat_map(|(at, name)| {
        let value = if name.as_bytes().ends_with(b".required") { "false" } else { "" };
        [(format!("GIT_CONFIG_KEY_{at}"), name.as_os_str()), (format!("GIT_CONFIG_VALUE_{at}"), OsStr::new(value))]
    });
    let mut child = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        // An object that is missing is not fetched, with whatever program the settings name for that.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_CONFIG_COUNT", off.len().to_string())
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("git could not be asked: {error}"))?;
    let mut bytes = Vec::new();
    if let Some(out) = child.stdout.take() {
        // Whoever prints more than is read is told by the closed pipe.
        let _ = out.take(MOST).read_to_end(&mut bytes);
    }
    match child.wait() {
        Ok(status) if status.code() == Some(128) => Err("the folder is in no git repository".to_owned()),
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("git could not be asked: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let status = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    #[test]
    fn a_folder_is_compared_with_its_last_commit_and_nothing_of_its_settings_is_started() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("repo");
        std::fs::create_dir(&folder).unwrap();
        let none = look(StepId(1), &folder);
        assert_eq!(none.problem.unwrap().as_str(), "the folder is in no git repository");
        git(&folder, &["init", "-q"]);
        std::fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
        assert_eq!(look(StepId(1), &folder).files.len(), 1);
        git(&folder, &["add", "."]);
        git(&folder, &["commit", "-qm", "first"]);
        std::fs::write(folder.join("a.txt"), "one\n2\nthree\n").unwrap();
        std::fs::write(folder.join("new.txt"), "").unwrap();
        let ran = temp.path().join("ran");
        git(&folder, &["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
        git(&folder, &["config", "diff.external", &format!("touch {}", ran.display())]);
        let filter = format!("touch {}; cat", ran.display());
        for name in ["one", "o=n.e", "long"] {
            let kind = if name == "long" { "process" } else { "clean" };
            git(&folder, &["config", "--file", ".git/config", "--add", &format!("filter.{name}.{kind}"), &filter]);
            git(&folder, &["config", "--file", ".git/config", "--add", &format!("filter.{name}.required"), "true"]);
            std::fs::write(folder.join(".git/info/attributes"), format!("a.txt filter={name}\n")).unwrap();
            let diff = look(StepId(1), &folder);
            assert_eq!(diff.files.len(), 2, "{:?}", diff.problem);
            assert!(!ran.exists(), "{name}");
        }
        // A name need not be a text.
        let mut settings = std::fs::read(folder.join(".git/config")).unwrap();
        settings.extend(b"[filter \"b\xff\"]\n\tclean = ");
        settings.extend(format!("\"{filter}\"\n").bytes());
        std::fs::write(folder.join(".git/config"), settings).unwrap();
        std::fs::write(folder.join(".git/info/attributes"), b"a.txt filter=b\xff\n").unwrap();
        assert_eq!(look(StepId(1), &folder).files.len(), 2);
        assert!(!ran.exists(), "a name that is no text");
        let diff = look(StepId(1), &folder);
        let told: Vec<String> = diff.files.iter().map(|f| format!("{} {} {:?}", f.state, f.path, f.added)).collect();
        assert_eq!(told, ["M a.txt Some(2)", "?? new.txt None"]);
        assert!(diff.lines.iter().any(|line| line.as_str() == "+three"), "{:?}", diff.lines);
        assert!(!ran.exists());
    }
}
