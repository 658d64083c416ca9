//! Where everything is, as a function of the size and of what is to be seen. Used to read the windows of logs before a
//! frame, to draw it, and to find what the mouse points at.

use ratatui::layout::Rect;

use super::detail;
use crate::deck::attention::attention;
use crate::deck::model::{Tab, UiState, ViewMode};
use crate::deck::{rows, sums};
use crate::run::{RunState, StepId, StepState};

/// The parts of the screen. Parts that there is no room for are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The line about the run, or about the zoomed step.
    pub header: Rect,
    /// The line about what needs a person; empty when nothing does.
    pub attention: Rect,
    /// The list of steps, its frame included.
    pub list: Rect,
    /// The bar of tabs.
    pub tabs: Rect,
    /// The panes of steps, their frames included.
    pub panes: Vec<(StepId, Rect)>,
    /// What just happened.
    pub ticker: Rect,
    /// The line about where a replay is; empty without one.
    pub scrubber: Rect,
    /// The line about requests and notices.
    pub control: Rect,
    /// The hints.
    pub footer: Rect,
    /// How it is arranged.
    pub shape: Shape,
}

/// How the screen is arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// One sentence.
    #[default]
    Tiny,
    /// List left, detail right.
    Wide,
    /// List above, preview below.
    Stacked,
    /// Rows without frames.
    Narrow,
    /// Many panes.
    Grid,
    /// One pane below a bar of steps.
    Tabs,
    /// One step with its own tabs.
    Zoom,
    /// Stages beside each other, with the selected step below.
    Flow,
}

/// Whether a terminal has room for one sentence only, and for no dialog.
#[must_use]
pub const fn is_tiny((width, height): (u16, u16)) -> bool {
    width < 30 || height < 8
}

/// What the mouse points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A row of the list.
    Step(StepId),
    /// A row in the pane of a folded group.
    Member {
        /// Whose it is.
        step: StepId,
        /// The step that the pane is that of.
        pane: StepId,
    },
    /// A pane.
    Output(StepId),
    /// The ticker.
    Ticker,
    /// One of the cells that the time of a replay is drawn in.
    Scrubber {
        /// Which, from 0.
        cell: usize,
        /// Of how many.
        of: usize,
    },
}

/// From this width on what happens stands below the list, beside the output.
const BESIDE: u16 = 160;

/// Below this height a list without frames has all the rows.
const NO_PREVIEW: u16 = 12;

/// Takes rows off an area.
struct Stack(Rect);

impl Stack {
    fn top(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.0.height);
        let taken = Rect { height: rows, ..self.0 };
        self.0.y += rows;
        self.0.height -= rows;
        taken
    }

    fn bottom(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.0.height);
        self.0.height -= rows;
        Rect { y: self.0.y + self.0.height, height: rows, ..self.0 }
    }
}

/// Arranges the screen.
#[must_use]
pub fn layout(ui: &UiState, state: &RunState) -> Layout {
    let (width, height) = ui.size;
    let area = Rect { x: 0, y: 0, width, height };
    if is_tiny((width, height)) {
        return Layout { header: area, ..Layout::default() };
    }
    let mut rest = Stack(area);
    let mut out = Layout { header: rest.top(1), ..Layout::default() };
    if !attention(state, ui).is_empty() || ui.has_left() {
        out.attention = rest.top(1);
    }
    out.footer = rest.bottom(1);
    if height >= 12 {
        out.control = rest.bottom(1);
    }
    if ui.replay.is_some() {
        out.scrubber = rest.bottom(1);
    }
    let listed = rows::listed(ui, state);
    // The frame of the list, or the rules around it, are two rows more.
    let list = |most: u16| {
        let lines = rows::wanted(ui, &listed, usize::from(most.saturating_sub(2)));
        (u16::try_from(lines).unwrap_or(u16::MAX).max(1) + 2).min(most)
    };
    if ui.zoom {
        out.shape = Shape::Zoom;
        out.tabs = rest.top(1);
        out.panes = vec![(ui.selected, rest.0)];
        return out;
    }
    match ui.mode {
        ViewMode::Tabs => {
            out.shape = Shape::Tabs;
            out.tabs = rest.top(1);
            out.panes = vec![(ui.selected, rest.0)];
        }
        ViewMode::Flow => {
            out.shape = Shape::Flow;
            let high = super::flow::height(ui, state);
            // The preview below keeps a few rows, where there are enough for both: two lines of what the step prints are
            // the least that is worth having.
            let most = match rest.0.height {
                high @ 14.. => high - 8,
                high @ 9.. => high - 5,
                high => high,
            };
            out.list = rest.top(high.clamp(1, most));
            if rest.0.height >= 4 {
                out.panes = vec![(ui.selected, rest.0)];
            }
        }
        ViewMode::Grid if grid_fits(ui.size) => {
            out.shape = Shape::Grid;
            out.panes = grid(rest.0, ui, state);
        }
        _ if width >= 120 && height >= 16 => {
            out.shape = Shape::Wide;
            let happening = if height >= 20 { (height / 4).clamp(5, 12) } else { 0 };
            let left = (width * 12 / 25).clamp(57, 140);
            // Where half of the width is enough for what happens, it stands below the list, and the output has the whole
            // height.
            let below = happening > 0 && width >= BESIDE;
            if !below {
                out.ticker = rest.bottom(happening);
            }
            let right = Rect { x: rest.0.x + left, width: rest.0.width - left, ..rest.0 };
            let mut column = Stack(Rect { width: left, ..rest.0 });
            if below {
                let most = column.0.height.saturating_sub(happening);
                out.list = column.top(list(most).saturating_add(super::list::TOTALS).min(most));
                out.ticker = column.0;
            } else {
                out.list = column.0;
            }
            out.panes = vec![(ui.selected, right)];
        }
        _ if width >= 70 && height >= 16 => {
            out.shape = Shape::Stacked;
            if height >= 20 {
                out.ticker = rest.bottom(if height >= 30 { 4 } else { 2 });
            }
            let most = (rest.0.height / 2).max(4);
            out.list = rest.top(list(most));
            out.panes = vec![(ui.selected, rest.0)];
        }
        _ => {
            out.shape = Shape::Narrow;
            // What everyone does comes before what one of them prints; two lines of that are the least that is worth having.
            let preview = if height < NO_PREVIEW { 0 } else { 2 };
            let most = rest.0.height.saturating_sub(preview).max(2);
            out.list = if preview == 0 { rest.top(most) } else { rest.top(list(most)) };
            out.panes = vec![(ui.selected, rest.0)];
        }
    }
    out
}

/// Whether there is room for at least one pane of a grid.
#[must_use]
pub const fn grid_fits((width, height): (u16, u16)) -> bool {
    width >= PANE.0 && height >= PANE.1 + 4
}

/// The smallest pane of the grid that is worth looking at.
const PANE: (u16, u16) = (60, 10);

fn grid(area: Rect, ui: &UiState, state: &RunState) -> Vec<(StepId, Rect)> {
    let count = state.steps.len().max(1);
    let most_columns = usize::from((area.width / PANE.0).max(1));
    let most_rows = usize::from((area.height / PANE.1).max(1));
    let columns = most_columns.min(count);
    let rows = most_rows.min(count.div_ceil(columns));
    let per_page = columns * rows;
    let at = sums::place(state, ui.selected).unwrap_or(0);
    // While one looks at them the pages stay what they are, whatever ends.
    let start = page_start(at, per_page, count, ui.grid_from.unwrap_or_else(|| ui.sums(state).first_open));
    let lives = |row: usize| {
        let panes = state.steps.iter().skip(start + row * columns).take(columns);
        panes.take(per_page - row * columns).any(|step| !step.phase.is_terminal())
    };
    let heights = heights(&(0..rows).map(lives).collect::<Vec<_>>(), area.height);
    let columns = u16::try_from(columns).unwrap_or(1);
    let edge =
        |n: u16, of: u16, length: u16| u16::try_from(u32::from(length) * u32::from(n) / u32::from(of)).unwrap_or(0);
    state
        .steps
        .iter()
        .skip(start)
        .take(per_page)
        .zip(0_u16..)
        .map(|(step, n)| {
            let (column, row) = (n % columns, n / columns);
            let (x0, x1) = (edge(column, columns, area.width), edge(column + 1, columns, area.width));
            let above: u16 = heights.iter().take(usize::from(row)).sum();
            let height = heights.get(usize::from(row)).copied().unwrap_or_default();
            (step.id, Rect { x: area.x + x0, y: area.y + above, width: x1 - x0, height })
        })
        .collect()
}

/// How high the rows of a grid are: those in which something goes on share what the others do not need.
fn heights(live: &[bool], all: u16) -> Vec<u16> {
    let rows = u16::try_from(live.len()).unwrap_or(u16::MAX).max(1);
    let living = u16::try_from(live.iter().filter(|live| **live).count()).unwrap_or(0);
    let share = |rest: u16, of: u16, n: u16| {
        let edge = |n: u16| u16::try_from(u32::from(rest) * u32::from(n) / u32::from(of.max(1))).unwrap_or(0);
        edge(n + 1) - edge(n)
    };
    if living == 0 || living == rows {
        return (0..rows).map(|n| share(all, rows, n)).collect();
    }
    let rest = all.saturating_sub(PANE.1 * (rows - living));
    let mut nth = 0;
    let height = |live: &bool| {
        if *live {
            nth += 1;
            share(rest, living, nth - 1)
        } else {
            PANE.1
        }
    };
    live.iter().map(height).collect()
}

/// Where the page of a grid begins that the step at a place is on. Pages are counted from the first step that has not
/// ended, in both directions, so that what goes on is seen together; all are full.
fn page_start(at: usize, per_page: usize, count: usize, first_open: usize) -> usize {
    let from = if first_open < count { first_open } else { 0 };
    let start = match at.checked_sub(from) {
        Some(after) => from + after / per_page * per_page,
        None => from.saturating_sub((from - at).div_ceil(per_page) * per_page),
    };
    start.min(count.saturating_sub(per_page))
}

/// What is inside of a pane's frame.
#[must_use]
pub fn inside(shape: Shape, pane: Rect) -> Rect {
    if shape == Shape::Narrow {
        return pane;
    }
    if pane.width < 2 || pane.height < 2 {
        return Rect::ZERO;
    }
    Rect { x: pane.x + 1, y: pane.y + 1, width: pane.width - 2, height: pane.height - 2 }
}

/// The part of a pane that shows rows of the log; one row below it is for how the step ended.
#[must_use]
pub fn log_area(shape: Shape, pane: Rect, step: &StepState, ui: &UiState, state: &RunState) -> Rect {
    let inner = inside(shape, pane);
    let group = super::group::head(shape, pane, step, ui, state).map(|head| head.height(inner.height));
    // A cell of air at both sides, except where every cell counts.
    let air = u16::from(shape != Shape::Narrow && inner.width > 40);
    let inner = Rect { x: inner.x + air, width: inner.width.saturating_sub(air * 2), ..inner };
    let mut rest = Stack(inner);
    rest.top(group.unwrap_or_else(|| above_log(shape, inner, step, ui)));
    if step.phase.is_terminal() && shape != Shape::Narrow {
        rest.bottom(1);
    }
    rest.0
}

/// How many rows of facts stand above the log.
#[must_use]
pub fn above_log(shape: Shape, inner: Rect, step: &StepState, ui: &UiState) -> u16 {
    match shape {
        Shape::Wide => {
            let room = usize::from(inner.height).saturating_sub(5);
            let facts = detail::facts(step, ui.left_of(step.id), usize::from(inner.width), false).len().min(room);
            u16::try_from(facts + 1).unwrap_or(0).min(inner.height)
        }
        Shape::Stacked | Shape::Grid | Shape::Tabs | Shape::Flow => 1.min(inner.height),
        _ => 0,
    }
}

/// The steps whose logs are visible, with the size that is there for rows.
#[must_use]
pub fn visible_logs(ui: &UiState, state: &RunState) -> Vec<(StepId, (u16, u16))> {
    let layout = layout(ui, state);
    layout
        .panes
        .iter()
        .filter(|(id, _)| !ui.zoom || ui.tab(*id) == Tab::Output)
        .filter_map(|(id, pane)| {
            let area = log_area(layout.shape, *pane, state.step(*id)?, ui, state);
            Some((*id, (area.width, area.height)))
        })
        .collect()
}

/// The first row of a list that keeps the selected one in sight.
#[must_use]
pub fn list_top(selected: usize, count: usize, height: usize) -> usize {
    if count <= height { 0 } else { selected.saturating_sub(height / 2).min(count - height) }
}

/// What is at a cell.
#[must_use]
pub fn spot(ui: &UiState, state: &RunState, x: u16, y: u16) -> Option<Spot> {
    let layout = layout(ui, state);
    let at = ratatui::layout::Position { x, y };
    if layout.list.contains(at) && layout.shape == Shape::Flow {
        return super::flow::hit(ui, state, layout.list, x, y).map(Spot::Step);
    }
    if layout.list.contains(at) {
        let inner = Rect { y: layout.list.y + 1, height: layout.list.height.saturating_sub(2), ..layout.list };
        let rows = rows::listed(ui, state);
        let selected = rows.place(ui.selected).unwrap_or(0);
        let top = list_top(selected, rows.len(), usize::from(inner.height));
        let lines = rows::shown(ui, &rows, top, usize::from(inner.height));
        let row = usize::from(y.checked_sub(inner.y)?);
        return (y < inner.bottom()).then(|| lines.get(row)).flatten().map(|row| Spot::Step(row.step().id));
    }
    if layout.tabs.contains(at) && layout.shape == Shape::Tabs {
        return super::tabs::hit(ui, state, x.saturating_sub(layout.tabs.x)).map(Spot::Step);
    }
    if let Some(replay) = ui.replay.as_ref().filter(|_| layout.scrubber.contains(at)) {
        let track = super::scrubber::track(layout.scrubber, replay);
        let cell = x.checked_sub(track.x).filter(|cell| *cell < track.width)?;
        return Some(Spot::Scrubber { cell: usize::from(cell), of: usize::from(track.width) });
    }
    if layout.ticker.contains(at) {
        return Some(Spot::Ticker);
    }
    let (id, pane) = layout.panes.iter().find(|(_, pane)| pane.contains(at))?;
    // Of a folded group a member is selected as it is in the list.
    let head = state.step(*id).and_then(|step| super::group::head(layout.shape, *pane, step, ui, state));
    let dy = y.checked_sub(inside(layout.shape, *pane).y);
    let member = head.zip(dy).and_then(|(head, dy)| head.at(dy));
    Some(member.map_or(Spot::Output(*id), |step| Spot::Member { step: step.id, pane: *id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_which_something_goes_on_have_what_the_others_do_not_need() {
        assert_eq!(heights(&[false, true, false], 40), [10, 20, 10]);
        assert_eq!(heights(&[true, true, false], 41), [15, 16, 10]);
        assert_eq!(heights(&[true, true], 41), [20, 21]);
        assert_eq!(heights(&[false, false], 41), [20, 21]);
        assert_eq!(heights(&[false, true], 20), [10, 10]);
        assert_eq!(heights(&[], 20), [20]);
    }

    #[test]
    fn pages_of_a_grid_are_full_and_begin_with_what_goes_on() {
        // Place of the selected step, panes of a page, steps, place of the first that goes on; where the page begins.
        for (at, per_page, count, first_open, start) in [
            (0, 6, 4, 2, 0),
            (42, 15, 60, 40, 40),
            (55, 15, 60, 40, 45),
            (39, 15, 60, 40, 25),
            (3, 15, 60, 40, 0),
            (12, 15, 60, 40, 10),
            (59, 15, 60, 60, 45),
            (3, 15, 60, 60, 0),
        ] {
            let found = page_start(at, per_page, count, first_open);
            assert_eq!(found, start, "{at} of {count}");
            assert!((found..found + per_page).contains(&at));
        }
    }
}
