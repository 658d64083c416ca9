//! The end of a run: nothing exits before everything is on the disk (runner-behaviour 10).

use super::dispatch::Engine;
use crate::run::RunPhase;

impl Engine {
    /// Writes the end of the run and waits until the last of it is on the disk.
    pub(super) async fn write_end(&mut self, phase: RunPhase, error: Option<String>) {
        self.recorder.end(phase, error, self.finals.clone());
        while self.recorder.is_pending() {
            tokio::time::sleep(crate::rundir::RETRY).await;
            self.recorder.flush_all();
        }
    }
}
