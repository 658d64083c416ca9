//! What the keeper records of a run whose runner is gone: that it was lost, or the rest of an end that the runner had begun
//! to write. A result is written before the status that it belongs to (runner-behaviour 10), so it is what an end is known by.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use super::complain::complain;
use super::keeper::{Aftermath, read_state};
use super::recorder::Recorder;
use super::tree::Swept;
use crate::plan::stored;
use crate::run::{RunPhase, RunState, SteerRequest, StepId, StepOutcome, StepPhase, StepState, TargetState, What};
use crate::rundir::{self, EventLog, Follower, Home, Place, ResultContext, RunDir, result_read};

/// How often a keeper that somebody waits for tries a full disk again before it leaves a loss unrecorded; readers find it by
/// the dead runner.
const RECORDING_TRIES: u32 = 20;
/// As much of the end of the event log is looked at for the end of the run.
const LAST_EVENTS: u64 = 64 * 1024;

/// How long a keeper waits for room on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Somebody waits for it: some seconds.
    Bounded,
    /// Nobody does: until everything is written, or there is no directory any more to write into (runner-behaviour 10).
    UntilWritten,
}

/// Records what is not recorded, once what was left is ended.
pub(super) fn settle(home: &Arc<Home>, status: ExitStatus, swept: &Swept, patience: Patience) -> Aftermath {
    if let Some(state) = read_state(home.way()).filter(|s| s.ended_at.is_some()) {
        // Its end is told last; what is told is there.
        if home.place() != Place::Gone
            && !is_told(home.way())
            && let Err(error) = finish(home, state, true, patience)
        {
            complain("keeper", &format_args!("the rest of the run's end could not be written: {error}"));
        }
        return Aftermath::Ended;
    }
    if home.place() == Place::Gone {
        return Aftermath::Unrecorded(format!("the run directory {} was removed", home.dir().path().display()));
    }
    match record(home, status, swept, patience) {
        Ok(aftermath) => aftermath,
        Err(error) => Aftermath::Unrecorded(format!("the end of the run could not be recorded: {error}")),
    }
}

fn record(home: &Arc<Home>, status: ExitStatus, swept: &Swept, patience: Patience) -> io::Result<Aftermath> {
    // The runner may have recorded more than its last status says, so the picture is made of both.
    let mut follower = Follower::open(home.way().path())?;
    while follower.poll().behind {}
    let mut state = follower.state().clone();
    if state.started_at.is_none() {
        return Ok(Aftermath::Lost);
    }
    if state.ended_at.is_some() {
        // The events have an end that the status lacks.
        return finish(home, state, false, patience).map(|()| Aftermath::Ended);
    }
    // A paused run has a result of its own before its children are gone, which is no end yet.
    let over = |s: &StepState| s.phase != StepPhase::Running && s.ending.is_none();
    if state.steps.iter().all(over)
        && let Some(ending) = result_read::ending_in(&context(home), &state)
    {
        ending.show(&mut state);
        return finish(home, state, false, patience).map(|()| Aftermath::Ended);
    }
    record_lost(home, state, status, swept, patience)?;
    Ok(Aftermath::Lost)
}

/// Writes the rest of an end whose result is there; with `status` that is there too.
fn finish(home: &Arc<Home>, state: RunState, status: bool, patience: Patience) -> io::Result<()> {
    let texts = result_read::outputs_in(&context(home), &state);
    let mut recorder = recorder(home, state)?;
    let word = recorder.state().phase.as_str().to_owned();
    recorder.close_inbox(&word);
    recorder.finish(texts, status, is_told(home.way()));
    write_all(home, recorder, patience)?;
    if read_state(home.way()).is_some_and(|s| s.ended_at.is_some()) {
        return Ok(());
    }
    Err(io::Error::other("its last status.json could not be written; events.jsonl has its end"))
}

fn context(home: &Home) -> ResultContext {
    let stored = rundir::open::whole(&home.way().plan_json()).ok().and_then(|b| stored::decode(&b, &|_, _| None).ok());
    ResultContext::of_run(home.dir(), stored.and_then(|s| s.plan.result_path).as_deref())
}

fn recorder(home: &Arc<Home>, state: RunState) -> io::Result<Recorder> {
    let events = home.way().events();
    let log = EventLog::open(&events, u64::MAX).or_else(|error| {
        if error.kind() != io::ErrorKind::InvalidInput {
            return Err(error);
        }
        // A child may put what it likes in the place of the log; the end of the run is written all the same.
        std::fs::rename(&events, events.with_extension("odd"))?;
        EventLog::open(&events, u64::MAX)
    })?;
    Ok(Recorder::resume(home, log, context(home), state))
}

/// Whether the event log has the end of the run.
fn is_told(way: &RunDir) -> bool {
    last(&way.events(), LAST_EVENTS)
        .is_ok_and(|end| memchr::memmem::find(&end, br#""type":"subagent.run.completed""#).is_some())
}

/// The last bytes of a regular file, at most so many.
fn last(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = rundir::open::regular(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}

fn record_lost(
    home: &Arc<Home>,
    state: RunState,
    status: ExitStatus,
    swept: &Swept,
    patience: Patience,
) -> io::Result<()> {
    let way = home.way();
    let message = lost_message(way, &state, status, swept);
    let mut recorder = recorder(home, state)?;
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
    let unsettled: Vec<_> = recorder.state().steering.all().flat_map(open_targets).collect();
    for (id, step) in unsettled {
        let detail = Some("child terminated before steering delivery".to_owned());
        recorder.record(What::SteerMoved { id, step, to: TargetState::Failed, detail });
    }
    let texts = texts_of(recorder.state());
    recorder.end(RunPhase::Failed, Some(message), texts);
    write_all(home, recorder, patience)
}

fn write_all(home: &Home, mut recorder: Recorder, patience: Patience) -> io::Result<()> {
    until_written(&mut recorder, patience, || {
        std::thread::sleep(rundir::RETRY);
        home.place() != Place::Gone
    })
}

/// Tries what waits again after each pause, which says whether there is still something to write into.
pub(super) fn until_written<D: rundir::Disk>(
    recorder: &mut Recorder<D>,
    patience: Patience,
    mut pause: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut tries = 0;
    while recorder.is_pending() {
        if patience == Patience::Bounded && tries >= RECORDING_TRIES {
            return Err(io::Error::other("there is no room on the disk"));
        }
        if !pause() {
            return Err(io::Error::other("the run directory was removed"));
        }
        tries += 1;
        recorder.flush_all();
    }
    Ok(())
}

fn open_targets(request: &SteerRequest) -> Vec<(String, StepId)> {
    request.targets.iter().filter(|t| t.state.is_open()).map(|t| (request.id.clone(), t.step)).collect()
}

/// What is left of the final texts: those that later steps could have named.
fn texts_of(state: &RunState) -> BTreeMap<StepId, String> {
    let text = |s: &StepState| state.outputs.get(&s.key).map(|output| (s.id, output.text.to_string()));
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
    let bytes = last(&dir.runner_err(), 64 * 1024).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n");
    let surplus = tail.chars().count().saturating_sub(4000);
    tail.chars().skip(surplus).collect()
}
