//! `subdeck run`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail};

use super::args::RunArgs;
use super::launch;
use super::load::{self, World};
use crate::plan::{Input, Raise};
use crate::run::NamedRunner;

/// Runs a plan, an agent or a command.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let world = World::to_start()?;
    let mut options = world.options(args.cwd.clone());
    options.name = args.name.clone();
    options.runner = args.runner.as_deref().and_then(NamedRunner::of_word);
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
        crate::plan::from_agent(Some(agent), args.model.as_deref(), task, &options)
    } else if let (Some(_), [task]) = (options.runner, args.words.as_slice())
        && is_task(task, &options.current_dir)
    {
        crate::plan::from_agent(None, args.model.as_deref(), task, &options)
    } else {
        if let Some(model) = &args.model {
            bail!(
                "--model {model} is for a step started with --agent, or with --runner and a task; a plan has its own"
            );
        }
        let (plan, task) = match args.words.as_slice() {
            [plan] => (plan, None),
            [plan, task] => (plan, Some(task.clone())),
            [] => bail!(
                "name a plan file, or --agent NAME TASK, or --runner RUNNER TASK, or -- COMMAND; `subdeck demo` needs nothing"
            ),
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

/// Whether this is a task, where it may be a plan too: a file is a plan, and so is what looks like the name of one, lest a
/// slip of the pen is given to an agent.
fn is_task(word: &str, folder: &Path) -> bool {
    word != "-" && word.trim().contains(char::is_whitespace) && !folder.join(word).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_from_a_plan() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my plan"), "").unwrap();
        for (word, expected) in [
            ("Say hello", true),
            ("a\nb", true),
            ("my plan", false),
            ("plan.toml", false),
            ("-", false),
            ("", false),
            (" x ", false),
        ] {
            assert_eq!(is_task(word, folder.path()), expected, "{word}");
        }
    }
}
