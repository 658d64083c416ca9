//! Which step waits for which: the stages of the run beside each other, each step of a stage behind every step of the
//! one before it, and below each step the sub-agents of its agent where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{put, put_cut, put_right};
use super::sub_row;
use super::{Scene, elapsed};
use crate::deck::model::UiState;
use crate::deck::rows::{self, Row};
use crate::run::{RunState, StepId, StepState, SubAgent};
use crate::text::{SafeText, clock};

/// Cells between two stages, for the lines and the arrow.
const GAP: u16 = 5;
/// Cells of a name at most.
const NAME: usize = 18;

/// A stage that is visible.
struct Stage<'s> {
    steps: Vec<&'s StepState>,
    /// The rows that are seen: its steps, and their sub-agents.
    rows: Vec<Row<'s>>,
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

/// How many rows the largest stage needs.
#[must_use]
pub(super) fn height(ui: &UiState, state: &RunState) -> u16 {
    let rows = |steps: &Vec<&StepState>| steps.iter().map(|step| 1 + rows::agents_of(ui, step).count()).sum();
    let high: usize = stages(state).iter().map(rows).max().unwrap_or(0);
    u16::try_from(high).unwrap_or(u16::MAX)
}

/// The cells of a step: a mark, the number, the name, the sign of its state and its time.
fn wide(step: &StepState) -> u16 {
    // Counted and not cleaned: this looks at every step, and a name is cut to its stage anyway.
    let name = step.title().chars().take(NAME).map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>().min(NAME);
    // How many sub-agents it has is told where they have no rows.
    let more = if step.sub_agents.is_empty() { 0 } else { 3 };
    u16::try_from(step.id.to_string().len() + name + more + 12).unwrap_or(30)
}

/// The stages that there is room for, with that of the selected step among them: those before it as far as they fit, so
/// that one sees what it waits for, and then those after it.
fn visible<'s>(ui: &UiState, state: &'s RunState, room: u16, height: usize) -> Visible<'s> {
    let all = around(ui, state, room, height, 0);
    if (all.before, all.after) == (0, 0) || room < 8 * END {
        return all;
    }
    // The ends say how many more there are.
    around(ui, state, room - 2 * END, height, END)
}

/// The stages that are visible, and how many lie before and after them.
struct Visible<'s> {
    stages: Vec<Stage<'s>>,
    before: usize,
    after: usize,
}

/// Cells at both ends where not all stages fit.
const END: u16 = 5;

/// The stages around that of the selected step that fit, from a cell on.
fn around<'s>(ui: &UiState, state: &'s RunState, room: u16, height: usize, from: u16) -> Visible<'s> {
    let stages = stages(state);
    let count = stages.len();
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
            break;
        }
        let at = steps.iter().position(|s| s.id == ui.selected).unwrap_or(0);
        let top = super::layout::list_top(at, steps.len(), height);
        let rows = rows::lines(ui, &steps, top, height);
        out.push(Stage { steps, rows, x: from + x, wide: width(n) });
        x = x.saturating_add(width(n) + GAP);
    }
    let after = count.saturating_sub(first + out.len());
    Visible { stages: out, before: first, after }
}

/// Draws the stages.
pub(super) fn draw(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(3), ..area };
    if scene.state.steps.is_empty() {
        put(buf, inner, 0, 0, "no steps yet", theme.dim());
        return;
    }
    let height = usize::from(area.height);
    let Visible { stages, before, after } = visible(ui, scene.state, inner.width, height);
    for (n, stage) in stages.iter().enumerate() {
        if let Some(before) = n.checked_sub(1).and_then(|n| stages.get(n)) {
            wires(buf, inner, before, stage, scene);
        }
        for (row, dy) in stage.rows.iter().zip(0_u16..area.height) {
            match row {
                Row::Step(step) => node(buf, inner, stage, dy, step, scene, ui),
                Row::Sub(_, agent) => sub_node(buf, inner, stage, dy, agent, scene),
            }
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
    // How many stages lie beyond the ends and whether somebody in them needs a person; where there is hardly room, that
    // there are any.
    let needy = |of: &dyn Fn(StepId) -> bool| ui.sums(scene.state).needy.iter().any(|id| of(*id));
    let first = stages.first().and_then(|stage| stage.steps.first()).map(|step| step.id);
    let last = stages.last().and_then(|stage| stage.steps.last()).map(|step| step.id);
    let narrow = area.width < 8 * END;
    let told = |n: usize| if narrow { "…".to_owned() } else { format!("+{n}") };
    let style = |needs: bool| if needs { theme.alarm() } else { theme.dim() };
    let mark = |needs: bool| if needs && !narrow { "▲" } else { "" };
    if before > 0 {
        let needs = first.is_some_and(|first| needy(&|id| id < first));
        put(buf, area, 0, 0, &format!("{}{}", told(before), mark(needs)), style(needs));
    }
    if after > 0 {
        let needs = last.is_some_and(|last| needy(&|id| id > last));
        put_right(buf, area, area.width, 0, &format!("{}{}", mark(needs), told(after)), style(needs));
    }
}

fn node(buf: &mut Buffer, area: Rect, stage: &Stage<'_>, dy: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let face = super::face(step, scene, ui);
    let selected = step.id == ui.selected;
    if selected {
        put(buf, area, stage.x, dy, "›", theme.select());
    }
    let dx = put(buf, area, stage.x + 1, dy, &step.id.to_string(), if selected { theme.select() } else { theme.dim() });
    let hidden = rows::hidden_agents(&stage.rows, step);
    let name = SafeText::line(step.title()).truncate(NAME);
    let name = if hidden == 0 { name } else { SafeText::line(&format!("{} +{hidden}", name.truncate(NAME - 4))) };
    let dx = put_cut(buf, area, dx + 1, dy, &name, stage.wide, if selected { theme.bold() } else { theme.plain() });
    let dx = put(buf, area, dx + 1, dy, face.glyph, face.style);
    put(buf, area, dx + 1, dy, &elapsed(step, scene), theme.dim());
}

/// A sub-agent below its step: its name, the sign of its state and its time.
fn sub_node(buf: &mut Buffer, area: Rect, stage: &Stage<'_>, dy: u16, agent: &SubAgent, scene: &Scene<'_>) {
    let theme = scene.theme;
    let face = theme.face(sub_row::face(agent));
    let dx = put(buf, area, stage.x + 2, dy, "↳ ", theme.dim());
    // Its sign and its time are not crowded out by its name.
    let time = clock(agent.ended_at.unwrap_or(scene.now).since(agent.started_at));
    let room = (stage.x + stage.wide).saturating_sub(dx + 3 + u16::try_from(time.len()).unwrap_or(8));
    let dx = put_cut(buf, area, dx, dy, &SafeText::line(&agent.name), room, theme.dim());
    let dx = put(buf, area, dx + 1, dy, face.glyph, face.style);
    put(buf, area, dx + 1, dy, &time, theme.dim());
}

/// The lines from every step of one stage to every step of the next one.
fn wires(buf: &mut Buffer, area: Rect, before: &Stage<'_>, after: &Stage<'_>, scene: &Scene<'_>) {
    let style = scene.theme.dim();
    let (from, to) = (before.x + before.wide, after.x);
    let joint = to.saturating_sub(3).max(from);
    let step_at = |stage: &Stage<'_>, dy: u16| matches!(stage.rows.get(usize::from(dy)), Some(Row::Step(_)));
    let is_step = |row: &Row<'_>| matches!(row, Row::Step(_));
    let lowest = [before, after].map(|stage| stage.rows.iter().rposition(is_step).unwrap_or(0)).into_iter().max();
    let last = u16::try_from(lowest.unwrap_or(0)).unwrap_or(u16::MAX).min(area.height.saturating_sub(1));
    for dy in 0..=last {
        let (left, right) = (step_at(before, dy), step_at(after, dy));
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
    let Visible { stages, .. } = visible(ui, state, area.width.saturating_sub(3), usize::from(area.height));
    let stage = stages.iter().find(|s| (s.x..s.x + s.wide).contains(&dx))?;
    stage.rows.get(dy).filter(|_| dy < usize::from(area.height)).map(|row| row.step().id)
}
