//! A look at the disk: what is new there is taken in by all that hangs on it.

use std::sync::Arc;

use super::{App, Moment, Source};
use crate::deck::attention::since_then;
use crate::deck::history::History;
use crate::deck::model::ViewMode;
use crate::deck::sums::Sums;
use crate::deck::view::layout;

impl<S: Source> App<'_, S> {
    /// Looks at the disk. Returns whether something visible changed.
    pub(super) fn take_news(&mut self) -> bool {
        let at_calls = if self.moment.is_none() { self.open_calls_at() } else { Vec::new() };
        let changes = self.source.poll();
        if changes.state {
            self.kept.forget();
        }
        for id in &changes.output {
            self.kept.changed(*id);
        }
        let reading = self.source.reading();
        let progressed = std::mem::replace(&mut self.ui.reading, reading) != reading;
        if changes.state {
            self.ui.inside = self.source.inside();
        }
        if reading.is_none() {
            self.newest = None;
        } else if self.newest.is_none() {
            let mut newest = History::default();
            newest.add(self.source.state(), &self.source.newest(), &[]);
            self.newest = Some(newest);
        }
        if changes.anew || changes.gone {
            self.forget_log(!changes.anew);
        }
        self.history.add(self.source.state(), &changes.news, &changes.places);
        self.older.add(&changes.news, &changes.places);
        self.history.miss(&changes.cut);
        self.stay_at_calls(&at_calls);
        self.go_above();
        if (changes.state || self.ui.known.is_none()) && self.moment.is_none() {
            self.ui.known = Some(Arc::new(Sums::of(self.source.state())));
        }
        if self.moment.is_none() {
            self.ui.settle(self.source.state());
        }
        if changes.state || !changes.news.is_empty() {
            self.note_news();
        }
        let missed = changes.state && self.count_missed();
        let answered = self.take_answers();
        let unread = self.count_unread(&changes.output);
        if answered || progressed || changes.state || !changes.news.is_empty() && reading.is_none() {
            return self.moment.is_none() || missed;
        }
        if self.moment.is_some() {
            return missed;
        }
        let visible = layout::visible_logs(&self.ui, self.shown());
        let badges = self.ui.mode == ViewMode::Tabs && !self.ui.zoom;
        badges && unread || changes.output.iter().any(|id| visible.iter().any(|(v, _)| v == id))
    }

    /// Counts who has come to need a person while the picture stands still. Whether that is another number.
    fn count_missed(&mut self) -> bool {
        let Some(Moment::Frozen { known, .. }) = &self.moment else { return false };
        let missed = since_then(self.source.state(), &known.state, &self.ui);
        std::mem::replace(&mut self.ui.missed, missed) != missed
    }
}
