//! `subdeck ls`.

use std::process::ExitCode;

use serde_json::json;

use super::args::LsArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{needs, status_document, unreadable_json};
use crate::run::{ExitCause, RunState, StepPhase};
use crate::rundir::trust::{self, Distrust};
use crate::rundir::{Listed, list_runs};
use crate::text::{self as units, SafeText};

/// Finished runs that are listed without `--all`.
const NEWEST: usize = 20;

/// Lists runs, living ones first, newest first.
pub fn ls(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let roots = find::roots(&world, args.root.root.as_deref())?;
    for root in &roots {
        match trust::check(root.path()) {
            Err(why @ Distrust::NotAFolder) => {
                eprintln!("subdeck: no runs in {}: {why}", SafeText::line(&root.path().display().to_string()));
                return Ok(out::code(ExitCause::Failed));
            }
            Err(Distrust::Writable(_) | Distrust::Link) => {
                if let Err(why) = find::trusted(root.path()) {
                    eprintln!("subdeck: {why}");
                }
            }
            // One that is not there yet, or of somebody else who lets us read it.
            Err(Distrust::Unreadable | Distrust::Owner(_)) | Ok(()) => {}
        }
    }
    let mut runs: Vec<Listed> = roots.iter().flat_map(list_runs).collect();
    runs.sort_by_key(|run| (!is_living(run), std::cmp::Reverse(run.started())));
    let hidden = if args.all { 0 } else { hide(&mut runs) };
    if hidden > 0 {
        eprintln!("subdeck: {hidden} more, --all shows them");
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
    let head = ["RUN", "STATE", "AGE", "STEPS", "COST", "NEEDS", "NAME", "NOW"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    rows.extend(runs.iter().map(|run| row(run, now)));
    super::lines::out(|to| super::lines::table(to, &rows))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether it goes on, as far as its files say.
fn is_living(run: &Listed) -> bool {
    run.state.as_ref().is_ok_and(|s| !s.is_over()) && run.lost.is_none()
}

/// Leaves the newest of the ended runs. What goes on and what cannot be read is never hidden (product 6). Returns how
/// many are hidden.
fn hide(runs: &mut Vec<Listed>) -> usize {
    let all = runs.len();
    let mut ended = 0;
    runs.retain(|run| {
        if is_living(run) || run.state.is_err() {
            return true;
        }
        ended += 1;
        ended <= NEWEST
    });
    all - runs.len()
}

fn entry(run: &Listed) -> serde_json::Value {
    match &run.state {
        Ok(state) => status_document(state, &run.dir, run.lost.as_deref()),
        Err(error) => unreadable_json(&run.dir, &error.to_string(), run.lost.as_deref()),
    }
}

fn row(run: &Listed, now: crate::run::Timestamp) -> Vec<String> {
    // Eight characters are enough to name a run, and can be copied as they are.
    let id: String = run.dir.id_str().chars().take(8).collect();
    let state = match &run.state {
        Err(error) => return vec![id, "unreadable".to_owned(), error.to_string()],
        Ok(state) => state,
    };
    let word = if run.lost.is_some() || state.lost.is_some() { "lost" } else { word(state) };
    let needs = if state.is_over() { Vec::new() } else { needs(state) };
    let first = state.steps.first();
    vec![
        id,
        word.to_owned(),
        units::or_unknown(state.started_at.map(|t| units::span(now.since(t)))),
        format!("{}/{}", state.steps_ended(), state.steps.len()),
        units::or_unknown(state.cost().map(|c| units::cost(c.0))),
        units::or_unknown(needs.first().map(|first| match needs.len() {
            1 => first.short().truncate(32).to_string(),
            n => format!("{} +{}", first.short().truncate(32), n - 1),
        })),
        state.name.as_deref().unwrap_or_else(|| first.map_or("", |s| s.title())).to_owned(),
        doing(run, state),
    ]
}

/// What a run does just now; of one that does nothing, its first task.
fn doing(run: &Listed, state: &RunState) -> String {
    let running = state.steps.iter().filter(|s| s.phase == StepPhase::Running);
    if let Some(call) = running.filter_map(|s| s.current_call()).next() {
        return SafeText::line(&format!("{} {}", call.tool, call.args)).truncate(48).to_string();
    }
    let task = crate::rundir::plan_doc::read(&run.dir).first().map(|step| step.task.clone()).unwrap_or_default();
    SafeText::line(task.trim().lines().next().unwrap_or_default()).truncate(48).to_string()
}

fn word(state: &RunState) -> &str {
    if state.is_ending() {
        return "ending";
    }
    state.phase.as_str()
}
