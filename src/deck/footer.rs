//! Which actions the footer names: those that are possible for the selection now, the most useful first.

use super::actions::{Action, NARROW, Situation, possible};
use super::attention;
use super::compose;
use super::entries;
use super::model::{Focus, Position, Tab, UiState, ViewMode};
use super::rows;
use crate::run::replay::Step;

/// The actions that the footer names for the situation, in the order of the footer.
#[must_use]
pub fn named(ui: &UiState, at: Situation<'_>) -> Vec<Action> {
    let mut wanted = Vec::new();
    if ui.has_left() {
        wanted.push(Action::StopRun);
    }
    let waiting = attention::attention(at.state, ui);
    if attention::leads(&waiting, ui) {
        wanted.push(Action::NextAttention);
    }
    wanted.push(Action::Answer);
    // A narrow line about who needs somebody has no room for it.
    let here = attention::foremost(&waiting, ui).is_some_and(|first| first.step == ui.selected);
    if here && ui.size.0 < NARROW && ui.replay.is_none() {
        wanted.push(Action::Acknowledge);
    }
    if ui.zoom || ui.focus != Focus::Steps {
        wanted.push(Action::Back);
    } else {
        wanted.push(Action::Down);
        let leads = (ui.from_fleet || ui.replay.is_some()) && ui.mode == ViewMode::List;
        if leads || ui.lists_some() {
            wanted.push(Action::Back);
        }
        // Of what lies folded the row does not say how it opens.
        let folded = at.state.step(ui.selected).is_some_and(|step| rows::unfoldable(ui, at.state, step).is_ok());
        if folded && ui.mode == ViewMode::List && ui.filter.is_none() {
            wanted.push(Action::Right);
        }
    }
    if !ui.zoom {
        wanted.push(Action::Zoom);
    }
    wanted.push(Action::Inside);
    if ui.shows_one() {
        wanted.push(Action::NextStep);
    }
    if ui.zoom {
        match ui.tab(ui.selected) {
            Tab::Output => wanted.extend([Action::Search, Action::Filter]),
            tab if entries::lists(tab) => wanted.extend([Action::Down, Action::Open, Action::Search, Action::Filter]),
            _ if ui.opens_nothing => wanted.extend([Action::Down, Action::Search]),
            _ => wanted.extend([Action::Down, Action::Open, Action::Search]),
        }
    } else if ui.shows_one() || ui.focus == Focus::Output {
        wanted.push(Action::Search);
    }
    if (ui.shows_one() || ui.focus == Focus::Output) && left_behind(ui) {
        wanted.push(Action::Follow);
    }
    if ui.search.as_ref().is_some_and(|search| search.count.is_none_or(|count| count.total > 0)) {
        wanted.push(Action::SearchNext);
    }
    if compose::withdrawable(at.state, ui).is_some() {
        wanted.push(Action::TakeBack);
    }
    if ui.frozen.is_some() && ui.replay.is_none() {
        // How to leave a state is seen in it.
        wanted.push(Action::Freeze);
    }
    // While what happened is still read nothing plays.
    if ui.replay.as_ref().is_some_and(|replay| replay.reading.is_none()) {
        wanted.extend([Action::Freeze, Action::Seek(Step::Event), Action::Seek(Step::Mark), Action::Faster]);
    }
    if ui.zoom && ui.tab(ui.selected) == Tab::Budget {
        wanted.push(Action::Raise);
    }
    // Where everything is being stopped already nothing is offered that this would end.
    if !ui.leave_when_over {
        wanted.extend([Action::Steer, Action::Retry, Action::Interrupt, Action::StopStep]);
    }
    if ui.replay.is_none() {
        wanted.push(Action::Replay);
    }
    if !ui.zoom && !at.state.steps.is_empty() {
        wanted.push(Action::View);
        if ui.mode == ViewMode::List {
            wanted.push(Action::NextPane);
        }
    }
    wanted.extend([Action::Palette, Action::Help, Action::Quit]);
    wanted.retain(|a| possible(*a, ui, at).is_ok());
    wanted
}

/// What the footer names besides where there is much room, the most useful first.
#[must_use]
pub fn more(ui: &UiState, at: Situation<'_>) -> Vec<Action> {
    let over = at.state.step(ui.selected).is_none_or(|step| step.phase.is_terminal());
    let mut wanted = match (ui.zoom, ui.tab(ui.selected)) {
        _ if at.state.steps.is_empty() => Vec::new(),
        (true, Tab::Output) => vec![Action::Wrap, Action::Copy, Action::Pager],
        (true, _) => vec![Action::Copy],
        (false, _) => vec![Action::Filter, Action::Search],
    };
    if ui.zoom && over {
        wanted.push(Action::CopySession);
    }
    if !ui.zoom && !at.state.steps.is_empty() {
        wanted.extend([Action::Raise, Action::StopRun]);
        let reads = ui.replay.as_ref().is_some_and(|replay| replay.reading.is_some());
        wanted.push(if at.state.is_over() || reads { Action::Copy } else { Action::Freeze });
    }
    wanted.retain(|a| possible(*a, ui, at).is_ok());
    wanted
}

/// Whether what is shown of the selected step has a newest part that it does not follow now.
fn left_behind(ui: &UiState) -> bool {
    let pane = ui.pane(ui.selected);
    match pane.tab {
        tab if ui.zoom && entries::lists(tab) => pane.cursor.contains_key(&tab),
        Tab::Output => pane.output != Position::Follow,
        _ => !ui.zoom && pane.output != Position::Follow,
    }
}
