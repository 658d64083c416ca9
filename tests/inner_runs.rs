//! Runs that are started in a step of another one, by the real binary: what the inner run does is a sign of life of the
//! step, what it needs is told at the step too, and once it is over or dead the step speaks for itself again.

#[allow(dead_code)]
#[path = "support/runs.rs"]
mod support;

use serde_json::Value;
use support::{Run, World, signal, wait_for};

const ASKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/asker.sh");
const ASK: &str = "{\"type\":\"control_request\",\"request_id\":\"r-1\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"git push\"},\"tool_use_id\":\"t1\"}}\n";

/// An outer run whose step starts the plan `inner.toml`, and waits; it is told of silence after so long.
fn start(world: &World, inner: &str, idle: &str) -> (Run, Run) {
    world.file("inner.toml", inner);
    let program = env!("CARGO_BIN_EXE_subdeck");
    let outer = format!(
        "[attention]\nidle = \"{idle}\"\n[[step]]\nlabel = \"outer\"\nrunner = {{ type = \"external-cli\", command = \"sh\", \
         args = [\"-c\", \"{program} run --detach inner.toml > id; sleep 1000\"] }}\n"
    );
    let path = world.file("outer.toml", &outer);
    let outer = world.detach(&[path.to_str().unwrap()]);
    let id = wait_for("the inner run", || {
        let id = std::fs::read_to_string(world.project().join("id")).ok()?;
        id.ends_with('\n').then(|| id.trim().to_owned())
    });
    (outer, world.run(&id))
}

/// What of the step needs a look, by its rules.
fn reasons(status: &Value) -> Vec<String> {
    let notices = status["steps"][0]["subdeck"]["attention"].as_array().cloned().unwrap_or_default();
    notices.iter().map(|n| n["reason"].as_str().unwrap().to_owned()).collect()
}

/// A scripted agent with a tool that is open for long.
fn works(world: &World) -> String {
    let tool = "tool = [ { name = \"bash\", args = { command = \"make\" }, time_ms = 3600000, output = \"\" } ]";
    world.file("scenes.toml", &format!("[scene.slow]\n[[scene.slow.turn]]\nsay = \"I build.\"\n{tool}\n"));
    "name = \"build\"\n[[step]]\nid = \"work\"\nagent = \"w\"\ntask = \"T\"\nrunner = { type = \"demo\", script = \"scenes.toml#slow\" }\n".to_owned()
}

fn looks(outer: &Run) -> Vec<Value> {
    outer.events_of("subdeck.inner.runs")
}

#[test]
fn a_step_is_not_idle_while_the_run_that_it_started_works_and_is_once_that_is_over() {
    let world = World::new();
    let inner = works(&world);
    let (outer, inner) = start(&world, &inner, "700ms");
    // Looked at before each time that the step would be told to be idle.
    wait_for("several looks", || {
        let looks = looks(&outer);
        (looks.iter().filter(|look| look["runs"][0]["title"] == "build").count() >= 4).then_some(())
    });
    let shown = world.output(&["status", outer.id()]).stdout;
    assert!(shown.contains(&format!("waits for its inner run build ({})", inner.id())), "{shown}");
    assert!(!shown.contains("needs a person"), "{shown}");
    let told = outer.events_of("subdeck.attention.raised");
    assert!(told.is_empty(), "{told:?}");
    let done = world.output(&["stop", "--wait", inner.id()]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = outer.wait("idle", |status| reasons(status) == ["idle"]);
    assert!(status["steps"][0]["subdeck"].get("inner").is_none(), "{status}");
    let told = outer.events_of("subdeck.attention.raised");
    assert!(!told[0]["notice"]["evidence"].as_str().unwrap().contains("inner"), "{told:?}");
    world.output(&["stop", "--wait", outer.id()]);
}

#[test]
fn what_the_inner_run_needs_is_told_at_the_outer_one_until_it_has_it() {
    let world = World::new();
    world.file("ask", ASK);
    let inner = format!(
        "name = \"publish\"\n[[step]]\nid = \"pusher\"\ntask = \"ASK first.\"\n\
         runner = {{ type = \"claude\", command = {ASKER:?}, args = [\"claude\"] }}\n"
    );
    let (outer, inner) = start(&world, &inner, "1h");
    let status = outer.wait("what it needs", |status| reasons(status) == ["inner_run"]);
    let evidence = status["steps"][0]["subdeck"]["attention"][0]["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("publish: pusher: asks") && evidence.contains("git push"), "{evidence}");
    let shown = world.output(&["status", outer.id()]).stdout;
    assert!(shown.contains("its inner run needs you: publish: pusher: asks"), "{shown}");
    // The fleet tells one alarm, that of the inner run.
    let done = world.output(&["answer", inner.id(), "y", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    outer.wait("nobody is needed", |status| reasons(status).is_empty());
    world.output(&["stop", "--wait", outer.id()]);
}

#[test]
fn a_dead_inner_run_is_no_sign_of_life() {
    let world = World::new();
    let inner = works(&world);
    let (outer, inner) = start(&world, &inner, "700ms");
    wait_for("a look", || looks(&outer).iter().any(|look| look["runs"][0]["title"] == "build").then_some(()));
    // Its keeper and its runner die at once, so nobody says that it is over.
    let runner = inner.runner_pid();
    let stat = std::fs::read_to_string(format!("/proc/{runner}/stat")).unwrap();
    let keeper = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    for pid in [keeper, runner] {
        signal(pid, "KILL");
    }
    outer.wait("idle", |status| reasons(status) == ["idle"]);
    world.output(&["stop", "--wait", outer.id()]);
}
