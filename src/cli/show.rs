//! How a run is shown: in the deck or as text, and what is said at the end.

use std::io::{IsTerminal, Write};

use super::args::{Output, ShowArgs};
use super::out;
use crate::engine;
use crate::headless::summary;

/// Whether the deck cannot or shall not be shown; says why on stderr when nobody asked for it (product 2).
pub fn is_headless(show: &ShowArgs) -> bool {
    if show.no_tui || show.output.is_some_and(|output| output != Output::Text) {
        return true;
    }
    let var = |name| std::env::var(name).unwrap_or_default();
    let reason = if !std::io::stdin().is_terminal() {
        "standard input is no terminal"
    } else if !std::io::stdout().is_terminal() {
        "standard output is no terminal"
    } else if var("TERM") == "dumb" {
        "TERM is dumb"
    } else if !matches!(var("CI").as_str(), "" | "0" | "false") {
        "CI is set"
    } else {
        return false;
    };
    eprintln!("subdeck: {reason}, so this goes on as --no-tui");
    true
}

/// The summary goes where a person reads it: to stdout after text, else to stderr, which is not data.
pub fn tell_summary(state: &crate::run::RunState, output: Output) {
    let text = summary(state, engine::now());
    match output {
        // A closed stdout is no reason to fail a run that has ended.
        Output::Text => drop(out::print(&format!("\n{text}"))),
        Output::Jsonl | Output::Json => drop(std::io::stderr().write_all(text.as_bytes())),
    }
}
