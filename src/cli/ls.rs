//! `subdeck ls`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::json;

use super::args::LsArgs;
use super::load::World;
use super::{find, out};
use crate::headless::{needs, status_document, unreadable_json};
use crate::listing::{Group, Row, Spent, View, arrange, spent_since};
use crate::run::{ExitCause, Timestamp, or_more};
use crate::rundir::fleet::{Fleet, FleetRun};
use crate::rundir::trust::{self, Distrust};
use crate::rundir::{Listed, list_runs};
use crate::text::{self as units, SafeText, when};

/// The heads of the table.
const COLUMNS: [&str; 11] =
    ["RUN", "STATE", "AGE", "STEPS", "TOKENS", "COST", "NEEDS", "AGENTS", "WHERE", "NAME", "NOW"];

/// Finished runs that are listed without `--all`.
const NEWEST: usize = 20;

/// Lists runs; without an order asked for, what goes on first, the newest first.
pub fn ls(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let world = World::look()?;
    let roots = find::roots(&world, args.root.root.as_deref())?;
    for root in &roots {
        match trust::check(root.path()) {
            Err(why @ Distrust::NotAFolder) => {
                tell!("subdeck: no runs in {}: {why}", SafeText::line(&root.path().display().to_string()));
                return Ok(out::code(ExitCause::Failed));
            }
            Err(Distrust::Writable(_) | Distrust::Link) => {
                if let Err(why) = find::trusted(root.path()) {
                    tell!("subdeck: {why}");
                }
            }
            // One that is not there yet, or of somebody else who lets us read it.
            Err(Distrust::Unreadable | Distrust::Owner(_)) | Ok(()) => {}
        }
    }
    let mut fleet = Fleet::new(roots);
    while fleet.poll(Duration::MAX).behind {}
    for line in fleet.unlisted() {
        tell!("subdeck: {}", SafeText::line(&line));
    }
    let now = crate::engine::now();
    let zone = TimeZone::system();
    let hidden = if args.all { BTreeSet::new() } else { old(&fleet) };
    let view = View {
        group: args.group.unwrap_or(Group::None),
        sort: args.sort.unwrap_or_default(),
        show: args.show.unwrap_or_default(),
        words: args.words.join(" "),
    };
    let midnight = Timestamp::from_micros(when::midnight(now.micros(), &zone));
    let shown = fleet.runs().filter(|run| !hidden.contains(run.dir().path()));
    let root = |at: usize| fleet.roots().get(at).map(|r| r.path().display().to_string()).unwrap_or_default();
    let mut rows = arrange(shown, &view, midnight, now, |at| when::day(at.micros(), &zone), root);
    if args.group.is_none() && args.sort.is_none() {
        // What goes on first; the order stays otherwise. A part stays below its whole.
        let mut living = false;
        rows.sort_by_cached_key(|row| {
            if let Row::Run { run, part: false } = row {
                living = run.is_living();
            }
            !living
        });
    }
    if !hidden.is_empty() {
        tell!("subdeck: {} more, --all shows them", hidden.len());
    }
    // Nothing was found, and whether there is something is not known.
    let closed = fleet.runs().next().is_none() && !fleet.unlisted().is_empty();
    let code = if closed { out::code(ExitCause::Failed) } else { ExitCode::SUCCESS };
    if args.json {
        let mut listed: BTreeMap<_, _> =
            fleet.roots().iter().flat_map(list_runs).map(|run| (run.dir.path().to_owned(), run)).collect();
        let runs = rows.iter().filter_map(|row| match row {
            Row::Run { run, .. } => listed.remove(run.dir().path()),
            Row::Head(_) => None,
        });
        let list: Vec<_> = runs.map(|run| entry(&run)).collect();
        out::json(&json!({ "v": crate::headless::VERSION, "runs": list }))?;
        return Ok(code);
    }
    if fleet.runs().next().is_none() && !closed {
        tell!("subdeck: no runs yet; `subdeck demo` makes one");
    }
    let mut table = vec![COLUMNS.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|entry| match entry {
        Row::Head(head) => vec![format!("{} ({})", head.title, head.count)],
        Row::Run { run, part } => row(run, *part, now),
    }));
    super::lines::out(|to| super::lines::table(to, &table))?;
    if let Some(line) = spent_today(&spent_since(fleet.runs(), midnight)) {
        tell!("subdeck: {line}");
    }
    Ok(code)
}

/// What today cost, where it cost anything.
fn spent_today(spent: &Spent) -> Option<SafeText> {
    if spent.usd <= 0.0 {
        return None;
    }
    let models: Vec<String> =
        spent.models.iter().map(|(model, usd)| format!("{model} {}", units::cost(*usd))).collect();
    let unknown = match spent.unknown {
        0 => String::new(),
        1 => "; 1 run tells no cost".to_owned(),
        n => format!("; {n} runs tell no cost"),
    };
    let more = or_more(spent.is_partial());
    Some(SafeText::line(&format!("today {}{more}: {}{unknown}", units::cost(spent.usd), models.join(", "))))
}

/// All but the newest of the ended runs. What goes on and what cannot be read is never hidden (product 6).
fn old(fleet: &Fleet) -> BTreeSet<PathBuf> {
    let mut ended: Vec<&FleetRun> = fleet.runs().filter(|run| !run.is_living() && run.listed.state.is_ok()).collect();
    ended.sort_by_key(|run| std::cmp::Reverse(run.listed.started()));
    ended.into_iter().skip(NEWEST).map(|run| run.dir().path().to_owned()).collect()
}

fn entry(run: &Listed) -> serde_json::Value {
    match &run.state {
        Ok(state) => status_document(state, &run.dir, run.lost.as_deref()),
        Err(error) => unreadable_json(&run.dir, &error.to_string(), run.lost.as_deref()),
    }
}

fn row(run: &FleetRun, part: bool, now: Timestamp) -> Vec<String> {
    let id = run.short_id();
    let id = if part { format!("  {id}") } else { id.to_string() };
    let state = match &run.listed.state {
        // The cause is as long as it is, so it stands where nothing comes after it.
        Err(error) => {
            let mut row = vec![id, "unreadable".to_owned()];
            row.resize(COLUMNS.len() - 1, String::new());
            row.push(error.to_string());
            return row;
        }
        Ok(state) => state,
    };
    let word = if run.is_lost() { "lost" } else { state.run_face().1 };
    let needs = if state.is_over() { Vec::new() } else { needs(state) };
    let agents = run.agents();
    let place = run.project.as_ref().map(|p| match &p.branch {
        Some(branch) => format!("{}:{branch}", p.name),
        None => p.name.clone(),
    });
    let short = |text: &str, cells| SafeText::line(text).truncate(cells).to_string();
    vec![
        id,
        word.to_owned(),
        units::or_unknown(state.started_at.map(|t| units::span(now.since(t)))),
        format!("{}/{}", state.progress(run.is_lost()).0, state.steps.len()),
        run.or_nothing(state.tokens_told()),
        run.or_nothing(state.cost_told()),
        needs.first().map_or_else(String::new, |first| match needs.len() {
            1 => first.short().truncate(32).to_string(),
            n => format!("{} +{}", first.short().truncate(32), n - 1),
        }),
        units::or_unknown(agents.first().map(|first| match agents.len() {
            1 => short(first, 20),
            n => format!("{} +{}", short(first, 20), n - 1),
        })),
        units::or_unknown(place.map(|place| short(&place, 28))),
        state.name.as_deref().unwrap_or_else(|| state.steps.first().map_or("", |s| s.title())).to_owned(),
        doing(run),
    ]
}

/// What a run does just now; of one that does nothing, its first task.
fn doing(run: &FleetRun) -> String {
    let task = || run.task.lines().next().unwrap_or_default().to_owned();
    SafeText::line(&run.doing().unwrap_or_else(task)).masked().truncate(48).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_today_cost_is_at_least_that_where_a_part_is_not_told() {
        let line = |unknown, partial| {
            let spent = Spent { usd: 0.84, models: vec![("haiku".to_owned(), 0.84)], unknown, partial };
            spent_today(&spent).unwrap_or_default().to_string()
        };
        assert_eq!(line(0, false), "today $0.84: haiku $0.84");
        assert_eq!(line(0, true), "today $0.84+: haiku $0.84");
        assert_eq!(line(1, false), "today $0.84+: haiku $0.84; 1 run tells no cost");
    }
}
