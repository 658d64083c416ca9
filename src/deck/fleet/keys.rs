//! The one table of what keys do in the fleet; its help and its footer read it.

use crossterm::event::{KeyCode, KeyEvent};

use crate::deck::keymap::{Key, ch, code, ctrl};

/// Everything that a key can do in the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Act {
    Open,
    Replay,
    Start,
    NextNeed,
    Group,
    Sort,
    Show,
    Words,
    Search,
    SearchNext,
    SearchPrevious,
    Down,
    Up,
    First,
    Last,
    PageDown,
    PageUp,
    Back,
    Copy,
    Repaint,
    Help,
    Suspend,
    Quit,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What it does.
    pub act: Act,
    /// The word in the footer; empty for what is only in the help.
    pub short: &'static str,
    /// The sentence in the help.
    pub help: &'static str,
    /// The keys, the best one first.
    pub keys: &'static [Key],
}

/// The table, in the order of the help.
pub const TABLE: &[Row] = &[
    Row {
        act: Act::Open,
        short: "open",
        help: "open the selected run; esc comes back here",
        keys: &[code(KeyCode::Enter), ch('z')],
    },
    Row { act: Act::Replay, short: "", help: "play the selected run again, where it is over", keys: &[ch('P')] },
    Row { act: Act::Start, short: "start", help: "start a run: agent, runner, folder, task", keys: &[ch('c')] },
    Row { act: Act::NextNeed, short: "jump", help: "the next run that needs a person", keys: &[ch('!')] },
    Row { act: Act::Group, short: "group", help: "group by state, project, root, day, not at all", keys: &[ch('v')] },
    Row { act: Act::Sort, short: "sort", help: "sort by age, need, cost, tokens, time, name", keys: &[ch('s')] },
    Row { act: Act::Show, short: "show", help: "show all, running, needing you, trouble, today", keys: &[ch('f')] },
    Row { act: Act::Words, short: "filter", help: "list only the runs that have these words", keys: &[ch('&')] },
    Row { act: Act::Search, short: "find", help: "look for a run that has these words", keys: &[ch('/')] },
    Row { act: Act::SearchNext, short: "", help: "the next run that has them", keys: &[ch('n')] },
    Row { act: Act::SearchPrevious, short: "", help: "the one before", keys: &[ch('N')] },
    Row { act: Act::Down, short: "", help: "next run", keys: &[ch('j'), code(KeyCode::Down)] },
    Row { act: Act::Up, short: "", help: "previous run", keys: &[ch('k'), code(KeyCode::Up)] },
    Row { act: Act::First, short: "", help: "first run", keys: &[ch('g'), code(KeyCode::Home)] },
    Row { act: Act::Last, short: "", help: "last run", keys: &[ch('G'), code(KeyCode::End)] },
    Row { act: Act::PageDown, short: "", help: "a page down", keys: &[code(KeyCode::PageDown), ctrl('d')] },
    Row { act: Act::PageUp, short: "", help: "a page up", keys: &[code(KeyCode::PageUp), ctrl('u')] },
    Row { act: Act::Back, short: "", help: "let go of the words, then of what is shown", keys: &[code(KeyCode::Esc)] },
    Row { act: Act::Copy, short: "", help: "the path of the selected run to the clipboard", keys: &[ch('y')] },
    Row { act: Act::Repaint, short: "", help: "draw everything anew", keys: &[ctrl('l')] },
    Row { act: Act::Help, short: "help", help: "these keys", keys: &[ch('?'), code(KeyCode::F(1))] },
    Row { act: Act::Suspend, short: "", help: "suspend the fleet; runs go on", keys: &[ctrl('z')] },
    Row { act: Act::Quit, short: "quit", help: "leave; runs go on", keys: &[ch('q'), ctrl('c')] },
];

/// What a key means.
#[must_use]
pub fn lookup(event: KeyEvent) -> Option<Act> {
    let key = Key::from(event);
    TABLE.iter().find(|row| row.keys.contains(&key)).map(|row| row.act)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        let mut seen = HashSet::new();
        for key in TABLE.iter().flat_map(|row| row.keys) {
            assert!(seen.insert(*key), "{key:?}");
        }
    }
}
