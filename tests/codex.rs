//! Codex as a child of the real binary: a scripted one (`tests/bin/codex.sh`) for what it is started with and what goes
//! both ways, and recordings of the real one, whose run is the same however their output arrives.

#[allow(dead_code)]
#[path = "support/codex_recordings.rs"]
mod codex_recordings;
#[path = "support/played.rs"]
mod played;
#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use codex_recordings::{Recording, is_server, read, recordings};
use played::{OK, PACES, PLAYER, Wanted, check_breaking_off, output};
use serde_json::Value;
use support::{Done, World};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/codex.sh");

/// A plan with one step of the scripted agent; `more` is more of its runner, `step` more of the step.
fn plan(world: &World, task: &str, more: &str, step: &str) -> String {
    let runner = format!("runner = {{ type = \"codex\", command = {AGENT:?}{more} }}");
    let text = format!("[[step]]\nid = \"c\"\ntask = {task:?}\n{runner}\n{step}\n");
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

fn kept(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.project().join(name)).unwrap_or_default()
}

/// What the scripted app server was told.
fn told(world: &World) -> Vec<Value> {
    kept(world, "heard.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn methods(world: &World) -> Vec<String> {
    told(world).iter().filter_map(|message| message["method"].as_str().map(str::to_owned)).collect()
}

#[test]
fn it_is_started_as_the_plan_says_and_its_turn_is_the_end() {
    let world = World::new();
    let step = "model = \"m\"\nthinking = \"high\"\nsystem_prompt = \"Be brief.\"\nbudget = { turns = 9 }";
    let plan = plan(&world, "/do it", ", permission = \"allow\", resume = \"s-0\"", step);
    let done = world.output(&["run", "--no-tui", &plan]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    let status = run.status();
    let step = &status["steps"][0];
    assert_eq!((&step["tokens"]["input"], &step["tokens"]["output"]), (&10.into(), &1.into()), "{step:#}");
    assert_eq!(step["model"], "scripted", "{step:#}");
    assert_eq!(kept(&world, "started"), "app-server\n");
    assert_eq!(methods(&world), ["initialize", "initialized", "thread/resume", "turn/start"]);
    let told = told(&world);
    let thread = &told[2]["params"];
    assert_eq!((&thread["threadId"], &thread["model"]), (&"s-0".into(), &"m".into()));
    assert_eq!((&thread["approvalPolicy"], &thread["sandbox"]), (&"never".into(), &"danger-full-access".into()));
    assert_eq!(thread["config"]["model_reasoning_effort"], "high");
    let instructions = thread["developerInstructions"].as_str().unwrap();
    assert!(instructions.starts_with("Be brief.") && instructions.contains('9'), "{instructions}");
    assert_eq!(told[3]["params"]["input"][0]["text"], "Task: /do it");
    let shown: Value = serde_json::from_str(&world.output(&["status", run.id(), "--json"]).stdout).unwrap();
    let step = &shown["steps"][0];
    assert_eq!((&step["runner"], &step["permission"]), (&"codex".into(), &"allow".into()), "{step:#}");
    assert_eq!((&step["transport"], &step["session"]), (&"steerable".into(), &"s-1".into()), "{step:#}");
    world.wait_until_empty();
}

#[test]
fn a_message_reaches_it_in_the_middle_of_its_work_and_a_follow_up_waits_for_its_turn() {
    let world = World::new();
    let plan = plan(&world, "WAIT for it.", "", "");
    let run = world.detach(&[&plan]);
    run.wait("the tool", |status| status["currentTool"] == "shell");
    let follow = world.output(&["steer", run.id(), "--mode", "follow-up", "And this at last."]);
    assert_eq!(follow.code, 0, "{follow:?}");
    let steer = world.output(&["steer", run.id(), "--wait", "Another way."]);
    assert_eq!(steer.code, 0, "{steer:?}");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status:#}");
    assert_eq!(output(&run, &world), "Answer 2.");
    let said = methods(&world);
    assert_eq!(said, ["initialize", "initialized", "thread/start", "turn/start", "turn/steer", "turn/start"]);
    let texts: Vec<String> = told(&world)
        .iter()
        .filter_map(|message| message.pointer("/params/input/0/text")?.as_str().map(str::to_owned))
        .collect();
    assert!(texts[1].contains("Another way.") && texts[2].contains("And this at last."), "{texts:?}");
    assert_eq!(status["steering"]["delivered"], 2, "{status:#}");
    world.wait_until_empty();
}

#[test]
fn an_interrupted_one_goes_on_in_its_session() {
    let world = World::new();
    let plan = plan(&world, "WAIT for it.", "", "");
    let run = world.detach(&[&plan]);
    run.wait("the tool", |status| status["currentTool"] == "shell");
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(run.wait_end()["state"], "paused");
    assert_eq!(methods(&world).last().map(String::as_str), Some("turn/interrupt"));
    assert!(run.events_of("subdeck.signal.sent").is_empty(), "it went when it was asked over its protocol");
    let done = world.output(&["resume", run.id(), "Go on.", "--no-tui"]);
    assert_eq!(done.code, 0, "{done:?}");
    let resumed = told(&world).into_iter().find(|message| message["method"] == "thread/resume").expect("a resumption");
    assert_eq!(resumed["params"]["threadId"], "s-1");
    world.wait_until_empty();
}

#[test]
fn what_needs_a_permission_is_answered() {
    for (more, policy, expected) in [
        (", permission = \"allow\"", "fail", "It was allowed."),
        (", permission = \"deny\"", "fail", "It was refused."),
        ("", "allow", "It was allowed."),
        ("", "deny", "It was refused."),
    ] {
        let world = World::new();
        let plan = plan(&world, "ASK first.", more, "");
        let done = world.output(&["run", "--no-tui", "--on-permission", policy, &plan]);
        assert_eq!(done.code, 0, "{more}: {done:?}");
        let run = world.only_run();
        assert_eq!(output(&run, &world), expected, "{more}");
        assert!(run.events_of("subdeck.question.asked").is_empty(), "{more}");
        world.wait_until_empty();
    }
}

#[test]
fn one_prompt_goes_to_its_input_and_messages_are_refused() {
    let world = World::new();
    let plan = plan(&world, "/do it", ", transport = \"oneshot\"", "system_prompt = \"Be brief.\"");
    let done = world.output(&["run", "--no-tui", &plan]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = world.only_run();
    assert_eq!(output(&run, &world), "Answer.");
    assert_eq!(kept(&world, "heard"), "Be brief.\n\nTask: /do it");
    let started = kept(&world, "started");
    assert!(started.starts_with("exec\n--json\n") && started.ends_with("\n-\n"), "{started}");
    let status = run.status();
    assert_eq!(status["steps"][0]["tokens"]["input"], 6, "what came from the cache is told apart: {status:#}");
    world.wait_until_empty();
}

#[test]
fn plays_a_recording() {
    played::child();
}

/// Plays bytes through the binary.
fn play(recording: &Recording, bytes: &[u8], pace: &str) -> (World, Done) {
    let transport = if is_server(recording.name) { "steerable" } else { "oneshot" };
    let resume = if recording.name.contains("resume") { ", resume = \"s\"" } else { "" };
    let policy = if recording.name == "app-accepted" { "allow" } else { "deny" };
    let runner = format!("{{ type = \"codex\", command = {PLAYER:?}, transport = \"{transport}\"{resume} }}");
    played::play(bytes, pace, OK, &runner, |command| {
        command.args(["--on-permission", policy]);
    })
}

#[test]
fn however_it_arrives_the_run_is_the_one_that_was_recorded() {
    // What the exit code of the recorded process decides is not played.
    let played = recordings().into_iter().filter(|recording| recording.exit.signal.is_none());
    for (n, recording) in played.filter(|recording| !recording.name.contains("sigint")).enumerate() {
        let name = recording.name;
        let bytes = read(name);
        // Each way for some of them, and all ways for those with the most in them.
        let full = matches!(name, "app-spawn" | "app-interrupt" | "parallel");
        let paces = if full { &PACES[..] } else { &PACES[n % 3..=n % 3] };
        let (input, out, _) = recording.usage;
        let wanted = Wanted {
            name,
            bytes: &bytes,
            end: recording.end.clone(),
            text: recording.text,
            usage: (input, out, 0),
            ends: recording.tools.iter().filter(|(_, end)| end.is_some()).count(),
        };
        let play = |pace: &str| play(&recording, &bytes, pace);
        wanted.check(paces, play, |step| {
            let subs: Vec<_> = step["subdeck"]["subAgents"].as_array().into_iter().flatten().collect();
            assert_eq!(subs.len(), usize::from(name == "app-spawn"), "{name}");
            if let [sub] = subs.as_slice() {
                let told = (&sub["name"], &sub["outcome"], &sub["toolCount"], &sub["tokens"]);
                assert_eq!(told, (&"child".into(), &"ok".into(), &1.into(), &4314.into()), "{name}");
            }
        });
    }
}

#[test]
fn a_recording_that_breaks_off_is_never_complete() {
    for recording in recordings().into_iter().filter(|r| matches!(r.name, "bash" | "app-steer" | "app-spawn")) {
        check_breaking_off(recording.name, &read(recording.name), |bytes, pace| play(&recording, bytes, pace));
    }
}
