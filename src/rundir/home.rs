//! A run directory that is held: whoever writes the run holds the directory itself, not its name, so that nothing is
//! written into another one that came to stand in its place, and none that was removed is made again.
//!
//! On Linux the held directory is reached through its descriptor and so is followed when it is renamed. Elsewhere a
//! renamed directory counts as removed.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::RunDir;
use super::write::{Disk, Op, act};

/// Where a held directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it was opened.
    There,
    /// It has another name now.
    Moved(PathBuf),
    /// It was removed.
    Gone,
}

/// A run directory that is held.
#[derive(Debug)]
pub struct Home {
    dir: RunDir,
    way: RunDir,
    identity: (u64, u64),
    /// Keeps the descriptor that `way` goes through.
    _held: OwnedFd,
}

impl Home {
    /// Holds the directory that has this name now.
    ///
    /// # Errors
    /// When it cannot be opened or is no directory.
    pub fn open(dir: &RunDir) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::open(dir.path(), flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&held)?;
        // The widths of these differ between systems.
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
        let identity = (stat.st_dev as u64, u64::from(stat.st_ino));
        let through = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let way = if is(&through, identity) { RunDir::at(through) } else { dir.clone() };
        Ok(Self { dir: dir.clone(), way, identity, _held: held })
    }

    /// The directory under the name that it was opened by: for documents, which name it, and for its id.
    #[must_use]
    pub const fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// The directory under a name that leads to it and to no other, in this process: for reading and writing.
    #[must_use]
    pub const fn way(&self) -> &RunDir {
        &self.way
    }

    /// Where it is now.
    #[must_use]
    pub fn place(&self) -> Place {
        if is(self.dir.path(), self.identity) {
            return Place::There;
        }
        // The kernel says `<path> (deleted)` of one that was removed, so the name is believed only when it leads back.
        match fs::read_link(self.way.path()) {
            Ok(now) if self.way != self.dir && is(&now, self.identity) => Place::Moved(now),
            _ => Place::Gone,
        }
    }

    /// The name to use for `path`: inside of the directory the way to it. A place outside that was moved together with
    /// the directory (its root was renamed) is found where it is now.
    ///
    /// # Errors
    /// `NotFound` for a folder that vanished with the directory or its root; it is not to be made again.
    pub fn through<'a>(&self, path: &'a Path) -> io::Result<Cow<'a, Path>> {
        if let Ok(inside) = path.strip_prefix(self.dir.path()) {
            if self.way != self.dir {
                return Ok(Cow::Owned(self.way.path().join(inside)));
            }
            return if self.place() == Place::There { Ok(Cow::Borrowed(path)) } else { Err(vanished()) };
        }
        if path.parent().is_some_and(Path::exists) {
            return Ok(Cow::Borrowed(path));
        }
        match self.place() {
            Place::There => Ok(Cow::Borrowed(path)),
            Place::Moved(now) => {
                let roots = self.dir.root().zip(RunDir::at(now).root());
                let moved = roots.and_then(|(then, now)| Some(now.path().join(path.strip_prefix(then.path()).ok()?)));
                moved.map(Cow::Owned).ok_or_else(vanished)
            }
            Place::Gone if self.dir.root().is_none_or(|root| root.path().exists()) => Ok(Cow::Borrowed(path)),
            Place::Gone => Err(vanished()),
        }
    }
}

fn vanished() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it was removed together with the run directory")
}

fn is(path: &Path, identity: (u64, u64)) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_dir() && (m.dev(), m.ino()) == identity)
}

/// The disk as the writer of a run sees it: what belongs into its directory goes into the one that is held.
#[derive(Clone, Debug)]
pub struct HomeDisk(pub Arc<Home>);

impl Disk for HomeDisk {
    fn perform(&mut self, op: &Op) -> io::Result<()> {
        act(op, &|path| self.0.through(path))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::run::RunId;
    use crate::rundir::RunRoot;

    fn world() -> (tempfile::TempDir, RunRoot, Arc<Home>) {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path().join("root"));
        let dir = RunDir::create(&root, &RunId("run".into())).unwrap();
        (temp, root, Arc::new(Home::open(&dir).unwrap()))
    }

    fn put(home: &Arc<Home>, path: PathBuf) -> io::Result<()> {
        HomeDisk(Arc::clone(home)).perform(&Op::Replace(path, b"x".to_vec()))
    }

    #[test]
    fn a_removed_directory_is_not_made_again_and_another_in_its_place_is_left_alone() {
        let (_temp, root, home) = world();
        put(&home, home.dir().status()).unwrap();
        assert_eq!((home.place(), home.dir().status().exists()), (Place::There, true));
        fs::remove_dir_all(home.dir().path()).unwrap();
        for another in [false, true] {
            if another {
                home.dir().make_folders().unwrap();
            }
            assert_eq!(home.place(), Place::Gone);
            for path in [home.dir().status(), home.dir().control().join("a/b.json")] {
                assert_eq!(put(&home, path.clone()).unwrap_err().kind(), io::ErrorKind::NotFound);
                assert!(!path.exists(), "{}", path.display());
            }
            assert_eq!(home.dir().path().exists(), another);
        }
        // What lies outside and is still there is written; what is gone is not made again.
        put(&home, root.results().join("pending/run.json")).unwrap();
        fs::remove_dir_all(root.path()).unwrap();
        put(&home, root.results().join("run.json")).unwrap_err();
        assert!(!root.path().exists());
    }

    #[test]
    fn a_renamed_directory_is_followed_and_so_is_its_root() {
        let (temp, root, home) = world();
        let aside = root.runs().join("aside");
        fs::rename(home.dir().path(), &aside).unwrap();
        fs::create_dir(home.dir().path()).unwrap();
        assert_eq!(home.place(), Place::Moved(aside.clone()));
        put(&home, home.dir().status()).unwrap();
        assert!(aside.join("status.json").exists() && !home.dir().status().exists());
        let moved = temp.path().join("moved");
        fs::rename(root.path(), &moved).unwrap();
        put(&home, home.dir().events()).unwrap();
        put(&home, root.results().join("pending/run.json")).unwrap();
        assert!(moved.join("async-subagent-runs/aside/events.jsonl").exists());
        assert!(moved.join("async-subagent-results/pending/run.json").exists());
        assert!(!root.path().exists());
    }
}
