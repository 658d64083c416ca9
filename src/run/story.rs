//! Stories for property tests: events of every kind, for a run of a few steps within a few seconds, in any order. Nothing
//! here is likely; what is true of these is true of whatever happens.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

use super::*;

/// The steps of the run; a story tells now and then of one more.
pub(crate) const STEPS: u32 = 3;
/// A story takes place within so many milliseconds.
pub(crate) const LONG: i64 = 5000;

/// A strategy for each variant of an enum, with its weight. The match over them is exhaustive, so a variant that is added
/// and forgotten here does not compile.
macro_rules! every {
    ($ty:ident: $all:ident, $each:ident, $kind:ident { $($variant:ident * $weight:literal => $strategy:expr,)* }) => {
        /// One of any kind.
        pub(crate) fn $all() -> Union<BoxedStrategy<$ty>> {
            Union::new_weighted(vec![$(($weight, $strategy.boxed())),*])
        }

        /// The kinds with a strategy for each.
        pub(crate) fn $each() -> Vec<(&'static str, BoxedStrategy<$ty>)> {
            vec![$((stringify!($variant), $strategy.boxed())),*]
        }

        /// Of which kind one is.
        pub(crate) const fn $kind(one: &$ty) -> &'static str {
            match one {
                $($ty::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}
pub(crate) use every;

fn at() -> impl Strategy<Value = Timestamp> {
    (0..LONG).prop_map(Timestamp::from_millis)
}

fn step() -> impl Strategy<Value = StepId> {
    // Now and then one that does not exist.
    (0..=STEPS).prop_map(StepId)
}

/// Few names, so that they meet again.
fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b"]).prop_map(str::to_owned)
}

fn tool() -> impl Strategy<Value = String> {
    select(vec!["read", "bash", "intercom"]).prop_map(str::to_owned)
}

fn source() -> impl Strategy<Value = Option<ControlSource>> {
    option::of(name().prop_map(|via| ControlSource { via, ..ControlSource::default() }))
}

fn usage() -> impl Strategy<Value = Usage> {
    (0u64..50, 0u64..9, any::<bool>()).prop_map(|(input, cache_read, paid)| Usage {
        tokens: Tokens { input, output: input / 4, cache_read, cache_write: 0 },
        cost: paid.then_some(CostUsd(0.25)),
    })
}

fn outcome_of_tool() -> impl Strategy<Value = ToolOutcome> {
    select(ToolOutcome::ALL.to_vec())
}

fn asking() -> impl Strategy<Value = Asking> {
    (name(), option::of(name()), any::<bool>()).prop_map(|(id, call, by_file)| Asking {
        id,
        call,
        by_file,
        text: "May I?".to_owned(),
        ..Asking::default()
    })
}

fn message() -> impl Strategy<Value = AgentEvent> {
    use MessageRole::{Assistant, Other, System, ToolResult, User};
    let role = select(vec![Assistant, Assistant, Assistant, Assistant, User, ToolResult, System, Other]);
    let stop = option::of(select(vec![StopReason::Stop, StopReason::ToolUse, StopReason::Length, StopReason::Error]));
    let text = select(vec!["", "done", "Tool budget hard limit reached"]);
    (role, stop, text, option::of(usage()), any::<bool>(), any::<bool>()).prop_map(
        |(role, stop, text, usage, failed, calls_tools)| AgentEvent::Message {
            role,
            preview: text.to_owned(),
            model: None,
            // Both are said of answers only.
            stop: stop.filter(|_| role == Assistant),
            usage: usage.filter(|_| role == Assistant),
            error: failed.then(|| "overloaded".to_owned()),
            calls_tools,
        },
    )
}

fn sub_agent() -> impl Strategy<Value = SubAgentDid> {
    let call = tool().prop_map(|tool| SubAgentDid::Called(SubCall { tool, args: "a".to_owned() }));
    prop_oneof![
        name().prop_map(|name| SubAgentDid::Started { name, about: "a".to_owned(), model: None }),
        call,
        Just(SubAgentDid::Returned),
        Just(SubAgentDid::Said("s".to_owned())),
        (0u64..9).prop_map(SubAgentDid::Used),
        outcome_of_tool().prop_map(SubAgentDid::Ended),
    ]
}

every! { AgentEvent: agent_event, agent_events, agent_kind {
    SessionStarted * 1 => (option::of(name()), option::of(name()))
        .prop_map(|(session_id, model)| AgentEvent::SessionStarted { session_id, model }),
    AgentStarted * 1 => Just(AgentEvent::AgentStarted),
    TurnStarted * 1 => Just(AgentEvent::TurnStarted),
    TurnEnded * 1 => Just(AgentEvent::TurnEnded),
    TextDelta * 1 => (0usize..9).prop_map(|bytes| AgentEvent::TextDelta { bytes }),
    Message * 8 => message(),
    Used * 1 => usage().prop_map(AgentEvent::Used),
    Window * 1 => (option::of(0u64..9), option::of(0u64..9)).prop_map(|(used, size)| AgentEvent::Window(Window { used, size })),
    ToolStarted * 10 => (option::of(name()), tool(), option::of(name()), (0u64..3, any::<bool>(), any::<bool>()))
        .prop_map(|(call, tool, path, (fingerprint, mutates, asks))| AgentEvent::ToolStarted {
            call, tool, path, args: "x".to_owned(), about: CallFacts { fingerprint, mutates, asks },
        }),
    ToolProgress * 1 => option::of(name()).prop_map(|call| AgentEvent::ToolProgress { call }),
    ToolEnded * 10 => (option::of(name()), option::of(tool()), outcome_of_tool(), select(vec!["", "p", "Tool budget hard limit reached"]))
        .prop_map(|(call, tool, outcome, preview)| AgentEvent::ToolEnded { call, tool, outcome, preview: preview.to_owned() }),
    SubAgent * 2 => (name(), sub_agent()).prop_map(|(id, did)| AgentEvent::SubAgent { id, did }),
    Retry * 2 => (option::of(0u64..500)).prop_map(|delay_ms| AgentEvent::Retry {
        attempt: Some(1), max: None, delay_ms, reason: "r".to_owned(),
    }),
    RetryEnded * 2 => any::<bool>().prop_map(|success| AgentEvent::RetryEnded { success }),
    Queue * 1 => Just(AgentEvent::Queue(QueueContents::default())),
    Response * 1 => any::<bool>().prop_map(|success| AgentEvent::Response {
        id: None, command: "prompt".to_owned(), success, error: None,
    }),
    AgentEnded * 2 => any::<bool>().prop_map(|will_retry| AgentEvent::AgentEnded { will_retry }),
    Settled * 2 => any::<bool>().prop_map(|aborted| AgentEvent::Settled { aborted }),
    Asked * 1 => asking().prop_map(|asking| AgentEvent::Asked(Box::new(asking))),
    Unasked * 1 => name().prop_map(|id| AgentEvent::Unasked { id }),
    Called * 1 => name().prop_map(|id| AgentEvent::Called { method: id.clone(), id }),
    Unparsed * 1 => Just(AgentEvent::Unparsed { stream: Stream::Out }),
    Unknown * 1 => name().prop_map(|kind| AgentEvent::Unknown { kind }),
    ProtocolFailure * 1 => name().prop_map(|message| AgentEvent::ProtocolFailure { message }),
} }

fn outcome() -> impl Strategy<Value = Box<StepOutcome>> {
    let phase = select(vec![
        StepPhase::Complete,
        StepPhase::Failed,
        StepPhase::Paused,
        StepPhase::Stopped,
        StepPhase::Rejected,
        StepPhase::Unknown("odd".to_owned()),
    ]);
    (phase, -1i32..3, option::of(name()), any::<bool>(), any::<bool>()).prop_map(
        |(phase, exit_code, error, timed_out, named)| {
            let stopped = phase == StepPhase::Stopped;
            let output = NamedOutput { text: "t".into(), agent: "a".to_owned(), logical: 0 };
            let output = named.then(|| ("out".to_owned(), output));
            Box::new(StepOutcome { phase, exit_code, error, timed_out, stopped, output, ..StepOutcome::default() })
        },
    )
}

fn notice() -> impl Strategy<Value = (StepId, Box<Notice>)> {
    let amount = option::of((0u64..900).prop_map(Amount::Millis));
    (step(), select(Reason::ALL.to_vec()), name(), at(), amount, 1u32..3, at()).prop_map(
        |(step, reason, subject, since, threshold, times, told)| {
            let evidence = "e".to_owned();
            let condition = Condition { reason, subject, since, threshold, amount: threshold, evidence };
            (step, Box::new(Notice { times, ..Notice::new(step, condition, told) }))
        },
    )
}

fn metric() -> impl Strategy<Value = Metric> {
    select(Metric::ALL.to_vec())
}

fn raise() -> impl Strategy<Value = Raise> {
    let time = || (1u64..6000).prop_map(Duration::from_millis);
    let end = || select(vec![End::Soft, End::Hard]);
    prop_oneof![
        time().prop_map(Raise::Time),
        time().prop_map(Raise::Idle),
        time().prop_map(Raise::ToolTimeout),
        (1u64..9).prop_map(Raise::Turns),
        (0u64..3).prop_map(Raise::TurnsGrace),
        (end(), 1u64..9).prop_map(|(end, n)| Raise::ToolCalls(end, n)),
        (end(), 1u64..300).prop_map(|(end, n)| Raise::Tokens(end, n)),
        (end(), 1u32..9).prop_map(|(end, n)| Raise::Cost(end, CostUsd(f64::from(n) / 4.0))),
    ]
}

fn target_state() -> impl Strategy<Value = TargetState> {
    select(TargetState::ALL.to_vec())
}

fn steer() -> impl Strategy<Value = Box<SteerRequest>> {
    let target = (step(), target_state()).prop_map(|(step, state)| SteerTarget {
        step,
        state,
        routed_at: None,
        delivered_at: None,
        failed_at: None,
        reason: None,
    });
    (name(), at(), proptest::collection::vec(target, 0..3)).prop_map(|(id, requested_at, targets)| {
        Box::new(SteerRequest {
            id,
            requested_at,
            source: None,
            mode: SteerMode::Steer,
            message: String::new(),
            preview: "Look again.".to_owned(),
            targets,
        })
    })
}

fn run_phase() -> impl Strategy<Value = RunPhase> {
    select(vec![
        RunPhase::Complete,
        RunPhase::Failed,
        RunPhase::Paused,
        RunPhase::Stopped,
        RunPhase::Rejected,
        RunPhase::Running,
        RunPhase::Unknown("odd".to_owned()),
    ])
}

fn inner_run() -> impl Strategy<Value = InnerRun> {
    (select(vec!["i", "j"]), at(), at(), any::<bool>()).prop_map(|(id, started_at, heard, asks)| InnerRun {
        id: RunId(id.to_owned()),
        title: "t".to_owned(),
        started_at,
        heard,
        needs: asks.then(|| ("n".to_owned(), started_at)),
    })
}

every! { What: what, whats, kind {
    // A run begins once; a second beginning is one of the things that cannot be.
    RunStarted * 1 => begun().prop_map(|meta| What::RunStarted(Box::new(meta))),
    StepStarted * 8 => step().prop_map(|step| What::StepStarted { step }),
    GroupStarted * 1 => (0usize..3).prop_map(|logical| What::GroupStarted { logical }),
    GroupEnded * 1 => (0usize..3, any::<bool>()).prop_map(|(logical, success)| What::GroupEnded { logical, success }),
    AttemptStarted * 8 => (step(), 1u32..4, option::of(name()))
        .prop_map(|(step, attempt, model)| What::AttemptStarted { step, attempt, reason: model.clone(), model }),
    ChildSpawned * 8 => (step(), 7u32..9).prop_map(|(step, pid)| What::ChildSpawned { step, pid, start_ticks: None }),
    Agent * 50 => (step(), agent_event()).prop_map(|(step, event)| What::Agent { step, event }),
    OutputLines * 4 => (step(), 1usize..60, any::<bool>())
        .prop_map(|(step, many, open)| What::OutputLines { step, lines: vec!["l".to_owned(); many], open }),
    OutputSeen * 4 => (step(), 0u64..9).prop_map(|(step, bytes)| What::OutputSeen { step, bytes }),
    ChildExited * 3 => (step(), option::of(0i32..2))
        .prop_map(|(step, code)| What::ChildExited { step, exit: ExitInfo { code, signal: None } }),
    OutputHeld * 2 => (step(), 0usize..2).prop_map(|(step, many)| What::OutputHeld { step, pids: vec![1; many] }),
    OutputTruncated * 2 => step().prop_map(|step| What::OutputTruncated { step, stream: Stream::Out, cap: 1 }),
    LogFailed * 2 => step().prop_map(|step| What::LogFailed { step, error: "e".to_owned() }),
    ArtifactFailed * 2 => (step(), select(Artifact::ALL.to_vec()))
        .prop_map(|(step, which)| What::ArtifactFailed { step, which, error: "e".to_owned() }),
    StepEnded * 5 => (step(), outcome()).prop_map(|(step, outcome)| What::StepEnded { step, outcome }),
    RunInterrupted * 2 => source().prop_map(|source| What::RunInterrupted { source }),
    RunStopped * 2 => source().prop_map(|source| What::RunStopped { message: "m".to_owned(), source }),
    RunTimedOut * 2 => source()
        .prop_map(|source| What::RunTimedOut { timeout_ms: None, message: "m".to_owned(), source }),
    StepEnding * 5 => (step(), select(EndingCause::ALL.to_vec()), source())
        .prop_map(|(step, cause, source)| What::StepEnding { step, cause, message: "m".to_owned(), source }),
    AttemptEnded * 3 => (step(), at(), any::<bool>(), any::<bool>()).prop_map(|(step, at, task_by_file, once)| What::AttemptEnded {
        step,
        exit_code: 1,
        error: "e".to_owned(),
        next: NextAttempt { at, model: None, reason: "r".to_owned(), task_by_file, transport: once.then_some(Transport::OneShot) },
    }),
    AttentionRaised * 3 => notice().prop_map(|(step, notice)| What::AttentionRaised { step, notice }),
    AttentionCleared * 2 => notice().prop_map(|(step, notice)| What::AttentionCleared { step, id: notice.id }),
    AttentionAcknowledged * 6 => (notice(), source())
        .prop_map(|((step, notice), source)| What::AttentionAcknowledged { step, id: notice.id, source }),
    AttentionNoted * 2 => (step(), select(Reason::ALL.to_vec()))
        .prop_map(|(step, reason)| What::AttentionNoted { step, reason, message: "m".to_owned() }),
    QuestionAsked * 4 => (step(), select(vec!["a", "b", "c"]), asking(), at(), option::of(at()))
        .prop_map(|(step, id, asking, asked_at, until)| {
            let question = Question { id: id.to_owned(), asking, asked_at, until };
            What::QuestionAsked { step, question: Box::new(question) }
        }),
    QuestionAnswered * 3 => (step(), select(vec!["a", "b", "c"]), select(AnsweredBy::ALL.to_vec()), source())
        .prop_map(|(step, id, by, source)| What::QuestionAnswered {
            step, id: id.to_owned(), text: "May I?".to_owned(), answer: Answer::Allow, by, source,
        }),
    BudgetReached * 2 => (option::of(step()), metric(), select(vec![Stage::Soft, Stage::Deferred, Stage::Hard, Stage::Late]))
        .prop_map(|(step, metric, stage)| What::BudgetReached { step, metric, stage, used: Used::all(1.0), message: "m".to_owned() }),
    BudgetRaised * 3 => (option::of(step()), raise(), source())
        .prop_map(|(step, raise, source)| What::BudgetRaised { step, raise, source }),
    DiskSpace * 2 => any::<bool>().prop_map(|low| What::DiskSpace { free: 9, low }),
    InnerRuns * 3 => (step(), proptest::collection::vec(inner_run(), 0..3))
        .prop_map(|(step, runs)| What::InnerRuns { step, runs }),
    Slept * 2 => (0u64..2000).prop_map(|ms| What::Slept { ms }),
    SteerRequested * 2 => steer().prop_map(What::SteerRequested),
    SteerMoved * 3 => (name(), step(), target_state(), option::of(name()))
        .prop_map(|(id, step, to, detail)| What::SteerMoved { id, step, to, detail }),
    Capability * 1 => (step(), select(vec![Steerable::Unknown, Steerable::Yes, Steerable::No("n".to_owned())]))
        .prop_map(|(step, steerable)| What::Capability { step, steerable }),
    ControlRejected * 1 => name()
        .prop_map(|file| What::ControlRejected { reason: file.clone(), file, set_aside: true }),
    ControlUnannounced * 1 => (option::of(step()), name())
        .prop_map(|(step, what)| What::ControlUnannounced { step, what, source: ControlSource { via: "v".to_owned(), ..ControlSource::default() } }),
    SignalSent * 3 => (step(), select(vec!["SIGINT", "SIGTERM", "SIGKILL"]), any::<bool>())
        .prop_map(|(step, signal, group)| What::SignalSent { step, signal, pid: 7, group, cause: EndingCause::Kill }),
    AbortSent * 2 => step().prop_map(|step| What::AbortSent { step }),
    TreeSwept * 1 => (step(), 0usize..2)
        .prop_map(|(step, many)| What::TreeSwept { step, ended: vec![3], survivors: vec![2; many] }),
    RunEnded * 1 => (run_phase(), option::of(name())).prop_map(|(state, error)| What::RunEnded { state, error }),
    RunLost * 1 => name().prop_map(|message| What::RunLost { message }),
    Unknown * 1 => name().prop_map(|kind| What::Unknown { kind }),
} }

/// A run whose limits and thresholds all lie within reach: an agent that can be told to break off, a plain command, and an
/// agent that cannot.
pub(crate) fn begun() -> impl Strategy<Value = RunMeta> {
    any::<[bool; 4]>().prop_map(|[deadline_fixed, spares, observed, enabled]| {
        let limits = Limits {
            idle_ms: Some(700),
            turns: Some(TurnLimit { max: 2, grace: 1 }),
            tool_calls: Some(Limit { soft: Some(2), hard: Some(4) }),
            tokens: Some(Limit { soft: Some(60), hard: Some(120) }),
            cost: Some(Limit { soft: Some(CostUsd(0.5)), hard: Some(CostUsd(1.5)) }),
            tool_ms: Some(400),
            tool_calls_observed: observed,
            ..Limits::default()
        };
        let thresholds = Thresholds {
            enabled,
            idle_ms: Some(200),
            tool_open_ms: Some(150),
            long_ms: Some(900),
            long_turns: Some(2),
            long_tokens: Some(50),
            failures: Some(2),
            first_event_ms: Some(100),
            repeats: Some(2),
            ..Thresholds::default()
        };
        let command = RunnerKind::ExternalCli { command: "make".to_owned(), args: Vec::new() };
        let step = |(key, runner): (&str, RunnerKind), logical| StepMeta {
            key: key.to_owned(),
            agent: key.to_owned(),
            logical,
            runner,
            timeout_ms: Some(2000),
            limits: limits.clone(),
            thresholds: thresholds.clone(),
            cwd: "/w".to_owned(),
            ..StepMeta::default()
        };
        let steps = [("one", RunnerKind::Pi), ("two", command), ("three", RunnerKind::PiJson)];
        RunMeta {
            id: RunId("r".to_owned()),
            mode: RunMode::Parallel,
            steps: steps.into_iter().map(|known| step(known, 0)).collect(),
            groups: vec![Group { start: 0, count: 3, logical: 0 }],
            logical_count: 1,
            limits: Limits {
                tokens: Some(Limit { soft: Some(200), hard: Some(300) }),
                usage_spares_children: spares,
                ..Limits::default()
            },
            deadline_at: Some(Timestamp::from_millis(4000)),
            deadline_fixed,
            ..RunMeta::default()
        }
    })
}

/// What happens, and when; in the order of time unless the clock was set back now and then.
pub(crate) fn story(most: usize, backwards: bool) -> impl Strategy<Value = Vec<(Timestamp, What)>> {
    proptest::collection::vec((at(), what()), 0..most).prop_map(move |mut story| {
        if !backwards {
            story.sort_by_key(|(at, _)| *at);
        }
        story
    })
}

/// What an engine records of a decision.
pub(crate) fn record(effect: &Effect) -> What {
    match effect.clone() {
        Effect::TimeOutRun => What::RunTimedOut { timeout_ms: None, message: "t".to_owned(), source: None },
        Effect::End { step, cause, message } => What::StepEnding { step, cause, message, source: None },
        Effect::Reach { step, metric, stage, used, message } => {
            What::BudgetReached { step, metric, stage, used, message }
        }
        Effect::Raise { step, notice } => What::AttentionRaised { step, notice },
        Effect::Clear { step, id } => What::AttentionCleared { step, id },
        Effect::Again(step) => What::AttemptStarted { step, attempt: 2, model: None, reason: None },
        Effect::GiveUp(step) => {
            let outcome = StepOutcome { phase: StepPhase::Failed, ..StepOutcome::default() };
            What::StepEnded { step, outcome: Box::new(outcome) }
        }
        Effect::Expire { step, id } => {
            let (text, answer, by) = (String::new(), Answer::Deny(None), AnsweredBy::Timeout);
            What::QuestionAnswered { step, id, text, answer, by, source: None }
        }
        Effect::Abort(step) => What::AbortSent { step },
        Effect::Signal { step, signal, group, cause } => What::SignalSent { step, signal, pid: 7, group, cause },
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn every_kind_of_event_is_told() {
        let mut runner = TestRunner::deterministic();
        for (name, strategy) in whats() {
            for _ in 0..20 {
                assert_eq!(kind(&strategy.new_tree(&mut runner).unwrap().current()), name);
            }
        }
        for (name, strategy) in agent_events() {
            for _ in 0..20 {
                assert_eq!(agent_kind(&strategy.new_tree(&mut runner).unwrap().current()), name);
            }
        }
    }
}
