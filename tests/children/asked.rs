//! What a child is asked while it runs, by the real binary: interrupts, and messages that arrive, wait or cannot arrive.

use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use crate::support::{Done, World, wait_for};
use crate::{agent, detach, signals};

#[test]
fn an_interrupt_reaches_each_kind_of_child_in_its_own_way() {
    let world = World::new();
    let run = detach(&world, "json", &["silent"]);
    let begin = Instant::now();
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"paused".into(), &"paused".into()));
    assert_eq!(status["steps"][0]["exitCode"], 0);
    assert_eq!(signals(&run), [("SIGTERM".to_owned(), true)], "{:?}", begin.elapsed());
    assert_eq!(world.output(&["wait", run.id()]).code, 4);
    world.wait_until_empty();
}

#[test]
fn an_interrupted_agent_does_not_begin_with_what_waits_in_its_queue() {
    let world = World::new();
    let run = detach(&world, "rpc", &["queued"]);
    run.wait("its first record", |_| !run.events_of("agent_start").is_empty());
    let done = world.output(&["steer", run.id(), "--mode", "follow-up", "and then this", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = world.output(&["interrupt", run.id(), "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"paused".into(), &"paused".into()));
    assert_eq!(status["steps"][0]["error"], serde_json::Value::Null, "{status}");
    assert_eq!(signals(&run), [], "it ended with its input");
    assert_eq!(status["steering"]["failed"], 1, "{status}");
    let log = world.output(&["logs", run.id()]).stdout;
    assert!(log.contains("broken off: This operation was aborted"), "{log}");
    assert_eq!(world.output(&["wait", run.id()]).code, 4);
    world.wait_until_empty();
}

#[test]
fn an_agent_that_does_not_answer_an_interrupt_is_ended_step_by_step() {
    let world = World::new();
    let run = detach(&world, "rpc", &["deaf"]);
    run.wait("its first record", |_| !run.events_of("agent_start").is_empty());
    let done = world.output(&["interrupt", run.id(), "--wait", "--timeout", "30s"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait_end();
    assert_eq!((&status["state"], &status["steps"][0]["status"]), (&"paused".into(), &"paused".into()));
    assert_eq!(signals(&run), [("SIGTERM".to_owned(), true), ("SIGKILL".to_owned(), true)]);
    let at = |kind: &str, index: usize| run.events_of(kind)[index]["ts"].as_i64().unwrap();
    let (asked, term, kill) = (at("subdeck.abort.sent", 0), at("subdeck.signal.sent", 0), at("subdeck.signal.sent", 1));
    assert!((5000..7000).contains(&(term - asked)), "{} ms from the request to SIGTERM", term - asked);
    assert!((3000..5000).contains(&(kill - term)), "{} ms from SIGTERM to SIGKILL", kill - term);
    world.wait_until_empty();
}

#[test]
fn a_message_that_cannot_arrive_fails_with_its_reason() {
    let world = World::new();
    let json = agent(&world, "json", &["silent"]);
    for (args, reason) in [
        (vec![json.as_str()], "pi was started in json mode"),
        (vec!["--", "sh", "-c", "echo up; sleep 60"], "it is a plain command"),
    ] {
        let run = world.detach(&args);
        run.wait("a child", |s| s["steps"][0]["subdeck"]["startTicks"].is_number());
        // The command knows it beforehand, whether the step is named or not.
        for target in [run.id().to_owned(), format!("{}:1", run.id())] {
            let done = world.output(&["steer", &target, "hello", "--wait", "--timeout", "10s"]);
            assert_eq!(done.code, 2, "{done:?}");
            assert!(done.stderr.contains(&format!("step 1 takes no messages: {reason}")), "{done:?}");
        }
        assert_eq!(run.status()["steering"]["requested"], 0);
        // Another program may ask all the same.
        run.control("steer-requests/1-cQ.json", r#"{"type":"steer","id":"q","ts":1,"message":"hello"}"#);
        let status = run.wait("the failure", |s| s["steering"]["failed"] == 1);
        assert_eq!((&status["steering"]["requested"], &status["steering"]["scheduled"]), (&1.into(), &0.into()));
        let target = &status["steering"]["recent"][0]["targets"][0];
        let reason = format!("the step takes no messages: {reason}");
        assert_eq!((&target["state"], &target["reason"]), (&"failed".into(), &reason.as_str().into()));
        let failed =
            wait_for("the record", || Some(run.events_of("subagent.steer.failed")).filter(|failed| !failed.is_empty()));
        assert_eq!((failed.len(), &failed[0]["reason"]), (1, &reason.as_str().into()), "{failed:?}");
        assert_eq!(run.events_of("subagent.steering.notice").len(), 1, "told once");
        assert_eq!(run.events_of("subdeck.capability").len(), usize::from(args.len() == 1));
        assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    }
    world.wait_until_empty();
}

#[test]
fn a_message_for_a_step_that_has_not_begun_waits_for_it() {
    let world = World::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let plan = world.file(
        "plan.toml",
        &format!(
            "[[step]]\nid = \"first\"\nrunner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"echo up; while [ ! -e go ]; do sleep 0.02; done\"] }}\n[[step]]\nid = \"second\"\ntask = \"Listen.\"\nrunner = {{ type = \"pi\", command = \"sh\", args = [{script:?}, \"listen\"] }}\n"
        ),
    );
    let run = world.detach(&[plan.to_str().unwrap()]);
    run.wait_output(0, "up");
    let done = world.output(&["steer", &format!("{}:second", run.id()), "think of bananas"]);
    assert_eq!(done.code, 0, "{done:?}");
    let status = run.wait("the schedule", |s| s["steering"]["scheduled"] == 1);
    assert_eq!(status["steering"]["recent"][0]["targets"][0]["state"], "scheduled");
    world.file("go", "");
    let status = run.wait_end();
    assert_eq!(status["state"], "complete", "{status}");
    assert_eq!((&status["steering"]["delivered"], &status["steering"]["failed"]), (&1.into(), &0.into()), "{status}");
    for kind in ["requested", "scheduled", "routed", "queued", "delivered"] {
        assert_eq!(run.events_of(&format!("subagent.steer.{kind}")).len(), 1, "{kind}");
    }
    let heard = std::fs::read_to_string(world.project().join("heard")).unwrap();
    assert!(heard.contains("think of bananas"), "{heard}");
    world.wait_until_empty();
}

/// Whoever looks at the files sees what a child that reads its inbox itself would write there.
#[cfg(target_os = "linux")]
#[test]
fn the_answers_of_an_agent_are_acknowledged_in_the_inbox_and_taken_out_of_it() {
    use rustix::fs::inotify;
    let world = World::new();
    let run = detach(&world, "rpc", &["listen"]);
    run.wait("the agent", |s| s["steps"][0]["status"] == "running");
    let folder = run.dir.join("control/steer-acks/0");
    std::fs::create_dir_all(&folder).unwrap();
    let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&fd, &folder, inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE).unwrap();
    let done = world.output(&["steer", run.id(), "think of bananas", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let request = done.stdout.trim().to_owned();
    assert_eq!(run.wait_end()["state"], "complete");
    let mut seen = Vec::new();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&fd, &mut buffer);
    while let Ok(event) = reader.next() {
        let name = event.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".json") {
            seen.push((event.events().contains(inotify::ReadFlags::DELETE), name));
        }
    }
    let stem = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, request);
    for end in ["-0-queued.json", "-1-delivered.json"] {
        let of = |(_, name): &&(bool, String)| name.starts_with(&format!("{stem}-")) && name.ends_with(end);
        let lives: Vec<bool> = seen.iter().filter(of).map(|(gone, _)| *gone).collect();
        assert_eq!(lives, [false, true], "{end} is put there and taken out: {seen:?}");
    }
    for kind in ["queued", "delivered"] {
        assert_eq!(run.events_of(&format!("subagent.steer.{kind}")).len(), 1, "{kind}");
    }
    world.wait_until_empty();
}

#[test]
fn a_message_without_words_or_with_too_many_is_refused() {
    let world = World::new();
    let run = detach(&world, "rpc", &["silent"]);
    for text in ["", "  \n\t "] {
        let done = world.output(&["steer", run.id(), text]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("empty"), "{done:?}");
    }
    // Longer than one argument may be, so it comes over standard input.
    for (bytes, exit) in [(131_072, 0), (131_073, 2), (10 << 20, 2)] {
        let mut child = world
            .subdeck(&["steer", run.id(), "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It need not read all of what it refuses.
        let _ = stdin.write_all("x".repeat(bytes).as_bytes());
        drop(stdin);
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, exit, "{bytes} bytes: {}", done.stderr);
        assert!(exit == 0 || done.stderr.contains("131072"), "{done:?}");
    }
    run.wait("the one that is allowed", |s| s["steering"]["requested"] == 1);
    assert_eq!(world.output(&["stop", run.id(), "--wait"]).code, 0);
    world.wait_until_empty();
}
