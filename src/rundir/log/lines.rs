//! Numbers of lines: how many line feeds there are in each block of a log, counted a piece at a time. A gigabyte of log
//! takes eight kilobytes.

use super::StepLog;

/// Line feeds are counted by blocks of this many bytes.
const BLOCK: u64 = 1024 * 1024;
/// As many bytes are read at once.
const PIECE: usize = 64 * 1024;

/// The index of the lines of one log.
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    /// How many line feeds there are before the end of each full block.
    blocks: Vec<u64>,
    /// Those in the last block, which is not full, and its length.
    rest: u64,
    rest_len: u64,
}

impl LineIndex {
    /// Looks through the next block. Returns whether there is more to look through.
    pub fn advance(&mut self, log: &StepLog) -> bool {
        let len = log.len();
        if len < self.indexed() {
            // It was begun anew.
            *self = Self::default();
        }
        let from = self.indexed();
        let to = (from - self.rest_len + BLOCK).min(len);
        let (found, read) = feeds(log, from, to);
        self.rest += found;
        self.rest_len += read;
        if self.rest_len == BLOCK {
            self.blocks.push(self.before() + self.rest);
            (self.rest, self.rest_len) = (0, 0);
        }
        read > 0 && self.indexed() < len
    }

    /// Up to where the log was looked through, in bytes.
    #[must_use]
    pub fn indexed(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK + self.rest_len
    }

    /// How many line feeds there are up to there.
    #[must_use]
    pub fn feeds(&self) -> u64 {
        self.before() + self.rest
    }

    /// The number of the line that holds a position, from 1; `None` behind what was looked through.
    #[must_use]
    pub fn number(&self, log: &StepLog, position: u64) -> Option<u64> {
        if position > self.indexed() {
            return None;
        }
        let block = usize::try_from(position / BLOCK).ok()?;
        let before = block.checked_sub(1).and_then(|n| self.blocks.get(n)).copied().unwrap_or(0);
        Some(before + feeds(log, block as u64 * BLOCK, position).0 + 1)
    }

    fn before(&self) -> u64 {
        self.blocks.last().copied().unwrap_or(0)
    }
}

/// How many line feeds there are in a range of a log, and how many of its bytes could be read.
pub(super) fn feeds(log: &StepLog, from: u64, to: u64) -> (u64, u64) {
    let mut buffer = vec![0; PIECE];
    let (mut at, mut count) = (from, 0);
    while at < to {
        let many = usize::try_from(to - at).unwrap_or(usize::MAX).min(PIECE);
        let Some(window) = buffer.get_mut(..many) else { break };
        let read = log.read_at(at, window);
        if read == 0 {
            break;
        }
        count += memchr::memchr_iter(b'\n', window.get(..read).unwrap_or_default()).count() as u64;
        at += read as u64;
    }
    (count, at - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StepId;
    use crate::rundir::RunDir;

    #[test]
    fn lines_have_their_numbers_however_the_log_grew() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let path = dir.output(StepId(0));
        std::fs::write(&path, "one\ntwo\nth").unwrap();
        let mut log = StepLog::open(&dir, StepId(0));
        let mut index = LineIndex::default();
        assert!(!index.advance(&log));
        assert_eq!((index.feeds(), index.number(&log, 0), index.number(&log, 9)), (2, Some(1), Some(3)));
        let mut text = b"one\ntwo\nth".to_vec();
        text.extend(b"ree\n".iter().cycle().take(3 * 1024 * 1024));
        std::fs::write(&path, &text).unwrap();
        log.refresh();
        let mut pieces = 1;
        while index.advance(&log) {
            assert_eq!(index.number(&log, log.len()), None);
            pieces += 1;
        }
        assert_eq!((pieces, index.indexed()), (4, log.len()));
        assert_eq!(index.feeds(), text.iter().filter(|b| **b == b'\n').count() as u64);
        for position in [0, 4, 1024 * 1024 - 1, 1024 * 1024, 2 * 1024 * 1024 + 7, text.len() - 1] {
            let want = 1 + text[..position].iter().filter(|b| **b == b'\n').count() as u64;
            assert_eq!(index.number(&log, position as u64), Some(want), "{position}");
        }
        std::fs::write(&path, "a\n").unwrap();
        log.refresh();
        assert!(!index.advance(&log));
        assert_eq!(index.feeds(), 1);
    }
}
