//! The feed over a run directory.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::app::Source;
use super::app::wall;
use super::feed::{Answer, Changes, Feed, Find, Hands, KeptDraft, LogLine, Request, StepFacts};
use crate::run::{ControlSource, RunMode, RunState, RunnerKind, SteerMode, StepId, Stream};
use crate::rundir::{self, Answered, Follower, Health, Inbox, RunDir, StepLog, drafts, plan_doc};
use crate::text::SafeText;

/// How many logs have their files open; a run may have more steps than a process may have files.
const LOGS_OPEN: usize = 24;

/// Follows a run directory and writes its control files.
pub struct LiveFeed {
    dir: RunDir,
    follower: Follower,
    logs: BTreeMap<StepId, StepLog>,
    /// The steps whose logs are open, the one that was looked at last at the end.
    open: Vec<StepId>,
    plan: Option<Vec<plan_doc::StepDoc>>,
}

impl LiveFeed {
    /// Opens a run.
    ///
    /// # Errors
    /// Why it cannot be read, ready to be shown.
    pub fn open(path: &Path) -> Result<Self, String> {
        let follower = Follower::open(path).map_err(|error| error.to_string())?;
        Ok(Self { dir: RunDir::at(path), follower, logs: BTreeMap::new(), open: Vec::new(), plan: None })
    }

    /// What stands in for the log of a step that has none: a workflow's parent keeps none of the children that it runs
    /// itself. Says so, and shows the last lines that the status has.
    fn stand_in(&self, step: StepId) -> Option<Vec<LogLine>> {
        let state = self.follower.state();
        let found = state.step(step).filter(|_| state.mode == RunMode::Workflow)?;
        if self.dir.output(step).exists() {
            return None;
        }
        let why = match (&found.own_run, &found.session_file) {
            (Some(run), _) => format!("it is a run of its own, {}; its output is there", run.as_str()),
            (None, Some(session)) => format!("its parent keeps no log of it; it prints into {session}"),
            (None, None) => "its parent keeps no log of it".to_owned(),
        };
        let lines = [(Stream::Own, why)].into_iter();
        let lines = lines.chain(found.recent_output.iter().map(|line| (Stream::Out, line.clone())));
        let mut end = 0;
        let line = |(stream, text): (Stream, String)| {
            let start = end;
            end += text.len() as u64 + 1;
            LogLine { start, end, stream, at: None, attempt: 0, bytes: text.into_bytes(), cut: false }
        };
        Some(lines.map(line).collect())
    }

    fn log(&mut self, step: StepId) -> &mut StepLog {
        let dir = &self.dir;
        if self.open.last() != Some(&step) {
            self.open.retain(|other| *other != step);
            self.open.push(step);
            if self.open.len() > LOGS_OPEN
                && let Some(log) = self.logs.get_mut(&self.open.remove(0))
            {
                log.rest();
            }
        }
        let log = self.logs.entry(step).or_insert_with(|| StepLog::open(dir, step));
        if log.is_resting() {
            log.refresh();
        }
        log
    }
}

impl Feed for LiveFeed {
    fn poll(&mut self) -> Changes {
        let rundir::Changes { state, output, news, places, health, .. } = self.follower.poll();
        Changes { state: state || health, output, news, places }
    }

    fn state(&self) -> &RunState {
        self.follower.state()
    }

    fn hands(&self) -> Hands {
        match self.follower.health() {
            Health::Lost(evidence) => Hands::Lost(SafeText::line(evidence)),
            Health::Gone(what) => Hands::Gone(SafeText::line(what)),
            Health::Over => Hands::Over,
            Health::Starting | Health::Live => Hands::Live,
            Health::Suspended(what) => Hands::Suspended(SafeText::line(what)),
            Health::Unreadable(why) => Hands::Unknown(SafeText::line(&format!("its status is unreadable: {why}"))),
            Health::Unknown(why) => Hands::Unknown(SafeText::line(why)),
        }
    }

    fn troubles(&self) -> Vec<SafeText> {
        self.follower.notices().iter().map(|text| SafeText::line(text)).collect()
    }

    fn log_len(&mut self, step: StepId) -> u64 {
        if let Some(lines) = self.stand_in(step) {
            return lines.last().map_or(0, |line| line.end);
        }
        let log = self.log(step);
        log.refresh();
        log.len()
    }

    fn lines_before(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        if let Some(mut lines) = self.stand_in(step) {
            lines.retain(|line| line.end <= position);
            return lines.split_off(lines.len().saturating_sub(n));
        }
        self.log(step).lines_before(position, n).into_iter().map(line).collect()
    }

    fn lines_from(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        if let Some(mut lines) = self.stand_in(step) {
            lines.retain(|line| line.start >= position);
            lines.truncate(n);
            return lines;
        }
        self.log(step).lines_from(position, n).into_iter().map(line).collect()
    }

    fn find(&mut self, step: StepId, needle: &str, from: u64, back: bool, budget: usize) -> Find {
        let log = self.log(step);
        find(&|position, buffer| log.read_at(position, buffer), log.len(), needle, from, back, budget)
    }

    fn count(&mut self, step: StepId, needle: &str, range: Range<u64>, at: u64) -> (u64, u64) {
        let log = self.log(step);
        count(&|position, buffer| log.read_at(position, buffer), log.len(), needle, range, at)
    }

    fn log_path(&self, step: StepId) -> Option<PathBuf> {
        let path = match self.state().step(step)?.runner {
            RunnerKind::ExternalCli { .. } => self.dir.external_out(step),
            _ => self.dir.output(step),
        };
        path.is_file().then_some(path)
    }

    fn facts(&mut self, step: StepId) -> StepFacts {
        let docs = self.plan.get_or_insert_with(|| plan_doc::read(&self.dir));
        let doc = plan_doc::step(docs, step);
        StepFacts { task: SafeText::block(&doc.task), limits: doc.limits }
    }

    fn record(&self, place: u64) -> Result<Vec<u8>, String> {
        rundir::record::read(&self.dir, place).map_err(|error| error.to_string())
    }

    fn send(&mut self, request: &Request, key: &str) -> Result<Option<String>, String> {
        // Another directory may stand in its place, whose runner was not meant.
        if let Some(what) = self.follower.missing() {
            return Err(format!("the run's directory {what}"));
        }
        let inbox = Inbox::open(&self.dir, here(key)).map_err(|e| e.to_string())?;
        let state = self.follower.state();
        let now = wall();
        let sent = match request {
            Request::Steer { targets, mode, message } => {
                return inbox
                    .steer(state, targets, message, *mode, now)
                    .map(|ids| ids.into_iter().next_back())
                    .map_err(|e| e.to_string());
            }
            Request::Interrupt => inbox.interrupt(state, now),
            Request::Stop => inbox.stop(state, now),
            Request::StopStep(step) => inbox.stop_step(state, *step, now),
            Request::Acknowledge(notice) => inbox.acknowledge(state, notice, now).map(drop),
            Request::Answer(question, answer) => {
                return inbox.answer(state, question, answer, now).map(Some).map_err(|e| e.to_string());
            }
            Request::Raise(step, raise) => {
                return inbox.budget(state, *step, *raise, now).map(Some).map_err(|e| e.to_string());
            }
            Request::TakeBack(id) => return inbox.retract(state, id, now).map_err(|e| e.to_string()),
        };
        sent.map(|()| None).map_err(|e| e.to_string())
    }

    fn answer(&self, request: &str) -> Option<Answer> {
        let answer = rundir::answer_to(&self.dir, request).or_else(|| rundir::answer_of_child(&self.dir, request));
        Some(match answer? {
            Answered::Done => Answer::Done,
            Answered::Refused(why) => Answer::Refused(SafeText::line(&why)),
        })
    }

    fn drafts(&self) -> Vec<KeptDraft> {
        drafts::read(&self.dir).into_iter().map(|(step, mode, text)| KeptDraft { step, mode, text }).collect()
    }

    fn keep_draft(&mut self, step: StepId, draft: Option<(&str, SteerMode)>) -> Result<(), String> {
        let kept = match draft {
            Some((text, mode)) => drafts::keep(&self.dir, step, mode, text, wall()),
            None => drafts::forget(&self.dir, step),
        };
        kept.map_err(|error| error.to_string())
    }

    fn folder(&self, step: StepId) -> Option<PathBuf> {
        let state = self.state();
        let own = state.step(step).map(|s| s.cwd.as_str()).unwrap_or_default();
        // An absolute folder of the step replaces that of the run.
        let folder = Path::new(&state.cwd).join(own);
        (folder.is_absolute() && folder.is_dir()).then_some(folder)
    }
}

impl Source for LiveFeed {
    async fn wait(&mut self) {
        self.follower.wait().await;
    }
}

/// Searches the bytes behind `read`, a slice at a time, with an overlap so that nothing at a seam is missed.
fn find(read: &dyn Fn(u64, &mut [u8]) -> usize, len: u64, needle: &str, from: u64, back: bool, budget: usize) -> Find {
    let fold = !needle.chars().any(char::is_uppercase);
    let needle = needle.as_bytes();
    let overlap = needle.len().saturating_sub(1);
    let from = from.min(len);
    let span = u64::try_from(budget.max(needle.len() * 2)).unwrap_or(u64::MAX);
    let (start, end) =
        if back { (from.saturating_sub(span), from) } else { (from, from.saturating_add(span).min(len)) };
    // Backwards a match may begin before `from` and end behind it; forwards it may end behind the slice.
    let stop = end.saturating_add(overlap as u64).min(len);
    let mut bytes = vec![0; usize::try_from(stop - start).unwrap_or(0)];
    let have = read(start, &mut bytes);
    bytes.truncate(have);
    if fold {
        bytes.make_ascii_lowercase();
    }
    let found = if back {
        memchr::memmem::rfind(&bytes, needle).filter(|at| start + (*at as u64) < from)
    } else {
        memchr::memmem::find(&bytes, needle)
    };
    match found {
        Some(at) => Find::At(start + at as u64),
        None if back && start > 0 => Find::More(start),
        None if !back && end < len && have > 0 => Find::More(end),
        None => Find::Nowhere,
    }
}

/// Counts the matches that begin in a range: those at or before `at`, and all. They may overlap, as those that are found
/// one after the other may.
fn count(read: &dyn Fn(u64, &mut [u8]) -> usize, len: u64, needle: &str, range: Range<u64>, at: u64) -> (u64, u64) {
    let fold = !needle.chars().any(char::is_uppercase);
    let start = range.start;
    // The last match may end behind the range.
    let stop = range.end.saturating_add(needle.len().saturating_sub(1) as u64).min(len);
    let mut bytes = vec![0; usize::try_from(stop.saturating_sub(start)).unwrap_or(0)];
    let have = read(start, &mut bytes);
    bytes.truncate(have);
    if fold {
        bytes.make_ascii_lowercase();
    }
    let finder = memchr::memmem::Finder::new(needle);
    let (mut up_to_it, mut all, mut from) = (0, 0, 0);
    while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
        all += 1;
        up_to_it += u64::from(start + (from + found) as u64 <= at);
        from += found + 1;
    }
    (up_to_it, all)
}

fn line(line: rundir::LogLine) -> LogLine {
    let rundir::LogLine { start, end, stream, at, attempt, bytes, cut, .. } = line;
    LogLine { start, end, stream, at, attempt, bytes, cut }
}

/// Who asks: this deck and the key that was pressed (product 7).
fn here(key: &str) -> ControlSource {
    let stdin = std::io::stdin();
    let tty = stdin.is_terminal().then(|| rustix::termios::ttyname(&stdin, Vec::new()).ok()).flatten();
    ControlSource {
        via: "deck".to_owned(),
        user: Some(rundir::user::own_name()),
        pid: Some(std::process::id()),
        tty: tty.and_then(|name| name.into_string().ok()),
        key: Some(key.to_owned()),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search(text: &[u8], needle: &str, from: u64, back: bool, budget: usize) -> Option<u64> {
        let read = |at: u64, buffer: &mut [u8]| {
            let rest = &text[usize::try_from(at).unwrap()..];
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            n
        };
        let mut from = from;
        loop {
            match find(&read, text.len() as u64, needle, from, back, budget) {
                Find::At(at) => return Some(at),
                Find::Nowhere => return None,
                Find::More(next) => {
                    assert!(if back { next < from } else { next > from });
                    from = next;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_match_is_counted_once_however_the_log_is_cut(
            text in "[abA]{0,60}", needle in "[ab]{1,3}", at in 0u64..60, slice in 1u64..20,
        ) {
            let read = |at: u64, buffer: &mut [u8]| {
                let rest = &text.as_bytes()[usize::try_from(at).unwrap()..];
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                n
            };
            let len = text.len() as u64;
            let (mut from, mut counted) = (0, (0, 0));
            while from < len {
                let end = (from + slice).min(len);
                let (up_to_it, all) = count(&read, len, &needle, from..end, at);
                counted = (counted.0 + up_to_it, counted.1 + all);
                from = end;
            }
            let folded = text.to_ascii_lowercase();
            let places: Vec<u64> = (0..text.len()).filter(|i| folded[*i..].starts_with(&needle)).map(|i| i as u64).collect();
            prop_assert_eq!(counted, (places.iter().filter(|p| **p <= at).count() as u64, places.len() as u64));
        }

        #[test]
        fn slices_do_not_matter(text in "[abA\n]{0,80}", needle in "[ab]{1,3}", from in 0usize..81, budget in 1usize..20) {
            let from = from.min(text.len());
            let folded = text.to_ascii_lowercase();
            let forward = folded[from..].find(&needle).map(|at| (from + at) as u64);
            prop_assert_eq!(search(text.as_bytes(), &needle, from as u64, false, budget), forward);
            let back = (0..from).rev().find(|at| folded[*at..].starts_with(&needle)).map(|at| at as u64);
            prop_assert_eq!(search(text.as_bytes(), &needle, from as u64, true, budget), back);
        }
    }
}
