//! The fleet: every run of this machine on one screen. One of them is opened from here, or a new one begun.

mod app;
mod keys;
mod model;
mod start;
mod update;
mod view;

use std::path::{Path, PathBuf};

pub use keys::{Act, TABLE};
pub use model::{FleetUi, Over};
pub use start::{StartDialog, Wish};

use super::{DeckError, guard, terminal, theme};
use crate::rundir::fleet::Fleet;

/// An agent that can be started: its name and what it is for. Text from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChoice {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What runs it when nothing else is asked for.
    pub runner: String,
}

/// Tells the agents that are found from a folder.
pub type FindAgents<'a> = dyn Fn(&Path) -> Vec<AgentChoice> + 'a;
/// Begins a run; gives its directory, or the reason why not.
pub type Begin<'a> = dyn Fn(&Wish) -> Result<PathBuf, String> + 'a;

/// What the fleet cannot do itself.
pub struct Doors<'a> {
    /// Which agents there are.
    pub agents: Box<FindAgents<'a>>,
    /// How a run is begun.
    pub start: Box<Begin<'a>>,
}

/// How the fleet is shown.
#[derive(Clone, Debug, Default)]
pub struct FleetOptions {
    /// Only ASCII for everything that is ours.
    pub ascii: bool,
    /// Which colours are used; `None` is those that fit the terminal's background.
    pub palette: Option<theme::Palette>,
    /// Where a run is started when the person says nothing.
    pub folder: PathBuf,
}

/// How the fleet was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetExit {
    /// To look at the run in this directory.
    Open(PathBuf),
    /// To play the run in this directory again.
    Replay(PathBuf),
    /// Altogether.
    Quit,
    /// By a signal, or by the loss of the terminal, which counts as SIGHUP (1).
    Signalled(i32),
}

/// Shows the fleet until it is left. What the person chose and typed stays in `ui` for the next time.
///
/// # Errors
/// When there is no terminal, or it fails.
pub fn run(
    fleet: &mut Fleet,
    ui: &mut FleetUi,
    options: &FleetOptions,
    doors: &Doors<'_>,
) -> Result<FleetExit, DeckError> {
    if !terminal::Screen::possible() {
        return Err(DeckError::NotATerminal);
    }
    let gone = guard::watch().map_err(DeckError::Terminal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DeckError::Terminal)?;
    runtime.block_on(app::App::new(fleet, ui, options, doors).run(gone))
}
