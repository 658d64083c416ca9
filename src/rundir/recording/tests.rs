use std::path::Path;

use super::*;
use crate::run::{StepId, StepPhase, reduce};

fn fixture(name: &str) -> RunDir {
    RunDir::at(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs").join(name))
}

/// The whole tape, read in parts of so many bytes.
fn all(tape: &mut Recording, most: u64) -> Vec<Recorded> {
    let mut events = Vec::new();
    let mut next = Some(0);
    while let Some(place) = next {
        let piece = tape.read(place, most);
        events.extend(piece.events);
        assert!(piece.next.is_none_or(|next| next > place), "it goes on");
        next = piece.next;
    }
    events
}

fn played(tape: &mut Recording) -> RunState {
    let mut state = tape.beginning();
    for recorded in all(tape, 1 << 20) {
        reduce(&mut state, &recorded.event);
    }
    state
}

#[test]
fn a_tape_gives_the_same_events_in_parts_of_any_size_and_from_any_place() {
    for name in ["direct-mixed", "steered", "failed-chain", "workflow"] {
        let mut tape = Recording::open(&fixture(name));
        let whole = all(&mut tape, u64::MAX);
        assert!(!tape.is_empty());
        assert!(whole.len() > 3, "{name}");
        for most in [1, 300, 5_000] {
            assert!(all(&mut tape, most) == whole, "{name} in parts of {most}");
        }
        for (number, recorded) in whole.iter().enumerate() {
            let piece = tape.read(recorded.place, u64::MAX);
            // Of a record that says several things all are given.
            let first = whole.iter().position(|other| other.place == recorded.place).unwrap();
            assert!(piece.events == whole[first..], "{name} from event {number}");
        }
        assert!(tape.read(tape.len(), 100).events.is_empty());
        assert!(tape.read(u64::MAX, 100).events.is_empty());
    }
}

#[test]
fn runs_of_others_end_on_the_tape_as_their_status_says() {
    for name in [
        "direct-chain",
        "direct-chain-fail",
        "direct-mixed",
        "direct-par-steer-one",
        "direct-parallel",
        "steered",
        "finished-single",
        "failed-chain",
        "workflow",
    ] {
        let dir = fixture(name);
        let status = status_read::read(&dir).unwrap();
        let mut tape = Recording::open(&dir);
        let begun = tape.beginning();
        assert_eq!(begun.steps.len(), status.steps.len());
        assert!(
            begun.steps.iter().all(|s| s.phase == StepPhase::Pending && s.started_at.is_none() && s.tool_count == 0)
        );
        let ended = played(&mut tape);
        assert_eq!((&ended.phase, &ended.id, &ended.mode), (&status.phase, &status.id, &status.mode), "{name}");
        let phases = |state: &RunState| -> Vec<(StepId, String, StepPhase)> {
            state.steps.iter().map(|s| (s.id, s.agent.clone(), s.phase.clone())).collect()
        };
        assert_eq!(phases(&ended), phases(&status), "{name}");
    }
}

#[test]
fn what_is_not_there_is_a_tape_of_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut tape = Recording::open(&RunDir::at(temp.path().join("gone")));
    assert!(tape.is_empty() && tape.read(0, 100) == Piece::default());
    assert_eq!(tape.beginning().id.as_str(), "gone");
}
