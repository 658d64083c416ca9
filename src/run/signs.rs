//! Signs of trouble that the reducer gathers for the rules of [`super::attention`].

use std::collections::VecDeque;

use super::{StepId, Timestamp};

/// Changes that failed, since the last one that worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(VecDeque<Failure>);

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
        self.0.push_back(failure);
        while self.0.len() > Self::KEPT {
            self.0.pop_front();
        }
    }

    /// A change worked.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// When the oldest one was.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        self.0.front().map(|f| f.at)
    }

    /// The larger of: how many failed in a row; how many failed on one path of those that are `recent`, and the path.
    #[must_use]
    pub fn worst(&self, recent: impl Fn(Timestamp) -> bool) -> Option<(u64, Option<&str>)> {
        let row = u64::try_from(self.0.len()).ok().filter(|n| *n > 0)?;
        let newest = self.0.back()?;
        let same = newest.path.as_deref().map(|path| {
            let count = self.0.iter().filter(|f| f.path.as_deref() == Some(path) && recent(f.at)).count() as u64;
            (count, Some(path))
        });
        // The path says more, where both are true.
        match same {
            Some((count, path)) if count >= row => Some((count, path)),
            _ => Some((row, None)),
        }
    }

    /// The newest of them in words.
    #[must_use]
    pub fn summary(&self) -> String {
        let skip = self.0.len().saturating_sub(Self::NAMED);
        let one = |f: &Failure| {
            let said = f.said.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
            format!("{}: {}", f.tool, crate::text::prefix(said, Self::QUOTED))
        };
        self.0.iter().skip(skip).map(one).collect::<Vec<_>>().join("; ")
    }
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
        let mut failures = Failures::default();
        assert_eq!(failures.worst(|_| true), None);
        failures.push(failed(1, Some("/a")));
        assert_eq!(failures.worst(|_| true), Some((1, Some("/a"))));
        failures.push(failed(2, None));
        failures.push(failed(3, Some("/a")));
        assert_eq!(failures.worst(|_| true), Some((3, None)));
        assert_eq!(failures.summary(), "edit: no match; edit: no match; edit: no match");
        failures.clear();
        assert_eq!(failures.worst(|_| true), None);
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
