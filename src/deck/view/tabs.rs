//! The two bars of tabs: one tab a step, and the tabs of a zoomed step.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::paint::{piece, put, row};
use crate::deck::model::{Tab, UiState};
use crate::deck::window::Windows;
use crate::run::{RunState, StepId, StepState};
use crate::text::{SafeText, bytes, grouped};

/// The name on a step's tab.
fn label(step: &StepState) -> SafeText {
    SafeText::line(&format!("{} {}", step.id, SafeText::line(step.title()).truncate(16)))
}

/// Where each tab begins and ends, in cells from the start of the whole bar. Badges are not counted: they may come and
/// go without moving what the mouse points at.
fn places(state: &RunState) -> Vec<(StepId, u16, u16)> {
    let mut at = 0_u16;
    let mut out = Vec::new();
    for step in &state.steps {
        // A space, the label, a space, the glyph, a space.
        let wide = u16::try_from(label(step).width()).unwrap_or(20) + 4;
        out.push((step.id, at, at + wide));
        at = at.saturating_add(wide + 1);
    }
    out
}

/// How far the bar is scrolled so that the selected tab is in sight.
fn offset(places: &[(StepId, u16, u16)], selected: StepId, room: u16) -> u16 {
    let end = places.last().map_or(0, |p| p.2);
    if end <= room {
        return 0;
    }
    let middle = places.iter().find(|p| p.0 == selected).map_or(0, |p| p.1.midpoint(p.2));
    middle.saturating_sub(room / 2).min(end - room)
}

/// One tab a step, in the order of steps.
pub(super) fn steps(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let theme = scene.theme;
    let places = places(scene.state);
    let skip = offset(&places, ui.selected, area.width);
    for (id, start, end) in places {
        let (Some(step), Some(dx)) = (scene.state.step(id), start.checked_sub(skip)) else { continue };
        if end - skip > area.width {
            break;
        }
        let face = theme.face(step.face());
        let style = if id == ui.selected { theme.select() } else { theme.dim() };
        let fresh = windows.fresh.get(&id).copied().unwrap_or(0);
        let style = if fresh > 0 && id != ui.selected { theme.plain() } else { style };
        if id == ui.selected {
            put(buf, area, dx, 0, "›", theme.select());
        }
        let at = put(buf, area, dx + 1, 0, label(step).as_str(), style);
        put(buf, area, at + 1, 0, face.glyph, face.style);
        put(
            buf,
            area,
            end - skip,
            0,
            if fresh > 0 && id != ui.selected { "•" } else { "│" },
            if fresh > 0 && id != ui.selected { theme.accent() } else { theme.dim() },
        );
    }
}

/// The step whose tab is at a cell of the bar.
#[must_use]
pub fn hit(ui: &UiState, state: &RunState, dx: u16) -> Option<StepId> {
    let places = places(state);
    let at = dx + offset(&places, ui.selected, ui.size.0);
    places.iter().find(|(_, start, end)| (*start..*end).contains(&at)).map(|p| p.0)
}

/// The tabs of a zoomed step.
pub(super) fn sections(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let theme = scene.theme;
    let Some(step) = scene.state.step(ui.selected) else { return };
    let current = ui.tab(step.id);
    let mut left = vec![piece(" ", theme.plain())];
    for (number, tab) in (1..).zip(Tab::ALL) {
        let count = match tab {
            Tab::Tools if step.tool_count > 0 => format!(" {}", grouped(step.tool_count)),
            Tab::Events => match scene.history.of(step.id).count() {
                0 => String::new(),
                n => format!(" {n}"),
            },
            _ => String::new(),
        };
        if tab == current {
            left.push(piece(format!("[{number} {}{count}]", tab.name()), theme.select()));
        } else {
            left.push(piece(format!(" {number} "), theme.key()));
            left.push(piece(format!("{}{count} ", tab.name()), theme.dim()).rank(3));
        }
    }
    let mut right = Vec::new();
    if let Some(window) = windows.logs.get(&step.id).filter(|_| current == Tab::Output) {
        right.push(piece(format!("{} ", bytes(window.len)), theme.dim()).rank(1));
    }

    row(buf, area, 0, left, right);
}
