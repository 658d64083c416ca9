//! Questions of agents, answered in the deck as a person does it: they are told in the line of attention and answered in
//! place. The agent is `tests/bin/asker.sh`.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use support::Home;
use support::pty::Pty;

const ASKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/asker.sh");
const CLAUDE: &str = r#"{"type":"control_request","request_id":"r-1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make all"},"tool_use_id":"t1"}}"#;
const EDIT: &str = r#"{"type":"control_request","request_id":"r-1","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"file_path":"/x","old_string":"the old line","new_string":"API_KEY=Abcd1234\nthe new line"},"tool_use_id":"t1"}}"#;
const SEVERAL: &str = r#"{"type":"control_request","request_id":"r-1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which ones?","multiSelect":true,"options":[{"label":"Red"},{"label":"Green"},{"label":"Blue"}]}]},"tool_use_id":"t1"}}"#;
const ACP: &str = r#"{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"t1","title":"make all","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;

/// The deck on a run whose agent asks this; `channel` is for its supervisor.
fn deck(home: &Home, family: &str, ask: Option<&str>, channel: Option<&str>) -> Pty {
    if let Some(ask) = ask {
        std::fs::write(home.path().join("ask"), format!("{ask}\n")).unwrap();
    }
    if let Some(request) = channel {
        std::fs::create_dir(home.path().join("channel")).unwrap();
        std::fs::write(home.path().join("channel/s-1.json"), request).unwrap();
    }
    let agent = if family == "pi" { "agent = \"a\"\nsystem_prompt = \"x\"\n" } else { "" };
    let runner = format!("runner = {{ type = \"{family}\", command = {ASKER:?}, args = [{family:?}] }}");
    let plan = format!("[[step]]\nid = \"asker\"\n{agent}task = \"Do it.\"\n{runner}\n");
    std::fs::write(home.path().join("plan.toml"), plan).unwrap();
    home.deck(&["run", "plan.toml"], 120, 36)
}

fn kept(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap_or_default()
}

#[test]
fn a_permission_is_shown_and_allowed() {
    let home = Home::new();
    let pty = deck(&home, "claude", Some(CLAUDE), None);
    pty.wait_text("1 NEEDS YOU  step 1 asker: May it use Bash? make all");
    pty.wait_text("A answer");
    pty.keys("A");
    pty.wait_text("step 1 asker asks");
    // Only a key that says what it means answers.
    pty.keys("x");
    pty.keys("\r");
    pty.wait_text("choose one of these first");
    pty.keys("y");
    pty.wait_gone("step 1 asker asks");
    home.wait_state("complete");
    pty.wait_gone("NEEDS YOU");
    assert!(kept(&home, "heard.jsonl").contains(r#""behavior":"allow""#), "{}", kept(&home, "heard.jsonl"));
    let events = home.subdeck(&["events", "--json", "@last"]);
    let answered = events.lines().find(|line| line.contains("question_answered")).unwrap_or_else(|| panic!("{events}"));
    assert!(answered.contains(r#""via":"deck""#) && answered.contains(r#""key":"A""#), "{answered}");
}

#[test]
fn the_agents_own_command_that_goes_on_with_its_session_is_shown_and_copied() {
    let home = Home::new();
    let pty = deck(&home, "claude", Some(CLAUDE), None);
    pty.wait_text("session   claude --resume s-1");
    pty.keys("Y");
    pty.wait_text("sent to the terminal's clipboard: cd ");
    let folder = std::fs::canonicalize(home.path()).unwrap();
    let line = format!("cd {} && claude --resume s-1", folder.display());
    let sent = format!("\x1b]52;c;{}\x07", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, line));
    assert!(memchr::memmem::find(&pty.bytes(), sent.as_bytes()).is_some(), "without a line feed, which would run it");
    pty.wait_text("1 NEEDS YOU");
    pty.keys("A");
    // A choice that was not on the screen yet is not taken.
    pty.wait_text("step 1 asker asks");
    pty.wait_frame();
    pty.keys("y");
    home.wait_state("complete");
}

#[test]
fn a_choice_of_the_agent_is_picked_by_its_key() {
    let home = Home::new();
    let pty = deck(&home, "acp", Some(ACP), None);
    pty.wait_text("1 NEEDS YOU");
    pty.keys("A");
    pty.wait_text("n No");
    pty.keys("n");
    pty.wait_gone("step 1 asker asks");
    home.wait_state("complete");
    assert!(kept(&home, "heard.jsonl").contains(r#""optionId":"no""#), "{}", kept(&home, "heard.jsonl"));
}

#[test]
fn what_an_edit_would_do_stands_in_its_question() {
    let home = Home::new();
    let pty = deck(&home, "claude", Some(EDIT), None);
    pty.wait_text("1 NEEDS YOU");
    pty.keys("A");
    pty.wait_text("- the old line");
    pty.wait_text("+ the new line");
    pty.wait_text("+ API_KEY=********");
    pty.keys("n");
    pty.wait_gone("step 1 asker asks");
    home.wait_state("complete");
    assert!(kept(&home, "heard.jsonl").contains(r#""behavior":"deny""#), "{}", kept(&home, "heard.jsonl"));
}

#[test]
fn several_choices_are_ticked_and_answered_together() {
    let home = Home::new();
    let pty = deck(&home, "claude", Some(SEVERAL), None);
    pty.wait_text("1 NEEDS YOU");
    pty.keys("A");
    pty.wait_text("[ ] Red");
    pty.keys("\r");
    pty.wait_text("choose with space first");
    pty.keys(" 23");
    pty.wait_text("[x] Red");
    pty.wait_text("[x] Blue");
    pty.keys("2");
    pty.wait_text("[ ] Green");
    pty.keys("\r");
    pty.wait_gone("step 1 asker asks");
    home.wait_state("complete");
    assert!(kept(&home, "heard.jsonl").contains(r#""Which ones?":"Red, Blue""#), "{}", kept(&home, "heard.jsonl"));
}

#[test]
fn a_question_to_the_supervisor_is_answered_with_a_text_and_later_if_one_wants() {
    let home = Home::new();
    let request = r#"{"type":"subagent.supervisor.request","id":"s-1","reason":"need_decision","message":"Which shard?","expectsReply":true,"childIndex":0}"#;
    let pty = deck(&home, "pi", None, Some(request));
    pty.wait_text("step 1 asker: Which shard?");
    pty.keys("A");
    pty.wait_text("step 1 asker asks");
    pty.keys("\x1b");
    pty.wait_gone("step 1 asker asks");
    pty.keys("A");
    pty.wait_text("step 1 asker asks");
    pty.keys("xqX the left one");
    pty.wait_text("xqX the left one");
    pty.keys("\r");
    pty.wait_gone("step 1 asker asks");
    home.wait_state("complete");
    assert!(kept(&home, "reply.s-1.json").contains("xqX the left one"), "{}", kept(&home, "reply.s-1.json"));
}

#[test]
fn a_question_that_was_answered_elsewhere_closes_its_dialog() {
    let home = Home::new();
    let pty = deck(&home, "claude", Some(CLAUDE), None);
    pty.wait_text("1 NEEDS YOU");
    pty.keys("A");
    pty.wait_text("step 1 asker asks");
    home.subdeck(&["answer", "@last", "deny", "--wait"]);
    home.wait_state("complete");
    pty.wait_text("not open any more");
    pty.keys("y");
    pty.wait_gone("step 1 asker asks");
    assert_eq!(kept(&home, "heard.jsonl").matches("control_response").count(), 1);
}
