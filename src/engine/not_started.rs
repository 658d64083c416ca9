//! Why a child could not be started, in words that say what to do: the system has one word for a program that is not there,
//! for its folder, and for the interpreter of a script.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::child::Spawn;
use crate::plan::programs;

/// The same error in a sentence. Where the system lacks something that others will give back, it is of the kind
/// `WouldBlock`.
pub(super) fn explain(error: &io::Error, spawn: &Spawn) -> io::Error {
    let set = |name: &OsStr| spawn.env.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let path: Option<OsString> = set(OsStr::new("PATH")).unwrap_or_else(|| std::env::var_os("PATH"));
    let program = spawn.program.to_string_lossy();
    let why = why(error, &spawn.program, &spawn.cwd, path.as_deref());
    let busy = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    let busy = error.raw_os_error().is_some_and(|code| busy.contains(&Errno::from_raw_os_error(code)));
    let kind = if busy { io::ErrorKind::WouldBlock } else { error.kind() };
    io::Error::new(kind, format!("cannot start `{program}`: {why}"))
}

fn why(error: &io::Error, program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::NOENT) if !cwd.is_dir() => format!("its folder {} does not exist", cwd.display()),
        Some(Errno::NOENT) => match programs::find(program, cwd, path) {
            None => "no such program; check the name and PATH".to_owned(),
            Some(file) => match programs::interpreter(&file) {
                Some(by) => format!(
                    "it is a script whose first line names `{by}`, which does not exist; install that or correct the line"
                ),
                None => "the file is there, but not the loader that it was built for; it may be for another system"
                    .to_owned(),
            },
        },
        Some(Errno::NOEXEC) => "it is neither a program for this machine nor a script that begins with `#!` and an \
                                interpreter; add such a line, or name the interpreter as the program"
            .to_owned(),
        Some(Errno::ACCESS) if programs::find(program, cwd, path).is_some_and(|p| p.is_dir()) => {
            "it is a folder".to_owned()
        }
        Some(Errno::ACCESS) => {
            "permission denied; it has to be executable (chmod +x), its folders open to this user, and the \
                                file system not mounted with noexec"
                .to_owned()
        }
        Some(Errno::TOOBIG) => "its arguments and its environment are longer than the system takes; give the task on \
                                standard input or in a file"
            .to_owned(),
        Some(Errno::AGAIN) => "the system starts no more processes for this user now (ulimit -u)".to_owned(),
        Some(Errno::MFILE | Errno::NFILE) => format!("too many files are open (ulimit -n): {error}"),
        _ => error.to_string(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::child::Input;
    use super::*;

    /// What the system says of a program, and what we say.
    fn said(cwd: &Path, program: &str, args: Vec<OsString>) -> String {
        let spawn = Spawn { program: program.into(), args, cwd: cwd.into(), env: Vec::new(), stdin: Input::Null };
        let mut command = std::process::Command::new(&spawn.program);
        let error = command.args(&spawn.args).current_dir(cwd).spawn().unwrap_err();
        explain(&error, &spawn).to_string()
    }

    #[test]
    fn each_cause_has_its_own_words() {
        let temp = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8], mode: u32| {
            std::fs::write(temp.path().join(name), bytes).unwrap();
            std::fs::set_permissions(temp.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        put("for-nobody", b"#!/nowhere/interpreter -x\necho\n", 0o700);
        put("no-line", b"echo hello\n", 0o700);
        put("no-mode", b"#!/bin/sh\n", 0o600);
        std::fs::create_dir(temp.path().join("folder")).unwrap();
        for (program, words) in [
            ("no-such-program-here", "no such program; check the name and PATH"),
            ("./none", "no such program; check the name and PATH"),
            ("./for-nobody", "names `/nowhere/interpreter`, which does not exist"),
            ("./no-line", "nor a script that begins with `#!`"),
            ("./no-mode", "chmod +x"),
            ("./folder", "it is a folder"),
        ] {
            let said = said(temp.path(), program, Vec::new());
            assert!(said.starts_with(&format!("cannot start `{program}`: ")) && said.contains(words), "{said}");
        }
        let huge = said(temp.path(), "true", vec!["x".repeat(8 * 1024 * 1024).into()]);
        assert!(huge.contains("longer than the system takes"), "{huge}");
        let spawn = Spawn {
            program: "x".into(),
            args: Vec::new(),
            cwd: temp.path().into(),
            env: Vec::new(),
            stdin: Input::Null,
        };
        for (code, busy) in [(11, true), (24, true), (23, true), (12, true), (2, false), (13, false)] {
            let said = explain(&io::Error::from_raw_os_error(code), &spawn);
            assert_eq!(said.kind() == io::ErrorKind::WouldBlock, busy, "{said}");
        }
        let gone = said(&temp.path().join("gone"), "true", Vec::new());
        assert!(gone.contains("gone does not exist"), "{gone}");
    }
}
