//! Which step waits for which: the stages of the run beside each other, each step of a stage behind every step of the
//! one before it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{put, put_cut};
use super::{Scene, elapsed};
use crate::deck::model::UiState;
use crate::run::{RunState, StepId, StepState};
use crate::text::SafeText;

/// Cells between two stages, for the lines and the arrow.
const GAP: u16 = 5;
/// Cells of a name at most.
const NAME: usize = 18;

/// A stage that is visible.
struct Stage<'s> {
    steps: Vec<&'s StepState>,
    /// Its first cell, and how many it has.
    x: u16,
    wide: u16,
}

/// The steps of each stage, in order.
fn stages(state: &RunState) -> Vec<Vec<&StepState>> {
    let mut stages: Vec<Vec<&StepState>> = Vec::new();
    for step in &state.steps {
        match stages.last_mut().filter(|s| s.first().is_some_and(|first| first.logical == step.logical)) {
            Some(stage) => stage.push(step),
            None => stages.push(vec![step]),
        }
    }
    stages
}

/// How many stages there are, and how many rows the largest one needs.
#[must_use]
pub(super) fn size(state: &RunState) -> (usize, u16) {
    let stages = stages(state);
    let high = stages.iter().map(Vec::len).max().unwrap_or(0);
    (stages.len(), u16::try_from(high).unwrap_or(u16::MAX))
}

/// The cells of a step: a mark, the number, the name, the sign of its state and its time.
fn wide(step: &StepState) -> u16 {
    // Counted and not cleaned: this looks at every step, and a name is cut to its stage anyway.
    let name = step.title().chars().take(NAME).map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>().min(NAME);
    u16::try_from(step.id.to_string().len() + name + 12).unwrap_or(30)
}

/// The stages that there is room for, with that of the selected step among them: those before it as far as they fit, so
/// that one sees what it waits for, and then those after it.
fn visible<'s>(ui: &UiState, state: &'s RunState, room: u16) -> (Vec<Stage<'s>>, bool, bool) {
    let stages = stages(state);
    let widths: Vec<u16> = stages.iter().map(|s| s.iter().map(|step| wide(step)).max().unwrap_or(0)).collect();
    let width = |n: usize| widths.get(n).copied().unwrap_or(0);
    let at = stages.iter().position(|s| s.iter().any(|step| step.id == ui.selected)).unwrap_or(0);
    // One stage after it is worth more than all those long before it.
    let after = if at + 1 < stages.len() { GAP + width(at + 1) } else { 0 };
    let mut used = width(at);
    let reserved = if used.saturating_add(after) <= room { after } else { 0 };
    let mut first = at;
    while first > 0 && used.saturating_add(reserved + GAP + width(first - 1)) <= room {
        first -= 1;
        used += GAP + width(first);
    }
    let mut x = 0;
    let mut out = Vec::new();
    for (n, steps) in stages.into_iter().enumerate().skip(first) {
        if n > at && x + width(n) > room {
            return (out, first > 0, true);
        }
        out.push(Stage { steps, x, wide: width(n) });
        x = x.saturating_add(width(n) + GAP);
    }
    (out, first > 0, false)
}

/// The first of a stage's steps that is drawn: the selected one is in sight.
fn top(stage: &Stage<'_>, ui: &UiState, height: usize) -> usize {
    let at = stage.steps.iter().position(|s| s.id == ui.selected).unwrap_or(0);
    super::layout::list_top(at, stage.steps.len(), height)
}

/// Draws the stages.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(3), ..area };
    if scene.state.steps.is_empty() {
        put(buf, inner, 0, 0, "no steps yet", theme.dim());
        return;
    }
    let (stages, more_left, more_right) = visible(ui, scene.state, inner.width);
    let height = usize::from(area.height);
    let rows = |stage: &Stage<'_>| stage.steps.len().min(height);
    for (n, stage) in stages.iter().enumerate() {
        if let Some(before) = n.checked_sub(1).and_then(|n| stages.get(n)) {
            wires(buf, inner, before.x + before.wide, stage.x, rows(before), rows(stage), scene);
        }
        for (step, dy) in stage.steps.iter().skip(top(stage, ui, height)).take(height).zip(0_u16..) {
            node(buf, inner, stage, dy, step, scene, ui);
        }
        let hidden = stage.steps.len().saturating_sub(height);
        if hidden > 0 && height > 1 {
            // The last row says what is not to be seen; it is not the selected one's, which is kept in the middle.
            let dy = area.height - 1;
            let text = SafeText::line(&format!("… {} of {} shown", height - 1, stage.steps.len()));
            put_cut(
                buf,
                inner,
                stage.x,
                dy,
                &SafeText::line(&format!("{:<1$}", text.as_str(), usize::from(stage.wide))),
                stage.wide,
                theme.dim(),
            );
        }
    }
    if more_left {
        put(buf, area, 0, 0, "…", theme.accent());
    }
    if more_right {
        put(buf, area, area.width.saturating_sub(1), 0, "…", theme.accent());
    }
}

fn node(buf: &mut Buffer, area: Rect, stage: &Stage<'_>, dy: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let face = theme.face(step.face());
    let selected = step.id == ui.selected;
    if selected {
        put(buf, area, stage.x, dy, "›", theme.select());
    }
    let dx = put(buf, area, stage.x + 1, dy, &step.id.to_string(), if selected { theme.select() } else { theme.dim() });
    let name = SafeText::line(step.title()).truncate(NAME);
    let dx = put_cut(buf, area, dx + 1, dy, &name, stage.wide, if selected { theme.bold() } else { theme.plain() });
    let dx = put(buf, area, dx + 1, dy, face.glyph, face.style);
    put(buf, area, dx + 1, dy, &elapsed(step, scene.now), theme.dim());
}

/// The lines from every step of one stage to every step of the next one. `from` and `to` are the cells between them.
fn wires(buf: &mut Buffer, area: Rect, from: u16, to: u16, before: usize, after: usize, scene: &Scene<'_>) {
    let style = scene.theme.dim();
    let joint = to.saturating_sub(3).max(from);
    let (before, after) = (u16::try_from(before).unwrap_or(u16::MAX), u16::try_from(after).unwrap_or(u16::MAX));
    let last = before.max(after).saturating_sub(1).min(area.height.saturating_sub(1));
    for dy in 0..=last {
        let (left, right) = (dy < before, dy < after);
        if left {
            put(buf, area, from, dy, &"─".repeat(usize::from(joint - from)), style);
        }
        let glyph = match (left, right, dy > 0, dy < last) {
            (true, true, false, false) => "─",
            (true, true, false, true) => "┬",
            (true, true, true, true) => "┼",
            (true, true, true, false) => "┴",
            (true, false, true, true) => "┤",
            (true, false, _, false) => "┘",
            (true, false, false, true) => "┐",
            (false, true, true, true) => "├",
            (false, true, _, false) => "└",
            (false, true, false, true) => "┌",
            (false, false, ..) => "│",
        };
        put(buf, area, joint, dy, glyph, style);
        if right {
            put(buf, area, joint + 1, dy, "▶", style);
        }
    }
}

/// The step at a cell.
pub(super) fn hit(ui: &UiState, state: &RunState, area: Rect, x: u16, y: u16) -> Option<StepId> {
    let (dx, dy) = (x.checked_sub(area.x + 1)?, usize::from(y.checked_sub(area.y)?));
    let (stages, ..) = visible(ui, state, area.width.saturating_sub(3));
    let stage = stages.iter().find(|s| (s.x..s.x + s.wide).contains(&dx))?;
    let height = usize::from(area.height);
    stage.steps.get(top(stage, ui, height) + dy).filter(|_| dy < height).map(|s| s.id)
}
