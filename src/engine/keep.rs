//! What a pump keeps of a stream, and what it has gathered to tell the engine.

use std::io;

use tokio::sync::mpsc::Sender;

use super::intake::{Intake, Piece};
use super::live_log::LiveLog;
use super::notes::Note;
use crate::run::{AgentEvent, StepId, StepState, Stream, Timestamp};
use crate::text::{StyledLine, prefix};

/// Bytes of a stream's end that are kept in memory for errors and final texts (runner-behaviour 1.6).
const TAIL: usize = 128 * 1024;
/// Lines of one message, or of bytes that came together, that the engine is told at most (runner-behaviour 9).
const LINES_A_MESSAGE: usize = 10;
/// Longest line in a report, in bytes.
const LINE_BYTES: usize = 512;
/// A buffer for text is kept for the next piece unless one burst made it huge.
const BUFFER: usize = 256 * 1024;

/// Keeps bytes and gathers what the engine is to be told.
pub(super) struct Keeper {
    pub(super) step: StepId,
    pub(super) stream: Stream,
    pub(super) plain: bool,
    pub(super) log: LiveLog,
    pub(super) attempt: u32,
    /// How many bytes of the stream are kept at most.
    pub(super) cap: u64,
    pub(super) pending: Pending,
    pub(super) tail: Tail,
    pub(super) told: Told,
    pub(super) at: Timestamp,
}

#[derive(Default)]
pub(super) struct Pending {
    pub(super) events: Vec<(Timestamp, AgentEvent)>,
    /// Text for the live log, written once a chunk.
    pub(super) text: Vec<u8>,
    pub(super) text_stream: Option<Stream>,
    /// Where the messages in it begin.
    pub(super) messages: Vec<usize>,
    /// The unfinished last line of the text, for the lines that the engine is told.
    pub(super) lines: Vec<String>,
    pub(super) partial: String,
    pub(super) bytes: u64,
    pub(super) truncated: bool,
    pub(super) trouble: Option<String>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.bytes == 0 && self.lines.is_empty()
    }
}

/// What is said only once.
#[derive(Default)]
pub(super) struct Told {
    pub(super) truncated: bool,
    pub(super) trouble: bool,
    /// The newest state of a line that has no end yet.
    pub(super) open: String,
}

impl Keeper {
    /// Notes what became of a piece when it was kept.
    pub(super) fn kept(&mut self, piece: &mut Piece) {
        self.at = piece.at;
        self.pending.bytes += piece.bytes().len() as u64;
        self.pending.truncated |= piece.cut;
        if let Some(error) = piece.trouble.take() {
            self.told_trouble(error);
        } else if self.plain
            && let Some(start) = piece.start
        {
            let marked = self.log.mark(self.stream, self.attempt, self.at, start);
            self.trouble(marked.err());
        }
    }

    /// Writes what waits for room, as far as there is room; returns whether some of it still waits.
    pub(super) fn retry(&mut self, intake: &mut Intake) -> bool {
        let raw = intake.retry();
        let log = self.log.retry();
        self.trouble(log.err());
        let waits = *raw.as_ref().unwrap_or(&false) || self.log.is_waiting();
        self.trouble(raw.err());
        waits
    }

    pub(super) fn trouble(&mut self, error: Option<io::Error>) {
        if let Some(error) = error {
            self.told_trouble(error.to_string());
        }
    }

    fn told_trouble(&mut self, error: String) {
        if !std::mem::replace(&mut self.told.trouble, true) {
            self.pending.trouble = Some(error);
        }
    }

    pub(super) fn log_bytes(&mut self, bytes: &[u8]) {
        let appended = self.log.append(self.stream, self.attempt, self.at, bytes);
        self.trouble(appended.err());
        self.gather_lines(bytes);
    }

    pub(super) fn text(&mut self, stream: Stream, text: &str) {
        if self.pending.text_stream.is_some_and(|s| s != stream) {
            self.flush_log();
        }
        self.pending.text_stream = Some(stream);
        self.pending.messages.push(self.pending.text.len());
        self.pending.text.extend_from_slice(text.as_bytes());
    }

    pub(super) fn flush_log(&mut self) {
        let text = std::mem::take(&mut self.pending.text);
        let stream = self.pending.text_stream.take().unwrap_or(self.stream);
        if !text.is_empty() {
            let appended = self.log.append(stream, self.attempt, self.at, &text);
            self.trouble(appended.err());
            self.gather_messages(&text);
        }
        self.pending.messages.clear();
        if text.capacity() <= BUFFER {
            self.pending.text = text;
            self.pending.text.clear();
        }
    }

    /// Remembers the newest lines of each of the newest messages; however many there are, no more are looked at than can be
    /// kept.
    fn gather_messages(&mut self, text: &[u8]) {
        let starts = std::mem::take(&mut self.pending.messages);
        let (mut first, mut end, mut lines) = (starts.len(), text.len(), 0);
        while first > 0 && lines < StepState::KEPT_LINES {
            first -= 1;
            let start = starts.get(first).copied().unwrap_or(end);
            let message = text.get(start..end).unwrap_or_default();
            lines += memchr::memrchr_iter(b'\n', message).take(LINES_A_MESSAGE).count();
            end = start;
        }
        if first > 0 {
            self.pending.partial.clear();
        }
        let ends = starts.iter().copied().skip(1).chain([text.len()]);
        for (start, end) in starts.iter().copied().zip(ends).skip(first) {
            self.gather_lines(text.get(start..end).unwrap_or_default());
        }
        self.pending.messages = starts;
    }

    /// Remembers the newest non-blank lines; only the end of a large chunk is looked at.
    pub(super) fn gather_lines(&mut self, bytes: &[u8]) {
        let known = self.pending.lines.len();
        let start = bytes.len().saturating_sub(LINES_A_MESSAGE * LINE_BYTES);
        if start > 0 {
            self.pending.partial.clear();
        }
        let Some(end) = bytes.get(start..) else { return };
        let text = String::from_utf8_lossy(end);
        let mut pieces = text.split('\n').peekable();
        while let Some(piece) = pieces.next() {
            go_on(&mut self.pending.partial, piece);
            if pieces.peek().is_some() {
                let line = std::mem::take(&mut self.pending.partial);
                if !line.trim().is_empty() {
                    self.pending.lines.push(line.trim_end().to_owned());
                }
            }
        }
        let surplus = self.pending.lines.len().saturating_sub(known + LINES_A_MESSAGE);
        self.pending.lines.drain(known..known + surplus);
        let surplus = self.pending.lines.len().saturating_sub(StepState::KEPT_LINES);
        self.pending.lines.drain(..surplus);
    }

    /// The stream is over: what it left without a line feed is a line.
    pub(super) fn close_line(&mut self) {
        let line = std::mem::take(&mut self.pending.partial);
        if !StyledLine::parse(line.as_bytes()).is_blank() {
            self.pending.lines.push(line.trim_end().to_owned());
        }
    }

    /// What there is of a line that has no end yet, where it is another state of it than the engine was told. A command
    /// that only prints how far it is would seem silent otherwise.
    fn open_line(&mut self) -> Option<String> {
        let line = self.pending.partial.trim_end();
        let news = !self.pending.lines.is_empty() || line != self.told.open;
        if !self.plain || !news {
            return None;
        }
        self.told.open.clear();
        self.told.open.push_str(line);
        // As the pane shows it: what moves the cursor or erases leaves no trace.
        let seen = StyledLine::parse(line.as_bytes());
        (!seen.is_blank()).then(|| seen.text().to_string())
    }

    /// Tells the engine what has gathered; `false` when the engine is gone.
    pub(super) fn tell(&mut self, notes: &Sender<Note>) -> bool {
        let step = self.step;
        if std::mem::take(&mut self.pending.truncated) && !self.told.truncated {
            self.told.truncated = true;
            let note = Note::Truncated { step, stream: self.stream, cap: self.cap };
            if notes.blocking_send(note).is_err() {
                return false;
            }
        }
        if let Some(error) = self.pending.trouble.take()
            && notes.blocking_send(Note::LogTrouble { step, error }).is_err()
        {
            return false;
        }
        let events = std::mem::take(&mut self.pending.events);
        let open = self.open_line();
        let mut lines = std::mem::take(&mut self.pending.lines);
        let bytes = std::mem::take(&mut self.pending.bytes);
        let note = if events.is_empty() {
            if bytes == 0 && lines.is_empty() {
                return true;
            }
            let is_open = open.is_some();
            lines.extend(open);
            Note::Seen { step, bytes, lines, open: is_open }
        } else {
            Note::Agent { step, events, lines }
        };
        notes.blocking_send(note).is_ok()
    }
}

/// Adds to a line that has no end yet, of which the beginning is kept. A carriage return begins it anew with what comes
/// behind it.
fn go_on(line: &mut String, piece: &str) {
    let text = piece.trim_end_matches('\r');
    let newest = text.rsplit('\r').next().unwrap_or(text);
    if newest.len() < text.len() || !text.is_empty() && line.ends_with('\r') {
        line.clear();
    }
    line.push_str(prefix(newest, LINE_BYTES.saturating_sub(line.len())));
    if text.len() < piece.len() && !line.ends_with('\r') {
        line.push('\r');
    }
}

/// The last [`TAIL`] bytes of a stream.
#[derive(Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or(bytes);
        // Twice the size before it is cut, so that a flood of small chunks does not move memory each time.
        if self.0.len() + bytes.len() > 2 * TAIL {
            let surplus = (self.0.len() + bytes.len()).saturating_sub(TAIL).min(self.0.len());
            self.0.drain(..surplus);
        }
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        let surplus = self.0.len().saturating_sub(TAIL);
        self.0.drain(..surplus);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper() -> Keeper {
        Keeper {
            step: StepId(0),
            stream: Stream::Out,
            plain: true,
            log: LiveLog::new(None, None),
            attempt: 1,
            cap: 0,
            pending: Pending::default(),
            tail: Tail::default(),
            told: Told::default(),
            at: Timestamp::from_millis(0),
        }
    }

    /// What the engine is told after each piece: the lines, and whether the last has no end yet.
    fn told(keeper: &mut Keeper, pieces: &[&str]) -> Vec<(String, bool)> {
        let (notes, mut taken) = tokio::sync::mpsc::channel(pieces.len() + 1);
        for piece in pieces {
            keeper.pending.bytes += piece.len() as u64;
            keeper.gather_lines(piece.as_bytes());
            assert!(keeper.tell(&notes));
        }
        let note = |note| match note {
            Note::Seen { lines, open, .. } => (lines.join("|"), open),
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| taken.try_recv().ok()).map(note).collect()
    }

    #[test]
    fn the_newest_state_of_a_line_without_an_end_is_told() {
        let mut keeper = keeper();
        let pieces = ["begin\nprog 1\r", "prog 2\r", "\r\x1b[K", "prog 3", " of 9", "", "\rdone\r", "\nnext"];
        let expected = [
            ("begin|prog 1", true),
            ("prog 2", true),
            // Nothing is to be read in it, so what was there stays.
            ("", false),
            ("prog 3", true),
            ("prog 3 of 9", true),
            ("done", true),
            ("done|next", true),
        ];
        assert_eq!(told(&mut keeper, &pieces), expected.map(|(text, open)| (text.to_owned(), open)));
        keeper.close_line();
        assert_eq!(told(&mut keeper, &[""]), [("next".to_owned(), false)], "the stream is over");
    }

    #[test]
    fn a_long_line_without_an_end_is_told_once_and_in_part() {
        let long = "x".repeat(3000);
        let found = told(&mut keeper(), &[&long, &long, &long]);
        assert_eq!(found, [("x".repeat(LINE_BYTES), true), (String::new(), false), (String::new(), false)]);
    }

    #[test]
    fn a_line_that_was_written_over_is_told_as_it_is_at_its_end() {
        let bar: String = (0..200).map(|n| format!("\r{n} of 199")).collect();
        assert_eq!(told(&mut keeper(), &[&bar, "\r\n"])[1], ("199 of 199".to_owned(), false));
    }
}
