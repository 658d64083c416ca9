//! What lives on of a run whose runner and keeper both died: found by the mark in its environment, told by a look, and
//! ended only when somebody asks for it (law 8).

use super::tree::{self, Seen, Snapshot, Swept};
use crate::run::{StepId, TERM_TO_KILL};
use crate::rundir::RunDir;

/// A process of a lost run that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its id.
    pub pid: u32,
    /// The step that it belongs to.
    pub step: StepId,
    /// Its program and arguments; text from outside.
    pub command: String,
}

/// The processes that live on of the run in `dir`, in the order of their ids. To be asked only of a lost run: those of
/// a living one are its runner's.
#[must_use]
pub fn leftovers(dir: &RunDir) -> Vec<Leftover> {
    let of = |(seen, step): (Seen, StepId)| Leftover { pid: seen.pid, step, command: command(seen.pid) };
    find(dir.id_str(), None).into_iter().map(of).collect()
}

/// Ends the processes that live on of a lost run, or of one step of it: SIGTERM, SIGKILL after three seconds, each only
/// to the process that was found. Blocks until they are gone or known not to die.
#[must_use]
pub fn end_leftovers(dir: &RunDir, step: Option<StepId>) -> Swept {
    tree::sweep(TERM_TO_KILL, || find(dir.id_str(), step).into_iter().map(|(seen, _)| seen).collect())
}

fn find(run: &str, step: Option<StepId>) -> Vec<(Seen, StepId)> {
    let marked = Snapshot::take().marked(run).into_iter();
    let known = marked.filter_map(|(seen, flat)| Some((seen, StepId(u32::try_from(flat).ok()?))));
    let mut found: Vec<_> = known.filter(|(_, id)| step.is_none_or(|step| step == *id)).collect();
    found.sort_unstable_by_key(|(seen, _)| seen.pid);
    found
}

/// What a process is, as far as the system says.
fn command(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|b| *b == 0).filter(|w| !w.is_empty());
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}
