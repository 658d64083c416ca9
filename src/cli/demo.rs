//! `subdeck demo`: a plan of built-in agents that needs no model, no key and no network.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::args::DemoArgs;
use super::load::{self, World};
use super::{demo_agent, launch};
use crate::agents::demo::PLAN;
use crate::plan::{Input, Runner};

/// The variable that tells a demo agent how fast to play.
pub const SPEED: &str = "SUBDECK_DEMO_SPEED";

/// The demo agent's own process: `SCENE`, then the arguments that pi would get, of which only the session matters.
pub fn agent(arguments: &[OsString]) -> ExitCode {
    let word = |index: usize| arguments.get(index).map(|a| a.to_string_lossy().into_owned());
    let session =
        arguments.iter().position(|a| a == "--session").and_then(|at| arguments.get(at + 1)).map(PathBuf::from);
    let speed = std::env::var(SPEED).ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    demo_agent::run(&demo_agent::Options { scene: word(0).unwrap_or_default(), session, speed })
}

/// Runs the demo.
pub fn demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    if !(0.05..=100.0).contains(&args.speed) {
        bail!("--speed is a factor between 0.05 and 100");
    }
    let world = World::to_start()?;
    let options = world.options(None);
    let loaded = crate::plan::load(Input::Reader(&mut PLAN.as_bytes()), &options);
    let mut plan = match load::settle(loaded) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    for entry in &mut plan.steps {
        let members = match entry {
            crate::plan::LogicalStep::Single(step) => std::slice::from_mut(&mut **step),
            crate::plan::LogicalStep::Group { steps, .. } => steps.as_mut_slice(),
        };
        for step in members.iter_mut().filter(|s| matches!(s.runner, Runner::Demo { .. })) {
            step.env.push((SPEED.to_owned(), args.speed.to_string()));
        }
    }
    launch::start(&world, &plan, args.root.root.as_deref(), &args.show, args.detach, None)
}
