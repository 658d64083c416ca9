//! Whatever the system has to watch with, by way of the `notify` crate: a thread of it reads, and rings a bell.

use std::io;
use std::path::Path;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::is_unfinished;

/// A watcher and the bell that it rings.
#[derive(Debug)]
pub(super) struct System {
    watcher: RecommendedWatcher,
    wake: Arc<Notify>,
}

impl System {
    pub(super) fn new() -> io::Result<Self> {
        let wake = Arc::new(Notify::new());
        let bell = Arc::clone(&wake);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if is_change(&event) {
                bell.notify_one();
            }
        });
        Ok(Self { watcher: watcher.map_err(io_error)?, wake })
    }

    /// Every change wakes, whatever is of interest: these watchers have no say in what they tell.
    pub(super) fn add(&mut self, folder: &Path) -> io::Result<()> {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).map_err(io_error)
    }

    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }
}

fn io_error(error: notify::Error) -> io::Error {
    match error.kind {
        notify::ErrorKind::PathNotFound => io::ErrorKind::NotFound.into(),
        notify::ErrorKind::MaxFilesWatch => io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()),
        notify::ErrorKind::Io(error) => error,
        _ => io::Error::other(error.to_string()),
    }
}

/// Whether an event may mean a change. An overflow arrives without paths and means that anything may have changed;
/// an error means that something was missed.
fn is_change(event: &notify::Result<notify::Event>) -> bool {
    let Ok(event) = event else { return true };
    if event.need_rescan() {
        return true;
    }
    let unfinished = |path: &std::path::PathBuf| path.file_name().is_some_and(|n| is_unfinished(n.as_encoded_bytes()));
    if !event.paths.is_empty() && event.paths.iter().all(unfinished) {
        return false;
    }
    match event.kind {
        // Looking is no change, or our own reading would wake us.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
