//! The dialog that changes a limit.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::layout::list_top;
use super::overlay::{dialog_box, inside_box};
use super::paint::{piece, put, put_cut, row};
use crate::deck::budget_dialog::{Line, lines, wanted};
use crate::deck::model::BudgetDialog;
use crate::text::SafeText;

/// As wide as it is when nothing longer has to be said, in cells with its frame.
const WIDE: u16 = 68;
/// Where what was used of a limit stands beside its name, in cells.
const USED: u16 = 17;
/// Where the new value is typed beside its limit, in cells.
const VALUE: u16 = 36;

/// Draws it. Where there is little room the list moves, and the new value is typed below it: nobody sends what he does not
/// see.
pub(super) fn draw(buf: &mut Buffer, area: Rect, dialog: &BudgetDialog, scene: &Scene<'_>) {
    let theme = scene.theme;
    let lines = lines(scene.state, dialog, scene.now);
    let inner = dialog_box(buf, area, size(area, dialog, lines.len()), "raise a budget", scene);
    let narrow = inner.width < VALUE + 20;
    let name = scene.state.step(dialog.step).map(|s| SafeText::line(s.title()).truncate(20)).unwrap_or_default();
    let mark = |on: bool| if on { "(•)" } else { "( )" };
    let style = |on: bool| if on { theme.bold() } else { theme.dim() };
    let rank = |on: bool| if on { u8::MAX } else { 2 };
    let left = vec![
        piece(format!("{} step {} {name}   ", mark(!dialog.whole_run), dialog.step), style(!dialog.whole_run))
            .rank(rank(!dialog.whole_run)),
        piece(format!("{} the whole run", mark(dialog.whole_run)), style(dialog.whole_run))
            .rank(rank(dialog.whole_run)),
    ];
    row(buf, inner, 0, left, vec![piece("tab", theme.key()).rank(1), piece(" scope", theme.dim()).rank(1)]);
    let list = list_in(inner, lines.len());
    let top = list_top(dialog.index, lines.len(), usize::from(list.height));
    for ((n, line), dy) in lines.iter().enumerate().skip(top).zip(0_u16..list.height) {
        let chosen = n == dialog.index;
        if chosen {
            put(buf, list, 0, dy, "›", theme.select());
        }
        put(buf, list, 2, dy, line.name, if chosen { theme.select() } else { theme.plain() });
        let text = SafeText::line(&line.told());
        let dx = put_cut(buf, list, USED, dy, &text, list.width.saturating_sub(USED), theme.plain());
        if chosen && !narrow {
            value(buf, Rect { y: list.y + dy, ..list }, (dx + 2).max(VALUE), dialog, line, scene);
        }
    }
    let last = inner.height.saturating_sub(1);
    if let Some(line) = lines.get(dialog.index).filter(|_| narrow) {
        value(buf, Rect { y: inner.y + last, ..inner }, 0, dialog, line, scene);
    }
    // What is typed is answered while it is: below the list, or above it where there is no row for it.
    let at = match (narrow, list.bottom() < inner.y + last) {
        (false, _) => last,
        (true, true) => last.saturating_sub(1),
        (true, false) => 0,
    };
    let key = lines.get(dialog.index).map_or("", |line| line.key);
    let (text, style) = match (&dialog.wrong, wanted(scene.state, dialog, scene.now)) {
        (Some(why), _) => (why.clone(), theme.bad()),
        (None, _) if at == 0 => return,
        (None, _) if dialog.value.is_empty() => {
            let text = format!("the plan's key: {key}; what is used up already cannot be set");
            (SafeText::line(&text), theme.dim())
        }
        (None, Ok(_)) => (SafeText::line(&format!("enter asks for {key} = {}", dialog.value)), theme.dim()),
        (None, Err(why)) => (SafeText::line(&why), theme.dim()),
    };
    let blank = " ".repeat(usize::from(inner.width));
    put(buf, inner, 0, at, &blank, theme.plain());
    put_cut(buf, inner, 0, at, &text, inner.width, style);
}

/// How large the dialog is.
fn size(area: Rect, dialog: &BudgetDialog, count: usize) -> (u16, u16) {
    let high = u16::try_from(count).unwrap_or(8).saturating_add(7);
    let said = dialog.wrong.as_ref().map_or(0, SafeText::width);
    (u16::try_from(said + 4).unwrap_or(u16::MAX).clamp(WIDE, area.width.max(WIDE)), high)
}

/// Where its limits are listed. Blank rows stand above and below the list where there is room for them.
fn list_in(inner: Rect, count: usize) -> Rect {
    let gap = u16::from(usize::from(inner.height) >= count + 4);
    Rect { y: inner.y + 1 + gap, height: inner.height.saturating_sub(2 + 2 * gap), ..inner }
}

/// Where the limits are that one chooses from, which of them is the first visible one, and how many there are.
pub(super) fn choices(area: Rect, dialog: &BudgetDialog, scene: &Scene<'_>) -> (Rect, usize, usize) {
    let count = lines(scene.state, dialog, scene.now).len();
    let list = list_in(inside_box(area, size(area, dialog, count)), count);
    (list, list_top(dialog.index, count, usize::from(list.height)), count)
}

/// The new value as far as it was typed, or what one looks like.
fn value(buf: &mut Buffer, place: Rect, dx: u16, dialog: &BudgetDialog, line: &Line, scene: &Scene<'_>) {
    let theme = scene.theme;
    let dx = put(buf, place, dx, 0, "→ ", theme.dim());
    let dx = put(buf, place, dx, 0, &dialog.value, theme.bold());
    let dx = put(buf, place, dx, 0, "▏", theme.select());
    // What one looks like stays beside it, for its unit.
    let dx = if dialog.value.is_empty() { dx } else { put(buf, place, dx, 0, "  like ", theme.dim()) };
    put(buf, place, dx, 0, line.example, theme.dim());
}
