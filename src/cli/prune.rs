//! `subdeck prune`: says which runs are old enough to go, and removes them when it is told to.

use std::process::ExitCode;

use anyhow::bail;

use super::args::PruneArgs;
use super::load::World;
use super::{find, lines, out};
use crate::run::{ExitCause, RunPhase, Timestamp};
use crate::rundir::prune::{Rules, judge, leans_on, remove, size, sweep};
use crate::rundir::{Listed, RunRoot, list_runs};
use crate::text::{SafeText, bytes, span};

/// Lists what would go, or removes it with `--yes`.
pub fn prune(args: &PruneArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let root = find::own_root(&world, args.root.root.as_deref())?;
    find::trusted(root.path())?;
    find::trusted(&root.runs())?;
    let rules = Rules {
        older_than: args.older_than,
        ends: args.state.iter().map(|word| end(word)).collect::<anyhow::Result<_>>()?,
        foreign: args.foreign,
        broken: args.broken,
    };
    let now = crate::engine::now();
    let runs = list_runs(&root);
    let mut go: Vec<(&Listed, Timestamp)> = Vec::new();
    let mut stay: Vec<(&Listed, String)> = Vec::new();
    for run in &runs {
        match judge(run, &rules, now) {
            Ok(ended) => go.push((run, ended)),
            Err(why) => stay.push((run, why)),
        }
    }
    // What lives on of a lost run is found by its directory (product 3).
    go.retain_mut(|(run, _)| match lives_on(run) {
        None => true,
        Some(why) => {
            stay.push((*run, why));
            false
        }
    });
    // Newest first; the newest of what could go are kept where that was asked for.
    go.sort_by_key(|(_, ended)| std::cmp::Reverse(*ended));
    for (run, _) in go.drain(..args.keep.min(go.len())) {
        stay.push((run, format!("it is one of the newest {} (--keep)", args.keep)));
    }
    // A run that stays may go on with a session in the directory of one that would go.
    while let Some(at) = go.iter().position(|(run, _)| stay.iter().any(|(other, _)| leans_on(other, &run.dir))) {
        let (run, _) = go.remove(at);
        stay.push((run, "a run that stays goes on with a session in it".into()));
    }
    if args.why {
        for (run, why) in &stay {
            tell!("subdeck: {} stays: {}", SafeText::line(run.dir.id_str()), SafeText::line(why));
        }
    }
    let mut total = 0;
    let mut rows = Vec::new();
    for (run, ended) in &go {
        let held = size(run.dir.path());
        total += held;
        let state = run.state.as_ref().ok();
        let word = if run.lost.is_some() { "lost" } else { state.map_or("unreadable", |s| s.phase.as_str()) };
        let name = state.and_then(|s| s.name.as_deref()).unwrap_or_default();
        rows.push(vec![
            run.dir.id_str().to_owned(),
            word.to_owned(),
            span(now.since(*ended)),
            bytes(held),
            name.to_owned(),
        ]);
    }
    lines::out(|to| lines::table(to, &rows))?;
    let many = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
    if !args.yes {
        tell!(
            "subdeck: {} would go ({}), {} {}; --yes removes, --why tells why others stay",
            many(go.len()),
            bytes(total),
            many(stay.len()),
            if stay.len() == 1 { "stays" } else { "stay" }
        );
        if args.root.root.is_none() {
            elsewhere(&world, &root)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    sweep(&root);
    let failed = go.iter().filter(|(run, _)| !take(&root, run, &rules)).count();
    lines::err(|to| writeln!(to, "subdeck: {} removed", many(go.len() - failed)))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { out::code(ExitCause::Failed) })
}

/// Says where else there are runs, which `ls` lists and this did not look at.
fn elsewhere(world: &World, here: &RunRoot) -> anyhow::Result<()> {
    for root in find::roots(world, None)?.iter().filter(|root| root.path() != here.path()) {
        let Ok(entries) = std::fs::read_dir(root.runs()) else { continue };
        let runs = entries.flatten().filter(|e| !e.file_name().as_encoded_bytes().starts_with(b".")).count();
        let (here, place) = (shown(here), shown(root));
        match runs {
            0 => {}
            1 => tell!("subdeck: this looked in {here} only; 1 more is in {place}: --root {place}"),
            n => tell!("subdeck: this looked in {here} only; {n} more are in {place}: --root {place}"),
        }
    }
    Ok(())
}

fn shown(root: &RunRoot) -> SafeText {
    SafeText::line(&root.path().display().to_string())
}

/// Why a run may not go of which processes live on after its runner and its keeper died.
fn lives_on(run: &Listed) -> Option<String> {
    run.lost.as_ref()?;
    let left = crate::engine::leftovers(&run.dir);
    let first = left.first()?.pid;
    let (pids, end) = match left.len() {
        1 => (format!("pid {first} lives on"), "ends it"),
        n => (format!("pid {first} and {} more live on", n - 1), "ends them"),
    };
    Some(format!("{pids}; `subdeck stop {}` {end}", run.dir.id_str()))
}

/// Removes a run after another look at it: it may have been gone on with since.
fn take(root: &RunRoot, run: &Listed, rules: &Rules) -> bool {
    let told = judge(run, rules, crate::engine::now()).map(drop);
    let told = told.and_then(|()| lives_on(run).map_or(Ok(()), Err));
    let done = told.and_then(|()| remove(root, run).map_err(|error| error.to_string()));
    if let Err(why) = &done {
        tell!("subdeck: {} was not removed: {}", SafeText::line(run.dir.id_str()), SafeText::line(why));
    }
    done.is_ok()
}

/// The end of a run by its word.
fn end(word: &str) -> anyhow::Result<RunPhase> {
    Ok(match word {
        "complete" => RunPhase::Complete,
        "failed" => RunPhase::Failed,
        "paused" => RunPhase::Paused,
        "stopped" => RunPhase::Stopped,
        "rejected" => RunPhase::Rejected,
        other => bail!("no run ends as {other:?}; it is complete, failed, paused, stopped or rejected"),
    })
}
