//! From what was typed to run directories.

use std::path::Path;

use anyhow::Context;

use super::load::World;
use crate::run::StepId;
use crate::rundir::{RunDir, RunRoot, find};

/// The root that new runs go to.
pub fn own_root(world: &World, asked: Option<&Path>) -> anyhow::Result<RunRoot> {
    if let Some(path) = asked.or_else(|| world.config.root()) {
        return Ok(RunRoot::at(std::path::absolute(path)?));
    }
    RunRoot::default_root(|name| std::env::var_os(name))
        .context("no place for runs: set HOME, XDG_STATE_HOME or --root")
}

/// The roots that runs are looked for in: the one asked for; else our own, those of the configuration, and those of
/// pi-subagents.
pub fn roots(world: &World, asked: Option<&Path>) -> anyhow::Result<Vec<RunRoot>> {
    let own = own_root(world, asked)?;
    if asked.is_some() {
        return Ok(vec![own]);
    }
    let mut roots = vec![own];
    let others = world.config.roots().iter().map(RunRoot::at);
    for root in others.chain(RunRoot::pi_roots(|name| std::env::var_os(name))) {
        if roots.iter().all(|known| known.path() != root.path()) {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// The run that RUN names.
pub fn run(world: &World, asked: Option<&Path>, word: &str) -> anyhow::Result<RunDir> {
    Ok(find::run(&roots(world, asked)?, word, &world.env.current_dir)?)
}

/// The run, and the step if one is named, of RUN[:STEP].
pub fn target(world: &World, asked: Option<&Path>, word: &str) -> anyhow::Result<(RunDir, Option<StepId>)> {
    Ok(find::target(&roots(world, asked)?, word, &world.env.current_dir)?)
}

/// Whether a folder may be written into: it is ours, no link, and nobody else may write there (product 7). A folder that
/// does not exist yet will be made so.
///
/// # Errors
/// The reason, as a sentence.
pub fn trusted(folder: &Path) -> anyhow::Result<()> {
    if std::fs::symlink_metadata(folder).is_err() {
        return Ok(());
    }
    crate::rundir::trust::check(folder).map_err(|why| {
        let folder = crate::text::SafeText::line(&folder.display().to_string());
        anyhow::anyhow!("{folder} is not trusted and only read: {why}")
    })
}

/// Whether requests may be written to a run: neither its root nor its own folder is open to others.
///
/// # Errors
/// The reason, as a sentence.
pub fn writable(dir: &RunDir) -> anyhow::Result<()> {
    if let Some(root) = dir.root() {
        trusted(root.path())?;
        dir.path().parent().map_or(Ok(()), trusted)?;
    }
    trusted(dir.path())
}
