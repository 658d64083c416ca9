//! What a person has to be told who looks elsewhere: at another program, or at another tab.

use super::{App, Source, hook, layout, wall};
use crate::deck::terminal::Screen;
use crate::run::StepId;
use crate::text::SafeText;

/// As many bytes of a log are counted for its tab at one look.
const COUNTED_MOST: u64 = 1 << 20;

impl<S: Source> App<'_, S> {
    /// Notes what a person has to be told, and tells the hook.
    pub(super) fn note_news(&mut self) {
        let now = wall();
        if !self.looked {
            return;
        }
        let state = self.source.state();
        // A picture that stands still has the sums of its own state, not of what goes on behind it.
        let still = if self.moment.is_some() { self.ui.known.take() } else { None };
        let items = self.notifier.look(state, &self.ui, now);
        self.ui.known = self.ui.known.take().or(still);
        if items.is_empty() || self.hook_words.is_empty() {
            return;
        }
        let events: Vec<_> = items.iter().map(|item| item.json(state, now)).collect();
        if self.hook.is_none() {
            self.hook = hook::Hook::start(&self.hook_words);
        }
        for (hook, event) in self.hook.iter().flat_map(|hook| events.iter().map(move |event| (hook, event))) {
            hook.tell(event);
        }
    }

    /// Tells a person who looks elsewhere what is due.
    pub(super) fn tell(&mut self, screen: &mut Screen) {
        let Some(text) = self.notifier.due(wall()) else { return };
        let state = self.source.state();
        let name = SafeText::line(state.name.as_deref().unwrap_or(state.id.as_str()));
        let bytes = self.channel.bytes(&name, &text, std::env::var_os("TMUX").is_some());
        if !bytes.is_empty() {
            // A terminal that cannot be written is noticed with the next frame.
            let _ = screen.notify(&bytes);
        }
    }

    /// Counts the lines that steps printed while nobody looked at them. Returns whether a count is another one.
    pub(super) fn count_unread(&mut self, grown: &[StepId]) -> bool {
        let visible = layout::visible_logs(&self.ui, self.shown());
        let first = !std::mem::replace(&mut self.looked, true);
        let mut changed = false;
        for id in grown.iter().filter(|id| visible.iter().all(|(v, _)| v != *id)) {
            let len = self.source.log_len(*id);
            let from = self.counted.insert(*id, len).unwrap_or(0).min(len);
            if first {
                continue;
            }
            // What is more than a screen of anybody's patience is not counted to the last line.
            let upto = len.min(from.saturating_add(COUNTED_MOST));
            let lines = self.source.feeds(*id, from..upto);
            if lines > 0 {
                *self.ui.unread.entry(*id).or_default() += lines;
                changed = true;
            }
        }
        changed
    }
}
