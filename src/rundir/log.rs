//! The live output of a step as lines at positions, read in windows: memory does not grow with the log.
//!
//! An agent's output is one file. A plain command has a file for each stream; the marks beside them say in which order
//! the pieces came, and the log is read as if they were one file in that order. Positions count bytes of that one
//! file. Without marks the two streams stand after each other.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::marks::{Mark, MarkReader};
use super::{RunDir, open};
use crate::run::{StepId, Stream, Timestamp};

/// Lines are cut at multiples of this many bytes when a whole block holds no line feed, so a line has less than twice
/// as many bytes and every boundary can be found by looking at two blocks.
pub const BLOCK: u64 = 64 * 1024;
/// How many changes between the streams are kept in order; what comes later stands stream after stream.
const RUNS_MOST: usize = 500_000;

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
    /// When it came, to the second, where that is known.
    pub at: Option<Timestamp>,
    /// The attempt that printed it, from 1; 1 when that is not known.
    pub attempt: u8,
    /// It goes on in the next line: it was cut, or the other stream came in between.
    pub cut: bool,
    /// It ended with a line feed. Neither complete nor cut is the last line of a log that may still grow.
    pub complete: bool,
}

/// What a look at the files found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// There is more than before.
    pub grown: bool,
    /// A file is shorter than before: positions from before mean nothing any more (a foreign runner began again).
    pub shrunk: bool,
}

/// A piece of one stream without the other stream in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    stream: Stream,
    /// The first byte in the stream's own file.
    offset: u64,
    /// The number of the mark that began it.
    mark: u64,
}

/// Where a position is.
#[derive(Clone, Copy, Debug)]
struct Place {
    stream: Stream,
    /// The positions of the run.
    start: u64,
    end: u64,
    /// The offset of the run's first byte in the stream's file.
    offset: u64,
    /// The numbers of the marks that speak of it.
    marks: (u64, u64),
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
}

#[derive(Debug)]
struct Half {
    path: PathBuf,
    file: Option<File>,
    size: u64,
}

impl Half {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0 }
    }

    fn refresh(&mut self) -> LogChange {
        if self.file.is_none() {
            self.file = open::regular(&self.path).ok();
        }
        let size = self.file.as_ref().and_then(|f| f.metadata().ok()).map_or(0, |m| m.len());
        let change = LogChange { grown: size > self.size, shrunk: size < self.size };
        self.size = size;
        change
    }
}

impl StepLog {
    /// The output of a step; nothing needs to exist yet. A plain command is known by the files of its streams
    /// (run-directory 2.15).
    #[must_use]
    pub fn open(dir: &RunDir, step: StepId) -> Self {
        let mut log = Self {
            dir: dir.clone(),
            step,
            settled: false,
            out: Half::new(dir.output(step)),
            err: None,
            marks_path: dir.marks(step),
            marks: None,
            runs: Vec::new(),
            seen: 0,
        };
        log.refresh();
        log
    }

    /// The final text of a plain command also goes into its output log, so the files of the streams decide first.
    fn settle(&mut self) {
        if self.settled {
            return;
        }
        if self.dir.external_out(self.step).exists() || self.dir.external_err(self.step).exists() {
            self.settled = true;
            self.out = Half::new(self.dir.external_out(self.step));
            self.err = Some(Half::new(self.dir.external_err(self.step)));
        } else {
            // Its output log is made before the files of the streams are, so only one that holds something decides.
            self.settled = std::fs::metadata(&self.out.path).is_ok_and(|m| m.len() > 0);
        }
    }

    /// Looks at the files again.
    pub fn refresh(&mut self) -> LogChange {
        self.settle();
        // Marks stand on the disk before their bytes do, so looking at sizes first never shows bytes without marks of
        // a stream that had none before.
        let out = self.out.refresh();
        let err = self.err.as_mut().map(Half::refresh).unwrap_or_default();
        let shrunk = out.shrunk || err.shrunk;
        if shrunk {
            self.marks = None;
        }
        match &mut self.marks {
            Some(marks) => marks.refresh(),
            None => {
                self.marks = MarkReader::open(&self.marks_path);
                self.runs.clear();
                self.seen = 0;
            }
        }
        if self.err.is_some() {
            self.extend_runs();
        }
        LogChange { grown: out.grown || err.grown, shrunk }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.out.size + self.err.as_ref().map_or(0, |e| e.size)
    }

    /// Whether nothing was printed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes from a position on into `buffer`; returns how many there were.
    #[must_use]
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|r| !r.is_empty()) {
            let at = position + done as u64;
            let Some(place) = self.place(at) else { break };
            let many = usize::try_from(place.end - at).unwrap_or(usize::MAX).min(rest.len());
            let Some(window) = rest.get_mut(..many) else { break };
            let read = self.read_in(&place, at, window);
            if read == 0 {
                break;
            }
            done += read;
        }
        done
    }

    /// At most `most` lines from the one that holds `position` on, oldest first.
    #[must_use]
    pub fn lines_from(&self, position: u64, most: usize) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let Some(mut start) = self.line_start(position) else { return lines };
        while lines.len() < most {
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

    /// At most `most` lines that end at or before `position`, oldest first; with the log's length the last ones.
    #[must_use]
    pub fn lines_before(&self, position: u64, most: usize) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let mut end = position.min(self.len());
        // A position inside of a line leaves that line out.
        if end < self.len() {
            end = self.line_start(end).unwrap_or(end);
        }
        while lines.len() < most && end > 0 {
            let Some(line) = self.line_start(end - 1).and_then(|start| self.line(start)) else { break };
            end = line.start;
            lines.push(line);
        }
        lines.reverse();
        lines
    }

    /// The line that begins at a boundary.
    fn line(&self, start: u64) -> Option<LogLine> {
        let place = self.place(start)?;
        let end = self.next_boundary(&place, start);
        if end <= start {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(end - start).ok()?];
        let read = self.read_in(&place, start, &mut bytes);
        bytes.truncate(read);
        let whole = bytes.last() == Some(&b'\n');
        if whole {
            bytes.pop();
        }
        let mark = self.mark_at(&place, start);
        Some(LogLine {
            start,
            end,
            bytes,
            stream: if self.err.is_some() { place.stream } else { mark.map_or(Stream::Out, |m| m.stream) },
            at: mark.map(|m| m.at),
            attempt: mark.map_or(1, |m| m.attempt.max(1)),
            cut: !whole && end < self.len(),
            complete: whole,
        })
    }

    /// Where the line that begins at `start` ends.
    fn next_boundary(&self, place: &Place, start: u64) -> u64 {
        let mut at = start;
        let mut block = vec![0; BLOCK as usize];
        loop {
            let stop = (at / BLOCK + 1).saturating_mul(BLOCK).min(place.end);
            let many = usize::try_from(stop - at).unwrap_or(0);
            let Some(window) = block.get_mut(..many) else { return stop };
            let read = self.read_in(place, at, window);
            if let Some(found) = window.get(..read).and_then(|w| memchr::memchr(b'\n', w)) {
                return at + found as u64 + 1;
            }
            // The file was cut under our hands: what is there is the line.
            if read < many || stop == place.end {
                return at + read as u64;
            }
            // A whole block without a line feed ends here.
            if stop - at == BLOCK {
                return stop;
            }
            at = stop;
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
        let mut window = vec![0; usize::try_from(to.checked_sub(from)?).ok()?];
        let read = self.read_in(place, from, &mut window);
        let found = memchr::memrchr(b'\n', window.get(..read)?)?;
        Some(from + found as u64)
    }

    fn read_in(&self, place: &Place, position: u64, buffer: &mut [u8]) -> usize {
        let half = match (place.stream, &self.err) {
            (Stream::Err, Some(err)) => err,
            _ => &self.out,
        };
        let Some(file) = &half.file else { return 0 };
        let offset = place.offset + (position - place.start);
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|r| !r.is_empty()) {
            match file.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }

    /// The mark that covers a line: the last one of its run at or before it.
    fn mark_at(&self, place: &Place, start: u64) -> Option<Mark> {
        let marks = self.marks.as_ref()?;
        let offset = place.offset + (start - place.start);
        let (first, end) = place.marks;
        let (mut low, mut high) = (first, end.min(marks.count()));
        while low < high {
            let middle = low + (high - low) / 2;
            if marks.get(middle)?.offset <= offset { low = middle + 1 } else { high = middle }
        }
        marks.get(low.checked_sub(1).filter(|n| *n >= first)?)
    }

    fn place(&self, position: u64) -> Option<Place> {
        if position >= self.len() {
            return None;
        }
        if self.err.is_none() {
            let marks = (0, u64::MAX);
            return Some(Place { stream: Stream::Out, start: 0, end: self.out.size, offset: 0, marks });
        }
        // The first run whose start is beyond the position follows the one that holds it; empty runs are skipped.
        let (mut low, mut high) = (0, self.runs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.run_start(middle) <= position { low = middle + 1 } else { high = middle }
        }
        let number = low.checked_sub(1)?;
        let run = self.runs.get(number)?;
        Some(Place {
            stream: run.stream,
            start: self.run_start(number),
            end: self.run_start(number + 1),
            offset: run.offset,
            marks: (run.mark, self.runs.get(number + 1).map_or(u64::MAX, |r| r.mark)),
        })
    }

    /// The position at which a run begins: its own offset plus how far the other stream was by then, which is where
    /// that stream's next run begins.
    fn run_start(&self, number: usize) -> u64 {
        let Some(run) = self.runs.get(number) else { return self.len() };
        match self.runs.get(number + 1) {
            Some(next) => run.offset.saturating_add(next.offset),
            None => run.offset.saturating_add(self.size_of(other(run.stream))),
        }
    }

    fn size_of(&self, stream: Stream) -> u64 {
        match (stream, &self.err) {
            (Stream::Err, Some(err)) => err.size,
            _ => self.out.size,
        }
    }

    fn extend_runs(&mut self) {
        if self.runs.is_empty() {
            self.runs.push(Run { stream: Stream::Out, offset: 0, mark: 0 });
        }
        'marks: while self.runs.len() < RUNS_MOST {
            let marks = self.marks.as_ref().map(|m| m.read(self.seen, 1024)).unwrap_or_default();
            if marks.is_empty() {
                break;
            }
            for mark in marks {
                // The bytes may not have been there when the sizes were looked at; the next look finds them.
                if self.runs.len() >= RUNS_MOST || mark.offset > self.size_of(mark.stream) {
                    break 'marks;
                }
                let last = self.runs.last().map_or(Stream::Out, |r| r.stream);
                let floor = self.runs.iter().rev().find(|r| r.stream == mark.stream).map_or(0, |r| r.offset);
                // A mark that goes back is not believed, and a line of our own has no file of its own here.
                if mark.stream != last && mark.stream != Stream::Own && mark.offset >= floor {
                    self.runs.push(Run { stream: mark.stream, offset: mark.offset, mark: self.seen });
                }
                self.seen += 1;
            }
        }
        // Bytes on the second stream that no mark speaks of stand behind the others.
        let err = self.err.as_ref().map_or(0, |e| e.size);
        if err > 0 && !self.runs.iter().any(|r| r.stream == Stream::Err) {
            self.runs.push(Run { stream: Stream::Err, offset: 0, mark: self.seen });
        }
    }
}

const fn other(stream: Stream) -> Stream {
    match stream {
        Stream::Err => Stream::Out,
        Stream::Out | Stream::Own => Stream::Err,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::rundir::MarkWriter;

    #[test]
    fn a_following_reader_gets_each_byte_once() {
        let (_temp, dir) = dir();
        let step = StepId(0);
        let path = dir.output(step);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut log = StepLog::open(&dir, step);
        let (mut position, mut got) = (0, String::new());
        for piece in ["one\ntw", "", "o", "\nthree", "", "\n"] {
            file.write_all(piece.as_bytes()).unwrap();
            log.refresh();
            for line in log.lines_since(position, 10) {
                got.push_str(std::str::from_utf8(&line.bytes).unwrap());
                got.push_str(if line.complete { "\n" } else { "" });
                position = line.end;
            }
        }
        assert_eq!(got, "one\ntwo\nthree\n");
    }

    fn dir() -> (tempfile::TempDir, RunDir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        (temp, dir)
    }

    const STEP: StepId = StepId(0);

    /// Prints on a stream of a plain command as the pump does: the mark first, then the bytes.
    fn print(dir: &RunDir, marks: &mut MarkWriter, at: i64, stream: Stream, bytes: &[u8]) {
        let path = if stream == Stream::Err { dir.external_err(STEP) } else { dir.external_out(STEP) };
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        marks.note(file.metadata().unwrap().len(), Timestamp::from_millis(at), stream, 1).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn words(lines: &[LogLine]) -> Vec<String> {
        let one = |l: &LogLine| {
            let stream = if l.stream == Stream::Err { "!" } else { "" };
            format!("{stream}{}{}", String::from_utf8_lossy(&l.bytes), if l.cut { "~" } else { "" })
        };
        lines.iter().map(one).collect()
    }

    #[test]
    fn the_streams_of_a_command_are_read_in_the_order_they_came() {
        let (_temp, dir) = dir();
        let mut log = StepLog::open(&dir, STEP);
        assert!(log.is_empty() && log.lines_from(0, 9).is_empty() && log.lines_before(0, 9).is_empty());
        let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
        print(&dir, &mut marks, 1000, Stream::Err, b"warn\n");
        print(&dir, &mut marks, 1001, Stream::Out, b"one\ntwo\nthr");
        assert!(log.refresh().grown);
        assert_eq!(words(&log.lines_from(0, 9)), ["!warn", "one", "two", "thr"]);
        print(&dir, &mut marks, 1500, Stream::Err, b"bad\n");
        print(&dir, &mut marks, 4000, Stream::Out, b"ee\nfour\n");
        print(&dir, &mut marks, 6000, Stream::Out, b"five\n");
        log.refresh();
        let all = log.lines_from(0, 99);
        assert_eq!(words(&all), ["!warn", "one", "two", "thr~", "!bad", "ee", "four", "five"]);
        assert_eq!(
            all.iter().map(|l| l.at.unwrap().millis()).collect::<Vec<_>>(),
            [1000, 1001, 1001, 1001, 1500, 4000, 4000, 6000]
        );
        assert_eq!(log.lines_before(log.len(), 3), all[5..]);
        assert_eq!(log.lines_before(all[4].start, 2), all[2..4]);
        assert_eq!(log.lines_from(all[3].start + 1, 1), all[3..4]);
        let mut bytes = vec![0; 99];
        let read = log.read_at(0, &mut bytes);
        assert_eq!(&bytes[..read], b"warn\none\ntwo\nthrbad\nee\nfour\nfive\n");
    }

    #[test]
    fn without_marks_one_stream_follows_the_other() {
        let (_temp, dir) = dir();
        fs::write(dir.external_out(STEP), "out\n").unwrap();
        fs::write(dir.external_err(STEP), "err\n").unwrap();
        assert_eq!(words(&StepLog::open(&dir, STEP).lines_from(0, 9)), ["out", "!err"]);
        fs::write(dir.external_out(STEP), "").unwrap();
        assert_eq!(words(&StepLog::open(&dir, STEP).lines_from(0, 9)), ["!err"]);
    }

    #[test]
    fn marks_of_an_agent_tell_stream_time_and_attempt() {
        let (_temp, dir) = dir();
        fs::write(dir.output(STEP), "a\nb\nc\n").unwrap();
        let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
        marks.note(0, Timestamp::from_millis(1), Stream::Out, 1).unwrap();
        marks.note(2, Timestamp::from_millis(2), Stream::Err, 1).unwrap();
        marks.note(4, Timestamp::from_millis(3), Stream::Own, 2).unwrap();
        let lines = StepLog::open(&dir, STEP).lines_from(0, 9);
        let seen: Vec<_> = lines.iter().map(|l| (l.stream, l.at.unwrap().millis(), l.attempt)).collect();
        assert_eq!(seen, [(Stream::Out, 1, 1), (Stream::Err, 2, 1), (Stream::Own, 3, 2)]);
    }

    #[test]
    fn a_log_that_was_cut_is_noticed() {
        let (_temp, dir) = dir();
        fs::write(dir.output(STEP), "first attempt\n").unwrap();
        let mut log = StepLog::open(&dir, STEP);
        fs::write(dir.output(STEP), "2nd\n").unwrap();
        assert_eq!(log.refresh(), LogChange { grown: false, shrunk: true });
        assert_eq!(words(&log.lines_before(log.len(), 9)), ["2nd"]);
    }

    #[test]
    fn a_gigabyte_is_read_at_its_ends_without_being_read_through() {
        let (_temp, dir) = dir();
        let file = fs::File::create(dir.output(STEP)).unwrap();
        file.set_len(1 << 30).unwrap();
        file.write_all_at(b"first\n", 0).unwrap();
        file.write_all_at(b"\nlast\n", (1 << 30) - 6).unwrap();
        let log = StepLog::open(&dir, STEP);
        let begun = std::time::Instant::now();
        assert_eq!(words(&log.lines_before(log.len(), 1)), ["last"]);
        assert_eq!(words(&log.lines_from(0, 1)), ["first"]);
        let middle = log.lines_from(500_000_000, 3);
        assert!(middle.iter().all(|l| l.cut && l.bytes.len() as u64 == BLOCK));
        assert!(begun.elapsed() < std::time::Duration::from_millis(500), "{:?}", begun.elapsed());
    }

    #[test]
    fn lies_in_the_marks_do_not_hang_or_lose_bytes() {
        let (_temp, dir) = dir();
        fs::write(dir.external_out(STEP), "a\nb\n").unwrap();
        fs::write(dir.external_err(STEP), "c\n").unwrap();
        let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
        for (offset, stream) in
            [(2, Stream::Out), (0, Stream::Err), (0, Stream::Out), (1 << 60, Stream::Err), (4, Stream::Out)]
        {
            marks.note(offset, Timestamp::from_millis(0), stream, 1).unwrap();
        }
        let log = StepLog::open(&dir, STEP);
        let lines = log.lines_from(0, 99);
        assert_eq!(lines.iter().map(|l| l.bytes.len() + 1).sum::<usize>(), 6, "{:?}", words(&lines));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn forwards_and_backwards_see_the_same_lines(
            pieces in proptest::collection::vec((any::<bool>(), 0usize..3, 0usize..100_000), 0..12),
            plain: bool,
            probe: u32,
        ) {
            let (_temp, dir) = dir();
            let mut marks = MarkWriter::open(&dir.marks(STEP)).unwrap();
            let mut whole = Vec::new();
            for (n, (err, feeds, length)) in pieces.into_iter().enumerate() {
                let mut bytes = vec![b'a' + (n % 26) as u8; length];
                for feed in 0..feeds.min(length) {
                    bytes[feed * 7919 % length] = b'\n';
                }
                whole.extend_from_slice(&bytes);
                if plain {
                    print(&dir, &mut marks, n as i64, if err { Stream::Err } else { Stream::Out }, &bytes);
                } else {
                    OpenOptions::new().append(true).create(true).open(dir.output(STEP)).unwrap().write_all(&bytes).unwrap();
                }
            }
            let log = StepLog::open(&dir, STEP);
            prop_assert_eq!(log.len(), whole.len() as u64);
            let forwards = log.lines_from(0, usize::MAX);
            prop_assert_eq!(&log.lines_before(log.len(), usize::MAX), &forwards);
            let mut at = 0;
            for line in &forwards {
                prop_assert_eq!(line.start, at);
                prop_assert!((line.end - line.start) < 2 * BLOCK);
                let bytes = &whole[line.start as usize..line.end as usize];
                prop_assert_eq!(bytes.strip_suffix(b"\n").unwrap_or(bytes), &line.bytes[..]);
                at = line.end;
            }
            prop_assert_eq!(at, log.len());
            if let Some(line) = forwards.iter().find(|l| l.start <= u64::from(probe) && u64::from(probe) < l.end) {
                prop_assert_eq!(&log.lines_from(u64::from(probe), 1)[..], std::slice::from_ref(line));
            }
        }
    }
}
