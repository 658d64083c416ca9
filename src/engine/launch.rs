//! Launching a run: its directory is made, the plan is stored in it, and a keeper with its runner is started.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::keeper;
use crate::plan::Plan;
use crate::plan::stored::{self, Secrets};
use crate::run::RunId;
use crate::rundir::{RunDir, RunRoot, new_run_id};

/// Why a run could not be launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Something on disk.
    #[error("cannot {doing} {path}: {error}")]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The runner said why it cannot begin.
    #[error("{0}")]
    Refused(String),
    /// The runner ended without a word.
    #[error("the runner ended before it was ready; see {0}")]
    Silent(String),
}

/// How many bytes of output may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Of each step.
    pub step: u64,
    /// Of the whole run.
    pub run: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { step: super::capture::STEP_CAP, run: super::capture::RUN_CAP }
    }
}

/// What a launcher hands its runner through a pipe: what must not be on disk, and what belongs to this launch only.
#[derive(Default, Serialize, Deserialize)]
pub struct HandOver {
    /// Values of the plan's variables.
    pub secrets: Secrets,
    /// How many bytes of output may be kept.
    pub caps: Caps,
}

/// A run whose directory exists.
#[derive(Debug)]
pub struct Prepared {
    /// Its directory.
    pub dir: RunDir,
    hand_over: Vec<u8>,
}

/// Makes the run's directory and stores the plan in it.
///
/// # Errors
/// When the root or the directory cannot be made, or the directory is there already with a run in it.
pub fn prepare(plan: &Plan, root: &RunRoot, caps: Caps) -> Result<Prepared, LaunchError> {
    let at = |doing, path: &std::path::Path| {
        let path = path.display().to_string();
        move |error| LaunchError::Disk { doing, path, error }
    };
    let dir = match &plan.run_dir {
        Some(path) => {
            let dir = RunDir::at(path);
            if dir.status().exists() {
                return Err(LaunchError::Refused(format!("{} holds a run already", path.display())));
            }
            dir.make_folders().map_err(at("make", path))?;
            dir
        }
        None => {
            root.create().map_err(at("make the run root", root.path()))?;
            let id = plan.run_id.clone().map_or_else(new_run_id, RunId);
            RunDir::create(root, &id).map_err(at("make a run directory in", root.path()))?
        }
    };
    if let Err(error) = crate::rundir::replace(&dir.plan_json(), &stored::encode(plan)) {
        discard(&dir);
        return Err(at("store the plan in", dir.path())(error));
    }
    let hand_over = HandOver { secrets: Secrets::of(plan), caps };
    let hand_over = serde_json::to_vec(&hand_over).map_err(|e| LaunchError::Refused(e.to_string()))?;
    Ok(Prepared { dir, hand_over })
}

/// Starts a keeper and its runner in a session of their own and waits until the runner is ready.
///
/// # Errors
/// What the runner says when it cannot begin. The directory of a run that never began is removed.
pub fn detach(prepared: &Prepared) -> Result<(), LaunchError> {
    let dir = &prepared.dir;
    let disk = |doing| {
        let path = dir.path().display().to_string();
        move |error| LaunchError::Disk { doing, path, error }
    };
    let stderr = private_log(&dir.runner_err()).map_err(disk("open the runner's log in"))?;
    let mut command = Command::new(keeper::this_program());
    command.arg("__keeper").arg(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    let mut keeper = command.spawn().map_err(disk("start a keeper for"))?;
    hand_over(keeper.stdin.take(), &prepared.hand_over);
    let answer = wait_ready(keeper.stdout.take(), dir);
    if answer.is_err() {
        let _ = keeper.wait();
        discard(dir);
    }
    answer
}

/// Starts a runner below this process, which becomes its keeper. The second value is where readiness will be told.
///
/// # Errors
/// When the process cannot be started.
pub fn foreground(
    prepared: &Prepared,
) -> Result<(std::process::Child, Option<std::process::ChildStdout>), LaunchError> {
    let dir = &prepared.dir;
    let disk = |doing| {
        let path = dir.path().display().to_string();
        move |error| LaunchError::Disk { doing, path, error }
    };
    keeper::become_subreaper();
    let stderr = private_log(&dir.runner_err()).map_err(disk("open the runner's log in"))?;
    let mut command = keeper::runner_command(dir, true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    let mut runner = command.spawn().map_err(disk("start a runner for"))?;
    hand_over(runner.stdin.take(), &prepared.hand_over);
    let ready = runner.stdout.take();
    Ok((runner, ready))
}

/// Waits for the runner's first line.
///
/// # Errors
/// What it says instead of *ready*.
pub fn wait_ready(stdout: Option<std::process::ChildStdout>, dir: &RunDir) -> Result<(), LaunchError> {
    let mut line = String::new();
    if let Some(stdout) = stdout {
        // An error of the pipe reads like an end, and is told like one.
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let answer: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    if answer.get("ready").and_then(serde_json::Value::as_bool) == Some(true) {
        return Ok(());
    }
    Err(match answer.get("error").and_then(serde_json::Value::as_str) {
        Some(error) => LaunchError::Refused(error.to_owned()),
        None => LaunchError::Silent(dir.runner_err().display().to_string()),
    })
}

/// Removes the directory of a run that never began, so that nobody finds an empty one.
pub fn discard(dir: &RunDir) {
    if !dir.status().exists() && dir.root().is_some() {
        let _ = std::fs::remove_dir_all(dir.path());
    }
}

fn hand_over(stdin: Option<std::process::ChildStdin>, bytes: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A runner that does not read them says why on its own.
        let _ = stdin.write_all(bytes);
    }
}

fn private_log(path: &std::path::Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
