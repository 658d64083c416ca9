//! What lies above the list: the keys, and the dialog that starts a run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::deck::SIGNS;
use crate::deck::fleet::keys::{Row, TABLE};
use crate::deck::fleet::start::{Field, StartDialog};
use crate::deck::keymap::{key_name, spelt};
use crate::deck::theme::Theme;
use crate::deck::view::paint::{Edge, centred, fade, frame, piece, put, put_cut, put_right, wipe};
use crate::text::SafeText;

fn dialog_box(buf: &mut Buffer, area: Rect, size: (u16, u16), title: &str, theme: Theme) -> Rect {
    let body = Rect { height: area.height - 1, ..area };
    fade(buf, body, theme);
    let place = centred(body, size.0, size.1);
    wipe(buf, place);
    let inner = frame(buf, place, theme, Edge::Above, vec![piece(title, theme.bold())], Vec::new());
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// The keys and what they do in so many columns of the screen, row by row; a row without a text is a heading.
fn help_rows(width: u16, ascii: bool) -> Vec<(String, SafeText)> {
    let keys = |entry: &Row| spelt(&entry.keys.iter().copied().map(key_name).collect::<Vec<_>>().join(" "), ascii);
    let mut rows: Vec<(String, &str)> = TABLE.iter().map(|entry| (keys(entry), entry.help)).collect();
    rows.push(("signs".to_owned(), ""));
    rows.extend(SIGNS.map(|(sign, what)| (sign.to_owned(), what)));
    // A sentence that there is no room for goes on in the next row.
    let room = usize::from(width.min(WIDE)).saturating_sub(4 + 16).max(10);
    let wrapped = |(mut names, help): (String, &str)| {
        let texts = SafeText::line(help).wrap(room);
        texts.into_iter().map(|text| (std::mem::take(&mut names), text)).collect::<Vec<_>>()
    };
    rows.into_iter().flat_map(wrapped).collect()
}

/// How far the keys can be scrolled on a screen of this size.
pub(in crate::deck::fleet) fn help_end((width, height): (u16, u16)) -> usize {
    help_rows(width, false).len().saturating_sub(usize::from(height.saturating_sub(3)))
}

pub(super) fn help(buf: &mut Buffer, area: Rect, top: usize, theme: Theme) {
    let rows = help_rows(area.width, theme.ascii);
    let high = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let inner = dialog_box(buf, area, (WIDE, high), "keys", theme);
    let last = rows.len().saturating_sub(usize::from(inner.height));
    let top = top.min(last);
    if last > 0 {
        let told = if top < last { " more below " } else { " more above " };
        put_right(buf, Rect { y: inner.bottom(), height: 1, ..inner }, inner.width, 0, told, theme.accent());
    }
    for ((names, text), dy) in rows.iter().skip(top).zip(0_u16..inner.height) {
        if text.is_empty() {
            put(buf, inner, 0, dy, names, theme.accent());
            continue;
        }
        put_right(buf, inner, 14, dy, names, theme.key());
        put(buf, inner, 16, dy, text.as_str(), theme.plain());
    }
}

/// As wide as the keys are at most, in cells with their frame.
const WIDE: u16 = 72;

pub(super) fn start(buf: &mut Buffer, area: Rect, dialog: &StartDialog, theme: Theme) {
    let inner = dialog_box(buf, area, (84, 19), "start a run", theme);
    let mark = |field: Field| if dialog.field == field { theme.select() } else { theme.dim() };
    let mut line = |dy: u16, field: Field, name: &str, value: &str| {
        put(buf, inner, 0, dy, name, mark(field));
        let room = usize::from(inner.width.saturating_sub(11));
        let value = SafeText::line(value).truncate_start(room);
        let dx = put(buf, inner, 9, dy, value.as_str(), theme.plain());
        if dialog.field == field {
            put(buf, inner, dx, dy, "▏", theme.select());
        }
    };
    line(0, Field::Agent, "agent", &dialog.agent);
    line(1, Field::Runner, "runner", &dialog.runner);
    line(2, Field::Folder, "folder", &dialog.folder);
    if dialog.runner.is_empty() {
        let usual = dialog.usual_runner().map(|usual| format!("{usual}, ")).unwrap_or_default();
        put_cut(buf, inner, 11, 1, &SafeText::line(&format!("{usual}as the agent says")), inner.width, theme.dim());
    }
    put(buf, inner, 0, 3, "task", mark(Field::Task));
    let task = Rect { x: inner.x + 9, y: inner.y + 3, width: inner.width.saturating_sub(9), height: 6 };
    let task = task.intersection(inner);
    (&dialog.task).render(task, buf);
    if dialog.field != Field::Task {
        // The cursor is where one types.
        buf.set_style(task, ratatui::style::Style::reset());
    }
    let rule = "─".repeat(usize::from(inner.width));
    put(buf, inner, 0, 9, &rule, theme.dim());
    match &dialog.wrong {
        Some(wrong) => {
            for (text, dy) in wrong.wrap(usize::from(inner.width)).iter().zip(10_u16..inner.height) {
                put_cut(buf, inner, 0, dy, text, inner.width, theme.bad());
            }
        }
        None if dialog.field == Field::Runner => {
            for (word, dy) in dialog.runners().iter().zip(10_u16..inner.height) {
                put(buf, inner, 2, dy, word, theme.plain());
            }
        }
        None if dialog.agents.is_empty() => {
            put(buf, inner, 0, 10, "no agent definitions are found from this folder", theme.dim());
        }
        None => {
            for (agent, dy) in dialog.choices().iter().zip(10_u16..inner.height) {
                let dx = put_cut(buf, inner, 2, dy, &SafeText::line(&agent.name), 24, theme.plain());
                let about = SafeText::line(&agent.about);
                put_cut(buf, inner, dx.max(20) + 2, dy, &about, inner.width, theme.dim());
            }
        }
    }
    // The one that is taken when the field is left.
    if dialog.wrong.is_none() && dialog.completes() {
        put(buf, inner, 0, 10, "›", theme.select());
    }
}
