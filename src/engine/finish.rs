//! The end of a run: nothing exits before everything is on the disk (runner-behaviour 10).

use super::complain::complain;
use super::dispatch::Engine;
use super::signals::{Signals, Want};
use crate::run::RunPhase;

impl Engine {
    /// Writes the end of the run and waits until the last of it is on the disk.
    /// Whoever stops or kills the runner meanwhile does not want to wait: what lacks room is then left, and the run is
    /// found as lost.
    pub(super) async fn write_end(&mut self, phase: RunPhase, error: Option<String>, signals: &mut Signals) {
        self.recorder.end(phase, error, self.finals.clone());
        while self.recorder.is_pending() {
            tokio::select! {
                asked = signals.next() => {
                    if asked.want != Want::Interrupt {
                        complain("runner", &"ended by a signal before everything was on the disk");
                        return;
                    }
                }
                () = tokio::time::sleep(crate::rundir::RETRY) => self.recorder.flush_all(),
            }
        }
    }
}
