//! How a run is shown: in the deck or as text, and what is said at the end.

use std::io::{IsTerminal, Write};

use super::args::{Output, ShowArgs};
use super::out;
use super::shown::Fate;
use crate::engine;
use crate::headless::summary;
use crate::rundir::{Follower, Health};
use crate::text::SafeText;

/// Whether the deck cannot or shall not be shown; says why on stderr when nobody asked for it (product 2).
pub fn is_headless(show: &ShowArgs) -> bool {
    if show.no_tui || show.output.is_some_and(|output| output != Output::Text) {
        return true;
    }
    let Some(reason) = no_deck() else { return false };
    tell!("subdeck: {reason}, so this goes on as --no-tui");
    true
}

/// Why a deck cannot be shown here; `None` when it can.
pub fn no_deck() -> Option<&'static str> {
    let var = |name| std::env::var(name).unwrap_or_default();
    Some(if !std::io::stdin().is_terminal() {
        "standard input is no terminal"
    } else if !std::io::stdout().is_terminal() {
        "standard output is no terminal"
    } else if var("TERM") == "dumb" {
        "TERM is dumb"
    } else if !matches!(var("CI").as_str(), "" | "0" | "false") {
        "CI is set"
    } else {
        return None;
    })
}

/// Says that the status of a run cannot be read and why, as `ls` does; whether it is so.
pub fn tell_unreadable(follower: &Follower) -> bool {
    let Some(why) = follower.unreadable() else { return false };
    let line = format!("the status of run {} is unreadable: {why}", follower.dir().id_str());
    tell!("subdeck: {}", SafeText::line(&line));
    true
}

/// Says that the runner lives and answers nothing, and what can be done; whether it is so.
pub fn tell_suspended(follower: &Follower) -> bool {
    let Some(what) = follower.suspended() else { return false };
    tell!("subdeck: {}", SafeText::line(what));
    true
}

/// The summary goes where a person reads it: to stdout after text, else to stderr, which is not data. A stdout that takes
/// nothing is no reason to fail a run that has ended.
pub fn tell_summary(state: &crate::run::RunState, output: Output, fate: Fate) {
    let text = summary(state, engine::now());
    match (output, fate) {
        (Output::Text, Fate::Whole) => {
            if let Err(error) = out::print(&format!("\n{text}")) {
                out::complain(&error);
            }
        }
        // One line said so, and nothing else could be read there.
        (Output::Text, Fate::Unwritable) => {}
        // Whoever ended the printing does not wait for a reader.
        (Output::Text, Fate::Cut) | (Output::Jsonl | Output::Json, _) => {
            drop(std::io::stderr().write_all(text.as_bytes()));
        }
    }
}

/// Whether nothing at all can be known of a run; its exit code would be made up.
pub fn is_unreadable(follower: &Follower) -> bool {
    matches!(follower.health(), Health::Unreadable(_))
}
