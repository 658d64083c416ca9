//! The dialog that answers a question of an agent.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::overlay::dialog_box;
use super::paint::{piece, put, put_cut, row};
use crate::deck::answer_dialog::{lines, question};
use crate::deck::model::AnswerDialog;
use crate::text::{SafeText, clock};

/// The widest dialog, in cells with its frame.
const WIDE: u16 = 92;
/// How many rows of one's own words are seen; the end of them.
const WORDS: usize = 4;

/// Draws it. What does not fit is left out from the middle of the question, never the answers: who answers has to see
/// what will be done.
pub(super) fn draw(buf: &mut Buffer, area: Rect, dialog: &AnswerDialog, scene: &Scene<'_>) {
    let theme = scene.theme;
    let name = scene.state.step(dialog.step).map(|s| SafeText::line(s.title()).truncate(30)).unwrap_or_default();
    let title = format!("step {} {name} asks", dialog.step);
    let Some(question) = question(scene.state, dialog) else {
        let inner = dialog_box(buf, area, (WIDE.min(60), 5), &title, scene);
        put(buf, inner, 0, 1, "the question is not open any more; any key closes this", theme.plain());
        return;
    };
    let asking = &question.asking;
    let wide = usize::from(WIDE.min(area.width).saturating_sub(4)).max(1);
    let choices = lines(question);
    let mut text: Vec<SafeText> = SafeText::block(&asking.text).iter().flat_map(|line| line.wrap(wide)).collect();
    // What it is about in full, where the question itself does not say it.
    if !asking.args.is_empty() && !asking.text.contains(asking.args.trim()) {
        text.extend(SafeText::block(&asking.args).iter().flat_map(|line| line.wrap(wide)));
    }
    let typed: Vec<SafeText> = if asking.takes_text() {
        let all: Vec<SafeText> =
            SafeText::block(&format!("{}▏", dialog.text)).iter().flat_map(|l| l.wrap(wide.saturating_sub(2))).collect();
        all.get(all.len().saturating_sub(WORDS)..).unwrap_or_default().to_vec()
    } else {
        Vec::new()
    };
    // The frame, and where there is room a blank row on either side of the answers and a row about them.
    let answers = choices.len() + typed.len() + 2;
    let spare = if usize::from(area.height) >= text.len().min(4) + answers + 3 { 3 } else { 0 };
    let room = usize::from(area.height).saturating_sub(answers + spare).max(1);
    if text.len() > room {
        let left_out = text.len() - room + 1;
        text.truncate(room.saturating_sub(1).max(1));
        if room > 1 {
            text.push(SafeText::line(&format!("… {left_out} more lines; subdeck answer prints all of it")));
        }
    }
    let high = u16::try_from(text.len() + answers + spare).unwrap_or(u16::MAX);
    let inner = dialog_box(buf, area, (WIDE, high), &title, scene);
    let mut dy = 0;
    for line in &text {
        put_cut(buf, inner, 0, dy, line, inner.width, theme.bold());
        dy += 1;
    }
    dy += u16::from(spare > 0);
    for (n, line) in choices.iter().enumerate() {
        let chosen = dialog.index == Some(n);
        if chosen {
            put(buf, inner, 0, dy, "›", theme.select());
        }
        let key = line.key.map_or_else(String::new, |key| key.to_string());
        put(buf, inner, 2, dy, &key, theme.key());
        let style = if chosen { theme.select() } else { theme.plain() };
        put_cut(buf, inner, 4, dy, &SafeText::line(&line.text), inner.width.saturating_sub(4), style);
        dy += 1;
    }
    for (n, line) in typed.iter().enumerate() {
        put(buf, inner, 0, dy, if n == 0 && dialog.index.is_none() { "›" } else { " " }, theme.select());
        put_cut(buf, inner, 2, dy, line, inner.width.saturating_sub(2), theme.plain());
        dy += 1;
    }
    let last = inner.height.saturating_sub(1);
    if let Some(wrong) = &dialog.wrong {
        let blank = " ".repeat(usize::from(inner.width));
        put(buf, inner, 0, last, &blank, theme.plain());
        put_cut(buf, inner, 0, last, wrong, inner.width, theme.bad());
        return;
    }
    if spare == 0 {
        return;
    }
    let left = vec![
        piece("enter", theme.key()),
        piece(if asking.takes_text() { "send" } else { "answer" }, theme.dim()).gap(1),
        piece("esc", theme.key()).rank(1).gap(3),
        piece("later", theme.dim()).rank(1).gap(1),
    ];
    let until = question.until.map(|until| format!("refused in {}", clock(until.since(scene.now))));
    let right = vec![
        piece(until.unwrap_or_else(|| format!("asked {} ago", clock(scene.now.since(question.asked_at)))), theme.dim())
            .rank(2),
    ];
    row(buf, inner, last, left, right);
}
