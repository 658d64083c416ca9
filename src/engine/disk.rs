//! Room on the disk that holds the run directory (product 5). It is looked at while something happens anyway: a run that
//! is quiet fills no disk.

use std::time::{Duration, Instant};

use super::dispatch::Engine;
use crate::run::What;

/// With less than this many free bytes a disk is nearly full.
const LOW: u64 = 256 * 1024 * 1024;
/// It has room again with this many, so that it does not change at every write.
const ENOUGH: u64 = LOW * 2;
/// The least time between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// What is known of the room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disk {
    looked: Option<Instant>,
    low: bool,
}

impl Disk {
    /// Takes in how many bytes are free; whether the answer to "is it nearly full" is another one now.
    fn turned(&mut self, free: u64) -> bool {
        let low = if self.low { free < ENOUGH } else { free < LOW };
        std::mem::replace(&mut self.low, low) != low
    }
}

impl Engine {
    /// Looks at the room from time to time and records when it becomes too little, and when it is enough again.
    pub(super) fn watch_disk(&mut self) {
        if self.disk.looked.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        // The first look is left for later: nothing must stand between the start and the first child.
        if self.disk.looked.replace(Instant::now()).is_none() {
            return;
        }
        let Ok(stat) = rustix::fs::statvfs(self.home.way().path()) else { return };
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        if self.disk.turned(free) {
            let low = self.disk.low;
            self.recorder.record(What::DiskSpace { free, low });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_wavers_is_told_once() {
        let mut disk = Disk::default();
        let turns = [ENOUGH, LOW, LOW - 1, LOW + 1, ENOUGH - 1, 0, ENOUGH, LOW].map(|free| disk.turned(free));
        assert_eq!(turns, [false, false, true, false, false, false, true, false]);
    }
}
