//! `subdeck steer`, `interrupt` and `stop`: the same files that the deck writes.

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{ControlArgs, Mode, SteerArgs};
use super::load::World;
use super::show::{is_unreadable, tell_suspended, tell_unreadable};
use super::{find, out, source};
use crate::engine::tree::{self, Seen};
use crate::engine::{self, now};
use crate::run::{ExitCause, RunMode, SteerMode, SteerRequest, StepId, TargetState};
use crate::rundir::{Answered, Follower, Inbox, RunDir, RunnerIdentity, RunnerLife, SendError, answer_of_child};
use crate::rundir::{identity, watch};
use crate::text::SafeText;

/// As many bytes are read of a message, so that one that is too long can be told by its length; white space around it
/// does not count.
const MOST_READ: u64 = 4 * 1024 * 1024;

/// `subdeck steer`.
pub fn steer(args: &SteerArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    find::writable(&dir)?;
    let message = if args.text == "-" { message_from(&mut std::io::stdin().lock())? } else { args.text.clone() };
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.catch_up();
    tell_suspended(&follower);
    // With no step named the sender addresses every running one.
    let targets: Vec<StepId> = step.into_iter().collect();
    let mode = match args.mode {
        Mode::Steer => SteerMode::Steer,
        Mode::FollowUp => SteerMode::FollowUp,
        Mode::Auto => SteerMode::Auto,
    };
    let inbox = Inbox::open(&dir, source::here("cli", None, None))?;
    let ids = inbox.steer(follower.state(), &targets, &message, mode, now())?;
    for id in &ids {
        out::print(&format!("{}\n", SafeText::line(id)))?;
    }
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let reached = wait_for(&mut follower, args.timeout, |follower| {
        let state = follower.state();
        ids.iter().all(|id| {
            answer_of_child(&dir, id).is_some()
                || state.steering.recent.iter().find(|r| r.id == *id).is_some_and(|r| {
                    let under_way = |state| match state {
                        TargetState::Routed | TargetState::Scheduled => true,
                        // What is to arrive after the turn has been taken with that; what is to arrive now has not yet.
                        TargetState::Queued => mode == SteerMode::Steer,
                        _ => false,
                    };
                    r.targets.iter().all(|t| !under_way(t.state))
                })
        })
    })?;
    let mut failed = false;
    for id in &ids {
        let request = follower.state().steering.recent.iter().find(|r| r.id == *id);
        // Of what a child of a workflow answers only the answer itself tells.
        match answer_of_child(&dir, id) {
            Some(Answered::Done) => tell!("delivered"),
            Some(Answered::Refused(why)) => {
                failed = true;
                tell!("failed: {}", SafeText::line(&why));
            }
            None => {}
        }
        for target in request.into_iter().flat_map(|r| &r.targets) {
            failed |= target.state == TargetState::Failed;
            let reason = target.reason.as_deref().map(|why| format!(": {}", SafeText::line(why))).unwrap_or_default();
            tell!("step {}: {}{reason}", target.step, target.state.as_str());
        }
    }
    Ok(match (reached, failed) {
        (false, _) => out::code(ExitCause::WaitTimeout),
        (true, true) => out::code(ExitCause::Failed),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// A message from standard input, whole or not at all.
fn message_from(input: &mut dyn Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(MOST_READ + 1).read_to_end(&mut bytes).context("cannot read the message")?;
    if bytes.len() as u64 > MOST_READ {
        bail!("the message has more than {MOST_READ} bytes; at most {} go, nothing was sent", SteerRequest::MAX_BYTES);
    }
    let at = |error: std::string::FromUtf8Error| error.utf8_error().valid_up_to() + 1;
    String::from_utf8(bytes)
        .map_err(|error| anyhow::anyhow!("the message is not UTF-8 text (byte {}); nothing was sent", at(error)))
}

/// `subdeck interrupt`.
pub fn interrupt(args: &ControlArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    if step.is_some() {
        bail!("an interrupt pauses the whole run; to end one step use `subdeck stop RUN:STEP`");
    }
    let mut follower = opened(&dir)?;
    if is_unreadable(&follower) {
        return Ok(nobody_known(&follower));
    }
    check_living(&follower)?;
    let inbox = Inbox::open(&dir, source::here("cli", None, args.reason.as_deref()))?;
    inbox.interrupt(follower.state(), now())?;
    prove(args, &mut follower, None)
}

/// `subdeck stop`.
pub fn stop(args: &ControlArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let (dir, step) = find::target(&world, args.root.root.as_deref(), &args.target)?;
    let mut follower = opened(&dir)?;
    let left = |l: &engine::Leftover| step.is_none_or(|step| l.step == step);
    // Of a run whose status cannot be read and that nobody runs, the id is known all the same: it is in the marks of its
    // processes.
    let unsupervised = follower.is_abandoned() || is_unreadable(&follower);
    if unsupervised && engine::leftovers(&dir).iter().any(left) {
        return Ok(stop_leftovers(&dir, step));
    }
    if is_unreadable(&follower) {
        return Ok(nobody_known(&follower));
    }
    check_living(&follower)?;
    let inbox = Inbox::open(&dir, source::here("cli", None, args.reason.as_deref()))?;
    match step {
        None => match inbox.stop(follower.state(), now()) {
            // A full disk takes no request; the runner itself takes a signal.
            Err(SendError::Io(error)) => signal_runner(&dir).map_err(|why| error_and(&error, &why))?,
            other => other?,
        },
        Some(step) => inbox.stop_step(follower.state(), step, now())?,
    }
    prove(args, &mut follower, step)
}

/// Ends what lives on of a run that nobody supervises any more. This command sees to it itself, so it always waits.
fn stop_leftovers(dir: &RunDir, step: Option<StepId>) -> ExitCode {
    let swept = engine::end_leftovers(dir, step);
    if !swept.ended.is_empty() {
        tell!("subdeck: ended what the run had left, which nobody runs any more: pid {}", join(&swept.ended));
    }
    if swept.survivors.is_empty() {
        return ExitCode::SUCCESS;
    }
    tell!("subdeck: these processes would not die: {}", join(&swept.survivors));
    out::code(ExitCause::Failed)
}

fn join(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn error_and(error: &std::io::Error, why: &str) -> anyhow::Error {
    anyhow::anyhow!("the request cannot be written: {error}; and the runner cannot be signalled: {why}")
}

/// Stops a run of ours by a signal to its runner, which must be the process that runner.json means.
fn signal_runner(dir: &RunDir) -> Result<(), String> {
    if identity::probe(dir) != RunnerLife::Alive {
        return Err("it does not live here".to_owned());
    }
    let runner = RunnerIdentity::read(dir).ok_or("it is not known")?;
    let start_ticks = runner.start_ticks.ok_or("its start time is not known")?;
    let sent = tree::signal(Seen { pid: runner.pid, start_ticks }, rustix::process::Signal::TERM);
    if sent { Ok(()) } else { Err("it is gone".to_owned()) }
}

/// A follower of a run that this user may control.
fn opened(dir: &RunDir) -> anyhow::Result<Follower> {
    find::writable(dir)?;
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.catch_up();
    Ok(follower)
}

/// Of a run whose status cannot be read nobody is known who would take a request.
fn nobody_known(follower: &Follower) -> ExitCode {
    tell_unreadable(follower);
    tell!("subdeck: no runner of it is known, so nothing was asked for");
    out::code(ExitCause::Failed)
}

/// Whether the run can still be controlled.
fn check_living(follower: &Follower) -> anyhow::Result<()> {
    if let Some(evidence) = follower.lost() {
        bail!("the run is lost, nobody is there to take a request: {evidence}");
    }
    if follower.is_over() {
        bail!("{}", follower.state().closed());
    }
    // The request lies there until the runner goes on.
    tell_suspended(follower);
    Ok(())
}

/// With `--wait`, waits until what was asked for is proven: the run or the step has ended, and what would not die is
/// known.
fn prove(args: &ControlArgs, follower: &mut Follower, step: Option<StepId>) -> anyhow::Result<ExitCode> {
    if !args.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let reached = wait_for(follower, args.timeout, |follower| match step {
        // The follower knows when everything of the end is on the disk, the result too.
        None => follower.is_over() && follower.state().is_over(),
        Some(step) => follower.state().step(step).is_none_or(|s| s.phase.is_terminal() && s.ending.is_none()),
    })?;
    if !reached {
        tell!("subdeck: not proven within the time that --timeout gave");
        return Ok(out::code(ExitCause::WaitTimeout));
    }
    let survivors: Vec<u32> = follower.state().steps.iter().flat_map(|s| s.survivors.iter().copied()).collect();
    if !survivors.is_empty() {
        tell!("subdeck: these processes would not die: {survivors:?}");
        return Ok(out::code(ExitCause::Failed));
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows until `done` or until the time is over; returns whether it was done.
fn wait_for(follower: &mut Follower, time: Duration, done: impl Fn(&Follower) -> bool) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let timeout = tokio::time::sleep(time);
        tokio::pin!(timeout);
        loop {
            if follower.poll().health {
                tell_suspended(follower);
            }
            if done(follower) {
                return Ok(true);
            }
            if follower.is_over() {
                return Ok(done(follower));
            }
            tokio::select! {
                () = &mut timeout => return Ok(false),
                () = follower.wait() => {}
                // The inboxes of a workflow's children are not watched.
                () = tokio::time::sleep(watch::POLL), if follower.state().mode == RunMode::Workflow => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_whole_or_refused_with_the_reason() {
        let read = |bytes: &[u8]| message_from(&mut &*bytes).map_err(|e| e.to_string());
        let long = "é".repeat(200_000);
        assert_eq!(read(long.as_bytes()).as_deref(), Ok(long.as_str()), "its length is judged where it is sent");
        assert_eq!(read(b"ab\xffcd"), Err("the message is not UTF-8 text (byte 3); nothing was sent".to_owned()));
        // Cut in the middle of a character.
        assert!(read(&"é".as_bytes()[..1]).is_err());
        let endless = vec![b'x'; 5 * 1024 * 1024];
        assert!(read(&endless).unwrap_err().contains("more than 4194304 bytes; at most 131072 go"));
    }
}
