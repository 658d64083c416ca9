//! Which step is next. Pure: plan and state in, moves out.

use std::collections::BTreeSet;

use crate::plan::{LogicalStep, Plan};
use crate::run::{RunState, StepId, StepPhase, budget};

/// What the scheduler wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// A group begins.
    BeginGroup(usize),
    /// A step is to be started.
    Start(StepId),
    /// A step takes its outcome over from an earlier run.
    Carry(StepId),
    /// A member of a group is not run because a sibling failed (runner-behaviour 2.3).
    Skip(StepId),
    /// The run has used what it may: nothing more is started (runner-behaviour 3.3).
    Exhaust,
    /// A member of a group that the run's limit keeps from starting.
    Refuse(StepId),
    /// A group ended.
    EndGroup {
        /// The logical step.
        logical: usize,
        /// Whether every member succeeded or was skipped.
        success: bool,
    },
    /// Nothing more will be started; the run ends when its children are gone.
    Finish,
}

/// Remembers which groups were announced.
#[derive(Debug)]
pub struct Schedule {
    /// How many children may run at once, whatever a group says.
    at_once: usize,
    begun: BTreeSet<usize>,
    ended: BTreeSet<usize>,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { at_once: LogicalStep::AT_ONCE_MOST, begun: BTreeSet::new(), ended: BTreeSet::new() }
    }
}

/// How many children a plan would have at once, if nothing else bounds them.
#[must_use]
pub fn widest(plan: &Plan) -> usize {
    let of = |step: &LogicalStep| match step {
        LogicalStep::Single(_) => 1,
        LogicalStep::Group { steps, concurrency, .. } => {
            steps.len().min((*concurrency).clamp(1, LogicalStep::AT_ONCE_MOST))
        }
    };
    plan.steps.iter().map(of).max().unwrap_or(1)
}

impl Schedule {
    /// The same with no more than so many children at once.
    #[must_use]
    pub const fn at_once(mut self, most: usize) -> Self {
        self.at_once = most;
        self
    }

    /// The moves that are due. `alive` names the steps whose child, or what it left, is not gone yet: their phase may
    /// say that they ended.
    pub fn next(&mut self, plan: &Plan, state: &RunState, alive: &BTreeSet<StepId>) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut flat = 0u32;
        for (logical, step) in plan.steps.iter().enumerate() {
            let going = match step {
                LogicalStep::Single(step) => {
                    let id = StepId(flat);
                    flat += 1;
                    single(state, alive, id, step.carried.is_some(), &mut moves)
                }
                LogicalStep::Group { steps, concurrency, fail_fast } => {
                    let first = flat;
                    flat += u32::try_from(steps.len()).unwrap_or(0);
                    let ids: Vec<_> = (first..flat).map(StepId).collect();
                    let carried: Vec<_> = steps.iter().map(|s| s.carried.is_some()).collect();
                    self.group(state, alive, logical, &ids, &carried, *concurrency, *fail_fast, &mut moves)
                }
            };
            match going {
                Going::Done => {}
                Going::On => return moves,
                Going::Over => {
                    if alive.is_empty() {
                        moves.push(Move::Finish);
                    }
                    return moves;
                }
            }
        }
        if alive.is_empty() {
            moves.push(Move::Finish);
        }
        moves
    }

    #[allow(clippy::too_many_arguments)]
    fn group(
        &mut self,
        state: &RunState,
        alive: &BTreeSet<StepId>,
        logical: usize,
        ids: &[StepId],
        carried: &[bool],
        concurrency: usize,
        fail_fast: bool,
        moves: &mut Vec<Move>,
    ) -> Going {
        let phase = |id: &StepId| state.step(*id).map_or(StepPhase::Failed, |s| s.phase.clone());
        let stopping = state.is_ending();
        let spent = state.budget.exceeded.is_some();
        let exhausted = !spent && !stopping && budget::exhausted(state).is_some();
        if !self.begun.contains(&logical) {
            if stopping || spent {
                return Going::Over;
            }
            if exhausted {
                moves.push(Move::Exhaust);
                return Going::On;
            }
            self.begun.insert(logical);
            moves.push(Move::BeginGroup(logical));
        }
        let failed = ids.iter().any(|id| phase(id) == StepPhase::Failed);
        let mut running = ids.iter().filter(|id| alive.contains(id)).count();
        let mut waiting = 0;
        for (id, carried) in ids.iter().zip(carried) {
            if phase(id) != StepPhase::Pending || alive.contains(id) {
                continue;
            }
            if stopping || (spent && !state.limits.usage_spares_children) {
                continue;
            } else if spent {
                moves.push(Move::Refuse(*id));
                waiting += 1;
            } else if exhausted {
                if waiting == 0 {
                    moves.push(Move::Exhaust);
                }
                waiting += 1;
            } else if *carried {
                moves.push(Move::Carry(*id));
                waiting += 1;
            } else if fail_fast && failed {
                moves.push(Move::Skip(*id));
                waiting += 1;
            } else if running < concurrency.min(self.at_once).clamp(1, LogicalStep::AT_ONCE_MOST) {
                moves.push(Move::Start(*id));
                running += 1;
            } else {
                waiting += 1;
            }
        }
        if running > 0 || waiting > 0 {
            return Going::On;
        }
        let good =
            |id: &StepId| phase(id) == StepPhase::Complete || state.step(*id).is_some_and(|s| s.exit_code == Some(-1));
        let success = ids.iter().all(good);
        if self.ended.insert(logical) {
            moves.push(Move::EndGroup { logical, success });
        }
        // A skipped member exists only beside a failed one, so a group with one is never passed.
        if success && !failed && !stopping && !spent { Going::Done } else { Going::Over }
    }
}

enum Going {
    Done,
    On,
    Over,
}

fn single(state: &RunState, alive: &BTreeSet<StepId>, id: StepId, carried: bool, moves: &mut Vec<Move>) -> Going {
    if alive.contains(&id) {
        return Going::On;
    }
    match state.step(id).map(|s| &s.phase) {
        Some(StepPhase::Complete) => Going::Done,
        Some(StepPhase::Pending) if !state.is_ending() && state.budget.exceeded.is_none() => {
            moves.push(match () {
                () if carried => Move::Carry(id),
                () if budget::exhausted(state).is_some() => Move::Exhaust,
                () => Move::Start(id),
            });
            Going::On
        }
        _ => Going::Over,
    }
}
