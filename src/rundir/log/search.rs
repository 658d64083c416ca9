//! Searching a whole log, a piece at a time: how many matches there are in each of its blocks, from which the next match,
//! the one before it and the number of any of them come without another look at the rest. Memory does not grow with
//! the matches: a block is looked through again when one of its matches is needed.
//!
//! What is compared is text as [`crate::text::Bare`] leaves it. Most pieces of most logs are that already, which one quick
//! pass shows.

use std::ops::ControlFlow;

use memchr::memmem::Finder;

use super::StepLog;
use crate::text::Bare;

/// Matches are counted by blocks of this many bytes.
pub const BLOCK: u64 = 1024 * 1024;
/// As many bytes are read and compared at once; they stay in the processor's cache in between.
const PIECE: usize = 64 * 1024;
/// A longer needle is cut here, in bytes.
const NEEDLE_MOST: usize = 4096;

/// A match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The position of its first byte.
    pub at: u64,
    /// Its number, from 1.
    pub nth: u64,
}

/// What is looked for.
#[derive(Clone, Debug)]
struct Needle {
    finder: Finder<'static>,
    /// Letters match whatever their case.
    fold: bool,
    /// A match reaches over so many bytes into the next piece at most.
    overlap: usize,
}

/// How the search stands between two pieces.
#[derive(Clone, Debug, Default)]
struct Walk {
    bare: Bare,
    /// The end of the text so far, shorter than the needle, and where each byte of it is.
    tail: Vec<u8>,
    places: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Block {
    start: u64,
    end: u64,
    /// How the search stood before it.
    before: Walk,
    /// How many matches were found in it; the first of them may have begun before it.
    count: u64,
}

/// A search through the log of one step.
#[derive(Clone, Debug)]
pub struct LogSearch {
    needle: Needle,
    walk: Walk,
    blocks: Vec<Block>,
    total: u64,
}

impl LogSearch {
    /// A search for a text. Letters match whatever their case when it has no capitals; letters beyond ASCII match as they
    /// are. `None` for no text.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fold = !text.chars().any(char::is_uppercase);
        let (mut needle, mut places) = (Vec::new(), Vec::new());
        Bare::default().push(crate::text::prefix(text, NEEDLE_MOST).as_bytes(), 0, &mut needle, &mut places);
        if fold {
            needle.make_ascii_lowercase();
        }
        let overlap = needle.len().checked_sub(1)?;
        let needle = Needle { finder: Finder::new(&needle).into_owned(), fold, overlap };
        Some(Self { needle, walk: Walk::default(), blocks: Vec::new(), total: 0 })
    }

    /// Looks through the next block. Returns whether there is more to look through.
    pub fn advance(&mut self, log: &StepLog) -> bool {
        let len = log.len();
        if len < self.searched() {
            // It was begun anew, so nothing that was found is there any more.
            (self.walk, self.total) = (Walk::default(), 0);
            self.blocks.clear();
        }
        if len == self.searched() {
            return false;
        }
        // One that was not full grows, so that the blocks of a log that grows by lines stay few.
        if let Some(last) = self.blocks.pop_if(|block| block.end - block.start < BLOCK) {
            self.walk = last.before;
            self.total -= last.count;
        }
        let start = self.searched();
        let before = self.walk.clone();
        let mut count = 0;
        let end = self.needle.scan(&mut self.walk, log, start, start.saturating_add(BLOCK).min(len), &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        if end == start {
            // It cannot be read, or was cut under our hands.
            return false;
        }
        self.total += count;
        self.blocks.push(Block { start, end, before, count });
        end < len
    }

    /// Up to where the log was looked through.
    #[must_use]
    pub fn searched(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.end)
    }

    /// How many matches there are up to there. They may overlap.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The first match at or behind a position, as far as the log was looked through.
    #[must_use]
    pub fn from(&self, log: &StepLog, position: u64) -> Option<Match> {
        let first = self.block_of(position);
        self.blocks.iter().enumerate().skip(first).filter(|(_, block)| block.count > 0).find_map(|(number, block)| {
            let mut seen = 0;
            let mut found = None;
            self.matches(log, block, &mut |at| {
                seen += 1;
                if at < position {
                    return ControlFlow::Continue(());
                }
                found = Some(at);
                ControlFlow::Break(())
            });
            found.map(|at| Match { at, nth: self.before(number) + seen })
        })
    }

    /// The last match before a position, as far as the log was looked through.
    #[must_use]
    pub fn before_position(&self, log: &StepLog, position: u64) -> Option<Match> {
        // What begins just before a block is found in it.
        let last = self.block_of(position).saturating_add(2);
        let blocks = self.blocks.iter().enumerate().take(last).rev().filter(|(_, block)| block.count > 0);
        blocks.into_iter().find_map(|(number, block)| {
            let (mut seen, mut found) = (0, None);
            self.matches(log, block, &mut |at| {
                if at >= position {
                    return ControlFlow::Break(());
                }
                seen += 1;
                found = Some(at);
                ControlFlow::Continue(())
            });
            found.map(|at| Match { at, nth: self.before(number) + seen })
        })
    }

    /// The match nearest to a position in a part of the log that may not have been looked through yet: so that nobody
    /// waits for a long log when there is one in sight. `span` bytes are looked at.
    #[must_use]
    pub fn nearby(&self, log: &StepLog, position: u64, back: bool, span: u64) -> Option<u64> {
        let (start, end) = if back {
            // In front of the first byte that is looked at a sequence may have begun; a line is where none goes on.
            (log.line_start(position.saturating_sub(span))?, position.saturating_add(self.needle.overlap as u64))
        } else {
            (log.line_start(position)?, position.saturating_add(span))
        };
        let mut found = None;
        self.needle.scan(&mut Walk::default(), log, start, end.min(log.len()), &mut |at| match (back, at < position) {
            (true, true) => {
                found = Some(at);
                ControlFlow::Continue(())
            }
            (false, false) => {
                found = Some(at);
                ControlFlow::Break(())
            }
            (true, false) => ControlFlow::Break(()),
            (false, true) => ControlFlow::Continue(()),
        });
        found
    }

    fn block_of(&self, position: u64) -> usize {
        self.blocks.partition_point(|block| block.end <= position)
    }

    fn before(&self, number: usize) -> u64 {
        self.blocks.iter().take(number).map(|block| block.count).sum()
    }

    fn matches(&self, log: &StepLog, block: &Block, take: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        self.needle.scan(&mut block.before.clone(), log, block.start, block.end, take);
    }
}

impl Needle {
    /// Gives each match that ends in a range to `take`, until that has enough. Returns where it ended.
    fn scan(
        &self,
        walk: &mut Walk,
        log: &StepLog,
        start: u64,
        end: u64,
        take: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> u64 {
        let mut buffer = vec![0; PIECE];
        let mut at = start;
        while at < end {
            let many = usize::try_from(end - at).unwrap_or(usize::MAX).min(PIECE);
            let Some(window) = buffer.get_mut(..many) else { break };
            let read = log.read_at(at, window);
            let Some(piece) = window.get_mut(..read).filter(|p| !p.is_empty()) else { break };
            if self.piece(walk, piece, at, take).is_break() {
                break;
            }
            at += read as u64;
        }
        at
    }

    fn piece(
        &self,
        walk: &mut Walk,
        piece: &mut [u8],
        at: u64,
        take: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // The order matters: the quick look is also what folds the piece.
        if Bare::is_bare(piece, self.fold) && !walk.bare.is_open() {
            return self.plain(walk, piece, at, take);
        }
        let mut text = std::mem::take(&mut walk.tail);
        let mut places: Vec<(usize, u64)> = std::mem::take(&mut walk.places).into_iter().enumerate().collect();
        walk.bare.push(piece, at, &mut text, &mut places);
        // Where a byte of the text is in the log.
        let place = |index: usize| {
            let known = places.partition_point(|(begin, _)| *begin <= index).checked_sub(1);
            known.and_then(|n| places.get(n)).map_or(at, |(begin, place)| place + (index - begin) as u64)
        };
        let more = self.each(&text, text.len(), |found| take(place(found)));
        let keep = text.len().saturating_sub(self.overlap);
        walk.places = (keep..text.len()).map(place).collect();
        walk.tail = text.split_off(keep);
        more
    }

    /// A piece that is text as it is: it is compared where it lies.
    fn plain(
        &self,
        walk: &mut Walk,
        piece: &[u8],
        at: u64,
        take: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let known = walk.tail.len();
        if known > 0 {
            walk.tail.extend(piece.iter().take(self.overlap));
            let places = &walk.places;
            self.each(&walk.tail, known, |found| take(places.get(found).copied().unwrap_or(at)))?;
            walk.tail.truncate(known);
        }
        self.each(piece, piece.len(), |found| take(at + found as u64))?;
        let from = piece.len().saturating_sub(self.overlap);
        walk.tail.extend(piece.iter().skip(from));
        walk.places.extend((from..piece.len()).map(|index| at + index as u64));
        let surplus = walk.tail.len().saturating_sub(self.overlap);
        walk.tail.drain(..surplus);
        walk.places.drain(..surplus);
        ControlFlow::Continue(())
    }

    /// Each match that begins before `end`; they may overlap.
    fn each(&self, text: &[u8], end: usize, mut take: impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| self.finder.find(rest)).filter(|n| from + n < end) {
            take(from + found)?;
            from += found + 1;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::run::StepId;
    use crate::rundir::RunDir;

    fn log_of(text: &[u8]) -> (tempfile::TempDir, StepLog) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        std::fs::write(dir.output(StepId(0)), text).unwrap();
        let log = StepLog::open(&dir, StepId(0));
        (temp, log)
    }

    fn all(search: &LogSearch, log: &StepLog) -> Vec<u64> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(next) = search.from(log, from) {
            found.push(next.at);
            assert_eq!(next.nth, found.len() as u64);
            from = next.at + 1;
        }
        found
    }

    fn through(log: &StepLog, needle: &str) -> LogSearch {
        let mut search = LogSearch::new(needle).unwrap();
        while search.advance(log) {}
        assert_eq!(search.searched(), log.len());
        search
    }

    #[test]
    fn an_interrupted_needle_is_found_where_it_begins() {
        for raw in [
            "some text nee\x1b[31md\x1b[0mle more",
            "some text nee\rdle more",
            "some text NEEDLE more",
            "10%\r20%\rtext is needle",
            "some text \x1b]0;needle\x07nee\x08dle",
        ] {
            let (_temp, log) = log_of(raw.as_bytes());
            let search = through(&log, "needle");
            let found = all(&search, &log);
            assert_eq!(found.len(), 1, "{raw:?}: {found:?}");
            assert!(raw[usize::try_from(found[0]).unwrap()..].to_lowercase().starts_with("nee"), "{raw:?}");
        }
        let (_temp, log) = log_of(b"nee\ndle Needle");
        assert_eq!(all(&through(&log, "needle"), &log), [8]);
        assert_eq!(all(&through(&log, "neEdle"), &log), [] as [u64; 0]);
        assert!(LogSearch::new("").is_none());
    }

    #[test]
    fn matches_at_the_seams_of_pieces_and_blocks_are_found_once() {
        let mut text = vec![b'.'; usize::try_from(BLOCK).unwrap() * 2 + PIECE];
        let mut want = Vec::new();
        for edge in [PIECE, 3 * PIECE, usize::try_from(BLOCK).unwrap(), usize::try_from(BLOCK).unwrap() + PIECE] {
            text[edge - 3..edge + 3].copy_from_slice(b"needle");
            want.push(edge as u64 - 3);
        }
        text[5 * PIECE + 7..5 * PIECE + 18].copy_from_slice(b"nee\x1b[1mdle!");
        want.push(5 * PIECE as u64 + 7);
        want.sort_unstable();
        let (_temp, log) = log_of(&text);
        let search = through(&log, "needle");
        assert_eq!((search.total(), all(&search, &log)), (5, want.clone()));
        let (mut back, mut position) = (Vec::new(), log.len());
        while let Some(found) = search.before_position(&log, position) {
            assert_eq!(found.nth, 5 - back.len() as u64);
            back.push(found.at);
            position = found.at;
        }
        back.reverse();
        assert_eq!(back, want);
        assert_eq!(search.nearby(&log, log.len(), true, BLOCK * 2), want.last().copied());
        assert_eq!(search.nearby(&log, 0, false, BLOCK), want.first().copied());
        assert_eq!(search.nearby(&log, 0, false, 1000), None);
    }

    #[test]
    fn a_log_that_grows_is_gone_on_with_and_one_that_begins_anew_too() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let path = dir.output(StepId(0));
        std::fs::write(&path, "needle nee").unwrap();
        let mut log = StepLog::open(&dir, StepId(0));
        let mut search = through(&log, "needle");
        assert_eq!(search.total(), 1);
        std::fs::write(&path, "needle needle\n").unwrap();
        log.refresh();
        assert!(!search.advance(&log));
        assert_eq!((search.total(), all(&search, &log)), (2, vec![0, 7]));
        assert_eq!(search.blocks.len(), 1);
        std::fs::write(&path, "x needle").unwrap();
        log.refresh();
        while search.advance(&log) {}
        assert_eq!(all(&search, &log), [2]);
    }

    proptest! {
        #[test]
        fn it_finds_what_is_there(raw in "[abA\x1b\\[m\r\n]{0,80}", needle in "[ab]{1,3}", position in 0u64..80) {
            let (_temp, log) = log_of(raw.as_bytes());
            let search = through(&log, &needle);
            let (mut text, mut places) = (Vec::new(), Vec::new());
            Bare::default().push(raw.as_bytes(), 0, &mut text, &mut places);
            text.make_ascii_lowercase();
            let of = |index: usize| {
                let (begin, place) = places[places.partition_point(|(begin, _)| *begin <= index) - 1];
                place + (index - begin) as u64
            };
            let want: Vec<u64> = (0..text.len()).filter(|i| text[*i..].starts_with(needle.as_bytes())).map(of).collect();
            prop_assert_eq!(search.total(), want.len() as u64);
            prop_assert_eq!(all(&search, &log), want.clone());
            let before = search.before_position(&log, position).map(|m| m.at);
            prop_assert_eq!(before, want.iter().copied().rfind(|at| *at < position));
        }
    }
}
