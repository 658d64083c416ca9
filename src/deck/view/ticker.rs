//! What just happened, over all steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::layout::Shape;
use super::paint::{Edge, frame, piece, put, put_cut};
use super::{Scene, at_end};
use crate::deck::history::{Entry, Tone};
use crate::deck::model::{Focus, UiState};
use crate::text::SafeText;

/// Draws the ticker.
pub(super) fn draw(buf: &mut Buffer, area: Rect, shape: Shape, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    let lost = scene.history.lost(scene.state);
    let told = scene.history.ticker.len() + usize::from(lost.is_some());
    let inner = if shape == Shape::Wide {
        let height = usize::from(area.height.saturating_sub(2));
        let back = ui.ticker_back.min(told.saturating_sub(height));
        let right = if back == 0 {
            piece(at_end(scene, ui), theme.dim())
        } else {
            // The letter that stands for the arrow is a key.
            let arrow = if theme.ascii { "" } else { "↓ " };
            piece(format!("{arrow}{back} newer"), theme.accent())
        };
        frame(
            buf,
            area,
            theme,
            Edge::focused(ui.focus == Focus::Ticker),
            vec![piece("happening", theme.bold())],
            vec![right],
        )
    } else {
        area
    };
    let height = usize::from(inner.height);
    let back = ui.ticker_back.min(told.saturating_sub(height));
    let start = told.saturating_sub(back + height);
    if told == 0 {
        let comes = !scene.is_gone() && scene.state.lost.is_none() && !scene.state.is_over();
        put(buf, inner, 1, 0, if comes { "nothing happened yet" } else { "nothing was recorded" }, theme.dim());
    }
    for (entry, dy) in scene.history.ticker.iter().chain(&lost).skip(start).take(height).zip(0_u16..) {
        line(buf, inner, dy, entry, scene);
    }
    // Without a frame its first line has the mark of who has the movement keys.
    if shape != Shape::Wide && ui.focus == Focus::Ticker {
        put(buf, inner, 0, 0, "›", theme.select());
    }
}

fn line(buf: &mut Buffer, area: Rect, dy: u16, entry: &Entry, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut dx = put(buf, area, 1, dy, &scene.time_of_day(entry.at), theme.dim()) + 2;
    let name = match entry.step.and_then(|id| scene.state.step(id)) {
        Some(step) => SafeText::line(&format!("{} {}", step.id, step.title())),
        None => SafeText::line("run"),
    };
    let wide = if area.width >= 110 { 20 } else { 14 };
    put_cut(buf, area, dx, dy, &name, wide, theme.plain());
    dx += wide + 1;
    put_cut(buf, area, dx, dy, &entry.text, area.width.saturating_sub(dx + 1), tone(entry.tone, scene));
}

/// How an entry is drawn.
pub(super) fn tone(tone: Tone, scene: &Scene<'_>) -> Style {
    let theme = scene.theme;
    match tone {
        Tone::Plain => theme.dim(),
        Tone::Tool => theme.accent(),
        Tone::Said => theme.plain(),
        Tone::Told => theme.bold(),
        Tone::Good => theme.good(),
        Tone::Bad => theme.bad(),
        Tone::Control => theme.halted(),
    }
}
