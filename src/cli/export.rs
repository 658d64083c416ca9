//! `subdeck export`: a run to take along, as one HTML document and as JSON.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::args::{ExportArgs, ExportFormat};
use super::load::World;
use super::{find, lines, out};
use crate::export::{Bounds, gather, html, json};
use crate::headless::json_document;
use crate::text::{SafeText, bytes};

/// Writes what was asked for and prints where it is.
pub fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let bounds = Bounds { output: args.output_size, prompts: args.with_prompts, ..Bounds::default() };
    let to_stdout = args.out.as_deref() == Some(Path::new("-"));
    let formats: &[ExportFormat] = match args.format {
        Some(ExportFormat::Html) => &[ExportFormat::Html],
        Some(ExportFormat::Json) => &[ExportFormat::Json],
        None if to_stdout => bail!("`--out -` prints one document: say `--format html` or `--format json`"),
        None => &[ExportFormat::Html, ExportFormat::Json],
    };
    let mut progress = Progress::default();
    let report = gather(&dir, bounds, |done, all| progress.tell(done, all)).context("cannot read the run directory")?;
    progress.clear();
    for format in formats {
        let text = match format {
            ExportFormat::Html => html(&report, args.with_prompts, &jiff::tz::TimeZone::system()),
            ExportFormat::Json => json_document(&json(&report, args.with_prompts)) + "\n",
        };
        if to_stdout {
            out::print(&text)?;
            continue;
        }
        let path = place(args.out.as_deref(), &world.env.current_dir, dir.id_str(), *format, formats.len() > 1);
        let shown = SafeText::line(&path.display().to_string());
        write(&path, text.as_bytes(), args.force).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                anyhow::anyhow!("{shown} is there already; --force replaces it")
            } else {
                anyhow::anyhow!("cannot write {shown}: {error}")
            }
        })?;
        lines::out(|to| writeln!(to, "{shown}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a document goes: the name that was given, with the ending of its kind where there are two; else one of the run
/// in this folder.
fn place(asked: Option<&Path>, here: &Path, id: &str, format: ExportFormat, several: bool) -> PathBuf {
    let ending = match format {
        ExportFormat::Html => "html",
        ExportFormat::Json => "json",
    };
    match asked {
        Some(path) if several => here.join(path.with_extension(ending)),
        Some(path) => here.join(path),
        None => {
            let short: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(8).collect();
            here.join(format!("subdeck-{short}.{ending}"))
        }
    }
}

/// Says on a terminal how far a long log was read; a log that is read at once says nothing.
#[derive(Default)]
struct Progress {
    told: Option<(Instant, u64)>,
}

impl Progress {
    /// So long a person waits without a word.
    const PATIENCE: Duration = Duration::from_millis(300);

    fn tell(&mut self, done: u64, all: u64) {
        let percent = done.saturating_mul(100) / all.max(1);
        match self.told {
            None => self.told = Some((Instant::now(), u64::MAX)),
            Some((begun, before)) if begun.elapsed() >= Self::PATIENCE && before != percent => {
                self.told = Some((begun, percent));
                line(&format!("reading what happened {percent}% of {}", bytes(all)));
            }
            Some(_) => {}
        }
    }

    /// Takes the line away again.
    fn clear(&self) {
        if self.told.is_some_and(|(_, percent)| percent != u64::MAX) {
            line("");
        }
    }
}

/// Writes a line over the one before on standard error, where that is a terminal.
fn line(text: &str) {
    let mut to = io::stderr().lock();
    if to.is_terminal() {
        // Whoever does not see it misses nothing.
        let _ = write!(to, "\r\x1b[K{text}").and_then(|()| to.flush());
    }
}

/// A file without a name in this folder; gone with its last descriptor, however its writer ends. `None` where the file
/// system has none.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<std::fs::File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    open(folder, flags, Mode::RUSR | Mode::WUSR).ok().map(std::fs::File::from)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<std::fs::File> {
    None
}

/// Gives a file without a name one that is not there yet.
#[cfg(target_os = "linux")]
fn name(file: &std::fs::File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn name(_: &std::fs::File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes a file that only its owner reads: a run may have said things that nobody else is to know. It has its name once
/// it is whole, so that nothing is followed and nothing half-written is left, also when the disk is full or its writer is
/// ended by Ctrl-C.
fn write(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let named = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?.to_string_lossy();
    if !force && path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let beside = folder.join(format!(".{named}.{}.tmp", std::process::id()));
    if let Some(mut file) = nameless(folder) {
        file.write_all(bytes).and_then(|()| file.sync_all())?;
        let written =
            if force { name(&file, &beside).and_then(|()| std::fs::rename(&beside, path)) } else { name(&file, path) };
        match written {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
            written => return written,
        }
    }
    if force {
        return crate::rundir::replace(path, bytes);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    // A second name is given only where there is none yet.
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let written = written.and_then(|()| match std::fs::hard_link(&beside, path) {
        // Some file systems know no second name for a file.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(&beside, path),
        linked => linked,
    });
    let _ = std::fs::remove_file(&beside);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_their_places() {
        let here = Path::new("/here");
        let of = |asked: Option<&str>, format, several| {
            place(asked.map(Path::new), here, "abcd1234-ef", format, several).display().to_string()
        };
        assert_eq!(of(None, ExportFormat::Html, true), "/here/subdeck-abcd1234.html");
        assert_eq!(of(Some("r"), ExportFormat::Json, true), "/here/r.json");
        assert_eq!(of(Some("/x/r.htm"), ExportFormat::Html, false), "/x/r.htm");
    }

    #[test]
    fn nothing_is_replaced_unless_it_is_asked_for() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("r.html");
        write(&path, b"one", false).unwrap();
        assert_eq!(write(&path, b"two", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        write(&path, b"two", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "nothing stays beside it");
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
