//! The windows of the last frame. A frame that a key asked for between two looks at the disk shows the logs as they
//! were at the last one: under a flood of output, reading them is half of what a frame costs.

use std::collections::BTreeMap;
use std::time::Instant;

use super::FRAME;
use crate::deck::model::{PaneState, Position};
use crate::deck::window::Window;
use crate::run::StepId;

/// What a window was read for, beside where its pane stood.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// The inside of the pane in cells.
    pub size: (u16, u16),
    /// Nothing behind this is shown.
    pub limit: Option<u64>,
    pub wrap: bool,
    pub fold: bool,
    pub reveal: bool,
}

/// The windows of the last frame, and what each was read for.
#[derive(Default)]
pub(super) struct Kept {
    pub logs: BTreeMap<StepId, Window>,
    pub asked: BTreeMap<StepId, (Asked, Position)>,
    /// When the oldest of them was read.
    since: Option<Instant>,
}

impl Kept {
    /// Lets go of windows that are as old as a frame, whatever was heard of their logs.
    pub fn forget_old(&mut self) {
        if self.since.is_none_or(|since| since.elapsed() >= FRAME) {
            self.forget();
            self.since = Some(Instant::now());
        }
    }

    /// Something that all windows hang on has changed.
    pub fn forget(&mut self) {
        self.logs.clear();
        self.asked.clear();
    }

    /// The log of a step has changed.
    pub fn changed(&mut self, step: StepId) {
        self.logs.remove(&step);
    }

    /// The window of a step, if it would be the same if it were read again.
    pub fn take(&mut self, step: StepId, asked: Asked, pane: &PaneState) -> Option<Window> {
        let window = self.logs.remove(&step)?;
        let same = self.asked.get(&step) == Some(&(asked, pane.output)) && pane.asked.is_empty();
        same.then_some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_serves_again_until_anything_that_it_shows_may_be_another() {
        let asked = Asked { size: (80, 20), limit: None, wrap: false, fold: true, reveal: false };
        let (step, pane) = (StepId(1), PaneState::default());
        let kept = || {
            let mut kept = Kept { since: Some(Instant::now()), ..Kept::default() };
            kept.logs.insert(step, Window { len: 7, ..Window::default() });
            kept.asked.insert(step, (asked, pane.output));
            kept
        };
        assert_eq!(kept().take(step, asked, &pane).map(|window| window.len), Some(7));
        assert!(kept().take(step, Asked { size: (80, 21), ..asked }, &pane).is_none());
        assert!(kept().take(step, Asked { limit: Some(3), ..asked }, &pane).is_none());
        assert!(kept().take(step, Asked { reveal: true, ..asked }, &pane).is_none());
        let scrolled = PaneState { asked: vec![crate::deck::model::Scroll::End], ..PaneState::default() };
        assert!(kept().take(step, asked, &scrolled).is_none());
        let elsewhere = PaneState { output: Position::At { top: Default::default(), seen: 7 }, ..PaneState::default() };
        assert!(kept().take(step, asked, &elsewhere).is_none());
        let mut grown = kept();
        grown.changed(step);
        assert!(grown.take(step, asked, &pane).is_none());
        let mut old = kept();
        old.since = Instant::now().checked_sub(FRAME);
        old.forget_old();
        assert!(old.take(step, asked, &pane).is_none());
    }
}
