//! Marks on what is looked for, put over rows that are drawn already: what a person sees is what is compared. The match
//! that was gone to looks otherwise than the others.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::Scene;
use crate::deck::sheet::Needle;
use crate::deck::window::Window;

/// Marks all matches of an area; `here` says that they belong to what was gone to.
pub(super) fn matches(buf: &mut Buffer, area: Rect, needle: &Needle, here: bool, scene: &Scene<'_>) {
    let style = if here { here_style(scene) } else { scene.theme.found() };
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        let mut text = String::new();
        let mut cells = Vec::new();
        for x in area.left()..area.right() {
            let symbol = buf.cell((x, y)).map_or("", |c| c.symbol());
            let folded = needle.folded(symbol);
            cells.extend(std::iter::repeat_n(x, folded.len()));
            text.push_str(&folded);
        }
        for found in needle.found_in(&text) {
            for x in cells.get(found).unwrap_or_default() {
                set(buf, *x, y, style);
            }
        }
    }
}

/// Marks the matches in the rows of a log, and the one that was gone to apart from the others, over as many rows as it is
/// wrapped into.
pub(super) fn in_log(buf: &mut Buffer, area: Rect, needle: &Needle, window: &Window, scene: &Scene<'_>) {
    matches(buf, area, needle, false, scene);
    let area = area.intersection(buf.area);
    let Some((first, column)) = window.here else { return };
    let line = window.rows.get(first).map(|row| row.anchor.line);
    let mut left = needle.inked();
    for (row, at) in window.rows.iter().zip(0_u16..area.height).skip(first) {
        if left == 0 || Some(row.anchor.line) != line || row.again.is_some() {
            return;
        }
        let y = area.y + at;
        let begin = if usize::from(at) == first { column } else { 0 };
        let begin = u16::try_from(crate::text::width(row.mark()) + begin).unwrap_or(u16::MAX);
        for x in area.left().saturating_add(begin)..area.right() {
            let inked = buf.cell((x, y)).is_some_and(|cell| cell.symbol().chars().any(|ch| ch != ' '));
            if left == 0 {
                return;
            }
            left -= usize::from(inked);
            set(buf, x, y, here_style(scene));
        }
    }
}

/// The match that was gone to, which may have been marked as one of the others.
const fn here_style(scene: &Scene<'_>) -> Style {
    scene.theme.alarm().remove_modifier(Modifier::UNDERLINED)
}

/// Over the style of a cell, whose colours stay.
fn set(buf: &mut Buffer, x: u16, y: u16, style: Style) {
    if let Some(cell) = buf.cell_mut((x, y)) {
        cell.set_style(style);
    }
}
