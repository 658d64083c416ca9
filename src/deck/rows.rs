//! Which steps the list shows: all of them, or those that have the words of a filter, and below each the sub-agents of its
//! agent where there is room. The order is always that of the run.

use super::model::UiState;
use super::sums;
use crate::run::{Group, RunState, StepId, StepState, SubAgent};

/// The rows of the list.
#[derive(Clone, Debug)]
pub enum Rows<'s> {
    /// All steps, none of which had to be looked at for this.
    All(&'s RunState),
    /// Those with the words.
    Some(Vec<&'s StepState>),
}

impl<'s> Rows<'s> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::All(state) => state.steps.len(),
            Self::Some(rows) => rows.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at this place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&'s StepState> {
        match self {
            Self::All(state) => state.steps.get(place),
            Self::Some(rows) => rows.get(place).copied(),
        }
    }

    /// The rows from a place on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = &'s StepState> {
        (place..self.len()).filter_map(|place| self.get(place))
    }

    /// The place of a step.
    #[must_use]
    pub fn place(&self, id: StepId) -> Option<usize> {
        match self {
            Self::All(state) => sums::place(state, id),
            Self::Some(rows) => rows.iter().position(|step| step.id == id),
        }
    }
}

/// The rows of the list. The selected step is among them as long as any has the words, so that a filter or a folded group
/// hides nothing that keys act on beside others; where none has them its pane alone shows it.
#[must_use]
pub fn listed<'s>(ui: &UiState, state: &'s RunState) -> Rows<'s> {
    let words = words(ui);
    if !words.is_empty() {
        let found: Vec<&StepState> = state.steps.iter().filter(|step| matches(step, &words)).collect();
        let kept = |step: &&StepState| step.id == ui.selected || matches(step, &words);
        return Rows::Some(if found.is_empty() { found } else { state.steps.iter().filter(kept).collect() });
    }
    if ui.folded.is_empty() {
        return Rows::All(state);
    }
    let mut rows: Vec<&StepState> = Vec::with_capacity(state.steps.len());
    let mut at = 0;
    while let Some(step) = state.steps.get(at) {
        rows.push(step);
        at += folded(ui, state, step).map_or(1, |group| group.count.max(1));
    }
    Rows::Some(rows)
}

/// How many steps have the words of the filter: the selected one is listed also without them.
#[must_use]
pub fn found(ui: &UiState, state: &RunState, rows: usize) -> usize {
    let words = words(ui);
    let kept = state.step(ui.selected).is_some_and(|step| !words.is_empty() && !matches(step, &words));
    rows.saturating_sub(usize::from(kept))
}

/// The parallel group that a step belongs to.
#[must_use]
pub fn group_of<'s>(state: &'s RunState, step: &StepState) -> Option<&'s Group> {
    let group = state.groups.iter().find(|g| g.logical == step.logical && g.count > 1)?;
    members(state, group).iter().any(|s| s.id == step.id).then_some(group)
}

/// The steps of a group.
#[must_use]
pub fn members<'s>(state: &'s RunState, group: &Group) -> &'s [StepState] {
    let end = group.start.saturating_add(group.count).min(state.steps.len());
    state.steps.get(group.start..end).unwrap_or_default()
}

/// The group that the row of this step stands for: it is folded, and this is its first member. A group whose other member
/// is selected lies open as long as it is.
#[must_use]
pub fn folded<'s>(ui: &UiState, state: &'s RunState, step: &StepState) -> Option<&'s Group> {
    if !ui.folded.contains(&step.logical) {
        return None;
    }
    let group = group_of(state, step)?;
    let [first, others @ ..] = members(state, group) else { return None };
    (first.id == step.id && others.iter().all(|s| s.id != ui.selected)).then_some(group)
}

/// What lies below a step and folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// Its own sub-agents.
    Agents,
    /// The parallel group that it belongs to.
    Group,
}

/// What of a step would be folded next: its sub-agents, then its group.
///
/// # Errors
/// Why nothing can be, ready to be shown.
pub fn foldable(ui: &UiState, state: &RunState, step: &StepState) -> Result<Branch, String> {
    let group = group_of(state, step).is_some();
    match (has_agents(step), group) {
        (true, _) if !ui.folded_agents.contains(&step.id) => Ok(Branch::Agents),
        (_, true) if !ui.folded.contains(&step.logical) => Ok(Branch::Group),
        (_, true) => Err(format!("the group of step {} is folded already", step.id)),
        (true, false) => Err(format!("the sub-agents of step {} are folded already", step.id)),
        (false, false) => Err(format!("step {} is in no group and has no sub-agents", step.id)),
    }
}

/// What of a step would be unfolded next: its group, then its sub-agents.
///
/// # Errors
/// Why nothing can be, ready to be shown.
pub fn unfoldable(ui: &UiState, state: &RunState, step: &StepState) -> Result<Branch, String> {
    let group = group_of(state, step).is_some();
    match (has_agents(step), group) {
        (_, true) if ui.folded.contains(&step.logical) => Ok(Branch::Group),
        (true, _) if ui.folded_agents.contains(&step.id) => Ok(Branch::Agents),
        (_, true) => Err(format!("the group of step {} lies open already", step.id)),
        (true, false) => Err(format!("the sub-agents of step {} are unfolded already", step.id)),
        (false, false) => Err(format!("step {} is in no group and has no sub-agents", step.id)),
    }
}

const fn has_agents(step: &StepState) -> bool {
    !step.sub_agents.is_empty()
}

/// A line of the list.
#[derive(Clone, Copy, Debug)]
pub enum Row<'s> {
    /// A step.
    Step(&'s StepState),
    /// A sub-agent of the step above it.
    Sub(&'s StepState, &'s SubAgent),
}

impl<'s> Row<'s> {
    /// The step that it is, or belongs to.
    #[must_use]
    pub const fn step(self) -> &'s StepState {
        match self {
            Self::Step(step) | Self::Sub(step, _) => step,
        }
    }
}

/// The sub-agents of a step that may have lines: none where the person folded them.
pub fn agents_of<'s>(ui: &UiState, step: &'s StepState) -> impl Iterator<Item = &'s SubAgent> {
    let folded = ui.folded_agents.contains(&step.id);
    step.sub_agents.iter().filter(move |_| !folded)
}

/// The lines that are seen of a list of this height from a row on. Sub-agents have lines of their own while all lines fit:
/// all of them, else those that work. A list that is longer than its area is not looked through.
#[must_use]
pub fn shown<'s>(ui: &UiState, rows: &Rows<'s>, top: usize, height: usize) -> Vec<Row<'s>> {
    if rows.len() >= height {
        return rows.from(top).take(height).map(Row::Step).collect();
    }
    lines(ui, &rows.from(0).collect::<Vec<_>>(), top, height)
}

/// The same of any steps.
#[must_use]
pub fn lines<'s>(ui: &UiState, steps: &[&'s StepState], top: usize, height: usize) -> Vec<Row<'s>> {
    let room = height.saturating_sub(steps.len());
    let of = |works: bool| {
        let count = |step: &&StepState| agents_of(ui, step).filter(|agent| !works || agent.works()).count();
        room > 0 && steps.iter().map(count).sum::<usize>() <= room
    };
    let (all, working) = (of(false), of(true));
    let mut lines = Vec::new();
    for step in steps.iter().skip(top).take(height) {
        lines.push(Row::Step(step));
        let agents = agents_of(ui, step).filter(|agent| all || (working && agent.works()));
        lines.extend(agents.map(|agent| Row::Sub(step, agent)));
    }
    lines
}

/// How many sub-agents of a step have no line among these.
#[must_use]
pub fn hidden_agents(lines: &[Row<'_>], step: &StepState) -> usize {
    if step.sub_agents.is_empty() {
        return 0;
    }
    let seen = lines.iter().filter(|row| matches!(row, Row::Sub(of, _) if of.id == step.id)).count();
    step.sub_agents.len().saturating_sub(seen)
}

/// How many lines the list would like to have, at most `most`.
#[must_use]
pub fn wanted(ui: &UiState, rows: &Rows<'_>, most: usize) -> usize {
    if rows.len() >= most {
        return most;
    }
    let agents: usize = rows.from(0).map(|step| agents_of(ui, step).count()).sum();
    (rows.len() + agents).min(most)
}

/// Selects the first step that has the words, when the selected one does not.
pub fn settle(ui: &mut UiState, state: &RunState) {
    let words = words(ui);
    if words.is_empty() || state.step(ui.selected).is_some_and(|step| matches(step, &words)) {
        return;
    }
    if let Some(first) = state.steps.iter().find(|step| matches(step, &words)) {
        ui.selected = first.id;
    }
}

fn words(ui: &UiState) -> Vec<String> {
    ui.filter.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect()
}

/// Whether each word is in the number, the name, the agent, the model or the state of a step.
fn matches(step: &StepState, words: &[String]) -> bool {
    let face = super::theme::Theme::default().face(step.face()).word;
    let model = step.model.as_deref().unwrap_or_default();
    let text = format!("{} {} {} {model} {face}", step.id, step.title(), step.agent).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::view::tests::run;

    #[test]
    fn every_word_must_be_there_and_the_order_stays() {
        let state = run();
        for (filter, shown) in [
            ("", &[0, 1, 2, 3, 4, 5][..]),
            ("  ", &[0, 1, 2, 3, 4, 5]),
            ("WORKER", &[2, 4]),
            ("worker-b", &[2, 4]),
            ("run work", &[2, 4]),
            ("done", &[0, 1, 2]),
            ("attention", &[2, 3]),
            ("m-large", &[2]),
            ("nothing", &[]),
        ] {
            let ui = UiState { filter: Some(filter.to_owned()), selected: StepId(2), ..UiState::default() };
            let listed = listed(&ui, &state);
            let rows: Vec<u32> = (0..listed.len()).filter_map(|n| listed.get(n)).map(|s| s.id.0).collect();
            assert!(rows.iter().enumerate().all(|(n, id)| listed.place(StepId(*id)) == Some(n)));
            assert_eq!(rows, shown, "{filter:?}");
        }
    }

    #[test]
    fn a_folded_group_is_one_row_and_opens_for_who_is_selected_in_it() {
        let state = run();
        let mut ui = UiState { folded: [2].into_iter().collect(), selected: StepId(2), ..UiState::default() };
        let rows = |ui: &UiState| listed(ui, &state).from(0).map(|s| s.id.0).collect::<Vec<_>>();
        assert_eq!(rows(&ui), [0, 1, 2, 5]);
        ui.select_by(&state, 1);
        assert_eq!(ui.selected, StepId(5));
        ui.select_by(&state, -1);
        assert_eq!(ui.selected, StepId(2));
        ui.selected = StepId(3);
        assert_eq!(rows(&ui), [0, 1, 2, 3, 4, 5]);
        ui.filter = Some("worker".to_owned());
        assert_eq!(rows(&ui), [2, 3, 4]);
    }

    #[test]
    fn sub_agents_have_lines_where_all_fit() {
        use crate::run::ToolOutcome;
        let mut state = run();
        let agent = |outcome| SubAgent { outcome, ..SubAgent::default() };
        state.steps[1].sub_agents = vec![agent(Some(ToolOutcome::Ok)), agent(None)];
        let mut ui = UiState::default();
        let shape = |ui: &UiState, height: usize| {
            let lines = shown(ui, &listed(ui, &state), 0, height);
            lines.iter().map(|row| (row.step().id.0, matches!(row, Row::Sub(..)))).collect::<Vec<_>>()
        };
        let steps = |id: u32| (id, false);
        let none: Vec<_> = (0..6).map(steps).collect();
        assert_eq!(shape(&ui, 6), none);
        let mut one = vec![steps(0), steps(1), (1, true)];
        one.extend((2..6).map(steps));
        assert_eq!(shape(&ui, 7), one);
        one.insert(3, (1, true));
        assert_eq!(shape(&ui, 8), one);
        let hidden = |ui: &UiState, height| hidden_agents(&shown(ui, &listed(ui, &state), 0, height), &state.steps[1]);
        assert_eq!([6, 7, 8].map(|height| hidden(&ui, height)), [2, 1, 0]);
        assert_eq!([4, 7, 20].map(|most| wanted(&ui, &listed(&ui, &state), most)), [4, 7, 8]);
        ui.folded_agents.insert(StepId(1));
        assert_eq!((shape(&ui, 8), hidden(&ui, 8)), (none, 2));
        assert_eq!(wanted(&ui, &listed(&ui, &state), 20), 6);
    }

    #[test]
    fn the_selection_moves_to_what_is_shown() {
        let state = run();
        let mut ui = UiState { filter: Some("done".to_owned()), selected: StepId(4), ..UiState::default() };
        settle(&mut ui, &state);
        assert_eq!(ui.selected, StepId(0));
        assert_eq!(found(&ui, &state, listed(&ui, &state).len()), listed(&ui, &state).len());
        ui.filter = Some("nothing at all".to_owned());
        assert_eq!((listed(&ui, &state).len(), found(&ui, &state, 0)), (0, 0), "not even the selected one");
        settle(&mut ui, &state);
        assert_eq!(ui.selected, StepId(0));
    }
}
