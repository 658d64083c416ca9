//! What keys mean while something lies above the picture.

use crossterm::event::{KeyCode, KeyEvent};

use super::{Context, perform, say};
use crate::deck::actions::{self, Action};
use crate::deck::entries;
use crate::deck::keymap::Key;
use crate::deck::model::{Danger, Overlay, Position, Question, Search, Tab, UiEffect, UiState};
use crate::deck::reading::Reading;
use crate::deck::rows;
use crate::deck::sheet::Needle;
use crate::deck::view;
use crate::run::StepPhase;

pub(super) fn on_quit_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent, ready: bool) -> Vec<UiEffect> {
    let cancels = matches!(key.code, KeyCode::Esc | KeyCode::Char('n'));
    if cancels || cx.state.is_over() {
        ui.overlays.pop();
        return if cx.state.is_over() && !cancels { vec![UiEffect::Leave] } else { Vec::new() };
    }
    if !ready {
        return Vec::new();
    }
    match (ui.keymap.lookup(key), key.code) {
        (Some(Action::Quit), _) | (_, KeyCode::Char('l') | KeyCode::Enter) => {
            ui.overlays.pop();
            vec![UiEffect::Leave]
        }
        // It asks again, as it does without the way out.
        (Some(Action::StopRun), _) => {
            ui.overlays.pop();
            ui.overlays.push(Overlay::Confirm { what: Danger::Everything, question: Question::new(cx.now) });
            Vec::new()
        }
        (_, KeyCode::Char('c')) => {
            ui.overlays.pop();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

pub(super) fn on_confirm_key(
    ui: &mut UiState,
    cx: Context<'_>,
    key: KeyEvent,
    what: Danger,
    ready: bool,
) -> Vec<UiEffect> {
    match key.code {
        KeyCode::Char('y' | 'Y') if ready => {
            ui.overlays.pop();
            match what {
                Danger::Retry if cx.state.is_over() => vec![UiEffect::Retry],
                Danger::Run | Danger::Everything if !cx.state.is_over() => {
                    ui.leave_when_over = what == Danger::Everything;
                    vec![UiEffect::StopRun]
                }
                Danger::Left(step) if !ui.left.is_empty() => vec![UiEffect::EndLeft(step)],
                Danger::Step(step) if cx.state.step(step).is_some_and(|s| s.phase == StepPhase::Running) => {
                    vec![UiEffect::StopStep(step)]
                }
                _ => {
                    say(ui, cx.now, false, "it has ended by itself");
                    Vec::new()
                }
            }
        }
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('n' | 'N' | 'q') => {
            ui.overlays.pop();
            Vec::new()
        }
        KeyCode::Char('c') if ui.keymap.lookup(key) == Some(Action::Quit) => {
            ui.overlays.pop();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

pub(super) fn on_reading_key(ui: &mut UiState, key: KeyEvent) -> Vec<UiEffect> {
    let page = usize::from(ui.size.1 / 2).max(1);
    let bottom = view::overlay::help_bottom(ui);
    if let Some(Overlay::Help { query: typed @ Some(_), top }) = ui.overlays.last_mut() {
        // Letters are typed here; what else moves in the text moves still.
        let plain = !Key::from(key).ctrl;
        match key.code {
            KeyCode::Esc => *typed = None,
            KeyCode::Char(c) if plain => typed.iter_mut().for_each(|query| query.push(c)),
            KeyCode::Char(_) => *typed = None,
            KeyCode::Backspace => typed.iter_mut().for_each(|query| {
                query.pop();
            }),
            KeyCode::Down => return moved(top, 1, true, bottom),
            KeyCode::Up => return moved(top, 1, false, 0),
            KeyCode::PageDown => return moved(top, page, true, bottom),
            KeyCode::PageUp => return moved(top, page, false, 0),
            _ => {}
        }
        *top = 0;
        return Vec::new();
    }
    let action = ui.keymap.lookup(key);
    if let Some(Overlay::Help { top, query }) = ui.overlays.last_mut()
        && action == Some(Action::Search)
    {
        (*top, *query) = (0, Some(String::new()));
        return Vec::new();
    }
    let (needle, width) = (ui.needle(), ui.size.0);
    if let Some(Overlay::Reading(text)) = ui.overlays.last_mut() {
        match action {
            Some(Action::Copy) => return vec![UiEffect::Copy],
            Some(Action::Search) => {
                ui.overlays.push(Overlay::Search { query: String::new(), everywhere: false });
                return Vec::new();
            }
            Some(Action::SearchNext | Action::SearchPrevious) => {
                needle.inspect(|needle| text.find(needle, action == Some(Action::SearchPrevious), width));
                return Vec::new();
            }
            _ => {}
        }
    }
    let most = if let Some(Overlay::Reading(text)) = ui.overlays.last() { text.rows(ui.size.0) } else { 0 };
    let most =
        if let Some(Overlay::Help { .. }) = ui.overlays.last() { bottom } else { most.max(actions::TABLE.len() + 8) };
    if let Some(Overlay::Help { top, .. } | Overlay::Why { top, .. } | Overlay::Reading(Reading { top, .. })) =
        ui.overlays.last_mut()
    {
        match action {
            Some(Action::Down) => return moved(top, 1, true, most),
            Some(Action::Up) => return moved(top, 1, false, most),
            Some(Action::PageDown | Action::HalfDown) => return moved(top, page, true, most),
            Some(Action::PageUp | Action::HalfUp) => return moved(top, page, false, most),
            Some(Action::First) => return moved(top, usize::MAX, false, most),
            Some(Action::Last) => return moved(top, usize::from(u16::MAX), true, most),
            Some(Action::Repaint) => return vec![UiEffect::Repaint],
            Some(Action::Suspend) => return vec![UiEffect::Suspend],
            _ => {}
        }
    }
    ui.overlays.pop();
    Vec::new()
}

fn moved(top: &mut usize, by: usize, down: bool, most: usize) -> Vec<UiEffect> {
    // Limited by the draw function, which knows how much there is; kept small so that the way back is short.
    *top = if down { top.saturating_add(by).min(most) } else { top.saturating_sub(by) };
    Vec::new()
}

pub(super) fn on_palette_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let ctrl = Key::from(key).ctrl;
    let Some(Overlay::Palette { query, index }) = ui.overlays.last_mut() else { return Vec::new() };
    let count = actions::search(query).len();
    match key.code {
        KeyCode::Esc => {
            ui.overlays.pop();
        }
        KeyCode::Char('c' | 'g') if ctrl => {
            ui.overlays.pop();
        }
        KeyCode::Enter => {
            let chosen = actions::search(query).get(*index).map(|r| r.action);
            ui.overlays.pop();
            if let Some(action) = chosen {
                return perform(ui, cx, action);
            }
        }
        KeyCode::Down | KeyCode::Tab => *index = (*index + 1).min(count.saturating_sub(1)),
        KeyCode::Char('n') if ctrl => *index = (*index + 1).min(count.saturating_sub(1)),
        KeyCode::Up | KeyCode::BackTab => *index = index.saturating_sub(1),
        KeyCode::Char('p') if ctrl => *index = index.saturating_sub(1),
        KeyCode::Backspace => {
            query.pop();
            *index = 0;
        }
        KeyCode::Char('u') if ctrl => query.clear(),
        KeyCode::Char(c) if !ctrl => {
            query.push(c);
            *index = 0;
        }
        _ => {}
    }
    Vec::new()
}

pub(super) fn on_filter_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let ctrl = Key::from(key).ctrl;
    let words = ui.filter.get_or_insert_default();
    match key.code {
        KeyCode::Enter => {
            ui.overlays.pop();
        }
        KeyCode::Esc => {
            ui.overlays.pop();
            words.clear();
        }
        KeyCode::Char('c' | 'g') if ctrl => {
            ui.overlays.pop();
            words.clear();
        }
        KeyCode::Char('u') if ctrl => words.clear(),
        KeyCode::Backspace if words.is_empty() => {
            ui.overlays.pop();
        }
        KeyCode::Backspace => {
            words.pop();
        }
        KeyCode::Char(c) if !ctrl => words.push(c),
        _ => {}
    }
    rows::settle(ui, cx.state);
    if ui.filter.as_deref().is_some_and(|words| words.trim().is_empty())
        && !matches!(ui.overlays.last(), Some(Overlay::Filter))
    {
        ui.filter = None;
    }
    Vec::new()
}

/// Whether a tab is looked through of the selected step alone: of others nobody knows what it would show.
const fn is_one(tab: Tab) -> bool {
    matches!(tab, Tab::Budget | Tab::Changes)
}

pub(super) fn on_search_key(ui: &mut UiState, key: KeyEvent) -> Vec<UiEffect> {
    let ctrl = Key::from(key).ctrl;
    let one = is_one(ui.searched_tab()) || ui.overlays.iter().any(|over| matches!(over, Overlay::Reading(_)));
    let Some(Overlay::Search { query, everywhere }) = ui.overlays.last_mut() else { return Vec::new() };
    match key.code {
        KeyCode::Enter => {
            // Without a text it is looked for the same again.
            let needle = if query.is_empty() { ui.searched.last().cloned().unwrap_or_default() } else { query.clone() };
            let everywhere = *everywhere;
            ui.overlays.pop();
            if needle.is_empty() {
                ui.search = None;
                return Vec::new();
            }
            ui.searched.retain(|known| *known != needle);
            ui.searched.push(needle.clone());
            let (step, tab) = (ui.selected, ui.searched_tab());
            // Who follows the end looks for what has been; who reads looks for what comes.
            let pane = ui.pane_mut(step);
            let back = match tab {
                Tab::Output => pane.output == Position::Follow,
                tab => entries::lists(tab) && !pane.cursor.contains_key(&tab),
            };
            pane.tab = tab;
            let everywhere = everywhere && !is_one(tab);
            ui.search = Some(Search { needle, back, everywhere, tab, found: None, count: None });
            if let Some(Overlay::Reading(text)) = ui.overlays.last_mut() {
                let needle = ui.search.as_ref().and_then(|search| Needle::new(&search.needle));
                needle.inspect(|needle| text.find(needle, false, ui.size.0));
                return Vec::new();
            }
            return vec![UiEffect::Find { opposite: false }];
        }
        KeyCode::Esc => {
            ui.overlays.pop();
            ui.search = None;
        }
        KeyCode::Char('c' | 'g') if ctrl => {
            ui.overlays.pop();
        }
        KeyCode::Tab if !one => *everywhere = !*everywhere,
        // What was looked for before, the newest first.
        KeyCode::Up => {
            let at = ui.searched.iter().position(|known| known == query).unwrap_or(ui.searched.len());
            if let Some(before) = at.checked_sub(1).and_then(|at| ui.searched.get(at)) {
                query.clone_from(before);
            }
        }
        KeyCode::Down => {
            let at = ui.searched.iter().position(|known| known == query);
            *query = at.and_then(|at| ui.searched.get(at + 1)).cloned().unwrap_or_default();
        }
        KeyCode::Char('u') if ctrl => query.clear(),
        KeyCode::Backspace if query.is_empty() => {
            ui.overlays.pop();
        }
        KeyCode::Backspace => {
            query.pop();
        }
        KeyCode::Char(c) if !ctrl => query.push(c),
        _ => {}
    }
    Vec::new()
}
