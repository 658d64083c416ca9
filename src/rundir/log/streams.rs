//! The bytes of a step's log: which files there are, how the streams of a command lie one after the other, and which
//! position of the log is where in which file.

use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::super::marks::{Mark, MarkReader};
use super::super::open;
use super::super::write::is_capacity;
use super::{LogChange, StepLog};
use crate::run::Stream;

/// How many changes between the streams are kept in order; what comes later stands stream after stream.
const RUNS_MOST: usize = 500_000;

/// A piece of one stream without the other stream in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) stream: Stream,
    /// The first byte in the stream's own file.
    pub(super) offset: u64,
    /// The number of the mark that began it.
    pub(super) mark: u64,
}

/// How many bytes are read together by who goes on where the last ones ended.
const AHEAD: usize = 64 * 1024;
/// How many bytes are read together by who goes back from an end: about what a screen shows.
const BEHIND: usize = 8 * 1024;

/// Where a position is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) stream: Stream,
    /// The positions of the run.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The offset of the run's first byte in the stream's file.
    pub(super) offset: u64,
    /// The numbers of the marks that speak of it.
    pub(super) marks: (u64, u64),
}

/// The file of a stream.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) path: PathBuf,
    pub(super) file: Option<File>,
    pub(super) size: u64,
    /// Which file was read last: device and number.
    known: Option<(u64, u64)>,
    /// It is there, but this process has no room for another open file.
    starved: bool,
    /// What was read last and where it begins. Who goes through a log line by line reads it in pieces of [`AHEAD`].
    window: RefCell<(u64, Vec<u8>)>,
}

impl Half {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, size: 0, known: None, starved: false, window: RefCell::default() }
    }

    /// Reads bytes from an offset on; returns how many there were. Who goes back will want what is before them next.
    fn read(&self, offset: u64, buffer: &mut [u8], back: bool) -> usize {
        let Some(file) = &self.file else { return 0 };
        // Who takes so much at once goes through the whole log and needs no copy of it.
        if buffer.len() >= AHEAD {
            return read_fully(file, offset, buffer);
        }
        let mut window = self.window.borrow_mut();
        let (start, end) = (window.0, window.0 + window.1.len() as u64);
        if offset < start || offset + buffer.len() as u64 > end {
            // Behind what is looked through for the start of a line stands the line feed that ends it.
            let goes_on = (start..=end).contains(&offset);
            let ahead = if back { buffer.len() + 1 } else { usize::from(goes_on) * AHEAD };
            let known = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
            let behind = if back { BEHIND.saturating_sub(buffer.len()) as u64 } else { 0 }.min(offset);
            let many = buffer.len().max(ahead.min(known)) + usize::try_from(behind).unwrap_or(0);
            window.0 = offset - behind;
            window.1.resize(many, 0);
            let read = read_fully(file, window.0, &mut window.1);
            window.1.truncate(read);
        }
        let from = usize::try_from(offset - window.0).unwrap_or(usize::MAX);
        let found = window.1.get(from..).unwrap_or_default();
        let many = found.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..many), found.get(..many)) {
            to.copy_from_slice(from);
        }
        many
    }

    fn close(&mut self) {
        self.file = None;
        self.window.take();
    }

    pub(super) fn refresh(&mut self) -> LogChange {
        if self.file.is_none() {
            let opened = open::regular(&self.path);
            self.starved = opened.as_ref().is_err_and(is_capacity);
            self.file = opened.ok();
        }
        let meta = self.file.as_ref().and_then(|f| f.metadata().ok());
        let size = meta.as_ref().map_or(0, Metadata::len);
        // Another file stands there whenever it was not held open.
        let id = meta.map(|m| (m.dev(), m.ino()));
        let another = self.size > 0 && id.is_some() && self.known.is_some() && id != self.known;
        let change = LogChange { grown: size > self.size, shrunk: another || size < self.size };
        self.size = size;
        self.known = id.or(self.known);
        // What stood there may be another by now, and a log that nobody goes through needs no memory.
        self.window.take();
        change
    }
}

fn read_fully(file: &File, offset: u64, buffer: &mut [u8]) -> usize {
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

impl StepLog {
    /// The final text of a plain command also goes into its output log, so the files of the streams decide first.
    pub(super) fn settle(&mut self) {
        if self.settled {
            return;
        }
        let (out, err) = (self.dir.external_out(self.step), self.dir.external_err(self.step));
        // Where something else stands in the place of its log, there is still the text that the step ended with.
        if !open::is_odd(&out) && (out.exists() || err.exists()) {
            self.settled = true;
            self.out = Half::new(out);
            self.err = Some(Half::new(err));
            self.settle_only();
        } else {
            // Its output log is made before the files of the streams are, so only one that holds something decides.
            self.settled = std::fs::metadata(&self.out.path).is_ok_and(|m| m.len() > 0);
        }
    }

    /// Closes the files until the next look: a run may have more steps than a process may have files. Until then nothing can
    /// be read, and the length stays what it is.
    pub fn rest(&mut self) {
        self.resting = true;
        self.marks = None;
        self.out.close();
        if let Some(err) = &mut self.err {
            err.close();
        }
    }

    /// Whether its files are closed.
    #[must_use]
    pub const fn is_resting(&self) -> bool {
        self.resting
    }

    /// Whether it could not be opened because this process has too many open files.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.out.starved || self.err.as_ref().is_some_and(|err| err.starved)
    }

    /// Looks at the files again.
    pub fn refresh(&mut self) -> LogChange {
        self.resting = false;
        self.settle();
        // Marks stand on the disk before their bytes do, so looking at sizes first never shows bytes without marks of
        // a stream that had none before.
        let out = self.out.refresh();
        let err = self.err.as_mut().map(Half::refresh).unwrap_or_default();
        let shrunk = out.shrunk || err.shrunk;
        if shrunk {
            self.marks = None;
        }
        let anew = self.marks.is_none();
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
        self.extend_only(anew);
        LogChange { grown: out.grown || err.grown, shrunk }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        if let Some(len) = self.only_len() {
            return len;
        }
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

    /// Where in these bytes, which are in the log `at` a position, the other stream comes in between in the middle of a line.
    pub(super) fn seam(&self, at: u64, bytes: &[u8]) -> Option<usize> {
        self.err.as_ref()?;
        let mut edge = at;
        loop {
            edge = self.place(edge)?.end;
            let index = usize::try_from(edge - at).ok().filter(|index| *index < bytes.len())?;
            if bytes.get(index.checked_sub(1)?) != Some(&b'\n') {
                return Some(index);
            }
        }
    }

    pub(super) fn read_in(&self, place: &Place, position: u64, buffer: &mut [u8]) -> usize {
        self.half(place.stream).read(place.offset + (position - place.start), buffer, false)
    }

    /// Like [`StepLog::read_in`], for who goes back through the log.
    pub(super) fn read_back(&self, place: &Place, position: u64, buffer: &mut [u8]) -> usize {
        self.half(place.stream).read(place.offset + (position - place.start), buffer, true)
    }

    const fn half(&self, stream: Stream) -> &Half {
        match (stream, &self.err) {
            (Stream::Err, Some(err)) => err,
            _ => &self.out,
        }
    }

    /// The mark that covers a line: the last one of its run at or before it.
    pub(super) fn mark_at(&self, place: &Place, start: u64) -> Option<Mark> {
        let marks = self.marks.as_ref()?;
        let offset = place.offset + (start - place.start);
        let (first, end) = place.marks;
        let (mut low, mut high) = (first, end.min(marks.count()));
        // Neighbouring lines have neighbouring marks, which are known already.
        let known = marks.known();
        let near = known.start.max(low)..known.end.min(high);
        if !near.is_empty()
            && marks.get(near.start)?.offset <= offset
            && (near.end == high || marks.get(near.end - 1)?.offset > offset)
        {
            (low, high) = (near.start, near.end);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if marks.get(middle)?.offset <= offset { low = middle + 1 } else { high = middle }
        }
        marks.get(low.checked_sub(1).filter(|n| *n >= first)?)
    }

    pub(super) fn place(&self, position: u64) -> Option<Place> {
        if position >= self.len() {
            return None;
        }
        if let Some(place) = self.only_place(position) {
            return place;
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
    pub(super) fn run_start(&self, number: usize) -> u64 {
        let Some(run) = self.runs.get(number) else { return self.len() };
        match self.runs.get(number + 1) {
            Some(next) => run.offset.saturating_add(next.offset),
            None => run.offset.saturating_add(self.size_of(other(run.stream))),
        }
    }

    pub(super) const fn size_of(&self, stream: Stream) -> u64 {
        self.half(stream).size
    }

    pub(super) fn extend_runs(&mut self) {
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
