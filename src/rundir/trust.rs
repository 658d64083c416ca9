//! Whether a root is ours to write into (product 7). Looks only.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why a root is shown read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// It cannot be looked at.
    #[error("it cannot be examined")]
    Unreadable,
    /// It is a symbolic link.
    #[error("it is a symbolic link")]
    Link,
    /// It is something else than a folder.
    #[error("it is not a folder")]
    NotAFolder,
    /// It belongs to another user.
    #[error("it belongs to the user with id {0}")]
    Owner(u32),
    /// Its mode lets others write into it.
    #[error("others may write into it (mode {0:o})")]
    Writable(u32),
}

/// Whether the folder is ours: a real folder, owned by us, writable by nobody else.
///
/// # Errors
/// The reason why it is not.
pub fn check(path: &Path) -> Result<(), Distrust> {
    let meta = fs::symlink_metadata(path).map_err(|_| Distrust::Unreadable)?;
    if meta.file_type().is_symlink() {
        return Err(Distrust::Link);
    }
    if !meta.is_dir() {
        return Err(Distrust::NotAFolder);
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Distrust::Owner(meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(Distrust::Writable(meta.mode() & 0o777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_real_folder_that_others_cannot_write_is_ours() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("root");
        fs::create_dir(&dir).unwrap();
        for (mode, want) in [(0o700, Ok(())), (0o755, Ok(())), (0o777, Err(Distrust::Writable(0o777)))] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&dir), want);
        }
        let link = temp.path().join("link");
        symlink(&dir, &link).unwrap();
        assert_eq!(check(&link), Err(Distrust::Link));
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(check(&file), Err(Distrust::NotAFolder));
        assert_eq!(check(&temp.path().join("none")), Err(Distrust::Unreadable));
    }
}
