//! The pane of a folded group: a line for all of it, and a row for each of its members; below them what the member prints
//! that the keys act on.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::layout::{Shape, inside};
use super::list::{Columns, ListRow, loudness};
use super::paint::{Piece, piece, put, row};
use super::sub_row;
use super::{Scene, elapsed, took};
use crate::deck::model::UiState;
use crate::deck::rows::{self, Row};
use crate::run::{Group, RunState, StepFace, StepState, cost_of, or_more};
use crate::text::{SafeText, cost};

/// Rows of the log that stay below members that all fit, in a pane with a frame.
const LOG: usize = 3;

/// What stands above the log in the pane of a folded group.
pub(super) struct Head<'s> {
    members: &'s [StepState],
    /// Whether there is a line for all of them.
    sum: bool,
    /// Those that have a row, each with the sub-agents that have one.
    rows: Vec<Row<'s>>,
    /// So many members have none.
    hidden: usize,
    /// Whether a line between them and the log says whose log it is.
    rule: bool,
}

/// The head of the pane of this step, where it stands for a folded group in the list.
pub(super) fn head<'s>(
    shape: Shape,
    pane: Rect,
    step: &StepState,
    ui: &UiState,
    state: &'s RunState,
) -> Option<Head<'s>> {
    let lists = matches!(shape, Shape::Wide | Shape::Stacked | Shape::Narrow);
    let group = rows::folded(ui, state, step).filter(|_| lists && ui.filter.is_none())?;
    Some(Head::of(rows::members(state, group), usize::from(inside(shape, pane).height), shape, ui))
}

/// What the group is called in the title of its pane.
pub(super) fn title(group: &Group, state: &RunState) -> String {
    match rows::members(state, group) {
        [first, .., last] => format!("group of steps {}-{}", first.id, last.id),
        _ => "group".to_owned(),
    }
}

impl<'s> Head<'s> {
    fn of(members: &'s [StepState], height: usize, shape: Shape, ui: &UiState) -> Self {
        let sum = height > members.len().min(2);
        // A row for the log and one for the line above it; without a frame it has what the members leave.
        let without = |kept: usize| height.saturating_sub(usize::from(sum) + kept).max(1).min(height);
        let room = match without(LOG + 1) {
            _ if shape == Shape::Narrow => without(0),
            room if members.len() <= room => room,
            _ => without(2),
        };
        let (rows, hidden) = if members.len() <= room {
            (rows::lines(ui, &members.iter().collect::<Vec<_>>(), 0, room), 0)
        } else {
            // Those that go on are worth more than those that have ended before them.
            let fit = room.saturating_sub(1).max(1);
            let first = members.iter().position(|step| !step.phase.is_terminal()).unwrap_or(0);
            let from = first.min(members.len() - fit);
            (members.iter().skip(from).take(fit).map(Row::Step).collect(), members.len() - fit)
        };
        let used = usize::from(sum) + rows.len() + usize::from(hidden > 0);
        Self { members, sum, rows, hidden, rule: height > used + 1 }
    }

    /// How many rows it takes, the line above the log among them. Without room for one row of the log there is none.
    pub(super) fn height(&self, inner: u16) -> u16 {
        let rows = usize::from(self.sum) + self.rows.len() + usize::from(self.hidden > 0) + usize::from(self.rule);
        if self.rule { u16::try_from(rows).unwrap_or(u16::MAX).min(inner) } else { inner }
    }

    /// The member of which the row at this place of the pane is.
    pub(super) fn at(&self, dy: u16) -> Option<&'s StepState> {
        let place = usize::from(dy).checked_sub(usize::from(self.sum))?;
        self.rows.get(place).map(|row| row.step())
    }

    /// Draws it into the inside of its pane.
    pub(super) fn draw(&self, buf: &mut Buffer, area: Rect, shape: Shape, scene: &Scene<'_>, ui: &UiState) {
        let theme = scene.theme;
        let mut dy = 0;
        if self.sum {
            let (left, right) = self.sums(scene);
            let line = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
            row(buf, line, dy, left, right);
            dy += 1;
        }
        let more = self.rows.iter().any(|row| rows::hidden_agents(&self.rows, row.step()) > 0);
        let columns = Columns::of(scene, &ui.sums(scene.state), area.width, shape, more);
        for row in &self.rows {
            match row {
                Row::Step(step) => {
                    let hidden = rows::hidden_agents(&self.rows, step);
                    let selected = step.id == ui.selected;
                    let row = ListRow { tie: " ", step, folded: None, hidden, selected };
                    row.draw(buf, area, dy, &columns, scene, ui);
                }
                Row::Sub(_, agent) => sub_row::draw(buf, area, dy, columns.sub(), scene, agent),
            }
            dy += 1;
        }
        if self.hidden > 0 {
            put(buf, area, 4, dy, &format!("… {} more of {}", self.hidden, self.members.len()), theme.dim());
            dy += 1;
        }
        if let Some(first) = self.members.first().filter(|_| self.rule) {
            let air = u16::from(shape != Shape::Narrow);
            let line = Rect { x: area.x + air, width: area.width.saturating_sub(air * 2), ..area };
            let whose = format!("── {} {} ", first.id, SafeText::line(first.title()).truncate(24));
            let dx = put(buf, line, 0, dy, &whose, theme.dim());
            put(buf, line, dx, dy, &"─".repeat(usize::from(line.width.saturating_sub(dx))), theme.dim());
        }
    }

    /// How many of its members are in which state, the loudest first; what they cost together and the longest time.
    fn sums(&self, scene: &Scene<'_>) -> (Vec<Piece>, Vec<Piece>) {
        let theme = scene.theme;
        let mut faces: Vec<StepFace> = self.members.iter().map(|step| scene.state.face(step)).collect();
        faces.sort_unstable_by_key(|face| std::cmp::Reverse(loudness(*face)));
        let counted = faces.chunk_by(|a, b| a == b).filter_map(|same| Some((same.len(), *same.first()?)));
        let left = counted.zip((0..=20).rev()).map(|((n, state), rank)| {
            let face = super::last_seen(state, scene);
            piece(format!("{} {n} {}", face.glyph, face.word), face.style).rank(rank).gap(3)
        });
        let told = cost_of(self.members).map(|(usd, partial)| format!("{}{}", cost(usd), or_more(partial)));
        let mut right: Vec<Piece> = told.map(|told| piece(told, theme.plain()).rank(30)).into_iter().collect();
        let longest = self.members.iter().max_by_key(|step| took(step, scene.now));
        right.extend(longest.map(|step| piece(elapsed(step, scene), theme.bold()).rank(31).gap(3)));
        (left.collect(), right)
    }
}
