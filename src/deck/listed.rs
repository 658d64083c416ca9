//! What a tab lists: the numbers of its entries in their order, however many there are, and the place of the one that the
//! keys are at.

use super::book::Column;
use super::entries::{Earlier, Entries, Sieve, TASK};
use super::model::{Above, Scroll, UiState};
use crate::run::StepState;

/// The entries of a tab before those that are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    pub(super) column: &'a Column,
    pub(super) sieve: Sieve,
    /// So many of those that the filter leaves.
    pub(super) len: usize,
    /// The number of the first of all, where they are numbered one by one.
    pub(super) first: Option<u64>,
}

impl Before<'_> {
    fn number(&self, nth: usize) -> Option<u64> {
        let place = self.column.place(self.sieve, nth).filter(|_| nth < self.len)?;
        match self.first {
            Some(first) => Some(first + place as u64),
            None => self.column.number(place),
        }
    }

    /// How many of them have a smaller number.
    fn below(&self, number: u64) -> usize {
        let below = match self.first {
            Some(first) => {
                let places = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
                self.column.among(self.sieve, places)
            }
            None => self.column.before(self.sieve, number),
        };
        below.min(self.len)
    }
}

/// What is listed of a tab, and where the keys are.
#[derive(Clone, Debug, Default)]
pub struct Listed<'a> {
    /// The task comes first.
    pub(super) task: bool,
    /// Then what is read again.
    pub(super) before: Option<Before<'a>>,
    /// At last the numbers of what is kept.
    pub(super) kept: Vec<u64>,
    /// The place of the entry that the keys are at.
    pub at: usize,
    /// The keys stay at the newest entry.
    pub follows: bool,
    /// What is left out.
    pub sieve: Sieve,
}

impl Listed<'_> {
    /// How many entries there are before those that are kept.
    pub(super) fn before_len(&self) -> usize {
        usize::from(self.task) + self.before.map_or(0, |before| before.len)
    }

    /// How many entries are listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before_len() + self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the entry at a place; the oldest is at 0.
    #[must_use]
    pub fn number(&self, place: usize) -> Option<u64> {
        if let Some(nth) = place.checked_sub(self.before_len()) {
            return self.kept.get(nth).copied();
        }
        match place.checked_sub(usize::from(self.task)) {
            Some(nth) => self.before?.number(nth),
            None => Some(TASK),
        }
    }

    /// The number of the newest entry.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.number(self.len().checked_sub(1)?)
    }

    /// The place of the first entry whose number is not smaller than this one.
    #[must_use]
    pub fn place(&self, number: u64) -> usize {
        let task = usize::from(self.task && number > TASK);
        let before = self.before.map_or(0, |before| before.below(number));
        task + before + self.kept.partition_point(|kept| *kept < number)
    }
}

/// Moves the keys among the entries of the tab that a step shows; at the end they follow. Where they go before the entries
/// that are kept, it is noted how far.
pub fn scroll(ui: &mut UiState, step: &StepState, entries: Entries<'_>, scroll: Scroll) {
    let listed = entries.listed(ui, step);
    let by = match scroll {
        Scroll::Rows(n) => n as isize,
        Scroll::Start => isize::MIN,
        Scroll::End => isize::MAX,
        // How far that is depends on how high they are, and a position is one of a log.
        Scroll::Halves(_) | Scroll::Pages(_) | Scroll::To(_) => 0,
    };
    let tab = ui.tab(step.id);
    // Who goes on upwards while what is there is still read goes on from where the keys will be.
    let waits =
        ui.above.filter(|above| (above.step, above.tab) == (step.id, tab) && by < 0).map_or(0, |above| above.by);
    let beyond = (waits.saturating_add(by)).saturating_add_unsigned(listed.at);
    let unread = beyond < 0 && (more_comes(ui) || entries.earlier(step, tab) == Earlier::Unread);
    ui.above = listed.number(0).filter(|_| unread).map(|first| Above { step: step.id, tab, first, by: beyond });
    go_to(ui, step, &listed, listed.at.saturating_add_signed(by), by < 0);
}

/// Whether what happened is still read from its beginning: entries come before those that are listed.
pub fn more_comes(ui: &UiState) -> bool {
    ui.reading.is_some() && ui.frozen.is_none() && ui.replay.is_none()
}

/// What was gone to before the entries that were kept was read: the keys go there.
pub fn arrive(ui: &mut UiState, step: &StepState, entries: Entries<'_>, above: Above) {
    let listed = entries.listed(ui, step);
    go_to(ui, step, &listed, listed.place(above.first).saturating_add_signed(above.by), true);
}

fn go_to(ui: &mut UiState, step: &StepState, listed: &Listed<'_>, to: usize, back: bool) {
    let to = to.min(listed.len());
    let pane = ui.pane_mut(step.id);
    match listed.number(to) {
        Some(number) if to + 1 < listed.len() || listed.len() == 1 && back => {
            pane.cursor.insert(pane.tab, number);
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

    fn places(stage: &Stage) -> Listed<'_> {
        stage.entries().listed(&stage.ui, stage.feed.state.step(StepId(2)).unwrap())
    }

    #[test]
    fn the_keys_stay_at_an_entry_while_others_come_and_follow_again_at_the_end() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2kk");
        let before = places(&stage);
        assert_eq!((before.len(), before.at, before.follows), (4, 1, false));
        let at = before.number(1).unwrap();
        let step = &mut stage.feed.state.steps[2];
        let call = step.recent_tools[0].clone();
        step.recent_tools.push_back(call);
        step.tool_count += 1;
        let after = places(&stage);
        assert_eq!((after.len(), after.number(after.at)), (5, Some(at)));
        // The oldest call is kept no longer.
        stage.feed.state.steps[2].recent_tools.drain(..2);
        assert_eq!(places(&stage).at, 0);
        stage.keys("jjjjjj");
        assert!(places(&stage).follows);
        stage.keys("gG");
        assert!(places(&stage).follows);
    }

    #[test]
    fn the_keys_stay_at_an_open_call_while_others_end_and_when_it_ends_itself() {
        let mut stage = Stage::new(100, 30);
        let open = stage.feed.state.steps[2].open[0].clone();
        let call = |seq: u64| crate::run::OpenCall { seq, args: format!("call {seq}"), ..open.clone() };
        stage.feed.state.steps[2].open = vec![call(4), call(6), call(9)];
        stage.feed.state.steps[2].tool_count += 2;
        stage.keys("2k");
        let at = |stage: &Stage| {
            let listed = places(stage);
            let number = listed.number(listed.at).unwrap();
            (listed.at, Entries::open_call(stage.feed.state.step(StepId(2)).unwrap(), number).cloned())
        };
        let before = places(&stage).len();
        assert_eq!(at(&stage), (before - 2, Some(call(6))));
        // Another one ends, and stands before those that are open.
        let end = |stage: &mut Stage, place: usize| {
            let step = &mut stage.feed.state.steps[2];
            let ended = step.open.remove(place);
            let like = step.recent_tools[0].clone();
            step.recent_tools.push_back(crate::run::ToolCall {
                call: ended.call,
                tool: ended.tool,
                args: ended.args,
                path: ended.path,
                started_at: Some(ended.started_at),
                ..like
            });
        };
        end(&mut stage, 2);
        assert_eq!(at(&stage), (before - 1, Some(call(6))));
        // It ends itself.
        end(&mut stage, 1);
        let step = stage.feed.state.step(StepId(2)).unwrap();
        let number = stage.entries().number_of(step, &call(6)).unwrap();
        assert!(matches!(stage.entries().call(step, number), Some(crate::deck::entries::Call::Ended(call, None))
            if call.args == "call 6"));
        assert_eq!(stage.entries().number_of(step, &call(5)), None);
    }

    #[test]
    fn who_goes_before_the_first_while_what_happened_is_read_gets_there() {
        let mut stage = Stage::new(100, 30);
        stage.keys("3");
        stage.ui.reading = Some(40);
        stage.keys("g");
        let above = stage.ui.above.unwrap();
        assert!(above.is_first() && places(&stage).at == 0);
        // Fewer than all the way is another thing.
        stage.keys("Gkkkkkkkkk");
        assert!(stage.ui.above.is_some_and(|above| !above.is_first() && above.by < 0), "{:?}", stage.ui.above);
        stage.ui.reading = None;
        stage.keys("Gg");
        assert_eq!(stage.ui.above, None);
    }

    #[test]
    fn a_filter_leaves_what_it_says() {
        let mut stage = Stage::new(100, 30);
        stage.keys("2&");
        assert_eq!((places(&stage).len(), places(&stage).sieve), (1, Sieve::Errors));
        stage.keys("&3");
        let all = places(&stage).len();
        stage.keys("&");
        assert_eq!((all, places(&stage).len(), places(&stage).sieve), (5, 3, Sieve::Text));
        stage.keys("&");
        assert_eq!((places(&stage).len(), places(&stage).sieve), (0, Sieve::Errors));
        stage.keys("&");
        assert_eq!(places(&stage).sieve, Sieve::All);
    }
}
