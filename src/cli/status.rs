//! `subdeck status`.

use std::process::ExitCode;

use anyhow::Context;

use super::args::StatusArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{status_document, summary};
use crate::rundir::Follower;
use crate::text::SafeText;

/// Prints one run.
pub fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.poll();
    let state = follower.state();
    if args.json {
        out::json(&status_document(state, &dir, follower.lost().as_deref()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = summary(state, crate::engine::now());
    if let Some(evidence) = follower.lost() {
        for line in SafeText::block(&format!("lost: {evidence}")) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str(&format!("  {}\n", SafeText::line(&dir.path().display().to_string())));
    out::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
