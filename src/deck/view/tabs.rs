//! The two bars of tabs: one tab a step, and the tabs of a zoomed step.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::detail::many;
use super::paint::{self, Piece, piece, put, row};
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
    // The ends say how many more there are.
    let end = if room < 72 { NARROW_END } else { END };
    let places = around(ui, state, room.saturating_sub(2 * end), end);
    // Where none lies before the first one nothing has to be said there.
    let begins = places.first().map(|place| place.step) == state.steps.first().map(|step| step.id);
    if begins { around(ui, state, room.saturating_sub(end), 0) } else { places }
}

/// Cells at both ends of a bar that not all tabs fit into.
const END: u16 = 9;
/// The same of a narrow one.
const NARROW_END: u16 = 6;

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

/// How many more tabs lie beyond each end, and whether one of them needs somebody.
fn ends(buf: &mut Buffer, area: Rect, places: &[Place], scene: &Scene<'_>, ui: &UiState) {
    let state = scene.state;
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
    let at = |id: StepId| crate::deck::sums::place(state, id).unwrap_or(0);
    let (before, after) = (at(first.step), state.steps.len().saturating_sub(at(last.step) + 1));
    let sums = ui.sums(state);
    let needs = |lies: &dyn Fn(StepId) -> bool| sums.needy.iter().any(|id| lies(*id));
    let mut tell = |dx: u16, count: usize, needs: bool| {
        if count > 0 {
            // A bare number among those of the tabs would be one of a step.
            let text = match (area.width < 72, needs) {
                (true, true) => "…".to_owned(),
                (false, _) if count < 100 => format!("{count} more"),
                _ => format!("+{count}"),
            };
            let dx = put(buf, area, dx, 0, &text, scene.theme.dim());
            if needs {
                put(buf, area, dx + 1, 0, "▲", scene.theme.alarm());
            }
        }
    };
    tell(1, before, before > 0 && needs(&|id| id < first.step));
    tell(last.end + 2, after, after > 0 && needs(&|id| id > last.step));
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
    let (left, right) = names(scene, ui, log);
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    row(buf, area, 0, left, right);
}

fn names(scene: &Scene<'_>, ui: &UiState, log: Option<&Window>) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    let Some(step) = scene.state.step(ui.selected) else { return (Vec::new(), Vec::new()) };
    let current = ui.tab(step.id);
    let mut left = Vec::new();
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
            // The names go from the last to the first, where there is no room for all of them.
            let rank = 9 - u8::try_from(number).unwrap_or(9);
            left.push(piece(format!(" {}{count} ", tab.name()), theme.dim()).rank(rank).does(does));
        }
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
    let (left, right) = names(scene, ui, None);
    paint::hit(width.saturating_sub(2), left, right, dx.checked_sub(1)?)
}
