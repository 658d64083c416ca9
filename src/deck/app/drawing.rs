//! One frame: what is read for it, and what it is drawn of.

use std::io;
use std::sync::Arc;

use super::{App, Source, wall};
use crate::deck::entries;
use crate::deck::feed::Hands;
use crate::deck::model::{Position, Tab};
use crate::deck::reading;
use crate::deck::terminal::Screen;
use crate::deck::view::{self, Scene, layout};
use crate::deck::window::{Windows, fetch};
use crate::text::SafeText;

/// Messages of transcripts that are kept at most.
const KEPT_MESSAGES: usize = 1000;

impl<S: Source> App<'_, S> {
    pub(super) fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let wall = wall();
        if self.frozen.is_none() {
            let windows = self.windows();
            self.name_window(screen)?;
            self.look_up_facts();
            let hands = self.source.hands();
            let read_only = self.why_read_only(&hands);
            let trouble = self.source.troubles().into_iter().next();
            // Nobody knows how long the steps of a lost run went on after its last sign.
            let last = self.source.state().last_update.filter(|_| matches!(hands, Hands::Lost(_) | Hands::Gone(_)));
            let scene = Scene {
                state: self.source.state(),
                hands: &hands,
                read_only: read_only.as_ref(),
                trouble: trouble.as_ref(),
                now: last.unwrap_or(wall),
                wall,
                reveal: self.ui.reveal,
                theme: self.theme,
                history: self.newest.as_ref().unwrap_or(&self.history),
                facts: &self.facts.1,
                facts_of: self.facts.0,
                zone: &self.zone,
            };
            view::limit(&scene, &mut self.ui, &windows);
            return screen.frame(self.ui.size, |buf| view::draw(buf, &scene, &self.ui, &windows));
        }
        let hands = self.source.hands();
        let read_only = self.why_read_only(&hands);
        let trouble = self.source.troubles().into_iter().next();
        let windows = self.windows();
        let Some(frozen) = &self.frozen else { return Ok(()) };
        let scene = Scene {
            state: &frozen.state,
            hands: &hands,
            read_only: read_only.as_ref(),
            trouble: trouble.as_ref(),
            now: frozen.at,
            wall,
            reveal: self.ui.reveal,
            theme: self.theme,
            history: &frozen.history,
            facts: &self.facts.1,
            facts_of: self.facts.0,
            zone: &self.zone,
        };
        view::limit(&scene, &mut self.ui, &windows);
        screen.frame(self.ui.size, |buf| view::draw(buf, &scene, &self.ui, &windows))
    }

    pub(super) fn windows(&mut self) -> Windows {
        let mut windows = Windows::default();
        let tab = self.ui.zoom.then(|| self.ui.tab(self.ui.selected));
        if tab == Some(Tab::Transcript) {
            self.read_messages();
            windows.messages = Arc::clone(&self.messages);
        } else if tab == Some(Tab::Changes) {
            self.ask_git();
            windows.diff = self.git.diff.clone();
        }
        for (id, size) in layout::visible_logs(&self.ui, self.shown()) {
            let limit = self.frozen.as_ref().map(|f| f.lengths.get(&id).copied().unwrap_or(0));
            let mut window = fetch(&mut self.source, &mut self.ui, id, size, limit);
            if id == self.ui.selected
                && matches!(self.ui.pane(id).output, Position::At { .. })
                && let Some(row) = window.rows.last()
            {
                window.line = self.source.line_number(id, row.anchor.line);
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
        let frozen = self.frozen.as_ref();
        let (state, history) = frozen.map_or((self.source.state(), &self.history), |f| (&f.state, &f.history));
        let Some(step) = state.step(self.ui.selected) else { return };
        let listed = entries::listed(&self.ui, step, history);
        let high = usize::from(self.ui.size.1);
        let around = listed.at.saturating_sub(high)..(listed.at + high).min(listed.numbers.len());
        let (Some(said), Some(wanted)) = (history.said.get(&step.id), listed.numbers.get(around)) else { return };
        let places: Vec<u64> = wanted
            .iter()
            .filter_map(|number| said.get(said.partition_point(|s| s.seq < *number)))
            .filter(|s| s.is_message())
            .filter_map(|s| s.place)
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
        let title = SafeText::line(&format!("{name} {}", self.theme.run_face(state).word));
        if title != self.title {
            screen.title(&title)?;
            self.title = title;
        }
        Ok(())
    }

    pub(super) fn look_up_facts(&mut self) {
        let selected = self.ui.selected;
        if self.facts.0 != Some(selected) {
            self.facts = (Some(selected), self.source.facts(selected));
        }
    }

    pub(super) fn why_read_only(&self, hands: &Hands) -> Option<SafeText> {
        match hands {
            Hands::Lost(_) => Some(SafeText::line("the runner is gone")),
            Hands::Gone(what) => Some(SafeText::line(&format!("the run's directory {what}"))),
            _ => self.read_only.clone(),
        }
    }
}
