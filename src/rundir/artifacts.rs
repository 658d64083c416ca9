//! The files of a step that outlive its run directory (run-directory 2.9): what it was asked, without the words; its
//! final text; what it was and how it ended. The transcript is [`super::transcript`]'s.

use std::io::{self, Write};
use std::path::Path;

use super::json::{Json, Obj};
use super::paths::private_dir;
use super::status::{self, REDACTED};
use super::status_step;
use crate::run::{RunState, StepState};

/// `<folder>/<run>_<agent>[_<flat>]<suffix>`; the number is there when the run has more than one step.
#[must_use]
pub fn path(folder: &str, run: &str, agent: &str, flat: Option<usize>, suffix: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
    let agent: String = agent.chars().map(safe).collect();
    let number = flat.map_or_else(String::new, |flat| format!("_{flat}"));
    format!("{}/{run}_{agent}{number}{suffix}", folder.trim_end_matches('/'))
}

/// What a step was asked. The words are never written (runner-behaviour 14.20).
#[must_use]
pub fn input(agent: &str) -> String {
    format!("# Task for {agent}\n\n{REDACTED}\n")
}

/// The final text, or a page that says why there is none.
#[must_use]
pub fn output(step: &StepState, text: &str) -> String {
    if !text.trim().is_empty() {
        return text.to_owned();
    }
    let error = step.error.as_deref().unwrap_or("no reason is known");
    format!("# {} gave no output\n\nIt ended as {}.\n\n{error}\n", step.agent, step.phase.as_str())
}

/// What a step was and how it ended.
#[must_use]
pub fn metadata(state: &RunState, step: &StepState) -> Vec<u8> {
    let mut obj = Obj::new();
    obj.set("version", 1).set("runId", state.id.as_str()).set("agent", &step.agent);
    obj.opt("index", (state.steps.len() > 1).then_some(step.id.flat()));
    obj.set("task", REDACTED).set("status", step.phase.as_str()).opt("exitCode", step.exit_code);
    obj.opt("error", step.error.as_ref()).flag("timedOut", step.timed_out).flag("stopped", step.stopped);
    obj.opt("model", step.model.as_ref()).opt("attemptedModels", status_step::attempted_models(step));
    let attempts: Vec<Obj> = step.attempts.iter().filter_map(status_step::model_attempt).collect();
    if !attempts.is_empty() {
        obj.set("modelAttempts", attempts.into_iter().collect::<Json>());
    }
    obj.opt("totalCost", status::cost_summary(step.tokens, step.cost));
    obj.set("turnCount", step.turn_count).set("toolCount", step.tool_count);
    obj.opt("sessionFile", step.session_file.as_ref());
    obj.opt("startedAt", step.started_at).opt("endedAt", step.ended_at);
    if let (Some(start), Some(end)) = (step.started_at, step.ended_at) {
        obj.set("durationMs", status::millis(end, start));
    }
    obj.pretty()
}

/// Writes one of them, mode 0600, in place of an earlier one, making its folder when it is missing. A link is not
/// followed.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_dir(folder)?;
    }
    super::open::overwrite(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{StepId, StepPhase};

    #[test]
    fn names_are_safe_and_numbered_only_where_there_are_several() {
        assert_eq!(path("/a/", "r", "one/two é", None, "_meta.json"), "/a/r_one_two___meta.json");
        assert_eq!(path("/a", "r", "scout", Some(3), "_output.md"), "/a/r_scout_3_output.md");
    }

    #[test]
    fn a_step_without_a_text_says_why() {
        let step = StepState {
            agent: "scout".into(),
            phase: StepPhase::Failed,
            error: Some("it broke".into()),
            ..StepState::default()
        };
        assert_eq!(output(&step, "text"), "text");
        assert_eq!(output(&step, " \n"), "# scout gave no output\n\nIt ended as failed.\n\nit broke\n");
    }

    #[test]
    fn the_page_about_a_step_is_numbered_like_its_files() {
        let step = |id| StepState { id: StepId(id), agent: "a".into(), ..StepState::default() };
        let mut state = RunState { steps: vec![step(0)], ..RunState::default() };
        let read = |state: &RunState| -> serde_json::Value {
            serde_json::from_slice(&metadata(state, state.steps.last().unwrap())).unwrap()
        };
        assert_eq!((read(&state).get("index"), &read(&state)["task"]), (None, &REDACTED.into()));
        state.steps.push(step(1));
        assert_eq!(read(&state)["index"], 1);
    }
}
