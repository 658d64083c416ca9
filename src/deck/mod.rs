//! What people see: the full-screen interface over one run directory.
//!
//! The deck never owns a child and never decides for a run. It follows the files of a run, draws them, and writes
//! control requests like any other process may. Losing the deck, by a key, a crash or a lost terminal, changes nothing
//! of the run.

pub mod actions;
pub mod allowed;
mod answer_dialog;
mod app;
pub mod attention;
pub mod book;
pub mod budget_dialog;
pub mod changes;
pub mod compose;
pub mod effect;
pub mod entries;
pub mod feed;
pub mod fleet;
pub mod fold;
pub mod footer;
mod guard;
pub mod history;
mod keyboard;
pub mod keymap;
pub mod left;
pub mod listed;
mod live;
mod logs;
pub mod model;
pub mod notify;
pub mod older;
pub mod overlay;
mod probe;
pub mod reading;
pub mod replay;
pub mod rows;
pub mod said;
mod sgr;
pub mod sheet;
pub mod shifted;
mod stray;
pub mod sums;
mod terminal;
pub mod theme;
mod touched;
mod typed;
pub mod update;
pub mod view;
pub mod window;
pub mod wrap;

use std::io;
use std::path::PathBuf;

pub use guard::die_by;

use crate::run::{RunState, StepId};

/// Starts a run that goes on with the session of a step; gives its directory, or the reason why not.
pub type GoOn<'a> = Box<dyn Fn(StepId, &str) -> Result<PathBuf, String> + 'a>;

/// Starts a run that does again what failed; gives its directory, or the reason why not.
pub type Retry<'a> = Box<dyn Fn() -> Result<PathBuf, String> + 'a>;

/// What signs mean that stand where a value would, or behind one, for the help of the deck and of the fleet.
pub(crate) const SIGNS: [(&str, &str); 3] = [
    ("–", "nobody tells it: unknown, not zero"),
    ("(empty)", "there is none: nobody was at work who could have any"),
    ("+", "at least: not all of it is told, or read yet"),
];

/// What the other signs of the deck mean, which the fleet has not.
pub(crate) const DECK_SIGNS: [(&str, &str); 5] = [
    ("~", "an estimate"),
    ("!", "behind a limit: past its warning, or nearly used up"),
    ("err│", "a line that came from stderr"),
    ("▸ +2", "a folded group, and how many more steps or sub-agents have no row"),
    ("┌ │ └", "steps that run beside each other"),
];

/// What the deck is opened on, and how.
#[derive(Default)]
pub struct DeckOptions<'a> {
    /// The directory of the run.
    pub run_dir: PathBuf,
    /// Why nothing may be written, if so.
    pub read_only: Option<String>,
    /// The folder of the user's state, for drafts that cannot be kept with their run.
    pub state_dir: Option<PathBuf>,
    /// Only ASCII for everything that is ours.
    pub ascii: bool,
    /// Which colours are used; `None` is those that fit the terminal's background.
    pub palette: Option<theme::Palette>,
    /// The deck takes the mouse from the start.
    pub mouse: bool,
    /// How a person who looks elsewhere is told.
    pub notify: notify::Channel,
    /// The program that is told what happens, and its arguments; empty for none.
    pub hook: Vec<String>,
    /// Which key means what.
    pub keymap: keymap::Keymap,
    /// How a run is started that goes on with a session of this one; without it the deck does not offer to.
    pub go_on: Option<GoOn<'a>>,
    /// How a run is started that does again what failed in this one; without it the deck does not offer to.
    pub retry: Option<Retry<'a>>,
    /// How what lives on of a run that nobody supervises is found and ended; without it nobody looks.
    pub left: Option<left::Door>,
    /// The run is over and is played again from the start.
    pub replay: bool,
    /// The deck was opened from the fleet or from another run, so that there is a level above it.
    pub from_fleet: bool,
    /// The step that is selected first; without it the deck chooses.
    pub selected: Option<StepId>,
}

/// How the deck was left. The summary of the run is for whoever called.
#[derive(Clone, Debug, PartialEq)]
pub enum DeckExit {
    /// The person left; the run goes on.
    LeftRunning,
    /// The person chose to stop everything, and it has ended.
    Stopped,
    /// The person left after the run had ended.
    Ended,
    /// The person left after the run's directory was removed; the run as it was last seen.
    Gone(Box<RunState>),
    /// The person went on with a session in a new run, whose directory this is.
    Elsewhere(PathBuf),
    /// The person went back to the fleet or the run that the deck was opened from.
    Back,
    /// The person went on to look at the run in this directory, which was started in this one; the selected step.
    Inside(PathBuf, StepId),
    /// A signal, or the loss of the terminal, which counts as SIGHUP (1). The run goes on.
    Signalled(i32),
}

/// Why there is no deck.
#[derive(Debug, thiserror::Error)]
pub enum DeckError {
    /// Standard input or output is not a terminal.
    #[error("not a terminal; use --no-tui")]
    NotATerminal,
    /// The terminal could not be read, written or set.
    #[error("the terminal failed: {0}")]
    Terminal(io::Error),
    /// The run could not be read.
    #[error("{0}")]
    Run(String),
}

/// Opens the deck on a run and returns when it is left. The screen is as it was before, whatever happened.
///
/// # Errors
/// When there is no terminal, when the run cannot be read, when the terminal fails.
pub fn run(options: DeckOptions<'_>) -> Result<DeckExit, DeckError> {
    if !terminal::Screen::possible() {
        return Err(DeckError::NotATerminal);
    }
    // Signals are listened to before the first mode is set, so that none can leave the terminal behind.
    let gone = guard::watch().map_err(DeckError::Terminal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DeckError::Terminal)?;
    runtime.block_on(async {
        let (read_only, state) = (options.read_only.clone(), options.state_dir.as_deref());
        let source = live::LiveFeed::open(&options.run_dir, read_only, state).map_err(DeckError::Run)?;
        app::App::new(source, options).run(gone).await
    })
}
