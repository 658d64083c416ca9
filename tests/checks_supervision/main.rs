//! Supervision, as runner-behaviour 13 lists it: checks 14 to 30 and 48 to 52, each by the real binary with a scripted
//! agent in the place of pi. Times are scaled by the configuration; what is built in is checked in the core, where time is
//! an argument, and here by what the binary says that it is.

mod attention;
mod calls;
#[path = "../support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "../support/runs.rs"]
mod support;

use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{Done, Run, wait_for};

/// When a record of the event log was made, in milliseconds since the epoch.
fn when(event: &Value) -> f64 {
    event["ts"].as_f64().or(event["observedAt"].as_f64()).unwrap_or_else(|| panic!("{event}"))
}

/// The start of a call, by the order of all starts.
fn start_of(run: &Run, nth: usize) -> f64 {
    when(&run.events_of("tool_execution_start")[nth])
}

#[test]
fn check_48_a_conflict_of_extensions_says_what_to_do() {
    let conflict = "err Failed to load extension \"/x/a.ts\": Tool \"web\" conflicts with /y/b.ts\nexit 1";
    // Extensions are found by themselves unless the step lists the ones that it wants, if only none.
    let error = |more: Value| {
        let scene = Scene::new(&[conflict]);
        let (run, done) = scene.run(&scene.config(&[step(more)], json!({})));
        assert_eq!(done.code, 1, "{done:?}");
        run.wait_end()["steps"][0]["error"].as_str().unwrap().to_owned()
    };
    let told = error(json!({}));
    assert!(told.contains("Tool \"web\" conflicts with"), "{told}");
    assert!(told.contains(".pi/settings.json") && told.contains("worker"), "{told}");
    let bare = error(json!({ "extensions": [] }));
    assert!(bare.contains("Tool \"web\" conflicts with") && !bare.contains(".pi/settings.json"), "{bare}");
}

#[test]
fn check_49_a_run_is_nested_only_when_it_says_where() {
    let scene = Scene::new(&["say fine"]);
    let (run, _) = scene.run(&scene.config(&[step(json!({}))], json!({})));
    assert_eq!(run.wait_end().get("isNested"), None);
    // A route for runs below this one makes it no nested one; a place below another one does.
    for (place, nested) in [(Value::Null, None), (json!({ "parentRunId": "parent", "depth": 1 }), Some(true))] {
        let scene = Scene::new(&["say fine"]);
        let route = scene.route("top");
        let config = scene.config(&[step(json!({}))], json!({ "nestedRoute": route, "nestedSelf": place }));
        let (run, done) = scene.run(&config);
        assert_eq!((run.wait_end().get("isNested").map(|v| v == true), done.code), (nested, 0), "{done:?}");
    }
}

#[test]
fn check_50_what_happens_in_a_group_is_in_the_status_at_once() {
    let scene = Scene::new(&["say never", "until go\nsay fine", "say never", "until go\nsay fine"]);
    let gone = scene.world.project().join("gone");
    std::fs::create_dir(&gone).unwrap();
    // The folder is there when the config is checked, and not any more when the member is to start.
    let first = step(json!({ "runner": { "type": "external-cli", "command": "rmdir", "args": [&gone] } }));
    let bad = step(json!({ "cwd": &gone, "label": "bad" }));
    let group = json!({ "parallel": [step(json!({})), bad, step(json!({}))], "concurrency": 4 });
    let node = |id: &str, flat: Option<u64>, children: Vec<Value>| {
        let mut node = json!({ "id": id, "kind": "step", "label": id, "status": "pending" });
        let fields = node.as_object_mut().unwrap();
        flat.map(|flat| fields.insert("flatIndex".to_owned(), flat.into()));
        if !children.is_empty() {
            fields.insert("children".to_owned(), children.into());
        }
        node
    };
    let members = (1..4).map(|flat| node(&format!("step-1-agent-{}", flat - 1), Some(flat), vec![])).collect();
    let graph = json!({ "runId": "r", "mode": "chain", "phases": [{ "title": "Build", "nodeIds": ["step-1"] }],
        "nodes": [node("step-0", Some(0), vec![]), node("step-1", None, members)] });
    let run = scene.detach(&scene.config(&[first, group], json!({ "workflowGraph": graph })));
    let status = run.wait("the group", |s| {
        let of = |index: usize| s["steps"][index]["status"].as_str().unwrap().to_owned();
        of(1) == "running" && of(2) == "failed" && of(3) == "running"
    });
    assert!(status["steps"][2]["error"].as_str().unwrap().contains("gone"), "{status}");
    // The graph of that very status says the same.
    let drawn = |status: &Value| {
        let group = &status["workflowGraph"]["nodes"][1];
        let members = group["children"].as_array().unwrap().iter().map(|n| n["status"].as_str().unwrap().to_owned());
        (status["workflowGraph"]["nodes"][0]["status"].clone(), group["status"].clone(), members.collect::<Vec<_>>())
    };
    let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
    let under_way = ("completed".into(), "running".into(), words(["running", "failed", "running"]));
    assert_eq!(drawn(&status), under_way, "{}", status["workflowGraph"]);
    assert!(status["workflowGraph"]["nodes"][1]["children"][1]["error"].as_str().unwrap().contains("gone"));
    let current = status["workflowGraph"]["currentNodeId"].as_str().unwrap();
    assert!(current.starts_with("step-1-agent-"), "{current}");
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!(status["state"], "failed");
    let ended = ("completed".into(), "failed".into(), words(["completed", "failed", "completed"]));
    assert_eq!(drawn(&status), ended);
    let result = scene.result(&run);
    assert_eq!(drawn(&result), ended);
    assert_eq!(result["workflowGraph"]["phases"], graph["phases"]);
    assert_eq!(run.events_of("subagent.parallel.completed")[0]["success"], false);
}

#[test]
fn check_51_there_are_no_checkpoints() {
    let scene = Scene::new(&["until go\nsay fine"]);
    let run = scene.detach(&scene.config(&[step(json!({}))], json!({})));
    run.wait("the child", |s| s["steps"][0]["status"] == "running");
    for name in ["approve.json", "reject.json", "approve-0.json", "reject-0.json"] {
        run.control(name, r#"{"stepIndex":0}"#);
    }
    scene.touch("go");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"complete".into(), &"complete".into()));

    let scene = Scene::new(&["say never", "say never"]);
    let config = scene.config(&[step(json!({})), json!({ "checkpoint": { "message": "go on?" } })], json!({}));
    let done = Done::of(scene.subdeck(&["run", "--no-tui", &config]).output().unwrap());
    assert_eq!((done.code, scene.starts(0)), (2, 0), "{done:?}");
}

/// One row of the table of ends: what the children do, what is asked for once the last of them is up, and what comes of it.
struct End {
    scripts: &'static [&'static str],
    more: Value,
    asked: &'static [&'static str],
    state: &'static str,
    error: Option<&'static str>,
    code: i32,
}

#[test]
fn check_52_the_strongest_reason_is_the_state_of_the_run() {
    const UP: &str = "touch up\nhang";
    const BIG: &str = "say_at 600 500 0 big";
    let none = || json!({});
    let used_up = || json!({ "usageBudget": { "tokens": { "hard": 1000 } } });
    let turns = json!({ "turnBudget": { "maxTurns": 1, "graceTurns": 0 } });
    let end = |scripts, more, asked, state, error, code| End { scripts, more, asked, state, error, code };
    let stopped = Some("Subagent stopped by user.");
    let over = Some("The run is over budget: 1,100+ tokens used, 1,000 tokens allowed.");
    let table = [
        end(&["say fine"], none(), &[], "complete", None, 0),
        end(&["exit 3"], none(), &[], "failed", Some("Step failed: worker"), 1),
        end(&["kill KILL"], none(), &[], "failed", Some("Step failed: worker"), 1),
        end(
            &["turn 1 1 0\nopen A bash\nclose A bash\nhang"],
            turns,
            &[],
            "failed",
            Some("Subagent exceeded turn budget"),
            6,
        ),
        end(&[UP], none(), &["interrupt"], "paused", None, 4),
        end(&[UP], none(), &["timeout"], "failed", Some("Subagent timed out."), 5),
        // Whatever is looked at first.
        end(&[UP], none(), &["interrupt", "stop"], "stopped", stopped, 3),
        end(&[UP], none(), &["timeout", "interrupt"], "failed", Some("Subagent timed out."), 5),
        end(&[UP], none(), &["interrupt", "timeout", "stop"], "stopped", stopped, 3),
        // A member failed, or was refused because the run has used what it may, before somebody asked.
        end(&["exit 3", UP], none(), &["interrupt"], "paused", None, 1),
        end(&["exit 3", UP], none(), &["stop"], "stopped", stopped, 3),
        end(&[BIG, UP, "say never"], used_up(), &["interrupt"], "failed", over, 6),
        end(&[BIG, UP, "say never"], used_up(), &["timeout"], "failed", None, 5),
        end(&[BIG, UP, "say never"], used_up(), &["stop"], "stopped", None, 3),
    ];
    for row in table {
        let about = format!("{:?} {:?}", row.scripts, row.asked);
        let scene = Scene::new(row.scripts);
        let members: Vec<Value> = row.scripts.iter().map(|_| step(json!({}))).collect();
        let steps = if members.len() > 1 { vec![json!({ "parallel": members, "concurrency": 2 })] } else { members };
        let run = scene.detach(&scene.config(&steps, row.more));
        if !row.asked.is_empty() {
            wait_for("the last child", || scene.scripts().join("up").exists().then_some(()));
            run.wait("what comes before", |s| {
                let of = |n: usize| s["steps"][n]["status"].as_str();
                row.scripts.len() < 2 || (of(0) != Some("running") && of(2).is_none_or(|third| third == "failed"))
            });
            row.asked.iter().for_each(|kind| run.control(&format!("{kind}.json"), "{}"));
        }
        let (status, result) = (run.wait_end(), scene.result(&run));
        assert_eq!((&status["state"], &result["state"]), (&row.state.into(), &row.state.into()), "{about}: {status}");
        let good = row.state == "complete";
        let exit_code = i32::from(!good && row.state != "paused");
        assert_eq!((&result["success"], &result["exitCode"]), (&good.into(), &exit_code.into()), "{about}");
        let error = status["error"].as_str();
        match row.error {
            Some(words) => assert!(error.is_some_and(|e| e.starts_with(words)), "{about}: {error:?}"),
            None if row.state == "complete" || row.state == "paused" => assert_eq!(error, None, "{about}"),
            None => assert!(error.is_some(), "{about}"),
        }
        // The reason is the summary; without one, what the steps said.
        let summary = result["summary"].as_str().unwrap();
        match (row.state, row.code) {
            ("paused", _) => assert!(summary.starts_with("Paused by an interrupt"), "{about}: {summary}"),
            (_, 3 | 5 | 6) => assert_eq!(Some(summary), error, "{about}"),
            _ => assert!(summary.starts_with("worker:\n"), "{about}: {summary}"),
        }
        assert_eq!(run.events_of("subagent.run.completed")[0]["status"], row.state, "{about}");
        assert_eq!(scene.world.output(&["wait", run.id()]).code, row.code, "{about}");
        if row.scripts == ["kill KILL"] {
            assert!(status["steps"][0]["error"].as_str().unwrap().contains("SIGKILL"), "{status}");
        }
        scene.world.wait_until_empty();
    }
}
