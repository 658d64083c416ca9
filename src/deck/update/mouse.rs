//! What the mouse means: what looks clickable is.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::{Context, scroll};
use crate::deck::model::{Focus, Scroll, UiEffect, UiState};
use crate::deck::view::layout::{Spot, spot};

/// Takes a click or a turn of the wheel.
pub(super) fn on_mouse(ui: &mut UiState, cx: Context<'_>, mouse: MouseEvent) -> Vec<UiEffect> {
    if !ui.overlays.is_empty() {
        return Vec::new();
    }
    let place = spot(ui, cx.state, mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => match place {
            Some(Spot::Step(step)) if ui.selected == step && ui.focus == Focus::Steps && !ui.shows_one() => {
                ui.zoom = true;
            }
            Some(Spot::Step(step)) => {
                ui.selected = step;
                ui.focus = Focus::Steps;
            }
            Some(Spot::Output(step)) => {
                ui.selected = step;
                ui.focus = Focus::Output;
            }
            Some(Spot::Ticker) => ui.focus = Focus::Ticker,
            None => {}
        },
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let by = if mouse.kind == MouseEventKind::ScrollUp { -3 } else { 3 };
            match place {
                Some(Spot::Output(step)) if ui.zoom => {
                    ui.selected = step;
                    scroll(ui, cx, Scroll::Rows(by));
                }
                Some(Spot::Output(step)) => ui.pane_mut(step).asked.push(Scroll::Rows(by)),
                Some(Spot::Step(_)) => ui.select_by(cx.state, by.signum() as isize),
                Some(Spot::Ticker) => {
                    ui.ticker_back =
                        if by > 0 { ui.ticker_back.saturating_sub(3) } else { ui.ticker_back.saturating_add(3) };
                }
                None => {}
            }
        }
        _ => {}
    }
    Vec::new()
}
