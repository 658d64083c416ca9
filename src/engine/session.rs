//! A session belongs to one child at a time: two that go on with the same one would each write what the other does not
//! know of, and the conversation would fork.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Keeps others from going on with a session for as long as it lives.
#[derive(Debug)]
pub struct SessionLock {
    _file: File,
}

/// Takes a session that is there already; `None` for one that is still to be made, and where the file system knows no
/// locks.
///
/// # Errors
/// That somebody else has it.
pub fn take(path: &Path) -> Result<Option<SessionLock>, String> {
    let Ok(file) = crate::rundir::open::regular(path) else { return Ok(None) };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(SessionLock { _file: file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(format!(
            "another run goes on with the session {} just now; wait for it or stop it first",
            path.display()
        )),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_owner_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("s.jsonl");
        assert!(take(&path).unwrap().is_none(), "there is none yet");
        std::fs::write(&path, "{}").unwrap();
        let first = take(&path).unwrap();
        assert!(first.is_some());
        assert!(take(&path).unwrap_err().contains("another run"));
        drop(first);
        assert!(take(&path).unwrap().is_some());
    }
}
