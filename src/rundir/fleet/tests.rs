//! Fleets over folders that change.

use std::time::Duration;

use super::*;
use crate::run::{CostUsd, RunPhase, StepState, Tokens};
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
    assert_eq!(spent, Spent { usd: 0.5, models: vec![("large".into(), 0.5)], unknown: 1 });
    assert_eq!(spent_since(place.fleet.runs(), Timestamp::from_millis(0)).usd, 1.0);
}
