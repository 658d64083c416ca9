//! The keeper: the process above the runner. It only waits. When the runner dies without having ended its run, the
//! keeper ends what fell to it (it is a subreaper, so orphans are its children) and records the run as lost.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use super::clock::now;
use super::tree::{self, Snapshot, Swept};
use crate::run::{Event, RunPhase, RunState, StepOutcome, StepPhase, What, reduce};
use crate::rundir::records::{self, RecordContext};
use crate::rundir::{self, EventLog, ResultContext, RunDir, StatusContext, Writer};

/// What is left of the runner's children gets this long between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1500);

/// Becomes the one that orphans fall to.
pub fn become_subreaper() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// The command that starts a runner for this directory. The caller sets its pipes.
#[must_use]
pub fn runner_command(dir: &RunDir, foreground: bool) -> Command {
    let mut command = Command::new(this_program());
    command.arg("__runner").arg(dir.path());
    if foreground {
        command.arg("--foreground");
    }
    command
}

/// This very program, also when its file was replaced meanwhile.
#[must_use]
pub fn this_program() -> std::path::PathBuf {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().unwrap_or_else(|_| "subdeck".into())
}

/// The main of a detached keeper. Standard input and output are the runner's: they are passed on.
#[must_use]
pub fn main(path: &Path) -> u8 {
    // The launcher's terminal may go away; nothing of it must be left.
    let _ = rustix::process::setsid();
    become_subreaper();
    let dir = RunDir::at(path);
    let mut command = runner_command(&dir, false);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut runner = match command.spawn() {
        Ok(runner) => runner,
        Err(error) => {
            println!("{}", serde_json::json!({ "error": format!("cannot start the runner: {error}") }));
            return 1;
        }
    };
    // The launcher waits for the end of these pipes too; only the runner may hold them.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    match runner.wait() {
        Ok(status) => {
            after(&dir, status);
            0
        }
        Err(_) => 1,
    }
}

/// What the keeper does once the runner is gone. Returns whether the run was lost.
pub fn after(dir: &RunDir, status: ExitStatus) -> bool {
    let ended = read_state(dir).is_some_and(|s| s.ended_at.is_some());
    let run = dir.id().0;
    // A runner that ended its run left nothing; what is below us now is by definition an orphan.
    let swept = if ended && tree::has_other_children(&std::collections::BTreeSet::new()) == Some(false) {
        Swept::default()
    } else {
        let me = std::process::id();
        tree::sweep(GRACE, || {
            let snapshot = Snapshot::take();
            let mut found = snapshot.below(me);
            found.extend(snapshot.marked(&run));
            found.sort_unstable_by_key(|s| s.pid);
            found.dedup();
            found
        })
    };
    if ended {
        return false;
    }
    if let Err(error) = record_lost(dir, status, &swept) {
        eprintln!("subdeck keeper: the loss of the run could not be recorded: {error}");
    }
    true
}

fn read_state(dir: &RunDir) -> Option<RunState> {
    rundir::decode_status(&std::fs::read(dir.status()).ok()?).ok()
}

fn record_lost(dir: &RunDir, status: ExitStatus, swept: &Swept) -> io::Result<()> {
    let Some(mut state) = read_state(dir) else { return Ok(()) };
    let message = lost_message(dir, &state, status, swept);
    let log = EventLog::open(&dir.events(), u64::MAX)?;
    let apply = |state: &mut RunState, what: What| {
        let event = Event { at: now(), what };
        reduce(state, &event);
        if let Some(line) = records::encode(&event, &RecordContext { state }) {
            let _ = log.append(&line);
        }
    };
    apply(&mut state, What::RunLost { message: message.clone() });
    let open: Vec<_> =
        state.steps.iter().filter(|s| s.phase == StepPhase::Running || s.ending.is_some()).map(|s| s.id).collect();
    for step in open {
        let outcome = StepOutcome {
            phase: StepPhase::Failed,
            exit_code: 1,
            error: Some(message.clone()),
            ..StepOutcome::default()
        };
        apply(&mut state, What::StepEnded { step, outcome: Box::new(outcome) });
    }
    apply(&mut state, What::RunEnded { state: RunPhase::Failed, error: Some(message) });
    let mut writer = Writer::default();
    let results = dir.root().map_or_else(|| dir.path().join("results"), |r| r.results());
    let context = ResultContext { dir: dir.clone(), results, public: None, texts: Default::default() };
    let pending = rundir::result::write_pending(&mut writer, &context, &state, now());
    let bytes = rundir::status::encode(&state, &StatusContext { dir, instance: None });
    let written = writer.write(&dir.status(), bytes, now());
    if pending.is_ok() {
        let _ = rundir::result::publish(&mut writer, &context, &state, now());
    }
    let _ = rundir::index::mark_ended(dir, &state);
    while writer.pending() {
        std::thread::sleep(Duration::from_secs(1));
        writer.flush(now());
    }
    written.map(|_| ()).map_err(io::Error::other)
}

fn lost_message(dir: &RunDir, state: &RunState, status: ExitStatus, swept: &Swept) -> String {
    use std::os::unix::process::ExitStatusExt;
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {}", crate::run::signal_name(signal)),
        (None, Some(code)) => format!("ended with exit code {code} before its run did"),
        (None, None) => "ended before its run did".to_owned(),
    };
    let pid = state.pid.map_or_else(|| "?".to_owned(), |p| p.to_string());
    let mut message = format!("The runner (pid {pid}) {how}.");
    if !swept.ended.is_empty() {
        message.push_str(&format!(" Its keeper ended {} of its processes.", swept.ended.len()));
    }
    if !swept.survivors.is_empty() {
        message.push_str(&format!(" These would not die: {:?}.", swept.survivors));
    }
    let tail = stderr_tail(dir);
    if !tail.is_empty() {
        message.push_str("\nThe end of runner.stderr.log:\n");
        message.push_str(&tail);
    }
    message
}

/// The last 30 lines, at most 4000 characters, of the runner's standard error (run-directory 2.7).
fn stderr_tail(dir: &RunDir) -> String {
    let bytes = std::fs::read(dir.runner_err()).unwrap_or_default();
    let start = bytes.len().saturating_sub(64 * 1024);
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n");
    let surplus = tail.chars().count().saturating_sub(4000);
    tail.chars().skip(surplus).collect()
}
