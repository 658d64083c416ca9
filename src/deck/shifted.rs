//! Following steps to their new places. Where a group of another runner expands while it runs, one placeholder becomes
//! several steps and the numbers of all behind it are others (run-directory 2.3); what a person chose or wrote is meant for
//! a step and not for a number. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::model::UiState;
use super::overlay::{Danger, Overlay};
use crate::run::{RunState, StepId};

/// The agents of the steps in their order: what of a step is known from the start and stays.
pub type Agents = Vec<String>;

/// Takes everything that is kept by step to the new places of the steps. Does nothing as long as there are as many.
pub fn follow(ui: &mut UiState, state: &RunState) {
    if state.steps.len() == ui.agents.len() {
        return;
    }
    let now: Agents = state.steps.iter().map(|step| step.agent.clone()).collect();
    let old = std::mem::replace(&mut ui.agents, now);
    let place = |id: StepId| place(&old, &ui.agents, id);
    // What only became longer has its places still.
    if (0..old.len()).all(|n| u32::try_from(n).is_ok_and(|n| place(StepId(n)) == Some(StepId(n)))) {
        return;
    }
    ui.selected = place(ui.selected).unwrap_or(ui.selected);
    ui.panes = by_step(std::mem::take(&mut ui.panes), place);
    // What was written for one that is replaced stays where it was: nothing that somebody typed is lost.
    ui.drafts = by_step(std::mem::take(&mut ui.drafts), |id| place(id).or(Some(id)));
    ui.acknowledged = by_step(std::mem::take(&mut ui.acknowledged), place);
    ui.unread = by_step(std::mem::take(&mut ui.unread), place);
    ui.folded_agents = set(&ui.folded_agents, place);
    for overlay in &mut ui.overlays {
        match overlay {
            Overlay::Composer(composer) => {
                composer.home = place(composer.home).unwrap_or(composer.home);
                composer.targets = set(&composer.targets, place);
            }
            Overlay::Why { step, .. } | Overlay::Confirm { what: Danger::Step(step), .. } => {
                *step = place(*step).unwrap_or(*step);
            }
            Overlay::Budget(dialog) => dialog.step = place(dialog.step).unwrap_or(dialog.step),
            Overlay::Answer(dialog) => dialog.step = place(dialog.step).unwrap_or(dialog.step),
            _ => {}
        }
    }
    // Nobody is asked to end a step that is not there any more.
    let gone = |overlay: &Overlay| match overlay {
        Overlay::Confirm { what: Danger::Step(step), .. } => ui.agents.get(step.flat()).is_none(),
        _ => false,
    };
    ui.overlays.retain(|overlay| !gone(overlay));
}

/// Where a step is now: at its place as long as everything before it is as it was, else as far from the end as before; one
/// that is neither was replaced by others.
fn place(old: &[String], new: &[String], id: StepId) -> Option<StepId> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let behind = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let at = id.flat();
    if at < same {
        return Some(id);
    }
    let from_end = old.len().checked_sub(at)?;
    let to = new.len().checked_sub(from_end)?;
    (from_end <= behind && to >= same).then(|| u32::try_from(to).ok().map(StepId)).flatten()
}

fn by_step<T>(map: BTreeMap<StepId, T>, place: impl Fn(StepId) -> Option<StepId>) -> BTreeMap<StepId, T> {
    map.into_iter().filter_map(|(id, value)| Some((place(id)?, value))).collect()
}

fn set(ids: &BTreeSet<StepId>, place: impl Fn(StepId) -> Option<StepId>) -> BTreeSet<StepId> {
    ids.iter().filter_map(|id| place(*id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::model::{Composer, Draft};
    use crate::run::StepState;

    fn run(agents: &[&str]) -> RunState {
        let step = |(flat, agent): (u32, &&str)| StepState {
            id: StepId(flat),
            agent: (*agent).to_owned(),
            ..StepState::default()
        };
        RunState { steps: (0..).zip(agents).map(step).collect(), ..RunState::default() }
    }

    #[test]
    fn a_step_behind_a_group_that_expands_is_followed_with_all_that_was_chosen_for_it() {
        let mut ui = UiState::default();
        ui.settle(&run(&["look", "expand:worker", "write"]));
        ui.selected = StepId(2);
        ui.unread.insert(StepId(2), 7);
        ui.drafts.insert(StepId(2), Draft::default());
        ui.drafts.insert(StepId(1), Draft::default());
        let targets = BTreeSet::from([StepId(0), StepId(1), StepId(2)]);
        ui.overlays.push(Overlay::Composer(Composer { home: StepId(2), targets, goes_on: false, refused: None }));
        ui.overlays.push(Overlay::Why { step: StepId(2), top: 0 });
        ui.settle(&run(&["look", "worker", "worker", "worker", "write"]));
        assert_eq!((ui.selected, ui.unread.get(&StepId(4))), (StepId(4), Some(&7)));
        assert_eq!(ui.drafts.keys().copied().collect::<Vec<_>>(), [StepId(1), StepId(4)]);
        let [Overlay::Composer(composer), Overlay::Why { step, .. }] = &ui.overlays[..] else { panic!() };
        assert_eq!(composer.targets.iter().copied().collect::<Vec<_>>(), [StepId(0), StepId(4)]);
        assert_eq!((composer.home, *step), (StepId(4), StepId(4)));
    }

    #[test]
    fn where_nothing_is_in_another_place_nothing_moves() {
        let mut ui = UiState::default();
        ui.settle(&run(&["a"]));
        ui.unread.insert(StepId(0), 1);
        ui.settle(&run(&["a", "b", "a"]));
        assert_eq!(ui.unread.get(&StepId(0)), Some(&1));
        // The same agent everywhere: the first ones stay, those at the end go with it.
        let places = |old: &[&str], new: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            let (old, new) = (owned(old), owned(new));
            (0..).take(old.len()).map(|n| place(&old, &new, StepId(n)).map(|id| id.0)).collect::<Vec<_>>()
        };
        assert_eq!(places(&["w", "expand:w", "w"], &["w", "w", "w", "w"]), [Some(0), None, Some(3)]);
        assert_eq!(places(&["w", "expand:w"], &["w"]), [Some(0), None]);
        assert_eq!(places(&["w", "expand:w", "x"], &["w", "x"]), [Some(0), None, Some(1)], "it became nothing");
    }
}
