//! Which projects' configuration files may name programs: the path and the exact contents that somebody read and
//! agreed to. A changed file has to be read and trusted again.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Env;

/// The most bytes of the list that are read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file that is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedProject {
    /// The configuration file, without links in its path.
    pub path: PathBuf,
    /// What it held: SHA-256 in hexadecimal.
    pub sha256: String,
    /// When it was trusted, in milliseconds since the epoch.
    #[serde(default)]
    pub at: u64,
}

/// Why trust cannot be given or taken.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no folder for the list.
    #[error("there is no home folder to keep the list of trusted projects in; set HOME or XDG_STATE_HOME")]
    NoState,
    /// The file cannot be read.
    #[error("{0} cannot be read: {1}")]
    Read(PathBuf, std::io::Error),
    /// The list cannot be written.
    #[error("the list of trusted projects {0} cannot be written: {1}")]
    Write(PathBuf, std::io::Error),
}

#[derive(Default, Serialize, Deserialize)]
struct List {
    version: u32,
    #[serde(default)]
    trusted: Vec<TrustedProject>,
}

/// The list of trusted projects.
#[derive(Debug)]
pub struct Trust {
    file: Option<PathBuf>,
    trusted: Vec<TrustedProject>,
}

impl Trust {
    /// Reads the list; one that is missing or unreadable trusts nothing.
    #[must_use]
    pub fn open(env: &Env) -> Self {
        let file = env.state_dir().map(|d| d.join("trusted.json"));
        let read = |file: &PathBuf| {
            let file = crate::plan::open_regular(file).ok()?.ok()?;
            let mut bytes = Vec::new();
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
            Some(bytes).filter(|b| b.len() as u64 <= MAX_BYTES)
        };
        let list: List = file.as_ref().and_then(read).and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
        Self { file, trusted: list.trusted }
    }

    /// What is trusted, in the order it was said.
    #[must_use]
    pub fn trusted(&self) -> &[TrustedProject] {
        &self.trusted
    }

    /// Where the list is kept.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether a file is trusted with just these contents.
    #[must_use]
    pub fn is_trusted(&self, path: &Path, contents: &[u8]) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let sum = sum(contents);
        self.trusted.iter().any(|t| t.path == path && t.sha256 == sum)
    }

    /// Whether a file was ever trusted.
    #[must_use]
    pub fn knows(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| self.trusted.iter().any(|t| t.path == path))
    }

    /// Trusts a file with the contents that it has now.
    ///
    /// # Errors
    /// When the file cannot be read or the list cannot be written.
    pub fn add(&mut self, path: &Path) -> Result<TrustedProject, TrustError> {
        let unreadable = |error| TrustError::Read(path.to_owned(), error);
        let path = path.canonicalize().map_err(unreadable)?;
        let source = crate::plan::Source::read(&path);
        let source = source.map_err(|p| {
            let reason = p.0.first().map_or_else(String::new, |p| p.message.clone());
            unreadable(std::io::Error::other(reason))
        })?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0));
        let entry = TrustedProject { sha256: sum(source.text().as_bytes()), path, at };
        self.trusted.retain(|t| t.path != entry.path);
        self.trusted.push(entry.clone());
        self.write()?;
        Ok(entry)
    }

    /// Takes trust away from a file, or from every file below a folder; says how many there were.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn remove(&mut self, path: &Path) -> Result<usize, TrustError> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let before = self.trusted.len();
        self.trusted.retain(|t| !t.path.starts_with(&path));
        let removed = before - self.trusted.len();
        if removed > 0 {
            self.write()?;
        }
        Ok(removed)
    }

    fn write(&self) -> Result<(), TrustError> {
        let file = self.file.as_ref().ok_or(TrustError::NoState)?;
        let write = || -> std::io::Result<()> {
            use std::os::unix::fs::DirBuilderExt;
            let folder = file.parent().unwrap_or(Path::new("/"));
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let list = List { version: 1, trusted: self.trusted.clone() };
            // Temporary files are made for their owner alone, and the rename leaves no half-written list.
            let mut temp = tempfile::NamedTempFile::new_in(folder)?;
            temp.write_all(&serde_json::to_vec_pretty(&list)?)?;
            temp.persist(file)?;
            Ok(())
        };
        write().map_err(|error| TrustError::Write(file.clone(), error))
    }
}

fn sum(contents: &[u8]) -> String {
    // The text that is read has its byte order mark dropped already.
    Sha256::digest(contents).iter().map(|b| format!("{b:02x}")).collect()
}
