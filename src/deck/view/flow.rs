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
    /// How many digits its longest number has.
    digits: usize,
    /// The states of its steps are told in words too.
    words: bool,
}

impl Stage<'_> {
    /// In which of its rows a step stands, which lines lead to.
    fn steps_in_rows(&self) -> Vec<bool> {
        self.rows.iter().map(|row| matches!(row, Row::Step(_))).collect()
    }
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

/// The cells of a step: a mark, the number, the name, the sign of its state, its word where there is room for it, and its
/// time.
fn wide(step: &StepState, words: bool) -> u16 {
    // Counted and not cleaned: this looks at every step, and a name is cut to its stage anyway.
    let name = step.title().chars().take(NAME).map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>().min(NAME);
    // How many sub-agents it has is told where they have no rows.
    let more = if step.sub_agents.is_empty() { 0 } else { 3 };
    // Of a run that is gone the words are longer.
    let word = if words { step.face().word().len().max(11) + 1 } else { 0 };
    u16::try_from(step.id.to_string().len() + name + more + word + 12).unwrap_or(30)
}

/// The stages that there is room for, with that of the selected step among them: those before it as far as they fit, so
/// that one sees what it waits for, and then those after it.
fn visible<'s>(ui: &UiState, state: &'s RunState, room: u16, height: usize) -> Visible<'s> {
    let all = stages(state);
    let whole = around(ui, &all, (room, height), 0, true);
    if (whole.before, whole.after) == (0, 0) {
        return whole;
    }
    let bare = around(ui, &all, (room, height), 0, false);
    if (bare.before, bare.after) == (0, 0) || room < NARROW {
        return bare;
    }
    // The ends say how many more there are; one beyond which nothing lies has nothing to say.
    let end = end(all.len(), room) + GAP;
    let left = around(ui, &all, (room - end, height), end, false);
    if left.after == 0 {
        return left;
    }
    let right = around(ui, &all, (room - end, height), 0, false);
    if right.before == 0 { right } else { around(ui, &all, (room - 2 * end, height), end, false) }
}

/// The stages that are visible, and how many lie before and after them.
struct Visible<'s> {
    stages: Vec<Stage<'s>>,
    before: usize,
    after: usize,
}

/// Where there is less room, nothing is told of what lies beyond the ends but that it is there.
const NARROW: u16 = 40;
/// From here on in words, in cells.
const WORDS: u16 = 100;

/// The cells of what is said at an end of so many stages.
fn end(stages: usize, room: u16) -> u16 {
    let digits = u16::try_from(stages.to_string().len()).unwrap_or(5);
    digits + if room < WORDS { 2 } else { 9 }
}

/// What is said at an end: how many stages lie beyond it.
fn beyond(count: usize, before: bool, room: u16) -> String {
    let stages = if count == 1 { "stage" } else { "stages" };
    match (room < NARROW, room < WORDS, before) {
        (true, ..) => "…".to_owned(),
        (_, true, true) => format!("‹{count}"),
        (_, true, false) => format!("{count}›"),
        (_, false, true) => format!("‹{count} {stages}"),
        (_, false, false) => format!("{count} {stages}›"),
    }
}

/// The stages around that of the selected step that fit, from a cell on.
fn around<'s>(
    ui: &UiState,
    stages: &[Vec<&'s StepState>],
    (room, height): (u16, usize),
    from: u16,
    words: bool,
) -> Visible<'s> {
    let count = stages.len();
    let widest = |s: &Vec<&StepState>| s.iter().map(|step| wide(step, words)).max().unwrap_or(0);
    let widths: Vec<u16> = stages.iter().map(widest).collect();
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
    for (n, steps) in stages.iter().enumerate().skip(first) {
        if n > at && x + width(n) > room {
            break;
        }
        let at = steps.iter().position(|s| s.id == ui.selected).unwrap_or(0);
        let top = super::layout::list_top(at, steps.len(), height);
        let rows = rows::lines(ui, steps, top, height);
        let digits = steps.iter().map(|step| step.id.to_string().len()).max().unwrap_or(1);
        out.push(Stage { steps: steps.clone(), rows, x: from + x, wide: width(n), digits, words });
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
            let (from, to) = (before.x + before.wide, stage.x);
            wires(buf, inner, (from, &before.steps_in_rows()), (to, &stage.steps_in_rows()), scene);
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
    let (Some(first), Some(last)) = (stages.first(), stages.last()) else { return };
    // How many stages lie beyond the ends and whether somebody in them needs a person; where there is hardly room, that
    // there are any.
    let needy = |of: &dyn Fn(StepId) -> bool| ui.sums(scene.state).needy.iter().any(|id| of(*id));
    let narrow = inner.width < NARROW;
    let style = |needs: bool| if needs { theme.alarm() } else { theme.dim() };
    let mark = |needs: bool| if needs && !narrow { "▲" } else { "" };
    if before > 0 {
        let needs = first.steps.first().is_some_and(|step| needy(&|id| id < step.id));
        let text = format!("{}{}", beyond(before, true, inner.width), mark(needs));
        put(buf, if narrow { area } else { inner }, 0, 0, &text, style(needs));
        if !narrow {
            wires(buf, inner, (first.x.saturating_sub(GAP), &[true]), (first.x, &first.steps_in_rows()), scene);
        }
    }
    if after > 0 {
        let needs = last.steps.last().is_some_and(|step| needy(&|id| id > step.id));
        let text = format!("{}{}", mark(needs), beyond(after, false, inner.width));
        if narrow {
            put_right(buf, area, area.width, 0, &text, style(needs));
        } else {
            let (from, to) = (last.x + last.wide, last.x + last.wide + GAP);
            wires(buf, inner, (from, &last.steps_in_rows()), (to, &[true]), scene);
            put(buf, inner, to, 0, &text, style(needs));
        }
    }
}

fn node(buf: &mut Buffer, area: Rect, stage: &Stage<'_>, dy: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let face = super::face(step, scene, ui);
    let selected = step.id == ui.selected;
    if selected {
        put(buf, area, stage.x, dy, "›", theme.select());
    }
    let number = format!("{:>1$}", step.id.to_string(), stage.digits);
    let dx = put(buf, area, stage.x + 1, dy, &number, if selected { theme.select() } else { theme.dim() });
    let hidden = rows::hidden_agents(&stage.rows, step);
    let name = SafeText::line(step.title()).truncate(NAME);
    let name = if hidden == 0 { name } else { SafeText::line(&format!("{} +{hidden}", name.truncate(NAME - 4))) };
    let dx = put_cut(buf, area, dx + 1, dy, &name, stage.wide, if selected { theme.bold() } else { theme.plain() });
    let mut dx = put(buf, area, dx + 1, dy, face.glyph, face.style);
    if stage.words {
        dx = put(buf, area, dx + 1, dy, face.word, face.style);
    }
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

/// The lines from every step of one stage to every step of the next one: from which cell and to which one, and in which
/// rows there are steps.
fn wires(buf: &mut Buffer, area: Rect, (from, before): (u16, &[bool]), (to, after): (u16, &[bool]), scene: &Scene<'_>) {
    let style = scene.theme.dim();
    let joint = to.saturating_sub(3).max(from);
    let step_at = |rows: &[bool], dy: u16| rows.get(usize::from(dy)).copied().unwrap_or_default();
    let lowest = [before, after].map(|rows| rows.iter().rposition(|step| *step).unwrap_or(0)).into_iter().max();
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
