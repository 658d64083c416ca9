//! The feed over a run directory.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::app::Source;
use super::feed::{Changes, Feed, Hands, LogLine, Request, StepFacts};
use crate::run::{ControlSource, RunState, RunnerKind, StepId, Timestamp};
use crate::rundir::{self, Follower, Inbox, RunDir, StepLog, plan_doc};
use crate::text::SafeText;

/// Follows a run directory and writes its control files.
pub struct LiveFeed {
    dir: RunDir,
    follower: Follower,
    logs: BTreeMap<StepId, StepLog>,
    plan: Option<Vec<plan_doc::StepDoc>>,
}

impl LiveFeed {
    /// Opens a run.
    ///
    /// # Errors
    /// Why it cannot be read, ready to be shown.
    pub fn open(path: &Path) -> Result<Self, String> {
        let follower = Follower::open(path).map_err(|error| error.to_string())?;
        Ok(Self { dir: RunDir::at(path), follower, logs: BTreeMap::new(), plan: None })
    }

    fn log(&mut self, step: StepId) -> &mut StepLog {
        let dir = &self.dir;
        self.logs.entry(step).or_insert_with(|| StepLog::open(dir, step))
    }
}

impl Feed for LiveFeed {
    fn poll(&mut self) -> Changes {
        let rundir::Changes { state, output, news, .. } = self.follower.poll();
        Changes { state, output, news }
    }

    fn state(&self) -> &RunState {
        self.follower.state()
    }

    fn hands(&self) -> Hands {
        match self.follower.lost() {
            Some(evidence) => Hands::Lost(SafeText::line(&evidence)),
            None if self.follower.is_over() => Hands::Over,
            None => Hands::Live,
        }
    }

    fn log_len(&mut self, step: StepId) -> u64 {
        let log = self.log(step);
        log.refresh();
        log.len()
    }

    fn lines_before(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        self.log(step).lines_before(position, n).into_iter().map(line).collect()
    }

    fn lines_from(&mut self, step: StepId, position: u64, n: usize) -> Vec<LogLine> {
        self.log(step).lines_from(position, n).into_iter().map(line).collect()
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

    fn send(&mut self, request: &Request, key: &str) -> Result<Option<String>, String> {
        let inbox = Inbox::open(&self.dir, here(key)).map_err(|e| e.to_string())?;
        let state = self.follower.state();
        let now = now();
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
        };
        sent.map(|()| None).map_err(|e| e.to_string())
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

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Who asks: this deck and the key that was pressed (product 7).
fn here(key: &str) -> ControlSource {
    let stdin = std::io::stdin();
    let tty = stdin.is_terminal().then(|| rustix::termios::ttyname(&stdin, Vec::new()).ok()).flatten();
    ControlSource {
        via: "deck".to_owned(),
        user: std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok().filter(|u| !u.is_empty()),
        pid: Some(std::process::id()),
        tty: tty.and_then(|name| name.into_string().ok()),
        key: Some(key.to_owned()),
        reason: None,
    }
}
