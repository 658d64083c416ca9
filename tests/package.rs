//! What runner configs of the package ask for beyond a plan, by the real binary with a scripted agent: files that outlive
//! the run directory, fields that its readers want, and work that has to be accepted (run-directory 2.9, 4;
//! runner-behaviour 9).

#[allow(dead_code)]
#[path = "support/scripted.rs"]
mod scripted;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use std::path::{Path, PathBuf};

use scripted::{Scene, step};
use serde_json::{Value, json};
use support::{Run, files_below, wait_for};

/// The names of the files in a folder, without the run's id.
fn names(folder: &Path, run: &Run) -> Vec<String> {
    let mut names: Vec<String> = files_below(folder)
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().replacen(run.id(), "RUN", 1))
        .collect();
    names.sort_unstable();
    names
}

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A config whose files are kept in a folder of the project; returns the folder too.
fn keeping(scene: &Scene, steps: &[Value], kept: Value) -> (String, PathBuf) {
    let folder = scene.world.project().join("kept");
    let more = json!({ "artifactsDir": folder, "artifactConfig": kept });
    (scene.config(steps, more), folder)
}

/// An agent that repeats its prompt, as pi does, looks and answers.
const TALKER: &str = concat!(
    r#"{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"Task: SECRET-81 look"}]}}"#,
    "\nopen A ls {\"path\":\"src\"}\nresult A ls a.rs\nclose A ls\nout not a record\nerr a warning\nsay found it"
);

#[test]
fn what_was_said_and_done_outlives_the_run_directory_without_the_prompt() {
    let scene = Scene::new(&[TALKER, "", "exit 3"]);
    let plain =
        step(json!({ "agent": "a tool", "runner": { "type": "external-cli", "command": "echo", "args": ["hi"] } }));
    let steps =
        [step(json!({ "task": "SECRET-81 look", "label": "one" })), plain, step(json!({ "task": "SECRET-81 fail" }))];
    let (config, folder) = keeping(&scene, &steps, json!({ "enabled": true, "cleanupDays": 7 }));
    let (run, done) = scene.run(&config);
    let status = run.wait_end();
    assert_eq!((done.code, &status["artifactsDir"]), (1, &json!(folder)), "{done:?}");
    assert_eq!(
        names(&folder, &run),
        [
            "RUN_a_tool_1_input.md",
            "RUN_a_tool_1_meta.json",
            "RUN_a_tool_1_output.md",
            "RUN_worker_0_input.md",
            "RUN_worker_0_meta.json",
            "RUN_worker_0_output.md",
            "RUN_worker_0_transcript.jsonl",
            "RUN_worker_2_input.md",
            "RUN_worker_2_meta.json",
            "RUN_worker_2_output.md",
            "RUN_worker_2_transcript.jsonl",
        ]
    );
    for path in files_below(&folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("SECRET-81"), "{}: {text}", path.display());
    }
    let file = |name: &str| folder.join(format!("{}_{name}", run.id()));
    let all = records(&file("worker_0_transcript.jsonl"));
    let kinds: Vec<_> = all.iter().map(|r| r["recordType"].as_str().unwrap()).collect();
    // The order between what is printed on the two streams is not known.
    let (err, rest): (Vec<&str>, Vec<&str>) = kinds.iter().partition(|kind| **kind == "stderr");
    assert_eq!(err.len(), 1, "{kinds:?}");
    assert_eq!(rest, ["message", "message", "tool_start", "message", "tool_end", "stdout", "message"], "{kinds:?}");
    let prompt = "[prompt redacted]";
    assert_eq!((&all[0]["sourceEventType"], &all[0]["text"]), (&"initial_prompt".into(), &prompt.into()));
    for record in &all {
        let of = (&record["version"], &record["source"], &record["runId"], &record["agent"], &record["childIndex"]);
        assert_eq!(of, (&1.into(), &"async".into(), &run.id().into(), &"worker".into(), &0.into()));
    }
    let last = all.iter().rfind(|r| r["recordType"] == "message").unwrap();
    assert_eq!(
        (&last["role"], &last["text"], &last["stopReason"]),
        (&"assistant".into(), &"found it".into(), &"stop".into())
    );
    assert_eq!(std::fs::read_to_string(file("worker_0_output.md")).unwrap(), "found it");
    assert_eq!(std::fs::read_to_string(file("a_tool_1_output.md")).unwrap().trim(), "hi");
    let failed = std::fs::read_to_string(file("worker_2_output.md")).unwrap();
    assert!(failed.contains("gave no output") && failed.contains("exited with code 3"), "{failed}");
    let meta: Value = serde_json::from_slice(&std::fs::read(file("worker_0_meta.json")).unwrap()).unwrap();
    assert_eq!(
        (&meta["agent"], &meta["index"], &meta["task"], &meta["exitCode"], &meta["toolCount"]),
        (&"worker".into(), &0.into(), &prompt.into(), &0.into(), &1.into())
    );
    // Who reads the run finds them, and nothing is named that is not there.
    let transcript = |step: usize| status["steps"][step].get("transcriptPath").cloned();
    assert_eq!(transcript(0), Some(json!(file("worker_0_transcript.jsonl"))));
    assert_eq!(transcript(1), None, "the output of a plain command is no conversation");
    let result = scene.result(&run);
    for entry in result["results"].as_array().unwrap() {
        for (name, path) in entry["artifactPaths"].as_object().unwrap() {
            assert!(Path::new(path.as_str().unwrap()).exists(), "{name}: {path}");
        }
    }
    assert_eq!(result["results"][0]["artifactPaths"].as_object().unwrap().len(), 4);
    let printed = scene.world.output(&["status", run.id(), "--json"]);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(printed["steps"][0]["transcript"], json!(file("worker_0_transcript.jsonl")));
}

#[test]
fn only_what_is_wanted_is_kept() {
    for (kept, expected) in [
        (json!({ "enabled": false }), vec![]),
        (
            json!({ "includeInput": false, "includeOutput": false, "includeMetadata": false }),
            vec!["RUN_worker_transcript.jsonl"],
        ),
        (
            json!({ "includeTranscript": false }),
            vec!["RUN_worker_input.md", "RUN_worker_meta.json", "RUN_worker_output.md"],
        ),
    ] {
        let scene = Scene::new(&["say fine"]);
        let (config, folder) = keeping(&scene, &[step(json!({}))], kept.clone());
        let (run, done) = scene.run(&config);
        assert_eq!((names(&folder, &run), done.code), (expected.into_iter().map(str::to_owned).collect(), 0), "{kept}");
    }
}

#[test]
fn attempts_of_one_step_share_a_transcript() {
    let failed = concat!(
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","#,
        r#""errorMessage":"429 rate limit reached"}}"#,
        "\nexit 1"
    );
    let scene = Scene::new(&[]);
    scene.script("0.1", failed);
    scene.script("0.2", "say at last");
    let (config, folder) = keeping(&scene, &[step(json!({ "modelCandidates": ["a/one", "b/two"] }))], json!({}));
    let (run, done) = scene.run(&config);
    assert_eq!(done.code, 0, "{done:?}");
    let all = records(&folder.join(format!("{}_worker_transcript.jsonl", run.id())));
    let said: Vec<_> = all.iter().map(|r| r["errorMessage"].as_str().or(r["text"].as_str()).unwrap()).collect();
    assert_eq!(said, ["[prompt redacted]", "429 rate limit reached", "at last"]);
}

#[test]
fn files_that_cannot_be_kept_are_told_and_fail_nothing() {
    let scene = Scene::new(&["say fine"]);
    let (config, folder) = keeping(&scene, &[step(json!({}))], json!({}));
    std::fs::write(&folder, "in the way").unwrap();
    let (run, done) = scene.run(&config);
    let status = run.wait_end();
    assert_eq!((&status["state"], done.code), (&"complete".into(), 0), "{done:?}");
    assert!(status["steps"][0]["transcriptError"].as_str().unwrap().contains("_transcript.jsonl"), "{status}");
    let entry = &scene.result(&run)["results"][0];
    for key in ["transcriptError", "outputSaveError", "metadataSaveError"] {
        assert!(entry[key].as_str().unwrap().contains("kept"), "{key}: {entry}");
    }
    let told: Vec<_> = run.events_of("subdeck.artifact.failed").iter().map(|e| e["which"].clone()).collect();
    assert_eq!(told, ["transcript", "output", "metadata"]);
}

#[test]
fn what_the_launcher_said_stands_in_status_and_result() {
    let extensions = json!({ "version": 1, "source": "launch-resolved", "disableAmbientExtensions": false });
    let scene = Scene::new(&["say fine"]);
    let with = step(json!({ "context": "fork", "outputName": "found", "launchContractDigest": "d1",
        "launchResolvedExtensions": extensions, "agentContract": { "version": 1 } }));
    let more = json!({ "workflowKey": "key", "parentWorkflowRunId": "wf", "launchContractDigest": "d0",
        "launchResolvedExtensions": extensions, "taskIndex": 1, "totalTasks": 3,
        "sessionDir": scene.world.project().join("sessions") });
    let (run, done) = scene.run(&scene.config(&[with], more));
    let (status, result) = (run.wait_end(), scene.result(&run));
    assert_eq!(done.code, 0, "{done:?}");
    for place in [&status, &result] {
        assert_eq!((&place["workflowKey"], &place["parentWorkflowRunId"]), (&"key".into(), &"wf".into()));
        assert_eq!((&place["launchContractDigest"], &place["launchResolvedExtensions"]), (&"d0".into(), &extensions));
    }
    assert_eq!(status["sessionDir"], json!(scene.world.project().join("sessions")));
    assert_eq!((&result["taskIndex"], &result["totalTasks"]), (&1.into(), &3.into()));
    for entry in [&status["steps"][0], &result["results"][0]] {
        assert_eq!((&entry["context"], &entry["launchContractDigest"]), (&"fork".into(), &"d1".into()));
        assert_eq!((&entry["agentContract"]["version"], &entry["launchResolvedExtensions"]), (&1.into(), &extensions));
    }
    assert_eq!(status["steps"][0]["outputName"], "found");
}

#[test]
fn a_step_that_waits_names_the_models_that_it_may_ask() {
    let scene = Scene::new(&["until go\nsay fine", "say done"]);
    let later = step(json!({ "modelCandidates": ["a/one", "b/two"] }));
    let run = scene.detach(&scene.config(&[step(json!({})), later], json!({})));
    let status = run.wait("the first child", |s| s["steps"][0]["status"] == "running");
    assert_eq!(status["steps"][1]["attemptedModels"], json!(["a/one", "b/two"]));
    scene.touch("go");
    assert_eq!(run.wait_end()["steps"][1]["attemptedModels"], json!(["a/one"]), "only one of them was asked");
}

#[test]
fn others_are_told_of_a_file_as_the_launcher_wants_it() {
    for (mode, starts, ends) in
        [("inline", "fine", " lines]"), ("file-only", "[output: ", " lines]"), ("", "fine", " lines]")]
    {
        let scene = Scene::new(&["say fine", "say next"]);
        let mut with = step(json!({ "outputPath": "out.md" }));
        if !mode.is_empty() {
            with["outputMode"] = mode.into();
        }
        let (run, _) = scene.run(&scene.config(&[with, step(json!({ "task": "Read {previous}" }))], json!({})));
        assert_eq!(run.wait_end()["state"], "complete");
        let output = scene.result(&run)["results"][0]["output"].as_str().unwrap().to_owned();
        assert!(output.starts_with(starts) && output.ends_with(ends) && output.contains("out.md, 4 bytes"), "{output}");
        assert_eq!(std::fs::read_to_string(scene.world.project().join("out.md")).unwrap(), "fine");
        let told = std::fs::read_to_string(scene.scripts().join("prompt.1.1")).unwrap();
        assert!(told.contains("out.md, 4 bytes"), "{told}");
    }
}

#[test]
fn a_summary_is_cut_only_where_somebody_says_so() {
    for (most, cut) in
        [(Value::Null, false), (json!({}), false), (json!({ "bytes": 20 }), true), (json!({ "lines": 2 }), true)]
    {
        let scene = Scene::new(&["say one\\ntwo\\nthree\\nfour"]);
        let (run, _) = scene.run(&scene.config(&[step(json!({}))], json!({ "maxOutput": most })));
        run.wait_end();
        let result = scene.result(&run);
        let summary = result["summary"].as_str().unwrap();
        assert_eq!((&result["truncated"], summary.contains("four")), (&cut.into(), !cut), "{most}: {summary}");
        assert_eq!(summary.contains("[cut: "), cut, "{summary}");
        let log = std::fs::read_to_string(run.dir.join(format!("subagent-log-{}.md", run.id()))).unwrap();
        assert_eq!(log.contains("[cut: "), cut, "{log}");
        assert!(result["results"][0]["output"].as_str().unwrap().contains("four"), "the text itself is whole");
    }
}

/// A report of work in which everything is there.
fn report(criterion: &str) -> String {
    let report = json!({
        "criteriaSatisfied": [{ "id": criterion, "status": "satisfied", "evidence": "the file is there" }],
        "changedFiles": ["a.rs"], "commandsRun": [{ "command": "make", "result": "passed", "summary": "fine" }],
        "residualRisks": [], "noStagedFiles": true,
    });
    format!("```acceptance-report\\n{}\\n```", report.to_string().replace('"', "\\\""))
}

/// What is asked of a step.
fn asked(level: &str, more: Value) -> Value {
    let mut asked = json!({ "level": level, "explicit": true, "inferredReason": [], "criteria": [{ "id": "it-works",
        "must": "It works", "evidence": [], "severity": "required" }], "evidence": ["changed-files"], "verify": [],
        "stopRules": [] });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asked
}

/// Runs one step whose agent ends with this text; returns its status, its result and the scene.
fn accept(text: &str, acceptance: Value, more: Value) -> (Scene, Value, Value) {
    let scene = Scene::new(&[&format!("say {text}"), "say next"]);
    let mut with = step(more);
    with["effectiveAcceptance"] = acceptance;
    let (run, _) = scene.run(&scene.config(&[with, step(json!({ "task": "Then: {previous}" }))], json!({})));
    let (status, result) = (run.wait_end(), scene.result(&run));
    (scene, status["steps"].clone(), result["results"][0].clone())
}

#[test]
fn work_is_accepted_for_what_it_shows() {
    let good = format!("done {}", report("it works"));
    let (scene, steps, entry) = accept(&good, asked("checked", json!({})), json!({}));
    assert_eq!((&steps[0]["status"], &steps[0]["acceptance"]["status"]), (&"complete".into(), &"checked".into()));
    let ledger = &entry["acceptance"];
    assert_eq!((&ledger["status"], &ledger["explicit"]), (&"checked".into(), &true.into()));
    assert_eq!(ledger["childReport"]["changedFiles"], json!(["a.rs"]));
    let checks: Vec<_> =
        ledger["runtimeChecks"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(checks, ["criterion:it-works", "evidence:changed-files"]);
    assert_eq!(entry["output"], "done", "the report is not part of the answer");
    // The agent was told what is asked of it, and the next step reads the answer alone.
    let prompt = |step: usize| std::fs::read_to_string(scene.scripts().join(format!("prompt.{step}.1"))).unwrap();
    let told = prompt(0);
    assert!(told.contains("Do it.\\n\\n## Acceptance") && told.contains("it-works: It works"), "{told}");
    assert!(prompt(1).contains("Then: done\""), "{}", prompt(1));
    assert_eq!(steps[1]["status"], "complete");

    // Without a report, and with one that lacks something, the step fails where somebody asked for it.
    let poor = format!("done {}", report("something else"));
    for (text, level, explicit, status, error) in [
        ("done", "attested", true, "failed", Some("Acceptance rejected: there is no acceptance report")),
        ("done", "attested", false, "complete", None),
        (&poor, "attested", true, "complete", None),
        (&poor, "checked", true, "failed", Some("Acceptance rejected: the criterion `it-works` is not in the report")),
        ("done", "none", true, "complete", None),
    ] {
        let (_, steps, entry) = accept(text, asked(level, json!({ "explicit": explicit })), json!({}));
        assert_eq!(steps[0]["status"], status, "{text} {level} {explicit}");
        assert_eq!(steps[1]["status"], if status == "failed" { "pending" } else { "complete" });
        let found = entry["error"].as_str();
        assert!(found.zip(error).map_or(found.is_none() && error.is_none(), |(f, e)| f.starts_with(e)), "{found:?}");
        let ledger = match (level, text) {
            ("none", _) => "not-required",
            ("attested", text) if text != "done" => "attested",
            _ => "rejected",
        };
        assert_eq!(steps[0]["acceptance"]["status"], ledger, "{text} {level} {explicit}");
    }

    // Under a contract of the agent only a gate fails the step.
    for (gate, status) in [("execution", "complete"), ("acceptance", "failed")] {
        let more = json!({ "agentContract": { "version": 1 }, "gateOn": gate });
        let (_, steps, _) = accept("done", asked("checked", json!({})), more);
        assert_eq!(steps[0]["status"], status, "{gate}");
    }
}

#[test]
fn commands_have_to_succeed_for_work_that_is_to_be_verified() {
    let good = format!("done {}", report("it-works"));
    let verify = |command: &str, more: Value| {
        let mut verify = json!({ "id": "v", "command": command });
        verify.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked("verified", json!({ "verify": [verify] }))
    };
    let failing = "echo \"$MY_TOKEN and $PLAIN\"; echo oh >&2; exit 4";
    for (acceptance, status, word, code) in [
        (verify("test -d .", json!({})), "complete", "passed", json!(0)),
        (
            verify(failing, json!({ "env": { "MY_TOKEN": "t0p-s3cret", "PLAIN": "shown" } })),
            "failed",
            "failed",
            json!(4),
        ),
        (verify("exit 4", json!({ "allowFailure": true })), "complete", "allowed-failure", json!(4)),
        (verify("sleep 30", json!({ "timeoutMs": 200 })), "failed", "timed-out", Value::Null),
    ] {
        let (scene, steps, entry) = accept(&good, acceptance.clone(), json!({}));
        assert_eq!(steps[0]["status"], status, "{acceptance}");
        let run = &entry["acceptance"]["verifyRuns"][0];
        assert_eq!((&run["status"], &run["exitCode"]), (&word.into(), &code), "{acceptance}");
        if word == "failed" {
            assert_eq!((&run["stdout"], &run["stderr"]), (&"[REDACTED] and shown".into(), &"oh".into()));
            assert!(entry["error"].as_str().unwrap().starts_with("Acceptance rejected: `echo"), "{entry}");
        }
        // Values of variables are nowhere on the disk.
        for path in files_below(&scene.world.root()) {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("t0p-s3cret"), "{}", path.display());
        }
        scene.world.wait_until_empty();
    }
    // Who else has to look is told.
    let review = json!({ "review": { "agent": "reviewer", "required": true } });
    let (_, steps, _) = accept(&good, asked("checked", review), json!({}));
    assert_eq!(
        (&steps[0]["acceptance"]["status"], &steps[0]["acceptance"]["evidenceStatus"]),
        (&"review-required".into(), &"checked".into())
    );
}

#[test]
fn files_that_are_staged_are_seen() {
    let good = format!("done {}", report("it-works"));
    let acceptance = asked("checked", json!({ "evidence": ["no-staged-files"] }));
    for staged in [false, true] {
        let scene = Scene::new(&[&format!("say {good}")]);
        let folder = scene.world.project();
        let git = |args: &[&str]| {
            let mut git = std::process::Command::new("git");
            let done = git.args(args).current_dir(&folder).env("HOME", &folder).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        scene.world.file("a.rs", "");
        if staged {
            git(&["add", "a.rs"]);
        }
        let mut with = step(json!({}));
        with["effectiveAcceptance"] = acceptance.clone();
        let (run, _) = scene.run(&scene.config(&[with], json!({})));
        let status = run.wait_end();
        let expected = if staged { ("failed", "rejected") } else { ("complete", "checked") };
        let found = (&status["steps"][0]["status"], &status["steps"][0]["acceptance"]["status"]);
        assert_eq!(found, (&expected.0.into(), &expected.1.into()), "{status}");
    }
}

#[test]
fn a_stop_ends_the_commands_that_verify_too() {
    let scene = Scene::new(&[&format!("say done {}", report("it-works"))]);
    let mut with = step(json!({}));
    let command = "touch verifying; sleep 300 & sleep 300";
    with["effectiveAcceptance"] = asked("verified", json!({ "verify": [{ "id": "v", "command": command }] }));
    let run = scene.detach(&scene.config(&[with], json!({})));
    let mark = scene.world.project().join("verifying");
    wait_for("the command", || mark.exists().then_some(()));
    assert_eq!(run.status()["steps"][0]["status"], "running", "it is not over before it is accepted");
    run.control("stop.json", "{}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"stopped".into(), &"stopped".into()));
    let ledger = &status["steps"][0]["acceptance"];
    assert_eq!((&ledger["status"], &ledger["runtimeChecks"][0]["id"]), (&"rejected".into(), &"stopped".into()));
    scene.world.wait_until_empty();
}

/// What a nested run told those above it, in its order.
fn told(route: &Value) -> Vec<Value> {
    let mut files = files_below(Path::new(route["eventSink"].as_str().unwrap()));
    files.sort_unstable();
    files.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

#[test]
fn a_nested_run_tells_those_above_what_becomes_of_it() {
    let scene = Scene::new(&["env PI_SUBAGENT_PARENT_RUN_ID\nuntil go\nsay fine"]);
    let route = scene.route("top");
    let own = json!({ "parentRunId": "parent", "parentStepIndex": 2, "depth": 1,
        "path": [{ "runId": "top", "stepIndex": 0, "agent": "boss" }] });
    let run = scene.detach(&scene.config(&[step(json!({}))], json!({ "nestedRoute": route, "nestedSelf": own })));
    wait_for("a word of the running child", || {
        told(&route).iter().any(|e| e["child"]["steps"][0]["status"] == "running").then_some(())
    });
    scene.touch("go");
    run.wait_end();
    let events = wait_for("the last word", || {
        Some(told(&route)).filter(|all| all.last().is_some_and(|e| e["type"] == "subagent.nested.completed"))
    });
    for event in &events {
        let of = (&event["rootRunId"], &event["parentRunId"], &event["parentStepIndex"], &event["capabilityToken"]);
        assert_eq!(of, (&"top".into(), &"parent".into(), &2.into(), &"token".into()));
        let child = &event["child"];
        assert_eq!((&child["id"], &child["depth"], &child["path"]), (&run.id().into(), &1.into(), &own["path"]));
        assert_eq!(child["asyncDir"], json!(run.dir));
    }
    let (first, last) = (&events[0]["child"], &events.last().unwrap()["child"]);
    assert_eq!((&first["state"], &first["ownerState"]), (&"running".into(), &"live".into()));
    assert_eq!(
        (&last["state"], &last["ownerState"], &last["agent"]),
        (&"complete".into(), &"gone".into(), &"worker".into())
    );
    assert_eq!(events.iter().filter(|e| e["type"] == "subagent.nested.completed").count(), 1);
    // A child that starts no agents is told nothing of the way.
    assert_eq!(std::fs::read_to_string(scene.scripts().join("env.0")).unwrap(), "\n");
}

#[test]
fn a_child_that_may_start_agents_is_told_the_way_and_those_it_started_are_told_to_end() {
    let names =
        ["EVENT_SINK", "CONTROL_INBOX", "ROOT_RUN_ID", "CAPABILITY_TOKEN", "RUN_ID", "CHILD_INDEX", "DEPTH", "PATH"];
    let script: String = names.iter().map(|name| format!("env PI_SUBAGENT_PARENT_{name}\n")).collect();
    for (kind, state) in [("stop", "stopped"), ("interrupt", "paused"), ("timeout", "failed")] {
        let scene = Scene::new(&[&format!("{script}touch asked\nhang")]);
        let route = scene.route("top");
        let with = step(json!({ "tools": ["read", "subagent"] }));
        let run = scene.detach(&scene.config(&[with], json!({ "nestedRoute": route })));
        wait_for("the child", || scene.scripts().join("asked").exists().then_some(()));
        let found = std::fs::read_to_string(scene.scripts().join("env.0")).unwrap();
        let path = json!([{ "runId": run.id(), "stepIndex": 0, "agent": "worker" }]).to_string();
        let text = |key: &str| route[key].as_str().unwrap().to_owned();
        let expected = [
            text("eventSink"),
            text("controlInbox"),
            "top".into(),
            "token".into(),
            run.id().into(),
            "0".into(),
            "1".into(),
        ];
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[..7], expected);
        let (found, wanted): (Value, Value) =
            (serde_json::from_str(lines[7]).unwrap(), serde_json::from_str(&path).unwrap());
        assert_eq!(found, wanted);
        // It started one; a run of somebody else's on the same route is none of its business.
        let runs = scene.world.root().join("nested-subagent-runs/top");
        for (id, parent) in [("below", run.id()), ("beside", "other")] {
            std::fs::create_dir_all(runs.join(id)).unwrap();
            let event = json!({ "type": "subagent.nested.started", "ts": 5, "rootRunId": "top", "parentRunId": parent,
                "capabilityToken": "token", "child": { "id": id, "parentRunId": parent, "depth": 1, "path": [],
                "state": "running", "asyncDir": runs.join(id), "lastUpdate": 5 } });
            let sink = Path::new(route["eventSink"].as_str().unwrap());
            std::fs::write(sink.join(format!("0000000000005-{id}.json")), event.to_string()).unwrap();
        }
        run.control(&format!("{kind}.json"), "{}");
        let status = run.wait_end();
        assert_eq!(status["state"], state, "{kind}");
        let request = runs.join(format!("below/control/{kind}.json"));
        let request: Value = serde_json::from_slice(&std::fs::read(request).unwrap()).unwrap();
        assert_eq!((&request["type"], &request["source"]), (&kind.into(), &format!("ancestor-{kind}").into()));
        assert!(!runs.join("beside/control").exists());
        assert!(run.events_of(&format!("subagent.nested.{kind}_failed")).is_empty());
    }
}

#[test]
fn a_route_that_is_not_ones_own_is_not_used() {
    let scene = Scene::new(&["env PI_SUBAGENT_PARENT_EVENT_SINK\nsay fine"]);
    let mut route = scene.route("top");
    route["capabilityToken"] = "guess".into();
    let with = step(json!({ "tools": ["subagent"] }));
    let own = json!({ "parentRunId": "parent", "depth": 1 });
    let (run, done) = scene.run(&scene.config(&[with], json!({ "nestedRoute": route, "nestedSelf": own })));
    assert_eq!((&run.wait_end()["state"], done.code), (&"complete".into(), 0), "{done:?}");
    assert!(told(&route).is_empty());
    assert_eq!(std::fs::read_to_string(scene.scripts().join("env.0")).unwrap(), "\n");
}
