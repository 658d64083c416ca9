//! `subdeck budget`, as it is typed: what it prints, what it sends, and what it makes of the answer.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use support::{Done, Run, World, files_below, signal, wait_for};

const PLAN: &str = "[budget]\ntime = \"1h\"\ntokens = { soft = 200_000, hard = 400_000 }\n\
    [[step]]\nid = \"quick\"\nrunner = { command = \"true\" }\ntool_timeout = \"5m\"\n\
    budget = { turns = { max = 40, grace = 2 }, tool_calls = 30, cost_usd = { soft = 0.5, hard = 1 } }\n\
    [[step]]\nid = \"slow\"\nrunner = { command = \"sh\", args = [\"-c\", \"echo up; sleep 60\"] }\n";

/// A run of [`PLAN`] whose second step runs.
fn living(world: &World) -> Run {
    let plan = world.file("plan.toml", PLAN);
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait_output(1, "up");
    run
}

fn requests(run: &Run) -> Vec<Value> {
    let files = files_below(&run.dir.join("control/subdeck-requests"));
    let mut files: Vec<_> = files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    files.iter().filter_map(|f| serde_json::from_slice(&std::fs::read(f).ok()?).ok()).collect()
}

/// Answers a request as the runner does.
fn answer(run: &Run, request: &Value, state: &str, reason: Option<&str>) {
    let id = request["id"].as_str().unwrap();
    let folder = run.dir.join("control/subdeck-acks");
    std::fs::create_dir_all(&folder).unwrap();
    let answer = json!({ "id": id, "ts": 1, "state": state, "reason": reason }).to_string();
    let name = format!("subdeck-acks/{}.json", URL_SAFE_NO_PAD.encode(id));
    run.control(&name, &answer);
}

#[test]
fn limits_and_their_use_are_printed() {
    let world = World::new();
    let run = living(&world);
    let table = world.output(&["budget", run.id()]);
    assert_eq!((table.code, table.stderr.as_str()), (0, ""), "{table:?}");
    let rows: Vec<Vec<&str>> = table.stdout.lines().map(|l| l.split_whitespace().collect()).collect();
    let row = |of: &str, key: &str| {
        let begins = rows.iter().position(|r| r.starts_with(&[of])).unwrap();
        let found = rows[begins..].iter().find(|r| r.contains(&key)).unwrap();
        found[found.iter().position(|w| *w == key).unwrap() + 1..].join(" ")
    };
    assert_eq!(rows[0], ["OF", "LIMIT", "USED", "WARNING", "END", "LEFT"]);
    // What is left of the time is told beside its end.
    let time = row("run", "time");
    assert!(time.split_once(" – 1h ").is_some_and(|(_, left)| left.starts_with("59m")), "{table:?}");
    assert_eq!(row("run", "tokens"), "0 200,000 400,000");
    assert_eq!(row("run", "turns"), "0 – –");
    assert_eq!(row("1", "turns"), "0 40 42");
    assert_eq!(row("1", "tool_calls"), "0 – 30");
    assert_eq!(row("1", "cost_usd"), "– $0.50 $1.00");
    assert_eq!(row("1", "tool_timeout"), "– – 5m");
    // A step without limits has no rows among the others.
    assert!(!table.stdout.contains("slow"), "{table:?}");

    let one = world.output(&["budget", "--json", &format!("{}:quick", run.id())]);
    let document: Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!((&document["v"], &document["run"]), (&json!(1), &json!(run.id())));
    let limits = document["limits"].as_array().unwrap();
    let of = |key: &str| limits.iter().find(|l| l["key"] == key).unwrap();
    assert_eq!(of("turns"), &json!({ "key": "turns", "step": 1, "id": "quick", "used": 0, "soft": 40, "hard": 42 }));
    assert_eq!(of("tool_timeout")["hard"], 300_000);
    assert_eq!(of("cost_usd").get("used"), None);
    assert!(limits.iter().all(|l| l["step"] == 1), "{limits:?}");
}

#[test]
fn a_change_is_sent_in_order_and_its_answer_told() {
    let world = World::new();
    let run = living(&world);
    // The runner leaves its inbox alone while it is stopped.
    signal(run.runner_pid(), "-STOP");
    let begin = |args: &[&str]| {
        let mut all = vec!["budget", run.id()];
        all.extend(args);
        world.subdeck(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let args = ["tokens.soft=500_000", "tokens=600_000", "time=2h", "--reason", "it goes well", "--wait"];
    let child = begin(&args);
    let sent = wait_for("three requests", || Some(requests(&run)).filter(|r| r.len() == 3));
    let words: Vec<_> = sent.iter().map(|r| (r["key"].as_str().unwrap(), r["value"].clone())).collect();
    // The end rises before its warning does.
    assert_eq!(words, [("tokens", json!(600_000)), ("time", json!("2h")), ("tokens.soft", json!(500_000))],);
    for request in &sent {
        assert_eq!(request["type"], "budget");
        assert_eq!(request.get("target"), None);
        assert_eq!((&request["source"]["via"], &request["source"]["reason"]), (&json!("cli"), &json!("it goes well")));
        assert_eq!(request["source"]["pid"], child.id());
        answer(&run, request, "done", None);
    }
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.stderr, "run: tokens=600000: done\nrun: time=2h: done\nrun: tokens.soft=500000: done\n");
    let ids: Vec<&str> = sent.iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(done.stdout.lines().collect::<Vec<_>>(), ids);

    for file in files_below(&run.dir.join("control/subdeck-requests")) {
        std::fs::remove_file(file).unwrap();
    }
    let child = world
        .subdeck(&["budget", &format!("{}:2", run.id()), "turns=9", "--wait"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let sent = wait_for("a request", || requests(&run).pop());
    assert_eq!((&sent["target"], &sent["key"]), (&json!(1), &json!("turns")));
    answer(&run, &sent, "refused", Some("too \u{1b}[31mlate"));
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stderr.contains('\u{1b}')), (1, false), "{done:?}");
    assert!(done.stderr.starts_with("step 2: turns=9: refused: too "), "{done:?}");

    let done = world.output(&["budget", run.id(), "turns=9", "--wait", "--timeout", "1ms"]);
    assert_eq!(done.code, 8, "{done:?}");
    // Of all calls of tools it is told to each step that has not ended.
    for file in files_below(&run.dir.join("control/subdeck-requests")) {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(world.output(&["budget", run.id(), "tool_timeout=9m"]).code, 0);
    let sent: Vec<_> = requests(&run).iter().map(|r| (r["target"].clone(), r["value"].clone())).collect();
    assert_eq!(sent, [(json!(1), json!("9m"))]);
}

#[test]
fn the_runner_takes_a_change_and_everybody_sees_it() {
    let world = World::new();
    let run = living(&world);
    let done = world.output(&["budget", run.id(), "tokens.soft=500_000", "tokens=600_000", "time=2h", "--wait"]);
    assert_eq!((done.code, done.stderr.lines().count()), (0, 3), "{done:?}");
    assert!(done.stderr.lines().all(|line| line.ends_with(": done")), "{done:?}");
    let one = format!("{}:slow", run.id());
    assert_eq!(world.output(&["budget", &one, "turns=9", "tool_timeout=1m", "--wait"]).code, 0);
    let limits = |target: &str| -> Vec<Value> {
        let document: Value = serde_json::from_str(&world.output(&["budget", "--json", target]).stdout).unwrap();
        document["limits"].as_array().unwrap().clone()
    };
    let of = |all: &[Value], key: &str| all.iter().find(|l| l["key"] == key).cloned().unwrap_or_default();
    let all = limits(run.id());
    assert_eq!((&of(&all, "tokens")["soft"], &of(&all, "tokens")["hard"]), (&json!(500_000), &json!(600_000)));
    assert_eq!(of(&all, "time")["hard"], 7_200_000);
    let step = limits(&one);
    assert_eq!((&of(&step, "turns")["hard"], &of(&step, "tool_timeout")["hard"]), (&json!(10), &json!(60_000)));
    let status: Value = serde_json::from_str(&world.output(&["status", "--json", run.id()]).stdout).unwrap();
    assert_eq!(status["limits"][0], json!({ "key": "tokens", "used": 0, "soft": 500_000, "hard": 600_000 }));
    let text = world.output(&["status", run.id()]).stdout;
    assert!(text.contains("  used: tokens 0 of 600,000\n"), "{text}");
    assert!(text.contains("         used: turns 0 of 10\n"), "{text}");
    // What the plan said is what the next change is measured by no more.
    let done = world.output(&["budget", run.id(), "tokens=450_000", "--wait"]);
    assert!(done.code == 2 && done.stderr.contains("`tokens.soft` together"), "{done:?}");
    // Whoever follows is told, with who asked.
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    let told = world.output(&["attach", "--no-tui", run.id()]).stdout;
    for part in ["» limit changed by ", ": tokens=600000\n", ": time=2h\n", ": turns=9\n"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn what_would_come_to_nothing_is_told_and_not_sent() {
    let world = World::new();
    let run = living(&world);
    signal(run.runner_pid(), "-STOP");
    let step = format!("{}:quick", run.id());
    for (args, part) in [
        (&[run.id(), "tokns=5"][..], "did you mean `tokens`?"),
        (&[run.id(), "tokens=many"], "a whole number of at least 1"),
        (&[run.id(), "time=5"], "has no unit"),
        (&[run.id(), "tokens=100_000"], "change `tokens` and `tokens.soft` together"),
        (&[run.id(), "turns=5", "tokens"], "is not KEY=VALUE"),
        (&[&step, "turns=5"], "step 1 is complete"),
        (&[&format!("{}:9", run.id()), "turns=5"], "9"),
        (&[run.id(), "--wait"], "KEY=VALUE"),
    ] {
        let mut all = vec!["budget"];
        all.extend(args);
        let done = world.output(&all);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?} {done:?}");
        assert!(done.stderr.contains(part), "{args:?} {done:?}");
    }
    assert_eq!(requests(&run), Vec::<Value>::new());
    let done = world.output(&["run", "--no-tui", "--name", "short", "--", "true"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = world.output(&["budget", "short", "turns=5"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("the run is over (complete)"), "{done:?}");
}

#[test]
fn limits_stand_on_the_command_line_too() {
    let world = World::new();
    let plan = world.file("plan.toml", PLAN);
    let plan = plan.to_str().unwrap();
    let flags =
        ["--budget", "tokens.soft=300_000", "--budget", "turns=7", "--budget", "tool_timeout=9m", "--time", "2h"];
    let run = world.detach(&[&flags[..], &[plan]].concat());
    run.wait_output(1, "up");
    let limits = run.status()["subdeck"]["limits"].clone();
    // Of the plan's own limits only what was named is another one.
    assert_eq!(limits["tokens"], json!({ "soft": 300_000, "hard": 400_000 }), "{limits}");
    assert_eq!(limits["turns"]["max"], 7, "{limits}");
    assert_eq!(run.status()["timeoutMs"], 7_200_000);
    let steps = run.status()["steps"].clone();
    assert_eq!(steps[0]["subdeck"]["limits"]["toolMs"], 300_000, "the plan's own");
    assert_eq!(steps[1]["subdeck"]["limits"]["toolMs"], 540_000);
    for (word, part) in [("tokens", "KEY=VALUE"), ("tokns=5", "did you mean"), ("turns.grace=1", "turns=N first")] {
        let done = world.output(&["run", "--no-tui", "--budget", word, plan]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains(part), "{word}: {done:?}");
    }
}

#[test]
fn a_limit_that_was_raised_is_kept_when_the_run_is_tried_again() {
    let world = World::new();
    let run = living(&world);
    let done = world.output(&["budget", "--wait", run.id(), "tokens=900_000", "time=3h"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = world.output(&["budget", "--wait", &format!("{}:slow", run.id()), "idle=9m"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(world.output(&["stop", "--wait", run.id()]).code, 0);
    let done = world.output(&["retry", "--detach", run.id()]);
    assert_eq!(done.code, 0, "{done:?}");
    let again = world.run(done.stdout.trim());
    again.wait_output(1, "up");
    let status = again.status();
    assert_eq!(status["subdeck"]["limits"]["tokens"]["hard"], 900_000, "{status}");
    assert_eq!(status["timeoutMs"], 3 * 3_600_000, "{status}");
    assert_eq!(status["steps"][1]["subdeck"]["limits"]["idleMs"], 540_000, "{status}");
    // What nobody touched is the plan's.
    assert_eq!(status["steps"][0]["subdeck"]["limits"]["turns"]["max"], 40, "{status}");
}
