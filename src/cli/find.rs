//! From what was typed to run directories.

use std::path::Path;

use anyhow::Context;

use crate::run::StepId;
use crate::rundir::{RunDir, RunRoot, find};

/// The root that new runs go to.
pub fn own_root(asked: Option<&Path>) -> anyhow::Result<RunRoot> {
    if let Some(path) = asked {
        return Ok(RunRoot::at(std::path::absolute(path)?));
    }
    RunRoot::default_root(|name| std::env::var_os(name))
        .context("no place for runs: set HOME, XDG_STATE_HOME or --root")
}

/// The roots that runs are looked for in: the one asked for, else our own and that of pi-subagents.
pub fn roots(asked: Option<&Path>) -> anyhow::Result<Vec<RunRoot>> {
    let own = own_root(asked)?;
    if asked.is_some() {
        return Ok(vec![own]);
    }
    let foreign = RunRoot::pi_root(|name| std::env::var_os(name));
    Ok(if foreign.path() == own.path() { vec![own] } else { vec![own, foreign] })
}

/// The run that RUN names.
pub fn run(roots: &[RunRoot], word: &str) -> anyhow::Result<RunDir> {
    Ok(find::run(roots, word, &std::env::current_dir()?)?)
}

/// The run, and the step if one is named, of RUN[:STEP].
pub fn target(roots: &[RunRoot], word: &str) -> anyhow::Result<(RunDir, Option<StepId>)> {
    Ok(find::target(roots, word, &std::env::current_dir()?)?)
}
