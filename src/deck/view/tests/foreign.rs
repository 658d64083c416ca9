//! Recorded runs of other programs as the deck shows them.

use std::fs;
use std::path::Path;

use super::{Stage, pictures};
use crate::deck::feed::Hands;
use crate::deck::history::History;
use crate::run::{StepId, Stream};
use crate::rundir::Follower;

/// A picture of a recorded run, with a runner that lives if one is named.
fn picture(name: &str, copy: &str, alive: bool, keys: &str) -> String {
    stage(name, copy, alive, keys).text()
}

/// The same in every look.
fn stage(name: &str, copy: &str, alive: bool, keys: &str) -> Stage {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/foreign").join(name);
    let temp = tempfile::tempdir().unwrap();
    let mut status: serde_json::Value =
        serde_json::from_slice(&fs::read(from.join(format!("{copy}.json"))).unwrap()).unwrap();
    let dir = temp.path().join(status["runId"].as_str().unwrap());
    status["pid"] = if alive { std::process::id().into() } else { 0x3fff_fff0.into() };
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("status.json"), status.to_string()).unwrap();
    let mut events = fs::read(from.join("events.jsonl")).unwrap();
    if let (Ok(bytes), "running") = (fs::read_to_string(from.join("running.bytes")), copy) {
        events.truncate(bytes.trim().parse().unwrap());
    }
    fs::write(dir.join("events.jsonl"), events).unwrap();
    let mut follower = Follower::open(&dir).unwrap();
    let changes = follower.poll();
    let mut stage = Stage::new(120, 30);
    stage.feed.state = follower.state().clone();
    stage.feed.logs.clear();
    stage.facts.task.clear();
    stage.history = History::default();
    stage.history.add(follower.state(), &changes.news, &changes.places);
    stage.feed.hands = match follower.lost() {
        Some(evidence) => Hands::Lost(crate::text::SafeText::line(&evidence)),
        None => Hands::Live,
    };
    if let Hands::Lost(evidence) = &stage.feed.hands {
        stage.read_only = Some(evidence.clone());
    }
    // A second after the last sign.
    stage.now = follower.state().last_update.unwrap() + std::time::Duration::from_secs(1);
    for step in 0..follower.state().steps.len() {
        let log = fs::read_to_string(from.join(format!("output-{step}.log"))).unwrap_or_default();
        // What stands before the first line of the child is the prompt.
        let text: Vec<&str> = log.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
        stage.feed.print(u32::try_from(step).unwrap(), Stream::Out, &text.join("\n"));
    }
    let running = follower.state().steps.iter().find(|s| s.phase == crate::run::StepPhase::Running);
    stage.ui = super::super::UiState::new((120, 30));
    let failed = follower.state().steps.iter().find(|s| s.phase == crate::run::StepPhase::Failed);
    stage.ui.selected = running.or(failed).map_or(StepId(0), |step| step.id);
    stage.keys(keys);
    stage
}

#[test]
fn six_recorded_runs() {
    for (picture_name, name, copy, alive, keys) in [
        ("stopped", "det-stop/a227e787", "finished", false, ""),
        ("steered", "det-steer/8afccf72", "finished", false, "2"),
        ("chain-failed", "direct-chain-fail/b9b32380", "finished", false, ""),
        ("parallel-running", "direct-parallel/3dd8d866", "running", true, ""),
        ("inside-the-runner", "sub067-pi087-det-steer/8f2e2fba", "running", true, ""),
        ("attention", "running-parallel-attention/8e44a1f0", "running", true, ""),
        ("workflow", "wf-parallel/7077baf0", "finished", false, ""),
        ("dead-runner", "wf-stop/b544ee78", "finished", false, ""),
    ] {
        let whole = pictures::planes(picture_name, |theme| {
            let mut stage = stage(name, copy, alive, keys);
            stage.theme = theme;
            stage.buffer()
        });
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(format!("foreign-{picture_name}"), whole);
        });
    }
}

#[test]
fn no_key_is_offered_that_a_foreign_runner_does_not_take() {
    let footer = |name: &str, copy: &str, alive: bool| {
        let text = picture(name, copy, alive, "");
        text.trim_end().lines().last().unwrap().to_owned()
    };
    let parallel = footer("direct-parallel/3dd8d866", "running", true);
    assert!(parallel.contains("s steer") && parallel.contains("i i interrupt"), "{parallel}");
    let workflow = footer("wf-parallel/7077baf0", "running", true);
    assert!(
        workflow.contains("s steer") && !workflow.contains("interrupt") && !workflow.contains("stop"),
        "{workflow}"
    );
    // Nobody is there to take anything, and nobody here could go on with it.
    for (name, copy) in [("wf-stop/b544ee78", "finished"), ("direct-parallel/3dd8d866", "finished")] {
        let footer = footer(name, copy, false);
        assert!(["steer", "interrupt", "stop", "take back"].iter().all(|word| !footer.contains(word)), "{footer}");
    }
    let held = footer("running-parallel-attention/8e44a1f0", "running", true);
    assert!(!held.contains("take back"), "{held}");
}
