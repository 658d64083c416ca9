//! The lines at the edges: the run, what needs a person, what became of requests, what can be pressed.

mod header;
mod hints;
mod message;
mod needs;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::paint::{put, put_cut};
use crate::deck::attention;
use crate::deck::left::processes;
use crate::deck::model::{Overlay, UiState};
use crate::text::SafeText;

pub(super) use header::{header, step_header};
pub(super) use hints::{footer, hit_footer, pressed};
pub(super) use message::control;
pub(super) use needs::{hit_needs, needs_you};

/// A line with a cell of air at both ends.
const fn inset(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

/// One sentence, for a terminal without room for anything else.
pub(super) fn tiny(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let state = scene.state;
    let face = header::run_face(scene);
    let waiting = attention::attention(state, ui).len();
    let needs = if waiting > 0 && (scene.is_gone() || ui.replay.is_some()) {
        format!(", {waiting} needed you")
    } else if waiting > 0 {
        format!(", {waiting} {} you", if waiting == 1 { "needs" } else { "need" })
    } else if ui.has_left() {
        let verb = if ui.left.len() == 1 { "lives" } else { "live" };
        format!(", {} {verb} on", processes(ui.left.len()))
    } else {
        String::new()
    };
    let (count, word) = ui.sums(state).progress;
    let steps = if state.steps.is_empty() {
        "no steps yet".to_owned()
    } else {
        format!("{count}/{} {word}", state.steps.len())
    };
    let replay = if ui.replay.is_some() { "REPLAY " } else { "" };
    let text = format!("{replay}{} {}, {steps}{needs}, enlarge me", face.glyph, face.word);
    let rows = SafeText::line(&text).wrap(usize::from(area.width));
    for (line, dy) in rows.iter().zip(0_u16..area.height) {
        put_cut(
            buf,
            area,
            0,
            dy,
            line,
            area.width,
            if waiting > 0 || ui.has_left() { theme.alarm() } else { theme.plain() },
        );
    }
    let below = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    if matches!(ui.overlays.last(), Some(Overlay::Confirm { .. } | Overlay::Quit { .. })) {
        put(buf, area, 0, below, "esc: no", theme.bold());
    }
}
