//! A run root of its own for one test: runs are started by the real binary, looked at through their files, and whatever
//! a failed test leaves alive is ended when the root is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// As long as anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a condition; fails with what it is about when it does not come.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder with a run root and a project folder.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        Self { folder }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes a file into the project; returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary, in the project folder, with nothing of the tester's own configuration.
    pub fn subdeck(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_subdeck"));
        command
            .args(args)
            .current_dir(self.project())
            .env("HOME", self.folder.path())
            .env("SUBDECK_ROOT", self.root())
            .env("PI_SUBAGENTS_TEMP_ROOT", self.folder.path().join("pi-root"))
            // Where pi-subagents keeps its runs without being told is below it.
            .env("TMPDIR", self.folder.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CI")
            .env_remove("NO_COLOR")
            // The tests may be a step of a run themselves, which is told of whatever they start.
            .env_remove("SUBDECK_RUN")
            .env_remove("SUBDECK_STEP")
            .env("SUBDECK_TEST", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub fn output(&self, args: &[&str]) -> Done {
        Done::of(self.subdeck(args).output().unwrap())
    }

    /// Starts a detached run.
    pub fn detach(&self, args: &[&str]) -> Run {
        let mut all = vec!["run", "--detach"];
        all.extend(args);
        let done = self.output(&all);
        assert_eq!(done.code, 0, "{done:?}");
        self.run(done.stdout.trim())
    }

    /// The run with this id.
    pub fn run(&self, id: &str) -> Run {
        Run { dir: self.root().join("async-subagent-runs").join(id) }
    }

    /// The only run of the root, once everything is there that a run begins with: the runner makes some of its files
    /// and folders while its first child begins, this log last.
    pub fn only_run(&self) -> Run {
        wait_for("a run directory", || {
            let runs = std::fs::read_dir(self.root().join("async-subagent-runs")).ok()?;
            let mut dirs = runs.flatten().map(|e| e.path()).filter(|p| p.join("runner.stdout.log").exists());
            dirs.next().map(|dir| Run { dir })
        })
    }

    /// Every living process that this test's programs started, found by the variable that they inherit.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("SUBDECK_TEST={}", self.folder.path().display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let zombie = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'));
            if !zombie && environ.split(|b| *b == 0).any(|pair| pair == mark.as_bytes()) {
                found.push(pid);
            }
        }
        found
    }

    /// Waits until nothing that this test started lives any more.
    pub fn wait_until_empty(&self) {
        wait_for("an end of all processes", || self.processes().is_empty().then_some(()));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill("-9", pid).stderr(Stdio::null()).status();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn of(output: std::process::Output) -> Self {
        Self {
            code: code(output.status),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The exit code; a signal counts as 128 and its number.
pub fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or(status.signal().map(|s| 128 + s)).unwrap()
}

/// A run directory.
#[derive(Debug, Clone)]
pub struct Run {
    pub dir: PathBuf,
}

impl Run {
    pub fn id(&self) -> &str {
        self.dir.file_name().unwrap().to_str().unwrap()
    }

    /// status.json as it is.
    pub fn status(&self) -> Value {
        wait_for("a readable status", || {
            serde_json::from_slice(&std::fs::read(self.dir.join("status.json")).ok()?).ok()
        })
    }

    /// Waits until the status satisfies `accept`.
    pub fn wait(&self, what: &str, accept: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || {
            let status = self.status();
            accept(&status).then_some(status)
        })
    }

    /// Waits for the end: the last status and everything that follows it.
    pub fn wait_end(&self) -> Value {
        let status = self.wait("the end of the run", |s| s["endedAt"].is_number());
        let log = self.dir.join(format!("subagent-log-{}.md", self.id()));
        wait_for("the log of the run", || log.exists().then_some(()));
        status
    }

    /// Waits until a step's child has printed `text`.
    pub fn wait_output(&self, step: usize, text: &str) {
        let path = self.dir.join(format!("external-{step}.stdout.log"));
        wait_for(text, || std::fs::read_to_string(&path).ok().filter(|t| t.contains(text)).map(drop));
    }

    /// The lines of events.jsonl.
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.join("events.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|e| e["type"] == kind).collect()
    }

    /// Writes a control file as a foreign tool does: beside its place, then renamed.
    pub fn control(&self, name: &str, text: &str) {
        let path = self.dir.join("control").join(name);
        let temp = path.with_extension("tmp");
        std::fs::write(&temp, text).unwrap();
        std::fs::rename(&temp, &path).unwrap();
    }

    pub fn runner_pid(&self) -> u32 {
        u32::try_from(self.status()["pid"].as_u64().unwrap()).unwrap()
    }
}

/// Sends a signal by name, such as `-INT`.
pub fn signal(pid: u32, name: &str) {
    assert!(kill(name, pid).status().unwrap().success());
}

/// The `kill` that every shell has; the program of that name is missing where there is little else.
pub fn kill(signal: &str, pid: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "kill -s \"${1#-}\" \"$2\"", "sh", signal, &pid.to_string()]);
    command
}

/// Waits for a child that must end by itself.
pub fn wait_child(child: &mut Child) -> ExitStatus {
    wait_for("the end of the program", || child.try_wait().unwrap())
}

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}
