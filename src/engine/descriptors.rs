//! How many children the limit on open files allows at once (`ulimit -n`). A child that could not be given its pipes and logs
//! would fail for a reason that is none of its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::complain::complain;

/// What one child takes while it is started: pipes, logs, a handle of the process, and what is gone again afterwards.
const EACH: u64 = 16;
/// What the runner takes beside its children: documents that are replaced, sweeps, looks at the system.
const RESERVE: u64 = 16;

/// What there is of open files.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// How many children go at once.
    pub at_once: usize,
    /// The limit before the runner raised its own: children get this one.
    original: Option<Rlimit>,
}

impl Descriptors {
    /// Makes room for `wanted` children at once, as far as the system lets this process: its own limit is raised as far as
    /// it may be and as is needed.
    #[must_use]
    pub fn for_children(wanted: usize) -> Self {
        let before = getrlimit(Resource::Nofile);
        let open = open_now();
        let need = open + RESERVE + EACH * wanted as u64;
        let Some(soft) = before.current.filter(|soft| *soft < need) else {
            return Self { at_once: wanted, original: None };
        };
        let raised = before.maximum.map_or(need, |most| most.min(need));
        let done = can_give_back() && raised > soft && {
            setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..before }).is_ok()
        };
        let at_once = fitting(if done { raised } else { soft }, open).min(wanted);
        if at_once < wanted {
            let what =
                format_args!("the limit on open files (ulimit -n) lets {at_once} children run at once, not {wanted}");
            complain("runner", &what);
        }
        Self { at_once, original: done.then_some(before) }
    }

    /// Gives a child that was just started the limit that the runner was given.
    pub fn give_back(&self, pid: u32) {
        #[cfg(target_os = "linux")]
        if let (Some(original), Some(pid)) =
            (&self.original, i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw))
        {
            // One that has ended already needs none.
            let _ = rustix::process::prlimit(Some(pid), Resource::Nofile, *original);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (pid, &self.original);
    }
}

/// Only where the limit of another process can be set may this one raise its own, which children inherit.
const fn can_give_back() -> bool {
    cfg!(target_os = "linux")
}

/// How many children a limit allows beside what is open; at least one, which then says itself what it lacks.
fn fitting(limit: u64, open: u64) -> usize {
    usize::try_from(limit.saturating_sub(open + RESERVE) / EACH).unwrap_or(usize::MAX).max(1)
}

/// How many files this process has open.
fn open_now() -> u64 {
    std::fs::read_dir("/dev/fd").map_or(RESERVE, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_allows_what_fits_and_at_least_one() {
        let table = [(1024, 16, 62), (64, 16, 2), (64, 32, 1), (16, 16, 1), (0, 100, 1)];
        for (limit, open, want) in table {
            assert_eq!(fitting(limit, open), want, "{limit} {open}");
        }
        assert!(open_now() >= 3);
    }
}
