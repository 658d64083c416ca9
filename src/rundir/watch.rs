//! Waking up when folders change: the system's watcher where it works, polling where it does not.
//!
//! Tells only *that* something may have changed; the reader looks what. Changes that come together wake once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How often to look when the system cannot watch (run-directory 3.4).
pub const POLL: Duration = Duration::from_millis(250);
/// How often to look even though the system watches, because watchers lose events (run-directory 3.4).
pub const SAFETY: Duration = Duration::from_secs(5);

/// Watches folders (or files), not what lies deeper.
#[derive(Debug)]
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    wake: Arc<Notify>,
    limit: Option<String>,
}

impl Watch {
    /// Watches these folders; the ones that do not exist are left to the safety poll.
    #[must_use]
    pub fn new<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        let wake = Arc::new(Notify::new());
        let mut watch = Self { watcher: None, wake: Arc::clone(&wake), limit: None };
        match notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if is_change(&event) {
                wake.notify_one();
            }
        }) {
            Ok(watcher) => watch.watcher = Some(watcher),
            Err(error) => watch.fall_back(&error),
        }
        for folder in folders {
            watch.add(folder.as_ref());
        }
        watch
    }

    /// Watches one more folder.
    pub fn add(&mut self, folder: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive)
            && !is_missing(&error)
        {
            self.fall_back(&error);
        }
    }

    /// Stops watching a folder.
    pub fn remove(&mut self, folder: &Path) {
        if let Some(watcher) = &mut self.watcher {
            // That it was not watched is as good.
            let _ = watcher.unwatch(folder);
        }
    }

    fn fall_back(&mut self, error: &notify::Error) {
        self.watcher = None;
        self.limit = Some(limit_message(error));
        // Whoever waits already is to learn that from now on time passes differently.
        self.wake.notify_one();
    }

    /// Why the system does not watch, when it does not; one sentence that names the limit.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// How long to sleep at most before looking without having been woken.
    #[must_use]
    pub const fn look_again(&self) -> Duration {
        if self.watcher.is_some() { SAFETY } else { POLL }
    }

    /// Returns when something may have changed since the last return, or when it is time to look anyway. May be
    /// dropped and called again without losing a change.
    pub async fn changed(&self) {
        // A timeout is as good as a change: the caller looks.
        let _ = tokio::time::timeout(self.look_again(), self.wake.notified()).await;
    }
}

/// Whether an event may mean a change. An overflow arrives without paths and means that anything may have changed;
/// an error means that something was missed.
fn is_change(event: &notify::Result<notify::Event>) -> bool {
    match event {
        Ok(event) if event.need_rescan() => true,
        Ok(event) => match event.kind {
            // Looking is no change, or our own reading would wake us.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => false,
            _ => true,
        },
        Err(_) => true,
    }
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(io) => io.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// The system reports its limits on watching as a full disk or as too many open files, which misleads.
fn limit_message(error: &notify::Error) -> String {
    let capacity = |io: &std::io::Error| super::write::is_capacity(io);
    let code = |io: &std::io::Error| io.raw_os_error();
    let what = match &error.kind {
        notify::ErrorKind::MaxFilesWatch => "the limit fs.inotify.max_user_watches is reached".to_owned(),
        notify::ErrorKind::Io(io) if code(io) == Some(rustix::io::Errno::NOSPC.raw_os_error()) => {
            "the limit fs.inotify.max_user_watches is reached".to_owned()
        }
        notify::ErrorKind::Io(io) if capacity(io) => {
            "the limit fs.inotify.max_user_instances or that of open files is reached".to_owned()
        }
        _ => format!("files cannot be watched: {error}"),
    };
    format!("{what}; looking every {} ms instead", POLL.as_millis())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_change_wakes_and_a_change_before_the_wait_is_not_lost() {
        let temp = tempfile::tempdir().unwrap();
        let watch = Watch::new([temp.path()]);
        assert_eq!(watch.limit(), None);
        std::fs::write(temp.path().join("stop.json"), "").unwrap();
        let begun = Instant::now();
        runtime().block_on(watch.changed());
        assert!(begun.elapsed() < Duration::from_secs(4), "woken, not timed out");
    }

    #[test]
    fn a_missing_folder_is_no_reason_to_poll() {
        let temp = tempfile::tempdir().unwrap();
        let watch = Watch::new([temp.path().join("none"), temp.path().to_owned()]);
        assert_eq!((watch.limit(), watch.look_again()), (None, SAFETY));
    }

    #[test]
    fn limits_are_named_and_lead_to_polling() {
        let temp = tempfile::tempdir().unwrap();
        let table = [
            (notify::Error::io(std::io::Error::from_raw_os_error(28)), "max_user_watches"),
            (notify::Error::new(notify::ErrorKind::MaxFilesWatch), "max_user_watches"),
            (notify::Error::io(std::io::Error::from_raw_os_error(24)), "max_user_instances"),
            (notify::Error::generic("odd"), "odd"),
        ];
        for (error, word) in table {
            let mut watch = Watch::new([temp.path()]);
            watch.fall_back(&error);
            assert!(watch.limit().unwrap().contains(word), "{:?}", watch.limit());
            assert_eq!(watch.look_again(), POLL);
        }
    }

    #[test]
    fn overflow_and_errors_wake_and_reading_does_not() {
        let rescan = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        assert!(is_change(&Ok(rescan)));
        assert!(is_change(&Err(notify::Error::generic("lost"))));
        assert!(!is_change(&Ok(notify::Event::new(EventKind::Access(AccessKind::Open(AccessMode::Read))))));
        assert!(is_change(&Ok(notify::Event::new(EventKind::Access(AccessKind::Close(AccessMode::Write))))));
    }
}
