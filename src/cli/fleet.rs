//! `subdeck` without a command: the fleet, the deck of a run that is opened from it, and back.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::args::{FleetArgs, LsArgs, ShowArgs};
use super::attach::{self, How};
use super::load::{self, World};
use super::{find, launch, looks, ls, read_only};
use crate::deck::DeckExit;
use crate::deck::fleet::{self, AgentChoice, Doors, FleetExit, FleetOptions, FleetUi, Wish};
use crate::plan::agents;
use crate::run::NamedRunner;
use crate::rundir::RunDir;
use crate::rundir::fleet::Fleet;

/// Shows the fleet.
pub fn fleet(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    let show = ShowArgs { ascii: args.ascii, ..ShowArgs::default() };
    if super::show::is_headless(&show) {
        return ls::ls(&LsArgs { root: args.root.clone(), ..LsArgs::default() });
    }
    let world = World::look()?;
    let root = args.root.root.as_deref();
    let mut fleet = Fleet::new(find::roots(&world, root)?);
    let read_only = read_only::asked(&world, &args.root);
    let mut ui = FleetUi::default();
    let options = FleetOptions {
        ascii: looks::ascii(&world, args.ascii),
        palette: looks::palette(&world),
        folder: world.env.current_dir.clone(),
    };
    let doors = Doors {
        agents: Box::new(|folder| choices(&world, folder)),
        start: Box::new(|wish| {
            if let Some(why) = &read_only {
                return Err(format!("read-only: {why}; no run was started"));
            }
            start(&world, root, wish).map(|dir| dir.path().to_owned()).map_err(|e| format!("{e:#}"))
        }),
    };
    loop {
        let (path, replay) = match fleet::run(&mut fleet, &mut ui, &options, &doors)? {
            FleetExit::Open(path) => (path, false),
            FleetExit::Replay(path) => (path, true),
            FleetExit::Quit => return Ok(ExitCode::SUCCESS),
            FleetExit::Signalled(signal) => crate::deck::die_by(signal),
        };
        match attach::look(&world, &args.root, &RunDir::at(path), &show, How { from_fleet: true, replay }) {
            Ok((_, DeckExit::Back)) => {}
            Ok((dir, exit)) => return attach::left(&dir, exit),
            // It went away between the key and the look at it; the list says so.
            Err(why) => ui.tell(&format!("{why:#}"), crate::engine::now()),
        }
    }
}

/// The agents that are found from a folder.
fn choices(world: &World, folder: &Path) -> Vec<AgentChoice> {
    let found = agents::find(&agents::folders(folder, world.env.home().as_deref()));
    let usual = world.config.defaults().runner.unwrap_or_default();
    let choice = |agent: &agents::AgentDef| AgentChoice {
        name: agent.name.clone(),
        about: agent.description.clone().unwrap_or_default(),
        runner: agent.runner.unwrap_or(usual).word().to_owned(),
    };
    found.found.values().map(choice).collect()
}

/// Starts what was asked for.
fn start(world: &World, root: Option<&Path>, wish: &Wish) -> anyhow::Result<RunDir> {
    let folder = std::path::absolute(world.env.current_dir.join(&wish.folder)).context("the folder cannot be used")?;
    let mut options = world.options(Some(folder));
    if let Some(word) = &wish.runner {
        let Some(runner) = NamedRunner::of_word(word) else { bail!("there is no runner `{word}`") };
        options.runner = Some(runner);
    }
    let loaded = crate::plan::from_agent(wish.agent.as_deref(), None, &wish.task, &options);
    let plan = loaded.map(|loaded| loaded.plan).map_err(|problems| anyhow::anyhow!(load::first(&problems)))?;
    launch::detached(world, &plan, root)
}
