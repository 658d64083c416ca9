//! Who runs a run: `subdeck/runner.json` and the lock beside it (architecture, "How a run starts, lives and is found").
//!
//! Tells whether a runner lives; never signals and never changes what it looks at.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::json::Obj;
use super::{RunDir, open, write};

/// Who a runner is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunnerIdentity {
    /// Its process id.
    pub pid: u32,
    /// When it started, field 22 of `/proc/<pid>/stat`; unknown outside Linux.
    pub start_ticks: Option<u64>,
    /// The boot it started in; unknown outside Linux.
    pub boot_id: Option<String>,
    /// The machine.
    pub host: String,
    /// The user.
    pub uid: u32,
    /// The version of the program.
    pub version: String,
    /// The process above it that sees it die.
    pub keeper_pid: Option<u32>,
    /// When that process started, as for the runner.
    pub keeper_start_ticks: Option<u64>,
}

impl RunnerIdentity {
    /// The identity of this process.
    #[must_use]
    pub fn of_this_process(keeper_pid: Option<u32>) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid),
            boot_id: boot_id(),
            host: host(),
            uid: rustix::process::getuid().as_raw(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            keeper_pid,
            keeper_start_ticks: keeper_pid.and_then(start_ticks),
        }
    }

    /// Whether the keeper is known to live. While it does, what the runner left is being ended and the loss of the run
    /// recorded.
    fn has_keeper(&self) -> bool {
        let then = self.keeper_start_ticks;
        then.is_some() && self.keeper_pid.and_then(start_ticks) == then
    }

    /// Writes it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, dir: &RunDir) -> io::Result<()> {
        write::replace(&dir.runner_json(), &self.encode())
    }

    /// The document.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut obj = Obj::new();
        obj.set("pid", self.pid).opt("startTicks", self.start_ticks).opt("bootId", self.boot_id.as_ref());
        obj.set("host", &self.host).set("uid", self.uid).set("version", &self.version);
        obj.opt("keeperPid", self.keeper_pid).opt("keeperStartTicks", self.keeper_start_ticks);
        obj.pretty()
    }

    /// Reads it; `None` when there is none or it is not readable.
    #[must_use]
    pub fn read(dir: &RunDir) -> Option<Self> {
        let file = open::regular(&dir.runner_json()).ok()?;
        serde_json::from_slice(&open::read_at_most(&file, 64 * 1024).ok()?).ok()
    }
}

/// When a process started, in ticks since boot: field 22 of `/proc/<pid>/stat`. `None` when no such process lives, or
/// there is no such file system. One that has ended and was not collected by its parent does not live: where nobody
/// collects orphans, as in many containers, such a one stays for ever.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).filter(|(ended, _)| !ended).map(|(_, ticks)| ticks)
}

/// Whether a process has ended, and when it started.
fn stat(pid: u32) -> Option<(bool, u64)> {
    let (state, ticks) = state(pid)?;
    Some((matches!(state, 'Z' | 'X' | 'x'), ticks))
}

/// The letter of a process's state, and when it started.
fn state(pid: u32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// The id of the running boot.
#[must_use]
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The name of this machine.
#[must_use]
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The lock that a runner holds; given back when it is dropped or its process ends, however it ends.
#[derive(Debug)]
pub struct RunnerLock {
    _file: File,
}

/// Why the lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// Another runner has it.
    #[error("another runner supervises this run{}", pid.map(|p| format!(" (pid {p})")).unwrap_or_default())]
    Held {
        /// Its process id, where known.
        pid: Option<u32>,
    },
    /// The lock cannot be made.
    #[error("cannot lock the run: {0}")]
    Io(#[from] io::Error),
}

impl RunnerLock {
    /// Takes the lock of a run.
    ///
    /// # Errors
    /// [`AcquireError::Held`] when another runner supervises the run.
    pub fn acquire(dir: &RunDir) -> Result<Self, AcquireError> {
        let path = dir.runner_lock();
        let file = open::append(&path)?;
        // A reader that probes holds a shared lock for an instant, which is no reason to give up.
        for _ in 0..20 {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(AcquireError::Held { pid: RunnerIdentity::read(dir).map(|r| r.pid) })
    }
}

/// What is known of a runner's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerLife {
    /// It lives.
    Alive,
    /// It does not live; how that is known.
    Dead(String),
    /// It cannot be known; why.
    Unknown(String),
    /// The run has no runner of ours.
    NotOurs,
}

/// Looks whether the runner of a run of ours lives.
#[must_use]
pub fn probe(dir: &RunDir) -> RunnerLife {
    let Some(identity) = RunnerIdentity::read(dir) else {
        return match locked(&dir.runner_lock()) {
            Some(true) => RunnerLife::Alive,
            _ => RunnerLife::NotOurs,
        };
    };
    let (host, boot) = (host(), boot_id());
    match judge(&identity, &host, boot.as_deref(), locked(&dir.runner_lock()), process_is(&identity)) {
        // Lost is only said once nothing of the run is being ended any more: whoever waits may start it again.
        RunnerLife::Dead(why) if identity.boot_id == boot && identity.has_keeper() => {
            RunnerLife::Unknown(format!("{why}; its keeper ends what it left and records the loss"))
        }
        life => life,
    }
}

/// The runner of a run of ours when it lives and is stopped by a signal: it answers nothing until it goes on.
#[must_use]
pub fn suspended(dir: &RunDir) -> Option<u32> {
    let identity = RunnerIdentity::read(dir)?;
    if identity.host != host() || identity.boot_id != boot_id() {
        return None;
    }
    let (state, ticks) = state(identity.pid)?;
    // A debugger that looks in for a moment leaves a `t`.
    (state == 'T' && identity.start_ticks == Some(ticks)).then_some(identity.pid)
}

/// Whether a process is stopped by a signal, of one of which only the number is known.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state == 'T')
}

/// The verdict from its evidence; pure.
fn judge(
    identity: &RunnerIdentity,
    host: &str,
    boot: Option<&str>,
    locked: Option<bool>,
    process: Option<bool>,
) -> RunnerLife {
    let pid = identity.pid;
    if identity.host != host {
        return RunnerLife::Unknown(format!("the runner is on another machine ({})", identity.host));
    }
    if let (Some(then), Some(now)) = (identity.boot_id.as_deref(), boot)
        && then != now
    {
        return RunnerLife::Dead("the machine was restarted".into());
    }
    match (locked, process) {
        (Some(true), _) => RunnerLife::Alive,
        (_, Some(false)) => RunnerLife::Dead(format!("the runner (pid {pid}) is gone")),
        // A file system without working locks says free while the very process lives.
        (_, Some(true)) if identity.start_ticks.is_some() => RunnerLife::Alive,
        (Some(false), _) => RunnerLife::Dead(format!("the runner (pid {pid}) no longer holds its lock")),
        (None, _) => RunnerLife::Unknown(format!("neither lock nor process of the runner (pid {pid}) can be examined")),
    }
}

/// Whether the lock is held; `None` when that cannot be learnt.
fn locked(path: &Path) -> Option<bool> {
    let file = open::regular(path).ok()?;
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Whether the very process lives: its id and, where known, its start. `None` when it cannot be learnt.
fn process_is(identity: &RunnerIdentity) -> Option<bool> {
    match (pid_lives(identity.pid), identity.start_ticks) {
        (Some(true), Some(then)) => stat(identity.pid).map(|(ended, now)| !ended && now == then),
        (lives, _) => lives,
    }
}

/// Whether a process with this id lives, the way run-directory 7 asks; `None` means unknown, not dead.
#[must_use]
pub fn pid_lives(pid: u32) -> Option<bool> {
    if stat(pid).is_some_and(|(ended, _)| ended) {
        return Some(false);
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    match rustix::process::test_kill_process(pid) {
        Ok(()) => Some(true),
        Err(rustix::io::Errno::SRCH) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, RunDir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path().join("run"));
        dir.make_folders().unwrap();
        (temp, dir)
    }

    #[test]
    fn a_second_runner_is_refused_and_the_first_is_seen() {
        let (_temp, dir) = dir();
        assert_eq!(probe(&dir), RunnerLife::NotOurs);
        let lock = RunnerLock::acquire(&dir).unwrap();
        RunnerIdentity::of_this_process(Some(7)).write(&dir).unwrap();
        assert_eq!(probe(&dir), RunnerLife::Alive);
        let held = RunnerLock::acquire(&dir).unwrap_err();
        assert!(held.to_string().contains(&format!("pid {}", std::process::id())), "{held}");
        assert_eq!(RunnerIdentity::read(&dir), Some(RunnerIdentity::of_this_process(Some(7))));
        drop(lock);
        RunnerLock::acquire(&dir).unwrap();
    }

    #[test]
    fn the_verdict_follows_from_the_evidence() {
        let known = RunnerIdentity {
            pid: 9,
            start_ticks: Some(5),
            boot_id: Some("b".into()),
            host: "h".into(),
            ..RunnerIdentity::default()
        };
        let vague = RunnerIdentity { start_ticks: None, ..known.clone() };
        let word = |life| match life {
            RunnerLife::Alive => "alive",
            RunnerLife::Dead(_) => "dead",
            RunnerLife::Unknown(_) => "unknown",
            RunnerLife::NotOurs => "not ours",
        };
        let table = [
            (&known, "h", Some("b"), Some(true), Some(true), "alive"),
            (&known, "h", Some("b"), Some(true), None, "alive"),
            (&known, "h", Some("b"), Some(false), Some(false), "dead"),
            (&known, "h", Some("b"), None, Some(false), "dead"),
            (&known, "h", Some("b"), Some(false), Some(true), "alive"),
            (&vague, "h", None, Some(false), Some(true), "dead"),
            (&known, "h", Some("c"), Some(false), Some(true), "dead"),
            (&known, "other", Some("b"), Some(false), Some(false), "unknown"),
            (&vague, "h", None, None, None, "unknown"),
        ];
        for (identity, host, boot, locked, process, want) in table {
            assert_eq!(word(judge(identity, host, boot, locked, process)), want, "{locked:?} {process:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_and_was_not_collected_does_not_live() {
        let (_temp, dir) = dir();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while !stat(pid).is_some_and(|(ended, _)| ended) {
            assert!(std::time::Instant::now() < deadline, "it did not end");
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!((start_ticks(pid), pid_lives(pid)), (None, Some(false)));
        let (_, ticks) = stat(pid).unwrap();
        let own = RunnerIdentity::of_this_process(None);
        RunnerIdentity { pid, start_ticks: Some(ticks), ..own }.write(&dir).unwrap();
        assert!(matches!(probe(&dir), RunnerLife::Dead(_)), "{:?}", probe(&dir));
        child.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_is_stopped_by_a_signal_is_suspended() {
        use rustix::process::{Pid, Signal, kill_process};
        let (_temp, dir) = dir();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let raw = Pid::from_child(&child);
        let own = RunnerIdentity::of_this_process(None);
        let of_child = RunnerIdentity { pid: child.id(), start_ticks: start_ticks(child.id()), ..own };
        of_child.write(&dir).unwrap();
        let look = |want: Option<u32>| {
            let deadline = std::time::Instant::now() + Duration::from_secs(10);
            while suspended(&dir) != want {
                assert!(std::time::Instant::now() < deadline, "not {want:?}");
                thread::sleep(Duration::from_millis(2));
            }
        };
        look(None);
        assert!(!is_stopped(child.id()));
        kill_process(raw, Signal::STOP).unwrap();
        look(Some(child.id()));
        assert!(is_stopped(child.id()));
        RunnerIdentity { start_ticks: Some(1), ..of_child.clone() }.write(&dir).unwrap();
        assert_eq!(suspended(&dir), None, "another process has its id now");
        of_child.write(&dir).unwrap();
        kill_process(raw, Signal::CONT).unwrap();
        look(None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn start_ticks_are_read_past_a_program_name_with_blanks() {
        let own = start_ticks(std::process::id()).unwrap();
        assert!(own > 0);
        assert_eq!(start_ticks(std::process::id()), Some(own));
        assert!(boot_id().unwrap().len() >= 32);
        assert_eq!(pid_lives(std::process::id()), Some(true));
    }
}
