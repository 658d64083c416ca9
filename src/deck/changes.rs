//! What git says of a step's folder: which files changed since the last commit, and how. Parsing only; who asks git is
//! the loop.

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
}

impl Diff {
    /// Lines that are kept of the differences.
    pub const MOST: usize = 5000;

    /// Reads what `git status --porcelain=v1 -z`, `git diff --numstat -z HEAD` and `git diff HEAD` print.
    #[must_use]
    pub fn parse(step: StepId, folder: &str, status: &[u8], numbers: &[u8], text: &[u8]) -> Self {
        let counts = counts(numbers);
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
            files.push(Changed { state, path: SafeText::from_bytes(path), added, removed });
        }
        let mut lines: Vec<SafeText> =
            text.split(|b| *b == b'\n').take(Self::MOST + 1).map(SafeText::from_bytes).collect();
        if lines.last().is_some_and(SafeText::is_empty) {
            lines.pop();
        }
        if lines.len() > Self::MOST {
            lines.truncate(Self::MOST);
            lines.push(SafeText::line("… more is not shown"));
        }
        Self { step: Some(step), folder: SafeText::line(folder), files, lines, ..Self::default() }
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
    fn odd_bytes_and_long_differences_are_no_trouble() {
        assert_eq!(Diff::parse(StepId(0), "", b"x\0\0", b"1\t2\0\0", b"").files, []);
        let long = "+x\n".repeat(Diff::MOST * 2);
        let diff = Diff::parse(StepId(0), "", b"", b"", long.as_bytes());
        assert_eq!(diff.lines.len(), Diff::MOST + 1);
        assert_eq!(diff.lines[Diff::MOST].as_str(), "… more is not shown");
    }
}
