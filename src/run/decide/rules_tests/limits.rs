//! Limits of calls, tokens and money, of a step and of the run.

use super::*;

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
    assert_eq!(message, "The run has used 20+ tokens; 1,000 tokens are allowed.", "the first step tells nothing");
    play.until(10);
    let told: Vec<_> = play.state.steps.iter().map(|s| s.attention.len()).collect();
    assert_eq!(told, [1, 0]);
    let notice = &play.state.steps[0].attention[0];
    assert_eq!((notice.id.as_str(), notice.level()), ("0:budget_soft:run.tokens", crate::run::Level::Note));
    assert_eq!(notice.condition.evidence, "the run: 20+ tokens; the warning is at 5, the end at 1,000");
    let raise = crate::run::Raise::Tokens(crate::run::End::Soft, 500);
    play.at(20, What::BudgetRaised { step: None, raise, source: None }).until(30);
    let words: Vec<&str> = play.done().into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["run tokens soft", "raise budget_soft", "clear budget_soft"]);
}

#[test]
fn what_is_said_of_a_limit_of_the_run_says_when_a_part_is_not_told() {
    let cost = |soft: f64, hard: f64| Limits {
        cost: Some(Limit { soft: Some(CostUsd(soft)), hard: Some(CostUsd(hard)) }),
        ..Limits::default()
    };
    // What is recorded and what people read of it, once the second step has told what it used; whether the first has too.
    let said = |limits: Limits, last: bool, both: bool| {
        let mut play = Play::new(vec![meta(), meta()], RunMeta { limits, ..RunMeta::default() });
        if both {
            play.reduce(What::Agent { step: STEP, event: turn(1, 0.0, last) });
        } else if last {
            let ended = StepOutcome { phase: crate::run::StepPhase::Complete, ..StepOutcome::default() };
            play.reduce(What::StepEnded { step: STEP, outcome: Box::new(ended) });
        }
        play.reduce(What::Agent { step: StepId(1), event: turn(9, 0.84, last) });
        let due = crate::run::decide(&play.state, ms(1)).due.into_iter();
        let reached = due.filter_map(|effect| match perform(&effect).1 {
            What::BudgetReached { used, message, .. } if used.partial == both => panic!("{message}"),
            ref what @ What::BudgetReached { ref message, .. } => {
                Some((message.clone(), crate::run::words::told(what).unwrap().text))
            }
            _ => None,
        });
        reached.collect::<Vec<_>>()
    };
    let pair = |message: &str, told: &str| (message.to_owned(), told.to_owned());
    let soft = |sum: &str| {
        let message = format!("The run has used {sum}; $2.000000 are allowed.");
        (message, format!("· a warning of the run is reached: {sum}"))
    };
    assert_eq!(said(cost(0.5, 2.0), false, true), [soft("$0.840000")]);
    assert_eq!(said(cost(0.5, 2.0), false, false), [soft("$0.840000+")]);
    let over = "The run is over budget: $0.840000+ used, $0.700000 allowed.";
    assert_eq!(said(cost(0.7, 0.7), false, false)[1..], [pair(over, &format!("$ {over}"))]);
    let late = "The run went over its limit with its last word: $0.840000+ used, $0.700000 allowed.";
    assert_eq!(said(cost(0.7, 0.7), true, false)[1..], [pair(late, &format!("▲ {late}"))]);
}

#[test]
fn a_limit_that_is_raised_begins_anew() {
    let mut play = Play::of(limited(|l| l.tool_ms = Some(800)));
    let raise = crate::run::Raise::ToolTimeout(Duration::from_millis(2000));
    play.says(0, open("A", "bash")).at(700, What::BudgetRaised { step: Some(STEP), raise, source: None }).until(2500);
    assert_eq!(play.done().first(), Some(&(2000, "tool-timeout")));
}
