//! What is kept of what happened, and in which words.

use super::*;
use crate::run::StepOutcome;

fn event(what: What) -> Event {
    Event { at: Timestamp::from_millis(1_000), what }
}

#[test]
fn many_busy_steps_keep_less_of_each_and_all_of_them_within_a_bound() {
    let (state, mut history) = (RunState::default(), History::default());
    let call = |tool: String| AgentEvent::ToolStarted {
        call: None,
        tool,
        args: String::new(),
        path: None,
        about: Default::default(),
    };
    let say = |history: &mut History, step: u32, n: usize| {
        history.add(&state, &[event(What::Agent { step: StepId(step), event: call(format!("t{n}")) })], &[]);
    };
    (0..600).for_each(|n| say(&mut history, 0, n));
    assert_eq!(history.of(StepId(0)).count(), History::KEPT);
    for step in 0..1_000 {
        (0..40).for_each(|n| say(&mut history, step, n));
    }
    let all: usize = history.steps.values().map(VecDeque::len).sum::<usize>()
        + history.said.values().map(VecDeque::len).sum::<usize>();
    assert!(all <= History::OF_ALL && all > History::OF_ALL / 4, "{all}");
    assert_eq!(all, history.kept);
    // Of each the newest are kept.
    let last = history.of(StepId(999)).next_back().unwrap();
    assert!(last.text.as_str().contains("t39"), "{last:?}");
    assert!(history.of(StepId(0)).count() >= 5);
    assert!(history.weight() > all * size_of::<Entry>() && history.weight() < all * 1024);
}

#[test]
fn the_end_of_a_call_that_gave_nothing_names_the_call() {
    let step = StepId(0);
    let said = |at, event| Event { at: Timestamp::from_millis(at), what: What::Agent { step, event } };
    let begin = |at, id: &str, args: &str| {
        let (tool, about) = ("bash".to_owned(), Default::default());
        said(at, AgentEvent::ToolStarted { call: Some(id.to_owned()), tool, args: args.to_owned(), path: None, about })
    };
    let end = |at, id: &str, tool: Option<&str>, outcome, preview: &str| {
        let (call, tool) = (Some(id.to_owned()), tool.map(str::to_owned));
        said(at, AgentEvent::ToolEnded { call, tool, outcome, preview: preview.to_owned() })
    };
    let events = [
        begin(1, "a", "make one"),
        begin(2, "b", "make two"),
        begin(3, "c", "make three"),
        end(4, "b", Some("bash"), ToolOutcome::Error, "\n"),
        end(5, "a", None, ToolOutcome::Ok, ""),
        end(6, "c", None, ToolOutcome::Denied, "not allowed"),
        // It ended before.
        end(7, "b", None, ToolOutcome::Error, ""),
    ];
    let told = |history: &History| -> Vec<String> { history.of(step).map(|entry| entry.text.to_string()).collect() };
    let of = |history: &History| -> Vec<Option<String>> {
        let results = history.said[&step].iter().filter_map(|said| match &said.what {
            crate::deck::said::SaidWhat::Result { tool, of, .. } => Some(of.as_ref().map(|of| format!("{tool}: {of}"))),
            _ => None,
        });
        results.collect()
    };
    // One after the other, and all at once: then the run may not know of the calls any more.
    let mut state = RunState { steps: vec![crate::run::StepState::default()], ..RunState::default() };
    let (mut one_by_one, mut at_once) = (History::default(), History::default());
    at_once.add(&state, &events, &[]);
    for event in &events {
        crate::run::reduce(&mut state, event);
        one_by_one.add(&state, std::slice::from_ref(event), &[]);
    }
    for history in [one_by_one, at_once] {
        let ends = ["✗ bash failed make two", "✗ bash denied not allowed", "✗ tool failed"];
        assert_eq!(told(&history)[3..], ends.map(str::to_owned));
        let made = |what: &str| Some(format!("bash: make {what}"));
        assert_eq!(of(&history), [made("two"), made("one"), None, None]);
    }
}

#[test]
fn events_become_safe_lines() {
    let state = RunState::default();
    let mut history = History::default();
    let step = StepId(2);
    history.add(
        &state,
        &[
            event(What::StepStarted { step }),
            event(What::Agent {
                step,
                event: AgentEvent::ToolStarted {
                    call: None,
                    tool: "bash\x1b[2J".to_owned(),
                    args: "ls\x1b]0;x\x07".to_owned(),
                    path: None,
                    about: Default::default(),
                },
            }),
            event(What::Agent { step, event: AgentEvent::TurnStarted }),
            event(What::StepEnded {
                step,
                outcome: Box::new(StepOutcome {
                    phase: StepPhase::Failed,
                    exit_code: 3,
                    error: Some("no".to_owned()),
                    ..StepOutcome::default()
                }),
            }),
        ],
        &[Spot::of(0, 0), Spot::of(10, 0)],
    );
    let lines: Vec<&str> = history.ticker.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(lines, ["started", "› bash\u{fffd} ls\u{fffd}", "failed with exit 3: no"]);
    assert_eq!(history.of(step).map(|e| e.place).collect::<Vec<_>>(), [Some(0), Some(10), None]);
    assert_eq!(history.said[&step].len(), 1);
}

#[test]
fn an_abort_that_was_asked_for_is_no_error() {
    let message = |error: &str| {
        event(What::Agent {
            step: StepId(0),
            event: AgentEvent::Message {
                role: MessageRole::Assistant,
                preview: String::new(),
                model: None,
                stop: Some(crate::run::StopReason::Error),
                usage: None,
                error: Some(error.to_owned()),
                calls_tools: false,
            },
        })
    };
    let line = |phase: StepPhase, error: &str| {
        let step = crate::run::StepState { phase, ..Default::default() };
        let state = RunState { steps: vec![step], ..RunState::default() };
        let mut history = History::default();
        history.add(&state, &[message(error)], &[]);
        let entry = history.ticker.front().unwrap();
        (entry.text.as_str().to_owned(), entry.tone == Tone::Bad)
    };
    let aborted = "This operation was aborted";
    assert_eq!(line(StepPhase::Paused, aborted), (format!("broken off as asked: {aborted}"), false));
    assert_eq!(line(StepPhase::Running, aborted), (format!("error: {aborted}"), true));
    assert_eq!(line(StepPhase::Paused, "429"), ("error: 429".to_owned(), true));
}

#[test]
fn who_asked_for_an_end_is_told_once_and_what_was_asked_for_is_no_failure() {
    let source =
        crate::run::ControlSource { via: "deck".to_owned(), user: Some("root".to_owned()), ..Default::default() };
    let ending = |message: &str, source: Option<&crate::run::ControlSource>| What::StepEnding {
        step: StepId(0),
        cause: crate::run::EndingCause::StepStop,
        message: message.to_owned(),
        source: source.cloned(),
    };
    let line = |what: What| {
        let entry = tell(&RunState::default(), &event(what)).unwrap();
        (entry.text.as_str().to_owned(), entry.tone)
    };
    assert_eq!(line(ending(STOPPED, Some(&source))), ("stop asked for by root (deck)".to_owned(), Tone::Control));
    assert_eq!(line(ending("Enough of it.", Some(&source))).0, "Enough of it by root (deck)");
    assert_eq!(line(ending(STOPPED, None)).0, "Stopped by user.");
    let ended = |state: RunPhase| line(What::RunEnded { state, error: None }).1;
    let tones = [RunPhase::Complete, RunPhase::Stopped, RunPhase::Paused, RunPhase::Failed].map(ended);
    assert_eq!(tones, [Tone::Good, Tone::Control, Tone::Control, Tone::Bad]);
}

#[test]
fn a_request_is_known_by_the_end_of_its_id_or_by_the_name_that_somebody_gave() {
    for (id, shown) in [("5f0c7e10-a91f", "a91f"), ("1764420051-00123456", "3456"), ("any-id", "any-id"), ("x", "x")] {
        assert_eq!(short(id), shown);
    }
}

#[test]
fn what_came_before_something_that_was_left_out_is_let_go_of() {
    let step = StepId(0);
    let say = |text: &str| AgentEvent::ToolStarted {
        call: None,
        tool: text.to_owned(),
        args: String::new(),
        path: None,
        about: Default::default(),
    };
    let all = |left: LeftOut, spots: [Spot; 3]| {
        let mut history = History::default();
        let first = [event(What::StepStarted { step }), event(What::Agent { step, event: say("first") })];
        history.add(&RunState::default(), &first, &spots[..2]);
        history.add(&RunState::default(), &[event(What::Agent { step, event: say("last") })], &spots[2..]);
        history.miss(&BTreeMap::from([(step, left)]));
        assert_eq!(history.kept, history.steps[&step].len() + history.said[&step].len());
        assert!(history.is_cut(step, false));
        (history.steps[&step].len(), history.said[&step].len())
    };
    let spots = [0, 100, 900].map(|place| Spot::of(place, 0));
    let from = spots[2].number;
    assert_eq!(all(LeftOut { said: from, other: None }, spots), (1, 1));
    assert_eq!(all(LeftOut { said: None, other: from }, spots), (1, 2));
    // Where the others cannot be listed, everything stays.
    assert_eq!(all(LeftOut { said: from, other: None }, [Spot::default(); 3]), (3, 2));
}

#[test]
fn the_rings_are_bounded() {
    let events = vec![event(What::StepStarted { step: StepId(0) }); History::KEPT + 10];
    let mut history = History::default();
    history.add(&RunState::default(), &events, &[]);
    assert_eq!((history.ticker.len(), history.of(StepId(0)).count()), (History::KEPT, History::KEPT));
    // What was pushed out is told; nothing was said by anybody.
    assert!(history.is_cut(StepId(0), false) && !history.is_cut(StepId(0), true));
    assert!(!history.is_cut(StepId(1), false));
    let left = |said, other| LeftOut { said, other };
    history.miss(&BTreeMap::from([(StepId(1), left(Some(7), None)), (StepId(0), left(None, Some(7)))]));
    assert!(history.is_cut(StepId(1), true) && history.is_cut(StepId(1), false) && !history.is_cut(StepId(0), true));
}
