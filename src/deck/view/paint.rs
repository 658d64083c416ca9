//! Small brushes. Everything is clipped to its area, so that no size of terminal can make a draw function panic.

use crossterm::event::KeyCode;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::deck::actions::Action;
use crate::deck::theme::Theme;
use crate::text::{SafeText, is_plain, width};

/// A piece of a line.
#[derive(Clone, Debug)]
pub struct Piece {
    text: String,
    style: Style,
    /// Pieces with a low rank go first when there is no room.
    rank: u8,
    /// Cells between this piece and the one before it, if there is one.
    gap: u16,
    /// What a click on it does.
    does: Option<Action>,
    /// Which key of what lies above the picture a click on it is.
    presses: Option<KeyCode>,
}

/// A piece that is kept as long as anything is.
pub fn piece(text: impl Into<String>, style: Style) -> Piece {
    Piece { text: text.into(), style, rank: u8::MAX, gap: 0, does: None, presses: None }
}

impl Piece {
    /// Its text with the gap before it.
    pub fn spaced(&self) -> String {
        format!("{}{}", " ".repeat(usize::from(self.gap)), self.text)
    }

    /// The same piece, to be dropped before pieces of a higher rank.
    pub const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// The same piece, so many cells away from the one before it.
    pub const fn gap(mut self, cells: u16) -> Self {
        self.gap = cells;
        self
    }

    /// The same piece; a click on it does this.
    pub const fn does(mut self, action: Action) -> Self {
        self.does = Some(action);
        self
    }

    /// The same piece; a click on it is this key.
    pub const fn presses(mut self, key: Option<KeyCode>) -> Self {
        self.presses = key;
        self
    }

    const fn means(&self) -> Meaning {
        (self.does, self.presses)
    }

    fn width(&self) -> u16 {
        u16::try_from(width(&self.text)).unwrap_or(u16::MAX)
    }
}

/// The cells that pieces of at least this rank take at the right end of a row, with the gap to its left end.
pub fn right_cells(pieces: &[Piece], rank: u8) -> u16 {
    let kept: Vec<Piece> = pieces.iter().filter(|p| p.rank >= rank).cloned().collect();
    if kept.is_empty() { 0 } else { total(&kept).saturating_add(2) }
}

/// The cells of pieces in a row. The gap before the first of them is not drawn.
pub fn total(pieces: &[Piece]) -> u16 {
    let gaps = pieces.iter().skip(1).map(|p| p.gap);
    pieces.iter().map(Piece::width).chain(gaps).fold(0, u16::saturating_add)
}

/// Writes a text into one row of `area`, `dx` cells from its left; returns the cell after the text, counted like `dx`.
pub fn put(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, text: &str, style: Style) -> u16 {
    let area = area.intersection(buf.area);
    if dx >= area.width || dy >= area.height || text.is_empty() {
        return dx;
    }
    let (x, y) = (area.x + dx, area.y + dy);
    let room = area.width - dx;
    // Nearly all that is written: there is no need to look for characters that belong together, which takes longer than
    // everything else of a frame.
    let begin = usize::from(y - buf.area.y) * usize::from(buf.area.width) + usize::from(x - buf.area.x);
    let cells = buf.content.get_mut(begin..).unwrap_or_default().iter_mut().take(usize::from(room));
    if is_plain(text) {
        return dx + fill(cells, text.bytes().map(char::from), style);
    }
    if text.chars().all(is_a_cell) {
        return dx + fill(cells, text.chars(), style);
    }
    // Cells are overwritten whole; without the reset the modifiers of what was there would shine through.
    let style = Style::reset().patch(style);
    buf.set_stringn(x, y, text, usize::from(room), style).0 - area.x
}

/// Overwrites cells whole, each with one character; returns how many.
fn fill<'c>(cells: impl Iterator<Item = &'c mut Cell>, text: impl Iterator<Item = char>, style: Style) -> u16 {
    let (fg, bg) = (style.fg.unwrap_or(Color::Reset), style.bg.unwrap_or(Color::Reset));
    let underline = style.underline_color.unwrap_or(Color::Reset);
    let modifier = style.add_modifier.difference(style.sub_modifier);
    let mut written = 0;
    for (cell, ch) in cells.zip(text) {
        // Most of what a blank is written over is blank, and to see that is cheaper than to write.
        if ch != ' ' || cell.symbol() != " " {
            cell.set_char(ch);
        }
        (cell.fg, cell.bg, cell.modifier, cell.underline_color) = (fg, bg, modifier, underline);
        written += 1;
    }
    written
}

/// Whether a character takes one cell, whatever of these stands beside it: plain ASCII, lines, blocks and shapes, and
/// the other marks of ours.
const fn is_a_cell(ch: char) -> bool {
    matches!(ch, ' '..='~' | '\u{2500}'..='\u{25fc}' | '…' | '✓' | '✗' | '–' | '›' | '†' | '·')
}

/// Writes a text from outside into at most `cells` cells, cleaned, with an ellipsis where it does not fit.
pub fn put_line(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, text: &str, cells: u16, style: Style) -> u16 {
    if !is_plain(text) {
        return put_cut(buf, area, dx, dy, &SafeText::line(text), cells, style);
    }
    // Most names and messages are plain: nothing has to be made of them to be drawn.
    let room = cells.min(area.width.saturating_sub(dx));
    if text.len() <= usize::from(room) {
        return put(buf, area, dx, dy, text, style);
    }
    let Some(kept) = room.checked_sub(1) else { return dx };
    let after = put(buf, area, dx, dy, text.get(..usize::from(kept)).unwrap_or_default(), style);
    put(buf, area, after, dy, "…", style)
}

/// Writes a text with an ellipsis where it does not fit into `cells`.
pub fn put_cut(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, text: &SafeText, cells: u16, style: Style) -> u16 {
    let room = cells.min(area.width.saturating_sub(dx));
    // No character takes more cells than bytes.
    if text.as_str().len() <= usize::from(room) {
        return put(buf, area, dx, dy, text.as_str(), style);
    }
    put(buf, area, dx, dy, text.truncate(usize::from(room)).as_str(), style)
}

/// Writes a text so that it ends before cell `end` of the row.
pub fn put_right(buf: &mut Buffer, area: Rect, end: u16, dy: u16, text: &str, style: Style) {
    let wide = u16::try_from(width(text)).unwrap_or(u16::MAX);
    if let Some(dx) = end.min(area.width).checked_sub(wide) {
        put(buf, area, dx, dy, text, style);
    }
}

/// Writes pieces at the left and at the right end of one row, two cells apart from each other at least. What does not
/// fit is left out by rank, the lowest first, and what still fits then is put in again; pieces of the highest rank are
/// cut. Returns where the left end stops and where the right one starts, counted from the left of the area.
pub fn row(buf: &mut Buffer, area: Rect, dy: u16, left: Vec<Piece>, right: Vec<Piece>) -> (u16, u16) {
    let (left, right) = fit(left, right, area.width);
    let right_start = area.width.saturating_sub(total(&right));
    let stop = if right.is_empty() { area.width } else { right_start.saturating_sub(2) };
    let end = pieces(buf, area, 0, dy, &left, stop);
    let start = right_start.max(end);
    pieces(buf, area, start, dy, &right, area.width);
    (end, start)
}

/// What a click on a cell of a row does, which [`row`] would draw of the same pieces.
pub fn hit(cells: u16, left: Vec<Piece>, right: Vec<Piece>, dx: u16) -> Option<Action> {
    met(cells, left, right, dx)?.0
}

/// Which key a click on a cell of such a row is.
pub fn pressed(cells: u16, left: Vec<Piece>, dx: u16) -> Option<KeyCode> {
    met(cells, left, Vec::new(), dx)?.1
}

type Meaning = (Option<Action>, Option<KeyCode>);

fn met(cells: u16, left: Vec<Piece>, right: Vec<Piece>, dx: u16) -> Option<Meaning> {
    let (left, right) = fit(left, right, cells);
    let right_start = cells.saturating_sub(total(&right));
    let of = |side: &[Piece], start: u16| {
        let mut at = start;
        for (n, p) in side.iter().enumerate() {
            at += if n == 0 { 0 } else { p.gap };
            // The gap to the next piece of the same meaning belongs to it, so that a key and its word are one target.
            let end =
                at + p.width() + side.get(n + 1).filter(|next| next.means() == p.means()).map_or(0, |next| next.gap);
            if (at..end).contains(&dx) {
                return Some(p.means());
            }
            at += p.width();
        }
        None
    };
    of(&left, 0).or_else(|| of(&right, right_start))
}

fn pieces(buf: &mut Buffer, area: Rect, dx: u16, dy: u16, pieces: &[Piece], stop: u16) -> u16 {
    let mut dx = dx;
    for (n, p) in pieces.iter().enumerate() {
        let gap = if n == 0 { 0 } else { p.gap };
        // What lies below, such as the edge of a box, does not show between two pieces of one line.
        let reversed = p.style.add_modifier.contains(Modifier::REVERSED);
        let blank = " ".repeat(usize::from(gap.min(stop.saturating_sub(dx))));
        put(buf, area, dx, dy, &blank, if reversed { p.style } else { Style::new() });
        let at = dx + gap;
        let room = stop.saturating_sub(at);
        if p.width() <= room {
            dx = put(buf, area, at, dy, &p.text, p.style);
        } else {
            // The rest of a line whose beginning is there is told to be missing.
            return put_cut(buf, area, at, dy, &SafeText::line(&p.text), room, p.style);
        }
    }
    dx
}

/// The pieces of both ends that there is room for. Neighbours of one rank and one meaning, as a key and its word are, stay
/// together; of several such groups of one rank the first go in first.
fn fit(left: Vec<Piece>, right: Vec<Piece>, cells: u16) -> (Vec<Piece>, Vec<Piece>) {
    // The rank of each group, counted over both ends, and to which of them each piece belongs.
    let mut groups: Vec<u8> = Vec::new();
    let mut number = |side: &[Piece]| -> Vec<Place> {
        let one = |a: &Piece, b: &Piece| a.rank == b.rank && a.means() == b.means();
        let mut places = Vec::with_capacity(side.len());
        for group in side.chunk_by(one) {
            places.extend(group.iter().map(|p| Place { group: groups.len(), cells: p.width(), gap: p.gap }));
            groups.extend(group.first().map(|first| first.rank));
        }
        places
    };
    let (in_left, in_right) = (number(&left), number(&right));
    let mut kept: Vec<bool> = groups.iter().map(|rank| *rank == u8::MAX).collect();
    let mut order: Vec<usize> = (0..groups.len()).filter(|group| groups.get(*group) != Some(&u8::MAX)).collect();
    order.sort_by_key(|group| std::cmp::Reverse(groups.get(*group).copied()));
    for group in order {
        set(&mut kept, group, true);
        let (left, right) = (taken(&in_left, &kept), taken(&in_right, &kept));
        let gap = if left == 0 || right == 0 { 0 } else { 2 };
        if left.saturating_add(right).saturating_add(gap) > cells {
            set(&mut kept, group, false);
        }
    }
    let of = |side: Vec<Piece>, places: &[Place]| -> Vec<Piece> {
        side.into_iter().zip(places).filter(|(_, place)| place.is_in(&kept)).map(|(piece, _)| piece).collect()
    };
    (of(left, &in_left), of(right, &in_right))
}

/// A piece among those of a row that are to be fitted into it.
struct Place {
    group: usize,
    cells: u16,
    gap: u16,
}

impl Place {
    fn is_in(&self, kept: &[bool]) -> bool {
        kept.get(self.group).copied().unwrap_or_default()
    }
}

fn set(kept: &mut [bool], group: usize, to: bool) {
    if let Some(kept) = kept.get_mut(group) {
        *kept = to;
    }
}

/// The cells of the kept ones of one end.
fn taken(places: &[Place], kept: &[bool]) -> u16 {
    let cells = |(n, place): (usize, &Place)| if n == 0 { place.cells } else { place.cells.saturating_add(place.gap) };
    places.iter().filter(|place| place.is_in(kept)).enumerate().map(cells).fold(0, u16::saturating_add)
}

/// What a box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// One of several.
    Plain,
    /// The one of several that the movement keys move: it has a mark, so that nobody needs its colour.
    Focused,
    /// The one that lies above the others.
    Above,
}

impl Edge {
    /// Of a box that has the movement keys, or has not.
    pub const fn focused(focused: bool) -> Self {
        if focused { Self::Focused } else { Self::Plain }
    }
}

/// Draws a box and returns what is inside of it. Titles stand in its upper edge.
pub fn frame(buf: &mut Buffer, area: Rect, theme: Theme, kind: Edge, left: Vec<Piece>, right: Vec<Piece>) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect::ZERO;
    }
    let style = if kind == Edge::Plain { theme.dim() } else { theme.select() };
    let across = "─".repeat(usize::from(area.width - 2));
    put(buf, area, 0, 0, &format!("╭{across}╮"), style);
    put(buf, area, 0, area.height - 1, &format!("╰{across}╯"), style);
    for dy in 1..area.height - 1 {
        put(buf, area, 0, dy, "│", style);
        put(buf, area, area.width - 1, dy, "│", style);
    }
    let edge = Rect { x: area.x + 3, width: area.width.saturating_sub(6), height: 1, ..area };
    let (has_left, has_right) = (!left.is_empty(), !right.is_empty());
    let (end, start) = row(buf, edge, 0, left, right);
    // A space at each end, so that a title does not touch its edge.
    if has_left && end > 0 {
        put(buf, area, 2, 0, if kind == Edge::Focused { "›" } else { " " }, style);
        put(buf, area, 3 + end, 0, " ", style);
    }
    if has_right && start < edge.width {
        put(buf, area, 2 + start, 0, " ", style);
        put(buf, area, area.width - 3, 0, " ", style);
    }
    Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
}

/// Makes everything in the area empty, for what lies above other things.
pub fn wipe(buf: &mut Buffer, area: Rect) {
    for position in area.intersection(buf.area).positions() {
        if let Some(cell) = buf.cell_mut(position) {
            cell.reset();
        }
    }
}

/// Makes everything in the area stand behind, but for a row that is an alarm from end to end: who needs somebody is seen
/// also while something lies above the picture.
pub fn fade(buf: &mut Buffer, area: Rect, theme: Theme) {
    for row in area.intersection(buf.area).rows() {
        let alarms = |position| buf.cell(position).is_some_and(|cell| cell.modifier.contains(Modifier::REVERSED));
        if row.positions().all(alarms) {
            continue;
        }
        for position in row.positions() {
            if let Some(cell) = buf.cell_mut(position) {
                let symbol = cell.symbol().to_owned();
                cell.reset();
                cell.set_symbol(&symbol).set_style(theme.dim());
            }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_cell_by_cell_is_what_the_library_writes(
            text in "([ -~]|[─-◼]|[…✓✗–›†·]|é|e\u{301}|日|👩\u{200d}👧|\u{fe0f}|\u{7}){0,24}",
            before in "([ -~]|日){0,12}",
            dx in 0_u16..12,
        ) {
            let area = Rect::new(0, 0, 12, 1);
            let mut buf = Buffer::empty(area);
            buf.set_string(0, 0, &before, Style::new().fg(ratatui::style::Color::Red));
            let mut other = buf.clone();
            let style = Style::new().fg(ratatui::style::Color::Blue);
            let end = put(&mut buf, area, dx, 0, &text, style);
            let expected = other.set_stringn(dx, 0, &text, usize::from(12 - dx), Style::reset().patch(style)).0;
            prop_assert_eq!((end, buf), (expected, other));
        }

        #[test]
        fn a_line_from_outside_is_cut_as_a_clean_one_is(
            text in "([ -~]|é|日|\u{7}|\u{1b}){0,24}",
            dx in 0_u16..14,
            cells in 0_u16..14,
        ) {
            let area = Rect::new(0, 0, 12, 1);
            let (mut buf, mut other) = (Buffer::empty(area), Buffer::empty(area));
            let end = put_line(&mut buf, area, dx, 0, &text, cells, Style::new());
            let expected = put_cut(&mut other, area, dx, 0, &SafeText::line(&text), cells, Style::new());
            prop_assert_eq!((end, buf), (expected, other));
        }
    }

    #[test]
    fn of_hints_of_one_rank_as_many_go_in_as_there_is_room_for_and_a_key_goes_with_its_word() {
        let hint = |key: &str, word: &str, rank: u8, action: Action| {
            [piece(key, Style::new()).rank(rank).gap(2), piece(word, Style::new()).rank(rank).gap(1)]
                .map(|piece| piece.does(action))
        };
        let pieces = [
            hint("f", "follow", 3, Action::Follow),
            hint("&", "filter", 3, Action::Filter),
            hint("z", "zoom", 5, Action::Zoom),
            hint("v", "view", 1, Action::View),
        ];
        let drawn = |cells: u16| {
            let area = Rect::new(0, 0, cells, 1);
            let mut buf = Buffer::empty(area);
            row(&mut buf, area, 0, pieces.clone().into_iter().flatten().collect(), Vec::new());
            buf.content.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
        };
        assert_eq!(drawn(40), "f follow  & filter  z zoom  v view");
        assert_eq!(drawn(26), "f follow  & filter  z zoom");
        assert_eq!(drawn(25), "f follow  z zoom  v view");
        assert_eq!(drawn(17), "f follow  z zoom");
        assert_eq!(drawn(14), "z zoom  v view");
        assert_eq!(drawn(9), "z zoom");
        assert_eq!(drawn(5), "");
    }
}
