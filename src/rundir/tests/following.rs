//! Following runs: ours while they are written, and foreign ones.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::run::*;
use crate::rundir::follow::Follower;
use crate::rundir::health::Health;
use crate::rundir::records::{self, RecordContext};
use crate::rundir::{
    EVENTS_MAX_BYTES, EventLog, RunDir, RunRoot, RunnerIdentity, RunnerLock, StatusContext, replace, status,
};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_764_000_000_000 + ms)
}

/// A runner that writes what a real one does.
struct Runner {
    dir: RunDir,
    log: EventLog,
    state: RunState,
    lock: Option<RunnerLock>,
}

impl Runner {
    fn start(root: &RunRoot) -> Self {
        let id = RunId("run".into());
        let dir = RunDir::create(root, &id).unwrap();
        let lock = Some(RunnerLock::acquire(&dir).unwrap());
        RunnerIdentity::of_this_process(None).write(&dir).unwrap();
        let log = EventLog::open(&dir.events(), EVENTS_MAX_BYTES).unwrap();
        let mut runner = Self { dir, log, state: RunState::default(), lock };
        let step = |key: &str, runner| StepMeta { key: key.into(), agent: key.into(), runner, ..StepMeta::default() };
        let command = RunnerKind::ExternalCli { command: "make".into(), args: vec![] };
        let meta = RunMeta {
            id,
            mode: RunMode::Parallel,
            pid: Some(std::process::id()),
            steps: vec![step("scout", RunnerKind::Pi), step("build", command)],
            groups: vec![Group { start: 0, count: 2, logical: 0 }],
            logical_count: 1,
            ..RunMeta::default()
        };
        runner.record(0, What::RunStarted(Box::new(meta)));
        runner
    }

    fn record(&mut self, ms: i64, what: What) {
        let event = Event { at: at(ms), what };
        reduce(&mut self.state, &event);
        if let Some(line) = records::encode(&event, &RecordContext { state: &self.state }) {
            self.log.append(&line).unwrap();
        }
    }

    fn write_status(&self) {
        let context = StatusContext { dir: &self.dir, instance: None };
        replace(&self.dir.status(), &status::encode(&self.state, &context)).unwrap();
    }
}

#[test]
fn a_run_of_ours_is_followed_from_its_start_to_its_end() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let mut runner = Runner::start(&root);
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    let first = follower.poll();
    assert!(first.state && first.news.len() == 1);
    assert_eq!((follower.health(), follower.state()), (&Health::Live, &runner.state));
    let quiet = follower.poll();
    assert!(!quiet.state && !quiet.health && quiet.news.is_empty() && quiet.output.is_empty());
    runner.record(5, What::StepStarted { step: StepId(0) });
    runner.record(6, What::StepStarted { step: StepId(1) });
    runner.record(7, What::ChildSpawned { step: StepId(0), pid: 7, start_ticks: Some(1) });
    runner.write_status();
    fs::write(runner.dir.output(StepId(0)), "hello\n").unwrap();
    fs::write(runner.dir.external_err(StepId(1)), "warn\n").unwrap();
    let changes = follower.poll();
    assert_eq!((changes.output, changes.news.len()), (vec![StepId(0), StepId(1)], 3));
    assert_eq!(follower.state(), &runner.state);
    // Events that no status has yet.
    runner.record(9, What::OutputHeld { step: StepId(0), pids: vec![3] });
    assert!(follower.poll().state);
    assert_eq!(follower.state().steps[0].held_by, [3]);
    let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
    runner.record(10, What::StepEnded { step: StepId(0), outcome: Box::new(outcome.clone()) });
    runner.record(10, What::StepEnded { step: StepId(1), outcome: Box::new(outcome) });
    runner.record(11, What::RunEnded { state: RunPhase::Complete, error: None });
    runner.write_status();
    runner.lock = None;
    follower.poll();
    assert!(follower.is_over() && follower.lost().is_none());
    assert_eq!(follower.state(), &runner.state);
}

#[test]
fn events_alone_give_the_state_that_the_runner_has() {
    let temp = tempfile::tempdir().unwrap();
    let mut runner = Runner::start(&RunRoot::at(temp.path()));
    runner.record(5, What::StepStarted { step: StepId(0) });
    runner.record(6, What::RunStopped { message: "Subagent stopped by user.".into(), source: None });
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    follower.poll();
    assert_eq!(follower.state(), &runner.state);
}

#[test]
fn a_half_written_status_leaves_the_last_good_picture() {
    let temp = tempfile::tempdir().unwrap();
    let mut runner = Runner::start(&RunRoot::at(temp.path()));
    runner.write_status();
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    follower.poll();
    assert!(follower.notices().is_empty());
    fs::write(runner.dir.status(), "{\"runId\": \"run\", \"st").unwrap();
    follower.poll();
    assert_eq!(follower.state(), &runner.state);
    assert!(follower.unreadable().is_some() && follower.notices().is_empty(), "it may be in the middle of a write");
    let since = std::time::Instant::now();
    while follower.notices().is_empty() {
        assert!(since.elapsed() < crate::rundir::follow::HALF_WRITTEN * 10);
        follower.poll();
    }
    assert!(since.elapsed() >= crate::rundir::follow::HALF_WRITTEN / 2);
    assert_eq!(follower.notices().len(), 1);
    runner.record(3, What::StepStarted { step: StepId(0) });
    runner.write_status();
    follower.poll();
    assert_eq!((follower.state(), follower.notices().len()), (&runner.state, 0));
}

#[test]
fn a_runner_that_died_is_seen_as_lost_and_nothing_is_written() {
    let temp = tempfile::tempdir().unwrap();
    let mut runner = Runner::start(&RunRoot::at(temp.path()));
    runner.write_status();
    // A process id that no process has: the highest one that the kernel can give is rarely used.
    RunnerIdentity { pid: 4_194_303, ..RunnerIdentity::of_this_process(None) }.write(&runner.dir).unwrap();
    runner.lock = None;
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    follower.poll();
    assert!(matches!(follower.health(), Health::Lost(_)), "{:?}", follower.health());
    assert!(follower.is_over() && follower.lost().is_some() && follower.state().lost.is_some());
    assert!(crate::rundir::read_status(&runner.dir).unwrap().lost.is_none());
}

#[test]
fn a_directory_without_a_status_is_starting() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&RunRoot::at(temp.path()), &RunId("new".into())).unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.poll();
    assert_eq!((follower.health(), follower.state().id.as_str()), (&Health::Starting, "new"));
    assert!(!follower.is_over());
}

#[test]
fn a_directory_that_is_removed_leaves_its_picture() {
    let temp = tempfile::tempdir().unwrap();
    let runner = Runner::start(&RunRoot::at(temp.path().join("root")));
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    follower.poll();
    fs::remove_dir_all(runner.dir.path()).unwrap();
    let changes = follower.poll();
    assert!(changes.health && !changes.state);
    let gone = Health::Gone("was removed, or moved to another folder".into());
    assert_eq!((follower.health(), follower.state()), (&gone, &runner.state));
    assert!(!runner.dir.path().exists());
    assert!(Follower::open(runner.dir.path()).is_err());
}

/// A status of the reference's runner, with its odd corners.
const FOREIGN_STATUS: &str = r#"{
  "runId": "f", "mode": "chain", "state": "STATE", "startedAt": 1764000000000, "lastUpdate": 1764000000500.25,
  "pid": PID, "cwd": "/p", "currentStep": 1, "chainStepCount": 2, "parallelGroups": [], "futureField": {"a": [1]},
  "steps": [
    {"agent": "scout", "status": "completed", "exitCode": 0, "startedAt": 1764000000001, "endedAt": 1764000000100,
     "currentTool": "bash", "recentTools": [{"tool": "ls", "args": "src", "endMs": 1764000000090}], "toolCount": 1},
    {"agent": "writer", "status": "running", "startedAt": 1764000000101, "currentTool": "edit",
     "currentToolStartedAt": 1764000000400, "lastActivityAt": 1764000000400.3726, "activityState": "needs_attention"},
    {"agent": "last", "status": "dreaming"}
  ]
}"#;

const FOREIGN_EVENTS: &str = r#"{"type":"subagent.run.started","lifecycleArtifactVersion":3,"ts":1764000000000,"runId":"f","mode":"chain","cwd":"/p","pid":1}
{"type":"subagent.step.started","ts":1764000000001,"runId":"f","stepIndex":0,"agent":"scout"}
{"type":"subagent.step.completed","ts":1764000000100,"runId":"f","stepIndex":0,"agent":"scout","exitCode":0,"durationMs":99}
{"type":"subagent.step.started","ts":1764000000101,"runId":"f","stepIndex":1,"agent":"writer"}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Half done."}]},"subagentSource":"child","subagentRunId":"f","subagentStepIndex":1,"subagentAgent":"writer","observedAt":1764000000390}
"#;

fn foreign(root: &RunRoot, state: &str, pid: u32) -> RunDir {
    let dir = root.run(&RunId("f".into())).unwrap();
    fs::create_dir_all(dir.path()).unwrap();
    fs::write(dir.events(), FOREIGN_EVENTS).unwrap();
    fs::write(dir.status(), FOREIGN_STATUS.replace("STATE", state).replace("PID", &pid.to_string())).unwrap();
    dir
}

#[test]
fn a_foreign_run_is_shown_by_its_status_and_enriched_by_its_events() {
    let temp = tempfile::tempdir().unwrap();
    // Its process may be another after so long a time, so whether somebody runs it is not known.
    let dir = foreign(&RunRoot::at(temp.path()), "running", std::process::id());
    let mut follower = Follower::open(dir.path()).unwrap();
    let changes = follower.poll();
    assert_eq!(changes.news.len(), 5);
    assert!(matches!(follower.health(), Health::Unknown(_)));
    let state = follower.state();
    assert_eq!(state.steps.iter().map(|s| s.phase.as_str()).collect::<Vec<_>>(), ["complete", "running", "dreaming"]);
    // What a finished step's leftover fields say is not believed.
    assert!(state.steps[0].current_call().is_none());
    assert_eq!(state.steps[1].current_call().unwrap().tool, "edit");
    assert_eq!(state.steps[1].last_message.as_deref(), Some("Half done."));
    assert_eq!(state.steps[1].face(), StepFace::Attention);
    assert_eq!(state.anomalies, 0);
}

#[test]
fn what_ran_when_the_runner_died_is_lost_and_the_files_stay_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let dir = foreign(&root, "running", 4_194_303);
    let before = fs::read(dir.status()).unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.poll();
    let state = follower.state();
    assert_eq!(state.steps.iter().map(|s| s.phase.as_str()).collect::<Vec<_>>(), ["complete", "lost", "dreaming"]);
    assert_eq!((state.steps_ended(), state.steps[1].face()), (1, StepFace::Lost));
    assert!(state.steps[1].current_call().is_none() && state.steps[1].elapsed(Timestamp::from_millis(9)).is_none());
    assert!(state.lost.as_ref().is_some_and(|why| why.contains("4194303")));
    let listed = crate::rundir::list_runs(&root).remove(0);
    assert_eq!((listed.state.unwrap(), listed.lost), (state.clone(), follower.lost()));
    assert_eq!(fs::read(dir.status()).unwrap(), before);
}

/// What the reference writes in such a case is shown and not written (run-directory 7).
/// B63 (a public report about a program of this kind): a result is there while the status still says running.
#[test]
fn a_run_without_a_runner_has_ended_as_its_result_says() {
    use RunPhase::{Complete, Failed, Paused, Rejected, Stopped};
    let entry = |text: &str| format!(r#"{{"agent": "scout", "success": true}}, {{"agent": "writer", {text}}}"#);
    let table = [
        (r#""success": true, "state": "complete", "exitCode": 0"#, r#""success": true"#, Complete, "complete"),
        (r#""success": false, "state": "stopped", "exitCode": 1"#, r#""stopped": true"#, Stopped, "stopped"),
        (r#""success": false, "state": "rejected", "exitCode": 1"#, r#""output": """#, Rejected, "rejected"),
        (r#""success": false, "state": "paused", "exitCode": 0"#, r#""interrupted": true"#, Paused, "paused"),
        (r#""success": false, "exitCode": 0"#, r#""output": """#, Paused, "paused"),
        (r#""success": false, "state": "failed", "exitCode": 1"#, r#""success": false"#, Failed, "failed"),
        (
            r#""success": false, "state": "failed", "exitCode": 1"#,
            r#""success": false, "execution": {"status": "detached", "success": false, "exitCode": 0, "detached": true}"#,
            Failed,
            "detached",
        ),
    ];
    for (head, second, phase, word) in table {
        for place in ["f.json", "result-pending/s/f.json"] {
            let temp = tempfile::tempdir().unwrap();
            let root = RunRoot::at(temp.path());
            let dir = foreign(&root, "running\", \"sessionId\": \"s", 4_194_303);
            let path = root.results().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let result = |id: &str| {
                format!(r#"{{"id": "{id}", {head}, "timestamp": 1764000000700, "results": [{}]}}"#, entry(second))
            };
            fs::write(&path, result("another")).unwrap();
            let mut follower = Follower::open(dir.path()).unwrap();
            follower.poll();
            assert!(follower.lost().is_some(), "a result of another run says nothing");
            fs::write(&path, result("f")).unwrap();
            let before = fs::read(dir.status()).unwrap();
            let mut follower = Follower::open(dir.path()).unwrap();
            follower.poll();
            let state = follower.state();
            assert!(follower.is_over() && follower.lost().is_none() && follower.is_abandoned(), "{head}");
            assert_eq!(
                (&state.phase, state.ended_at.map(Timestamp::millis)),
                (&phase, Some(1_764_000_000_700)),
                "{head}"
            );
            let words: Vec<_> = state.steps.iter().map(|s| s.phase.as_str()).collect();
            assert_eq!(words, ["complete", word, "dreaming"], "{head}");
            let listed = crate::rundir::list_runs(&root).remove(0);
            assert_eq!((listed.state.unwrap().phase, listed.lost), (phase.clone(), None), "{head}");
            assert_eq!(fs::read(dir.status()).unwrap(), before);
        }
    }
}

/// The runner of others does not look at what was started in its steps (run-directory 2.16), and calls a step idle that
/// waits for a nested run.
#[test]
fn a_step_of_a_foreign_run_waits_for_the_nested_run_that_works_and_tells_what_it_needs() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let now = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let put = |dir: &RunDir, id: &str, steps: &str| {
        fs::create_dir_all(dir.path()).unwrap();
        let (pid, update) = (std::process::id(), now - 1000);
        let text = format!(
            r#"{{"runId":"{id}","mode":"parallel","state":"running","startedAt":{0},"lastUpdate":{update},"pid":{pid},"steps":[{steps}]}}"#,
            now - 90_000
        );
        fs::write(dir.status(), text).unwrap();
    };
    let step = |agent: &str, more: &str| {
        format!(r#"{{"agent":"{agent}","status":"running","startedAt":{0},"lastActivityAt":{0}{more}}}"#, now - 80_000)
    };
    let needs = r#","activityState":"needs_attention""#;
    let outer = root.run(&RunId("outer".into())).unwrap();
    put(&outer, "outer", &[step("lead", needs), step("other", needs)].join(","));
    let mut follower = Follower::open(outer.path()).unwrap();
    follower.poll();
    assert_eq!((follower.health(), needs_of(&follower)), (&Health::Live, vec![0, 1]));
    // It says itself in which step it was started.
    let nested = RunDir::at(root.nested().join("outer/inner"));
    let tool = format!(r#","currentTool":"bash","currentToolStartedAt":{}"#, now - 70_000);
    put(&nested, "inner", &step("worker", &tool));
    let events = temp.path().join("nested-subagent-events/outer-token/events");
    fs::create_dir_all(&events).unwrap();
    let told = r#"{"type":"subagent.nested.started","child":{"id":"inner","parentRunId":"outer","parentStepIndex":0}}"#;
    fs::write(events.join("0000000000001-x.json"), told).unwrap();
    assert!(follower.poll().state);
    let state = follower.state();
    assert_eq!(state.steps[0].waits_for().map(|run| run.title.as_str()), Some("worker"));
    assert_eq!((needs_of(&follower), state.face(&state.steps[0])), (vec![1], StepFace::Running));
    assert_eq!(state.face(&state.steps[1]), StepFace::Attention, "the other one is as silent as before");
    // What that needs is told here too.
    put(&nested, "inner", &step("worker", needs));
    follower.poll();
    assert_eq!(needs_of(&follower), [1, 0]);
    let last = crate::run::needs(follower.state()).pop().unwrap();
    assert_eq!((last.reason, &*last.evidence), (Reason::InnerRun, "worker: worker: needs attention"));
    // It is gone, and the step speaks for itself.
    fs::remove_dir_all(nested.path()).unwrap();
    follower.poll();
    assert_eq!(needs_of(&follower), [0, 1]);
}

fn needs_of(follower: &Follower) -> Vec<u32> {
    crate::run::needs(follower.state()).iter().map(|need| need.step.id.0).collect()
}

#[test]
fn a_long_log_is_not_waited_for_where_a_status_says_how_it_ended() {
    let temp = tempfile::tempdir().unwrap();
    let dir = foreign(&RunRoot::at(temp.path()), "failed\", \"endedAt\": 1764000000600, \"x\": \"", 4_194_303);
    let line = "{\"type\":\"subagent.step.started\",\"ts\":1764000000001,\"stepIndex\":0}\n".repeat(8_000);
    let mut events = fs::read_to_string(dir.events()).unwrap();
    events.push_str(&line);
    fs::write(dir.events(), &events).unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.catch_up_within(Duration::ZERO);
    assert!(follower.reading().is_some(), "most of it was not read");
    assert_eq!((&follower.state().phase, follower.lost()), (&RunPhase::Failed, None));
    // Without a status nothing else tells.
    fs::remove_file(dir.status()).unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.catch_up_within(Duration::ZERO);
    assert!(follower.reading().is_none());
}

/// B63 again, of a runner that lives: it may be about to write its end, and has two seconds for that.
#[test]
fn a_result_that_has_long_been_there_is_the_end_though_its_runner_lives() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let dir = foreign(&root, "running", std::process::id());
    let path = root.results().join("f.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, r#"{"id": "f", "success": true, "state": "complete", "timestamp": 1764000000700, "results": []}"#)
        .unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.poll();
    assert!(!follower.is_over() && !follower.state().is_over(), "it is about to be told");
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let changes = follower.poll();
    assert!(changes.health && changes.state && follower.is_over() && follower.lost().is_none());
    assert_eq!(follower.state().phase, RunPhase::Complete);
    let listed = crate::rundir::list_runs(&root).remove(0);
    assert_eq!((listed.state.unwrap().phase, listed.lost), (RunPhase::Complete, None));
}

/// A result that is newer than the status tells of the steps what that does not say yet: that they ran, what they used,
/// and not when they ended.
#[test]
fn a_result_tells_of_steps_that_the_status_has_as_pending() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path());
    let dir = root.run(&RunId("r".into())).unwrap();
    fs::create_dir_all(dir.path()).unwrap();
    let steps = r#"[{"agent":"a","status":"complete","startedAt":10,"endedAt":20,"tokens":{"input":260,"output":40}},
        {"agent":"b","status":"running","startedAt":20,"tokens":{"input":10,"output":1}},{"agent":"c","status":"pending"}]"#;
    let status = format!(
        r#"{{"runId":"r","sessionId":"s","mode":"chain","state":"running","startedAt":10,"pid":4194303,"steps":{steps}}}"#
    );
    fs::write(dir.status(), status).unwrap();
    let entry = |input: u32, success: bool, more: &str| {
        format!(
            r#"{{"agent":"x","success":{success},"model":"m","totalCost":{{"inputTokens":{input},"outputTokens":9,"costUsd":0.5}}{more}}}"#
        )
    };
    fs::create_dir_all(root.results()).unwrap();
    let put = |last: &str| {
        let results = [entry(260, true, ""), entry(800, true, ""), last.to_owned()].join(",");
        let good = !last.contains("false");
        let state = if good { "complete" } else { "failed" };
        let text = format!(
            r#"{{"id":"r","success":{good},"state":"{state}","summary":"worker:\nx","timestamp":99,"results":[{results}]}}"#
        );
        fs::write(root.results().join("r.json"), text).unwrap();
        let mut follower = Follower::open(dir.path()).unwrap();
        follower.poll();
        follower.state().clone()
    };
    let state = put(&entry(120, true, ""));
    let words: Vec<_> = state.steps.iter().map(|s| state.face(s).word()).collect();
    assert_eq!((words, state.steps_ended()), (vec!["done"; 3], 3));
    assert_eq!(state.tokens().input, 260 + 800 + 120);
    assert_eq!((state.steps[2].cost.map(|usd| usd.0), state.steps[2].model.as_deref()), (Some(0.5), Some("m")));
    let took = |n: usize| state.steps[n].elapsed(Timestamp::from_millis(500)).map(|took| took.as_millis());
    assert_eq!([took(0), took(1), took(2)], [Some(10), None, None], "when they ended is told by nobody");
    // What went wrong is told by the step that failed, not by a summary of all.
    let state = put(&entry(120, false, r#","error":"400: bad request""#));
    assert_eq!(state.error.as_deref(), Some("400: bad request"));
}

#[test]
fn a_finished_foreign_run_is_over_whatever_its_process() {
    let temp = tempfile::tempdir().unwrap();
    let dir = foreign(&RunRoot::at(temp.path()), "failed\", \"endedAt\": 1764000000600, \"x\": \"", 4_194_303);
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.poll();
    assert_eq!(follower.health(), &Health::Over);
    assert!(follower.lost().is_none());
}

/// What its status says of a step that it forgot is not believed (runner-behaviour 14.8).
#[test]
fn no_step_of_a_finished_foreign_run_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    for (state, expected) in [("complete", StepFace::Lost), ("running", StepFace::Attention)] {
        let dir = foreign(&RunRoot::at(temp.path()), &format!("{state}\", \"endedAt\": 1764000000600, \"x\": \""), 1);
        let before = fs::read(dir.status()).unwrap();
        let mut follower = Follower::open(dir.path()).unwrap();
        follower.poll();
        let faces: Vec<_> = follower.state().steps.iter().map(|s| follower.state().face(s)).collect();
        assert_eq!(faces, [StepFace::Succeeded, expected, StepFace::Unknown], "{state}");
        assert_eq!(follower.state().lost, None, "the run itself has ended");
        assert_eq!(fs::read(dir.status()).unwrap(), before);
    }
}

/// A picture that the status alone gives is not there twice, which for ten thousand steps is much.
#[test]
fn a_run_without_events_is_shown_by_its_status_itself() {
    let temp = tempfile::tempdir().unwrap();
    let dir = foreign(&RunRoot::at(temp.path()), "paused\", \"endedAt\": 1764000000600, \"x\": \"", 1);
    fs::remove_file(dir.events()).unwrap();
    let status = fs::read_to_string(dir.status()).unwrap().replace("\"running\"", "\"paused\"");
    fs::write(dir.status(), status).unwrap();
    let mut follower = Follower::open(dir.path()).unwrap();
    follower.poll();
    assert_eq!(follower.state().steps.len(), 3);
    assert!(follower.is_shown_by_its_status_alone());
    fs::write(dir.events(), FOREIGN_EVENTS).unwrap();
    follower.poll();
    assert!(!follower.is_shown_by_its_status_alone());
    assert_eq!(follower.state().steps[1].last_message.as_deref(), Some("Half done."));
}

#[test]
fn waiting_ends_when_something_is_written() {
    let temp = tempfile::tempdir().unwrap();
    let mut runner = Runner::start(&RunRoot::at(temp.path()));
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    follower.poll();
    runner.record(4, What::StepStarted { step: StepId(0) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begun = std::time::Instant::now();
    runtime.block_on(async {
        while follower.state().steps[0].phase == StepPhase::Pending {
            follower.wait().await;
            follower.poll();
            assert!(begun.elapsed() < std::time::Duration::from_secs(10));
        }
    });
}

#[test]
fn an_event_log_that_is_cut_or_removed_is_told_and_begins_anew() {
    let home = tempfile::tempdir().unwrap();
    let mut runner = Runner::start(&RunRoot::at(home.path().join("root")));
    runner.write_status();
    let short = fs::metadata(runner.dir.events()).unwrap().len();
    runner.record(10, What::StepStarted { step: StepId(0) });
    let mut follower = Follower::open(runner.dir.path()).unwrap();
    let first = follower.poll();
    assert_eq!((first.news.len(), first.anew, first.gone), (2, false, false));
    assert_eq!(follower.notices(), Vec::<String>::new());
    fs::OpenOptions::new().write(true).open(runner.dir.events()).unwrap().set_len(short).unwrap();
    let cut = follower.poll();
    assert_eq!((cut.news.len(), cut.anew, cut.gone), (1, true, false));
    assert!(follower.notices().iter().any(|notice| notice.contains("its event log was cut")));
    let kept = runner.dir.events().with_extension("kept");
    fs::rename(runner.dir.events(), &kept).unwrap();
    let gone = follower.poll();
    assert_eq!((gone.news.len(), gone.anew, gone.gone), (0, false, true));
    assert!(follower.notices().iter().any(|notice| notice.contains("its event log is gone")));
    assert!(!follower.poll().gone);
    // It is there again, as it was.
    fs::rename(&kept, runner.dir.events()).unwrap();
    let again = follower.poll();
    assert_eq!((again.news.len(), again.anew, again.gone), (0, false, true));
    assert_eq!(follower.notices(), Vec::<String>::new());
}
