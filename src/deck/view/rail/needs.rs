//! The line about what needs a person.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::Scene;
use super::super::paint::{Piece, hit, piece, row, total};
use crate::deck::actions::Action;
use crate::deck::attention;
use crate::deck::left::processes;
use crate::deck::model::UiState;
use crate::text::SafeText;

/// The line about what needs a person.
pub(in crate::deck::view) fn needs_you(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    buf.set_style(area, scene.theme.alarm());
    let (left, right) = needs(area.width, scene, ui);
    row(buf, alarmed(area), 0, left, right);
}

/// The line, which is an alarm from end to end and needs no air at its right one.
const fn alarmed(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area }
}

fn needs(width: u16, scene: &Scene<'_>, ui: &UiState) -> (Vec<Piece>, Vec<Piece>) {
    if ui.has_left() {
        return live_on(width, scene, ui);
    }
    let theme = scene.theme;
    let waiting = attention::attention(scene.state, ui);
    let Some(first) = attention::foremost(&waiting, ui) else { return (Vec::new(), Vec::new()) };
    let name = scene.state.step(first.step).map(|s| SafeText::line(s.title())).unwrap_or_default();
    let gap = if width < 100 { 2 } else { 3 };
    let hint = |action: Action, word: &str, rank: u8| {
        piece(format!("{} {word}", ui.keymap.hint(action)), theme.alarm()).rank(rank).gap(gap).does(action)
    };
    // What lies above takes the keys.
    let free = ui.overlays.is_empty();
    let asks = scene.read_only.is_none() && scene.state.step(first.step).is_some_and(|step| !step.questions.is_empty());
    let mut right = Vec::new();
    if free {
        right.extend(asks.then(|| hint(Action::Answer, "answer", 4)));
        // Who is at the only one already has nowhere to go.
        right.extend(attention::leads(&waiting, ui).then(|| hint(Action::NextAttention, "jump", 3)));
        if ui.replay.is_none() && !scene.is_gone() {
            let word = if width < 100 { "acknowledge".to_owned() } else { format!("acknowledge step {}", first.step) };
            right.push(hint(Action::Acknowledge, &word, 2));
        }
        // Each key of the line is about the step that it names.
        let why = attention::asked(scene.state, ui) == Some(first.step);
        right.extend(why.then(|| hint(Action::Why, "why", 1)));
    }
    let verb = match waiting.len() {
        _ if scene.is_gone() || ui.replay.is_some() => "NEEDED",
        1 => "NEEDS",
        _ => "NEED",
    };
    // On the narrowest screen the figure is worth more than the words that its sign has.
    let count = match width < NARROWEST {
        true => format!("▲ {}", waiting.len()),
        false => format!("▲ {} {verb} YOU", waiting.len()),
    };
    let word = if width < 70 { "" } else { "step " };
    // For how long is never cut; what it is about may be.
    let used = crate::text::width(&count) + 4 + if width < 70 || !free { 0 } else { 10 };
    // How to answer is never crowded out by the question.
    let used = if asks && free { used + 10 } else { used };
    let number = format!("{word}{}", first.step);
    let text = first.line(&number, name.as_str(), usize::from(width).saturating_sub(used), scene.now);
    let mut left = vec![
        piece(count, theme.alarm()).does(Action::NextAttention),
        piece(text.to_string(), theme.alarm()).gap(2).does(Action::NextAttention),
    ];
    // Where there is room: what comes next by itself, and who else needs somebody.
    let mut room = width.saturating_sub(2).saturating_sub(total(&left) + total(&right) + 4);
    let mut add = |text: String, gap: u16| {
        let more = piece(text, theme.alarm()).gap(gap).rank(0).does(Action::NextAttention);
        let cells = total(std::slice::from_ref(&more)) + gap;
        let fits = cells <= room;
        if fits {
            room -= cells;
            left.push(more);
        }
        fits
    };
    if let Some(next) = scene.state.step(first.step).and_then(attention::outlook) {
        add(format!("({next})"), 1);
    }
    for other in waiting.iter().filter(|other| other.step != first.step) {
        let name = scene.state.step(other.step).map(|s| SafeText::line(s.title()).truncate(24)).unwrap_or_default();
        let text = other.line(&other.step.to_string(), name.as_str(), OTHER + name.width(), scene.now);
        if !add(text.to_string(), 3) {
            break;
        }
    }
    (left, right)
}

/// A narrower line has no words for how many need somebody, in cells.
const NARROWEST: u16 = 40;

/// The cells that a text takes.
fn cells(text: &str) -> u16 {
    u16::try_from(crate::text::width(text)).unwrap_or(u16::MAX)
}

/// That processes of a lost run live on, which, and what ends them.
fn live_on(width: u16, scene: &Scene<'_>, ui: &UiState) -> (Vec<Piece>, Vec<Piece>) {
    let theme = scene.theme;
    let verb = if ui.left.len() == 1 { "LIVES" } else { "LIVE" };
    let count = format!("▲ {} {verb} ON", processes(ui.left.len()).to_uppercase());
    let ends = format!("{} {}", ui.keymap.hint(Action::StopRun), if ui.ending_left { "…" } else { "end" });
    let right = if ui.can_end_left && ui.overlays.is_empty() {
        vec![piece(ends, theme.alarm()).does(Action::StopRun)]
    } else {
        Vec::new()
    };
    let mut room = width.saturating_sub(2 + 4 + total(&right)).saturating_sub(cells(&count));
    let mut left = vec![piece(count, theme.alarm()).does(Action::StopRun)];
    let mut named: Vec<(String, SafeText)> = Vec::new();
    for process in &ui.left {
        let name = scene.state.step(process.step).map(|s| SafeText::line(s.title()).truncate(16)).unwrap_or_default();
        let who = format!("{} {name}: pid {} ", process.step, process.pid);
        let wide = cells(&who).saturating_add(cells(process.command.truncate(OTHER).as_str())).saturating_add(3);
        // The first is told as far as it can be.
        let tells = named.is_empty() && room > cells(&who).saturating_add(3 + LEAST);
        if wide > room && !tells {
            break;
        }
        room = room.saturating_sub(wide);
        named.push((who, process.command.clone()));
        if tells && room == 0 {
            break;
        }
    }
    // The last one has what is left of the line.
    let all = named.len();
    for (n, (who, command)) in named.into_iter().enumerate() {
        let most = if n + 1 == all { usize::from(width) } else { OTHER };
        let text = format!("{who}{}", command.truncate(most));
        left.push(piece(text, theme.alarm()).gap(3).does(Action::StopRun));
    }
    (left, right)
}

/// Cells of a command that say something.
const LEAST: u16 = 6;

/// Cells of what another step needs somebody for, on the line that is about the foremost one; its name not counted.
const OTHER: usize = 40;

/// What a click on the line about what needs a person does, `dx` cells from its left.
pub(in crate::deck::view) fn hit_needs(width: u16, dx: u16, scene: &Scene<'_>, ui: &UiState) -> Option<Action> {
    let (left, right) = needs(width, scene, ui);
    hit(width.saturating_sub(1), left, right, dx.checked_sub(1)?)
}
