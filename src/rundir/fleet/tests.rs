//! Fleets over folders that change.

use std::time::Duration;

use super::*;
use crate::run::{CostUsd, RunPhase, StepId, StepState, Tokens, Within};
use crate::rundir::{StatusContext, replace, status};

const ALL: Duration = Duration::from_secs(60);

fn put(dir: &RunDir, state: &RunState) {
    fs::create_dir_all(dir.path()).unwrap();
    replace(&dir.status(), &status::encode(state, &StatusContext { dir, instance: None })).unwrap();
}

fn state(id: &str, name: &str, phase: RunPhase, started: i64) -> RunState {
    let over = phase.is_terminal();
    let step = StepState {
        agent: "worker".into(),
        model: Some("vendor/large:low".into()),
        cost: Some(CostUsd(0.5)),
        tokens: Tokens { input: 10, ..Tokens::default() },
        phase: if over { StepPhase::Complete } else { StepPhase::Running },
        started_at: Some(Timestamp::from_millis(started)),
        ended_at: over.then(|| Timestamp::from_millis(started + 10)),
        ..StepState::default()
    };
    RunState {
        id: RunId(id.into()),
        name: Some(name.into()),
        pid: Some(std::process::id()),
        phase,
        started_at: Some(Timestamp::from_millis(started)),
        last_update: Some(Timestamp::from_millis(started + 10)),
        ended_at: over.then(|| Timestamp::from_millis(started + 10)),
        steps: vec![step],
        ..RunState::default()
    }
}

struct Place {
    _temp: tempfile::TempDir,
    root: RunRoot,
    fleet: Fleet,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = RunRoot::at(temp.path().join("root"));
        root.create().unwrap();
        let fleet = Fleet::new(vec![root.clone()]);
        Self { _temp: temp, root, fleet }
    }

    fn put(&self, id: &str, name: &str, phase: RunPhase, started: i64) -> RunDir {
        let dir = self.root.run(&RunId(id.into())).unwrap();
        put(&dir, &state(id, name, phase, started));
        dir
    }

    fn look(&mut self) -> bool {
        self.fleet.poll(ALL).changed
    }

    fn listed(&self, view: &View) -> Vec<String> {
        let at = Timestamp::from_millis(0);
        let day = |at: Timestamp| format!("day {}", at.millis() / 1000);
        let rows = arrange(self.fleet.runs(), view, at, at, day, |n| format!("root {n}"));
        rows.into_iter()
            .map(|row| match row {
                Row::Head(head) => format!("{} {}", head.title, head.count),
                Row::Run { run, part } => format!("{}{}", if part { "  " } else { " " }, run.title()),
            })
            .collect()
    }
}

#[test]
fn runs_that_come_change_and_go_are_noticed() {
    let mut place = Place::new();
    assert!(!place.look());
    let dir = place.put("r-1", "one", RunPhase::Running, 1000);
    assert!(place.look());
    assert!(!place.look(), "nothing changed");
    put(&dir, &state("r-1", "one", RunPhase::Complete, 1000));
    assert!(place.look());
    assert!(!place.fleet.run(dir.path()).unwrap().is_living());
    fs::remove_dir_all(dir.path()).unwrap();
    assert!(place.look());
    assert_eq!(place.fleet.runs().count(), 0);
}

#[test]
fn what_is_over_is_not_read_again_and_what_cannot_be_read_is() {
    let mut place = Place::new();
    let over = place.put("r-1", "over", RunPhase::Complete, 1000);
    let broken = place.put("r-2", "broken", RunPhase::Running, 2000);
    fs::write(broken.status(), "{\"runId\": \"r-2\", ").unwrap();
    place.look();
    let cause = place.fleet.run(broken.path()).unwrap().listed.state.as_ref().unwrap_err().to_string();
    assert!(cause.contains("not valid JSON"), "{cause}");
    assert_eq!(place.listed(&View::default()), ["unreadable 1", " –", "complete 1", " over"]);
    // A run that is over never changes any more; what somebody writes there is not even looked at.
    fs::write(over.status(), "gone").unwrap();
    put(&broken, &state("r-2", "mended", RunPhase::Running, 2000));
    assert!(place.look());
    assert_eq!(place.listed(&View::default()), ["running 1", " mended", "complete 1", " over"]);
}

/// B65 (a public report about a program of this kind): one failed look flips every row, and the next one flips it back.
#[test]
fn one_look_that_fails_flips_nothing() {
    let mut place = Place::new();
    let dir = place.put("r-1", "one", RunPhase::Running, 1000);
    place.look();
    let listed = place.listed(&View::default());
    let whole = fs::read(dir.status()).unwrap();
    fs::write(dir.status(), &whole[..whole.len() / 2]).unwrap();
    assert!(!place.look(), "it may be in the middle of a write");
    assert_eq!(place.listed(&View::default()), listed);
    let since = Instant::now();
    while place.listed(&View::default()) == listed {
        assert!(since.elapsed() < HALF_WRITTEN * 10);
        place.look();
    }
    assert_eq!(place.listed(&View::default()), ["unreadable 1", " –"]);
    fs::write(dir.status(), &whole).unwrap();
    assert!(place.look());
    assert_eq!(place.listed(&View::default()), listed);
    // A folder that is something else for a moment.
    let (runs, aside) = (place.root.runs(), place.root.path().join("aside"));
    fs::rename(&runs, &aside).unwrap();
    fs::write(&runs, "").unwrap();
    place.look();
    assert_eq!((place.listed(&View::default()), place.fleet.notices().len()), (listed.clone(), 1));
    fs::remove_file(&runs).unwrap();
    fs::rename(&aside, &runs).unwrap();
    place.look();
    assert_eq!((place.listed(&View::default()), place.fleet.notices().len()), (listed, 0));
}

#[test]
fn a_thousand_runs_are_read_in_slices() {
    let mut place = Place::new();
    for n in 0..50 {
        place.put(&format!("r-{n}"), &format!("run {n}"), RunPhase::Complete, n);
    }
    let mut looks = 1;
    while place.fleet.poll(Duration::ZERO).behind {
        looks += 1;
    }
    assert_eq!((looks, place.fleet.runs().count(), place.fleet.unread()), (50, 50, 0));
}

#[test]
fn a_list_is_grouped_sorted_filtered_and_searched() {
    let mut place = Place::new();
    place.put("r-1", "beta", RunPhase::Running, 1000);
    place.put("r-2", "alpha", RunPhase::Failed, 2000);
    place.put("r-3", "gamma", RunPhase::Complete, 9000);
    let view = |change: &dyn Fn(&mut View)| {
        let mut view = View { group: Group::None, ..View::default() };
        change(&mut view);
        view
    };
    place.look();
    let table: [(View, &[&str]); 7] = [
        (View::default(), &["running 1", " beta", "failed or stopped 1", " alpha", "complete 1", " gamma"]),
        (view(&|v| v.sort = Sort::Name), &[" alpha", " beta", " gamma"]),
        (view(&|v| v.sort = Sort::Need), &[" beta", " alpha", " gamma"]),
        (view(&|v| v.group = Group::Day), &["day 9 1", " gamma", "day 2 1", " alpha", "day 1 1", " beta"]),
        (view(&|v| v.show = Show::Trouble), &[" alpha"]),
        (view(&|v| v.words = "LARGE alph".into()), &[" alpha"]),
        (view(&|v| v.words = "nothing".into()), &[]),
    ];
    for (view, want) in table {
        assert_eq!(place.listed(&view), want, "{view:?}");
    }
}

#[test]
fn parts_stand_below_their_whole_also_when_they_lie_elsewhere_and_also_in_a_circle() {
    let mut place = Place::new();
    place.put("r-1", "whole", RunPhase::Complete, 1000);
    let nested = RunDir::at(place.root.nested().join("r-1").join("r-2"));
    put(&nested, &state("r-2", "nested", RunPhase::Running, 2000));
    let mut circle = place.put("r-3", "left", RunPhase::Complete, 3000);
    for (id, other) in [("r-3", "r-4"), ("r-4", "r-3")] {
        circle = place.put(id, id, RunPhase::Complete, 3000);
        let text = fs::read_to_string(circle.status()).unwrap();
        fs::write(circle.status(), text.replacen('{', &format!("{{\"parentWorkflowRunId\": \"{other}\","), 1)).unwrap();
    }
    place.look();
    let listed = place.listed(&View::default());
    assert_eq!(listed[..3], ["running 1", " whole", "  nested"], "{listed:?}");
    assert_eq!(listed.iter().filter(|l| l.contains("r-")).count(), 2, "{listed:?}");
    assert_eq!(circle.id_str(), "r-4");
}

/// A run that goes on and needs a person for these steps.
fn needy(id: &str, within: Option<(&str, u32)>, steps: &[(StepPhase, bool)]) -> RunState {
    let mut needy = state(id, id, RunPhase::Running, 1000);
    needy.started_in = within.map(|(run, step)| Within { run: RunId(run.into()), step: Some(StepId(step)) });
    let steps = steps.iter().zip(0..).map(|((phase, needs), flat)| StepState {
        id: StepId(flat),
        agent: "worker".into(),
        phase: phase.clone(),
        activity: needs.then(|| "needs_attention".to_owned()),
        ..StepState::default()
    });
    needy.steps = steps.collect();
    needy
}

#[test]
fn a_run_of_ours_stands_below_the_run_that_it_was_started_in_and_rings_once() {
    use StepPhase::Running;
    let mut place = Place::new();
    let put_all = |place: &Place, all: &[RunState]| {
        all.iter().for_each(|run| put(&place.root.run(&run.id).unwrap(), run));
    };
    let names = |place: &Place| waiting(place.fleet.runs()).iter().map(|r| r.title().to_string()).collect::<Vec<_>>();
    // Its runner is one of ours, which looks at the runs inside itself.
    let outer = place.root.run(&RunId("outer".into())).unwrap();
    fs::create_dir_all(outer.subdeck()).unwrap();
    fs::write(outer.runner_json(), "{}").unwrap();
    let inner = needy("inner", Some(("outer", 1)), &[(Running, true)]);
    put_all(&place, &[needy("outer", None, &[(Running, false), (Running, true)]), inner.clone()]);
    place.look();
    assert_eq!(place.listed(&View::default()), ["needs you 1", " outer", "  inner"]);
    assert_eq!(names(&place), ["inner"], "the step of the outer run is told by the run inside it");
    // What another step needs is the outer run's own.
    put_all(&place, &[needy("outer", None, &[(Running, true), (Running, true)])]);
    place.look();
    assert_eq!(names(&place).len(), 2);
    // Once the inner one needs nobody the outer one speaks for itself.
    put_all(&place, &[needy("outer", None, &[(Running, false), (Running, true)])]);
    put_all(&place, &[needy("inner", Some(("outer", 1)), &[(Running, false)])]);
    place.look();
    assert_eq!(names(&place), ["outer"]);
    // Runs that say that they are each other's part are not silent for it.
    put_all(&place, &[needy("outer", Some(("inner", 0)), &[(Running, true)]), inner]);
    place.look();
    assert!(!names(&place).is_empty());
}

#[test]
fn a_run_of_others_needs_nobody_while_a_run_inside_works_and_says_what_that_needs() {
    use StepPhase::Running;
    let mut place = Place::new();
    let outer = needy("outer", None, &[(Running, true)]);
    put(&place.root.run(&outer.id).unwrap(), &outer);
    let nested = RunDir::at(place.root.nested().join("outer/inner"));
    let shown = |place: &Place| {
        let outer = place.fleet.runs().find(|run| run.dir().id_str() == "outer").unwrap();
        (Class::of(outer), outer.doing())
    };
    place.look();
    assert_eq!(shown(&place), (Class::Needs, None));
    put(&nested, &needy("inner", None, &[(Running, false)]));
    place.look();
    assert_eq!(shown(&place), (Class::Running, Some("waits for run inner".to_owned())));
    put(&nested, &needy("inner", None, &[(Running, true)]));
    place.look();
    assert_eq!(shown(&place).0, Class::Needs);
    // It is over, and the outer one speaks for itself.
    put(&nested, &state("inner", "inner", RunPhase::Complete, 1000));
    place.look();
    assert_eq!(shown(&place), (Class::Needs, None));
}

#[test]
fn a_root_that_is_not_there_yet_is_found_later() {
    let temp = tempfile::tempdir().unwrap();
    let root = RunRoot::at(temp.path().join("later"));
    let mut fleet = Fleet::new(vec![root.clone()]);
    assert_eq!(fleet.poll(ALL), FleetChanges::default());
    root.create().unwrap();
    put(&root.run(&RunId("r-1".into())).unwrap(), &state("r-1", "one", RunPhase::Running, 1));
    assert!(fleet.poll(ALL).changed);
    assert_eq!((fleet.runs().count(), fleet.notices()), (1, Vec::new()));
}

#[test]
fn money_is_counted_by_the_day_and_by_the_model() {
    let mut place = Place::new();
    place.put("r-1", "yesterday", RunPhase::Complete, 1_000);
    place.put("r-2", "today", RunPhase::Complete, 90_000);
    let dir = place.put("r-3", "unknown", RunPhase::Complete, 91_000);
    let mut silent = state("r-3", "unknown", RunPhase::Complete, 91_000);
    silent.steps[0].cost = None;
    put(&dir, &silent);
    place.look();
    let spent = spent_since(place.fleet.runs(), Timestamp::from_millis(80_000));
    assert_eq!(spent, Spent { usd: 0.5, models: vec![("large".into(), 0.5)], unknown: 1, partial: false });
    assert_eq!(spent_since(place.fleet.runs(), Timestamp::from_millis(0)).usd, 1.0);
}

#[test]
fn what_is_not_told_is_unknown_only_where_an_agent_was_at_work() {
    let shown = |change: &dyn Fn(&mut StepState)| {
        let mut place = Place::new();
        let dir = place.put("r-1", "one", RunPhase::Complete, 90_000);
        let mut run = state("r-1", "one", RunPhase::Complete, 90_000);
        run.steps.iter_mut().for_each(change);
        put(&dir, &run);
        place.look();
        place.fleet.runs().next().unwrap().or_nothing(None)
    };
    assert_eq!(shown(&|_| {}), "–");
    // It was at work in the run that this one goes on from.
    assert_eq!(shown(&|step| step.carried_over = true), "");
    let command = || crate::run::RunnerKind::ExternalCli { command: "ls".into(), args: vec![] };
    assert_eq!(shown(&|step| step.runner = command()), "");
}

/// Whether this machine has a file system for tests that tells everything.
#[cfg(target_os = "linux")]
fn tells_everything(place: &Place) -> bool {
    let told = crate::rundir::watch::tells_everything(place.root.path());
    if !told {
        println!("skipped: {} is not on a file system that tells everything", place.root.path().display());
    }
    told
}

/// Takes what was told already.
#[cfg(target_os = "linux")]
async fn settle(fleet: &Fleet) {
    while tokio::time::timeout(Duration::from_millis(1), fleet.wait()).await.is_ok() {}
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn where_nothing_can_change_untold_nothing_is_looked_at() {
    let mut place = Place::new();
    if !tells_everything(&place) {
        return;
    }
    place.put("r-1", "over", RunPhase::Complete, 1000);
    let broken = place.put("r-2", "broken", RunPhase::Running, 2000);
    fs::write(broken.status(), "{\"runId\"").unwrap();
    place.look();
    assert_eq!((place.fleet.runs().count(), place.fleet.look_again()), (2, None));
    settle(&place.fleet).await;
    assert!(tokio::time::timeout(Duration::from_secs(100_000), place.fleet.wait()).await.is_err());
}

/// That a runner dies changes no file.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn what_lives_is_looked_at_though_nothing_was_told_also_by_who_waits_anew_each_second() {
    let mut place = Place::new();
    if !tells_everything(&place) {
        return;
    }
    let mut living = state("r-1", "goes on", RunPhase::Running, 3000);
    living.pid = Some(std::process::id());
    put(&place.root.run(&RunId("r-1".into())).unwrap(), &living);
    place.look();
    assert_eq!(place.fleet.look_again(), Some(SAFETY));
    settle(&place.fleet).await;
    let mut seconds = 0;
    while tokio::time::timeout(Duration::from_secs(1), place.fleet.wait()).await.is_err() {
        seconds += 1;
        assert!(seconds < 10, "the look was put off");
    }
}
