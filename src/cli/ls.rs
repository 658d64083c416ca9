//! `subdeck ls`.

use std::process::ExitCode;

use serde_json::json;

use super::args::LsArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{status_document, unreadable_json};
use crate::run::{RunState, StepPhase};
use crate::rundir::{Listed, list_runs};
use crate::text::{self as units, SafeText};

/// Finished runs that are listed without `--all`.
const NEWEST: usize = 20;

/// Lists runs, living ones first, newest first.
pub fn ls(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let roots = find::roots(&world, args.root.root.as_deref())?;
    let mut runs: Vec<Listed> = roots.iter().flat_map(list_runs).collect();
    let over = |run: &Listed| run.state.as_ref().is_ok_and(|s| !s.is_over()) && run.lost.is_none();
    runs.sort_by_key(|run| {
        let newest = run.state.as_ref().ok().and_then(|s| s.started_at);
        (!over(run), std::cmp::Reverse(newest))
    });
    if !args.all {
        let living = runs.iter().filter(|r| over(r)).count();
        runs.truncate(living + NEWEST);
    }
    if args.json {
        let list: Vec<_> = runs.iter().map(entry).collect();
        out::json(&json!({ "v": crate::headless::VERSION, "runs": list }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        eprintln!("subdeck: no runs yet; `subdeck demo` makes one");
    }
    let now = crate::engine::now();
    let mut text = String::new();
    for run in &runs {
        text.push_str(&line(run, now));
    }
    out::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn entry(run: &Listed) -> serde_json::Value {
    match &run.state {
        Ok(state) => status_document(state, &run.dir, run.lost.as_deref()),
        Err(error) => unreadable_json(&run.dir, &error.to_string(), run.lost.as_deref()),
    }
}

fn line(run: &Listed, now: crate::run::Timestamp) -> String {
    let id = SafeText::line(run.dir.id_str()).truncate(8);
    let state = match &run.state {
        Err(error) => return format!("{id}  unreadable  {}\n", SafeText::line(&error.to_string())),
        Ok(state) => state,
    };
    let word = if run.lost.is_some() || state.lost.is_some() { "lost" } else { word(state) };
    let age = units::or_unknown(state.started_at.map(|t| units::span(now.since(t))));
    let steps = format!("{}/{}", state.steps_ended(), state.steps.len());
    let cost = units::or_unknown(state.cost().map(|c| units::cost(c.0)));
    let needs = state.steps.iter().filter(|s| s.activity.as_deref() == Some("needs_attention")).count();
    let needs = if needs > 0 && !state.is_over() { format!("▲ {needs} needs you  ") } else { String::new() };
    let name =
        SafeText::line(state.name.as_deref().unwrap_or_else(|| state.steps.first().map_or("", |s| s.agent.as_str())));
    let now_doing = state
        .steps
        .iter()
        .filter(|s| s.phase == StepPhase::Running)
        .find_map(|s| s.current_call())
        .map_or_else(String::new, |c| format!("  {} {}", c.tool, c.args));
    let now_doing = SafeText::line(&now_doing).truncate(40);
    format!("{id}  {word:<9} {age:>7}  {steps:>7}  {cost:>7}  {needs}{name}{now_doing}\n")
}

fn word(state: &RunState) -> &str {
    if state.is_ending() {
        return "ending";
    }
    state.phase.as_str()
}
