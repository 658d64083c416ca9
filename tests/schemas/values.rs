//! Events, and what they carry, with everything that there can be in them.

use subdeck::run::{
    AgentEvent, Answer, AnsweredBy, Artifact, Asking, Choice, Condition, ControlSource, CostUsd, End, EndingCause,
    Event, ExitInfo, InnerRun, MessageRole, Metric, NextAttempt, Notice, Question, Raise, Reason, RunId, RunMeta,
    RunPhase, Stage, SteerMode, SteerRequest, SteerTarget, StepId, StepMeta, StepOutcome, StepPhase, Stream,
    SubAgentDid, TargetState, Timestamp, Tokens, ToolOutcome, Usage, Used, What,
};
use subdeck::rundir::LogLine;

pub fn inner_run() -> InnerRun {
    let at = Timestamp::from_millis(2);
    let needs = Some(("n".to_owned(), at));
    InnerRun { id: RunId("r".into()), title: "t".into(), started_at: at, heard: at, needs }
}

pub fn log_line() -> LogLine {
    LogLine {
        start: 0,
        end: 2,
        bytes: vec![b't', 0xff],
        stream: Stream::Err,
        at: Some(Timestamp::from_millis(1_764_000_000_000)),
        attempt: 1,
        cut: true,
        complete: false,
    }
}

pub fn at(what: What) -> Event {
    Event { at: Timestamp::from_millis(1_764_000_000_000), what }
}

pub fn meta() -> RunMeta {
    let step = StepMeta { key: "a".into(), agent: "a".into(), label: Some("A".into()), ..StepMeta::default() };
    RunMeta {
        id: RunId("r".into()),
        name: Some("n".into()),
        pid: Some(1),
        cwd: "/".into(),
        timeout_ms: Some(5),
        steps: vec![step, StepMeta { label: None, ..StepMeta::default() }],
        logical_count: 2,
        ..RunMeta::default()
    }
}

pub fn question() -> Question {
    let choice = Choice { id: "o".into(), label: "Yes".into(), kind: "allow_once".into() };
    Question {
        id: "q1".into(),
        asking: Asking {
            id: "7".into(),
            text: "May it?".into(),
            tool: Some("Bash".into()),
            args: "make".into(),
            call: Some("c".into()),
            choices: vec![choice],
            ..Asking::default()
        },
        asked_at: Timestamp::from_millis(1),
        until: Some(Timestamp::from_millis(2)),
    }
}

/// Every event that is printed, with everything it can carry, and the bare form where much of it may be missing.
pub fn every_what() -> Vec<What> {
    let step = StepId(0);
    let text = || "t".to_owned();
    let source = Some(ControlSource {
        via: text(),
        user: Some(text()),
        pid: Some(1),
        tty: Some(text()),
        key: Some(text()),
        reason: Some(text()),
    });
    let usage = Usage { tokens: Tokens { input: 1, ..Tokens::default() }, cost: Some(CostUsd(0.5)) };
    let message = |usage, text: &str| AgentEvent::Message {
        role: MessageRole::Assistant,
        preview: text.to_owned(),
        model: Some(text.to_owned()),
        stop: None,
        usage,
        error: Some(text.to_owned()),
        calls_tools: true,
    };
    let mut all = vec![
        What::RunStarted(Box::new(meta())),
        What::RunStarted(Box::default()),
        What::StepStarted { step },
        What::GroupStarted { logical: 0 },
        What::GroupEnded { logical: 0, success: true },
        What::AttemptStarted { step, attempt: 2, model: Some(text()), reason: Some(text()) },
        What::ChildSpawned { step, pid: 1, start_ticks: None },
        What::ChildExited { step, exit: ExitInfo { code: Some(1), signal: Some(9) } },
        What::ChildExited { step, exit: ExitInfo::default() },
        What::OutputHeld { step, pids: vec![1] },
        What::OutputTruncated { step, stream: Stream::Err, cap: 1 },
        What::LogFailed { step, error: text() },
        What::ArtifactFailed { step, which: Artifact::Transcript, error: text() },
        What::StepEnded {
            step,
            outcome: Box::new(StepOutcome {
                phase: StepPhase::Failed,
                exit_code: 1,
                error: Some(text()),
                timed_out: true,
                signal: Some(9),
                acceptance: Some(Box::default()),
                ..StepOutcome::default()
            }),
        },
        What::QuestionAsked { step, question: Box::new(question()) },
        What::QuestionAsked { step, question: Box::default() },
        What::QuestionAnswered {
            step,
            id: text(),
            text: text(),
            answer: Answer::Deny(Some(text())),
            by: AnsweredBy::Person,
            source: source.clone(),
        },
        What::QuestionAnswered {
            step,
            id: text(),
            text: text(),
            answer: Answer::Text(text()),
            by: AnsweredBy::Gone,
            source: None,
        },
        What::RunInterrupted { source: source.clone() },
        What::RunStopped { message: text(), source: source.clone() },
        What::RunTimedOut { timeout_ms: Some(1), message: text(), source: None },
        What::SteerRequested(Box::new(SteerRequest {
            id: text(),
            requested_at: Timestamp::from_millis(1),
            source: Some(text()),
            mode: SteerMode::Auto,
            message: text(),
            preview: text(),
            targets: vec![SteerTarget {
                step,
                state: TargetState::Routed,
                routed_at: None,
                delivered_at: None,
                failed_at: None,
                reason: None,
            }],
        })),
        What::ControlRejected { file: text(), reason: text(), set_aside: true },
        What::ControlUnannounced { step: Some(StepId(0)), what: text(), source: source.clone().unwrap_or_default() },
        What::SignalSent { step, signal: "SIGTERM", pid: 1, group: true, cause: EndingCause::StepStop },
        What::AbortSent { step },
        What::TreeSwept { step, ended: vec![1], survivors: vec![2] },
        What::RunEnded { state: RunPhase::Complete, error: Some(text()) },
        What::RunLost { message: text() },
        What::Unknown { kind: text() },
        What::AttemptEnded {
            step,
            exit_code: 1,
            error: text(),
            next: NextAttempt {
                at: Timestamp::from_millis(1),
                model: Some(text()),
                reason: text(),
                task_by_file: true,
                transport: None,
            },
        },
        What::AttentionCleared { step, id: text() },
        What::AttentionAcknowledged { step, id: text(), source: source.clone() },
        What::AttentionNoted { step, reason: Reason::Idle, message: text() },
        What::InnerRuns { step, runs: vec![inner_run()] },
        What::Slept { ms: 5 },
        What::DiskSpace { free: 5, low: true },
    ];
    for reason in Reason::ALL {
        let since = Timestamp::from_millis(1);
        let (subject, evidence) = (text(), text());
        let condition = Condition { reason, subject, since, threshold: None, amount: None, evidence };
        all.push(What::AttentionRaised { step, notice: Box::new(Notice::new(step, condition, since)) });
    }
    for metric in Metric::ALL {
        for stage in [Stage::Soft, Stage::Deferred, Stage::Hard, Stage::Late] {
            for step in [Some(step), None] {
                let used = Used { amount: 1.5, partial: step.is_none() };
                all.push(What::BudgetReached { step, metric, stage, used, message: text() });
            }
        }
    }
    for step in [Some(step), None] {
        for raise in [Raise::Cost(End::Soft, CostUsd(0.5)), Raise::Time(std::time::Duration::from_secs(90))] {
            all.push(What::BudgetRaised { step, raise, source: source.clone() });
        }
    }
    all.extend(EndingCause::ALL.map(|cause| What::StepEnding { step, cause, message: text(), source: source.clone() }));
    all.extend(TargetState::ALL.map(|to| What::SteerMoved { id: text(), step, to, detail: Some(text()) }));
    let sub_agent = |did| AgentEvent::SubAgent { id: text(), did };
    let mut said = vec![
        AgentEvent::SessionStarted { session_id: Some(text()), model: Some(text()) },
        AgentEvent::TurnStarted,
        AgentEvent::TurnEnded,
        message(Some(usage), "t"),
        message(Some(Usage { cost: None, ..usage }), ""),
        message(None, ""),
        AgentEvent::ToolStarted {
            call: Some(text()),
            tool: text(),
            args: text(),
            path: Some(text()),
            about: Default::default(),
        },
        AgentEvent::ToolStarted { call: None, tool: text(), args: text(), path: None, about: Default::default() },
        AgentEvent::Retry { attempt: Some(1), max: Some(3), delay_ms: Some(5), reason: text() },
        AgentEvent::Retry { attempt: None, max: None, delay_ms: None, reason: text() },
        AgentEvent::RetryEnded { success: true },
        AgentEvent::Used(Usage {
            tokens: Tokens { input: 1, output: 2, cache_read: 3, cache_write: 4 },
            cost: Some(CostUsd(0.5)),
        }),
        AgentEvent::ProtocolFailure { message: text() },
        AgentEvent::Unknown { kind: text() },
        sub_agent(SubAgentDid::Started { name: text(), about: text(), model: Some(text()) }),
        sub_agent(SubAgentDid::Started { name: text(), about: text(), model: None }),
    ];
    said.extend(ToolOutcome::ALL.map(|outcome| sub_agent(SubAgentDid::Ended(outcome))));
    let outcomes =
        [ToolOutcome::Ok, ToolOutcome::Error, ToolOutcome::Denied, ToolOutcome::Cancelled, ToolOutcome::Lost];
    said.extend(outcomes.map(|outcome| AgentEvent::ToolEnded {
        call: Some(text()),
        tool: Some(text()),
        outcome,
        preview: text(),
    }));
    all.extend(said.into_iter().map(|event| What::Agent { step, event }));
    all
}
