//! Whether a failed attempt is made again: the same model when the child never began to work, the next model when the
//! provider failed (runner-behaviour 5).

use std::time::Duration;

use super::{ExitInfo, Judgement, NextAttempt, Report, RunnerKind, StepPhase, StepState, Timestamp, Transport, older};

/// Waits before the same model is tried again.
pub const STARTUP_WAITS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(750), Duration::from_millis(1500)];
/// A child that fails later than this after its start did start.
pub const STARTUP_WITHIN: Duration = Duration::from_millis(2000);
/// How the reason of an attempt with another model begins (runner-behaviour 5.1).
pub(super) const FALLBACK: &str = "[fallback]";
/// SIGKILL, the one signal that a failure to start may have: the system ran out of memory.
const KILLED: i32 = 9;

/// What is known of an attempt that ended.
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// The step, with the attempt as its newest.
    pub step: &'a StepState,
    /// The models of the plan, best first.
    pub models: &'a [String],
    /// What the child's output amounts to.
    pub report: &'a Report,
    /// How the attempt ended.
    pub judgement: &'a Judgement,
    /// How the process ended.
    pub exit: ExitInfo,
    /// The end of standard error.
    pub stderr_tail: &'a str,
    /// When the process ended.
    pub at: Timestamp,
    /// Its transport may be changed: the plan names none.
    pub may_change_transport: bool,
}

/// The attempt that follows, if there is one.
#[must_use]
pub fn next(tried: &Tried<'_>) -> Option<NextAttempt> {
    let outcome = &tried.judgement.outcome;
    let ended_by_us = outcome.stopped || outcome.timed_out || tried.step.budget.exceeded.is_some();
    if outcome.phase != StepPhase::Failed || ended_by_us || !tried.step.runner.is_agent() {
        return None;
    }
    if let Some(next) = with_one_prompt(tried) {
        return Some(next);
    }
    if failed_to_start(tried) {
        let waited = same_model_in_a_row(tried.step);
        let wait = *STARTUP_WAITS.get(waited.checked_sub(1)?)?;
        let killed = tried.exit.signal == Some(KILLED);
        let how = match (tried.exit.code, tried.exit.signal) {
            (_, Some(signal)) => super::signal_name(signal),
            (Some(code), None) => format!("exit code {code}"),
            (None, None) => "an unknown end".to_owned(),
        };
        return Some(NextAttempt {
            at: tried.at + wait,
            model: tried.step.attempts.last().and_then(|a| a.model.clone()),
            reason: format!("failed to start ({how}); again in {} ms", wait.as_millis()),
            task_by_file: killed || tried.step.task_by_file,
            transport: None,
        });
    }
    let error = outcome.error.as_deref()?;
    let last = tried.step.attempts.last()?.model.as_deref()?;
    let index = tried.models.iter().position(|m| m == last)?;
    let model = tried.models.get(index + 1)?;
    provider_failed(error).then(|| NextAttempt {
        at: tried.at,
        model: Some(model.clone()),
        reason: format!("{FALLBACK} {last} failed: {}. Retrying with {model}.", first_line(error)),
        task_by_file: tried.step.task_by_file,
        transport: None,
    })
}

/// The attempt that follows one whose child the system had no room for just now.
#[must_use]
pub fn when_busy(step: &StepState, at: Timestamp) -> Option<NextAttempt> {
    let wait = *STARTUP_WAITS.get(same_model_in_a_row(step).checked_sub(1)?)?;
    Some(NextAttempt {
        at: at + wait,
        model: step.attempts.last().and_then(|a| a.model.clone()),
        reason: format!("the system has no room for it just now; again in {} ms", wait.as_millis()),
        task_by_file: step.task_by_file,
        transport: None,
    })
}

/// The attempt that follows one whose agent is older than its steerable transport.
fn with_one_prompt(tried: &Tried<'_>) -> Option<NextAttempt> {
    let RunnerKind::Agent(agent) = tried.step.runner else { return None };
    if !tried.may_change_transport {
        return None;
    }
    let why = older::has_no_steerable(agent, tried.report, tried.stderr_tail)?;
    Some(NextAttempt {
        at: tried.at,
        model: tried.step.attempts.last().and_then(|a| a.model.clone()),
        reason: format!("it is too old to be steered ({why}); with one prompt instead"),
        task_by_file: tried.step.task_by_file,
        transport: Some(Transport::OneShot),
    })
}

/// The error of a step whose child never began to work in any of its attempts; `None` when that is not what happened.
#[must_use]
pub fn exhausted(tried: &Tried<'_>) -> Option<String> {
    let attempts = same_model_in_a_row(tried.step);
    if !failed_to_start(tried) || attempts <= STARTUP_WAITS.len() {
        return None;
    }
    let model = tried.step.attempts.last().and_then(|a| a.model.as_deref()).unwrap_or("the default model");
    let error = tried.judgement.outcome.error.as_deref().unwrap_or("no reason is known");
    Some(format!("Subagent failed to start after {attempts} attempts on {model}: {error}"))
}

/// Whether the child ended badly at once and without a word (runner-behaviour 5.2).
fn failed_to_start(tried: &Tried<'_>) -> bool {
    let started = tried.step.attempts.last().and_then(|a| a.started_at);
    let soon = started.is_some_and(|start| tried.at.since(start) <= STARTUP_WITHIN);
    let badly = match (tried.exit.code, tried.exit.signal) {
        (Some(code), None) => code != 0,
        (_, Some(signal)) => signal == KILLED,
        (None, None) => false,
    };
    let report = tried.report;
    let silent = !tried.step.heard
        && !report.saw_any_event
        && !report.terminal_record_seen()
        && report.protocol_error.is_none()
        && report.raw_tail.trim().is_empty()
        && report.final_text.as_ref().is_none_or(|t| t.trim().is_empty())
        && tried.stderr_tail.trim().is_empty();
    soon && badly && silent
}

fn same_model_in_a_row(step: &StepState) -> usize {
    let last = step.attempts.last().map(|a| &a.model);
    step.attempts.iter().rev().take_while(|a| Some(&a.model) == last).count()
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("no reason given").trim_end_matches('.')
}

/// Words that providers and the ways to them use when it is not the task that failed (runner-behaviour 5.1).
const PROVIDER: [&str; 35] = [
    "rate limit",
    "rate-limit",
    "ratelimit",
    "usage limit",
    "too many requests",
    "quota",
    "billing",
    "credit",
    "authentication",
    "unauthorized",
    "unauthorised",
    "forbidden",
    "api key",
    "api_key",
    "token expired",
    "expired token",
    "unavailable",
    "unknown model",
    "overloaded",
    "connection refused",
    "econnrefused",
    "econnreset",
    "connection reset",
    "fetch failed",
    "network error",
    "socket hang up",
    "upstream",
    "timeout",
    "timed out",
    "cold start",
    "empty response",
    "no output",
    "stream ended without finish_reason",
    "bad gateway",
    "internal server error",
];
/// What is said of a model that cannot be had, with its name between the words.
const NO_MODEL: [&str; 5] = ["not found", "not available", "disabled", "does not exist", "not supported"];
/// Codes of HTTP that say the same.
const CODES: [&str; 5] = ["429", "401", "502", "503", "504"];

/// Whether an error is the provider's. One that has the shape of a failed tool never is, whatever words it holds
/// (runner-behaviour 14.16).
#[must_use]
pub fn provider_failed(error: &str) -> bool {
    if is_tool_failure(error) {
        return false;
    }
    let lower = error.to_ascii_lowercase();
    let code = |word: &str| CODES.contains(&word.trim_matches(|c: char| !c.is_ascii_digit()));
    let no_model = lower
        .split_once("model")
        .is_some_and(|(_, rest)| NO_MODEL.iter().any(|word| rest.lines().next().unwrap_or_default().contains(word)));
    no_model || PROVIDER.iter().any(|word| lower.contains(word)) || lower.split_whitespace().any(code)
}

/// `<tool> failed (exit N): ...` or `<tool> failed with exit code N`.
fn is_tool_failure(error: &str) -> bool {
    let Some((tool, rest)) = error.split_once(" failed ") else { return false };
    let number = rest.strip_prefix("(exit ").or_else(|| rest.strip_prefix("with exit code "));
    !tool.contains(char::is_whitespace)
        && number.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
}

/// What helps when two extensions of pi offer the same tool or flag; `None` when that is not what happened
/// (runner-behaviour 5.3).
#[must_use]
pub fn extension_help(error: &str, agent: &str) -> Option<String> {
    let rest = error.split_once("Failed to load extension")?.1;
    let (before, _) = rest.split_once("conflicts with")?;
    (before.contains("Tool \"") || before.contains("Flag \"")).then(|| {
        format!(
            "Extensions that are found by themselves get in each other's way. Set \
             subagents.agentOverrides.{agent}.extensions to [] in .pi/settings.json of the project, or \
             extensions = [] for the step, and run it again."
        )
    })
}

/// The text of a step whose earlier attempts failed: which, and why.
#[must_use]
pub fn annotate(step: &StepState, text: String) -> String {
    let mut lines: Vec<&str> =
        step.attempts.iter().filter_map(|a| a.reason.as_deref()).filter(|r| r.starts_with(FALLBACK)).collect();
    if lines.is_empty() {
        return text;
    }
    lines.push(&text);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::{Attempt, RunnerKind, StepOutcome};
    use super::*;

    fn step(models: &[Option<&str>]) -> StepState {
        let attempts = models
            .iter()
            .map(|m| Attempt {
                model: m.map(str::to_owned),
                started_at: Some(Timestamp::from_millis(1000)),
                ..Attempt::default()
            })
            .collect();
        StepState { attempts, ..StepState::default() }
    }

    fn failed(error: &str) -> Judgement {
        let outcome = StepOutcome {
            phase: StepPhase::Failed,
            exit_code: 1,
            error: Some(error.to_owned()),
            ..StepOutcome::default()
        };
        Judgement { outcome, text: String::new() }
    }

    fn tried<'a>(step: &'a StepState, models: &'a [String], report: &'a Report, judgement: &'a Judgement) -> Tried<'a> {
        let exit = ExitInfo { code: Some(1), signal: None };
        Tried {
            step,
            models,
            report,
            judgement,
            exit,
            stderr_tail: "",
            at: Timestamp::from_millis(1500),
            may_change_transport: false,
        }
    }

    #[test]
    fn a_child_that_never_began_is_started_again_three_times() {
        let (report, judgement) = (Report::default(), failed("exited with code 1"));
        for (n, wait) in [(1, Some(250)), (2, Some(750)), (3, Some(1500)), (4, None)] {
            let step = step(&vec![Some("m"); n]);
            let tried = tried(&step, &[], &report, &judgement);
            let next = next(&tried);
            assert_eq!(next.as_ref().map(|a| a.at.millis() - 1500), wait, "{n}");
            assert!(next.is_none_or(|a| a.model.as_deref() == Some("m")));
            assert_eq!(exhausted(&tried).is_some(), n == 4);
        }
        let four = step(&[None; 4]);
        let error = exhausted(&tried(&four, &[], &report, &judgement)).unwrap();
        assert!(error.starts_with("Subagent failed to start after 4 attempts on "), "{error}");
    }

    #[test]
    fn a_child_that_did_anything_is_not_started_again() {
        let judgement = failed("x");
        let one = step(&[None]);
        let silent = Report::default();
        let base = tried(&one, &[], &silent, &judgement);
        assert!(next(&base).is_some());
        let late = Tried { at: Timestamp::from_millis(3001), ..base };
        let loud = Tried { stderr_tail: "boom", ..base };
        let well = Tried { exit: ExitInfo { code: Some(0), signal: None }, ..base };
        let term = Tried { exit: ExitInfo { code: None, signal: Some(15) }, ..base };
        for tried in [late, loud, well, term] {
            assert_eq!(next(&tried), None, "{tried:?}");
        }
        for report in [
            Report { saw_any_event: true, ..Report::default() },
            Report { settled: true, ..Report::default() },
            Report { protocol_error: Some("x".into()), ..Report::default() },
            Report { raw_tail: "usage".into(), ..Report::default() },
        ] {
            assert_eq!(next(&tried(&one, &[], &report, &judgement)), None, "{report:?}");
        }
        let plain =
            StepState { runner: RunnerKind::ExternalCli { command: "x".into(), args: vec![] }, ..step(&[None]) };
        assert_eq!(next(&tried(&plain, &[], &silent, &judgement)), None);
        let killed = Tried { exit: ExitInfo { code: None, signal: Some(9) }, ..base };
        assert!(next(&killed).unwrap().task_by_file);
    }

    #[test]
    fn the_next_model_is_tried_when_the_provider_failed() {
        let models = ["a".to_owned(), "b".to_owned()];
        let report = Report { saw_any_event: true, ..Report::default() };
        for (error, falls) in [
            ("429 Too Many Requests", true),
            ("error: HTTP 503", true),
            ("the agent produced no output", true),
            ("You exceeded your current quota.", true),
            ("Error: Model \"no/such\" not found. Use --list-models to see what there is.", true),
            ("the model gpt is disabled for this account", true),
            ("the data model was written\nfile not found", false),
            ("bash failed (exit 1): connection refused", false),
            ("bash failed with exit code 7", false),
            ("the tests fail in line 4290", false),
            ("exited with code 1", false),
        ] {
            let judgement = failed(error);
            let step = step(&[Some("a")]);
            let next = next(&tried(&step, &models, &report, &judgement));
            assert_eq!(next.is_some(), falls, "{error}");
            if let Some(next) = next {
                assert_eq!(next.model.as_deref(), Some("b"));
                assert!(next.reason.starts_with("[fallback] a failed: ") && next.reason.ends_with("Retrying with b."));
            }
        }
        let judgement = failed("overloaded");
        assert_eq!(next(&tried(&step(&[Some("b")]), &models, &report, &judgement)), None, "the last one");
    }

    #[test]
    fn what_was_ended_by_us_is_over() {
        let models = ["a".to_owned(), "b".to_owned()];
        let (report, mut judgement) = (Report::default(), failed("timed out"));
        judgement.outcome.timed_out = true;
        assert_eq!(next(&tried(&step(&[Some("a")]), &models, &report, &judgement)), None);
    }

    #[test]
    fn a_conflict_of_extensions_is_explained() {
        let error = "Failed to load extension \"/x\": Tool \"read\" conflicts with /y";
        assert!(extension_help(error, "scout").unwrap().contains("agentOverrides.scout.extensions"));
        assert_eq!(extension_help("Failed to load extension: no such file", "scout"), None);
    }
}
