//! What a follower tells of the run that it follows.

use super::{Follower, HALF_WRITTEN, LogFate};
use crate::run::{Event, RunState};
use crate::rundir::health::Health;
use crate::rundir::past::Past;
use crate::rundir::{RunDir, records, tail};

impl Follower {
    /// The run as it is known.
    #[must_use]
    pub fn state(&self) -> &RunState {
        &self.view
    }

    /// Whether somebody runs it.
    #[must_use]
    pub const fn health(&self) -> &Health {
        &self.health
    }

    /// The directory.
    #[must_use]
    pub const fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Whether nothing more will come: it has ended, is lost or unreadable, or its directory is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.behind && matches!(self.health, Health::Over | Health::Lost(_) | Health::Unreadable(_) | Health::Gone(_))
    }

    /// How it is known that the runner died without ending the run, if it did.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        match &self.health {
            Health::Lost(evidence) => Some(evidence.clone()),
            _ => self.view.lost.clone(),
        }
    }

    /// What there is to know of a runner that lives and answers nothing, if it is so.
    #[must_use]
    pub fn suspended(&self) -> Option<&str> {
        if let Health::Suspended(what) = &self.health { Some(what) } else { None }
    }

    /// What became of the directory if it is not there any more, in words that follow "the run's directory"; looks.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        self.presence.missing()
    }

    /// Whether its runner is gone without an end in its status: it is lost, or ended only by its result.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.lost().is_some() || matches!(self.result, Some(Some(_)))
    }

    /// Why the newest status cannot be read, if it cannot; what is known is from before it or from the events.
    #[must_use]
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_ref().map(|(why, _)| why.as_str())
    }

    #[cfg(test)]
    pub(in crate::rundir) fn is_shown_by_its_status_alone(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| std::sync::Arc::ptr_eq(snapshot, &self.view))
    }

    /// How much of the event log was read, in bytes of all, while there is more; the picture is that of the status until
    /// then.
    #[must_use]
    pub fn reading(&self) -> Option<(u64, u64)> {
        self.behind.then(|| self.past.as_ref().map_or_else(|| self.events.progress(), Past::progress))
    }

    /// What happened last, oldest first, before everything older was read: at most what stands in the last `most` bytes
    /// of the event log.
    #[must_use]
    pub fn newest(&self, most: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for line in tail::newest(&self.dir.events(), most).split(|byte| *byte == b'\n') {
            records::decode(line, &mut events);
        }
        events
    }

    /// What stands between the files and the picture: a status that cannot be read, lines that cannot be, watching
    /// that does not work. One sentence each.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        match self.log {
            LogFate::Grew => {}
            LogFate::Cut => notices.push("its event log was cut: what it has now is listed".to_owned()),
            LogFate::Gone if self.missing().is_some() => {}
            LogFate::Gone => notices.push("its event log is gone: only what was kept of it is listed".to_owned()),
        }
        // Whoever writes a file in several pieces is read in between, which is no trouble.
        match (&self.unreadable, &self.snapshot) {
            (Some((why, since)), Some(_)) if since.elapsed() >= HALF_WRITTEN => {
                notices.push(format!("the last good picture is shown, the newest status.json cannot be read: {why}"));
            }
            (Some((why, since)), None) if self.is_over() || since.elapsed() >= HALF_WRITTEN => {
                notices.push(format!("status.json cannot be read: {why}; this is what the events tell"));
            }
            (None, None) if self.reduced.started_at.is_some() => {
                notices.push("there is no status.json; this is what the events tell".to_owned());
            }
            _ => {}
        }
        match self.events.bad_lines() {
            0 => {}
            1 => notices.push("a line of events.jsonl cannot be read".to_owned()),
            n => notices.push(format!("{n} lines of events.jsonl cannot be read")),
        }
        notices.extend(self.events.failed().map(|why| format!("events.jsonl cannot be read to its end: {why}")));
        // Of a run that is over nothing is waited for.
        notices.extend(self.watch.limit().filter(|_| !self.is_over()).map(str::to_owned));
        notices
    }
}
