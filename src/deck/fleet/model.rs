//! What the eyes need of the fleet: which run is selected, how the list is ordered, what lies above it.

use std::path::{Path, PathBuf};

use super::start::StartDialog;
use crate::deck::model::Notice;
use crate::deck::update::NOTICE_FOR;
use crate::listing::{Row, View};
use crate::run::Timestamp;
use crate::rundir::fleet::FleetRun;
use crate::text::SafeText;

/// What lies above the list.
#[derive(Clone, Debug)]
pub enum Over {
    /// The keys, from this line on.
    Help(usize),
    /// The words of the filter are typed.
    Words,
    /// The words of the search are typed.
    Search(String),
    /// A run is to be started.
    Start(Box<StartDialog>),
}

/// Everything that is remembered between two frames, and while a run is looked at.
#[derive(Clone, Debug, Default)]
pub struct FleetUi {
    /// The directory of the selected run; a path and not a row, so that it survives whatever happens to the rows.
    pub selected: Option<PathBuf>,
    /// Where it stood, for when it is gone.
    pub place: usize,
    /// A key was pressed. Until then the run on top is the selected one, whatever is read after it.
    pub touched: bool,
    /// How the list is ordered, and what is in it.
    pub view: View,
    /// What was looked for last.
    pub search: String,
    /// What lies above.
    pub over: Option<Over>,
    /// What became of the newest key.
    pub notice: Option<Notice>,
    /// The size of the terminal.
    pub size: (u16, u16),
}

impl FleetUi {
    /// Says something on the line for notices when the fleet is shown again.
    pub fn tell(&mut self, text: &str, now: Timestamp) {
        self.notice = Some(Notice { text: SafeText::line(text), bad: true, until: now + NOTICE_FOR });
    }

    /// Keeps the selection on a run that is listed: the one that took the place of the selected one, else the last.
    pub fn settle(&mut self, rows: &[Row<'_>]) {
        let runs: Vec<&Path> = runs(rows).map(|run| run.dir().path()).collect();
        let at = runs.iter().position(|path| Some(*path) == self.selected.as_deref()).filter(|_| self.touched);
        self.place = at.unwrap_or_else(|| if self.touched { self.place.min(runs.len().saturating_sub(1)) } else { 0 });
        self.selected = runs.get(self.place).map(|path| path.to_path_buf());
    }

    /// Moves the selection by runs, stopping at the ends.
    pub fn move_by(&mut self, rows: &[Row<'_>], by: isize) {
        self.settle(rows);
        let count = runs(rows).count();
        self.place = self.place.saturating_add_signed(by).min(count.saturating_sub(1));
        self.selected = runs(rows).nth(self.place).map(|run| run.dir().path().to_owned());
    }

    /// Selects the next run after the selected one (or before it) for which `wanted` holds, beginning anew at the end.
    /// Returns whether there is one.
    pub fn jump(&mut self, rows: &[Row<'_>], back: bool, wanted: impl Fn(&FleetRun) -> bool) -> bool {
        self.settle(rows);
        let all: Vec<&FleetRun> = runs(rows).collect();
        let count = all.len();
        let order = (1..=count).map(|step| if back { self.place + count - step } else { self.place + step } % count);
        let found = order.into_iter().find(|at| all.get(*at).is_some_and(|run| wanted(run)));
        if let Some((at, run)) = found.and_then(|at| Some((at, all.get(at)?))) {
            self.place = at;
            self.selected = Some(run.dir().path().to_owned());
        }
        found.is_some()
    }
}

/// The runs of a list.
pub fn runs<'r, 's>(rows: &'s [Row<'r>]) -> impl Iterator<Item = &'r FleetRun> + use<'r, 's> {
    rows.iter().filter_map(|row| match row {
        Row::Run { run, .. } => Some(*run),
        Row::Head(_) => None,
    })
}
