//! The tabs that list things: which entries there are, which are left out, and which one the keys are at.

use super::history::{History, Tone};
use super::model::{PaneState, Scroll, Tab, UiState};
use crate::run::{StepState, ToolOutcome};

/// Which entries of a tab are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sieve {
    /// All.
    #[default]
    All,
    /// What went wrong.
    Errors,
    /// What was said, without calls and what they gave.
    Text,
}

impl Sieve {
    /// The next one that means something on this tab.
    #[must_use]
    pub const fn next(self, tab: Tab) -> Self {
        match (self, tab) {
            (Self::All, Tab::Transcript) => Self::Text,
            (Self::All, _) | (Self::Text, _) => Self::Errors,
            (Self::Errors, _) => Self::All,
        }
    }

    /// What is listed, for the frame; nothing when all is.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Errors => Some("errors only"),
            Self::Text => Some("text only"),
        }
    }
}

/// Whether a tab lists entries that can be opened.
#[must_use]
pub const fn lists(tab: Tab) -> bool {
    matches!(tab, Tab::Tools | Tab::Transcript | Tab::Events)
}

/// The number of a call by its place among those that are kept: it stays the same when more calls begin or end.
#[must_use]
pub fn call_number(step: &StepState, place: usize) -> u64 {
    let kept = step.recent_tools.len() + step.open.len();
    step.tool_count.max(kept as u64) - kept as u64 + place as u64
}

/// The number of the task in a transcript, before everything that was said.
pub const TASK: u64 = 0;

/// The numbers of the entries that are listed, oldest first.
#[must_use]
pub fn numbers(tab: Tab, sieve: Sieve, step: &StepState, history: &History) -> Vec<u64> {
    let bad = sieve == Sieve::Errors;
    match tab {
        Tab::Tools => {
            let ended = step.recent_tools.iter().map(|c| !matches!(c.outcome, Some(ToolOutcome::Ok) | None));
            let all = ended.chain(step.open.iter().map(|_| false));
            all.enumerate().filter(|(_, wrong)| *wrong || !bad).map(|(n, _)| call_number(step, n)).collect()
        }
        Tab::Transcript => {
            let said = history.said.get(&step.id);
            // The task stands before everything that is kept, as long as nothing was let go.
            let whole = said.is_none_or(|said| said.len() < History::KEPT);
            let task = (step.has_task && whole && !bad).then_some(TASK);
            let said = said.into_iter().flatten();
            let said = said.filter(|s| match sieve {
                Sieve::All => true,
                Sieve::Errors => s.is_bad(),
                Sieve::Text => s.is_message(),
            });
            task.into_iter().chain(said.map(|s| s.seq)).collect()
        }
        Tab::Events => history.of(step.id).filter(|e| !bad || e.tone == Tone::Bad).map(|e| e.seq).collect(),
        Tab::Output | Tab::Budget | Tab::Changes => Vec::new(),
    }
}

/// What is listed of a tab, and where the keys are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The numbers of the entries, oldest first.
    pub numbers: Vec<u64>,
    /// The place of the entry that the keys are at.
    pub at: usize,
    /// The keys stay at the newest entry.
    pub follows: bool,
    /// What is left out.
    pub sieve: Sieve,
}

/// What is listed of the tab that a step shows.
#[must_use]
pub fn listed(ui: &UiState, step: &StepState, history: &History) -> Listed {
    let none = PaneState::default();
    let pane = ui.panes.get(&step.id).unwrap_or(&none);
    let sieve = pane.sieve.get(&pane.tab).copied().unwrap_or_default();
    let numbers = numbers(pane.tab, sieve, step, history);
    let last = numbers.len().saturating_sub(1);
    match pane.cursor.get(&pane.tab) {
        // An entry that is kept no longer is followed by the oldest one that is.
        Some(cursor) => {
            let at = numbers.partition_point(|n| n < cursor).min(last);
            Listed { numbers, at, follows: false, sieve }
        }
        None => Listed { numbers, at: last, follows: true, sieve },
    }
}

/// Moves the keys among the entries of the tab that a step shows; at the end they follow.
pub fn scroll(ui: &mut UiState, step: &StepState, history: &History, scroll: Scroll) {
    let Listed { numbers, at, .. } = listed(ui, step, history);
    let page = isize::try_from(ui.size.1.saturating_sub(6).max(2)).unwrap_or(10);
    let by = match scroll {
        Scroll::Rows(n) => n as isize,
        Scroll::Halves(n) => n as isize * (page / 2).max(1),
        Scroll::Pages(n) => n as isize * page,
        Scroll::Start => isize::MIN,
        Scroll::End => isize::MAX,
        Scroll::To(_) => 0,
    };
    let to = at.saturating_add_signed(by).min(numbers.len());
    let pane = ui.pane_mut(step.id);
    match numbers.get(to) {
        Some(number) if to + 1 < numbers.len() || numbers.len() == 1 && by < 0 => {
            pane.cursor.insert(pane.tab, *number);
        }
        _ => {
            pane.cursor.remove(&pane.tab);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::StepId;

    fn places(stage: &Stage) -> Listed {
        listed(&stage.ui, stage.feed.state.step(StepId(2)).unwrap(), &stage.history)
    }

    #[test]
    fn the_keys_stay_at_an_entry_while_others_come_and_follow_again_at_the_end() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2kk");
        let before = places(&stage);
        assert_eq!((before.numbers.len(), before.at, before.follows), (4, 1, false));
        let step = &mut stage.feed.state.steps[2];
        let call = step.recent_tools[0].clone();
        step.recent_tools.push_back(call);
        step.tool_count += 1;
        let after = places(&stage);
        assert_eq!((after.numbers.len(), after.numbers[after.at]), (5, before.numbers[1]));
        // The oldest call is kept no longer.
        stage.feed.state.steps[2].recent_tools.drain(..2);
        assert_eq!(places(&stage).at, 0);
        stage.keys("jjjjjj");
        assert!(places(&stage).follows);
        stage.keys("gG");
        assert!(places(&stage).follows);
    }

    #[test]
    fn a_filter_leaves_what_it_says() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2&");
        assert_eq!((places(&stage).numbers.len(), places(&stage).sieve), (1, Sieve::Errors));
        stage.keys("&3");
        let all = places(&stage).numbers.len();
        stage.keys("&");
        assert_eq!((all, places(&stage).numbers.len(), places(&stage).sieve), (5, 3, Sieve::Text));
        stage.keys("&");
        assert_eq!((places(&stage).numbers.len(), places(&stage).sieve), (0, Sieve::Errors));
        stage.keys("&");
        assert_eq!(places(&stage).sieve, Sieve::All);
    }
}
