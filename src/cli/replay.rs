//! `subdeck replay`: a run that is over, played again in the deck.

use std::process::ExitCode;

use super::args::{ReplayArgs, ShowArgs};
use super::attach::{self, How};
use super::load::World;
use super::{find, show};
use crate::rundir::Follower;
use crate::text::SafeText;

/// Plays a run again.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    if let Some(why) = show::no_deck() {
        anyhow::bail!("{why}, and a replay is only shown in the deck; `subdeck events` prints what happened");
    }
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let mut follower = Follower::open(dir.path())?;
    follower.poll();
    if !follower.state().is_over() && follower.lost().is_none() {
        let id = SafeText::line(dir.id_str());
        anyhow::bail!("the run is not over yet; `subdeck attach {id}` shows it");
    }
    let shown = ShowArgs { ascii: args.ascii, ..ShowArgs::default() };
    let (dir, exit) = attach::look(&world, &args.root, &dir, &shown, How { replay: true, ..How::default() })?;
    attach::left(&dir, exit)
}
