//! The live output of a step as lines at positions, read in windows: memory does not grow with the log.
//!
//! An agent's output is one file. A plain command has a file for each stream; the marks beside them say in which order
//! the pieces came, and the log is read as if they were one file in that order. Positions count bytes of that one
//! file. Without marks the two streams stand after each other.

use std::path::PathBuf;

use super::RunDir;
use super::marks::MarkReader;
use crate::run::{RunMode, RunState, StepId, StepState, Stream, Timestamp};

mod lines;
mod only;
mod search;
mod streams;
mod times;

pub use lines::LineIndex;
pub use search::{LogSearch, Match};
use streams::{Half, Place, Run};

/// Lines are cut at multiples of this many bytes when a whole block holds no line feed, so a line has less than twice
/// as many bytes and every boundary can be found by looking at two blocks.
pub const BLOCK: u64 = 64 * 1024;
/// As many bytes of lines are given at once; one line is always given.
const BYTES_AT_ONCE: u64 = 16 * 1024 * 1024;
/// How many bytes are read at first to find the end of a line.
const FIRST_PIECE: u64 = 4 * 1024;
/// How many bytes are looked through at first to find the start of a line.
const LAST_PIECE: u64 = 512;

/// One line of a log, or a piece of a line that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The position of its first byte.
    pub start: u64,
    /// The position behind its line feed.
    pub end: u64,
    /// Its bytes without the line feed, as they came: never to be displayed without [`crate::text`].
    pub bytes: Vec<u8>,
    /// The stream it came on; `Out` when that is not known.
    pub stream: Stream,
    /// When it came, to a quarter of a second, where that is known.
    pub at: Option<Timestamp>,
    /// The attempt that printed it, from 1; 1 when that is not known.
    pub attempt: u8,
    /// It goes on in the next line: it was cut, or the other stream came in between.
    pub cut: bool,
    /// It ended with a line feed. Neither complete nor cut is the last line of a log that may still grow.
    pub complete: bool,
}

impl LogLine {
    /// Whether it is a piece of a line that is too long and goes on behind it.
    #[must_use]
    pub const fn is_piece(&self) -> bool {
        self.cut && self.end - self.start >= BLOCK
    }
}

/// What a look at the files found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// There is more than before.
    pub grown: bool,
    /// A file is shorter than before: positions from before mean nothing any more (a foreign runner began again).
    pub shrunk: bool,
}

/// The output of one step.
#[derive(Debug)]
pub struct StepLog {
    dir: RunDir,
    step: StepId,
    /// What kind of log it is shows when its first file does.
    settled: bool,
    out: Half,
    /// The second stream of a plain command.
    err: Option<Half>,
    marks_path: PathBuf,
    marks: Option<MarkReader>,
    /// Plain commands only: the changes between the streams, oldest first.
    runs: Vec<Run>,
    /// How many marks went into `runs`.
    seen: u64,
    /// No file is open until the next look.
    resting: bool,
    /// Only one stream is looked at.
    only: Option<only::Only>,
}

/// Files of a step's log that are there and are not read: links, pipes, and whatever else is no regular file.
#[must_use]
pub fn not_read(dir: &RunDir, step: StepId) -> Vec<PathBuf> {
    let files = [dir.output(step), dir.external_out(step), dir.external_err(step)];
    files.into_iter().filter(|path| super::open::is_odd(path)).collect()
}

/// Why a step that began has no log, ready to be shown; `None` where it has one, and for a step that never began.
#[must_use]
pub fn absent(dir: &RunDir, state: &RunState, step: StepId) -> Option<String> {
    let found = state.step(step).filter(|step| step.started_at.is_some())?;
    let files = [dir.output(step), dir.external_out(step), dir.external_err(step)];
    if files.iter().any(|path| std::fs::symlink_metadata(path).is_ok()) {
        return None;
    }
    Some(match state.mode {
        RunMode::Workflow => elsewhere(found),
        _ => format!("its log (output-{}.log) is not here", step.flat()),
    })
}

/// Where a step of a workflow prints, of which its parent keeps no log (run-directory 2.17).
#[must_use]
pub fn elsewhere(step: &StepState) -> String {
    match (&step.own_run, &step.session_file) {
        (Some(run), _) => format!("it is a run of its own, {}; its output is there", run.as_str()),
        (None, Some(session)) => format!("its parent keeps no log of it; it prints into {session}"),
        (None, None) => "its parent keeps no log of it".to_owned(),
    }
}

impl StepLog {
    /// The output of a step; nothing needs to exist yet. A plain command is known by the files of its streams
    /// (run-directory 2.15).
    #[must_use]
    pub fn open(dir: &RunDir, step: StepId) -> Self {
        let mut log = Self::closed(dir, step);
        log.refresh();
        log
    }

    /// Before the first look.
    fn closed(dir: &RunDir, step: StepId) -> Self {
        Self {
            dir: dir.clone(),
            step,
            settled: false,
            out: Half::new(dir.output(step)),
            err: None,
            marks_path: dir.marks(step),
            marks: None,
            runs: Vec::new(),
            seen: 0,
            resting: false,
            only: None,
        }
    }

    /// At most `most` lines from the one that holds `position` on, oldest first; fewer of very long ones, never none.
    #[must_use]
    pub fn lines_from(&self, position: u64, most: usize) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let Some(mut start) = self.line_start(position) else { return lines };
        let stop = start.saturating_add(BYTES_AT_ONCE);
        while lines.len() < most && start < stop {
            let Some(line) = self.line(start) else { break };
            start = line.end;
            lines.push(line);
        }
        lines
    }

    /// At most `most` lines for a reader that has everything before `position`: of a line that was read while it was
    /// unfinished, only what came since.
    #[must_use]
    pub fn lines_since(&self, position: u64, most: usize) -> Vec<LogLine> {
        let mut lines = self.lines_from(position, most.saturating_add(1));
        lines.retain(|line| line.end > position);
        if let Some(first) = lines.first_mut()
            && first.start < position
        {
            let known = usize::try_from(position - first.start).unwrap_or(usize::MAX).min(first.bytes.len());
            first.bytes.drain(..known);
            first.start = position;
        }
        lines.truncate(most);
        lines
    }

    /// At most `most` lines that end at or before `position`, oldest first; with the log's length the last ones. Fewer of
    /// very long ones, never none.
    #[must_use]
    pub fn lines_before(&self, position: u64, most: usize) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let mut end = position.min(self.len());
        // A position inside of a line leaves that line out.
        if end < self.len() {
            end = self.line_start(end).unwrap_or(end);
        }
        let stop = end.saturating_sub(BYTES_AT_ONCE);
        while lines.len() < most && (end > stop || lines.is_empty()) && end > 0 {
            // Where the line ends is known, or a look for it would read what was read already.
            let Some(line) = self.line_start(end - 1).and_then(|start| self.line_of(&self.place(start)?, start, end))
            else {
                break;
            };
            end = line.start;
            lines.push(line);
        }
        lines.reverse();
        lines
    }

    /// How many line feeds there are in a range of positions; the caller bounds it.
    #[must_use]
    pub fn feeds(&self, range: std::ops::Range<u64>) -> u64 {
        lines::feeds(self, range.start, range.end).0
    }

    /// Where the line ends that goes on at `position`, behind the piece that ends there: behind its line feed, or where the
    /// other stream comes in between. `None` when its end is not there yet.
    #[must_use]
    pub fn line_end(&self, position: u64) -> Option<u64> {
        let place = self.place(position.checked_sub(1)?)?;
        let mut at = position;
        let mut window = vec![0; 1024 * 1024];
        while at < place.end {
            let many = usize::try_from(place.end - at).unwrap_or(usize::MAX).min(window.len());
            let part = window.get_mut(..many)?;
            let read = self.read_in(&place, at, part);
            if let Some(found) = memchr::memchr(b'\n', part.get(..read)?) {
                return Some(at + found as u64 + 1);
            }
            if read == 0 {
                return None;
            }
            at += read as u64;
        }
        (place.end < self.len()).then_some(place.end)
    }

    /// The line that begins at a boundary.
    fn line(&self, start: u64) -> Option<LogLine> {
        let place = self.place(start)?;
        let end = self.next_boundary(&place, start);
        self.line_of(&place, start, end)
    }

    /// The line between two boundaries.
    fn line_of(&self, place: &Place, start: u64, end: u64) -> Option<LogLine> {
        if end <= start {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(end - start).ok()?];
        let read = self.read_in(place, start, &mut bytes);
        bytes.truncate(read);
        let whole = bytes.last() == Some(&b'\n');
        if whole {
            bytes.pop();
        }
        let mark = self.mark_at(place, start);
        Some(LogLine {
            start,
            end,
            bytes,
            stream: if self.err.is_some() { place.stream } else { mark.map_or(self.unmarked(place), |m| m.stream) },
            at: mark.map(|m| m.at),
            attempt: mark.map_or(1, |m| m.attempt.max(1)),
            cut: !whole && end < self.len(),
            complete: whole,
        })
    }

    /// Where the line that begins at `start` ends.
    fn next_boundary(&self, place: &Place, start: u64) -> u64 {
        // Most lines are short, so little is read at first.
        let mut piece = FIRST_PIECE;
        let mut buffer = Vec::new();
        let (mut block_from, mut at) = (start, start);
        loop {
            let edge = (block_from / BLOCK + 1).saturating_mul(BLOCK).min(place.end);
            let stop = edge.min(at.saturating_add(piece));
            let many = usize::try_from(stop.saturating_sub(at)).unwrap_or(0);
            buffer.resize(many.max(buffer.len()), 0);
            let Some(window) = buffer.get_mut(..many) else { return stop };
            let read = self.read_in(place, at, window);
            if let Some(found) = window.get(..read).and_then(|w| memchr::memchr(b'\n', w)) {
                return at + found as u64 + 1;
            }
            // The file was cut under our hands: what is there is the line.
            if read < many || stop >= place.end {
                return at + read as u64;
            }
            at = stop;
            piece = (piece * 2).min(BLOCK);
            if at == edge {
                // A whole block without a line feed ends here.
                if edge - block_from == BLOCK {
                    return edge;
                }
                block_from = edge;
            }
        }
    }

    /// The last boundary at or before a position: behind a line feed, at the start of a run, or at a multiple of the
    /// block size behind a block without a line feed. `None` when there is nothing.
    fn line_start(&self, position: u64) -> Option<u64> {
        let position = position.min(self.len());
        let place = match self.place(position) {
            Some(place) => place,
            // The end of the log belongs to its last run.
            None => self.place(position.checked_sub(1)?)?,
        };
        let block_start = (position / BLOCK * BLOCK).max(place.start);
        if let Some(found) = self.last_feed(&place, block_start, position) {
            return Some(found + 1);
        }
        if block_start == place.start {
            return Some(place.start);
        }
        let before = block_start.saturating_sub(BLOCK).max(place.start);
        match self.last_feed(&place, before, block_start) {
            Some(found) => Some(found + 1),
            None if block_start - before == BLOCK => Some(block_start),
            None => Some(place.start),
        }
    }

    /// The position of the last line feed in `from..to`, at most one block.
    fn last_feed(&self, place: &Place, from: u64, to: u64) -> Option<u64> {
        // Most lines are short, so little is looked through at first.
        let (mut end, mut piece) = (to, LAST_PIECE);
        let mut window = Vec::new();
        while end > from {
            let start = end.saturating_sub(piece).max(from);
            window.resize(usize::try_from(end - start).ok()?, 0);
            let read = self.read_back(place, start, &mut window);
            if let Some(found) = memchr::memrchr(b'\n', window.get(..read)?) {
                return Some(start + found as u64);
            }
            (end, piece) = (start, piece * 2);
        }
        None
    }
}

#[cfg(test)]
mod tests;
