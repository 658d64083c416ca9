//! Steering: messages to running children and what became of each (run-directory 2.2, 3.3 to 3.7).

use super::{StepId, Timestamp};

/// What a request to steer is called among requests of other kinds.
pub const MESSAGE: &str = "message";

/// How a message is to reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteerMode {
    /// Into the running turn, as soon as the agent can.
    #[default]
    Steer,
    /// After the running turn.
    FollowUp,
    /// Whatever fits what the agent does just now.
    Auto,
}

impl SteerMode {
    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "follow_up",
            Self::Auto => "auto",
        }
    }

    /// From the word that files use; `follow-up` is accepted too.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "steer" => Some(Self::Steer),
            "follow_up" | "follow-up" => Some(Self::FollowUp),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }
}

/// A message to one or more steps.
#[derive(Clone, Debug, PartialEq)]
pub struct SteerRequest {
    /// 1 to 256 characters without white space.
    pub id: String,
    /// When it was written.
    pub requested_at: Timestamp,
    /// Who asked: the short word that files carry.
    pub source: Option<String>,
    /// How it is to arrive.
    pub mode: SteerMode,
    /// The message itself, at most [`SteerRequest::MAX_BYTES`]. Empty in requests that were read back from a log.
    pub message: String,
    /// The first part of the message (at most 160 characters); files keep only this.
    pub preview: String,
    /// One entry a target, in the order asked for.
    pub targets: Vec<SteerTarget>,
}

impl SteerRequest {
    /// Largest message in UTF-8 bytes (run-directory 3.3).
    pub const MAX_BYTES: usize = 131_072;
    /// How many requests a step's and a run's record keep (run-directory 2.2).
    pub const KEPT: usize = 20;
    /// How many follow-ups may wait in one child (run-directory 3.5).
    pub const QUEUE_LIMIT: usize = 20;
}

/// One target of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct SteerTarget {
    /// Which step; may name one that does not exist.
    pub step: StepId,
    /// Where the request is for this target.
    pub state: TargetState,
    /// When it was handed on.
    pub routed_at: Option<Timestamp>,
    /// When the model got it.
    pub delivered_at: Option<Timestamp>,
    /// When it failed.
    pub failed_at: Option<Timestamp>,
    /// Why it failed.
    pub reason: Option<String>,
}

/// Where a request is for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetState {
    /// The step has not started; the message waits for it.
    Scheduled,
    /// Handed to the child.
    Routed,
    /// The agent took it and will give it to the model later.
    Queued,
    /// The model got it.
    Delivered,
    /// Delivered after the sender had given up.
    Late,
    /// It did not arrive.
    Failed,
    /// The sender went on in another run.
    Recovered,
    /// A word this version does not know.
    Unknown,
}

impl TargetState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Scheduled,
        Self::Routed,
        Self::Queued,
        Self::Delivered,
        Self::Late,
        Self::Failed,
        Self::Recovered,
        Self::Unknown,
    ];

    /// The word that files use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Routed => "routed",
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Late => "late",
            Self::Failed => "failed",
            Self::Recovered => "recovered",
            Self::Unknown => "unknown",
        }
    }

    /// From the word that files use.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        // As pi-subagents calls it (run-directory 2.2).
        let word = if word == "pending" { "routed" } else { word };
        Self::ALL.into_iter().find(|state| state.as_str() == word).unwrap_or(Self::Unknown)
    }

    /// Whether the request can still move for this target.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Scheduled | Self::Routed | Self::Queued)
    }
}

/// What was asked of a run or a step. Files also hold counters of events; those are kept to be written, but
/// what is true is computed from the targets (run-directory 2.2, trap 12).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steering {
    /// How many requests came.
    pub requested: u64,
    /// How many targets were scheduled.
    pub scheduled: u64,
    /// How many targets are routed or queued now. The reference counts one that is first routed and then queued twice, and
    /// never takes that back.
    pub pending: u64,
    /// How many targets were delivered.
    pub delivered: u64,
    /// How many targets failed.
    pub failed: u64,
    /// How many targets were recovered.
    pub recovered: u64,
    /// When the newest request came.
    pub last_requested_at: Option<Timestamp>,
    /// When the newest delivery was.
    pub last_delivered_at: Option<Timestamp>,
    /// The newest [`SteerRequest::KEPT`] requests, oldest first.
    pub recent: Vec<SteerRequest>,
    /// Older ones that are still open for a target, oldest first: each gets its end. Documents do not hold them.
    pub older: Vec<SteerRequest>,
}

impl Steering {
    /// Takes a new request in; what is decided of its targets already counts.
    pub fn add(&mut self, request: SteerRequest) {
        self.requested += 1;
        self.last_requested_at = Some(request.requested_at);
        for target in &request.targets {
            match target.state {
                TargetState::Scheduled => self.scheduled += 1,
                TargetState::Routed | TargetState::Queued => self.pending += 1,
                TargetState::Failed => self.failed += 1,
                _ => {}
            }
        }
        self.recent.push(request);
        if self.recent.len() > SteerRequest::KEPT {
            let surplus = self.recent.len() - SteerRequest::KEPT;
            let is_open = |request: &SteerRequest| request.targets.iter().any(|target| target.state.is_open());
            self.older.extend(self.recent.drain(..surplus).filter(is_open));
        }
    }

    /// The requests that are known, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &SteerRequest> {
        self.older.iter().chain(&self.recent)
    }

    /// Moves one target; unknown requests and targets are ignored (run-directory 3.6).
    pub fn advance(&mut self, id: &str, step: StepId, to: TargetState, detail: Option<&str>, at: Timestamp) {
        let Some(target) = self
            .older
            .iter_mut()
            .chain(&mut self.recent)
            .rev()
            .find(|r| r.id == id)
            .and_then(|r| r.targets.iter_mut().find(|t| t.step == step))
        else {
            return;
        };
        if target.state == to || !target.state.is_open() {
            return;
        }
        let waits = |state| matches!(state, TargetState::Routed | TargetState::Queued);
        match (waits(target.state), waits(to)) {
            (false, true) => self.pending += 1,
            (true, false) => self.pending = self.pending.saturating_sub(1),
            _ => {}
        }
        target.state = to;
        match to {
            TargetState::Scheduled => self.scheduled += 1,
            TargetState::Routed => target.routed_at = Some(at),
            TargetState::Queued => {}
            TargetState::Delivered | TargetState::Late => {
                target.delivered_at = Some(at);
                self.delivered += 1;
                self.last_delivered_at = Some(at);
            }
            TargetState::Failed => {
                target.failed_at = Some(at);
                target.reason = detail.map(str::to_owned);
                self.failed += 1;
            }
            TargetState::Recovered => self.recovered += 1,
            TargetState::Unknown => {}
        }
        self.older.retain(|request| request.targets.iter().any(|target| target.state.is_open()));
    }

    /// Where a request is for a step.
    #[must_use]
    pub fn target(&self, id: &str, step: StepId) -> Option<&SteerTarget> {
        self.all().rev().find(|r| r.id == id)?.targets.iter().find(|t| t.step == step)
    }

    /// Requests that are still open for a step: `(request id, state)`, oldest first.
    pub fn open_for(&self, step: StepId) -> impl Iterator<Item = (&SteerRequest, TargetState)> {
        self.all().flat_map(move |request| {
            request.targets.iter().filter(move |t| t.step == step && t.state.is_open()).map(move |t| (request, t.state))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_once_and_only_until_it_arrived_or_failed() {
        use TargetState::{Delivered, Failed, Late, Queued, Routed, Scheduled};
        let at = Timestamp::from_millis(1);
        for (way, pending, delivered, failed) in [
            (vec![Routed], 1, 0, 0),
            (vec![Routed, Queued], 1, 0, 0),
            (vec![Routed, Delivered], 0, 1, 0),
            (vec![Routed, Queued, Delivered], 0, 1, 0),
            (vec![Scheduled, Routed, Queued, Late], 0, 1, 0),
            (vec![Scheduled], 0, 0, 0),
            (vec![Scheduled, Failed], 0, 0, 1),
            (vec![Routed, Queued, Failed, Delivered], 0, 0, 1),
        ] {
            let target = SteerTarget {
                step: StepId::default(),
                state: way[0],
                routed_at: None,
                delivered_at: None,
                failed_at: None,
                reason: None,
            };
            let request = SteerRequest {
                id: "r".into(),
                requested_at: at,
                source: None,
                mode: SteerMode::Steer,
                message: String::new(),
                preview: String::new(),
                targets: vec![target],
            };
            let mut steering = Steering::default();
            steering.add(request);
            way[1..].iter().for_each(|to| steering.advance("r", StepId::default(), *to, None, at));
            let found = (steering.requested, steering.pending, steering.delivered, steering.failed);
            assert_eq!(found, (1, pending, delivered, failed), "{way:?}");
        }
    }

    #[test]
    fn an_open_request_is_known_until_its_end_however_many_come_after_it() {
        let at = Timestamp::from_millis(1);
        let step = StepId(3);
        let most = 3 * SteerRequest::KEPT;
        let mut steering = Steering::default();
        for n in 0..most {
            let target = SteerTarget {
                step,
                state: TargetState::Routed,
                routed_at: None,
                delivered_at: None,
                failed_at: None,
                reason: None,
            };
            steering.add(SteerRequest {
                id: n.to_string(),
                requested_at: at,
                source: None,
                mode: SteerMode::FollowUp,
                message: String::new(),
                preview: String::new(),
                targets: vec![target],
            });
            // Some are settled before they are old.
            if n % 3 == 0 {
                steering.advance(&n.to_string(), step, TargetState::Delivered, None, at);
            }
        }
        assert_eq!(steering.recent.len(), SteerRequest::KEPT);
        let open: Vec<String> = steering.open_for(step).map(|(request, _)| request.id.clone()).collect();
        let expected: Vec<String> = (0..most).filter(|n| n % 3 != 0).map(|n| n.to_string()).collect();
        assert_eq!(open, expected);
        assert_eq!(steering.target("1", step).map(|target| target.state), Some(TargetState::Routed));
        open.iter().for_each(|id| steering.advance(id, step, TargetState::Failed, None, at));
        assert_eq!((steering.open_for(step).count(), steering.older.len()), (0, 0));
        assert_eq!((steering.pending, steering.failed, steering.delivered), (0, 40, 20));
    }
}
