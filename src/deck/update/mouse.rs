//! What the mouse means: what looks clickable is.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::overlays::on_reading_key;
use super::{Context, on_key, perform, replay, scroll};
use crate::deck::actions::Action;
use crate::deck::feed::{Hands, StepFacts};
use crate::deck::model::{Focus, Overlay, Scroll, UiEffect, UiState};
use crate::deck::theme::Theme;
use crate::deck::view::layout::{Spot, spot};
use crate::deck::view::{self, Scene};
use crate::deck::{answer_dialog, budget_dialog};
use crate::run::replay::Step;

/// Takes a click or a turn of the wheel.
pub(super) fn on_mouse(ui: &mut UiState, cx: Context<'_>, mouse: MouseEvent) -> Vec<UiEffect> {
    if !ui.overlays.is_empty() {
        return on_above(ui, cx, mouse);
    }
    let place = spot(ui, cx.state, mouse.column, mouse.row);
    if mouse.kind == MouseEventKind::Down(MouseButton::Left) {
        let (found, entry, line) = looked_up(ui, cx, mouse.column, mouse.row);
        if let Some(action) = found {
            return perform(ui, cx, action);
        }
        if let (Some(number), Some(step)) = (entry, cx.state.step(ui.selected)) {
            let listed = cx.entries.listed(ui, step);
            if listed.number(listed.at) == Some(number) {
                return perform(ui, cx, Action::Open);
            }
            let pane = ui.pane_mut(step.id);
            pane.cursor.insert(pane.tab, number);
            return Vec::new();
        }
        if let Some(line) = line {
            let selected = ui.selected;
            let pane = ui.pane_mut(selected);
            let lines = pane.lines.entry(pane.tab).or_default();
            if lines.at == line {
                return perform(ui, cx, Action::Open);
            }
            lines.at = line;
            return Vec::new();
        }
    }
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => match place {
            Some(Spot::Step(step) | Spot::Member { step, .. })
                if ui.selected == step && ui.focus == Focus::Steps && !ui.shows_one() =>
            {
                ui.zoom = true;
            }
            Some(Spot::Step(step) | Spot::Member { step, .. }) => {
                ui.selected = step;
                ui.focus = Focus::Steps;
            }
            Some(Spot::Output(step)) => {
                ui.selected = step;
                ui.focus = Focus::Output;
            }
            Some(Spot::Ticker) => ui.focus = Focus::Ticker,
            Some(Spot::Scrubber { cell, of }) => replay::scrub(ui, cell, of),
            None => {}
        },
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let by = if mouse.kind == MouseEventKind::ScrollUp { -3 } else { 3 };
            match place {
                Some(Spot::Output(step)) if ui.zoom => {
                    ui.selected = step;
                    scroll(ui, cx, Scroll::Rows(by));
                }
                Some(Spot::Output(step) | Spot::Member { pane: step, .. }) => {
                    ui.pane_mut(step).asked.push(Scroll::Rows(by));
                }
                Some(Spot::Step(_)) => ui.select_by(cx.state, by.signum() as isize),
                Some(Spot::Ticker) => {
                    ui.ticker_back =
                        if by > 0 { ui.ticker_back.saturating_sub(3) } else { ui.ticker_back.saturating_add(3) };
                }
                Some(Spot::Scrubber { .. }) => {
                    replay::step(ui, cx.now, if by > 0 { Step::Jump } else { Step::JumpBack });
                }
                None => {}
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Takes a click or a turn of the wheel while something lies above the picture. The wheel moves in it; a click on a hint is
/// its key, one on a choice puts the keys at it. What ends or costs something is answered by keys alone.
fn on_above(ui: &mut UiState, cx: Context<'_>, mouse: MouseEvent) -> Vec<UiEffect> {
    let press = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let turned = match mouse.kind {
        MouseEventKind::ScrollUp => Some(KeyCode::Up),
        MouseEventKind::ScrollDown => Some(KeyCode::Down),
        _ => None,
    };
    if let Some(code) = turned {
        return match ui.overlays.last() {
            Some(Overlay::Help { .. } | Overlay::Why { .. } | Overlay::Reading(_)) => {
                (0..3).flat_map(|_| on_reading_key(ui, press(code))).collect()
            }
            Some(Overlay::Palette { .. } | Overlay::Budget(_) | Overlay::Answer(_)) => on_key(ui, cx, press(code)),
            _ => Vec::new(),
        };
    }
    if mouse.kind != MouseEventKind::Down(MouseButton::Left) {
        return Vec::new();
    }
    let (key, choice) = with_scene(ui, cx, |scene| view::hit_above(scene, ui, mouse.column, mouse.row));
    if let Some(code) = key {
        return on_key(ui, cx, press(code));
    }
    let Some(at) = choice else { return Vec::new() };
    match ui.overlays.last_mut() {
        // As in a list: the first click goes to it, the second one does it.
        Some(Overlay::Palette { index, .. }) if *index == at => on_key(ui, cx, press(KeyCode::Enter)),
        Some(Overlay::Palette { index, .. }) => {
            *index = at;
            Vec::new()
        }
        Some(Overlay::Answer(dialog)) => {
            answer_dialog::click(dialog, cx.state, at);
            Vec::new()
        }
        Some(Overlay::Budget(dialog)) => {
            budget_dialog::choose(dialog, at);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// What a click means on the lines at the edges, and which entry of a list or which line it meets.
fn looked_up(ui: &UiState, cx: Context<'_>, x: u16, y: u16) -> (Option<Action>, Option<u64>, Option<usize>) {
    with_scene(ui, cx, |scene| {
        (view::hit(scene, ui, x, y), view::entry_at(scene, ui, x, y), view::line_at(scene, ui, x, y))
    })
}

/// Where things are depends on no colour and on no file.
fn with_scene<R>(ui: &UiState, cx: Context<'_>, look: impl FnOnce(&Scene<'_>) -> R) -> R {
    let scene = Scene {
        reveal: ui.reveal,
        state: cx.state,
        hands: &Hands::Live,
        read_only: cx.read_only,
        trouble: None,
        now: cx.now,
        wall: cx.now,
        theme: Theme::default(),
        history: cx.entries.history,
        older: cx.entries.older,
        facts: &StepFacts::default(),
        facts_of: None,
        zone: &jiff::tz::TimeZone::UTC,
    };
    look(&scene)
}
