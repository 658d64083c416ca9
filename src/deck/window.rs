//! The visible rows of logs, fetched before a frame is drawn. Memory is proportional to what is on the screen; the file
//! is the scrollback.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::changes::Diff;
use super::feed::{Feed, LogLine};
use super::fold::{self, Folded};
use super::model::{Anchor, PaneState, Position, Scroll, Tab, UiState};
use super::reading::Message;
use super::wrap::wrap;
use crate::run::{StepId, Stream, Timestamp};
use crate::text::{self, SafeText, SecretLines, StyledLine, width};

/// The windows of one frame.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// By step; a step whose output is not visible has none.
    pub logs: BTreeMap<StepId, Window>,
    /// Messages of a transcript that is visible, by the place of their records.
    pub messages: Arc<BTreeMap<u64, Message>>,
    /// What changed in the folder of the step whose changes are visible.
    pub diff: Option<Arc<Diff>>,
}

/// The visible rows of one log.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// From top to bottom, at most as many as the pane is high.
    pub rows: Vec<Row>,
    /// The log's length in virtual bytes.
    pub len: u64,
    /// How many bytes came since following ended; 0 while it follows.
    pub behind: u64,
    /// How many lines these are, where they are not too many to be counted for a picture.
    pub new_lines: Option<usize>,
    /// The end is visible.
    pub at_end: bool,
    /// How far the last visible row is into the log, in per cent.
    pub percent: u8,
    /// The number of the line that [`Window::told_by`] tells, from 1, and of all, where they were counted.
    pub line: Option<(u64, u64)>,
    /// Nothing tells how long the log was at the moment that is shown, so none of it is.
    pub untimed: bool,
    /// Where the match begins that was gone to, when it can be seen: which row, and how many cells into its text.
    pub here: Option<(usize, usize)>,
}

impl Window {
    /// Whether anything of a position can be seen.
    #[must_use]
    pub fn has(&self, position: u64) -> bool {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else { return false };
        (first.anchor.line..last.end).contains(&position)
    }

    /// A position in the line whose number tells where this is: that of the match which is looked for when it can be
    /// seen, or the last visible one. Nothing where nothing is visible.
    #[must_use]
    pub fn told_by(&self, found: Option<u64>) -> Option<u64> {
        let holds = |row: &Row, at: u64| row.again.is_none() && (row.anchor.line..row.end).contains(&at);
        if let Some(at) = found.filter(|at| self.rows.iter().any(|row| holds(row, *at))) {
            return Some(at);
        }
        let row = self.rows.last()?;
        // A note stands for the lines up to its end.
        Some(if row.again.is_some() { row.end.saturating_sub(1).max(row.anchor.line) } else { row.anchor.line })
    }
}

/// One row: a line of the log, or a part of one that was wrapped.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub anchor: Anchor,
    /// Which stream printed it.
    pub stream: Stream,
    /// When it was printed.
    pub at: Option<Timestamp>,
    /// What to draw.
    pub runs: Vec<text::Run>,
    /// Something of the line is missing here, or comes in the next row as a line of its own.
    pub cut: bool,
    /// How many bytes of its text are missing behind this row.
    pub left: u64,
    /// Not a row of the line, but a note that the line came again.
    pub again: Option<Again>,
    /// Where the next line begins.
    pub end: u64,
}

impl Row {
    /// What stands before its text.
    #[must_use]
    pub const fn mark(&self) -> &'static str {
        mark(self.stream)
    }
}

const fn mark(stream: Stream) -> &'static str {
    match stream {
        Stream::Err => ERR_MARK,
        Stream::Own => OWN_MARK,
        Stream::Out => "",
    }
}

/// How often a line came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// So often.
    pub times: usize,
    /// At least: there may be more of them than were looked at.
    pub or_more: bool,
}

/// Of a log that says the same over and over no more lines than this are looked at for one picture.
const MOST_LINES: usize = 2048;
/// Downwards twice as many: a row that was reached upwards has what lies below it in the same picture.
const MOST_DOWN: usize = 2 * MOST_LINES;

/// Of what came since one looked elsewhere no more lines than this are counted.
const MOST_NEW: usize = 99;

/// Cells of the sign that something of a line is left out before what is shown of it.
const CUT: usize = 2;

/// Rows that are put before a line of standard error, in cells.
pub const ERR_MARK: &str = "err│ ";
/// The same before a line of the program's own.
pub const OWN_MARK: &str = "── ";

/// Carries out what was asked of the pane and reads the rows that it shows. `size` is the inside of the pane in cells.
///
/// Nothing behind `limit` is shown, where there is one: a picture that stands still ends where the log did then.
pub fn fetch(feed: &mut dyn Feed, ui: &mut UiState, step: StepId, size: (u16, u16), limit: Option<u64>) -> Window {
    feed.show(step, ui.panes.get(&step).and_then(|pane| pane.only));
    let len = feed.log_len(step).min(limit.unwrap_or(u64::MAX));
    let (wide, high) = (usize::from(size.0.max(1)), usize::from(size.1));
    let found = ui
        .search
        .as_ref()
        .and_then(|search| Some((ui.match_in(step, Tab::Output)?, width(SafeText::line(&search.needle).as_str()))));
    let (wrap, fold, reveal) = (ui.wrap, ui.fold, ui.reveal);
    let mut view = View { step, len, wide, high, wrap, fold, reveal, found, opened: None };
    let pane = ui.pane_mut(step);
    for scroll in std::mem::take(&mut pane.asked) {
        view.opened = opened(pane.output);
        view.scroll(feed, pane, scroll);
    }
    view.opened = opened(pane.output);
    let (rows, behind) = match pane.output {
        Position::Follow => (view.tail(feed), 0),
        Position::At { top, seen } => {
            // A log that became shorter is another log.
            let seen = seen.min(len);
            (view.from(feed, top), len - seen)
        }
    };
    let reaches_end = |rows: &[Row]| rows.last().is_none_or(|row| row.end >= len);
    // A position near the end of a log leaves no empty rows below it.
    let rows = if rows.len() < view.high && reaches_end(&rows) { view.filled(feed, rows) } else { rows };
    // What came since and is on the screen is not missing.
    let behind = rows.last().map_or(behind, |row| behind.min(len.saturating_sub(row.end)));
    let new_lines = (behind > 0).then(|| feed.lines_from(step, len.saturating_sub(behind), MOST_NEW + 1).len());
    let new_lines = new_lines.filter(|lines| (1..=MOST_NEW).contains(lines));
    let last = rows.last().map_or(0, |r| r.anchor.line);
    let at_end = pane.output == Position::Follow || reaches_end(&rows);
    let percent = if at_end || len == 0 { 100 } else { u8::try_from(last.saturating_mul(100) / len).unwrap_or(100) };
    let here = view.here(feed, &rows);
    Window { rows, len, behind, new_lines, at_end, percent, line: None, untimed: false, here }
}

struct View {
    step: StepId,
    len: u64,
    wide: usize,
    high: usize,
    wrap: bool,
    fold: bool,
    reveal: bool,
    /// Where a match is that must be seen, and how many cells it takes.
    found: Option<(u64, usize)>,
    /// Where the line begins that is scrolled through row by row.
    opened: Option<u64>,
}

/// The line that is scrolled through row by row, by its start: the top of the pane is inside of it.
const fn opened(position: Position) -> Option<u64> {
    match position {
        Position::At { top, .. } if top.row > 0 => Some(top.line),
        _ => None,
    }
}

impl View {
    fn scroll(&self, feed: &mut dyn Feed, pane: &mut PaneState, scroll: Scroll) {
        let high = i32::try_from(self.high.max(1)).unwrap_or(i32::MAX);
        let rows = match scroll {
            Scroll::Rows(n) => n,
            Scroll::Halves(n) => n.saturating_mul((high / 2).max(1)),
            Scroll::Pages(n) => n.saturating_mul((high - 1).max(1)),
            Scroll::End => {
                pane.output = Position::Follow;
                return;
            }
            Scroll::Start => {
                pane.output = Position::At { top: Anchor::default(), seen: self.len };
                return;
            }
            Scroll::To(at) => {
                if let Position::At { top, .. } = &mut pane.output {
                    top.row = self.row_of(feed, top.line, at);
                }
                return;
            }
        };
        let (top, seen) = match pane.output {
            Position::Follow if rows >= 0 => return,
            Position::Follow => (self.tail(feed).first().map(|r| r.anchor).unwrap_or_default(), self.len),
            Position::At { top, seen } => (top, seen),
        };
        let distance = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
        if rows < 0 {
            let above = self.above(feed, top, distance);
            let top = above.first().map_or(top, |r| r.anchor);
            pane.output = Position::At { top, seen };
            return;
        }
        let (below, all) = self.forward(feed, top, distance + self.high + 1);
        // Whoever scrolls down to the end wants to see what comes.
        if all && below.len() <= distance + self.high {
            // While it is followed a long line is cut, and this one is read up to its end.
            let long = |row: &&Row| self.opened == Some(row.anchor.line) && self.is_long(row.anchor);
            let end = below.last().filter(long).and_then(|_| below.get(below.len().saturating_sub(self.high)));
            pane.output = end.map_or(Position::Follow, |row| Position::At { top: row.anchor, seen });
        } else if let Some(row) = below.get(distance).or(below.last()) {
            pane.output = Position::At { top: row.anchor, seen };
        }
    }

    fn tail(&self, feed: &mut dyn Feed) -> Vec<Row> {
        self.back(feed, self.len, self.high)
    }

    /// The last rows of the log instead of these where they are more of it: not where fewer lines are looked at upwards.
    fn filled(&self, feed: &mut dyn Feed, rows: Vec<Row>) -> Vec<Row> {
        let tail = self.tail(feed);
        if tail.len() > rows.len() { tail } else { rows }
    }

    fn from(&self, feed: &mut dyn Feed, top: Anchor) -> Vec<Row> {
        let mut rows = self.forward(feed, top, self.high).0;
        rows.truncate(self.high);
        rows
    }

    /// At least `wanted` rows from an anchor on, and whether they reach the end of the log. Where lines are folded, more
    /// of them are read than rows are needed.
    fn forward(&self, feed: &mut dyn Feed, top: Anchor, wanted: usize) -> (Vec<Row>, bool) {
        let mut count = wanted + 1;
        loop {
            let lines = feed.lines_from(self.step, top.line, count);
            let end = lines.last().map_or(self.len, |l| l.end);
            let all = lines.len() < count || end >= self.len;
            let mut above = SecretLines::default();
            for line in feed.lines_before(self.step, top.line, 1) {
                StyledLine::parse(&line.bytes).mask(&mut above);
            }
            let (rows, known) = self.rows_below(above, lines, false, !all);
            // After the width changed the line may have fewer rows than it had.
            let last_of_line = rows.iter().filter(|r| r.anchor.line == top.line).map(|r| r.anchor.row).max();
            let top = Anchor { row: top.row.min(last_of_line.unwrap_or(0)), ..top };
            let rows: Vec<Row> = rows.into_iter().skip_while(|r| r.anchor < top).collect();
            let enough = rows.get(wanted.saturating_sub(1)).is_some_and(|row| row.anchor.line < known.end);
            if all || enough || count >= MOST_DOWN {
                return (rows, all);
            }
            count = (count * 4).min(MOST_DOWN);
        }
    }

    /// At most `wanted` rows of lines that end at or before a position, nearest last.
    fn back(&self, feed: &mut dyn Feed, position: u64, wanted: usize) -> Vec<Row> {
        let mut count = wanted + 1;
        loop {
            let mut lines = feed.lines_before(self.step, position, count);
            let all = lines.len() < count;
            // Whether the last piece of a long line was written over shows in what comes behind it.
            if position < self.len && lines.last().is_some_and(is_piece) {
                let next = feed.lines_from(self.step, position, 1);
                lines.extend(next);
                drop_overwritten(&mut lines);
                lines.retain(|line| line.start < position);
            }
            let (mut rows, known) = self.rows(lines, !all, false);
            let enough = rows.len() >= wanted;
            let surplus = rows.len().saturating_sub(wanted);
            rows.drain(..surplus);
            if all || count >= MOST_LINES || enough && rows.first().is_none_or(|row| row.anchor.line >= known.start) {
                return rows;
            }
            count = (count * 4).min(MOST_LINES);
        }
    }

    /// At most `n` rows above an anchor, nearest last.
    fn above(&self, feed: &mut dyn Feed, anchor: Anchor, n: usize) -> Vec<Row> {
        let mut own = self.rows(feed.lines_from(self.step, anchor.line, 1), false, false).0;
        own.retain(|r| r.anchor < anchor);
        let mut rows = if own.len() < n { self.back(feed, anchor.line, n - own.len()) } else { Vec::new() };
        self.lead_to_the_end(feed, &mut rows);
        rows.append(&mut own);
        let surplus = rows.len().saturating_sub(n);
        rows.drain(..surplus);
        rows
    }

    /// The first of these rows may be in a line of which only the beginning is shown, while it is shown to its end once
    /// the pane begins in it: so they are counted from that end.
    fn lead_to_the_end(&self, feed: &mut dyn Feed, rows: &mut Vec<Row>) {
        let Some(line) = rows.first().map(|row| row.anchor.line) else { return };
        let many = rows.iter().take_while(|row| row.anchor.line == line && row.again.is_none()).count();
        let short = rows.iter().take(many).all(|row| row.left == 0);
        let end = rows.get(many.saturating_sub(1)).map_or(line, |row| row.end);
        let Some(long) = feed.lines_from(self.step, line, 1).pop().filter(|_| self.wrap && !short) else { return };
        let whole = View { opened: Some(line), found: None, ..*self };
        let mut last = whole.rows_of(&long, end, &mut SecretLines::default());
        let surplus = last.len().saturating_sub(many);
        rows.splice(..many, last.split_off(surplus));
    }

    /// The rows of lines; `before` and `after` say whether there are lines beside these. Also where the lines stand of
    /// which no line beside these can say the same.
    fn rows(&self, lines: Vec<LogLine>, before: bool, after: bool) -> (Vec<Row>, Range<u64>) {
        self.rows_below(SecretLines::default(), lines, before, after)
    }

    fn rows_below(
        &self,
        mut above: SecretLines,
        mut lines: Vec<LogLine>,
        before: bool,
        after: bool,
    ) -> (Vec<Row>, Range<u64>) {
        lines.retain(|l| l.start < self.len);
        drop_overwritten(&mut lines);
        if !self.fold {
            return (lines.iter().flat_map(|line| self.rows_of(line, line.end, &mut above)).collect(), 0..u64::MAX);
        }
        let folded = fold::fold(lines, self.found.map(|(at, _)| at));
        let start = folded.first().filter(|_| before).map_or(0, |f| f.end);
        let end = folded.last().filter(|_| after).map_or(u64::MAX, |f| f.line.start);
        let last = folded.len().saturating_sub(1);
        let mut rows = Vec::with_capacity(folded.len());
        for (at, Folded { line, more, end }) in folded.into_iter().enumerate() {
            let open = before && at == 0 || after && at == last;
            if more + 1 < fold::FROM {
                rows.extend(self.rows_of(&line, line.end, &mut above));
                // A line that came twice is shown twice.
                let twin = LogLine { start: line.end, end, ..line };
                rows.extend((more > 0).then(|| self.rows_of(&twin, end, &mut above)).into_iter().flatten());
                continue;
            }
            rows.extend(self.rows_of(&line, end, &mut above));
            let row = rows.last().map_or(0, |r| r.anchor.row + 1);
            rows.push(Row {
                anchor: Anchor { line: line.start, row },
                stream: line.stream,
                at: line.at,
                runs: Vec::new(),
                cut: false,
                left: 0,
                again: Some(Again { times: more, or_more: open }),
                end,
            });
        }
        (rows, start..end)
    }

    /// Whether a row of a line comes behind what is shown of most lines.
    fn is_long(&self, row: Anchor) -> bool {
        row.row.saturating_mul(self.wide) >= StyledLine::MAX_COLUMNS
    }

    /// Where a match is that must be seen, as a number of bytes of the line that holds it.
    fn found_in(&self, line: &LogLine) -> Option<(usize, usize)> {
        let (at, wide) = self.found.filter(|(at, _)| (line.start..line.end).contains(at))?;
        Some((usize::try_from(at - line.start).ok()?, wide))
    }

    /// Cells for the text of a line.
    fn room(&self, stream: Stream) -> usize {
        self.wide.saturating_sub(width(mark(stream)))
    }

    /// The row of a line that holds a position.
    fn row_of(&self, feed: &mut dyn Feed, start: u64, at: u64) -> usize {
        self.place_of(feed, start, at).map_or(0, |(row, _)| row)
    }

    /// The row of a line that holds a position, and how many cells into its text that is.
    fn place_of(&self, feed: &mut dyn Feed, start: u64, at: u64) -> Option<(usize, usize)> {
        let line = feed.lines_from(self.step, start, 1).pop().filter(|line| (line.start..line.end).contains(&at))?;
        // Wrapping drops spaces and nothing else, and a mask is as long as what it hides.
        let inked = |text: &str| text.chars().filter(|ch| *ch != ' ').count();
        let before = usize::try_from(at - line.start).unwrap_or(usize::MAX).min(line.bytes.len());
        let before = StyledLine::whole(line.bytes.get(..before).unwrap_or_default());
        if !self.wrap {
            let (column, room) = (before.width(), self.room(line.stream));
            return Some((0, self.around_from(column, room, &line).map_or(column, |skip| column - skip + CUT)));
        }
        let before = inked(before.text().as_str());
        let mut passed = 0;
        let rows = self.rows_of(&line, line.end, &mut SecretLines::default());
        for row in &rows {
            let text: String = row.runs.iter().map(|run| run.text.as_str()).collect();
            let own = inked(&text);
            if passed + own > before {
                let mut left = before - passed;
                let begin = text.char_indices().find(|(_, ch)| {
                    let reached = left == 0 && *ch != ' ';
                    left -= usize::from(*ch != ' ' && !reached);
                    reached
                });
                let begin = begin.map_or(0, |(at, _)| width(text.get(..at).unwrap_or_default()));
                return Some((row.anchor.row, begin));
            }
            passed += own;
        }
        rows.last().map(|row| (row.anchor.row, 0))
    }

    /// Where the match that was gone to begins, if it is in one of these rows.
    fn here(&self, feed: &mut dyn Feed, rows: &[Row]) -> Option<(usize, usize)> {
        let (at, _) = self.found?;
        let line = rows.iter().rev().find(|row| row.again.is_none() && row.anchor.line <= at)?.anchor.line;
        let (row, column) = self.place_of(feed, line, at)?;
        let place = rows.iter().position(|r| r.again.is_none() && r.anchor == Anchor { line, row })?;
        Some((place, column))
    }

    /// How many cells of a line that is not wrapped are left out before the match in it, which begins at a column; `None`
    /// when it is on the screen without that.
    fn around_from(&self, column: usize, room: usize, line: &LogLine) -> Option<usize> {
        let (_, wide) = self.found_in(line)?;
        (column + wide >= room).then(|| column.saturating_sub(room / 2))
    }

    /// Of a line that is not wrapped, what is around the match in it when that would not be on the screen.
    fn around(&self, line: &LogLine, runs: Vec<text::Run>, room: usize) -> Vec<text::Run> {
        let Some((before, _)) = self.found_in(line) else { return runs };
        let column = StyledLine::whole(line.bytes.get(..before).unwrap_or_default()).width();
        let Some(mut skip) = self.around_from(column, room, line) else { return runs };
        let mut out = vec![text::Run { text: SafeText::line("… "), style: text::Style::default() }];
        for run in runs {
            let mut rest = String::new();
            for ch in run.text.as_str().chars() {
                if skip > 0 {
                    skip = skip.saturating_sub(width(ch.encode_utf8(&mut [0; 4])));
                } else {
                    rest.push(ch);
                }
            }
            out.push(text::Run { text: SafeText::line(&rest), style: run.style });
        }
        out
    }

    fn rows_of(&self, line: &LogLine, end: u64, above: &mut SecretLines) -> Vec<Row> {
        // Only what is read row by row is worth the work: many long lines in full would make every frame late.
        let whole = self.opened == Some(line.start) || self.found_in(line).is_some();
        let mut styled = if whole { StyledLine::whole(&line.bytes) } else { StyledLine::parse(&line.bytes) };
        if !self.reveal {
            // Before it is wrapped, because no row has the whole of it then.
            styled.mask(above);
        }
        let room = self.room(line.stream);
        let cut = styled.cut || line.cut;
        let left = styled.left as u64;
        let parts = if self.wrap { wrap(styled.runs, room.max(4)) } else { vec![self.around(line, styled.runs, room)] };
        let count = parts.len();
        let row = |(row, runs)| Row {
            anchor: Anchor { line: line.start, row },
            stream: line.stream,
            at: line.at,
            runs,
            cut: cut && row + 1 == count,
            left: if row + 1 == count { left } else { 0 },
            again: None,
            // Only the last row of a line leads to the next one.
            end: if row + 1 == count { end } else { line.start },
        };
        parts.into_iter().enumerate().map(row).collect()
    }
}

/// Whether a line is a piece of one that is too long and goes on behind it.
fn is_piece(line: &LogLine) -> bool {
    line.cut && line.end - line.start == line.bytes.len() as u64
}

/// Leaves out the pieces of long lines that the pieces behind them write over: a line is one row of progress however
/// often a carriage return begins it anew.
fn drop_overwritten(lines: &mut Vec<LogLine>) {
    let restarts = |line: &LogLine| {
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        memchr::memchr(b'\r', bytes).is_some()
    };
    let over = |pair: &[LogLine]| matches!(pair, [piece, next] if is_piece(piece) && next.start == piece.end && next.stream == piece.stream && restarts(next));
    let gone: Vec<bool> = lines.windows(2).map(over).collect();
    let mut gone = gone.into_iter();
    lines.retain(|_| !gone.next().unwrap_or(false));
}

#[cfg(test)]
mod tests;
