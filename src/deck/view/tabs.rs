//! The two bars of tabs: one tab a step, and the tabs of a zoomed step.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::detail::many;
use super::paint::{self, Piece, piece, put, row, total};
use crate::deck::actions::Action;
use crate::deck::entries::Earlier;
use crate::deck::model::{Tab, UiState};
use crate::deck::window::{Window, Windows};
use crate::run::{RunState, StepId, StepState};
use crate::text::{SafeText, bytes, grouped};

/// The name on a step's tab.
fn label(step: &StepState) -> SafeText {
    SafeText::line(&format!("{} {}", step.id, SafeText::line(step.title()).truncate(16)))
}

/// The cells of a count of unread lines.
const BADGE: u16 = 5;

/// One tab of the bar.
struct Place {
    step: StepId,
    start: u16,
    end: u16,
}

/// How wide the tab of a step is: a space, the label, a space, the glyph, a space. The room for a badge stays once there
/// was one, so that counting moves nothing that the mouse points at.
fn wide(step: &StepState, ui: &UiState) -> u16 {
    let badge = if ui.unread.contains_key(&step.id) { BADGE } else { 0 };
    u16::try_from(label(step).width()).unwrap_or(20) + 4 + badge
}

/// The tabs that there is room for, with the selected one among them: around it as evenly as the ends allow. Only these
/// are looked at, however many steps there are.
fn places(ui: &UiState, state: &RunState, room: u16) -> Vec<Place> {
    let all = around(ui, state, room, 0);
    if all.len() == state.steps.len() {
        return all;
    }
    // The ends say how many more there are; where none lies beyond one of them nothing has to be said there.
    let (left, right) = (end(ui, state, room, &|id| id < ui.selected), end(ui, state, room, &|id| id > ui.selected));
    let is = |place: Option<&Place>, step: Option<&StepState>| place.map(|p| p.step) == step.map(|s| s.id);
    let from_first = around(ui, state, room.saturating_sub(right), 0);
    if is(from_first.first(), state.steps.first()) {
        return from_first;
    }
    let to_last = around(ui, state, room.saturating_sub(left), left);
    let places = match is(to_last.last(), state.steps.last()) {
        true => to_last,
        false => around(ui, state, room.saturating_sub(left + right), left),
    };
    // Of what the left end may have to say it says less where no tab before the first one has printed anything.
    let Some(first) = places.first().map(|place| place.step) else { return places };
    let spare = left.saturating_sub(end(ui, state, room, &|id| id < first));
    let moved = |place: Place| Place {
        start: place.start.saturating_sub(spare),
        end: place.end.saturating_sub(spare),
        ..place
    };
    places.into_iter().map(moved).collect()
}

/// Cells at an end of a bar that not all tabs fit into: for how many more there are, that one of them needs somebody, what
/// they printed, and what parts them from the tabs.
fn end(ui: &UiState, state: &RunState, room: u16, lies: &dyn Fn(StepId) -> bool) -> u16 {
    let digits = u16::try_from(state.steps.len().to_string().len()).unwrap_or(5);
    let word = if is_short(state, room) { 1 } else { 5 };
    let printed = room >= NARROW && ui.unread.keys().any(|id| lies(*id));
    digits + word + 5 + if printed { BADGE } else { 0 }
}

/// Whether the ends say how many more there are without a word for it.
const fn is_short(state: &RunState, room: u16) -> bool {
    room < NARROW || state.steps.len() >= 1000
}

/// A narrower bar says in fewer cells what lies beyond its ends.
const NARROW: u16 = 72;

/// The tabs around the selected one that fit, from a cell on.
fn around(ui: &UiState, state: &RunState, room: u16, from: u16) -> Vec<Place> {
    let at = crate::deck::sums::place(state, ui.selected).unwrap_or(0);
    let Some(selected) = state.steps.get(at) else { return Vec::new() };
    let mut shown = std::collections::VecDeque::from([(selected.id, wide(selected, ui))]);
    let mut used = wide(selected, ui);
    let (mut left, mut right) = (at.checked_sub(1), Some(at + 1));
    while left.is_some() || right.is_some() {
        for forward in [false, true] {
            let side = if forward { &mut right } else { &mut left };
            let next = side.and_then(|n| state.steps.get(n)).map(|s| (s.id, wide(s, ui)));
            match next.filter(|(_, wide)| used.saturating_add(wide + 1) <= room) {
                Some(tab) => {
                    used += tab.1 + 1;
                    *side = if forward { side.map(|n| n + 1) } else { side.and_then(|n| n.checked_sub(1)) };
                    if forward { shown.push_back(tab) } else { shown.push_front(tab) }
                }
                None => *side = None,
            }
        }
    }
    let mut start = from;
    shown
        .into_iter()
        .map(|(step, wide)| {
            let place = Place { step, start, end: start + wide };
            start = place.end + 1;
            place
        })
        .collect()
}

/// One tab a step, in the order of steps.
pub(super) fn steps(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let places = places(ui, scene.state, area.width);
    ends(buf, area, &places, scene, ui);
    for Place { step: id, start, end } in places {
        let Some(step) = scene.state.step(id) else { continue };
        let face = super::face(step, scene, ui);
        let unread = ui.unread.get(&id).copied().filter(|n| *n > 0 && id != ui.selected);
        let style = match (id == ui.selected, unread) {
            (true, _) => theme.select(),
            (false, Some(_)) => theme.plain(),
            (false, None) => theme.dim(),
        };
        if id == ui.selected {
            put(buf, area, start, 0, "›", theme.select());
        }
        let at = put(buf, area, start + 1, 0, label(step).as_str(), style);
        let at = put(buf, area, at + 1, 0, face.glyph, face.style);
        if let Some(unread) = unread {
            put(buf, area, at + 1, 0, &badge(unread), theme.accent());
        }
        put(buf, area, end, 0, "│", theme.dim());
    }
}

/// How many more tabs lie beyond each end, whether one of them needs somebody, and how much they printed.
fn ends(buf: &mut Buffer, area: Rect, places: &[Place], scene: &Scene<'_>, ui: &UiState) {
    let state = scene.state;
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
    let at = |id: StepId| crate::deck::sums::place(state, id).unwrap_or(0);
    let (before, after) = (at(first.step), state.steps.len().saturating_sub(at(last.step) + 1));
    let sums = ui.sums(state);
    let narrow = area.width < NARROW;
    let tell = |buf: &mut Buffer, dx: u16, count: usize, lies: &dyn Fn(StepId) -> bool| {
        // A bare number among those of the tabs would be one of a step.
        let text = if is_short(state, area.width) { format!("+{count}") } else { format!("{count} more") };
        let mut dx = put(buf, area, dx, 0, &text, scene.theme.dim());
        if sums.needy.iter().any(|id| lies(*id)) {
            dx = put(buf, area, dx + 1, 0, "▲", scene.theme.alarm());
        }
        let unread = ui.unread.iter().filter(|(id, _)| lies(**id)).map(|(_, lines)| lines).sum::<u64>();
        if unread > 0 && !narrow {
            put(buf, area, dx + 1, 0, &badge(unread), scene.theme.accent());
        }
    };
    if before > 0 {
        tell(buf, 1, before, &|id| id < first.step);
        put(buf, area, first.start.saturating_sub(1), 0, "│", scene.theme.dim());
    }
    if after > 0 {
        tell(buf, last.end + 2, after, &|id| id > last.step);
    }
}

/// A count of at most four cells and its sign.
fn badge(unread: u64) -> String {
    match unread {
        0..=9_999 => format!("+{unread}"),
        10_000..=999_999 => format!("+{}k", unread / 1_000),
        _ => format!("+{}M", (unread / 1_000_000).min(999)),
    }
}

/// The step whose tab is at a cell of the bar.
#[must_use]
pub fn hit(ui: &UiState, state: &RunState, dx: u16) -> Option<StepId> {
    places(ui, state, ui.size.0).iter().find(|p| (p.start..p.end).contains(&dx)).map(|p| p.step)
}

/// The tabs of a zoomed step.
pub(super) fn sections(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let log = windows.logs.get(&ui.selected).filter(|_| ui.tab(ui.selected) == Tab::Output);
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let (left, right) = names(area.width, scene, ui, log);
    row(buf, area, 0, left, right);
}

fn names(width: u16, scene: &Scene<'_>, ui: &UiState, log: Option<&Window>) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    let Some(step) = scene.state.step(ui.selected) else { return (Vec::new(), Vec::new()) };
    let current = ui.tab(step.id);
    let mut left = Vec::new();
    let mut more = Vec::new();
    for (number, tab) in (1..).zip(Tab::ALL) {
        let count = match tab {
            Tab::Tools if step.tool_count > 0 => format!(" {}", grouped(step.tool_count)),
            Tab::Events => {
                let more = matches!(scene.entries().earlier(step, tab), Earlier::Unread | Earlier::Unlisted);
                match scene.entries().many(step) {
                    0 => String::new(),
                    n => format!(" {}{}", grouped(n as u64), if more { "+" } else { "" }),
                }
            }
            _ => String::new(),
        };
        let does = Action::Tab(tab);
        if tab == current {
            left.push(piece(format!("[{number} {}{count}]", tab.name()), theme.select()).does(does));
        } else {
            left.push(piece(format!(" {number}"), theme.key()).does(does));
            more.push((left.len(), piece(format!(" {}{count}", tab.name()), theme.dim()).does(does)));
            left.push(piece(" ", theme.dim()).does(does));
        }
    }
    // The others are named from the first on, as far as there is room.
    let mut room = width.saturating_sub(total(&left));
    for (named, (at, name)) in more.into_iter().enumerate() {
        let Some(rest) = room.checked_sub(total(std::slice::from_ref(&name))) else { break };
        room = rest;
        left.insert(at + named, name);
    }
    // How much there is: in lines where they were counted.
    let mut right = Vec::new();
    if let Some(log) = log {
        right.extend(log.line.map(|(_, lines)| piece(many(lines, "line"), theme.dim()).rank(0)));
        right.push(piece(bytes(log.len), theme.dim()).rank(1).gap(2));
    }
    (left, right)
}

/// The tab of a zoomed step at a cell of the bar.
pub(super) fn hit_section(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<Action> {
    // The length of the log at the right is the first thing to go, so it moves nothing.
    let (left, right) = names(width.saturating_sub(2), scene, ui, None);
    paint::hit(width.saturating_sub(2), left, right, dx.checked_sub(1)?)
}
