//! Attempts of a step: the first one, and those that follow a failure (runner-behaviour 5).

use super::clock::now;
use super::dispatch::Engine;
use super::prepare::{Earlier, Try, prepare};
use crate::plan::{Runner, Step, template};
use crate::run::retry::{self, Tried};
use crate::run::{
    Condition, Evidence, ExitInfo, Judgement, Limit, NextAttempt, Notice, Reason, Report, Reported, RunnerKind, StepId,
    StepPhase, Timestamp, ToolBlock, What, acceptance_prompt, budget, demands_edits, judge, keeps_what_is,
};
use crate::rundir::capability;

/// What an attempt left that is over.
pub(super) struct Over<'a> {
    /// What its output amounts to.
    pub(super) report: &'a Report,
    /// How its process ended.
    pub(super) exit: ExitInfo,
    /// When it did, whatever it left behind.
    pub(super) exited_at: Timestamp,
    /// The end of what it printed as errors.
    pub(super) stderr_tail: &'a str,
    /// What it reports of its work, for a step that is to show something.
    pub(super) reported: Option<Reported>,
}

impl Engine {
    /// Starts the first attempt of a step. When the child cannot be started the step ends at once.
    pub(super) fn start_step(&mut self, id: StepId) {
        self.recorder.record(What::StepStarted { step: id });
        self.begin_artifacts(id);
        let model = self.plan.flat().nth(id.flat()).and_then(|s| s.models.first().cloned());
        self.start_attempt(id, model, None);
    }

    /// Starts the attempt that a step waits for, unless the step, or the run, is to end.
    pub(super) fn try_again(&mut self, id: StepId) {
        let state = self.recorder.state();
        let step = state.step(id).filter(|s| s.ending.is_none() && !state.is_ending());
        let next = step.and_then(|s| s.next_attempt.clone());
        if let Some(NextAttempt { model, reason, .. }) = next {
            self.start_attempt(id, model, Some(reason));
        }
    }

    /// Ends a step that waits for an attempt which is not to be made any more.
    pub(super) fn give_up(&mut self, id: StepId) {
        let ending = self.recorder.state().step(id).and_then(|s| s.ending.clone());
        let judgement = judge(&Evidence {
            report: &Report::default(),
            exit: ExitInfo::default(),
            spawn_error: Some("it was not tried again"),
            ending: ending.as_ref(),
            stderr_tail: "",
        });
        self.end_step(id, judgement, true);
    }

    fn start_attempt(&mut self, id: StepId, model: Option<String>, reason: Option<String>) {
        let Some(step) = self.plan.flat().nth(id.flat()).cloned() else { return };
        let known = self.recorder.state().step(id);
        let attempt = known.map_or(0, |s| s.attempt()).saturating_add(1);
        let task_by_file = known.is_some_and(|s| s.task_by_file);
        let transport = known.and_then(|s| match &s.runner {
            RunnerKind::Agent(agent) => Some(agent.transport),
            _ => None,
        });
        self.recorder.record(What::AttemptStarted { step: id, attempt, model: model.clone(), reason: reason.clone() });
        let earlier = Earlier { task: self.plan.task.as_deref(), previous: &self.previous, texts: &self.texts };
        let told = self.told_variables(id, &step);
        let acceptance = acceptance_prompt(&step.acceptance);
        let this = Try { model: model.as_deref(), task_by_file, acceptance: &acceptance, transport, told: &told };
        let prepared = match prepare(&step, id, &self.home, &earlier, &this) {
            Ok(prepared) => prepared,
            Err(error) => return self.spawn_failed(id, &error),
        };
        match self.spawn(id, attempt, prepared, reason.as_deref()) {
            Ok(active) => {
                let (pid, start_ticks) = active.identity();
                let steerable = active.steerable();
                self.active.insert(id, active);
                self.recorder.record(What::ChildSpawned { step: id, pid, start_ticks });
                if let Some(steerable) = steerable {
                    self.recorder.record(What::Capability { step: id, steerable: steerable.clone() });
                    let written = capability::write(self.home.way(), id, pid, &steerable, now());
                    if let Err(error) = written {
                        self.recorder.record(What::LogFailed { step: id, error: error.to_string() });
                    }
                }
                self.route_held(id);
            }
            Err(error) => {
                let step = self.recorder.state().step(id);
                let next = step
                    .filter(|s| error.kind() == std::io::ErrorKind::WouldBlock && s.ending.is_none())
                    .and_then(|s| retry::when_busy(s, now()));
                match next {
                    Some(next) if !self.recorder.state().is_ending() => {
                        self.recorder.record(What::AttemptEnded {
                            step: id,
                            exit_code: 1,
                            error: error.to_string(),
                            next,
                        });
                    }
                    _ => self.spawn_failed(id, &error.to_string()),
                }
            }
        }
    }

    /// What an agent of the package reads in its environment: its limit of tool calls, and the way to those above it when
    /// it may start agents of its own.
    fn told_variables(&self, id: StepId, step: &Step) -> Vec<(&'static str, String)> {
        let mut told = Vec::new();
        let limits = self.recorder.state().step(id).map(|s| s.limits.clone()).unwrap_or_default();
        if let Some(budget) = limits.tool_calls.filter(|_| limits.tool_calls_observed) {
            told.push(("PI_SUBAGENT_TOOL_BUDGET", tool_budget(budget, &limits.tool_block)));
        }
        if step.tools.as_ref().is_some_and(|tools| tools.iter().any(|tool| tool == "subagent")) {
            told.extend(self.route_variables(id.flat(), &step.agent));
        }
        told
    }

    fn spawn_failed(&mut self, id: StepId, error: &str) {
        let judgement = judge(&Evidence {
            report: &Report::default(),
            exit: ExitInfo::default(),
            spawn_error: Some(error),
            ending: None,
            stderr_tail: "",
        });
        self.end_step(id, judgement, false);
    }

    /// An agent that was clearly told to change files and says that it is done without having begun to change any is
    /// told of, and fails where the plan wants it so (runner-behaviour 4.6). Returns whether it failed for that.
    fn guard(&mut self, id: StepId, report: &Report, judgement: &mut Judgement) -> bool {
        let Some(step) = self.plan.flat().nth(id.flat()) else { return false };
        let Some(state) = self.recorder.state().step(id) else { return false };
        // Only the task as it was written: what other steps said demands nothing.
        let task = template::fill_task(&step.task, step.filling, self.plan.task.as_deref());
        let could = step.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| !only_looks(tool)));
        let guarded = judgement.outcome.phase == StepPhase::Complete
            && !report.plain
            && matches!(step.runner, Runner::Pi { .. })
            && could
            && !state.changed_files
            && demands_edits(&step.agent, &task)
            && !keeps_what_is(&task, &judgement.text);
        if !guarded {
            return false;
        }
        let (fails, told) = (step.completion_guard, state.thresholds.enabled);
        let condition = Condition {
            reason: Reason::CompletionGuard,
            subject: String::new(),
            since: now(),
            threshold: None,
            amount: None,
            evidence: "it ended without having begun to change a file, which its task demands".to_owned(),
        };
        if told {
            self.raise(id, Box::new(Notice::new(id, condition, now())));
        }
        if fails {
            let outcome = &mut judgement.outcome;
            (outcome.phase, outcome.exit_code) = (StepPhase::Failed, 1);
            outcome.error = Some(
                "The agent ended without having made any edit, though its task demands some.\nNo tool that changes files \
                 was called. If that is right, say so in the task or switch the completion guard of the step off."
                    .to_owned(),
            );
        }
        fails
    }

    /// An attempt is over: the step ends with it, or another one follows.
    pub(super) fn attempt_over(&mut self, id: StepId, over: Over<'_>, mut judgement: Judgement) {
        let Over { report, exit, exited_at, stderr_tail, reported } = over;
        let guarded = self.guard(id, report, &mut judgement);
        let Some(step) = self.recorder.state().step(id) else { return };
        let planned = self.plan.flat().nth(id.flat());
        let models = planned.map_or(Vec::new(), |s| s.models.clone());
        let may_change_transport =
            planned.is_some_and(|s| matches!(&s.runner, Runner::Agent(agent) if !agent.fixed_transport));
        let tried = Tried {
            step,
            models: &models,
            report,
            judgement: &judgement,
            exit,
            stderr_tail,
            at: exited_at,
            may_change_transport,
        };
        let stopping = self.recorder.state().is_ending() || step.ending.is_some();
        match retry::next(&tried) {
            Some(next) if !stopping && !guarded => {
                let exit_code = judgement.outcome.exit_code;
                let error = judgement.outcome.error.unwrap_or_default();
                self.recorder.record(What::AttemptEnded { step: id, exit_code, error, next });
            }
            _ => {
                let exhausted = retry::exhausted(&tried);
                let agent = step.agent.clone();
                judgement.text = budget::annotate(step, retry::annotate(step, judgement.text));
                let error = &mut judgement.outcome.error;
                *error = exhausted.or_else(|| error.take());
                // Only extensions that are found by themselves get in each other's way without anybody's doing.
                if let Some(text) = error
                    && self.plan.flat().nth(id.flat()).is_some_and(|s| s.extensions.is_none())
                    && let Some(help) = retry::extension_help(text, &agent)
                {
                    *text = format!("{text}\n\n{help}");
                }
                self.accept(id, judgement, reported);
            }
        }
    }
}

/// The limit of tool calls as the guard inside an agent reads it (runner-behaviour 3.2).
fn tool_budget(limit: Limit<u64>, block: &ToolBlock) -> String {
    let block = match block {
        ToolBlock::All => serde_json::json!("*"),
        ToolBlock::Names(names) => serde_json::json!(names),
    };
    let mut budget = serde_json::json!({ "hard": limit.hard.or(limit.soft), "block": block });
    if let (Some(soft), Some(fields)) = (limit.soft, budget.as_object_mut()) {
        fields.insert("soft".to_owned(), soft.into());
    }
    budget.to_string()
}

/// Tools that change nothing (runner-behaviour 4.6).
fn only_looks(tool: &str) -> bool {
    matches!(tool, "read" | "grep" | "find" | "ls" | "glob" | "contact_supervisor" | "intercom" | "subagent_wait")
}
