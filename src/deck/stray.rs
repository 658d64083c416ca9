//! What something in this process says on standard error while the screen is the deck's: it would lie across the
//! picture, so it is put aside and told when the screen is the person's again.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::text::SafeText;

/// So much of it is told, the end, in bytes.
const TOLD: u64 = 16 * 1024;

/// Standard error as it was, and the file that stands in its place.
struct Aside {
    real: OwnedFd,
    file: File,
}

static ASIDE: Mutex<Option<Aside>> = Mutex::new(None);

fn aside() -> MutexGuard<'static, Option<Aside>> {
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts aside what is said from now on. Standard error that is no terminal disturbs nobody and stays as it is; so does
/// one for which there is no file, because a picture with a scratch is better than none.
pub fn put_aside() {
    let mut aside = aside();
    if aside.is_some() || !io::stderr().is_terminal() {
        return;
    }
    let file = tempfile::tempfile().or_else(|_| File::options().read(true).write(true).open("/dev/null"));
    if let (Ok(real), Ok(file)) = (io::stderr().as_fd().try_clone_to_owned(), file)
        && rustix::stdio::dup2_stderr(&file).is_ok()
    {
        *aside = Some(Aside { real, file });
    }
}

/// Gives standard error back and tells there what was said meanwhile. Does nothing when nothing was put aside.
pub fn give_back() {
    let Some(Aside { real, file }) = aside().take() else { return };
    let _ = rustix::stdio::dup2_stderr(&real);
    // The terminal may be gone, and then nobody reads it anyway.
    let _ = File::from(real).write_all(said(file).as_bytes());
}

/// The end of what a file holds, clean.
fn said(mut file: File) -> String {
    let mut bytes = Vec::new();
    let from = file.metadata().map_or(0, |meta| meta.len().saturating_sub(TOLD));
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(TOLD).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| format!("{}\n", SafeText::from_bytes(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_told_clean() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        assert_eq!(said(file(b"")), "");
        assert_eq!(said(file(b"one\n\n\x1b[2Jtwo\r\n\xff")), "one\n\u{fffd}two\n\u{fffd}\n");
        let long = said(file(&[&[b'x'; 100_000][..], b"\nlast\n"].concat()));
        assert!(long.ends_with("x\nlast\n") && long.len() as u64 <= TOLD, "{}", long.len());
    }
}
