//! One frame: what is read for it, and what it is drawn of.

use std::io;
use std::sync::Arc;

use super::kept::Asked;
use super::{App, Moment, Source, wall};
use crate::deck::changes::Diff;
use crate::deck::feed::Hands;
use crate::deck::model::{Position, Tab, UiState};
use crate::deck::reading;
use crate::deck::terminal::Screen;
use crate::deck::view::{self, Scene, layout};
use crate::deck::window::{Windows, fetch};
use crate::text::SafeText;

/// Why nothing is written from a replay.
const REPLAYED: &str = "this plays again what happened";
/// Of a log that is followed so many bytes are looked at in a frame to count its lines.
const COUNTED: u64 = 1024 * 1024;
/// Messages of transcripts that are kept at most.
const KEPT_MESSAGES: usize = 1000;

impl<S: Source> App<'_, S> {
    pub(super) fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let windows = self.windows();
        self.name_window(screen)?;
        let drawn = self.scene(|scene, ui| {
            view::limit(scene, ui, &windows);
            screen.frame(ui.size, |buf| view::draw(buf, scene, ui, &windows))
        });
        self.kept.logs = windows.logs;
        drawn
    }

    /// Brings all that a picture decides to where it would be if it were drawn now.
    pub(super) fn settle_picture(&mut self) {
        let windows = self.windows();
        self.scene(|scene, ui| view::limit(scene, ui, &windows));
        self.kept.logs = windows.logs;
    }

    /// What the tab says that the selected step shows, where that is neither its output nor a list of entries.
    pub(super) fn tab_text(&mut self) -> Vec<SafeText> {
        let windows = self.windows();
        self.scene(|scene, ui| view::tab_text(scene, ui, &windows))
    }

    /// Does something with what a frame is drawn of.
    pub(super) fn scene<R>(&mut self, look: impl FnOnce(&Scene<'_>, &mut UiState) -> R) -> R {
        let wall = wall();
        if !matches!(self.moment, Some(Moment::Frozen { .. })) {
            self.look_up_facts();
        }
        let hands = self.source.hands();
        let read_only = self.why_read_only(&hands);
        let trouble = self.source.troubles().into_iter().next();
        let (then, now, hands) = match &self.moment {
            Some(moment @ Moment::Frozen { at, .. }) => (Some(moment.known()), *at, hands),
            // Whoever had the run then had it in hand.
            Some(moment @ Moment::Replay(_)) => (Some(moment.known()), self.replay_clock(), Hands::Live),
            None => {
                // Nobody knows how long the steps of a lost run went on after its last sign.
                let last = self.source.state().last_update.filter(|_| matches!(hands, Hands::Lost(_) | Hands::Gone(_)));
                (None, last.unwrap_or(wall), hands)
            }
        };
        let newest = (self.source.state(), self.newest.as_ref().unwrap_or(&self.history));
        let (state, history) = then.map_or(newest, |then| (&then.state, &then.history));
        let scene = Scene {
            state,
            hands: &hands,
            read_only: read_only.as_ref(),
            trouble: trouble.as_ref(),
            now,
            wall,
            reveal: self.ui.reveal,
            theme: self.theme,
            history,
            older: &self.older,
            facts: &self.facts.1,
            facts_of: self.facts.0,
            zone: &self.zone,
        };
        look(&scene, &mut self.ui)
    }

    pub(super) fn windows(&mut self) -> Windows {
        let mut windows = Windows::default();
        self.kept.forget_old();
        self.fetch_older();
        let tab = self.ui.zoom.then(|| self.ui.tab(self.ui.selected));
        if tab != Some(Tab::Changes) {
            self.git.forget();
        }
        if tab == Some(Tab::Transcript) {
            self.read_messages();
            windows.messages = Arc::clone(&self.messages);
        } else if tab == Some(Tab::Changes) && self.ui.replay.is_none() {
            self.ask_git();
            windows.diff = self.git.diff.clone();
        } else if tab == Some(Tab::Changes) {
            let folder = self.source.folder(self.ui.selected).unwrap_or_default();
            let diff = Diff::failed(self.ui.selected, &folder.display().to_string(), "git tells of now, not of then");
            windows.diff = Some(Arc::new(diff));
        }
        for (id, size) in layout::visible_logs(&self.ui, self.shown()) {
            let then = self.length_then(id);
            let limit = then.map(|known| known.unwrap_or(0));
            let asked = Asked { size, limit, wrap: self.ui.wrap, fold: self.ui.fold, reveal: self.ui.reveal };
            let known = self.kept.take(id, asked, &self.ui.pane(id));
            let mut window = known.unwrap_or_else(|| fetch(&mut self.source, &mut self.ui, id, size, limit));
            self.kept.asked.insert(id, (asked, self.ui.pane(id).output));
            window.untimed = then == Some(None);
            let scrolled = matches!(self.ui.pane(id).output, Position::At { .. });
            // Whoever scrolls has all lines counted; a log that is followed on the whole screen a little a frame.
            if self.ui.zoom && !scrolled && self.ui.replay.is_none() {
                self.source.index(id, COUNTED);
            }
            if id == self.ui.selected
                && self.ui.replay.is_none()
                && (scrolled || self.ui.zoom)
                && let Some(told) = window.told_by(self.ui.match_in(id, Tab::Output))
            {
                window.line = self.source.line_number(id, told);
            }
            if let Some(at) = self.ui.match_in(id, Tab::Output).filter(|_| id == self.ui.selected) {
                self.strayed = window.here.is_none() && !window.has(at);
            }
            self.counted.insert(id, window.len);
            if let Some(unread) = self.ui.unread.get_mut(&id) {
                *unread = 0;
            }
            windows.logs.insert(id, window);
        }
        windows
    }

    /// Reads the messages that a transcript may show around the entry that the keys are at.
    fn read_messages(&mut self) {
        let (state, entries) = self.then();
        let Some(step) = state.step(self.ui.selected) else { return };
        let listed = entries.listed(&self.ui, step);
        let high = usize::from(self.ui.size.1);
        let places: Vec<u64> = (listed.at.saturating_sub(high)..listed.at + high)
            .map_while(|place| listed.number(place))
            .filter_map(|number| entries.said(step.id, number))
            .filter(|said| said.what.is_message())
            .filter_map(|said| said.place)
            .filter(|place| !self.messages.contains_key(place))
            .collect();
        if places.is_empty() {
            return;
        }
        let messages = Arc::make_mut(&mut self.messages);
        if messages.len() > KEPT_MESSAGES {
            messages.clear();
        }
        for place in places {
            messages.insert(place, reading::message(&self.source, place));
        }
    }

    pub(super) fn name_window(&mut self, screen: &mut Screen) -> io::Result<()> {
        let state = self.source.state();
        let name = state.name.as_deref().unwrap_or(state.id.as_str());
        let title = SafeText::line(&format!("{name} {}", self.theme.own_run_face(state).word));
        if title != self.title {
            screen.title(&title)?;
            self.title = title;
        }
        Ok(())
    }

    pub(super) fn look_up_facts(&mut self) {
        let selected = self.ui.selected;
        let step = self.source.state().step(selected);
        let then = step.map(|step| (step.started_at, step.pid, step.phase.is_terminal()));
        if self.facts.0 != Some(selected) || self.facts_then != then {
            self.facts_then = then;
            self.facts = (Some(selected), self.source.facts(selected));
        }
    }

    pub(super) fn why_read_only(&self, hands: &Hands) -> Option<SafeText> {
        match hands {
            _ if self.ui.replay.is_some() => Some(SafeText::line(REPLAYED)),
            Hands::Lost(_) => Some(SafeText::line("the runner is gone")),
            Hands::Gone(what) => Some(SafeText::line(&format!("the run's directory {what}"))),
            _ => self.read_only.clone(),
        }
    }
}
