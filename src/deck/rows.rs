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

/// The rows of the list. The selected step is always among them, so that a filter or a folded group never hides what
/// keys act on.
#[must_use]
pub fn listed<'s>(ui: &UiState, state: &'s RunState) -> Rows<'s> {
    let words = words(ui);
    if !words.is_empty() {
        return Rows::Some(state.steps.iter().filter(|step| step.id == ui.selected || matches(step, &words)).collect());
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

/// The lines that are seen of a list of this height from a row on. Sub-agents have lines of their own while all lines fit:
/// all of them, else those that work. A list that is longer than its area is not looked through.
#[must_use]
pub fn shown<'s>(rows: &Rows<'s>, top: usize, height: usize) -> Vec<Row<'s>> {
    let room = height.saturating_sub(rows.len());
    let of = |works: bool| {
        let count = |step: &StepState| step.sub_agents.iter().filter(|agent| !works || agent.works()).count();
        rows.from(0).map(count).sum::<usize>() <= room
    };
    let (all, working) = if room == 0 { (false, false) } else { (of(false), of(true)) };
    let mut lines = Vec::new();
    for step in rows.from(top).take(height) {
        lines.push(Row::Step(step));
        let agents = step.sub_agents.iter().filter(|agent| all || (working && agent.works()));
        lines.extend(agents.map(|agent| Row::Sub(step, agent)));
    }
    lines
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
            ("nothing", &[2]),
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
        let shape = |height: usize| {
            let lines = shown(&listed(&UiState::default(), &state), 0, height);
            lines.iter().map(|row| (row.step().id.0, matches!(row, Row::Sub(..)))).collect::<Vec<_>>()
        };
        let steps = |id: u32| (id, false);
        assert_eq!(shape(6), (0..6).map(steps).collect::<Vec<_>>());
        let mut one = vec![steps(0), steps(1), (1, true)];
        one.extend((2..6).map(steps));
        assert_eq!(shape(7), one);
        one.insert(3, (1, true));
        assert_eq!(shape(8), one);
    }

    #[test]
    fn the_selection_moves_to_what_is_shown() {
        let state = run();
        let mut ui = UiState { filter: Some("done".to_owned()), selected: StepId(4), ..UiState::default() };
        settle(&mut ui, &state);
        assert_eq!(ui.selected, StepId(0));
        ui.filter = Some("nothing at all".to_owned());
        settle(&mut ui, &state);
        assert_eq!(ui.selected, StepId(0));
    }
}
