//! The runs of a fleet as a list: which, in what order, under which headings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::words::has;
use super::{Class, Group, Show, Sort, View};
use crate::run::{RunState, StepState, Timestamp};
use crate::rundir::fleet::FleetRun;

/// A heading and what stands below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// What the runs have in common. Text from outside.
    pub title: String,
    /// How many there are.
    pub count: usize,
    /// How many stand below those.
    pub inside: usize,
    /// What all of them cost, as far as that is known.
    pub usd: Option<f64>,
    /// Some of it is not told, so that it is at least that.
    pub partial: bool,
}

/// A row of the list.
#[derive(Debug)]
pub enum Row<'r> {
    /// A heading.
    Head(Head),
    /// A run.
    Run {
        /// It.
        run: &'r FleetRun,
        /// It is listed below the run that it is a part of.
        part: bool,
    },
}

/// The list. `midnight` is when today began; `day` names the day of a moment; `root` names a root by its place.
pub fn arrange<'r>(
    runs: impl Iterator<Item = &'r FleetRun>,
    view: &View,
    midnight: Timestamp,
    now: Timestamp,
    day: impl Fn(Timestamp) -> String,
    root: impl Fn(usize) -> String,
) -> Vec<Row<'r>> {
    let words: Vec<String> = view.words.split_whitespace().map(str::to_lowercase).collect();
    let shown: Vec<&FleetRun> = runs.filter(|run| is_shown(run, view.show, midnight) && has(run, &words)).collect();
    // A run whose whole is listed stands below it, whatever it would be itself.
    let ids: BTreeSet<&str> = shown.iter().map(|run| run.dir().id_str()).collect();
    let mut parts: BTreeMap<&str, Vec<&FleetRun>> = BTreeMap::new();
    let mut wholes: Vec<&FleetRun> = Vec::new();
    for run in &shown {
        let above = run.parent.as_ref().map(|id| id.as_str());
        match above.filter(|id| ids.contains(id) && *id != run.dir().id_str()) {
            Some(whole) => parts.entry(whole).or_default().push(run),
            None => wholes.push(run),
        }
    }
    // Runs that are each other's part would hang on nothing.
    let hung: BTreeSet<&str> = wholes.iter().flat_map(|run| below(run, &parts)).map(|r| r.dir().id_str()).collect();
    let known: BTreeSet<&str> = wholes.iter().map(|run| run.dir().id_str()).collect();
    let circular = shown.iter().filter(|_| !parts.is_empty()).filter(|run| {
        let id = run.dir().id_str();
        !hung.contains(id) && !known.contains(id)
    });
    let circular: Vec<&FleetRun> = circular.copied().collect();
    wholes.extend(circular);
    let heads: BTreeSet<&str> = wholes.iter().map(|run| run.dir().id_str()).collect();
    for parts in parts.values_mut() {
        parts.retain(|run| !heads.contains(run.dir().id_str()));
    }

    // By their titles; a group stands where the first of its keys puts it.
    let mut groups: BTreeMap<String, (i64, Vec<&FleetRun>)> = BTreeMap::new();
    for run in wholes {
        let (key, title) = heading(run, &parts, view.group, &day, &root);
        let group = groups.entry(title).or_insert((key, Vec::new()));
        group.0 = group.0.min(key);
        group.1.push(run);
    }
    let mut groups: Vec<(String, (i64, Vec<&FleetRun>))> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (key, _))| *key);
    let mut rows = Vec::new();
    for (title, (_, mut runs)) in groups {
        sort(&mut runs, view.sort, now);
        if view.group != Group::None {
            let costs: Vec<f64> = runs.iter().flat_map(|run| usd_with_parts(run, &parts)).collect();
            let usd = (!costs.is_empty()).then(|| costs.iter().sum());
            let partial = runs.iter().any(|run| is_cost_partial(run, &parts));
            let inside = runs.iter().map(|run| below(run, &parts).len()).sum();
            rows.push(Row::Head(Head { title, count: runs.len(), inside, usd, partial }));
        }
        for run in runs {
            rows.push(Row::Run { run, part: false });
            let mut inside = below(run, &parts);
            sort(&mut inside, view.sort, now);
            rows.extend(inside.into_iter().map(|run| Row::Run { run, part: true }));
        }
    }
    rows
}

/// All that hangs on a run, however deep; each once.
fn below<'r>(run: &FleetRun, parts: &BTreeMap<&str, Vec<&'r FleetRun>>) -> Vec<&'r FleetRun> {
    let mut found: Vec<&FleetRun> = Vec::new();
    // Of a thousand runs few have parts.
    if parts.get(run.dir().id_str()).is_none_or(Vec::is_empty) {
        return found;
    }
    let mut seen: BTreeSet<&str> = BTreeSet::from([run.dir().id_str()]);
    let mut open = vec![run.dir().id_str().to_owned()];
    while let Some(id) = open.pop() {
        for part in parts.get(id.as_str()).into_iter().flatten() {
            if seen.insert(part.dir().id_str()) {
                found.push(part);
                open.push(part.dir().id_str().to_owned());
            }
        }
    }
    found
}

fn usd_with_parts(run: &FleetRun, parts: &BTreeMap<&str, Vec<&FleetRun>>) -> Vec<f64> {
    let all = std::iter::once(run).chain(below(run, parts));
    all.filter_map(|run| run.state()?.cost()).map(|usd| usd.0).collect()
}

/// Whether of a run or of one below it some cost is not told.
fn is_cost_partial(run: &FleetRun, parts: &BTreeMap<&str, Vec<&FleetRun>>) -> bool {
    let untold = |state: &RunState| {
        state.is_cost_partial() || state.cost().is_none() && state.steps.iter().any(StepState::worked)
    };
    std::iter::once(run).chain(below(run, parts)).filter_map(FleetRun::state).any(untold)
}

fn is_shown(run: &FleetRun, show: Show, midnight: Timestamp) -> bool {
    match show {
        Show::All => true,
        Show::Living => run.is_living(),
        Show::Needs => Class::of(run) == Class::Needs,
        Show::Trouble => matches!(Class::of(run), Class::Failed | Class::Lost | Class::Unreadable),
        Show::Today => run.heard() >= midnight,
    }
}

/// The key of a run's group and the title of it; groups stand in the order of their smallest keys.
fn heading(
    run: &FleetRun,
    parts: &BTreeMap<&str, Vec<&FleetRun>>,
    group: Group,
    day: &impl Fn(Timestamp) -> String,
    root: &impl Fn(usize) -> String,
) -> (i64, String) {
    match group {
        Group::None => (0, String::new()),
        Group::State => {
            // A whole is as urgent as the most urgent of its parts that go on.
            let inside = below(run, parts).into_iter().map(Class::of).filter(|c| *c <= Class::Running);
            let class = inside.chain([Class::of(run)]).min().unwrap_or(Class::Complete);
            (class as i64, class.title().to_owned())
        }
        Group::Project => match &run.project {
            Some(project) => (0, project.name.clone()),
            None => (1, "no folder".to_owned()),
        },
        Group::Root => (i64::try_from(run.root).unwrap_or(i64::MAX), root(run.root)),
        Group::Day => {
            let at = run.listed.started();
            (at.millis().saturating_neg(), day(at))
        }
    }
}

fn sort(runs: &mut [&FleetRun], by: Sort, now: Timestamp) {
    let newest = |run: &&FleetRun| Reverse(run.listed.started());
    match by {
        Sort::Age => runs.sort_by_key(newest),
        Sort::Need => runs.sort_by_key(|run| (Class::of(run), Reverse(run.listed.started()))),
        Sort::Cost => {
            let usd = |run: &FleetRun| run.state().and_then(|s| s.cost()).map_or(-1.0, |usd| usd.0);
            runs.sort_by(|a, b| usd(b).total_cmp(&usd(a)).then_with(|| newest(a).cmp(&newest(b))));
        }
        Sort::Tokens => runs.sort_by_key(|run| (Reverse(run.state().map(|s| s.tokens().total())), newest(run))),
        Sort::Time => runs.sort_by_key(|run| (Reverse(run.state().and_then(|s| s.elapsed(now))), newest(run))),
        Sort::Name => runs.sort_by_key(|run| (run.title().as_str().to_lowercase(), newest(run))),
    }
}
