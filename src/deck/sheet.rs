//! What the tabs beside the output and the texts that one opens have in common: items one below the other, of which the
//! keys are at one, and a text that is looked for among them. Calls, what was said and what happened are items by their
//! numbers, lines by their places. Pure; who reads the items is the loop, who draws them is the view.

use std::ops::Range;

use crate::text::SafeText;

/// A text that is looked for. Letters match whatever their case when it has no capitals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    text: String,
    fold: bool,
}

impl Needle {
    /// What is looked for; `None` for no text.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fold = !text.chars().any(char::is_uppercase);
        let clean = SafeText::line(text);
        let text = if fold { clean.as_str().to_lowercase() } else { clean.to_string() };
        (!text.is_empty()).then_some(Self { text, fold })
    }

    /// A text as it is compared.
    #[must_use]
    pub fn folded(&self, text: &str) -> String {
        if self.fold { text.to_lowercase() } else { text.to_owned() }
    }

    /// Whether a line has it.
    #[must_use]
    pub fn is_in(&self, line: &str) -> bool {
        if self.fold { self.folded(line).contains(&self.text) } else { line.contains(&self.text) }
    }

    /// Whether any of these lines has it.
    pub fn is_in_any<'a>(&self, lines: impl IntoIterator<Item = &'a SafeText>) -> bool {
        lines.into_iter().any(|line| self.is_in(line.as_str()))
    }

    /// Where it is in a text that was [`Needle::folded`], in bytes.
    pub fn found_in<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        folded.match_indices(self.text.as_str()).map(|(at, found)| at..at + found.len())
    }

    /// How many of its characters leave ink.
    #[must_use]
    pub fn inked(&self) -> usize {
        self.text.chars().filter(|ch| *ch != ' ').count()
    }
}

/// Where one looks on from, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The item that the keys are at.
    pub from: u64,
    /// That item counts too: nothing was found yet.
    pub here: bool,
    /// Towards the first item.
    pub back: bool,
}

impl Goal {
    /// The place among the items that have the text, oldest first, of the one that is gone to.
    #[must_use]
    pub fn among(self, hits: &[u64]) -> Option<usize> {
        let Self { from, here, back } = self;
        if back {
            hits.partition_point(|hit| *hit < from || here && *hit == from).checked_sub(1)
        } else {
            let at = hits.partition_point(|hit| *hit < from || !here && *hit == from);
            (at < hits.len()).then_some(at)
        }
    }

    /// The one on the other side, where there is none on this one: the nearest to the end that one came to.
    #[must_use]
    pub const fn other_side(self, hits: &[u64]) -> Option<usize> {
        if self.back && !hits.is_empty() {
            Some(hits.len() - 1)
        } else if hits.is_empty() {
            None
        } else {
            Some(0)
        }
    }
}

/// Where lines that are read from their beginning are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The line that the keys are at.
    pub at: usize,
    /// The first visible one.
    pub top: usize,
}

impl Lines {
    /// Moves the keys by lines; by more than one the picture goes along.
    pub const fn move_by(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by);
        if by.unsigned_abs() > 1 {
            self.top = self.top.saturating_add_signed(by);
        }
    }

    /// Goes to a line, with a few of those before it in sight.
    pub const fn go_to(&mut self, at: usize) {
        self.at = at;
        if at < self.top || at >= self.top + BEFORE {
            self.top = at.saturating_sub(BEFORE);
        }
    }

    /// Keeps both within so many lines of which so many are visible, with the keys in sight.
    pub fn keep_within(&mut self, lines: usize, high: usize) {
        self.at = self.at.min(lines.saturating_sub(1));
        let lowest = (self.at + 1).saturating_sub(high);
        self.top = self.top.clamp(lowest, self.at.max(lowest)).min(lines.saturating_sub(high));
    }
}

/// Lines before the one that was gone to that tell what it is about.
const BEFORE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_capitals_matches_whatever_the_case() {
        let small = Needle::new("pool").unwrap();
        assert!(small.is_in("src/Pool.rs") && small.is_in("POOL") && !small.is_in("poo l"));
        let capital = Needle::new("Pool").unwrap();
        assert!(capital.is_in("src/Pool.rs") && !capital.is_in("pool"));
        assert_eq!(Needle::new(""), None);
        let twice = small.folded("Pool pOOl");
        assert_eq!(small.found_in(&twice).collect::<Vec<_>>(), [0..4, 5..9]);
    }

    #[test]
    fn the_next_item_is_behind_the_keys_in_the_direction_and_the_first_time_the_one_at_them_too() {
        let hits = [3, 7, 9];
        for (from, here, back, found) in [
            (7, true, false, Some(1)),
            (7, false, false, Some(2)),
            (7, true, true, Some(1)),
            (7, false, true, Some(0)),
            (0, false, false, Some(0)),
            (3, false, true, None),
            (9, false, false, None),
            (20, true, true, Some(2)),
            (20, true, false, None),
        ] {
            assert_eq!(Goal { from, here, back }.among(&hits), found, "{from} {here} {back}");
        }
        let goal = |back| Goal { from: 5, here: false, back };
        assert_eq!((goal(false).other_side(&hits), goal(true).other_side(&hits)), (Some(0), Some(2)));
        assert_eq!(goal(true).other_side(&[]), None);
    }

    #[test]
    fn the_keys_are_always_in_sight_and_never_behind_the_last_line() {
        let mut lines = Lines::default();
        let mut go = |by: isize, all: usize, high: usize| {
            lines.move_by(by);
            lines.keep_within(all, high);
            (lines.at, lines.top)
        };
        assert_eq!(go(1, 30, 10), (1, 0));
        assert_eq!(go(9, 30, 10), (10, 9));
        assert_eq!(go(1, 30, 10), (11, 9));
        assert_eq!(go(isize::MAX, 30, 10), (29, 20));
        assert_eq!(go(-1, 30, 10), (28, 20));
        assert_eq!(go(isize::MIN, 30, 10), (0, 0));
        assert_eq!(go(5, 3, 10), (2, 0));
        assert_eq!(go(0, 0, 10), (0, 0));
        let mut lines = Lines::default();
        lines.go_to(17);
        lines.keep_within(30, 10);
        assert_eq!((lines.at, lines.top), (17, 14));
        lines.go_to(15);
        lines.keep_within(30, 10);
        assert_eq!((lines.at, lines.top), (15, 14));
    }
}
