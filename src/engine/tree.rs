//! Process trees: who descends from whom, and ending what a step left behind.
//!
//! The runner is a child subreaper, so every descendant that loses its parent becomes the runner's own child: as long
//! as the runner lives, walking down from it finds everything, whatever sessions and groups were made
//! (product 5, "processes"). Never signals anything that it did not find this way or by the environment mark.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::run::{RunId, StepId, Within};
use crate::rundir::is_run_id;

/// The environment variable that marks every process of a run with the run's id.
pub const RUN_MARK: &str = "SUBDECK_RUN";
/// The environment variable that marks every process of a step with the step's flat index.
pub const STEP_MARK: &str = "SUBDECK_STEP";

/// The step of a run that this process belongs to, by its environment: a run that is started here was started in it.
pub fn enclosing(lookup: impl Fn(&str) -> Option<String>) -> Option<Within> {
    let run = lookup(RUN_MARK).filter(|id| is_run_id(id))?;
    Some(Within { run: RunId(run), step: lookup(STEP_MARK).and_then(|step| step.parse().ok()).map(StepId) })
}

/// One process as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub pid: u32,
    /// When it started, in kernel ticks: with the pid it names one process for good.
    pub start_ticks: u64,
}

/// A snapshot of the machine's processes.
#[derive(Debug, Default)]
pub struct Snapshot {
    children: BTreeMap<u32, Vec<Seen>>,
    all: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    seen: Seen,
    group: u32,
    session: u32,
}

impl Snapshot {
    /// Looks at every process once. Zombies are left out: they are ended already.
    #[must_use]
    pub fn take() -> Self {
        let mut snapshot = Self::default();
        #[cfg(target_os = "linux")]
        if let Ok(processes) = procfs::process::all_processes() {
            for stat in processes.flatten().filter_map(|p| p.stat().ok()) {
                let (Ok(pid), Ok(parent)) = (u32::try_from(stat.pid), u32::try_from(stat.ppid)) else { continue };
                if matches!(stat.state, 'Z' | 'X') {
                    continue;
                }
                let seen = Seen { pid, start_ticks: stat.starttime };
                snapshot.children.entry(parent).or_default().push(seen);
                snapshot.all.push(Row {
                    seen,
                    group: u32::try_from(stat.pgrp).unwrap_or(0),
                    session: u32::try_from(stat.session).unwrap_or(0),
                });
            }
        }
        snapshot
    }

    /// Everything below `pid`, nearest first, `pid` itself left out.
    #[must_use]
    pub fn below(&self, pid: u32) -> Vec<Seen> {
        self.below_except(pid, &BTreeSet::new())
    }

    /// Everything below `pid` without the subtrees that begin at one of `except`.
    #[must_use]
    pub fn below_except(&self, pid: u32, except: &BTreeSet<u32>) -> Vec<Seen> {
        let mut found = Vec::new();
        let mut queue = std::collections::VecDeque::from([pid]);
        let mut visited = BTreeSet::from([pid]);
        while let Some(parent) = queue.pop_front() {
            for child in self.children.get(&parent).into_iter().flatten() {
                if !except.contains(&child.pid) && visited.insert(child.pid) {
                    found.push(*child);
                    queue.push_back(child.pid);
                }
            }
        }
        found
    }

    /// The members of a process group.
    #[must_use]
    pub fn group(&self, group: u32) -> Vec<Seen> {
        self.all.iter().filter(|r| r.group == group).map(|r| r.seen).collect()
    }

    /// Of `candidates` those that belong to `step`: marked with it, or members of a group or session that one of
    /// `pids` (processes known to be of the step) led.
    #[must_use]
    pub fn of_step(&self, candidates: &[Seen], run: &str, step: usize, pids: &BTreeSet<u32>) -> Vec<Seen> {
        candidates
            .iter()
            .copied()
            .filter(|seen| {
                let row = self.all.iter().find(|r| r.seen == *seen);
                row.is_some_and(|r| pids.contains(&r.group) || pids.contains(&r.session) || pids.contains(&seen.pid))
                    || mark_of(seen.pid) == Some((run.to_owned(), step))
            })
            .collect()
    }

    /// Every process of this user that carries the mark of `run`, whoever its parent is, with the flat index of its
    /// step. Anybody can set a variable, and the superuser can read everybody's: processes of others are never taken.
    #[must_use]
    pub fn marked(&self, run: &str) -> Vec<(Seen, usize)> {
        let me = std::process::id();
        self.all
            .iter()
            .map(|r| r.seen)
            .filter(|seen| seen.pid != me)
            .filter_map(|seen| mark_of(seen.pid).filter(|(r, _)| r == run).map(|(_, step)| (seen, step)))
            .filter(|(seen, _)| is_ours(seen.pid))
            .collect()
    }
}

/// The run and step that a process is marked with.
fn mark_of(pid: u32) -> Option<(String, usize)> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        bytes.split(|b| *b == 0).find_map(|pair| {
            let rest = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(rest).ok()
        })
    };
    Some((value(RUN_MARK)?.to_owned(), value(STEP_MARK)?.parse().ok()?))
}

fn is_ours(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|m| m.uid());
    owner.is_ok_and(|uid| uid == rustix::process::geteuid().as_raw())
}

/// The start time of a process in kernel ticks, if it exists.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let stat = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Whether `seen` is still the process that it was.
#[must_use]
pub fn is_alive(seen: Seen) -> bool {
    start_ticks(seen.pid) == Some(seen.start_ticks)
}

/// Everything below `pid`, nearest first, by walking down from it: on a machine with many processes much cheaper than
/// a [`Snapshot`]. The system makes no promise for a tree that changes meanwhile, so this is for what wants to be quick
/// and not for what has to be complete. Where the system does not tell the children of a process, a snapshot does.
#[must_use]
pub fn below(pid: u32) -> Vec<Seen> {
    let mut found = Vec::new();
    let mut visited = BTreeSet::from([pid]);
    let mut queue = std::collections::VecDeque::from([pid]);
    while let Some(parent) = queue.pop_front() {
        let Some(children) = children(parent) else {
            // Of a process that has ended nothing is below.
            if start_ticks(parent).is_none() {
                continue;
            }
            return Snapshot::take().below(pid);
        };
        for child in children {
            if visited.insert(child)
                && let Some(start_ticks) = start_ticks(child)
            {
                found.push(Seen { pid: child, start_ticks });
                queue.push_back(child);
            }
        }
    }
    found
}

/// How often a process whose threads end while they are looked at is looked at again.
const LOOKS: usize = 8;

/// The children of all threads of a process; `None` when the system does not tell.
fn children(pid: u32) -> Option<Vec<u32>> {
    let list = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).ok();
    for _ in 0..LOOKS {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        // The children of a thread that ends meanwhile move to another one, which may have been looked at already.
        if let Some(lists) = tasks.flatten().map(list).collect::<Option<Vec<String>>>() {
            return Some(
                lists.iter().flat_map(|l| l.split_ascii_whitespace()).filter_map(|p| p.parse().ok()).collect(),
            );
        }
    }
    None
}

/// Whether this process has children other than `known`: the cheap question that spares most sweeps.
/// `None` when the system does not tell.
#[must_use]
pub fn has_other_children(known: &BTreeSet<u32>) -> Option<bool> {
    Some(children(std::process::id())?.iter().any(|pid| !known.contains(pid)))
}

/// Collects what was re-parented to this process and has ended, so that no dead process stays in the system's table
/// for as long as the run goes on. `known` are the children that somebody else waits for.
pub fn reap_orphans(known: &BTreeSet<u32>) {
    let pids = children(std::process::id()).unwrap_or_default();
    reap(pids.into_iter().filter(|pid| !known.contains(pid)));
}

/// Sends a signal to one process, if it is still the one that was seen. Returns whether it was sent.
pub fn signal(seen: Seen, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(seen.pid).ok().and_then(Pid::from_raw) else { return false };
    // A pidfd opened first and checked afterwards cannot come to mean another process in between.
    #[cfg(target_os = "linux")]
    {
        let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return false };
        is_alive(seen) && rustix::process::pidfd_send_signal(&fd, signal).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        is_alive(seen) && rustix::process::kill_process(pid, signal).is_ok()
    }
}

/// Sends a signal to a process group. Returns whether there was one.
pub fn signal_group(group: u32, signal: Signal) -> bool {
    i32::try_from(group)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| rustix::process::kill_process_group(pid, signal).is_ok())
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were found and are gone.
    pub ended: Vec<u32>,
    /// Processes that would not die.
    pub survivors: Vec<u32>,
}

/// Ends everything that `find` names: SIGTERM, up to `grace` to go, SIGKILL, and one second to prove it. Asks `find`
/// again and again, because a dying process may have started another one. Blocks; belongs on a thread of its own.
pub fn sweep(grace: Duration, mut find: impl FnMut() -> Vec<Seen>) -> Swept {
    let begin = Instant::now();
    let kill_at = begin + grace;
    let give_up = kill_at + Duration::from_secs(1);
    let mut met: BTreeMap<u32, Seen> = BTreeMap::new();
    let mut asked: BTreeSet<u32> = BTreeSet::new();
    let mut pause = Duration::from_millis(2);
    loop {
        let alive = find();
        for seen in &alive {
            met.insert(seen.pid, *seen);
        }
        reap(met.keys().copied());
        let now = Instant::now();
        if alive.is_empty() || now >= give_up {
            let survivors: Vec<u32> = met.values().filter(|s| is_alive(**s)).map(|s| s.pid).collect();
            let ended = met.keys().copied().filter(|pid| !survivors.contains(pid)).collect();
            return Swept { ended, survivors };
        }
        for seen in &alive {
            if now >= kill_at {
                signal(*seen, Signal::KILL);
            } else if asked.insert(seen.pid) {
                signal(*seen, Signal::TERM);
                // A stopped process acts on SIGTERM only once it goes on.
                signal(*seen, Signal::CONT);
            }
        }
        std::thread::sleep(pause.min(give_up.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Collects the ends of re-parented processes, one pid at a time, so that no other part's child is ever stolen.
fn reap(pids: impl Iterator<Item = u32>) {
    for pid in pids.filter_map(|p| i32::try_from(p).ok().and_then(Pid::from_raw)) {
        // An error means that it is not our child; nothing is to be done about that.
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Who, below `root`, has the pipe with this inode open (`pipe:[INODE]`).
#[must_use]
pub fn holders_of_pipe(snapshot: &Snapshot, root: u32, inode: u64) -> Vec<u32> {
    let wanted = format!("pipe:[{inode}]");
    snapshot
        .below(root)
        .into_iter()
        .filter(|seen| {
            std::fs::read_dir(format!("/proc/{}/fd", seen.pid))
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()))
        })
        .map(|seen| seen.pid)
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !done() {
            assert!(Instant::now() < deadline, "{what} did not happen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_sweep_ends_what_ignores_sigterm_and_tells_what_it_ended() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; sleep 60 & while :; do sleep 60; done"])
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        wait_until("the sleeps", || Snapshot::take().below(pid).len() == 2);
        let root = Seen { pid, start_ticks: start_ticks(pid).unwrap() };
        let by_pid = |mut seen: Vec<Seen>| {
            seen.sort_unstable_by_key(|s| s.pid);
            seen
        };
        assert_eq!(by_pid(below(pid)), by_pid(Snapshot::take().below(pid)), "the walk finds the same");
        let swept = sweep(Duration::from_millis(100), || {
            let snapshot = Snapshot::take();
            let mut found = snapshot.below(pid);
            found.extend(snapshot.group(pid));
            found
        });
        assert!(swept.survivors.is_empty(), "{swept:?}");
        assert!(swept.ended.contains(&pid) && swept.ended.len() >= 3, "{swept:?}");
        assert!(!is_alive(root));
        let _ = child.wait();
    }

    #[test]
    fn a_reused_pid_is_not_signalled() {
        let me = std::process::id();
        let ticks = start_ticks(me).unwrap();
        assert!(!signal(Seen { pid: me, start_ticks: ticks + 1 }, Signal::KILL));
        assert!(is_alive(Seen { pid: me, start_ticks: ticks }));
    }

    #[test]
    fn the_holder_of_a_pipe_is_found() {
        use std::os::fd::AsFd;
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn().unwrap();
        let inode = rustix::fs::fstat(child.stdout.as_ref().unwrap().as_fd()).unwrap().st_ino;
        let pid = child.id();
        wait_until("the holder", || holders_of_pipe(&Snapshot::take(), std::process::id(), inode) == [pid]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
