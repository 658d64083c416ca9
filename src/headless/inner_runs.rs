//! Runs that were started in a step, for scripts and in lines of text.

use serde_json::{Value, json};

use crate::run::InnerRun;
use crate::text::SafeText;

/// As JSON.
pub(super) fn inner_runs(runs: &[InnerRun]) -> Value {
    let one = |run: &InnerRun| {
        json!({
            "inner_run": run.id.as_str(), "name": run.title, "started_at": run.started_at.millis(),
            "heard_at": run.heard.millis(), "needs": run.needs.as_ref().map(|(need, _)| need),
        })
    };
    runs.iter().map(one).collect()
}

/// One of them in a line.
pub(super) fn line(run: &InnerRun) -> SafeText {
    let needs = run.needs.as_ref().map_or_else(String::new, |(need, _)| format!(", which needs a person: {need}"));
    SafeText::line(&format!("waits for its inner run {} ({}){needs}", run.title, run.id.as_str()))
}
