//! The keeper: the process above the runner. It only waits. When the runner dies without having ended its run, the
//! keeper ends what fell to it (it is a subreaper, so orphans are its children) and records the run as lost.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::complain::complain;
use super::settle::{self, Patience};
use super::tree::{self, Snapshot, Swept};
use crate::run::RunState;
use crate::rundir::{self, Home, RunDir};

/// What is left of the runner's children gets this long between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1500);

/// Becomes the one that orphans fall to.
pub fn become_subreaper() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// The command that starts a runner for this directory. The caller sets its pipes.
#[must_use]
pub fn runner_command(dir: &RunDir, foreground: bool) -> Command {
    let mut command = this_command();
    command.arg("__runner").arg(dir.path());
    if foreground {
        command.arg("--foreground");
    }
    command
}

/// This very program, also when its file was replaced meanwhile.
#[must_use]
pub fn this_program() -> std::path::PathBuf {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().unwrap_or_else(|_| "subdeck".into())
}

/// A command that starts this very program again, under the name that people know.
#[must_use]
pub fn this_command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(this_program());
    command.arg0(NAME);
    command
}

/// What the program is called in lists of processes.
pub const NAME: &str = "subdeck";

/// Gives this process its name: the system names it by the path that it was started by, which leads through /proc.
pub fn take_name() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"subdeck");
}

/// The main of a detached keeper. Standard input and output are the runner's: they are passed on.
#[must_use]
pub fn main(path: &Path) -> u8 {
    // The launcher's terminal may go away; nothing of it must be left.
    let _ = rustix::process::setsid();
    take_name();
    become_subreaper();
    let dir = RunDir::at(path);
    let home = match Home::open(&dir) {
        Ok(home) => Arc::new(home),
        Err(error) => return refuse(&format_args!("cannot open the run directory: {error}")),
    };
    // A runner writes who it is as it begins; a second one would meet what the first has done or still does.
    if home.way().runner_json().exists() {
        return refuse(&"this run was begun already; start another one with `subdeck retry` or `subdeck resume`");
    }
    let mut command = runner_command(&dir, false);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut runner = match command.spawn() {
        Ok(runner) => runner,
        Err(error) => return refuse(&format_args!("cannot start the runner: {error}")),
    };
    // It only waits; what is to end the run is for the runner, and this process ends with that.
    super::signals::shrug_off_all();
    // The launcher waits for the end of these pipes too; only the runner may hold them.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    own_stderr(home.way());
    match runner.wait() {
        Ok(status) => {
            if let Aftermath::Unrecorded(why) = after(&home, status, Patience::UntilWritten) {
                complain("keeper", &why);
            }
            0
        }
        Err(_) => 1,
    }
}

/// Standard error was that of whoever started this process; from now on it is the run's own log.
pub(super) fn own_stderr(way: &RunDir) {
    let log = rundir::open::append(&way.runner_err());
    if let Ok(file) = log.or_else(|_| std::fs::OpenOptions::new().write(true).open("/dev/null")) {
        let _ = rustix::stdio::dup2_stderr(&file);
    }
}

fn refuse(why: &dyn std::fmt::Display) -> u8 {
    let answer = serde_json::json!({ "error": why.to_string() });
    // A launcher that went away learns nothing, and nobody else reads this.
    let _ = writeln!(io::stdout().lock(), "{answer}");
    1
}

/// How a run stands once its runner is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// It had ended.
    Ended,
    /// The runner died before; the run is recorded as lost.
    Lost,
    /// Its end, or its loss, is not on the disk; why.
    Unrecorded(String),
}

/// What the keeper does once the runner is gone: it ends what is left, and records a run without an end as lost.
pub fn after(home: &Arc<Home>, status: ExitStatus, patience: Patience) -> Aftermath {
    let ended = read_state(home.way()).is_some_and(|s| s.ended_at.is_some());
    let run = home.dir().id().0;
    // A runner that ended its run left nothing; what is below us now is by definition an orphan.
    let swept = if ended && tree::has_other_children(&std::collections::BTreeSet::new()) == Some(false) {
        Swept::default()
    } else {
        let me = std::process::id();
        tree::sweep(GRACE, || {
            let snapshot = Snapshot::take();
            let mut found = snapshot.below(me);
            found.extend(snapshot.marked(&run).into_iter().map(|(seen, _)| seen));
            found.sort_unstable_by_key(|s| s.pid);
            found.dedup();
            found
        })
    };
    settle::settle(home, status, &swept, patience)
}

/// What the newest status says; `None` when it cannot be read.
pub(super) fn read_state(dir: &RunDir) -> Option<RunState> {
    rundir::decode_status(&rundir::open::whole(&dir.status()).ok()?).ok()
}
