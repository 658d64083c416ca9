//! `subdeck attach`: the deck, or a headless follower, on a run directory.

use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{AttachArgs, Output, ShowArgs};
use super::{find, launch, out};
use crate::headless::Printer;
use crate::run::exit_code;
use crate::rundir::{Follower, RunDir};

/// Attaches to a run.
pub fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    let roots = find::roots(args.root.root.as_deref())?;
    let dir = find::run(&roots, &args.run)?;
    if launch::is_headless(&args.show) {
        return follow(&dir, args.show.output);
    }
    let read_only = args.read_only.then(|| "--read-only".to_owned());
    deck(&dir, &args.show, read_only, false)
}

/// Opens the deck and prints the summary after it has left the screen.
pub fn deck(dir: &RunDir, show: &ShowArgs, _read_only: Option<String>, _launched: bool) -> anyhow::Result<ExitCode> {
    follow(dir, show.output)
}

/// Follows a run and prints it. Ctrl-C ends only the following: the run belongs to somebody else.
fn follow(dir: &RunDir, output: Output) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut int = signal(SignalKind::interrupt())?;
        let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
        let mut printer = Printer::new(std::io::stdout(), output.into(), dir);
        loop {
            let changes = follower.poll();
            printer.print(follower.state(), &changes);
            if follower.is_over() {
                break;
            }
            tokio::select! {
                _ = int.recv() => {
                    eprintln!("subdeck: not following any more; the run goes on");
                    return Ok(ExitCode::from(130));
                }
                () = follower.wait() => {}
            }
        }
        printer.end(follower.state());
        launch::tell_summary(follower.state(), output);
        Ok(out::code(exit_code(follower.state())))
    })
}
