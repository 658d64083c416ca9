//! Our own watch on Linux: inotify, read by whoever waits. A request is answered without the way through a thread of a
//! library, which took longer than everything else up to the signal; and a run that floods wakes no such thread at each
//! of its writes, nor anybody who does not wait.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::io::unix::AsyncFd;

use super::{Interest, POLL, is_unfinished};

/// One inotify instance.
#[derive(Debug)]
pub(super) struct System {
    fd: Arc<OwnedFd>,
    /// Known to the runtime from the first wait on; before it there may be none. Where a flood is expected, only while
    /// somebody waits: the runtime wakes at everything that it knows of.
    waiting: OnceLock<AsyncFd<Arc<OwnedFd>>>,
    flooded: bool,
    /// The watches for what arrives.
    arrivals: Vec<i32>,
    /// One of their folders was removed or moved away.
    lost: AtomicBool,
    /// The watches of folders in which only some names matter, with these.
    births: BTreeMap<i32, Vec<OsString>>,
}

impl System {
    pub(super) fn new(interest: Interest) -> io::Result<Self> {
        let flooded = interest == Interest::Floods;
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let lost = AtomicBool::new(false);
        Ok(Self {
            fd: Arc::new(fd),
            waiting: OnceLock::new(),
            flooded,
            arrivals: Vec::new(),
            lost,
            births: BTreeMap::new(),
        })
    }

    /// Whether a folder in which something was to arrive was removed or moved away since this was asked last.
    pub(super) fn take_lost(&self) -> bool {
        self.lost.swap(false, Ordering::Relaxed)
    }

    pub(super) fn add(&mut self, folder: &Path, interest: Interest) -> io::Result<()> {
        // Looking is no change, or our own reading would wake us.
        let arrivals = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE;
        let own = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let departures = WatchFlags::DELETE | WatchFlags::MOVED_FROM | own;
        let flags = match interest {
            Interest::Arrivals => arrivals | own,
            Interest::Departures => departures,
            Interest::Changes | Interest::Floods => arrivals | departures | WatchFlags::MODIFY,
        };
        let watch = inotify::add_watch(&self.fd, folder, flags)?;
        if interest == Interest::Arrivals && !self.arrivals.contains(&watch) {
            self.arrivals.push(watch);
        }
        // Now all of it matters.
        self.births.remove(&watch);
        Ok(())
    }

    /// Watches a folder for what comes into being under one name. What else happens there is looked at and passed over.
    pub(super) fn add_birth(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        let own = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | own;
        // Added to what is watched there already, for which everything matters.
        let watch = inotify::add_watch(&self.fd, folder, flags | WatchFlags::MASK_CREATE);
        let watch = match watch {
            Ok(watch) => watch,
            Err(rustix::io::Errno::EXIST) => {
                let watch = inotify::add_watch(&self.fd, folder, flags | WatchFlags::MASK_ADD)?;
                if !self.births.contains_key(&watch) {
                    return Ok(());
                }
                watch
            }
            Err(error) => return Err(error.into()),
        };
        let names = self.births.entry(watch).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    /// Whether an event in a folder is a change. One without a name is about the folder itself, or about everything.
    fn matters(&self, watch: i32, name: Option<&CStr>) -> bool {
        let Some(name) = name.map(CStr::to_bytes) else { return true };
        match self.births.get(&watch) {
            Some(names) => names.iter().any(|wanted| wanted.as_bytes() == name),
            None => !is_unfinished(name),
        }
    }

    /// Returns once something has changed. What was read is told before anything else can be waited for, so that
    /// dropping this loses nothing.
    pub(super) async fn changed(&self) {
        let here = self.flooded.then(|| self.register()).flatten();
        loop {
            let known = if self.flooded { here.as_ref() } else { self.registered() };
            let Some(waiting) = known else { return tokio::time::sleep(POLL).await };
            let Ok(mut ready) = waiting.readable().await else { return tokio::time::sleep(POLL).await };
            if self.take() {
                return;
            }
            ready.clear_ready();
        }
    }

    fn registered(&self) -> Option<&AsyncFd<Arc<OwnedFd>>> {
        if self.waiting.get().is_none() {
            // Only one waits at a time; a second registration would be as good.
            let _ = self.waiting.set(self.register()?);
        }
        self.waiting.get()
    }

    fn register(&self) -> Option<AsyncFd<Arc<OwnedFd>>> {
        // The newer function is unsafe, because any type could lie about its descriptor; ours owns it.
        #[allow(deprecated)]
        AsyncFd::with_interest(Arc::clone(&self.fd), tokio::io::Interest::READABLE).ok()
    }

    /// Takes everything that was reported; whether any of it is a change.
    fn take(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let mut changed = false;
        loop {
            match reader.next() {
                // An overflow has no name and means that anything may have changed.
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => {}
                Ok(event) if event.events().intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) => {
                    changed = true;
                    if self.arrivals.contains(&event.wd()) {
                        self.lost.store(true, Ordering::Relaxed);
                    }
                }
                Ok(event) => changed |= self.matters(event.wd(), event.file_name()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return changed,
                // What cannot be read may have been a change.
                Err(_) => return true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wakes_and_what_does_not() {
        let temp = tempfile::tempdir().unwrap();
        let (place, hidden) = (temp.path().join("stop.json"), temp.path().join(".stop.json.tmp"));
        std::fs::write(temp.path().join("old"), "x").unwrap();
        let watching = |interest| {
            let mut system = System::new(interest).unwrap();
            system.add(temp.path(), interest).unwrap();
            system
        };
        let all = [Interest::Arrivals, Interest::Departures, Interest::Changes].map(watching);
        let took = || all.each_ref().map(System::take);
        assert_eq!(took(), [false, false, false]);
        std::fs::write(&hidden, "{}").unwrap();
        assert_eq!(took(), [false, false, false], "a file under construction");
        std::fs::rename(&hidden, &place).unwrap();
        assert_eq!(took(), [true, false, true], "moved to its place");
        std::fs::read(&place).unwrap();
        std::fs::read_dir(temp.path()).unwrap().for_each(drop);
        assert_eq!(took(), [false, false, false], "looking");
        std::fs::remove_file(&place).unwrap();
        assert_eq!(took(), [false, true, true], "taken out");
        std::fs::write(&place, "").unwrap();
        assert_eq!(took(), [true, false, true], "made where it belongs");
        std::fs::create_dir(temp.path().join("0")).unwrap();
        assert_eq!(took(), [true, false, true], "a folder");
    }

    #[test]
    fn a_folder_that_is_removed_or_moved_away_is_missed_where_something_was_to_arrive() {
        let temp = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (inbox, other) = (folder("inbox"), folder("other"));
        let mut system = System::new(Interest::Changes).unwrap();
        system.add(&inbox, Interest::Arrivals).unwrap();
        system.add(&other, Interest::Departures).unwrap();
        std::fs::rename(&other, temp.path().join("aside")).unwrap();
        assert_eq!((system.take(), system.take_lost()), (true, false), "it is followed");
        std::fs::remove_dir(&inbox).unwrap();
        assert_eq!((system.take(), system.take_lost(), system.take_lost()), (true, true, false));
        let inbox = folder("inbox");
        system.add(&inbox, Interest::Arrivals).unwrap();
        std::fs::rename(&inbox, temp.path().join("old")).unwrap();
        assert_eq!((system.take(), system.take_lost()), (true, true));
    }

    #[test]
    fn an_overflow_is_a_change() {
        let temp = tempfile::tempdir().unwrap();
        let mut system = System::new(Interest::Changes).unwrap();
        system.add(temp.path(), Interest::Changes).unwrap();
        let most: usize =
            std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
        if most > 100_000 {
            return eprintln!("the queue holds {most} events, too many to overflow it here");
        }
        for n in 0..=most / 2 {
            // Two events each that are not alike, none of which is a change.
            let path = temp.path().join(format!(".{}", n % 2));
            std::fs::write(&path, "").unwrap();
            std::fs::remove_file(&path).unwrap();
        }
        assert!(system.take());
        assert!(!system.take());
    }
}
