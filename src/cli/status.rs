//! `subdeck status`.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use super::args::StatusArgs;
use super::load::World;
use super::show::{is_unreadable, tell_suspended, tell_unreadable};
use super::{find, out};
use crate::engine;
use crate::headless::{status_document, summary, unreadable_json};
use crate::run::ExitCause;
use crate::rundir::{Follower, Health};
use crate::text::SafeText;

/// How much of the command line of a process is shown, in columns.
const COMMAND: usize = 80;

/// Prints one run.
pub fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let dir = find::run(&world, args.root.root.as_deref(), &args.run)?;
    let mut follower = Follower::open(dir.path()).context("cannot read the run directory")?;
    follower.catch_up();
    let state = follower.state();
    let unreadable = tell_unreadable(&follower);
    tell_suspended(&follower);
    if let Health::Unknown(why) = follower.health() {
        tell!("subdeck: whether the runner lives is not known: {}", SafeText::line(why));
    }
    let code = if unreadable { out::code(ExitCause::Failed) } else { ExitCode::SUCCESS };
    if is_unreadable(&follower) {
        if let (true, Some(why)) = (args.json, follower.unreadable()) {
            out::json(&unreadable_json(&dir, why, None))?;
        }
        return Ok(code);
    }
    // Of a run that somebody supervises the children are known; of a lost one they have to be looked for.
    let left = if follower.is_abandoned() { engine::leftovers(&dir) } else { Vec::new() };
    if args.json {
        let mut document = status_document(state, &dir, follower.lost().as_deref());
        if let (false, Some(fields)) = (left.is_empty(), document.as_object_mut()) {
            let list = left.iter().map(|l| json!({ "pid": l.pid, "step": l.step.number(), "command": l.command }));
            fields.insert("leftovers".into(), list.collect());
        }
        out::json(&document)?;
        return Ok(code);
    }
    let mut text = summary(state, engine::now());
    if !left.is_empty() {
        text.push_str(&format!("  still alive; `subdeck stop {}` ends them:\n", SafeText::line(dir.id_str())));
    }
    for one in &left {
        let command = SafeText::line(&one.command).truncate(COMMAND);
        text.push_str(&format!("    pid {} of step {}: {command}\n", one.pid, one.step));
    }
    text.push_str(&format!("  {}\n", SafeText::line(&dir.path().display().to_string())));
    out::print(&text)?;
    Ok(code)
}
