//! Waking up when folders change: the system's watcher where it works, polling where it does not.
//!
//! Tells only *that* something may have changed; the reader looks what. Changes that come together wake once.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
mod inotify;
mod local;
mod notified;
mod system;

pub use local::tells_everything;

use system::System;

/// How often to look when the system cannot watch (run-directory 3.4).
pub const POLL: Duration = Duration::from_millis(250);
/// How often to look even though the system watches, because watchers lose events (run-directory 3.4).
pub const SAFETY: Duration = Duration::from_secs(5);

/// What is to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interest {
    /// Whatever changes.
    Changes,
    /// Whatever changes, where files are written to all the time: what happens while nobody waits costs nothing.
    Floods,
    /// What comes into being or is moved here. What is written or taken away afterwards is nobody's business.
    Arrivals,
    /// What is removed or moved away.
    Departures,
}

/// Watches folders (or files), not what lies deeper. The default one watches nothing and looks from time to time.
#[derive(Debug, Default)]
pub struct Watch {
    system: Option<System>,
    limit: Option<String>,
}

impl Watch {
    /// Watches these folders for any change; the ones that do not exist are left to the safety poll.
    #[must_use]
    pub fn new<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self::start(Interest::Changes, folders)
    }

    /// Watches these folders for any change by one who looks from time to time, however often they change in between.
    /// May be waited for in one runtime after another.
    #[must_use]
    pub fn flooded<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self::start(Interest::Floods, folders)
    }

    /// Watches these folders for what arrives in them, so that taking it out again does not wake.
    #[must_use]
    pub fn arrivals<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self::start(Interest::Arrivals, folders)
    }

    fn start<P: AsRef<Path>>(interest: Interest, folders: impl IntoIterator<Item = P>) -> Self {
        let mut watch = Self { system: None, limit: None };
        match System::new(interest) {
            Ok(system) => watch.system = Some(system),
            Err(error) => watch.fall_back(&error),
        }
        for folder in folders {
            watch.add(folder.as_ref(), interest);
        }
        watch
    }

    /// Watches one more folder for what is removed from it or moved away.
    pub fn departures(&mut self, folder: &Path) {
        self.add(folder, Interest::Departures);
    }

    /// Whether a folder in which something was to arrive was removed or moved away since this was asked last; another one
    /// of its name is not watched. Not known everywhere.
    #[must_use]
    pub fn take_lost(&self) -> bool {
        self.system.as_ref().is_some_and(System::take_lost)
    }

    /// Watches these folders for what arrives in them, besides all that is watched already.
    pub fn more_arrivals<P: AsRef<Path>>(&mut self, folders: impl IntoIterator<Item = P>) {
        for folder in folders {
            self.add(folder.as_ref(), Interest::Arrivals);
        }
    }

    /// Watches one more folder for any change. One that does not exist is left to the safety poll; whether it is watched.
    pub fn more_changes(&mut self, folder: &Path) -> bool {
        self.add(folder, Interest::Changes)
    }

    /// Watches one more folder for something of this name to come into being there, and for nothing else. Whether it is
    /// watched.
    pub fn birth(&mut self, folder: &Path, name: &OsStr) -> bool {
        let added = self.system.as_mut().map(|system| system.add_birth(folder, name));
        self.added(added)
    }

    fn add(&mut self, folder: &Path, interest: Interest) -> bool {
        let added = self.system.as_mut().map(|system| system.add(folder, interest));
        self.added(added)
    }

    fn added(&mut self, added: Option<io::Result<()>>) -> bool {
        match added {
            None => false,
            Some(Ok(())) => true,
            // What is not there or is closed to us is left to the safety poll; nothing could be read there sooner.
            Some(Err(error)) => {
                if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) {
                    self.fall_back(&error);
                }
                false
            }
        }
    }

    /// Watches nothing any more. To close what watched takes Linux a dozen milliseconds, for which nobody waits here.
    pub fn release(&mut self) {
        if let Some(system) = self.system.take() {
            // Without a thread it is closed on the spot.
            let _ = std::thread::Builder::new().name("unwatch".to_owned()).spawn(move || drop(system));
        }
    }

    /// A watch that the system refused with this error number.
    #[cfg(test)]
    pub(crate) fn refused(errno: i32) -> Self {
        let mut watch = Self::default();
        watch.fall_back(&io::Error::from_raw_os_error(errno));
        watch
    }

    fn fall_back(&mut self, error: &io::Error) {
        self.system = None;
        self.limit = Some(limit_message(error));
    }

    /// Why the system does not watch, when it does not; one sentence that names the limit.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// Whether the system watches.
    #[must_use]
    pub const fn tells(&self) -> bool {
        self.system.is_some()
    }

    /// How long to sleep at most before looking without having been woken.
    #[must_use]
    pub const fn look_again(&self) -> Duration {
        if self.system.is_some() { SAFETY } else { POLL }
    }

    /// Returns when something may have changed since the last return, or when it is time to look anyway. May be
    /// dropped and called again without losing a change. Belongs to one runtime.
    pub async fn changed(&self) {
        self.changed_until(tokio::time::Instant::now() + self.look_again()).await;
    }

    /// Like [`Watch::changed`] for one who looked at that time, and who may have stopped waiting since, to draw a clock
    /// perhaps: it is time to look anyway when the last look is long ago, not the last wait.
    pub async fn changed_since(&self, looked: Instant) {
        self.changed_until((looked + self.look_again()).into()).await;
    }

    async fn changed_until(&self, due: tokio::time::Instant) {
        let due = tokio::time::sleep_until(due);
        match &self.system {
            Some(system) => tokio::select! {
                () = system.changed() => {}
                () = due => {}
            },
            None => due.await,
        }
    }

    /// Returns when something has changed and at no other time, for one who knows that all that is watched tells
    /// everything; where the system does not watch it never returns. May be dropped and called again.
    pub async fn woken(&self) {
        match &self.system {
            Some(system) => system.changed().await,
            None => std::future::pending().await,
        }
    }
}

/// Whether a name is that of a file under construction: everybody writes those beside their place, hidden, and moves
/// them there; only then something has changed.
fn is_unfinished(name: &[u8]) -> bool {
    name.starts_with(b".") && !name.ends_with(b".json")
}

/// The system reports its limits on watching as a full disk or as too many open files, which misleads.
fn limit_message(error: &io::Error) -> String {
    let what = if error.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) {
        "the limit fs.inotify.max_user_watches is reached".to_owned()
    } else if super::write::is_capacity(error) {
        "the limit fs.inotify.max_user_instances or that of open files is reached".to_owned()
    } else {
        format!("files cannot be watched: {error}")
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

    /// Whether the watch has something to tell. Virtual time would not wait for the system, so an event that comes is
    /// waited for below and one that does not come is followed by another that does.
    fn is_woken(watch: &Watch) -> bool {
        let begun = Instant::now();
        runtime().block_on(watch.changed());
        begun.elapsed() < SAFETY - Duration::from_secs(1)
    }

    #[test]
    fn a_change_wakes_and_a_change_before_the_wait_is_not_lost() {
        let temp = tempfile::tempdir().unwrap();
        let watch = Watch::new([temp.path()]);
        assert_eq!(watch.limit(), None);
        std::fs::write(temp.path().join("stop.json"), "").unwrap();
        assert!(is_woken(&watch), "woken, not timed out");
    }

    #[test]
    fn a_missing_folder_is_no_reason_to_poll() {
        let temp = tempfile::tempdir().unwrap();
        let watch = Watch::new([temp.path().join("none"), temp.path().to_owned()]);
        assert_eq!((watch.limit(), watch.look_again()), (None, SAFETY));
    }

    /// B59 (a public report about a program of this kind): a watcher that works misses an event, and nobody looks again.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_misses_everything_wakes_all_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let begun = tokio::time::Instant::now();
        let watch = Watch::new([temp.path()]);
        watch.changed().await;
        assert_eq!(begun.elapsed(), SAFETY);
        let begun = tokio::time::Instant::now();
        Watch::refused(28).changed().await;
        assert_eq!(begun.elapsed(), POLL);
        // Who waits anew each second, because of a clock on the screen, looks no later.
        let looked = tokio::time::Instant::now();
        while tokio::time::timeout(Duration::from_secs(1), watch.changed_since(looked.into_std())).await.is_err() {}
        assert!(looked.elapsed() < SAFETY + Duration::from_millis(100), "{:?}", looked.elapsed());
    }

    #[test]
    fn limits_are_named_and_lead_to_polling() {
        let temp = tempfile::tempdir().unwrap();
        let table = [
            (io::Error::from_raw_os_error(28), "max_user_watches"),
            (io::Error::from_raw_os_error(24), "max_user_instances"),
            (io::Error::other("odd"), "odd"),
        ];
        for (error, word) in table {
            let mut watch = Watch::new([temp.path()]);
            watch.fall_back(&error);
            assert!(watch.limit().unwrap().contains(word), "{:?}", watch.limit());
            assert_eq!(watch.look_again(), POLL);
        }
    }

    #[test]
    fn names_of_files_under_construction() {
        for (name, want) in [(".stop.json.tmp", true), (".x", true), ("stop.json", false), (".odd.json", false)] {
            assert_eq!(is_unfinished(name.as_bytes()), want, "{name}");
        }
    }
}
