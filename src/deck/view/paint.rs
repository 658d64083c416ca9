//! Small brushes. Everything is clipped to its area, so that no size of terminal can make a draw function panic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::deck::theme::Theme;
use crate::text::{SafeText, width};

/// A piece of a line.
#[derive(Clone, Debug)]
pub struct Piece {
    text: String,
    style: Style,
    /// Pieces with a low rank go first when there is no room.
    rank: u8,
}

/// A piece that is kept as long as anything is.
pub fn piece(text: impl Into<String>, style: Style) -> Piece {
    Piece { text: text.into(), style, rank: u8::MAX }
}

impl Piece {
    /// The same piece, to be dropped before pieces of a higher rank.
    pub const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    fn width(&self) -> u16 {
        u16::try_from(width(&self.text)).unwrap_or(u16::MAX)
    }
}

/// Writes a text into one row of `area`, `dx` cells from its left; returns the cell after the text, counted like `dx`.
pub fn put(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, text: &str, style: Style) -> u16 {
    let area = area.intersection(buf.area);
    if dx >= area.width || dy >= area.height || text.is_empty() {
        return dx;
    }
    let (x, y) = (area.x + dx, area.y + dy);
    // Cells are overwritten whole; without the reset the modifiers of what was there would shine through.
    let style = Style::reset().patch(style);
    buf.set_stringn(x, y, text, usize::from(area.width - dx), style).0 - area.x
}

/// Writes a text with an ellipsis where it does not fit into `cells`.
pub fn put_cut(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, text: &SafeText, cells: u16, style: Style) -> u16 {
    let room = cells.min(area.width.saturating_sub(dx));
    put(buf, area, dx, dy, text.truncate(usize::from(room)).as_str(), style)
}

/// Writes a text so that it ends before cell `end` of the row.
pub fn put_right(buf: &mut Buffer, area: Rect, end: u16, dy: u16, text: &str, style: Style) {
    let wide = u16::try_from(width(text)).unwrap_or(u16::MAX);
    if let Some(dx) = end.min(area.width).checked_sub(wide) {
        put(buf, area, dx, dy, text, style);
    }
}

/// Writes pieces at the left and at the right end of one row, two cells apart from each other at least. Pieces of the
/// lowest rank are left out until the rest fits.
pub fn row(buf: &mut Buffer, area: Rect, dy: u16, left: Vec<Piece>, right: Vec<Piece>) {
    let (mut left, mut right) = (left, right);
    let total = |side: &[Piece]| side.iter().map(Piece::width).fold(0_u16, u16::saturating_add);
    loop {
        let gap = if left.is_empty() || right.is_empty() { 0 } else { 2 };
        if total(&left).saturating_add(total(&right)).saturating_add(gap) <= area.width {
            break;
        }
        let lowest = left.iter().chain(&right).map(|p| p.rank).min().unwrap_or(u8::MAX);
        if lowest == u8::MAX {
            break;
        }
        left.retain(|p| p.rank != lowest);
        right.retain(|p| p.rank != lowest);
    }
    let mut dx = 0;
    for p in &left {
        dx = put(buf, area, dx, dy, &p.text, p.style);
    }
    let mut start = area.width.saturating_sub(total(&right)).max(dx);
    for p in &right {
        start = put(buf, area, start, dy, &p.text, p.style);
    }
}

/// Draws a box and returns what is inside of it. Titles stand in its upper edge.
pub fn frame(buf: &mut Buffer, area: Rect, theme: Theme, active: bool, left: Vec<Piece>, right: Vec<Piece>) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect::ZERO;
    }
    let style = if active { theme.select() } else { theme.dim() };
    let across = "─".repeat(usize::from(area.width - 2));
    put(buf, area, 0, 0, &format!("╭{across}╮"), style);
    put(buf, area, 0, area.height - 1, &format!("╰{across}╯"), style);
    for dy in 1..area.height - 1 {
        put(buf, area, 0, dy, "│", style);
        put(buf, area, area.width - 1, dy, "│", style);
    }
    let edge = Rect { x: area.x + 2, width: area.width.saturating_sub(4), height: 1, ..area };
    row(buf, edge, 0, pad(left, theme), pad(right, theme));
    Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
}

/// A space at each end, so that a title does not touch its edge.
fn pad(mut pieces: Vec<Piece>, theme: Theme) -> Vec<Piece> {
    if let Some(first) = pieces.first_mut() {
        first.text.insert(0, ' ');
    }
    if let Some(last) = pieces.last_mut() {
        last.text.push(' ');
    }
    let _ = theme;
    pieces
}

/// Makes everything in the area empty, for what lies above other things.
pub fn wipe(buf: &mut Buffer, area: Rect) {
    for position in area.intersection(buf.area).positions() {
        if let Some(cell) = buf.cell_mut(position) {
            cell.reset();
        }
    }
}

/// Makes everything in the area stand behind.
pub fn fade(buf: &mut Buffer, area: Rect, theme: Theme) {
    for position in area.intersection(buf.area).positions() {
        if let Some(cell) = buf.cell_mut(position) {
            let symbol = cell.symbol().to_owned();
            cell.reset();
            cell.set_symbol(&symbol).set_style(theme.dim());
        }
    }
}

/// A bar of `cells` cells, filled as far as `share` (0 to 1) says.
pub fn bar(share: f64, cells: u16) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let full = (share * f64::from(cells)).round() as usize;
    // A bar that is not empty or not full must not look so.
    let cells = usize::from(cells);
    let full = if share > 0.0 && full == 0 && cells > 1 { 1 } else { full };
    let full = if share < 1.0 && full == cells && cells > 1 { cells - 1 } else { full };
    format!("{}{}", "█".repeat(full), "░".repeat(cells.saturating_sub(full)))
}

/// A box of at most this size in the middle of the area.
pub fn centred(area: Rect, wide: u16, high: u16) -> Rect {
    let (width, height) = (wide.min(area.width), high.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
