//! Signs of trouble that the reducer gathers for the rules of [`super::attention`].

use std::collections::{BTreeMap, VecDeque};

use super::{StepId, Timestamp};

/// Changes that failed (runner-behaviour 4.3): those since the last one that worked, which count in a row, and before them
/// those on paths where none has worked since, which count together while they are recent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    kept: VecDeque<Failure>,
    /// How many of the newest came without one that worked between them.
    row: usize,
}

/// The most failures that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst<'f> {
    /// How many.
    pub count: u64,
    /// The path where all of them failed; `None` when they only followed each other.
    pub path: Option<&'f str>,
    /// When the oldest of them was.
    pub since: Timestamp,
    /// They, oldest first.
    failures: Vec<&'f Failure>,
}

/// One change that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// The path that it was to change.
    pub path: Option<String>,
    /// The first part of what it said.
    pub said: String,
}

impl Failures {
    /// How many are kept.
    const KEPT: usize = 32;
    /// How many a summary names.
    const NAMED: usize = 3;
    /// How much of what a tool said a summary quotes, in bytes.
    const QUOTED: usize = 120;

    /// Takes another one in.
    pub fn push(&mut self, failure: Failure) {
        self.kept.push_back(failure);
        self.row += 1;
        while self.kept.len() > Self::KEPT {
            self.kept.pop_front();
        }
        self.row = self.row.min(self.kept.len());
    }

    /// A change worked: the row ends, and what failed at its path is mended. What failed at other paths is not.
    pub fn worked(&mut self, path: Option<&str>) {
        self.row = 0;
        self.kept.retain(|f| f.path.is_some() && f.path.as_deref() != path);
    }

    /// Another attempt begins: nothing has failed yet.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The newest of all that are kept in words.
    #[must_use]
    pub fn summary(&self) -> String {
        in_words(self.kept.iter().skip(self.kept.len().saturating_sub(Self::NAMED)))
    }

    /// The larger of: those that failed in a row; those that failed on one path and are `recent`.
    #[must_use]
    pub fn worst(&self, recent: impl Fn(Timestamp) -> bool) -> Option<Worst<'_>> {
        let row: Vec<&Failure> = self.kept.iter().skip(self.kept.len() - self.row).collect();
        let mut paths: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
        for failure in self.kept.iter().filter(|f| recent(f.at)) {
            if let Some(path) = &failure.path {
                paths.entry(path).or_default().push(failure);
            }
        }
        let most = paths.into_iter().max_by_key(|(_, failures)| failures.len());
        // The path says more, where both are true.
        match most {
            Some((path, failures)) if failures.len() >= row.len() => Worst::of(Some(path), failures),
            _ => Worst::of(None, row),
        }
    }
}

impl<'f> Worst<'f> {
    fn of(path: Option<&'f str>, failures: Vec<&'f Failure>) -> Option<Self> {
        let since = failures.first()?.at;
        Some(Self { count: u64::try_from(failures.len()).ok()?, path, since, failures })
    }

    /// The newest of them in words.
    #[must_use]
    pub fn summary(&self) -> String {
        let skip = self.failures.len().saturating_sub(Failures::NAMED);
        in_words(self.failures.iter().skip(skip).copied())
    }
}

fn in_words<'f>(failures: impl Iterator<Item = &'f Failure>) -> String {
    let one = |f: &Failure| {
        let said = f.said.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
        format!("{}: {}", f.tool, crate::text::prefix(said, Failures::QUOTED))
    };
    failures.map(one).collect::<Vec<_>>().join("; ")
}

/// The same call again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Which call.
    pub fingerprint: u64,
    /// The tool.
    pub tool: String,
    /// A preview of its arguments.
    pub args: String,
    /// How many times in a row.
    pub count: u64,
    /// When the first of them started.
    pub since: Timestamp,
}

/// Another step changes the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: String,
    /// Which step.
    pub other: StepId,
    /// When it was seen first.
    pub at: Timestamp,
}

/// Where the same file has the same name: absolute, without `.` and empty parts, `..` resolved by name.
#[must_use]
pub fn same_name(cwd: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(at: i64, path: Option<&str>) -> Failure {
        Failure {
            at: Timestamp::from_millis(at),
            tool: "edit".into(),
            path: path.map(str::to_owned),
            said: "\n no match \n".into(),
        }
    }

    #[test]
    fn failures_count_in_a_row_and_on_one_path() {
        let worst = |failures: &Failures, since: i64| {
            let worst = failures.worst(|at| at.millis() >= since);
            worst.map(|w| (w.count, w.path.map(str::to_owned), w.since.millis(), w.summary()))
        };
        let said = |n: usize| vec!["edit: no match"; n].join("; ");
        let on = |path: &str| Some(path.to_owned());
        let mut failures = Failures::default();
        assert_eq!(worst(&failures, 0), None);
        failures.push(failed(1, Some("/a")));
        assert_eq!(worst(&failures, 0), Some((1, on("/a"), 1, said(1))));
        failures.push(failed(2, None));
        failures.push(failed(3, Some("/a")));
        assert_eq!(worst(&failures, 0), Some((3, None, 1, said(3))));

        // What works elsewhere ends the row only; what is old does not count on a path.
        failures.worked(Some("/b"));
        assert_eq!(worst(&failures, 0), Some((2, on("/a"), 1, said(2))));
        assert_eq!(worst(&failures, 2), Some((1, on("/a"), 3, said(1))));
        assert_eq!(worst(&failures, 4), None);
        failures.push(failed(5, Some("/c")));
        failures.worked(None);
        assert_eq!(worst(&failures, 0), Some((2, on("/a"), 1, said(2))));
        // What works there ends them.
        failures.worked(Some("/a"));
        assert_eq!(worst(&failures, 0), Some((1, on("/c"), 5, said(1))));
        failures.clear();
        assert_eq!(worst(&failures, 0), None);

        // In a row they count at any age.
        for at in 0..100 {
            failures.push(failed(at, Some("/a")));
        }
        assert_eq!(worst(&failures, 1000), Some((32, None, 68, said(3))));
    }

    #[test]
    fn a_path_has_one_name() {
        for (cwd, path, want) in
            [("/w", "a/./b", "/w/a/b"), ("/w", "/w//a/../b", "/w/b"), ("/w", "../../..", "/"), ("", "x", "/x")]
        {
            assert_eq!(same_name(cwd, path), want);
        }
    }
}
