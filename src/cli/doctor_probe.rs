//! Which program an agent is, and what it says of its version. The program is asked in the root folder, with nothing on
//! its standard input and with a limit on its time; one that lies in a project that nobody trusts is not asked.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::plan::agents::project_levels;
use crate::plan::programs;
use crate::text::SafeText;

/// How long a program has for its answer: the slowest of those measured took four seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most of its answer that is read, in bytes.
const ANSWER: u64 = 64 * 1024;

/// A question to be asked.
#[derive(Debug)]
pub(super) struct Question {
    /// The program as it is named.
    pub program: String,
    /// The variables that it gets where the environment does not set them.
    pub env: Vec<(&'static str, &'static str)>,
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The file.
    pub file: Option<PathBuf>,
    /// The version that it told.
    pub version: Option<String>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// Where programs are looked for and which of them are asked.
#[derive(Debug)]
pub(super) struct Place {
    pub cwd: PathBuf,
    pub path: std::ffi::OsString,
    pub home: Option<PathBuf>,
    /// The project was trusted.
    pub trusted: bool,
}

impl Place {
    /// The highest folder of the project; the home folder and those above it are none: what lies there is the user's.
    fn project(&self) -> Option<PathBuf> {
        let home = self.home.as_ref().and_then(|home| home.canonicalize().ok());
        let mut levels = project_levels(&self.cwd).into_iter().rev().filter_map(|level| level.canonicalize().ok());
        levels.find(|level| level.parent().is_some() && !home.as_ref().is_some_and(|home| home.starts_with(level)))
    }

    /// Whether a file is the project's: it lies there, or leads there.
    fn is_projects(&self, file: &Path) -> bool {
        let Some(project) = self.project() else { return false };
        // Where it cannot be known it is taken to be.
        let real = file.canonicalize().map_or(true, |real| real.starts_with(&project));
        let near = file.parent().and_then(|folder| folder.canonicalize().ok());
        real || near.is_none_or(|near| near.starts_with(&project))
    }
}

/// Looks for a program and asks it.
pub(super) async fn ask(question: &Question, place: &Place) -> Answer {
    let file = match programs::locate(&question.program, &place.cwd, &place.path) {
        Ok(file) => file,
        Err(lack) => return Answer { problem: Some(lack.told()), ..Answer::default() },
    };
    let answer = |version, problem| Answer { file: Some(file.clone()), version, problem };
    if !place.trusted && place.is_projects(&file) {
        let why = "it lies in a project that is not trusted, so it was not asked for its version";
        return answer(None, Some(why.to_owned()));
    }
    match version_of(&file, &question.env, PATIENCE).await {
        Ok(version) => answer(Some(version), None),
        Err(problem) => answer(None, Some(problem)),
    }
}

async fn version_of(file: &Path, env: &[(&'static str, &'static str)], patience: Duration) -> Result<String, String> {
    let mut command = Command::new(file);
    command.arg("--version").current_dir("/").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(env.iter().filter(|(name, _)| std::env::var_os(name).is_none()).copied());
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = tokio::time::timeout(patience, async {
        let (status, (), ()) = tokio::join!(child.wait(), read(stdout, &mut out), read(stderr, &mut err));
        status
    })
    .await;
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    let status = match ended {
        Ok(status) => status.map_err(|error| format!("its end could not be learnt: {error}"))?,
        Err(_) => {
            // Only a child that was not waited for: its number is nobody else's.
            if let Some(group) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            if let Some(version) = version_in(&out) {
                return Ok(version);
            }
            return Err(format!("it did not tell its version within {} s", patience.as_secs_f64()));
        }
    };
    if !status.success() {
        let said = err.lines().chain(out.lines()).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let said = SafeText::line(said).truncate(200).to_string();
        return Err(match said.as_str() {
            "" => format!("`--version` failed ({status})"),
            said => format!("`--version` failed ({status}): {said}"),
        });
    }
    version_in(&out).or_else(|| version_in(&err)).ok_or_else(|| "it tells no version".to_owned())
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(pipe) = pipe {
        // What was read before an error is all that there is.
        let _ = pipe.take(ANSWER).read_to_end(into).await;
    }
}

/// The first word that looks like a version: numbers with dots between them.
pub(super) fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),/".contains(c));
    words
        .map(|word| word.trim_start_matches('v').trim_end_matches('.'))
        .find(|word| {
            let numbers = numbers(word);
            numbers.len() >= 2
                && word.len() <= 64
                && word.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        })
        .map(str::to_owned)
}

/// The numbers at the head of a version.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let head = version.split(['-', '+']).next().unwrap_or_default();
    head.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("codex-cli 0.171.0\n", Some("0.171.0")),
            ("2.1.332 (Claude Code)", Some("2.1.332")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.", Some("1.0.102")),
            ("v1.2.3-beta.1+x", Some("1.2.3-beta.1+x")),
            ("pi/0.84.4 linux", Some("0.84.4")),
            ("about 7 things", None),
            ("1.\u{1b}[31m2", None),
            ("", None),
        ] {
            assert_eq!(version_in(said).as_deref(), version, "{said:?}");
        }
        assert_eq!(numbers("1.2.3-beta.1"), [1, 2, 3]);
        assert_eq!(numbers("1.x"), [1]);
    }

    #[test]
    fn a_program_that_says_nothing_is_ended_with_what_it_started() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = |text: &str, patience: Duration| {
            let file = temp.path().join("program");
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
            runtime.block_on(version_of(&file, &[("DOCTOR_TEST", "3")], patience))
        };
        let pids = temp.path().join("pids");
        // The reader of a pipe without a writer ends when the pipe is removed or the group is killed.
        let fifo = temp.path().join("fifo");
        let hang = format!("mkfifo {0}\ncat <{0} &\necho $$ $! >{1}\ncat <{0}", fifo.display(), pids.display());
        assert!(told(&hang, Duration::from_secs(1)).unwrap_err().starts_with("it did not tell its version"));
        let pids = std::fs::read_to_string(pids).unwrap();
        let alive = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z")
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while pids.split_whitespace().any(alive) && cfg!(target_os = "linux") {
            assert!(std::time::Instant::now() < deadline, "{pids}");
            std::thread::yield_now();
        }
        let long = Duration::from_secs(30);
        assert_eq!(told("echo v1.$DOCTOR_TEST.0", long), Ok("1.3.0".to_owned()));
        assert_eq!(told("echo 1.2 >&2; pwd", long), Ok("1.2".to_owned()), "asked in the root folder");
        assert_eq!(told("true", long), Err("it tells no version".to_owned()));
        let failed = told("printf '\\033[2Jno\\n' >&2; exit 3", long).unwrap_err();
        assert!(
            failed.contains("exit status: 3") && failed.ends_with("no") && !failed.contains('\u{1b}'),
            "{failed:?}"
        );
    }

    #[test]
    fn a_home_is_no_project_and_a_link_into_a_project_is_the_projects() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let project = home.join("project");
        std::fs::create_dir_all(project.join("bin")).unwrap();
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::create_dir(project.join(".git")).unwrap();
        for file in [project.join("bin/a"), home.join("bin/b")] {
            std::fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink(project.join("bin/a"), home.join("bin/link")).unwrap();
        std::os::unix::fs::symlink(home.join("bin/b"), project.join("bin/out")).unwrap();
        let place = |cwd: &Path| Place {
            cwd: cwd.to_owned(),
            path: std::ffi::OsString::new(),
            home: Some(home.clone()),
            trusted: false,
        };
        let inside = place(&project.join("bin"));
        for (file, projects) in [
            (project.join("bin/a"), true),
            (home.join("bin/link"), true),
            (project.join("bin/out"), true),
            (home.join("bin/b"), false),
        ] {
            assert_eq!(inside.is_projects(&file), projects, "{}", file.display());
        }
        // A repository that holds the home folder does not make a project of all of it.
        std::fs::create_dir(temp.path().join(".git")).unwrap();
        std::fs::remove_dir(project.join(".git")).unwrap();
        assert!(place(&project.join("bin")).is_projects(&project.join("bin/a")));
        for cwd in [home.as_path(), temp.path(), Path::new("/")] {
            assert!(!place(cwd).is_projects(&home.join("bin/b")), "{}", cwd.display());
        }
    }
}
