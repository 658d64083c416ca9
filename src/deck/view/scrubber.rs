//! Where a replay is: the time that it is over as one row of cells, with what stands out in each of them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::paint::{put, put_right};
use crate::deck::model::UiState;
use crate::deck::replay::Replay;
use crate::run::replay::MarkKind;
use crate::text::{clock, grouped, width};

/// A narrower track than this says nothing.
const TRACK_LEAST: u16 = 10;

/// What stands before and behind the track; what there is no room for is left out.
fn ends(area: Rect, replay: &Replay) -> (String, String) {
    let cursor = &replay.cursor;
    // The signs alone mean other things elsewhere.
    let (glyph, word) = if cursor.plays() { ("▶", "playing") } else { ("‖", " paused") };
    let glyph = if area.width < 70 { glyph.to_owned() } else { format!("{glyph} {word}") };
    let span = clock(replay.line.span());
    let at = clock(cursor.at());
    // The clock moves and the track does not move with it.
    let left = format!(" {glyph} {:>2}x {at:>wide$} of {span} ", cursor.speed(), wide = span.len());
    let (events, all) = (grouped(cursor.events() as u64), grouped(replay.line.len() as u64));
    let cut = if replay.cut { "+" } else { "" };
    let right = format!(" event {events:>wide$} of {all}{cut} ", wide = all.len());
    let idle = if cursor.skips() { " skips idle " } else { "" };
    let room = usize::from(area.width.saturating_sub(TRACK_LEAST * 3));
    let fits = |text: &str| width(&left) + width(text) <= room;
    let right = [format!("{idle}{right}"), right].into_iter().find(|text| fits(text)).unwrap_or_else(|| " ".to_owned());
    (left, right)
}

/// The cells of the track.
pub(super) fn track(area: Rect, replay: &Replay) -> Rect {
    let (left, right) = ends(area, replay);
    let cells = |text: &str| u16::try_from(width(text)).unwrap_or(u16::MAX);
    let (left, right) = (cells(&left), cells(&right));
    Rect { x: area.x.saturating_add(left), width: area.width.saturating_sub(left.saturating_add(right)), ..area }
}

/// Draws the row.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let Some(replay) = ui.replay.as_ref().filter(|_| !area.is_empty()) else { return };
    let theme = scene.theme;
    if let Some(percent) = replay.reading {
        let dx = put(buf, area, 1, 0, &format!("reading what happened {percent}%"), theme.plain());
        let so_far = format!("{} so far", clock(replay.line.span()));
        if usize::from(dx) + 2 + width(&so_far) < usize::from(area.width) {
            put_right(buf, area, area.width.saturating_sub(1), 0, &so_far, theme.dim());
        }
        return;
    }
    let (left, right) = ends(area, replay);
    let track = track(area, replay);
    put(buf, area, 0, 0, &left, theme.bold());
    put(buf, area, track.right().saturating_sub(area.x), 0, &right, theme.dim());
    let of = usize::from(track.width);
    let line = &replay.line;
    let at = u16::try_from(line.cell(replay.cursor.at(), of)).unwrap_or(u16::MAX);
    for dx in 0..track.width {
        let behind = dx > at;
        let (glyph, style) = match line.mark_in(line.in_cell(usize::from(dx), of)) {
            _ if dx == at => ("◆", theme.alarm()),
            Some((MarkKind::Attention, _)) => ("▲", theme.bold()),
            Some((MarkKind::End, _)) => ("■", theme.bold()),
            Some((MarkKind::Control, _)) => ("▸", theme.halted()),
            Some((MarkKind::Tool, _)) => ("•", if behind { theme.dim() } else { theme.accent() }),
            None if behind => ("─", theme.dim()),
            None => ("━", theme.accent()),
        };
        put(buf, track, dx, 0, glyph, style);
    }
}
