//! `subdeck run`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail};

use super::args::RunArgs;
use super::launch;
use super::load::{self, World};
use crate::plan::{Input, Raise};
use crate::run::Family;

/// Runs a plan, an agent or a command.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let world = World::to_start()?;
    let mut options = world.options(args.cwd.clone());
    options.name = args.name.clone();
    if let Some(word) = &args.runner {
        // pi is none of the families.
        options.defaults.runner = Family::of_word(word);
    }
    options.budget.time = args.time.or(options.budget.time);
    for raise in &args.budget {
        match raise {
            Raise::ToolTimeout(time) => options.defaults.tool_timeout = Some(*time),
            raise => options.budget.change(*raise).map_err(|why| anyhow!("--budget {raise}: {why}"))?,
        }
    }
    let loaded = if let Some((command, rest)) = args.command.split_first() {
        crate::plan::from_command(command, rest, &options)
    } else if let Some(agent) = &args.agent {
        let [task] = args.words.as_slice() else {
            bail!("--agent {agent} needs one task: subdeck run --agent {agent} \"TASK\"");
        };
        crate::plan::from_agent(agent, args.model.as_deref(), task, &options)
    } else {
        let (plan, task) = match args.words.as_slice() {
            [plan] => (plan, None),
            [plan, task] => (plan, Some(task.clone())),
            [] => bail!("name a plan file, or --agent NAME TASK, or -- COMMAND; `subdeck demo` needs nothing"),
            [_, _, more, ..] => bail!("unexpected argument `{more}`; a plan takes one task, quote it"),
        };
        options.task = task;
        if plan == "-" {
            crate::plan::load(Input::Reader(&mut std::io::stdin().lock()), &options)
        } else {
            crate::plan::load(Input::Path(Path::new(plan)), &options)
        }
    };
    let plan = match load::settle(loaded) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    launch::start(&world, &plan, args.root.root.as_deref(), &args.show, args.detach, args.ask.on_permission)
}
