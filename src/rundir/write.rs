//! Writing documents: atomically, and without loss while the disk is full (run-directory 6).
//!
//! Owns the queue of what could not be written. It has no clock and no timer: the caller asks it to retry.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::segment::sha256_hex;
use crate::run::Timestamp;

/// How long to wait before what could not be written is tried again (run-directory 6).
pub const RETRY: Duration = Duration::from_secs(1);

/// The longest file name in bytes.
const LONGEST_NAME: usize = 255;

/// Replaces a document in one step: a temporary file beside it, mode 0600, renamed over it. The temporary file is
/// removed when anything fails. The folder must exist.
///
/// # Errors
/// What the file system says; the old document is untouched then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |temp| write_new(temp, bytes).map(drop))
}

/// The same for a document that nobody writes again: it is on the disk itself before it has its name, so that a power cut
/// leaves the old one or the new one and no empty file. That takes a disk's time, so it is for few documents.
///
/// # Errors
/// What the file system says; the old document is untouched then.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |temp| match write_new(temp, bytes)?.sync_data() {
        // There are file systems that cannot promise it.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    })
}

fn replace_by(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temp = temp_path(path)?;
    let written = write(&temp).and_then(|()| fs::rename(&temp, path));
    if written.is_err() {
        // Nothing more can be done about a temporary file that cannot be removed either.
        let _ = fs::remove_file(&temp);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<fs::File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// `.<base>.<pid>.<ms>.<random>.tmp` beside the document; never ends in `.json`, so scans by suffix skip it.
fn temp_path(path: &Path) -> io::Result<PathBuf> {
    let (Some(folder), Some(base)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let base = base.to_string_lossy();
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let random = uuid::Uuid::new_v4().simple().to_string();
    let tail = format!("{}.{ms}.{}.tmp", std::process::id(), random.get(..12).unwrap_or(&random));
    let name = format!(".{base}.{tail}");
    if name.len() <= LONGEST_NAME {
        return Ok(folder.join(name));
    }
    Ok(folder.join(format!(".{}.{tail}", sha256_hex(base.as_bytes()))))
}

/// Whether an error means that there is no room, of space, quota or open files, and will be some again.
#[must_use]
pub fn is_capacity(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(code) = error.raw_os_error() else {
        return matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    };
    [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE].iter().any(|e| e.raw_os_error() == code)
}

/// Whether the disk that holds a path has no room for one more byte or one more file. What cannot be asked is not full.
#[must_use]
pub fn is_full(path: &Path) -> bool {
    let Ok(stat) = rustix::fs::statvfs(path) else { return false };
    // The superuser may also take what is kept back for it.
    let left = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
    // File systems that make room for files as they need it count none.
    stat.f_blocks > 0 && left == 0 || stat.f_files > 0 && stat.f_favail == 0
}

/// One change of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replace a document, making its folder when it is missing.
    Replace(PathBuf, Vec<u8>),
    /// The same for a document that is written once or for the last time: it is on the disk itself before it has its name.
    Keep(PathBuf, Vec<u8>),
    /// Move a file over another.
    Rename(PathBuf, PathBuf),
    /// Make an empty file unless there is one.
    Touch(PathBuf),
    /// Remove a file; that there is none is as good.
    Remove(PathBuf),
    /// Remove a folder if nothing is in it; that it stays is as good.
    RemoveEmpty(PathBuf),
}

impl Op {
    /// The file that it makes, changes or removes.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Replace(path, _)
            | Self::Keep(path, _)
            | Self::Rename(_, path)
            | Self::Touch(path)
            | Self::Remove(path)
            | Self::RemoveEmpty(path) => path,
        }
    }
}

/// What the writer writes to; a test has its own.
pub trait Disk: Send {
    /// Does one thing.
    ///
    /// # Errors
    /// What the file system says.
    fn perform(&mut self, op: &Op) -> io::Result<()>;
}

/// The disk itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn perform(&mut self, op: &Op) -> io::Result<()> {
        act(op, &|path| Ok(Cow::Borrowed(path)))
    }
}

/// Does one thing, each path by the name that `real` gives it.
pub(super) fn act(op: &Op, real: &dyn for<'a> Fn(&'a Path) -> io::Result<Cow<'a, Path>>) -> io::Result<()> {
    let path = match (real(op.path()), op) {
        (Err(error), Op::Remove(_) | Op::RemoveEmpty(_)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        (path, _) => path?,
    };
    let stands = || real(op.path()).map(drop);
    match op {
        Op::Replace(_, bytes) => in_folder_of(&path, &stands, || replace(&path, bytes)),
        Op::Keep(_, bytes) => in_folder_of(&path, &stands, || replace_durably(&path, bytes)),
        Op::Rename(from, _) => {
            let from = real(from)?;
            in_folder_of(&path, &stands, || fs::rename(&from, &path))
        }
        Op::Touch(_) => in_folder_of(&path, &stands, || super::open::append(&path).map(drop)),
        Op::Remove(_) => match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
        Op::RemoveEmpty(_) => {
            // Whoever needs it makes it again.
            let _ = fs::remove_dir(&path);
            Ok(())
        }
    }
}

/// How often a folder is made that somebody else removes again because nothing is in it yet.
const FOLDER_TRIES: usize = 20;

/// Tries, and if the folder was missing makes it and tries again, as long as `stands` says that there is something to
/// write into.
fn in_folder_of(path: &Path, stands: &dyn Fn() -> io::Result<()>, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let mut done = act();
    for _ in 0..FOLDER_TRIES {
        match (&done, path.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                done = make_missing(folder, stands).and_then(|()| act());
            }
            _ => break,
        }
    }
    done
}

/// Makes what is missing of a folder, one level after the other: what somebody removes meanwhile, the root of all runs for
/// one, is not made again with it.
fn make_missing(folder: &Path, stands: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|level| !level.exists()).collect();
    stands()?;
    for level in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(level) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is on the disk.
    Now,
    /// There was no room; it is kept and will be written by [`Writer::retry`].
    Deferred,
}

/// What could not be written, and why it was given up.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", path.display())]
pub struct WriteFailure {
    /// What the changes were written under.
    pub key: PathBuf,
    /// The file whose change failed.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub error: io::Error,
}

/// Writes documents and keeps the newest payload of each while there is no room.
#[derive(Debug)]
pub struct Writer<D: Disk = RealDisk> {
    disk: D,
    waiting: Vec<Chain>,
    retry_at: Option<Timestamp>,
}

/// Changes that must happen in their order, known by the path they are about.
#[derive(Debug)]
struct Chain {
    key: PathBuf,
    ops: VecDeque<Op>,
}

impl Default for Writer<RealDisk> {
    fn default() -> Self {
        Self::new(RealDisk)
    }
}

impl<D: Disk> Writer<D> {
    /// A writer to this disk.
    pub const fn new(disk: D) -> Self {
        Self { disk, waiting: Vec::new(), retry_at: None }
    }

    /// The disk it writes to.
    pub const fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Replaces one document.
    ///
    /// # Errors
    /// Any failure that is not a lack of room.
    pub fn write(&mut self, path: &Path, bytes: Vec<u8>, now: Timestamp) -> Result<Written, WriteFailure> {
        self.perform(path, [Op::Replace(path.to_owned(), bytes)], now)
    }

    /// Does several things in their order. Once one lacks room, it and the ones behind it wait together; whatever
    /// waited under the same key is forgotten, because this is newer.
    ///
    /// # Errors
    /// Any failure that is not a lack of room; what stands behind it is not done.
    pub fn perform(
        &mut self,
        key: &Path,
        ops: impl IntoIterator<Item = Op>,
        now: Timestamp,
    ) -> Result<Written, WriteFailure> {
        let place = self.waiting.iter().position(|c| c.key == key);
        let mut chain = Chain { key: key.to_owned(), ops: ops.into_iter().collect() };
        let result = advance(&mut self.disk, &mut chain);
        match result {
            Ok(Written::Deferred) => {
                // The newer payload takes the place of the older one, so the order of documents is kept.
                match place.and_then(|at| self.waiting.get_mut(at)) {
                    Some(slot) => *slot = chain,
                    None => self.waiting.push(chain),
                }
                self.retry_at.get_or_insert(now + RETRY);
            }
            Ok(Written::Now) | Err(_) => {
                if let Some(at) = place {
                    self.waiting.remove(at);
                }
                if self.waiting.is_empty() {
                    self.retry_at = None;
                }
            }
        }
        result
    }

    /// Tries everything that waits, if it is time; failures of another kind than lack of room are given up and
    /// returned.
    pub fn retry(&mut self, now: Timestamp) -> Vec<WriteFailure> {
        if self.retry_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.flush(now)
    }

    /// Tries everything that waits at once.
    pub fn flush(&mut self, now: Timestamp) -> Vec<WriteFailure> {
        let mut failures = Vec::new();
        let disk = &mut self.disk;
        self.waiting.retain_mut(|chain| match advance(disk, chain) {
            Ok(Written::Now) => false,
            Ok(Written::Deferred) => true,
            Err(failure) => {
                failures.push(failure);
                false
            }
        });
        self.retry_at = (!self.waiting.is_empty()).then(|| now + RETRY);
        failures
    }

    /// Whether anything waits for room. The runner may not exit while something does.
    #[must_use]
    pub fn pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When to call [`Writer::retry`] next.
    #[must_use]
    pub const fn retry_at(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// The documents that wait, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &Path> {
        self.waiting.iter().map(|c| c.key.as_path())
    }
}

fn advance<D: Disk>(disk: &mut D, chain: &mut Chain) -> Result<Written, WriteFailure> {
    while let Some(op) = chain.ops.front() {
        match disk.perform(op) {
            Ok(()) => drop(chain.ops.pop_front()),
            Err(error) if is_capacity(&error) => return Ok(Written::Deferred),
            Err(error) => {
                return Err(WriteFailure { key: chain.key.clone(), path: op.path().to_owned(), error });
            }
        }
    }
    Ok(Written::Now)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A disk that refuses as often as it is told to and remembers what it did.
    #[derive(Default)]
    struct Scripted {
        refuse: VecDeque<Option<i32>>,
        done: Vec<Op>,
    }

    impl Disk for Scripted {
        fn perform(&mut self, op: &Op) -> io::Result<()> {
            match self.refuse.pop_front().flatten() {
                Some(code) => Err(io::Error::from_raw_os_error(code)),
                None => {
                    self.done.push(op.clone());
                    Ok(())
                }
            }
        }
    }

    const ENOSPC: i32 = 28;
    const EACCES: i32 = 13;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn put(path: &str, text: &str) -> Op {
        Op::Replace(path.into(), text.into())
    }

    #[test]
    fn missing_folders_are_made_only_while_there_is_something_to_write_into() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("root/results/file");
        let make = || fs::write(&path, b"x");
        let gone = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(in_folder_of(&path, &gone, make).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!temp.path().join("root").exists());
        // Removed between the look and the making.
        fs::create_dir(temp.path().join("root")).unwrap();
        let removed = || fs::remove_dir(temp.path().join("root"));
        assert_eq!(
            make_missing(&temp.path().join("root/results"), &removed).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(!temp.path().join("root").exists());
        in_folder_of(&path, &|| Ok(()), make).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }

    #[test]
    fn a_document_is_replaced_privately_and_no_temporary_file_stays() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("status.json");
        replace(&path, b"one").unwrap();
        replace_durably(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::create_dir(temp.path().join("folder")).unwrap();
        replace(&temp.path().join("folder"), b"x").unwrap_err();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    }

    #[test]
    fn long_names_are_hashed_in_the_temporary_name_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("n".repeat(255));
        replace(&path, b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
        let name = temp_path(&path).unwrap();
        let name = name.file_name().unwrap().to_str().unwrap();
        assert!(name.len() <= 255 && name.ends_with(".tmp"), "{name}");
    }

    #[test]
    fn the_newest_payload_wins_and_is_written_when_there_is_room() {
        let mut writer = Writer::new(Scripted::default());
        writer.disk.refuse = [Some(ENOSPC), Some(ENOSPC), Some(ENOSPC)].into();
        assert_eq!(writer.write(Path::new("a"), b"1".into(), at(0)).unwrap(), Written::Deferred);
        assert_eq!(writer.write(Path::new("b"), b"1".into(), at(1)).unwrap(), Written::Deferred);
        assert_eq!(writer.write(Path::new("a"), b"2".into(), at(2)).unwrap(), Written::Deferred);
        assert!(writer.pending());
        assert!(writer.retry(at(999)).is_empty(), "not yet");
        assert!(writer.disk.done.is_empty());
        assert!(writer.retry(at(1000)).is_empty());
        assert_eq!(writer.disk.done, [put("a", "2"), put("b", "1")]);
        assert!(!writer.pending() && writer.retry_at().is_none());
    }

    #[test]
    fn a_direct_success_forgets_what_waited_for_that_document() {
        let mut writer = Writer::new(Scripted::default());
        writer.disk.refuse = [Some(ENOSPC)].into();
        writer.write(Path::new("a"), b"1".into(), at(0)).unwrap();
        writer.write(Path::new("a"), b"2".into(), at(1)).unwrap();
        writer.flush(at(2));
        assert_eq!(writer.disk.done, [put("a", "2")]);
    }

    #[test]
    fn the_rest_of_a_chain_waits_with_the_step_that_lacked_room() {
        let mut writer = Writer::new(Scripted::default());
        writer.disk.refuse = [None, Some(ENOSPC), Some(ENOSPC)].into();
        let chain = [put("pending", "r"), put("index", "i"), Op::Rename("pending".into(), "result".into())];
        assert_eq!(writer.perform(Path::new("result"), chain.clone(), at(0)).unwrap(), Written::Deferred);
        assert!(writer.flush(at(1)).is_empty());
        assert!(writer.pending());
        writer.flush(at(2));
        assert_eq!(writer.disk.done, chain);
    }

    #[test]
    fn other_errors_are_returned_and_not_kept() {
        let mut writer = Writer::new(Scripted::default());
        writer.disk.refuse = [Some(EACCES), Some(ENOSPC), Some(EACCES)].into();
        writer.write(Path::new("a"), b"1".into(), at(0)).unwrap_err();
        assert!(!writer.pending());
        writer.write(Path::new("a"), b"1".into(), at(0)).unwrap();
        let failures = writer.flush(at(1));
        let places: Vec<_> = failures.iter().map(|f| (f.key.as_path(), f.path.as_path())).collect();
        assert_eq!(places, [(Path::new("a"), Path::new("a"))]);
        assert!(!writer.pending());
    }

    #[test]
    fn a_missing_folder_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x/y/z.json");
        let mut writer = Writer::default();
        assert_eq!(writer.write(&path, b"{}".into(), at(0)).unwrap(), Written::Now);
        assert_eq!(fs::read(&path).unwrap(), b"{}");
    }
}
