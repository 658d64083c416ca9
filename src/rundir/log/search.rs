//! Searching a whole log, a piece at a time: how many matches there are in each of its blocks, from which the next match,
//! the one before it and the number of any of them come without another look at the rest. Memory does not grow with
//! the matches: a block is looked through again when one of its matches is needed.
//!
//! What is compared is what a reader sees, as [`crate::text::Bare`] leaves it: of a line that was written over its last
//! state, and what its last carriage return interrupts. Most pieces of most logs are that already, which one quick pass
//! shows. A line is compared when its end is there; one that is very long is compared in parts, and only what comes within
//! the next part can write over it.

use std::ops::ControlFlow;

use memchr::memmem::Finder;

use super::StepLog;
use crate::text::Bare;

/// Matches are counted by blocks of about this many bytes.
pub const BLOCK: u64 = 1024 * 1024;
/// As many bytes are read and compared at once; they stay in the processor's cache in between.
const PIECE: usize = 64 * 1024;
/// A line without an end is compared in parts of this many bytes.
const PART: usize = 2 * PIECE;
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
    /// All of it but a byte.
    overlap: usize,
}

#[derive(Clone, Debug)]
struct Block {
    start: u64,
    end: u64,
    /// How many matches begin in it.
    count: u64,
    /// It ends with the log, in the middle of a line: what comes next may write over what was found.
    open: bool,
}

/// A search through the log of one step.
#[derive(Clone, Debug)]
pub struct LogSearch {
    needle: Needle,
    blocks: Vec<Block>,
    total: u64,
}

impl LogSearch {
    /// A search for a text. Letters match whatever their case when it has no capitals; letters beyond ASCII match as they
    /// are. `None` for no text.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fold = !text.chars().any(char::is_uppercase);
        let mut bare = Bare::new(0, 0, fold);
        bare.push(crate::text::prefix(text, NEEDLE_MOST).as_bytes(), 0);
        let needle = bare.text();
        let overlap = needle.len().checked_sub(1)?;
        let needle = Needle { finder: Finder::new(needle).into_owned(), fold, overlap };
        Some(Self { needle, blocks: Vec::new(), total: 0 })
    }

    /// Looks through the next block. Returns whether there is more to look through.
    pub fn advance(&mut self, log: &StepLog) -> bool {
        let len = log.len();
        if len < self.searched() {
            // It was begun anew, so nothing that was found is there any more.
            self.total = 0;
            self.blocks.clear();
        }
        if len == self.searched() {
            return false;
        }
        // One that was not full grows, so that the blocks of a log that grows by lines stay few.
        if let Some(last) = self.blocks.pop_if(|block| block.open || block.end - block.start < BLOCK) {
            self.total -= last.count;
        }
        let start = self.searched();
        let mut count = 0;
        let range = Range { start, stop: start.saturating_add(BLOCK), end: len };
        let (end, open) = self.needle.scan(log, range, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        if end == start {
            // It cannot be read, or was cut under our hands.
            return false;
        }
        self.total += count;
        self.blocks.push(Block { start, end, count, open });
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
        let last = self.block_of(position).saturating_add(1);
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
    /// waits for a long log when there is one in sight. About `span` bytes are looked at.
    #[must_use]
    pub fn nearby(&self, log: &StepLog, position: u64, back: bool, span: u64) -> Option<u64> {
        // In front of the first byte that is looked at a sequence may have begun; a line is where none goes on.
        let (start, stop) = if back {
            (log.line_start(position.saturating_sub(span))?, position)
        } else {
            (log.line_start(position)?, position.saturating_add(span))
        };
        let mut found = None;
        self.needle.scan(log, Range { start, stop, end: log.len() }, &mut |at| match (back, at < position) {
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
        let end = if block.open { block.end } else { log.len() };
        self.needle.scan(log, Range { start: block.start, stop: block.end, end }, &mut |at| {
            // A log that went on may be looked at in other pieces than it was at its end.
            if at < block.end { take(at) } else { ControlFlow::Break(()) }
        });
    }
}

/// What is looked through.
#[derive(Clone, Copy)]
struct Range {
    /// From here on, the beginning of a line or of a part of a long one.
    start: u64,
    /// Until this is reached; a line that has begun there is gone through to its end.
    stop: u64,
    /// Nothing behind this is looked at.
    end: u64,
}

/// What one look at some bytes of a log comes to.
enum Look {
    /// Everything before a position was compared.
    Upto(u64),
    /// More bytes are needed.
    More,
    /// Whoever takes the matches has enough.
    Enough,
}

impl Needle {
    /// Gives each match to `take`, in order, until that has enough. Returns where it ended, and whether that is in the
    /// middle of a line.
    fn scan(&self, log: &StepLog, range: Range, take: &mut dyn FnMut(u64) -> ControlFlow<()>) -> (u64, bool) {
        let mut buffer = vec![0; PART];
        let (mut at, mut known, mut open) = (range.start, 0, false);
        while at < range.stop.min(range.end) {
            let rest = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let wanted = rest.min(if known == 0 { PIECE } else { PART });
            let Some(more) = buffer.get_mut(known..wanted) else { break };
            let read = log.read_at(at + known as u64, more);
            let last = known + read == rest || read == 0;
            known += read;
            let Some(bytes) = buffer.get_mut(..known).filter(|bytes| !bytes.is_empty()) else { break };
            match self.look(log, bytes, at, last, take) {
                Look::Upto(end) => {
                    open = last && bytes.last() != Some(&b'\n');
                    (at, known) = (end, 0);
                }
                Look::More => {}
                Look::Enough => break,
            }
        }
        (at, open)
    }

    /// Compares what can be compared of some bytes: all whole lines, and the rest when nothing comes behind it (`last`) or
    /// it is too long to wait for.
    fn look(
        &self,
        log: &StepLog,
        bytes: &mut [u8],
        at: u64,
        last: bool,
        take: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Look {
        let whole = last || bytes.len() >= PART;
        // The order matters: the quick look is also what folds the bytes.
        if Bare::is_bare(bytes, self.fold) && log.seam(at, bytes).is_none() {
            let (settled, next) = match memchr::memrchr(b'\n', bytes) {
                _ if last => (bytes.len(), bytes.len()),
                Some(feed) => (feed + 1, feed + 1),
                // What begins in the last bytes is found with what follows them.
                None if whole => (bytes.len(), bytes.len() - self.overlap),
                None => return Look::More,
            };
            let more = self.each(bytes.get(..settled).unwrap_or_default(), |found| take(at + found as u64));
            return if more.is_break() { Look::Enough } else { Look::Upto(at + next as u64) };
        }
        // Some sequences begin with a capital.
        if self.fold && log.read_at(at, bytes) < bytes.len() {
            return Look::Enough;
        }
        let mut bare = Bare::new(at, self.overlap, self.fold);
        let mut from = at;
        let mut rest = &*bytes;
        while let Some(seam) = log.seam(from, rest) {
            let (run, other) = rest.split_at_checked(seam).unwrap_or((rest, &[]));
            bare.push(run, from);
            from += run.len() as u64;
            bare.end_line(from);
            rest = other;
        }
        bare.push(rest, from);
        let end = at + bytes.len() as u64;
        let (text, next) = match bare.begun() {
            _ if last => (bare.text(), end),
            begun if begun > at => (bare.settled(), begun),
            _ if whole => {
                let next = bare.place(bare.text().len().saturating_sub(self.overlap));
                (bare.text(), if next > at { next } else { end })
            }
            _ => return Look::More,
        };
        let more = self.each(text, |found| take(bare.place(found)));
        if more.is_break() { Look::Enough } else { Look::Upto(next) }
    }

    /// Each match; they may overlap.
    fn each(&self, text: &[u8], mut take: impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| self.finder.find(rest)) {
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
    use crate::text::StyledLine;

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
            "some text \x1b]0;needle\x07nee\x1bPneedle\x1b\\dle",
            "a needle\r",
            "a needle\r\n",
            "a needle\r\x1b[2K\n",
            "n\x08neee\x08dle",
        ] {
            let (_temp, log) = log_of(raw.as_bytes());
            let search = through(&log, "needle");
            let found = all(&search, &log);
            assert_eq!(found.len(), 1, "{raw:?}: {found:?}");
            assert!(raw[usize::try_from(found[0]).unwrap()..].to_lowercase().starts_with('n'), "{raw:?}");
        }
        let (_temp, log) = log_of(b"nee\ndle Needle");
        assert_eq!(all(&through(&log, "needle"), &log), [8]);
        assert_eq!(all(&through(&log, "neEdle"), &log), [] as [u64; 0]);
        assert!(LogSearch::new("").is_none());
    }

    #[test]
    fn what_was_written_over_is_not_found() {
        for raw in ["needle\r20%", "a needle\r\x1b[K\rb\n", "needlf\x08\rx", "need\x08le", "nee\rd\rle"] {
            let (_temp, log) = log_of(raw.as_bytes());
            assert_eq!(through(&log, "needle").total(), 0, "{raw:?}");
        }
        // One line for hours, longer than any piece and block.
        let mut raw = b"begin\n".to_vec();
        for n in 0..60_000 {
            raw.extend_from_slice(format!("\r{n} of 59999 needles").as_bytes());
        }
        assert!(raw.len() as u64 > BLOCK);
        let (_temp, log) = log_of(&raw);
        for (needle, count) in [("needles", 1), ("59999 of", 1), ("59998 of", 0), ("1", 0), ("begin", 1)] {
            let search = through(&log, needle);
            assert_eq!(
                (search.total(), all(&search, &log).len()),
                (count, usize::try_from(count).unwrap()),
                "{needle}"
            );
        }
        // It goes on.
        raw.extend_from_slice(b"\rdone");
        let path = RunDir::at(_temp.path()).output(StepId(0));
        let mut log = log;
        let mut search = through(&log, "needles");
        std::fs::write(path, &raw).unwrap();
        log.refresh();
        while search.advance(&log) {}
        assert_eq!((search.total(), search.searched()), (0, raw.len() as u64));
    }

    #[test]
    fn a_stream_writes_over_nothing_of_the_other_one() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        std::fs::write(dir.external_out(StepId(0)), "a needle").unwrap();
        std::fs::write(dir.external_err(StepId(0)), "\rwarning: needle\rover\n").unwrap();
        let log = StepLog::open(&dir, StepId(0));
        assert_eq!(all(&through(&log, "needle"), &log), [2]);
        assert_eq!(all(&through(&log, "over"), &log), [25]);
        assert_eq!(through(&log, "needlewarning").total(), 0);
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
        assert_eq!(search.nearby(&log, log.len() - 9, false, BLOCK), None);
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

    /// The text that is looked through of a line: what is left when it was written, and what the last return interrupts.
    fn seen(line: &str, overlap: usize) -> String {
        let states = line.split('\r').filter(|state| !state.is_empty());
        let shown = states.map(|state| StyledLine::parse(state.as_bytes()).text().to_string()).collect::<Vec<_>>();
        let last = shown.last().cloned().unwrap_or_default();
        assert_eq!(last, StyledLine::parse(line.as_bytes()).text().as_str());
        let before = shown.iter().rev().nth(1).cloned().unwrap_or_default();
        before[before.len().saturating_sub(overlap)..].to_owned() + &last
    }

    proptest! {
        #[test]
        fn it_finds_what_is_seen(raw in "[abA\r\n\x08]{0,80}", needle in "[ab]{1,3}", position in 0u64..80) {
            let (_temp, log) = log_of(raw.as_bytes());
            let search = through(&log, &needle);
            let lines = raw.split('\n').map(|line| seen(line, needle.len() - 1).to_ascii_lowercase());
            let want: usize = lines.map(|l| (0..l.len()).filter(|i| l[*i..].starts_with(&needle)).count()).sum();
            prop_assert_eq!(search.total(), want as u64, "{:?}", raw);
            let found = all(&search, &log);
            prop_assert_eq!(found.len(), want);
            let before = search.before_position(&log, position).map(|m| m.at);
            prop_assert_eq!(before, found.iter().copied().rfind(|at| *at < position));
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn where_pieces_end_does_not_matter(
            raw in "[ab\x1b\\[m\r\n\x08]{0,60}",
            needle in "[ab]{1,3}",
            ahead in PIECE - 60..PIECE,
        ) {
            // Lines in front, so that a piece ends among them.
            let text = format!("{}\n{raw}", "\n".repeat(ahead - 1));
            let (_temp, log) = log_of(text.as_bytes());
            let (_other, alone) = log_of(raw.as_bytes());
            let moved: Vec<u64> = all(&through(&alone, &needle), &alone).iter().map(|at| at + ahead as u64).collect();
            prop_assert_eq!(all(&through(&log, &needle), &log), moved);
        }
    }
}
