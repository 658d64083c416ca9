//! What happened before everything that is kept, for who goes there: the recording is read in slices between two looks at the
//! keys, and what comes into sight of it before a frame is drawn.

use super::{App, Source};
use crate::deck::entries::{self, Earlier, Entries};
use crate::deck::history::History;
use crate::deck::listed;
use crate::deck::model::{Above, Tab};
use crate::run::{OpenCall, StepId};

/// As many bytes are read between two looks at the keys.
const SLICE: u64 = 1024 * 1024;
/// So many entries behind the one that the keys are at are at hand for it: what a message calls follows it.
const BEHIND: usize = 64;

impl<S: Source> App<'_, S> {
    /// Whether there is something to read that somebody waits for. Who goes elsewhere meanwhile does not, and it is read on
    /// when somebody does again.
    pub(super) fn wants_older(&self) -> bool {
        if self.sifts_older() {
            return true;
        }
        let (state, entries) = self.then();
        let tab = self.ui.tab(self.ui.selected);
        let shown = self.ui.zoom && (entries::lists(tab) || tab == Tab::Changes);
        shown && state.step(self.ui.selected).is_some_and(|step| entries.wanted(&self.ui, step))
    }

    /// Reads the next slice. Returns whether there is something to show.
    pub(super) fn read_older(&mut self) -> bool {
        if !self.wants_older() {
            return false;
        }
        let before = self.older.reading();
        self.older.begin(|| self.source.tape());
        if self.older.read_on(SLICE) {
            return self.older.reading() != before;
        }
        self.go_above();
        true
    }

    /// Puts the keys where they were to go before the entries that were kept, once everything there is listed.
    pub(super) fn go_above(&mut self) {
        let Some(above) = self.ui.above else { return };
        let Self { source, history, older, ui, moment, .. } = self;
        let (state, history) = super::then(source, history, moment.as_ref());
        let entries = Entries { history, older };
        let Some(step) = state.step(above.step) else { return };
        let waits = listed::more_comes(ui) || entries.earlier(step, above.tab) == Earlier::Unread;
        if !waits && ui.tab(above.step) == above.tab {
            ui.above = None;
            listed::arrive(ui, step, entries, above);
        }
    }

    /// The event log is another one: what was read of it before is let go of. What is `kept` stays where there is none
    /// any more. Who wanted to go to the first entry goes to the first that there is now.
    pub(super) fn forget_log(&mut self, kept: bool) {
        self.older.forget();
        self.messages = std::sync::Arc::default();
        self.ui.above = self.ui.above.filter(Above::is_first);
        if !kept {
            self.history = History::default();
        }
    }

    /// Has at hand what is listed around the entry that the keys are at.
    pub(super) fn fetch_older(&mut self) {
        let (step, tab) = (self.ui.selected, self.ui.tab(self.ui.selected));
        if !self.ui.zoom || !entries::lists(tab) || self.older.open().is_none() {
            return;
        }
        let (state, entries) = self.then();
        let Some(found) = state.step(step) else { return };
        let listed = entries.listed(&self.ui, found);
        let high = usize::from(self.ui.size.1);
        let around = listed.at.saturating_sub(high)..listed.at + (2 * high).max(BEHIND);
        let needs = entries.needs(found, tab, &listed, around);
        self.older.fetch(&needs);
    }

    /// The open calls that the keys are at, by step.
    pub(super) fn open_calls_at(&self) -> Vec<(StepId, OpenCall)> {
        let (state, _) = self.then();
        let at = self.ui.panes.iter().filter_map(|(step, pane)| Some((*step, *pane.cursor.get(&Tab::Tools)?)));
        let open = at.filter_map(|(step, number)| Some((step, Entries::open_call(state.step(step)?, number)?.clone())));
        open.collect()
    }

    /// Keeps the keys at the calls that they were at, also at those that have ended since.
    pub(super) fn stay_at_calls(&mut self, calls: &[(StepId, OpenCall)]) {
        for (step, call) in calls {
            let (state, entries) = self.then();
            let Some(number) = state.step(*step).and_then(|found| entries.number_of(found, call)) else { continue };
            self.ui.pane_mut(*step).cursor.insert(Tab::Tools, number);
        }
    }

    /// Whether what is looked through has entries that were not read yet.
    pub(super) fn waits_for_older(&self, step: StepId, tab: Tab) -> bool {
        let (state, entries) = self.then();
        state.step(step).is_some_and(|step| entries.earlier(step, tab) == Earlier::Unread)
    }
}
