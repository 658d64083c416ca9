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

/// A row of the help.
#[derive(Clone, Debug, Default)]
struct HelpRow {
    heading: &'static str,
    /// The keys, or a sign.
    keys: String,
    /// The word in the footer, in its column.
    name: &'static str,
    text: SafeText,
    /// Where the text begins.
    at: u16,
}

/// The help before it is drawn: one column of rows, or two.
struct HelpSheet {
    left: Vec<HelpRow>,
    right: Vec<HelpRow>,
    /// How high and how wide its box is.
    high: u16,
    wide: u16,
    /// Rows above them for what is typed.
    typing: u16,
}

/// The widest that one column of keys is, in cells with its frame.
const COLUMN: u16 = 90;
/// Where what stands behind the keys begins: the word that the footer has for them, and what they do.
const NAME_AT: u16 = 12;
const HELP_AT: u16 = NAME_AT + 13;
/// A narrower help has the word before the sentence.
const NAMED: u16 = 70;

impl HelpSheet {
    fn new(area: Rect, query: Option<&str>, ui: &UiState) -> Self {
        let found = actions::matching(query.unwrap_or_default());
        let named = area.width >= NAMED;
        let room = |at: u16| usize::from(area.width.min(COLUMN)).saturating_sub(usize::from(at) + 4).max(10);
        let mut rows: Vec<HelpRow> = Vec::new();
        // A sentence that there is no room for goes on in the next row.
        let put = |rows: &mut Vec<HelpRow>, keys: String, name: &'static str, text: &str, at: u16| {
            let mut first = Some((keys, name));
            rows.extend(SafeText::line(text).wrap(room(at)).into_iter().map(|text| {
                let (keys, name) = first.take().unwrap_or_default();
                HelpRow { keys, name, text, at, ..HelpRow::default() }
            }));
        };
        let begin = |rows: &mut Vec<HelpRow>, heading| {
            if !rows.is_empty() {
                rows.push(HelpRow::default());
            }
            rows.push(HelpRow { heading, ..HelpRow::default() });
        };
        for section in Section::ALL {
            let of: Vec<_> = found.iter().filter(|r| r.section == section).collect();
            if of.is_empty() {
                continue;
            }
            begin(&mut rows, section.title());
            for row in of {
                match named {
                    true => put(&mut rows, ui.keymap.shown(row), row.short, row.help, HELP_AT),
                    false => {
                        put(&mut rows, ui.keymap.shown(row), "", &format!("{}: {}", row.short, row.help), NAME_AT);
                    }
                }
            }
        }
        if query.is_none() {
            begin(&mut rows, "signs");
            let drafted = (super::list::DRAFT, "a message to this step was begun and not sent");
            for (sign, what) in crate::deck::SIGNS.into_iter().chain(crate::deck::DECK_SIGNS).chain([drafted]) {
                put(&mut rows, sign.to_owned(), "", what, NAME_AT);
            }
            begin(&mut rows, "states");
            for told in states(room(NAME_AT)) {
                put(&mut rows, String::new(), "", &told, NAME_AT);
            }
        }
        let typing = u16::from(query.is_some()) * 2;
        // Two columns where one does not hold all of it and there is room beside it: they part between two sections.
        let fits = |rows: usize| rows + usize::from(2 + typing) <= usize::from(area.height);
        let half = rows.len() / 2;
        let blank = |at: &usize| {
            rows.get(*at)
                .is_some_and(|row| row.heading.is_empty() && row.keys.is_empty() && row.text.as_str().is_empty())
        };
        let gap = (0..rows.len()).filter(blank).min_by_key(|at| at.abs_diff(half));
        let right = match gap.filter(|_| area.width >= 2 * COLUMN && !fits(rows.len())) {
            Some(at) => rows.split_off(at).split_off(1),
            None => Vec::new(),
        };
        let wide = if right.is_empty() { COLUMN } else { 2 * COLUMN };
        // Where no key is left a row says so.
        let high = u16::try_from(rows.len().max(right.len()).max(1)).unwrap_or(u16::MAX).saturating_add(2 + typing);
        Self { left: rows, right, high, wide, typing }
    }

    fn rows(&self) -> usize {
        self.left.len().max(self.right.len())
    }
}

fn help(buf: &mut Buffer, area: Rect, top: usize, query: Option<&str>, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let sheet = HelpSheet::new(area, query, ui);
    let inner = dialog_box(buf, area, (sheet.wide, sheet.high), "keys", scene);
    if let Some(query) = query {
        let dx = put(buf, inner, 0, 0, "/ ", theme.key());
        let dx = put(buf, inner, dx, 0, SafeText::line(query).as_str(), theme.plain());
        put(buf, inner, dx, 0, "▏", theme.select());
        if sheet.left.is_empty() {
            put(buf, inner, 0, 2, "no key has these words", theme.dim());
        }
    }
    let typing = sheet.typing;
    let inner = Rect { y: inner.y + typing, height: inner.height.saturating_sub(typing), ..inner };
    let top = scrolled(buf, inner, top, sheet.rows(), scene);
    for (column, dx) in [(&sheet.left, 0), (&sheet.right, COLUMN)] {
        let place = Rect { x: inner.x + dx, width: inner.width.saturating_sub(dx), ..inner };
        for (row, dy) in column.iter().skip(top).zip(0_u16..place.height) {
            if row.heading.is_empty() {
                put_right(buf, place, 10, dy, &row.keys, theme.key());
                put(buf, place, NAME_AT, dy, row.name, theme.bold());
                put_cut(buf, place, row.at, dy, &row.text, place.width, theme.plain());
            } else {
                put(buf, place, 0, dy, row.heading, theme.accent());
            }
        }
    }
}

/// The row at which the help begins when its end is shown; 0 where there is none.
#[must_use]
pub fn help_bottom(ui: &UiState) -> usize {
    let Some(Overlay::Help { query, .. }) = ui.overlays.last() else { return 0 };
    let body = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1.saturating_sub(1) };
    let sheet = HelpSheet::new(body, query.as_deref(), ui);
    sheet.rows().saturating_sub(usize::from(sheet.high.min(body.height).saturating_sub(2 + sheet.typing)))
}

/// Whether the keys that move in what lies above the picture have anything to show: more of it than is on the screen.
pub(super) fn scrolls(scene: &Scene<'_>, ui: &UiState) -> bool {
    let area = Rect { x: 0, y: 0, width: ui.size.0, height: ui.size.1 };
    let body = Rect { height: area.height.saturating_sub(1), ..area };
    match ui.overlays.last() {
        Some(Overlay::Help { query, .. }) => HelpSheet::new(body, query.as_deref(), ui).high > body.height,
        Some(Overlay::Why { step, .. }) => why_lines(body, *step, scene).len() + 2 > usize::from(body.height),
        Some(Overlay::Reading(text)) => {
            let place = beside_edges(area, scene, ui);
            let high = usize::from(place.height).saturating_sub(2);
            reading_rows(text, place.width, scene).nth(high).is_some()
        }
        _ => false,
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
        let possible = actions::possible(found.action, ui, at);
        let style = match (n == index, possible.is_ok()) {
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
        let text = possible.map_or_else(|why| format!("not now: {why}"), |()| found.help.to_owned());
        put_cut(buf, list, 19, dy, &SafeText::line(&text), room, theme.dim());
        put_right(buf, list, list.width, dy, &keys, theme.key());
    }
}

/// What the rules say of a step, in rows for a screen of this width.
fn why_lines(area: Rect, step: StepId, scene: &Scene<'_>) -> Vec<(String, SafeText)> {
    let mut lines = evidence(scene.state, step, scene.now);
    if lines.is_empty() {
        lines.push(("over".to_owned(), "nothing is wrong with this step any more".to_owned()));
    }
    // Values are wrapped, so that evidence is never cut.
    let room = usize::from(area.width.min(76)).saturating_sub(19).max(10);
    lines
        .iter()
        .flat_map(|(name, value)| {
            let mut name = Some(name.clone());
            let value = SafeText::line(value);
            let values =
                if value.as_str().is_empty() { vec![SafeText::default()] } else { wrapped(&value, room, scene.reveal) };
            values.into_iter().map(move |value| (name.take().unwrap_or_default(), value)).collect::<Vec<_>>()
        })
        .collect()
}

fn why(buf: &mut Buffer, area: Rect, step: StepId, top: usize, scene: &Scene<'_>) {
    let theme = scene.theme;
    let lines = why_lines(area, step, scene);
    let high = u16::try_from(lines.len()).unwrap_or(20).saturating_add(2);
    let name = scene.state.step(step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    let inner = dialog_box(buf, area, (76, high), &format!("why step {step} {name} needs you"), scene);
    let top = scrolled(buf, inner, top, lines.len(), scene);
    for ((name, value), dy) in lines.iter().skip(top).zip(0_u16..inner.height) {
        put(buf, inner, 0, dy, name, theme.dim());
        put(buf, inner, 15, dy, value.as_str(), theme.plain());
    }
}

/// The widest that what is read is, in cells with its frame, and how many are left free beside it.
const READ: u16 = 110;
const BESIDE: u16 = 90;

/// The rows of what is read on a screen of this width, each with the number of its line.
fn reading_rows<'a>(text: &'a Reading, width: u16, scene: &Scene<'_>) -> impl Iterator<Item = (usize, SafeText)> + 'a {
    let (wide, reveal) = (Reading::room(width), scene.reveal);
    let rows = move |(n, line): (usize, &SafeText)| wrapped(line, wide, reveal).into_iter().map(move |row| (n, row));
    text.lines.iter().enumerate().flat_map(rows)
}

/// An entry in full.
fn reading(buf: &mut Buffer, area: Rect, text: &Reading, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let lines: Vec<(usize, SafeText)> = reading_rows(text, area.width, scene).collect();
    let high = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).max(6);
    let found = text.found.map(|Found { nth, total, .. }| match total {
        0 => piece("nothing found", theme.bad()),
        _ => piece(format!("match {nth}/{total}"), theme.accent()),
    });
    // On a large screen it stands beside the beginning of the rows that it was opened from.
    fade(buf, area, theme);
    let beside = if area.width >= READ + BESIDE { BESIDE } else { 0 };
    let place = Rect { x: area.x + beside, width: area.width - beside, ..area };
    let sought = found.as_ref().and_then(|_| super::output::sought(ui, scene));
    let told: Vec<Piece> = sought.into_iter().chain(found.map(|piece| piece.gap(2))).collect();
    let inner = titled_box(buf, place, (READ, high), text.title.as_str(), told, scene);
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
