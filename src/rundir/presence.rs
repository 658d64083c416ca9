//! Whether the directory that is followed is still the one that it was: it may be removed, moved, replaced, unmounted
//! or closed to its reader. Remembers only which one it was and holds nothing, so that nobody's file system stays busy
//! for a look.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is said of a directory whose file system is not there any more.
const UNMOUNTED: &str = "is on a file system that was unmounted, or covered by another one";

/// What is said of one that is not beside its place. Where else it may be is known to nobody who does not hold it open.
const GONE: &str = "was removed, or moved to another folder";

/// A directory as it was when it was opened.
#[derive(Debug)]
pub(super) struct Presence {
    path: PathBuf,
    identity: (u64, u64),
}

impl Presence {
    /// Remembers the directory at this path.
    ///
    /// # Errors
    /// When it cannot be looked at or is no directory.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        if !meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a run directory"));
        }
        Ok(Self { path: path.to_owned(), identity: identity(&meta) })
    }

    /// Why it is not there any more, in words that follow "the run's directory"; `None` while it is.
    pub(super) fn missing(&self) -> Option<String> {
        let meta = match fs::metadata(&self.path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(self.removed()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Some(format!("cannot be read any more ({error})"));
            }
            Err(error) => return Some(format!("does not answer ({error})")),
        };
        if meta.is_dir() && identity(&meta) == self.identity {
            return None;
        }
        Some(if meta.dev() == self.identity.0 {
            "was replaced: another one stands in its place".to_owned()
        } else {
            UNMOUNTED.to_owned()
        })
    }

    fn removed(&self) -> String {
        let Some(parent) = self.path.parent() else { return "was removed".to_owned() };
        // What a file system held goes with it; what is left of the way there is on another one.
        let left = self.path.ancestors().skip(1).find_map(|above| fs::metadata(above).ok());
        if left.is_some_and(|meta| meta.dev() != self.identity.0) {
            return UNMOUNTED.to_owned();
        }
        if !parent.is_dir() {
            return format!("was removed or moved with all of {}", parent.display());
        }
        let beside = fs::read_dir(parent).into_iter().flatten().flatten();
        let moved = beside.map(|entry| entry.path()).find(|path| {
            fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && identity(&meta) == self.identity)
        });
        moved.map_or_else(|| GONE.to_owned(), |to| format!("was moved to {}", to.display()))
    }
}

fn identity(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_directory_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let (root, aside) = (temp.path().join("root"), temp.path().join("aside"));
        let run = root.join("run");
        fs::create_dir_all(&run).unwrap();
        let presence = Presence::of(&run).unwrap();
        assert_eq!(presence.missing(), None);
        fs::rename(&run, root.join("away")).unwrap();
        assert_eq!(presence.missing(), Some(format!("was moved to {}", root.join("away").display())));
        fs::create_dir(&run).unwrap();
        assert_eq!(presence.missing().unwrap(), "was replaced: another one stands in its place");
        fs::remove_dir(&run).unwrap();
        fs::rename(root.join("away"), &run).unwrap();
        assert_eq!(presence.missing(), None, "it came back");
        fs::rename(&root, &aside).unwrap();
        assert_eq!(presence.missing(), Some(format!("was removed or moved with all of {}", root.display())));
        fs::rename(&aside, &root).unwrap();
        fs::remove_dir(&run).unwrap();
        assert_eq!(presence.missing().unwrap(), GONE);
        let elsewhere = Presence { path: root.clone(), identity: (u64::MAX, 1) };
        assert!(elsewhere.missing().unwrap().contains("unmounted"));
        assert!(Presence::of(&temp.path().join("none")).is_err());
    }
}
