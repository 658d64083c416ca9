//! What git says of a step's folder: which files changed since the last commit, and how. Parsing only; who asks git is
//! the loop.

use std::ops::Range;

use crate::run::{StepId, Timestamp};
use crate::text::SafeText;

/// What changed in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Whose folder.
    pub step: Option<StepId>,
    /// The folder.
    pub folder: SafeText,
    /// When git was asked.
    pub at: Option<Timestamp>,
    /// Why nothing is known, if so.
    pub problem: Option<SafeText>,
    /// The files.
    pub files: Vec<Changed>,
    /// The differences, line by line.
    pub lines: Vec<SafeText>,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// What became of it, in git's letters.
    pub state: SafeText,
    /// Where it is.
    pub path: SafeText,
    /// Lines that were added; `None` when git does not count them.
    pub added: Option<u64>,
    /// Lines that were removed.
    pub removed: Option<u64>,
    /// Where its differences are among the lines of [`Diff`]; empty when git shows none.
    pub lines: Range<usize>,
}

/// What a line that is read from its beginning stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Opens {
    /// Nothing more than it says.
    #[default]
    Nothing,
    /// What happened to a budget, by its number.
    Event(u64),
    /// A file.
    File(SafeText),
}

/// Whether two names may mean the same file: git names files from the top of the repository, tools as they like.
#[must_use]
pub fn same_file(one: &str, other: &str) -> bool {
    let (one, other) = (plain(one), plain(other));
    let ends = |long: &str, short: &str| {
        !short.is_empty() && long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(one, other) || ends(other, one)
}

fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

impl Diff {
    /// Lines that are kept of the differences.
    pub const MOST: usize = 5000;

    /// Reads what `git status --porcelain=v1 -z`, `git diff --numstat -z HEAD` and `git diff HEAD` print.
    #[must_use]
    pub fn parse(step: StepId, folder: &str, status: &[u8], numbers: &[u8], text: &[u8]) -> Self {
        let counts = counts(numbers);
        let mut lines: Vec<SafeText> =
            text.split(|b| *b == b'\n').take(Self::MOST + 1).map(SafeText::from_bytes).collect();
        if lines.last().is_some_and(SafeText::is_empty) {
            lines.pop();
        }
        if lines.len() > Self::MOST {
            lines.truncate(Self::MOST);
            lines.push(SafeText::line("… more is not shown"));
        }
        // Git tells of the files in the same order both times; of those behind the end of what is read nothing is there.
        let heads = lines.iter().enumerate().filter(|(_, line)| line.as_str().starts_with("diff --"));
        let starts: Vec<usize> = heads.map(|(n, _)| n).collect();
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        let blocks: Vec<Range<usize>> = starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect();
        let mut files = Vec::new();
        let mut records = status.split(|b| *b == 0);
        while let Some(record) = records.next() {
            let (Some(letters), Some(path)) = (record.get(..2), record.get(3..)) else { continue };
            // A file that was moved is followed by where it was.
            if letters.contains(&b'R') || letters.contains(&b'C') {
                records.next();
            }
            let (added, removed) = counts.iter().find(|(p, _)| *p == path).map_or((None, None), |(_, n)| *n);
            let state = SafeText::line(String::from_utf8_lossy(letters).trim());
            let place = counts.iter().position(|(p, _)| *p == path);
            let lines = place.and_then(|place| blocks.get(place).cloned()).unwrap_or_default();
            files.push(Changed { state, path: SafeText::from_bytes(path), added, removed, lines });
        }
        Self { step: Some(step), folder: SafeText::line(folder), files, lines, ..Self::default() }
    }

    /// The lines about a file; none where it is not clear which one is meant.
    #[must_use]
    pub fn of(&self, name: &SafeText) -> &[SafeText] {
        let exact = self.files.iter().find(|file| file.path == *name);
        let mut like = self.files.iter().filter(|file| same_file(name.as_str(), file.path.as_str()));
        let only = like.next().filter(|_| like.next().is_none());
        exact.or(only).and_then(|file| self.lines.get(file.lines.clone())).unwrap_or_default()
    }

    /// The file that a line is about.
    #[must_use]
    pub fn file_at(&self, line: usize) -> Option<&Changed> {
        self.files.iter().find(|file| file.lines.contains(&line))
    }

    /// Nothing is known, and why.
    #[must_use]
    pub fn failed(step: StepId, folder: &str, why: &str) -> Self {
        Self { step: Some(step), folder: SafeText::line(folder), problem: Some(SafeText::line(why)), ..Self::default() }
    }
}

type Counts = (Option<u64>, Option<u64>);

/// `added TAB removed TAB path`; of a file that was moved the path is empty, and both paths follow.
fn counts(numbers: &[u8]) -> Vec<(&[u8], Counts)> {
    let mut out = Vec::new();
    let mut records = numbers.split(|b| *b == 0);
    while let Some(record) = records.next() {
        let mut fields = record.splitn(3, |b| *b == b'\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let path = if path.is_empty() { records.nth(1).unwrap_or_default() } else { path };
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        out.push((path, (number(added), number(removed))));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_prints_becomes_files_and_lines() {
        let status = b" M src/pool.rs\0?? new\x1b[2J.txt\0R  to.rs\0from.rs\0";
        let numbers = b"12\t4\tsrc/pool.rs\0-\t-\tpicture.png\x001\t0\t\0from.rs\0to.rs\0";
        let diff = Diff::parse(StepId(2), "/w", status, numbers, b"diff --git a b\n-old\n+new\x1b]0;x\x07\n");
        let told: Vec<String> =
            diff.files.iter().map(|f| format!("{} {} {:?} {:?}", f.state, f.path, f.added, f.removed)).collect();
        assert_eq!(told, ["M src/pool.rs Some(12) Some(4)", "?? new\u{fffd}.txt None None", "R to.rs Some(1) Some(0)"]);
        assert_eq!(diff.lines.len(), 3);
        assert!(!diff.lines[2].as_str().contains('\x1b'));
    }

    #[test]
    fn the_lines_of_a_file_are_found_by_whatever_a_tool_calls_it() {
        let numbers = b"1\t1\tsrc/pool.rs\x001\t0\tsrc/other/pool.rs\0";
        let text =
            b"diff --git a/src/pool.rs b/src/pool.rs\n-old\n+new\ndiff --git a/src/other/pool.rs b/x\n+diff --git\n";
        let diff = Diff::parse(StepId(0), "/w", b" M src/pool.rs\0 M src/other/pool.rs\0?? new.txt\0", numbers, text);
        let of = |name: &str| diff.of(&SafeText::line(name)).len();
        assert_eq!((of("src/pool.rs"), of("./src/other/pool.rs"), of("/home/me/w/src/other/pool.rs")), (3, 2, 2));
        assert_eq!((of("other/pool.rs"), of("new.txt"), of("ool.rs"), of("")), (2, 0, 0, 0));
        // It may be the one or the other.
        assert_eq!(of("pool.rs"), 0);
        let at = |line: usize| diff.file_at(line).map(|file| file.path.to_string());
        assert_eq!(
            (at(2).unwrap().as_str(), at(3).unwrap().as_str(), at(5)),
            ("src/pool.rs", "src/other/pool.rs", None)
        );
    }

    #[test]
    fn odd_bytes_and_long_differences_are_no_trouble() {
        assert_eq!(Diff::parse(StepId(0), "", b"x\0\0", b"1\t2\0\0", b"").files, []);
        let long = "+x\n".repeat(Diff::MOST * 2);
        let diff = Diff::parse(StepId(0), "", b"", b"", long.as_bytes());
        assert_eq!(diff.lines.len(), Diff::MOST + 1);
        assert_eq!(diff.lines[Diff::MOST].as_str(), "… more is not shown");
    }
}
