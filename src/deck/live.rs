//! The feed over a run directory.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::app::Source;
use super::app::wall;
use super::feed::{Answer, Changes, Feed, Hands, InnerRun, LogLine, News, Request, Searched, StepFacts, Unsent};
use super::logs::Logs;
use crate::listing::Class;
use crate::run::replay::Tape;
use crate::run::{ControlSource, Event, RunMode, RunState, SteerMode, StepId, Stream, Timestamp};
use crate::rundir::drafts::{Drafts, Kept};
use crate::rundir::{
    self, Answered, Follower, Health, Inbox, LineIndex, LogSearch, Match, Recording, RunDir, StepLog, plan_doc,
};
use crate::text::SafeText;

/// Follows a run directory and writes its control files.
pub struct LiveFeed {
    dir: RunDir,
    /// Why nothing may be written, if so.
    read_only: Option<String>,
    follower: Follower,
    logs: Logs,
    plan: Option<Vec<plan_doc::StepDoc>>,
    /// What was looked for last.
    search: Option<Search>,
    /// The numbers of lines of the logs that were scrolled.
    lines: BTreeMap<StepId, LineIndex>,
    /// There is no room for what a run that lives has to say.
    full: bool,
    drafts: Drafts,
}

/// A text that is looked for in the log of a step.
struct Search {
    step: StepId,
    needle: String,
    search: LogSearch,
}

/// So many bytes at the end of a long event log tell what happened last while everything before it is read.
const NEWEST: u64 = 256 * 1024;

impl LiveFeed {
    /// Opens a run; with a reason not to, nothing is ever written into its directory. Drafts that have no place there are
    /// kept in `state`, the folder of the user's state.
    ///
    /// # Errors
    /// Why it cannot be read, ready to be shown.
    pub fn open(path: &Path, read_only: Option<String>, state: Option<&Path>) -> Result<Self, String> {
        let follower = Follower::open(path).map_err(|error| error.to_string())?.newest_only();
        let dir = RunDir::at(path);
        // No two decks have the same id at the same moment.
        let deck = format!("{:x}-{:x}", std::process::id(), wall().micros());
        let (logs, drafts) = (Logs::new(dir.clone()), Drafts::of(&dir, state, &deck));
        let (plan, search, lines) = (None, None, BTreeMap::new());
        Ok(Self { logs, dir, read_only, follower, plan, search, lines, full: false, drafts })
    }

    /// What stands in for the log of a step that has none: a workflow's parent keeps none of the children that it runs
    /// itself. Says so, and shows the last lines that the status has.
    fn stand_in(&self, step: StepId) -> Option<Vec<LogLine>> {
        let state = self.follower.state();
        let found = state.step(step).filter(|_| state.mode == RunMode::Workflow)?;
        if self.dir.output(step).exists() {
            return None;
        }
        let lines = [(Stream::Own, rundir::logged_elsewhere(found))].into_iter();
        let lines = lines.chain(found.recent_output.iter().map(|line| (Stream::Out, line.clone())));
        let mut end = 0;
        let line = |(stream, text): (Stream, String)| {
            let start = end;
            end += text.len() as u64 + 1;
            LogLine { start, end, stream, at: None, attempt: 0, bytes: text.into_bytes(), cut: false }
        };
        Some(lines.map(line).collect())
    }
}

/// The search for a text in the log of a step; another one than before is begun anew.
fn begun<'a>(search: &'a mut Option<Search>, step: StepId, needle: &str) -> Option<&'a mut LogSearch> {
    if search.as_ref().is_none_or(|known| known.step != step || known.needle != needle) {
        *search = LogSearch::new(needle).map(|search| Search { step, needle: needle.to_owned(), search });
    }
    search.as_mut().map(|known| &mut known.search)
}

impl Feed for LiveFeed {
    fn poll(&mut self) -> Changes {
        let rundir::Changes { state, output, news, places, cut, health, anew, gone, .. } = self.follower.poll();
        // A runner that finds no room cannot say so, and its picture would stand still without a reason.
        let full = *self.follower.health() == Health::Live && rundir::is_full(self.dir.path());
        let filled = std::mem::replace(&mut self.full, full) != full;
        let inside = self.follower.look_inside();
        Changes { state: state || health || filled || inside, output, news, places, cut, anew, gone }
    }

    fn state(&self) -> &RunState {
        self.follower.state()
    }

    fn inside(&self) -> Vec<InnerRun> {
        let runs = self.follower.inside().map(|inner| InnerRun {
            path: inner.run.dir().path().to_owned(),
            step: inner.step,
            title: inner.run.title(),
            living: inner.run.is_living(),
            needs: Class::of(&inner.run) == Class::Needs,
            started: inner.run.listed.started(),
        });
        runs.collect()
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
        let full = self.full.then_some("the disk of this run is full: what it has to say waits until there is room");
        let notices = self.follower.notices();
        full.into_iter().chain(notices.iter().map(String::as_str)).map(SafeText::line).collect()
    }

    fn log_len(&mut self, step: StepId) -> u64 {
        if let Some(lines) = self.stand_in(step) {
            return lines.last().map_or(0, |line| line.end);
        }
        let log = self.logs.get(step);
        log.refresh();
        log.len()
    }

    fn show(&mut self, step: StepId, only: Option<Stream>) {
        if self.logs.show(step, only) {
            // Positions mean something else now.
            self.lines.remove(&step);
            self.search = self.search.take().filter(|search| search.step != step);
        }
    }

    fn lines_before(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        if let Some(mut lines) = self.stand_in(step) {
            lines.retain(|line| line.end <= position);
            return lines.split_off(lines.len().saturating_sub(n));
        }
        self.logs.get(step).lines_before(position, n).into_iter().map(line).collect()
    }

    fn lines_from(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        if let Some(mut lines) = self.stand_in(step) {
            lines.retain(|line| line.start >= position);
            lines.truncate(n);
            return lines;
        }
        self.logs.get(step).lines_from(position, n).into_iter().map(line).collect()
    }

    fn search(&mut self, step: StepId, needle: &str, budget: u64) -> Searched {
        let log = self.logs.get(step);
        log.refresh();
        let len = log.len();
        let Some(search) = begun(&mut self.search, step, needle) else { return Searched { upto: len, len, total: 0 } };
        let stop = search.searched().saturating_add(budget);
        let more = loop {
            if !search.advance(log) {
                break false;
            }
            if search.searched() >= stop {
                break true;
            }
        };
        // What cannot be read is not waited for.
        let upto = if more { search.searched() } else { len };
        Searched { upto, len, total: search.total() }
    }

    fn found(&mut self, step: StepId, needle: &str, position: u64, back: bool) -> Option<Match> {
        let log = self.logs.get(step);
        let search = begun(&mut self.search, step, needle)?;
        if back { search.before_position(log, position) } else { search.from(log, position) }
    }

    fn nearby(&mut self, step: StepId, needle: &str, position: u64, back: bool, span: u64) -> Option<u64> {
        let log = self.logs.get(step);
        begun(&mut self.search, step, needle)?.nearby(log, position, back, span)
    }

    fn feeds(&mut self, step: StepId, range: Range<u64>) -> u64 {
        self.logs.get(step).feeds(range)
    }

    fn index(&mut self, step: StepId, budget: u64) -> bool {
        let log = self.logs.get(step);
        let index = self.lines.entry(step).or_default();
        let stop = index.indexed().saturating_add(budget);
        while index.advance(log) {
            if index.indexed() >= stop {
                return true;
            }
        }
        false
    }

    fn line_number(&mut self, step: StepId, position: u64) -> Option<(u64, u64)> {
        let log = self.logs.get(step);
        let index = self.lines.get(&step).filter(|index| index.indexed() >= log.len())?;
        Some((index.number(log, position)?, index.feeds().max(1)))
    }

    fn reading(&self) -> Option<u8> {
        let (read, all) = self.follower.reading()?;
        u8::try_from(read.saturating_mul(100) / all.max(1)).ok().map(|percent| percent.min(99))
    }

    fn newest(&self) -> Vec<Event> {
        self.follower.newest(NEWEST)
    }

    fn tape(&self) -> Box<dyn Tape> {
        Box::new(Recording::open(&self.dir))
    }

    fn log_len_at(&mut self, step: StepId, at: Timestamp) -> Option<u64> {
        // What stands in for a log was written at the end.
        if self.stand_in(step).is_some() {
            return None;
        }
        self.logs.get(step).len_at(at)
    }

    fn printed_after(&mut self, step: StepId, at: Timestamp) -> Option<Timestamp> {
        self.logs.get(step).printed_after(at)
    }

    fn whole_log(&self, step: StepId) -> Option<StepLog> {
        Some(StepLog::open(&self.dir, step)).filter(|log| !log.is_empty())
    }

    fn facts(&mut self, step: StepId) -> StepFacts {
        let docs = self.plan.get_or_insert_with(|| plan_doc::read(&self.dir));
        let doc = plan_doc::step(docs, step);
        let task = plan_doc::asked(&self.dir, step).unwrap_or(doc.task);
        StepFacts { task: SafeText::block(&task), limits: doc.limits }
    }

    fn record(&self, place: u64) -> Result<Vec<u8>, String> {
        rundir::record::read(&self.dir, place).map_err(|error| error.to_string())
    }

    fn send(&mut self, request: &Request, key: &str) -> Result<Option<String>, String> {
        if let Some(why) = &self.read_only {
            return Err(format!("read-only: {why}"));
        }
        if self.follower.state().is_over() {
            return Err(self.follower.state().closed());
        }
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

    fn drafts(&mut self) -> Vec<Unsent> {
        self.drafts.read()
    }

    fn new_drafts(&mut self, step: StepId, held: bool) -> Option<News> {
        self.drafts.look(step, held)
    }

    fn keep_draft(&mut self, step: StepId, draft: Option<(&str, SteerMode)>) -> Result<(), String> {
        if self.read_only.is_some() {
            return Ok(());
        }
        // Nothing is written into another directory that stands in its place.
        if let Some(what) = self.follower.missing() {
            return Err(format!("the run's directory {what}"));
        }
        // Nor into a run that is over.
        let open = !self.follower.state().is_over();
        let kept = match draft {
            Some((text, mode)) => self.drafts.keep(open, &Kept { step, mode, text: text.to_owned() }, wall()),
            None => self.drafts.forget(open, step, wall()),
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
