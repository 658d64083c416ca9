//! Who needs a person, as scripts and lists tell it.

use std::borrow::Cow;

use super::{InnerRun, Level, Reason, RunState, StepPhase, StepState, Timestamp, attention};
use crate::text::SafeText;

/// A reason why a step needs a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Need<'s> {
    /// The step.
    pub step: &'s StepState,
    /// The rule.
    pub reason: Reason,
    /// The id of the notice; a foreign status has none.
    pub id: Option<&'s str>,
    /// What was seen when it was told, in a sentence; empty where nobody says. Text from outside.
    pub evidence: Cow<'s, str>,
    /// Since when, where it is known.
    pub since: Option<Timestamp>,
}

/// What needs a person and nobody took note of, the most urgent first. Only of steps that run: what a file says of
/// others is left over (runner-behaviour 14.8).
#[must_use]
pub fn needs(state: &RunState) -> Vec<Need<'_>> {
    let told = attention::open_notices(state).into_iter().filter(|(_, n)| n.level() == Level::Needs);
    let mut all: Vec<Need<'_>> = told
        .map(|(step, notice)| Need {
            step,
            reason: notice.condition.reason,
            id: Some(&notice.id),
            evidence: notice.condition.evidence.as_str().into(),
            since: Some(notice.condition.since),
        })
        .collect();
    // A foreign status says that something is wrong; what, only its log may say.
    let bare = state.steps.iter().filter(|s| {
        s.phase == StepPhase::Running
            && s.activity.as_deref() == Level::Needs.activity()
            && s.attention.iter().all(|n| n.level() != Level::Needs)
            && !s.is_excused()
            // What is needed inside is told by name.
            && s.inner.iter().all(|run| run.needs.is_none())
    });
    all.extend(bare.map(|step| Need { step, reason: Reason::Other, id: None, evidence: "".into(), since: None }));
    // Nor does the runner of others look at what was started in its steps.
    for step in state.steps.iter().filter(|s| s.phase == StepPhase::Running) {
        let told = |run: &InnerRun| {
            step.attention.iter().any(|n| n.condition.reason == Reason::InnerRun && n.condition.subject == run.id.0)
        };
        for run in step.inner.iter().filter(|run| !told(run)) {
            let (Some(asks), Some((_, since))) = (run.asks(), &run.needs) else { continue };
            all.push(Need { step, reason: Reason::InnerRun, id: None, evidence: asks.into(), since: Some(*since) });
        }
    }
    all
}

impl Need<'_> {
    /// The step and the reason in words, short: `reviewer: idle`.
    #[must_use]
    pub fn short(&self) -> SafeText {
        SafeText::line(&format!("{}: {}", self.step.title(), self.reason.words()))
    }

    /// The step, the reason and what is to be seen now: `2 reviewer: idle: no observed activity for 1m05s`.
    #[must_use]
    pub fn line(&self, state: &RunState, now: Timestamp) -> SafeText {
        let told = |span: std::time::Duration| attention::seconds(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        let evidence = match attention::seen(state, self.step, self.reason, now, told) {
            Some(seen) => format!(": {seen}"),
            None if self.evidence.is_empty() => String::new(),
            None => format!(": {}", self.evidence),
        };
        SafeText::line(&format!("{} {}{evidence}", self.step.id.number(), self.short()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Condition, Notice, StepId};

    fn notice(step: u32, reason: Reason, since: i64) -> Notice {
        let since = Timestamp::from_millis(since);
        let evidence = "seen \u{1b}[31mthus".to_owned();
        let condition = Condition { reason, subject: String::new(), since, threshold: None, amount: None, evidence };
        Notice::new(StepId(step), condition, since)
    }

    #[test]
    fn only_what_needs_a_person_now_is_told_the_most_urgent_first() {
        let step = |id, attention| StepState {
            id: StepId(id),
            key: format!("s{id}"),
            phase: StepPhase::Running,
            attention,
            ..StepState::default()
        };
        let noted = Notice { acknowledged: Some(Timestamp::from_millis(9)), ..notice(0, Reason::Question, 1) };
        let foreign = StepState { activity: Some("needs_attention".to_owned()), ..step(3, vec![]) };
        let ended = StepState { phase: StepPhase::Complete, ..step(4, vec![notice(4, Reason::Idle, 1)]) };
        let busy = step(1, vec![notice(1, Reason::TimeThreshold, 1), notice(1, Reason::BudgetSoft, 1)]);
        let steps = vec![
            step(0, vec![noted, notice(0, Reason::Idle, 5)]),
            busy,
            step(2, vec![notice(2, Reason::SupervisorRequest, 8)]),
            foreign,
            ended,
        ];
        let state = RunState { steps, ..RunState::default() };
        let lines: Vec<String> =
            needs(&state).iter().map(|n| n.line(&state, Timestamp::default()).to_string()).collect();
        let begins = ["3 s2: asks its supervisor: seen ", "1 s0: idle: seen ", "4 s3: needs attention"];
        assert_eq!(lines.len(), begins.len(), "{lines:?}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin) && !line.contains('\u{1b}'), "{line:?}");
        }
    }

    #[test]
    fn a_time_that_goes_on_is_told_as_it_is_now() {
        let mut idle = notice(0, Reason::Idle, 5);
        idle.condition.evidence = "no observed activity for 1m00s".to_owned();
        let mut silent = notice(1, Reason::NoFirstEvent, 5);
        silent.condition.evidence = "no event since it was started 2m00s ago".to_owned();
        let step = |id, heard, notice| StepState {
            id: StepId(id),
            key: format!("s{id}"),
            phase: StepPhase::Running,
            heard,
            started_at: Some(Timestamp::from_millis(0)),
            last_activity: Some(Timestamp::from_millis(60_000)),
            attention: vec![notice],
            ..StepState::default()
        };
        let state = RunState { steps: vec![step(0, true, idle), step(1, false, silent)], ..RunState::default() };
        let at = Timestamp::from_millis(600_000);
        let mut lines: Vec<String> = needs(&state).iter().map(|need| need.line(&state, at).to_string()).collect();
        lines.sort();
        let expected = [
            "1 s0: idle: no observed activity for 9m00s",
            "2 s1: has said nothing yet: no event since it was started 10m00s ago",
        ];
        assert_eq!(lines, expected);
        // What was told stays as it was told.
        assert!(needs(&state).iter().all(|need| need.evidence.contains("m00s") && !need.evidence.contains("9m")));
    }

    #[test]
    fn a_step_whose_needs_were_all_noted_needs_nobody() {
        let noted = Notice { acknowledged: Some(Timestamp::from_millis(9)), ..notice(0, Reason::Idle, 1) };
        let step = StepState {
            phase: StepPhase::Running,
            activity: Some("needs_attention".to_owned()),
            attention: vec![noted],
            ..StepState::default()
        };
        assert_eq!(needs(&RunState { steps: vec![step], ..RunState::default() }), []);
    }
}
