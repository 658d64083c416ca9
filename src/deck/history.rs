//! What just happened: the newest events as lines of the ticker, and by step for the tabs of a zoomed one. Bounded;
//! everything older is in the run's event log.

use std::collections::{BTreeMap, VecDeque};

use super::said::{Called, REDACTED, Said, asked, has_text, is_nameless, said};
use crate::run::replay::Spot;
use crate::run::{
    AgentEvent, Event, MessageRole, Metric, Reason, RunPhase, RunState, STOPPED, Stage, StepFace, StepId, StepPhase,
    SubAgentDid, TargetState, Timestamp, ToolOutcome, What, broken_off, cause, words,
};
use crate::rundir::LeftOut;
use crate::text::{SafeText, clock, cost};

/// The newest events.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// For the ticker, oldest first.
    pub ticker: VecDeque<Entry>,
    /// For a step's own tabs, oldest first.
    pub steps: BTreeMap<StepId, VecDeque<Entry>>,
    /// What became of limits, oldest first: they are few and matter long.
    pub budget: VecDeque<Entry>,
    /// What was said, by step, oldest first.
    pub said: BTreeMap<StepId, VecDeque<Said>>,
    /// The steps of which older entries are not here, and whether what was said is among that.
    cut: BTreeMap<StepId, bool>,
    /// An event told that the runner was lost; whoever found that out himself has none.
    lost: bool,
    /// The number of the newest event.
    newest: u64,
    /// Something stood in no recording, or came in another order: the numbers are those of this history only.
    loose: bool,
    /// How many are kept in all rings of steps.
    kept: usize,
    /// How often the rings of steps were made half as long, because there are so many of them.
    halved: u32,
}

/// How an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something goes on.
    Plain,
    /// A tool was used.
    Tool,
    /// The model said something.
    Said,
    /// A person or the runner said something to the model.
    Told,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Somebody asked for something, or it was done.
    Control,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// To which step; `None` is the run.
    pub step: Option<StepId>,
    /// What, in a line.
    pub text: SafeText,
    /// How it is meant.
    pub tone: Tone,
    /// Its number among all entries; later ones are larger. Of what was recorded it is that of [`Spot`].
    pub seq: u64,
    /// Where its record begins in the event log, where that is known.
    pub place: Option<u64>,
}

impl Entry {
    /// Says of the end of a call which one it was, where nothing else tells.
    #[must_use]
    pub fn naming(self, event: &Event, called: Option<Called<'_>>) -> Self {
        let (What::Agent { event: AgentEvent::ToolEnded { outcome, preview, .. }, .. }, Some(called)) =
            (&event.what, called)
        else {
            return self;
        };
        let rest = if has_text(preview) { preview } else { called.args };
        Self { text: SafeText::line(&ended(Some(called.tool), *outcome, rest)), ..self }
    }
}

impl History {
    /// How many entries each ring keeps.
    pub const KEPT: usize = 500;
    /// How many all rings of steps keep together: the more steps there are the fewer are kept of each.
    pub const OF_ALL: usize = 20_000;

    /// Takes events in, in their order; `spots` tells where they stand, as far as that is known.
    pub fn add(&mut self, state: &RunState, events: &[Event], spots: &[Spot]) {
        for (n, event) in events.iter().enumerate() {
            let spot = spots.get(n).copied().unwrap_or_default();
            let place = spot.record;
            // What stands in no recording, or was recorded before what is here, is numbered as it comes.
            let number = spot.number.filter(|number| *number > self.newest);
            self.loose |= number.is_none();
            self.newest = number.unwrap_or(self.newest + 1);
            let seq = self.newest;
            self.lost |= matches!(event.what, What::RunLost { .. });
            let entry = tell(state, event).map(|entry| Entry { seq, place, ..entry });
            let entry = entry.map(|entry| entry.naming(event, self.called(state, event)));
            if let What::Agent { step, event: agent } = &event.what
                && let Some(what) = said(state, *step, agent)
            {
                let what = what.naming(self.called(state, event));
                let quota = self.quota();
                let ring = self.said.entry(*step).or_default();
                if ring.len() >= quota {
                    self.cut.insert(*step, true);
                }
                self.kept += keep(ring, Said { seq, at: event.at, place, what }, quota);
            }
            match (&event.what, &entry) {
                // Elsewhere it is told as a notice, which says no number.
                (What::BudgetReached { step, stage: Stage::Soft, metric, used, .. }, _) => {
                    let used = if *metric == Metric::Cost { used.told(cost) } else { used.words(*metric) };
                    let text = SafeText::line(&format!("warning reached: {used}"));
                    let entry = Entry { at: event.at, step: *step, text, tone: Tone::Control, seq, place };
                    keep(&mut self.budget, entry, Self::KEPT);
                }
                (What::BudgetReached { .. } | What::BudgetRaised { .. }, Some(entry)) => {
                    keep(&mut self.budget, entry.clone(), Self::KEPT);
                }
                _ => {}
            }
            let Some(entry) = entry else { continue };
            if let Some(step) = entry.step {
                let quota = self.quota();
                let ring = self.steps.entry(step).or_default();
                if ring.len() >= quota {
                    self.cut.entry(step).or_default();
                }
                self.kept += keep(ring, entry.clone(), quota);
            }
            keep(&mut self.ticker, entry, Self::KEPT);
            // Records of two writers may stand in another order than that of their times.
            let mut at = self.ticker.len().saturating_sub(1);
            for _ in 0..LATE {
                let earlier = |n: usize| self.ticker.get(n).map(|entry| entry.at);
                if at == 0 || earlier(at - 1) <= earlier(at) {
                    break;
                }
                self.ticker.swap(at - 1, at);
                at -= 1;
            }
            self.bound();
        }
        self.bound();
    }

    /// The call that an event ended, where the event itself does not tell which one it was.
    fn called<'a>(&'a self, state: &'a RunState, event: &Event) -> Option<Called<'a>> {
        let What::Agent { step, event: agent } = &event.what else { return None };
        if !is_nameless(agent) {
            return None;
        }
        // Of many events that come at once the run knows the last calls only.
        let ring = self.said.get(step).into_iter().flatten();
        Called::of(state, *step, event.at, agent).or_else(|| Called::among(ring, agent))
    }

    /// How long a ring of a step may be.
    fn quota(&self) -> usize {
        (Self::KEPT >> self.halved.min(usize::BITS - 1)).max(1)
    }

    /// Keeps all rings of steps together within their bound.
    fn bound(&mut self) {
        while self.kept > Self::OF_ALL && self.quota() > 1 {
            self.halved += 1;
            let quota = self.quota();
            let (mut steps, mut said) = (0, 0);
            for (step, ring) in &mut self.steps {
                if ring.len() > quota {
                    self.cut.entry(*step).or_default();
                }
                ring.drain(..ring.len().saturating_sub(quota));
                ring.shrink_to_fit();
                steps += ring.len();
            }
            for (step, ring) in &mut self.said {
                if ring.len() > quota {
                    self.cut.insert(*step, true);
                }
                ring.drain(..ring.len().saturating_sub(quota));
                ring.shrink_to_fit();
                said += ring.len();
            }
            self.kept = steps + said;
        }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let steps = self.steps.values().flatten();
        let entries = self.ticker.iter().chain(&self.budget).chain(steps);
        let texts: usize = entries.map(|entry| entry.text.as_str().len() + size_of::<Entry>()).sum();
        texts + self.said.values().flatten().map(Said::weight).sum::<usize>()
    }

    /// Takes in of which steps older events were left out before they came here. What came before those is let go of too, so
    /// that nothing is missing among what is kept.
    pub fn miss(&mut self, cut: &BTreeMap<StepId, LeftOut>) {
        for (step, left) in cut {
            *self.cut.entry(*step).or_default() |= left.said.is_some();
            if self.loose {
                // Nobody lists the others, and a gap says more than nothing.
                continue;
            }
            if let Some(said) = self.said.get_mut(step) {
                let old = said.partition_point(|said| Some(said.seq) < left.said);
                said.drain(..old);
                self.kept = self.kept.saturating_sub(old);
            }
            if let Some(told) = self.steps.get_mut(step) {
                let old = told.partition_point(|entry| Some(entry.seq) < left.said.max(left.other));
                told.drain(..old);
                self.kept = self.kept.saturating_sub(old);
            }
        }
    }

    /// Whether there are older entries of a step than these, `said`: of what was said.
    #[must_use]
    pub fn is_cut(&self, step: StepId, said: bool) -> bool {
        self.cut.get(&step).is_some_and(|of_said| *of_said || !said)
    }

    /// What the events do not tell: that the runner was lost, where a reader found that out.
    #[must_use]
    pub fn lost(&self, state: &RunState) -> Option<Entry> {
        let at = state.lost.as_ref().filter(|_| !self.lost).and(state.last_update)?;
        let text = SafeText::line("the runner was lost");
        Some(Entry { at, step: None, text, tone: Tone::Bad, seq: 0, place: None })
    }

    /// The number of the newest event that came here; 0 before the first.
    #[must_use]
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether the numbers are those of this history only: who reads the recording again finds others.
    #[must_use]
    pub const fn is_loose(&self) -> bool {
        self.loose
    }

    /// The entries of a step, oldest first.
    pub fn of(&self, step: StepId) -> impl DoubleEndedIterator<Item = &Entry> {
        self.steps.get(&step).into_iter().flatten()
    }
}

/// By so many places an event is moved up among those that happened later.
const LATE: usize = 8;

/// Cells that are kept of a line.
const LINE: usize = 400;

/// Puts an entry into a ring that keeps so many; how many more there are then.
fn keep<T>(ring: &mut VecDeque<T>, entry: T, quota: usize) -> usize {
    let before = ring.len();
    while ring.len() >= quota {
        ring.pop_front();
    }
    ring.push_back(entry);
    ring.len().saturating_sub(before)
}

/// What an event says in a line; `None` for what is not worth one.
#[must_use]
pub fn tell(state: &RunState, event: &Event) -> Option<Entry> {
    let one = |step: Option<StepId>, tone: Tone, text: String| {
        Some(Entry { at: event.at, step, text: SafeText::line(&text), tone, seq: 0, place: None })
    };
    match &event.what {
        What::RunStarted(_) => one(None, Tone::Plain, "the run started".to_owned()),
        What::StepStarted { step } => one(Some(*step), Tone::Plain, "started".to_owned()),
        What::AttemptStarted { step, attempt, model, reason } if *attempt > 1 => {
            let model = model.as_deref().map(|m| format!(" with {m}")).unwrap_or_default();
            let why = reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
            one(Some(*step), Tone::Control, format!("attempt {attempt}{model}{why}"))
        }
        What::Agent { step, event: said } => agent_entry(state, *step, event.at, said),
        What::StepEnded { step, outcome } => {
            let ran = state.step(*step).filter(|s| !s.never_ran());
            let elapsed = ran.and_then(|s| Some(event.at.since(s.started_at?)));
            let took = elapsed.map(|d| format!(" in {}", clock(d))).unwrap_or_default();
            let over = state.step(*step).is_some_and(|s| s.budget.exceeded.is_some());
            let (tone, mut text) = match outcome.phase {
                StepPhase::Complete => (Tone::Good, format!("done{took}")),
                StepPhase::Failed | StepPhase::Rejected if outcome.exit_code == -1 => {
                    (Tone::Plain, StepFace::Skipped.word().to_owned())
                }
                StepPhase::Failed if outcome.timed_out => (Tone::Bad, format!("{}{took}", StepFace::TimedOut.word())),
                StepPhase::Failed if over => (Tone::Bad, format!("{}{took}", StepFace::OverBudget.word())),
                StepPhase::Failed | StepPhase::Rejected => {
                    (Tone::Bad, format!("failed with exit {}{took}", outcome.exit_code))
                }
                ref other => (Tone::Control, format!("{}{}", other.as_str(), took.replacen(" in ", " after ", 1))),
            };
            if let Some(error) = &outcome.error {
                text = format!("{text}: {}", cause(error).lines().next().unwrap_or_default());
            }
            one(Some(*step), tone, text)
        }
        What::OutputHeld { step, pids } => {
            one(Some(*step), Tone::Bad, format!("its output is held open by pid {}", list(pids)))
        }
        What::OutputTruncated { step, cap, .. } => {
            one(Some(*step), Tone::Bad, format!("output cut at {}", crate::text::bytes(*cap)))
        }
        What::RunInterrupted { source } => {
            one(None, Tone::Control, format!("interrupt asked for{}", by(source.as_ref())))
        }
        What::RunStopped { source, .. } => one(None, Tone::Control, format!("stop asked for{}", by(source.as_ref()))),
        What::RunTimedOut { timeout_ms, .. } => {
            let limit = timeout_ms.map(|ms| format!(" ({})", clock(std::time::Duration::from_millis(ms))));
            one(None, Tone::Bad, format!("the run's time is over{}", limit.unwrap_or_default()))
        }
        What::StepEnding { step, message, source, .. } => {
            // Who it was is told better by what is known of him.
            let what = match source {
                Some(_) if message == STOPPED => "stop asked for".into(),
                Some(_) => cause(message.trim_end_matches('.')),
                None => cause(message),
            };
            one(Some(*step), Tone::Control, format!("{what}{}", by(source.as_ref())))
        }
        What::SteerRequested(request) => {
            let targets: Vec<String> = request.targets.iter().map(|t| t.step.to_string()).collect();
            // Not every runner tells what it was.
            let what = if request.preview.is_empty() { String::new() } else { format!(": {}", request.preview) };
            let text = format!("steer #{} to step {}{what}", short(&request.id), targets.join(", "));
            let step = match request.targets.as_slice() {
                [only] => Some(only.step),
                _ => None,
            };
            one(step, Tone::Told, text)
        }
        What::SteerMoved { id, step, to, detail } => {
            let why = detail.as_deref().map(|d| format!(": {d}")).unwrap_or_default();
            let tone = if *to == TargetState::Failed { Tone::Bad } else { Tone::Control };
            one(Some(*step), tone, format!("steer #{} {}{why}", short(id), to.as_str()))
        }
        What::ControlRejected { file, reason, set_aside: true } => {
            one(None, Tone::Bad, format!("control file {file} was set aside: {reason}"))
        }
        What::ControlRejected { file, reason, set_aside: false } => {
            one(None, Tone::Bad, format!("refused: {file}: {reason}"))
        }
        What::ControlUnannounced { step, what, source } => {
            one(*step, Tone::Bad, format!("no deck or command announced this {what}: it came from {source}"))
        }
        What::SignalSent { step, signal, group, pid, .. } => {
            let whom = if *group { "the group of " } else { "" };
            one(Some(*step), Tone::Control, format!("{signal} sent to {whom}pid {pid}"))
        }
        What::AbortSent { step } => one(Some(*step), Tone::Control, "asked the agent to break off".to_owned()),
        What::TreeSwept { step, ended, survivors } if !ended.is_empty() || !survivors.is_empty() => {
            let process = if ended.len() == 1 { "process" } else { "processes" };
            let mut text = format!("swept {} left-over {process}", ended.len());
            if !survivors.is_empty() {
                text = format!("{text}, would not die: {}", list(survivors));
            }
            one(Some(*step), if survivors.is_empty() { Tone::Control } else { Tone::Bad }, text)
        }
        What::RunEnded { state: phase, error } => {
            let tone = match phase {
                RunPhase::Complete => Tone::Good,
                // Somebody asked for it.
                RunPhase::Stopped | RunPhase::Paused => Tone::Control,
                _ => Tone::Bad,
            };
            let why = error.as_deref().map(|e| format!(": {}", cause(e))).unwrap_or_default();
            // The state knows more of a failure than its end says. What ended well is done, as its steps are.
            let word = match phase {
                RunPhase::Complete => StepFace::Succeeded.word(),
                _ if state.phase == *phase => state.run_face().1,
                _ => phase.as_str(),
            };
            let ended = if *phase == RunPhase::Paused { "the run is " } else { "the run ended: " };
            one(None, tone, format!("{ended}{word}{why}"))
        }
        What::RunLost { message } => one(None, Tone::Bad, format!("the runner was lost: {message}")),
        other => {
            let told = words::told(other)?;
            one(told.step, if told.loud { Tone::Bad } else { Tone::Control }, as_seen(state, other, told.text))
        }
    }
}

/// A sentence about what needs somebody as the screen tells it elsewhere: times as on its clocks, and of a silence, and of
/// what somebody else's runner says, nothing twice.
fn as_seen(state: &RunState, what: &What, text: String) -> String {
    let (reason, text) = match what {
        What::AttentionRaised { notice, .. } => {
            let condition = &notice.condition;
            (condition.reason, text.replacen(&condition.evidence, &condition.on_clock(), 1))
        }
        What::AttentionNoted { step, reason, message } => {
            let name = state.step(*step).map(|step| step.agent.as_str()).unwrap_or_default();
            let seen = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(" needs attention ("));
            let seen = seen.and_then(|seen| seen.strip_suffix(')')).unwrap_or(message);
            (*reason, text.replacen(message.as_str(), seen, 1))
        }
        _ => return text,
    };
    let twice = format!("▲ {}: ", reason.words());
    match text.strip_prefix(&twice).filter(|_| reason == Reason::Idle) {
        Some(seen) => format!("▲ {seen}"),
        None => text,
    }
}

fn agent_entry(state: &RunState, step: StepId, at: Timestamp, event: &AgentEvent) -> Option<Entry> {
    let entry = |tone: Tone, text: SafeText| Entry { at, step: Some(step), text, tone, seq: 0, place: None };
    let one = |tone: Tone, text: String| Some(entry(tone, SafeText::line(&text)));
    match event {
        AgentEvent::SubAgent { did: SubAgentDid::Started { name, about, .. }, .. } => {
            one(Tone::Tool, format!("↳ {name} began {about}"))
        }
        AgentEvent::SubAgent { did: SubAgentDid::Ended(outcome), id } => {
            let name = state.step(step).and_then(|step| step.sub_agents.iter().find(|agent| agent.id == *id));
            let name = name.map_or("a sub-agent", |agent| agent.name.as_str());
            let (tone, word) = match outcome {
                ToolOutcome::Ok => (Tone::Tool, "is done"),
                ToolOutcome::Cancelled => (Tone::Tool, "was stopped"),
                _ => (Tone::Bad, "failed"),
            };
            one(tone, format!("↳ {name} {word}"))
        }
        AgentEvent::ToolStarted { tool, args, .. } => one(Tone::Tool, format!("› {tool} {args}")),
        AgentEvent::ToolEnded { tool, outcome, preview, .. } if *outcome != ToolOutcome::Ok => {
            one(Tone::Bad, ended(tool.as_deref(), *outcome, preview))
        }
        AgentEvent::Message { role, preview, error, stop, .. } => {
            if let Some(error) = error {
                // What somebody asked for is no error.
                return if asked(state, step) && broken_off(*stop, error) {
                    one(Tone::Control, format!("broken off as asked: {error}"))
                } else {
                    one(Tone::Bad, format!("error: {}", cause(error)))
                };
            }
            let text = SafeText::block(preview);
            let tone = match role {
                MessageRole::Assistant => Tone::Said,
                MessageRole::User => Tone::Told,
                _ => return None,
            };
            if preview.trim() == REDACTED {
                return None;
            }
            text.into_iter().find(|line| !line.is_empty()).map(|line| entry(tone, line.truncate(LINE)))
        }
        AgentEvent::Retry { attempt, max, reason, .. } => {
            let which = match (attempt, max) {
                (Some(n), Some(max)) => format!(" {n} of {max}"),
                (Some(n), None) => format!(" {n}"),
                _ => String::new(),
            };
            one(Tone::Bad, format!("retry{which}: {reason}"))
        }
        AgentEvent::ProtocolFailure { message } => one(Tone::Bad, message.clone()),
        _ => None,
    }
}

/// How a call ended that did not work, and why, or what it was about.
fn ended(tool: Option<&str>, outcome: ToolOutcome, rest: &str) -> String {
    let word = match outcome {
        ToolOutcome::Denied => "denied",
        ToolOutcome::Cancelled => "cancelled",
        ToolOutcome::Lost => "ended without a result",
        _ => "failed",
    };
    format!("✗ {} {word} {rest}", tool.unwrap_or("tool")).trim_end().to_owned()
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// The end of an id that a person can tell apart.
#[must_use]
pub fn short(id: &str) -> String {
    let last = |text: &str, most: usize| -> String {
        let text = SafeText::line(text);
        let skip = text.as_str().chars().count().saturating_sub(most);
        text.as_str().chars().skip(skip).collect()
    };
    // Ids that somebody counts differ in their last characters only; names that somebody gave are words.
    match id.rsplit(['-', '_', '.']).next().unwrap_or(id) {
        word if word.chars().count() < 4 => last(id, 12),
        tail => last(tail, 4),
    }
}

fn by(source: Option<&crate::run::ControlSource>) -> String {
    source.map(|s| format!(" by {s}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
