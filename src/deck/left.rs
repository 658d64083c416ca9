//! What lives on of a run that nobody supervises any more: values, and the door through which whoever opened the deck lets
//! it be found and ended. The deck itself signals nobody.

use std::sync::Arc;

use super::actions::{Action, NARROW};
use super::model::UiState;
use crate::run::StepId;
use crate::text::{SafeText, grouped};

/// A process that lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its id.
    pub pid: u32,
    /// The step that it belongs to.
    pub step: StepId,
    /// Its program and arguments.
    pub command: SafeText,
}

/// What became of processes that were to end, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// They are gone.
    pub ended: Vec<u32>,
    /// They would not die.
    pub survivors: Vec<u32>,
}

/// How what lives on is found, and how it is ended. Both may take seconds and are called on a thread of their own.
#[derive(Clone)]
pub struct Door {
    /// Finds it.
    pub look: Arc<dyn Fn() -> Vec<Left> + Send + Sync>,
    /// Ends it, or what a step left; nothing where nothing may be done to this run.
    pub end: Option<Arc<dyn Fn(Option<StepId>) -> Swept + Send + Sync>>,
}

/// So many processes, in words.
#[must_use]
pub fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{} processes", grouped(count as u64)) }
}

/// Whether what lives on, or what the selected step left, can be ended, and why not.
///
/// # Errors
/// The reason, ready to be shown.
pub fn can_end(ui: &UiState, action: Action) -> Result<(), String> {
    if !ui.can_end_left {
        return Err("what lives on of this run cannot be ended from here: it is only looked at".to_owned());
    }
    if ui.ending_left {
        return Err("what lives on is being ended already".to_owned());
    }
    if action == Action::StopStep && !ui.left.iter().any(|left| left.step == ui.selected) {
        return Err(format!("nothing of step {} lives on", ui.selected));
    }
    Ok(())
}

/// Why nothing of a run is begun again while something of it lives on.
///
/// # Errors
/// The reason, with the key that does something about it.
pub fn in_the_way(ui: &UiState) -> Result<(), String> {
    if ui.left.is_empty() {
        return Ok(());
    }
    let (what, verb) = (processes(ui.left.len()), if ui.left.len() == 1 { "lives" } else { "live" });
    let key = ui.keymap.hint(Action::StopRun);
    Err(match ui.size.0 < NARROW {
        true => format!("{key} first: {what} of this run {verb} on"),
        false => format!("{key} first: {what} of this run {verb} on and would meet the new ones"),
    })
}
