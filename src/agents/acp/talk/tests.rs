//! What is sent to an agent, and when.

use super::*;
use crate::run::Choice;

fn session(dialect: Dialect, change: impl FnOnce(&mut Session)) -> Arc<Session> {
    let mut session = Session { dialect, cwd: "/work".to_owned(), ..Session::default() };
    change(&mut session);
    Arc::new(session)
}

/// A talk whose task is under way, as prompt 3.
fn busy(dialect: Dialect) -> AcpTalk {
    let mut talk = AcpTalk::new(session(dialect, |_| ()));
    talk.prompt("t");
    talk.answer(&response("1", "initialize", None));
    assert_eq!(parse(talk.answer(&begun()))["id"], 3);
    talk
}

fn begun() -> AgentEvent {
    AgentEvent::SessionStarted { session_id: Some("s".to_owned()), model: None }
}

fn response(id: &str, command: &str, error: Option<&str>) -> AgentEvent {
    let (id, command) = (Some(id.to_owned()), command.to_owned());
    AgentEvent::Response { id, command, success: error.is_none(), error: error.map(str::to_owned) }
}

fn parse(bytes: Option<Vec<u8>>) -> Value {
    let bytes = bytes.expect("something is said");
    assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "one line");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn moves(receipts: &[Receipt]) -> Vec<(&str, TargetState)> {
    receipts.iter().map(|receipt| (receipt.id.as_str(), receipt.state)).collect()
}

fn called(method: &str) -> AgentEvent {
    AgentEvent::Called { id: "7".to_owned(), method: method.to_owned() }
}

fn asking(id: &str, kinds: &[(&str, &str)]) -> Asking {
    let choice = |(id, kind): &(&str, &str)| {
        let (id, kind) = ((*id).to_owned(), (*kind).to_owned());
        Choice { id, label: String::new(), kind }
    };
    Asking { id: id.to_owned(), choices: kinds.iter().map(choice).collect(), ..Asking::default() }
}

#[test]
fn a_session_is_logged_in_to_and_loaded_where_that_is_wanted() {
    let mut talk = AcpTalk::new(session(Dialect::Gemini, |session| {
        session.login = Some("key".to_owned());
        session.resume = Some("old".to_owned());
    }));
    let first = parse(Some(talk.prompt("the task")));
    assert_eq!((&first["method"], &first["id"]), (&json!("initialize"), &json!(1)));
    assert_eq!(first["params"]["clientCapabilities"]["fs"]["writeTextFile"], false);
    assert!(!first.to_string().contains("the task"));
    let login = parse(talk.answer(&response("1", "initialize", None)));
    assert_eq!((&login["method"], &login["params"]["methodId"]), (&json!("authenticate"), &json!("key")));
    let load = parse(talk.answer(&response("2", "authenticate", None)));
    let params = json!({"sessionId": "old", "cwd": "/work", "mcpServers": []});
    assert_eq!((&load["method"], &load["params"]), (&json!("session/load"), &params));
    let prompt = parse(talk.answer(&begun()));
    assert_eq!(prompt["params"], json!({"sessionId": "s", "prompt": [{"type": "text", "text": "the task"}]}));
    assert_eq!(talk.answer(&response("3", "session/load", None)), None);
    assert!(!talk.done());
    assert_eq!(talk.answer(&response("4", "session/prompt", None)), None);
    assert!(talk.done());
}

#[test]
fn the_task_waits_for_the_history_where_it_comes_late() {
    let mut talk = AcpTalk::new(session(Dialect::Gemini, |session| {
        session.resume = Some("old".to_owned());
        session.settle = Some("yolo");
    }));
    talk.prompt("the task");
    assert_eq!(parse(talk.answer(&response("1", "initialize", None)))["method"], "session/load");
    let settle = parse(talk.answer(&begun()));
    assert_eq!((&settle["id"], &settle["method"]), (&json!(3), &json!("session/set_mode")));
    assert_eq!(settle["params"], json!({"sessionId": "s", "modeId": "yolo"}));
    assert_eq!(talk.answer(&response("2", "session/load", None)), None);
    assert!(!talk.done());
    let prompt = parse(talk.answer(&response("3", SETTLE, None)));
    assert_eq!((&prompt["id"], &prompt["method"]), (&json!(4), &json!("session/prompt")));
}

#[test]
fn who_refuses_to_begin_is_done() {
    for command in ["initialize", "session/new"] {
        let mut talk = AcpTalk::new(session(Dialect::Other, |_| ()));
        talk.prompt("t");
        assert_eq!(talk.steer("m", SteerMode::Steer, "early"), Some(Vec::new()));
        let no = response("1", command, Some("no key"));
        assert_eq!(talk.answer(&no), None);
        assert_eq!(moves(&talk.receipts(&no)), [("m", TargetState::Failed)]);
        assert!(talk.done() && matches!(talk.steerable(), Steerable::No(_)));
        assert_eq!(talk.steer("n", SteerMode::Steer, "late"), None);
    }
}

#[test]
fn an_early_message_follows_the_task() {
    let mut talk = AcpTalk::new(session(Dialect::OpenCode, |_| ()));
    talk.prompt("t");
    assert_eq!(talk.steer("m", SteerMode::Auto, "early"), Some(Vec::new()));
    talk.answer(&response("1", "initialize", None));
    talk.answer(&begun());
    let message = parse(talk.answer(&response("3", "session/prompt", None)));
    let text = message["params"]["prompt"][0]["text"].as_str().expect("text");
    assert_eq!(wrapping::unwrapped(text), "early");
    assert_eq!(talk.receipts(&response("3", "session/prompt", None)), []);
    assert_eq!(moves(&talk.receipts(&AgentEvent::TurnStarted)), [("m", TargetState::Delivered)]);
    let failed = response("4", "session/prompt", Some("no"));
    assert_eq!(talk.answer(&failed), None);
    assert_eq!(talk.receipts(&failed), []);
    assert!(talk.done());
}

#[test]
fn a_message_that_the_agent_refuses_has_failed() {
    let mut talk = busy(Dialect::OpenCode);
    assert_eq!(parse(talk.steer("m", SteerMode::Auto, "now"))["id"], 4);
    let failed = response("4", "session/prompt", Some("no room"));
    talk.answer(&failed);
    let receipts = talk.receipts(&failed);
    assert_eq!((moves(&receipts), receipts[0].detail.as_deref()), (vec![("m", TargetState::Failed)], Some("no room")));
    assert!(!talk.done(), "the task is not answered");
}

#[test]
fn one_cancel_makes_room_for_all_that_is_said() {
    for dialect in [Dialect::Gemini, Dialect::Copilot, Dialect::Other] {
        let mut talk = busy(dialect);
        let cancel = parse(talk.steer("a", SteerMode::Steer, "first"));
        assert_eq!(cancel, json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}));
        assert_eq!(talk.steer("b", SteerMode::Steer, "second"), Some(Vec::new()));
        assert_eq!(parse(talk.answer(&response("3", "session/prompt", None)))["id"], 4);
        assert!(!talk.done());
        assert_eq!(parse(talk.answer(&response("4", "session/prompt", None)))["id"], 5);
        assert_eq!(talk.wrap_up("two turns left"), None);
    }
}

#[test]
fn an_answer_is_the_option_that_says_it_for_this_once() {
    let options = [("a", "allow_always"), ("o", "allow_once"), ("r", "reject_once")];
    for (options, answer, expected) in [
        (&options[..], Answer::Allow, json!({"outcome": "selected", "optionId": "o"})),
        (&options[..1], Answer::Allow, json!({"outcome": "selected", "optionId": "a"})),
        (&options[..], Answer::Choose("a".into()), json!({"outcome": "selected", "optionId": "a"})),
        (&options[..], Answer::Deny(None), json!({"outcome": "selected", "optionId": "r"})),
        (&options[..2], Answer::Deny(None), json!({"outcome": "cancelled"})),
        (&[("x", "dance")][..], Answer::Allow, json!({"outcome": "cancelled"})),
        (&options[..], Answer::Dismiss, json!({"outcome": "cancelled"})),
    ] {
        let mut talk = busy(Dialect::OpenCode);
        let asked = asking("\"q\"", options);
        assert_eq!(talk.reply(&asked, &answer), None, "nobody asked");
        assert_eq!(talk.answer(&AgentEvent::Asked(Box::new(asked.clone()))), None);
        let reply = parse(talk.reply(&asked, &answer));
        assert_eq!((&reply["id"], &reply["result"]["outcome"]), (&json!("q"), &expected), "{answer:?}");
        assert_eq!(talk.reply(&asked, &answer), None, "once");
    }
}

#[test]
fn who_breaks_off_because_of_a_refusal_is_told_to_go_on() {
    let options = [("a", "allow_once"), ("r", "reject_once")];
    let refuse = |talk: &mut AcpTalk, answer: &Answer| {
        let asked = asking("5", &options);
        talk.answer(&AgentEvent::Asked(Box::new(asked.clone())));
        talk.reply(&asked, answer).expect("it waits");
    };
    let over = |n: u64| response(&n.to_string(), "session/prompt", None);
    let text = |bytes: Option<Vec<u8>>| parse(bytes)["params"]["prompt"][0]["text"].as_str().expect("text").to_owned();
    let why = Answer::Deny(Some("not today".to_owned()));
    for (answer, reason) in [(Answer::Deny(None), REFUSED), (why, "not today"), (Answer::Choose("r".into()), REFUSED)] {
        let mut talk = busy(Dialect::Qwen);
        refuse(&mut talk, &answer);
        let said = text(talk.answer(&over(3)));
        assert!(said.contains(reason) && said.contains(REFUSED), "{said}");
        assert!(!talk.done());
        assert_eq!(talk.answer(&over(4)), None, "once");
        assert!(talk.done());
    }
    // Whose model heard of it, who was allowed it, and who is to break off is not told.
    for (answer, heard, broken_off) in [
        (Answer::Deny(None), true, false),
        (Answer::Deny(None), false, true),
        (Answer::Allow, false, false),
        (Answer::Dismiss, false, false),
    ] {
        let mut talk = busy(Dialect::Copilot);
        refuse(&mut talk, &answer);
        if heard {
            assert_eq!(talk.answer(&AgentEvent::TextDelta { bytes: 3 }), None);
        }
        if broken_off {
            assert!(talk.abort().is_some());
        }
        assert_eq!(talk.answer(&over(3)), None, "{answer:?}");
        assert!(talk.done());
    }
    // A person's message comes in its place, and nobody is told for ever.
    let mut talk = busy(Dialect::Qwen);
    refuse(&mut talk, &Answer::Deny(None));
    talk.steer("m", SteerMode::Steer, "another way");
    assert_eq!(wrapping::unwrapped(&text(talk.answer(&over(3)))), "another way");
    let mut talk = busy(Dialect::Qwen);
    for n in 0..MOST_TOLD {
        refuse(&mut talk, &Answer::Deny(None));
        assert!(talk.answer(&over(u64::from(n) + 3)).is_some());
    }
    refuse(&mut talk, &Answer::Deny(None));
    assert_eq!(talk.answer(&over(u64::from(MOST_TOLD) + 3)), None);
    assert!(talk.done());
}

#[test]
fn what_breaks_a_prompt_off_answers_what_it_waits_for() {
    for steered in [true, false] {
        let mut talk = busy(Dialect::Gemini);
        talk.answer(&AgentEvent::Asked(Box::new(asking("5", &[("o", "allow_once")]))));
        let bytes = if steered { talk.steer("m", SteerMode::Steer, "stop that") } else { talk.abort() };
        let text = String::from_utf8(bytes.unwrap()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["method"], "session/cancel");
        assert_eq!(lines[1], json!({"jsonrpc": "2.0", "id": 5, "result": {"outcome": {"outcome": "cancelled"}}}));
        assert_eq!((talk.given_up(), talk.given_up()), (vec!["5".to_owned()], vec![]));
    }
}

#[test]
fn what_is_not_offered_is_refused() {
    let mut talk = busy(Dialect::Other);
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "x"] {
        let reply = parse(talk.answer(&called(method)));
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32601)), "{method}");
    }
}

#[test]
fn qwen_is_given_what_was_said_when_it_asks() {
    let mut talk = busy(Dialect::Qwen);
    assert_eq!(talk.steer("m", SteerMode::Steer, "now"), Some(Vec::new()));
    assert_eq!(talk.steer("f", SteerMode::FollowUp, "later"), Some(Vec::new()));
    assert_eq!(talk.wrap_up("two turns left"), Some(Vec::new()));
    let reply = parse(talk.answer(&called(DRAIN)));
    let texts = reply["result"]["messages"].as_array().expect("a list");
    assert_eq!(texts.len(), 2);
    assert_eq!(wrapping::unwrapped(texts[0].as_str().expect("text")), "now");
    assert_eq!(moves(&talk.receipts(&called(DRAIN))), [("m", TargetState::Delivered)]);
    let later = parse(talk.answer(&response("3", "session/prompt", None)));
    assert_eq!(wrapping::unwrapped(later["params"]["prompt"][0]["text"].as_str().expect("text")), "later");
}

#[test]
fn queues_are_bounded_and_end_with_the_agent() {
    let mut talk = busy(Dialect::Other);
    for n in 0..SteerRequest::QUEUE_LIMIT {
        assert_eq!(talk.steer(&n.to_string(), SteerMode::FollowUp, "x"), Some(Vec::new()));
    }
    assert_eq!(talk.steer("one too many", SteerMode::FollowUp, "x"), None);
    let abort = parse(talk.abort());
    assert_eq!(abort["method"], "session/cancel");
    assert!(!talk.done());
    assert_eq!(talk.answer(&response("3", "session/prompt", None)), None);
    assert!(talk.done());
}

#[test]
fn who_has_no_session_cannot_be_told_to_break_off() {
    let mut talk = AcpTalk::new(session(Dialect::Other, |_| ()));
    talk.prompt("t");
    assert_eq!(talk.abort(), None);
    assert_eq!(talk.answer(&response("1", "initialize", None)), None);
    assert_eq!(talk.answer(&begun()), None);
    assert!(talk.done());
}
