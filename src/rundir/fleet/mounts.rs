//! What is mounted and unmounted. A file system that appears over a folder, or goes, changes nothing in the folder that is
//! watched, and the kernel tells it of the table of mounts only.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The table of mounts of this process.
#[derive(Debug)]
pub(super) struct Mounts {
    path: PathBuf,
    table: Arc<File>,
    /// A sum of what was in it when it was last looked at.
    noted: u64,
}

impl Mounts {
    /// The table; `None` where the system has none that tells of changes.
    pub(super) fn open() -> Option<Self> {
        Self::over(Path::new("/proc/self/mountinfo"))
    }

    fn over(path: &Path) -> Option<Self> {
        let table = Arc::new(File::open(path).ok()?);
        let mut mounts = Self { path: path.to_owned(), table, noted: 0 };
        mounts.note();
        Some(mounts)
    }

    /// Notes what is mounted. Called before what may be mounted is looked at.
    pub(super) fn note(&mut self) {
        self.noted = self.sum();
    }

    fn sum(&self) -> u64 {
        let mut sum = DefaultHasher::new();
        fs::read(&self.path).unwrap_or_default().hash(&mut sum);
        sum.finish()
    }

    /// Returns when the table is another than it was when it was noted last. May be dropped and called again, also in
    /// another runtime.
    pub(super) async fn changed(&self) {
        // The newer function is unsafe, because any type could lie about its descriptor; a file owns its own.
        #[allow(deprecated)]
        let table = AsyncFd::with_interest(Arc::clone(&self.table), Interest::PRIORITY);
        // The kernel tells of a change once, and whoever it told may have been dropped before it came here.
        if self.sum() != self.noted {
            return;
        }
        match table {
            Ok(table) => drop(table.ready(Interest::PRIORITY).await),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_change_that_was_told_to_nobody_is_seen_until_it_is_noted() {
        let temp = tempfile::tempdir().unwrap();
        let table = temp.path().join("table");
        fs::write(&table, "one\n").unwrap();
        let mut mounts = Mounts::over(&table).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = |mounts: &Mounts| {
            let waited = async { tokio::time::timeout(Duration::from_millis(5), mounts.changed()).await };
            runtime.block_on(waited).is_ok()
        };
        assert!(!told(&mounts));
        fs::write(&table, "one\ntwo\n").unwrap();
        assert!(told(&mounts) && told(&mounts));
        mounts.note();
        assert!(!told(&mounts));
    }

    /// That it tells of changes is shown where something can be mounted, by the fleet itself.
    #[test]
    fn a_table_that_stays_wakes_nobody_in_one_runtime_after_another() {
        let mounts = Mounts::open().unwrap();
        let mut quiet = 0;
        for _ in 0..20 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let waited = async { tokio::time::timeout(Duration::from_millis(5), mounts.changed()).await };
            // Others on this machine may mount something just now.
            quiet += usize::from(runtime.block_on(waited).is_err());
        }
        assert!(quiet > 10, "{quiet}");
    }
}
