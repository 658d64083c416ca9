//! Whether something comes too early, judged by what happened alone: a history that knows nothing of how the reducer and
//! the rules keep their books.

use std::time::Duration;

use crate::run::*;

/// All that happened, oldest first.
pub(super) struct History {
    told: Vec<(Timestamp, What)>,
    thresholds: Vec<Thresholds>,
    /// The time of the run, and of each step.
    run_ms: u64,
    deadline_fixed: bool,
    step_ms: Vec<u64>,
    limits: Vec<Limits>,
    run_limits: Limits,
    /// The clock was never set back.
    ordered: bool,
}

impl History {
    /// A run that began at the moment 0.
    pub(super) fn new(meta: &RunMeta) -> Self {
        Self {
            told: Vec::new(),
            thresholds: meta.steps.iter().map(|s| s.thresholds.clone()).collect(),
            run_ms: u64::try_from(meta.deadline_at.unwrap().millis()).unwrap(),
            deadline_fixed: meta.deadline_fixed,
            step_ms: meta.steps.iter().map(|s| s.timeout_ms.unwrap()).collect(),
            limits: meta.steps.iter().map(|s| s.limits.clone()).collect(),
            run_limits: meta.limits.clone(),
            ordered: true,
        }
    }

    pub(super) fn push(&mut self, at: Timestamp, what: What) {
        self.ordered &= self.told.last().is_none_or(|(last, _)| *last <= at);
        match &what {
            What::BudgetRaised { step: None, raise, .. } => {
                if let Raise::Time(time) = raise {
                    (self.run_ms, self.deadline_fixed) = (time.as_millis() as u64, false);
                }
                let _ = raise.apply(&mut self.run_limits);
            }
            What::BudgetRaised { step: Some(step), raise, .. } if step.flat() < self.limits.len() => {
                if let Raise::Time(time) = raise {
                    self.step_ms[step.flat()] = time.as_millis() as u64;
                }
                let _ = raise.apply(&mut self.limits[step.flat()]);
            }
            // Only the first beginning of a step is one.
            What::StepStarted { step } if self.last(*step, |w| matches!(w, What::StepStarted { .. })).is_some() => {
                return;
            }
            _ => {}
        }
        self.told.push((at, what));
    }

    /// For how many milliseconds the machine was awake, at most, between two moments. It was awake when it told that it had
    /// slept, so it did not sleep across that. With a clock that was set back nobody knows, and all of the time counts.
    fn awake(&self, from: Timestamp, to: Timestamp) -> u64 {
        let mut asleep = Duration::ZERO;
        let mut last = Timestamp::from_millis(i64::MIN / 1000);
        for (until, what) in &self.told {
            let What::Slept { ms } = what else { continue };
            let began = (*until - Duration::from_millis(*ms)).max(last);
            last = *until;
            asleep += (*until).min(to).since(began.max(from));
        }
        let asleep = if self.ordered { asleep } else { Duration::ZERO };
        u64::try_from(to.since(from).saturating_sub(asleep).as_millis()).unwrap()
    }

    /// What was told of a step, newest first.
    fn of(&self, id: StepId) -> impl Iterator<Item = &(Timestamp, What)> {
        self.told.iter().rev().filter(move |(_, what)| what.step() == Some(id))
    }

    /// When a step was last told what `accept` takes.
    fn last(&self, id: StepId, accept: impl Fn(&What) -> bool) -> Option<Timestamp> {
        self.of(id).find(|(_, what)| accept(what)).map(|(at, _)| *at)
    }

    fn count(&self, id: StepId, accept: impl Fn(&AgentEvent) -> bool) -> u64 {
        self.of(id).filter(|(_, what)| matches!(what, What::Agent { event, .. } if accept(event))).count() as u64
    }

    /// The step began with the first beginning that was told.
    fn began(&self, id: StepId) -> Timestamp {
        self.of(id).filter(|(_, what)| matches!(what, What::StepStarted { .. })).last().expect("a beginning").0
    }

    /// For how many milliseconds it gave no sign of life, at most: said nothing, and was not begun nor tried again. An answer to
    /// what it had asked counts as one; whether a question was known is not known here.
    fn silent(&self, id: StepId, now: Timestamp) -> u64 {
        let begins = |what: &What| matches!(what, What::StepStarted { .. } | What::AttemptStarted { .. });
        let alive = |what: &What| is_said(what) || begins(what);
        let answered = |what: &What| alive(what) || matches!(what, What::QuestionAnswered { .. });
        let since = [self.last(id, alive), self.last(id, answered)].map(|at| at.expect("a beginning"));
        since.into_iter().map(|at| self.awake(at, now)).max().unwrap_or_default()
    }

    /// At most so much of a metric was used.
    fn used(&self, id: StepId, metric: Metric) -> f64 {
        let usages = self.of(id).filter_map(|(_, what)| match what {
            What::Agent { event: AgentEvent::Message { usage, role: MessageRole::Assistant, .. }, .. } => *usage,
            What::Agent { event: AgentEvent::Used(usage), .. } => Some(*usage),
            _ => None,
        });
        match metric {
            Metric::Turns => {
                self.count(id, |e| matches!(e, AgentEvent::Message { role: MessageRole::Assistant, .. })) as f64
            }
            Metric::ToolCalls => self.count(id, |e| matches!(e, AgentEvent::ToolStarted { .. })) as f64,
            Metric::Tokens => usages.map(|u| u.tokens.total() as f64).sum(),
            Metric::Cost => usages.filter_map(|u| u.cost).map(|c| c.0).sum(),
        }
    }

    /// Nothing of a decision comes too early.
    pub(super) fn check(&self, state: &RunState, now: Timestamp, decision: &Decision) {
        for effect in &decision.due {
            let early = match effect {
                Effect::TimeOutRun if self.deadline_fixed => now < Timestamp::from_millis(self.run_ms as i64),
                Effect::TimeOutRun => self.awake(Timestamp::from_millis(0), now) < self.run_ms,
                Effect::End { step, cause, message } => self.early_end(*step, *cause, message, now),
                Effect::Reach { step, metric, stage, used, .. } => {
                    self.early_count(*step, *metric, *stage, used.amount)
                }
                Effect::Raise { step, notice } => self.early_notice(state, *step, notice, now),
                Effect::Expire { step, id } => !self.of(*step).any(|(_, what)| {
                    matches!(what, What::QuestionAsked { question, .. }
                        if question.id == *id && question.until.is_some_and(|until| until <= now))
                }),
                Effect::Again(step) => {
                    !self.of(*step).any(|(_, what)| matches!(what, What::AttemptEnded { next, .. } if next.at <= now))
                }
                Effect::Signal { step, signal, .. } => self.early_signal(state, *step, signal, now),
                Effect::Clear { .. } | Effect::GiveUp(_) | Effect::Abort(_) => false,
            };
            let told = || self.told.iter().map(|event| format!("\n{event:?}")).collect::<String>();
            assert!(!early, "too early at {now:?}: {effect:?}\nafter{}", told());
        }
    }

    fn early_end(&self, id: StepId, cause: EndingCause, message: &str, now: Timestamp) -> bool {
        let limits = &self.limits[id.flat()];
        match cause {
            EndingCause::ToolTimeout => !self.of(id).any(|(_, what)| {
                let What::Agent { event: AgentEvent::ToolStarted { tool, call, .. }, .. } = what else { return false };
                let limit = limits.tool_limit(tool).filter(|ms| message == format!("Tool '{tool}' timed out after {ms}ms."));
                // A call that waited for an answer begins with it.
                let asked = self.last(id, |w| matches!(w, What::QuestionAsked { question, .. } if call.is_some() && question.asking.call == *call));
                let began = self.last(id, |w| match w {
                    What::Agent { event: AgentEvent::ToolStarted { call: other, tool: name, .. }, .. } => {
                        name == tool && other == call
                    }
                    _ => false,
                });
                limit.is_some_and(|ms| self.awake(began.unwrap(), now) >= ms || asked.is_some())
                    // Without an id an earlier one of that name may be the open one.
                    || (call.is_none() && limit.is_some_and(|ms| self.of(id).any(|(at, w)| {
                        matches!(w, What::Agent { event: AgentEvent::ToolStarted { call: None, tool: name, .. }, .. } if name == tool)
                            && self.awake(*at, now) >= ms
                    })))
            }),
            EndingCause::StepTimeout if message.contains("no sign of life") => {
                let ms = limits.idle_ms.unwrap();
                assert!(message.ends_with(&format!("{ms}ms.")), "{message}");
                self.silent(id, now) < ms
            }
            EndingCause::StepTimeout => self.awake(self.began(id), now) < self.step_ms[id.flat()],
            EndingCause::Drain => {
                let settled = self
                    .last(id, |w| matches!(w, What::Agent { event: AgentEvent::Settled { .. }, .. }))
                    .expect("a last word");
                let moves = self.last(id, is_said).is_some_and(|at| now.since(at) < DRAIN_QUIET && at <= now);
                now.since(settled) < DRAIN || (moves && now.since(settled) < DRAIN_MOST)
            }
            other => panic!("nothing decides {other:?}"),
        }
    }

    fn early_count(&self, step: Option<StepId>, metric: Metric, stage: Stage, told: f64) -> bool {
        let (limits, used) = match step {
            Some(id) => (&self.limits[id.flat()], self.used(id, metric)),
            None => {
                let all = (0..self.limits.len() as u32).map(|n| self.used(StepId(n), metric));
                (&self.run_limits, all.sum())
            }
        };
        let limit = budget::limit(limits, metric);
        let at = if stage == Stage::Soft { limit.soft } else { limit.hard }.expect("a limit");
        // The call that is one too many passes it.
        let passed = if metric == Metric::ToolCalls && stage == Stage::Hard { used > at } else { used >= at };
        !passed || told > used
    }

    fn early_notice(&self, state: &RunState, id: StepId, notice: &Notice, now: Timestamp) -> bool {
        let rules = &self.thresholds[id.flat()];
        if !rules.enabled {
            return true;
        }
        let known = |accept: &dyn Fn(&What) -> bool| self.told.iter().any(|(_, what)| accept(what));
        let own = |accept: &dyn Fn(&What) -> bool| self.last(id, accept).is_some();
        let calls = |accept: &dyn Fn(&CallFacts) -> bool| {
            self.count(id, |e| matches!(e, AgentEvent::ToolStarted { about, .. } if accept(about)))
        };
        // What somebody took note of is told again at twice the time, and so on.
        let again = 1u64 << (notice.times - 1);
        if notice.times > 1 && !own(&|w| matches!(w, What::AttentionAcknowledged { .. })) {
            return true;
        }
        if notice.times > 1 && self.early_again(id, notice, now) {
            return true;
        }
        match notice.condition.reason {
            Reason::Idle => self.silent(id, now) <= rules.idle_ms.unwrap() * again,
            Reason::NoFirstEvent => {
                let begins = |w: &What| matches!(w, What::StepStarted { .. } | What::AttemptStarted { .. });
                let mut since = self.of(id).take_while(|(_, w)| !begins(w));
                self.awake(self.last(id, begins).unwrap(), now) < rules.first_event_ms.unwrap() * again
                    || since.any(|(_, w)| is_said(w))
            }
            Reason::ToolOpen => {
                let since = notice.condition.since;
                let opened = self.of(id).filter(|(at, w)| match w {
                    What::Agent { event: AgentEvent::ToolStarted { .. }, .. } | What::QuestionAnswered { .. } => {
                        *at == since
                    }
                    // A run that was started in it was heard, or ended.
                    What::InnerRuns { runs, .. } => *at == since || runs.iter().any(|run| run.heard == since),
                    _ => false,
                });
                let open = &state.step(id).unwrap().open;
                opened.count() == 0
                    || self.awake(since, now) < rules.tool_open_ms.unwrap() * again
                    || open.iter().all(|call| call.started_at != since && call.heard != Some(since))
            }
            Reason::TimeThreshold => self.awake(self.began(id), now) < rules.long_ms.unwrap() * again,
            Reason::TurnThreshold => self.used(id, Metric::Turns) < (rules.long_turns.unwrap() * again) as f64,
            Reason::TokenThreshold => self.used(id, Metric::Tokens) < (rules.long_tokens.unwrap() * again) as f64,
            Reason::ToolFailures => {
                let failed = self.count(id, |e| {
                    let bad = [ToolOutcome::Error, ToolOutcome::Denied];
                    matches!(e, AgentEvent::ToolEnded { outcome, .. } if bad.contains(outcome))
                });
                failed.min(calls(&|about| about.mutates)) < rules.failures.unwrap() * again
            }
            Reason::RepeatedCall => {
                let most = (0..3).map(|n| calls(&|about: &CallFacts| about.fingerprint == n)).max();
                most.unwrap() < rules.repeats.unwrap() * again
            }
            Reason::Question => {
                !own(&|w| matches!(w, What::QuestionAsked { question, .. } if question.id == notice.condition.subject))
            }
            Reason::SupervisorRequest => calls(&|about| about.asks) == 0,
            Reason::SteerFailed => !known(&|w| match w {
                What::SteerMoved { step, to, .. } => *step == id && *to == TargetState::Failed,
                What::SteerRequested(request) => {
                    request.targets.iter().any(|t| t.step == id && t.state == TargetState::Failed)
                }
                _ => false,
            }),
            Reason::PathConflict => {
                (0..self.limits.len() as u32).map(StepId).filter(|other| *other != id).all(|other| {
                    self.count(
                        other,
                        |e| matches!(e, AgentEvent::ToolStarted { about, path: Some(_), .. } if about.mutates),
                    ) == 0
                })
            }
            Reason::InnerRun => {
                let newest = self.of(id).find_map(|(_, w)| match w {
                    What::InnerRuns { runs, .. } => Some(runs.iter().any(|run| run.needs.is_some())),
                    _ => None,
                });
                newest != Some(true)
            }
            Reason::OutputHeld => !own(&|w| matches!(w, What::OutputHeld { pids, .. } if !pids.is_empty())),
            Reason::Retrying => !own(&|w| matches!(w, What::Agent { event: AgentEvent::Retry { .. }, .. })),
            Reason::DiskCap => !own(&|w| matches!(w, What::OutputTruncated { .. })),
            Reason::Unannounced => !self.told.iter().any(|(_, w)| matches!(w, What::ControlUnannounced { .. })),
            Reason::DiskLow => {
                let newest = self.told.iter().rev().find_map(|(_, w)| match w {
                    What::DiskSpace { low, .. } => Some(*low),
                    _ => None,
                });
                newest != Some(true)
            }
            Reason::BudgetSoft => {
                let of_run = notice.condition.subject.starts_with("run.");
                !known(&|w| match w {
                    What::BudgetReached { step: None, stage: Stage::Soft, .. } => of_run,
                    What::BudgetReached { step: Some(step), stage: Stage::Soft, .. } => !of_run && *step == id,
                    _ => false,
                })
            }
            Reason::CompletionGuard | Reason::Other => true,
        }
    }

    /// What somebody took note of comes again only once it has passed a doubling of its threshold since. Told for times that
    /// nothing moved: with clocks set back and sleeps nobody knows what the amount was then.
    fn early_again(&self, id: StepId, notice: &Notice, now: Timestamp) -> bool {
        let slept = self.told.iter().any(|(_, what)| matches!(what, What::Slept { .. }));
        let (Some(Amount::Millis(threshold)), true, false) = (notice.condition.threshold, self.ordered, slept) else {
            return false;
        };
        let noted =
            self.last(id, |w| matches!(w, What::AttentionAcknowledged { id, .. } if *id == notice.id)).expect("a note");
        let doublings = |at: Timestamp| (self.awake(notice.condition.since, at) / threshold).checked_ilog2();
        doublings(now) <= doublings(noted)
    }

    /// The ladder goes on only after its times, and only in a child that is being ended.
    fn early_signal(&self, state: &RunState, id: StepId, signal: &str, now: Timestamp) -> bool {
        let step = state.step(id).unwrap();
        let Some(ending) = &step.ending else { return true };
        let since = |accept: &dyn Fn(&What) -> bool| self.last(id, accept).map(|at| now.since(at));
        let sent =
            |name: &'static str| since(&move |w| matches!(w, What::SignalSent { signal, .. } if *signal == name));
        let aborted = since(&|w| matches!(w, What::AbortSent { .. }));
        let (abort, int) = match (ending.cause, &step.runner) {
            (EndingCause::Interrupt, RunnerKind::Pi) => (Some(ABORT_TO_TERM), None),
            (EndingCause::Budget | EndingCause::RunBudget, RunnerKind::Pi) => (Some(BUDGET_TO_TERM), None),
            (EndingCause::Interrupt, RunnerKind::ExternalCli { .. }) => (None, Some(INT_TO_TERM)),
            _ => (None, None),
        };
        match signal {
            "SIGKILL" => ending.cause != EndingCause::Kill && sent("SIGTERM").is_none_or(|ago| ago < TERM_TO_KILL),
            "SIGTERM" => {
                abort.is_some_and(|wait| aborted.is_none_or(|ago| ago < wait))
                    || int.is_some_and(|wait| sent("SIGINT").is_none_or(|ago| ago < wait))
            }
            "SIGINT" => int.is_none(),
            other => panic!("{other}"),
        }
    }
}

/// Something that the child said or printed.
fn is_said(what: &What) -> bool {
    matches!(what, What::Agent { .. } | What::OutputLines { .. } | What::OutputSeen { .. })
}
