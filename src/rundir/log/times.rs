//! How much of a log there was at a moment, from its marks (run-directory 3.9).

use super::StepLog;
use crate::run::{Stream, Timestamp};

impl StepLog {
    /// How many bytes there were at this moment, as exactly as the marks tell it: what came within a quarter of a second after
    /// the last mark counts as there. `None` where no marks tell it, as of runs of others, and where one stream is looked at.
    #[must_use]
    pub fn len_at(&self, at: Timestamp) -> Option<u64> {
        let marks = self.marks.as_ref().filter(|marks| marks.count() > 0);
        let Some(marks) = marks else { return self.is_empty().then_some(0) };
        if self.only.is_some() {
            return None;
        }
        let mut next = self.mark_after(at)?;
        if self.err.is_none() {
            return Some(marks.get(next).map_or(self.len(), |mark| mark.offset.min(self.len())));
        }
        // Each stream reaches to where its own next piece begins; what lies before that is in order.
        let (mut out, mut err) = (None, None);
        while (out.is_none() || err.is_none())
            && let Some(mark) = marks.get(next)
        {
            match mark.stream {
                Stream::Err => err = err.or(Some(mark.offset)),
                Stream::Out => out = out.or(Some(mark.offset)),
                Stream::Own => {}
            }
            next += 1;
        }
        let reached = |known: Option<u64>, stream| known.unwrap_or(u64::MAX).min(self.size_of(stream));
        Some(reached(out, Stream::Out) + reached(err, Stream::Err))
    }

    /// When the next bytes came after this moment, as far as marks tell it.
    #[must_use]
    pub fn printed_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.marks.as_ref()?.get(self.mark_after(at)?).map(|mark| mark.at)
    }

    /// The number of the first mark after a moment.
    fn mark_after(&self, at: Timestamp) -> Option<u64> {
        let marks = self.marks.as_ref()?;
        let (mut low, mut high) = (0, marks.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if marks.get(middle)?.at <= at { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::RunDir;
    use super::*;
    use crate::run::StepId;
    use crate::rundir::MarkWriter;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_log_is_as_long_as_its_marks_say_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let step = StepId(0);
        std::fs::write(dir.output(step), "one\ntwo\nthree\n").unwrap();
        let log = StepLog::open(&dir, step);
        assert_eq!((log.len_at(at(5_000)), log.printed_after(at(0))), (None, None), "without marks nobody knows");
        let mut marks = MarkWriter::open(&dir.marks(step)).unwrap();
        for (offset, ms) in [(0, 1_000), (4, 3_000), (8, 9_000)] {
            marks.note(offset, at(ms), Stream::Out, 1).unwrap();
        }
        let log = StepLog::open(&dir, step);
        let lengths = [999, 1_000, 2_999, 3_000, 8_999, 9_000, i64::MAX / 1_000].map(|ms| log.len_at(at(ms)));
        assert_eq!(lengths, [0, 4, 4, 8, 8, 14, 14].map(Some));
        assert_eq!(log.printed_after(at(1_000)), Some(at(3_000)));
        assert_eq!(log.printed_after(at(9_000)), None);
        assert_eq!(StepLog::open(&dir, StepId(1)).len_at(at(0)), Some(0), "what does not exist is empty");
    }

    #[test]
    fn the_streams_of_a_command_reach_as_far_as_each_had_come() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let step = StepId(0);
        let path = dir.external_out(step);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "out 1\nout 2\n").unwrap();
        std::fs::write(dir.external_err(step), "err 1\nerr 2\n").unwrap();
        let mut marks = MarkWriter::open(&dir.marks(step)).unwrap();
        for (offset, ms, stream) in
            [(0, 1_000, Stream::Out), (0, 2_000, Stream::Err), (6, 3_000, Stream::Out), (6, 4_000, Stream::Err)]
        {
            marks.note(offset, at(ms), stream, 1).unwrap();
        }
        let log = StepLog::open(&dir, step);
        let then = |ms| {
            let len = log.len_at(at(ms)).unwrap();
            let lines = log.lines_before(len, 9);
            assert_eq!(lines.last().map_or(0, |l| l.end), len);
            lines.iter().map(|l| String::from_utf8_lossy(&l.bytes).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(then(0), Vec::<String>::new());
        assert_eq!(then(1_500), ["out 1"]);
        assert_eq!(then(2_500), ["out 1", "err 1"]);
        assert_eq!(then(3_500), ["out 1", "err 1", "out 2"]);
        assert_eq!(then(4_500), ["out 1", "err 1", "out 2", "err 2"]);
    }
}
