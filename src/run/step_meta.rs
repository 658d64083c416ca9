//! What is known of a step before it starts, and the step that begins with it.

use super::{Limits, RunnerKind, SharedContract, Steerable, StepId, StepState, Thresholds};

/// What is known of a step before it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepMeta {
    /// The id used by `{outputs.ID}` and `RUN:STEP`.
    pub key: String,
    /// The agent's name.
    pub agent: String,
    /// What the person calls the step.
    pub label: Option<String>,
    /// The phase it belongs to.
    pub phase: Option<String>,
    /// The logical step.
    pub logical: usize,
    /// How its child is run.
    pub runner: RunnerKind,
    /// The model asked for.
    pub model: Option<String>,
    /// The thinking level asked for.
    pub thinking: Option<String>,
    /// The child's session file, when it was chosen beforehand.
    pub session_file: Option<String>,
    /// Whether the task has text (the text itself is never kept here).
    pub has_task: bool,
    /// The step's time limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The folder that its child works in.
    pub cwd: String,
    /// What it may use beside its time.
    pub limits: Limits,
    /// When somebody should look at it.
    pub thresholds: Thresholds,
    /// The result is taken over from an earlier run; the step does not run again.
    pub carried_over: bool,
    /// What its launcher said for the package's readers.
    pub contract: SharedContract,
}

impl StepMeta {
    /// The step that has not started, with this id.
    #[must_use]
    pub fn begin(&self, id: StepId) -> StepState {
        StepState {
            id,
            key: self.key.clone(),
            agent: self.agent.clone(),
            label: self.label.clone(),
            phase_title: self.phase.clone(),
            logical: self.logical,
            runner: self.runner.clone(),
            model: self.model.clone(),
            thinking: self.thinking.clone(),
            session_file: self.session_file.clone(),
            has_task: self.has_task,
            timeout_ms: self.timeout_ms,
            cwd: self.cwd.clone(),
            limits: self.limits.clone(),
            thresholds: self.thresholds.clone(),
            carried_over: self.carried_over,
            contract: self.contract.clone(),
            steerable: if self.runner.is_agent() {
                Steerable::Unknown
            } else {
                Steerable::No("it is a plain command".into())
            },
            ..StepState::default()
        }
    }
}

impl StepState {
    /// What was known of it before it started, as far as it tells that still.
    #[must_use]
    pub fn meta(&self) -> StepMeta {
        StepMeta {
            key: self.key.clone(),
            agent: self.agent.clone(),
            label: self.label.clone(),
            phase: self.phase_title.clone(),
            logical: self.logical,
            runner: self.runner.clone(),
            model: self.model.clone(),
            thinking: self.thinking.clone(),
            session_file: self.session_file.clone(),
            has_task: self.has_task,
            timeout_ms: self.timeout_ms,
            cwd: self.cwd.clone(),
            limits: self.limits.clone(),
            thresholds: self.thresholds.clone(),
            carried_over: self.carried_over,
            contract: self.contract.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_begins_is_what_was_known_of_it() {
        let meta = StepMeta {
            key: "look".to_owned(),
            agent: "scout".to_owned(),
            label: Some("l".to_owned()),
            phase: Some("p".to_owned()),
            logical: 3,
            runner: RunnerKind::ExternalCli { command: "make".to_owned(), args: Vec::new() },
            model: Some("m".to_owned()),
            thinking: Some("high".to_owned()),
            session_file: Some("/s".to_owned()),
            has_task: true,
            timeout_ms: Some(7),
            cwd: "/w".to_owned(),
            limits: Limits { idle_ms: Some(8), ..Limits::default() },
            thresholds: Thresholds { enabled: false, ..Thresholds::default() },
            carried_over: true,
            contract: SharedContract::default(),
        };
        let step = meta.begin(StepId(5));
        assert_eq!((step.meta(), step.id), (meta.clone(), StepId(5)));
        assert!(matches!(step.steerable, Steerable::No(_)));
        let agent = StepMeta { runner: RunnerKind::Pi, ..meta };
        assert_eq!(agent.begin(StepId(0)).steerable, Steerable::Unknown);
    }
}
