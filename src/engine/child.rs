//! One child process: started in a group of its own, with its pipes handed to pumps, its stdin to a writer that never
//! blocks the runner, and its exit watched by pid.
//!
//! There is no `pre_exec`: the runner installs handlers for the signals that must be at their default in children
//! before it spawns the first one, because exec resets handled signals (and only ignored ones are inherited).

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc::{Sender, UnboundedSender, unbounded_channel};

use super::clock::now;
use super::not_started;
use super::notes::Note;
use crate::run::{ExitInfo, StepId};

/// How a child is to be started.
#[derive(Debug)]
pub struct Spawn {
    /// The program; looked up on PATH when it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its folder.
    pub cwd: PathBuf,
    /// Changes to the runner's environment; `None` removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Its standard input.
    pub stdin: Input,
}

/// What a child reads on its standard input.
#[derive(Debug)]
pub enum Input {
    /// Nothing: `/dev/null`.
    Null,
    /// These bytes, then the end.
    Once(Vec<u8>),
    /// These bytes first, then whatever is sent until it is closed.
    Open(Vec<u8>),
}

/// A child that was started.
#[derive(Debug)]
pub struct Child {
    /// Its process id, which is its group's id too.
    pub pid: u32,
    /// When it started, in kernel ticks.
    pub start_ticks: Option<u64>,
    /// Its standard input; dropping it closes it.
    pub stdin: Option<UnboundedSender<Vec<u8>>>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

/// Starts a child; its exit arrives as a note.
///
/// # Errors
/// What the system says when the program cannot be started.
pub fn spawn(spawn: Spawn, step: StepId, attempt: u32, notes: &Sender<Note>) -> io::Result<Child> {
    let mut command = Command::new(&spawn.program);
    if spawn.program == super::keeper::this_program() {
        command.arg0(super::keeper::NAME);
    }
    command.args(&spawn.args).current_dir(&spawn.cwd).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(match spawn.stdin {
        Input::Null => Stdio::null(),
        Input::Once(_) | Input::Open(_) => Stdio::piped(),
    });
    for (name, value) in &spawn.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn().map_err(|error| not_started::explain(&error, &spawn))?;
    let pid = child.id().ok_or_else(|| io::Error::other("the child has no process id"))?;
    let start_ticks = super::tree::start_ticks(pid);
    let pipes = child.stdout.take().zip(child.stderr.take());
    let (stdout, stderr) = pipes.ok_or_else(|| io::Error::other("the child has no pipes"))?;
    let (stdout, stderr) = (stdout.into_owned_fd()?, stderr.into_owned_fd()?);
    // A larger pipe lets a flooding child and its pump run side by side. Refused only when the user's pipe memory is
    // spent, and then the ordinary size does.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, 512 * 1024);
    let stdin = child.stdin.take().and_then(|pipe| feed(pipe, spawn.stdin));
    let notes = notes.clone();
    tokio::spawn(async move {
        let exit = match child.wait().await {
            Ok(status) => exit_info(status),
            Err(_) => ExitInfo::default(),
        };
        let at = now();
        // Nobody is left to be told when this fails.
        let _ = notes.send(Note::Exited { step, attempt, exit, at }).await;
    });
    Ok(Child { pid, start_ticks, stdin, stdout, stderr })
}

/// Writes to the child on a task of its own. A child that does not read makes only this task wait.
fn feed(mut pipe: tokio::process::ChildStdin, input: Input) -> Option<UnboundedSender<Vec<u8>>> {
    let (first, open) = match input {
        Input::Null => return None,
        Input::Once(bytes) => (bytes, false),
        Input::Open(bytes) => (bytes, true),
    };
    let (sender, mut receiver) = unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        // A child that closes its input before it has read everything is within its rights.
        if pipe.write_all(&first).await.is_err() {
            return;
        }
        while let Some(bytes) = receiver.recv().await {
            if pipe.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    open.then_some(sender)
}

fn exit_info(status: std::process::ExitStatus) -> ExitInfo {
    use std::os::unix::process::ExitStatusExt;
    ExitInfo { code: status.code(), signal: status.signal() }
}
