//! What events have only a line of: all that a call was given, and what was thought before a message. The records have it
//! (run-directory 2.5), and are read for what a report shows.

use crate::rundir::RunDir;
use crate::rundir::record::{self, Kind};
use crate::text::{prefix, redact};

/// Longer texts are cut here, in bytes.
const TEXT_MOST: usize = 4 * 1024;

/// Reads records, as long as there is room for more.
pub(super) struct Records<'a> {
    dir: &'a RunDir,
    /// How many bytes more are taken.
    room: usize,
}

impl<'a> Records<'a> {
    pub(super) const fn of(dir: &'a RunDir, room: usize) -> Self {
        Self { dir, room }
    }

    /// What was thought before the message whose record begins here; redacted.
    pub(super) fn thought(&mut self, place: u64) -> Option<String> {
        self.part(place, b"\"thinking\"", |kind| *kind == Kind::Thought)
    }

    /// All arguments of the call whose record begins here, where that is more than what is said of it in a line; redacted.
    pub(super) fn arguments(&mut self, place: u64, said: &str) -> Option<String> {
        let whole = self.part(place, b"\"tool_execution_start\"", |kind| matches!(kind, Kind::Call(_)))?;
        let only = whole.split_once(": ").map_or(whole.as_str(), |(_, value)| value);
        (whole.lines().nth(1).is_some() || only != said).then_some(whole)
    }

    fn part(&mut self, place: u64, sign: &[u8], is: impl Fn(&Kind) -> bool) -> Option<String> {
        if self.room == 0 {
            return None;
        }
        let line = record::read(self.dir, place).ok()?;
        memchr::memmem::find(&line, sign)?;
        let parts: Vec<String> =
            record::parts(&line).into_iter().filter(|part| is(&part.kind)).map(|part| part.text).collect();
        let whole = parts.join("\n");
        let clean = redact(whole.trim_end());
        let kept = prefix(&clean, TEXT_MOST);
        self.room = self.room.saturating_sub(kept.len());
        let cut = if kept.len() < clean.len() { "\n…" } else { "" };
        (!kept.is_empty()).then(|| format!("{kept}{cut}"))
    }
}
