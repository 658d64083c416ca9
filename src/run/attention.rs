//! Reasons why a person should look at a step (runner-behaviour 4, product 5): which hold now, since when, and why.
//!
//! A rule is a condition, not an alarm: [`conditions`] lists what holds at a moment, [`super::decide`] compares it with
//! what was raised. So a notice ends when its cause ends, and there is one notice for each cause.

use std::time::Duration;

use super::{RunState, StepId, StepPhase, StepState, TargetState, Timestamp};

/// Why somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The agent asks a person something and waits.
    Question,
    /// The agent asks its supervisor something and waits.
    SupervisorRequest,
    /// A message did not reach the step.
    SteerFailed,
    /// A tool is open for long.
    ToolOpen,
    /// The agent said nothing at all since it was started.
    NoFirstEvent,
    /// No sign of life, and no tool is open.
    Idle,
    /// Changes fail again and again.
    ToolFailures,
    /// The same call again and again.
    RepeatedCall,
    /// Another running step changes the same file.
    PathConflict,
    /// It said that it was done without having changed anything, though that was its task.
    CompletionGuard,
    /// Somebody holds the output of a child that has ended.
    OutputHeld,
    /// The provider does not answer; the agent tries again.
    Retrying,
    /// Captured output was cut.
    DiskCap,
    /// The disk that holds the run is nearly full.
    DiskLow,
    /// A soft limit is reached.
    BudgetSoft,
    /// It runs for long.
    TimeThreshold,
    /// It took many turns.
    TurnThreshold,
    /// It used many tokens.
    TokenThreshold,
    /// Something that a foreign file says in a word of its own.
    Other,
}

impl Reason {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 19] = [
        Self::Question,
        Self::SupervisorRequest,
        Self::SteerFailed,
        Self::ToolOpen,
        Self::NoFirstEvent,
        Self::Idle,
        Self::ToolFailures,
        Self::RepeatedCall,
        Self::PathConflict,
        Self::CompletionGuard,
        Self::OutputHeld,
        Self::Retrying,
        Self::DiskCap,
        Self::DiskLow,
        Self::BudgetSoft,
        Self::TimeThreshold,
        Self::TurnThreshold,
        Self::TokenThreshold,
        Self::Other,
    ];

    /// The word that files use (run-directory 2.5; ours in product 5).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::SupervisorRequest => "supervisor_request",
            Self::SteerFailed => "steer_failed",
            Self::ToolOpen => "tool_open_threshold",
            Self::NoFirstEvent => "no_first_event",
            Self::Idle => "idle",
            Self::ToolFailures => "tool_failures",
            Self::RepeatedCall => "repeated_call",
            Self::PathConflict => "path_conflict",
            Self::CompletionGuard => "completion_guard",
            Self::OutputHeld => "output_held",
            Self::Retrying => "retrying",
            Self::DiskCap => "disk_cap",
            Self::DiskLow => "disk_low",
            Self::BudgetSoft => "budget_soft",
            Self::TimeThreshold => "time_threshold",
            Self::TurnThreshold => "turn_threshold",
            Self::TokenThreshold => "token_threshold",
            Self::Other => "other",
        }
    }

    /// The same in words for people, to stand behind the name of a step.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Question => "asks",
            Self::SupervisorRequest => "asks its supervisor",
            Self::SteerFailed => "a message failed",
            Self::ToolOpen => "a tool is open for long",
            Self::NoFirstEvent => "has said nothing yet",
            Self::Idle => "idle",
            Self::ToolFailures => "its changes fail",
            Self::RepeatedCall => "repeats a call",
            Self::PathConflict => "changes what another step changes",
            Self::CompletionGuard => "changed nothing",
            Self::OutputHeld => "its output is held open",
            Self::Retrying => "its provider does not answer",
            Self::DiskCap => "its output is cut",
            Self::DiskLow => "the disk is nearly full",
            Self::BudgetSoft => "near a limit",
            Self::TimeThreshold => "runs for long",
            Self::TurnThreshold => "took many turns",
            Self::TokenThreshold => "used many tokens",
            Self::Other => "needs attention",
        }
    }

    /// From the word; unknown ones are [`Reason::Other`]. `active_long_running` is an older word for the time.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        if word == "active_long_running" {
            return Self::TimeThreshold;
        }
        Self::ALL.into_iter().find(|r| r.as_str() == word).unwrap_or(Self::Other)
    }

    /// How loud it is.
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Self::TimeThreshold | Self::TurnThreshold | Self::TokenThreshold => Level::Busy,
            Self::Retrying | Self::DiskCap | Self::BudgetSoft | Self::OutputHeld => Level::Note,
            _ => Level::Needs,
        }
    }

    /// Whether the package's own readers know the word.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        matches!(
            self,
            Self::SupervisorRequest
                | Self::ToolOpen
                | Self::Idle
                | Self::ToolFailures
                | Self::CompletionGuard
                | Self::TimeThreshold
                | Self::TurnThreshold
                | Self::TokenThreshold
        )
    }
}

/// How loud a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Good to know.
    Note,
    /// It works, but for long.
    Busy,
    /// It needs a person.
    Needs,
}

impl Level {
    /// The `activityState` that files carry for it (run-directory 2.1.1).
    #[must_use]
    pub const fn activity(self) -> Option<&'static str> {
        match self {
            Self::Needs => Some("needs_attention"),
            Self::Busy => Some("active_long_running"),
            Self::Note => None,
        }
    }
}

/// What a threshold is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Milliseconds awake.
    Millis(u64),
    /// A number of something.
    Count(u64),
}

impl Amount {
    /// Whether it has come to the threshold multiplied by two to the power of `times`.
    fn reaches(self, threshold: Self, times: u32) -> bool {
        let grown = |n: u64| n.saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX));
        match (self, threshold) {
            (Self::Millis(a), Self::Millis(t)) | (Self::Count(a), Self::Count(t)) => t > 0 && a >= grown(t),
            _ => false,
        }
    }
}

/// A rule that holds for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which rule.
    pub reason: Reason,
    /// What it is about: a call, a path, a limit. With the reason it names the cause.
    pub subject: String,
    /// Since when it holds, or since when what it is about goes on.
    pub since: Timestamp,
    /// Where the rule begins to hold.
    pub threshold: Option<Amount>,
    /// How far it has come.
    pub amount: Option<Amount>,
    /// What was seen, in a sentence. Made of text from outside.
    pub evidence: String,
}

/// A condition that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Names it among all notices of the run: step, reason, subject.
    pub id: String,
    /// The rule and what was seen when it was told.
    pub condition: Condition,
    /// When it was told first.
    pub raised_at: Timestamp,
    /// How many times it was told.
    pub times: u32,
    /// When somebody took note of it; it is told again at the next threshold, which is twice the last.
    pub acknowledged: Option<Timestamp>,
}

impl Notice {
    /// The name of a condition of a step.
    #[must_use]
    pub fn name(step: StepId, condition: &Condition) -> String {
        let mut id = format!("{}:{}", step.flat(), condition.reason.as_str());
        if !condition.subject.is_empty() {
            id.push(':');
            id.push_str(&condition.subject);
        }
        id
    }

    /// A condition that is told now.
    #[must_use]
    pub fn new(step: StepId, condition: Condition, at: Timestamp) -> Self {
        Self { id: Self::name(step, &condition), condition, raised_at: at, times: 1, acknowledged: None }
    }

    /// How loud it is.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.condition.reason.level()
    }

    /// Whether a person is still to be told.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.acknowledged.is_none()
    }

    /// Whether it is to be told again, now that the condition has come this far.
    #[must_use]
    pub fn again(&self, now: &Condition) -> bool {
        let (Some(threshold), Some(amount)) = (now.threshold, now.amount) else { return false };
        self.acknowledged.is_some() && amount.reaches(threshold, self.times)
    }
}

/// The conditions that hold, and when the next one may begin to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What holds, the most urgent first.
    pub holds: Vec<Condition>,
    /// The earliest moment at which time alone makes another one hold, or makes one that holds louder.
    pub next: Option<Timestamp>,
}

impl Standing {
    fn later(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |n| n.min(at)));
    }
}

/// After this many milliseconds a condition without a threshold of its own is told again once somebody took note of it.
const AGAIN_MS: u64 = 300_000;

/// What needs a look in a step. Nothing does in a step that does not run, or whose child is being ended.
#[must_use]
pub fn conditions(state: &RunState, step: &StepState, now: Timestamp) -> Standing {
    let mut standing = Standing::default();
    let ending = step.ending.as_ref().is_some_and(|e| e.cause != super::EndingCause::Drain);
    if step.phase != StepPhase::Running || ending || !step.thresholds.enabled {
        return standing;
    }
    let mut rules = Rules { state, step, now, standing: &mut standing };
    rules.questions();
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

impl Rules<'_> {
    fn awake(&self, since: Timestamp) -> u64 {
        u64::try_from(self.state.gaps.awake(since, self.now).as_millis()).unwrap_or(u64::MAX)
    }

    fn hold(&mut self, condition: Condition) {
        // What somebody took note of may have to be told again.
        let id = Notice::name(self.step.id, &condition);
        let told = self.step.attention.iter().find(|n| n.id == id && n.acknowledged.is_some());
        if let (Some(told), Some(Amount::Millis(threshold))) = (told, condition.threshold) {
            let times = 1_u64.checked_shl(told.times).unwrap_or(u64::MAX);
            let again = Duration::from_millis(threshold.saturating_mul(times));
            self.standing.later(self.state.gaps.due(condition.since, again));
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
            self.plain(Reason::Question, question.id.clone(), question.asked_at, question.text.clone());
        }
        if let Some(call) = self.step.open.iter().find(|call| call.about.asks) {
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

    /// The oldest call that is open for too long (runner-behaviour 4.3).
    fn tools(&mut self) {
        let rules = &self.step.thresholds;
        let mut waiting: Vec<_> =
            self.step.open.iter().filter_map(|call| rules.tool_open(&call.tool).map(|ms| (call, ms))).collect();
        waiting.sort_by_key(|(call, _)| (call.started_at, call.seq));
        let over = waiting.iter().position(|(call, ms)| self.awake(call.started_at) >= *ms);
        for (index, (call, ms)) in waiting.into_iter().enumerate() {
            if over.is_some_and(|first| first != index) {
                continue;
            }
            let path = call.path.as_ref().map_or_else(String::new, |p| format!(" on {p}"));
            let evidence = |ms| format!("tool '{}' open for {}{path}", call.tool, seconds(ms));
            self.timed(Reason::ToolOpen, call.seq.to_string(), call.started_at, ms, evidence);
        }
    }

    fn silence(&mut self) {
        let step = self.step;
        if !step.open.is_empty() || step.retrying.is_some() || !step.questions.is_empty() || step.next_attempt.is_some()
        {
            return;
        }
        let Some(started) = step.attempts.last().and_then(|a| a.started_at).or(step.started_at) else { return };
        let heard = step.last_activity.filter(|at| *at >= started);
        match (heard, step.thresholds.first_event_ms, step.thresholds.idle_ms) {
            (None, Some(ms), _) if step.runner.is_agent() => {
                let evidence = |ms| format!("no event since it was started {} ago", seconds(ms));
                self.timed(Reason::NoFirstEvent, step.attempt().to_string(), started, ms, evidence);
            }
            (heard, _, Some(ms)) => {
                let since = heard.unwrap_or(started);
                let evidence = |ms| format!("no observed activity for {}", seconds(ms));
                // Longer than the threshold, not as long (runner-behaviour 4.3).
                self.timed(Reason::Idle, String::new(), since, ms.saturating_add(1), evidence);
            }
            _ => {}
        }
    }

    fn failures(&mut self) {
        let step = self.step;
        if let Some(most) = step.thresholds.failures {
            let window = super::Thresholds::FAILURE_WINDOW_MS;
            if let Some((count, path)) = step.failures.worst(|at| self.awake(at) <= window) {
                let since = step.failures.first().unwrap_or(self.now);
                let evidence = format!("{count} changes failed{}: {}", on(path), step.failures.summary());
                self.counted(Reason::ToolFailures, "", since, most, count, evidence);
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
                format!("output is kept up to {cap} bytes; the rest is lost"),
            );
        }
        for metric in super::Metric::ALL {
            let Some(reached) = step.budget.at(metric, super::Stage::Soft) else { continue };
            let limit = super::budget::limit(&step.limits, metric);
            let evidence = format!(
                "{} of {}",
                metric.words(super::budget::used(step, metric)),
                metric.words(limit.hard.or(limit.soft).unwrap_or_default())
            );
            self.plain(Reason::BudgetSoft, metric.key().to_owned(), reached.at, evidence);
        }
    }

    /// It works, but for long: once for each measure.
    fn long_running(&mut self) {
        let step = self.step;
        let Some(started) = step.started_at else { return };
        if let Some(ms) = step.thresholds.long_ms {
            let evidence = |ms| format!("still active after {}", seconds(ms));
            self.timed(Reason::TimeThreshold, String::new(), started, ms, evidence);
        }
        if let Some(most) = step.thresholds.long_turns {
            let evidence = format!("still active after {} turns", step.turn_count);
            self.counted(Reason::TurnThreshold, "", started, most, step.turn_count, evidence);
        }
        if let Some(most) = step.thresholds.long_tokens {
            let tokens = step.tokens.total();
            self.counted(
                Reason::TokenThreshold,
                "",
                started,
                most,
                tokens,
                format!("still active after {tokens} tokens"),
            );
        }
    }
}

fn on(path: Option<&str>) -> String {
    path.map_or_else(|| " in a row".to_owned(), |p| format!(" on {p}"))
}

/// Whole seconds in words.
pub(super) fn seconds(ms: u64) -> String {
    match ms / 1000 {
        s if s < 60 => format!("{s}s"),
        s if s < 3600 => format!("{}m{:02}s", s / 60, s % 60),
        s => format!("{}h{:02}m", s / 3600, s / 60 % 60),
    }
}

/// The steps' notices that a person is to be told, the loudest and then the oldest first.
#[must_use]
pub fn open_notices(state: &RunState) -> Vec<(&StepState, &Notice)> {
    let mut open: Vec<_> = state
        .steps
        .iter()
        .filter(|step| step.phase == StepPhase::Running)
        .flat_map(|step| step.attention.iter().filter(|n| n.is_open()).map(move |n| (step, n)))
        .collect();
    open.sort_by_key(|(step, n)| (std::cmp::Reverse(n.level()), n.condition.reason, n.condition.since, step.id));
    open
}
