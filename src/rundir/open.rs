//! Opening files that somebody else may have made: never through a link, never waiting on a FIFO, only regular files
//! (product 7).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading.
///
/// # Errors
/// What the file system says; `InvalidInput` for a link, a FIFO, a folder, a device.
pub fn regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
        if errno == rustix::io::Errno::LOOP { not_regular("a symbolic link") } else { errno.into() }
    })?);
    if !file.metadata()?.is_file() {
        return Err(not_regular("not a regular file"));
    }
    Ok(file)
}

/// Whether something is there that [`regular`] does not open because of what it is.
#[must_use]
pub fn is_odd(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// Opens a regular file for adding to its end and for reading, mode 0600, and makes it when there is none.
///
/// # Errors
/// As [`regular`].
pub fn append(path: &Path) -> io::Result<File> {
    made(path, OFlags::RDWR | OFlags::APPEND, OWN)
}

/// Opens a regular file whose contents are to be others, mode 0600, and makes it when there is none. It is empty then.
///
/// # Errors
/// As [`regular`].
pub fn overwrite(path: &Path) -> io::Result<File> {
    let file = made(path, OFlags::WRONLY, OWN)?;
    file.set_len(0)?;
    Ok(file)
}

/// The same for a file that is the user's and not the run's: who may read it is for the umask to say.
///
/// # Errors
/// As [`regular`].
pub fn overwrite_shared(path: &Path) -> io::Result<File> {
    let file = made(path, OFlags::WRONLY, Mode::from_raw_mode(0o666))?;
    file.set_len(0)?;
    Ok(file)
}

/// Who may read and write what is made for a run.
const OWN: Mode = Mode::RUSR.union(Mode::WUSR);

/// A FIFO is opened without waiting for somebody at its other end, or refused at once.
fn made(path: &Path, access: OFlags, mode: Mode) -> io::Result<File> {
    let flags = access | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, mode).map_err(|errno| match errno {
        rustix::io::Errno::LOOP => not_regular("a symbolic link"),
        rustix::io::Errno::NXIO | rustix::io::Errno::ISDIR => not_regular("not a regular file"),
        errno => errno.into(),
    })?);
    if !file.metadata()?.is_file() {
        return Err(not_regular("not a regular file"));
    }
    Ok(file)
}

/// Opens a regular file of ours.
///
/// # Errors
/// As [`regular`]; `PermissionDenied` when it belongs to somebody else.
pub fn ours(path: &Path) -> io::Result<File> {
    let file = regular(path)?;
    let owner = file.metadata()?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        let message = format!("it belongs to the user with id {owner}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(file)
}

/// Reads a regular file whole, however large it is.
///
/// # Errors
/// As [`regular`].
pub fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file whole if it has at most `most` bytes.
///
/// # Errors
/// What the file system says; `FileTooLarge` beyond the limit, without reading.
pub fn read_at_most(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes"));
    if size > most {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

fn not_regular(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_at_most(&ours(&file).unwrap(), 4).unwrap(), b"text");
        assert_eq!(read_at_most(&ours(&file).unwrap(), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        append(&file).unwrap().write_all(b"+").unwrap();
        assert_eq!(read_at_most(&ours(&file).unwrap(), 9).unwrap(), b"text+");
        overwrite(&file).unwrap().write_all(b"new").unwrap();
        assert_eq!(read_at_most(&ours(&file).unwrap(), 9).unwrap(), b"new");
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let fifo = temp.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for odd in [link.as_path(), fifo.as_path(), temp.path()] {
            assert_eq!(regular(odd).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", odd.display());
            assert_eq!(append(odd).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", odd.display());
            assert_eq!(overwrite(odd).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", odd.display());
        }
    }
}
