//! The end of a run: nothing exits before everything is on the disk (runner-behaviour 10).

use super::complain::complain;
use super::dispatch::Engine;
use super::kept::Kept;
use super::live_log::LiveLog;
use super::signals::{Signals, Want};
use crate::run::RunPhase;

/// A log of a step that has ended, when there is no room yet for the end of it.
pub(super) enum Late {
    /// One with the bytes as they came.
    Raw(Kept),
    /// A live log.
    Live(LiveLog),
}

impl Late {
    /// Writes what there is room for; returns whether some of it still waits.
    fn retry(&mut self) -> bool {
        let result = match self {
            Self::Raw(log) => log.retry(),
            Self::Live(log) => log.retry(),
        };
        if let Err(error) = result {
            complain("runner", &format_args!("the end of a log is lost: {error}"));
        }
        match self {
            Self::Raw(log) => log.is_waiting(),
            Self::Live(log) => log.is_waiting(),
        }
    }
}

impl Engine {
    /// Writes what waits for room of the logs of steps that have ended.
    pub(super) fn write_late(&mut self) {
        self.late.retain_mut(Late::retry);
    }

    /// Writes the end of the run and waits until the last of it is on the disk. A stop finds nothing to stop any more. Only
    /// who kills the runner, or asks it a second time, does not want to wait: what lacks room is then left, and the run is
    /// found as lost.
    pub(super) async fn write_end(&mut self, phase: RunPhase, error: Option<String>, signals: &mut Signals) {
        self.recorder.end(phase, error, self.finals.clone());
        let mut asked_before = false;
        while self.recorder.is_pending() || !self.late.is_empty() {
            tokio::select! {
                asked = signals.next() => {
                    let again = std::mem::replace(&mut asked_before, asked.want == Want::Stop);
                    if asked.want == Want::Kill || (again && asked.want == Want::Stop) {
                        complain("runner", &"ended by a signal before everything was on the disk");
                        return;
                    }
                }
                () = tokio::time::sleep(crate::rundir::RETRY) => {
                    self.recorder.flush_all();
                    self.write_late();
                }
            }
        }
    }
}
