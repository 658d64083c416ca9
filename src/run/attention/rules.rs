//! The rules: what in a step needs a look at a moment (runner-behaviour 4.3, product 5).

use std::time::Duration;

use super::{Amount, Condition, Notice, Reason, Standing, seconds};
use crate::run::{
    Limits, Metric, OpenCall, RunState, Stage, StepPhase, StepState, TargetState, Timestamp, Used, budget,
};

/// After this many milliseconds a condition without a threshold of its own is told again once somebody took note of it.
const AGAIN_MS: u64 = 300_000;

/// What needs a look in a step. Nothing does in a step that does not run, or whose child is being ended.
#[must_use]
pub fn conditions(state: &RunState, step: &StepState, now: Timestamp) -> Standing {
    let mut standing = Standing::default();
    let ending = step.ending.as_ref().is_some_and(|e| e.cause != crate::run::EndingCause::Drain);
    if step.phase != StepPhase::Running || ending || !step.thresholds.enabled {
        return standing;
    }
    let mut rules = Rules { state, step, now, standing: &mut standing };
    rules.questions();
    rules.inner_runs();
    rules.tools();
    rules.silence();
    rules.failures();
    rules.conflicts();
    rules.notes();
    rules.long_running();
    standing
}

struct Rules<'a> {
    state: &'a RunState,
    step: &'a StepState,
    now: Timestamp,
    standing: &'a mut Standing,
}

fn open_for(call: &OpenCall, time: &str) -> String {
    let path = call.path.as_ref().map_or_else(String::new, |p| format!(" on {p}"));
    format!("tool '{}' open for {time}{path}", call.tool)
}

/// Since when an open call shows nothing: since the newest sign of life of a run that was started in it, else since it
/// began.
fn open_since(call: &OpenCall) -> Timestamp {
    call.started_at.max(call.heard.unwrap_or(call.started_at))
}

fn no_event_for(time: &str) -> String {
    format!("no event since it was started {time} ago")
}

fn quiet_for(step: &StepState, time: &str) -> String {
    let inside = step.waits_for().map_or_else(String::new, |run| format!(", in its inner run {} neither", run.title));
    format!("no observed activity for {time}{inside}")
}

fn active_for(time: &str) -> String {
    format!("still active after {time}")
}

/// What is to be seen now of a reason whose evidence grows, with its time as `told` writes times: what was seen when it was
/// told stands still. `None` for other reasons, and where it does not hold any more.
#[must_use]
pub fn seen(
    state: &RunState,
    step: &StepState,
    reason: Reason,
    now: Timestamp,
    told: impl Fn(Duration) -> String,
) -> Option<String> {
    let awake = |since| told(state.gaps.awake(since, now));
    match reason {
        Reason::ToolOpen => {
            let notice = step.attention.iter().find(|notice| notice.condition.reason == reason)?;
            let call = step.open.iter().find(|call| call.seq.to_string() == notice.condition.subject)?;
            Some(open_for(call, &awake(open_since(call))))
        }
        Reason::NoFirstEvent if !step.heard => Some(no_event_for(&awake(step.silent_since()?))),
        Reason::Idle => Some(quiet_for(step, &awake(step.silent_since()?))),
        Reason::TimeThreshold => Some(active_for(&awake(step.started_at?))),
        Reason::TurnThreshold => Some(active_for(&format!("{} turns", step.turn_count))),
        Reason::TokenThreshold => Some(active_for(&format!("{} tokens", step.tokens.total()))),
        _ => None,
    }
}

impl Rules<'_> {
    fn awake(&self, since: Timestamp) -> u64 {
        u64::try_from(self.state.gaps.awake(since, self.now).as_millis()).unwrap_or(u64::MAX)
    }

    fn hold(&mut self, condition: Condition) {
        // What somebody took note of may have to be told again.
        let id = Notice::name(self.step.id, &condition);
        let told = self.step.attention.iter().find(|n| n.id == id);
        if let Some(Amount::Millis(again)) = told.and_then(|told| told.again_at(&condition)) {
            self.standing.later(self.state.gaps.due(condition.since, Duration::from_millis(again)));
        }
        self.standing.holds.push(condition);
    }

    /// Holds once `since` is `threshold` milliseconds ago.
    fn timed(
        &mut self,
        reason: Reason,
        subject: String,
        since: Timestamp,
        threshold: u64,
        evidence: impl Fn(u64) -> String,
    ) {
        let ms = self.awake(since);
        if ms < threshold {
            self.standing.later(self.state.gaps.due(since, Duration::from_millis(threshold)));
            return;
        }
        self.hold(Condition {
            reason,
            subject,
            since,
            threshold: Some(Amount::Millis(threshold)),
            amount: Some(Amount::Millis(ms)),
            evidence: evidence(ms),
        });
    }

    fn counted(
        &mut self,
        reason: Reason,
        subject: &str,
        since: Timestamp,
        threshold: u64,
        count: u64,
        evidence: String,
    ) {
        if count < threshold {
            return;
        }
        self.hold(Condition {
            reason,
            subject: subject.to_owned(),
            since,
            threshold: Some(Amount::Count(threshold)),
            amount: Some(Amount::Count(count)),
            evidence,
        });
    }

    /// Holds since a moment, whatever the time.
    fn plain(&mut self, reason: Reason, subject: String, since: Timestamp, evidence: String) {
        let ms = self.awake(since);
        self.hold(Condition {
            reason,
            subject,
            since,
            threshold: Some(Amount::Millis(AGAIN_MS)),
            amount: Some(Amount::Millis(ms)),
            evidence,
        });
    }

    fn questions(&mut self) {
        for question in &self.step.questions {
            self.plain(Reason::Question, question.id.clone(), question.asked_at, question.asking.text.clone());
        }
        // What reached the runner is a question; the call alone says that there is one that did not.
        let reached = self.step.questions.iter().filter(|question| question.asking.by_file).count();
        if let Some(call) = self.step.open.iter().filter(|call| call.about.asks).nth(reached) {
            let evidence = format!("{} waits for an answer: {}", call.tool, call.args);
            self.plain(Reason::SupervisorRequest, String::new(), call.started_at, evidence);
        }
        let newest = self.step.steering.recent.last();
        for target in newest.iter().flat_map(|r| &r.targets).filter(|t| t.state == TargetState::Failed) {
            let why = target.reason.clone().unwrap_or_else(|| "no reason is known".to_owned());
            let since = target.failed_at.unwrap_or(self.now);
            let id = newest.map(|r| r.id.clone()).unwrap_or_default();
            self.plain(Reason::SteerFailed, id, since, format!("a message did not arrive: {why}"));
        }
    }

    /// What a run needs that was started in the step: whoever looks at this run only would not learn of it.
    fn inner_runs(&mut self) {
        for run in &self.step.inner {
            if let (Some(asks), Some((_, since))) = (run.asks(), &run.needs) {
                self.plain(Reason::InnerRun, run.id.0.clone(), *since, asks);
            }
        }
    }

    /// The oldest call that is open for too long (runner-behaviour 4.3).
    fn tools(&mut self) {
        let rules = &self.step.thresholds;
        let open = self.step.open.iter().filter(|call| !self.step.asks_about(call));
        let mut waiting: Vec<_> = open.filter_map(|call| rules.tool_open(&call.tool).map(|ms| (call, ms))).collect();
        // What waits for somebody inside is told by that.
        let asks = |call: &OpenCall| {
            self.step.inner.iter().any(|run| run.needs.is_some() && call.started_at <= run.started_at)
        };
        waiting.retain(|(call, _)| call.heard.is_none() || !asks(call));
        waiting.sort_by_key(|(call, _)| (open_since(call), call.seq));
        let over = waiting.iter().position(|(call, ms)| self.awake(open_since(call)) >= *ms);
        for (index, (call, ms)) in waiting.into_iter().enumerate() {
            if over.is_some_and(|first| first != index) {
                continue;
            }
            let evidence = |ms| open_for(call, &seconds(ms));
            self.timed(Reason::ToolOpen, call.seq.to_string(), open_since(call), ms, evidence);
        }
    }

    fn silence(&mut self) {
        let step = self.step;
        let asks = step.inner.iter().any(|run| run.needs.is_some());
        let waits = step.retrying.is_some() || !step.questions.is_empty() || step.next_attempt.is_some();
        if !step.open.is_empty() || waits || asks {
            return;
        }
        let Some(since) = step.silent_since() else { return };
        match (step.heard, step.thresholds.first_event_ms, step.thresholds.idle_ms) {
            (false, Some(ms), _) if step.runner.is_agent() => {
                self.timed(Reason::NoFirstEvent, step.attempt().to_string(), since, ms, |ms| {
                    no_event_for(&seconds(ms))
                });
            }
            (_, _, Some(ms)) => {
                // Longer than the threshold, not as long (runner-behaviour 4.3).
                self.timed(Reason::Idle, String::new(), since, ms.saturating_add(1), |ms| {
                    quiet_for(step, &seconds(ms))
                });
            }
            _ => {}
        }
    }

    fn failures(&mut self) {
        let step = self.step;
        if let Some(most) = step.thresholds.failures {
            let window = crate::run::Thresholds::FAILURE_WINDOW_MS;
            if let Some(worst) = step.failures.worst(|at| self.awake(at) <= window) {
                let evidence = format!("{} changes failed{}: {}", worst.count, on(worst.path), worst.summary());
                self.counted(Reason::ToolFailures, "", worst.since, most, worst.count, evidence);
                // Those on one path count no more once they are old; those in a row do at any age.
                if worst.path.is_some() && worst.count >= most {
                    let after = Duration::from_millis(window.saturating_add(1));
                    self.standing.later(self.state.gaps.due(worst.since, after));
                }
            }
        }
        if let (Some(most), Some(repeat)) = (step.thresholds.repeats, &step.repeat) {
            let evidence = format!("{} times in a row: {} {}", repeat.count, repeat.tool, repeat.args);
            let subject = format!("{:016x}", repeat.fingerprint);
            self.counted(Reason::RepeatedCall, &subject, repeat.since, most, repeat.count, evidence);
        }
    }

    fn conflicts(&mut self) {
        for conflict in &self.step.conflicts {
            let other = self.state.step(conflict.other).filter(|s| s.phase == StepPhase::Running);
            if let Some(other) = other {
                let evidence = format!("step {} ({}) changes {} too", other.id.number(), other.title(), conflict.path);
                self.plain(Reason::PathConflict, conflict.path.clone(), conflict.at, evidence);
            }
        }
    }

    fn notes(&mut self) {
        let step = self.step;
        if let Some(retry) = &step.retrying {
            let number = |n: Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
            let evidence = format!("try {} of {}: {}", number(retry.attempt), number(retry.max), retry.reason);
            self.plain(Reason::Retrying, String::new(), retry.since, evidence);
        }
        if let Some(one) = self.state.unannounced.as_ref().filter(|one| one.step == step.id) {
            self.plain(Reason::Unannounced, one.at.millis().to_string(), one.at, one.told.clone());
        }
        // A matter of the whole run: the first step that runs tells it.
        let first = self.state.steps.iter().find(|s| s.phase == StepPhase::Running).is_some_and(|s| s.id == step.id);
        if let Some((since, free)) = self.state.disk_low.filter(|_| first) {
            let evidence = format!("the disk of the run has {} left", crate::text::bytes(free));
            self.plain(Reason::DiskLow, String::new(), since, evidence);
        }
        if !step.held_by.is_empty() {
            let pids: Vec<String> = step.held_by.iter().map(u32::to_string).collect();
            let since = step.last_activity.unwrap_or(self.now);
            let evidence = format!("the child has ended; its output is still held open by pid {}", pids.join(", "));
            self.plain(Reason::OutputHeld, String::new(), since, evidence);
        }
        if let Some(cap) = step.truncated_at {
            let since = step.last_activity.unwrap_or(self.now);
            self.plain(
                Reason::DiskCap,
                String::new(),
                since,
                format!("output is kept up to {}; the rest is lost", crate::text::bytes(cap)),
            );
        }
        for metric in Metric::ALL {
            let of = |used: Used, limits: &Limits| {
                let limit = budget::limit(limits, metric);
                let at = limit.soft.map(|soft| format!("; the warning is at {}", metric.amount(soft)));
                let end = limit.hard.map(|hard| format!(", the end at {}", metric.amount(hard)));
                format!("{}{}{}", used.words(metric), at.unwrap_or_default(), end.unwrap_or_default())
            };
            if let Some(reached) = step.budget.at(metric, Stage::Soft) {
                let evidence = of(Used::all(budget::used(step, metric)), &step.limits);
                self.plain(Reason::BudgetSoft, metric.key().to_owned(), reached.at, evidence);
            }
            if let Some(reached) = self.state.budget.at(metric, Stage::Soft).filter(|_| first) {
                let evidence = format!("the run: {}", of(budget::used_by_run(self.state, metric), &self.state.limits));
                self.plain(Reason::BudgetSoft, format!("run.{}", metric.key()), reached.at, evidence);
            }
        }
    }

    /// It works, but for long: once for each measure.
    fn long_running(&mut self) {
        let step = self.step;
        let Some(started) = step.started_at else { return };
        if let Some(ms) = step.thresholds.long_ms {
            self.timed(Reason::TimeThreshold, String::new(), started, ms, |ms| active_for(&seconds(ms)));
        }
        if let Some(most) = step.thresholds.long_turns {
            let evidence = active_for(&format!("{} turns", step.turn_count));
            self.counted(Reason::TurnThreshold, "", started, most, step.turn_count, evidence);
        }
        if let Some(most) = step.thresholds.long_tokens {
            let tokens = step.tokens.total();
            self.counted(Reason::TokenThreshold, "", started, most, tokens, active_for(&format!("{tokens} tokens")));
        }
    }
}

fn on(path: Option<&str>) -> String {
    path.map_or_else(|| " in a row".to_owned(), |p| format!(" on {p}"))
}
