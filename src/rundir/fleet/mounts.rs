//! What is mounted and unmounted. A file system that appears over a folder, or goes, changes nothing in the folder that is
//! watched, and the kernel tells it of the table of mounts only.

use std::fs::File;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The table of mounts of this process.
#[derive(Debug)]
pub(super) struct Mounts(Arc<File>);

impl Mounts {
    /// The table; `None` where the system has none that tells of changes.
    pub(super) fn open() -> Option<Self> {
        File::open("/proc/self/mountinfo").ok().map(|table| Self(Arc::new(table)))
    }

    /// Returns when the table is another than it was when this returned last. May be dropped and called again, also in
    /// another runtime.
    pub(super) async fn changed(&self) {
        // The newer function is unsafe, because any type could lie about its descriptor; a file owns its own.
        #[allow(deprecated)]
        let table = AsyncFd::with_interest(Arc::clone(&self.0), Interest::PRIORITY);
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
