//! What becomes of a step that claims to be done, and of what goes wrong beside it.

use super::*;

#[test]
fn a_task_that_demands_edits_is_not_done_without_one() {
    let config = |scene: &Scene, more: Value| {
        let mut with = step(more);
        with["task"] = "Fix the bug in src/lexer.rs.".into();
        scene.config(&[with, step(json!({}))], json!({}))
    };
    // On is what a runner config means when it says nothing.
    let scene = Scene::new(&["open A read\nclose A read\nsay all is well", "say never"]);
    let (run, done) =
        scene.run(&config(&scene, json!({ "completionGuard": null, "modelCandidates": ["a/one", "b/two"] })));
    let status = run.wait_end();
    assert_eq!(
        (states(&status).as_slice(), done.code, scene.starts(0)),
        (["failed", "pending"].as_slice(), 1, 1),
        "{done:?}"
    );
    let error = status["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("without having made any edit") && error.lines().count() == 2, "{error}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "all is well");
    let control = run.events_of("subagent.control");
    assert_eq!((control.len(), &control[0]["event"]["reason"]), (1, &"completion_guard".into()));
    // Switched off it is only told; with an edit, or with tools that only look, there is nothing to tell.
    for (script, more, told) in [
        ("say all is well", json!({ "completionGuard": false }), 1),
        ("open A edit\nclose A edit\nsay done", json!({ "completionGuard": true }), 0),
        (
            "open A bash {\"command\":\"sed -i s/a/b/ f\"}\nclose A bash\nsay done",
            json!({ "completionGuard": true }),
            0,
        ),
        ("say all is well", json!({ "completionGuard": true, "tools": ["read", "grep"] }), 0),
        ("say all is well", json!({ "completionGuard": null, "agentContract": { "version": 1 } }), 1),
    ] {
        let scene = Scene::new(&[script, "say next"]);
        let (run, done) = scene.run(&config(&scene, more.clone()));
        assert_eq!((states(&run.wait_end()).as_slice(), done.code), (["complete", "complete"].as_slice(), 0), "{more}");
        assert_eq!(raised(&run).len(), told, "{more}");
    }
    // One that was challenged to better its work may find that there is nothing better.
    for (reply, code) in [("No better change is needed. All tests pass.", 0), ("All tests pass.", 1)] {
        let scene = Scene::new(&[&format!("say {reply}"), "say next"]);
        let mut with = step(json!({ "completionGuard": true }));
        with["task"] = "Fix the bug in src/lexer.rs. Implementation challenge pass two.".into();
        let (run, done) = scene.run(&scene.config(&[with], json!({})));
        assert_eq!((done.code, raised(&run).len()), (code, usize::try_from(code).unwrap()), "{reply}: {done:?}");
    }
    // In a plan somebody has to ask for it.
    for (key, code) in [("", 0), ("completion_guard = true\n", 1)] {
        let scene = Scene::new(&["say all is well"]);
        let plan = format!("[[step]]\nid = \"one\"\ntask = \"Add a test to src/a.rs\"\n{key}");
        let (run, done) = scene.run(&scene.plan(&plan));
        assert_eq!((done.code, raised(&run)), (code, vec!["completion_guard".to_owned()]), "{key}");
    }
}

#[test]
fn what_became_of_the_output_is_told() {
    // Somebody holds the output of a child that has ended, until the sweep ends that too.
    let scene = Scene::new(&["say fine\nleave"]);
    let (run, done) = scene.run(&scene.plan(JSON));
    assert_eq!(done.code, 0, "{done:?}");
    let notices = run.events_of("subdeck.attention.raised");
    assert_eq!(raised(&run), ["output_held"], "{notices:?}");
    let held = run.events_of("subdeck.output.held")[0]["pids"][0].to_string();
    assert!(notices[0]["notice"]["evidence"].as_str().unwrap().contains(&held), "{notices:?}");
    assert!(run.events_of("subagent.control").is_empty(), "nobody is called for it");
    scene.world.wait_until_empty();

    // More was said than is kept.
    let scene = Scene::new(&["out 0123456789 0123456789 0123456789 0123456789\nuntil go\nsay fine"]);
    let plan = scene.plan(JSON);
    let mut command = scene.subdeck(&["run", "--detach", &plan]);
    let done = support::Done::of(command.env("SUBDECK_CAPTURE_STEP", "20B").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let run = scene.world.only_run();
    wait_for("a notice", || (raised(&run) == ["disk_cap"]).then_some(()));
    scene.touch("go");
    assert_eq!(run.wait_end()["state"], "complete");
}

#[test]
fn a_stop_that_lies_there_already_keeps_everything_from_starting() {
    let scene = Scene::new(&["say never", "say never"]);
    let config = scene.config(&[step(json!({})), step(json!({}))], json!({}));
    let written: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let control = std::path::Path::new(written["asyncDir"].as_str().unwrap()).join("control");
    std::fs::create_dir_all(&control).unwrap();
    std::fs::write(control.join("stop.json"), "").unwrap();
    let (run, done) = scene.run(&config);
    let status = run.wait_end();
    assert_eq!((states(&status).as_slice(), done.code), (["stopped", "stopped"].as_slice(), 3), "{done:?}");
    assert_eq!((&status["state"], scene.starts(0)), (&"stopped".into(), 0));
    assert!(!control.join("stop.json").exists(), "it was taken");
    // Ours begins before it stops; that the reference does not, and is read all the same: `run::reduce::tests`.
    let told: Vec<String> = run.events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    let place = |kind: &str| told.iter().position(|t| t == kind).unwrap();
    assert!(place("subagent.run.started") < place("subagent.run.stopped"), "{told:?}");
    assert!(place("subagent.run.stopped") < place("subagent.run.completed"), "{told:?}");
}

/// What goes wrong in a step is that step's failure, and the run is ended in order (trap 2); what cannot be logged is told
/// and fails nothing (trap 3).
#[test]
fn what_goes_wrong_beside_a_child_ends_in_order() {
    let ended = |scene: &Scene, run: &Run| {
        let status = run.wait_end();
        assert_eq!(scene.result(run)["state"], status["state"]);
        assert_eq!(run.events_of("subagent.run.completed").len(), 1);
        status
    };
    // The folder of a step is gone when it is to begin.
    let scene = Scene::new(&["say never", "say never", "say never"]);
    let gone = scene.world.project().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let first = step(json!({ "runner": { "type": "external-cli", "command": "rmdir", "args": [&gone] } }));
    let (run, done) = scene.run(&scene.config(&[first, step(json!({ "cwd": &gone })), step(json!({}))], json!({})));
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete", "failed", "pending"].as_slice(), 1), "{done:?}");
    assert!(status["steps"][1]["error"].as_str().unwrap().contains("gone"), "{status}");
    // So is the program.
    let scene = Scene::new(&[]);
    let tool = scene.world.file("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let call = |command: &str, args: Value| {
        step(json!({ "runner": { "type": "external-cli", "command": command, "args": args } }))
    };
    let steps = [call("rm", json!([tool])), call(tool.to_str().unwrap(), json!([]))];
    let (run, done) = scene.run(&scene.config(&steps, json!({})));
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete", "failed"].as_slice(), 1), "{done:?}");
    let error = status["steps"][1]["error"].as_str().unwrap();
    assert!(error.contains("tool.sh"), "{error}");
    // An output that nobody gives is found out before anything begins; in the reference it ends the runner.
    let scene = Scene::new(&["say never", "say never"]);
    let asks = step(json!({ "task": "Use {outputs.nobody}." }));
    let config = scene.config(&[step(json!({})), asks], json!({}));
    let done = support::Done::of(scene.subdeck(&["run", "--no-tui", &config]).output().unwrap());
    assert_eq!((done.code, scene.starts(0)), (2, 0), "{done:?}");
    assert!(done.stderr.contains("nobody"), "{done:?}");
    // The log of a step cannot be made.
    let scene = Scene::new(&["out a line\nturn 1 1 0\nsay fine"]);
    let config = scene.config(&[step(json!({}))], json!({}));
    let written: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    let log = std::path::Path::new(written["asyncDir"].as_str().unwrap()).join("output-0.log");
    std::fs::create_dir_all(log.join("in the way")).unwrap();
    let (run, done) = scene.run(&config);
    let status = ended(&scene, &run);
    assert_eq!((states(&status).as_slice(), done.code), (["complete"].as_slice(), 0), "{done:?}");
    assert_eq!(scene.result(&run)["results"][0]["output"], "fine");
    let failed = run.events_of("subdeck.log.failed");
    assert_eq!(failed[0]["error"], "output-0.log: it is not a regular file", "{failed:?}");
}
