//! The new lines of a step's output, for everything that prints them: each line once, an unfinished one when its end has
//! come, and of a line without end only its beginning where somebody reads it.

use std::io;

use crate::run::{RunState, StepId};
use crate::rundir::{LogLine, RunDir, StepLog};

/// Lines looked up at a time.
const BATCH: usize = 1000;

/// Something to print.
pub enum Piece<'a> {
    /// A line, or a piece of a long one.
    Line(&'a LogLine),
    /// So many bytes of the line before were left out.
    LeftOut(u64),
    /// The log begins anew, as a foreign runner's does with each attempt (run-directory 2.6): what follows is its beginning.
    Anew,
}

/// Reads the output of one step.
pub struct Output {
    log: StepLog,
    position: u64,
    /// The beginning of a long line was given; where the part begins that is left out.
    leaving_out: Option<u64>,
    /// Long lines are given in pieces instead of cut.
    whole: bool,
}

impl Output {
    /// The output of a step from its first byte on. With `whole` nothing is left out.
    #[must_use]
    pub fn open(dir: &RunDir, step: StepId, whole: bool) -> Self {
        let mut log = StepLog::open(dir, step);
        // Of every step of a run one is kept.
        log.rest();
        Self { log, position: 0, leaving_out: None, whole }
    }

    /// Goes to where the last `most` lines begin.
    pub fn seek_last(&mut self, most: usize) {
        let mut left = most;
        self.log.refresh();
        self.position = self.log.len();
        while left > 0 {
            let lines = self.log.lines_before(self.position, left.min(BATCH));
            let Some(first) = lines.first() else { break };
            left = left.saturating_sub(lines.len());
            self.position = first.start;
        }
        self.log.rest();
    }

    /// Whether there is nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Gives what is new to `take`; with `last` an unfinished line too.
    ///
    /// # Errors
    /// What `take` says; what it had taken before is not given again.
    pub fn read(&mut self, last: bool, mut take: impl FnMut(Piece<'_>) -> io::Result<()>) -> io::Result<()> {
        let anew = self.log.refresh().shrunk && self.position > 0;
        let mut read = Ok(());
        if anew {
            (self.position, self.leaving_out) = (0, None);
            read = take(Piece::Anew);
        }
        let read = read.and_then(|()| self.read_on(last, take));
        self.log.rest();
        read
    }

    fn read_on(&mut self, last: bool, mut take: impl FnMut(Piece<'_>) -> io::Result<()>) -> io::Result<()> {
        loop {
            if let Some(from) = self.leaving_out {
                let end = self.log.line_end(self.position);
                self.position = end.unwrap_or(self.log.len());
                if end.is_none() && !last {
                    return Ok(());
                }
                self.leaving_out = None;
                if self.position > from {
                    take(Piece::LeftOut(self.position - from))?;
                }
            }
            let before = self.position;
            for line in &self.log.lines_since(self.position, BATCH) {
                if !last && !line.complete && line.end >= self.log.len() {
                    return Ok(());
                }
                self.position = line.end;
                take(Piece::Line(line))?;
                if !self.whole && line.is_piece() {
                    self.leaving_out = Some(line.end);
                    break;
                }
            }
            if self.position == before {
                return Ok(());
            }
        }
    }
}

/// What a reader is told instead of the rest of a line.
#[must_use]
pub fn left_out(bytes: u64) -> String {
    format!("… {} more of this line; `subdeck logs --raw` has all of it", crate::text::bytes(bytes))
}

/// What a reader is told before the beginning of a log that began anew.
pub const ANEW: &str = "… the log begins anew";

/// What a step said last, of one whose log could not be written: it stands in for a log in which there is nothing.
#[must_use]
pub fn unlogged(state: &RunState, step: StepId) -> Option<&str> {
    let step = state.step(step).filter(|step| step.log_error.is_some())?;
    step.last_message.as_deref().filter(|message| !message.trim().is_empty())
}

/// The text of a line for people, or of a piece of a long one: clean, without colours, all of it.
#[must_use]
pub fn text_of(line: &LogLine) -> String {
    crate::text::StyledLine::whole(&line.bytes).text().as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn all(output: &mut Output, last: bool) -> Vec<String> {
        let mut given = Vec::new();
        output
            .read(last, |piece| {
                given.push(match piece {
                    Piece::Line(line) if line.bytes.len() > 100 => format!("long {}", line.bytes.len()),
                    Piece::Line(line) => text_of(line),
                    Piece::LeftOut(bytes) => format!("left out {bytes}"),
                    Piece::Anew => "anew".to_owned(),
                });
                Ok(())
            })
            .unwrap();
        given
    }

    #[test]
    fn a_line_without_end_is_told_by_its_beginning_and_its_length() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let path = dir.external_out(StepId(0));
        fs::write(&path, "one\n").unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut more = |bytes: &[u8]| file.write_all(bytes).unwrap();
        let mut output = Output::open(&dir, StepId(0), false);
        assert_eq!(all(&mut output, false), ["one"]);
        more(&vec![b'x'; 1 << 20]);
        let first = all(&mut output, false);
        assert_eq!(first.len(), 1, "{first:?}");
        let shown: usize = first[0].strip_prefix("long ").unwrap().parse().unwrap();
        more(&vec![b'x'; 1 << 20]);
        assert_eq!(all(&mut output, false), Vec::<String>::new(), "its end has not come");
        more(b"x\ntwo\nthr");
        assert_eq!(all(&mut output, false), [format!("left out {}", (2 << 20) + 2 - shown), "two".to_owned()]);
        assert_eq!(all(&mut output, true), ["thr"]);
        // The same read at once, and in pieces.
        let mut output = Output::open(&dir, StepId(0), false);
        assert_eq!(all(&mut output, true).len(), 5);
        output.seek_last(2);
        assert_eq!(all(&mut output, true), ["two", "thr"]);
        let mut whole = Output::open(&dir, StepId(0), true);
        let mut bytes = 0;
        whole
            .read(true, |piece| {
                if let Piece::Line(line) = piece {
                    bytes += line.bytes.len() + usize::from(line.complete);
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(bytes as u64, fs::metadata(&path).unwrap().len());
    }

    /// A foreign runner truncates the log of a step with each attempt, or puts another file there.
    #[test]
    fn a_log_that_begins_anew_is_read_from_its_beginning() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        let path = dir.output(StepId(0));
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut output = Output::open(&dir, StepId(0), false);
        assert_eq!(all(&mut output, false), ["one", "two", "three"]);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(all(&mut output, false), ["anew", "new"]);
        assert_eq!(all(&mut output, false), Vec::<String>::new());
        fs::write(temp.path().join("other"), "a longer one that is another\n").unwrap();
        fs::rename(temp.path().join("other"), &path).unwrap();
        assert_eq!(all(&mut output, false), ["anew", "a longer one that is another"]);
    }

    #[test]
    fn the_other_stream_in_between_is_no_end_of_a_line() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::at(temp.path());
        fs::write(dir.external_out(StepId(0)), vec![b'x'; 300_000]).unwrap();
        fs::write(dir.external_err(StepId(0)), "err\n").unwrap();
        let mut output = Output::open(&dir, StepId(0), false);
        let given = all(&mut output, true);
        assert!(given[0].starts_with("long ") && given[1].starts_with("left out "), "{given:?}");
        assert_eq!(given[2..], ["err"]);
    }

    #[test]
    fn a_line_is_printed_whole() {
        let line = |n: usize| LogLine {
            start: 0,
            end: 0,
            bytes: vec![b'x'; n],
            stream: crate::run::Stream::Out,
            at: None,
            attempt: 1,
            cut: false,
            complete: true,
        };
        for long in [4096, 4097, 100_000] {
            assert_eq!(text_of(&line(long)), "x".repeat(long));
        }
    }
}
