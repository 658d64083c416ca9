//! What lies above the picture: help, palette, what is read; and where dialogs stand.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::paint::{Edge, Piece, centred, fade, frame, piece, put, put_cut, put_right, wipe};
use super::secrets::wrapped;
use crate::deck::actions::{self, Section, Situation};
use crate::deck::attention::evidence;
use crate::deck::model::{Overlay, UiState};
use crate::deck::reading::{Found, Reading};
use crate::run::{StepFace, StepId};
use crate::text::{SafeText, width};

/// Draws the topmost overlay. The picture behind it stands back, except for the composer, which is written while one
/// looks at what goes on.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let Some(mut top) = ui.overlays.last() else { return };
    if super::layout::is_tiny((area.width, area.height)) {
        return;
    }
    // What is looked for in a text is typed on the line for notices, below that text.
    if let ([.., text @ Overlay::Reading(_), _], Overlay::Search { .. }) = (ui.overlays.as_slice(), top) {
        top = text;
    }
    let body = match top {
        Overlay::Reading(_) => beside_edges(area, scene, ui),
        _ => Rect { height: area.height.saturating_sub(1), ..area },
    };
    match top {
        Overlay::Help { top, query } => help(buf, body, *top, query.as_deref(), scene, ui),
        Overlay::Palette { query, index } => palette(buf, body, query, *index, scene, ui),
        // Typed on the line for notices, so that nothing of the output is covered.
        Overlay::Search { .. } | Overlay::Filter => {}
        Overlay::Composer(composer) => super::composer::draw(buf, body, composer, scene, ui),
        Overlay::Confirm { what, .. } => super::danger::confirm(buf, body, *what, scene, ui),
        Overlay::Quit { .. } => super::danger::quit(buf, body, scene, &ui.keymap.hint(actions::Action::StopRun)),
        Overlay::Why { step, top } => why(buf, body, *step, *top, scene),
        Overlay::Budget(dialog) => super::raise::draw(buf, body, dialog, scene),
        Overlay::Answer(dialog) => super::answer::draw(buf, body, dialog, scene),
        Overlay::Reading(text) => reading(buf, body, text, scene, ui),
    }
}

/// What lies between the lines at the edges: a text that is read there never moves, whether something is typed below it or
/// not, and covers nothing that needs a person.
fn beside_edges(area: Rect, scene: &Scene<'_>, ui: &UiState) -> Rect {
    let parts = super::layout::layout(ui, scene.state);
    let top = parts.header.bottom().max(parts.attention.bottom()).min(area.bottom());
    Rect { y: top, height: area.bottom().saturating_sub(top + 2), ..area }
}

pub(super) fn dialog_box(buf: &mut Buffer, area: Rect, size: (u16, u16), title: &str, scene: &Scene<'_>) -> Rect {
    titled_box(buf, area, size, title, Vec::new(), scene)
}

/// Where a box of at most this size is.
fn boxed(area: Rect, size: (u16, u16)) -> Rect {
    // A strip of a few cells beside a dialog shows nothing but the remains of words.
    let wide = if area.width.saturating_sub(size.0) < 12 { area.width } else { size.0 };
    centred(area, wide, size.1)
}

/// What is inside of such a box.
pub(super) fn inside_box(area: Rect, size: (u16, u16)) -> Rect {
    let place = boxed(area, size);
    Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: place.width.saturating_sub(4),
        height: place.height.saturating_sub(2),
    }
}

/// Which of the things to choose from a dialog shows at a cell.
pub(super) fn choice_at(area: Rect, scene: &Scene<'_>, ui: &UiState, x: u16, y: u16) -> Option<usize> {
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    let (list, top, count) = match ui.overlays.last()? {
        Overlay::Palette { query, index } => {
            let inner = inside_box(body, palette_size(ui));
            let list = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
            let count = actions::search(query).len();
            (list, super::layout::list_top(*index, count, usize::from(list.height)), count)
        }
        Overlay::Answer(dialog) => super::answer::choices(body, dialog, scene)?,
        Overlay::Budget(dialog) => super::raise::choices(body, dialog, scene),
        _ => return None,
    };
    let at = list.contains(ratatui::layout::Position { x, y }).then(|| usize::from(y - list.y))?;
    Some(top + at).filter(|at| *at < count)
}

/// How large the palette is: as wide as its longest row needs, so that nothing is cut beside empty cells; the same whatever
/// is typed.
fn palette_size(ui: &UiState) -> (u16, u16) {
    let cells = |row: &actions::Row| 19 + row.help.len() + 2 + width(&ui.keymap.shown(row)) + 4;
    let wide = actions::TABLE.iter().map(cells).max().and_then(|cells| u16::try_from(cells).ok()).unwrap_or(84);
    (wide.max(84), 18)
}

/// A box with something at the right end of its upper edge too.
fn titled_box(
    buf: &mut Buffer,
    area: Rect,
    size: (u16, u16),
    title: &str,
    right: Vec<Piece>,
    scene: &Scene<'_>,
) -> Rect {
    fade(buf, area, scene.theme);
    let place = boxed(area, size);
    wipe(buf, place);
    let inner = frame(buf, place, scene.theme, Edge::Above, vec![piece(title, scene.theme.bold())], right);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

fn help(buf: &mut Buffer, area: Rect, top: usize, query: Option<&str>, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let found = actions::matching(query.unwrap_or_default());
    let room = usize::from(area.width.min(76)).saturating_sub(16).max(10);
    let mut lines: Vec<(&str, String, SafeText)> = Vec::new();
    for section in Section::ALL {
        let rows: Vec<_> = found.iter().filter(|r| r.section == section).collect();
        if rows.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(("", String::new(), SafeText::default()));
        }
        lines.push((section.title(), String::new(), SafeText::default()));
        // A sentence that there is no room for goes on in the next row.
        for row in rows {
            let mut keys = ui.keymap.shown(row);
            let wrapped = SafeText::line(row.help).wrap(room);
            lines.extend(wrapped.into_iter().map(|text| ("", std::mem::take(&mut keys), text)));
        }
    }
    if query.is_none() {
        lines.push(("", String::new(), SafeText::default()));
        lines.push(("signs", String::new(), SafeText::default()));
        let drafted = (super::list::DRAFT, "a message to this step was begun and not sent");
        for (sign, what) in crate::deck::SIGNS.into_iter().chain(crate::deck::DECK_SIGNS).chain([drafted]) {
            let mut sign = sign.to_owned();
            let wrapped = SafeText::line(what).wrap(room);
            lines.extend(wrapped.into_iter().map(|text| ("", std::mem::take(&mut sign), text)));
        }
        lines.push(("", String::new(), SafeText::default()));
        lines.push(("states", String::new(), SafeText::default()));
        lines.extend(states(room).into_iter().map(|row| ("", String::new(), SafeText::line(&row))));
    }
    let typing = u16::from(query.is_some()) * 2;
    // Two columns where one does not hold all of it and there is room beside it: they part between two sections.
    let fits = |rows: usize| rows + usize::from(2 + typing) <= usize::from(area.height);
    let half = lines.len() / 2;
    let blank = |at: &usize| {
        lines.get(*at).is_some_and(|(heading, keys, text)| heading.is_empty() && keys.is_empty() && text.is_empty())
    };
    let gap = (0..lines.len()).filter(blank).min_by_key(|at| at.abs_diff(half));
    let gap = gap.filter(|_| area.width >= 2 * COLUMN && !fits(lines.len()));
    let (left, right) = match gap {
        Some(at) => (lines.get(..at).unwrap_or_default(), lines.get(at + 1..).unwrap_or_default()),
        None => (lines.as_slice(), &[][..]),
    };
    // Where no key is left a row says so.
    let rows = left.len().max(right.len()).max(1);
    let wide = if right.is_empty() { COLUMN } else { 2 * COLUMN };
    let high = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2 + typing);
    let inner = dialog_box(buf, area, (wide, high), "keys", scene);
    if let Some(query) = query {
        let dx = put(buf, inner, 0, 0, "/ ", theme.key());
        let dx = put(buf, inner, dx, 0, SafeText::line(query).as_str(), theme.plain());
        put(buf, inner, dx, 0, "▏", theme.select());
        if lines.is_empty() {
            put(buf, inner, 0, 2, "no key has these words", theme.dim());
        }
    }
    let inner = Rect { y: inner.y + typing, height: inner.height.saturating_sub(typing), ..inner };
    let top = scrolled(buf, inner, top, rows, scene);
    for (column, dx) in [(left, 0), (right, COLUMN)] {
        let place = Rect { x: inner.x + dx, width: inner.width.saturating_sub(dx), ..inner };
        for ((heading, keys, text), dy) in column.iter().skip(top).zip(0_u16..place.height) {
            if heading.is_empty() {
                put_right(buf, place, 10, dy, keys, theme.key());
                put_cut(buf, place, 12, dy, text, place.width, theme.plain());
            } else {
                put(buf, place, 0, dy, heading, theme.accent());
            }
        }
    }
}

/// Every state with its sign, as many in a row as fit into so many cells.
fn states(room: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for face in StepFace::ALL {
        let told = format!("{} {}", face.glyph(), face.word());
        match rows.last_mut().filter(|row| width(row) + 3 + width(&told) <= room) {
            Some(row) => *row = format!("{row}   {told}"),
            None => rows.push(told),
        }
    }
    rows
}

/// The widest that one column of keys is, in cells with its frame.
const COLUMN: u16 = 76;

fn palette(buf: &mut Buffer, area: Rect, query: &str, index: usize, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let found = actions::search(query);
    let inner = dialog_box(buf, area, palette_size(ui), "commands", scene);
    let typed = SafeText::line(query);
    let dx = put(buf, inner, 0, 0, "› ", theme.select());
    let dx = put(buf, inner, dx, 0, typed.as_str(), theme.plain());
    put(buf, inner, dx, 0, "▏", theme.select());
    put(buf, inner, 0, 1, &"─".repeat(usize::from(inner.width)), theme.dim());
    if found.is_empty() {
        put(buf, inner, 0, 2, "no command has these letters in this order", theme.dim());
    }
    let list = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let height = usize::from(list.height);
    let top = super::layout::list_top(index, found.len(), height);
    scrolled(buf, list, top, found.len(), scene);
    let at = Situation { state: scene.state, read_only: scene.read_only };
    for ((n, found), dy) in found.iter().enumerate().skip(top).take(height).zip(0_u16..) {
        let possible = actions::possible(found.action, ui, at).is_ok();
        let style = match (n == index, possible) {
            (true, _) => theme.select(),
            (false, true) => theme.plain(),
            (false, false) => theme.dim(),
        };
        if n == index {
            put(buf, list, 0, dy, "›", theme.select());
        }
        put(buf, list, 2, dy, found.name, style);
        let keys = ui.keymap.shown(found);
        let taken = u16::try_from(width(&keys)).unwrap_or(11);
        let room = list.width.saturating_sub(19 + 2 + taken);
        put_cut(buf, list, 19, dy, &SafeText::line(found.help), room, theme.dim());
        put_right(buf, list, list.width, dy, &keys, theme.key());
    }
}

fn why(buf: &mut Buffer, area: Rect, step: StepId, top: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut lines = evidence(scene.state, step, scene.now);
    if lines.is_empty() {
        lines.push(("over".to_owned(), "nothing is wrong with this step any more".to_owned()));
    }
    // Values are wrapped, so that evidence is never cut.
    let room = usize::from(area.width.min(76)).saturating_sub(19).max(10);
    let lines: Vec<(String, SafeText)> = lines
        .iter()
        .flat_map(|(name, value)| {
            let mut name = Some(name.clone());
            let value = SafeText::line(value);
            let values =
                if value.as_str().is_empty() { vec![SafeText::default()] } else { wrapped(&value, room, scene.reveal) };
            values.into_iter().map(move |value| (name.take().unwrap_or_default(), value)).collect::<Vec<_>>()
        })
        .collect();
    let high = u16::try_from(lines.len()).unwrap_or(20).saturating_add(2);
    let name = scene.state.step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    let inner = dialog_box(buf, area, (76, high), &format!("why step {step} {name} needs you"), scene);
    let top = scrolled(buf, inner, top, lines.len(), scene);
    for ((name, value), dy) in lines.iter().skip(top).zip(0_u16..inner.height) {
        put(buf, inner, 0, dy, name, theme.dim());
        put(buf, inner, 15, dy, value.as_str(), theme.plain());
    }
}

/// An entry in full.
fn reading(buf: &mut Buffer, area: Rect, text: &Reading, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let wide = Reading::room(area.width);
    let rows = |(n, line): (usize, &SafeText)| -> Vec<(usize, SafeText)> {
        wrapped(line, wide, scene.reveal).into_iter().map(|row| (n, row)).collect()
    };
    let lines: Vec<(usize, SafeText)> = text.lines.iter().enumerate().flat_map(rows).collect();
    let high = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).max(6);
    let found = text.found.map(|Found { nth, total, .. }| match total {
        0 => piece("nothing found", theme.bad()),
        _ => piece(format!("match {nth}/{total}"), theme.accent()),
    });
    let sought = found.as_ref().and_then(|_| super::output::sought(ui, scene));
    let told: Vec<Piece> = sought.into_iter().chain(found.map(|piece| piece.gap(2))).collect();
    let inner = titled_box(buf, area, (110, high), text.title.as_str(), told, scene);
    let top = scrolled(buf, inner, text.top, lines.len(), scene);
    let needle = ui.needle().filter(|_| text.found.is_some());
    for ((n, line), dy) in lines.iter().skip(top).zip(0_u16..inner.height) {
        let differs = text.diff.is_some_and(|from| *n >= from);
        let whole = text.lines.get(*n).filter(|_| differs);
        let style = whole.map_or(theme.plain(), |whole| super::sections::difference(whole, scene));
        put(buf, inner, 0, dy, line.as_str(), style);
        if let Some(needle) = &needle {
            let row = Rect { y: inner.y + dy, height: 1, ..inner };
            super::marks::matches(buf, row, needle, text.found.is_some_and(|found| found.line == *n), scene);
        }
    }
}

/// The first row of a text in a box, which says in its lower edge when there is more.
fn scrolled(buf: &mut Buffer, inner: Rect, top: usize, lines: usize, scene: &Scene<'_>) -> usize {
    let shown = usize::from(inner.height);
    let top = top.min(lines.saturating_sub(shown));
    let told = match (top > 0, top + shown < lines) {
        (false, false) => return top,
        // The signs that stand for arrows are keys.
        (true, true) if scene.theme.ascii => " more above and below ",
        (true, false) if scene.theme.ascii => " more above ",
        (false, true) if scene.theme.ascii => " more below ",
        (true, true) => " ↑↓ more ",
        (true, false) => " ↑ more ",
        (false, true) => " ↓ more ",
    };
    let edge = Rect { y: inner.bottom(), height: 1, ..inner };
    put_right(buf, edge, edge.width, 0, told, scene.theme.accent());
    top
}
