//! The keeper: the process above the runner. It only waits. When the runner dies without having ended its run, the
//! keeper ends what fell to it (it is a subreaper, so orphans are its children) and records the run as lost.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::complain::complain;
use super::recorder::Recorder;
use super::tree::{self, Snapshot, Swept};
use crate::plan::stored;
use crate::run::{RunPhase, RunState, SteerRequest, StepId, StepOutcome, StepPhase, StepState, TargetState, What};
use crate::rundir::{self, EventLog, Follower, Home, Place, ResultContext, RunDir};

/// What is left of the runner's children gets this long between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1500);

/// How often a full disk is tried again before a loss is left unrecorded; readers find it by the dead runner.
const RECORDING_TRIES: u32 = 20;

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
    let mut command = this_command();
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

/// A command that starts this very program again, under the name that people know.
#[must_use]
pub fn this_command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(this_program());
    command.arg0(NAME);
    command
}

/// What the program is called in lists of processes.
pub const NAME: &str = "subdeck";

/// Gives this process its name: the system names it by the path that it was started by, which leads through /proc.
pub fn take_name() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"subdeck");
}

/// The main of a detached keeper. Standard input and output are the runner's: they are passed on.
#[must_use]
pub fn main(path: &Path) -> u8 {
    // The launcher's terminal may go away; nothing of it must be left.
    let _ = rustix::process::setsid();
    take_name();
    become_subreaper();
    let dir = RunDir::at(path);
    let home = match Home::open(&dir) {
        Ok(home) => Arc::new(home),
        Err(error) => return refuse(&format_args!("cannot open the run directory: {error}")),
    };
    // A runner writes who it is as it begins; a second one would meet what the first has done or still does.
    if home.way().runner_json().exists() {
        return refuse(&"this run was begun already; start another one with `subdeck retry` or `subdeck resume`");
    }
    let mut command = runner_command(&dir, false);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut runner = match command.spawn() {
        Ok(runner) => runner,
        Err(error) => return refuse(&format_args!("cannot start the runner: {error}")),
    };
    // It only waits; what is to end the run is for the runner, and this process ends with that.
    super::signals::shrug_off_all();
    // The launcher waits for the end of these pipes too; only the runner may hold them.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    own_stderr(home.way());
    match runner.wait() {
        Ok(status) => {
            if let Aftermath::Unrecorded(why) = after(&home, status) {
                complain("keeper", &why);
            }
            0
        }
        Err(_) => 1,
    }
}

/// Standard error was that of whoever started this process; from now on it is the run's own log.
pub(super) fn own_stderr(way: &RunDir) {
    let log = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(way.runner_err());
    if let Ok(file) = log.or_else(|_| std::fs::OpenOptions::new().write(true).open("/dev/null")) {
        let _ = rustix::stdio::dup2_stderr(&file);
    }
}

fn refuse(why: &dyn std::fmt::Display) -> u8 {
    let answer = serde_json::json!({ "error": why.to_string() });
    // A launcher that went away learns nothing, and nobody else reads this.
    let _ = writeln!(io::stdout().lock(), "{answer}");
    1
}

/// How a run stands once its runner is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// It had ended.
    Ended,
    /// The runner died before; the run is recorded as lost.
    Lost,
    /// Its end, or its loss, is not on the disk; why.
    Unrecorded(String),
}

/// What the keeper does once the runner is gone: it ends what is left, and records a run without an end as lost.
pub fn after(home: &Arc<Home>, status: ExitStatus) -> Aftermath {
    let dir = home.dir();
    let ended = read_state(home.way()).is_some_and(|s| s.ended_at.is_some());
    let run = dir.id().0;
    // A runner that ended its run left nothing; what is below us now is by definition an orphan.
    let swept = if ended && tree::has_other_children(&std::collections::BTreeSet::new()) == Some(false) {
        Swept::default()
    } else {
        let me = std::process::id();
        tree::sweep(GRACE, || {
            let snapshot = Snapshot::take();
            let mut found = snapshot.below(me);
            found.extend(snapshot.marked(&run).into_iter().map(|(seen, _)| seen));
            found.sort_unstable_by_key(|s| s.pid);
            found.dedup();
            found
        })
    };
    if ended {
        return Aftermath::Ended;
    }
    if home.place() == Place::Gone {
        return Aftermath::Unrecorded(format!("the run directory {} was removed", dir.path().display()));
    }
    match record_lost(home, status, &swept) {
        Ok(()) => Aftermath::Lost,
        Err(error) => Aftermath::Unrecorded(format!("the end of the run could not be recorded: {error}")),
    }
}

fn read_state(dir: &RunDir) -> Option<RunState> {
    rundir::decode_status(&std::fs::read(dir.status()).ok()?).ok()
}

fn record_lost(home: &Arc<Home>, status: ExitStatus, swept: &Swept) -> io::Result<()> {
    let (dir, way) = (home.dir(), home.way());
    // The runner may have recorded more than its last status says, so the picture is made of both.
    let mut follower = Follower::open(way.path())?;
    while follower.poll().behind {}
    let state = follower.state().clone();
    if state.started_at.is_none() {
        return Ok(());
    }
    if state.ended_at.is_some() {
        return Err(io::Error::other("its last status.json could not be written; events.jsonl has its end"));
    }
    let message = lost_message(way, &state, status, swept);
    let log = EventLog::open(&way.events(), u64::MAX)?;
    let stored = std::fs::read(way.plan_json()).ok().and_then(|bytes| stored::decode(&bytes, &|_, _| None).ok());
    let public = stored.and_then(|s| s.plan.result_path);
    let result = ResultContext::of_run(dir, public.as_deref());
    let mut recorder = Recorder::resume(home, log, result, state);
    recorder.record(What::RunLost { message: message.clone() });
    let open = |s: &&StepState| s.phase == StepPhase::Running || s.ending.is_some();
    let open: Vec<_> = recorder.state().steps.iter().filter(open).map(|s| s.id).collect();
    for step in open {
        let outcome = StepOutcome {
            phase: StepPhase::Failed,
            exit_code: 1,
            error: Some(message.clone()),
            ..StepOutcome::default()
        };
        recorder.record(What::StepEnded { step, outcome: Box::new(outcome) });
    }
    recorder.close_inbox(RunPhase::Failed.as_str());
    let unsettled: Vec<_> = recorder.state().steering.recent.iter().flat_map(open_targets).collect();
    for (id, step) in unsettled {
        let detail = Some("child terminated before steering delivery".to_owned());
        recorder.record(What::SteerMoved { id, step, to: TargetState::Failed, detail });
    }
    let texts = texts_of(recorder.state());
    recorder.end(RunPhase::Failed, Some(message), texts);
    for _ in 0..RECORDING_TRIES {
        if !recorder.is_pending() {
            return Ok(());
        }
        std::thread::sleep(rundir::RETRY);
        recorder.flush_all();
    }
    Err(io::Error::other("there is no room on the disk"))
}

fn open_targets(request: &SteerRequest) -> Vec<(String, StepId)> {
    request.targets.iter().filter(|t| t.state.is_open()).map(|t| (request.id.clone(), t.step)).collect()
}

/// What is left of the final texts: those that later steps could have named.
fn texts_of(state: &RunState) -> BTreeMap<StepId, String> {
    let text = |s: &StepState| state.outputs.get(&s.key).map(|output| (s.id, output.text.clone()));
    state.steps.iter().filter_map(text).collect()
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
