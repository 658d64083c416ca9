//! Tables of limits and rules: each at its moment and not a millisecond before, and over when its cause is.

use super::*;
use crate::run::{
    AgentEvent, Answer, AnsweredBy, Asking, CallFacts, CostUsd, Event, ExitCause, InnerRun, Limit, Limits, MessageRole,
    Question, RunId, RunMeta, RunPhase, RunnerKind, SteerMode, SteerRequest, SteerTarget, StepMeta, StepOutcome,
    StopReason, TargetState, Thresholds, Tokens, ToolBlock, ToolOutcome, TurnLimit, Usage, What, exit_code, reduce,
};

mod attempts;
mod ends;
mod limits;
mod needs;

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

const STEP: StepId = StepId(0);

/// What a step is granted and watched by; by itself nothing.
fn meta() -> StepMeta {
    let off = Thresholds {
        idle_ms: None,
        tool_open_ms: None,
        long_ms: None,
        failures: None,
        first_event_ms: None,
        repeats: None,
        ..Thresholds::default()
    };
    StepMeta { runner: RunnerKind::PiJson, thresholds: off, has_task: true, ..StepMeta::default() }
}

fn watched(set: impl FnOnce(&mut Thresholds)) -> StepMeta {
    let mut meta = meta();
    set(&mut meta.thresholds);
    meta
}

fn limited(set: impl FnOnce(&mut Limits)) -> StepMeta {
    let mut meta = meta();
    set(&mut meta.limits);
    meta
}

/// A run that is decided for as an engine does, with time at hand.
struct Play {
    state: RunState,
    now: i64,
    /// When, and what was done.
    done: Vec<(i64, String)>,
}

impl Play {
    /// Children that run since 0.
    fn new(steps: Vec<StepMeta>, run: RunMeta) -> Self {
        let count = u32::try_from(steps.len()).unwrap();
        let mut play = Self { state: RunState::default(), now: 0, done: Vec::new() };
        play.reduce(What::RunStarted(Box::new(RunMeta { steps, ..run })));
        for step in (0..count).map(StepId) {
            play.reduce(What::StepStarted { step });
            play.reduce(What::AttemptStarted { step, attempt: 1, model: None, reason: None });
            play.reduce(What::ChildSpawned { step, pid: 7, start_ticks: None });
        }
        play
    }

    fn of(step: StepMeta) -> Self {
        Self::new(vec![step], RunMeta::default())
    }

    fn reduce(&mut self, what: What) {
        reduce(&mut self.state, &Event { at: ms(self.now), what });
    }

    /// Lets time pass, and does what is due at its moment.
    fn until(&mut self, end: i64) -> &mut Self {
        loop {
            let decision = decide(&self.state, ms(self.now));
            for effect in &decision.due {
                let (word, what) = perform(effect);
                self.done.push((self.now, word));
                self.reduce(what);
            }
            if !decision.due.is_empty() {
                continue;
            }
            let Some(next) = decision.next.map(Timestamp::millis).filter(|next| *next <= end) else { break };
            assert!(next > self.now, "what lies in the past is due");
            let before = decide(&self.state, ms(next - 1)).due;
            assert_eq!(before, [], "nothing is due a millisecond before {next}");
            self.now = next;
        }
        self.now = end;
        self
    }

    /// Something happens at a moment.
    fn at(&mut self, at: i64, what: What) -> &mut Self {
        self.until(at).reduce(what);
        self
    }

    fn says(&mut self, at: i64, event: AgentEvent) -> &mut Self {
        self.at(at, What::Agent { step: STEP, event })
    }

    fn done(&self) -> Vec<(i64, &str)> {
        self.done.iter().map(|(at, what)| (*at, what.as_str())).collect()
    }
}

/// What is done in a word, and its record.
fn perform(effect: &Effect) -> (String, What) {
    match effect.clone() {
        Effect::End { step, cause, message } => {
            (cause.as_str().to_owned(), What::StepEnding { step, cause, message, source: None })
        }
        Effect::TimeOutRun => ("run".into(), What::RunTimedOut { timeout_ms: None, message: "t".into(), source: None }),
        Effect::Reach { step, metric, stage, used, message } => {
            let of = if step.is_some() { "" } else { "run " };
            (
                format!("{of}{} {}", metric.key(), stage.as_str()),
                What::BudgetReached { step, metric, stage, used, message },
            )
        }
        Effect::Raise { step, notice } => {
            let again = if notice.times > 1 { " again" } else { "" };
            (format!("raise {}{again}", notice.condition.reason.as_str()), What::AttentionRaised { step, notice })
        }
        Effect::Clear { step, id } => {
            (format!("clear {}", id.split(':').nth(1).unwrap()), What::AttentionCleared { step, id })
        }
        Effect::Signal { step, signal, group, cause } => {
            (signal.to_owned(), What::SignalSent { step, signal, pid: 7, group, cause })
        }
        Effect::Expire { step, id } => {
            let (text, answer, by) = (String::new(), Answer::Deny(None), AnsweredBy::Timeout);
            (format!("expire {id}"), What::QuestionAnswered { step, id, text, answer, by, source: None })
        }
        Effect::Abort(step) => ("abort".into(), What::AbortSent { step }),
        Effect::Again(step) => ("again".into(), What::AttemptStarted { step, attempt: 2, model: None, reason: None }),
        Effect::GiveUp(step) => ("give up".into(), What::StepEnded { step, outcome: Box::default() }),
    }
}

fn open(id: &str, tool: &str) -> AgentEvent {
    let about = CallFacts { fingerprint: 1, ..CallFacts::default() };
    AgentEvent::ToolStarted { call: Some(id.into()), tool: tool.into(), args: String::new(), path: None, about }
}

fn about(id: &str, tool: &str, about: CallFacts) -> AgentEvent {
    let (call, path) = (Some(id.into()), Some("a.rs".into()));
    AgentEvent::ToolStarted { call, tool: tool.into(), args: String::new(), path, about }
}

fn close(id: &str, outcome: ToolOutcome) -> AgentEvent {
    AgentEvent::ToolEnded { call: Some(id.into()), tool: None, outcome, preview: "said".into() }
}

fn turn(tokens: u64, cost: f64, last: bool) -> AgentEvent {
    AgentEvent::Message {
        role: MessageRole::Assistant,
        preview: String::new(),
        model: None,
        stop: Some(if last { StopReason::Stop } else { StopReason::ToolUse }),
        usage: Some(Usage { tokens: Tokens { input: tokens, ..Tokens::default() }, cost: Some(CostUsd(cost)) }),
        error: None,
        calls_tools: !last,
    }
}

fn ended() -> AgentEvent {
    AgentEvent::TurnEnded
}
