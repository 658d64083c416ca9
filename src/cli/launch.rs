//! Starting a run from a plan: in the deck, in the foreground, or detached.

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Output, Policy, RootArgs, ShowArgs};
use super::load::World;
use super::show::{is_headless, tell_summary};
use super::shown::Shown;
use super::{find, out};
use crate::engine::{self, Aftermath, Patience, Prepared};
use crate::plan::Plan;
use crate::run::{ExitCause, OnPermission, RunState, exit_code};
use crate::rundir::{Follower, Home, RunDir};
use crate::text::SafeText;

/// As many times Ctrl-C ends everything: interrupt, stop, kill (product 2).
const LADDER: u32 = 3;
/// How long a run that was ended by a signal may still be printed: whoever sent it, such as a CI, kills soon after.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Starts a run and shows it as asked.
pub fn start(
    world: &World,
    plan: &Plan,
    root: Option<&Path>,
    show: &ShowArgs,
    detach: bool,
    policy: Option<Policy>,
) -> anyhow::Result<ExitCode> {
    let headless = !detach && is_headless(show);
    let root = find::own_root(world, root)?;
    if let Err(why) = find::trusted(root.path()) {
        tell!("subdeck: {why}; choose another one with --root or SUBDECK_ROOT");
        return Ok(ExitCode::from(7));
    }
    // A runner config may name any place, also one that others write into.
    if let Some(Err(why)) = plan.run_dir.as_ref().map(|dir| find::writable(&RunDir::at(dir))) {
        tell!("subdeck: {why}; nothing was started");
        return Ok(ExitCode::from(7));
    }
    for line in outside(plan, root.path()) {
        tell!("subdeck: {line}");
    }
    let prepared = match engine::prepare(plan, &root, world.caps()) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(cannot_start(&error)),
    };
    // Nobody is there to be asked by a command that prints and ends with its run.
    let usual = if headless { OnPermission::Fail } else { OnPermission::Ask };
    let prepared = prepared.on_permission(policy.map_or(usual, OnPermission::from));
    if headless {
        return foreground(&prepared, show.output(&world.config));
    }
    if let Err(error) = engine::detach(&prepared) {
        return Ok(cannot_start(&error));
    }
    if detach {
        let id = prepared.dir.id_str();
        if let Err(error) = out::print(&format!("{id}\n")) {
            // The run has begun; whoever asked must learn its name in some way, and that nothing else went wrong.
            tell!("subdeck: run {} was started, but its id could not be printed: {error}", SafeText::line(id));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let root = RootArgs { root: Some(root.path().to_owned()), read_only: false };
    super::attach::deck(world, &root, &prepared.dir, show)
}

/// Starts a run that nobody waits for, on behalf of a deck, which says itself what is wrong.
///
/// # Errors
/// Why it was not started.
pub fn detached(world: &World, plan: &Plan, root: Option<&Path>) -> anyhow::Result<RunDir> {
    let root = find::own_root(world, root)?;
    find::trusted(root.path())?;
    let prepared = engine::prepare(plan, &root, world.caps())?;
    engine::detach(&prepared)?;
    Ok(prepared.dir)
}

/// What a runner config puts outside of the root, where nobody would look for it.
fn outside(plan: &Plan, root: &Path) -> Vec<SafeText> {
    let kept = plan.extras.artifacts.as_ref().map(|kept| Path::new(&kept.folder));
    let named = [
        ("the run directory", plan.run_dir.as_deref()),
        ("the result", plan.result_path.as_deref()),
        ("the folder of artifacts", kept),
    ];
    let far = named.into_iter().filter_map(|(what, path)| Some((what, path?)));
    far.filter(|(_, path)| !path.starts_with(root))
        .map(|(what, path)| {
            let line = format!("{what} is {}, outside of the root {}", path.display(), root.display());
            SafeText::line(&line)
        })
        .collect()
}

/// What was asked in a run in which nobody may be asked, and what to do about it.
fn tell_unanswered(state: &RunState) {
    let id = SafeText::line(state.id.as_str());
    for step in &state.steps {
        let Some(text) = &step.unanswered else { continue };
        let line = format!("step {} {} asks: {text}", step.id.number(), step.title());
        tell!("subdeck: {}", SafeText::line(&line));
    }
    // Of the whole run: one step alone would leave behind the others that were paused with it, and those after them.
    if state.steps.iter().any(|step| step.unanswered.is_some()) {
        tell!(
            "subdeck: nobody can be asked here, so the run was paused; start it with --on-permission allow, deny or ask, \
             permit it in the plan, or go on where it can be answered: subdeck resume {id}"
        );
    }
}

/// A run that could not be started: nothing ran.
fn cannot_start(error: &engine::LaunchError) -> ExitCode {
    tell!("subdeck: {}", SafeText::line(&error.to_string()));
    ExitCode::from(7)
}

/// What a Ctrl-C asks of the runner, by how many there were, and the words for it.
const fn rung(presses: u32) -> (engine::ToRunner, &'static str) {
    match presses {
        0 | 1 => (engine::ToRunner::Interrupt, "interrupting; press Ctrl-C again to stop"),
        2 => (engine::ToRunner::Stop, "stopping; press Ctrl-C again to kill"),
        _ => (engine::ToRunner::Kill, "killing"),
    }
}

/// Runs in the foreground: this process is the keeper of the runner and prints what the run directory says.
fn foreground(prepared: &Prepared, output: Output) -> anyhow::Result<ExitCode> {
    let dir = prepared.dir.clone();
    // The directory itself is followed, whatever is done to its name meanwhile.
    let home = Arc::new(Home::open(&dir).context("cannot open the run directory")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        // Installed before there is a runner: one that comes right after its start must not end this process alone.
        let mut int = signal(SignalKind::interrupt())?;
        let mut term = signal(SignalKind::terminate())?;
        let mut hup = signal(SignalKind::hangup())?;
        let mut quit = signal(SignalKind::quit())?;
        let mut usr2 = signal(SignalKind::user_defined2())?;
        engine::shrug_off_strays();
        let (runner, ready) = match engine::foreground(prepared) {
            Ok(started) => started,
            Err(error) => return Ok(cannot_start(&error)),
        };
        let waiting = {
            let dir = dir.clone();
            std::thread::spawn(move || engine::wait_ready(ready, &dir))
        };
        let mut runner = engine::Watched::new(runner)?;
        let mut presses = 0u32;
        // Somebody wants an end of it, so what is left to print after the end of the run gets little time.
        let mut hurried = false;
        let mut waiting = tokio::task::spawn_blocking(move || waiting.join());
        let begun = loop {
            let what = tokio::select! {
                biased;
                begun = &mut waiting => break begun,
                _ = int.recv() => {
                    presses += 1;
                    if presses < LADDER { rung(presses).0 } else { engine::ToRunner::Abandon }
                }
                _ = usr2.recv() => engine::ToRunner::Interrupt,
                _ = term.recv() => engine::ToRunner::Stop,
                _ = hup.recv() => engine::ToRunner::Hangup,
                // What has not begun can be ended without ceremony, and may not be able to do it itself.
                _ = quit.recv() => engine::ToRunner::Abandon,
            };
            hurried |= what != engine::ToRunner::Interrupt;
            runner.signal(what);
        };
        match begun {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                let status = runner.wait().await;
                // It may have begun all the same and have died before it could say so; then this is a run like any
                // other that lost its runner.
                if !home.way().status().exists() {
                    if let Some(status) = status.filter(|_| home.way().runner_json().exists()) {
                        engine::after_runner(&home, status, Patience::Bounded);
                    }
                    engine::discard(&dir);
                    return Ok(cannot_start(&error));
                }
            }
            _ => anyhow::bail!("the runner could not be waited for"),
        }
        let follower = Follower::open(home.way().path()).context("cannot read the run directory")?;
        let mut shown = Shown::new(follower, output, home.way(), true);
        let status = loop {
            tokio::select! {
                biased;
                status = runner.wait() => break status,
                _ = int.recv() => {
                    presses += 1;
                    let (name, text) = rung(presses);
                    hurried |= presses >= LADDER;
                    runner.signal(name);
                    tell!("subdeck: {text}");
                }
                _ = usr2.recv() => runner.signal(engine::ToRunner::Interrupt),
                _ = term.recv() => {
                    hurried = true;
                    runner.signal(engine::ToRunner::Stop);
                }
                _ = hup.recv() => {
                    hurried = true;
                    runner.signal(engine::ToRunner::Hangup);
                }
                _ = quit.recv() => {
                    hurried = true;
                    runner.signal(engine::ToRunner::Kill);
                }
                () = shown.more() => {}
            }
        };
        let aftermath = match status {
            Some(status) => engine::after_runner(&home, status, Patience::Bounded),
            None => Aftermath::Unrecorded("the runner could not be waited for".to_owned()),
        };
        let mut patience = pin!(async {
            if !hurried {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LAST_WORDS).await;
        });
        loop {
            tokio::select! {
                biased;
                () = shown.rest() => break,
                () = &mut patience => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
                _ = quit.recv() => {}
                _ = int.recv() => {
                    presses += 1;
                    if presses < LADDER {
                        let left = LADDER - presses;
                        tell!("subdeck: the run has ended; press Ctrl-C {left} more to end the printing of it");
                        continue;
                    }
                }
            }
            shown.cut();
            let id = SafeText::line(dir.id_str());
            tell!("subdeck: not everything was printed; `subdeck logs {id}` has the rest");
            break;
        }
        let (follower, fate) = shown.close().context("the run directory is gone")?;
        match aftermath {
            Aftermath::Ended => {}
            Aftermath::Lost => tell!("subdeck: the runner died; the run is recorded as lost"),
            Aftermath::Unrecorded(why) => {
                tell!("subdeck: {}", SafeText::line(&why));
                let mut state = follower.state().clone();
                if state.lost.is_some() || !state.is_over() {
                    // Its files end before it did, and do not say why.
                    (state.lost, state.last_update) = (Some(why), Some(engine::now()));
                }
                tell_summary(&state, output, fate);
                tell_unanswered(&state);
                return Ok(out::code(ExitCause::Lost));
            }
        }
        tell_summary(follower.state(), output, fate);
        tell_unanswered(follower.state());
        Ok(out::code(exit_code(follower.state())))
    });
    // A thread that waits for a reader of standard output is not waited for.
    runtime.shutdown_background();
    result
}
