//! Questions that no person answers: where nobody can be asked, where the run or its plan was told what to answer, and where
//! the time is over.

use serde_json::{Value, json};

use crate::support::{self, Done, World, wait_for};
use crate::{ACP, CLAUDE, CONFIRM, INPUT, SELECT, answer, answers, plan, start, wait_open};

#[test]
fn a_headless_run_in_which_nobody_can_be_asked_pauses_and_says_what_was_asked() {
    for (family, question, text) in [
        ("claude", CLAUDE, "May it use Bash? make 1"),
        ("acp", ACP, "make 1"),
        ("pi", INPUT, "Say 1"),
        ("codex", "", "May it run make?"),
    ] {
        let world = World::new();
        let plan = plan(&world, family, &[question], "", "");
        let done = world.output(&["run", "--no-tui", &plan]);
        assert_eq!(done.code, 9, "{family}: {done:?}");
        let line = done.stderr.lines().find(|line| line.contains("step 1 asker asks: "));
        assert!(line.is_some_and(|line| line.contains(text)), "{family}: {done:?}");
        assert!(done.stderr.contains("--on-permission"), "{done:?}");
        let run = world.only_run();
        let status = run.status();
        assert_eq!(
            (&status["state"], &status["steps"][0]["status"]),
            (&"paused".into(), &"paused".into()),
            "{status:#}"
        );
        assert_eq!(answers(&run)[0]["by"], "nobody");
        assert!(
            run.events_of("subdeck.signal.sent").is_empty(),
            "{family}: it went when it was asked over its protocol"
        );
        for command in [&["wait", run.id()][..], &["attach", "--no-tui", run.id()]] {
            assert_eq!(world.output(command).code, 9, "{family} {command:?}");
        }
        let shown: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
        assert_eq!(shown["exit_code"], 9);
        assert!(shown["steps"][0]["unanswered"].as_str().unwrap().contains(text), "{shown:#}");
        world.wait_until_empty();
    }
}

#[test]
fn a_headless_run_answers_as_it_was_told_to() {
    for (family, question, policy, code, by, choice) in [
        ("claude", CLAUDE, "allow", 0, "unattended", "allow"),
        ("acp", ACP, "deny", 0, "unattended", "deny"),
        ("pi", CONFIRM, "allow", 0, "unattended", "allow"),
        ("pi", INPUT, "deny", 0, "unattended", "dismiss"),
        // Nobody can say what to answer.
        ("pi", INPUT, "allow", 9, "nobody", "dismiss"),
    ] {
        let world = World::new();
        let plan = plan(&world, family, &[question], "", "");
        let done = world.output(&["run", "--no-tui", "--on-permission", policy, &plan]);
        assert_eq!(done.code, code, "{family} {policy}: {done:?}");
        let answered = answers(&world.only_run());
        assert_eq!(answered.len(), 1, "{answered:?}");
        assert_eq!(
            (&answered[0]["by"], &answered[0]["answer"]["choice"]),
            (&by.into(), &choice.into()),
            "{family} {policy}"
        );
        world.wait_until_empty();
    }
    // Or it waits for somebody who answers from elsewhere.
    let world = World::new();
    let plan = plan(&world, "claude", &[CLAUDE], "", "");
    let mut child = world.subdeck(&["run", "--no-tui", "--on-permission", "ask", &plan]).spawn().unwrap();
    let run = world.only_run();
    wait_open(&run, 1);
    assert_eq!(answer(&world, &run, &["allow"]).code, 0);
    assert_eq!(support::code(support::wait_child(&mut child)), 0);
}

#[test]
fn the_plan_decides_what_needs_nobody() {
    let rules =
        ", permission = { default = \"deny\", tools = { \"Bash(make *)\" = \"allow\", \"Bash(make 2)\" = \"ask\" } }";
    let write = r#"{"type":"control_request","request_id":"r-3","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x"}}}"#;
    let world = World::new();
    let run = start(&world, "claude", &[CLAUDE, CLAUDE, write], rules, "");
    let asked = wait_open(&run, 1);
    assert_eq!((&asked[0]["text"], &asked[0]["id"]), (&"May it use Bash? make 2".into(), &"q2".into()));
    wait_for("two answers by rule", || (answers(&run).len() == 2).then_some(()));
    let by_rule: Vec<_> = answers(&run).iter().map(|a| (a["by"].clone(), a["answer"]["choice"].clone())).collect();
    assert_eq!(by_rule, [(json!("rule"), json!("allow")), (json!("rule"), json!("deny"))]);
    // An agent whose questions are decided one by one is not told that it may do everything.
    let checked = world.output(&["check", "plan.toml"]);
    assert!(
        checked.stdout.contains("--permission-prompt-tool") && checked.stdout.contains("as its rules say"),
        "{checked:?}"
    );
    assert_eq!(answer(&world, &run, &["allow"]).code, 0);
    assert_eq!(run.wait_end()["state"], "complete");
    // The configuration says it for plans that say nothing, and not for others.
    for (more, by) in [("", "rule"), (", permission = \"ask\"", "nobody")] {
        let world = World::new();
        let plan = plan(&world, "claude", &[CLAUDE], more, "");
        let mut command = world.subdeck(&["run", "--no-tui", &plan]);
        let done = Done::of(command.env("SUBDECK_PERMISSION_TOOLS", "Bash(make *)=allow").output().unwrap());
        assert_eq!(done.code, if by == "rule" { 0 } else { 9 }, "{done:?}");
        assert_eq!(answers(&world.only_run())[0]["by"], by);
    }
}

#[test]
fn a_question_that_nobody_answers_in_time_is_refused() {
    for (family, question, choice) in [("claude", CLAUDE, "deny"), ("pi", SELECT, "dismiss")] {
        let world = World::new();
        let run = start(&world, family, &[question], "", "question_timeout = \"150ms\"");
        assert_eq!(run.wait_end()["state"], "complete");
        let answered = answers(&run);
        assert_eq!((&answered[0]["by"], &answered[0]["answer"]["choice"]), (&"timeout".into(), &choice.into()));
        let asked = run.events_of("subdeck.question.asked");
        let question = &asked[0]["question"];
        assert_eq!(question["until"].as_f64().unwrap() - question["askedAt"].as_f64().unwrap(), 150.0);
    }
    // An extension that goes on by itself is not waited for longer.
    let world = World::new();
    let own = INPUT.replace("\"method\"", "\"timeout\":100,\"method\"");
    let run = start(&world, "pi", &[&own], "", "question_timeout = \"1h\"");
    assert_eq!(run.wait_end()["state"], "complete");
    assert_eq!(answers(&run)[0]["by"], "timeout");
}
