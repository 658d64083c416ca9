//! Lists of fleets of a few runs.

use std::fs;

use super::*;
use crate::run::{RunId, RunPhase, RunState, StepId, StepPhase, StepState, Timestamp, Within};
use crate::rundir::RunDir;
use crate::rundir::fleet::place::{Place, put, state};

fn listed(place: &Place, view: &View) -> Vec<String> {
    let at = Timestamp::from_millis(0);
    let day = |at: Timestamp| format!("day {}", at.millis() / 1000);
    let rows = arrange(place.fleet.runs(), view, at, at, day, |n| format!("root {n}"));
    rows.into_iter()
        .map(|row| match row {
            Row::Head(head) => format!("{} {}", head.title, head.count),
            Row::Run { run, part } => format!("{}{}", if part { "  " } else { " " }, run.title()),
        })
        .collect()
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
        assert_eq!(listed(&place, &view), want, "{view:?}");
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
    let listed = listed(&place, &View::default());
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
    assert_eq!(listed(&place, &View::default()), ["needs you 1", " outer", "  inner"]);
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
