//! One stream of a log by itself: standard error, or all but it. Positions count the bytes of that stream alone, so that
//! lines, search and line numbers work on it as they do on the whole log.
//!
//! A command has a file for each stream. In the one file of an agent the marks tell which pieces are whose.

use super::streams::{Half, Place};
use super::{RunDir, StepLog};
use crate::run::{StepId, Stream};
use crate::rundir::marks::Mark;

/// How many pieces are told apart; what comes behind them is not told apart.
const PIECES_MOST: usize = 500_000;

/// A piece of the stream without anything of another in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Its first byte, as a position of this stream.
    start: u64,
    /// Its first byte in the file.
    offset: u64,
    /// The number of the mark that began it, and of the one that ended it.
    marks: (u64, u64),
}

/// Which stream, and where it is.
#[derive(Debug)]
pub(super) struct Only {
    /// Standard error, else all but it.
    err: bool,
    /// The stream has a file of its own.
    alone: bool,
    pieces: Vec<Piece>,
    /// Where the newest piece ends in the file, where that is known.
    ended: Option<u64>,
    /// How many marks were looked at.
    seen: u64,
}

impl Only {
    fn stream(&self) -> Stream {
        if self.err { Stream::Err } else { Stream::Out }
    }

    fn is_of(&self, stream: Stream) -> bool {
        (stream == Stream::Err) == self.err
    }

    /// Begins anew: the files or the marks are others.
    fn forget(&mut self) {
        (self.pieces, self.ended, self.seen) = (Vec::new(), None, 0);
    }

    /// Bytes that no mark speaks of are of standard output, unless they stand in the file of standard error.
    fn begin(&mut self) {
        if self.seen == 0 && self.pieces.is_empty() && (self.alone || !self.err) {
            self.pieces.push(Piece { start: 0, offset: 0, marks: (0, u64::MAX) });
        }
    }

    /// Takes the next mark; false when it cannot be used yet.
    fn take(&mut self, mark: Mark, size: u64) -> bool {
        let number = self.seen;
        let of = self.is_of(mark.stream);
        // Of a stream that has a file of its own the offsets of the other say nothing.
        if (!self.alone || of) && mark.offset > size {
            return false;
        }
        let open = self.ended.is_none() && !self.pieces.is_empty();
        let last = self.pieces.last().copied();
        match (of, open, last) {
            (true, false, last) => {
                let start = match (last, self.ended) {
                    (Some(last), Some(ended)) if !self.alone => last.start + ended.saturating_sub(last.offset),
                    _ => {
                        if self.alone {
                            mark.offset
                        } else {
                            0
                        }
                    }
                };
                // A mark that goes back is not believed.
                if last.is_none_or(|last| mark.offset >= self.ended.unwrap_or(last.offset)) {
                    self.pieces.push(Piece { start, offset: mark.offset, marks: (number, u64::MAX) });
                    self.ended = None;
                }
            }
            (false, true, Some(last)) if self.alone || mark.offset >= last.offset => {
                // In a file of its own the piece ends where the next one begins, which is not known yet.
                self.ended = Some(if self.alone { last.offset } else { mark.offset });
                if let Some(last) = self.pieces.last_mut() {
                    last.marks.1 = number;
                }
            }
            _ => {}
        }
        self.seen += 1;
        true
    }

    /// How many bytes the stream has in a file of this size.
    fn len(&self, size: u64) -> u64 {
        match (self.alone, self.pieces.last()) {
            (true, _) => size,
            (false, Some(last)) => last.start + self.ended.unwrap_or(size).saturating_sub(last.offset),
            (false, None) => 0,
        }
    }

    fn place(&self, position: u64, size: u64) -> Option<Place> {
        let number = self.pieces.partition_point(|piece| piece.start <= position).checked_sub(1)?;
        let piece = self.pieces.get(number)?;
        let end = self.pieces.get(number + 1).map_or_else(|| self.len(size), |next| next.start);
        let Piece { start, offset, marks } = *piece;
        Some(Place { stream: self.stream(), start, end, offset, marks })
    }
}

impl StepLog {
    /// Only standard error of a step, or all that is not of it.
    #[must_use]
    pub fn open_only(dir: &RunDir, step: StepId, stream: Stream) -> Self {
        let mut log = Self::closed(dir, step);
        log.only = Some(Only { err: stream == Stream::Err, alone: false, pieces: Vec::new(), ended: None, seen: 0 });
        log.refresh();
        log
    }

    /// The files of a command are settled: of the two only one is looked at.
    pub(super) fn settle_only(&mut self) {
        let (Some(only), true) = (&mut self.only, self.err.is_some()) else { return };
        only.alone = true;
        only.forget();
        let path = if only.err { self.dir.external_err(self.step) } else { self.dir.external_out(self.step) };
        (self.out, self.err) = (Half::new(path), None);
    }

    /// Looks at the marks that came, or at all of them where they are others.
    pub(super) fn extend_only(&mut self, anew: bool) {
        let size = self.out.size;
        let Some(only) = &mut self.only else { return };
        if anew {
            only.forget();
        }
        only.begin();
        while only.pieces.len() < PIECES_MOST {
            let marks = self.marks.as_ref().map(|marks| marks.read(only.seen, 1024)).unwrap_or_default();
            if marks.is_empty() || !marks.into_iter().all(|mark| only.take(mark, size)) {
                break;
            }
        }
    }

    /// How many bytes there are of the one stream that is looked at.
    pub(super) fn only_len(&self) -> Option<u64> {
        self.only.as_ref().map(|only| only.len(self.out.size))
    }

    pub(super) fn only_place(&self, position: u64) -> Option<Option<Place>> {
        self.only.as_ref().map(|only| only.place(position, self.out.size))
    }

    /// The stream of lines that no mark speaks of.
    pub(super) fn unmarked(&self, place: &Place) -> Stream {
        if self.only.is_some() { place.stream } else { Stream::Out }
    }
}
