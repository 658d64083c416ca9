//! What a row tells of a run.

use crate::run::{RunState, StepPhase};
use crate::rundir::fleet::FleetRun;

impl FleetRun {
    /// A value that is not told: unknown where an agent was at work, and empty where there was none that could use anything.
    #[must_use]
    pub fn or_nothing(&self, value: Option<String>) -> String {
        // What was carried over from an earlier run was at work there.
        let agents = |s: &RunState| s.steps.iter().any(|step| step.worked() && !step.carried_over);
        match value {
            None if !self.state().is_some_and(agents) => String::new(),
            value => crate::text::or_unknown(value),
        }
    }

    /// The tool that one of its steps has open, with its arguments. Text from outside.
    #[must_use]
    pub fn doing(&self) -> Option<String> {
        let running = self.state()?.steps.iter().filter(|s| s.phase == StepPhase::Running);
        let call = running.clone().filter_map(|s| s.current_call()).max_by_key(|c| c.started_at);
        // What waits for an inner run does nothing itself; the row of that tells what it does.
        let waits = || running.clone().find_map(|s| s.waits_for()).map(|run| format!("waits for run {}", run.title));
        let told = || call.map(|call| format!("{} {}", call.tool, call.path.as_deref().unwrap_or(&call.args)));
        waits().or_else(told)
    }
}
