//! Reasons why a person should look at a step (runner-behaviour 4, product 5): which hold now, since when, and why.
//!
//! A rule is a condition, not an alarm: [`conditions`] lists what holds at a moment, [`super::decide`] compares it with
//! what was raised. So a notice ends when its cause ends, and there is one notice for each cause.

mod rules;

pub use rules::{conditions, seen};

use super::{RunState, StepId, StepPhase, StepState, Timestamp};
use crate::text::clock;

/// Why somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The agent asks a person something and waits.
    Question,
    /// The agent asks its supervisor something and waits.
    SupervisorRequest,
    /// Somebody unknown asked for something, and it was done.
    Unannounced,
    /// A run that was started in the step needs a person.
    InnerRun,
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
    pub const ALL: [Self; 21] = [
        Self::Question,
        Self::SupervisorRequest,
        Self::Unannounced,
        Self::InnerRun,
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
            Self::Unannounced => "control_unannounced",
            Self::InnerRun => "inner_run",
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

    /// The key of a plan's `attention` that sets when it is told, where there is one.
    #[must_use]
    pub const fn key(self) -> Option<&'static str> {
        match self {
            Self::ToolOpen => Some("tool_open"),
            Self::NoFirstEvent => Some("no_first_event"),
            Self::Idle => Some("idle"),
            Self::ToolFailures => Some("tool_failures"),
            Self::RepeatedCall => Some("repeated_calls"),
            Self::TimeThreshold => Some("long_running"),
            Self::TurnThreshold => Some("long_running_turns"),
            Self::TokenThreshold => Some("long_running_tokens"),
            _ => None,
        }
    }

    /// The same in words for people, to stand behind the name of a step.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Question => "asks",
            Self::SupervisorRequest => "asks its supervisor",
            Self::Unannounced => "obeyed somebody unknown",
            Self::InnerRun => "its inner run needs you",
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
            Self::BudgetSoft => "warning reached",
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

    /// Whether it says that no life is seen.
    #[must_use]
    pub const fn is_silence(self) -> bool {
        matches!(self, Self::Idle | Self::NoFirstEvent | Self::ToolOpen)
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
    /// The first doubling of the threshold `self` that lies beyond `noted`, and is no less than the `times`th. `None` where
    /// there is none.
    fn doubled_beyond(self, noted: Option<Self>, times: u32) -> Option<Self> {
        let next = |threshold: u64, noted: u64| {
            let mut next = threshold.saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX));
            while next > 0 && next <= noted && next < u64::MAX {
                next = next.saturating_mul(2);
            }
            Some(next).filter(|n| *n > 0)
        };
        match (self, noted) {
            (Self::Millis(threshold), Some(Self::Millis(noted))) => next(threshold, noted).map(Self::Millis),
            (Self::Count(threshold), Some(Self::Count(noted))) => next(threshold, noted).map(Self::Count),
            (Self::Millis(threshold), _) => next(threshold, 0).map(Self::Millis),
            (Self::Count(threshold), _) => next(threshold, 0).map(Self::Count),
        }
    }

    /// Whether it has come as far as `other`, which is measured in the same.
    const fn reaches(self, other: Self) -> bool {
        match (self, other) {
            (Self::Millis(a), Self::Millis(b)) | (Self::Count(a), Self::Count(b)) => a >= b,
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
    /// The rule and what was seen when it was told, or when somebody took note of it since.
    pub condition: Condition,
    /// When it was told first.
    pub raised_at: Timestamp,
    /// How many times it was told.
    pub times: u32,
    /// When somebody took note of it; it is told again at the next doubling of the threshold that lay ahead then.
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
        self.again_at(now).zip(now.amount).is_some_and(|(at, amount)| amount.reaches(at))
    }

    /// How far the condition has to come to be told again; `None` while nobody took note of the last time.
    fn again_at(&self, now: &Condition) -> Option<Amount> {
        self.acknowledged?;
        now.threshold?.doubled_beyond(self.condition.amount, self.times)
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

impl Condition {
    /// What was seen, with its time as clocks show it, where a time was its amount.
    #[must_use]
    pub fn on_clock(&self) -> String {
        match self.amount {
            Some(Amount::Millis(ms)) => {
                self.evidence.replacen(&seconds(ms), &clock(std::time::Duration::from_millis(ms)), 1)
            }
            _ => self.evidence.clone(),
        }
    }
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
        .flat_map(|step| step.attention.iter().filter(|n| n.is_open() && !step.is_void(n)).map(move |n| (step, n)))
        .collect();
    open.sort_by_key(|(step, n)| (std::cmp::Reverse(n.level()), n.condition.reason, n.condition.since, step.id));
    open
}
