//! The summary of a run: printed after the deck has left the screen, and at the end of a headless run.

use std::fmt::Write;

use super::limits::{Gauge, counted};
use super::{inner_runs, sub_agents};
use crate::run::{RunPhase, RunState, RunnerKind, Timestamp, cause, needs, resume_command};
use crate::text::{self as units, SafeText, masked_lines};

/// What stands in the place of the time of a step that an earlier run has done.
const TAKEN_OVER: &str = "taken over";

/// A few lines that say how the run ended (or stands), step by step. Ends with a line feed.
#[must_use]
pub fn summary(state: &RunState, now: Timestamp) -> String {
    let mut out = String::new();
    let name = state.name.as_deref().unwrap_or("run");
    let time = units::or_unknown(state.elapsed(now).map(units::clock));
    let (count, word) = state.progress(false);
    let mut facts = vec![format!("{count} of {} steps {word}", state.steps.len())];
    // What an earlier run had done is no work of this one.
    match state.steps.iter().filter(|step| step.carried_over).count() {
        0 => {}
        n => facts.push(format!("{n} taken over")),
    }
    facts.push(time);
    facts.extend(state.tokens_told().map(|tokens| format!("{tokens} tokens")));
    facts.extend(state.cost_told());
    let (_, word) = state.run_face();
    let _ = writeln!(
        out,
        "{} {}: {}  ({})",
        SafeText::line(name),
        SafeText::line(state.id.as_str()),
        SafeText::line(word),
        facts.join(", ")
    );
    if let Some(from) = &state.resumed_from {
        let _ = writeln!(out, "  goes on from run {}", SafeText::line(from.as_str()));
    }
    let width = state.steps.iter().map(|s| SafeText::line(s.title()).width()).max().unwrap_or(0).min(32);
    for step in &state.steps {
        let title = SafeText::line(step.title()).truncate(32);
        let pad = " ".repeat(width.saturating_sub(title.width()));
        let time =
            if step.carried_over { TAKEN_OVER.to_owned() } else { units::or_unknown(step.took(now).map(units::span)) };
        let word = state.face(step).word();
        let line = format!("  {:>3}  {title}{pad}  {:<11}  {time:>7}", step.id.number(), word);
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some(error) = &step.error {
            for line in SafeText::block(&cause(error)).iter().take(4) {
                let _ = writeln!(out, "         {line}");
            }
        }
        if let (RunnerKind::Agent(_), Some(command)) = (&step.runner, resume_command(step)) {
            let _ = writeln!(out, "         session: {command}");
        }
        if let Some(unknown) = step.unknown.told() {
            let _ = writeln!(out, "         unknown to this version: {}", SafeText::line(&unknown));
        }
        for agent in &step.sub_agents {
            let _ = writeln!(out, "         {}", sub_agents::line(agent, now));
        }
        for run in &step.inner {
            let _ = writeln!(out, "         {}", inner_runs::line(run));
        }
        let limits = counted(state, Some(step));
        if !limits.is_empty() {
            let _ = writeln!(out, "         used: {}", limits.iter().map(Gauge::words).collect::<Vec<_>>().join(", "));
        }
        if let Some(last) = step.attempts.last().filter(|_| step.attempt() > 1) {
            let model = last.model.as_deref().map(|m| format!(" with {m}")).unwrap_or_default();
            let why = last.reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
            let line = SafeText::line(&format!("attempt {}{model}{why}", step.attempt()));
            let _ = writeln!(out, "         {line}");
        }
        if let Some(next) = &step.next_attempt {
            let line = SafeText::line(&format!("waits for another attempt: {}", next.reason));
            let _ = writeln!(out, "         {line}");
        }
        if let Some(error) = &step.log_error {
            let line = SafeText::line(&format!("not all of its output is kept: {error}"));
            let _ = writeln!(out, "         {line}");
        }
        if let Some(error) = &step.contract.file_error {
            let _ = writeln!(out, "         {}", SafeText::line(error));
        }
        if let Some(cap) = step.truncated_at {
            let _ = writeln!(out, "         {}", not_kept(cap));
        }
        if !step.held_by.is_empty() {
            let _ = writeln!(out, "         its output was held open by {}", pids(&step.held_by));
        }
        if !step.survivors.is_empty() {
            let _ = writeln!(out, "         these processes would not die: {}", pids(&step.survivors));
        }
    }
    let limits = counted(state, None);
    if !limits.is_empty() {
        let _ = writeln!(out, "  used: {}", limits.iter().map(Gauge::words).collect::<Vec<_>>().join(", "));
    }
    for need in needs(state) {
        let since = need.since.map(|at| format!(" (since {})", units::span(now.since(at)))).unwrap_or_default();
        let _ = writeln!(out, "  needs a person: {}{since}", need.line(state, now));
    }
    if let Some(source) = &state.ended_by {
        // A step can be stopped while its run goes on.
        let whole = state.stopped || state.timed_out || state.interrupted || state.phase == RunPhase::Paused;
        let what = if whole { "asked for by" } else { "a step was stopped by" };
        let _ = writeln!(out, "  {what} {}", SafeText::line(&source.to_string()));
    }
    // A failed run whose error only repeats a step's needs no second copy.
    if let Some(error) = &state.error
        && !error.starts_with("Step failed: ")
        && !state.steps.iter().any(|s| s.error.as_ref() == Some(error))
    {
        for line in SafeText::block(&cause(error)).iter().take(6) {
            let _ = writeln!(out, "  {line}");
        }
    }
    if let Some(evidence) = &state.lost
        && state.error.as_ref() != Some(evidence)
        && !state.steps.iter().any(|s| s.error.as_ref() == Some(evidence))
    {
        for line in SafeText::block(&format!("lost: {evidence}")).iter().take(6) {
            let _ = writeln!(out, "  {line}");
        }
    }
    masked_lines(&out).into_owned()
}

/// What is said of output that was more than may be captured.
#[must_use]
pub fn not_kept(cap: u64) -> String {
    format!("its output beyond {} was not kept", units::bytes(cap))
}

fn pids(pids: &[u32]) -> String {
    let list: Vec<_> = pids.iter().map(u32::to_string).collect();
    format!("pid {}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostUsd, RunId, StepId, StepPhase, StepState, Tokens};

    #[test]
    fn what_an_earlier_run_had_done_is_told_as_such() {
        let at = |s: i64| Timestamp::from_millis(s * 1000);
        let step = |id: u32, carried_over: bool, phase: StepPhase| StepState {
            id: StepId(id),
            key: format!("s{id}"),
            carried_over,
            started_at: Some(at(1)),
            ended_at: phase.is_terminal().then(|| at(1 + i64::from(id))),
            phase,
            ..StepState::default()
        };
        let state = RunState {
            id: RunId("new".to_owned()),
            phase: RunPhase::Running,
            resumed_from: Some(RunId("old".to_owned())),
            started_at: Some(at(1)),
            steps: vec![
                step(0, true, StepPhase::Complete),
                step(1, false, StepPhase::Complete),
                step(2, false, StepPhase::Running),
            ],
            ..RunState::default()
        };
        let told = summary(&state, at(61));
        let lines: Vec<&str> = told.lines().map(str::trim).take(4).collect();
        let facts = "run new: running  (2 of 3 steps ended, 1 taken over, 1:00)";
        assert_eq!(lines[..2], [facts, "goes on from run old"], "{told}");
        let [done, own] = [lines[2], lines[3]].map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(done[2..], ["done", "taken", "over"], "{told}");
        assert_eq!(own[2..], ["done", "1.0s"], "{told}");
        let alone = RunState { resumed_from: None, steps: vec![step(1, false, StepPhase::Complete)], ..state };
        assert!(!summary(&alone, at(61)).contains("over"), "{}", summary(&alone, at(61)));
    }

    #[test]
    fn what_is_printed_last_counts_and_adds_up_as_the_screen_before_it() {
        let at = |s: i64| Timestamp::from_millis(s * 1000);
        let step = |id: u32, phase: StepPhase, used: Option<u64>| StepState {
            id: StepId(id),
            key: format!("s{id}"),
            started_at: Some(at(1)),
            ended_at: Some(at(2)),
            tokens: Tokens { input: used.unwrap_or_default(), ..Tokens::default() },
            cost: used.map(|_| CostUsd(0.84)),
            phase,
            ..StepState::default()
        };
        let state = RunState {
            id: RunId("r1".to_owned()),
            phase: RunPhase::Failed,
            started_at: Some(at(1)),
            ended_at: Some(at(3)),
            steps: vec![step(0, StepPhase::Complete, Some(412_000)), step(1, StepPhase::Failed, None)],
            ..RunState::default()
        };
        let told = summary(&state, at(9));
        assert!(told.starts_with("run r1: failed  (1 of 2 steps done, 0:02, 412k+ tokens, $0.84+)\n"), "{told}");
    }
}
