//! The end of a run on disk: provisional result, status, public result, indexes, log; and nothing exits before it is
//! all written (runner-behaviour 10).

use std::time::Duration;

use super::clock::now;
use super::dispatch::Engine;
use crate::run::{RunPhase, What};
use crate::rundir::{self, ResultContext};

/// How often a full disk is tried again.
const RETRY: Duration = Duration::from_millis(1000);

impl Engine {
    /// Writes the end of the run. A terminal status is never on disk without a result (runner-behaviour 13.9): the
    /// result is there first, pending; it becomes public after the status.
    pub(super) async fn write_end(&mut self, phase: RunPhase, error: Option<String>) {
        let context = ResultContext {
            dir: self.dir.clone(),
            results: self.results_dir(),
            public: self.plan.result_path.clone(),
            texts: self.finals.clone(),
        };
        let end = What::RunEnded { state: phase, error };
        let preview = self.recorder.preview(&end);
        let pending = rundir::result::write_pending(self.recorder.writer(), &context, &preview, now());
        let failure = pending.err().map(|e| e.to_string());
        self.recorder.record(match &failure {
            None => end,
            // A result that cannot be written makes the run failed, whatever its children did (runner-behaviour 10).
            Some(error) => What::RunEnded { state: RunPhase::Failed, error: Some(error.clone()) },
        });
        if failure.is_none() {
            let state = self.recorder.state().clone();
            let published = rundir::result::publish(self.recorder.writer(), &context, &state, now());
            if let Err(error) = published {
                eprintln!("subdeck runner: the result stays pending: {error}");
            }
        }
        let state = self.recorder.state().clone();
        if let Err(error) = rundir::index::mark_ended(&self.dir, &state) {
            eprintln!("subdeck runner: the index could not be brought up to date: {error}");
        }
        let log = rundir::logmd::encode(&state, &self.finals);
        let _ = self.recorder.writer().write(&self.dir.log_markdown(), log, now());
        while self.recorder.is_pending() {
            tokio::time::sleep(RETRY).await;
            self.recorder.flush_all();
        }
    }

    /// Where results go: beside the public result that was asked for, else in the run root.
    fn results_dir(&self) -> std::path::PathBuf {
        self.plan
            .result_path
            .as_ref()
            .and_then(|p| p.parent().map(std::path::Path::to_path_buf))
            .or_else(|| self.dir.root().map(|r| r.results()))
            .unwrap_or_else(|| self.dir.path().join("results"))
    }
}
