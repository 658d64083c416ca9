//! What a queued step waits for, or why it waits in vain.

use super::super::allowed::is_foreign;
use super::super::sums::{Sums, place};
use crate::run::{RunState, StepId, StepState};

/// Of so many steps before a queued one is it asked whether it waits for them.
const LOOKED_BACK: usize = 1000;

/// What keeps a step from being started.
#[derive(Debug, PartialEq, Eq)]
enum Keeps {
    /// Nothing but its turn: so many of its group are before it.
    Turn(usize),
    /// The steps before it that have not ended.
    Before(Vec<StepId>),
    /// The run ends, or pauses, before it has begun.
    Ending { pauses: bool },
    /// A step before it ended in a way from which the chain does not go on, whatever the others do.
    Broken(StepId, String),
}

fn keeps(state: &RunState, sums: &Sums, step: &StepState) -> Keeps {
    if state.is_ending() {
        return Keeps::Ending { pauses: state.interrupted && !state.stopped && !state.timed_out };
    }
    // What a runner of others goes on from is its own affair.
    let broken = sums.breaks.and_then(|at| state.steps.get(at)).filter(|_| !is_foreign(state));
    if let Some(broken) = broken.filter(|broken| broken.logical < step.logical) {
        return Keeps::Broken(broken.id, broken.phase.as_str().to_owned());
    }
    // Steps stand in the order of their logical steps, and what is long over is not looked through for each row.
    let before = |logical: usize| state.steps.partition_point(|s| s.logical < logical);
    let earlier = state.steps.get(..before(step.logical)).unwrap_or_default();
    let open = |s: &&StepState| !s.phase.is_terminal();
    let Some(last) = earlier.iter().rev().take(LOOKED_BACK).find(open).map(|s| s.logical) else {
        let first = sums.first_queued.filter(|at| state.steps.get(*at).is_some_and(|s| s.logical == step.logical));
        let turn = first.zip(place(state, step.id)).map_or(0, |(first, own)| own.saturating_sub(first));
        return Keeps::Turn(turn);
    };
    let group = earlier.get(before(last)..).unwrap_or_default().iter();
    Keeps::Before(group.take_while(|s| s.logical == last).filter(open).map(|s| s.id).collect())
}

/// Steps by their numbers, from four neighbours on by the first and the last: `3`, `62-81`.
fn ranges(steps: &[StepId]) -> Vec<String> {
    let chunks = steps.chunk_by(|a, b| b.0 == a.0 + 1);
    let told = |chunk: &[StepId]| match chunk {
        [first, _, _, .., last] => vec![format!("{first}-{last}")],
        few => few.iter().map(ToString::to_string).collect(),
    };
    chunks.flat_map(told).collect()
}

/// In the row of a step.
pub(super) fn in_short(state: &RunState, sums: &Sums, step: &StepState) -> String {
    match keeps(state, sums, step) {
        Keeps::Turn(0) => "next".to_owned(),
        Keeps::Turn(before) => format!("{before} before it"),
        Keeps::Before(steps) => format!("after {}", ranges(&steps).join(",")),
        Keeps::Ending { pauses: true } => "not started, the run pauses".to_owned(),
        Keeps::Ending { pauses: false } => "never starts, the run ends".to_owned(),
        Keeps::Broken(id, how) => format!("never starts, {id} {how}"),
    }
}

/// In a sentence.
pub(super) fn in_words(state: &RunState, sums: &Sums, step: &StepState) -> String {
    match keeps(state, sums, step) {
        Keeps::Turn(0) => "not started yet".to_owned(),
        Keeps::Turn(1) => "not started yet, 1 is before it".to_owned(),
        Keeps::Turn(before) => format!("not started yet, {before} are before it"),
        Keeps::Before(steps) => match ranges(&steps).as_slice() {
            [] => "not started yet".to_owned(),
            [only] if steps.len() == 1 => format!("waits for step {only}"),
            [only] => format!("waits for steps {only}"),
            [all @ .., last] => format!("waits for steps {} and {last}", all.join(", ")),
        },
        Keeps::Ending { pauses: true } => "not started; the run pauses".to_owned(),
        Keeps::Ending { pauses: false } => "it will never start; the run ends".to_owned(),
        Keeps::Broken(id, how) => format!("it will never start: step {id} {how}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StepPhase::{self, Complete, Failed, Pending, Running, Stopped};

    /// A run of steps, each with its logical step.
    fn run(steps: &[(usize, StepPhase)]) -> RunState {
        let step = |(id, (logical, phase)): (u32, &(usize, StepPhase))| StepState {
            id: StepId(id),
            // Of ours.
            key: format!("s{id}"),
            logical: *logical,
            phase: phase.clone(),
            ..StepState::default()
        };
        RunState { steps: (0..).zip(steps).map(step).collect(), ..RunState::default() }
    }

    fn told(state: &RunState, place: usize) -> (String, String) {
        let (sums, step) = (Sums::of(state), &state.steps[place]);
        (in_short(state, &sums, step), in_words(state, &sums, step))
    }

    #[test]
    fn a_queued_step_says_what_it_waits_for() {
        let chain = run(&[(0, Running), (1, Pending), (1, Pending), (2, Pending)]);
        assert_eq!(told(&chain, 1), ("after 1".to_owned(), "waits for step 1".to_owned()));
        assert_eq!(told(&chain, 3), ("after 2,3".to_owned(), "waits for steps 2 and 3".to_owned()));
        let group = run(&[(0, Complete), (1, Running), (1, Pending), (1, Pending), (1, Pending)]);
        assert_eq!(told(&group, 2), ("next".to_owned(), "not started yet".to_owned()));
        assert_eq!(told(&group, 3), ("1 before it".to_owned(), "not started yet, 1 is before it".to_owned()));
        assert_eq!(told(&group, 4).0, "2 before it");
    }

    #[test]
    fn a_step_that_can_never_start_says_so_while_others_go_on() {
        let broken = run(&[(0, Failed), (0, Running), (1, Pending)]);
        assert_eq!(told(&broken, 2).0, "never starts, 1 failed");
        assert_eq!(told(&broken, 2).1, "it will never start: step 1 failed");
        // Members of the same group are started all the same.
        let beside = run(&[(0, Failed), (0, Running), (0, Pending)]);
        assert_eq!(told(&beside, 2).0, "next");
        let mut skipped = run(&[(0, Failed), (0, Stopped), (0, Running), (1, Pending)]);
        skipped.steps[0].exit_code = Some(-1);
        assert_eq!(told(&skipped, 3).0, "never starts, 2 stopped");
    }

    #[test]
    fn a_run_that_ends_or_pauses_starts_nothing() {
        let mut state = run(&[(0, Running), (1, Pending)]);
        state.interrupted = true;
        assert_eq!(told(&state, 1).0, "not started, the run pauses");
        state.stopped = true;
        assert_eq!(told(&state, 1).0, "never starts, the run ends");
    }
}
