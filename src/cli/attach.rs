//! `subdeck attach`: the deck, or a headless follower, on a run directory.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{AttachArgs, Output, RootArgs, ShowArgs};
use super::load::World;
use super::show::{is_headless, is_unreadable, tell_summary, tell_unreadable};
use super::shown::{Fate, Shown};
use super::{again, find, keys, looks, out, read_only};
use crate::deck::notify::Channel;
use crate::deck::{DeckExit, DeckOptions, GoOn, Retry, left};
use crate::engine;
use crate::run::{ExitCause, StepId, exit_code};
use crate::rundir::{Follower, RunDir};
use crate::text::SafeText;

/// Attaches to a run.
pub fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    if is_headless(&args.show) {
        return follow(&dir, args.show.output(&world.config));
    }
    deck(&world, &args.root, &dir, &args.show)
}

/// Opens the deck on a run and prints the summary after it has left the screen. A run that goes on
/// with a session of this one is shown next, and begins in the same root.
pub fn deck(world: &World, root: &RootArgs, dir: &RunDir, show: &ShowArgs) -> anyhow::Result<ExitCode> {
    let (dir, exit) = look(world, root, dir, show, How::default())?;
    left(&dir, exit)
}

/// How the deck is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// There is the fleet to go back to.
    pub from_fleet: bool,
    /// The run is played again from its start.
    pub replay: bool,
}

/// Opens the deck and returns how it was left, and on which run.
pub fn look(
    world: &World,
    root: &RootArgs,
    dir: &RunDir,
    show: &ShowArgs,
    how: How,
) -> anyhow::Result<(RunDir, DeckExit)> {
    let How { from_fleet, mut replay } = how;
    let mut dir = dir.clone();
    // The runs that were gone into from, and where one was in them.
    let mut above: Vec<(RunDir, StepId)> = Vec::new();
    let mut selected = None;
    loop {
        let read_only = read_only::asked(world, root);
        let root = root.root.as_deref();
        let door: Option<GoOn<'_>> = read_only.is_none().then(|| -> GoOn<'_> {
            let dir = dir.clone();
            Box::new(move |step, text| {
                let begun = again::go_on_with(world, root, &dir, step, text);
                begun.map(|dir| dir.path().to_path_buf()).map_err(|why| why.to_string())
            })
        });
        let retry: Option<Retry<'_>> = read_only.is_none().then(|| -> Retry<'_> {
            let dir = dir.clone();
            Box::new(move || {
                let begun = again::do_again(world, root, &dir);
                begun.map(|dir| dir.path().to_path_buf()).map_err(|why| why.to_string())
            })
        });
        let read_only = read_only.or_else(|| find::writable(&dir).err().map(|why| why.to_string()));
        let options = DeckOptions {
            run_dir: dir.path().to_path_buf(),
            read_only: read_only.clone(),
            state_dir: world.env.state_dir(),
            ascii: looks::ascii(world, show.ascii),
            palette: looks::palette(world),
            mouse: world.config.mouse(),
            notify: Channel::named(world.config.notify(), |name| std::env::var(name).ok().filter(|v| !v.is_empty())),
            hook: world.config.notify_hook(),
            keymap: keys::keymap(&world.config).0,
            left: Some(remains(&dir, &read_only)),
            go_on: door,
            retry,
            from_fleet: from_fleet || !above.is_empty(),
            selected: selected.take(),
            // Only this run is over; what goes on from it is not.
            replay: std::mem::take(&mut replay),
        };
        match crate::deck::run(options)? {
            DeckExit::Elsewhere(path) => dir = RunDir::at(path),
            DeckExit::Inside(path, step) => {
                above.push((dir, step));
                dir = RunDir::at(path);
            }
            DeckExit::Back if !above.is_empty() => {
                if let Some((outer, step)) = above.pop() {
                    (dir, selected) = (outer, Some(step));
                }
            }
            exit => return Ok((dir, exit)),
        }
    }
}

/// How the deck finds and ends what lives on of a run that nobody supervises any more.
fn remains(dir: &RunDir, read_only: &Option<String>) -> left::Door {
    let (own, other) = (dir.clone(), dir.clone());
    let look = move || {
        let safe = |found: engine::Leftover| left::Left {
            pid: found.pid,
            step: found.step,
            command: SafeText::line(&found.command),
        };
        engine::leftovers(&own).into_iter().map(safe).collect()
    };
    let end = move |step: Option<StepId>| {
        let swept = engine::end_leftovers(&other, step);
        left::Swept { ended: swept.ended, survivors: swept.survivors }
    };
    left::Door { look: Arc::new(look), end: read_only.is_none().then(|| Arc::new(end) as Arc<_>) }
}

/// Prints the summary of a run whose deck was left, and says what is to be known of it.
pub fn left(dir: &RunDir, exit: DeckExit) -> anyhow::Result<ExitCode> {
    if let DeckExit::Gone(state) = exit {
        tell_summary(&state, Output::Text, Fate::Whole);
        tell!("subdeck: the run's directory was removed; this is what was seen of it last");
        return Ok(out::code(exit_code(&state)));
    }
    let Ok(mut follower) = Follower::open(dir.path()) else {
        tell!("subdeck: the run's directory was removed");
        return Ok(out::code(ExitCause::Lost));
    };
    // Whoever leaves a deck does not wait for all that happened.
    follower.catch_up_within(Duration::from_millis(100));
    let state = follower.state();
    tell_summary(state, Output::Text, Fate::Whole);
    match exit {
        DeckExit::LeftRunning | DeckExit::Elsewhere(_) | DeckExit::Inside(..) | DeckExit::Back | DeckExit::Gone(_) => {
            let id = crate::text::SafeText::line(dir.id_str());
            tell!("subdeck: the run goes on; `subdeck attach {id}` shows it again");
            Ok(ExitCode::SUCCESS)
        }
        DeckExit::Stopped | DeckExit::Ended => Ok(out::code(exit_code(state))),
        DeckExit::Signalled(signal) => crate::deck::die_by(signal),
    }
}

/// Follows a run and prints it. Ctrl-C ends only the following: the run belongs to somebody else.
fn follow(dir: &RunDir, output: Output) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let mut int = signal(SignalKind::interrupt())?;
        let follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        let mut shown = Shown::new(follower, output, dir, false);
        let all = async {
            shown.more().await;
            while !shown.is_over() {
                shown.more().await;
            }
            shown.rest().await;
        };
        tokio::select! {
            biased;
            _ = int.recv() => {
                tell!("subdeck: not following any more; the run goes on");
                return Ok(ExitCode::from(130));
            }
            () = all => {}
        }
        let (follower, fate) = shown.close().context("the run directory is gone")?;
        if tell_unreadable(&follower) && is_unreadable(&follower) {
            return Ok(out::code(ExitCause::Failed));
        }
        tell_summary(follower.state(), output, fate);
        Ok(out::code(exit_code(follower.state())))
    });
    // A thread that waits for a reader of standard output is not waited for.
    runtime.shutdown_background();
    result
}
