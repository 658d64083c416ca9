//! Launching a run: its directory is made, a keeper with its runner is started, and the plan is stored while they come
//! up. The runner begins when it has been handed over; what its first child need not wait for, it makes itself after
//! it has started it.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::keeper;
use crate::plan::Plan;
use crate::plan::stored::{self, Secrets};
use crate::run::{OnPermission, RunId};
use crate::rundir::{Disk, Op, RealDisk, RunDir, RunRoot, new_run_id};

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
    #[error("the runner ended before it was ready; what it had to say stands above or in {0}")]
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
    /// What becomes of questions that no rule decides.
    #[serde(default, with = "on_permission")]
    pub on_permission: OnPermission,
    /// The plan could not be stored: there is nothing to run.
    #[serde(default)]
    pub withdrawn: bool,
}

/// A run whose directory exists, and nothing in it.
pub struct Prepared {
    /// Its directory.
    pub dir: RunDir,
    plan: Vec<u8>,
    hand_over: HandOver,
}

impl std::fmt::Debug for Prepared {
    /// Without the values that must not be seen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Prepared {
    /// Says what becomes of questions that no rule decides; without this they wait for a person.
    #[must_use]
    pub fn on_permission(mut self, on: OnPermission) -> Self {
        self.hand_over.on_permission = on;
        self
    }
}

/// The word of [`OnPermission`].
mod on_permission {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::run::OnPermission;

    pub(super) fn serialize<S: Serializer>(on: &OnPermission, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(on.word())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OnPermission, D::Error> {
        let word = String::deserialize(from)?;
        OnPermission::of_word(&word).ok_or_else(|| D::Error::custom(format!("there is no `{word}`")))
    }
}

/// Makes the run's directory.
///
/// # Errors
/// When the directory cannot be made, or is there already with a run in it.
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
            let id = plan.run_id.clone().map_or_else(new_run_id, RunId);
            RunDir::claim(root, &id).map_err(at("make a run directory in", root.path()))?
        }
    };
    let hand_over = HandOver { secrets: Secrets::of(plan), caps, ..HandOver::default() };
    Ok(Prepared { dir, plan: stored::encode(plan), hand_over })
}

/// Starts a keeper and its runner in a session of their own and waits until the runner is ready.
///
/// # Errors
/// What the runner says when it cannot begin. The directory of a run that never began is removed.
pub fn detach(prepared: &Prepared) -> Result<(), LaunchError> {
    let dir = &prepared.dir;
    let mut command = keeper::this_command();
    command.arg("__keeper").arg(dir.path());
    let (mut keeper, stdout) = begin(command, prepared)?;
    let answer = wait_ready(stdout, dir);
    if answer.is_err() {
        let _ = keeper.wait();
        discard(dir);
    }
    answer
}

/// Starts a runner below this process, which becomes its keeper. The second value is where readiness will be told.
///
/// # Errors
/// When the process cannot be started or the plan cannot be stored.
pub fn foreground(prepared: &Prepared) -> Result<(Child, Option<ChildStdout>), LaunchError> {
    keeper::become_subreaper();
    begin(keeper::runner_command(&prepared.dir, true), prepared)
}

/// Starts a process, stores the plan while it comes up, and hands over what it waits for.
fn begin(mut command: Command, prepared: &Prepared) -> Result<(Child, Option<ChildStdout>), LaunchError> {
    let dir = &prepared.dir;
    let disk = |doing, error| LaunchError::Disk { doing, path: dir.path().display().to_string(), error };
    // What goes wrong before it has a log of its own is told here.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut process = command.spawn().map_err(|error| {
        discard(dir);
        disk("start a runner for", error)
    })?;
    let plan = Op::Keep(dir.plan_json(), prepared.plan.clone());
    if let Err(error) = RealDisk.perform(&plan) {
        let withdrawn = HandOver { withdrawn: true, ..HandOver::default() };
        hand_over(process.stdin.take(), &serde_json::to_vec(&withdrawn).unwrap_or_default());
        // It has nothing to add.
        let _ = process.wait();
        discard(dir);
        return Err(disk("store the plan in", error));
    }
    // Texts and numbers have no way to fail.
    hand_over(process.stdin.take(), &serde_json::to_vec(&prepared.hand_over).unwrap_or_default());
    let ready = process.stdout.take();
    Ok((process, ready))
}

/// Waits for the runner's first line.
///
/// # Errors
/// What it says instead of *ready*.
pub fn wait_ready(stdout: Option<ChildStdout>, dir: &RunDir) -> Result<(), LaunchError> {
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

fn hand_over(stdin: Option<ChildStdin>, bytes: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A runner that does not read them says why on its own.
        let _ = stdin.write_all(bytes);
    }
}
