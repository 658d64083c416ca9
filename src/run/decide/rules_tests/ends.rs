//! What ends a step by itself: going round in circles, time, silence, turns.

use super::*;

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
