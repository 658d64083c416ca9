//! Lines that say the same are shown once, with how often they came.

use super::feed::LogLine;

/// So many lines that say the same are folded; two are read faster than a note.
pub const FROM: usize = 3;

/// One line, or several that say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The first of them.
    pub line: LogLine,
    /// How often it came after that; 0 for a line of its own.
    pub more: usize,
    /// Where the next line begins.
    pub end: u64,
}

/// Folds neighbours of one stream and one attempt with the same bytes. Blank lines and lines of ours stay as they are:
/// they are the shape of the text. A line that holds the position `seen` stands before those that say the same after it.
#[must_use]
pub fn fold(lines: Vec<LogLine>, seen: Option<u64>) -> Vec<Folded> {
    let mut folded: Vec<Folded> = Vec::new();
    for line in lines {
        let apart = seen.is_some_and(|at| (line.start..line.end).contains(&at));
        let same = folded.last_mut().filter(|f| !apart && says_the_same(&f.line, &line));
        match same {
            Some(group) => {
                group.more += 1;
                group.end = line.end;
            }
            None => folded.push(Folded { end: line.end, line, more: 0 }),
        }
    }
    folded
}

fn says_the_same(a: &LogLine, b: &LogLine) -> bool {
    let blank = |line: &LogLine| line.bytes.iter().all(u8::is_ascii_whitespace);
    a.stream == b.stream
        && a.attempt == b.attempt
        && a.stream != crate::run::Stream::Own
        && a.bytes == b.bytes
        && !blank(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::feed::fake::FakeFeed;
    use crate::run::{StepId, Stream};

    #[test]
    fn only_neighbours_that_say_the_same_are_folded() {
        let mut feed = FakeFeed::default();
        for (stream, text) in [
            (Stream::Out, "a\na\na\nb\na"),
            (Stream::Err, "a\na"),
            (Stream::Out, "\n\n\n"),
            (Stream::Own, "attempt 2\nattempt 2\nattempt 2"),
        ] {
            feed.print(0, stream, text);
        }
        let lines = feed.logs.remove(&StepId(0)).unwrap();
        let count = lines.len();
        let folded = fold(lines, None);
        let shape: Vec<(&str, usize)> =
            folded.iter().map(|f| (std::str::from_utf8(&f.line.bytes).unwrap(), f.more)).collect();
        let own = ("attempt 2", 0);
        assert_eq!(shape, [("a", 2), ("b", 0), ("a", 0), ("a", 1), ("", 0), ("", 0), ("", 0), own, own, own]);
        assert_eq!(folded.iter().map(|f| 1 + f.more).sum::<usize>(), count);
        assert_eq!((folded[0].end, folded[1].line.start), (6, 6));
    }
}
