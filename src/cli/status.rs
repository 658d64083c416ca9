//! `subdeck status`.

use std::process::ExitCode;

use anyhow::Context;

use super::args::StatusArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{status_json, summary};
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
        let mut value = status_json(state);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("directory".into(), dir.path().display().to_string().into());
            if let Some(evidence) = follower.lost() {
                fields.insert("lost".into(), evidence.into());
            }
        }
        out::json(&value)?;
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
