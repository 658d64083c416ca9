//! Tables of limits and rules: each at its moment and not a millisecond before, and over when its cause is.

use super::*;
use crate::run::{
    AgentEvent, Answer, AnsweredBy, Asking, CallFacts, CostUsd, Event, ExitCause, Limit, Limits, MessageRole, Question,
    RunMeta, RunPhase, RunnerKind, SteerMode, SteerRequest, SteerTarget, StepMeta, StepOutcome, StopReason,
    TargetState, Thresholds, Tokens, ToolBlock, ToolOutcome, TurnLimit, Usage, What, exit_code, reduce,
};

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

/// A provider whose answers break off makes some agents ask again for ever.
#[test]
fn who_goes_round_in_circles_is_ended() {
    let idle = || match turn(0, 0.0, true) {
        AgentEvent::Message { role, preview, model, usage, error, calls_tools, .. } => {
            AgentEvent::Message { role, preview, model, usage, error, calls_tools, stop: None }
        }
        event => event,
    };
    let calls = |play: &mut Play, from: i64, n: i64| (from..from + n).for_each(|at| drop(play.says(at, idle()).done()));
    let mut play = Play::of(meta());
    calls(&mut play, 1, 24);
    assert_eq!(play.until(30).done(), []);
    calls(&mut play, 31, 1);
    assert_eq!(play.until(31).done(), [(31, "protocol"), (31, "SIGTERM")]);
    // What it does, what it is asked, and an end make it begin to count anew.
    let heard = AgentEvent::Message {
        role: MessageRole::User,
        preview: String::new(),
        model: None,
        stop: None,
        usage: None,
        error: None,
        calls_tools: false,
    };
    for between in [open("a", "bash"), heard, AgentEvent::Settled { aborted: false }, AgentEvent::AgentStarted] {
        let mut play = Play::of(meta());
        calls(&mut play, 1, 24);
        play.says(25, between);
        calls(&mut play, 26, 24);
        let done = play.until(50).done().into_iter().filter(|(_, what)| *what == "protocol").count();
        assert_eq!(done, 0);
    }
}

#[test]
fn tools_end_their_step_at_their_limit() {
    let set = |ms| limited(|l| l.tool_ms = Some(ms));
    let timed = |mut meta: StepMeta, ms| {
        meta.timeout_ms = Some(ms);
        meta
    };
    // (what is granted, the tool that is open from 100 on, the end and its word)
    for (meta, tool, end) in [
        (meta(), "read", Some((300_100, "tool-timeout"))),
        (meta(), "structured_output", Some((300_100, "tool-timeout"))),
        (meta(), "bash", None),
        (meta(), "mcp__x", None),
        (set(800), "bash", Some((900, "tool-timeout"))),
        (set(800), "intercom", None),
        (limited(|l| (l.tool_ms, l.tool_exempt) = (Some(800), vec!["ask".into()])), "ask", None),
        // A limit that lies beyond the step's own end, or on it, is left to that.
        (timed(set(800), 1000), "bash", Some((900, "tool-timeout"))),
        (timed(set(800), 900), "bash", Some((900, "step-timeout"))),
        (timed(set(5000), 1000), "bash", Some((1000, "step-timeout"))),
    ] {
        let mut play = Play::of(meta.clone());
        play.says(100, open("A", tool)).until(400_000);
        assert_eq!(play.done().first().copied(), end, "{tool} {meta:?}");
    }
}

#[test]
fn an_end_of_a_call_ends_its_limit_and_no_other() {
    let mut play = Play::of(limited(|l| l.tool_ms = Some(800)));
    play.says(0, open("A", "read")).says(300, open("B", "read")).says(400, close("A", ToolOutcome::Ok));
    play.until(5000);
    assert_eq!(play.done(), [(1100, "tool-timeout"), (1100, "SIGTERM"), (4100, "SIGKILL")]);
    // A second start of a call begins its time anew (trap 10).
    let mut play = Play::of(limited(|l| l.tool_ms = Some(800)));
    play.says(0, open("A", "read")).says(300, open("A", "read")).until(1100);
    assert_eq!(play.done().first(), Some(&(1100, "tool-timeout")));
    // A child that is gone has no limits.
    let mut play = Play::of(limited(|l| l.tool_ms = Some(800)));
    play.says(0, open("A", "read")).at(700, What::ChildExited { step: STEP, exit: Default::default() }).until(5000);
    assert_eq!(play.done(), []);
}

#[test]
fn of_several_ends_the_first_is_told_however_late_it_is_looked_at() {
    let mut meta = limited(|l| (l.tool_ms, l.idle_ms) = (Some(800), Some(300)));
    meta.timeout_ms = Some(1500);
    let mut play = Play::of(meta);
    play.reduce(What::Agent { step: STEP, event: open("A", "bash") });
    let due = decide(&play.state, ms(9000)).due;
    assert!(matches!(due.as_slice(), [Effect::End { cause: EndingCause::ToolTimeout, .. }]), "{due:?}");
}

#[test]
fn silence_ends_a_step_unless_something_is_waited_for() {
    let idle = || Play::of(limited(|l| l.idle_ms = Some(500)));
    let end = |play: &mut Play| play.until(3000).done().first().copied().map(|(at, what)| (at, what.to_owned()));
    assert_eq!(end(&mut idle()), Some((500, "step-timeout".into())));
    assert_eq!(end(idle().says(400, AgentEvent::TurnStarted)), Some((900, "step-timeout".into())));
    assert_eq!(end(idle().says(400, open("A", "bash"))), None);
    assert_eq!(
        end(idle().says(400, open("A", "bash")).says(800, close("A", ToolOutcome::Ok))),
        Some((1300, "step-timeout".into()))
    );
    let retry = AgentEvent::Retry { attempt: None, max: None, delay_ms: None, reason: String::new() };
    let retried = end(idle().says(400, retry));
    assert_eq!(retried.map(|(_, what)| what), Some("raise retrying".into()));
}

#[test]
fn a_sleep_of_the_machine_puts_every_limit_off() {
    let timed = StepMeta { timeout_ms: Some(1000), ..meta() };
    let deadline = || RunMeta { deadline_at: Some(ms(1000)), ..RunMeta::default() };
    let first = |mut play: Play| {
        // It slept from 200 to 700.
        play.at(700, What::Slept { ms: 500 }).until(20_000);
        play.done.first().cloned()
    };
    let with = |mut play: Play, event: AgentEvent| {
        play.says(0, event);
        play
    };
    let end = |at, word: &str| Some((at, word.to_owned()));
    assert_eq!(first(Play::of(timed)), end(1500, "step-timeout"));
    assert_eq!(first(Play::new(vec![meta()], deadline())), end(1500, "run"));
    let fixed = RunMeta { deadline_fixed: true, ..deadline() };
    assert_eq!(first(Play::new(vec![meta()], fixed)), end(1000, "run"), "a moment on the clock does not move");
    let tool = Play::of(limited(|l| l.tool_ms = Some(1000)));
    assert_eq!(first(with(tool, open("A", "bash"))), end(1500, "tool-timeout"));
    assert_eq!(first(Play::of(limited(|l| l.idle_ms = Some(1000)))), end(1500, "step-timeout"));
    let open_long = Play::of(watched(|t| t.tool_open_ms = Some(1000)));
    assert_eq!(first(with(open_long, open("A", "bash"))), end(1500, "raise tool_open_threshold"));
    let idle = Play::of(watched(|t| t.idle_ms = Some(1000)));
    assert_eq!(first(with(idle, AgentEvent::AgentStarted)), end(1501, "raise idle"));
    assert_eq!(first(Play::of(watched(|t| t.first_event_ms = Some(1000)))), end(1500, "raise no_first_event"));
    assert_eq!(first(Play::of(watched(|t| t.long_ms = Some(1000)))), end(1500, "raise time_threshold"));
}

#[test]
fn turns_end_a_step_once_no_tool_is_open() {
    let granted = || Play::of(limited(|l| l.turns = Some(TurnLimit { max: 2, grace: 1 })));
    // The last answer at the limit is fine, and so is one beyond it.
    let mut play = granted();
    play.says(1, turn(1, 0.0, false)).says(2, turn(1, 0.0, false)).says(3, turn(1, 0.0, true)).until(100);
    assert_eq!(play.done(), [(2, "turns soft"), (2, "raise budget_soft")]);
    // One that uses a tool is waited for, once.
    let mut play = granted();
    for at in 1..=3 {
        play.says(at, turn(1, 0.0, false));
    }
    play.says(4, open("A", "bash")).says(5, turn(1, 0.0, false)).says(6, open("B", "bash"));
    play.says(7, close("A", ToolOutcome::Ok)).says(8, close("B", ToolOutcome::Ok)).until(20);
    assert_eq!(
        play.done(),
        [(2, "turns soft"), (2, "raise budget_soft"), (3, "turns deferred"), (8, "turns hard"), (8, "SIGTERM")]
    );
    // What came together with the end of its tool, and after it, came too late.
    let mut play = granted();
    let mut read = |event| play.reduce(What::Agent { step: StepId(0), event });
    for id in ["A", "B", "C", "D"] {
        read(turn(1, 0.0, false));
        read(open(id, "bash"));
        if id != "D" {
            read(close(id, ToolOutcome::Ok));
        }
    }
    play.until(20);
    assert!(play.done().iter().any(|(_, what)| *what == "turns hard"), "{:?}", play.done());
    // A call that is announced and never made is not waited for longer than its turn.
    let mut play = granted();
    for at in 1..=3 {
        play.says(at, turn(1, 0.0, false));
    }
    play.says(9, ended()).until(20);
    assert_eq!(play.done()[2..], [(3, "turns deferred"), (9, "turns hard"), (9, "SIGTERM")]);
}

/// A runner config leaves the blocked calls to a guard in the agent; where the agent goes on with one that none refused
/// there is no guard, and the runner ends it (runner-behaviour 3.2).
#[test]
fn calls_that_a_guard_is_to_refuse_end_the_step_only_when_there_is_none() {
    let refusal = |id: &str, preview: &str| AgentEvent::ToolEnded {
        call: Some(id.into()),
        tool: None,
        outcome: ToolOutcome::Error,
        preview: preview.into(),
    };
    let soft = [(1, "tool_calls soft"), (1, "raise budget_soft")];
    let begin = || {
        let mut play = Play::of(limited(|l| {
            l.tool_calls = Some(Limit { soft: Some(1), hard: Some(1) });
            l.tool_block = ToolBlock::Names(vec!["read".into()]);
            l.tool_calls_observed = true;
        }));
        play.says(1, open("A", "read")).says(2, close("A", ToolOutcome::Ok)).says(3, open("B", "read"));
        play
    };
    let mut play = begin();
    play.says(4, refusal("B", "Tool budget hard limit reached (1).")).says(5, turn(1, 0.0, false));
    play.says(6, open("C", "read")).says(7, turn(1, 0.0, false)).until(20);
    assert_eq!(play.done(), soft, "it was refused");
    let mut play = begin();
    play.says(4, close("B", ToolOutcome::Ok)).says(5, turn(1, 0.0, true)).until(20);
    assert_eq!(play.done(), soft, "it ends anyway");
    let mut play = begin();
    play.says(4, close("B", ToolOutcome::Ok)).until(5);
    assert_eq!(play.done(), soft, "the refusal may still come with its result");
    play.says(6, turn(1, 0.0, false)).until(20);
    assert_eq!(play.done()[2..], [(6, "tool_calls hard"), (6, "SIGTERM")]);
    let error = play.state.steps[0].ending.as_ref().unwrap().message.clone();
    assert!(error.starts_with("Over budget: 2 tool calls used, 1 tool call allowed. No guard"), "{error}");
    // Another tool than those that are blocked may go on.
    let mut play = Play::of(limited(|l| {
        l.tool_calls = Some(Limit { soft: None, hard: Some(1) });
        l.tool_block = ToolBlock::Names(vec!["write".into()]);
        l.tool_calls_observed = true;
    }));
    play.says(1, open("A", "read")).says(2, open("B", "read")).says(3, turn(1, 0.0, false)).until(20);
    assert_eq!(play.done(), []);
}

#[test]
fn calls_tokens_and_money_have_two_limits() {
    let calls =
        |block| limited(|l| (l.tool_calls, l.tool_block) = (Some(Limit { soft: Some(1), hard: Some(2) }), block));
    let three = |play: &mut Play| {
        for at in 1..=3 {
            play.says(at, open(&at.to_string(), "read"));
        }
        play.until(10);
    };
    let mut play = Play::of(calls(ToolBlock::All));
    three(&mut play);
    let soft = [(1, "tool_calls soft"), (1, "raise budget_soft")];
    assert_eq!(play.done()[..2], soft);
    assert_eq!(play.done()[2..], [(3, "tool_calls hard"), (3, "SIGTERM")], "the one beyond the limit is one too many");
    let mut play = Play::of(calls(ToolBlock::Names(vec!["write".into()])));
    three(&mut play);
    assert_eq!(play.done(), soft, "other tools may go on");

    // The calls of the run are those of all its steps, and the one beyond the limit is one too many there too.
    for (block, ends) in [(ToolBlock::All, true), (ToolBlock::Names(vec!["write".into()]), false)] {
        let limits =
            Limits { tool_calls: Some(Limit { soft: Some(2), hard: Some(3) }), tool_block: block, ..Limits::default() };
        let mut play = Play::new(vec![meta(), meta()], RunMeta { limits, ..RunMeta::default() });
        for (at, step) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
            play.at(at, What::Agent { step: StepId(step), event: open(&at.to_string(), "read") });
        }
        play.until(10);
        let told = [(2, "run tool_calls soft"), (2, "raise budget_soft")];
        let ended = [(4, "run tool_calls hard"), (4, "SIGTERM"), (4, "SIGTERM")];
        assert_eq!(play.done(), if ends { [&told[..], &ended].concat() } else { told.to_vec() });
    }

    let tokens = Limit { soft: Some(10), hard: Some(20) };
    let mut play = Play::of(limited(|l| l.tokens = Some(tokens)));
    play.says(1, turn(9, 0.0, false)).says(2, turn(1, 0.0, false)).says(3, turn(9, 0.0, false));
    play.says(4, turn(1, 0.0, false)).until(10);
    assert_eq!(play.done(), [(2, "tokens soft"), (2, "raise budget_soft"), (4, "tokens hard"), (4, "SIGTERM")]);
    let mut play = Play::of(limited(|l| l.tokens = Some(tokens)));
    play.says(1, turn(99, 0.0, true)).until(10);
    assert_eq!(
        play.done(),
        [(1, "tokens soft"), (1, "tokens late"), (1, "raise budget_soft")],
        "what was the last word anyway ends nothing and is told"
    );
    let mut play = Play::of(limited(|l| l.tokens = Some(tokens)));
    play.says(1, turn(20, 0.0, true)).until(10);
    assert_eq!(play.done(), [(1, "tokens soft"), (1, "raise budget_soft")], "all of it was allowed");
    let cost = Limit { soft: None, hard: Some(CostUsd(0.5)) };
    let mut play = Play::of(limited(|l| (l.cost, l.tokens) = (Some(cost), Some(Limit { soft: None, hard: Some(1) }))));
    play.says(1, turn(9, 0.5, false)).until(10);
    assert_eq!(play.done(), [(1, "tokens hard"), (1, "SIGTERM")], "one limit is enough, tokens go first");
}

#[test]
fn the_limits_of_a_run_end_who_runs_or_spare_them() {
    let run = |spares| {
        let limits = Limits {
            tokens: Some(Limit { soft: Some(10), hard: Some(20) }),
            usage_spares_children: spares,
            ..Limits::default()
        };
        Play::new(vec![meta(), meta()], RunMeta { limits, ..RunMeta::default() })
    };
    let play = |play: &mut Play| {
        play.at(1, What::Agent { step: StepId(1), event: turn(12, 0.0, false) });
        play.says(2, turn(12, 0.0, false)).until(10);
        play.done().into_iter().map(|(at, what)| (at, what.to_owned())).collect::<Vec<_>>()
    };
    let done = |list: &[(i64, &str)]| list.iter().map(|(at, what)| (*at, (*what).to_owned())).collect::<Vec<_>>();
    let soft = [(1, "run tokens soft"), (1, "raise budget_soft")];
    let ends = [(2, "run tokens hard"), (2, "SIGTERM"), (2, "SIGTERM")];
    assert_eq!(play(&mut run(false)), done(&[&soft[..], &ends[..]].concat()));
    assert_eq!(play(&mut run(true)), done(&soft));

    // With the very last word of all there is nothing left to be ended; while another step waits there is.
    let late = |steps: usize| {
        let limits = Limits { tokens: Some(Limit { soft: None, hard: Some(20) }), ..Limits::default() };
        let mut play = Play::new(vec![meta(); steps], RunMeta { limits, ..RunMeta::default() });
        play.says(1, turn(21, 0.0, true)).until(10);
        play.done()[0].1.to_owned()
    };
    assert_eq!((late(1).as_str(), late(2).as_str()), ("run tokens late", "run tokens hard"));
}

#[test]
fn the_warning_of_a_run_is_told_as_one_by_the_first_step_that_runs() {
    let limits = Limits { tokens: Some(Limit { soft: Some(5), hard: Some(1000) }), ..Limits::default() };
    let mut play = Play::new(vec![meta(), meta()], RunMeta { limits, ..RunMeta::default() });
    play.reduce(What::Agent { step: StepId(1), event: turn(20, 0.0, false) });
    let due = crate::run::decide(&play.state, ms(1)).due;
    let [crate::run::Effect::Reach { step: None, stage: crate::run::Stage::Soft, message, .. }] = &due[..] else {
        panic!("{due:?}")
    };
    assert_eq!(message, "The run has used 20 tokens; 1,000 tokens are allowed.");
    play.until(10);
    let told: Vec<_> = play.state.steps.iter().map(|s| s.attention.len()).collect();
    assert_eq!(told, [1, 0]);
    let notice = &play.state.steps[0].attention[0];
    assert_eq!((notice.id.as_str(), notice.level()), ("0:budget_soft:run.tokens", crate::run::Level::Note));
    assert_eq!(notice.condition.evidence, "the run: 20 of 1,000 tokens");
    let raise = crate::run::Raise::Tokens(crate::run::End::Soft, 500);
    play.at(20, What::BudgetRaised { step: None, raise, source: None }).until(30);
    let words: Vec<&str> = play.done().into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["run tokens soft", "raise budget_soft", "clear budget_soft"]);
}

#[test]
fn a_limit_that_is_raised_begins_anew() {
    let mut play = Play::of(limited(|l| l.tool_ms = Some(800)));
    let raise = crate::run::Raise::ToolTimeout(Duration::from_millis(2000));
    play.says(0, open("A", "bash")).at(700, What::BudgetRaised { step: Some(STEP), raise, source: None }).until(2500);
    assert_eq!(play.done().first(), Some(&(2000, "tool-timeout")));
}

#[test]
fn each_rule_is_told_at_its_threshold_and_taken_back_with_its_cause() {
    let ok = ToolOutcome::Ok;
    let failed = ToolOutcome::Error;
    let edits = CallFacts { fingerprint: 5, mutates: true, asks: false };
    let asks = CallFacts { fingerprint: 6, mutates: false, asks: true };
    let retry = || AgentEvent::Retry { attempt: Some(1), max: None, delay_ms: None, reason: "429".into() };
    type Story = (&'static str, StepMeta, Vec<(i64, AgentEvent)>, Vec<(i64, &'static str)>);
    let stories: Vec<Story> = vec![
        (
            "idle is longer than its threshold",
            watched(|t| t.idle_ms = Some(1000)),
            vec![(200, AgentEvent::AgentStarted), (1500, AgentEvent::TurnStarted), (1600, open("A", "bash"))],
            vec![(1201, "raise idle"), (1500, "clear idle")],
        ),
        (
            "no first word",
            watched(|t| t.first_event_ms = Some(700)),
            vec![(900, AgentEvent::AgentStarted)],
            vec![(700, "raise no_first_event"), (900, "clear no_first_event")],
        ),
        (
            "an open tool, the oldest of them",
            watched(|t| t.tool_open_ms = Some(900)),
            vec![(300, open("A", "bash")), (400, open("B", "read")), (2000, close("A", ok)), (2100, close("B", ok))],
            vec![
                (1200, "raise tool_open_threshold"),
                // The oldest one goes, the other one is the oldest then.
                (2000, "raise tool_open_threshold"),
                (2000, "clear tool_open_threshold"),
                (2100, "clear tool_open_threshold"),
            ],
        ),
        (
            "single tools, and those that are exempt",
            watched(|t| {
                (t.tool_open_ms, t.exempt) = (Some(900), vec!["ask".into()]);
                t.tool_open_of = [("web".to_owned(), 50), ("bash".to_owned(), 0)].into();
            }),
            vec![
                (0, open("A", "bash")),
                (0, open("B", "ask")),
                (0, open("C", "intercom")),
                (10, open("D", "web")),
                (2000, close("D", ok)),
            ],
            vec![(60, "raise tool_open_threshold"), (2000, "clear tool_open_threshold")],
        ),
        (
            "a question to the supervisor, until the last is answered",
            meta(),
            vec![
                (10, about("A", "contact_supervisor", asks)),
                (20, about("B", "intercom", asks)),
                (30, close("A", ok)),
                (40, close("B", ok)),
            ],
            vec![(10, "raise supervisor_request"), (40, "clear supervisor_request")],
        ),
        (
            "changes that fail, until one works",
            watched(|t| t.failures = Some(2)),
            vec![
                (1, about("A", "edit", edits)),
                (2, close("A", failed)),
                (3, open("B", "bash")),
                (4, close("B", failed)),
                (5, about("C", "edit", edits)),
                (6, close("C", failed)),
                (7, about("D", "edit", edits)),
                (8, close("D", ok)),
            ],
            vec![(6, "raise tool_failures"), (8, "clear tool_failures")],
        ),
        (
            "the same call, until another one",
            watched(|t| t.repeats = Some(3)),
            vec![
                (1, open("A", "bash")),
                (2, open("B", "bash")),
                (3, open("C", "bash")),
                (4, open("D", "bash")),
                (5, about("E", "edit", edits)),
            ],
            vec![(3, "raise repeated_call"), (5, "clear repeated_call")],
        ),
        (
            "for long, by time, turns and tokens",
            watched(|t| (t.long_ms, t.long_turns, t.long_tokens) = (Some(1000), Some(2), Some(30))),
            vec![(10, turn(29, 0.0, false)), (20, turn(1, 0.0, false))],
            vec![(20, "raise turn_threshold"), (20, "raise token_threshold"), (1000, "raise time_threshold")],
        ),
        (
            "a provider that does not answer",
            meta(),
            vec![(10, retry()), (90, AgentEvent::RetryEnded { success: true })],
            vec![(10, "raise retrying"), (90, "clear retrying")],
        ),
    ];
    for (name, meta, events, told) in stories {
        let mut play = Play::of(meta);
        for (at, event) in events {
            play.says(at, event);
        }
        play.until(5000);
        assert_eq!(play.done(), told, "{name}");
        // Nothing needs a look in a step that is over.
        let outcome = Box::default();
        play.at(6000, What::StepEnded { step: STEP, outcome });
        let step = &play.state.steps[0];
        assert!(step.attention.is_empty() && step.activity.is_none(), "{name}");
    }
}

fn asks(id: &str, at: i64, until: Option<i64>, call: Option<&str>) -> What {
    let asking = Asking { text: "Which?".into(), call: call.map(str::to_owned), ..Asking::default() };
    let question = Question { id: id.into(), asking, asked_at: ms(at), until: until.map(ms) };
    What::QuestionAsked { step: STEP, question: Box::new(question) }
}

fn answers(id: &str, by: AnsweredBy) -> What {
    let (answer, text) = (Answer::Allow, "Which?".into());
    What::QuestionAnswered { step: STEP, id: id.into(), text, answer, by, source: None }
}

#[test]
fn each_question_is_told_until_it_is_answered_or_its_time_is_over() {
    let mut play = Play::of(meta());
    play.at(10, asks("q1", 10, None, None)).at(20, asks("q2", 20, Some(90), None));
    // A message of the agent's in between is no answer.
    play.says(30, turn(1, 0.0, false)).at(50, answers("q1", AnsweredBy::Person)).until(200);
    let told = [(10, "raise question"), (20, "raise question"), (50, "clear question"), (90, "expire q2")];
    assert_eq!(play.done()[..4], told);
    assert_eq!(play.done()[4..], [(90, "clear question")]);
    assert!(play.state.steps[0].questions.is_empty());
    // Once is enough, and a second one of the same name is none.
    let anomalies = play.state.anomalies;
    play.at(210, asks("q3", 210, None, None)).at(220, asks("q3", 220, None, None));
    assert_eq!((play.state.steps[0].questions.len(), play.state.anomalies), (1, anomalies + 1));
    // A step that is being ended asks nobody.
    let (cause, message) = (EndingCause::StepStop, String::new());
    play.at(230, What::StepEnding { step: STEP, cause, message, source: None }).until(300);
    assert!(play.state.steps[0].attention.is_empty());
    play.at(310, What::StepEnded { step: STEP, outcome: Box::default() });
    assert!(play.state.steps[0].questions.is_empty());
    assert_eq!(play.state.anomalies, anomalies + 1);
    play.at(320, asks("q4", 320, None, None));
    assert!(play.state.steps[0].questions.is_empty() && play.state.anomalies == anomalies + 2);
}

#[test]
fn a_call_that_waits_for_a_permission_has_not_begun_and_silence_is_not_the_agents() {
    let step = StepMeta {
        limits: Limits { tool_ms: Some(100), idle_ms: Some(150), ..Limits::default() },
        thresholds: Thresholds { tool_open_ms: Some(50), ..Thresholds::default() },
        ..StepMeta::default()
    };
    let mut play = Play::of(step);
    play.says(0, open("A", "bash")).at(10, asks("q1", 10, None, Some("A"))).until(1000);
    assert_eq!(play.done(), [(10, "raise question")]);
    play.at(1000, answers("q1", AnsweredBy::Person)).until(1200);
    let after = [(1000, "clear question"), (1050, "raise tool_open_threshold"), (1100, "tool-timeout")];
    assert_eq!(play.done()[1..4], after, "its time begins with the answer");
}

#[test]
fn a_question_that_nobody_may_be_asked_pauses_the_run_with_a_code_of_its_own() {
    let mut play = Play::of(meta());
    play.at(10, asks("q1", 10, None, None)).at(10, answers("q1", AnsweredBy::Nobody));
    play.at(10, What::RunInterrupted { source: None });
    let paused = StepOutcome { phase: StepPhase::Paused, ..StepOutcome::default() };
    play.at(20, What::StepEnded { step: STEP, outcome: Box::new(paused) });
    let (state, error) = (RunPhase::Paused, None);
    play.reduce(What::RunEnded { state, error });
    assert_eq!(play.state.steps[0].unanswered.as_deref(), Some("Which?"));
    assert_eq!(exit_code(&play.state), ExitCause::NeedsPerson);
    play.state.steps.push(StepState { phase: StepPhase::Failed, ..StepState::default() });
    assert_eq!(exit_code(&play.state), ExitCause::Failed, "a failure says more");
}

#[test]
fn nothing_is_told_where_the_rules_are_off() {
    let all = |enabled| StepMeta { thresholds: Thresholds { enabled, ..Thresholds::default() }, ..meta() };
    let play = |enabled| {
        let mut play = Play::of(all(enabled));
        play.says(10, about("A", "contact_supervisor", CallFacts { asks: true, ..CallFacts::default() }))
            .until(500_000);
        play.done.len()
    };
    assert_eq!((play(false), play(true)), (0, 2), "a question, and that it runs for long");
}

#[test]
fn what_happened_to_a_step_is_told() {
    let path = |id: u32| {
        let about = CallFacts { mutates: true, ..CallFacts::default() };
        let (call, path) = (Some("A".into()), Some("a.rs".into()));
        let event = AgentEvent::ToolStarted { call, tool: "edit".into(), args: String::new(), path, about };
        What::Agent { step: StepId(id), event }
    };
    let mut play = Play::new(vec![meta(), meta()], RunMeta::default());
    play.at(1, path(0)).at(2, path(1)).at(9, What::StepEnded { step: STEP, outcome: Box::default() }).until(20);
    assert_eq!(play.done(), [(2, "raise path_conflict"), (2, "raise path_conflict"), (9, "clear path_conflict")]);

    let mut play = Play::of(meta());
    play.at(3, What::OutputTruncated { step: STEP, stream: crate::run::Stream::Out, cap: 5 });
    play.at(4, What::OutputHeld { step: STEP, pids: vec![12] }).until(20);
    assert_eq!(play.done(), [(3, "raise disk_cap"), (4, "raise output_held")]);
    let held = &play.state.steps[0].attention[1];
    assert!(held.condition.evidence.contains("12"), "{held:?}");

    let steer = |id: &str, state| {
        let failed_at = (state == TargetState::Failed).then_some(ms(5));
        let target = SteerTarget { step: STEP, state, routed_at: None, delivered_at: None, failed_at, reason: None };
        What::SteerRequested(Box::new(SteerRequest {
            id: id.into(),
            requested_at: ms(5),
            source: None,
            mode: SteerMode::Steer,
            preview: String::new(),
            message: String::new(),
            targets: vec![target],
        }))
    };
    let mut play = Play::of(meta());
    play.at(5, steer("one", TargetState::Failed)).at(8, steer("two", TargetState::Routed)).until(20);
    assert_eq!(play.done(), [(5, "raise steer_failed"), (8, "clear steer_failed")]);
}

#[test]
fn what_somebody_took_note_of_is_told_again_at_twice_the_threshold() {
    let note = |play: &mut Play, at| {
        let id = play.state.steps[0].attention[0].id.clone();
        play.at(at, What::AttentionAcknowledged { step: STEP, id, source: None });
    };
    let mut play = Play::of(watched(|t| t.tool_open_ms = Some(1000)));
    play.says(0, open("A", "bash")).until(1100);
    note(&mut play, 1500);
    play.until(2500);
    note(&mut play, 2600);
    play.until(9000);
    let again = "raise tool_open_threshold again";
    assert_eq!(play.done(), [(1000, "raise tool_open_threshold"), (2000, again), (4000, again)]);
    assert!(play.state.steps[0].attention[0].is_open());
    // Nobody is told twice of what nobody took note of.
    let mut play = Play::of(watched(|t| t.repeats = Some(2)));
    for n in 1..=8 {
        play.says(n, open(&n.to_string(), "bash"));
    }
    assert_eq!(play.until(20).done(), [(2, "raise repeated_call")]);
    note(&mut play, 30);
    // The count is at four times the threshold already, and who took note knows: eight times is what lies ahead.
    for n in 9..=16 {
        play.says(n + 30, open(&n.to_string(), "bash"));
    }
    assert_eq!(play.until(60).done()[1..], [(46, "raise repeated_call again")]);
}

#[test]
fn the_next_attempt_is_made_at_its_time_or_given_up() {
    let next = || {
        let next = crate::run::NextAttempt {
            at: ms(750),
            model: None,
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        What::AttemptEnded { step: STEP, exit_code: 1, error: "e".into(), next }
    };
    let mut play = Play::of(meta());
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(750, "again")]);
    let mut play = Play::of(meta());
    play.at(100, next()).at(200, What::RunStopped { message: "m".into(), source: None }).until(5000);
    assert_eq!(play.done(), [(200, "give up")]);
    let mut play = Play::of(StepMeta { timeout_ms: Some(300), ..meta() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "step-timeout"), (300, "give up")]);
}

#[test]
fn no_attempt_follows_once_a_limit_is_reached() {
    let tokens = |l: &mut Limits| l.tokens = Some(Limit { soft: None, hard: Some(100) });
    let turns = |l: &mut Limits| l.turns = Some(TurnLimit { max: 1, grace: 0 });
    for (meta, word) in [(limited(tokens), "tokens hard"), (limited(turns), "turns hard")] {
        let mut play = Play::of(meta);
        let failed = AgentEvent::Message {
            role: MessageRole::Assistant,
            preview: String::new(),
            model: None,
            stop: Some(StopReason::Error),
            usage: Some(Usage { tokens: Tokens { input: 100, ..Tokens::default() }, cost: None }),
            error: Some("503 overloaded".into()),
            calls_tools: false,
        };
        // All of it comes in one piece, and then the child is gone.
        play.reduce(What::Agent { step: STEP, event: failed });
        play.reduce(What::Agent { step: STEP, event: AgentEvent::Settled { aborted: false } });
        play.reduce(What::ChildExited { step: STEP, exit: crate::run::ExitInfo::default() });
        let next = crate::run::NextAttempt {
            at: ms(0),
            model: Some("b".into()),
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        play.reduce(What::AttemptEnded { step: STEP, exit_code: 1, error: "503 overloaded".into(), next });
        play.until(10);
        let done: Vec<&str> =
            play.done.iter().map(|(_, word)| word.as_str()).filter(|w| !w.ends_with("soft")).collect();
        assert_eq!(done, [word, "give up"]);
    }
}

#[test]
fn no_attempt_follows_when_time_ends_the_step_or_the_run_in_the_same_moment() {
    let next = || {
        let next = crate::run::NextAttempt {
            at: ms(300),
            model: None,
            reason: "r".into(),
            task_by_file: false,
            transport: None,
        };
        What::AttemptEnded { step: STEP, exit_code: 1, error: "e".into(), next }
    };
    let mut play = Play::of(StepMeta { timeout_ms: Some(300), ..meta() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "step-timeout"), (300, "give up")]);
    let mut play = Play::new(vec![meta()], RunMeta { deadline_at: Some(ms(300)), ..RunMeta::default() });
    play.at(100, next()).until(5000);
    assert_eq!(play.done(), [(300, "run"), (300, "give up")]);
    // The end of another step is not its own.
    let mut play = Play::new(vec![meta(), StepMeta { timeout_ms: Some(300), ..meta() }], RunMeta::default());
    play.at(100, next()).until(300);
    assert_eq!(play.done(), [(300, "again"), (300, "step-timeout"), (300, "SIGTERM")]);
}

#[test]
fn what_is_taken_note_of_late_is_told_again_at_the_next_threshold_that_lies_ahead() {
    let mut play = Play::of(watched(|t| t.idle_ms = Some(999)));
    play.says(0, AgentEvent::AgentStarted).until(10_000);
    play.at(10_000, What::AttentionAcknowledged { step: STEP, id: "0:idle".into(), source: None }).until(20_000);
    assert_eq!(play.done(), [(1000, "raise idle"), (16_000, "raise idle again")]);
}

#[test]
fn changes_that_fail_at_one_path_are_told_though_others_work_between_them() {
    let mut play = Play::of(watched(|t| t.failures = Some(3)));
    let call = |id: &str, path: &str| AgentEvent::ToolStarted {
        call: Some(id.into()),
        tool: "edit".into(),
        args: String::new(),
        path: Some(path.into()),
        about: CallFacts { mutates: true, ..CallFacts::default() },
    };
    for n in 0..3i64 {
        play.says(n * 10, call("A", "a.rs")).says(n * 10 + 1, close("A", ToolOutcome::Error));
        play.says(n * 10 + 2, call("B", "b.rs")).says(n * 10 + 3, close("B", ToolOutcome::Ok));
    }
    play.until(100);
    assert_eq!(play.done().first().copied(), Some((21, "raise tool_failures")));
}
#[test]
fn changes_that_failed_at_one_path_are_past_when_one_works_there_or_after_five_minutes() {
    let call = |id: &str, path: &str| AgentEvent::ToolStarted {
        call: Some(id.into()),
        tool: "edit".into(),
        args: String::new(),
        path: Some(path.into()),
        about: CallFacts { mutates: true, ..CallFacts::default() },
    };
    let story = || {
        let mut play = Play::of(watched(|t| t.failures = Some(2)));
        play.says(0, call("A", "a.rs")).says(1, close("A", ToolOutcome::Error));
        play.says(2, call("B", "b.rs")).says(3, close("B", ToolOutcome::Ok));
        play.says(4, call("A", "a.rs")).says(5, close("A", ToolOutcome::Error));
        play.says(6, call("B", "b.rs")).says(7, close("B", ToolOutcome::Ok));
        play
    };
    let mut play = story();
    play.says(8, call("A", "a.rs")).says(9, close("A", ToolOutcome::Ok)).until(100);
    assert_eq!(play.done(), [(5, "raise tool_failures"), (9, "clear tool_failures")]);
    let mut play = story();
    play.until(400_000);
    assert_eq!(play.done(), [(5, "raise tool_failures"), (300_002, "clear tool_failures")]);
}

#[test]
fn what_is_counted_is_told_again_at_the_next_doubling_beyond_what_was_noted() {
    let mut play = Play::of(watched(|t| t.long_turns = Some(1)));
    for at in 1..=20 {
        play.says(at * 10, turn(1, 0.0, false));
        if at == 5 {
            play.until(55);
            play.at(55, What::AttentionAcknowledged { step: STEP, id: "0:turn_threshold".into(), source: None });
        }
    }
    play.until(300);
    assert_eq!(play.done(), [(10, "raise turn_threshold"), (80, "raise turn_threshold again")]);
}
