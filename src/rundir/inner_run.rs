//! Runs that were started in a step, as our part of a status and of the event log holds them (run-directory 3.9).

use super::json::{Json, Obj};
use super::look::Look;
use crate::run::{InnerRun, RunId};

/// Runs as a list.
pub(super) fn runs(runs: &[InnerRun]) -> Json {
    let one = |run: &InnerRun| {
        let mut obj = Obj::new();
        obj.set("runId", run.id.as_str()).set("title", &run.title);
        obj.set("startedAt", run.started_at).set("heardAt", run.heard);
        if let Some((need, since)) = &run.needs {
            obj.set("needs", need).set("needsSince", *since);
        }
        obj
    };
    runs.iter().map(one).collect()
}

/// The list that `key` names, back; what says no id is left out.
pub(super) fn read_runs(look: &Look<'_>, key: &str) -> Vec<InnerRun> {
    let one = |run: Look<'_>| {
        Some(InnerRun {
            id: RunId(run.text("runId")?),
            title: run.text("title").unwrap_or_default(),
            started_at: run.time("startedAt").unwrap_or_default(),
            heard: run.time("heardAt").unwrap_or_default(),
            needs: run.text("needs").map(|need| (need, run.time("needsSince").unwrap_or_default())),
        })
    };
    look.objs(key).filter_map(one).take(InnerRun::KEPT).collect()
}
