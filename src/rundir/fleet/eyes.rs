//! Which folders the fleet watches, and whether that is enough to wait for as long as nothing happens.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::rundir::watch::{self, SAFETY, Watch};

/// What names a folder for good: its device and its inode.
type Inode = (u64, u64);

/// How a folder is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Eye {
    /// As it is; everything that happens in it is told.
    Open(Inode),
    /// It is not there; the nearest folder above it that is there tells when what leads to it comes into being.
    Awaited(PathBuf, Inode),
    /// What happens there may not be told: other machines write into it, it is closed to us, or it is reached by a link,
    /// which may lead elsewhere tomorrow.
    Half(Option<Inode>),
}

/// The watch of a fleet.
#[derive(Debug)]
pub(super) struct Eyes {
    watch: Watch,
    known: HashMap<PathBuf, Eye>,
    #[cfg(target_os = "linux")]
    mounts: Option<super::mounts::Mounts>,
}

impl Eyes {
    pub(super) fn new() -> Self {
        Self::with(Watch::flooded::<&Path>([]))
    }

    fn with(watch: Watch) -> Self {
        Self {
            watch,
            known: HashMap::new(),
            #[cfg(target_os = "linux")]
            mounts: super::mounts::Mounts::open(),
        }
    }

    /// Whatever was mounted until now is looked at next.
    pub(super) fn note_mounts(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(mounts) = &mut self.mounts {
            mounts.note();
        }
    }

    /// Returns when something was mounted or unmounted since that was noted.
    async fn mounted(&self) {
        #[cfg(target_os = "linux")]
        if let Some(mounts) = &self.mounts {
            return mounts.changed().await;
        }
        std::future::pending().await
    }

    /// Whether that is told at all.
    const fn tells_mounts(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.mounts.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Watches a folder from now on, whether it is there or not; also another one that has taken the place of the one
    /// that was watched.
    pub(super) fn on(&mut self, folder: &Path) {
        // What comes into being between a look and the watch is seen by the next look.
        for _ in 0..3 {
            let known = self.known.get(folder).cloned();
            let eye = match (seen(folder), &known) {
                (Ok(Some(inode)), Some(Eye::Open(before) | Eye::Half(Some(before)))) if *before == inode => return,
                (Ok(Some(inode)), _) => self.open(folder, inode),
                (Ok(None), known) => self.await_it(folder, known.as_ref()),
                (Err(_), _) => Eye::Half(None),
            };
            let settled = eye == Eye::Half(None) || known.as_ref() == Some(&eye);
            self.known.insert(folder.to_owned(), eye);
            if settled {
                return;
            }
        }
    }

    /// Does not wait for anything in this folder any more. The system itself forgets a folder that was removed.
    pub(super) fn off(&mut self, folder: &Path) {
        self.known.remove(folder);
    }

    /// Whether this folder is watched.
    pub(super) fn are_on(&self, folder: &Path) -> bool {
        self.known.contains_key(folder)
    }

    fn open(&mut self, folder: &Path, inode: Inode) -> Eye {
        let told = self.watch.more_changes(folder);
        let link = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_symlink());
        if told && !link && watch::tells_everything(folder) { Eye::Open(inode) } else { Eye::Half(Some(inode)) }
    }

    fn await_it(&mut self, folder: &Path, known: Option<&Eye>) -> Eye {
        let mut child = folder;
        while let (Some(above), Some(name)) = (child.parent(), child.file_name()) {
            match seen(above) {
                Ok(None) => child = above,
                Ok(Some(inode)) => {
                    let eye = Eye::Awaited(above.to_owned(), inode);
                    let told = known == Some(&eye) || watch::tells_everything(above) && self.watch.birth(above, name);
                    return if told { eye } else { Eye::Half(None) };
                }
                Err(_) => break,
            }
        }
        Eye::Half(None)
    }

    /// Why the system does not watch, when it does not.
    pub(super) fn limit(&self) -> Option<&str> {
        self.watch.limit()
    }

    /// How often to look without having been told of anything; `None` where everything is told.
    pub(super) fn look_again(&self) -> Option<Duration> {
        if self.watch.limit().is_some() {
            return Some(self.watch.look_again());
        }
        let half = self.known.values().any(|eye| matches!(eye, Eye::Half(_)));
        (half || !self.tells_mounts()).then_some(SAFETY)
    }

    /// Returns when something has happened, or when the last look is `most` ago.
    pub(super) async fn wait(&self, looked: Option<Instant>, most: Option<Duration>) {
        let due = async {
            match most {
                Some(most) => tokio::time::sleep_until((looked.unwrap_or_else(Instant::now) + most).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.watch.woken() => {}
            () = self.mounted() => {}
            () = due => {}
        }
    }
}

/// What is there under this name; nothing is there where something on the way to it is missing.
fn seen(path: &Path) -> io::Result<Option<Inode>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some((meta.dev(), meta.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Whether something is told within a time that only a broken watch needs.
    fn is_told(eyes: &Eyes) -> bool {
        is_told_within(eyes, Duration::from_secs(20))
    }

    fn is_told_within(eyes: &Eyes, time: Duration) -> bool {
        runtime().block_on(async { tokio::time::timeout(time, eyes.watch.woken()).await.is_ok() })
    }

    /// Whether what was told so far is nothing: what is told after it is.
    fn is_quiet(eyes: &Eyes, folder: &Path) -> bool {
        let quiet = !is_told_within(eyes, Duration::from_millis(20));
        fs::write(folder.join("after"), "").unwrap();
        quiet && is_told(eyes)
    }

    /// A folder on a file system that tells everything, if this machine has one to spare.
    fn local() -> Option<tempfile::TempDir> {
        let temp = tempfile::tempdir().unwrap();
        if watch::tells_everything(temp.path()) {
            return Some(temp);
        }
        println!("skipped: {} is not on a file system that tells everything", temp.path().display());
        None
    }

    #[test]
    fn a_folder_that_is_missing_is_awaited_wherever_it_begins_to_be() {
        let Some(temp) = local() else { return };
        let mut eyes = Eyes::new();
        let root = temp.path().join(".hidden/state/root");
        eyes.on(&root);
        assert_eq!(eyes.look_again(), None);
        fs::create_dir_all(temp.path().join("other")).unwrap();
        fs::create_dir_all(temp.path().join(".hidden")).unwrap();
        assert!(is_told(&eyes));
        eyes.on(&root);
        fs::create_dir_all(&root).unwrap();
        assert!(is_told(&eyes));
        eyes.on(&root);
        assert_eq!((eyes.look_again(), eyes.are_on(&root)), (None, true));
        fs::write(root.join("run"), "").unwrap();
        assert!(is_told(&eyes));
    }

    #[test]
    fn what_happens_beside_a_folder_that_is_awaited_wakes_nobody() {
        let Some(temp) = local() else { return };
        let mut eyes = Eyes::new();
        let root = temp.path().join("root");
        eyes.on(&root);
        for name in ["a", "b"] {
            fs::create_dir(temp.path().join(name)).unwrap();
            fs::write(temp.path().join(name).join("c"), "").unwrap();
        }
        assert!(!is_told_within(&eyes, Duration::from_millis(20)));
        fs::create_dir(&root).unwrap();
        assert!(is_told(&eyes));
        // Once all of it matters, the name that was awaited in it is one of many.
        eyes.on(temp.path());
        eyes.on(&temp.path().join("missing"));
        assert!(is_quiet(&eyes, temp.path()));
    }

    #[test]
    fn another_folder_in_the_place_of_one_is_watched_too() {
        let Some(temp) = local() else { return };
        let root = temp.path().join("root");
        fs::create_dir(&root).unwrap();
        let mut eyes = Eyes::new();
        eyes.on(&root);
        fs::rename(&root, temp.path().join("away")).unwrap();
        assert!(is_told(&eyes));
        fs::create_dir(&root).unwrap();
        eyes.on(&root);
        assert!(is_quiet(&eyes, &root));
    }

    #[test]
    fn where_not_everything_is_told_one_looks_from_time_to_time() {
        let temp = tempfile::tempdir().unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(temp.path(), &link).unwrap();
        for folder in [Path::new("/proc"), &link] {
            let mut eyes = Eyes::new();
            eyes.on(folder);
            assert_eq!(eyes.look_again(), Some(SAFETY), "{}", folder.display());
            eyes.off(folder);
            assert_eq!(eyes.look_again(), None);
        }
        let limited = Eyes::with(Watch::refused(28));
        assert_eq!(limited.look_again(), Some(watch::POLL));
    }
}
