//! A run's documents in their order, whatever the disk does.

use std::io;
use std::sync::Mutex;

use super::*;
use crate::run::{
    Group, RunId, RunMeta, STOPPED, SteerMode, SteerRequest, SteerTarget, StepMeta, StepOutcome, StepPhase,
};
use crate::rundir::{RealDisk, RunRoot, decode_status};

const ENOSPC: i32 = 28;
const EACCES: i32 = 13;
/// No room on the disk, in the quota, for open files of the process and of the system (run-directory 6).
const NO_ROOM: [i32; 4] = [ENOSPC, 122, 24, 23];

/// What the disk does to an operation: the error it gives, if any.
type Mood = Box<dyn FnMut(&Op) -> Option<i32> + Send>;

/// The disk, with a mood; it remembers what it did.
struct Moody {
    mood: Arc<Mutex<Mood>>,
    done: Arc<Mutex<Vec<Op>>>,
}

impl Disk for Moody {
    fn perform(&mut self, op: &Op) -> io::Result<()> {
        if let Some(code) = (self.mood.lock().unwrap())(op) {
            return Err(io::Error::from_raw_os_error(code));
        }
        RealDisk.perform(op)?;
        self.done.lock().unwrap().push(op.clone());
        Ok(())
    }
}

struct World {
    temp: tempfile::TempDir,
    recorder: Recorder<Moody>,
    mood: Arc<Mutex<Mood>>,
    done: Arc<Mutex<Vec<Op>>>,
}

const ID: &str = "5d1c2b7a-0c1e-4f6b-9a55-1f0e6c0a1001";

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path());
        let dir = RunDir::create(&root, &RunId(ID.into())).unwrap();
        let log = EventLog::open(&dir.events(), u64::MAX).unwrap();
        let mood: Arc<Mutex<Mood>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let done = Arc::default();
        let disk = Moody { mood: Arc::clone(&mood), done: Arc::clone(&done) };
        let result = ResultContext::of_run(&dir, None);
        let recorder = Recorder::writing_to(Writer::new(disk), dir, log, result);
        Self { temp, recorder, mood, done }
    }

    /// A run whose two steps run.
    fn running() -> Self {
        let mut world = Self::new();
        let step = |key: &str| StepMeta { key: key.into(), agent: key.into(), ..StepMeta::default() };
        let meta = RunMeta {
            id: RunId(ID.into()),
            session_id: Some("s".into()),
            pid: Some(1),
            cwd: "/".into(),
            steps: vec![step("a"), step("b")],
            groups: vec![Group { start: 0, count: 2, logical: 0 }],
            logical_count: 1,
            ..RunMeta::default()
        };
        world.recorder.record(What::RunStarted(Box::new(meta)));
        for step in [0, 1] {
            world.recorder.record(What::StepStarted { step: StepId(step) });
        }
        world.recorder.flush_due();
        world
    }

    fn set_mood(&self, mood: impl FnMut(&Op) -> Option<i32> + Send + 'static) {
        *self.mood.lock().unwrap() = Box::new(mood);
    }

    fn end(&mut self) {
        for step in [0, 1] {
            let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
            self.recorder.record(What::StepEnded { step: StepId(step), outcome: Box::new(outcome) });
        }
        self.recorder.flush_due();
        self.recorder.end(RunPhase::Complete, None, BTreeMap::from([(StepId(0), "Found.".to_owned())]));
    }

    fn status(&self) -> RunState {
        decode_status(&std::fs::read(self.recorder.dir.status()).unwrap()).unwrap()
    }

    fn places(&self) -> Vec<String> {
        let name = |op: &Op| {
            let kind = match op {
                Op::Replace(..) | Op::Keep(..) => "",
                Op::Rename(..) => "to ",
                Op::Touch(..) => "mark ",
                Op::Remove(..) => "no ",
                Op::RemoveEmpty(..) => "no empty ",
            };
            format!("{kind}{}", op.path().strip_prefix(self.temp.path()).unwrap().display()).replace(ID, "ID")
        };
        self.done.lock().unwrap().iter().map(name).collect()
    }

    fn exists(&self, place: &str) -> bool {
        self.temp.path().join(place.replace("ID", ID)).exists()
    }

    fn has_result(&self) -> bool {
        self.exists("async-subagent-results/ID.json")
            || (self.exists("async-subagent-results/result-pending/s/ID.json")
                && self.exists("async-subagent-results/result-index/sessions/s/ID.json"))
    }

    fn records(&self, kind: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.recorder.dir.events()).unwrap();
        let all = text.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        all.filter(|r| r["type"] == kind).collect()
    }
}

#[test]
fn the_documents_of_a_run_come_in_their_order() {
    let mut world = World::running();
    assert_eq!(world.places()[..2], ["async-subagent-runs/ID/status.json", "mark async-subagent-runs/.active-runs/ID"]);
    world.done.lock().unwrap().clear();
    world.recorder.close_inbox("complete");
    world.recorder.end(RunPhase::Complete, None, BTreeMap::new());
    let ended = world.recorder.state().ended_at.unwrap().millis();
    let want = [
        "async-subagent-runs/ID/control/steer-inbox-closed.json".to_owned(),
        "async-subagent-results/result-pending/s/ID.json".to_owned(),
        "async-subagent-results/result-index/sessions/s/ID.json".to_owned(),
        "async-subagent-results/result-index/runs/ID.json".to_owned(),
        "async-subagent-runs/ID/status.json".to_owned(),
        "no async-subagent-runs/.active-runs/ID".to_owned(),
        format!("async-subagent-runs/.terminal-runs/s/{ended:016}-ID.json"),
        "to async-subagent-results/ID.json".to_owned(),
        "no empty async-subagent-results/result-pending/s".to_owned(),
        "async-subagent-runs/ID/subagent-log-ID.md".to_owned(),
    ];
    assert_eq!(world.places(), want);
    // A power cut tears neither the result nor the last status.
    let kept = |op: &&Op| matches!(op, Op::Keep(..));
    let kept = world.done.lock().unwrap().iter().filter(kept).map(|op| op.path().to_owned()).collect::<Vec<_>>();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(
        kept[0].ends_with("result-pending/s/ID".replace("ID", ID) + ".json") && kept[1] == world.recorder.dir.status()
    );
    assert_eq!(world.records("subagent.run.completed").len(), 1);
    assert!(!world.recorder.is_pending());
}

/// A reader finds every transition in the status once the turn is over, and no turn costs more than one write.
#[test]
fn the_transitions_of_a_turn_are_one_write_and_changes_are_gathered() {
    let mut world = World::running();
    let writes = |world: &World| {
        let all = std::mem::take(&mut *world.done.lock().unwrap());
        all.iter().filter(|op| op.path() == world.recorder.dir.status()).count()
    };
    let outcome = || Box::new(StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() });
    writes(&world);
    for step in [0, 1] {
        world.recorder.record(What::StepEnded { step: StepId(step), outcome: outcome() });
    }
    assert_eq!((writes(&world), world.records("subagent.step.completed").len()), (0, 2), "records come first");
    world.recorder.flush_due();
    assert_eq!(writes(&world), 1);
    assert_eq!(world.status(), decode_status(&world.recorder.status_bytes()).unwrap());
    world.recorder.flush_due();
    assert_eq!(writes(&world), 0, "nothing has changed");
    // Gathered, unless this machine took longer than that between two lines.
    let before = world.recorder.last_write.unwrap();
    world.recorder.absorb(now(), What::OutputSeen { step: StepId(0), bytes: 1 });
    world.recorder.flush_due();
    assert_eq!(writes(&world), usize::from(world.recorder.last_write.unwrap() != before));
    world.recorder.last_write = Some(Instant::now() - COALESCE);
    world.recorder.absorb(now(), What::OutputSeen { step: StepId(0), bytes: 1 });
    world.recorder.flush_due();
    assert_eq!(writes(&world), 1, "the first change after a quiet time");
}

#[test]
fn the_first_status_stands_before_the_first_record() {
    let mut world = World::new();
    world.set_mood(|_| Some(ENOSPC));
    let meta = RunMeta { id: RunId(ID.into()), session_id: Some("s".into()), ..RunMeta::default() };
    world.recorder.record(What::RunStarted(Box::new(meta)));
    assert!(!world.recorder.dir.status().exists() && !world.exists("async-subagent-runs/.active-runs/ID"));
    assert!(world.recorder.is_pending());
    world.set_mood(|_| None);
    world.recorder.flush_all();
    assert!(world.recorder.dir.status().exists() && world.exists("async-subagent-runs/.active-runs/ID"));
    assert!(!world.recorder.is_pending());
}

/// There is no room, of any kind, from some operation of the end on, for a while.
#[test]
fn a_full_disk_delays_the_end_and_never_tears_it() {
    // One write of the steps' ends, and the eight operations of the run's.
    for (first, code) in (0..9).flat_map(|first| NO_ROOM.map(|code| (first, code))) {
        let mut world = World::running();
        let mut asked = 0;
        world.set_mood(move |_| {
            asked += 1;
            (asked > first).then_some(code)
        });
        world.end();
        for _ in 0..3 {
            assert!(world.recorder.is_pending(), "{first}");
            let status = world.status();
            assert!(!status.phase.is_terminal() || world.has_result(), "{first}: an end without a result");
            assert!(status.phase.is_terminal() || world.records("subagent.run.completed").is_empty(), "{first}");
            assert!(status.phase.is_terminal() || world.exists("async-subagent-runs/.active-runs/ID"), "{first}");
            world.recorder.flush_all();
        }
        world.set_mood(|_| None);
        world.recorder.flush_all();
        assert!(!world.recorder.is_pending(), "{first}");
        assert_eq!(world.status(), decode_status(&world.recorder.status_bytes()).unwrap(), "{first}");
        assert_eq!(world.status().phase, RunPhase::Complete, "{first}");
        assert!(world.exists("async-subagent-results/ID.json"), "{first}");
        assert!(!world.exists("async-subagent-results/result-pending/s/ID.json"), "{first}");
        assert!(!world.exists("async-subagent-runs/.active-runs/ID"), "{first}");
        assert!(world.exists("async-subagent-runs/ID/subagent-log-ID.md"), "{first}");
        assert_eq!(world.records("subagent.run.completed").len(), 1, "{first}");
    }
}

/// One file cannot be written at all; everything else is, and the run says so where it matters.
#[test]
fn a_file_that_cannot_be_written_holds_nothing_else_back() {
    let table = [
        ("result-pending/", RunPhase::Failed),
        ("result-index/sessions/", RunPhase::Failed),
        ("result-index/runs/", RunPhase::Complete),
        (".active-runs/", RunPhase::Complete),
        (".terminal-runs/", RunPhase::Complete),
        ("async-subagent-results/5d1c", RunPhase::Complete),
        ("subagent-log-", RunPhase::Complete),
    ];
    for full_first in [false, true] {
        for (place, phase) in table.clone() {
            let mut world = World::running();
            let refuse = move |op: &Op| op.path().to_string_lossy().contains(place);
            world.set_mood(move |op| if full_first { Some(ENOSPC) } else { refuse(op).then_some(EACCES) });
            world.end();
            if full_first {
                assert!(world.recorder.is_pending(), "{place}");
                world.set_mood(move |op| refuse(op).then_some(EACCES));
                world.recorder.flush_all();
            }
            assert!(!world.recorder.is_pending(), "{place} {full_first}");
            let status = world.status();
            assert_eq!(status.phase, phase, "{place} {full_first}");
            assert!(status.ended_at.is_some());
            assert_eq!(status.error.is_some_and(|e| e.contains(place)), phase == RunPhase::Failed, "{place}");
            assert_eq!(world.has_result(), phase == RunPhase::Complete, "{place}");
            let told = world.records("subagent.run.completed");
            assert_eq!((told.len(), told[0]["status"].as_str()), (1, Some(phase.as_str())), "{place}");
            assert_eq!(world.exists("async-subagent-runs/ID/subagent-log-ID.md"), place != "subagent-log-", "{place}");
        }
    }
}

#[test]
fn while_there_is_no_room_only_the_newest_state_is_kept() {
    for code in NO_ROOM {
        let mut world = World::running();
        world.recorder.flush_all();
        world.set_mood(move |_| Some(code));
        let before = std::fs::read(world.recorder.dir.status()).unwrap();
        for pid in [11, 12, 13] {
            world.recorder.record(What::ChildSpawned { step: StepId(0), pid, start_ticks: None });
            world.recorder.flush_all();
        }
        let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
        world.recorder.record(What::StepEnded { step: StepId(1), outcome: Box::new(outcome) });
        world.recorder.flush_all();
        assert_eq!(std::fs::read(world.recorder.dir.status()).unwrap(), before, "{code}");
        assert!(world.recorder.is_pending() && world.recorder.next_write().is_some(), "{code}");
        world.set_mood(|_| None);
        world.done.lock().unwrap().clear();
        world.recorder.flush_all();
        let status =
            |op: &Op| matches!(op, Op::Replace(path, _) | Op::Keep(path, _) if *path == world.recorder.dir.status());
        assert_eq!(world.done.lock().unwrap().iter().filter(|op| status(op)).count(), 1, "{code}");
        assert_eq!(world.status(), decode_status(&world.recorder.status_bytes()).unwrap(), "{code}");
        assert_eq!(world.status().steps[1].phase, StepPhase::Complete, "{code}");
    }
}

#[test]
fn a_pause_under_way_has_a_provisional_result_and_a_stop_takes_it_back() {
    let mut world = World::running();
    world.recorder.record(What::RunInterrupted { source: None });
    world.recorder.flush_due();
    assert_eq!(world.status().phase, RunPhase::Paused);
    assert!(world.has_result() && !world.exists("async-subagent-results/ID.json"));
    world.recorder.record(What::RunStopped { message: STOPPED.into(), source: None });
    world.recorder.flush_due();
    assert_eq!(world.status().phase, RunPhase::Running);
    assert!(!world.has_result());
    world.recorder.end(RunPhase::Stopped, Some(STOPPED.into()), BTreeMap::new());
    assert!(world.exists("async-subagent-results/ID.json"));
}

/// The order of a write (runner-behaviour 14.31): the result that can be recovered, the status, and only then those above
/// are told. That the graph is that of the same write is `check_50` of the runs.
#[test]
fn a_status_comes_behind_its_result_and_before_those_above_are_told() {
    let mut world = World::running();
    let base = world.temp.path().join("nested-subagent-events/top-token");
    let sink = base.join("events");
    std::fs::create_dir_all(&sink).unwrap();
    std::fs::write(base.join("route.json"), r#"{"rootRunId":"top","capabilityToken":"token","createdAt":1}"#).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut plan = crate::plan::Plan::default();
    plan.extras.route = Some(crate::plan::Route {
        root_run_id: "top".into(),
        event_sink: text(&sink),
        control_inbox: text(&base.join("controls")),
        capability_token: "token".into(),
    });
    plan.extras.nested = Some(crate::plan::NestedSelf { parent_run_id: "parent".into(), ..Default::default() });
    world.recorder.nested = super::super::nested::Nested::of(&plan, &world.recorder.dir);
    assert!(world.recorder.nested.is_some());
    let told = |sink: &Path| std::fs::read_dir(sink).unwrap().count();
    let status = world.recorder.dir.status();
    // The status has no room: nobody above learns of what is not in it.
    world.done.lock().unwrap().clear();
    world.set_mood(move |op| (op.path() == status).then_some(ENOSPC));
    world.recorder.record(What::RunInterrupted { source: None });
    world.recorder.flush_due();
    let result = [
        "async-subagent-results/result-pending/s/ID.json",
        "async-subagent-results/result-index/sessions/s/ID.json",
        "async-subagent-results/result-index/runs/ID.json",
    ];
    assert_eq!((world.places(), told(&sink)), (result.map(str::to_owned).to_vec(), 0));
    // With the next change it has.
    world.set_mood(|_| None);
    world.done.lock().unwrap().clear();
    world.recorder.record(What::ChildExited { step: StepId(0), exit: Default::default() });
    world.recorder.write_status();
    let places = [&result[..], &["async-subagent-runs/ID/status.json"]].concat();
    assert_eq!((world.places(), told(&sink)), (places.iter().map(|p| (*p).to_owned()).collect(), 1));
}

#[test]
fn a_pause_on_a_full_disk_is_not_seen_without_its_result() {
    let mut world = World::running();
    world.set_mood(|op| op.path().to_string_lossy().contains("result-index").then_some(ENOSPC));
    world.recorder.record(What::RunInterrupted { source: None });
    world.recorder.flush_due();
    assert_eq!(world.status().phase, RunPhase::Running);
    assert!(world.recorder.is_pending());
    world.set_mood(|_| None);
    world.recorder.flush_all();
    assert_eq!(world.status().phase, RunPhase::Paused);
    assert!(world.has_result());
    world.recorder.record(What::RunStopped { message: STOPPED.into(), source: None });
    world.recorder.flush_due();
    assert!(!world.has_result(), "it is known to lie there although it had waited");
}

#[test]
fn a_run_without_a_session_has_no_result_and_says_so() {
    let mut world = World::new();
    let meta = RunMeta { id: RunId(ID.into()), ..RunMeta::default() };
    world.recorder.record(What::RunStarted(Box::new(meta)));
    world.recorder.end(RunPhase::Complete, None, BTreeMap::new());
    assert_eq!(world.status().phase, RunPhase::Failed);
    let error = world.status().error.unwrap();
    assert!(error.contains("session") && error.contains(&format!("async-subagent-results/{ID}.json")), "{error}");
    assert_eq!(world.records("subagent.run.completed")[0]["status"], "failed");
    assert!(!world.recorder.is_pending());
}

#[test]
fn a_request_that_did_not_arrive_everywhere_is_told_once_when_it_is_settled() {
    use TargetState::{Delivered, Failed, Late, Routed};
    let table: [(&[TargetState], Option<&str>); 5] = [
        (&[Delivered, Delivered], None),
        (&[Failed, Delivered], Some("partial")),
        (&[Failed, Failed], Some("failed")),
        (&[Late, Failed], Some("failed")),
        (&[Failed, Routed], None),
    ];
    for (moves, want) in table {
        let mut world = World::running();
        let target = |step| SteerTarget {
            step: StepId(step),
            state: TargetState::Scheduled,
            routed_at: None,
            delivered_at: None,
            failed_at: None,
            reason: None,
        };
        let request = SteerRequest {
            id: "r1".into(),
            requested_at: now(),
            source: None,
            mode: SteerMode::Steer,
            message: String::new(),
            preview: "Look again.".into(),
            targets: vec![target(0), target(7)],
        };
        world.recorder.record(What::SteerRequested(Box::new(request)));
        for (step, to) in [0, 7].into_iter().zip(moves) {
            let detail = Some("it said no".to_owned());
            world.recorder.record(What::SteerMoved { id: "r1".into(), step: StepId(step), to: *to, detail });
        }
        let again = What::SteerMoved { id: "r1".into(), step: StepId(7), to: Failed, detail: None };
        if want.is_some() {
            world.recorder.record(again);
        }
        let notices = world.records("subagent.steering.notice");
        let told: Vec<_> = notices.iter().map(|n| n["state"].as_str().unwrap()).collect();
        assert_eq!(told, want.into_iter().collect::<Vec<_>>(), "{moves:?}");
        for notice in notices {
            assert_eq!(notice["requestId"], "r1");
            assert!(notice["message"].as_str().unwrap().contains("it said no"), "{notice}");
        }
    }
}

/// What the keeper makes of a run whose runner was killed after it had done so many of the last operations.
fn cut_off_after(many: usize) -> (World, super::super::keeper::Aftermath) {
    use super::super::settle::Patience;
    use std::os::unix::process::ExitStatusExt;
    let mut world = World::running();
    for step in [0, 1] {
        let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
        world.recorder.record(What::StepEnded { step: StepId(step), outcome: Box::new(outcome) });
    }
    world.recorder.flush_due();
    world.done.lock().unwrap().clear();
    // What lacks room waits, and so does everything behind it: no more is on the disk when its process is gone.
    let mut left = many;
    world.set_mood(move |_| {
        let room = left > 0;
        left = left.saturating_sub(1);
        (!room).then_some(ENOSPC)
    });
    world.recorder.end(RunPhase::Complete, None, BTreeMap::from([(StepId(0), "Found.".to_owned())]));
    assert_eq!(world.done.lock().unwrap().len(), many);
    let home = Arc::new(Home::open(&world.recorder.dir).unwrap());
    let killed = std::process::ExitStatus::from_raw(9);
    let aftermath =
        super::super::settle::settle(&home, killed, &crate::engine::tree::Swept::default(), Patience::Bounded);
    (world, aftermath)
}

#[test]
fn an_end_that_the_runner_had_begun_to_write_is_finished_and_not_overwritten() {
    use super::super::keeper::Aftermath;
    // The result, its two entries, the status, two indexes, and what makes the result public.
    for many in 0..=7 {
        let (world, aftermath) = cut_off_after(many);
        let ended = world.records("subagent.run.completed");
        let status = world.status();
        assert_eq!(ended.len(), 1, "{many}");
        assert!(world.exists("async-subagent-results/ID.json"), "{many}");
        assert!(!world.exists("async-subagent-results/result-pending/s"), "{many}");
        assert!(!world.exists("async-subagent-runs/.active-runs/ID"), "{many}");
        assert!(world.exists("async-subagent-runs/ID/subagent-log-ID.md"), "{many}");
        let terminal = std::fs::read_dir(world.temp.path().join("async-subagent-runs/.terminal-runs/s")).unwrap();
        assert_eq!(terminal.count(), 1, "{many}");
        let want = if many == 0 { RunPhase::Failed } else { RunPhase::Complete };
        assert_eq!((&status.phase, ended[0]["status"].as_str().unwrap()), (&want, want.as_str()), "{many}");
        assert_eq!(status.steps[0].phase, StepPhase::Complete, "{many}");
        assert_eq!(aftermath, if many == 0 { Aftermath::Lost } else { Aftermath::Ended }, "{many}");
        let result = std::fs::read(world.temp.path().join(format!("async-subagent-results/{ID}.json"))).unwrap();
        let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
        assert_eq!(result["results"][0]["output"], if many == 0 { "" } else { "Found." }, "{many}");
        let log = std::fs::read_to_string(world.recorder.dir.log_markdown()).unwrap();
        assert_eq!(log.contains("Found."), many > 0, "{many}: {log}");
    }
}

#[test]
fn a_keeper_that_nobody_waits_for_stays_until_there_is_room() {
    use super::super::settle::{Patience, until_written};
    // How it waits, after how many seconds there is room, and whether the directory stays; what comes of it and when.
    for (patience, room, stays, written, waited) in [
        (Patience::UntilWritten, 300, true, true, 300),
        (Patience::Bounded, 300, true, false, 20),
        (Patience::Bounded, 7, true, true, 7),
        (Patience::UntilWritten, 300, false, false, 1),
    ] {
        let mut world = World::running();
        world.set_mood(|_| Some(ENOSPC));
        world.end();
        let mut seconds = 0;
        let mood = Arc::clone(&world.mood);
        let done = until_written(&mut world.recorder, patience, || {
            seconds += 1;
            if seconds == room {
                *mood.lock().unwrap() = Box::new(|_| None);
            }
            stays
        });
        assert_eq!((done.is_ok(), seconds), (written, waited), "{patience:?} {room}: {done:?}");
        let ended = world.records("subagent.run.completed").len();
        assert_eq!((ended, world.status().ended_at.is_some()), (usize::from(written), written), "{patience:?} {room}");
    }
}
