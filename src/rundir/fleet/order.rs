//! The runs of a fleet as a list: which, in what order, under which headings. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::FleetRun;
use crate::run::{RunPhase, RunState, StepId, StepPhase, StepState, Timestamp, needs};

/// What a person wants to know first of a run, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Somebody is needed.
    Needs,
    /// It goes on.
    Running,
    /// It cannot be read.
    Unreadable,
    /// Its runner died.
    Lost,
    /// It was paused, and waits to be gone on with.
    Paused,
    /// It failed, ran out of something, or was stopped.
    Failed,
    /// It is complete, or whatever else is over.
    Complete,
}

impl Class {
    /// The class of a run.
    #[must_use]
    pub fn of(run: &FleetRun) -> Self {
        if let Some(broken) = Self::of_broken(run) {
            return broken;
        }
        let Some(state) = run.state() else { return Self::Unreadable };
        if !state.is_over() {
            let survivors = state.steps.iter().any(|s| !s.survivors.is_empty());
            return if survivors || !needs(state).is_empty() { Self::Needs } else { Self::Running };
        }
        match state.phase {
            RunPhase::Paused => Self::Paused,
            RunPhase::Failed | RunPhase::Stopped | RunPhase::Rejected => Self::Failed,
            _ => Self::Complete,
        }
    }

    /// The class of a run that cannot be read or whose runner died.
    fn of_broken(run: &FleetRun) -> Option<Self> {
        match run.state() {
            None => Some(Self::Unreadable),
            Some(_) => run.is_lost().then_some(Self::Lost),
        }
    }

    /// Its heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Needs => "needs you",
            Self::Running => "running",
            Self::Unreadable => "unreadable",
            Self::Lost => "lost",
            Self::Paused => "paused",
            Self::Failed => "failed or stopped",
            Self::Complete => "complete",
        }
    }
}

/// What stands together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Runs of the same class.
    #[default]
    State,
    /// Runs in the same project.
    Project,
    /// Runs of the same root.
    Root,
    /// Runs of the same day.
    Day,
    /// Nothing.
    None,
}

/// What decides the order within a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The newest first.
    #[default]
    Age,
    /// What needs a person first.
    Need,
    /// The dearest first.
    Cost,
    /// The most tokens first.
    Tokens,
    /// The longest first.
    Time,
    /// By name.
    Name,
}

/// Which runs are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// All.
    #[default]
    All,
    /// Those that go on.
    Living,
    /// Those that need a person.
    Needs,
    /// Those that did not end well: failed, lost, unreadable.
    Trouble,
    /// Those of today.
    Today,
}

macro_rules! words {
    ($kind:ident, $($value:ident $word:literal),*) => {
        impl $kind {
            /// All of them in their order.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// Its word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word),* }
            }

            /// The one of this word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }

            /// The one of this word, as a command takes it.
            ///
            /// # Errors
            /// The words that there are.
            pub fn parse(word: &str) -> Result<Self, String> {
                let all: Vec<&str> = Self::ALL.iter().map(|one| one.word()).collect();
                Self::named(word).ok_or_else(|| format!("one of {}", all.join(", ")))
            }

            /// The next one, after the last the first.
            #[must_use]
            pub fn next(self) -> Self {
                let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
                Self::ALL.get((at + 1) % Self::ALL.len()).copied().unwrap_or(self)
            }
        }
    };
}
words!(Group, State "state", Project "project", Root "root", Day "day", None "none");
words!(Sort, Age "age", Need "need", Cost "cost", Tokens "tokens", Time "time", Name "name");
words!(Show, All "all", Living "living", Needs "needs", Trouble "trouble", Today "today");

/// How a fleet is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What stands together.
    pub group: Group,
    /// In what order.
    pub sort: Sort,
    /// Which runs.
    pub show: Show,
    /// Only runs that have all these words somewhere.
    pub words: String,
}

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

/// The runs that need a person, the newest first. What a run needs only because a run inside one of its steps needs it is
/// one alarm, that of the run inside.
#[must_use]
pub fn waiting<'r>(runs: impl Iterator<Item = &'r FleetRun>) -> Vec<&'r FleetRun> {
    let mut all: Vec<&FleetRun> = runs.filter(|run| Class::of(run) == Class::Needs).collect();
    let mut parts: BTreeMap<&str, Vec<&FleetRun>> = BTreeMap::new();
    for run in &all {
        if let Some(whole) = &run.parent {
            parts.entry(whole.as_str()).or_default().push(run);
        }
    }
    let of = |run: &FleetRun| parts.get(run.dir().id_str()).map_or(&[][..], Vec::as_slice);
    let own: Vec<&FleetRun> = all.iter().copied().filter(|run| !is_told_by_parts(run, of(run))).collect();
    // Runs that are each other's part would tell of nobody.
    if !own.is_empty() {
        all = own;
    }
    all.sort_by_key(|run| Reverse(run.listed.started()));
    all
}

/// Whether everything that a run needs is in steps in which these parts of it were started, which need something.
fn is_told_by_parts(run: &FleetRun, parts: &[&FleetRun]) -> bool {
    let Some(state) = run.state().filter(|s| s.steps.iter().all(|step| step.survivors.is_empty())) else {
        return false;
    };
    let steps: Vec<StepId> = parts.iter().filter_map(|part| step_of(state, part)).collect();
    !steps.is_empty() && needs(state).iter().all(|need| steps.contains(&need.step.id))
}

/// In which step of a run another one was started. Where that is not told it is the only one that runs.
fn step_of(state: &RunState, part: &FleetRun) -> Option<StepId> {
    let told = part.step.or_else(|| part.state()?.started_in.as_ref()?.step);
    let named = || state.steps.iter().find(|s| s.own_run.as_ref().is_some_and(|id| id.as_str() == part.dir().id_str()));
    let mut running = state.steps.iter().filter(|s| s.phase == StepPhase::Running);
    let only = running.next().filter(|_| running.next().is_none());
    told.or_else(|| named().or(only).map(|step| step.id))
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

/// How many runs cannot be read, and of how many the runner died.
#[must_use]
pub fn broken<'r>(runs: impl Iterator<Item = &'r FleetRun>) -> (usize, usize) {
    runs.fold((0, 0), |(unreadable, lost), run| match Class::of_broken(run) {
        Some(Class::Unreadable) => (unreadable + 1, lost),
        Some(_) => (unreadable, lost + 1),
        None => (unreadable, lost),
    })
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

/// Whether a run has all these words somewhere in what is shown of it, whatever their case.
#[must_use]
pub fn has_words(run: &FleetRun, words: &str) -> bool {
    has(run, &words.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>())
}

fn has(run: &FleetRun, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let mut text = format!("{} {} {} ", run.dir().path().display(), run.title(), run.task);
    let mut add = |word: &str| {
        text.push_str(word);
        text.push(' ');
    };
    run.agents().into_iter().for_each(&mut add);
    add(Class::of(run).title());
    if let Some(project) = &run.project {
        add(&project.name);
        add(project.branch.as_deref().unwrap_or_default());
    }
    match &run.listed.state {
        Ok(state) => {
            add(state.phase.as_str());
            add(&state.cwd);
            add(state.error.as_deref().unwrap_or_default());
            state.steps.iter().filter_map(|s| s.model.as_deref()).for_each(&mut add);
            needs(state).iter().for_each(|need| {
                add(need.short().as_str());
                add(&need.evidence);
            });
        }
        Err(error) => add(&error.to_string()),
    }
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word))
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

impl FleetRun {
    /// A value that is not told: unknown where an agent was at work, and empty where there was none that could use anything.
    #[must_use]
    pub fn or_nothing(&self, value: Option<String>) -> String {
        // What was carried over from an earlier run was at work there.
        let agents = |s: &RunState| s.steps.iter().any(|step| step.worked() && !step.carried_over);
        match value {
            None if !self.state().is_some_and(agents) => String::new(),
            value => crate::text::or_unknown(value),
        }
    }

    /// The tool that one of its steps has open, with its arguments. Text from outside.
    #[must_use]
    pub fn doing(&self) -> Option<String> {
        let running = self.state()?.steps.iter().filter(|s| s.phase == StepPhase::Running);
        let call = running.clone().filter_map(|s| s.current_call()).max_by_key(|c| c.started_at);
        // What waits for an inner run does nothing itself; the row of that tells what it does.
        let waits = || running.clone().find_map(|s| s.waits_for()).map(|run| format!("waits for run {}", run.title));
        let told = || call.map(|call| format!("{} {}", call.tool, call.path.as_deref().unwrap_or(&call.args)));
        waits().or_else(told)
    }
}
