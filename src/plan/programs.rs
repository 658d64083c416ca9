//! Whether the programs of a plan are there, so that a run that cannot succeed is not begun.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::{Runner, Step};

/// A program that a step needs and that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The program as the plan names it.
    pub program: String,
    /// The sentence.
    pub message: String,
    /// Nothing that the run does below its own folder can change it.
    pub certain: bool,
}

/// Why a file is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It is not there.
    File,
    /// It is something else than a file.
    Regular,
    /// It may not be executed.
    Executable,
    /// A script whose interpreter is not there.
    Interpreted(String),
}

impl Lack {
    /// What is to be said of the program.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::File => "was not found".to_owned(),
            Self::Regular => "is not a file".to_owned(),
            Self::Executable => "is not executable".to_owned(),
            Self::Interpreted(by) => format!("is a script for `{by}`, which does not exist"),
        }
    }
}

/// The file that can be run for a program's name, from this folder and with this PATH.
///
/// # Errors
/// Why there is none.
pub fn locate(program: &str, cwd: &Path, path: &OsStr) -> Result<PathBuf, Lack> {
    if program.contains('/') {
        let file = cwd.join(program);
        return look(&file).map(|()| file);
    }
    let mut why = Lack::File;
    for folder in std::env::split_paths(path) {
        let file = cwd.join(folder).join(program);
        match look(&file) {
            Ok(()) => return Ok(file),
            Err(lack @ (Lack::Executable | Lack::Interpreted(_))) => why = lack,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Looks for the program of a step; `path` is the PATH that the children get, without which nothing is said. `None` when
/// it is there, when the step runs none, or when only the step itself knows where it looks.
#[must_use]
pub fn missing(step: &Step, path: Option<&OsStr>) -> Option<Missing> {
    let path = path?;
    let program = match &step.runner {
        _ if step.carried.is_some() => return None,
        Runner::Pi { command, .. } => command.as_deref().unwrap_or("pi"),
        Runner::Agent(agent) => agent.command.as_deref().unwrap_or(agent.kind.family.program()),
        Runner::ExternalCli { command, .. } => command,
        Runner::Demo { .. } => return None,
    };
    let named = program.contains('/');
    if !named && step.env.iter().any(|(name, _)| name == "PATH") {
        return None;
    }
    let why = locate(program, &step.cwd, path).err()?;
    let certain = if named {
        // What lies below the folder of the step may be made by the steps before it.
        Path::new(program).is_absolute() || leaves(Path::new(program))
    } else {
        std::env::split_paths(path).all(|folder| folder.is_absolute())
    };
    let message = format!("the program `{program}` of step `{}` {}", step.key, why.told());
    Some(Missing { program: program.to_owned(), message, certain })
}

fn look(path: &Path) -> Result<(), Lack> {
    let meta = std::fs::metadata(path).map_err(|_| Lack::File)?;
    if !meta.is_file() {
        return Err(Lack::Regular);
    }
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|_| Lack::Executable)?;
    match interpreter(path) {
        // A relative one is looked for in the folder that the child begins in.
        Some(by) if by.starts_with('/') && !Path::new(&by).exists() => Err(Lack::Interpreted(by)),
        _ => Ok(()),
    }
}

/// As much of a script is read as the system reads of it.
const FIRST_LINE: u64 = 256;

/// The interpreter that the first line of a script names; `None` for what is no script or cannot be read.
#[must_use]
pub fn interpreter(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    // A regular file: nothing here is waited for.
    let file = super::source::open_regular(path).ok()?.ok()?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, FIRST_LINE), &mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = line.split(|b| matches!(b, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(word).into_owned())
}

/// The file that a program's name means, for a child that begins in `cwd`: what has a slash from there, else the first
/// one on `path` that there is.
#[must_use]
pub fn find(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(program)).filter(|p| p.exists());
    }
    std::env::split_paths(path?).map(|folder| cwd.join(folder).join(program)).find(|p| p.is_file())
}

/// Whether a relative path leads out of the folder that it is meant from.
fn leaves(path: &Path) -> bool {
    let mut depth = 0i32;
    path.components().any(|part| {
        match part {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_can_still_come_is_told_from_what_cannot() {
        let temp = tempfile::tempdir().unwrap();
        let cwd = temp.path().join("cwd");
        let bin = temp.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(cwd.join("tools")).unwrap();
        for (name, mode) in [("runs", 0o700), ("only-text", 0o600)] {
            std::fs::write(bin.join(name), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let look = |program: &str, path: &str| {
            let runner = Runner::ExternalCli { command: program.to_owned(), args: Vec::new() };
            let step = Step { key: "s".into(), cwd: cwd.clone(), runner, ..Step::default() };
            missing(&step, Some(OsStr::new(path))).map(|m| (m.message, m.certain))
        };
        let bin_path = bin.to_str().unwrap();
        let absolute = bin.join("runs").to_str().unwrap().to_owned();
        for (name, text) in [("script", "#! /nowhere/sh -e\nx"), ("odd", "#!\n"), ("relative", "#!sh\n")] {
            std::fs::write(bin.join(name), text).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        for good in ["odd", "relative", "runs", &absolute, "../bin/runs"] {
            assert_eq!(look(good, bin_path), None, "{good}");
        }
        let said = |program: &str, what: &str| format!("the program `{program}` of step `s` {what}");
        for (program, path, what, certain) in [
            ("nothing", bin_path, "was not found", true),
            ("only-text", bin_path, "is not executable", true),
            ("script", bin_path, "is a script for `/nowhere/sh`, which does not exist", true),
            ("../bin/script", bin_path, "is a script for `/nowhere/sh`, which does not exist", true),
            ("nothing", "/nowhere:bin", "was not found", false),
            ("/nowhere/x", bin_path, "was not found", true),
            ("./built/x", bin_path, "was not found", false),
            ("a/../../x", bin_path, "was not found", true),
            ("./tools", bin_path, "is not a file", false),
        ] {
            assert_eq!(look(program, path), Some((said(program, what), certain)), "{program}");
        }
        let mut step = Step { runner: Runner::ExternalCli { command: "x".into(), args: vec![] }, ..Step::default() };
        step.env.push(("PATH".into(), "/opt".into()));
        assert_eq!(missing(&step, Some(OsStr::new(bin_path))), None);
    }
}
