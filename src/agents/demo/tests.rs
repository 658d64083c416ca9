//! The demo agent against the real adapter of pi, in virtual time.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::{BUILT_IN, Input, Scene, Script, Session, Stage, serve};
use crate::agents::Talk;
use crate::agents::pi::{PiAdapter, PiTalk};
use crate::agents::told::{self, Seen};
use crate::run::{
    AgentEvent, Ending, EndingCause, Evidence, ExitInfo, Report, SteerMode, StepPhase, TargetState, Timestamp, judge,
};

#[derive(Default)]
struct Virtual {
    now: Duration,
    input: VecDeque<(u64, Input)>,
    out: Vec<u8>,
    err: Vec<String>,
}

impl Stage for Virtual {
    fn now(&self) -> Duration {
        self.now
    }
    fn wait(&mut self, until: Option<Duration>) -> Option<Input> {
        let next = self.input.front().map(|(ms, _)| Duration::from_millis(*ms));
        match (next, until) {
            (Some(at), until) if until.is_none_or(|until| at <= until) => {
                self.now = self.now.max(at);
                self.input.pop_front().map(|(_, input)| input)
            }
            (_, Some(until)) => {
                self.now = self.now.max(until);
                None
            }
            _ => Some(Input::Eof),
        }
    }
    fn out(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }
    fn err(&mut self, line: &str) {
        self.err.push(line.to_owned());
    }
    fn wall_ms(&self) -> i64 {
        1_700_000_000_000 + i64::try_from(self.now.as_millis()).unwrap()
    }
}

struct Played {
    code: u8,
    seen: Seen,
    report: Report,
    stage: Virtual,
}

impl Played {
    fn judged(&self, ending: Option<&Ending>) -> StepPhase {
        let exit = ExitInfo { code: Some(i32::from(self.code)), signal: None };
        let evidence = Evidence { report: &self.report, exit, spawn_error: None, ending, stderr_tail: "" };
        judge(&evidence).outcome.phase
    }
}

fn play(scene: &Scene, session: Session, input: Vec<(u64, Input)>) -> Played {
    let mut stage = Virtual { input: input.into(), ..Virtual::default() };
    let code = serve(scene, session, &mut stage);
    let (seen, report) = told::play(&mut PiAdapter::new(), std::str::from_utf8(&stage.out).unwrap());
    Played { code, seen, report, stage }
}

fn lines(bytes: &[u8], at_ms: u64) -> Vec<(u64, Input)> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.lines().map(|line| (at_ms, Input::Line(line.to_owned()))).collect()
}

fn prompt(task: &str) -> Vec<(u64, Input)> {
    lines(&PiTalk::new().prompt(task), 0)
}

fn scene(name: &str) -> Scene {
    Script::parse(BUILT_IN).unwrap().into_scene(name).unwrap()
}

fn memory() -> Session {
    Session::in_memory("s1".into())
}

/// Two turns: a tool of ten seconds, then an answer of three words.
fn short_scene() -> Scene {
    let text = r#"
[scene.a]
pace_ms = 100
[[scene.a.turn]]
say = "One moment"
tool = [{ name = "bash", args = { command = "make" }, time_ms = 10000, output = "x\ny\n" }]
[[scene.a.turn]]
say = "All is done."
"#;
    Script::parse(text).unwrap().into_scene("a").unwrap()
}

#[test]
fn every_scene_ends_well() {
    for (name, scene) in Script::parse(BUILT_IN).unwrap().scene {
        let played = play(&scene, memory(), prompt("Do what you do."));
        assert_eq!((played.code, played.judged(None)), (0, StepPhase::Complete), "{name}");
        let session = played.seen.events.iter().any(
            |e| matches!(e, AgentEvent::SessionStarted { session_id: Some(id), model: Some(m) } if id == "s1" && m == "demo-1"),
        );
        assert!(session, "{name} names its session");
        assert!(!played.seen.events.iter().any(|e| matches!(e, AgentEvent::Unknown { .. })), "{name}");
        let started = played.seen.events.iter().filter(|e| matches!(e, AgentEvent::ToolStarted { .. })).count();
        let ended = played.seen.events.iter().filter(|e| matches!(e, AgentEvent::ToolEnded { .. })).count();
        assert_eq!(started, ended, "{name}");
    }
}

#[test]
fn the_scenes_show_what_agents_do() {
    let mend = play(&scene("mend"), memory(), prompt("x")).seen;
    let kinds: Vec<&str> = mend
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolStarted { .. } => Some("start"),
            AgentEvent::ToolEnded { outcome: crate::run::ToolOutcome::Error, .. } => Some("error"),
            AgentEvent::ToolEnded { .. } => Some("end"),
            AgentEvent::Retry { .. } => Some("retry"),
            AgentEvent::RetryEnded { success: true } => Some("retried"),
            _ => None,
        })
        .collect();
    let expected =
        ["start", "start", "start", "end", "end", "error", "retry", "retried", "start", "end", "start", "end"];
    assert_eq!(kinds, expected);

    // What a tool printed while it ran is not written again at its end.
    for line in ["runs 1 to 5: ok\n", "src/main.rs:18\n", "edited tests/tide.rs\n"] {
        assert_eq!(mend.log.matches(line).count(), 1, "{}", mend.log);
    }

    let build = play(&scene("build"), memory(), prompt("x"));
    assert_eq!(build.stage.err.len(), 2);
    assert!(build.seen.log.contains("\u{1b}[1;33mwarning"), "{}", build.seen.log);
    assert!(build.report.raw_tail.contains("\rlinking"));
    let review = play(&scene("review"), memory(), prompt("one two three"));
    assert!(review.seen.log.contains("I have 3 words of findings"), "{}", review.seen.log);
}

#[test]
fn the_demo_takes_about_twenty_seconds() {
    let time = |name: &str| play(&scene(name), memory(), prompt("x")).stage.now.as_secs_f64();
    let scouts = time("scout-tests").max(time("scout-docs"));
    let work = time("mend").max(time("build")).max(time("write"));
    // The plain command sleeps three times 0.4 s.
    let all = scouts + work + 1.2 + time("review");
    assert!((15.0..25.0).contains(&all), "{all} s: {scouts} + {work} + 1.2 + {}", time("review"));
}

#[test]
fn a_message_is_taken_in_after_the_running_tool() {
    let mut talk = PiTalk::new();
    let mut input = lines(&talk.prompt("work"), 0);
    input.extend(lines(&talk.steer("r1", SteerMode::Steer, "mention bananas").unwrap(), 3000));
    input.extend(lines(&talk.steer("r2", SteerMode::FollowUp, "and pears").unwrap(), 3001));
    let played = play(&short_scene(), memory(), input);
    let mut moves = Vec::new();
    for event in &played.seen.events {
        if matches!(event, AgentEvent::ToolEnded { .. }) {
            moves.push(("tool".to_owned(), TargetState::Unknown));
        }
        moves.extend(talk.receipts(event).into_iter().map(|r| (r.id, r.state)));
    }
    let expected = [
        ("r1", TargetState::Queued),
        ("r2", TargetState::Queued),
        ("tool", TargetState::Unknown),
        ("r1", TargetState::Delivered),
        ("r2", TargetState::Delivered),
    ];
    assert_eq!(moves, expected.map(|(id, state)| (id.to_owned(), state)));
    assert!(talk.done());
    assert!(played.seen.log.contains("Noted: mention bananas. All is done."), "{}", played.seen.log);
    assert_eq!(
        played.report.final_text.as_deref(),
        Some("I took in what you said, \"and pears\", and the result stands.")
    );
    assert_eq!(played.judged(None), StepPhase::Complete);
}

#[test]
fn an_idle_agent_takes_another_prompt() {
    let mut talk = PiTalk::new();
    let mut input = lines(&talk.prompt("work"), 0);
    talk.receipts(&AgentEvent::Settled { aborted: false });
    input.extend(lines(&talk.steer("late", SteerMode::Auto, "one more thing").unwrap(), 60_000));
    let played = play(&short_scene(), memory(), input);
    let settled = played.seen.events.iter().filter(|e| matches!(e, AgentEvent::Settled { .. })).count();
    assert_eq!(settled, 2);
    assert!(
        played.report.final_text.as_deref().unwrap().contains("\"one more thing\""),
        "{:?}",
        played.report.final_text
    );
}

#[test]
fn an_abort_is_prompt_and_the_session_lives() {
    // In the tool, and in the middle of the text.
    for at in [5000, 150] {
        let mut talk = PiTalk::new();
        let mut input = lines(&talk.prompt("work"), 0);
        input.extend(lines(&talk.abort().unwrap(), at));
        let played = play(&short_scene(), memory(), input);
        assert_eq!(played.stage.now.as_millis(), u128::from(at));
        assert!(played.report.aborted && played.report.settled && !played.report.clean_stop);
        assert!(matches!(
            played.seen.events.last(),
            Some(AgentEvent::Response { command, success: true, .. }) if command == "abort"
        ));
        let started = played.seen.events.iter().filter(|e| matches!(e, AgentEvent::ToolStarted { .. })).count();
        let ended = played.seen.events.iter().filter(|e| matches!(e, AgentEvent::ToolEnded { .. })).count();
        assert_eq!(started, ended);
        let ending = Ending {
            cause: EndingCause::Interrupt,
            since: Timestamp::default(),
            message: String::new(),
            abort_at: None,
            int_at: None,
            term_at: None,
            kill_at: None,
        };
        assert_eq!(played.judged(Some(&ending)), StepPhase::Paused);
        assert_eq!(played.judged(None), StepPhase::Failed);
    }
}

#[test]
fn what_ends_the_process() {
    for (input, code) in [(Input::Eof, 0), (Input::Signal(15), 143), (Input::Signal(1), 129)] {
        let mut all = prompt("work");
        all.push((5000, input));
        let played = play(&short_scene(), memory(), all);
        assert_eq!((played.code, played.stage.now.as_millis()), (code, 5000));
        assert!(!played.report.terminal_record_seen());
        assert_ne!(played.judged(None), StepPhase::Complete);
    }
}

#[test]
fn odd_commands_are_answered() {
    let table = [
        ("no json", "parse", false),
        (r#"{"id":"x","type":"nonsense"}"#, "nonsense", false),
        (r#"{"id":"x","type":"prompt"}"#, "prompt", false),
        (r#"{"id":"x","type":"steer","message":"hello"}"#, "steer", true),
        (r#"{"id":"x","type":"abort"}"#, "abort", true),
    ];
    for (line, command, success) in table {
        let played = play(&short_scene(), memory(), vec![(0, Input::Line(line.into()))]);
        let answered =
            played.seen.events.iter().any(
                |e| matches!(e, AgentEvent::Response { command: c, success: s, .. } if c == command && *s == success),
            );
        assert!(answered, "{line}: {:?}", played.seen.events);
    }
    let mut busy = prompt("work");
    busy.push((3000, Input::Line(r#"{"id":"x","type":"prompt","message":"again"}"#.into())));
    let played = play(&short_scene(), memory(), busy);
    assert!(played.seen.events.iter().any(|e| matches!(e, AgentEvent::Response { success: false, .. })));
    assert_eq!(played.judged(None), StepPhase::Complete);
}

#[test]
fn a_session_goes_on_where_it_was() {
    /// What was written, for who opens it again.
    #[derive(Clone, Default)]
    struct Kept(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);
    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let kept = Kept::default();
    let written = || String::from_utf8(kept.0.borrow().clone()).unwrap();
    let open = |id: &str| Session::over(&written(), Box::new(kept.clone()), id.to_owned(), 0, "/work");
    let session = open("first");
    assert_eq!(session.resumed_at, None);
    // Aborted while the second turn speaks: 200 ms of text, 10 s of tool, 100 ms of text.
    let mut input = prompt("work");
    input.extend(lines(&PiTalk::new().abort().unwrap(), 10_250));
    let played = play(&short_scene(), session, input);
    assert!(played.report.aborted);

    let session = open("second");
    assert_eq!((session.id.as_str(), session.resumed_at), ("first", Some(1)));
    let played = play(&short_scene(), session, prompt("go on"));
    assert_eq!(played.report.final_text.as_deref(), Some("I go on where I was. All is done."));
    assert!(!played.seen.events.iter().any(|e| matches!(e, AgentEvent::ToolStarted { .. })));

    let text = written();
    let entries: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries[0]["type"], "session");
    assert!(entries.iter().any(|e| e["message"]["usage"]["input"].as_u64() > Some(0)));
    // A torn last line does no harm.
    let torn = &text[..text.len() - 20];
    assert_eq!(Session::over(torn, Box::new(kept.clone()), "third".to_owned(), 0, "/work").id, "first");
}
