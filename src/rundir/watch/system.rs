//! Which watcher serves which interest: the runner waits for requests, and who follows a run looks at files that are
//! written to all the time; both watch for themselves where they can. Everybody else leaves it to the library.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Interest, notified};

/// A watcher.
#[derive(Debug)]
pub(super) enum System {
    /// The library's.
    Notified(notified::System),
    /// Our own.
    #[cfg(target_os = "linux")]
    Inotify(super::inotify::System),
}

impl System {
    pub(super) fn new(interest: Interest) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if matches!(interest, Interest::Arrivals | Interest::Floods) {
            return super::inotify::System::new(interest).map(Self::Inotify);
        }
        let _ = interest;
        notified::System::new().map(Self::Notified)
    }

    pub(super) fn add(&mut self, folder: &Path, interest: Interest) -> io::Result<()> {
        match self {
            Self::Notified(system) => system.add(folder),
            #[cfg(target_os = "linux")]
            Self::Inotify(system) => system.add(folder, interest),
        }
    }

    /// Watches a folder for one name; the library knows of no names, and tells of all.
    pub(super) fn add_birth(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        match self {
            Self::Notified(system) => system.add(folder),
            #[cfg(target_os = "linux")]
            Self::Inotify(system) => system.add_birth(folder, name),
        }
    }

    /// Whether a folder in which something was to arrive is gone; the library does not tell.
    pub(super) fn take_lost(&self) -> bool {
        match self {
            Self::Notified(_) => false,
            #[cfg(target_os = "linux")]
            Self::Inotify(system) => system.take_lost(),
        }
    }

    pub(super) async fn changed(&self) {
        match self {
            Self::Notified(system) => system.changed().await,
            #[cfg(target_os = "linux")]
            Self::Inotify(system) => system.changed().await,
        }
    }
}
