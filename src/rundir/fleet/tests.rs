//! Fleets over folders that change.

use super::place::{ALL, Place, put, state};
use super::*;
use crate::run::RunPhase;

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
    assert_eq!(place.listed(), ["over complete", "– unreadable"]);
    // A run that is over never changes any more; what somebody writes there is not even looked at.
    fs::write(over.status(), "gone").unwrap();
    put(&broken, &state("r-2", "mended", RunPhase::Running, 2000));
    assert!(place.look());
    assert_eq!(place.listed(), ["over complete", "mended running"]);
}

/// B65 (a public report about a program of this kind): one failed look flips every row, and the next one flips it back.
#[test]
fn one_look_that_fails_flips_nothing() {
    let mut place = Place::new();
    let dir = place.put("r-1", "one", RunPhase::Running, 1000);
    place.look();
    let listed = place.listed();
    let whole = fs::read(dir.status()).unwrap();
    fs::write(dir.status(), &whole[..whole.len() / 2]).unwrap();
    assert!(!place.look(), "it may be in the middle of a write");
    assert_eq!(place.listed(), listed);
    let since = Instant::now();
    while place.listed() == listed {
        assert!(since.elapsed() < HALF_WRITTEN * 10);
        place.look();
    }
    assert_eq!(place.listed(), ["– unreadable"]);
    fs::write(dir.status(), &whole).unwrap();
    assert!(place.look());
    assert_eq!(place.listed(), listed);
    // A folder that is something else for a moment.
    let (runs, aside) = (place.root.runs(), place.root.path().join("aside"));
    fs::rename(&runs, &aside).unwrap();
    fs::write(&runs, "").unwrap();
    place.look();
    assert_eq!((place.listed(), place.fleet.notices().len()), (listed.clone(), 1));
    fs::remove_file(&runs).unwrap();
    fs::rename(&aside, &runs).unwrap();
    place.look();
    assert_eq!((place.listed(), place.fleet.notices().len()), (listed, 0));
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
