//! Questions of agents, asked and answered through the public doors: permissions of Claude Code, of an agent that speaks
//! ACP and of Codex, dialogs of extensions of pi and its channel to a supervisor. The agents are `tests/bin/asker.sh` and
//! `tests/bin/codex.sh`.

mod nobody;
mod supervisor;
#[allow(dead_code)]
#[path = "../support/runs.rs"]
mod support;

use serde_json::{Value, json};
use support::{Done, Run, World, wait_for};

const ASKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/asker.sh");
const CODEX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/codex.sh");

const CLAUDE: &str = r#"{"type":"control_request","request_id":"r-ID","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make ID"},"tool_use_id":"t1"}}"#;
const SEVERAL: &str = r#"{"type":"control_request","request_id":"r-ID","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which ID?","multiSelect":true,"options":[{"label":"Red"},{"label":"Green"},{"label":"Blue"}]}]},"tool_use_id":"t1"}}"#;
const WRITE: &str = r#"{"type":"control_request","request_id":"r-ID","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"file_path":"/x","old_string":"one","new_string":"two\nthree"},"tool_use_id":"t1"}}"#;
const ACP: &str = r#"{"jsonrpc":"2.0","id":"r-ID","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"t1","title":"make ID","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;
const SELECT: &str = r#"{"type":"extension_ui_request","id":"r-ID","method":"select","title":"Which way ID?","options":["left","right"]}"#;
const CONFIRM: &str = r#"{"type":"extension_ui_request","id":"r-ID","method":"confirm","title":"Sure ID?"}"#;
const INPUT: &str = r#"{"type":"extension_ui_request","id":"r-ID","method":"input","title":"Say ID"}"#;

/// A plan with one step whose agent prints these questions; `more` is more of the runner, `step` more of the step.
fn plan(world: &World, family: &str, questions: &[&str], more: &str, step: &str) -> String {
    let lines = questions.iter().zip(1..).map(|(question, n)| question.replace("ID", &n.to_string()) + "\n");
    world.file("ask", &lines.collect::<String>());
    let runner = match family {
        "codex" => format!("{{ type = \"codex\", command = {CODEX:?}{more} }}"),
        _ => format!("{{ type = \"{family}\", command = {ASKER:?}, args = [{family:?}]{more} }}"),
    };
    let agent = if family == "pi" { "agent = \"a\"\nsystem_prompt = \"x\"\n" } else { "" };
    let text = format!("[[step]]\nid = \"asker\"\n{agent}task = \"ASK first.\"\nrunner = {runner}\n{step}\n");
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

fn start(world: &World, family: &str, questions: &[&str], more: &str, step: &str) -> Run {
    world.detach(&[&plan(world, family, questions, more, step)])
}

fn open(status: &Value) -> Vec<Value> {
    status["steps"][0]["subdeck"]["questions"].as_array().cloned().unwrap_or_default()
}

fn wait_open(run: &Run, count: usize) -> Vec<Value> {
    open(&run.wait("the open questions", |status| open(status).len() == count))
}

/// What the agent was told, from the first answer on.
fn heard(world: &World) -> Vec<Value> {
    let text = std::fs::read_to_string(world.project().join("heard.jsonl")).unwrap_or_default();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answer = |value: &Value| {
        value["type"] == "control_response" || value["type"] == "extension_ui_response" || value.get("result").is_some()
    };
    all.filter(answer).collect()
}

fn answer(world: &World, run: &Run, args: &[&str]) -> Done {
    let all = [&["answer", run.id()], args, &["--wait"]].concat();
    world.output(&all)
}

/// The events that a question was answered.
fn answers(run: &Run) -> Vec<Value> {
    run.events_of("subdeck.question.answered")
}

#[test]
fn each_family_is_answered_over_its_protocol_from_the_command_line() {
    let claude = |response: Value| {
        json!({"type": "control_response", "response":
        {"subtype": "success", "request_id": "r-1", "response": response}})
    };
    let acp = |outcome: Value| json!({"jsonrpc": "2.0", "id": "r-1", "result": {"outcome": outcome}});
    let pi = |key: &str, value: Value| json!({"type": "extension_ui_response", "id": "r-1", key: value});
    let codex = |word: &str| json!({"id": 7, "result": {"decision": word}});
    let input = json!({"command": "make 1"});
    let picked = |answer: &str| {
        let input: Value = serde_json::from_str(&SEVERAL.replace("ID", "1")).unwrap();
        let mut input = input["request"]["input"].clone();
        input["answers"] = json!({"Which 1?": answer});
        claude(json!({"behavior": "allow", "updatedInput": input}))
    };
    let chosen = |id: &str| json!({"outcome": "selected", "optionId": id});
    let table: Vec<(&str, &str, &[&str], Value)> = vec![
        ("claude", CLAUDE, &["allow"], claude(json!({"behavior": "allow", "updatedInput": input}))),
        (
            "claude",
            CLAUDE,
            &["deny", "--reason", "not here"],
            claude(json!({"behavior": "deny", "message": "not here"})),
        ),
        ("claude", SEVERAL, &["1,3"], picked("Red, Blue")),
        ("claude", SEVERAL, &["blue, red"], picked("Red, Blue")),
        ("claude", SEVERAL, &["2"], picked("Green")),
        ("claude", SEVERAL, &["none of them"], picked("none of them")),
        ("acp", ACP, &["allow"], acp(chosen("yes"))),
        ("acp", ACP, &["always"], acp(chosen("always"))),
        ("acp", ACP, &["deny"], acp(chosen("no"))),
        ("pi", SELECT, &["2"], pi("value", json!("right"))),
        ("pi", CONFIRM, &["yes"], pi("confirmed", json!(true))),
        ("pi", CONFIRM, &["no"], pi("confirmed", json!(false))),
        ("pi", INPUT, &["two words"], pi("value", json!("two words"))),
        ("pi", INPUT, &["--dismiss"], pi("cancelled", json!(true))),
        ("codex", "", &["allow"], codex("accept")),
        ("codex", "", &["allow for this session"], codex("acceptForSession")),
        ("codex", "", &["deny"], codex("decline")),
    ];
    for (family, question, args, expected) in table {
        let world = World::new();
        let run = start(&world, family, &[question], "", "");
        let asked = wait_open(&run, 1);
        let text = asked[0]["text"].as_str().unwrap();
        run.wait("the notice", |s| {
            s["steps"][0]["subdeck"]["attention"][0]["reason"] == "question" && s["activityState"] == "needs_attention"
        });
        let listed = world.output(&["answer", run.id()]);
        assert!(listed.stdout.starts_with("q1  1 asker: ") && listed.stdout.contains(text), "{family}: {listed:?}");
        let done = answer(&world, &run, args);
        assert_eq!(done.code, 0, "{family} {args:?}: {done:?}");
        let told = wait_for("the answer", || heard(&world).into_iter().find(|line| *line == expected));
        assert_eq!(told, expected);
        let answered = answers(&run);
        assert_eq!(answered.len(), 1, "{answered:?}");
        let (by, source) = (&answered[0]["by"], &answered[0]["source"]);
        assert_eq!((by, &source["via"]), (&"person".into(), &"cli".into()), "{answered:?}");
        assert!(source["pid"].is_u64() && source["user"].is_string(), "{source}");
        if !(family == "codex" && args == ["allow for this session"]) {
            let status = run.wait_end();
            assert_eq!(status["state"], "complete", "{family} {args:?}: {status:#}");
            assert_eq!((open(&status).len(), &status["steps"][0]["subdeck"]["attention"]), (0, &Value::Null));
        } else {
            assert_eq!(world.output(&["stop", "--wait", run.id()]).code, 0);
        }
        // What is read again from the events is what the status says.
        let shown: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
        assert_eq!(shown["steps"][0]["questions"], json!([]), "{shown:#}");
        world.wait_until_empty();
    }
}

#[test]
fn what_would_be_written_and_that_several_may_be_chosen_is_told_everywhere() {
    let world = World::new();
    let run = start(&world, "claude", &[WRITE, SEVERAL], "", "");
    let asked = wait_open(&run, 2);
    assert_eq!((&asked[0]["detail"], &asked[0]["many"]), (&json!("- one\n+ two\n+ three"), &Value::Null));
    assert_eq!((&asked[1]["detail"], &asked[1]["many"]), (&Value::Null, &json!(true)));
    let listed = world.output(&["answer", run.id()]).stdout;
    assert!(listed.contains("    - one\n    + two\n    + three\n"), "{listed}");
    assert!(listed.contains("several of them with commas"), "{listed}");
    let shown: Value = serde_json::from_str(&world.output(&["answer", "--json", run.id()]).stdout).unwrap();
    let shown =
        shown.as_array().or_else(|| shown["questions"].as_array()).cloned().unwrap_or_else(|| panic!("{shown}"));
    assert_eq!((&shown[0]["detail"], &shown[1]["several"]), (&asked[0]["detail"], &json!(true)));
    // Numbers that no choice has, and several where one is wanted, are refused before anything is sent.
    let wrong = answer(&world, &run, &["1,9", "--question", "q2"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("1 (Red)"), "{wrong:?}");
    let wrong = answer(&world, &run, &["1,2", "--question", "q1"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("allow, deny"), "{wrong:?}");
    assert_eq!(answer(&world, &run, &["1,3", "--question", "q2"]).code, 0);
    assert_eq!(answer(&world, &run, &["allow", "--question", "q1"]).code, 0);
    run.wait_end();
    let answered = answers(&run);
    assert_eq!(answered[0]["answer"], json!({"choices": ["Red", "Blue"]}), "{answered:?}");
    let events = world.output(&["events", "--json", run.id()]).stdout;
    assert!(
        events.lines().any(|line| line.contains("question_answered") && line.contains(r#""choices":["Red","Blue"]"#))
    );
    world.wait_until_empty();
}

#[test]
fn two_questions_at_once_are_told_apart() {
    let world = World::new();
    let run = start(&world, "claude", &[CLAUDE, CLAUDE], "", "");
    wait_open(&run, 2);
    let done = answer(&world, &run, &["allow"]);
    assert!(done.code == 2 && done.stderr.contains("q1") && done.stderr.contains("make 2"), "{done:?}");
    let done = answer(&world, &run, &["deny", "--question", "q2"]);
    assert_eq!(done.code, 0, "{done:?}");
    wait_open(&run, 1);
    let listed: Value = serde_json::from_str(&world.output(&["answer", "--json", run.id()]).stdout).unwrap();
    assert_eq!(
        (&listed[0]["question"], &listed[0]["args"], &listed[0]["step"]),
        (&"q1".into(), &"make 1".into(), &1.into())
    );
    let target = format!("{}:asker", run.id());
    assert_eq!(world.output(&["answer", &target, "allow", "--wait"]).code, 0);
    assert_eq!(run.wait_end()["state"], "complete");
    let said: Vec<Value> = heard(&world);
    let of = |line: &Value| (line["response"]["request_id"].clone(), line["response"]["response"]["behavior"].clone());
    let said: Vec<_> = said.iter().map(of).collect();
    assert_eq!(said, [(json!("r-2"), json!("deny")), (json!("r-1"), json!("allow"))]);
}

#[test]
fn what_is_no_answer_is_refused_before_and_by_the_runner() {
    let world = World::new();
    let run = start(&world, "acp", &[ACP], "", "");
    wait_open(&run, 1);
    let done = answer(&world, &run, &["perhaps"]);
    assert!(done.code == 2 && done.stderr.contains("allow, deny, 1 (Yes), 2 (Always), 3 (No)"), "{done:?}");
    let done = answer(&world, &run, &["allow", "--question", "q9"]);
    assert!(done.code == 2 && done.stderr.contains("q9 is not open"), "{done:?}");
    // Whoever writes the files is asked the same.
    for (id, body) in [
        ("a", json!({"requestId": "q1", "choice": "dance"})),
        ("b", json!({"requestId": "q1", "text": "words"})),
        ("c", json!({"requestId": "q9", "choice": "allow"})),
    ] {
        let mut request =
            json!({"type": "answer", "id": id, "ts": 1_764_000_694_800_u64, "source": {"via": "test", "pid": 1}});
        request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        run.control(&format!("subdeck-requests/{id}.json"), &request.to_string());
    }
    wait_for("three refusals", || (run.events_of("subdeck.control.rejected").len() == 3).then_some(()));
    // A file that is no request, a link and a half-written one answer nothing.
    std::os::unix::fs::symlink(world.project().join("plan.toml"), run.dir.join("control/subdeck-requests/link.json"))
        .unwrap();
    run.control("subdeck-requests/half.json", "{\"type\":\"answer\",\"requestId\":\"q1\",\"choice\":\"all");
    wait_for("the link is set aside", || run.dir.join("control/rejected/link.json.reason").exists().then_some(()));
    assert_eq!(open(&run.status()).len(), 1);
    assert!(heard(&world).is_empty(), "{:?}", heard(&world));
    // One that nobody of ours announced counts, and is told as such.
    let request = json!({"type": "answer", "id": "d", "ts": 1_764_000_694_800_u64, "requestId": "q1", "choice": "no"});
    run.control("subdeck-requests/d.json", &request.to_string());
    assert_eq!(run.wait_end()["state"], "complete");
    let unannounced = &run.events_of("subdeck.control.unannounced")[0];
    assert_eq!((&unannounced["what"], &unannounced["stepIndex"]), (&json!("answer"), &json!(0)));
    let raised = run.events_of("subdeck.attention.raised");
    let raised: Vec<&str> = raised.iter().filter_map(|e| e["notice"]["reason"].as_str()).collect();
    assert!(raised.contains(&"control_unannounced"), "a person is to look at it: {raised:?}");
    assert_eq!(heard(&world)[0]["result"]["outcome"]["optionId"], "no");
    let done = answer(&world, &run, &["allow", "--question", "q1"]);
    assert!(done.code == 2 && done.stderr.contains("not open"), "{done:?}");
    assert!(world.output(&["answer", run.id()]).stderr.contains("no agent asks anything"));
}

#[test]
fn the_first_of_two_answers_counts() {
    let world = World::new();
    let run = start(&world, "pi", &[CONFIRM, INPUT], "", "");
    wait_open(&run, 2);
    for (id, choice) in [("a", "allow"), ("b", "deny")] {
        let request = json!({"type": "answer", "id": id, "ts": 1_764_000_694_800_u64, "source": {"via": "test", "pid": 1},
            "requestId": "q1", "choice": choice});
        run.control(&format!("subdeck-requests/{id}.json"), &request.to_string());
    }
    wait_for("the second is refused", || (!run.events_of("subdeck.control.rejected").is_empty()).then_some(()));
    let answered = answers(&run);
    assert_eq!((answered.len(), &answered[0]["answer"]["choice"]), (1, &"allow".into()));
    assert_eq!(answer(&world, &run, &["words"]).code, 0);
    assert_eq!(run.wait_end()["state"], "complete");
    assert_eq!(heard(&world).len(), 2);
}

#[test]
fn a_question_goes_with_its_agent() {
    // Withdrawn by the agent.
    let world = World::new();
    let cancel = r#"{"type":"control_cancel_request","request_id":"r-1"}"#;
    let run = start(&world, "claude", &[CLAUDE, CLAUDE, cancel], "", "");
    let asked = wait_open(&run, 1);
    assert_eq!(asked[0]["id"], "q2");
    wait_for("the withdrawal", || (answers(&run).len() == 1).then_some(()));
    assert_eq!((&answers(&run)[0]["by"], &answers(&run)[0]["questionId"]), (&"gone".into(), &"q1".into()));
    let done = answer(&world, &run, &["allow", "--question", "q1"]);
    assert!(done.code == 2 && done.stderr.contains("q1 is not open"), "{done:?}");
    // Stopped while it waits.
    assert_eq!(world.output(&["stop", "--wait", run.id()]).code, 0);
    assert_eq!(run.wait_end()["state"], "stopped");
    assert_eq!(answers(&run).len(), 2);
    let done = answer(&world, &run, &["allow", "--question", "q2"]);
    assert_eq!(done.code, 2, "{done:?}");
    world.wait_until_empty();
    // Interrupted while it waits: what the protocol wants answered is.
    let world = World::new();
    let run = start(&world, "acp", &[ACP], "", "");
    wait_open(&run, 1);
    assert_eq!(world.output(&["interrupt", "--wait", run.id()]).code, 0);
    assert_eq!(run.wait_end()["state"], "paused");
    assert_eq!(world.output(&["wait", run.id()]).code, 4, "somebody could have been asked");
    let cancelled = wait_for("the answer", || heard(&world).into_iter().next());
    assert_eq!(cancelled["result"]["outcome"]["outcome"], "cancelled");
    world.wait_until_empty();
    // A message that makes an agent break off takes its question away.
    let world = World::new();
    let run = start(&world, "acp", &[ACP], "", "");
    wait_open(&run, 1);
    assert_eq!(world.output(&["steer", run.id(), "Another way."]).code, 0);
    wait_for("the question is gone", || (answers(&run).first()?["by"] == "gone").then_some(()));
    assert_eq!(world.output(&["stop", "--wait", run.id()]).code, 0);
}

#[test]
fn hostile_questions_drive_nothing() {
    let world = World::new();
    let hostile = r#"{"type":"extension_ui_request","id":"r\u001b]0;x\u0007-1","method":"select","title":"\u001b[2J\u001b]52;c;eA==\u0007Yes?\u202egnp","options":["\u001b[31mred","\u0000","b\u0008b"]}"#;
    let huge =
        format!(r#"{{"type":"extension_ui_request","id":"r-2","method":"input","title":"{}"}}"#, "x".repeat(100_000));
    let run = start(&world, "pi", &[hostile, &huge], "", "");
    let asked = wait_open(&run, 2);
    assert!(asked[1]["text"].as_str().unwrap().len() <= 2048);
    for args in
        [&["answer", run.id()][..], &["answer", "--json", run.id()], &["status", run.id()], &["events", run.id()]]
    {
        let done = world.output(args);
        assert!(done.code == 0 && done.stdout.contains("Yes?"), "{args:?}: {done:?}");
        let bad = |c: char| matches!(c, '\u{1b}' | '\u{7}' | '\u{8}' | '\u{0}' | '\u{202e}');
        assert!(!done.stdout.contains(bad) && !done.stderr.contains(bad), "{args:?}: {done:?}");
    }
    assert_eq!(answer(&world, &run, &["1", "--question", "q1"]).code, 0);
    assert_eq!(answer(&world, &run, &["-", "--question", "q2"]).code, 2, "nothing was given");
    let mut child =
        world.subdeck(&["answer", run.id(), "-", "--wait"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"line one\nline \"two\"\n").unwrap();
    assert_eq!(support::code(support::wait_child(&mut child)), 0);
    assert_eq!(run.wait_end()["state"], "complete");
    let told = heard(&world);
    assert_eq!(told[0]["value"], "\u{1b}[31mred", "the agent gets its own words back");
    assert_eq!(told[1]["value"], "line one\nline \"two\"");
}

#[test]
fn more_questions_than_anybody_can_answer_are_dismissed() {
    let world = World::new();
    let run = start(&world, "pi", &[INPUT; 20], "", "");
    wait_open(&run, 16);
    wait_for("four answers", || (heard(&world).len() == 4).then_some(()));
    assert!(heard(&world).iter().all(|line| line["cancelled"] == true));
    assert_eq!(world.output(&["stop", "--wait", run.id()]).code, 0);
}

#[test]
fn what_was_answered_reaches_the_agent_although_another_question_of_the_request_is_dismissed() {
    const TWO: &str = r#"{"type":"control_request","request_id":"r-ID","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which?","options":[{"label":"Red"},{"label":"Blue"}]},{"question":"Why?","options":[]}]},"tool_use_id":"t1"}}"#;
    for dismissed_first in [false, true] {
        let world = World::new();
        let run = start(&world, "claude", &[TWO], "", "");
        let names: Vec<Value> = wait_open(&run, 2).iter().map(|question| question["id"].clone()).collect();
        let [which, why] = [&names[0], &names[1]].map(|name| name.as_str().unwrap());
        let mut both = [vec!["2", "--question", which], vec!["--dismiss", "--question", why]];
        if dismissed_first {
            both.reverse();
        }
        for args in both {
            let done = answer(&world, &run, &args);
            assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        }
        wait_for("the answer", || (heard(&world).len() == 1).then_some(()));
        let response = heard(&world)[0]["response"]["response"].clone();
        assert_eq!(response["behavior"], "allow", "{response}");
        let answers = &response["updatedInput"]["answers"];
        assert_eq!(answers["Which?"], "Blue");
        assert!(answers["Why?"].as_str().unwrap().contains("nobody answered"), "{answers}");
    }
}

#[test]
fn what_looks_like_a_key_is_printed_to_nobody() {
    const KEY: &str = "q8Zk2LmN0pR7sT4vW9xYb3Cd6Ef1Gh5J";
    let question = CLAUDE.replace("make ID", &format!("curl -H 'Authorization: Bearer {KEY}' x"));
    let world = World::new();
    let run = start(&world, "claude", &[&question], "", "");
    wait_open(&run, 1);
    for command in ["answer", "status"] {
        let done = world.output(&[command, run.id()]);
        assert!(done.stdout.contains("Bearer ****") && !done.stdout.contains("q8Z"), "{command}: {}", done.stdout);
    }
    let plan =
        format!("[[step]]\nrunner = {{ type = \"external-cli\", command = \"echo\", args = [\"token={KEY}\"] }}\n");
    let plan = world.file("echo.toml", &plan);
    let done = world.output(&["run", "--no-tui", plan.to_str().unwrap()]);
    assert!(done.stdout.contains("token=****") && !done.stdout.contains("q8Z"), "{}", done.stdout);
}
